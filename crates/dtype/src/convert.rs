//! Typecasts: single values from one stored type to another, with the rounding of the hardware.
//!
//! - float32 to bfloat16 and float16: round to nearest, ties to even; a NaN stays a NaN. (The
//!   bfloat16 typecast kernel of the device adds 0x7fff and the lowest kept bit, which is the same
//!   for all values but NaNs with a full mantissa.)
//! - float to 32-bit integer: towards zero, saturating; a NaN takes the value of an infinity of its
//!   sign. This is what the typecast kernels of the public LLK do
//!   (`calculate_typecast_fp32_to_int32`, `_to_uint32`).
//! - float to 16-bit unsigned: negative values give 0, others round to nearest with ties away from
//!   zero and saturate: `SFPSTOCHRND` in mode FP32_TO_UINT16 (ISA documentation,
//!   SFPSTOCHRND_FloatInt).
//! - float to 8-bit unsigned: towards zero as a 32-bit integer, then its low byte; a value of 2^31
//!   or more and a NaN give 0 (`calculate_typecast_fp32_to_uint8`).
//! - integer to 16-bit unsigned saturates, to 8-bit unsigned keeps the low byte; between 32-bit
//!   integers the bits stay (the same kernels).
//! - integer to float: through float32, round to nearest even (`SFPCAST`), then to the narrower
//!   type.
//! - to a truth value: whether it differs from zero.

use half::{bf16, f16};

/// float32 to bfloat16, round to nearest even, NaNs kept (and made quiet).
#[inline]
pub fn bf16_from_f32(value: f32) -> bf16 {
    let bits = value.to_bits();
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    let quiet = (bits >> 16) | 0x40;
    let nan = (bits & 0x7fff_ffff) > 0x7f80_0000;
    bf16::from_bits(if nan { quiet } else { rounded } as u16)
}

/// bfloat16 to float32, exact.
#[inline]
pub fn f32_from_bf16(value: bf16) -> f32 {
    f32::from_bits(u32::from(value.to_bits()) << 16)
}

/// float32 to signed 32-bit: towards zero, saturating, a NaN as the infinity of its sign.
#[inline]
pub fn i32_from_f32(value: f32) -> i32 {
    if value.is_nan() {
        return if value.is_sign_negative() { i32::MIN } else { i32::MAX };
    }
    value as i32
}

/// float32 to unsigned 32-bit: towards zero, saturating, a NaN as the infinity of its sign.
#[inline]
pub fn u32_from_f32(value: f32) -> u32 {
    if value.is_nan() {
        return if value.is_sign_negative() { 0 } else { u32::MAX };
    }
    value as u32
}

/// float32 to unsigned 16-bit: to nearest with ties away from zero, saturating, a NaN as the
/// infinity of its sign.
#[inline]
pub fn u16_from_f32(value: f32) -> u16 {
    if value.is_nan() {
        return if value.is_sign_negative() { 0 } else { u16::MAX };
    }
    libm::roundf(value) as u16
}

/// float32 to unsigned 8-bit: the low byte of the value towards zero, 0 from 2^31 on and for a NaN.
#[inline]
pub fn u8_from_f32(value: f32) -> u8 {
    if value.is_nan() || value.abs() >= 2_147_483_648.0 { 0 } else { value as i32 as u8 }
}

/// An element type as it is stored, with its conversions from and to the types in which operations
/// compute.
pub trait Element: Copy + Default + PartialEq + PartialOrd + Send + Sync + std::fmt::Debug + 'static {
    /// Whether values are floating point.
    const FLOAT: bool;
    /// The value as float32, rounded to nearest even.
    fn to_f32(self) -> f32;
    /// The value as an integer: floats towards zero, saturating at 32 bits.
    fn to_i64(self) -> i64;
    /// A float32 in this type, with the rounding of the module's rules.
    fn from_f32(value: f32) -> Self;
    /// The result of integer arithmetic in this type: its low bits, or the nearest float.
    fn from_i64(value: i64) -> Self;
    /// A typecast from an integer: as [`Element::from_i64`], but for `u16`, which saturates.
    #[inline]
    fn cast_i64(value: i64) -> Self {
        Self::from_i64(value)
    }
}

/// A value in another type, by the rules of the module.
#[inline]
pub fn cast<S: Element, D: Element>(value: S) -> D {
    if S::FLOAT { D::from_f32(value.to_f32()) } else { D::cast_i64(value.to_i64()) }
}

macro_rules! float_element {
    ($t:ty, $to:expr, $from:expr) => {
        impl Element for $t {
            const FLOAT: bool = true;
            #[inline]
            fn to_f32(self) -> f32 {
                $to(self)
            }
            #[inline]
            fn to_i64(self) -> i64 {
                i64::from(i32_from_f32($to(self)))
            }
            #[inline]
            fn from_f32(value: f32) -> Self {
                $from(value)
            }
            #[inline]
            fn from_i64(value: i64) -> Self {
                $from(value as f32)
            }
        }
    };
}

macro_rules! integer_element {
    ($t:ty, $from:expr $(, $cast:expr)?) => {
        impl Element for $t {
            const FLOAT: bool = false;
            #[inline]
            fn to_f32(self) -> f32 {
                self as f32
            }
            #[inline]
            fn to_i64(self) -> i64 {
                i64::from(self)
            }
            #[inline]
            fn from_f32(value: f32) -> Self {
                $from(value)
            }
            #[inline]
            fn from_i64(value: i64) -> Self {
                value as $t
            }
            $(#[inline]
            fn cast_i64(value: i64) -> Self {
                $cast(value)
            })?
        }
    };
}

float_element!(f32, |v| v, |v| v);
float_element!(bf16, f32_from_bf16, bf16_from_f32);
float_element!(f16, f16::to_f32, f16::from_f32);
integer_element!(i32, i32_from_f32);
integer_element!(u32, u32_from_f32);
integer_element!(u16, u16_from_f32, |value: i64| value.clamp(0, 0xffff) as u16);
integer_element!(u8, u8_from_f32);
