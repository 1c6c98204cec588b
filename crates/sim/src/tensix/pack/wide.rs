//! Whole rows of FP32 that pass both conversions with nothing in between, at once.
//!
//! The same as the stages do one after the other, in one loop over a row, which the compiler
//! vectorises: most kernels that add up in FP32 pack so.

use super::convert::{Early, Late, TO_BF16, TO_TF32, round};
use super::plan::Layout;
use crate::tensix::dst::{COLUMNS, Row32};
use crate::tensix::number::fp32_of_dst;
use multiversion::multiversion;

/// What becomes of a row.
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

impl Wide {
    /// Both conversions, if they are of these.
    pub(super) fn of(early: Early, late: Late, layout: Layout) -> Option<Self> {
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

    /// Packs a row of Dst into `out`: the largest exponent between the conversions, and how many
    /// bytes.
    #[inline]
    pub(super) fn pack(self, row: &Row32, out: &mut [u8]) -> (u8, usize) {
        pack(self, row, out)
    }
}

#[multiversion(targets("x86_64+avx512f+avx512bw", "x86_64+avx2"))]
fn pack(wide: Wide, row: &Row32, out: &mut [u8]) -> (u8, usize) {
    match wide.rounds {
        Rounds::Nothing => rounded(wide.to, row, out, |x| x),
        Rounds::ToTf32 => rounded(wide.to, row, out, round::<TO_TF32>),
        Rounds::ToBf16 => rounded(wide.to, row, out, round::<TO_BF16>),
        Rounds::CutToBf16 => rounded(wide.to, row, out, |x| x & 0xFFFF_0000),
    }
}

#[inline(always)]
fn rounded(to: To, row: &Row32, out: &mut [u8], early: impl Fn(u32) -> u32) -> (u8, usize) {
    let mut rounded = [0; COLUMNS];
    let mut largest = 0;
    for (to, x) in rounded.iter_mut().zip(row) {
        *to = early(fp32_of_dst(*x));
        largest = largest.max(*to & EXPONENT);
    }
    let bytes = match to {
        To::Fp32 => store(&rounded, out, u32::to_le_bytes),
        To::Bf16 => store(&rounded, out, |x| ((x >> 16) as u16).to_le_bytes()),
        To::FlushedBf16 => store(&rounded, out, |x| {
            let kept = if x & EXPONENT == 0 { 1 << 31 } else { u32::MAX };
            (((x & kept) >> 16) as u16).to_le_bytes()
        }),
    };
    ((largest >> 23) as u8, bytes)
}

/// The exponent of FP32.
const EXPONENT: u32 = 0x7F80_0000;

#[inline(always)]
fn store<const N: usize>(row: &Row32, out: &mut [u8], late: impl Fn(u32) -> [u8; N]) -> usize {
    let (out, _) = out.as_chunks_mut::<N>();
    for (to, x) in out.iter_mut().zip(row) {
        *to = late(*x);
    }
    N * COLUMNS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensix::config::Config;
    use crate::tensix::dst::{Dst, RowMap};
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

    proptest! {
        #[test]
        fn a_row_is_what_the_stages_make_of_it(row in prop::collection::vec(datum(), COLUMNS)) {
            let row: Row32 = row.try_into().expect("a row");
            let (mut dst, map) = (Dst::default(), RowMap::of(&Config::default()));
            dst.write32(map, 5, row);
            for early in EARLY {
                for (late, bits) in LATE {
                    let read = early.read(&dst, map, 5);
                    let largest = read.iter().map(|&x| Kind::Wide.exponent(x)).max();
                    let mut expected = [0; 4 * COLUMNS];
                    let bytes = convert::store(&late.convert(read), COLUMNS, bits, &mut expected);
                    let mut packed = [0; 4 * COLUMNS];
                    let wide = Wide::of(early, late, Layout::Plain { bits }).expect("one of these");
                    let done = wide.pack(&dst.read32(map, 5), &mut packed);
                    prop_assert_eq!((Some(u32::from(done.0)), done.1, packed), (largest, bytes, expected));
                }
            }
        }
    }
}
