//! Sign, exponent and mantissa of FP32: taken apart, put together.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/SFPABS.md and, shared with Wormhole,
//! {SFPDIVP2,SFPEXEXP,SFPEXMAN,SFPSETEXP,SFPSETMAN,SFPSETSGN}.md.

use super::regs::Regs;
use super::{Lanes, SIGN, Vector, WRITABLE, lanes_where};
use tilework_abi::tensix::insn::{Sfpabs, Sfpdivp2, Sfpexexp, Sfpexman, Sfpsetexp, Sfpsetman, Sfpsetsgn};

const EXPONENT: u32 = 0xFF << 23;
const MANTISSA: u32 = 0x7F_FFFF;
/// The operand is the immediate (`MOD1_ARG_IMM` of the `SFPSET` instructions).
const IMMEDIATE: u32 = 1;
/// `SFPSETEXP_MOD1_ARG_EXPONENT`: the exponent of VB, not its low bits.
const FROM_EXPONENT: u32 = 2;
/// `SFPDIVP2_MOD1_ADD`.
const ADD: u32 = 1;
/// `SFPEXEXP_MOD1_NODEBIAS`.
const BIASED: u32 = 1;
/// `SFPEXEXP_MOD1_SET_CC_SGN_EXP`.
const FLAGS_SIGN: u32 = 2;
/// `SFPEXEXP_MOD1_SET_CC_COMP_EXP`.
const FLAGS_COMPLEMENT: u32 = 8;
/// `SFPEXMAN_MOD1_PAD9`: without the implicit bit.
const WITHOUT_HIDDEN: u32 = 1;
/// `SFPABS_MOD1_FLOAT`.
const FLOAT: u32 = 1;

/// `x` with its exponent replaced by the low eight bits of `exponent`.
#[inline]
fn with_exponent(x: u32, exponent: u32) -> u32 {
    x & !EXPONENT | (exponent & 0xFF) << 23
}

impl Vector {
    pub(super) fn div_p2(&mut self, insn: Sfpdivp2, r: Regs, lanes: Lanes) {
        let imm = insn.imm8();
        if insn.mod1() & ADD == 0 {
            self.unary(r, lanes, |c| with_exponent(c, imm));
        } else {
            self.unary(r, lanes, |c| if c & EXPONENT == EXPONENT { c } else { with_exponent(c, (c >> 23) + imm) });
        }
    }

    pub(super) fn extract_exponent(&mut self, insn: Sfpexexp, r: Regs, lanes: Lanes) {
        let mode = insn.mod1();
        let bias = if mode & BIASED != 0 { 0 } else { 127 };
        let c = self.lregs[r.c];
        self.unary(r, lanes, |c| (c >> 23 & 0xFF).wrapping_sub(bias));
        if r.d < WRITABLE {
            let mut flags = self.flags;
            if mode & FLAGS_SIGN != 0 {
                flags = lanes_where(|lane| (c[lane] >> 23 & 0xFF) < bias);
            }
            if mode & FLAGS_COMPLEMENT != 0 {
                flags = !flags;
            }
            self.put_flags(flags, lanes.enabled);
        }
    }

    pub(super) fn extract_mantissa(&mut self, insn: Sfpexman, r: Regs, lanes: Lanes) {
        let hidden = if insn.mod1() & WITHOUT_HIDDEN != 0 { 0 } else { 1 << 23 };
        self.unary(r, lanes, |c| c & MANTISSA | hidden);
    }

    pub(super) fn set_exponent(&mut self, insn: Sfpsetexp, r: Regs, lanes: Lanes) {
        let (mode, imm) = (insn.mod1(), insn.imm8());
        if mode & IMMEDIATE != 0 {
            self.unary(r, lanes, |c| with_exponent(c, imm));
        } else if mode & FROM_EXPONENT != 0 {
            self.binary(r, lanes, |b, c| with_exponent(c, b >> 23));
        } else {
            self.binary(r, lanes, |b, c| with_exponent(c, b));
        }
    }

    pub(super) fn set_mantissa(&mut self, insn: Sfpsetman, r: Regs, lanes: Lanes) {
        let imm = insn.imm12() << 11;
        if insn.mod1() & IMMEDIATE != 0 {
            self.unary(r, lanes, |c| c & !MANTISSA | imm);
        } else {
            self.binary(r, lanes, |b, c| c & !MANTISSA | b & MANTISSA);
        }
    }

    pub(super) fn set_sign(&mut self, insn: Sfpsetsgn, r: Regs, lanes: Lanes) {
        let sign = insn.imm1() << 31;
        if insn.mod1() & IMMEDIATE != 0 {
            self.unary(r, lanes, |c| c & !SIGN | sign);
        } else {
            self.binary(r, lanes, |b, c| c & !SIGN | b & SIGN);
        }
    }

    pub(super) fn absolute(&mut self, insn: Sfpabs, r: Regs, lanes: Lanes) {
        if insn.mod1() & FLOAT != 0 {
            // A negative NaN stays.
            self.unary(r, lanes, |c| if c > SIGN | EXPONENT { c } else { c & !SIGN });
        } else {
            self.unary(r, lanes, |c| if c & SIGN != 0 { c.wrapping_neg() } else { c });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::LANES;
    use super::super::tests::{Bench, lane_values};
    use super::*;

    #[test]
    fn exponents_are_added_set_and_extracted() {
        let mut b = Bench::default();
        b.set(0, lane_values(&[0x3F80_0000, 0xC000_0001, 0x7F80_0000, 0xFFC0_0000, 0x0000_0001, 0x7F7F_FFFF]));
        b.run(&[Sfpdivp2::build().imm8(0xFF).vc(0).vd(1).mod1(1).word()]);
        assert_eq!(b.lreg(1)[..6], [0x3F00_0000, 0xBF80_0001, 0x7F80_0000, 0xFFC0_0000, 0x7F80_0001, 0x7EFF_FFFF]);
        b.run(&[Sfpdivp2::build().imm8(0x80).vc(0).vd(1).word()]);
        assert_eq!(b.lreg(1)[..3], [0x4000_0000, 0xC000_0001, 0x4000_0000]);
        b.run(&[Sfpexexp::build().vc(0).vd(2).word(), Sfpexexp::build().vc(0).vd(3).mod1(1).word()]);
        assert_eq!(b.lreg(2)[..5], [0, 1, 128, 128, 0u32.wrapping_sub(127)]);
        assert_eq!(b.lreg(3)[..5], [127, 128, 255, 255, 0]);
        // Flags: exponent negative, then the complement.
        b.run(&[Sfpexexp::build().vc(0).vd(2).mod1(2).word()]);
        assert_eq!(b.flags() & 0x3F, 0b01_0000);
        b.run(&[Sfpexexp::build().vc(0).vd(2).mod1(10).word()]);
        assert_eq!(b.flags() & 0x3F, 0b10_1111);
        b.run(&[Sfpexexp::build().vc(0).vd(2).mod1(8).word()]);
        assert_eq!(b.flags() & 0x3F, 0b01_0000, "what the flags were, inverted");
    }

    #[test]
    fn fields_come_from_vb_or_the_immediate() {
        let mut b = Bench::default();
        b.set(0, [0xC123_4567; LANES]);
        b.set(1, [0x3FAB_CDEF; LANES]);
        let after = |word: u32| {
            let mut b = Bench::default();
            b.set(0, [0xC123_4567; LANES]);
            b.set(1, [0x3FAB_CDEF; LANES]);
            b.run(&[word]);
            b.lreg(1)[9]
        };
        assert_eq!(after(Sfpsetexp::build().imm8(0x7F).vc(0).vd(1).mod1(1).word()), 0xBFA3_4567);
        assert_eq!(after(Sfpsetexp::build().vc(0).vd(1).mod1(2).word()), 0xBFA3_4567);
        assert_eq!(after(Sfpsetexp::build().vc(0).vd(1).word()), 0xF7A3_4567);
        assert_eq!(after(Sfpsetman::build().imm12(0x800).vc(0).vd(1).mod1(1).word()), 0xC140_0000);
        assert_eq!(after(Sfpsetman::build().vc(0).vd(1).word()), 0xC12B_CDEF);
        assert_eq!(after(Sfpsetsgn::build().imm1(0).vc(0).vd(1).mod1(1).word()), 0x4123_4567);
        assert_eq!(after(Sfpsetsgn::build().vc(0).vd(1).word()), 0x4123_4567);
        assert_eq!(after(Sfpexman::build().vc(0).vd(1).word()), 0x00A3_4567);
        assert_eq!(after(Sfpexman::build().vc(0).vd(1).mod1(1).word()), 0x0023_4567);
    }

    #[test]
    fn absolute_values_of_floats_and_integers() {
        let mut b = Bench::default();
        b.set(0, lane_values(&[0x8000_0000, 0xFFFF_FFFF, 5, 0xBF80_0000, 0xFF80_0000, 0xFF80_0001]));
        b.run(&[Sfpabs::build().vc(0).vd(1).word(), Sfpabs::build().vc(0).vd(2).mod1(1).word()]);
        assert_eq!(b.lreg(1)[..4], [0x8000_0000, 1, 5, 0x4080_0000]);
        assert_eq!(b.lreg(2)[..6], [0, 0xFFFF_FFFF, 5, 0x3F80_0000, 0x7F80_0000, 0xFF80_0001]);
    }
}
