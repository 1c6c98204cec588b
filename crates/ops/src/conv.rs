//! Convolutions (tt-mlir `conv.fbs`): conv2d, conv1d, conv3d and transposed conv2d as
//! matrix products.
//!
//! Images have channels last; `ttnn` passes them flat as `(1, 1, n * h * w, c)`, and results
//! likewise. Sums are computed where the elements lie (`direct.rs`); where the edges of an image
//! would take much more memory than it does, the elements under the kernel are gathered into rows
//! (zeros for padding) and multiplied by the weights as a matrix of `kernel * channels` rows. A
//! transposed convolution is the same with another rule for which element a tap reads. Products and
//! sums are float32 and rounded once, after bias and activation.
//!
//! Weights are in the frameworks' layout (`[out, in / groups, kh, kw]`, transposed:
//! `[in, out / groups, kh, kw]`) or prepared by [`prepare_weights`]:
//! `[1, 1, kh * kw * in / groups, out]`, rows in the order of taps, then channels, and possibly
//! padded with zeros ([`crate::prepare`]); a bias may be padded likewise.

use std::ops::Range;

use crate::direct::{self, Direct, Geometry};
use crate::error::{OpError, Reason, Within};
use crate::gemm::{self, Matrix};
use crate::prepare::last_two;
use crate::produce::{self, as_f32};
use crate::tensor::Tensor;
use crate::unary::Unary;
use crate::view::View;
use crate::window::{Axis, Window};
use crate::{DType, Shape};

/// Sizes and attributes of a two-dimensional convolution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conv2d {
    /// Images.
    pub batch: usize,
    /// Rows and columns of an image.
    pub input: [usize; 2],
    /// Channels of the input.
    pub in_channels: usize,
    /// Channels of the result.
    pub out_channels: usize,
    /// Kernel, stride, padding and dilation.
    pub window: Window,
    /// Number of groups that the channels are divided into; each is convolved independently.
    pub groups: usize,
    /// Applied to the sums.
    pub activation: Option<Unary>,
}

/// Sizes and attributes of a three-dimensional convolution.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Conv3d {
    /// Volumes.
    pub batch: usize,
    /// Depth, rows and columns of a volume.
    pub input: [usize; 3],
    /// Channels of the input.
    pub in_channels: usize,
    /// Channels of the result.
    pub out_channels: usize,
    /// Taps.
    pub kernel: [usize; 3],
    /// Distance between neighbouring windows.
    pub stride: [usize; 3],
    /// Elements on both sides of each axis.
    pub padding: [usize; 3],
    /// Distance between neighbouring taps.
    pub dilation: [usize; 3],
    /// Number of groups that the channels are divided into; each is convolved independently.
    pub groups: usize,
    /// Elements beyond the edge repeat it instead of being zero.
    pub replicate: bool,
    /// Channels of a block of prepared weights; 0 for one block of all.
    pub block: usize,
}

/// A convolution over three axes, the first of length one for images.
struct Plan {
    op: &'static str,
    batch: usize,
    input: [usize; 3],
    output: [usize; 3],
    axes: [Axis; 3],
    channels: [usize; 2],
    groups: usize,
    transposed: bool,
    replicate: bool,
    activation: Option<Unary>,
    /// Channels of a block of a volume's prepared weights, as [`Conv3d::block`]; `None` for images.
    block: Option<usize>,
}

/// The most result positions that are computed together; a multiple of what the kernel takes.
const BLOCK: usize = 252;
/// Pieces into which the positions are divided at least, for the threads.
const PIECES: usize = 16;

impl Plan {
    /// Rows of the weight matrix: taps times channels of a group.
    fn depth(&self) -> usize {
        self.axes.iter().map(|a| a.kernel).product::<usize>() * (self.channels[0] / self.groups)
    }

    /// The input element that a tap reads for a result position.
    fn from(&self, axis: usize, position: usize, tap: usize) -> Option<usize> {
        let (a, length) = (&self.axes[axis], self.input[axis]);
        if self.transposed {
            a.source(position, tap, length)
        } else if self.replicate && length > 0 {
            Some((position * a.stride + tap * a.dilation).saturating_sub(a.before).min(length - 1))
        } else {
            a.tap(position, tap, length)
        }
    }

    fn check(&self, operands: &[&Tensor]) -> Result<(), OpError> {
        let [inputs, outputs] = self.channels;
        if self.groups == 0 || inputs % self.groups != 0 || outputs % self.groups != 0 {
            let why = format!("{} groups of {inputs} and {outputs} channels", self.groups);
            return Err(Reason::attribute("groups", why).of(self.op, operands));
        }
        let dims = [self.batch, self.input[0], self.input[1], self.input[2], inputs];
        let wanted = Shape::new(dims).within(self.op, operands)?;
        if operands[0].elements() != wanted.elements() || operands[0].shape().last() != inputs {
            let wanted =
                format!("{} positions of {inputs} channels", wanted.elements().checked_div(inputs).unwrap_or(0));
            return Err(Reason::shape(operands[0].shape(), wanted).of(self.op, operands));
        }
        let size = self.depth().saturating_mul(outputs);
        Shape::new([size]).within(self.op, operands).map(|_| ())
    }

    /// Sets the output's length along these axes to the number of windows that fit into the input.
    fn slide(&mut self, axes: Range<usize>, operands: &[&Tensor]) -> Result<(), OpError> {
        for i in axes {
            self.output[i] = self.axes[i].windows(self.input[i], false).within(self.op, operands)?;
        }
        Ok(())
    }

    fn run(&self, input: &Tensor, weight: &Tensor, bias: Option<&Tensor>, out: DType) -> Result<Tensor, OpError> {
        let operands: Vec<&Tensor> = [input, weight].into_iter().chain(bias).collect();
        self.check(&operands)?;
        let weights = self.weights(weight).within(self.op, &operands)?;
        let bias = bias.map(|bias| self.bias(bias).within(self.op, &operands)).transpose()?;
        let image = as_f32(input);
        let outputs = self.channels[1];
        let positions = Shape::new([self.batch, self.output[0], self.output[1], self.output[2]]);
        let positions = positions.within(self.op, &operands)?.elements();
        let shape = Shape::new([1, 1, positions, outputs]).within(self.op, &operands)?;
        let direct = self.direct(&image, &weights);
        let block = positions.div_ceil(PIECES).next_multiple_of(direct::ROWS).clamp(direct::ROWS, BLOCK);
        Ok(produce::heavy(shape, out, block * outputs, |start, values| {
            let mut patch = Vec::new();
            for (i, results) in values.chunks_mut((block * outputs).max(1)).enumerate() {
                let first = start / outputs + i * block;
                match &direct {
                    Some(direct) => direct.compute(first, results),
                    None => self.block(&image, &weights, first, results, &mut patch),
                }
            }
            if let Some(bias) = &bias {
                for row in values.chunks_mut(outputs) {
                    row.iter_mut().zip(bias).for_each(|(v, b)| *v += b);
                }
            }
            if let Some(activation) = self.activation {
                activation.floats(values);
            }
        }))
    }

    /// The fast way, if there is anything to compute.
    fn direct<'a>(&self, image: &'a [f32], weights: &[f32]) -> Option<Direct<'a>> {
        let geometry = Geometry {
            batch: self.batch,
            input: self.input,
            output: self.output,
            axes: &self.axes,
            channels: self.channels,
            groups: self.groups,
            transposed: self.transposed,
            replicate: self.replicate,
        };
        let is_empty = self.depth() == 0 || self.channels[1] == 0 || image.is_empty();
        if is_empty { None } else { Direct::new(&geometry, image, weights) }
    }

    /// Results of the positions from `first` on, of an image whose edges would take much more
    /// memory than it does.
    fn block(&self, image: &[f32], weights: &[f32], first: usize, results: &mut [f32], patch: &mut Vec<f32>) {
        let outputs = self.channels[1];
        let (group_out, depth) = (outputs / self.groups, self.depth());
        if depth == 0 {
            // No channels: nothing to add to the zeros that are there.
            return;
        }
        let rows = results.len() / outputs;
        patch.clear();
        patch.resize(rows * depth * self.groups, 0.0);
        for (r, row) in patch.chunks_mut(depth * self.groups).enumerate() {
            self.gather(image, first + r, row);
        }
        for g in 0..self.groups {
            let a = Matrix::row_major(&patch[g * depth..], depth * self.groups);
            let b = Matrix::row_major(&weights[g * group_out..], outputs);
            gemm::multiply(rows, depth, group_out, a, b, &mut results[g * group_out..], outputs);
        }
    }

    /// Lays out the elements under the kernel at one result position: group by group, tap by tap,
    /// channel by channel.
    fn gather(&self, image: &[f32], position: usize, row: &mut [f32]) {
        let [_, height, width] = self.output;
        let inputs = self.channels[0];
        let group_in = inputs / self.groups;
        let depth = self.depth();
        let at = [position / (height * width) % self.output[0], position / width % height, position % width];
        let n = position / (self.output[0] * height * width);
        let kernel = self.axes.map(|a| a.kernel);
        let mut tap = 0;
        for d in 0..kernel[0] {
            let d = self.from(0, at[0], d);
            for h in 0..kernel[1] {
                let h = self.from(1, at[1], h);
                for w in 0..kernel[2] {
                    if let (Some(d), Some(h), Some(w)) = (d, h, self.from(2, at[2], w)) {
                        let pixel = ((n * self.input[0] + d) * self.input[1] + h) * self.input[2] + w;
                        let pixel = &image[pixel * inputs..(pixel + 1) * inputs];
                        for (g, channels) in pixel.chunks(group_in).enumerate() {
                            let to = g * depth + tap * group_in;
                            row[to..to + group_in].copy_from_slice(channels);
                        }
                    }
                    tap += 1;
                }
            }
        }
    }

    /// The weights as a row-major matrix `[taps * channels of a group, out channels]`.
    fn weights(&self, weight: &Tensor) -> Result<Vec<f32>, Reason> {
        let [inputs, outputs] = self.channels;
        let (group_in, group_out) = (inputs / self.groups, outputs / self.groups);
        let kernel = self.axes.map(|a| a.kernel);
        let taps: usize = kernel.iter().product();
        let dims = weight.shape().dims();
        let images = if dims.len() == 5 { &kernel[..] } else { &kernel[1..] };
        let framework: Vec<usize> = if self.transposed { [inputs, group_out] } else { [outputs, group_in] }
            .iter()
            .chain(images)
            .copied()
            .collect();
        let values = as_f32(weight);
        // conv1d has no second kernel axis: `[out, in / groups, k]`.
        let conv1d = dims.len() == 3 && kernel[2] == 1 && dims == &framework[..3];
        if dims != framework && !conv1d {
            let wanted = || format!("{framework:?} or [1x1x{}x{outputs}]", taps * group_in);
            return match self.prepared(&values, dims).or_else(|| self.narrow(&values, dims, taps)) {
                Some(matrix) => Ok(matrix),
                None => Err(Reason::shape(weight.shape(), wanted())),
            };
        }
        // From the framework's order to [tap, channel of the group, out].
        let view = if self.transposed {
            // [group, channel, out of the group, tap]; the out channel is group * group_out + out.
            View::new(
                [
                    (taps, 1),
                    (group_in, group_out * taps),
                    (self.groups, group_in * group_out * taps),
                    (group_out, taps),
                ]
                .map(|(n, s)| (n, s as isize)),
                0,
            )
        } else {
            View::new([(taps, 1), (group_in, taps), (outputs, group_in * taps)].map(|(n, s)| (n, s as isize)), 0)
        };
        Ok(produce::natives(values.len(), 1, |start, out: &mut [f32]| view.copy(&values, start, out)))
    }

    /// The matrix within prepared weights. What lies around it must be zeros: these are no other
    /// weights of the wrong size.
    fn prepared(&self, values: &[f32], dims: &[usize]) -> Option<Vec<f32>> {
        let outputs = self.channels[1];
        let [rows, columns] = last_two(dims).filter(|_| dims.len() >= 2)?;
        let depth = self.depth();
        if let Some(block) = self.block {
            return self.out_of_blocks(values, [rows, columns], block);
        }
        if rows < depth || columns < outputs {
            return None;
        }
        let empty = |part: &[f32]| part.iter().all(|&v| v == 0.0);
        let around = values.chunks(columns.max(1)).take(depth).all(|row| empty(&row[outputs..]));
        if !around || !empty(&values[depth * columns..]) {
            return None;
        }
        Some(values.chunks(columns.max(1)).take(depth).flat_map(|row| &row[..outputs]).copied().collect())
    }

    /// The matrix within the prepared weights of a volume, whose channels are in blocks.
    fn out_of_blocks(&self, values: &[f32], [rows, columns]: [usize; 2], block: usize) -> Option<Vec<f32>> {
        let [inputs, outputs] = self.channels;
        let (group_in, group_out) = (inputs / self.groups, (outputs / self.groups).max(1));
        let taps: usize = self.axes.iter().map(|a| a.kernel).product();
        let aligned = rows.checked_div(taps)?;
        let block = if block == 0 { aligned } else { block };
        if columns != outputs || aligned * taps != rows || aligned < inputs || block == 0 || aligned % block != 0 {
            return None;
        }
        let mut matrix = vec![0f32; taps * group_in * outputs];
        for (row, line) in matrix.chunks_mut(outputs.max(1)).enumerate() {
            let (tap, c) = (row / group_in, row % group_in);
            for (o, value) in line.iter_mut().enumerate() {
                let channel = o / group_out * group_in + c;
                *value = values[((channel / block * taps + tap) * block + channel % block) * outputs + o];
            }
        }
        Some(matrix)
    }

    /// The matrix of a volume's weights `[out, fewer channels, kd, kh, kw]`: compilers pad the
    /// input to 32 channels with zeros, for which the weights have none.
    fn narrow(&self, values: &[f32], dims: &[usize], taps: usize) -> Option<Vec<f32>> {
        let ([inputs, outputs], [out, channels, kernel @ ..]) = (self.channels, dims) else { return None };
        let fits = self.block.is_some() && self.groups == 1 && *out == outputs && *channels < inputs;
        if !fits || *kernel != self.axes.map(|a| a.kernel) {
            return None;
        }
        let mut matrix = vec![0f32; taps * inputs * outputs];
        for (at, &value) in values.iter().enumerate() {
            let (o, c, tap) = (at / (channels * taps), at / taps % channels, at % taps);
            matrix[(tap * inputs + c) * outputs + o] = value;
        }
        Some(matrix)
    }

    /// The bias of each output, from a vector or a padded row.
    fn bias(&self, bias: &Tensor) -> Result<Vec<f32>, Reason> {
        let (outputs, mut values) = (self.channels[1], bias.to_f32());
        let padded = values.len() > outputs
            && bias.shape().last() >= outputs
            && last_two(bias.shape().dims()).is_some()
            && values[outputs..].iter().all(|&v| v == 0.0);
        if values.len() != outputs && !padded {
            return Err(Reason::shape(bias.shape(), format!("{outputs} elements")));
        }
        values.truncate(outputs);
        Ok(values)
    }
}

impl Conv2d {
    fn plan(&self, op: &'static str) -> Plan {
        let [rows, columns] = self.window.axes();
        Plan {
            op,
            batch: self.batch,
            input: [1, self.input[0], self.input[1]],
            output: [1, 0, 0],
            axes: [Axis::UNIT, rows, columns],
            channels: [self.in_channels, self.out_channels],
            groups: self.groups,
            transposed: false,
            replicate: false,
            activation: self.activation,
            block: None,
        }
    }
}

/// Convolution of flat images `(.., n * h * w, c)`; the result is `(1, 1, n * h' * w', c')`.
pub fn conv2d(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    conv: &Conv2d,
    out: DType,
) -> Result<Tensor, OpError> {
    let mut plan = conv.plan("conv2d");
    plan.slide(1..3, &[input, weight])?;
    plan.run(input, weight, bias, out)
}

/// Transposed convolution of flat images. `output_padding` adds rows and columns to the end
/// of the result.
pub fn conv_transpose2d(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    conv: &Conv2d,
    output_padding: [usize; 2],
    out: DType,
) -> Result<Tensor, OpError> {
    let mut plan = conv.plan("conv_transpose2d");
    plan.transposed = true;
    for i in 1..3 {
        let extra = output_padding[i - 1].min(1 << 24);
        plan.output[i] = plan.axes[i].transposed(plan.input[i], extra).within(plan.op, &[input, weight])?;
    }
    plan.run(input, weight, bias, out)
}

/// Convolution along one axis. The input is `[n, l, c]` or flat; only the rows of `conv` count:
/// columns are 1. The result is `(1, 1, n * l', c')`.
pub fn conv1d(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    conv: &Conv2d,
    out: DType,
) -> Result<Tensor, OpError> {
    let mut plan = conv.plan("conv1d");
    plan.input[2] = 1;
    plan.axes[2] = Axis::UNIT;
    plan.slide(1..3, &[input, weight])?;
    plan.run(input, weight, bias, out)
}

/// Convolution of volumes, channels last; the result is `[n, d', h', w', c']`. Weights are
/// `[out, in / groups, kd, kh, kw]` or prepared.
pub fn conv3d(
    input: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    conv: &Conv3d,
    out: DType,
) -> Result<Tensor, OpError> {
    let axis = |i: usize| Axis {
        kernel: conv.kernel[i],
        stride: conv.stride[i],
        dilation: conv.dilation[i],
        before: conv.padding[i],
        after: conv.padding[i],
    };
    let mut plan = Plan {
        op: "conv3d",
        batch: conv.batch,
        input: conv.input,
        output: [0; 3],
        axes: [axis(0), axis(1), axis(2)],
        channels: [conv.in_channels, conv.out_channels],
        groups: conv.groups,
        transposed: false,
        replicate: conv.replicate,
        activation: None,
        block: Some(conv.block),
    };
    plan.slide(0..3, &[input, weight])?;
    let [d, h, w] = plan.output;
    let flat = plan.run(input, weight, bias, out)?;
    let shape = Shape::new([conv.batch, d, h, w, conv.out_channels]).within(plan.op, &[input, weight])?;
    Ok(flat.reshaped(shape))
}

/// Weights in the order that convolutions use, `[1, 1, kh * kw * in / groups, out]`
/// (`ttnn.prepare_conv2d_weights`; without the device's padding for alignment). `transposed`
/// weights are `[in, out / groups, kh, kw]`.
pub fn prepare_weights(weight: &Tensor, groups: usize, transposed: bool) -> Result<Tensor, OpError> {
    const OP: &str = "prepare_conv2d_weights";
    let [first, second, kh, kw] = *weight.shape().dims() else {
        return Err(Reason::shape(weight.shape(), "[out x in x rows x columns]").of(OP, &[weight]));
    };
    let of = |n: usize| n.checked_mul(groups).filter(|_| groups > 0);
    let channels = if transposed { of(second).map(|o| [first, o]) } else { of(second).map(|i| [i, first]) };
    let channels = channels.filter(|[i, o]| i % groups == 0 && o % groups == 0);
    let channels = channels
        .ok_or_else(|| Reason::attribute("groups", format!("{groups} of {first} channels")).of(OP, &[weight]))?;
    let axis = |kernel| Axis { kernel, ..Axis::UNIT };
    let plan = Plan {
        op: OP,
        batch: 1,
        input: [1; 3],
        output: [1; 3],
        axes: [Axis::UNIT, axis(kh), axis(kw)],
        channels,
        groups,
        transposed,
        replicate: false,
        activation: None,
        block: None,
    };
    let values = plan.weights(weight).within(OP, &[weight])?;
    let shape = Shape::new([1, 1, plan.depth(), channels[1]]).within(OP, &[weight])?;
    Tensor::from_f32(weight.dtype(), shape, &values)
}
