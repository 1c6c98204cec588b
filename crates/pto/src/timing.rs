//! What everything costs, in cycles of the virtual clock.
//!
//! No document gives latencies for these cores that we may cite, so every number here is an
//! estimate: round, stated, and chosen only to be of the right order and in the right relation
//! (SRAM faster than global memory, a wired flag faster than the scheduler's). Correctness must not
//! depend on them; the seed varies them.

use crate::arch::Arch;
use crate::core_id::Pipe;
use crate::protocol::Medium;

/// A wait that finds its semaphore set (estimate: one read of a register beside the core).
pub const WAIT: u64 = 4;
/// From a set to the count at the other core, on A5 (estimate: a wire inside the cluster).
pub const SIGNAL_A5: u64 = 16;
/// The same through FFTS, on A2A3 (estimate: a message to the scheduler and on to the core).
pub const SIGNAL_A2A3: u64 = 60;
/// Before the first byte of a copy inside the cluster (estimate).
pub const START_LOCAL: u64 = 20;
/// Before the first byte of a copy from or to global memory (estimate: one access to DRAM
/// through L2).
pub const START_GM: u64 = 200;
/// Bytes a cycle inside the cluster (estimate).
pub const BYTES_LOCAL: u64 = 128;
/// Bytes a cycle from or to global memory (estimate).
pub const BYTES_GM: u64 = 32;
/// A scalar access to global memory, a cache line, or its flush (estimate: as [`START_GM`]).
pub const SCALAR_GM: u64 = 200;
/// Blocks of 16 x 16 x 16 that a Cube multiplies in a cycle (estimate; the block is the size of
/// `pto-isa`'s fractals).
pub const CUBE_BLOCKS: u64 = 1;
/// Elements of 32 bits a cycle of a Vector (estimate: 256 bytes a cycle).
pub const VECTOR_ELEMENTS: u64 = 64;
/// Most cycles by which one core's kernel starts after another's (estimate).
pub const START_SKEW: u64 = 100;

/// Cycles of a set.
pub fn signal(arch: Arch) -> u64 {
    match arch {
        Arch::A5 => SIGNAL_A5,
        Arch::A2A3 => SIGNAL_A2A3,
    }
}

/// Cycles of a copy of a ring's slot.
pub fn transfer(medium: Medium, bytes: usize) -> u64 {
    let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
    match medium {
        Medium::Gm => START_GM + bytes.div_ceil(BYTES_GM),
        Medium::Ub | Medium::L1 => START_LOCAL + bytes.div_ceil(BYTES_LOCAL),
        Medium::Control => WAIT,
    }
}

/// Cycles of a copy by one of a core's own pipes: MTE2, MTE3 and FIX reach global memory, the
/// others the core's SRAM.
pub fn copy(pipe: Pipe, bytes: usize) -> u64 {
    let medium = if matches!(pipe, Pipe::Mte2 | Pipe::Mte3 | Pipe::Fix) { Medium::Gm } else { Medium::L1 };
    transfer(medium, bytes)
}

/// Cycles of a matrix product of m x k by k x n.
pub fn matmul(m: usize, k: usize, n: usize) -> u64 {
    let blocks = [m, k, n].into_iter().map(|n| u64::try_from(n.div_ceil(16)).unwrap_or(u64::MAX));
    START_LOCAL + blocks.fold(1, u64::saturating_mul).div_ceil(CUBE_BLOCKS)
}

/// Cycles of a Vector operation on so many elements.
pub fn vector(elements: usize) -> u64 {
    START_LOCAL + u64::try_from(elements).unwrap_or(u64::MAX).div_ceil(VECTOR_ELEMENTS)
}
