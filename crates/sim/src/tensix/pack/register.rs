//! `PACR_SETREG`: a register write in order with what the packer packs.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/PACR_SETREG.md and TDMA-RISC.md for the address.
//! For what is written, the public list (`assembly.yaml` of tt-llk, PACR_SETREG) describes
//! Blackhole: where Wormhole's instruction has ten bits of value it has none, and a form of its own
//! sets the word that the others write, half by half.

use super::Packer;
use super::output::{Staged, UNIT};
use crate::FaultClass::{MissingSpecification, UndefinedBehavior};
use crate::tensix::attempt::Attempt;
use crate::tensix::border::{Hold, Outside};
use crate::tensix::config::Refusal;
use tilework_abi::tensix as map;
use tilework_abi::tensix::insn::PacrSetreg;

/// Where addresses start.
const BASE: u32 = map::LOCAL_BASE;
/// Registers end here: nothing is written behind.
const END: u32 = 0xFFB8_0000;
/// Addresses that software can set.
const ADDRESSES: u32 = 2;

/// What the instruction knows.
#[derive(Clone, Debug, Default)]
pub(super) struct Register {
    /// The word that is written.
    value: u32,
    /// `PackRegAddrRaw` of TDMA-RISC.
    addresses: u32,
}

impl Register {
    /// What the instruction writes, and where.
    fn execute(&mut self, insn: PacrSetreg) -> Result<Option<(u32, u32)>, Refusal> {
        if insn.mode_sel() {
            let shift = 16 * insn.wrdata_half();
            self.value = self.value & !(0xFFFF << shift) | insn.wrdata() << shift;
            return Ok(None);
        }
        // Both must be set to trigger the write.
        if !insn.push() || !insn.flush() {
            return Ok(None);
        }
        let which = insn.addr_sel();
        if which >= ADDRESSES {
            return Err((MissingSpecification, "an address that no register of TDMA-RISC sets"));
        }
        let (low, high) = (self.addresses >> (10 * which) & 0x3FF, self.addresses >> (20 + 2 * which) & 3);
        let addr = BASE + (high << 18) + (low << 2) + (insn.stream_id() << 12);
        match addr {
            ..map::TDMA_BASE => Err((UndefinedBehavior, "a register below those of TDMA-RISC")),
            END.. => Ok(None),
            _ => Ok(Some((addr, self.value))),
        }
    }
}

impl Packer {
    /// What TDMA-RISC has as the addresses that `PACR_SETREG` can write to.
    pub(in crate::tensix) fn set_register_addresses(&mut self, value: u32) {
        self.register.addresses = value;
    }

    /// Executes a `PACR_SETREG`: writes what the streams hold, and the register.
    pub(in crate::tensix) fn set_register(
        &mut self,
        at: Attempt,
        insn: PacrSetreg,
        outside: &mut impl Outside,
    ) -> Result<(), Hold> {
        let refused = |refusal| at.refused(refusal);
        let write = self.register.execute(insn).map_err(refused)?;
        if insn.mode_sel() || !insn.flush() {
            return Ok(());
        }
        for stream in [&self.row_starts, &self.exponents, &self.data] {
            let held = stream.plan(0, 0, true).map_err(refused)?;
            if held.len != 0 && outside.must_wake(held.addr, held.len) {
                return Err(Hold::Wake);
            }
        }
        if let Some((addr, value)) = write {
            if outside.must_wake(addr, 4) {
                return Err(Hold::Wake);
            }
            outside.store(at.now, addr, value).map_err(|fault| at.caused(fault))?;
        }
        for stream in [&mut self.row_starts, &mut self.exponents, &mut self.data] {
            let held = stream.plan(0, 0, true).map_err(refused)?;
            if held.len != 0 {
                let mut staged = Staged::<UNIT>::default();
                stream.stage(&mut staged);
                outside.write_l1(held.addr, staged.units(held.len));
                stream.advance(held, &staged, false);
                self.sizes.add(held);
            }
        }
        Ok(())
    }
}
