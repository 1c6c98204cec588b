//! `cargo xtask bench models`: compiled models on the simulated chip, on the native engine and,
//! where it is installed, as JAX functions on the CPU, in one run on one machine.
//!
//! The programs are compiled from the JAX functions in `tests/python`; the largest errors against
//! the expected outputs, of all sides, show that they are the same. A second table has single
//! operations of the library.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::example::example;
use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use tilework_abi::board::AICLK_MHZ;

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
struct OnChip {
    name: String,
    seconds: f64,
    cycles: u64,
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

/// Prints the tables.
///
/// # Errors
/// If programs are missing, or JAX where it is asked for, or a run fails.
pub(crate) fn run(root: &Path, data: Option<&Path>, python: Option<&Path>, install: bool) -> Result<()> {
    let data = data.map_or_else(|| root.join("../shared/data/ttnn"), Path::to_owned);
    let data = data.canonicalize().with_context(|| {
        format!("{} is not there; --data names the folder with matmul_512, llama_layer and resblock", data.display())
    })?;
    let python = match python {
        Some(python) => Some(python.to_owned()),
        None => with_jax(root, install)?,
    };
    let programs: Vec<PathBuf> = PROGRAMS.iter().map(|(name, _)| data.join(name)).collect();
    let on_chip: Vec<OnChip> = rows(example(root, "tilework-onchip", "models").args(&programs))?;
    let mut folders = programs;
    if let Some(python) = &python {
        folders.extend(networks(root, python)?);
    }
    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let ours = rows(example(root, "tilework-engine", "models").args(&folders))?;
        let theirs = python.as_ref().map(|python| rows(script(root, python).args(&folders))).transpose()?;
        rounds.push((ours, theirs.unwrap_or_default()));
    }
    println!(
        "| program | native, ms | JAX, ms | times JAX | at most | opening the file, ms | chip, us | chip, host s |\n\
         |---|---:|---:|---:|---:|---:|---:|---:|"
    );
    for (name, most) in PROGRAMS.into_iter().chain(NETWORKS) {
        if folders.iter().any(|folder| folder.ends_with(name)) {
            program(name, most, &rounds, on_chip.iter().find(|row| row.name == name))?;
        }
    }
    operations(root, python.as_deref())
}

/// Prints the row of a program: the round of the median.
fn program(name: &str, most: f64, rounds: &[(Vec<Ours>, Vec<Theirs>)], on_chip: Option<&OnChip>) -> Result<()> {
    let right = |side: &str, error: f64| -> Result<()> {
        ensure!(error < MOST_ERROR, "{name}: {side} differs from the expected output by {error} of its range");
        Ok(())
    };
    let of_round = |(ours, theirs): &(Vec<Ours>, Vec<Theirs>)| -> Result<(f64, f64, Option<f64>)> {
        let ours = ours.iter().find(|row| row.name == name).context("a row is missing")?;
        right("the engine", ours.error)?;
        let theirs = theirs.iter().find(|row| row.name == name);
        theirs.map_or(Ok(()), |row| right("JAX", row.error))?;
        Ok((ours.seconds, ours.open_seconds, theirs.map(|row| row.seconds)))
    };
    let mut rows = rounds.iter().map(of_round).collect::<Result<Vec<_>>>()?;
    rows.sort_by(|a, b| (a.0 / a.2.unwrap_or(1.0)).total_cmp(&(b.0 / b.2.unwrap_or(1.0))));
    let (ours, open, theirs) = rows[ROUNDS / 2];
    let (jax, ratio) = theirs.map_or_else(none, |jax| (format!("{:.3}", jax * 1e3), format!("{:.2}", ours / jax)));
    on_chip.map_or(Ok(()), |row| right("the chip", row.error))?;
    let (time, seconds) = on_chip.map_or_else(none, |row| {
        (format!("{:.1}", row.cycles as f64 / f64::from(AICLK_MHZ)), format!("{:.2}", row.seconds))
    });
    println!("| {name} | {:.3} | {jax} | {ratio} | {most} | {:.2} | {time} | {seconds} |", ours * 1e3, open * 1e3);
    Ok(())
}

/// Two cells without figures.
fn none() -> (String, String) {
    ("-".to_owned(), "-".to_owned())
}

/// Prints the table of single operations.
fn operations(root: &Path, python: Option<&Path>) -> Result<()> {
    let mut rounds: Vec<(Vec<Timed>, Vec<Timed>)> = Vec::new();
    for _ in 0..ROUNDS {
        let ours = rows(&mut example(root, "tilework-ops", "operations"))?;
        let jax = root.join("tests/python/jax_operations.py");
        let theirs =
            python.map(|python| rows(Command::new(python).arg(jax).env("JAX_PLATFORMS", "cpu"))).transpose()?;
        rounds.push((ours, theirs.unwrap_or_default()));
    }
    println!("\n| operation | ours, ms | JAX, ms | times JAX | at most |\n|---|---:|---:|---:|---:|");
    let names: Vec<&String> = rounds.iter().take(1).flat_map(|(ours, _)| ours).map(|row| &row.name).collect();
    for name in names {
        let of = |rows: &[Timed]| rows.iter().find(|row| row.name == *name).map(|row| row.seconds);
        let of_round = |(ours, theirs): &(Vec<Timed>, Vec<Timed>)| -> Result<(f64, Option<f64>)> {
            Ok((of(ours).context("a row is missing")?, of(theirs)))
        };
        let mut all = rounds.iter().map(of_round).collect::<Result<Vec<_>>>()?;
        all.sort_by(|a, b| (a.0 / a.1.unwrap_or(1.0)).total_cmp(&(b.0 / b.1.unwrap_or(1.0))));
        let (ours, theirs) = all[ROUNDS / 2];
        let (jax, ratio) = theirs.map_or_else(none, |jax| (format!("{:.3}", jax * 1e3), format!("{:.2}", ours / jax)));
        println!("| {name} | {:.3} | {jax} | {ratio} | {MOST} |", ours * 1e3);
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

/// A Python with JAX: that of the target folder, into which JAX is installed from PyPI if that is
/// asked for, or the machine's.
fn with_jax(root: &Path, install: bool) -> Result<Option<PathBuf>> {
    let folder = root.join("target/jax");
    let own = folder.join("bin/python");
    let has = |python: &Path| {
        Command::new(python).args(["-c", "import jax"]).output().is_ok_and(|output| output.status.success())
    };
    if let Some(python) = [own.clone(), PathBuf::from("python3")].into_iter().find(|python| has(python)) {
        return Ok(Some(python));
    }
    if !install {
        println!("no JAX on this machine: --install-jax installs {JAX} into {}\n", folder.display());
        return Ok(None);
    }
    println!("installing {JAX} into {}\n", folder.display());
    let run = |command: &mut Command| -> Result<()> {
        let output = command.output().with_context(|| format!("{:?} could not be started", command.get_program()))?;
        let errors = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{:?}: {}\n{errors}", command.get_program(), output.status);
        Ok(())
    };
    run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
    run(Command::new(&own).args(["-m", "pip", "install", "--quiet", JAX, "numpy"]))?;
    Ok(Some(own))
}
