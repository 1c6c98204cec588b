//! Pooling and upsampling of images with channels last (tt-mlir `pool.fbs`).
//!
//! Images and results are flat, `(1, 1, n * h * w, c)`. Padding is minus infinity for a maximum and
//! zero for an average. The divisor of an average counts the padding around the image on request,
//! but never what a last incomplete window (`ceil`) covers beyond it (PyTorch's rule). The maximum
//! is a NaN if there is one; of equal elements, the index is that of the first.

use crate::error::{OpError, Reason, Within};
use crate::produce::{self, as_f32};
use crate::reduce::{Reduction, reduce};
use crate::tensor::{Native, Tensor, with_storage};
use crate::view::View;
use crate::window::{Axis, Window};
use crate::{DType, Shape};

/// Sizes and attributes of a pooling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pool2d {
    /// Images.
    pub batch: usize,
    /// Rows and columns of an image.
    pub input: [usize; 2],
    /// Channels.
    pub channels: usize,
    /// Kernel, stride, padding and dilation.
    pub window: Window,
    /// Count a last window that begins inside the image but does not fit.
    pub ceil: bool,
}

impl Pool2d {
    /// Rows and columns of the result.
    fn output(&self, op: &'static str, input: &Tensor) -> Result<[usize; 2], OpError> {
        let image = Shape::new([self.batch, self.input[0], self.input[1], self.channels]).within(op, &[input])?;
        if image.elements() != input.elements() || input.shape().last() != self.channels {
            let wanted = format!("{} images of {}x{} with {} channels", image[0], image[1], image[2], image[3]);
            return Err(Reason::shape(input.shape(), wanted).of(op, &[input]));
        }
        let axes = self.window.axes();
        let length = |i: usize| axes[i].windows(self.input[i], self.ceil).within(op, &[input]);
        Ok([length(0)?, length(1)?])
    }

    fn shape(&self, op: &'static str, input: &Tensor, output: [usize; 2]) -> Result<Shape, OpError> {
        let positions = Shape::new([self.batch, output[0], output[1]]).within(op, &[input])?.elements();
        Shape::new([1, 1, positions, self.channels]).within(op, &[input])
    }

    /// Calls `f` with the image position and the channels of every tap of a result position that
    /// falls on the image.
    fn taps<'a>(&self, image: &'a [f32], output: [usize; 2], position: usize, mut f: impl FnMut(usize, &'a [f32])) {
        let [rows, columns] = self.window.axes();
        let (n, r, c) = (position / (output[0] * output[1]), position / output[1] % output[0], position % output[1]);
        for i in 0..rows.kernel {
            let Some(y) = rows.tap(r, i, self.input[0]) else { continue };
            for j in 0..columns.kernel {
                let Some(x) = columns.tap(c, j, self.input[1]) else { continue };
                let plane = y * self.input[1] + x;
                let at = (n * self.input[0] * self.input[1] + plane) * self.channels;
                f(plane, &image[at..at + self.channels]);
            }
        }
    }
}

/// The largest element of each window.
pub fn max_pool2d(input: &Tensor, pool: &Pool2d, out: DType) -> Result<Tensor, OpError> {
    const OP: &str = "max_pool2d";
    let output = pool.output(OP, input)?;
    let shape = pool.shape(OP, input, output)?;
    let image = as_f32(input);
    Ok(produce::floats(shape, out, pool.channels, |start, values| {
        let mut pixels = Vec::new();
        for (i, row) in values.chunks_mut(pool.channels).enumerate() {
            pixels.clear();
            pool.taps(&image, output, start / pool.channels + i, |_, pixel| pixels.push(pixel));
            row.fill(f32::NEG_INFINITY);
            crate::math::raise(row, &pixels);
        }
    }))
}

/// The largest element of each window, and its position `row * width + column` in its image, in
/// type `index`.
pub fn max_pool2d_with_indices(
    input: &Tensor,
    pool: &Pool2d,
    out: DType,
    index: DType,
) -> Result<(Tensor, Tensor), OpError> {
    const OP: &str = "max_pool2d_with_indices";
    let largest = max_pool2d(input, pool, out)?;
    let output = pool.output(OP, input)?;
    let image = as_f32(input);
    let channels = pool.channels;
    let indices = produce::integers(largest.shape().clone(), index, channels, |start, values| {
        let mut best = vec![f32::NEG_INFINITY; channels];
        for (i, row) in values.chunks_mut(channels).enumerate() {
            let mut seen = false;
            pool.taps(&image, output, start / channels + i, |plane, pixel| {
                for ((v, best), &p) in row.iter_mut().zip(&mut best).zip(pixel) {
                    if !seen || p > *best || (p.is_nan() && !best.is_nan()) {
                        (*v, *best) = (plane as i64, p);
                    }
                }
                seen = true;
            });
        }
    });
    Ok((largest, indices))
}

/// Elements of a window that the divisor of an average counts.
fn counted(axis: &Axis, window: usize, length: usize, padding: bool) -> usize {
    if !padding {
        return (0..axis.kernel).filter(|&t| axis.tap(window, t, length).is_some()).count();
    }
    let end = length + axis.before + axis.after;
    (0..axis.kernel).filter(|t| window * axis.stride + t * axis.dilation < end).count()
}

/// The mean of each window; `count_padding` divides by the padding's elements as well.
pub fn avg_pool2d(input: &Tensor, pool: &Pool2d, count_padding: bool, out: DType) -> Result<Tensor, OpError> {
    const OP: &str = "avg_pool2d";
    let output = pool.output(OP, input)?;
    let shape = pool.shape(OP, input, output)?;
    let image = as_f32(input);
    let [rows, columns] = pool.window.axes();
    Ok(produce::floats(shape, out, pool.channels, |start, values| {
        for (i, row) in values.chunks_mut(pool.channels).enumerate() {
            let position = start / pool.channels + i;
            pool.taps(&image, output, position, |_, pixel| row.iter_mut().zip(pixel).for_each(|(v, p)| *v += p));
            let r = counted(&rows, position / output[1] % output[0], pool.input[0], count_padding);
            let c = counted(&columns, position % output[1], pool.input[1], count_padding);
            row.iter_mut().for_each(|v| *v /= (r * c) as f32);
        }
    }))
}

/// The mean of each channel of each image: `[n, h, w, c]` becomes `[n, 1, 1, c]`.
pub fn global_avg_pool2d(input: &Tensor, out: DType) -> Result<Tensor, OpError> {
    if input.shape().rank() != 4 {
        return Err(Reason::shape(input.shape(), "[n x h x w x c]").of("global_avg_pool2d", &[input]));
    }
    reduce(Reduction::Mean, input, &[1, 2], true, out)
}

/// How [`upsample`] fills the new elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UpsampleMode {
    /// With the element they come from.
    Nearest,
    /// Between the four nearest, pixels taken as areas (no aligned corners).
    Bilinear,
}

/// Enlarges images `[n, h, w, c]` by whole factors for rows and columns.
pub fn upsample(input: &Tensor, scale: [usize; 2], mode: UpsampleMode, out: DType) -> Result<Tensor, OpError> {
    const OP: &str = "upsample";
    let [n, h, w, c] = *input.shape().dims() else {
        return Err(Reason::shape(input.shape(), "[n x h x w x c]").of(OP, &[input]));
    };
    if scale.contains(&0) {
        return Err(Reason::attribute("scale_factor", "zero").of(OP, &[input]));
    }
    let (rows, columns) = (h.saturating_mul(scale[0]), w.saturating_mul(scale[1]));
    let shape = Shape::new([n, rows, columns, c]).within(OP, &[input])?;
    if mode == UpsampleMode::Nearest {
        let line = (w * c) as isize;
        let view = View::new([(n * h, line), (scale[0], 0), (w, c as isize), (scale[1], 0), (c, 1)], 0);
        let count = shape.elements();
        let storage = with_storage!(input.storage(), |v| Native::store(produce::natives(count, 1, |start, o| {
            view.copy(v, start, o)
        })));
        return Ok(crate::typecast(&Tensor::wrap(input.dtype(), shape, storage), out));
    }
    let image = as_f32(input);
    // Position between two elements: lower one, upper one, weight of the upper one.
    let between = |i: usize, scale: usize, length: usize| {
        let at = ((i as f32 + 0.5) / scale as f32 - 0.5).max(0.0);
        let low = (at as usize).min(length - 1);
        (low, (low + 1).min(length - 1), at - low as f32)
    };
    Ok(produce::floats(shape, out, c, |start, values| {
        for (i, row) in values.chunks_mut(c).enumerate() {
            let position = start / c + i;
            let (image_at, y, x) = (position / (rows * columns), position / columns % rows, position % columns);
            let (y0, y1, fy) = between(y, scale[0], h);
            let (x0, x1, fx) = between(x, scale[1], w);
            let pixel = |y: usize, x: usize| &image[((image_at * h + y) * w + x) * c..];
            let (a, b, p, q) = (pixel(y0, x0), pixel(y0, x1), pixel(y1, x0), pixel(y1, x1));
            for (k, v) in row.iter_mut().enumerate() {
                let (top, bottom) = (a[k] + (b[k] - a[k]) * fx, p[k] + (q[k] - p[k]) * fx);
                *v = top + (bottom - top) * fy;
            }
        }
    }))
}
