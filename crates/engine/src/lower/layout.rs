//! Operations on the layout, type and location of a tensor. Host arithmetic has one layout and one
//! location, so most of them only pass the tensor on, in the element type of the result.

use tilework_model::ttnn::ops::creation::{AssignOp, CopyOp};
use tilework_model::ttnn::ops::layout::{
    BitcastConvertOp, DeallocateOp, FromDeviceOp, GetDeviceOp, ToDeviceOp, ToLayoutOp, ToMemoryConfigOp, TypecastOp,
    WriteTensorOp,
};
use tilework_model::ttnn::ops::moe::{CreateGlobalSemaphoreOp, ResetGlobalSemaphoreOp};
use tilework_ops as ops;

use super::*;

/// The same values in the element type of the result.
fn passed<'m>(input: &'m TensorRef, out: &'m TensorRef, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    lowering.read(input);
    Ok(Action::Pass { dtype: lowering.make(out)? })
}

/// The same values in the element type of a tensor that exists.
fn written<'m>(from: &'m TensorRef, to: &'m TensorRef, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    lowering.read(from);
    Ok(Action::Pass { dtype: lowering.overwrite(to)? })
}

/// Operations that pass their operand on: function, operation, operand and result.
macro_rules! passes {
    ($($name:ident($op:ident: $input:ident -> $out:ident) by $how:ident;)+) => {$(
        pub(super) fn $name<'m>(op: &'m $op, lowering: &mut Lowering<'m>) -> Lowered<'m> {
            $how(&op.$input, &op.$out, lowering)
        }
    )+};
}

passes! {
    to_layout(ToLayoutOp: input -> out) by passed;
    to_device(ToDeviceOp: input -> out) by passed;
    from_device(FromDeviceOp: input -> out) by passed;
    to_memory_config(ToMemoryConfigOp: in0 -> out) by passed;
    typecast(TypecastOp: input -> out) by passed;
    assign(AssignOp: input -> output) by passed;
    copy(CopyOp: src -> dst) by written;
    write_tensor(WriteTensorOp: host_tensor -> device_tensor) by written;
}

pub(super) fn bitcast_convert<'m>(op: &'m BitcastConvertOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    lowering.make(&op.out)?;
    // The bits are those of the stated types, whatever type holds the values.
    let (from, to) = (Stated::of(&op.input.desc)?.dtype, Stated::of(&op.out.desc)?.dtype);
    Ok(one(move |args| ops::bitcast_convert(&ops::typecast(&args[input], from), to)))
}

/// `force` frees a buffer even if it is shared. It has no effect here: every other holder
/// keeps the tensor.
pub(super) fn deallocate<'m>(op: &'m DeallocateOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    lowering.read(&op.input);
    Ok(Action::Free)
}

pub(super) fn get_device<'m>(_: &'m GetDeviceOp, _: &mut Lowering<'m>) -> Lowered<'m> {
    Ok(Action::Nothing)
}

/// Semaphores order the work of devices; here one operation follows the other.
pub(super) fn create_semaphore<'m>(_: &'m CreateGlobalSemaphoreOp, _: &mut Lowering<'m>) -> Lowered<'m> {
    Ok(Action::Nothing)
}

pub(super) fn reset_semaphore<'m>(_: &'m ResetGlobalSemaphoreOp, _: &mut Lowering<'m>) -> Lowered<'m> {
    Ok(Action::Nothing)
}
