//! Products of matrices.
//!
//! Source: `TTNN/operations/matmul.fbs` of the schema ([`crate::schema`]).

use crate::common::DataType;
use crate::flat::BehindUnknown;
use crate::flat::declare::{tables, unions};
use crate::ttnn::ops::fused::{DeviceComputeKernelConfig, UnaryWithParam};
use crate::ttnn::types::{CoreCoord, CoreRangeSet, MemoryConfig, TensorRef};

unions! {
    /// Blocking of a product.
    MatmulProgramConfig {
        MatmulMultiCoreReuseProgramConfig(MatmulMultiCoreReuseProgramConfig),
        MatmulMultiCoreReuseMultiCastProgramConfig(MatmulMultiCoreReuseMultiCastProgramConfig),
        MatmulMultiCoreReuseMultiCast1DProgramConfig(MatmulMultiCoreReuseMultiCast1DProgramConfig),
        MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig),
    }
}

tables! {
    /// Blocking of a product, each core on its own.
    MatmulMultiCoreReuseProgramConfig {
        compute_with_storage_grid_size: Option<CoreCoord>, in0_block_w: u64, out_subblock_h: u64,
        out_subblock_w: u64, per_core_m: u64, per_core_n: u64,
    }

    /// Blocking of a product with both operands multicast.
    MatmulMultiCoreReuseMultiCastProgramConfig {
        compute_with_storage_grid_size: Option<CoreCoord>, in0_block_w: u64, out_subblock_h: u64,
        out_subblock_w: u64, out_block_h: u64, out_block_w: u64, per_core_m: u64, per_core_n: u64,
        transpose_mcast: bool, fused_activation: Option<UnaryWithParam>, fuse_batch: bool,
    }

    /// Blocking of a product with one operand multicast.
    MatmulMultiCoreReuseMultiCast1DProgramConfig {
        compute_with_storage_grid_size: Option<CoreCoord>, in0_block_w: u64, out_subblock_h: u64,
        out_subblock_w: u64, out_block_h: u64, out_block_w: u64, per_core_m: u64, per_core_n: u64,
        fuse_batch: bool, fused_activation: Option<UnaryWithParam>, mcast_in0: bool, gather_in0: bool,
        hop_cores: Option<CoreRangeSet>, num_global_cb_receivers: u64, untilize_out: bool,
    }

    /// Blocking of a product whose weights are sharded in DRAM.
    MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig {
        in0_block_w: u64, per_core_m: u64, per_core_n: u64, fused_activation: Option<UnaryWithParam>,
    }

    /// Product of two matrices, or of batches of them. With `fused_swiglu`, which only the compiler
    /// in `jax-tt-plugin` 0.1.0 writes, the columns of the product are two halves, up and gate in
    /// that order, and the result has half as many: `up * silu(gate)`. This is not documented; it
    /// follows from programs and the order in which their weights are concatenated. `fp32_exact`,
    /// which the compiler in 0.1.3 writes for products of the highest precision of JAX (its text
    /// has `ttcore.fp32_exact`), asks for operands of float32 that keep all their bits.
    MatmulOp {
        a: TensorRef, b: TensorRef, out: TensorRef as out, transpose_a: bool, transpose_b: bool,
        matmul_program_config: Option<MatmulProgramConfig>, activation: Option<String>,
        compute_config: Option<DeviceComputeKernelConfig>,
        fused_swiglu: bool [if fused_swiglu], fp32_exact: BehindUnknown [if fp32_exact],
    }

    /// [`MatmulOp`] with a bias.
    LinearOp {
        a: TensorRef, b: TensorRef, bias: Option<TensorRef>, out: TensorRef as out, transpose_a: bool,
        transpose_b: bool, matmul_program_config: Option<MatmulProgramConfig>, activation: Option<String>,
        compute_config: Option<DeviceComputeKernelConfig>,
    }

    /// Products of only those batches that `sparsity` selects.
    SparseMatmulOp {
        a: TensorRef, b: TensorRef, sparsity: TensorRef, out: TensorRef as out, is_input_a_sparse: bool,
        is_input_b_sparse: bool, nnz: Option<i64>,
        program_config: Option<MatmulMultiCoreReuseMultiCast1DProgramConfig>,
        memory_config: Option<MemoryConfig>, dtype: DataType, compute_config: Option<DeviceComputeKernelConfig>,
    }
}
