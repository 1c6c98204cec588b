//! Operations of ttnn, one by one: how long each takes on our library and on another one.
//!
//! The script runs each operation twice and writes what became of it to the file behind `--json`:
//! `{"rows": [{"name": ..., "status": "OK", "again": seconds of the second run}, ...]}`.

use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

/// What the script says about all operations.
#[derive(Deserialize, Debug)]
pub(super) struct Report {
    rows: Vec<Row>,
}

/// What the script says about an operation.
#[derive(Deserialize, Debug)]
struct Row {
    name: String,
    status: String,
    /// Seconds of the run from the cache.
    again: Option<f64>,
}

impl Row {
    /// Its seconds, if its result was right.
    fn seconds(&self) -> Option<f64> {
        self.again.filter(|_| self.status == "OK")
    }

    fn cell(&self) -> String {
        self.seconds().map_or_else(|| self.status.clone(), |seconds| format!("{seconds:.4}"))
    }
}

/// Runs the script with one library.
///
/// # Errors
/// If the script fails or does not write what it should.
pub(super) fn run(setup: &Path, library: &Path, script: &Path, only: Option<&str>, folder: &Path) -> Result<Report> {
    let file = folder.join("operations.json");
    let mut shell = super::in_setup(setup, library, "shift; exec \"$TTNN_PYTHON\" \"$@\"");
    shell.arg(script).arg("--json").arg(&file).current_dir(folder).env_remove("TT_METAL_SLOW_DISPATCH_MODE");
    if let Some(only) = only {
        shell.args(["--only", only]);
    }
    let status = shell.status().context("bash could not be started")?;
    ensure!(status.success(), "{} with {}: {status}", script.display(), library.display());
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    std::fs::remove_file(&file).with_context(|| file.display().to_string())?;
    serde_json::from_str(&text).with_context(|| file.display().to_string())
}

/// A table of our report and, if there is one, another; the sums count the operations that are
/// right on both.
pub(super) fn table(ours: &Report, theirs: Option<&Report>) -> String {
    let mut out = String::from("| operation | ours | theirs | ours / theirs |\n|---|---:|---:|---:|\n");
    let (mut sums, mut count) = ([0.0; 2], 0);
    for row in &ours.rows {
        let other = theirs.and_then(|theirs| theirs.rows.iter().find(|other| other.name == row.name));
        let ratio = match (row.seconds(), other.and_then(Row::seconds)) {
            (Some(ours), Some(theirs)) => {
                sums = [sums[0] + ours, sums[1] + theirs];
                count += 1;
                format!("{:.3}", ours / theirs)
            }
            _ => String::new(),
        };
        let other = other.map_or_else(String::new, Row::cell);
        let _ = writeln!(out, "| {} | {} | {other} | {ratio} |", row.name, row.cell());
    }
    if theirs.is_some() {
        let [ours, theirs] = sums;
        let _ = writeln!(out, "| sum of {count} | {ours:.4} | {theirs:.4} | {:.3} |", ours / theirs);
    }
    let right = ours.rows.iter().filter(|row| row.status == "OK").count();
    let _ = writeln!(out, "\n{right} of {} are right on ours.", ours.rows.len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: &str) -> Report {
        serde_json::from_str(text).expect("a report")
    }

    #[test]
    fn operations_are_compared_by_name_and_only_right_ones_count() {
        let ours = report(
            r#"{"library": "x", "rows": [{"name": "add", "status": "OK", "again": 0.5, "pcc": 1.0},
                {"name": "mul", "status": "FAULT", "again": null}, {"name": "exp", "status": "OK", "again": 1.0},
                {"name": "log", "status": "MISMATCH", "again": 1.0}]}"#,
        );
        let theirs = report(
            r#"{"rows": [{"name": "exp", "status": "OK", "again": 4.0}, {"name": "mul", "status": "OK", "again": 9.0},
                {"name": "add", "status": "OK", "again": 2.0}]}"#,
        );
        let want = "| add | 0.5000 | 2.0000 | 0.250 |\n| mul | FAULT | 9.0000 |  |\n| exp | 1.0000 | 4.0000 | 0.250 |\n\
                    | log | MISMATCH |  |  |\n| sum of 2 | 1.5000 | 6.0000 | 0.250 |\n\n2 of 4 are right on ours.\n";
        assert!(table(&ours, Some(&theirs)).ends_with(want), "{}", table(&ours, Some(&theirs)));
        assert!(!table(&ours, None).contains("sum"));
    }
}
