//! Format conversions of the packer, a row at a time.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/Packers/FormatConversion.md and
//! FloatBitPatterns.md. Between the early and the late conversion a datum is 32 bits: a floating
//! point number with eight bits of exponent in the layout of FP32, one with five in the layout of
//! FP16, an integer as L1 has it. What the page leaves open, and how another simulator (not
//! documentation) decides it, is said where it is decided.

use crate::tensix::dst::{COLUMNS, Dst, RowMap, each};
use crate::tensix::number::{bf16_of_dst, fp16_of_dst, fp32_of_dst};
use crate::tensix::random;

/// A row between two stages.
pub(super) type Row = [u32; COLUMNS];

/// Bits that rounding to TF32, BF16 and E8M6 drops of an FP32.
pub(super) const TO_TF32: u32 = 13;
pub(super) const TO_BF16: u32 = 16;
pub(super) const TO_E8M6: u32 = 17;
/// Infinity as FP32.
const INFINITY: u32 = 0x7F80_0000;
/// The smallest normal FP32 and FP16.
const NORMAL: u32 = 0x0080_0000;
const NORMAL_16: u32 = 0x0400;
/// The largest magnitude as FP16, which stands for infinity there.
pub(super) const LARGEST_16: u32 = 0x7FFF;
/// From the bias of FP16 to that of FP32.
const BIAS: u32 = 127 - 15;

/// What a datum between the conversions is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// Eight bits of exponent.
    Wide,
    /// Five bits of exponent.
    Narrow,
    Int32,
    Int16,
    Int8,
    Uint8,
}

impl Kind {
    /// The sign's bit; zero: there is none.
    pub(super) const fn sign(self) -> u32 {
        match self {
            Self::Wide | Self::Int32 => 1 << 31,
            Self::Narrow | Self::Int16 => 1 << 15,
            Self::Int8 => 1 << 7,
            Self::Uint8 => 0,
        }
    }

    /// The exponent as the histogram and the threshold see it (ExponentHistogram.md). That of eight
    /// bits is unspecified there; it is zero here.
    #[inline]
    pub(super) const fn exponent(self, x: u32) -> u32 {
        match self {
            Self::Wide | Self::Int32 => x >> 23 & 0xFF,
            Self::Narrow => x >> 10 & 0x1F,
            Self::Int16 => x & 0xFF,
            Self::Int8 | Self::Uint8 => 0,
        }
    }
}

/// The early conversion: what is read of Dst, and what it becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Early {
    /// All 32 bits.
    Bits32,
    /// FP32, rounded to TF32.
    Tf32Of32,
    /// FP32, rounded to BF16.
    Bf16Of32,
    /// FP32, cut to BF16.
    Bf16Cut32,
    /// FP32, rounded to E8M6.
    E8m6Of32,
    /// FP32, rounded to TF32, with the exponent of FP16. Not documented for the early conversion;
    /// stock set-up code asks for it, and another simulator does so.
    Fp16Of32,
    /// A 32-bit integer, shifted right, rounded and saturated to eight bits.
    Int8 { unsigned: bool, shift: u32 },
    /// Sign and low bits of a 32-bit integer.
    Int8Cut { unsigned: bool },
    /// The high half of the 32 bits as it lies. Not documented; as found on another simulator.
    HighOf32,
    /// BF16 as it is.
    Bf16,
    /// BF16 without denormals, NaN and minus zero.
    Bf16Rounded,
    /// BF16, rounded to E8M6.
    E8m6,
    /// FP16 as it is.
    Fp16,
    /// FP16 without denormals and minus zero.
    Fp16Rounded,
    /// FP16, cut to E5M7.
    E5m7,
    /// FP16, rounded to E5M6.
    E5m6,
    /// FP16, cut to E5M2.
    E5m2,
    /// The sign of 16 bits, as an eight-bit integer.
    SignOf16,
    /// 16 bits as they lie.
    Int16,
}

impl Early {
    /// What the conversion makes.
    pub(super) const fn kind(self) -> Kind {
        match self {
            // Or a 32-bit integer, by what the late conversion takes it for.
            Self::Bits32 | Self::Tf32Of32 | Self::Bf16Of32 | Self::Bf16Cut32 | Self::E8m6Of32 => Kind::Wide,
            Self::Bf16 | Self::Bf16Rounded | Self::E8m6 => Kind::Wide,
            Self::Fp16Of32 | Self::Fp16 | Self::Fp16Rounded | Self::E5m7 | Self::E5m6 | Self::E5m2 => Kind::Narrow,
            Self::Int8 { unsigned: true, .. } | Self::Int8Cut { unsigned: true } => Kind::Uint8,
            Self::Int8 { .. } | Self::Int8Cut { .. } | Self::SignOf16 => Kind::Int8,
            Self::HighOf32 | Self::Int16 => Kind::Int16,
        }
    }

    /// Bits of mantissa, of a floating point number.
    pub(super) const fn mantissa(self) -> u32 {
        match self {
            Self::Bits32 => 23,
            Self::Tf32Of32 | Self::Fp16Of32 | Self::Fp16 | Self::Fp16Rounded => 10,
            Self::E5m2 => 2,
            _ => 7,
        }
    }

    /// Reads row `row` of Dst.
    #[inline]
    pub(super) fn read(self, dst: &Dst, map: RowMap, row: usize) -> Row {
        match self {
            Self::Bits32 => of_32(dst, map, row, |x| x),
            Self::Tf32Of32 => of_32(dst, map, row, round::<TO_TF32>),
            Self::Bf16Of32 => of_32(dst, map, row, round::<TO_BF16>),
            Self::Bf16Cut32 => of_32(dst, map, row, |x| x & 0xFFFF_0000),
            Self::E8m6Of32 => of_32(dst, map, row, round::<TO_E8M6>),
            Self::Fp16Of32 => of_32(dst, map, row, |x| narrow(round::<TO_TF32>(x))),
            Self::Int8 { unsigned, shift } => of_32(dst, map, row, |x| integer8(x, unsigned, shift)),
            Self::Int8Cut { unsigned: true } => of_32(dst, map, row, |x| x & 0xFF),
            Self::Int8Cut { unsigned: false } => of_32(dst, map, row, |x| x >> 24 & 0x80 | x & 0x7F),
            Self::HighOf32 => each(dst.read32(map, row), |x| x >> 16),
            Self::Bf16 => of_bf16(dst, map, row, |x| x),
            Self::Bf16Rounded => of_bf16(dst, map, row, tidy),
            Self::E8m6 => of_bf16(dst, map, row, |x| round::<TO_E8M6>(tidy(x))),
            Self::Fp16 => of_fp16(dst, map, row, |x| x),
            Self::Fp16Rounded => of_fp16(dst, map, row, flushed_16),
            Self::E5m7 => of_fp16(dst, map, row, |x| x & 0xFFF8),
            Self::E5m6 => of_fp16(dst, map, row, round_e5m6),
            Self::E5m2 => of_fp16(dst, map, row, |x| x & 0xFF00),
            Self::SignOf16 => each(dst.read16(map, row), |x| u32::from(x >> 8 & 0x80)),
            Self::Int16 => each(dst.read16(map, row), u32::from),
        }
    }
}

#[inline(always)]
fn of_32(dst: &Dst, map: RowMap, row: usize, f: impl Fn(u32) -> u32) -> Row {
    each(dst.read32(map, row), |x| f(fp32_of_dst(x)))
}

#[inline(always)]
fn of_bf16(dst: &Dst, map: RowMap, row: usize, f: impl Fn(u32) -> u32) -> Row {
    each(dst.read16(map, row), |x| f(u32::from(bf16_of_dst(x)) << 16))
}

#[inline(always)]
fn of_fp16(dst: &Dst, map: RowMap, row: usize, f: impl Fn(u32) -> u32) -> Row {
    each(dst.read16(map, row), |x| f(fp16_of_dst(x).into()))
}

/// Rounds an FP32 to the nearest, ties away from zero: NaN becomes infinity, denormals and minus
/// zero become zero. A denormal that rounds to a normal number stays, of 32 bits, but not of 16
/// (the page does not say what comes first; as found on another simulator).
#[inline]
pub(super) fn round<const DROPPED: u32>(x: u32) -> u32 {
    let magnitude = (x & 0x7FFF_FFFF).min(INFINITY);
    let rounded = (magnitude + (1 << (DROPPED - 1))) >> DROPPED << DROPPED;
    flushed(x & 1 << 31 | rounded)
}

/// An FP32 without denormals and minus zero.
#[inline]
pub(super) fn flushed(x: u32) -> u32 {
    if x & 0x7FFF_FFFF < NORMAL { 0 } else { x }
}

/// An FP16 without denormals and minus zero.
#[inline]
pub(super) fn flushed_16(x: u32) -> u32 {
    if x & 0x7FFF < NORMAL_16 { 0 } else { x }
}

/// A rounding that drops nothing.
#[inline]
fn tidy(x: u32) -> u32 {
    flushed(x & 1 << 31 | (x & 0x7FFF_FFFF).min(INFINITY))
}

/// Rounds an FP16 to six bits of mantissa. Beyond the largest exponent the largest magnitude
/// remains (the page does not say).
#[inline]
fn round_e5m6(x: u32) -> u32 {
    let rounded = ((x & 0x7FFF) + 8).min(LARGEST_16) & 0x7FF0;
    flushed_16(x & 0x8000 | rounded)
}

/// A 32-bit integer in sign and magnitude as eight bits. Below zero is zero for an unsigned one (as
/// found on another simulator).
#[inline]
fn integer8(x: u32, unsigned: bool, shift: u32) -> u32 {
    let half = if shift == 0 { 0 } else { 1 << (shift - 1) };
    let magnitude = ((x & 0x7FFF_FFFF) + half) >> shift;
    match (unsigned, x >> 31 != 0) {
        (true, true) => 0,
        (true, false) => magnitude.min(0xFF),
        (false, negative) => u32::from(negative) << 7 | magnitude.min(0x7F),
    }
}

/// FP32 with the exponent of FP16: saturates, and cuts the mantissa. Exponents below the smallest
/// give zero; the one just below the smallest normal keeps its mantissa, which makes a denormal
/// ("some inputs are mishandled").
#[inline]
pub(super) fn narrow(x: u32) -> u32 {
    let (sign, exponent) = (x >> 16 & 0x8000, x >> 23 & 0xFF);
    let normal = exponent.wrapping_sub(BIAS) << 10 | x >> 13 & 0x3FF;
    let magnitude = if exponent < BIAS { 0 } else { normal };
    sign | if exponent > BIAS + 31 { LARGEST_16 } else { magnitude }
}

/// FP16 with the exponent of FP32. A denormal keeps its bits, which makes a denormal of FP32
/// ("denormals mishandled").
#[inline]
fn widen(x: u32) -> u32 {
    let exponent = x >> 10 & 0x1F;
    let exponent = if exponent == 0 { 0 } else { exponent + BIAS };
    (x & 0x8000) << 16 | exponent << 23 | (x & 0x3FF) << 13
}

/// FP16 without the lowest `dropped` bits, and, if it must, without denormals.
#[inline]
fn cut(x: u32, dropped: u32, flush: bool) -> u32 {
    let magnitude = if flush && x & 0x7C00 == 0 { 0 } else { x & 0x7FFF };
    x & 0x8000 | magnitude >> dropped << dropped
}

/// FP16 to FP8 with four bits of exponent: cuts the mantissa. What is smaller than the smallest
/// normal becomes zero, what is larger than the largest number and what is none the largest
/// magnitude. Not documented; as found on another simulator.
#[inline]
fn cut_to_4_bit_exponent(x: u32) -> u32 {
    let magnitude = x >> 7 & 0xFF;
    let rebased = (magnitude.wrapping_sub(8 << 3)).min(0x7F);
    x >> 8 & 0x80 | if magnitude < 9 << 3 { 0 } else { rebased }
}

/// The late conversion of one datum by itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Late {
    Keep,
    /// FP32 to BF16.
    High {
        flush: bool,
    },
    /// FP32 to FP16 with this many bits of mantissa fewer.
    Narrow {
        dropped: u32,
    },
    /// FP32 to FP8.
    NarrowFp8,
    /// FP16 to FP32.
    Widen,
    /// FP16 to BF16.
    WidenHigh {
        flush: bool,
    },
    /// FP16 with this many bits of mantissa fewer.
    Cut {
        dropped: u32,
        flush: bool,
    },
    /// FP16 to FP8.
    CutFp8 {
        flush: bool,
    },
    /// FP16 to FP8 with four bits of exponent.
    CutFp8Of4,
}

impl Late {
    /// Converts a row; 16-bit results lie in the low half.
    #[inline]
    pub(super) fn convert(self, row: Row) -> Row {
        match self {
            Self::Keep => row,
            Self::High { flush: false } => each(row, |x| x >> 16),
            Self::High { flush: true } => each(row, |x| if x & INFINITY == 0 { x >> 16 & 0x8000 } else { x >> 16 }),
            Self::Narrow { dropped } => each(row, |x| narrow(x) >> dropped << dropped),
            Self::Widen => each(row, widen),
            Self::WidenHigh { flush: false } => each(row, |x| widen(x) >> 16),
            Self::WidenHigh { flush: true } => each(row, |x| if x & 0x7C00 == 0 { x & 0x8000 } else { widen(x) >> 16 }),
            Self::NarrowFp8 => each(row, |x| narrow(x) >> 8),
            Self::Cut { dropped, flush } => each(row, |x| cut(x, dropped, flush)),
            Self::CutFp8 { flush } => each(row, |x| cut(x, 8, flush) >> 8),
            Self::CutFp8Of4 => each(row, cut_to_4_bit_exponent),
        }
    }
}

/// Gives a row of BF16 (or E5M7, with `small` exponents) one exponent: the exponent, and sign and
/// magnitude of `bits` bits.
///
/// The exponent is the largest of the row; rounding never makes it larger, but stops at the largest
/// magnitude, and a magnitude that becomes zero loses its sign (the page does not say; as found on
/// another simulator). A denormal has a hidden one as any other datum that is not zero (likewise,
/// as host software packs).
#[inline]
pub(super) fn block(row: Row, small: bool, bits: u32) -> (u8, Row) {
    block_of(row, small, bits, |_, significand, drop| (significand + (1 << (drop - 1))) >> drop)
}

/// As [`block`], with a random number for each column that decides how it is rounded.
pub(super) fn block_by_chance(row: Row, small: bool, bits: u32, numbers: &Row) -> (u8, Row) {
    block_of(row, small, bits, |i, significand, drop| random::rounded(significand, drop, numbers[i]))
}

#[inline(always)]
fn block_of(row: Row, small: bool, bits: u32, round: impl Fn(usize, u32, u32) -> u32) -> (u8, Row) {
    if small {
        with_exponent(row, bits, |x| x >> 10 & 0x1F, |x| x >> 3 & 0x7F, round)
    } else {
        with_exponent(row, bits, |x| x >> 7 & 0xFF, |x| x & 0x7F, round)
    }
}

#[inline(always)]
fn with_exponent(
    row: Row,
    bits: u32,
    exponent: impl Fn(u32) -> u32,
    mantissa: impl Fn(u32) -> u32,
    round: impl Fn(usize, u32, u32) -> u32,
) -> (u8, Row) {
    let shared = row.iter().fold(0, |all, &x| exponent(x).max(all));
    let mut data = [0; COLUMNS];
    for (i, (to, x)) in data.iter_mut().zip(row).enumerate() {
        // The significand has eight bits: what moves by 15 or more is gone.
        let distance = (shared - exponent(x)).min(15);
        let rounded = round(i, 0x80 | mantissa(x), distance + 1);
        let magnitude = rounded.min(0x7F) >> (8 - bits);
        let sign = (x >> 15 & 1) << (bits - 1);
        *to = if x & 0x7FFF == 0 || magnitude == 0 { 0 } else { sign | magnitude };
    }
    (shared as u8, data)
}

/// Packs the first `count` data of a row at `bits` bits each into `out`; the first lies in the low
/// bits. Returns the bytes.
#[inline]
pub(super) fn store(row: &Row, count: usize, bits: u32, out: &mut [u8]) -> usize {
    let row = &row[..count];
    match bits {
        32 => row.iter().zip(out.chunks_exact_mut(4)).for_each(|(x, out)| out.copy_from_slice(&x.to_le_bytes())),
        16 => {
            row.iter().zip(out.chunks_exact_mut(2)).for_each(|(x, out)| out.copy_from_slice(&(*x as u16).to_le_bytes()))
        }
        8 => row.iter().zip(out.iter_mut()).for_each(|(x, out)| *out = *x as u8),
        4 => row.chunks(2).zip(out.iter_mut()).for_each(|(x, out)| *out = (x[0] | x[1] << 4) as u8),
        _ => {
            row.chunks(4)
                .zip(out.iter_mut())
                .for_each(|(x, out)| *out = (x[0] | x[1] << 2 | x[2] << 4 | x[3] << 6) as u8);
        }
    }
    count * bits as usize / 8
}
