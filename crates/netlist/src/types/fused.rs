//! Fused operations: several steps in one core, without a queue between them.

use super::{OpKind, Position, Post, Size, Tm};

/// A fused operation.
#[derive(Debug, Clone, PartialEq)]
pub struct FusedOp {
    /// Its id.
    pub id: u32,
    /// Where the file defines it.
    pub at: Position,
    /// Inputs.
    pub inputs: u32,
    /// Intermediate buffers.
    pub intermediates: u32,
    /// Schedules, each a list of steps.
    pub schedules: Vec<Vec<FusedStep>>,
}

/// What a step of a fused operation reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FusedSource {
    /// An input of the fused operation.
    Input(u32),
    /// An intermediate buffer.
    Intermed(u32),
    /// The destination registers.
    Dest,
}

/// Where a step of a fused operation writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FusedTarget {
    /// An intermediate buffer.
    Intermed(u32),
    /// The destination registers.
    Dest,
    /// The output.
    Output,
}

/// One step of a fused operation.
#[derive(Debug, Clone, PartialEq)]
pub struct FusedStep {
    /// Its name.
    pub name: String,
    /// Where the file defines it.
    pub at: Position,
    /// What it computes; never a fused operation.
    pub kind: OpKind,
    /// What it does with the result.
    pub post: Post,
    /// Operands and their TMs.
    pub inputs: Vec<(FusedSource, Vec<Tm>)>,
    /// Where the result goes.
    pub output: FusedTarget,
    /// Macro block of the result.
    pub mblock: Size,
    /// Micro block of the result.
    pub ublock: Size,
    /// Buffers that are freed after the step.
    pub pop: Vec<FusedSource>,
    /// Buffers that are freed after the last step of the operation.
    pub pop_last: Vec<FusedSource>,
}
