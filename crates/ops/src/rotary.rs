//! Rotary position embedding in its two forms (tt-mlir `transformer.fbs`, `RotaryEmbeddingOp` and
//! `RotaryEmbeddingLlamaOp`).
//!
//! Both compute `x * cos + turn(x) * sin`, in float32, rounded once. In the first, `turn` moves the
//! second half of a head, negated, before the first half. In the second it is a product with a
//! matrix that the program passes, tile by tile of 32 columns; the usual one swaps neighbours and
//! negates one of them.

use crate::error::{OpError, Reason};
use crate::produce::{self, as_f32};
use crate::tensor::Tensor;
use crate::view::{Lane, View};
use crate::{DType, Shape};

/// The cosines and sines, each with a view that broadcasts to the input.
fn caches(
    op: &'static str,
    input: &Tensor,
    caches: [&Tensor; 2],
    row: Option<usize>,
) -> Result<[(Tensor, View); 2], OpError> {
    let operands = [input, caches[0], caches[1]];
    let prepare = |cache: &Tensor| {
        let rank = cache.shape().rank();
        let mut begins = vec![0i64; rank];
        let mut ends: Vec<i64> = cache.shape().iter().map(|&d| d as i64).collect();
        if rank >= 2 {
            let (axis, rows) = (rank - 2, cache.shape()[rank - 2]);
            if let Some(row) = row {
                if row >= rows {
                    return Err(Reason::Index { index: row as i64, bound: rows }.of(op, &operands));
                }
                begins[axis] = row as i64;
                ends[axis] = row as i64 + 1;
            } else if input.shape().rank() >= 2 {
                // A cache may hold more positions than the input has; the first ones are used.
                let wanted = input.shape()[input.shape().rank() - 2];
                if rows > wanted {
                    ends[axis] = wanted as i64;
                }
            }
        }
        let cache = crate::slice(cache, &begins, &ends, &vec![1; rank])?;
        if cache.shape().broadcast(input.shape()).as_ref() != Ok(input.shape()) {
            return Err(Reason::Broadcast(cache.shape().clone(), input.shape().clone()).of(op, &operands));
        }
        let view = View::broadcast(cache.shape(), input.shape());
        Ok((cache, view))
    };
    Ok([prepare(caches[0])?, prepare(caches[1])?])
}

/// `x * cos + turned * sin` in place.
fn combine(values: &mut [f32], turned: &[f32], caches: &[(Tensor, View); 2], start: usize) {
    let mut factor = vec![0f32; values.len()];
    f32::load(&caches[0].0, &caches[0].1, start, &mut factor);
    values.iter_mut().zip(&factor).for_each(|(v, c)| *v *= c);
    f32::load(&caches[1].0, &caches[1].1, start, &mut factor);
    for ((v, t), s) in values.iter_mut().zip(turned).zip(&factor) {
        *v += t * s;
    }
}

/// Rotates halves. If `token_index` is given, that row of the caches applies to all positions;
/// otherwise each position has its own.
pub fn rotary_embedding(
    input: &Tensor,
    cos: &Tensor,
    sin: &Tensor,
    token_index: Option<usize>,
    out: DType,
) -> Result<Tensor, OpError> {
    const OP: &str = "rotary_embedding";
    let size = input.shape().last();
    if !size.is_multiple_of(2) {
        return Err(Reason::shape(input.shape(), "an even last dimension").of(OP, &[input, cos, sin]));
    }
    let caches = caches(OP, input, [cos, sin], token_index)?;
    let view = View::contiguous(input.shape());
    Ok(produce::floats(input.shape().clone(), out, size, |start, values| {
        f32::load(input, &view, start, values);
        let mut turned = vec![0f32; values.len()];
        for (row, turned) in values.chunks(size).zip(turned.chunks_mut(size)) {
            let (first, second) = row.split_at(size / 2);
            turned[..size / 2].iter_mut().zip(second).for_each(|(t, v)| *t = -v);
            turned[size / 2..].copy_from_slice(first);
        }
        combine(values, &turned, &caches, start);
    }))
}

/// Rotates by a matrix of 32x32, applied to each 32 columns of a head. When decoding
/// (`decode`), the second dimension of the input is the batch and so is that of the caches:
/// they broadcast over heads.
pub fn rotary_embedding_llama(
    input: &Tensor,
    cos: &Tensor,
    sin: &Tensor,
    matrix: &Tensor,
    decode: bool,
    out: DType,
) -> Result<Tensor, OpError> {
    const OP: &str = "rotary_embedding_llama";
    let operands = [input, cos, sin, matrix];
    let size = input.shape().last();
    let width = match *matrix.shape().dims() {
        [.., rows, columns] if rows == columns && matrix.elements() > 0 && size.is_multiple_of(rows) => rows,
        _ => return Err(Reason::shape(matrix.shape(), format!("a square that divides {size}")).of(OP, &operands)),
    };
    // Several copies of the matrix (one per core) are all the same.
    let turn = as_f32(matrix)[..width * width].to_vec();
    let caches = if decode {
        // Their dimension before the last is 1, or padding of 1 to a tile: all heads are
        // rotated alike.
        let first = |t: &Tensor| match t.shape().rank() {
            4 => {
                let d = t.shape().dims().iter().map(|&d| d as i64).collect::<Vec<_>>();
                crate::slice(t, &[0; 4], &[d[0], d[1], 1, d[3]], &[1; 4])
            }
            _ => Ok(t.clone()),
        };
        caches(OP, input, [&first(cos)?, &first(sin)?], None)?
    } else {
        caches(OP, input, [cos, sin], None)?
    };
    let view = View::contiguous(input.shape());
    let shape: Shape = input.shape().clone();
    Ok(produce::floats(shape, out, width, |start, values| {
        f32::load(input, &view, start, values);
        let mut turned = vec![0f32; values.len()];
        for (part, turned) in values.chunks(width).zip(turned.chunks_mut(width)) {
            for (v, line) in part.iter().zip(turn.chunks(width)) {
                turned.iter_mut().zip(line).for_each(|(t, m)| *t += v * m);
            }
        }
        combine(values, &turned, &caches, start);
    }))
}
