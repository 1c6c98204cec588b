//! Register accesses: what an agent of a tile reaches, and the load and store that all of them use.
//!
//! Cores, NIUs, the coprocessor and the debug interface access the same registers. Each of them
//! borrows the parts of the tile that are not itself as a [`Reach`]. What an NIU or the coprocessor
//! does to its own registers through its tile is not modelled: it is a named fault here, except
//! where [`super::memory`] says otherwise, and except the override of the PC buffers, which
//! start-up code of the coprocessor writes: it takes effect after the coprocessor's step.

use super::fabric::Fabric;
use super::port::Ports;
use super::wake;
use crate::noc::{self, Niu, is_misaligned};
use crate::probe::{Agent, Wants, What};
use crate::tensix::{Issuer, Tensix};
use crate::{Fault, FaultClass, timing};
use tilework_abi::address_map::{Region, niu_register};
use tilework_abi::kernel::IC_INVALIDATE;
use tilework_abi::tensix::{
    self as map, CFGREG_RD_CNTL, CFGREG_RDDATA, INSTRN_BUF_CTRL0, INSTRN_BUF_CTRL1, Processor, TRISC_PC_BUF_OVERRIDE,
};
use tilework_riscv::{Access, Cycle, Load, Refuse, Width};

const PAGE: &str = "BlackholeA0/TensixTile/BabyRISCV/README.md, memory map";

/// The parts of a tile that are not a core.
#[derive(Clone)]
#[repr(C)]
pub(super) struct Shared {
    /// Boxed, because the tile is moved when a chip is built and these are most of its bytes.
    pub(super) tensix: Box<Tensix>,
    pub(super) fabric: Fabric,
    pub(super) nius: [Niu; 2],
}

/// A unit of the tile, as an access finds it.
pub(super) enum Unit<'a, T> {
    /// The access reaches it.
    Other(&'a mut T),
    /// It makes the access itself.
    Own,
}

impl<T> Unit<'_, T> {
    /// The unit, or the fault of an access to itself.
    pub(super) fn or_fault(&mut self, fault: impl FnOnce() -> Fault) -> Result<&mut T, Refuse<Fault>> {
        match self {
            Self::Other(unit) => Ok(unit),
            Self::Own => Err(Refuse::Fault(fault())),
        }
    }
}

/// The parts of a tile that an access can reach, as seen by the agent that makes it.
pub(super) struct Reach<'a> {
    pub(super) fabric: &'a mut Fabric,
    pub(super) nius: [Unit<'a, Niu>; 2],
    pub(super) tensix: Unit<'a, Tensix>,
    pub(super) ports: &'a mut Ports,
}

impl Shared {
    /// Everything, as a core or the debug interface reaches it.
    pub(super) fn reach<'a>(&'a mut self, ports: &'a mut Ports) -> Reach<'a> {
        let nius = self.nius.each_mut().map(Unit::Other);
        Reach { fabric: &mut self.fabric, nius, tensix: Unit::Other(&mut self.tensix), ports }
    }

    /// NIU `noc` (0 or 1), and what it reaches.
    pub(super) fn niu<'a>(&'a mut self, noc: usize, ports: &'a mut Ports) -> (&'a mut Niu, Reach<'a>) {
        let [niu0, niu1] = &mut self.nius;
        let (niu, nius) = match noc {
            0 => (niu0, [Unit::Own, Unit::Other(niu1)]),
            _ => (niu1, [Unit::Other(niu0), Unit::Own]),
        };
        (niu, Reach { fabric: &mut self.fabric, nius, tensix: Unit::Other(&mut self.tensix), ports })
    }

    /// The coprocessor, and what it reaches.
    pub(super) fn coprocessor<'a>(&'a mut self, ports: &'a mut Ports) -> (&'a mut Tensix, Reach<'a>) {
        let nius = self.nius.each_mut().map(Unit::Other);
        (&mut self.tensix, Reach { fabric: &mut self.fabric, nius, tensix: Unit::Own, ports })
    }

    /// The word at `offset` of an NIU, if its read has no side effect.
    #[inline(always)]
    pub(super) fn niu_word(&mut self, noc: usize, offset: u32) -> Option<u32> {
        if self.fabric.is_leaving(noc) && noc::shows_sent(offset) {
            self.fabric.has_left(noc);
        }
        self.nius[noc].read_word(offset)
    }

    /// Writes a field of an NIU's initiator if nothing sleeps on it and it has no side effect;
    /// false for anything else.
    #[inline(always)]
    pub(super) fn niu_field(&mut self, addr: u32, value: u32) -> bool {
        match niu_register(addr) {
            Some((noc, offset)) if !self.fabric.watches.is_watched(wake::ANY_NIU) => {
                self.nius[noc].write_field(offset, value)
            }
            _ => false,
        }
    }
}

impl Reach<'_> {
    /// Reads a register on behalf of `core`, or of an agent that is not a core.
    pub(super) fn load(
        &mut self,
        core: Option<Processor>,
        at: Cycle,
        addr: u32,
        width: Width,
    ) -> Result<Load, Refuse<Fault>> {
        let (value, access) = match Region::decode(addr) {
            Region::Debug { .. } if addr == map::INSTRN_BUF_STATUS => {
                let tensix = self.tensix.or_fault(own_debug_registers)?;
                (tensix.replay_fifo_status(), Access::Volatile)
            }
            Region::Debug { .. } => {
                let read = self.fabric.debug.read(addr, at);
                read.map_err(|fault| Refuse::Fault(fault.at_addr(addr.into())))?
            }
            Region::Niu { noc, offset } => {
                let niu = self.nius[noc].or_fault(|| own_niu(addr))?;
                let read = niu.read(offset & !3, at).map_err(Refuse::Fault)?;
                if self.fabric.is_leaving(noc) && noc::shows_sent(offset) {
                    self.fabric.has_left(noc);
                }
                read
            }
            Region::Stream { offset } => {
                (self.fabric.streams.read(offset & !3).map_err(Refuse::Fault)?, Access::Watched)
            }
            Region::Dst { .. } => {
                let core = core.ok_or_else(|| Refuse::Fault(unmapped(addr)))?;
                return self.tensix.or_fault(|| unmapped(addr))?.load_dst(core, addr, width);
            }
            region => {
                if let Region::LocalOf { core, offset } = region
                    && let Some(value) = self.ports[core.index()].peek(offset as usize, width)
                {
                    return Ok(Load { value, latency: timing::LOAD_L1, access: Access::Watched });
                }
                let core = core.ok_or_else(|| Refuse::Fault(unmapped(addr)))?;
                let tensix = self.tensix.or_fault(|| unmapped(addr))?;
                let load = tensix.load(core, addr, at)?;
                return Ok(Load { value: load.value & width.mask(), ..load });
            }
        };
        let value = (value >> (8 * (addr & 3))) & width.mask();
        Ok(Load { value, latency: timing::LOAD_TILE_REG, access })
    }

    /// Writes a register on behalf of a core's instruction, or of an agent that is not a core.
    /// Sleepers have been woken.
    pub(super) fn store(
        &mut self,
        by: Option<Issuer>,
        at: Cycle,
        addr: u32,
        width: Width,
        value: u32,
    ) -> Result<(), Refuse<Fault>> {
        let region = Region::decode(addr);
        if let Region::LocalOf { core, offset } = region
            && self.ports[core.index()].poke(offset as usize, width, value)
        {
            return Ok(());
        }
        if let Region::Dst { .. } = region {
            let by = by.ok_or_else(|| Refuse::Fault(unmapped(addr)))?;
            return self.tensix.or_fault(|| unmapped(addr))?.store_dst(by.core, addr, width, value);
        }
        if width != Width::Word {
            let what = format!("a {}-byte store to a register", width.bytes());
            let fault = Fault::new(FaultClass::UnsupportedFunctionality, what, PAGE);
            return Err(Refuse::Fault(fault.at_addr(u64::from(addr))));
        }
        match region {
            Region::Debug { .. } => self.store_debug(by.is_some(), at, addr, value),
            Region::Niu { noc, offset } => {
                let niu = self.nius[noc].or_fault(|| own_niu(addr))?;
                let start = niu.write(offset, value, at);
                if let (Err(fault), Some(recorder), Some(by)) = (&start, &mut self.fabric.recorder, by)
                    && recorder.wants(Wants::ARRIVALS)
                    && is_misaligned(fault)
                {
                    let what = What::Misaligned(fault.what.as_str().into());
                    recorder.record(at, Agent::Core(by.core), by.pc, what);
                }
                let start = start.map_err(Refuse::Fault)?;
                if let (Some(start), Some(recorder)) = (&start, &mut self.fabric.recorder)
                    && recorder.wants(Wants::ARRIVALS)
                {
                    let agent = by.map_or(Agent::Niu(noc as u8), |by| Agent::Core(by.core));
                    let request = Box::new(niu.describe(start));
                    recorder.request(at, agent, by.map_or(0, |by| by.pc), request);
                }
                if let Some(start) = start {
                    self.fabric.started.push((noc as u8, start));
                }
                Ok(())
            }
            Region::Stream { offset } => self.fabric.streams.write(offset, value).map_err(Refuse::Fault),
            _ => {
                let by = by.ok_or_else(|| Refuse::Fault(unmapped(addr)))?;
                let tensix = self.tensix.or_fault(|| unmapped(addr))?;
                let lost = self.fabric.recorder.is_some().then(|| tensix.lost_post(by.core, addr, value)).flatten();
                tensix.store(by, addr, value, at)?;
                if let (Some(semaphore), Some(recorder)) = (lost, &mut self.fabric.recorder)
                    && recorder.wants(Wants::ACCESSES)
                {
                    recorder.record(at, Agent::Core(by.core), by.pc, What::PostLost { semaphore });
                }
                if addr == IC_INVALIDATE {
                    self.fabric.stale_code.invalidated(value);
                }
                Ok(())
            }
        }
    }

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

    /// What `core` would load now, without any side effect; `None` when that cannot be said.
    pub(super) fn peek(&mut self, core: Processor, at: Cycle, addr: u32, width: Width) -> Option<u32> {
        if addr < map::L1_SIZE {
            return Some(self.fabric.l1_load(addr, width));
        }
        let region = Region::decode(addr);
        if width == Width::Word
            && let Region::Niu { noc, offset } = region
            && let Unit::Other(niu) = &self.nius[noc]
            && let Some(value) = niu.read_word(offset)
        {
            return Some(value);
        }
        if wake::classes(region) & (wake::TENSIX | wake::SEMAPHORE) != 0 {
            let Unit::Other(tensix) = &self.tensix else { return None };
            return tensix.peek(core, addr).map(|value| value & width.mask());
        }
        match self.load(Some(core), at, addr, width) {
            Ok(load) if load.access == Access::Watched => Some(load.value),
            _ => None,
        }
    }
}

/// An access over an NIU to that NIU's own registers which [`Shared::receive`] does not
/// carry out.
#[cold]
fn own_niu(addr: u32) -> Fault {
    let what = "an access over an NIU to that NIU's own registers other than one word";
    let fault = Fault::new(FaultClass::UnimplementedFunctionality, what, "BlackholeA0/NoC/MemoryMap.md");
    fault.at_addr(u64::from(addr))
}

#[cold]
fn unmapped(addr: u32) -> Fault {
    Fault::new(FaultClass::UndefinedBehavior, "no memory or register at this address", PAGE).at_addr(u64::from(addr))
}

/// The coprocessor accesses, over its tile, its own debug registers.
#[cold]
fn own_debug_registers() -> Fault {
    let what = "the coprocessor uses its own debug registers";
    let read = "BlackholeA0/TensixTile/BabyRISCV/PushTensixInstruction.md, Debug registers";
    Fault::new(FaultClass::UnimplementedFunctionality, what, read)
}
