//! Operations with two operands of one shape, element by element, and the quantisations, whose
//! scales are an operand.

use rayon::prelude::*;
use tilework_netlist::types::{BinaryKind, QuantKind};

use super::unary::{PIECE, with};
use super::{Context, Reason};
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
pub fn binary(kind: BinaryKind, a: &Tensor, b: &Tensor, context: &Context) -> Result<Tensor, Reason> {
    let (of_a, of_b) = match kind {
        // On the vector unit, which reads the destination registers.
        BinaryKind::Maximum => (context.copied(0, a), context.copied(1, b)),
        _ => (context.source(0, a), context.source(1, b)),
    };
    let result = match kind {
        BinaryKind::Add => zip(&of_a, &of_b, |a, b| a + b)?,
        BinaryKind::Subtract => zip(&of_a, &of_b, |a, b| a - b)?,
        BinaryKind::Multiply => product(&of_a, &of_b, context)?,
        BinaryKind::Maximum => zip(&of_a, &of_b, larger)?,
    };
    Ok(context.destination(result))
}

/// The sum of the products that the fidelity has.
fn product(a: &Tensor, b: &Tensor, context: &Context) -> Result<Tensor, Reason> {
    let products = context.factors(a, b).iter().map(|(a, b)| zip(a, b, times)).collect::<Result<Vec<_>, _>>()?;
    let mut products = products.into_iter();
    let first = products.next().map_or_else(|| zip(a, b, times), Ok);
    products.try_fold(first?, |sum, product| zip(&sum, &product, |sum, product| sum + product))
}

/// The larger of two values; a NaN wins.
#[inline]
pub(crate) fn larger(a: f32, b: f32) -> f32 {
    if a > b || a.is_nan() { a } else { b }
}

/// A product in which zero times anything is zero.
#[inline]
pub(crate) fn times(a: f32, b: f32) -> f32 {
    if a == 0.0 || b == 0.0 { 0.0 } else { a * b }
}

/// Scales `a` by the scales of the second operand: `a * s + zero_point`, or back by
/// `(a - zero_point) * s` (tt-budabackend, `hlks/inc/hlk_api.h`; `netlist/netlist_utils.cpp`
/// changes the sign of the zero point of a dequantisation). The output format rounds and clamps
/// what becomes an integer.
pub fn quantise(kind: QuantKind, zero_point: f32, a: &Tensor, scales: &Tensor) -> Result<Tensor, Reason> {
    match kind {
        QuantKind::Quantize | QuantKind::Requantize => zip(a, scales, |a, s| times(a, s) + zero_point),
        QuantKind::Dequantize => zip(a, scales, |a, s| times(a - zero_point, s)),
    }
}
