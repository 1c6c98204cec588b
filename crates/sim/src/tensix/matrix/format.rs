//! Which formats an instruction of the matrix unit works in, and how data in them are read and
//! written.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/{MatrixUnit,SrcASrcB,FloatBitPatterns}.md; on
//! Blackhole each bank of SrcA and SrcB implies a format (SrcASrcB.md, "Implied data format").
//! Numbers that are no ordinary numbers of f32 (an exponent of 255, which the matrix unit takes for
//! a number like any other) are in [`wide`].

use super::Operands;
use crate::FaultClass;
use crate::tensix::config::Refusal;
use crate::tensix::dst::{COLUMNS, Row32, RowMap};
use crate::tensix::number::{
    bf16_of_dst, dst_of_bf16, dst_of_fp16, dst_of_fp32, fp16_of_dst, fp32_of_dst, src_of_bf16, tf32_of_src,
};
use crate::tensix::src::{A, Row};
use tilework_abi::tensix::cfg;

/// A row of numbers.
pub(super) type Floats = [f32; COLUMNS];
/// A row of numbers that f32 may not hold.
pub(super) type Wides = [f64; COLUMNS];
/// A row of integers.
pub(super) type Ints = [i32; COLUMNS];

/// `SrcAStyle`: how data of SrcA and SrcB are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Bf16,
    Fp16,
    Tf32,
    Int8,
}

/// What Dst holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Acc {
    Bf16,
    Fp16,
    Fp32,
    Int32,
}

/// Formats by their numbers (`DataFormat` of tt-llk, `tensix_types.h`), and how their data are read.
pub(super) fn style_of(format: u32) -> Result<Style, Refusal> {
    match format {
        // FP32, BF16, BFP8, BFP4, INT32, INT16, BFP2.
        0 | 5..=9 | 15 => Ok(Style::Bf16),
        // FP16, BFP8a, BFP4a, FP8, BFP2a, INT8.
        1..=3 | 10 | 11 | 14 => Ok(Style::Fp16),
        TF32 => Ok(Style::Tf32),
        _ => Err((FaultClass::MissingSpecification, "a source format that has no meaning")),
    }
}

/// The number of TF32.
pub(super) const TF32: u32 = 4;

impl Operands<'_> {
    /// `SrcAFmt`, where the implied format is that of the bank of `which`.
    pub(super) fn source_format(&self, which: usize) -> u32 {
        if !self.is_set(cfg::DISABLE_IMPLIED_SRCA_FMT_BASE) {
            let src = &self.src.0[which];
            return match src.matrix_may_read() {
                true => src.implied_format(),
                // What the chip does with a bank that is not valid (MOVD2A.md, scheduling).
                false => self.read(cfg::SFPU_DEST_FMT_BASE),
            };
        }
        if self.is_set(cfg::ALU_FORMAT_SPEC_REG_SRCA_OVERRIDE) {
            self.read(cfg::ALU_FORMAT_SPEC_REG_SRCA_VAL)
        } else {
            self.read(cfg::ALU_FORMAT_SPEC_REG0_SRCA)
        }
    }

    /// In which formats an arithmetic instruction works.
    pub(super) fn arithmetic(&self) -> Result<(Style, Acc), Refusal> {
        self.no_forced_fp16()?;
        if self.is_set(cfg::ALU_ACC_CTRL_INT8_MATH_ENABLED) {
            return Ok((Style::Int8, Acc::Int32));
        }
        let style = style_of(self.source_format(A))?;
        let acc = match style {
            _ if self.is_set(cfg::ALU_ACC_CTRL_FP32_ENABLED) => Acc::Fp32,
            Style::Fp16 => Acc::Fp16,
            _ => Acc::Bf16,
        };
        if matches!(acc, Acc::Bf16 | Acc::Fp16) && self.is_set(cfg::ALU_ROUNDING_MODE_FPU_SRND_EN) {
            return Err((FaultClass::UnimplementedFunctionality, "stochastic rounding of the matrix unit"));
        }
        Ok((style, acc))
    }

    /// Refuses `FP16A_FORCE_Enable`, which the documents do not promise for most instructions.
    pub(super) fn no_forced_fp16(&self) -> Result<(), Refusal> {
        if self.is_set(cfg::FP16A_FORCE_ENABLE) {
            return Err((FaultClass::UnsupportedFunctionality, "FP16A_FORCE_Enable with this instruction"));
        }
        Ok(())
    }
}

/// The bits of f32 of a datum of Src that holds TF32.
#[inline]
fn tf32(x: u32) -> u32 {
    let x = tf32_of_src(x);
    if x & 0x3_FC00 == 0 { 0 } else { x << 13 }
}

/// The bits of f32 of a datum of Src that holds BF16.
#[inline]
fn bf16(x: u32) -> u32 {
    tf32(x & 0x7_F8FF)
}

/// The bits of f32 of a datum of Src that holds FP16.
#[inline]
fn fp16(x: u32) -> u32 {
    let (sign, man, exp) = (x >> 18 << 31, x >> 8 & 0x3FF, x & 0x1F);
    if exp == 0 { 0 } else { sign | (exp + 112) << 23 | man << 13 }
}

/// Which bits of a mantissa an instruction multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// All: it does not multiply.
    All,
    /// Those that are set, with sign and exponent.
    High(u32),
    /// Those that are not set.
    Low(u32),
}

/// What is multiplied of SrcA in fidelity phase `phase`: the high five bits of the mantissa or the
/// five after them (`SrcAFidelityBits`).
pub(super) fn part_a(phase: u32) -> Part {
    if phase & 1 == 0 { Part::High(0xFFF8_0000) } else { Part::Low(0xFFF8_3FFF) }
}

/// What is multiplied of SrcB: the high seven bits of the mantissa or the four after them
/// (`SrcBFidelityBits`).
pub(super) fn part_b(phase: u32) -> Part {
    if phase & 2 == 0 { Part::High(0xFFFE_0000) } else { Part::Low(0xFFFE_1FFF) }
}

/// Decodes rows of Src.
pub(super) fn decode<const N: usize>(rows: &[Row; N], style: Style, part: Part) -> [Floats; N] {
    match style {
        Style::Bf16 => decode_as(rows, part, bf16),
        Style::Tf32 => decode_as(rows, part, tf32),
        Style::Fp16 | Style::Int8 => decode_as(rows, part, fp16),
    }
}

#[inline]
fn decode_as<const N: usize>(rows: &[Row; N], part: Part, bits: impl Fn(u32) -> u32) -> [Floats; N] {
    match part {
        Part::All => rows.map(|row| row.map(|x| f32::from_bits(bits(x)))),
        Part::High(mask) => rows.map(|row| row.map(|x| f32::from_bits(bits(x) & mask))),
        Part::Low(mask) => rows.map(|row| {
            row.map(|x| {
                let x = bits(x);
                f32::from_bits(x) - f32::from_bits(x & mask)
            })
        }),
    }
}

/// Decodes a row of Src, with an exponent of 255 as a number.
pub(super) fn decode_wide(row: &Row, style: Style, part: Part) -> Wides {
    row.map(|x| {
        let bits = match style {
            Style::Bf16 => bf16(x),
            Style::Tf32 => tf32(x),
            Style::Fp16 | Style::Int8 => fp16(x),
        };
        match part {
            Part::All => wide(bits),
            Part::High(mask) => wide(bits & mask),
            Part::Low(mask) => wide(bits) - wide(bits & mask),
        }
    })
}

/// The number that the matrix unit takes 32 bits for: an exponent of 255 is no exception.
pub(super) fn wide(bits: u32) -> f64 {
    if bits & 0x7F80_0000 == 0x7F80_0000 {
        // Half of it is an ordinary number.
        2.0 * f64::from(f32::from_bits(bits - 0x0080_0000))
    } else {
        f64::from(f32::from_bits(bits))
    }
}

/// Decodes a row of Src that holds integer "8", of whose bits the instruction takes those of
/// `mask`; data without an exponent are zero if `flush` (`ReadSrcInt8`).
pub(super) fn decode_int(row: &Row, mask: u32, flush: bool) -> Ints {
    row.map(|x| {
        let x = x & mask;
        let magnitude = if flush && x & 0xFF == 0 { 0 } else { (x >> 8 & 0x3FF).cast_signed() };
        if x >> 18 & 1 != 0 { -magnitude } else { magnitude }
    })
}

/// Whether a number is none of f32's ordinary ones.
#[inline]
pub(super) fn is_odd(row: &Floats) -> bool {
    // An exponent of 255 carries into the sign.
    row.iter().fold(0, |any, x| any | ((x.to_bits() & 0x7F80_0000) + 0x0080_0000)) >> 31 != 0
}

/// A result as the matrix unit gives it: no denormals and no negative zero
/// (FloatBitPatterns.md).
#[inline]
fn flushed(x: f32) -> u32 {
    let bits = x.to_bits();
    if bits & 0x7F80_0000 == 0 { 0 } else { bits }
}

/// BF16 of a result, to the nearest, even on ties.
#[inline]
fn round_to_bf16(bits: u32) -> u16 {
    ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16) as u16
}

/// FP16 of a result, to the nearest, even on ties. What is too large has all bits set but the
/// sign, and what is too small is zero.
#[inline]
fn round_to_fp16(bits: u32) -> u16 {
    let (sign, magnitude) = ((bits >> 16 & 0x8000) as u16, bits & 0x7FFF_FFFF);
    let rounded = (magnitude + 0xFFF + (magnitude >> 13 & 1)) >> 13;
    // The exponent's bias goes from 127 to 15.
    let moved = rounded.wrapping_sub(112 << 10);
    match rounded {
        0..0x1_C400 => 0,
        0x1_C400..0x2_3FFF => sign | moved as u16,
        _ => sign | 0x7FFF,
    }
}

impl Operands<'_> {
    /// Row `row` of Dst as bits of f32.
    #[inline]
    pub(super) fn dst_bits(&self, map: RowMap, row: usize, acc: Acc) -> Row32 {
        match acc {
            Acc::Bf16 => self.dst.read16(map, row).map(|x| u32::from(bf16_of_dst(x)) << 16),
            Acc::Fp16 => self.dst.read16(map, row).map(|x| fp16(src_bits_of_fp16(x))),
            Acc::Fp32 | Acc::Int32 => self.dst.read32(map, row).map(fp32_of_dst),
        }
    }

    /// Adds `sum` to row `row` of Dst if `add`, and otherwise replaces it. `exact` computes the sum
    /// again where f32 does not suffice.
    #[inline]
    pub(super) fn accumulate(
        &mut self,
        (map, row): (RowMap, usize),
        acc: Acc,
        add: bool,
        sum: &Floats,
        exact: impl FnOnce() -> Wides,
    ) {
        let old = if add { self.dst_bits(map, row, acc) } else { [0; COLUMNS] };
        let mut total: Floats = std::array::from_fn(|i| sum[i] + f32::from_bits(flush_bits(old[i])));
        if is_odd(&total) {
            let sum = exact();
            total = std::array::from_fn(|i| (sum[i] + wide(flush_bits(old[i]))) as f32);
        }
        self.store(map, row, acc, &total.map(flushed));
    }

    /// Writes bits of f32 to row `row` of Dst.
    #[inline]
    fn store(&mut self, map: RowMap, row: usize, acc: Acc, bits: &Row32) {
        match acc {
            Acc::Bf16 => self.dst.write16(map, row, bits.map(|x| dst_of_bf16(round_to_bf16(x)))),
            Acc::Fp16 => self.dst.write16(map, row, bits.map(|x| dst_of_fp16(round_to_fp16(x)))),
            Acc::Fp32 | Acc::Int32 => self.dst.write32(map, row, bits.map(dst_of_fp32)),
        }
    }

    /// Adds integers to row `row` of Dst if `add`, and otherwise replaces it (`SaturateAddInt32`).
    pub(super) fn accumulate_ints(&mut self, (map, row): (RowMap, usize), add: bool, sum: &Ints) {
        let old = if add { self.dst_bits(map, row, Acc::Int32) } else { [0; COLUMNS] };
        let total: Row32 = std::array::from_fn(|i| {
            let magnitude = (old[i] & 0x7FFF_FFFF).cast_signed();
            let old = if old[i] >> 31 != 0 { -magnitude } else { magnitude };
            let total = old.saturating_add(sum[i]).max(-i32::MAX);
            total.unsigned_abs() | total.cast_unsigned() & 0x8000_0000
        });
        self.store(map, row, Acc::Int32, &total);
    }
}

/// Zero for what has no exponent.
#[inline]
fn flush_bits(bits: u32) -> u32 {
    if bits & 0x7F80_0000 == 0 { 0 } else { bits }
}

/// A datum of Src from a datum of Dst that holds FP16.
#[inline]
fn src_bits_of_fp16(x: u16) -> u32 {
    crate::tensix::number::src_of_fp16(fp16_of_dst(x))
}

/// `ShuffleBF16`: a datum of Src from a datum of Dst.
#[inline]
pub(super) fn src_of_dst_bf16(x: u16) -> u32 {
    src_of_bf16(bf16_of_dst(x))
}

/// `ShuffleFP16`: a datum of Src from a datum of Dst.
#[inline]
pub(super) fn src_of_dst_fp16(x: u16) -> u32 {
    src_bits_of_fp16(x)
}
