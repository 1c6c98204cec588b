//! The matrix kernel: f32 products through the `matrixmultiply` crate.
//!
//! Of the kernels in the registry it was the fastest here (512x512x512 on one core of an AVX-512
//! machine: 1.7 ms, the `gemm` crate 2.2 ms), takes any strides, so that transposes need no copy,
//! and adds no other crates. It is called on one thread per block of the result; the blocks depend
//! on the sizes alone, and each element sums over `k` in one order, so the bits do not depend on
//! the number of threads.

use rayon::prelude::*;

use tilework_dtype::convert::Element;

/// A matrix within a slice: element `[r, c]` is at `r * rows + c * columns`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Matrix<'a> {
    pub values: &'a [f32],
    pub rows: usize,
    pub columns: usize,
}

impl<'a> Matrix<'a> {
    /// A row-major matrix of this row length.
    pub(crate) fn row_major(values: &'a [f32], columns: usize) -> Matrix<'a> {
        Matrix { values, rows: columns, columns: 1 }
    }

    /// Whether all of `rows x columns` elements lie in the slice.
    fn holds(&self, rows: usize, columns: usize) -> bool {
        rows == 0 || columns == 0 || (rows - 1) * self.rows + (columns - 1) * self.columns < self.values.len()
    }
}

/// Where results go: the start of a row-major matrix of row length `stride`.
#[derive(Clone, Copy)]
struct Target {
    start: *mut f32,
    stride: usize,
}

/// `c = a * b` for sizes `m x k` and `k x n`; row `r` of `c` begins at `r * stride`. On the
/// calling thread.
pub(crate) fn multiply(m: usize, k: usize, n: usize, a: Matrix<'_>, b: Matrix<'_>, c: &mut [f32], stride: usize) {
    if m == 0 || n == 0 {
        return;
    }
    assert!((m - 1) * stride + n <= c.len(), "the result is as large as the caller says");
    block(Sizes { m, k, n }, a, b, Target { start: c.as_mut_ptr(), stride }, false);
}

/// One block of a product, added to the values that are there or replacing them.
fn block(sizes: Sizes, a: Matrix<'_>, b: Matrix<'_>, c: Target, add: bool) {
    let Sizes { m, k, n } = sizes;
    assert!(a.holds(m, k) && b.holds(k, n), "operands are as large as the caller says");
    // SAFETY: both operands hold all elements of their sizes (asserted); the callers own `m` rows
    // of `n` elements at `c.start`, and no other thread touches those.
    unsafe {
        matrixmultiply::sgemm(
            m,
            k,
            n,
            1.0,
            a.values.as_ptr(),
            a.rows as isize,
            a.columns as isize,
            b.values.as_ptr(),
            b.rows as isize,
            b.columns as isize,
            if add { 1.0 } else { 0.0 },
            c.start,
            c.stride as isize,
            1,
        );
    }
}

/// Sizes of a stack of products.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub m: usize,
    pub k: usize,
    pub n: usize,
}

/// A stack of right operands: elements of type `B` with rows and columns at `strides`.
pub(crate) struct Right<'a, B> {
    pub values: &'a [B],
    pub strides: (usize, usize),
}

/// Epilogue of a product: both functions are called with pieces of rows, by the position of their
/// first element.
pub(crate) struct Finish<'a> {
    /// Changes sums before they are stored.
    pub change: &'a (dyn Fn(usize, &mut [f32]) + Sync),
    /// Stores them.
    pub store: &'a (dyn Fn(usize, &[f32]) + Sync),
}

/// Products of pairs of matrices, one after another in the result: `pairs` says where each begins.
/// Blocks of the result are computed by several threads. A right operand that is not float32 is
/// converted panel by panel in cache.
pub(crate) fn products<B: Element>(
    sizes: Sizes,
    a: Matrix<'_>,
    b: &Right<'_, B>,
    direct: Option<&[f32]>,
    pairs: &[(usize, usize)],
    finish: &Finish<'_>,
) {
    const DEPTH: usize = 256;
    let Sizes { m, k, n } = sizes;
    let (height, width) = (if m < 2048 { 256 } else { 512 }, if direct.is_some() && m > 64 { 512 } else { 256 });
    let (down, across) = (m.div_ceil(height), n.div_ceil(width));
    let unit = |i: usize| {
        let (pair, row, column) = (i / (down * across), i / across % down * height, i % across * width);
        let (height, width) = (height.min(m - row), width.min(n - column));
        let (at_a, at_b) = (pairs[pair].0 + row * a.rows, pairs[pair].1 + column * b.strides.1);
        let mut results = vec![0f32; height * width];
        let mut panel = vec![0f32; if direct.is_none() { DEPTH * width } else { 0 }];
        let depth = if direct.is_none() { DEPTH } else { k.max(1) };
        for first in (0..k).step_by(depth) {
            let depth = depth.min(k - first);
            let at_b = at_b + first * b.strides.0;
            let right = match direct {
                Some(values) => Matrix { values: &values[at_b..], rows: b.strides.0, columns: b.strides.1 },
                None => converted(&b.values[at_b..], b.strides, (depth, width), &mut panel),
            };
            let left = Matrix { values: &a.values[at_a + first * a.columns..], ..a };
            let target = Target { start: results.as_mut_ptr(), stride: width };
            block(Sizes { m: height, k: depth, n: width }, left, right, target, first > 0);
        }
        for (i, line) in results.chunks_mut(width).enumerate() {
            let position = (pair * m + row + i) * n + column;
            (finish.change)(position, line);
            (finish.store)(position, line);
        }
    };
    let units = pairs.len() * down * across;
    // Below about two million products a second thread costs more than it saves.
    if units <= 1 || pairs.len() * m * k * n < 1 << 21 {
        (0..units).for_each(unit);
    } else {
        (0..units).into_par_iter().for_each(unit);
    }
}

/// A panel of `depth` rows and `width` columns in float32, lines in the order of the source.
fn converted<'a, B: Element>(
    source: &[B],
    strides: (usize, usize),
    (depth, width): (usize, usize),
    panel: &'a mut [f32],
) -> Matrix<'a> {
    let by_rows = strides.1 == 1;
    let (lines, length, step) = if by_rows { (depth, width, strides.0) } else { (width, depth, strides.1) };
    for (i, line) in panel.chunks_mut(length).take(lines).enumerate() {
        line.iter_mut().zip(&source[i * step..i * step + length]).for_each(|(p, v)| *p = v.to_f32());
    }
    let (rows, columns) = if by_rows { (length, 1) } else { (1, length) };
    Matrix { values: panel, rows, columns }
}
