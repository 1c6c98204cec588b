//! Errors of queues.

use super::pointers::PointerError;
use thiserror::Error;
use tilework_netlist::types::{Netlist, QueueId};

/// An invalid use of a queue.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("queue {queue}: {problem}")]
pub struct QueueError {
    /// The queue's name.
    pub queue: String,
    /// What is wrong.
    pub problem: QueueProblem,
}

/// What is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[allow(missing_docs)]
pub enum QueueProblem {
    #[error("it is full: {entries} entries, rd {rd}, wr {wr}")]
    Full { entries: u32, rd: u32, wr: u32 },
    #[error("nothing to read: rd {rd}, wr {wr}")]
    Empty { rd: u32, wr: u32 },
    #[error("it has {left} entries to pop, not {count}")]
    PopTooMany { left: u32, count: u32 },
    #[error("it is a ram: name the entry to write or read (0 to {})", entries.saturating_sub(1))]
    RamNeedsPointer { entries: u32 },
    #[error("it is a ram, and there is nothing to pop; read it with get_output")]
    RamPop,
    #[error("it is no ram: entries come and go in order, there is none to name")]
    NotARam,
    #[error("the ram has entries 0 to {}, not {at}", entries.saturating_sub(1))]
    OutOfRange { entries: u32, at: i64 },
    #[error("entry {at} of the ram was never written")]
    Uninitialised { at: u32 },
    #[error("it is a dynamic queue that is not allocated now")]
    NotAllocated,
    #[error("it is allocated already")]
    AllocatedTwice,
    #[error("its memory overlaps that of the allocated queue {other} in channel {channel} at {address:#x}")]
    Overlap { other: String, channel: u32, address: u64 },
    #[error("its entries cannot be views of the {base_entries} entries of {base}: {why}")]
    BadView { base: String, base_entries: u32, why: &'static str },
    #[error("op {producer} fills it, not the host")]
    NotForHost { producer: String },
    #[error("all queues together would hold more than {most} bytes; raise the limit if the machine has them")]
    Memory { most: u64 },
    #[error(transparent)]
    Pointer(#[from] PointerError),
}

impl QueueProblem {
    /// Adds the queue's name.
    pub fn of(self, netlist: &Netlist, queue: QueueId) -> QueueError {
        QueueError { queue: netlist.queue(queue).name.clone(), problem: self }
    }
}
