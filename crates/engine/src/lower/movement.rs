//! Data movement: reshape, permute, slice, pad and the like.

use tilework_model::ttnn::ops::data_movement::{
    ConcatOp, PadOp, PermuteOp, RepeatInterleaveOp, RepeatOp, ReshapeOp, SliceOp, SliceOpParams, TransposeOp,
};
use tilework_ops as ops;

use super::*;

pub(super) fn concat<'m>(op: &'m ConcatOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    if op.inputs.is_empty() {
        return Err(Refusal::malformed("no inputs"));
    }
    op.inputs.iter().for_each(|input| _ = lowering.read(input));
    lowering.make(&op.out)?;
    Ok(one(move |args| ops::concat(args.all(), op.dim.into())))
}

pub(super) fn pad<'m>(op: &'m PadOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    lowering.make(&op.out)?;
    let padding: Vec<usize> = op.padding.iter().map(|&n| count("padding", n)).collect::<Result<_, _>>()?;
    Ok(one(move |args| ops::pad(&args[input], &padding, op.value)))
}

pub(super) fn permute<'m>(op: &'m PermuteOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    lowering.make(&op.out)?;
    Ok(one(move |args| ops::permute(&args[input], &op.permutation)))
}

pub(super) fn repeat<'m>(op: &'m RepeatOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    lowering.make(&op.out)?;
    let repeats: Vec<usize> = op.repeat_dims.iter().map(|&n| count("repeat_dims", n)).collect::<Result<_, _>>()?;
    Ok(one(move |args| ops::repeat(&args[input], &repeats)))
}

pub(super) fn repeat_interleave<'m>(op: &'m RepeatInterleaveOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    lowering.make(&op.out)?;
    let repeats = count("repeats", op.repeats)?;
    Ok(one(move |args| ops::repeat_interleave(&args[input], repeats, op.dim.into())))
}

pub(super) fn reshape<'m>(op: &'m ReshapeOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    lowering.make(&op.out)?;
    let shape = wide(&op.shape);
    Ok(one(move |args| ops::reshape(&args[input], &shape)))
}

pub(super) fn slice<'m>(op: &'m SliceOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    lowering.make(&op.out)?;
    match &op.params {
        SliceOpParams::SliceStaticOpParams(by) => {
            let steps = steps(&op.step, by.begins.len());
            Ok(one(move |args| ops::slice(&args[input], &by.begins, &by.ends, &steps)))
        }
        SliceOpParams::SliceDynamicOpParams(by) => {
            let (begins, ends) = (lowering.read(&by.begins), lowering.read(&by.ends));
            Ok(one(move |args| {
                let steps = steps(&op.step, args[input].shape().rank());
                ops::slice_dynamic(&args[input], &args[begins], &args[ends], &steps)
            }))
        }
    }
}

/// A slice without steps takes every element.
fn steps(stated: &[i64], rank: usize) -> Vec<i64> {
    if stated.is_empty() { vec![1; rank] } else { stated.to_vec() }
}

pub(super) fn transpose<'m>(op: &'m TransposeOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    lowering.make(&op.out)?;
    Ok(one(move |args| ops::transpose(&args[input], op.dim0.into(), op.dim1.into())))
}
