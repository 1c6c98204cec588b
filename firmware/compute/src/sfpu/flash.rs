//! Functions of attention: weights of scores, masks, and the division by the sums of weights.
//!
//! Weights are powers of two that are rounded to bfloat16 afterwards, so that a polynomial of third
//! degree is enough: its error is 1.02e-4. Two rounds are computed at once, because an instruction
//! that needs the result of the one before waits for it.

use super::exponential::{ROUNDER, reciprocal};
use super::words::*;
use super::{AS_F32, STAY, STEP, load_tile, rounds, store_tile};
use crate::addr_mod::{AddrMod, Step};
use crate::push::{block, push, stall, until};
use crate::ttinsn;
use tilework_abi::flash::UNSEEN;
use tilework_abi::tensix::insn::{Sfpload, Sfpstore};

/// (2^f - 1) / f on [-0.5, 0.5], from f^0 on.
const EXP2: [f32; 3] = [0.693_282_9, 0.242_211_06, 0.055_008_97];
/// Bits of a mantissa.
const MANTISSA: i32 = 23;
/// The exponent at which a power is zero.
const ZERO_AT: f32 = -127.0;
/// Rounds that are computed at once, and how many times.
const TWO: u32 = 2;
const PAIRS: u32 = 16;
/// Address modifier: to the next two rounds.
const NEXT_TWO: u32 = 3;
/// The factor of scores.
const FACTOR: u32 = 2;

/// Registers of [`weights`], which takes 2 to the power of `scale` times a number.
#[inline(never)]
pub(crate) fn init_weights(scale: u32) {
    super::init();
    AddrMod { dst: Step::by(TWO * STEP), ..AddrMod::default() }.set(NEXT_TWO as usize);
    kept_constant(C12, scale);
    kept_constant(C13, ROUNDER.to_bits());
    kept_constant(C14, EXP2[0].to_bits());
    constant(5, EXP2[1].to_bits());
    constant(6, EXP2[2].to_bits());
}

/// The numbers of a tile, which are not positive, become weights.
#[inline(never)]
pub(crate) fn weights() {
    ttinsn!(stall(block::SFPU, until::MATH));
    for _ in 0..PAIRS {
        ttinsn!(const { load_tile(0, AS_F32, 0) });
        ttinsn!(const { Sfpload::build().vd(3).mod0(AS_F32).addr_mod(STAY).imm10(STEP).word() });
        vector! {
            mul(0, C12, 0);
            mul(3, C12, 3);
            high(7, ZERO_AT);
            min_max(7, 0);
            high(7, ZERO_AT);
            min_max(7, 3);
            add(0, C13, 1);
            add(3, C13, 4);
            sub(1, C13, 2);
            sub(4, C13, 7);
            sub(0, 2, 0);
            sub(3, 7, 3);
            mad(6, 0, 5, 2);
            mad(6, 3, 5, 7);
            mad(2, 0, C14, 2);
            mad(7, 3, C14, 7);
            mad(2, 0, ONE, 0);
            mad(7, 3, ONE, 3);
            shift(1, MANTISSA);
            shift(4, MANTISSA);
            add_integer(1, 0);
            add_integer(4, 3);
        }
        ttinsn!(const { Sfpstore::build().mod0(AS_F32).addr_mod(STAY).word() });
        ttinsn!(const { Sfpstore::build().vd(3).mod0(AS_F32).addr_mod(NEXT_TWO).imm10(STEP).word() });
    }
    ttinsn!(stall(block::MATH | block::CFG, until::SFPU));
}

/// Scores in tile 0 times a factor, and the mask in tile 1 added to them; not less than what is not
/// seen.
#[inline(never)]
pub(crate) fn masked(factor: u32) {
    super::init();
    constant(FACTOR, factor);
    rounds(|| {
        ttinsn!(const { load_tile(0, AS_F32, 0) });
        ttinsn!(const { load_tile(1, AS_F32, 1) });
        vector! {
            mad(0, FACTOR, 1, 0);
            high_bits(7, UNSEEN >> 16);
            min_max(7, 0);
            PAUSE;
        }
        ttinsn!(const { store_tile(AS_F32, 0) });
    });
}

/// Tiles before tile `sums` times the reciprocals of its elements, which are at least 1.
#[inline(never)]
pub(crate) fn divided(sums: u32) {
    super::init();
    for tile in 0..sums {
        let (of_sums, load, store) = (load_tile(1, AS_F32, sums), load_tile(0, AS_F32, tile), store_tile(AS_F32, tile));
        rounds(|| {
            push(of_sums);
            reciprocal();
            push(load);
            vector! { mul(0, 2, 0); }
            push(store);
        });
        super::super::math::reset_dst();
    }
}
