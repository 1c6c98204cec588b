//! Prefetch commands to bytes.

use super::*;
use crate::error::{EncodeError, FieldError, in_range};
use crate::reader::pad_to;
use tilework_abi::cq::prefetch::{
    self as abi, RELAY_PAGED_IS_DRAM, RELAY_PAGED_LENGTH_ADJUST_MASK, RELAY_PAGED_PACKED_MAX_SUBS,
    RELAY_RINGBUFFER_MAX_SUBS,
};
use zerocopy::IntoBytes;

const MAX_U32: u64 = u32::MAX as u64;

impl PrefetchCommand {
    /// Appends the command's bytes, a multiple of 64. On an error `out` is as before.
    ///
    /// # Errors
    /// A field that the header cannot hold or the prefetcher could not execute.
    pub fn emit(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = out.len();
        match self.emit_fields(out) {
            Ok(()) => {
                pad_to(out, start, STRIDE);
                Ok(())
            }
            Err(error) => {
                out.truncate(start);
                Err(error.in_command(self.id().name()))
            }
        }
    }

    /// The command's bytes.
    ///
    /// # Errors
    /// As [`PrefetchCommand::emit`].
    pub fn to_bytes(&self) -> Result<Vec<u8>, EncodeError> {
        let mut out = Vec::new();
        self.emit(&mut out)?;
        Ok(out)
    }

    fn emit_fields(&self, out: &mut Vec<u8>) -> Result<(), FieldError> {
        let cmd_id = self.id() as u8;
        match self {
            &Self::RelayLinear { noc_xy, addr, length } => {
                in_range("length", length, 1, u64::MAX)?;
                let header = abi::RelayLinear {
                    cmd_id,
                    length: length.into(),
                    noc_xy_addr: noc_xy.into(),
                    addr: addr.into(),
                    ..Default::default()
                };
                out.extend_from_slice(header.as_bytes());
            }
            &Self::RelayLinearH { noc_xy, addr, length } => {
                in_range("length", length, 1, MAX_LINEAR_H)?;
                let header = abi::RelayLinearH {
                    cmd_id,
                    noc_xy_addr: noc_xy.into(),
                    addr: addr.into(),
                    length: length.into(),
                    ..Default::default()
                };
                out.extend_from_slice(header.as_bytes());
            }
            Self::RelayPaged(relay) => relay.emit(cmd_id, out)?,
            Self::RelayPagedPacked(sources) => paged_packed(cmd_id, sources, out)?,
            Self::RelayInline(inline) | Self::RelayInlineNoflush(inline) | Self::ExecBufEnd(inline) => {
                inline.emit(cmd_id, out)?
            }
            &Self::ExecBuf { base_addr, log_page_size, pages } => {
                in_range("log_page_size", log_page_size, 0, MAX_LOG_PAGE_SIZE)?;
                in_range("pages", pages, 1, MAX_U32)?;
                let header = abi::ExecBuf {
                    cmd_id,
                    base_addr: base_addr.into(),
                    log_page_size: log_page_size.into(),
                    pages: pages.into(),
                    ..Default::default()
                };
                out.extend_from_slice(header.as_bytes());
            }
            Self::Stall | Self::Terminate => {
                let header = abi::BareCmd { cmd_id, ..Default::default() };
                out.extend_from_slice(header.as_bytes());
            }
            Self::Debug(mark) => {
                let stride = CMD_SIZE + mark.body.len();
                in_range("stride", stride, STRIDE as u64, u64::from(MAX_RECORD_BYTES))?;
                if !stride.is_multiple_of(STRIDE) {
                    return Err(FieldError::new("stride", stride, "a multiple of 64"));
                }
                out.extend_from_slice(mark.header(cmd_id, stride as u32).as_bytes());
                out.extend_from_slice(&mark.body);
            }
            &Self::PagedToRingbuffer { flags, log2_page_size, start_page, wp_offset_update, base_addr, length } => {
                let unknown = flags.difference(RingbufferFlags::all()).bits();
                in_range("unknown flags", unknown, 0, 0)?;
                in_range("log2_page_size", log2_page_size, 0, MAX_LOG_PAGE_SIZE)?;
                in_range("length", length, 1, u64::from(SCRATCH_DB.size()))?;
                let header = abi::PagedToRingbuffer {
                    cmd_id,
                    flags: flags.bits(),
                    log2_page_size,
                    start_page,
                    wp_offset_update: wp_offset_update.into(),
                    base_addr: base_addr.into(),
                    length: length.into(),
                };
                out.extend_from_slice(header.as_bytes());
            }
            &Self::SetRingbufferOffset { offset, update_wp } => {
                let header = abi::SetRingbufferOffset {
                    cmd_id,
                    offset: offset.into(),
                    update_wp: update_wp.into(),
                    ..Default::default()
                };
                out.extend_from_slice(header.as_bytes());
            }
            Self::RelayRingbuffer(pieces) => ring_pieces(cmd_id, pieces, out)?,
        }
        Ok(())
    }
}

impl Inline {
    fn emit(&self, cmd_id: u8, out: &mut Vec<u8>) -> Result<(), FieldError> {
        in_range("length", self.payload.len(), 1, MAX_RELAY_BYTES as u64)?;
        let stride = (CMD_SIZE + self.payload.len()).next_multiple_of(STRIDE);
        let header = abi::RelayInline {
            cmd_id,
            dispatcher_type: self.dispatcher as u8,
            length: (self.payload.len() as u32).into(),
            stride: (stride as u32).into(),
            ..Default::default()
        };
        out.extend_from_slice(header.as_bytes());
        out.extend_from_slice(&self.payload);
        Ok(())
    }
}

impl PagedRelay {
    fn emit(&self, cmd_id: u8, out: &mut Vec<u8>) -> Result<(), FieldError> {
        let mask = RELAY_PAGED_LENGTH_ADJUST_MASK;
        in_range("length_adjust", self.length_adjust, 0, u64::from(mask))?;
        in_range("page_size", self.page_size, 1, MAX_U32)?;
        in_range("pages", self.pages, 1, MAX_U32)?;
        let is_dram = if self.is_dram { RELAY_PAGED_IS_DRAM } else { 0 };
        let header = abi::RelayPaged {
            cmd_id,
            start_page: self.start_page,
            is_dram_and_length_adjust: (is_dram | self.length_adjust).into(),
            base_addr: self.base_addr.into(),
            page_size: self.page_size.into(),
            pages: self.pages.into(),
        };
        out.extend_from_slice(header.as_bytes());
        Ok(())
    }
}

fn paged_packed(cmd_id: u8, sources: &[PagedSource], out: &mut Vec<u8>) -> Result<(), FieldError> {
    in_range("count", sources.len(), 1, RELAY_PAGED_PACKED_MAX_SUBS as u64)?;
    let total: u64 = sources.iter().map(|source| u64::from(source.length)).sum();
    in_range("total_length", total, 1, MAX_U32)?;
    let size = CMD_SIZE + sources.len() * size_of::<abi::RelayPagedPackedSub>();
    let header = abi::RelayPagedPacked {
        cmd_id,
        count: (sources.len() as u16).into(),
        total_length: (total as u32).into(),
        stride: (size.next_multiple_of(STRIDE) as u32).into(),
        ..Default::default()
    };
    out.extend_from_slice(header.as_bytes());
    for source in sources {
        in_range("log_page_size", source.log_page_size, 0, MAX_LOG_PAGE_SIZE)?;
        in_range("length", source.length, 1, u64::from(SCRATCH_DB.size() / 2))?;
        let sub = abi::RelayPagedPackedSub {
            start_page: source.start_page.into(),
            log_page_size: source.log_page_size.into(),
            base_addr: source.base_addr.into(),
            length: source.length.into(),
        };
        out.extend_from_slice(sub.as_bytes());
    }
    Ok(())
}

fn ring_pieces(cmd_id: u8, pieces: &[RingPiece], out: &mut Vec<u8>) -> Result<(), FieldError> {
    in_range("count", pieces.len(), 1, RELAY_RINGBUFFER_MAX_SUBS as u64)?;
    let size = CMD_SIZE + pieces.len() * size_of::<abi::RelayRingbufferSub>();
    let header = abi::RelayRingbuffer {
        cmd_id,
        count: (pieces.len() as u16).into(),
        stride: (size.next_multiple_of(STRIDE) as u32).into(),
        ..Default::default()
    };
    out.extend_from_slice(header.as_bytes());
    for piece in pieces {
        in_range("length", piece.length, 1, MAX_U32)?;
        let sub = abi::RelayRingbufferSub { start: piece.start.into(), length: piece.length.into() };
        out.extend_from_slice(sub.as_bytes());
    }
    Ok(())
}
