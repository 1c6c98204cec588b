//! How numbers lie in SrcA, SrcB and Dst: sign, mantissa, exponent, where memory and the vector
//! unit have sign, exponent, mantissa.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/SrcASrcB.md ("Data type bit layout"),
//! BlackholeA0/TensixTile/TensixCoprocessor/Dst.md (the same, and "Pseudocode helpers") and the
//! functions at the end of UNPACR_Regular.md. A datum of SrcA or SrcB has 19 bits.

/// Sign of a datum of SrcA or SrcB.
pub(super) const SRC_SIGN: u32 = 1 << 18;

/// A datum of Src from TF32 (1, 8 and 10 bits).
#[inline]
pub(super) fn src_of_tf32(x: u32) -> u32 {
    x & SRC_SIGN | (x & 0x3FF) << 8 | x >> 10 & 0xFF
}

/// TF32 from a datum of Src.
pub(super) fn tf32_of_src(x: u32) -> u32 {
    x & SRC_SIGN | (x & 0xFF) << 10 | x >> 8 & 0x3FF
}

/// A datum of Src from BF16.
#[inline]
pub(super) fn src_of_bf16(x: u16) -> u32 {
    src_of_tf32(u32::from(x) << 3)
}

/// A datum of Src from FP16: the exponent's high bits are zero.
#[inline]
pub(super) fn src_of_fp16(x: u16) -> u32 {
    let x = u32::from(x);
    src_of_tf32((x & 0x8000) << 3 | x & 0x7FFF)
}

/// A datum of Src from 16 bits that are no number.
#[inline]
pub(super) fn src_of_int16(x: u16) -> u32 {
    let x = u32::from(x);
    (x & 0xFF00) << 3 | x & 0xFF
}

/// A datum of Dst from BF16.
#[inline]
pub(super) fn dst_of_bf16(x: u16) -> u16 {
    x & 0x8000 | (x & 0x7F) << 8 | x >> 7 & 0xFF
}

/// BF16 from a datum of Dst.
#[inline]
pub(super) fn bf16_of_dst(x: u16) -> u16 {
    x & 0x8000 | (x & 0xFF) << 7 | x >> 8 & 0x7F
}

/// A datum of Dst from FP16.
#[inline]
pub(super) fn dst_of_fp16(x: u16) -> u16 {
    x & 0x8000 | (x & 0x3FF) << 5 | x >> 10 & 0x1F
}

/// FP16 from a datum of Dst.
#[inline]
pub(super) fn fp16_of_dst(x: u16) -> u16 {
    x & 0x8000 | (x & 0x1F) << 10 | x >> 5 & 0x3FF
}

/// A 32-bit datum of Dst from FP32.
#[inline]
pub(super) fn dst_of_fp32(x: u32) -> u32 {
    u32::from(dst_of_bf16((x >> 16) as u16)) << 16 | x & 0xFFFF
}

/// FP32 from a 32-bit datum of Dst.
#[inline]
pub(super) fn fp32_of_dst(x: u32) -> u32 {
    u32::from(bf16_of_dst((x >> 16) as u16)) << 16 | x & 0xFFFF
}

/// The datum of Dst that has the sign, the high seven bits of the mantissa and the exponent of a
/// datum of Src: BF16 (`RemoveLowMantissa` of MOVA2D.md).
#[inline(always)]
pub(super) fn dst_of_src_8_bit_exponent(x: u32) -> u16 {
    (x >> 3 & 0xFF00 | x & 0xFF) as u16
}

/// The datum of Dst that has the sign, the mantissa and the low five bits of the exponent of a
/// datum of Src: FP16 (`RemoveHighExponent` of MOVA2D.md).
#[inline(always)]
pub(super) fn dst_of_src_5_bit_exponent(x: u32) -> u16 {
    (x >> 3 & 0xFFE0 | x & 0x1F) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_layouts_lose_nothing() {
        for x in 0..=u16::MAX {
            assert_eq!(bf16_of_dst(dst_of_bf16(x)), x);
            assert_eq!(fp16_of_dst(dst_of_fp16(x)), x);
            assert_eq!(dst_of_src_8_bit_exponent(src_of_bf16(x)), dst_of_bf16(x));
            assert_eq!(dst_of_src_5_bit_exponent(src_of_fp16(x)), dst_of_fp16(x));
            assert_eq!(dst_of_src_8_bit_exponent(src_of_int16(x)), x);
        }
        for x in 0..1 << 19 {
            assert_eq!(tf32_of_src(src_of_tf32(x)), x);
        }
    }

    #[test]
    fn one_has_its_exponent_in_the_low_bits() {
        assert_eq!(dst_of_bf16(0x3F80), 0x007F);
        assert_eq!(dst_of_fp16(0x3C00), 0x000F);
        assert_eq!(dst_of_fp32(0x3F80_1234), 0x007F_1234);
        assert_eq!(src_of_bf16(0xBFC0), SRC_SIGN | 1 << 17 | 0x7F);
        assert_eq!(fp32_of_dst(0x407F_0000), 0x3FC0_0000);
    }
}
