//! Functions that look at sign and exponent: rounding, bounds, signs.

use super::words::*;
use crate::push::push;

/// Bits of a mantissa: from 2^23 on, all numbers are integers.
const MANTISSA: i32 = 23;
const FIRST_INTEGER: f32 = 8_388_608.0;
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
    /// x is no number.
    Nan,
    /// x is infinite.
    Infinite,
    /// x is neither.
    Finite,
}

/// 1 where the test holds for register 0, else 0. -0 is 0.
#[inline(always)]
pub(super) fn test(test: Test) {
    if matches!(test, Test::Nan | Test::Infinite | Test::Finite) {
        return test_size(test);
    }
    let (zero, positive, negative) = match test {
        Test::Zero => (ONE, ZERO, ZERO),
        Test::NotZero => (ZERO, ONE, ONE),
        Test::Negative => (ZERO, ZERO, ONE),
        Test::Positive => (ZERO, ONE, ZERO),
        Test::NotPositive => (ONE, ZERO, ONE),
        _ => (ONE, ONE, ZERO),
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

/// Compares the magnitude of register 0 with infinity.
#[inline(always)]
fn test_size(test: Test) {
    vector! {
        magnitude(0, 1);
        high(2, f32::INFINITY);
        mov(ZERO, 0);
    }
    match test {
        Test::Nan => vector! { if_greater(1, 2); },
        Test::Infinite => vector! { if_at_most(1, 2); if_at_most(2, 1); },
        _ => vector! { if_greater(2, 1); },
    }
    vector! {
        mov(ONE, 0);
        END_IF;
    }
}

/// x times 12 + 1/2, between 0 and 1.
#[inline(always)]
pub(super) fn hard_sigmoid() {
    vector! {
        high(1, 0.5);
        mad(0, C12, 1, 0);
        mov(ZERO, 1);
        min_max(1, 0);
        mov(ONE, 1);
        min_max(0, 1);
    }
}
