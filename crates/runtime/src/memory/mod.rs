//! Allocation: who owns which bytes of L1's data space and of DRAM, and the buffers there.
//!
//! All L1s are allocated alike (one allocator for all workers), and so are all DRAM banks: an
//! interleaved buffer takes the same range in every bank (seed's system, DRAM allocator). Every
//! range has an owner with a name, so that an overflow can say who has the space (tt-metal#45327:
//! region-typed L1 with an owner map).

mod allocator;
mod buffer;
mod space;
pub mod tile;

pub use allocator::{Address, Allocator, MemoryError, Owned};
pub use buffer::{Buffer, DType, L1Buffer};
pub use space::MemorySpace;
