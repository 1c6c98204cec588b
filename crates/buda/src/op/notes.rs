//! Notes: observations during an operation that are no errors.

use crate::tensor::Tensor;

/// Float32 holds every integer up to this.
const EXACT: f32 = (1u32 << 24) as f32;

/// Notes on one operation and one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Notes {
    /// Whether the operation adds integer products.
    pub(crate) integer: bool,
    /// Whether an integer is beyond 2^24, where float32 arithmetic rounds: a sum of products, or
    /// a result in Int32.
    pub inexact: bool,
}

impl Notes {
    /// Checks sums of products.
    pub(crate) fn sums(&mut self, x: &Tensor) {
        if self.integer {
            self.integers(x);
        }
    }

    /// Checks integers.
    pub(crate) fn integers(&mut self, x: &Tensor) {
        self.inexact |= x.values().iter().any(|v| v.abs() > EXACT);
    }
}
