//! Debugging operations: annotations, prints and dumps.
//!
//! Source: `TTNN/operations/debug.fbs`, `tensor_serialization.fbs` of the schema
//! ([`crate::schema`]).

use crate::common::DeviceRef;
use crate::flat::declare::tables;
use crate::ttnn::types::TensorRef;

tables! {
    /// An annotation; the tensor passes through.
    AnnotateOp { operand: TensorRef, result: TensorRef as out, annotation: String }

    /// Stops a debugger.
    BreakpointOp { operand: TensorRef }

    /// Prints a tensor.
    PrintOp { operand: TensorRef, message: String }

    /// Writes the state of the device's memory to a file.
    MemorySnapshotOp { operand: TensorRef, file_path: String }

    /// Begins a named region; the tensor passes through.
    RegionStartOp { operand: TensorRef, result: TensorRef as out, region_id: String }

    /// Ends a named region; the tensor passes through.
    RegionEndOp { operand: TensorRef, result: TensorRef as out, region_id: String }

    /// Writes a tensor to a file.
    DumpTensorOp { file_path: String, input("in"): TensorRef }

    /// Reads a tensor from a file.
    LoadTensorOp { file_path: String, device: Option<DeviceRef>, out: TensorRef as out }
}
