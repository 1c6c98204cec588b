//! Windows of rows at places that an index of several dimensions names: taken, or written and
//! folded with what is there. Gradients of tables are written so, too.
//!
//! What places mean is said where host arithmetic has these operations
//! (`tilework_engine`, lowering of rows): a window that is taken is moved so that it fits, one that
//! is written and does not fit is left out.

use tilework_abi::eltwise::{Function, Step, integer};
use tilework_abi::lines::{by, what};
use tilework_model::ttnn::ops::data_movement::{RowsGatherOp, RowsScatterOp};
use tilework_model::ttnn::ops::embedding::EmbeddingBackwardOp;
use tilework_ops::DType;

use super::eltwise;
use super::lines::{self, Job};
use super::places::{integers, number, whole};
use super::rearrange::{Index, Part, strides};
use super::stage::Line;
use crate::recipe::{Made, Of, Planned, Recipe, Site, Task};

/// Batches of rows, and windows in them.
struct Windows {
    batches: usize,
    /// Lengths of the rows' dimensions, and of a window in them.
    sizes: Vec<usize>,
    windows: Vec<usize>,
    columns: usize,
    /// Batches that the index has, and how many places in each.
    given: usize,
    places: usize,
}

impl Windows {
    fn of(sizes: &[i32], windows: &[i32], input: Of<'_>, index: Of<'_>) -> Result<Self, String> {
        let list = |numbers: &[i32]| -> Vec<usize> { numbers.iter().map(|&n| n.max(0) as usize).collect() };
        let (sizes, windows) = (list(sizes), list(windows));
        let rows = sizes.iter().product::<usize>();
        if sizes.len() != windows.len() || sizes.iter().zip(&windows).any(|(n, window)| window > n || *window == 0) {
            return Err("windows that do not fit".into());
        }
        let batches = input.spec.logical_shape().first().copied().unwrap_or(1);
        let elements = input.spec.logical_shape().iter().product::<usize>();
        if rows * batches == 0 || !elements.is_multiple_of(rows * batches) {
            return Err("rows of other sides".into());
        }
        let [given, dimensions, places] = *index.spec.logical_shape() else {
            return Err("an index of other than three dimensions".into());
        };
        if dimensions != sizes.len() || (given != 1 && given != batches) || dimensions == 0 || dimensions > 5 {
            return Err("an index of other dimensions".into());
        }
        whole(index)?;
        Ok(Self { batches, columns: elements / (rows * batches), sizes, windows, given, places })
    }

    fn rows(&self) -> usize {
        self.sizes.iter().product()
    }

    /// The row at which each window begins: the sum of what `steps` make of each dimension's number
    /// in slot 0, by the last number at which a window fits and the dimension's stride. Two of them
    /// are joined by the steps `join`.
    fn starts(
        &self,
        index: Of<'_>,
        steps: impl Fn(usize, usize) -> Vec<Line>,
        join: &[Line],
        recipe: &mut Recipe,
        site: &Site,
    ) -> Result<Made, String> {
        let dimensions = self.sizes.len();
        let of_rows = strides(&self.sizes);
        let mut sum: Option<Made> = None;
        for (k, &stride) in of_rows.iter().enumerate() {
            let numbers = recipe.tiles(&[self.given, self.places], index.spec.dtype())?;
            let step = [(dimensions * self.places) as i64, 1];
            let part = Part::whole(index, (k * self.places) as i64, &[self.given, self.places], &step);
            recipe.rearrange(vec![part], 0, numbers.of(), site)?;
            let lines = steps(self.sizes[k] - self.windows[k], stride as usize);
            let rows = recipe.of_integers(numbers.of(), None, lines, site)?;
            sum = Some(match sum {
                Some(sum) => recipe.of_integers(sum.of(), Some(rows.of()), join.to_vec(), site)?,
                None => rows,
            });
        }
        sum.ok_or_else(|| "no dimensions".into())
    }
}

pub(super) fn gather(op: &RowsGatherOp, task: &Task<'_>) -> Planned {
    let (input, index, result, site) = (task.operand(0)?, task.operand(1)?, task.result()?, task.site);
    if op.fill_out_of_bounds {
        return Err("a fill for windows that do not fit".into());
    }
    let of = Windows::of(&op.sizes, &op.windows, input, index)?;
    let mut recipe = Recipe::default();
    let unsigned = index.spec.dtype() == DType::U32;
    let clamped = |last: usize, stride: usize| {
        let number_type = eltwise::numbers_of(index.spec.dtype());
        let bound = |function| {
            let line = integers(function, 0, 2);
            Line { step: line.step.integers(number_type), ..line }
        };
        let mut lines = vec![number(2, last), bound(Function::IntegerMin)];
        if !unsigned {
            lines.extend([number(2, 0), bound(Function::IntegerMax)]);
        }
        lines.extend([number(2, stride), integers(Function::IntegerMultiply, 0, 2)]);
        lines
    };
    let starts = of.starts(index, clamped, &[integers(Function::IntegerAdd, 0, 1)], &mut recipe, site)?;
    let of_rows = strides(&of.sizes);
    let columns = of.columns as i64;
    // Dimensions in which windows have one row need no coordinate.
    let longer: Vec<usize> = (0..of.sizes.len()).filter(|&k| of.windows[k] != 1).collect();
    let mut dims = vec![of.batches, of.places];
    let mut steps = vec![of.rows() as i64 * columns, 0];
    let mut by = vec![if of.given == 1 { 0 } else { of.places as i64 }, 1];
    for k in longer {
        dims.push(of.windows[k]);
        steps.push(of_rows[k] * columns);
        by.push(0);
    }
    dims.push(of.columns);
    steps.push(1);
    by.push(0);
    if dims.iter().product::<usize>() != result.spec.logical_shape().iter().product() {
        return Err("a result of other sides".into());
    }
    let made = recipe.rows(&dims, input.spec.dtype())?;
    let part = Part::whole(input, 0, &dims, &steps).by(columns);
    let index = Index { from: starts.of(), base: 0, strides: by, bound: of.rows() };
    recipe.rearrange_by(vec![part], &index, made.of(), site)?;
    recipe.same_elements(made.of(), result, site)?;
    Ok(recipe)
}

pub(super) fn scatter(op: &RowsScatterOp, task: &Task<'_>) -> Planned {
    let [input, index, source] = [task.operand(0)?, task.operand(1)?, task.operand(2)?];
    let (result, site) = (task.result()?, task.site);
    let of = Windows::of(&op.sizes, &op.windows, input, index)?;
    let taps = of.windows.iter().product::<usize>();
    let count = of.batches * of.places * taps;
    let elements = |of: Of<'_>| of.spec.logical_shape().iter().product::<usize>();
    if source.spec.dtype() != input.spec.dtype() || elements(source) != count * of.columns {
        return Err("rows of other sides or types".into());
    }
    if elements(result) != elements(input) {
        return Err("a result of other sides".into());
    }
    let mut recipe = Recipe::default();
    // Where a window does not fit, its number becomes negative.
    let checked = |last: usize, stride: usize| {
        let less = Line::plain(Step::new(Function::IntegerSubtract).of(2, 0, 0).to(2).integers(integer::INT32));
        let mut lines = vec![number(2, last), less, integers(Function::Or, 2, 0), number(3, 31)];
        lines.extend([integers(Function::ShiftRightSigned, 2, 3), number(3, stride)]);
        lines.extend([integers(Function::IntegerMultiply, 0, 3), integers(Function::Or, 0, 2)]);
        lines
    };
    // A sum with a negative one stays so.
    let join = [
        Line::plain(Step::new(Function::Copy).of(0, 0, 0).to(2)),
        integers(Function::Or, 2, 1),
        number(3, 31),
        integers(Function::ShiftRightSigned, 2, 3),
        integers(Function::IntegerAdd, 0, 1),
        integers(Function::Or, 0, 2),
    ];
    let starts = of.starts(index, checked, &join, &mut recipe, site)?;
    let rows = of.batches * of.rows();
    let places = places(&of, starts.of(), rows, &mut recipe, site)?;
    let way = lines::reduction(op.reduce);
    folded([input, source], [rows, of.columns], (places.of(), way), result, &mut recipe, site)?;
    Ok(recipe)
}

/// The row of each of a window's, for all batches and places; `rows` where a window does not fit.
fn places(of: &Windows, starts: Of<'_>, rows: usize, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
    let taps = of.windows.iter().product::<usize>();
    let count = recipe.count_up(rows, site)?;
    // Behind the begin of its batch and of its window.
    let dims: Vec<usize> = [of.batches, of.places].into_iter().chain(of.windows.iter().copied()).collect();
    let steps: Vec<i64> = [of.rows() as i64, 0].into_iter().chain(strides(&of.sizes)).collect();
    let behind = recipe.rows(&dims, DType::I32)?;
    recipe.rearrange(vec![Part::whole(count.of(), 0, &dims, &steps)], 0, behind.of(), site)?;
    let behind = recipe.in_tiles(behind.of(), &[of.batches * of.places, taps], site)?;
    let begin = recipe.rows(&[of.batches, of.places, taps], DType::I32)?;
    let step = if of.given == 1 { 0 } else { of.places as i64 };
    let part = Part::whole(starts, 0, &[of.batches, of.places, taps], &[step, 1, 0]);
    recipe.rearrange(vec![part], 0, begin.of(), site)?;
    let begin = recipe.in_tiles(begin.of(), &[of.batches * of.places, taps], site)?;
    let add = vec![integers(Function::IntegerAdd, 0, 1)];
    let places = recipe.of_integers(begin.of(), Some(behind.of()), add, site)?;
    recipe.unless_negative(places.of(), begin.of(), rows, site)
}

/// Rows `[rows, columns]` with others written to places and folded with what is there; place `rows`
/// is none.
fn folded(
    [input, source]: [Of<'_>; 2],
    [rows, columns]: [usize; 2],
    (places, way): (Of<'_>, u32),
    result: Of<'_>,
    recipe: &mut Recipe,
    site: &Site,
) -> Result<(), String> {
    let dtype = input.spec.dtype();
    if way == by::REPLACE {
        let made = recipe.rows(&[rows, columns], dtype)?;
        recipe.written([input, source], [rows, columns], places, (&[1, 0], &[0, 1]), made.of(), site)?;
        return recipe.same_elements(made.of(), result, site);
    }
    // Each column is a line, one longer than it has rows.
    let count = places.spec.logical_shape().iter().product::<usize>();
    let step = [1, columns as i64];
    let line = |of| Part::between(of, 0, [&[0, 0], &[columns, rows]], &step);
    let lines = recipe.rows(&[columns, rows + 1], dtype)?;
    recipe.rearrange(vec![line(input)], 0, lines.of(), site)?;
    let updates = recipe.rows(&[columns, count], dtype)?;
    recipe.rearrange(vec![Part::whole(source, 0, &[columns, count], &step)], 0, updates.of(), site)?;
    let all = recipe.rows(&[columns, count], places.spec.dtype())?;
    recipe.rearrange(vec![Part::whole(places, 0, &[columns, count], &[0, 1])], 0, all.of(), site)?;
    let values = recipe.rows(&[columns, rows + 1], dtype)?;
    let job = Job {
        by: way,
        lines: Some(lines.of()),
        places: Some(all.of()),
        updates: Some(updates.of()),
        values: Some(values.of()),
        ..Job::new(what::WRITE, rows + 1, count)
    };
    recipe.job(job, site)?;
    let made = recipe.rows(&[rows, columns], dtype)?;
    let part = Part::whole(values.of(), 0, &[rows, columns], &[1, rows as i64 + 1]);
    recipe.rearrange(vec![part], 0, made.of(), site)?;
    recipe.same_elements(made.of(), result, site)
}

/// The gradient of a table: each row of gradients added to that of its number.
pub(super) fn embedding_backward(_: &EmbeddingBackwardOp, task: &Task<'_>) -> Planned {
    let [input, weight, grad] = [task.operand(0)?, task.operand(1)?, task.operand(2)?];
    let (result, site) = (task.result()?, task.site);
    let [ones @ .., rows, columns] = weight.spec.logical_shape() else { return Err("a table without rows".into()) };
    let count = input.spec.logical_shape().iter().product::<usize>();
    let elements = grad.spec.logical_shape().iter().product::<usize>();
    if ones.iter().any(|&n| n != 1) || elements != count * columns || result.spec.dtype() != grad.spec.dtype() {
        return Err("gradients of other sides or types".into());
    }
    whole(input)?;
    let mut recipe = Recipe::default();
    let zeros = recipe.rows(&[*rows, *columns], grad.spec.dtype())?;
    recipe.rearrange(Vec::new(), 0, zeros.of(), site)?;
    let places = recipe.in_tiles(input, &[1, count], site)?;
    let places = recipe.checked(places.of(), *rows, site)?;
    folded([zeros.of(), grad], [*rows, *columns], (places.of(), by::SUM), result, &mut recipe, site)?;
    Ok(recipe)
}
