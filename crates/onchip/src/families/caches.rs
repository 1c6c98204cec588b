//! Key and value caches: what is written to them, and the rest of them, make the cache anew.

use tilework_abi::eltwise::{Function, Step};
use tilework_model::ttnn::ops::kv_cache::{FillCacheOp, PagedFillCacheOp, PagedUpdateCacheOp, UpdateCacheOp};
use tilework_runtime::tensor::Layout;

use super::eltwise;
use super::places::{integers, number, whole};
use super::rearrange::{Index, Part, strides};
use super::stage::Line;
use crate::recipe::{Made, Of, Planned, Recipe, Site, Task};

/// Columns of a tile, that numbers of columns begin in.
const TILE: usize = 32;

/// Four lengths of a tensor.
fn four(of: Of<'_>) -> Result<[usize; 4], String> {
    <[usize; 4]>::try_from(of.spec.logical_shape()).map_err(|_| "a cache of other than four dimensions".into())
}

/// What is written to a cache, in its element type.
fn typed(input: Of<'_>, cache: Of<'_>, recipe: &mut Recipe, site: &Site) -> Result<Option<Made>, String> {
    let (dtype, dims) = (cache.spec.dtype(), input.spec.logical_shape());
    if input.spec.dtype() == dtype {
        return Ok(None);
    }
    let tiled = match input.spec.layout() == Layout::TILE {
        true => None,
        false => Some(recipe.in_tiles(input, dims, site)?),
    };
    let made = recipe.tiles(dims, dtype)?;
    eltwise::cast_to(recipe, tiled.as_ref().map_or(input, Made::of), made.of(), site)?;
    Ok(Some(made))
}

/// Cache, input in its type, and their lengths, of which `heads` of the input says how many heads
/// it has.
fn sides(task: &Task<'_>, heads: usize) -> Result<([usize; 4], [usize; 4]), String> {
    let (cache, input) = (four(task.operand(0)?)?, four(task.operand(1)?)?);
    let result = task.result()?.spec.logical_shape();
    if cache[3] != input[3] || input[heads] < cache[1] || result != cache {
        return Err("heads of other sides than those of the cache".into());
    }
    Ok((cache, input))
}

pub(super) fn fill(op: &FillCacheOp, task: &Task<'_>) -> Planned {
    let (cache, input, result) = (task.operand(0)?, task.operand(1)?, task.result()?);
    let ([batch, heads, length, size], [entries, _, positions, _]) = sides(task, 1)?;
    let first = op.batch_offset as usize;
    if positions > length || first + entries > batch {
        return Err("more than the cache has room for".into());
    }
    let mut recipe = Recipe::default();
    let made = typed(input, cache, &mut recipe, task.site)?;
    let input = made.as_ref().map_or(input, Made::of);
    let (low, high) = ([first, 0, 0, 0], [first + entries, heads, positions, size]);
    let part = Part::between(input, 0, [&low, &high], &strides(input.spec.logical_shape()));
    let whole = Part::in_order(cache, cache.spec.logical_shape());
    recipe.rearrange(vec![whole, part], 0, result, task.site)?;
    Ok(recipe)
}

pub(super) fn update(op: &UpdateCacheOp, task: &Task<'_>) -> Planned {
    let (cache, input, index) = (task.operand(0)?, task.operand(1)?, task.operand(2)?);
    let ([batch, heads, length, size], [one, _, entries, _]) = sides(task, 1)?;
    let first = op.batch_offset as usize;
    if one != 1 || first + entries > batch || index.spec.logical_shape().iter().product::<usize>() == 0 {
        return Err("more than the cache has room for".into());
    }
    let mut recipe = Recipe::default();
    let made = typed(input, cache, &mut recipe, task.site)?;
    let input = made.as_ref().map_or(input, Made::of);
    let (low, high) = ([first, 0, 0, 0], [first + entries, heads, 1, size]);
    let steps = [size, entries * size, 0, 1].map(|n| n as i64);
    let part = Part::between(input, 0, [&low, &high], &steps).moved(2);
    let whole = Part::in_order(cache, cache.spec.logical_shape());
    let index = Index { from: index, base: 0, strides: vec![0; 4], bound: length };
    recipe.rearrange_by(vec![whole, part], &index, task.result()?, task.site)?;
    Ok(recipe)
}

/// A cache of pages `[pages, heads, length, size]` with rows `[count, heads x size]` written to
/// places, which are counted over all pages.
fn paged(recipe: &mut Recipe, [cache, updates]: [Of<'_>; 2], places: Of<'_>, task: &Task<'_>) -> Result<(), String> {
    let [pages, heads, length, size] = four(cache)?;
    let dims = [pages, length, heads, size];
    let rows = recipe.rows(&dims, cache.spec.dtype())?;
    let steps = [heads * length * size, size, length * size, 1].map(|n| n as i64);
    recipe.rearrange(vec![Part::whole(cache, 0, &dims, &steps)], 0, rows.of(), task.site)?;
    let (index, steps) = ([length, 0, 1, 0].map(|n| n as i64), [0, size, 0, 1].map(|n| n as i64));
    let sides = [pages * length, heads * size];
    recipe.written([rows.of(), updates], sides, places, (&index, &steps), task.result()?, task.site)
}

/// One position of each user. A negative one leaves the user's sequence as it is.
pub(super) fn paged_update(op: &PagedUpdateCacheOp, task: &Task<'_>) -> Planned {
    let (cache, input, index) = (task.operand(0)?, task.operand(1)?, task.operand(2)?);
    let ([pages, heads, length, size], [one, users, padded, _]) = sides(task, 2)?;
    whole(index)?;
    if op.share_cache || one != 1 || index.spec.logical_shape().iter().product::<usize>() != users {
        return Err("other than a position for each user".into());
    }
    let site = task.site;
    let mut recipe = Recipe::default();
    let made = typed(input, cache, &mut recipe, site)?;
    let input = made.as_ref().map_or(input, Made::of);
    let at = recipe.in_tiles(index, &[1, users], site)?;
    let lines = vec![number(1, 0), integers(Function::IntegerMax, 0, 1)];
    let mut used = recipe.of_integers(at.of(), None, lines, site)?;
    // Where in its sequence each user's page is, and which page that is.
    let page = match &op.page_table {
        Some(_) => {
            let table = task.operand(3)?;
            whole(table)?;
            let [sequences, each] = *table.spec.logical_shape() else { return Err("a table of other sides".into()) };
            if sequences < users {
                return Err("fewer sequences than users".into());
            }
            let lines = vec![number(1, length), integers(Function::IntegerDivide, 0, 1)];
            let column = recipe.of_integers(used.of(), None, lines, site)?;
            let page = recipe.tiles(&[1, users], table.spec.dtype())?;
            let part = Part::whole(table, 0, &[1, users], &[0, each as i64]).by(1);
            let by = Index { from: column.of(), base: 0, strides: vec![0, 1], bound: each };
            recipe.rearrange_by(vec![part], &by, page.of(), site)?;
            recipe.checked(page.of(), pages, site)?
        }
        None if users <= TILE && users <= pages => {
            used = recipe.checked(used.of(), length, site)?;
            let lines = vec![Line::new(Step::new(Function::ColumnNumbers), [0, 0])];
            recipe.of_integers(at.of(), None, lines, site)?
        }
        None => return Err(format!("{users} users of a cache of {pages} sequences")),
    };
    let times = vec![number(1, length), integers(Function::IntegerMultiply, 0, 1)];
    let begin = recipe.of_integers(page.of(), None, times, site)?;
    let within = vec![number(1, length), integers(Function::IntegerRemainder, 0, 1)];
    let inside = recipe.of_integers(used.of(), None, within, site)?;
    let add = vec![integers(Function::IntegerAdd, 0, 1)];
    let places = recipe.of_integers(begin.of(), Some(inside.of()), add, site)?;
    let places = recipe.unless_negative(places.of(), at.of(), pages * length, site)?;
    let updates = recipe.rows(&[users, heads, size], cache.spec.dtype())?;
    let steps = [padded * size, size, 1].map(|n| n as i64);
    recipe.rearrange(vec![Part::whole(input, 0, &[users, heads, size], &steps)], 0, updates.of(), site)?;
    paged(&mut recipe, [cache, updates.of()], places.of(), task)?;
    Ok(recipe)
}

/// The first positions of sequences: of entry `b` to the sequence that the second tensor says, or
/// `b` without it.
pub(super) fn paged_fill(op: &PagedFillCacheOp, task: &Task<'_>) -> Planned {
    let (cache, input, table) = (task.operand(0)?, task.operand(1)?, task.operand(2)?);
    let ([pages, heads, length, size], [entries, padded, positions, _]) = sides(task, 1)?;
    whole(table)?;
    let [sequences, each] = *table.spec.logical_shape() else { return Err("a table of other sides".into()) };
    let blocks = positions.div_ceil(length.max(1));
    if blocks > each || positions == 0 || (op.batch_idx_tensor.is_none() && entries > sequences) {
        return Err("more than the pages have room for".into());
    }
    let site = task.site;
    let mut recipe = Recipe::default();
    let made = typed(input, cache, &mut recipe, site)?;
    let input = made.as_ref().map_or(input, Made::of);
    let dims = [entries, blocks, length];
    let of_page = recipe.rows(&dims, table.spec.dtype())?;
    let part = |step: i64| Part::whole(table, 0, &dims, &[step, 1, 0]);
    match &op.batch_idx_tensor {
        Some(_) => {
            let which = task.operand(3)?;
            if which.spec.logical_shape().iter().product::<usize>() != entries {
                return Err("other than a sequence for each entry".into());
            }
            let index = Index { from: which, base: 0, strides: vec![1, 0, 0], bound: sequences };
            recipe.rearrange_by(vec![part(0).by(each as i64)], &index, of_page.of(), site)?;
        }
        None => recipe.rearrange(vec![part(each as i64)], 0, of_page.of(), site)?,
    }
    let page = recipe.in_tiles(of_page.of(), &[entries * blocks, length], site)?;
    let page = recipe.checked(page.of(), pages, site)?;
    let count = recipe.count_up(length, site)?;
    let inside = recipe.in_tiles(count.of(), &[1, length], site)?;
    let lines =
        vec![number(2, length), integers(Function::IntegerMultiply, 0, 2), integers(Function::IntegerAdd, 0, 1)];
    let all = recipe.of_integers(page.of(), Some(inside.of()), lines, site)?;
    let places = recipe.rows(&[entries, positions], all.of().spec.dtype())?;
    let part = Part::whole(all.of(), 0, &[entries, positions], &[(blocks * length) as i64, 1]);
    recipe.rearrange(vec![part], 0, places.of(), site)?;
    let dims = [entries, positions, heads, size];
    let updates = recipe.rows(&dims, cache.spec.dtype())?;
    let steps = [padded * positions * size, size, positions * size, 1].map(|n| n as i64);
    recipe.rearrange(vec![Part::whole(input, 0, &dims, &steps)], 0, updates.of(), site)?;
    paged(&mut recipe, [cache, updates.of()], places.of(), task)?;
    Ok(recipe)
}
