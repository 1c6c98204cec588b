//! What is noticed while an operation is computed, and is no reason to stop.

use crate::tensor::Tensor;

/// Float32 holds every integer up to this.
const EXACT: f32 = (1u32 << 24) as f32;

/// Notes on one operation and one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Notes {
    /// The operation adds products as integers.
    pub(crate) integer: bool,
    /// A sum of integer products is beyond 2^24, where float32 arithmetic rounds (facts,
    /// buda.md, section 4).
    pub inexact: bool,
}

impl Notes {
    /// Sums of products, before anything is done with them.
    pub(crate) fn sums(&mut self, x: &Tensor) {
        self.inexact |= self.integer && x.values().iter().any(|v| v.abs() > EXACT);
    }
}
