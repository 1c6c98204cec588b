//! Mixture of experts, and semaphores of the whole device.
//!
//! Source: `TTNN/operations/ccl.fbs`, `global_semaphore.fbs` of the schema ([`crate::schema`]).

use crate::common::{DeviceRef, MoEActivationFunction, Topology};
use crate::flat::declare::tables;
use crate::ttnn::types::{CoreRangeSet, GlobalSemaphoreRef, MemoryConfig, TensorRef};

tables! {
    /// Sums the results of the chosen experts of each token and returns them to the token's device.
    SelectiveReduceCombineOp {
        dense_input_tensor: TensorRef, dense_activations_tensor: TensorRef, dense_token_maps_tensor: TensorRef,
        dense_token_counts_tensor: TensorRef, out: TensorRef as out, hidden_size: u32, batch_size: u32,
        seq_size: u32, select_experts_k: u32, experts: u32,
    }

    /// Maps the chosen experts to the experts of this device.
    MoeExpertTokenRemapOp {
        topk_tensor: TensorRef, expert_mapping: TensorRef, expert_metadata: TensorRef,
        mapping: TensorRef as out, reduced: TensorRef as out, reduction_size: u32,
        memory_config: Option<MemoryConfig>,
    }

    /// The experts of a GPT-OSS layer in one operation.
    MoeGptOp {
        input_tensor: TensorRef, expert_indices: TensorRef, expert_scores: TensorRef, expert_mapping: TensorRef,
        w0_w1_tensor: TensorRef, w2_tensor: TensorRef, output_height_shard_dim: u32 = 4,
        output_width_shard_dim: u32 = 3, hidden_size: u32 = 2880, cluster_axis: Option<u32>,
        token_counts: TensorRef as out, activation_records: TensorRef as out, token_indices: TensorRef as out,
        tilize_out: TensorRef as out, tilize_out_rm: TensorRef as out,
    }

    /// Converts the weights of the experts' first two products to the layout of [`MoeComputeOp`].
    PrepareMoEComputeW0W1WeightsOp {
        w0: TensorRef, w1: TensorRef, bias_0: Option<TensorRef>, bias_1: Option<TensorRef>,
        device: Option<DeviceRef>, hidden_size: u32, intermediate_size: u32, out: TensorRef as out,
    }

    /// Converts the weights of the experts' last product to the layout of [`MoeComputeOp`].
    PrepareMoEComputeW2WeightsOp {
        w2: TensorRef, bias_2: Option<TensorRef>, device: Option<DeviceRef>, hidden_size: u32,
        intermediate_size: u32, out: TensorRef as out,
    }

    /// The experts of a layer in one operation, with routing and combination.
    MoeComputeOp {
        tilize_input_tensor: TensorRef, tilize_expert_indices_tensor: TensorRef,
        tilize_expert_scores_tensor: TensorRef, tilize_expert_mapping_tensor: TensorRef,
        matmul_w0_w1_tensor: TensorRef, matmul_w2_tensor: TensorRef,
        optional_output_tensor: Option<TensorRef> as out, cross_device_semaphore: Option<GlobalSemaphoreRef>,
        device: Option<DeviceRef>, layer_id: u32, output_height_shard_dim: u32, intermediate_size: u32,
        has_bias: bool, cluster_axis: Option<u32>, activation_function: MoEActivationFunction,
        num_links: Option<u32>, topology: Option<Topology>, mux_core_range_set: Option<CoreRangeSet>,
        combine_output: TensorRef as out,
    }

    /// Creates a semaphore that outlives the program, on a set of cores.
    CreateGlobalSemaphoreOp {
        core_range_set: Option<CoreRangeSet>, initial_value: Option<u32>, out: GlobalSemaphoreRef,
    }

    /// Sets a global semaphore.
    ResetGlobalSemaphoreOp { semaphore: GlobalSemaphoreRef, value: u32 }

    /// Creates the semaphores that [`MoeComputeOp`] uses.
    AllocateMoeComputeSemaphoreOp {
        core_range_set: Option<CoreRangeSet>, output_height_shard_dim: u32, hidden_size: u32,
        initial_value: Option<u32>, out: GlobalSemaphoreRef,
    }
}
