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

use super::format::{Acc, Ints, NO_EXPONENT, Numbers};
use crate::tensix::dst::{COLUMNS, Row32};
use crate::tensix::random::{self, Generators};
use multiversion::multiversion;
use multiversion::target::target_cfg_f;

/// Bits behind the point of the terms of a group.
pub(super) const POINT: i32 = 10;
/// Terms of a group.
const TERMS: usize = 8;
/// Columns that are added up side by side.
const WIDTH: usize = 8;
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

    /// The sums of `a` and `b` times `sign`; their exponents are `less` smaller.
    #[inline(always)]
    fn of_two((a, a_exps): (&Ints, &Ints), (b, b_exps): (&Ints, &Ints), less: i32, sign: i32) -> Self {
        let mut group = Self::NOTHING;
        for j in 0..COLUMNS {
            let largest = a_exps[j].max(b_exps[j]);
            group.ints[j] = shifted(a[j], largest - a_exps[j]) + sign * shifted(b[j], largest - b_exps[j]);
            group.exps[j] = largest - BIAS - less;
        }
        group
    }

    /// Products, which are groups by themselves.
    #[inline(always)]
    fn of_products((a, a_exps): (&Ints, &Ints), (b, b_exps): (&Ints, &Ints), less: i32) -> Self {
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
}

/// SrcA's factors as [`multiply`] takes them, for each group.
#[derive(Clone, Debug, Default)]
pub(super) struct Factors {
    /// Integers times two to the power of their exponents, a little too large (see there).
    values: [[[f32; COLUMNS]; TERMS]; 2],
    exps: [[[i16; COLUMNS]; TERMS]; 2],
    /// By group: all factors are zero.
    pub(super) zero: [bool; 2],
    /// No exponent is larger than [`LARGEST`].
    pub(super) tame: bool,
}

/// Rows of SrcB as [`multiply`] takes them.
#[derive(Clone, Debug, Default)]
pub(super) struct Multipliers {
    /// Integers times two to the power of their exponents.
    values: [[f32; COLUMNS]; ROWS],
    /// Each exponent is there for all columns of a result.
    exps: [[[i16; COLUMNS]; COLUMNS]; ROWS],
    /// By row and group: all are zero.
    pub(super) zero: [[bool; 2]; ROWS],
    /// No exponent is larger than [`LARGEST`].
    pub(super) tame: bool,
}

/// Rows of SrcB of an instruction.
pub(super) const ROWS: usize = 8;
/// The largest exponent of an operand whose value is a number of f32.
const LARGEST: i32 = 248;
/// Exponents of products are below this if a factor is zero.
pub(super) const NOTHING: i16 = -1000;
/// The largest exponents of a group, with a bias of 127, between which f32 can round terms: in its
/// numbers, `1.5 * 2^23` of the last place of the sum exists, and terms that it cannot hold exactly
/// round to zero.
const ROUNDABLE: [i16; 2] = [33, 231];

/// Two to the power of an exponent; a number without one is zero in any case.
#[inline(always)]
fn power(exp: i32) -> f32 {
    f32::from_bits(exp.clamp(0, 254).cast_unsigned() << 23)
}

#[inline(always)]
fn is_tame(exps: &[Ints]) -> bool {
    exps.as_flattened().iter().fold(true, |tame, &e| tame & (e <= LARGEST))
}

#[inline(always)]
fn is_zero(exps: &[i32]) -> bool {
    exps.iter().fold(true, |zero, &e| zero & (e == NO_EXPONENT))
}

impl Factors {
    /// The factors of `a`. They are large, so they are written where they stay.
    pub(super) fn set(&mut self, a: &Numbers<16>) {
        fill_factors(a, self);
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn fill_factors(a: &Numbers<16>, to: &mut Factors) {
    // Terms have at most twelve bits. The excess is less than half a place before a term is
    // shifted, and never reaches the next tie afterwards, so that rounding to the nearest rounds
    // ties, and only these, away from zero.
    const FACTOR: f32 = 1.0 + 1.0 / 8192.0;
    for k in 0..2 * TERMS {
        let (values, exps) = (&mut to.values[k / TERMS][k % TERMS], &mut to.exps[k / TERMS][k % TERMS]);
        for j in 0..COLUMNS {
            values[j] = a.ints[k][j] as f32 * FACTOR * power(a.exps[k][j]);
            exps[j] = a.exps[k][j] as i16;
        }
    }
    to.zero = [is_zero(a.exps[..TERMS].as_flattened()), is_zero(a.exps[TERMS..].as_flattened())];
    to.tame = is_tame(&a.exps);
}

impl Multipliers {
    /// The multipliers of `b`. They are large, so they are written where they stay.
    pub(super) fn set(&mut self, b: &Numbers<ROWS>) {
        fill_multipliers(b, self);
    }
}

#[multiversion(targets("x86_64+avx2"))]
fn fill_multipliers(b: &Numbers<ROWS>, to: &mut Multipliers) {
    for i in 0..ROWS {
        for k in 0..COLUMNS {
            to.values[i][k] = b.ints[i][k] as f32 * power(b.exps[i][k]);
        }
        for k in 0..COLUMNS {
            to.exps[i][k] = [b.exps[i][k] as i16; COLUMNS];
        }
        to.zero[i] = [is_zero(&b.exps[i][..TERMS]), is_zero(&b.exps[i][TERMS..])];
    }
    to.tame = is_tame(&b.exps);
}

/// Adds the products of SrcA and rows of SrcB, of which `step` says how far they are apart, to rows
/// `dst`, bits of f32 that fit what Dst holds. Returns the rows, one bit for each, that are left as
/// they are because numbers of f32 do not suffice.
#[multiversion(targets("x86_64+avx2+fma"))]
pub(super) fn multiply(a: &Factors, b: &Multipliers, step: usize, less: i32, acc: Acc, dst: &mut [Row32]) -> u8 {
    if target_cfg_f!(target_feature = "fma") {
        multiply_into::<true>(a, b, (step, less), acc, dst)
    } else {
        multiply_into::<false>(a, b, (step, less), acc, dst)
    }
}

/// [`multiply`], if `FMA` with instructions that multiply and add with one rounding: the product is
/// then exact, and without them it is rounded to a number that is rounded in the same way.
#[inline(always)]
fn multiply_into<const FMA: bool>(
    a: &Factors,
    b: &Multipliers,
    modes: (usize, i32),
    acc: Acc,
    dst: &mut [Row32],
) -> u8 {
    if !a.tame || !b.tame {
        return u8::MAX;
    }
    match acc {
        Acc::Fp32 | Acc::Int32 => multiply_rows::<FMA, 23, 24>(a, b, modes, dst),
        Acc::Bf16 => multiply_rows::<FMA, 10, 8>(a, b, modes, dst),
        Acc::Fp16 => multiply_rows::<FMA, 10, 11>(a, b, modes, dst),
    }
}

#[inline(always)]
fn multiply_rows<const FMA: bool, const PLACES: i32, const BITS: u32>(
    a: &Factors,
    b: &Multipliers,
    (step, less): (usize, i32),
    dst: &mut [Row32],
) -> u8 {
    let mut left = 0;
    for (i, dst) in dst.iter_mut().enumerate() {
        let row = i * step % ROWS;
        let mut groups = [Group::NOTHING; 2];
        let is_done = [
            a.zero[0] || b.zero[row][0] || sum_eight::<FMA, 0>(a, b, row, less, &mut groups),
            a.zero[1] || b.zero[row][1] || sum_eight::<FMA, 1>(a, b, row, less, &mut groups),
        ];
        if is_done == [true; 2] {
            *dst = combine::<PLACES, BITS, 2>(&groups, dst);
        } else {
            left |= 1 << i;
        }
    }
    left
}

/// The sums of eight products for each column: as [`Group::of_eight`]. `false`: numbers of f32 do
/// not suffice.
#[inline(always)]
fn sum_eight<const FMA: bool, const HALF: usize>(
    a: &Factors,
    b: &Multipliers,
    row: usize,
    less: i32,
    groups: &mut [Group; 2],
) -> bool {
    let largest = largest_of_eight::<HALF>(a, b, row);
    let group = &mut groups[HALF];
    for j in 0..COLUMNS {
        let (exp, nothing) = (largest[j] - BIAS as i16, largest[j] < NOTHING);
        group.exps[j] = if nothing { NO_EXPONENT } else { i32::from(exp) - BIAS - less };
    }
    ints_of_eight::<FMA, HALF>(a, b, row, &largest, &mut group.ints)
}

/// The largest exponents of eight products for each column, with twice the bias; without a product
/// they are below [`NOTHING`].
#[inline(always)]
pub(super) fn largest_of_eight<const HALF: usize>(a: &Factors, b: &Multipliers, row: usize) -> [i16; COLUMNS] {
    let mut largest = [2 * NO_EXPONENT as i16; COLUMNS];
    for k in 0..TERMS {
        for j in 0..COLUMNS {
            largest[j] = largest[j].max(a.exps[HALF][k][j] + b.exps[row][HALF * TERMS + k][j]);
        }
    }
    largest
}

/// The sums of eight products for each column, with ten bits behind the point of the `largest`
/// exponents. Adding `1.5 * 2^23` of a place rounds to that place, and what was added is then in
/// the low bits, as an integer. `false`: numbers of f32 do not suffice.
#[inline(always)]
pub(super) fn ints_of_eight<const FMA: bool, const HALF: usize>(
    a: &Factors,
    b: &Multipliers,
    row: usize,
    largest: &[i16; COLUMNS],
    ints: &mut Ints,
) -> bool {
    let mut magic = [0.0f32; COLUMNS];
    let mut outside = false;
    for j in 0..COLUMNS {
        let (exp, nothing) = (largest[j] - BIAS as i16, largest[j] < NOTHING);
        outside |= !nothing & ((exp < ROUNDABLE[0]) | (exp > ROUNDABLE[1]));
        let exp = i32::from(if nothing { ROUNDABLE[0] } else { exp });
        magic[j] = f32::from_bits(((exp + 23) << 23 | 0x40_0000).cast_unsigned());
    }
    if outside {
        return false;
    }
    // A register of the compiled code at a time.
    let magics = magic.as_chunks::<WIDTH>().0;
    for (part, (ints, magic)) in ints.as_chunks_mut::<WIDTH>().0.iter_mut().zip(magics).enumerate() {
        let mut sums = [0u32; WIDTH];
        for (a, &b) in a.values[HALF].iter().zip(&b.values[row][HALF * TERMS..]) {
            let a = &a.as_chunks::<WIDTH>().0[part];
            let rounded: [f32; WIDTH] =
                std::array::from_fn(|j| if FMA { a[j].mul_add(b, magic[j]) } else { a[j] * b + magic[j] });
            sums = std::array::from_fn(|j| sums[j].wrapping_add(rounded[j].to_bits()));
        }
        *ints =
            std::array::from_fn(|j| sums[j].wrapping_sub(magic[j].to_bits().wrapping_mul(TERMS as u32)).cast_signed());
    }
    true
}

/// Adds `groups` to each row of `dst`, bits of f32 that fit what Dst holds.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn add_up(groups: &[[Group; 2]], acc: Acc, dst: &mut [Row32]) {
    for (groups, dst) in groups.iter().zip(dst) {
        *dst = add_groups(groups, acc, dst);
    }
}

/// What an element-wise instruction does with two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Element {
    Multiply,
    Add,
    Subtract,
}

/// Adds the results of an element-wise instruction to rows `dst`, bits of f32 that fit what Dst
/// holds.
#[multiversion(targets("x86_64+avx2"))]
pub(super) fn by_element(
    what: Element,
    (a, b): (&Numbers<ROWS>, &Numbers<ROWS>),
    less: i32,
    acc: Acc,
    dst: &mut [Row32; ROWS],
) {
    for i in 0..ROWS {
        dst[i] = add_groups(&[of_element(what, (a, b), less, i)], acc, &dst[i]);
    }
}

/// As [`by_element`], rounded by chance.
pub(super) fn by_element_and_chance(
    what: Element,
    operands: (&Numbers<ROWS>, &Numbers<ROWS>),
    less: i32,
    acc: Acc,
    dst: &mut [Row32; ROWS],
    generators: &mut Generators,
) {
    for (i, dst) in dst.iter_mut().enumerate() {
        add_by_chance(&[of_element(what, operands, less, i)], acc, dst, &generators.draw());
    }
}

/// The results of row `i`.
#[inline(always)]
fn of_element(what: Element, (a, b): (&Numbers<ROWS>, &Numbers<ROWS>), less: i32, i: usize) -> Group {
    let (a, b) = ((&a.ints[i], &a.exps[i]), (&b.ints[i], &b.exps[i]));
    match what {
        Element::Multiply => Group::of_products(a, b, less),
        Element::Add => Group::of_two(a, b, less, 1),
        Element::Subtract => Group::of_two(a, b, less, -1),
    }
}

/// Adds `groups` to a row of Dst of 16 bits as [`add_up`] does, but rounds by chance. How the
/// matrix unit does that is not documented: as SFPSTOCHRND_FloatFloat.md describes for the
/// vector unit.
pub(super) fn add_by_chance<const N: usize>(groups: &[Group; N], acc: Acc, dst: &mut Row32, random: &Row32) {
    *dst = match acc {
        Acc::Fp16 => combine_with::<10, 11, N>(groups, dst, |j, total, place| by_chance::<11>(total, place, random[j])),
        _ => combine_with::<10, 8, N>(groups, dst, |j, total, place| by_chance::<8>(total, place, random[j])),
    };
}

/// As [`number`], rounded by chance.
fn by_chance<const BITS: u32>(total: i32, place: i32, random: u32) -> u32 {
    let magnitude = total.unsigned_abs();
    let drop = (u32::BITS - magnitude.leading_zeros()).saturating_sub(BITS);
    let kept = if drop == 0 { magnitude } else { random::rounded(magnitude, drop, random) << drop };
    number::<24>(if total < 0 { -kept.cast_signed() } else { kept.cast_signed() }, place)
}

#[inline(always)]
fn add_groups<const N: usize>(groups: &[Group; N], acc: Acc, old: &Row32) -> Row32 {
    match acc {
        Acc::Fp32 | Acc::Int32 => combine::<23, 24, N>(groups, old),
        Acc::Bf16 => combine::<10, 8, N>(groups, old),
        Acc::Fp16 => combine::<10, 11, N>(groups, old),
    }
}

/// The least exponent of a format with `bits` bits: FP16, or else BF16 or FP32.
pub(super) const fn least_exponent(bits: u32) -> i32 {
    if bits == 11 { -14 } else { -126 }
}

/// Adds `groups` up with `old`, bits of f32, with `PLACES` bits behind the point of the largest
/// exponent, and rounds to `BITS` bits; bits of f32. A sum has less than 31 bits.
///
/// Several loops: as one, with two groups, it is compiled to code for single columns, which takes
/// four times as long.
#[inline(always)]
fn combine<const PLACES: i32, const BITS: u32, const N: usize>(groups: &[Group; N], old: &Row32) -> Row32 {
    combine_with::<PLACES, BITS, N>(groups, old, |_, total, place| number::<BITS>(total, place))
}

/// As [`combine`], where `round` makes a number of a column's sum and its place.
#[inline(always)]
fn combine_with<const PLACES: i32, const BITS: u32, const N: usize>(
    groups: &[Group; N],
    old: &Row32,
    round: impl Fn(usize, i32, i32) -> u32,
) -> Row32 {
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
            exps[j] = if group.exps[j] < least_exponent(BITS) { NO_EXPONENT } else { group.exps[j] };
            largest[j] = largest[j].max(exps[j]);
        }
    }
    let mut totals = [0; COLUMNS];
    for j in 0..COLUMNS {
        // Of a magnitude, ties up are ties away from zero.
        let magnitude = (old[j] & 0x7F_FFFF | 0x80_0000).cast_signed();
        let magnitude = rounded(magnitude, largest[j] - old_exps[j] + 23 - PLACES);
        let magnitude = if old_exps[j] == NO_EXPONENT { 0 } else { magnitude };
        totals[j] = if old[j] >> 31 != 0 { -magnitude } else { magnitude };
    }
    for (group, exps) in groups.iter().zip(&exps) {
        for j in 0..COLUMNS {
            let int = if exps[j] == NO_EXPONENT { 0 } else { group.ints[j] };
            totals[j] += rounded(int << (PLACES - POINT), largest[j] - exps[j]);
        }
    }
    let mut out = [0; COLUMNS];
    for j in 0..COLUMNS {
        out[j] = round(j, totals[j], largest[j] - PLACES);
    }
    out
}

/// `x / 2^shift`, to the nearest integer, ties up.
#[inline(always)]
fn rounded(x: i32, shift: i32) -> i32 {
    let shift = shift.min(31);
    (x + (1u32.wrapping_shl(shift.cast_unsigned()) >> 1).cast_signed()).wrapping_shr(shift.cast_unsigned())
}

/// `total * 2^place` with `BITS` bits, ties away from zero; bits of f32. Of less than 24 bits,
/// `total` has no more than 24.
#[inline(always)]
fn number<const BITS: u32>(total: i32, place: i32) -> u32 {
    let magnitude = total.unsigned_abs();
    let bits = (magnitude.cast_signed() as f32).to_bits();
    let bits = if BITS < 24 {
        let drop = 24 - BITS;
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
