//! Matrix products into rows of BF16 in Dst, all in numbers of f32.
//!
//! What the result is says `sum.rs`; the numbers of ordinary programs allow a shorter way to it:
//! sums that are multiples of a common place and have less than 24 bits are exact in f32. As in
//! `factors.rs`, the groups and what Dst holds are added to `1.5 * 2^23` of the last place, which
//! rounds each of them.

// Loops over columns of several arrays vectorise only with a counter.
#![expect(clippy::needless_range_loop)]

use super::factors::{
    Factors, Multipliers, QUAD, Sums, add_nothing, are_tame, distances, is_outside, mul_add, nearest,
    operands_of_round, quarters, sums,
};
use super::sum::{BIAS, POINT};
use crate::tensix::dst::{COLUMNS, Row16, each};
use crate::tensix::number::{bf16_of_dst, dst_of_bf16};
use multiversion::multiversion;
use multiversion::target::target_cfg_f;

/// Largest exponents of a sum, with their bias, between which f32 has `1.5 * 2^23` of the last
/// place of the sum, and all that its scale cannot hold rounds to zero, as do the sums of what
/// counts as nothing.
pub(super) const SUMMABLE: [u8; 2] = [40, 227];

/// Adds the products of SrcA and the first rows of SrcB to rows of Dst, four or eight. `false`: they
/// are left as they are because numbers of f32 do not suffice.
///
/// Rows are a slice, and the loop over them has another end, so that it stays a loop of columns side
/// by side: otherwise it is compiled to code that takes columns across rows.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2+fma"))]
pub(super) fn multiply_bf16(a: &Factors, b: &Multipliers, less: i32, dst: &mut [Row16]) -> bool {
    match (target_cfg_f!(target_feature = "avx512f"), target_cfg_f!(target_feature = "fma")) {
        (true, _) => multiply::<true, true>(a, b, less, dst),
        (_, true) => multiply::<true, false>(a, b, less, dst),
        _ => multiply::<false, false>(a, b, less, dst),
    }
}

/// Four rows: the exponents of a quarter of the last places of both groups, and the largest
/// exponents of the sums, with their bias.
#[derive(Clone, Copy)]
pub(super) struct Places {
    pub(super) quarters: [[u8; QUAD]; 2],
    pub(super) largest: [u8; QUAD],
}

#[inline(always)]
pub(super) fn multiply<const FMA: bool, const FIT: bool>(
    a: &Factors,
    b: &Multipliers,
    less: i32,
    dst: &mut [Row16],
) -> bool {
    if add_nothing(a, b, less, dst, dst) {
        return true;
    }
    let mut places = NO_PLACES;
    let fit = find_places::<FIT>((a, b), less, dst, &mut places);
    if !are_tame(a, b) || !fit {
        return false;
    }
    // The exponent of a group's last place in Dst less that in f32.
    let scale = f32::from_bits((BIAS - POINT - less).cast_unsigned() << 23);
    for (row, dst) in dst.iter_mut().enumerate() {
        let Some(places) = places.get(row / 4) else { break };
        let (a, b) = operands_of_round::<FIT>((a, b));
        let first = with_quarter(&sums::<FMA, 0>(a, b, row, &places.quarters[0]));
        let second = with_quarter(&sums::<FMA, 1>(a, b, row, &places.quarters[1]));
        let largest = &places.largest.as_chunks().0[row % 4];
        add::<FMA>((&first, &second), scale, largest, dst);
    }
    true
}

/// Those of eight rows, before they are found.
pub(super) const NO_PLACES: [Places; 2] = [Places { quarters: [[0; QUAD]; 2], largest: [0; QUAD] }; 2];

/// Finds the places of rows of BF16, or of the high halves of rows of FP32, four at a time. They
/// are large, so they are written where they stay. `false`: f32 does not suffice.
#[inline(always)]
pub(super) fn find_places<const FIT: bool>(
    (a, b): (&Factors, &Multipliers),
    less: i32,
    dst: &[Row16],
    places: &mut [Places; 2],
) -> bool {
    let mut outside = [0; QUAD];
    let nearest = nearest(less);
    for (quad, (dst, places)) in dst.as_chunks::<4>().0.iter().zip(places).enumerate() {
        let (a, b) = operands_of_round::<FIT>((a, b));
        let (first, second) = (distances::<0>(a, b, quad), distances::<1>(a, b, quad));
        let mut old = [0; QUAD];
        for (old, row) in old.as_chunks_mut().0.iter_mut().zip(dst) {
            let old: &mut [u8; COLUMNS] = old;
            for j in 0..COLUMNS {
                old[j] = row[j] as u8;
            }
        }
        for i in 0..QUAD {
            let largest = nearest.saturating_sub(first[i].min(second[i])).max(old[i]);
            // Where there is nothing to add up, any will do.
            places.largest[i] = largest.max(SUMMABLE[0]);
            let unfit = (largest > SUMMABLE[1]) | (largest < SUMMABLE[0]) & (largest != 0);
            outside[i] |= u8::from(is_outside(first[i]) | is_outside(second[i]) | unfit);
        }
        places.quarters = [quarters(&first), quarters(&second)];
    }
    outside == [0; QUAD]
}

/// The sum of a group, a little larger, so that ties round up; the excess is less than half of the
/// sum's last place. A sum of nothing stays below half of every last place of Dst.
#[inline(always)]
fn with_quarter(of: &Sums) -> [f32; COLUMNS] {
    let mut sums = [0.0; COLUMNS];
    for j in 0..COLUMNS {
        sums[j] = of.sums[j] - of.magic[j] + of.quarter[j];
    }
    sums
}

/// Adds two groups, times `scale`, to columns of Dst; `largest`: exponents of the sums.
#[inline(always)]
fn add<const FMA: bool>(
    (first, second): (&[f32; COLUMNS], &[f32; COLUMNS]),
    scale: f32,
    largest: &[u8; COLUMNS],
    dst: &mut Row16,
) {
    // In loops of their own, conversions between Dst's layout and BF16 take half as many vectors.
    let old = each(*dst, bf16_of_dst);
    let mut sums = [0; COLUMNS];
    for j in 0..COLUMNS {
        let magic = (u32::from(largest[j]) << 23) + (((23 - POINT) as u32) << 23 | 0x40_0000);
        let magic = f32::from_bits(magic);
        // What has no exponent lies below all places of the sum, as zero does.
        let old = f32::from_bits(u32::from(old[j]) << 16);
        // Ties away from zero: the excess is less than what lies between a number and the next tie.
        let sum = mul_add::<FMA>(old, 1.0 + 1.0 / 8192.0, magic);
        let sum = mul_add::<FMA>(second[j], scale, mul_add::<FMA>(first[j], scale, sum)) - magic;
        // To the bits of BF16, ties away from zero.
        sums[j] = sum.to_bits().wrapping_add(0x8000);
    }
    *dst = each(each(sums, |sum| (sum >> 16) as u16), dst_of_bf16);
}
