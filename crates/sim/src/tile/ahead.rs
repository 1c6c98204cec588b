//! Running ahead: a tile whose cores only compute goes on alone, far past the window, and comes back if a packet proves it wrong.
//!
//! No packet arrives sooner than [`crate::timing::LOOKAHEAD`] after it left, and a window is no longer than that, because any core may
//! send at any time. Most do not. So after its part of a window a tile may take a checkpoint and run on as far as its cores neither
//! touch a register nor wake each other: nothing of that can be seen outside. If no packet arrives before the cycle that it has reached, the tile
//! is where it would have come window by window. If one does, the tile goes back to the checkpoint and runs again, to the cycle of
//! the packet. Both give the same state, because where a run is cut does not matter (`BabyRISCV` cores: crates/riscv, `exec.rs`).
//!
//! What is undone: registers and times of the cores that ran, their caches and store queues, and word by word what they stored. Decoded code
//! is only a cache of L1. Which poll loops a core has noticed is forgotten; that decides how much of its polling is executed, not what
//! comes of it.

use super::fabric::CoreSet;
use super::port::{L0, StoreQueue};
use super::{Activity, Tile};
use crate::NEVER;
use tilework_abi::tensix::Processor;
use tilework_riscv::{CoreState, Cycle, Width};

/// Shorter than this is not worth a checkpoint: about what taking one costs.
const LEAST: Cycle = 48;
/// How far a tile runs ahead at first, and again after it had to come back.
const FIRST: Cycle = 96;
/// How far it runs ahead at most: long enough that a checkpoint no longer counts.
const MOST: Cycle = 8192;
/// How many windows a tile that came back, or did not come far, waits before it tries again: twice as many each time, from the first to the
/// second of these, until it has come as far as it wanted to.
const PAUSE: (u32, u32) = (16, 128);

/// The stores since the checkpoint, and whether they are noted.
#[derive(Debug, Default)]
pub(super) struct StoreLog {
    /// The tile runs ahead.
    pub(super) on: bool,
    /// A core has come to something that others could see, and has not done it.
    pub(super) stopped: bool,
    /// The cores that were running at the checkpoint. The others sleep, and stay asleep.
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
    /// Makes sure that the next store can be noted.
    pub(super) fn make_room(&mut self) {
        if self.on {
            self.stores.reserve(1);
        }
    }
    /// Notes what a word of L1 holds before it is overwritten; false when there is no room.
    #[inline(always)]
    pub(super) fn note_l1(&mut self, addr: u32, old: u32) -> bool {
        self.note(Undo { addr, old, owner: None })
    }
    /// Notes what a word of a local RAM holds before it is overwritten; false when there is no room.
    #[inline(always)]
    pub(super) fn note_local(&mut self, owner: Processor, offset: u32, old: u32) -> bool {
        self.note(Undo { addr: offset, old, owner: Some(owner) })
    }
    #[inline(always)]
    fn note(&mut self, undo: Undo) -> bool {
        let room = self.stores.len() < self.stores.capacity();
        if room {
            self.stores.push(undo);
        }
        room
    }
}

/// What a core was at the checkpoint.
#[derive(Debug)]
struct SavedCore {
    index: usize,
    state: CoreState,
    l0: L0,
    stores: StoreQueue,
}

/// How far a tile is ahead, and the way back.
#[derive(Debug)]
pub(super) struct Ahead {
    /// A packet that arrives before this cycle calls the tile back; 0 when it is not ahead.
    until: Cycle,
    saved: Vec<SavedCore>,
    /// How far to run next time.
    reach: Cycle,
    /// Windows to wait.
    pause: u32,
    /// Windows to wait after the next failure.
    patience: u32,
    pub(super) enabled: bool,
}

impl Ahead {
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

    /// It may pay in this window.
    #[inline]
    pub(super) fn wants_to(&mut self) -> bool {
        let pauses = self.pause > 0;
        self.pause -= u32::from(pauses);
        self.enabled && !pauses
    }

    /// It did not pay.
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

    /// What the tile did on its own account can no longer be proved wrong.
    #[inline]
    pub(super) fn confirm(&mut self) {
        if self.ahead.until != 0 {
            self.ahead.until = 0;
            self.ahead.reach = (self.ahead.reach * 2).min(MOST);
            self.shared.fabric.log.stores.clear();
        }
    }

    /// Runs past the window, which ends at `end`, not further than `limit`, as long as nobody outside could tell.
    pub(super) fn run_on(&mut self, end: Cycle, limit: Cycle) {
        let Some(now) = self.first_core() else { return };
        let until =
            limit.min(self.queue.next()).min(self.shared.tensix.next()).min(now.saturating_add(self.ahead.reach));
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
            if self.ahead.saved.len() == 1 {
                break;
            }
            // In what is private to them cores run ahead of each other: all must come to the cycle at which one stopped.
            self.restore();
        }
        if goal < until {
            self.ahead.reach = FIRST;
            if goal < now + LEAST {
                self.ahead.give_up();
            }
        } else {
            self.ahead.patience = PAUSE.0;
        }
        // Asleep: nothing happens after the cycle at which the last core fell asleep.
        self.ahead.until = if self.first_core().is_some() { goal } else { self.last_rest() };
        if self.ahead.until <= end {
            self.confirm();
        }
    }

    /// A packet arrives at `at`: if the tile is further, it goes back and comes only so far.
    pub(super) fn come_back(&mut self, at: Cycle) {
        if at >= self.ahead.until {
            return;
        }
        self.restore();
        self.compute(at);
        self.ahead.until = at;
        self.ahead.reach = FIRST / 2;
        self.ahead.give_up();
    }

    fn checkpoint(&mut self) {
        self.ahead.saved.clear();
        self.shared.fabric.log.stores.clear();
        self.shared.fabric.log.running = 0;
        for (index, slot) in self.slots.iter().enumerate() {
            if slot.activity == Activity::Running {
                let (port, state) = (&self.ports[index], slot.core.save());
                self.shared.fabric.log.running |= 1 << index;
                self.ahead.saved.push(SavedCore { index, state, l0: port.l0.clone(), stores: port.stores.clone() });
            }
        }
    }

    /// Back to the checkpoint, which stays.
    fn restore(&mut self) {
        self.undo_stores();
        for saved in &self.ahead.saved {
            let slot = &mut self.slots[saved.index];
            slot.core.restore(&saved.state);
            if slot.activity == Activity::Parked {
                self.shared.fabric.unwatch(Processor::ALL[saved.index]);
            }
            slot.activity = Activity::Running;
            self.running |= 1 << saved.index;
            let port = &mut self.ports[saved.index];
            port.l0 = saved.l0.clone();
            port.stores = saved.stores.clone();
        }
    }

    /// Runs the cores until `until`; returns how far that went without anything that others could see.
    fn compute(&mut self, until: Cycle) -> Cycle {
        self.shared.fabric.log.on = true;
        self.shared.fabric.log.stopped = false;
        let mut reached = until;
        while let Some(turn) = self.turn()
            && turn.now < until
        {
            // A fault is left to the run in which it counts.
            if self.run_core(&turn, until, None).is_err() {
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

    /// The earliest cycle at which something happens here, as far as cores and the way back know.
    pub(super) fn next_of_cores(&self) -> Cycle {
        match self.first_core() {
            Some(now) => now,
            // Asleep, but not for certain: the clock has to come so far before the tile can be quiet.
            None if self.ahead.until != 0 => self.ahead.until - 1,
            None => NEVER,
        }
    }
}
