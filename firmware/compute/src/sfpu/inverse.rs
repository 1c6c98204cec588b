//! Inverse trigonometric functions.

use super::Round;
use super::power::{NAN, reciprocal, root};
use super::words::*;
use core::f32::consts::{FRAC_PI_2, PI};

/// atan x / x by x^2 on [-1, 1], from x^0 on: the least relative error, 1.5e-8.
const ATAN: [f32; 9] = [
    1.0,
    -0.333_330_73,
    0.199_926_2,
    -0.142_036_47,
    0.106_409_446,
    -0.075_043_19,
    0.042_691_82,
    -0.016_068_818,
    0.002_849_936_7,
];
/// asin x / x by x^2 on [-1/2, 1/2], from x^0 on: the least relative error, 4.4e-9.
const ASIN: [f32; 6] = [1.0, 0.166_667_9, 0.074_944_345, 0.045_550_223, 0.023_857_96, 0.042_636_013];

/// atan x, or pi / 2 - atan(1 / x) beyond 1.
#[inline(always)]
pub(super) fn atan(round: Round) {
    vector! {
        magnitude(0, 4);
        mov(4, 0);
    }
    reciprocal();
    vector! {
        mov(ONE, 5);
        if_at_most(4, 5);
        mov(4, 0);
        END_IF;
        mul(0, 0, 1);
    }
    polynomial!(ATAN[8], ATAN[7], ATAN[6], ATAN[5], ATAN[4], ATAN[3], ATAN[2], ATAN[1], ATAN[0]);
    vector! {
        mul(2, 0, 2);
        low_half(7, FRAC_PI_2.to_bits());
        high_half(7, FRAC_PI_2.to_bits());
        if_greater(4, 5);
        sub(7, 2, 2);
        END_IF;
    }
    round.load(0);
    vector! { keep_sign(2, 0); }
}

/// Register 5 becomes the magnitude of register 0; register 2 the arc sine of it up to 1/2, beyond
/// that of sqrt((1 - x) / 2).
#[inline(always)]
fn reduced() {
    vector! {
        magnitude(0, 5);
        high(1, 0.5);
        nmad(5, 1, 1, 0);
    }
    root();
    vector! {
        mul(0, 1, 6);
        mov(0, 1);
        high(7, 0.5);
        if_at_most(5, 7);
        mov(5, 6);
        mul(5, 5, 1);
        END_IF;
    }
    polynomial!(ASIN[5], ASIN[4], ASIN[3], ASIN[2], ASIN[1], ASIN[0]);
    vector! {
        mul(2, 6, 2);
        // Beyond 1/2, twice that.
        high(7, 0.5);
        if_greater(5, 7);
        add(2, 2, 2);
        END_IF;
    }
}

/// Register 0 becomes no number where register 5 is beyond 1.
#[inline(always)]
fn within_one() {
    vector! {
        mov(ONE, 7);
        if_greater(5, 7);
        high_bits(0, NAN);
        END_IF;
    }
}

/// asin x, or pi / 2 - 2 asin(sqrt((1 - x) / 2)) beyond 1/2.
#[inline(always)]
pub(super) fn asin(round: Round) {
    reduced();
    vector! {
        low_half(1, FRAC_PI_2.to_bits());
        high_half(1, FRAC_PI_2.to_bits());
        if_greater(5, 7);
        sub(1, 2, 2);
        END_IF;
    }
    round.load(0);
    vector! { keep_sign(2, 0); }
    within_one();
}

/// pi / 2 - asin x; beyond 1/2 twice the arc sine of the root, or pi less that.
#[inline(always)]
pub(super) fn acos(round: Round) {
    reduced();
    round.load(0);
    vector! {
        mov(2, 3);
        low_half(1, PI.to_bits());
        high_half(1, PI.to_bits());
        if_negative(0);
        sub(1, 2, 3);
        END_IF;
        keep_sign(2, 0);
        low_half(1, FRAC_PI_2.to_bits());
        high_half(1, FRAC_PI_2.to_bits());
        if_at_most(5, 7);
        sub(1, 0, 3);
        END_IF;
        mov(3, 0);
    }
    within_one();
}
