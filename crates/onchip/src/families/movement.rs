//! Data movement: layouts, reshape, permute, transpose, slice, concat, pad, repeat, and what an
//! index chooses.

use tilework_abi::rearrange::BOXES;
use tilework_model::ttnn::ops::data_movement::{
    ConcatOp, GatherOp, PadOp, PermuteOp, RepeatInterleaveOp, RepeatOp, SliceOp, SliceOpParams, TransposeOp,
};
use tilework_ops::{DType, Fill, Shape, Tensor};
use tilework_runtime::tensor::{TensorDesc, TensorSpec};

use super::eltwise;
use super::rearrange::{self, Index, Part, strides};
use crate::recipe::{Made, Of, Planned, Recipe, Site, Task};

/// The same elements in order, in another layout or shape. A layout change may state another
/// element type as well.
pub(super) fn same_elements(task: &Task<'_>) -> Planned {
    let ([source], [result]) = (task.operands, task.results) else { return Err("other than one operand".into()) };
    let count = |dims: &[usize]| dims.iter().product::<usize>();
    if count(source.logical_shape()) != count(result.logical_shape()) {
        return Err("another number of elements".into());
    }
    if source.dtype() != result.dtype() && source.logical_shape() == result.logical_shape() {
        return eltwise::typecast(task);
    }
    rearrange::plan(vec![Part::in_order(task.operand(0)?, result.logical_shape())], 0, task)
}

/// The bits of elements as elements of another type of the same size.
pub(super) fn bits(task: &Task<'_>) -> Planned {
    let (input, result) = (task.operand(0)?, task.result()?);
    let (from, to) = (input.spec.dtype(), result.spec.dtype());
    if from.bytes().is_none() || from.bytes() != to.bytes() {
        return Err(format!("the bits of {} as {}", from.name(), to.name()));
    }
    let desc = TensorDesc::new(input.spec.logical_shape().to_vec()).dtype(to).layout(input.spec.layout());
    let spec = TensorSpec::new(&desc).map_err(|e| e.to_string())?;
    let mut recipe = Recipe::default();
    recipe.same_elements(Of { which: input.which, spec: &spec }, result, task.site)?;
    Ok(recipe)
}

/// The dimension that a number means.
pub(super) fn axis(number: i64, rank: usize) -> Result<usize, String> {
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
        return dynamic_slice(&op.step, task);
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

/// A slice whose lower bounds are the numbers of a tensor: dimension by dimension, where the result
/// is shorter than the operand.
fn dynamic_slice(by: &[i64], task: &Task<'_>) -> Planned {
    let (input, begins, result) = (task.operand(0)?, task.operand(1)?, task.result()?);
    let (mut dims, wanted) = (input.spec.logical_shape().to_vec(), result.spec.logical_shape());
    if by.iter().any(|&step| step != 1) || wanted.len() != dims.len() {
        return Err("a slice in steps, whose bounds are tensors".into());
    }
    if begins.spec.logical_shape().iter().product::<usize>() != dims.len() {
        return Err("other than a bound for each dimension".into());
    }
    let shorter: Vec<usize> = (0..dims.len()).filter(|&k| wanted[k] != dims[k]).collect();
    let mut recipe = Recipe::default();
    let Some((&last, before)) = shorter.split_last() else {
        recipe.same_elements(input, result, task.site)?;
        return Ok(recipe);
    };
    let mut from = None;
    for &k in before.iter().chain([&last]) {
        let of = from.as_ref().map_or(input, Made::of);
        let steps = strides(&dims);
        let bound = (dims[k] + 1).checked_sub(wanted[k]).ok_or("a result that is longer than the operand")?;
        dims[k] = wanted[k];
        let index = Index { from: begins, base: k as i64, strides: vec![0; dims.len()], bound };
        let part = Part::whole(of, 0, &dims, &steps).by(steps[k]);
        if k == last {
            recipe.rearrange_by(vec![part], &index, result, task.site)?;
        } else {
            let made = recipe.rows(&dims, input.spec.dtype())?;
            recipe.rearrange_by(vec![part], &index, made.of(), task.site)?;
            from = Some(made);
        }
    }
    Ok(recipe)
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
    if parts.len() <= BOXES {
        return rearrange::plan(parts, 0, task);
    }
    several(&parts, along, task)
}

/// A result of more parts along a dimension than the kernel takes at once: of the first ones, which
/// become one tensor, and so on.
fn several(parts: &[Part<'_>], along: usize, task: &Task<'_>) -> Planned {
    let result = task.result()?;
    let mut recipe = Recipe::default();
    let mut made: Vec<(Made, usize)> = Vec::new();
    for some in parts.chunks(BOXES) {
        let (Some(first), Some(last)) = (some.first(), some.last()) else { continue };
        let (begin, end) = (first.low[along], last.high[along]);
        let mut dims = result.spec.logical_shape().to_vec();
        dims[along] = end - begin;
        let of = recipe.add(&dims, result.spec.dtype(), result.spec.layout())?;
        let moved = some.iter().cloned().map(|mut part| {
            (part.low[along], part.high[along]) = (part.low[along] - begin, part.high[along] - begin);
            part
        });
        recipe.rearrange(moved.collect(), 0, of.of(), task.site)?;
        made.push((of, begin));
    }
    let parts = made.iter().map(|(of, begin)| {
        let dims = of.of().spec.logical_shape();
        let (mut low, mut high) = (vec![0; dims.len()], dims.to_vec());
        (low[along], high[along]) = (*begin, begin + dims[along]);
        Part::between(of.of(), 0, [&low, &high], &strides(dims))
    });
    let parts = parts.collect();
    recipe.rearrange(parts, 0, result, task.site)?;
    Ok(recipe)
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
pub(super) fn word(dtype: DType, value: f32) -> Result<u32, String> {
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
    let (input, result) = (task.operand(0)?, task.result()?);
    let (source, dims) = (input.spec.logical_shape(), result.spec.logical_shape());
    let times: Option<Vec<usize>> = op.repeat_dims.iter().map(|&n| usize::try_from(n).ok()).collect();
    let times = times.ok_or("a negative number of copies")?;
    if dims.len() != times.len() || source.len() > dims.len() {
        return Err("other than a number of copies for each dimension".into());
    }
    let mut so_far = vec![1; dims.len() - source.len()];
    so_far.extend(source);
    if so_far.iter().zip(&times).map(|(n, times)| n * times).ne(dims.iter().copied()) {
        return Err("a result of other sides".into());
    }
    // Where the operand has one element, its copies need no stride.
    let mut steps = strides(&so_far);
    for (k, &times) in times.iter().enumerate() {
        if so_far[k] == 1 && times != 1 {
            (so_far[k], steps[k]) = (times, 0);
        }
    }
    let many: Vec<usize> = (0..dims.len()).filter(|&k| so_far[k] != dims[k]).collect();
    let mut recipe = Recipe::default();
    if many.is_empty() {
        recipe.rearrange(vec![Part::whole(input, 0, dims, &steps)], 0, result, task.site)?;
        return Ok(recipe);
    }
    let mut from = None;
    if so_far.iter().product::<usize>() != source.iter().product() {
        let made = recipe.rows(&so_far, input.spec.dtype())?;
        recipe.rearrange(vec![Part::whole(input, 0, &so_far, &steps)], 0, made.of(), task.site)?;
        from = Some(made);
    }
    for k in many {
        let of = from.as_ref().map_or(input, Made::of);
        let made = recipe.copies(of, &so_far, (k, times[k]), false, task.site)?;
        so_far[k] *= times[k];
        from = Some(made);
    }
    recipe.same_elements(from.as_ref().map_or(input, Made::of), result, task.site)?;
    Ok(recipe)
}

pub(super) fn repeat_interleave(op: &RepeatInterleaveOp, task: &Task<'_>) -> Planned {
    let (input, result) = (task.operand(0)?, task.result()?);
    let source = input.spec.logical_shape();
    let along = axis(op.dim.into(), source.len())?;
    let mut recipe = Recipe::default();
    let made = recipe.copies(input, source, (along, op.repeats as usize), true, task.site)?;
    recipe.same_elements(made.of(), result, task.site)?;
    Ok(recipe)
}

impl Recipe {
    /// The elements of a tensor, as one of these sides, with copies along a dimension, in rows:
    /// of each element `each` by itself, or of all along the dimension.
    fn copies(
        &mut self,
        from: Of<'_>,
        dims: &[usize],
        (along, times): (usize, usize),
        each: bool,
        site: &Site,
    ) -> Result<Made, String> {
        let outer = dims[..along].iter().product::<usize>();
        let (length, inner) = (dims[along], dims[along + 1..].iter().product::<usize>());
        let (whole, line) = ((length * inner) as i64, inner as i64);
        let (high, steps) = match each {
            true => ([outer, length, times, inner], [whole, line, 0, 1]),
            false => ([outer, times, length, inner], [whole, 0, line, 1]),
        };
        let made = self.rows(&high, from.spec.dtype())?;
        self.rearrange(vec![Part::whole(from, 0, &high, &steps)], 0, made.of(), site)?;
        Ok(made)
    }
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
