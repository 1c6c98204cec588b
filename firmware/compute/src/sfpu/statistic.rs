//! Functions of pooled rows, and exponentials of what is not above zero: for rows of tiles.

use super::exponential::{BASE_E, MANTISSA, ROUNDER};
use super::power;
use super::words::*;
use super::{AS_F32, STAY, STEP, TILE_ROWS, init, kept_constant};
use crate::addr_mod::{self, AddrMod};
use crate::push::{block, push, stall, until};
use crate::ttinsn;
use tilework_abi::tensix::insn::{Sfpload, Sfpstore};

/// What is made of the rows that were pooled. Numbers are given as the bits of an f32.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Statistic {
    /// Themselves.
    Same,
    /// One divided by them.
    Reciprocal,
    /// Their product with the number.
    Scale(u32),
    /// One divided by the square root of the product with the first number plus the second.
    Deviation(u32, u32),
}

/// Where the 32 pooled elements of a wide Dst are: the even and the odd columns of row 0 of the
/// upper left and of the lower left face.
const PLACES: [u32; 4] = [0, STEP, TILE_ROWS / 2, TILE_ROWS / 2 + STEP];
/// Half a unit in the last place of TF32, as it lies in an f32.
const HALF_OF_TF32: u32 = 1 << 12;

impl Statistic {
    /// Computes it of the tile at Dst's counter, and rounds it to the nearest TF32.
    #[inline(always)]
    pub(crate) fn compute(self) {
        init();
        match self {
            Self::Scale(number) => kept_constant(C12, number),
            Self::Deviation(_, added) => power::init_root(added),
            Self::Same | Self::Reciprocal => {}
        }
        ttinsn!(stall(block::SFPU, until::MATH));
        for place in PLACES {
            push(Sfpload::build().mod0(AS_F32).addr_mod(STAY).imm10(place).word());
            match self {
                Self::Same => {}
                Self::Reciprocal => power::reciprocal(),
                Self::Scale(_) => ttinsn!(const { mul(0, C12, 0) }),
                Self::Deviation(number, _) => {
                    constant(1, number);
                    ttinsn!(const { mul(0, 1, 0) });
                    power::rsqrt();
                }
            }
            vector! {
                integer(1, HALF_OF_TF32);
                add_integer(1, 0);
            }
            push(Sfpstore::build().mod0(AS_F32).addr_mod(STAY).imm10(place).word());
        }
        ttinsn!(stall(block::MATH | block::CFG, until::SFPU));
    }
}

/// (2^f - 1) / f on [-0.5, 0.5], from f^0 on: the least relative error of 2^f, 1.0e-4.
const EXP2: [f32; 3] = [0.693_282_93, 0.242_211_06, 0.055_008_97];
/// The least argument: its power has a sign, as has that of all below -87.3.
const LEAST: f32 = -100.0;
/// The address modifier that goes on two rounds.
const NEXT_TWO: u32 = 5;
/// Rounds over a tile, two at a time.
const PAIRS: u32 = 16;

/// Registers for [`small_exp`]: 12 to 14, 3 and 7.
pub(crate) fn init_small_exp() {
    init();
    AddrMod { dst: addr_mod::Step::by(2 * STEP), ..AddrMod::default() }.set(NEXT_TWO as usize);
    kept_constant(C12, BASE_E.to_bits());
    kept_constant(C13, ROUNDER.to_bits());
    kept_constant(C14, EXP2[0].to_bits());
    constant(3, EXP2[1].to_bits());
    constant(7, EXP2[2].to_bits());
}

/// e to the power of a tile of a wide Dst, whose elements are not above zero, two rounds at a time,
/// so that none waits for the result of an instruction before.
#[inline(never)]
pub(crate) fn small_exp(tile: u32) {
    let row = tile * TILE_ROWS;
    let load = |vd, place| Sfpload::build().vd(vd).mod0(AS_F32).addr_mod(STAY).imm10(row + place).word();
    let store = |vd, place, next| Sfpstore::build().vd(vd).mod0(AS_F32).addr_mod(next).imm10(row + place).word();
    let (load_first, load_second) = (load(0, 0), load(4, STEP));
    let (store_first, store_second) = (store(0, 0, STAY), store(4, STEP, NEXT_TWO));
    ttinsn!(stall(block::SFPU, until::MATH));
    for _ in 0..PAIRS {
        push(load_first);
        push(load_second);
        vector! {
            high(1, LEAST);
            min_max(1, 0);
            high(5, LEAST);
            min_max(5, 4);
            mad(0, C12, C13, 1);
            mad(4, C12, C13, 5);
            sub(1, C13, 2);
            sub(5, C13, 6);
            msub(0, C12, 2, 0);
            msub(4, C12, 6, 4);
            mad(7, 0, 3, 2);
            mad(7, 4, 3, 6);
            mad(2, 0, C14, 2);
            mad(6, 4, C14, 6);
            mad(2, 0, ONE, 0);
            mad(6, 4, ONE, 4);
            shift(1, MANTISSA);
            shift(5, MANTISSA);
            add_integer(1, 0);
            add_integer(5, 4);
        }
        push(store_first);
        push(store_second);
    }
    ttinsn!(stall(block::MATH | block::CFG, until::SFPU));
}
