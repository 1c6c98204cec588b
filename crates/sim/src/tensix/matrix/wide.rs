//! Matrix products into rows of FP32 in Dst, in numbers of f32 and f64.
//!
//! As in `narrow.rs`: the groups and what Dst holds are added to `1.5 * 2^52` of the last place of
//! the sum, which rounds each of them.

use super::factors::{Factors, Multipliers, add_nothing, are_tame, operands_of_round, sums};
use super::held::{Fp32, Held};
use super::narrow::{NO_PLACES, find_places};
use super::sum::{BIAS, POINT};
use crate::tensix::dst::{COLUMNS, Row16};
use multiversion::multiversion;
use multiversion::target::target_cfg_f;

/// The bias of exponents of f64.
const WIDE_BIAS: i32 = 1023;
/// Bits of f64's mantissa behind the point.
const WIDE_BITS: i32 = 52;

/// Adds the products of SrcA and the first rows of SrcB to the high and low halves of rows of Dst,
/// four or eight. `false`: they are left as they are because numbers of f64 do not suffice.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2+fma"))]
pub(super) fn multiply_fp32(a: &Factors, b: &Multipliers, less: i32, high: &mut [Row16], low: &mut [Row16]) -> bool {
    match (target_cfg_f!(target_feature = "avx512f"), target_cfg_f!(target_feature = "fma")) {
        (true, _) => multiply::<true, true>((a, b), less, high, low),
        (_, true) => multiply::<true, false>((a, b), less, high, low),
        _ => multiply::<false, false>((a, b), less, high, low),
    }
}

#[inline(always)]
pub(super) fn multiply<const FMA: bool, const FIT: bool>(
    (a, b): (&Factors, &Multipliers),
    less: i32,
    high: &mut [Row16],
    low: &mut [Row16],
) -> bool {
    if add_nothing(a, b, less, high, low) {
        return true;
    }
    let mut places = NO_PLACES;
    let fit = find_places::<FIT>((a, b), less, high, &mut places);
    if !are_tame(a, b) || !fit {
        return false;
    }
    // The exponent of a group's last place in Dst less that in f32.
    let scale = f64::from_bits(((WIDE_BIAS - POINT - less) as u64) << WIDE_BITS);
    for (row, (high, low)) in high.iter_mut().zip(low).enumerate() {
        let Some(places) = places.get(row / 4) else { break };
        let (a, b) = operands_of_round::<FIT>((a, b));
        let first = sums::<FMA, 0>(a, b, row, &places.quarters[0]);
        let second = sums::<FMA, 1>(a, b, row, &places.quarters[1]);
        let largest: &[u8; COLUMNS] = &places.largest.as_chunks().0[row % 4];
        for j in 0..COLUMNS {
            let [first, second] = [&first, &second].map(|of| f64::from(of.sums[j] - of.magic[j]) * scale);
            let old = f32::from_bits(Fp32::bits(high[j], low[j]));
            let bits = sum_of(largest[j].into(), old, [first, second]);
            (high[j], low[j]) = (Fp32::high(bits), bits as u16);
        }
    }
    true
}

/// Bits of f32 of the sum of what Dst holds and of groups, if its `largest` exponent, with the bias
/// of f32, is summable.
#[inline(always)]
pub(super) fn sum_of<const N: usize>(largest: i32, old: f32, groups: [f64; N]) -> u32 {
    // The exponent goes from that of the last place to 52 places before it, or behind.
    let place = |further: i32| (largest + WIDE_BIAS - BIAS - Fp32::PLACES + further) as u64;
    let magic = f64::from_bits(place(WIDE_BITS) << WIDE_BITS | 1 << (WIDE_BITS - 1));
    // Ties up: less than what lies between a group and the next tie, unless it rounds to zero.
    let excess = f64::from_bits(place(-30) << WIDE_BITS);
    // Ties away from zero, as in `narrow.rs`.
    let mut sum = magic + f64::from(old) * (1.0 + 1.0 / f64::from(1 << 28));
    for group in groups {
        sum += group + excess;
    }
    // A sum has less than 31 bits: the same away from its ties.
    (((sum - magic) * (1.0 + 1.0 / 4_294_967_296.0)) as f32).to_bits()
}
