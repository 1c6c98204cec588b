//! Rows by index.
//!
//! Source: `TTNN/operations/embedding.fbs` of the schema ([`crate::schema`]).

use crate::common::DataType;
use crate::flat::declare::tables;
use crate::ttnn::types::{MemoryConfig, TensorRef};

tables! {
    /// Rows of `weight` by the indices in `input`.
    EmbeddingOp { input: TensorRef, weight: TensorRef, out: TensorRef as out }

    /// Gradient of [`EmbeddingOp`] for its weight.
    EmbeddingBackwardOp {
        input: TensorRef, weight: TensorRef, in_grad: TensorRef, dtype: Option<DataType>,
        memcfg: Option<MemoryConfig>, out: TensorRef as out,
    }
}
