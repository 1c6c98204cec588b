//! A program checked against a board and its input arrays.

use super::expr::{Expr, Scope};
use super::launches::PlannedLaunch;
use super::schema::{Layout, Use};
use super::scope::{CoreScope, Globals};
use super::source::Source;
use super::steps::{PlannedStep, Step};
use super::wrong::{Wrong, consequence};
use crate::board_option::BoardLayout;
use crate::failure::{Failure, Outcome};
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use tilework_abi::board::Board;
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_checks::Allow;
use tilework_dtype::DType;
use tilework_runtime::BufferType;
use tilework_runtime::memory::{ShardSpecBuffer, TensorMemoryLayout};
use tilework_runtime::program::ProgramErrorKind;
use tilework_runtime::tensor::PageLayout;
use tilework_runtime::{DeviceConfig, KernelImage, Names, ProgramError, WorkerCores};

/// A program that can be put on a device.
#[derive(Debug)]
pub struct Plan {
    /// Name.
    pub name: String,
    /// Board.
    pub board: Board,
    /// Which tiles run the command queue.
    pub dispatch_layout: DispatchLayout,
    /// Command queues: 1 or 2.
    pub queues: u8,
    /// The cores of which its workers are, if not all.
    pub worker_cores: Option<WorkerCores>,
    /// Buffers in the order of the file.
    pub buffers: Vec<PlannedBuffer>,
    /// Circular buffers.
    pub cbs: Vec<PlannedCb>,
    /// Semaphores; their ids are their positions.
    pub semaphores: Vec<PlannedSemaphore>,
    /// Roles.
    pub roles: Vec<PlannedRole>,
    /// Launches, at least one.
    pub launches: Vec<PlannedLaunch>,
    /// What the host puts into the queue; if empty, inputs, then all launches, then outputs.
    pub steps: Vec<PlannedStep>,
    /// Findings that the file allows.
    pub allow: Vec<Allow>,
    pub(super) name_span: Range<usize>,
    pub(super) common_args: [Vec<Arg>; 3],
    pub(super) source: Source,
    pub(super) globals: Globals,
}

/// A buffer with its geometry.
#[derive(Debug)]
pub struct PlannedBuffer {
    /// Name.
    pub name: String,
    /// Input, output or scratch.
    pub usage: Use,
    /// Element type on the chip.
    pub dtype: DType,
    /// Order of the elements.
    pub layout: Layout,
    /// Shape.
    pub shape: Vec<u64>,
    /// Bytes of all elements on the chip.
    pub bytes: u64,
    /// Bytes of a page.
    pub page_size: u32,
    /// Pages; the last one may be filled in part.
    pub pages: u32,
    /// Its elements in pages; those of a buffer of rows may be cut differently.
    pub elements: PageLayout,
    /// Where it lives.
    pub home: Home,
    pub(super) span: Range<usize>,
}

/// Where a buffer lives.
#[derive(Debug)]
pub enum Home {
    /// In the same range of the L1 of every core.
    EachCore,
    /// In the banks of a memory, page by page.
    Interleaved(BufferType),
    /// In the L1 of some workers, in shards.
    Sharded(Shards),
}

impl Home {
    /// Whether it is in DRAM.
    pub fn is_dram(&self) -> bool {
        matches!(self, Self::Interleaved(BufferType::Dram))
    }
    /// The name in overviews.
    pub fn name(&self) -> &'static str {
        match self {
            Self::EachCore => "l1",
            Self::Interleaved(BufferType::Dram) => "dram",
            Self::Interleaved(_) => "l1-interleaved",
            Self::Sharded(_) => "l1-sharded",
        }
    }
}

/// The shards of a buffer.
#[derive(Debug)]
pub struct Shards {
    /// Their direction.
    pub layout: TensorMemoryLayout,
    /// Their shape, their cores and their pages.
    pub spec: ShardSpecBuffer,
}

impl Shards {
    /// Pages of a whole shard.
    pub fn pages(&self) -> u64 {
        let ([rows, columns], [height, width]) = (self.spec.tensor_shard_spec.shape, self.spec.page_shape);
        u64::from(rows / height.max(1)) * u64::from(columns / width.max(1))
    }
}

/// A semaphore.
#[derive(Debug)]
pub struct PlannedSemaphore {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Its value at the start.
    pub initial: u32,
}

/// A circular buffer.
#[derive(Debug)]
pub struct PlannedCb {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// Index.
    pub index: u8,
    /// Pages.
    pub pages: u32,
    /// Bytes of a page.
    pub page_size: u32,
    pub(super) span: Range<usize>,
}

/// A role with its cores.
#[derive(Debug)]
pub struct PlannedRole {
    /// Name.
    pub name: String,
    /// Cores, in the order of the role.
    pub cores: Vec<NocXy>,
    /// Kernels.
    pub kernels: Vec<PlannedKernel>,
}

/// A kernel of a role.
#[derive(Debug)]
pub struct PlannedKernel {
    /// The core of the tile that runs it.
    pub processor: Processor,
    /// What the file calls it.
    pub label: String,
    /// The image of its ELF file; absent when something is wrong with that.
    pub image: Option<Arc<KernelImage>>,
    pub(super) args: Vec<Arg>,
}

impl PlannedKernel {
    /// Its argument set, an index into [`SETS`].
    pub fn set(&self) -> usize {
        self.processor.index().min(2)
    }
}

/// Names of the argument sets; the three TRISCs have one together.
pub const SETS: [&str; 3] = ["brisc", "ncrisc", "trisc"];

/// The argument words of a program, by argument set: BRISC, NCRISC, TRISC.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Arguments {
    /// One list per core, role after role of the launch, each in the order of its cores.
    pub per_core: [Vec<Vec<u32>>; 3],
    /// The lists that all cores share.
    pub common: [Vec<u32>; 3],
}

/// A parsed argument with its place in the file.
#[derive(Debug)]
pub(super) struct Arg {
    pub(super) expr: Expr,
    pub(super) text: String,
    pub(super) span: Range<usize>,
}

impl Plan {
    /// The argument words of every core for each launch, once each buffer (in order) has its
    /// address.
    pub fn arguments(&self, addresses: &[u64]) -> Outcome<Vec<Arguments>> {
        let mut wrong = Wrong::default();
        let arguments = self.arguments_or(addresses, &mut wrong);
        wrong.outcome().map(|()| arguments)
    }

    /// The same; an argument that has no value is kept as wrong, and zero.
    pub fn arguments_or(&self, addresses: &[u64], wrong: &mut Wrong) -> Vec<Arguments> {
        let mut globals = self.globals.clone();
        for (buffer, &address) in self.buffers.iter().zip(addresses) {
            globals.set(format!("{}.addr", buffer.name), address);
        }
        let mut words = Words { source: &self.source, wrong, failed: BTreeSet::new() };
        (0..self.launches.len()).map(|launch| self.arguments_of(launch, &globals, &mut words)).collect()
    }

    /// The arguments of one launch.
    fn arguments_of(&self, launch: usize, globals: &Globals, words: &mut Words<'_>) -> Arguments {
        let mut globals = globals.clone();
        globals.set("launch.index", launch);
        globals.set("launch.count", self.launches.len());
        for (name, value) in self.launches[launch].values.iter() {
            match words.number(value, &globals, &format!("launch.{name}")) {
                Some(number) => globals.set(format!("launch.{name}"), number),
                None => globals.set_broken(format!("launch.{name}")),
            }
        }
        let mut out = Arguments::default();
        for (set, list) in self.common_args.iter().enumerate() {
            out.common[set] = words.of(list, &globals, &format!("common_args.{}", SETS[set]));
        }
        for role in self.launched(launch) {
            for index in 0..role.cores.len() {
                let scope = CoreScope { globals: &globals, cores: &role.cores, index };
                let mut lists: [Vec<u32>; 3] = Default::default();
                for kernel in role.kernels.iter().filter(|k| !k.args.is_empty()) {
                    let place = format!("role \"{}\", {}, args", role.name, kernel.processor.name());
                    lists[kernel.set()] = words.of(&kernel.args, &scope, &place);
                }
                for (all, list) in out.per_core.iter_mut().zip(lists) {
                    all.push(list);
                }
            }
        }
        out
    }

    /// What it was checked against.
    pub fn at(&self) -> BoardLayout {
        BoardLayout { board: self.board, layout: self.dispatch_layout, queues: self.queues, chosen: self.worker_cores }
    }

    /// The device that it takes.
    pub fn device(&self) -> DeviceConfig {
        let (layout, queues, worker_cores) = (self.dispatch_layout, self.queues, self.worker_cores);
        DeviceConfig { layout, queues, worker_cores, ..DeviceConfig::new(self.board) }
    }

    /// The roles that run in a launch, in the order of the file.
    pub fn launched(&self, launch: usize) -> impl Iterator<Item = &PlannedRole> {
        let roles = self.launches.get(launch).map(|launch| launch.roles.as_slice()).unwrap_or_default();
        roles.iter().filter_map(|&role| self.roles.get(role))
    }

    /// The name of what a launch runs: the program, or a part of it that the file names.
    pub fn launch_name(&self, launch: usize) -> String {
        match self.launches.get(launch).filter(|launch| launch.chosen) {
            Some(launch) => format!("{}.{}", self.name, launch.name),
            None => self.name.clone(),
        }
    }

    /// The arrays that a run gives: their names, and the buffers that they are read from.
    pub fn outputs(&self) -> Vec<(&str, usize)> {
        if self.steps.is_empty() {
            return self.buffers_for(Use::Output).map(|(i, buffer)| (buffer.name.as_str(), i)).collect();
        }
        let reads = self.steps.iter().map(|planned| &planned.step).filter(|step| matches!(step, Step::Read { .. }));
        reads.filter_map(|step| Some((step.name(&self.buffers), step.buffer()?))).collect()
    }

    /// Cores that run kernels.
    pub fn cores(&self) -> usize {
        self.roles.iter().flat_map(|role| role.cores.iter().copied()).collect::<BTreeSet<_>>().len()
    }

    /// A layout that does not come about, at its place in the file: that of a circular buffer, or
    /// of the program.
    pub fn misfit(&self, error: &ProgramError) -> Failure {
        let span = match &error.kind {
            ProgramErrorKind::CircularBuffer { index, .. } => {
                self.cbs.iter().find(|cb| u32::from(cb.index) == *index).map(|cb| cb.span.clone())
            }
            _ => None,
        };
        self.source.error(span.unwrap_or_else(|| self.name_span.clone()), &error.kind)
    }

    /// Names for the reports of the runtime.
    pub fn names(&self) -> Names {
        let circular_buffers = self.cbs.iter().filter_map(|cb| Some((cb.index.into(), cb.name.clone()?)));
        let semaphores = (0..).zip(&self.semaphores).filter_map(|(id, semaphore)| Some((id, semaphore.name.clone()?)));
        Names { circular_buffers: circular_buffers.collect(), semaphores: semaphores.collect() }
    }

    /// The inputs and outputs of a kind.
    pub fn buffers_for(&self, usage: Use) -> impl Iterator<Item = (usize, &PlannedBuffer)> {
        self.buffers.iter().enumerate().filter(move |(_, b)| b.usage == usage)
    }
}

/// Turns lists of arguments into words.
struct Words<'a> {
    source: &'a Source,
    wrong: &'a mut Wrong,
    /// Arguments that have failed for some core, by their places: the next core's value would be as
    /// wrong.
    failed: BTreeSet<usize>,
}

impl Words<'_> {
    /// A number that is no argument itself.
    fn number(&mut self, arg: &Arg, scope: &dyn Scope, place: &str) -> Option<i64> {
        self.once(arg, |source| value(source, arg, scope, place))
    }

    /// What is made of an expression, unless that has failed before.
    fn once<T>(&mut self, arg: &Arg, made: impl FnOnce(&Source) -> Outcome<T>) -> Option<T> {
        let known = self.failed.contains(&arg.span.start);
        let made = if known { None } else { self.wrong.keep(made(self.source)) };
        if made.is_none() {
            self.failed.insert(arg.span.start);
        }
        made
    }

    fn of(&mut self, list: &[Arg], scope: &dyn Scope, place: &str) -> Vec<u32> {
        let mut words = Vec::with_capacity(list.len());
        for (i, arg) in list.iter().enumerate() {
            words.push(self.once(arg, |source| word(source, arg, scope, place, i)).unwrap_or(0));
        }
        words
    }
}

/// The value of an expression; `place` is what messages call it.
fn value(source: &Source, arg: &Arg, scope: &dyn Scope, place: &str) -> Outcome<i64> {
    arg.expr.value(scope).map_err(|e| match e.message.as_str() {
        "" => consequence(),
        _ => {
            let span = source.inside(&arg.span, &arg.text, e.at.clone());
            source.error(span, format!("{place}: {e}"))
        }
    })
}

fn word(source: &Source, arg: &Arg, scope: &dyn Scope, place: &str, index: usize) -> Outcome<u32> {
    let value = value(source, arg, scope, &format!("{place}[{index}]"))?;
    // Negative values are passed as the two's complement that a kernel reads as i32.
    let word = u32::try_from(value).ok().or_else(|| i32::try_from(value).ok().map(i32::cast_unsigned));
    word.ok_or_else(|| {
        let message = format!("{place}[{index}]: {value} does not fit the 32 bits of an argument word");
        source.error(arg.span.clone(), message)
    })
}

#[cfg(test)]
mod tests;
