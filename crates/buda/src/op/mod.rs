//! The operations of a netlist on whole tensors (tt-budabackend, `docs/public/netlist.md`, section
//! OPs, and `ops/`). Operands have gone through unpad, TMs and pad; [`crate::golden`] does what
//! follows an operation (gradient, ReLU, clamping).

pub mod binary;
mod context;
pub mod data;
pub mod depthwise;
mod error;
pub mod identity;
pub mod matmul;
mod notes;
pub mod reduce;
pub mod splice;
pub mod unary;
pub mod unit;

pub use context::{Context, Precision};
pub use error::{OpError, Reason};
pub use notes::Notes;
