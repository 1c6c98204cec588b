//! Rules of data formats: which ones an operation may combine (tt-budabackend,
//! `netlist/netlist_parser.cpp`).

use super::Check;
use crate::DataFormat::{self as F, Float32, Int8, Int32, UInt8, UInt16};
use crate::code;
use crate::size::{exponent_bytes, payload_bytes};
use crate::types::{
    Arch, BinaryKind, Fidelity, Matmul, Op, OpId, OpKind, QuantKind, ReduceDim, Size, Source, TopKOutput, UnaryKind,
};

/// Checks the rules that hold on every architecture.
pub fn check(check: &mut Check<'_, '_>) {
    for (id, op) in check.ops() {
        accumulation(check, id, op);
        movement(check, id, op);
        rounding(check, id, op);
        integers(check, id, op);
        quantization(check, id, op);
        uint16(check, id, op);
        untilize(check, id, op);
        tile_bytes(check, id, op);
    }
}

fn product(op: &Op) -> Option<&Matmul> {
    match &op.kind {
        OpKind::Matmul(matmul) => Some(matmul),
        _ => None,
    }
}

fn accumulation(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    let matmul = product(op);
    let keeps = op.gradient_op || matmul.is_some_and(|m| m.m_k > 1 || m.bias);
    if keeps && matches!(op.intermed_format, F::Bfp2 | F::Bfp2B | F::Bfp4 | F::Bfp4B) {
        let message = format!("`{}` accumulates, which {} cannot hold", op.name, op.intermed_format);
        check.error(code::INTERMEDIATE, check.op_at(id, "intermed_df"), message, "take a wider intermed_df");
    }
    if op.gradient_op && op.intermed_format != op.out_format {
        let message = format!("`{}` accumulates gradients of {} in {}", op.name, op.out_format, op.intermed_format);
        let help = format!("write intermed_df: {}", op.out_format);
        check.error(code::GRADIENT_FORMAT, check.op_at(id, "intermed_df"), message, &help);
    }
    let l1 = match &op.kind {
        OpKind::Matmul(m) | OpKind::Depthwise(m) => m.l1_acc,
        _ => false,
    };
    if l1 && !matches!(op.intermed_format, Float32 | Int32 | F::Float16B) {
        let message = format!("`{}` accumulates in L1, which {} cannot hold", op.name, op.intermed_format);
        check.error(
            code::L1_ACCUMULATION,
            check.op_at(id, "intermed_df"),
            message,
            "possible: Float32, Int32, Float16_b",
        );
    }
    let single = op.inputs.first().map(|input| input.format);
    if matches!(op.kind, OpKind::Reduce { .. }) && op.acc_format == Float32 && single.is_some_and(F::is_exponent_a) {
        let message = format!("`{}` reduces a format with 5 bits of exponent in Float32", op.name);
        check.error(code::REDUCE_FORMAT, check.item_at(id, "in_df", 0), message, "take a format with _b");
    }
}

/// Checks operations that move data: they cannot convert formats.
fn movement(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    if let (OpKind::Reduce { dim: ReduceDim::Z, .. }, Some(input)) = (&op.kind, op.inputs.first())
        && (input.format != op.intermed_format || op.out_format != op.intermed_format)
    {
        let message = format!(
            "`{}` reduces along z, where input ({}), intermediate ({}) and output ({}) have one format",
            op.name, input.format, op.intermed_format, op.out_format
        );
        check.error(code::REDUCE_FORMAT, check.op_at(id, "intermed_df"), message, "");
    }
    if let (OpKind::Splice { .. }, Some(first)) = (&op.kind, op.inputs.first())
        && op.inputs.iter().any(|input| input.format != first.format)
    {
        let message = format!("the inputs of `{}` have different formats", op.name);
        check.error(code::SPLICE_FORMAT, check.op_at(id, "in_df"), message, "");
    }
    if let (OpKind::TopK { sort: TopKOutput::ArgMax, .. }, Some(index)) = (&op.kind, op.inputs.get(1))
        && index.format != op.out_format
    {
        let message = format!("`{}` gives indices as {}, but gets them as {}", op.name, op.out_format, index.format);
        check.error(code::TOPK_FORMAT, check.op_at(id, "out_df"), message, "");
    }
}

fn rounding(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    let Some(mode) = op.hints.stochastic_rounding.as_deref() else { return };
    let at = check.op_at(id, "attributes");
    if op.acc_format == Float32 && mode != "pack" {
        let message =
            format!("`{}` accumulates in Float32, where the rounding of the matrix unit cannot be stochastic", op.name);
        check.error(code::ROUNDING, at, message, "possible: none, pack");
    }
    let block = |format| matches!(format, F::Bfp8 | F::Bfp8B);
    if (block(op.intermed_format) || block(op.out_format)) && mode != "fpu" {
        let message = format!("`{}` packs Bfp8, which cannot be rounded stochastically", op.name);
        check.error(code::ROUNDING, at, message, "possible: none, fpu");
    }
}

fn quant_kind(op: &Op) -> Option<QuantKind> {
    match op.kind {
        OpKind::Quant { kind, .. } => Some(kind),
        _ => None,
    }
}

fn integers(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    let reads_integers = op.inputs.iter().any(|input| input.format.is_integer());
    let (quant, fused) = (quant_kind(op), matches!(op.kind, OpKind::Fused(_)));
    let matmul = product(op);
    let (requant, dequant) = matmul.map_or((false, false), |m| (m.requant, m.dequant));
    if matches!(op.kind, OpKind::TopK { .. }) {
        return;
    }
    if !reads_integers {
        let allowed = quant.is_some() || fused || op.kind == OpKind::Unary(UnaryKind::Copy);
        if op.acc_format == Int32 && !allowed {
            let message = format!("`{}` accumulates in Int32, but reads no integers", op.name);
            check.error(code::ACCUMULATOR, check.op_at(id, "acc_df"), message, "");
        }
        if requant || dequant {
            let message = format!("`{}` changes the scale of integers, but reads none", op.name);
            check.error(code::REQUANTIZATION, check.op_at(id, "attributes"), message, "");
        }
        return;
    }
    let gives_other = dequant || quant == Some(QuantKind::Dequantize);
    if !op.out_format.is_integer() && !gives_other && !fused {
        let message = format!("`{}` reads integers, but writes {}", op.name, op.out_format);
        let help = "possible: Int8, UInt8, Int32; with dequant also floats";
        check.error(code::INTEGER_FORMAT, check.op_at(id, "out_df"), message, help);
    }
    if dequant && op.out_format.is_integer() {
        let message = format!("`{}` dequantises its result, but writes {}", op.name, op.out_format);
        check.error(code::INTEGER_FORMAT, check.op_at(id, "out_df"), message, "take a format of floats");
    }
    if !matches!(op.intermed_format, Int8 | UInt8 | Int32) {
        let message = format!("`{}` reads integers, but keeps {} between", op.name, op.intermed_format);
        check.error(code::INTEGER_FORMAT, check.op_at(id, "intermed_df"), message, "possible: Int8, UInt8, Int32");
    }
    if op.fidelity != Fidelity::HiFi4 {
        let message = format!("`{}` computes with integers, which needs HiFi4", op.name);
        check.error(code::INTEGER_FIDELITY, check.op_at(id, "math_fidelity"), message, "write HiFi4");
    }
    if op.acc_format != Int32 {
        let message = format!("`{}` computes with integers, but accumulates in {}", op.name, op.acc_format);
        check.error(code::ACCUMULATOR, check.op_at(id, "acc_df"), message, "write acc_df: Int32");
    }
    integer_inputs(check, id, op);
    if let Some(matmul) = matmul {
        integer_product(check, id, op, matmul);
    }
}

fn integer_inputs(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    let requant = product(op).is_some_and(|m| m.requant || m.dequant);
    for (index, input) in op.inputs.iter().enumerate() {
        let (allowed, help) = match op.kind {
            OpKind::Quant { .. } | OpKind::Fused(_) => continue,
            OpKind::Binary(BinaryKind::Add | BinaryKind::Maximum) => {
                (matches!(input.format, Int8 | UInt8 | Int32), "possible: Int8, UInt8, Int32")
            }
            OpKind::Binary(_) => (matches!(input.format, Int8 | UInt8), "possible: Int8, UInt8"),
            _ => (
                matches!(input.format, Int8 | UInt8 | UInt16 | Int32 | F::RawUInt32) || requant,
                "possible: Int8, UInt8, Int32, RawUInt32",
            ),
        };
        if !allowed {
            let message = format!("`{}` computes with integers, but input {index} is {}", op.name, input.format);
            check.error(code::INTEGER_FORMAT, check.item_at(id, "in_df", index), message, help);
        }
    }
}

fn integer_product(check: &mut Check<'_, '_>, id: OpId, op: &Op, matmul: &Matmul) {
    let format = |index: usize| op.inputs.get(index).map(|input| input.format);
    for index in 0..2 {
        if format(index).is_some_and(|format| !matches!(format, Int8 | UInt8)) {
            let message = format!("input {index} of the integer matmul `{}` is {}", op.name, op.inputs[index].format);
            check.error(code::INTEGER_FORMAT, check.item_at(id, "in_df", index), message, "possible: Int8, UInt8");
        }
    }
    let at = check.op_at(id, "attributes");
    if matmul.l1_acc {
        let message = format!("the integer matmul `{}` cannot accumulate in L1", op.name);
        check.error(code::L1_ACCUMULATION, check.attribute_at(id, "l1_acc"), message, "");
    }
    if matmul.bias && format(2).is_some_and(|format| format != Int32) {
        let message = format!("the bias of the integer matmul `{}` is {}, not Int32", op.name, op.inputs[2].format);
        check.error(code::INTEGER_FORMAT, check.item_at(id, "in_df", 2), message, "write Int32");
    }
    if matmul.requant && matmul.dequant {
        let message = format!("`{}` cannot both requantise and dequantise", op.name);
        check.error(code::REQUANTIZATION, at, message, "");
    }
    let scales = 2 + usize::from(matmul.bias);
    if (matmul.requant || matmul.dequant) && format(scales).is_some_and(|format| format != Float32) {
        let message = format!("the scales of `{}` are {}, not Float32", op.name, op.inputs[scales].format);
        check.error(code::REQUANTIZATION, check.item_at(id, "in_df", scales), message, "write Float32");
    }
    if (matmul.requant || matmul.dequant || matmul.bias) && matmul.identity.is_some() {
        let message = format!("`{}` is a sparse matmul of integers, which has neither bias nor scales", op.name);
        check.error(code::REQUANTIZATION, at, message, "");
    }
    if op.hints.min_buffer_input == Some(1) {
        let message = format!("the integer matmul `{}` cannot keep input 1 in a small buffer", op.name);
        check.error(code::INTEGER_FORMAT, check.attribute_at(id, "min_buffer_input"), message, "write 0");
    }
}

fn quantization(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    let bytes = matches!(op.kind, OpKind::Quant { .. } | OpKind::Reduce { .. });
    if bytes && (op.out_format == UInt8 || op.inputs.iter().any(|input| input.format == UInt8)) {
        let message = format!("`{}` cannot have UInt8", op.name);
        check.error(code::QUANTIZATION, check.op_at(id, "in_df"), message, "take Int8");
    }
    let Some(kind) = quant_kind(op) else { return };
    let format = |index: usize| op.inputs.get(index).map(|input| input.format);
    let first = match kind {
        QuantKind::Quantize => format(0).is_some_and(|format| format != Float32),
        _ => format(0).is_some_and(|format| !matches!(format, Int32 | Int8)),
    };
    if first || format(1).is_some_and(|format| format != Float32) {
        let wanted = if kind == QuantKind::Quantize { "[Float32, Float32]" } else { "[Int32, Float32]" };
        let message = format!("the inputs of `{}` have wrong formats", op.name);
        check.error(code::QUANTIZATION, check.op_at(id, "in_df"), message, &format!("write {wanted}"));
    }
    let out = if kind == QuantKind::Dequantize { Float32 } else { Int8 };
    if op.out_format != out {
        let message = format!("`{}` writes {}, not {out}", op.name, op.out_format);
        check.error(code::QUANTIZATION, check.op_at(id, "out_df"), message, &format!("write out_df: {out}"));
    }
    if op.acc_format != Int32 && op.inputs.iter().all(|input| !input.format.is_integer()) {
        let message = format!("`{}` accumulates in {}, not Int32", op.name, op.acc_format);
        check.error(code::QUANTIZATION, check.op_at(id, "acc_df"), message, "write acc_df: Int32");
    }
}

fn uint16(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    let topk = matches!(op.kind, OpKind::TopK { .. });
    for (index, input) in op.inputs.iter().enumerate() {
        if input.format == UInt16 && !(topk && index == 1) {
            let message = format!("input {index} of `{}` is UInt16", op.name);
            check.error(code::UINT16, check.item_at(id, "in_df", index), message, "only input 1 of topk can be");
        }
    }
    for (name, format, allowed) in
        [("intermed_df", op.intermed_format, false), ("acc_df", op.acc_format, false), ("out_df", op.out_format, topk)]
    {
        if format == UInt16 && !allowed {
            check.error(code::UINT16, check.op_at(id, name), format!("`{}` has {name} UInt16", op.name), "");
        }
    }
}

fn untilize(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    if op.untilize_output && !matches!(op.out_format, F::Float16 | F::Float16B | Float32 | Int8 | Int32) {
        let message = format!("`{}` cannot write rows of {}", op.name, op.out_format);
        let help = "possible: Float16, Float16_b, Float32, Int8, Int32";
        check.error(code::UNTILIZE_FORMAT, check.op_at(id, "out_df"), message, help);
    }
}

/// Tiles travel in units of 32 bytes, so header, exponents and data must fill them.
fn tile_bytes(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    let odd = |format: F, tile: Size| {
        // A small tile of a narrow block format is shorter than the alignment.
        format.is_block() && exponent_bytes(format, tile) + payload_bytes(format, tile) < 48
    };
    if odd(op.out_format, op.blocks.tile) {
        let message = format!("`{}` writes {} in tiles of {} rows", op.name, op.out_format, op.blocks.tile.r);
        check.error(code::TILE_BYTES, check.op_at(id, "out_df"), message, "take larger tiles or a wider format");
    }
    for (index, input) in op.inputs.iter().enumerate() {
        let tile = match input.source {
            Source::Queue(queue) => check.queue(queue).map(|queue| queue.blocks.tile),
            Source::Op(op) => check.op(op).map(|op| op.blocks.tile),
        };
        if tile.is_some_and(|tile| odd(input.format, tile)) {
            let message = format!("input {index} of `{}` is {} in flat tiles", op.name, input.format);
            let at = check.item_at(id, "in_df", index);
            check.error(code::TILE_BYTES, at, message, "take larger tiles or a wider format");
        }
    }
}

/// Checks the rules of one architecture.
pub fn check_arch(check: &mut Check<'_, '_>, arch: Arch) {
    for (id, op) in check.ops() {
        if arch == Arch::Grayskull {
            grayskull(check, id, op);
        }
        accumulators(check, id, op, arch);
    }
}

fn grayskull(check: &mut Check<'_, '_>, id: OpId, op: &Op) {
    if matches!(op.acc_format, Float32 | Int32) {
        let message = format!("`{}` cannot accumulate in {}", op.name, op.acc_format);
        check.error(code::ACCUMULATOR, check.op_at(id, "acc_df"), message, "take a format of 16 bits");
    }
    let keeps = op.gradient_op || product(op).is_some_and(|m| m.m_k > 1);
    let (out, intermed) = (op.out_format, op.intermed_format);
    let same = (out.is_exponent_a() && intermed.is_exponent_a())
        || (out.is_exponent_b() && intermed.is_exponent_b())
        || (out == Float32 && intermed.is_exponent_b());
    if keeps && out != intermed && !same {
        let message = format!("`{}` accumulates in {intermed} and writes {out}", op.name);
        let help = "both must have exponents of the same width";
        check.error(code::EXPONENT_MIX, check.op_at(id, "intermed_df"), message, help);
    }
    if product(op).is_some_and(|m| m.l1_acc) || matches!(&op.kind, OpKind::Depthwise(m) if m.l1_acc) {
        let at = check.attribute_at(id, "l1_acc");
        check.error(code::L1_ACCUMULATION, at, format!("`{}` cannot accumulate in L1", op.name), "");
    }
    if op.untilize_output && matches!(op.out_format, Int8 | Int32) {
        let message = format!("`{}` cannot write rows of {}", op.name, op.out_format);
        check.error(code::UNTILIZE_FORMAT, check.op_at(id, "out_df"), message, "");
    }
}

/// Checks that a 32-bit accumulator has the same format in the intermediate buffer.
fn accumulators(check: &mut Check<'_, '_>, id: OpId, op: &Op, arch: Arch) {
    if !matches!(op.acc_format, Float32 | Int32) {
        return;
    }
    let keeps = product(op).is_some_and(|m| if arch == Arch::Grayskull { m.m_k > 1 } else { m.l1_acc });
    if keeps && op.intermed_format != op.acc_format {
        let message = format!("`{}` accumulates {} in {}", op.name, op.acc_format, op.intermed_format);
        let help = format!("write intermed_df: {}", op.acc_format);
        check.error(code::INTERMEDIATE, check.op_at(id, "intermed_df"), message, &help);
    }
    let copied = matches!(op.kind, OpKind::Unary(_)) && !op.gradient_op;
    let narrow = op.inputs.first().is_some_and(|input| input.format != Float32);
    if arch == Arch::Wormhole && op.acc_format == Float32 && copied && narrow {
        let message = format!("`{}` accumulates in Float32, so its input must be Float32", op.name);
        check.error(code::UNPACK_FORMAT, check.item_at(id, "in_df", 0), message, "");
    }
}
