//! Depthwise product: each column of tiles has its own factors.
//!
//! The left operand is m_k groups of as many columns of tiles as the result has, the right one m_k
//! rows of tiles; tile (r, c) of the result is the sum over b of tile (r, b * n + c) on the left
//! times tile (b, c) on the right, where n is the columns of tiles of the result (tt-budabackend,
//! `hlks/`, depthwise kernel). Bias and scales follow as in a matrix product, but row 0 of each
//! tile of the bias counts whatever the formats (`ops/depthwise_op.cpp`).

use tilework_netlist::types::{Matmul, Shape, Tm};

use super::matmul::{self, Bias};
use super::{Context, Reason};
use crate::tensor::Tensor;
use crate::tm;

/// Computes a depthwise product: left, right, then bias and scales if the attributes say so.
pub fn depthwise(attributes: &Matmul, inputs: &[&Tensor], context: &mut Context) -> Result<Tensor, Reason> {
    let scaled = attributes.requant || attributes.dequant;
    let wanted = 2 + usize::from(attributes.bias) + usize::from(scaled);
    if inputs.len() != wanted {
        return Err(Reason::Operands { found: inputs.len(), wanted: format!("{wanted} with its attributes") });
    }
    let (left, right) = (inputs[0], inputs[1]);
    if attributes.u_kt != 1 {
        return Err(Reason::attribute("u_kt", format!("{} where a depthwise product has 1", attributes.u_kt)));
    }
    let (blocks, n) = (attributes.m_k as usize, right.tile_columns());
    // A tile on the left meets a whole tile on the right: as wide as that is high.
    let wanted = Shape { t: right.shape().t, rows: left.shape().rows, columns: right.shape().rows.saturating_mul(n) };
    if left.shape() != wanted || right.tile_rows() != blocks || left.tile().c != right.tile().r {
        let why = "the right operand has m_k rows of tiles, the left one m_k times its columns of tiles";
        return Err(Reason::Shape { operand: 0, found: left.shape(), wanted, why });
    }
    if n == 0 || blocks == 0 {
        return Err(Reason::attribute("m_k", "there is nothing to multiply"));
    }
    let strips = strips(left, blocks, n)?;
    let factors = tm::apply(1, &[Tm::HSlice(n as u32)], right)?;
    let products = match context.is_device() {
        true => context.sums(&context.source(0, &strips), &context.source(1, &factors), 1, left.tile().c as usize)?,
        false => matmul::product(&strips, &factors)?,
    };
    let sums = tm::apply(0, &[Tm::HStack(n as u32)], &products)?;
    matmul::finish(attributes, sums, &inputs[2..], Bias::Rows, context)
}

/// For each matrix and each of `n` columns of tiles, the `blocks` tiles of every row that
/// belong to it.
fn strips(left: &Tensor, blocks: usize, n: usize) -> Result<Tensor, Reason> {
    let (shape, tile) = (left.shape(), left.tile().c as usize);
    let mut values = Vec::with_capacity(left.elements());
    for matrix in left.values().chunks((shape.rows * shape.columns).max(1)) {
        for c in 0..n {
            for row in matrix.chunks(shape.columns) {
                (0..blocks).for_each(|b| values.extend_from_slice(&row[(b * n + c) * tile..][..tile]));
            }
        }
    }
    let result = Shape { t: shape.t * n, rows: shape.rows, columns: blocks * tile };
    Ok(Tensor::new(result, left.tile(), values)?)
}
