//! `ttnn.quantize`, `dequantize`, `requantize`: real = (integer - zero point) * scale.
//!
//! The device's kernels (public LLK, `ckernel_sfpu_quant`) multiply by the reciprocal of the scale,
//! add the zero point, round to nearest with ties away from zero and clamp to -127..=127, or
//! 0..=255 for an unsigned byte: `SFPSTOCHRND` in mode FP32_TO_INT8 or FP32_TO_UINT8 (ISA
//! documentation, SFPSTOCHRND_FloatInt). These functions do the same. The result is never -128.

use crate::error::{OpError, Reason, Within};
use crate::produce;
use crate::tensor::Tensor;
use crate::view::{Lane, View};
use crate::{DType, Shape};

/// A scale or a zero point: one for the tensor or one for each index of an axis.
#[derive(Debug, Clone, Copy)]
pub enum PerAxis<'a, T> {
    /// One value.
    Tensor(T),
    /// A vector of as many values as the axis is long.
    Axis(&'a Tensor),
}

/// Scale and zero point.
#[derive(Debug, Clone, Copy)]
pub struct Quantization<'a> {
    /// Real size of one step.
    pub scale: PerAxis<'a, f32>,
    /// Integer that stands for zero.
    pub zero_point: PerAxis<'a, i32>,
}

/// Scale and zero point of each index of the axis, one of each for the whole tensor.
struct Steps {
    scale: Vec<f32>,
    zero: Vec<f32>,
    /// Elements between two steps of the axis' index, and the axis' length.
    inner: usize,
    length: usize,
}

impl Steps {
    fn new(op: &'static str, input: &Tensor, axis: Option<i64>, by: &Quantization<'_>) -> Result<Steps, OpError> {
        let (mut inner, mut length) = (1, 1);
        if let Some(axis) = axis {
            let axis = input.shape().axis(axis).within(op, &[input])?;
            (_, length, inner) = input.shape().around(axis);
        }
        let spread = |values: Vec<f32>, tensor: &Tensor| match (values.len(), axis) {
            (1, _) => Ok(vec![values[0]; length]),
            (n, Some(_)) if n == length => Ok(values),
            _ => Err(Reason::shape(tensor.shape(), format!("[{length}], one value for each index of the axis,"))),
        };
        let scale = match by.scale {
            PerAxis::Tensor(v) => vec![v; length],
            PerAxis::Axis(t) => spread(t.to_f32(), t).within(op, &[input, t])?,
        };
        let zero = match by.zero_point {
            PerAxis::Tensor(v) => vec![v as f32; length],
            PerAxis::Axis(t) => spread(t.to_f32(), t).within(op, &[input, t])?,
        };
        Ok(Steps { scale, zero, inner, length })
    }

    fn at(&self, element: usize) -> (f32, f32) {
        let i = element / self.inner % self.length;
        (self.scale[i], self.zero[i])
    }
}

/// Rounds to nearest, ties away from zero, and clamps to the byte that `out` stands for.
fn to_byte(value: f32, out: DType) -> f32 {
    let (low, high) = if out == DType::U8 { (0.0, 255.0) } else { (-127.0, 127.0) };
    libm::roundf(value).clamp(low, high)
}

fn each(input: &Tensor, out: DType, f: impl Fn(usize, f32) -> f32 + Sync) -> Tensor {
    let shape: Shape = input.shape().clone();
    let view = View::contiguous(&shape);
    produce::floats(shape, out, 1, |start, values| {
        f32::load(input, &view, start, values);
        values.iter_mut().enumerate().for_each(|(i, v)| *v = f(start + i, *v));
    })
}

/// Real values to integers.
pub fn quantize(input: &Tensor, axis: Option<i64>, by: Quantization<'_>, out: DType) -> Result<Tensor, OpError> {
    let steps = Steps::new("quantize", input, axis, &by)?;
    Ok(each(input, out, |i, v| {
        let (scale, zero) = steps.at(i);
        to_byte(v * (1.0 / scale) + zero, out)
    }))
}

/// Integers to real values.
pub fn dequantize(input: &Tensor, axis: Option<i64>, by: Quantization<'_>, out: DType) -> Result<Tensor, OpError> {
    let steps = Steps::new("dequantize", input, axis, &by)?;
    Ok(each(input, out, |i, v| {
        let (scale, zero) = steps.at(i);
        (v - zero) * scale
    }))
}

/// Integers of one scale and zero point to those of another.
pub fn requantize(
    input: &Tensor,
    axis: Option<i64>,
    from: Quantization<'_>,
    to: Quantization<'_>,
    out: DType,
) -> Result<Tensor, OpError> {
    let from = Steps::new("requantize", input, axis, &from)?;
    let to = Steps::new("requantize", input, axis, &to)?;
    Ok(each(input, out, |i, v| {
        let ((scale, zero), (new_scale, new_zero)) = (from.at(i), to.at(i));
        to_byte((v - zero) * scale * (1.0 / new_scale) + new_zero, out)
    }))
}
