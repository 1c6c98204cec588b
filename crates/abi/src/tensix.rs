//! The address space of a Tensix tile outside L1, and the instructions of its
//! coprocessor ([`insn`]) and its configuration ([`mod@cfg`]).
//!
//! Follows BlackholeA0/TensixTile/BabyRISCV/README.md (memory map) and
//! BlackholeA0/TensixTile/SoftReset.md. The registers of tile control and their addresses are rows
//! of [`DEBUG`] and [`PIC`], those of TDMA-RISC and PC buffers rows of [`tdma::TDMA`] and
//! [`pc_buf::PC_BUF`].

pub use crate::reg_tile::*;

pub mod cfg;
pub mod insn;

/// Bytes of L1: 1536 KiB.
pub const L1_SIZE: u32 = 0x18_0000;
/// The core's own local data RAM.
pub const LOCAL_BASE: u32 = 0xFFB0_0000;
/// Bytes of local RAM of BRISC and NCRISC.
pub const LOCAL_SIZE_DM: u32 = 8192;
/// Bytes of local RAM of each TRISC.
pub const LOCAL_SIZE_TRISC: u32 = 4096;
/// Local RAMs as others see them, in the order of [`Processor`].
pub const LOCAL_SLOW: [u32; 5] = [0xFFB1_4000, 0xFFB1_6000, 0xFFB1_8000, 0xFFB1_A000, 0xFFB1_C000];
/// TDMA-RISC registers.
pub const TDMA_BASE: u32 = 0xFFB1_1000;
/// Tile control, debug and status registers.
pub const DEBUG_BASE: u32 = 0xFFB1_2000;
/// MOP expander configuration of the core's own thread.
pub const MOP_CFG_BASE: u32 = 0xFFB8_0000;
/// Window onto Dst.
pub const DST_BASE: u32 = 0xFFBD_8000;
/// Tensix general-purpose registers.
pub const GPR_BASE: u32 = 0xFFE0_0000;
/// Tensix instruction push; + 0x10000 per thread for BRISC.
pub const INSTRN_BUF_BASE: u32 = 0xFFE4_0000;
/// PC buffers, manual TTSync and (from + 0x20) Tensix semaphores; + 0x10000 per thread for BRISC.
pub const PC_BUF_BASE: u32 = 0xFFE8_0000;
/// Distance between the PC buffers of two threads, as BRISC sees them.
pub const PC_BUF_STRIDE: u32 = 0x1_0000;
/// Mailboxes between the cores B, T0, T1, T2; + 0x1000 each.
pub const MAILBOX_BASE: u32 = 0xFFEC_0000;
/// Tensix backend configuration.
pub const CFG_BASE: u32 = 0xFFEF_0000;
/// All five cores held (the original's `device.py`).
pub const SOFT_RESET_ALL_CORES: u32 = 0x4_7800;
/// Only BRISC runs (the original's `device.py`).
pub const SOFT_RESET_BRISC_RUNS: u32 = 0x4_7000;

/// The five cores of a tile, in the order of the launch message's `enables` bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Processor {
    /// Data movement 0, "RISCV B".
    Brisc = 0,
    /// Data movement 1, "RISCV NC".
    Ncrisc = 1,
    /// Unpack thread, "RISCV T0".
    Trisc0 = 2,
    /// Math thread, "RISCV T1".
    Trisc1 = 3,
    /// Pack thread, "RISCV T2".
    Trisc2 = 4,
}

impl Processor {
    /// All five, in order.
    pub const ALL: [Processor; 5] = [Self::Brisc, Self::Ncrisc, Self::Trisc0, Self::Trisc1, Self::Trisc2];
    /// Position in the order of `enables`.
    #[inline]
    pub const fn index(self) -> usize {
        self as usize
    }
    /// The name that reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Brisc => "BRISC",
            Self::Ncrisc => "NCRISC",
            Self::Trisc0 => "TRISC0",
            Self::Trisc1 => "TRISC1",
            Self::Trisc2 => "TRISC2",
        }
    }
    /// The bit that holds this core in `SOFT_RESET_0` (SoftReset.md).
    pub const fn soft_reset_bit(self) -> u32 {
        match self {
            Self::Brisc => 1 << 11,
            Self::Trisc0 => 1 << 12,
            Self::Trisc1 => 1 << 13,
            Self::Trisc2 => 1 << 14,
            Self::Ncrisc => 1 << 18,
        }
    }
    /// Bytes of local data RAM.
    pub const fn local_size(self) -> u32 {
        match self {
            Self::Brisc | Self::Ncrisc => LOCAL_SIZE_DM,
            _ => LOCAL_SIZE_TRISC,
        }
    }
    /// Where the core starts when no override is set (SoftReset.md).
    pub const fn default_reset_pc(self) -> u32 {
        match self {
            Self::Brisc => 0,
            Self::Ncrisc => 0x1_2000,
            Self::Trisc0 => 0x6000,
            Self::Trisc1 => 0xA000,
            Self::Trisc2 => 0xE000,
        }
    }
}

impl core::fmt::Display for Processor {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.name())
    }
}

const _: () = {
    let mut bits = 0;
    let mut i = 0;
    while i < 5 {
        bits |= Processor::ALL[i].soft_reset_bit();
        i += 1;
    }
    assert!(bits == SOFT_RESET_ALL_CORES);
    assert!(bits & !Processor::Brisc.soft_reset_bit() == SOFT_RESET_BRISC_RUNS);
};
