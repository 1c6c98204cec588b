//! Block formats: 16 elements of a row of a face share an exponent (tt-budabackend,
//! `docs/public/dataformats.md` and `common/tile_lib.cpp`).
//!
//! The exponent is the largest of the 16 as float32 has them; the A formats (`Bfp8`, `Bfp4`,
//! `Bfp2`) change its bias from 127 to 15 and saturate it to 5 bits. An element is a sign and a
//! magnitude of 7, 3 or 1 bits without hidden one: its 24-bit significand shifted right by its
//! distance to the shared exponent, rounded **half up on the magnitude** and clamped: the exponent
//! is never bumped. A magnitude that becomes zero loses its sign. In an A format a value beyond the
//! largest exponent becomes the largest magnitude; one below the smallest counts as 2^-15, because
//! only its exponent saturates. Float32 exponents of 255 and 0 are not special: an infinity is
//! 2^128, a NaN larger, a denormal keeps its mantissa behind a hidden one; a zero is a zero.

use crate::DType;

/// Elements that share an exponent.
pub const BLOCK: usize = 16;

/// Parameters of a block format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockFormat {
    /// Bits of magnitude.
    pub magnitude: u32,
    /// An exponent of 5 bits.
    pub small_exponent: bool,
}

impl BlockFormat {
    /// The block format that `format` is, if it is one.
    pub const fn of(format: DType) -> Option<BlockFormat> {
        if !format.is_block() {
            return None;
        }
        let small_exponent = matches!(format, DType::Bfp8 | DType::Bfp4 | DType::Bfp2);
        Some(BlockFormat { magnitude: format.bits() - 1, small_exponent })
    }

    /// Bits of an element.
    pub fn bits(self) -> u32 {
        self.magnitude + 1
    }

    /// Bias of the shared exponent.
    fn bias(self) -> i32 {
        if self.small_exponent { 15 } else { 127 }
    }

    /// Exponent and fraction of a value as the format sees them.
    fn parts(self, bits: u32) -> (u32, u32) {
        let (exponent, fraction) = (bits >> 23 & 0xff, bits & 0x7f_ffff);
        if !self.small_exponent {
            return (exponent, fraction);
        }
        match exponent as i32 - 127 + 15 {
            e if e > 31 => (31, 0x7f_ffff),
            e if e < 0 => (0, 0),
            e => (e as u32, fraction),
        }
    }

    /// The exponent that these values share.
    pub fn exponent(self, values: &[f32]) -> u8 {
        values.iter().map(|v| self.parts(v.to_bits()).0).max().unwrap_or(0) as u8
    }

    /// A value as sign and magnitude under a shared exponent; `truncate` cuts instead of rounding.
    #[inline]
    pub fn encode(self, value: f32, exponent: u8, truncate: bool) -> u8 {
        let bits = value.to_bits();
        if bits & 0x7fff_ffff == 0 {
            return 0;
        }
        let (own, fraction) = self.parts(bits);
        let distance = u32::from(exponent).saturating_sub(own).min(31);
        let shift = 24 - self.magnitude;
        let half = if truncate { 0 } else { 1 << (shift - 1) };
        let magnitude = (((fraction | 0x80_0000) >> distance) + half) >> shift;
        let magnitude = magnitude.min((1 << self.magnitude) - 1);
        let sign = if magnitude == 0 { 0 } else { bits >> 31 };
        (sign << self.magnitude | magnitude) as u8
    }

    /// Packs 16 values: their elements into `data`, the first in the low bits; the shared exponent
    /// is returned. `data` has 16 times [`BlockFormat::bits`] bits.
    pub fn pack(self, values: &[f32; BLOCK], data: &mut [u8]) -> u8 {
        // With constant parameters the compiler makes vector code of the two usual formats.
        match (self.magnitude, self.small_exponent) {
            (7, false) => Self { magnitude: 7, small_exponent: false }.pack_each(values, data),
            (3, false) => Self { magnitude: 3, small_exponent: false }.pack_each(values, data),
            _ => self.pack_each(values, data),
        }
    }

    #[inline(always)]
    fn pack_each(self, values: &[f32; BLOCK], data: &mut [u8]) -> u8 {
        let exponent = self.exponent(values);
        let elements = values.map(|value| self.encode(value, exponent, false));
        let per_byte = (8 / self.bits()) as usize;
        for (byte, elements) in data.iter_mut().zip(elements.chunks(per_byte)) {
            *byte = elements.iter().rev().fold(0, |byte, element| byte << (self.bits() % 8) | element);
        }
        exponent
    }

    /// The inverse of [`BlockFormat::pack`].
    pub fn unpack(self, exponent: u8, data: &[u8]) -> [f32; BLOCK] {
        let (bits, mask) = (self.bits() as usize, u8::MAX >> (8 - self.bits()));
        std::array::from_fn(|i| self.decode(data[i * bits / 8] >> (i * bits % 8) & mask, exponent))
    }

    /// Brings a row of values to what the blocks along it can hold; blocks begin at multiples of
    /// [`BLOCK`].
    pub fn round(self, row: &mut [f32], truncate: bool) {
        for values in row.chunks_mut(BLOCK) {
            let exponent = self.exponent(values);
            for v in values {
                *v = self.decode(self.encode(*v, exponent, truncate), exponent);
            }
        }
    }

    /// The value of a sign and magnitude under a shared exponent. A sign without a magnitude is
    /// minus infinity, in an A format -2^16 (ISA documentation, FloatBitPatterns); packing
    /// never makes one.
    #[inline]
    pub fn decode(self, element: u8, exponent: u8) -> f32 {
        let magnitude = u32::from(element) & ((1 << self.magnitude) - 1);
        let negative = element >> self.magnitude & 1 != 0;
        if magnitude == 0 {
            return match (negative, self.small_exponent) {
                (false, _) => 0.0,
                (true, false) => f32::NEG_INFINITY,
                (true, true) => -65536.0,
            };
        }
        let value = magnitude as f32 * self.unit(exponent);
        if negative { -value } else { value }
    }

    /// The value of a magnitude of one under an exponent. For the smallest exponents it is a
    /// denormal, still exact.
    #[inline]
    fn unit(self, exponent: u8) -> f32 {
        let power = i32::from(exponent) - self.bias() - (self.magnitude as i32 - 1);
        if power >= -126 { f32::from_bits(((power + 127) as u32) << 23) } else { f32::from_bits(1 << (power + 149)) }
    }
}
