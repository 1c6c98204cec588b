//! Functions of two elements with numpy's broadcasting: the kinds of tt-mlir's `EltwiseBinaryOp`,
//! `EltwiseBinaryCompositeOp` and `EltwiseBinaryCompositeScalarOp`, their fused activations,
//! `where`, and the backward pass of gelu.
//!
//! Two integer operands are computed as integers: sums and products keep the low bits, quotients
//! are truncated (saturating when the divisor is zero), comparisons are exact. Otherwise
//! everything is float32. Comparisons and logical functions give 1 or 0 in the type `out`.
//! `maximum` and `minimum` return a NaN if either operand is one; a NaN is unequal to all values
//! and counts as true.

use crate::error::{OpError, Reason, Within};
use crate::produce;
use crate::tensor::Tensor;
use crate::unary::Unary;
use crate::view::{Lane, View};
use crate::{DType, math};

/// A function of two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the functions")]
pub enum Binary {
    Add,
    Multiply,
    /// The bits of the left operand shifted right, with zeros shifted in; zero for a distance
    /// outside of 0..32.
    LogicalRightShift,
    Subtract,
    Equal,
    NotEqual,
    GreaterEqual,
    GreaterThan,
    LessEqual,
    LessThan,
    Divide,
    LogicalAnd,
    LogicalOr,
    LogicalXor,
    Maximum,
    Minimum,
    /// With the sign of the divisor, as in Python; zero for an integer divided by zero.
    Remainder,
    Pow,
    Atan2,
    BitwiseAnd,
    BitwiseOr,
    BitwiseXor,
    /// The bits of the left operand shifted left; zero for a distance outside of 0..32.
    LogicalLeftShift,
}

impl Binary {
    /// Name as `ttnn` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Binary::Add => "add",
            Binary::Multiply => "multiply",
            Binary::LogicalRightShift => "logical_right_shift",
            Binary::Subtract => "subtract",
            Binary::Equal => "eq",
            Binary::NotEqual => "ne",
            Binary::GreaterEqual => "ge",
            Binary::GreaterThan => "gt",
            Binary::LessEqual => "le",
            Binary::LessThan => "lt",
            Binary::Divide => "divide",
            Binary::LogicalAnd => "logical_and",
            Binary::LogicalOr => "logical_or",
            Binary::LogicalXor => "logical_xor",
            Binary::Maximum => "maximum",
            Binary::Minimum => "minimum",
            Binary::Remainder => "remainder",
            Binary::Pow => "pow",
            Binary::Atan2 => "atan2",
            Binary::BitwiseAnd => "bitwise_and",
            Binary::BitwiseOr => "bitwise_or",
            Binary::BitwiseXor => "bitwise_xor",
            Binary::LogicalLeftShift => "logical_left_shift",
        }
    }

    /// Whether the function is bitwise, for integers only.
    fn of_bits(self) -> bool {
        matches!(
            self,
            Binary::LogicalRightShift
                | Binary::LogicalLeftShift
                | Binary::BitwiseAnd
                | Binary::BitwiseOr
                | Binary::BitwiseXor
        )
    }

    /// `a[i] = f(a[i], b[i])` in float32.
    fn floats(self, a: &mut [f32], b: &[f32]) {
        #[inline(always)]
        fn each(a: &mut [f32], b: &[f32], f: impl Fn(f32, f32) -> f32) {
            a.iter_mut().zip(b).for_each(|(a, &b)| *a = f(*a, b));
        }
        fn truth(v: bool) -> f32 {
            if v { 1.0 } else { 0.0 }
        }
        match self {
            Binary::Add => each(a, b, |x, y| x + y),
            Binary::Multiply => each(a, b, |x, y| x * y),
            Binary::Subtract => each(a, b, |x, y| x - y),
            Binary::Divide => each(a, b, |x, y| x / y),
            Binary::Equal => each(a, b, |x, y| truth(x == y)),
            Binary::NotEqual => each(a, b, |x, y| truth(x != y)),
            Binary::GreaterEqual => each(a, b, |x, y| truth(x >= y)),
            Binary::GreaterThan => each(a, b, |x, y| truth(x > y)),
            Binary::LessEqual => each(a, b, |x, y| truth(x <= y)),
            Binary::LessThan => each(a, b, |x, y| truth(x < y)),
            Binary::LogicalAnd => each(a, b, |x, y| truth(x != 0.0 && y != 0.0)),
            Binary::LogicalOr => each(a, b, |x, y| truth(x != 0.0 || y != 0.0)),
            Binary::LogicalXor => each(a, b, |x, y| truth((x != 0.0) != (y != 0.0))),
            Binary::Maximum => each(a, b, math::maximum),
            Binary::Minimum => each(a, b, math::minimum),
            Binary::Remainder => each(a, b, remainder),
            Binary::Pow => each(a, b, libm::powf),
            Binary::Atan2 => each(a, b, libm::atan2f),
            // Refused for floats before this point.
            Binary::LogicalRightShift
            | Binary::LogicalLeftShift
            | Binary::BitwiseAnd
            | Binary::BitwiseOr
            | Binary::BitwiseXor => {}
        }
    }

    /// The function on integers; `None` for functions of floats only.
    fn integer(self) -> Option<fn(i64, i64) -> i64> {
        Some(match self {
            Binary::Add => |x, y| x.wrapping_add(y),
            Binary::Multiply => |x, y| x.wrapping_mul(y),
            Binary::Subtract => |x, y| x.wrapping_sub(y),
            Binary::Divide => |x, y| if y == 0 { x.signum() * i64::from(i32::MAX) } else { x / y },
            Binary::Equal => |x, y| i64::from(x == y),
            Binary::NotEqual => |x, y| i64::from(x != y),
            Binary::GreaterEqual => |x, y| i64::from(x >= y),
            Binary::GreaterThan => |x, y| i64::from(x > y),
            Binary::LessEqual => |x, y| i64::from(x <= y),
            Binary::LessThan => |x, y| i64::from(x < y),
            Binary::LogicalAnd => |x, y| i64::from(x != 0 && y != 0),
            Binary::LogicalOr => |x, y| i64::from(x != 0 || y != 0),
            Binary::LogicalXor => |x, y| i64::from((x != 0) != (y != 0)),
            Binary::Maximum => |x, y| x.max(y),
            Binary::Minimum => |x, y| x.min(y),
            Binary::Remainder => |x, y| if y == 0 { 0 } else { (x % y + y) % y },
            Binary::Pow => integer_power,
            Binary::Atan2 => return None,
            Binary::BitwiseAnd => |x, y| x & y,
            Binary::BitwiseOr => |x, y| x | y,
            Binary::BitwiseXor => |x, y| x ^ y,
            Binary::LogicalRightShift => |x, y| if (0..32).contains(&y) { i64::from(x as u32 >> y) } else { 0 },
            Binary::LogicalLeftShift => |x, y| if (0..32).contains(&y) { i64::from((x as u32) << y) } else { 0 },
        })
    }
}

/// The remainder with the sign of the divisor.
#[inline]
fn remainder(x: f32, y: f32) -> f32 {
    let r = libm::fmodf(x, y);
    if r != 0.0 && (r < 0.0) != (y < 0.0) { r + y } else { r }
}

/// `x` to the power of `y` in the low bits; a negative power of anything but 1 and -1 is zero.
fn integer_power(x: i64, y: i64) -> i64 {
    if y >= 0 {
        return x.wrapping_pow(u32::try_from(y).unwrap_or(u32::MAX));
    }
    match x {
        1 => 1,
        -1 => 1 - 2 * (y & 1),
        _ => 0,
    }
}

/// Functions that are fused into a binary operation: applied to the operands before and to the
/// result after it, without rounding in between.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fused<'a> {
    /// To the left operand.
    pub lhs: &'a [Unary],
    /// To the right operand.
    pub rhs: &'a [Unary],
    /// To the result.
    pub post: &'a [Unary],
}

impl Fused<'_> {
    fn is_empty(&self) -> bool {
        self.lhs.is_empty() && self.rhs.is_empty() && self.post.is_empty()
    }
}

/// A function of two tensors that broadcast; the result is of type `out`.
pub fn binary(kind: Binary, a: &Tensor, b: &Tensor, out: DType) -> Result<Tensor, OpError> {
    binary_fused(kind, a, b, out, Fused::default())
}

/// A function of two tensors that broadcast, with fused activations.
pub fn binary_fused(kind: Binary, a: &Tensor, b: &Tensor, out: DType, fused: Fused<'_>) -> Result<Tensor, OpError> {
    let op = kind.name();
    let shape = a.shape().broadcast(b.shape()).within(op, &[a, b])?;
    let (va, vb) = (View::broadcast(a.shape(), &shape), View::broadcast(b.shape(), &shape));
    let integral = !a.dtype().is_float() && !b.dtype().is_float();
    if kind.of_bits() && !(integral && fused.is_empty()) {
        let float = if a.dtype().is_float() { a } else { b };
        return Err(Reason::Type(float.dtype()).of(op, &[a, b]));
    }
    if integral
        && fused.is_empty()
        && !(kind == Binary::Divide && out.is_float())
        && let Some(f) = kind.integer()
    {
        return Ok(produce::integers(shape, out, 1, |start, values| {
            let mut right = vec![0; values.len()];
            i64::load(a, &va, start, values);
            i64::load(b, &vb, start, &mut right);
            values.iter_mut().zip(&right).for_each(|(x, &y)| *x = f(*x, y));
        }));
    }
    Ok(produce::floats(shape, out, 1, |start, values| {
        let mut right = vec![0.0; values.len()];
        f32::load(a, &va, start, values);
        f32::load(b, &vb, start, &mut right);
        fused.lhs.iter().for_each(|f| f.floats(values));
        fused.rhs.iter().for_each(|f| f.floats(&mut right));
        kind.floats(values, &right);
        fused.post.iter().for_each(|f| f.floats(values));
    }))
}

/// The elements of `yes` where `condition` is not zero, of `no` elsewhere; all three broadcast.
pub fn where_(condition: &Tensor, yes: &Tensor, no: &Tensor, out: DType) -> Result<Tensor, OpError> {
    let operands = [condition, yes, no];
    let shape =
        condition.shape().broadcast(yes.shape()).and_then(|s| s.broadcast(no.shape())).within("where", &operands)?;
    let views = operands.map(|t| View::broadcast(t.shape(), &shape));
    fn run<L: Lane>(operands: [&Tensor; 3], views: &[View; 3], start: usize, values: &mut [L]) {
        let mut condition = vec![0f32; values.len()];
        let mut no = vec![L::default(); values.len()];
        f32::load(operands[0], &views[0], start, &mut condition);
        L::load(operands[1], &views[1], start, values);
        L::load(operands[2], &views[2], start, &mut no);
        for ((v, &n), &c) in values.iter_mut().zip(&no).zip(&condition) {
            *v = if c != 0.0 { *v } else { n };
        }
    }
    Ok(if yes.dtype().is_float() || no.dtype().is_float() {
        produce::floats(shape, out, 1, |start, values| run(operands, &views, start, values))
    } else {
        produce::integers(shape, out, 1, |start, values| run(operands, &views, start, values))
    })
}

/// `grad` times the derivative of gelu at `input`; `tanh` takes the derivative of the
/// approximation.
pub fn gelu_backward(grad: &Tensor, input: &Tensor, tanh: bool, out: DType) -> Result<Tensor, OpError> {
    let shape = grad.shape().broadcast(input.shape()).within("gelu_bw", &[grad, input])?;
    let (vg, vi) = (View::broadcast(grad.shape(), &shape), View::broadcast(input.shape(), &shape));
    let derivative = if tanh { math::gelu_tanh_derivative } else { math::gelu_derivative };
    Ok(produce::floats(shape, out, 1, |start, values| {
        let mut x = vec![0.0; values.len()];
        f32::load(grad, &vg, start, values);
        f32::load(input, &vi, start, &mut x);
        values.iter_mut().zip(&x).for_each(|(g, &x)| *g *= derivative(x));
    }))
}
