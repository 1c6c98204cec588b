//! Pooling and resizing.
//!
//! Source: `TTNN/operations/pool.fbs` of the schema ([`crate::schema`]).

use crate::common::DataType;
use crate::flat::declare::{enums, tables, unions};
use crate::ttnn::types::{MemoryConfig, TensorMemoryLayout, TensorRef};

enums! {
    /// The functions of [`Pool2dOp`].
    Pool2dOpType: u32 { AvgPool2d, MaxPool2d }
}

unions! {
    /// Attributes of one of the functions.
    Pool2dExtraParams { AvgPool2dExtraParams(AvgPool2dExtraParams), MaxPool2dExtraParams(MaxPool2dExtraParams) }

    /// Scale factor.
    Scale2D { UniformScale2D(UniformScale2D), NonUniformScale2D(NonUniformScale2D) }
}

tables! {
    /// Attributes of an average pool.
    AvgPool2dExtraParams { count_include_pad: bool, divisor_override: Option<i32> [if divisor_override] }

    /// Attributes of a maximum pool; there are none.
    MaxPool2dExtraParams {}

    /// Average or maximum of windows. The input is `(1, 1, N*H*W, C)`; the padding is height and
    /// width, or four numbers.
    Pool2dOp {
        kind("type"): Pool2dOpType, input("in"): TensorRef, out: TensorRef as out, batch_size: u32,
        input_height: u32, input_width: u32, channels: u32, kernel_size: Vec<i32>, stride: Vec<i32>,
        padding: Vec<i32>, dilation: Vec<i32>, extra_params: Option<Pool2dExtraParams>,
        memory_config: Option<MemoryConfig>, applied_shard_scheme: Option<TensorMemoryLayout>, ceil_mode: bool,
        reallocate_halo_output: bool = true, config_tensors_in_dram: bool,
    }

    /// One factor for height and width.
    UniformScale2D { scale: i32 }

    /// Factors for height and width.
    NonUniformScale2D { scale: Vec<i32> }

    /// Average over height and width.
    GlobalAvgPool2dOp {
        input("in"): TensorRef, out: TensorRef as out, memory_config: Option<MemoryConfig>,
        dtype: Option<DataType>,
    }

    /// Enlarges height and width.
    UpsampleOp {
        input("in"): TensorRef, scale_factor: Scale2D, mode: String, memory_config: Option<MemoryConfig>,
        out: TensorRef as out,
    }

    /// Maximum of windows, and its index.
    MaxPool2dWithIndicesOp {
        input("in"): TensorRef, result: TensorRef as out, result_indices: TensorRef as out, batch_size: u32,
        input_height: u32, input_width: u32, channels: u32, kernel_size: Vec<i32>, stride: Vec<i32>,
        padding: Vec<i32>, dilation: Vec<i32>, memory_config: Option<MemoryConfig>,
        applied_shard_scheme: Option<TensorMemoryLayout>, ceil_mode: bool, reallocate_halo_output: bool = true,
        config_tensors_in_dram: bool,
    }
}
