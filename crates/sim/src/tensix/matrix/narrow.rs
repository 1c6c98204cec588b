//! Matrix products into rows of BF16 in Dst, all in numbers of f32.
//!
//! What the result is says `sum.rs`; the numbers of ordinary programs allow a shorter way to it:
//! sums that are multiples of a common place and have less than 24 bits are exact in f32.

// Loops over columns of several arrays vectorise only with a counter.
#![expect(clippy::needless_range_loop)]

use super::format::{Ints, NO_EXPONENT};
use super::sum::{BIAS, Factors, Multipliers, NOTHING, POINT, ROWS, ints_of_eight, largest_of_eight, least_exponent};
use crate::tensix::dst::{COLUMNS, Row16};
use crate::tensix::number::{bf16_of_dst, dst_of_bf16};
use multiversion::multiversion;
use multiversion::target::target_cfg_f;

/// Largest exponents of a sum, without a bias, between which f32 has `1.5 * 2^23` of the last place
/// of the sum, and all that its scale cannot hold rounds to zero.
const SUMMABLE: [i16; 2] = [-100, 100];
/// Bits of BF16.
const BITS: u32 = 8;
/// No exponent, here.
const NONE: i16 = NO_EXPONENT as i16;

/// Adds the products of SrcA and eight rows of SrcB to the rows `dst`, data of Dst; `valid` has a
/// bit for each row that was not cleared. Returns the rows, one bit for each, that are left as they
/// are because numbers of f32 do not suffice.
#[multiversion(targets("x86_64+avx2+fma"))]
pub(super) fn multiply_bf16(a: &Factors, b: &Multipliers, less: i32, valid: u8, dst: &mut [Row16; ROWS]) -> u8 {
    if target_cfg_f!(target_feature = "fma") {
        multiply::<true>(a, b, less, valid, dst)
    } else {
        multiply::<false>(a, b, less, valid, dst)
    }
}

#[inline(always)]
pub(super) fn multiply<const FMA: bool>(
    a: &Factors,
    b: &Multipliers,
    less: i32,
    valid: u8,
    dst: &mut [Row16; ROWS],
) -> u8 {
    let mut left = 0;
    for (row, dst) in dst.iter_mut().enumerate() {
        if valid >> row & 1 == 0 {
            *dst = [0; COLUMNS];
        }
        let is_done = a.tame && b.tame && multiply_row::<FMA>(a, b, row, less, dst);
        left |= u8::from(!is_done) << row;
    }
    left
}

/// The sum of a group: integers, and exponents without a bias.
struct Group {
    ints: Ints,
    exps: [i16; COLUMNS],
}

#[inline(always)]
fn group<const FMA: bool, const HALF: usize>(
    a: &Factors,
    b: &Multipliers,
    row: usize,
    less: i32,
    to: &mut Group,
) -> bool {
    if a.zero[HALF] || b.zero[row][HALF] {
        return true;
    }
    let largest = largest_of_eight::<HALF>(a, b, row);
    let less = 2 * BIAS as i16 + less as i16;
    let least = least_exponent(BITS) as i16;
    for j in 0..COLUMNS {
        let exp = largest[j] - less;
        // A group below the format's exponents counts as nothing.
        to.exps[j] = if (largest[j] < NOTHING) | (exp < least) { NONE } else { exp };
    }
    ints_of_eight::<FMA, HALF>(a, b, row, &largest, &mut to.ints)
}

#[inline(always)]
fn multiply_row<const FMA: bool>(a: &Factors, b: &Multipliers, row: usize, less: i32, dst: &mut Row16) -> bool {
    let mut first = Group { ints: [0; COLUMNS], exps: [NONE; COLUMNS] };
    let mut second = Group { ints: [0; COLUMNS], exps: [NONE; COLUMNS] };
    if !group::<FMA, 0>(a, b, row, less, &mut first) || !group::<FMA, 1>(a, b, row, less, &mut second) {
        return false;
    }
    let mut largest = [0i16; COLUMNS];
    let mut outside = false;
    for j in 0..COLUMNS {
        let exp = (bf16_of_dst(dst[j]) >> 7 & 0xFF).cast_signed();
        let exp = if exp == 0 { NONE } else { exp - BIAS as i16 };
        let exp = exp.max(first.exps[j]).max(second.exps[j]);
        outside |= (exp != NONE) & ((exp < SUMMABLE[0]) | (exp > SUMMABLE[1]));
        // Where there is nothing to add up, any will do.
        largest[j] = if exp == NONE { 0 } else { exp };
    }
    if outside {
        return false;
    }
    let mut sums = [0.0f32; COLUMNS];
    for j in 0..COLUMNS {
        let magic = f32::from_bits((i32::from(largest[j]) + BIAS - POINT + 23).cast_unsigned() << 23 | 0x40_0000);
        let old = bf16_of_dst(dst[j]);
        let old = f32::from_bits(if old & 0x7F80 == 0 { 0 } else { u32::from(old) << 16 });
        // Ties away from zero: the excess is less than what lies between a number and the next tie.
        let old = old * (1.0 + 1.0 / 8192.0) + magic - magic;
        let of_first = scaled(first.ints[j], first.exps[j]) + magic - magic;
        let of_second = scaled(second.ints[j], second.exps[j]) + magic - magic;
        sums[j] = of_first + of_second + old;
    }
    for j in 0..COLUMNS {
        // To the bits of BF16, ties away from zero.
        dst[j] = dst_of_bf16((sums[j].to_bits().wrapping_add(0x8000) >> 16) as u16);
    }
    true
}

/// The sum of a group, a little larger, so that ties round up; the excess is less than the sum's
/// last place.
#[inline(always)]
fn scaled(int: i32, exp: i16) -> f32 {
    let scale = (i32::from(exp) + BIAS - POINT).max(0).cast_unsigned() << 23;
    (int as f32 + 0.25) * f32::from_bits(scale)
}
