//! The debug interface of B, T0, T1 and T2: pausing, inspecting and resuming a core.
//!
//! Follows WormholeB0/TensixTile/BabyRISCV/DebugInterface.md, with the registers at the addresses
//! of Blackhole's `tensix.h`; the public debugger tt-exalens uses it in this way. A debugger is
//! outside the tile: its commands arrive as packets and take effect in the packet's cycle. No
//! pipeline is modelled, so a core pauses at once between two instructions, or, if it is blocked in
//! an access, when that access ends.
//!
//! Not modelled, each a fault when used: breakpoints and watchpoints, single steps (the page and
//! the public debugger disagree on how many commands one takes), writing the program counter, and a
//! core that debugs another core.

use super::{Activity, Tile};
use crate::tensix::Issuer;
use crate::{Fault, FaultClass};
use tilework_abi::address_map::Region;
use tilework_abi::tensix::Processor;
use tilework_riscv::{Cycle, Refuse, Width};

const READ: &str = "WormholeB0/TensixTile/BabyRISCV/DebugInterface.md";
/// Debug registers: DR(0) to DR(17).
const REGISTERS: usize = 18;
/// The cores with a debug interface, by `Which_RISCV`.
const CORES: [Processor; 4] = [Processor::Brisc, Processor::Trisc0, Processor::Trisc1, Processor::Trisc2];

/// `DR(i)`.
mod dr {
    pub(super) const STATUS: usize = 0;
    pub(super) const COMMAND: usize = 1;
    pub(super) const ARG_0: usize = 2;
    pub(super) const ARG_1: usize = 3;
    pub(super) const RESULT: usize = 4;
    pub(super) const BREAKPOINTS: usize = 5;
}

/// Bits of `DR(1)`.
mod command {
    pub(super) const PAUSE: u32 = 1 << 0;
    pub(super) const RESUME: u32 = 1 << 2;
    pub(super) const READ_GPR: u32 = 1 << 3;
    pub(super) const WRITE_GPR: u32 = 1 << 4;
    pub(super) const READ_MEMORY: u32 = 1 << 5;
    pub(super) const WRITE_MEMORY: u32 = 1 << 6;
    pub(super) const CLEAR_GPRS: u32 = 1 << 7;
    /// Single step and write of the program counter, which are not modelled.
    pub(super) const NOT_THERE: u32 = 1 << 1 | 1 << 8;
    /// Commands that need a paused core.
    pub(super) const ON_A_PAUSED_CORE: u32 = READ_GPR | WRITE_GPR | READ_MEMORY | WRITE_MEMORY | CLEAR_GPRS;
}

/// An access that `RISC_DBG_CNTL_0` has triggered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Access {
    core: usize,
    register: usize,
    write: Option<u32>,
}

/// The debug registers and the four registers through which software reaches them.
#[derive(Clone, Debug, Default)]
pub(super) struct DebugPort {
    control: u32,
    data_in: u32,
    data_out: u32,
    read_valid: bool,
    registers: [[u32; REGISTERS]; CORES.len()],
    /// Cores that will pause as soon as they are no longer blocked.
    pause_wanted: [bool; CORES.len()],
    pending: Option<Access>,
}

impl DebugPort {
    const TRIGGER: u32 = 1 << 31;

    /// Register `index` of the four at 0xFFB12080.
    pub(super) fn read(&self, index: u32) -> u32 {
        match index {
            0 => self.control,
            1 => self.data_in,
            2 => {
                let which = self.control >> 17 & 3;
                let valid = u32::from(self.read_valid) << 30;
                self.control & 0x7FF | (self.control >> 16 & 1) << which << 13 | valid | self.control & Self::TRIGGER
            }
            _ => self.data_out,
        }
    }

    /// Writes register `index` of the four at 0xFFB12080. True when that triggers an access to a
    /// debug register.
    pub(super) fn write(&mut self, index: u32, value: u32) -> bool {
        match index {
            0 => {
                let triggers = !self.control & value & Self::TRIGGER != 0;
                self.control = value;
                if triggers {
                    self.read_valid = false;
                    let write = (value >> 16 & 1 != 0).then_some(self.data_in);
                    let (core, register) = ((value >> 17 & 3) as usize, (value & 0x7FF) as usize);
                    self.pending = Some(Access { core, register, write });
                }
                triggers
            }
            1 => {
                self.data_in = value;
                false
            }
            _ => false, // read only
        }
    }

    /// Clears the registers of `core`, which was reset.
    pub(super) fn reset(&mut self, core: Processor) {
        if let Some(i) = CORES.iter().position(|&c| c == core) {
            self.registers[i] = [0; REGISTERS];
            self.pause_wanted[i] = false;
        }
    }

    /// Whether a core pauses as soon as it is no longer blocked.
    pub(super) fn wants_pause(&self, core: Processor) -> bool {
        CORES.iter().position(|&c| c == core).is_some_and(|i| self.pause_wanted[i])
    }

    /// Takes the pending pause of a core; true if there is one.
    pub(super) fn take_pause(&mut self, core: Processor) -> bool {
        CORES.iter().position(|&c| c == core).is_some_and(|i| std::mem::take(&mut self.pause_wanted[i]))
    }
}

/// Whether any of the eight breakpoints and watchpoints of `DR(5)` is enabled: modes 8 to 11.
fn enables_breakpoint(modes: u32) -> bool {
    (0..8).any(|i| (8..12).contains(&(modes >> (4 * i) & 0xF)))
}

fn missing(what: impl Into<String>) -> Fault {
    Fault::new(FaultClass::UnimplementedFunctionality, what, READ)
}

impl Tile {
    /// Carries out the debug access that a packet at cycle `at` has triggered.
    pub(super) fn debug_access(&mut self, at: Cycle) -> Result<(), Fault> {
        let Some(Access { core, register, write }) = self.shared.fabric.debug.port.pending.take() else {
            return Ok(());
        };
        let processor = CORES[core];
        let held = self.slots[processor.index()].activity == Activity::Held;
        match write {
            None => {
                let value = match register {
                    dr::STATUS => u32::from(self.is_paused(processor)),
                    _ => self.shared.fabric.debug.port.registers[core].get(register).copied().unwrap_or(0),
                };
                self.shared.fabric.debug.port.data_out = value;
                self.shared.fabric.debug.port.read_valid = true;
                Ok(())
            }
            // SoftReset.md: while the core is held, writes are discarded, unless reset spares the
            // debug registers.
            Some(_) if held && !self.shared.fabric.debug.keeps_debug_registers(processor) => Ok(()),
            Some(value) => self.debug_write(at, core, register, value),
        }
    }

    fn debug_write(&mut self, at: Cycle, core: usize, register: usize, value: u32) -> Result<(), Fault> {
        if register == dr::BREAKPOINTS && enables_breakpoint(value) {
            return Err(missing(format!("a breakpoint or watchpoint of {}", CORES[core])));
        }
        // Hardware writes DR(0) and DR(4); 6 to 9, and 18 onwards, do not exist.
        if register != dr::STATUS
            && register != dr::RESULT
            && let Some(slot) = self.shared.fabric.debug.port.registers[core].get_mut(register)
        {
            *slot = value;
        }
        if register == dr::COMMAND { self.debug_command(at, core, value) } else { Ok(()) }
    }

    fn debug_command(&mut self, at: Cycle, core: usize, value: u32) -> Result<(), Fault> {
        let processor = CORES[core];
        let i = processor.index();
        if value & command::NOT_THERE != 0 {
            return Err(missing(format!("a single step or a write of the program counter of {processor}")));
        }
        if value & command::PAUSE != 0 {
            match self.slots[i].activity {
                Activity::Running => self.set_activity(i, Activity::Paused),
                Activity::Blocked { .. } => {
                    self.shared.fabric.debug.port.pause_wanted[core] = true;
                    self.withdraw_row(i);
                }
                // Sleepers have been woken; the others are not executing.
                Activity::Parked | Activity::Paused | Activity::Held => {}
            }
        }
        if value & command::ON_A_PAUSED_CORE != 0 {
            if !self.is_paused(processor) {
                let what = format!("the debug interface reads or writes {processor}, which is not paused");
                return Err(Fault::new(FaultClass::UndefinedBehavior, what, READ));
            }
            self.debug_exchange(at, core, value)?;
        }
        if value & command::RESUME != 0 && self.is_paused(processor) {
            self.slots[i].core.wake(at);
            self.set_activity(i, Activity::Running);
        }
        Ok(())
    }

    /// Reads and writes registers and memory of a paused core.
    fn debug_exchange(&mut self, at: Cycle, core: usize, value: u32) -> Result<(), Fault> {
        let processor = CORES[core];
        let registers = self.shared.fabric.debug.port.registers[core];
        let (arg, data) = (registers[dr::ARG_0], registers[dr::ARG_1]);
        let hart = &mut self.slots[processor.index()].core;
        let mut result = None;
        if value & command::READ_GPR != 0 {
            result = Some(if arg == 32 { hart.pc } else { hart.regs.get(arg as usize).copied().unwrap_or(0) });
        }
        if value & command::WRITE_GPR != 0
            && let Some(gpr) = hart.regs.get_mut(1..).and_then(|gprs| gprs.get_mut((arg as usize).checked_sub(1)?))
        {
            *gpr = data;
        }
        if value & command::CLEAR_GPRS != 0 {
            hart.regs = [0; 32];
        }
        if value & command::READ_MEMORY != 0 {
            result = Some(self.debug_load(at, processor, arg)?);
        }
        if value & command::WRITE_MEMORY != 0 {
            self.debug_store(at, processor, arg, data)?;
        }
        if let Some(result) = result {
            self.shared.fabric.debug.port.registers[core][dr::RESULT] = result;
        }
        Ok(())
    }

    /// `lw`, as if `processor` executed it with an empty cache.
    fn debug_load(&mut self, at: Cycle, processor: Processor, addr: u32) -> Result<u32, Fault> {
        let addr = addr & !3;
        match Region::decode(addr) {
            Region::L1 { offset } => return Ok(self.shared.fabric.l1_load(offset, Width::Word)),
            Region::Local { offset } => {
                if let Some(value) = self.ports[processor.index()].peek(offset as usize, Width::Word) {
                    return Ok(value);
                }
            }
            _ => {}
        }
        let load = self.reach().load(Some(processor), at, addr, Width::Word);
        load.map(|load| load.value).map_err(|refusal| refused(refusal, processor, addr))
    }

    /// `sw`, as if `processor` executed it.
    fn debug_store(&mut self, at: Cycle, processor: Processor, addr: u32, value: u32) -> Result<(), Fault> {
        let addr = addr & !3;
        let port = &mut self.ports[processor.index()];
        match Region::decode(addr) {
            Region::L1 { offset } => {
                port.l0.drop_line(offset);
                self.shared.fabric.l1_store(offset, Width::Word, value);
                return Ok(());
            }
            Region::Local { offset } if port.poke(offset as usize, Width::Word, value) => return Ok(()),
            _ => {}
        }
        let by = Issuer { core: processor, pc: self.pc(processor) };
        let stored = self.reach().store(Some(by), at, addr, Width::Word, value);
        stored.map_err(|refusal| refused(refusal, processor, addr))
    }

    fn is_paused(&self, processor: Processor) -> bool {
        self.slots[processor.index()].activity == Activity::Paused
    }
}

fn refused(refusal: Refuse<Fault>, processor: Processor, addr: u32) -> Fault {
    match refusal {
        Refuse::Fault(fault) => fault,
        Refuse::Sync | Refuse::Block => {
            let what = format!("the debug interface makes {processor} wait in an access");
            Fault::new(FaultClass::MissingSpecification, what, READ).at_addr(addr.into())
        }
    }
}
