//! `tilework check --explore`: the same program under other schedules that the chip allows.
//!
//! A schedule is a seed: packets are late by its delays and overtake each other where the documents
//! allow it, and cores go on late ([`tilework_sim::LatePackets`], [`tilework_sim::LateCores`]). A
//! program whose outputs depend on the seed waits for too little somewhere. Each schedule is
//! repeated exactly by its seed.

use super::compare::{Ran, Repeatable};
use super::findings::FindingData;
use super::schedule::Schedule;
use crate::chip::Settings;
use crate::comparison::OutputRow;
use crate::failure::{Failure, Outcome};
use crate::interrupt;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{Result, Write};
use std::sync::atomic::Ordering;
use tilework_engine::Tolerance;

/// So many schedules that deviate are told in full; the others are counted.
const TOLD: usize = 20;

/// What came of all schedules. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
pub struct Explored {
    /// How many have run.
    schedules: u32,
    /// How many were asked for: more, if the user has interrupted.
    asked: u32,
    /// The seed of the first.
    first_seed: u32,
    /// How many gave other outputs than the usual schedule, or failed.
    deviating: u32,
    /// The first of these.
    deviations: Vec<Deviation>,
}

/// A schedule that came to another end than the usual one.
#[derive(Serialize)]
struct Deviation {
    seed: u32,
    /// Outputs that differ; none if the run failed.
    outputs: Vec<OutputRow>,
    /// What was found that the usual schedule does not show.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    findings: Vec<FindingData>,
    /// Why the run failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

/// Runs a program under so many schedules, from the seed `first_seed` on, and compares with
/// `reference`, what the usual schedule gave.
///
/// # Errors
/// Arrays of types that cannot be compared.
pub fn explore(
    program: &Repeatable<'_>,
    reference: &Ran,
    first_seed: u32,
    asked: u32,
    tolerance: Tolerance,
) -> Outcome<Explored> {
    let interrupted = interrupt::flag();
    let mut explored = Explored { schedules: 0, asked, first_seed, deviating: 0, deviations: Vec::new() };
    for seed in (0..asked).map(|i| first_seed.wrapping_add(i)) {
        let ran = program.run(Settings { schedule: Some(Schedule::of(seed)), ..Settings::default() });
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        explored.schedules += 1;
        let deviation = match ran {
            Ok(found) => {
                let mut outputs = Vec::new();
                let pairs = found.outputs.iter().zip(&reference.outputs);
                for ((name, dtype), ((_, found), (_, usual))) in program.outputs().zip(pairs) {
                    let row = OutputRow::compare(name, dtype.name(), found, usual, tolerance)?;
                    outputs.extend((!row.passed).then_some(row));
                }
                let mut findings = found.checks.map_or(Vec::new(), |checks| checks.findings);
                let known = reference.checks.iter().flat_map(|checks| &checks.findings);
                let known: BTreeSet<_> = known.map(FindingData::key).collect();
                findings.retain(|finding| !known.contains(&finding.key()));
                Deviation { seed, outputs, findings, error: None }
            }
            Err(error) => Deviation { seed, outputs: Vec::new(), findings: Vec::new(), error: Some(error) },
        };
        if deviation.error.is_some() || !deviation.outputs.is_empty() || !deviation.findings.is_empty() {
            explored.deviating += 1;
            if explored.deviations.len() < TOLD {
                explored.deviations.push(deviation);
            }
        }
    }
    Ok(explored)
}

impl Explored {
    /// The seed of the first schedule that deviates.
    pub fn first_deviating(&self) -> Option<u32> {
        self.deviations.first().map(|deviation| deviation.seed)
    }

    /// The failure that it shows, if it shows one.
    pub fn failure(&self) -> Option<Failure> {
        let Self { schedules, asked, deviating, deviations, .. } = self;
        match deviations.first() {
            Some(first) => {
                let seed = first.seed;
                let message = format!(
                    "{deviating} of {schedules} schedules come to another end; \
                     --explore 1 --explore-from {seed} repeats the first of them"
                );
                Some(Failure::failed("schedule", message).with("seed", seed))
            }
            None if schedules < asked => {
                Some(Failure::failed("interrupted", format!("interrupted after {schedules} of {asked} schedules")))
            }
            None => None,
        }
    }

    /// The form for people.
    pub fn text(&self, out: &mut dyn Write) -> Result<()> {
        let Self { schedules, first_seed, deviating, deviations, .. } = self;
        for Deviation { seed, outputs, findings, error } in deviations {
            writeln!(out, "schedule {seed}:")?;
            outputs.iter().try_for_each(|row| writeln!(out, "  {row}"))?;
            findings.iter().try_for_each(|finding| writeln!(out, "  {finding}"))?;
            if let Some(error) = error {
                error.to_string().lines().try_for_each(|line| writeln!(out, "  {line}"))?;
            }
        }
        if let Some(more) = u32::try_from(deviations.len()).ok().and_then(|told| deviating.checked_sub(told))
            && more > 0
        {
            writeln!(out, "and {more} more")?;
        }
        if *deviating == 0 {
            writeln!(out, "{schedules} schedules from seed {first_seed}: the same outputs")?;
        }
        Ok(())
    }
}
