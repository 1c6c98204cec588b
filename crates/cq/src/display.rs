//! How `tilework cq decode` prints commands: one line each, name first, payloads by size and first bytes.

use crate::decode::{DecodedInner, DecodedRecord, InnerCommand};
use crate::dispatch::{DispatchCommand, HostWrite, PackedTargets, Packets};
use crate::prefetch::PrefetchCommand;
use std::fmt::{Display, Formatter, Result};
use tilework_abi::cq::dispatch::WaitFlags;
use tilework_abi::cq::layout::PCIE_NOC_XY_MARK;
use tilework_abi::cq::prefetch::DispatcherSelect;

/// How many bytes of a payload are shown.
const SHOWN: usize = 8;

/// How many targets of a list are shown.
const TARGETS: usize = 4;

impl Display for DecodedRecord {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{:#010x}  {}, record of {} bytes", self.offset, self.command, self.size)?;
        for inner in &self.inner {
            write!(f, "\n{inner}")?;
        }
        Ok(())
    }
}

impl Display for DecodedInner {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{:#010x}    {}", self.offset, self.command)
    }
}

impl Display for InnerCommand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        match self {
            Self::Whole(command) => command.fmt(f),
            Self::Head { id, missing } => {
                write!(f, "{} (the next relay brings the other {missing} bytes)", id.name())
            }
        }
    }
}

impl Display for PrefetchCommand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(self.id().name())?;
        match self {
            Self::RelayLinear { noc_xy, addr, length } => {
                write!(f, " {length} bytes from {} {addr:#x}", Node(*noc_xy))
            }
            Self::RelayLinearH { noc_xy, addr, length } => {
                write!(f, " {length} bytes from {} {addr:#x}", Node(*noc_xy))
            }
            Self::RelayPaged(relay) => write!(
                f,
                " {} pages of {} bytes from page {} of {} {:#x}, less {} bytes",
                relay.pages,
                relay.page_size,
                relay.start_page,
                bank(relay.is_dram),
                relay.base_addr,
                relay.length_adjust
            ),
            Self::RelayPagedPacked(sources) => {
                let total: u64 = sources.iter().map(|source| u64::from(source.length)).sum();
                write!(f, " {} buffers, {total} bytes", sources.len())
            }
            Self::RelayInline(inline) | Self::RelayInlineNoflush(inline) | Self::ExecBufEnd(inline) => {
                let to = match inline.dispatcher {
                    DispatcherSelect::Master => "dispatcher",
                    DispatcherSelect::Subordinate => "subordinate",
                };
                write!(f, " {} bytes to the {to}", inline.payload.len())
            }
            Self::ExecBuf { base_addr, log_page_size, pages } => {
                write!(f, " {pages} pages of 2^{log_page_size} bytes at {base_addr:#x}")
            }
            Self::Stall | Self::Terminate => Ok(()),
            Self::Debug(mark) => write!(f, " key {:#x}, {} bytes checked", mark.key, mark.size),
            Self::PagedToRingbuffer { flags, log2_page_size, start_page, wp_offset_update, base_addr, length } => {
                let reset = if flags.is_empty() { "" } else { ", from its start" };
                write!(
                    f,
                    " {length} bytes from page {start_page} (2^{log2_page_size} bytes) of DRAM \
                     {base_addr:#x}, write pointer +{wp_offset_update}{reset}"
                )
            }
            Self::SetRingbufferOffset { offset, update_wp } => {
                let what = if *update_wp { "write pointer" } else { "read offset" };
                write!(f, " {what} = {offset:#x}")
            }
            Self::RelayRingbuffer(pieces) => {
                let total: u64 = pieces.iter().map(|piece| u64::from(piece.length)).sum();
                write!(f, " {} pieces, {total} bytes", pieces.len())
            }
        }
    }
}

impl Display for DispatchCommand {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.write_str(self.id().name())?;
        match self {
            Self::WriteLinear(write) | Self::WriteLinearH(write) => {
                match write.num_mcast_dests {
                    0 => write!(f, " to {}", Node(write.noc_xy))?,
                    dests => write!(f, " to {} ({dests} nodes)", Rect(write.noc_xy))?,
                }
                write!(f, " {:#x}{}: {}", write.addr, Plus(write.write_offset_index.into()), Data(&write.data))
            }
            Self::WriteHost(HostWrite { is_event: true, payload }) => match payload.first_chunk() {
                Some(id) => write!(f, " event {}", u32::from_le_bytes(*id)),
                None => write!(f, " event of {} bytes", payload.len()),
            },
            Self::WriteHost(write) => write!(f, " data: {}", Data(&write.payload)),
            Self::WritePaged(write) => write!(
                f,
                " {} pages of {} bytes to page {} of {} {:#x}",
                write.data.len() / (write.page_size as usize).max(1),
                write.page_size,
                write.start_page,
                bank(write.is_dram),
                write.base_addr
            ),
            Self::WritePacked(write) => {
                write!(f, " to {:#x}{} of ", write.addr, Plus(write.write_offset_index))?;
                match &write.targets {
                    PackedTargets::Unicast(nodes) => list(f, nodes.iter().map(|&xy| Node(xy)))?,
                    PackedTargets::Multicast(rects) => {
                        list(f, rects.iter().map(|&(xy, _)| Rect(xy)))?;
                    }
                }
                match &write.packets {
                    Packets::Shared(packet) => write!(f, ", the same to all: {}", Data(packet)),
                    Packets::PerTarget(packets) => {
                        let first = packets.first().map_or(&[][..], Vec::as_slice);
                        write!(f, ", one each: {}", Data(first))
                    }
                }
            }
            Self::WritePackedLarge(write) => {
                write!(f, " {} packets", write.subs.len())?;
                for sub in write.subs.iter().take(TARGETS) {
                    let unlink = if sub.unlink { "" } else { " linked" };
                    let plus = Plus(write.write_offset_index);
                    write!(
                        f,
                        "; to {} ({} nodes) {:#x}{plus}{unlink}: {}",
                        Rect(sub.noc_xy),
                        sub.num_mcast_dests,
                        sub.addr,
                        Data(&sub.data)
                    )?;
                }
                if write.subs.len() > TARGETS {
                    write!(f, "; ...")?;
                }
                Ok(())
            }
            Self::Wait(wait) => {
                let mut separator = " ";
                let mut part = |f: &mut Formatter<'_>, text: String| {
                    write!(f, "{}{text}", std::mem::replace(&mut separator, ", "))
                };
                if wait.flags.contains(WaitFlags::BARRIER) {
                    part(f, "write barrier".into())?;
                }
                if wait.flags.contains(WaitFlags::WAIT_MEMORY) {
                    part(f, format!("until word {:#x} >= {}", wait.addr, wait.count))?;
                }
                if wait.flags.contains(WaitFlags::WAIT_STREAM) {
                    part(f, format!("until stream {} >= {}", wait.stream, wait.count))?;
                }
                if wait.flags.contains(WaitFlags::CLEAR_STREAM) {
                    part(f, format!("clear stream {}", wait.stream))?;
                }
                if wait.flags.contains(WaitFlags::NOTIFY_PREFETCH) {
                    part(f, "notify the prefetcher".into())?;
                }
                Ok(())
            }
            Self::Debug(mark) => write!(f, " key {:#x}, {} bytes checked", mark.key, mark.size),
            Self::Delay(iterations) => write!(f, " {iterations} iterations"),
            Self::Sink | Self::ExecBufEnd | Self::Terminate => Ok(()),
            Self::SetWriteOffset { program_host_id, offsets } => {
                write!(f, " program {program_host_id}:")?;
                offsets.iter().try_for_each(|offset| write!(f, " {offset:#x}"))
            }
            Self::SendGoSignal(go) => {
                write!(
                    f,
                    " {:#010x} to {} nodes from word {}",
                    go.go_signal, go.num_unicast_txns, go.noc_data_start_index
                )?;
                if let Some(offset) = go.multicast_go_offset {
                    write!(f, " and multicast go {offset}")?;
                }
                write!(f, ", when stream {} >= {}", go.wait_stream, go.wait_count)
            }
            Self::NotifySubordinate { wait, index_bitmask } => {
                let after = if *wait { " after a write barrier" } else { "" };
                write!(f, " semaphores {index_bitmask:#010b}{after}")
            }
            Self::SetNumWorkerSems(count) => write!(f, " {count}"),
            Self::SetGoSignalNocData(words) => {
                f.write_str(" ")?;
                list(f, words.iter().map(|&xy| Node(xy)))
            }
            Self::Timestamp { noc_xy, addr } => write!(f, " to {} {addr:#x}", Node(*noc_xy)),
        }
    }
}

fn bank(is_dram: bool) -> &'static str {
    if is_dram { "DRAM" } else { "L1" }
}

fn list<T: Display>(f: &mut Formatter<'_>, items: impl ExactSizeIterator<Item = T>) -> Result {
    let count = items.len();
    write!(f, "{count} nodes")?;
    let mut separator = ": ";
    for item in items.take(TARGETS) {
        write!(f, "{separator}{item}")?;
        separator = " ";
    }
    if count > TARGETS { f.write_str(" ...") } else { Ok(()) }
}

/// A node word as coordinates.
struct Node(u32);

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let (x, y) = (self.0 & 0x3f, self.0 >> 6 & 0x3f);
        let host = if self.0 & PCIE_NOC_XY_MARK == 0 { "" } else { " host" };
        write!(f, "({x},{y}){host}")
    }
}

/// A rectangle word as its two corners.
struct Rect(u32);

impl Display for Rect {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{}..{}", Node(self.0 & 0xfff), Node(self.0 >> 12 & 0xfff))
    }
}

/// A write offset, unless it is the first, which everyone uses.
struct Plus(u16);

impl Display for Plus {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        if self.0 == 0 { Ok(()) } else { write!(f, "+offset[{}]", self.0) }
    }
}

/// A payload: its size and first bytes.
struct Data<'a>(&'a [u8]);

impl Display for Data<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "{} bytes", self.0.len())?;
        for byte in self.0.iter().take(SHOWN) {
            write!(f, " {byte:02x}")?;
        }
        if self.0.len() > SHOWN { f.write_str(" ...") } else { Ok(()) }
    }
}
