//! Integer arithmetic, shifts and moves.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/{SFPSHFT,SFPLZ,SFPMUL24}.md and, shared with
//! Wormhole, SFPIADD.md and SFPMOV.md.

use super::regs::Regs;
use super::{COLUMNS, LANES, Lanes, SIGN, Vector, WRITABLE, lanes_where};
use tilework_abi::tensix::insn::{Sfpiadd, Sfplz, Sfpmov, Sfpmul24, Sfpshft};

/// `SFPIADD_MOD1_ARG_IMM`.
const ADD_IMMEDIATE: u32 = 1;
/// `SFPIADD_MOD1_ARG_2SCOMP_LREG_DST`.
const SUBTRACT: u32 = 2;
/// `SFPIADD_MOD1_CC_NONE`.
const KEEP_FLAGS: u32 = 4;
/// `SFPIADD_MOD1_CC_GTE0`.
const INVERT_FLAGS: u32 = 8;
/// `SFPSHFT_MOD1_ARG_IMM`.
const SHIFT_IMMEDIATE: u32 = 1;
/// `SFPSHFT_MOD1_ARITHMETIC`.
const ARITHMETIC: u32 = 2;
/// `SFPSHFT_MOD1_ARG_IMM_USE_VC`.
const SHIFT_VC: u32 = 4;
/// `SFPLZ_MOD1_CC_NE0`.
const FLAGS_NOT_ZERO: u32 = 2;
/// `SFPLZ_MOD1_NOSGN_MASK`.
const WITHOUT_SIGN: u32 = 4;
/// `SFPLZ_MOD1_CC_COMP`.
const FLAGS_COMPLEMENT: u32 = 8;
/// `SFPMOV_MOD1_NEGATE`.
const NEGATE: u32 = 1;
/// `SFPMOV_MOD1_ALL_LANES_ENABLED`.
const ALL_LANES: u32 = 2;
/// `SFPMOV_MOD1_FROM_SPECIAL`.
const FROM_SPECIAL: u32 = 8;
/// `VC` of a move from the random numbers.
const RANDOM: usize = 9;
/// `VC` of a move from `LaneConfig`.
const LANE_CONFIG: usize = 15;
/// `SFPMUL24_MOD1_UPPER`.
const UPPER: u32 = 1;
/// `SFPMUL24_MOD1_INDIRECT_VA`.
const INDIRECT_VA: u32 = 4;
/// `SFPMUL24_MOD1_INDIRECT_VD`.
const INDIRECT_VD: u32 = 8;
/// What `SFPMUL24` multiplies.
const BITS_23: u32 = 0x7F_FFFF;

/// Shifts left, or right by a negative amount; `arithmetic`: with the sign.
#[inline]
pub(super) fn shift(x: u32, by: u32, arithmetic: bool) -> u32 {
    if by & SIGN == 0 {
        x << (by & 31)
    } else {
        let by = by.wrapping_neg() & 31;
        if arithmetic { (x.cast_signed() >> by).cast_unsigned() } else { x >> by }
    }
}

/// What the floating-point datapath makes of the product `p` if VC is not zero (`Mul24ShiftAdd`).
fn shift_and_add(p: u32, c: u32) -> u32 {
    const PRODUCT_EXPONENT: u32 = 129;
    let exponent = c >> 23 & 0xFF;
    if exponent == 0 {
        return p;
    }
    let greater = exponent.max(PRODUCT_EXPONENT);
    let by = (greater - exponent) & 31;
    let addend = (c & BITS_23 | 1 << 23) << 3;
    let p = p >> ((greater - PRODUCT_EXPONENT) & 31);
    let shifted = addend >> by;
    if shifted == 0 {
        return p;
    }
    let lost = (shifted << by) ^ addend;
    p.wrapping_add(shifted).wrapping_add(u32::from(lost > 0xFFFF) << 16) & BITS_23
}

impl Vector {
    pub(super) fn add_integer(&mut self, insn: Sfpiadd, r: Regs, lanes: Lanes) {
        let (mode, imm) = (insn.mod1(), insn.imm12().cast_unsigned());
        let (b, c) = (&self.lregs[r.b], &self.lregs[r.c]);
        let mut out = [0; LANES];
        for lane in 0..LANES {
            out[lane] = if mode & ADD_IMMEDIATE != 0 {
                c[lane].wrapping_add(imm)
            } else if mode & SUBTRACT != 0 {
                c[lane].wrapping_sub(b[lane])
            } else {
                c[lane].wrapping_add(b[lane])
            };
        }
        self.write(r.d, &out, lanes.enabled);
        if r.d < WRITABLE {
            let mut flags = self.flags;
            if mode & KEEP_FLAGS == 0 {
                flags = lanes_where(|lane| out[lane] & SIGN != 0);
            }
            if mode & INVERT_FLAGS != 0 {
                flags = !flags;
            }
            self.put_flags(flags, lanes.enabled);
        }
    }

    pub(super) fn shift(&mut self, insn: Sfpshft, r: Regs, lanes: Lanes) {
        // Modes that are reserved do what others do: "current silicon behavior".
        let mode = match insn.mod1() {
            mode @ (4 | 6) => mode & !SHIFT_VC,
            mode => mode & 7,
        };
        let imm = insn.imm12().cast_unsigned();
        let arithmetic = mode & ARITHMETIC != 0;
        if mode & SHIFT_IMMEDIATE == 0 {
            self.binary(r, lanes, |b, c| shift(b, c, arithmetic));
        } else if mode & SHIFT_VC != 0 {
            self.unary(r, lanes, |c| shift(c, imm, arithmetic));
        } else {
            self.binary(r, lanes, |b, _| shift(b, imm, arithmetic));
        }
    }

    pub(super) fn leading_zeros(&mut self, insn: Sfplz, r: Regs, lanes: Lanes) {
        let mode = insn.mod1();
        let mask = if mode & WITHOUT_SIGN != 0 { !SIGN } else { u32::MAX };
        let c = self.lregs[r.c];
        self.unary(r, lanes, |c| (c & mask).leading_zeros());
        if r.d < WRITABLE {
            let mut flags = self.flags;
            if mode & FLAGS_NOT_ZERO != 0 {
                flags = lanes_where(|lane| c[lane] & mask != 0);
            }
            if mode & FLAGS_COMPLEMENT != 0 {
                flags = !flags;
            }
            self.put_flags(flags, lanes.enabled);
        }
    }

    pub(super) fn move_lreg(&mut self, insn: Sfpmov, r: Regs, lanes: Lanes) {
        let mode = insn.mod1();
        let lanes = if mode == ALL_LANES { Lanes { enabled: lanes.all, ..lanes } } else { lanes };
        if mode & FROM_SPECIAL != 0 {
            let values = match r.c {
                slot @ 0..=8 => self.by_lane(&self.macro_config[slot]),
                RANDOM => self.random(lanes.enabled),
                LANE_CONFIG => self.by_lane(&self.lane_config),
                _ => [0; LANES],
            };
            self.write(r.d, &values, lanes.enabled);
        } else if mode & NEGATE != 0 {
            self.unary(r, lanes, |c| c ^ SIGN);
        } else {
            self.unary(r, lanes, |c| c);
        }
    }

    /// A value for each column, in each row.
    fn by_lane(&self, columns: &[u32; COLUMNS]) -> [u32; LANES] {
        std::array::from_fn(|lane| columns[lane % COLUMNS])
    }

    pub(super) fn multiply_24(&mut self, insn: Sfpmul24, r: Regs, lanes: Lanes) {
        let mode = insn.mod1();
        let a = self.operand_a(r.a, mode & INDIRECT_VA != 0);
        let (b, c) = (&self.lregs[r.b], &self.lregs[r.c]);
        let mut out = [0; LANES];
        for lane in 0..LANES {
            let product = u64::from(a[lane] & BITS_23) * u64::from(b[lane] & BITS_23);
            let product = if mode & UPPER != 0 { product >> 23 } else { product };
            out[lane] = product as u32 & BITS_23;
        }
        for lane in 0..LANES {
            if c[lane] != 0 {
                out[lane] = shift_and_add(out[lane], c[lane]);
            }
        }
        self.write_indirect(r.d, mode & INDIRECT_VD != 0, &out, lanes.enabled);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, lane_values};
    use super::*;
    use tilework_abi::tensix::insn::{Sfpand, Sfpconfig, Sfpnot, Sfpor, Sfpxor};

    #[test]
    fn additions_set_the_flags_unless_told_not_to() {
        let mut b = Bench::default();
        b.set(0, lane_values(&[1, 0, 0xFFFF_FFFF, 0x8000_0000]));
        b.set(1, lane_values(&[2, 0, 5, 1]));
        // VD = VC - VD.
        b.run(&[Sfpiadd::build().vc(0).vd(1).mod1(2).word()]);
        assert_eq!(b.lreg(1)[..4], [0xFFFF_FFFF, 0, 0xFFFF_FFFA, 0x7FFF_FFFF]);
        assert_eq!(b.flags() & 0xF, 0b0101);
        b.run(&[Sfpiadd::build().imm12(-3).vc(0).vd(2).mod1(5).word()]);
        assert_eq!((b.lreg(2)[0], b.flags() & 0xF), (0xFFFF_FFFE, 0b0101), "flags are kept");
        b.run(&[Sfpiadd::build().vc(0).vd(2).mod1(8).word()]);
        assert_eq!((b.lreg(2)[0], b.flags() & 0xF), (0xFFFF_FFFF, 0), "all are negative");
        b.run(&[Sfpiadd::build().vc(9).vd(9).mod1(8).word()]);
        assert_eq!(b.flags() & 0xF, 0, "no register, no flags");
        b.run(&[Sfpiadd::build().vc(9).vd(3).mod1(8).word()]);
        assert_eq!(b.flags() & 0xF, 0xF);
    }

    #[test]
    fn shifts_in_every_mode() {
        let after = |amount: i32, mode: u32| {
            let mut b = Bench::default();
            b.set(0, [amount.cast_unsigned(); LANES]);
            b.set(1, [0x8000_00F0; LANES]);
            b.run(&[Sfpshft::build().vc(0).vd(1).imm12(amount).mod1(mode).word()]);
            b.lreg(1)[17]
        };
        for mode in [0, 1, 4, 8, 9] {
            assert_eq!(after(4, mode), 0x0000_0F00, "{mode}");
            assert_eq!(after(-4, mode), 0x0800_000F, "{mode}");
            assert_eq!(after(-32, mode), 0x8000_00F0, "{mode}: five bits count");
        }
        for mode in [2, 3, 6, 10] {
            assert_eq!(after(-4, mode), 0xF800_000F, "{mode}");
            assert_eq!(after(4, mode), 0x0000_0F00, "{mode}");
        }
        // VC shifted by the immediate.
        assert_eq!((after(8, 5), after(-8, 5), after(-8, 7)), (0x800, 0x00FF_FFFF, 0xFFFF_FFFF));
    }

    #[test]
    fn bitwise_operations_and_leading_zeros() {
        let mut b = Bench::default();
        b.set(0, [0xF0F0_00FF; LANES]);
        b.set(1, [0x0FF0_0F0F; LANES]);
        b.set(2, [0xFFFF_0000; LANES]);
        b.run(&[Sfpand::build().vb(0).vc(1).vd(3).mod1(1).word(), Sfpor::build().vb(0).vc(1).vd(4).mod1(1).word()]);
        b.run(&[Sfpand::build().vb(0).vc(1).vd(2).word(), Sfpnot::build().vc(0).vd(5).word()]);
        b.run(&[Sfpxor::build().vc(0).vd(1).word(), Sfpor::build().vb(3).vc(0).vd(2).word()]);
        assert_eq!((b.lreg(3)[0], b.lreg(4)[1], b.lreg(5)[2]), (0x00F0_000F, 0xFFF0_0FFF, 0x0F0F_FF00));
        assert_eq!((b.lreg(1)[3], b.lreg(2)[4]), (0xFF00_0FF0, 0xFFF0_00FF));
        b.set(0, lane_values(&[0, 1, 0x8000_0000, 0x0010_0000]));
        b.run(&[Sfplz::build().vc(0).vd(1).mod1(2).word()]);
        assert_eq!((b.lreg(1)[..4].to_vec(), b.flags() & 0xF), (vec![32, 31, 0, 11], 0b1110));
        b.run(&[Sfplz::build().vc(0).vd(1).mod1(2 | 4 | 8).word()]);
        assert_eq!((b.lreg(1)[..4].to_vec(), b.flags() & 0xF), (vec![32, 31, 32, 11], 0b0101));
    }

    #[test]
    fn moves_negate_ignore_flags_and_read_configuration() {
        let mut b = Bench::default();
        b.set(0, [0x3F80_0000; LANES]);
        b.run(&[Sfpmov::build().vc(0).vd(1).mod1(1).word(), Sfpconfig::build().imm16(0x1010).vd(15).mod1(1).word()]);
        assert_eq!(b.lreg(1), [0xBF80_0000; LANES]);
        // The first row is masked now.
        b.run(&[Sfpmov::build().vc(9).vd(1).word()]);
        assert_eq!((b.lreg(1)[7], b.lreg(1)[8]), (0xBF80_0000, 0));
        b.run(&[Sfpmov::build().vc(0).vd(1).mod1(2).word(), Sfpmov::build().vc(15).vd(2).mod1(8).word()]);
        assert_eq!((b.lreg(1)[7], b.lreg(2)[8]), (0x3F80_0000, 0x1010));
        b.run(&[Sfpmov::build().vc(15).vd(3).word()]);
        assert_eq!((b.lreg(3)[8], b.lreg(3)[31]), (16, 62), "the lanes' numbers, doubled");
    }

    #[test]
    fn products_of_23_bits() {
        let after = |a: u32, b: u32, c: u32, mode: u32| {
            let mut bench = Bench::default();
            bench.set(0, [a; LANES]);
            bench.set(1, [b; LANES]);
            bench.set(2, [c; LANES]);
            bench.run(&[Sfpmul24::build().va(0).vb(1).vc(2).vd(3).mod1(mode).word()]);
            bench.lreg(3)[4]
        };
        assert_eq!(after(0xFFFF_FFFF, 0xFFFF_FFFF, 0, 0), 1);
        assert_eq!(after(0xFFFF_FFFF, 0xFFFF_FFFF, 0, 1), 0x7F_FFFE);
        assert_eq!(after(0x0012_3456, 0x0065_4321, 0, 0), (0x0012_3456u64 * 0x0065_4321) as u32 & BITS_23);
        // VC of 1.0: its mantissa, three bits up and two down again, is added.
        assert_eq!(after(3, 5, 0x3F80_0000, 0), (15 + (1 << 24)) & BITS_23);
        assert_eq!(after(3, 5, 0x3F80_0004, 0), (15 + 8) & BITS_23);
    }
}
