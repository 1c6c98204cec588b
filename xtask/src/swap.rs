//! `cargo xtask swap`: our parts and others' beside each other, cell by cell of docs/swap.md.
//!
//! A cell is a choice of host, queue kernels, worker firmware, kernels and chip. The seeds' Python
//! driver, which the user has fetched and set up, compiles its own parts against either worker
//! firmware (`tests/python/swap_build.py`). Our host then runs a copy through a circular buffer
//! and compares the bytes; the driver runs its matrix product and checks it itself. Captures of our
//! host are sent again to the queue kernels of both.

mod captures;
mod cells;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::own_library;
use cells::{Cell, Side};

/// Arguments of `cargo xtask swap`.
#[derive(Args, Debug)]
pub struct SwapArgs {
    /// A checkout of boopdotpng/tenstorrent-python-driver, set up as its README says; without it
    /// only cells of our own parts run.
    #[arg(long, env = "TILEWORK_SEED_DRIVER", value_name = "DIR")]
    driver: Option<PathBuf>,
    /// A Python with numpy, 3.12 or later, for the driver.
    #[arg(long, env = "TILEWORK_PYTHON", default_value = "python3.12")]
    python: PathBuf,
    /// Another chip: a library with the libttsim interface.
    #[arg(long, value_name = "LIB")]
    chip: Option<PathBuf>,
    /// The `tilework` command; without it, it is built from this checkout.
    #[arg(long, value_name = "FILE")]
    tilework: Option<PathBuf>,
    /// Our library for the Python driver; without it, it is built from this checkout.
    #[arg(long, value_name = "LIB")]
    own: Option<PathBuf>,
}

/// What the cells run with.
struct Parts<'a> {
    root: &'a Path,
    args: &'a SwapArgs,
    tilework: PathBuf,
    library: Option<PathBuf>,
    /// Folders of what the driver compiled, linked with our worker firmware and with its own.
    built: Option<[PathBuf; 2]>,
    scratch: PathBuf,
}

/// Runs the cells whose parts are there, and prints the table.
///
/// # Errors
/// If a part that was named cannot be used, or a cell that should work does not.
pub fn run(root: &Path, args: &SwapArgs) -> Result<()> {
    let root = root.canonicalize()?;
    let folder = tempfile::tempdir()?;
    let tilework = match &args.tilework {
        Some(file) => file.canonicalize().with_context(|| file.display().to_string())?,
        None => build_tilework(&root)?,
    };
    let mut parts =
        Parts { root: &root, args, tilework, library: None, built: None, scratch: folder.path().to_owned() };
    if let Some(driver) = &args.driver {
        ensure!(driver.join("device.py").is_file(), "{} is no checkout of the driver", driver.display());
        let library = args.own.clone().map_or_else(|| own_library::build(&root), Ok)?;
        parts.library = Some(library.canonicalize().with_context(|| library.display().to_string())?);
        parts.built = Some([parts.build(Side::Ours)?, parts.build(Side::Theirs)?]);
    }
    let mut wrong = 0;
    println!("| host | queue | workers | kernels | chip | |\n|---|---|---|---|---|---|");
    for cell in Cell::all() {
        let outcome = cell.outcome(&parts)?;
        wrong += usize::from(outcome.is_wrong());
        println!("{cell} {outcome} |");
    }
    println!("\n| capture | queue | |\n|---|---|---|");
    for queue in Side::ALL {
        let outcome = captures::outcome(queue, &parts)?;
        wrong += usize::from(outcome.is_wrong());
        println!("| {} | {queue} | {outcome} |", Side::Ours);
    }
    ensure!(wrong == 0, "{wrong} cells neither work nor say what they lack");
    Ok(())
}

fn build_tilework(root: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .current_dir(root)
        .args(["build", "--quiet", "--release", "--bin", "tilework"])
        .status()
        .context("cargo could not be started")?;
    ensure!(status.success(), "cargo build: {status}");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(root.join(target).join("release/tilework"))
}

impl Parts<'_> {
    /// Our worker firmware.
    fn prebuilt(&self) -> PathBuf {
        self.root.join("firmware/prebuilt")
    }

    /// Has the driver compile its parts against a worker firmware; returns the folder.
    fn build(&self, workers: Side) -> Result<PathBuf> {
        let out = self.scratch.join(format!("linked-with-{workers}"));
        let mut python = self.python("tests/python/swap_build.py")?;
        match workers {
            Side::Ours => python.arg(self.prebuilt()),
            Side::Theirs => python.arg("-"),
        };
        let output =
            python.arg(self.root.join("tests/swap")).arg(&out).output().context("Python could not be started")?;
        ensure!(output.status.success(), "swap_build.py: {}", String::from_utf8_lossy(&output.stderr));
        Ok(out)
    }

    /// Python with a script of ours and the driver's folder.
    fn python(&self, script: &str) -> Result<Command> {
        let driver = self.args.driver.as_ref().context("no driver")?.canonicalize()?;
        let mut python = Command::new(&self.args.python);
        // The driver keeps compiled kernels in the user's home.
        python.env("PYTHONDONTWRITEBYTECODE", "1").env("HOME", &self.scratch).env("TILEWORK_BOARD", "p100");
        if script.ends_with("swap_host.py") {
            python.arg(self.root.join("crates/libttsim/python/kmd.py"));
            python.arg(self.library.as_ref().context("no library")?);
        }
        python.arg(self.root.join(script)).arg(driver);
        Ok(python)
    }
}
