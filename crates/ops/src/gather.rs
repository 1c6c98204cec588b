//! Reading and writing by index tensors: gather, scatter, embedding and its backward pass (tt-mlir
//! `data_movement.fbs`, `embedding.fbs`; semantics of `torch.gather` and `torch.scatter`, which
//! `ttnn` documents as its own).
//!
//! Indices may have any element type. An index out of bounds is an error here; the device would
//! read or write elsewhere.

use crate::error::{OpError, Reason, Within};
use crate::produce;
use crate::tensor::{Native, Tensor, with_storage};
use crate::view::View;
use crate::{DType, Shape, math, typecast};
use tilework_dtype::convert::Element;

/// What `scatter` does with an element that is already there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScatterReduce {
    /// Replace it; of several sources, the last one is kept.
    Replace,
    /// Add to it.
    Sum,
    /// Multiply it.
    Prod,
    /// Keep the larger.
    Max,
    /// Keep the smaller.
    Min,
}

/// Indices as positions below `bound`.
fn indices(op: &'static str, index: &Tensor, bound: usize, operands: &[&Tensor]) -> Result<Vec<usize>, OpError> {
    let check = |i: i64| usize::try_from(i).ok().filter(|&p| p < bound).ok_or(Reason::Index { index: i, bound });
    index.to_i64().into_iter().map(check).collect::<Result<_, _>>().within(op, operands)
}

/// Where element `i` of `index` lies in a tensor of `shape` when its coordinate of `axis` is
/// taken as zero.
fn bases(op: &'static str, shape: &Shape, index: &Tensor, axis: usize, operands: &[&Tensor]) -> Result<View, OpError> {
    let fits = index.shape().rank() == shape.rank()
        && index.shape().iter().zip(shape.iter()).enumerate().all(|(i, (n, bound))| i == axis || n <= bound);
    if !fits || shape.rank() == 0 {
        let wanted = format!("at most {shape} but for dimension {axis}");
        return Err(Reason::shape(index.shape(), wanted).of(op, operands));
    }
    let strides = shape.strides();
    let stride = |i: usize| if i == axis { 0 } else { strides[i] as isize };
    Ok(View::new(index.shape().iter().enumerate().map(|(i, &n)| (n, stride(i))), 0))
}

/// Element `[.., i, ..]` of the result is element `[.., index[.., i, ..], ..]` of the operand.
pub fn gather(input: &Tensor, index: &Tensor, dim: i64) -> Result<Tensor, OpError> {
    const OP: &str = "gather";
    let operands = [input, index];
    let axis = input.shape().axis(dim).within(OP, &operands)?;
    let view = bases(OP, input.shape(), index, axis, &operands)?;
    let (_, bound, step) = input.shape().around(axis);
    let index_of = indices(OP, index, bound, &operands)?;
    let storage = with_storage!(input.storage(), |v| {
        Native::store(produce::natives(index_of.len(), 1, |start, out| {
            view.runs(start, out.len(), |done, position, stride, length| {
                for i in 0..length {
                    let base = (position + i as isize * stride) as usize;
                    out[done + i] = v[base + index_of[start + done + i] * step];
                }
            });
        }))
    });
    Ok(Tensor::wrap(input.dtype(), index.shape().clone(), storage))
}

/// The operand with the elements `[.., index[.., i, ..], ..]` combined with the elements
/// `[.., i, ..]` of `source`, in row-major order of the index.
pub fn scatter(
    input: &Tensor,
    index: &Tensor,
    source: &Tensor,
    dim: i64,
    reduce: ScatterReduce,
) -> Result<Tensor, OpError> {
    const OP: &str = "scatter";
    let operands = [input, index, source];
    let axis = input.shape().axis(dim).within(OP, &operands)?;
    let to = bases(OP, input.shape(), index, axis, &operands)?;
    let small = index.shape().rank() == source.shape().rank()
        && index.shape().iter().zip(source.shape().iter()).all(|(n, bound)| n <= bound);
    if !small {
        return Err(Reason::shape(source.shape(), format!("at least {}", index.shape())).of(OP, &operands));
    }
    let strides = source.shape().strides();
    let from = View::new(index.shape().iter().zip(strides).map(|(&n, s)| (n, s as isize)), 0);
    let (_, bound, step) = input.shape().around(axis);
    let places = Places { to, from, step, index: indices(OP, index, bound, &operands)? };
    let (dtype, shape) = (input.dtype(), input.shape().clone());
    if reduce == ScatterReduce::Replace {
        let source = typecast(source, dtype);
        let storage = with_storage!(input.storage(), |v| Native::store(places.replaced(v, &source)));
        return Ok(Tensor::wrap(dtype, shape, storage));
    }
    if dtype.is_float() {
        let f = match reduce {
            ScatterReduce::Sum => |a: f32, b: f32| a + b,
            ScatterReduce::Prod => |a: f32, b: f32| a * b,
            ScatterReduce::Max => math::maximum,
            _ => math::minimum,
        };
        let mut values = input.to_f32();
        places.put(&mut values, &source.to_f32(), f);
        return Tensor::from_f32(dtype, shape, &values);
    }
    let f = match reduce {
        ScatterReduce::Sum => |a: i64, b: i64| a.wrapping_add(b),
        ScatterReduce::Prod => |a: i64, b: i64| a.wrapping_mul(b),
        ScatterReduce::Max => |a: i64, b: i64| a.max(b),
        _ => |a: i64, b: i64| a.min(b),
    };
    let mut values = input.to_i64();
    places.put(&mut values, &source.to_i64(), f);
    Tensor::from_i64(dtype, shape, &values)
}

/// Which elements a scatter combines.
struct Places {
    /// Positions in the operand, its coordinate of the axis taken as zero.
    to: View,
    /// Positions in the source.
    from: View,
    /// Distance between neighbours along the axis.
    step: usize,
    /// Coordinates of the axis.
    index: Vec<usize>,
}

impl Places {
    /// Combines each element with its source.
    fn put<T: Copy>(&self, values: &mut [T], source: &[T], f: impl Fn(T, T) -> T) {
        let mut bases = vec![0usize; self.index.len()];
        self.to.runs(0, bases.len(), |done, position, stride, length| {
            (0..length).for_each(|i| bases[done + i] = (position + i as isize * stride) as usize);
        });
        self.from.runs(0, bases.len(), |done, position, stride, length| {
            for i in 0..length {
                let at = bases[done + i] + self.index[done + i] * self.step;
                values[at] = f(values[at], source[(position + i as isize * stride) as usize]);
            }
        });
    }

    /// The values, with those at the indexed places replaced by values of `source`.
    fn replaced<T: Native>(&self, values: &[T], source: &Tensor) -> Vec<T> {
        let mut values = values.to_vec();
        self.put(&mut values, source.values::<T>().unwrap_or_default(), |_, new| new);
        values
    }
}

/// Rows and columns of an embedding table: its last two dimensions, those before being 1.
fn table(op: &'static str, weight: &Tensor, operands: &[&Tensor]) -> Result<(usize, usize), OpError> {
    match weight.shape().dims() {
        [ones @ .., rows, columns] if ones.iter().all(|&d| d == 1) => Ok((*rows, *columns)),
        _ => Err(Reason::shape(weight.shape(), "[rows x columns]").of(op, operands)),
    }
}

/// The rows of `weight` that `input` indexes: shape of `input` with the row length appended.
pub fn embedding(input: &Tensor, weight: &Tensor) -> Result<Tensor, OpError> {
    const OP: &str = "embedding";
    let operands = [input, weight];
    let (rows, columns) = table(OP, weight, &operands)?;
    let index = indices(OP, input, rows, &operands)?;
    let mut dims = input.shape().dims().to_vec();
    dims.push(columns);
    let shape = Shape::new(dims).within(OP, &operands)?;
    fn take<T: Native>(v: &[T], index: &[usize], columns: usize) -> Vec<T> {
        index.iter().flat_map(|&i| &v[i * columns..(i + 1) * columns]).copied().collect()
    }
    let storage = with_storage!(weight.storage(), |v| Native::store(take(v, &index, columns)));
    Ok(Tensor::wrap(weight.dtype(), shape, storage))
}

/// Gradient of the table: each row of `grad` added to the row of `weight`'s shape that
/// `input` indexes.
pub fn embedding_backward(input: &Tensor, weight: &Tensor, grad: &Tensor, out: DType) -> Result<Tensor, OpError> {
    const OP: &str = "embedding_bw";
    let operands = [input, weight, grad];
    let (rows, columns) = table(OP, weight, &operands)?;
    let index = indices(OP, input, rows, &operands)?;
    if grad.elements() != index.len() * columns || grad.shape().last() != columns {
        let wanted = format!("one row of {columns} for each of {} indices", index.len());
        return Err(Reason::shape(grad.shape(), wanted).of(OP, &operands));
    }
    let mut sums = vec![0f32; rows * columns];
    with_storage!(grad.storage(), |v| for (i, line) in index.iter().zip(v.chunks(columns.max(1))) {
        sums[i * columns..(i + 1) * columns].iter_mut().zip(line).for_each(|(s, g)| *s += g.to_f32());
    });
    Tensor::from_f32(out, weight.shape().clone(), &sums)
}
