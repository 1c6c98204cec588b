//! Exec buffers and the ring buffer.

use crate::codec::{CommandReader, CommandWriter, ParseResult, Payload, header_payload, narrow};
use crate::error::FieldError;
use std::fmt::{Formatter, Result as Shown};
use tilework_abi::cq::CMD_SIZE;
use tilework_abi::cq::prefetch::{self as abi, RingbufferFlags};

header_payload! {
    /// Payload of `EXEC_BUF`.
    pub struct ExecBuf: abi::ExecBuf {
        /// Address in each bank.
        pub base_addr: u32 = base_addr,
        /// Binary logarithm of the page size.
        pub log_page_size: u32 = log_page_size,
        /// Pages.
        pub pages: u32 = pages,
    }
    show(self, f) {
        write!(f, " {} pages of 2^{} bytes at {:#x}", self.pages, self.log_page_size, self.base_addr)
    }
}

header_payload! {
    /// Payload of `PAGED_TO_RINGBUFFER`.
    pub struct PagedToRing: abi::PagedToRingbuffer {
        /// Flags.
        pub flags: RingbufferFlags = flags,
        /// Binary logarithm of the page size.
        pub log2_page_size: u8 = log2_page_size,
        /// First page.
        pub start_page: u8 = start_page,
        /// Bytes by which the write pointer moves.
        pub wp_offset_update: u32 = wp_offset_update,
        /// Address in each bank.
        pub base_addr: u32 = base_addr,
        /// Bytes.
        pub length: u32 = length,
    }
    show(self, f) {
        let Self { length, start_page, log2_page_size, base_addr, wp_offset_update, .. } = self;
        let reset = if self.flags.is_empty() { "" } else { ", from its start" };
        write!(
            f,
            " {length} bytes from page {start_page} (2^{log2_page_size} bytes) of DRAM \
             {base_addr:#x}, write pointer +{wp_offset_update}{reset}"
        )
    }
}

header_payload! {
    /// Payload of `SET_RINGBUFFER_OFFSET`.
    pub struct RingOffset: abi::SetRingbufferOffset {
        /// Bytes from the start of the ring buffer.
        pub offset: u32 = offset,
        /// Set the write pointer instead of the read offset.
        pub update_wp: bool = update_wp,
    }
    show(self, f) {
        let what = if self.update_wp { "write pointer" } else { "read offset" };
        write!(f, " {what} = {:#x}", self.offset)
    }
}

/// One piece of a `RELAY_RINGBUFFER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPiece {
    /// Bytes from the ring-buffer offset.
    pub start: u32,
    /// Bytes.
    pub length: u32,
}

/// Payload of `RELAY_RINGBUFFER`: the pieces, at most 52.
impl Payload for Vec<RingPiece> {
    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError> {
        let count: u16 = narrow(abi::RelayRingbuffer::count, self.len())?;
        let size = CMD_SIZE + self.len() * size_of::<abi::RelayRingbufferSub>();
        let stride = out.stride(size)?.into();
        out.wire(&abi::RelayRingbuffer { cmd_id: out.id, count: count.into(), stride, ..Default::default() })?;
        self.iter().try_for_each(|piece| {
            let (start, length) = (piece.start.into(), piece.length.into());
            out.wire(&abi::RelayRingbufferSub { start, length })
        })
    }

    fn parse(r: &mut CommandReader<'_>) -> ParseResult<Self> {
        let h: abi::RelayRingbuffer = r.header()?;
        let piece = |_| {
            let sub: abi::RelayRingbufferSub = r.sub_command()?;
            Ok(RingPiece { start: sub.start.get(), length: sub.length.get() })
        };
        let pieces = (0..h.count.get()).map(piece).collect::<ParseResult<_>>()?;
        r.skip_stride(4, h.stride.get())?;
        Ok(pieces)
    }

    fn show(&self, f: &mut Formatter<'_>) -> Shown {
        let total: u64 = self.iter().map(|piece| u64::from(piece.length)).sum();
        write!(f, " {} pieces, {total} bytes", self.len())
    }
}
