//! The prefetcher's command set: the outer records of the issue region.
//!
//! The prefetcher reads records from host memory, obeys the command at their start and relays what
//! belongs to the dispatcher. Every struct is a whole header with its id byte, padded as it lies in
//! memory: [`CMD_SIZE`] bytes, or [`CMD_LARGE_SIZE`] for the
//! two linear relays. Commands without an explicit stride occupy
//! [`PREFETCH_BARE_STRIDE`] bytes of the record.
//!
//! Sources: seed 001 sections 2.2 and 3.1; the original's `cq_commands.hpp`.

use super::layout::prefetch_core::{MAX_RECORD_BYTES, SCRATCH_DB};
use super::status::Kernel;
use super::{CMD_LARGE_SIZE, CMD_SIZE, PREFETCH_BARE_STRIDE};
use crate::convert::u32_of;
use bitflags::bitflags;
use zerocopy::little_endian::{U16, U32, U64};

/// The prefetcher's commands, one row each: documentation, variant and id, name, wire struct of the
/// header, in parentheses what `tilework_cq` carries beside the id, and the kernels of our firmware
/// that execute it (`by []`: not built in our firmware).
///
/// All ids of the public header are here. The macro hands the rows to macro `$then`, behind
/// `$head`.
#[macro_export]
macro_rules! prefetch_commands {
    ($then:ident! { $($head:tt)* }) => {
        $then! {
            $($head)*
            /// Relay bytes read linearly from one NoC node.
            RelayLinear = 1, "RELAY_LINEAR", RelayLinear (LinearRelay),
                by [Prefetch];
            /// As [`RelayLinear`](Self::RelayLinear), from a node of the prefetch_h chip; must be
            /// alone in its ring entry.
            RelayLinearH = 2, "RELAY_LINEAR_H", RelayLinearH (LinearRelayH),
                by [Prefetch];
            /// Relay pages of an interleaved buffer.
            RelayPaged = 3, "RELAY_PAGED", RelayPaged (PagedRelay),
                by [Prefetch];
            /// Relay pages of several interleaved buffers.
            RelayPagedPacked = 4, "RELAY_PAGED_PACKED", RelayPagedPacked (Vec<PagedSource>),
                by [];
            /// Relay the bytes that follow this header.
            RelayInline = 5, "RELAY_INLINE", RelayInline (Inline),
                by [Prefetch];
            /// As [`RelayInline`](Self::RelayInline), keeping the last page open for what follows.
            RelayInlineNoflush = 6, "RELAY_INLINE_NOFLUSH", RelayInline (Inline),
                by [Prefetch];
            /// Execute prefetch commands from a DRAM buffer.
            ExecBuf = 7, "EXEC_BUF", ExecBuf (ExecBuf),
                by [];
            /// End of such a buffer; relays its payload as [`RelayInline`](Self::RelayInline) does.
            ExecBufEnd = 8, "EXEC_BUF_END", RelayInline (Inline),
                by [];
            /// Wait until the dispatcher has caught up.
            Stall = 9, "STALL", BareCmd,
                by [Prefetch];
            /// Log a waypoint and check a payload.
            Debug = 10, "DEBUG", DebugCmd (DebugMark),
                by [Prefetch];
            /// End the prefetcher's main loop.
            Terminate = 11, "TERMINATE", BareCmd,
                by [Prefetch];
            /// Copy pages of an interleaved buffer into the ring buffer.
            PagedToRingbuffer = 12, "PAGED_TO_RINGBUFFER", PagedToRingbuffer (PagedToRing),
                by [];
            /// Set the offset that later ring-buffer reads start from.
            SetRingbufferOffset = 13, "SET_RINGBUFFER_OFFSET", SetRingbufferOffset (RingOffset),
                by [];
            /// Relay pieces of the ring buffer.
            RelayRingbuffer = 14, "RELAY_RINGBUFFER", RelayRingbuffer (Vec<RingPiece>),
                by [];
        }
    };
}

prefetch_commands! { command_ids! {
    /// First byte of a prefetch command.
    pub enum PrefetchCmdId;
} }

selector! {
    /// Which dispatcher a relay is for (`dispatcher_type`).
    pub enum DispatcherSelect {
        /// The dispatcher on the BRISC.
        #[default]
        Master = 0,
        /// The subordinate on the NCRISC of the same tile.
        Subordinate = 1,
    }
}

/// Most bytes that one relay can carry: a record less its header.
pub const MAX_RELAY_BYTES: u32 = MAX_RECORD_BYTES - u32_of(CMD_SIZE);

/// Most bytes of a `RELAY_LINEAR_H`: the scratch buffer less a 64-byte header (the original).
pub const MAX_RELAY_LINEAR_H_BYTES: u32 = SCRATCH_DB.size() - u32_of(PREFETCH_BARE_STRIDE);

/// Most bytes that one sub-command of `RELAY_PAGED_PACKED` reads: half of the scratch buffer (the
/// original).
pub const MAX_PAGED_SOURCE_BYTES: u32 = SCRATCH_DB.size() / 2;

/// Largest binary logarithm of a page size: what a 32-bit shift on the device takes.
pub const MAX_LOG_PAGE_SIZE: u32 = 31;

/// Most sub-commands of one `RELAY_PAGED_PACKED`: they are cached in local RAM.
pub const RELAY_PAGED_PACKED_MAX_SUBS: usize = 35;

/// Most sub-commands of one `RELAY_RINGBUFFER`: they are cached in local RAM.
pub const RELAY_RINGBUFFER_MAX_SUBS: usize = 52;

/// Bit of [`RelayPaged::is_dram_and_length_adjust`] that says the buffer lies in DRAM.
pub const RELAY_PAGED_IS_DRAM: u16 = 1 << 15;

/// Bits of [`RelayPaged::is_dram_and_length_adjust`] that are taken off the total length, in bytes
/// (a multiple of 32).
pub const RELAY_PAGED_LENGTH_ADJUST_MASK: u16 = 0x7fff;

bitflags! {
    /// Flags of `PAGED_TO_RINGBUFFER`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct RingbufferFlags: u8 {
        /// Start at the beginning of the ring buffer. Without it the ring buffer never wraps.
        const RESET_TO_START = 0x01;
    }
}

wire! {
    /// `RELAY_LINEAR`, 32 bytes: relay `length` bytes from `addr` of the node `noc_xy_addr`.
    /// Follows a `RELAY_INLINE_NOFLUSH` that carried the dispatch header. Source: the original,
    /// seed 001 section 3.1.
    pub struct RelayLinear[CMD_LARGE_SIZE] {
        /// [`PrefetchCmdId::RelayLinear`].
        pub cmd_id: u8 => 0,
        /// Zero.
        pub pad1: U16 => 1,
        /// Bytes to relay.
        pub length: U64 => 3 in 1..=u64::MAX,
        /// Source node, `y << 6 | x`.
        pub noc_xy_addr: U32 => 11,
        /// Address at the source node.
        pub addr: U64 => 15,
        /// Zero.
        pub tail: [u8; 9] => 23,
    }
}

wire! {
    /// `RELAY_LINEAR_H`, 32 bytes: as [`RelayLinear`] on the prefetch_h side of a split prefetcher.
    /// Source: the original.
    pub struct RelayLinearH[CMD_LARGE_SIZE] {
        /// [`PrefetchCmdId::RelayLinearH`].
        pub cmd_id: u8 => 0,
        /// Zero.
        pub pad1: u8 => 1,
        /// Zero.
        pub pad2: U16 => 2,
        /// Source node, `y << 6 | x`.
        pub noc_xy_addr: U32 => 4,
        /// Address at the source node.
        pub addr: U64 => 8,
        /// Bytes to relay; at most the scratch buffer less a 64-byte header.
        pub length: U32 => 16 in 1..=MAX_RELAY_LINEAR_H_BYTES as u64,
        /// Zero.
        pub tail: [u8; 12] => 20,
    }
}

wire! {
    /// `RELAY_PAGED`: relay `pages` pages of an interleaved buffer. Source: the original, seed 001
    /// section 3.1.
    pub struct RelayPaged[CMD_SIZE] {
        /// [`PrefetchCmdId::RelayPaged`].
        pub cmd_id: u8 => 0,
        /// First page.
        pub start_page: u8 => 1,
        /// [`RELAY_PAGED_IS_DRAM`] and [`RELAY_PAGED_LENGTH_ADJUST_MASK`].
        pub is_dram_and_length_adjust: U16 => 2,
        /// Address of the buffer in each bank.
        pub base_addr: U32 => 4,
        /// Bytes of a page.
        pub page_size: U32 => 8 in 1..=u32::MAX as u64,
        /// Pages to relay.
        pub pages: U32 => 12 in 1..=u32::MAX as u64,
    }
}

wire! {
    /// `RELAY_PAGED_PACKED`: relay from several interleaved DRAM buffers; `count`
    /// [`RelayPagedPackedSub`] follow. Source: the original, seed 001 section 3.1.
    pub struct RelayPagedPacked[CMD_SIZE] {
        /// [`PrefetchCmdId::RelayPagedPacked`].
        pub cmd_id: u8 => 0,
        /// Zero.
        pub pad1: u8 => 1,
        /// Sub-commands, at most [`RELAY_PAGED_PACKED_MAX_SUBS`].
        pub count: U16 => 2 in 1..=RELAY_PAGED_PACKED_MAX_SUBS as u64,
        /// Bytes of all sub-commands together.
        pub total_length: U32 => 4,
        /// Bytes to the next prefetch command.
        pub stride: U32 => 8,
        /// Zero.
        pub tail: [u8; 4] => 12,
    }
}

wire! {
    /// One source of a [`RelayPagedPacked`].
    pub struct RelayPagedPackedSub[12] {
        /// First page, below the number of banks.
        pub start_page: U16 => 0,
        /// Binary logarithm of the page size in bytes.
        pub log_page_size: U16 => 2 in 0..=MAX_LOG_PAGE_SIZE as u64,
        /// Address of the buffer in each bank.
        pub base_addr: U32 => 4,
        /// Bytes; a multiple of the DRAM alignment, at most one half of the scratch buffer.
        pub length: U32 => 8 in 1..=MAX_PAGED_SOURCE_BYTES as u64,
    }
}

wire! {
    /// `RELAY_INLINE`, `RELAY_INLINE_NOFLUSH` and `EXEC_BUF_END`: relay the `length` bytes that
    /// follow. Source: seed 001 section 2.2, the original's `cq_commands.hpp`.
    pub struct RelayInline[CMD_SIZE] {
        /// [`PrefetchCmdId::RelayInline`], [`PrefetchCmdId::RelayInlineNoflush`] or
        /// [`PrefetchCmdId::ExecBufEnd`].
        pub cmd_id: u8 => 0,
        /// A [`DispatcherSelect`].
        pub dispatcher_type: u8 => 1,
        /// Zero.
        pub pad: U16 => 2,
        /// Bytes of payload.
        pub length: U32 => 4 in 1..=MAX_RELAY_BYTES as u64,
        /// Bytes to the next prefetch command: header and payload, rounded up to 64.
        pub stride: U32 => 8,
        /// Zero.
        pub tail: [u8; 4] => 12,
    }
}

wire! {
    /// `EXEC_BUF`: execute prefetch commands from an interleaved DRAM buffer. Source: the original,
    /// seed 001 section 3.1.
    pub struct ExecBuf[CMD_SIZE] {
        /// [`PrefetchCmdId::ExecBuf`].
        pub cmd_id: u8 => 0,
        /// Zero.
        pub pad1: u8 => 1,
        /// Zero.
        pub pad2: U16 => 2,
        /// Address of the buffer in each bank.
        pub base_addr: U32 => 4,
        /// Binary logarithm of the page size in bytes.
        pub log_page_size: U32 => 8 in 0..=MAX_LOG_PAGE_SIZE as u64,
        /// Pages of the buffer.
        pub pages: U32 => 12 in 1..=u32::MAX as u64,
    }
}

wire! {
    /// `DEBUG` of either set: log `key` and check `size` bytes of payload. Source: the original.
    pub struct DebugCmd[CMD_SIZE] {
        /// [`PrefetchCmdId::Debug`] or
        /// [`DispatchCmdId::Debug`](super::dispatch::DispatchCmdId::Debug).
        pub cmd_id: u8 => 0,
        /// Zero.
        pub pad: u8 => 1,
        /// What to log.
        pub key: U16 => 2,
        /// Bytes of payload to check.
        pub size: U32 => 4,
        /// Bytes to the next command; may lead into the payload.
        pub stride: U32 => 8,
        /// Zero.
        pub tail: [u8; 4] => 12,
    }
}

wire! {
    /// A prefetch command that is only its id: `STALL` and `TERMINATE`. Source: the original, seed
    /// 001 section 3.1.
    pub struct BareCmd[CMD_SIZE] {
        /// The id.
        pub cmd_id: u8 => 0,
        /// Zero.
        pub tail: [u8; 15] => 1,
    }
}

wire! {
    /// `PAGED_TO_RINGBUFFER`: copy `length` bytes of an interleaved DRAM buffer to the ring
    /// buffer's write pointer. Source: the original.
    pub struct PagedToRingbuffer[CMD_SIZE] {
        /// [`PrefetchCmdId::PagedToRingbuffer`].
        pub cmd_id: u8 => 0,
        /// [`RingbufferFlags`].
        pub flags: u8 => 1; bits RingbufferFlags,
        /// Binary logarithm of the page size in bytes.
        pub log2_page_size: u8 => 2 in 0..=MAX_LOG_PAGE_SIZE as u64,
        /// First page.
        pub start_page: u8 => 3,
        /// Bytes by which the write pointer moves afterwards.
        pub wp_offset_update: U32 => 4,
        /// Address of the buffer in each bank.
        pub base_addr: U32 => 8,
        /// Bytes; a multiple of the DRAM alignment.
        pub length: U32 => 12 in 1..=SCRATCH_DB.size() as u64,
    }
}

wire! {
    /// `SET_RINGBUFFER_OFFSET`: set the start of later ring-buffer reads, or the write pointer.
    /// Source: the original.
    pub struct SetRingbufferOffset[CMD_SIZE] {
        /// [`PrefetchCmdId::SetRingbufferOffset`].
        pub cmd_id: u8 => 0,
        /// Offset from the start of the ring buffer in bytes.
        pub offset: U32 => 1,
        /// Zero.
        pub pad1: U16 => 5,
        /// Zero.
        pub pad2: u8 => 7,
        /// Nonzero: set the write pointer instead of the read offset.
        pub update_wp: u8 => 8 in 0..=1,
        /// Zero.
        pub tail: [u8; 7] => 9,
    }
}

wire! {
    /// `RELAY_RINGBUFFER`: relay pieces of the ring buffer; `count` [`RelayRingbufferSub`] follow.
    /// Source: the original.
    pub struct RelayRingbuffer[CMD_SIZE] {
        /// [`PrefetchCmdId::RelayRingbuffer`].
        pub cmd_id: u8 => 0,
        /// Zero.
        pub pad1: u8 => 1,
        /// Sub-commands, at most [`RELAY_RINGBUFFER_MAX_SUBS`].
        pub count: U16 => 2 in 1..=RELAY_RINGBUFFER_MAX_SUBS as u64,
        /// Bytes to the next prefetch command, sub-commands included.
        pub stride: U32 => 4,
        /// Zero.
        pub tail: [u8; 8] => 8,
    }
}

wire! {
    /// One piece of a [`RelayRingbuffer`].
    pub struct RelayRingbufferSub[8] {
        /// Start, counted from the ring-buffer offset, in bytes.
        pub start: U32 => 0,
        /// Bytes.
        pub length: U32 => 4 in 1..=u32::MAX as u64,
    }
}
