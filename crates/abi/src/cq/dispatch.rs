//! The dispatcher's command set: what travels inside the prefetcher's relays.
//!
//! Every command begins on a page of the dispatch ring. Every struct is a whole header with its id
//! byte, padded as it lies in memory: [`CMD_SIZE`] bytes, or
//! [`CMD_LARGE_SIZE`] for the two linear writes. Sub-commands and payloads
//! follow, each list padded to 16 bytes.
//!
//! Sources: seed 001 sections 2.1 and 4; the original's `cq_commands.hpp`.

use super::layout::{PAGE_SIZE, WORKER_SEMS};
use super::status::Kernel;
use super::{CMD_LARGE_SIZE, CMD_SIZE};
use bitflags::bitflags;
use zerocopy::little_endian::{U16, U32, U64};

pub use super::prefetch::{BareCmd, DebugCmd};

/// The dispatcher's commands, one row each: documentation, variant and id, name, wire struct of the
/// header, in parentheses what `tilework_cq` carries beside the id, and the kernels of our firmware
/// that execute it (`by []`: not built in our firmware).
///
/// All ids of the public header are here, and `TIMESTAMP` of the original. The macro hands the rows
/// to macro `$then`, behind `$head`.
#[macro_export]
macro_rules! dispatch_commands {
    ($then:ident! { $($head:tt)* }) => {
        $then! {
            $($head)*
            /// Write bytes to one node or one rectangle.
            WriteLinear = 1, "WRITE_LINEAR", WriteLinear (LinearWrite),
                by [Dispatch];
            /// As [`WriteLinear`](Self::WriteLinear), on the dispatch_h chip.
            WriteLinearH = 2, "WRITE_LINEAR_H", WriteLinear (LinearWrite),
                by [Dispatch];
            /// Write this command and its payload to the host's completion FIFO.
            WriteLinearHHost = 3, "WRITE_LINEAR_H_HOST", WriteHost (HostWrite),
                by [Dispatch];
            /// Write pages of an interleaved buffer.
            WritePaged = 4, "WRITE_PAGED", WritePaged (PagedWrite),
                by [Dispatch];
            /// Write packets of one size to the same address of many nodes.
            WritePacked = 5, "WRITE_PACKED", WritePacked (PackedWrite),
                by [Dispatch];
            /// Write packets of any size to many rectangles.
            WritePackedLarge = 6, "WRITE_PACKED_LARGE", WritePackedLarge (PackedLargeWrite),
                by [Dispatch];
            /// Wait for memory, a stream or outstanding writes.
            Wait = 7, "WAIT", Wait (Wait),
                by [Dispatch, DispatchS];
            /// Swallow data (testing).
            Sink = 8, "SINK", BareCmd,
                by [Dispatch];
            /// Log a waypoint and check a payload.
            Debug = 9, "DEBUG", DebugCmd (DebugMark),
                by [Dispatch];
            /// Wait a number of loop iterations (testing).
            Delay = 10, "DELAY", Delay (Delay),
                by [Dispatch];
            /// Tell the core that reads records that an exec buffer has ended.
            ExecBufEnd = 11, "EXEC_BUF_END", BareCmd,
                by [Dispatch];
            /// Set the offsets added to write addresses.
            SetWriteOffset = 12, "SET_WRITE_OFFSET", SetWriteOffset (WriteOffsets),
                by [Dispatch];
            /// End the dispatcher's main loop.
            Terminate = 13, "TERMINATE", BareCmd,
                by [Dispatch, DispatchS];
            /// Send the go message to workers.
            SendGoSignal = 14, "SEND_GO_SIGNAL", SendGoSignal (GoSignal),
                by [Dispatch, DispatchS];
            /// Tell the subordinate that go signals may be sent.
            NotifySubordinateGoSignal = 15, "NOTIFY_SUBORDINATE_GO_SIGNAL",
                NotifySubordinateGoSignal (NotifySubordinate),
                by [Dispatch];
            /// Set how many worker semaphores the subordinate serves.
            SetNumWorkerSems = 16, "SET_NUM_WORKER_SEMS", SetNumWorkerSems (NumWorkerSems),
                by [Dispatch, DispatchS];
            /// Store the nodes that go signals are sent to.
            SetGoSignalNocData = 17, "SET_GO_SIGNAL_NOC_DATA", SetGoSignalNocData (Vec<u32>),
                by [Dispatch, DispatchS];
            /// Write the wall clock to a node.
            Timestamp = 18, "TIMESTAMP", Timestamp (Timestamp),
                by [Dispatch];
        }
    };
}

dispatch_commands! { command_ids! {
    /// First byte of a dispatch command.
    pub enum DispatchCmdId;
} }

/// Most nodes that one unicast `WRITE_PACKED` may name: one per worker of a P100
/// (the original's `PACKED_WRITE_MAX_UNICAST_SUB_CMDS`).
pub const WRITE_PACKED_MAX_UNICAST_SUBS: usize = 118;

/// Most rectangles that one multicast `WRITE_PACKED` may name: as many as fit where the unicast
/// sub-commands would lie.
pub const WRITE_PACKED_MAX_MULTICAST_SUBS: usize =
    WRITE_PACKED_MAX_UNICAST_SUBS * size_of::<WritePackedUnicastSub>() / size_of::<WritePackedMulticastSub>();

/// Most sub-commands of one `WRITE_PACKED_LARGE`: they are cached in local RAM.
pub const WRITE_PACKED_LARGE_MAX_SUBS: usize = 35;

/// Most words that `SET_GO_SIGNAL_NOC_DATA` may carry (seed 001 section 6.1).
pub const GO_SIGNAL_NOC_DATA_MAX_WORDS: usize = 256;

/// Write offsets that the dispatcher keeps; `write_offset_index` is below this. Seed 001 section
/// 4.2 speaks of three; the original's header has four.
pub const WRITE_OFFSETS: usize = 4;

/// `multicast_go_offset` of a `SEND_GO_SIGNAL` without a multicast.
pub const GO_NO_MULTICAST: u8 = 0xff;

bitflags! {
    /// Flags of `WRITE_PACKED`; bits 4..7 are a [`WritePackedType`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct WritePackedFlags: u8 {
        /// Sub-commands are [`WritePackedMulticastSub`].
        const MULTICAST = 0x01;
        /// All targets get the same packet.
        const NO_STRIDE = 0x02;
        /// The [`WritePackedType`].
        const TYPE = 0xf0;
    }
}

impl WritePackedFlags {
    /// Lowest bit of the type field.
    pub const TYPE_SHIFT: u32 = 4;
}

selector! {
    /// What a `WRITE_PACKED` carries; only for the reader of a trace, the dispatcher ignores it.
    pub enum WritePackedType {
        /// Not said.
        #[default]
        None = 0,
        /// Run-time arguments.
        RuntimeArgs = 1,
        /// Launch messages.
        Launch = 2,
        /// Semaphores.
        Semaphores = 3,
        /// Events.
        Event = 4,
        /// Go message indices.
        GoMsgIndex = 5,
    }
}

selector! {
    /// What a `WRITE_PACKED_LARGE` carries; only for the reader of a trace.
    pub enum WritePackedLargeType {
        /// Not said.
        #[default]
        Unknown = 0,
        /// Circular-buffer configurations, semaphores and common run-time arguments.
        CbsSemsCrtas = 1,
        /// Kernel text.
        ProgramBinaries = 2,
    }
}

bitflags! {
    /// Flags of a [`WritePackedLargeSub`].
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct WritePackedLargeFlags: u8 {
        /// The last write of a linked chain of multicasts to one rectangle.
        const UNLINK = 0x01;
    }
}

bitflags! {
    /// Flags of `WAIT` (seed 001 section 4.5), obeyed in the order of the seed's list: barrier,
    /// memory, stream, clear, and the prefetcher is notified last.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub struct WaitFlags: u8 {
        /// Wait until all writes are acknowledged.
        const BARRIER = 0x01;
        /// When all else is done, increment the prefetcher's sync semaphore (ends its `STALL`).
        const NOTIFY_PREFETCH = 0x02;
        /// Wait until the word at `addr` has reached `count`.
        const WAIT_MEMORY = 0x04;
        /// Wait until stream `stream` has reached `count`.
        const WAIT_STREAM = 0x08;
        /// Set stream `stream` back to zero.
        const CLEAR_STREAM = 0x10;
    }
}

wire! {
    /// `WRITE_LINEAR` and `WRITE_LINEAR_H`, 32 bytes: write the `length` bytes that follow. Source:
    /// the original's `cq_commands.hpp`, seed 001 section 4.2.
    pub struct WriteLinear[CMD_LARGE_SIZE] {
        /// [`DispatchCmdId::WriteLinear`] or [`DispatchCmdId::WriteLinearH`].
        pub cmd_id: u8 => 0,
        /// Nodes of the multicast rectangle; 0 is a unicast.
        pub num_mcast_dests: u8 => 1,
        /// Which write offset is added to `addr`, below [`WRITE_OFFSETS`].
        pub write_offset_index: u8 => 2 in 0..=WRITE_OFFSETS as u64 - 1,
        /// Zero.
        pub pad1: u8 => 3,
        /// Node or rectangle.
        pub noc_xy_addr: U32 => 4,
        /// Address at the node.
        pub addr: U64 => 8,
        /// Bytes of payload.
        pub length: U64 => 16 in 1..=u64::MAX,
        /// Zero.
        pub tail: [u8; 8] => 24,
    }
}

wire! {
    /// `WRITE_LINEAR_H_HOST`: write this header and its payload to the completion FIFO. Source:
    /// the original's `cq_commands.hpp`, seed 001 sections 4.4 and 7.
    pub struct WriteHost[CMD_SIZE] {
        /// [`DispatchCmdId::WriteLinearHHost`].
        pub cmd_id: u8 => 0,
        /// 1 for an event, 0 for buffer data.
        pub is_event: u8 => 1 in 0..=1,
        /// Zero.
        pub pad1: U16 => 2,
        /// Zero.
        pub pad2: U32 => 4,
        /// Bytes including this header.
        pub length: U64 => 8 in CMD_SIZE as u64 + 1..=u64::MAX,
    }
}

wire! {
    /// `WRITE_PAGED`: write `pages` pages of an interleaved buffer; they follow. Source:
    /// the original's `cq_commands.hpp`, seed 001 section 4.2.
    pub struct WritePaged[CMD_SIZE] {
        /// [`DispatchCmdId::WritePaged`].
        pub cmd_id: u8 => 0,
        /// 1 for DRAM, 0 for L1.
        pub is_dram: u8 => 1 in 0..=1,
        /// First page.
        pub start_page: U16 => 2,
        /// Address of the buffer in each bank.
        pub base_addr: U32 => 4,
        /// Bytes of a page.
        pub page_size: U32 => 8 in 1..=u32::MAX as u64,
        /// Pages that follow.
        pub pages: U32 => 12,
    }
}

wire! {
    /// `WRITE_PACKED`: write packets of `size` bytes to `addr` of many nodes. `count` sub-commands
    /// follow ([`WritePackedUnicastSub`] or [`WritePackedMulticastSub`]), padded to 16 bytes; then
    /// the packets, each padded to 16 bytes, or one packet with [`WritePackedFlags::NO_STRIDE`].
    /// Source: the original's `cq_commands.hpp`, seed 001 section 4.3.
    pub struct WritePacked[CMD_SIZE] {
        /// [`DispatchCmdId::WritePacked`].
        pub cmd_id: u8 => 0,
        /// [`WritePackedFlags`].
        pub flags: u8 => 1; bits WritePackedFlags,
        /// Sub-commands.
        pub count: U16 => 2,
        /// Which write offset is added to `addr`, below [`WRITE_OFFSETS`].
        pub write_offset_index: U16 => 4 in 0..=WRITE_OFFSETS as u64 - 1,
        /// Bytes of each packet, at most one page of the dispatch ring.
        pub size: U16 => 6 in 1..=PAGE_SIZE as u64,
        /// Address at every node.
        pub addr: U32 => 8,
        /// Zero.
        pub tail: [u8; 4] => 12,
    }
}

wire! {
    /// Target of a unicast [`WritePacked`].
    pub struct WritePackedUnicastSub[4] {
        /// Node, `y << 6 | x`.
        pub noc_xy_addr: U32 => 0,
    }
}

wire! {
    /// Target of a multicast [`WritePacked`].
    pub struct WritePackedMulticastSub[8] {
        /// Rectangle, as [`NocRect::encode_noc1`](crate::noc::NocRect::encode_noc1) packs it: the
        /// dispatcher writes through NoC 1.
        pub noc_xy_addr: U32 => 0,
        /// Nodes of the rectangle.
        pub num_mcast_dests: U32 => 4 in 1..=u32::MAX as u64,
    }
}

wire! {
    /// `WRITE_PACKED_LARGE`: multicast packets of any size. `count` [`WritePackedLargeSub`] follow,
    /// padded to 16 bytes; then the packets, each padded to `alignment`. Source:
    /// the original's `cq_commands.hpp`.
    pub struct WritePackedLarge[CMD_SIZE] {
        /// [`DispatchCmdId::WritePackedLarge`].
        pub cmd_id: u8 => 0,
        /// A [`WritePackedLargeType`].
        pub kind: u8 => 1,
        /// Sub-commands, at most [`WRITE_PACKED_LARGE_MAX_SUBS`].
        pub count: U16 => 2 in 1..=WRITE_PACKED_LARGE_MAX_SUBS as u64,
        /// Alignment of each packet, a power of two.
        pub alignment: U16 => 4,
        /// Which write offset is added to each address, below [`WRITE_OFFSETS`].
        pub write_offset_index: U16 => 6 in 0..=WRITE_OFFSETS as u64 - 1,
        /// Zero.
        pub tail: [u8; 8] => 8,
    }
}

wire! {
    /// Target of a [`WritePackedLarge`].
    pub struct WritePackedLargeSub[12] {
        /// Rectangle, as [`NocRect::encode_noc1`](crate::noc::NocRect::encode_noc1) packs it: the
        /// dispatcher writes through NoC 1.
        pub noc_xy_addr: U32 => 0,
        /// Address at every node.
        pub addr: U32 => 4,
        /// Bytes of the packet less one, so that 65536 fits and zero cannot be said.
        pub length_minus1: U16 => 8,
        /// Nodes of the rectangle.
        pub num_mcast_dests: u8 => 10 in 1..=u8::MAX as u64,
        /// [`WritePackedLargeFlags`].
        pub flags: u8 => 11; bits WritePackedLargeFlags,
    }
}

wire! {
    /// `WAIT`: wait as [`WaitFlags`] say. Source: the original's `cq_commands.hpp`, seed 001
    /// section 4.5.
    pub struct Wait[CMD_SIZE] {
        /// [`DispatchCmdId::Wait`].
        pub cmd_id: u8 => 0,
        /// [`WaitFlags`].
        pub flags: u8 => 1; bits WaitFlags,
        /// Stream to wait for or clear.
        pub stream: U16 => 2,
        /// L1 address of the dispatch core to wait for.
        pub addr: U32 => 4,
        /// Count to reach.
        pub count: U32 => 8,
        /// Zero.
        pub tail: [u8; 4] => 12,
    }
}

wire! {
    /// `DELAY`: wait `delay` loop iterations. Source: the original.
    pub struct Delay[CMD_SIZE] {
        /// [`DispatchCmdId::Delay`].
        pub cmd_id: u8 => 0,
        /// Zero.
        pub pad1: u8 => 1,
        /// Zero.
        pub pad2: U16 => 2,
        /// Iterations.
        pub delay: U32 => 4,
        /// Zero.
        pub tail: [u8; 8] => 8,
    }
}

wire! {
    /// `SET_WRITE_OFFSET`: set the first `offset_count` write offsets; the words follow, unpadded.
    /// Source: the original's `cq_commands.hpp`, seed 001 section 4.2.
    pub struct SetWriteOffset[CMD_SIZE] {
        /// [`DispatchCmdId::SetWriteOffset`].
        pub cmd_id: u8 => 0,
        /// Offsets that follow, at most [`WRITE_OFFSETS`].
        pub offset_count: u8 => 1 in 0..=WRITE_OFFSETS as u64,
        /// The host's id of the program, for profiling.
        pub program_host_id: U16 => 2,
        /// Zero.
        pub tail: [u8; 12] => 4,
    }
}

wire! {
    /// `SEND_GO_SIGNAL`: wait for a stream, then send the go message. Source: the original's
    /// `cq_commands.hpp`, seed 001 section 6.3.
    pub struct SendGoSignal[CMD_SIZE] {
        /// [`DispatchCmdId::SendGoSignal`].
        pub cmd_id: u8 => 0,
        /// The go message.
        pub go_signal: U32 => 1,
        /// Index of the multicast go message, or [`GO_NO_MULTICAST`].
        pub multicast_go_offset: u8 => 5,
        /// Unicast go messages to send.
        pub num_unicast_txns: u8 => 6,
        /// First word of the go-signal NoC data to use.
        pub noc_data_start_index: u8 => 7,
        /// Count that the stream must have reached.
        pub wait_count: U32 => 8,
        /// Stream to wait for.
        pub wait_stream: U32 => 12,
    }
}

wire! {
    /// `NOTIFY_SUBORDINATE_GO_SIGNAL`: increment the sync semaphores named by the mask. Source:
    /// the original's `cq_commands.hpp`.
    pub struct NotifySubordinateGoSignal[CMD_SIZE] {
        /// [`DispatchCmdId::NotifySubordinateGoSignal`].
        pub cmd_id: u8 => 0,
        /// 1: wait for outstanding writes first.
        pub wait: u8 => 1 in 0..=1,
        /// Bit i: sync semaphore i.
        pub index_bitmask: U16 => 2 in 0..=(1 << WORKER_SEMS) - 1,
        /// Zero.
        pub pad3: U32 => 4,
        /// Zero.
        pub tail: [u8; 8] => 8,
    }
}

wire! {
    /// `SET_NUM_WORKER_SEMS`: how many worker semaphores are in use, from the first on; all until
    /// it is said. Commands that name another are refused. Source: the original; tt-metal's
    /// `cq_dispatch_subordinate.cpp`, which passes on the counts of so many.
    pub struct SetNumWorkerSems[CMD_SIZE] {
        /// [`DispatchCmdId::SetNumWorkerSems`].
        pub cmd_id: u8 => 0,
        /// Zero.
        pub pad1: u8 => 1,
        /// Zero.
        pub pad2: U16 => 2,
        /// Worker semaphores in use.
        pub num_worker_sems: U32 => 4 in 0..=WORKER_SEMS as u64,
        /// Zero.
        pub tail: [u8; 8] => 8,
    }
}

wire! {
    /// `SET_GO_SIGNAL_NOC_DATA`: store `num_words` NoC words; they follow, unpadded. Source:
    /// the original's `cq_commands.hpp`, seed 001 section 6.1.
    pub struct SetGoSignalNocData[CMD_SIZE] {
        /// [`DispatchCmdId::SetGoSignalNocData`].
        pub cmd_id: u8 => 0,
        /// Zero.
        pub pad1: u8 => 1,
        /// Zero.
        pub pad2: U16 => 2,
        /// Words that follow, at most [`GO_SIGNAL_NOC_DATA_MAX_WORDS`].
        pub num_words: U32 => 4 in 0..=GO_SIGNAL_NOC_DATA_MAX_WORDS as u64,
        /// Zero.
        pub tail: [u8; 8] => 8,
    }
}

wire! {
    /// `TIMESTAMP`: write the 64-bit wall clock to a node. Source: the original's
    /// `cq_commands.hpp`.
    pub struct Timestamp[CMD_SIZE] {
        /// [`DispatchCmdId::Timestamp`].
        pub cmd_id: u8 => 0,
        /// Zero.
        pub pad1: u8 => 1,
        /// Zero.
        pub pad2: U16 => 2,
        /// Node, `y << 6 | x`; host memory with
        /// [`PCIE_NOC_XY_MARK`](super::layout::PCIE_NOC_XY_MARK).
        pub noc_xy_addr: U32 => 4,
        /// Address at the node, a multiple of 16: eight bytes are written from the start of a page,
        /// and a NoC write keeps the offset of its source within 16 bytes.
        pub addr: U32 => 8,
        /// Zero.
        pub tail: [u8; 4] => 12,
    }
}

const _: () = assert!(WRITE_PACKED_MAX_MULTICAST_SUBS == 59);
