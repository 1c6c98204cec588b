//! `cargo xtask ttnn --checks WORDS`: what our library's checks find in ttnn's kernels and
//! firmware, as a table by place. docs/others.md judges it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::in_setup;

/// What the library writes to the file of `TILEWORK_FINDINGS`.
#[derive(Deserialize)]
struct Found {
    cards: Vec<Card>,
}

/// The findings of a card.
#[derive(Deserialize)]
struct Card {
    accesses: u64,
    requests: u64,
    findings: Vec<Finding>,
}

#[derive(Deserialize)]
struct Finding {
    id: String,
    #[serde(flatten)]
    place: Place,
    other: Option<Place>,
    count: u64,
}

/// Who did something, and where.
#[derive(Deserialize)]
struct Place {
    agent: String,
    pc: Option<u32>,
    runs: Option<String>,
    source: Option<Vec<Frame>>,
}

#[derive(Deserialize)]
struct Frame {
    file: Option<String>,
    line: Option<u32>,
}

impl Place {
    /// Its kernel and line, or what is known.
    fn shown(&self) -> String {
        let lines = self.source.iter().flatten().filter_map(|frame| Some((frame.file.as_deref()?, frame.line?)));
        // The kernel's own line, not that of a header.
        let own = lines.clone().find(|(file, _)| !file.ends_with(".h") && !file.ends_with(".hpp"));
        let line = own.or(lines.clone().next()).map(|(file, line)| {
            let name = file.rsplit('/').next().unwrap_or(file);
            format!("{name}:{line}")
        });
        match (&self.runs, line, self.pc) {
            (Some(runs), Some(line), _) => format!("{runs}, {line}"),
            (Some(runs), None, _) => runs.clone(),
            (None, _, Some(pc)) => format!("{} at {pc:#x}", self.agent),
            (None, _, None) => self.agent.clone(),
        }
    }
}

/// Runs the script with these words; it may be the one for operations, with `only` some of them.
///
/// # Errors
/// If the script fails or the library has written nothing.
pub(super) fn run(
    setup: &Path,
    library: &Path,
    script: &Path,
    arguments: &[&str],
    words: &str,
    folder: &Path,
) -> Result<String> {
    let mut shell = in_setup(setup, library, "shift; exec \"$TTNN_PYTHON\" \"$@\"");
    shell.arg(script).args(arguments).current_dir(folder).env_remove("TT_METAL_SLOW_DISPATCH_MODE");
    shell.env("TILEWORK_CHECKS", words).env("TILEWORK_FINDINGS", folder.join("findings-%p.json"));
    let status = shell.status().context("bash could not be started")?;
    ensure!(status.success(), "{} with TILEWORK_CHECKS={words}: {status}", script.display());
    let mut all = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("findings-")) {
            let found: Found =
                serde_json::from_slice(&std::fs::read(&path)?).with_context(|| path.display().to_string())?;
            all.push(found);
        }
    }
    ensure!(!all.is_empty(), "the library has written no findings");
    Ok(table(&all))
}

/// Findings by kind and place, with the processes that have them and their number.
fn table(all: &[Found]) -> String {
    let mut rows: BTreeMap<(String, String, String), (u64, u64)> = BTreeMap::new();
    let (mut accesses, mut requests) = (0, 0);
    for card in all.iter().flat_map(|found| &found.cards) {
        (accesses, requests) = (accesses + card.accesses, requests + card.requests);
        for finding in &card.findings {
            let other = finding.other.as_ref().map_or_else(String::new, Place::shown);
            let row = rows.entry((finding.id.clone(), finding.place.shown(), other)).or_default();
            *row = (row.0 + 1, row.1 + finding.count);
        }
    }
    let mut out = String::from("| finding | where | against | runs | times |\n|---|---|---|---:|---:|\n");
    for ((id, place, other), (runs, times)) in rows {
        // Writing into a string cannot fail.
        let _ = writeln!(out, "| {id} | {place} | {other} | {runs} | {times} |");
    }
    let _ = writeln!(out, "\n{} processes, {accesses} accesses of cores, {requests} requests.", all.len());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_of_several_processes_are_one_row() {
        let card = r#"{"cards": [{"accesses": 10, "requests": 2, "findings": [
            {"id": "race-store", "agent": "noc_0_write", "pc": 64, "runs": "kernel cq_dispatch (brisc)", "count": 3,
             "source": [{"file": "a/noc.h", "line": 1}, {"file": "k/cq_dispatch.cpp", "line": 309}],
             "other": {"agent": "brisc", "pc": 68, "runs": null, "source": null}}]}]}"#;
        let all: Vec<Found> = (0..2).map(|_| serde_json::from_str(card).expect("findings")).collect();
        let want = "| race-store | kernel cq_dispatch (brisc), cq_dispatch.cpp:309 | brisc at 0x44 | 2 | 6 |\n\n\
                    2 processes, 20 accesses of cores, 4 requests.\n";
        assert!(table(&all).ends_with(want), "{}", table(&all));
    }
}
