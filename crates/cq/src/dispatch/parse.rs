//! Bytes to dispatch commands.

use super::*;
use crate::error::{DecodeError, DecodeErrorKind, FieldError};
use crate::reader::Reader;
use tilework_abi::cq::CMD_SIZE;
use tilework_abi::cq::dispatch::{
    self as abi, GO_NO_MULTICAST, GO_SIGNAL_NOC_DATA_MAX_WORDS, WRITE_OFFSETS, WRITE_PACKED_LARGE_MAX_SUBS,
    WritePackedFlags, WritePackedLargeFlags,
};
use tilework_abi::cq::layout::{PAGE_SIZE, WORKER_SEMS};
use zerocopy::FromBytes;
use zerocopy::little_endian::U32;

type Result<T> = std::result::Result<T, DecodeError>;

/// The largest write offset index.
const LAST_OFFSET: u64 = WRITE_OFFSETS as u64 - 1;

impl DispatchCommand {
    /// Reads the command at the start of `bytes` and says how many bytes it has. Nothing is read beyond
    /// `bytes`, and nothing is allocated beyond their number.
    ///
    /// # Errors
    /// What is wrong and where, from the start of `bytes`.
    pub fn parse(bytes: &[u8]) -> Result<(Self, usize)> {
        let mut reader = Reader::new(bytes, "dispatch command");
        let found = reader.peek()?;
        let Ok(id) = DispatchCmdId::try_from(found) else {
            let last = DispatchCmdId::ALL.len() as u8;
            return Err(reader.error(0, DecodeErrorKind::UnknownId { found, last }));
        };
        reader.set_context(id.name());
        let command = parse_fields(id, &mut reader)?;
        Ok((command, reader.pos()))
    }
}

fn parse_fields(id: DispatchCmdId, r: &mut Reader<'_>) -> Result<DispatchCommand> {
    use DispatchCommand as C;
    Ok(match id {
        // `try_from` does not give this id out.
        DispatchCmdId::Illegal => {
            return Err(r.error(0, DecodeErrorKind::UnknownId { found: 0, last: C::LAST_ID }));
        }
        DispatchCmdId::WriteLinear => C::WriteLinear(linear(r)?),
        DispatchCmdId::WriteLinearH => C::WriteLinearH(linear(r)?),
        DispatchCmdId::WriteLinearHHost => {
            let h: abi::WriteHost = r.read("header")?;
            let is_event = r.flag(1, "is_event", h.is_event)?;
            let length = h.length.get();
            r.range(8, "length", length, CMD_SIZE as u64 + 1, u64::MAX)?;
            let payload = r.take(length - CMD_SIZE as u64, "payload")?.to_vec();
            C::WriteHost(HostWrite { is_event, payload })
        }
        DispatchCmdId::WritePaged => C::WritePaged(paged(r)?),
        DispatchCmdId::WritePacked => C::WritePacked(packed(r)?),
        DispatchCmdId::WritePackedLarge => C::WritePackedLarge(packed_large(r)?),
        DispatchCmdId::Wait => {
            let h: abi::Wait = r.read("header")?;
            let Some(flags) = WaitFlags::from_bits(h.flags) else {
                return Err(r.bad(1, FieldError::new("flags", h.flags, "bits 0 to 4 only")));
            };
            let (stream, addr, count) = (h.stream.get(), h.addr.get(), h.count.get());
            C::Wait(Wait { flags, stream, addr, count })
        }
        DispatchCmdId::Debug => C::Debug(debug(r)?),
        DispatchCmdId::Sink => bare(r, C::Sink)?,
        DispatchCmdId::ExecBufEnd => bare(r, C::ExecBufEnd)?,
        DispatchCmdId::Terminate => bare(r, C::Terminate)?,
        DispatchCmdId::Delay => {
            let h: abi::Delay = r.read("header")?;
            C::Delay(h.delay.get())
        }
        DispatchCmdId::SetWriteOffset => {
            let h: abi::SetWriteOffset = r.read("header")?;
            r.range(1, "offset_count", h.offset_count, 0, WRITE_OFFSETS as u64)?;
            let offsets = words(r, u64::from(h.offset_count), "offsets")?;
            C::SetWriteOffset { program_host_id: h.program_host_id.get(), offsets }
        }
        DispatchCmdId::SendGoSignal => C::SendGoSignal(go_signal(r)?),
        DispatchCmdId::NotifySubordinateGoSignal => {
            let h: abi::NotifySubordinateGoSignal = r.read("header")?;
            let wait = r.flag(1, "wait", h.wait)?;
            let index_bitmask = h.index_bitmask.get();
            r.range(2, "index_bitmask", index_bitmask, 0, (1 << WORKER_SEMS) - 1)?;
            C::NotifySubordinate { wait, index_bitmask }
        }
        DispatchCmdId::SetNumWorkerSems => {
            let h: abi::SetNumWorkerSems = r.read("header")?;
            let count = h.num_worker_sems.get();
            r.range(4, "num_worker_sems", count, 0, u64::from(WORKER_SEMS))?;
            C::SetNumWorkerSems(count)
        }
        DispatchCmdId::SetGoSignalNocData => {
            let h: abi::SetGoSignalNocData = r.read("header")?;
            let count = h.num_words.get();
            r.range(4, "num_words", count, 0, GO_SIGNAL_NOC_DATA_MAX_WORDS as u64)?;
            C::SetGoSignalNocData(words(r, u64::from(count), "NoC words")?)
        }
        DispatchCmdId::Timestamp => {
            let h: abi::Timestamp = r.read("header")?;
            C::Timestamp { noc_xy: h.noc_xy_addr.get(), addr: h.addr.get() }
        }
    })
}

impl DispatchCommand {
    const LAST_ID: u8 = DispatchCmdId::ALL.len() as u8;
}

fn bare(r: &mut Reader<'_>, command: DispatchCommand) -> Result<DispatchCommand> {
    r.read::<abi::BareCmd>("header")?;
    Ok(command)
}

/// Reads a `DEBUG` of either set.
pub(crate) fn debug(r: &mut Reader<'_>) -> Result<DebugMark> {
    let h: abi::DebugCmd = r.read("header")?;
    let stride = u64::from(h.stride.get());
    r.range(8, "stride", stride, CMD_SIZE as u64, u64::from(u32::MAX))?;
    let body = r.take(stride - CMD_SIZE as u64, "body")?.to_vec();
    Ok(DebugMark { key: h.key.get(), size: h.size.get(), body })
}

fn linear(r: &mut Reader<'_>) -> Result<LinearWrite> {
    let h: abi::WriteLinear = r.read("header")?;
    r.range(2, "write_offset_index", h.write_offset_index, 0, LAST_OFFSET)?;
    r.range(16, "length", h.length.get(), 1, u64::MAX)?;
    Ok(LinearWrite {
        num_mcast_dests: h.num_mcast_dests,
        write_offset_index: h.write_offset_index,
        noc_xy: h.noc_xy_addr.get(),
        addr: h.addr.get(),
        data: r.take(h.length.get(), "data")?.to_vec(),
    })
}

fn paged(r: &mut Reader<'_>) -> Result<PagedWrite> {
    let h: abi::WritePaged = r.read("header")?;
    let is_dram = r.flag(1, "is_dram", h.is_dram)?;
    let (page_size, pages) = (h.page_size.get(), h.pages.get());
    r.range(8, "page_size", page_size, 1, u64::from(u32::MAX))?;
    let size = u64::from(page_size) * u64::from(pages);
    r.range(12, "pages times page_size", size, 1, u64::from(u32::MAX))?;
    Ok(PagedWrite {
        is_dram,
        start_page: h.start_page.get(),
        base_addr: h.base_addr.get(),
        page_size,
        data: r.take(size, "pages")?.to_vec(),
    })
}

fn packed(r: &mut Reader<'_>) -> Result<PackedWrite> {
    let h: abi::WritePacked = r.read("header")?;
    let flags = WritePackedFlags::from_bits_retain(h.flags);
    let multicast = flags.contains(WritePackedFlags::MULTICAST);
    if WritePackedFlags::from_bits(h.flags).is_none() {
        return Err(r.bad(1, FieldError::new("flags", h.flags, "bits 0, 1 and 4 to 7 only")));
    }
    let Ok(kind) = WritePackedType::try_from(h.flags >> WritePackedFlags::TYPE_SHIFT) else {
        let found = h.flags >> WritePackedFlags::TYPE_SHIFT;
        return Err(r.bad(1, FieldError::new("type", found, "0 to 5")));
    };
    let max = if multicast { WRITE_PACKED_MAX_MULTICAST_SUBS } else { WRITE_PACKED_MAX_UNICAST_SUBS };
    let count = h.count.get();
    r.range(2, "count", count, 1, max as u64)?;
    r.range(4, "write_offset_index", h.write_offset_index.get(), 0, LAST_OFFSET)?;
    let size = u64::from(h.size.get());
    r.range(6, "size", size, 1, u64::from(PAGE_SIZE))?;

    let targets = if multicast {
        let mut rects = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let at = r.pos();
            let sub: abi::WritePackedMulticastSub = r.read("sub-command")?;
            let dests = sub.num_mcast_dests.get();
            r.range(at + 4, "num_mcast_dests", dests, 1, u64::from(u32::MAX))?;
            rects.push((sub.noc_xy_addr.get(), dests));
        }
        PackedTargets::Multicast(rects)
    } else {
        PackedTargets::Unicast(words(r, u64::from(count), "sub-commands")?)
    };
    r.pad(ALIGN);
    let packets = if flags.contains(WritePackedFlags::NO_STRIDE) {
        Packets::Shared(r.take(size, "packet")?.to_vec())
    } else {
        let mut packets = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            r.pad(ALIGN);
            packets.push(r.take(size, "packet")?.to_vec());
        }
        Packets::PerTarget(packets)
    };
    r.pad(ALIGN);
    Ok(PackedWrite { kind, write_offset_index: h.write_offset_index.get(), addr: h.addr.get(), targets, packets })
}

fn packed_large(r: &mut Reader<'_>) -> Result<PackedLargeWrite> {
    let h: abi::WritePackedLarge = r.read("header")?;
    let Ok(kind) = WritePackedLargeType::try_from(h.kind) else {
        return Err(r.bad(1, FieldError::new("type", h.kind, "0 to 2")));
    };
    r.range(2, "count", h.count.get(), 1, WRITE_PACKED_LARGE_MAX_SUBS as u64)?;
    let alignment = h.alignment.get();
    if !alignment.is_power_of_two() {
        return Err(r.bad(4, FieldError::new("alignment", alignment, "a power of two")));
    }
    r.range(6, "write_offset_index", h.write_offset_index.get(), 0, LAST_OFFSET)?;
    let mut subs = Vec::with_capacity(usize::from(h.count.get()));
    let mut sizes = Vec::with_capacity(subs.capacity());
    for _ in 0..h.count.get() {
        let at = r.pos();
        let sub: abi::WritePackedLargeSub = r.read("sub-command")?;
        r.range(at + 10, "num_mcast_dests", sub.num_mcast_dests, 1, u64::from(u8::MAX))?;
        let Some(flags) = WritePackedLargeFlags::from_bits(sub.flags) else {
            return Err(r.bad(at + 11, FieldError::new("flags", sub.flags, "bit 0 only")));
        };
        sizes.push(u64::from(sub.length_minus1.get()) + 1);
        subs.push(LargeSub {
            noc_xy: sub.noc_xy_addr.get(),
            addr: sub.addr.get(),
            num_mcast_dests: sub.num_mcast_dests,
            unlink: flags.contains(WritePackedLargeFlags::UNLINK),
            data: Vec::new(),
        });
    }
    r.pad(ALIGN);
    // Packets are padded to a multiple of the alignment, counted from the first one.
    let base = r.pos();
    for (sub, size) in subs.iter_mut().zip(sizes) {
        sub.data = r.take(size, "packet")?.to_vec();
        r.pad_from(base, usize::from(alignment));
    }
    Ok(PackedLargeWrite { kind, alignment, write_offset_index: h.write_offset_index.get(), subs })
}

fn go_signal(r: &mut Reader<'_>) -> Result<GoSignal> {
    let h: abi::SendGoSignal = r.read("header")?;
    let last = u64::from(h.noc_data_start_index) + u64::from(h.num_unicast_txns);
    r.range(6, "end of the used NoC words", last, 0, GO_SIGNAL_NOC_DATA_MAX_WORDS as u64)?;
    Ok(GoSignal {
        go_signal: h.go_signal.get(),
        multicast_go_offset: Some(h.multicast_go_offset).filter(|&o| o != GO_NO_MULTICAST),
        num_unicast_txns: h.num_unicast_txns,
        noc_data_start_index: h.noc_data_start_index,
        wait_count: h.wait_count.get(),
        wait_stream: h.wait_stream.get(),
    })
}

fn words(r: &mut Reader<'_>, count: u64, field: &'static str) -> Result<Vec<u32>> {
    let bytes = r.take(count * 4, field)?;
    // The length is a multiple of four, so nothing is left over.
    Ok(<[U32]>::ref_from_bytes(bytes).map_or_else(|_| Vec::new(), |w| w.iter().map(|w| w.get()).collect()))
}
