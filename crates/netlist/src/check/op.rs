//! Rules of operations: their inputs, and what their kind requires.

use super::Check;
use crate::code;
use crate::read::tile_is_small;
use crate::types::{
    Arch, BinaryKind, GraphId, Matmul, Op, OpId, OpKind, Order, Producer, ReduceDim, ReluMode, Source, Tm, UnaryKind,
    VectorMode,
};
use crate::{DataFormat, types::Operand};
use std::collections::HashSet;

/// Checks the rules that hold on every architecture.
pub fn check(check: &mut Check<'_, '_>) {
    for (id, _) in check.graphs() {
        cycle(check, id);
    }
    for (id, op) in check.ops() {
        arity(check, id, op);
        sources(check, id, op);
        kernel_broadcasts(check, id, op);
        kind(check, id, op);
        gradient(check, id, op);
        untilize(check, id, op);
        relu(check, id, op);
        tiles(check, id, op);
    }
    results(check);
}

/// Returns how many inputs an operation of a kind may have.
fn inputs_of(check: &Check<'_, '_>, kind: &OpKind) -> Option<std::ops::RangeInclusive<usize>> {
    let exactly = |count: usize| Some(count..=count);
    let product = |m: &Matmul| 2 + usize::from(m.bias) + usize::from(m.requant || m.dequant);
    match kind {
        OpKind::Unary(_) | OpKind::Reduce { .. } | OpKind::Tilizer | OpKind::EthernetDatacopy => exactly(1),
        OpKind::Drainer => Some(1..=8),
        OpKind::Binary(_) | OpKind::Quant { .. } | OpKind::TopK { .. } => exactly(2),
        OpKind::Embedding { .. } => Some(2..=2),
        OpKind::Matmul(m) | OpKind::Depthwise(m) => exactly(product(m) + usize::from(m.identity.is_some())),
        OpKind::Splice { pieces, .. } if pieces.is_empty() => Some(1..=8),
        OpKind::Splice { pieces, .. } => exactly(pieces.len()),
        OpKind::Fused(id) if check.src.broken.fused.contains(id) => None,
        OpKind::Fused(id) => exactly(check.net.fused(*id).inputs as usize),
    }
}

fn arity(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    let Some(wanted) = inputs_of(check, &op.kind) else { return };
    let count = op.inputs.len();
    if wanted.contains(&count) {
        return;
    }
    let (code, what) = match op.kind {
        OpKind::Fused(_) => (code::FUSED_INPUTS, "the fused operation has"),
        OpKind::Splice { .. } => (code::INPUT_ARITY, "its pieces are for"),
        _ => (code::INPUT_ARITY, "its kind takes"),
    };
    let range = if wanted.start() == wanted.end() {
        wanted.start().to_string()
    } else {
        format!("{} to {}", wanted.start(), wanted.end())
    };
    let message = format!("`{}` has {count} inputs, but {what} {range}", op.name);
    let help = match &op.kind {
        OpKind::Matmul(_) | OpKind::Depthwise(_) => {
            "a bias, scales and the index of a sparse matmul are inputs of their own"
        }
        _ => "",
    };
    check.error(code, check.op_at(id, "inputs"), message, help);
}

/// Checks the inputs and their formats.
fn sources(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    for (index, input) in op.inputs.iter().enumerate() {
        let (name, format) = match input.source {
            Source::Queue(queue) => match check.queue(queue) {
                Some(queue) => (&queue.name, queue.format),
                None => continue,
            },
            Source::Op(from) => {
                cross_graph(check, id, op, index, from);
                match check.op(from) {
                    Some(from) => (&from.name, from.out_format),
                    None => continue,
                }
            }
        };
        if format != input.format {
            let message = format!("`{}` reads {} from `{name}`, which has {format}", op.name, input.format);
            let at = check.item_at(id, "in_df", index);
            check.error(code::INPUT_FORMAT, at, message, &format!("write {format}"));
        }
    }
    let graph = check.net.graph(id.graph);
    for (queue, partner) in &op.forked_dram_inputs {
        let at = check.op_at(id, "forked_dram_inputs");
        let reads = |input: &Operand| matches!(input.source, Source::Queue(q) if check.net.queue(q).name == *queue);
        if !op.inputs.iter().any(reads) {
            let message = format!("`{queue}` is not a queue that `{}` reads", op.name);
            check.error(code::FORK_NAME, at, message, "");
        } else if !graph.ops.iter().any(|other| other.name == *partner) {
            let message = format!("`{partner}` is not an operation of graph `{}`", graph.name);
            check.error(code::FORK_NAME, at, message, "");
        }
    }
}

/// Checks a direct link between operations of two graphs: the graphs must run on two devices at
/// the same time.
fn cross_graph(check: &mut Check<'_, '_>, id: OpId, op: &Op, index: usize, from: OpId) {
    let (mine, other) = (check.net.graph(id.graph), check.net.graph(from.graph));
    if id.graph == from.graph || mine.target_device != other.target_device {
        return;
    }
    let message = format!(
        "`{}` of graph `{}` reads `{}` of graph `{}`, which runs on the same device",
        op.name, mine.name, other.ops[from.op].name, other.name
    );
    let at = check.item_at(id, "inputs", index);
    check.error(code::CROSS_GRAPH, at, message, "put a queue between them");
}

fn kernel_broadcasts(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    for (index, input) in op.inputs.iter().enumerate() {
        let repeated = input.tms.iter().any(|tm| matches!(tm, Tm::Broadcast(..)));
        if input.kernel_broadcast.is_some() && !repeated {
            let message = format!("input {index} of `{}` has a kernel broadcast, but no broadcast TM", op.name);
            let name = if op.hints.single_tile { "single_tile" } else { "kernel_broadcast" };
            let at = check.attribute_at(id, name);
            check.error(code::BROADCAST_MISSING, at, message, &format!("add input_{index}_tms: [broadcast: ...]"));
        }
    }
}

fn kind(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    let transposes = |input: &Operand| input.tms.iter().filter(|tm| **tm == Tm::Transpose).count();
    for (index, input) in op.inputs.iter().enumerate() {
        let name = format!("input_{index}_tms");
        if input.tms.iter().any(|tm| matches!(tm, Tm::TileBroadcast(_))) {
            let message = "`tile_broadcast` is for operands of fused operations";
            check.error(code::TM_PLACE, check.op_at(id, &name), message, "");
        }
        let padded = input.tms.iter().filter(|tm| matches!(tm, Tm::Pad(_))).count() + usize::from(input.pad.is_some());
        if padded > 1 {
            let message = format!("input {index} of `{}` is padded more than once", op.name);
            check.error(code::TM_PLACE, check.op_at(id, &name), message, "");
        }
        if transposes(input) > 0 {
            transpose(check, id, op, index);
        }
    }
    match &op.kind {
        OpKind::Matmul(matmul) => product(check, id, op, matmul),
        OpKind::Depthwise(matmul) if matmul.u_kt != 1 => {
            let message = format!("`{}` has u_kt {}, but a depthwise product needs 1", op.name, matmul.u_kt);
            check.error(code::DEPTHWISE, check.attribute_at(id, "u_kt"), message, "write u_kt: 1");
        }
        OpKind::Embedding { num_indices } => embedding(check, id, op, *num_indices),
        OpKind::Tilizer => tilizer(check, id, op),
        _ => {}
    }
}

/// Checks a transpose: it is possible on the second operand of a matmul, on a single operand and on
/// the first of two.
fn transpose(check: &mut Check<'_, '_>, id: OpId, op: &Op, index: usize) {
    let at = check.op_at(id, &format!("input_{index}_tms"));
    let allowed = match op.kind {
        OpKind::Matmul(_) => index == 1,
        OpKind::Unary(_) => true,
        OpKind::Binary(_) | OpKind::Quant { .. } => index == 0,
        _ => false,
    };
    let elementwise = matches!(op.kind, OpKind::Unary(_) | OpKind::Binary(_) | OpKind::Quant { .. });
    if !allowed {
        let message = format!("input {index} of `{}` cannot be transposed", op.name);
        let help = "possible: input 1 of a matmul, the input of a unary operation, input 0 of a binary one";
        check.error(code::TM_PLACE, at, message, help);
    } else if elementwise && op.inputs.first().is_some_and(|input| input.format == DataFormat::Int32) {
        let message = format!("`{}` cannot transpose Int32", op.name);
        check.error(code::TM_PLACE, at, message, "");
    }
    let tile = source_tile(check, op.inputs[index].source);
    if matches!(op.kind, OpKind::Matmul(_)) && tile.is_some_and(|(r, c)| c != 32 || r < 16) {
        let message = format!("`{}` can transpose tiles of 32 x 32 and 16 x 32 only", op.name);
        check.error(code::TM_PLACE, at, message, "");
    }
}

/// Returns rows and columns of the tiles of an input.
fn source_tile(check: &Check<'_, '_>, source: Source) -> Option<(u32, u32)> {
    let tile = match source {
        Source::Queue(queue) => check.queue(queue)?.blocks.tile,
        Source::Op(op) => check.op(op)?.blocks.tile,
    };
    Some((tile.r, tile.c))
}

fn product(check: &mut Check<'_, '_>, id: OpId, op: &Op, matmul: &Matmul) {
    if op.blocks.order != Order::Row {
        let message = format!("`{}` is a matmul, whose ublock_order is r", op.name);
        check.error(code::BLOCK_ORDER, check.op_at(id, "ublock_order"), message, "write ublock_order: r");
    }
    if matmul.identity.is_none() {
        return;
    }
    if matmul.accumulate.is_some() {
        let message = format!("`{}` cannot be sparse and accumulate", op.name);
        check.error(code::SPARSE, check.attribute_at(id, "accumulate"), message, "");
    }
    use DataFormat as F;
    let raw = |format| matches!(format, F::RawUInt8 | F::RawUInt16 | F::RawUInt32);
    if let Some(input) = op.inputs.get(2).filter(|input| !raw(input.format)) {
        let message = format!("the index of `{}` is {}, not raw integers", op.name, input.format);
        let help = "possible: RawUInt8, RawUInt16, RawUInt32";
        check.error(code::SPARSE, check.item_at(id, "in_df", 2), message, help);
    }
    let first = op.inputs.get(2).and_then(|input| input.tms.first());
    if first.is_some_and(|tm| !matches!(tm, Tm::Broadcast(..))) {
        let message = format!("the index of `{}` can only be broadcast", op.name);
        check.error(code::SPARSE, check.op_at(id, "input_2_tms"), message, "");
    }
}

fn embedding(check: &mut Check<'_, '_>, id: OpId, op: &Op, indices: u32) {
    let at = check.attribute_at(id, "num_indices");
    if !indices.is_multiple_of(32) {
        let message = format!("`{}` has {indices} indices, not a multiple of 32", op.name);
        check.error(code::EMBEDDING, at, message, "");
    } else if indices / 32 != op.blocks.mblock.r {
        let message = format!(
            "`{}` has {indices} indices, {} rows of tiles, but mblock has {}",
            op.name,
            indices / 32,
            op.blocks.mblock.r
        );
        check.error(code::EMBEDDING, check.op_at(id, "mblock"), message, "");
    }
    if op.blocks.ublock.r != 1 {
        let message = format!("`{}` is an embedding, whose ublock has one row", op.name);
        check.error(code::EMBEDDING, check.op_at(id, "ublock"), message, "");
    }
}

fn tilizer(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    let Some(input) = op.inputs.first() else { return };
    if !input.tms.is_empty() {
        let message = format!("`{}` is a tilizer, whose input has no TMs", op.name);
        check.error(code::TILIZER, check.op_at(id, "input_0_tms"), message, "");
    }
    let from = match input.source {
        Source::Queue(queue) => check.queue(queue).map(|queue| queue.blocks.ublock),
        Source::Op(op) => check.op(op).map(|op| op.blocks.ublock),
    };
    let out = op.blocks.ublock;
    if let Some(from) = from.filter(|from| (from.r > 1 || out.r > 1) && *from != out) {
        let message = format!(
            "`{}` is a tilizer of ublock [{}, {}], but its input has [{}, {}]",
            op.name, out.r, out.c, from.r, from.c
        );
        check.error(code::TILIZER, check.op_at(id, "ublock"), message, "with more than one row they are the same");
    }
}

fn gradient(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    if !op.gradient_op {
        return;
    }
    let at = check.op_at(id, "gradient_op");
    let transposed = op.inputs.iter().any(|input| input.tms.contains(&Tm::Transpose));
    let copies = matches!(op.kind, OpKind::Unary(UnaryKind::Copy) | OpKind::Matmul(_));
    let reason = match &op.kind {
        OpKind::Binary(BinaryKind::Maximum) => "a maximum",
        OpKind::Matmul(matmul) if matmul.identity.is_some() => "a sparse matmul",
        _ if op.acc_format == DataFormat::Int32 => "an operation with acc_df Int32",
        _ if transposed && !copies => "an operation that transposes its input, other than matmul and datacopy,",
        _ => return,
    };
    check.error(code::GRADIENT, at, format!("`{}`: {reason} cannot accumulate gradients", op.name), "");
}

fn untilize(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    if !op.untilize_output {
        return;
    }
    if op.blocks.order != Order::Row {
        let message = format!("`{}` writes rows, which needs ublock_order r", op.name);
        check.error(code::BLOCK_ORDER, check.op_at(id, "ublock_order"), message, "write ublock_order: r");
    }
    let reason = match &op.kind {
        OpKind::Matmul(matmul) if matmul.m_k > 1 => "a matmul with m_k above 1",
        OpKind::Reduce { dim: ReduceDim::Z, .. } => "a reduction along z",
        _ => return,
    };
    let message =
        format!("`{}`: {reason} keeps intermediate results where its output is, and cannot write rows", op.name);
    check.error(code::UNTILIZE, check.op_at(id, "untilize_output"), message, "let a datacopy write the rows");
}

fn relu(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    let Some(relu) = op.post.relu else { return };
    let at = check.attribute_at(id, "relu_threshold");
    let integer = op.inputs.iter().any(|input| input.format.is_integer());
    match op.out_format {
        DataFormat::Int8 if integer && relu.threshold.abs() >= 127.0 => {
            let message = format!("a threshold of {} is beyond Int8", relu.threshold);
            check.error(code::RELU_RANGE, at, message, "");
        }
        DataFormat::Int32 if integer && (relu.threshold != 0.0 || relu.mode != ReluMode::Min) => {
            let message = format!("`{}` makes Int32, whose ReLU has the mode min and the threshold 0", op.name);
            check.error(code::RELU_RANGE, at, message, "");
        }
        _ => {}
    }
}

/// Checks small tiles: which operations accept them, and which shapes fit together.
fn tiles(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    let tiles: Vec<Option<(u32, u32)>> = op.inputs.iter().map(|input| source_tile(check, input.source)).collect();
    if tiles.contains(&None) {
        return;
    }
    let mut inputs: Vec<(u32, u32)> = tiles.into_iter().flatten().collect();
    for (tile, input) in inputs.iter_mut().zip(&op.inputs) {
        if input.tms.iter().filter(|tm| **tm == Tm::Transpose).count() % 2 == 1 {
            *tile = (tile.1, tile.0);
        }
    }
    let out = (op.blocks.tile.r, op.blocks.tile.c);
    let elementwise = matches!(op.kind, OpKind::Unary(_) | OpKind::Binary(_) | OpKind::Quant { .. } | OpKind::Tilizer);
    for (index, tile) in inputs.iter().enumerate().filter(|(_, tile)| **tile != (32, 32)) {
        let possible = elementwise
            || match &op.kind {
                OpKind::Matmul(m) if m.identity.is_some() => index == 1,
                OpKind::Matmul(_) => index != 2 || *tile == (1, 32),
                _ => false,
            };
        if !possible {
            let message = format!("input {index} of `{}` cannot have tiles of {} x {}", op.name, tile.0, tile.1);
            check.error(code::TINY_TILE, check.item_at(id, "inputs", index), message, "");
        }
    }
    let small = tile_is_small(op.blocks.tile) || inputs.iter().any(|tile| *tile != (32, 32));
    if !small {
        return;
    }
    let at = check.op_at(id, "tile_dim");
    let wide = |format: DataFormat| matches!(format, DataFormat::Int8 | DataFormat::Int32);
    if wide(op.out_format) || op.inputs.iter().any(|input| wide(input.format)) {
        let message = format!("`{}` has small tiles of Int8 or Int32, which do not exist", op.name);
        check.error(code::TINY_TILE, at, message, "");
    }
    let halves = |tile: Option<&(u32, u32)>| tile == Some(&(32, 16));
    let reason = match &op.kind {
        OpKind::Binary(_) | OpKind::Quant { .. } if inputs.first() != inputs.get(1) => "inputs with different tiles",
        _ if elementwise && halves(inputs.first()) != (out == (32, 16)) => "tiles of 32 x 16 on one side only",
        OpKind::Unary(UnaryKind::Copy) if op.gradient_op && inputs.first() != Some(&out) => {
            "a gradient with other tiles than its input"
        }
        OpKind::Matmul(m) if m.gelu && m.identity.is_none() => "a GELU on the result of small tiles",
        OpKind::Matmul(m) if op.gradient_op && m.identity.is_none() => "a gradient of small tiles",
        OpKind::Matmul(_) if halves(inputs.get(1)) != (out == (32, 16)) => "tiles of 32 x 16 on one side only",
        OpKind::Reduce { dim: ReduceDim::R, .. } if out == (32, 16) => "tiles of 32 x 16 for a reduction of rows",
        OpKind::Reduce { dim: ReduceDim::C, .. } if out.0 != 32 => "flat tiles for a reduction of columns",
        OpKind::Unary(kind) if *kind != UnaryKind::Copy => match (op.post.vector, inputs.first()) {
            (Some(mode), Some((32, 16))) if mode != VectorMode::C => "a vector mode other than c for tiles of 32 x 16",
            (Some(mode), Some((r, _))) if *r < 32 && mode != VectorMode::R => {
                "a vector mode other than r for flat tiles"
            }
            _ => return,
        },
        _ => return,
    };
    check.error(code::TINY_TILE, at, format!("`{}` has {reason}", op.name), "");
}

/// Checks that every result is read.
fn results(check: &mut Check<'_, '_>) {
    if !check.src.broken.ops.is_empty() || !check.src.broken.queues.is_empty() {
        return;
    }
    let mut used: HashSet<OpId> = HashSet::new();
    for queue in &check.net.queues {
        if let Producer::Op(op) = queue.producer {
            used.insert(op);
        }
    }
    for (_, op) in check.ops() {
        used.extend(op.inputs.iter().filter_map(|input| match input.source {
            Source::Op(op) => Some(op),
            Source::Queue(_) => None,
        }));
    }
    for (id, op) in check.ops().filter(|(id, op)| !used.contains(id) && op.kind != OpKind::Drainer) {
        let at = check.src.ops[id.graph.0][id.op].at;
        let message = format!("nothing reads the result of `{}`", op.name);
        check.error(code::UNUSED_RESULT, at, message, "let a queue or another operation take it");
    }
}

/// Reports operations of a graph that wait for one another.
fn cycle(check: &mut Check<'_, '_>, graph: GraphId) {
    let ops = &check.net.graph(graph).ops;
    let mut waiting: Vec<usize> = vec![0; ops.len()];
    let mut readers: Vec<Vec<usize>> = vec![Vec::new(); ops.len()];
    for (index, op) in ops.iter().enumerate() {
        for input in &op.inputs {
            if let Source::Op(from) = input.source
                && from.graph == graph
            {
                waiting[index] += 1;
                readers[from.op].push(index);
            }
        }
    }
    let mut ready: Vec<usize> = (0..ops.len()).filter(|index| waiting[*index] == 0).collect();
    while let Some(done) = ready.pop() {
        for reader in &readers[done] {
            waiting[*reader] -= 1;
            if waiting[*reader] == 0 {
                ready.push(*reader);
            }
        }
    }
    let stuck: Vec<&str> = (0..ops.len()).filter(|i| waiting[*i] > 0).map(|i| ops[i].name.as_str()).collect();
    if let Some(first) = (0..ops.len()).find(|index| waiting[*index] > 0) {
        let shown = stuck.iter().take(8).copied().collect::<Vec<_>>().join(", ");
        let message = format!("{} operations wait for one another or for these: {shown}", stuck.len());
        let at = check.op_at(OpId { graph, op: first }, "inputs");
        check.error(code::CYCLE, at, message, "put a queue into the circle");
    }
}

/// Checks the rules of one architecture.
pub fn check_arch(check: &mut Check<'_, '_>, arch: Arch) {
    for (id, op) in check.ops() {
        if arch == Arch::Grayskull {
            grayskull(check, id, op);
        } else {
            broadcast_factors(check, id, op);
        }
    }
}

fn grayskull(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    if tile_is_small(op.blocks.tile) {
        check.error(code::TILE_SHAPE, check.op_at(id, "tile_dim"), "all tiles are 32 x 32", "");
    }
    if op.hints.sfpu_thread.as_deref() == Some("pack") {
        let at = check.attribute_at(id, "sfpu_execution_thread");
        check.error(code::VECTOR_THREAD, at, "the vector unit runs on the math thread", "write math");
    }
    if op.hints.stochastic_rounding.is_some() {
        let at = check.op_at(id, "attributes");
        check.error(code::ROUNDING, at, "there is no stochastic rounding", "");
    }
    let limited =
        !matches!(op.kind, OpKind::Matmul(_) | OpKind::Binary(BinaryKind::Multiply) | OpKind::Unary(UnaryKind::Copy));
    if op.gradient_op && limited {
        let message = format!("`{}` cannot accumulate gradients", op.name);
        let help = "possible: matmul, multiply, datacopy";
        check.error(code::GRADIENT, check.op_at(id, "gradient_op"), message, help);
    }
    let binary = matches!(op.kind, OpKind::Binary(_) | OpKind::Quant { .. });
    if binary && op.inputs.first().is_some_and(|input| input.tms.contains(&Tm::Transpose)) {
        let message = format!("input 0 of `{}` cannot be transposed", op.name);
        check.error(code::TM_PLACE, check.op_at(id, "input_0_tms"), message, "");
    }
}

/// Checks that a kernel broadcast of a matrix product holds whole columns or rows of micro blocks.
fn broadcast_factors(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    let (OpKind::Matmul(matmul) | OpKind::Depthwise(matmul)) = &op.kind else { return };
    let ublock = op.blocks.ublock;
    let tiles = |index: usize| op.inputs.get(index).and_then(|input| input.kernel_broadcast).map(|kb| kb.tiles);
    let at = check.attribute_at(id, "kernel_broadcast");
    let rows = u64::from(ublock.r) * u64::from(matmul.u_kt);
    if let Some(n) = tiles(0).filter(|n| *n > 1 && ublock.c < ublock.r && u64::from(*n) % rows != 0) {
        let message = format!("input 0 of `{}` keeps {n} tiles, not a multiple of {rows}", op.name);
        check.error(
            code::BROADCAST_FACTOR,
            at,
            message,
            "with fewer columns than rows it is a multiple of ublock rows * u_kt",
        );
    }
    if let Some(n) = tiles(1).filter(|n| *n > 1 && ublock.c >= ublock.r && n % ublock.c != 0) {
        let message = format!("input 1 of `{}` keeps {n} tiles, not a multiple of {}", op.name, ublock.c);
        check.error(
            code::BROADCAST_FACTOR,
            at,
            message,
            "with as many columns as rows it is a multiple of ublock columns",
        );
    }
}
