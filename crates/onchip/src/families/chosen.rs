//! What chooses: the router of experts, a device's own ones of them, and the scores by which sparse
//! attention selects keys.

use tilework_abi::eltwise::{Function, Step};
use tilework_abi::lines::{flag, what};
use tilework_model::ttnn::ops::attention::IndexerScoreDsaOp;
use tilework_model::ttnn::ops::moe::MoeExpertTokenRemapOp;
use tilework_model::ttnn::ops::reduction::TopKRouterGptOp;
use tilework_ops::DType;

use super::attention::{four, line, product_cleared};
use super::eltwise::{self, is_integer};
use super::lines::Job;
use super::matmul::{multiply, transposed};
use super::norm::{self, Statistics, one, two};
use super::places::{integers, number};
use super::rearrange::{Index, Part, strides};
use super::reduction::{By, Reduce};
use super::stage::Line;
use crate::recipe::{Made, Of, Planned, Recipe, Site, Task, Which};

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

/// The scores of the device's own experts, zeros for tokens that did not choose them, and whether
/// any token of a run did.
pub(super) fn remap(op: &MoeExpertTokenRemapOp, task: &Task<'_>) -> Planned {
    let ([scores, mapping, metadata], site) = ([task.operand(0)?, task.operand(1)?, task.operand(2)?], task.site);
    let [own, any] = task.results else { return Err("other than two results".into()) };
    let [1, batch, length, experts] = *scores.spec.logical_shape() else { return Err("scores of other sides".into()) };
    let [1, 1, mapped, devices] = *mapping.spec.logical_shape() else { return Err("owners of other sides".into()) };
    let (tokens, chunk) = (batch * length, op.reduction_size as usize);
    let chosen = metadata.spec.logical_shape().last().copied().unwrap_or(0);
    let count = own.logical_shape().last().copied().unwrap_or(0);
    let choices: usize = metadata.spec.logical_shape().iter().product();
    if mapped != experts || choices != tokens * chosen || site.device >= devices || chunk == 0 || count == 0 {
        return Err("experts, owners and choices of other sides".into());
    }
    let runs = tokens.div_ceil(chunk);
    if own.logical_shape() != [1, batch, length, count] || any.logical_shape() != [1, 1, runs, count] {
        return Err("results of other sides".into());
    }
    if is_integer(scores.spec.dtype()) || own.dtype() != scores.spec.dtype() || !is_integer(metadata.spec.dtype()) {
        return Err(format!("scores of type {}", scores.spec.dtype().name()));
    }
    let mut recipe = Recipe::default();
    let numbers = recipe.own_experts(mapping, [experts, devices, count], site)?;
    let chose = recipe.choices(metadata, [tokens, chosen, experts], site)?;
    let columns = |recipe: &mut Recipe, from: Of<'_>| {
        let made = recipe.rows(&[tokens, count], from.spec.dtype())?;
        let part = Part::whole(from, 0, &[tokens, count], &[experts as i64, 0]).by(1);
        let index = Index { from: numbers.of(), base: 0, strides: vec![0, 1], bound: experts };
        recipe.rearrange_by(vec![part], &index, made.of(), site)?;
        Ok::<_, String>(made)
    };
    let (flags, values) = (columns(&mut recipe, chose.of())?, columns(&mut recipe, scores)?);
    let dims = own.logical_shape();
    let (is, of) = (recipe.in_tiles(flags.of(), dims, site)?, recipe.in_tiles(values.of(), dims, site)?);
    let lines = vec![
        Line::plain(Step::new(Function::Copy).of(0, 0, 0).to(2)),
        one(Function::Fill, 3, 0.0),
        Line::plain(Step::new(Function::Where).of(1, 2, 3).to(0)),
    ];
    let to = Of { which: Which::Result(0), spec: own };
    recipe.stages.push(norm::rows("own-scores", (of.of(), to), vec![(is.of(), lines)], Vec::new(), site)?);
    recipe.any_of_runs(flags.of(), [runs, chunk], Of { which: Which::Result(1), spec: any }, site)?;
    Ok(recipe)
}

impl Recipe {
    /// The numbers of the device's experts in order; numbers of no expert if they are not `count`.
    fn own_experts(
        &mut self,
        mapping: Of<'_>,
        [experts, devices, count]: [usize; 3],
        site: &Site,
    ) -> Result<Made, String> {
        let column = self.tiles(&[1, experts], mapping.spec.dtype())?;
        let place = (mapping, site.device as i64);
        self.strided(place, (&[1, experts], &[0, devices as i64]), column.of(), site)?;
        let wide = self.tiles(&[1, experts], DType::F32)?;
        eltwise::cast_to(self, column.of(), wide.of(), site)?;
        let is_own = self.tiles(&[1, experts], DType::I32)?;
        let lines = [Some(one(Function::IsNotZero, 0, 0.0)), eltwise::cast(0, DType::F32, DType::I32)?];
        let lines = lines.into_iter().flatten().collect();
        self.stages.push(norm::rows("own-experts", (wide.of(), is_own.of()), Vec::new(), lines, site)?);
        let line = self.rows(&[1, experts], DType::I32)?;
        self.same_elements(is_own.of(), line.of(), site)?;
        // Of equal elements the first ones are chosen.
        let first = self.rows(&[1, count], DType::I32)?;
        let (lines, numbers) = (Some(line.of()), Some(first.of()));
        let job = Job { by: 1, flags: flag::NUMBERS, lines, numbers, ..Job::new(what::FIRST, experts, count) };
        self.job(job, site)?;
        let total = self.tiles(&[1, 1], DType::I32)?;
        let operands = vec![is_own.of()];
        let (name, reduced, result) = ("own-experts", vec![false, true], total.of());
        let (before, after) = (Vec::new(), Vec::new());
        Reduce { name, operands, before, by: By::Sum, reduced, after, result }.add(self, site)?;
        let tiled = self.in_tiles(first.of(), &[1, count], site)?;
        let beyond = vec![
            number(2, count),
            integers(Function::IntegerSubtract, 1, 2),
            number(2, experts),
            integers(Function::IntegerMultiply, 1, 2),
            integers(Function::IntegerAdd, 0, 1),
        ];
        self.of_integers(tiled.of(), Some(total.of()), beyond, site)
    }

    /// Ones for the experts that each token chose, zeros for the others.
    fn choices(
        &mut self,
        metadata: Of<'_>,
        [tokens, chosen, experts]: [usize; 3],
        site: &Site,
    ) -> Result<Made, String> {
        let places = self.rows(&[tokens, chosen], metadata.spec.dtype())?;
        self.same_elements(metadata, places.of(), site)?;
        let zeros = self.rows(&[tokens, experts], DType::F32)?;
        self.rearrange(Vec::new(), 0, zeros.of(), site)?;
        let ones = self.rows(&[tokens, chosen], DType::F32)?;
        self.rearrange(Vec::new(), 1f32.to_bits(), ones.of(), site)?;
        let made = self.rows(&[tokens, experts], DType::F32)?;
        let job = Job {
            lines: Some(zeros.of()),
            places: Some(places.of()),
            updates: Some(ones.of()),
            values: Some(made.of()),
            ..Job::new(what::WRITE, experts, chosen)
        };
        self.job(job, site)?;
        Ok(made)
    }

    /// Whether a flag of each column is set in runs of rows.
    fn any_of_runs(&mut self, flags: Of<'_>, [runs, chunk]: [usize; 2], to: Of<'_>, site: &Site) -> Result<(), String> {
        let [tokens, count] = *flags.spec.logical_shape() else { return Err("flags of other sides".into()) };
        let whole = self.rows(&[runs * chunk, count], DType::F32)?;
        let part = Part::between(flags, 0, [&[0, 0], &[tokens, count]], &strides(&[tokens, count]));
        self.rearrange(vec![part], 0, whole.of(), site)?;
        let tiled = self.in_tiles(whole.of(), &[runs, chunk, count], site)?;
        let any = self.tiles(&[runs, 1, count], DType::F32)?;
        let (name, operands, reduced, result) = ("any-of-runs", vec![tiled.of()], vec![false, true, false], any.of());
        let (before, after) = (Vec::new(), Vec::new());
        Reduce { name, operands, before, by: By::Max, reduced, after, result }.add(self, site)?;
        let tiled = self.in_tiles(any.of(), to.spec.logical_shape(), site)?;
        eltwise::cast_to(self, tiled.of(), to, site)
    }
}
