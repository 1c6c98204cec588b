//! Stages: programs of element-wise steps over tiles, by the kernel `functions`.
//!
//! A stage goes through the tiles of its result in runs; a run has one iteration, or one for each
//! tile of what it reduces. Each operand has loops of its own over these (`walk`): where it is
//! spread, a loop does not move it.

use tilework_abi::L1_ALIGN;
use tilework_abi::addr::PageCount;
use tilework_abi::cb::CONFIG_BYTES;
use tilework_abi::eltwise::{Function, NUMBERS, Step, When, arg, flag, image};
use tilework_abi::l1::WORKER;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_abi::walk::{BUFFERS, LOOPS, buffer, number, own, result};
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

/// Bytes that all banks of DRAM give in a cycle (docs/timing.md).
const DRAM_BYTES: u64 = 379;

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
        if runs == 0 || iterations == 0 {
            return Err("a tensor without elements".into());
        }
        let cores = site.cores(runs);
        if counted.is_some() && runs as usize > cores.len() {
            return Err(format!("{runs} tiles of places, more than there are workers"));
        }
        let pair = if each || iterations != 1 { None } else { only_step(&lines, &operands) };
        let plan = Plan { name, math, reads, made, words, counted, flags, runs, iterations, columns, each, pair };
        let even = plan.even(site);
        Ok(Box::new(move |at| match &even {
            Some(even) if plan.even_fits(at)? => plan.even_program(even, at),
            _ => plan.program(&cores, at),
        }))
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
    /// The only step, if it is a function of two tiles (`pair`).
    pair: Option<Step>,
}

/// The only step of a stage, if the kernel `pair` has it, which begins sooner than `functions`.
fn only_step(lines: &[Line], operands: &[Of<'_>]) -> Option<Step> {
    use Function as F;
    let [first, second, line, store] = lines else { return None };
    let [a, b] = operands else { return None };
    let is_load = |line: &Line, slot| line.step == Step::new(F::Load).of(slot, 0, 0).to(slot);
    let format = a.spec.dtype();
    let are_same = format == b.spec.dtype() && matches!(format, DType::F32 | DType::BF16 | DType::Bfp8B);
    let function = line.step.function;
    let is_of_two = matches!(
        function,
        F::Add
            | F::Subtract
            | F::Multiply
            | F::Divide
            | F::Min
            | F::Max
            | F::Equal
            | F::NotEqual
            | F::Less
            | F::AtMost
            | F::Greater
            | F::AtLeast
            | F::LogicalAnd
            | F::LogicalOr
            | F::LogicalXor
    );
    let step = Step::new(function).of(0, 1, 0).to(0);
    let is_plain = is_load(first, 0) && is_load(second, 1) && line.step == step && store.step == Step::new(F::Store);
    (are_same && is_of_two && is_plain).then_some(step)
}

/// Which argument of `pair` has its flags.
const PAIR_FLAGS: usize = 2;

/// A division of the runs in which all cores have as many, and the same arguments: what they have
/// more than there are is read and computed once more, and not written. With `pair`, cores that
/// have nothing else do nothing.
struct Even {
    cores: Vec<NocXy>,
    runs: u32,
    numbers: [u32; number::WORDS as usize],
}

impl Plan {
    /// An even division, if it is dispatched so much sooner that reading more does not matter.
    fn even(&self, site: &Site) -> Option<Even> {
        let workers = site.workers.len() as u32;
        let runs = self.runs.div_ceil(workers);
        let is_even = |read: &Read| (runs * self.iterations).is_multiple_of(read.stays);
        if self.counted.is_some() || self.reads.is_empty() || !self.reads.iter().all(is_even) {
            return None;
        }
        let bytes: u64 = self.reads.iter().map(|read| u64::from(read.bytes / read.stays)).sum();
        let some = self.runs.div_ceil(runs);
        let used = |cores: u32| if self.pair.is_some() { some } else { cores };
        let more = |cores: u32| {
            let pages = u64::from(used(cores) * runs - self.runs) * u64::from(self.iterations);
            pages * bytes / DRAM_BYTES + site.start_cycles(cores as usize)
        };
        let soonest = if more(some) < more(workers) { some } else { workers };
        let own = site.cores(self.runs).len();
        if more(soonest) > site.start_cycles(own) + site.arguments_cycles(own) {
            return None;
        }
        let mut cores = site.first(soonest as usize);
        cores.sort_by_key(|tile| (tile.y, tile.x));
        let numbers = number::words(cores.iter().take(used(soonest) as usize).map(|tile| (tile.x, tile.y)))?;
        Some(Even { cores, runs, numbers })
    }

    /// Whether the kernels of an even division have room beside the largest images.
    fn even_fits(&self, at: &At<'_>) -> Result<bool, RuntimeError> {
        use Processor::{Brisc, Ncrisc, Trisc0, Trisc1, Trisc2};
        let [unpack, math, pack] = self.compute_kernels();
        let all = [(unpack, Trisc0), (math, Trisc1), (pack, Trisc2), ("even-walk", Ncrisc), ("even-writer", Brisc)];
        let reads = self.reads.len() as u32;
        let words = [
            own::WORDS * reads,
            self.compute([0, 1, 0], 0).len() as u32,
            if self.pair.is_some() { number::WORDS } else { 0 },
            buffer::FIRST + buffer::WORDS * reads + number::WORDS,
            result::WORDS,
        ];
        let mut bytes = 4 * words.iter().sum::<u32>() + (RESULT_CB + 1) * CONFIG_BYTES as u32 + 2 * L1_ALIGN;
        for (name, processor) in all {
            bytes += at.kernels.get(name, processor)?.size().next_multiple_of(L1_ALIGN);
        }
        Ok(bytes <= WORKER.kernel_config_size)
    }

    /// The program of an even division.
    fn even_program(&self, even: &Even, at: &At<'_>) -> Result<Program, RuntimeError> {
        let (which, page, format) = self.made;
        let (runs, iterations) = (even.runs, even.runs * self.iterations);
        let reader = self.reads.iter().flat_map(|read| read.pages(0, iterations)).collect();
        let mut common = self.buffers(at);
        common.extend(even.numbers);
        let (pages, all) = if self.each { (iterations, self.runs * self.iterations) } else { (runs, self.runs) };
        let mut writer = even.numbers.to_vec();
        writer.extend([which.of(at).buffer.address.word(), pages, all, page, RESULT_CB]);
        let program = self
            .begun(&even.cores, ["even-walk", "even-writer"], at)?
            .unique_args(ArgSet::Ncrisc, UniqueArgs::Uniform(reader))
            .common_args(ArgSet::Ncrisc, common)
            .common_args(ArgSet::Brisc, writer);
        let mut compute = self.compute([0, runs, 0], format);
        if self.pair.is_none() {
            return Ok(program.unique_args(ArgSet::Compute, UniqueArgs::Uniform(compute)));
        }
        compute[PAIR_FLAGS] |= flag::NUMBERED;
        Ok(program
            .unique_args(ArgSet::Compute, UniqueArgs::Uniform(compute))
            .common_args(ArgSet::Compute, even.numbers.to_vec()))
    }

    /// The common arguments of the reader.
    fn buffers(&self, at: &At<'_>) -> Vec<u32> {
        let mut common = vec![self.reads.len() as u32];
        for (cb, read) in (OPERAND_CB..).zip(&self.reads) {
            let buffer = &read.which.of(at).buffer;
            let mut words = vec![0; buffer::WORDS as usize];
            words[..4].copy_from_slice(&[buffer.address.word(), buffer.aligned_page_size(), read.bytes, cb]);
            words[buffer::COUNTS as usize..][..LOOPS].copy_from_slice(&read.counts);
            words[buffer::STEPS as usize..][..LOOPS].copy_from_slice(&read.steps);
            common.extend(words);
        }
        common
    }

    /// The program without arguments, with these kernels that read and write.
    fn begun(&self, cores: &[NocXy], [walk, writer]: [&str; 2], at: &At<'_>) -> Result<Program, RuntimeError> {
        use Processor::{Brisc, Ncrisc, Trisc0, Trisc1, Trisc2};
        let kernel = |name: &str, processor| at.kernels.get(name, processor);
        let [unpack, math, pack] = self.compute_kernels();
        let mut role = Role::all()
            .kernel(Trisc0, kernel(unpack, Trisc0)?)
            .kernel(Trisc1, kernel(math, Trisc1)?)
            .kernel(Trisc2, kernel(pack, Trisc2)?)
            .kernel(Brisc, kernel(writer, Brisc)?);
        if !self.reads.is_empty() {
            role = role.kernel(Ncrisc, kernel(walk, Ncrisc)?);
        }
        let cb = |index, page_size| CircularBuffer { index, page_size, pages: PageCount::new(PAGES) };
        let program = Program::new(self.name, Cores::List(cores.to_vec()));
        let program = program.role(role).circular_buffer(cb(RESULT_CB, self.made.1));
        let operands = (OPERAND_CB..).zip(&self.reads);
        Ok(operands.fold(program, |program, (index, read)| program.circular_buffer(cb(index, read.bytes))))
    }

    /// The program in which each core has runs of its own.
    fn program(&self, cores: &[NocXy], at: &At<'_>) -> Result<Program, RuntimeError> {
        let (which, page, format) = self.made;
        let (mut reader, mut compute, mut writer) = (Vec::new(), Vec::new(), Vec::new());
        for core in 0..cores.len() as u32 {
            let (first, runs) = share(self.runs, cores.len() as u32, core);
            let (begin, end) = (first * self.iterations, (first + runs) * self.iterations);
            reader.push(self.reads.iter().flat_map(|read| read.pages(begin, end)).collect());
            compute.push(self.compute([first, runs, begin], format));
            let (first_page, pages) = if self.each { (begin, end - begin) } else { (first, runs) };
            writer.push(vec![which.of(at).buffer.address.word(), first_page, pages, page, RESULT_CB]);
        }
        let mut program = self.begun(cores, ["walk", "writer"], at)?;
        if !self.reads.is_empty() {
            let unique = UniqueArgs::PerCore(reader);
            program = program.unique_args(ArgSet::Ncrisc, unique).common_args(ArgSet::Ncrisc, self.buffers(at));
        }
        Ok(program
            .unique_args(ArgSet::Compute, UniqueArgs::PerCore(compute))
            .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(writer)))
    }

    /// The parts of the compute kernel.
    fn compute_kernels(&self) -> [&'static str; 3] {
        match self.pair {
            Some(_) => ["pair-unpack", "pair-math", "pair-pack"],
            None => ["functions-unpack", self.math, "functions-pack"],
        }
    }

    /// Arguments of the compute kernel for a core with these runs, whose first iteration is
    /// `begin`.
    fn compute(&self, [first, runs, begin]: [u32; 3], format: u32) -> Vec<u32> {
        if let Some(step) = self.pair {
            let of = self.reads[0].format;
            return vec![runs, step.encode(), self.flags, of, format, OPERAND_CB, OPERAND_CB + 1, RESULT_CB];
        }
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
