//! `a * b + c` as Blackhole's vector unit computes it.
//!
//! Follows SFPMAD.md and Miscellaneous/FMA/README.md of the ISA documentation. Denormals are zero.
//! The product is cut to 28 bits, the last of which says whether anything was lost ("sticky"), and
//! added to the addend with three more bits than FP32 has; the sum is rounded once, to nearest
//! even. A product that overflows by itself is infinite, one that underflows is zero. Every NaN is
//! 0x7FC00000.

use super::{LANES, LReg, ONE, SIGN};
use multiversion::multiversion;

const NAN: u32 = 0x7FC0_0000;
const INFINITY: u32 = 0x7F80_0000;
const MANTISSA: u32 = 0x7F_FFFF;
/// The implicit bit.
const HIDDEN: u32 = 1 << 23;
/// The smallest normal number.
const MIN_NORMAL: u32 = HIDDEN;
/// Sums of this many bits are normal: 24 of the result and three for rounding.
const SUM_BITS: i32 = 27;
/// A sum of [`SUM_BITS`] bits that rounds up to the next power of two although it has lost one bit
/// more for being denormal: 23 ones and half a unit or more behind them.
const ROUNDS_UP_TO_NORMAL: u32 = 0x7FF_FFF8;

/// `a * b + c` in each lane.
#[inline]
pub(super) fn fma_lanes(a: &LReg, b: &LReg, c: &LReg) -> LReg {
    fma_signed((a, 0), b, (c, 0))
}

/// The same with signs of `a` and of `c` changed where these have bits.
pub(super) fn fma_signed((a, sign_a): (&LReg, u32), b: &LReg, (c, sign_c): (&LReg, u32)) -> LReg {
    let (mut out, mut rare) = ([0; LANES], [0; LANES]);
    if common_lanes((a, sign_a), b, (c, sign_c), &mut out, &mut rare) {
        for lane in (0..LANES).filter(|&lane| rare[lane] != 0) {
            out[lane] = fma(a[lane] ^ sign_a, b[lane], c[lane] ^ sign_c);
        }
    }
    out
}

/// `a * b + c` in the common case; `true`: some lanes are others, which `rare` says, and their
/// values mean nothing.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2"))]
fn common_lanes(
    (a, sign_a): (&LReg, u32),
    b: &LReg,
    (c, sign_c): (&LReg, u32),
    out: &mut LReg,
    rare: &mut LReg,
) -> bool {
    let mut any = 0;
    for lane in 0..LANES {
        let (value, is_rare) = common(a[lane] ^ sign_a, b[lane], c[lane] ^ sign_c);
        (out[lane], rare[lane]) = (value, u32::from(is_rare));
        any |= rare[lane];
    }
    any != 0
}

#[inline(always)]
fn exponent(x: u32) -> i32 {
    (x >> 23 & 0xFF).cast_signed()
}

/// The mantissa with its implicit bit; zero for zeros and denormals.
#[inline(always)]
fn mantissa(x: u32) -> u32 {
    if exponent(x) == 0 { 0 } else { x & MANTISSA | HIDDEN }
}

/// The mantissa of 27 or 28 bits, the last of them sticky, of the product of normal numbers. In 32
/// bits: the lower half of the product is exact, and a product of f32 says which upper half belongs
/// to it.
#[inline(always)]
fn product(a: u32, b: u32) -> u32 {
    let (one_a, one_b) = (f32::from_bits(a & MANTISSA | ONE), f32::from_bits(b & MANTISSA | ONE));
    let low = (a & MANTISSA | HIDDEN).wrapping_mul(b & MANTISSA | HIDDEN);
    // Between 1 and 4, as the 27 or 28 bits of the result: at most eight too large or too small.
    let near = (one_a * one_b).to_bits();
    let near = (near & MANTISSA | HIDDEN) << (((near >> 23) - 124) & 7);
    // The twelve bits above those that are cut off are known; so are the others by being near.
    let known = low >> 20;
    let above = (near - known + 0x800) & !0xFFF;
    (above + known) | u32::from(low & 0xF_FFFF != 0)
}

/// Shifts a number of less than 31 bits right, by what is not negative; what is lost stays in the
/// last bit unless everything is lost.
#[inline(always)]
fn shift_sticky(x: u32, by: i32) -> u32 {
    let by = by.min(31).cast_unsigned() & 31;
    let shifted = x >> by;
    shifted | u32::from((shifted != 0) & (shifted << by != x))
}

/// The magnitude of the sum of product and addend, its exponent, and its sign.
#[inline(always)]
fn sum(p: u32, p_exponent: i32, p_sign: u32, c: u32) -> (u32, i32, u32) {
    let (z, z_exponent, z_sign) = (mantissa(c) << 3, exponent(c), c & SIGN);
    let e = p_exponent.max(z_exponent);
    let (p, z) = (shift_sticky(p, e - p_exponent), shift_sticky(z, e - z_exponent));
    let (big, small, sign) = if p >= z { (p, z, p_sign) } else { (z, p, z_sign) };
    (if p_sign == z_sign { big + small } else { big - small }, e, sign)
}

/// `x` with this sign, as an integer.
#[inline(always)]
fn with_sign(x: u32, sign: u32) -> i32 {
    let mask = sign.cast_signed() >> 31;
    (x.cast_signed() ^ mask) - mask
}

/// `a * b + c` if it is neither near the limits of the exponent nor special; true: it is, and the
/// value means nothing. Without branches, for the compiler to vectorise.
#[inline(always)]
fn common(a: u32, b: u32, c: u32) -> (u32, bool) {
    let (a_exponent, b_exponent, c_exponent) = (exponent(a), exponent(b), exponent(c));
    let p_exponent = a_exponent + b_exponent - 127;
    let special = (a_exponent.max(b_exponent).max(c_exponent) == 255) | (p_exponent >= 255);
    let no_product = (a_exponent == 0) | (b_exponent == 0) | (p_exponent < 0);
    let no_addend = c_exponent == 0;
    let z = if no_addend { 0 } else { (c & MANTISSA | HIDDEN) << 3 };
    let e = p_exponent.max(c_exponent);
    let p = with_sign(shift_sticky(product(a, b), e - p_exponent), a ^ b);
    let total = p + with_sign(shift_sticky(z, e - c_exponent), c);
    // The conversion rounds to nearest even as wanted, and the last bit is sticky.
    let rounded = (total as f32).to_bits();
    let raised = e - 127 - (SUM_BITS - 1);
    let result_exponent = exponent(rounded) + raised;
    let near_limit = !(2..254).contains(&result_exponent);
    let zeros = (a ^ b) & c & SIGN;
    let result = rounded.wrapping_add(raised.cast_unsigned() << 23);
    let result = if total == 0 { zeros } else { result };
    let addend = if no_addend { zeros } else { c };
    let result = if no_product { addend } else { result };
    (result, special | near_limit & (total != 0) & !no_product)
}

/// `a * b + c`.
pub(super) fn fma(a: u32, b: u32, c: u32) -> u32 {
    let p_sign = (a ^ b) & SIGN;
    let p_exponent = exponent(a) + exponent(b) - 127;
    if [a, b, c].map(exponent).contains(&255) || p_exponent >= 255 {
        return special(a, b, c);
    }
    let zeros = p_sign & c & SIGN;
    if exponent(a) == 0 || exponent(b) == 0 || p_exponent < 0 {
        return if mantissa(c) == 0 { zeros } else { c };
    }
    let (magnitude, e, sign) = sum(product(a, b), p_exponent, p_sign, c);
    if magnitude == 0 {
        return zeros;
    }
    let excess = SUM_BITS - (32 - magnitude.leading_zeros()).cast_signed();
    let e = e - excess;
    let normal = if excess >= 0 { magnitude << excess } else { shift_sticky(magnitude, -excess) };
    if e >= 255 {
        return sign | INFINITY;
    }
    if e <= 0 {
        return sign | if normal >= ROUNDS_UP_TO_NORMAL { MIN_NORMAL } else { 0 };
    }
    let truncated = e.cast_unsigned() << 23 | normal >> 3 & MANTISSA;
    let up = u32::from((normal & 7) + (truncated & 1) > 4);
    // A carry out of the mantissa goes to the exponent, at last to infinity.
    sign | (truncated + up)
}

/// The result where an operand or the product is infinite or NaN.
fn special(a: u32, b: u32, c: u32) -> u32 {
    let is_nan = |x: u32| x & !SIGN > INFINITY;
    let is_infinite = |x: u32| x & !SIGN == INFINITY;
    let p_sign = (a ^ b) & SIGN;
    let infinite_product = is_infinite(a) || is_infinite(b);
    let invalid = infinite_product && (mantissa(a) == 0 || mantissa(b) == 0)
        || infinite_product && is_infinite(c) && c & SIGN != p_sign;
    if is_nan(a) || is_nan(b) || is_nan(c) || invalid {
        NAN
    } else if is_infinite(c) {
        c
    } else {
        p_sign | INFINITY
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value by exact arithmetic: what the page says, in integers of 128 bits whose unit is
    /// 2 to the power of the smallest exponent that occurs.
    fn model(a: u32, b: u32, c: u32) -> u32 {
        let value = |x: u32| match exponent(x) {
            0 => 0i128,
            _ => i128::from(x & MANTISSA | HIDDEN),
        };
        let [fa, fb, fc] = [a, b, c].map(|x| f32::from_bits(if exponent(x) == 0 { x & SIGN } else { x }));
        let p_exponent = exponent(a) + exponent(b) - 127;
        if !fa.is_finite() || !fb.is_finite() || !fc.is_finite() || p_exponent >= 255 {
            let huge = p_exponent >= 255 && fa.is_finite() && fb.is_finite();
            let product = if huge { f32::INFINITY.copysign(fa * fb) } else { fa * fb };
            // The product of finite factors, even if it overflows, never makes the sum with an
            // infinite addend invalid.
            let finite = fa.is_finite() && fb.is_finite();
            let result = if finite && fc.is_infinite() { fc } else { product + fc };
            return if result.is_nan() { NAN } else { result.to_bits() };
        }
        let sign = |x: u32| if x & SIGN != 0 { -1 } else { 1 };
        let p_sign = sign(a) * sign(b);
        let zeros = if p_sign < 0 && c & SIGN != 0 { SIGN } else { 0 };
        let product = value(a) * value(b);
        if product == 0 || p_exponent < 0 {
            return if value(c) == 0 { zeros } else { c };
        }
        // Cut to 2^-26 of its exponent, sticky; both to the greater exponent, sticky in turn.
        let cut = |x: i128, by: i32| {
            let x = (x, by.min(100));
            let q = x.0 >> x.1;
            if q != 0 && q << x.1 != x.0 { q | 1 } else { q }
        };
        let p = cut(product << 3, 23);
        let e = p_exponent.max(exponent(c));
        let p = p_sign * cut(p, if e - p_exponent >= 32 { 100 } else { e - p_exponent });
        let z = sign(c) * cut(value(c) << 3, if e - exponent(c) >= 32 { 100 } else { e - exponent(c) });
        let total = p + z;
        if total == 0 {
            return zeros;
        }
        rounded(total, e)
    }

    /// The sum `total`, whose unit is 2^-26 of the exponent `e`, as FP32.
    fn rounded(total: i128, mut e: i32) -> u32 {
        let s = if total < 0 { SIGN } else { 0 };
        let mut magnitude = total.abs();
        while magnitude >= 1 << 27 {
            magnitude = magnitude >> 1 | magnitude & 1;
            e += 1;
        }
        while magnitude < 1 << 26 {
            magnitude <<= 1;
            e -= 1;
        }
        if e >= 255 {
            return s | INFINITY;
        }
        if e <= 0 {
            magnitude = magnitude >> 1 | magnitude & 1;
        }
        let (mut q, rest) = (magnitude >> 3, magnitude & 7);
        if rest > 4 || rest == 4 && q & 1 != 0 {
            q += 1;
        }
        if e <= 0 {
            return s | if q == i128::from(HIDDEN) { MIN_NORMAL } else { 0 };
        }
        if q == 1 << 24 {
            (q, e) = (q >> 1, e + 1);
        }
        if e >= 255 { s | INFINITY } else { s | e.cast_unsigned() << 23 | q as u32 & MANTISSA }
    }

    fn check(a: u32, b: u32, c: u32) {
        let expected = model(a, b, c);
        assert_eq!(fma(a, b, c), expected, "{a:#x} * {b:#x} + {c:#x}");
        assert_eq!(fma_lanes(&[a; LANES], &[b; LANES], &[c; LANES])[5], expected, "{a:#x} * {b:#x} + {c:#x}");
    }

    #[test]
    fn corner_values_of_every_operand() {
        let mut corners = vec![0, 1, MANTISSA, MIN_NORMAL, MIN_NORMAL + 1, 0x00FF_FFFF, 0x3F7F_FFFF, 0x3F80_0000];
        corners.extend([0x3F80_0001, 0x3FFF_FFFF, 0x4000_0000, 0x1FFF_FFFF, 0x2000_0000, 0x5F00_0000, 0x7F00_0000]);
        corners.extend([0x7F7F_FFFF, 0x7F7F_FFFE, INFINITY, INFINITY + 1, NAN, 0x7FFF_FFFF, 0x3300_0000, 0x0180_0000]);
        let signed: Vec<u32> = corners.iter().flat_map(|&x| [x, x | SIGN]).collect();
        for &a in &signed {
            for &b in &signed {
                for &c in &signed {
                    check(a, b, c);
                }
            }
        }
    }

    #[test]
    fn random_operands_whose_exponents_meet() {
        let mut state = 0x1234_5678_9ABC_DEF1u64;
        let mut random = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 16) as u32
        };
        for i in 0..60_000 {
            let (a, b, c) = (random(), random(), random());
            check(a, b, c);
            // The addend's exponent is near the product's, in every third case near the smallest.
            let (ea, eb) = match i % 3 {
                0 => (60 + random() % 8, 60 + random() % 9),
                1 => (120 + random() % 16, 120 + random() % 16),
                _ => (190 + random() % 3, 189 + random() % 3),
            };
            let ec = (ea + eb).saturating_sub(127 + 30).wrapping_add(random() % 60).min(254);
            let with = |x: u32, e: u32| x & (SIGN | MANTISSA) | e << 23;
            check(with(a, ea), with(b, eb), with(c, ec));
            // Cancellation: the addend is the negated product, give or take a little.
            let p = f32::from_bits(with(a, ea)) * f32::from_bits(with(b, eb));
            check(with(a, ea), with(b, eb), (p.to_bits() ^ SIGN).wrapping_add(random() % 3).wrapping_sub(1));
        }
    }

    #[test]
    fn it_is_only_partially_fused() {
        // 2^-126 * 0.25 underflows by itself, so it does not move the addend; 2^-127 still counts.
        assert_eq!(fma(MIN_NORMAL, 0x3E80_0000, MIN_NORMAL), MIN_NORMAL);
        assert_eq!(fma(MIN_NORMAL, 0x3F00_0000, MIN_NORMAL), 0x00C0_0000);
        // A product that overflows is infinite even if the sum would not be.
        assert_eq!(fma(0x7F00_0000, 0x4000_0000, 0xFF7F_FFFF), INFINITY);
        // (1 + 2^-23)^2 - (1 + 2^-22) is 2^-46; of the product only its having more bits remains.
        assert_eq!(fma(0x3F80_0001, 0x3F80_0001, 0xBF80_0002), (26f32.exp2().recip()).to_bits());
    }
}
