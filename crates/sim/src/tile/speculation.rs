//! Speculation and rollback: a tile whose cores only compute runs past the window, and rolls back
//! if a packet arrives at a cycle that it has already simulated.
//!
//! No packet arrives sooner than [`crate::timing::LOOKAHEAD`] after it left, and a window is no
//! longer than that, because any core may send at any time. Most do not. So after its part of a
//! window a tile may take a checkpoint and execute speculatively, as long as its cores neither
//! touch a register nor wake each other: nothing of that is visible outside. If no packet
//! arrives before the cycle that it has reached, its state is what it would have been window by
//! window. If one does, the tile returns to the checkpoint and runs again up to the cycle of the
//! packet. Both give the same state, because it does not depend on where a run is divided
//! (crates/riscv, `exec.rs`).
//!
//! A rollback restores registers and times of the cores that ran, their caches and store queues,
//! and each word that they stored. Decoded code is only a cache of L1. Recognized poll loops are
//! forgotten; that affects how much of the polling is executed, not its result.

use super::port::{L0, StoreQueue};
use super::watches::CoreSet;
use super::{Activity, Tile};
use crate::NEVER;
use tilework_abi::tensix::Processor;
use tilework_riscv::{CoreState, Cycle, Width};

/// Shortest speculation that is worth a checkpoint: about the cost of taking one.
const LEAST: Cycle = 48;
/// How many cycles a tile speculates at first, and again after a rollback.
const FIRST: Cycle = 96;
/// How many cycles it speculates at most: enough that the cost of a checkpoint does not matter.
const MOST: Cycle = 8192;
/// How many windows a tile waits after a rollback, or after speculation that stopped early:
/// the number doubles each time, from the first to the second of these, until speculation
/// reaches its goal.
const PAUSE: (u32, u32) = (16, 128);

/// The stores since the checkpoint, and whether stores are logged.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub(super) struct StoreLog {
    /// The tile speculates.
    pub(super) on: bool,
    /// A core has stopped before a side effect that others could see.
    pub(super) stopped: bool,
    /// The cores that were running at the checkpoint. The others stay asleep.
    pub(super) running: CoreSet,
    stores: Vec<Undo>,
}

#[derive(Clone, Copy, Debug)]
struct Undo {
    /// The aligned word: an L1 address, or an offset into a local RAM.
    addr: u32,
    old: u32,
    /// Whose local RAM; `None` for L1.
    owner: Option<Processor>,
}

impl StoreLog {
    /// Makes sure that the next store can be logged.
    pub(super) fn make_room(&mut self) {
        if self.on {
            self.stores.reserve(1);
        }
    }
    /// Logs a word of L1 before it is overwritten; false when there is no room.
    #[inline(always)]
    pub(super) fn log_l1(&mut self, addr: u32, old: u32) -> bool {
        self.log(Undo { addr, old, owner: None })
    }
    /// Logs a word of a local RAM before it is overwritten; false when there is no room.
    #[inline(always)]
    pub(super) fn log_local(&mut self, owner: Processor, offset: u32, old: u32) -> bool {
        self.log(Undo { addr: offset, old, owner: Some(owner) })
    }
    #[inline(always)]
    fn log(&mut self, undo: Undo) -> bool {
        let room = self.stores.len() < self.stores.capacity();
        if room {
            self.stores.push(undo);
        }
        room
    }
}

/// The state of a core at the checkpoint.
#[derive(Clone, Debug)]
struct SavedCore {
    index: usize,
    state: CoreState,
    l0: L0,
    stores: StoreQueue,
}

/// How far a tile has speculated, its checkpoint, and how far it may speculate next.
#[derive(Clone, Debug)]
pub(super) struct Speculation {
    /// A packet that arrives before this cycle causes a rollback; 0 without speculation.
    until: Cycle,
    saved: Vec<SavedCore>,
    /// How many cycles to speculate next time.
    reach: Cycle,
    /// Windows to wait before the next attempt.
    pause: u32,
    /// Windows to wait after the next failure.
    patience: u32,
    pub(super) enabled: bool,
}

impl Speculation {
    pub(super) fn new() -> Self {
        Self {
            until: 0,
            saved: Vec::with_capacity(Processor::ALL.len()),
            reach: FIRST,
            pause: 0,
            patience: PAUSE.0,
            enabled: true,
        }
    }

    /// Whether to try in this window.
    #[inline]
    pub(super) fn wants_to(&mut self) -> bool {
        let pauses = self.pause > 0;
        self.pause -= u32::from(pauses);
        self.enabled && !pauses
    }

    /// Backs off after an attempt that was not worth its checkpoint.
    fn give_up(&mut self) {
        self.pause = self.patience;
        self.patience = (2 * self.patience).min(PAUSE.1);
    }
}

impl Tile {
    /// Undoes the logged stores, the last one first.
    fn undo_stores(&mut self) {
        while let Some(Undo { addr, old, owner }) = self.shared.fabric.log.stores.pop() {
            match owner {
                None => self.shared.fabric.l1_store(addr, Width::Word, old),
                Some(owner) => {
                    self.ports[owner.index()].poke(addr as usize, Width::Word, old);
                }
            }
        }
    }

    /// Commits what the tile did speculatively.
    #[inline]
    pub(super) fn confirm(&mut self) {
        if self.speculation.until != 0 {
            self.speculation.until = 0;
            self.speculation.reach = (self.speculation.reach * 2).min(MOST);
            self.shared.fabric.log.stores.clear();
        }
    }

    /// Runs past the window, which ends at `end`, not further than `limit`, as long as that is not
    /// visible outside.
    pub(super) fn run_speculatively(&mut self, end: Cycle, limit: Cycle) {
        let Some(now) = self.first_core() else { return };
        let until =
            limit.min(self.queue.next()).min(self.shared.tensix.next()).min(now.saturating_add(self.speculation.reach));
        if until < now.max(end).saturating_add(LEAST) {
            return;
        }
        self.checkpoint();
        let mut goal = until;
        loop {
            let reached = self.compute(goal);
            if reached == goal {
                break;
            }
            goal = reached;
            if self.speculation.saved.len() == 1 {
                break;
            }
            // Private accesses let cores run ahead of each other: all must stop at the cycle at
            // which the first one did.
            self.restore();
        }
        if goal < until {
            self.speculation.reach = FIRST;
            if goal < now + LEAST {
                self.speculation.give_up();
            }
        } else {
            self.speculation.patience = PAUSE.0;
        }
        // When all sleep, nothing happens after the cycle at which the last core fell asleep.
        self.speculation.until = if self.first_core().is_some() { goal } else { self.last_rest() };
        if self.speculation.until <= end {
            self.confirm();
        }
    }

    /// A packet arrives at `at`: if the tile has passed that cycle, it rolls back to it.
    pub(super) fn roll_back(&mut self, at: Cycle) {
        if at >= self.speculation.until {
            return;
        }
        self.restore();
        self.compute(at);
        self.speculation.until = at;
        self.speculation.reach = FIRST / 2;
        self.speculation.give_up();
    }

    fn checkpoint(&mut self) {
        self.speculation.saved.clear();
        self.shared.fabric.log.stores.clear();
        self.shared.fabric.log.running = 0;
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.activity == Activity::Running {
                let (port, state) = (&self.ports[index], slot.core.save());
                self.shared.fabric.log.running |= 1 << index;
                self.speculation.saved.push(SavedCore {
                    index,
                    state,
                    l0: port.l0.clone(),
                    stores: port.stores.clone(),
                });
            }
        }
    }

    /// Returns to the checkpoint, which stays.
    fn restore(&mut self) {
        self.undo_stores();
        for saved in &self.speculation.saved {
            let slot = &mut self.slots[saved.index];
            slot.core.restore(&saved.state);
            if slot.activity == Activity::Parked {
                self.shared.fabric.unwatch(saved.index);
            }
            slot.activity = Activity::Running;
            self.running |= 1 << saved.index;
            let port = &mut self.ports[saved.index];
            port.l0 = saved.l0.clone();
            port.stores = saved.stores.clone();
        }
    }

    /// Runs the cores until `until`; returns the cycle that they have reached without a side effect
    /// that others could see.
    fn compute(&mut self, until: Cycle) -> Cycle {
        self.shared.fabric.log.on = true;
        self.shared.fabric.log.stopped = false;
        let mut reached = until;
        let mut fault = None;
        while let Some(turn) = self.turn()
            && turn.now < until
        {
            // A fault counts only when the tile reaches it without speculation.
            if self.run_core(&turn, until, None, &mut fault).is_err() {
                self.shared.fabric.log.stopped = true;
            }
            if self.shared.fabric.log.stopped {
                reached = self.slots[turn.core].core.now.min(until);
                break;
            }
        }
        self.shared.fabric.log.on = false;
        reached
    }

    /// The earliest cycle at which a core does something, or may have to after a rollback.
    pub(super) fn next_of_cores(&self) -> Cycle {
        match self.first_core() {
            Some(now) => now,
            // All sleep, but a packet may still undo that: the clock must get that far before the
            // tile is quiescent.
            None if self.speculation.until != 0 => self.speculation.until - 1,
            None => NEVER,
        }
    }
}
