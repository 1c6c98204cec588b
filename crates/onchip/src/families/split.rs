//! Normalisation of rows that lie on several devices: statistics of a device's part of a row, and
//! the pass over it when those of all devices are there; and an RMS norm with what is fused to it.
//!
//! Statistics of a row are the first columns of tiles that are zero otherwise: the sum of squares
//! and the sum, or the mean of squares (`tilework_ops`, split norms).

use tilework_abi::eltwise::Function;
use tilework_model::ttnn::ops::normalization::{
    DitRMSNormUnaryFusedOp, LayerNormPostAllGatherOp, LayerNormPreAllGatherOp, RMSNormPreAllGatherOp,
};
use tilework_ops::DType;

use super::norm::{self, Statistics, one, two};
use super::rearrange::{Part, strides};
use super::reduction::{By, Reduce};
use super::{eltwise, stage};
use crate::recipe::{Made, Of, Planned, Recipe, Site, Task};

/// Rows and columns of a tile.
const TILE: usize = 32;

/// The operand, with another added to it if there is one.
fn with_residual(residual: Option<Of<'_>>, recipe: &mut Recipe, task: &Task<'_>) -> Result<Option<Made>, String> {
    let Some(residual) = residual else { return Ok(None) };
    let x = task.operand(0)?;
    let made = recipe.tiles(x.spec.logical_shape(), DType::F32)?;
    let others = vec![(residual, vec![two(Function::Add, 0, 1)])];
    recipe.stages.push(norm::rows("residual", (x, made.of()), others, Vec::new(), task.site)?);
    Ok(Some(made))
}

/// Which dimensions of a tensor are reduced: the last one.
fn last(of: Of<'_>) -> Vec<bool> {
    let rank = of.spec.logical_shape().len();
    (1..=rank).map(|k| k == rank).collect()
}

/// The elements of `parts` as the first columns of tiles side by side.
fn columns(parts: &[Made], result: Of<'_>, recipe: &mut Recipe, site: &Site) -> Result<(), String> {
    let dims = result.spec.logical_shape();
    let Some((&width, outer)) = dims.split_last() else { return Err("no dimensions".into()) };
    if width != parts.len() * TILE {
        return Err(format!("statistics of {width} columns"));
    }
    let mut same = Vec::new();
    for made in parts {
        let of = made.of();
        if of.spec.dtype() == result.spec.dtype() {
            same.push(made.clone());
            continue;
        }
        let cast = recipe.tiles(of.spec.logical_shape(), result.spec.dtype())?;
        eltwise::cast_to(recipe, of, cast.of(), site)?;
        same.push(cast);
    }
    let places = same.iter().zip((0..).step_by(TILE)).map(|(made, at)| {
        let corners = [vec![0; outer.len()], outer.to_vec()];
        let [low, high] = [[&corners[0][..], &[at]].concat(), [&corners[1][..], &[at + 1]].concat()];
        Part::between(made.of(), 0, [&low, &high], &strides(made.of().spec.logical_shape()))
    });
    recipe.rearrange(places.collect(), 0, result, site)
}

pub(super) fn layer_norm_before(op: &LayerNormPreAllGatherOp, task: &Task<'_>) -> Planned {
    let mut recipe = Recipe::default();
    let residual = op.residual_input.is_some().then(|| task.operand(1)).transpose()?;
    let sum = with_residual(residual, &mut recipe, task)?;
    let x = sum.as_ref().map_or(task.operand(0)?, Made::of);
    let mut of = Statistics::of(x, last(x), recipe, task.site)?;
    let squares = of.fold("squares", &[], vec![one(Function::Square, 1, 0.0)], By::Sum, Vec::new())?;
    let sums = of.fold("sums", &[], Vec::new(), By::Sum, Vec::new())?;
    let mut recipe = of.recipe;
    columns(&[squares, sums], task.result()?, &mut recipe, task.site)?;
    Ok(recipe)
}

/// The mean of the squares of a device's part of each row, and what makes it.
fn mean_of_squares(residual: bool, task: &Task<'_>) -> Result<(Made, Recipe), String> {
    let mut recipe = Recipe::default();
    let residual = residual.then(|| task.operand(1)).transpose()?;
    let sum = with_residual(residual, &mut recipe, task)?;
    let x = sum.as_ref().map_or(task.operand(0)?, Made::of);
    let mut of = Statistics::of(x, last(x), recipe, task.site)?;
    let part = one(Function::Scale, 0, 1.0 / of.count() as f32);
    let mean = of.fold("mean-square", &[], vec![one(Function::Square, 1, 0.0)], By::Sum, vec![part])?;
    Ok((mean, of.recipe))
}

pub(super) fn rms_norm_before(op: &RMSNormPreAllGatherOp, task: &Task<'_>) -> Planned {
    let (mean, mut recipe) = mean_of_squares(op.residual.is_some(), task)?;
    columns(&[mean], task.result()?, &mut recipe, task.site)?;
    Ok(recipe)
}

/// The mean of the squares of a device's part of each row.
pub(crate) fn mean_squares(residual: bool, task: &Task<'_>) -> Planned {
    let (mean, mut recipe) = mean_of_squares(residual, task)?;
    recipe.same_elements(mean.of(), task.result()?, task.site)?;
    Ok(recipe)
}

/// A device's part of rows, divided by the root of the last operand, their mean squares over all
/// devices. The others are the part, the residual and the weight, as far as they are given.
pub(crate) fn by_mean_squares(epsilon: f32, [residual, weight]: [bool; 2], task: &Task<'_>) -> Planned {
    let mut recipe = Recipe::default();
    let added = residual.then(|| task.operand(1)).transpose()?;
    let sum = with_residual(added, &mut recipe, task)?;
    let x = sum.as_ref().map_or(task.operand(0)?, Made::of);
    let behind = 1 + usize::from(residual);
    let squares = task.operand(behind + usize::from(weight))?;
    let squares = recipe.in_tiles(squares, squares.spec.logical_shape(), task.site)?;
    let root = vec![one(Function::Rsqrt, 1, epsilon), two(Function::Multiply, 0, 1)];
    let mut others: norm::Others<'_> = vec![(squares.of(), root)];
    let width = x.spec.logical_shape().last().copied().unwrap_or(0);
    let line = weight.then(|| recipe.in_tiles(task.operand(behind)?, &[1, width], task.site)).transpose()?;
    others.extend(line.as_ref().map(|line| (line.of(), vec![two(Function::Multiply, 0, 1)])));
    recipe.stages.push(norm::rows("rms-norm", (x, task.result()?), others, Vec::new(), task.site)?);
    Ok(recipe)
}

/// The sum over devices of the statistic in column `at` of each one's tiles, for each row.
fn gathered(stats: Of<'_>, at: usize, rows: &[usize], recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
    let width = stats.spec.logical_shape().last().copied().unwrap_or(0);
    let devices = width / (2 * TILE);
    let each = [rows, &[devices]].concat();
    let mut steps = strides(&[rows, &[width]].concat());
    steps.pop();
    steps.push(2 * TILE as i64);
    let taken = recipe.tiles(&each, stats.spec.dtype())?;
    recipe.rearrange(vec![Part::whole(stats, at as i64, &each, &steps)], 0, taken.of(), site)?;
    let made = recipe.tiles(&[rows, &[1]].concat(), DType::F32)?;
    let reduced = last(taken.of());
    let reduce = Reduce {
        name: "gathered",
        operands: vec![taken.of()],
        before: Vec::new(),
        by: By::Sum,
        reduced,
        after: Vec::new(),
        result: made.of(),
    };
    reduce.add(recipe, site)?;
    Ok(made)
}

pub(super) fn layer_norm_after(op: &LayerNormPostAllGatherOp, task: &Task<'_>) -> Planned {
    let (x, stats, result, site) = (task.operand(0)?, task.operand(1)?, task.result()?, task.site);
    let Some((&length, rows)) = x.spec.logical_shape().split_last() else { return Err("no dimensions".into()) };
    let elements = stats.spec.logical_shape().iter().product::<usize>();
    let width = stats.spec.logical_shape().last().copied().unwrap_or(0);
    let is_whole = width != 0 && width.is_multiple_of(2 * TILE) && elements == rows.iter().product::<usize>() * width;
    if !is_whole || eltwise::is_integer(x.spec.dtype()) || eltwise::is_integer(stats.spec.dtype()) {
        return Err("statistics of other sides or types".into());
    }
    let part = 1.0 / (length * (width / (2 * TILE))) as f32;
    let mut recipe = Recipe::default();
    let squares = gathered(stats, 0, rows, &mut recipe, site)?;
    let sums = gathered(stats, TILE, rows, &mut recipe, site)?;
    let root = recipe.tiles(squares.of().spec.logical_shape(), DType::F32)?;
    let mean = one(Function::Scale, 1, part);
    let less = vec![
        one(Function::Scale, 0, part),
        mean,
        one(Function::Square, 1, 0.0),
        two(Function::Subtract, 0, 1),
        one(Function::Rsqrt, 0, op.epsilon),
    ];
    let others = vec![(sums.of(), less)];
    recipe.stages.push(norm::rows("deviation", (squares.of(), root.of()), others, Vec::new(), site)?);
    let mut others =
        vec![(sums.of(), vec![mean, two(Function::Subtract, 0, 1)]), (root.of(), vec![two(Function::Multiply, 0, 1)])];
    others.extend(norm::affine(op.weight.is_some(), op.bias.is_some(), 2, task)?);
    recipe.stages.push(norm::rows("layer-norm", (x, result), others, Vec::new(), site)?);
    Ok(recipe)
}

/// `x` and what is added to it, normalised, then a function.
pub(super) fn fused_rms_norm(op: &DitRMSNormUnaryFusedOp, task: &Task<'_>) -> Planned {
    let mut recipe = Recipe::default();
    let (weight, bias) = (op.weight.is_some(), op.bias.is_some());
    let behind = 1 + usize::from(weight) + usize::from(bias);
    let residual = op.residual_input.is_some().then(|| task.operand(behind)).transpose()?;
    let activation = op.activation.as_deref().filter(|name| !name.is_empty()).map(eltwise::named).transpose()?;
    let sum = with_residual(residual, &mut recipe, task)?;
    let x = sum.as_ref().map_or(task.operand(0)?, Made::of);
    let mut of = Statistics::of(x, last(x), recipe, task.site)?;
    let after = vec![one(Function::Scale, 0, 1.0 / of.count() as f32), one(Function::Rsqrt, 0, op.epsilon)];
    let root = of.fold("mean-square", &[], vec![one(Function::Square, 1, 0.0)], By::Sum, after)?;
    let mut others: norm::Others<'_> = vec![(root.of(), vec![two(Function::Multiply, 0, 1)])];
    others.extend(norm::affine(weight, bias, 1, task)?);
    let lines: Vec<stage::Line> = activation.into_iter().collect();
    let mut recipe = of.recipe;
    recipe.stages.push(norm::rows("rms-norm", (x, task.result()?), others, lines, task.site)?);
    Ok(recipe)
}
