//! Circular buffers: their configuration in L1 and their counters.
//!
//! Follows the original's `dispatch.py`. A buffer's counts of pages received and acknowledged are
//! 16-bit counters in the registers of an overlay stream, so that both cores of a pair see them
//! without touching L1. Which stream is a matter of the firmware generation
//! ([`MemoryMap::cb_stream`](crate::l1::MemoryMap::cb_stream)), because the worker firmware clears
//! them between programs.

use crate::stream;
use zerocopy::little_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Circular buffers of a tile.
pub const COUNT: u32 = 32;
/// Buffers 16 and 24 may share storage (the original's `device.py`).
pub const SHARED: (u32, u32) = (16, 24);

/// Configuration of one circular buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct CbConfig {
    /// First byte in L1.
    pub address: U32,
    /// Bytes.
    pub size: U32,
    /// Pages.
    pub pages: U32,
    /// Bytes of a page.
    pub page_size: U32,
}

/// Bytes of one configuration.
pub const CONFIG_BYTES: usize = 16;
const _: () = assert!(core::mem::size_of::<CbConfig>() == CONFIG_BYTES);

/// Address of the counter of pages received (pushed) of buffer `cb`, where buffer 0 has
/// stream `first`.
pub const fn received_addr(first: u32, cb: u32) -> u32 {
    stream::reg_addr(first + cb, stream::REMOTE_DEST_BUF_SIZE)
}
/// Address of the counter of pages acknowledged (popped) of buffer `cb`, where buffer 0 has
/// stream `first`.
pub const fn acked_addr(first: u32, cb: u32) -> u32 {
    stream::reg_addr(first + cb, stream::REMOTE_DEST_BUF_START)
}
/// The counters count modulo 2^16 (stream registers hold 17 bits).
pub const COUNTER_MASK: u32 = 0xFFFF;
