//! Floating-point multiplication and addition.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/{SFPMAD,SFPADD,SFPMUL,SFPADDI,SFPMULI}.md.

use super::fma::fma_signed;
use super::regs::Regs;
use super::{LANES, LReg, Lanes, ONE, SIGN, Vector};
use tilework_abi::tensix::insn::{Sfpaddi, Sfpmuli};

/// `SFPMAD_MOD1_NEGATE_VA`.
const NEGATE_VA: u32 = 1;
/// `SFPMAD_MOD1_NEGATE_VC`.
const NEGATE_VC: u32 = 2;
/// `SFPMAD_MOD1_INDIRECT_VA`.
const INDIRECT_VA: u32 = 4;
/// `SFPMAD_MOD1_INDIRECT_VD`.
const INDIRECT_VD: u32 = 8;

/// What changes signs, if asked for.
#[inline]
fn sign(negate: bool) -> u32 {
    if negate { SIGN } else { 0 }
}

impl Vector {
    /// `LReg[VA]`, or in each lane that of the registers which the low bits of `LReg[7]` name.
    pub(super) fn operand_a(&self, a: usize, indirect: bool) -> LReg {
        if !indirect {
            return self.lregs[a];
        }
        std::array::from_fn(|lane| self.lregs[self.lregs[7][lane] as usize & 15][lane])
    }

    /// `SFPMAD`, `SFPADD` and `SFPMUL`, which differ in what their operands should be.
    pub(super) fn mad(&mut self, r: Regs, mode: u32, lanes: Lanes) {
        let indirect: LReg;
        let a = if mode & INDIRECT_VA == 0 {
            &self.lregs[r.a]
        } else {
            indirect = self.operand_a(r.a, true);
            &indirect
        };
        let c = (&self.lregs[r.c], sign(mode & NEGATE_VC != 0));
        let d = fma_signed((a, sign(mode & NEGATE_VA != 0)), &self.lregs[r.b], c);
        self.write_indirect(r.d, mode & INDIRECT_VD != 0, &d, lanes.enabled);
    }

    pub(super) fn add_immediate(&mut self, insn: Sfpaddi, r: Regs, lanes: Lanes) {
        let mode = insn.mod1();
        let c = (&self.lregs[r.c], sign(mode & NEGATE_VC != 0));
        let d = fma_signed((&[insn.imm16() << 16; LANES], 0), &[ONE; LANES], c);
        self.write_indirect(r.d, mode & INDIRECT_VD != 0, &d, lanes.enabled);
    }

    pub(super) fn multiply_immediate(&mut self, insn: Sfpmuli, r: Regs, lanes: Lanes) {
        let mode = insn.mod1();
        let c = (&self.lregs[r.c], sign(mode & NEGATE_VC != 0));
        let d = fma_signed(c, &[insn.imm16() << 16; LANES], (&[0; LANES], 0));
        self.write_indirect(r.d, mode & INDIRECT_VD != 0, &d, lanes.enabled);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, lane_values};
    use super::*;
    use tilework_abi::tensix::insn::{Sfpadd, Sfpmad, Sfpmul, Sfpnop};

    fn floats(values: &[f32]) -> LReg {
        lane_values(&values.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
    }

    #[test]
    fn signs_are_changed_before_the_operation() {
        let mut b = Bench::default();
        b.set(0, floats(&[2.0, -3.0]));
        b.set(1, floats(&[5.0, 7.0]));
        b.set(2, floats(&[1.0, 1.0]));
        let results = [0, 1, 2, 3].map(|mode| {
            b.run(&[Sfpmad::build().va(0).vb(1).vc(2).vd(3).mod1(mode).word()]);
            [0, 1].map(|lane| f32::from_bits(b.lreg(3)[lane]))
        });
        assert_eq!(results, [[11.0, -20.0], [-9.0, 22.0], [9.0, -22.0], [-11.0, 20.0]]);
        b.run(&[Sfpadd::build().va(10).vb(0).vc(1).vd(3).mod1(2).word(), Sfpnop::build().word()]);
        assert_eq!(f32::from_bits(b.lreg(3)[0]), -3.0);
        b.set(0, floats(&[-0.0]));
        b.run(&[
            Sfpmul::build().va(0).vb(10).vc(9).vd(3).word(),
            Sfpmul::build().va(0).vb(10).vc(9).vd(4).mod1(2).word(),
        ]);
        assert_eq!((b.lreg(3)[0], b.lreg(4)[0]), (0, SIGN), "-0 + 0 is 0, -0 - 0 is -0");
    }

    #[test]
    fn immediates_are_bf16() {
        let mut b = Bench::default();
        b.set(0, floats(&[2.0, -0.0]));
        b.set(1, floats(&[2.0, -0.0]));
        b.run(&[Sfpaddi::build().imm16(0x3FC0).vd(0).word(), Sfpmuli::build().imm16(0x3FC0).vd(1).mod1(2).word()]);
        assert_eq!([0, 1].map(|lane| f32::from_bits(b.lreg(0)[lane])), [3.5, 1.5]);
        assert_eq!((f32::from_bits(b.lreg(1)[0]), b.lreg(1)[1]), (-3.0, 0));
    }

    #[test]
    fn registers_can_be_named_lane_by_lane() {
        let mut b = Bench::default();
        (0..4).for_each(|i| b.set(i, [((i + 2) as f32).to_bits(); LANES]));
        b.set(7, std::array::from_fn(|lane| (lane % 4) as u32));
        b.run(&[Sfpmul::build().va(9).vb(10).vc(9).vd(5).mod1(4).word()]);
        assert_eq!([0, 1, 2, 3].map(|lane| f32::from_bits(b.lreg(5)[lane])), [2.0, 3.0, 4.0, 5.0]);
        b.set(7, std::array::from_fn(|lane| if lane == 2 { 9 } else { (lane % 4) as u32 | 0xF0 }));
        b.run(&[Sfpmul::build().va(10).vb(10).vc(9).vd(5).mod1(8).word()]);
        let value = |i: usize, lane: usize| f32::from_bits(b.lreg(i)[lane]);
        assert_eq!((value(0, 0), value(0, 1), value(1, 1), value(2, 2), value(3, 31)), (1.0, 2.0, 1.0, 4.0, 1.0));
    }
}
