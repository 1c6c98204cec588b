//! Registers of a Tensix tile: control, debug and status, the interrupt controller, TDMA-RISC and
//! PC buffers.
//!
//! Names and offsets of the first two are those of tt-metal's `tensix.h`; what the registers do is
//! in the pages that the rows name. [`crate::tensix`] shows the constants.

use crate::reg::registers;
use crate::tensix::{DEBUG_BASE, SOFT_RESET_ALL_CORES};

const HEADER: &str = "tt-metal, tensix.h";
const README: &str = "BlackholeA0/TensixTile/BabyRISCV/README.md";
const SOFT_RESET: &str = "BlackholeA0/TensixTile/SoftReset.md";
const CONTROL: &str = "WormholeB0/TensixTile/TileControlDebugStatus.md";
const DAISYCHAIN: &str = "WormholeB0/TensixTile/DebugDaisychain.md";
const TIMESTAMPER: &str = "WormholeB0/TensixTile/DebugTimestamper.md";
const INTERFACE: &str = "WormholeB0/TensixTile/BabyRISCV/DebugInterface.md";
const PC_BUFS: &str = "BlackholeA0/TensixTile/BabyRISCV/PCBufs.md";
const PUSH: &str = "BlackholeA0/TensixTile/BabyRISCV/PushTensixInstruction.md";
const CONFIGURATION: &str = "WormholeB0/TensixTile/TensixCoprocessor/BackendConfiguration.md";
const INTERRUPTS: &str = "BlackholeA0/NoC/Interrupts.md";
/// The address of the interrupt controller's registers (`RISC_PIC_BASE`).
const PIC_BASE: u32 = DEBUG_BASE + 0x1000;
const WORD: u32 = 4;

registers! {
    /// Tile control, debug and status. Words without a row are storage.
    pub static DEBUG = {
        name: "tile control", base: DEBUG_BASE, span: PIC_BASE - DEBUG_BASE, copies: 1, stride: 0x1000,
        unit: 1, page: HEADER,
        const u32 = |at| DEBUG_BASE + at,
    };
    /// Performance counters of the instruction threads.
    PERF_CNT_INSTRN_THREAD "RISCV_DEBUG_REG_PERF_CNT_INSTRN_THREAD"[3; WORD] = 0x000, Rw;
    /// Performance counters of the unpackers.
    PERF_CNT_TDMA_UNPACK "RISCV_DEBUG_REG_PERF_CNT_TDMA_UNPACK"[3; WORD] = 0x00C, Rw;
    /// Performance counters of the matrix unit.
    PERF_CNT_FPU "RISCV_DEBUG_REG_PERF_CNT_FPU"[3; WORD] = 0x018, Rw;
    /// Performance counters of L1.
    PERF_CNT_L1 "RISCV_DEBUG_REG_PERF_CNT_L1"[3; WORD] = 0x030, Rw;
    /// Starts and stops all performance counters.
    PERF_CNT_ALL "RISCV_DEBUG_REG_PERF_CNT_ALL" = 0x03C, Rw;
    /// Where the daisychain writes in L1.
    DBG_L1_MEM_REG0 "RISCV_DEBUG_REG_DBG_L1_MEM_REG0" = 0x048, Rw, page DAISYCHAIN;
    /// Where that ends.
    DBG_L1_MEM_REG1 "RISCV_DEBUG_REG_DBG_L1_MEM_REG1" = 0x04C, Rw, page DAISYCHAIN;
    /// How the daisychain writes to L1; bit 12 starts it.
    DBG_L1_MEM_REG2 "RISCV_DEBUG_REG_DBG_L1_MEM_REG2" = 0x050, Rw, fixed 1 << 12,
        refused "the debug daisychain writes to L1", page DAISYCHAIN;
    /// Which signals of the daisychain are read.
    DBG_BUS_CNTL "RISCV_DEBUG_REG_DBG_BUS_CNTL_REG" = 0x054, Rw, page DAISYCHAIN;
    /// Which word of the backend configuration is read.
    CFGREG_RD_CNTL "RISCV_DEBUG_REG_CFGREG_RD_CNTL" = 0x058, Rw, page CONFIGURATION;
    /// The signals.
    DBG_RD_DATA "RISCV_DEBUG_REG_DBG_RD_DATA" = 0x05C, RoIgnore, page DAISYCHAIN;
    /// Reads of register files by the debug bus.
    DBG_ARRAY_RD_EN "RISCV_DEBUG_REG_DBG_ARRAY_RD_EN" = 0x060, Rw;
    /// What is read so.
    DBG_ARRAY_RD_CMD "RISCV_DEBUG_REG_DBG_ARRAY_RD_CMD" = 0x064, Rw;
    /// Switches features off.
    DBG_FEATURE_DISABLE "RISCV_DEBUG_REG_DBG_FEATURE_DISABLE" = 0x068, Rw;
    /// What was read so.
    DBG_ARRAY_RD_DATA "RISCV_DEBUG_REG_DBG_ARRAY_RD_DATA" = 0x06C, Rw;
    /// Clock gating.
    CG_CTRL_HYST0 "RISCV_DEBUG_REG_CG_CTRL_HYST0" = 0x070, Rw;
    /// Clock gating.
    CG_CTRL_HYST1 "RISCV_DEBUG_REG_CG_CTRL_HYST1" = 0x074, Rw;
    /// The word that `CFGREG_RD_CNTL` chose last.
    CFGREG_RDDATA "RISCV_DEBUG_REG_CFGREG_RDDATA" = 0x078, Rw, page CONFIGURATION;
    /// Clock gating.
    CG_CTRL_HYST2 "RISCV_DEBUG_REG_CG_CTRL_HYST2" = 0x07C, Rw;
    /// Accesses debug registers of a core; packets only.
    RISC_DBG_CNTL_0 "RISCV_DEBUG_REG_RISC_DBG_CNTL_0" = 0x080, Rw, page INTERFACE;
    /// What such an access writes.
    RISC_DBG_CNTL_1 "RISCV_DEBUG_REG_RISC_DBG_CNTL_1" = 0x084, Rw, page INTERFACE;
    /// Whether it is done.
    RISC_DBG_STATUS_0 "RISCV_DEBUG_REG_RISC_DBG_STATUS_0" = 0x088, RoIgnore, page INTERFACE;
    /// What it read.
    RISC_DBG_STATUS_1 "RISCV_DEBUG_REG_RISC_DBG_STATUS_1" = 0x08C, RoIgnore, page INTERFACE;
    /// Ten bits for each PC buffer.
    TRISC_PC_BUF_OVERRIDE "RISCV_DEBUG_REG_TRISC_PC_BUF_OVERRIDE" = 0x090, Rw, page PC_BUFS;
    /// Invalid instructions.
    DBG_INVALID_INSTRN "RISCV_DEBUG_REG_DBG_INVALID_INSTRN" = 0x094, Rw;
    /// Pushes an instruction behind the MOP expander.
    INSTRN_BUF_CTRL0 "RISCV_DEBUG_REG_INSTRN_BUF_CTRL0" = 0x0A0, Rw, page PUSH;
    /// The instruction.
    INSTRN_BUF_CTRL1 "RISCV_DEBUG_REG_INSTRN_BUF_CTRL1" = 0x0A4, Rw, page PUSH;
    /// Room behind the MOP expander.
    INSTRN_BUF_STATUS "RISCV_DEBUG_REG_INSTRN_BUF_STATUS" = 0x0A8, RoIgnore, page PUSH;
    /// Stochastic rounding.
    STOCH_RND_MASK "RISCV_DEBUG_REG_STOCH_RND_MASK"[2; WORD] = 0x0AC, Rw;
    /// Exceptions of the matrix unit.
    FPU_STICKY_BITS "RISCV_DEBUG_REG_FPU_STICKY_BITS" = 0x0B4, Rw;
    /// Instruction prefetch (spelt so in the header).
    ETH_RISC_PREFETCH_CTRL "RISCV_DEBUG_REG_ETH_RISC_PREFECTH_CTRL" = 0x0B8, Rw;
    /// Where it ends.
    ETH_RISC_PREFETCH_PC "RISCV_DEBUG_REG_ETH_RISC_PREFECTH_PC" = 0x0BC, Rw;
    /// Performance counters of the packers.
    PERF_CNT_TDMA_PACK "RISCV_DEBUG_REG_PERF_CNT_TDMA_PACK"[3; WORD] = 0x0F0, Rw;
    /// Counted cycles; nothing counts.
    PERF_CNT_OUT_L_INSTRN_THREAD "RISCV_DEBUG_REG_PERF_CNT_OUT_L_INSTRN_THREAD" = 0x100, RoIgnore;
    /// Counted events; nothing counts.
    PERF_CNT_OUT_H_INSTRN_THREAD "RISCV_DEBUG_REG_PERF_CNT_OUT_H_INSTRN_THREAD" = 0x104, RoIgnore;
    /// Counted cycles; nothing counts.
    PERF_CNT_OUT_L_TDMA_UNPACK "RISCV_DEBUG_REG_PERF_CNT_OUT_L_TDMA_UNPACK" = 0x108, RoIgnore;
    /// Counted events; nothing counts.
    PERF_CNT_OUT_H_TDMA_UNPACK "RISCV_DEBUG_REG_PERF_CNT_OUT_H_TDMA_UNPACK" = 0x10C, RoIgnore;
    /// Counted cycles; nothing counts.
    PERF_CNT_OUT_L_TDMA_PACK "RISCV_DEBUG_REG_PERF_CNT_OUT_L_TDMA_PACK" = 0x110, RoIgnore;
    /// Counted events; nothing counts.
    PERF_CNT_OUT_H_TDMA_PACK "RISCV_DEBUG_REG_PERF_CNT_OUT_H_TDMA_PACK" = 0x114, RoIgnore;
    /// Counted cycles; nothing counts.
    PERF_CNT_OUT_L_DBG_L1 "RISCV_DEBUG_REG_PERF_CNT_OUT_L_DBG_L1" = 0x118, RoIgnore;
    /// Counted events; nothing counts.
    PERF_CNT_OUT_H_DBG_L1 "RISCV_DEBUG_REG_PERF_CNT_OUT_H_DBG_L1" = 0x11C, RoIgnore;
    /// Counted cycles; nothing counts.
    PERF_CNT_OUT_L_FPU "RISCV_DEBUG_REG_PERF_CNT_OUT_L_FPU" = 0x120, RoIgnore;
    /// Counted events; nothing counts.
    PERF_CNT_OUT_H_FPU "RISCV_DEBUG_REG_PERF_CNT_OUT_H_FPU" = 0x124, RoIgnore;
    /// Soft reset bits of the tile.
    SOFT_RESET_0 "RISCV_DEBUG_REG_SOFT_RESET_0" = 0x1B0, Rw, reset SOFT_RESET_ALL_CORES, page SOFT_RESET;
    /// Breakpoints of Tensix threads.
    BREAKPOINT_CTRL "RISCV_DEBUG_REG_BREAKPOINT_CTRL" = 0x1C0, Rw;
    /// Their state.
    BREAKPOINT_STATUS "RISCV_DEBUG_REG_BREAKPOINT_STATUS" = 0x1C4, Rw;
    /// Their data.
    BREAKPOINT_DATA "RISCV_DEBUG_REG_BREAKPOINT_DATA" = 0x1C8, Rw;
    /// Error correction.
    ECC_CTRL "RISCV_DEBUG_REG_ECC_CTRL" = 0x1D0, Rw;
    /// Its errors, of which there are none.
    ECC_STATUS "RISCV_DEBUG_REG_ECC_STATUS" = 0x1D4, RoIgnore;
    /// Limit of the watchdog.
    WDT "RISCV_DEBUG_REG_WATCHDOG_TIMER" = 0x1E0, Rw;
    /// Starts the watchdog, which never bites.
    WDT_CNTL "RISCV_DEBUG_REG_WDT_CNTL" = 0x1E4, Rw;
    /// Whether it did.
    WDT_STATUS "RISCV_DEBUG_REG_WDT_STATUS" = 0x1E8, RoIgnore;
    /// Wall clock, low half; reading it latches the high half.
    WALL_CLOCK_L "RISCV_DEBUG_REG_WALL_CLOCK_0" = 0x1F0, RoIgnore, page CONTROL;
    /// Wall clock, high half, as it is now.
    WALL_CLOCK_H "RISCV_DEBUG_REG_WALL_CLOCK_1" = 0x1F4, RoIgnore, page CONTROL;
    /// Wall clock, high half latched with the low half.
    WALL_CLOCK_H_LATCHED "RISCV_DEBUG_REG_WALL_CLOCK_1_AT" = 0x1F8, RoIgnore, page CONTROL;
    /// Appends an event; reads zero.
    TIMESTAMP "RISCV_DEBUG_REG_TIMESTAMP_DUMP_CMD" = 0x1FC, Ro,
        refused "an event for the debug timestamper", page TIMESTAMPER;
    /// Where events go.
    TIMESTAMP_DUMP_CNTL "RISCV_DEBUG_REG_TIMESTAMP_DUMP_CNTL" = 0x200, Rw, page TIMESTAMPER;
    /// How many there are.
    TIMESTAMP_DUMP_STATUS "RISCV_DEBUG_REG_TIMESTAMP_DUMP_STATUS" = 0x204, Rw, page TIMESTAMPER;
    /// Start of the first buffer of events.
    TIMESTAMP_DUMP_BUF0_START_ADDR "RISCV_DEBUG_REG_TIMESTAMP_DUMP_BUF0_START_ADDR" = 0x208, Rw, page TIMESTAMPER;
    /// Its end.
    TIMESTAMP_DUMP_BUF0_END_ADDR "RISCV_DEBUG_REG_TIMESTAMP_DUMP_BUF0_END_ADDR" = 0x20C, Rw, page TIMESTAMPER;
    /// Start of the second buffer.
    TIMESTAMP_DUMP_BUF1_START_ADDR "RISCV_DEBUG_REG_TIMESTAMP_DUMP_BUF1_START_ADDR" = 0x210, Rw, page TIMESTAMPER;
    /// Its end.
    TIMESTAMP_DUMP_BUF1_END_ADDR "RISCV_DEBUG_REG_TIMESTAMP_DUMP_BUF1_END_ADDR" = 0x214, Rw, page TIMESTAMPER;
    /// What the counters of L1 count.
    PERF_CNT_MUX_CTRL "RISCV_DEBUG_REG_PERF_CNT_MUX_CTRL" = 0x218, Rw;
    /// Reads of L1 by the debug bus.
    DBG_L1_READBACK_OFFSET "RISCV_DEBUG_REG_DBG_L1_READBACK_OFFSET" = 0x21C, Rw;
    /// Random stalls.
    LFSR_HIT_MASK "RISCV_DEBUG_REG_LFSR_HIT_MASK" = 0x220, Rw;
    /// Which local RAMs and debug registers a soft reset leaves alone.
    DISABLE_RESET "RISCV_DEBUG_REG_DISABLE_RESET" = 0x224, Rw, page SOFT_RESET;
    /// Reset PC of TRISC0.
    TRISC0_RESET_PC "RISCV_DEBUG_REG_TRISC0_RESET_PC" = 0x228, Rw, page SOFT_RESET;
    /// Reset PC of TRISC1.
    TRISC1_RESET_PC "RISCV_DEBUG_REG_TRISC1_RESET_PC" = 0x22C, Rw, page SOFT_RESET;
    /// Reset PC of TRISC2.
    TRISC2_RESET_PC "RISCV_DEBUG_REG_TRISC2_RESET_PC" = 0x230, Rw, page SOFT_RESET;
    /// Bit i: TRISC i starts at its reset PC register.
    TRISC_RESET_PC_OVERRIDE "RISCV_DEBUG_REG_TRISC_RESET_PC_OVERRIDE" = 0x234, Rw, page SOFT_RESET;
    /// Reset PC of NCRISC.
    NCRISC_RESET_PC "RISCV_DEBUG_REG_NCRISC_RESET_PC" = 0x238, Rw, page SOFT_RESET;
    /// Bit 0: NCRISC starts at its reset PC register.
    NCRISC_RESET_PC_OVERRIDE "RISCV_DEBUG_REG_NCRISC_RESET_PC_OVERRIDE" = 0x23C, Rw, page SOFT_RESET;
    /// Clock gating of Dst.
    DEST_CG_CTRL "RISCV_DEBUG_REG_DEST_CG_CTRL" = 0x240, Rw;
    /// Switches clock gating on.
    CG_CTRL_EN "RISCV_DEBUG_REG_CG_CTRL_EN" = 0x244, Rw;
    /// Wakes gated clocks.
    CG_KICK "RISCV_DEBUG_REG_CG_KICK" = 0x248, Rw;
}

registers! {
    /// The interrupt controller, which raises no interrupts, and the program counter snapshots.
    /// Words without a row are storage.
    pub static PIC = {
        name: "interrupt controller", base: PIC_BASE, span: 0x14C, copies: 1, stride: 0x1000,
        unit: 1, page: HEADER,
        const u32 = |at| PIC_BASE + at,
    };
    /// Software interrupts of BRISC.
    BRISC_SW_INT_EN "RISC_PIC_BRISC_SW_INT_EN" = 0x00, Rw, fixed u32::MAX, refused ENABLED, page INTERRUPTS;
    /// Hardware interrupts of BRISC.
    BRISC_HW_INT_EN "RISC_PIC_BRISC_HW_INT_EN" = 0x04, Rw, fixed u32::MAX, refused ENABLED, page INTERRUPTS;
    /// BRISC's interrupt.
    BRISC_INT_NO "RISC_PIC_BRISC_INT_NO" = 0x08, Rw;
    /// Software interrupts of NCRISC.
    NCRISC_SW_INT_EN "RISC_PIC_NCRISC_SW_INT_EN" = 0x0C, Rw, fixed u32::MAX, refused ENABLED, page INTERRUPTS;
    /// Hardware interrupts of NCRISC.
    NCRISC_HW_INT_EN "RISC_PIC_NCRISC_HW_INT_EN" = 0x10, Rw, fixed u32::MAX, refused ENABLED, page INTERRUPTS;
    /// NCRISC's interrupt.
    NCRISC_INT_NO "RISC_PIC_NCRISC_INT_NO" = 0x14, Rw;
    /// Software interrupts.
    SW_INT_REGS "RISC_PIC_SW_INT_REGS"[32; WORD] = 0x18, Rw;
    /// Hardware interrupts.
    HW_INTS "RISC_PIC_HW_INTS"[4; WORD] = 0x98, Rw;
    /// Addresses of interrupt handlers.
    INT_PCS "RISC_PIC_INT_PCS"[36; WORD] = 0xA8, Rw;
    /// Program counters of BRISC, NCRISC, TRISC0, TRISC1 and TRISC2.
    PC_SNAPSHOT "RISCV_PC_SNAPSHOT"[5; WORD] = 0x138, RoIgnore, page README;
}

const ENABLED: &str = "an interrupt is enabled at the interrupt controller";

/// TDMA-RISC registers, by byte offset (`tensix.h`; WormholeB0/TensixTile/TDMA-RISC.md).
pub mod tdma {
    use crate::reg::registers;
    use crate::tensix::TDMA_BASE;

    const PAGE: &str = "WormholeB0/TensixTile/TDMA-RISC.md";
    /// Bytes from one packer's registers to those of the next, and how many packers there are.
    const PACKER: u32 = 0x100;

    registers! {
        /// TDMA-RISC: the mover's command queue, the packers' and unpackers' register writes, and
        /// what packers report, who have never run.
        pub static TDMA = {
            name: "TDMA-RISC", base: TDMA_BASE, span: 4 * PACKER, copies: 1, stride: 0x1000,
            unit: 1, page: PAGE,
            const u32 = |at| at,
        };
        /// Parameter of the next command: the source.
        XMOV_SRC_ADDR "RISCV_TDMA_REG_XMOV_SRC_ADDR" = 0x00, Wo;
        /// Likewise: the destination.
        XMOV_DST_ADDR "RISCV_TDMA_REG_XMOV_DST_ADDR" = 0x04, Wo;
        /// Likewise: the size.
        XMOV_SIZE "RISCV_TDMA_REG_XMOV_SIZE" = 0x08, Wo;
        /// Likewise: between which memories.
        XMOV_DIRECTION "RISCV_TDMA_REG_XMOV_DIRECTION" = 0x0C, Wo;
        /// A store queues a command.
        COMMAND_ADDR "RISCV_TDMA_REG_COMMAND_ADDR" = 0x10, Wo;
        /// The mover and its queues.
        STATUS "RISCV_TDMA_REG_STATUS" = 0x14, RoIgnore, reset 0x428;
        /// Size of the last tile, if of thread 0.
        PACKED_SIZE "RISCV_TDMA_REG_PACKED_SIZE"[4; PACKER] = 0x18, RoIgnore;
        /// Sum of the sizes of thread 0.
        ACC_PACKED_SIZE "RISCV_TDMA_REG_ACC_PACKED_SIZE"[4; PACKER] = 0x1C, RoIgnore;
        /// Without a name: rows of zeros of the last tile.
        ALL_ZERO_FLAGS "RISCV_TDMA_REG_ALL_ZERO_FLAGS"[4; PACKER] = 0x20, RoIgnore;
        /// Addresses of the unpackers' register writes.
        CLK_GATE_EN "RISCV_TDMA_REG_CLK_GATE_EN" = 0x24, Rw, mask 0xFFFF_FF7F;
        /// Clock gating, and the fourth scaler from bit 16.
        CLK_GATE_HYST "RISCV_TDMA_REG_CLK_GATE_HYST" = 0x28, Rw, mask 0x01FF_007F;
        /// Base of compact commands, one for each core.
        XMOV_L1_BASE_ADDR "RISCV_TDMA_REG_XMOV_L1_BASE_ADDR" = 0x2C, Rw;
        /// The oldest size in each packer's queue.
        FIFO_PACKED_TILE_SIZE "RISCV_TDMA_REG_FIFO_PACKED_TILE_SIZE"[4; PACKER] = 0x30, NotBuilt;
        /// The oldest flags, which a read takes out.
        FIFO_PACKED_TILE_ZEROMASK "RISCV_TDMA_REG_FIFO_PACKED_TILE_ZEROMASK"[4; PACKER] = 0x34, NotBuilt;
        /// Addresses of the packers' register writes.
        FIFO_PACKED_TILE_STATUS "RISCV_TDMA_REG_FIFO_PACKED_TILE_STATUS" = 0x38, Rw, reset 0x55;
        /// Without a name: three scalers, 9 bits each.
        SCALERS "RISCV_TDMA_REG_SCALERS"[2; PACKER] = 0x3C, Rw, mask 0x7FF_FFFF;
        /// Size of the last tile, if of thread 1.
        PACKED_SIZE_1 "RISCV_TDMA_REG_PACKED_SIZE_1"[4; PACKER] = 0x58, RoIgnore;
        /// Sum of the sizes of thread 1.
        ACC_PACKED_SIZE_1 "RISCV_TDMA_REG_ACC_PACKED_SIZE_1"[4; PACKER] = 0x5C, RoIgnore;
        /// Size of the last tile, if of thread 2.
        PACKED_SIZE_2 "RISCV_TDMA_REG_PACKED_SIZE_2"[4; PACKER] = 0x98, RoIgnore;
        /// Sum of the sizes of thread 2.
        ACC_PACKED_SIZE_2 "RISCV_TDMA_REG_ACC_PACKED_SIZE_2"[4; PACKER] = 0x9C, RoIgnore;
    }
}

/// PC buffers, manual TTSync and Tensix semaphores, by byte offset in a thread's part.
pub mod pc_buf {
    use super::{PC_BUFS, WORD};
    use crate::reg::registers;
    use crate::tensix::{PC_BUF_BASE, PC_BUF_STRIDE};

    const SYNC: &str = "BlackholeA0/TensixTile/TensixCoprocessor/SyncUnit.md";

    registers! {
        /// A thread's PC buffer, manual TTSync and the semaphores, as its TRISC sees them. In
        /// BRISC's view, which has one for each thread, every word is the buffer.
        pub static PC_BUF = {
            name: "PC buffer", base: PC_BUF_BASE, span: 0x40, copies: 3, stride: PC_BUF_STRIDE,
            unit: 1, page: PC_BUFS,
            const u32 = |at| at,
        };
        /// A TRISC takes the next value. BRISC appends one; its read waits until all are taken.
        QUEUE "PC_BUF" = 0x00, Rw;
        /// A read waits until the thread's instructions are done.
        TENSIX_SYNC "TENSIX_SYNC" = 0x04, RoIgnore;
        /// A read waits until the MOP expander is done.
        MOP_SYNC "MOP_SYNC" = 0x08, RoIgnore;
        /// A Tensix semaphore.
        SEMAPHORE "PC_BUF_SEMAPHORE"[8; WORD] = 0x20, Rw, page SYNC;
    }
}
