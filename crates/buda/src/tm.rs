//! TMs: rearrangements and padding of an operand before an operation.
//!
//! Slices cut a matrix into n, which become neighbours along t: z' = z * n + k. Stacks are their
//! inverse; 0 stacks all matrices. Broadcasts repeat the whole tensor. A transposition is complete
//! here: on the chip the TM exchanges tiles and the operation exchanges rows and columns within
//! them (tt-budabackend, `docs/public/netlist.md`, section TMs).

use tilework_netlist::types::{Dim, Pad, Shape, Size, Tm};

use crate::op::Reason;
use crate::tensor::{Tensor, TensorError, check};

/// Applies TMs in order. Errors name `operand`.
pub fn apply(operand: usize, tms: &[Tm], x: &Tensor) -> Result<Tensor, Reason> {
    tms.iter().try_fold(x.clone(), |x, tm| one(operand, tm, &x))
}

/// Applies one TM.
fn one(operand: usize, tm: &Tm, x: &Tensor) -> Result<Tensor, Reason> {
    let fail = |why: String| Reason::Tm { operand, tm: name(tm), found: x.shape(), why };
    let result = match *tm {
        Tm::Broadcast(_, 0) | Tm::HSlice(0) | Tm::VSlice(0) => return Err(fail("the count is 0".into())),
        Tm::Broadcast(dim, n) => broadcast(dim, n as usize, x),
        Tm::HSlice(n) => {
            if !x.tile_columns().is_multiple_of(n as usize) {
                return Err(fail(format!("{} columns of tiles are no {n} equal parts", x.tile_columns())));
            }
            hslice(n as usize, x)
        }
        Tm::VSlice(n) => {
            if !x.tile_rows().is_multiple_of(n as usize) {
                return Err(fail(format!("{} rows of tiles are no {n} equal parts", x.tile_rows())));
            }
            let shape = x.shape();
            x.reshaped(Shape { t: shape.t * n as usize, rows: shape.rows / n as usize, ..shape }, x.tile())
        }
        Tm::HStack(n) | Tm::VStack(n) => {
            let n = if n == 0 { x.shape().t } else { n as usize };
            if n == 0 || !x.shape().t.is_multiple_of(n) {
                return Err(fail(format!("{} matrices are no whole groups of {n}", x.shape().t)));
            }
            let shape = x.shape();
            match tm {
                Tm::HStack(_) => hstack(n, x),
                _ => x.reshaped(Shape { t: shape.t / n, rows: shape.rows * n, ..shape }, x.tile()),
            }
        }
        Tm::Transpose => transpose(x),
        Tm::TileBroadcast(Dim::Z) => return Err(fail("a tile has rows and columns only".into())),
        Tm::TileBroadcast(dim) => tile_broadcast(dim, x),
        Tm::Pad(pad) => return self::pad(operand, &pad, x),
    };
    result.map_err(|error| fail(error.to_string()))
}

/// A TM as the netlist writes it.
fn name(tm: &Tm) -> String {
    let dim = |dim: Dim| match dim {
        Dim::R => "r",
        Dim::C => "c",
        Dim::Z => "z",
    };
    match tm {
        Tm::Broadcast(d, n) => format!("broadcast: {{{}: {n}}}", dim(*d)),
        Tm::HSlice(n) => format!("hslice: {n}"),
        Tm::HStack(n) => format!("hstack: {n}"),
        Tm::VSlice(n) => format!("vslice: {n}"),
        Tm::VStack(n) => format!("vstack: {n}"),
        Tm::Transpose => "transpose".into(),
        Tm::TileBroadcast(d) => format!("tile_broadcast: {}", dim(*d)),
        Tm::Pad(pad) => format!("pad: [{}, {}, {}]", pad.rt, pad.ct, pad.value),
    }
}

/// The length of a line, at least 1, for dividing slices into lines.
fn line(length: usize) -> usize {
    length.max(1)
}

/// Repeats the tensor `n` times along a dimension.
pub fn broadcast(dim: Dim, n: usize, x: &Tensor) -> Result<Tensor, TensorError> {
    let shape = x.shape();
    let (result, unit) = match dim {
        Dim::C => (Shape { columns: shape.columns.saturating_mul(n), ..shape }, shape.columns),
        Dim::R => (Shape { rows: shape.rows.saturating_mul(n), ..shape }, shape.rows * shape.columns),
        Dim::Z => (Shape { t: shape.t.saturating_mul(n), ..shape }, x.elements()),
    };
    let mut values = Vec::with_capacity(check(result, x.tile())?);
    for part in x.values().chunks(line(unit)) {
        (0..n).for_each(|_| values.extend_from_slice(part));
    }
    Tensor::new(result, x.tile(), values)
}

/// Cuts each matrix into `n` side by side; `n` divides the columns.
fn hslice(n: usize, x: &Tensor) -> Result<Tensor, TensorError> {
    let shape = x.shape();
    let width = shape.columns / n;
    let mut values = Vec::with_capacity(x.elements());
    for matrix in x.values().chunks(line(shape.rows * shape.columns)) {
        for k in 0..n {
            matrix.chunks(line(shape.columns)).for_each(|row| values.extend_from_slice(&row[k * width..][..width]));
        }
    }
    Tensor::new(Shape { t: shape.t * n, columns: width, ..shape }, x.tile(), values)
}

/// Joins groups of `n` matrices side by side; `n` divides the matrices.
fn hstack(n: usize, x: &Tensor) -> Result<Tensor, TensorError> {
    let shape = x.shape();
    let size = shape.rows * shape.columns;
    let mut values = Vec::with_capacity(x.elements());
    for group in x.values().chunks(line(size * n)) {
        for row in 0..shape.rows {
            group
                .chunks(line(size))
                .for_each(|matrix| values.extend_from_slice(&matrix[row * shape.columns..][..shape.columns]));
        }
    }
    Tensor::new(Shape { t: shape.t / n, columns: shape.columns * n, ..shape }, x.tile(), values)
}

/// Exchanges rows and columns, of tiles as well.
pub fn transpose(x: &Tensor) -> Result<Tensor, TensorError> {
    /// Rows and columns that are exchanged together, so that both sides stay in cache.
    const BLOCK: usize = 32;
    let shape = x.shape();
    let (rows, columns) = (shape.rows, shape.columns);
    let mut values = vec![0.0; x.elements()];
    for (from, to) in x.values().chunks(line(rows * columns)).zip(values.chunks_mut(line(rows * columns))) {
        for r in (0..rows).step_by(BLOCK) {
            for c in (0..columns).step_by(BLOCK) {
                for i in r..rows.min(r + BLOCK) {
                    for j in c..columns.min(c + BLOCK) {
                        to[j * rows + i] = from[i * columns + j];
                    }
                }
            }
        }
    }
    let tile = Size { r: x.tile().c, c: x.tile().r };
    Tensor::new(Shape { t: shape.t, rows: columns, columns: rows }, tile, values)
}

/// Repeats row 0 or column 0 of every tile over the tile.
pub fn tile_broadcast(dim: Dim, x: &Tensor) -> Result<Tensor, TensorError> {
    let (height, width) = (x.tile().r as usize, x.tile().c as usize);
    let columns = line(x.shape().columns);
    let mut values = x.values().to_vec();
    for band in values.chunks_mut(columns * height) {
        match dim {
            Dim::R => {
                let (first, others) = band.split_at_mut(columns);
                others.chunks_mut(columns).for_each(|row| row.copy_from_slice(first));
            }
            _ => band.chunks_mut(width).for_each(|part| part.fill(part[0])),
        }
    }
    Tensor::new(x.shape(), x.tile(), values)
}

/// The same tiles in another size: each is cut, or filled up with zeros, at the bottom
/// and the right.
pub fn retile(x: &Tensor, tile: Size) -> Result<Tensor, TensorError> {
    let (from, (rows, columns)) = (x.tile(), (x.tile_rows(), x.tile_columns()));
    let length = |tiles: usize, size: u32| tiles.saturating_mul(size as usize);
    let shape = Shape { t: x.shape().t, rows: length(rows, tile.r), columns: length(columns, tile.c) };
    let mut values = vec![0.0; check(shape, tile)?];
    let (height, width) = (from.r.min(tile.r) as usize, from.c.min(tile.c) as usize);
    for band in 0..shape.t * rows {
        for r in 0..height {
            let line = &x.values()[(band * from.r as usize + r) * x.shape().columns..][..x.shape().columns];
            let out = &mut values[(band * tile.r as usize + r) * shape.columns..][..shape.columns];
            let parts = line.chunks(from.c as usize).zip(out.chunks_mut(tile.c as usize));
            parts.for_each(|(part, out)| out[..width].copy_from_slice(&part[..width]));
        }
    }
    Tensor::new(shape, tile, values)
}

/// Adds tiles of a value at the bottom and the right.
pub fn pad(operand: usize, pad: &Pad, x: &Tensor) -> Result<Tensor, Reason> {
    let shape = x.shape();
    let more = |length: usize, tiles: u32, tile: u32| length.saturating_add(tiles as usize * tile as usize);
    let (rows, columns) = (more(shape.rows, pad.rt, x.tile().r), more(shape.columns, pad.ct, x.tile().c));
    let result = Shape { rows, columns, ..shape };
    let fail = |e: TensorError| Reason::Tm { operand, tm: name(&Tm::Pad(*pad)), found: shape, why: e.to_string() };
    let mut values = Vec::with_capacity(check(result, x.tile()).map_err(fail)?);
    for t in 0..shape.t {
        for row in 0..shape.rows {
            values.extend_from_slice(&x.values()[(t * shape.rows + row) * shape.columns..][..shape.columns]);
            values.resize(values.len() + columns - shape.columns, pad.value);
        }
        values.resize(values.len() + (rows - shape.rows) * columns, pad.value);
    }
    Tensor::new(result, x.tile(), values).map_err(fail)
}

/// Takes tiles off at the bottom and the right.
pub fn unpad(operand: usize, pad: &Pad, x: &Tensor) -> Result<Tensor, Reason> {
    let shape = x.shape();
    let (rt, ct) = (pad.rt as usize, pad.ct as usize);
    if rt > x.tile_rows() || ct > x.tile_columns() {
        let why = "there are not so many tiles".into();
        return Err(Reason::Tm { operand, tm: format!("unpad: [{rt}, {ct}]"), found: shape, why });
    }
    let rows = shape.rows - rt * x.tile().r as usize;
    let columns = shape.columns - ct * x.tile().c as usize;
    let mut values = Vec::with_capacity(shape.t * rows * columns);
    for matrix in x.values().chunks(line(shape.rows * shape.columns)) {
        matrix.chunks(line(shape.columns)).take(rows).for_each(|row| values.extend_from_slice(&row[..columns]));
    }
    Ok(Tensor::new(Shape { rows, columns, ..shape }, x.tile(), values)?)
}
