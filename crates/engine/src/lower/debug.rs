//! Debugging operations: annotations, prints and dumps become messages to the observer; no
//! file is written.

use tilework_model::ttnn::ops::debug::{
    AnnotateOp, BreakpointOp, DumpTensorOp, MemorySnapshotOp, PrintOp, RegionEndOp, RegionStartOp,
};

use super::*;

/// Reports a message about a tensor, and passes the tensor on if there is a result.
fn say<'m>(
    text: &'m str,
    about: &'m TensorRef,
    result: Option<&'m TensorRef>,
    lowering: &mut Lowering<'m>,
) -> Lowered<'m> {
    lowering.read(about);
    if let Some(result) = result {
        lowering.make(result)?;
    }
    Ok(Action::Say(text))
}

pub(super) fn annotate<'m>(op: &'m AnnotateOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    say(&op.annotation, &op.operand, Some(&op.result), lowering)
}

pub(super) fn breakpoint<'m>(op: &'m BreakpointOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    say("breakpoint", &op.operand, None, lowering)
}

pub(super) fn print<'m>(op: &'m PrintOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    say(&op.message, &op.operand, None, lowering)
}

pub(super) fn memory_snapshot<'m>(op: &'m MemorySnapshotOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    say(&op.file_path, &op.operand, None, lowering)
}

pub(super) fn dump_tensor<'m>(op: &'m DumpTensorOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    say(&op.file_path, &op.input, None, lowering)
}

pub(super) fn region_start<'m>(op: &'m RegionStartOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    say(&op.region_id, &op.operand, Some(&op.result), lowering)
}

pub(super) fn region_end<'m>(op: &'m RegionEndOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    say(&op.region_id, &op.operand, Some(&op.result), lowering)
}
