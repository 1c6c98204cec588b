//! How the matrix unit adds up floating-point numbers.
//!
//! The documents call their model a rough guide (MVMUL.md). What is here was found on ttsim,
//! another simulator, by running instructions on chosen and on random data; it is not documented,
//! and within what the documents allow:
//! - Products are exact: five by seven bits, with ten bits behind the point. Terms (products, and
//!   both operands of `ELWADD` and `ELWSUB`) are added up in groups of at most eight: columns 0 to 7
//!   and 8 to 15 of a row of SrcB. Each is shifted to the largest exponent of its group, rounded
//!   there to ten bits behind the point, ties away from zero; the sum is exact. Exponents count as
//!   they are in the operands, also when the bits that a fidelity phase takes are zero, but not for
//!   operands that are zero.
//! - The groups and what Dst holds are shifted to the largest exponent of these, rounded to 23 bits
//!   behind the point for Dst with 32 bits and ten for Dst with 16 bits, and added up exactly.
//!   Groups round ties up, Dst rounds ties away from zero.
//! - The result is rounded to what Dst holds, ties away from zero. Without an exponent it is zero,
//!   without a sign; too large it is infinity (FloatBitPatterns.md says that too).

use super::format::{Ints, NO_EXPONENT, Numbers};
use crate::tensix::dst::{COLUMNS, Row32};

/// Bits behind the point of the terms of a group.
const POINT: i32 = 10;
/// Terms of a group.
const TERMS: usize = 8;
/// The bias of exponents.
const BIAS: i32 = 127;

/// Sums of a group for each column: `ints * 2^(exps - 10)`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    pub(super) ints: Ints,
    /// [`NO_EXPONENT`] or less: all terms are zero.
    pub(super) exps: Ints,
}

/// `x / 2^shift`, rounded to the nearest, ties away from zero.
#[inline]
fn shifted(x: i32, shift: i32) -> i32 {
    let shift = shift.min(30);
    let half = if shift == 0 { 0 } else { 1 << (shift - 1) };
    let magnitude = (x.abs() + half) >> shift;
    if x < 0 { -magnitude } else { magnitude }
}

impl Group {
    /// The sums of `a` and `b`; their exponents are `less` smaller.
    pub(super) fn of_two((a, a_exps): (&Ints, &Ints), (b, b_exps): (&Ints, &Ints), less: i32) -> Self {
        let largest: Ints = std::array::from_fn(|j| a_exps[j].max(b_exps[j]));
        let ints =
            std::array::from_fn(|j| shifted(a[j], largest[j] - a_exps[j]) + shifted(b[j], largest[j] - b_exps[j]));
        Self { ints, exps: largest.map(|e| e - BIAS - less) }
    }

    /// Products, which are groups by themselves.
    pub(super) fn of_products((a, a_exps): (&Ints, &Ints), (b, b_exps): (&Ints, &Ints), less: i32) -> Self {
        Self {
            ints: std::array::from_fn(|j| a[j] * b[j]),
            exps: std::array::from_fn(|j| a_exps[j] + b_exps[j] - 2 * BIAS - less),
        }
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
}

/// Factors of SrcA as [`Factors::groups`] takes them, for each group.
#[derive(Clone, Debug)]
pub(super) struct Factors {
    /// Integers times two to the power of their exponents, a little too large (see there).
    values: [[[f32; COLUMNS]; TERMS]; 2],
    /// Two to the power of their exponents; zero for zero.
    powers: [[[f32; COLUMNS]; TERMS]; 2],
    /// By column: all factors are zero.
    empty: [[bool; COLUMNS]; 2],
    /// No exponent is larger than [`LARGEST`].
    tame: bool,
}

/// The largest exponent of an operand whose value is a number of f32.
const LARGEST: i32 = 248;
/// Bits of the powers of two that are the largest of a group, between which f32 can round terms: in
/// its numbers, `1.5 * 2^23` of the last place of the sum exists, and terms that it cannot hold
/// exactly round to zero.
const ROUNDABLE: [u32; 2] = [33 << 23, 231 << 23];

/// Exponents as powers of two.
#[inline]
fn powers(exps: &Ints) -> [f32; COLUMNS] {
    exps.map(|e| f32::from_bits(e.clamp(0, 254).cast_unsigned() << 23))
}

#[inline]
fn is_tame(exps: &Ints) -> bool {
    exps.iter().fold(true, |tame, &e| tame & (e <= LARGEST))
}

/// The halves of a row, one for each group.
#[inline]
fn halves(row: &[f32; COLUMNS]) -> [[f32; TERMS]; 2] {
    [0, TERMS].map(|first| std::array::from_fn(|k| row[first + k]))
}

impl Factors {
    pub(super) fn of(a: &Numbers<16>) -> Self {
        // Terms have at most twelve bits. The excess is less than half a place before a term is
        // shifted, and never reaches the next tie afterwards, so that rounding to the nearest
        // rounds ties, and only these, away from zero.
        let factor = 1.0 + 1.0 / 8192.0;
        let powers = [0, TERMS].map(|first| std::array::from_fn(|k| powers(&a.exps[first + k])));
        let values = std::array::from_fn(|half| {
            let half: (usize, &[[f32; COLUMNS]; TERMS]) = (half * TERMS, &powers[half]);
            std::array::from_fn(|k| std::array::from_fn(|j| a.ints[half.0 + k][j] as f32 * factor * half.1[k][j]))
        });
        let empty = powers.map(|half| std::array::from_fn(|j| half.iter().all(|powers| powers[j] == 0.0)));
        Self { values, powers, empty, tame: a.exps.iter().all(is_tame) }
    }

    /// The two groups of a row; `None`: not with numbers of f32.
    #[inline]
    pub(super) fn groups(&self, (b, b_exps): (&Ints, &Ints), less: i32) -> Option<[Group; 2]> {
        if !self.tame || !is_tame(b_exps) {
            return None;
        }
        let b_powers = powers(b_exps);
        let values = halves(&std::array::from_fn(|k| b[k] as f32 * b_powers[k]));
        let b_powers = halves(&b_powers);
        let mut out = [Group { ints: [0; COLUMNS], exps: [NO_EXPONENT; COLUMNS] }; 2];
        for (half, out) in out.iter_mut().enumerate() {
            let largest = largest(&self.powers[half], &b_powers[half]);
            let in_range = largest.map(|bits| (bits >= ROUNDABLE[0]) & (bits <= ROUNDABLE[1]));
            if !in_range.iter().all(|&is| is) {
                // Whatever is not in range must be without any term.
                let nothing = b_powers[half] == [0.0; TERMS];
                if !nothing && (0..COLUMNS).any(|j| !in_range[j] && !self.empty[half][j]) {
                    return None;
                }
            }
            let exp = |bits: u32| (bits >> 23).cast_signed() - BIAS - less;
            *out = Group {
                ints: sum_eight(&self.values[half], &values[half], &largest),
                exps: std::array::from_fn(|j| if in_range[j] { exp(largest[j]) } else { NO_EXPONENT }),
            };
        }
        Some(out)
    }
}

/// The bits of the largest products of powers of two.
#[inline]
fn largest(a: &[[f32; COLUMNS]; TERMS], b: &[f32; TERMS]) -> Row32 {
    let mut largest = [0.0; COLUMNS];
    for (a, b) in a.iter().zip(b) {
        for (largest, a) in largest.iter_mut().zip(a) {
            let power = a * b;
            *largest = if power > *largest { power } else { *largest };
        }
    }
    largest.map(f32::to_bits)
}

/// Eight products of each column, added up: as [`Group::of_eight`], several columns at a time.
/// Adding `1.5 * 2^23` of a place rounds to that place; sums of what is rounded are exact. The
/// integer is in the low bits of a number with `1.5 * 2^23` of the place.
#[inline]
fn sum_eight(a: &[[f32; COLUMNS]; TERMS], b: &[f32; TERMS], largest: &Row32) -> Ints {
    let magic = largest.map(|bits| f32::from_bits(bits.max(ROUNDABLE[0]) + (23 << 23) + 0x40_0000));
    let mut sums = [0.0f32; COLUMNS];
    for (a, b) in a.iter().zip(b) {
        for ((sum, a), magic) in sums.iter_mut().zip(a).zip(&magic) {
            *sum += (a * b + magic) - magic;
        }
    }
    let int = |j: usize| (sums[j] + magic[j]).to_bits().wrapping_sub(magic[j].to_bits()).cast_signed();
    std::array::from_fn(int)
}

/// Two to the power of `exp`.
#[inline]
fn power(exp: i32) -> f64 {
    f64::from_bits(u64::from((exp + 1023).cast_unsigned()) << 52)
}

/// Adds `groups` up with `old`, bits of f32, with `PLACES` bits behind the point of the largest
/// exponent, and rounds to `BITS` bits; bits of f32.
///
/// All is done in f64, which holds every intermediate result: adding `1.5 * 2^52` of a place rounds
/// to that place, and an excess that is less than any distance from a tie decides ties.
#[inline]
pub(super) fn combine<const PLACES: i32, const BITS: u32>(groups: &[Group], old: &Row32) -> Row32 {
    // Far below what an exponent can be, and in the range of f64.
    const LEAST: i32 = -700;
    let old_exps: Ints = std::array::from_fn(|j| match (old[j] >> 23 & 0xFF).cast_signed() {
        0 => LEAST,
        e => e - BIAS,
    });
    let largest = groups.iter().fold(old_exps, |largest, group| std::array::from_fn(|j| largest[j].max(group.exps[j])));
    let mut totals = [0i32; COLUMNS];
    for group in groups {
        for j in 0..COLUMNS {
            let place = largest[j] - PLACES;
            let value = f64::from(group.ints[j]) * power(group.exps[j].max(LEAST) - POINT);
            totals[j] += rounded(value + power(place - 20), place);
        }
    }
    for j in 0..COLUMNS {
        let magnitude = f64::from((old[j] & 0x7F_FFFF | 0x80_0000).cast_signed());
        let value = magnitude * power(old_exps[j] - 23) * (1.0 + 1.0 / f64::from(1 << 26));
        let total = rounded(value, largest[j] - PLACES);
        let total = if old_exps[j] == LEAST { 0 } else { total };
        totals[j] += if old[j] >> 31 != 0 { -total } else { total };
    }
    std::array::from_fn(|j| round_to::<BITS>(totals[j], largest[j] - PLACES))
}

/// `value / 2^place`, to the nearest integer; less than `2^31`.
#[inline]
fn rounded(value: f64, place: i32) -> i32 {
    let magic = power(place + 52) * 1.5;
    ((value + magic).to_bits().wrapping_sub(magic.to_bits())) as i32
}

/// `total * 2^place` with `BITS` bits, ties away from zero; bits of f32.
#[inline]
fn round_to<const BITS: u32>(total: i32, place: i32) -> u32 {
    let drop = 53 - BITS;
    let bits = f64::from(total).to_bits() + (1 << (drop - 1));
    let value = f64::from_bits(bits >> drop << drop) * power(place);
    let bits = (value as f32).to_bits();
    if value.abs() < f64::from(f32::MIN_POSITIVE) { 0 } else { bits }
}

#[cfg(test)]
#[path = "sum_tests.rs"]
mod tests;
