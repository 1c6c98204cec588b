//! Families of operations: from an operation and its tensors to a recipe, a module for each.

mod conv;
mod edges;
mod eltwise;
mod fused;
mod matmul;
mod movement;
mod norm;
mod rearrange;
mod reduction;
mod stage;
mod tiles;

use tilework_model::ttnn::Op;
use tilework_model::ttnn::ops::creation::NamedFullOpType;
use tilework_model::ttnn::types::NumberType;
use tilework_ops::Fill;

use crate::recipe::{Planned, Task};

/// The recipe of an operation, or why there is none.
pub(crate) fn plan(op: &Op, task: &Task<'_>) -> Planned {
    match op {
        Op::Conv2d(op) => conv::conv2d(op, task),
        Op::Linear(op) => matmul::linear(op, task),
        Op::Matmul(op) => matmul::matmul(op, task),
        Op::EltwiseBinary(op) => eltwise::binary(op, task),
        Op::EltwiseBinaryComposite(op) => eltwise::binary_composite(op, task),
        Op::EltwiseBinaryCompositeScalar(op) => eltwise::binary_scalar(op, task),
        Op::EltwiseTernaryWhere(op) => eltwise::select(op, task),
        Op::EltwiseUnary(op) => eltwise::unary(op, task),
        Op::EltwiseUnaryComposite(op) => eltwise::unary_composite(op, task),
        Op::Arange(op) => eltwise::arange(op, task),
        Op::Full(op) => movement::full(fill(&op.fill_value), task),
        Op::NamedFull(op) => movement::full(Fill::Float(f32::from(u8::from(op.kind == NamedFullOpType::Ones))), task),
        Op::LayerNorm(op) => norm::layer_norm(op, task),
        Op::RMSNorm(op) => norm::rms_norm(op, task),
        Op::Softmax(op) => norm::softmax(op, task),
        Op::Reduction(op) => reduction::reduction(op, task),
        Op::ReductionProd(op) => reduction::prod(op, task),
        Op::Typecast(_) => eltwise::typecast(task),
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

fn fill(value: &NumberType) -> Fill {
    match value {
        NumberType::FP(number) => Fill::Float(number.value),
        NumberType::I32(number) => Fill::Int(number.value),
    }
}
