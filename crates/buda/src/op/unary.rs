//! Operations with one operand, element by element.
//!
//! The functions are those of the operation library; the special cases of golden arithmetic are
//! here (tt-budabackend, `common/tile_lib.cpp`): e^x stops at the largest float32, log(0) is
//! ln(epsilon), 1/0 is 1/epsilon, the square root of a negative value is an error. Gelu is the
//! tanh form with 0.044715. Elsewhere values are IEEE's: a NaN stays, the logarithm of a negative
//! value is a NaN.

use rayon::prelude::*;
use tilework_netlist::types::{UnaryKind, VectorMode};
use tilework_ops::{self as ops, DType, Unary};

use super::Reason;
use crate::tensor::Tensor;

/// Elements that one thread computes at a time.
pub(crate) const PIECE: usize = 1 << 14;

/// A tensor of the same shape, element by element.
pub(crate) fn map(x: &Tensor, f: impl Fn(f32) -> f32 + Sync) -> Tensor {
    let mut values = x.values().to_vec();
    values.par_chunks_mut(PIECE).for_each(|piece| piece.iter_mut().for_each(|v| *v = f(*v)));
    with(x, values)
}

/// A tensor like `x` with these values, of which there are as many.
pub(crate) fn with(x: &Tensor, values: Vec<f32>) -> Tensor {
    Tensor::new(x.shape(), x.tile(), values).expect("as many values as the tensor has, which is within its bounds")
}

/// Applies a function of the operation library.
fn library(x: &Tensor, kind: Unary) -> Tensor {
    x.with_values(ops::unary(kind, x.library(), DType::F32).expect("float functions take every float tensor"))
}

/// Applies the function to every element.
pub fn unary(kind: UnaryKind, x: &Tensor) -> Result<Tensor, Reason> {
    // Zeros have no logarithm and no reciprocal: epsilon stands in for them.
    let positive = |v: f32| if v == 0.0 { f32::EPSILON } else { v };
    Ok(match kind {
        UnaryKind::Copy => x.clone(),
        UnaryKind::Exp => map(&library(x, Unary::Exp), |v| if v > f32::MAX { f32::MAX } else { v }),
        UnaryKind::Log => library(&map(x, positive), Unary::Log),
        UnaryKind::Sqrt => {
            if let Some(index) = x.values().iter().position(|&v| v < 0.0) {
                return Err(Reason::Domain { function: "square root", value: x.values()[index], index });
            }
            map(x, f32::sqrt)
        }
        UnaryKind::Gelu => library(x, Unary::GeluTanh),
        UnaryKind::GeluDerivative => {
            let ones = Tensor::full(x.shape(), x.tile(), 1.0)?;
            let derivative = ops::gelu_backward(ones.library(), x.library(), true, DType::F32);
            x.with_values(derivative.expect("both have one shape"))
        }
        UnaryKind::Reciprocal => map(x, |v| 1.0 / positive(v)),
        UnaryKind::Sigmoid => library(x, Unary::Sigmoid),
        UnaryKind::Tanh => library(x, Unary::Tanh),
        UnaryKind::Square => map(x, |v| v * v),
        UnaryKind::Power(exponent) => map(x, |v| power(v, exponent)),
        UnaryKind::Sine => library(x, Unary::Sin),
        UnaryKind::Cosine => library(x, Unary::Cos),
        UnaryKind::LeakyRelu(slope) => map(x, |v| if v < 0.0 { slope * v } else { v }),
        UnaryKind::Abs => map(x, f32::abs),
        UnaryKind::Dropout { p, seed } => {
            if !(0.0..=1.0).contains(&p) {
                return Err(Reason::attribute("p", format!("{p} is no probability")));
            }
            // With p = 1 everything is dropped.
            let scale = if p == 1.0 { 1.0 } else { 1.0 / (1.0 - p) };
            x.with_values(ops::dropout(x.library(), p, scale, seed, DType::F32))
        }
    })
}

/// An integer power; in double precision, so that it is rounded once.
fn power(x: f32, exponent: i32) -> f32 {
    libm::pow(f64::from(x), f64::from(exponent)) as f32
}

/// Keeps what the vector unit writes of each tile and makes the rest zero.
pub fn vector(mode: VectorMode, x: &Tensor) -> Tensor {
    let (rows, columns) = (x.tile().r as usize, x.tile().c as usize);
    let width = x.shape().columns;
    let mut values = x.values().to_vec();
    for (i, row) in values.chunks_mut(width.max(1)).enumerate() {
        match mode {
            VectorMode::R if i % rows >= 4 => row.fill(0.0),
            VectorMode::C => row.chunks_mut(columns).for_each(|tile| tile.iter_mut().skip(16).for_each(|v| *v = 0.0)),
            VectorMode::R | VectorMode::Rc => {}
        }
    }
    with(x, values)
}
