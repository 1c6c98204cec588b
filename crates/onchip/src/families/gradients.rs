//! Attention for training: the result with the logarithms of its rows' sums, and the gradients.
//!
//! Scores, weights and their gradients are tensors in DRAM, in float32; products are those of
//! matrices, as in attention that is not one program.

use tilework_abi::eltwise::Function;
use tilework_model::ttnn::ops::training::{SDPABackwardOp, SDPAForwardOp};
use tilework_ops::DType;

use super::attention::{Attention, Seen, four, keyed, product_cleared};
use super::eltwise;
use super::matmul::transposed;
use super::norm::{self, Statistics, one, two};
use super::rearrange::Part;
use super::reduction::By;
use crate::recipe::{Made, Of, Planned, Recipe, Site, Task, Which};

/// The columns of a row's statistics: one tile, of which each column holds the same.
const COLUMNS: usize = 32;

/// An attention of operands from `first` on, and the mask behind `masked` of them.
fn of<'t>(first: usize, (kind, masked): (u32, usize), dropout: f32, task: &Task<'t>) -> Result<Attention<'t>, String> {
    if dropout != 0.0 {
        return Err("dropout in attention".into());
    }
    let operands = [task.operand(first)?, task.operand(first + 1)?, task.operand(first + 2)?];
    let (dims, depth) = keyed(operands[1], operands[2])?;
    let mut of = Attention::of(operands, false, dims, depth, None)?;
    match kind {
        0 => {}
        1 => of.seen = Seen::Before { window: None },
        2 => of.mask = Some((task.operand(masked)?, 1.0)),
        other => return Err(format!("masks of kind {other}")),
    }
    let types = operands.map(|of| of.spec.dtype());
    if !matches!(types[0], DType::BF16 | DType::F32) || types.iter().any(|dtype| *dtype != types[0]) {
        return Err("operands of other or different types".into());
    }
    let lengths = [of.batch, of.heads, of.queries, of.keys, of.depth, of.value_depth];
    if lengths.contains(&0) {
        return Err("a tensor without elements".into());
    }
    Ok(of)
}

/// A tensor of numbers in another type.
fn cast(of: Made, dtype: DType, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
    if of.of().spec.dtype() == dtype {
        return Ok(of);
    }
    let made = recipe.tiles(of.of().spec.logical_shape(), dtype)?;
    eltwise::cast_to(recipe, of.of(), made.of(), site)?;
    Ok(made)
}

/// The exponentials of scores less a number for each row: the weights of the values.
fn weights(scores: Of<'_>, sums: Of<'_>, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
    let made = recipe.tiles(scores.spec.logical_shape(), DType::F32)?;
    let others = vec![(sums, vec![two(Function::Subtract, 0, 1), one(Function::Exp, 0, 0.0)])];
    recipe.stages.push(norm::rows("attention-weights", (scores, made.of()), others, Vec::new(), site)?);
    Ok(made)
}

pub(super) fn forward(op: &SDPAForwardOp, task: &Task<'_>) -> Planned {
    let (of, site) = (of(0, (op.mask_type, 3), op.dropout_probability, task)?, task.site);
    let groups = of.batch * of.key_heads;
    let (out, rows) = (task.results.first().ok_or("no result")?, of.shared() * of.queries);
    let result = Of { which: Which::Result(0), spec: out };
    if four(result)? != [of.batch, of.heads, of.queries, of.value_depth] {
        return Err("a result of other sides".into());
    }
    let mut recipe = Recipe::default();
    let query = of.of_rows(of.query, of.depth, &mut recipe, site)?;
    let scores = of.scores(query.of(), &mut recipe, site)?;
    let mut statistics = Statistics::of(scores.of(), vec![false, false, false, true], recipe, site)?;
    let largest = statistics.fold("attention-max", &[], Vec::new(), By::Max, Vec::new())?;
    let before = vec![two(Function::Subtract, 1, 2), one(Function::Exp, 1, 0.0)];
    let sum = statistics.fold("attention-sum", &[&largest], before, By::Sum, vec![one(Function::Log, 0, 0.0)])?;
    let mut recipe = statistics.recipe;
    let sums = recipe.tiles(sum.of().spec.logical_shape(), DType::F32)?;
    let others = vec![(largest.of(), vec![two(Function::Add, 0, 1)])];
    recipe.stages.push(norm::rows("attention-sums", (sum.of(), sums.of()), others, Vec::new(), site)?);
    let dtype = of.query.spec.dtype();
    let weights = weights(scores.of(), sums.of(), &mut recipe, site)?;
    let weights = cast(weights, dtype, &mut recipe, site)?;
    let value = recipe.tiles(&[of.batch, of.key_heads, of.keys, of.value_depth], dtype)?;
    recipe.same_elements(of.value, value.of(), site)?;
    let made = recipe.tiles(&[of.batch, of.key_heads, rows, of.value_depth], out.dtype())?;
    product_cleared(&mut recipe, groups, [weights.of(), value.of(), made.of()], site)?;
    recipe.same_elements(made.of(), result, site)?;
    let Some(spec) = task.results.get(1) else { return Ok(recipe) };
    let dims = [of.batch, of.heads, of.queries, COLUMNS];
    if spec.logical_shape() != dims {
        return Err("statistics of other sides".into());
    }
    let sums = cast(sums, spec.dtype(), &mut recipe, site)?;
    let steps = [(of.heads * of.queries) as i64, of.queries as i64, 1, 0];
    let part = Part::whole(sums.of(), 0, &dims, &steps);
    recipe.rearrange(vec![part], 0, Of { which: Which::Result(1), spec }, site)?;
    Ok(recipe)
}

/// With weights `p` of the values, gradients `g` of the result `o` and the mean `d` of `g o` in
/// each row, the gradients of scores are `p (g v' - d)`; of queries these times the keys, of keys
/// the same transposed times the queries, of values `p` transposed times `g`.
pub(super) fn backward(op: &SDPABackwardOp, task: &Task<'_>) -> Planned {
    let (of, site) = (of(3, (op.mask_type, 6), op.dropout_probability, task)?, task.site);
    let ([gradient, result], sums) = ([task.operand(0)?, task.operand(1)?], task.operand(2)?);
    let (groups, rows) = (of.batch * of.key_heads, of.shared() * of.queries);
    let (outer, dtype) = ([of.batch, of.key_heads], of.query.spec.dtype());
    let wanted = [of.batch, of.heads, of.queries, of.value_depth];
    if four(gradient)? != wanted || four(result)? != wanted {
        return Err("gradients of other sides than the result".into());
    }
    let [grad_query, grad_key, grad_value] = task.results else { return Err("other than three results".into()) };
    let width = sums.spec.logical_shape().last().copied().unwrap_or(0);
    let count = sums.spec.logical_shape().iter().product::<usize>();
    if width == 0 || count != of.batch * of.heads * of.queries * width {
        return Err("statistics of other sides".into());
    }
    let mut recipe = Recipe::default();
    let query = of.of_rows(of.query, of.depth, &mut recipe, site)?;
    let scores = of.scores(query.of(), &mut recipe, site)?;
    // The first of each row's statistics, which are all the same.
    let of_rows = recipe.tiles(&[outer[0], outer[1], rows, 1], sums.spec.dtype())?;
    let steps = [(of.key_heads * rows * width) as i64, (rows * width) as i64, width as i64, 0];
    let part = Part::whole(sums, 0, of_rows.of().spec.logical_shape(), &steps);
    recipe.rearrange(vec![part], 0, of_rows.of(), site)?;
    let weights = weights(scores.of(), of_rows.of(), &mut recipe, site)?;

    let gradient = of.of_rows(gradient, of.value_depth, &mut recipe, site)?;
    let result = of.of_rows(result, of.value_depth, &mut recipe, site)?;
    let mut statistics = Statistics::of(gradient.of(), vec![false, false, false, true], recipe, site)?;
    let mean = statistics.fold("attention-mean", &[&result], vec![two(Function::Multiply, 1, 2)], By::Sum, vec![])?;
    let mut recipe = statistics.recipe;
    let gradient = cast(gradient, dtype, &mut recipe, site)?;
    let values = transposed(of.value, &mut recipe, site)?;
    let made = recipe.tiles(&[outer[0], outer[1], rows, of.keys], DType::F32)?;
    product_cleared(&mut recipe, groups, [gradient.of(), values.of(), made.of()], site)?;
    let of_scores = recipe.tiles(made.of().spec.logical_shape(), dtype)?;
    let others = vec![
        (mean.of(), vec![two(Function::Subtract, 0, 1)]),
        (weights.of(), vec![two(Function::Multiply, 0, 1), one(Function::Scale, 0, of.scale)]),
    ];
    recipe.stages.push(norm::rows("attention-gradient", (made.of(), of_scores.of()), others, Vec::new(), site)?);

    let weights = cast(weights, dtype, &mut recipe, site)?;
    let [turned_scores, turned_weights] =
        [transposed(of_scores.of(), &mut recipe, site)?, transposed(weights.of(), &mut recipe, site)?];
    let key = recipe.tiles(&[outer[0], outer[1], of.keys, of.depth], dtype)?;
    recipe.same_elements(of.key, key.of(), site)?;
    let products = [
        (&of_scores, &key, [rows, of.depth], grad_query),
        (&turned_scores, &query, [of.keys, of.depth], grad_key),
        (&turned_weights, &gradient, [of.keys, of.value_depth], grad_value),
    ];
    for (i, (a, b, [height, width], spec)) in products.into_iter().enumerate() {
        let made = recipe.tiles(&[outer[0], outer[1], height, width], spec.dtype())?;
        product_cleared(&mut recipe, groups, [a.of(), b.of(), made.of()], site)?;
        recipe.same_elements(made.of(), Of { which: Which::Result(i), spec }, site)?;
    }
    Ok(recipe)
}
