//! Stochastic rounding by the packer.
//!
//! Packers/FormatConversion.md describes it in the words of SFPSTOCHRND_FloatFloat.md: what is cut
//! off rounds up if it is not less than a random number, so that the magnitude grows a little too
//! often, even where nothing is cut off. So it is done here; which number meets which datum is not
//! documented (`tensix/random.rs`).

use super::convert::{Early, LARGEST_16, Row, TO_BF16, TO_E8M6, TO_TF32, flushed, flushed_16, narrow};
use crate::tensix::dst::{COLUMNS, Dst, RowMap};
use crate::tensix::number::{bf16_of_dst, fp16_of_dst, fp32_of_dst};
use crate::tensix::random::rounded;

/// Rounds an FP32 as `Early` does: NaN becomes infinity, denormals and minus zero become zero.
fn round(x: u32, drop: u32, random: u32) -> u32 {
    const INFINITY: u32 = 0x7F80_0000;
    let magnitude = x & 0x7FFF_FFFF;
    let rounded = if magnitude >= INFINITY { INFINITY } else { rounded(magnitude, drop, random) << drop };
    flushed(x & 1 << 31 | rounded)
}

/// An FP16 of six bits of mantissa. Beyond the largest exponent the largest magnitude remains.
fn round_e5m6(x: u32, random: u32) -> u32 {
    let rounded = (rounded(x & 0x7FFF, 4, random) << 4).min(LARGEST_16 & 0x7FF0);
    flushed_16(x & 0x8000 | rounded)
}

/// A 32-bit integer in sign and magnitude as eight bits.
fn integer8(x: u32, unsigned: bool, shift: u32, random: u32) -> u32 {
    let magnitude = rounded(x & 0x7FFF_FFFF, shift, random);
    match (unsigned, x >> 31 != 0) {
        (true, true) => 0,
        (true, false) => magnitude.min(0xFF),
        (false, negative) => u32::from(negative) << 7 | magnitude.min(0x7F),
    }
}

impl Early {
    /// As [`Early::read`], with a random number for each column.
    pub(super) fn read_by_chance(self, dst: &Dst, map: RowMap, row: usize, random: &Row) -> Row {
        let each = |row: Row, f: &dyn Fn(u32, u32) -> u32| -> Row {
            std::array::from_fn::<_, COLUMNS, _>(|i| f(row[i], random[i]))
        };
        let wide = || dst.read32(map, row).map(fp32_of_dst);
        match self {
            Self::Tf32Of32 => each(wide(), &|x, r| round(x, TO_TF32, r)),
            Self::Bf16Of32 => each(wide(), &|x, r| round(x, TO_BF16, r)),
            Self::E8m6Of32 => each(wide(), &|x, r| round(x, TO_E8M6, r)),
            Self::Fp16Of32 => each(wide(), &|x, r| narrow(round(x, TO_TF32, r))),
            Self::Int8 { unsigned, shift } => each(wide(), &|x, r| integer8(x, unsigned, shift, r)),
            Self::E8m6 => {
                let row = dst.read16(map, row).map(|x| u32::from(bf16_of_dst(x)) << 16);
                each(row, &|x, r| round(flushed(x), TO_E8M6, r))
            }
            Self::E5m6 => each(dst.read16(map, row).map(|x| fp16_of_dst(x).into()), &round_e5m6),
            // Nothing is cut off that could round.
            _ => self.read(dst, map, row),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensix::config::Config;
    use crate::tensix::number::{dst_of_bf16, dst_of_fp16, dst_of_fp32};

    /// Of 23 bits.
    const HALF: u32 = 1 << 22;
    const MOST: u32 = (1 << 23) - 1;

    #[test]
    fn one_half_as_the_number_is_the_nearest_with_ties_away_from_zero() {
        let (map, mut dst) = (RowMap::of(&Config::default()), Dst::default());
        let early = [
            Early::Tf32Of32,
            Early::Bf16Of32,
            Early::E8m6Of32,
            Early::Fp16Of32,
            Early::Int8 { unsigned: false, shift: 5 },
            Early::Int8 { unsigned: true, shift: 0 },
        ];
        for high in 0..0x1_0000u32 {
            let low = [0, 1, 0x0FFF, 0x1000, 0x7FFF, 0x8000, 0x8001, 0xFFFF].map(|low| high << 16 | low);
            dst.write32(map, 5, std::array::from_fn(|i| dst_of_fp32(low[i % 8])));
            for early in early {
                let (random, nearest) = (early.read_by_chance(&dst, map, 5, &[HALF; 16]), early.read(&dst, map, 5));
                // Of a denormal that rounds to a normal number only the page's order is left open.
                assert_eq!(random, nearest, "{early:?} of {high:#x}");
            }
        }
        for x in 0..=u16::MAX {
            dst.write16(map, 0, [dst_of_bf16(x); 16]);
            assert_eq!(
                Early::E8m6.read_by_chance(&dst, map, 0, &[HALF; 16]),
                Early::E8m6.read(&dst, map, 0),
                "E8M6 {x:#x}"
            );
            dst.write16(map, 0, [dst_of_fp16(x); 16]);
            assert_eq!(
                Early::E5m6.read_by_chance(&dst, map, 0, &[HALF; 16]),
                Early::E5m6.read(&dst, map, 0),
                "E5M6 {x:#x}"
            );
        }
    }

    #[test]
    fn the_number_decides_whether_a_magnitude_grows() {
        // 1 and a quarter of the last place of BF16.
        let x = 0x3F80_4000;
        for (random, expected) in [(0, 0x3F81_0000), (1 << 21, 0x3F81_0000), ((1 << 21) + 1, 0x3F80_0000)] {
            assert_eq!(round(x, TO_BF16, random), expected, "{random:#x}");
            assert_eq!(round(x | 1 << 31, TO_BF16, random), expected | 1 << 31);
        }
        // The documented bug: what needs no rounding, too; never beyond what is no number.
        assert_eq!([0, 1].map(|r| round(0x3F80_0000, TO_BF16, r)), [0x3F81_0000, 0x3F80_0000]);
        assert_eq!([0x7F80_0000, 0xFF80_0001].map(|x| round(x, TO_BF16, 0)), [0x7F80_0000, 0xFF80_0000]);
        assert_eq!([0, MOST].map(|r| round(0x7F7F_FFFF, TO_BF16, r)), [0x7F80_0000, 0x7F7F_0000]);
        assert_eq!([0x0000_0001, 0x8000_0000].map(|x| round(x, TO_BF16, 0)), [0; 2]);
        assert_eq!([0, MOST].map(|r| integer8(0x8000_0030, false, 5, r)), [0x82, 0x81]);
        assert_eq!([0, MOST].map(|r| round_e5m6(0x7FFF, r)), [0x7FF0; 2]);
    }
}
