//! Convolutions as products: the windows of the input are rows of a matrix, the weights are its
//! other operand. Groups are products of their own; where each channel is one, windows are
//! multiplied element by element.
//!
//! In bfloat16, over rows and columns and with one group, one program gathers the windows and
//! multiplies them (`gathered`). Otherwise there is one after the other:
//! channels are padded to whole tiles, the image with what windows take beyond it. Where the
//! elements of a window's row are neighbours, windows then are runs of the padded image, one for
//! each row of the window. A transposed convolution is one over an image with zeros between its
//! elements.

use tilework_abi::eltwise::Function;
use tilework_abi::rearrange::BOXES;
use tilework_model::ttnn::ops::conv::{Conv1dOp, Conv2dConfig, Conv2dOp, Conv3dOp, ConvTranspose2dOp};
use tilework_model::ttnn::ops::fused::DeviceComputeKernelConfig;
use tilework_ops::{DType, Padding};

use super::rearrange::{Part, strides};
use super::reduction::{By, Reduce};
use super::stage::Line;
use super::weights::{self, Weights};
use super::window::{Axis, Images};
use super::{eltwise, fused, gathered, matmul, norm, tiles};
use crate::recipe::{Made, Of, Planned, Recipe, Site, Task};

/// Rows and columns of a tile.
const TILE: usize = 32;
/// Bytes of a row of a padded image that is a page of its own.
const ROW: usize = 64 << 10;

/// A convolution over depth, rows and columns.
struct Conv<'o> {
    batch: usize,
    axes: [Axis; 3],
    /// Elements of the padded image along each of them.
    canvas: [usize; 3],
    /// Where in it the image begins; before it, if its first elements are in no window.
    begin: [i64; 3],
    channels: usize,
    out: usize,
    groups: usize,
    after: Vec<Line>,
    /// The type that weights and bias are rounded to.
    rounded: Option<DType>,
    config: Option<&'o DeviceComputeKernelConfig>,
}

fn list<const N: usize>(numbers: &[i32]) -> Result<[usize; N], String> {
    let all: Option<Vec<usize>> = numbers.iter().map(|&n| usize::try_from(n).ok()).collect();
    all.and_then(|all| all.try_into().ok()).ok_or_else(|| format!("other than {N} dimensions"))
}

/// The functions behind a convolution, and the type of its weights.
fn configured(config: Option<&Conv2dConfig>) -> Result<(Vec<Line>, Option<DType>), String> {
    let activation = config.and_then(|config| config.activation.as_ref());
    let after = activation.map(|of| fused::lines(std::slice::from_ref(of), 0)).transpose()?.unwrap_or_default();
    Ok((after, config.and_then(|config| config.weights_dtype).map(DType::from)))
}

impl<'o> Conv<'o> {
    /// With so many windows as fit.
    fn of(batch: u32, axes: [Axis; 3], [channels, out, groups]: [u32; 3]) -> Result<Self, String> {
        let [a, b, c] = axes;
        let axes = [a.windows(false)?, b.windows(false)?, c.windows(false)?];
        let (channels, out, groups) = (channels as usize, out as usize, groups as usize);
        if groups == 0 || !channels.is_multiple_of(groups) || !out.is_multiple_of(groups) {
            return Err("groups that do not divide the channels".into());
        }
        let (canvas, begin) = (axes.map(|axis| axis.canvas()), axes.map(|axis| axis.before as i64));
        let (batch, after) = (batch as usize, Vec::new());
        Ok(Self { batch, axes, canvas, begin, channels, out, groups, after, rounded: None, config: None })
    }

    fn taps(&self) -> usize {
        self.axes.iter().map(|axis| axis.kernel).product()
    }

    /// Images, and rows of the result's matrix.
    fn output(&self) -> [usize; 3] {
        let [depth, rows, columns] = self.axes.map(|axis| axis.output);
        match self.axes[0] == Axis::ONE {
            true => [self.batch, rows, columns],
            false => [self.batch, depth, rows * columns],
        }
    }

    /// The input with its padding, in rows of channels that go on with zeros.
    fn padded(&self, from: Of<'_>, wide: usize, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
        let (lengths, channels) = (self.axes.map(|axis| axis.length), self.channels);
        let source = strides(&[self.batch, lengths[0], lengths[1], lengths[2], channels]);
        let (mut low, mut high, mut base) = (vec![0], vec![self.batch], 0);
        for k in 0..3 {
            let end = self.begin[k] + lengths[k] as i64;
            low.push(self.begin[k].max(0) as usize);
            high.push(usize::try_from(end).unwrap_or(0).min(self.canvas[k]));
            base += (-self.begin[k]).max(0) * source[k + 1];
        }
        let mut dims = vec![self.batch, self.canvas[0], self.canvas[1], self.canvas[2], wide];
        let mut steps = source;
        (low, high) = (low.into_iter().chain([0]).collect(), high.into_iter().chain([channels]).collect());
        // Whole channels make long rows.
        let size = from.spec.dtype().bytes().unwrap_or(4);
        if channels == wide && self.canvas[2] * wide * size <= ROW {
            let (column, row) = (3, 4);
            (low[column], high[column], dims[column]) = (low[3] * wide, high[3] * wide, dims[3] * wide);
            steps[column] = 1;
            for list in [&mut low, &mut high, &mut dims] {
                list.truncate(row);
            }
            steps.truncate(row);
        }
        let made = recipe.rows(&dims, from.spec.dtype())?;
        let part = Part::between(from, base, [&low, &high], &steps);
        recipe.rearrange(vec![part], 0, made.of(), site)?;
        Ok(made)
    }

    /// Windows of a padded image, one behind the other, each with its elements in order of the
    /// dimensions and then channels; in rows of a part of a window, or in tiles of whole ones.
    fn windows(
        &self,
        from: Of<'_>,
        wide: usize,
        tiled: bool,
        recipe: &mut Recipe,
        site: &Site,
    ) -> Result<Made, String> {
        let ([depth, rows, columns], [deep, high, across]) = (self.axes, self.canvas);
        let dtype = from.spec.dtype();
        let planes = self.batch * deep;
        let run = columns.kernel * wide;
        // Elements from one row of the image to the next, and from window to window.
        let (mut line, mut step) = (across * wide, columns.stride * wide);
        let mut spaced = None;
        if columns.dilation != 1 {
            let dims = [planes * high, columns.output, columns.kernel, wide];
            let steps = [line, step, columns.dilation * wide, 1].map(|n| n as i64);
            let made = recipe.rows(&dims, dtype)?;
            recipe.rearrange(vec![Part::whole(from, 0, &dims, &steps)], 0, made.of(), site)?;
            (line, step) = (columns.output * run, run);
            spaced = Some(made);
        }
        let from = spaced.as_ref().map_or(from, Made::of);
        let flat = self.axes[0] == Axis::ONE;
        if flat && tiled && rows.kernel <= BOXES {
            let steps = [high * line, rows.stride * line, step, 1].map(|n| n as i64);
            let part = |k: usize| {
                let corners = [[0, 0, 0, k * run], [planes, rows.output, columns.output, (k + 1) * run]];
                Part::between(from, (k * rows.dilation * line) as i64, [&corners[0], &corners[1]], &steps)
            };
            let made = recipe.tiles(&[planes, rows.output, columns.output, rows.kernel * run], dtype)?;
            recipe.rearrange((0..rows.kernel).map(part).collect(), 0, made.of(), site)?;
            return Ok(made);
        }
        let dims = [planes, rows.output, columns.output, rows.kernel, run];
        let steps = [high * line, rows.stride * line, step, rows.dilation * line, 1].map(|n| n as i64);
        let mut made = recipe.rows(&dims, dtype)?;
        recipe.rearrange(vec![Part::whole(from, 0, &dims, &steps)], 0, made.of(), site)?;
        let (places, run) = (rows.output * columns.output, rows.kernel * run);
        if !flat {
            let dims = [self.batch, depth.output, places, depth.kernel, run];
            let plane = places * run;
            let steps = [deep * plane, depth.stride * plane, run, depth.dilation * plane, 1].map(|n| n as i64);
            let all = recipe.rows(&dims, dtype)?;
            recipe.rearrange(vec![Part::whole(made.of(), 0, &dims, &steps)], 0, all.of(), site)?;
            made = all;
        }
        if !tiled {
            return Ok(made);
        }
        let [a, b, c] = self.output();
        let whole = recipe.tiles(&[a, b, c, depth.kernel * run], dtype)?;
        recipe.same_elements(made.of(), whole.of(), site)?;
        Ok(whole)
    }

    /// All programs. Operands are the input, the weights and the bias.
    fn plan(&self, weights: Weights, bias: bool, task: &Task<'_>) -> Planned {
        self.of_image(Recipe::default(), task.operand(0)?, weights, bias, task)
    }

    /// The same of an image that a recipe makes.
    fn of_image(&self, mut recipe: Recipe, input: Of<'_>, weights: Weights, bias: bool, task: &Task<'_>) -> Planned {
        let (result, site) = (task.result()?, task.site);
        let count = |of: &Of<'_>| of.spec.logical_shape().iter().product::<usize>();
        let image = self.axes.iter().map(|axis| axis.length).product::<usize>();
        let made = self.output().iter().product::<usize>() * self.out;
        if count(&input) != self.batch * image * self.channels || count(&result) != made || made == 0 {
            return Err("images of other sides".into());
        }
        let ends_here = !bias && self.after.is_empty();
        if ends_here && self.gathered(input, weights, result, &mut recipe, task)? {
            return Ok(recipe);
        }
        let sums = self.sums(input, weights, bias, &mut recipe, task)?;
        let dims = sums.of().spec.logical_shape().to_vec();
        if ends_here && sums.of().spec.dtype() == result.spec.dtype() {
            recipe.same_elements(sums.of(), result, site)?;
            return Ok(recipe);
        }
        let direct = result.spec.logical_shape() == dims && tiles::in_dram(result.spec).is_ok();
        let aside = (!direct).then(|| recipe.tiles(&dims, result.spec.dtype())).transpose()?;
        let ends = aside.as_ref().map_or(result, Made::of);
        let bias = match bias {
            true => {
                let of = task.operand(2)?;
                let made = recipe.tiles(&[1, self.out], of.spec.dtype())?;
                recipe.rearrange(vec![Part::whole(of, 0, &[1, self.out], &[0, 1])], 0, made.of(), site)?;
                Some(self.round(made, &mut recipe, site)?)
            }
            false => None,
        };
        let others = bias.iter().map(|bias| (bias.of(), vec![norm::two(Function::Add, 0, 1)])).collect();
        let stage = norm::rows("conv-end", (sums.of(), ends), others, self.after.clone(), site)?;
        recipe.stages.push(stage);
        if aside.is_some() {
            recipe.same_elements(ends, result, site)?;
        }
        Ok(recipe)
    }

    /// Adds one program for all sums of products, if it can make the result as it is, a matrix with
    /// a row for each window.
    fn gathered(
        &self,
        input: Of<'_>,
        weights: Weights,
        result: Of<'_>,
        recipe: &mut Recipe,
        task: &Task<'_>,
    ) -> Result<bool, String> {
        let [_, rows, columns] = self.axes;
        let flat = self.groups == 1 && self.axes[0] == Axis::ONE;
        let windows = gathered::windows(self.batch, [rows, columns], [self.begin[1], self.begin[2]]);
        let (Some(windows), true) = (windows, flat) else { return Ok(false) };
        let weight = task.operand(1)?;
        if self.rounded.unwrap_or(weight.spec.dtype()) != DType::BF16 {
            return Ok(false);
        }
        let count = self.output().iter().product();
        if !gathered::is_matrix(result.spec, count, self.out) {
            return Ok(false);
        }
        let asked = gathered::Asked { windows, channels: self.channels, out: self.out, config: self.config };
        let Some(plan) = asked.plan(input.spec, result.spec, task.site) else { return Ok(false) };
        let made = self.weights(weight, weights, recipe, task)?;
        let weight = made.as_ref().map_or(weight, Made::of);
        plan.add(recipe, [input, weight, result], task.site)?;
        Ok(true)
    }

    /// Weights of one group as a matrix in tiles: a row for each element of the window and channel,
    /// those of an element in whole tiles; none if they are one already.
    fn weights(
        &self,
        weight: Of<'_>,
        weights: Weights,
        recipe: &mut Recipe,
        task: &Task<'_>,
    ) -> Result<Option<Made>, String> {
        let site = task.site;
        let dims = [self.taps(), self.channels, self.out];
        let (dtype, steps) = (weight.spec.dtype(), [weights.tap, weights.channel, weights.out]);
        let as_is = strides(&dims) == steps && weights.base == 0 && weights.block.is_none();
        let whole = self.channels.is_multiple_of(TILE) && weight.spec.logical_shape().last() == Some(&self.out);
        let same_type = self.rounded.is_none_or(|rounded| rounded == dtype);
        if as_is && whole && same_type && matrix_of(weight, dims[0] * dims[1]) {
            return Ok(None);
        }
        let Some((block, step)) = weights.block else {
            let made = if task.is_on_host(1) && dtype.bytes().is_some() {
                recipe.prepare((1, dtype), &dims, (weights.base, &steps))?
            } else {
                let made = recipe.tiles(&dims, dtype)?;
                recipe.rearrange(vec![Part::whole(weight, weights.base, &dims, &steps)], 0, made.of(), site)?;
                made
            };
            return self.round(made, recipe, site).map(Some);
        };
        // A dimension for blocks of channels first.
        let made = recipe.tiles(&dims, dtype)?;
        let blocks = self.channels.div_ceil(block);
        let apart = [dims[0], blocks, block, self.out];
        let rows = recipe.rows(&apart, dtype)?;
        let steps = [weights.tap, step, weights.channel, weights.out];
        recipe.rearrange(vec![Part::whole(weight, weights.base, &apart, &steps)], 0, rows.of(), site)?;
        let steps = [(blocks * block * self.out) as i64, self.out as i64, 1];
        recipe.rearrange(vec![Part::whole(rows.of(), 0, &dims, &steps)], 0, made.of(), site)?;
        self.round(made, recipe, site).map(Some)
    }

    /// Weights or bias in the type that they are rounded to.
    fn round(&self, made: Made, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
        let Some(dtype) = self.rounded.filter(|&dtype| dtype != made.of().spec.dtype()) else { return Ok(made) };
        let rounded = recipe.tiles(made.of().spec.logical_shape(), dtype)?;
        eltwise::cast_to(recipe, made.of(), rounded.of(), site)?;
        Ok(rounded)
    }

    /// The sums of products, in the result's type if nothing follows.
    fn sums(
        &self,
        input: Of<'_>,
        weights: Weights,
        bias: bool,
        recipe: &mut Recipe,
        task: &Task<'_>,
    ) -> Result<Made, String> {
        let (weight, site) = (task.operand(1)?, task.site);
        let dtype = if bias || !self.after.is_empty() { DType::F32 } else { task.result()?.spec.dtype() };
        if self.groups > 1 {
            let alone = self.groups == self.channels && self.groups == self.out && self.axes[0] == Axis::ONE;
            let by_element = alone && self.begin[1..].iter().all(|&n| n >= 0);
            return match by_element {
                true => self.each_channel(input, (weight, weights), recipe, site),
                false => self.of_groups(input, (weight, weights), recipe, site),
            };
        }
        let matrix = recipe.tiles(&[1, 1, self.output().iter().product(), self.out], dtype)?;
        if self.gathered(input, weights, matrix.of(), recipe, task)? {
            return Ok(matrix);
        }
        recipe.scratch.pop();
        let wide = self.channels.next_multiple_of(TILE);
        let padded = self.padded(input, wide, recipe, site)?;
        let windows = self.windows(padded.of(), wide, true, recipe, site)?;
        let made = self.weights(weight, weights, recipe, task)?;
        let made = made.as_ref().map_or(weight, Made::of);
        let [a, b, c] = self.output();
        let sums = recipe.tiles(&[a, b, c, self.out], dtype)?;
        let [rows, inner] = windows.of().spec.shape_in_pages();
        let [_, columns] = made.spec.shape_in_pages();
        let whole = matmul::Shape { batch: 1, rows, inner, columns };
        recipe.product(whole, [windows.of(), made, sums.of()], self.config, site)?;
        Ok(sums)
    }

    /// A product for each group.
    fn of_groups(
        &self,
        input: Of<'_>,
        (weight, by): (Of<'_>, Weights),
        recipe: &mut Recipe,
        site: &Site,
    ) -> Result<Made, String> {
        let (taps, groups) = (self.taps(), self.groups);
        let [width, out] = [self.channels / groups, self.out / groups];
        let places = self.output().iter().product::<usize>();
        let padded = self.padded(input, self.channels, recipe, site)?;
        let windows = self.windows(padded.of(), self.channels, false, recipe, site)?;
        // From windows of all channels to those of a group.
        let dims = [groups, places, taps, width];
        let steps = [width, taps * self.channels, self.channels, 1].map(|n| n as i64);
        let a = recipe.tiles(&[groups, places, taps * width], input.spec.dtype())?;
        recipe.strided((windows.of(), 0), (&dims, &steps), a.of(), site)?;
        let b = recipe.tiles(&[groups, taps * width, out], weight.spec.dtype())?;
        let steps = [by.group, by.tap, by.channel, by.out];
        recipe.strided((weight, by.base), (&[groups, taps, width, out], &steps), b.of(), site)?;
        let b = self.round(b, recipe, site)?;
        let y = recipe.tiles(&[groups, places, out], DType::F32)?;
        matmul::multiply(recipe, [a.of(), b.of()], y.of(), self.config, site)?;
        // Groups become channels again.
        let dims = [places, groups, out];
        let steps = [out, places * out, 1].map(|n| n as i64);
        let [a, b, c] = self.output();
        let sums = recipe.tiles(&[a, b, c, self.out], DType::F32)?;
        recipe.strided((y.of(), 0), (&dims, &steps), sums.of(), site)?;
        Ok(sums)
    }

    /// Windows of each channel, multiplied element by element.
    fn each_channel(
        &self,
        input: Of<'_>,
        (weight, by): (Of<'_>, Weights),
        recipe: &mut Recipe,
        site: &Site,
    ) -> Result<Made, String> {
        let [_, rows, columns] = self.axes;
        let images = Images { batch: self.batch, axes: [rows, columns], channels: self.channels };
        let padded = self.padded(input, self.channels, recipe, site)?;
        let windows = images.taps(recipe, padded.of(), site)?;
        let dims = [rows.kernel, columns.kernel, 1, 1, 1, self.channels];
        let factors = recipe.tiles(&dims, weight.spec.dtype())?;
        let steps = [by.tap * columns.kernel as i64, by.tap, 0, 0, 0, by.group];
        recipe.rearrange(vec![Part::whole(weight, by.base, &dims, &steps)], 0, factors.of(), site)?;
        let factors = self.round(factors, recipe, site)?;
        let [batch, height, width] = self.output();
        let sums = recipe.tiles(&[1, 1, batch, height, width, self.channels], DType::F32)?;
        let reduce = Reduce {
            name: "conv-channels",
            operands: vec![windows.of(), factors.of()],
            before: vec![norm::two(Function::Multiply, 1, 2)],
            by: By::Sum,
            reduced: vec![true, true, false, false, false, false],
            after: Vec::new(),
            result: sums.of(),
        };
        reduce.add(recipe, site)?;
        Ok(sums)
    }
}

/// Whether weights are a matrix of so many rows in tiles in DRAM.
fn matrix_of(weight: Of<'_>, rows: usize) -> bool {
    let columns = weight.spec.logical_shape().last().copied().unwrap_or(0);
    gathered::is_matrix(weight.spec, rows, columns)
}

fn axis(length: u32, [kernel, stride, dilation]: [usize; 3], [before, after]: [usize; 2]) -> Axis {
    Axis { length: length as usize, kernel, dilation, stride, before, after, output: 0 }
}

pub(super) fn conv2d(op: &Conv2dOp, task: &Task<'_>) -> Planned {
    let around = Padding::from_list(&op.padding).map_err(|reason| reason.to_string())?;
    let [kernel, stride, dilation] = [list::<2>(&op.kernel_size)?, list(&op.stride)?, list(&op.dilation)?];
    let of = |k: usize| [kernel[k], stride[k], dilation[k]];
    let rows = axis(op.input_height, of(0), [around.top, around.bottom]);
    let columns = axis(op.input_width, of(1), [around.left, around.right]);
    let conv = Conv::of(op.batch_size, [Axis::ONE, rows, columns], [op.in_channels, op.out_channels, op.groups])?;
    let (after, rounded) = configured(op.conv2d_config.as_ref())?;
    let conv = Conv { after, rounded, config: op.compute_config.as_ref(), ..conv };
    let weights = weights::plain(task.operand(1)?, [conv.out, conv.channels, conv.groups], &kernel)?;
    conv.plan(weights, op.bias.is_some(), task)
}

/// A convolution along one dimension, which are columns of one row.
pub(super) fn conv1d(op: &Conv1dOp, task: &Task<'_>) -> Planned {
    let ends = match *op.padding {
        [both] => list(&[both, both])?,
        _ => list::<2>(&op.padding)?,
    };
    let kernel = op.kernel_size as usize;
    let columns = axis(op.input_length, [kernel, op.stride as usize, op.dilation as usize], ends);
    let axes = [Axis::ONE, Axis::ONE, columns];
    let conv = Conv::of(op.batch_size, axes, [op.in_channels, op.out_channels, op.groups])?;
    let (after, rounded) = configured(op.conv2d_config.as_ref())?;
    let conv = Conv { after, rounded, config: op.compute_config.as_ref(), ..conv };
    let weights = weights::plain(task.operand(1)?, [conv.out, conv.channels, conv.groups], &[kernel])?;
    conv.plan(weights, op.bias.is_some(), task)
}

pub(super) fn conv3d(op: &Conv3dOp, task: &Task<'_>) -> Planned {
    if !matches!(op.padding_mode.as_str(), "zeros" | "") {
        return Err(format!("padding by {:?}", op.padding_mode));
    }
    let dilation = if op.dilation.is_empty() { [1; 3] } else { list::<3>(&op.dilation)? };
    let [kernel, stride, around] = [list::<3>(&op.kernel_size)?, list(&op.stride)?, list(&op.padding)?];
    let of = |k: usize, length| axis(length, [kernel[k], stride[k], dilation[k]], [around[k]; 2]);
    let axes = [of(0, op.input_depth), of(1, op.input_height), of(2, op.input_width)];
    let conv = Conv::of(op.batch_size, axes, [op.in_channels, op.out_channels, op.groups])?;
    let rounded = op.conv3d_config.as_ref().and_then(|config| config.weights_dtype).map(DType::from);
    let conv = Conv { rounded, config: op.compute_config.as_ref(), ..conv };
    let block = op.conv3d_config.as_ref().and_then(|config| config.c_in_block).unwrap_or(0) as usize;
    let sides = [conv.out, conv.channels, conv.groups];
    match weights::prepared_volume(task.operand(1)?, sides, &kernel, block) {
        // Prepared weights of several groups have zeros for the channels of others.
        Some(weights) => Conv { groups: 1, ..conv }.plan(weights, op.bias.is_some(), task),
        None => conv.plan(weights::plain(task.operand(1)?, sides, &kernel)?, op.bias.is_some(), task),
    }
}

/// Four numbers of padding are top, left, bottom and right.
pub(super) fn transposed(op: &ConvTranspose2dOp, task: &Task<'_>) -> Planned {
    let [kernel, stride, dilation] = [list::<2>(&op.kernel_size)?, list(&op.stride)?, list(&op.dilation)?];
    let (before, after) = match *op.padding {
        [rows, columns] => (list::<2>(&[rows, columns])?, list::<2>(&[rows, columns])?),
        [top, left, bottom, right] => (list(&[top, left])?, list::<2>(&[bottom, right])?),
        _ => return Err("padding of other sides".into()),
    };
    let (extra, lengths) = (list::<2>(&op.output_padding)?, [op.input_height as usize, op.input_width as usize]);
    if stride.contains(&0) || lengths.contains(&0) || kernel.contains(&0) {
        return Err("a window without elements or steps".into());
    }
    let (mut axes, mut canvas, mut begin) = ([Axis::ONE; 3], [1; 3], [0; 3]);
    for k in 0..2 {
        let reach = (kernel[k] - 1) * dilation[k];
        let output = ((lengths[k] - 1) * stride[k] + reach + extra[k] + 1).checked_sub(before[k] + after[k]);
        let output = output.filter(|&n| n > 0).ok_or("padding that leaves nothing")?;
        let length = lengths[k] * stride[k];
        axes[k + 1] = Axis { length, kernel: kernel[k], dilation: dilation[k], stride: 1, before: 0, after: 0, output };
        (canvas[k + 1], begin[k + 1]) = (output + reach, reach as i64 - before[k] as i64);
    }
    let (after, rounded) = configured(op.conv2d_config.as_ref())?;
    let [batch, channels, out, groups] =
        [op.batch_size, op.in_channels, op.out_channels, op.groups].map(|n| n as usize);
    if groups == 0 || !channels.is_multiple_of(groups) || !out.is_multiple_of(groups) {
        return Err("groups that do not divide the channels".into());
    }
    let config = op.compute_config.as_ref();
    let conv = Conv { batch, axes, canvas, begin, channels, out, groups, after, rounded, config };
    let weights = weights::turned(task.operand(1)?, [out, channels, groups], &kernel)?;
    if stride == [1, 1] {
        return conv.plan(weights, op.bias.is_some(), task);
    }
    spaced(&conv, (lengths, stride), weights, op.bias.is_some(), task)
}

/// A convolution over an image with zeros between its elements.
fn spaced(
    conv: &Conv<'_>,
    ([height, width], [rows, columns]): ([usize; 2], [usize; 2]),
    weights: Weights,
    bias: bool,
    task: &Task<'_>,
) -> Planned {
    let input = task.operand(0)?;
    let dims = [conv.batch, height, rows, width, columns, conv.channels];
    if input.spec.logical_shape().iter().product::<usize>() != conv.batch * height * width * conv.channels {
        return Err("images of other sides".into());
    }
    let mut recipe = Recipe::default();
    let made = recipe.rows(&dims, input.spec.dtype())?;
    let high = [conv.batch, height, 1, width, 1, conv.channels];
    let steps = [height * width * conv.channels, width * conv.channels, 0, conv.channels, 0, 1].map(|n| n as i64);
    recipe.rearrange(vec![Part::between(input, 0, [&[0; 6], &high], &steps)], 0, made.of(), task.site)?;
    conv.of_image(recipe, made.of(), weights, bias, task)
}
