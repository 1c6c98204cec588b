//! Typed events for a timeline, in the order in which they ended.

use crate::core_id::{CoreId, Pipe};
use std::rc::Rc;

/// The kinds of events.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum EventKind {
    /// TPUSH, as a whole.
    Push,
    /// TPOP, as a whole.
    Pop,
    /// TFREE.
    Free,
    /// TALLOC.
    Alloc,
    /// A wait that blocked.
    Wait,
    /// A set.
    Signal,
    /// A copy into a slot.
    Write,
    /// A copy out of a slot, or its use.
    Read,
    /// The kernel's own arithmetic or copies.
    Work,
}

impl EventKind {
    /// Its name in a timeline.
    pub fn name(self) -> &'static str {
        match self {
            Self::Push => "TPUSH",
            Self::Pop => "TPOP",
            Self::Free => "TFREE",
            Self::Alloc => "TALLOC",
            Self::Wait => "wait",
            Self::Signal => "set",
            Self::Write => "write",
            Self::Read => "read",
            Self::Work => "work",
        }
    }
}

/// One event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// The core.
    pub core: CoreId,
    /// The pipe; none for whole operations, which use several.
    pub pipe: Option<Pipe>,
    /// The kind.
    pub kind: EventKind,
    /// The ring (and direction), or the kernel's name for its work.
    pub name: Rc<str>,
    /// The tile's number on the ring.
    pub tile: Option<u32>,
    /// The slot.
    pub slot: Option<u32>,
    /// The semaphore id of a wait or set.
    pub semaphore: Option<u8>,
    /// First cycle.
    pub start: u64,
    /// Last cycle.
    pub end: u64,
}
