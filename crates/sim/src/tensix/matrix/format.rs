//! Which formats an instruction of the matrix unit works in, and how data in them are read and
//! written.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/{MatrixUnit,SrcASrcB,FloatBitPatterns}.md; on
//! Blackhole each bank of SrcA and SrcB implies a format (SrcASrcB.md, "Implied data format").
//! How numbers are added up is in `sum.rs`.

use super::Operands;
use crate::FaultClass;
use crate::tensix::config::Refusal;
use crate::tensix::dst::COLUMNS;
use crate::tensix::number::{bf16_of_dst, fp16_of_dst, src_of_bf16, src_of_fp16};
use crate::tensix::src::{A, Row};
use tilework_abi::tensix::cfg;

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

/// Formats by their numbers (`DataFormat` of tt-llk, `tensix_types.h`), and how their
/// data are read.
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
        Ok((style, acc))
    }

    /// Whether sums are rounded by chance, which those of 32 bits never are.
    pub(super) fn rounds_by_chance(&self, acc: Acc) -> bool {
        matches!(acc, Acc::Bf16 | Acc::Fp16) && self.is_set(cfg::ALU_ROUNDING_MODE_FPU_SRND_EN)
    }

    /// Refuses `FP16A_FORCE_Enable`, which the documents do not promise for most instructions.
    pub(super) fn no_forced_fp16(&self) -> Result<(), Refusal> {
        if self.is_set(cfg::FP16A_FORCE_ENABLE) {
            return Err((FaultClass::UnsupportedFunctionality, "FP16A_FORCE_Enable with this instruction"));
        }
        Ok(())
    }
}

/// Which bits of a mantissa of eleven bits an instruction takes (SrcASrcB.md, "Fidelity phases").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    shift: u32,
    mask: u32,
    /// Where the bits lie in a factor of SrcB.
    up: u32,
}

/// How an instruction reads data of Src that are floating-point numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    exp_mask: u32,
    /// What exponents lack to a bias of 127.
    bias: u32,
    part: Part,
}

impl Reading {
    #[inline(always)]
    pub(super) fn of(style: Style, part: Part) -> Self {
        match style {
            // Data of BF16 have zeros where those of TF32 have their last three bits. An operand
            // of TF32 counts in full beside one of BF16: as found on ttsim, another simulator,
            // not documented.
            Style::Bf16 | Style::Tf32 => Self { exp_mask: 0xFF, bias: 0, part },
            Style::Fp16 | Style::Int8 => Self { exp_mask: 0x1F, bias: 127 - 15, part },
        }
    }

    /// The part of the mantissa that counts, with its sign, and the exponent with a bias of 127: as
    /// any other if it is all ones (FloatBitPatterns.md). Both are zero without an exponent.
    #[inline(always)]
    pub(super) fn number(self, x: u32) -> (i32, u32) {
        let int = (((1 << 10 | x >> 8 & 0x3FF) >> self.part.shift & self.part.mask) << self.part.up).cast_signed();
        let int = if x >> 18 & 1 != 0 { -int } else { int };
        let exp = (x & self.exp_mask) + self.bias;
        if x & self.exp_mask == 0 { (0, 0) } else { (int, exp) }
    }
}

/// All of them, as sums take them.
pub(super) const WHOLE: Part = Part { shift: 0, mask: 0x7FF, up: 0 };

/// What is multiplied of SrcA in fidelity phase `phase`: the high five bits or the five after them.
pub(super) fn part_a(phase: u32) -> Part {
    Part { shift: if phase & 1 == 0 { 6 } else { 1 }, mask: 0x1F, up: 0 }
}

/// What is multiplied of SrcB: the high seven bits or the four after them.
pub(super) fn part_b(phase: u32) -> Part {
    if phase & 2 == 0 { Part { shift: 4, mask: 0x7F, up: 0 } } else { Part { shift: 0, mask: 0xF, up: 3 } }
}

/// How much less the exponent of a product or sum is in a fidelity phase.
pub(super) fn phase_exponent(phase: u32) -> i32 {
    (if phase & 1 != 0 { 5 } else { 0 }) + (if phase & 2 != 0 { 7 } else { 0 })
}

/// The exponent of zero, far below all others.
pub(super) const NO_EXPONENT: i32 = -2000;

/// `N` rows of numbers: integers with a sign, and exponents with a bias of 127.
#[derive(Clone, Debug)]
pub(super) struct Numbers<const N: usize> {
    pub(super) ints: [Ints; N],
    pub(super) exps: [Ints; N],
}

/// Decodes a row of Src that holds floating-point numbers, whose signs change if `sign` is that of
/// a datum: integers and exponents. What has no exponent is zero.
#[inline(always)]
pub(super) fn decode_row(row: &Row, reading: Reading, sign: u32) -> (Ints, Ints) {
    let (mut ints, mut exps) = ([0; COLUMNS], [0; COLUMNS]);
    for j in 0..COLUMNS {
        let (int, exp) = reading.number(row[j] ^ sign);
        (ints[j], exps[j]) = (int, if exp == 0 { NO_EXPONENT } else { exp.cast_signed() });
    }
    (ints, exps)
}

/// Decodes rows.
pub(super) fn decode<const N: usize>(rows: &[Row; N], style: Style, part: Part) -> Numbers<N> {
    let rows = rows.each_ref().map(|row| decode_row(row, Reading::of(style, part), 0));
    Numbers { ints: rows.map(|row| row.0), exps: rows.map(|row| row.1) }
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

/// `ShuffleBF16`: a datum of Src from a datum of Dst.
#[inline]
pub(super) fn src_of_dst_bf16(x: u16) -> u32 {
    src_of_bf16(bf16_of_dst(x))
}

/// `ShuffleFP16`: a datum of Src from a datum of Dst.
#[inline]
pub(super) fn src_of_dst_fp16(x: u16) -> u32 {
    src_of_fp16(fp16_of_dst(x))
}
