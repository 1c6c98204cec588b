//! Functions that are fused into other operations, as steps.

use tilework_abi::eltwise::{Function, Step};
use tilework_model::ttnn::ops::fused::{UnaryOpType, UnaryWithParam};

use super::stage::Line;

/// Fused functions of numbers in a slot, in the order in which they are applied.
pub(super) fn lines(of: &[UnaryWithParam], slot: u32) -> Result<Vec<Line>, String> {
    of.iter().map(|of| line(of, slot)).collect()
}

fn line(of: &UnaryWithParam, slot: u32) -> Result<Line, String> {
    use Function as F;
    use UnaryOpType as T;
    let number = || of.params.first().map(|&number| number as f32).ok_or("a fused function without its number");
    let (function, numbers) = match of.op_type {
        T::Exp => (F::Exp, [0.0; 2]),
        T::Recip => (F::Reciprocal, [0.0; 2]),
        T::Gelu => (F::Gelu, [0.0; 2]),
        T::Relu => (F::Relu, [0.0; 2]),
        T::Sqrt => (F::Sqrt, [0.0; 2]),
        T::Sigmoid => (F::Sigmoid, [0.0; 2]),
        T::Log => (F::Log, [0.0; 2]),
        T::Tanh => (F::Tanh, [0.0; 2]),
        T::Sin => (F::Sin, [0.0; 2]),
        T::Cos => (F::Cos, [0.0; 2]),
        T::Abs => (F::Abs, [0.0; 2]),
        T::Sign => (F::Sign, [0.0; 2]),
        T::Square => (F::Square, [0.0; 2]),
        T::Eqz | T::LogicalNotUnary => (F::IsZero, [0.0; 2]),
        T::ReluMax => (F::Clamp, [0.0, number()?]),
        T::LeakyRelu | T::PreluSfpu => (F::LeakyRelu, [number()?, 0.0]),
        T::Elu => (F::Elu, [number()?, 0.0]),
        T::Expm1 => (F::Expm1, [0.0; 2]),
        T::Log1p => (F::Log1p, [0.0; 2]),
        T::Log2 => (F::Log2, [0.0; 2]),
        T::Log10 => (F::Log10, [0.0; 2]),
        T::Tan => (F::Tan, [0.0; 2]),
        T::Asin => (F::Asin, [0.0; 2]),
        T::Acos => (F::Acos, [0.0; 2]),
        T::Atan => (F::Atan, [0.0; 2]),
        T::Erf => (F::Erf, [0.0; 2]),
        T::Erfc => (F::Erfc, [0.0; 2]),
        T::Isfinite => (F::IsFinite, [0.0; 2]),
        T::Softplus if of.params.is_empty() || of.params[0] == 1.0 => (F::Softplus, [0.0; 2]),
        T::Exp2 => (F::Exp2, [0.0; 2]),
        T::Rsqrt => (F::Rsqrt, [0.0; 2]),
        T::Relu6 => (F::Clamp, [0.0, 6.0]),
        T::Hardsigmoid => (F::HardSigmoid, [0.0; 2]),
        T::Silu => (F::Silu, [0.0; 2]),
        T::Neg => (F::Negative, [0.0; 2]),
        T::Floor => (F::Floor, [0.0; 2]),
        T::Ceil => (F::Ceil, [0.0; 2]),
        T::Round => (F::Round, [0.0; 2]),
        T::Identity => (F::Copy, [0.0; 2]),
        other => return Err(format!("the fused function {other}")),
    };
    Ok(Line::new(Step::new(function).of(slot, 0, 0).to(slot), numbers.map(f32::to_bits)))
}
