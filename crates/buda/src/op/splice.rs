//! Splice: interleaves pieces of several operands.
//!
//! Every operand has an offset. In each turn every operand adds `index` to its offset, contributes
//! `length` units from there and adds `stride`; turns repeat until the output is full, and then
//! each offset must be at the end of its operand (tt-budabackend, `ops/nary_bare.cpp`). A unit is a
//! ublock of the part of a core, counted in the operation's ublock order, or a whole matrix.

use tilework_netlist::types::{Blocks, Granularity, Order, Piece, Shape};

use super::Reason;
use crate::tensor::{Tensor, shape_of};

/// Operand and unit.
type Unit = (usize, usize);

/// Joins the pieces of the operands; `blocks` are those of the result.
pub fn splice(
    granularity: Granularity,
    pieces: &[Piece],
    inputs: &[&Tensor],
    blocks: &Blocks,
) -> Result<Tensor, Reason> {
    if inputs.len() != pieces.len() || inputs.is_empty() {
        let wanted = format!("{} by its attributes", pieces.len());
        return Err(Reason::Operands { found: inputs.len(), wanted });
    }
    match granularity {
        Granularity::T => matrices(pieces, inputs, blocks),
        Granularity::Ublock => ublocks(pieces, inputs, blocks),
    }
}

/// The `count` units of the output in order, where operand i has `has[i]` units.
fn turns(pieces: &[Piece], has: &[usize], count: usize, unit: &'static str) -> Result<Vec<Unit>, Reason> {
    let mut offsets = vec![0usize; pieces.len()];
    let mut units = Vec::with_capacity(count);
    while units.len() < count {
        let before = units.len();
        for (operand, piece) in pieces.iter().enumerate() {
            if units.len() == count {
                break;
            }
            let first = offsets[operand].saturating_add(piece.index as usize);
            let end = first.saturating_add(piece.length as usize);
            if end > has[operand] {
                return Err(Reason::Splice { operand, used: end, has: has[operand], unit });
            }
            units.extend((first..end).map(|i| (operand, i)));
            offsets[operand] = first.saturating_add(piece.stride as usize);
        }
        if units.len() == before {
            return Err(Reason::attribute("length", "no operand gives anything"));
        }
    }
    // Too many units show as an operand that is not used up.
    for (operand, (&used, &has)) in offsets.iter().zip(has).enumerate() {
        if used != has || units.len() > count {
            return Err(Reason::Splice { operand, used, has, unit });
        }
    }
    Ok(units)
}

/// Joins whole matrices.
fn matrices(pieces: &[Piece], inputs: &[&Tensor], blocks: &Blocks) -> Result<Tensor, Reason> {
    let shape = shape_of(blocks)?;
    for (operand, x) in inputs.iter().enumerate() {
        let wanted = Shape { t: x.shape().t, ..shape };
        if x.shape() != wanted {
            let why = "matrices of the operands are as large as those of the result";
            return Err(Reason::Shape { operand, found: x.shape(), wanted, why });
        }
    }
    let has: Vec<usize> = inputs.iter().map(|x| x.shape().t).collect();
    let size = shape.rows * shape.columns;
    let mut values = Vec::with_capacity(shape.t * size);
    for (operand, z) in turns(pieces, &has, shape.t, "matrices")? {
        values.extend_from_slice(&inputs[operand].values()[z * size..][..size]);
    }
    Ok(Tensor::new(shape, blocks.tile, values)?)
}

/// The ublocks of one core's part of a matrix.
#[derive(Debug, Clone, Copy)]
struct CoreUblocks {
    /// Rows and columns of the part in elements.
    rows: usize,
    columns: usize,
    /// Rows and columns of ublocks.
    down: usize,
    across: usize,
}

impl CoreUblocks {
    /// Row and column of a ublock's first element.
    fn place(&self, order: Order, index: usize) -> (usize, usize) {
        let (r, c) = match order {
            Order::Row => (index / self.across, index % self.across),
            Order::Column => (index % self.down, index / self.down),
        };
        (r * (self.rows / self.down), c * (self.columns / self.across))
    }
}

/// Joins ublocks, the same way on every core and for every matrix.
fn ublocks(pieces: &[Piece], inputs: &[&Tensor], blocks: &Blocks) -> Result<Tensor, Reason> {
    let shape = shape_of(blocks)?;
    let grid = (blocks.grid.r as usize, blocks.grid.c as usize);
    let ublock = (blocks.ublock.r as usize * blocks.tile.r as usize, blocks.ublock.c as usize * blocks.tile.c as usize);
    let part = |s: Shape| -> Option<CoreUblocks> {
        let whole = |length: usize, cores: usize, unit: usize| {
            let units = length.checked_div(cores.checked_mul(unit)?)?;
            (units > 0 && units * cores * unit == length).then_some(units)
        };
        let (down, across) = (whole(s.rows, grid.0, ublock.0)?, whole(s.columns, grid.1, ublock.1)?);
        Some(CoreUblocks { rows: s.rows / grid.0, columns: s.columns / grid.1, down, across })
    };
    let mut parts = Vec::new();
    for (operand, x) in inputs.iter().enumerate() {
        match part(x.shape()).filter(|_| x.shape().t == shape.t) {
            Some(part) => parts.push(part),
            None => {
                let why = "every core needs whole ublocks of it, for as many matrices as the result has";
                return Err(Reason::Shape { operand, found: x.shape(), wanted: shape, why });
            }
        }
    }
    let Some(target) = part(shape) else { return Ok(Tensor::full(shape, blocks.tile, 0.0)?) };
    let has: Vec<usize> = parts.iter().map(|p| p.down * p.across).collect();
    let units = turns(pieces, &has, target.down * target.across, "ublocks of each core")?;
    let mut values = vec![0.0; shape.t * shape.rows * shape.columns];
    for z in 0..shape.t {
        for core in 0..grid.0 * grid.1 {
            let (gr, gc) = (core / grid.1, core % grid.1);
            for (i, &(operand, unit)) in units.iter().enumerate() {
                let (from, source) = (&parts[operand], inputs[operand]);
                let (r, c) = from.place(blocks.order, unit);
                let (to_r, to_c) = target.place(blocks.order, i);
                let start = |s: Shape, p: &CoreUblocks, r: usize, c: usize| {
                    (z * s.rows + gr * p.rows + r) * s.columns + gc * p.columns + c
                };
                let (mut at, mut to) = (start(source.shape(), from, r, c), start(shape, &target, to_r, to_c));
                for _ in 0..ublock.0 {
                    values[to..to + ublock.1].copy_from_slice(&source.values()[at..at + ublock.1]);
                    at += source.shape().columns;
                    to += shape.columns;
                }
            }
        }
    }
    Ok(Tensor::new(shape, blocks.tile, values)?)
}
