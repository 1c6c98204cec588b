//! Lines of elements along a dimension, by the kernel `lines`: in order, the first ones of them,
//! with elements written to places, or running folds.
//!
//! The kernel takes lines as pages in rows. Other tensors are brought into that form beforehand, by
//! a permutation that makes the dimension the last one, and results out of it.

use tilework_abi::addr::PageCount;
use tilework_abi::eltwise::{Function, Step};
use tilework_abi::lines::{arg, by, element, flag, memory, what};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_model::ttnn::ops::data_movement::{ScatterOp, ScatterReduceType};
use tilework_model::ttnn::ops::reduction::{
    CumProdOp, CumSumOp, CumulativeOp, CumulativeReduceType, ReductionArgMaxOp, SortOp, TopKOp,
};
use tilework_ops::DType;
use tilework_runtime::tensor::Layout;
use tilework_runtime::{ArgSet, CircularBuffer, Cores, Program, Role, RuntimeError, UniqueArgs};

use super::eltwise::{cast_to, is_integer};
use super::movement::axis;
use super::norm::{self, one, two};
use super::rearrange::{Part, strides};
use super::stage::Line;
use super::tiles;
use crate::grid::share;
use crate::recipe::{At, Build, Made, Of, Planned, Recipe, Site, Task, Which};

/// Elements that are chosen from lines in pieces at most: each that comes in between moves all
/// behind it.
const CHOSEN: usize = 64;

/// What the kernel does with each line.
#[derive(Clone, Copy)]
pub(super) struct Job<'s> {
    pub(super) what: u32,
    pub(super) by: u32,
    pub(super) flags: u32,
    /// Elements of a line.
    pub(super) length: usize,
    /// Elements that are chosen or written.
    pub(super) count: usize,
    pub(super) lines: Option<Of<'s>>,
    pub(super) places: Option<Of<'s>>,
    pub(super) updates: Option<Of<'s>>,
    pub(super) values: Option<Of<'s>>,
    pub(super) numbers: Option<Of<'s>>,
}

impl Job<'_> {
    /// Nothing yet, for lines of so many elements.
    pub(super) const fn new(what: u32, length: usize, count: usize) -> Self {
        let (lines, places, updates, values, numbers) = (None, None, None, None, None);
        Self { what, by: 0, flags: 0, length, count, lines, places, updates, values, numbers }
    }
}

/// The kernel's number of an element type.
fn code(dtype: DType) -> Result<u32, String> {
    Ok(match dtype {
        DType::F32 => element::F32,
        DType::BF16 => element::BF16,
        DType::I32 => element::I32,
        DType::U32 => element::U32,
        DType::U16 => element::U16,
        DType::U8 => element::U8,
        other => return Err(format!("lines of elements of type {}", other.name())),
    })
}

/// A tensor in rows: as it is, or brought into that form.
pub(super) enum InRows<'s> {
    Given(Of<'s>),
    Made(Made),
}

impl InRows<'_> {
    pub(super) fn of(&self) -> Of<'_> {
        match self {
            Self::Given(of) => *of,
            Self::Made(made) => made.of(),
        }
    }
}

/// Dimensions with one of them moved to the end.
fn last(list: &[usize], axis: usize) -> Vec<usize> {
    let others = list.iter().enumerate().filter(|(k, _)| *k != axis).map(|(_, n)| *n);
    others.chain([list[axis]]).collect()
}

impl Recipe {
    /// The elements of the first part of a tensor, as large as `dims`, in rows along a dimension.
    pub(super) fn lines<'s>(
        &mut self,
        from: Of<'s>,
        axis: usize,
        dims: &[usize],
        site: &Site,
    ) -> Result<InRows<'s>, String> {
        let source = from.spec.logical_shape();
        if source == dims && axis + 1 == dims.len() && from.spec.layout() == Layout::RowMajor {
            return Ok(InRows::Given(from));
        }
        let mut steps = strides(source);
        let step = steps.remove(axis);
        steps.push(step);
        let turned = last(dims, axis);
        let made = self.rows(&turned, from.spec.dtype())?;
        self.rearrange(vec![Part::whole(from, 0, &turned, &steps)], 0, made.of(), site)?;
        Ok(InRows::Made(made))
    }

    /// A tensor of lines along a dimension, from lines in rows.
    pub(super) fn of_lines(&mut self, from: Of<'_>, axis: usize, to: Of<'_>, site: &Site) -> Result<(), String> {
        let dims = to.spec.logical_shape();
        let mut steps = strides(&last(dims, axis));
        let step = steps.pop().unwrap_or(1);
        steps.insert(axis, step);
        self.rearrange(vec![Part::whole(from, 0, dims, &steps)], 0, to, site)
    }

    /// A program of the kernel.
    pub(super) fn job(&mut self, job: Job<'_>, site: &Site) -> Result<(), String> {
        self.stages.push(stage(job, site)?);
        Ok(())
    }
}

/// A tensor as the kernel takes it.
type Side = Option<(Which, u32)>;

fn side(of: Option<Of<'_>>) -> Result<Side, String> {
    let Some(Of { which, spec }) = of else { return Ok(None) };
    tiles::interleaved(spec)?;
    if spec.layout() != Layout::RowMajor {
        return Err("lines in tiles".into());
    }
    Ok(Some((which, spec.page_size())))
}

fn stage(job: Job<'_>, site: &Site) -> Result<Build, String> {
    let dtype = |of: Option<Of<'_>>| of.map_or(Ok(element::I32), |of| code(of.spec.dtype()));
    let first = job.lines.or(job.values).or(job.numbers).or(job.places).ok_or("no lines")?;
    let lines = first.spec.pages() as u32;
    let (length, count) = (job.length as u32, job.count as u32);
    let sides = [side(job.lines)?, side(job.places)?, side(job.updates)?, side(job.values)?, side(job.numbers)?];
    let bytes = memory(job.what, length, count, sides.map(|side| side.map_or(0, |(_, bytes)| u64::from(bytes))));
    let bytes = u32::try_from(bytes).ok().filter(|&bytes| bytes <= site.l1);
    let bytes = bytes.ok_or_else(|| format!("lines of {length} elements, which do not fit into L1"))?;
    // Both data-movement cores of a worker, if their memory has room beside each other.
    let each = if bytes * 2 <= site.l1 { 2 } else { 1 };
    let cores = site.workers[..site.workers.len().min(lines.div_ceil(each).max(1) as usize)].to_vec();
    let mut words = vec![0; arg::WORDS as usize];
    words[..arg::CB as usize].copy_from_slice(&[
        job.what,
        job.by,
        dtype(job.lines.or(job.values))?,
        dtype(job.values)?,
        dtype(job.places.or(job.numbers))?,
        length,
        count,
        job.flags,
    ]);
    if lines == 0 || length == 0 {
        return Err("lines without elements".into());
    }
    Ok(Box::new(move |at| {
        let common = |cb: u32| {
            let mut words = words.clone();
            words[arg::CB as usize] = cb;
            for (side, first) in sides.iter().zip([arg::LINES, arg::PLACES, arg::UPDATES, arg::VALUES, arg::NUMBERS]) {
                if let Some((which, page)) = side {
                    let buffer = &which.of(at).buffer;
                    let of = [buffer.address.word(), buffer.aligned_page_size(), *page];
                    words[first as usize..][..3].copy_from_slice(&of);
                }
            }
            words
        };
        program(common, [lines, bytes, each], &cores, at)
    }))
}

fn program(
    common: impl Fn(u32) -> Vec<u32>,
    [lines, bytes, each]: [u32; 3],
    cores: &[NocXy],
    at: &At<'_>,
) -> Result<Program, RuntimeError> {
    let parts = cores.len() as u32 * each;
    let own = |of: u32| {
        let shares = (0..cores.len() as u32).map(|i| share(lines, parts, i * each + of));
        UniqueArgs::PerCore(shares.map(|(first, count)| vec![first, count]).collect())
    };
    let mut role = Role::all().kernel(Processor::Brisc, at.kernels.get("lines", Processor::Brisc)?);
    let cb = |index| CircularBuffer { index, page_size: bytes, pages: PageCount::new(1) };
    if each == 2 {
        role = role.kernel(Processor::Ncrisc, at.kernels.get("lines", Processor::Ncrisc)?);
    }
    let mut program = Program::new("lines", Cores::List(cores.to_vec()))
        .role(role)
        .circular_buffer(cb(0))
        .unique_args(ArgSet::Brisc, own(0))
        .common_args(ArgSet::Brisc, common(0));
    if each == 2 {
        program =
            program.circular_buffer(cb(1)).unique_args(ArgSet::Ncrisc, own(1)).common_args(ArgSet::Ncrisc, common(1));
    }
    Ok(program)
}

/// The number of the first largest element of each line, or of all.
pub(super) fn arg_max(op: &ReductionArgMaxOp, task: &Task<'_>) -> Planned {
    let (input, result) = (task.operand(0)?, task.result()?);
    let dims = input.spec.logical_shape();
    let mut recipe = Recipe::default();
    let (length, lines) = match op.dim {
        Some(dim) => {
            let axis = axis(dim.into(), dims.len())?;
            (dims[axis], recipe.lines(input, axis, dims, task.site)?)
        }
        None => {
            let all = dims.iter().product();
            let made = recipe.rows(&[1, all], input.spec.dtype())?;
            recipe.same_elements(input, made.of(), task.site)?;
            (all, InRows::Made(made))
        }
    };
    let count = dims.iter().product::<usize>() / length.max(1);
    if result.spec.logical_shape().iter().product::<usize>() != count {
        return Err("a result of another number of lines".into());
    }
    let numbers = recipe.rows(&[count, 1], result.spec.dtype())?;
    let (lines, numbers_of) = (Some(lines.of()), Some(numbers.of()));
    let job = Job { by: 1, flags: flag::NUMBERS, lines, numbers: numbers_of, ..Job::new(what::FIRST, length, 1) };
    recipe.job(job, task.site)?;
    recipe.same_elements(numbers.of(), result, task.site)?;
    Ok(recipe)
}

/// The first elements of lines in order, and their numbers.
fn ordered(dim: i64, largest: bool, task: &Task<'_>) -> Planned {
    let input = task.operand(0)?;
    let [values, numbers] = task.results else { return Err("other than two results".into()) };
    let dims = input.spec.logical_shape();
    let axis = axis(dim, dims.len())?;
    let mut chosen = dims.to_vec();
    chosen[axis] = values.logical_shape().get(axis).copied().unwrap_or(0);
    let (length, count) = (dims[axis], chosen[axis]);
    if values.logical_shape() != chosen || numbers.logical_shape() != chosen || count > length || count == 0 {
        return Err("results of other sides".into());
    }
    if values.dtype() != input.spec.dtype() {
        return Err(format!("{} elements made of {}", values.dtype().name(), input.spec.dtype().name()));
    }
    let mut recipe = Recipe::default();
    let lines = recipe.lines(input, axis, dims, task.site)?;
    let turned = last(&chosen, axis);
    let made = [recipe.rows(&turned, values.dtype())?, recipe.rows(&turned, numbers.dtype())?];
    let job = |what| Job {
        by: largest.into(),
        flags: flag::VALUES | flag::NUMBERS,
        lines: Some(lines.of()),
        values: Some(made[0].of()),
        numbers: Some(made[1].of()),
        ..Job::new(what, length, count)
    };
    let few = count <= CHOSEN && count * 4 <= length;
    if few || recipe.job(job(what::SORT), task.site).is_err() {
        recipe.job(job(what::FIRST), task.site)?;
    }
    for (i, (made, spec)) in made.iter().zip([values, numbers]).enumerate() {
        recipe.of_lines(made.of(), axis, Of { which: Which::Result(i), spec }, task.site)?;
    }
    Ok(recipe)
}

pub(super) fn sort(op: &SortOp, task: &Task<'_>) -> Planned {
    ordered(op.dim.into(), op.descending, task)
}

pub(super) fn top_k(op: &TopKOp, task: &Task<'_>) -> Planned {
    ordered(op.dim.into(), op.largest, task)
}

/// Running folds along a dimension.
fn running(dim: i64, way: u32, flags: u32, task: &Task<'_>) -> Planned {
    let (input, result) = (task.operand(0)?, task.result()?);
    let dims = input.spec.logical_shape();
    if result.spec.logical_shape() != dims {
        return Err("a result of other sides".into());
    }
    let (from, to) = (input.spec.dtype(), result.spec.dtype());
    if is_integer(from) != is_integer(to) {
        return Err(format!("{} elements made of {}", to.name(), from.name()));
    }
    let axis = axis(dim, dims.len())?;
    let mut recipe = Recipe::default();
    let lines = recipe.lines(input, axis, dims, task.site)?;
    let made = recipe.rows(&last(dims, axis), to)?;
    let (lines, values) = (Some(lines.of()), Some(made.of()));
    recipe.job(Job { by: way, flags, lines, values, ..Job::new(what::RUN, dims[axis], 0) }, task.site)?;
    recipe.of_lines(made.of(), axis, result, task.site)?;
    Ok(recipe)
}

pub(super) fn cumulative_sum(op: &CumSumOp, task: &Task<'_>) -> Planned {
    running(op.dim.into(), by::SUM, 0, task)
}

pub(super) fn cumulative_product(op: &CumProdOp, task: &Task<'_>) -> Planned {
    running(op.dim.into(), by::PRODUCT, 0, task)
}

pub(super) fn cumulative(op: &CumulativeOp, task: &Task<'_>) -> Planned {
    let way = match op.reduction {
        CumulativeReduceType::Max => by::MAX,
        CumulativeReduceType::Min => by::MIN,
        CumulativeReduceType::LogSumExp => return log_sums(op, task),
    };
    running(op.dim.into(), way, if op.reverse { flag::BACK } else { 0 }, task)
}

/// Logarithms of running sums of exponentials: each element with the one `reach` before it, which
/// doubles, as in host arithmetic.
fn log_sums(op: &CumulativeOp, task: &Task<'_>) -> Planned {
    let (input, result, site) = (task.operand(0)?, task.result()?, task.site);
    let dims = input.spec.logical_shape();
    if result.spec.logical_shape() != dims || is_integer(input.spec.dtype()) || is_integer(result.spec.dtype()) {
        return Err("a result of other sides or types".into());
    }
    let along = axis(op.dim.into(), dims.len())?;
    let steps = strides(dims);
    let mut recipe = Recipe::default();
    let mut so_far = recipe.tiles(dims, DType::F32)?;
    cast_to(&mut recipe, input, so_far.of(), site)?;
    let mut reach = 1;
    while reach < dims[along] {
        let (mut low, mut high, mut base) = (vec![0; dims.len()], dims.to_vec(), 0);
        if op.reverse {
            (high[along], base) = (dims[along] - reach, steps[along] * reach as i64);
        } else {
            low[along] = reach;
        }
        let before = recipe.tiles(dims, DType::F32)?;
        let part = Part::between(so_far.of(), base, [&low, &high], &steps);
        recipe.rearrange(vec![part], f32::NEG_INFINITY.to_bits(), before.of(), site)?;
        let made = recipe.tiles(dims, DType::F32)?;
        let others = vec![(before.of(), log_add())];
        recipe.stages.push(norm::rows("log-sums", (so_far.of(), made.of()), others, Vec::new(), site)?);
        so_far = made;
        reach *= 2;
    }
    cast_to(&mut recipe, so_far.of(), result, site)?;
    Ok(recipe)
}

/// `log(e^a + e^b)`: the larger one, and what the smaller one adds to it. Two equal infinities have
/// no difference: the negative of what is no number is less than all numbers.
fn log_add() -> Vec<Line> {
    // What is so far apart adds nothing.
    const APART: f32 = -87.0;
    vec![
        Line::plain(Step::new(Function::Copy).of(0, 0, 0).to(2)),
        two(Function::Max, 2, 1),
        two(Function::Subtract, 0, 1),
        one(Function::Abs, 0, 0.0),
        one(Function::Negative, 0, 0.0),
        one(Function::Fill, 1, APART),
        two(Function::Max, 0, 1),
        one(Function::Softplus, 0, 0.0),
        two(Function::Add, 0, 2),
    ]
}

/// What a scattered element and the one that is there make.
pub(super) fn reduction(of: ScatterReduceType) -> u32 {
    match of {
        ScatterReduceType::Sum => by::SUM,
        ScatterReduceType::Max => by::MAX,
        ScatterReduceType::Min => by::MIN,
        ScatterReduceType::Prod => by::PRODUCT,
        ScatterReduceType::Invalid => by::REPLACE,
    }
}

/// Elements of the third operand written where the second says.
pub(super) fn scatter(op: &ScatterOp, task: &Task<'_>) -> Planned {
    let [input, index, source] = [task.operand(0)?, task.operand(1)?, task.operand(2)?];
    let result = task.result()?;
    let (dims, places) = (input.spec.logical_shape(), index.spec.logical_shape());
    let axis = axis(op.dim.into(), dims.len())?;
    let same = |k: usize| k == axis || dims[k] == places[k];
    if places.len() != dims.len() || !(0..dims.len()).all(same) {
        return Err("an index of other sides than the operand".into());
    }
    let from = source.spec.logical_shape();
    if from.len() != dims.len() || from.iter().zip(places).any(|(n, m)| n < m) {
        return Err("fewer elements than the index has places".into());
    }
    let dtype = input.spec.dtype();
    if source.spec.dtype() != dtype || result.spec.dtype() != dtype || result.spec.logical_shape() != dims {
        return Err(format!("{} elements written to {}", source.spec.dtype().name(), dtype.name()));
    }
    if !is_integer(index.spec.dtype()) {
        return Err(format!("an index of type {}", index.spec.dtype().name()));
    }
    let mut recipe = Recipe::default();
    let lines = recipe.lines(input, axis, dims, task.site)?;
    let index = recipe.lines(index, axis, places, task.site)?;
    let updates = recipe.lines(source, axis, places, task.site)?;
    let values = recipe.rows(&last(dims, axis), dtype)?;
    let job = Job {
        by: reduction(op.scatter_reduce_type),
        lines: Some(lines.of()),
        places: Some(index.of()),
        updates: Some(updates.of()),
        values: Some(values.of()),
        ..Job::new(what::WRITE, dims[axis], places[axis])
    };
    recipe.job(job, task.site)?;
    recipe.of_lines(values.of(), axis, result, task.site)?;
    Ok(recipe)
}
