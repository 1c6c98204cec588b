//! Matrix products, with accumulation, bias, gelu and requantisation.
//!
//! In this order (tt-budabackend, `ops/mm_bare.cpp`): products with float32 sums, sums over groups
//! of z matrices (`accumulate`), the bias, whose row 0 of each tile counts for all rows of the
//! tile, gelu, requantisation or dequantisation by the last operand.

use tilework_netlist::types::{Matmul, QuantKind, Shape, Size, UnaryKind};
use tilework_ops::{self as ops, DType, MatmulOptions};

use super::unary::{unary, with};
use super::{Notes, Reason, binary};
use crate::tensor::{Tensor, check};
use crate::tm;

/// Computes a product of dense operands: left, right, then the bias and the scales if the
/// attributes say so.
pub fn matmul(attributes: &Matmul, inputs: &[&Tensor], notes: &mut Notes) -> Result<Tensor, Reason> {
    let scaled = attributes.requant || attributes.dequant;
    let wanted = 2 + usize::from(attributes.bias) + usize::from(scaled);
    if inputs.len() != wanted {
        return Err(Reason::Operands { found: inputs.len(), wanted: format!("{wanted} with its attributes") });
    }
    let (left, right) = (inputs[0], &meeting(inputs[0], inputs[1])?);
    let k = inner(attributes, left)?;
    let wanted = Shape { t: left.shape().t, rows: k, columns: right.shape().columns };
    if right.shape() != wanted {
        let why = "it has as many matrices as operand 0, and as many rows as that has columns";
        return Err(Reason::Shape { operand: 1, found: right.shape(), wanted, why });
    }
    let product = product(left, right)?;
    let sums = match attributes.accumulate {
        Some(z) => accumulate(&product, z)?,
        None => product,
    };
    finish(attributes, sums, &inputs[2..], notes)
}

/// Length of the sums, which `m_k` and `u_kt` must give.
fn inner(attributes: &Matmul, left: &Tensor) -> Result<usize, Reason> {
    let tiles = left.tile_columns();
    let product = u64::from(attributes.m_k) * u64::from(attributes.u_kt);
    if product != tiles as u64 {
        let why = format!("m_k * u_kt is {product} and operand 0 has {tiles} columns of tiles");
        return Err(Reason::attribute("m_k", why));
    }
    Ok(left.shape().columns)
}

/// Converts the right operand to tiles as high as those of the left are wide, if it has as many of
/// them: small tiles are filled up with zeros.
pub(crate) fn meeting(left: &Tensor, right: &Tensor) -> Result<Tensor, Reason> {
    let smaller = left.tile().c != right.tile().r && left.shape().columns != right.shape().rows;
    if smaller && left.tile_columns() == right.tile_rows() {
        return Ok(tm::retile(right, Size { r: left.tile().c, c: right.tile().c })?);
    }
    Ok(right.clone())
}

/// The product of each pair of matrices.
pub(crate) fn product(left: &Tensor, right: &Tensor) -> Result<Tensor, Reason> {
    let shape = Shape { t: left.shape().t, rows: left.shape().rows, columns: right.shape().columns };
    let tile = Size { r: left.tile().r, c: right.tile().c };
    check(shape, tile)?;
    let product = ops::matmul(left.library(), right.library(), MatmulOptions::default(), DType::F32);
    Ok(Tensor::of_library(product.expect("the caller compared the shapes, the result is within bounds"), shape, tile))
}

/// Sums of groups of `z` matrices, one after another.
fn accumulate(x: &Tensor, z: u32) -> Result<Tensor, Reason> {
    let (shape, z) = (x.shape(), z as usize);
    if z == 0 || !shape.t.is_multiple_of(z) {
        return Err(Reason::attribute("z", format!("{} matrices are no whole groups of {z}", shape.t)));
    }
    let size = shape.rows * shape.columns;
    let mut values = Vec::with_capacity(x.elements() / z);
    for group in x.values().chunks((size * z).max(1)) {
        let start = values.len();
        values.extend_from_slice(&group[..size]);
        for matrix in group[size..].chunks(size.max(1)) {
            values[start..].iter_mut().zip(matrix).for_each(|(v, m)| *v += m);
        }
    }
    Ok(Tensor::new(Shape { t: shape.t / z, ..shape }, x.tile(), values)?)
}

/// Applies everything after the products. `rest` are the operands after the first two, as many as
/// the attributes require.
pub(crate) fn finish(attributes: &Matmul, sums: Tensor, rest: &[&Tensor], notes: &mut Notes) -> Result<Tensor, Reason> {
    notes.sums(&sums);
    let mut result = sums;
    if let (true, Some(bias)) = (attributes.bias, rest.first()) {
        result = add_bias(&result, bias)?;
    }
    if attributes.gelu {
        result = unary(UnaryKind::Gelu, &result)?;
    }
    if let (true, Some(scales)) = (attributes.requant || attributes.dequant, rest.last()) {
        let kind = if attributes.dequant { QuantKind::Dequantize } else { QuantKind::Requantize };
        let operand = 1 + rest.len();
        result = binary::quantise(kind, attributes.zero_point, &result, scales).map_err(|reason| match reason {
            Reason::Shape { found, wanted, .. } => {
                Reason::Shape { operand, found, wanted, why: "scales have the shape of the product" }
            }
            other => other,
        })?;
    }
    Ok(result)
}

/// Adds row 0 of each tile of the bias to all rows of the tile of the sums. Its tiles may be of
/// another height.
fn add_bias(sums: &Tensor, bias: &Tensor) -> Result<Tensor, Reason> {
    let (found, s) = (bias.shape(), sums.shape());
    if (found.t, bias.tile_rows(), found.columns) != (s.t, sums.tile_rows(), s.columns) {
        let why = "a bias has the tiles of the product";
        return Err(Reason::Shape { operand: 2, found, wanted: s, why });
    }
    let width = s.columns.max(1);
    let mut values = sums.values().to_vec();
    let bands = values.chunks_mut(width * sums.tile().r as usize);
    for (band, bias) in bands.zip(bias.values().chunks(width * bias.tile().r as usize)) {
        for row in band.chunks_mut(width) {
            row.iter_mut().zip(bias).for_each(|(v, b)| *v += b);
        }
    }
    Ok(with(sums, values))
}
