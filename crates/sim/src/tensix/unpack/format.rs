//! What the unpackers convert: formats of L1, what becomes of them in SrcA, SrcB and Dst, and the
//! conversion of one datum.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/{UNPACR_Regular,FloatBitPatterns}.md and
//! Unpackers/FormatConversion.md (Blackhole's pages refer to them). Where the input's format is not
//! FP32, the pages want the output's format to be the same; the other pairs here are those that the
//! public `is_unpacker_format_conversion_supported_fp32_acc` of tt-llk lists. They give the same
//! datum, in the format's family, and the output format is only what addresses count in and what
//! the matrix unit is told.

use super::super::config::Refusal;
use super::super::number::{
    dst_of_bf16, dst_of_fp16, dst_of_fp32, src_of_bf16, src_of_fp16, src_of_int16, src_of_tf32,
};
use crate::FaultClass;

/// Sign and exponent of FP32 that are not zero: anything but a denormal.
const FP32_EXPONENT: u32 = 0x7F80_0000;

/// A data format, as configuration fields encode it (FormatConversion.md, the last table).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Format {
    Fp32,
    Fp16,
    Bfp8a,
    Bfp4a,
    Tf32,
    Bf16,
    Bfp8,
    Bfp4,
    Int32,
    Int16,
    Fp8,
    Bfp2a,
    Int8,
    Bfp2,
}

impl Format {
    /// The format with this encoding; `None`: there is none.
    pub(super) fn of(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::Fp32,
            1 => Self::Fp16,
            2 => Self::Bfp8a,
            3 => Self::Bfp4a,
            4 => Self::Tf32,
            5 => Self::Bf16,
            6 => Self::Bfp8,
            7 => Self::Bfp4,
            8 => Self::Int32,
            9 => Self::Int16,
            10 => Self::Fp8,
            11 => Self::Bfp2a,
            14 => Self::Int8,
            15 => Self::Bfp2,
            _ => return None,
        })
    }

    /// Bits of a datum in L1.
    pub(super) fn bits(self) -> u32 {
        match self {
            Self::Bfp2 | Self::Bfp2a => 2,
            Self::Bfp4 | Self::Bfp4a => 4,
            Self::Bfp8 | Self::Bfp8a | Self::Fp8 | Self::Int8 => 8,
            Self::Fp16 | Self::Bf16 | Self::Int16 => 16,
            Self::Fp32 | Self::Tf32 | Self::Int32 => 32,
        }
    }

    /// 16 data share an exponent.
    pub(super) fn is_block(self) -> bool {
        self.is_block_of_8_bit_exponents() || matches!(self, Self::Bfp8a | Self::Bfp4a | Self::Bfp2a)
    }

    fn is_block_of_8_bit_exponents(self) -> bool {
        matches!(self, Self::Bfp8 | Self::Bfp4 | Self::Bfp2)
    }

    /// A power of two: what output addresses of this format count in.
    pub(super) fn address_shift(self) -> u32 {
        match self {
            Self::Fp32 | Self::Tf32 | Self::Int32 => 2,
            Self::Fp16 | Self::Bf16 | Self::Int16 => 1,
            _ => 0,
        }
    }

    /// Data of this format have 32 bits in Dst.
    pub(super) fn is_wide(self) -> bool {
        self.address_shift() == 2
    }
}

/// What 16 bits mean on their way to SrcA, SrcB or Dst.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Family {
    /// BF16.
    Bf16,
    /// FP16, and integers that lie over it.
    Fp16,
    /// No number.
    Opaque,
}

/// How a datum is converted, decided once for an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Conversion {
    /// 32 bits as they are, to Dst.
    Wide,
    /// FP32 loses the low bits of its mantissa, to SrcA or SrcB.
    Fp32ToTf32,
    Fp32ToBf16,
    /// 16 bits as they are.
    Half(Family),
    Fp8,
    Int8 {
        unsigned: bool,
    },
    /// A block format with `bits` for each datum, to BF16 or FP16.
    Block {
        bits: u32,
        family: Family,
    },
}

const UNDEFINED_PAIR: Refusal = (FaultClass::UndefinedBehavior, "formats of input and output that do not go together");

impl Conversion {
    /// The conversion from `from` to `to`.
    pub(super) fn of(from: Format, to: Format, to_dst: bool, unsigned: bool) -> Result<Self, Refusal> {
        use Format::{Bf16, Bfp2, Bfp2a, Bfp4, Bfp4a, Bfp8, Bfp8a, Fp8, Fp16, Fp32, Int8, Int16, Int32, Tf32};
        Ok(match (from, to) {
            (Fp32, Fp32 | Tf32) | (Tf32, Tf32) | (Int32, Int32) if to_dst => Self::Wide,
            (Fp32, Tf32) => Self::Fp32ToTf32,
            (Fp32, Bf16) => Self::Fp32ToBf16,
            (Fp32, Fp16) => {
                return Err((FaultClass::MissingSpecification, "FP32 to FP16, whose rounding no document gives"));
            }
            (Bf16, Tf32) if !to_dst => Self::Half(Family::Bf16),
            (Bf16, Bf16) => Self::Half(Family::Bf16),
            (Fp16, Fp16) => Self::Half(Family::Fp16),
            (Int16, Int16) => Self::Half(Family::Opaque),
            (Fp8, Fp8 | Fp16) => Self::Fp8,
            (Int8, Int8) => Self::Int8 { unsigned },
            (Bfp8 | Bfp4 | Bfp2, Tf32) if !to_dst => Self::Block { bits: from.bits(), family: Family::Bf16 },
            (Bfp8 | Bfp4 | Bfp2, Bf16 | Bfp8) => Self::Block { bits: from.bits(), family: Family::Bf16 },
            (Bfp4, Bfp4) | (Bfp2, Bfp2) => Self::Block { bits: from.bits(), family: Family::Bf16 },
            (Bfp8a | Bfp4a | Bfp2a, Fp16) => Self::Block { bits: from.bits(), family: Family::Fp16 },
            (Bfp8a, Bfp8a) | (Bfp4a, Bfp4a) | (Bfp2a, Bfp2a) => Self::Block { bits: from.bits(), family: Family::Fp16 },
            _ => return Err(UNDEFINED_PAIR),
        })
    }

    /// One datum in the layout of SrcA and SrcB, or of Dst: `FormatConversion` of the page. The
    /// rows of `rows.rs` do the same for 16 at once.
    ///
    /// # Errors
    /// An exponent that FP16 does not have.
    pub(super) fn datum(self, bits: u32, exponent: u8, to_dst: bool) -> Result<u32, Refusal> {
        let (half, family) = match self {
            Self::Wide => return Ok(dst_of_fp32(bits)),
            Self::Fp32ToTf32 => return Ok(src_of_tf32(bits >> 13)),
            Self::Fp32ToBf16 => {
                let flushed = if bits & FP32_EXPONENT == 0 { bits & 1 << 31 } else { bits };
                ((flushed >> 16) as u16, Family::Bf16)
            }
            Self::Half(family) => (bits as u16, family),
            Self::Fp8 => ((bits << 8) as u16, Family::Fp16),
            Self::Int8 { unsigned } => (int8(bits as u8, unsigned), Family::Fp16),
            Self::Block { bits: width, family } => {
                let datum = (bits << (8 - width)) as u8;
                (block(datum, exponent, family).ok_or(BLOCK_EXPONENT)?, family)
            }
        };
        Ok(if to_dst {
            let datum = match family {
                Family::Bf16 => dst_of_bf16(half),
                Family::Fp16 => dst_of_fp16(half),
                Family::Opaque => half,
            };
            datum.into()
        } else {
            match family {
                Family::Bf16 => src_of_bf16(half),
                Family::Fp16 => src_of_fp16(half),
                Family::Opaque => src_of_int16(half),
            }
        })
    }
}

/// A block of a format with exponents of five bits has an exponent that needs more.
pub(super) const BLOCK_EXPONENT: Refusal =
    (FaultClass::UndefinedBehavior, "a block whose exponent is none of the five bits that FP16 has");

/// An 8-bit integer over FP16: sign and magnitude, with 16 as the exponent of what is not zero.
#[inline]
pub(super) fn int8(datum: u8, unsigned: bool) -> u16 {
    let sign = if unsigned { 0 } else { datum & 0x80 };
    let magnitude = u16::from(datum - sign);
    let exponent = if magnitude == 0 { 0 } else { 16 << 10 };
    u16::from(sign) << 8 | exponent | magnitude
}

/// `BFP8ToBF16` and `BFP8aToFP16`; `None`: the latter's exponent does not fit.
fn block(datum: u8, exponent: u8, family: Family) -> Option<u16> {
    let (sign, magnitude) = (u16::from(datum >> 7), datum << 1);
    let wide = family == Family::Bf16;
    if magnitude == 0 {
        return Some(match (sign, wide) {
            (0, _) => 0,
            (_, true) => 0xFF80,
            (_, false) => 0xFC00,
        });
    }
    let zeros = magnitude.leading_zeros();
    let mantissa = u16::from(magnitude << zeros & 0x7E);
    let exponent = exponent.wrapping_sub(zeros as u8);
    if wide {
        return Some(sign << 15 | u16::from(exponent) << 7 | mantissa);
    }
    (exponent & 0xE0 == 0).then_some(sign << 15 | u16::from(exponent) << 10 | mantissa << 3)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn to_src(from: Format, to: Format, bits: u32, exponent: u8) -> u32 {
        Conversion::of(from, to, false, false).unwrap().datum(bits, exponent, false).unwrap()
    }

    #[test]
    fn numbers_keep_their_value() {
        // 1.5 in each format: sign, mantissa, exponent.
        let fp16 = 1 << 17 | 15;
        let bf16 = 1 << 17 | 127;
        assert_eq!(to_src(Format::Fp32, Format::Tf32, 0x3FC0_0000, 0), bf16);
        assert_eq!(to_src(Format::Fp32, Format::Bf16, 0x3FC0_0000, 0), bf16);
        assert_eq!(to_src(Format::Bf16, Format::Bf16, 0x3FC0, 0), bf16);
        assert_eq!(to_src(Format::Bf16, Format::Tf32, 0x3FC0, 0), bf16);
        assert_eq!(to_src(Format::Fp16, Format::Fp16, 0x3E00, 0), fp16);
        assert_eq!(to_src(Format::Fp8, Format::Fp8, 0x3E, 0), fp16);
        assert_eq!(to_src(Format::Bfp8, Format::Bfp8, 0x60, 127), bf16);
        assert_eq!(to_src(Format::Bfp8, Format::Bfp8, 0x30, 128), bf16, "normalised");
        assert_eq!(to_src(Format::Bfp4, Format::Bfp8, 0x6, 127), bf16);
        assert_eq!(to_src(Format::Bfp2, Format::Bfp2, 0x1, 127), 127, "1.0");
        assert_eq!(to_src(Format::Bfp8a, Format::Bfp8a, 0x60, 15), fp16);
        assert_eq!(to_src(Format::Bfp4a, Format::Fp16, 0x6, 15), fp16);
        assert_eq!(to_src(Format::Int8, Format::Int8, 0x83, 0), 1 << 18 | 3 << 8 | 16, "-3");
        assert_eq!(to_src(Format::Int16, Format::Int16, 0xABCD, 0), 0xAB00 << 3 | 0xCD);
    }

    #[test]
    fn corner_values_follow_the_page() {
        let fp32 = |bits| to_src(Format::Fp32, Format::Bf16, bits, 0);
        assert_eq!((fp32(0x007F_FFFF), fp32(0x807F_FFFF)), (0, 1 << 18), "denormals become zeros");
        assert_eq!(to_src(Format::Fp32, Format::Tf32, 0x007F_FFFF, 0), 0x3FF << 8, "but not as TF32");
        assert_eq!(to_src(Format::Bfp8, Format::Bfp8, 0x80, 9), src_of_bf16(0xFF80), "minus zero is minus infinity");
        assert_eq!(to_src(Format::Bfp8a, Format::Bfp8a, 0x80, 9), src_of_fp16(0xFC00));
        assert_eq!(to_src(Format::Bfp8, Format::Bfp8, 0x01, 3), src_of_bf16(0x7E80), "the exponent wraps");
        let narrow = Conversion::of(Format::Bfp8a, Format::Bfp8a, false, false).unwrap();
        assert_eq!([(0x40, 32), (0x01, 3)].map(|(x, e)| narrow.datum(x, e, false)), [Err(BLOCK_EXPONENT); 2]);
        let unsigned = Conversion::of(Format::Int8, Format::Int8, false, true).unwrap();
        assert_eq!(unsigned.datum(0xFF, 0, false), Ok(0xFF << 8 | 16));
        assert_eq!(unsigned.datum(0, 0, false), Ok(0));
    }

    #[test]
    fn dst_takes_what_src_cannot() {
        for (from, to, dst, src) in [
            (Format::Fp32, Format::Fp32, true, false),
            (Format::Int32, Format::Int32, true, false),
            (Format::Tf32, Format::Tf32, true, false),
            (Format::Bf16, Format::Tf32, false, true),
            (Format::Bfp8, Format::Tf32, false, true),
            (Format::Bf16, Format::Fp16, false, false),
            (Format::Fp16, Format::Bf16, false, false),
        ] {
            let may = |to_dst| Conversion::of(from, to, to_dst, false).is_ok();
            assert_eq!((may(true), may(false)), (dst, src), "{from:?} to {to:?}");
        }
        let wide = Conversion::of(Format::Fp32, Format::Fp32, true, false).unwrap();
        assert_eq!(wide.datum(0x3F80_1234, 0, true), Ok(0x007F_1234));
        let half = Conversion::of(Format::Int16, Format::Int16, true, false).unwrap();
        assert_eq!(half.datum(0xABCD, 0, true), Ok(0xABCD));
    }
}
