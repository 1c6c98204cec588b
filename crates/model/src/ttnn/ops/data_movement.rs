//! Data movement: reshape, permute, slice, gather and the like.
//!
//! Source: `TTNN/operations/data_movement.fbs` of the schema ([`crate::schema`]).

use crate::flat::declare::{enums, tables, unions};
use crate::ttnn::types::{MemoryConfig, TensorRef};

enums! {
    /// How scattered values are combined with the existing ones; `Invalid` overwrites.
    ScatterReduceType: u8 { Sum = 0, Max = 2, Min = 3, Prod = 6, Invalid = 7 }

    /// Where a slice's bounds come from.
    SliceOpType: u32 { SliceStaticOp, SliceDynamicOp }
}

unions! {
    /// The bounds of a slice.
    SliceOpParams { SliceStaticOpParams(SliceStaticOpParams), SliceDynamicOpParams(SliceDynamicOpParams) }
}

tables! {
    /// Concatenates tensors along a dimension.
    ConcatOp { inputs: Vec<TensorRef>, out: TensorRef as out, dim: i32, memory_config: Option<MemoryConfig> }

    /// Writes `source` into `input` at `index` along a dimension.
    ScatterOp {
        input: TensorRef, out: TensorRef as out, index: TensorRef, source: TensorRef, dim: i32,
        memory_config: Option<MemoryConfig>, scatter_reduce_type: ScatterReduceType,
    }

    /// Takes elements at `index` along a dimension.
    GatherOp {
        input: TensorRef, index: TensorRef, out: TensorRef as out, dim: i32,
        memory_config: Option<MemoryConfig>,
    }

    /// Adds elements before and after each dimension.
    PadOp {
        input("in"): TensorRef, out: TensorRef as out, padding: Vec<u32>, value: f32, use_multicore: bool,
        memcfg: Option<MemoryConfig>,
    }

    /// Reorders dimensions.
    PermuteOp {
        input("in"): TensorRef, permutation: Vec<i64>, memory_config: Option<MemoryConfig>, pad_value: f32,
        out: TensorRef as out,
    }

    /// Repeats each element along a dimension.
    RepeatInterleaveOp {
        input: TensorRef, out: TensorRef as out, repeats: u32, dim: i32, memory_config: Option<MemoryConfig>,
    }

    /// Repeats the tensor along its dimensions.
    RepeatOp {
        input("in"): TensorRef, out: TensorRef as out, repeat_dims: Vec<i64>, memcfg: Option<MemoryConfig>,
    }

    /// The same elements in another shape.
    ReshapeOp {
        input("in"): TensorRef, out: TensorRef as out, shape: Vec<i32>, memory_config: Option<MemoryConfig>,
    }

    /// Bounds that are constants in the file.
    SliceStaticOpParams { begins: Vec<i64>, ends: Vec<i64> }

    /// Bounds that are tensors.
    SliceDynamicOpParams { begins: TensorRef, ends: TensorRef }

    /// Elements from `begins` below `ends` in steps.
    SliceOp {
        kind("type"): SliceOpType, input("in"): TensorRef, out: TensorRef as out, step: Vec<i64>,
        params: SliceOpParams,
    }

    /// Exchanges two dimensions.
    TransposeOp { input("in"): TensorRef, out: TensorRef as out, dim0: i32, dim1: i32 }

    /// Takes slices at the places in `index`. `sizes` are the lengths of the indexed dimensions,
    /// `windows` the length taken of each; `column` and `fill_out_of_bounds` are the arguments of
    /// these names in the text. Only in the compiler of `jax-tt-plugin`, since 0.1.2, of which no
    /// source is public; no file with `fill_out_of_bounds` was seen, its place follows from the
    /// order of the text's arguments.
    RowsGatherOp {
        input: TensorRef, index: TensorRef, out: TensorRef as out, sizes: Vec<i32>, windows: Vec<i32>, column: bool,
        fill_out_of_bounds: bool,
    }

    /// Writes slices of `source` where [`RowsGatherOp`] would take them, and reduces them with the
    /// existing values unless `reduce` is `Invalid`.
    RowsScatterOp {
        input: TensorRef, index: TensorRef, source: TensorRef, out: TensorRef as out, sizes: Vec<i32>, windows: Vec<i32>,
        column: bool, reduce: ScatterReduceType,
    }
}
