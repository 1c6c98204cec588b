//! Golden arithmetic: a whole operation on one input of an epoch.
//!
//! For every operand: unpad, TMs, pad. Then the operation; accumulation of gradients; ReLU, except
//! for fused operations, whose steps have their own; clamping of integer outputs (tt-budabackend,
//! `golden/golden_digraph.cpp`, `ops/`). Values are float32 throughout, unless formats count
//! ([`crate::op::unit`]). Queues round what enters and leaves them ([`crate::format::quantise`]);
//! between the operations of an epoch only integer formats round, unless [`Options::quantise`] asks
//! for more.

use tilework_dtype::DType;
use tilework_netlist::types::{
    Blocks, Netlist, Op, OpKind, Operand, Post, QuantKind, Relu, ReluMode, Shape, UnaryKind,
};

use crate::format;
use crate::op::{
    Context, Notes, OpError, Precision, Reason, binary, data, depthwise, identity, matmul, reduce, splice, unary,
};
use crate::tensor::{Tensor, shape_of};
use crate::tm;

/// Rounding options of golden arithmetic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Options {
    /// Rounds outputs of operations in the block formats of 4 and 2 bits, as the original does when
    /// it is asked to.
    pub quantise: bool,
    /// Float32 outputs are rounded to Tf32 when `quantise` is set, as on Wormhole.
    pub tf32: bool,
    /// In which precision operations compute.
    pub precision: Precision,
}

/// Executes an operation on one input of an epoch. `inputs` are its operands in order; `previous`
/// is the contents of its output ram, for a gradient that is not zeroed.
pub fn execute(netlist: &Netlist, op: &Op, inputs: &[&Tensor], previous: Option<&Tensor>) -> Result<Tensor, OpError> {
    execute_with(netlist, op, inputs, previous, Options::default()).map(|(result, _)| result)
}

/// [`execute`] with options; also returns notes.
pub fn execute_with(
    netlist: &Netlist,
    op: &Op,
    inputs: &[&Tensor],
    previous: Option<&Tensor>,
    options: Options,
) -> Result<(Tensor, Notes), OpError> {
    let mut context = Context::of(op, options.precision);
    let result = whole(netlist, op, inputs, previous, options, &mut context);
    match result {
        Ok(result) => Ok((result, context.notes)),
        Err(reason) => Err(OpError { op: op.name.clone(), at: op.at, reason }),
    }
}

/// All steps for one input.
fn whole(
    netlist: &Netlist,
    op: &Op,
    inputs: &[&Tensor],
    previous: Option<&Tensor>,
    options: Options,
    context: &mut Context,
) -> Result<Tensor, Reason> {
    if inputs.len() != op.inputs.len() {
        return Err(Reason::Operands { found: inputs.len(), wanted: format!("{} by the netlist", op.inputs.len()) });
    }
    let operands: Vec<Tensor> = op
        .inputs
        .iter()
        .zip(inputs)
        .enumerate()
        .map(|(i, (operand, x))| prepare(i, operand, x))
        .collect::<Result<_, _>>()?;
    let operands: Vec<&Tensor> = operands.iter().collect();
    let mut result = compute(netlist, op, &operands, context)?;
    result = fit(result, &op.blocks)?;
    if let (true, Some(previous)) = (op.gradient_op, previous) {
        let (found, previous_shape) = (result.shape(), previous.shape());
        result = binary::zip(&result, previous, |new, old| old + new)
            .map_err(|_| Reason::Gradient { found, previous: previous_shape })?;
        result = context.destination(result);
    }
    if !matches!(op.kind, OpKind::Fused(_)) {
        result = relu(op.post, result);
    }
    if op.out_format == DType::I32 {
        context.notes.integers(&result);
    }
    Ok(round(stored_format(&op.kind, op.out_format), &result, options))
}

/// The format of which a result has the values: what has been quantised is Int8, also in a buffer
/// of Int32 (tt-budabackend, `golden/golden_digraph.cpp`).
fn stored_format(kind: &OpKind, out: DType) -> DType {
    let quantised = match kind {
        OpKind::Quant { kind, .. } => *kind != QuantKind::Dequantize,
        OpKind::Matmul(matmul) => matmul.requant,
        _ => false,
    };
    if quantised && out == DType::I32 { DType::I8 } else { out }
}

/// Converts a result to the shape of the blocks. Tiles of another size are resized one by one; if
/// that does not fit, the same rows and columns are divided into tiles again.
pub(crate) fn fit(x: Tensor, blocks: &Blocks) -> Result<Tensor, Reason> {
    let (wanted, tile) = (shape_of(blocks)?, blocks.tile);
    let tiles = |shape: Shape| (shape.t, shape.rows / tile.r as usize, shape.columns / tile.c as usize);
    if x.tile() != tile && (x.shape().t, x.tile_rows(), x.tile_columns()) == tiles(wanted) {
        return Ok(tm::retile(&x, tile)?);
    }
    if x.shape() != wanted {
        return Err(Reason::Output { found: x.shape(), wanted });
    }
    Ok(x.reshaped(wanted, tile)?)
}

/// An operand as the operation sees it.
fn prepare(index: usize, operand: &Operand, x: &Tensor) -> Result<Tensor, Reason> {
    let mut x = x.clone();
    if let Some(pad) = &operand.unpad {
        x = tm::unpad(index, pad, &x)?;
    }
    x = tm::apply(index, &operand.tms, &x)?;
    match &operand.pad {
        Some(pad) => tm::pad(index, pad, &x),
        None => Ok(x),
    }
}

/// What an operation computes.
fn compute(netlist: &Netlist, op: &Op, operands: &[&Tensor], context: &mut Context) -> Result<Tensor, Reason> {
    match op.kind {
        OpKind::Fused(id) => {
            let fused = netlist.fused_ops.get(id.0).ok_or(Reason::NoFused(id.0))?;
            crate::fused::fused(fused, operands, &op.blocks, context)
        }
        _ => simple(&op.kind, op.post, operands, &op.blocks, context),
    }
}

/// An operation that is not fused; `blocks` are those of its result.
pub(crate) fn simple(
    kind: &OpKind,
    post: Post,
    operands: &[&Tensor],
    blocks: &Blocks,
    context: &mut Context,
) -> Result<Tensor, Reason> {
    let count = |wanted: &str| Reason::Operands { found: operands.len(), wanted: wanted.into() };
    let one = || if let [x] = operands { Ok(*x) } else { Err(count("one")) };
    let two = || if let [a, b] = operands { Ok((*a, *b)) } else { Err(count("two")) };
    match kind {
        OpKind::Unary(kind) => {
            let copied = context.copied(0, one()?);
            let result = match kind {
                UnaryKind::Copy => copied,
                _ => context.destination(unary::unary(*kind, &copied)?),
            };
            Ok(match post.vector {
                // A copy does not go through the vector unit.
                Some(mode) if *kind != UnaryKind::Copy => unary::vector(mode, &result),
                _ => result,
            })
        }
        OpKind::Binary(kind) => two().and_then(|(a, b)| binary::binary(*kind, a, b, context)),
        OpKind::Quant { kind, zero_point } => {
            two().and_then(|(a, scales)| binary::quantise(*kind, *zero_point, a, scales))
        }
        OpKind::Matmul(attributes) => match &attributes.identity {
            Some(how) => identity::identity(attributes, operands, blocks, how, context),
            None => matmul::matmul(attributes, operands, context),
        },
        OpKind::Depthwise(attributes) => depthwise::depthwise(attributes, operands, context),
        OpKind::Reduce { dim, k, z } => {
            reduce::reduce(*dim, *k, *z, &context.source(0, one()?)).map(|x| context.destination(x))
        }
        OpKind::Splice { granularity, pieces } => {
            let copied: Vec<Tensor> = operands.iter().enumerate().map(|(i, x)| context.copied(i, x)).collect();
            splice::splice(*granularity, pieces, &copied.iter().collect::<Vec<_>>(), blocks)
        }
        OpKind::Embedding { num_indices } => {
            two().and_then(|(table, indices)| data::embedding(*num_indices, &context.copied(0, table), indices, blocks))
        }
        OpKind::TopK { k, sort, kreduce } => {
            let ask = data::TopK { k: *k as usize, output: *sort, reduce: *kreduce != 0 };
            two().and_then(|(keys, labels)| data::topk(ask, keys, labels, blocks))
        }
        // Rows become tiles.
        OpKind::Tilizer => one().map(|x| context.copied(0, x)),
        // Data move to another chip. A drainer discards its input; its result, which nothing reads,
        // is that input.
        OpKind::EthernetDatacopy | OpKind::Drainer => one().cloned(),
        OpKind::Fused(_) => Err(Reason::attribute("type", "a fused operation within another")),
    }
}

/// ReLU: below the threshold zero, or between zero and the threshold. A NaN is below
/// every threshold.
pub(crate) fn relu(post: Post, x: Tensor) -> Tensor {
    match post.relu {
        None => x,
        Some(Relu { mode: ReluMode::Min, threshold }) => unary::map(&x, |v| if v >= threshold { v } else { 0.0 }),
        Some(Relu { mode: ReluMode::Max, threshold }) => unary::map(&x, |v| {
            if v > threshold {
                threshold
            } else if v > 0.0 {
                v
            } else {
                0.0
            }
        }),
    }
}

/// Rounds a result within an epoch as the output format requires.
fn round(format: DType, x: &Tensor, options: Options) -> Tensor {
    use DType::{Bfp2, Bfp2B, Bfp4, Bfp4B, F32, I8, I32, Tf32, U8};
    match format {
        U8 if options.precision == Precision::Device => format::quantise(U8, x, format::Options::default()),
        I8 | I32 => format::quantise(format, x, format::Options::default()),
        Bfp2 | Bfp2B | Bfp4 | Bfp4B if options.quantise => format::quantise(format, x, format::Options::default()),
        F32 if options.quantise && options.tf32 => format::quantise(Tf32, x, format::Options::default()),
        _ => x.clone(),
    }
}
