//! Words of the vector unit that its functions are made of.
//!
//! An instruction of the MAD sub-unit takes two cycles. The unit waits for it where it sees that
//! the next instruction reads the result; `SFPSWAP`, and VD of `SFPIADD` and `SFPSHFT`, it does not
//! see (SFPMAD.md, "Instruction scheduling"), so another instruction stands between.

use crate::push::push;
use tilework_abi::tensix::insn::{
    Sfpaddi, Sfpand, Sfparecip, Sfpcast, Sfpconfig, Sfpencc, Sfpexexp, Sfpexman, Sfpgt, Sfpiadd, Sfple, Sfploadi,
    Sfpmad, Sfpmov, Sfpmul24, Sfpnop, Sfpnot, Sfpor, Sfpsetcc, Sfpsetexp, Sfpsetsgn, Sfpshft, Sfpshft2, Sfpswap,
    Sfptransp, Sfpxor,
};

/// Pushes constant words, one after the other.
macro_rules! vector {
    ($($word:expr;)*) => {{ $( $crate::ttinsn!(const { $word }); )* }};
}
pub(super) use vector;

/// Register 2 becomes a polynomial of register 1, whose numbers begin with that of the highest
/// power; changes register 7.
macro_rules! polynomial {
    ($first:expr $(, $number:expr)*) => {
        $crate::sfpu::words::vector! {
            low_half(2, $first.to_bits());
            high_half(2, $first.to_bits());
            $(
                low_half(7, $number.to_bits());
                high_half(7, $number.to_bits());
                mad(2, 1, 7, 2);
            )*
        }
    };
}
pub(super) use polynomial;

/// Registers: zero, one, minus one; those that software sets by way of register 0.
pub(super) const ZERO: u32 = 9;
pub(super) const ONE: u32 = 10;
pub(super) const MINUS_ONE: u32 = 11;
pub(super) const C12: u32 = 12;
pub(super) const C13: u32 = 13;
pub(super) const C14: u32 = 14;
/// The register that has twice the number of its lane (LReg.md).
pub(super) const TWICE_LANE: u32 = 15;

/// `SFPLOADI`: the high half and zeros, an integer, both halves one by one.
const HIGH_OF_ZERO: u32 = 0;
const UNSIGNED: u32 = 2;
const HIGH_HALF: u32 = 8;
const LOW_HALF: u32 = 10;
/// `SFPMAD`: VA or VC with the other sign.
const NEGATE_VA: u32 = 1;
const NEGATE_VC: u32 = 2;
/// `SFPMOV`: with the other sign.
const NEGATE: u32 = 1;
/// `SFPSWAP`: the smaller to VD.
const MIN_TO_VD: u32 = 1;
const MIN_TO_VD_IN_ROWS_0_1: u32 = 2;
const MIN_TO_VD_IN_ROWS_0_2: u32 = 3;
/// `SFPSHFT`: by the immediate; with the sign.
const BY_IMMEDIATE: u32 = 1;
const SIGNED: u32 = 2;
/// `SFPSHFT2`: in each group of eight lanes, the next one.
const ROTATE: u32 = 3;
/// `SFPCONFIG`: the modes of the lanes; the immediate is the value.
const LANE_CONFIG: u32 = 15;
const IMMEDIATE_VALUE: u32 = 1;
/// `SFPIADD`: the immediate; VC - VD; flags stay.
const IMMEDIATE: u32 = 1;
const SUBTRACT: u32 = 2;
const KEEP_FLAGS: u32 = 4;
/// `SFPENCC`: predication is on and all flags are set, for what follows.
const ON: u32 = 3;
const SET_BOTH: u32 = 10;
/// `SFPSETCC`: what the flag becomes.
const NEGATIVE: u32 = 0;
const NOT_ZERO: u32 = 2;
const NOT_NEGATIVE: u32 = 4;
const IS_ZERO: u32 = 6;
/// `SFPEXEXP`: the flag says whether the exponent is negative.
const FLAGS: u32 = 2;
/// `SFPGT`, `SFPLE`: to the flags.
const TO_FLAGS: u32 = 1;
/// `SFPCAST`: sign and magnitude to f32; between two's complement and sign and magnitude.
const TO_FLOAT: u32 = 0;
const SIGN_MAGNITUDE: u32 = 3;

/// VD = VA x VB + VC.
pub(super) const fn mad(va: u32, vb: u32, vc: u32, vd: u32) -> u32 {
    Sfpmad::build().va(va).vb(vb).vc(vc).vd(vd).word()
}
/// VD = VC - VA x VB.
pub(super) const fn nmad(va: u32, vb: u32, vc: u32, vd: u32) -> u32 {
    Sfpmad::build().va(va).vb(vb).vc(vc).vd(vd).mod1(NEGATE_VA).word()
}
/// VD = VA x VB - VC.
pub(super) const fn msub(va: u32, vb: u32, vc: u32, vd: u32) -> u32 {
    Sfpmad::build().va(va).vb(vb).vc(vc).vd(vd).mod1(NEGATE_VC).word()
}
/// VD = VA x VB.
pub(super) const fn mul(va: u32, vb: u32, vd: u32) -> u32 {
    mad(va, vb, ZERO, vd)
}
/// VD = VA + VC.
pub(super) const fn add(va: u32, vc: u32, vd: u32) -> u32 {
    mad(va, ONE, vc, vd)
}
/// VD = VA - VC.
pub(super) const fn sub(va: u32, vc: u32, vd: u32) -> u32 {
    msub(va, ONE, vc, vd)
}
/// VD = VD + a number of eight bits.
pub(super) const fn add_number(vd: u32, value: f32) -> u32 {
    Sfpaddi::build().imm16(value.to_bits() >> 16).vd(vd).word()
}
/// The high half of an f32 to a register.
pub(super) const fn high(vd: u32, value: f32) -> u32 {
    high_bits(vd, value.to_bits() >> 16)
}
/// The high half's bits to a register.
pub(super) const fn high_bits(vd: u32, bits: u32) -> u32 {
    Sfploadi::build().vd(vd).mod0(HIGH_OF_ZERO).imm16(bits).word()
}
/// An integer of 16 bits to a register.
pub(super) const fn integer(vd: u32, value: u32) -> u32 {
    Sfploadi::build().vd(vd).mod0(UNSIGNED).imm16(value).word()
}
/// The low half of a register, which keeps its high half.
pub(super) const fn low_half(vd: u32, bits: u32) -> u32 {
    Sfploadi::build().vd(vd).mod0(LOW_HALF).imm16(bits & 0xFFFF).word()
}
/// The high half of a register, which keeps its low half.
pub(super) const fn high_half(vd: u32, bits: u32) -> u32 {
    Sfploadi::build().vd(vd).mod0(HIGH_HALF).imm16(bits >> 16).word()
}
/// VD = VC.
pub(super) const fn mov(vc: u32, vd: u32) -> u32 {
    Sfpmov::build().vc(vc).vd(vd).word()
}
/// VD = VC with the other sign.
pub(super) const fn negative(vc: u32, vd: u32) -> u32 {
    Sfpmov::build().vc(vc).vd(vd).mod1(NEGATE).word()
}
/// Of rows of lanes (four, a bit each) of `rows`, the smaller goes to `a`, the larger to `b`; the
/// other way round in the other rows. None, all, or two rows.
pub(super) const fn order(a: u32, b: u32, rows: u32) -> u32 {
    let (vd, vc, mode) = match rows {
        0b1111 => (a, b, MIN_TO_VD),
        0b0000 => (b, a, MIN_TO_VD),
        0b0011 => (a, b, MIN_TO_VD_IN_ROWS_0_1),
        0b1100 => (b, a, MIN_TO_VD_IN_ROWS_0_1),
        0b0101 => (a, b, MIN_TO_VD_IN_ROWS_0_2),
        _ => (b, a, MIN_TO_VD_IN_ROWS_0_2),
    };
    Sfpswap::build().vd(vd).vc(vc).mod1(mode).word()
}
/// Registers 0 to 3, and 4 to 7: four rows of four become columns.
pub(super) const TRANSPOSE: u32 = Sfptransp::build().word();
/// The smaller of both goes to VD, the larger to VC.
pub(super) const fn min_max(vd: u32, vc: u32) -> u32 {
    Sfpswap::build().vd(vd).vc(vc).mod1(MIN_TO_VD).word()
}
/// VD = VD xor VC.
pub(super) const fn xor(vc: u32, vd: u32) -> u32 {
    Sfpxor::build().vc(vc).vd(vd).word()
}
/// VD = VD and VC, bit by bit.
pub(super) const fn and(vc: u32, vd: u32) -> u32 {
    Sfpand::build().vc(vc).vd(vd).word()
}
/// VD = VD or VC, bit by bit.
pub(super) const fn or(vc: u32, vd: u32) -> u32 {
    Sfpor::build().vc(vc).vd(vd).word()
}
/// VD = VC with all bits inverted.
pub(super) const fn not(vc: u32, vd: u32) -> u32 {
    Sfpnot::build().vc(vc).vd(vd).word()
}
/// VD = the low, or the `upper`, 23 bits of the product of the low 23 bits of VA and VB.
pub(super) const fn mul_23(va: u32, vb: u32, vd: u32, upper: bool) -> u32 {
    Sfpmul24::build().va(va).vb(vb).vc(ZERO).vd(vd).mod1(upper as u32).word()
}
/// VD, shifted left, or right with zeros if `by` is negative.
pub(super) const fn shift(vd: u32, by: i32) -> u32 {
    Sfpshft::build().imm12(by).vd(vd).mod1(BY_IMMEDIATE).word()
}
/// VD, shifted left by VC, or right with zeros if that is negative.
pub(super) const fn shift_by(vc: u32, vd: u32) -> u32 {
    Sfpshft::build().vc(vc).vd(vd).word()
}
/// VD, shifted left by VC, or right with its sign if that is negative.
pub(super) const fn shift_signed_by(vc: u32, vd: u32) -> u32 {
    Sfpshft::build().vc(vc).vd(vd).mod1(SIGNED).word()
}
/// VD = VC, with each lane's value in the next of its row of eight lanes, of the last one in the
/// first. A [`PAUSE`] must follow (SFPSHFT2.md, "Instruction scheduling").
pub(super) const fn rotate(vc: u32, vd: u32) -> u32 {
    Sfpshft2::build().vc(vc).vd(vd).mod1(ROTATE).word()
}
/// Nothing for a cycle.
pub(super) const PAUSE: u32 = Sfpnop::build().word();
/// VD = VC + VD, of integers.
pub(super) const fn add_integer(vc: u32, vd: u32) -> u32 {
    Sfpiadd::build().vc(vc).vd(vd).mod1(KEEP_FLAGS).word()
}
/// VD = VC - VD, of integers.
pub(super) const fn sub_integer(vc: u32, vd: u32) -> u32 {
    Sfpiadd::build().vc(vc).vd(vd).mod1(KEEP_FLAGS | SUBTRACT).word()
}
/// VD = VC + a number, of integers.
pub(super) const fn add_integer_number(vc: u32, number: i32, vd: u32) -> u32 {
    Sfpiadd::build().imm12(number).vc(vc).vd(vd).mod1(KEEP_FLAGS | IMMEDIATE).word()
}
/// VD = VC + a number, of integers; only the lanes where it is negative go on.
pub(super) const fn add_and_if_negative(vc: u32, number: i32, vd: u32) -> u32 {
    Sfpiadd::build().imm12(number).vc(vc).vd(vd).mod1(IMMEDIATE).word()
}
/// VD = the exponent of VC.
pub(super) const fn exponent(vc: u32, vd: u32) -> u32 {
    Sfpexexp::build().vc(vc).vd(vd).word()
}
/// VD = the exponent of VC; only the lanes where it is negative go on.
pub(super) const fn exponent_and_if_negative(vc: u32, vd: u32) -> u32 {
    Sfpexexp::build().vc(vc).vd(vd).mod1(FLAGS).word()
}
/// VD = the mantissa of VC, an integer of 24 bits.
pub(super) const fn mantissa(vc: u32, vd: u32) -> u32 {
    Sfpexman::build().vc(vc).vd(vd).word()
}
/// VD = VC with the exponent `value`, biased.
pub(super) const fn set_exponent(vc: u32, value: u32, vd: u32) -> u32 {
    Sfpsetexp::build().imm8(value).vc(vc).vd(vd).mod1(1).word()
}
/// VD = VC without its sign.
pub(super) const fn magnitude(vc: u32, vd: u32) -> u32 {
    Sfpsetsgn::build().vc(vc).vd(vd).mod1(1).word()
}
/// VD = VC with the sign of VD.
pub(super) const fn keep_sign(vc: u32, vd: u32) -> u32 {
    Sfpsetsgn::build().vc(vc).vd(vd).word()
}
/// An approximation of 1 / VC.
pub(super) const fn approximate_reciprocal(vc: u32, vd: u32) -> u32 {
    Sfparecip::build().vc(vc).vd(vd).word()
}
/// VD = VC, an integer with sign and magnitude, as f32.
pub(super) const fn to_float(vc: u32, vd: u32) -> u32 {
    Sfpcast::build().vc(vc).vd(vd).mod1(TO_FLOAT).word()
}
/// VD = VC, from two's complement to sign and magnitude, or back.
pub(super) const fn sign_magnitude(vc: u32, vd: u32) -> u32 {
    Sfpcast::build().vc(vc).vd(vd).mod1(SIGN_MAGNITUDE).word()
}
/// Only the lanes where VC has a sign go on.
pub(super) const fn if_negative(vc: u32) -> u32 {
    Sfpsetcc::build().vc(vc).mod1(NEGATIVE).word()
}
/// Only the lanes where VC has no sign go on.
pub(super) const fn if_not_negative(vc: u32) -> u32 {
    Sfpsetcc::build().vc(vc).mod1(NOT_NEGATIVE).word()
}
/// Only the lanes where all bits of VC are zero go on.
pub(super) const fn if_zero(vc: u32) -> u32 {
    Sfpsetcc::build().vc(vc).mod1(IS_ZERO).word()
}
/// Only the lanes where a bit of VC is not zero go on.
pub(super) const fn if_not_zero(vc: u32) -> u32 {
    Sfpsetcc::build().vc(vc).mod1(NOT_ZERO).word()
}
/// Only the lanes where `a` > `b` go on; -0 is less than 0.
pub(super) const fn if_greater(a: u32, b: u32) -> u32 {
    Sfpgt::build().vd(a).vc(b).mod1(TO_FLAGS).word()
}
/// Only the lanes where `a` <= `b` go on; -0 is less than 0.
pub(super) const fn if_at_most(a: u32, b: u32) -> u32 {
    Sfple::build().vd(a).vc(b).mod1(TO_FLAGS).word()
}
/// All lanes go on.
pub(super) const END_IF: u32 = Sfpencc::build().imm2(ON).mod1(SET_BOTH).word();
/// Modes of all lanes.
pub(super) const fn lane_config(modes: u32) -> u32 {
    Sfpconfig::build().vd(LANE_CONFIG).imm16(modes).mod1(IMMEDIATE_VALUE).word()
}
/// `SFPSWAP` also exchanges the registers that are four further (SFPCONFIG.md).
pub(super) const ENABLE_DEST_INDEX: u32 = 1 << 2;
/// The register of minus one gets its value.
pub(super) const SET_MINUS_ONE: u32 = Sfpconfig::build().vd(MINUS_ONE).mod1(1).word();

/// Sets register `vd`.
#[inline(always)]
pub(super) fn constant(vd: u32, bits: u32) {
    push(low_half(vd, bits));
    push(high_half(vd, bits));
}
/// Sets one of the registers 12 to 14, by way of register 0.
#[inline(never)]
pub(super) fn kept_constant(vd: u32, bits: u32) {
    constant(0, bits);
    push(Sfpconfig::build().vd(vd).word());
}
