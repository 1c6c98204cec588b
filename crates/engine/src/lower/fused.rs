//! Functions that are fused into other operations.

use tilework_model::ttnn::ops::fused::{UnaryOpType, UnaryWithParam};
use tilework_ops::Unary;

use super::*;

/// A fused function with its numbers.
pub(super) fn function(of: &UnaryWithParam) -> Result<Unary, Refusal> {
    let number = |index: usize| of.params.get(index).map(|&number| number as f32);
    let needed = || number(0).ok_or_else(|| Refusal::malformed(format!("the fused {} has no number", of.op_type)));
    Ok(match of.op_type {
        UnaryOpType::Exp => Unary::Exp,
        UnaryOpType::Recip => Unary::Reciprocal,
        UnaryOpType::Gelu => Unary::Gelu,
        UnaryOpType::Relu => Unary::Relu,
        UnaryOpType::Sqrt => Unary::Sqrt,
        UnaryOpType::Sigmoid => Unary::Sigmoid,
        UnaryOpType::Log => Unary::Log,
        UnaryOpType::Tanh => Unary::Tanh,
        UnaryOpType::Log2 => Unary::Log2,
        UnaryOpType::Log10 => Unary::Log10,
        UnaryOpType::Sin => Unary::Sin,
        UnaryOpType::Cos => Unary::Cos,
        UnaryOpType::Abs | UnaryOpType::AbsInt32 => Unary::Abs,
        UnaryOpType::Sign => Unary::Sign,
        UnaryOpType::Square => Unary::Square,
        UnaryOpType::Eqz | UnaryOpType::LogicalNotUnary => Unary::LogicalNot,
        UnaryOpType::ReluMax => Unary::Clamp { min: 0.0, max: needed()?.into() },
        UnaryOpType::Power => Unary::Power(needed()?),
        UnaryOpType::LeakyRelu | UnaryOpType::PreluSfpu => Unary::LeakyRelu(needed()?),
        UnaryOpType::Elu => Unary::Elu(needed()?),
        UnaryOpType::Exp2 => Unary::Exp2,
        UnaryOpType::Expm1 => Unary::Expm1,
        UnaryOpType::Asin => Unary::Asin,
        UnaryOpType::Acos => Unary::Acos,
        UnaryOpType::Rsqrt => Unary::Rsqrt,
        UnaryOpType::Relu6 => Unary::Relu6,
        UnaryOpType::Hardsigmoid => Unary::Hardsigmoid,
        UnaryOpType::Atan => Unary::Atan,
        UnaryOpType::Erf => Unary::Erf,
        UnaryOpType::Erfc => Unary::Erfc,
        UnaryOpType::Isfinite => Unary::IsFinite,
        UnaryOpType::Tan => Unary::Tan,
        UnaryOpType::Silu => Unary::Silu,
        // The numbers are slope and the threshold above which the identity is taken; only those of
        // the plain function are known here.
        UnaryOpType::Softplus if of.params.is_empty() || of.params[0] == 1.0 => Unary::Softplus,
        UnaryOpType::Identity | UnaryOpType::IdentityUint32 => Unary::Identity,
        UnaryOpType::Neg => Unary::Neg,
        UnaryOpType::BitwiseNot => Unary::BitwiseNot,
        UnaryOpType::Floor => Unary::Floor,
        UnaryOpType::Ceil => Unary::Ceil,
        UnaryOpType::Round => Unary::Round,
        UnaryOpType::Log1p => Unary::Log1p,
        other => return Err(Refusal::unsupported(format!("the fused function {other} with {:?}", of.params))),
    })
}

/// Several fused functions, in the order in which they are applied.
pub(super) fn functions(of: &[UnaryWithParam]) -> Result<Vec<Unary>, Refusal> {
    of.iter().map(function).collect()
}

/// An activation that is named by text.
pub(super) fn named(name: &str) -> Result<Unary, Refusal> {
    Unary::activation(name).ok_or_else(|| Refusal::unsupported(format!("the activation {name:?}")))
}
