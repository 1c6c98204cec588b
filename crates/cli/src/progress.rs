//! The progress bar: on standard error, and only when that is a terminal.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;
use std::time::Duration;

/// The steps of a run.
const STEPS: [&str; 5] = ["reading", "starting the board", "uploading", "running", "downloading"];

/// Shows which step a run is in. Disappears when the last clone is dropped or the run has come to its end.
#[derive(Clone)]
pub struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Starts with the first step.
    pub fn new() -> Self {
        let target = match std::io::stderr().is_terminal() {
            true => ProgressDrawTarget::stderr(),
            false => ProgressDrawTarget::hidden(),
        };
        let bar = ProgressBar::with_draw_target(Some(STEPS.len() as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{spinner} [{bar:20}] {msg} {elapsed}") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(STEPS[0]);
        bar.enable_steady_tick(Duration::from_millis(100));
        Self { bar }
    }

    /// Goes on to the next step.
    pub fn next(&self) {
        self.bar.inc(1);
        let step = usize::try_from(self.bar.position()).unwrap_or(0);
        self.bar.set_message(STEPS.get(step).copied().unwrap_or("writing"));
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
