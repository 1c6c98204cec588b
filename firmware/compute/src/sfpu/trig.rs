//! Sine and cosine: x = k pi + f, and a polynomial gives the sine of f.

use super::words::*;
use core::f32::consts::{FRAC_1_PI, FRAC_2_PI};

/// 1.5 x 2^23: a sum with it has the other operand, rounded, in its low bits.
const ROUNDER: f32 = 12_582_912.0;
/// Three parts of pi; the products of the first two with k are exact up to k = 2^12.
const PI: [f32; 3] = [3.140_625, 9.675_026e-4, 1.509_958e-7];
/// (sin f - f) / f^3 by f^2 on [-pi/2, pi/2], from f^0 on: the least relative error of the sine,
/// 9e-9.
const SIN: [f32; 4] = [-0.166_666_58, 0.008_333_013, -1.980_552_4e-4, 2.596_496_3e-6];
/// tan f / f by f^2 on [-pi/4, pi/4], from f^0 on: the least relative error, 1.6e-8.
const TAN: [f32; 7] = [1.0, 0.333_330_76, 0.133_399, 0.053_348_39, 0.024_603_48, 0.002_891_582, 0.009_500_767];
/// Bits of an integer above the lowest.
const LOWEST_TO_SIGN: i32 = 31;

/// Registers for [`sin`].
#[inline(never)]
pub(super) fn init() {
    kept_constant(C12, FRAC_1_PI.to_bits());
    kept_constant(C13, ROUNDER.to_bits());
    kept_constant(C14, PI[0].to_bits());
    for (vd, value) in [(3, PI[1]), (7, PI[2]), (4, SIN[0]), (5, SIN[1]), (6, SIN[2])] {
        constant(vd, value.to_bits());
    }
}

/// The sine of register 0.
#[inline(always)]
pub(super) fn sin() {
    vector! {
        mad(0, C12, C13, 1);
        sub(1, C13, 2);
    }
    of_rest();
}

/// The cosine of register 0: the sine a quarter turn on, x = (k - 1/2) pi + f.
#[inline(always)]
pub(super) fn cos() {
    vector! {
        high(2, 0.5);
        mad(0, C12, 2, 1);
        add(1, C13, 1);
        sub(1, C13, 2);
        add_number(2, -0.5);
    }
    of_rest();
}

/// Register 0 becomes the sine of what it is beyond register 2 times pi, with the other sign where
/// register 1 is odd.
#[inline(always)]
fn of_rest() {
    vector! {
        nmad(2, C14, 0, 0);
        nmad(2, 3, 0, 0);
        nmad(2, 7, 0, 0);
        shift(1, LOWEST_TO_SIGN);
        xor(1, 0);
        mul(0, 0, 1);
        low_half(2, SIN[3].to_bits());
        high_half(2, SIN[3].to_bits());
        mad(2, 1, 6, 2);
        mad(2, 1, 5, 2);
        mad(2, 1, 4, 2);
        mul(2, 1, 2);
        mad(2, 0, 0, 0);
    }
}

/// Registers for [`tan`].
#[inline(never)]
pub(super) fn init_tan() {
    kept_constant(C12, FRAC_2_PI.to_bits());
    kept_constant(C13, ROUNDER.to_bits());
    kept_constant(C14, (PI[0] / 2.0).to_bits());
    constant(3, (PI[1] / 2.0).to_bits());
    constant(4, (PI[2] / 2.0).to_bits());
}

/// The tangent of register 0: x = k pi / 2 + f, and -1 / tan f where k is odd.
#[inline(always)]
pub(super) fn tan() {
    vector! {
        mad(0, C12, C13, 1);
        sub(1, C13, 2);
        nmad(2, C14, 0, 0);
        nmad(2, 3, 0, 0);
        nmad(2, 4, 0, 6);
        mov(1, 5);
        shift(5, LOWEST_TO_SIGN);
        mul(6, 6, 1);
    }
    polynomial!(TAN[6], TAN[5], TAN[4], TAN[3], TAN[2], TAN[1], TAN[0]);
    vector! {
        mul(2, 6, 0);
        if_negative(5);
        approximate_reciprocal(0, 1);
        nmad(0, 1, ONE, 2);
        mad(1, 2, 1, 1);
        nmad(0, 1, ONE, 2);
        mad(1, 2, 1, 1);
        negative(1, 0);
        END_IF;
    }
}
