//! Allocation: who owns which bytes of the chip's memories, and the buffers there.
//!
//! There is an allocator for each kind of memory ([`BufferType`]): DRAM, L1, L1-small, pinned host
//! memory and the trace region. All banks of a kind are allocated in lock-step (seed 004, section
//! 3.3): a buffer has the same address in every bank. Every range has an owner with a name, so that
//! an overflow can say who has the space (tt-metal#45327: region-typed L1 with an owner map). A
//! [`Buffer`] knows where each of its pages lies, interleaved or sharded; whatever moves pages asks
//! it. docs/memory.md describes layouts and rules.

mod allocator;
mod buffer;
mod config;
mod core_range;
mod error;
mod journal;
mod pins;
mod semaphore;
mod shard;
mod space;
mod statistics;
pub(crate) mod trace;
mod worker_cores;

pub use allocator::{Address, AllocationId, Allocator, Banks, Fit};
pub use buffer::{Bank, BankAddr, Buffer, BufferRegion, DType, L1Buffer, L1Range, Place, Run};
pub use config::{Allocation, BufferConfig, BufferType, ShardSpec, ShardSpecBuffer, TensorMemoryLayout};
pub use core_range::{CoreCoord, CoreGrid, CoreRange, CoreRangeError, CoreRangeSet, ShardOrientation};
pub use error::{Fits, MemoryError, Overflow, Owned, ShardError};
pub use pins::{Pin, PinUse};
pub use semaphore::{GlobalSemaphore, GlobalSemaphoreConfig};
pub use space::{AllocatorConfig, MemorySpace};
pub use statistics::{Leaks, MemoryStatistics};
pub use worker_cores::{WorkerCores, WorkerCoresError};
