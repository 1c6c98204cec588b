//! Creation of tensors: computed, or read from the file.

use tilework_model::ttnn::ops::creation::{
    ArangeOp, ConstantOp, EmptyOp, FullOp, NamedFullOp, NamedFullOpType, RandOp,
};
use tilework_model::ttnn::types::NumberType;
use tilework_ops::{self as ops, DType, Fill, OpError, Tensor};

use super::*;
use crate::describe::{self, Stated};

/// Checks that the shape that the operation states is that of its result, so that a file cannot ask
/// for more memory than it describes.
fn same_shape(stated: &Stated, dims: &[i64]) -> Result<(), Refusal> {
    let shape = describe::shape(dims.iter().copied())?;
    if stated.fits(&shape) {
        return Ok(());
    }
    Err(Refusal::malformed(format!("shape {shape} of the operation, {} of its result", stated.shape)))
}

pub(super) fn arange<'m>(op: &'m ArangeOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let stated = lowering.make_whole(&op.out)?;
    let [start, end, step] = [op.start, op.end, op.step].map(f64::from);
    let expected = stated.shape.elements() as f64;
    if ((end - start) / step).ceil().max(0.0) != expected {
        return Err(Refusal::malformed(format!("{start}..{end} by {step} does not have {expected} elements")));
    }
    Ok(one(move |_| ops::arange(start, end, step, stated.dtype)))
}

pub(super) fn constant<'m>(op: &'m ConstantOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let stated = lowering.make_whole(&op.out)?;
    let Some(size) = DType::from(op.input_dtype).bytes() else {
        return Err(Refusal::unsupported(format!("constants of {} in the file", op.input_dtype)));
    };
    let (found, elements) = (op.input.len(), stated.shape.elements());
    if elements.checked_mul(size) != Some(found) {
        let what = format!("{found} bytes for {elements} elements of {}", op.input_dtype);
        return Err(Refusal::malformed(what));
    }
    Ok(one(move |_| Ok(ops::typecast(&from_file(op, &stated)?, stated.dtype))))
}

/// The elements of a constant. Types that host arithmetic lacks are converted to the nearest that
/// it has, as the runtime does when it creates the tensor.
fn from_file(op: &ConstantOp, stated: &Stated) -> Result<Tensor, OpError> {
    let shape = stated.shape.clone();
    let integers = |values: Vec<i64>| Tensor::from_i64(stated.dtype, shape.clone(), &values);
    let bytes: &[u8] = &op.input;
    match DType::from(op.input_dtype) {
        DType::F64 => {
            let values: Vec<f32> = bytes.as_chunks::<8>().0.iter().map(|&b| f64::from_le_bytes(b) as f32).collect();
            Tensor::new(shape, values)
        }
        DType::I64 | DType::U64 => integers(bytes.as_chunks::<8>().0.iter().map(|&b| i64::from_le_bytes(b)).collect()),
        DType::I16 => integers(bytes.as_chunks::<2>().0.iter().map(|&b| i64::from(i16::from_le_bytes(b))).collect()),
        DType::I8 => integers(bytes.iter().map(|&b| i64::from(b.cast_signed())).collect()),
        other => Tensor::from_le_bytes(other, shape, bytes),
    }
}

pub(super) fn empty<'m>(op: &'m EmptyOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let stated = lowering.make_whole(&op.out)?;
    same_shape(&stated, &op.shape)?;
    Ok(one(move |_| Ok(ops::zeros(stated.shape.clone(), stated.dtype))))
}

pub(super) fn full<'m>(op: &'m FullOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let stated = lowering.make_whole(&op.out)?;
    same_shape(&stated, &op.shape)?;
    let value = match &op.fill_value {
        NumberType::FP(number) => Fill::Float(number.value),
        NumberType::I32(number) => Fill::Int(number.value),
    };
    Ok(one(move |_| Ok(ops::full(stated.shape.clone(), stated.dtype, value))))
}

pub(super) fn named_full<'m>(op: &'m NamedFullOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let stated = lowering.make_whole(&op.out)?;
    same_shape(&stated, &op.shape)?;
    Ok(match op.kind {
        NamedFullOpType::Zeros => one(move |_| Ok(ops::zeros(stated.shape.clone(), stated.dtype))),
        NamedFullOpType::Ones => one(move |_| Ok(ops::ones(stated.shape.clone(), stated.dtype))),
    })
}

pub(super) fn rand<'m>(op: &'m RandOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let stated = lowering.make_whole(&op.out)?;
    same_shape(&stated, &op.size)?;
    Ok(one(move |_| Ok(ops::rand(stated.shape.clone(), stated.dtype, op.low, op.high, op.seed))))
}
