//! `tilework pto explore`: every interleaving of a small ring.

use super::args::{ARCHS, PROFILES};
use super::args::{Actions, ExploreArgs, Named, NamedOrFile, SPLITS, name_of, usual, usual_direction};
use super::file;
use crate::answer::Answer;
use crate::failure::{Failure, Outcome};
use serde::Serialize;
use std::fmt;
use std::io::Write;
use std::path::Path;
use tilework_pto::explore::{Explored, Finding, Found};
use tilework_pto::{DType, Direction, RingSpec, Scenario, Shape};

/// The tile of an exploration. Its size plays no part there; two rows can be shared.
const ROWS: usize = 2;
const COLS: usize = 8;

/// The report. The fields are those of the JSON form, in their order.
#[derive(Serialize, Debug)]
struct ExploreReport {
    #[serde(flatten)]
    about: About,
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

/// What an exploration is about: the keys of its report before its findings.
#[derive(Serialize, Debug)]
#[serde(untagged)]
enum About {
    Scenario {
        scenario: &'static str,
        arch: &'static str,
        direction: &'static str,
        profile: &'static str,
        split: &'static str,
        slots: u32,
        tiles: u32,
        rounds: u32,
    },
    File {
        file: String,
        program: String,
        arch: &'static str,
        rings: Vec<RingData>,
    },
}

/// A ring of a file.
#[derive(Serialize, Debug)]
pub struct RingData {
    name: String,
    direction: &'static str,
    profile: &'static str,
    slots: u32,
    /// Rows and columns.
    tile: (usize, usize),
    dtype: &'static str,
    /// The first semaphore id.
    flag: u8,
}

impl RingData {
    /// A ring as reports have it.
    pub fn of(ring: &RingSpec) -> Self {
        Self {
            name: ring.name.clone(),
            direction: name_of(file::DIRECTIONS, &ring.direction),
            profile: name_of(PROFILES, &ring.profile),
            slots: ring.slots,
            tile: (ring.tile.rows, ring.tile.cols),
            dtype: ring.tile.dtype.name(),
            flag: ring.flag,
        }
    }
}

impl fmt::Display for RingData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, direction, profile, slots, tile: (rows, cols), dtype, .. } = self;
        let plural = if *slots == 1 { "slot" } else { "slots" };
        write!(f, "ring {name} {direction}, {slots} {plural} of {rows} x {cols} {dtype}, profile {profile}")
    }
}

/// Explores.
pub fn explore(args: &ExploreArgs) -> Outcome<Answer> {
    let (about, scenario) = match &args.scenario {
        NamedOrFile::Named(named) => scenario(args, *named)?,
        NamedOrFile::File(path) => of_file(args, path)?,
    };
    let explored =
        tilework_pto::explore(&scenario, args.max_states).map_err(|error| Failure::usage(error.to_string()))?;
    let report = report(about, &explored);
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

/// One of the scenarios of one ring.
fn scenario(args: &ExploreArgs, actions: Named<Actions>) -> Outcome<(About, Scenario)> {
    let direction = direction(args, actions)?;
    if args.rounds.is_some() && actions.value != Actions::PushPush {
        return Err(Failure::option("--rounds", format_args!(" is for push-push; the scenario is {}", actions.name)));
    }
    let (arch, profile) = (args.over.arch(), args.over.profile());
    let split = args.split.unwrap_or(usual(SPLITS));
    let (slots, tiles, rounds) = (args.over.slots.unwrap_or(2), args.tiles.unwrap_or(6), args.rounds.unwrap_or(1));
    let tile = Shape::new(ROWS, COLS, DType::F32);
    let ring = RingSpec::new("ring", direction.value, tile).slots(slots).profile(profile.value).split(split.value);
    let scenario = match actions.value {
        Actions::OneWay => Scenario::one_way(arch.value, ring, count(tiles)),
        Actions::NeverFreed => Scenario::never_freed(arch.value, ring, count(tiles)),
        Actions::PushPush => Scenario::push_push_pop_pop(arch.value, ring, count(tiles), count(rounds)),
    };
    let about = About::Scenario {
        scenario: actions.name,
        arch: arch.name,
        direction: direction.name,
        profile: profile.name,
        split: split.name,
        slots,
        tiles,
        rounds,
    };
    Ok((about, scenario))
}

/// The rings and schedules of a file.
fn of_file(args: &ExploreArgs, path: &Path) -> Outcome<(About, Scenario)> {
    let idle = [
        (args.direction.is_some(), "--direction"),
        (args.tiles.is_some(), "--tiles"),
        (args.rounds.is_some(), "--rounds"),
        (args.split.is_some(), "--split"),
    ];
    if let Some((_, option)) = idle.into_iter().find(|(given, _)| *given) {
        return Err(Failure::option(option, format_args!(" is for the scenarios; {} states it", path.display())));
    }
    let scheduled = file::read(path, &args.over)?;
    let about = About::File {
        file: path.display().to_string(),
        program: scheduled.name,
        arch: name_of(ARCHS, &scheduled.arch),
        rings: scheduled.schedule.rings.iter().map(RingData::of).collect(),
    };
    Ok((about, scheduled.schedule.scenario(scheduled.arch)))
}

fn direction(args: &ExploreArgs, actions: Named<Actions>) -> Outcome<Named<Direction>> {
    let needs_both = actions.value == Actions::PushPush;
    let direction = args.direction.unwrap_or(usual_direction(needs_both));
    if direction.value.is_both() != needs_both {
        let wanted = if needs_both { "a ring in both directions: both or both-gm" } else { "a ring in one direction" };
        let (scenario, given) = (actions.name, direction.name);
        let message = format!("{scenario} needs {wanted}; --direction is {given}");
        return Err(Failure::usage(message).with("option", "--direction"));
    }
    Ok(direction)
}

fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn report(about: About, explored: &Explored) -> ExploreReport {
    ExploreReport {
        about,
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
    let ExploreReport { about, states, transitions, ends, .. } = report;
    match about {
        About::Scenario { scenario, arch, direction, profile, slots, tiles, .. } => {
            writeln!(out, "{scenario} on {arch}: ring {direction}, {slots} slots, {tiles} tiles, profile {profile}")?;
        }
        About::File { program, arch, rings, .. } => {
            let rings: Vec<String> = rings.iter().map(RingData::to_string).collect();
            writeln!(out, "{program} on {arch}: {}", rings.join("; "))?;
        }
    }
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
