//! The dispatcher's commands as owned values: command to bytes and back.
//!
//! `parse(emit(x)) == x` for every command that `emit` accepts. Counts and lengths that follow from the
//! payload are not fields here, so they cannot contradict it. Both directions refuse what the
//! dispatcher could not execute: sub-commands beyond its local cache, write offsets it does not have,
//! and packets of zero bytes (tt-metal#37233).
//!
//! Layout: [`tilework_abi::cq::dispatch`]; seed 001 sections 2.1 and 4.

use tilework_abi::cq::dispatch::{
    DispatchCmdId, WRITE_PACKED_MAX_MULTICAST_SUBS, WRITE_PACKED_MAX_UNICAST_SUBS, WaitFlags, WritePackedLargeType,
    WritePackedType,
};

mod emit;
mod parse;

pub(crate) use parse::debug as parse_debug;

/// Payload alignment.
const ALIGN: usize = tilework_abi::L1_ALIGN as usize;

/// A dispatch command with all it carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DispatchCommand {
    /// Write bytes to one node or rectangle.
    WriteLinear(LinearWrite),
    /// The same on the dispatch_h chip.
    WriteLinearH(LinearWrite),
    /// Write this command and its payload to the completion FIFO.
    WriteHost(HostWrite),
    /// Write pages of an interleaved buffer.
    WritePaged(PagedWrite),
    /// Write packets of one size to one address of many nodes.
    WritePacked(PackedWrite),
    /// Multicast packets of any size to any address.
    WritePackedLarge(PackedLargeWrite),
    /// Wait.
    Wait(Wait),
    /// Swallow data.
    Sink,
    /// Log a waypoint.
    Debug(DebugMark),
    /// Wait this many loop iterations.
    Delay(u32),
    /// Tell prefetch_h that an exec buffer has ended.
    ExecBufEnd,
    /// Set write offsets.
    SetWriteOffset {
        /// The host's id of the program (profiling).
        program_host_id: u16,
        /// The offsets, at most four.
        offsets: Vec<u32>,
    },
    /// End the dispatcher.
    Terminate,
    /// Send the go message.
    SendGoSignal(GoSignal),
    /// Increment sync semaphores of the subordinate.
    NotifySubordinate {
        /// Wait for outstanding writes first.
        wait: bool,
        /// Bit i: sync semaphore i, of eight.
        index_bitmask: u16,
    },
    /// Set how many worker semaphores the subordinate serves, at most eight.
    SetNumWorkerSems(u32),
    /// Store NoC words for go signals, at most 256.
    SetGoSignalNocData(Vec<u32>),
    /// Write the wall clock (8 bytes) to `addr` of `noc_xy`.
    Timestamp {
        /// Node.
        noc_xy: u32,
        /// Address at the node.
        addr: u32,
    },
}

/// Payload of `WRITE_LINEAR` and `WRITE_LINEAR_H`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinearWrite {
    /// Nodes of the rectangle; 0 is a unicast.
    pub num_mcast_dests: u8,
    /// Write offset added to `addr`.
    pub write_offset_index: u8,
    /// Node or rectangle.
    pub noc_xy: u32,
    /// Address at the node.
    pub addr: u64,
    /// The bytes.
    pub data: Vec<u8>,
}

/// Payload of `WRITE_LINEAR_H_HOST`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostWrite {
    /// An event rather than buffer data.
    pub is_event: bool,
    /// What follows the echoed header.
    pub payload: Vec<u8>,
}

/// Payload of `WRITE_PAGED`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PagedWrite {
    /// DRAM rather than L1 banks.
    pub is_dram: bool,
    /// First page.
    pub start_page: u16,
    /// Address of the buffer in each bank.
    pub base_addr: u32,
    /// Bytes of a page.
    pub page_size: u32,
    /// Whole pages.
    pub data: Vec<u8>,
}

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

/// Payload of `WAIT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// What to do.
    pub flags: WaitFlags,
    /// Stream.
    pub stream: u16,
    /// L1 address of the dispatch core.
    pub addr: u32,
    /// Count to reach.
    pub count: u32,
}

/// Payload of `DEBUG` in either set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DebugMark {
    /// What to log.
    pub key: u16,
    /// Bytes to check, counted from the end of the header; may exceed `body`.
    pub size: u32,
    /// The bytes between this header and the next command.
    pub body: Vec<u8>,
}

/// Payload of `SEND_GO_SIGNAL`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GoSignal {
    /// The go message.
    pub go_signal: u32,
    /// Index of the multicast go message, if one is sent; not 255.
    pub multicast_go_offset: Option<u8>,
    /// Unicast go messages.
    pub num_unicast_txns: u8,
    /// First stored NoC word to use.
    pub noc_data_start_index: u8,
    /// Count to wait for first.
    pub wait_count: u32,
    /// Stream to wait for.
    pub wait_stream: u32,
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

    fn max(&self) -> usize {
        match self {
            Self::Unicast(_) => WRITE_PACKED_MAX_UNICAST_SUBS,
            Self::Multicast(_) => WRITE_PACKED_MAX_MULTICAST_SUBS,
        }
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

impl DispatchCommand {
    /// The event that the host waits for: `event_id` in a payload of 16 bytes (seed 001 section 7).
    pub fn host_event(event_id: u32) -> Self {
        let mut payload = vec![0; ALIGN];
        payload[..4].copy_from_slice(&event_id.to_le_bytes());
        Self::WriteHost(HostWrite { is_event: true, payload })
    }

    /// Wait until `stream` has reached `count`, then set it back to zero (seed 001 section 6).
    pub fn wait_stream_and_clear(stream: u16, count: u32) -> Self {
        let flags = WaitFlags::WAIT_STREAM | WaitFlags::CLEAR_STREAM;
        Self::Wait(Wait { flags, stream, addr: 0, count })
    }

    /// Wait until all writes of the dispatcher are acknowledged.
    pub fn barrier() -> Self {
        Self::Wait(Wait { flags: WaitFlags::BARRIER, stream: 0, addr: 0, count: 0 })
    }

    /// The command's id.
    pub fn id(&self) -> DispatchCmdId {
        match self {
            Self::WriteLinear(_) => DispatchCmdId::WriteLinear,
            Self::WriteLinearH(_) => DispatchCmdId::WriteLinearH,
            Self::WriteHost(_) => DispatchCmdId::WriteLinearHHost,
            Self::WritePaged(_) => DispatchCmdId::WritePaged,
            Self::WritePacked(_) => DispatchCmdId::WritePacked,
            Self::WritePackedLarge(_) => DispatchCmdId::WritePackedLarge,
            Self::Wait(_) => DispatchCmdId::Wait,
            Self::Sink => DispatchCmdId::Sink,
            Self::Debug(_) => DispatchCmdId::Debug,
            Self::Delay(_) => DispatchCmdId::Delay,
            Self::ExecBufEnd => DispatchCmdId::ExecBufEnd,
            Self::SetWriteOffset { .. } => DispatchCmdId::SetWriteOffset,
            Self::Terminate => DispatchCmdId::Terminate,
            Self::SendGoSignal(_) => DispatchCmdId::SendGoSignal,
            Self::NotifySubordinate { .. } => DispatchCmdId::NotifySubordinateGoSignal,
            Self::SetNumWorkerSems(_) => DispatchCmdId::SetNumWorkerSems,
            Self::SetGoSignalNocData(_) => DispatchCmdId::SetGoSignalNocData,
            Self::Timestamp { .. } => DispatchCmdId::Timestamp,
        }
    }
}
