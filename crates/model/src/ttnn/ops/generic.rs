//! Custom kernels inside a program.
//!
//! Source: `TTNN/operations/generic_op.fbs` of the schema ([`crate::schema`]).

use crate::common::{DataType, FabricConnectionConfig, MathFidelity, NocIndex, UnpackToDestMode};
use crate::flat::declare::{enums, tables, unions};
use crate::ttnn::types::{CoreCoord, CoreRangeSet, GlobalSemaphoreRef, MeshCoordRange, TensorRef};

enums! {
    /// What determines the NoC of a transfer.
    NocMode: u8 { DM_DEDICATED_NOC, DM_DYNAMIC_NOC }

    /// The core that a data-movement kernel runs on.
    DataMovementType: u8 { RISCV_0, RISCV_1 }

    /// The kind of tile that a kernel or semaphore is on.
    CoreType: u8 { WORKER, ETH }

    /// Whether a kernel's source is text or the name of a file.
    SourceType: u8 { FILE_PATH, SOURCE_CODE }
}

unions! {
    /// The kind of a kernel and of its core.
    KernelConfig {
        ComputeKernelConfig(ComputeKernelConfig), DataMovementKernelConfig(DataMovementKernelConfig),
        ReaderKernelConfig(ReaderKernelConfig), WriterKernelConfig(WriterKernelConfig),
    }

    /// Where an argument's value comes from.
    KernelArgType {
        KernelArgCBBufferIndex(KernelArgCBBufferIndex), KernelArgBufferAddress(KernelArgBufferAddress),
        KernelArgBufferAddressOfTensor(KernelArgBufferAddressOfTensor), KernelArgSemaphoreAt(KernelArgSemaphoreAt),
        KernelArgNamedArgument(KernelArgNamedArgument), KernelArgGlobalSemaphore(KernelArgGlobalSemaphore),
        KernelArgScalar(KernelArgScalar), KernelArgTensorAccessorArgs(KernelArgTensorAccessorArgs),
    }

    /// A program for all devices, or one for each.
    ProgramType { ProgramDescriptor(ProgramDescriptor), MeshProgramDescriptor(MeshProgramDescriptor) }

    /// Arguments of a custom operation besides its tensors.
    ArgRef { TensorRef(TensorRef), GlobalSemaphoreRef(GlobalSemaphoreRef) }
}

tables! {
    /// Format of one index of a circular buffer.
    KernelCBFormat { buffer_index: u32, dtype: DataType, page_size: u32 }

    /// A tensor whose memory a circular buffer uses.
    KernelGlobalCBIndexOfTensor { tensor_operand_index: u32 }

    /// A circular buffer.
    KernelCBDescriptor {
        total_size: u32, core_range: Option<CoreRangeSet>, formats: Vec<KernelCBFormat>,
        buffer: Option<KernelGlobalCBIndexOfTensor>,
    }

    /// A kernel for the compute cores.
    ComputeKernelConfig {
        math_fidelity: MathFidelity = MathFidelity::HiFi4, fp32_dest_acc_en: bool, dst_full_sync_en: bool,
        unpack_to_dest_modes: Vec<UnpackToDestMode>, bfp8_pack_precise: bool, math_approx_mode: bool,
    }

    /// A kernel for a stated data-movement core.
    DataMovementKernelConfig { processor: DataMovementType, noc: NocIndex, noc_mode: NocMode }

    /// A kernel for the data-movement core that usually reads.
    ReaderKernelConfig {}

    /// A kernel for the data-movement core that usually writes.
    WriterKernelConfig {}

    /// Index of a circular buffer.
    KernelArgCBBufferIndex { buffer_index: u32 }

    /// An address.
    KernelArgBufferAddress { address: u32 }

    /// The address of a tensor of the operation.
    KernelArgBufferAddressOfTensor { operand_index: u32 }

    /// The address of a semaphore of the program.
    KernelArgSemaphoreAt { semaphore_index: u32 }

    /// A named number.
    KernelArgNamedArgument { name: String, value: u32 }

    /// The address of a global semaphore of the operation.
    KernelArgGlobalSemaphore { operand_index: u32 }

    /// A number that is computed on the host.
    KernelArgScalar { operand_index: u32 }

    /// The layout of a tensor of the operation: several words.
    KernelArgTensorAccessorArgs { operand_index: u32 }

    /// An argument of a kernel.
    KernelArg { arg: KernelArgType }

    /// Arguments in order.
    KernelCoreArgs { args: Vec<KernelArg> }

    /// Arguments for the kernel on one core.
    CoreRuntimeArgs { core_coord: CoreCoord, args: Option<KernelCoreArgs> }

    /// A kernel: source, kind, cores, arguments.
    KernelDescriptor {
        source: String, source_type: SourceType = SourceType::SOURCE_CODE, config: KernelConfig,
        core_ranges: Option<CoreRangeSet>, ct_args: Option<KernelCoreArgs>, rt_args: Vec<CoreRuntimeArgs>,
        common_rt_args: Option<KernelCoreArgs>,
    }

    /// A semaphore of the program.
    SemaphoreDescriptor {
        id: u32, core_type: CoreType, core_ranges: Option<CoreRangeSet>, initial_value: u32,
    }

    /// Kernels, semaphores and circular buffers.
    ProgramDescriptor {
        kernels: Vec<KernelDescriptor>, semaphores: Vec<SemaphoreDescriptor>, cbs: Vec<KernelCBDescriptor>,
    }

    /// A program for a range of the mesh.
    MeshProgram { device_range: Option<MeshCoordRange>, program: ProgramDescriptor }

    /// Programs for the devices of the mesh.
    MeshProgramDescriptor {
        mesh_programs: Vec<MeshProgram>, fabric_connection_config: Option<FabricConnectionConfig>,
    }

    /// An operation with the user's own kernels.
    GenericOp { io_tensors: Vec<TensorRef> as inout, additional_args: Vec<ArgRef>, program: ProgramType }
}
