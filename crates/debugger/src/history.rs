//! What is kept of a run, so that going back need not start at its beginning: checkpoints of the
//! chip, and what the host's calls returned.
//!
//! A run is repeated to go back, and its host does again all that it did. Up to a checkpoint its
//! calls are answered from the log, which costs no time of the chip; within the call in which the
//! checkpoint was made, the chip is replaced by a copy of the checkpoint, and runs on from there.
//! So going back costs the way from the last checkpoint, whatever the run has cost before.
//!
//! Checkpoints become rarer with their distance from the present: of too many, the one is dropped
//! whose neighbours are closest, measured by how far back it lies.

use crate::goal::{Back, Goal};
use crate::machine::{Machine, Seen};
use crate::watch::Watcher;
use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tilework_abi::addr::{Cycle, PcieAddr};
use tilework_abi::noc::NocXy;
use tilework_driver::{ChipCounts, Inspect, LinkError, RunningCore, WaitingCore};
use tilework_sim::{Advanced, Chip, Observer, ReadTicket};

/// Most checkpoints. Each holds what has been written of L1 and of the host's memory.
const MOST: usize = 10;
/// Windows from one checkpoint to the next, at least.
const WINDOWS: u32 = 1 << 15;
/// The chip runs for so many times as long as a checkpoint took, before there is the next. Where
/// checkpoints lie changes nothing but the time that going back takes.
const SHARE: u32 = 10;
/// Windows before the next one where gdb has stopped the chip, because going back mostly begins
/// there.
const SOON: u32 = 1 << 10;
/// Most bytes of answers. A run with more is repeated from its beginning.
const LOG_BYTES: usize = 256 << 20;

/// What a call of the host returned.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    Done,
    Bytes(Arc<[u8]>),
    Address(PcieAddr),
    Word(u32),
}

/// A call of the host that has been begun and takes time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Frame {
    /// It takes none.
    AtOnce,
    /// A write to a BAR waits for room.
    Write,
    /// A read of a BAR waits for its data.
    Read(ReadTicket),
    /// The host waits for a word, or for time to pass, up to this cycle.
    Until(Cycle),
}

/// How a call of the host begins.
pub(crate) enum Begin {
    /// It was made before the checkpoint.
    Answered(Result<Answer, LinkError>),
    /// The checkpoint was made in it.
    GoesOn(Frame),
    /// It is new.
    Anew,
}

/// A call that has ended.
struct Entry {
    answer: Result<Answer, LinkError>,
    look: PastLook,
}

/// The chip at a moment.
pub(crate) struct Checkpoint {
    chip: Chip,
    /// How many calls of the host had ended, and how far the next one was.
    calls: usize,
    frame: Frame,
    at: Cycle,
    seen: Vec<Seen>,
    /// Present from the first watchpoint on.
    watcher: Option<Watcher>,
    /// What the witness knew, if there is one.
    witness: Option<Arc<dyn Any + Send + Sync>>,
}

/// The checkpoints of a run and the answers of its calls.
#[derive(Default)]
pub(crate) struct History {
    log: Vec<Entry>,
    bytes: usize,
    checkpoints: Vec<Checkpoint>,
    /// Windows since the last checkpoint.
    windows: u32,
    /// When the last one was made, and what it took.
    made: Option<(Instant, Duration)>,
    /// gdb has stopped the chip since.
    pub(crate) stopped: bool,
    /// It cannot be kept.
    is_off: bool,
    /// The host cannot be run again.
    is_once: bool,
}

impl History {
    /// That of a run that cannot be repeated.
    pub(crate) fn none() -> Self {
        Self { is_off: true, is_once: true, ..Self::default() }
    }

    /// Whether the run can be repeated.
    pub(crate) fn goes_back(&self) -> bool {
        !self.is_once
    }

    /// A call has ended.
    pub(crate) fn ended(&mut self, calls: usize, answer: &Result<Answer, LinkError>, chip: &Chip) {
        if self.is_off {
            return;
        }
        self.bytes += match answer {
            Ok(Answer::Bytes(bytes)) => bytes.len(),
            _ => 0,
        };
        if self.bytes > LOG_BYTES {
            *self = Self { is_off: true, ..Self::default() };
            return;
        }
        self.forget_calls(calls);
        self.log.push(Entry { answer: answer.clone(), look: PastLook::of(chip) });
    }

    /// Forgets the calls behind the first ones.
    fn forget_calls(&mut self, calls: usize) {
        self.log.truncate(calls);
    }

    /// Forgets what lies behind a cycle, which will not be the same again.
    pub(crate) fn forget_after(&mut self, cycle: Cycle) {
        self.checkpoints.retain(|checkpoint| checkpoint.at <= cycle);
    }

    /// The answer of a call before a checkpoint, with what the host could see of the chip then.
    pub(crate) fn answer(&self, index: usize, call: usize) -> Option<(Result<Answer, LinkError>, PastLook)> {
        let checkpoint = self.checkpoints.get(index)?;
        let entry = self.log.get(call).filter(|_| call < checkpoint.calls)?;
        Some((entry.answer.clone(), entry.look))
    }

    /// The cycles of the checkpoints.
    pub(crate) fn cycles(&self) -> impl Iterator<Item = Cycle> {
        self.checkpoints.iter().map(|checkpoint| checkpoint.at)
    }

    fn is_due(&self) -> bool {
        let has_rested = || self.made.is_none_or(|(made, took)| made.elapsed() >= took * SHARE);
        !self.is_off && (self.stopped && self.windows >= SOON || self.windows >= WINDOWS && has_rested())
    }

    fn add(&mut self, checkpoint: Checkpoint) {
        (self.windows, self.stopped) = (0, false);
        let place = self.checkpoints.partition_point(|other| other.at < checkpoint.at);
        let is_there =
            |other: &Checkpoint| other.at == checkpoint.at && other.watcher.is_some() == checkpoint.watcher.is_some();
        if self.checkpoints.get(place).is_some_and(is_there) {
            return;
        }
        let now = checkpoint.at;
        self.checkpoints.insert(place, checkpoint);
        let cycles: Vec<Cycle> = self.cycles().collect();
        if let Some(closest) = superfluous(&cycles, now) {
            self.checkpoints.remove(closest);
        }
    }
}

/// Which of too many checkpoints is dropped: the one whose neighbours are closest to each other,
/// measured by how far back they lie. The first and the last stay.
fn superfluous(cycles: &[Cycle], now: Cycle) -> Option<usize> {
    let spread = |index: usize| {
        let (before, after) = (cycles[index - 1], cycles[index + 1]);
        // In parts of 1024 of the distance.
        after.saturating_sub(before).saturating_mul(1024) / (now.abs_diff(before) + 1)
    };
    let inner = (cycles.len() > MOST).then(|| 1..cycles.len() - 1)?;
    inner.min_by_key(|&index| spread(index))
}

impl Machine {
    /// Keeps the state of the chip between two windows of a call, now and then.
    pub(crate) fn keep(&mut self, calls: usize, frame: Frame) {
        let history = &mut self.state.history;
        history.windows = history.windows.saturating_add(1);
        // A thread whose instructions are counted does not sleep.
        if !history.is_due() || matches!(self.state.goal, Goal::Back(Back::Count { .. } | Back::Begin)) {
            return;
        }
        let begun = Instant::now();
        let watcher = self.watcher.as_ref().and_then(|watcher| Some(watcher.lock().ok()?.clone()));
        let witness = self.witness.as_ref().map(|witness| witness.keep());
        match self.chip.twin(Vec::new()) {
            Some(chip) => {
                let (at, seen) = (chip.clock_now(), self.state.seen.clone());
                history.add(Checkpoint { chip, calls, frame, at, seen, watcher, witness });
                history.made = Some((Instant::now(), begun.elapsed()));
            }
            None => history.is_off = true,
        }
    }

    /// The last checkpoint before what is looked for, by its number.
    pub(crate) fn nearest(&mut self) -> Option<usize> {
        let Goal::Back(back) = &self.state.goal else { return None };
        let is_watched = !self.state.watches.is_empty();
        let is_before = |checkpoint: &mut Checkpoint| match back {
            Back::Begin => false,
            Back::Cycle(cycle) => checkpoint.at < *cycle,
            Back::Count { thread, count } => {
                // The count of a core that sleeps is known when it wakes.
                checkpoint.chip.unpark(*thread);
                checkpoint.chip.core(*thread).is_some_and(|core| core.instructions < *count)
            }
            Back::LastBefore { before: moment, .. } | Back::To(moment, _) => checkpoint.at + 1 < moment.cycle,
        };
        let checkpoints = &mut self.state.history.checkpoints;
        let found = checkpoints.iter_mut().rev().position(|checkpoint| {
            // Packets that were under way when the first watchpoint was set were not seen.
            (checkpoint.watcher.is_some() || !is_watched) && is_before(checkpoint)
        });
        found.map(|back| checkpoints.len() - 1 - back)
    }

    /// Puts the chip where a checkpoint was made; returns the call that was under way.
    pub(crate) fn restore(&mut self, index: usize) -> Result<Frame, LinkError> {
        let lost = || LinkError::Failed("a checkpoint of the debugger is lost".into());
        let history = &mut self.state.history;
        let checkpoint = history.checkpoints.get(index).ok_or_else(lost)?;
        let watcher = checkpoint.watcher.clone().map(|watcher| Arc::new(Mutex::new(watcher)));
        // The order in which the first chip got them.
        let mut observers = self.witness.as_ref().map_or(Vec::new(), |witness| witness.observers());
        observers.extend(watcher.iter().map(|watcher| Box::new(Arc::clone(watcher)) as Box<dyn Observer>));
        self.chip = checkpoint.chip.twin(observers).ok_or_else(lost)?;
        if let (Some(witness), Some(kept)) = (&self.witness, &checkpoint.witness) {
            witness.put(&**kept);
        }
        self.looked_at = 0;
        self.watcher = watcher;
        self.base = Some(checkpoint.at);
        self.state.seen.clone_from(&checkpoint.seen);
        let (frame, calls) = (checkpoint.frame, checkpoint.calls);
        history.forget_calls(calls);
        history.windows = 0;
        if let Goal::Back(Back::Count { thread, .. }) = self.state.goal {
            self.chip.set_thread_parking(thread, false);
        }
        self.wake_for_breakpoints();
        self.watch();
        Ok(frame)
    }

    /// Breakpoints may have been set since in loops in which cores sleep. What they have done up to
    /// now is not seen again.
    fn wake_for_breakpoints(&mut self) {
        if self.state.breakpoints.is_empty() && self.state.lifted.is_empty() {
            return;
        }
        for thread in self.chip.threads().collect::<Vec<_>>() {
            self.chip.keep_awake(thread);
        }
        let now = self.chip.clock_now();
        while matches!(self.chip.advance(now), Ok(Advanced::Ran)) {}
        let seen = &mut self.state.seen;
        self.chip.executing(|thread, _, count| {
            if let Some(seen) = seen.get_mut(thread.number()) {
                seen.count = count;
            }
        });
    }
}

/// What the host sees of the chip while its calls are answered from the log.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PastLook {
    /// The host's clock.
    pub(crate) now: Cycle,
    counts: ChipCounts,
}

impl PastLook {
    fn of(chip: &Chip) -> Self {
        Self { now: chip.now(), counts: Inspect::counts(chip) }
    }
}

impl Inspect for PastLook {
    /// A host that went on was not told that nothing can happen any more.
    fn is_quiet(&self) -> bool {
        false
    }
    fn cycles(&self) -> Cycle {
        self.now
    }
    fn counts(&self) -> ChipCounts {
        self.counts
    }
    fn waiting(&self) -> Vec<WaitingCore> {
        Vec::new()
    }
    fn busy(&self) -> Vec<RunningCore> {
        Vec::new()
    }
    fn l1(&self, _tile: NocXy) -> Option<&[u8]> {
        None
    }
    fn shows_memory(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_checkpoints_those_are_kept_that_are_near_and_some_that_are_far() {
        let mut cycles: Vec<Cycle> = Vec::new();
        for now in (0..1_000).map(|n| n * 1_000) {
            cycles.push(now);
            if let Some(index) = superfluous(&cycles, now) {
                cycles.remove(index);
            }
            assert!(cycles.len() <= MOST);
        }
        assert_eq!((cycles[0], cycles[MOST - 1]), (0, 999_000));
        let gaps: Vec<Cycle> = cycles.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.last().is_some_and(|&gap| gap <= 2_000), "{cycles:?}");
        // From anywhere, going back costs about as much again as it lies back.
        for (gap, from) in gaps.iter().zip(&cycles) {
            assert!(*gap <= 999_000 - from && *gap <= 2 * (1_000_000 - from) / 3, "{cycles:?}");
        }
    }
}
