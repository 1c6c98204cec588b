//! Attention: of many queries, of one new position to a cache, and of either to pages.
//!
//! In bfloat16 it is one program where queries see keys by their places or a mask (`flash`).
//! Otherwise it is composed of products, masks and softmax.
//!
//! With fewer key than query heads, the queries of all heads that a key head serves are rows of one
//! matrix. What queries do not see is a term of the scores: copies of a line that has zeros and
//! then very small numbers, each row a place further on.

use tilework_abi::eltwise::Function;
use tilework_abi::flash::Band;
use tilework_model::ttnn::ops::attention::{
    ChunkedScaledDotProductAttentionOp, PagedScaledDotProductAttentionDecodeOp, ScaledDotProductAttentionDecodeOp,
    ScaledDotProductAttentionOp,
};
use tilework_ops::DType;
use tilework_runtime::tensor::Layout;

use super::edges::Edge;
use super::eltwise::is_integer;
use super::flash::Asked;
use super::matmul::Shape;
use super::norm::{self, Statistics, one, two};
use super::rearrange::{Index, Part, strides};
use crate::recipe::{Made, Of, Planned, Recipe, Site, Task};

/// What is added to the score of a key that a query does not see: its weight is zero beside any
/// other.
const UNSEEN: f32 = -1e30;

/// Which keys queries see besides what a mask says.
#[derive(Clone, Copy)]
pub(super) enum Seen<'s> {
    All,
    /// Those up to their own position, which is their number; at most so many.
    Before {
        window: Option<usize>,
    },
    /// Half as many to either side of their own position.
    Around {
        window: usize,
    },
    /// Those up to a position for each of the batch.
    Upto {
        positions: Of<'s>,
        window: Option<usize>,
    },
}

/// Query, key and value, with what is known of them.
pub(super) struct Attention<'s> {
    pub(super) query: Of<'s>,
    pub(super) key: Of<'s>,
    pub(super) value: Of<'s>,
    pub(super) batch: usize,
    pub(super) heads: usize,
    pub(super) key_heads: usize,
    pub(super) queries: usize,
    pub(super) keys: usize,
    pub(super) depth: usize,
    pub(super) value_depth: usize,
    pub(super) scale: f32,
    pub(super) seen: Seen<'s>,
    /// Added to the scores, and its factor.
    pub(super) mask: Option<(Of<'s>, f32)>,
    /// One more score for each head, which has no value.
    sink: Option<Of<'s>>,
}

/// Four lengths of a tensor.
pub(super) fn four(of: Of<'_>) -> Result<[usize; 4], String> {
    <[usize; 4]>::try_from(of.spec.logical_shape()).map_err(|_| "a tensor of other than four dimensions".into())
}

impl<'s> Attention<'s> {
    /// Of `[batch, heads, queries, size]`, or `[1, batch, heads, size]` with one query each.
    pub(super) fn of(
        [query, key, value]: [Of<'s>; 3],
        one_query: bool,
        key_dims: [usize; 4],
        value_depth: usize,
        scale: Option<f32>,
    ) -> Result<Self, String> {
        let ([a, b, c, depth], [key_batch, key_heads, keys, key_depth]) = (four(query)?, key_dims);
        let [batch, heads, queries] = if one_query { [b, c, 1] } else { [a, b, c] };
        if one_query && a != 1 {
            return Err("queries of other sides".into());
        }
        if key_batch != batch || key_depth != depth || key_heads == 0 || !heads.is_multiple_of(key_heads) {
            return Err("keys of other sides than queries".into());
        }
        let scale = scale.unwrap_or(1.0 / (depth as f32).sqrt());
        let (seen, mask, sink) = (Seen::All, None, None);
        Ok(Self {
            query,
            key,
            value,
            batch,
            heads,
            key_heads,
            queries,
            keys,
            depth,
            value_depth,
            scale,
            seen,
            mask,
            sink,
        })
    }

    /// Query heads that a key head serves.
    pub(super) fn shared(&self) -> usize {
        self.heads / self.key_heads
    }

    /// Adds the programs.
    fn plan(self, mut recipe: Recipe, task: &Task<'_>) -> Planned {
        let (result, site) = (task.result()?, task.site);
        let count: usize = result.spec.logical_shape().iter().product();
        if count == 0 || count != self.batch * self.heads * self.queries * self.value_depth {
            return Err("a result of other sides".into());
        }
        for of in [self.query, self.key, self.value, result] {
            if !matches!(of.spec.dtype(), DType::BF16 | DType::F32) {
                return Err(format!("elements of type {}", of.spec.dtype().name()));
            }
        }
        if self.sink.is_none() && self.in_one_pass(result, &mut recipe, site)? {
            return Ok(recipe);
        }
        let (groups, rows) = (self.batch * self.key_heads, self.shared() * self.queries);
        let outer = [self.batch, self.key_heads];
        let value = recipe.tiles(&[outer[0], outer[1], self.keys, self.value_depth], self.value.spec.dtype())?;
        recipe.same_elements(self.value, value.of(), site)?;
        let dims = [outer[0], outer[1], rows, self.keys];
        let query = self.of_rows(self.query, self.depth, &mut recipe, site)?;
        let scores = self.scores(query.of(), &mut recipe, site)?;
        let whole = self.query.spec.dtype() == DType::F32;
        let weights = recipe.tiles(&dims, if whole { DType::F32 } else { DType::BF16 })?;
        let sink = self.sink_of_rows(&mut recipe, site)?;
        let of = Statistics::of(scores.of(), vec![false, false, false, true], recipe, site)?;
        let mut recipe = match sink {
            Some(sink) => norm::softmax_with(sink.of(), self.scale, of, weights.of())?,
            None => norm::softmax_of(of, weights.of())?,
        };
        recipe.clear(weights.of(), Edge::Columns, site)?;
        let made = recipe.tiles(&[outer[0], outer[1], rows, self.value_depth], result.spec.dtype())?;
        product(&mut recipe, groups, [weights.of(), value.of(), made.of()], site)?;
        recipe.same_elements(made.of(), result, site)?;
        Ok(recipe)
    }

    /// A tensor of queries whose rows are those of all heads that a key head serves.
    pub(super) fn of_rows(&self, of: Of<'_>, width: usize, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
        let dims = [self.batch, self.key_heads, self.shared() * self.queries, width];
        let made = recipe.tiles(&dims, of.spec.dtype())?;
        recipe.same_elements(of, made.of(), site)?;
        Ok(made)
    }

    /// The scores of such rows, times the scale, with all masks: in float32.
    pub(super) fn scores(&self, query: Of<'_>, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
        let (groups, outer) = (self.batch * self.key_heads, [self.batch, self.key_heads]);
        let key = recipe.tiles(&[outer[0], outer[1], self.depth, self.keys], self.key.spec.dtype())?;
        let matrix = (self.keys * self.depth) as i64;
        let steps = [matrix * self.key_heads as i64, matrix, 1, self.depth as i64];
        let part = Part::whole(self.key, 0, key.of().spec.logical_shape(), &steps);
        recipe.rearrange(vec![part], 0, key.of(), site)?;
        let dims = [outer[0], outer[1], self.shared() * self.queries, self.keys];
        let scores = recipe.tiles(&dims, DType::F32)?;
        product(recipe, groups, [query, key.of(), scores.of()], site)?;
        self.masked(scores, recipe, site)
    }

    /// Adds the programs for the queries of a prompt.
    pub(super) fn of_prompt(
        mut self,
        (window, causal, mask): (Option<usize>, bool, Option<Of<'s>>),
        recipe: Recipe,
        task: &Task<'_>,
    ) -> Planned {
        self.seen = match (window, causal, mask) {
            (Some(_), ..) if self.queries > self.keys => return Err("queries that see no key".into()),
            (Some(window), false, _) => Seen::Around { window },
            (window, true, mask) if window.is_some() || mask.is_none() => Seen::Before { window },
            _ => Seen::All,
        };
        self.mask = mask.map(|mask| (mask, 1.0));
        self.plan(recipe, task)
    }

    /// The sink's score for each row of the scores.
    fn sink_of_rows(&self, recipe: &mut Recipe, site: &Site) -> Result<Option<Made>, String> {
        let Some(sink) = self.sink else { return Ok(None) };
        let count = sink.spec.logical_shape().iter().product::<usize>();
        if count == 0 || !count.is_multiple_of(self.heads) || is_integer(sink.spec.dtype()) {
            return Err("a sink of other sides or types".into());
        }
        // The first element of each head's.
        let each = (count / self.heads) as i64;
        let dims = [1, self.key_heads, self.shared(), self.queries, 1];
        self.rows_of(sink, 0, (&dims, &[0, each * self.shared() as i64, each, 0, 0]), recipe, site).map(Some)
    }

    /// Adds one program for all of it, if there is one that can do it.
    fn in_one_pass(&self, result: Of<'_>, recipe: &mut Recipe, site: &Site) -> Result<bool, String> {
        let far = Band::FAR;
        let within = |window: usize| i32::try_from(window).map_or(far, |n| n.min(far));
        let mut positions = None;
        let band = match self.seen {
            Seen::All => [-far, far],
            Seen::Upto { positions: of, window: None } => {
                positions = Some(of);
                [-far, far]
            }
            Seen::Before { window } => [window.map_or(-far, |window| 1 - within(window)), 0],
            Seen::Around { window } => [-within(window / 2), within(window / 2)],
            Seen::Upto { window: Some(_), .. } => return Ok(false),
        };
        let mask = match self.mask {
            Some((of, factor)) => Some((of, factor, four(of)?)),
            None => None,
        };
        // One query of all heads of a key head is as many queries of one head.
        let folds = self.queries == 1 && band == [-far, far];
        let (heads, queries) = if folds { (self.key_heads, self.shared()) } else { (self.heads, self.queries) };
        let mask = mask.map(|(of, factor, own)| {
            let lengths = match own[1] {
                heads if folds && heads != 1 => [own[0], self.key_heads, self.shared(), own[3]],
                _ => own,
            };
            (of, factor, lengths)
        });
        let asked = Asked {
            operands: [self.query, self.key, self.value],
            batch: self.batch,
            heads,
            key_heads: self.key_heads,
            queries,
            keys: self.keys,
            depth: self.depth,
            width: self.value_depth,
            scale: self.scale,
            band,
            mask,
            positions,
        };
        asked.add(recipe, result, site)
    }

    /// The scores times the scale, with all masks.
    fn masked(&self, scores: Made, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
        let mut masks = Vec::new();
        if let Some((mask, factor)) = self.mask {
            masks.push((self.given(mask, recipe, site)?, factor));
        }
        match self.seen {
            Seen::All => {}
            Seen::Before { window } => {
                let from = window.map_or(0, |window| self.queries.saturating_sub(window));
                masks.push((self.near([from, self.queries], recipe, site)?, 1.0));
            }
            Seen::Around { window } => {
                let (from, to) = ((self.queries - 1).saturating_sub(window / 2), self.queries + window / 2);
                masks.push((self.near([from, to], recipe, site)?, 1.0));
            }
            Seen::Upto { positions, window } => masks.push((self.upto(positions, window, recipe, site)?, 1.0)),
        }
        let made = recipe.tiles(scores.of().spec.logical_shape(), DType::F32)?;
        let first = vec![one(Function::Scale, 0, self.scale)];
        if masks.is_empty() {
            recipe.stages.push(norm::rows("attention-scale", (scores.of(), made.of()), Vec::new(), first, site)?);
            return Ok(made);
        }
        let others = masks.iter().enumerate().map(|(i, (mask, factor))| {
            let mut lines = if i == 0 { first.clone() } else { Vec::new() };
            if *factor != 1.0 {
                lines.push(one(Function::Scale, 1, *factor));
            }
            lines.push(two(Function::Add, 0, 1));
            (mask.of(), lines)
        });
        let others = others.collect();
        recipe.stages.push(norm::rows("attention-mask", (scores.of(), made.of()), others, Vec::new(), site)?);
        Ok(made)
    }

    /// A mask `[batch or 1, heads or 1, queries or 1, keys or 1]` for the rows of the scores.
    fn given(&self, mask: Of<'_>, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
        let own = four(mask)?;
        let whole = [self.batch, self.heads, self.queries, self.keys];
        if own.iter().zip(whole).any(|(&own, whole)| own != whole && own != 1) {
            return Err("a mask of other sides than the scores".into());
        }
        let steps = strides(&own);
        let step = |k: usize| if own[k] == 1 { 0 } else { steps[k] };
        let (key_heads, shared) = if own[1] == 1 { (1, self.shared()) } else { (self.key_heads, self.shared()) };
        let of_keys = step(1) * shared as i64;
        let dims = [own[0], key_heads, shared, self.queries, self.keys];
        self.rows_of(mask, 0, (&dims, &[step(0), of_keys, step(1), step(2), step(3)]), recipe, site)
    }

    /// A mask of `[batch or 1, key heads or 1, shared, queries, keys]` from elements of a tensor,
    /// as rows of the scores.
    fn rows_of(
        &self,
        from: Of<'_>,
        base: i64,
        (dims, steps): (&[usize; 5], &[i64; 5]),
        recipe: &mut Recipe,
        site: &Site,
    ) -> Result<Made, String> {
        let [batch, heads, shared, queries, keys] = *dims;
        let made = recipe.tiles(&[batch, heads, shared * queries, keys], from.spec.dtype())?;
        if shared == 1 || queries == 1 {
            let (rows, row) = if shared == 1 { (queries, steps[3]) } else { (shared, steps[2]) };
            let (dims, steps) = ([batch, heads, rows, keys], [steps[0], steps[1], row, steps[4]]);
            recipe.rearrange(vec![Part::whole(from, base, &dims, &steps)], 0, made.of(), site)?;
            return Ok(made);
        }
        recipe.strided((from, base), (dims, steps), made.of(), site)?;
        Ok(made)
    }

    /// Query `i` sees key `j` if `j - i`, counted from the last query, is in a range.
    fn near(&self, seen: [usize; 2], recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
        let (queries, keys) = (self.queries, self.keys);
        let line = line(queries + keys - 1, (seen, UNSEEN), recipe, site)?;
        let dims = [1, 1, self.shared(), queries, keys];
        self.rows_of(line.of(), queries as i64 - 1, (&dims, &[0, 0, 0, -1, 1]), recipe, site)
    }

    /// Key `j` is seen if it is not behind the position of its batch, and in the window.
    fn upto(&self, positions: Of<'_>, window: Option<usize>, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
        let keys = self.keys;
        if positions.spec.logical_shape().iter().product::<usize>() != self.batch {
            return Err("other than a position for each of the batch".into());
        }
        let from = window.map_or(0, |window| keys.saturating_sub(window));
        let line = line(2 * keys, ([from, keys], UNSEEN), recipe, site)?;
        let dims = [self.batch, 1, 1, keys];
        let made = recipe.tiles(&dims, DType::F32)?;
        let part = Part::whole(line.of(), keys as i64 - 1, &dims, &[0, 0, 0, 1]).by(-1);
        let index = Index { from: positions, base: 0, strides: vec![1, 0, 0, 0], bound: keys };
        recipe.rearrange_by(vec![part], &index, made.of(), site)?;
        Ok(made)
    }
}

/// A line of what is added to scores: zeros from place `from` to before place `to`, and `unseen`
/// elsewhere.
pub(super) fn line(
    length: usize,
    ([from, to], unseen): ([usize; 2], f32),
    recipe: &mut Recipe,
    site: &Site,
) -> Result<Made, String> {
    let zeros = recipe.rows(&[1, length], DType::F32)?;
    recipe.rearrange(Vec::new(), 0, zeros.of(), site)?;
    let made = recipe.rows(&[1, length], DType::F32)?;
    let part = Part::between(zeros.of(), 0, [&[0, from], &[1, to.min(length)]], &[0, 1]);
    recipe.rearrange(vec![part], unseen.to_bits(), made.of(), site)?;
    Ok(made)
}

/// [`product`] of operands whose padding along the inner dimension may hold anything: it is cleared.
pub(super) fn product_cleared(
    recipe: &mut Recipe,
    batch: usize,
    [a, b, y]: [Of<'_>; 3],
    site: &Site,
) -> Result<(), String> {
    recipe.clear(a, Edge::Columns, site)?;
    recipe.clear(b, Edge::Rows, site)?;
    product(recipe, batch, [a, b, y], site)
}

/// Products of matrices, one for each of the outer dimensions.
pub(super) fn product(recipe: &mut Recipe, batch: usize, [a, b, y]: [Of<'_>; 3], site: &Site) -> Result<(), String> {
    let [rows, inner] = a.spec.shape_in_pages();
    let [_, columns] = b.spec.shape_in_pages();
    let batch = batch as u32;
    recipe.product(Shape { batch, rows: rows / batch.max(1), inner, columns }, [a, b, y], None, site)
}

/// Key and value dimensions that fit each other.
pub(super) fn keyed(key: Of<'_>, value: Of<'_>) -> Result<([usize; 4], usize), String> {
    let (dims, [batch, heads, keys, depth]) = (four(key)?, four(value)?);
    if [batch, heads, keys] != dims[..3] {
        return Err("values of other sides than keys".into());
    }
    Ok((dims, depth))
}

fn of_task<'t>(task: &Task<'t>) -> Result<[Of<'t>; 3], String> {
    Ok([task.operand(0)?, task.operand(1)?, task.operand(2)?])
}

pub(super) fn attention(op: &ScaledDotProductAttentionOp, task: &Task<'_>) -> Planned {
    let operands = of_task(task)?;
    let (dims, depth) = keyed(operands[1], operands[2])?;
    let mut of = Attention::of(operands, false, dims, depth, op.scale)?;
    if op.attention_sink.is_some() {
        of.sink = Some(task.operand(3 + usize::from(op.attention_mask.is_some()))?);
    }
    let mask = op.attention_mask.is_some().then(|| task.operand(3)).transpose()?;
    let window = op.sliding_window_size.map(|n| n as usize);
    of.of_prompt((window, op.is_causal, mask), Recipe::default(), task)
}

/// What the operations with one query for each of the batch have in common.
pub(super) struct Decode {
    pub(super) causal: bool,
    pub(super) mask: bool,
    pub(super) positions: bool,
    pub(super) sink: bool,
    pub(super) window: Option<usize>,
}

impl Decode {
    /// Masks by positions, operand number `first`, and by a mask behind it.
    fn apply<'s>(&self, of: &mut Attention<'s>, first: usize, task: &Task<'s>) -> Result<Option<Of<'s>>, String> {
        let Self { causal, mask, positions, sink, window } = *self;
        if sink {
            of.sink = Some(task.operand(first + usize::from(positions) + usize::from(mask))?);
        }
        if !causal && (positions || window.is_some()) {
            return Err("positions of queries that see all keys".into());
        }
        if causal && !positions && window.is_some() {
            return Err("a window without positions".into());
        }
        if positions && mask && window.is_none() {
            return Err("a mask and positions".into());
        }
        if positions {
            of.seen = Seen::Upto { positions: task.operand(first)?, window };
        }
        mask.then(|| task.operand(first + usize::from(positions))).transpose()
    }

    /// The programs, with these masks. The mask of an operand is scaled as the scores are.
    pub(super) fn plan<'s>(&self, mut of: Attention<'s>, first: usize, mut recipe: Recipe, task: &Task<'s>) -> Planned {
        let Some(mask) = self.apply(&mut of, first, task)? else { return of.plan(recipe, task) };
        let made = mask_of_decode(mask, &mut recipe, task.site)?;
        let scale = of.scale;
        Attention { mask: Some((made.of(), scale)), ..of }.plan(recipe, task)
    }
}

/// The mask `[batch or 1, 1, heads or 1, keys]` of a decode, with the dimensions of other masks.
fn mask_of_decode(mask: Of<'_>, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
    let [batch, one, heads, keys] = four(mask)?;
    if one != 1 {
        return Err("a mask of other sides than the scores".into());
    }
    let made = recipe.rows(&[batch, heads, 1, keys], mask.spec.dtype())?;
    recipe.same_elements(mask, made.of(), site)?;
    Ok(made)
}

pub(super) fn decode(op: &ScaledDotProductAttentionDecodeOp, task: &Task<'_>) -> Planned {
    let operands = of_task(task)?;
    let (dims, depth) = keyed(operands[1], operands[2])?;
    let of = Attention::of(operands, true, dims, depth, op.scale)?;
    let by = Decode {
        causal: op.is_causal,
        mask: op.attention_mask.is_some(),
        positions: op.cur_pos_tensor.is_some(),
        sink: op.attention_sink.is_some(),
        window: op.sliding_window_size.map(|n| n as usize),
    };
    by.plan(of, 3, Recipe::default(), task)
}

/// Attention to keys and values of sequences, each with its dimensions.
pub(super) fn of_sequences<'s>(
    query: Of<'s>,
    (keys, dims): (Of<'s>, [usize; 4]),
    (values, value_dims): (Of<'s>, [usize; 4]),
    (one_query, scale): (bool, Option<f32>),
) -> Result<Attention<'s>, String> {
    if value_dims[..3] != dims[..3] {
        return Err("values of other sides than keys".into());
    }
    Attention::of([query, keys, values], one_query, dims, value_dims[3], scale)
}

/// Keys or values of each sequence, of pages `[pages, heads, page length, size]` by a table
/// `[sequences, pages of each]`, in rows; with their lengths.
pub(super) fn unpaged(
    cache: Of<'_>,
    table: Of<'_>,
    recipe: &mut Recipe,
    site: &Site,
) -> Result<(Made, [usize; 4]), String> {
    let [pages, heads, length, size] = four(cache)?;
    let [sequences, each] = *table.spec.logical_shape() else { return Err("a table of other sides".into()) };
    let dims = [sequences, heads, each, length, size];
    let page = heads * length * size;
    let steps = [0, length * size, 0, size, 1].map(|n| n as i64);
    let made = recipe.rows(&dims, cache.spec.dtype())?;
    let part = Part::whole(cache, 0, &dims, &steps).by(page as i64);
    let index = Index { from: table, base: 0, strides: vec![each as i64, 0, 1, 0, 0], bound: pages };
    recipe.rearrange_by(vec![part], &index, made.of(), site)?;
    debug_assert_eq!(made.of().spec.layout(), Layout::RowMajor);
    Ok((made, [sequences, heads, each * length, size]))
}

pub(super) fn paged_decode(op: &PagedScaledDotProductAttentionDecodeOp, task: &Task<'_>) -> Planned {
    let ([query, key, value], table) = (of_task(task)?, task.operand(3)?);
    let mut recipe = Recipe::default();
    let (keys, dims) = unpaged(key, table, &mut recipe, task.site)?;
    let (values, value_dims) = unpaged(value, table, &mut recipe, task.site)?;
    let of = of_sequences(query, (keys.of(), dims), (values.of(), value_dims), (true, op.scale))?;
    let by = Decode {
        causal: op.is_causal,
        mask: op.attention_mask.is_some(),
        positions: op.cur_pos_tensor.is_some(),
        sink: op.attention_sink.is_some(),
        window: op.sliding_window_size.map(|n| n as usize),
    };
    by.plan(of, 4, recipe, task)
}

/// Causal attention of a part of a prompt, which begins at a position that a tensor has.
pub(super) fn chunked(op: &ChunkedScaledDotProductAttentionOp, task: &Task<'_>) -> Planned {
    let ([query, key, value], table, start) = (of_task(task)?, task.operand(3)?, task.operand(4)?);
    let mut recipe = Recipe::default();
    let (keys, dims) = unpaged(key, table, &mut recipe, task.site)?;
    let (values, value_dims) = unpaged(value, table, &mut recipe, task.site)?;
    let of = of_sequences(query, (keys.of(), dims), (values.of(), value_dims), (false, op.scale))?;
    // The place of key j for query i in a line of zeros and then small numbers is j - i, less the
    // first position.
    let (queries, count) = (of.queries, of.keys);
    let line = line(queries + 2 * count, ([0, queries + count], UNSEEN), &mut recipe, task.site)?;
    let mask = recipe.rows(&[1, 1, queries, count], DType::F32)?;
    let part = Part::whole(line.of(), (queries + count) as i64 - 1, &[1, 1, queries, count], &[0, 0, -1, 1]).by(-1);
    let index = Index { from: start, base: 0, strides: vec![0; 4], bound: count + 1 };
    recipe.rearrange_by(vec![part], &index, mask.of(), task.site)?;
    Attention { mask: Some((mask.of(), 1.0)), ..of }.plan(recipe, task)
}
