//! Functions of the vector unit: element by element on a tile of Dst.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/VectorUnit.md and the pages of its
//! instructions. An instruction works on 32 elements, so a tile takes 32 rounds of one body: load,
//! compute, store. The body is recorded in the replay buffer once; constants stay in registers.

use crate::addr_mod::{AddrMod, Step};
use crate::push::{block, push, stall, until};
use crate::ttinsn;
use tilework_abi::tensix::insn::{
    Replay, Sfparecip, Sfpconfig, Sfpiadd, Sfpload, Sfploadi, Sfpmad, Sfpmov, Sfpshft, Sfpstore, Sfpswap,
};

/// A function of one argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unary {
    /// The exponential, to 2^-17 of the value; infinite from 128 ln 2 on, and below -126 ln 2 at
    /// most the smallest normal number. A NaN gives a number that means nothing.
    Exp,
    /// The reciprocal, to 2^-22 of the value. Zero and infinity give NaN.
    Reciprocal,
    /// The reciprocal of the square root of the sum of the argument and a number, given as the bits
    /// of an f32; to 2^-20 of the value. Zero gives a huge number, and negative sums none that
    /// means anything.
    Rsqrt(u32),
    /// The larger of the argument and zero.
    Relu,
    /// The product with a number, given as the bits of an f32.
    Scale(u32),
}

/// Rounds over a tile, and words of Dst's address from one to the next.
const ROUNDS: u32 = 32;
const STEP: u32 = 2;
/// Address modifiers: nothing; to the next round.
const STAY: u32 = 7;
const NEXT: u32 = 6;
/// Registers: zero, one, minus one; the first that software sets.
const ZERO: u32 = 9;
const ONE: u32 = 10;
const MINUS_ONE: u32 = 11;
const C12: u32 = 12;
const C13: u32 = 13;
const C14: u32 = 14;
/// `SFPLOAD`, `SFPSTORE`: bf16, f32. `SFPLOADI`: the high half, both halves one by one.
const AS_BF16: u32 = 2;
const AS_F32: u32 = 3;
const HIGH_OF_ZERO: u32 = 0;
const HIGH_HALF: u32 = 8;
const LOW_HALF: u32 = 10;
/// `SFPSWAP`: the smaller to VD. `SFPSHFT`: by the immediate. `SFPIADD`: flags stay; VC - VD.
const MIN_TO_VD: u32 = 1;
const BY_IMMEDIATE: u32 = 1;
const KEEP_FLAGS: u32 = 4;
const SUBTRACT: u32 = 2;
/// Bits of a mantissa.
const MANTISSA: i32 = 23;
/// 1.5 x 2^23: a sum with it has the other operand, rounded, in its low bits.
const ROUNDER: f32 = 12_582_912.0;
/// 2^f on [-0.5, 0.5], from f^1 on: the least relative error, 2.8e-6, with 1 for f^0.
const EXP2: [f32; 4] = [0.693_124_2, 0.240_241, 0.055_906_47, 0.009_582_87];
/// Bits of the first approximation of 1 / sqrt(1), from which half of the argument's are taken
/// (public folklore: C. Lomont, "Fast inverse square root", 2003).
const RSQRT: u32 = 0x5F37_59DF;

/// VD = VA x VB + VC.
const fn mad(va: u32, vb: u32, vc: u32, vd: u32) -> u32 {
    Sfpmad::build().va(va).vb(vb).vc(vc).vd(vd).word()
}
/// The high half of an f32 to a register.
const fn high(vd: u32, value: f32) -> u32 {
    Sfploadi::build().vd(vd).mod0(HIGH_OF_ZERO).imm16(value.to_bits() >> 16).word()
}
/// The smaller of both goes to VD, the larger to VC.
const fn min_max(vd: u32, vc: u32) -> u32 {
    Sfpswap::build().vd(vd).vc(vc).mod1(MIN_TO_VD).word()
}

/// Sets register `vd`.
#[inline(always)]
fn constant(vd: u32, bits: u32) {
    push(Sfploadi::build().vd(vd).mod0(LOW_HALF).imm16(bits & 0xFFFF).word());
    push(Sfploadi::build().vd(vd).mod0(HIGH_HALF).imm16(bits >> 16).word());
}
/// Sets one of the registers 12 to 14, by way of register 0.
#[inline(always)]
fn kept_constant(vd: u32, bits: u32) {
    constant(0, bits);
    push(Sfpconfig::build().vd(vd).word());
}

/// Records the body of a function: `body` between a load to and a store from register 0.
#[inline(always)]
fn record(wide: bool, body: &[u32]) {
    let format = if wide { AS_F32 } else { AS_BF16 };
    push(Replay::build().count(body.len() as u32 + 2).load(true).word());
    push(Sfpload::build().mod0(format).addr_mod(STAY).word());
    for &word in body {
        push(word);
    }
    push(Sfpstore::build().mod0(format).addr_mod(NEXT).word());
}

impl Unary {
    /// Prepares the function; returns the words of its body.
    #[inline(always)]
    pub(crate) fn init(self, wide: bool) -> u32 {
        AddrMod::default().set(STAY as usize);
        AddrMod { dst: Step::by(STEP), ..AddrMod::default() }.set(NEXT as usize);
        match self {
            Self::Exp => exp(wide),
            Self::Reciprocal => reciprocal(wide),
            Self::Rsqrt(added) => rsqrt(wide, added),
            Self::Relu => {
                const BODY: [u32; 2] = [high(1, 0.0), min_max(1, 0)];
                record(wide, &BODY);
                BODY.len() as u32 + 2
            }
            Self::Scale(by) => {
                kept_constant(C12, by);
                const BODY: [u32; 1] = [mad(0, C12, ZERO, 0)];
                record(wide, &BODY);
                BODY.len() as u32 + 2
            }
        }
    }

    /// Runs the recorded body of `words` words over the tile that Dst's counter points at.
    #[inline(always)]
    pub(crate) fn run(words: u32) {
        ttinsn!(stall(block::SFPU, until::MATH));
        let replay = Replay::build().count(words).word();
        for _ in 0..ROUNDS {
            push(replay);
        }
        ttinsn!(stall(block::MATH | block::CFG, until::SFPU));
    }
}

/// e^x = 2^k 2^f with k + f = x / ln 2: k goes to the exponent by integer addition.
#[inline(always)]
fn exp(wide: bool) -> u32 {
    const BODY: [u32; 14] = [
        mad(0, C12, ZERO, 0),
        high(7, -126.0),
        min_max(7, 0),
        high(7, 128.0),
        min_max(0, 7),
        mad(0, ONE, C13, 1),
        mad(C13, MINUS_ONE, 1, 2),
        mad(2, MINUS_ONE, 0, 0),
        mad(3, 0, 4, 2),
        mad(2, 0, 5, 2),
        mad(2, 0, C14, 2),
        mad(2, 0, ONE, 0),
        Sfpshft::build().imm12(MANTISSA).vd(1).mod1(BY_IMMEDIATE).word(),
        Sfpiadd::build().vc(1).vd(0).mod1(KEEP_FLAGS).word(),
    ];
    kept_constant(C12, core::f32::consts::LOG2_E.to_bits());
    kept_constant(C13, ROUNDER.to_bits());
    kept_constant(C14, EXP2[0].to_bits());
    constant(5, EXP2[1].to_bits());
    constant(4, EXP2[2].to_bits());
    constant(3, EXP2[3].to_bits());
    record(wide, &BODY);
    BODY.len() as u32 + 2
}

/// The hardware's approximation, then r (2 - x r) twice.
#[inline(always)]
fn reciprocal(wide: bool) -> u32 {
    const BODY: [u32; 6] = [
        Sfparecip::build().vc(0).vd(1).word(),
        mad(0, MINUS_ONE, ZERO, 2),
        mad(2, 1, C12, 3),
        mad(1, 3, ZERO, 1),
        mad(2, 1, C12, 3),
        mad(1, 3, ZERO, 0),
    ];
    kept_constant(C12, 2f32.to_bits());
    record(wide, &BODY);
    BODY.len() as u32 + 2
}

/// An approximation by half the exponent, then r (1.5 - x r r / 2) three times.
#[inline(always)]
fn rsqrt(wide: bool, added: u32) -> u32 {
    const BODY: [u32; 14] = [
        mad(0, ONE, C14, 0),
        Sfpmov::build().vc(0).vd(1).word(),
        Sfpshft::build().imm12(-1).vd(1).mod1(BY_IMMEDIATE).word(),
        Sfpiadd::build().vc(4).vd(1).mod1(KEEP_FLAGS | SUBTRACT).word(),
        mad(0, C13, ZERO, 0),
        mad(1, 1, ZERO, 2),
        mad(2, 0, C12, 2),
        mad(1, 2, ZERO, 1),
        mad(1, 1, ZERO, 2),
        mad(2, 0, C12, 2),
        mad(1, 2, ZERO, 1),
        mad(1, 1, ZERO, 2),
        mad(2, 0, C12, 2),
        mad(1, 2, ZERO, 0),
    ];
    kept_constant(C12, 1.5f32.to_bits());
    kept_constant(C13, (-0.5f32).to_bits());
    kept_constant(C14, added);
    constant(4, RSQRT);
    record(wide, &BODY);
    BODY.len() as u32 + 2
}
