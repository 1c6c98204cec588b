//! The maximum along a dimension.
//!
//! Along columns (`c`) one column of tiles is left, with the values in column 0 and zeros
//! elsewhere; along rows (`r`) one row of tiles with the values in row 0; along both the value is
//! at the first place of one tile. Along `z` the largest of each group of z matrices is taken
//! element by element (tt-budabackend, `ops/reduce_bare.cpp`). A NaN wins.

use tilework_netlist::types::{ReduceDim, Shape};

use super::Reason;
use super::binary::larger;
use crate::tensor::{Tensor, check};

/// Reduces every matrix, or groups of `z` of them. `k` are m_k and u_kt, which give the tiles along
/// the dimension.
pub fn reduce(dim: ReduceDim, k: Option<(u32, u32)>, z: u32, x: &Tensor) -> Result<Tensor, Reason> {
    let along = match dim {
        ReduceDim::R => Some(x.tile_rows()),
        ReduceDim::C => Some(x.tile_columns()),
        ReduceDim::Rc | ReduceDim::Z => None,
    };
    if let (Some((m_k, u_kt)), Some(tiles)) = (k, along) {
        let product = u64::from(m_k) * u64::from(u_kt);
        if product != tiles as u64 {
            let why = format!("m_k * u_kt is {product} and the operand has {tiles} tiles along the dimension");
            return Err(Reason::attribute("m_k", why));
        }
    }
    match dim {
        ReduceDim::Z => groups(z as usize, x),
        _ => Ok(matrices(dim, x)?),
    }
}

/// Reduces within each matrix.
fn matrices(dim: ReduceDim, x: &Tensor) -> Result<Tensor, Reason> {
    let (shape, tile) = (x.shape(), x.tile());
    let result = Shape {
        t: shape.t,
        rows: if dim == ReduceDim::C { shape.rows } else { tile.r as usize },
        columns: if dim == ReduceDim::R { shape.columns } else { tile.c as usize },
    };
    if shape.rows == 0 || shape.columns == 0 {
        let why = "there is nothing to take the largest of";
        return Err(Reason::Shape { operand: 0, found: shape, wanted: result, why });
    }
    let mut values = vec![0.0; check(result, tile)?];
    let size = shape.rows * shape.columns;
    for (matrix, out) in x.values().chunks(size).zip(values.chunks_mut(result.rows * result.columns)) {
        match dim {
            ReduceDim::C => {
                for (row, out) in matrix.chunks(shape.columns).zip(out.chunks_mut(result.columns)) {
                    out[0] = largest(row);
                }
            }
            ReduceDim::R => {
                let out = &mut out[..shape.columns];
                out.copy_from_slice(&matrix[..shape.columns]);
                for row in matrix.chunks(shape.columns).skip(1) {
                    out.iter_mut().zip(row).for_each(|(o, &v)| *o = larger(*o, v));
                }
            }
            _ => out[0] = largest(matrix),
        }
    }
    Ok(Tensor::new(result, tile, values)?)
}

/// The largest of a slice that is not empty.
fn largest(values: &[f32]) -> f32 {
    values.iter().copied().fold(f32::NEG_INFINITY, larger)
}

/// The largest of each group of `z` matrices.
fn groups(z: usize, x: &Tensor) -> Result<Tensor, Reason> {
    let shape = x.shape();
    if z == 0 || !shape.t.is_multiple_of(z) {
        return Err(Reason::attribute("z", format!("{} matrices are no whole groups of {z}", shape.t)));
    }
    let size = (shape.rows * shape.columns).max(1);
    let mut values = Vec::with_capacity(x.elements() / z);
    for group in x.values().chunks(size * z) {
        let start = values.len();
        values.extend_from_slice(&group[..size]);
        for matrix in group.chunks(size).skip(1) {
            values[start..].iter_mut().zip(matrix).for_each(|(o, &v)| *o = larger(*o, v));
        }
    }
    Ok(Tensor::new(Shape { t: shape.t / z, ..shape }, x.tile(), values)?)
}
