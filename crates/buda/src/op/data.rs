//! Operations that choose values instead of computing them: embedding and topk.
//!
//! Where the public documents leave a choice, this is it:
//! - embedding: index i of a core is the i-th value of the index operand's matrix in row-major
//!   order, `num_indices` for each row of cores; rows of the result beyond them are zero. Indices
//!   are whole numbers below the rows of the table.
//! - topk: each core sorts its own columns, row by row, largest first, of equal values the one
//!   further left first, NaNs last; columns of the result beyond k are zero. `kreduce` takes
//!   results of other cores, of which only the first k columns of each group count.

use std::cmp::Ordering;

use rayon::prelude::*;
use tilework_netlist::types::{Blocks, Shape, TopKOutput};

use super::Reason;
use crate::tensor::{Tensor, shape_of};

/// Rows of a table, chosen by indices.
pub fn embedding(num_indices: u32, table: &Tensor, indices: &Tensor, blocks: &Blocks) -> Result<Tensor, Reason> {
    let shape = shape_of(blocks)?;
    let from = table.shape();
    let wanted = Shape { t: from.t, rows: from.rows, columns: shape.columns };
    if from != wanted || from.t != 1 && from.t != shape.t {
        let why = "a table has the columns of the result, and one matrix or as many as the result";
        let t = if from.t == 1 { 1 } else { shape.t };
        return Err(Reason::Shape { operand: 0, found: from, wanted: Shape { t, ..wanted }, why });
    }
    let (cores, count) = (blocks.grid.r as usize, num_indices as usize);
    let rows = shape.rows.checked_div(cores).unwrap_or(0);
    let places = indices.shape().rows * indices.shape().columns;
    if indices.shape().t != shape.t || count > rows || count.saturating_mul(cores) > places {
        let why = format!(
            "{count} for each of {cores} rows of cores, which have {rows} rows of the result and {places} indices"
        );
        return Err(Reason::attribute("num_indices", why));
    }
    let mut values = vec![0.0; shape.t * shape.rows * shape.columns];
    for z in 0..shape.t {
        let matrix = &table.values()[if from.t == 1 { 0 } else { z * from.rows * from.columns }..];
        for i in 0..cores * count {
            let index = indices.values()[z * places + i];
            if !(index >= 0.0 && index.fract() == 0.0 && index < from.rows as f32) {
                return Err(Reason::Index { what: "row of the table", index, bound: from.rows });
            }
            let row = z * shape.rows + i / count * rows + i % count;
            values[row * shape.columns..][..shape.columns]
                .copy_from_slice(&matrix[index as usize * shape.columns..][..shape.columns]);
        }
    }
    Ok(Tensor::new(shape, blocks.tile, values)?)
}

/// Parameters of `topk`.
#[derive(Debug, Clone, Copy)]
pub struct TopK {
    /// Number of values to keep.
    pub k: usize,
    /// Values, or what the second operand holds in their places.
    pub output: TopKOutput,
    /// The operands are results of `topk` side by side.
    pub reduce: bool,
}

/// The k largest of each row.
pub fn topk(ask: TopK, keys: &Tensor, labels: &Tensor, blocks: &Blocks) -> Result<Tensor, Reason> {
    let (shape, from) = (shape_of(blocks)?, keys.shape());
    if labels.shape() != from {
        let why = "indices have the shape of the values";
        return Err(Reason::Shape { operand: 1, found: labels.shape(), wanted: from, why });
    }
    let cores = blocks.grid.c as usize;
    let (own, width) = (from.columns.checked_div(cores).unwrap_or(0), shape.columns.checked_div(cores).unwrap_or(0));
    // Groups are as wide as the result of one core.
    let counts = |column: usize| !ask.reduce || column % width < ask.k;
    let candidates = if width == 0 { 0 } else { (0..own).filter(|&c| counts(c)).count() };
    if own * cores != from.columns || ask.k == 0 || ask.k > width || ask.k > candidates {
        let why = format!("{} of {candidates} columns of each core, whose result has {width}", ask.k);
        return Err(Reason::attribute("k", why));
    }
    let wanted = Shape { columns: from.columns, ..shape };
    if from != wanted {
        let why = "it has the rows and matrices of the result";
        return Err(Reason::Shape { operand: 0, found: from, wanted, why });
    }
    let mut values = vec![0.0; shape.t * shape.rows * shape.columns];
    values.par_chunks_mut(width).enumerate().with_min_len(16).for_each(|(i, out)| {
        let (keys, labels) = (&keys.values()[i * own..][..own], &labels.values()[i * own..][..own]);
        let mut order: Vec<usize> = (0..own).filter(|&c| counts(c)).collect();
        let compare = |&a: &usize, &b: &usize| descending(keys[a], keys[b]).then(a.cmp(&b));
        if ask.k < order.len() {
            order.select_nth_unstable_by(ask.k - 1, compare);
            order.truncate(ask.k);
        }
        order.sort_unstable_by(compare);
        let chosen = if ask.output == TopKOutput::Max { keys } else { labels };
        out.iter_mut().zip(order).for_each(|(o, c)| *o = chosen[c]);
    });
    Ok(Tensor::new(shape, blocks.tile, values)?)
}

/// Larger values first, NaNs last; zeros are equal.
fn descending(a: f32, b: f32) -> Ordering {
    b.partial_cmp(&a).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
}
