//! Training steps: the AdamW optimiser, and attention with its gradient (tt-mlir `ttml.fbs`; the
//! definitions are those of `ttml`'s fused kernels).

use rayon::prelude::*;

use crate::attention::{Sizes, attention, sizes};
use crate::error::{OpError, Reason, Within};
use crate::gemm::{self, Matrix};
use crate::produce::{self, as_f32};
use crate::tensor::Tensor;
use crate::view::{Lane, View};
use crate::{Attention, DType, Shape, math, typecast};

/// Numbers of a step of AdamW (Loshchilov and Hutter, "Decoupled weight decay regularization").
#[derive(Debug, Clone, Copy)]
pub struct AdamW {
    /// Learning rate.
    pub rate: f32,
    /// Decay of the two moments.
    pub beta: [f32; 2],
    /// The same to the power of the number of steps.
    pub beta_power: [f32; 2],
    /// Added to the root of the second moment.
    pub epsilon: f32,
    /// Decay of the parameters.
    pub weight_decay: f32,
}

/// What a step of AdamW changes.
#[derive(Debug, Clone, Copy)]
pub struct AdamWState<'a> {
    /// The parameters.
    pub parameters: &'a Tensor,
    /// The mean of gradients.
    pub first: &'a Tensor,
    /// The mean of their squares.
    pub second: &'a Tensor,
    /// The largest second moment so far, in the AMSGrad variant.
    pub largest: Option<&'a Tensor>,
}

/// The state after a step, in the order of [`AdamWState`] and each in its own element type.
pub fn adamw(state: AdamWState<'_>, gradient: &Tensor, by: AdamW) -> Result<Vec<Tensor>, OpError> {
    const OP: &str = "adamw";
    let AdamWState { parameters, first, second, largest } = state;
    let operands: Vec<&Tensor> = [parameters, gradient, first, second].into_iter().chain(largest).collect();
    if let Some(odd) = operands.iter().find(|t| t.shape() != parameters.shape()) {
        return Err(Reason::shape(odd.shape(), parameters.shape().to_string()).of(OP, &operands));
    }
    let view = View::contiguous(parameters.shape());
    let elements = |dtype: DType, f: &(dyn Fn([f32; 5]) -> f32 + Sync)| {
        produce::floats(parameters.shape().clone(), dtype, 1, |start, out| {
            let mut lines = [const { Vec::new() }; 5];
            for (line, operand) in lines.iter_mut().zip(&operands) {
                line.resize(out.len(), 0.0);
                f32::load(operand, &view, start, line);
            }
            for (i, v) in out.iter_mut().enumerate() {
                *v = f([0, 1, 2, 3, 4].map(|k: usize| lines[k].get(i).copied().unwrap_or(0.0)));
            }
        })
    };
    let mean = move |m: f32, g: f32| by.beta[0] * m + (1.0 - by.beta[0]) * g;
    let square = move |v: f32, g: f32| by.beta[1] * v + (1.0 - by.beta[1]) * g * g;
    let amsgrad = largest.is_some();
    let bound = move |v: f32, most: f32| if amsgrad { math::maximum(v, most) } else { v };
    let step = move |[w, g, m, v, most]: [f32; 5]| {
        let (m, v) = (mean(m, g), bound(square(v, g), most));
        let denominator = (v / (1.0 - by.beta_power[1])).sqrt() + by.epsilon;
        w - by.rate * (m / (1.0 - by.beta_power[0])) / denominator - by.rate * by.weight_decay * w
    };
    let mut results = vec![
        elements(parameters.dtype(), &step),
        elements(first.dtype(), &|[_, g, m, ..]| mean(m, g)),
        elements(second.dtype(), &|[_, g, _, v, _]| square(v, g)),
    ];
    if let Some(largest) = largest {
        results.push(elements(largest.dtype(), &|[_, g, _, v, most]| bound(square(v, g), most)));
    }
    Ok(results)
}

/// Which scores of an attention count.
#[derive(Debug, Clone, Copy)]
pub enum Mask<'a> {
    /// All.
    None,
    /// Those of keys up to the query's own position.
    Causal,
    /// All, with this added; it broadcasts to `[batch, heads, queries, keys]`.
    Added(&'a Tensor),
}

/// The columns of a row's statistics: one tile, of which each column holds the same.
const COLUMNS: usize = 32;

/// Attention as `attention` computes it, scaled by the root of the head size, and for each query
/// the logarithm of the sum of its exponentials, `[batch, heads, queries, 32]`.
pub fn sdpa_forward(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    mask: Mask<'_>,
    out: [DType; 2],
) -> Result<[Tensor; 2], OpError> {
    let by = match mask {
        Mask::None => Attention::default(),
        Mask::Causal => Attention { causal: true, ..Attention::default() },
        Mask::Added(mask) => Attention { mask: Some(mask), ..Attention::default() },
    };
    let result = attention(query, key, value, by, out[0])?;
    let heads = Heads::of("sdpa_fw", [query, key, value], mask)?;
    let (q, k) = (as_f32(query), as_f32(key));
    let shape =
        Shape::new([heads.sizes.batch, heads.sizes.heads, heads.sizes.queries, COLUMNS]).within("sdpa_fw", &[query])?;
    let grain = heads.sizes.queries * COLUMNS;
    let sums = produce::heavy(shape, out[1], grain, |start, values| {
        for (i, rows) in values.chunks_mut(grain.max(1)).enumerate() {
            let scores = heads.scores(start / grain + i, &q, &k);
            for (row, result) in scores.chunks(heads.sizes.keys.max(1)).zip(rows.chunks_mut(COLUMNS)) {
                let largest = math::largest(row);
                let sum: f32 = row.iter().map(|v| math::exp(v - largest)).sum();
                result.fill(largest + libm::logf(sum));
            }
        }
    });
    Ok([result, sums])
}

/// The operands of [`sdpa_backward`] besides query, key and value.
#[derive(Debug, Clone, Copy)]
pub struct SdpaGradient<'a> {
    /// Gradient of the result.
    pub gradient: &'a Tensor,
    /// The result.
    pub result: &'a Tensor,
    /// The statistics of [`sdpa_forward`].
    pub sums: &'a Tensor,
}

/// Gradients of query, key and value of [`sdpa_forward`].
pub fn sdpa_backward(
    of: SdpaGradient<'_>,
    [query, key, value]: [&Tensor; 3],
    mask: Mask<'_>,
    out: [DType; 3],
) -> Result<[Tensor; 3], OpError> {
    const OP: &str = "sdpa_bw";
    let heads = Heads::of(OP, [query, key, value], mask)?;
    let Sizes { batch, key_heads, queries, keys, depth, value_depth, .. } = heads.sizes;
    let operands = [query, key, value, of.gradient, of.result, of.sums];
    let wanted = [batch, heads.sizes.heads, queries, value_depth];
    if let Some(odd) = [of.gradient, of.result].into_iter().find(|t| *t.shape().dims() != wanted) {
        return Err(Reason::shape(odd.shape(), format!("{wanted:?}")).of(OP, &operands));
    }
    let rows = batch * heads.sizes.heads * queries;
    let width = of.sums.elements().checked_div(rows).unwrap_or(0);
    if rows > 0 && (width == 0 || of.sums.elements() != rows * width) {
        return Err(Reason::shape(of.sums.shape(), format!("{rows} rows")).of(OP, &operands));
    }
    let work = Gradients {
        heads,
        scale: heads.scale(),
        query: as_f32(query),
        key: as_f32(key),
        value: as_f32(value),
        gradient: as_f32(of.gradient),
        result: as_f32(of.result),
        sums: as_f32(of.sums).iter().step_by(width.max(1)).copied().collect(),
    };
    // One key head with all its query heads: their gradients of keys and values add up in order.
    let parts: Vec<[Vec<f32>; 3]> = (0..batch * key_heads).into_par_iter().map(|at| work.of_key_head(at)).collect();
    let whole = |index: usize| parts.iter().flat_map(|part| &part[index]).copied().collect::<Vec<f32>>();
    let made = |index: usize, like: &Tensor| {
        let exact = Tensor::new(like.shape().clone(), whole(index))?;
        Ok(typecast(&exact, out[index]))
    };
    debug_assert_eq!(whole(1).len(), batch * key_heads * keys * depth);
    Ok([made(0, query)?, made(1, key)?, made(2, value)?])
}

/// Sizes and mask of an attention.
#[derive(Clone, Copy)]
struct Heads<'a> {
    sizes: Sizes,
    mask: Mask<'a>,
}

impl<'a> Heads<'a> {
    fn of(op: &'static str, operands: [&Tensor; 3], mask: Mask<'a>) -> Result<Self, OpError> {
        let sizes = sizes(op, operands)?;
        let Sizes { batch, heads, queries, keys, .. } = sizes;
        if let Mask::Added(mask) = mask {
            let scores = Shape::new([batch, heads, queries, keys]).within(op, &operands)?;
            if mask.shape().broadcast(&scores).as_ref() != Ok(&scores) {
                return Err(Reason::Broadcast(mask.shape().clone(), scores).of(op, &operands));
            }
        }
        Ok(Self { sizes, mask })
    }

    fn scale(&self) -> f32 {
        1.0 / (self.sizes.depth as f32).sqrt()
    }

    /// The key head of a query head, both counted over the batch.
    fn key_head(&self, head: usize) -> usize {
        let Sizes { heads, key_heads, .. } = self.sizes;
        head / heads * key_heads + head % heads / (heads / key_heads)
    }

    /// The scores of a query head, masked: `[queries, keys]`.
    fn scores(&self, head: usize, query: &[f32], key: &[f32]) -> Vec<f32> {
        let Sizes { batch, heads, queries, keys, depth, .. } = self.sizes;
        let a = Matrix::row_major(&query[head * queries * depth..], depth);
        let b = Matrix { values: &key[self.key_head(head) * keys * depth..], rows: 1, columns: depth };
        let mut scores = vec![0f32; queries * keys];
        gemm::multiply(queries, depth, keys, a, b, &mut scores, keys);
        let scale = self.scale();
        scores.iter_mut().for_each(|v| *v *= scale);
        match self.mask {
            Mask::None => {}
            Mask::Causal => {
                for (at, row) in scores.chunks_mut(keys.max(1)).enumerate() {
                    row[(at + 1).min(keys)..].fill(f32::NEG_INFINITY);
                }
            }
            Mask::Added(mask) => {
                // The shape was checked, so that the view has all scores.
                if let Ok(all) = Shape::new([batch, heads, queries, keys]) {
                    let mut line = vec![0f32; scores.len()];
                    f32::load(mask, &View::broadcast(mask.shape(), &all), head * queries * keys, &mut line);
                    scores.iter_mut().zip(&line).for_each(|(v, m)| *v += m);
                }
            }
        }
        scores
    }
}

/// A gradient that is ready to be computed.
struct Gradients<'a> {
    heads: Heads<'a>,
    scale: f32,
    query: std::borrow::Cow<'a, [f32]>,
    key: std::borrow::Cow<'a, [f32]>,
    value: std::borrow::Cow<'a, [f32]>,
    gradient: std::borrow::Cow<'a, [f32]>,
    result: std::borrow::Cow<'a, [f32]>,
    /// One for each query.
    sums: Vec<f32>,
}

impl Gradients<'_> {
    /// Gradients of one key head's queries, keys and values.
    fn of_key_head(&self, at: usize) -> [Vec<f32>; 3] {
        let Sizes { heads, key_heads, queries, keys, depth, value_depth, .. } = self.heads.sizes;
        let each = heads / key_heads;
        let first = at / key_heads * heads + at % key_heads * each;
        let mut results =
            [vec![0f32; each * queries * depth], vec![0f32; keys * depth], vec![0f32; keys * value_depth]];
        let mut part = vec![0f32; keys * depth.max(value_depth)];
        for head in first..first + each {
            let [weights, scores] = self.of_scores(head, at);
            let to = &mut results[0][(head - first) * queries * depth..][..queries * depth];
            let keys_of = Matrix::row_major(&self.key[at * keys * depth..], depth);
            gemm::multiply(queries, keys, depth, Matrix::row_major(&scores, keys), keys_of, to, depth);
            let transposed = |values| Matrix { values, rows: 1, columns: keys };
            let queries_of = Matrix::row_major(&self.query[head * queries * depth..], depth);
            gemm::multiply(keys, queries, depth, transposed(&scores), queries_of, &mut part, depth);
            results[1].iter_mut().zip(&part).for_each(|(sum, v)| *sum += v);
            let gradient = Matrix::row_major(&self.gradient[head * queries * value_depth..], value_depth);
            gemm::multiply(keys, queries, value_depth, transposed(&weights), gradient, &mut part, value_depth);
            results[2].iter_mut().zip(&part).for_each(|(sum, v)| *sum += v);
        }
        results
    }

    /// The weights of a query head's keys, and the gradients of its scores, scaled.
    fn of_scores(&self, head: usize, key_head: usize) -> [Vec<f32>; 2] {
        let Sizes { queries, keys, value_depth, .. } = self.heads.sizes;
        let mut weights = self.heads.scores(head, &self.query, &self.key);
        let rows = head * queries;
        for (row, sum) in weights.chunks_mut(keys.max(1)).zip(&self.sums[rows..]) {
            row.iter_mut().for_each(|v| *v = math::exp(*v - sum));
        }
        let span = rows * value_depth..(rows + queries) * value_depth;
        let (gradient, result) = (&self.gradient[span.clone()], &self.result[span]);
        let values = Matrix { values: &self.value[key_head * keys * value_depth..], rows: 1, columns: value_depth };
        let mut scores = vec![0f32; queries * keys];
        let of_result = Matrix::row_major(gradient, value_depth);
        gemm::multiply(queries, value_depth, keys, of_result, values, &mut scores, keys);
        for (at, (row, weights)) in scores.chunks_mut(keys.max(1)).zip(weights.chunks(keys.max(1))).enumerate() {
            let line = at * value_depth..(at + 1) * value_depth;
            let mean = math::dot(&gradient[line.clone()], &result[line]);
            row.iter_mut().zip(weights).for_each(|(v, w)| *v = w * (*v - mean) * self.scale);
        }
        [weights, scores]
    }
}
