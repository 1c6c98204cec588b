//! What the three command-queue kernels share.
//!
//! The kernels themselves are thin: they poll, store to registers and call this crate for all
//! arithmetic. There are two kinds of modules.
//!
//! - Pure arithmetic, tested on the host with counters that start near their wrap: [`reader`] (the
//!   consumer's side of a page ring with deferred release), [`writer`] (the producer's side with
//!   credits), [`fetch`] (records in flight and in the command data queue, and the host's issue
//!   region), [`records`] (the ring between the halves of a split prefetcher), [`span`] (splitting
//!   transfers into packets), [`paged`] (interleaved buffers), [`peers`] (coordinates of the
//!   cores).
//! - Thin access to the hardware, over `tilework_rt::reg`: [`initiators`] (who uses which request
//!   initiator), [`go`] (go messages), [`halt`] (the status block and the stop at an error),
//!   [`local`] (tables in local RAM).
//!
//! Follows seed 001 sections 3 to 6 and BlackholeA0/NoC (MemoryMap, Counters); bugs that others had
//! and tests here look for are cited by their number in field 1.B.
#![no_std]

#[cfg(test)]
extern crate std;

pub mod fetch;
pub mod go;
pub mod halt;
pub mod initiators;
pub mod local;
pub mod paged;
pub mod peers;
pub mod reader;
pub mod records;
pub mod span;
pub mod writer;

/// The wire struct of the command at `addr`, copied out with plain loads.
///
/// The caller has waited for the bytes with a fence, so no line of the L0 data cache is older than
/// they are. Wire structs have alignment 1, and their commands begin on 16 bytes, which is said
/// here so that the loads are whole words.
#[inline(always)]
pub fn command<T: zerocopy::FromBytes + Copy>(addr: u32) -> T {
    /// Gives a wire struct the alignment that commands have in a ring.
    #[derive(Clone, Copy)]
    #[repr(C, align(16))]
    struct Aligned<T>(T);
    // The loads stay behind the one that showed that the bytes are there.
    tilework_rt::reg::compiler_fence();
    // SAFETY: the bytes lie in a ring in L1, at a multiple of 16, and any bit pattern is a value of
    // a wire struct. A struct of 12 bytes is read as 16, which the ring has.
    unsafe { core::ptr::with_exposed_provenance::<Aligned<T>>(addr as usize).read() }.0
}
