//! Element-wise functions.

use tilework_model::ttnn::ops::eltwise::{
    DropoutOp, EltwiseBinaryAtan2Op, EltwiseBinaryCompositeOp, EltwiseBinaryCompositeOpType,
    EltwiseBinaryCompositeScalarOp, EltwiseBinaryOp, EltwiseBinaryOpType, EltwiseTernaryWhereOp,
    EltwiseUnaryCompositeOp, EltwiseUnaryCompositeOpParams, EltwiseUnaryCompositeOpType, EltwiseUnaryOp,
    EltwiseUnaryOpParams, EltwiseUnaryOpType, ExperimentalEltwiseBinaryBackwardOp,
};
use tilework_model::ttnn::ops::fused::UnaryWithParam;
use tilework_model::ttnn::types::NumberType;
use tilework_ops::{self as ops, Binary, Fused, Unary};

use super::*;

pub(super) fn unary<'m>(op: &'m EltwiseUnaryOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    use EltwiseUnaryOpType as Type;
    let input = lowering.read(&op.input);
    let out = lowering.make(&op.out)?;
    let function = match op.kind {
        Type::Abs => Unary::Abs,
        Type::Ceil => Unary::Ceil,
        Type::Cos => Unary::Cos,
        Type::Floor => Unary::Floor,
        Type::Gelu => Unary::Gelu,
        Type::IsFinite => Unary::IsFinite,
        Type::LogicalNot => Unary::LogicalNot,
        Type::Neg => Unary::Neg,
        Type::Relu => Unary::Relu,
        Type::Sqrt => Unary::Sqrt,
        Type::Rsqrt => Unary::Rsqrt,
        Type::Sigmoid => Unary::Sigmoid,
        Type::Sin => Unary::Sin,
        Type::Reciprocal => Unary::Reciprocal,
        Type::Sign => Unary::Sign,
        Type::Tan => Unary::Tan,
        Type::Tanh => Unary::Tanh,
        Type::Atan => Unary::Atan,
        Type::Exp => Unary::Exp,
        Type::Erf => Unary::Erf,
        Type::Erfc => Unary::Erfc,
        Type::Log => Unary::Log,
        Type::Expm1 => Unary::Expm1,
        Type::LeakyRelu => match &op.params {
            Some(EltwiseUnaryOpParams::EltwiseOpWithFloatParams(params)) => Unary::LeakyRelu(params.parameter),
            None => return Err(Refusal::malformed("a leaky ReLU without its slope")),
        },
        Type::BitwiseNot => Unary::BitwiseNot,
        Type::Relu6 => Unary::Relu6,
        Type::Silu => Unary::Silu,
        Type::Hardsigmoid => Unary::Hardsigmoid,
        Type::Mish => Unary::Mish,
        Type::Acos => Unary::Acos,
        Type::Asin => Unary::Asin,
        Type::Asinh => Unary::Asinh,
        Type::Round => Unary::Round,
    };
    Ok(one(move |args| ops::unary(function, &args[input], out)))
}

pub(super) fn unary_composite<'m>(op: &'m EltwiseUnaryCompositeOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    use EltwiseUnaryCompositeOpParams::{ClampScalarOpParams, ClampTensorOpParams};
    use EltwiseUnaryCompositeOpType as Type;
    let input = lowering.read(&op.input);
    let out = lowering.make(&op.out)?;
    Ok(match (op.kind, &op.params) {
        (Type::Cbrt, _) => one(move |args| ops::unary(Unary::Cbrt, &args[input], out)),
        (Type::Log1p, _) => one(move |args| ops::unary(Unary::Log1p, &args[input], out)),
        (Type::ClampScalar, Some(ClampScalarOpParams(by))) => {
            let function = Unary::Clamp { min: by.min.as_f64(), max: by.max.as_f64() };
            one(move |args| ops::unary(function, &args[input], out))
        }
        (Type::ClampTensor, Some(ClampTensorOpParams(by))) => {
            let (min, max) = (lowering.read(&by.min), lowering.read(&by.max));
            one(move |args| ops::clamp_tensor(&args[input], &args[min], &args[max], out))
        }
        _ => return Err(Refusal::malformed(format!("a {} without its bounds", op.kind))),
    })
}

pub(super) fn binary<'m>(op: &'m EltwiseBinaryOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    use EltwiseBinaryOpType as Type;
    let function = match op.kind {
        Type::Add => Binary::Add,
        Type::Multiply => Binary::Multiply,
        Type::LogicalRightShift => Binary::LogicalRightShift,
        Type::Subtract => Binary::Subtract,
        Type::Equal => Binary::Equal,
        Type::NotEqual => Binary::NotEqual,
        Type::GreaterEqual => Binary::GreaterEqual,
        Type::GreaterThan => Binary::GreaterThan,
        Type::LessEqual => Binary::LessEqual,
        Type::LessThan => Binary::LessThan,
        Type::Divide => Binary::Divide,
        Type::LogicalAnd => Binary::LogicalAnd,
        Type::LogicalOr => Binary::LogicalOr,
        Type::LogicalXor => Binary::LogicalXor,
    };
    let activations = [&op.input_tensor_a_activations, &op.input_tensor_b_activations, &op.activations];
    of_two(function, [&op.lhs, &op.rhs], &op.out, activations, lowering)
}

pub(super) fn binary_composite<'m>(op: &'m EltwiseBinaryCompositeOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    use EltwiseBinaryCompositeOpType as Type;
    let activations = [&op.input_tensor_a_activations, &op.input_tensor_b_activations, &op.activations];
    let function = match op.kind {
        Type::Maximum => Binary::Maximum,
        Type::Minimum => Binary::Minimum,
        Type::Remainder => Binary::Remainder,
        Type::Pow => Binary::Pow,
        Type::Atan2 => Binary::Atan2,
        Type::BitwiseAnd => Binary::BitwiseAnd,
        Type::BitwiseOr => Binary::BitwiseOr,
        Type::BitwiseXor => Binary::BitwiseXor,
        Type::LogicalLeftShift => Binary::LogicalLeftShift,
        Type::BitwiseRightShift if activations.iter().all(|list| list.is_empty()) => {
            let (lhs, rhs) = (lowering.read(&op.lhs), lowering.read(&op.rhs));
            let out = lowering.make(&op.out)?;
            return Ok(one(move |args| shift_right(&args[lhs], &args[rhs], out)));
        }
        Type::BitwiseRightShift => return Err(Refusal::unsupported("a shift with fused functions")),
    };
    of_two(function, [&op.lhs, &op.rhs], &op.out, activations, lowering)
}

/// Arithmetic right shift by means of a logical one: for a negative number, the complement is
/// shifted and complemented again.
fn shift_right(value: &Tensor, distance: &Tensor, out: DType) -> Result<Tensor, OpError> {
    let dtype = value.dtype();
    let negative = ops::binary(Binary::LessThan, value, &scalar(dtype, 0)?, dtype)?;
    let flip = ops::unary(Unary::Neg, &negative, dtype)?;
    let positive = ops::binary(Binary::BitwiseXor, value, &flip, dtype)?;
    let moved = ops::binary(Binary::LogicalRightShift, &positive, distance, dtype)?;
    ops::binary(Binary::BitwiseXor, &moved, &flip, out)
}

/// A function of two tensors with functions that are fused into its operands and its result.
fn of_two<'m>(
    function: Binary,
    operands: [&'m TensorRef; 2],
    out: &'m TensorRef,
    activations: [&'m Vec<UnaryWithParam>; 3],
    lowering: &mut Lowering<'m>,
) -> Lowered<'m> {
    let [lhs, rhs] = operands.map(|operand| lowering.read(operand));
    let out = lowering.make(out)?;
    let [before_lhs, before_rhs, after] = activations;
    let (before_lhs, before_rhs) = (fused::functions(before_lhs)?, fused::functions(before_rhs)?);
    let after = fused::functions(after)?;
    Ok(one(move |args| {
        let fused = Fused { lhs: &before_lhs, rhs: &before_rhs, post: &after };
        ops::binary_fused(function, &args[lhs], &args[rhs], out, fused)
    }))
}

/// An operation without fused functions.
static NONE: Vec<UnaryWithParam> = Vec::new();

pub(super) fn atan2<'m>(op: &'m EltwiseBinaryAtan2Op, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    of_two(Binary::Atan2, [&op.lhs, &op.rhs], &op.out, [&NONE; 3], lowering)
}

pub(super) fn binary_scalar<'m>(op: &'m EltwiseBinaryCompositeScalarOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.lhs);
    let out = lowering.make(&op.out)?;
    Ok(match &op.rhs {
        NumberType::I32(power) => one(move |args| {
            let input = &args[input];
            let power = scalar(if input.dtype().is_float() { DType::F32 } else { DType::I32 }, power.value.into())?;
            ops::binary(Binary::Pow, input, &power, out)
        }),
        NumberType::FP(power) => one(move |args| ops::unary(Unary::Power(power.value), &args[input], out)),
    })
}

pub(super) fn ternary_where<'m>(op: &'m EltwiseTernaryWhereOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let [condition, yes, no] = [&op.first, &op.second, &op.third].map(|operand| lowering.read(operand));
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| ops::where_(&args[condition], &args[yes], &args[no], out)))
}

pub(super) fn backward<'m>(op: &'m ExperimentalEltwiseBinaryBackwardOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (grad, input) = (lowering.read(&op.grad), lowering.read(&op.input));
    let out = lowering.make(&op.out)?;
    let tanh = match op.approximate.as_str() {
        "tanh" => true,
        "none" | "" => false,
        other => return Err(Refusal::unsupported(format!("a gelu that is approximated by {other:?}"))),
    };
    Ok(one(move |args| ops::gelu_backward(&args[grad], &args[input], tanh, out)))
}

pub(super) fn dropout<'m>(op: &'m DropoutOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let out = lowering.make(&op.out)?;
    let drop = move |args: &Args<'_>, seed| Ok(vec![ops::dropout(&args[input], op.prob, op.scale, seed, out)]);
    Ok(match op.use_per_device_seed {
        // Results differ between devices even for identical inputs.
        true => Action::OnEach(Box::new(move |args| drop(args, op.seed.wrapping_add(args.device() as u32)))),
        false => Action::Compute(Box::new(move |args| drop(args, op.seed))),
    })
}
