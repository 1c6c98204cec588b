//! Block floating point: 16 values share an exponent (ISA documentation, FloatBitPatterns, BFP8 and BFP4).
//!
//! A value is a sign and a magnitude of 7 or 3 bits without hidden one: `mag / 2^6 * 2^(exp - 127)` or `mag / 2^2 *
//! ...`. The exponent is the largest of the 16; each magnitude is the 24-bit mantissa shifted right by its distance to
//! that exponent, then rounded to nearest with ties away from zero and clamped, as the public host code of tt-metal
//! packs tiles. The packer of the chip rounds to bfloat16 first and cuts BFP8 to BFP4; tensors that come from the host
//! do not show that difference, so the host's rule is used for all.
//!
//! Blocks run along the last dimension from its start: 16 values are a row of a face, and faces begin at multiples of
//! 16.

use crate::DType;

/// Values that share an exponent: one row of a face.
pub const BLOCK: usize = 16;

/// Bits of magnitude of a block type, 0 for others.
fn magnitude_bits(dtype: DType) -> u32 {
    match dtype {
        DType::Bfp8 => 7,
        DType::Bfp4 => 3,
        _ => 0,
    }
}

/// The exponent that a block of values shares: the largest of their exponents.
pub fn shared_exponent(values: &[f32]) -> u8 {
    values.iter().map(|v| (v.to_bits() >> 23) as u8).max().unwrap_or(0)
}

/// A value as sign and magnitude under a shared exponent, in the low 8 or 4 bits. A magnitude of zero has no sign: sign
/// with zero magnitude means minus infinity.
pub fn pack(dtype: DType, value: f32, exponent: u8) -> u8 {
    let width = magnitude_bits(dtype);
    let bits = value.to_bits();
    if width == 0 || bits & 0x7fff_ffff == 0 {
        return 0;
    }
    let mantissa = (bits & 0x7f_ffff) | 0x80_0000;
    let distance = u32::from(exponent.saturating_sub((bits >> 23) as u8)).min(31);
    let shift = 24 - width;
    let magnitude = ((mantissa >> distance) + (1 << (shift - 1))) >> shift;
    let magnitude = magnitude.min((1 << width) - 1);
    let sign = if magnitude == 0 { 0 } else { bits >> 31 };
    ((sign << width) | magnitude) as u8
}

/// The value of a packed sign and magnitude under a shared exponent.
pub fn unpack(dtype: DType, packed: u8, exponent: u8) -> f32 {
    let width = magnitude_bits(dtype);
    if width == 0 {
        return 0.0;
    }
    let magnitude = u32::from(packed) & ((1 << width) - 1);
    let negative = (packed >> width) & 1 != 0;
    let value = if magnitude == 0 {
        if negative { f64::INFINITY } else { 0.0 }
    } else {
        f64::from(magnitude) * f64::from(i32::from(exponent) - 127 - (width as i32 - 1)).exp2()
    };
    (if negative { -value } else { value }) as f32
}

/// Brings values to what their blocks can hold. `row` is the length of the last dimension.
pub(crate) fn round(dtype: DType, row: usize, values: &mut [f32]) {
    for line in values.chunks_mut(row.max(1)) {
        for values in line.chunks_mut(BLOCK) {
            let exponent = shared_exponent(values);
            for v in values {
                *v = unpack(dtype, pack(dtype, *v, exponent), exponent);
            }
        }
    }
}
