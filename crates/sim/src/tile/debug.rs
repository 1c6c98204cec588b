//! Tile control, debug and status registers, as far as start-up and timing use them.
//!
//! Follows BlackholeA0/TensixTile/SoftReset.md and WormholeB0/TensixTile/TileControlDebugStatus.md. Registers that only hold what was
//! written (clock gating and the like) are plain storage.

use tilework_abi::tensix::{self, Processor};
use tilework_riscv::{Access, Cycle};

const WORDS: usize = ((tensix::DEBUG_END - tensix::DEBUG_BASE) / 4) as usize;

/// The registers.
#[derive(Clone, Debug)]
pub(super) struct DebugRegs {
    words: Box<[u32; WORDS]>,
    wall_high: u32,
}

impl DebugRegs {
    /// Power-on: all cores held.
    pub(super) fn new() -> Self {
        let mut this = Self { words: Box::new([0; WORDS]), wall_high: 0 };
        this.set(tensix::SOFT_RESET_0, tensix::SOFT_RESET_ALL_CORES);
        this
    }
    fn word(&self, addr: u32) -> u32 {
        self.words[((addr - tensix::DEBUG_BASE) / 4) as usize]
    }
    fn set(&mut self, addr: u32, value: u32) {
        self.words[((addr - tensix::DEBUG_BASE) / 4) as usize] = value;
    }
    /// Reads the register at `addr`, which lies within the block.
    pub(super) fn read(&mut self, addr: u32, at: Cycle) -> (u32, Access) {
        match addr & !3 {
            tensix::WALL_CLOCK_L => {
                self.wall_high = (at >> 32) as u32;
                (at as u32, Access::Volatile)
            }
            tensix::WALL_CLOCK_H => ((at >> 32) as u32, Access::Volatile),
            tensix::WALL_CLOCK_H_LATCHED => (self.wall_high, Access::Volatile),
            addr => (self.word(addr), Access::Watched),
        }
    }
    /// Stores a word. The caller looks after [`tensix::SOFT_RESET_0`].
    pub(super) fn write(&mut self, addr: u32, value: u32) {
        self.set(addr & !3, value);
    }
    /// Which cores are held.
    pub(super) fn held(&self, core: Processor) -> bool {
        self.word(tensix::SOFT_RESET_0) & core.soft_reset_bit() != 0
    }
    /// Where `core` starts when it leaves soft reset.
    pub(super) fn reset_pc(&self, core: Processor) -> u32 {
        let overridden = |reg, bit: u32, pc| (self.word(reg) >> bit & 1 != 0).then(|| self.word(pc));
        match core {
            Processor::Brisc => None,
            Processor::Ncrisc => overridden(tensix::NCRISC_RESET_PC_OVERRIDE, 0, tensix::NCRISC_RESET_PC),
            Processor::Trisc0 => overridden(tensix::TRISC_RESET_PC_OVERRIDE, 0, tensix::TRISC0_RESET_PC),
            Processor::Trisc1 => overridden(tensix::TRISC_RESET_PC_OVERRIDE, 1, tensix::TRISC1_RESET_PC),
            Processor::Trisc2 => overridden(tensix::TRISC_RESET_PC_OVERRIDE, 2, tensix::TRISC2_RESET_PC),
        }
        .unwrap_or(core.default_reset_pc())
    }
    /// Whether a soft reset leaves the local RAM of `core` alone.
    pub(super) fn keeps_local(&self, core: Processor) -> bool {
        let bit = match core {
            Processor::Trisc0 => 0,
            Processor::Trisc1 => 2,
            Processor::Trisc2 => 4,
            Processor::Brisc => 6,
            Processor::Ncrisc => 8,
        };
        self.word(tensix::DISABLE_RESET) >> bit & 1 != 0
    }
}
