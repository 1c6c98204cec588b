//! The cells of the table, and how each is run.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use anyhow::{Context, Result};

use super::Parts;

/// Whose part it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    /// Of this repository.
    Ours,
    /// Of others.
    Theirs,
}

impl Side {
    pub(super) const ALL: [Self; 2] = [Self::Ours, Self::Theirs];
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Ours { "ours" } else { "theirs" })
    }
}

/// A choice of all five parts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    host: Side,
    queue: Side,
    workers: Side,
    kernels: Side,
    chip: Side,
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, queue, workers, kernels, chip } = self;
        write!(f, "| {host} | {queue} | {workers} | {kernels} | {chip} |")
    }
}

/// What became of a cell.
pub(super) enum Outcome {
    /// The result is right; what was said about it.
    Right(String),
    /// What the one side lacks for the other.
    Lacks(String),
    /// A part that the user has not named.
    NotRun(&'static str),
    /// It should work and does not.
    Wrong(String),
}

impl Outcome {
    pub(super) fn is_wrong(&self) -> bool {
        matches!(self, Self::Wrong(_))
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Right(what) => write!(f, "right: {what}"),
            Self::Lacks(what) => f.write_str(what),
            Self::NotRun(option) => write!(f, "not run: {option} is not given"),
            Self::Wrong(what) => write!(f, "WRONG: {what}"),
        }
    }
}

/// Bytes of the array of `examples/pipeline`: 37 tiles of 32 by 32 numbers of 16 bits.
const ARRAY_BYTES: usize = 37 * 32 * 32 * 2;
/// What the driver says of a right product.
const VALID: &str = "Validation: ";
/// Where the driver's host stores the kernels of its queue: behind the kernel configuration's first
/// 48 bytes (its `device.py`).
const DRIVER_TEXT: u32 = 0x82B0 + 48;

impl Cell {
    /// All cells, in the order of the table.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        (0..32_u32).map(|i| {
            let side = |bit: u32| Side::ALL[usize::from(i >> bit & 1 == 1)];
            Self { chip: side(4), host: side(3), queue: side(2), workers: side(1), kernels: side(0) }
        })
    }

    /// Runs it.
    pub(super) fn outcome(self, parts: &Parts<'_>) -> Result<Outcome> {
        let foreign = [self.host, self.queue, self.workers, self.kernels].contains(&Side::Theirs);
        if foreign && parts.built.is_none() {
            return Ok(Outcome::NotRun("--driver"));
        }
        if self.chip == Side::Theirs && parts.args.chip.is_none() {
            return Ok(Outcome::NotRun("--chip"));
        }
        match self.host {
            Side::Ours => self.by_tilework(parts),
            Side::Theirs => self.by_driver(parts),
        }
    }

    /// The folder of what was linked with this cell's workers.
    fn built<'a>(self, parts: &'a Parts<'_>) -> Result<&'a Path> {
        let [ours, theirs] = parts.built.as_ref().context("nothing was built")?;
        Ok(if self.workers == Side::Ours { ours } else { theirs })
    }

    /// The example `pipeline`, with its kernels or with those of tt-metal's calls.
    fn by_tilework(self, parts: &Parts<'_>) -> Result<Outcome> {
        let example = parts.root.join("examples/pipeline");
        let mut program = std::fs::read_to_string(example.join("program.toml"))?;
        if self.kernels == Side::Theirs {
            for name in ["reader", "writer"] {
                let file = self.built(parts)?.join(format!("kernels/{name}.elf"));
                program = program.replace(&format!("prebuilt:{name}"), &file.display().to_string());
            }
        }
        let [file, out] = ["program.toml", "out"].map(|name| parts.scratch.join(name));
        std::fs::write(&file, program)?;
        let mut run = Command::new(&parts.tilework);
        run.arg("run").arg(&file).arg("--out").arg(&out);
        run.arg("--input").arg(format!("x={}", example.join("x.npy").display()));
        if self.workers == Side::Theirs {
            run.arg("--firmware").arg(self.built(parts)?.join("workers"));
        }
        if self.queue == Side::Theirs {
            run.arg("--cq-firmware").arg(self.built(parts)?.join("queue"));
        }
        match &parts.args.chip {
            Some(chip) if self.chip == Side::Theirs => run.arg("--chip").arg(chip).args(["--board", "p150"]),
            _ => run.args(["--board", "p100"]),
        };
        let output = run.output().context("tilework could not be started")?;
        if !output.status.success() {
            return Ok(refused(&output));
        }
        let [x, y] = [example.join("x.npy"), out.join("y.npy")].map(std::fs::read);
        let [x, y] = [x?, y?].map(|file| file.get(file.len().saturating_sub(ARRAY_BYTES)..).map(<[u8]>::to_vec));
        // The headers may be padded differently.
        if x == y { Ok(Outcome::Right("the same bytes".to_owned())) } else { Ok(Outcome::Wrong("other bytes".into())) }
    }

    /// The driver's matrix product.
    fn by_driver(self, parts: &Parts<'_>) -> Result<Outcome> {
        if self.chip == Side::Theirs {
            return Ok(Outcome::Lacks("the chip names no harvested DRAM bank, which the driver asks for".into()));
        }
        if self.kernels == Side::Ours {
            return Ok(Outcome::Lacks("the driver compiles its kernels from C++ and loads no files".into()));
        }
        let mut python = parts.python("tests/python/swap_host.py")?;
        match self.workers {
            Side::Ours => python.arg(parts.prebuilt()),
            Side::Theirs => python.arg("-"),
        };
        match self.queue {
            Side::Ours => python.arg(self.flat_queue(parts)?),
            Side::Theirs => python.arg("-"),
        };
        let driver = parts.args.driver.as_ref().context("no driver")?.canonicalize()?;
        python.arg(driver.join("examples/matmul_peak.py")).args(["512", "512", "512"]);
        let output = python.output().context("Python could not be started")?;
        let said = String::from_utf8_lossy(&output.stdout);
        match said.lines().find_map(|line| line.strip_prefix(VALID)) {
            Some(valid) if output.status.success() => Ok(Outcome::Right(valid.to_owned())),
            _ => Ok(Outcome::Wrong(last_line(&output))),
        }
    }

    /// Our queue kernels as flat images for the places where the driver stores its own.
    fn flat_queue(self, parts: &Parts<'_>) -> Result<PathBuf> {
        let out = parts.scratch.join("flat");
        std::fs::create_dir_all(&out)?;
        let link = |name: &str, core: &str, at: u32| -> Result<u32> {
            let file = out.join(format!("{name}.bin"));
            let mut link = Command::new(&parts.tilework);
            link.arg("link-kernel").arg(parts.prebuilt().join(format!("{name}.elf")));
            link.args(["--core", core, "--at", &at.to_string(), "-o"]).arg(&file);
            if self.workers == Side::Theirs {
                link.arg("--firmware").arg(self.built(parts)?.join("workers"));
            }
            let output = link.output().context("tilework could not be started")?;
            anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            Ok(u32::try_from(std::fs::metadata(&file)?.len())?)
        };
        link("prefetch", "brisc", DRIVER_TEXT)?;
        let bytes = link("dispatch", "brisc", DRIVER_TEXT)?;
        link("dispatch-s", "ncrisc", (DRIVER_TEXT + bytes).next_multiple_of(16))?;
        Ok(out)
    }
}

/// A run that our command ended: with exit code 2 it says what does not go together.
fn refused(output: &Output) -> Outcome {
    match output.status.code() {
        Some(2) => Outcome::Lacks(last_line(output)),
        _ => Outcome::Wrong(last_line(output)),
    }
}

/// The last line of standard error that says something.
pub(super) fn last_line(output: &Output) -> String {
    let errors = String::from_utf8_lossy(&output.stderr);
    let line = errors.lines().rfind(|line| !line.trim().is_empty() && !line.starts_with("kmd:"));
    line.map_or_else(|| output.status.to_string(), str::to_owned)
}
