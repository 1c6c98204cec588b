//! How full each kind of memory is, and what is left when a device closes.

use super::{BufferType, Owned};
use std::fmt;

/// How full a kind of memory is. All sizes are those of one bank, since banks are allocated in
/// lock-step; a range that only some banks have counts like one that all have.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryStatistics {
    /// The memory.
    pub kind: BufferType,
    /// Bytes of a bank that can be allocated.
    pub total: u64,
    /// Free bytes.
    pub free: u64,
    /// The longest free range.
    pub largest_free_block: u64,
    /// The owned ranges, by address.
    pub owners: Vec<Owned>,
}

impl MemoryStatistics {
    /// Bytes that are taken, those before the next aligned address included.
    pub fn allocated(&self) -> u64 {
        self.total - self.free
    }
    /// The part of the free bytes that is not in the longest free range: 0 when all is in one
    /// piece, close to 1 when it is in many small ones (seed 004, section 10.3).
    pub fn fragmentation(&self) -> f64 {
        match self.free {
            0 => 0.0,
            // Sizes are below 2^53.
            free => 1.0 - self.largest_free_block as f64 / free as f64,
        }
    }
}

impl fmt::Display for MemoryStatistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}: {} bytes in each bank, {} allocated, {} free, largest free block {}, fragmentation {:.2}",
            self.kind,
            self.total,
            self.allocated(),
            self.free,
            self.largest_free_block,
            self.fragmentation()
        )
    }
}

/// What is still allocated, by kind and address: leaks, if nothing should be.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Leaks(pub Vec<(BufferType, Owned)>);

impl Leaks {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Leaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let many = if self.0.len() == 1 { "allocation was" } else { "allocations were" };
        write!(f, "{} {many} not freed", self.0.len())?;
        self.0.iter().try_for_each(|(kind, owned)| write!(f, "\n  {kind} {owned}"))
    }
}
