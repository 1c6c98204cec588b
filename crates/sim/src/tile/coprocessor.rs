//! The coprocessor's place in its tile.
//!
//! It is the last agent of each cycle. While it takes a step it is taken out of [`Shared`], which it sees as its surroundings.

use super::Tile;
pub(super) use super::debug::INSTRN_BUF_STATUS;
use super::debug::{CFGREG_RD_CNTL, CFGREG_RDDATA, INSTRN_BUF_CTRL0, INSTRN_BUF_CTRL1};
use super::shared::{COPROCESSOR, Shared, mask_out};
use crate::tensix::{Hold, Outside, Tensix};
use crate::{Cycle, Fault, FaultClass};
use std::ops::{Deref, DerefMut};
use tilework_riscv::{Refuse, Width};

/// The coprocessor, or an empty place while it takes a step.
pub(super) struct Lent(Option<Box<Tensix>>);

impl Lent {
    pub(super) fn new(tensix: Tensix) -> Self {
        Self(Some(Box::new(tensix)))
    }
    /// The coprocessor, unless it is the one who asks.
    pub(super) fn get_mut(&mut self) -> Option<&mut Tensix> {
        self.0.as_deref_mut()
    }
}

impl Deref for Lent {
    type Target = Tensix;
    #[inline]
    fn deref(&self) -> &Tensix {
        self.0.as_deref().expect("taken out only while it takes a step, which touches it by get_mut alone")
    }
}

impl DerefMut for Lent {
    #[inline]
    fn deref_mut(&mut self) -> &mut Tensix {
        self.0.as_deref_mut().expect("taken out only while it takes a step, which touches it by get_mut alone")
    }
}

impl Tile {
    /// The coprocessor does what it has to do before the cycle `end`, until something of it concerns others. No core and no event is due
    /// before `end`.
    pub(super) fn step_coprocessor(&mut self, end: Cycle) -> Result<(), Fault> {
        let Some(mut tensix) = self.shared.tensix.0.take() else { return Ok(()) };
        let mut at;
        let result = loop {
            at = tensix.next();
            let result = tensix.step(&mut self.shared);
            if result.is_err() || tensix.next() >= end || tensix.has_changed() || self.shared.has_consequences() {
                break result;
            }
        };
        if let Some(value) = self.shared.pc_buf_override.take() {
            tensix.set_pc_buf_override(value, at + 1);
        }
        self.shared.tensix.0 = Some(tensix);
        match result {
            Ok(()) => self.after_access(),
            Err(Hold::Wake) => {
                // What they do in this cycle comes before what the coprocessor does.
                let set = std::mem::take(&mut self.shared.wake);
                self.wake(set, at + 1);
            }
            Err(Hold::Fault(fault)) => return Err(fault.at_tile(self.xy).at_cycle(at)),
        }
        Ok(())
    }
}

impl Shared {
    /// An access has set something off that the tile has to see to.
    #[inline]
    pub(super) fn has_consequences(&self) -> bool {
        !self.started.is_empty() || self.reset_changed.is_some() || self.pc_buf_override.is_some()
    }

    /// What a write of `value`, over `before`, to a debug register does to the coprocessor: it reads configuration
    /// (BackendConfiguration.md, "Debug registers"; at once, not a few cycles later) or pushes an instruction behind the MOP expander
    /// (PushTensixInstruction.md, "Debug registers"; that cores' pushes are lost meanwhile is not modelled).
    pub(super) fn debug_coprocessor(
        &mut self,
        addr: u32,
        before: u32,
        value: u32,
        at: Cycle,
    ) -> Result<(), Refuse<Fault>> {
        if !matches!(addr, CFGREG_RD_CNTL | INSTRN_BUF_CTRL0) {
            return Ok(());
        }
        let word = self.debug.word(INSTRN_BUF_CTRL1);
        let tensix = self.tensix.get_mut().ok_or_else(own_debug_registers)?;
        if addr == CFGREG_RD_CNTL {
            let data = tensix.config_word(value);
            return self.debug.write(CFGREG_RDDATA, data, false).map_err(Refuse::Fault);
        }
        let rising = value & !before;
        (0..3)
            .filter(|i| value >> i & 1 != 0 && rising >> (4 + i) & 1 != 0)
            .try_for_each(|i| tensix.push_by_debug_bus(i, word, at))
    }
}

impl Outside for Shared {
    fn must_wake(&mut self, addr: u32, len: u32) -> bool {
        let sleepers = mask_out(self.sleepers_on(u64::from(addr), len), COPROCESSOR);
        self.wake |= sleepers;
        sleepers != 0
    }
    fn sleep_on(&mut self, addr: u32) {
        self.watch_for_coprocessor(addr);
    }
    fn l1(&self) -> &[u8] {
        &self.l1[..]
    }
    fn write_l1(&mut self, addr: u32, data: &[u8]) {
        self.l1_write(addr, data);
    }
    fn copy_l1(&mut self, dst: u32, src: u32, len: u32) {
        self.l1.copy_within(src as usize..(src + len) as usize, dst as usize);
        self.drop_code(dst, len);
    }
    fn zero_l1(&mut self, addr: u32, len: u32) {
        self.l1[addr as usize..(addr + len) as usize].fill(0);
        self.drop_code(addr, len);
    }
    fn load(&mut self, at: Cycle, addr: u32) -> Result<u32, Fault> {
        self.reg_load(None, at, addr, Width::Word).map(|load| load.value).map_err(|refuse| refused(refuse, addr))
    }
    fn store(&mut self, at: Cycle, addr: u32, value: u32) -> Result<(), Fault> {
        self.reg_store(None, at, addr, Width::Word, value).map_err(|refuse| refused(refuse, addr))
    }
}

/// The coprocessor reaches, over its tile, into itself.
pub(super) fn own_debug_registers() -> Refuse<Fault> {
    let what = "the coprocessor uses its own debug registers";
    let read = "BlackholeA0/TensixTile/BabyRISCV/PushTensixInstruction.md, Debug registers";
    Refuse::Fault(Fault::new(FaultClass::UnimplementedFunctionality, what, read))
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
