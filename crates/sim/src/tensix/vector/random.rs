//! The generator of random numbers, and what rounds with it.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/{VectorUnit,SFPSTOCHRND_FloatFloat,
//! SFPSTOCHRND_FloatInt,SFPSTOCHRND_IntInt,SFPCAST_IntFloat,SFPCAST_IntInt,SFPCAST_IntAbs}.md.
//! The bugs of rounding that they describe are part of it, unless the chip is without them.

// Loops over lanes of several arrays vectorise only with a counter.
#![expect(clippy::needless_range_loop)]

use super::regs::Regs;
use super::{LANES, LReg, Lanes, SIGN, Vector};
use crate::Bug;
use crate::tensix::random;
use multiversion::multiversion;
use tilework_abi::tensix::insn::{SfpStochRnd, Sfpcast};

/// The generators' states after reset; not documented, zero is assumed.
pub(super) const RESET: LReg = [0; LANES];
/// The random bits that rounding takes.
const RANDOM_BITS: u32 = 0x7F_FFFF;
/// What they are instead, to round to nearest.
const NEAREST: u32 = 0x40_0000;
/// What they are instead, to round to zero.
const TO_ZERO: u32 = 0x7F_FFFF;

/// How `SFP_STOCH_RND` rounds.
#[derive(Clone, Copy)]
struct Rounding {
    /// By how much what is cut off must be more than the random bits: 0 or, as was meant, 1.
    more: u32,
    /// Numbers below one half are rounded, too.
    small: bool,
}

impl Vector {
    /// Seeds all generators (`PRNG_SEED_Seed_Val`).
    pub(in crate::tensix) fn seed(&mut self, seed: u32) {
        self.prng = random::seeded(seed);
    }

    /// `AdvancePRNG` in the lanes of `mask`.
    pub(super) fn random(&mut self, mask: u32) -> LReg {
        let result = self.prng;
        advance(&mut self.prng, mask);
        result
    }

    pub(super) fn round(&mut self, insn: SfpStochRnd, r: Regs, lanes: Lanes) {
        let bits = self.random(lanes.enabled);
        let biased = self.bugs.has(Bug::StochasticRounding);
        let how = Rounding { more: u32::from(!biased), small: !self.bugs.has(Bug::RoundingBelowHalf) };
        let bits = match insn.rounding_mode() {
            0 if biased => [NEAREST; LANES],
            0 => [NEAREST - 1; LANES],
            2 => [TO_ZERO; LANES],
            _ => bits.map(|bits| bits & RANDOM_BITS),
        };
        let (b, c) = (&self.lregs[r.b], &self.lregs[r.c]);
        let mut out = [0; LANES];
        match insn.mod1() {
            0 => shorten_lanes((c, &bits), 13, how, &mut out),
            1 => shorten_lanes((c, &bits), 16, how, &mut out),
            2 => to_int_lanes((c, &bits), (0, 255), how, &mut out),
            3 => to_int_lanes((c, &bits), (SIGN, 127), how, &mut out),
            6 => to_int_lanes((c, &bits), (0, 65_535), how, &mut out),
            7 => to_int_lanes((c, &bits), (SIGN, 32_767), how, &mut out),
            mode => {
                for lane in 0..LANES {
                    let by = if insn.use_imm5() { insn.imm5() } else { b[lane] & 31 };
                    out[lane] = descale(c[lane], by, bits[lane], mode == 5, how);
                }
            }
        }
        self.write(r.d, &out, lanes.enabled);
    }

    pub(super) fn cast(&mut self, insn: Sfpcast, r: Regs, lanes: Lanes) {
        // Higher modes repeat these: "current silicon behavior".
        match insn.mod1() & 3 {
            0 => self.unary(r, lanes, int_to_float_nearest),
            1 => {
                let bits = self.random(lanes.enabled);
                let c = &self.lregs[r.c];
                let out = std::array::from_fn(|lane| int_to_float_random(c[lane], bits[lane]));
                self.write(r.d, &out, lanes.enabled);
            }
            2 => self.unary(r, lanes, |c| if c & SIGN != 0 { c.wrapping_neg() } else { c }),
            _ => self.unary(r, lanes, |c| if c & SIGN != 0 { c.wrapping_neg() | SIGN } else { c }),
        }
    }
}

/// The generators of the lanes of `mask` go on.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2"))]
fn advance(states: &mut LReg, mask: u32) {
    for lane in 0..LANES {
        states[lane] = if mask >> lane & 1 != 0 { random::next(states[lane]) } else { states[lane] };
    }
}

/// [`shorten`] of lanes and their random numbers.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2"))]
fn shorten_lanes((x, random): (&LReg, &LReg), discarded: u32, how: Rounding, out: &mut LReg) {
    for lane in 0..LANES {
        out[lane] = shorten(x[lane], random[lane], discarded, how);
    }
}

/// [`float_to_int`] of lanes and their random numbers.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2"))]
fn to_int_lanes((x, random): (&LReg, &LReg), (sign, limit): (u32, u32), how: Rounding, out: &mut LReg) {
    for lane in 0..LANES {
        out[lane] = float_to_int(x[lane], random[lane], sign, limit, how);
    }
}

/// FP32 with `discarded` bits less of mantissa.
#[inline(always)]
fn shorten(x: u32, random: u32, discarded: u32, how: Rounding) -> u32 {
    let unit = 1 << discarded;
    let rest = x & (unit - 1);
    let up = if rest >= (random >> (23 - discarded)) + how.more { unit } else { 0 };
    let exponent = x >> 23 & 0xFF;
    let shortened = if exponent == 0 { 0 } else { (x - rest).wrapping_add(up) };
    if exponent == 255 { x & 0xFF80_0000 } else { shortened }
}

/// A sign-magnitude integer from FP32, at most `limit`; with the bits of `sign`.
#[inline(always)]
fn float_to_int(x: u32, random: u32, sign: u32, limit: u32, how: Rounding) -> u32 {
    let exponent = (x >> 23 & 0xFF).cast_signed() - 127;
    let mantissa = x & 0x7F_FFFF | 0x80_0000;
    // With 23 bits behind the point: below one, or more than a number's bits, which is then limited.
    let (left, right) = (exponent.clamp(0, 15).cast_unsigned(), (-exponent).clamp(0, 31).cast_unsigned());
    let whole = if exponent < 0 { 0 } else { mantissa >> (23 - left) };
    let rest = (mantissa << left >> right) & 0x7F_FFFF;
    let magnitude = (whole + u32::from(rest >= random + how.more)).min(limit);
    let magnitude = if exponent >= 16 { limit } else { magnitude };
    let is_small = (exponent < -1) & !how.small;
    if is_small | (magnitude == 0) { 0 } else { x & sign | magnitude }
}

/// A sign-magnitude integer shifted right and clamped to 8 bits.
#[inline]
fn descale(x: u32, by: u32, random: u32, keep_sign: bool, how: Rounding) -> u32 {
    let fixed = u64::from(x & !SIGN) << 23 >> by;
    let magnitude = round_fixed(fixed, random, how);
    let (magnitude, sign) = if keep_sign { (magnitude.min(127), x & SIGN) } else { (magnitude.min(255), 0) };
    if magnitude == 0 { 0 } else { sign | magnitude }
}

/// Rounds a number with 23 bits behind the point.
#[inline]
fn round_fixed(fixed: u64, random: u32, how: Rounding) -> u32 {
    (fixed >> 23) as u32 + u32::from(fixed as u32 & 0x7F_FFFF >= random + how.more)
}

/// FP32 from a sign-magnitude integer: the number cut to 24 bits, and what is cut off.
#[inline]
fn normalize(x: u32) -> (u32, u32) {
    let magnitude = x & !SIGN;
    if magnitude == 0 {
        return (x & SIGN, 0);
    }
    let zeros = magnitude.leading_zeros();
    let normal = magnitude << zeros;
    ((x & SIGN) + ((157 - zeros) << 23) + (normal >> 8), normal & 0x1FF)
}

/// FP32 from a sign-magnitude integer, to nearest even.
#[inline]
fn int_to_float_nearest(x: u32) -> u32 {
    let (cut, low) = normalize(x);
    cut + u32::from(low & 0x80 != 0 && low & 0x17F != 0)
}

/// FP32 from a sign-magnitude integer, by seven random bits.
#[inline]
fn int_to_float_random(x: u32, random: u32) -> u32 {
    let (cut, low) = normalize(x);
    cut + u32::from(low & 0xFE > random >> 9 & 0xFE)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Bench, lane_values};
    use super::*;
    use crate::Bugs;
    use tilework_abi::tensix::insn::{Sfpconfig, Sfpmov};

    fn rounded(c: u32, mode: u32, rounding: u32) -> u32 {
        rounded_with(Bugs::AS_CHIP, c, mode, rounding)
    }
    fn rounded_with(bugs: Bugs, c: u32, mode: u32, rounding: u32) -> u32 {
        let mut b = Bench::default();
        b.v.set_bugs(bugs);
        b.set(0, [c; LANES]);
        b.run(&[SfpStochRnd::build().rounding_mode(rounding).vb(0).vc(0).vd(1).mod1(mode).word()]);
        b.lreg(1)[3]
    }

    #[test]
    fn the_generator_is_a_shift_register_in_each_lane() {
        let mut b = Bench::default();
        let take = Sfpmov::build().vc(9).vd(1).mod1(8).word();
        // From zero: the parity of no bits, inverted, comes in at the top.
        let mut taken = Vec::new();
        for _ in 0..4 {
            b.run(&[take]);
            taken.push(b.lreg(1)[20]);
        }
        assert_eq!(taken, [0, 0x8000_0000, 0x4000_0000, 0xA000_0000]);
        // Rows 1 to 3 are masked: their generators stand still.
        b.run(&[Sfpconfig::build().imm16(0xE000).vd(15).mod1(1).word(), take, take]);
        assert_eq!(b.lreg(1)[0], 0xA800_0000);
        b.run(&[Sfpconfig::build().vd(15).mod1(1).word(), take]);
        assert_eq!((b.lreg(1)[0], b.lreg(1)[20]), (0x5400_0000, 0x5000_0000));
        // Every rounding takes numbers, to nearest as well.
        b.run(&[SfpStochRnd::build().vd(2).word(), take]);
        assert_eq!(b.lreg(1)[20], 0x5400_0000);
    }

    #[test]
    fn a_seed_gives_each_lane_another_state() {
        let mut b = Bench::default();
        b.v.seed(5);
        b.run(&[Sfpmov::build().vc(9).vd(1).mod1(8).word()]);
        let state = |steps: u32| (0..steps).fold(5, |state, _| random::next(state));
        assert_eq!((b.lreg(1)[31], b.lreg(1)[30], b.lreg(1)[0]), (state(34), state(36), state(96)));
        assert_eq!(b.lreg(1)[0], 0x2E79_84F4);
    }

    #[test]
    fn mantissas_are_shortened_away_from_zero_on_ties() {
        assert_eq!(rounded(0x3F80_8000, 1, 0), 0x3F81_0000);
        assert_eq!(rounded(0xBF80_7FFF, 1, 0), 0xBF80_0000);
        assert_eq!(rounded(0x3F80_1000, 0, 0), 0x3F80_2000);
        assert_eq!(rounded(0x7F7F_FFFF, 1, 0), 0x7F80_0000);
        assert_eq!(
            [0x8000_0000, 0x807F_FFFF, 0xFFC0_0000, 0x7F80_0001].map(|x| rounded(x, 1, 0)),
            [0, 0, 0xFF80_0000, 0x7F80_0000]
        );
        // To zero, except that all ones round up.
        assert_eq!((rounded(0x3F80_FFFE, 1, 2), rounded(0x3F80_FFFF, 1, 2)), (0x3F80_0000, 0x3F81_0000));
        assert_eq!((rounded(0x3F80_1FFE, 0, 2), rounded(0x3F80_1FFF, 0, 2)), (0x3F80_0000, 0x3F80_2000));
        // Every BF16 number stays, denormals and NaNs aside.
        for high in 0..=u32::from(u16::MAX) {
            let x = high << 16;
            let expected = match x >> 23 & 0xFF {
                0 => 0,
                255 => x & 0xFF80_0000,
                _ => x,
            };
            assert_eq!(shorten(x, NEAREST, 16, Rounding { more: 0, small: false }), expected);
        }
    }

    #[test]
    fn floats_become_bounded_integers() {
        let f = |x: f32| x.to_bits();
        assert_eq!(
            [0.49, 0.5, 1.49, 1.5, -2.5, 126.5, 127.5, 1e30].map(|x| rounded(f(x), 3, 0)),
            [0, 1, 1, 2, SIGN | 3, 127, 127, 127]
        );
        assert_eq!([-2.5, 254.5, 256.0].map(|x| rounded(f(x), 2, 0)), [3, 255, 255]);
        assert_eq!([-40_000.0, 32_766.5, -0.25].map(|x| rounded(f(x), 7, 0)), [SIGN | 32_767, 32_767, 0]);
        assert_eq!([-40_000.5, 65_535.9, 1e9].map(|x| rounded(f(x), 6, 0)), [40_001, 65_535, 65_535]);
        assert_eq!(rounded(0x7FC0_0000, 3, 0), 127, "NaN is a huge number");
        // To zero, with the three numbers for which the page says that it does not.
        let wrong = [0x3F7F_FFFE, 0x3F7F_FFFF, 0x3FFF_FFFF].map(|x| rounded(x, 3, 2));
        assert_eq!(wrong, [1, 1, 2]);
        assert_eq!([0x3F7F_FFFD, 0x3FFF_FFFE].map(|x| rounded(x, 3, 2)), [0, 1]);
    }

    #[test]
    fn without_its_bugs_rounding_is_what_the_pages_say_was_meant() {
        let biased = Bugs::AS_CHIP.without(Bug::StochasticRounding);
        // To nearest as before; to zero always.
        for (x, mode) in [(0x3F80_8000, 1), (0xBF80_7FFF, 1), (0x3F80_1000, 0), (0x3F80_0FFF, 0), (0x3FC0_0000, 3)] {
            assert_eq!(rounded_with(biased, x, mode, 0), rounded(x, mode, 0), "{x:#x}");
        }
        let to_zero = [(0x3F80_FFFF, 1), (0x3F80_1FFF, 0), (0x3F7F_FFFF, 3), (0x3FFF_FFFF, 3)];
        let got = to_zero.map(|(x, mode)| rounded_with(biased, x, mode, 2));
        assert_eq!(got, [0x3F80_0000, 0x3F80_0000, 0, 1]);
        // By chance: the first random number is zero, so that with the bug nothing is cut off.
        assert_eq!((rounded(0x3F80_0000, 1, 1), rounded_with(biased, 0x3F80_0000, 1, 1)), (0x3F81_0000, 0x3F80_0000));
        assert_eq!(rounded_with(biased, 0x3F80_0001, 1, 1), 0x3F81_0000);
        // A quarter becomes one by chance; zero and what is nearly zero do not.
        let quarter = 0.25f32.to_bits();
        let small = biased.without(Bug::RoundingBelowHalf);
        assert_eq!((rounded(quarter, 3, 1), rounded_with(small, quarter, 3, 1)), (0, 1));
        assert_eq!([0, 1, 0x3300_0000].map(|x| rounded_with(small, x, 3, 1)), [0, 0, 0]);
        assert_eq!(rounded_with(small, 0.49f32.to_bits(), 3, 0), 0);
    }

    #[test]
    fn integers_are_descaled() {
        let after = |c: u32, by: u32, mode: u32| {
            let mut b = Bench::default();
            b.set(0, [c; LANES]);
            b.set(1, [by | 0xE0; LANES]);
            let insn = SfpStochRnd::build().vc(0).vd(2).mod1(mode);
            b.run(&[insn.vb(1).word()]);
            let by_register = b.lreg(2)[0];
            b.run(&[insn.use_imm5(true).imm5(by).word()]);
            assert_eq!(b.lreg(2)[0], by_register);
            by_register
        };
        assert_eq!((after(0x3F8, 4, 4), after(0x3F7, 4, 4)), (0x40, 0x3F));
        assert_eq!((after(SIGN | 24, 4, 4), after(SIGN | 24, 4, 5), after(SIGN | 7, 4, 5)), (2, SIGN | 2, 0));
        assert_eq!((after(5000, 0, 4), after(5000, 0, 5)), (255, 127));
        assert_eq!(after(SIGN | 0x7FFF_FFFF, 31, 5), SIGN | 1);
    }

    #[test]
    fn casts_round_to_nearest_even() {
        for magnitude in (0..64).map(|i| 1u32 << (i % 31) | (i * 0x0101_0101) & 0x7FFF_FFFF) {
            for low in 0..300u32 {
                let x = magnitude.wrapping_add(low) & !SIGN;
                assert_eq!(int_to_float_nearest(x), (x as f32).to_bits(), "{x:#x}");
                assert_eq!(int_to_float_nearest(x | SIGN), (x as f32).to_bits() | SIGN);
            }
        }
        let mut b = Bench::default();
        b.set(0, lane_values(&[SIGN | 3, 5, SIGN, 0xFFFF_FFFD]));
        let cast = |mode: u32, d: u32| Sfpcast::build().vc(0).vd(d).mod1(mode).word();
        b.run(&[cast(0, 1), cast(2, 2), cast(3, 3), cast(7, 4)]);
        assert_eq!(b.lreg(1)[..3], [0xC040_0000, 0x40A0_0000, SIGN]);
        assert_eq!(b.lreg(2)[..4], [0x7FFF_FFFD, 5, SIGN, 3]);
        assert_eq!(b.lreg(3)[..4], [0xFFFF_FFFD, 5, SIGN, SIGN | 3]);
        assert_eq!(b.lreg(4), b.lreg(3));
        // Random: up if the seven bits behind exceed those of the generator.
        let low = |bits: u32| 0x4000_0000 | bits;
        assert_eq!(int_to_float_random(low(0x20), 0), 0x4E80_0001);
        assert_eq!(int_to_float_random(low(0x20), 0x40 << 9), 0x4E80_0000);
        assert_eq!(int_to_float_random(low(0x21), 0x40 << 9), 0x4E80_0001);
    }
}
