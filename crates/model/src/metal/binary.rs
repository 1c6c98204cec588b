//! Programs.
//!
//! Source: `TTMetal/binary.fbs` of the schema ([`crate::schema`]).

use crate::common::{DataType, Dim2d, DynamicLib, MLIR, Version};
use crate::debug_info::DebugInfo;
use crate::flat::declare::tables;
use crate::metal::commands::CommandQueue;
use crate::metal::types::{BufferRef, MeshDesc};
use crate::system::SystemDesc;

tables! {
    /// Type of a tensor's elements.
    MemoryDesc { data_type: DataType }

    /// Layout of a tensor.
    LayoutDesc { memory_desc: MemoryDesc }

    /// A tensor's shape and type.
    TensorDesc { shape: Vec<i32>, mesh_shape: Vec<i32>, layout: LayoutDesc }

    /// A tensor that a program takes or returns.
    TensorRef { size: u64, desc: TensorDesc }

    /// What one mesh of devices does.
    DeviceProgram {
        inputs: Vec<BufferRef>, outputs: Vec<BufferRef>, command_queues: Vec<CommandQueue>,
        mesh: Option<MeshDesc>,
    }

    /// A program.
    Program {
        name: String, inputs: Vec<TensorRef>, outputs: Vec<TensorRef>, device_programs: Vec<DeviceProgram>,
        debug_info: Option<DebugInfo>, private: bool, mesh_shape: Option<Dim2d>,
    }

    /// The root of a `.ttm` file.
    TTMetalBinary {
        version: Option<Version>, schema_hash: String, ttmlir_git_hash: String, system_desc: Option<SystemDesc>,
        mlir: Option<MLIR>, programs: Vec<Program>, dylibs: Vec<DynamicLib>,
    }
}
