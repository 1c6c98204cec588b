//! `tilework pto explore`: every interleaving of a small ring.

use super::args::{Actions, ExploreArgs, Named, usual_direction};
use crate::answer::Answer;
use crate::failure::{Failure, Outcome};
use serde::Serialize;
use std::io::Write;
use tilework_pto::explore::{Explored, Finding, Found};
use tilework_pto::{DType, Direction, RingSpec, Scenario, Shape};

/// The tile of an exploration. Its size plays no part there; two rows can be shared.
const ROWS: usize = 2;
const COLS: usize = 8;

/// The report. The fields are those of the JSON form, in their order.
#[derive(Serialize, Debug)]
struct ExploreReport {
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
    /// Whether all states were reached.
    complete: bool,
    /// Whether every interleaving ends well.
    clean: bool,
    findings: Vec<RingFinding>,
}

/// Something that can go wrong.
#[derive(Serialize, Debug)]
struct RingFinding {
    kind: &'static str,
    /// States in which it happens.
    states: usize,
    /// What happens first.
    message: String,
    /// The steps to it; there is no shorter way.
    steps: Vec<String>,
}

/// Explores.
pub fn explore(args: &ExploreArgs) -> Outcome<Answer> {
    let direction = direction(args)?;
    let tile = Shape::new(ROWS, COLS, DType::F32);
    let ring = RingSpec::new("ring", direction.value, tile)
        .slots(args.slots)
        .profile(args.profile.value)
        .split(args.split.value);
    let (arch, tiles, rounds) = (args.arch.value, count(args.tiles), count(args.rounds));
    let scenario = match args.scenario.value {
        Actions::OneWay => Scenario::one_way(arch, ring, tiles),
        Actions::NeverFreed => Scenario::never_freed(arch, ring, tiles),
        Actions::PushPush => Scenario::push_push_pop_pop(arch, ring, tiles, rounds),
    };
    let explored =
        tilework_pto::explore(&scenario, args.max_states).map_err(|error| Failure::usage(error.to_string()))?;
    let report = report(args, direction, &explored);
    let failure = match (report.clean, report.findings.is_empty()) {
        (true, _) => None,
        (false, false) => Some(Failure::failed("findings", "not every interleaving ends well")),
        (false, true) => {
            let message = format!(
                "there are more states than {}; give --max-states, fewer slots or fewer tiles",
                args.max_states
            );
            Some(Failure::failed("budget", message).with("states", args.max_states))
        }
    };
    Ok(Answer::new(report, text).failing(failure))
}

fn direction(args: &ExploreArgs) -> Outcome<Named<Direction>> {
    let needs_both = args.scenario.value == Actions::PushPush;
    let direction = args.direction.unwrap_or(usual_direction(needs_both));
    if direction.value.is_both() != needs_both {
        let wanted = if needs_both { "a ring in both directions: both or both-gm" } else { "a ring in one direction" };
        let (scenario, given) = (args.scenario.name, direction.name);
        let message = format!("{scenario} needs {wanted}; --direction is {given}");
        return Err(Failure::usage(message).with("option", "--direction"));
    }
    Ok(direction)
}

fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn report(args: &ExploreArgs, direction: Named<Direction>, explored: &Explored) -> ExploreReport {
    ExploreReport {
        scenario: args.scenario.name,
        arch: args.arch.name,
        direction: direction.name,
        profile: args.profile.name,
        split: args.split.name,
        slots: args.slots,
        tiles: args.tiles,
        rounds: args.rounds,
        states: explored.states,
        transitions: explored.transitions,
        ends: explored.ends,
        complete: explored.complete,
        clean: explored.is_clean(),
        findings: explored.found().map(finding).collect(),
    }
}

fn finding(found: &Found) -> RingFinding {
    let kind = match found.first {
        Finding::Deadlock(_) => "deadlock",
        Finding::Race(_) => "race",
        Finding::Fault(_) => "fault",
        Finding::Leftover(_) => "leftover",
    };
    let steps = found.trace.iter().map(ToString::to_string).collect();
    RingFinding { kind, states: found.count, message: found.first.to_string(), steps }
}

fn text(report: &ExploreReport, out: &mut dyn Write) -> std::io::Result<()> {
    let ExploreReport { scenario, arch, direction, profile, slots, tiles, states, transitions, ends, .. } = report;
    writeln!(out, "{scenario} on {arch}: ring {direction}, {slots} slots, {tiles} tiles, profile {profile}")?;
    let all = if report.complete { "all" } else { "not all" };
    writeln!(out, "  {states} states ({all}), {transitions} steps between them, {ends} ends")?;
    if report.clean {
        writeln!(out, "  every interleaving ends well: no deadlock, no race, no fault, all semaphores at zero")?;
    }
    for RingFinding { kind, states, message, steps } in &report.findings {
        let plural = if *states == 1 { "state" } else { "states" };
        writeln!(out, "\n  {kind} in {states} {plural}; the shortest way there has {} steps:", steps.len())?;
        for (number, step) in (1..).zip(steps) {
            writeln!(out, "  {number:>4}  {step}")?;
        }
        writeln!(out, "        {message}")?;
    }
    Ok(())
}
