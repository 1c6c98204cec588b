//! Bytes to prefetch commands.

use super::*;
use crate::dispatch::parse_debug;
use crate::error::{DecodeError, DecodeErrorKind, FieldError};
use crate::reader::Reader;
use tilework_abi::cq::prefetch::{
    self as abi, RELAY_PAGED_IS_DRAM, RELAY_PAGED_LENGTH_ADJUST_MASK, RELAY_PAGED_PACKED_MAX_SUBS,
    RELAY_RINGBUFFER_MAX_SUBS,
};

type Result<T> = std::result::Result<T, DecodeError>;

const MAX_U32: u64 = u32::MAX as u64;
const LAST_ID: u8 = PrefetchCmdId::ALL.len() as u8;

impl PrefetchCommand {
    /// Reads the command at the start of `bytes` and says how many bytes it fills, padding included.
    /// Nothing is read beyond `bytes`, and nothing is allocated beyond their number.
    ///
    /// # Errors
    /// What is wrong and where, from the start of `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize)> {
        let mut reader = Reader::new(bytes, "prefetch command");
        let found = reader.peek()?;
        let Ok(id) = PrefetchCmdId::try_from(found) else {
            return Err(reader.error(0, DecodeErrorKind::UnknownId { found, last: LAST_ID }));
        };
        reader.set_context(id.name());
        let command = parse_fields(id, &mut reader)?;
        // A capture may end with the last command instead of its padding.
        reader.pad(STRIDE);
        Ok((command, reader.pos()))
    }
}

fn parse_fields(id: PrefetchCmdId, r: &mut Reader<'_>) -> Result<PrefetchCommand> {
    use PrefetchCommand as C;
    Ok(match id {
        // `try_from` does not give this id out.
        PrefetchCmdId::Illegal => {
            return Err(r.error(0, DecodeErrorKind::UnknownId { found: 0, last: LAST_ID }));
        }
        PrefetchCmdId::RelayLinear => {
            let h: abi::RelayLinear = r.read("header")?;
            let length = h.length.get();
            r.range(3, "length", length, 1, u64::MAX)?;
            C::RelayLinear { noc_xy: h.noc_xy_addr.get(), addr: h.addr.get(), length }
        }
        PrefetchCmdId::RelayLinearH => {
            let h: abi::RelayLinearH = r.read("header")?;
            let length = h.length.get();
            r.range(16, "length", length, 1, MAX_LINEAR_H)?;
            C::RelayLinearH { noc_xy: h.noc_xy_addr.get(), addr: h.addr.get(), length }
        }
        PrefetchCmdId::RelayPaged => C::RelayPaged(paged(r)?),
        PrefetchCmdId::RelayPagedPacked => C::RelayPagedPacked(paged_packed(r)?),
        PrefetchCmdId::RelayInline => C::RelayInline(inline(r)?),
        PrefetchCmdId::RelayInlineNoflush => C::RelayInlineNoflush(inline(r)?),
        PrefetchCmdId::ExecBufEnd => C::ExecBufEnd(inline(r)?),
        PrefetchCmdId::ExecBuf => {
            let h: abi::ExecBuf = r.read("header")?;
            let log_page_size = h.log_page_size.get();
            r.range(8, "log_page_size", log_page_size, 0, MAX_LOG_PAGE_SIZE)?;
            r.range(12, "pages", h.pages.get(), 1, MAX_U32)?;
            C::ExecBuf { base_addr: h.base_addr.get(), log_page_size, pages: h.pages.get() }
        }
        PrefetchCmdId::Stall => bare(r, C::Stall)?,
        PrefetchCmdId::Terminate => bare(r, C::Terminate)?,
        PrefetchCmdId::Debug => {
            let mark = parse_debug(r)?;
            if !r.pos().is_multiple_of(STRIDE) {
                return Err(r.bad(8, FieldError::new("stride", r.pos(), "a multiple of 64")));
            }
            r.range(8, "stride", r.pos(), STRIDE as u64, u64::from(MAX_RECORD_BYTES))?;
            C::Debug(mark)
        }
        PrefetchCmdId::PagedToRingbuffer => {
            let h: abi::PagedToRingbuffer = r.read("header")?;
            let Some(flags) = RingbufferFlags::from_bits(h.flags) else {
                return Err(r.bad(1, FieldError::new("flags", h.flags, "bit 0 only")));
            };
            r.range(2, "log2_page_size", h.log2_page_size, 0, MAX_LOG_PAGE_SIZE)?;
            r.range(12, "length", h.length.get(), 1, u64::from(SCRATCH_DB.size()))?;
            C::PagedToRingbuffer {
                flags,
                log2_page_size: h.log2_page_size,
                start_page: h.start_page,
                wp_offset_update: h.wp_offset_update.get(),
                base_addr: h.base_addr.get(),
                length: h.length.get(),
            }
        }
        PrefetchCmdId::SetRingbufferOffset => {
            let h: abi::SetRingbufferOffset = r.read("header")?;
            let update_wp = r.flag(8, "update_wp", h.update_wp)?;
            C::SetRingbufferOffset { offset: h.offset.get(), update_wp }
        }
        PrefetchCmdId::RelayRingbuffer => C::RelayRingbuffer(ring_pieces(r)?),
    })
}

fn bare(r: &mut Reader<'_>, command: PrefetchCommand) -> Result<PrefetchCommand> {
    r.read::<abi::BareCmd>("header")?;
    Ok(command)
}

/// Checks that a stride covers what was read and skips to its end.
fn skip_stride(r: &mut Reader<'_>, at: usize, stride: u32) -> Result<()> {
    let read = r.pos();
    r.range(at, "stride", stride, read as u64, u64::from(MAX_RECORD_BYTES))?;
    if !stride.is_multiple_of(STRIDE as u32) {
        return Err(r.bad(at, FieldError::new("stride", stride, "a multiple of 64")));
    }
    r.pad_from(0, stride as usize);
    Ok(())
}

fn inline(r: &mut Reader<'_>) -> Result<Inline> {
    let h: abi::RelayInline = r.read("header")?;
    let Ok(dispatcher) = DispatcherSelect::try_from(h.dispatcher_type) else {
        return Err(r.bad(1, FieldError::new("dispatcher_type", h.dispatcher_type, "0 or 1")));
    };
    r.range(4, "length", h.length.get(), 1, MAX_RELAY_BYTES as u64)?;
    let payload = r.take(u64::from(h.length.get()), "payload")?.to_vec();
    skip_stride(r, 8, h.stride.get())?;
    Ok(Inline { dispatcher, payload })
}

fn paged(r: &mut Reader<'_>) -> Result<PagedRelay> {
    let h: abi::RelayPaged = r.read("header")?;
    r.range(8, "page_size", h.page_size.get(), 1, MAX_U32)?;
    r.range(12, "pages", h.pages.get(), 1, MAX_U32)?;
    let packed = h.is_dram_and_length_adjust.get();
    Ok(PagedRelay {
        is_dram: packed & RELAY_PAGED_IS_DRAM != 0,
        length_adjust: packed & RELAY_PAGED_LENGTH_ADJUST_MASK,
        start_page: h.start_page,
        base_addr: h.base_addr.get(),
        page_size: h.page_size.get(),
        pages: h.pages.get(),
    })
}

fn paged_packed(r: &mut Reader<'_>) -> Result<Vec<PagedSource>> {
    let h: abi::RelayPagedPacked = r.read("header")?;
    r.range(2, "count", h.count.get(), 1, RELAY_PAGED_PACKED_MAX_SUBS as u64)?;
    let mut sources = Vec::with_capacity(usize::from(h.count.get()));
    for _ in 0..h.count.get() {
        let at = r.pos();
        let sub: abi::RelayPagedPackedSub = r.read("sub-command")?;
        let log_page_size = sub.log_page_size.get();
        r.range(at + 2, "log_page_size", log_page_size, 0, MAX_LOG_PAGE_SIZE)?;
        let length = sub.length.get();
        r.range(at + 8, "length", length, 1, u64::from(SCRATCH_DB.size() / 2))?;
        let (start_page, base_addr) = (sub.start_page.get(), sub.base_addr.get());
        sources.push(PagedSource { start_page, log_page_size, base_addr, length });
    }
    let total: u64 = sources.iter().map(|source| u64::from(source.length)).sum();
    if u64::from(h.total_length.get()) != total {
        let expected = format!("{total}, the sum of the sub-commands");
        return Err(r.bad(4, FieldError::new("total_length", h.total_length.get(), expected)));
    }
    skip_stride(r, 8, h.stride.get())?;
    Ok(sources)
}

fn ring_pieces(r: &mut Reader<'_>) -> Result<Vec<RingPiece>> {
    let h: abi::RelayRingbuffer = r.read("header")?;
    r.range(2, "count", h.count.get(), 1, RELAY_RINGBUFFER_MAX_SUBS as u64)?;
    let mut pieces = Vec::with_capacity(usize::from(h.count.get()));
    for _ in 0..h.count.get() {
        let at = r.pos();
        let sub: abi::RelayRingbufferSub = r.read("sub-command")?;
        r.range(at + 4, "length", sub.length.get(), 1, MAX_U32)?;
        pieces.push(RingPiece { start: sub.start.get(), length: sub.length.get() });
    }
    skip_stride(r, 4, h.stride.get())?;
    Ok(pieces)
}
