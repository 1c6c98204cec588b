//! Shapes: the logical dimensions of a tensor, outermost first.

use std::fmt;
use std::ops::Deref;

use crate::error::{MAX_ELEMENTS, Reason};

/// Dimensions of a tensor, outermost first. A shape without dimensions holds one element; a
/// dimension of zero makes the tensor empty. The product of the dimensions never exceeds
/// [`MAX_ELEMENTS`], so element counts and offsets cannot overflow.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Shape(Vec<usize>);

impl Shape {
    /// A shape of these dimensions, unless it has too many elements. If a dimension is zero, the
    /// product of the others must fit as well.
    pub fn new(dims: impl Into<Vec<usize>>) -> Result<Shape, Reason> {
        let dims = dims.into();
        let product = dims.iter().filter(|&&d| d != 0).try_fold(1usize, |n, &d| n.checked_mul(d));
        match product {
            Some(n) if n <= MAX_ELEMENTS => Ok(Shape(dims)),
            _ => Err(Reason::TooLarge(dims)),
        }
    }

    /// The shape of a single value.
    pub fn scalar() -> Shape {
        Shape(Vec::new())
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.0.iter().product()
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// The dimensions.
    pub fn dims(&self) -> &[usize] {
        &self.0
    }

    /// Length of the last dimension, 1 for a scalar.
    pub fn last(&self) -> usize {
        self.0.last().copied().unwrap_or(1)
    }

    /// Index of `axis`, which counts from the end when negative. A scalar is taken as having
    /// one dimension.
    pub fn axis(&self, axis: i64) -> Result<usize, Reason> {
        let rank = self.rank().max(1) as i64;
        let index = if axis < 0 { axis + rank } else { axis };
        if (0..rank).contains(&index) { Ok(index as usize) } else { Err(Reason::Axis { axis, rank: self.rank() }) }
    }

    /// Distance in elements from one index to the next of each dimension, in row-major order.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.rank()];
        for i in (1..self.rank()).rev() {
            strides[i - 1] = strides[i] * self.0[i];
        }
        strides
    }

    /// The shape that both broadcast to by numpy's rule: aligned at the last dimension, lengths
    /// equal or one of them 1.
    pub fn broadcast(&self, other: &Shape) -> Result<Shape, Reason> {
        let rank = self.rank().max(other.rank());
        let at = |shape: &Shape, i: usize| (i + shape.rank()).checked_sub(rank).map_or(1, |k| shape.0[k]);
        let mut dims = Vec::with_capacity(rank);
        for i in 0..rank {
            dims.push(match (at(self, i), at(other, i)) {
                (a, b) if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                _ => return Err(Reason::Broadcast(self.clone(), other.clone())),
            });
        }
        Shape::new(dims)
    }

    /// The same dimensions with that of `axis` replaced.
    pub(crate) fn with(&self, axis: usize, length: usize) -> Result<Shape, Reason> {
        let mut dims = if self.rank() == 0 { vec![1] } else { self.0.clone() };
        dims[axis] = length;
        Shape::new(dims)
    }

    /// Products of the dimensions before `axis` and after it, and its length: the tensor as a stack
    /// of matrices `[outer, length, inner]`.
    pub(crate) fn around(&self, axis: usize) -> (usize, usize, usize) {
        let dims: &[usize] = if self.0.is_empty() { &[1] } else { &self.0 };
        (dims[..axis].iter().product(), dims[axis], dims[axis + 1..].iter().product())
    }
}

impl Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.0
    }
}

impl TryFrom<&[usize]> for Shape {
    type Error = Reason;

    fn try_from(dims: &[usize]) -> Result<Shape, Reason> {
        Shape::new(dims)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, d) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str("x")?;
            }
            write!(f, "{d}")?;
        }
        f.write_str("]")
    }
}
