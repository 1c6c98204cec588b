//! Functions of one element: the kinds of tt-mlir's `EltwiseUnaryOp` and `EltwiseUnaryCompositeOp`,
//! and those that other operations fuse as activations (`UnaryWithParam`, activation names of
//! matmul and linear).
//!
//! Floats are computed in float32; NaNs pass through all of them. Integers stay integers where the
//! function keeps them so (absolute value, negation, sign, relu, clamp, bit and logical operations,
//! rounding) and go through float32 otherwise.

use crate::error::{OpError, Reason, Within};
use crate::produce;
use crate::tensor::Tensor;
use crate::view::{Lane, View};
use crate::{DType, creation, math};

/// A function of one element.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "the names are the functions")]
pub enum Unary {
    Abs,
    Ceil,
    Cos,
    Floor,
    /// With the exact normal distribution function.
    Gelu,
    IsFinite,
    LogicalNot,
    Neg,
    Relu,
    Sqrt,
    Rsqrt,
    Sigmoid,
    Sin,
    Reciprocal,
    Sign,
    Tan,
    Tanh,
    Atan,
    Exp,
    Erf,
    Erfc,
    Log,
    Expm1,
    /// Negative values are multiplied by the parameter.
    LeakyRelu(f32),
    BitwiseNot,
    Relu6,
    Silu,
    Hardsigmoid,
    Mish,
    Acos,
    Asin,
    Asinh,
    Cbrt,
    Log1p,
    /// Clamped to two bounds; the upper one applies when they cross.
    Clamp {
        /// Lower bound; doubles hold both floats and 32-bit integers.
        min: f64,
        /// Upper bound.
        max: f64,
    },
    /// With the approximation by a hyperbolic tangent.
    GeluTanh,
    Softplus,
    /// Negative values become `parameter * (e^x - 1)`.
    Elu(f32),
    Square,
    Exp2,
    Log2,
    Log10,
    Trunc,
    /// To nearest, ties to even.
    Round,
    /// To the power of the parameter.
    Power(f32),
    Identity,
}

impl Unary {
    /// The activation of that name, as matmul, linear and convolution state it. `_approx` only asks
    /// for less precision.
    pub fn activation(name: &str) -> Option<Unary> {
        Some(match name.strip_suffix("_approx").unwrap_or(name) {
            "relu" => Unary::Relu,
            "relu6" => Unary::Relu6,
            "silu" => Unary::Silu,
            "mish" => Unary::Mish,
            "sigmoid" => Unary::Sigmoid,
            "hardsigmoid" => Unary::Hardsigmoid,
            "tanh" => Unary::Tanh,
            "log" => Unary::Log,
            "softplus" => Unary::Softplus,
            "gelu" => Unary::Gelu,
            "sqrt" => Unary::Sqrt,
            "exp" => Unary::Exp,
            "square" => Unary::Square,
            "identity" => Unary::Identity,
            _ => return None,
        })
    }

    /// Applies the function to floats in place.
    pub(crate) fn floats(self, values: &mut [f32]) {
        #[inline(always)]
        fn each(values: &mut [f32], f: impl Fn(f32) -> f32) {
            values.iter_mut().for_each(|v| *v = f(*v));
        }
        match self {
            Unary::Abs => each(values, f32::abs),
            Unary::Ceil => each(values, libm::ceilf),
            Unary::Cos => each(values, libm::cosf),
            Unary::Floor => each(values, libm::floorf),
            Unary::Gelu => each(values, math::gelu),
            Unary::IsFinite => each(values, |x| f32::from(u8::from(x.is_finite()))),
            Unary::LogicalNot => each(values, |x| f32::from(u8::from(x == 0.0))),
            Unary::Neg => each(values, |x| -x),
            Unary::Relu => each(values, |x| if x <= 0.0 { 0.0 } else { x }),
            Unary::Sqrt => each(values, f32::sqrt),
            Unary::Rsqrt => each(values, |x| 1.0 / x.sqrt()),
            Unary::Sigmoid => each(values, math::sigmoid),
            Unary::Sin => each(values, libm::sinf),
            Unary::Reciprocal => each(values, |x| 1.0 / x),
            Unary::Sign => each(values, |x| if x == 0.0 || x.is_nan() { x } else { 1f32.copysign(x) }),
            Unary::Tan => each(values, libm::tanf),
            Unary::Tanh => each(values, math::tanh),
            Unary::Atan => each(values, libm::atanf),
            Unary::Exp => each(values, math::exp),
            Unary::Erf => each(values, libm::erff),
            Unary::Erfc => each(values, libm::erfcf),
            Unary::Log => each(values, libm::logf),
            Unary::Expm1 => each(values, libm::expm1f),
            Unary::LeakyRelu(slope) => each(values, |x| if x < 0.0 { x * slope } else { x }),
            // There is no complement of a float: refused before this point.
            Unary::BitwiseNot | Unary::Identity => {}
            Unary::Relu6 => each(values, |x| x.clamp(0.0, 6.0)),
            Unary::Silu => each(values, |x| x * math::sigmoid(x)),
            Unary::Hardsigmoid => each(values, |x| (x / 6.0 + 0.5).clamp(0.0, 1.0)),
            Unary::Mish => each(values, |x| x * math::tanh(math::softplus(x))),
            Unary::Acos => each(values, libm::acosf),
            Unary::Asin => each(values, libm::asinf),
            Unary::Asinh => each(values, libm::asinhf),
            Unary::Cbrt => each(values, libm::cbrtf),
            Unary::Log1p => each(values, libm::log1pf),
            Unary::Clamp { min, max } => {
                let (min, max) = (min as f32, max as f32);
                each(values, |x| clamp(x, min, max));
            }
            Unary::GeluTanh => each(values, math::gelu_tanh),
            Unary::Softplus => each(values, math::softplus),
            Unary::Elu(alpha) => each(values, |x| if x <= 0.0 { alpha * libm::expm1f(x) } else { x }),
            Unary::Square => each(values, |x| x * x),
            Unary::Exp2 => each(values, libm::exp2f),
            Unary::Log2 => each(values, libm::log2f),
            Unary::Log10 => each(values, libm::log10f),
            Unary::Trunc => each(values, libm::truncf),
            Unary::Round => each(values, libm::rintf),
            Unary::Power(p) => each(values, |x| libm::powf(x, p)),
        }
    }

    /// The function on integers, where it needs no float.
    fn integer(self) -> Option<fn(i64) -> i64> {
        Some(match self {
            Unary::Abs => |x| x.wrapping_abs(),
            Unary::Neg => |x| x.wrapping_neg(),
            Unary::Sign => |x| x.signum(),
            Unary::Relu => |x| x.max(0),
            Unary::Relu6 => |x| x.clamp(0, 6),
            Unary::LogicalNot => |x| i64::from(x == 0),
            Unary::BitwiseNot => |x| !x,
            Unary::Square => |x| x.wrapping_mul(x),
            Unary::IsFinite => |_| 1,
            Unary::Ceil | Unary::Floor | Unary::Trunc | Unary::Round | Unary::Identity => |x| x,
            _ => return None,
        })
    }
}

/// Clamps to two bounds; a NaN stays, and the upper bound applies when they cross.
#[inline]
fn clamp(x: f32, min: f32, max: f32) -> f32 {
    let x = if x < min { min } else { x };
    if x > max { max } else { x }
}

/// Applies a function to every element; the result is of type `out`.
pub fn unary(kind: Unary, input: &Tensor, out: DType) -> Result<Tensor, OpError> {
    let view = View::contiguous(input.shape());
    let shape = input.shape().clone();
    if !input.dtype().is_float() {
        if let Unary::Clamp { min, max } = kind {
            // Bounds beyond the integers have no effect; fractional ones are rounded inwards
            // to integers.
            let (low, high) = (libm::ceil(min) as i64, libm::floor(max) as i64);
            return Ok(produce::integers(shape, out, 1, |start, values| {
                i64::load(input, &view, start, values);
                values.iter_mut().for_each(|v| *v = (*v).max(low).min(high));
            }));
        }
        if let Some(f) = kind.integer() {
            return Ok(produce::integers(shape, out, 1, |start, values| {
                i64::load(input, &view, start, values);
                values.iter_mut().for_each(|v| *v = f(*v));
            }));
        }
    } else if kind == Unary::BitwiseNot {
        return Err(Reason::Type(input.dtype()).of("bitwise_not", &[input]));
    }
    Ok(produce::floats(shape, out, 1, |start, values| {
        f32::load(input, &view, start, values);
        kind.floats(values);
    }))
}

/// Every element clamped to those of two tensors that broadcast to it; the upper bound applies
/// when they cross.
pub fn clamp_tensor(input: &Tensor, min: &Tensor, max: &Tensor, out: DType) -> Result<Tensor, OpError> {
    const OP: &str = "clamp_tensor";
    let operands = [input, min, max];
    let shape = input.shape().broadcast(min.shape()).and_then(|s| s.broadcast(max.shape())).within(OP, &operands)?;
    if shape != *input.shape() {
        return Err(Reason::Broadcast(shape, input.shape().clone()).of(OP, &operands));
    }
    let views = operands.map(|t| View::broadcast(t.shape(), &shape));
    fn run<L: Lane>(operands: [&Tensor; 3], views: &[View; 3], start: usize, values: &mut [L]) {
        let mut bound = vec![L::default(); values.len()];
        L::load(operands[0], &views[0], start, values);
        L::load(operands[1], &views[1], start, &mut bound);
        values.iter_mut().zip(&bound).for_each(|(v, &b)| *v = if *v < b { b } else { *v });
        L::load(operands[2], &views[2], start, &mut bound);
        values.iter_mut().zip(&bound).for_each(|(v, &b)| *v = if *v > b { b } else { *v });
    }
    Ok(if operands.iter().any(|t| t.dtype().is_float()) {
        produce::floats(shape, out, 1, |start, values| run(operands, &views, start, values))
    } else {
        produce::integers(shape, out, 1, |start, values| run(operands, &views, start, values))
    })
}

/// Zeroes elements with probability `prob` and multiplies the others by `scale` (`ttnn.dropout`).
/// The generator of [`crate::rand`] selects the elements; the device's own differs.
pub fn dropout(input: &Tensor, prob: f32, scale: f32, seed: u32, out: DType) -> Tensor {
    let view = View::contiguous(input.shape());
    produce::floats(input.shape().clone(), out, 1, |start, values| {
        f32::load(input, &view, start, values);
        for (i, v) in values.iter_mut().enumerate() {
            *v = if creation::uniform(seed, (start + i) as u64) < prob { 0.0 } else { *v * scale };
        }
    })
}
