//! Sorting and the largest elements along a dimension (`ttnn.sort`, `ttnn.topk`).
//!
//! Both are stable in either direction: of equal elements the one with the lower index comes first.
//! (The device's bitonic network orders ties differently; its documentation promises no order.) A
//! NaN is larger than everything.

use std::cmp::Ordering;

use rayon::prelude::*;

use crate::DType;
use crate::error::{OpError, Reason, Within};
use crate::tensor::{Native, Tensor, with_storage};
use crate::view::{Lane, View};

/// The order of elements: NaNs last and equal.
fn order<L: Lane>(a: &L, b: &L) -> Ordering {
    let nan = |v: &L| v.partial_cmp(v).is_none();
    a.partial_cmp(b).unwrap_or_else(|| nan(a).cmp(&nan(b)))
}

/// For each line along the dimension, the first `k` indices in order.
fn ranks<L: Lane>(input: &Tensor, dims: (usize, usize, usize), descending: bool, k: usize) -> Vec<u32> {
    let (outer, length, inner) = dims;
    let lines = outer * inner;
    let mut ranks = vec![0u32; lines * k];
    ranks.par_chunks_mut(k.max(1)).enumerate().for_each(|(line, out)| {
        let view = View::new([(length, inner as isize)], (line / inner * length * inner + line % inner) as isize);
        let mut values = vec![L::default(); length];
        L::load(input, &view, 0, &mut values);
        let mut index: Vec<u32> = (0..length as u32).collect();
        index.sort_by(|&a, &b| {
            let by = order(&values[a as usize], &values[b as usize]);
            if descending { by.reverse() } else { by }
        });
        out.copy_from_slice(&index[..k]);
    });
    ranks
}

/// Values and indices of the first `k` of each line in order.
fn select(
    op: &'static str,
    input: &Tensor,
    dim: i64,
    descending: bool,
    k: Option<usize>,
    index: DType,
) -> Result<(Tensor, Tensor), OpError> {
    let axis = input.shape().axis(dim).within(op, &[input])?;
    let dims @ (outer, length, inner) = input.shape().around(axis);
    let k = k.unwrap_or(length);
    if k > length {
        return Err(Reason::attribute("k", format!("{k} of {length} elements")).of(op, &[input]));
    }
    // A scalar stays a scalar.
    let shape = if input.shape().rank() == 0 {
        input.shape().clone()
    } else {
        input.shape().with(axis, k).within(op, &[input])?
    };
    let ranks = match input.dtype().is_float() {
        true => ranks::<f32>(input, dims, descending, k),
        false => ranks::<i64>(input, dims, descending, k),
    };
    // Lines are [outer, inner, k]; the result is [outer, k, inner].
    let at = |o: usize, r: usize, c: usize| ranks[(o * inner + c) * k + r] as usize;
    let each = || (0..outer).flat_map(move |o| (0..k).flat_map(move |r| (0..inner).map(move |c| (o, r, c))));
    let storage = with_storage!(input.storage(), |v| {
        Native::store(each().map(|(o, r, c)| v[(o * length + at(o, r, c)) * inner + c]).collect())
    });
    let indices: Vec<i64> = each().map(|(o, r, c)| at(o, r, c) as i64).collect();
    let indices = Tensor::from_i64(index, shape.clone(), &indices)?;
    Ok((Tensor::wrap(input.dtype(), shape, storage), indices))
}

/// The elements of each line along `dim` in order, and their indices in type `index`.
pub fn sort(input: &Tensor, dim: i64, descending: bool, index: DType) -> Result<(Tensor, Tensor), OpError> {
    select("sort", input, dim, descending, None, index)
}

/// The `k` largest (or smallest) elements of each line along `dim`, in order, and their indices in
/// type `index`.
pub fn topk(input: &Tensor, k: usize, dim: i64, largest: bool, index: DType) -> Result<(Tensor, Tensor), OpError> {
    select("topk", input, dim, largest, Some(k), index)
}
