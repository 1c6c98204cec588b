//! Poll loops: detects that a core repeats itself exactly, so that it can sleep instead.
//!
//! At each taken backward jump the core may compare itself with its last visit to the same target.
//! If registers, scoreboard, cache tags and store queue are the same, and nothing in between had a
//! side effect or depended on time, then the next iteration will be the same, until one of the
//! words that it loaded changes. Storing a value that memory already holds is no side effect:
//! firmware writes waypoints in this way, and such a loop also sleeps on the words that it stores.
//!
//! A few loop heads are tracked at once (with LRU replacement), so that a poll loop with inner
//! loops is found as well. A head is examined at its 1st, 2nd, 4th, 8th... visit and then at every
//! 16th, and only if the last iteration had no side effects except stores. The stores are examined
//! in the next iteration; a loop that changes memory is examined less and less often, down to every
//! 128th visit, so that busy loops pay one comparison per iteration. A loop that has parked before
//! is examined at once when it is entered again, and parks at the end of its second iteration: a
//! core that waits for a sequence of events polls little.

use crate::loop_head::{Head, Iteration, Visit};
use crate::{Bus, Cycle, Width};

/// A loop that watches more words than this is not parked.
const MAX_WATCHED: usize = 16;
/// Number of tracked loop heads.
const HEADS: usize = 4;
/// The longest back-off between two examinations of a head, in visits.
const MAX_BACKOFF: u32 = 16;
/// The longest back-off of a head whose loop has changed memory.
const MAX_BUSY_BACKOFF: u32 = 128;
/// A loop of at most so many instructions has no other loops in it.
const SHORT: u64 = 3;
/// Immediate examinations of a loop that has parked before: of the iteration in which it is entered
/// again, of the one that shows that it repeats itself, and two more.
const TRUST: u32 = 4;

/// A watched word, on which a parked core sleeps.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Watch {
    /// The loaded address.
    pub addr: u32,
    /// Width of the load.
    pub width: Width,
    /// The load or store.
    pub pc: u32,
    /// The value that the last iteration loaded or stored, zero-extended.
    pub value: u32,
    /// The cycle at which the last iteration did so (the first time, if it did so more than once).
    pub at: Cycle,
    /// Whether the loop stores the word instead of loading it: it stores the value that is already
    /// there, and would again if another agent changed it.
    pub stored: bool,
}

/// The watched words, in the order of the accesses, without duplicates.
pub type WatchList = Vec<Watch>;

/// The poll loop of a parked core: iteration `k` starts at cycle `start + k * period` at `head_pc`.
///
/// If the owner of the core follows this contract, results and cycles are those of a
/// core that polls:
///
/// 1. On [`crate::Exit::Parked`], compare each [`Watch::value`] with memory. A word may have
///    changed after the last iteration loaded it and before the core parked (while another agent
///    ran for a [`crate::Refuse::Sync`] in between). If one differs, call `wake(core.now)` and
///    continue: nothing is skipped.
/// 2. When another agent is about to change a watched word at cycle `w`: call `wake(w)`, then
///    `run(bus, w)`, and only then change the word. The run catches up with the part of the
///    current iteration that lies before `w`, which still sees the old word; loads at `w` and
///    later see the new one.
/// 3. Stores that are in flight at the head of one iteration are in flight at the head of each:
///    they are delayed by the cycles that `wake` has skipped.
///
/// A spurious `wake` at any cycle is harmless.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PollLoop {
    /// The first instruction of an iteration.
    pub head_pc: u32,
    /// The start of the next iteration: `core.now` when it parked.
    pub start: Cycle,
    /// Cycles per iteration; at least one.
    pub period: Cycle,
    /// Instructions per iteration.
    pub insns_per_iteration: u64,
    /// When an iteration accesses a watched word for the last time, in cycles after its start.
    /// `None` for a loop that stores.
    pub last_load: Option<Cycle>,
    /// The words that can end the loop; empty for `j .`.
    pub watched: WatchList,
}

/// What came of a visit to a loop head.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub(crate) enum Visited {
    /// The core goes on.
    GoesOn,
    /// It goes on, and the next iteration is recorded and compared: the caller has to call
    /// [`Polls::take_snapshot`], or parks the core ([`Polls::park_at_once`]).
    Armed,
    /// The core is parked.
    Parked,
}

/// The poll-loop detector of one core. What each turn and each backward jump looks at lies beside
/// the core's other state, what is compared only at some visits does not.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Polls {
    enabled: bool,
    asleep: bool,
    /// One bit for each head whose snapshot was taken at its last visit; visits to other heads are
    /// only counted.
    armed: u8,
    /// The armed heads for which loads are recorded, until a side effect forbids sleeping.
    recording: u8,
    /// The head of the last visit.
    recent: u32,
    /// Counts the side effects that forbid sleeping.
    effects: u64,
    heads: [Head; HEADS],
    visits: u64,
    records: Box<Records>,
}

/// What is recorded of loops.
#[derive(Clone, Debug, Default)]
struct Records {
    /// In the order of the heads.
    iterations: [Iteration; HEADS],
    /// The loop in which the core is or was last parked.
    sleep: PollLoop,
}

impl Default for Polls {
    fn default() -> Polls {
        Polls {
            enabled: true,
            asleep: false,
            armed: 0,
            recording: 0,
            recent: 0,
            visits: 0,
            effects: 0,
            heads: [Head::NONE; HEADS],
            records: Box::default(),
        }
    }
}

impl Polls {
    pub(crate) fn parked(&self) -> Option<&PollLoop> {
        self.asleep.then_some(&self.records.sleep)
    }

    /// The index of the last visit's head.
    #[inline(always)]
    fn recent(&self) -> usize {
        self.recent as usize % HEADS
    }

    pub(crate) fn set_enabled(&mut self, on: bool) {
        self.enabled = on;
        if !on && !self.asleep {
            self.forget();
        }
    }

    /// Forgets all heads.
    pub(crate) fn forget(&mut self) {
        for head in &mut self.heads {
            head.follow(Head::NONE.pc, 0);
            head.used = 0;
        }
        self.recent = 0;
        self.visits = 0;
        self.effects = 0;
        self.armed = 0;
        self.recording = 0;
        self.asleep = false;
    }

    /// Notes a side effect, across which the core must not sleep.
    #[inline]
    pub(crate) fn note_effect(&mut self) {
        self.effects += 1;
        self.recording = 0;
    }

    /// Whether watched loads must be recorded.
    #[inline(always)]
    pub(crate) fn records(&self) -> bool {
        self.recording != 0
    }

    /// Notes a load of a word that others can change.
    #[inline]
    pub(crate) fn note_loaded(&mut self, at: Cycle, pc: u32, addr: u32, width: Width, value: u32) {
        if self.records() {
            self.record(Watch { addr, width, pc, value, at, stored: false });
        }
    }

    /// Notes a store that did not change shared memory.
    #[inline]
    pub(crate) fn note_stored(&mut self, at: Cycle, pc: u32, addr: u32, width: Width, value: u32) {
        if self.records() {
            self.record(Watch { addr, width, pc, value, at, stored: true });
        }
    }

    #[cold]
    #[inline(never)]
    fn record(&mut self, watch: Watch) {
        let mut recording = self.recording;
        while recording != 0 {
            let index = recording.trailing_zeros() as usize;
            recording &= recording - 1;
            let iteration = &mut self.records.iterations[index];
            iteration.last_access = watch.at;
            let known = iteration.watched.iter_mut().find(|w| w.addr == watch.addr && w.width == watch.width);
            let fits = match known {
                // Changed within one iteration: which loads of the next one see which value
                // is not known.
                Some(known) => {
                    known.stored &= watch.stored;
                    known.value == watch.value
                }
                None => {
                    iteration.watched.push(watch);
                    iteration.watched.len() <= MAX_WATCHED
                }
            };
            if !fits {
                let head = &mut self.heads[index];
                head.trust = 0;
                head.back_off(MAX_BACKOFF);
                self.arm(index, false);
            }
        }
    }

    /// Sets whether the next iteration of a head is recorded and compared at its next visit.
    fn arm(&mut self, index: usize, arm: bool) {
        let others = !(1 << index);
        let bit = u8::from(arm) << index;
        self.armed = self.armed & others | bit;
        self.recording = self.recording & others | bit;
    }

    fn is_armed(&self, index: usize) -> bool {
        self.armed >> index & 1 != 0
    }

    /// Fast path of a taken backward jump: returns true if the visit only had to be counted;
    /// otherwise call [`Polls::visit`].
    #[inline(always)]
    pub(crate) fn passes(&mut self, head_pc: u32) -> bool {
        let recent = self.recent();
        let armed = self.is_armed(recent);
        let head = &mut self.heads[recent];
        let counts = head.pc == head_pc && !armed && head.visits + 1 < head.next_examination;
        if counts {
            head.visits += 1;
            head.effects = self.effects;
        }
        counts || !self.enabled
    }

    /// Handles a taken backward jump.
    #[inline]
    pub(crate) fn visit<B: Bus>(&mut self, bus: &B, visit: &Visit<'_>) -> Visited {
        if !self.enabled {
            return Visited::GoesOn;
        }
        let recent = self.recent();
        let armed = self.is_armed(recent);
        let head = &mut self.heads[recent];
        if head.pc == visit.head_pc {
            head.visits += 1;
            if !armed && head.visits < head.next_examination {
                head.effects = self.effects;
                return Visited::GoesOn;
            }
            return self.examine(bus, visit);
        }
        self.visits += 1;
        let index = match self.heads.iter().position(|head| head.pc == visit.head_pc) {
            Some(index) => index,
            None => {
                let (oldest, head) = self
                    .heads
                    .iter_mut()
                    .enumerate()
                    .min_by_key(|(_, head)| head.used)
                    .expect("there is at least one head");
                // Its effect count is behind the core's, so that the first visit is never examined.
                head.follow(visit.head_pc, self.effects.wrapping_sub(1));
                self.arm(oldest, false);
                oldest
            }
        };
        self.recent = index as u32;
        let armed = self.is_armed(index);
        let head = &mut self.heads[index];
        head.used = self.visits;
        head.visits += 1;
        if !armed && head.visits < head.next_examination {
            head.effects = self.effects;
            return Visited::GoesOn;
        }
        self.examine(bus, visit)
    }

    #[inline(never)]
    fn examine<B: Bus>(&mut self, bus: &B, visit: &Visit<'_>) -> Visited {
        let effects = self.effects;
        let index = self.recent();
        let armed = self.is_armed(index);
        let head = &mut self.heads[index];
        let clean = head.effects == effects;
        head.effects = effects;
        if armed && clean && visit.now != head.at && self.records.iterations[index].snapshot.is(visit, bus) {
            let Records { iterations, sleep } = &mut *self.records;
            let iteration = &mut iterations[index];
            let stores = iteration.watched.iter().any(|watch| watch.stored);
            let last_load = (!stores).then(|| iteration.last_access.saturating_sub(head.at));
            std::mem::swap(&mut sleep.watched, &mut iteration.watched);
            self.park(visit.now, visit.retired, last_load);
            return Visited::Parked;
        }
        head.at = visit.now;
        head.retired = visit.retired;
        let arm = clean && !armed || head.trust > 0;
        head.trust = head.trust.saturating_sub(1);
        head.back_off(if armed && !clean { MAX_BUSY_BACKOFF } else { MAX_BACKOFF });
        self.arm(index, arm);
        if arm { Visited::Armed } else { Visited::GoesOn }
    }

    /// Records the state at the last visit, at which its head was armed.
    #[inline]
    pub(crate) fn take_snapshot<B: Bus>(&mut self, bus: &B, visit: &Visit<'_>) {
        let iteration = &mut self.records.iterations[self.recent()];
        iteration.snapshot.take(visit, bus);
        iteration.watched.clear();
    }

    /// After [`Visited::Armed`]: the core is parked at the end of an iteration that has repeated
    /// the one before and has loaded only `watch`, at its start. It ends at cycle `end`, with
    /// `retired` instructions.
    pub(crate) fn park_at_once(&mut self, watch: Watch, end: Cycle, retired: u64) {
        let index = self.recent();
        if self.recording != 1 << index {
            // Other loops have loaded it, too.
            self.records.iterations[index].watched.clear();
            self.record(watch);
        }
        self.records.iterations[index].watched.clear();
        self.heads[index].visits += 1;
        let watched = &mut self.records.sleep.watched;
        watched.clear();
        watched.push(watch);
        self.park(end, retired, Some(0));
    }

    /// Parks the core in the loop of the last visit's head, whose watched words are noted. Its
    /// iteration from that visit on ends at cycle `end`, with `retired` instructions.
    fn park(&mut self, end: Cycle, retired: u64, last_load: Option<Cycle>) {
        let recent = self.recent();
        let head = &mut self.heads[recent];
        let sleep = &mut self.records.sleep;
        (sleep.head_pc, sleep.start, sleep.last_load) = (head.pc, end, last_load);
        // Wrapping: after a rollback of the clock the period may be nonsense, and then it does not
        // repeat.
        sleep.period = end.wrapping_sub(head.at);
        sleep.insns_per_iteration = retired.wrapping_sub(head.retired);
        (head.at, head.retired) = (end, retired);
        self.asleep = true;
    }

    /// Unparks the core.
    pub(crate) fn unpark(&mut self) -> Option<&PollLoop> {
        std::mem::take(&mut self.asleep).then_some(&self.records.sleep)
    }

    /// Continues from the head of the loop in which the core was parked, at cycle `now`.
    pub(crate) fn resume(&mut self, now: Cycle) {
        if !self.enabled {
            return self.forget();
        }
        // The iteration in which a word changes repeats nothing, and other heads would see one
        // without the skipped cycles.
        let recent = self.recent();
        for (index, head) in self.heads.iter_mut().enumerate() {
            if index != recent && self.armed >> index & 1 != 0 {
                head.trust = 0;
                head.back_off(MAX_BACKOFF);
            }
        }
        self.armed = 0;
        self.recording = 0;
        let head = &mut self.heads[recent];
        head.at = now;
        head.visits = 0;
        head.next_examination = 1;
        head.trust = TRUST;
    }

    /// Skips the examination at the end of the iteration in which the core wakes: the loop is
    /// likely to end or to see another value.
    pub(crate) fn expect_change(&mut self) {
        self.heads[self.recent()].next_examination = 2;
    }

    /// The period and the instructions of the loop in which the core was last parked, if it is
    /// short and an iteration has loaded all watched words when it is `cycles` old.
    pub(crate) fn has_loaded(&self, cycles: Cycle) -> Option<(Cycle, u64)> {
        let PollLoop { period, insns_per_iteration, last_load, .. } = self.records.sleep;
        (self.enabled && insns_per_iteration <= SHORT && last_load? < cycles).then_some((period, insns_per_iteration))
    }

    /// Counts the visit at the end of an iteration that was not executed one by one.
    pub(crate) fn count_visit(&mut self) {
        let head = &mut self.heads[self.recent()];
        head.visits += 1;
        head.effects = self.effects;
    }
}
