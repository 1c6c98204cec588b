//! The reports, as values and as text.

use crate::elf::SourceLocation;
use crate::trace::TraceName;
use std::fmt::{self, Display, Formatter};
use tilework_abi::cq::layout::QueueId;
use tilework_abi::msg::{RUN_DONE, RUN_GO, RUN_INIT};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;

/// Cores that a report names one by one before it counts.
const NAMED: usize = 12;

/// One word that a core waits for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Word {
    /// Its address in the core's own address space.
    pub address: u32,
    /// What the core sees there.
    pub value: u32,
    /// What it is, in words.
    pub what: String,
    /// Who could write it, in words.
    pub writers: String,
    /// The core looks at a copy in its cache that nothing will refresh.
    pub stale: bool,
}

/// Cores that wait in the same place for the same words.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Waiter {
    /// The tiles.
    pub tiles: Vec<NocXy>,
    /// The core of each tile.
    pub processor: Processor,
    /// What it runs: the firmware, a kernel of the command queue, or a program's kernel.
    pub runs: String,
    /// The instruction.
    pub pc: u32,
    /// Its function and line.
    pub location: Option<SourceLocation>,
    /// What it waits for; empty for a loop that looks at nothing.
    pub words: Vec<Word>,
}

/// The core that faulted, and what it was running.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultPlace {
    /// The tile.
    pub tile: NocXy,
    /// The core of the tile.
    pub processor: Processor,
    /// What it ran: the firmware, a kernel of the command queue, or a program's kernel.
    pub runs: String,
    /// The instruction.
    pub pc: u32,
    /// Its function and line.
    pub location: Option<SourceLocation>,
}

/// The command queue at the time of the report.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct QueueView {
    /// Its number, on a device with two.
    pub queue: Option<QueueId>,
    /// The completion event that the host waits for.
    pub event: u32,
    /// Commands that the dispatcher has executed since the last event.
    pub executed: Option<u64>,
    /// Commands that the host has put into the queue since the last event.
    pub sent: u64,
    /// Commands around the one that the dispatcher is at: position, text, and whether it is the
    /// one.
    pub around: Vec<(u64, String, bool)>,
    /// The program that the command at which the dispatcher is belongs to.
    pub program: Option<String>,
    /// The trace whose replay that command is part of.
    pub trace: Option<TraceName>,
}

/// A step of the chain from the host to the cause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChainLink {
    /// The waiting cores.
    pub who: String,
    /// For what.
    pub what: String,
}

/// A deadlock: who waits, for what, and for whom.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DeadlockReport {
    /// When the last thing happened.
    pub cycle: u64,
    /// Programs that were being run.
    pub programs: Vec<String>,
    /// From the host along who waits for whom, to the first who waits for nobody in particular.
    pub chain: Vec<ChainLink>,
    /// The last link waits for this one, when the chain is a circle.
    pub circle: Option<usize>,
    /// The waiting cores, without idle firmware.
    pub waiters: Vec<Waiter>,
    /// Cores whose firmware waits for work.
    pub idle: usize,
    /// The command queue, under fast dispatch.
    pub queue: Option<QueueView>,
}

/// A core that was executing when the budget ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BusyCore {
    /// The tiles that execute the same instruction.
    pub tiles: Vec<NocXy>,
    /// The core of each tile.
    pub processor: Processor,
    /// What it runs: the firmware, a kernel of the command queue, or a program's kernel.
    pub runs: String,
    /// The instruction.
    pub pc: u32,
    /// Its function and line.
    pub location: Option<SourceLocation>,
}

/// A run that was ended while it went on: its budget is exhausted, or the caller ended it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BudgetReport {
    /// Cycles of the run; those of the budget, when it is exhausted; of the chip, when who observes
    /// it has ended the run.
    pub cycles: u64,
    /// Whether the caller ended it.
    pub interrupted: bool,
    /// The cores that still execute; absent for a chip that cannot be looked into. A deadlock of
    /// such a chip ends here, too, because nobody can tell it from a long run.
    pub busy: Option<Vec<BusyCore>>,
    /// What the mailboxes of the program's tiles said, on a chip that cannot be looked into. Empty
    /// for others, and when nobody was running.
    pub mailboxes: Vec<Mailboxes>,
    /// The command queue, under fast dispatch.
    pub queue: Option<QueueView>,
}

/// Tiles of a program whose mailboxes say the same.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mailboxes {
    /// The tiles.
    pub tiles: Vec<NocXy>,
    /// The signal of their go messages, one of the `RUN_` values.
    pub signal: u8,
    /// The cores whose kernels have not returned, as far as BRISC has noticed: itself last.
    pub running: Vec<Processor>,
}

/// What the cores of a device did when it stopped.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StoppedState {
    /// The cores that executed.
    pub busy: Vec<BusyCore>,
    /// Those that waited, without idle firmware.
    pub waiters: Vec<Waiter>,
    /// Cores whose firmware waited for work.
    pub idle: usize,
    /// The command queue, under fast dispatch.
    pub queue: Option<QueueView>,
}

/// Tiles by name, or their number when there are many.
pub(super) fn tiles(list: &[NocXy]) -> String {
    let named: Vec<String> = list.iter().take(NAMED).map(NocXy::to_string).collect();
    match list.len() {
        n if n > NAMED => format!("{} and {} more", named.join(" "), n - NAMED),
        _ => named.join(" "),
    }
}

impl Display for Word {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} [{:#x} = {:#x}]", self.what, self.address, self.value)?;
        if self.stale {
            f.write_str("; it looks at a stale copy in its data cache: a fence is missing")?;
        }
        Ok(())
    }
}

/// What a core runs and where in it, behind the core's name.
fn write_code(f: &mut Formatter<'_>, runs: &str, location: Option<&SourceLocation>, pc: u32) -> fmt::Result {
    match location {
        Some(location) => write!(f, ", {runs}\n    at {location}, pc {pc:#x}"),
        None => write!(f, ", {runs}\n    at pc {pc:#x}"),
    }
}

impl Display for FaultPlace {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        // The message of the fault, which stands before this, has the program counter.
        write!(f, "  {} of {}, {}", self.processor, self.tile, self.runs)?;
        match &self.location {
            Some(location) => write!(f, "\n    at {location}"),
            None => Ok(()),
        }
    }
}

impl Display for Waiter {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "  {} of {}", self.processor, tiles(&self.tiles))?;
        if self.tiles.len() > 1 {
            write!(f, " ({} tiles)", self.tiles.len())?;
        }
        write_code(f, &self.runs, self.location.as_ref(), self.pc)?;
        if self.words.is_empty() {
            f.write_str("\n    loops for ever without looking at anything that could change")?;
        }
        for word in &self.words {
            write!(f, "\n    waits for {word}\n      written by {}", word.writers)?;
        }
        Ok(())
    }
}

impl Display for QueueView {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("command queue")?;
        if let Some(queue) = self.queue {
            write!(f, " {queue}")?;
        }
        write!(f, ": the host waits for event {}; ", self.event)?;
        match self.executed {
            Some(n) => write!(f, "{n} of {} commands executed", self.sent)?,
            None => write!(f, "{} commands sent", self.sent)?,
        }
        if let Some(program) = &self.program {
            write!(f, "; in program {program}")?;
        }
        match (&self.program, self.trace) {
            (Some(_), Some(trace)) => write!(f, " of {trace}")?,
            (None, Some(trace)) => write!(f, "; in {trace}")?,
            (_, None) => {}
        }
        for (position, text, current) in &self.around {
            write!(f, "\n  {} {position:>5} {text}", if *current { ">" } else { " " })?;
        }
        Ok(())
    }
}

impl Display for DeadlockReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "deadlock at cycle {}: nothing can move any more", self.cycle)?;
        if !self.programs.is_empty() {
            write!(f, "; running {}", self.programs.join(", "))?;
        }
        for (i, link) in self.chain.iter().enumerate() {
            write!(f, "\n  {}{} waits for {}", if i == 0 { "" } else { "<- " }, link.who, link.what)?;
        }
        if let Some(link) = self.circle.and_then(|i| self.chain.get(i)) {
            write!(f, "\n  <- {}: a circle", link.who)?;
        }
        write!(f, "\nwaiting ({} idle cores left out):", self.idle)?;
        for waiter in &self.waiters {
            write!(f, "\n{waiter}")?;
        }
        match &self.queue {
            Some(queue) => write!(f, "\n{queue}"),
            None => Ok(()),
        }
    }
}

impl Display for Mailboxes {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tiles = tiles(&self.tiles);
        match self.signal {
            RUN_DONE => write!(f, "done: {tiles}"),
            RUN_GO => {
                let cores: Vec<String> = self.running.iter().map(Processor::to_string).collect();
                write!(f, "not done: {tiles}, where no end is known of {}", cores.join(" "))
            }
            RUN_INIT => write!(f, "firmware has not started: {tiles}"),
            other => write!(f, "go message {other:#04x}: {tiles}"),
        }
    }
}

impl Display for BudgetReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let how = if self.interrupted { "interrupted" } else { "still running" };
        write!(f, "{how} after {} cycles; ", self.cycles)?;
        match &self.busy {
            Some(_) => f.write_str("busy:")?,
            None => f.write_str(
                "which cores execute or wait is not known: this chip cannot be looked into, so a deadlock shows as this",
            )?,
        }
        for mailboxes in &self.mailboxes {
            write!(f, "\n  {mailboxes}")?;
        }
        for core in self.busy.iter().flatten() {
            write!(f, "\n  {} of {}", core.processor, tiles(&core.tiles))?;
            write_code(f, &core.runs, core.location.as_ref(), core.pc)?;
        }
        match &self.queue {
            Some(queue) => write!(f, "\n{queue}"),
            None => Ok(()),
        }
    }
}
