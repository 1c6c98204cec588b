//! Piecewise linear functions.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/{SFPLUT,SFPLUTFP32}.md.

use super::fma::fma_lanes;
use super::regs::Regs;
use super::{LANES, LReg, Lanes, SIGN, Vector, blend};
use crate::Bug;
use tilework_abi::tensix::insn::{Sfplut, Sfplutfp32};

/// `SGN_RETAIN` of both instructions: the result has the sign of `LReg[3]`.
const KEEP_SIGN: u32 = 4;
/// `INDIRECT_VD` of both.
const INDIRECT_VD: u32 = 8;
/// `SFPLUTFP32_MOD1_FP16_6ENTRY_TABLE1`: coefficients of 16 bits.
const HALVES: u32 = 2;
/// `SFPLUTFP32_MOD1_FP16_6ENTRY_TABLE2`: the last split is at 4.
const SPLIT_AT_4: u32 = 3;
/// `SFPLUTFP32_MOD1_FP16_3ENTRY_TABLE`.
const THREE_ENTRIES: u32 = 10;
/// Bits of 0.5, 1.0, 1.5, 2.0, 3.0 and 4.0; magnitudes compare as their bits do.
const F0_5: u32 = 0x3F00_0000;
const F1: u32 = 0x3F80_0000;
const F1_5: u32 = 0x3FC0_0000;
const F2: u32 = 0x4000_0000;
const F3: u32 = 0x4040_0000;
const F4: u32 = 0x4080_0000;

/// `Lut8ToFp32`: a sign, three bits of a negative exponent, four of the mantissa; 0xFF is zero.
fn from_8_bits(x: u32) -> u32 {
    let x = x & 0xFF;
    if x == 0xFF { 0 } else { (x >> 7) << 31 | (127 - (x >> 4 & 7)) << 23 | (x & 0xF) << 19 }
}

/// `Lut16ToFp32`: FP16 without denormals, and with zeros where FP16 has infinities and NaNs.
fn from_16_bits(x: u32) -> u32 {
    let exponent = x >> 10 & 0x1F;
    let exponent = if exponent == 0x1F { 0 } else { exponent + 112 };
    (x >> 15 & 1) << 31 | exponent << 23 | (x & 0x3FF) << 13
}

/// Which of three entries is for the magnitude `b`.
fn entry(b: u32) -> usize {
    usize::from(b >= F1) + usize::from(b >= F2)
}

impl Vector {
    pub(super) fn lut(&mut self, insn: Sfplut, r: Regs, lanes: Lanes) {
        self.evaluate(r, insn.mod0(), lanes, |lregs, lane, b| {
            let both = lregs[entry(b)][lane];
            (from_8_bits(both >> 8), from_8_bits(both))
        });
    }

    pub(super) fn lut_fp32(&mut self, insn: Sfplutfp32, r: Regs, lanes: Lanes) {
        let mode = insn.mod1();
        if mode & HALVES == 0 {
            self.evaluate(r, mode, lanes, |lregs, lane, b| (lregs[entry(b)][lane], lregs[4 + entry(b)][lane]));
        } else if mode & THREE_ENTRIES == THREE_ENTRIES {
            let target = if self.bugs.has(Bug::LutTarget) { mode } else { mode & !INDIRECT_VD };
            self.evaluate(r, target, lanes, |lregs, lane, b| {
                let both = lregs[entry(b)][lane];
                (from_16_bits(both >> 16), from_16_bits(both))
            });
        } else {
            let last = if mode & SPLIT_AT_4 == SPLIT_AT_4 { F4 } else { F3 };
            self.evaluate(r, mode, lanes, |lregs, lane, b| {
                let split = [F0_5, F1_5, last][entry(b)];
                let by = if b < split { 0 } else { 16 };
                (from_16_bits(lregs[entry(b)][lane] >> by), from_16_bits(lregs[4 + entry(b)][lane] >> by))
            });
        }
    }

    /// `VD = a * |LReg[3]| + c`, where `coefficients` gives `a` and `c` of a lane for a magnitude.
    fn evaluate(&mut self, r: Regs, mode: u32, lanes: Lanes, coefficients: impl Fn(&[LReg], usize, u32) -> (u32, u32)) {
        let x = self.lregs[3];
        let b = x.map(|x| x & !SIGN);
        let (mut a, mut c) = ([0; LANES], [0; LANES]);
        for lane in 0..LANES {
            (a[lane], c[lane]) = coefficients(&self.lregs, lane, b[lane]);
        }
        let mut d = fma_lanes(&a, &b, &c);
        if mode & KEEP_SIGN != 0 {
            d = std::array::from_fn(|lane| blend(d[lane], x[lane], SIGN));
        }
        self.write_indirect(r.d, mode & INDIRECT_VD != 0, &d, lanes.enabled);
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, lane_values};
    use super::*;

    #[test]
    fn coefficients_of_8_bits() {
        // The page's table: 0b000 is 1 to 1.9375, 0b111 ends at 2^-7, and 0xFF is zero.
        let value = |x: u32| f32::from_bits(from_8_bits(x));
        assert_eq!((value(0), value(0x0F), value(0x80), value(0x1F)), (1.0, 1.9375, -1.0, 0.968_75));
        assert_eq!(
            (value(0x70), value(0x7F), value(0xFE), value(0xFF)),
            (0.007_812_5, 0.015_136_719, -0.014_648_437_5, 0.0)
        );
        for x in 0..0xFF {
            let exact = (1.0 + (x & 15) as f32 / 16.0) * (0.5f32).powi((x >> 4 & 7) as i32);
            assert_eq!(value(x), if x & 0x80 != 0 { -exact } else { exact });
        }
    }

    #[test]
    fn coefficients_of_16_bits() {
        for x in 0..=u32::from(u16::MAX) {
            let (sign, exponent, mantissa) = (x >> 15, x >> 10 & 31, x & 0x3FF);
            let exact = match exponent {
                31 => mantissa as f32 * 2f32.powi(-136) * 0.0,
                _ => (1.0 + mantissa as f32 / 1024.0) * 2f32.powi(exponent as i32 - 15),
            };
            let got = f32::from_bits(from_16_bits(x));
            let expected = if sign != 0 { -exact } else { exact };
            // With exponent 31 the mantissa stays, as a denormal, which arithmetic takes for zero.
            assert!(got == expected || exponent == 31 && got.abs() < f32::MIN_POSITIVE, "{x:#x}");
        }
    }

    /// x, and which entry (of `LReg[0..3]`) and which half is used for it.
    fn used(mode: u32, x: f32) -> f32 {
        let mut b = Bench::default();
        // a = 0; c names the entry: 10, 11, 12 in FP32; low halves 1, 2, 3, high halves 4, 5, 6.
        let half = |x: u32| x << 10;
        let both = |i: u32| half(15 + i) | half(18 + i) << 16;
        (0..3).for_each(|i| b.set(i, [0x7C00_7C00; LANES]));
        if mode & HALVES == 0 {
            (0..3).for_each(|i| b.set(i, [0; LANES]));
            (0..3).for_each(|i| b.set(4 + i, [(10.0 + i as f32).to_bits(); LANES]));
        } else {
            (0..3).for_each(|i| b.set(4 + i, [both(i as u32); LANES]));
        }
        b.set(3, lane_values(&[x.to_bits()]));
        b.run(&[Sfplutfp32::build().vd(7).mod1(mode).word()]);
        f32::from_bits(b.lreg(7)[0])
    }

    #[test]
    fn ranges_choose_their_entry() {
        assert_eq!([0.5, 0.999, 1.0, 1.999, 2.0, 100.0].map(|x| used(0, x)), [10.0, 10.0, 11.0, 11.0, 12.0, 12.0]);
        let edges = [0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, -0.25, -1.5];
        assert_eq!(edges.map(|x| used(2, x)), [1.0, 8.0, 2.0, 16.0, 4.0, 32.0, 32.0, 1.0, 16.0]);
        assert_eq!(edges.map(|x| used(3, x)), [1.0, 8.0, 2.0, 16.0, 4.0, 4.0, 32.0, 1.0, 16.0]);
        assert_eq!((used(4, -0.5), used(4, 1.0)), (-10.0, 11.0), "the sign of the operand");
    }

    #[test]
    fn three_entries_write_where_lreg_7_says() {
        let mut b = Bench::default();
        // 1.5 * x + 0.25 in FP16.
        b.set(0, [0x3E00_3400; LANES]);
        b.set(3, [(-0.5f32).to_bits(); LANES]);
        b.set(7, [5; LANES]);
        b.run(&[Sfplutfp32::build().vd(6).mod1(10).word()]);
        assert_eq!((f32::from_bits(b.lreg(5)[0]), b.lreg(6)[0]), (1.0, 0));
        b.v.set_bugs(crate::Bugs::AS_CHIP.without(Bug::LutTarget));
        b.set(5, [0; LANES]);
        b.run(&[Sfplutfp32::build().vd(6).mod1(10).word()]);
        assert_eq!((b.lreg(5)[0], f32::from_bits(b.lreg(6)[0])), (0, 1.0), "without the bug");
        // SFPLUT: 1.5 * x + 1.25, with the sign.
        b.set(0, [0x0804; LANES]);
        b.run(&[Sfplut::build().vd(6).mod0(4).word()]);
        assert_eq!(f32::from_bits(b.lreg(6)[0]), -2.0);
    }
}
