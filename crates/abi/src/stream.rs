//! NoC overlay streams as general-purpose registers.
//!
//! Dispatch and circular buffers use the streams only as counters
//! (WormholeB0/NoC/Overlay/AsGeneralUse.md); the indices are those of the Blackhole overlay (public
//! firmware headers, `noc_overlay_parameters.h`).

/// First stream register (BabyRISCV/README.md).
pub const BASE: u32 = 0xFFB4_0000;
/// Bytes of register space of one stream.
pub const STRIDE: u32 = 0x1000;
/// Streams of a Tensix tile (Overlay/AsGeneralUse.md).
pub const COUNT: u32 = 64;
/// Registers of one stream: a 9-bit index.
pub const REGS: u32 = 512;

pub use reg::{
    REMOTE_DEST_BUF_SIZE, REMOTE_DEST_BUF_START, REMOTE_DEST_WR_PTR, SPACE_AVAILABLE, SPACE_AVAILABLE_UPDATE,
};

/// Position of the increment in `SPACE_AVAILABLE_UPDATE`.
pub const UPDATE_INC_SHIFT: u32 = 6;
/// Width of the counters in bits (Overlay/AsGeneralUse.md).
pub const COUNTER_BITS: u32 = 17;
/// Mask of a counter.
pub const COUNTER_MASK: u32 = (1 << COUNTER_BITS) - 1;

/// Width of phase numbers in bits (Overlay/AsGeneralUse.md).
pub const PHASE_BITS: u32 = 20;
/// `PHASE_AUTO_CONFIG` in `ONETIME_MISC_CFG`: the stream starts to load its configuration.
const PHASE_AUTO_CONFIG: u32 = 1;
/// Bits of `PHASE_AUTO_CFG_HEADER` that are added to the phase instead of being stored
/// (Overlay/AsGeneralUse.md).
pub const PHASE_NUM_INCR: u32 = 0xFFF;
/// Third word of `DEBUG_STATUS`, bit 3: every `SPACE_AVAILABLE` of the stream is non-zero
/// (Overlay/AsGeneralUse.md).
pub const ALL_SPACE_AVAILABLE: u32 = 1 << 3;
/// Remote receivers of a stream that can transmit in multicast mode (Overlay/AsGeneralUse.md).
pub const RECEIVERS: u32 = 32;

/// Streams that can transmit in multicast mode, one bit each (Overlay/README.md, "Stream
/// Capabilities": 0 to 3).
pub const MULTICAST: u64 = 0xF;
/// Streams that can transmit to DRAM buffers (same table: 0 to 3 and 8 to 11).
const WRITES_DRAM: u64 = 0xF0F;
/// Streams that can gather (same table: 0 to 5).
const GATHERS: u64 = 0x3F;

/// Registers, by index (tt-metal, noc_overlay_parameters.h, `STREAM_..._REG_INDEX`).
pub mod reg {
    use super::{
        BASE, COUNT, COUNTER_MASK, GATHERS, MULTICAST, PHASE_AUTO_CONFIG, PHASE_BITS, RECEIVERS, REGS, STRIDE,
        WRITES_DRAM,
    };
    use crate::reg::registers;

    const PAGE: &str = "WormholeB0/NoC/Overlay/AsGeneralUse.md";
    const HEADER: &str = "tt-metal, noc_overlay_parameters.h";
    const WORD: u32 = 4;
    const PHASE: u32 = (1 << PHASE_BITS) - 1;

    registers! {
        /// An overlay stream while it is idle. A register that only some streams have reads as zero
        /// in the others, which ignore writes to it. Its width is Blackhole's where the page's is
        /// another.
        pub static STREAM = {
            name: "overlay stream", base: BASE, span: REGS * WORD, copies: COUNT, stride: STRIDE,
            unit: WORD, page: PAGE,
            const u32 = |at| at,
        };
        /// A message of a source endpoint.
        SOURCE_ENDPOINT_NEW_MSG_INFO "STREAM_SOURCE_ENDPOINT_NEW_MSG_INFO" = 0, NotBuilt, page HEADER;
        /// Adds to the messages received.
        NUM_MSGS_RECEIVED_INC "STREAM_NUM_MSGS_RECEIVED_INC" = 1, NotBuilt, page HEADER;
        /// Configuration of a phase; bit 0 starts to load one.
        ONETIME_MISC_CFG "STREAM_ONETIME_MISC_CFG" = 2, Rw, mask 0xFF_FFFF, fixed PHASE_AUTO_CONFIG,
            refused "it starts to load its configuration from L1 (PHASE_AUTO_CONFIG)";
        /// Configuration bits.
        MISC_CFG "STREAM_MISC_CFG" = 3, Rw, mask 0xFF_FFFF;
        /// The remote source.
        REMOTE_SRC "STREAM_REMOTE_SRC" = 4, Rw, mask 0xFF_FFFF;
        /// The remote source's phase, relative to `CURR_PHASE_BASE`.
        REMOTE_SRC_PHASE "STREAM_REMOTE_SRC_PHASE" = 5, Rw, mask PHASE;
        /// When the source learns of free space.
        ACK_THRESHOLD "STREAM_MEM_BUF_SPACE_AVAILABLE_ACK_THRESHOLD" = 6, Rw, mask 0xF;
        /// The remote destination.
        REMOTE_DEST "STREAM_REMOTE_DEST" = 7, Rw, mask 0x3_FFFF;
        /// Pages acknowledged (popped) of a circular buffer.
        REMOTE_DEST_BUF_START "STREAM_REMOTE_DEST_BUF_START" = 8, Rw, mask COUNTER_MASK;
        /// High bits of the former.
        REMOTE_DEST_BUF_START_HI "STREAM_REMOTE_DEST_BUF_START_HI" = 9, Rw, mask 0x7FFF, only WRITES_DRAM;
        /// Pages received (pushed); a write sets SPACE_AVAILABLE.
        REMOTE_DEST_BUF_SIZE "STREAM_REMOTE_DEST_BUF_SIZE" = 10, Rw, mask COUNTER_MASK;
        /// Set to zero by a write of `REMOTE_DEST_BUF_START`.
        REMOTE_DEST_WR_PTR "STREAM_REMOTE_DEST_WR_PTR" = 11, Rw, mask COUNTER_MASK;
        /// Size of the destination's message info buffer.
        REMOTE_DEST_MSG_INFO_BUF_SIZE "STREAM_REMOTE_DEST_MSG_INFO_BUF_SIZE" = 12, NotBuilt, page HEADER;
        /// The destination's message info write pointer.
        REMOTE_DEST_MSG_INFO_WR_PTR "STREAM_REMOTE_DEST_MSG_INFO_WR_PTR" = 13, Rw, mask COUNTER_MASK;
        /// High bits of the former.
        REMOTE_DEST_MSG_INFO_WR_PTR_HI "STREAM_REMOTE_DEST_MSG_INFO_WR_PTR_HI" = 14, Rw, mask 0x7FFF,
            only WRITES_DRAM;
        /// The former while the buffer wraps.
        REMOTE_DEST_MSG_INFO_WRAP_WR_PTR "STREAM_REMOTE_DEST_MSG_INFO_WRAP_WR_PTR" = 15, NotBuilt, page HEADER;
        /// Traffic priority and virtual channel.
        REMOTE_DEST_TRAFFIC "STREAM_REMOTE_DEST_TRAFFIC" = 16, Rw, mask 0xF;
        /// Start of the stream's buffer; writing it zeroes both pointers.
        BUF_START "STREAM_BUF_START" = 17, Rw, mask COUNTER_MASK;
        /// Size of the stream's buffer.
        BUF_SIZE "STREAM_BUF_SIZE" = 18, Rw, mask COUNTER_MASK;
        /// Read pointer; writing it sets `NEXT_RECEIVED_MSG_ADDR`.
        RD_PTR "STREAM_RD_PTR" = 19, Rw, mask COUNTER_MASK;
        /// Write pointer.
        WR_PTR "STREAM_WR_PTR" = 20, Rw, mask COUNTER_MASK;
        /// Size of the message info buffer.
        MSG_INFO_BUF_SIZE "STREAM_MSG_INFO_BUF_SIZE" = 21, NotBuilt, page HEADER;
        /// Message info pointer.
        MSG_INFO_PTR "STREAM_MSG_INFO_PTR" = 22, Rw, mask COUNTER_MASK;
        /// Message info write pointer.
        MSG_INFO_WR_PTR "STREAM_MSG_INFO_WR_PTR" = 23, Rw, mask COUNTER_MASK;
        /// Multicast destination.
        MCAST_DEST "STREAM_MCAST_DEST" = 24, Rw, mask 0x7_FFFF, only MULTICAST;
        /// Number of multicast destinations.
        MCAST_DEST_NUM "STREAM_MCAST_DEST_NUM" = 25, Rw, mask 0x3F, only MULTICAST;
        /// Gather configuration.
        GATHER "STREAM_GATHER" = 26, Rw, mask 0x3_FFFF, only GATHERS;
        /// Messages in order before the source starts over.
        MSG_SRC_IN_ORDER_FWD_NUM_MSGS "STREAM_MSG_SRC_IN_ORDER_FWD_NUM_MSGS" = 27, NotBuilt, page HEADER;
        /// Base of phase numbers.
        CURR_PHASE_BASE "STREAM_CURR_PHASE_BASE" = 28, Rw, mask PHASE;
        /// Phase, relative to `CURR_PHASE_BASE`.
        CURR_PHASE "STREAM_CURR_PHASE" = 29, Rw, mask PHASE;
        /// Base of `PHASE_AUTO_CFG_PTR`.
        PHASE_AUTO_CFG_PTR_BASE "STREAM_PHASE_AUTO_CFG_PTR_BASE" = 30, Rw, mask COUNTER_MASK;
        /// Configuration pointer, relative to its base.
        PHASE_AUTO_CFG_PTR "STREAM_PHASE_AUTO_CFG_PTR" = 31, Rw, mask COUNTER_MASK;
        /// Loads a configuration again.
        RELOAD_PHASE_BLOB "STREAM_RELOAD_PHASE_BLOB" = 32, NotBuilt, page HEADER;
        /// Where a message's header has its size.
        MSG_HEADER_FORMAT "STREAM_MSG_HEADER_FORMAT" = 33, NotBuilt, page HEADER;
        /// Configuration header; its low 12 bits are added to the phase.
        PHASE_AUTO_CFG_HEADER "STREAM_PHASE_AUTO_CFG_HEADER" = 34, Rw;
        /// Clock gating.
        PERF_CONFIG "STREAM_PERF_CONFIG" = 35, Rw, mask 0xFFFF, only 1, page HEADER;
        /// For general use.
        SCRATCH "STREAM_SCRATCH"[6; WORD] = 36, Rw, mask 0xFF_FFFF, only WRITES_DRAM;
        /// Start of the message blob buffer.
        MSG_BLOB_BUF_START "STREAM_MSG_BLOB_BUF_START" = 206, NotBuilt, page HEADER;
        /// Writes an entry of the table of offsets.
        GLOBAL_OFFSET_TABLE "STREAM_GLOBAL_OFFSET_TABLE" = 207, NotBuilt, page HEADER;
        /// For firmware, in no stream.
        FIRMWARE_SCRATCH "FIRMWARE_SCRATCH" = 208, NotBuilt, page HEADER;
        /// Mask of local sources, bits 23..0.
        LOCAL_SRC_MASK "STREAM_LOCAL_SRC_MASK" = 224, Rw, mask 0xFF_FFFF, only GATHERS;
        /// Mask of local sources, bits 47..24.
        LOCAL_SRC_MASK_1 "STREAM_LOCAL_SRC_MASK_1" = 225, Rw, mask 0xFF_FFFF, only GATHERS;
        /// Mask of local sources, bits 63..48.
        LOCAL_SRC_MASK_2 "STREAM_LOCAL_SRC_MASK_2" = 226, Rw, mask 0xFFFF, only GATHERS;
        /// Fetch of message headers.
        MSG_HEADER_FETCH "STREAM_MSG_HEADER_FETCH" = 254, NotBuilt, page HEADER;
        /// For general use.
        SCRATCH32 "STREAM_SCRATCH32" = 256, Rw, only GATHERS | WRITES_DRAM, page HEADER;
        /// What the stream waits for.
        WAIT_STATUS "STREAM_WAIT_STATUS" = 257, NotBuilt, page HEADER;
        /// Messages received in all.
        NUM_MSGS_RECEIVED_IN_BUF_AND_MEM "STREAM_NUM_MSGS_RECEIVED_IN_BUF_AND_MEM" = 258, Ro, page HEADER;
        /// Messages received and not yet cleared.
        NUM_MSGS_RECEIVED "STREAM_NUM_MSGS_RECEIVED" = 259, Ro, page HEADER;
        /// Free space of the buffer.
        BUF_SPACE_AVAILABLE "STREAM_BUF_SPACE_AVAILABLE" = 260, NotBuilt, page HEADER;
        /// Free space of the message info buffer.
        MSG_INFO_BUF_SPACE_AVAILABLE "STREAM_MSG_INFO_BUF_SPACE_AVAILABLE" = 261, NotBuilt, page HEADER;
        /// Address of the next message.
        NEXT_RECEIVED_MSG_ADDR "STREAM_NEXT_RECEIVED_MSG_ADDR" = 262, Ro;
        /// Size of the next message.
        NEXT_RECEIVED_MSG_SIZE "STREAM_NEXT_RECEIVED_MSG_SIZE" = 263, Ro;
        /// Clears messages and their data.
        MULTI_MSG_CLEAR "STREAM_MULTI_MSG_CLEAR" = 264, NotBuilt, page HEADER;
        /// Clears message info.
        MSG_INFO_CLEAR "STREAM_MSG_INFO_CLEAR" = 265, NotBuilt, page HEADER;
        /// Clears message data.
        MSG_DATA_CLEAR "STREAM_MSG_DATA_CLEAR" = 266, NotBuilt, page HEADER;
        /// Starts the next phase.
        PHASE_ADVANCE "STREAM_PHASE_ADVANCE" = 267, NotBuilt, page HEADER;
        /// A destination is ready for a phase.
        DEST_PHASE_READY_UPDATE "STREAM_DEST_PHASE_READY_UPDATE" = 268, NotBuilt, page HEADER;
        /// A source is ready.
        SRC_READY_UPDATE "STREAM_SRC_READY_UPDATE" = 269, NotBuilt, page HEADER;
        /// Writing `n << 6 | i` adds n to counter i.
        SPACE_AVAILABLE_UPDATE "STREAM_REMOTE_DEST_BUF_SPACE_AVAILABLE_UPDATE" = 270, WoFault;
        /// Resets and stops the stream.
        RESET "STREAM_RESET" = 271, NotBuilt, page HEADER;
        /// Zero masks of a group of messages.
        MSG_GROUP_ZERO_MASK_AND "STREAM_MSG_GROUP_ZERO_MASK_AND" = 272, NotBuilt, page HEADER;
        /// Whether the message info register is full.
        MSG_INFO_FULL "STREAM_MSG_INFO_FULL" = 273, NotBuilt, page HEADER;
        /// Likewise, and nothing is being loaded.
        MSG_INFO_FULLY_LOADED "STREAM_MSG_INFO_FULLY_LOADED" = 274, NotBuilt, page HEADER;
        /// 1 when the message info pointers are equal.
        MSG_INFO_CAN_PUSH_NEW_MSG "STREAM_MSG_INFO_CAN_PUSH_NEW_MSG" = 275, Ro;
        /// Compression flags of a group of messages.
        MSG_GROUP_COMPRESS "STREAM_MSG_GROUP_COMPRESS" = 276, NotBuilt, page HEADER;
        /// Whether all messages of the phase are in.
        PHASE_ALL_MSGS_PUSHED "STREAM_PHASE_ALL_MSGS_PUSHED" = 277, NotBuilt, page HEADER;
        /// Whether the stream takes messages.
        READY_FOR_MSG_PUSH "STREAM_READY_FOR_MSG_PUSH" = 278, NotBuilt, page HEADER;
        /// Entries of the table of offsets.
        GLOBAL_OFFSET_TABLE_RD "STREAM_GLOBAL_OFFSET_TABLE_RD"[8; WORD] = 279, NotBuilt, page HEADER;
        /// Streams that finished their configurations.
        BLOB_AUTO_CFG_DONE "STREAM_BLOB_AUTO_CFG_DONE"[2; WORD] = 288, Ro, only 1, page HEADER;
        /// A stream that finished its configuration.
        BLOB_NEXT_AUTO_CFG_DONE "STREAM_BLOB_NEXT_AUTO_CFG_DONE" = 290, NotBuilt, page HEADER;
        /// Header of the next message.
        SET_MSG_HEADER "STREAM_RECEIVER_ENDPOINT_SET_MSG_HEADER"[4; WORD] = 291, NotBuilt, page HEADER;
        /// Counters; the first, or all if it multicasts.
        SPACE_AVAILABLE "STREAM_REMOTE_DEST_BUF_SPACE_AVAILABLE"[32; WORD] = 297, Ro;
        /// The message info bus.
        RECEIVER_MSG_INFO "STREAM_RECEIVER_MSG_INFO" = 329, NotBuilt, page HEADER;
        /// Which stream the debug bus shows.
        DEBUG_STATUS_SEL "STREAM_DEBUG_STATUS_SEL" = 499, NotBuilt, page HEADER;
        /// Invalid operations so far.
        DEBUG_ASSERTIONS "STREAM_DEBUG_ASSERTIONS" = 500, Ro, page HEADER;
        /// First two words of debug status.
        DEBUG_STATUS "STREAM_DEBUG_STATUS"[2; WORD] = 501, NotBuilt, page HEADER;
        /// Third word of debug status; bit 3: every SPACE_AVAILABLE is non-zero.
        DEBUG_STATUS_2 "STREAM_DEBUG_STATUS_2" = 503, Ro;
        /// The other words of debug status.
        DEBUG_STATUS_3 "STREAM_DEBUG_STATUS_3"[7; WORD] = 504, NotBuilt, page HEADER;
    }

    const _: () = assert!(SPACE_AVAILABLE + RECEIVERS == RECEIVER_MSG_INFO);
}

/// Address of register `reg` of `stream`.
pub const fn reg_addr(stream: u32, reg: u32) -> u32 {
    BASE + stream * STRIDE + reg * 4
}

const _: () = assert!(reg_addr(48, SPACE_AVAILABLE_UPDATE) == 0xFFB7_0438); // BabyRISCV/README.md
