//! Soft reset of the coprocessor's units.
//!
//! Follows BlackholeA0/TensixTile/SoftReset.md. Where the page leaves open whether an instruction
//! for a unit in reset is discarded, it waits. Not modelled: bits of units that are not built, and
//! that banks of SrcA and SrcB cannot change hands while their bit is set.

use super::coprocessor::Coprocessor;
use super::vector::Vector;
use crate::Cycle;
use tilework_abi::tensix::insn::{self, Insn, Unit};

/// The unpackers; software sets all three bits.
const UNPACKERS: u32 = 1 << 0 | 1 << 1 | 1 << 7;
/// The packer; the bits behind it are those of packers that only Wormhole has.
const PACKER: u32 = 1 << 2;
/// The mover.
pub(super) const MOVER: u32 = 1 << 6;
/// TDMA-RISC, and the glue between threads and units that access L1.
pub(super) const TDMA: u32 = 1 << 8;
/// THCON configuration and the scalar unit.
const THCON: u32 = 1 << 9;
/// Matrix and vector unit.
const MATH: u32 = 1 << 10;
/// Whose turn the banks of SrcA are; the next bit is SrcB's.
const SRC_A_BANKS: u32 = 1 << 15;
/// `ZEROACC`, and what the packer reads of Dst.
const ZEROACC: u32 = 1 << 17;

/// What an instruction for a unit in reset does.
pub(super) enum InReset {
    Discards,
    Waits,
}

impl Coprocessor {
    /// Takes the soft reset register's bits over at cycle `at`; returns those that were not set
    /// before.
    pub(super) fn soft_reset(&mut self, bits: u32, at: Cycle) -> u32 {
        let entered = bits & !self.held;
        let left = self.held & !bits;
        self.held = bits;
        if entered & PACKER != 0 {
            self.packer.abort();
        }
        if left & PACKER != 0 {
            self.packer.l1_dest_addr_offset = 0;
        }
        if entered & MOVER != 0 {
            self.mover.abort();
            self.schedule_mover(at);
        }
        if entered & UNPACKERS != 0 {
            self.unpackers.abort();
        }
        if entered & TDMA != 0 {
            self.mover.clear_queue();
        }
        if entered & THCON != 0 {
            self.config.reset_thcon();
        }
        for src in (0..2).filter(|src| entered & SRC_A_BANKS << src != 0) {
            self.src.0[src].reset_turns();
        }
        if entered & ZEROACC != 0 {
            self.dst.revert_clear();
            self.packer.clear_histogram();
        }
        if left & ZEROACC != 0 {
            self.packer.reset_generators();
        }
        if left & MATH != 0 {
            *self.vector = Vector::default();
            self.matrix.reset_generators();
        }
        if entered | left != 0 {
            self.notify_all(at);
            self.unblock(at);
        }
        entered
    }

    /// What becomes of an instruction whose unit is in reset; `None`: it is not.
    #[inline]
    pub(super) fn in_reset(&self, word: u32) -> Option<InReset> {
        if self.held == 0 { None } else { self.held_back(Insn::decode(word)) }
    }

    fn held_back(&self, insn: Insn) -> Option<InReset> {
        let held = |bits: u32| self.held & bits != 0;
        // SETDMAREG and DMANOP execute all the same.
        let plain = matches!(insn, Insn::Scalar(insn::ScalarOp::Setdmareg(_) | insn::ScalarOp::Dmanop(_)));
        let zero_acc = matches!(insn, Insn::Matrix(insn::MatrixOp::Zeroacc(_)));
        match insn.unit()? {
            Unit::Packer if held(PACKER) => Some(InReset::Waits),
            Unit::Mover if held(MOVER) => Some(InReset::Discards),
            Unit::Unpacker if held(UNPACKERS | TDMA) => Some(InReset::Waits),
            Unit::Mover if held(TDMA) => Some(InReset::Waits),
            Unit::Scalar if held(TDMA | THCON) && !plain => Some(InReset::Waits),
            Unit::Matrix | Unit::Vector if held(MATH) => Some(InReset::Waits),
            Unit::Matrix if held(ZEROACC) && zero_acc => Some(InReset::Discards),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::Bench;
    use super::*;
    use crate::NEVER;
    use tilework_abi::tensix::{self as map, Processor::Brisc};

    const XMOV: u32 = insn::Xmov::build().word();
    const NOP: u32 = insn::Nop::build().word();

    #[test]
    fn a_unit_in_reset_holds_its_instructions_until_it_is_released() {
        let mut b = Bench::new();
        b.t.soft_reset(MATH | THCON, 0);
        b.push(0, 0, &[insn::Incrwc::build().word()]);
        b.push(1, 0, &[insn::Setdmareg::build().new_value(5).word(), insn::Adddmareg::build().word()]);
        b.push(2, 0, &[insn::Sfpnop::build().word()]);
        assert_eq!(b.run(100).unwrap(), [3], "SETDMAREG only");
        b.t.soft_reset(0, 200);
        assert_eq!(b.run(1000).unwrap(), [200, 200, 200]);
    }

    #[test]
    fn the_mover_gives_up_and_discards_in_reset() {
        let mut b = Bench::new();
        b.out.l1[0] = 7;
        for (index, value) in [(88, 0), (89, 0x200), (90, 0x100 | 3 << 30)] {
            b.t.store(Brisc, map::CFG_BASE + 4 * index, value, 0).unwrap();
        }
        b.push(0, 0, &[XMOV]);
        b.run(50).unwrap();
        b.t.soft_reset(MOVER, 50);
        b.push(0, 60, &[XMOV, NOP]);
        assert_eq!(b.run(1000).unwrap(), [63, 64], "nothing to wait for");
        assert_eq!((b.word(0x2000), b.t.next()), (0, NEVER));
        b.t.soft_reset(0, 1000);
        b.push(0, 1000, &[XMOV]);
        b.run(2000).unwrap();
        assert_eq!(b.word(0x2000), 7);
    }

    #[test]
    fn entering_reset_clears_queue_and_thcon_configuration() {
        let mut b = Bench::new();
        let cfg = |index: u32| map::CFG_BASE + 4 * index;
        for index in [63, 64, 179, 180] {
            b.t.store(Brisc, cfg(index), 5, 0).unwrap();
        }
        b.t.store(Brisc, map::TDMA_BASE + 0x10, 0x8000_0089, 0).unwrap();
        b.t.soft_reset(THCON | TDMA, 0);
        assert_eq!([63, 64, 179, 180].map(|i| b.t.peek(Brisc, cfg(i)).unwrap()), [5, 0, 0, 5]);
        assert_eq!(b.t.peek(Brisc, map::TDMA_BASE + 0x14), Some(0x428));
        b.t.store(Brisc, map::TDMA_BASE + 0x24, 1, 0).unwrap();
        assert_eq!(b.t.peek(Brisc, map::TDMA_BASE + 0x24), Some(0), "writes are discarded");
    }
}
