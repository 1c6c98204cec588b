//! Matrix products, with accumulation, bias, gelu and requantisation.
//!
//! In this order (tt-budabackend, `ops/mm_bare.cpp`): products with float32 sums, sums over groups
//! of z matrices (`accumulate`), the bias, requantisation or dequantisation by the last operand,
//! gelu. Of a bias row 0 of each tile counts for all rows of the tile; a product of integers adds
//! its bias element by element. On a device sums wait in the intermediate buffer for what follows
//! them ([`super::unit`]).

use tilework_netlist::types::{Matmul, QuantKind, Shape, Size, UnaryKind};
use tilework_ops::{self as ops, DType, MatmulOptions};

use super::unary::{unary, with};
use super::{Context, Reason, binary};
use crate::tensor::{Tensor, check};
use crate::tm;

/// Computes a product of dense operands: left, right, then the bias and the scales if the
/// attributes say so.
pub fn matmul(attributes: &Matmul, inputs: &[&Tensor], context: &mut Context) -> Result<Tensor, Reason> {
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
    let sums = match attributes.accumulate {
        _ if context.is_device() => {
            let z = attributes.accumulate.map_or(Ok(1), |z| groups(left.shape(), z))?;
            let block = left.tile().c as usize * attributes.u_kt as usize;
            context.sums(&context.source(0, left), &context.source(1, right), z, block)?
        }
        Some(z) => accumulate(&product(left, right)?, z)?,
        None => product(left, right)?,
    };
    finish(attributes, sums, &inputs[2..], Bias::of(context), context)
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

/// The matrices of a group, if there are whole groups of them.
fn groups(shape: Shape, z: u32) -> Result<usize, Reason> {
    let z = z as usize;
    if z == 0 || !shape.t.is_multiple_of(z) {
        return Err(Reason::attribute("z", format!("{} matrices are no whole groups of {z}", shape.t)));
    }
    Ok(z)
}

/// Sums of groups of `z` matrices, one after another.
fn accumulate(x: &Tensor, z: u32) -> Result<Tensor, Reason> {
    let (shape, z) = (x.shape(), groups(x.shape(), z)?);
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

/// How a bias is added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bias {
    /// Row 0 of each tile to all rows of the tile.
    Rows,
    /// Element by element.
    Elements,
}

impl Bias {
    /// How a matrix product adds it.
    pub(crate) fn of(context: &Context) -> Self {
        if context.has_integers() { Bias::Elements } else { Bias::Rows }
    }
}

/// Applies everything after the products. `rest` are the operands after the products' own, as many
/// as the attributes require.
pub(crate) fn finish(
    attributes: &Matmul,
    sums: Tensor,
    rest: &[&Tensor],
    how: Bias,
    context: &mut Context,
) -> Result<Tensor, Reason> {
    context.notes.sums(&sums);
    let mut result = sums;
    if let (true, Some(bias)) = (attributes.bias, rest.first()) {
        result = match how {
            Bias::Rows => {
                let bias = context.source(context.inputs.len().saturating_sub(rest.len()), bias);
                context.destination(add_bias(&context.intermediate(result), &bias)?)
            }
            Bias::Elements => add_elements(&result, bias)?,
        };
    }
    if attributes.requant || attributes.dequant {
        result = context.intermediate(result);
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
    if attributes.gelu {
        result = context.destination(unary(UnaryKind::Gelu, &result)?);
    }
    Ok(result)
}

/// Adds a bias element by element.
fn add_elements(sums: &Tensor, bias: &Tensor) -> Result<Tensor, Reason> {
    binary::zip(sums, bias, |sum, bias| sum + bias).map_err(|reason| match reason {
        Reason::Shape { found, wanted, .. } => {
            Reason::Shape { operand: 2, found, wanted, why: "the bias of an integer product has its shape" }
        }
        other => other,
    })
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
