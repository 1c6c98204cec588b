//! What blocked cores wait for in the coprocessor, so that only those try again for which something
//! has changed: while a core pushes faster than its thread takes, that is in most cycles.

use super::border::thread_of;
use super::frontend::FrontEnd;
use crate::Cycle;
use tilework_abi::tensix::{self as map, Processor};

/// A set of conditions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Awaits(u16);

/// Conditions of a thread.
const OF_THREAD: u32 = 4;
/// The core's next push finds room.
const ROOM: u16 = 1;
/// BRISC's next push finds room.
const ROOM_BEHIND_MOP: u16 = 1 << 1;
/// No `MOP` is queued or being expanded.
const MOP_DONE: u16 = 1 << 2;
/// Nothing of the thread is in flight.
const DRAINED: u16 = 1 << 3;

impl Awaits {
    /// Nobody waits.
    pub(crate) const NOTHING: Self = Self(0);
    /// Whatever it is.
    pub(crate) const ANYTHING: Self = Self(u16::MAX);

    /// What `core` waits for that is blocked in an access to `addr`.
    pub(crate) fn of(core: Processor, addr: u32) -> Self {
        const SYNC: u32 = map::PC_BUF_BASE + map::pc_buf::TENSIX_SYNC;
        const MOP_SYNC: u32 = map::PC_BUF_BASE + map::pc_buf::MOP_SYNC;
        let of_thread = match addr {
            map::INSTRN_BUF_BASE => ROOM,
            SYNC => DRAINED,
            MOP_SYNC => MOP_DONE,
            _ => return Self::ANYTHING,
        };
        thread_of(core).map_or(Self::ANYTHING, |thread| Self(of_thread << (OF_THREAD * thread as u32)))
    }

    /// Those of `thread`.
    #[inline(always)]
    pub(super) fn of_thread(self, thread: usize) -> OfThread {
        OfThread((self.0 >> (OF_THREAD * thread as u32)) & ((1 << OF_THREAD) - 1))
    }

    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
    pub(crate) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
    pub(super) fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Conditions of one thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct OfThread(u16);

impl OfThread {
    /// Nobody waits for it.
    pub(super) const NOTHING: Self = Self(0);

    /// Those of them that there are in front end `front`; `drained` says whether nothing is in
    /// flight. Others are not looked at.
    #[inline(always)]
    pub(super) fn seen(self, front: &FrontEnd, drained: impl FnOnce() -> bool) -> Self {
        Self(match self.0 {
            0 => 0,
            // What a core waits for that pushes faster than its thread takes.
            ROOM => u16::from(front.has_room()) * ROOM,
            // And one that reads what its thread has done.
            DRAINED => u16::from(drained()) * DRAINED,
            wanted => Self::seen_of(wanted, front, drained),
        })
    }

    /// Those of `wanted` that front end `front` has.
    #[cold]
    fn seen_of(wanted: u16, front: &FrontEnd, drained: impl FnOnce() -> bool) -> u16 {
        let mut seen = 0;
        if wanted & ROOM != 0 && front.has_room() {
            seen |= ROOM;
        }
        if wanted & ROOM_BEHIND_MOP != 0 && front.has_room_behind_mop() {
            seen |= ROOM_BEHIND_MOP;
        }
        if wanted & MOP_DONE != 0 && front.mop_done() {
            seen |= MOP_DONE;
        }
        if wanted & DRAINED != 0 && drained() {
            seen |= DRAINED;
        }
        seen
    }

    /// What is in one of them only, as conditions of `thread`.
    pub(super) fn difference(self, other: Self, thread: usize) -> Awaits {
        Awaits((self.0 ^ other.0) << (OF_THREAD * thread as u32))
    }
}

/// Something has changed for which blocked cores may be waiting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Changed {
    /// The first cycle at which they should try again.
    pub(crate) at: Cycle,
    /// What.
    pub(crate) what: Awaits,
}

impl Changed {
    /// Both.
    pub(super) fn with(self, other: Option<Self>) -> Self {
        match other {
            Some(other) => Self { at: self.at.min(other.at), what: self.what.with(other.what) },
            None => self,
        }
    }
}
