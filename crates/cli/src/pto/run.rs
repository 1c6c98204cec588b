//! `tilework pto run`: an example on a simulated cluster.

use super::args::RingRunArgs;
use crate::answer::Answer;
use crate::failure::{Failure, Outcome};
use crate::targets::Targets;
use crate::trace::TraceFile;
use serde::Serialize;
use std::io::Write;
use tilework_pto::examples::{Compared, Comparison, Setting};
use tilework_pto::timeline::timeline;
use tilework_pto::{Config, Event, EventKind, Fault};

/// What a report says of its figures.
const TIMING_MODEL: &str = "cycle counts follow the estimates of docs/pto.md; results are exact";

/// The report of a run. The fields are those of the JSON form, in their order.
#[derive(Serialize, Debug)]
struct RingReport {
    example: &'static str,
    arch: &'static str,
    profile: &'static str,
    slots: u32,
    seed: u64,
    /// Hundredths by which latencies may be longer.
    jitter_percent: u64,
    /// Cycles that consumers spend more on each tile.
    slow_consumer: u64,
    /// stop or record.
    on_race: &'static str,
    /// Cycles up to the end of the last core.
    cycles: u64,
    /// TPUSHes of all cores.
    pushed: usize,
    /// TPOPs of all cores.
    popped: usize,
    /// Waits that blocked, and how long all together.
    waits: usize,
    waited_cycles: u64,
    /// Largest absolute difference from plain arithmetic.
    largest_error: f32,
    /// The largest that is right.
    tolerance: f32,
    right: bool,
    /// Overwritten tiles, under `--races record`.
    races: Vec<String>,
    /// Semaphores that are not zero at the end.
    leftovers: Vec<Leftover>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    timing_model: &'static str,
}

#[derive(Serialize, Debug)]
struct Leftover {
    semaphore: u8,
    /// The core that waits on it.
    core: String,
    /// The core that sets it.
    set_by: String,
    value: u8,
}

/// Runs an example.
pub fn run(args: &RingRunArgs) -> Outcome<Answer> {
    let trace = args.trace.as_deref().map(TraceFile::at).transpose()?;
    let targets = Targets::new().option("--trace", args.trace.as_deref());
    targets.prepare(&[])?;
    let mut config = Config::new(args.arch.value, args.seed);
    config.jitter_percent = args.jitter;
    config.races = args.races.value;
    let setting = Setting {
        slots: args.slots,
        profile: args.profile.value,
        consumer_cycles: args.slow_consumer,
        ..Setting::new(config)
    };
    let Comparison { events, outcome } = args.example.value.run(&setting);
    if let (Some(file), false) = (trace, matches!(outcome, Err(Fault::Ring(_)))) {
        file.write(&timeline(&events, outcome.as_ref().err()))?;
    }
    match outcome {
        Err(Fault::Ring(error)) => Err(Failure::usage(error.to_string())),
        Err(fault) => Err(failed(&fault)),
        Ok(compared) => {
            let report = report(args, &events, &compared);
            let failure = verdict(&report);
            Ok(Answer::new(report, text).failing(failure))
        }
    }
}

/// A fault of a kernel as a failed run.
fn failed(fault: &Fault) -> Failure {
    let message = fault.to_string();
    match fault {
        Fault::Deadlock(deadlock) => {
            let waiting = deadlock.waits.iter().map(|wait| WaitData {
                core: wait.core.to_string(),
                ring: wait.tile.as_ref().map(|(ring, _)| ring),
                tile: wait.tile.as_ref().map(|(_, tile)| *tile),
                semaphore: wait.id,
                to_be_set_by: wait.from.iter().map(ToString::to_string).collect(),
                what: wait.to_string(),
            });
            let waiting: Vec<WaitData<'_>> = waiting.collect();
            Failure::failed("deadlock", message).with("cycle", deadlock.cycle.0).with("waiting", waiting)
        }
        Fault::Race(race) => Failure::failed("race", message)
            .with("slot", race.slot)
            .with("overwritten", race.first.to_string())
            .with("by", race.second.to_string())
            .with("cycle", race.second.from.0),
        _ => Failure::failed("fault", message),
    }
}

/// A core that waits.
#[derive(Serialize)]
struct WaitData<'a> {
    core: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    ring: Option<&'a String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tile: Option<u32>,
    semaphore: u8,
    to_be_set_by: Vec<String>,
    what: String,
}

fn report(args: &RingRunArgs, events: &[Event], compared: &Compared) -> RingReport {
    let count = |kind| events.iter().filter(|event| event.kind == kind).count();
    let waited = events.iter().filter(|event| event.kind == EventKind::Wait).map(|event| event.end - event.start);
    let leftovers = compared.report.leftovers.iter().map(|(counter, value)| Leftover {
        semaphore: counter.id,
        core: counter.owner().to_string(),
        set_by: counter.setter().to_string(),
        value: *value,
    });
    RingReport {
        example: args.example.name,
        arch: args.arch.name,
        profile: args.profile.name,
        slots: args.slots,
        seed: args.seed,
        jitter_percent: args.jitter,
        slow_consumer: args.slow_consumer,
        on_race: args.races.name,
        cycles: compared.report.cycles,
        pushed: count(EventKind::Push),
        popped: count(EventKind::Pop),
        waits: count(EventKind::Wait),
        waited_cycles: waited.sum(),
        largest_error: compared.error,
        tolerance: compared.tolerance,
        right: compared.is_right(),
        races: compared.report.races.iter().map(ToString::to_string).collect(),
        leftovers: leftovers.collect(),
        trace: args.trace.as_ref().map(|path| path.display().to_string()),
        timing_model: TIMING_MODEL,
    }
}

fn text(report: &RingReport, out: &mut dyn Write) -> std::io::Result<()> {
    let RingReport { example, arch, profile, slots, seed, cycles, pushed, popped, waits, waited_cycles, .. } = report;
    let plural = if *slots == 1 { "slot" } else { "slots" };
    writeln!(out, "{example} on {arch}, {slots} {plural}, profile {profile}, seed {seed}")?;
    writeln!(out, "  {cycles} cycles; {pushed} TPUSH, {popped} TPOP; {waits} waits of {waited_cycles} cycles in all")?;
    let verdict = if report.right { "right" } else { "wrong" };
    writeln!(
        out,
        "  {verdict}: largest difference from plain arithmetic {:e}, allowed {:e}",
        report.largest_error, report.tolerance
    )?;
    for race in &report.races {
        writeln!(out, "  {race}")?;
    }
    for Leftover { semaphore, core, set_by, value } in &report.leftovers {
        writeln!(out, "  left for the next block: {value} in semaphore {semaphore} of {core}, set by {set_by}")?;
    }
    if let Some(trace) = &report.trace {
        writeln!(out, "  timeline -> {trace}")?;
    }
    writeln!(out, "  {TIMING_MODEL}")
}

/// What the report shows to be wrong.
fn verdict(report: &RingReport) -> Option<Failure> {
    let mut wrong = Vec::new();
    if !report.right {
        wrong.push("the result is wrong".to_owned());
    }
    if !report.races.is_empty() {
        wrong.push(format!("{} tiles were overwritten before they were read and freed", report.races.len()));
    }
    if !report.leftovers.is_empty() {
        wrong.push("semaphores are not at zero, and the next block on these cores would find them so".to_owned());
    }
    (!wrong.is_empty()).then(|| Failure::failed("mismatch", wrong.join("; ")))
}
