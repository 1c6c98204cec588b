//! Heads of attention: split from projections, joined again, and turned by their positions.

use tilework_abi::eltwise::{Function, Step};
use tilework_model::ttnn::ops::attention::{
    NLPConcatHeadsDecodeOp, NLPCreateQKVHeadsDecodeOp, RotaryEmbeddingLlamaOp, RotaryEmbeddingOp,
    SplitQueryKeyValueAndSplitHeadsOp,
};
use tilework_ops::DType;

use super::matmul::Shape;
use super::norm::{self, one, two};
use super::rearrange::{Part, strides};
use super::stage::Line;
use crate::recipe::{Made, Of, Planned, Recipe, Site, Task, Which};

/// Four lengths of a tensor.
fn four(of: Of<'_>) -> Result<[usize; 4], String> {
    <[usize; 4]>::try_from(of.spec.logical_shape()).map_err(|_| "heads of other than four dimensions".into())
}

/// Whether a result has as many elements as heads of these lengths.
fn fits(of: Of<'_>, dims: &[usize]) -> Result<(), String> {
    let same = of.spec.logical_shape().iter().product::<usize>() == dims.iter().product();
    if same { Ok(()) } else { Err("heads of other sides than the result".into()) }
}

/// `[batch, heads, positions, size]` with the heads of a position one behind the other.
pub(super) fn joined(task: &Task<'_>) -> Planned {
    let (input, result) = (task.operand(0)?, task.result()?);
    let [batch, heads, positions, size] = four(input)?;
    let dims = [batch, positions, heads, size];
    fits(result, &dims)?;
    let steps = [heads * positions * size, size, positions * size, 1].map(|n| n as i64);
    let mut recipe = Recipe::default();
    recipe.strided((input, 0), (&dims, &steps), result, task.site)?;
    Ok(recipe)
}

/// `[1, batch, padded heads, size]` with the first heads of each one behind the other.
pub(super) fn joined_decode(op: &NLPConcatHeadsDecodeOp, task: &Task<'_>) -> Planned {
    let (input, result) = (task.operand(0)?, task.result()?);
    let [one, batch, padded, size] = four(input)?;
    let heads = op.num_heads as usize;
    if one != 1 || heads > padded {
        return Err("fewer heads than are joined".into());
    }
    let dims = [batch, heads, size];
    fits(result, &dims)?;
    let steps = [padded * size, size, 1].map(|n| n as i64);
    let mut recipe = Recipe::default();
    recipe.strided((input, 0), (&dims, &steps), result, task.site)?;
    Ok(recipe)
}

/// Adds the program that makes a result of heads: their dimensions and how far they are apart.
fn heads(
    recipe: &mut Recipe,
    (from, base): (Of<'_>, usize),
    result: usize,
    (dims, steps): ([usize; 4], [usize; 4]),
    task: &Task<'_>,
) -> Result<(), String> {
    let spec = task.results.get(result).ok_or("fewer than three results")?;
    if spec.logical_shape() != dims {
        return Err("heads of other sides than the result".into());
    }
    let part = Part::whole(from, base as i64, &dims, &steps.map(|n| n as i64));
    recipe.rearrange(vec![part], 0, Of { which: Which::Result(result), spec }, task.site)
}

pub(super) fn create_decode(op: &NLPCreateQKVHeadsDecodeOp, task: &Task<'_>) -> Planned {
    let input = task.operand(0)?;
    let [_, _, batch, width] = four(input)?;
    let count = op.num_heads as usize;
    let keys = op.num_kv_heads.map_or(count, |n| n as usize);
    let all = count + 2 * keys;
    if all == 0 || !width.is_multiple_of(all) {
        return Err("a width that heads do not divide".into());
    }
    let size = width / all;
    let mut recipe = Recipe::default();
    for (result, (first, count)) in [(0, count), (count, keys), (count + keys, keys)].into_iter().enumerate() {
        let lie = ([1, batch, count, size], [0, width, size, 1]);
        heads(&mut recipe, (input, first * size), result, lie, task)?;
    }
    Ok(recipe)
}

pub(super) fn split(op: &SplitQueryKeyValueAndSplitHeadsOp, task: &Task<'_>) -> Planned {
    let input = task.operand(0)?;
    let count = op.num_heads as usize;
    let keys = op.num_kv_heads.map_or(count, |n| n as usize);
    let other = op.kv_input.as_ref().map(|_| task.operand(1)).transpose()?;
    let [batch, positions, width] = *input.spec.logical_shape() else {
        return Err("other than three dimensions".into());
    };
    let (all, of_keys, first) = match other {
        Some(of) => (count, of, 0),
        None => (count + 2 * keys, input, count),
    };
    if all == 0 || !width.is_multiple_of(all) {
        return Err("a width that heads do not divide".into());
    }
    let size = width / all;
    let key_width = of_keys.spec.logical_shape().last().copied().unwrap_or(0);
    if other.is_some() && of_keys.spec.logical_shape() != [batch, positions, 2 * keys * size] {
        return Err("keys and values of other sides".into());
    }
    let mut recipe = Recipe::default();
    let lie = ([batch, count, positions, size], [positions * width, size, width, 1]);
    heads(&mut recipe, (input, 0), 0, lie, task)?;
    let of_key = [positions * key_width, size, key_width, 1];
    let plain = ([batch, keys, positions, size], of_key);
    let turned = ([batch, keys, size, positions], [of_key[0], of_key[1], 1, key_width]);
    let key = if op.transpose_key { turned } else { plain };
    heads(&mut recipe, (of_keys, first * size), 1, key, task)?;
    heads(&mut recipe, (of_keys, (first + keys) * size), 2, plain, task)?;
    Ok(recipe)
}

/// Cosines or sines in tiles, for an input of these dimensions: the first positions of a cache that
/// may have more, or one for all.
fn cache(of: Of<'_>, input: &[usize], token: Option<usize>, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
    let source = of.spec.logical_shape();
    let (rank, mut dims, mut base) = (source.len(), source.to_vec(), 0);
    if rank < 2 || input.len() < 2 || rank > input.len() {
        return Err("a cache without positions".into());
    }
    let steps = strides(source);
    let wanted = input[input.len() - 2];
    match token {
        Some(token) if token >= source[rank - 2] => return Err("a position that the cache does not have".into()),
        Some(token) => (dims[rank - 2], base) = (1, token as i64 * steps[rank - 2]),
        None => dims[rank - 2] = dims[rank - 2].min(wanted),
    }
    let made = recipe.tiles(&dims, of.spec.dtype())?;
    recipe.rearrange(vec![Part::whole(of, base, &dims, &steps)], 0, made.of(), site)?;
    Ok(made)
}

/// `x cos + turned sin`.
fn combined(
    x: Of<'_>,
    turned: Of<'_>,
    [cos, sin]: [&Made; 2],
    to: Of<'_>,
    recipe: &mut Recipe,
    site: &Site,
) -> Result<(), String> {
    let keep = Line::plain(Step::new(Function::Copy).of(1, 0, 0).to(2));
    let others = vec![
        (cos.of(), vec![two(Function::Multiply, 0, 1)]),
        (turned, vec![keep]),
        (sin.of(), vec![two(Function::Multiply, 1, 2), two(Function::Add, 0, 1)]),
    ];
    recipe.stages.push(norm::rows("rotary", (x, to), others, Vec::new(), site)?);
    Ok(())
}

/// The second half of a head, negated, comes before the first.
pub(super) fn rotary(op: &RotaryEmbeddingOp, task: &Task<'_>) -> Planned {
    let (x, result, site) = (task.operand(0)?, task.result()?, task.site);
    let dims = x.spec.logical_shape();
    let Some((&size, outer)) = dims.split_last().filter(|(size, _)| size.is_multiple_of(2)) else {
        return Err("heads of an odd size".into());
    };
    let mut recipe = Recipe::default();
    let token = op.token_index.map(|n| n as usize);
    let cos = cache(task.operand(1)?, dims, token, &mut recipe, site)?;
    let sin = cache(task.operand(2)?, dims, token, &mut recipe, site)?;
    let negative = recipe.tiles(dims, x.spec.dtype())?;
    let less = vec![one(Function::Scale, 0, -1.0)];
    recipe.stages.push(norm::rows("rotary-negative", (x, negative.of()), Vec::new(), less, site)?);
    let turned = recipe.tiles(dims, x.spec.dtype())?;
    let (steps, half) = (strides(dims), size / 2);
    let corner = |last: usize| outer.iter().copied().chain([last]).collect::<Vec<_>>();
    let begin = |last: usize| vec![0; outer.len()].into_iter().chain([last]).collect::<Vec<_>>();
    let parts = vec![
        Part::between(negative.of(), half as i64, [&begin(0), &corner(half)], &steps),
        Part::between(x, 0, [&begin(half), &corner(size)], &steps),
    ];
    recipe.rearrange(parts, 0, turned.of(), site)?;
    combined(x, turned.of(), [&cos, &sin], result, &mut recipe, site)?;
    Ok(recipe)
}

/// Turned by a matrix, as many columns at a time as it has.
pub(super) fn rotary_llama(op: &RotaryEmbeddingLlamaOp, task: &Task<'_>) -> Planned {
    let (x, matrix, result, site) = (task.operand(0)?, task.operand(3)?, task.result()?, task.site);
    let dims = x.spec.logical_shape();
    let side = match *matrix.spec.logical_shape() {
        [.., rows, columns] if rows == columns && rows > 0 => rows,
        _ => return Err("a matrix of other sides".into()),
    };
    let count = dims.iter().product::<usize>();
    if dims.last().is_none_or(|size| !size.is_multiple_of(side)) {
        return Err("heads of another size than the matrix".into());
    }
    let mut recipe = Recipe::default();
    let mut of_cache = |i: usize| {
        let of = task.operand(i)?;
        if !op.is_decode_mode || of.spec.logical_shape().len() != 4 {
            return cache(of, dims, None, &mut recipe, site);
        }
        // All heads are turned alike: rows behind the first are padding.
        let mut one = of.spec.logical_shape().to_vec();
        one[2] = 1;
        let made = recipe.tiles(&one, of.spec.dtype())?;
        recipe.rearrange(vec![Part::whole(of, 0, &one, &strides(of.spec.logical_shape()))], 0, made.of(), site)?;
        Ok(made)
    };
    let (cos, sin) = (of_cache(1)?, of_cache(2)?);
    let parts = recipe.tiles(&[count / side, side], x.spec.dtype())?;
    recipe.same_elements(x, parts.of(), site)?;
    let by = recipe.tiles(&[side, side], matrix.spec.dtype())?;
    recipe.rearrange(vec![Part::whole(matrix, 0, &[side, side], &[side as i64, 1])], 0, by.of(), site)?;
    let products = recipe.tiles(&[count / side, side], DType::F32)?;
    let [rows, inner] = parts.of().spec.shape_in_pages();
    let [_, columns] = by.of().spec.shape_in_pages();
    let shape = Shape { batch: 1, rows, inner, columns };
    recipe.product(shape, [parts.of(), by.of(), products.of()], op.compute_config.as_ref(), site)?;
    let turned = recipe.tiles(dims, DType::F32)?;
    recipe.same_elements(products.of(), turned.of(), site)?;
    combined(x, turned.of(), [&cos, &sin], result, &mut recipe, site)?;
    Ok(recipe)
}
