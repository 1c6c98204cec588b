//! Element-wise functions that the kernel `functions` has no step for: several steps, or programs.

use std::f32::consts::PI;

use tilework_abi::eltwise::{Function, Step, integer};
use tilework_model::ttnn::ops::creation::ArangeOp;
use tilework_model::ttnn::ops::eltwise::EltwiseBinaryOpType;
use tilework_ops::DType;

use super::eltwise::{cast, is_integer, numbers_of, one_stage, with};
use super::stage::Line;
use super::{norm, places};
use crate::recipe::{Planned, Recipe, Task};

/// Truth values of integers.
pub(super) fn of_integers(kind: EltwiseBinaryOpType, numbers: u32) -> Option<Vec<Line>> {
    use EltwiseBinaryOpType as T;
    use Function as F;
    let step = |function| Step::new(function).integers(numbers);
    let two = |function, a, b, to| Line::plain(step(function).of(a, b, 0).to(to));
    let fill = |slot, number| Line::new(step(F::IntegerFill).of(slot, 0, 0).to(slot), [number, 0]);
    let truth =
        |join| vec![fill(2, 0), two(F::IntegerNotEqual, 0, 2, 0), two(F::IntegerNotEqual, 1, 2, 1), two(join, 0, 1, 0)];
    match kind {
        T::LogicalAnd => Some(truth(F::And)),
        T::LogicalOr => Some(truth(F::Or)),
        T::LogicalXor => Some(truth(F::Xor)),
        _ => None,
    }
}

/// Quotients of integers without their fraction; those by zero are the largest number with the sign
/// of the dividend. Beside the kernel's image for integers there is room for a few steps at once.
pub(super) fn quotients(task: &Task<'_>) -> Planned {
    let (a, b, result, site) = (task.operand(0)?, task.operand(1)?, task.result()?, task.site);
    let dims = result.spec.logical_shape();
    let two = |a, function, b| Line::plain(Step::new(function).of(a, b, 0).to(a).integers(integer::INT32));
    let to = |function, b, out| Line::plain(Step::new(function).of(0, b, 0).to(out).integers(integer::INT32));
    let one = |function, a| Line::plain(Step::new(function).of(a, 0, 0).to(a).integers(integer::INT32));
    let mut recipe = Recipe::default();
    let signed = vec![
        places::number(1, 0),
        to(Function::IntegerGreater, 1, 2),
        to(Function::IntegerLess, 1, 0),
        two(2, Function::IntegerSubtract, 0),
        places::number(0, i32::MAX as usize),
        two(0, Function::IntegerMultiply, 2),
    ];
    let largest = recipe.of_integers(a, None, signed, site)?;
    let zero = vec![places::number(1, 0), two(0, Function::IntegerEqual, 1), one(Function::IntegerNegative, 0)];
    let by_zero = recipe.of_integers(b, None, zero, site)?;
    let quotient = recipe.tiles(dims, DType::I32)?;
    let others = vec![(b, vec![two(0, Function::IntegerDivide, 1)])];
    recipe.stages.push(norm::rows("quotient", (a, quotient.of()), others, Vec::new(), site)?);
    let otherwise = vec![one(Function::Not, 1), two(0, Function::And, 1)];
    let quotient = recipe.of_integers(quotient.of(), Some(by_zero.of()), otherwise, site)?;
    let limit = recipe.tiles(dims, DType::I32)?;
    let others = vec![(by_zero.of(), vec![two(0, Function::And, 1)])];
    recipe.stages.push(norm::rows("quotient", (largest.of(), limit.of()), others, Vec::new(), site)?);
    let others = vec![(limit.of(), vec![two(0, Function::Or, 1)])];
    recipe.stages.push(norm::rows("quotient", (quotient.of(), result), others, Vec::new(), site)?);
    Ok(recipe)
}

/// The angle of a point whose ordinate is in slot 0 and whose abscissa is in slot 1.
pub(super) fn angle() -> Vec<Line> {
    use Function as F;
    let two = |function, a, b, to| Line::plain(Step::new(function).of(a, b, 0).to(to));
    let one = |function, a, to| Line::plain(Step::new(function).of(a, 0, 0).to(to));
    let with = |function, a, number: f32| Line::new(Step::new(function).of(a, 0, 0).to(a), [number.to_bits(), 0]);
    vec![
        two(F::Divide, 0, 1, 2),
        one(F::Atan, 2, 2),
        with(F::Fill, 3, 0.0),
        // On the axis there is no quotient of zeros.
        Line::plain(Step::new(F::Where).of(0, 2, 3).to(2)),
        one(F::IsNegative, 0, 0),
        with(F::Scale, 0, -2.0 * PI),
        with(F::Shift, 0, PI),
        one(F::IsNegative, 1, 1),
        two(F::Multiply, 0, 1, 0),
        two(F::Add, 0, 2, 0),
    ]
}

/// One with the sign of an integer, or zero.
pub(super) fn integer_sign(dtype: DType, task: &Task<'_>) -> Planned {
    let step = |function| Step::new(function).integers(numbers_of(dtype));
    let two = |function, a, b, to| Line::plain(step(function).of(a, b, 0).to(to));
    let lines = vec![
        Line::new(step(Function::IntegerFill).of(1, 0, 0).to(1), [0, 0]),
        two(Function::IntegerGreater, 0, 1, 2),
        two(Function::IntegerLess, 0, 1, 0),
        two(Function::IntegerSubtract, 2, 0, 0),
    ];
    one_stage("unary", task, lines, dtype)
}

/// `x tanh(log(1 + e^x))`, which is `x n / (n + 2)` with `n = e^x (e^x + 2)`. From 20 on the
/// quotient is one.
pub(super) fn mish() -> Vec<Line> {
    use Function as F;
    let two = |function, a, b, to| Line::plain(Step::new(function).of(a, b, 0).to(to));
    let one = |function, a, to| Line::plain(Step::new(function).of(a, 0, 0).to(to));
    let with =
        |function, a, numbers: [f32; 2]| Line::new(Step::new(function).of(a, 0, 0).to(a), numbers.map(f32::to_bits));
    vec![
        one(F::Copy, 0, 1),
        with(F::Clamp, 1, [-80.0, 20.0]),
        one(F::Exp, 1, 1),
        one(F::Copy, 1, 2),
        with(F::Shift, 2, [2.0, 0.0]),
        two(F::Multiply, 1, 2, 1),
        one(F::Copy, 1, 2),
        with(F::Shift, 2, [2.0, 0.0]),
        two(F::Divide, 1, 2, 1),
        two(F::Multiply, 0, 1, 0),
    ]
}

/// The inverse of the hyperbolic sine: `log(1 + a + a^2 / (1 + sqrt(1 + a^2)))` of the magnitude,
/// with the sign.
pub(super) fn asinh() -> Vec<Line> {
    use Function as F;
    let two = |function, a, b, to| Line::plain(Step::new(function).of(a, b, 0).to(to));
    let one = |function, a, to| Line::plain(Step::new(function).of(a, 0, 0).to(to));
    let shift = |a| Line::new(Step::new(F::Shift).of(a, 0, 0).to(a), [1.0_f32.to_bits(), 0]);
    vec![
        one(F::Copy, 0, 1),
        one(F::Abs, 1, 1),
        one(F::Copy, 1, 2),
        one(F::Square, 2, 2),
        one(F::Copy, 2, 3),
        shift(3),
        one(F::Sqrt, 3, 3),
        shift(3),
        two(F::Divide, 2, 3, 2),
        two(F::Add, 1, 2, 1),
        one(F::Log1p, 1, 1),
        one(F::Sign, 0, 0),
        two(F::Multiply, 0, 1, 0),
    ]
}

/// Numbers from `start` on in steps, of numbers that the kernel `lines` counts up.
pub(super) fn counted(op: &ArangeOp, count: usize, task: &Task<'_>) -> Planned {
    let (result, site) = (task.result()?, task.site);
    let dtype = result.spec.dtype();
    let mut recipe = Recipe::default();
    let numbers = recipe.count_up(count, site)?;
    let tiled = recipe.in_tiles(numbers.of(), &[1, count], site)?;
    let integers = |function| Step::new(function).of(0, 1, 0).to(0).integers(integer::INT32);
    let fill = |number: f32| {
        let step = Step::new(Function::IntegerFill).of(1, 0, 0).to(1).integers(integer::INT32);
        Line::new(step, [number as i32 as u32, 0])
    };
    let mut lines = Vec::new();
    if is_integer(dtype) {
        lines.extend([fill(op.step), Line::plain(integers(Function::IntegerMultiply))]);
        lines.extend([fill(op.start), Line::plain(integers(Function::IntegerAdd))]);
        lines.extend(cast(0, DType::I32, dtype)?);
    } else {
        lines.extend(cast(0, DType::I32, DType::F32)?);
        lines.extend(with(Function::Scale, [op.step, 0.0]));
        lines.extend(with(Function::Shift, [op.start, 0.0]));
    }
    let made = recipe.tiles(&[1, count], dtype)?;
    recipe.stages.push(norm::rows("arange", (tiled.of(), made.of()), Vec::new(), lines, site)?);
    recipe.same_elements(made.of(), result, site)?;
    Ok(recipe)
}

/// The gradient in slot 0 times the derivative of `gelu` at slot 1: the normal distribution at x,
/// and x times its density.
pub(super) fn gelu_gradient() -> Vec<Line> {
    use Function as F;
    const DENSITY: f32 = 0.398_942_3;
    let copy = |to| Line::plain(Step::new(F::Copy).of(1, 0, 0).to(to));
    vec![
        copy(2),
        norm::one(F::Scale, 2, -std::f32::consts::FRAC_1_SQRT_2),
        norm::one(F::Erfc, 2, 0.0),
        norm::one(F::Scale, 2, 0.5),
        copy(3),
        norm::one(F::Square, 3, 0.0),
        norm::one(F::Scale, 3, -0.5),
        norm::one(F::Exp, 3, 0.0),
        norm::two(F::Multiply, 3, 1),
        norm::one(F::Scale, 3, DENSITY),
        norm::two(F::Add, 2, 3),
        norm::two(F::Multiply, 0, 2),
    ]
}

/// The same of the `gelu` with `t = tanh(k (x + c x^3))`: `(1 + t) / 2 + x (1 - t^2) k (1 + 3 c
/// x^2) / 2`.
pub(super) fn gelu_tanh_gradient() -> Vec<Line> {
    use Function as F;
    const K: f32 = 0.797_884_6;
    const C: f32 = 0.044_715;
    let copy = |from: u32, to| Line::plain(Step::new(F::Copy).of(from, 0, 0).to(to));
    vec![
        copy(1, 2),
        norm::one(F::Square, 2, 0.0),
        copy(2, 3),
        norm::one(F::Scale, 2, C),
        norm::one(F::Shift, 2, 1.0),
        norm::two(F::Multiply, 2, 1),
        norm::one(F::Scale, 2, K),
        norm::one(F::Tanh, 2, 0.0),
        norm::one(F::Scale, 3, 3.0 * C),
        norm::one(F::Shift, 3, 1.0),
        norm::one(F::Scale, 3, 0.5 * K),
        norm::two(F::Multiply, 3, 1),
        copy(2, 1),
        norm::one(F::Square, 1, 0.0),
        norm::one(F::Negative, 1, 0.0),
        norm::one(F::Shift, 1, 1.0),
        norm::two(F::Multiply, 3, 1),
        norm::one(F::Shift, 2, 1.0),
        norm::one(F::Scale, 2, 0.5),
        norm::two(F::Add, 2, 3),
        norm::two(F::Multiply, 0, 2),
    ]
}
