//! Computation of results in pieces, in parallel, with the same bits for any number of threads.
//!
//! An operation defines how any piece of its result is computed; the pieces depend on the shape
//! alone, so the number of threads does not affect the result. Values are computed in float32 (or
//! `i64`) and rounded to the result's type once, as they are written.

use rayon::prelude::*;

use crate::tensor::{Native, Storage, Tensor};
use crate::view::{Lane, View};
use crate::{DType, Shape};

/// Elements of one piece, rounded up to whole grains. Small enough for L1 cache, large enough to
/// amortise the overhead.
const PIECE: usize = 2048;

/// Number of elements from which pieces are distributed over threads.
const PARALLEL: usize = 8 * PIECE;

/// A tensor whose pieces `f(start, piece)` computes in float32. A piece begins and ends at
/// multiples of `grain`.
pub(crate) fn floats(shape: Shape, dtype: DType, grain: usize, f: impl Fn(usize, &mut [f32]) + Sync) -> Tensor {
    lanes(shape, dtype, grain, f)
}

/// The same for results whose elements are expensive to compute: pieces are of one grain each and
/// always shared among threads.
pub(crate) fn heavy(shape: Shape, dtype: DType, grain: usize, f: impl Fn(usize, &mut [f32]) + Sync) -> Tensor {
    let count = shape.elements();
    let mut values = vec![0f32; count];
    let grain = grain.max(1);
    if count <= grain {
        values.chunks_mut(grain).for_each(|all| f(0, all));
    } else {
        values.par_chunks_mut(grain).enumerate().for_each(|(i, out)| f(i * grain, out));
    }
    let exact = Tensor::wrap(DType::F32, shape, f32::store(values));
    crate::typecast(&exact, dtype)
}

/// The same in integers; the result keeps the low bits of each value, or the nearest float.
pub(crate) fn integers(shape: Shape, dtype: DType, grain: usize, f: impl Fn(usize, &mut [i64]) + Sync) -> Tensor {
    lanes(shape, dtype, grain, f)
}

/// A tensor of stored values, without conversion.
pub(crate) fn natives<T: Native>(count: usize, grain: usize, f: impl Fn(usize, &mut [T]) + Sync) -> Vec<T> {
    let mut values = vec![T::default(); count];
    pieces(&mut values, grain, f);
    values
}

/// A tensor whose pieces are computed in `L`.
pub(crate) fn lanes<L: Lane>(shape: Shape, dtype: DType, grain: usize, f: impl Fn(usize, &mut [L]) + Sync) -> Tensor {
    fn fill<L: Lane, T: Native>(
        count: usize,
        grain: usize,
        f: impl Fn(usize, &mut [L]) + Sync,
        g: impl Fn(L) -> T + Sync,
    ) -> Storage {
        T::store(natives(count, grain, |start, out: &mut [T]| {
            let mut buffer = vec![L::default(); out.len()];
            f(start, &mut buffer);
            for (o, &v) in out.iter_mut().zip(&buffer) {
                *o = g(v);
            }
        }))
    }
    let n = shape.elements();
    let storage = match dtype {
        DType::F16 => fill::<L, half::f16>(n, grain, f, L::into_element),
        DType::BF16 => fill::<L, half::bf16>(n, grain, f, L::into_element),
        DType::I32 => fill::<L, i32>(n, grain, f, L::into_element),
        DType::U32 => fill::<L, u32>(n, grain, f, L::into_element),
        DType::U16 => fill::<L, u16>(n, grain, f, L::into_element),
        DType::U8 => fill::<L, u8>(n, grain, f, L::into_element),
        DType::Bool => fill::<L, u8>(n, grain, f, |v| u8::from(v.truth())),
        // Block types keep float32 values; `wrap` refuses types that tensors do not have.
        _ => f32::store(L::as_f32(n, grain, f)),
    };
    Tensor::wrap(dtype, shape, storage)
}

/// Cuts a slice into pieces and computes each.
fn pieces<T: Send>(values: &mut [T], grain: usize, f: impl Fn(usize, &mut [T]) + Sync) {
    let grain = grain.max(1);
    let piece = PIECE.div_ceil(grain) * grain;
    if values.len() <= PARALLEL.max(piece) {
        values.chunks_mut(piece).enumerate().for_each(|(i, out)| f(i * piece, out));
    } else {
        values.par_chunks_mut(piece).enumerate().for_each(|(i, out)| f(i * piece, out));
    }
}

/// All values of a tensor as float32, converted in parallel; borrowed when they are
/// float32 already.
pub(crate) fn as_f32(tensor: &Tensor) -> std::borrow::Cow<'_, [f32]> {
    match tensor.values::<f32>() {
        Some(values) => values.into(),
        None => {
            let view = View::contiguous(tensor.shape());
            // A quarter of a million conversions take less time than waking a thread.
            if tensor.elements() <= 1 << 18 {
                return tensor.to_f32().into();
            }
            natives(tensor.elements(), 1, |start, out: &mut [f32]| f32::load(tensor, &view, start, out)).into()
        }
    }
}
