//! Rules of fused operations that depend on the graph's operation that uses them: blocks, formats,
//! architecture.

use super::{Check, StepAt, places};
use crate::DataFormat::{self, Float32, Int8, Int32};
use crate::code;
use crate::types::{Arch, BinaryKind, FusedId, FusedSource, FusedTarget, Op, OpId, OpKind, QuantKind, UnaryKind};

/// Checks a fused operation for the operation that uses it.
pub fn used_by(check: &mut Check<'_, '_>, id: OpId, op: &Op, fused: FusedId) {
    for place in places(check, fused) {
        let step = place.step;
        let (mine, theirs) = ((step.mblock, step.ublock), (op.blocks.mblock, op.blocks.ublock));
        if step.output == FusedTarget::Output && mine != theirs {
            let message = format!(
                "step `{}` writes the output with mblock [{}, {}], ublock [{}, {}], but `{}` has [{}, {}], [{}, {}]",
                step.name,
                mine.0.r,
                mine.0.c,
                mine.1.r,
                mine.1.c,
                op.name,
                theirs.0.r,
                theirs.0.c,
                theirs.1.r,
                theirs.1.c
            );
            check.step_error(code::FUSED_OUTPUT, place, "mblock", message, "both must be the same");
        }
        let narrow = op.inputs.iter().any(|input| input.format.is_exponent_a());
        if matches!(step.kind, OpKind::Reduce { .. }) && op.acc_format == Float32 && narrow {
            let message = format!("`{}` reduces in Float32, but has inputs with 5 bits of exponent", op.name);
            check.error(code::REDUCE_FORMAT, check.op_at(id, "in_df"), message, "take formats with _b");
        }
        if op.acc_format == Int32 {
            integer_step(check, op, place);
        } else if matches!(step.kind, OpKind::Quant { .. }) {
            let message =
                format!("step `{}` is a quantisation, which `{}` must accumulate in Int32", step.name, op.name);
            check.step_error(code::FUSED_INTEGER, place, "type", message, "write acc_df: Int32");
        }
    }
    if op.acc_format == Int32 {
        let steps = check.net.fused(fused).schedules.last().and_then(|steps| steps.last());
        let floats = steps.is_some_and(|s| matches!(s.kind, OpKind::Quant { kind: QuantKind::Dequantize, .. }));
        let good = if floats { op.out_format == Float32 } else { matches!(op.out_format, Int8 | Int32) };
        if !good {
            let wanted = if floats { "Float32" } else { "Int8 or Int32" };
            let message = format!("`{}` ends in integers or in a dequantisation, so it writes {wanted}", op.name);
            check.error(code::FUSED_INTEGER, check.op_at(id, "out_df"), message, "");
        }
    }
}

fn integer_step(check: &mut Check<'_, '_>, op: &Op, place: StepAt<'_>) {
    let step = place.step;
    let format = |index: usize| -> Option<DataFormat> {
        match step.inputs.get(index)?.0 {
            FusedSource::Input(input) => op.inputs.get(input as usize).map(|input| input.format),
            FusedSource::Intermed(_) => Some(op.intermed_format),
            FusedSource::Dest => Some(op.acc_format),
        }
    };
    let is_input = |index: usize| matches!(step.inputs.get(index), Some((FusedSource::Input(_), _)));
    let is_dest = |index: usize| matches!(step.inputs.get(index), Some((FusedSource::Dest, _)));
    let all_inputs = |good: &dyn Fn(DataFormat) -> bool| {
        (0..step.inputs.len()).all(|index| !is_input(index) || format(index).is_none_or(good))
    };
    let reason = match &step.kind {
        OpKind::Unary(UnaryKind::Copy) | OpKind::Binary(BinaryKind::Add | BinaryKind::Maximum) => {
            (!all_inputs(&|f| matches!(f, Int8 | Int32))).then_some("its inputs must be Int8 or Int32")
        }
        OpKind::Binary(_) => (!all_inputs(&|f| f == Int8)).then_some("its inputs must be Int8"),
        OpKind::Quant { kind: QuantKind::Quantize, .. } => {
            let floats = (0..2).all(|index| is_input(index) && format(index) == Some(Float32));
            (!floats).then_some("both operands must be inputs of Float32")
        }
        OpKind::Quant { .. } if is_dest(0) => Some("operand 0 cannot be `dest`"),
        OpKind::Quant { .. } if is_dest(1) => {
            let small = u64::from(step.ublock.r) * u64::from(step.ublock.c) <= 2;
            let good = small && is_input(0) && format(0) == Some(Float32);
            (!good).then_some("with `dest` as operand 1 it has two tiles and operand 0 is an input of Float32")
        }
        OpKind::Quant { .. } => {
            let good = matches!(format(0), Some(Int8 | Int32)) && format(1) == Some(Float32);
            (!good).then_some("operand 0 must be Int8 or Int32, operand 1 Float32")
        }
        _ => Some("only binary operations, quantisations and datacopy compute with integers"),
    };
    let quant = matches!(step.kind, OpKind::Quant { .. });
    let reads_dest = (0..step.inputs.len()).any(is_dest);
    let vector_add = step.kind == OpKind::Binary(BinaryKind::Add) && (0..2).any(|index| format(index) == Some(Int32));
    let reason = reason.or_else(|| (reads_dest && !quant).then_some("only quantisations can read `dest`"));
    let writes_dest = vector_add && step.output == FusedTarget::Dest;
    let reason = reason.or_else(|| writes_dest.then_some("an addition of Int32 cannot write to `dest`"));
    if let Some(reason) = reason {
        let message = format!("step `{}` computes with integers for `{}`: {reason}", step.name, op.name);
        check.step_error(code::FUSED_INTEGER, place, "inputs", message, "");
    }
}

/// Checks the rules of one architecture.
pub fn check_arch(check: &mut Check<'_, '_>, arch: Arch) {
    if arch != Arch::Grayskull {
        return;
    }
    for (id, op) in check.ops() {
        let OpKind::Fused(fused) = op.kind else { continue };
        if op.acc_format == Int32 {
            let message = format!("`{}` fuses integer operations", op.name);
            check.error(code::FUSED_INTEGER, check.op_at(id, "acc_df"), message, "");
        }
        if check.src.broken.fused.contains(&fused) {
            continue;
        }
        for place in places(check, fused) {
            if place.step.inputs.get(1).is_some_and(|(source, _)| *source == FusedSource::Dest) {
                let message = format!("step `{}` reads `dest` as operand 1", place.step.name);
                check.step_error(code::FUSED_DEST_KIND, place, "inputs", message, "make it operand 0");
            }
        }
    }
}
