//! NoC coordinates and the registers of a NoC interface unit (NIU).
//!
//! Follows BlackholeA0/NoC/MemoryMap.md (request initiators, configuration, identification) and
//! BlackholeA0/NoC/Counters.md (status counters). Offsets are relative to the NIU's base address.

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

/// Base address of NIU `noc` (0 or 1).
pub const fn niu_base(noc: u32) -> u32 {
    NIU0_BASE + noc * NIU_SPAN
}

/// Fields of one request initiator, as byte offsets from its start.
pub mod init {
    /// Target memory address, bits 31..0.
    pub const TARG_ADDR_LO: u32 = 0x00;
    /// Target memory address, bits 63..32.
    pub const TARG_ADDR_MID: u32 = 0x04;
    /// Target coordinates.
    pub const TARG_ADDR_HI: u32 = 0x08;
    /// Return memory address, bits 31..0.
    pub const RET_ADDR_LO: u32 = 0x0C;
    /// Return memory address, bits 63..32.
    pub const RET_ADDR_MID: u32 = 0x10;
    /// Return coordinates.
    pub const RET_ADDR_HI: u32 = 0x14;
    /// Transaction id and rare flags.
    pub const PACKET_TAG: u32 = 0x18;
    /// Request type and common flags.
    pub const CTRL: u32 = 0x1C;
    /// Length in bytes, byte-enable mask, or atomic opcode and operands.
    pub const AT_LEN_BE: u32 = 0x20;
    /// High half of `AT_LEN_BE`.
    pub const AT_LEN_BE_1: u32 = 0x24;
    /// Immediate data of inline writes and atomics.
    pub const AT_DATA: u32 = 0x28;
    /// Exclusion settings of broadcasts.
    pub const BRCST_EXCLUDE: u32 = 0x2C;
    /// Writing 1 starts the request; reads 0 once it was accepted.
    pub const CMD_CTRL: u32 = 0x40;
}

/// `NOC_NODE_ID`: physical coordinates and size of the NoC.
pub const NODE_ID: u32 = 0x44;
/// `NOC_ENDPOINT_ID`: kind and index of the tile.
pub const ENDPOINT_ID: u32 = 0x48;
/// Clears `NIU_MST_REQS_OUTSTANDING_ID` counters, one bit each.
pub const CLEAR_OUTSTANDING: u32 = 0x60;
/// First of the configuration registers.
pub const CFG_BASE: u32 = 0x100;
/// `NIU_CFG_0`.
pub const NIU_CFG_0: u32 = 0x100;
/// Tile clock disable within `NIU_CFG_0`, which firmware sets for tiles that are fused off.
pub const NIU_CFG_0_CLOCK_OFF: u32 = 1 << 12;
/// Coordinate translation enable within `NIU_CFG_0`.
pub const NIU_CFG_0_TRANSLATE: u32 = 1 << 14;
/// `ROUTER_CFG_0`.
pub const ROUTER_CFG_0: u32 = 0x104;
/// `ROUTER_CFG_1`: broadcast opt-out mask of columns.
pub const ROUTER_CFG_1: u32 = 0x108;
/// `ROUTER_CFG_3`: broadcast opt-out mask of rows.
pub const ROUTER_CFG_3: u32 = 0x110;
/// First register of `NOC_X_ID_TRANSLATE_TABLE`.
pub const X_TABLE: u32 = 0x118;
/// First register of `NOC_Y_ID_TRANSLATE_TABLE`.
pub const Y_TABLE: u32 = 0x130;
/// `NOC_ID_LOGICAL`: the NIU's coordinates in translated space, x | y << 6.
pub const ID_LOGICAL: u32 = 0x148;
/// `NOC_ID_TRANSLATE_ROW_MASK`: rows in which X is not translated.
pub const TRANSLATE_ROW_MASK: u32 = 0x154;
/// End of the configuration registers.
pub const CFG_END: u32 = 0x180;
/// First status counter; counter `i` is at `COUNTERS + 4 * i`.
pub const COUNTERS: u32 = 0x200;
/// End of the status counters.
pub const COUNTERS_END: u32 = 0x300;

/// Indices of the status counters (NoC/Counters.md).
pub mod counter {
    /// Atomic responses received.
    pub const MST_ATOMIC_RESP_RECEIVED: usize = 0;
    /// Write acknowledgements received.
    pub const MST_WR_ACK_RECEIVED: usize = 1;
    /// Read responses received.
    pub const MST_RD_RESP_RECEIVED: usize = 2;
    /// Data flits of read responses received.
    pub const MST_RD_DATA_WORD_RECEIVED: usize = 3;
    /// Requests accepted from software.
    pub const MST_CMD_ACCEPTED: usize = 4;
    /// Read requests sent.
    pub const MST_RD_REQ_SENT: usize = 5;
    /// Non-posted atomics sent.
    pub const MST_NONPOSTED_ATOMIC_SENT: usize = 6;
    /// Posted atomics sent.
    pub const MST_POSTED_ATOMIC_SENT: usize = 7;
    /// Data flits of non-posted writes sent.
    pub const MST_NONPOSTED_WR_DATA_WORD_SENT: usize = 8;
    /// Data flits of posted writes sent.
    pub const MST_POSTED_WR_DATA_WORD_SENT: usize = 9;
    /// Non-posted write requests sent.
    pub const MST_NONPOSTED_WR_REQ_SENT: usize = 10;
    /// Posted write requests sent.
    pub const MST_POSTED_WR_REQ_SENT: usize = 11;
    /// Non-posted write requests started.
    pub const MST_NONPOSTED_WR_REQ_STARTED: usize = 12;
    /// Posted write requests started.
    pub const MST_POSTED_WR_REQ_STARTED: usize = 13;
    /// Read requests started.
    pub const MST_RD_REQ_STARTED: usize = 14;
    /// Non-posted atomics started.
    pub const MST_NONPOSTED_ATOMIC_STARTED: usize = 15;
    /// Outstanding requests of transaction id 0; ids 1..15 follow.
    pub const MST_REQS_OUTSTANDING_ID: usize = 16;
    /// Write requests still leaving, transaction id 0; ids 1..15 follow.
    pub const MST_WRITE_REQS_OUTGOING_ID: usize = 32;
    /// Atomic responses sent.
    pub const SLV_ATOMIC_RESP_SENT: usize = 48;
    /// Write acknowledgements sent.
    pub const SLV_WR_ACK_SENT: usize = 49;
    /// Read responses sent.
    pub const SLV_RD_RESP_SENT: usize = 50;
    /// Data flits of read responses sent.
    pub const SLV_RD_DATA_WORD_SENT: usize = 51;
    /// Requests accepted from the NoC.
    pub const SLV_REQ_ACCEPTED: usize = 52;
    /// Read requests received.
    pub const SLV_RD_REQ_RECEIVED: usize = 53;
    /// Non-posted atomics received.
    pub const SLV_NONPOSTED_ATOMIC_RECEIVED: usize = 54;
    /// Posted atomics received.
    pub const SLV_POSTED_ATOMIC_RECEIVED: usize = 55;
    /// Data flits of non-posted writes received.
    pub const SLV_NONPOSTED_WR_DATA_WORD_RECEIVED: usize = 56;
    /// Data flits of posted writes received.
    pub const SLV_POSTED_WR_DATA_WORD_RECEIVED: usize = 57;
    /// Non-posted write requests received.
    pub const SLV_NONPOSTED_WR_REQ_RECEIVED: usize = 58;
    /// Posted write requests received.
    pub const SLV_POSTED_WR_REQ_RECEIVED: usize = 59;
    /// Non-posted write requests started.
    pub const SLV_NONPOSTED_WR_REQ_STARTED: usize = 60;
    /// Posted write requests started.
    pub const SLV_POSTED_WR_REQ_STARTED: usize = 61;
    /// Number of counter slots.
    pub const COUNT: usize = 64;
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

/// Static virtual channels (NoC/MemoryMap.md, `NOC_CMD_STATIC_VC`: buddy bit, then the class bits, which are 0 or 1 for
/// unicast and 2 for multicast). Requests on the same channel between the same tiles stay in order.
pub mod vc {
    /// Unicast requests of our firmware: class 0, buddy 1 (as the public firmware's unicast writes).
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
/// Set in a NoC address of the PCIe tile that means pinned host memory (facts, "pinned pages").
pub const PCIE_HOST_BIT: u64 = 1 << 60;

/// A tile's coordinates in translated space, the same on both NoCs (facts; NoC/Coordinates.md).
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
    /// The form that commands and registers use: y << 6 | x (facts, "Command bytes").
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
    /// The form of a multicast address on NoC 0: start y << 18 | start x << 12 | end y << 6 | end x (NoC/MemoryMap.md).
    pub const fn encode(self) -> u32 {
        (self.start.y as u32) << 18 | (self.start.x as u32) << 12 | (self.end.y as u32) << 6 | self.end.x as u32
    }
    /// The same rectangle for NoC 1, whose data flows the other way: start and end exchanged (NoC/Coordinates.md).
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
    assert!(init::CMD_CTRL < NODE_ID && NODE_ID < ENDPOINT_ID && ENDPOINT_ID < CLEAR_OUTSTANDING);
    assert!(CLEAR_OUTSTANDING < CFG_BASE && CFG_BASE == NIU_CFG_0 && ID_LOGICAL < CFG_END);
    assert!(CFG_END <= COUNTERS && COUNTERS + 4 * counter::COUNT as u32 == COUNTERS_END);
    assert!(COUNTERS_END < CMD_BUF_STRIDE && CMD_BUFS * CMD_BUF_STRIDE <= NIU_SPAN);
    assert!(counter::MST_REQS_OUTSTANDING_ID + 16 == counter::MST_WRITE_REQS_OUTGOING_ID);
    assert!(counter::MST_WRITE_REQS_OUTGOING_ID + 16 == counter::SLV_ATOMIC_RESP_SENT);
    assert!(MAX_PACKET_BYTES == 256 * FLIT_BYTES);
    let rect = NocRect { start: NocXy::new(1, 2), end: NocXy::new(7, 11) };
    assert!(rect.encode() == 0x0008_12C7 && rect.area() == 70);
    assert!(rect.encode_noc1() == 11 << 18 | 7 << 12 | 2 << 6 | 1); // facts, "Multicast xy": y1, x1, y0, x0
};
