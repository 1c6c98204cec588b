//! The sum of products that four phases of the matrix unit accumulate in a Dst of 32 bits.
//!
//! The inner dimension is taken by tiles of 32, each in four phases, each phase by halves of 16,
//! each half in two groups of eight products. A phase multiplies the high five or the next five
//! bits of the second operand's mantissa by the high seven or the last bits of the first one's. The
//! products of a group are rounded to ten bits behind the point of the largest one's exponent;
//! both groups and what Dst holds are added up with 23 bits behind the point of the largest of
//! these, and the sum is rounded.

use tilework_dtype::convert::{bf16_from_f32, f32_from_bf16};

/// `mantissa * 2^exponent`.
type Number = (i64, i32);

/// `x / 2^places`, to the nearest; `up`: ties go up, else away from zero.
fn divide(x: i64, places: i32, up: bool) -> i64 {
    if places <= 0 {
        return x << -places;
    }
    if places > 60 {
        return 0;
    }
    let unit = 1i64 << places;
    let (floor, rest) = (x.div_euclid(unit), x.rem_euclid(unit));
    floor + i64::from(2 * rest > unit || (2 * rest == unit && (up || x > 0)))
}

/// The mantissa of eleven bits with its sign, and the exponent; a number that is not
/// normal is zero.
fn parts(x: f32) -> Option<Number> {
    let bits = x.to_bits();
    let exponent = (bits >> 23 & 0xFF).cast_signed();
    let mantissa = i64::from(bits >> 13 & 0x3FF | 0x400);
    (exponent != 0).then_some((if x < 0.0 { -mantissa } else { mantissa }, exponent))
}

/// The bits of a mantissa from `low` on, with its sign.
fn part(mantissa: i64, low: u32, count: u32) -> i64 {
    (mantissa.abs() >> low & ((1 << count) - 1)) * mantissa.signum()
}

/// The sum of up to eight products, with ten bits behind the point.
fn group(first: &[f32], second: &[f32], phase: usize) -> Option<Number> {
    let terms = first.iter().zip(second).filter_map(|(&b, &a)| {
        let ((a, a_exponent), (b, b_exponent)) = (parts(a)?, parts(b)?);
        let a = if phase.is_multiple_of(2) { part(a, 6, 5) } else { part(a, 1, 5) };
        let b = if phase < 2 { part(b, 4, 7) } else { part(b, 0, 4) << 3 };
        Some((a * b, a_exponent + b_exponent - 254 - [0, 5, 7, 12][phase]))
    });
    let terms: Vec<Number> = terms.collect();
    let largest = terms.iter().map(|t| t.1).max()?;
    Some((terms.iter().map(|t| divide(t.0, largest - t.1, false)).sum(), largest))
}

/// Adds the groups to an element of Dst.
fn add(dst: f32, groups: [Option<Number>; 2]) -> f32 {
    let bits = dst.to_bits();
    let exponent = (bits >> 23 & 0xFF).cast_signed();
    let magnitude = i64::from(bits & 0x7F_FFFF | 0x80_0000);
    let old = (exponent != 0).then_some((if dst < 0.0 { -magnitude } else { magnitude }, exponent - 127));
    let largest = groups.iter().flatten().chain(&old).map(|g| g.1).max();
    let Some(largest) = largest else { return 0.0 };
    let sum = groups.iter().flatten().map(|g| divide(g.0, largest - g.1 + 10 - 23, true)).sum::<i64>()
        + old.map_or(0, |d| divide(d.0, largest - d.1, false));
    let width = (64 - sum.unsigned_abs().leading_zeros()).cast_signed();
    let drop = (width - 24).max(0);
    // Exact: 24 bits.
    divide(sum, drop, false) as f32 * (f64::from(drop + largest - 23)).exp2() as f32
}

/// The sum over the inner dimension of a row of the first and a column of the second operand.
pub(crate) fn sum(row: &[f32], column: &[f32]) -> f32 {
    let mut dst = 0.0;
    for (row, column) in row.chunks(32).zip(column.chunks(32)) {
        for phase in 0..4 {
            for (row, column) in row.chunks(16).zip(column.chunks(16)) {
                let half = |i: usize| group(&row[i..i + 8], &column[i..i + 8], phase);
                dst = add(dst, [half(0), half(8)]);
            }
        }
    }
    dst
}

/// What the packer makes of an element: the nearest bfloat16, the even one of two.
pub(crate) fn bf16_of(x: f32) -> f32 {
    f32_from_bf16(bf16_from_f32(x))
}
