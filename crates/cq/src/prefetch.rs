//! The prefetcher's commands as owned values: command to bytes and back.
//!
//! A prefetch command fills a multiple of 64 bytes, so that the next one is aligned for PCIe; `emit` pads
//! and `parse` consumes the whole stride. What a relay carries is bytes here; the commands inside are read by
//! [`crate::decode`].
//!
//! Layout: [`tilework_abi::cq::prefetch`]; seed 001 sections 2.2 and 3.1.

use crate::dispatch::DebugMark;
use tilework_abi::cq::layout::prefetch_core::{MAX_RECORD_BYTES, SCRATCH_DB};
use tilework_abi::cq::prefetch::{DispatcherSelect, PrefetchCmdId, RingbufferFlags};
use tilework_abi::cq::{CMD_SIZE, PREFETCH_BARE_STRIDE};

mod emit;
mod parse;

/// Most bytes that one relay can carry: a record less its header.
pub const MAX_RELAY_BYTES: usize = MAX_RECORD_BYTES as usize - CMD_SIZE;

/// Largest page size logarithm that a 32-bit shift on the device survives.
const MAX_LOG_PAGE_SIZE: u64 = 31;

/// Alignment of prefetch commands.
const STRIDE: usize = PREFETCH_BARE_STRIDE;

/// Most bytes of a `RELAY_LINEAR_H`: the scratch buffer less a 64-byte header.
const MAX_LINEAR_H: u64 = SCRATCH_DB.size() as u64 - PREFETCH_BARE_STRIDE as u64;

/// A prefetch command with all it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefetchCommand {
    /// Relay bytes read from a node.
    RelayLinear {
        /// Source node.
        noc_xy: u32,
        /// Address there.
        addr: u64,
        /// Bytes.
        length: u64,
    },
    /// The same on the prefetch_h side.
    RelayLinearH {
        /// Source node.
        noc_xy: u32,
        /// Address there.
        addr: u64,
        /// Bytes, at most the scratch buffer less 64.
        length: u32,
    },
    /// Relay pages of an interleaved buffer.
    RelayPaged(PagedRelay),
    /// Relay from several interleaved DRAM buffers, at most 35.
    RelayPagedPacked(Vec<PagedSource>),
    /// Relay the payload and hand its pages to the dispatcher.
    RelayInline(Inline),
    /// Relay the payload and keep the last page open.
    RelayInlineNoflush(Inline),
    /// Execute commands from a DRAM buffer.
    ExecBuf {
        /// Address in each bank.
        base_addr: u32,
        /// Binary logarithm of the page size.
        log_page_size: u32,
        /// Pages.
        pages: u32,
    },
    /// End of such a buffer; relays its payload.
    ExecBufEnd(Inline),
    /// Wait for the dispatcher's notification.
    Stall,
    /// Log a waypoint. Header and body fill a multiple of 64 bytes.
    Debug(DebugMark),
    /// End the prefetcher.
    Terminate,
    /// Copy pages to the ring buffer.
    PagedToRingbuffer {
        /// Flags.
        flags: RingbufferFlags,
        /// Binary logarithm of the page size.
        log2_page_size: u8,
        /// First page.
        start_page: u8,
        /// Bytes by which the write pointer moves.
        wp_offset_update: u32,
        /// Address in each bank.
        base_addr: u32,
        /// Bytes.
        length: u32,
    },
    /// Set the ring buffer's read offset or write pointer.
    SetRingbufferOffset {
        /// Bytes from its start.
        offset: u32,
        /// Set the write pointer.
        update_wp: bool,
    },
    /// Relay pieces of the ring buffer, at most 52.
    RelayRingbuffer(Vec<RingPiece>),
}

/// Payload of the inline relays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inline {
    /// Which dispatcher it is for.
    pub dispatcher: DispatcherSelect,
    /// The bytes, 1 to [`MAX_RELAY_BYTES`].
    pub payload: Vec<u8>,
}

/// Payload of `RELAY_PAGED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagedRelay {
    /// DRAM rather than L1 banks.
    pub is_dram: bool,
    /// Bytes taken off the total, at most 0x7fff.
    pub length_adjust: u16,
    /// First page.
    pub start_page: u8,
    /// Address in each bank.
    pub base_addr: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Pages.
    pub pages: u32,
}

/// One source of a `RELAY_PAGED_PACKED`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PagedSource {
    /// First page.
    pub start_page: u16,
    /// Binary logarithm of the page size.
    pub log_page_size: u16,
    /// Address in each bank.
    pub base_addr: u32,
    /// Bytes.
    pub length: u32,
}

/// One piece of a `RELAY_RINGBUFFER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPiece {
    /// Bytes from the ring-buffer offset.
    pub start: u32,
    /// Bytes.
    pub length: u32,
}

impl PrefetchCommand {
    /// The relay that carries `payload` to the dispatcher.
    pub fn relay_inline(payload: Vec<u8>) -> Self {
        Self::RelayInline(Inline { dispatcher: DispatcherSelect::Master, payload })
    }

    /// The command's id.
    pub fn id(&self) -> PrefetchCmdId {
        match self {
            Self::RelayLinear { .. } => PrefetchCmdId::RelayLinear,
            Self::RelayLinearH { .. } => PrefetchCmdId::RelayLinearH,
            Self::RelayPaged(_) => PrefetchCmdId::RelayPaged,
            Self::RelayPagedPacked(_) => PrefetchCmdId::RelayPagedPacked,
            Self::RelayInline(_) => PrefetchCmdId::RelayInline,
            Self::RelayInlineNoflush(_) => PrefetchCmdId::RelayInlineNoflush,
            Self::ExecBuf { .. } => PrefetchCmdId::ExecBuf,
            Self::ExecBufEnd(_) => PrefetchCmdId::ExecBufEnd,
            Self::Stall => PrefetchCmdId::Stall,
            Self::Debug(_) => PrefetchCmdId::Debug,
            Self::Terminate => PrefetchCmdId::Terminate,
            Self::PagedToRingbuffer { .. } => PrefetchCmdId::PagedToRingbuffer,
            Self::SetRingbufferOffset { .. } => PrefetchCmdId::SetRingbufferOffset,
            Self::RelayRingbuffer(_) => PrefetchCmdId::RelayRingbuffer,
        }
    }
}
