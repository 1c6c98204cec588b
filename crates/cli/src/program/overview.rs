//! `tilework check` and `tilework show` of a kernel program: what it has, and where everything of
//! it lies on a board. Nothing runs.

use super::args::{KernelPlanArgs, KernelShowArgs};
use super::lower::{build, place_or};
use super::memory_map::MemoryOverview;
use super::plan::{Arguments, Plan, PlannedBuffer, PlannedRole, SETS};
use super::run::NO_RANDOM_INPUTS;
use super::schema::{BufferDecl, ProgramFile, Use};
use super::source::Source;
use super::steps::PlannedStep;
use super::wrong::{Wrong, consequence};
use crate::answer::Answer;
use crate::board_option::BoardLayout;
use crate::failure::{Failure, Outcome};
use crate::inputs;
use serde::Serialize;
use std::path::Path;
use tilework_abi::board::Board;
use tilework_abi::l1::WORKER;
use tilework_abi::msg::MODE_DEV;
use tilework_abi::{L1_ALIGN, tensix::Processor};
use tilework_runtime::memory::AllocatorConfig;
use tilework_runtime::program::Layout;
use tilework_runtime::{MemorySpace, Names, QueueId, lower};

/// What a program is on a board. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
pub struct ProgramOverview {
    pub file: String,
    pub program: String,
    pub board: &'static str,
    /// Workers that run kernels.
    pub cores: usize,
    pub buffers: Vec<BufferView>,
    pub circular_buffers: Vec<CircularBufferView>,
    pub semaphores: usize,
    /// How often it runs. Arguments below are those of the first time that the role runs.
    pub launches: usize,
    /// What the host puts into the queue, if the program says it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub queue: Vec<StepView>,
    pub roles: Vec<RoleView>,
    /// The arguments that all cores share, by set.
    pub common_arguments: Vec<ArgumentsView>,
    /// What lies where in the L1 of each core.
    pub l1: Vec<RangeView>,
    /// What lies where in each DRAM bank.
    pub dram: Vec<RangeView>,
}

#[derive(Serialize)]
pub struct BufferView {
    pub name: String,
    pub r#use: &'static str,
    pub dtype: &'static str,
    pub shape: Vec<u64>,
    pub location: &'static str,
    pub pages: u32,
    pub page_size: u32,
    /// In L1, or in each DRAM bank.
    pub address: u64,
}

/// A step of the host.
#[derive(Serialize)]
pub struct StepView {
    /// write, launch, read, record, wait, synchronize, trace, replay or release.
    pub action: &'static str,
    /// The queue that it goes into; absent for one that is the host's alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<u8>,
    /// The input that is written, the launch, the read, the event or the trace.
    pub name: String,
    /// The buffer that is written or read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub buffer: Option<String>,
    /// The launches that a trace has.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub launches: Vec<String>,
    /// How often a trace is replayed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<u32>,
}

#[derive(Serialize)]
pub struct CircularBufferView {
    pub index: u8,
    pub name: Option<String>,
    pub pages: u32,
    pub page_size: u32,
    pub address: u32,
}

#[derive(Serialize)]
pub struct RoleView {
    pub name: String,
    pub cores: Vec<CoreView>,
    pub kernels: Vec<KernelView>,
}

#[derive(Serialize)]
pub struct CoreView {
    pub x: u8,
    pub y: u8,
}

#[derive(Serialize)]
pub struct KernelView {
    /// The core of the tile, as the program file names it.
    pub core: String,
    pub elf: String,
    /// Bytes in L1, and where.
    pub bytes: u32,
    pub address: u32,
    /// Its arguments on each core of the role, in their order; those of one TRISC are the others',
    /// too.
    pub arguments: Vec<Vec<u32>>,
}

#[derive(Serialize)]
pub struct ArgumentsView {
    /// brisc, ncrisc or trisc.
    pub set: &'static str,
    pub arguments: Vec<u32>,
}

/// A range of a memory.
#[derive(Serialize)]
pub struct RangeView {
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    pub what: String,
}

impl StepView {
    fn new(plan: &Plan, PlannedStep { step, queue, .. }: &PlannedStep) -> Self {
        let buffer = step.buffer().map(|buffer| plan.buffers[buffer].name.clone());
        let (name, queue) = (step.name(&plan.buffers).to_owned(), queue.map(QueueId::number));
        Self { action: step.action(), queue, name, buffer, launches: step.captured(), times: step.times() }
    }
}

impl RangeView {
    fn new(start: impl Into<u64>, bytes: impl Into<u64>, what: String) -> Option<Self> {
        let (start, bytes) = (start.into(), bytes.into());
        (bytes > 0).then_some(Self { start, end: start + bytes, what })
    }
}

/// Checks a program against a board. A mistake is a malformed file.
pub fn check(file: &Path, own: &KernelPlanArgs) -> Outcome<Answer> {
    Ok(Answer::new(overview(file, own)?.0, |found, out| {
        writeln!(out, "ok   {}: fits a {}: {}", found.file, found.board, found.counts())
    }))
}

/// Shows what a program has on a board, and where.
pub fn show(file: &Path, own: &KernelShowArgs) -> Outcome<Answer> {
    let (found, at) = overview(file, &own.plan)?;
    Ok(match own.memory {
        true => Answer::new(MemoryOverview::new(found, at), MemoryOverview::text),
        false => Answer::new(found, ProgramOverview::text),
    })
}

/// Everything of a program and what it was checked against, or everything that is wrong with it.
fn overview(file: &Path, own: &KernelPlanArgs) -> Outcome<(ProgramOverview, BoardLayout)> {
    let inputs = inputs::by_name(&own.input, NO_RANDOM_INPUTS)?;
    let source = Source::read(file, "a program file")?;
    let mut wrong = Wrong::default();
    let Some(parsed) = ProgramFile::parse_or(&source, &mut wrong) else {
        return Err(wrong.outcome().err().unwrap_or_else(consequence));
    };
    let needs_array = |decl: &BufferDecl| decl.shape.is_none() && decl.like.is_none();
    let board = own.board_layout();
    let (plan, more) = Plan::examine(source, &parsed, board, &inputs, needs_array);
    wrong.join(more);
    let mut memory = MemorySpace::with(&AllocatorConfig::of_workers(plan.board, &WORKER, plan.at().workers()));
    let placed = place_or(&mut memory, &plan, &mut wrong);
    let launches = plan.arguments_or(&placed.addresses, &mut wrong);
    // A program of which parts are missing has no layout.
    let layouts: Outcome<Vec<Layout>> = match wrong.is_empty() {
        true => launches.iter().enumerate().map(|(i, arguments)| lay_out(&plan, i, arguments, &memory)).collect(),
        false => Ok(Vec::new()),
    };
    match wrong.keep(layouts).filter(|layouts| !layouts.is_empty()) {
        Some(layouts) => {
            let launched = Launched { arguments: launches, layouts };
            Ok((view(file, &plan, &launched, &memory, &placed.addresses), plan.at()))
        }
        None => Err(wrong.outcome().err().unwrap_or_else(consequence)),
    }
}

/// Arguments and layout of each launch.
struct Launched {
    arguments: Vec<Arguments>,
    layouts: Vec<Layout>,
}

/// A role in the first launch that runs it: what is shown of it.
struct FirstRun<'a> {
    role: &'a PlannedRole,
    launch: usize,
    /// Its position among the roles of the launch.
    number: usize,
    /// The cores of the roles before it.
    before: usize,
}

/// All roles, in the order of the file.
fn first_runs(plan: &Plan) -> Vec<FirstRun<'_>> {
    let of = |role: &PlannedRole| {
        (0..plan.launches.len()).find_map(|launch| {
            let number = plan.launched(launch).position(|one| one.name == role.name)?;
            Some((launch, number, plan.launched(launch).take(number).map(|one| one.cores.len()).sum()))
        })
    };
    let run = |role| of(role).map(|(launch, number, before)| FirstRun { role, launch, number, before });
    plan.roles.iter().filter_map(run).collect()
}

/// Where everything of a program lies, after the checks that a device makes.
fn lay_out(plan: &Plan, launch: usize, arguments: &Arguments, memory: &MemorySpace) -> Result<Layout, Failure> {
    let program = build(plan, launch, arguments.clone());
    let layout = program.layout(&plan.at().workers(), &WORKER, memory.l1()).map_err(|error| plan.misfit(&error))?;
    // Kernels are moved to their places.
    lower::build_ir(&program, &layout, &WORKER, MODE_DEV).map_err(|error| plan.misfit(&error))?;
    Ok(layout)
}

fn view(file: &Path, plan: &Plan, launched: &Launched, memory: &MemorySpace, addresses: &[u64]) -> ProgramOverview {
    let runs = first_runs(plan);
    let (arguments, layout) = (&launched.arguments[0], &launched.layouts[0]);
    let cb = |(cb, placed): (&super::plan::PlannedCb, &tilework_runtime::program::CbLayout)| CircularBufferView {
        index: cb.index,
        name: cb.name.clone(),
        pages: cb.pages,
        page_size: cb.page_size,
        address: placed.address.get(),
    };
    let common = SETS.iter().zip(&arguments.common).filter(|(_, list)| !list.is_empty());
    ProgramOverview {
        file: file.display().to_string(),
        program: plan.name.clone(),
        board: plan.board.name(),
        cores: plan.cores(),
        buffers: plan.buffers.iter().zip(addresses).map(|(one, &address)| buffer(one, address)).collect(),
        circular_buffers: plan.cbs.iter().zip(&layout.cbs).map(cb).collect(),
        semaphores: plan.semaphores.len(),
        launches: plan.launches.len(),
        queue: plan.steps.iter().map(|step| StepView::new(plan, step)).collect(),
        roles: runs.iter().map(|run| role_view(run, launched)).collect(),
        common_arguments: common.map(|(&set, list)| ArgumentsView { set, arguments: list.clone() }).collect(),
        l1: l1(plan, memory, launched, &runs),
        dram: dram(plan.board, memory),
    }
}

fn buffer(buffer: &PlannedBuffer, address: u64) -> BufferView {
    BufferView {
        name: buffer.name.clone(),
        r#use: match buffer.usage {
            Use::Input => "input",
            Use::Output => "output",
            Use::Scratch => "scratch",
        },
        dtype: buffer.dtype.name(),
        shape: buffer.shape.clone(),
        location: buffer.home.name(),
        pages: buffer.pages,
        page_size: buffer.page_size,
        address,
    }
}

/// A role with what it has in its first run.
fn role_view(run: &FirstRun<'_>, launched: &Launched) -> RoleView {
    let FirstRun { role, launch, number, before } = run;
    let (arguments, layout) = (&launched.arguments[*launch], &launched.layouts[*launch]);
    let placed = layout.roles.get(*number);
    let kernels = role.kernels.iter().map(|kernel| {
        let index = kernel.processor.index();
        let lists = &arguments.per_core[kernel.set()];
        KernelView {
            core: kernel.processor.name().to_lowercase(),
            elf: kernel.label.clone(),
            bytes: placed.map_or(0, |placed| placed.text_bytes[index]),
            address: placed.map_or(0, |placed| layout.base.get() + placed.text[index]),
            arguments: lists.iter().skip(*before).take(role.cores.len()).cloned().collect(),
        }
    });
    RoleView {
        name: role.name.clone(),
        cores: role.cores.iter().map(|core| CoreView { x: core.x, y: core.y }).collect(),
        kernels: kernels.collect(),
    }
}

/// What a program has in the L1 of its cores, by address: of each role in its first run.
fn l1(plan: &Plan, memory: &MemorySpace, launched: &Launched, runs: &[FirstRun<'_>]) -> Vec<RangeView> {
    let (names, mut rows) = (plan.names(), Vec::new());
    for run in runs {
        let layout = &launched.layouts[run.launch];
        // The parts that the roles of a launch share are listed with the first of them.
        if run.number == 0 {
            rows.extend(shared(layout, &names));
        }
        let Some(placed) = layout.roles.get(run.number) else { continue };
        for kernel in &run.role.kernels {
            let index = kernel.processor.index();
            let what = format!("kernel {} of {}, role {}", kernel.label, name(kernel.processor), run.role.name);
            rows.push(RangeView::new(layout.base.get() + placed.text[index], placed.text_bytes[index], what));
        }
    }
    for owned in memory.l1().owners() {
        let bytes = owned.range.end - owned.range.start;
        rows.push(RangeView::new(owned.range.start, bytes, format!("buffer {}", owned.owner)));
    }
    let mut rows: Vec<RangeView> = rows.into_iter().flatten().collect();
    rows.sort_by(|a, b| (a.start, a.end, &a.what).cmp(&(b.start, b.end, &b.what)));
    rows.dedup_by(|a, b| (a.start, a.end, &a.what) == (b.start, b.end, &b.what));
    rows
}

/// What all roles of a launch share.
fn shared(layout: &Layout, names: &Names) -> Vec<Option<RangeView>> {
    let (base, mut rows) = (layout.base.get(), Vec::new());
    for (set, span) in SETS.iter().zip(&layout.args) {
        rows.push(RangeView::new(base + span.unique, span.unique_bytes, format!("arguments of {set}")));
    }
    for id in 0..layout.semaphores {
        let what = format!("semaphore {}", names.semaphore(id));
        rows.push(RangeView::new(base + layout.sem_offset + id * L1_ALIGN, L1_ALIGN, what));
    }
    rows.push(RangeView::new(base + layout.cb_offset, layout.cb_bytes, "configurations of circular buffers".into()));
    for cb in &layout.cbs {
        let what = format!("circular buffer {}", names.circular_buffer(cb.index));
        rows.push(RangeView::new(cb.address.get(), cb.size(), what));
    }
    rows
}

fn dram(board: Board, memory: &MemorySpace) -> Vec<RangeView> {
    let banks = board.dram().banks().len();
    let range = |owned: &tilework_runtime::memory::Owned| {
        let bytes = owned.range.end - owned.range.start;
        RangeView::new(owned.range.start, bytes, format!("buffer {}, its share of each of {banks} banks", owned.owner))
    };
    memory.dram().owners().filter_map(range).collect()
}

fn name(processor: Processor) -> String {
    processor.name().to_lowercase()
}

impl ProgramOverview {
    pub fn counts(&self) -> String {
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let (roles, buffers) = (count(self.roles.len(), "role"), count(self.buffers.len(), "buffer"));
        format!("{roles} on {}, {buffers}", count(self.cores, "core"))
    }
}
