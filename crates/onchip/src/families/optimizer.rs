//! A step of the optimiser AdamW: element-wise passes over parameters and their moments.

use tilework_abi::eltwise::{Function, Step};
use tilework_model::ttnn::ops::training::AdamWOp;
use tilework_ops::DType;

use super::norm::{one, rows, two};
use super::stage::Line;
use crate::recipe::{Of, Planned, Recipe, Task, Which};

/// The operands are parameters, both moments, the largest second moment if it is kept, and the
/// gradient; the results all but the last, as they are then.
pub(super) fn adamw(op: &AdamWOp, task: &Task<'_>) -> Planned {
    if op.stochastic_rounding {
        return Err("stochastic rounding".into());
    }
    let (keeps, site) = (op.max_exp_avg_sq.is_some(), task.site);
    let states = 3 + usize::from(keeps);
    let [parameters, first, second] = [task.operand(0)?, task.operand(1)?, task.operand(2)?];
    let gradient = task.operand(states)?;
    if task.results.len() != states {
        return Err("other results than the state".into());
    }
    let dims = parameters.spec.logical_shape();
    if (0..=states).any(|i| task.operands[i].logical_shape() != dims) {
        return Err("tensors of other sides".into());
    }
    let result = |i: usize| Of { which: Which::Result(i), spec: &task.results[i] };
    let copy = |from: u32, to: u32| Line::plain(Step::new(Function::Copy).of(from, 0, 0).to(to));
    let mut recipe = Recipe::default();
    let mean = recipe.tiles(dims, DType::F32)?;
    let steps =
        vec![one(Function::Scale, 0, op.beta1), one(Function::Scale, 1, 1.0 - op.beta1), two(Function::Add, 0, 1)];
    recipe.stages.push(rows("adamw-mean", (first, mean.of()), vec![(gradient, steps)], Vec::new(), site)?);
    let square = recipe.tiles(dims, DType::F32)?;
    let steps = vec![
        one(Function::Scale, 0, op.beta2),
        copy(1, 2),
        one(Function::Scale, 2, 1.0 - op.beta2),
        two(Function::Multiply, 2, 1),
        two(Function::Add, 0, 2),
    ];
    recipe.stages.push(rows("adamw-square", (second, square.of()), vec![(gradient, steps)], Vec::new(), site)?);
    let mut bound = square.clone();
    if keeps {
        bound = recipe.tiles(dims, DType::F32)?;
        let others = vec![(task.operand(3)?, vec![two(Function::Max, 0, 1)])];
        recipe.stages.push(rows("adamw-largest", (square.of(), bound.of()), others, Vec::new(), site)?);
    }
    // w - rate (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + epsilon) - rate decay w.
    let moment = vec![copy(1, 2), one(Function::Scale, 2, op.lr / (1.0 - op.beta1_pow))];
    let step = vec![
        one(Function::Scale, 1, 1.0 / (1.0 - op.beta2_pow)),
        one(Function::Sqrt, 1, 0.0),
        one(Function::Shift, 1, op.epsilon),
        two(Function::Divide, 2, 1),
        copy(0, 3),
        one(Function::Scale, 3, op.lr * op.weight_decay),
        two(Function::Subtract, 0, 2),
        two(Function::Subtract, 0, 3),
    ];
    let others = vec![(mean.of(), moment), (bound.of(), step)];
    recipe.stages.push(rows("adamw", (parameters, result(0)), others, Vec::new(), site)?);
    let mut made = vec![(mean.of(), result(1)), (square.of(), result(2))];
    if keeps {
        made.push((bound.of(), result(3)));
    }
    for (from, to) in made {
        recipe.stages.push(rows("adamw-state", (from, to), Vec::new(), Vec::new(), site)?);
    }
    Ok(recipe)
}
