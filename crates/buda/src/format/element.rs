//! Formats without shared exponents: conversion between float32 values and bits.
//!
//! - Float32: the bits. Tf32: float32 with a mantissa of 10 bits, in the upper 19 bits of a word;
//!   rounded to nearest, ties away from zero, as packers do (ISA documentation,
//!   Packers/FormatConversion).
//! - Float16 and Float16_b: IEEE binary16 and bfloat16, rounded to nearest, ties to even, as host
//!   frameworks make them; overflow gives an infinity, a NaN stays a NaN, denormals are kept.
//! - Lf8: the upper byte of a binary16 (5 bits of exponent, 2 of mantissa), rounded to nearest even
//!   from float32.
//! - Fp8_e4m3: OCP's 8-bit float with a bias of 7, no infinities, 448 the largest value, to which
//!   what is larger (an infinity, too) saturates; 0x7f is the NaN.
//! - Int8, Int32: sign and magnitude, rounded half away from zero, clamped to the largest
//!   magnitude; a zero has no sign, a NaN is zero. UInt8, UInt16 and the raw formats: the same
//!   without a sign, negative values are zero.
//!
//! Decoding is exact but for Int32 and RawUInt32 beyond 2^24, where the nearest float32 is taken.

use half::{bf16, f16};
use tilework_netlist::DataFormat;

/// Encodes a value in the low bits of a word. Block formats are in [`super::block`].
#[inline]
pub fn encode(format: DataFormat, value: f32) -> u32 {
    match format {
        DataFormat::Float32 => value.to_bits(),
        DataFormat::Tf32 => tf32(value),
        DataFormat::Float16 => u32::from(f16::from_f32(value).to_bits()),
        DataFormat::Float16B => u32::from(bf16::from_f32(value).to_bits()),
        DataFormat::Lf8 => lf8(value),
        DataFormat::Fp8E4m3 => e4m3(value),
        DataFormat::Int8 => sign_magnitude(value, 0x7f, 7),
        DataFormat::Int32 => sign_magnitude(value, 0x7fff_ffff, 31),
        DataFormat::UInt8 | DataFormat::RawUInt8 => unsigned(value, 0xff),
        DataFormat::UInt16 | DataFormat::RawUInt16 => unsigned(value, 0xffff),
        DataFormat::RawUInt32 => unsigned(value, u32::MAX),
        DataFormat::Bfp8
        | DataFormat::Bfp4
        | DataFormat::Bfp2
        | DataFormat::Bfp8B
        | DataFormat::Bfp4B
        | DataFormat::Bfp2B => 0,
    }
}

/// Decodes such bits.
#[inline]
pub fn decode(format: DataFormat, bits: u32) -> f32 {
    match format {
        DataFormat::Float32 | DataFormat::Tf32 => f32::from_bits(bits),
        DataFormat::Float16 => f16::from_bits(bits as u16).to_f32(),
        DataFormat::Float16B => bf16::from_bits(bits as u16).to_f32(),
        DataFormat::Lf8 => f16::from_bits((bits as u16) << 8).to_f32(),
        DataFormat::Fp8E4m3 => e4m3_value(bits),
        DataFormat::Int8 => signed(bits & 0x7f, bits & 0x80 != 0),
        DataFormat::Int32 => signed(bits & 0x7fff_ffff, bits >> 31 != 0),
        DataFormat::UInt8
        | DataFormat::RawUInt8
        | DataFormat::UInt16
        | DataFormat::RawUInt16
        | DataFormat::RawUInt32 => bits as f32,
        DataFormat::Bfp8
        | DataFormat::Bfp4
        | DataFormat::Bfp2
        | DataFormat::Bfp8B
        | DataFormat::Bfp4B
        | DataFormat::Bfp2B => 0.0,
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

/// The magnitude of a value as a float with this many mantissa bits and this bias: rounded to
/// nearest even, with denormals and an unlimited exponent.
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
