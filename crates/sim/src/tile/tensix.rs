//! The coprocessor in its tile: when it takes its steps, what it reaches, and which debug registers
//! belong to it.
//!
//! It is the last agent of each cycle. The rest of the tile is its [`Outside`]. Over the tile it
//! cannot reach its own debug registers, which is a fault; only the override of the PC buffers,
//! which start-up code of the coprocessor writes, takes effect, after the step.

use super::Tile;
use super::access::{Reach, Unit};
use super::fabric::{COPROCESSOR, mask_out};
use super::port::Ports;
use crate::tensix::{Hold, Outside};
use crate::{Cycle, Fault, FaultClass};
use tilework_abi::tensix::{
    self as map, CFGREG_RD_CNTL, CFGREG_RDDATA, INSTRN_BUF_CTRL0, INSTRN_BUF_CTRL1, TRISC_PC_BUF_OVERRIDE,
};
use tilework_riscv::{Refuse, Width};

impl Tile {
    /// Steps the coprocessor before the cycle `end`, until it has a side effect outside itself. No
    /// core and no event is due before `end`.
    pub(super) fn step_coprocessor(&mut self, end: Cycle) -> Result<(), Fault> {
        let (tensix, mut outside) = self.shared.coprocessor(Ports::all(&mut self.ports));
        let mut at;
        let result = loop {
            at = tensix.next();
            let result = tensix.step(&mut outside);
            let side_effects = tensix.has_changed() || outside.fabric.has_side_effects();
            if result.is_err() || tensix.next() >= end || side_effects {
                break result;
            }
        };
        if let Some(value) = self.shared.fabric.pc_buf_override.take() {
            self.shared.tensix.set_pc_buf_override(value, at + 1);
        }
        match result {
            Ok(()) => self.handle_side_effects(),
            Err(Hold::Wake) => {
                // What the cores do in this cycle comes before what the coprocessor does.
                let set = std::mem::take(&mut self.shared.fabric.wake);
                self.wake(set, at + 1);
            }
            Err(Hold::Fault(fault)) => return Err(fault.at_tile(self.xy).at_cycle(at)),
        }
        Ok(())
    }
}

impl Reach<'_> {
    /// Writes a debug register. Some of them act on the cores or on the coprocessor: a read of its
    /// configuration (BackendConfiguration.md, "Debug registers"; at once, not a few cycles later),
    /// or a push of an instruction behind the MOP expander (PushTensixInstruction.md, "Debug
    /// registers"; that cores' pushes are lost meanwhile is not modelled).
    pub(super) fn store_debug(&mut self, by_core: bool, at: Cycle, addr: u32, value: u32) -> Result<(), Refuse<Fault>> {
        let before = self.fabric.debug.word(addr);
        self.fabric.debug.write(addr, value, by_core).map_err(Refuse::Fault)?;
        match addr {
            map::SOFT_RESET_0 => self.fabric.reset_changed = Some(at),
            TRISC_PC_BUF_OVERRIDE => match &mut self.tensix {
                Unit::Other(tensix) => tensix.set_pc_buf_override(value, at),
                Unit::Own => self.fabric.pc_buf_override = Some(value),
            },
            CFGREG_RD_CNTL => {
                let data = self.tensix.or_fault(own_debug_registers)?.config_word(value);
                self.fabric.debug.write(CFGREG_RDDATA, data, false).map_err(Refuse::Fault)?;
            }
            INSTRN_BUF_CTRL0 => {
                let word = self.fabric.debug.word(INSTRN_BUF_CTRL1);
                let tensix = self.tensix.or_fault(own_debug_registers)?;
                let rising = value & !before;
                (0..3)
                    .filter(|i| value >> i & 1 != 0 && rising >> (4 + i) & 1 != 0)
                    .try_for_each(|i| tensix.push_by_debug_bus(i, word, at))?;
            }
            _ => {}
        }
        Ok(())
    }
}

impl Outside for Reach<'_> {
    fn must_wake(&mut self, addr: u32, len: u32) -> bool {
        let sleepers = mask_out(self.fabric.sleepers_on(u64::from(addr), len), COPROCESSOR);
        self.fabric.wake |= sleepers;
        sleepers != 0
    }
    fn sleep_on(&mut self, addr: u32) {
        self.fabric.watch_for_coprocessor(addr);
    }
    fn l1(&self) -> &[u8] {
        &self.fabric.l1[..]
    }
    fn write_l1(&mut self, addr: u32, data: &[u8]) {
        self.fabric.l1_write(addr, data);
    }
    fn copy_l1(&mut self, dst: u32, src: u32, len: u32) {
        self.fabric.l1.copy_within(src as usize..(src + len) as usize, dst as usize);
        self.fabric.drop_code(dst, len);
    }
    fn zero_l1(&mut self, addr: u32, len: u32) {
        self.fabric.l1[addr as usize..(addr + len) as usize].fill(0);
        self.fabric.drop_code(addr, len);
    }
    fn load(&mut self, at: Cycle, addr: u32) -> Result<u32, Fault> {
        let load = Reach::load(self, None, at, addr, Width::Word);
        load.map(|load| load.value).map_err(|refuse| refused(refuse, addr))
    }
    fn store(&mut self, at: Cycle, addr: u32, value: u32) -> Result<(), Fault> {
        Reach::store(self, None, at, addr, Width::Word, value).map_err(|refuse| refused(refuse, addr))
    }
}

/// The coprocessor accesses, over its tile, its own debug registers.
pub(super) fn own_debug_registers() -> Fault {
    let what = "the coprocessor uses its own debug registers";
    let read = "BlackholeA0/TensixTile/BabyRISCV/PushTensixInstruction.md, Debug registers";
    Fault::new(FaultClass::UnimplementedFunctionality, what, read)
}

fn refused(refuse: Refuse<Fault>, addr: u32) -> Fault {
    let fault = match refuse {
        Refuse::Fault(fault) => fault,
        Refuse::Sync | Refuse::Block => Fault::new(
            FaultClass::MissingSpecification,
            "the coprocessor accesses a register that can block",
            "BlackholeA0/TensixTile/BabyRISCV/README.md, memory map",
        ),
    };
    fault.at_addr(u64::from(addr))
}
