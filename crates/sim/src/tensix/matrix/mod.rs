//! The matrix unit (FPU): what it does to SrcA, SrcB, Dst and its counters.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/MatrixUnit.md and the pages of its instructions.

use super::config::{Config, Refusal};
use super::counters::Rwc;
use super::dst::{Dst, ROWS, RowMap};
use super::src::Sources;
use crate::FaultClass;
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{self, Zeroacc};

/// The matrix unit's state.
#[derive(Debug, Default)]
pub(super) struct Matrix {
    pub(super) rwcs: [Rwc; 3],
}

/// What an instruction of `thread` works on.
pub(super) struct Operands<'a> {
    pub(super) config: &'a Config,
    pub(super) thread: usize,
    pub(super) src: &'a mut Sources,
    pub(super) dst: &'a mut Dst,
}

impl Matrix {
    /// Executes one instruction.
    pub(super) fn execute(&mut self, on: &mut Operands<'_>, insn: insn::MatrixOp) -> Result<(), Refusal> {
        let rwc = &mut self.rwcs[on.thread];
        match insn {
            insn::MatrixOp::Zeroacc(insn) => self.zero_acc(on, insn)?,
            insn::MatrixOp::Zerosrc(_) | insn::MatrixOp::Clrexphist(_) | insn::MatrixOp::Gatesrcrst(_) => {}
            insn::MatrixOp::Cleardvalid(insn) => on.src.clear_valid(insn),
            insn::MatrixOp::Setrwc(insn) => {
                rwc.set(insn);
                on.release(insn.clear_dvalid());
            }
            insn::MatrixOp::Incrwc(insn) => rwc.increment(insn),
        }
        Ok(())
    }

    fn zero_acc(&mut self, on: &mut Operands<'_>, insn: Zeroacc) -> Result<(), Refusal> {
        let (mode, use_32) = (insn.mode(), insn.use_dst32b());
        let (addr_mod, at) = (insn.addr_mod(), insn.imm10() as usize);
        let map = RowMap::of(on.config);
        if insn.revert() {
            return Err((FaultClass::UndefinedBehavior, "ZEROACC that reverts"));
        }
        match mode {
            0 => {
                let wide = on.is_set(cfg::ALU_ACC_CTRL_FP32_ENABLED) || on.is_set(cfg::ALU_ACC_CTRL_INT8_MATH_ENABLED);
                let row = self.dst_row(on, at as u32);
                on.dst.clear(if wide { map.row32(row) } else { map.row16(row) });
            }
            1 => {
                // Only the low eight bits count, and blocks past the end do nothing (ZEROACC.md).
                let block = at & 0xFF;
                for i in (0..16).filter(|_| block < if use_32 { 32 } else { 64 }) {
                    let row = block * 16 + i;
                    on.dst.clear(if use_32 { map.row32(row) } else { map.row16(row) });
                }
            }
            2 => on.dst.clear_half(at & 1),
            _ => [0, 1].into_iter().for_each(|half| on.dst.clear_half(half)),
        }
        if mode < 2 {
            self.rwcs[on.thread].apply(on.config, on.thread, addr_mod);
        }
        Ok(())
    }

    /// The row of Dst that an instruction names by `offset`.
    fn dst_row(&self, on: &Operands<'_>, offset: u32) -> usize {
        let base = on.read(cfg::DEST_TARGET_REG_CFG_MATH_OFFSET) + on.read(cfg::DEST_REGW_BASE_BASE);
        (offset + base + self.rwcs[on.thread].dst()) as usize % ROWS
    }
}

impl Operands<'_> {
    fn read(&self, field: cfg::Field) -> u32 {
        self.config.read(self.thread, field)
    }
    fn is_set(&self, field: cfg::Field) -> bool {
        self.config.is_set(self.thread, field)
    }
    /// Turns to the other banks of `flips`, and gives these back unless the configuration keeps
    /// them.
    fn release(&mut self, flips: u32) {
        let kept = self.read(cfg::CLR_DVALID_SRCA_DISABLE) | self.read(cfg::CLR_DVALID_SRCB_DISABLE) << 1;
        self.src.release(flips, kept, true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use insn::Setrwc;

    /// A matrix unit with what it works on, on thread 0.
    #[derive(Default)]
    struct Bench {
        matrix: Matrix,
        config: Config,
        src: Sources,
        dst: Dst,
    }

    impl Bench {
        fn execute(&mut self, word: u32) -> Result<(), Refusal> {
            let Self { matrix, config, src, dst } = self;
            let insn = insn::MatrixOp::decode(word).expect("a built instruction");
            matrix.execute(&mut Operands { config, thread: 0, src, dst }, insn)
        }
        fn cleared(&self) -> Vec<usize> {
            (0..ROWS).filter(|&row| !self.dst.is_valid(row)).collect()
        }
    }

    fn cleared(words: &[u32]) -> Vec<usize> {
        let mut b = Bench::default();
        for &word in words {
            assert_eq!(b.execute(word), Ok(()));
        }
        b.cleared()
    }

    fn zero_acc(mode: u32, use_32: bool, at: u32) -> u32 {
        Zeroacc::build().mode(mode).use_dst32b(use_32).imm10(at).word()
    }

    #[test]
    fn zeroacc_clears_rows_blocks_halves_or_everything() {
        assert_eq!(cleared(&[zero_acc(0, false, 1023)]), [1023]);
        assert_eq!(cleared(&[zero_acc(1, false, 3)]), (48..64).collect::<Vec<_>>());
        // Block 1 of 32-bit rows: physical rows 32..40 and 48..56.
        assert_eq!(cleared(&[zero_acc(1, true, 1)]), (32..40).chain(48..56).collect::<Vec<_>>());
        assert_eq!(cleared(&[zero_acc(1, false, 64), zero_acc(1, true, 32)]), [0; 0]);
        assert_eq!(cleared(&[zero_acc(2, false, 1)]), (512..1024).collect::<Vec<_>>());
        assert_eq!(cleared(&[zero_acc(3, false, 0)]).len(), 1024, "the word that BRISC's start-up pushes");
    }

    #[test]
    fn one_row_is_relative_to_the_counters() {
        let mut b = Bench::default();
        b.config.set_thread(0, cfg::DEST_TARGET_REG_CFG_MATH_OFFSET.word.into(), 100).unwrap();
        b.config.set(0, cfg::DEST_REGW_BASE_BASE.word.into(), 1000).unwrap();
        b.matrix.rwcs[0].set(Setrwc::decode(Setrwc::build().dst(true).dst_val(7).word()).unwrap());
        b.execute(zero_acc(0, false, 5)).unwrap();
        assert_eq!(b.cleared(), [(5 + 100 + 7 + 1000) % 1024]);
        let reverts = Zeroacc::build().mode(3).revert(true).word();
        assert_eq!(b.execute(reverts).unwrap_err().0, FaultClass::UndefinedBehavior);
    }
}
