//! Approximate reciprocal and exponential.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/SFPARECIP.md, whose tables these are.

use super::regs::Regs;
use super::{Lanes, SIGN, Vector};
use tilework_abi::tensix::insn::Sfparecip;

/// `SFPARECIP_MOD1_RECIP`.
const RECIPROCAL: u32 = 0;
/// `SFPARECIP_MOD1_COND_RECIP`: the reciprocal of the magnitude where VB is negative.
const WHERE_NEGATIVE: u32 = 1;
const INFINITY: u32 = 0x7F80_0000;
/// The smallest normal number.
const MIN_NORMAL: u32 = 0x0080_0000;
/// From here on a reciprocal is zero: 2^126.
const RECIPROCAL_ZERO: u32 = 0x7E80_0000;
/// Up to here an exponential has one mantissa: 2^-6.
const EXP_TABLE: u32 = 0x3C80_0000;
/// From here on an exponential is at least 2: 0.6953125.
const EXP_2: u32 = 0x3F32_0000;
/// From here on an exponential is of no use: 2.
const EXP_END: u32 = 0x4000_0000;

/// The reciprocal's mantissa, by the high seven bits of the operand's.
#[rustfmt::skip]
const RECIPROCALS: [u8; 128] = [
    127, 125, 123, 121, 119, 117, 116, 114, 112, 110, 109, 107, 105, 104, 102, 100, 99, 97, 96, 94, 93, 91, 90, 88,
    87, 85, 84, 83, 81, 80, 79, 77, 76, 75, 74, 72, 71, 70, 69, 68, 66, 65, 64, 63, 62, 61, 60, 59, 58, 57, 56, 55,
    54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41, 40, 40, 39, 38, 37, 36, 35, 35, 34, 33, 32, 31, 31, 30,
    29, 28, 28, 27, 26, 25, 25, 24, 23, 23, 22, 21, 21, 20, 19, 19, 18, 17, 17, 16, 15, 15, 14, 14, 13, 12, 12, 11,
    11, 10, 9, 9, 8, 8, 7, 7, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0,
];

/// The high bits of the exponential's mantissa, by the high half of the operand, counted from that
/// of [`EXP_TABLE`]. An eighth bit belongs to the exponent.
#[rustfmt::skip]
const EXPONENTIALS: [u8; 896] = [
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2,
    2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
    3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3,
    3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4,
    4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 5, 6, 6,
    6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8, 8,
    8, 8, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 10, 11, 11,
    11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 11, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12, 12,
    13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 13, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14, 14,
    15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 15, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16,
    16, 17, 17, 17, 17, 17, 17, 17, 18, 18, 18, 18, 18, 18, 18, 19, 19, 19, 19, 19, 19, 19, 20, 20, 20, 20, 20, 20,
    20, 21, 21, 21, 21, 21, 21, 21, 22, 22, 22, 22, 22, 22, 22, 23, 23, 23, 23, 23, 23, 24, 24, 24, 24, 24, 24, 24,
    25, 25, 25, 25, 25, 25, 25, 26, 26, 26, 26, 26, 26, 27, 27, 27, 27, 27, 27, 27, 28, 28, 28, 28, 28, 28, 28, 29,
    29, 29, 29, 29, 29, 30, 30, 30, 30, 30, 30, 30, 31, 31, 31, 31, 31, 31, 32, 32, 32, 32, 32, 32, 33, 33, 33, 33,
    33, 33, 33, 34, 34, 34, 34, 34, 34, 35, 35, 35, 35, 35, 35, 36, 36, 36, 36, 36, 37, 37, 37, 38, 38, 38, 39, 39,
    39, 40, 40, 40, 41, 41, 41, 42, 42, 42, 43, 43, 43, 44, 44, 44, 45, 45, 45, 46, 46, 46, 47, 47, 47, 48, 48, 49,
    49, 49, 50, 50, 50, 51, 51, 51, 52, 52, 52, 53, 53, 53, 54, 54, 54, 55, 55, 56, 56, 56, 57, 57, 57, 58, 58, 58,
    59, 59, 60, 60, 60, 61, 61, 61, 62, 62, 63, 63, 63, 64, 64, 64, 65, 65, 66, 66, 66, 67, 67, 67, 68, 68, 69, 69,
    69, 70, 70, 71, 71, 71, 72, 72, 72, 73, 73, 74, 74, 74, 75, 75, 76, 76, 76, 77, 77, 78, 78, 78, 79, 79, 80, 80,
    80, 81, 81, 82, 82, 83, 83, 84, 85, 86, 87, 88, 88, 89, 90, 91, 92, 93, 94, 94, 95, 96, 97, 98, 99, 100, 101, 101,
    102, 103, 104, 105, 106, 107, 108, 109, 110, 111, 112, 113, 113, 114, 115, 116, 117, 118, 119, 120, 121, 122, 123,
    124, 125, 126, 127, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14,
    15, 15, 16, 16, 17, 17, 18, 19, 19, 20, 20, 21, 21, 22, 23, 23, 24, 24, 25, 26, 26, 27, 27, 28, 29, 29, 30, 31,
    31, 32, 32, 33, 34, 34, 35, 36, 36, 37, 38, 38, 39, 39, 40, 41, 41, 42, 43, 43, 44, 45, 45, 47, 48, 50, 51, 52,
    54, 55, 57, 58, 60, 61, 63, 64, 66, 67, 69, 70, 72, 73, 75, 76, 78, 80, 81, 83, 85, 86, 88, 90, 91, 93, 95, 97,
    98, 100, 102, 104, 106, 107, 109, 111, 113, 115, 117, 119, 121, 123, 125, 127, 128, 129, 130, 131, 132, 133, 134,
    135, 136, 137, 139, 140, 141, 142, 143, 144, 145, 146, 147, 149, 150, 151, 152, 153, 155, 156, 157, 158, 159, 161,
    162, 163, 165, 166, 167, 168, 170, 171, 172, 174, 175, 177, 178, 179, 181, 182, 184, 185, 187, 188, 189, 191, 192,
    194, 196, 197, 199, 200, 202, 203, 205, 207, 208, 210, 211, 213, 215, 216, 218, 220, 222, 223, 225, 227, 229, 230,
    232, 234,
];

/// `ApproxRecip` of a positive number.
fn reciprocal(x: u32) -> u32 {
    match x {
        0..MIN_NORMAL => INFINITY,
        MIN_NORMAL..RECIPROCAL_ZERO => {
            (253 - (x >> 23)) << 23 | u32::from(RECIPROCALS[(x >> 16 & 0x7F) as usize]) << 16
        }
        _ => 0,
    }
}

/// `ApproxExp` of a positive number.
fn exponential(x: u32) -> u32 {
    let high = || u32::from(EXPONENTIALS[((x - EXP_TABLE) >> 16) as usize]) << 16;
    match x {
        0..MIN_NORMAL => 0x3F80_0000,
        MIN_NORMAL..EXP_TABLE => 0x3F81_0000 | x & 0xFFFF,
        EXP_TABLE..EXP_2 => 0x3F80_0000 | high() | x & 0xFFFF,
        EXP_2..EXP_END => 0x4000_0000 | high() | x & 0xFFFF,
        _ => 0x4080_0000 | x & 0xFFFF,
    }
}

impl Vector {
    pub(super) fn approximate(&mut self, insn: Sfparecip, r: Regs, lanes: Lanes) {
        match insn.mod1() {
            RECIPROCAL => self.unary(r, lanes, |c| c & SIGN | reciprocal(c & !SIGN)),
            WHERE_NEGATIVE => self.binary(r, lanes, |b, c| if b & SIGN != 0 { reciprocal(c & !SIGN) } else { c }),
            _ => self.unary(r, lanes, |c| c & SIGN | exponential(c & !SIGN)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, lane_values};
    use super::*;

    #[test]
    fn reciprocals_are_within_the_documented_bounds() {
        for high in MIN_NORMAL >> 16..RECIPROCAL_ZERO >> 16 {
            for low in [0, 0x8000, 0xFFFF] {
                let x = f64::from(f32::from_bits(high << 16 | low));
                let got = f64::from(f32::from_bits(reciprocal(high << 16 | low)));
                assert!(0.9944 / x < got && got < 1.0054 / x, "1 / {x} = {got}");
            }
        }
        assert_eq!(reciprocal(0x3F80_0000), 0.996_093_75f32.to_bits());
        assert_eq!([0, MIN_NORMAL - 1, RECIPROCAL_ZERO, INFINITY].map(reciprocal), [INFINITY, INFINITY, 0, 0]);
    }

    #[test]
    fn exponentials_are_within_the_documented_bounds() {
        for high in 0..EXP_END >> 16 {
            for low in [0, 0x8000, 0xFFFF] {
                let x = f64::from(f32::from_bits(high << 16 | low));
                let got = f64::from(f32::from_bits(exponential(high << 16 | low)));
                assert!(0.9922 * x.exp() < got && got < 1.016 * x.exp(), "e^{x} = {got}");
            }
        }
        assert_eq!(exponential(0x3F80_0000), 2.703_125f32.to_bits());
        assert_eq!(exponential(EXP_END | 0x1_2345), 0x4080_2345);
    }

    #[test]
    fn the_three_modes_treat_signs_differently() {
        let after = |mode: u32| {
            let mut b = Bench::default();
            b.set(0, lane_values(&[0x4000_0000, 0xC000_0000, 0xC000_0000]));
            b.set(1, lane_values(&[SIGN, SIGN, 0]));
            b.run(&[Sfparecip::build().vb(1).vc(0).vd(2).mod1(mode).word()]);
            b.lreg(2)[..3].to_vec()
        };
        assert_eq!(after(0), [0x3EFF_0000, 0xBEFF_0000, 0xBEFF_0000]);
        assert_eq!(after(1), [0x3EFF_0000, 0x3EFF_0000, 0xC000_0000]);
        assert_eq!((after(2), after(7)), (vec![0x4080_0000, 0xC080_0000, 0xC080_0000], after(2)));
    }
}
