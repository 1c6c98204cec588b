//! The ARC tile as drivers use it: boot status, telemetry, message queues.
//!
//! The ARC's firmware is not executed. What it shows to a driver and how it answers messages are
//! modelled after its public source (tenstorrent/tt-zephyr-platforms, `lib/tenstorrent/bh_arc`) and
//! the drivers on the other side (tt-umd, tt-kmd). Telemetry (`telemetry.rs`) and message queues
//! (`messages.rs`) lie in the ARC's shared memory (CSM), which is plain storage; scratch RAM words
//! 11..13 point to them. Of the peripherals, the rows of [`regs::RESET_UNIT`] and
//! [`regs::MSI_CATCHER`] and the identification of the tile's NIUs are modelled. An access to the
//! rest of the address space (PLLs, I2C, eFuses, SPI) is a fault that names the address.

mod messages;
mod telemetry;
#[cfg(test)]
mod tests;

pub(crate) use telemetry::ETHERNET_FIRMWARE;

use crate::dram::SparseMemory;
use crate::endpoint::Endpoint;
use crate::event_queue::EventQueue;
use crate::inert::niu_register;
use crate::noc::{self, Body, Dest, Grid, HostRequest, Outbox, Packet, Place, serve_or_refuse};
use crate::{Cycle, Fault, FaultClass, Memory, timing};
use std::sync::Arc;
use tilework_abi::arc as regs;
use tilework_abi::board::Board;
use tilework_abi::grid::Site;
use tilework_abi::noc::{CFG_BASE, MAX_PACKET_BYTES};
use tilework_abi::reg::{Access as Kind, Slot};
use tilework_abi::telemetry as abi;

use messages::Power;
use telemetry::Telemetry;

const READ: &str = "WormholeB0/ARCTile/README.md";
/// Cycles per count of the reference clock of 50 MHz, at 1350 MHz.
const REFCLK_CYCLES: Cycle = 27;
/// Words of the reset unit's registers.
const RESET_WORDS: usize = regs::RESET_UNIT.span as usize / 4;
/// From the interrupt to the answer in the queue: 5 us (estimate; drivers allow for a second).
const MESSAGE_TIME: Cycle = 6750;

/// The ARC tile.
#[derive(Clone, Debug)]
pub(crate) struct ArcTile {
    registers: Registers,
    events: EventQueue<Event>,
}

/// What can happen in the tile.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// A packet arrived from the NoC.
    Arrive(Box<Packet>),
    /// The firmware checks its queues.
    Messages,
}

/// What packets see.
#[derive(Clone, Debug)]
struct Registers {
    place: Place,
    grid: Arc<Grid>,
    /// What is stored in the reset unit, by word.
    reset_unit: Box<[u32; RESET_WORDS]>,
    csm: SparseMemory,
    telemetry: Telemetry,
    power: Power,
    /// A doorbell was written since the last check of the queues was scheduled.
    rung: bool,
}

impl ArcTile {
    /// The ARC at `place` of a board with that serial number, whose firmware has started.
    pub(crate) fn new((board, serial): (Board, u32), place: Place, grid: Arc<Grid>) -> Self {
        let mut registers = Registers {
            place,
            reset_unit: Box::new([0; RESET_WORDS]),
            csm: SparseMemory::new(abi::CSM_BYTES),
            telemetry: Telemetry::new((board, serial), grid.harvesting(), grid.translates()),
            power: Power::new(),
            rung: false,
            grid,
        };
        for (addr, value) in [
            (abi::BOOT_STATUS, abi::BOOT_STATUS_READY),
            (abi::QUEUE_POINTER, regs::QUEUE_CONTROL as u32),
            (abi::DATA_POINTER, registers.telemetry.data() as u32),
            (abi::TABLE_POINTER, regs::TELEMETRY_TABLE as u32),
        ] {
            registers.reset_unit[reset_word(addr)] = value;
        }
        let table = registers.telemetry.words(0, &registers.power);
        for (base, words) in [(regs::TELEMETRY_TABLE, &table[..]), (regs::QUEUE_CONTROL, &messages::control()[..])] {
            for (addr, word) in (base..).step_by(4).zip(words) {
                registers.set_csm(addr, *word);
            }
        }
        Self { registers, events: EventQueue::new() }
    }

    fn serve(&mut self, at: Cycle, packet: &Packet, out: &mut Outbox) -> Result<(), Fault> {
        let Dest::Unicast(here) = packet.to else {
            let what = "a multicast reached the ARC tile; only Tensix tiles receive them";
            return Err(Fault::new(FaultClass::UnsupportedFunctionality, what, READ));
        };
        if let &Body::ReadRequest { addr, len, .. } = &packet.body
            && len > MAX_PACKET_BYTES
        {
            return Err(unknown(addr));
        }
        let mut view = View { noc: packet.noc & 1, registers: &mut self.registers };
        if let Some(answer) = noc::serve(at, here, packet, &mut view)? {
            out.push(at + timing::ARC_ACCESS, answer);
        }
        if core::mem::take(&mut self.registers.rung) {
            self.events.push(at + MESSAGE_TIME, Event::Messages);
        }
        Ok(())
    }
}

fn unknown(addr: u64) -> Fault {
    Fault::new(FaultClass::UnimplementedFunctionality, "an address of the ARC tile that is not built", READ)
        .at_addr(addr)
}

/// An access that a register does not allow.
fn refused(access: &str, slot: Slot, addr: u64) -> Fault {
    let what = format!("{access} of {slot} of the ARC tile, which is {}", slot.reg.access.refusal());
    Fault::new(FaultClass::UnimplementedFunctionality, what, slot.reg.page).at_addr(addr)
}

/// The register at `addr`, if a row has it.
fn register(addr: u64) -> Option<Slot> {
    [&regs::RESET_UNIT, &regs::MSI_CATCHER]
        .into_iter()
        .find_map(|block| block.at(u32::try_from(addr.checked_sub(block.base)?).ok()?))
}

/// Position of the word at `addr` of the reset unit, which has a row.
const fn reset_word(addr: u64) -> usize {
    ((addr - regs::RESET_UNIT.base) / 4) as usize
}

impl Registers {
    /// The word of the shared memory at `addr`, a multiple of four within it.
    fn csm(&self, addr: u64) -> u32 {
        let mut word = [0; 4];
        // No caller passes an address outside the memory; it would read as zero.
        let _ = self.csm.read(addr.wrapping_sub(abi::CSM_BASE), &mut word);
        u32::from_le_bytes(word)
    }
    fn set_csm(&mut self, addr: u64, value: u32) {
        // As for reads, no caller passes an address outside.
        let _ = self.csm.write(addr.wrapping_sub(abi::CSM_BASE), &value.to_le_bytes());
    }

    /// The word of a peripheral at `addr`, a multiple of four.
    fn word(&self, at: Cycle, noc: u8, addr: u64) -> Result<u32, Fault> {
        if let Some(slot) = register(addr) {
            return match addr {
                regs::REFCLK_LOW => Ok((at / REFCLK_CYCLES) as u32),
                regs::REFCLK_HIGH => Ok(((at / REFCLK_CYCLES) >> 32) as u32),
                _ => match slot.reg.access {
                    Kind::Rw => Ok(self.reset_unit[reset_word(addr)]),
                    Kind::Ro => Ok(slot.reg.reset),
                    _ => Err(refused("a read", slot, addr)),
                },
            };
        }
        for (noc, cfg) in [(0, abi::NIU_CFG[0]), (1, abi::NIU_CFG[1])] {
            let off = addr.checked_sub(cfg - u64::from(CFG_BASE)).and_then(|off| u32::try_from(off).ok());
            if let Some(value) = off.and_then(|off| self.grid.niu_register(noc, self.place, off)) {
                return Ok(value);
            }
        }
        if let Some((noc, off)) = niu_register(Site::Arc, noc, addr) {
            return self.grid.niu_register(noc, self.place, off).ok_or_else(|| unknown(addr));
        }
        Err(unknown(addr))
    }

    fn set_word(&mut self, addr: u64, value: u32) -> Result<(), Fault> {
        let slot = register(addr).ok_or_else(|| unknown(addr))?;
        match slot.reg.access {
            Kind::Rw => self.reset_unit[reset_word(addr)] = value & slot.reg.mask,
            Kind::WoFault => {}
            _ => return Err(refused("a write", slot, addr)),
        }
        self.rung |= match addr {
            regs::MISC_CNTL => value & regs::MISC_CNTL_IRQ0 != 0,
            regs::MSI_FIFO => value == 0,
            _ => false,
        };
        Ok(())
    }

    /// Brings the telemetry's changing values up to date.
    fn refresh(&mut self, at: Cycle) {
        for (addr, value) in self.telemetry.changing(at, &self.power) {
            self.set_csm(addr, value);
        }
    }
}

/// Offset of `len` bytes at `addr` in the shared memory, if all of them lie there.
fn in_csm(addr: u64, len: usize) -> Option<u64> {
    let offset = addr.checked_sub(abi::CSM_BASE)?;
    (offset.checked_add(len as u64)? <= abi::CSM_BYTES).then_some(offset)
}

/// The tile's memory as a packet of one NoC sees it.
struct View<'a> {
    noc: u8,
    registers: &'a mut Registers,
}

impl Memory for View<'_> {
    fn read(&mut self, at: Cycle, addr: u64, out: &mut [u8]) -> Result<(), Fault> {
        if let Some(offset) = in_csm(addr, out.len()) {
            self.registers.refresh(at);
            return self.registers.csm.read(offset, out).map_err(|_| unknown(addr));
        }
        for (byte, i) in out.iter_mut().zip(0u64..) {
            let addr = addr.checked_add(i).ok_or_else(|| unknown(addr))?;
            *byte = self.registers.word(at, self.noc, addr & !3)?.to_le_bytes()[(addr % 4) as usize];
        }
        Ok(())
    }
    fn write(&mut self, _at: Cycle, addr: u64, data: &[u8]) -> Result<(), Fault> {
        if let Some(offset) = in_csm(addr, data.len()) {
            return self.registers.csm.write(offset, data).map_err(|_| unknown(addr));
        }
        let bytes = data.try_into().map_err(|_| unknown(addr))?;
        self.registers.set_word(addr, u32::from_le_bytes(bytes))
    }
    fn is_l1(&self, _addr: u64) -> bool {
        false
    }
}

impl From<Box<Packet>> for Event {
    fn from(packet: Box<Packet>) -> Self {
        Self::Arrive(packet)
    }
}

impl Endpoint for ArcTile {
    type Event = Event;

    fn events(&self) -> &EventQueue<Event> {
        &self.events
    }
    fn events_mut(&mut self) -> &mut EventQueue<Event> {
        &mut self.events
    }
    fn handle(&mut self, at: Cycle, event: Event, out: &mut Outbox) -> Result<(), Fault> {
        match event {
            Event::Arrive(packet) => serve_or_refuse(HostRequest::of(&packet), at + timing::ARC_ACCESS, out, |out| {
                self.serve(at, &packet, out).map_err(|fault| fault.sent_by(packet.from))
            }),
            Event::Messages => {
                messages::process(&mut self.registers);
                Ok(())
            }
        }
    }
}
