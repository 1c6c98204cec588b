//! Where the weights of convolutions lie: as frameworks have them, or as programs prepare them
//! (`tilework_ops::prepare_weights`).

use tilework_model::ttnn::ops::conv::{
    PrepareConv2dBiasOp, PrepareConv2dWeightsOp, PrepareConv3dWeightsOp, PrepareConvTranspose2dBiasOp,
    PrepareConvTranspose2dWeightsOp,
};

use super::rearrange::Part;
use crate::recipe::{Of, Planned, Recipe, Task};

/// How far elements are from each other.
#[derive(Clone, Copy, Debug)]
pub(super) struct Weights {
    pub(super) base: i64,
    /// From an element of the window to the next.
    pub(super) tap: i64,
    /// From an input channel of a group to the next, and from an output channel.
    pub(super) channel: i64,
    pub(super) out: i64,
    /// From the first of a group to that of the next.
    pub(super) group: i64,
    /// Input channels of a block, and how far blocks are from each other, if there are several.
    pub(super) block: Option<(usize, i64)>,
}

/// Rows and columns of a prepared matrix, if it is one that has these.
fn matrix(of: Of<'_>, [rows, columns]: [usize; 2]) -> Option<i64> {
    let [ones @ .., has_rows, has_columns] = of.spec.logical_shape() else { return None };
    let fits = ones.iter().all(|&n| n == 1) && *has_rows >= rows && *has_columns >= columns;
    fits.then_some(*has_columns as i64)
}

/// Those of a convolution: `[out, in of a group, window..]`, or prepared.
pub(super) fn plain(of: Of<'_>, [out, channels, groups]: [usize; 3], kernel: &[usize]) -> Result<Weights, String> {
    let (taps, width) = (kernel.iter().product::<usize>(), channels / groups);
    let dims: Vec<usize> = [out, width].into_iter().chain(kernel.iter().copied()).collect();
    let (each, taps_step, wide) = (out / groups, taps as i64, width as i64);
    if of.spec.logical_shape() == dims || (kernel.len() == 1 && of.spec.logical_shape() == [out, width, taps, 1]) {
        let step = wide * taps_step;
        return Ok(Weights { base: 0, tap: 1, channel: taps_step, out: step, group: step * each as i64, block: None });
    }
    let columns = matrix(of, [taps * width, out]).ok_or("weights of other sides")?;
    Ok(Weights { base: 0, tap: wide * columns, channel: columns, out: 1, group: each as i64, block: None })
}

/// Those of a transposed convolution, `[in, out of a group, window..]` or prepared, with the
/// elements of the window in reverse order.
pub(super) fn turned(of: Of<'_>, [out, channels, groups]: [usize; 3], kernel: &[usize]) -> Result<Weights, String> {
    let (taps, width, each) = (kernel.iter().product::<usize>(), channels / groups, out / groups);
    let dims: Vec<usize> = [channels, each].into_iter().chain(kernel.iter().copied()).collect();
    let last = taps as i64 - 1;
    if of.spec.logical_shape() == dims {
        let (out, channel) = (taps as i64, (each * taps) as i64);
        return Ok(Weights { base: last, tap: -1, channel, out, group: channel * width as i64, block: None });
    }
    let columns = matrix(of, [taps * width, out]).ok_or("weights of other sides")?;
    let tap = width as i64 * columns;
    Ok(Weights { base: last * tap, tap: -tap, channel: columns, out: 1, group: each as i64, block: None })
}

/// Prepared ones of a convolution over volumes: in blocks of channels, a row for each element of
/// the window and channel of the block, for those of all groups.
pub(super) fn prepared_volume(
    of: Of<'_>,
    [out, channels, _]: [usize; 3],
    kernel: &[usize],
    block: usize,
) -> Option<Weights> {
    let taps = kernel.iter().product::<usize>();
    let [rows, columns] = *of.spec.logical_shape() else { return None };
    if taps == 0 || !rows.is_multiple_of(taps) || columns != out || rows / taps < channels {
        return None;
    }
    let aligned = rows / taps;
    let block = if block == 0 { aligned } else { block };
    if !aligned.is_multiple_of(block) {
        return None;
    }
    let tap = (block * columns) as i64;
    let several = (block != aligned).then_some((block, tap * taps as i64));
    Some(Weights { base: 0, tap, channel: columns as i64, out: 1, group: 0, block: several })
}

/// Weights `[out, in, window..]` of one group in blocks of channels, with zeros for channels up to
/// a multiple of `alignment`.
pub(super) fn prepare_volume(op: &PrepareConv3dWeightsOp, task: &Task<'_>) -> Planned {
    let (from, result) = (task.operand(0)?, task.result()?);
    let [out, channels, depth, height, across] = *from.spec.logical_shape() else {
        return Err("weights of other sides".into());
    };
    let mut recipe = Recipe::default();
    if from.spec.logical_shape() == result.spec.logical_shape() {
        recipe.same_elements(from, result, task.site)?;
        return Ok(recipe);
    }
    let taps = depth * height * across;
    let aligned = channels.next_multiple_of((op.alignment as usize).max(1));
    let block = if op.c_in_block == 0 { aligned } else { op.c_in_block as usize };
    if op.groups > 1 || !aligned.is_multiple_of(block) {
        return Err("groups, or blocks that do not divide the channels".into());
    }
    if result.spec.logical_shape().iter().product::<usize>() != aligned * taps * out {
        return Err("a matrix of other sides".into());
    }
    let blocks = aligned / block;
    let dims = [blocks, taps, block, out];
    let steps = [block * taps, 1, taps, channels * taps].map(|n| n as i64);
    let whole = channels / block;
    let mut parts = vec![Part::between(from, 0, [&[0; 4], &[whole, taps, block, out]], &steps)];
    if !channels.is_multiple_of(block) {
        let corners = [[whole, 0, 0, 0], [whole + 1, taps, channels % block, out]];
        parts.push(Part::between(from, whole as i64 * steps[0], [&corners[0], &corners[1]], &steps));
    }
    let made = recipe.rows(&dims, from.spec.dtype())?;
    recipe.rearrange(parts, 0, made.of(), task.site)?;
    recipe.same_elements(made.of(), result, task.site)?;
    Ok(recipe)
}

/// A matrix with a row for each element of the window and channel, and zeros behind, of weights
/// that lie so.
fn prepare(by: Weights, [taps, width, out, groups]: [usize; 4], task: &Task<'_>) -> Planned {
    let (from, result) = (task.operand(0)?, task.result()?);
    let mut recipe = Recipe::default();
    if from.spec.logical_shape() == result.spec.logical_shape() {
        recipe.same_elements(from, result, task.site)?;
        return Ok(recipe);
    }
    let dims = [taps, width, groups, out / groups];
    let rows = recipe.rows(&dims, from.spec.dtype())?;
    let part = Part::whole(from, by.base, &dims, &[by.tap, by.channel, by.group, by.out]);
    recipe.rearrange(vec![part], 0, rows.of(), task.site)?;
    let to = result.spec.logical_shape();
    let (rank, rows_in) = (to.len(), taps * width);
    if rank < 2 || to[rank - 2] < rows_in || to[rank - 1] < out || to[..rank - 2].iter().any(|&n| n != 1) {
        return Err("a matrix of other sides".into());
    }
    let (low, mut high, mut steps) = (vec![0; rank], to.to_vec(), vec![0; rank]);
    (high[rank - 2], high[rank - 1]) = (rows_in, out);
    (steps[rank - 2], steps[rank - 1]) = (out as i64, 1);
    recipe.rearrange(vec![Part::between(rows.of(), 0, [&low, &high], &steps)], 0, result, task.site)?;
    Ok(recipe)
}

pub(super) fn prepare_weights(op: &PrepareConv2dWeightsOp, task: &Task<'_>) -> Planned {
    let from = task.operand(0)?;
    let [out, width, height, across] = *from.spec.logical_shape() else { return Err("weights of other sides".into()) };
    let groups = op.groups.max(1) as usize;
    if !out.is_multiple_of(groups) {
        return Err("groups that do not divide the channels".into());
    }
    let by = plain(from, [out, width * groups, groups], &[height, across])?;
    prepare(by, [height * across, width, out, groups], task)
}

/// Weights whose elements of the window are in reverse order already are not reversed again.
pub(super) fn prepare_transposed(op: &PrepareConvTranspose2dWeightsOp, task: &Task<'_>) -> Planned {
    let from = task.operand(0)?;
    let [channels, each, height, across] = *from.spec.logical_shape() else {
        return Err("weights of other sides".into());
    };
    let groups = op.groups.max(1) as usize;
    if !channels.is_multiple_of(groups) {
        return Err("groups that do not divide the channels".into());
    }
    let taps = height * across;
    let mut by = turned(from, [each * groups, channels, groups], &[height, across])?;
    if op.mirror_kernel {
        (by.base, by.tap) = (0, 1);
    }
    prepare(by, [taps, channels / groups, each * groups, groups], task)
}

/// A bias as a row, with zeros behind.
fn bias(task: &Task<'_>) -> Planned {
    let (from, result) = (task.operand(0)?, task.result()?);
    let count = from.spec.logical_shape().iter().product::<usize>();
    let to = result.spec.logical_shape();
    let (Some(&width), rank) = (to.last(), to.len()) else { return Err("a bias without elements".into()) };
    if width < count || to[..rank - 1].iter().rev().skip(1).any(|&n| n != 1) {
        return Err("a row of other sides".into());
    }
    let (low, mut high, mut steps) = (vec![0; rank], vec![1; rank], vec![0; rank]);
    (high[rank - 1], steps[rank - 1]) = (count, 1);
    let mut recipe = Recipe::default();
    recipe.rearrange(vec![Part::between(from, 0, [&low, &high], &steps)], 0, result, task.site)?;
    Ok(recipe)
}

pub(super) fn prepare_bias(_: &PrepareConv2dBiasOp, task: &Task<'_>) -> Planned {
    bias(task)
}

pub(super) fn prepare_transposed_bias(_: &PrepareConvTranspose2dBiasOp, task: &Task<'_>) -> Planned {
    bias(task)
}
