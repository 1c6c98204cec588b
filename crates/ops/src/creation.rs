//! Creation of tensors: `arange`, `full`, `zeros`, `ones`, `empty`, `rand` (tt-mlir `creation.fbs`,
//! `rand.fbs`).
//!
//! A constant is [`Tensor::from_le_bytes`].

use tilework_rng::{GAMMA, mix};

use crate::error::{OpError, Operands, Reason};
use crate::produce;
use crate::tensor::Tensor;
use crate::{DType, MAX_ELEMENTS, Shape};

/// A value to fill a tensor with.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fill {
    /// A floating-point value.
    Float(f32),
    /// An integer, exact in integer tensors.
    Int(i32),
}

/// `start`, `start + step`, ... up to but excluding `end`, as a vector. Each value is computed from
/// its index in double precision and rounded once.
pub fn arange(start: f64, end: f64, step: f64, dtype: DType) -> Result<Tensor, OpError> {
    let fail = |name, why: String| OpError {
        op: "arange",
        operands: Operands::default(),
        reason: Reason::attribute(name, why),
    };
    if step == 0.0 || !step.is_finite() {
        return Err(fail("step", format!("{step} is not a valid step")));
    }
    let count = ((end - start) / step).ceil();
    if count.is_nan() || count > MAX_ELEMENTS as f64 {
        return Err(fail("end", format!("{start}..{end} by {step} has no end within {MAX_ELEMENTS} elements")));
    }
    let shape = Shape::new([count.max(0.0) as usize]).map_err(|reason| OpError {
        op: "arange",
        operands: Operands::default(),
        reason,
    })?;
    let value = |i: usize| start + i as f64 * step;
    Ok(if dtype.is_float() {
        produce::floats(shape, dtype, 1, |at, out: &mut [f32]| {
            out.iter_mut().enumerate().for_each(|(i, v)| *v = value(at + i) as f32);
        })
    } else {
        produce::integers(shape, dtype, 1, |at, out| {
            out.iter_mut().enumerate().for_each(|(i, v)| *v = value(at + i) as i64);
        })
    })
}

/// A tensor filled with one value.
pub fn full(shape: Shape, dtype: DType, value: Fill) -> Tensor {
    match value {
        Fill::Float(v) => produce::floats(shape, dtype, 1, |_, out| out.fill(v)),
        Fill::Int(v) => produce::integers(shape, dtype, 1, |_, out| out.fill(i64::from(v))),
    }
}

/// A tensor of zeros. This is also the result of `ttnn.empty`, which promises no values.
pub fn zeros(shape: Shape, dtype: DType) -> Tensor {
    full(shape, dtype, Fill::Int(0))
}

/// A tensor of ones.
pub fn ones(shape: Shape, dtype: DType) -> Tensor {
    full(shape, dtype, Fill::Int(1))
}

/// The element `index` of the random sequence `seed`: uniform in 0..1 with 24 bits. Every element
/// is computed from its index alone, so they can be made in any order.
pub(crate) fn uniform(seed: u32, index: u64) -> f32 {
    let state = (u64::from(seed) << 32).wrapping_add(index).wrapping_add(1).wrapping_mul(GAMMA);
    (mix(state) >> 40) as f32 / (1u32 << 24) as f32
}

/// Uniform random values from `low` to `high`, without `high` unless rounding reaches it. The
/// device draws from the generators of its vector units, whose sequence depends on how work is
/// distributed; only the distribution is the same.
pub fn rand(shape: Shape, dtype: DType, low: f32, high: f32, seed: u32) -> Tensor {
    produce::floats(shape, dtype, 1, |start, out| {
        for (i, v) in out.iter_mut().enumerate() {
            *v = low + (high - low) * uniform(seed, (start + i) as u64);
        }
    })
}
