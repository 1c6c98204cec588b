//! Random numbers: a generator for each lane (Marsaglia's xorshift, 13, 17, 5), because those of
//! the hardware hardly differ from lane to lane and from number to number (VectorUnit.md, PRNG).

use super::integer::multiply;
use super::words::*;
use crate::push::push;
use crate::ttinsn;

/// The register of the generators.
const STATE: u32 = 7;
/// What the generators of neighbouring lanes are apart at first: half of 2^32 over the golden
/// ratio. Numbers that are drawn before the first one that is used.
const APART: u32 = 0x9E37_79B9;
const DRAWN: u32 = 8;
/// Bits of a random word that are no mantissa.
const ABOVE_MANTISSA: i32 = 9;
/// The biased exponent of numbers from 1 to 2.
const FROM_ONE: u32 = 127;

/// Starts the sequence `seed` in all lanes: odd numbers, which never become zero.
pub(crate) fn seed(seed: u32) {
    super::init();
    constant(1, APART);
    ttinsn!(mov(TWICE_LANE, 0));
    multiply();
    constant(1, seed << 1 | 1);
    vector! {
        add_integer(0, 1);
        mov(1, STATE);
    }
    (0..DRAWN).for_each(|_| next());
}

/// The next number of each generator; changes register 1.
#[inline(always)]
fn next() {
    for by in [13, -17, 5] {
        ttinsn!(mov(STATE, 1));
        push(shift(1, by));
        ttinsn!(xor(1, STATE));
    }
}

/// Register 12 plus register 13 times a number from 0 to 1.
#[inline(always)]
pub(super) fn uniform() {
    next();
    vector! {
        mov(STATE, 0);
        shift(0, -ABOVE_MANTISSA);
        set_exponent(0, FROM_ONE, 0);
        sub(0, ONE, 0);
        mov(C12, 1);
        mad(0, C13, 1, 0);
    }
}

/// Register 0 times register 13, or 0 where the upper 31 random bits are less than register 12.
#[inline(always)]
pub(super) fn dropout() {
    next();
    vector! {
        mul(0, C13, 0);
        mov(STATE, 1);
        shift(1, -1);
        mov(C12, 2);
        sub_integer(1, 2);
        if_negative(2);
        mov(ZERO, 0);
        END_IF;
    }
}
