//! Matrix products: `ttnn.matmul` and `ttnn.linear` (tt-mlir `matmul.fbs`).
//!
//! Operands enter in their element types, products and sums are float32, bias and activation are
//! applied to the float32 sums, and the result is rounded once. The last two dimensions are the
//! matrices, those before broadcast as numpy's; a vector stands for a row on the left and a column
//! on the right, and its dimension is dropped from the result.

use half::{bf16, f16};
use std::marker::PhantomData;

use crate::error::{OpError, Reason, Within};
use crate::gemm::{self, Finish, Matrix, Right, Sizes};
use crate::produce::{self, as_f32};
use crate::tensor::{Native, Tensor, with_storage};
use crate::unary::Unary;
use crate::view::{Lane, View};
use crate::{DType, Shape};
use tilework_dtype::convert::Element;

/// Attributes of a product.
#[derive(Debug, Clone, Copy, Default)]
pub struct MatmulOptions<'a> {
    /// Transpose the left operand's last two dimensions.
    pub transpose_a: bool,
    /// Transpose the right operand's last two dimensions.
    pub transpose_b: bool,
    /// Added to the product; broadcasts to it.
    pub bias: Option<&'a Tensor>,
    /// Applied to the sum.
    pub activation: Option<Unary>,
    /// The columns of the sum are two halves, values and gates: the result has half the columns,
    /// each value times the silu of its gate. Compilers mark such a product with the attribute
    /// `ttnn.fused_swiglu`.
    pub swiglu: bool,
}

/// An operand: its matrices and the dimensions before them.
struct Operand {
    batch: Shape,
    rows: usize,
    columns: usize,
    /// Distance between rows and between columns.
    strides: (usize, usize),
}

impl Operand {
    fn new(shape: &Shape, transpose: bool, left: bool) -> Result<Operand, Reason> {
        let (batch, rows, columns) = match shape.dims() {
            [] => return Err(Reason::shape(shape, "a vector or matrices")),
            [n] if left => (&[][..], 1, *n),
            [n] => (&[][..], *n, 1),
            [batch @ .., rows, columns] => (batch, *rows, *columns),
        };
        let batch = Shape::new(batch)?;
        if transpose && shape.rank() > 1 {
            return Ok(Operand { batch, rows: columns, columns: rows, strides: (1, columns) });
        }
        Ok(Operand { batch, rows, columns, strides: (columns, 1) })
    }
}

/// The product of two tensors, in type `out`.
pub fn matmul(a: &Tensor, b: &Tensor, options: MatmulOptions<'_>, out: DType) -> Result<Tensor, OpError> {
    let op = if options.bias.is_some() { "linear" } else { "matmul" };
    let operands: Vec<&Tensor> = [a, b].into_iter().chain(options.bias).collect();
    let left = Operand::new(a.shape(), options.transpose_a, true).within(op, &operands)?;
    let right = Operand::new(b.shape(), options.transpose_b, false).within(op, &operands)?;
    let sizes = Sizes { m: left.rows, k: left.columns, n: right.columns };
    if left.columns != right.rows {
        let wanted = format!("a right operand of {} rows", left.columns);
        return Err(Reason::shape(b.shape(), wanted).of(op, &operands));
    }
    let batch = left.batch.broadcast(&right.batch).within(op, &operands)?;
    let mut dims = batch.dims().to_vec();
    dims.extend((a.shape().rank() > 1).then_some(sizes.m));
    dims.extend((b.shape().rank() > 1).then_some(sizes.n));
    let shape = Shape::new(dims).within(op, &operands)?;
    let bias = match options.bias {
        Some(bias) if bias.shape().broadcast(&shape).as_ref() == Ok(&shape) => {
            Some((bias, View::broadcast(bias.shape(), &shape)))
        }
        Some(bias) => return Err(Reason::Broadcast(bias.shape().clone(), shape).of(op, &operands)),
        None => None,
    };
    let change = |start: usize, values: &mut [f32]| {
        if let Some((bias, view)) = &bias {
            let mut addend = vec![0.0; values.len()];
            f32::load(bias, view, start, &mut addend);
            values.iter_mut().zip(&addend).for_each(|(v, b)| *v += b);
        }
        if let Some(activation) = options.activation {
            activation.floats(values);
        }
    };
    let work = Work { a, b, left, right, batch, sizes, change: &change };
    if !options.swiglu {
        return Ok(work.rounded(shape, out));
    }
    if b.shape().rank() < 2 || !sizes.n.is_multiple_of(2) {
        return Err(Reason::shape(b.shape(), "an even number of columns").of(op, &operands));
    }
    let half = shape.with(shape.rank() - 1, sizes.n / 2).within(op, &operands)?;
    Ok(gated(&work.product(shape.elements()), sizes.n, half, out))
}

/// Rows of `n` sums, each half values and half gates: each value times the silu of its gate.
fn gated(sums: &[f32], n: usize, half: Shape, out: DType) -> Tensor {
    produce::floats(half, out, n / 2, |start, results| {
        let sums = &sums[2 * start..2 * (start + results.len())];
        for (result, row) in results.chunks_mut((n / 2).max(1)).zip(sums.chunks(n.max(1))) {
            let (values, gates) = row.split_at(n / 2);
            for ((r, v), g) in result.iter_mut().zip(values).zip(gates) {
                *r = v * (g * crate::math::sigmoid(*g));
            }
        }
    })
}

/// A product that is ready to be computed.
struct Work<'a> {
    a: &'a Tensor,
    b: &'a Tensor,
    left: Operand,
    right: Operand,
    batch: Shape,
    sizes: Sizes,
    /// Applied to pieces of rows of the sums.
    change: &'a (dyn Fn(usize, &mut [f32]) + Sync),
}

/// A vector that several threads fill, each thread its own elements.
struct Filled<'v, T> {
    start: *mut T,
    len: usize,
    vector: PhantomData<&'v mut [T]>,
}

// SAFETY: `Work::product` writes every element from one thread only.
unsafe impl<T: Send> Sync for Filled<'_, T> {}

impl<'v, T: Element> Filled<'v, T> {
    fn new(vector: &'v mut [T]) -> Self {
        Self { start: vector.as_mut_ptr(), len: vector.len(), vector: PhantomData }
    }

    /// Stores values from position `at` on.
    ///
    /// # Panics
    /// If the places are not all in the vector: a defect, which must not become a write elsewhere.
    ///
    /// # Safety
    /// No other thread may touch the places.
    unsafe fn put(&self, at: usize, values: &[f32]) {
        assert!(at <= self.len && values.len() <= self.len - at, "a result is stored in its vector");
        // SAFETY: the places lie in the vector (asserted), which stays borrowed, and the caller
        // guarantees that nobody else touches them.
        let places = unsafe { std::slice::from_raw_parts_mut(self.start.add(at), values.len()) };
        places.iter_mut().zip(values).for_each(|(p, &v)| *p = T::from_f32(v));
    }
}

impl Work<'_> {
    /// The changed sums as a tensor.
    fn rounded(&self, shape: Shape, out: DType) -> Tensor {
        let count = shape.elements();
        match out {
            DType::BF16 => Tensor::wrap(out, shape, bf16::store(self.product(count))),
            DType::F16 => Tensor::wrap(out, shape, f16::store(self.product(count))),
            // Block types are float32 in blocks; integers are made of the rounded sums.
            _ if out.is_float() => Tensor::wrap(out, shape, f32::store(self.product(count))),
            _ => crate::typecast(&Tensor::wrap(DType::F32, shape, f32::store(self.product(count))), out),
        }
    }

    /// The changed sums in a stored type.
    fn product<T: Native>(&self, count: usize) -> Vec<T> {
        let Sizes { m, k, n } = self.sizes;
        let plain = self.left.strides == (k, 1) && self.right.batch.elements() == 1;
        // Matrices that are all multiplied by the same right operand are one tall matrix.
        let (sizes, starts) = if plain {
            (Sizes { m: m * self.batch.elements(), k, n }, vec![(0, 0)])
        } else {
            let places = |operand: &Operand, size: usize| {
                let count = self.batch.elements();
                let mut places = vec![0usize; count];
                View::broadcast(&operand.batch, &self.batch).runs(0, count, |done, position, stride, length| {
                    (0..length).for_each(|i| places[done + i] = (position + i as isize * stride) as usize * size);
                });
                places
            };
            (self.sizes, places(&self.left, m * k).into_iter().zip(places(&self.right, k * n)).collect())
        };
        let a = as_f32(self.a);
        let (left, right) = (self.left.strides, self.right.strides);
        if sizes.m <= THIN {
            let mut sums = thin(sizes, &a, left, self.b, right, &starts);
            (self.change)(0, &mut sums);
            return sums.into_iter().map(T::from_f32).collect();
        }
        let a = Matrix { values: &a, rows: left.0, columns: left.1 };
        let mut values = vec![T::default(); count];
        let filled = Filled::new(&mut values);
        // SAFETY: `products` stores every element of the result once.
        let store = |at: usize, sums: &[f32]| unsafe { filled.put(at, sums) };
        let finish = Finish { change: self.change, store: &store };
        let direct = self.b.values::<f32>();
        with_storage!(self.b.storage(), |v| {
            gemm::products(sizes, a, &Right { values: v, strides: right }, direct, &starts, &finish)
        });
        values
    }
}

/// Rows up to which the right operand is read once, in its own type, instead of being packed:
/// packing would cost more than the product.
const THIN: usize = 4;

/// Products with few rows on the left, as in decoding one token.
fn thin(
    sizes: Sizes,
    a: &[f32],
    a_strides: (usize, usize),
    b: &Tensor,
    b_strides: (usize, usize),
    starts: &[(usize, usize)],
) -> Vec<f32> {
    use rayon::prelude::*;
    const WIDTH: usize = 512;
    let Sizes { m, k, n } = sizes;
    let across = n.div_ceil(WIDTH);
    let rows = |at: usize| -> Vec<Vec<f32>> {
        (0..m).map(|r| (0..k).map(|p| a[at + r * a_strides.0 + p * a_strides.1]).collect()).collect()
    };
    let unit = |i: usize| {
        let ((at_a, at_b), from) = (starts[i / across], i % across * WIDTH);
        let width = WIDTH.min(n - from);
        let (rows, start) = (rows(at_a), at_b + from * b_strides.1);
        match b_strides.1 {
            1 => with_storage!(b.storage(), |v| by_rows(&rows, &v[start..], b_strides.0, (k, width))),
            step => with_storage!(b.storage(), |v| by_columns(&rows, &v[start..], step, (k, width))),
        }
    };
    let units = starts.len() * across;
    let blocks: Vec<Vec<f32>> = if starts.len() * m * k * n < 1 << 18 {
        (0..units).map(unit).collect()
    } else {
        (0..units).into_par_iter().map(unit).collect()
    };
    let mut product = Vec::with_capacity(starts.len() * m * n);
    for blocks in blocks.chunks(across.max(1)) {
        for r in 0..m {
            blocks.iter().for_each(|b| product.extend_from_slice(&b[r * b.len() / m..(r + 1) * b.len() / m]));
        }
    }
    product
}

/// Rows times `width` columns of a matrix whose `k` rows are `step` apart.
fn by_rows<T: Element>(rows: &[Vec<f32>], b: &[T], step: usize, (k, width): (usize, usize)) -> Vec<f32> {
    let mut sums = vec![0f32; rows.len() * width];
    for p in 0..k {
        let line = &b[p * step..p * step + width];
        for (row, sums) in rows.iter().zip(sums.chunks_mut(width)) {
            let factor = row[p];
            sums.iter_mut().zip(line).for_each(|(s, v)| *s += factor * v.to_f32());
        }
    }
    sums
}

/// Rows times `width` columns of a matrix whose columns of length `k` are `step` apart.
fn by_columns<T: Element>(rows: &[Vec<f32>], b: &[T], step: usize, (k, width): (usize, usize)) -> Vec<f32> {
    let mut sums = vec![0f32; rows.len() * width];
    let mut line = vec![0f32; k];
    for c in 0..width {
        line.iter_mut().zip(&b[c * step..c * step + k]).for_each(|(l, v)| *l = v.to_f32());
        for (r, row) in rows.iter().enumerate() {
            sums[r * width + c] = crate::math::dot(row, &line);
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn nothing_is_stored_beside_a_result() {
        let mut values = vec![0_f32; 8];
        let filled = Filled::new(&mut values[..4]);
        // SAFETY: there is one thread.
        let put = |at, values: &[f32]| catch_unwind(AssertUnwindSafe(|| unsafe { filled.put(at, values) })).is_ok();
        assert!(put(1, &[1.0, 2.0, 3.0]) && put(4, &[]));
        for (at, count) in [(2, 3), (4, 1), (5, 0), (usize::MAX, 2)] {
            assert!(!put(at, &vec![9.0; count]), "{count} values at {at}");
        }
        assert_eq!(values, [0.0, 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0]);
    }
}
