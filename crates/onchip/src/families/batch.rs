//! Normalisation of channels over a batch, and of groups of channels.

use tilework_abi::eltwise::Function;
use tilework_model::ttnn::ops::normalization::{BatchNormInferenceOp, BatchNormTrainingOp, GroupNormOp};

use super::norm::{self, Others, Statistics, one, two};
use super::rearrange::{Part, strides};
use super::reduction::By;
use crate::recipe::{Made, Of, Planned, Recipe, Site, Task, Which};

/// A vector in tiles with one element for each place of the dimensions `dims`.
fn vector(of: Of<'_>, dims: &[usize], recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
    if of.spec.logical_shape().iter().product::<usize>() != dims.iter().product() {
        return Err("other than an element for each channel".into());
    }
    let made = recipe.tiles(dims, of.spec.dtype())?;
    recipe.same_elements(of, made.of(), site)?;
    Ok(made)
}

/// Ones but for the second dimension, which has the channels.
fn channels(dims: &[usize]) -> Result<Vec<usize>, String> {
    let count = *dims.get(1).ok_or("a batch without channels")?;
    Ok((0..dims.len()).map(|k| if k == 1 { count } else { 1 }).collect())
}

/// Weight and bias as the last steps of a normalisation.
fn affine<'m>(weight: &'m Option<Made>, bias: &'m Option<Made>) -> Others<'m> {
    let of = |made: &'m Option<Made>, function| made.as_ref().map(|made| (made.of(), vec![two(function, 0, 1)]));
    of(weight, Function::Multiply).into_iter().chain(of(bias, Function::Add)).collect()
}

/// Weight and bias, operands from number `first` on, as vectors.
fn given(
    [weight, bias]: [bool; 2],
    first: usize,
    dims: &[usize],
    recipe: &mut Recipe,
    task: &Task<'_>,
) -> Result<[Option<Made>; 2], String> {
    let mut of = |given: bool, i: usize| given.then(|| vector(task.operand(i)?, dims, recipe, task.site)).transpose();
    Ok([of(weight, first)?, of(bias, first + usize::from(weight))?])
}

pub(super) fn inference(op: &BatchNormInferenceOp, task: &Task<'_>) -> Planned {
    let (x, result) = (task.operand(0)?, task.result()?);
    let dims = channels(x.spec.logical_shape())?;
    let mut recipe = Recipe::default();
    let mean = vector(task.operand(1)?, &dims, &mut recipe, task.site)?;
    let variance = vector(task.operand(2)?, &dims, &mut recipe, task.site)?;
    let [weight, bias] = given([op.weight.is_some(), op.bias.is_some()], 3, &dims, &mut recipe, task)?;
    let mut others = vec![
        (mean.of(), vec![two(Function::Subtract, 0, 1)]),
        (variance.of(), vec![one(Function::Rsqrt, 1, op.epsilon), two(Function::Multiply, 0, 1)]),
    ];
    others.extend(affine(&weight, &bias));
    recipe.stages.push(norm::rows("batch-norm", (x, result), others, Vec::new(), task.site)?);
    Ok(recipe)
}

/// The results are the running mean and variance, then the batch.
pub(super) fn training(op: &BatchNormTrainingOp, task: &Task<'_>) -> Planned {
    let x = task.operand(0)?;
    let [mean_spec, variance_spec, result] = task.results else { return Err("other than three results".into()) };
    let dims = channels(x.spec.logical_shape())?;
    let mut recipe = Recipe::default();
    let [weight, bias] = given([op.weight.is_some(), op.bias.is_some()], 3, &dims, &mut recipe, task)?;
    let reduced = (0..dims.len()).map(|k| k != 1).collect();
    let mut of = Statistics::of(x, reduced, recipe, task.site)?;
    let part = one(Function::Scale, 0, 1.0 / of.count() as f32);
    let mean = of.fold("mean", &[], Vec::new(), By::Sum, vec![part])?;
    let before = vec![two(Function::Subtract, 1, 2), one(Function::Square, 1, 0.0)];
    let variance = of.fold("variance", &[&mean], before, By::Sum, vec![part])?;
    for (i, (batch, spec)) in [(&mean, mean_spec), (&variance, variance_spec)].into_iter().enumerate() {
        let recipe = &mut of.recipe;
        let running = vector(task.operand(i + 1)?, &dims, recipe, task.site)?;
        let moved = recipe.tiles(&dims, spec.dtype())?;
        let by = vec![
            one(Function::Scale, 0, op.momentum),
            one(Function::Scale, 1, 1.0 - op.momentum),
            two(Function::Add, 0, 1),
        ];
        let others = vec![(running.of(), by)];
        recipe.stages.push(norm::rows("running", (batch.of(), moved.of()), others, Vec::new(), task.site)?);
        recipe.same_elements(moved.of(), Of { which: Which::Result(i), spec }, task.site)?;
    }
    let mut others = vec![
        (mean.of(), vec![two(Function::Subtract, 0, 1)]),
        (variance.of(), vec![one(Function::Rsqrt, 1, op.epsilon), two(Function::Multiply, 0, 1)]),
    ];
    others.extend(affine(&weight, &bias));
    of.pass("batch-norm", others, Of { which: Which::Result(2), spec: result })
}

/// Channels come last: a group is a matrix of positions and its channels.
pub(super) fn group_norm(op: &GroupNormOp, task: &Task<'_>) -> Planned {
    let (x, result) = (task.operand(0)?, task.result()?);
    let dims = x.spec.logical_shape();
    let [images, middle @ .., channels] = dims else { return Err("images without channels".into()) };
    let (images, channels, positions) = (*images, *channels, middle.iter().product::<usize>());
    let groups = usize::try_from(op.num_groups).ok().filter(|&n| n > 0 && channels.is_multiple_of(n));
    let groups = groups.ok_or("groups that do not divide the channels")?;
    let width = channels / groups;
    let turned = [images, groups, positions, width];
    let mut recipe = Recipe::default();
    let grouped = recipe.tiles(&turned, x.spec.dtype())?;
    let steps = [positions * channels, width, channels, 1].map(|n| n as i64);
    recipe.rearrange(vec![Part::whole(x, 0, &turned, &steps)], 0, grouped.of(), task.site)?;
    let first = 1 + usize::from(op.input_mask.is_some());
    let of_group = [1, groups, 1, width];
    let [weight, bias] = given([op.weight.is_some(), op.bias.is_some()], first, &of_group, &mut recipe, task)?;
    let made = recipe.tiles(&turned, result.spec.dtype())?;
    let mut of = Statistics::of(grouped.of(), vec![false, false, true, true], recipe, task.site)?;
    let (mean, root) = of.deviations(op.epsilon)?;
    let mut others =
        vec![(mean.of(), vec![two(Function::Subtract, 0, 1)]), (root.of(), vec![two(Function::Multiply, 0, 1)])];
    others.extend(affine(&weight, &bias));
    let mut recipe = of.pass("group-norm", others, made.of())?;
    // Back to channels last, in four dimensions.
    let back = [images, positions, groups, width];
    let of_turned = strides(&turned);
    let steps = [of_turned[0], of_turned[2], of_turned[1], of_turned[3]];
    let rows = recipe.rows(&back, result.spec.dtype())?;
    recipe.rearrange(vec![Part::whole(made.of(), 0, &back, &steps)], 0, rows.of(), task.site)?;
    recipe.same_elements(rows.of(), result, task.site)?;
    Ok(recipe)
}
