//! Convolutions over two dimensions, as products: the windows of the input are rows of a matrix,
//! the weights are its other operand.
//!
//! Channels are padded to whole tiles, rows of the image with what the window takes beyond it. The
//! rows of windows then are runs of the padded image, one for each row of the window.

use tilework_abi::eltwise::Function;
use tilework_model::ttnn::ops::conv::Conv2dOp;
use tilework_ops::{DType, Padding};

use super::rearrange::Part;
use super::{fused, matmul, norm};
use crate::recipe::{Of, Planned, Recipe, Task};

/// Rows and columns of a tile.
const TILE: usize = 32;

/// Lengths of a scratch tensor.
type Dims = Vec<usize>;

/// Lengths of a convolution.
struct Lengths {
    batch: usize,
    input: [usize; 2],
    padded: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    output: [usize; 2],
    before: [usize; 2],
    channels: usize,
    /// Channels in whole tiles.
    wide: usize,
    out: usize,
}

impl Lengths {
    fn of(op: &Conv2dOp) -> Result<Self, String> {
        let pair = |list: &[i32]| match *list {
            [a, b] => Ok([a as usize, b as usize]),
            _ => Err("other than two dimensions".to_owned()),
        };
        if op.groups != 1 || op.dilation.iter().any(|&n| n != 1) {
            return Err("groups or dilation".into());
        }
        let around = Padding::from_list(&op.padding).map_err(|reason| reason.to_string())?;
        let (kernel, stride) = (pair(&op.kernel_size)?, pair(&op.stride)?);
        let input = [op.input_height as usize, op.input_width as usize];
        let padded = [input[0] + around.top + around.bottom, input[1] + around.left + around.right];
        if (0..2).any(|k| stride[k] == 0 || kernel[k] == 0 || kernel[k] > padded[k]) {
            return Err("a window that does not fit".into());
        }
        let output = [0, 1].map(|k| (padded[k] - kernel[k]) / stride[k] + 1);
        let channels = op.in_channels as usize;
        Ok(Self {
            batch: op.batch_size as usize,
            input,
            padded,
            kernel,
            stride,
            output,
            before: [around.top, around.left],
            channels,
            wide: channels.next_multiple_of(TILE),
            out: op.out_channels as usize,
        })
    }

    /// The input with its padding, row by row.
    fn pad<'s>(&self, from: Of<'s>) -> (Dims, Part<'s>) {
        let ([height, width], [top, left], channels) = (self.input, self.before, self.channels);
        let [rows, columns] = self.padded;
        let (image, line) = (height * width * channels, width * channels);
        // Whole channels make long rows.
        if channels == self.wide {
            let low = [0, top, left * channels];
            let high = [self.batch, top + height, (left + width) * channels];
            let part = Part::between(from, 0, [&low, &high], &[image as i64, line as i64, 1]);
            return (vec![self.batch, rows, columns * channels], part);
        }
        let (low, high) = ([0, top, left, 0], [self.batch, top + height, left + width, channels]);
        let strides = [image as i64, line as i64, channels as i64, 1];
        let part = Part::between(from, 0, [&low, &high], &strides);
        (vec![self.batch, rows, columns, self.wide], part)
    }

    /// The windows, one a row: a part for each row of the window.
    fn windows<'s>(&self, from: Of<'s>) -> (Dims, Vec<Part<'s>>) {
        let [rows, columns] = self.padded;
        let (line, run) = (columns * self.wide, self.kernel[1] * self.wide);
        let [height, width] = self.output;
        let strides = [rows * line, self.stride[0] * line, self.stride[1] * self.wide, 1].map(|n| n as i64);
        let part = |k: usize| {
            let corners = [[0, 0, 0, k * run], [self.batch, height, width, (k + 1) * run]];
            Part::between(from, (k * line) as i64, [&corners[0], &corners[1]], &strides)
        };
        (vec![self.batch, height, width, self.kernel[0] * run], (0..self.kernel[0]).map(part).collect())
    }

    /// The weights, a matrix of input and output channels for each place of the window.
    fn weights<'s>(&self, from: Of<'s>) -> (Dims, Part<'s>) {
        let [rows, columns] = self.kernel;
        let places = rows * columns;
        let high = vec![rows, columns, self.channels, self.out];
        let strides = [columns, 1, places, self.channels * places].map(|n| n as i64).to_vec();
        let part = Part::whole(from, 0, &high, &strides);
        (high, part)
    }
}

pub(super) fn conv2d(op: &Conv2dOp, task: &Task<'_>) -> Planned {
    let (input, weight, result) = (task.operand(0)?, task.operand(1)?, task.result()?);
    let lengths = Lengths::of(op)?;
    let dtype = input.spec.dtype();
    let same = [weight.spec.logical_shape(), &[lengths.out, lengths.channels, lengths.kernel[0], lengths.kernel[1]]];
    if weight.spec.dtype() != dtype || same[0] != same[1] {
        return Err("prepared weights, or weights of another type".into());
    }
    let activation = op.conv2d_config.as_ref().and_then(|config| config.activation.as_ref());
    let after = activation.map(|of| fused::lines(std::slice::from_ref(of), 0)).transpose()?.unwrap_or_default();

    let mut recipe = Recipe::default();
    let (dims, part) = lengths.pad(input);
    let padded = recipe.rows(&dims, dtype)?;
    recipe.rearrange(vec![part], 0, padded.of(), task.site)?;
    let (dims, parts) = lengths.windows(padded.of());
    let windows = recipe.tiles(&dims, dtype)?;
    recipe.rearrange(parts, 0, windows.of(), task.site)?;
    let (dims, part) = lengths.weights(weight);
    let weights = recipe.tiles(&dims, dtype)?;
    recipe.rearrange(vec![part], 0, weights.of(), task.site)?;

    let dims = [lengths.batch, lengths.output[0], lengths.output[1], lengths.out];
    let plain = after.is_empty() && op.bias.is_none();
    let sums = recipe.tiles(&dims, if plain { result.spec.dtype() } else { DType::F32 })?;
    let [rows, inner] = windows.of().spec.shape_in_pages();
    let [_, columns] = weights.of().spec.shape_in_pages();
    let whole = matmul::Shape { batch: 1, rows, inner, columns };
    let of = [windows.of(), weights.of(), sums.of()];
    recipe.stages.extend(matmul::product_of(whole, of, op.compute_config.as_ref(), task.site)?);
    if plain {
        recipe.same_elements(sums.of(), result, task.site)?;
        return Ok(recipe);
    }
    let ends = recipe.tiles(&dims, result.spec.dtype())?;
    let mut others = Vec::new();
    if op.bias.is_some() {
        others.push((task.operand(2)?, vec![norm::two(Function::Add, 0, 1)]));
    }
    recipe.stages.push(norm::rows("conv-end", (sums.of(), ends.of()), others, after, task.site)?);
    recipe.same_elements(ends.of(), result, task.site)?;
    Ok(recipe)
}
