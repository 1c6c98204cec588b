//! Moving values without computing: reshape, permute, transpose, slice, pad, concat, repeat
//! (tt-mlir `data_movement.fbs`). Values keep their stored type; only the blocks of block types are
//! encoded again.

use crate::Shape;
use crate::error::{OpError, Reason, Within};
use crate::produce;
use crate::tensor::{Native, Tensor, with_storage};
use crate::view::View;

/// The elements of a view of a tensor under a new shape.
pub(crate) fn moved(input: &Tensor, shape: Shape, view: &View) -> Tensor {
    let count = shape.elements();
    let storage = with_storage!(input.storage(), |v| Native::store(produce::natives(count, 1, |start, out| {
        view.copy(v, start, out)
    })));
    Tensor::wrap(input.dtype(), shape, storage)
}

/// Length and stride of each dimension.
fn strided(shape: &Shape) -> Vec<(usize, isize)> {
    shape.iter().copied().zip(shape.strides().into_iter().map(|s| s as isize)).collect()
}

/// The same elements in order under another shape. One length may be -1; it follows
/// from the others.
pub fn reshape(input: &Tensor, dims: &[i64]) -> Result<Tensor, OpError> {
    const OP: &str = "reshape";
    let bad = |why: String| Reason::attribute("shape", why).of(OP, &[input]);
    let known = dims.iter().filter(|&&d| d != -1).try_fold(1usize, |n, &d| n.checked_mul(usize::try_from(d).ok()?));
    let unknown = dims.iter().filter(|&&d| d == -1).count();
    let known = known.filter(|_| unknown <= 1).ok_or_else(|| bad(format!("{dims:?} is not a valid shape")))?;
    let rest = if unknown == 0 { 1 } else { input.elements().checked_div(known).unwrap_or(0) };
    if known.checked_mul(rest) != Some(input.elements()) {
        return Err(bad(format!("{dims:?} does not have {} elements", input.elements())));
    }
    let dims: Vec<usize> = dims.iter().map(|&d| usize::try_from(d).unwrap_or(rest)).collect();
    Ok(input.reshaped(Shape::new(dims).within(OP, &[input])?))
}

/// Dimension `i` of the result is dimension `permutation[i]` of the operand.
pub fn permute(input: &Tensor, permutation: &[i64]) -> Result<Tensor, OpError> {
    const OP: &str = "permute";
    let dims = strided(input.shape());
    let mut seen = vec![false; dims.len()];
    let mut order = Vec::with_capacity(dims.len());
    for &p in permutation {
        let axis = input.shape().axis(p).within(OP, &[input])?;
        if seen.get(axis) == Some(&false) {
            seen[axis] = true;
            order.push(axis);
        }
    }
    if order.len() != dims.len() || permutation.len() != dims.len() {
        let why = format!("{permutation:?} is not a permutation of {} dimensions", dims.len());
        return Err(Reason::attribute("permutation", why).of(OP, &[input]));
    }
    let shape = Shape::new(order.iter().map(|&a| dims[a].0).collect::<Vec<_>>()).within(OP, &[input])?;
    Ok(moved(input, shape, &View::new(order.iter().map(|&a| dims[a]), 0)))
}

/// Two dimensions exchanged.
pub fn transpose(input: &Tensor, dim0: i64, dim1: i64) -> Result<Tensor, OpError> {
    let axis = |d| input.shape().axis(d).within("transpose", &[input]);
    let mut order: Vec<i64> = (0..input.shape().rank() as i64).collect();
    let (a, b) = (axis(dim0)?, axis(dim1)?);
    if order.is_empty() {
        return Ok(input.clone());
    }
    order.swap(a, b);
    permute(input, &order)
}

/// The elements from `begins` to `ends` (without it) in steps of `steps`, per dimension. Negative
/// bounds count from the end; bounds beyond a dimension are clamped to it.
pub fn slice(input: &Tensor, begins: &[i64], ends: &[i64], steps: &[i64]) -> Result<Tensor, OpError> {
    const OP: &str = "slice";
    let dims = strided(input.shape());
    for (name, list) in [("begins", begins), ("ends", ends), ("step", steps)] {
        if list.len() != dims.len() {
            let why = format!("{} numbers for {} dimensions", list.len(), dims.len());
            return Err(Reason::attribute(name, why).of(OP, &[input]));
        }
    }
    let (mut view, mut offset, mut lengths) = (Vec::new(), 0isize, Vec::new());
    for (i, &(n, stride)) in dims.iter().enumerate() {
        let step = usize::try_from(steps[i]).ok().filter(|&s| s > 0);
        let step =
            step.ok_or_else(|| Reason::attribute("step", format!("{} is not positive", steps[i])).of(OP, &[input]))?;
        let bound = |b: i64| (if b < 0 { b.saturating_add(n as i64) } else { b }).clamp(0, n as i64) as usize;
        let (begin, end) = (bound(begins[i]), bound(ends[i]));
        let length = end.saturating_sub(begin).div_ceil(step);
        offset += begin as isize * stride;
        // A step larger than the dimension takes one element: its stride is never used.
        view.push((length, stride * step.min(n.max(1)) as isize));
        lengths.push(length);
    }
    let shape = Shape::new(lengths).within(OP, &[input])?;
    Ok(moved(input, shape, &View::new(view, offset)))
}

/// [`slice()`] with bounds from integer vectors.
pub fn slice_dynamic(input: &Tensor, begins: &Tensor, ends: &Tensor, steps: &[i64]) -> Result<Tensor, OpError> {
    slice(input, &begins.to_i64(), &ends.to_i64(), steps)
}

/// Elements of `value` added before and after each dimension: `padding` is low and high count of
/// the first dimension, of the second, and so on.
pub fn pad(input: &Tensor, padding: &[usize], value: f32) -> Result<Tensor, OpError> {
    const OP: &str = "pad";
    let dims = input.shape().dims();
    if padding.len() != 2 * dims.len() {
        let why = format!("{} numbers for {} dimensions", padding.len(), dims.len());
        return Err(Reason::attribute("padding", why).of(OP, &[input]));
    }
    let mut padded = Vec::with_capacity(dims.len());
    for (i, &n) in dims.iter().enumerate() {
        padded.push(n.saturating_add(padding[2 * i]).saturating_add(padding[2 * i + 1]));
    }
    let shape = Shape::new(padded).within(OP, &[input])?;
    let row = input.shape().last();
    let outer = Shape::new(dims[..dims.len().saturating_sub(1)].to_vec()).within(OP, &[input])?;
    let strides = shape.strides();
    let low = |i: usize| padding.get(2 * i).copied().unwrap_or(0);
    fn place<T: Native>(values: &[T], fill: T, count: usize, row: usize, at: impl Fn(usize) -> usize) -> Vec<T> {
        let mut out = vec![fill; count];
        for (r, line) in values.chunks(row.max(1)).enumerate() {
            let start = at(r);
            out[start..start + line.len()].copy_from_slice(line);
        }
        out
    }
    let at = |mut r: usize| {
        let mut position = if dims.is_empty() { 0 } else { low(dims.len() - 1) };
        for (i, &n) in outer.iter().enumerate().rev() {
            position += (r % n + low(i)) * strides[i];
            r /= n;
        }
        position
    };
    let count = shape.elements();
    let storage = with_storage!(input.storage(), |v| {
        Native::store(place(v, tilework_dtype::convert::Element::from_f32(value), count, row, at))
    });
    Ok(Tensor::wrap(input.dtype(), shape, storage))
}

/// Tensors concatenated along a dimension; all other dimensions and the element types are equal.
pub fn concat(inputs: &[&Tensor], dim: i64) -> Result<Tensor, OpError> {
    const OP: &str = "concat";
    let Some(&first) = inputs.first() else {
        return Err(Reason::attribute("inputs", "none").of(OP, inputs));
    };
    let axis = first.shape().axis(dim).within(OP, inputs)?;
    let mut length = 0;
    for t in inputs {
        if t.dtype() != first.dtype() {
            return Err(Reason::Type(t.dtype()).of(OP, inputs));
        }
        let fits = t.shape().rank() == first.shape().rank()
            && t.shape().iter().zip(first.shape().iter()).enumerate().all(|(i, (a, b))| i == axis || a == b);
        if !fits || t.shape().rank() == 0 {
            return Err(Reason::shape(t.shape(), format!("{} but for dimension {axis}", first.shape())).of(OP, inputs));
        }
        length += t.shape()[axis];
    }
    let shape = first.shape().with(axis, length).within(OP, inputs)?;
    let (outer, _, inner) = shape.around(axis);
    fn join<T: Native>(first: &[T], inputs: &[&Tensor], outer: usize, lengths: &[usize], count: usize) -> Vec<T> {
        // `first` selects the type, which all operands share.
        let _ = first;
        let parts: Vec<&[T]> = inputs.iter().map(|t| t.values::<T>().unwrap_or_default()).collect();
        let mut out = Vec::with_capacity(count);
        for o in 0..outer {
            for (part, &n) in parts.iter().zip(lengths) {
                out.extend_from_slice(&part[o * n..(o + 1) * n]);
            }
        }
        out
    }
    let lengths: Vec<usize> = inputs.iter().map(|t| t.shape()[axis] * inner).collect();
    let storage =
        with_storage!(first.storage(), |v| { Native::store(join(v, inputs, outer, &lengths, shape.elements())) });
    Ok(Tensor::wrap(first.dtype(), shape, storage))
}

/// The whole tensor repeated along each dimension. More numbers than dimensions add dimensions in
/// front; fewer leave the first dimensions as they are.
pub fn repeat(input: &Tensor, repeats: &[usize]) -> Result<Tensor, OpError> {
    let rank = repeats.len().max(input.shape().rank());
    let mut dims = vec![(1, 0); rank - input.shape().rank()];
    dims.extend(strided(input.shape()));
    let times = |i: usize| (i + repeats.len()).checked_sub(rank).map_or(1, |k| repeats[k]);
    let lengths: Vec<usize> = dims.iter().enumerate().map(|(i, d)| d.0.saturating_mul(times(i))).collect();
    let shape = Shape::new(lengths).within("repeat", &[input])?;
    let view = View::new(dims.iter().enumerate().flat_map(|(i, &d)| [(times(i), 0), d]), 0);
    Ok(moved(input, shape, &view))
}

/// Each index of a dimension repeated in place.
pub fn repeat_interleave(input: &Tensor, repeats: usize, dim: i64) -> Result<Tensor, OpError> {
    const OP: &str = "repeat_interleave";
    let axis = input.shape().axis(dim).within(OP, &[input])?;
    let length = input.shape().around(axis).1.saturating_mul(repeats);
    let shape = input.shape().with(axis, length).within(OP, &[input])?;
    let (outer, n, inner) = input.shape().around(axis);
    let view = View::new([(outer, (n * inner) as isize), (n, inner as isize), (repeats, 0), (inner, 1)], 0);
    Ok(moved(input, shape, &view))
}
