//! Reductions over dimensions: sum, mean, largest, smallest, product.

use tilework_abi::eltwise::{Function, Step, When, fold};
use tilework_model::ttnn::ops::reduction::{ReductionOp, ReductionOpType, ReductionProdOp};
use tilework_ops::DType;

use super::eltwise::{is_integer, numbers_of};
use super::stage::{Line, Stage, aligned, spread};
use crate::recipe::{Build, Of, Planned, Recipe, Site, Task};

/// What elements are folded by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum By {
    Sum,
    Max,
    Min,
    Product,
}

impl By {
    /// The function of two tiles, the fold of one, and what changes nothing.
    fn of(self, integers: bool) -> Option<(Function, u32, u32)> {
        Some(match (self, integers) {
            (Self::Sum, false) => (Function::Add, fold::SUM, 0),
            (Self::Max, false) => (Function::Max, fold::MAX, f32::NEG_INFINITY.to_bits()),
            (Self::Min, false) => (Function::Min, fold::MIN, f32::INFINITY.to_bits()),
            (Self::Product, false) => (Function::Multiply, fold::PRODUCT, 1f32.to_bits()),
            (Self::Sum, true) => (Function::IntegerAdd, fold::SUM, 0),
            (Self::Max, true) => (Function::IntegerMax, fold::MAX, i32::MIN as u32),
            (Self::Min, true) => (Function::IntegerMin, fold::MIN, i32::MAX as u32),
            (Self::Product, true) => return None,
        })
    }
}

/// A reduction of what `before` makes of operands, of which the first has the shape of the space.
pub(super) struct Reduce<'s> {
    pub(super) name: &'static str,
    /// The first is loaded to slot 1, the others to slots 2 and 3, spread.
    pub(super) operands: Vec<Of<'s>>,
    /// Steps of every iteration, to slot 1; the others stay as they are.
    pub(super) before: Vec<Line>,
    pub(super) by: By,
    /// Which dimensions.
    pub(super) reduced: Vec<bool>,
    /// Steps of the last iteration, in slot 0.
    pub(super) after: Vec<Line>,
    /// With one element where a dimension is reduced.
    pub(super) result: Of<'s>,
}

impl Reduce<'_> {
    /// Adds its programs to a recipe. Rows with padding are reduced before the dimensions in front
    /// of them.
    pub(super) fn add(self, recipe: &mut Recipe, site: &Site) -> Result<(), String> {
        let dims = self.operands[0].spec.logical_shape();
        let rank = dims.len();
        let outer = self.reduced.len().saturating_sub(2);
        let rows = rank >= 2 && self.reduced[rank - 2] && !dims[rank - 2].is_multiple_of(32);
        if !rows || !self.reduced[..outer].contains(&true) {
            recipe.stages.push(self.plan(site)?);
            return Ok(());
        }
        let (mut inner, mut rest) = (self.reduced.clone(), self.reduced.clone());
        inner[..outer].fill(false);
        rest[outer..].fill(false);
        let dtype = self.operands[0].spec.dtype();
        let between = if is_integer(dtype) { dtype } else { DType::F32 };
        let made = recipe.tiles(&kept(dims, &inner), between)?;
        let Self { name, operands, before, by, after, result, .. } = self;
        let first = Reduce { name, operands, before, by, reduced: inner, after: Vec::new(), result: made.of() };
        recipe.stages.push(first.plan(site)?);
        let (operands, before) = (vec![made.of()], Vec::new());
        recipe.stages.push(Reduce { name, operands, before, by, reduced: rest, after, result }.plan(site)?);
        Ok(())
    }

    fn plan(self, site: &Site) -> Result<Build, String> {
        let Self { name, operands, before, by, reduced, after, result } = self;
        let dims = operands[0].spec.logical_shape();
        let rank = dims.len().max(2);
        let dims = aligned(dims, rank);
        let mut is = vec![false; rank - reduced.len()];
        is.extend(reduced);
        let dtype = operands[0].spec.dtype();
        let Some((function, fold, neutral)) = by.of(is_integer(dtype)) else {
            return Err(format!("products of elements of type {}", dtype.name()));
        };
        let (rows, columns) = (is[rank - 2], is[rank - 1]);
        let [height, width] = [dims[rank - 2], dims[rank - 1]].map(|length| length as u32 % 32);
        if rows && height != 0 && is[..rank - 2].contains(&true) {
            return Err("rows with padding, reduced together with dimensions before them".into());
        }
        let number = numbers_of(dtype);
        let step = |function| Step::new(function).integers(number);
        let mut lines = Vec::new();
        for (operand, of) in (0..).zip(&operands) {
            let slot = operand + 1;
            // One for a whole run stays in its slot.
            let own = aligned(of.spec.logical_shape(), rank);
            let once = operand != 0 && own.iter().zip(&is).all(|(&length, &reduced)| length == 1 || !reduced);
            let when = if once { When::First } else { When::Always };
            let load = Line::plain(Step::new(Function::Load).of(operand, 0, 0).to(slot));
            let loaded = [Some(load), spread(of.spec.logical_shape(), &dims, slot)];
            lines.extend(loaded.into_iter().flatten().map(|line| Line::new(line.step.when(when), line.numbers)));
        }
        lines.extend(before);
        if columns && width != 0 {
            let mask = step(Function::MaskColumns).of(1, 0, 0).to(1).when(When::LastColumn);
            lines.push(Line::new(mask, [width, neutral]));
        }
        if rows && height != 0 {
            let mask = step(Function::MaskRows).of(1, 0, 0).to(1).when(When::LastRow);
            lines.push(Line::new(mask, [height, neutral]));
        }
        lines.push(Line::plain(Step::new(Function::Copy).of(1, 0, 0).to(0).when(When::First)));
        lines.push(Line::plain(step(function).of(0, 1, 0).to(0).when(When::NotFirst)));
        for (wanted, way) in [(columns, Function::FoldRows), (rows, Function::FoldColumns)] {
            if wanted {
                lines.push(Line::new(step(way).when(When::Last), [fold, 0]));
            }
        }
        lines.extend(after.into_iter().map(|line| Line::new(line.step.when(When::Last), line.numbers)));
        lines.push(Line::plain(Step::new(Function::Store).when(When::Last)));
        let space = dims.into_iter().zip(is).collect();
        Stage { name, operands, result, lines, counts: None, wide: true, space, each: false }.plan(site)
    }
}

/// Dimensions that numbers of a file mean; all, if there are none.
fn dimensions(numbers: &[i64], rank: usize) -> Result<Vec<bool>, String> {
    let mut reduced = vec![numbers.is_empty(); rank];
    for &number in numbers {
        let at = if number < 0 { number + rank as i64 } else { number };
        let at = usize::try_from(at).ok().filter(|&at| at < rank).ok_or_else(|| format!("dimension {number}"))?;
        reduced[at] = true;
    }
    Ok(reduced)
}

/// Lengths with one where a dimension is reduced.
pub(super) fn kept(dims: &[usize], reduced: &[bool]) -> Vec<usize> {
    dims.iter().zip(reduced).map(|(&length, &reduced)| if reduced { 1 } else { length }).collect()
}

fn reduce(by: By, numbers: &[i64], scale: impl Fn(usize) -> Option<f32>, task: &Task<'_>) -> Planned {
    let (Of { spec: source, .. }, result) = (task.operand(0)?, task.result()?);
    let dims = source.logical_shape();
    let reduced = dimensions(numbers, dims.len())?;
    let count = dims.iter().zip(&reduced).filter(|(_, reduced)| **reduced).map(|(length, _)| length).product();
    let after = scale(count).map(|by| Line::new(Step::new(Function::Scale), [by.to_bits(), 0]));
    if after.is_some() && is_integer(source.dtype()) {
        return Err(format!("means of elements of type {}", source.dtype().name()));
    }
    if is_integer(source.dtype()) != is_integer(result.spec.dtype()) {
        return Err(format!("{} elements made of {}", result.spec.dtype().name(), source.dtype().name()));
    }
    let kept = kept(dims, &reduced);
    let (operands, after) = (vec![task.operand(0)?], after.into_iter().collect());
    let of = |result| Reduce { name: "reduce", operands, before: Vec::new(), by, reduced, after, result };
    let mut recipe = Recipe::default();
    if aligned(result.spec.logical_shape(), 2) == aligned(&kept, 2) {
        of(result).add(&mut recipe, task.site)?;
        return Ok(recipe);
    }
    // Without the reduced dimensions the elements lie elsewhere in the tiles.
    let folded = recipe.tiles(&kept, result.spec.dtype())?;
    of(folded.of()).add(&mut recipe, task.site)?;
    recipe.same_elements(folded.of(), result, task.site)?;
    Ok(recipe)
}

pub(super) fn reduction(op: &ReductionOp, task: &Task<'_>) -> Planned {
    let (by, mean) = match op.kind {
        ReductionOpType::Sum => (By::Sum, false),
        ReductionOpType::Mean => (By::Sum, true),
        ReductionOpType::Max => (By::Max, false),
        ReductionOpType::Min => (By::Min, false),
    };
    let numbers: Vec<i64> = op.dim_arg.iter().map(|&dim| dim.into()).collect();
    reduce(by, &numbers, |count| mean.then(|| 1.0 / count as f32), task)
}

/// The means over dimensions.
pub(super) fn mean(numbers: &[i64], task: &Task<'_>) -> Planned {
    reduce(By::Sum, numbers, |count| Some(1.0 / count as f32), task)
}

pub(super) fn prod(op: &ReductionProdOp, task: &Task<'_>) -> Planned {
    reduce(By::Product, op.dim_arg.as_slice(), |_| None, task)
}
