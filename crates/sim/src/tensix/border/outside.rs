//! What the coprocessor sees of its tile.

use super::Origin;
use crate::probe::{Passing, Spans, Unit, What};
use crate::{Cycle, Fault};

/// The rest of the tile: L1, the registers that the NoC sees too, and who sleeps on what.
pub(crate) trait Outside {
    /// The steps that follow are of cycle `at`.
    #[inline]
    fn begins(&mut self, at: Cycle) {
        let _ = at;
    }
    /// Whether a step has had a side effect that the tile has to handle before the next one.
    #[inline]
    fn has_side_effects(&self) -> bool {
        false
    }
    /// Asks which cores sleep on something that a write of `len` bytes at `addr` would change.
    /// `true`: there are some, the tile wakes them, and the coprocessor must not change anything
    /// before it is stepped again.
    fn must_wake(&mut self, addr: u32, len: u32) -> bool;
    /// The coprocessor will not look at the word at `addr` again before it changes:
    /// [`super::Tensix::wake`] before it does.
    fn sleep_on(&mut self, addr: u32);
    /// How often code in L1 has changed.
    fn code_changes(&self) -> u64 {
        0
    }
    /// L1.
    fn l1(&self) -> &[u8];
    /// Writes L1; the span lies within it.
    fn write_l1(&mut self, addr: u32, data: &[u8]);
    /// Copies within L1; both spans lie within it.
    fn copy_l1(&mut self, dst: u32, src: u32, len: u32);
    /// Fills a span of L1 with zeros.
    fn zero_l1(&mut self, addr: u32, len: u32);
    /// Loads a register word.
    ///
    /// # Errors
    /// As for an access over the NoC.
    fn load(&mut self, at: Cycle, addr: u32) -> Result<u32, Fault>;
    /// Stores a register word.
    ///
    /// # Errors
    /// As for an access over the NoC.
    fn store(&mut self, at: Cycle, addr: u32, value: u32) -> Result<(), Fault>;
    /// A unit works for a thread from one cycle to another, for observers.
    #[inline]
    fn works(&mut self, unit: Unit, thread: usize, from: Cycle, until: Cycle) {
        let _ = (unit, thread, from, until);
    }
    /// What follows is done by `unit` for an instruction of this origin: for those who observe.
    #[inline]
    fn acting(&mut self, at: Cycle, unit: Unit, origin: &Origin) {
        let _ = (at, unit, origin);
    }
    /// An instruction of this origin has posted semaphores that have their largest value, a bit
    /// each: the posts are lost.
    fn lost_posts(&mut self, at: Cycle, origin: Origin, semaphores: u8) {
        let _ = (at, origin, semaphores);
    }
    /// An instruction of this origin has passed, for observers.
    #[inline]
    fn executes(&mut self, at: Cycle, thread: usize, word: u32, origin: &Origin) {
        let _ = (at, thread, word, origin);
    }
    /// Whether anybody wants to know which instructions pass, or how long they keep their unit
    /// busy.
    #[inline]
    fn is_followed(&self) -> bool {
        false
    }
    /// Whether anybody observes accesses.
    #[inline]
    fn is_observed(&self) -> bool {
        false
    }
    /// Whether anybody wants to know what orders the threads and units.
    #[inline]
    fn is_watched(&self) -> bool {
        false
    }
    /// An instruction has passed its wait gate, if [`Outside::is_watched`].
    fn passes(&mut self, at: Cycle, passing: &Passing) {
        let _ = (at, passing);
    }
    /// Something else that orders the threads and units, or uses what they share, if
    /// [`Outside::is_watched`].
    fn watched(&mut self, at: Cycle, unit: Unit, origin: Origin, what: What) {
        let _ = (at, unit, origin, what);
    }
    /// The unit has read a span of L1.
    #[inline]
    fn has_read(&mut self, addr: u32, len: u32) {
        let _ = (addr, len);
    }
    /// The unit has read several spans of L1 at once.
    fn has_read_spans(&mut self, spans: Spans) {
        spans.iter().for_each(|(addr, len)| self.has_read(addr, len));
    }
}

/// Why an agent of the coprocessor did not do its step. Nothing has changed.
#[derive(Debug)]
pub(crate) enum Hold {
    /// Cores must wake first ([`Outside::must_wake`]).
    Wake,
    /// A fault of the program.
    Fault(Fault),
}

impl Hold {
    /// Names where the instruction that caused the fault comes from, unless that is named already.
    pub(in crate::tensix) fn of_push(self, origin: Origin) -> Self {
        match self {
            Self::Fault(fault) => Self::Fault(fault.of_push(origin)),
            Self::Wake => Self::Wake,
        }
    }
}

impl From<Fault> for Hold {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}
