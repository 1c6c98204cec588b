//! Operands of matrix products as numbers of f32, and the sums of groups of their products.
//!
//! What the sums are says `sum.rs`. Exponents of products are found first, of four rows of SrcB at
//! once, in bytes: how far the exponent of an operand lies behind the largest one that is provided
//! for here. The largest exponent of a group then says how much `1.5 * 2^23` of its last place is.
//! To this number products are added one after the other: every addition rounds to that place, and
//! the sum of the rounded products is what is there more in the end.

// Loops over columns of several arrays vectorise only with a counter.
#![expect(clippy::needless_range_loop)]

use super::format::{Part, Reading, Style};
use super::sum::BIAS;
use crate::tensix::dst::{COLUMNS, Row16};
use crate::tensix::src::Row;
use multiversion::multiversion;

/// Rows of SrcB of an instruction.
pub(super) const ROWS: usize = 8;
/// Terms of a group.
pub(super) const TERMS: usize = 8;
/// Rows of a matrix product's face of SrcA, as many as columns of SrcB.
const FACE: usize = 2 * TERMS;
/// Columns of four rows, side by side.
pub(super) const QUAD: usize = 4 * COLUMNS;
/// Columns of two rows, side by side: bytes of a vector of AVX2.
const PAIR: usize = 2 * COLUMNS;

/// The largest exponent of an operand, with its bias: 2^64.
const LARGEST: u32 = 191;
/// The exponent of a product of two such operands, without a bias.
pub(super) const NEAREST: i32 = 2 * (LARGEST as i32 - 127);
/// How far behind is nothing at all, or so little that it counts as nothing: exponents below -126.
pub(super) const NOTHING: u8 = u8::MAX;
/// How far behind the sum of a group may lie, so that f32 has `1.5 * 2^23` of its last place, and
/// rounds all terms to zero that it cannot hold exactly: a range's start and length.
const ROUNDABLE: [u8; 2] = [24, 199];
/// From a distance to the exponent, with its bias, of a quarter of the last place of a sum.
const QUARTER: u8 = 253;

/// SrcA's factors, by row.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Factors {
    /// Integers times two to the power of their exponents, a little too large: terms have at most
    /// twelve bits. The excess is less than half a place before a term is rounded, and never
    /// reaches the next tie afterwards, so that rounding to the nearest rounds ties, and only
    /// these, away from zero.
    values: [[f32; COLUMNS]; FACE],
    /// How far exponents lie behind [`LARGEST`], the same twice.
    behind: [[u8; PAIR]; FACE],
    /// No exponent is larger than [`LARGEST`].
    tame: bool,
    /// All integers are zero.
    zero: bool,
}

/// Rows of SrcB.
#[derive(Clone, Debug)]
#[repr(align(64))]
pub(super) struct Multipliers {
    /// Integers times two to the power of their exponents.
    values: [[f32; FACE]; ROWS],
    /// By four rows, and column of SrcB: how far exponents lie behind [`LARGEST`], for all columns
    /// of a result.
    behind: [[[u8; QUAD]; FACE]; 2],
    /// No exponent is larger than [`LARGEST`].
    tame: bool,
    /// All integers are zero.
    zero: bool,
}

impl Default for Factors {
    fn default() -> Self {
        Self { values: [[0.0; COLUMNS]; FACE], behind: [[NOTHING; PAIR]; FACE], tame: true, zero: true }
    }
}

impl Default for Multipliers {
    fn default() -> Self {
        Self { values: [[0.0; FACE]; ROWS], behind: [[[NOTHING; QUAD]; FACE]; 2], tame: true, zero: true }
    }
}

impl Factors {
    /// The factors of `rows`. They are large, so they are written where they stay.
    pub(super) fn set(&mut self, rows: &[Row; FACE], style: Style, part: Part) {
        fill_factors(rows, style, part, self);
    }
}

impl Multipliers {
    /// The multipliers of `rows`. They are large, so they are written where they stay.
    pub(super) fn set(&mut self, rows: &[Row; ROWS], style: Style, part: Part) {
        fill_multipliers(rows, style, part, self);
    }
}

/// The values of a row's data and how far their exponents lie behind; whether all are tame.
#[inline(always)]
fn operands(row: &Row, reading: Reading, excess: f32, values: &mut [f32; COLUMNS]) -> ([u8; COLUMNS], bool) {
    let (mut behind, mut wild) = ([0; COLUMNS], 0);
    for j in 0..COLUMNS {
        let (int, exp) = reading.number(row[j]);
        values[j] = int as f32 * excess * f32::from_bits(exp << 23);
        behind[j] = if exp == 0 { NOTHING } else { LARGEST.wrapping_sub(exp) as u8 };
        wild |= u32::from(exp > LARGEST);
    }
    (behind, wild == 0)
}

/// Whether all values are zero, which never have a sign.
#[inline(always)]
fn are_zero(values: &[[f32; COLUMNS]]) -> bool {
    values.as_flattened().iter().fold(0, |all, value| all | value.to_bits()) == 0
}

#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2"))]
fn fill_factors(rows: &[Row], style: Style, part: Part, to: &mut Factors) {
    to.tame = true;
    let reading = Reading::of(style, part);
    for ((row, values), behind) in rows.iter().zip(&mut to.values).zip(&mut to.behind) {
        let (of_row, tame) = operands(row, reading, 1.0 + 1.0 / 8192.0, values);
        behind.as_chunks_mut().0.iter_mut().for_each(|to| *to = of_row);
        to.tame &= tame;
    }
    to.zero = are_zero(&to.values);
}

#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2"))]
fn fill_multipliers(rows: &[Row], style: Style, part: Part, to: &mut Multipliers) {
    to.tame = true;
    let reading = Reading::of(style, part);
    for (i, (row, values)) in rows.iter().zip(&mut to.values).enumerate() {
        let (of_row, tame) = operands(row, reading, 1.0, values);
        for (behind, of_datum) in to.behind[i / 4].iter_mut().zip(of_row) {
            behind[i % 4 * COLUMNS..][..COLUMNS].fill(of_datum);
        }
        to.tame &= tame;
    }
    to.zero = are_zero(&to.values);
}

/// The same operands; if not `FIT`, the compiler does not know that, and a loop reads them in each
/// round. Otherwise it takes them into registers before the loop, of which only AVX-512 has enough:
/// others are copied to the stack.
#[inline(always)]
pub(super) fn operands_of_round<'a, const FIT: bool>(
    operands: (&'a Factors, &'a Multipliers),
) -> (&'a Factors, &'a Multipliers) {
    if FIT { operands } else { std::hint::black_box(operands) }
}

/// Whether products can be computed here at all.
#[inline(always)]
pub(super) fn are_tame(a: &Factors, b: &Multipliers) -> bool {
    a.tame & b.tame
}

/// From how far an exponent lies behind [`NEAREST`] to the exponent, with the bias of Dst.
#[inline(always)]
pub(super) fn nearest(less: i32) -> u8 {
    (NEAREST + BIAS - less) as u8
}

/// Whether products leave rows of Dst as they are: all integers are zero, as in a fidelity phase of
/// numbers like 1.0 that takes no bits of theirs that are set, and no exponent is larger than those
/// of Dst, for which they count nevertheless. Exponents are `less` smaller. Rows of 16 bits are
/// their high and low halves.
#[inline(always)]
pub(super) fn add_nothing(a: &Factors, b: &Multipliers, less: i32, high: &[Row16], low: &[Row16]) -> bool {
    if !(a.zero | b.zero) || !are_tame(a, b) {
        return false;
    }
    let (mut larger, mut odd) = ([0; PAIR], [0; PAIR]);
    let (nearest, of_a) = (nearest(less), least_of(&a.behind));
    for (quad, (high, low)) in high.as_chunks::<4>().0.iter().zip(low.as_chunks::<4>().0).enumerate() {
        let of_b = least_of(&b.behind[quad]);
        let pairs = high.as_chunks::<2>().0.iter().zip(low.as_chunks::<2>().0).zip(of_b.as_chunks().0);
        for ((high, low), of_b) in pairs {
            let (high, low, of_b): (&[u16], &[u16], &[u8; PAIR]) = (high.as_flattened(), low.as_flattened(), of_b);
            let mut old = [0; PAIR];
            for i in 0..PAIR {
                old[i] = high[i] as u8;
            }
            for i in 0..PAIR {
                let exp = nearest.saturating_sub(of_a[i].saturating_add(of_b[i]));
                // What has the largest exponent becomes infinity.
                larger[i] |= exp.saturating_sub(old[i]) | old[i].saturating_sub(u8::MAX - 1);
            }
            for i in 0..PAIR {
                // And what has none zero.
                let without = u16::from(high[i] & 0xFF == 0).wrapping_neg();
                odd[i] |= (high[i] | low[i]) & without;
            }
        }
    }
    larger == [0; PAIR] && odd == [0; PAIR]
}

/// The least bytes of rows.
#[inline(always)]
fn least_of<const N: usize>(rows: &[[u8; N]; FACE]) -> [u8; N] {
    let mut least = [NOTHING; N];
    for row in rows {
        for i in 0..N {
            least[i] = least[i].min(row[i]);
        }
    }
    least
}

/// How far the largest exponents of a group lie behind [`NEAREST`]: of each column of four rows.
#[inline(always)]
pub(super) fn distances<const HALF: usize>(a: &Factors, b: &Multipliers, quad: usize) -> [u8; QUAD] {
    let mut least = [NOTHING; QUAD];
    for k in HALF * TERMS..(HALF + 1) * TERMS {
        let pairs = least.as_chunks_mut::<PAIR>().0.iter_mut().zip(b.behind[quad][k].as_chunks().0);
        for (least, b) in pairs {
            let b: &[u8; PAIR] = b;
            for i in 0..PAIR {
                least[i] = least[i].min(a.behind[k][i].saturating_add(b[i]));
            }
        }
    }
    least
}

/// Whether numbers of f32 do not suffice for the sum of a group.
#[inline(always)]
pub(super) fn is_outside(distance: u8) -> bool {
    (distance.wrapping_sub(ROUNDABLE[0]) >= ROUNDABLE[1]) & (distance != NOTHING)
}

/// The exponents, with their bias, of a quarter of the last places of sums; zero for those of
/// nothing.
#[inline(always)]
pub(super) fn quarters(distances: &[u8; QUAD]) -> [u8; QUAD] {
    let mut quarters = [0; QUAD];
    for i in 0..QUAD {
        quarters[i] = QUARTER.saturating_sub(distances[i]);
    }
    quarters
}

/// The sums of a group.
pub(super) struct Sums {
    /// `1.5 * 2^23` of the last place, and the same with the sum.
    pub(super) magic: [f32; COLUMNS],
    pub(super) sums: [f32; COLUMNS],
    /// A quarter of the last place.
    pub(super) quarter: [f32; COLUMNS],
}

/// The sums of group `HALF` of row `row` of SrcB, whose `quarters` are known. If `FMA` with
/// instructions that multiply and add with one rounding: the product is then exact, and without
/// them it is rounded to a number that is rounded in the same way.
#[inline(always)]
pub(super) fn sums<const FMA: bool, const HALF: usize>(
    a: &Factors,
    b: &Multipliers,
    row: usize,
    quarters: &[u8; QUAD],
) -> Sums {
    let quarters = &quarters.as_chunks::<COLUMNS>().0[row % 4];
    let mut of = Sums { magic: [0.0; COLUMNS], sums: [0.0; COLUMNS], quarter: [0.0; COLUMNS] };
    for j in 0..COLUMNS {
        let quarter = u32::from(quarters[j]) << 23;
        of.quarter[j] = f32::from_bits(quarter);
        of.magic[j] = f32::from_bits(quarter + (25 << 23 | 0x40_0000));
    }
    of.sums = of.magic;
    for k in HALF * TERMS..(HALF + 1) * TERMS {
        for j in 0..COLUMNS {
            of.sums[j] = mul_add::<FMA>(a.values[k][j], b.values[row][k], of.sums[j]);
        }
    }
    of
}

/// `a * b + c`.
#[inline(always)]
pub(super) fn mul_add<const FMA: bool>(a: f32, b: f32, c: f32) -> f32 {
    if FMA { a.mul_add(b, c) } else { a * b + c }
}
