//! What chooses: the router of experts, and the scores by which sparse attention selects keys.

use tilework_abi::eltwise::Function;
use tilework_abi::lines::{flag, what};
use tilework_model::ttnn::ops::attention::IndexerScoreDsaOp;
use tilework_model::ttnn::ops::reduction::TopKRouterGptOp;
use tilework_ops::DType;

use super::attention::{four, line, product_cleared};
use super::eltwise::is_integer;
use super::lines::Job;
use super::matmul::{multiply, transposed};
use super::norm::{self, Statistics, one, two};
use super::rearrange::Part;
use super::reduction::{By, Reduce};
use crate::recipe::{Of, Planned, Recipe, Task, Which};

/// The largest of the products with the bias, which are rounded to the operand's type before, their
/// numbers, and the softmax of them.
pub(super) fn router(op: &TopKRouterGptOp, task: &Task<'_>) -> Planned {
    let ([x, weight, bias], site) = ([task.operand(0)?, task.operand(1)?, task.operand(2)?], task.site);
    let [numbers, weights] = task.results else { return Err("other than two results".into()) };
    let (dtype, experts) = (x.spec.dtype(), op.num_experts as usize);
    let Some((_, outer)) = x.spec.logical_shape().split_last() else { return Err("no dimensions".into()) };
    let with_last = |last: usize| [outer, &[last]].concat();
    let (dims, chosen) = (with_last(experts), with_last(op.k as usize));
    if op.k < 1 || op.k > op.num_experts || numbers.logical_shape() != chosen || weights.logical_shape() != chosen {
        return Err("results of other sides".into());
    }
    if weight.spec.logical_shape().last() != Some(&experts) || bias.spec.logical_shape().last() != Some(&experts) {
        return Err("weights of other sides".into());
    }
    if is_integer(dtype) || dtype.is_block() || !is_integer(numbers.dtype()) {
        return Err(format!("elements of type {}", dtype.name()));
    }
    let mut recipe = Recipe::default();
    let products = recipe.tiles(&dims, DType::F32)?;
    multiply(&mut recipe, [x, weight], products.of(), None, site)?;
    let logits = recipe.tiles(&dims, dtype)?;
    let others = vec![(bias, vec![two(Function::Add, 0, 1)])];
    recipe.stages.push(norm::rows("router-bias", (products.of(), logits.of()), others, Vec::new(), site)?);
    let lines = recipe.rows(&dims, dtype)?;
    recipe.same_elements(logits.of(), lines.of(), site)?;
    let (best, which) = (recipe.rows(&chosen, dtype)?, recipe.rows(&chosen, numbers.dtype())?);
    let job = Job {
        by: 1,
        flags: flag::VALUES | flag::NUMBERS,
        lines: Some(lines.of()),
        values: Some(best.of()),
        numbers: Some(which.of()),
        ..Job::new(what::FIRST, experts, op.k as usize)
    };
    recipe.job(job, site)?;
    recipe.same_elements(which.of(), Of { which: Which::Result(0), spec: numbers }, site)?;
    let best = recipe.in_tiles(best.of(), &chosen, site)?;
    let reduced = (1..=chosen.len()).map(|k| k == chosen.len()).collect();
    let statistics = Statistics::of(best.of(), reduced, recipe, site)?;
    norm::softmax_of(statistics, Of { which: Which::Result(1), spec: weights })
}

/// The sums over heads of `relu(query key') weight`; minus infinity for keys behind the query.
pub(super) fn indexer(op: &IndexerScoreDsaOp, task: &Task<'_>) -> Planned {
    let ([query, key, weights], result) = ([task.operand(0)?, task.operand(1)?, task.operand(2)?], task.result()?);
    let ([batch, heads, queries, size], [kb, one_head, keys, ks], site) = (four(query)?, four(key)?, task.site);
    let sides = [kb, one_head, ks] == [batch, 1, size] && four(weights)? == [batch, heads, queries, 1];
    if !sides || four(result)? != [batch, 1, queries, keys] || result.spec.pages() == 0 || heads == 0 || size == 0 {
        return Err("operands of other sides".into());
    }
    for of in [query, key, weights, result] {
        if !matches!(of.spec.dtype(), DType::BF16 | DType::F32) {
            return Err(format!("elements of type {}", of.spec.dtype().name()));
        }
    }
    let mut recipe = Recipe::default();
    let rows = recipe.tiles(&[batch, 1, heads * queries, size], query.spec.dtype())?;
    recipe.same_elements(query, rows.of(), site)?;
    let turned = transposed(key, &mut recipe, site)?;
    let products = recipe.tiles(&[batch, 1, heads * queries, keys], DType::F32)?;
    product_cleared(&mut recipe, batch, [rows.of(), turned.of(), products.of()], site)?;
    let of_heads = recipe.tiles(&[batch, heads, queries, keys], DType::F32)?;
    recipe.same_elements(products.of(), of_heads.of(), site)?;
    let sums = recipe.tiles(&[batch, 1, queries, keys], DType::F32)?;
    let reduce = Reduce {
        name: "indexer-sum",
        operands: vec![of_heads.of(), weights],
        before: vec![one(Function::Relu, 1, 0.0), two(Function::Multiply, 1, 2)],
        by: By::Sum,
        reduced: vec![false, true, false, false],
        after: Vec::new(),
        result: sums.of(),
    };
    reduce.add(&mut recipe, site)?;
    // Query `i` sees key `j` if `j - i` is at most the first position: copies of a line that has
    // zeros up to there.
    let length = queries + keys - 1;
    let seen = queries.saturating_add(op.chunk_start_idx as usize).min(length);
    let line = line(length, ([0, seen], f32::NEG_INFINITY), &mut recipe, site)?;
    let dims = [1, 1, queries, keys];
    let mask = recipe.tiles(&dims, DType::F32)?;
    let part = Part::whole(line.of(), queries as i64 - 1, &dims, &[0, 0, -1, 1]);
    recipe.rearrange(vec![part], 0, mask.of(), site)?;
    let others = vec![(mask.of(), vec![two(Function::Add, 0, 1)])];
    recipe.stages.push(norm::rows("indexer-mask", (sums.of(), result), others, Vec::new(), site)?);
    Ok(recipe)
}
