//! `tilework pto explore`: every interleaving of a small ring.

use super::args::{DirectionName, ExploreArgs, ScenarioName};
use crate::failure::{Failure, Outcome};
use crate::print;
use serde::Serialize;
use std::io::Write;
use tilework_pto::explore::{Explored, Finding, Found};
use tilework_pto::{DType, RingSpec, Scenario, Shape};

/// The tile of an exploration. Its size plays no part there; two rows can be shared.
const ROWS: usize = 2;
const COLS: usize = 8;

/// The report. The fields of the JSON form, in their order.
#[derive(Serialize, Debug)]
struct Report {
    scenario: &'static str,
    arch: &'static str,
    direction: &'static str,
    profile: &'static str,
    split: &'static str,
    slots: u32,
    tiles: u32,
    rounds: u32,
    /// States reached, the steps between them, and states in which all programs have ended.
    states: usize,
    transitions: usize,
    ends: usize,
    /// Were all states reached?
    complete: bool,
    /// Does every interleaving end well?
    clean: bool,
    findings: Vec<Bad>,
}

/// Something that can go wrong.
#[derive(Serialize, Debug)]
struct Bad {
    kind: &'static str,
    /// States in which it happens.
    states: usize,
    /// What happens first.
    message: String,
    /// The steps to it; there is no shorter way.
    steps: Vec<String>,
}

/// Explores.
pub fn explore(args: &ExploreArgs) -> Outcome<()> {
    let direction = direction(args)?;
    let tile = Shape::new(ROWS, COLS, DType::F32);
    let ring = RingSpec::new("ring", direction.value(), tile)
        .slots(args.slots)
        .profile(args.profile.value())
        .split(args.split.value());
    let (arch, tiles, rounds) = (args.arch.value(), count(args.tiles), count(args.rounds));
    let scenario = match args.scenario {
        ScenarioName::OneWay => Scenario::one_way(arch, ring, tiles),
        ScenarioName::NeverFreed => Scenario::never_freed(arch, ring, tiles),
        ScenarioName::PushPush => Scenario::push_push_pop_pop(arch, ring, tiles, rounds),
    };
    let explored =
        tilework_pto::explore(&scenario, args.max_states).map_err(|error| Failure::usage(error.to_string()))?;
    let report = report(args, direction, &explored);
    print::report(&report, args.report, |out| text(&report, out))?;
    match (report.clean, report.findings.is_empty()) {
        (true, _) => Ok(()),
        (false, false) => Err(Failure::failed("not every interleaving ends well")),
        (false, true) => Err(Failure::failed(format!(
            "there are more states than {}; give --max-states, fewer slots or fewer tiles",
            args.max_states
        ))),
    }
}

fn direction(args: &ExploreArgs) -> Outcome<DirectionName> {
    let needs_both = args.scenario == ScenarioName::PushPush;
    let usual = if needs_both { DirectionName::Both } else { DirectionName::C2v };
    let direction = args.direction.unwrap_or(usual);
    if direction.value().is_both() != needs_both {
        let wanted = if needs_both { "a ring in both directions: both or both-gm" } else { "a ring in one direction" };
        let (scenario, given) = (args.scenario.name(), direction.name());
        return Err(Failure::usage(format!("{scenario} needs {wanted}; --direction is {given}")));
    }
    Ok(direction)
}

fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn report(args: &ExploreArgs, direction: DirectionName, explored: &Explored) -> Report {
    Report {
        scenario: args.scenario.name(),
        arch: args.arch.name(),
        direction: direction.name(),
        profile: args.profile.name(),
        split: args.split.name(),
        slots: args.slots,
        tiles: args.tiles,
        rounds: args.rounds,
        states: explored.states,
        transitions: explored.transitions,
        ends: explored.ends,
        complete: explored.complete,
        clean: explored.is_clean(),
        findings: explored.found().map(bad).collect(),
    }
}

fn bad(found: &Found) -> Bad {
    let kind = match found.first {
        Finding::Deadlock(_) => "deadlock",
        Finding::Race(_) => "race",
        Finding::Fault(_) => "fault",
        Finding::Leftover(_) => "leftover",
    };
    let steps = found.trace.iter().map(ToString::to_string).collect();
    Bad { kind, states: found.count, message: found.first.to_string(), steps }
}

fn text(report: &Report, out: &mut dyn Write) -> std::io::Result<()> {
    let Report { scenario, arch, direction, profile, slots, tiles, states, transitions, ends, .. } = report;
    writeln!(out, "{scenario} on {arch}: ring {direction}, {slots} slots, {tiles} tiles, profile {profile}")?;
    let all = if report.complete { "all" } else { "not all" };
    writeln!(out, "  {states} states ({all}), {transitions} steps between them, {ends} ends")?;
    if report.clean {
        writeln!(out, "  every interleaving ends well: no deadlock, no race, no fault, all semaphores at zero")?;
    }
    for Bad { kind, states, message, steps } in &report.findings {
        let plural = if *states == 1 { "state" } else { "states" };
        writeln!(out, "\n  {kind} in {states} {plural}; the shortest way there has {} steps:", steps.len())?;
        for (number, step) in (1..).zip(steps) {
            writeln!(out, "  {number:>4}  {step}")?;
        }
        writeln!(out, "        {message}")?;
    }
    Ok(())
}
