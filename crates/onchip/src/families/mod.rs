//! Families of operations: from an operation and its tensors to a recipe, a module for each.

mod matmul;
mod movement;
mod rearrange;
mod tiles;

use tilework_model::ttnn::Op;

use crate::recipe::{Planned, Task};

/// The recipe of an operation, or why there is none.
pub(crate) fn plan(op: &Op, task: &Task<'_>) -> Planned {
    match op {
        Op::Matmul(op) => matmul::matmul(op, task),
        Op::Concat(op) => movement::concat(op, task),
        Op::Pad(op) => movement::pad(op, task),
        Op::Permute(op) => movement::permute(op, task),
        Op::Repeat(op) => movement::repeat(op, task),
        Op::RepeatInterleave(op) => movement::repeat_interleave(op, task),
        Op::Slice(op) => movement::slice(op, task),
        Op::Transpose(op) => movement::transpose(op, task),
        Op::Reshape(_) | Op::ToLayout(_) | Op::ToMemoryConfig(_) | Op::Assign(_) => movement::same_elements(task),
        _ => Err("no device program for this kind of operation".into()),
    }
}
