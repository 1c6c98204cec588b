//! Runs Buda netlists: queues, programs, epochs, the loader's command queues and binary caches, and golden arithmetic
//! (seed 003).
#![warn(missing_docs)]

pub mod format;
pub mod fused;
pub mod golden;
pub mod op;
pub mod tensor;
pub mod tm;

pub use tensor::Tensor;
