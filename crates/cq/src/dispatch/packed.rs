//! `WRITE_PACKED` and `WRITE_PACKED_LARGE`.

use super::ALIGN;
use crate::codec::{CommandReader, CommandWriter, ParseResult, Payload, narrow};
use crate::display::{Data, Node, Plus, Rect, TARGETS, list};
use crate::error::FieldError;
use std::fmt::{Formatter, Result as Shown};
use tilework_abi::convert::{u16_of, u32_of};
use tilework_abi::cq::dispatch::{
    self as abi, WRITE_PACKED_MAX_MULTICAST_SUBS, WRITE_PACKED_MAX_UNICAST_SUBS, WritePackedFlags,
    WritePackedLargeFlags, WritePackedLargeType, WritePackedType,
};

/// Payload of `WRITE_PACKED`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedWrite {
    /// What is written (for the reader of a trace).
    pub kind: WritePackedType,
    /// Write offset added to `addr`.
    pub write_offset_index: u16,
    /// Address at every target.
    pub addr: u32,
    /// Where to.
    pub targets: PackedTargets,
    /// What.
    pub packets: Packets,
}

/// Targets of a [`PackedWrite`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PackedTargets {
    /// Nodes.
    Unicast(Vec<u32>),
    /// Rectangles and the number of nodes in each.
    Multicast(Vec<(u32, u32)>),
}

/// Packets of a [`PackedWrite`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packets {
    /// One packet for all targets (no stride).
    Shared(Vec<u8>),
    /// One packet of the same size for each target.
    PerTarget(Vec<Vec<u8>>),
}

impl PackedTargets {
    /// Number of targets.
    pub fn len(&self) -> usize {
        match self {
            Self::Unicast(nodes) => nodes.len(),
            Self::Multicast(rects) => rects.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError> {
        match self {
            Self::Unicast(nodes) => out.words(nodes),
            Self::Multicast(rects) => {
                for &(noc_xy, dests) in rects {
                    let (noc_xy_addr, num_mcast_dests) = (noc_xy.into(), dests.into());
                    out.wire(&abi::WritePackedMulticastSub { noc_xy_addr, num_mcast_dests })?;
                }
            }
        }
        Ok(())
    }

    fn parse(r: &mut CommandReader<'_>, multicast: bool, count: u16) -> ParseResult<Self> {
        if !multicast {
            return Ok(Self::Unicast(r.words(count.into(), "sub-commands")?));
        }
        let rect = |_| {
            let sub: abi::WritePackedMulticastSub = r.sub_command()?;
            Ok((sub.noc_xy_addr.get(), sub.num_mcast_dests.get()))
        };
        Ok(Self::Multicast((0..count).map(rect).collect::<ParseResult<_>>()?))
    }
}

impl Packets {
    /// Bytes of each packet; 0 when there is none.
    pub fn size(&self) -> usize {
        match self {
            Self::Shared(packet) => packet.len(),
            Self::PerTarget(packets) => packets.first().map_or(0, Vec::len),
        }
    }

    /// Number of packets stored.
    pub fn count(&self) -> usize {
        match self {
            Self::Shared(_) => 1,
            Self::PerTarget(packets) => packets.len(),
        }
    }
}

/// Most sub-commands of a `WRITE_PACKED`.
const fn max_targets(multicast: bool) -> u64 {
    let max = if multicast { WRITE_PACKED_MAX_MULTICAST_SUBS } else { WRITE_PACKED_MAX_UNICAST_SUBS };
    max as u64
}

impl Payload for PackedWrite {
    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError> {
        let multicast = matches!(self.targets, PackedTargets::Multicast(_));
        let (count, size) = (self.targets.len(), self.packets.size());
        FieldError::check("count", count, 1, max_targets(multicast))?;
        let mut flags = WritePackedFlags::from_bits_retain((self.kind as u8) << WritePackedFlags::TYPE_SHIFT);
        flags.set(WritePackedFlags::MULTICAST, multicast);
        flags.set(WritePackedFlags::NO_STRIDE, matches!(self.packets, Packets::Shared(_)));
        out.wire(&abi::WritePacked {
            cmd_id: out.id,
            flags: flags.bits(),
            count: u16_of(u32_of(count)).into(),
            write_offset_index: self.write_offset_index.into(),
            size: narrow::<u16>(abi::WritePacked::size, size)?.into(),
            addr: self.addr.into(),
            ..Default::default()
        })?;
        self.targets.emit(out)?;
        out.pad(ALIGN);
        match &self.packets {
            Packets::Shared(packet) => out.bytes(packet),
            Packets::PerTarget(packets) => {
                FieldError::check("number of packets", packets.len(), count as u64, count as u64)?;
                for packet in packets {
                    FieldError::check("packet size", packet.len(), size as u64, size as u64)?;
                    out.pad(ALIGN);
                    out.bytes(packet);
                }
            }
        }
        out.pad(ALIGN);
        Ok(())
    }

    fn parse(r: &mut CommandReader<'_>) -> ParseResult<Self> {
        let h: abi::WritePacked = r.header()?;
        let flags = WritePackedFlags::from_bits_retain(h.flags);
        let Ok(kind) = WritePackedType::try_from(h.flags >> WritePackedFlags::TYPE_SHIFT) else {
            let found = h.flags >> WritePackedFlags::TYPE_SHIFT;
            return Err(r.bad(1, FieldError::new("type", found, "0 to 5")));
        };
        let multicast = flags.contains(WritePackedFlags::MULTICAST);
        let (count, size) = (h.count.get(), u64::from(h.size.get()));
        r.range(2, "count", count, 1, max_targets(multicast))?;
        let targets = PackedTargets::parse(r, multicast, count)?;
        r.pad(ALIGN);
        let packets = if flags.contains(WritePackedFlags::NO_STRIDE) {
            Packets::Shared(r.take(size, "packet")?.to_vec())
        } else {
            let packet = |_| {
                r.pad(ALIGN);
                Ok(r.take(size, "packet")?.to_vec())
            };
            Packets::PerTarget((0..count).map(packet).collect::<ParseResult<_>>()?)
        };
        r.pad(ALIGN);
        let (write_offset_index, addr) = (h.write_offset_index.get(), h.addr.get());
        Ok(Self { kind, write_offset_index, addr, targets, packets })
    }

    fn show(&self, f: &mut Formatter<'_>) -> Shown {
        write!(f, " to {:#x}{} of ", self.addr, Plus(self.write_offset_index))?;
        match &self.targets {
            PackedTargets::Unicast(nodes) => list(f, nodes.iter().map(|&xy| Node(xy)))?,
            PackedTargets::Multicast(rects) => list(f, rects.iter().map(|&(xy, _)| Rect(xy)))?,
        }
        match &self.packets {
            Packets::Shared(packet) => write!(f, ", the same to all: {}", Data(packet)),
            Packets::PerTarget(packets) => {
                let first = packets.first().map_or(&[][..], Vec::as_slice);
                write!(f, ", one each: {}", Data(first))
            }
        }
    }
}

/// Payload of `WRITE_PACKED_LARGE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedLargeWrite {
    /// What is written (for the reader of a trace).
    pub kind: WritePackedLargeType,
    /// Alignment of the packets, a power of two.
    pub alignment: u16,
    /// Write offset added to every address.
    pub write_offset_index: u16,
    /// The packets, at most 35.
    pub subs: Vec<LargeSub>,
}

/// One packet of a [`PackedLargeWrite`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeSub {
    /// Rectangle.
    pub noc_xy: u32,
    /// Address at every node.
    pub addr: u32,
    /// Nodes of the rectangle, at least one.
    pub num_mcast_dests: u8,
    /// Last of a linked chain.
    pub unlink: bool,
    /// 1 to 65536 bytes.
    pub data: Vec<u8>,
}

impl LargeSub {
    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError> {
        FieldError::check("packet size", self.data.len(), 1, 1 << 16)?;
        let mut flags = WritePackedLargeFlags::empty();
        flags.set(WritePackedLargeFlags::UNLINK, self.unlink);
        out.wire(&abi::WritePackedLargeSub {
            noc_xy_addr: self.noc_xy.into(),
            addr: self.addr.into(),
            length_minus1: u16_of(u32_of(self.data.len() - 1)).into(),
            num_mcast_dests: self.num_mcast_dests,
            flags: flags.bits(),
        })
    }

    /// The sub-command without its data, and the size of that.
    fn parse(r: &mut CommandReader<'_>) -> ParseResult<(Self, u64)> {
        let sub: abi::WritePackedLargeSub = r.sub_command()?;
        let flags = WritePackedLargeFlags::from_bits_retain(sub.flags);
        let target = Self {
            noc_xy: sub.noc_xy_addr.get(),
            addr: sub.addr.get(),
            num_mcast_dests: sub.num_mcast_dests,
            unlink: flags.contains(WritePackedLargeFlags::UNLINK),
            data: Vec::new(),
        };
        Ok((target, u64::from(sub.length_minus1.get()) + 1))
    }
}

impl Payload for PackedLargeWrite {
    fn emit(&self, out: &mut CommandWriter<'_>) -> Result<(), FieldError> {
        let count: u16 = narrow(abi::WritePackedLarge::count, self.subs.len())?;
        check_alignment(self.alignment)?;
        out.wire(&abi::WritePackedLarge {
            cmd_id: out.id,
            kind: self.kind as u8,
            count: count.into(),
            alignment: self.alignment.into(),
            write_offset_index: self.write_offset_index.into(),
            ..Default::default()
        })?;
        for sub in &self.subs {
            sub.emit(out)?;
        }
        out.pad(ALIGN);
        let data = out.pos();
        for sub in &self.subs {
            out.bytes(&sub.data);
            out.pad_from(data, usize::from(self.alignment));
        }
        Ok(())
    }

    fn parse(r: &mut CommandReader<'_>) -> ParseResult<Self> {
        let h: abi::WritePackedLarge = r.header()?;
        let Ok(kind) = WritePackedLargeType::try_from(h.kind) else {
            return Err(r.bad(1, FieldError::new("type", h.kind, "0 to 2")));
        };
        let alignment = h.alignment.get();
        check_alignment(alignment).map_err(|error| r.bad(4, error))?;
        let targets: Vec<_> = (0..h.count.get()).map(|_| LargeSub::parse(r)).collect::<ParseResult<_>>()?;
        r.pad(ALIGN);
        // Packets are padded to a multiple of the alignment, counted from the first one.
        let base = r.pos();
        let mut subs = Vec::with_capacity(targets.len());
        for (target, size) in targets {
            subs.push(LargeSub { data: r.take(size, "packet")?.to_vec(), ..target });
            r.pad_from(base, usize::from(alignment));
        }
        Ok(Self { kind, alignment, write_offset_index: h.write_offset_index.get(), subs })
    }

    fn show(&self, f: &mut Formatter<'_>) -> Shown {
        write!(f, " {} packets", self.subs.len())?;
        for sub in self.subs.iter().take(TARGETS) {
            let unlink = if sub.unlink { "" } else { " linked" };
            let (rect, plus) = (Rect(sub.noc_xy), Plus(self.write_offset_index));
            write!(f, "; to {rect} ({} nodes) {:#x}{plus}{unlink}: ", sub.num_mcast_dests, sub.addr)?;
            write!(f, "{}", Data(&sub.data))?;
        }
        if self.subs.len() > TARGETS { f.write_str("; ...") } else { Ok(()) }
    }
}

fn check_alignment(alignment: u16) -> Result<(), FieldError> {
    if alignment.is_power_of_two() {
        return Ok(());
    }
    Err(FieldError::new("alignment", alignment, "a power of two"))
}
