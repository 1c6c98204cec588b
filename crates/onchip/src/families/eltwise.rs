//! Element-wise functions, chains of one operation.

use tilework_abi::eltwise::{Function, Step, integer};
use tilework_model::ttnn::ops::creation::ArangeOp;
use tilework_model::ttnn::ops::eltwise::{
    EltwiseBinaryCompositeOp, EltwiseBinaryCompositeOpType, EltwiseBinaryCompositeScalarOp, EltwiseBinaryOp,
    EltwiseBinaryOpType, EltwiseTernaryWhereOp, EltwiseUnaryCompositeOp, EltwiseUnaryCompositeOpParams,
    EltwiseUnaryCompositeOpType, EltwiseUnaryOp, EltwiseUnaryOpParams, EltwiseUnaryOpType,
    ExperimentalEltwiseBinaryBackwardOp,
};
use tilework_model::ttnn::ops::fused::UnaryWithParam;
use tilework_model::ttnn::types::NumberType;
use tilework_ops::DType;

use super::stage::{Line, Stage, aligned, spread};
use super::tiles;
use super::{composed, fused, norm};
use crate::recipe::{Of, Planned, Recipe, Site, Task};

/// The numbers that a step calculates with: integers of a type, or numbers.
pub(super) fn numbers_of(dtype: DType) -> u32 {
    match dtype {
        DType::I32 | DType::U8 => integer::INT32,
        DType::U32 => integer::UINT32,
        DType::U16 => integer::UINT16,
        _ => integer::NUMBERS,
    }
}

pub(super) fn is_integer(dtype: DType) -> bool {
    numbers_of(dtype) != integer::NUMBERS
}

/// A cast of a slot, if the types differ in more than their precision. Integers of 32 bits keep
/// their bits with another sign, as host arithmetic has it.
pub(super) fn cast(slot: u32, from: DType, to: DType) -> Result<Option<Line>, String> {
    let same_bits = |dtype| matches!(dtype, DType::I32 | DType::U32);
    if from == to || (!is_integer(from) && !is_integer(to)) || (same_bits(from) && same_bits(to)) {
        return Ok(None);
    }
    let step = Step::new(Function::Typecast).of(slot, 0, 0).to(slot);
    Ok(Some(Line::new(step, [tiles::format(from)?, tiles::format(to)?])))
}

/// Adds a program that makes the same numbers in another element type, of tiles.
pub(super) fn cast_to(recipe: &mut Recipe, from: Of<'_>, to: Of<'_>, site: &Site) -> Result<(), String> {
    let lines = cast(0, from.spec.dtype(), to.spec.dtype())?.into_iter().collect();
    recipe.stages.push(norm::rows("typecast", (from, to), Vec::new(), lines, site)?);
    Ok(())
}

/// A recipe of one stage: all operands to slots, spread; `body`; slot 0 to the result, cast from
/// type `made`.
pub(super) fn one_stage(name: &'static str, task: &Task<'_>, body: Vec<Line>, made: DType) -> Planned {
    stage_of(name, task, body, made, false)
}

/// The same; `wide`, if steps need float32 between them whatever the tensors have.
fn stage_of(name: &'static str, task: &Task<'_>, body: Vec<Line>, made: DType, wide: bool) -> Planned {
    let result = task.result()?;
    let space: Vec<usize> = result.spec.logical_shape().to_vec();
    let mut lines = Vec::new();
    for (slot, spec) in (0..).zip(task.operands) {
        lines.push(Line::plain(Step::new(Function::Load).of(slot, 0, 0).to(slot)));
        lines.extend(spread(spec.logical_shape(), &space, slot));
    }
    lines.extend(body);
    lines.extend(cast(0, made, result.spec.dtype())?);
    lines.push(Line::plain(Step::new(Function::Store)));
    let operands = (0..task.operands.len()).map(|i| task.operand(i)).collect::<Result<Vec<_>, _>>()?;
    let space = if space.len() < 2 { aligned(&space, 2) } else { space };
    let stage = Stage {
        name,
        operands,
        result,
        lines,
        counts: None,
        wide,
        space: space.into_iter().map(|length| (length, false)).collect(),
        each: false,
    };
    Ok(Recipe { stages: vec![stage.plan(task.site)?], ..Recipe::default() })
}

/// The type that two operands are calculated in.
fn common(task: &Task<'_>) -> Result<DType, String> {
    let [a, b] = task.operands else { return Err("other than two operands".into()) };
    match (a.dtype(), b.dtype()) {
        (a, b) if a == b => Ok(a),
        (a, b) if !is_integer(a) && !is_integer(b) => Ok(DType::F32),
        (a, b) => Err(format!("operands of types {} and {}", a.name(), b.name())),
    }
}

/// A function of slots 0 and 1, of numbers or of integers, with functions fused before each operand
/// and behind it.
fn of_two(
    [numbers, integers]: [Option<Function>; 2],
    [before_a, before_b, after]: [&Vec<UnaryWithParam>; 3],
    task: &Task<'_>,
) -> Planned {
    let dtype = common(task)?;
    let function = if is_integer(dtype) { integers } else { numbers };
    let function = function.ok_or_else(|| format!("the function of elements of type {}", dtype.name()))?;
    let mut lines = fused::lines(before_a, 0)?;
    lines.extend(fused::lines(before_b, 1)?);
    lines.push(Line::plain(Step::new(function).of(0, 1, 0).to(0).integers(numbers_of(dtype))));
    lines.extend(fused::lines(after, 0)?);
    if lines.len() > 1 && is_integer(dtype) {
        return Err(format!("fused functions of elements of type {}", dtype.name()));
    }
    one_stage("binary", task, lines, dtype)
}

pub(super) fn binary(op: &EltwiseBinaryOp, task: &Task<'_>) -> Planned {
    use EltwiseBinaryOpType as T;
    use Function as F;
    let activations = [&op.input_tensor_a_activations, &op.input_tensor_b_activations, &op.activations];
    if let [a, b] = task.operands
        && a.dtype() == b.dtype()
        && is_integer(a.dtype())
        && activations.iter().all(|list| list.is_empty())
        && a.dtype() == DType::I32
        && task.results.iter().all(|result| result.dtype() == DType::I32)
        && op.kind == T::Divide
    {
        return composed::quotients(task);
    }
    if let [a, b] = task.operands
        && a.dtype() == b.dtype()
        && is_integer(a.dtype())
        && activations.iter().all(|list| list.is_empty())
        && let Some(lines) = composed::of_integers(op.kind, numbers_of(a.dtype()))
    {
        return one_stage("binary", task, lines, a.dtype());
    }
    let functions = match op.kind {
        T::Add => [Some(F::Add), Some(F::IntegerAdd)],
        T::Subtract => [Some(F::Subtract), Some(F::IntegerSubtract)],
        T::Multiply => [Some(F::Multiply), Some(F::IntegerMultiply)],
        T::Divide => [Some(F::Divide), None],
        T::Equal => [Some(F::Equal), Some(F::IntegerEqual)],
        T::NotEqual => [Some(F::NotEqual), Some(F::IntegerNotEqual)],
        T::GreaterEqual => [Some(F::AtLeast), Some(F::IntegerAtLeast)],
        T::GreaterThan => [Some(F::Greater), Some(F::IntegerGreater)],
        T::LessEqual => [Some(F::AtMost), Some(F::IntegerAtMost)],
        T::LessThan => [Some(F::Less), Some(F::IntegerLess)],
        T::LogicalAnd => [Some(F::LogicalAnd), None],
        T::LogicalOr => [Some(F::LogicalOr), None],
        T::LogicalXor => [Some(F::LogicalXor), None],
        T::LogicalRightShift => [None, Some(F::ShiftRight)],
    };
    of_two(functions, activations, task)
}

pub(super) fn atan2(task: &Task<'_>) -> Planned {
    let dtype = common(task)?;
    if is_integer(dtype) {
        return Err(format!("the function of elements of type {}", dtype.name()));
    }
    stage_of("atan2", task, composed::angle(), DType::F32, true)
}

pub(super) fn binary_composite(op: &EltwiseBinaryCompositeOp, task: &Task<'_>) -> Planned {
    use EltwiseBinaryCompositeOpType as T;
    use Function as F;
    let activations = [&op.input_tensor_a_activations, &op.input_tensor_b_activations, &op.activations];
    let functions = match op.kind {
        T::Maximum => [Some(F::Max), Some(F::IntegerMax)],
        T::Minimum => [Some(F::Min), Some(F::IntegerMin)],
        T::Remainder => [Some(F::Remainder), Some(F::IntegerModulus)],
        T::Pow => [Some(F::Power), None],
        T::Atan2 if activations.iter().all(|list| list.is_empty()) => return atan2(task),
        T::Atan2 => [None, None],
        T::BitwiseAnd => [None, Some(F::And)],
        T::BitwiseOr => [None, Some(F::Or)],
        T::BitwiseXor => [None, Some(F::Xor)],
        T::LogicalLeftShift => [None, Some(F::ShiftLeft)],
        T::BitwiseRightShift => [None, Some(F::ShiftRightSigned)],
    };
    of_two(functions, activations, task)
}

pub(super) fn binary_scalar(op: &EltwiseBinaryCompositeScalarOp, task: &Task<'_>) -> Planned {
    let power = match &op.rhs {
        NumberType::FP(power) => power.value,
        NumberType::I32(power) => power.value as f32,
    };
    let whole = (0.0..=64.0).contains(&power) && power.fract() == 0.0;
    let fill = Line::new(Step::new(Function::Fill).of(1, 0, 0).to(1), [power.to_bits(), 0]);
    let lines = match whole {
        true => vec![Line::new(Step::new(Function::IntegerPower), [power as u32, 0])],
        false => vec![fill, Line::plain(Step::new(Function::Power).of(0, 1, 0))],
    };
    of_one("power", lines, task)
}

/// A chain of functions of numbers in slot 0.
fn of_one(name: &'static str, lines: Vec<Line>, task: &Task<'_>) -> Planned {
    let [operand] = task.operands else { return Err("other than one operand".into()) };
    if is_integer(operand.dtype()) {
        return Err(format!("the function of elements of type {}", operand.dtype().name()));
    }
    one_stage(name, task, lines, operand.dtype())
}

/// The function of slot 0 that a file names.
pub(super) fn named(name: &str) -> Result<Line, String> {
    let function = match name {
        "relu" => Function::Relu,
        "gelu" => Function::Gelu,
        "silu" => Function::Silu,
        "sigmoid" => Function::Sigmoid,
        "tanh" => Function::Tanh,
        "exp" => Function::Exp,
        "sqrt" => Function::Sqrt,
        _ => return Err(format!("the function {name} of a product")),
    };
    Ok(Line::plain(Step::new(function)))
}

fn plain(function: Function) -> Vec<Line> {
    vec![Line::plain(Step::new(function))]
}

pub(super) fn with(function: Function, numbers: [f32; 2]) -> Vec<Line> {
    vec![Line::new(Step::new(function), numbers.map(f32::to_bits))]
}

pub(super) fn unary(op: &EltwiseUnaryOp, task: &Task<'_>) -> Planned {
    use EltwiseUnaryOpType as T;
    use Function as F;
    let [operand] = task.operands else { return Err("other than one operand".into()) };
    if is_integer(operand.dtype()) {
        let function = match op.kind {
            T::Neg => F::IntegerNegative,
            T::Abs => F::IntegerAbs,
            T::BitwiseNot => F::Not,
            T::LogicalNot => return against_zero(F::IntegerEqual, operand.dtype(), task),
            T::Sign => return composed::integer_sign(operand.dtype(), task),
            T::Relu => return against_zero(F::IntegerMax, operand.dtype(), task),
            _ => return Err(format!("the function of elements of type {}", operand.dtype().name())),
        };
        let step = Step::new(function).integers(numbers_of(operand.dtype()));
        return one_stage("unary", task, vec![Line::plain(step)], operand.dtype());
    }
    let lines = match op.kind {
        T::Abs => plain(F::Abs),
        T::Ceil => plain(F::Ceil),
        T::Cos => plain(F::Cos),
        T::Floor => plain(F::Floor),
        T::Gelu => plain(F::Gelu),
        T::IsFinite => plain(F::IsFinite),
        T::LogicalNot => plain(F::IsZero),
        T::Neg => plain(F::Negative),
        T::Relu => plain(F::Relu),
        T::Sqrt => plain(F::Sqrt),
        T::Rsqrt => with(F::Rsqrt, [0.0; 2]),
        T::Sigmoid => plain(F::Sigmoid),
        T::Sin => plain(F::Sin),
        T::Reciprocal => plain(F::Reciprocal),
        T::Sign => plain(F::Sign),
        T::Tan => plain(F::Tan),
        T::Tanh => plain(F::Tanh),
        T::Atan => plain(F::Atan),
        T::Exp => plain(F::Exp),
        T::Erf => plain(F::Erf),
        T::Erfc => plain(F::Erfc),
        T::Log => plain(F::Log),
        T::Expm1 => plain(F::Expm1),
        T::LeakyRelu => match &op.params {
            Some(EltwiseUnaryOpParams::EltwiseOpWithFloatParams(by)) => with(F::LeakyRelu, [by.parameter, 0.0]),
            None => return Err("a slope that is not given".into()),
        },
        T::BitwiseNot => return Err("the bits of numbers".into()),
        T::Relu6 => with(F::Clamp, [0.0, 6.0]),
        T::Silu => plain(F::Silu),
        T::Hardsigmoid => plain(F::HardSigmoid),
        T::Acos => plain(F::Acos),
        T::Asin => plain(F::Asin),
        T::Round => plain(F::Round),
        T::Mish => return stage_of("unary", task, composed::mish(), operand.dtype(), true),
        T::Asinh => return stage_of("unary", task, composed::asinh(), operand.dtype(), true),
    };
    of_one("unary", lines, task)
}

/// A function of integers and zero.
fn against_zero(function: Function, dtype: DType, task: &Task<'_>) -> Planned {
    let step = |function| Step::new(function).integers(numbers_of(dtype));
    let zero = Line::new(step(Function::IntegerFill).of(1, 0, 0).to(1), [0, 0]);
    one_stage("unary", task, vec![zero, Line::plain(step(function).of(0, 1, 0).to(0))], dtype)
}

pub(super) fn unary_composite(op: &EltwiseUnaryCompositeOp, task: &Task<'_>) -> Planned {
    use EltwiseUnaryCompositeOpType as T;
    if let (T::ClampTensor, [operand, low, high]) = (op.kind, task.operands) {
        return between(operand.dtype(), [low.dtype(), high.dtype()], task);
    }
    if let [operand] = task.operands
        && is_integer(operand.dtype())
    {
        return integer_clamp(op, operand.dtype(), task);
    }
    let lines = match (op.kind, &op.params) {
        (T::Cbrt, _) => plain(Function::Cbrt),
        (T::Log1p, _) => plain(Function::Log1p),
        (T::ClampScalar, Some(EltwiseUnaryCompositeOpParams::ClampScalarOpParams(by))) => {
            let bound = |number: &NumberType| number.as_f64() as f32;
            with(Function::Clamp, [bound(&by.min), bound(&by.max)])
        }
        _ => return Err("bounds that are not given".into()),
    };
    of_one("unary", lines, task)
}

/// Elements between those of two other tensors.
fn between(dtype: DType, bounds: [DType; 2], task: &Task<'_>) -> Planned {
    let functions = match is_integer(dtype) {
        true if bounds != [dtype; 2] => return Err(format!("bounds of other types than {}", dtype.name())),
        true => [Function::IntegerMax, Function::IntegerMin],
        false if bounds.iter().any(|&bound| is_integer(bound)) => return Err("bounds that are integers".into()),
        false => [Function::Max, Function::Min],
    };
    let step = |(function, other)| Line::plain(Step::new(function).of(0, other, 0).to(0).integers(numbers_of(dtype)));
    one_stage("clamp", task, [(functions[0], 1), (functions[1], 2)].map(step).to_vec(), dtype)
}

/// Integers between two bounds.
fn integer_clamp(op: &EltwiseUnaryCompositeOp, dtype: DType, task: &Task<'_>) -> Planned {
    let Some(EltwiseUnaryCompositeOpParams::ClampScalarOpParams(by)) = &op.params else {
        return Err(format!("the function of elements of type {}", dtype.name()));
    };
    let step = |function| Step::new(function).integers(numbers_of(dtype));
    let mut lines = Vec::new();
    for (bound, function) in [(&by.min, Function::IntegerMax), (&by.max, Function::IntegerMin)] {
        let bound = bound.as_f64();
        let range =
            if dtype == DType::I32 { i64::from(i32::MIN)..=i64::from(i32::MAX) } else { 0..=i64::from(u32::MAX) };
        let bound = (bound as i64).clamp(*range.start(), *range.end());
        lines.push(Line::new(step(Function::IntegerFill).of(1, 0, 0).to(1), [bound as u32, 0]));
        lines.push(Line::plain(step(function).of(0, 1, 0).to(0)));
    }
    one_stage("clamp", task, lines, dtype)
}

/// Numbers from `start` on in steps.
pub(super) fn arange(op: &ArangeOp, task: &Task<'_>) -> Planned {
    let result = task.result()?;
    let dims = aligned(result.spec.logical_shape(), 2);
    let [.., rows, _] = dims[..] else { return Err("no dimensions".into()) };
    if dims.iter().product::<usize>() != dims[dims.len() - 1] || rows != 1 {
        return Err("more than one row".into());
    }
    let whole = |number: f32| number.fract() == 0.0 && number.abs() < 16_777_216.0;
    let all_whole = whole(op.start) && whole(op.step);
    let columns = dims[dims.len() - 1];
    if !all_whole || columns.div_ceil(32) > task.site.workers.len() {
        return if all_whole || !is_integer(result.spec.dtype()) {
            composed::counted(op, columns, task)
        } else {
            Err("integers of numbers that are not whole".into())
        };
    }
    let integers = |function| Step::new(function).integers(integer::INT32);
    let fill = |number: f32| Line::new(integers(Function::IntegerFill).of(1, 0, 0).to(1), [number as i32 as u32, 0]);
    let two = |function| Line::plain(integers(function).of(0, 1, 0).to(0));
    let mut lines = vec![Line::new(Step::new(Function::ColumnNumbers), [0, 0])];
    lines.extend([fill(op.step), two(Function::IntegerMultiply), fill(op.start), two(Function::IntegerAdd)]);
    lines.extend(cast(0, DType::I32, result.spec.dtype())?);
    lines.push(Line::plain(Step::new(Function::Store)));
    let stage = Stage {
        name: "arange",
        operands: Vec::new(),
        result,
        lines,
        counts: Some(0),
        wide: true,
        space: dims.into_iter().map(|length| (length, false)).collect(),
        each: false,
    };
    Ok(Recipe { stages: vec![stage.plan(task.site)?], ..Recipe::default() })
}

pub(super) fn select(_: &EltwiseTernaryWhereOp, task: &Task<'_>) -> Planned {
    let [_, yes, no] = task.operands else { return Err("other than three operands".into()) };
    if yes.dtype() != no.dtype() && (is_integer(yes.dtype()) || is_integer(no.dtype())) {
        return Err(format!("operands of types {} and {}", yes.dtype().name(), no.dtype().name()));
    }
    let step = Step::new(Function::Where).of(0, 1, 2).to(0);
    one_stage("where", task, vec![Line::plain(step)], yes.dtype())
}

/// The gradient of a `gelu`.
pub(super) fn gelu_backward(op: &ExperimentalEltwiseBinaryBackwardOp, task: &Task<'_>) -> Planned {
    let [grad, input] = task.operands else { return Err("other than two operands".into()) };
    if is_integer(grad.dtype()) || is_integer(input.dtype()) {
        return Err("gradients that are integers".into());
    }
    let lines = match op.approximate.as_str() {
        "tanh" => composed::gelu_tanh_gradient(),
        "none" | "" => composed::gelu_gradient(),
        other => return Err(format!("a gelu that is approximated by {other:?}")),
    };
    stage_of("gelu-backward", task, lines, DType::F32, true)
}

/// The same numbers in another element type.
pub(super) fn typecast(task: &Task<'_>) -> Planned {
    let [operand] = task.operands else { return Err("other than one operand".into()) };
    one_stage("typecast", task, Vec::new(), operand.dtype())
}
