//! Weights and biases of convolutions as compiled programs prepare them for the device: matrices
//! with a row for each tap and channel, padded with zeros to the shape that the program states
//! (tt-mlir `conv.fbs`; `ttnn.prepare_conv2d_weights` and its like).
//!
//! The device's own order of rows in two dimensions depends on how a convolution is spread over
//! cores. Here it is always taps, then channels; convolutions read the same order. In three
//! dimensions the order is the device's, in blocks of channels.

use crate::Shape;
use crate::error::{OpError, Reason, Within};
use crate::tensor::{Native, Storage, Tensor, with_storage};
use crate::view::View;

/// A tensor with zeros after each of its last two dimensions, up to `shape`; the dimensions before
/// are 1.
pub fn pad_prepared(matrix: &Tensor, shape: &Shape) -> Result<Tensor, OpError> {
    const OP: &str = "prepare_conv_weights";
    fn grow<T: Native>(values: &[T], from: [usize; 2], to: [usize; 2]) -> Storage {
        let mut grown = vec![T::default(); to[0] * to[1]];
        for (row, new) in values.chunks(from[1].max(1)).zip(grown.chunks_mut(to[1].max(1))).take(from[0]) {
            new[..from[1]].copy_from_slice(row);
        }
        T::store(grown)
    }
    let from = last_two(matrix.shape().dims());
    match (from, last_two(shape.dims())) {
        (Some(from), Some(to)) if from[0] <= to[0] && from[1] <= to[1] => {
            let storage = with_storage!(matrix.storage(), |values| grow(values, from, to));
            Ok(Tensor::wrap(matrix.dtype(), shape.clone(), storage))
        }
        _ => Err(Reason::shape(shape, format!("at least {}", matrix.shape())).of(OP, &[matrix])),
    }
}

/// The last two dimensions, if all before are 1.
pub(crate) fn last_two(dims: &[usize]) -> Option<[usize; 2]> {
    let (last, before) = dims.split_last()?;
    let (rows, ones) = before.split_last().unwrap_or((&1, &[]));
    ones.iter().all(|&one| one == 1).then_some([*rows, *last])
}

/// A bias as a row, padded like [`pad_prepared`].
pub fn prepare_bias(bias: &Tensor, shape: &Shape) -> Result<Tensor, OpError> {
    let row = Shape::new([1, bias.elements()]).within("prepare_conv_bias", &[bias])?;
    pad_prepared(&bias.reshaped(row), shape)
}

/// Weights `[.., rows, columns]` with the taps of the last two dimensions in reverse order.
pub fn mirrored(weight: &Tensor) -> Result<Tensor, OpError> {
    let [.., rows, columns] = *weight.shape().dims() else {
        return Err(Reason::shape(weight.shape(), "[.. x rows x columns]").of("mirrored", &[weight]));
    };
    let (taps, count) = (rows * columns, weight.elements());
    let dims = [(count.checked_div(taps).unwrap_or(0), taps as isize), (taps, -1)];
    let view = View::new(dims, taps as isize - 1);
    fn copied<T: Native>(view: &View, values: &[T]) -> Storage {
        let mut reversed = vec![T::default(); values.len()];
        view.copy(values, 0, &mut reversed);
        T::store(reversed)
    }
    let storage = with_storage!(weight.storage(), |values| copied(&view, values));
    Ok(Tensor::wrap(weight.dtype(), weight.shape().clone(), storage))
}

/// Weights `[out, in / groups, depth, rows, columns]` as the device's matrix: channels padded to a
/// multiple of `alignment` and cut into blocks of `block` (0 for one block of all), rows in the
/// order of blocks, taps, channels of the block. With several groups each output has rows for all
/// channels, zeros for those of other groups.
pub fn prepare_weights3d(weight: &Tensor, groups: usize, block: usize, alignment: usize) -> Result<Tensor, OpError> {
    const OP: &str = "prepare_conv3d_weights";
    let fail = |name, why: String| Reason::attribute(name, why).of(OP, &[weight]);
    let [out, group_in, kd, kh, kw] = *weight.shape().dims() else {
        return Err(Reason::shape(weight.shape(), "[out x in x depth x rows x columns]").of(OP, &[weight]));
    };
    if groups == 0 || out % groups != 0 {
        return Err(fail("groups", format!("{groups} of {out} channels")));
    }
    let channels = group_in.saturating_mul(groups);
    let aligned = channels.checked_next_multiple_of(alignment);
    let aligned = aligned.ok_or_else(|| fail("alignment", format!("{alignment} of {channels} channels")))?;
    let block = if block == 0 { aligned } else { block };
    if block == 0 || aligned % block != 0 {
        return Err(fail("c_in_block", format!("{block} of {aligned} channels")));
    }
    let taps = kd * kh * kw;
    let rows = taps.saturating_mul(aligned);
    let shape = Shape::new([rows, out]).within(OP, &[weight])?;
    fn arranged<T: Native>(values: &[T], sizes: [usize; 4], channels: (usize, usize)) -> Storage {
        let ([out, group_in, taps, rows], (each, block)) = (sizes, channels);
        let mut matrix = vec![T::default(); rows * out];
        for (at, &value) in values.iter().enumerate() {
            let (o, c, tap) = (at / (group_in * taps), at / taps % group_in, at % taps);
            let channel = o / each * group_in + c;
            let row = (channel / block * taps + tap) * block + channel % block;
            matrix[row * out + o] = value;
        }
        T::store(matrix)
    }
    let (sizes, each) = ([out, group_in, taps, rows], (out / groups).max(1));
    let storage = with_storage!(weight.storage(), |values| arranged(values, sizes, (each, block)));
    Ok(Tensor::wrap(weight.dtype(), shape, storage))
}
