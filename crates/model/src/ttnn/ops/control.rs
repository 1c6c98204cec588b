//! Calls of other programs and of native code, branches and loops.
//!
//! [`CaseOp`] and [`WhileLoopOp`] exist only in the compiler of `jax-tt-plugin`, not in the
//! public schema.
//!
//! Source: `TTNN/operations/load_cached.fbs`, `mlir_native.fbs`, `cpu.fbs` of the schema
//! ([`crate::schema`]).

use crate::flat::declare::tables;
use crate::ttnn::types::{GlobalSemaphoreRef, TensorRef};

tables! {
    /// The results of a program that depends on constants only: computed in the first
    /// run, then kept.
    LoadCachedOp {
        inputs: Vec<TensorRef>, callee_name: String, program_idx: u32, outputs: Vec<TensorRef> as out,
        program_hash: String,
    }

    /// Calls another program of the file.
    FuncCallOp {
        program_id: u32, inputs: Vec<TensorRef>, outputs: Vec<TensorRef> as out,
        semaphore_inputs: Vec<GlobalSemaphoreRef>,
    }

    /// A function in a native library of the program, computed on the host.
    CpuOp { ins: Vec<TensorRef>, outs: Vec<TensorRef> as out, func_name: String, dylib_id: u32 }

    /// Calls one of several programs, all with the same inputs: the one that `index` selects. It
    /// implements `stablehlo.case`, where an index beyond the last selects the last; `index` may be
    /// a boolean that was widened to another type.
    CaseOp {
        branch_program_ids: Vec<u32>, index: TensorRef, inputs: Vec<TensorRef>, outputs: Vec<TensorRef> as out,
    }

    /// A number, or the one in the input of that index.
    LoopBound { constant: i64, input_index: Option<i32> }

    /// Calls a program in a loop. Inputs are the state, `state_count` tensors, and those that do
    /// not change. The body takes all inputs and returns the next state. A loop either has a
    /// condition, a program that takes all inputs too, or counts from `initial` to below `limit`.
    /// Outputs are the tensors of the state in `output_indices`.
    WhileLoopOp {
        body_program_id: u32, condition_program_id: Option<u32>, initial: Option<LoopBound>, limit: Option<LoopBound>,
        step: Option<LoopBound>, state_count: u32, output_indices: Vec<i32>, inputs: Vec<TensorRef>,
        outputs: Vec<TensorRef> as out,
    }
}
