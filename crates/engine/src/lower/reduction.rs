//! Reductions, scans, sorting, top-k and sampling.

use tilework_model::ttnn::ops::reduction::{
    CumProdOp, CumSumOp, ReductionArgMaxOp, ReductionOp, ReductionOpType, ReductionProdOp, SamplingOp, SortOp, TopKOp,
};
use tilework_ops::{self as ops, Reduction, Sampling};

use super::*;

pub(super) fn reduction<'m>(op: &'m ReductionOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let out = lowering.make(&op.out)?;
    let kind = match op.kind {
        ReductionOpType::Sum => Reduction::Sum,
        ReductionOpType::Mean => Reduction::Mean,
        ReductionOpType::Max => Reduction::Max,
        ReductionOpType::Min => Reduction::Min,
    };
    let dims = wide(&op.dim_arg);
    Ok(one(move |args| ops::reduce(kind, &args[input], &dims, op.keep_dim, out)))
}

pub(super) fn prod<'m>(op: &'m ReductionProdOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| ops::reduce(Reduction::Prod, &args[input], op.dim_arg.as_slice(), op.keep_dim, out)))
}

pub(super) fn argmax<'m>(op: &'m ReductionArgMaxOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| ops::argmax(&args[input], op.dim.map(i64::from), op.keep_dim, out)))
}

pub(super) fn cumsum<'m>(op: &'m CumSumOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| ops::cumsum(&args[input], op.dim.into(), out)))
}

pub(super) fn cumprod<'m>(op: &'m CumProdOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| ops::cumprod(&args[input], op.dim.into(), out)))
}

/// Adds the two results of a selection, values and their indices; returns the type of the indices.
fn chosen<'m>(outputs: &'m [TensorRef], lowering: &mut Lowering<'m>) -> Result<DType, Refusal> {
    let [values, indices] = outputs else {
        return Err(Refusal::malformed(format!("{} results instead of values and indices", outputs.len())));
    };
    lowering.make(values)?;
    lowering.make(indices)
}

pub(super) fn sort<'m>(op: &'m SortOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let index = chosen(&op.outputs, lowering)?;
    Ok(many(move |args| {
        let (values, indices) = ops::sort(&args[input], op.dim.into(), op.descending, index)?;
        Ok(vec![values, indices])
    }))
}

pub(super) fn topk<'m>(op: &'m TopKOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input_tensor);
    let index = chosen(&op.outputs, lowering)?;
    let k = count("k", op.k)?;
    Ok(many(move |args| {
        let (values, indices) = ops::topk(&args[input], k, op.dim.into(), op.largest, index)?;
        Ok(vec![values, indices])
    }))
}

/// Without a seed it is 0, so that the same inputs give the same outputs.
pub(super) fn sampling<'m>(op: &'m SamplingOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (values, indices) = (lowering.read(&op.input_values), lowering.read(&op.input_indices));
    let [k, p, temperature] = [&op.k, &op.p, &op.temp].map(|operand| lowering.read(operand));
    let stated = lowering.make_whole(&op.out)?;
    let seed = op.seed.unwrap_or(0);
    Ok(one(move |args| {
        let by = Sampling { k: &args[k], p: &args[p], temperature: &args[temperature], seed };
        ops::sampling(&args[values], &args[indices], by, stated.shape.clone(), stated.dtype)
    }))
}
