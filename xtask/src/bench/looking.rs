//! `cargo xtask bench looking`: what it costs to look into a run of a kernel program.
//!
//! The command itself runs each kernel program of `examples` in each way in turn, on one thread, as
//! often as its time permits: programs of a few milliseconds are mostly disturbed, and seldom for
//! long. Of the times that its reports give, the lower quartiles are compared, as the table in
//! `docs/benchmarks.md` has them: what disturbs a run only makes it longer. What is over its bound
//! is printed in bold, and counted.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

/// Rounds of all ways: at least so many of each program, and further ones until it has taken so
/// long with all that belongs to a run.
const ROUNDS: usize = 9;
const MOST_ROUNDS: usize = 41;
const TIME: Duration = Duration::from_secs(20);

/// Ways to look, with what each may cost at most, as a multiple of the first.
const WAYS: [(&str, &[&str], f64); 4] = [
    ("`--checks off`", &["--checks", "off"], 1.0),
    ("`warn`", &["--checks", "warn"], 1.5),
    ("`races`", &["--checks", "races"], 5.0),
    ("`--trace`", &["--checks", "off", "--trace"], 2.0),
];

/// The program that gets a large input, because its own is over at once.
const LARGE: &str = "increment";

/// What the table says of some programs beside their names.
const TITLES: [(&str, &str); 3] = [
    (LARGE, ", 1 Mi words on 118 workers: cores that load and store"),
    ("functions", ": the coprocessor works"),
    ("matmul", ", 128 x 128"),
];

/// Words of the large input.
const WORDS: u32 = 1 << 20;

/// Prints the table.
///
/// # Errors
/// If a build or a run fails.
pub(crate) fn run(root: &Path) -> Result<()> {
    let tilework = build(root)?;
    let folder = tempfile::tempdir()?;
    let big = folder.path().join("x.npy");
    write_words(&big)?;
    let heads: Vec<String> = WAYS.iter().map(|(name, _, most)| format!("{name}, at most {most}")).collect();
    println!("| program | {} |\n|---|{}", heads.join(" | "), "---:|".repeat(WAYS.len()));
    let mut over = 0;
    for name in programs(root)? {
        let inputs = inputs(root, &name, &big)?;
        let times = measure(|options| {
            let mut command = Command::new(&tilework);
            command.current_dir(root).arg("run").arg(format!("examples/{name}/program.toml")).args(&inputs);
            command.args(["--threads", "1", "--report", "json", "--out"]).arg(folder.path()).args(options);
            if options.contains(&"--trace") {
                command.arg(folder.path().join("trace.pftrace"));
            }
            host_seconds(&mut command)
        })?;
        let title = TITLES.iter().find(|(of, _)| *of == name).map_or("", |(_, title)| title);
        let mut row = format!("| `{name}`{title} | {:.1} |", times[0] * 1e3);
        for (time, (_, _, most)) in times.iter().zip(WAYS).skip(1) {
            let multiple = time / times[0];
            let mark = if multiple > most { "**" } else { "" };
            over += usize::from(multiple > most);
            write!(row, " {:.1} ({mark}{multiple:.2}{mark}) |", time * 1e3)?;
        }
        println!("{row}");
    }
    println!("\n{over} over their bounds");
    Ok(())
}

/// The lower quartile of the seconds that `run` gives for each of the ways.
fn measure(run: impl Fn(&[&str]) -> Result<f64>) -> Result<[f64; WAYS.len()]> {
    let mut times = [const { Vec::new() }; WAYS.len()];
    let started = Instant::now();
    for round in 0..MOST_ROUNDS {
        if round >= ROUNDS && started.elapsed() >= TIME {
            break;
        }
        // To and fro, so that each way comes after each of its neighbours.
        for at in 0..WAYS.len() {
            let way = if round % 2 == 0 { at } else { WAYS.len() - 1 - at };
            times[way].push(run(WAYS[way].1)?);
        }
    }
    Ok(times.map(lower_quartile))
}

/// A quarter of the times is no longer.
fn lower_quartile(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 4]
}

/// The kernel programs among the examples, in the order of their names.
fn programs(root: &Path) -> Result<Vec<String>> {
    let folders = std::fs::read_dir(root.join("examples")).context("the examples cannot be read")?;
    let mut names = Vec::new();
    for folder in folders {
        let folder = folder?;
        if folder.path().join("program.toml").is_file() {
            names.push(folder.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

/// Builds the command for release.
fn build(root: &Path) -> Result<PathBuf> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root).args(["build", "--quiet", "--release", "--package", "tilework-cli"]);
    ensure!(command.status().context("cargo could not be started")?.success(), "the command could not be built");
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    Ok(root.join(target).join("release").join(format!("tilework{}", std::env::consts::EXE_SUFFIX)))
}

/// The arrays of an example: those beside it that are named as its buffers, or the large one.
fn inputs(root: &Path, name: &str, big: &Path) -> Result<Vec<String>> {
    let folder = root.join("examples").join(name);
    let of = |array: &str, file: &Path| ["--input".to_owned(), format!("{array}={}", file.display())];
    if name == LARGE {
        return Ok(of("x", big).into());
    }
    let program: toml::Table = std::fs::read_to_string(folder.join("program.toml"))?.parse()?;
    let buffers = program.get("buffers").and_then(toml::Value::as_table).context("a program without buffers")?;
    let files = buffers.keys().map(|buffer| (buffer, folder.join(format!("{buffer}.npy"))));
    Ok(files.filter(|(_, file)| file.exists()).flat_map(|(buffer, file)| of(buffer, &file)).collect())
}

/// Writes an array of 32-bit words in NumPy's format, version 1.0 (`numpy.lib.format`).
fn write_words(path: &Path) -> Result<()> {
    let text = format!("{{'descr': '<u4', 'fortran_order': False, 'shape': ({WORDS},), }}");
    // With magic and length a multiple of 64 bytes.
    let len = (text.len() + 11).next_multiple_of(64) - 10;
    let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
    file.write_all(b"\x93NUMPY\x01\x00")?;
    file.write_all(&u16::try_from(len)?.to_le_bytes())?;
    file.write_all(format!("{text:<width$}\n", width = len - 1).as_bytes())?;
    (0..WORDS).try_for_each(|word| file.write_all(&word.to_le_bytes()))?;
    Ok(file.flush()?)
}

/// The seconds that a run has needed, by its report.
fn host_seconds(command: &mut Command) -> Result<f64> {
    let output = command.output().with_context(|| format!("{:?} could not be started", command.get_program()))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{command:?}: {}\n{errors}", output.status);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    report["host_seconds"].as_f64().context("the report has no host_seconds")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn what_disturbs_most_runs_changes_no_quartile() {
        let runs = Cell::new(0u32);
        let times = measure(|options| {
            let run = runs.replace(runs.get() + 1);
            let disturbed = if run.is_multiple_of(3) { 0.0 } else { f64::from(run) };
            Ok(WAYS.iter().position(|(_, of, _)| *of == options).map_or(0.0, |way| way as f64) + disturbed)
        });
        assert_eq!(times.ok(), Some([0.0, 1.0, 2.0, 3.0]));
        assert_eq!(runs.get() as usize, WAYS.len() * MOST_ROUNDS, "all rounds fit into the time");
        assert_eq!(lower_quartile(vec![5.0, 1.0, 4.0, 2.0, 3.0]), 2.0);
    }
}
