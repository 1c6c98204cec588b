//! Reciprocal, roots, powers and the logarithm.

use super::Round;
use super::words::*;
use core::f32::consts::{LN_2, LOG2_E, LOG10_2, LOG10_E};

/// Bits of the first approximation of 1 / sqrt(1), from which half of the argument's are taken
/// (public folklore: C. Lomont, "Fast inverse square root", 2003).
const RSQRT: u32 = 0x5F37_59DF;
/// (ln(1 + t) - t) / t^2, from t^0 on, where 1 + t is from sqrt(1/2) to sqrt(2): the least relative
/// error of the logarithm, 6.4e-7.
const LOG: [f32; 7] =
    [-0.499_991_73, 0.333_332_58, -0.250_195_54, 0.199_696_8, -0.167_815_77, 0.155_750_69, -0.106_769_085];
/// The square root of two, in the eight bits of a short constant.
pub(super) const SQRT_2: f32 = 1.414_062_5;
/// High halves: of the negative number next to zero, the largest number that is not normal, and the
/// number with quiet bit that is none.
const FIRST_NEGATIVE: u32 = 0x8080;
const LAST_DENORMAL: u32 = 0x007F;
pub(super) const NAN: u32 = 0x7FC0;
/// The biased exponents of numbers from 1 and from 1/2 on.
pub(super) const FROM_ONE: u32 = 127;
pub(super) const FROM_HALF: u32 = 126;

/// The hardware's approximation r, then twice r + r (1 - x r) where that is a number.
#[inline(always)]
pub(super) fn reciprocal() {
    vector! {
        approximate_reciprocal(0, 1);
        nmad(0, 1, ONE, 2);
        exponent_and_if_negative(2, 3);
        mad(1, 2, 1, 1);
        nmad(0, 1, ONE, 2);
        mad(1, 2, 1, 1);
        END_IF;
        mov(1, 0);
    }
}

/// Registers for [`rsqrt`] of the argument plus `added`.
#[inline(never)]
pub(super) fn init_root(added: u32) {
    kept_constant(C12, 1.5f32.to_bits());
    kept_constant(C13, 0.5f32.to_bits());
    kept_constant(C14, added);
    constant(4, RSQRT);
}

/// Register 1 becomes the reciprocal of the root of register 0: an approximation by half the
/// exponent, then r (1.5 - x r r / 2) three times. Where x is infinite it stays small.
#[inline(always)]
pub(super) fn root() {
    vector! {
        mov(0, 1);
        shift(1, -1);
        sub_integer(4, 1);
        mul(1, 0, 3);
        mul(3, 1, 3);
        nmad(3, C13, C12, 3);
        if_not_negative(3);
        mul(1, 3, 1);
        mul(1, 0, 3);
        mul(3, 1, 3);
        nmad(3, C13, C12, 3);
        mul(1, 3, 1);
        mul(1, 0, 3);
        mul(3, 1, 3);
        nmad(3, C13, C12, 3);
        mul(1, 3, 1);
        END_IF;
    }
}

/// Register 0 becomes register 1 or, where register 0 is negative, no number.
#[inline(always)]
fn unless_negative() {
    vector! {
        high_bits(2, FIRST_NEGATIVE);
        if_at_most(0, 2);
        high_bits(1, NAN);
        END_IF;
        mov(1, 0);
    }
}

/// 1 / sqrt(x + added).
#[inline(always)]
pub(super) fn rsqrt() {
    vector! { add(0, C14, 0); }
    root();
    unless_negative();
}

/// sqrt(x) = x / sqrt(x).
#[inline(always)]
pub(super) fn sqrt() {
    root();
    vector! { mul(0, 1, 1); }
    unless_negative();
}

/// Registers for the logarithm.
#[inline(never)]
pub(super) fn init_log() {
    for (vd, value) in [C12, C13, C14, 4, 5, 6, 7].into_iter().zip(LOG) {
        if vd >= C12 { kept_constant(vd, value.to_bits()) } else { constant(vd, value.to_bits()) }
    }
}

/// Base of a logarithm.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Base {
    E,
    Two,
    Ten,
}

/// ln(2^e m) = e ln 2 + ln m, with m around 1; register 0 keeps the argument. `less_one`: the
/// argument is one more than that of the round, whose small values it has lost.
#[inline(always)]
pub(super) fn log(base: Base, less_one: Option<Round>) {
    if less_one.is_some() {
        vector! { add(0, ONE, 0); }
    }
    vector! {
        exponent(0, 1);
        set_exponent(0, FROM_ONE, 2);
        high(3, SQRT_2);
        if_greater(2, 3);
        set_exponent(2, FROM_HALF, 2);
        add_integer_number(1, 1, 1);
        END_IF;
        sub(2, ONE, 2);
    }
    if let Some(round) = less_one {
        vector! { if_zero(1); }
        round.load(2);
        vector! { END_IF; }
    }
    vector! {
        sign_magnitude(1, 1);
        to_float(1, 1);
        mad(7, 2, 6, 3);
        mad(3, 2, 5, 3);
        mad(3, 2, 4, 3);
        mad(3, 2, C14, 3);
        mad(3, 2, C13, 3);
        mad(3, 2, C12, 3);
        mad(3, 2, ONE, 3);
        mul(3, 2, 3);
    }
    match base {
        Base::E => vector! {
            low_half(2, LN_2.to_bits());
            high_half(2, LN_2.to_bits());
            mad(1, 2, 3, 3);
        },
        Base::Two => vector! {
            low_half(2, LOG2_E.to_bits());
            high_half(2, LOG2_E.to_bits());
            mad(3, 2, 1, 3);
        },
        Base::Ten => vector! {
            low_half(2, LOG10_E.to_bits());
            high_half(2, LOG10_E.to_bits());
            mul(3, 2, 3);
            low_half(2, LOG10_2.to_bits());
            high_half(2, LOG10_2.to_bits());
            mad(1, 2, 3, 3);
        },
    }
    vector! {
        // Zero, then negative numbers; then infinity and what is no number.
        high_bits(2, LAST_DENORMAL);
        if_at_most(0, 2);
        high(3, f32::NEG_INFINITY);
        high_bits(2, FIRST_NEGATIVE);
        if_at_most(0, 2);
        high_bits(3, NAN);
        END_IF;
        high(2, f32::INFINITY);
        if_at_most(2, 0);
        mov(0, 3);
        END_IF;
        mov(3, 0);
    }
}

/// x to the power of `n`: squares, and their products.
#[inline(always)]
pub(super) fn integer_power(n: u32) {
    vector! { mov(ONE, 1); }
    let mut left = n;
    while left != 0 {
        if left % 2 != 0 {
            vector! { mul(1, 0, 1); }
        }
        left /= 2;
        if left != 0 {
            vector! { mul(0, 0, 0); }
        }
    }
    vector! { mov(1, 0); }
}
