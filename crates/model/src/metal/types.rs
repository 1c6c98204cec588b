//! References to buffers and semaphores in TTMetal programs.
//!
//! Source: `TTMetal/types.fbs` of the schema ([`crate::schema`]).

use crate::common::{BufferType, DataType, Dim2d, Dim2dRange};
use crate::flat::declare::{tables, unions};

unions! {
    /// How a buffer on the device is laid out.
    BufferConfig { ShardedBufferConfig(ShardedBufferConfig), InterleavedBufferConfig(InterleavedBufferConfig) }

    /// Where a buffer is.
    BufferDetail { SystemBuffer(SystemBuffer), MetalBuffer(MetalBuffer) }

    /// What can be passed to a program's kernels.
    ArgRef { BufferRef(BufferRef), GlobalSemaphoreRef(GlobalSemaphoreRef), LocalSemaphoreRef(LocalSemaphoreRef) }
}

tables! {
    /// The cores that have shards, and the shape of these.
    ShardSpec { core_range_set: Vec<Dim2dRange>, shard_shape: Option<Dim2d> }

    /// A [`ShardSpec`] and the pages that the shards consist of.
    ShardSpecBuffer {
        shard_spec: Option<ShardSpec>, page_shape: Option<Dim2d>, tensor_shape_in_pages: Option<Dim2d>,
    }

    /// How the pages of a buffer are distributed.
    BufferDistributionSpec {
        tensor_shape_in_pages: Vec<u32>, shard_shape_in_pages: Vec<u32>, cores: Vec<Dim2d>,
    }

    /// A buffer whose pages are distributed over the banks in turn.
    InterleavedBufferConfig { size: u64, page_size: u64 }

    /// A buffer with shards on cores.
    ShardedBufferConfig {
        size: u64, page_size: u64, shard_spec_buffer: Option<ShardSpecBuffer>,
        buffer_distribution_spec: Option<BufferDistributionSpec>,
    }

    /// A circular buffer that uses a buffer's memory.
    CircularBufferConfig {
        core_range_set: Vec<Dim2dRange>, total_size: u64, page_size: u64, num_buffers: u64,
    }

    /// A buffer on the host.
    SystemBuffer { stride: Vec<i32> }

    /// A buffer on the device.
    MetalBuffer {
        buffer_type: BufferType, buffer_config: BufferConfig,
        circular_buffer_config: Option<CircularBufferConfig>,
    }

    /// A buffer's shape, type and location.
    BufferDesc {
        shape: Vec<i32>, host_strides: Vec<i32>, host_volume: u64, data_type: DataType, element_shape: Dim2d,
        buffer_detail: BufferDetail, mesh: String,
    }

    /// A reference to a buffer.
    BufferRef { global_id: u32, address: u64, desc: BufferDesc }

    /// A reference to a global semaphore.
    GlobalSemaphoreRef { global_id: u32, address: u64 }

    /// A reference to a semaphore of one program.
    LocalSemaphoreRef { global_id: u32, initial_value: u32 }

    /// A buffer as a kernel's circular buffer.
    CBRef { port: u32, buffer_ref: BufferRef }

    /// A mesh of devices.
    MeshDesc { name: String, mesh_shape: Vec<i64>, mesh_offset: Vec<i64> }
}
