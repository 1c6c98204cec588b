//! Softmax and normalisation along the last dimension: statistics of rows first, then the rows.

use tilework_abi::eltwise::{Function, Step};
use tilework_model::ttnn::ops::normalization::{LayerNormOp, RMSNormOp, SoftmaxOp};
use tilework_ops::DType;
use tilework_runtime::tensor::TensorSpec;

use super::reduction::{By, Reduce, kept, scratch};
use super::stage::{Line, Of, Stage, Which, aligned, spread};
use crate::recipe::{Build, Planned, Recipe, Site, Task};

/// A step of two slots to the first of them.
pub(super) fn two(function: Function, a: u32, b: u32) -> Line {
    Line::plain(Step::new(function).of(a, b, 0).to(a))
}

/// A step of one slot in place.
fn one(function: Function, slot: u32, number: f32) -> Line {
    Line::new(Step::new(function).of(slot, 0, 0).to(slot), [number.to_bits(), 0])
}

/// The first tensor loaded to slot 0, then others one after the other to slot 1, each with the steps
/// behind it; then the steps `after`; slot 0 to the second tensor.
pub(super) fn rows(
    name: &'static str,
    (first, result): (Of<'_>, Of<'_>),
    others: Vec<(Of<'_>, Vec<Line>)>,
    after: Vec<Line>,
    site: &Site,
) -> Result<Build, String> {
    let dims = aligned(result.spec.logical_shape(), 2);
    let load = |operand: u32, slot: u32| Line::plain(Step::new(Function::Load).of(operand, 0, 0).to(slot));
    let mut lines = vec![load(0, 0)];
    lines.extend(spread(first.spec.logical_shape(), &dims, 0));
    let mut operands = vec![first];
    for (operand, (of, steps)) in (1..).zip(others) {
        lines.push(load(operand, 1));
        lines.extend(spread(of.spec.logical_shape(), &dims, 1));
        lines.extend(steps);
        operands.push(of);
    }
    lines.extend(after);
    lines.push(Line::plain(Step::new(Function::Store)));
    let space = dims.into_iter().map(|length| (length, false)).collect();
    Stage { name, operands, result, lines, counts: None, wide: true, space }.plan(site)
}

/// The result of a task.
pub(super) fn result<'t>(task: &Task<'t>) -> Result<Of<'t>, String> {
    let [spec] = task.results else { return Err("other than one result".into()) };
    Ok(Of { which: Which::Result(0), spec })
}

/// The operand, which is not of integers, and the dimension, if it is the last or the one before.
fn normalised<'t>(task: &Task<'t>) -> Result<&'t TensorSpec, String> {
    let source = task.operands.first().ok_or("no operand")?;
    match source.dtype() {
        DType::F32 | DType::BF16 | DType::Bfp8B => Ok(source),
        other => Err(format!("elements of type {}", other.name())),
    }
}

pub(super) fn softmax(op: &SoftmaxOp, task: &Task<'_>) -> Planned {
    let source = normalised(task)?;
    let dims = source.logical_shape();
    let rank = dims.len() as i32;
    let axis = if op.dimension < 0 { op.dimension + rank } else { op.dimension };
    let reduced: Vec<bool> = (0..rank).map(|k| k == axis).collect();
    if !reduced.contains(&true) {
        return Err(format!("dimension {}", op.dimension));
    }
    let (desc, spec) = scratch(&kept(dims, &reduced), DType::F32)?;
    let x = Of { which: Which::Operand(0), spec: source };
    let (largest, sum) = (Of { which: Which::Scratch(0), spec: &spec }, Of { which: Which::Scratch(1), spec: &spec });
    let max = Reduce {
        name: "softmax-max",
        operands: vec![x],
        before: Vec::new(),
        by: By::Max,
        reduced: reduced.clone(),
        after: Vec::new(),
        result: largest,
    };
    let exponentials = Reduce {
        name: "softmax-sum",
        operands: vec![x, largest],
        before: vec![two(Function::Subtract, 1, 2), one(Function::Exp, 1, 0.0)],
        by: By::Sum,
        reduced,
        after: vec![one(Function::Reciprocal, 0, 0.0)],
        result: sum,
    };
    let quotient = rows(
        "softmax",
        (x, result(task)?),
        vec![
            (largest, vec![two(Function::Subtract, 0, 1), one(Function::Exp, 0, 0.0)]),
            (sum, vec![two(Function::Multiply, 0, 1)]),
        ],
        Vec::new(),
        task.site,
    )?;
    let stages = vec![max.plan(task.site)?, exponentials.plan(task.site)?, quotient];
    Ok(Recipe { scratch: vec![desc.clone(), desc], stages })
}

/// Which operands are the weight and the bias.
fn affine(weight: bool, bias: bool) -> [Option<usize>; 2] {
    [weight.then_some(1), bias.then_some(1 + usize::from(weight))]
}

/// Steps for weight and bias.
fn scaled<'t>(task: &Task<'t>, which: [Option<usize>; 2]) -> Result<Vec<(Of<'t>, Vec<Line>)>, String> {
    let mut others = Vec::new();
    for (operand, function) in which.into_iter().zip([Function::Multiply, Function::Add]) {
        let Some(i) = operand else { continue };
        let spec = *task.operands.get(i).ok_or("an operand is missing")?;
        others.push((Of { which: Which::Operand(i), spec }, vec![two(function, 0, 1)]));
    }
    Ok(others)
}

pub(super) fn rms_norm(op: &RMSNormOp, task: &Task<'_>) -> Planned {
    let source = normalised(task)?;
    let dims = source.logical_shape();
    let (width, last) = (dims.last().copied().unwrap_or(1), dims.len().saturating_sub(1));
    let reduced: Vec<bool> = (0..dims.len()).map(|k| k == last).collect();
    let (desc, spec) = scratch(&kept(dims, &reduced), DType::F32)?;
    let x = Of { which: Which::Operand(0), spec: source };
    let root = Of { which: Which::Scratch(0), spec: &spec };
    let mean = Reduce {
        name: "rms-norm-mean",
        operands: vec![x],
        before: vec![one(Function::Square, 1, 0.0)],
        by: By::Sum,
        reduced,
        after: vec![one(Function::Scale, 0, 1.0 / width as f32), one(Function::Rsqrt, 0, op.epsilon)],
        result: root,
    };
    let mut others = vec![(root, vec![two(Function::Multiply, 0, 1)])];
    others.extend(scaled(task, affine(op.weight.is_some(), op.bias.is_some()))?);
    let stages = vec![mean.plan(task.site)?, rows("rms-norm", (x, result(task)?), others, Vec::new(), task.site)?];
    Ok(Recipe { scratch: vec![desc], stages })
}

pub(super) fn layer_norm(op: &LayerNormOp, task: &Task<'_>) -> Planned {
    let source = normalised(task)?;
    let dims = source.logical_shape();
    let (width, last) = (dims.last().copied().unwrap_or(1), dims.len().saturating_sub(1));
    let reduced: Vec<bool> = (0..dims.len()).map(|k| k == last).collect();
    let (desc, spec) = scratch(&kept(dims, &reduced), DType::F32)?;
    let x = Of { which: Which::Operand(0), spec: source };
    let (mean, root) = (Of { which: Which::Scratch(0), spec: &spec }, Of { which: Which::Scratch(1), spec: &spec });
    let part = 1.0 / width as f32;
    let means = Reduce {
        name: "layer-norm-mean",
        operands: vec![x],
        before: Vec::new(),
        by: By::Sum,
        reduced: reduced.clone(),
        after: vec![one(Function::Scale, 0, part)],
        result: mean,
    };
    let variances = Reduce {
        name: "layer-norm-variance",
        operands: vec![x, mean],
        before: vec![two(Function::Subtract, 1, 2), one(Function::Square, 1, 0.0)],
        by: By::Sum,
        reduced,
        after: vec![one(Function::Scale, 0, part), one(Function::Rsqrt, 0, op.epsilon)],
        result: root,
    };
    let mut others = vec![(mean, vec![two(Function::Subtract, 0, 1)]), (root, vec![two(Function::Multiply, 0, 1)])];
    others.extend(scaled(task, affine(op.weight.is_some(), op.bias.is_some()))?);
    let stages = vec![
        means.plan(task.site)?,
        variances.plan(task.site)?,
        rows("layer-norm", (x, result(task)?), others, Vec::new(), task.site)?,
    ];
    Ok(Recipe { scratch: vec![desc.clone(), desc], stages })
}
