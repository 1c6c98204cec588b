//! Elements and rows by index.

use tilework_model::ttnn::ops::data_movement::{GatherOp, ScatterOp, ScatterReduceType};
use tilework_model::ttnn::ops::embedding::{EmbeddingBackwardOp, EmbeddingOp};
use tilework_ops::{self as ops, ScatterReduce};

use super::*;

pub(super) fn gather<'m>(op: &'m GatherOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (input, index) = (lowering.read(&op.input), lowering.read(&op.index));
    lowering.make(&op.out)?;
    Ok(one(move |args| ops::gather(&args[input], &args[index], op.dim.into())))
}

pub(super) fn scatter<'m>(op: &'m ScatterOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (input, index, source) = (lowering.read(&op.input), lowering.read(&op.index), lowering.read(&op.source));
    lowering.make(&op.out)?;
    let reduce = reduction(op.scatter_reduce_type);
    Ok(one(move |args| ops::scatter(&args[input], &args[index], &args[source], op.dim.into(), reduce)))
}

pub(super) fn embedding<'m>(op: &'m EmbeddingOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (input, weight) = (lowering.read(&op.input), lowering.read(&op.weight));
    lowering.make(&op.out)?;
    Ok(one(move |args| ops::embedding(&args[input], &args[weight])))
}

pub(super) fn embedding_backward<'m>(op: &'m EmbeddingBackwardOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (input, weight) = (lowering.read(&op.input), lowering.read(&op.weight));
    let grad = lowering.read(&op.in_grad);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| ops::embedding_backward(&args[input], &args[weight], &args[grad], out)))
}

/// How scattered values are combined with the existing ones.
pub(super) fn reduction(of: ScatterReduceType) -> ScatterReduce {
    match of {
        ScatterReduceType::Sum => ScatterReduce::Sum,
        ScatterReduceType::Max => ScatterReduce::Max,
        ScatterReduceType::Min => ScatterReduce::Min,
        ScatterReduceType::Prod => ScatterReduce::Prod,
        ScatterReduceType::Invalid => ScatterReduce::Replace,
    }
}
