//! Softmax and normalisation, also in parts over several devices.
//!
//! Source: `TTNN/operations/normalization.fbs` of the schema ([`crate::schema`]).

use crate::common::{DataType, Topology};
use crate::flat::declare::tables;
use crate::ttnn::ops::fused::DeviceComputeKernelConfig;
use crate::ttnn::types::{CoreCoord, GlobalSemaphoreRef, MemoryConfig, TensorRef};

tables! {
    /// Softmax along a dimension.
    SoftmaxOp {
        input("in"): TensorRef, out: TensorRef as out, dimension: i32, numeric_stable: bool,
        compute_config: Option<DeviceComputeKernelConfig>,
    }

    /// Batch normalisation with given mean and variance.
    BatchNormInferenceOp {
        input: TensorRef, running_mean: Option<TensorRef>, running_var: Option<TensorRef>, epsilon: f32,
        weight: Option<TensorRef>, bias: Option<TensorRef>, memory_config: Option<MemoryConfig>,
        out: TensorRef as out, compute_config: Option<DeviceComputeKernelConfig>,
    }

    /// Batch normalisation by the batch's own mean and variance, which also updates the
    /// running ones.
    BatchNormTrainingOp {
        input: TensorRef, running_mean: Option<TensorRef> as inout, running_var: Option<TensorRef> as inout, epsilon: f32,
        momentum: f32, weight: Option<TensorRef>, bias: Option<TensorRef>, memory_config: Option<MemoryConfig>,
        out: TensorRef as out, compute_config: Option<DeviceComputeKernelConfig>,
    }

    /// Division by the root mean square of the last dimension.
    RMSNormOp {
        input: TensorRef, weight: Option<TensorRef>, bias: Option<TensorRef>, epsilon: f32,
        memory_config: Option<MemoryConfig>, out: TensorRef as out,
        compute_config: Option<DeviceComputeKernelConfig>,
    }

    /// [`RMSNormOp`] with a residual and an activation.
    DitRMSNormUnaryFusedOp {
        input: TensorRef, weight: Option<TensorRef>, bias: Option<TensorRef>, residual_input: Option<TensorRef>,
        epsilon: f32, activation: Option<String>, memory_config: Option<MemoryConfig>,
        compute_config: Option<DeviceComputeKernelConfig>, out: TensorRef as out,
    }

    /// Blocking of a normalisation over sharded memory.
    LayerNormShardedMultiCoreProgramConfig {
        compute_with_storage_grid_size: Option<CoreCoord>, subblock_w: u64, block_h: u64, block_w: u64,
        inplace: bool,
    }

    /// [`RMSNormOp`] over a dimension that is sharded over devices.
    DistributedRMSNormOp {
        input: TensorRef, weight: Option<TensorRef>, residual: Option<TensorRef>, cluster_axis: u32,
        epsilon: f32, sub_device_id: Option<u8>, memory_config: Option<MemoryConfig>, num_links: Option<u32>,
        topology: Option<Topology>, compute_config: Option<DeviceComputeKernelConfig>, stats: Option<TensorRef>,
        program_config: Option<LayerNormShardedMultiCoreProgramConfig>, out: TensorRef as out,
        semaphore: Option<GlobalSemaphoreRef>,
    }

    /// The part of a distributed [`RMSNormOp`] before the devices exchange their sums.
    RMSNormPreAllGatherOp {
        input: TensorRef, dtype: DataType, residual: Option<TensorRef>, memory_config: Option<MemoryConfig>,
        compute_config: Option<DeviceComputeKernelConfig>,
        program_config: Option<LayerNormShardedMultiCoreProgramConfig>, use_2d_core_grid: bool,
        out: TensorRef as out,
    }

    /// Normalisation of the last dimension by mean and variance.
    LayerNormOp {
        input: TensorRef, weight: Option<TensorRef>, bias: Option<TensorRef>, epsilon: f32,
        memory_config: Option<MemoryConfig>, out: TensorRef as out,
    }

    /// The part of a distributed [`LayerNormOp`] before the devices exchange their sums.
    LayerNormPreAllGatherOp {
        input: TensorRef, residual_input: Option<TensorRef>, recip: Option<TensorRef>,
        dtype: DataType = DataType::BFloat16, memory_config: Option<MemoryConfig>,
        compute_config: Option<DeviceComputeKernelConfig>,
        program_config: Option<LayerNormShardedMultiCoreProgramConfig>, out: TensorRef as out,
    }

    /// The part of a distributed [`LayerNormOp`] after the devices exchanged their sums.
    LayerNormPostAllGatherOp {
        input: TensorRef, stats: TensorRef, weight: Option<TensorRef>, bias: Option<TensorRef>,
        epsilon: f32 = 1e-12, dtype: Option<DataType>, memory_config: Option<MemoryConfig>,
        compute_config: Option<DeviceComputeKernelConfig>,
        program_config: Option<LayerNormShardedMultiCoreProgramConfig>, out: TensorRef as out,
    }

    /// Normalisation of groups of channels.
    GroupNormOp {
        input: TensorRef, input_mask: Option<TensorRef>, weight: Option<TensorRef>, bias: Option<TensorRef>,
        num_groups: i64, epsilon: f32, memory_config: Option<MemoryConfig>, out: TensorRef as out,
    }
}
