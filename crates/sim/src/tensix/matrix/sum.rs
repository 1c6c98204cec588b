//! How the matrix unit adds up floating-point numbers.
//!
//! The documents call their model a rough guide (MVMUL.md). What is here was found on ttsim,
//! another simulator, by running instructions on chosen and on random data; it is not documented,
//! and within what the documents allow:
//! - Products are exact: five by seven bits, with ten bits behind the point. Terms (products, and
//!   both operands of `ELWADD` and `ELWSUB`) are added up in groups of at most eight: columns 0 to
//!   7 and 8 to 15 of a row of SrcB. Each is shifted to the largest exponent of its group, rounded
//!   there to ten bits behind the point, ties away from zero; the sum is exact. Exponents count as
//!   they are in the operands, also when the bits that a fidelity phase takes are zero, but not for
//!   operands that are zero. A group whose largest exponent is below those of Dst's format is zero,
//!   even where its sum would not be.
//! - The groups and what Dst holds are shifted to the largest exponent of these, rounded to 23 bits
//!   behind the point for Dst with 32 bits and ten for Dst with 16 bits, and added up exactly.
//!   Groups round ties up, Dst rounds ties away from zero.
//! - The result is rounded to what Dst holds, ties away from zero. Without an exponent it is zero,
//!   without a sign; too large it is infinity (FloatBitPatterns.md says that too).

// Loops over columns of several arrays vectorise only with a counter.
#![expect(clippy::needless_range_loop)]

use super::factors::{
    Factors, Multipliers, NEAREST, NOTHING, QUAD, ROWS, TERMS, are_tame, distances, is_outside, quarters, sums,
};
use super::format::{Acc, Ints, NO_EXPONENT, Numbers};
use super::held::{Bf16, Fp16, Fp32, Held, bits_of_row, put_row};
use crate::tensix::dst::{COLUMNS, Row16, Row32};
use crate::tensix::random;
use multiversion::multiversion;
use multiversion::target::target_cfg_f;

/// Bits behind the point of the terms of a group.
pub(super) const POINT: i32 = 10;
/// The bias of exponents.
pub(super) const BIAS: i32 = 127;

// Whole rows at a time: what is marked `multiversion` is compiled for wider registers, too, and
// chosen when it runs; what it calls is inlined into each version. Loops over columns with few
// operations are vectorised as written; others are one loop over the columns with a body without
// branches. All versions give the same bits: only exact operations and roundings of one operation
// are used.

/// Sums of a group for each column: `ints * 2^(exps - 10)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) ints: Ints,
    /// [`NO_EXPONENT`] or less: all terms are zero.
    pub(super) exps: Ints,
}

/// `x / 2^shift`, rounded to the nearest, ties away from zero.
#[inline(always)]
fn shifted(x: i32, shift: i32) -> i32 {
    let magnitude = rounded(x.abs(), shift);
    if x < 0 { -magnitude } else { magnitude }
}

impl Group {
    /// All terms are zero.
    const NOTHING: Self = Self { ints: [0; COLUMNS], exps: [NO_EXPONENT; COLUMNS] };

    /// The sums of `a` and `b`; their exponents are `less` smaller.
    #[inline(always)]
    pub(super) fn of_two((a, a_exps): &(Ints, Ints), (b, b_exps): &(Ints, Ints), less: i32) -> Self {
        let mut group = Self::NOTHING;
        for j in 0..COLUMNS {
            let largest = a_exps[j].max(b_exps[j]);
            group.ints[j] = shifted(a[j], largest - a_exps[j]) + shifted(b[j], largest - b_exps[j]);
            group.exps[j] = largest - BIAS - less;
        }
        group
    }

    /// Products, which are groups by themselves.
    #[inline(always)]
    pub(super) fn of_products((a, a_exps): &(Ints, Ints), (b, b_exps): &(Ints, Ints), less: i32) -> Self {
        let mut group = Self::NOTHING;
        for j in 0..COLUMNS {
            group.ints[j] = a[j] * b[j];
            group.exps[j] = a_exps[j] + b_exps[j] - 2 * BIAS - less;
        }
        group
    }

    /// The sums of eight products, of `b` and of rows of `a` from `first` on.
    pub(super) fn of_eight(a: &Numbers<16>, (b, b_exps): (&Ints, &Ints), first: usize, less: i32) -> Self {
        let mut largest = [2 * NO_EXPONENT; COLUMNS];
        for (a_exps, b_exp) in a.exps.iter().zip(b_exps).skip(first).take(TERMS) {
            largest = std::array::from_fn(|j| largest[j].max(a_exps[j] + b_exp));
        }
        let mut ints = [0; COLUMNS];
        for k in first..first + TERMS {
            let term = |j: usize| shifted(a.ints[k][j] * b[k], largest[j] - a.exps[k][j] - b_exps[k]);
            ints = std::array::from_fn(|j| ints[j] + term(j));
        }
        Self { ints, exps: largest.map(|e| e - 2 * BIAS - less) }
    }

    /// The same of row `row` of `b` and half `HALF` of it, of which it is known how `far` behind
    /// the exponents are. What was added to a last place is in the low bits, as an integer.
    #[inline(always)]
    fn of_half<const FMA: bool, const HALF: usize>(
        (a, b): (&Factors, &Multipliers),
        row: usize,
        far: &[u8; QUAD],
        less: i32,
    ) -> Self {
        let mut group = Self::NOTHING;
        let of = sums::<FMA, HALF>(a, b, row, &quarters(far));
        for j in 0..COLUMNS {
            group.ints[j] = of.sums[j].to_bits().wrapping_sub(of.magic[j].to_bits()).cast_signed();
        }
        let far = &far.as_chunks::<COLUMNS>().0[row % 4];
        for j in 0..COLUMNS {
            group.exps[j] = if far[j] == NOTHING { NO_EXPONENT } else { NEAREST - i32::from(far[j]) - less };
        }
        group
    }
}

/// Adds the products of SrcA and rows of SrcB, of which `step` says how far they are apart, to rows
/// of Dst, at most eight: their high and, of 32 bits, their low halves. `false`: they are left as
/// they are because numbers of f32 do not suffice.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2+fma"))]
pub(super) fn multiply(
    operands: (&Factors, &Multipliers),
    modes: (usize, i32),
    acc: Acc,
    high: &mut [Row16],
    low: &mut [Row16],
) -> bool {
    if target_cfg_f!(target_feature = "fma") {
        multiply_into::<true>(operands, modes, acc, high, low)
    } else {
        multiply_into::<false>(operands, modes, acc, high, low)
    }
}

/// [`multiply`], if `FMA` with instructions that multiply and add with one rounding.
#[inline(always)]
fn multiply_into<const FMA: bool>(
    operands: (&Factors, &Multipliers),
    modes: (usize, i32),
    acc: Acc,
    high: &mut [Row16],
    low: &mut [Row16],
) -> bool {
    match acc {
        Acc::Fp32 | Acc::Int32 => multiply_rows::<FMA, Fp32>(operands, modes, high, low),
        Acc::Bf16 => multiply_rows::<FMA, Bf16>(operands, modes, high, low),
        Acc::Fp16 => multiply_rows::<FMA, Fp16>(operands, modes, high, low),
    }
}

#[inline(always)]
fn multiply_rows<const FMA: bool, H: Held>(
    (a, b): (&Factors, &Multipliers),
    (step, less): (usize, i32),
    high: &mut [Row16],
    low: &mut [Row16],
) -> bool {
    let mut far = [[[NOTHING; QUAD]; 2]; ROWS / 4];
    let mut outside = [0; QUAD];
    for (quad, far) in far.iter_mut().enumerate().take(high.len().div_ceil(4)) {
        *far = [distances::<0>(a, b, quad), distances::<1>(a, b, quad)];
        for i in 0..QUAD {
            outside[i] |= u8::from(is_outside(far[0][i]) | is_outside(far[1][i]));
        }
    }
    if !are_tame(a, b) || outside != [0; QUAD] {
        return false;
    }
    for (i, high) in high.iter_mut().enumerate() {
        let row = i * step % ROWS;
        let [first, second] = &far[row / 4];
        let groups =
            [Group::of_half::<FMA, 0>((a, b), row, first, less), Group::of_half::<FMA, 1>((a, b), row, second, less)];
        let old = bits_of_row::<H>(high, low.get(i));
        put_row::<H>(&combine::<H, 2>(&groups, &old), high, low.get_mut(i));
    }
    true
}

/// Adds `groups` to a row, bits of f32 that fit what Dst holds.
pub(super) fn add_up(groups: &[Group; 2], acc: Acc, dst: &mut Row32) {
    *dst = match acc {
        Acc::Fp32 | Acc::Int32 => combine::<Fp32, 2>(groups, dst),
        Acc::Bf16 => combine::<Bf16, 2>(groups, dst),
        Acc::Fp16 => combine::<Fp16, 2>(groups, dst),
    };
}

/// Adds `groups` to a row of Dst of 16 bits as [`add_up`] does, but rounds by chance. How the
/// matrix unit does that is not documented: as SFPSTOCHRND_FloatFloat.md describes for the
/// vector unit.
pub(super) fn add_by_chance<const N: usize>(groups: &[Group; N], acc: Acc, dst: &mut Row32, random: &Row32) {
    *dst = match acc {
        Acc::Fp16 => combine_by_chance::<Fp16, N>(groups, dst, random),
        _ => combine_by_chance::<Bf16, N>(groups, dst, random),
    };
}

fn combine_by_chance<H: Held, const N: usize>(groups: &[Group; N], old: &Row32, random: &Row32) -> Row32 {
    let (totals, places) = total::<H, N>(groups, old);
    std::array::from_fn(|j| {
        let magnitude = totals[j].unsigned_abs();
        let drop = (u32::BITS - magnitude.leading_zeros()).saturating_sub(H::BITS);
        let kept = if drop == 0 { magnitude } else { random::rounded(magnitude, drop, random[j]) << drop };
        number::<Fp32>(if totals[j] < 0 { -kept.cast_signed() } else { kept.cast_signed() }, places[j])
    })
}

/// Adds `groups` up with `old`, bits of f32, with the places behind the point of the largest
/// exponent that Dst's format has, and rounds to its bits; bits of f32. A sum has less than 31 bits.
#[inline(always)]
pub(super) fn combine<H: Held, const N: usize>(groups: &[Group; N], old: &Row32) -> Row32 {
    let (totals, places) = total::<H, N>(groups, old);
    let mut out = [0; COLUMNS];
    for j in 0..COLUMNS {
        out[j] = number::<H>(totals[j], places[j]);
    }
    out
}

/// The sums, and their last places.
///
/// Several loops: as one, with two groups, it is compiled to code for single columns, which takes
/// four times as long.
#[inline(always)]
fn total<H: Held, const N: usize>(groups: &[Group; N], old: &Row32) -> (Ints, Ints) {
    let mut old_exps = [0; COLUMNS];
    let mut largest = [0; COLUMNS];
    for j in 0..COLUMNS {
        let exp = (old[j] >> 23 & 0xFF).cast_signed();
        old_exps[j] = if exp == 0 { NO_EXPONENT } else { exp - BIAS };
        largest[j] = old_exps[j];
    }
    // A group below the format's exponents counts as nothing.
    let mut exps = [[0; COLUMNS]; N];
    for (group, exps) in groups.iter().zip(&mut exps) {
        for j in 0..COLUMNS {
            exps[j] = if group.exps[j] < H::LEAST { NO_EXPONENT } else { group.exps[j] };
            largest[j] = largest[j].max(exps[j]);
        }
    }
    let mut totals = [0; COLUMNS];
    for j in 0..COLUMNS {
        // Of a magnitude, ties up are ties away from zero.
        let magnitude = (old[j] & 0x7F_FFFF | 0x80_0000).cast_signed();
        let magnitude = rounded(magnitude, largest[j] - old_exps[j] + 23 - H::PLACES);
        let magnitude = if old_exps[j] == NO_EXPONENT { 0 } else { magnitude };
        totals[j] = if old[j] >> 31 != 0 { -magnitude } else { magnitude };
    }
    for (group, exps) in groups.iter().zip(&exps) {
        for j in 0..COLUMNS {
            let int = if exps[j] == NO_EXPONENT { 0 } else { group.ints[j] };
            totals[j] += rounded(int << (H::PLACES - POINT), largest[j] - exps[j]);
        }
    }
    for place in &mut largest {
        *place -= H::PLACES;
    }
    (totals, largest)
}

/// `x / 2^shift`, to the nearest integer, ties up.
#[inline(always)]
fn rounded(x: i32, shift: i32) -> i32 {
    let shift = shift.min(31);
    (x + (1u32.wrapping_shl(shift.cast_unsigned()) >> 1).cast_signed()).wrapping_shr(shift.cast_unsigned())
}

/// `total * 2^place` with the bits of a format of Dst, ties away from zero; bits of f32. Of less
/// than 24 bits, `total` has no more than 24.
#[inline(always)]
fn number<H: Held>(total: i32, place: i32) -> u32 {
    let magnitude = total.unsigned_abs();
    let bits = (magnitude.cast_signed() as f32).to_bits();
    let bits = if H::BITS < 24 {
        let drop = 24 - H::BITS;
        (bits + (1 << drop >> 1)) >> drop << drop
    } else {
        // The conversion rounds ties to even ones: of those that it rounded down, half a place is
        // missing.
        let drop = ((bits >> 23).cast_signed() - (BIAS + 23)).max(0).cast_unsigned();
        let held = (bits & 0x7F_FFFF | 0x80_0000).wrapping_shl(drop);
        let is_half = magnitude.wrapping_sub(held).wrapping_mul(2) == 1u32.wrapping_shl(drop);
        bits + u32::from((drop != 0) & is_half)
    };
    let exp = (bits >> 23).cast_signed() + place;
    let value = bits.wrapping_add(place.cast_unsigned() << 23);
    let value = if exp >= 255 { 0x7F80_0000 } else { value };
    if (magnitude == 0) | (exp <= 0) { 0 } else { value | total.cast_unsigned() & 0x8000_0000 }
}

#[cfg(test)]
#[path = "sum_tests.rs"]
mod tests;
