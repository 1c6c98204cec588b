//! Scaled dot product attention (tt-mlir `transformer.fbs`): prefill, decode, paged and chunked.
//!
//! Each head computes softmax(query * key^T * scale + mask) * value in float32 and rounds once; a
//! device that works in blocks (flash attention) rounds in between. With fewer key than query
//! heads, each key head serves a run of query heads. A query that sees no key at all gives NaNs, as
//! in the definition; only a decode position below zero, which marks an unused slot of the batch,
//! gives zeros.
//!
//! An attention sink is one more logit per head that contributes to the sum but has no value. The
//! device's kernel multiplies it by `scale` like the scores, and compilers divide it beforehand; it
//! is multiplied here, too.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::{OpError, Reason, Within};
use crate::gemm::{self, Matrix};
use crate::produce::{self, as_f32};
use crate::tensor::Tensor;
use crate::view::{Lane, View};
use crate::{DType, Shape, embedding, math, permute, reshape};

/// Attributes and optional operands of attention.
#[derive(Debug, Clone, Copy, Default)]
pub struct Attention<'a> {
    /// A query sees the keys up to its own position. Without effect when there is a mask.
    pub causal: bool,
    /// Added to the scores; broadcasts to them. In decode it is `[batch or 1, 1, heads or 1, keys]`
    /// and scaled with them.
    pub mask: Option<&'a Tensor>,
    /// Factor of the scores; 1 / sqrt(head size) when absent.
    pub scale: Option<f32>,
    /// Length of a sliding window: a query sees this many keys up to its own; without `causal` half
    /// as many to either side.
    pub window: Option<usize>,
    /// One logit per head, in the first column of as many rows as there are heads.
    pub sink: Option<&'a Tensor>,
}

/// Sizes of an attention.
#[derive(Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) batch: usize,
    pub(crate) heads: usize,
    pub(crate) key_heads: usize,
    pub(crate) queries: usize,
    pub(crate) keys: usize,
    pub(crate) depth: usize,
    pub(crate) value_depth: usize,
}

/// Positions of the queries.
enum Positions {
    /// Query `i` at `first + i`.
    From(usize),
    /// All queries of a batch entry at one position, if the entry is used.
    Each(Vec<Option<usize>>),
    /// At the end of the keys.
    Last,
}

/// The sizes of queries, keys and values that fit each other.
pub(crate) fn sizes(op: &'static str, operands: [&Tensor; 3]) -> Result<Sizes, OpError> {
    let [query, key, value] = operands;
    let four = |t: &Tensor| match *t.shape().dims() {
        [a, b, c, d] => Ok([a, b, c, d]),
        _ => Err(Reason::shape(t.shape(), "[batch x heads x positions x size]").of(op, &operands)),
    };
    let ([batch, heads, queries, depth], [kb, key_heads, keys, kd]) = (four(query)?, four(key)?);
    let [vb, value_heads, values, value_depth] = four(value)?;
    if (kb, kd) != (batch, depth) || key_heads == 0 || heads % key_heads != 0 {
        let wanted = format!("[{batch} x a divisor of {heads} x keys x {depth}]");
        return Err(Reason::shape(key.shape(), wanted).of(op, &operands));
    }
    if (vb, value_heads, values) != (kb, key_heads, keys) {
        let wanted = format!("[{batch}x{key_heads}x{keys} x size]");
        return Err(Reason::shape(value.shape(), wanted).of(op, &operands));
    }
    Ok(Sizes { batch, heads, key_heads, queries, keys, depth, value_depth })
}

impl Attention<'_> {
    /// The range of keys that a query at position `at` may see.
    fn visible(&self, at: usize, keys: usize) -> Range<usize> {
        let (from, to) = match (self.window, self.causal) {
            (Some(w), true) => ((at + 1).saturating_sub(w), at + 1),
            (Some(w), false) => (at.saturating_sub(w / 2), at.saturating_add(w / 2 + 1)),
            (None, true) if self.mask.is_none() => (0, at + 1),
            (None, _) => (0, keys),
        };
        from.min(to).min(keys)..to.min(keys)
    }

    fn run(
        &self,
        op: &'static str,
        operands: [&Tensor; 3],
        scaled_mask: bool,
        positions: &Positions,
        out: DType,
    ) -> Result<Tensor, OpError> {
        let s = sizes(op, operands)?;
        let shape = Shape::new([s.batch, s.heads, s.queries, s.value_depth]).within(op, &operands)?;
        let scores = Shape::new([s.batch, s.heads, s.queries, s.keys]).within(op, &operands)?;
        let scale = self.scale.unwrap_or(1.0 / (s.depth as f32).sqrt());
        let work = Work {
            by: self,
            sizes: s,
            positions,
            operands: operands.map(as_f32),
            scale,
            mask: self.mask_over(op, operands, scores)?,
            mask_factor: if scaled_mask { scale } else { 1.0 },
            sink: self.sink_of(op, operands, s.heads)?,
        };
        // Blocks of queries: large enough for the matrix kernel, small enough that their scores
        // stay in cache.
        let grain = s.value_depth * s.queries.min(128);
        Ok(produce::heavy(shape, out, grain, |start, mut results| {
            let mut line = vec![0f32; s.keys];
            let mut first = start / s.value_depth;
            while !results.is_empty() {
                // As many queries as lie in one head.
                let count = (s.queries - first % s.queries).min(results.len() / s.value_depth);
                let (block, rest) = results.split_at_mut(count * s.value_depth);
                work.block(first, block, &mut line);
                first += count;
                results = rest;
            }
        }))
    }

    /// The mask and how it is read at a position of the scores.
    fn mask_over(
        &self,
        op: &'static str,
        [query, key, value]: [&Tensor; 3],
        scores: Shape,
    ) -> Result<Option<(&Tensor, View)>, OpError> {
        match self.mask {
            Some(m) if m.shape().broadcast(&scores).as_ref() == Ok(&scores) => {
                Ok(Some((m, View::broadcast(m.shape(), &scores))))
            }
            Some(m) => Err(Reason::Broadcast(m.shape().clone(), scores).of(op, &[query, key, value, m])),
            None => Ok(None),
        }
    }

    /// The sink of each head.
    fn sink_of(
        &self,
        op: &'static str,
        [query, key, value]: [&Tensor; 3],
        heads: usize,
    ) -> Result<Option<Vec<f32>>, OpError> {
        let Some(t) = self.sink else { return Ok(None) };
        if heads == 0 || t.elements() == 0 || !t.elements().is_multiple_of(heads) {
            return Err(Reason::shape(t.shape(), format!("{heads} heads")).of(op, &[query, key, value, t]));
        }
        Ok(Some(t.to_f32().into_iter().step_by(t.elements() / heads).collect()))
    }
}

/// An attention that is ready to be computed.
struct Work<'a> {
    by: &'a Attention<'a>,
    sizes: Sizes,
    positions: &'a Positions,
    /// Query, key and value.
    operands: [Cow<'a, [f32]>; 3],
    scale: f32,
    mask: Option<(&'a Tensor, View)>,
    mask_factor: f32,
    /// One for each head.
    sink: Option<Vec<f32>>,
}

impl Work<'_> {
    /// The keys that query `index` of a head of a batch entry sees.
    fn seen(&self, entry: usize, index: usize) -> Range<usize> {
        let keys = self.sizes.keys;
        match self.positions {
            Positions::From(offset) => self.by.visible(offset + index, keys),
            Positions::Each(list) => list[entry].map_or(0..0, |at| self.by.visible(at, keys)),
            Positions::Last => self.by.visible(keys.saturating_sub(1), keys),
        }
    }

    /// The results of the queries from `first` on, which are all of one head. `line` has room for a
    /// row of the mask.
    fn block(&self, first: usize, results: &mut [f32], line: &mut [f32]) {
        let (s, [q, k, v]) = (self.sizes, &self.operands);
        let (head, from, count) = (first / s.queries, first % s.queries, results.len() / s.value_depth);
        let entry = head / s.heads;
        let seen: Vec<Range<usize>> = (from..from + count).map(|i| self.seen(entry, i)).collect();
        let unused = matches!(self.positions, Positions::Each(list) if list[entry].is_none());
        // What lies beyond the last key that any of them sees is not computed.
        let keys = seen.iter().map(|r| r.end).max().unwrap_or(0);
        let key_head = entry * s.key_heads + head % s.heads / (s.heads / s.key_heads);
        let at = key_head * s.keys;
        let a = Matrix::row_major(&q[first * s.depth..], s.depth);
        let b = Matrix { values: &k[at * s.depth..], rows: 1, columns: s.depth };
        let mut logits = vec![0f32; count * keys];
        gemm::multiply(count, s.depth, keys, a, b, &mut logits, keys);
        let sink = self.sink.as_ref().map(|sinks| sinks[head % s.heads] * self.scale);
        let blind = |seen: &Range<usize>| seen.is_empty() && sink.is_none() && !unused;
        for (i, (row, seen)) in logits.chunks_mut(keys.max(1)).zip(seen).enumerate() {
            if blind(&seen) {
                row.fill(f32::NAN);
            } else {
                self.weights(row, seen, first + i, sink, line);
            }
        }
        if keys == 0 {
            if blind(&(0..0)) {
                results.fill(f32::NAN);
            }
            return;
        }
        let values = Matrix::row_major(&v[at * s.value_depth..], s.value_depth);
        gemm::multiply(count, keys, s.value_depth, Matrix::row_major(&logits, keys), values, results, s.value_depth);
    }

    /// Computes the weights of a query's keys from its row of products with them, in place.
    fn weights(&self, row: &mut [f32], seen: Range<usize>, query: usize, sink: Option<f32>, line: &mut [f32]) {
        row[..seen.start].fill(0.0);
        row[seen.end..].fill(0.0);
        let start = seen.start;
        let row = &mut row[seen];
        row.iter_mut().for_each(|l| *l *= self.scale);
        if let Some((mask, view)) = &self.mask {
            let line = &mut line[..row.len()];
            f32::load(mask, view, query * self.sizes.keys + start, line);
            row.iter_mut().zip(line).for_each(|(l, m)| *l += *m * self.mask_factor);
        }
        math::softmax(row, sink);
    }
}

/// Attention of many queries: `[batch, heads, queries, size]` to keys
/// `[batch, key heads, keys, size]`.
pub fn attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    by: Attention<'_>,
    out: DType,
) -> Result<Tensor, OpError> {
    by.run("scaled_dot_product_attention", [query, key, value], false, &Positions::From(0), out)
}

/// Attention of one query per batch entry: `[1, batch, heads, size]`. `positions`, one per entry,
/// is the last key that a causal query sees; without it, that is the last key.
pub fn attention_decode(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    positions: Option<&Tensor>,
    by: Attention<'_>,
    out: DType,
) -> Result<Tensor, OpError> {
    const OP: &str = "scaled_dot_product_attention_decode";
    let operands = [query, key, value];
    let [1, batch, heads, depth] = *query.shape().dims() else {
        return Err(Reason::shape(query.shape(), "[1 x batch x heads x size]").of(OP, &operands));
    };
    let at = match positions {
        Some(t) if t.elements() == batch => {
            Positions::Each(t.to_i64().into_iter().map(|p| usize::try_from(p as i32).ok()).collect())
        }
        Some(t) => return Err(Reason::shape(t.shape(), format!("{batch} positions")).of(OP, &[query, key, value, t])),
        None => Positions::Last,
    };
    // With one query per head, the order in memory is that of the heads; likewise for the mask,
    // whose unused dimension moves.
    let rows = Shape::new([batch, heads, 1, depth]).within(OP, &operands)?;
    let mask = match by.mask {
        Some(m) => match *m.shape().dims() {
            [b, 1, h, keys] => Some(m.reshaped(Shape::new([b, h, 1, keys]).within(OP, &[m])?)),
            _ => return Err(Reason::shape(m.shape(), "[batch x 1 x heads x keys]").of(OP, &[query, key, value, m])),
        },
        None => None,
    };
    let by = Attention { mask: mask.as_ref(), ..by };
    let result = by.run(OP, [&query.reshaped(rows), key, value], true, &at, out)?;
    let size = value.shape().last();
    Ok(result.reshaped(Shape::new([1, batch, heads, size]).within(OP, &operands)?))
}

/// The contiguous cache of each sequence: pages `[pages, heads, page length, size]` by a table of
/// page numbers `[sequences, pages of each]` become `[sequences, heads, length, size]`.
fn unpaged(op: &'static str, cache: &Tensor, table: &Tensor) -> Result<Tensor, OpError> {
    let operands = [cache, table];
    let ([pages, heads, length, size], [sequences, each]) = (cache.shape().dims(), table.shape().dims()) else {
        let wanted = "pages [pages x heads x length x size] and a table [sequences x pages]";
        return Err(Reason::shape(cache.shape(), wanted).of(op, &operands));
    };
    let int = |n: &usize| *n as i64;
    let lines = reshape(cache, &[int(pages), int(heads) * int(length) * int(size)])?;
    let taken = embedding(table, &lines)?;
    let split = reshape(&taken, &[int(sequences), int(each), int(heads), int(length), int(size)])?;
    reshape(&permute(&split, &[0, 2, 1, 3, 4])?, &[int(sequences), int(heads), int(each) * int(length), int(size)])
}

/// [`attention_decode`] with keys and values in pages.
pub fn paged_attention_decode(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    page_table: &Tensor,
    positions: Option<&Tensor>,
    by: Attention<'_>,
    out: DType,
) -> Result<Tensor, OpError> {
    const OP: &str = "paged_scaled_dot_product_attention_decode";
    attention_decode(query, &unpaged(OP, key, page_table)?, &unpaged(OP, value, page_table)?, positions, by, out)
}

/// Causal attention of a part of a prompt that begins at `start`, with the keys and values of
/// everything before it in pages.
pub fn chunked_attention(
    query: &Tensor,
    key: &Tensor,
    value: &Tensor,
    page_table: &Tensor,
    start: usize,
    scale: Option<f32>,
    out: DType,
) -> Result<Tensor, OpError> {
    const OP: &str = "chunked_scaled_dot_product_attention";
    let (key, value) = (unpaged(OP, key, page_table)?, unpaged(OP, value, page_table)?);
    let by = Attention { causal: true, scale, ..Attention::default() };
    by.run(OP, [query, &key, &value], false, &Positions::From(start), out)
}
