//! Kernels and their arguments.
//!
//! Source: `TTMetal/program.fbs` of the schema ([`crate::schema`]).

use crate::bytes::Bytes;
use crate::common::{DataMovementProcessor, Dim2dRange, MathFidelity, NocIndex, UnpackToDestMode};
use crate::flat::declare::{enums, tables, unions};

enums! {
    /// The side of an Ethernet link.
    EthType: u16 { Sender, Receiver }

    /// The core that a compiled kernel is for.
    BinaryType: u16 { BRISC, NCRISC, TRISC0, TRISC1, TRISC2, ERISC }

    /// A kind of tile.
    CoreType: u16 { WORKER, ETH }
}

unions! {
    /// The kind of core that a kernel runs on.
    KernelConfigType { NocConfig(NocConfig), ComputeConfig(ComputeConfig), EthernetConfig(EthernetConfig) }

    /// A kernel's code.
    Kernel { KernelSource(KernelSource), KernelBinary(KernelBinary) }

    /// Where an argument's value comes from. The index is into the command's `arg_refs`.
    KernelArgType {
        KernelArgCBPort(KernelArgCBPort), KernelArgBufferAddress(KernelArgBufferAddress),
        KernelArgLocalSemaphore(KernelArgLocalSemaphore), KernelArgNamedArgument(KernelArgNamedArgument),
        KernelArgGlobalSemaphore(KernelArgGlobalSemaphore), KernelArgScalar(KernelArgScalar),
        KernelArgTensorAccessorArgs(KernelArgTensorAccessorArgs),
    }
}

tables! {
    /// A kernel on a data-movement core.
    NocConfig { processor: DataMovementProcessor, noc_index: NocIndex, fabric_config_index: Option<u32> }

    /// A kernel on the compute cores.
    ComputeConfig {
        math_fidelity: MathFidelity, fp32_dest_acc_en: bool, dst_full_sync_en: bool, math_approx_mode: bool,
        unpack_to_dest_mode: Vec<UnpackToDestMode>,
    }

    /// A kernel on an Ethernet core.
    EthernetConfig { eth_type: EthType, noc_index: NocIndex }

    /// A kernel as C++ text, which the runtime compiles.
    KernelSource { source: String }

    /// A compiled kernel.
    KernelBinary { core_type: BinaryType, data: Bytes, debug_source: String }

    /// The number of a circular buffer.
    KernelArgCBPort { operand_idx: u32 }

    /// The address of a buffer.
    KernelArgBufferAddress { operand_idx: u32 }

    /// A semaphore that is created when the program starts.
    KernelArgLocalSemaphore { operand_idx: u32 }

    /// A named number.
    KernelArgNamedArgument { name: String, value: u32 }

    /// The address of a global semaphore.
    KernelArgGlobalSemaphore { operand_idx: u32 }

    /// A number that is computed on the host.
    KernelArgScalar { operand_idx: u32 }

    /// The layout of a buffer: several words.
    KernelArgTensorAccessorArgs { operand_idx: u32 }

    /// An argument of a kernel.
    KernelArg { arg: KernelArgType }

    /// A kernel's common, run-time and compile-time arguments.
    KernelArgs { crt_args: Vec<KernelArg>, rt_args: Vec<KernelArg>, ct_args: Vec<KernelArg> }

    /// A kernel: code, cores, arguments, kind.
    KernelConfig {
        kernel: Kernel, core_range_set: Vec<Dim2dRange>, args: Option<KernelArgs>,
        kind("type"): KernelConfigType, debug_info: String, symbol: String, loc: String,
    }

    /// The kernels of a program.
    ProgramDesc { kernels: Vec<KernelConfig> }
}
