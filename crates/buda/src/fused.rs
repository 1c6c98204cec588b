//! Fused operations: a schedule of steps between inputs, intermediate buffers and the
//! destination registers.
//!
//! The steps run in order on whole tensors, though the hardware runs them ublock by ublock: the
//! result is the same. What the destination registers hold lives for one step. An intermediate
//! buffer must be popped before it is written again (tt-budabackend, `docs/public/netlist.md`,
//! section Fused OPs). `pop` and `pop_last` both end a buffer's life with the step: they differ in
//! the ublock after which the hardware frees it.
//!
//! Buffers of integers round and clamp what is written to them; what a step quantises is Int8 in
//! whatever buffer (tt-budabackend, `ops/fused_op.cpp`).
//!
//! A core has only its own part of a tensor, so broadcasts and reductions act within the part of
//! each row or column of cores.

use tilework_dtype::DType;
use tilework_netlist::types::{
    Blocks, Dim, FusedOp, FusedSource, FusedStep, FusedTarget, OpKind, Order, QuantKind, ReduceDim, Size, Tm,
};

use crate::format;
use crate::golden;
use crate::op::{Context, Reason};
use crate::tensor::Tensor;
use crate::tm;

/// Buffers while a schedule runs.
struct Buffers<'a> {
    inputs: &'a [&'a Tensor],
    intermediates: Vec<Option<Tensor>>,
    dest: Option<Tensor>,
    output: Option<Tensor>,
}

/// Runs a fused operation; `blocks` are those of the operation in its graph.
pub fn fused(op: &FusedOp, inputs: &[&Tensor], blocks: &Blocks, context: &mut Context) -> Result<Tensor, Reason> {
    if inputs.len() != op.inputs as usize {
        return Err(Reason::Operands { found: inputs.len(), wanted: format!("{} by fused_ops", op.inputs) });
    }
    let formats = context.inputs.clone();
    let mut buffers = Buffers { inputs, intermediates: Vec::new(), dest: None, output: None };
    for step in op.schedules.iter().flatten() {
        context.inputs = step.inputs.iter().map(|(source, _)| source_format(*source, &formats, context)).collect();
        buffers
            .run(op, step, blocks, context)
            .map_err(|reason| Reason::Step { step: step.name.clone(), reason: Box::new(reason) })?;
    }
    buffers.output.ok_or(Reason::Buffer { buffer: "output".into(), why: "is written by no step" })
}

/// A source as the netlist writes it.
fn name(source: FusedSource) -> String {
    match source {
        FusedSource::Input(i) => format!("input{i}"),
        FusedSource::Intermed(i) => format!("intermed{i}"),
        FusedSource::Dest => "dest".into(),
    }
}

/// The format of a source; `inputs` are those of the operation.
fn source_format(source: FusedSource, inputs: &[DType], context: &Context) -> DType {
    match source {
        FusedSource::Input(i) => inputs.get(i as usize).copied().unwrap_or(DType::F32),
        FusedSource::Intermed(_) => context.intermed,
        FusedSource::Dest => context.acc,
    }
}

/// What a buffer holds of a step's result.
fn held(step: &FusedStep, result: Tensor, context: &Context) -> Tensor {
    let format = match (&step.kind, step.output) {
        (OpKind::Quant { kind: QuantKind::Quantize | QuantKind::Requantize, .. }, _) => DType::I8,
        (_, FusedTarget::Intermed(_)) => context.intermed,
        (_, FusedTarget::Dest) => context.acc,
        (_, FusedTarget::Output) => context.out,
    };
    match (format, step.output) {
        (DType::I8 | DType::I32, _) => format::quantise(format, &result, format::Options::default()),
        (_, FusedTarget::Intermed(_)) => context.intermediate(result),
        _ => result,
    }
}

impl Buffers<'_> {
    /// Runs one step.
    fn run(&mut self, op: &FusedOp, step: &FusedStep, blocks: &Blocks, context: &mut Context) -> Result<(), Reason> {
        let grid = blocks.grid;
        let blocks = Blocks { mblock: step.mblock, ublock: step.ublock, order: Order::Row, ..*blocks };
        let operands = step
            .inputs
            .iter()
            .enumerate()
            .map(|(i, (source, tms))| {
                tms.iter().try_fold(self.read(*source)?.clone(), |x, tm| on_cores(i, tm, &x, grid))
            })
            .collect::<Result<Vec<_>, _>>()?;
        // The destination registers live for one step, read or not.
        self.dest = None;
        let mut operands: Vec<&Tensor> = operands.iter().collect();
        if is_scaled_dest(step) {
            operands.reverse();
        }
        let result = held(step, golden::fit(compute(step, &operands, &blocks, context)?, &blocks)?, context);
        for source in step.pop.iter().chain(&step.pop_last) {
            if let FusedSource::Intermed(i) = source {
                self.take(*i);
            }
        }
        self.write(op, step.output, result)
    }

    /// Returns the contents of a buffer.
    fn read(&self, source: FusedSource) -> Result<&Tensor, Reason> {
        let held = match source {
            FusedSource::Input(i) => self.inputs.get(i as usize).copied(),
            FusedSource::Intermed(i) => self.intermediates.get(i as usize).and_then(Option::as_ref),
            FusedSource::Dest => self.dest.as_ref(),
        };
        held.ok_or_else(|| Reason::Buffer {
            buffer: name(source),
            why: match source {
                FusedSource::Input(_) => "is no input of the fused operation",
                FusedSource::Intermed(_) => "holds nothing: it was not written, or popped before",
                FusedSource::Dest => "holds nothing: only the step before can have written it",
            },
        })
    }

    /// Frees an intermediate buffer.
    fn take(&mut self, index: u32) {
        if let Some(held) = self.intermediates.get_mut(index as usize) {
            *held = None;
        }
    }

    /// Stores a result.
    fn write(&mut self, op: &FusedOp, target: FusedTarget, result: Tensor) -> Result<(), Reason> {
        match target {
            FusedTarget::Dest => self.dest = Some(result),
            FusedTarget::Output => self.output = Some(result),
            FusedTarget::Intermed(i) => {
                let fail = |why| Reason::Buffer { buffer: name(FusedSource::Intermed(i)), why };
                if i >= op.intermediates {
                    return Err(fail("is not among the intermediates that the fused operation declares"));
                }
                let i = i as usize;
                if self.intermediates.len() <= i {
                    self.intermediates.resize(i + 1, None);
                }
                if self.intermediates[i].is_some() {
                    return Err(fail("is written again before it was popped"));
                }
                self.intermediates[i] = Some(result);
            }
        }
        Ok(())
    }
}

/// Whether the step scales what the destination registers hold: then its first source has the
/// scales, though otherwise the second one has them.
fn is_scaled_dest(step: &FusedStep) -> bool {
    matches!(step.kind, OpKind::Quant { .. }) && matches!(step.inputs[..], [_, (FusedSource::Dest, _)])
}

/// Computes a step.
fn compute(step: &FusedStep, operands: &[&Tensor], blocks: &Blocks, context: &mut Context) -> Result<Tensor, Reason> {
    let mut apply = |operands: &[&Tensor]| -> Result<Tensor, Reason> {
        golden::simple(&step.kind, step.post, operands, blocks, context).map(|x| golden::relu(step.post, x))
    };
    let OpKind::Reduce { dim, .. } = step.kind else { return apply(operands) };
    let [x] = operands else { return apply(operands) };
    let parts = match dim {
        ReduceDim::R => (blocks.grid.r, Tm::VSlice(blocks.grid.r), Tm::VStack(blocks.grid.r)),
        ReduceDim::C => (blocks.grid.c, Tm::HSlice(blocks.grid.c), Tm::HStack(blocks.grid.c)),
        ReduceDim::Rc | ReduceDim::Z => return apply(operands),
    };
    let (cores, cut, join) = parts;
    if cores <= 1 {
        return apply(operands);
    }
    let part = tm::apply(0, &[cut], x)?;
    tm::apply(0, &[join], &apply(&[&part])?)
}

/// Applies a TM to each core's part: a broadcast repeats the part of each row or column of cores,
/// if they have parts of their own; what all cores share is repeated for each of them.
fn on_cores(operand: usize, tm: &Tm, x: &Tensor, grid: Size) -> Result<Tensor, Reason> {
    let (dim, n, cores, tiles, parts) = match *tm {
        Tm::Broadcast(Dim::R, n) => (Dim::R, n, grid.r, x.tile_rows(), [Tm::VSlice(grid.r), *tm, Tm::VStack(grid.r)]),
        Tm::Broadcast(Dim::C, n) => {
            (Dim::C, n, grid.c, x.tile_columns(), [Tm::HSlice(grid.c), *tm, Tm::HStack(grid.c)])
        }
        tm => return tm::apply(operand, &[tm], x),
    };
    if cores > 1 && tiles.is_multiple_of(cores as usize) {
        return tm::apply(operand, &parts, x);
    }
    let n = if cores > 1 { n.saturating_mul(cores) } else { n };
    tm::apply(operand, &[Tm::Broadcast(dim, n)], x)
}
