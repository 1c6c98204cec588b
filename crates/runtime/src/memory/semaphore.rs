//! Global semaphores: a word of L1 at one address on a set of cores, which lives across programs.
//!
//! A program's own semaphores are in its kernel configuration and begin anew with each launch
//! ([`Program::semaphores`](crate::Program)). A global one is allocated like a buffer and keeps its
//! value (tt-metal's `GlobalSemaphore`).

use super::{Allocation, AllocationId, BufferType, CoreRangeSet};
use tilework_abi::addr::L1Addr;
use tilework_abi::noc::NocXy;

/// What a global semaphore is asked to be.
///
/// ```
/// use tilework_abi::{board::Board, l1::WORKER};
/// use tilework_runtime::memory::{CoreCoord, GlobalSemaphoreConfig, MemorySpace};
///
/// let mut memory = MemorySpace::new(Board::P100, &WORKER);
/// let config = GlobalSemaphoreConfig::new("ready", CoreCoord::new(0, 0).into(), 1);
/// let ready = memory.alloc_global_semaphore(&config)?;
/// assert_eq!((ready.initial, ready.cores.len()), (1, 1));
/// memory.free_global_semaphore(&ready)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct GlobalSemaphoreConfig {
    /// Its name in messages.
    pub name: String,
    /// The cores that have it.
    pub cores: CoreRangeSet,
    /// Its value on each of them at first.
    pub initial: u32,
    /// The memory: L1 or L1-small.
    pub buffer_type: BufferType,
    /// On which cores its word is kept free.
    pub allocation: Allocation,
}

impl GlobalSemaphoreConfig {
    /// A semaphore in L1, at an address that nothing else has on any core.
    pub fn new(name: impl Into<String>, cores: CoreRangeSet, initial: u32) -> Self {
        let (buffer_type, allocation) = (BufferType::L1, Allocation::LockStep);
        Self { name: name.into(), cores, initial, buffer_type, allocation }
    }
}

/// A word of L1 at one address on a set of cores.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GlobalSemaphore {
    /// Its name in messages.
    pub name: String,
    /// The word on each of its cores.
    pub address: L1Addr,
    /// The cores, by their coordinates in packets.
    pub cores: Vec<NocXy>,
    /// Its value when it is made.
    pub initial: u32,
    pub(super) buffer_type: BufferType,
    pub(super) allocation: AllocationId,
}
