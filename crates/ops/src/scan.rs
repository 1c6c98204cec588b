//! Running sums and products along a dimension (`ttnn.cumsum`, `ttnn.cumprod`): floats in float32,
//! rounded as they are written and not in between; integers keep the low bits.

use crate::DType;
use crate::error::{OpError, Within};
use crate::produce;
use crate::tensor::Tensor;
use crate::view::{Lane, View};

/// Scans along `dim`, in place and index by index: each lane of the inner dimensions by itself.
fn scan<L: Lane>(
    op: &'static str,
    input: &Tensor,
    dim: i64,
    out: DType,
    f: impl Fn(L, L) -> L + Sync,
) -> Result<Tensor, OpError> {
    let axis = input.shape().axis(dim).within(op, &[input])?;
    let (_, length, inner) = input.shape().around(axis);
    let view = View::contiguous(input.shape());
    Ok(produce::lanes(input.shape().clone(), out, length * inner, |start, values: &mut [L]| {
        L::load(input, &view, start, values);
        for block in values.chunks_mut((length * inner).max(1)) {
            for i in inner..block.len() {
                block[i] = f(block[i - inner], block[i]);
            }
        }
    }))
}

/// Running sums.
pub fn cumsum(input: &Tensor, dim: i64, out: DType) -> Result<Tensor, OpError> {
    match input.dtype().is_float() {
        true => scan("cumsum", input, dim, out, |a: f32, b| a + b),
        false => scan("cumsum", input, dim, out, i64::wrapping_add),
    }
}

/// Running products.
pub fn cumprod(input: &Tensor, dim: i64, out: DType) -> Result<Tensor, OpError> {
    match input.dtype().is_float() {
        true => scan("cumprod", input, dim, out, |a: f32, b| a * b),
        false => scan("cumprod", input, dim, out, i64::wrapping_mul),
    }
}
