//! Error function, softplus, hyperbolic functions and the cube root.

use super::Round;
use super::exponential::{any_power, power, reciprocal};
use super::words::*;
use core::f32::consts::LN_2;

/// erf x / x by x^2 on [-1, 1], from x^0 on: the least relative error, 1.2e-9.
const ERF: [f32; 7] =
    [1.128_379_2, -0.376_126_26, 0.112_835_85, -0.026_853_812, 0.005_188_327, -8.010_189e-4, 7.853_844e-5];
/// erfc x e^(x^2) x by 1 / x from 1 to 10.5, from x^0 on: the least relative error, 9e-8.
const ERFC: [f32; 10] = [
    0.564_215_24,
    -9.038_336e-4,
    -0.268_845_56,
    -0.106_320_18,
    0.935_786_3,
    -1.499_958_5,
    1.313_271_4,
    -0.680_132_15,
    0.193_102_79,
    -0.022_631_925,
];
/// Its power is the last one that is normal.
const ERFC_END: f32 = 9.3;
/// ln(1 + y) / y from 0 to 1, from y^0 on: the least relative error, 4.7e-9.
const LOG1P: [f32; 10] = [
    1.0,
    -0.499_999_02,
    0.333_299_62,
    -0.249_541_34,
    0.196_759_42,
    -0.153_056_02,
    0.106_036_73,
    -0.056_959_726,
    0.019_851_571,
    -0.003_244_051,
];
/// sinh x / x by x^2 on [-1, 1], from x^0 on: the least relative error, 2e-8.
const SINH: [f32; 4] = [1.0, 0.166_667_34, 0.008_329_912, 2.039_399e-4];
/// From here on e^-x adds nothing to one; the last argument whose power is normal.
const END: f32 = 87.0;
/// What half of the power of x has no quarter of a reciprocal of, so large it is.
const LARGE: f32 = 1_152_921_504_606_846_976.0;
/// Bits of the first approximation of 1 / cbrt(1) from which a third of the argument's are taken:
/// 4/3 of those of 1, less what makes the error least (as for the square root, see `power`).
const CBRT: u32 = 0x54A2_1D29;
/// 2^23 / 3, rounded.
const THIRD: u32 = 0x2A_AAAB;
/// Bits that a product of 23 bits leaves out of an f32's.
const LOST: i32 = 8;

/// The error function, or its complement: e^(-x^2) q(1 / x), from -1 to 1 a polynomial.
#[inline(always)]
pub(super) fn erf(round: Round, complement: bool) {
    vector! {
        magnitude(0, 1);
        low_half(7, ERFC_END.to_bits());
        high_half(7, ERFC_END.to_bits());
        min_max(1, 7);
        PAUSE;
        mov(ONE, 7);
        min_max(7, 1);
        PAUSE;
    }
    reciprocal();
    vector! { mov(2, 1); }
    // Register 7 is what the polynomial uses besides.
    polynomial!(ERFC[9], ERFC[8], ERFC[7], ERFC[6], ERFC[5], ERFC[4], ERFC[3], ERFC[2], ERFC[1], ERFC[0]);
    vector! { mul(2, 1, 7); }
    round.load(0);
    vector! {
        magnitude(0, 0);
        low_half(1, ERFC_END.to_bits());
        high_half(1, ERFC_END.to_bits());
        min_max(0, 1);
        PAUSE;
        mul(0, 0, 0);
    }
    power();
    vector! { mul(0, 7, 0); }
    round.load(1);
    // What is not normal is zero.
    vector! { add(0, ZERO, 0); }
    if complement {
        vector! {
            high(2, 2.0);
            if_negative(1);
            sub(2, 0, 0);
            END_IF;
        }
    } else {
        vector! {
            sub(ONE, 0, 0);
            keep_sign(0, 1);
            mov(1, 0);
        }
    }
    round.load(1);
    vector! { mul(1, 1, 1); }
    polynomial!(ERF[6], ERF[5], ERF[4], ERF[3], ERF[2], ERF[1], ERF[0]);
    round.load(1);
    vector! {
        mul(2, 1, 2);
        exponent_and_if_negative(1, 7);
    }
    if complement {
        vector! { sub(ONE, 2, 0); }
    } else {
        vector! { mov(2, 0); }
    }
    vector! { END_IF; }
}

/// The larger of x and zero, plus ln(1 + e^-|x|).
#[inline(always)]
pub(super) fn softplus(round: Round) {
    vector! {
        magnitude(0, 0);
        high(7, END);
        min_max(0, 7);
        PAUSE;
    }
    power();
    vector! { mov(0, 1); }
    polynomial!(LOG1P[9], LOG1P[8], LOG1P[7], LOG1P[6], LOG1P[5], LOG1P[4], LOG1P[3], LOG1P[2], LOG1P[1], LOG1P[0]);
    vector! { mul(2, 0, 2); }
    round.load(0);
    vector! {
        mov(ZERO, 1);
        min_max(1, 0);
        PAUSE;
        add(0, 2, 0);
    }
}

/// Register 0 becomes half the power of its magnitude, register 2 half that of the other sign.
#[inline(always)]
fn halves_of_powers() {
    vector! {
        magnitude(0, 0);
        low_half(7, LN_2.to_bits());
        high_half(7, LN_2.to_bits());
        sub(0, 7, 0);
    }
    any_power(true);
    vector! {
        mov(0, 1);
        high(7, LARGE);
        min_max(1, 7);
        PAUSE;
    }
    reciprocal();
    vector! {
        high(7, 0.25);
        mul(2, 7, 2);
    }
}

/// (e^x + e^-x) / 2.
#[inline(always)]
pub(super) fn cosh() {
    halves_of_powers();
    vector! { add(0, 2, 0); }
}

/// (e^x - e^-x) / 2, from -1 to 1 a polynomial.
#[inline(always)]
pub(super) fn sinh(round: Round) {
    halves_of_powers();
    vector! { sub(0, 2, 0); }
    round.load(1);
    vector! { mul(1, 1, 1); }
    polynomial!(SINH[3], SINH[2], SINH[1], SINH[0]);
    round.load(1);
    vector! {
        mul(2, 1, 2);
        mov(1, 7);
        keep_sign(0, 7);
        exponent_and_if_negative(1, 0);
        mov(2, 7);
        END_IF;
        mov(7, 0);
    }
}

/// Registers for [`cbrt`].
#[inline(never)]
pub(super) fn init_cbrt() {
    kept_constant(C12, (4.0f32 / 3.0).to_bits());
    kept_constant(C13, (1.0f32 / 3.0).to_bits());
    constant(4, CBRT);
    constant(5, THIRD);
}

/// x y^2 with y = 1 / cbrt(x): an approximation by a third of the exponent, then
/// y (4 - x y y y) / 3 four times.
#[inline(always)]
pub(super) fn cbrt(round: Round) {
    vector! {
        magnitude(0, 0);
        mov(0, 1);
        shift(1, -LOST);
        mul_23(1, 5, 1, true);
        PAUSE;
        shift(1, LOST);
        sub_integer(4, 1);
    }
    for _ in 0..4 {
        vector! {
            mul(0, 1, 3);
            mul(3, 1, 3);
            mul(3, 1, 3);
            nmad(3, C13, C12, 3);
            mul(1, 3, 1);
        }
    }
    vector! {
        mul(0, 1, 2);
        mul(2, 1, 2);
        high(3, f32::INFINITY);
        if_at_most(3, 0);
        mov(0, 2);
        END_IF;
    }
    round.load(0);
    vector! { keep_sign(2, 0); }
}
