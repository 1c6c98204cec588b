//! Whole rows that pass both conversions with nothing in between, all rows of a `PACR` at once.
//!
//! The same as the stages do one after the other, in one loop over all data, which the compiler
//! vectorises: most kernels pack so.

use super::convert::{Early, Late, TO_BF16, TO_TF32, round};
use super::input::{INTERFACES, Input};
use super::plan::Layout;
use crate::tensix::dst::{COLUMNS, Dst, Row16, RowMap};
use crate::tensix::number::{bf16_of_dst, fp32_of_dst};
use multiversion::multiversion;

/// What becomes of rows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whole {
    /// BF16 stays BF16, without denormals, NaN and minus zero.
    Bf16,
    /// FP32.
    Wide(Wide),
}

/// What becomes of rows of FP32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Wide {
    rounds: Rounds,
    to: To,
}

/// The early conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rounds {
    Nothing,
    ToTf32,
    ToBf16,
    CutToBf16,
}

/// The late conversion.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum To {
    Fp32,
    /// With or without denormals.
    Bf16,
    FlushedBf16,
}

impl Whole {
    /// Both conversions, if they are of these. `by_chance`: FP32 is rounded by chance.
    pub(super) fn of(early: Early, late: Late, layout: Layout, by_chance: bool) -> Option<Self> {
        if (early, late, layout) == (Early::Bf16Rounded, Late::High { flush: false }, Layout::Plain { bits: 16 }) {
            return Some(Self::Bf16);
        }
        if by_chance { None } else { Wide::of(early, late, layout).map(Self::Wide) }
    }

    /// Packs the rows that are read into `out`: the largest exponent between the conversions, and
    /// how many bytes. `None`: a row is not read, and nothing is done.
    #[inline]
    pub(super) fn pack(self, dst: &Dst, map: RowMap, input: &Input, out: &mut [u8]) -> Option<(u8, usize)> {
        let mut copy = [[[0; COLUMNS]; INTERFACES]; 2];
        let data = &mut copy;
        match self {
            Self::Bf16 => {
                let rows = match input.four().and_then(|first| dst.narrow_quad(map, first)) {
                    Some(rows) => rows,
                    None => read(input, data, |row| [dst.read16(map, row), [0; COLUMNS]])?[0],
                };
                Some(pack_bf16(&rows.as_flattened()[..input.count * COLUMNS], out))
            }
            Self::Wide(wide) => {
                let halves = match input.four().and_then(|first| dst.wide_quad(map, first)) {
                    Some(halves) => halves,
                    None => read(input, data, |row| dst.read_halves(map, row))?,
                };
                Some(pack_wide(wide, halves.map(|rows| &rows.as_flattened()[..input.count * COLUMNS]), out))
            }
        }
    }
}

impl Input {
    /// The first of four rows side by side, which begin at a multiple of four.
    #[inline(always)]
    fn four(&self) -> Option<usize> {
        let first = self.rows[0].filter(|first| first.is_multiple_of(INTERFACES) && self.count == INTERFACES)?;
        (self.rows == std::array::from_fn(|i| Some(first + i))).then_some(first)
    }
}

/// The high and low halves of rows.
type Halves = [[Row16; INTERFACES]; 2];

/// All rows of `input`, of which none is missing, into `data`.
#[inline(always)]
fn read<'a>(
    input: &Input,
    data: &'a mut Halves,
    halves: impl Fn(usize) -> [Row16; 2],
) -> Option<[&'a [Row16; INTERFACES]; 2]> {
    for (i, from) in input.rows[..input.count].iter().enumerate() {
        [data[0][i], data[1][i]] = halves((*from)?);
    }
    Some(data.each_ref())
}

impl Wide {
    /// Both conversions, if they are of these.
    fn of(early: Early, late: Late, layout: Layout) -> Option<Self> {
        let rounds = match early {
            Early::Bits32 => Rounds::Nothing,
            Early::Tf32Of32 => Rounds::ToTf32,
            Early::Bf16Of32 => Rounds::ToBf16,
            Early::Bf16Cut32 => Rounds::CutToBf16,
            _ => return None,
        };
        let to = match (late, layout) {
            (Late::Keep, Layout::Plain { bits: 32 }) => To::Fp32,
            (Late::High { flush: false }, Layout::Plain { bits: 16 }) => To::Bf16,
            (Late::High { flush: true }, Layout::Plain { bits: 16 }) => To::FlushedBf16,
            _ => return None,
        };
        Some(Self { rounds, to })
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw", "x86_64+avx2"))]
fn pack_bf16(data: &[u16], out: &mut [u8]) -> (u8, usize) {
    let mut largest = 0;
    for (to, x) in out.as_chunks_mut().0.iter_mut().zip(data) {
        let x = bf16_of_dst(*x);
        let magnitude = (x & 0x7FFF).min(0x7F80);
        let kept = if magnitude < 0x80 { 0 } else { x & 0x8000 | magnitude };
        largest = largest.max(kept & 0x7F80);
        *to = kept.to_le_bytes();
    }
    ((largest >> 7) as u8, size_of_val(data))
}

#[multiversion(targets("x86_64+avx512f+avx512bw", "x86_64+avx2"))]
fn pack_wide(wide: Wide, data: [&[u16]; 2], out: &mut [u8]) -> (u8, usize) {
    match wide.rounds {
        Rounds::Nothing => rounded(wide.to, data, out, |x| x),
        Rounds::ToTf32 => rounded(wide.to, data, out, round::<TO_TF32>),
        Rounds::ToBf16 => rounded(wide.to, data, out, round::<TO_BF16>),
        Rounds::CutToBf16 => rounded(wide.to, data, out, |x| x & 0xFFFF_0000),
    }
}

#[inline(always)]
fn rounded(to: To, data: [&[u16]; 2], out: &mut [u8], early: impl Fn(u32) -> u32) -> (u8, usize) {
    let (largest, bytes) = match to {
        To::Fp32 => store(data, out, early, u32::to_le_bytes),
        To::Bf16 => store(data, out, early, |x| ((x >> 16) as u16).to_le_bytes()),
        To::FlushedBf16 => store(data, out, early, |x| {
            let kept = if x & EXPONENT == 0 { 1 << 31 } else { u32::MAX };
            (((x & kept) >> 16) as u16).to_le_bytes()
        }),
    };
    ((largest >> 23) as u8, bytes)
}

/// The exponent of FP32.
const EXPONENT: u32 = 0x7F80_0000;

/// The largest exponent, where it is in FP32, and how many bytes.
#[inline(always)]
fn store<const N: usize>(
    [high, low]: [&[u16]; 2],
    out: &mut [u8],
    early: impl Fn(u32) -> u32,
    late: impl Fn(u32) -> [u8; N],
) -> (u32, usize) {
    let mut largest = 0;
    for ((to, high), low) in out.as_chunks_mut().0.iter_mut().zip(high).zip(low) {
        let x = early(fp32_of_dst(u32::from(*high) << 16 | u32::from(*low)));
        largest = largest.max(x & EXPONENT);
        *to = late(x);
    }
    (largest, N * high.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensix::config::Config;
    use crate::tensix::pack::convert::{self, Kind};
    use proptest::prelude::*;

    const EARLY: [Early; 4] = [Early::Bits32, Early::Tf32Of32, Early::Bf16Of32, Early::Bf16Cut32];
    const LATE: [(Late, u32); 3] =
        [(Late::Keep, 32), (Late::High { flush: false }, 16), (Late::High { flush: true }, 16)];

    fn datum() -> impl Strategy<Value = u32> {
        prop_oneof![
            any::<u32>(),
            (0u32..4, 0u32..16, any::<bool>()).prop_map(|(e, low, top)| {
                let exponent = [0, 1, 254, 255][e as usize];
                exponent << 23 | if top { 0x7F_FFFF - low } else { low << 13 }
            })
        ]
    }

    const BYTES: usize = 4 * COLUMNS * INTERFACES;

    /// What the stages make of rows from 4 on, and what is made of them at once.
    fn both(dst: &Dst, how: (Early, Late, u32), count: usize) -> [(u32, usize, [u8; BYTES]); 2] {
        both_of((dst, 4), how, count)
    }

    fn both_of(
        (dst, first): (&Dst, usize),
        (early, late, bits): (Early, Late, u32),
        count: usize,
    ) -> [(u32, usize, [u8; BYTES]); 2] {
        let map = RowMap::of(&Config::default());
        let rows = std::array::from_fn(|i| Some(first + i));
        let input = Input { rows, count, column: 0, width: COLUMNS, is_strided: false };
        let mut stages = (0, 0, [0; BYTES]);
        for row in first..first + count {
            let read = early.read(dst, map, row);
            stages.0 = read.iter().map(|&x| Kind::Wide.exponent(x)).fold(stages.0, u32::max);
            stages.1 += convert::store(&late.convert(read), COLUMNS, bits, &mut stages.2[stages.1..]);
        }
        let whole = Whole::of(early, late, Layout::Plain { bits }, false).expect("one of these");
        let mut out = [0; BYTES];
        let (largest, bytes) = whole.pack(dst, map, &input, &mut out).expect("all rows are read");
        [stages, (largest.into(), bytes, out)]
    }

    proptest! {
        #[test]
        fn rows_are_what_the_stages_make_of_them(
            rows in prop::array::uniform4(prop::collection::vec(datum(), COLUMNS)), count in 1..=INTERFACES
        ) {
            let (mut dst, map) = (Dst::default(), RowMap::of(&Config::default()));
            for (row, data) in rows.into_iter().enumerate() {
                dst.write32(map, 4 + row, data.try_into().expect("a row"));
            }
            for early in EARLY {
                for (late, bits) in LATE {
                    let [stages, whole] = both(&dst, (early, late, bits), count);
                    prop_assert_eq!(stages, whole);
                }
            }
            let [stages, whole] = both(&dst, (Early::Bf16Rounded, Late::High { flush: false }, 16), count);
            prop_assert_eq!(stages, whole);
        }
    }

    #[test]
    fn rows_of_bf16_are_what_the_stages_make_of_them() {
        let map = RowMap::of(&Config::default());
        for first in (0..=u16::MAX).step_by(COLUMNS * INTERFACES) {
            let mut dst = Dst::default();
            for row in 0..INTERFACES {
                dst.write16(map, 4 + row, std::array::from_fn(|j| first + (row * COLUMNS + j) as u16));
            }
            let [stages, whole] = both(&dst, (Early::Bf16Rounded, Late::High { flush: false }, 16), INTERFACES);
            assert_eq!(stages, whole, "from {first:#x} on");
        }
    }

    /// Rows that are taken one by one: those across a multiple of four, and cleared ones.
    #[test]
    fn rows_need_not_be_four_side_by_side() {
        let (mut dst, map) = (Dst::default(), RowMap::of(&Config::default()));
        for row in 0..16 {
            dst.write32(map, row, std::array::from_fn(|j| ((16 * row + j) as u32).wrapping_mul(0x9E37_79B1)));
        }
        dst.clear(map.row32(9));
        for first in 0..12 {
            for (late, bits) in LATE {
                let [stages, whole] = both_of((&dst, first), (Early::Bits32, late, bits), INTERFACES);
                assert_eq!(stages, whole, "from row {first} on");
            }
            let bf16 = (Early::Bf16Rounded, Late::High { flush: false }, 16);
            let [stages, whole] = both_of((&dst, first), bf16, INTERFACES);
            assert_eq!(stages, whole, "from row {first} on");
        }
        // Four rows of which one comes twice.
        let input = Input { rows: [0, 1, 1, 3].map(Some), count: 4, column: 0, width: COLUMNS, is_strided: true };
        let mut out = [0; BYTES];
        Whole::Bf16.pack(&dst, map, &input, &mut out).expect("all rows are read");
        assert_eq!(out[32..64], out[64..96]);
        assert_ne!(out[64..96], out[96..128]);
    }

    #[test]
    fn rows_that_are_not_read_are_left_to_the_stages() {
        let (dst, map) = (Dst::default(), RowMap::of(&Config::default()));
        let input = Input { rows: [Some(0), None, None, None], count: 2, column: 0, width: COLUMNS, is_strided: false };
        assert_eq!(Whole::Bf16.pack(&dst, map, &input, &mut [0; BYTES]), None);
    }
}
