//! Collective operations, and tensors distributed over a mesh.
//!
//! Source: `TTNN/operations/ccl.fbs` of the schema ([`crate::schema`]).

use crate::common::{DeviceRef, Topology};
use crate::flat::declare::tables;
use crate::ttnn::ops::fused::DeviceComputeKernelConfig;
use crate::ttnn::types::{GlobalSemaphoreRef, MemoryConfig, MeshComposerConfig, MeshMapperConfig, TensorRef};

tables! {
    /// Gathers the shards of all devices along a mesh axis into each of them.
    AllGatherOp {
        input("in"): TensorRef, out: TensorRef as out, all_gather_dim: i32, cluster_axis: u32,
        sub_device_id: Option<u8>, memory_config: Option<MemoryConfig>, num_links: Option<u32>,
        topology: Option<Topology>,
    }

    /// Reduces over the devices along a mesh axis; each gets the result.
    AllReduceOp {
        input("in"): TensorRef, out: TensorRef as out, reduce_type: u32, cluster_axis: u32,
        sub_device_id: Option<u8>, memory_config: Option<MemoryConfig>, num_links: Option<u32>,
        topology: Option<Topology>,
    }

    /// As [`AllReduceOp`], without waiting for the other devices between steps.
    AllReduceAsyncOp {
        input("in"): TensorRef, out: TensorRef as out, reduce_type: u32, cluster_axis: u32,
        sub_device_id: Option<u8>, memory_config: Option<MemoryConfig>, num_links: Option<u32>,
        topology: Option<Topology>,
    }

    /// Reduces over the devices along a mesh axis; each gets its shard of the result.
    ReduceScatterOp {
        input("in"): TensorRef, out: TensorRef as out, scatter_dim: i32, reduce_type: u32, cluster_axis: u32,
        sub_device_id: Option<u8>, memory_config: Option<MemoryConfig>, num_links: Option<u32>,
        topology: Option<Topology>, compute_config: Option<DeviceComputeKernelConfig>,
    }

    /// Sends a tensor from one device of the mesh to another.
    PointToPointOp {
        input("in"): TensorRef, out: TensorRef as out, sender_coord: Vec<u32>, receiver_coord: Vec<u32>,
        optional_output_tensor: Option<TensorRef> as out,
    }

    /// Distributes a host tensor over the devices of the mesh.
    DistributeTensorOp {
        input("in"): TensorRef, out: TensorRef as out, mapper_config: Option<MeshMapperConfig>,
        device: Option<DeviceRef>, cq_id: Option<u32>,
    }

    /// Composes one host tensor from the devices' shards.
    AggregateTensorOp {
        input("in"): TensorRef, out: TensorRef as out, composer_config: Option<MeshComposerConfig>,
        device: Option<DeviceRef>,
    }

    /// Each device keeps its shard of a tensor that all of them have.
    MeshPartitionOp {
        input("in"): TensorRef, out: TensorRef as out, dim: i32, cluster_axis: Option<u32>,
        memory_config: Option<MemoryConfig>,
    }

    /// Sends each token to the devices that hold its experts.
    AllToAllDispatchOp {
        input_tensor: TensorRef, expert_indices: TensorRef, expert_mapping: TensorRef,
        dispatched: TensorRef as out, metadata: TensorRef as out, num_devices: u32, cluster_axis: u32,
        memory_config: Option<MemoryConfig>,
    }

    /// As [`AllToAllDispatchOp`], with indices and scores of the experts sent along.
    AllToAllDispatchMetadataOp {
        input_tensor: TensorRef, expert_indices: TensorRef, expert_scores: TensorRef, expert_mapping: TensorRef,
        dispatched: TensorRef as out, indices: TensorRef as out, scores: TensorRef as out, num_devices: u32,
        cluster_axis: u32, memory_config: Option<MemoryConfig>, dispatched_buffer: Option<TensorRef> as out,
        indices_buffer: Option<TensorRef> as out, scores_buffer: Option<TensorRef> as out,
        cross_device_semaphore: Option<GlobalSemaphoreRef>,
    }

    /// Returns the experts' results to the tokens' devices.
    AllToAllCombineOp {
        input_tensor: TensorRef, expert_metadata: TensorRef, expert_mapping: TensorRef, out: TensorRef as out,
        num_devices: u32, cluster_axis: u32, num_experts_per_tok: u32, output_shard_dim: u32 = 2,
        memory_config: Option<MemoryConfig>,
    }
}
