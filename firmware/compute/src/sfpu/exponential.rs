//! Exponentials and what is made of them.
//!
//! 2^y = 2^k 2^f, where k is the integer next to y: k goes to the exponent by integer addition, and
//! a polynomial gives 2^f.

use super::Round;
use super::words::*;
use core::f32::consts::LOG2_E;

/// 1.5 x 2^23: a sum with it has the other operand, rounded, in its low bits.
pub(super) const ROUNDER: f32 = 12_582_912.0;
/// Bits of a mantissa.
pub(super) const MANTISSA: i32 = 23;
/// (2^f - 1) / f on [-0.5, 0.5], from f^0 on: the least relative error of 2^f, 9.2e-8.
pub(super) const EXP2: [f32; 5] = [0.693_147, 0.240_222_42, 0.055_507_337, 0.009_671_513, 0.001_326_472_7];
/// x q(x^2) is the logarithm of the odds of x under the normal distribution, from x^0 on: the least
/// error of x times the distribution up to x^2 = 20.25, 5.9e-6.
const ODDS: [f32; 6] = [1.595_658_8, 0.072_951_53, -2.422_306e-4, -6.893_212e-5, 3.573_649_5e-6, -5.988_634_5e-8];
const ODDS_END: f32 = 20.25;
/// The same for the hyperbolic form: twice sqrt(2 / pi), and that times 0.044715.
const TANH_ODDS: [f32; 2] = [1.595_769_1, 0.071_354_814];
/// From here on e^-x adds nothing to one; its negative is the last argument whose power is normal.
const LOGISTIC_END: f32 = 87.0;
/// Down to here 1 / (1 + e^-x) is not zero, and the power is finite.
const ZERO_FROM: f32 = -88.5;
/// e to the power of it is infinite.
const INFINITE: f32 = 89.0;

/// Registers for 2 to the power of `scale` times register 0: 12 to 14 and 3 to 6.
#[inline(never)]
pub(super) fn init(scale: f32) {
    kept_constant(C12, scale.to_bits());
    kept_constant(C13, ROUNDER.to_bits());
    kept_constant(C14, EXP2[0].to_bits());
    for (vd, value) in (3..).zip(&EXP2[1..]) {
        constant(vd, value.to_bits());
    }
}
/// For e to the power of register 0.
pub(super) const BASE_E: f32 = LOG2_E;

/// Register 0 becomes f, register 1 has k in its low bits, register 2 becomes (2^f - 1) / f.
#[inline(always)]
fn split() {
    vector! {
        mad(0, C12, C13, 1);
        sub(1, C13, 2);
        msub(0, C12, 2, 0);
        mad(6, 0, 5, 2);
        mad(2, 0, 4, 2);
        mad(2, 0, 3, 2);
        mad(2, 0, C14, 2);
    }
}

/// Register 0 becomes its power, whose exponent must be in range.
#[inline(always)]
pub(super) fn power() {
    split();
    vector! {
        mad(2, 0, ONE, 0);
        shift(1, MANTISSA);
        add_integer(1, 0);
    }
}

/// Register 0 becomes its power less one, as exact next to zero as elsewhere.
#[inline(always)]
fn power_less_one() {
    split();
    // By halves, because 2^128 is no number.
    vector! {
        mul(2, 0, 2);
        high(7, 0.5);
        shift(1, MANTISSA);
        add_integer(7, 1);
        sub(1, 7, 0);
        mad(1, 2, 0, 0);
        add(0, 0, 0);
    }
}

/// Register 0 is kept between two numbers of eight bits.
macro_rules! clamp {
    ($low:expr, $high:expr) => {
        vector! {
            high(7, $low);
            min_max(7, 0);
            high(7, $high);
            min_max(0, 7);
        }
    };
}

/// Powers of two and of e: register 0 becomes its power. Powers that are too small or too large
/// come out with a sign, or above infinity.
#[inline(always)]
pub(super) fn any_power(base_e: bool) {
    if base_e {
        clamp!(-100.0, INFINITE);
    } else {
        clamp!(-140.0, 128.0);
    }
    power();
    clamp!(0.0, f32::INFINITY);
}

/// e^x - 1.
#[inline(always)]
pub(super) fn expm1() {
    clamp!(-LOGISTIC_END, INFINITE);
    power_less_one();
}

/// Register 2 becomes the reciprocal of register 1, which is at least 1; changes 7.
#[inline(always)]
pub(super) fn reciprocal() {
    vector! {
        approximate_reciprocal(1, 2);
        nmad(1, 2, ONE, 7);
        mad(2, 7, 2, 2);
        nmad(1, 2, ONE, 7);
        mad(2, 7, 2, 2);
    }
}

/// Register 2 becomes 1 / (1 + the power of register 0); the power has a negative scale.
#[inline(always)]
fn logistic() {
    clamp!(ZERO_FROM, LOGISTIC_END);
    power();
    vector! { add(0, ONE, 1); }
    reciprocal();
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub(super) fn sigmoid() {
    logistic();
    vector! { mov(2, 0); }
}

/// x / (1 + e^-x).
#[inline(always)]
pub(super) fn silu(round: Round) {
    logistic();
    round.load(1);
    vector! { mul(1, 2, 0); }
}

/// x times the normal distribution.
#[inline(always)]
pub(super) fn gelu(round: Round) {
    vector! {
        mul(0, 0, 1);
        high(7, ODDS_END);
        min_max(1, 7);
    }
    polynomial!(ODDS[5], ODDS[4], ODDS[3], ODDS[2], ODDS[1], ODDS[0]);
    vector! { mul(0, 2, 0); }
    silu(round);
}

/// The same by a hyperbolic tangent.
#[inline(always)]
pub(super) fn gelu_tanh(round: Round) {
    vector! {
        mul(0, 0, 1);
    }
    polynomial!(TANH_ODDS[1], TANH_ODDS[0]);
    vector! { mul(0, 2, 0); }
    silu(round);
}

/// (1 - e^-2x) / (1 + e^-2x), with the sign of x.
#[inline(always)]
pub(super) fn tanh(round: Round) {
    vector! {
        magnitude(0, 0);
        high(7, LOGISTIC_END / 2.0);
        min_max(0, 7);
    }
    power_less_one();
    vector! {
        high(1, 2.0);
        add(0, 1, 1);
    }
    reciprocal();
    vector! { nmad(0, 2, ZERO, 1); }
    round.load(0);
    vector! { keep_sign(1, 0); }
}

/// x, or `alpha` (e^x - 1) where x is negative.
#[inline(always)]
pub(super) fn elu(round: Round, alpha: u32) {
    expm1();
    constant(1, alpha);
    vector! { mul(0, 1, 2); }
    round.load(0);
    vector! {
        if_negative(0);
        mov(2, 0);
        END_IF;
    }
}
