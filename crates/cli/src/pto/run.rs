//! `tilework pto run`: an example, or the schedules of a file, on a simulated cluster.

use super::args::{ARCHS, Named, NamedOrFile, RingRunArgs, name_of};
use super::explore::RingData;
use super::file;
use crate::answer::Answer;
use crate::failure::{Failure, Outcome};
use crate::targets::Targets;
use crate::trace::TraceFile;
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use tilework_pto::examples::{Comparison, Example, Setting};
use tilework_pto::schedule::ScheduleRun;
use tilework_pto::timeline::timeline;
use tilework_pto::{Arch, ClusterReport, Config, Event, EventKind, Fault};

/// What a report says of its figures.
const TIMING_MODEL: &str = "cycle counts follow the estimates of docs/pto.md; results are exact";

/// The same when tiles were overwritten, or came out wrong otherwise.
const TIMING_MODEL_WRONG: &str =
    "cycle counts follow the estimates of docs/pto.md; what was overwritten is in the result, as on the machine";

/// The report of a run. The fields are those of the JSON form, in their order.
#[derive(Serialize, Debug)]
struct RingReport {
    #[serde(flatten)]
    about: About,
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
    #[serde(flatten)]
    compared: Verdict,
    right: bool,
    /// Overwritten tiles, under `--races record`.
    races: Vec<String>,
    /// Semaphores that are not zero at the end.
    leftovers: Vec<Leftover>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    timing_model: &'static str,
}

/// What was run.
#[derive(Serialize, Debug)]
#[serde(untagged)]
enum About {
    Example { example: &'static str, arch: &'static str, profile: &'static str, slots: u32 },
    File { file: String, program: String, arch: &'static str, rings: Vec<RingUsed> },
}

/// A ring of a file, and the tiles that went through it.
#[derive(Serialize, Debug)]
struct RingUsed {
    #[serde(flatten)]
    ring: RingData,
    /// TPUSHes and TPOPs; those of both Vectors for a tile are one.
    pushed: usize,
    popped: usize,
}

/// What was compared.
#[derive(Serialize, Debug)]
#[serde(untagged)]
enum Verdict {
    Example {
        /// Largest absolute difference from plain arithmetic.
        largest_error: f32,
        /// The largest that is right.
        tolerance: f32,
    },
    File {
        /// Popped tiles, or parts of them, with other elements than those that were pushed.
        wrong_tiles: usize,
    },
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

/// What a run gives, whatever ran.
struct Ran {
    about: About,
    events: Vec<Event>,
    outcome: Result<(ClusterReport, Verdict, bool), Fault>,
}

/// Runs an example, or the schedules of a file.
pub fn run(args: &RingRunArgs) -> Outcome<Answer> {
    let trace = args.trace.as_deref().map(TraceFile::at).transpose()?;
    let targets = Targets::new().option("--trace", args.trace.as_deref());
    targets.prepare(&[])?;
    let ran = match &args.example {
        NamedOrFile::Named(example) => run_example(args, *example),
        NamedOrFile::File(path) => run_file(args, path)?,
    };
    let Ran { about, events, outcome } = ran;
    if let (Some(file), false) = (trace, matches!(outcome, Err(Fault::Ring(_)))) {
        file.write(&timeline(&events, outcome.as_ref().err()))?;
    }
    match outcome {
        Err(Fault::Ring(error)) => Err(Failure::usage(error.to_string())),
        Err(fault) => Err(failed(&fault)),
        Ok((cluster, compared, right)) => {
            let report = report(args, about, &events, &cluster, compared, right);
            let failure = verdict(&report);
            Ok(Answer::new(report, text).failing(failure))
        }
    }
}

fn config(args: &RingRunArgs, arch: Arch) -> Config {
    Config { jitter_percent: args.jitter, races: args.races.value, ..Config::new(arch, args.seed) }
}

fn run_example(args: &RingRunArgs, example: Named<Example>) -> Ran {
    let (arch, profile, slots) = (args.over.arch(), args.over.profile(), args.over.slots.unwrap_or(8));
    let setting = Setting {
        slots,
        profile: profile.value,
        consumer_cycles: args.slow_consumer,
        ..Setting::new(config(args, arch.value))
    };
    let Comparison { events, outcome } = example.value.run(&setting);
    let outcome = outcome.map(|compared| {
        let verdict = Verdict::Example { largest_error: compared.error, tolerance: compared.tolerance };
        let right = compared.is_right();
        (compared.report, verdict, right)
    });
    Ran {
        about: About::Example { example: example.name, arch: arch.name, profile: profile.name, slots },
        events,
        outcome,
    }
}

fn run_file(args: &RingRunArgs, path: &Path) -> Outcome<Ran> {
    let scheduled = file::read(path, &args.over)?;
    let ScheduleRun { events, outcome } = scheduled.schedule.run(config(args, scheduled.arch), args.slow_consumer);
    let uses = outcome.as_ref().map(|done| done.uses.clone()).unwrap_or_default();
    let rings = scheduled.schedule.rings.iter().zip(uses).map(|(ring, used)| RingUsed {
        ring: RingData::of(ring),
        pushed: used.pushed,
        popped: used.popped,
    });
    let about = About::File {
        file: path.display().to_string(),
        program: scheduled.name.clone(),
        arch: name_of(ARCHS, &scheduled.arch),
        rings: rings.collect(),
    };
    let outcome = outcome.map(|done| (done.report, Verdict::File { wrong_tiles: done.wrong }, done.wrong == 0));
    Ok(Ran { about, events, outcome })
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

fn report(
    args: &RingRunArgs,
    about: About,
    events: &[Event],
    cluster: &ClusterReport,
    compared: Verdict,
    right: bool,
) -> RingReport {
    let count = |kind| events.iter().filter(|event| event.kind == kind).count();
    let waited = events.iter().filter(|event| event.kind == EventKind::Wait).map(|event| event.end - event.start);
    let leftovers = cluster.leftovers.iter().map(|(counter, value)| Leftover {
        semaphore: counter.id,
        core: counter.owner().to_string(),
        set_by: counter.setter().to_string(),
        value: *value,
    });
    let sound = right && cluster.races.is_empty();
    RingReport {
        about,
        seed: args.seed,
        jitter_percent: args.jitter,
        slow_consumer: args.slow_consumer,
        on_race: args.races.name,
        cycles: cluster.cycles,
        pushed: count(EventKind::Push),
        popped: count(EventKind::Pop),
        waits: count(EventKind::Wait),
        waited_cycles: waited.sum(),
        compared,
        right,
        races: cluster.races.iter().map(ToString::to_string).collect(),
        leftovers: leftovers.collect(),
        trace: args.trace.as_ref().map(|path| path.display().to_string()),
        timing_model: if sound { TIMING_MODEL } else { TIMING_MODEL_WRONG },
    }
}

fn text(report: &RingReport, out: &mut dyn Write) -> std::io::Result<()> {
    let RingReport { about, seed, cycles, pushed, popped, waits, waited_cycles, .. } = report;
    match about {
        About::Example { example, arch, profile, slots } => {
            let plural = if *slots == 1 { "slot" } else { "slots" };
            writeln!(out, "{example} on {arch}, {slots} {plural}, profile {profile}, seed {seed}")?;
        }
        About::File { program, arch, rings, .. } => {
            writeln!(out, "{program} on {arch}, seed {seed}")?;
            for RingUsed { ring, pushed, popped } in rings {
                writeln!(out, "  {ring}: {pushed} tiles pushed, {popped} popped")?;
            }
        }
    }
    writeln!(out, "  {cycles} cycles; {pushed} TPUSH, {popped} TPOP; {waits} waits of {waited_cycles} cycles in all")?;
    let word = if report.right { "right" } else { "wrong" };
    match &report.compared {
        Verdict::Example { largest_error, tolerance } => writeln!(
            out,
            "  {word}: largest difference from plain arithmetic {largest_error:e}, allowed {tolerance:e}"
        )?,
        Verdict::File { wrong_tiles: 0 } => writeln!(out, "  {word}: every popped tile is as it was pushed")?,
        Verdict::File { wrong_tiles } => {
            writeln!(out, "  {word}: {wrong_tiles} popped tiles, or parts of them, are not as they were pushed")?;
        }
    }
    for race in &report.races {
        writeln!(out, "  {race}")?;
    }
    for Leftover { semaphore, core, set_by, value } in &report.leftovers {
        writeln!(out, "  left for the next block: {value} in semaphore {semaphore} of {core}, set by {set_by}")?;
    }
    if let Some(trace) = &report.trace {
        writeln!(out, "  timeline -> {trace}")?;
    }
    writeln!(out, "  {}", report.timing_model)
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
