//! `tilework check` and `tilework show` of a kernel program: its buffers, cores and kernels on a
//! board. Nothing runs.

use super::args::KernelPlanArgs;
use super::plan::{Plan, PlannedBuffer, PlannedCb, PlannedRole};
use super::run::NO_RANDOM_INPUTS;
use super::schema::{Location, ProgramFile, Use};
use super::source::Source;
use crate::answer::Answer;
use crate::array::shape_text;
use crate::failure::Outcome;
use crate::inputs;
use serde::Serialize;
use std::io::{Result, Write};
use std::path::Path;

/// An address that a buffer could have, with which arguments are checked when nothing is placed.
const ANY_ADDRESS: u64 = 0x10_0000;

/// What a program is on a board. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
struct ProgramOverview {
    file: String,
    program: String,
    board: &'static str,
    /// Workers that run kernels.
    cores: usize,
    buffers: Vec<BufferView>,
    circular_buffers: Vec<CircularBufferView>,
    semaphores: usize,
    roles: Vec<RoleView>,
}

#[derive(Serialize)]
struct BufferView {
    name: String,
    r#use: &'static str,
    dtype: &'static str,
    shape: Vec<u64>,
    location: &'static str,
    pages: u32,
    page_size: u32,
}

#[derive(Serialize)]
struct CircularBufferView {
    index: u8,
    pages: u32,
    page_size: u32,
}

#[derive(Serialize)]
struct RoleView {
    name: String,
    cores: Vec<CoreView>,
    kernels: Vec<KernelView>,
}

#[derive(Serialize)]
struct CoreView {
    x: u8,
    y: u8,
}

#[derive(Serialize)]
struct KernelView {
    /// The core of the tile, as the program file names it.
    core: String,
    elf: String,
}

/// Checks a program against a board. A mistake is a malformed file.
pub fn check(file: &Path, own: &KernelPlanArgs) -> Outcome<Answer> {
    Ok(Answer::new(overview(file, own)?, |found, out| {
        writeln!(out, "ok   {}: fits a {}: {}", found.file, found.board, found.counts())
    }))
}

/// Shows what a program has on a board.
pub fn show(file: &Path, own: &KernelPlanArgs) -> Outcome<Answer> {
    Ok(Answer::new(overview(file, own)?, ProgramOverview::text))
}

fn overview(file: &Path, own: &KernelPlanArgs) -> Outcome<ProgramOverview> {
    let inputs = inputs::by_name(&own.input, NO_RANDOM_INPUTS)?;
    let source = Source::read(file, "a program file")?;
    let parsed = ProgramFile::parse(&source)?;
    let plan = Plan::without_arrays(source, parsed, own.board.board(), &inputs)?;
    plan.arguments(&vec![ANY_ADDRESS; plan.buffers.len()])?;
    let circular_buffer =
        |cb: &PlannedCb| CircularBufferView { index: cb.index, pages: cb.pages, page_size: cb.page_size };
    Ok(ProgramOverview {
        file: file.display().to_string(),
        program: plan.name.clone(),
        board: plan.board.name(),
        cores: plan.roles.iter().map(|role| role.cores.len()).sum(),
        buffers: plan.buffers.iter().map(buffer).collect(),
        circular_buffers: plan.cbs.iter().map(circular_buffer).collect(),
        semaphores: plan.semaphores.len(),
        roles: plan.roles.iter().map(role).collect(),
    })
}

fn buffer(buffer: &PlannedBuffer) -> BufferView {
    BufferView {
        name: buffer.name.clone(),
        r#use: match buffer.usage {
            Use::Input => "input",
            Use::Output => "output",
            Use::Scratch => "scratch",
        },
        dtype: buffer.dtype.name(),
        shape: buffer.shape.clone(),
        location: match buffer.location {
            Location::Dram => "dram",
            Location::L1 => "l1",
        },
        pages: buffer.pages,
        page_size: buffer.page_size,
    }
}

fn role(role: &PlannedRole) -> RoleView {
    let kernels = role.kernels.iter();
    RoleView {
        name: role.name.clone(),
        cores: role.cores.iter().map(|core| CoreView { x: core.x, y: core.y }).collect(),
        kernels: kernels
            .map(|kernel| KernelView { core: kernel.processor.name().to_lowercase(), elf: kernel.label.clone() })
            .collect(),
    }
}

impl ProgramOverview {
    fn counts(&self) -> String {
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let (roles, buffers) = (count(self.roles.len(), "role"), count(self.buffers.len(), "buffer"));
        format!("{roles} on {}, {buffers}", count(self.cores, "core"))
    }

    fn text(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{} on a {}: {}", self.program, self.board, self.counts())?;
        for b in &self.buffers {
            let (shape, memory) = (shape_text(&b.shape), if b.location == "l1" { "L1" } else { "DRAM" });
            let (name, pages, page_size) = (&b.name, b.pages, b.page_size);
            writeln!(out, "  {} {name} {} {shape}: {pages} x {page_size} bytes in {memory}", b.r#use, b.dtype)?;
        }
        for CircularBufferView { index, pages, page_size } in &self.circular_buffers {
            writeln!(out, "  circular buffer {index}: {pages} x {page_size} bytes")?;
        }
        if self.semaphores > 0 {
            writeln!(out, "  {} semaphores", self.semaphores)?;
        }
        for role in &self.roles {
            let kernels: Vec<String> = role.kernels.iter().map(|k| format!("{} {}", k.core, k.elf)).collect();
            writeln!(out, "  role {} on {} cores: {}", role.name, role.cores.len(), kernels.join(", "))?;
        }
        Ok(())
    }
}
