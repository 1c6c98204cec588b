//! NoC overlay streams as general-purpose registers.
//!
//! Dispatch and circular buffers use the streams only as counters (WormholeB0/NoC/Overlay/AsGeneralUse.md); the indices are those of
//! the Blackhole overlay (public firmware headers, `noc_overlay_parameters.h`).

/// First stream register (facts, "The cores").
pub const BASE: u32 = 0xFFB4_0000;
/// Bytes of register space of one stream.
pub const STRIDE: u32 = 0x1000;
/// Streams of a Tensix tile (Overlay/AsGeneralUse.md).
pub const COUNT: u32 = 64;
/// Registers of one stream: a 9-bit index.
pub const REGS: u32 = 512;

/// `STREAM_REMOTE_DEST_BUF_START`: a circular buffer's count of pages acknowledged (popped).
pub const REMOTE_DEST_BUF_START: u32 = 8;
/// `STREAM_REMOTE_DEST_BUF_SIZE`: a circular buffer's count of pages received (pushed); writing it also sets SPACE_AVAILABLE.
pub const REMOTE_DEST_BUF_SIZE: u32 = 10;
/// `STREAM_REMOTE_DEST_WR_PTR`: set to zero by a write of `REMOTE_DEST_BUF_START`.
pub const REMOTE_DEST_WR_PTR: u32 = 11;
/// `STREAM_REMOTE_DEST_BUF_SPACE_AVAILABLE_UPDATE`: writing `n << 6 | i` adds n to SPACE_AVAILABLE `i`.
pub const SPACE_AVAILABLE_UPDATE: u32 = 270;
/// `STREAM_REMOTE_DEST_BUF_SPACE_AVAILABLE`: the accumulating counter, read only.
pub const SPACE_AVAILABLE: u32 = 297;
/// Position of the increment in `SPACE_AVAILABLE_UPDATE`.
pub const UPDATE_INC_SHIFT: u32 = 6;
/// Width of the counters in bits (Overlay/AsGeneralUse.md).
pub const COUNTER_BITS: u32 = 17;
/// Mask of a counter.
pub const COUNTER_MASK: u32 = (1 << COUNTER_BITS) - 1;

/// Indices of the other registers that an idle stream offers for general use (same header; Overlay/AsGeneralUse.md).
pub mod reg {
    /// Configuration of one phase; bit 0 starts the loading of a configuration from L1.
    pub const ONETIME_MISC_CFG: u32 = 2;
    /// Configuration bits.
    pub const MISC_CFG: u32 = 3;
    /// The remote source.
    pub const REMOTE_SRC: u32 = 4;
    /// The remote source's phase, relative to `CURR_PHASE_BASE`.
    pub const REMOTE_SRC_PHASE: u32 = 5;
    /// `MEM_BUF_SPACE_AVAILABLE_ACK_THRESHOLD`.
    pub const ACK_THRESHOLD: u32 = 6;
    /// The remote destination.
    pub const REMOTE_DEST: u32 = 7;
    /// High bits of `REMOTE_DEST_BUF_START`.
    pub const REMOTE_DEST_BUF_START_HI: u32 = 9;
    /// The destination's message info write pointer.
    pub const REMOTE_DEST_MSG_INFO_WR_PTR: u32 = 13;
    /// High bits of the former.
    pub const REMOTE_DEST_MSG_INFO_WR_PTR_HI: u32 = 14;
    /// Traffic priority and virtual channel.
    pub const REMOTE_DEST_TRAFFIC: u32 = 16;
    /// Start of the stream's buffer; writing it zeroes both pointers.
    pub const BUF_START: u32 = 17;
    /// Size of the stream's buffer.
    pub const BUF_SIZE: u32 = 18;
    /// Read pointer; writing it sets `NEXT_RECEIVED_MSG_ADDR`.
    pub const RD_PTR: u32 = 19;
    /// Write pointer.
    pub const WR_PTR: u32 = 20;
    /// Message info pointer.
    pub const MSG_INFO_PTR: u32 = 22;
    /// Message info write pointer.
    pub const MSG_INFO_WR_PTR: u32 = 23;
    /// Multicast destination.
    pub const MCAST_DEST: u32 = 24;
    /// Number of multicast destinations.
    pub const MCAST_DEST_NUM: u32 = 25;
    /// Gather configuration.
    pub const GATHER: u32 = 26;
    /// Base of phase numbers.
    pub const CURR_PHASE_BASE: u32 = 28;
    /// Phase, relative to `CURR_PHASE_BASE`.
    pub const CURR_PHASE: u32 = 29;
    /// Base of `PHASE_AUTO_CFG_PTR`.
    pub const PHASE_AUTO_CFG_PTR_BASE: u32 = 30;
    /// Configuration pointer, relative to its base.
    pub const PHASE_AUTO_CFG_PTR: u32 = 31;
    /// Configuration header; its low 12 bits are added to the phase.
    pub const PHASE_AUTO_CFG_HEADER: u32 = 34;
    /// Clock gating; stream 0 only.
    pub const PERF_CONFIG: u32 = 35;
    /// First of six scratch registers of 24 bits.
    pub const SCRATCH_0: u32 = 36;
    /// Last scratch register.
    pub const SCRATCH_5: u32 = 41;
    /// Mask of local sources, bits 23..0.
    pub const LOCAL_SRC_MASK: u32 = 224;
    /// Mask of local sources, bits 47..24.
    pub const LOCAL_SRC_MASK_1: u32 = 225;
    /// Mask of local sources, bits 63..48.
    pub const LOCAL_SRC_MASK_2: u32 = 226;
    /// A scratch register of 32 bits.
    pub const SCRATCH32: u32 = 256;
    /// Messages received in all.
    pub const NUM_MSGS_RECEIVED_IN_BUF_AND_MEM: u32 = 258;
    /// Messages received and not yet cleared.
    pub const NUM_MSGS_RECEIVED: u32 = 259;
    /// Address of the next message.
    pub const NEXT_RECEIVED_MSG_ADDR: u32 = 262;
    /// Size of the next message.
    pub const NEXT_RECEIVED_MSG_SIZE: u32 = 263;
    /// 1 when the message info pointers are equal.
    pub const MSG_INFO_CAN_PUSH_NEW_MSG: u32 = 275;
    /// Streams 0 to 31 that finished their configurations; stream 0 only.
    pub const BLOB_AUTO_CFG_DONE: u32 = 288;
    /// Streams 32 to 63 that finished their configurations; stream 0 only.
    pub const BLOB_AUTO_CFG_DONE_HI: u32 = 289;
    /// Invalid operations so far.
    pub const DEBUG_ASSERTIONS: u32 = 500;
    /// Third word of debug status; bit 3: every SPACE_AVAILABLE is non-zero.
    pub const DEBUG_STATUS_2: u32 = 503;
}

/// Address of register `reg` of `stream`.
pub const fn reg_addr(stream: u32, reg: u32) -> u32 {
    BASE + stream * STRIDE + reg * 4
}

const _: () = assert!(reg_addr(48, SPACE_AVAILABLE_UPDATE) == 0xFFB7_0438); // facts, "The cores"
