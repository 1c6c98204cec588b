//! What the unpackers convert: formats of L1, what becomes of them in SrcA, SrcB and Dst, and the
//! conversion of one datum.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/{UNPACR_Regular,FloatBitPatterns}.md and
//! Unpackers/FormatConversion.md (Blackhole's pages refer to them). `FP32ToFP16` has no definition
//! there. The one here is as found on ttsim, another simulator, and is what
//! Packers/FormatConversion.md says of the same conversion. FP8 with exponents of four bits is as
//! found there, too: not documented.

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
    Fp32ToFp16,
    /// FP8, with exponents of five bits, or of four if `narrow`.
    Fp8 {
        narrow: bool,
    },
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
    /// The conversion from `from` to `to`. 8-bit integers are `unsigned`, FP8 has `narrow`
    /// exponents.
    pub(super) fn of(from: Format, to: Format, to_dst: bool, unsigned: bool, narrow: bool) -> Result<Self, Refusal> {
        use Format::{Bf16, Bfp2, Bfp2a, Bfp4, Bfp4a, Bfp8, Bfp8a, Fp8, Fp16, Fp32, Int8, Int16, Int32, Tf32};
        Ok(match (from, to) {
            (Fp32, Fp32 | Tf32) if to_dst => Self::Wide,
            (Fp32, Tf32) => Self::Fp32ToTf32,
            (Fp32, Bf16) => Self::Fp32ToBf16,
            (Fp32, Fp16) => Self::Fp32ToFp16,
            // All other formats stay what they are.
            _ if from != to => return Err(UNDEFINED_PAIR),
            (Tf32 | Int32, _) if to_dst => Self::Wide,
            (Bf16, _) => Self::Half(Family::Bf16),
            (Fp16, _) => Self::Half(Family::Fp16),
            (Int16, _) => Self::Half(Family::Opaque),
            (Fp8, _) => Self::Fp8 { narrow },
            (Int8, _) => Self::Int8 { unsigned },
            (Bfp8 | Bfp4 | Bfp2, _) => Self::Block { bits: from.bits(), family: Family::Bf16 },
            (Bfp8a | Bfp4a | Bfp2a, _) => Self::Block { bits: from.bits(), family: Family::Fp16 },
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
            Self::Fp32ToBf16 => (fp32_to_bf16(bits), Family::Bf16),
            Self::Half(family) => (bits as u16, family),
            Self::Fp32ToFp16 => (fp32_to_fp16(bits), Family::Fp16),
            Self::Fp8 { narrow: false } => ((bits << 8) as u16, Family::Fp16),
            Self::Fp8 { narrow: true } => (fp8_of_4_bit_exponent(bits as u8), Family::Fp16),
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

/// FP32 to BF16: denormals become zeros, low bits of the mantissa are lost.
#[inline]
pub(super) fn fp32_to_bf16(bits: u32) -> u16 {
    let kept = if bits & FP32_EXPONENT == 0 { bits & 1 << 31 } else { bits };
    (kept >> 16) as u16
}

/// FP32 to FP16: what is too small becomes zero, what is too large (or no number) infinity, and low
/// bits of the mantissa are lost. An exponent of 112 becomes one of 0, with the mantissa.
#[inline]
pub(super) fn fp32_to_fp16(bits: u32) -> u16 {
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7FFF_FFFF;
    let rebased = (magnitude.wrapping_sub(112 << 23) >> 13) as u16;
    sign | match magnitude >> 23 {
        ..112 => 0,
        112..144 => rebased,
        _ => 0x7FFF,
    }
}

/// FP8 with an exponent of four bits to FP16: the largest is infinity.
#[inline]
pub(super) fn fp8_of_4_bit_exponent(datum: u8) -> u16 {
    let (sign, magnitude) = (u16::from(datum & 0x80) << 8, u16::from(datum & 0x7F));
    sign | match magnitude {
        ..8 => magnitude << 7,
        0x7F => 0x5FFF,
        _ => (magnitude << 7) + (8 << 10),
    }
}

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
        Conversion::of(from, to, false, false, false).unwrap().datum(bits, exponent, false).unwrap()
    }

    #[test]
    fn numbers_keep_their_value() {
        // 1.5 in each format: sign, mantissa, exponent.
        let fp16 = 1 << 17 | 15;
        let bf16 = 1 << 17 | 127;
        assert_eq!(to_src(Format::Fp32, Format::Tf32, 0x3FC0_0000, 0), bf16);
        assert_eq!(to_src(Format::Fp32, Format::Bf16, 0x3FC0_0000, 0), bf16);
        assert_eq!(to_src(Format::Bf16, Format::Bf16, 0x3FC0, 0), bf16);
        assert_eq!(to_src(Format::Fp32, Format::Fp16, 0x3FC0_0000, 0), fp16);
        assert_eq!(to_src(Format::Fp16, Format::Fp16, 0x3E00, 0), fp16);
        assert_eq!(to_src(Format::Fp8, Format::Fp8, 0x3E, 0), fp16);
        assert_eq!(to_src(Format::Bfp8, Format::Bfp8, 0x60, 127), bf16);
        assert_eq!(to_src(Format::Bfp8, Format::Bfp8, 0x30, 128), bf16, "normalised");
        assert_eq!(to_src(Format::Bfp4, Format::Bfp4, 0x6, 127), bf16);
        assert_eq!(to_src(Format::Bfp2, Format::Bfp2, 0x1, 127), 127, "1.0");
        assert_eq!(to_src(Format::Bfp8a, Format::Bfp8a, 0x60, 15), fp16);
        assert_eq!(to_src(Format::Bfp4a, Format::Bfp4a, 0x6, 15), fp16);
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
        let narrow = Conversion::of(Format::Bfp8a, Format::Bfp8a, false, false, false).unwrap();
        assert_eq!([(0x40, 32), (0x01, 3)].map(|(x, e)| narrow.datum(x, e, false)), [Err(BLOCK_EXPONENT); 2]);
        let unsigned = Conversion::of(Format::Int8, Format::Int8, false, true, false).unwrap();
        assert_eq!(unsigned.datum(0xFF, 0, false), Ok(0xFF << 8 | 16));
        assert_eq!(unsigned.datum(0, 0, false), Ok(0));
    }

    #[test]
    fn dst_takes_what_src_cannot() {
        for (from, to, dst, src) in [
            (Format::Fp32, Format::Fp32, true, false),
            (Format::Int32, Format::Int32, true, false),
            (Format::Tf32, Format::Tf32, true, false),
            (Format::Fp32, Format::Tf32, true, true),
            (Format::Bf16, Format::Tf32, false, false),
            (Format::Bf16, Format::Fp16, false, false),
            (Format::Fp16, Format::Bf16, false, false),
        ] {
            let may = |to_dst| Conversion::of(from, to, to_dst, false, false).is_ok();
            assert_eq!((may(true), may(false)), (dst, src), "{from:?} to {to:?}");
        }
        let wide = Conversion::of(Format::Fp32, Format::Fp32, true, false, false).unwrap();
        assert_eq!(wide.datum(0x3F80_1234, 0, true), Ok(0x007F_1234));
        let half = Conversion::of(Format::Int16, Format::Int16, true, false, false).unwrap();
        assert_eq!(half.datum(0xABCD, 0, true), Ok(0xABCD));
    }

    #[test]
    fn fp32_to_fp16_saturates_and_truncates() {
        for (fp32, fp16) in [
            (0x8000_0000, 0x8000),
            (0x007F_FFFF, 0),
            (0x3800_0000, 0),
            (0x3800_1000, 0),
            (0x387F_E000, 0x03FF),
            (0x3880_0000, 0x0400),
            (0x3880_1FFF, 0x0400),
            (0x3F80_3000, 0x3C01),
            (0x477F_FFFF, 0x7BFF),
            (0x4780_0000, 0x7C00),
            (0x47FF_FFFF, 0x7FFF),
            (0x4800_0000, 0x7FFF),
            (0x7FC0_0000, 0x7FFF),
            (0xFF80_0000, 0xFFFF),
            (0xB800_1000, 0x8000),
        ] {
            assert_eq!(fp32_to_fp16(fp32), fp16, "{fp32:#x}");
        }
    }

    #[test]
    fn fp8_has_two_forms() {
        for (datum, fp16) in
            [(0x01, 0x0080), (0x07, 0x0380), (0x08, 0x2400), (0x38, 0x3C00), (0x7E, 0x5F00), (0x7F, 0x5FFF)]
        {
            assert_eq!(fp8_of_4_bit_exponent(datum), fp16, "{datum:#x}");
            assert_eq!(fp8_of_4_bit_exponent(datum | 0x80), fp16 | 0x8000);
        }
    }
}
