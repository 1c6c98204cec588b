//! Random choice among candidates (`ttnn.sampling`; tt-mlir `reduction.fbs`).
//!
//! The rule is the device's: of each row the `k` largest candidates, multiplied by the row's
//! temperature (a reciprocal: the device multiplies), become probabilities by a softmax; of these,
//! in order, those up to and with the one at which their sum exceeds `p`; of these one is drawn in
//! proportion. The numbers drawn are those of [`crate::rand`] for the seed, one for each row: the
//! device's own generator is not documented, so only the distribution is the same.

use crate::creation::uniform;
use crate::error::{OpError, Reason};
use crate::tensor::Tensor;
use crate::view::{Lane, View};
use crate::{DType, Shape, math, topk};

/// The rows' parameters.
#[derive(Debug, Clone, Copy)]
pub struct Sampling<'a> {
    /// How many candidates of each row are considered.
    pub k: &'a Tensor,
    /// The sum of probabilities at which no more candidates are considered.
    pub p: &'a Tensor,
    /// What candidates are multiplied by.
    pub temperature: &'a Tensor,
    /// Selects the random numbers.
    pub seed: u32,
}

/// One of the `indices` for each row of `values`, which have one shape, `[.., rows, candidates]`.
/// The result has shape `shape`, an element for each row.
pub fn sampling(
    values: &Tensor,
    indices: &Tensor,
    by: Sampling<'_>,
    shape: Shape,
    out: DType,
) -> Result<Tensor, OpError> {
    const OP: &str = "sampling";
    let operands = [values, indices, by.k, by.p, by.temperature];
    let candidates = values.shape().last();
    let rows = values.elements().checked_div(candidates).unwrap_or(0);
    if indices.shape() != values.shape() {
        return Err(Reason::shape(indices.shape(), values.shape().to_string()).of(OP, &operands));
    }
    for parameter in [by.k, by.p, by.temperature] {
        if parameter.elements() != rows {
            return Err(Reason::shape(parameter.shape(), format!("{rows} elements")).of(OP, &operands));
        }
    }
    if shape.elements() != rows {
        return Err(Reason::shape(&shape, format!("{rows} elements")).of(OP, &operands));
    }
    let (sorted, order) = topk(values, candidates, -1, true, DType::U32)?;
    let (order, indices) = (order.to_i64(), indices.to_i64());
    let (k, p, temperature) = (by.k.to_i64(), by.p.to_f32(), by.temperature.to_f32());
    let mut drawn = Vec::with_capacity(rows);
    for row in 0..rows {
        let kept = match usize::try_from(k[row]) {
            Ok(kept @ 1..) => kept.min(candidates),
            _ => return Err(Reason::attribute("k", format!("{} candidates of row {row}", k[row])).of(OP, &operands)),
        };
        let mut line = vec![0f32; kept];
        f32::load(&sorted, &View::contiguous(sorted.shape()), row * candidates, &mut line);
        line.iter_mut().for_each(|v| *v *= temperature[row]);
        math::softmax(&mut line, None);
        let at = draw(&line, p[row], uniform(by.seed, row as u64));
        drawn.push(indices[row * candidates + order[row * candidates + at] as usize]);
    }
    Tensor::from_i64(out, shape, &drawn)
}

/// The position that a number from 0 to below 1 draws from probabilities, the largest first.
fn draw(probabilities: &[f32], p: f32, number: f32) -> usize {
    let mut total = 0.0;
    let mut kept = 0;
    for &probability in probabilities {
        total += probability;
        kept += 1;
        if total > p {
            break;
        }
    }
    let mut sum = 0.0;
    let beyond = probabilities[..kept].iter().position(|probability| {
        sum += probability / total;
        sum > number
    });
    // The parts may add up to a little less than 1.
    beyond.unwrap_or(kept - 1)
}
