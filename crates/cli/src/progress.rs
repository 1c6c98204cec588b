//! The progress bar: on standard error, and only when that is a terminal.

use crate::loudness::{self, Loudness};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// The steps of a run.
const STEPS: [&str; 5] = ["reading", "starting the board", "uploading", "running", "downloading"];

/// Shows which operation of a model runs. Disappears when it is dropped.
pub struct OperationBar {
    bar: ProgressBar,
}

impl OperationBar {
    /// Of a program of so many operations.
    pub fn new(operations: usize) -> Self {
        let bar = ProgressBar::with_draw_target(Some(operations as u64), target());
        if let Ok(style) = ProgressStyle::with_template("{spinner} [{bar:20}] {pos}/{len} {msg} {elapsed}") {
            bar.set_style(style.progress_chars("=> "));
        }
        Self { bar }
    }

    /// An operation begins.
    pub fn at(&self, index: usize, kind: &'static str) {
        self.bar.set_position(index as u64);
        self.bar.set_message(kind);
        loudness::step(&format!("operation {index}: {kind}"));
    }

    /// A line for the user, above the bar; on standard error, as the bar.
    pub fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }
}

impl Drop for OperationBar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Standard error, when somebody looks at it and wants a bar, not lines or nothing.
fn target() -> ProgressDrawTarget {
    match loudness::chosen() == Loudness::Usual && std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    }
}

/// Shows which step a run is in. Disappears when the last clone is dropped or the run has
/// come to its end.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Starts with the first step.
    pub fn new() -> Self {
        let bar = ProgressBar::with_draw_target(Some(STEPS.len() as u64), target());
        if let Ok(style) = ProgressStyle::with_template("{spinner} [{bar:20}] {msg} {elapsed}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(STEPS[0]);
        loudness::step(STEPS[0]);
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar }
    }

    /// Goes on to the next step.
    pub fn next(&self) {
        self.bar.inc(1);
        let step = usize::try_from(self.bar.position()).unwrap_or(0);
        let step = STEPS.get(step).copied().unwrap_or("writing");
        self.bar.set_message(step);
        loudness::step(step);
    }

    /// Shows how far the chip's time has come.
    pub fn cycles(&self, cycles: u64) {
        self.bar.set_message(format!("running, cycle {cycles}"));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
