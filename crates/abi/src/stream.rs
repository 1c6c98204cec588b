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

/// Address of register `reg` of `stream`.
pub const fn reg_addr(stream: u32, reg: u32) -> u32 {
    BASE + stream * STRIDE + reg * 4
}

const _: () = assert!(reg_addr(48, SPACE_AVAILABLE_UPDATE) == 0xFFB7_0438); // facts, "The cores"
