//! Progress, on standard error: a bar when that is a terminal. Elsewhere a run that goes on for
//! long says so now and then, with its rate.

use crate::loudness::{self, Loudness};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

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
        self.bar.suspend(|| eprintln!("{}", tilework_text::lines(line)));
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
    pace: Pace,
}

/// After so long a run tells its rate for the first time; then after twice the time, and so on.
const FIRST_WORD: Duration = Duration::from_secs(5);

/// How fast the chip's time passes.
#[derive(Clone, Copy)]
struct Pace {
    /// When the first cycle was told, and which.
    start: Option<(Instant, u64)>,
    /// When to say something next, from the start.
    next_word: Duration,
}

impl Pace {
    /// Cycles a second at this point of a run, once they can be told.
    fn rate(&mut self, now: Instant, cycles: u64) -> Option<(Duration, f64)> {
        let (start, first) = *self.start.get_or_insert((now, cycles));
        let passed = now.saturating_duration_since(start);
        let rate = cycles.saturating_sub(first) as f64 / passed.as_secs_f64();
        rate.is_finite().then_some((passed, rate))
    }

    /// Whether it is time to say something.
    fn speaks(&mut self, passed: Duration) -> bool {
        let due = passed >= self.next_word;
        if due {
            self.next_word = passed * 2;
        }
        due
    }
}

/// How far a run has come, how fast it goes, and when it ends at the latest.
fn rate_text(cycles: u64, until: u64, rate: f64) -> String {
    let left = until.saturating_sub(cycles) as f64 / rate;
    let limit = match left {
        left if !left.is_finite() => String::new(),
        left if left < 120.0 => format!(", at the limit in {left:.0} s"),
        left if left < 7200.0 => format!(", at the limit in {:.0} minutes", left / 60.0),
        left => format!(", at the limit in {:.0} hours", left / 3600.0),
    };
    format!("running, cycle {cycles}, {:.2} million cycles a second{limit}", rate / 1e6)
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
        // Nobody sees a hidden bar, and one without a thread of its own stands still.
        if !bar.is_hidden() && std::thread::Builder::new().spawn(|| ()).is_ok() {
            bar.enable_steady_tick(Duration::from_millis(100));
        }
        Self { bar, pace: Pace { start: None, next_word: FIRST_WORD } }
    }

    /// Goes on to the next step.
    pub fn next(&self) {
        self.bar.inc(1);
        let step = usize::try_from(self.bar.position()).unwrap_or(0);
        let step = STEPS.get(step).copied().unwrap_or("writing");
        self.bar.set_message(step);
        loudness::step(step);
    }

    /// A line for the user, above the bar; on standard error, as the bar.
    pub fn say(&self, line: &str) {
        // Standard error may be closed; the work goes on.
        self.bar.suspend(|| drop(writeln!(std::io::stderr(), "{}", tilework_text::lines(line))));
    }

    /// Shows how far the chip's time has come, and how fast; `until` is the limit of the run.
    pub fn cycles(&mut self, cycles: u64, until: u64) {
        let Some((passed, rate)) = self.pace.rate(Instant::now(), cycles) else { return };
        if !self.bar.is_hidden() {
            self.bar.set_message(rate_text(cycles, until, rate));
        } else if self.pace.speaks(passed) && loudness::chosen() != Loudness::Quiet {
            let text = rate_text(cycles, until, rate);
            // Standard error may be closed; then nobody wants to know.
            let _ = writeln!(std::io::stderr(), "{text} (--max-cycles); an interrupt ends the run with a report");
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_goes_on_tells_its_rate_and_when_it_ends() {
        assert_eq!(
            rate_text(3_000_000, 63_000_000, 2e6),
            "running, cycle 3000000, 2.00 million cycles a second, at the limit in 30 s"
        );
        assert!(rate_text(0, 12_000_000_000, 12e6).ends_with("at the limit in 17 minutes"));
        assert!(rate_text(0, u64::MAX, 12e6).ends_with(" hours"));
        assert!(rate_text(5, 9, 0.0).ends_with("0.00 million cycles a second"));
    }

    #[test]
    fn it_speaks_at_longer_and_longer_intervals() {
        let mut pace = Pace { start: None, next_word: FIRST_WORD };
        let spoken: Vec<u64> = (0..60).filter(|&s| pace.speaks(Duration::from_secs(s))).collect();
        assert_eq!(spoken, [5, 10, 20, 40]);
        let start = Instant::now();
        assert_eq!(pace.rate(start, 1000), None);
        assert_eq!(pace.rate(start + Duration::from_secs(2), 5000), Some((Duration::from_secs(2), 2000.0)));
    }
}
