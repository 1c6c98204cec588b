//! Instructions of the matrix unit against what their pages say.

use super::*;
use crate::FaultClass;
use tilework_abi::tensix::insn::{Setrwc, Zeroacc};

/// A matrix unit with what it works on, on thread 0.
#[derive(Default)]
struct Bench {
    matrix: Matrix,
    config: Config,
    src: Sources,
    dst: Dst,
    blocked: u16,
}

impl Bench {
    fn execute(&mut self, word: u32) -> Result<bool, Refusal> {
        let Self { matrix, config, src, dst, blocked } = self;
        let insn = MatrixOp::decode(word).expect("a built instruction");
        matrix.execute(&mut Operands { config, thread: 0, src, dst, blocked: *blocked }, insn)
    }
    fn cleared(&self) -> Vec<usize> {
        (0..ROWS).filter(|&row| !self.dst.is_valid(row)).collect()
    }
}

fn cleared(words: &[u32]) -> Vec<usize> {
    let mut b = Bench::default();
    for &word in words {
        assert_eq!(b.execute(word), Ok(false));
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
    let reverts = Zeroacc::build().mode(1).revert(true).imm10(2).word();
    assert_eq!(cleared(&[zero_acc(2, false, 0), reverts]), (0..32).chain(48..512).collect::<Vec<_>>());
}

#[test]
fn a_block_is_one_of_the_half_that_the_thread_writes() {
    let block = |offset: u16, absolute: u32, word: u32| {
        let mut b = Bench::default();
        b.config.set_thread(0, cfg::DEST_TARGET_REG_CFG_MATH_OFFSET.word.into(), offset).unwrap();
        b.config.set(0, cfg::DEST_ACCESS_CFG_ZEROACC_ABSOLUTE_TILE_MODE.word.into(), absolute << 3).unwrap();
        b.execute(word).map(|_| b.cleared().first().copied())
    };
    assert_eq!(block(512, 0, zero_acc(1, false, 3)), Ok(Some(512 + 48)));
    assert_eq!(block(512, 1, zero_acc(1, false, 3)), Ok(Some(48)));
    assert_eq!(block(512, 0, zero_acc(1, true, 1)), Ok(Some(512 + 32)));
    // The sum decides, as was measured (llk_math_eltwise_binary.h).
    assert_eq!(block(480, 0, zero_acc(1, false, 31)), Ok(Some(496)));
    assert_eq!(block(488, 0, zero_acc(1, false, 31)), Ok(Some(512 + 496)));
    assert_eq!(block(512, 0, zero_acc(1, false, 32)).unwrap_err().0, FaultClass::MissingSpecification);
    assert_eq!(block(512, 0, zero_acc(1, false, 0xFF)), Ok(None), "only the counters move");
}

#[test]
fn one_row_is_relative_to_the_counters() {
    let mut b = Bench::default();
    b.config.set_thread(0, cfg::DEST_TARGET_REG_CFG_MATH_OFFSET.word.into(), 100).unwrap();
    b.config.set(0, cfg::DEST_REGW_BASE_BASE.word.into(), 1000).unwrap();
    b.matrix.rwcs[0].set(Setrwc::decode(Setrwc::build().dst(true).dst_val(7).word()).unwrap());
    b.execute(zero_acc(0, false, 5)).unwrap();
    assert_eq!(b.cleared(), [(5 + 100 + 7 + 1000) % 1024]);
}
