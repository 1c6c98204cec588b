//! Softmax and normalisation along a dimension: statistics first, then a pass over the elements.

use tilework_abi::eltwise::{Function, Step};
use tilework_model::ttnn::ops::normalization::{LayerNormOp, RMSNormOp, SoftmaxOp};
use tilework_ops::DType;

use super::reduction::{By, Reduce, kept};
use super::rowwise::{self, Way};
use super::stage::{Line, Stage, aligned, spread};
use crate::recipe::{Build, Made, Of, Planned, Recipe, Site, Task};

/// A step of two slots to the first of them.
pub(super) fn two(function: Function, a: u32, b: u32) -> Line {
    Line::plain(Step::new(function).of(a, b, 0).to(a))
}

/// A step of one slot in place.
pub(super) fn one(function: Function, slot: u32, number: f32) -> Line {
    Line::new(Step::new(function).of(slot, 0, 0).to(slot), [number.to_bits(), 0])
}

/// Operands of a pass over rows: each with the steps that follow when it is in slot 1.
pub(super) type Others<'s> = Vec<(Of<'s>, Vec<Line>)>;

/// The first tensor loaded to slot 0, then others one after the other to slot 1, each with the
/// steps behind it; then the steps `after`; slot 0 to the second tensor.
pub(super) fn rows(
    name: &'static str,
    (first, result): (Of<'_>, Of<'_>),
    others: Others<'_>,
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
    Stage { name, operands, result, lines, counts: None, wide: true, space, each: false }.plan(site)
}

/// A recipe whose stages begin with statistics of a tensor of numbers over some dimensions.
pub(super) struct Statistics<'s> {
    pub(super) x: Of<'s>,
    pub(super) reduced: Vec<bool>,
    pub(super) recipe: Recipe,
    pub(super) site: &'s Site,
}

impl<'s> Statistics<'s> {
    /// Of a tensor over some of its dimensions.
    ///
    /// # Errors
    /// The tensor has integers.
    pub(super) fn of(x: Of<'s>, reduced: Vec<bool>, recipe: Recipe, site: &'s Site) -> Result<Self, String> {
        match x.spec.dtype() {
            DType::F32 | DType::BF16 | DType::Bfp8B => Ok(Self { x, reduced, recipe, site }),
            other => Err(format!("elements of type {}", other.name())),
        }
    }

    /// Of the operand over its last dimension.
    fn of_rows(task: &Task<'s>) -> Result<Self, String> {
        let x = task.operand(0)?;
        let rank = x.spec.logical_shape().len();
        Self::of(x, (1..=rank).map(|k| k == rank).collect(), Recipe::default(), task.site)
    }

    /// How many elements each is made of.
    pub(super) fn count(&self) -> usize {
        self.x.spec.logical_shape().iter().zip(&self.reduced).filter(|(_, is)| **is).map(|(length, _)| length).product()
    }

    /// A statistic in float32: the fold of what `before` makes of the element in slot 1 and of
    /// other statistics, from slot 2 on; then `after` in slot 0.
    pub(super) fn fold(
        &mut self,
        name: &'static str,
        others: &[&Made],
        before: Vec<Line>,
        by: By,
        after: Vec<Line>,
    ) -> Result<Made, String> {
        let made = self.recipe.tiles(&kept(self.x.spec.logical_shape(), &self.reduced), DType::F32)?;
        let operands = std::iter::once(self.x).chain(others.iter().map(|made| made.of())).collect();
        let reduced = self.reduced.clone();
        let reduce = Reduce { name, operands, before, by, reduced, after, result: made.of() };
        reduce.add(&mut self.recipe, self.site)?;
        Ok(made)
    }

    /// The means, and one divided by the deviations.
    pub(super) fn deviations(&mut self, epsilon: f32) -> Result<(Made, Made), String> {
        let part = one(Function::Scale, 0, 1.0 / self.count() as f32);
        let mean = self.fold("mean", &[], Vec::new(), By::Sum, vec![part])?;
        let before = vec![two(Function::Subtract, 1, 2), one(Function::Square, 1, 0.0)];
        let after = vec![part, one(Function::Rsqrt, 0, epsilon)];
        let root = self.fold("variance", &[&mean], before, By::Sum, after)?;
        Ok((mean, root))
    }

    /// Ends with a pass over the elements.
    pub(super) fn pass(mut self, name: &'static str, others: Others<'_>, to: Of<'_>) -> Planned {
        self.recipe.stages.push(rows(name, (self.x, to), others, Vec::new(), self.site)?);
        Ok(self.recipe)
    }
}

pub(super) fn softmax(op: &SoftmaxOp, task: &Task<'_>) -> Planned {
    let x = task.operand(0)?;
    let rank = x.spec.logical_shape().len() as i32;
    let axis = if op.dimension < 0 { op.dimension + rank } else { op.dimension };
    if !(0..rank).contains(&axis) {
        return Err(format!("dimension {}", op.dimension));
    }
    if axis + 1 == rank
        && let Some(recipe) = rowwise::recipe(Way::Softmax, x, task.result()?, task.site)
    {
        return Ok(recipe);
    }
    let reduced = (0..rank).map(|k| k == axis).collect();
    softmax_of(Statistics::of(x, reduced, Recipe::default(), task.site)?, task.result()?)
}

/// The softmax of a tensor over some of its dimensions.
pub(super) fn softmax_of(mut of: Statistics<'_>, to: Of<'_>) -> Planned {
    let largest = of.fold("softmax-max", &[], Vec::new(), By::Max, Vec::new())?;
    let before = vec![two(Function::Subtract, 1, 2), one(Function::Exp, 1, 0.0)];
    let sum = of.fold("softmax-sum", &[&largest], before, By::Sum, vec![one(Function::Reciprocal, 0, 0.0)])?;
    let others = vec![
        (largest.of(), vec![two(Function::Subtract, 0, 1), one(Function::Exp, 0, 0.0)]),
        (sum.of(), vec![two(Function::Multiply, 0, 1)]),
    ];
    of.pass("softmax", others, to)
}

/// The softmax of rows that have one more score each, which has no result: that of `sink`, times
/// the scale.
pub(super) fn softmax_with(sink: Of<'_>, scale: f32, mut of: Statistics<'_>, to: Of<'_>) -> Planned {
    let scaled = one(Function::Scale, 1, scale);
    let largest = of.fold("softmax-max", &[], Vec::new(), By::Max, Vec::new())?;
    let dims = largest.of().spec.logical_shape();
    let bound = of.recipe.tiles(dims, DType::F32)?;
    let others = vec![(sink, vec![scaled, two(Function::Max, 0, 1)])];
    of.recipe.stages.push(rows("softmax-sink", (largest.of(), bound.of()), others, Vec::new(), of.site)?);
    let before = vec![two(Function::Subtract, 1, 2), one(Function::Exp, 1, 0.0)];
    let sum = of.fold("softmax-sum", &[&bound], before, By::Sum, Vec::new())?;
    let part = of.recipe.tiles(dims, DType::F32)?;
    let kept = Line::plain(Step::new(Function::Copy).of(1, 0, 0).to(2));
    let added = vec![two(Function::Subtract, 2, 1), one(Function::Exp, 2, 0.0), two(Function::Add, 0, 2)];
    let others = vec![(sink, vec![scaled, kept]), (bound.of(), added)];
    let after = vec![one(Function::Reciprocal, 0, 0.0)];
    of.recipe.stages.push(rows("softmax-sink", (sum.of(), part.of()), others, after, of.site)?);
    let others = vec![
        (bound.of(), vec![two(Function::Subtract, 0, 1), one(Function::Exp, 0, 0.0)]),
        (part.of(), vec![two(Function::Multiply, 0, 1)]),
    ];
    of.pass("softmax", others, to)
}

/// Steps for the weight and the bias, of which the first that is given is operand `first`.
pub(super) fn affine<'t>(weight: bool, bias: bool, first: usize, task: &Task<'t>) -> Result<Others<'t>, String> {
    let which = [(weight, first, Function::Multiply), (bias, first + usize::from(weight), Function::Add)];
    let given = which.into_iter().filter(|(given, ..)| *given);
    given.map(|(_, i, function)| Ok((task.operand(i)?, vec![two(function, 0, 1)]))).collect()
}

/// The way of whole rows, with the operands behind the first.
fn rowwise_norm(centred: bool, epsilon: f32, [weight, bias]: [bool; 2], task: &Task<'_>) -> Option<Recipe> {
    let of = |given: bool, i: usize| if given { task.operand(i).ok().map(Some) } else { Some(None) };
    let (weight, bias) = (of(weight, 1)?, of(bias, 1 + usize::from(weight))?);
    let way = Way::Norm { centred, epsilon, weight, bias };
    rowwise::recipe(way, task.operand(0).ok()?, task.result().ok()?, task.site)
}

pub(super) fn rms_norm(op: &RMSNormOp, task: &Task<'_>) -> Planned {
    let vectors = [op.weight.is_some(), op.bias.is_some()];
    if let Some(recipe) = rowwise_norm(false, op.epsilon, vectors, task) {
        return Ok(recipe);
    }
    let mut of = Statistics::of_rows(task)?;
    let after = vec![one(Function::Scale, 0, 1.0 / of.count() as f32), one(Function::Rsqrt, 0, op.epsilon)];
    let root = of.fold("mean-square", &[], vec![one(Function::Square, 1, 0.0)], By::Sum, after)?;
    let mut others = vec![(root.of(), vec![two(Function::Multiply, 0, 1)])];
    others.extend(affine(op.weight.is_some(), op.bias.is_some(), 1, task)?);
    of.pass("rms-norm", others, task.result()?)
}

pub(super) fn layer_norm(op: &LayerNormOp, task: &Task<'_>) -> Planned {
    let vectors = [op.weight.is_some(), op.bias.is_some()];
    if let Some(recipe) = rowwise_norm(true, op.epsilon, vectors, task) {
        return Ok(recipe);
    }
    let mut of = Statistics::of_rows(task)?;
    let (mean, root) = of.deviations(op.epsilon)?;
    let mut others =
        vec![(mean.of(), vec![two(Function::Subtract, 0, 1)]), (root.of(), vec![two(Function::Multiply, 0, 1)])];
    others.extend(affine(op.weight.is_some(), op.bias.is_some(), 1, task)?);
    of.pass("layer-norm", others, task.result()?)
}
