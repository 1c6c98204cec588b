//! Recorded command sequences.
//!
//! Source: `TTNN/operations/trace.fbs` of the schema ([`crate::schema`]).

use crate::common::DeviceRef;
use crate::flat::declare::tables;
use crate::ttnn::types::{GlobalSemaphoreRef, TensorRef};

tables! {
    /// Begins to record commands as a trace.
    BeginTraceCaptureOp { device: Option<DeviceRef>, trace_id: TensorRef as out, cq_id: u32 }

    /// Ends the recording of a trace.
    EndTraceCaptureOp { device: Option<DeviceRef>, trace_id: TensorRef, cq_id: u32 }

    /// Replays a trace.
    ExecuteTraceOp { device: Option<DeviceRef>, trace_id: TensorRef, cq_id: u32, blocking: bool }

    /// Runs a program by its trace, which is recorded in the first run, once for each value of the
    /// inputs in `trace_key_input_indices`.
    CaptureOrExecuteTraceOp {
        device: Option<DeviceRef>, capture_program_id: u32, execute_program_id: u32,
        allocate_slots_program_id: u32, inputs: Vec<TensorRef>, outputs: Vec<TensorRef> as out,
        semaphore_inputs: Vec<GlobalSemaphoreRef>,
        trace_key_input_indices: Vec<i32> [if trace_keys], device_resident_input_count: i32 [if resident_inputs],
    }
}
