//! Tile control, debug and status registers, the interrupt controller's registers and the program
//! counter snapshots.
//!
//! The registers are rows of [`tensix::DEBUG`] and [`tensix::PIC`], which name their pages.
//! Those that only hold what was written (clock gating, reset PCs, rounding masks and the like)
//! are storage, and so are words without a row. Registers that hardware updates for reasons
//! that are not modelled read as zero: performance counters, ECC errors, the watchdog. Of the
//! debug daisychain's signals, only the execution state of the cores is modelled; the others
//! read as zero.
//!
//! A core's program counter is known when a packet takes effect, because all cores have then
//! reached the packet's cycle. It is not known in the middle of another core's run, which may be
//! ahead or behind, so a core that reads it gets a fault.

use super::debugger::DebugPort;
use crate::{Fault, FaultClass};
use tilework_abi::reg::{Access as Kind, Slot};
use tilework_abi::tensix::{self, PC_SNAPSHOT, Processor, RISC_DBG_CNTL_0, RISC_DBG_STATUS_1};
use tilework_riscv::{Access, Cycle};

/// First byte past the registers of this file, of which the snapshots are the last.
const END: u32 = PC_SNAPSHOT + 4 * Processor::ALL.len() as u32;
const WORDS: usize = ((PC_SNAPSHOT - tensix::DEBUG_BASE) / 4) as usize;
const CORES: usize = Processor::ALL.len();

const DEBUG_INTERFACE: &str = "WormholeB0/TensixTile/BabyRISCV/DebugInterface.md";
const DAISYCHAIN: &str = "WormholeB0/TensixTile/DebugDaisychain.md";

/// The register at `addr`, if a row has it.
fn register(addr: u32) -> Option<Slot> {
    [&tensix::DEBUG, &tensix::PIC].into_iter().find_map(|block| {
        let offset = u64::from(addr).checked_sub(block.base)?;
        block.at(u32::try_from(offset).ok()?)
    })
}

/// A core as seen from outside at the cycle of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct CoreView {
    /// The next instruction.
    pub(super) pc: u32,
    /// It is about to be decoded: the core is not held and does not wait.
    pub(super) running: bool,
}

/// The registers.
#[derive(Clone, Debug)]
pub(super) struct DebugRegs {
    words: Box<[u32; WORDS]>,
    wall_high: u32,
    /// The debug interface of the cores.
    pub(super) port: DebugPort,
    /// The cores, while a packet takes effect that may ask for them.
    cores: Option<[CoreView; CORES]>,
}

impl DebugRegs {
    /// Power-on: all cores held.
    pub(super) fn new() -> Self {
        let mut this = Self { words: Box::new([0; WORDS]), wall_high: 0, port: DebugPort::default(), cores: None };
        for reg in tensix::DEBUG.regs.iter().filter(|reg| reg.reset != 0) {
            this.set(tensix::DEBUG_BASE + reg.offset, reg.reset);
        }
        this
    }
    /// What was last stored at `addr`.
    pub(super) fn word(&self, addr: u32) -> u32 {
        self.words.get((addr.wrapping_sub(tensix::DEBUG_BASE) / 4) as usize).copied().unwrap_or(0)
    }
    fn set(&mut self, addr: u32, value: u32) {
        if let Some(word) = self.words.get_mut((addr.wrapping_sub(tensix::DEBUG_BASE) / 4) as usize) {
            *word = value;
        }
    }
    /// True when a read of the wall clock at cycle `at` would latch what is latched already.
    #[inline]
    pub(super) fn has_latched(&self, at: Cycle) -> bool {
        u64::from(self.wall_high) == at >> 32
    }
    /// Shows the cores as they are at the cycle of a packet, or hides them again.
    pub(super) fn show_cores(&mut self, cores: Option<[CoreView; CORES]>) {
        self.cores = cores;
    }
    /// Reads the register at `addr`, which lies within the blocks.
    ///
    /// # Errors
    /// A core's program counter, when another core asks for it.
    pub(super) fn read(&mut self, addr: u32, at: Cycle) -> Result<(u32, Access), Fault> {
        Ok(match addr & !3 {
            tensix::WALL_CLOCK_L => {
                self.wall_high = (at >> 32) as u32;
                (at as u32, Access::Volatile)
            }
            tensix::WALL_CLOCK_H => ((at >> 32) as u32, Access::Volatile),
            tensix::WALL_CLOCK_H_LATCHED => (self.wall_high, Access::Volatile),
            tensix::DBG_RD_DATA => (self.daisychain()?, Access::Volatile),
            addr @ RISC_DBG_CNTL_0..=RISC_DBG_STATUS_1 => {
                (self.port.read((addr - RISC_DBG_CNTL_0) / 4), Access::Watched)
            }
            addr @ PC_SNAPSHOT..END => {
                let core = ((addr - PC_SNAPSHOT) / 4) as usize;
                (self.core_view(core)?.pc, Access::Volatile)
            }
            addr => match register(addr) {
                // Hardware would update it, but nothing modelled here causes that.
                Some(slot) if slot.reg.access != Kind::Rw => (slot.reg.reset, Access::Watched),
                _ => (self.word(addr), Access::Watched),
            },
        })
    }
    /// Stores a word. The caller handles [`tensix::SOFT_RESET_0`] and the PC buffers' override.
    ///
    /// # Errors
    /// A value that the simulator does not model, as the register's row says, or a core (`by_core`)
    /// that debugs another.
    pub(super) fn write(&mut self, addr: u32, value: u32, by_core: bool) -> Result<(), Fault> {
        let addr = addr & !3;
        if (RISC_DBG_CNTL_0..=RISC_DBG_STATUS_1).contains(&addr) {
            if self.port.write((addr - RISC_DBG_CNTL_0) / 4, value) && by_core {
                let what = "a core uses the debug interface of its tile, which is modelled for packets only";
                return Err(missing(what, DEBUG_INTERFACE, addr));
            }
            return Ok(());
        }
        if let Some(slot) = register(addr)
            && (slot.reg.access == Kind::Ro || slot.reg.written(self.word(addr), value).is_none())
        {
            return Err(missing(format!("write of {slot}: {}", slot.reg.refused), slot.reg.page, addr));
        }
        self.set(addr, value);
        Ok(())
    }
    fn core_view(&self, core: usize) -> Result<CoreView, Fault> {
        self.cores.and_then(|cores| cores.get(core).copied()).ok_or_else(|| {
            let what = "a core reads a program counter of its tile, which is modelled for packets only";
            Fault::new(FaultClass::UnimplementedFunctionality, what, DAISYCHAIN)
        })
    }
    /// The 32 of 128 bits that `DBG_BUS_CNTL` selects (DebugDaisychain.md).
    fn daisychain(&self) -> Result<u32, Fault> {
        let control = self.word(tensix::DBG_BUS_CNTL);
        let enabled = control >> 29 & 1 != 0;
        let (signal, daisy, word) = (control & 0xFFFF, control >> 16 & 0xFF, control >> 25 & 3);
        let Some((core, group)) = execution_state(daisy, signal).filter(|_| enabled) else { return Ok(0) };
        let view = self.core_view(core.index())?;
        let decoding = u32::from(view.running);
        Ok(match (group, word) {
            // The Load/Store Unit retires nothing between two instructions: a recent pc, not marked
            // as valid.
            (Group::A, 0) => view.pc & 0x7FFF_FFFF,
            (Group::A, 2) => view.pc & 0x3FFF_FFFF,
            (Group::B, 1) => view.pc & 0x3FFF_FFFF | decoding << 31,
            (Group::B, 3) => decoding << 7,
            _ => 0,
        })
    }
    /// The bits of the soft reset register.
    pub(super) fn soft_reset(&self) -> u32 {
        self.word(tensix::SOFT_RESET_0)
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
        self.word(tensix::DISABLE_RESET) >> Self::disable_reset_bit(core) & 1 != 0
    }
    /// Whether a soft reset leaves the debug registers of `core` alone.
    pub(super) fn keeps_debug_registers(&self, core: Processor) -> bool {
        self.word(tensix::DISABLE_RESET) >> (Self::disable_reset_bit(core) + 1) & 1 != 0
    }
    /// The first of the two bits of `core` in `DISABLE_RESET` (SoftReset.md).
    fn disable_reset_bit(core: Processor) -> u32 {
        match core {
            Processor::Trisc0 => 0,
            Processor::Trisc1 => 2,
            Processor::Trisc2 => 4,
            Processor::Brisc => 6,
            Processor::Ncrisc => 8,
        }
    }
}

fn missing(what: impl Into<String>, page: &'static str, addr: u32) -> Fault {
    Fault::new(FaultClass::UnimplementedFunctionality, what, page).at_addr(u64::from(addr))
}

/// Whether a write to a register may act on cores.
pub(super) fn commands_cores(addr: u64) -> bool {
    addr == u64::from(RISC_DBG_CNTL_0)
}

/// Registers whose value depends on the state of the cores.
pub(super) fn shows_cores(addr: u64) -> bool {
    addr == u64::from(tensix::DBG_RD_DATA) || (u64::from(PC_SNAPSHOT)..u64::from(END)).contains(&addr)
}

/// Groups of 128 bits of a core's execution state.
#[derive(Clone, Copy)]
enum Group {
    A,
    B,
}

/// Which core's execution state the selectors mean (DebugDaisychain.md, "RISCV execution state").
fn execution_state(daisy: u32, signal: u32) -> Option<(Processor, Group)> {
    const DAISY: u32 = 7;
    const FIRST: [(u32, Processor); CORES] = [
        (10, Processor::Brisc),
        (12, Processor::Trisc0),
        (14, Processor::Trisc1),
        (16, Processor::Trisc2),
        (24, Processor::Ncrisc),
    ];
    let found = FIRST.iter().find(|(first, _)| signal & !1 == *first).filter(|_| daisy == DAISY);
    found.map(|(_, core)| (*core, if signal & 1 == 0 { Group::A } else { Group::B }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_take_the_accesses_of_their_rows() {
        let blocks = [&tensix::DEBUG, &tensix::PIC];
        for (block, reg) in blocks.into_iter().flat_map(|block| block.regs.iter().map(move |reg| (block, reg))) {
            let mut regs = DebugRegs::new();
            let addr = u32::try_from(block.base).expect("an address of a tile") + reg.offset;
            // What cores and the debug interface say is tested where they are.
            if addr == PC_SNAPSHOT || (RISC_DBG_CNTL_0..=RISC_DBG_STATUS_1).contains(&addr) {
                continue;
            }
            assert_eq!(regs.read(addr, 0).map(|(value, _)| value), Ok(reg.reset), "{}", reg.name);
            let written = regs.write(addr, u32::MAX, false);
            if reg.access == Kind::Ro || reg.fixed != 0 {
                let fault = written.expect_err("refused");
                assert_eq!(fault.class, FaultClass::UnimplementedFunctionality);
                assert!(fault.what.contains(reg.name) && fault.what.ends_with(reg.refused), "{fault}");
                assert_eq!(regs.read(addr, 0).map(|(value, _)| value), Ok(reg.reset), "{}", reg.name);
            } else {
                written.expect("stored or ignored");
                let kept = if reg.access == Kind::Rw { reg.mask } else { reg.reset };
                assert_eq!(regs.read(addr, 0).map(|(value, _)| value), Ok(kept), "{}", reg.name);
            }
        }
    }

    #[test]
    fn words_without_a_row_are_storage() {
        let mut regs = DebugRegs::new();
        let addr = tensix::DEBUG_BASE + 0x800;
        assert!(register(addr).is_none());
        regs.write(addr, 7, true).expect("storage");
        assert_eq!(regs.read(addr, 0), Ok((7, Access::Watched)));
    }
}
