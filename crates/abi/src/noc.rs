//! NoC coordinates and the registers of a NoC interface unit (NIU).
//!
//! Follows BlackholeA0/NoC/MemoryMap.md (request initiators, configuration, identification) and
//! BlackholeA0/NoC/Counters.md (status counters). Offsets are relative to the NIU's base address.

use crate::convert::u32_of;
use crate::reg::{Slot, registers};

/// Base address of NIU 0 in a Tensix tile's address space (NoC/MemoryMap.md).
pub const NIU0_BASE: u32 = 0xFFB2_0000;
/// Base address of NIU 1 in a Tensix tile's address space (NoC/MemoryMap.md).
pub const NIU1_BASE: u32 = 0xFFB3_0000;
/// Bytes of address space of one NIU.
pub const NIU_SPAN: u32 = 0x1_0000;
/// Number of request initiators (command buffers) per NIU.
pub const CMD_BUFS: u32 = 4;
/// Distance between two request initiators, in bytes.
pub const CMD_BUF_STRIDE: u32 = 0x800;

/// Another address of the NIUs of tiles without cores, in the low half of a NoC address (tt-metal,
/// noc_parameters.h, `NOC_REG_SPACE_START_ADDR`; tt-umd `NOC0_CONTROL_REG_ADDR_BASE_MAP`).
pub const NIU_ALIAS: u32 = 0xFF00_0000;

/// Base address of NIU `noc` (0 or 1).
pub const fn niu_base(noc: u32) -> u32 {
    NIU0_BASE + noc * NIU_SPAN
}

/// Distance between the bytes of one register and those of the next.
const WORD: u32 = 4;
const MAP_PAGE: &str = "BlackholeA0/NoC/MemoryMap.md";
const COUNTERS_PAGE: &str = "BlackholeA0/NoC/Counters.md";
const HEADER: &str = "tt-metal, noc_parameters.h";

/// Request initiators, and what each of them repeats of the NIU.
pub mod init {
    use super::{CMD_BUF_STRIDE, CMD_BUFS, HEADER, MAP_PAGE, NIU0_BASE};
    use crate::reg::registers;

    registers! {
        /// A request initiator of an NIU, of which there are four. While its request has not left,
        /// writing any of its fields is a fault.
        pub static INITIATOR = {
            name: "NIU request initiator", base: NIU0_BASE, span: 0x6C,
            copies: CMD_BUFS, stride: CMD_BUF_STRIDE,
            unit: 1, page: MAP_PAGE,
            const u32 = |at| at,
        };
        /// Target memory address, bits 31..0.
        TARG_ADDR_LO "NOC_TARG_ADDR_LO" = 0x00, Rw;
        /// Target memory address, bits 63..32.
        TARG_ADDR_MID "NOC_TARG_ADDR_MID" = 0x04, Rw;
        /// Target coordinates.
        TARG_ADDR_HI "NOC_TARG_ADDR_HI" = 0x08, Rw;
        /// Return memory address, bits 31..0.
        RET_ADDR_LO "NOC_RET_ADDR_LO" = 0x0C, Rw;
        /// Return memory address, bits 63..32.
        RET_ADDR_MID "NOC_RET_ADDR_MID" = 0x10, Rw;
        /// Return coordinates.
        RET_ADDR_HI "NOC_RET_ADDR_HI" = 0x14, Rw;
        /// Transaction id and rare flags.
        PACKET_TAG "NOC_PACKET_TAG" = 0x18, Rw, mask 0xFFFF;
        /// Request type and common flags.
        CTRL "NOC_CTRL" = 0x1C, Rw;
        /// Length in bytes, byte-enable mask, or atomic opcode and operands.
        AT_LEN_BE "NOC_AT_LEN_BE" = 0x20, Rw;
        /// High half of `NOC_AT_LEN_BE`.
        AT_LEN_BE_1 "NOC_AT_LEN_BE_1" = 0x24, Rw;
        /// Immediate data of inline writes and atomics.
        AT_DATA "NOC_AT_DATA" = 0x28, Rw;
        /// Exclusion settings of broadcasts.
        BRCST_EXCLUDE "NOC_BRCST_EXCLUDE" = 0x2C, Rw;
        /// Format of accumulating writes, which are not built.
        L1_ACC_AT_INSTRN "NOC_L1_ACC_AT_INSTRN" = 0x30, Rw, page HEADER;
        /// Security level of requests.
        SEC_CTRL "NOC_SEC_CTRL" = 0x34, Rw, page HEADER;
        /// Writing 1 starts the request; reads 0 once it was accepted.
        CMD_CTRL "NOC_CMD_CTRL" = 0x40, Rw, mask 1;
        /// Physical coordinates and size of the NoC.
        NODE_ID "NOC_NODE_ID" = 0x44, Ro;
        /// Kind and index of the tile.
        ENDPOINT_ID "NOC_ENDPOINT_ID" = 0x48, Ro;
        /// Room in the request FIFOs, which are off.
        CMD_BUF_AVAIL "CMD_BUF_AVAIL" = 0x64, Ro, page HEADER;
        /// Overflow of the request FIFOs.
        CMD_BUF_OVFL "CMD_BUF_OVFL" = 0x68, Ro, page HEADER;
    }
}

pub use init::{ENDPOINT_ID, NODE_ID};

/// First of the configuration registers.
pub const CFG_BASE: u32 = 0x100;
/// End of the configuration registers.
pub const CFG_END: u32 = 0x180;
/// First status counter; counter `i` is at `COUNTERS + 4 * i`.
pub const COUNTERS: u32 = 0x200;
/// End of the status counters.
pub const COUNTERS_END: u32 = 0x300;
/// Tile clock disable within `NIU_CFG_0`, which firmware sets for tiles that are fused off.
pub const NIU_CFG_0_CLOCK_OFF: u32 = 1 << 12;
/// Coordinate translation enable within `NIU_CFG_0`.
pub const NIU_CFG_0_TRANSLATE: u32 = 1 << 14;
/// Request FIFO enable within `NIU_CFG_0`.
const NIU_CFG_0_FIFO: u32 = 1 << 16;

registers! {
    /// An NIU's own registers. Those of its initiators and its counters are blocks of their own.
    /// Bits of the configuration that have no meaning to hardware are storage.
    pub static NIU = {
        name: "NIU", base: NIU0_BASE, span: 0x600, copies: 1, stride: NIU_SPAN,
        unit: 1, page: MAP_PAGE,
        const u32 = |at| at,
    };
    /// Parity errors of memories, of which there are none.
    NUM_MEM_PARITY_ERR "NUM_MEM_PARITY_ERR" = 0x50, Ro, page HEADER;
    /// Corrected header errors, of which there are none.
    NUM_HEADER_1B_ERR "NUM_HEADER_1B_ERR" = 0x54, Ro, page HEADER;
    /// Uncorrected header errors, of which there are none.
    NUM_HEADER_2B_ERR "NUM_HEADER_2B_ERR" = 0x58, Ro, page HEADER;
    /// Bits 0 to 2 clear errors, bits 3 to 5 make some.
    ECC_CTRL "ECC_CTRL" = 0x5C, Wo, fixed 0b11_1000, refused "making errors is not built", page HEADER;
    /// Clears `NIU_MST_REQS_OUTSTANDING_ID`, one bit each.
    CLEAR_OUTSTANDING "NOC_CLEAR_OUTSTANDING_REQ_CNT" = 0x60, W1c, mask 0xFFFF, page COUNTERS_PAGE;
    /// Clock, request FIFOs and coordinate translation.
    NIU_CFG_0 "NIU_CFG_0" = 0x100, Rw, fixed NIU_CFG_0_CLOCK_OFF | NIU_CFG_0_FIFO;
    /// Clock gating and time limits of the router.
    ROUTER_CFG_0 "ROUTER_CFG_0" = 0x104, Rw;
    /// Broadcast opt-out mask of columns.
    ROUTER_CFG_1 "ROUTER_CFG_1" = 0x108, Rw;
    /// For general use.
    ROUTER_CFG_2 "ROUTER_CFG_2" = 0x10C, Rw;
    /// Broadcast opt-out mask of rows.
    ROUTER_CFG_3 "ROUTER_CFG_3" = 0x110, Rw;
    /// For general use.
    ROUTER_CFG_4 "ROUTER_CFG_4" = 0x114, Rw;
    /// Translation of X, six entries of five bits in a word.
    X_TABLE "NOC_X_ID_TRANSLATE_TABLE"[6; WORD] = 0x118, Rw;
    /// Translation of Y, likewise.
    Y_TABLE "NOC_Y_ID_TRANSLATE_TABLE"[6; WORD] = 0x130, Rw;
    /// The NIU's coordinates in translated space, `x | y << 6`.
    ID_LOGICAL "NOC_ID_LOGICAL" = 0x148, Rw;
    /// Shutdown and sleep of memories.
    MEMORY_SHUTDOWN "MEMORY_SHUTDOWN_CONTROL" = 0x14C, Rw, fixed 0b111, page HEADER;
    /// Columns in which Y is not translated.
    TRANSLATE_COL_MASK "NOC_ID_TRANSLATE_COL_MASK" = 0x150, Rw;
    /// Rows in which X is not translated.
    TRANSLATE_ROW_MASK "NOC_ID_TRANSLATE_ROW_MASK" = 0x154, Rw;
    /// Translation of DRAM columns, which firmware leaves zero.
    DDR_TABLE "DDR_COORD_TRANSLATE_TABLE"[6; WORD] = 0x158, Rw, fixed u32::MAX;
    /// Which DRAM columns change places.
    DDR_COL_SWAP "DDR_COORD_TRANSLATE_COL_SWAP" = 0x170, Rw, fixed u32::MAX;
    /// Resets the flit counters and the overflow of the FIFOs.
    DEBUG_COUNTER_RESET "DEBUG_COUNTER_RESET" = 0x174, Wo;
    /// Interrupts of transaction ids; bit 28 keeps `RTZ_SOURCE` as it is.
    RTZ_CFG "NIU_TRANS_COUNT_RTZ_CFG" = 0x178, Rw;
    /// Clears bits of `NIU_TRANS_COUNT_RTZ_SOURCE`.
    RTZ_CLR "NIU_TRANS_COUNT_RTZ_CLR" = 0x17C, W1c;
    /// Debug information of the router, which is idle.
    ROUTER_STATUS "ROUTER_STATUS"[30; WORD] = 0x300, Ro;
    /// The lowest enabled bit of `RTZ_SOURCE`, which the read clears.
    RTZ_NUM "NIU_TRANS_COUNT_RTZ_NUM" = 0x378, Ro;
    /// Transaction ids whose counts have gone back to zero, one bit each.
    RTZ_SOURCE "NIU_TRANS_COUNT_RTZ_SOURCE" = 0x37C, Ro;
    /// Debug information of the NIU, which is idle.
    NIU_STATUS "NIU_STATUS"[32; WORD] = 0x380, Ro;
    /// Address ranges of the security fence.
    SEC_FENCE_RANGE "NOC_SEC_FENCE_RANGE"[32; WORD] = 0x400, Rw, fixed u32::MAX, page HEADER;
    /// What the ranges allow.
    SEC_FENCE_ATTRIBUTE "NOC_SEC_FENCE_ATTRIBUTE"[8; WORD] = 0x480, Rw, fixed u32::MAX, page HEADER;
    /// Security level of the tile.
    SEC_FENCE_MASTER_LEVEL "NOC_SEC_FENCE_MASTER_LEVEL" = 0x4A0, Rw, fixed u32::MAX, page HEADER;
    /// Refused requests that wait to be read.
    SEC_FENCE_FIFO_STATUS "NOC_SEC_FENCE_FIFO_STATUS" = 0x4A4, Rw, fixed u32::MAX, page HEADER;
    /// The oldest refused request.
    SEC_FENCE_FIFO_RDDATA "NOC_SEC_FENCE_FIFO_RDDATA" = 0x4A8, Rw, fixed u32::MAX, page HEADER;
    /// Without a name: the rest of the security fence.
    SEC_FENCE_REST "NOC_SEC_FENCE_REST"[21; WORD] = 0x4AC, Rw, fixed u32::MAX;
    /// Flits of each virtual channel of port 1, low and high word.
    PORT1_FLIT_COUNTER "PORT1_FLIT_COUNTER"[32; WORD] = 0x500, NotBuilt, page HEADER;
    /// Flits of each virtual channel of port 2, low and high word.
    PORT2_FLIT_COUNTER "PORT2_FLIT_COUNTER"[32; WORD] = 0x580, NotBuilt, page HEADER;
}

/// The bits of `NIU_TRANS_COUNT_RTZ_CFG` that enable interrupts, one for each transaction id.
pub const RTZ_CFG_ENABLE: u32 = 0xFFFF;
/// `NIU_TRANS_COUNT_RTZ_CFG_RC_DISABLE`: reading `RTZ_NUM` clears nothing.
pub const RTZ_CFG_RC_DISABLE: u32 = 1 << 28;

/// Status counters, by index (NoC/Counters.md).
pub mod counter {
    use super::{COUNTERS, COUNTERS_END, COUNTERS_PAGE, NIU_SPAN, NIU0_BASE, WORD};
    use crate::reg::registers;

    /// Number of counter slots.
    pub const COUNT: usize = 64;

    registers! {
        /// What an NIU counts, as initiator (`MST`) and as target (`SLV`) of requests.
        pub static COUNTERS_BLOCK = {
            name: "NIU counters", base: NIU0_BASE + COUNTERS, span: COUNTERS_END - COUNTERS,
            copies: 1, stride: NIU_SPAN,
            unit: WORD, page: COUNTERS_PAGE,
            const usize = |at| at,
        };
        /// Atomic responses received.
        MST_ATOMIC_RESP_RECEIVED "NIU_MST_ATOMIC_RESP_RECEIVED" = 0, Ro;
        /// Write acknowledgements received.
        MST_WR_ACK_RECEIVED "NIU_MST_WR_ACK_RECEIVED" = 1, Ro;
        /// Read responses received.
        MST_RD_RESP_RECEIVED "NIU_MST_RD_RESP_RECEIVED" = 2, Ro;
        /// Data flits of read responses received.
        MST_RD_DATA_WORD_RECEIVED "NIU_MST_RD_DATA_WORD_RECEIVED" = 3, Ro;
        /// Requests accepted from software.
        MST_CMD_ACCEPTED "NIU_MST_CMD_ACCEPTED" = 4, Ro;
        /// Read requests sent.
        MST_RD_REQ_SENT "NIU_MST_RD_REQ_SENT" = 5, Ro;
        /// Non-posted atomics sent.
        MST_NONPOSTED_ATOMIC_SENT "NIU_MST_NONPOSTED_ATOMIC_SENT" = 6, Ro;
        /// Posted atomics sent.
        MST_POSTED_ATOMIC_SENT "NIU_MST_POSTED_ATOMIC_SENT" = 7, Ro;
        /// Data flits of non-posted writes sent.
        MST_NONPOSTED_WR_DATA_WORD_SENT "NIU_MST_NONPOSTED_WR_DATA_WORD_SENT" = 8, Ro;
        /// Data flits of posted writes sent.
        MST_POSTED_WR_DATA_WORD_SENT "NIU_MST_POSTED_WR_DATA_WORD_SENT" = 9, Ro;
        /// Non-posted write requests sent.
        MST_NONPOSTED_WR_REQ_SENT "NIU_MST_NONPOSTED_WR_REQ_SENT" = 10, Ro;
        /// Posted write requests sent.
        MST_POSTED_WR_REQ_SENT "NIU_MST_POSTED_WR_REQ_SENT" = 11, Ro;
        /// Non-posted write requests started.
        MST_NONPOSTED_WR_REQ_STARTED "NIU_MST_NONPOSTED_WR_REQ_STARTED" = 12, Ro;
        /// Posted write requests started.
        MST_POSTED_WR_REQ_STARTED "NIU_MST_POSTED_WR_REQ_STARTED" = 13, Ro;
        /// Read requests started.
        MST_RD_REQ_STARTED "NIU_MST_RD_REQ_STARTED" = 14, Ro;
        /// Non-posted atomics started.
        MST_NONPOSTED_ATOMIC_STARTED "NIU_MST_NONPOSTED_ATOMIC_STARTED" = 15, Ro;
        /// Outstanding requests of each transaction id.
        MST_REQS_OUTSTANDING_ID "NIU_MST_REQS_OUTSTANDING_ID"[16; WORD] = 16, Ro;
        /// Writes of each transaction id that still leave.
        MST_WRITE_REQS_OUTGOING_ID "NIU_MST_WRITE_REQS_OUTGOING_ID"[16; WORD] = 32, Ro;
        /// Atomic responses sent.
        SLV_ATOMIC_RESP_SENT "NIU_SLV_ATOMIC_RESP_SENT" = 48, Ro;
        /// Write acknowledgements sent.
        SLV_WR_ACK_SENT "NIU_SLV_WR_ACK_SENT" = 49, Ro;
        /// Read responses sent.
        SLV_RD_RESP_SENT "NIU_SLV_RD_RESP_SENT" = 50, Ro;
        /// Data flits of read responses sent.
        SLV_RD_DATA_WORD_SENT "NIU_SLV_RD_DATA_WORD_SENT" = 51, Ro;
        /// Requests accepted from the NoC.
        SLV_REQ_ACCEPTED "NIU_SLV_REQ_ACCEPTED" = 52, Ro;
        /// Read requests received.
        SLV_RD_REQ_RECEIVED "NIU_SLV_RD_REQ_RECEIVED" = 53, Ro;
        /// Non-posted atomics received.
        SLV_NONPOSTED_ATOMIC_RECEIVED "NIU_SLV_NONPOSTED_ATOMIC_RECEIVED" = 54, Ro;
        /// Posted atomics received.
        SLV_POSTED_ATOMIC_RECEIVED "NIU_SLV_POSTED_ATOMIC_RECEIVED" = 55, Ro;
        /// Data flits of non-posted writes received.
        SLV_NONPOSTED_WR_DATA_WORD_RECEIVED "NIU_SLV_NONPOSTED_WR_DATA_WORD_RECEIVED" = 56, Ro;
        /// Data flits of posted writes received.
        SLV_POSTED_WR_DATA_WORD_RECEIVED "NIU_SLV_POSTED_WR_DATA_WORD_RECEIVED" = 57, Ro;
        /// Non-posted write requests received.
        SLV_NONPOSTED_WR_REQ_RECEIVED "NIU_SLV_NONPOSTED_WR_REQ_RECEIVED" = 58, Ro;
        /// Posted write requests received.
        SLV_POSTED_WR_REQ_RECEIVED "NIU_SLV_POSTED_WR_REQ_RECEIVED" = 59, Ro;
        /// Non-posted write requests started.
        SLV_NONPOSTED_WR_REQ_STARTED "NIU_SLV_NONPOSTED_WR_REQ_STARTED" = 60, Ro;
        /// Posted write requests started.
        SLV_POSTED_WR_REQ_STARTED "NIU_SLV_POSTED_WR_REQ_STARTED" = 61, Ro;
        /// Without a name: always zero.
        RESERVED "NOC_STATUS_RESERVED"[2; WORD] = 62, Ro;
    }
}

/// The register at byte offset `offset` of an NIU, and whose it is where each initiator has it.
pub fn register(offset: u32) -> Option<(Option<u32>, Slot)> {
    let (initiator, field) = (offset / CMD_BUF_STRIDE, offset % CMD_BUF_STRIDE);
    match init::INITIATOR.at(field) {
        Some(slot) if initiator < CMD_BUFS => Some((Some(initiator), slot)),
        _ => {
            let counter = offset.checked_sub(COUNTERS).and_then(|at| counter::COUNTERS_BLOCK.at(at));
            Some((None, counter.or_else(|| NIU.at(offset))?))
        }
    }
}

/// Bits of `NOC_CTRL` (NoC/MemoryMap.md, table `NOC_CTRL`).
pub mod ctrl {
    /// Request type: read.
    pub const CMD_RD: u32 = 0;
    /// Request type: atomic.
    pub const CMD_AT: u32 = 1;
    /// Request type: write.
    pub const CMD_WR: u32 = 2;
    /// Mask of the request type.
    pub const CMD_MASK: u32 = 3;
    /// `AT_LEN_BE` is a byte-enable mask.
    pub const WR_BE: u32 = 1 << 2;
    /// The data is `AT_DATA`.
    pub const WR_INLINE: u32 = 1 << 3;
    /// A response is wanted (not posted).
    pub const RESP_MARKED: u32 = 1 << 4;
    /// Multicast to a rectangle.
    pub const BRCST: u32 = 1 << 5;
    /// More requests of the same transaction follow.
    pub const VC_LINKED: u32 = 1 << 6;
    /// Software chooses the virtual channel.
    pub const VC_STATIC: u32 = 1 << 7;
    /// Reserve the path of a multicast first.
    pub const PATH_RESERVE: u32 = 1 << 8;
    /// Position of the static virtual channel (buddy bit, then two class bits).
    pub const STATIC_VC_SHIFT: u32 = 13;
    /// Multicast moves along Y first.
    pub const BRCST_XY: u32 = 1 << 16;
    /// The sender is itself a recipient when inside the rectangle.
    pub const BRCST_SRC_INCLUDE: u32 = 1 << 17;
}

/// Static virtual channels (NoC/MemoryMap.md, `NOC_CMD_STATIC_VC`: buddy bit, then the class bits,
/// which are 0 or 1 for unicast and 2 for multicast). Requests on the same channel between the same
/// tiles stay in order.
pub mod vc {
    /// Unicast requests of our firmware: class 0, buddy 1 (as the public firmware's unicast
    /// writes).
    pub const UNICAST: u32 = 1;
    /// Multicast requests: class 2, buddy 0.
    pub const MULTICAST: u32 = 4;
}

/// Position of the 4-bit transaction id within `PACKET_TAG`.
pub const TAG_TRID_SHIFT: u32 = 10;

/// Atomic opcodes in bits 12..15 of `AT_LEN_BE` (WormholeB0/NoC/Atomics.md).
pub mod atomic {
    /// Position of the opcode.
    pub const OP_SHIFT: u32 = 12;
    /// Increment within `2 << int_width` and return the old word.
    pub const INCR_GET: u32 = 0x1;
    /// Swap selected 16-bit lanes.
    pub const SWAP: u32 = 0x3;
    /// Compare with 4 bits and set 4 bits.
    pub const CAS: u32 = 0x4;
    /// Swap one 32-bit word.
    pub const SWAP_4B: u32 = 0x7;
    /// Position of the integer width minus one (bits 2..6).
    pub const WRAP_SHIFT: u32 = 2;
    /// `AT_LEN_BE` of a full 32-bit increment of the word at `addr`.
    pub const fn incr32(addr: u32) -> u32 {
        INCR_GET << OP_SHIFT | 31 << WRAP_SHIFT | (addr >> 2) & 3
    }
}

/// Largest payload of one packet, in bytes: 256 flits of 64 bytes (NoC/README.md).
pub const MAX_PACKET_BYTES: u32 = 16384;
/// Bytes of one flit (NoC/README.md).
pub const FLIT_BYTES: u32 = 64;
/// Width of the torus in routers (NoC/MemoryMap.md, `NOC_NODE_ID`).
pub const GRID_X: u32 = 17;
/// Height of the torus in routers (NoC/MemoryMap.md, `NOC_NODE_ID`).
pub const GRID_Y: u32 = 12;
/// The upper half of a NoC address of the PCIe tile that means pinned host memory.
pub const PCIE_HOST_MID: u32 = (PCIE_HOST_BIT >> 32) as u32;
/// Set in a NoC address of the PCIe tile that means pinned host memory (tt-kmd `ioctl.h`).
pub const PCIE_HOST_BIT: u64 = 1 << 60;

/// A tile's coordinates in translated space, the same on both NoCs (WormholeB0/NoC/Coordinates.md,
/// tt-umd `blackhole_implementation.h`).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NocXy {
    /// Column.
    pub x: u8,
    /// Row.
    pub y: u8,
}

impl NocXy {
    /// Coordinates from column and row.
    pub const fn new(x: u8, y: u8) -> Self {
        Self { x, y }
    }
    /// The form that commands and registers use: y << 6 | x (the original's `cq_commands.hpp`).
    pub const fn encode(self) -> u32 {
        (self.y as u32) << 6 | self.x as u32
    }
    /// The inverse of [`NocXy::encode`]; higher bits are ignored.
    pub const fn decode(word: u32) -> Self {
        Self { x: (word & 0x3F) as u8, y: (word >> 6 & 0x3F) as u8 }
    }
}

impl core::fmt::Display for NocXy {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "({},{})", self.x, self.y)
    }
}

/// A rectangle of tiles, both corners included.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NocRect {
    /// Corner with the smallest coordinates.
    pub start: NocXy,
    /// Corner with the largest coordinates.
    pub end: NocXy,
}

impl NocRect {
    /// The form of a multicast address on NoC 0: start y << 18 | start x << 12 | end y << 6 | end x
    /// (NoC/MemoryMap.md).
    pub const fn encode(self) -> u32 {
        (self.start.y as u32) << 18 | (self.start.x as u32) << 12 | (self.end.y as u32) << 6 | self.end.x as u32
    }
    /// The same rectangle for NoC 1, whose data flows the other way: start and end exchanged
    /// (NoC/Coordinates.md).
    pub const fn encode_noc1(self) -> u32 {
        Self { start: self.end, end: self.start }.encode()
    }
    /// Number of tiles when no column or row between the corners is skipped.
    pub const fn area(self) -> u32 {
        (self.end.x - self.start.x + 1) as u32 * (self.end.y - self.start.y + 1) as u32
    }
}

// NoC/MemoryMap.md, checked against each other: blocks follow one another and do not overlap.
const _: () = {
    assert!(niu_base(1) == NIU1_BASE && NIU1_BASE + NIU_SPAN == crate::stream::BASE);
    assert!(CFG_BASE == NIU_CFG_0 && RTZ_CLR + WORD == CFG_END && CFG_END <= COUNTERS);
    assert!(COUNTERS + 4 * u32_of(counter::COUNT) == COUNTERS_END && COUNTERS_END < CMD_BUF_STRIDE);
    assert!(CMD_BUFS * CMD_BUF_STRIDE <= NIU_SPAN);
    assert!(MAX_PACKET_BYTES == 256 * FLIT_BYTES);
    let rect = NocRect { start: NocXy::new(1, 2), end: NocXy::new(7, 11) };
    assert!(rect.encode() == 0x0008_12C7 && rect.area() == 70);
    assert!(rect.encode_noc1() == 11 << 18 | 7 << 12 | 2 << 6 | 1); // the original's `cq_commands.hpp`: y1, x1, y0, x0
};
