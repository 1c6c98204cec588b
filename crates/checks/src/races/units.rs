//! What the coprocessor of a tile is ordered by: threads, their waits, units, semaphores, mutexes,
//! queues between cores, and banks of SrcA and SrcB.
//!
//! A thread takes its instructions in order and knows what its core knew when it pushed them
//! (WormholeB0/TensixTile/TensixCoprocessor/README.md). What an instruction does goes on in its
//! unit: a thread knows that it is over behind a wait for the unit
//! (BlackholeA0/TensixTile/TensixCoprocessor/STALLWAIT.md), and from then on only by instructions
//! that the wait holds back, and those behind these. A unit does its instructions in order, of
//! whichever thread.

use super::clock::{Clock, Moment, Part, Stamp};
use super::report::{Owner, PartOf};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::insn::{self, Insn, WaitOp};

/// Threads.
pub(super) const THREADS: usize = 3;
/// Units with accesses of their own.
const UNITS: usize = 8;
/// Pushes of a core that are kept: more than a front end holds, unless hardly any is told of.
const PUSHES: usize = 1024;
/// Largest value of a semaphore (SyncUnit.md).
const SEMAPHORE_MAX: usize = 15;

/// A unit of the coprocessor, as far as order is concerned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    Unpacker(u8),
    Packer,
    Scalar,
    Matrix,
    Vector,
    Config,
    Mover,
}

impl Unit {
    fn index(self) -> usize {
        match self {
            Self::Unpacker(number) => usize::from(number & 1),
            Self::Packer => 2,
            Self::Scalar => 3,
            Self::Matrix => 4,
            Self::Vector => 5,
            Self::Config => 6,
            Self::Mover => 7,
        }
    }

    /// The unit that condition `bit` of `STALLWAIT` is about.
    fn of_condition(bit: u32) -> Option<Self> {
        match bit {
            0 => Some(Self::Scalar),
            1 | 2 => Some(Self::Unpacker(bit as u8 - 1)),
            3 => Some(Self::Packer),
            4 => Some(Self::Matrix),
            9 => Some(Self::Mover),
            11 => Some(Self::Vector),
            12 => Some(Self::Config),
            _ => None,
        }
    }
}

/// What a latched wait instruction is for.
#[derive(Clone, Debug)]
enum Until {
    /// What units had to do is over, and banks have changed hands: to the matrix unit, and back.
    Units { over: Vec<Stamp>, given: bool, freed: bool },
    /// `SEMWAIT`.
    Semaphores { mask: u32, zero: bool, full: bool },
    /// `STREAMWAIT`.
    Stream,
}

/// One thread.
#[derive(Clone, Debug, Default)]
pub(super) struct Thread {
    clock: Clock,
    /// What its core had done when it pushed the last instruction that is known.
    core: [Stamp; 2],
    /// What the core knew then.
    of_core: Clock,
    pub own: Stamp,
    /// The last count that it has used of each unit.
    last: [u32; UNITS],
    wait: Option<(u16, Until)>,
}

impl Thread {
    /// Whether an access comes before the instruction that passes now.
    pub(super) fn knows(&self, stamp: Stamp) -> bool {
        let of_core = |known: &Stamp| known.part == stamp.part && known.count >= stamp.count;
        stamp.part == self.own.part || self.core.iter().any(of_core) || self.clock.knows(stamp)
    }

    /// What it knows.
    pub(super) fn moment(&self) -> Moment {
        Moment { clock: self.clock.clone(), own: self.core, before: Arc::new([self.own]) }
    }

    /// Begins a new count, and says what it knows until then.
    pub(super) fn release(&mut self) -> Moment {
        self.own.count += 1;
        self.moment()
    }

    /// The clock, to learn something by.
    pub(super) fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    /// The stamp of what it does itself.
    pub(super) fn access(&self) -> Stamp {
        Stamp { count: self.own.count + 1, ..self.own }
    }
}

/// One semaphore of the sync unit. A wait for a value that is not zero learns of the first post
/// that nobody has taken, one for a value below the maximum of the first that was taken.
#[derive(Clone, Debug, Default)]
struct Semaphore {
    posts: VecDeque<Moment>,
    /// What makes room.
    gets: VecDeque<Moment>,
    /// All that was ever told by it, for uses of another kind.
    all: Clock,
    version: u32,
    readers: [u32; 5],
}

impl Semaphore {
    fn init(&mut self, value: usize, max: usize, by: &Moment) {
        by.tell(&mut self.all);
        self.posts = std::iter::repeat_n(by.clone(), value.min(SEMAPHORE_MAX)).collect();
        self.gets = std::iter::repeat_n(by.clone(), max.saturating_sub(value)).collect();
        self.version += 1;
    }

    fn post(&mut self, by: &Moment) {
        by.tell(&mut self.all);
        self.version += 1;
        self.gets.pop_front();
        if self.posts.len() < SEMAPHORE_MAX {
            self.posts.push_back(by.clone());
        }
    }

    fn get(&mut self, by: &Moment) {
        by.tell(&mut self.all);
        self.version += 1;
        if self.posts.pop_front().is_some() {
            self.gets.push_back(by.clone());
        }
    }

    fn learn_first(&self, queue: &VecDeque<Moment>, clock: &mut Clock) {
        match queue.front() {
            Some(first) => first.tell(clock),
            None => clock.join(&self.all),
        };
    }

    /// A core sees the value.
    fn seen(&mut self, core: usize, clock: &mut Clock) {
        if std::mem::replace(&mut self.readers[core], self.version) != self.version {
            clock.join(&self.all);
        }
    }
}

/// What an unpacker has to do.
#[derive(Clone, Debug)]
pub(super) struct Job {
    passed: u64,
    pub moment: Moment,
    pub stamp: Stamp,
}

/// The coprocessor of a tile.
#[derive(Clone, Debug, Default)]
pub(super) struct Units {
    pub threads: [Thread; THREADS],
    stamps: [Stamp; UNITS],
    jobs: [VecDeque<Job>; 2],
    /// Those who asked the mover.
    pub mover: Clock,
    semaphores: [Semaphore; 8],
    mutexes: BTreeMap<u32, Clock>,
    /// What came with the banks that the matrix unit has got, and that it has given back.
    given: Clock,
    freed: Clock,
    /// By core: what it knew when it pushed something.
    pushes: [VecDeque<(u64, Moment)>; 5],
    /// Mailboxes by sender and receiver, and PC buffers by thread (sender 5).
    queues: BTreeMap<(usize, usize), VecDeque<Moment>>,
    told: BTreeMap<(usize, usize), Clock>,
}

/// The sender of PC buffers in [`Units::send`].
pub(super) const PC_BUFFER: usize = 5;

impl Units {
    /// Gives its threads and units parts of their own, once.
    pub(super) fn prepare(&mut self, tile: NocXy, parts: &mut Vec<PartOf>) {
        if self.threads[0].own.part != 0 {
            return;
        }
        let mut part = |owner| {
            parts.push(PartOf { tile, owner });
            Stamp { part: Part::try_from(parts.len() - 1).unwrap_or(Part::MAX), count: 0 }
        };
        for (thread, number) in self.threads.iter_mut().zip(0..) {
            thread.own = part(Owner::Thread(number));
        }
        let others = [Unit::Packer, Unit::Scalar, Unit::Matrix, Unit::Vector, Unit::Config, Unit::Mover];
        for unit in [0, 1].map(Unit::Unpacker).into_iter().chain(others) {
            self.stamps[unit.index()] = part(Owner::Unit(unit));
        }
    }

    // ---- cores ----

    /// A core pushes at cycle `at`.
    pub(super) fn pushed(&mut self, core: usize, at: u64, moment: Moment) {
        let pushes = &mut self.pushes[core];
        if pushes.len() == PUSHES {
            pushes.pop_front();
        }
        pushes.push_back((at, moment));
    }

    /// Sends something from one core to another.
    pub(super) fn send(&mut self, from: usize, to: usize, moment: Moment) {
        moment.tell(self.told.entry((from, to)).or_default());
        self.queues.entry((from, to)).or_default().push_back(moment);
    }

    /// Takes it.
    pub(super) fn take(&mut self, from: usize, to: usize, clock: &mut Clock) {
        match self.queues.get_mut(&(from, to)).and_then(VecDeque::pop_front) {
            Some(first) => first.tell(clock),
            // What was in it when the sender was reset is lost.
            None => self.told.get(&(from, to)).is_some_and(|told| clock.join(told)),
        };
    }

    /// What `thread` has pushed to units is over.
    pub(super) fn drained(&self, thread: usize, clock: &mut Clock) {
        let t = &self.threads[thread];
        t.moment().tell(clock);
        for (stamp, &count) in self.stamps.iter().zip(&t.last) {
            clock.learn(Stamp { count, ..*stamp });
        }
        clock.learn(self.stamps[Unit::Mover.index()]);
    }

    /// All that a unit has done is over.
    pub(super) fn over(&self, unit: Unit, clock: &mut Clock) {
        clock.learn(self.stamps[unit.index()]);
    }

    /// A core loads a semaphore.
    pub(super) fn semaphore_seen(&mut self, index: usize, core: usize, clock: &mut Clock) {
        if let Some(semaphore) = self.semaphores.get_mut(index) {
            semaphore.seen(core, clock);
        }
    }

    /// A core stores to a semaphore: an odd value takes, an even one posts (SyncUnit.md).
    pub(super) fn semaphore_stored(&mut self, index: usize, value: u32, by: &Moment) {
        if let Some(semaphore) = self.semaphores.get_mut(index) {
            if value & 1 != 0 { semaphore.get(by) } else { semaphore.post(by) }
        }
    }

    // ---- threads ----

    /// An instruction of `thread` passes that a core pushed at cycle `pushed`: the thread knows
    /// what the core knew.
    pub(super) fn learn_push(&mut self, thread: usize, core: usize, pushed: u64) {
        let pushes = &mut self.pushes[core];
        while pushes.len() > 1 && pushes[1].0 <= pushed {
            pushes.pop_front();
        }
        let Some((_, moment)) = pushes.front() else { return };
        let t = &mut self.threads[thread];
        if t.core == moment.own {
            return;
        }
        if t.core[0].part != moment.own[0].part {
            t.core.iter().for_each(|&stamp| t.clock.learn(stamp));
        }
        t.core = moment.own;
        if !t.of_core.is(&moment.clock) {
            t.clock.join(&moment.clock);
            t.of_core = moment.clock.clone();
        }
    }

    /// An instruction passes: what a wait before it has shown is known, if the wait holds it back.
    /// Says whether the wait was for a stream.
    pub(super) fn behind_wait(&mut self, thread: usize, insn: Insn) -> bool {
        let t = &mut self.threads[thread];
        let holds = |&mut (block, _): &mut (u16, Until)| {
            insn::is_blocked_by(insn.word(), block) || matches!(insn, Insn::Wait(_))
        };
        match t.wait.take_if(holds).map(|(_, until)| until) {
            None => false,
            Some(Until::Units { over, given, freed }) => {
                over.into_iter().for_each(|stamp| t.clock.learn(stamp));
                if given {
                    t.clock.join(&self.given);
                }
                if freed {
                    t.clock.join(&self.freed);
                }
                false
            }
            Some(Until::Semaphores { mask, zero, full }) => {
                for semaphore in chosen(&mut self.semaphores, mask) {
                    if zero {
                        semaphore.learn_first(&semaphore.posts, &mut t.clock);
                    }
                    if full {
                        semaphore.learn_first(&semaphore.gets, &mut t.clock);
                    }
                }
                false
            }
            Some(Until::Stream) => true,
        }
    }

    /// A wait instruction passes.
    pub(super) fn wait(&mut self, thread: usize, wait: WaitOp) {
        let (block, until) = match wait {
            WaitOp::Stallwait(wait) => {
                let mask = if wait.condition_mask() == 0 { 0xF } else { wait.condition_mask() };
                let has = |bit: u32| mask >> bit & 1 != 0;
                let over = (0..13).filter(|&bit| has(bit)).filter_map(Unit::of_condition);
                let over = over.map(|unit| self.used(thread, unit)).collect();
                let until = Until::Units { over, freed: has(5) || has(6), given: has(7) || has(8) };
                (wait.block_mask(), until)
            }
            WaitOp::Semwait(wait) => {
                let (mask, condition) = (wait.semaphore_mask(), wait.condition_mask());
                (wait.block_mask(), Until::Semaphores { mask, zero: condition & 1 != 0, full: condition & 2 != 0 })
            }
            WaitOp::Streamwait(wait) => (wait.block_mask(), Until::Stream),
        };
        let block = if block == 0 { insn::Unit::Matrix.block_bits() } else { block as u16 };
        self.threads[thread].wait = Some((block, until));
    }

    /// `FLUSHDMA`, which passes when it is met.
    pub(super) fn flushed(&mut self, thread: usize, mask: u32) {
        let mask = if mask == 0 { 0xF } else { mask };
        for unit in (0..4).filter(|bit| mask >> bit & 1 != 0).filter_map(Unit::of_condition) {
            let stamp = self.used(thread, unit);
            self.threads[thread].clock.learn(stamp);
        }
    }

    /// What `thread` has used last of a unit.
    fn used(&self, thread: usize, unit: Unit) -> Stamp {
        let count = match unit {
            Unit::Mover => self.stamps[unit.index()].count,
            _ => self.threads[thread].last[unit.index()],
        };
        Stamp { count, ..self.stamps[unit.index()] }
    }

    /// The last of what a unit has been given to do.
    pub(super) fn latest(&self, unit: Unit) -> Stamp {
        self.stamps[unit.index()]
    }

    /// A unit gets something to do from `thread`.
    pub(super) fn starts(&mut self, thread: usize, unit: Unit) -> Stamp {
        let stamp = &mut self.stamps[unit.index()];
        stamp.count += 1;
        self.threads[thread].last[unit.index()] = stamp.count;
        *stamp
    }

    /// The mover does something; nobody says for which thread.
    pub(super) fn moves(&mut self) -> Stamp {
        let stamp = &mut self.stamps[Unit::Mover.index()];
        stamp.count += 1;
        *stamp
    }

    /// Instructions of the sync unit.
    pub(super) fn synchronize(&mut self, thread: usize, insn: insn::SyncOp) {
        use insn::SyncOp;
        let t = &mut self.threads[thread];
        match insn {
            SyncOp::Atgetm(insn) => {
                if let Some(mutex) = self.mutexes.get(&insn.index()) {
                    t.clock.join(mutex);
                }
            }
            SyncOp::Atrelm(insn) => {
                t.release().tell(self.mutexes.entry(insn.index()).or_default());
            }
            SyncOp::Seminit(insn) => {
                let (value, max, by) = (insn.new_value() as usize, insn.new_max() as usize, t.release());
                chosen(&mut self.semaphores, insn.semaphore_mask()).for_each(|s| s.init(value, max, &by));
            }
            SyncOp::Sempost(insn) => {
                let by = t.release();
                chosen(&mut self.semaphores, insn.semaphore_mask()).for_each(|s| s.post(&by));
            }
            SyncOp::Semget(insn) => {
                let by = t.release();
                chosen(&mut self.semaphores, insn.semaphore_mask()).for_each(|s| s.get(&by));
            }
        }
    }

    // ---- unpackers and banks ----

    /// An instruction for an unpacker passes at cycle `at`.
    pub(super) fn enqueue(&mut self, thread: usize, unpacker: u8, at: u64) {
        let stamp = self.starts(thread, Unit::Unpacker(unpacker));
        let moment = self.threads[thread].moment();
        self.jobs[usize::from(unpacker & 1)].push_back(Job { passed: at, moment, stamp });
    }

    /// The unpacker's job that passed at cycle `passed`.
    pub(super) fn job(&mut self, unpacker: u8, passed: u64) -> Option<&Job> {
        let jobs = &mut self.jobs[usize::from(unpacker & 1)];
        while jobs.front().is_some_and(|job| job.passed < passed) {
            jobs.pop_front();
        }
        jobs.front().filter(|job| job.passed == passed)
    }

    /// It is done.
    pub(super) fn ends(&mut self, unpacker: u8, passed: u64, gives: bool) {
        let Some(job) = self.job(unpacker, passed) else { return };
        let (moment, stamp) = (job.moment.clone(), job.stamp);
        self.jobs[usize::from(unpacker & 1)].pop_front();
        if gives {
            moment.tell(&mut self.given);
            self.given.learn(stamp);
        }
    }

    /// `SETDVALID`: the thread gives banks to the matrix unit.
    pub(super) fn gives(&mut self, thread: usize) {
        self.threads[thread].release().tell(&mut self.given);
        for unit in [0, 1].map(Unit::Unpacker) {
            self.given.learn(self.stamps[unit.index()]);
        }
    }

    /// The matrix unit gives banks back for `thread`.
    pub(super) fn frees(&mut self, thread: usize) {
        let stamp = self.starts(thread, Unit::Matrix);
        let t = &mut self.threads[thread];
        t.clock.join(&self.given);
        t.release().tell(&mut self.freed);
        self.freed.learn(stamp);
    }

    /// What an unpacker knows when it starts: its bank has come back from the matrix unit.
    pub(super) fn bank(&self) -> &Clock {
        &self.freed
    }
}

fn chosen(semaphores: &mut [Semaphore; 8], mask: u32) -> impl Iterator<Item = &mut Semaphore> {
    semaphores.iter_mut().enumerate().filter(move |(index, _)| mask >> index & 1 != 0).map(|(_, each)| each)
}

#[cfg(test)]
mod tests;
