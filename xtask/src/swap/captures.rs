//! Captures of our host, sent again to queue kernels of either side: rows of their own, because the
//! host that sends them is the test of it.

use std::process::Command;

use anyhow::{Context, Result};

use super::Parts;
use super::cells::{Outcome, Side, last_line};

/// What a test says for each capture that brought the same bytes.
const SAME: &str = "the same";

/// Runs the test for one side's queue kernels, linked with our worker firmware.
pub(super) fn outcome(queue: Side, parts: &Parts<'_>) -> Result<Outcome> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut test = Command::new(cargo);
    test.current_dir(parts.root).args(["test", "--quiet", "--release", "-p", "tilework-runtime"]);
    test.args(["--test", "queue_firmware", "--", "--nocapture", "--exact"]);
    match (queue, &parts.built) {
        (Side::Ours, _) => test.arg("captures::a_capture_brings_the_same_bytes_again"),
        (Side::Theirs, None) => return Ok(Outcome::NotRun("--driver")),
        (Side::Theirs, Some([linked_with_ours, _])) => {
            test.env("TILEWORK_CQ_FIRMWARE", linked_with_ours.join("queue"));
            test.arg("captures::a_capture_brings_the_same_bytes_on_the_kernels_of_others")
        }
    };
    let output = test.output().context("cargo could not be started")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let same: Vec<&str> = said.lines().filter(|line| line.contains(SAME)).collect();
    // A test that was skipped has compared nothing.
    Ok(match output.status.success() && !same.is_empty() {
        true => Outcome::Right(same.join("; ")),
        false => Outcome::Wrong(last_line(&output)),
    })
}
