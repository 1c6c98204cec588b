//! Reductions over any dimensions: sum, mean, max, min, prod, and argmax (tt-mlir `reduction.fbs`).
//!
//! Floats accumulate in float32 and are rounded once. The order of a sum is fixed: along the last
//! dimension in 16 lanes, along others index by index. Integers are exact (sums and products keep
//! the low bits). `max`, `min` and `argmax` select a NaN if there is one; of equal elements,
//! `argmax` selects the first.

use crate::error::{OpError, Reason, Within};
use crate::produce;
use crate::tensor::Tensor;
use crate::view::{Lane, View};
use crate::{DType, Shape, math};

/// Kinds of reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are the functions")]
pub enum Reduction {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
}

impl Reduction {
    /// Name as `ttnn` writes it.
    pub fn name(self) -> &'static str {
        match self {
            Reduction::Sum => "sum",
            Reduction::Mean => "mean",
            Reduction::Max => "max",
            Reduction::Min => "min",
            Reduction::Prod => "prod",
        }
    }
}

/// Arithmetic of a reduction in one compute type.
trait Fold: Lane {
    fn start(kind: Reduction) -> Self;
    fn step(kind: Reduction, into: &mut [Self], from: &[Self]);
    fn row(kind: Reduction, values: &[Self]) -> Self;
    fn combine(kind: Reduction, a: Self, b: Self) -> Self;
}

impl Fold for f32 {
    fn start(kind: Reduction) -> f32 {
        match kind {
            Reduction::Sum | Reduction::Mean => 0.0,
            Reduction::Prod => 1.0,
            Reduction::Max => f32::NEG_INFINITY,
            Reduction::Min => f32::INFINITY,
        }
    }

    fn combine(kind: Reduction, a: f32, b: f32) -> f32 {
        match kind {
            Reduction::Sum | Reduction::Mean => a + b,
            Reduction::Prod => a * b,
            Reduction::Max => math::maximum(a, b),
            Reduction::Min => math::minimum(a, b),
        }
    }

    fn step(kind: Reduction, into: &mut [f32], from: &[f32]) {
        #[inline(always)]
        fn each(into: &mut [f32], from: &[f32], f: impl Fn(f32, f32) -> f32) {
            into.iter_mut().zip(from).for_each(|(a, &b)| *a = f(*a, b));
        }
        match kind {
            Reduction::Sum | Reduction::Mean => each(into, from, |a, b| a + b),
            Reduction::Prod => each(into, from, |a, b| a * b),
            Reduction::Max => each(into, from, math::maximum),
            Reduction::Min => each(into, from, math::minimum),
        }
    }

    fn row(kind: Reduction, values: &[f32]) -> f32 {
        match kind {
            Reduction::Sum | Reduction::Mean => math::sum(values),
            Reduction::Prod => values.iter().product(),
            Reduction::Max => math::largest(values),
            Reduction::Min => math::smallest(values),
        }
    }
}

impl Fold for i64 {
    fn start(kind: Reduction) -> i64 {
        match kind {
            Reduction::Sum | Reduction::Mean => 0,
            Reduction::Prod => 1,
            Reduction::Max => i64::MIN,
            Reduction::Min => i64::MAX,
        }
    }

    fn combine(kind: Reduction, a: i64, b: i64) -> i64 {
        match kind {
            Reduction::Sum | Reduction::Mean => a.wrapping_add(b),
            Reduction::Prod => a.wrapping_mul(b),
            Reduction::Max => a.max(b),
            Reduction::Min => a.min(b),
        }
    }

    fn step(kind: Reduction, into: &mut [i64], from: &[i64]) {
        into.iter_mut().zip(from).for_each(|(a, &b)| *a = i64::combine(kind, *a, b));
    }

    fn row(kind: Reduction, values: &[i64]) -> i64 {
        values.iter().fold(i64::start(kind), |a, &b| i64::combine(kind, a, b))
    }
}

/// Which dimensions are reduced; no dimensions means all.
fn reduced(op: &'static str, input: &Tensor, dims: &[i64]) -> Result<Vec<bool>, OpError> {
    let rank = input.shape().rank();
    let mut mask = vec![dims.is_empty(); rank];
    for &d in dims {
        let axis = input.shape().axis(d).within(op, &[input])?;
        if let Some(m) = mask.get_mut(axis) {
            *m = true;
        }
    }
    Ok(mask)
}

/// The shape without the reduced dimensions, or with them as 1.
fn remaining(shape: &Shape, mask: &[bool], keep: bool) -> Result<Shape, Reason> {
    let dims = shape.iter().zip(mask).filter(|(_, m)| keep || !**m).map(|(&d, &m)| if m { 1 } else { d });
    Shape::new(dims.collect::<Vec<_>>())
}

/// Reduces the dimensions `dims` (all when there are none); they stay as 1 with `keep_dim`. The
/// mean of integers is a float before it becomes `out`. The maximum and minimum of no elements
/// are an error.
pub fn reduce(kind: Reduction, input: &Tensor, dims: &[i64], keep_dim: bool, out: DType) -> Result<Tensor, OpError> {
    let op = kind.name();
    let mask = reduced(op, input, dims)?;
    let shape = remaining(input.shape(), &mask, keep_dim).within(op, &[input])?;
    let count: usize = input.shape().iter().zip(&mask).filter(|(_, m)| **m).map(|(&d, _)| d).product();
    if count == 0 && shape.elements() > 0 && matches!(kind, Reduction::Max | Reduction::Min) {
        return Err(Reason::shape(input.shape(), "at least one element to reduce").of(op, &[input]));
    }
    if input.dtype().is_float() || kind == Reduction::Mean {
        let divisor = (kind == Reduction::Mean).then_some(count as f32);
        return Ok(fold::<f32>(kind, input, &mask, shape, out, |v| divisor.map_or(v, |n| v / n)));
    }
    Ok(fold::<i64>(kind, input, &mask, shape, out, |v| v))
}

/// The reduction itself: `finish` is applied to each result.
fn fold<L: Fold>(
    kind: Reduction,
    input: &Tensor,
    mask: &[bool],
    shape: Shape,
    out: DType,
    finish: impl Fn(L) -> L + Sync,
) -> Tensor {
    let dims: Vec<(usize, isize)> =
        input.shape().iter().copied().zip(input.shape().strides().into_iter().map(|s| s as isize)).collect();
    let pick = |want: bool| dims.iter().zip(mask).filter(move |(_, m)| **m == want).map(|(&d, _)| d);
    let across: usize = pick(true).map(|d| d.0).product();
    // The innermost dimension that is not of length one decides whether rows are reduced or added
    // to one another.
    let rows = dims.iter().zip(mask).rev().find(|(d, _)| d.0 != 1).is_none_or(|(_, &m)| m);
    let kept = View::new(pick(false), 0);
    produce::lanes(shape, out, 1, |start, results: &mut [L]| {
        const BLOCK: usize = 1024;
        let mut buffer = vec![L::default(); BLOCK.min(across.max(results.len()))];
        let mut done_before = 0;
        kept.runs(start, results.len(), |_, position, stride, length| {
            let results = &mut results[done_before..done_before + length];
            done_before += length;
            if rows || stride != 1 {
                for (i, result) in results.iter_mut().enumerate() {
                    let along = View::new(pick(true), position + i as isize * stride);
                    *result = finish(along_rows(kind, input, &along, across, &mut buffer));
                }
                return;
            }
            results.fill(L::start(kind));
            let offsets = View::new(pick(true), position);
            offsets.runs(0, across, |_, at, step, n| {
                for k in 0..n {
                    let mut from = 0;
                    while from < length {
                        let part = (length - from).min(buffer.len());
                        let line = View::new([(part, 1)], at + k as isize * step + from as isize);
                        L::load(input, &line, 0, &mut buffer[..part]);
                        L::step(kind, &mut results[from..from + part], &buffer[..part]);
                        from += part;
                    }
                }
            });
            results.iter_mut().for_each(|r| *r = finish(*r));
        });
    })
}

/// Reduces the `count` elements of a view, a buffer at a time.
fn along_rows<L: Fold>(kind: Reduction, input: &Tensor, view: &View, count: usize, buffer: &mut [L]) -> L {
    let mut result = L::start(kind);
    let mut done = 0;
    while done < count {
        let part = (count - done).min(buffer.len());
        L::load(input, view, done, &mut buffer[..part]);
        result = L::combine(kind, result, L::row(kind, &buffer[..part]));
        done += part;
    }
    result
}

/// Index of the first largest element along `dim`, or in the whole tensor in row-major order
/// without one.
pub fn argmax(input: &Tensor, dim: Option<i64>, keep_dim: bool, out: DType) -> Result<Tensor, OpError> {
    const OP: &str = "argmax";
    let mask = reduced(OP, input, dim.as_slice())?;
    let shape = remaining(input.shape(), &mask, keep_dim).within(OP, &[input])?;
    let (outer, length, inner) = match dim {
        Some(d) => input.shape().around(input.shape().axis(d).within(OP, &[input])?),
        None => (1, input.elements(), 1),
    };
    if length == 0 && outer * inner > 0 {
        return Err(Reason::shape(input.shape(), "at least one element to choose from").of(OP, &[input]));
    }
    fn run<L: Lane>(input: &Tensor, dims: (usize, usize), start: usize, out: &mut [i64]) {
        let (length, inner) = dims;
        let mut line = vec![L::default(); length];
        for (i, result) in out.iter_mut().enumerate() {
            let (o, c) = ((start + i) / inner, (start + i) % inner);
            let view = View::new([(length, inner as isize)], (o * length * inner + c) as isize);
            L::load(input, &view, 0, &mut line);
            let mut best = 0;
            for (k, v) in line.iter().enumerate() {
                // A value that does not equal itself is a NaN; the first one is selected.
                let (nan, best_nan) = (v.partial_cmp(v).is_none(), line[best].partial_cmp(&line[best]).is_none());
                if (nan && !best_nan) || *v > line[best] {
                    best = k;
                }
            }
            *result = best as i64;
        }
    }
    Ok(produce::integers(shape, out, 1, |start, values| match input.dtype().is_float() {
        true => run::<f32>(input, (length, inner), start, values),
        false => run::<i64>(input, (length, inner), start, values),
    }))
}
