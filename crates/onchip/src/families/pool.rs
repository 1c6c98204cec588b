//! Pools: windows of images, a tensor of their own, are reduced.

use tilework_abi::eltwise::{Function, Step};
use tilework_model::ttnn::ops::pool::{
    GlobalAvgPool2dOp, MaxPool2dWithIndicesOp, Pool2dExtraParams, Pool2dOp, Pool2dOpType, Scale2D, UpsampleOp,
};
use tilework_ops::DType;
use tilework_runtime::tensor::TensorSpec;

use super::eltwise::{self, is_integer};
use super::movement::word;
use super::norm::{self, one, two};
use super::rearrange::{Part, strides};
use super::reduction::{self, By, Reduce};
use super::stage::Line;
use super::window::{Axis, Images, equal};
use crate::recipe::{Made, Of, Planned, Recipe, Site, Task, Which};

/// Two numbers of a file.
fn pair(list: &[i32]) -> Result<[usize; 2], String> {
    match *list {
        [a, b] if a >= 0 && b >= 0 => Ok([a as usize, b as usize]),
        _ => Err("other than two dimensions".into()),
    }
}

/// The attributes of a pool: images, rows, columns and channels; sides, steps, padding and dilation
/// of windows; whether windows that do not fit count.
type Attributes<'o> = ([u32; 4], [&'o [i32]; 4], bool);

/// The windows of a pool. Four numbers of padding are top, left, bottom and right.
fn images(
    ([batch, height, width, channels], [kernel, stride, padding, dilation], ceil): Attributes<'_>,
) -> Result<Images, String> {
    let (kernel, stride) = (pair(kernel)?, pair(stride)?);
    let dilation = if dilation.is_empty() { [1, 1] } else { pair(dilation)? };
    let (before, after) = match *padding {
        [rows, columns] => (pair(&[rows, columns])?, pair(&[rows, columns])?),
        [top, left, bottom, right] => (pair(&[top, left])?, pair(&[bottom, right])?),
        _ => return Err("padding of other sides".into()),
    };
    let length = [height as usize, width as usize];
    let axis = |k: usize| {
        let (length, kernel, dilation, stride) = (length[k], kernel[k], dilation[k], stride[k]);
        let axis = Axis { length, kernel, dilation, stride, before: before[k], after: after[k], output: 0 };
        axis.windows(ceil)
    };
    Ok(Images { batch: batch as usize, axes: [axis(0)?, axis(1)?], channels: channels as usize })
}

/// Whether an operand has these images, and a result their windows.
fn fits(images: &Images, input: Of<'_>, results: &[TensorSpec]) -> Result<(), String> {
    let count = |spec: &TensorSpec| spec.logical_shape().iter().product::<usize>();
    let [rows, columns] = images.axes;
    let all = images.batch * images.channels * rows.length * columns.length;
    let windows = images.output().iter().product::<usize>();
    if count(input.spec) != all || results.iter().any(|result| count(result) != windows) {
        return Err("images of other sides".into());
    }
    Ok(())
}

/// The largest element of each window, and which of its image's it is: the first of several.
pub(super) fn largest_with_places(op: &MaxPool2dWithIndicesOp, task: &Task<'_>) -> Planned {
    /// More than the number of any element.
    const NONE: f32 = 16_777_216.0;
    let (input, site) = (task.operand(0)?, task.site);
    let [values, places] = task.results else { return Err("other than two results".into()) };
    let sides = [op.batch_size, op.input_height, op.input_width, op.channels];
    let images = images((sides, [&op.kernel_size, &op.stride, &op.padding, &op.dilation], op.ceil_mode))?;
    fits(&images, input, task.results)?;
    let (dtype, [height, width]) = (input.spec.dtype(), images.axes.map(|axis| axis.length));
    if is_integer(dtype) || is_integer(values.dtype()) || !is_integer(places.dtype()) {
        return Err(format!("windows of elements of type {}", dtype.name()));
    }
    if (height * width) as f32 >= NONE {
        return Err("images of too many elements".into());
    }
    let mut recipe = Recipe::default();
    let windows = taps(&images, input, word(dtype, f32::NEG_INFINITY)?, &mut recipe, site)?;
    let largest = folded(windows.of(), By::Max, None, dtype, &mut recipe, site)?;
    // Windows of the numbers of an image's elements.
    let count = recipe.count_up(height * width, site)?;
    let tiled = recipe.in_tiles(count.of(), &[1, height * width], site)?;
    let numbers = recipe.tiles(&[1, height * width], DType::F32)?;
    eltwise::cast_to(&mut recipe, tiled.of(), numbers.of(), site)?;
    let image = recipe.rows(&[height, width], DType::F32)?;
    recipe.same_elements(numbers.of(), image.of(), site)?;
    let alone = Images { batch: 1, axes: images.axes, channels: 1 };
    let numbers = taps(&alone, image.of(), NONE.to_bits(), &mut recipe, site)?;
    // Which elements are not the largest: a NaN is if there is one.
    let differs = recipe.tiles(windows.of().spec.logical_shape(), DType::F32)?;
    let copied = Line::plain(Step::new(Function::Copy).of(0, 0, 0).to(2));
    let steps = vec![
        copied,
        one(Function::IsNan, 2, 0.0),
        two(Function::NotEqual, 0, 1),
        one(Function::Fill, 3, 0.0),
        Line::plain(Step::new(Function::Where).of(2, 3, 0).to(0)),
    ];
    let others = vec![(largest.of(), steps)];
    recipe.stages.push(norm::rows("pool-differs", (windows.of(), differs.of()), others, Vec::new(), site)?);
    // The least number of those that are.
    let before = vec![one(Function::Scale, 1, NONE), two(Function::Add, 1, 2)];
    let reduced = vec![true, true, false, false, false, false];
    let found = recipe.tiles(&reduction::kept(windows.of().spec.logical_shape(), &reduced), DType::F32)?;
    let operands = vec![differs.of(), numbers.of()];
    let (name, by, after, result) = ("pool-places", By::Min, Vec::new(), found.of());
    Reduce { name, operands, before, by, reduced, after, result }.add(&mut recipe, site)?;
    for (i, (made, to)) in [(&largest, values), (&found, places)].into_iter().enumerate() {
        let result = Of { which: Which::Result(i), spec: to };
        if made.of().spec.dtype() == to.dtype() {
            recipe.same_elements(made.of(), result, site)?;
            continue;
        }
        let cast = recipe.tiles(made.of().spec.logical_shape(), to.dtype())?;
        eltwise::cast_to(&mut recipe, made.of(), cast.of(), site)?;
        recipe.same_elements(cast.of(), result, site)?;
    }
    Ok(recipe)
}

pub(super) fn pool2d(op: &Pool2dOp, task: &Task<'_>) -> Planned {
    let sides = [op.batch_size, op.input_height, op.input_width, op.channels];
    let images = images((sides, [&op.kernel_size, &op.stride, &op.padding, &op.dilation], op.ceil_mode))?;
    task.result()?;
    fits(&images, task.operand(0)?, task.results)?;
    match (op.kind, &op.extra_params) {
        (Pool2dOpType::MaxPool2d, _) => largest(&images, task),
        (Pool2dOpType::AvgPool2d, Some(Pool2dExtraParams::AvgPool2dExtraParams(by))) => {
            let counted = match (by.count_include_pad, by.divisor_override) {
                (_, Some(divisor)) if divisor != 0 && !op.ceil_mode => Counted::As(divisor as f32),
                (_, Some(_)) => return Err("a divisor with windows that do not fit".into()),
                (true, None) => Counted::Padding,
                (false, None) => Counted::Image,
            };
            average(&images, counted, task)
        }
        _ => Err("an average without its parameters".into()),
    }
}

/// Windows of an operand: its images with padding, then a tensor for each element of the window.
fn taps(images: &Images, input: Of<'_>, fill: u32, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
    if !images.axes.iter().any(Axis::is_padded) {
        return images.taps(recipe, input, site);
    }
    let padded = images.padded(recipe, (input, images.channels), fill, site)?;
    images.taps(recipe, padded.of(), site)
}

/// Steps that give NaNs in slot 1 the sign with which they are larger than all numbers.
fn positive_nans() -> Vec<Line> {
    vec![
        Line::plain(Step::new(Function::Copy).of(1, 0, 0).to(2)),
        one(Function::IsNan, 2, 0.0),
        one(Function::Fill, 3, f32::from_bits(0x7FC0_0000)),
        Line::plain(Step::new(Function::Where).of(2, 3, 1).to(1)),
    ]
}

/// What a pool makes of windows, still with a dimension for each of theirs.
fn folded(
    windows: Of<'_>,
    by: By,
    scale: Option<f32>,
    to: DType,
    recipe: &mut Recipe,
    site: &Site,
) -> Result<Made, String> {
    let dims = windows.spec.logical_shape();
    let reduced = vec![true, true, false, false, false, false];
    let made = recipe.tiles(&reduction::kept(dims, &reduced), to)?;
    let after = scale.map(|scale| one(Function::Scale, 0, scale)).into_iter().collect();
    // In other types the units have taken NaNs for infinities.
    let has_nans = by == By::Max && windows.spec.dtype() == DType::F32;
    let (operands, before) = (vec![windows], if has_nans { positive_nans() } else { Vec::new() });
    Reduce { name: "pool", operands, before, by, reduced, after, result: made.of() }.add(recipe, site)?;
    Ok(made)
}

fn largest(images: &Images, task: &Task<'_>) -> Planned {
    let (input, result) = (task.operand(0)?, task.result()?);
    let dtype = input.spec.dtype();
    let mut recipe = Recipe::default();
    if is_integer(dtype) || is_integer(result.spec.dtype()) {
        return Err(format!("windows of elements of type {}", dtype.name()));
    }
    let windows = taps(images, input, word(dtype, f32::NEG_INFINITY)?, &mut recipe, task.site)?;
    let made = folded(windows.of(), By::Max, None, result.spec.dtype(), &mut recipe, task.site)?;
    recipe.same_elements(made.of(), result, task.site)?;
    Ok(recipe)
}

/// What the sum of a window is divided by.
#[derive(Clone, Copy, PartialEq)]
enum Counted {
    As(f32),
    /// Its elements, with those in the padding, but not beyond.
    Padding,
    /// Its elements in the image.
    Image,
}

fn average(images: &Images, counted: Counted, task: &Task<'_>) -> Planned {
    let (input, result, site) = (task.operand(0)?, task.result()?, task.site);
    if is_integer(input.spec.dtype()) || is_integer(result.spec.dtype()) {
        return Err(format!("windows of elements of type {}", input.spec.dtype().name()));
    }
    let mut recipe = Recipe::default();
    let windows = taps(images, input, 0, &mut recipe, site)?;
    let whole = images.axes.iter().map(|axis| axis.kernel).product::<usize>() as f32;
    // Where a window has elements that do not count, the divisors differ.
    let beyond = |axis: &Axis| match counted {
        Counted::As(_) => false,
        Counted::Padding => axis.canvas() > axis.before + axis.length + axis.after,
        Counted::Image => axis.is_padded(),
    };
    if !images.axes.iter().any(beyond) {
        let divisor = if let Counted::As(divisor) = counted { divisor } else { whole };
        let made = folded(windows.of(), By::Sum, Some(1.0 / divisor), result.spec.dtype(), &mut recipe, site)?;
        recipe.same_elements(made.of(), result, site)?;
        return Ok(recipe);
    }
    let sums = folded(windows.of(), By::Sum, None, DType::F32, &mut recipe, site)?;
    let counts = counts(images, counted == Counted::Padding, &mut recipe, site)?;
    let means = recipe.tiles(sums.of().spec.logical_shape(), result.spec.dtype())?;
    let others = vec![(counts.of(), vec![one(Function::Reciprocal, 1, 0.0), two(Function::Multiply, 0, 1)])];
    recipe.stages.push(norm::rows("pool-mean", (sums.of(), means.of()), others, Vec::new(), site)?);
    recipe.same_elements(means.of(), result, site)?;
    Ok(recipe)
}

/// How many elements of each window count: the sums of windows of an image of ones.
fn counts(images: &Images, padding: bool, recipe: &mut Recipe, site: &Site) -> Result<Made, String> {
    let axes = images.axes.map(|axis| {
        let (before, after) = (axis.before, axis.after);
        match padding {
            true => Axis { length: before + axis.length + after, before: 0, after: 0, ..axis },
            false => axis,
        }
    });
    let ones = Images { batch: 1, axes, channels: 1 };
    let whole = equal(recipe, &[axes[0].length, axes[1].length], 1.0, site)?;
    let windows = taps(&ones, whole.of(), 0, recipe, site)?;
    folded(windows.of(), By::Sum, None, DType::F32, recipe, site)
}

/// The mean of each channel of each image.
pub(super) fn global_average(_: &GlobalAvgPool2dOp, task: &Task<'_>) -> Planned {
    if task.operand(0)?.spec.logical_shape().len() != 4 {
        return Err("images of other than four dimensions".into());
    }
    reduction::mean(&[1, 2], task)
}

/// Enlarges images by whole factors for rows and columns.
pub(super) fn upsample(op: &UpsampleOp, task: &Task<'_>) -> Planned {
    let (input, result) = (task.operand(0)?, task.result()?);
    let [batch, height, width, channels] = *input.spec.logical_shape() else {
        return Err("images of other than four dimensions".into());
    };
    let [rows, columns] = match &op.scale_factor {
        Scale2D::UniformScale2D(by) => pair(&[by.scale; 2])?,
        Scale2D::NonUniformScale2D(by) => pair(&by.scale)?,
    };
    if result.spec.logical_shape() != [batch, height * rows, width * columns, channels] || rows * columns == 0 {
        return Err("images of other sides".into());
    }
    let mut recipe = Recipe::default();
    match op.mode.as_str() {
        "nearest" => {
            let dims = [batch, height, rows, width, columns, channels];
            let line = width * channels;
            let steps = [height * line, line, 0, channels, 0, 1].map(|n| n as i64);
            recipe.strided((input, 0), (&dims, &steps), result, task.site)?;
        }
        "bilinear" if !is_integer(input.spec.dtype()) => {
            let wide = between([batch, height, width * channels], rows, input, DType::F32, &mut recipe, task.site)?;
            let lengths = [batch * height * rows, width, channels];
            let both = between(lengths, columns, wide.of(), result.spec.dtype(), &mut recipe, task.site)?;
            recipe.same_elements(both.of(), result, task.site)?;
        }
        _ => return Err("another way of upsampling".into()),
    }
    Ok(recipe)
}

/// Elements between those of a dimension, `times` as many: images `[outer, length, inner]` become
/// `[outer, length times as long, inner]` in rows.
///
/// Those at one place between two neighbours have the same weights, so that there is a pass for
/// each place. Beyond the edges the last elements go on.
fn between(
    [outer, length, inner]: [usize; 3],
    times: usize,
    from: Of<'_>,
    to: DType,
    recipe: &mut Recipe,
    site: &Site,
) -> Result<Made, String> {
    let dims = [outer, length, inner];
    let steps = strides(&dims);
    let dtype = from.spec.dtype();
    // The elements before and behind each, with the edges going on.
    let edge = length.saturating_sub(1);
    let mut moved = |back: bool| {
        let made = recipe.tiles(&dims, dtype)?;
        let (low, high, base, ends) = match back {
            true => ([0, 1, 0], [outer, length, inner], 0, [0, 1]),
            false => ([0, 0, 0], [outer, edge, inner], steps[1], [edge, length]),
        };
        let main = Part::between(from, base, [&low, &high], &steps);
        let [first, last] = ends;
        let at = (edge * usize::from(!back)) as i64 * steps[1];
        let end = Part::between(from, at, [&[0, first, 0], &[outer, last, inner]], &steps);
        let parts = if length > 1 { vec![main, end] } else { vec![end] };
        recipe.rearrange(parts, 0, made.of(), site)?;
        Ok::<_, String>(made)
    };
    let (before, behind) = (moved(true)?, moved(false)?);
    let here = recipe.tiles(&dims, dtype)?;
    recipe.same_elements(from, here.of(), site)?;
    let mut places = Vec::new();
    for place in 0..times {
        let at = (place as f32 + 0.5) / times as f32 - 0.5;
        let (low, high, weight) = match at < 0.0 {
            true => (&before, &here, at + 1.0),
            false => (&here, &behind, at),
        };
        let made = recipe.tiles(&dims, to)?;
        let by = vec![one(Function::Scale, 0, 1.0 - weight), one(Function::Scale, 1, weight), two(Function::Add, 0, 1)];
        let others = vec![(high.of(), by)];
        recipe.stages.push(norm::rows("between", (low.of(), made.of()), others, Vec::new(), site)?);
        places.push(made);
    }
    let all = recipe.rows(&[outer, length, times, inner], to)?;
    let parts = places.iter().enumerate().map(|(place, made)| {
        let corners = [[0, 0, place, 0], [outer, length, place + 1, inner]];
        Part::between(made.of(), 0, [&corners[0], &corners[1]], &[steps[0], steps[1], 0, 1])
    });
    let parts = parts.collect();
    recipe.rearrange(parts, 0, all.of(), site)?;
    Ok(all)
}
