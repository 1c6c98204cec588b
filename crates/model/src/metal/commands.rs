//! The commands of a queue.
//!
//! Source: `TTMetal/command.fbs` of the schema ([`crate::schema`]).

use crate::bytes::Bytes;
use crate::common::{Dim2dRange, EventRef, FabricConnectionConfig, MeshShardDirection, MeshShardType};
use crate::flat::declare::{tables, unions};
use crate::metal::kernels::ProgramDesc;
use crate::metal::types::{ArgRef, BufferRef, CBRef, GlobalSemaphoreRef, LocalSemaphoreRef};

unions! {
    /// The kinds of commands.
    CommandType {
        HostAllocCommand(HostAllocCommand), ReturnCommand(ReturnCommand),
        EnqueueProgramCommand(EnqueueProgramCommand), EnqueueWriteBufferCommand(EnqueueWriteBufferCommand),
        EnqueueReadBufferCommand(EnqueueReadBufferCommand), CreateBufferCommand(CreateBufferCommand),
        DeallocateBufferCommand(DeallocateBufferCommand),
        CreateGlobalSemaphoreCommand(CreateGlobalSemaphoreCommand),
        ResetGlobalSemaphoreCommand(ResetGlobalSemaphoreCommand),
        CreateLocalSemaphoreCommand(CreateLocalSemaphoreCommand),
        EnqueueRecordEventCommand(EnqueueRecordEventCommand),
        EnqueueWaitForEventCommand(EnqueueWaitForEventCommand), EventSynchronizeCommand(EventSynchronizeCommand),
        MemrefCopyCommand(MemrefCopyCommand), CpuCommand(CpuCommand), FinishCommand(FinishCommand),
        MeshShardCommand(MeshShardCommand),
    }
}

tables! {
    /// Creates a host buffer, of zeros or of the given bytes.
    HostAllocCommand { dst: BufferRef, data: Bytes }

    /// The results.
    ReturnCommand { results: Vec<BufferRef> }

    /// Runs kernels.
    EnqueueProgramCommand {
        arg_refs: Vec<ArgRef>, cbs: Vec<CBRef>, program: ProgramDesc,
        fabric_connection_configs: Vec<FabricConnectionConfig>,
    }

    /// Creates a global semaphore.
    CreateGlobalSemaphoreCommand {
        reference("ref"): GlobalSemaphoreRef, initial_value: Option<u32>, core_range_set: Vec<Dim2dRange>,
    }

    /// Sets a global semaphore.
    ResetGlobalSemaphoreCommand { reference("ref"): GlobalSemaphoreRef, value: u32 }

    /// Creates a semaphore for the next program.
    CreateLocalSemaphoreCommand { reference("ref"): LocalSemaphoreRef }

    /// Copies a host buffer to the device.
    EnqueueWriteBufferCommand { src: BufferRef, dst: BufferRef }

    /// Copies a buffer from the device.
    EnqueueReadBufferCommand { src: BufferRef, dst: BufferRef }

    /// Creates a buffer at its address.
    CreateBufferCommand { reference("ref"): BufferRef }

    /// Frees a buffer.
    DeallocateBufferCommand { reference("ref"): BufferRef }

    /// Records an event in the queue.
    EnqueueRecordEventCommand { reference("ref"): EventRef }

    /// The queue waits for an event.
    EnqueueWaitForEventCommand { reference("ref"): EventRef }

    /// The host waits for an event.
    EventSynchronizeCommand { reference("ref"): EventRef }

    /// Copies a host buffer to another.
    MemrefCopyCommand { src: BufferRef, dst: BufferRef }

    /// A function in a native library of the file, computed on the host.
    CpuCommand { ins: Vec<BufferRef>, outs: Vec<BufferRef>, func_name: String, dylib_id: u32 }

    /// The host waits for the queue.
    FinishCommand {}

    /// Shards a host buffer over the devices of a mesh, or composes it from their shards.
    MeshShardCommand {
        src: BufferRef, dst: BufferRef, shard_type: MeshShardType, shard_direction: MeshShardDirection,
        shard_shape: Vec<i64>, shard_dims: Vec<i64>,
    }

    /// One command.
    Command { kind("type"): CommandType, loc: String, debug_info: String }

    /// Commands in order.
    CommandQueue { name: String, queue_id: u32, commands: Vec<Command> }
}
