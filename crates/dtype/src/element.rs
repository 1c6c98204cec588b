//! Formats whose elements stand alone: float32 value to bits and back, as packers do it.
//!
//! - Tf32: rounded to nearest, ties away from zero (ISA documentation, Packers/FormatConversion).
//! - F16 and BF16: rounded to nearest, ties to even, as host frameworks make them; overflow gives
//!   an infinity, a NaN stays a NaN, denormals are kept.
//! - Lf8: rounded to nearest even from float32.
//! - Fp8E4m3: the bias is 7; there are no infinities. 448 is the largest value, to which what is
//!   larger (an infinity, too) saturates; 0x7f is the NaN.
//! - Signed integers: sign and magnitude, rounded half away from zero, clamped to the largest
//!   magnitude; a zero has no sign, a NaN is zero. Unsigned and raw formats: the same without a
//!   sign, negative values are zero.
//!
//! Decoding is exact but for 32-bit integers beyond 2^24, where the nearest float32 is taken.

use half::f16;

use crate::DType;
use crate::convert::{bf16_from_f32, f32_from_bf16};

/// The bits of a value in the low bits of a word. Formats of 64 bits do not fit one, and block
/// formats have no bits of their own (see [`crate::block`]): both give 0.
#[inline]
pub fn encode(format: DType, value: f32) -> u32 {
    match format {
        DType::F32 => value.to_bits(),
        DType::Tf32 => tf32(value),
        DType::F16 => u32::from(f16::from_f32(value).to_bits()),
        DType::BF16 => u32::from(bf16_from_f32(value).to_bits()),
        DType::Lf8 => lf8(value),
        DType::Fp8E4m3 => e4m3(value),
        DType::I8 => sign_magnitude(value, 0x7f, 7),
        DType::I16 => sign_magnitude(value, 0x7fff, 15),
        DType::I32 => sign_magnitude(value, 0x7fff_ffff, 31),
        DType::U8 | DType::RawU8 => unsigned(value, 0xff),
        DType::U16 | DType::RawU16 => unsigned(value, 0xffff),
        DType::U32 | DType::RawU32 => unsigned(value, u32::MAX),
        DType::Bool => u32::from(value != 0.0),
        DType::F64 | DType::I64 | DType::U64 => 0,
        DType::Bfp8 | DType::Bfp4 | DType::Bfp2 | DType::Bfp8B | DType::Bfp4B | DType::Bfp2B => 0,
    }
}

/// The value of such bits; 0 for the formats that have none.
#[inline]
pub fn decode(format: DType, bits: u32) -> f32 {
    match format {
        DType::F32 | DType::Tf32 => f32::from_bits(bits),
        DType::F16 => f16::from_bits(bits as u16).to_f32(),
        DType::BF16 => f32_from_bf16(half::bf16::from_bits(bits as u16)),
        DType::Lf8 => f16::from_bits((bits as u16) << 8).to_f32(),
        DType::Fp8E4m3 => e4m3_value(bits),
        DType::I8 => signed(bits & 0x7f, bits & 0x80 != 0),
        DType::I16 => signed(bits & 0x7fff, bits & 0x8000 != 0),
        DType::I32 => signed(bits & 0x7fff_ffff, bits >> 31 != 0),
        DType::U8 | DType::U16 | DType::U32 => bits as f32,
        DType::RawU8 | DType::RawU16 | DType::RawU32 => bits as f32,
        DType::Bool => {
            if bits != 0 {
                1.0
            } else {
                0.0
            }
        }
        DType::F64 | DType::I64 | DType::U64 => 0.0,
        DType::Bfp8 | DType::Bfp4 | DType::Bfp2 | DType::Bfp8B | DType::Bfp4B | DType::Bfp2B => 0.0,
    }
}

/// Tf32 in the upper 19 bits. A carry out of the mantissa goes into the exponent, up to
/// an infinity.
fn tf32(value: f32) -> u32 {
    let bits = value.to_bits();
    if value.is_nan() { bits & !0x1fff | 0x0040_0000 } else { bits.wrapping_add(0x1000) & !0x1fff }
}

/// The nearest Lf8, ties to even. From float32 in one step: through binary16 it would be
/// rounded twice.
fn lf8(value: f32) -> u32 {
    let sign = value.to_bits() >> 24 & 0x80;
    if value.is_nan() {
        return sign | 0x7e;
    }
    sign | small_float(value, 2, 15).min(0x7c)
}

/// The nearest Fp8_e4m3, ties to even.
fn e4m3(value: f32) -> u32 {
    let sign = value.to_bits() >> 24 & 0x80;
    if value.is_nan() {
        return sign | 0x7f;
    }
    sign | small_float(value, 3, 7).min(0x7e)
}

/// The magnitude of a value as a float with `mantissa` bits of mantissa and this bias, its exponent
/// without a limit: rounded to nearest even, with denormals.
fn small_float(value: f32, mantissa: u32, bias: i32) -> u32 {
    let bits = value.to_bits() & 0x7fff_ffff;
    let exponent = (bits >> 23) as i32 - 127 + bias;
    // Denormals of float32 are far below anything that a small float can hold.
    if bits >> 23 == 0 {
        return 0;
    }
    let significand = bits & 0x7f_ffff | 0x80_0000;
    // Below exponent 1 the value is denormal: the hidden bit moves into the mantissa.
    let (shift, base) =
        if exponent >= 1 { (23 - mantissa, exponent - 1) } else { (23 - mantissa + (1 - exponent) as u32, 0) };
    if shift > 25 {
        return 0;
    }
    let kept = significand >> shift;
    let rest = significand & ((1 << shift) - 1);
    let half = 1 << (shift - 1);
    let up = rest > half || rest == half && kept & 1 == 1;
    // With the hidden bit counted in, exponent and mantissa simply add up, carries included.
    ((base as u32) << mantissa) + kept + u32::from(up)
}

/// The value of an Fp8_e4m3.
fn e4m3_value(bits: u32) -> f32 {
    let (exponent, mantissa) = ((bits >> 3 & 0xf) as i32, bits & 7);
    let magnitude = match (exponent, mantissa) {
        (15, 7) => f32::NAN,
        (0, m) => m as f32 / 512.0,
        (e, m) => (8 + m) as f32 * f32::from_bits(((e - 10 + 127) as u32) << 23),
    };
    if bits & 0x80 != 0 { -magnitude } else { magnitude }
}

/// Sign and magnitude, the sign in bit `position`.
fn sign_magnitude(value: f32, largest: u32, position: u32) -> u32 {
    // The cast saturates, and makes zero of a NaN.
    let magnitude = (libm::roundf(value.abs()) as u32).min(largest);
    magnitude | u32::from(value < 0.0 && magnitude != 0) << position
}

/// A magnitude with its sign; zero has none.
fn signed(magnitude: u32, negative: bool) -> f32 {
    if negative && magnitude != 0 { -(magnitude as f32) } else { magnitude as f32 }
}

/// Without a sign.
fn unsigned(value: f32, largest: u32) -> u32 {
    (libm::roundf(value) as u32).min(largest)
}
