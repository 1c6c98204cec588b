//! Stock programs of ttnn beside the device programs of compiled models: cycles of the same
//! simulated chip and seconds of the same machine, in one run.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::example::example;

/// The script that times ttnn's programs, from the repository's root.
const SCRIPT: &str = "tests/python/ttnn_programs.py";

/// What an operation takes.
#[derive(Deserialize, Debug)]
struct Row {
    name: String,
    cycles: u64,
    seconds: f64,
}

/// Runs both sides on the same board.
///
/// # Errors
/// If one of them fails.
pub(super) fn run(root: &Path, setup: &Path, library: &Path, folder: &Path) -> Result<String> {
    let script = root.join(SCRIPT).canonicalize().with_context(|| SCRIPT.to_owned())?;
    let mut ttnn = super::in_setup(setup, library, "exec \"$TTNN_PYTHON\" \"$2\"");
    ttnn.arg(script).current_dir(folder).env_remove("TT_METAL_SLOW_DISPATCH_MODE");
    let theirs = rows(&mut ttnn)?;
    let ours = rows(&mut example(root, "tilework-onchip", "device_programs"))?;
    Ok(table(&ours, &theirs))
}

/// The lines of JSON of a command, which may say other things between them.
fn rows(command: &mut Command) -> Result<Vec<Row>> {
    let output = command.output().with_context(|| format!("{:?} could not be started", command.get_program()))?;
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    ensure!(output.status.success(), "{:?}: {}\n{errors}", command.get_program(), output.status);
    let lines = said.lines().filter(|line| line.starts_with("{\"name\""));
    lines.map(|line| serde_json::from_str(line).with_context(|| format!("not a row: {line}"))).collect()
}

fn table(ours: &[Row], theirs: &[Row]) -> String {
    let mut out = String::from(
        "| operation | cycles, ours | ttnn | ours / ttnn | host ms, ours | ttnn |\n|---|---:|---:|---:|---:|---:|\n",
    );
    for row in ours {
        let Row { name, cycles, seconds } = row;
        let other = theirs.iter().find(|other| other.name == *name);
        let [their_cycles, ratio, their_ms] = other.map_or_else(Default::default, |other| {
            let ratio = *cycles as f64 / other.cycles.max(1) as f64;
            [other.cycles.to_string(), format!("{ratio:.2}"), format!("{:.1}", other.seconds * 1e3)]
        });
        out += &format!("| {name} | {cycles} | {their_cycles} | {ratio} | {:.1} | {their_ms} |\n", seconds * 1e3);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_matched_by_name() {
        let row = |name: &str, cycles, seconds| Row { name: name.into(), cycles, seconds };
        let text = table(&[row("add", 150, 0.02), row("exp", 7, 0.001)], &[row("add", 100, 0.04)]);
        let expected = "| add | 150 | 100 | 1.50 | 20.0 | 40.0 |\n| exp | 7 |  |  | 1.0 |  |\n";
        assert!(text.ends_with(expected), "{text}");
    }
}
