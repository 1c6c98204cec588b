//! Operations with two operands of one shape, element by element, and the quantisations, whose
//! scales are an operand.

use rayon::prelude::*;
use tilework_netlist::types::{BinaryKind, QuantKind};

use super::Reason;
use super::unary::{PIECE, with};
use crate::tensor::Tensor;

/// A tensor of the same shape, pair by pair.
pub(crate) fn zip(a: &Tensor, b: &Tensor, f: impl Fn(f32, f32) -> f32 + Sync) -> Result<Tensor, Reason> {
    if a.shape() != b.shape() {
        let why = "both operands have one shape";
        return Err(Reason::Shape { operand: 1, found: b.shape(), wanted: a.shape(), why });
    }
    let mut values = a.values().to_vec();
    values
        .par_chunks_mut(PIECE)
        .zip(b.values().par_chunks(PIECE))
        .for_each(|(a, b)| a.iter_mut().zip(b).for_each(|(a, &b)| *a = f(*a, b)));
    Ok(with(a, values))
}

/// Computes `a op b`. Zero times anything is zero, infinities and NaNs among them; a maximum
/// passes NaNs on.
pub fn binary(kind: BinaryKind, a: &Tensor, b: &Tensor) -> Result<Tensor, Reason> {
    match kind {
        BinaryKind::Add => zip(a, b, |a, b| a + b),
        BinaryKind::Subtract => zip(a, b, |a, b| a - b),
        BinaryKind::Multiply => zip(a, b, |a, b| if a == 0.0 || b == 0.0 { 0.0 } else { a * b }),
        BinaryKind::Maximum => zip(a, b, larger),
    }
}

/// The larger of two values; a NaN wins.
#[inline]
pub(crate) fn larger(a: f32, b: f32) -> f32 {
    if a > b || a.is_nan() { a } else { b }
}

/// Scales `a` by the scales of the second operand. The output format rounds and clamps what
/// becomes an integer.
pub fn quantise(kind: QuantKind, zero_point: f32, a: &Tensor, scales: &Tensor) -> Result<Tensor, Reason> {
    match kind {
        QuantKind::Quantize | QuantKind::Requantize => zip(a, scales, |a, s| a * s + zero_point),
        QuantKind::Dequantize => zip(a, scales, |a, s| (a + zero_point) * s),
    }
}
