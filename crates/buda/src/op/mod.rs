//! The operations of a netlist on whole tensors (facts, buda.md, section 4). Operands are as they
//! stand after unpad, TMs and pad; what follows an operation (gradient, ReLU, clamping) is
//! [`crate::golden`]'s.

pub mod binary;
pub mod data;
pub mod depthwise;
mod error;
pub mod identity;
pub mod matmul;
mod notes;
pub mod reduce;
pub mod splice;
pub mod unary;

pub use error::{OpError, Reason};
pub use notes::Notes;
