//! Products of matrices in float32 that keep its bits.
//!
//! The matrix unit takes ten bits of each element, and adds up products in groups of eight along
//! the inner dimension with ten bits behind the point of the largest of them
//! (`docs/kernels.md`, precision). So elements are divided into ten bits and the rest. What the
//! rest adds may be rounded so. Of the upper halves each group gets one product only: the inner
//! dimension is gone through eight times, each time with every eighth column of the first operand
//! and zeros between them. Groups, then, are added up in float32.

use tilework_abi::eltwise::{Function, Step};
use tilework_model::ttnn::ops::fused::DeviceComputeKernelConfig;
use tilework_ops::DType;

use super::matmul::{Shape, product_of};
use super::norm;
use super::rearrange::Part;
use super::stage::Line;
use crate::recipe::{Made, Of, Recipe, Site};

/// Rows and columns of a tile.
const TILE: usize = 32;
/// Products that the matrix unit adds up in a group.
const GROUP: usize = 8;
/// Bytes of an operand that is gone through eight times at most; larger ones have groups as they
/// come.
const MOST: usize = 256 << 20;

/// Lengths of a tensor of matrices: all of its outer dimensions as one, rows, columns.
fn matrices(of: Of<'_>) -> Result<[usize; 3], String> {
    match of.spec.logical_shape() {
        [outer @ .., rows, columns] => Ok([outer.iter().product(), *rows, *columns]),
        _ => Err("a vector as operand".into()),
    }
}

/// An operand, or its upper half and its rest.
fn split<'s>(of: Of<'s>, halves: Option<&'s [Made; 2]>) -> (Of<'s>, Option<Of<'s>>) {
    halves.map_or((of, None), |[upper, rest]| (upper.of(), Some(rest.of())))
}

impl Recipe {
    /// Adds the programs of a product of tensors whose tiles are matrices of this shape, with zeros
    /// where the inner dimension goes on in the tiles. A result in float32 of operands in float32
    /// keeps its bits.
    pub(super) fn product(
        &mut self,
        shape: Shape,
        [a, b, y]: [Of<'_>; 3],
        config: Option<&DeviceComputeKernelConfig>,
        site: &Site,
    ) -> Result<(), String> {
        let whole = |of: Of<'_>| of.spec.dtype() == DType::F32;
        if !whole(y) || !(whole(a) || whole(b)) {
            self.stages.extend(product_of(shape, [a, b, y], config, site)?);
            return Ok(());
        }
        let mut halves = |of| if whole(of) { self.halves(of, site).map(Some) } else { Ok(None) };
        let (a_halves, b_halves) = (halves(a)?, halves(b)?);
        let (a_upper, a_rest) = split(a, a_halves.as_ref());
        let (b_upper, b_rest) = split(b, b_halves.as_ref());
        let dims = y.spec.logical_shape();
        let main = self.tiles(dims, DType::F32)?;
        self.apart(shape, [a_upper, b_upper, main.of()], config, site)?;
        let mut sums = Vec::new();
        let pairs = [a_rest.map(|rest| (rest, b_upper)), b_rest.map(|rest| (a_upper, rest))];
        for (a, b) in pairs.into_iter().flatten() {
            let made = self.tiles(dims, DType::F32)?;
            self.stages.extend(product_of(shape, [a, b, made.of()], config, site)?);
            sums.push(made);
        }
        let others = sums.iter().map(|made| (made.of(), vec![norm::two(Function::Add, 0, 1)])).collect();
        self.stages.push(norm::rows("matmul-sum", (main.of(), y), others, Vec::new(), site)?);
        Ok(())
    }

    /// The upper ten bits of numbers in float32, and the rest: `x (2^14 + 1)` rounded, less what
    /// that is more than `x` (Veltkamp's division).
    fn halves(&mut self, of: Of<'_>, site: &Site) -> Result<[Made; 2], String> {
        let copy = |from: u32, to: u32| Line::plain(Step::new(Function::Copy).of(from, 0, 0).to(to));
        let mut upper = vec![copy(0, 1), norm::one(Function::Scale, 1, 16385.0), copy(1, 2)];
        upper.extend([norm::two(Function::Subtract, 2, 0), norm::two(Function::Subtract, 1, 2)]);
        let mut rest = upper.clone();
        upper.push(copy(1, 0));
        rest.push(norm::two(Function::Subtract, 0, 1));
        let dims = of.spec.logical_shape();
        let mut half = |name, lines| {
            let made = self.tiles(dims, DType::F32)?;
            self.stages.push(norm::rows(name, (of, made.of()), Vec::new(), lines, site)?);
            Ok::<_, String>(made)
        };
        Ok([half("matmul-upper", upper)?, half("matmul-rest", rest)?])
    }

    /// A product whose groups have one term each.
    fn apart(
        &mut self,
        shape: Shape,
        [a, b, y]: [Of<'_>; 3],
        config: Option<&DeviceComputeKernelConfig>,
        site: &Site,
    ) -> Result<(), String> {
        let ([outer, rows, inner], [matrices_b, rows_b, columns]) = (matrices(a)?, matrices(b)?);
        if a.spec.bytes().max(b.spec.bytes()) * GROUP > MOST {
            self.stages.extend(product_of(shape, [a, b, y], config, site)?);
            return Ok(());
        }
        let (wide, high) = (inner.next_multiple_of(TILE), rows_b.next_multiple_of(TILE));
        // The first operand eight times side by side, with zeros between columns that remain.
        let dims = [outer, rows, GROUP * wide];
        let beside = self.tiles(&dims, a.spec.dtype())?;
        let steps = [(rows * inner) as i64, inner as i64, 1];
        let part = |j: usize| {
            let corners = [[0, 0, j * wide], [outer, rows, j * wide + inner]];
            Part::between(a, 0, [&corners[0], &corners[1]], &steps)
        };
        self.rearrange((0..GROUP).map(part).collect(), 0, beside.of(), site)?;
        let mask = self.every_eighth(wide, site)?;
        let first = self.tiles(&dims, DType::F32)?;
        let others = vec![(mask.of(), vec![norm::two(Function::Multiply, 0, 1)])];
        self.stages.push(norm::rows("matmul-apart", (beside.of(), first.of()), others, Vec::new(), site)?);
        // The second operand eight times, one below the other.
        let batched = shape.batch > 1;
        let matrix = (rows_b * columns) as i64;
        let (dims, corner, steps) = match batched {
            true => (
                [matrices_b, GROUP, high, columns],
                [matrices_b, GROUP, rows_b, columns],
                [matrix, 0, columns as i64, 1],
            ),
            false => (
                [GROUP, matrices_b, high, columns],
                [GROUP, matrices_b, rows_b, columns],
                [0, matrix, columns as i64, 1],
            ),
        };
        let second = self.tiles(&dims, b.spec.dtype())?;
        self.rearrange(vec![Part::between(b, 0, [&[0; 4], &corner], &steps)], 0, second.of(), site)?;
        let longer = Shape { inner: shape.inner * GROUP as u32, ..shape };
        self.stages.extend(product_of(longer, [first.of(), second.of(), y], config, site)?);
        Ok(())
    }

    /// Ones in every eighth column: in the first `wide` columns those from number 0 on, in the next
    /// ones those from number 1 on, and so on.
    fn every_eighth(&mut self, wide: usize, site: &Site) -> Result<Made, String> {
        let one = self.rows(&[1, 1], DType::F32)?;
        self.rearrange(Vec::new(), 1f32.to_bits(), one.of(), site)?;
        let line = self.rows(&[1, 2 * GROUP], DType::F32)?;
        let part = Part::between(one.of(), 0, [&[0, GROUP - 1], &[1, GROUP]], &[0, 0]);
        self.rearrange(vec![part], 0, line.of(), site)?;
        let dims = [GROUP, wide / GROUP, GROUP];
        let rows = self.rows(&dims, DType::F32)?;
        let part = Part::whole(line.of(), GROUP as i64 - 1, &dims, &[-1, 0, 1]);
        self.rearrange(vec![part], 0, rows.of(), site)?;
        let made = self.tiles(&[1, 1, GROUP * wide], DType::F32)?;
        self.same_elements(rows.of(), made.of(), site)?;
        Ok(made)
    }
}
