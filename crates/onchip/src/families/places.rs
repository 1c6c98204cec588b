//! Rows written to places that are known on the device only: caches, rows of tables, windows.
//!
//! The kernel `lines` finds which row each place has at last, the row that was there or one of
//! those that are written. Then the rows are taken by these numbers, as those of an embedding.

use tilework_abi::eltwise::{Function, Step, integer};
use tilework_abi::lines::{flag, what};
use tilework_ops::DType;

use super::lines::Job;
use super::norm;
use super::rearrange::{Index, Part, strides};
use super::stage::Line;
use crate::recipe::{Made, Of, Recipe, Site};

/// A step of integers in slots `a` and `b`, to slot `a`.
pub(super) fn integers(function: Function, a: u32, b: u32) -> Line {
    Line::plain(Step::new(function).of(a, b, 0).to(a).integers(integer::INT32))
}

/// An integer in a slot.
pub(super) fn number(slot: u32, number: usize) -> Line {
    let step = Step::new(Function::IntegerFill).of(slot, 0, 0).to(slot).integers(integer::INT32);
    Line::new(step, [number as u32, 0])
}

/// Whether elements are integers of 32 bits.
pub(super) fn whole(of: Of<'_>) -> Result<(), String> {
    match of.spec.dtype() {
        DType::I32 | DType::U32 => Ok(()),
        other => Err(format!("places of type {}", other.name())),
    }
}

impl Recipe {
    /// A tensor of tiles with the elements of another, as these dimensions.
    pub(super) fn in_tiles(&mut self, from: Of<'_>, dims: &[usize], site: &Site) -> Result<Made, String> {
        let made = self.tiles(dims, from.spec.dtype())?;
        self.same_elements(from, made.of(), site)?;
        Ok(made)
    }

    /// The numbers from zero on, in a row.
    pub(super) fn count_up(&mut self, length: usize, site: &Site) -> Result<Made, String> {
        let none = self.rows(&[1, 1], DType::I32)?;
        self.rearrange(Vec::new(), length as u32, none.of(), site)?;
        let made = self.rows(&[1, length], DType::I32)?;
        let (places, values) = (Some(none.of()), Some(made.of()));
        let flags = flag::NUMBERED | flag::SKIP;
        self.job(Job { flags, places, values, ..Job::new(what::WRITE, length, 1) }, site)?;
        Ok(made)
    }

    /// Numbers that are all below a bound: another ends the run in a trap.
    pub(super) fn checked(&mut self, of: Of<'_>, bound: usize, site: &Site) -> Result<Made, String> {
        let count = self.count_up(bound, site)?;
        let dims = of.spec.logical_shape();
        let made = self.tiles(dims, DType::I32)?;
        let part = Part::whole(count.of(), 0, dims, &vec![0; dims.len()]).by(1);
        let index = Index { from: of, base: 0, strides: strides(dims), bound };
        self.rearrange_by(vec![part], &index, made.of(), site)?;
        Ok(made)
    }

    /// Which row each of `rows` places has at last, if rows from number `rows + 1` on are written
    /// to `places`, one after the other. What is written to place `rows` is left out.
    pub(super) fn rows_at_last(&mut self, rows: usize, places: Of<'_>, site: &Site) -> Result<Made, String> {
        let count = places.spec.logical_shape().iter().product();
        let line = self.rows(&[1, count], places.spec.dtype())?;
        self.same_elements(places, line.of(), site)?;
        let made = self.rows(&[1, rows + 1], DType::I32)?;
        let (places, values) = (Some(line.of()), Some(made.of()));
        self.job(Job { flags: flag::NUMBERED, places, values, ..Job::new(what::WRITE, rows + 1, count) }, site)?;
        Ok(made)
    }

    /// Rows `[rows, width]` with others, `[count, width]`, written to places. The result's element
    /// at coordinates is that of the row whose number's place is `index` of them, at `steps`.
    pub(super) fn written(
        &mut self,
        [rows, updates]: [Of<'_>; 2],
        [count, width]: [usize; 2],
        places: Of<'_>,
        (index, steps): (&[i64], &[i64]),
        to: Of<'_>,
        site: &Site,
    ) -> Result<(), String> {
        let more = places.spec.logical_shape().iter().product::<usize>();
        let numbers = self.rows_at_last(count, places, site)?;
        let all = count + 1 + more;
        let table = self.rows(&[all, width], rows.spec.dtype())?;
        let step = [width as i64, 1];
        let parts = vec![
            Part::between(rows, 0, [&[0, 0], &[count, width]], &step),
            Part::between(updates, 0, [&[count + 1, 0], &[all, width]], &step),
        ];
        self.rearrange(parts, 0, table.of(), site)?;
        let part = Part::whole(table.of(), 0, to.spec.logical_shape(), steps).by(width as i64);
        let index = Index { from: numbers.of(), base: 0, strides: index.to_vec(), bound: all };
        self.rearrange_by(vec![part], &index, to, site)
    }

    /// A program of integers of 32 bits: steps of the tensor in slot 0, and of another in slot 1.
    ///
    /// Beside the kernel's image for integers there is room for about ten words of two tensors.
    pub(super) fn of_integers(
        &mut self,
        first: Of<'_>,
        other: Option<Of<'_>>,
        lines: Vec<Line>,
        site: &Site,
    ) -> Result<Made, String> {
        let made = self.tiles(first.spec.logical_shape(), DType::I32)?;
        let (others, after) = match other {
            Some(other) => (vec![(other, lines)], Vec::new()),
            None => (Vec::new(), lines),
        };
        self.stages.push(norm::rows("places", (first, made.of()), others, after, site)?);
        Ok(made)
    }

    /// Places, but `beyond` where a number is negative.
    pub(super) fn unless_negative(
        &mut self,
        places: Of<'_>,
        negative: Of<'_>,
        beyond: usize,
        site: &Site,
    ) -> Result<Made, String> {
        let sign = vec![number(1, 31), integers(Function::ShiftRightSigned, 0, 1)];
        let mask = self.of_integers(negative, None, sign, site)?;
        let not = Line::plain(Step::new(Function::Not).of(1, 0, 0).to(1).integers(integer::INT32));
        let lines = vec![
            number(2, beyond),
            integers(Function::And, 2, 1),
            not,
            integers(Function::And, 0, 1),
            integers(Function::Or, 0, 2),
        ];
        self.of_integers(places, Some(mask.of()), lines, site)
    }
}
