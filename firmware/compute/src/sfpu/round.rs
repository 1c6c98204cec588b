//! Functions that look at sign and exponent: rounding, bounds, signs, conversions of integers.

use super::words::*;
use crate::push::push;

/// Bits of a mantissa: from 2^23 on, all numbers are integers.
const MANTISSA: i32 = 23;
const FIRST_INTEGER: f32 = 8_388_608.0;
/// Bits of an integer without its sign.
const INTEGER: i32 = 31;
/// The largest and the smallest one, and this as a number.
const MAX_INTEGER: u32 = 0x7FFF_FFFF;
const MIN_INTEGER: u32 = 0x8000_0000;
const MIN_AS_FLOAT: f32 = -2_147_483_648.0;

/// How a number becomes an integer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum To {
    Nearest,
    Down,
    Up,
    Zero,
}

/// Registers for rounding.
#[inline(always)]
pub(super) fn init() {
    kept_constant(C12, FIRST_INTEGER.to_bits());
}

/// Rounds: a sum with 2^23 has no fraction, to the nearest even number.
#[inline(always)]
pub(super) fn round(to: To) {
    vector! {
        magnitude(0, 1);
        mov(1, 2);
        exponent(0, 3);
        add_and_if_negative(3, -MANTISSA, 3);
        add(1, C12, 1);
        sub(1, C12, 1);
    }
    if to == To::Zero {
        vector! {
            if_greater(1, 2);
            sub(1, ONE, 1);
        }
    }
    vector! {
        END_IF;
        mov(0, 2);
        keep_sign(1, 2);
    }
    // Register 2 is the nearest integer, register 0 the number.
    match to {
        To::Nearest | To::Zero => {}
        To::Down => vector! {
            if_greater(2, 0);
            sub(2, ONE, 2);
            END_IF;
        },
        To::Up => vector! {
            if_greater(0, 2);
            add(2, ONE, 2);
            END_IF;
        },
    }
    vector! { mov(2, 0); }
}

/// Registers for [`clamp`].
#[inline(always)]
pub(super) fn init_clamp(low: u32, high: u32) {
    kept_constant(C12, low);
    kept_constant(C13, high);
}

/// The larger of x and 12, then the smaller of that and 13.
#[inline(always)]
pub(super) fn clamp() {
    vector! {
        mov(C12, 1);
        min_max(1, 0);
        mov(C13, 1);
        min_max(0, 1);
    }
}

/// 1, -1, or 0.
#[inline(always)]
pub(super) fn sign() {
    vector! {
        magnitude(0, 1);
        mov(ONE, 2);
        if_zero(1);
        mov(ZERO, 2);
        END_IF;
        keep_sign(2, 0);
    }
}

/// What is asked of a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Test {
    /// x = 0.
    Zero,
    /// x /= 0.
    NotZero,
    /// x < 0.
    Negative,
    /// x > 0.
    Positive,
    /// x <= 0.
    NotPositive,
    /// x >= 0.
    NotNegative,
}

/// 1 where the test holds for register 0, else 0. -0 is 0.
#[inline(always)]
pub(super) fn test(test: Test) {
    let (zero, positive, negative) = match test {
        Test::Zero => (ONE, ZERO, ZERO),
        Test::NotZero => (ZERO, ONE, ONE),
        Test::Negative => (ZERO, ZERO, ONE),
        Test::Positive => (ZERO, ONE, ZERO),
        Test::NotPositive => (ONE, ZERO, ONE),
        Test::NotNegative => (ONE, ONE, ZERO),
    };
    vector! { magnitude(0, 1); }
    push(mov(zero, 2));
    vector! { if_not_zero(1); }
    push(mov(positive, 2));
    vector! { if_negative(0); }
    push(mov(negative, 2));
    vector! {
        END_IF;
        mov(2, 0);
    }
}

/// A number without its fraction as an integer in two's complement; the integer next to it where it
/// is beyond all of them.
#[inline(always)]
pub(super) fn to_integer() {
    vector! {
        mov(ZERO, 3);
        exponent(0, 1);
        if_not_negative(1);
        mantissa(0, 3);
        add_integer_number(1, -MANTISSA, 2);
        shift_by(2, 3);
        add_integer_number(1, -INTEGER, 2);
        if_not_negative(2);
        low_half(3, MAX_INTEGER);
        high_half(3, MAX_INTEGER);
        if_negative(0);
        high_bits(3, MIN_INTEGER >> 16);
        END_IF;
        if_negative(0);
        sub_integer(ZERO, 3);
        END_IF;
        mov(3, 0);
    }
}

/// An integer in two's complement as the number next to it. -2^31 has no form with sign and
/// magnitude: it comes out as a zero with a sign.
#[inline(always)]
pub(super) fn from_integer() {
    vector! {
        sign_magnitude(0, 1);
        to_float(1, 2);
        shift(1, 1);
        if_zero(1);
        if_negative(0);
        high(2, MIN_AS_FLOAT);
        END_IF;
        mov(2, 0);
    }
}
