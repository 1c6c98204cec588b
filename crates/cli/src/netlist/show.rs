//! `tilework show NETLIST.yaml`: what is in it, and what it takes of the memories.

use super::args::NetlistShowArgs;
use super::{checked, refused};
use crate::answer::{Answer, ReportForm};
use crate::args::ShowArgs;
use crate::failure::{Failure, Outcome};
use serde::Serialize;
use std::io::{Result, Write};
use tilework_netlist::memory::{Memory, queue_buffer_bytes};
use tilework_netlist::types::{
    Blocks, InstructionKind, Location, Netlist, Op, Producer, Program, Queue, QueueKind, Source,
};
use tilework_netlist::{Arch, Checked};

/// A netlist in short. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
struct NetlistOverview {
    archs: Vec<&'static str>,
    queues: Vec<QueueView>,
    graphs: Vec<GraphView>,
    programs: Vec<ProgramView>,
    fused_ops: usize,
}

#[derive(Serialize)]
struct QueueView {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    input: String,
    entries: u32,
    /// t, rows and columns of an entry, in elements.
    shape: (usize, usize, usize),
    df: &'static str,
    device: u32,
    loc: &'static str,
    buffers: usize,
    /// Bytes of each buffer.
    buffer_bytes: u64,
    alias: Option<String>,
}

#[derive(Serialize)]
struct GraphView {
    name: String,
    device: u32,
    input_count: u32,
    ops: Vec<OpView>,
}

#[derive(Serialize)]
struct OpView {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
    inputs: Vec<String>,
    shape: (usize, usize, usize),
    df: &'static str,
    grid_loc: (u32, u32),
    grid_size: (u32, u32),
}

#[derive(Serialize)]
struct ProgramView {
    name: String,
    params: Vec<String>,
    instructions: usize,
    executes: Vec<String>,
}

/// Shows what is asked for. A netlist with errors is a malformed file; `tilework check` says more.
pub fn show(args: &ShowArgs, own: &NetlistShowArgs) -> Outcome<Answer> {
    if own.ops && args.report.form() == ReportForm::Json {
        return Err(Failure::option("--ops", " is for people: a JSON report has all operations"));
    }
    let Checked { netlist, archs, diagnostics } = checked(&args.file, own.arch)?;
    let (Some(netlist), Some(arch)) = (netlist, archs.last().copied()) else {
        let message = format!("{diagnostics}{}: not a right netlist", args.file.display());
        return Err(refused(&args.file, message, &diagnostics));
    };
    if own.memory {
        return Ok(Answer::new(Memory::of(&netlist, arch), |memory, out| write!(out, "{memory}")));
    }
    let ops = own.ops;
    Ok(Answer::new(overview(&netlist, &archs, arch), move |overview, out| overview.text(ops, out)))
}

fn overview(netlist: &Netlist, archs: &[Arch], arch: Arch) -> NetlistOverview {
    NetlistOverview {
        archs: archs.iter().map(|arch| arch.name()).collect(),
        queues: netlist.queues.iter().map(|queue| queue_view(netlist, queue, arch)).collect(),
        graphs: netlist
            .graphs
            .iter()
            .map(|graph| GraphView {
                name: graph.name.clone(),
                device: graph.target_device,
                input_count: graph.input_count,
                ops: graph.ops.iter().map(|op| op_view(netlist, op)).collect(),
            })
            .collect(),
        programs: netlist.programs.iter().map(|program| program_view(netlist, program)).collect(),
        fused_ops: netlist.fused_ops.len(),
    }
}

fn shape(blocks: &Blocks) -> (usize, usize, usize) {
    let shape = blocks.shape();
    (shape.t, shape.rows, shape.columns)
}

fn queue_view(netlist: &Netlist, queue: &Queue, arch: Arch) -> QueueView {
    QueueView {
        name: queue.name.clone(),
        kind: if queue.kind == QueueKind::Queue { "queue" } else { "ram" },
        input: match queue.producer {
            Producer::Host => "HOST".into(),
            Producer::Op(op) => netlist.op(op).name.clone(),
        },
        entries: queue.entries,
        shape: shape(&queue.blocks),
        df: queue.format.buda_name(),
        device: queue.target_device,
        loc: if queue.location == Location::Dram { "dram" } else { "host" },
        buffers: queue.buffers.len(),
        buffer_bytes: queue_buffer_bytes(netlist, queue, arch),
        alias: queue.alias.map(|alias| netlist.queue(alias).name.clone()),
    }
}

fn op_view(netlist: &Netlist, op: &Op) -> OpView {
    let name = |source: Source| match source {
        Source::Queue(queue) => netlist.queue(queue).name.clone(),
        Source::Op(op) => netlist.op(op).name.clone(),
    };
    OpView {
        name: op.name.clone(),
        kind: op.kind.name(),
        inputs: op.inputs.iter().map(|input| name(input.source)).collect(),
        shape: shape(&op.blocks),
        df: op.out_format.buda_name(),
        grid_loc: (op.grid_loc.r, op.grid_loc.c),
        grid_size: (op.blocks.grid.r, op.blocks.grid.c),
    }
}

fn program_view(netlist: &Netlist, program: &Program) -> ProgramView {
    let mut view = ProgramView {
        name: program.name.clone(),
        params: Vec::new(),
        instructions: program.instructions.len(),
        executes: Vec::new(),
    };
    for instruction in &program.instructions {
        match &instruction.kind {
            InstructionKind::Param(names) => view.params.extend(names.iter().cloned()),
            InstructionKind::Execute { graph, .. } => view.executes.push(netlist.graph(*graph).name.clone()),
            _ => {}
        }
    }
    view
}

impl NetlistOverview {
    fn text(&self, ops: bool, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "netlist for {}", self.archs.join(", "))?;
        writeln!(out, "\n{} queues", self.queues.len())?;
        for q in &self.queues {
            let (t, rows, columns) = q.shape;
            let alias = q.alias.as_ref().map(|alias| format!(", another view of {alias}")).unwrap_or_default();
            writeln!(
                out,
                "  {} {} from {}: {} x {} [{t}x{rows}x{columns}], device {} {}, {} x {} bytes{alias}",
                q.kind, q.name, q.input, q.entries, q.df, q.device, q.loc, q.buffers, q.buffer_bytes
            )?;
        }
        for g in &self.graphs {
            let (count, device) = (g.ops.len(), g.device);
            writeln!(out, "\ngraph {} on device {device}: {} inputs, {count} operations", g.name, g.input_count)?;
            // Large graphs are listed on request only.
            for op in g.ops.iter().take(if ops { usize::MAX } else { 16 }) {
                let (t, rows, columns) = op.shape;
                let ((y, x), (r, c)) = (op.grid_loc, op.grid_size);
                let inputs = op.inputs.join(", ");
                writeln!(
                    out,
                    "  {} = {} ({inputs}) {} [{t}x{rows}x{columns}] at [{y}, {x}], {r} x {c} cores",
                    op.name, op.kind, op.df
                )?;
            }
            if !ops && count > 16 {
                writeln!(out, "  and {} more (--ops lists all)", count - 16)?;
            }
        }
        for p in &self.programs {
            let params = if p.params.is_empty() { String::new() } else { format!(" ({})", p.params.join(", ")) };
            let graphs = p.executes.join(", ");
            writeln!(out, "\nprogram {}{params}: {} instructions, executes {graphs}", p.name, p.instructions)?;
        }
        Ok(())
    }
}
