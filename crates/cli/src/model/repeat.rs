//! `tilework run --repeat`: the same run again and again.

use super::engine::{AnyTensor, Session};
use super::run;
use super::watch::Watch;
use crate::failure::Outcome;
use serde::Serialize;
use std::io::Write;
use std::time::Instant;
use tilework_engine::{Placed, Profile, RunResult};

/// Runs a program so many times, at least once; gives the last result with who watched it.
pub fn repeat(
    session: &mut Session<'_>,
    placed: &Placed<AnyTensor>,
    times: usize,
    watching: impl Fn() -> Profile<Watch>,
) -> Outcome<(RunResult, Profile<Watch>, Runs)> {
    let mut runs = Runs::default();
    loop {
        let mut watch = watching();
        let began = (Instant::now(), session.machine_mut().begin_run());
        let ran = session.run_placed(placed, &mut watch);
        runs.add(began, session.machine().cycles());
        if let Some(failure) = watch.inner.failure.take() {
            return Err(failure);
        }
        let ran = ran.map_err(run::failure)?;
        if runs.seconds.len() >= times {
            return Ok((ran, watch, runs));
        }
    }
}

/// What each run took.
#[derive(Default)]
pub struct Runs {
    pub seconds: Vec<f64>,
    cycles: Vec<u64>,
}

impl Runs {
    fn add(&mut self, (time, cycles): (Instant, Option<u64>), end: Option<u64>) {
        self.seconds.push(time.elapsed().as_secs_f64());
        self.cycles.extend(cycles.zip(end).map(|(begin, end)| end - begin));
    }

    /// The report, of several.
    pub fn report(&self) -> Option<Repeat> {
        let [first_seconds, seconds @ ..] = &self.seconds[..] else { return None };
        let mut seconds = seconds.to_vec();
        seconds.sort_by(f64::total_cmp);
        let (first_cycles, mut cycles) = (self.cycles.first().copied(), self.cycles.get(1..).unwrap_or(&[]).to_vec());
        cycles.sort_unstable();
        Some(Repeat {
            runs: self.seconds.len(),
            first_seconds: *first_seconds,
            steady_seconds: *seconds.get(seconds.len() / 2)?,
            first_cycles,
            steady_cycles: cycles.get(cycles.len() / 2).copied(),
        })
    }
}

/// The first run, and the median of the others.
#[derive(Serialize, Debug)]
pub struct Repeat {
    runs: usize,
    first_seconds: f64,
    steady_seconds: f64,
    /// Cycles of the chip from the beginning of the run to its end, outputs read.
    #[serde(skip_serializing_if = "Option::is_none")]
    first_cycles: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    steady_cycles: Option<u64>,
}

impl Repeat {
    pub fn text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let Self { runs, first_seconds, steady_seconds, first_cycles, steady_cycles } = self;
        writeln!(out, "  runs             {runs}: {first_seconds:.3} s, then {steady_seconds:.3} s")?;
        match (first_cycles, steady_cycles) {
            (Some(first), Some(steady)) => writeln!(out, "  cycles of a run  {first}, then {steady}"),
            _ => Ok(()),
        }
    }
}
