//! Data movement: layouts, reshape, permute, transpose, slice, concat, pad, repeat, and what an
//! index chooses.

use tilework_model::ttnn::ops::data_movement::{
    ConcatOp, GatherOp, PadOp, PermuteOp, RepeatInterleaveOp, RepeatOp, SliceOp, SliceOpParams, TransposeOp,
};
use tilework_ops::{DType, Fill, Shape, Tensor};

use super::rearrange::{self, Index, Part, strides};
use crate::recipe::{Planned, Recipe, Task};

/// The same elements in order, in another layout or shape.
pub(super) fn same_elements(task: &Task<'_>) -> Planned {
    let ([source], [result]) = (task.operands, task.results) else { return Err("other than one operand".into()) };
    let count = |dims: &[usize]| dims.iter().product::<usize>();
    if count(source.logical_shape()) != count(result.logical_shape()) {
        return Err("another number of elements".into());
    }
    rearrange::plan(vec![Part::in_order(task.operand(0)?, result.logical_shape())], 0, task)
}

/// The dimension that a number means.
fn axis(number: i64, rank: usize) -> Result<usize, String> {
    let from_start = if number < 0 { number + rank as i64 } else { number };
    usize::try_from(from_start).ok().filter(|&axis| axis < rank).ok_or_else(|| format!("dimension {number}"))
}

/// Dimension `k` of the result is dimension `order[k]` of the operand.
fn permuted(order: &[usize], task: &Task<'_>) -> Planned {
    let source = task.operands[0].logical_shape();
    let steps = strides(source);
    let dims: Vec<usize> = order.iter().map(|&k| source[k]).collect();
    let steps: Vec<i64> = order.iter().map(|&k| steps[k]).collect();
    rearrange::plan(vec![Part::whole(task.operand(0)?, 0, &dims, &steps)], 0, task)
}

pub(super) fn permute(op: &PermuteOp, task: &Task<'_>) -> Planned {
    let rank = task.operands[0].logical_shape().len();
    let order = op.permutation.iter().map(|&k| axis(k, rank)).collect::<Result<Vec<_>, _>>()?;
    permuted(&order, task)
}

pub(super) fn transpose(op: &TransposeOp, task: &Task<'_>) -> Planned {
    let rank = task.operands[0].logical_shape().len();
    let mut order: Vec<usize> = (0..rank).collect();
    order.swap(axis(op.dim0.into(), rank)?, axis(op.dim1.into(), rank)?);
    permuted(&order, task)
}

pub(super) fn slice(op: &SliceOp, task: &Task<'_>) -> Planned {
    let SliceOpParams::SliceStaticOpParams(by) = &op.params else {
        return Err("bounds that are tensors".into());
    };
    let (source, result) = (task.operands[0].logical_shape(), task.results[0].logical_shape());
    let (mut base, mut steps) = (0, strides(source));
    if by.begins.len() != source.len() || result.len() != source.len() {
        return Err("bounds of other dimensions".into());
    }
    for (k, stride) in steps.iter_mut().enumerate() {
        let length = source[k] as i64;
        let begin = by.begins[k];
        let begin = if begin < 0 { begin + length } else { begin }.clamp(0, length);
        base += begin * *stride;
        *stride *= op.step.get(k).copied().unwrap_or(1);
    }
    rearrange::plan(vec![Part::whole(task.operand(0)?, base, result, &steps)], 0, task)
}

pub(super) fn concat(op: &ConcatOp, task: &Task<'_>) -> Planned {
    let rank = task.results[0].logical_shape().len();
    let along = axis(op.dim.into(), rank)?;
    let (mut parts, mut from) = (Vec::new(), 0);
    for (operand, spec) in task.operands.iter().enumerate() {
        let dims = spec.logical_shape();
        let (mut low, mut high) = (vec![0; rank], dims.to_vec());
        (low[along], high[along]) = (from, from + dims[along]);
        from += dims[along];
        parts.push(Part::between(task.operand(operand)?, 0, [&low, &high], &strides(dims)));
    }
    rearrange::plan(parts, 0, task)
}

pub(super) fn pad(op: &PadOp, task: &Task<'_>) -> Planned {
    let dims = task.operands[0].logical_shape();
    if op.padding.len() != dims.len() * 2 {
        return Err("padding of other dimensions".into());
    }
    let low: Vec<usize> = op.padding.iter().step_by(2).map(|&n| n as usize).collect();
    let high: Vec<usize> = low.iter().zip(dims).map(|(low, n)| low + n).collect();
    let part = Part::between(task.operand(0)?, 0, [&low, &high], &strides(dims));
    rearrange::plan(vec![part], word(task.results[0].dtype(), op.value)?, task)
}

/// A word of equal elements.
fn word(dtype: DType, value: f32) -> Result<u32, String> {
    Tensor::from_f32(dtype, Shape::scalar(), &[value]).map(|one| repeated(&one)).map_err(|e| e.to_string())
}

/// A word of elements that are all the one of a tensor.
fn repeated(one: &Tensor) -> u32 {
    let all: Vec<u8> = one.to_le_bytes().iter().copied().cycle().take(4).collect();
    all.try_into().map_or(0, u32::from_le_bytes)
}

/// A tensor of equal elements.
pub(super) fn full(value: Fill, task: &Task<'_>) -> Planned {
    let [result] = task.results else { return Err("other than one result".into()) };
    if result.dtype().is_block() {
        return Err(format!("elements of type {}", result.dtype().name()));
    }
    rearrange::plan(Vec::new(), repeated(&tilework_ops::full(Shape::scalar(), result.dtype(), value)), task)
}

pub(super) fn repeat(op: &RepeatOp, task: &Task<'_>) -> Planned {
    let (source, result) = (task.operands[0].logical_shape(), task.results[0].logical_shape());
    if result.len() != source.len() || op.repeat_dims.len() != source.len() {
        return Err("more dimensions than the operand".into());
    }
    // Copies along a dimension are boxes, but of a dimension of length one a stride of zero.
    let mut parts = vec![Part::in_order(task.operand(0)?, source)];
    for k in 0..source.len() {
        let times = result[k] / source[k].max(1);
        if source[k] == 1 {
            parts.iter_mut().for_each(|part| (part.high[k], part.strides[k]) = (times, 0));
            continue;
        }
        let copies = (0..times).flat_map(|i| {
            parts.iter().map(move |part| {
                let mut part = part.clone();
                part.low[k] += i * source[k];
                part.high[k] += i * source[k];
                part
            })
        });
        parts = copies.collect();
    }
    rearrange::plan(parts, 0, task)
}

pub(super) fn repeat_interleave(op: &RepeatInterleaveOp, task: &Task<'_>) -> Planned {
    let source = task.operands[0].logical_shape();
    let along = axis(op.dim.into(), source.len())?;
    let times = op.repeats as usize;
    // One box for each of the repetitions would need strides within a dimension; those of length
    // one need none.
    if source[along] != 1 && times != 1 {
        return Err("repeated elements of a dimension".into());
    }
    let (mut high, mut steps) = (source.to_vec(), strides(source));
    high[along] *= times;
    if source[along] == 1 {
        steps[along] = 0;
    }
    rearrange::plan(vec![Part::whole(task.operand(0)?, 0, &high, &steps)], 0, task)
}

/// Rows of a table, by their numbers.
pub(super) fn embedding(task: &Task<'_>) -> Planned {
    let (input, table, result) = (task.operand(0)?, task.operand(1)?, task.result()?);
    let (dims, table_dims) = (result.spec.logical_shape(), table.spec.logical_shape());
    let [before @ .., rows, columns] = table_dims else { return Err("a table without rows".into()) };
    let Some((width, numbers)) = dims.split_last().filter(|_| before.iter().all(|&n| n == 1)) else {
        return Err("a table of several matrices".into());
    };
    if *width != *columns || numbers.iter().product::<usize>() != input.spec.logical_shape().iter().product() {
        return Err("a result of other sides than numbers and rows".into());
    }
    let mut steps = vec![0; dims.len()];
    steps[dims.len() - 1] = 1;
    let part = Part::whole(table, 0, dims, &steps).by(*columns as i64);
    let mut by = strides(numbers);
    by.push(0);
    let index = Index { from: input, base: 0, strides: by, bound: *rows };
    let mut recipe = Recipe::default();
    recipe.rearrange_by(vec![part], &index, result, task.site)?;
    Ok(recipe)
}

/// Elements of the first operand that lie along a dimension where the second says.
pub(super) fn gather(op: &GatherOp, task: &Task<'_>) -> Planned {
    let (input, index, result) = (task.operand(0)?, task.operand(1)?, task.result()?);
    let (dims, source) = (result.spec.logical_shape(), input.spec.logical_shape());
    let rank = dims.len();
    let axis = axis(op.dim.into(), rank)?;
    if source.len() != rank || index.spec.logical_shape() != dims {
        return Err("an index of other sides than the result".into());
    }
    let mut steps = strides(source);
    let step = std::mem::replace(&mut steps[axis], 0);
    let part = Part::whole(input, 0, dims, &steps).by(step);
    let index = Index { from: index, base: 0, strides: strides(dims), bound: source[axis] };
    let mut recipe = Recipe::default();
    recipe.rearrange_by(vec![part], &index, result, task.site)?;
    Ok(recipe)
}
