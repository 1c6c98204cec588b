//! The operations of a netlist on whole tensors (facts, buda.md, section 4). Operands are as they stand after unpad, TMs
//! and pad; what follows an operation (gradient, ReLU, clamping) is [`crate::golden`]'s.

pub mod binary;
mod error;
pub mod matmul;
pub mod unary;

pub use error::{OpError, Reason};
