//! Stages: programs of element-wise steps over tiles, by the kernel `functions`.
//!
//! A stage goes through the tiles of its result in runs; a run has one iteration, or one for each
//! tile of what it reduces. Each operand has loops of its own over these (`walk`): where it is
//! spread, a loop does not move it.

use tilework_abi::addr::PageCount;
use tilework_abi::eltwise::{Function, NUMBERS, Step, When, arg, flag, image};
use tilework_abi::tensix::Processor;
use tilework_abi::walk::{BUFFERS, LOOPS, buffer};
use tilework_ops::DType;
use tilework_runtime::{ArgSet, CircularBuffer, Cores, Program, Role, RuntimeError, UniqueArgs};

use super::tiles;
use crate::grid::share;
use crate::recipe::{At, Build, Of, Site, Which};

/// Rows and columns of a tile.
const TILE: usize = 32;
/// Elements of a row of a tile that share an exponent in block formats.
const BLOCK: usize = 16;
/// The first circular buffer of operands, and that of the result.
const OPERAND_CB: u32 = 0;
const RESULT_CB: u32 = 16;
/// Pages of a circular buffer.
const PAGES: u32 = 4;

/// A step and its numbers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub(super) step: Step,
    pub(super) numbers: [u32; NUMBERS as usize],
}

impl Line {
    pub(super) const fn new(step: Step, numbers: [u32; NUMBERS as usize]) -> Self {
        Self { step, numbers }
    }
    /// A step without numbers.
    pub(super) const fn plain(step: Step) -> Self {
        Self::new(step, [0; NUMBERS as usize])
    }
}

/// A stage: what is read, what is made of it, and which dimensions of the operands are reduced.
pub(super) struct Stage<'s> {
    pub(super) name: &'static str,
    pub(super) operands: Vec<Of<'s>>,
    pub(super) result: Of<'s>,
    pub(super) lines: Vec<Line>,
    /// The line whose first number is raised by 32 for each tile of the result, of which each core
    /// then makes one: places in a row.
    pub(super) counts: Option<usize>,
    /// Whether Dst has elements of 32 bits, whatever the tensors have: for sums of many.
    pub(super) wide: bool,
    /// For each dimension of the space, outermost first: its length in elements, and whether it is
    /// reduced. The result has the others, in order, and one element where it has one of these.
    pub(super) space: Vec<(usize, bool)>,
    /// Whether each iteration makes a tile of the result: the dimensions that are called reduced
    /// are gone through, are the result's last ones, and steps know where in them they are.
    pub(super) each: bool,
}

/// A loop over tiles: how often, and how far each operand goes.
struct Loop {
    count: u32,
    steps: Vec<u32>,
}

/// How an operand is read.
struct Read {
    which: Which,
    bytes: u32,
    format: u32,
    counts: [u32; LOOPS],
    steps: [u32; LOOPS],
    /// For how many iterations a page stays.
    stays: u32,
}

/// Dimensions with ones in front, as many as the space has.
pub(super) fn aligned(dims: &[usize], rank: usize) -> Vec<usize> {
    let mut all = vec![1; rank.saturating_sub(dims.len())];
    all.extend(dims);
    all
}

/// Tiles along a dimension: `back` counts from the last one.
fn in_tiles(length: usize, back: usize) -> usize {
    if back < 2 { length.div_ceil(TILE) } else { length }
}

/// How far an operand goes for a step in each dimension, in tiles: nowhere where it has one element
/// and the space more.
fn strides(dims: &[usize], space: &[(usize, bool)]) -> Result<Vec<u32>, String> {
    let rank = space.len();
    let (mut strides, mut size) = (vec![0; rank], 1);
    for k in (0..rank).rev() {
        if dims[k] != space[k].0 && dims[k] != 1 {
            return Err(format!("operands of {} and {} elements in a dimension", dims[k], space[k].0));
        }
        strides[k] = if dims[k] == 1 { 0 } else { size };
        size *= in_tiles(dims[k], rank - 1 - k) as u32;
    }
    Ok(strides)
}

/// The loops of one operand: those inside that do not move it are iterations for which a page
/// stays.
fn read(of: &Of<'_>, operand: usize, loops: &[Loop]) -> Result<Read, String> {
    let mut own: Vec<(u32, u32)> = Vec::new();
    for each in loops {
        let (count, step) = (each.count, each.steps[operand]);
        match own.last_mut() {
            Some(outer) if outer.1 == step * count => *outer = (outer.0 * count, step),
            _ => own.push((count, step)),
        }
    }
    let stays = match own.last() {
        Some(&(count, 0)) => {
            own.pop();
            count
        }
        _ => 1,
    };
    if own.len() > LOOPS {
        return Err(format!("operands that are spread in more than {LOOPS} ways"));
    }
    let (mut counts, mut steps) = ([1; LOOPS], [0; LOOPS]);
    for (k, (count, step)) in own.iter().enumerate() {
        let at = LOOPS - own.len() + k;
        (counts[at], steps[at]) = (*count, *step);
    }
    let format = tiles::format(of.spec.dtype())?;
    Ok(Read { which: of.which, bytes: of.spec.page_size(), format, counts, steps, stays })
}

/// Whether Dst needs elements of 32 bits.
pub(super) fn wide(dtypes: impl IntoIterator<Item = DType>) -> bool {
    dtypes.into_iter().any(|dtype| !matches!(dtype, DType::BF16 | DType::Bfp8B | DType::U16))
}

/// Steps that spread what an operand has one row, column or element of over the tile in `slot`.
pub(super) fn spread(dims: &[usize], space: &[usize], slot: u32) -> Option<Line> {
    let length = |list: &[usize], back: usize| list.len().checked_sub(back).map_or(1, |k| list[k]);
    let one = |back| length(dims, back) == 1 && length(space, back) != 1;
    let function = match (one(2), one(1)) {
        (false, false) => return None,
        (true, false) => Function::BroadcastRow,
        (false, true) => Function::BroadcastColumn,
        (true, true) => Function::BroadcastScalar,
    };
    Some(Line::plain(Step::new(function).of(slot, 0, 0).to(slot)))
}

impl Stage<'_> {
    /// The program.
    ///
    /// # Errors
    /// What the kernels cannot do.
    pub(super) fn plan(self, site: &Site) -> Result<Build, String> {
        let Self { name, operands, result, lines, counts, wide: exact, space, each } = self.masked()?;
        if operands.len() > BUFFERS {
            return Err(format!("more than {BUFFERS} operands"));
        }
        for of in operands.iter().chain([&result]) {
            tiles::in_dram(of.spec)?;
        }
        let rank = space.len();
        let all = operands.iter().map(|of| strides(&aligned(of.spec.logical_shape(), rank), &space));
        let all = all.collect::<Result<Vec<_>, _>>()?;
        // Runs are over what is kept, in the order of the result's tiles; iterations over the rest.
        let loops = |reduced: bool| {
            let of = space.iter().enumerate().filter(move |(_, (_, is))| *is == reduced);
            let of = of.map(|(k, &(length, _))| Loop {
                count: in_tiles(length, rank - 1 - k) as u32,
                steps: all.iter().map(|strides| strides[k]).collect(),
            });
            of.collect::<Vec<_>>()
        };
        let (kept, reduced) = (loops(false), loops(true));
        let count = |loops: &[Loop]| loops.iter().map(|each| each.count).product::<u32>();
        let (runs, iterations) = (count(&kept), count(&reduced));
        let columns = match space.last() {
            Some((length, true)) => in_tiles(*length, 0) as u32,
            _ => 1,
        };
        let loops: Vec<Loop> = kept.into_iter().chain(reduced).filter(|each| each.count != 1).collect();
        let reads = operands.iter().enumerate().map(|(i, of)| read(of, i, &loops)).collect::<Result<Vec<_>, _>>()?;
        let types = operands.iter().chain([&result]).map(|of| of.spec.dtype());
        let flags = if exact || wide(types) { flag::WIDE } else { 0 } | if each { flag::EACH } else { 0 };
        let math = image_of(&lines)?;
        let (words, counted) = encoded(&lines, counts);
        let made = (result.which, result.spec.page_size(), tiles::format(result.spec.dtype())?);
        let cores = site.cores(runs);
        if runs == 0 || iterations == 0 {
            return Err("a tensor without elements".into());
        }
        if counted.is_some() && runs as usize > cores.len() {
            return Err(format!("{runs} tiles of places, more than there are workers"));
        }
        let plan = Plan { name, math, reads, made, words, counted, flags, runs, iterations, columns, each };
        Ok(Box::new(move |at| plan.program(&cores, at)))
    }
}

impl<'s> Stage<'s> {
    /// With zeros in the padding behind the columns of a result in a block format, whose elements
    /// share an exponent with those beside them.
    fn masked(mut self) -> Result<Self, String> {
        let Some((width, last_is_reduced)) = self.space.last().copied() else { return Ok(self) };
        if !self.result.spec.dtype().is_block() || last_is_reduced || width.is_multiple_of(BLOCK) {
            return Ok(self);
        }
        let store = self.lines.iter().rposition(|line| line.step.function == Function::Store);
        let (Some(store), false, None) = (store, self.space.iter().any(|(_, is)| *is), self.counts) else {
            return Err("a result in a block format with padding".into());
        };
        let mask = Step::new(Function::MaskColumns).when(When::LastColumn);
        self.lines.insert(store, Line::new(mask, [(width % TILE) as u32, 0]));
        let last = self.space.len() - 1;
        self.space[last].1 = true;
        self.each = true;
        Ok(self)
    }
}

/// The image of the math thread that has all functions of these lines.
fn image_of(lines: &[Line]) -> Result<&'static str, String> {
    let images = lines.iter().fold(image::ALL, |images, line| images & line.step.function.images());
    let of =
        [(image::FUNCTIONS, "functions-math"), (image::SPECIAL, "special-math"), (image::INTEGERS, "integers-math")];
    let found = of.into_iter().find(|(image, _)| images & image != 0);
    found.map(|(_, name)| name).ok_or_else(|| "functions of several images of the kernel".into())
}

/// The words of lines, and which of them is the first number of line `counts`.
fn encoded(lines: &[Line], counts: Option<usize>) -> (Vec<u32>, Option<usize>) {
    let (mut words, mut counted) = (Vec::new(), None);
    for (i, Line { step, numbers }) in lines.iter().enumerate() {
        if counts == Some(i) {
            counted = Some(words.len() + 1);
        }
        words.push(step.encode());
        words.extend(&numbers[..step.function.numbers() as usize]);
    }
    (words, counted)
}

/// A stage as it will run.
struct Plan {
    name: &'static str,
    math: &'static str,
    reads: Vec<Read>,
    /// The result, bytes of its pages, its format.
    made: (Which, u32, u32),
    words: Vec<u32>,
    /// Which word is raised by 32 for each tile.
    counted: Option<usize>,
    flags: u32,
    runs: u32,
    iterations: u32,
    columns: u32,
    each: bool,
}

impl Plan {
    fn program(&self, cores: &[tilework_abi::noc::NocXy], at: &At<'_>) -> Result<Program, RuntimeError> {
        use Processor::{Brisc, Ncrisc, Trisc0, Trisc1, Trisc2};
        let (which, page, format) = self.made;
        let mut common = vec![self.reads.len() as u32];
        for (cb, read) in (OPERAND_CB..).zip(&self.reads) {
            let buffer = &read.which.of(at).buffer;
            let mut words = vec![0; buffer::WORDS as usize];
            words[..4].copy_from_slice(&[buffer.address.word(), buffer.aligned_page_size(), read.bytes, cb]);
            words[buffer::COUNTS as usize..][..LOOPS].copy_from_slice(&read.counts);
            words[buffer::STEPS as usize..][..LOOPS].copy_from_slice(&read.steps);
            common.extend(words);
        }
        let (mut reader, mut compute, mut writer) = (Vec::new(), Vec::new(), Vec::new());
        for core in 0..cores.len() as u32 {
            let (first, runs) = share(self.runs, cores.len() as u32, core);
            let (begin, end) = (first * self.iterations, (first + runs) * self.iterations);
            reader.push(self.reads.iter().flat_map(|read| read.pages(begin, end)).collect());
            compute.push(self.compute([first, runs, begin], format));
            let (first_page, pages) = if self.each { (begin, end - begin) } else { (first, runs) };
            writer.push(vec![which.of(at).buffer.address.word(), first_page, pages, page, RESULT_CB]);
        }
        let kernel = |name: &str, processor| at.kernels.get(name, processor);
        let mut role = Role::all()
            .kernel(Trisc0, kernel("functions-unpack", Trisc0)?)
            .kernel(Trisc1, kernel(self.math, Trisc1)?)
            .kernel(Trisc2, kernel("functions-pack", Trisc2)?)
            .kernel(Brisc, kernel("writer", Brisc)?);
        let cb = |index, page_size| CircularBuffer { index, page_size, pages: PageCount::new(PAGES) };
        let mut program = Program::new(self.name, Cores::List(cores.to_vec())).circular_buffer(cb(RESULT_CB, page));
        for (index, read) in (OPERAND_CB..).zip(&self.reads) {
            program = program.circular_buffer(cb(index, read.bytes));
        }
        if !self.reads.is_empty() {
            role = role.kernel(Ncrisc, kernel("walk", Ncrisc)?);
            program =
                program.unique_args(ArgSet::Ncrisc, UniqueArgs::PerCore(reader)).common_args(ArgSet::Ncrisc, common);
        }
        Ok(program
            .role(role)
            .unique_args(ArgSet::Compute, UniqueArgs::PerCore(compute))
            .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(writer)))
    }

    /// Arguments of the compute kernel for a core with these runs, whose first iteration is
    /// `begin`.
    fn compute(&self, [first, runs, begin]: [u32; 3], format: u32) -> Vec<u32> {
        let mut words = vec![0; arg::FIRST as usize];
        words[arg::RUNS as usize] = runs;
        words[arg::ITERATIONS as usize] = self.iterations;
        words[arg::COLUMNS as usize] = self.columns;
        words[arg::FLAGS as usize] = self.flags;
        words[arg::OPERANDS as usize] = self.reads.len() as u32;
        words[arg::RESULTS as usize] = 1;
        words[arg::WORDS as usize] = self.words.len() as u32;
        for (cb, read) in (OPERAND_CB..).zip(&self.reads) {
            words.extend([cb, read.format, read.stays, read.stays - begin % read.stays]);
        }
        words.extend([RESULT_CB, format]);
        let program = words.len();
        words.extend(&self.words);
        if let Some(at) = self.counted {
            words[program + at] += first * TILE as u32;
        }
        words
    }
}

impl Read {
    /// The first page of iterations from `begin` to before `end`, and how many there are.
    fn pages(&self, begin: u32, end: u32) -> [u32; 2] {
        let first = begin / self.stays;
        [first, end.div_ceil(self.stays) - first]
    }
}
