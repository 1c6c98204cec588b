//! `cargo xtask bench models`: compiled models on the native engine against JAX on the CPU, in one
//! run on one machine.
//!
//! The programs are compiled from the JAX functions in `tests/python`; the largest errors against
//! the expected outputs, of both sides, show that they are the same. A second table has single
//! operations of the library.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::example::example;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// The programs of the data folder, with the largest allowed ratio to JAX's time.
const PROGRAMS: [(&str, f64); 3] = [("matmul_512", 1.5), ("llama_layer", 2.0), ("resblock", 2.0)];
/// Those of `tests/models`, whose arrays are random.
const NETWORKS: [(&str, f64); 2] = [("resnet", 1.5), ("unet", 1.5)];
/// The largest error of either side, as a part of the output's range.
const MOST_ERROR: f64 = 0.02;
/// The largest allowed ratio of a single operation.
const MOST: f64 = 1.5;
/// The release of JAX whose functions were compiled.
const JAX: &str = "jax==0.7.1";
/// Alternating rounds of both sides; the median ratio counts.
const ROUNDS: usize = 5;

#[derive(Deserialize)]
struct Ours {
    name: String,
    open_seconds: f64,
    seconds: f64,
    error: f64,
}

#[derive(Deserialize)]
struct Timed {
    name: String,
    seconds: f64,
}

#[derive(Deserialize)]
struct Theirs {
    name: String,
    seconds: f64,
    error: f64,
}

/// Prints the table.
///
/// # Errors
/// If programs or JAX are missing, or a run fails.
pub(crate) fn run(root: &Path, data: Option<&Path>, python: Option<&Path>) -> Result<()> {
    let data = data.map_or_else(|| root.join("../shared/data/ttnn"), Path::to_owned);
    let data = data.canonicalize().with_context(|| {
        format!("{} is not there; --data names the folder with matmul_512, llama_layer and resblock", data.display())
    })?;
    let python = match python {
        Some(python) => python.to_owned(),
        None => with_jax(root)?,
    };
    let mut folders: Vec<PathBuf> = PROGRAMS.iter().map(|(name, _)| data.join(name)).collect();
    folders.extend(networks(root, &python)?);
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let ours = rows(example(root, "tilework-engine", "models").args(&folders))?;
        rounds.push((ours, rows(script(root, &python).args(&folders))?));
    }
    println!(
        "| program | ours, ms | JAX, ms | times JAX | at most | opening the file, ms |\n|---|---:|---:|---:|---:|---:|"
    );
    for (name, most) in PROGRAMS.into_iter().chain(NETWORKS) {
        let of_round = |(ours, theirs): &(Vec<Ours>, Vec<Theirs>)| -> Result<[f64; 4]> {
            let ours = ours.iter().find(|row| row.name == name).context("a row is missing")?;
            let theirs = theirs.iter().find(|row| row.name == name).context("a row is missing")?;
            for (side, error) in [("the engine", ours.error), ("JAX", theirs.error)] {
                ensure!(error < MOST_ERROR, "{name}: {side} differs from the expected output by {error} of its range");
            }
            Ok([ours.seconds / theirs.seconds, ours.seconds, theirs.seconds, ours.open_seconds])
        };
        let mut rows = rounds.iter().map(of_round).collect::<Result<Vec<_>>>()?;
        rows.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let [ratio, ours, theirs, open] = rows[ROUNDS / 2];
        println!("| {name} | {:.3} | {:.3} | {ratio:.2} | {most} | {:.2} |", ours * 1e3, theirs * 1e3, open * 1e3);
    }
    operations(root, &python)
}

/// Prints the table of single operations.
fn operations(root: &Path, python: &Path) -> Result<()> {
    let mut rounds: Vec<(Vec<Timed>, Vec<Timed>)> = Vec::new();
    for _ in 0..ROUNDS {
        let ours = rows(&mut example(root, "tilework-ops", "operations"))?;
        let script = root.join("tests/python/jax_operations.py");
        rounds.push((ours, rows(Command::new(python).arg(script).env("JAX_PLATFORMS", "cpu"))?));
    }
    println!("\n| operation | ours, ms | JAX, ms | times JAX | at most |\n|---|---:|---:|---:|---:|");
    let names: Vec<&String> = rounds.iter().take(1).flat_map(|(ours, _)| ours).map(|row| &row.name).collect();
    for name in names {
        let of = |rows: &[Timed]| rows.iter().find(|row| row.name == *name).map(|row| row.seconds);
        let of_round = |(ours, theirs): &(Vec<Timed>, Vec<Timed>)| -> Result<[f64; 3]> {
            let (ours, theirs) = (of(ours).context("a row is missing")?, of(theirs).context("a row is missing")?);
            Ok([ours / theirs, ours, theirs])
        };
        let mut all = rounds.iter().map(of_round).collect::<Result<Vec<_>>>()?;
        all.sort_by(|a, b| a[0].total_cmp(&b[0]));
        let [ratio, ours, theirs] = all[ROUNDS / 2];
        println!("| {name} | {:.3} | {:.3} | {ratio:.2} | {MOST} |", ours * 1e3, theirs * 1e3);
    }
    Ok(())
}

/// The script that times JAX.
fn script(root: &Path, python: &Path) -> Command {
    let mut command = Command::new(python);
    command.arg(root.join("tests/python/jax_models.py")).env("JAX_PLATFORMS", "cpu");
    command
}

/// Folders in the target folder with the programs of `tests/models` and their arrays.
fn networks(root: &Path, python: &Path) -> Result<Vec<PathBuf>> {
    let folders = NETWORKS.map(|(name, _)| root.join("target/networks").join(name));
    for ((name, _), folder) in NETWORKS.iter().zip(&folders) {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let file = root.join("tests/models").join(format!("{name}.ttnn"));
        std::fs::copy(&file, folder.join("program.ttnn")).with_context(|| file.display().to_string())?;
    }
    rows::<Theirs>(script(root, python).arg("--make").args(&folders))?;
    Ok(folders.into())
}

/// The lines of JSON that a command prints.
fn rows<T: for<'de> Deserialize<'de>>(command: &mut Command) -> Result<Vec<T>> {
    let output = command.output().with_context(|| format!("{:?} could not be started", command.get_program()))?;
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{:?}: {}\n{errors}", command.get_program(), output.status);
    said.lines().map(|line| serde_json::from_str(line).with_context(|| format!("not a row: {line}"))).collect()
}

/// Returns a Python with JAX, installed from PyPI into the target folder on first use.
fn with_jax(root: &Path) -> Result<PathBuf> {
    let folder = root.join("target/jax");
    let python = folder.join("bin/python");
    if Command::new(&python).args(["-c", "import jax"]).output().is_ok_and(|output| output.status.success()) {
        return Ok(python);
    }
    println!("installing {JAX} into {}\n", folder.display());
    let run = |command: &mut Command| -> Result<()> {
        let output = command.output().with_context(|| format!("{:?} could not be started", command.get_program()))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{:?}: {}\n{errors}", command.get_program(), output.status);
        Ok(())
    };
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(&python).args(["-m", "pip", "install", "--quiet", JAX, "numpy"]))?;
    Ok(python)
}
