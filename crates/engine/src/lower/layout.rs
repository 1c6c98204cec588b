//! Layout, type and place of a tensor. Host arithmetic has one layout and one place, so most of these only pass the
//! tensor on, in the element type of the result.

use tilework_model::ttnn::ops::creation::{AssignOp, CopyOp};
use tilework_model::ttnn::ops::layout::{
    BitcastConvertOp, DeallocateOp, FromDeviceOp, GetDeviceOp, ToDeviceOp, ToLayoutOp, ToMemoryConfigOp, TypecastOp,
    WriteTensorOp,
};
use tilework_model::ttnn::ops::moe::{CreateGlobalSemaphoreOp, ResetGlobalSemaphoreOp};
use tilework_ops as ops;

use super::*;

/// The same values in the element type of the result.
fn passed<'m>(input: &'m TensorRef, out: &'m TensorRef, lowering: &mut Lowering<'m>) -> Result<Action<'m>, Refusal> {
    lowering.read(input);
    Ok(Action::Pass { dtype: lowering.make(out)?, reshaped: false })
}

/// The same values in the element type of a tensor that exists.
fn written<'m>(from: &'m TensorRef, to: &'m TensorRef, lowering: &mut Lowering<'m>) -> Result<Action<'m>, Refusal> {
    lowering.read(from);
    Ok(Action::Pass { dtype: lowering.overwrite(to)?, reshaped: false })
}

pub(super) fn to_layout<'m>(op: &'m ToLayoutOp, lowering: &mut Lowering<'m>) -> Result<Action<'m>, Refusal> {
    passed(&op.input, &op.out, lowering)
}

pub(super) fn to_device<'m>(op: &'m ToDeviceOp, lowering: &mut Lowering<'m>) -> Result<Action<'m>, Refusal> {
    passed(&op.input, &op.out, lowering)
}

pub(super) fn from_device<'m>(op: &'m FromDeviceOp, lowering: &mut Lowering<'m>) -> Result<Action<'m>, Refusal> {
    passed(&op.input, &op.out, lowering)
}

pub(super) fn to_memory_config<'m>(
    op: &'m ToMemoryConfigOp,
    lowering: &mut Lowering<'m>,
) -> Result<Action<'m>, Refusal> {
    passed(&op.in0, &op.out, lowering)
}

pub(super) fn typecast<'m>(op: &'m TypecastOp, lowering: &mut Lowering<'m>) -> Result<Action<'m>, Refusal> {
    passed(&op.input, &op.out, lowering)
}

pub(super) fn assign<'m>(op: &'m AssignOp, lowering: &mut Lowering<'m>) -> Result<Action<'m>, Refusal> {
    passed(&op.input, &op.output, lowering)
}

pub(super) fn bitcast_convert<'m>(
    op: &'m BitcastConvertOp,
    lowering: &mut Lowering<'m>,
) -> Result<Action<'m>, Refusal> {
    let input = lowering.read(&op.input);
    lowering.make(&op.out)?;
    // Bits are those of the stated types, whatever the values are kept in.
    let (from, to) = (Stated::of(&op.input.desc)?.dtype, Stated::of(&op.out.desc)?.dtype);
    Ok(one(move |args| ops::bitcast_convert(&ops::typecast(&args[input], from), to)))
}

pub(super) fn copy<'m>(op: &'m CopyOp, lowering: &mut Lowering<'m>) -> Result<Action<'m>, Refusal> {
    written(&op.src, &op.dst, lowering)
}

pub(super) fn write_tensor<'m>(op: &'m WriteTensorOp, lowering: &mut Lowering<'m>) -> Result<Action<'m>, Refusal> {
    written(&op.host_tensor, &op.device_tensor, lowering)
}

/// `force` frees a buffer that others share, which no two names here do: whoever holds the tensor keeps it.
pub(super) fn deallocate<'m>(op: &'m DeallocateOp, lowering: &mut Lowering<'m>) -> Result<Action<'m>, Refusal> {
    lowering.read(&op.input);
    Ok(Action::Free)
}

pub(super) fn get_device<'m>(_: &'m GetDeviceOp, _: &mut Lowering<'m>) -> Result<Action<'m>, Refusal> {
    Ok(Action::Nothing)
}

/// Semaphores order the work of devices; here one operation follows the other.
pub(super) fn create_semaphore<'m>(
    _: &'m CreateGlobalSemaphoreOp,
    _: &mut Lowering<'m>,
) -> Result<Action<'m>, Refusal> {
    Ok(Action::Nothing)
}

pub(super) fn reset_semaphore<'m>(_: &'m ResetGlobalSemaphoreOp, _: &mut Lowering<'m>) -> Result<Action<'m>, Refusal> {
    Ok(Action::Nothing)
}
