//! Rows by index of several dimensions: operations of the compiler in `jax-tt-plugin` since 0.1.2,
//! of which no source is public.
//!
//! Their behaviour was inferred from files compiled from JAX's `gather` and `scatter`, and their
//! results. The input is batches of rows, `[batch, rows.., columns..]`; an index
//! `[batch or 1, dimensions, places]` names places among the rows, whose own shape is `sizes`;
//! with `column` a row has one element and the dimension of the columns is left out. At each
//! place begins a window of `windows` rows; places are handled in order. As in StableHLO, the
//! start of a gathered window is clamped so that it fits, and a scattered window that does not
//! fit is left out.

use tilework_model::ttnn::ops::data_movement::{RowsGatherOp, RowsScatterOp};
use tilework_ops as ops;

use super::*;

/// Where windows begin and what they cover.
struct Windows {
    sizes: Vec<usize>,
    windows: Vec<usize>,
}

impl Windows {
    fn of(sizes: &[i32], windows: &[i32]) -> Result<Self, Refusal> {
        let numbers = |name: &str, list: &[i32]| list.iter().map(|&n| count(name, n)).collect::<Result<Vec<_>, _>>();
        let (sizes, windows) = (numbers("sizes", sizes)?, numbers("windows", windows)?);
        let rows = sizes.iter().try_fold(1_usize, |product, &n| product.checked_mul(n));
        if sizes.len() != windows.len() || rows.is_none() || sizes.iter().zip(&windows).any(|(n, w)| w > n) {
            return Err(Refusal::malformed(format!("windows of {windows:?} in {sizes:?}")));
        }
        Ok(Self { sizes, windows })
    }

    fn rows(&self) -> usize {
        self.sizes.iter().product()
    }

    /// The input as a matrix of all batches' rows, and the number of batches.
    fn matrix(&self, op: &'static str, input: &Tensor) -> Result<(Tensor, usize), OpError> {
        let batches = input.shape().first().copied().unwrap_or(1);
        let lines = batches.saturating_mul(self.rows());
        if lines == 0 || !input.elements().is_multiple_of(lines) {
            return Err(wrong(op, input, format!("rows of {:?} in each batch", self.sizes)));
        }
        let columns = input.elements() / lines;
        Ok((ops::reshape(input, &[lines as i64, columns as i64])?, batches))
    }

    /// For each batch, place and row of the window, the line of the matrix, or nothing if the
    /// window does not fit and is not clamped.
    fn lines(
        &self,
        op: &'static str,
        index: &Tensor,
        batches: usize,
        moved: bool,
    ) -> Result<Vec<Option<usize>>, OpError> {
        let [given, dimensions, places] = *index.shape().dims() else {
            return Err(wrong(op, index, "[batch or 1 x dimensions x places]".to_owned()));
        };
        if dimensions != self.sizes.len() || (given != 1 && given != batches) {
            return Err(wrong(op, index, format!("[{batches} or 1 x {} x places]", self.sizes.len())));
        }
        let numbers = index.to_i64();
        let taps: usize = self.windows.iter().product();
        let mut lines = Vec::with_capacity(batches.saturating_mul(places).saturating_mul(taps));
        for batch in 0..batches {
            let from = if given == 1 { 0 } else { batch * dimensions };
            for place in 0..places {
                let starts = (0..dimensions).map(|d| numbers[(from + d) * places + place]);
                let starts: Option<Vec<usize>> = starts
                    .zip(self.sizes.iter().zip(&self.windows))
                    .map(|(start, (n, w))| {
                        let last = (n - w) as i64;
                        let start = if moved { start.clamp(0, last) } else { start };
                        (0..=last).contains(&start).then_some(start as usize)
                    })
                    .collect();
                lines.extend((0..taps).map(|tap| Some(batch * self.rows() + self.line(starts.as_ref()?, tap))));
            }
        }
        Ok(lines)
    }

    /// The row of element `tap` of a window that begins at `starts`.
    fn line(&self, starts: &[usize], mut tap: usize) -> usize {
        let (mut line, mut stride) = (0, 1);
        for d in (0..self.sizes.len()).rev() {
            line += (starts[d] + tap % self.windows[d]) * stride;
            tap /= self.windows[d];
            stride *= self.sizes[d];
        }
        line
    }
}

fn wrong(op: &'static str, tensor: &Tensor, wanted: String) -> OpError {
    let operands = ops::Operands(vec![(tensor.dtype(), tensor.shape().clone())]);
    OpError { op, operands, reason: ops::Reason::Shape { found: tensor.shape().clone(), wanted } }
}

/// Lines of a matrix.
fn numbered(lines: &[usize]) -> Result<Tensor, OpError> {
    let numbers: Vec<i64> = lines.iter().map(|&line| line as i64).collect();
    let operands = ops::Operands::default();
    let shape = Shape::new([lines.len()]).map_err(|reason| OpError { op: "rows", operands, reason })?;
    Tensor::from_i64(DType::U32, shape, &numbers)
}

fn shaped(tensor: &Tensor, shape: &Shape) -> Result<Tensor, OpError> {
    ops::reshape(tensor, &shape.iter().map(|&n| n as i64).collect::<Vec<_>>())
}

pub(super) fn gather<'m>(op: &'m RowsGatherOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    const OP: &str = "rows_gather";
    if op.fill_out_of_bounds {
        return Err(Refusal::unsupported("a fill for windows that do not fit"));
    }
    let (input, index) = (lowering.read(&op.input), lowering.read(&op.index));
    let stated = lowering.make_whole(&op.out)?;
    let windows = Windows::of(&op.sizes, &op.windows)?;
    Ok(one(move |args| {
        let (matrix, batches) = windows.matrix(OP, &args[input])?;
        let lines: Vec<usize> = windows.lines(OP, &args[index], batches, true)?.into_iter().flatten().collect();
        shaped(&ops::embedding(&numbered(&lines)?, &matrix)?, &stated.shape)
    }))
}

pub(super) fn scatter<'m>(op: &'m RowsScatterOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    const OP: &str = "rows_scatter";
    let (input, index, source) = (lowering.read(&op.input), lowering.read(&op.index), lowering.read(&op.source));
    let stated = lowering.make_whole(&op.out)?;
    let windows = Windows::of(&op.sizes, &op.windows)?;
    let reduce = super::gather::reduction(op.reduce);
    Ok(one(move |args| {
        let (matrix, batches) = windows.matrix(OP, &args[input])?;
        let lines = windows.lines(OP, &args[index], batches, false)?;
        let columns = matrix.shape().last();
        let source = ops::reshape(&args[source], &[lines.len() as i64, columns as i64])?;
        let (kept, to): (Vec<usize>, Vec<usize>) =
            lines.iter().enumerate().filter_map(|(from, line)| line.map(|line| (from, line))).unzip();
        if kept.is_empty() {
            return shaped(&matrix, &stated.shape);
        }
        let source = ops::embedding(&numbered(&kept)?, &source)?;
        let to = ops::repeat(&ops::reshape(&numbered(&to)?, &[to.len() as i64, 1])?, &[1, columns])?;
        shaped(&ops::scatter(&matrix, &to, &source, 0, reduce)?, &stated.shape)
    }))
}
