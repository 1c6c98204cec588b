//! Powers with any exponent, remainders, and division of integers.

use super::exponential::{EXP2, MANTISSA, ROUNDER};
use super::integer::Integer;
use super::power::{FROM_HALF, FROM_ONE, NAN, SQRT_2, reciprocal};
use super::words::*;
use crate::push::push;

/// log2(1 + t) / t, from t^0 on, where 1 + t is from sqrt(1/2) to sqrt(2): the least relative
/// error, 2.6e-8.
const LOG2: [f32; 9] = [
    1.442_695,
    -0.721_347_35,
    0.480_910_63,
    -0.360_703_67,
    0.287_916_2,
    -0.238_945_11,
    0.215_716_38,
    -0.207_268_23,
    0.125_833_26,
];
/// More than the exponent of any number; the logarithm of zero and of infinity.
const BEYOND: f32 = 1e9;
/// Powers of two that are infinite, and that are not normal.
const INFINITE_FROM: f32 = 128.0;
const ZERO_BELOW: f32 = -126.0;
/// Bits of an integer above the lowest.
const LOWEST_TO_SIGN: i32 = 31;
/// Bits of an f32 without the lower twelve of its mantissa.
const UPPER_HALF_OF_MANTISSA: u32 = 0xFFFF_F000;
/// From here on numbers have no fraction; the sum of a smaller one with it has none.
const FIRST_INTEGER: f32 = 8_388_608.0;

/// Register 0 to the power of register 1: 2 to the power of b (e + log2 m), where 2^e m is the
/// magnitude of a.
#[inline(always)]
pub(super) fn power() {
    vector! {
        mov(1, 5);
        magnitude(0, 4);
        // The exponent to register 3, the mantissa less one to register 1.
        exponent(4, 3);
        set_exponent(4, FROM_ONE, 1);
        high(7, SQRT_2);
        if_greater(1, 7);
        set_exponent(1, FROM_HALF, 1);
        add_integer_number(3, 1, 3);
        END_IF;
        sign_magnitude(3, 3);
        to_float(3, 3);
        high(7, f32::INFINITY);
        if_at_most(7, 4);
        high(3, BEYOND);
        END_IF;
        add(4, ZERO, 4);
        if_zero(4);
        high(3, -BEYOND);
        END_IF;
        sub(1, ONE, 1);
    }
    polynomial!(LOG2[8], LOG2[7], LOG2[6], LOG2[5], LOG2[4], LOG2[3], LOG2[2], LOG2[1], LOG2[0]);
    vector! {
        mul(2, 1, 2);
        mul(2, 5, 2);
        // The logarithm of the result to register 6, its integer to 4, the rest to 1.
        mad(5, 3, 2, 6);
        mov(6, 4);
        high(7, INFINITE_FROM);
        min_max(4, 7);
        PAUSE;
        high(7, ZERO_BELOW - 2.0);
        min_max(7, 4);
        PAUSE;
        low_half(7, ROUNDER.to_bits());
        high_half(7, ROUNDER.to_bits());
        add(4, 7, 4);
        sub(4, 7, 7);
        msub(5, 3, 7, 1);
        add(1, 2, 1);
        high(7, 0.75);
        min_max(1, 7);
        PAUSE;
        high(7, -0.75);
        min_max(7, 1);
        PAUSE;
        shift(4, MANTISSA);
    }
    polynomial!(EXP2[4], EXP2[3], EXP2[2], EXP2[1], EXP2[0]);
    vector! {
        mad(2, 1, ONE, 2);
        PAUSE;
        add_integer(4, 2);
        high(7, INFINITE_FROM);
        if_at_most(7, 6);
        high(2, f32::INFINITY);
        END_IF;
        high(7, ZERO_BELOW);
        if_at_most(6, 7);
        mov(ZERO, 2);
        END_IF;
        // Anything to the power of zero, and one to any power.
        add(5, ZERO, 6);
        if_zero(6);
        mov(ONE, 2);
        END_IF;
        // Of a negative number: integers, of which odd ones give the sign.
        low_half(7, ROUNDER.to_bits());
        high_half(7, ROUNDER.to_bits());
        add(5, 7, 4);
        sub(4, 7, 3);
        shift(4, LOWEST_TO_SIGN);
        sub(3, 5, 3);
        magnitude(5, 1);
        high(7, FIRST_INTEGER / 2.0);
        if_at_most(7, 1);
        mov(ZERO, 3);
        mov(ZERO, 4);
        END_IF;
        magnitude(3, 3);
        if_negative(0);
        xor(4, 2);
        if_not_zero(3);
        high_bits(2, NAN);
        END_IF;
        mov(2, 0);
    }
}

/// What register 0 over register 1 leaves, with the sign of register 0, or of register 1.
#[inline(always)]
pub(super) fn remainder(of_divisor: bool) {
    vector! {
        mov(0, 6);
        mov(1, 7);
        magnitude(0, 4);
        magnitude(1, 5);
        mov(5, 0);
    }
    reciprocal();
    vector! {
        mul(4, 0, 1);
        high(2, FIRST_INTEGER);
        if_greater(2, 1);
        add(1, 2, 1);
        sub(1, 2, 1);
        END_IF;
        // The divisor in two parts, whose products with a short quotient are exact.
        low_half(3, UPPER_HALF_OF_MANTISSA);
        high_half(3, UPPER_HALF_OF_MANTISSA);
        mov(5, 2);
        and(3, 2);
        sub(5, 2, 3);
        nmad(1, 2, 4, 0);
        nmad(1, 3, 0, 0);
        if_negative(0);
        add(0, 5, 0);
        END_IF;
        if_at_most(5, 0);
        sub(0, 5, 0);
        END_IF;
    }
    if of_divisor {
        vector! {
            mov(6, 1);
            xor(7, 1);
            magnitude(0, 2);
            if_negative(1);
            if_not_zero(2);
            sub(5, 0, 0);
            END_IF;
            keep_sign(0, 7);
            mov(7, 0);
        }
    } else {
        vector! {
            keep_sign(0, 6);
            mov(6, 0);
        }
    }
}

/// What is wanted of a division.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    Quotient,
    Remainder,
    Modulus,
}

/// The next bit of a quotient. Not inlined, because a loop of it would be unrolled.
#[inline(never)]
fn next_bit() {
    vector! {
        mov(0, 3);
        shift(3, -LOWEST_TO_SIGN);
        shift(2, 1);
        or(3, 2);
        shift(0, 1);
        mov(1, 3);
        sub_integer(2, 3);
        if_not_negative(3);
        mov(3, 2);
        add_integer_number(0, 1, 0);
        END_IF;
    }
}

/// Divides register 0 by register 1, bit by bit: register 2 has what is left, register 0 the bits
/// that are still to come and those of the quotient.
#[inline(never)]
pub(super) fn divide(kind: Integer, wanted: Wanted) {
    vector! {
        mov(0, 7);
        mov(1, 5);
        mov(0, 6);
        xor(1, 6);
    }
    if kind == Integer::Int32 {
        vector! {
            if_negative(0);
            sub_integer(ZERO, 0);
            END_IF;
            if_negative(1);
            sub_integer(ZERO, 1);
            END_IF;
        }
    }
    push(mov(0, 4));
    push(mov(ZERO, 2));
    for _ in 0..u32::BITS {
        next_bit();
    }
    if kind == Integer::UInt32 {
        // A divisor that needs all bits goes into the dividend once or not at all.
        vector! {
            if_negative(1);
            mov(4, 2);
            integer(0, 0);
            mov(1, 3);
            sub_integer(4, 3);
            if_negative(4);
            if_not_negative(3);
            mov(3, 2);
            integer(0, 1);
            END_IF;
        }
    }
    let signed = kind == Integer::Int32;
    match wanted {
        Wanted::Quotient => {
            if signed {
                vector! {
                    if_negative(6);
                    sub_integer(ZERO, 0);
                    END_IF;
                }
            }
            vector! {
                if_zero(1);
                not(ZERO, 0);
                END_IF;
            }
        }
        Wanted::Remainder => {
            vector! { mov(2, 0); }
            if signed {
                vector! {
                    if_negative(7);
                    sub_integer(ZERO, 0);
                    END_IF;
                }
            }
        }
        Wanted::Modulus => {
            vector! { mov(2, 0); }
            if signed {
                vector! {
                    if_negative(6);
                    if_not_zero(2);
                    sub_integer(1, 0);
                    END_IF;
                    if_negative(5);
                    sub_integer(ZERO, 0);
                    END_IF;
                }
            }
        }
    }
    if wanted != Wanted::Quotient {
        vector! {
            if_zero(1);
            mov(7, 0);
            END_IF;
        }
    }
}
