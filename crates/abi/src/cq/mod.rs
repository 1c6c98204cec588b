//! The fast-dispatch command queue: what host, prefetcher and dispatcher must agree on.
//!
//! A command travels from the host's issue region through the prefetch core into the page ring of
//! the dispatch core, and three programs built by different compilers read its bytes on the way.
//! Everything they read is defined here, once: the two command sets ([`prefetch`], [`dispatch`]),
//! each a table with one row for each command from which ids, names and the host's encoder follow,
//! the memory maps of the host region and of the queue's cores ([`layout`]), the tiles that run its
//! kernels ([`tiles`]), the completion pointer ([`completion`]) and the wrapping counters behind
//! every credit ([`count`]).
//!
//! All command structs are packed and little-endian, have alignment 1 and are checked for size and
//! field offset at compile time, so firmware views them in place and the host reads and writes them
//! as bytes.
//!
//! Sources: seeds 000 and 001; the original's `cq_commands.hpp` and `device.py`.
//! Where these leave a field open, the public definition
//! `boopdotpng/tenstorrent-python-driver:firmware/cq/cq_commands.hpp` (called *the original* below)
//! decides.

#[macro_use]
pub mod wire;

pub mod completion;
pub mod count;
pub mod dispatch;
pub mod layout;
pub mod prefetch;
pub mod status;
pub mod tiles;

/// Bytes of an ordinary command header in either set. It is also the alignment of payloads in L1.
pub const CMD_SIZE: usize = 16;

/// Bytes of a large command header: `WRITE_LINEAR`, `WRITE_LINEAR_H`, `RELAY_LINEAR` and
/// `RELAY_LINEAR_H`, whose 64-bit fields do not fit in [`CMD_SIZE`].
pub const CMD_LARGE_SIZE: usize = 32;

/// Bytes that a prefetch command without payload occupies in the issue region: one PCIe alignment
/// unit, because the prefetcher's reads over PCIe are aligned to it (the original's
/// `CQ_PREFETCH_CMD_BARE_MIN_SIZE`).
pub const PREFETCH_BARE_STRIDE: usize = 64;

/// An identifier byte (or flag, or selector) that the named set does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownId {
    /// The byte that was found.
    pub found: u8,
}
