//! Running maximum, minimum or logarithm of a sum of exponentials: an operation of the compiler in
//! `jax-tt-plugin` since 0.1.2.
//!
//! Each step combines every element with one before it, at a distance that doubles from step to
//! step: the number of steps is the logarithm of the length. Sums are computed in float32 and
//! rounded at the end.

use tilework_model::ttnn::ops::reduction::{CumulativeOp, CumulativeReduceType};
use tilework_ops::{self as ops, Binary, Unary};

use super::*;

pub(super) fn cumulative<'m>(op: &'m CumulativeOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let out = lowering.make(&op.out)?;
    let combine = match op.reduction {
        CumulativeReduceType::Max => |a: &Tensor, b: &Tensor| ops::binary(Binary::Maximum, a, b, a.dtype()),
        CumulativeReduceType::Min => |a: &Tensor, b: &Tensor| ops::binary(Binary::Minimum, a, b, a.dtype()),
        CumulativeReduceType::LogSumExp => log_add,
    };
    let wide = op.reduction == CumulativeReduceType::LogSumExp;
    Ok(one(move |args| {
        let input = &args[input];
        let start = if wide { ops::typecast(input, DType::F32) } else { input.clone() };
        Ok(ops::typecast(&scan(start, op.dim.into(), op.reverse, combine)?, out))
    }))
}

fn scan(
    mut so_far: Tensor,
    dim: i64,
    reverse: bool,
    combine: impl Fn(&Tensor, &Tensor) -> Result<Tensor, OpError>,
) -> Result<Tensor, OpError> {
    let failed = |tensor: &Tensor, reason| {
        let operands = ops::Operands(vec![(tensor.dtype(), tensor.shape().clone())]);
        OpError { op: "cumulative", operands, reason }
    };
    let axis = so_far.shape().axis(dim).map_err(|reason| failed(&so_far, reason))?;
    let dims: Vec<i64> = so_far.shape().iter().map(|&n| n as i64).collect();
    let Some(&length) = dims.get(axis) else { return Ok(so_far) };
    let part = |tensor: &Tensor, from: i64, to: i64| {
        let (mut begins, mut ends) = (vec![0; dims.len()], dims.clone());
        (begins[axis], ends[axis]) = (from, to);
        ops::slice(tensor, &begins, &ends, &vec![1; dims.len()])
    };
    let mut reach = 1;
    while reach < length {
        let (front, back) = (part(&so_far, 0, length - reach)?, part(&so_far, reach, length)?);
        let both = combine(&front, &back)?;
        so_far = if reverse {
            ops::concat(&[&both, &part(&so_far, length - reach, length)?], axis as i64)?
        } else {
            ops::concat(&[&part(&so_far, 0, reach)?, &both], axis as i64)?
        };
        reach *= 2;
    }
    Ok(so_far)
}

/// `log(e^a + e^b)` without overflow: the larger one and what the smaller one adds to it. Equal
/// infinities have no difference.
fn log_add(a: &Tensor, b: &Tensor) -> Result<Tensor, OpError> {
    let larger = ops::binary(Binary::Maximum, a, b, DType::F32)?;
    let same = ops::binary(Binary::Equal, a, b, DType::F32)?;
    let apart = ops::unary(Unary::Abs, &ops::binary(Binary::Subtract, a, b, DType::F32)?, DType::F32)?;
    let apart = ops::where_(&same, &scalar(DType::F32, 0)?, &apart, DType::F32)?;
    let adds = ops::unary(Unary::Exp, &ops::unary(Unary::Neg, &apart, DType::F32)?, DType::F32)?;
    ops::binary(Binary::Add, &larger, &ops::unary(Unary::Log1p, &adds, DType::F32)?, DType::F32)
}
