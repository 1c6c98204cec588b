//! Softmax and normalisations (tt-mlir `normalization.fbs`).
//!
//! Statistics are float32: the mean first, then the mean of squared distances from it. Softmax
//! always subtracts the largest element first. The device does so only when `numericStable` is set;
//! without it large elements overflow there and not here, which is the only difference.

use crate::error::{OpError, Reason, Within};
use crate::produce;
use crate::tensor::Tensor;
use crate::unary::Unary;
use crate::view::{Lane, View};
use crate::{DType, Shape, math};

/// e^x over its sum along `dim`.
pub fn softmax(input: &Tensor, dim: i64, out: DType) -> Result<Tensor, OpError> {
    let axis = input.shape().axis(dim).within("softmax", &[input])?;
    let (_, length, inner) = input.shape().around(axis);
    let view = View::contiguous(input.shape());
    Ok(produce::floats(input.shape().clone(), out, length * inner, |start, values| {
        f32::load(input, &view, start, values);
        for block in values.chunks_mut((length * inner).max(1)) {
            if inner == 1 {
                math::softmax(block, None);
            } else {
                softmax_columns(block, inner);
            }
        }
    }))
}

/// Softmax of each column of a row-major matrix.
fn softmax_columns(block: &mut [f32], columns: usize) {
    let mut largest = vec![f32::NEG_INFINITY; columns];
    for row in block.chunks(columns) {
        largest.iter_mut().zip(row).for_each(|(l, &v)| *l = math::maximum(*l, v));
    }
    let mut total = vec![0f32; columns];
    for row in block.chunks_mut(columns) {
        for ((v, l), t) in row.iter_mut().zip(&largest).zip(&mut total) {
            *v = math::exp(*v - l);
            *t += *v;
        }
    }
    for row in block.chunks_mut(columns) {
        row.iter_mut().zip(&total).for_each(|(v, t)| *v /= t);
    }
}

/// Scale and shift after a normalisation: vectors of as many elements as are normalised together
/// (or per channel), in any shape with that number of elements.
#[derive(Debug, Clone, Copy, Default)]
pub struct Affine<'a> {
    /// Multiplied.
    pub weight: Option<&'a Tensor>,
    /// Added after.
    pub bias: Option<&'a Tensor>,
}

impl Affine<'_> {
    /// The two vectors in float32, ones and zeros when absent.
    pub(crate) fn vectors(
        &self,
        op: &'static str,
        input: &Tensor,
        length: usize,
    ) -> Result<(Vec<f32>, Vec<f32>), OpError> {
        let vector = |t: Option<&Tensor>, default: f32| match t {
            None => Ok(vec![default; length]),
            Some(t) if t.elements() == length => Ok(t.to_f32()),
            Some(t) => Err(Reason::shape(t.shape(), format!("{length} elements")).of(op, &[input, t])),
        };
        Ok((vector(self.weight, 1.0)?, vector(self.bias, 0.0)?))
    }
}

/// Sum of squared distances from `mean`.
fn squares(row: &[f32], mean: f32) -> f32 {
    let mut distances: [f32; 512] = [0.0; 512];
    let mut total = 0.0;
    for part in row.chunks(512) {
        let distances = &mut distances[..part.len()];
        distances.iter_mut().zip(part).for_each(|(d, v)| *d = v - mean);
        total += math::dot(distances, distances);
    }
    total
}

/// Normalises rows of the last dimension to mean 0 and variance 1.
pub fn layer_norm(input: &Tensor, affine: Affine<'_>, epsilon: f32, out: DType) -> Result<Tensor, OpError> {
    let length = input.shape().last();
    let (weight, bias) = affine.vectors("layer_norm", input, length)?;
    let view = View::contiguous(input.shape());
    Ok(produce::floats(input.shape().clone(), out, length, |start, values| {
        f32::load(input, &view, start, values);
        for row in values.chunks_mut(length.max(1)) {
            let mean = math::sum(row) / length as f32;
            let scale = 1.0 / (squares(row, mean) / length as f32 + epsilon).sqrt();
            for ((v, w), b) in row.iter_mut().zip(&weight).zip(&bias) {
                *v = (*v - mean) * scale * w + b;
            }
        }
    }))
}

/// What is fused with [`rms_norm`].
#[derive(Debug, Clone, Copy, Default)]
pub struct RmsFused<'a> {
    /// Added to the input before.
    pub residual: Option<&'a Tensor>,
    /// Applied to the result.
    pub activation: Option<Unary>,
}

/// Divides rows of the last dimension by the root of their mean square.
pub fn rms_norm(
    input: &Tensor,
    affine: Affine<'_>,
    epsilon: f32,
    fused: RmsFused<'_>,
    out: DType,
) -> Result<Tensor, OpError> {
    const OP: &str = "rms_norm";
    let length = input.shape().last();
    let (weight, bias) = affine.vectors(OP, input, length)?;
    if let Some(residual) = fused.residual.filter(|r| r.shape() != input.shape()) {
        return Err(Reason::shape(residual.shape(), input.shape().to_string()).of(OP, &[input, residual]));
    }
    let view = View::contiguous(input.shape());
    Ok(produce::floats(input.shape().clone(), out, length, |start, values| {
        f32::load(input, &view, start, values);
        if let Some(residual) = fused.residual {
            let mut addend = vec![0.0; values.len()];
            f32::load(residual, &view, start, &mut addend);
            values.iter_mut().zip(&addend).for_each(|(v, a)| *v += a);
        }
        for row in values.chunks_mut(length.max(1)) {
            let scale = 1.0 / (math::dot(row, row) / length as f32 + epsilon).sqrt();
            for ((v, w), b) in row.iter_mut().zip(&weight).zip(&bias) {
                *v = *v * scale * w + b;
            }
        }
        if let Some(activation) = fused.activation {
            activation.floats(values);
        }
    }))
}

/// Normalises groups of channels. The input has channels last and images first (`ttnn`'s
/// `[n, 1, h * w, c]`); a group's statistics are over all positions of an image and the
/// group's channels.
pub fn group_norm(
    input: &Tensor,
    groups: usize,
    affine: Affine<'_>,
    epsilon: f32,
    out: DType,
) -> Result<Tensor, OpError> {
    const OP: &str = "group_norm";
    let [images, .., channels] = *input.shape().dims() else {
        return Err(Reason::shape(input.shape(), "[images x .. x channels]").of(OP, &[input]));
    };
    if groups == 0 || channels % groups != 0 {
        let why = format!("{groups} groups of {channels} channels");
        return Err(Reason::attribute("num_groups", why).of(OP, &[input]));
    }
    let (weight, bias) = affine.vectors(OP, input, channels)?;
    let image = input.elements().checked_div(images).unwrap_or(0);
    let width = channels / groups;
    let count = (image / channels.max(1) * width) as f32;
    let view = View::contiguous(input.shape());
    Ok(produce::floats(input.shape().clone(), out, image, |start, values| {
        f32::load(input, &view, start, values);
        for image in values.chunks_mut(image.max(1)) {
            for g in 0..groups {
                let from = g * width;
                let part = |row: &[f32]| -> Vec<f32> { row[from..from + width].to_vec() };
                let mean = image.chunks(channels).map(|row| math::sum(&part(row))).sum::<f32>() / count;
                let variance = image.chunks(channels).map(|row| squares(&part(row), mean)).sum::<f32>() / count;
                let scale = 1.0 / (variance + epsilon).sqrt();
                for row in image.chunks_mut(channels) {
                    for c in from..from + width {
                        row[c] = (row[c] - mean) * scale * weight[c] + bias[c];
                    }
                }
            }
        }
    }))
}

/// Channels of a batch: the second dimension, or an error.
fn channels(op: &'static str, input: &Tensor) -> Result<(usize, usize, usize), OpError> {
    if input.shape().rank() < 2 {
        return Err(Reason::shape(input.shape(), "[images x channels x ..]").of(op, &[input]));
    }
    Ok(input.shape().around(1))
}

/// Normalises each channel (the second dimension) by given mean and variance.
pub fn batch_norm(
    input: &Tensor,
    mean: &Tensor,
    variance: &Tensor,
    affine: Affine<'_>,
    epsilon: f32,
    out: DType,
) -> Result<Tensor, OpError> {
    const OP: &str = "batch_norm";
    let (_, count, inner) = channels(OP, input)?;
    let (weight, bias) = affine.vectors(OP, input, count)?;
    // The statistics have the same length rule as scale and shift.
    let (mean, _) = Affine { weight: Some(mean), bias: None }.vectors(OP, input, count)?;
    let (variance, _) = Affine { weight: Some(variance), bias: None }.vectors(OP, input, count)?;
    let view = View::contiguous(input.shape());
    Ok(produce::floats(input.shape().clone(), out, inner, |start, values| {
        f32::load(input, &view, start, values);
        for (i, line) in values.chunks_mut(inner.max(1)).enumerate() {
            let c = (start / inner + i) % count;
            let scale = 1.0 / (variance[c] + epsilon).sqrt();
            line.iter_mut().for_each(|v| *v = (*v - mean[c]) * scale * weight[c] + bias[c]);
        }
    }))
}

/// Result of [`batch_norm_training`].
#[derive(Debug, Clone)]
pub struct BatchNormTraining {
    /// The normalised batch.
    pub output: Tensor,
    /// Running mean after this batch, in the shape and type of the one before.
    pub running_mean: Tensor,
    /// Running variance after this batch.
    pub running_var: Tensor,
}

/// Normalises each channel by the batch's own mean and (biased) variance, and moves the running
/// statistics towards them: `momentum * batch + (1 - momentum) * running`.
pub fn batch_norm_training(
    input: &Tensor,
    running: [&Tensor; 2],
    affine: Affine<'_>,
    epsilon: f32,
    momentum: f32,
    out: DType,
) -> Result<BatchNormTraining, OpError> {
    let (outer, count, inner) = channels("batch_norm", input)?;
    let values = produce::as_f32(input);
    let lines = |c: usize| (0..outer).map(move |o| (o * count + c) * inner).map(|at| &values[at..at + inner]);
    let n = (outer * inner) as f32;
    let mean: Vec<f32> = (0..count).map(|c| lines(c).map(math::sum).sum::<f32>() / n).collect();
    let variance: Vec<f32> = (0..count).map(|c| lines(c).map(|l| squares(l, mean[c])).sum::<f32>() / n).collect();
    let vector =
        |v: &[f32]| Shape::new([count]).within("batch_norm", &[input]).and_then(|s| Tensor::new(s, v.to_vec()));
    let output = batch_norm(input, &vector(&mean)?, &vector(&variance)?, affine, epsilon, out)?;
    let moved = |batch: &[f32], running: &Tensor| {
        if running.elements() != count {
            return Err(Reason::shape(running.shape(), format!("{count} elements")).of("batch_norm", &[input, running]));
        }
        let values: Vec<f32> =
            batch.iter().zip(running.to_f32()).map(|(b, r)| momentum * b + (1.0 - momentum) * r).collect();
        Tensor::from_f32(running.dtype(), running.shape().clone(), &values)
    };
    Ok(BatchNormTraining {
        output,
        running_mean: moved(&mean, running[0])?,
        running_var: moved(&variance, running[1])?,
    })
}
