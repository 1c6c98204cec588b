//! Plain matrix arithmetic, for the example kernels and their references.
//!
//! Sums are in single precision in the order of the inner index; nothing is reordered for speed, so
//! that results do not depend on the machine.

use crate::tile::{Shape, Tile};

/// A matrix of single floats, row by row.
#[derive(Clone, PartialEq, Debug)]
pub struct Matrix {
    rows: usize,
    cols: usize,
    values: Vec<f32>,
}

impl Matrix {
    /// A matrix of a function of row and column, called row by row.
    pub fn from_fn(rows: usize, cols: usize, mut value: impl FnMut(usize, usize) -> f32) -> Self {
        let mut values = Vec::with_capacity(rows * cols);
        for row in 0..rows {
            values.extend((0..cols).map(|col| value(row, col)));
        }
        Self { rows, cols, values }
    }

    /// The elements of a tile.
    pub fn of(tile: &Tile) -> Self {
        let shape = tile.shape();
        Self { rows: shape.rows, cols: shape.cols, values: tile.to_f32() }
    }

    /// Rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Columns.
    pub fn cols(&self) -> usize {
        self.cols
    }

    /// All elements, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// The elements of a row.
    ///
    /// # Panics
    ///
    /// When there is no such row, as indexing a slice does.
    pub fn row(&self, row: usize) -> &[f32] {
        &self.values[row * self.cols..][..self.cols]
    }

    /// The elements of a row, to change them.
    ///
    /// # Panics
    ///
    /// When there is no such row, as indexing a slice does.
    pub fn row_mut(&mut self, row: usize) -> &mut [f32] {
        &mut self.values[row * self.cols..][..self.cols]
    }

    /// A tile of all elements, rounded to its element type.
    pub fn tile(&self, dtype: crate::DType) -> Tile {
        Tile::from_fn(Shape::new(self.rows, self.cols, dtype), |row, col| self.row(row)[col])
    }

    /// The part of `rows` x `cols` elements from this row and column on.
    ///
    /// # Panics
    ///
    /// When it goes past the matrix, as indexing a slice does.
    #[must_use]
    pub fn part(&self, (row, col): (usize, usize), rows: usize, cols: usize) -> Self {
        Self::from_fn(rows, cols, |r, c| self.row(row + r)[col + c])
    }

    /// Puts another matrix in from this row and column on.
    ///
    /// # Panics
    ///
    /// When it goes past the matrix, as indexing a slice does.
    pub fn put(&mut self, (row, col): (usize, usize), part: &Self) {
        for r in 0..part.rows {
            self.row_mut(row + r)[col..][..part.cols].copy_from_slice(part.row(r));
        }
    }

    /// The matrix with rows and columns exchanged.
    #[must_use]
    pub fn transposed(&self) -> Self {
        Self::from_fn(self.cols, self.rows, |row, col| self.row(col)[row])
    }

    /// The product `self` x `other`. `other` needs as many rows as `self` has columns.
    #[must_use]
    pub fn times(&self, other: &Self) -> Self {
        let mut product = Self::from_fn(self.rows, other.cols, |_, _| 0.0);
        product.add_product(self, other);
        product
    }

    /// Adds the product `left` x `right`, term by term, as the Cube accumulates in L0C. A product
    /// that is added in parts of the inner dimension is bit for bit the whole one.
    pub fn add_product(&mut self, left: &Self, right: &Self) {
        for row in 0..left.rows {
            let sums = self.row_mut(row);
            for (left, inner) in left.row(row).iter().zip(0..right.rows) {
                for (sum, right) in sums.iter_mut().zip(right.row(inner)) {
                    *sum += left * right;
                }
            }
        }
    }

    /// A matrix of two of one shape, element by element; of the first one's shape.
    #[must_use]
    pub fn with(&self, other: &Self, f: impl Fn(f32, f32) -> f32) -> Self {
        let values = self.values.iter().zip(&other.values).map(|(&a, &b)| f(a, b)).collect();
        Self { values, ..*self }
    }

    /// Every element changed.
    #[must_use]
    pub fn map(&self, f: impl Fn(f32) -> f32) -> Self {
        Self { values: self.values.iter().map(|&v| f(v)).collect(), ..*self }
    }

    /// The largest absolute difference between two matrices. Infinite when their shapes differ or
    /// when only one of two elements is a number, so that no mistake looks small.
    pub fn largest_error(&self, other: &Self) -> f32 {
        if (self.rows, self.cols) != (other.rows, other.cols) {
            return f32::INFINITY;
        }
        let error = |(a, b): (&f32, &f32)| {
            let difference = (a - b).abs();
            if a == b || difference.is_nan() && a.is_nan() && b.is_nan() {
                0.0
            } else if difference.is_nan() {
                f32::INFINITY
            } else {
                difference
            }
        };
        self.values.iter().zip(&other.values).map(error).fold(0.0, f32::max)
    }
}

#[cfg(test)]
mod tests {
    use super::Matrix;

    fn matrix(rows: usize, cols: usize, values: &[f32]) -> Matrix {
        Matrix::from_fn(rows, cols, |r, c| values[r * cols + c])
    }

    #[test]
    fn a_product_is_that_of_the_textbook() {
        let (a, b) = (matrix(2, 3, &[1., 2., 3., 4., 5., 6.]), matrix(3, 2, &[7., 8., 9., 10., 11., 12.]));
        assert_eq!(a.times(&b), matrix(2, 2, &[58., 64., 139., 154.]));
        assert_eq!(a.transposed(), matrix(3, 2, &[1., 4., 2., 5., 3., 6.]));
    }

    #[test]
    fn parts_come_out_and_go_in_where_they_are() {
        let mut a = Matrix::from_fn(3, 4, |r, c| (10 * r + c) as f32);
        assert_eq!(a.part((1, 2), 2, 2), matrix(2, 2, &[12., 13., 22., 23.]));
        a.put((0, 3), &matrix(2, 1, &[-1., -2.]));
        assert_eq!(a.row(1), [10., 11., 12., -2.]);
    }

    #[test]
    fn an_error_is_never_hidden() {
        let a = matrix(1, 3, &[1., 2., 3.]);
        assert_eq!(a.largest_error(&matrix(1, 3, &[1., 2.5, 3.25])), 0.5);
        assert_eq!(a.largest_error(&matrix(1, 3, &[1., f32::NAN, 3.])), f32::INFINITY);
        assert_eq!(a.largest_error(&matrix(3, 1, &[1., 2., 3.])), f32::INFINITY);
    }
}
