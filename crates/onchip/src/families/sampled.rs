//! Random choice among the candidates of each row, by the kernel `lines`: which one comes from the
//! same numbers, steps and roundings as in host arithmetic (`tilework_ops::sampling`).

use tilework_abi::lines::{drawn, flag, what};
use tilework_model::ttnn::ops::reduction::SamplingOp;
use tilework_ops::DType;

use super::eltwise::{self, is_integer};
use super::lines::Job;
use super::rearrange::{Index, Part, strides};
use crate::recipe::{Made, Of, Planned, Recipe, Site, Task};

/// The element of `indices` that is drawn of each row.
pub(super) fn sampling(op: &SamplingOp, task: &Task<'_>) -> Planned {
    let [values, indices, k, p, temperature] = [0, 1, 2, 3, 4].map(|i| task.operand(i));
    let [values, indices, k, p, temperature] = [values?, indices?, k?, p?, temperature?];
    let (result, site) = (task.result()?, task.site);
    let Some((&candidates, outer)) = values.spec.logical_shape().split_last() else { return Err("no rows".into()) };
    let rows: usize = outer.iter().product();
    let is_for_each = |of: Of<'_>| of.spec.logical_shape().iter().product::<usize>() == rows;
    if indices.spec.logical_shape() != values.spec.logical_shape() {
        return Err("indices of other sides than values".into());
    }
    if ![k, p, temperature, result].into_iter().all(is_for_each) {
        return Err("other than a parameter and a result for each row".into());
    }
    if [values, p, temperature].iter().any(|of| is_integer(of.spec.dtype())) || !is_integer(k.spec.dtype()) {
        return Err("candidates, bounds or counts of other types".into());
    }
    let mut recipe = Recipe::default();
    let lines = recipe.float_rows(values, &[rows, candidates], site)?;
    let counts = recipe.rows(&[rows, 1], k.spec.dtype())?;
    recipe.same_elements(k, counts.of(), site)?;
    let numbers = recipe.fractions(op.seed.unwrap_or(0), &[rows], site)?;
    let updates = recipe.beside([p, temperature, numbers.of()], rows, site)?;
    let drawn = recipe.rows(&[rows, 1], k.spec.dtype())?;
    let job = Job {
        by: 1,
        flags: flag::NUMBERS,
        lines: Some(lines.of()),
        places: Some(counts.of()),
        updates: Some(updates.of()),
        numbers: Some(drawn.of()),
        ..Job::new(what::DRAW, candidates, 1)
    };
    recipe.job(job, site)?;
    recipe.of_each_row(indices, [rows, candidates], drawn.of(), result, site)?;
    Ok(recipe)
}

impl Recipe {
    /// The elements of a tensor of numbers in order, as rows of float32.
    fn float_rows(&mut self, from: Of<'_>, dims: &[usize], site: &Site) -> Result<Made, String> {
        let made = self.rows(dims, DType::F32)?;
        if from.spec.dtype() == DType::F32 {
            self.same_elements(from, made.of(), site)?;
            return Ok(made);
        }
        let tiles = self.in_tiles(from, dims, site)?;
        let wide = self.tiles(dims, DType::F32)?;
        eltwise::cast_to(self, tiles.of(), wide.of(), site)?;
        self.same_elements(wide.of(), made.of(), site)?;
        Ok(made)
    }

    /// Three numbers for each row side by side.
    fn beside(&mut self, three: [Of<'_>; 3], rows: usize, site: &Site) -> Result<Made, String> {
        let columns = three.map(|of| self.float_rows(of, &[rows, 1], site));
        let columns = columns.into_iter().collect::<Result<Vec<_>, _>>()?;
        let width = drawn::WORDS as usize;
        let made = self.rows(&[rows, width], DType::F32)?;
        let places = columns.iter().enumerate();
        let parts = places.map(|(at, of)| Part::between(of.of(), 0, [&[0, at], &[rows, at + 1]], &[1, 1])).collect();
        self.rearrange(parts, 0, made.of(), site)?;
        Ok(made)
    }

    /// Of each row of a tensor the element with that number.
    fn of_each_row(
        &mut self,
        table: Of<'_>,
        [rows, columns]: [usize; 2],
        numbers: Of<'_>,
        to: Of<'_>,
        site: &Site,
    ) -> Result<(), String> {
        let made = self.rows(&[rows, 1], table.spec.dtype())?;
        let part = Part::whole(table, 0, &[rows, 1], &[columns as i64, 0]).by(1);
        let index = Index { from: numbers, base: 0, strides: strides(&[rows, 1]), bound: columns };
        self.rearrange_by(vec![part], &index, made.of(), site)?;
        if table.spec.dtype() == to.spec.dtype() {
            return self.same_elements(made.of(), to, site);
        }
        let tiles = self.in_tiles(made.of(), to.spec.logical_shape(), site)?;
        eltwise::cast_to(self, tiles.of(), to, site)
    }
}
