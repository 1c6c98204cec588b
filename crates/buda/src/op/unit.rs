//! What the registers and buffers of a core keep of a value.
//!
//! Golden arithmetic is float32 throughout ([`Precision::Exact`]). With [`Precision::Device`] the
//! formats of an operation count, as in a core's matrix and vector unit:
//!
//! - An operand goes through a source register: BF16 for `Float16_b` and the B block formats, FP16
//!   for `Float16` and all with exponents of 5 bits, TF32 for Float32, whose low 13 bits are cut
//!   off (ISA documentation, WormholeB0/TensixTile/TensixCoprocessor/SrcASrcB.md, "Data types").
//! - `math_fidelity` says which bits of the factors a product takes ("Fidelity phases"; LoFi phase
//!   0, HiFi2 and HiFi2_A 0 and 1, HiFi2_B 0 and 2, HiFi3 0 to 2, HiFi4 all). A matrix product has
//!   its left operand in SrcB, others have their first in SrcA.
//! - `acc_df` is what the destination registers hold: results and sums of 16 products are rounded
//!   to nearest, ties away from zero. FP16 has no infinity: it ends at 131008
//!   (FloatBitPatterns.md). Denormals are zero.
//! - `intermed_df` is what a partial sum, or the buffer between two steps, is rounded to
//!   (tt-budabackend, `hlks/matmul/matmul_u.cpp`).
//!
//! The 16 products of all phases are added up in float32; the chip adds each phase by itself.
//! Integers are exact, but for buffers that they do not fit.

use rayon::prelude::*;
use tilework_dtype::DType;
use tilework_netlist::types::{Fidelity, Shape, Size};

use super::unary::map;
use super::{Context, Precision, Reason};
use crate::format;
use crate::tensor::{Tensor, check};

/// Products that one instruction of the matrix unit adds to a destination register.
const TERMS: usize = 16;
/// The largest FP16 of the registers: all bits set but the sign.
const LARGEST_FP16: f32 = 131_008.0;
/// The smallest one that is not zero.
const SMALLEST_FP16: f32 = 1.0 / 16384.0;

/// What a register keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Register {
    /// 8 bits of mantissa, the hidden one included.
    Bf16,
    /// 11 bits, exponents of 5 bits.
    Fp16,
    /// 11 bits, cut off.
    Tf32,
    /// Everything.
    Whole,
}

impl Register {
    /// The source register for data of a format.
    fn source(format: DType) -> Self {
        match format {
            DType::F32 | DType::Tf32 => Register::Tf32,
            format => Register::destination(format),
        }
    }

    /// The destination register for `acc_df`.
    fn destination(format: DType) -> Self {
        match format {
            DType::BF16 | DType::Bfp8B | DType::Bfp4B | DType::Bfp2B => Register::Bf16,
            DType::F16 | DType::Bfp8 | DType::Bfp4 | DType::Bfp2 | DType::Lf8 | DType::Fp8E4m3 => Register::Fp16,
            _ => Register::Whole,
        }
    }

    #[inline]
    fn round(self, v: f32) -> f32 {
        match self {
            Register::Whole => v,
            Register::Bf16 => nearest(v, 7),
            Register::Tf32 => normal(leading(v, 11)),
            Register::Fp16 => match nearest(v, 10) {
                v if v.abs() < SMALLEST_FP16 => 0.0,
                // A NaN stays: the register has none.
                v if v.is_nan() => v,
                v => v.clamp(-LARGEST_FP16, LARGEST_FP16),
            },
        }
    }

    fn of(self, x: &Tensor) -> Tensor {
        if self == Register::Whole { x.clone() } else { map(x, |v| self.round(v)) }
    }
}

/// A value without its denormal.
#[inline]
fn normal(v: f32) -> f32 {
    if v.abs() < f32::MIN_POSITIVE { 0.0 } else { v }
}

/// A value with `bits` bits of mantissa behind the hidden one, ties away from zero.
#[inline]
fn nearest(v: f32, bits: u32) -> f32 {
    if !v.is_finite() {
        return v;
    }
    let unit = 1u32 << (23 - bits);
    normal(f32::from_bits((v.to_bits() + unit / 2) & !(unit - 1)))
}

/// A value's first `bits` significant bits, the hidden one included.
#[inline]
fn leading(v: f32, bits: u32) -> f32 {
    if v.is_finite() { f32::from_bits(v.to_bits() & (u32::MAX << (24 - bits))) } else { v }
}

/// Which bits of a factor a product takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Bits {
    /// So many significant ones.
    First(u32),
    /// Those behind so many.
    Behind(u32),
}

impl Bits {
    #[inline]
    fn of(self, v: f32) -> f32 {
        match self {
            Bits::First(bits) => leading(v, bits),
            Bits::Behind(_) if !v.is_finite() => 0.0,
            Bits::Behind(bits) => v - leading(v, bits),
        }
    }
}

use Bits::{Behind, First};

/// Bits of SrcA and SrcB: phases 0 and 2 take five bits of SrcA, 1 and 3 the five after them; 0 and
/// 1 take seven bits of SrcB, 2 and 3 the four after them. Phases whose bits meet are one product.
fn products(fidelity: Fidelity) -> &'static [(Bits, Bits)] {
    match fidelity {
        Fidelity::LoFi => &[(First(5), First(7))],
        Fidelity::HiFi2 | Fidelity::HiFi2A => &[(First(10), First(7))],
        Fidelity::HiFi2B => &[(First(5), First(11))],
        Fidelity::HiFi3 => &[(First(10), First(7)), (First(5), Behind(7))],
        Fidelity::HiFi4 => &[(First(10), First(11))],
    }
}

impl Context {
    /// Whether formats count.
    pub(crate) fn is_device(&self) -> bool {
        self.precision == Precision::Device
    }

    /// Whether they count, and the registers hold floating-point numbers.
    fn has_floats(&self) -> bool {
        self.is_device() && !matches!(self.acc, DType::I8 | DType::I32 | DType::U8 | DType::U16)
    }

    /// What destination registers keep.
    fn register(&self) -> Register {
        if self.is_device() { Register::destination(self.acc) } else { Register::Whole }
    }

    /// Format of an operand.
    pub(crate) fn input(&self, operand: usize) -> DType {
        self.inputs.get(operand).copied().unwrap_or(DType::F32)
    }

    /// An operand in a source register.
    pub(crate) fn source(&self, operand: usize, x: &Tensor) -> Tensor {
        if self.has_floats() { Register::source(self.input(operand)).of(x) } else { x.clone() }
    }

    /// A result in the destination registers.
    pub(crate) fn destination(&self, x: Tensor) -> Tensor {
        match self.register() {
            Register::Whole => x,
            register => register.of(&x),
        }
    }

    /// An operand copied to the destination registers. Float32 goes there directly if they hold it;
    /// integers and words stay as they are.
    pub(crate) fn copied(&self, operand: usize, x: &Tensor) -> Tensor {
        let format = self.input(operand);
        let direct = format == DType::F32 && Register::destination(self.acc) == Register::Whole;
        if direct || Register::source(format) == Register::Whole {
            x.clone()
        } else {
            self.destination(self.source(operand, x))
        }
    }

    /// A value in an intermediate buffer.
    pub(crate) fn intermediate(&self, x: Tensor) -> Tensor {
        match self.is_device() {
            true => format::quantise(self.intermed, &x, format::Options::default()),
            false => x,
        }
    }

    /// Rounds rows of sums as destination registers hold them, and as an intermediate buffer does
    /// if more follows.
    pub(crate) fn round_sums(&self, rows: &mut [f32], tile: Size, more: bool) {
        let register = self.register();
        if register != Register::Whole {
            rows.iter_mut().for_each(|v| *v = register.round(*v));
        }
        if more && self.is_device() {
            format::round_values(self.intermed, tile, rows);
        }
    }

    /// The factors of products, SrcA's and SrcB's, for each of the products that the fidelity has.
    pub(crate) fn factors(&self, a: &Tensor, b: &Tensor) -> Vec<(Tensor, Tensor)> {
        if !self.has_floats() {
            return vec![(a.clone(), b.clone())];
        }
        let take = |x: &Tensor, bits: Bits| map(x, |v| bits.of(v));
        products(self.fidelity).iter().map(|(of_a, of_b)| (take(a, *of_a), take(b, *of_b))).collect()
    }

    /// Products of matrices, added up in groups of `z` matrices, `block` columns of the left
    /// operand at a time, between which sums wait in the intermediate buffer. Operands are in their
    /// source registers.
    pub(crate) fn sums(&self, left: &Tensor, right: &Tensor, z: usize, block: usize) -> Result<Tensor, Reason> {
        let (rows, k, width) = (left.shape().rows, left.shape().columns, right.shape().columns);
        let (z, block) = (z.max(1), block.max(1));
        let blocks = k.div_ceil(block);
        let shape = Shape { t: left.shape().t / z, rows, columns: width };
        let tile = Size { r: left.tile().r, c: right.tile().c };
        let mut values = vec![0f32; check(shape, tile)?];
        let factors = self.factors(right, left);
        let register = self.register();
        values.par_chunks_mut(width.max(1)).enumerate().for_each_init(
            || vec![0f32; width],
            |terms, (row, sums)| {
                let (t, row) = (row / rows, row % rows);
                for step in 0..z * blocks {
                    let (matrix, first) = (t * z + step / blocks, step % blocks * block);
                    for start in (first..k.min(first + block)).step_by(TERMS) {
                        let columns = start..(start + TERMS).min(first + block).min(k);
                        terms.fill(0.0);
                        for (right, left) in &factors {
                            let left = &left.values()[(matrix * rows + row) * k..][..k];
                            add_products(
                                terms,
                                &left[columns.clone()],
                                &right.values()[(matrix * k + start) * width..],
                            );
                        }
                        sums.iter_mut().zip(&*terms).for_each(|(sum, term)| *sum = register.round(*sum + term));
                    }
                    if step + 1 < z * blocks && self.is_device() {
                        format::round_values(self.intermed, tile, sums);
                    }
                }
            },
        );
        Ok(Tensor::new(shape, tile, values)?)
    }
}

/// Adds the products of each factor and its row of `rows` to the terms.
fn add_products(terms: &mut [f32], factors: &[f32], rows: &[f32]) {
    for (factor, row) in factors.iter().zip(rows.chunks(terms.len().max(1))) {
        terms.iter_mut().zip(row).for_each(|(term, v)| *term += factor * v);
    }
}
