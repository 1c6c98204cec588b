//! Families of operations: from an operation and its tensors to a recipe, a module for each.

mod matmul;
mod tiles;

use tilework_model::ttnn::Op;

use crate::recipe::{Planned, Task};

/// The recipe of an operation, or why there is none.
pub(crate) fn plan(op: &Op, task: &Task<'_>) -> Planned {
    match op {
        Op::Matmul(op) => matmul::matmul(op, task),
        _ => Err("no device program for this kind of operation".into()),
    }
}
