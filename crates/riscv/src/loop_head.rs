//! What is known of a loop head, for the detection of poll loops ([`crate::poll`]).

use crate::poll::WatchList;
use crate::{Bus, Cycle};

/// The core's state that determines its next steps, apart from `pc`, CSRs (writing one is a side
/// effect) and memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    regs: [u32; 32],
    outstanding_in: Cycle,
    /// Only compared if something is outstanding.
    ready_in: [Cycle; 32],
    cache: [u32; 4],
    draining: Cycle,
}

impl Snapshot {
    /// Whether the state at `visit` equals this one.
    pub(crate) fn is<B: Bus>(&self, visit: &Visit<'_>, bus: &B) -> bool {
        self.outstanding_in == visit.outstanding.saturating_sub(visit.now)
            && (self.outstanding_in == 0 || self.ready_in == visit.ready_in())
            && self.draining == bus.draining(visit.now)
            && self.cache == bus.cache_token()
            && self.regs == *visit.regs
    }

    /// Records the state at `visit`.
    pub(crate) fn take<B: Bus>(&mut self, visit: &Visit<'_>, bus: &B) {
        self.regs = *visit.regs;
        self.outstanding_in = visit.outstanding.saturating_sub(visit.now);
        if self.outstanding_in != 0 {
            self.ready_in = visit.ready_in();
        }
        self.cache = bus.cache_token();
        self.draining = bus.draining(visit.now);
    }
}

/// A tracked loop head.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) pc: u32,
    pub(crate) visits: u32,
    pub(crate) next_examination: u32,
    /// Remaining immediate examinations, because the loop has parked before and is likely
    /// to park again.
    pub(crate) trust: u32,
    /// At the last visit: the cycle, the executed instructions, the count of effects.
    pub(crate) at: Cycle,
    pub(crate) retired: u64,
    pub(crate) effects: u64,
    /// Time of the last visit, for LRU replacement.
    pub(crate) used: u64,
}

impl Head {
    pub(crate) const NONE: Head = Head {
        pc: 1, // no instruction is at an odd address
        visits: 0,
        next_examination: 1,
        trust: 0,
        at: 0,
        retired: 0,
        effects: 0,
        used: 0,
    };

    /// Starts to track a new head. The old snapshot and words are overwritten when it is armed.
    pub(crate) fn follow(&mut self, pc: u32, effects: u64) {
        self.pc = pc;
        self.visits = 0;
        self.next_examination = 1;
        self.trust = 0;
        self.effects = effects;
    }

    pub(crate) fn back_off(&mut self, longest: u32) {
        self.next_examination = self.visits + self.visits.clamp(1, longest);
    }
}

/// What is recorded of an iteration from a head.
#[derive(Clone, Debug, Default)]
pub(crate) struct Iteration {
    pub(crate) snapshot: Snapshot,
    pub(crate) watched: WatchList,
    /// When it last accessed one of them.
    pub(crate) last_access: Cycle,
}

/// A visit to a loop head: the core's state there.
pub(crate) struct Visit<'a> {
    pub(crate) head_pc: u32,
    pub(crate) now: Cycle,
    pub(crate) retired: u64,
    pub(crate) regs: &'a [u32; 32],
    /// As [`crate::Core`] has them.
    pub(crate) outstanding: Cycle,
    pub(crate) ready: &'a [Cycle; 32],
}

impl Visit<'_> {
    fn ready_in(&self) -> [Cycle; 32] {
        self.ready.map(|ready| ready.saturating_sub(self.now))
    }
}
