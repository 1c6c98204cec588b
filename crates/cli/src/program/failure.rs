//! What goes wrong on the device, as a failure of the command: its message, and what is known of it
//! as data. docs/report.md lists the keys.

use super::execute::Stopped;
use super::plan::Plan;
use crate::failure::Failure;
use serde::Serialize;
use std::path::Path;
use tilework_abi::msg::{RUN_DONE, RUN_GO, RUN_INIT};
use tilework_checks::data::{TileData, core_name};
use tilework_runtime::elf::SourceFrame;
use tilework_runtime::explain::{
    BudgetReport, BusyCore, DeadlockReport, FaultPlace, Mailboxes, QueueView, StoppedState, Waiter, Word,
};
use tilework_runtime::tensor::{LayoutError, TensorError};
use tilework_runtime::{RuntimeError, SourceLocation, TraceError};

/// How to raise the limit of a run.
const RAISE: &str = "--max-cycles allows more, or fewer";

/// A failure of the runtime. What it refuses before anything runs is wrong use of the program file;
/// what happens on the device is a failed run.
pub fn failure(program: &Path, error: RuntimeError) -> Failure {
    let message = error.to_string();
    match error {
        RuntimeError::Program(_) | RuntimeError::Elf(_) | RuntimeError::Memory(_) | RuntimeError::Encode(_) => {
            Failure::file(program, message)
        }
        RuntimeError::Firmware(_) => Failure::usage(message).with("option", "--firmware"),
        RuntimeError::Fault { fault, place } => {
            let data = FaultData {
                fault: class_name(&fault.class),
                what: &fault.what,
                tile: fault.tile.map(TileData::of),
                core: fault.core.map(core_name),
                pc: fault.pc,
                address: fault.address,
                cycle: fault.cycle,
                code: place.as_ref().map(CodeData::of),
            };
            Failure::failed("fault", message).with_all(data)
        }
        RuntimeError::Assertion { line, .. } => {
            let (file, number) = &line.source;
            let data = AssertionData {
                condition: line.condition.as_deref().unwrap_or_default(),
                text: &line.text,
                tile: TileData::of(line.tile),
                core: core_name(line.core),
                kernel: &line.kernel,
                source_file: file,
                source_line: *number,
                cycle: line.cycle,
            };
            Failure::failed("assertion", message).with_all(data)
        }
        RuntimeError::Deadlock(report) => Failure::failed("deadlock", message).with_all(deadlock(&report)),
        RuntimeError::Budget(report) => {
            Failure::failed("budget", format!("{message}\n{RAISE}")).with_all(budget(&report))
        }
        RuntimeError::Interrupted(report) => Failure::failed("interrupted", message).with_all(budget(&report)),
        RuntimeError::HostMemory { .. } | RuntimeError::Tensor(TensorError::Layout(LayoutError::HostMemory(_))) => {
            Failure::failed("memory", message)
        }
        RuntimeError::Protocol(_) => Failure::failed("protocol", message),
        _ => Failure::failed("device", message),
    }
}

/// A run that ended early. What a step may not do is wrong use of the program file, and has its
/// place there.
pub fn stopped_at(program: &Path, plan: &Plan, stopped: Stopped<'_>) -> Failure {
    let Stopped { error, at: Some(step) } = stopped else { return failure(program, stopped.error) };
    match &error {
        // The step is the place; that of the call is in this program.
        RuntimeError::Trace(TraceError::Program { why, .. }) => plan.source.error(step.span.clone(), why),
        RuntimeError::Unordered { .. }
        | RuntimeError::NoSuchQueue { .. }
        | RuntimeError::Trace(_)
        | RuntimeError::Program(_)
        | RuntimeError::Memory(_) => plan.source.error(step.span.clone(), &error),
        _ => failure(program, error),
    }
}

/// A failed start with what to look at first, when the firmware is not our own.
pub fn not_started(failure: Failure, firmware: Option<&Path>) -> Failure {
    match firmware {
        Some(folder) if failure.exit_code() == 1 => failure.with("firmware", folder.display().to_string()).map(|message| {
            format!(
                "{message}\nthe worker firmware of {} did not start; does its memory map differ from the one that it \
                 was given (docs/program.md, \"memory-map.toml\")?",
                folder.display()
            )
        }),
        _ => failure,
    }
}

#[derive(Serialize)]
struct FaultData<'a> {
    fault: String,
    what: &'a str,
    tile: Option<TileData>,
    core: Option<String>,
    pc: Option<u32>,
    address: Option<u64>,
    cycle: Option<u64>,
    #[serde(flatten)]
    code: Option<CodeData<'a>>,
}

#[derive(Serialize)]
struct AssertionData<'a> {
    condition: &'a str,
    text: &'a str,
    tile: TileData,
    core: String,
    kernel: &'a str,
    source_file: &'a str,
    source_line: u32,
    cycle: u64,
}

/// What a core runs, and where in it.
#[derive(Serialize)]
struct CodeData<'a> {
    runs: &'a str,
    source: Option<Vec<FrameData<'a>>>,
}

impl<'a> CodeData<'a> {
    fn of(place: &'a FaultPlace) -> Self {
        Self { runs: &place.runs, source: place.location.as_ref().map(frames) }
    }
}

/// A function and its line, innermost first.
#[derive(Serialize)]
struct FrameData<'a> {
    function: &'a str,
    file: Option<&'a str>,
    line: Option<u32>,
}

fn frames(location: &SourceLocation) -> Vec<FrameData<'_>> {
    let frame = location.telling().map(|SourceFrame { function, line, .. }| FrameData {
        function,
        file: line.as_ref().map(|(file, _)| file.as_str()),
        line: line.as_ref().map(|(_, line)| *line),
    });
    frame.collect()
}

#[derive(Serialize)]
struct DeadlockData<'a> {
    cycle: u64,
    programs: &'a [String],
    chain: Vec<LinkData<'a>>,
    circle: Option<usize>,
    waiting: Vec<WaiterData<'a>>,
    idle_cores: usize,
    queue: Option<QueueData<'a>>,
}

#[derive(Serialize)]
struct LinkData<'a> {
    who: &'a str,
    waits_for: &'a str,
}

#[derive(Serialize)]
struct WaiterData<'a> {
    tiles: Vec<TileData>,
    core: String,
    runs: &'a str,
    pc: u32,
    source: Option<Vec<FrameData<'a>>>,
    words: Vec<WordData<'a>>,
}

#[derive(Serialize)]
struct WordData<'a> {
    address: u32,
    value: u32,
    what: &'a str,
    writers: &'a str,
    stale: bool,
}

#[derive(Serialize)]
struct QueueData<'a> {
    event: u32,
    executed: Option<u64>,
    sent: u64,
    program: Option<&'a str>,
    around: Vec<CommandData<'a>>,
}

#[derive(Serialize)]
struct CommandData<'a> {
    position: u64,
    command: &'a str,
    current: bool,
}

fn deadlock(report: &DeadlockReport) -> DeadlockData<'_> {
    DeadlockData {
        cycle: report.cycle,
        programs: &report.programs,
        chain: report.chain.iter().map(|link| LinkData { who: &link.who, waits_for: &link.what }).collect(),
        circle: report.circle,
        waiting: report.waiters.iter().map(waiter).collect(),
        idle_cores: report.idle,
        queue: report.queue.as_ref().map(queue),
    }
}

fn waiter(waiter: &Waiter) -> WaiterData<'_> {
    let words = waiter.words.iter().map(|Word { address, value, what, writers, stale }| WordData {
        address: *address,
        value: *value,
        what,
        writers,
        stale: *stale,
    });
    WaiterData {
        tiles: TileData::all(&waiter.tiles),
        core: core_name(waiter.processor),
        runs: &waiter.runs,
        pc: waiter.pc,
        source: waiter.location.as_ref().map(frames),
        words: words.collect(),
    }
}

fn queue(queue: &QueueView) -> QueueData<'_> {
    let around = queue.around.iter().map(|(position, command, current)| CommandData {
        position: *position,
        command,
        current: *current,
    });
    QueueData {
        event: queue.event,
        executed: queue.executed,
        sent: queue.sent,
        program: queue.program.as_deref(),
        around: around.collect(),
    }
}

/// What cores did when a run stopped. The fields are those of deadlocks and budgets.
#[derive(Serialize)]
struct StateData<'a> {
    busy: Vec<BusyData<'a>>,
    waiting: Vec<WaiterData<'a>>,
    idle_cores: usize,
    queue: Option<QueueData<'a>>,
}

/// A fault with what the other cores did meanwhile; other failures say it themselves.
pub fn with_state(failure: Failure, state: Option<&StoppedState>) -> Failure {
    let Some(state) = state.filter(|_| ["fault", "findings"].contains(&failure.class())) else { return failure };
    failure.with_all(StateData {
        busy: state.busy.iter().map(busy_core).collect(),
        waiting: state.waiters.iter().map(waiter).collect(),
        idle_cores: state.idle,
        queue: state.queue.as_ref().map(queue),
    })
}

#[derive(Serialize)]
struct BudgetData<'a> {
    cycles: u64,
    busy: Option<Vec<BusyData<'a>>>,
    /// Only of a chip that cannot be looked into.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    mailboxes: Vec<MailboxesData>,
    queue: Option<QueueData<'a>>,
}

/// Tiles whose mailboxes say the same.
#[derive(Serialize)]
struct MailboxesData {
    tiles: Vec<TileData>,
    /// init, go or done; otherwise the number.
    signal: String,
    /// The cores whose kernels are not known to have ended.
    running: Vec<String>,
}

impl MailboxesData {
    fn of(mailboxes: &Mailboxes) -> Self {
        let signal = match mailboxes.signal {
            RUN_INIT => "init".to_owned(),
            RUN_GO => "go".to_owned(),
            RUN_DONE => "done".to_owned(),
            other => other.to_string(),
        };
        let running = mailboxes.running.iter().copied().map(core_name).collect();
        Self { tiles: TileData::all(&mailboxes.tiles), signal, running }
    }
}

#[derive(Serialize)]
struct BusyData<'a> {
    tiles: Vec<TileData>,
    core: String,
    runs: &'a str,
    pc: u32,
    source: Option<Vec<FrameData<'a>>>,
}

fn budget(report: &BudgetReport) -> BudgetData<'_> {
    BudgetData {
        cycles: report.cycles,
        busy: report.busy.as_ref().map(|busy| busy.iter().map(busy_core).collect()),
        mailboxes: report.mailboxes.iter().map(MailboxesData::of).collect(),
        queue: report.queue.as_ref().map(queue),
    }
}

fn busy_core(core: &BusyCore) -> BusyData<'_> {
    BusyData {
        tiles: TileData::all(&core.tiles),
        core: core_name(core.processor),
        runs: &core.runs,
        pc: core.pc,
        source: core.location.as_ref().map(frames),
    }
}

/// `undefined behaviour` as one word: `undefined_behaviour`.
fn class_name(class: &str) -> String {
    class.replace([' ', '-'], "_")
}
