//! Reductions, scans, sorting, top-k and sampling.
//!
//! Source: `TTNN/operations/reduction.fbs`, `cumsum.fbs`, `cumprod.fbs`, `data_movement.fbs` of the
//! schema ([`crate::schema`]).

use crate::common::DataType;
use crate::flat::declare::{enums, tables};
use crate::ttnn::ops::fused::DeviceComputeKernelConfig;
use crate::ttnn::types::{MemoryConfig, TensorRef};

enums! {
    /// The functions of [`CumulativeOp`].
    CumulativeReduceType: u32 { Max, Min, LogSumExp }

    /// The functions of [`ReductionOp`].
    ReductionOpType: u32 { Sum, Mean, Max, Min }
}

tables! {
    /// Sum, mean, maximum or minimum over dimensions; over all if `dim_arg` is empty.
    ReductionOp {
        kind("type"): ReductionOpType, input("in"): TensorRef, out: TensorRef as out, dim_arg: Vec<i32>,
        keep_dim: bool, compute_config: Option<DeviceComputeKernelConfig>,
    }

    /// Index of the largest element along a dimension, or of all.
    ReductionArgMaxOp {
        input("in"): TensorRef, out: TensorRef as out, dim: Option<i32>, keep_dim: bool,
        memcfg: Option<MemoryConfig>,
    }

    /// Product along a dimension, or of all elements.
    ReductionProdOp {
        input("in"): TensorRef, out: TensorRef as out, dim_arg: Option<i64>, keep_dim: bool,
        memcfg: Option<MemoryConfig>,
    }

    /// The `k` largest or smallest elements along a dimension, and their indices.
    TopKOp {
        input_tensor: TensorRef, k: i32, dim: i32 = -1, largest: bool = true, sorted: bool = true,
        memcfg: Option<MemoryConfig>, outputs: Vec<TensorRef> as out,
    }

    /// Draws one index for each row from its `k` and `p` most probable.
    SamplingOp {
        input_values: TensorRef, input_indices: TensorRef, k: TensorRef, p: TensorRef, temp: TensorRef,
        seed: Option<u32>, out: TensorRef as out,
    }

    /// The router of a GPT-OSS layer: product, bias, the `k` largest, softmax.
    TopKRouterGptOp {
        input: TensorRef, weight: TensorRef, bias: TensorRef, k: i32, num_experts: i32,
        expert_indices: TensorRef as out, expert_weights: TensorRef as out,
    }

    /// Running sum along a dimension.
    CumSumOp {
        input("in"): TensorRef, out: TensorRef as out, dim: i32, dtype: Option<DataType>,
        memcfg: Option<MemoryConfig>,
    }

    /// Running product along a dimension.
    CumProdOp {
        input("in"): TensorRef, out: TensorRef as out, dim: i32, dtype: Option<DataType>,
        memcfg: Option<MemoryConfig>,
    }

    /// Sorts along a dimension; returns values and indices.
    SortOp {
        input("in"): TensorRef, dim: i8, descending: bool, stable: bool, memcfg: Option<MemoryConfig>,
        outputs: Vec<TensorRef> as out,
    }

    /// Running maximum, minimum or sum of exponentials along a dimension. Only in the compiler of
    /// `jax-tt-plugin`, since 0.1.2.
    CumulativeOp {
        input("in"): TensorRef, out: TensorRef as out, dim: i32, reduction: CumulativeReduceType, reverse: bool,
        dtype: Option<DataType>, memcfg: Option<MemoryConfig>,
    }
}
