//! The coprocessor: three threads, their units, and when each takes an instruction.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/README.md and
//! BlackholeA0/TensixTile/TensixCoprocessor/{SyncUnit,ConfigurationUnit}.md. What is done in a
//! cycle, and in which order, is in `steps.rs`.
//!
//! An instruction takes effect in the cycle in which it passes the wait gate; how long its unit is
//! busy with it decides when waits and later instructions continue. The mover's copies take effect
//! when they are done, and instructions of the unpackers when their turn comes there.

use super::attempt::Attempt;
use super::awaits::{Awaits, Changed};
use super::config::Config;
use super::counters::Adcs;
use super::coverage::Executed;
use super::dst::Dst;
use super::expand::MopCfg;
use super::frontend::FrontEnd;
use super::matrix::Matrix;
use super::mover::Mover;
use super::origin::Origin;
use super::pack::{self, Packer};
use super::src::Sources;
use super::step_queue::{self, StepQueue};
use super::supply::Row;
use super::sync::{Mutexes, SEMAPHORES, Semaphore};
use super::unpack::{UNPACKERS, Unpackers};
use super::vector::Vector;
use super::wait::Latched;
use crate::{Bugs, Cycle, NEVER, timing};

/// Words of one thread's general-purpose registers
/// (WormholeB0/TensixTile/TensixCoprocessor/ScalarUnit.md).
pub(super) const GPRS: usize = 64;
/// Threads.
pub(super) const THREADS: usize = 3;

/// One thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    pub(super) front: FrontEnd,
    /// The latched wait instruction.
    pub(super) latched: Option<Latched>,
    /// Its next instruction cannot start before this cycle.
    pub(super) ready: Cycle,
    /// Until when the units are busy with instructions of this thread.
    pub(super) busy: Busy,
    /// It repeats an atomic on L1 until that succeeds.
    pub(super) retry: Option<Retry>,
    /// It stands at its wait gate for this mutex.
    pub(super) mutex: Option<usize>,
    /// What Auto TTSync knows.
    pub(super) tracking: super::ttsync::Tracking,
    /// What its core pushes next, which waits for room.
    pub(super) row: Option<Row>,
}

/// Until when units are busy for a thread.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Busy {
    /// Memory requests of the scalar unit.
    pub(super) memory: Cycle,
    pub(super) matrix: Cycle,
    pub(super) vector: Cycle,
    pub(super) packer: Cycle,
    /// Anything.
    pub(super) any: Cycle,
}

/// An atomic that is repeated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Retry {
    /// The first attempt.
    pub(super) first: Cycle,
    /// The next attempt that can matter; [`NEVER`] until there is a write.
    pub(super) due: Cycle,
}

/// When each unit takes the next instruction, from whichever thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Units {
    /// The cycle after the last semaphore access or latched wait.
    pub(super) sync: Cycle,
    pub(super) config: Cycle,
    /// The configuration unit's pipeline is empty from then on.
    pub(super) config_busy: Cycle,
    /// [`NEVER`] while an atomic is repeated.
    pub(super) scalar: Cycle,
    /// The next atomic that the scalar unit can have in flight.
    pub(super) atomic: Cycle,
    pub(super) matrix: Cycle,
    pub(super) vector: Cycle,
    pub(super) packer: Cycle,
}

/// What became of the instruction at a wait gate: it passed, or does not before a cycle. One
/// number, so that it and what may be returned in its place stay in registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Issue(Cycle);

impl Issue {
    /// It passed.
    pub(super) const PASSED: Self = Self(0);

    /// It does not pass before `at`, which is later than now; [`NEVER`]: when something changes.
    #[inline]
    pub(super) const fn not_before(at: Cycle) -> Self {
        Self(at)
    }

    /// The cycle before which it does not pass; `None`: it passed.
    #[inline]
    pub(super) fn waits(self) -> Option<Cycle> {
        (self != Self::PASSED).then_some(self.0)
    }
}

/// The coprocessor of a tile. What each window looks at comes first.
#[derive(Clone, Debug)]
#[repr(C)]
pub(super) struct Coprocessor {
    /// Who acts next, and when.
    pub(super) steps: StepQueue,
    /// The last step.
    pub(super) last: Cycle,
    /// The cycle before which steps are taken.
    pub(super) end: Cycle,
    /// Pushes of a row have been made of which the core has not been told.
    pub(super) has_pushed: bool,
    /// What blocked cores wait for.
    pub(super) awaited: Awaits,
    /// What has changed for them.
    pub(super) changed: Option<Changed>,
    pub(super) threads: [Thread; THREADS],
    pub(super) units: Units,
    pub(super) semaphores: [Semaphore; SEMAPHORES],
    pub(super) mutexes: Mutexes,
    pub(super) config: Config,
    pub(super) gprs: Box<[u32; THREADS * GPRS]>,
    pub(super) mop: [MopCfg; THREADS],
    pub(super) adcs: Adcs,
    pub(super) src: Sources,
    pub(super) dst: Dst,
    pub(super) matrix: Matrix,
    pub(super) vector: Box<Vector>,
    /// Of the last `SFPLOADMACRO`.
    pub(super) macro_origin: Origin,
    pub(super) packer: Packer,
    pub(super) pack_plans: pack::Plans,
    pub(super) mover: Mover,
    pub(super) unpackers: Unpackers,
    /// The documented bugs that it has.
    pub(super) bugs: Bugs,
    /// The soft reset bits of the units.
    pub(super) held: u32,
    /// Instructions that have passed the wait gates.
    pub(super) passed: u64,
    /// What it has executed, if someone asks.
    pub(super) executed: Option<Box<Executed>>,
}

impl Default for Coprocessor {
    fn default() -> Self {
        let mut cop = Self {
            threads: Default::default(),
            units: Units::default(),
            semaphores: Default::default(),
            mutexes: Mutexes::default(),
            config: Config::default(),
            gprs: Box::new([0; THREADS * GPRS]),
            mop: Default::default(),
            adcs: Adcs::default(),
            src: Sources::default(),
            dst: Dst::default(),
            matrix: Matrix::default(),
            vector: Box::default(),
            macro_origin: Origin::DEBUG_BUS,
            packer: Packer::default(),
            pack_plans: pack::Plans::default(),
            mover: Mover::default(),
            unpackers: Unpackers::default(),
            steps: StepQueue::default(),
            last: 0,
            end: 0,
            has_pushed: false,
            bugs: Bugs::AS_CHIP,
            held: 0,
            passed: 0,
            executed: None,
            awaited: Awaits::NOTHING,
            changed: None,
        };
        if Executed::is_of_tests() {
            cop.count_modes();
        }
        cop
    }
}

impl Coprocessor {
    /// The next cycle in which something can happen.
    #[inline]
    pub(super) fn next(&self) -> Cycle {
        self.steps.next()
    }

    /// The cycle of the last step.
    pub(super) fn last(&self) -> Cycle {
        self.last
    }

    /// From now on counts what it executes.
    pub(super) fn count_modes(&mut self) {
        self.executed.get_or_insert_default();
        self.tell_expanders();
    }

    /// From now on what the expanders execute themselves is told as well.
    pub(super) fn tell_expanders(&mut self) {
        for thread in &mut self.threads {
            thread.front.executed.get_or_insert_default();
        }
    }

    /// Thread `thread` must look again at cycle `at`.
    #[inline]
    pub(super) fn schedule(&mut self, thread: usize, at: Cycle) {
        self.steps.ask(step_queue::THREAD + thread, at);
    }

    /// The mover and its command queue must look again at cycle `at`.
    pub(super) fn schedule_mover(&mut self, at: Cycle) {
        self.steps.ask(step_queue::MOVER, at);
    }

    /// Unpacker `unit` must look again at cycle `at`.
    pub(super) fn schedule_unpacker(&mut self, unit: usize, at: Cycle) {
        self.steps.ask(step_queue::UNPACKER + unit, at);
    }

    /// A core changed something at cycle `at` for which a wait gate or an unpacker may wait.
    pub(super) fn notify_all(&mut self, at: Cycle) {
        (0..THREADS).for_each(|thread| self.notify(thread, at));
        self.notify_unpackers(at);
    }

    /// Thread `thread` changed something at cycle `at`: those behind it see it in that cycle, the
    /// others in the next.
    pub(super) fn notify_others(&mut self, thread: usize, at: Cycle) {
        (0..THREADS).for_each(|other| self.notify(other, at + Cycle::from(other <= thread)));
        self.notify_unpackers(at);
    }

    /// An unpacker changed something at cycle `at`; the threads' turn in that cycle is over.
    pub(super) fn notify_of_unpacker(&mut self, at: Cycle) {
        (0..THREADS).for_each(|thread| self.notify(thread, at + 1));
    }

    /// An unpacker waits for its bank only.
    fn notify_unpackers(&mut self, at: Cycle) {
        for unit in 0..UNPACKERS {
            if self.unpackers.waits(unit) {
                self.schedule_unpacker(unit, at);
            }
        }
    }

    /// A thread that has nothing at its gate and waits for nothing need not look.
    fn notify(&mut self, thread: usize, at: Cycle) {
        let t = &self.threads[thread];
        if t.latched.is_some() || t.front.head().is_some() {
            self.schedule(thread, at);
        }
    }

    /// Blocked cores should try again at cycle `at`.
    pub(super) fn unblock(&mut self, at: Cycle) {
        self.unblock_for(Awaits::ANYTHING, at);
    }

    /// Cores that wait for `what` should try again at cycle `at`.
    pub(super) fn unblock_for(&mut self, what: Awaits, at: Cycle) {
        if self.awaited.meets(what) {
            self.changed = Some(Changed { at, what }.with(self.changed));
        }
    }

    /// Something on which the coprocessor sleeps is about to change, at cycle `at`.
    pub(super) fn wake(&mut self, at: Cycle) {
        for thread in 0..THREADS {
            self.wake_retry(thread, at);
            if self.threads[thread].latched.is_some() {
                self.schedule(thread, at);
            }
        }
    }

    /// L1 changes at cycle `at`: a repeated atomic of `thread` may succeed from then on.
    pub(super) fn wake_retry(&mut self, thread: usize, at: Cycle) {
        if let Some(retry) = &mut self.threads[thread].retry
            && retry.due == NEVER
        {
            let interval = timing::TENSIX_ATOMIC_RETRY;
            let attempts = at.saturating_sub(retry.first).div_ceil(interval).max(1);
            retry.due = retry.first + attempts * interval;
            let due = retry.due;
            self.schedule(thread, due);
        }
    }

    /// Where the instruction at the wait gate comes from. It is looked up where it is asked for:
    /// most instructions pass without.
    #[inline]
    pub(super) fn origin(&self, at: Attempt) -> &Origin {
        self.threads[at.thread].front.head().map_or(&Origin::DEBUG_BUS, |head| &head.origin)
    }

    /// True when the thread has nothing in flight but what its units still finish.
    #[inline]
    pub(super) fn is_drained(&self, thread: usize) -> bool {
        let t = &self.threads[thread];
        let unpacks = || (0..UNPACKERS).any(|unit| self.unpackers.holds(unit, thread));
        t.front.is_empty() && t.retry.is_none() && !unpacks()
    }
}
