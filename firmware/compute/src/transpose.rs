//! Transposition of a tile in Dst, with all bits of its elements.
//!
//! SrcB transposes faces of 16 bits (TRNSPSRCB.md). A face of 32 bits goes there by halves
//! (MOVD2B.md, MOVB2D.md): the upper ones wait in SrcA until the lower ones have been read. Then the
//! vector unit exchanges the faces beside the diagonal.

use crate::format::Format;
use crate::push::{Word, block, push, set, stall, until};
use crate::sfpu;
use crate::ttinsn;
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{Mova2d, Movb2a, Movb2d, Movd2b, Setrwc, Trnspsrcb};

/// Rows of a face, those that a move takes, and the first of those that are transposed.
const FACE: u32 = 16;
const FOUR: u32 = 4;
const EIGHT: u32 = 8;
const TRANSPOSED: u32 = 16;
const FACES: u32 = 4;
/// Both banks.
const BOTH: u32 = 3;

/// Every group of `rows` rows of a face.
fn groups(rows: u32) -> impl Iterator<Item = u32> {
    (0..FACE).step_by(rows as usize)
}

/// Moves a face's halves of elements to SrcB and transposes them.
fn to_b(first: u32, low: bool) {
    for row in groups(FOUR) {
        let word = Movd2b::build().use_dst32b_lo(low).move_4_rows(true).src_row(TRANSPOSED + row);
        push(word.dst_row(first + row).word());
    }
    ttinsn!(Trnspsrcb::build().word());
}

/// Moves what is transposed back.
fn from_b(first: u32, low: bool) {
    for row in groups(FOUR) {
        let word = Movb2d::build().use_dst32b_lo(low).move_4_rows(true).src_row(TRANSPOSED + row);
        push(word.dst_row(first + row).word());
    }
}

/// Moves types as they are, or as the configuration has them.
fn as_bits(on: bool) {
    ttinsn!(stall(block::CFG, until::MATH | until::SFPU));
    Word::of(cfg::DISABLE_IMPLIED_SRCA_FMT_BASE, on.into()).write();
    set(cfg::ALU_FORMAT_SPEC_REG_SRCA_VAL, Format::Bf16.code());
    set(cfg::ALU_FORMAT_SPEC_REG_SRCA_OVERRIDE, on.into());
    set(cfg::ALU_ACC_CTRL_ZERO_FLAG_DISABLED_SRC, on.into());
    ttinsn!(stall(block::MATH, until::CFG));
}

/// Transposes the tile that Dst's counter points at, when the unpackers have given both banks.
/// `opaque`: moves keep opaque bits before and behind it, too.
pub(crate) fn transpose(wide: bool, opaque: bool) {
    ttinsn!(stall(block::MATH, until::SFPU | until::SRC_A_VALID | until::SRC_B_VALID));
    as_bits(true);
    for first in (0..FACES).map(|face| face * FACE) {
        to_b(first, false);
        if wide {
            for row in groups(FOUR) {
                push(Movb2a::build().src_a_row(row).move_4_rows(true).src_b_row(TRANSPOSED + row).word());
            }
            to_b(first, true);
            for row in groups(EIGHT) {
                push(Mova2d::build().src_row(row).move_8_rows(true).dst_row(first + row).word());
            }
        }
        from_b(first, wide);
    }
    ttinsn!(Setrwc::build().clear_dvalid(BOTH).fidelity(true).dst(true).src_b(true).src_a(true).word());
    as_bits(false);
    if opaque {
        set(cfg::ALU_ACC_CTRL_ZERO_FLAG_DISABLED_SRC, 1);
        ttinsn!(stall(block::MATH, until::CFG));
    }
    sfpu::exchange_faces(wide);
}
