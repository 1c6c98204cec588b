//! What a debugger of the simulated chip sees and changes of a tile between two windows.
//!
//! Unlike [`super::debugger`], which is the hardware's debug interface and costs the debugged
//! program cycles, nothing of this takes time or is seen by the program, but for what the user
//! changes.

use super::fabric::{get, put};
use super::{Activity, Tile};
use crate::Fault;
use crate::chip::CoreView;
use crate::tensix::Issuer;
use tilework_abi::address_map::Region;
use tilework_abi::tensix::{L1_SIZE, Processor};
use tilework_riscv::{Cycle, Refuse, Width};

impl Tile {
    /// A core as it stands.
    pub(crate) fn view(&self, core: Processor) -> CoreView {
        let slot = &self.slots[core.index()];
        CoreView {
            tile: self.xy,
            core,
            activity: slot.activity,
            pc: slot.core.pc,
            registers: slot.core.regs,
            instructions: slot.core.retired + slot.core.skipped,
        }
    }

    /// Calls `each` for every core that executes: its index, its next instruction, and its count of
    /// instructions.
    #[inline]
    pub(crate) fn executing(&self, mut each: impl FnMut(usize, u32, u64)) {
        for i in crate::bits::members(self.running) {
            let core = &self.slots[i].core;
            each(i, core.pc, core.retired + core.skipped);
        }
    }

    /// Wakes a core that is parked.
    pub(crate) fn unpark(&mut self, core: Processor, at: Cycle) {
        if self.activity(core) == Activity::Parked {
            self.wake_members(1 << core.index(), at);
        }
    }

    /// Does not park a core before it has gone once around its loop.
    pub(crate) fn keep_awake(&mut self, core: Processor) {
        self.slots[core.index()].core.keep_awake();
    }

    /// Whether a core, which is not parked, may be.
    pub(crate) fn set_core_parking(&mut self, core: Processor, on: bool) {
        self.slots[core.index()].core.set_parking(on);
    }

    /// Sets a register, or with 32 the program counter, of a core that is not parked.
    pub(crate) fn set_register(&mut self, core: Processor, index: usize, value: u32) {
        let hart = &mut self.slots[core.index()].core;
        match index {
            1..=31 => hart.regs[index] = value,
            32 => hart.pc = value,
            _ => {}
        }
    }

    /// What `core` would load from `address` on, without side effects; how many bytes of it.
    pub(crate) fn peek_bytes(&mut self, core: Processor, at: Cycle, address: u32, out: &mut [u8]) -> usize {
        let mut done = 0;
        while done < out.len() {
            let Some(from) = u32::try_from(done).ok().and_then(|done| address.checked_add(done)) else { break };
            let span = self.peek_span(core, at, from, &mut out[done..]);
            if span == 0 {
                break;
            }
            done += span;
        }
        done
    }

    /// The first bytes of it: those of one memory, or of one word.
    fn peek_span(&mut self, core: Processor, at: Cycle, address: u32, out: &mut [u8]) -> usize {
        let memory: &[u8] = match Region::decode(address) {
            Region::L1 { offset } => &self.shared.fabric.l1[offset as usize..],
            Region::Local { offset } => self.ports[core.index()].local.get(offset as usize..).unwrap_or_default(),
            Region::LocalOf { core, offset } => {
                self.ports[core.index()].local.get(offset as usize..).unwrap_or_default()
            }
            _ => {
                let Some(word) = self.reach().peek(core, at, address & !3, Width::Word) else { return 0 };
                let bytes = &word.to_le_bytes()[(address & 3) as usize..];
                let len = bytes.len().min(out.len());
                out[..len].copy_from_slice(&bytes[..len]);
                return len;
            }
        };
        let len = memory.len().min(out.len());
        out[..len].copy_from_slice(&memory[..len]);
        len
    }

    /// Stores bytes as `core` would, at once. Memory takes any number of bytes, registers take
    /// whole words.
    ///
    /// # Errors
    /// As a store of the core.
    pub(crate) fn poke_bytes(&mut self, core: Processor, at: Cycle, address: u32, data: &[u8]) -> Result<(), Fault> {
        let sleepers = self.shared.fabric.sleepers_on(address.into(), u32::try_from(data.len()).unwrap_or(u32::MAX));
        self.wake(sleepers, at);
        match Region::decode(address) {
            Region::L1 { offset } if (offset as usize).saturating_add(data.len()) <= L1_SIZE as usize => {
                self.shared.fabric.l1_write(offset, data);
                let lines = (offset..offset + data.len() as u32).step_by(4);
                lines.for_each(|line| self.ports[core.index()].l0.drop_line(line));
                Ok(())
            }
            Region::Local { offset } => self.poke_local(core, at, offset, data),
            Region::LocalOf { core, offset } => self.poke_local(core, at, offset, data),
            _ => {
                let by = Issuer { core, pc: self.pc(core) };
                let words = data.chunks_exact(4).zip((address..).step_by(4));
                for (word, address) in words {
                    let value = u32::from_le_bytes(word.try_into().unwrap_or_default());
                    let stored = self.reach().store(Some(by), at, address, Width::Word, value);
                    stored.map_err(|refusal| refused(refusal, address))?;
                    self.handle_side_effects();
                }
                let rest = data.len() % 4;
                if rest == 0 { Ok(()) } else { Err(unusable(address)) }
            }
        }
    }

    /// A core may be parked in a loop that reads only its own memory, which nobody else changes.
    fn poke_local(&mut self, core: Processor, at: Cycle, offset: u32, data: &[u8]) -> Result<(), Fault> {
        self.unpark(core, at);
        let local = &mut self.ports[core.index()].local;
        if offset as usize + data.len() > local.len() {
            return Err(unusable(offset));
        }
        for (i, &byte) in data.iter().enumerate() {
            put(local, offset as usize + i, Width::Byte, byte.into());
            debug_assert_eq!(get(local, offset as usize + i, Width::Byte), byte.into());
        }
        Ok(())
    }

    /// The state of the coprocessor in lines of text.
    pub(crate) fn coprocessor(&self, part: &str, from: usize, count: usize) -> Option<String> {
        self.shared.tensix.show(part, from, count)
    }
}

fn refused(refusal: Refuse<Fault>, address: u32) -> Fault {
    match refusal {
        Refuse::Fault(fault) => fault,
        Refuse::Sync | Refuse::Block => unusable(address),
    }
}

fn unusable(address: u32) -> Fault {
    let what = "the debugger writes what cannot be written in this way now";
    Fault::new(crate::FaultClass::UndefinedBehavior, what, "docs/debugger.md").at_addr(address.into())
}
