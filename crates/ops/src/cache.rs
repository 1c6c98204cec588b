//! Writing to key-value caches (tt-mlir `kv_cache.fbs`). The device writes in place; here the new
//! cache is the result, and the caller, which keeps tensors by name, replaces the old one.

use crate::error::{OpError, Reason};
use crate::tensor::{Native, Tensor, with_storage};
use crate::typecast;

/// Lines of the last dimension to copy: (line of the cache, line of the input).
fn written(cache: &Tensor, input: &Tensor, lines: &[(usize, usize)]) -> Tensor {
    let input = typecast(input, cache.dtype());
    let size = cache.shape().last();
    fn put<T: Native>(cache: &[T], input: &Tensor, size: usize, lines: &[(usize, usize)]) -> Vec<T> {
        let mut values = cache.to_vec();
        let from = input.values::<T>().unwrap_or_default();
        for &(to, line) in lines {
            values[to * size..(to + 1) * size].copy_from_slice(&from[line * size..(line + 1) * size]);
        }
        values
    }
    let storage = with_storage!(cache.storage(), |v| Native::store(put(v, &input, size, lines)));
    Tensor::wrap(cache.dtype(), cache.shape().clone(), storage)
}

/// The four dimensions of a cache and of its input. The sizes must agree, and dimension `heads` of
/// the input must hold at least the cache's heads.
fn dims(op: &'static str, cache: &Tensor, input: &Tensor, heads: usize) -> Result<([usize; 4], [usize; 4]), OpError> {
    let (c, i) = match (<[usize; 4]>::try_from(cache.shape().dims()), <[usize; 4]>::try_from(input.shape().dims())) {
        (Ok(c), Ok(i)) => (c, i),
        (Ok(_), Err(_)) => return Err(Reason::shape(input.shape(), "four dimensions").of(op, &[cache, input])),
        _ => return Err(Reason::shape(cache.shape(), "[batch x heads x positions x size]").of(op, &[cache, input])),
    };
    if c[3] != i[3] || i[heads] < c[1] {
        let wanted = format!("{} heads of size {}", c[1], c[3]);
        return Err(Reason::shape(input.shape(), wanted).of(op, &[cache, input]));
    }
    Ok((c, i))
}

/// A position or batch index below `bound`.
fn checked(op: &'static str, operands: &[&Tensor], index: i64, bound: usize) -> Result<usize, OpError> {
    let found = usize::try_from(index).ok().filter(|&i| i < bound);
    found.ok_or_else(|| Reason::Index { index, bound }.of(op, operands))
}

/// Writes `[b, heads, positions, size]` to the first positions of the cache's entries from
/// `batch_offset` on.
pub fn fill_cache(cache: &Tensor, input: &Tensor, batch_offset: usize) -> Result<Tensor, OpError> {
    const OP: &str = "fill_cache";
    let ([batch, heads, length, _], [entries, input_heads, positions, _]) = dims(OP, cache, input, 1)?;
    if positions > length || batch_offset.saturating_add(entries) > batch {
        let wanted = format!("at most {length} positions of {} entries", batch.saturating_sub(batch_offset));
        return Err(Reason::shape(input.shape(), wanted).of(OP, &[cache, input]));
    }
    let mut lines = Vec::new();
    for b in 0..entries {
        for h in 0..heads {
            let (to, from) = (((batch_offset + b) * heads + h) * length, (b * input_heads + h) * positions);
            lines.extend((0..positions).map(|p| (to + p, from + p)));
        }
    }
    Ok(written(cache, input, &lines))
}

/// Writes `[1, heads, b, size]` to position `update_index` (its first element) of `b` entries from
/// `batch_offset` on.
pub fn update_cache(
    cache: &Tensor,
    input: &Tensor,
    update_index: &Tensor,
    batch_offset: usize,
) -> Result<Tensor, OpError> {
    const OP: &str = "update_cache";
    let operands = [cache, input, update_index];
    let ([batch, heads, length, _], [one, _, entries, _]) = dims(OP, cache, input, 1)?;
    if one != 1 || batch_offset.saturating_add(entries) > batch {
        let wanted = format!("[1x{heads}x at most {} x size]", batch.saturating_sub(batch_offset));
        return Err(Reason::shape(input.shape(), wanted).of(OP, &operands));
    }
    let Some(&index) = update_index.to_i64().first() else {
        return Err(Reason::shape(update_index.shape(), "one index").of(OP, &operands));
    };
    let position = checked(OP, &operands, index, length)?;
    let each = (0..entries).flat_map(|b| (0..heads).map(move |h| (b, h)));
    let lines: Vec<_> =
        each.map(|(b, h)| (((batch_offset + b) * heads + h) * length + position, h * entries + b)).collect();
    Ok(written(cache, input, &lines))
}

/// The page that a table gives for a position, and the position within it.
struct Pages {
    table: Vec<i64>,
    columns: usize,
    rows: usize,
    pages: usize,
    length: usize,
}

impl Pages {
    fn new(op: &'static str, cache: &Tensor, table: &Tensor) -> Result<Pages, OpError> {
        let [rows, columns] = *table.shape().dims() else {
            return Err(Reason::shape(table.shape(), "[sequences x pages]").of(op, &[cache, table]));
        };
        let [pages, _, length, _] = *cache.shape().dims() else {
            return Err(Reason::shape(cache.shape(), "[pages x heads x length x size]").of(op, &[cache, table]));
        };
        Ok(Pages { table: table.to_i64(), columns, rows, pages, length })
    }

    fn find(
        &self,
        op: &'static str,
        operands: &[&Tensor],
        row: usize,
        position: usize,
    ) -> Result<(usize, usize), OpError> {
        let column = position / self.length.max(1);
        if row >= self.rows || column >= self.columns || self.length == 0 {
            let bound = self.columns.saturating_mul(self.length);
            return Err(Reason::Index { index: position as i64, bound }.of(op, operands));
        }
        let page = checked(op, operands, self.table[row * self.columns + column], self.pages)?;
        Ok((page, position % self.length))
    }
}

/// Writes `[1, users, heads, size]` (heads may be padded) to position `update_index[user]` of each
/// user's sequence. With a page table the cache is `[pages, heads, page length, size]`, without one
/// `[users, heads, length, size]`. A negative index leaves a user's sequence unchanged.
pub fn paged_update_cache(
    cache: &Tensor,
    input: &Tensor,
    update_index: &Tensor,
    page_table: Option<&Tensor>,
) -> Result<Tensor, OpError> {
    const OP: &str = "paged_update_cache";
    let operands = [cache, input, update_index];
    let ([batch, heads, length, _], [one, users, input_heads, _]) = dims(OP, cache, input, 2)?;
    if one != 1 || update_index.elements() != users {
        return Err(Reason::shape(update_index.shape(), format!("{users} positions")).of(OP, &operands));
    }
    let pages = page_table.map(|t| Pages::new(OP, cache, t)).transpose()?;
    let mut lines = Vec::new();
    for (user, index) in update_index.to_i64().into_iter().enumerate() {
        // The device's marker for "skip" is -1 in 32 bits.
        let index = i64::from(index as i32);
        if index < 0 {
            continue;
        }
        let (entry, position) = match &pages {
            Some(pages) => pages.find(OP, &operands, user, index as usize)?,
            None => (checked(OP, &operands, user as i64, batch)?, checked(OP, &operands, index, length)?),
        };
        lines.extend((0..heads).map(|h| ((entry * heads + h) * length + position, user * input_heads + h)));
    }
    Ok(written(cache, input, &lines))
}

/// Writes `[b, heads, positions, size]` to the first positions of sequences of a paged cache: entry
/// `b` to the sequence `batch_index[b]`, or `b` without it.
pub fn paged_fill_cache(
    cache: &Tensor,
    input: &Tensor,
    page_table: &Tensor,
    batch_index: Option<&Tensor>,
) -> Result<Tensor, OpError> {
    const OP: &str = "paged_fill_cache";
    let operands = [cache, input, page_table];
    let ([_, heads, length, _], [entries, input_heads, positions, _]) = dims(OP, cache, input, 1)?;
    let pages = Pages::new(OP, cache, page_table)?;
    let rows = match batch_index {
        Some(t) if t.elements() == entries => t.to_i64(),
        Some(t) => return Err(Reason::shape(t.shape(), format!("{entries} indices")).of(OP, &operands)),
        None => (0..entries as i64).collect(),
    };
    let mut lines = Vec::new();
    for (b, &row) in rows.iter().enumerate() {
        let row = checked(OP, &operands, row, pages.rows)?;
        for position in 0..positions {
            let (page, at) = pages.find(OP, &operands, row, position)?;
            let from = |h: usize| (b * input_heads + h) * positions + position;
            lines.extend((0..heads).map(|h| ((page * heads + h) * length + at, from(h))));
        }
    }
    Ok(written(cache, input, &lines))
}
