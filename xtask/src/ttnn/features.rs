//! `cargo xtask ttnn --features`: traces and events on one and two hardware queues, and programs
//! under the watcher with device prints.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use super::{SCRIPT, in_setup, time_of};

/// The script of queues, traces and events, from the repository's root.
const QUEUES: &str = "tests/python/ttnn_queues.py";
/// The cores of [`SCRIPT`]'s program, in the form of `TT_METAL_DPRINT_CORES`.
const PRINTING_CORES: &str = "(0,0)-(5,0)";
/// What each of them prints for each run of the program.
const PRINTED: &str = "pages from ";
/// Runs of the program in [`SCRIPT`] on its six cores.
const PRINTS: usize = 6 * 6;

/// A column of the table: its title, and names with seconds.
type Column = (String, Vec<(String, f64)>);

/// Runs all of it on `library`.
pub(super) fn run(root: &Path, setup: &Path, library: &Path, folder: &Path) -> Result<Vec<Column>> {
    let mut columns = Vec::new();
    for queues in ["1", "2"] {
        let said = start(setup, library, &root.join(QUEUES), folder, &[("QUEUES", queues)])?;
        columns.push((format!("{queues} queues"), times(&said)));
    }
    columns.push(("watched, prints".to_owned(), watched(root, setup, library, folder)?));
    Ok(columns)
}

fn times(said: &str) -> Vec<(String, f64)> {
    said.lines().filter_map(time_of).collect()
}

/// Runs the program under the watcher, whose log must show a device, and compares what its cores
/// print.
fn watched(root: &Path, setup: &Path, library: &Path, folder: &Path) -> Result<Vec<(String, f64)>> {
    let prints = folder.join("prints.txt");
    let [shown, logs] = [&prints, folder].map(|path| path.display().to_string());
    let environment = [
        ("TT_METAL_WATCHER", "1"),
        ("TT_METAL_DPRINT_CORES", PRINTING_CORES),
        ("TT_METAL_DPRINT_FILE", &shown),
        ("TT_METAL_LOGS_PATH", &logs),
    ];
    let said = start(setup, library, &root.join(SCRIPT), folder, &environment)?;
    let text = std::fs::read_to_string(&prints).with_context(|| shown.clone())?;
    let found = text.lines().filter(|line| line.contains(PRINTED)).count();
    ensure!(found == PRINTS, "{found} lines of the cores' prints, expected {PRINTS}:\n{text}");
    let log = folder.join("generated/watcher/watcher.log");
    let log = std::fs::read_to_string(&log).with_context(|| log.display().to_string())?;
    ensure!(log.contains("Dump #") || log.contains("Device 0"), "the watcher's log shows no device:\n{log}");
    Ok(times(&said))
}

/// Runs a script in `folder`; returns what it says.
fn start(setup: &Path, library: &Path, script: &Path, folder: &Path, environment: &[(&str, &str)]) -> Result<String> {
    let script = script.canonicalize().with_context(|| script.display().to_string())?;
    let mut shell = in_setup(setup, library, "exec \"$TTNN_PYTHON\" \"$2\"");
    shell.arg(&script).current_dir(folder).env_remove("TT_METAL_SLOW_DISPATCH_MODE");
    shell.envs(environment.iter().copied());
    let output = shell.output().context("bash could not be started")?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    let shown = script.display();
    ensure!(output.status.success(), "{shown} with {environment:?}: {}\n{said}{errors}", output.status);
    Ok(said)
}
