//! Quantisation: numbers to integers by a scale and a zero point, and back. One of each for the
//! whole tensor, or for each index of an axis.
//!
//! Integers are those nearest, the one further from zero of two, as host arithmetic has them.

use tilework_abi::eltwise::{Function, Step};
use tilework_model::ttnn::ops::quantization::{
    EltwiseQuantizationOp, EltwiseQuantizationOpParams, EltwiseQuantizationOpType, QuantizationScale,
    QuantizationZeroPoint,
};
use tilework_ops::DType;

use super::eltwise::{cast, cast_to, is_integer};
use super::norm::{self, one, two};
use super::stage::Line;
use crate::recipe::{Made, Of, Planned, Recipe, Task};

/// What follows for the number in slot 0.
enum Next {
    /// These steps.
    Lines(Vec<Line>),
    /// These steps, with this tensor in slot 1.
    With(Box<(Made, Vec<Line>)>),
}

/// A recipe as it grows, and the operands that were taken.
struct Plan<'t, 'a> {
    recipe: Recipe,
    task: &'t Task<'a>,
    taken: usize,
    axis: Option<usize>,
    next: Vec<Next>,
}

impl Plan<'_, '_> {
    /// The next operand in float32, along the axis.
    fn vector(&mut self) -> Result<Made, String> {
        self.taken += 1;
        let (of, site) = (self.task.operand(self.taken)?, self.task.site);
        let dims = self.task.operand(0)?.spec.logical_shape();
        let count = of.spec.logical_shape().iter().product::<usize>();
        let mut along = vec![1; dims.len()];
        match self.axis {
            _ if count == 1 => {}
            Some(axis) if dims[axis] == count => along[axis] = count,
            _ => return Err(format!("{count} scales or zero points")),
        }
        let made = self.recipe.in_tiles(of, &along, site)?;
        if of.spec.dtype() == DType::F32 {
            return Ok(made);
        }
        let numbers = self.recipe.tiles(&along, DType::F32)?;
        cast_to(&mut self.recipe, made.of(), numbers.of(), site)?;
        Ok(numbers)
    }

    /// Products with a scale, or with one divided by it.
    fn scale(&mut self, by: &QuantizationScale, inverse: bool) -> Result<(), String> {
        let next = match by {
            QuantizationScale::PerTensorScale(by) => {
                Next::Lines(vec![one(Function::Scale, 0, if inverse { 1.0 / by.scale } else { by.scale })])
            }
            QuantizationScale::PerAxisScale(_) => {
                let mut lines = Vec::new();
                if inverse {
                    lines.push(one(Function::Fill, 2, 1.0));
                    lines.push(Line::plain(Step::new(Function::Divide).of(2, 1, 0).to(1)));
                }
                lines.push(two(Function::Multiply, 0, 1));
                Next::With(Box::new((self.vector()?, lines)))
            }
        };
        self.next.push(next);
        Ok(())
    }

    /// Sums with a zero point, or differences.
    fn zero(&mut self, by: &QuantizationZeroPoint, less: bool) -> Result<(), String> {
        let next = match by {
            QuantizationZeroPoint::PerTensorZeroPoint(by) => {
                let zero = by.zero_point as f32;
                Next::Lines(vec![one(Function::Shift, 0, if less { -zero } else { zero })])
            }
            QuantizationZeroPoint::PerAxisZeroPoint(_) => {
                let function = if less { Function::Subtract } else { Function::Add };
                Next::With(Box::new((self.vector()?, vec![two(function, 0, 1)])))
            }
        };
        self.next.push(next);
        Ok(())
    }

    /// Integers of a byte.
    fn round(&mut self, out: DType) {
        let (low, high) = if out == DType::U8 { (0.0, 255.0) } else { (-127.0, 127.0) };
        let clamp = Step::new(Function::Clamp);
        // The integer towards zero, and one more where half of one or more is left.
        self.next.push(Next::Lines(vec![
            Line::new(clamp, [f32::to_bits(low - 1.0), f32::to_bits(high + 1.0)]),
            Line::plain(Step::new(Function::Copy).of(0, 0, 0).to(1)),
            Line::plain(Step::new(Function::Trunc)),
            two(Function::Subtract, 1, 0),
            one(Function::Scale, 1, 2.0),
            one(Function::Trunc, 1, 0.0),
            two(Function::Add, 0, 1),
            Line::new(clamp, [f32::to_bits(low), f32::to_bits(high)]),
        ]));
    }

    /// The stages: a tensor follows the steps before it.
    fn finish(mut self, result: Of<'_>) -> Planned {
        let (x, site) = (self.task.operand(0)?, self.task.site);
        let mut now: Option<Made> = None;
        if is_integer(x.spec.dtype()) {
            let made = self.recipe.tiles(x.spec.logical_shape(), DType::F32)?;
            cast_to(&mut self.recipe, x, made.of(), site)?;
            now = Some(made);
        }
        let to_result = cast(0, DType::F32, result.spec.dtype())?;
        self.next.push(Next::Lines(to_result.into_iter().collect()));
        let (mut lines, mut other) = (Vec::new(), None::<(Made, Vec<Line>)>);
        for next in std::mem::take(&mut self.next) {
            match next {
                Next::Lines(more) => match &mut other {
                    Some((_, steps)) => steps.extend(more),
                    None => lines.extend(more),
                },
                Next::With(of) => {
                    let before = other.replace(*of);
                    if before.is_some() || !lines.is_empty() {
                        let between = self.recipe.tiles(x.spec.logical_shape(), DType::F32)?;
                        let from = now.as_ref().map_or(x, Made::of);
                        let others = before.iter().map(|(made, steps)| (made.of(), steps.clone())).collect();
                        let lines = std::mem::take(&mut lines);
                        self.recipe.stages.push(norm::rows("scale", (from, between.of()), others, lines, site)?);
                        now = Some(between);
                    }
                }
            }
        }
        let from = now.as_ref().map_or(x, Made::of);
        let others = other.iter().map(|(made, steps)| (made.of(), steps.clone())).collect();
        self.recipe.stages.push(norm::rows("quantize", (from, result), others, lines, site)?);
        Ok(self.recipe)
    }
}

pub(super) fn quantization(op: &EltwiseQuantizationOp, task: &Task<'_>) -> Planned {
    use EltwiseQuantizationOpParams::{QuantizeDequantizeOpParams, RequantizeOpParams};
    use EltwiseQuantizationOpType::{Dequantize, Quantize, Requantize};
    let (result, rank) = (task.result()?, task.operand(0)?.spec.logical_shape().len() as i32);
    let axis = match op.axis {
        Some(axis) if !(-rank..rank).contains(&axis) => return Err(format!("axis {axis}")),
        Some(axis) => Some((if axis < 0 { axis + rank } else { axis }) as usize),
        None => None,
    };
    let mut plan = Plan { recipe: Recipe::default(), task, taken: 0, axis, next: Vec::new() };
    match (op.kind, &op.params) {
        (Quantize, QuantizeDequantizeOpParams(by)) => {
            plan.scale(&by.scale, true)?;
            plan.zero(&by.zero_point, false)?;
            plan.round(result.spec.dtype());
        }
        (Dequantize, QuantizeDequantizeOpParams(by)) => {
            // The operands are in the order scale, zero point.
            plan.scale(&by.scale, false)?;
            plan.zero(&by.zero_point, true)?;
            plan.next.swap(0, 1);
        }
        (Requantize, RequantizeOpParams(by)) => {
            plan.scale(&by.in_scale, false)?;
            plan.zero(&by.in_zero_point, true)?;
            plan.next.swap(0, 1);
            plan.scale(&by.out_scale, true)?;
            plan.zero(&by.out_zero_point, false)?;
            plan.round(result.spec.dtype());
        }
        _ => return Err("the parameters of another function".into()),
    }
    plan.finish(result)
}
