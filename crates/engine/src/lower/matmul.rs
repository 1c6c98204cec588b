//! Products of matrices.

use tilework_model::ttnn::ops::fused::UnaryWithParam;
use tilework_model::ttnn::ops::matmul::{LinearOp, MatmulOp, MatmulProgramConfig};
use tilework_ops::{self as ops, MatmulOptions, Unary};

use super::*;

/// The activation: a name, or part of the blocking.
fn activation(name: &Option<String>, config: &Option<MatmulProgramConfig>) -> Result<Option<Unary>, Refusal> {
    use MatmulProgramConfig as Config;
    let fused: &Option<UnaryWithParam> = match config {
        Some(Config::MatmulMultiCoreReuseMultiCastProgramConfig(config)) => &config.fused_activation,
        Some(Config::MatmulMultiCoreReuseMultiCast1DProgramConfig(config)) => &config.fused_activation,
        Some(Config::MatmulMultiCoreReuseMultiCastDRAMShardedProgramConfig(config)) => &config.fused_activation,
        Some(Config::MatmulMultiCoreReuseProgramConfig(_)) | None => &None,
    };
    let fused = fused.as_ref().map(fused::function).transpose()?;
    let named = name.as_deref().filter(|name| !name.is_empty()).map(fused::named).transpose()?;
    match (named, fused) {
        (Some(named), Some(fused)) if named != fused => {
            Err(Refusal::malformed(format!("the activation {named:?} and another one, {fused:?}, in the blocking")))
        }
        (named, fused) => Ok(named.or(fused)),
    }
}

pub(super) fn matmul<'m>(op: &'m MatmulOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (a, b) = (lowering.read(&op.a), lowering.read(&op.b));
    let out = lowering.make(&op.out)?;
    let activation = activation(&op.activation, &op.matmul_program_config)?;
    let (transpose_a, transpose_b, swiglu) = (op.transpose_a, op.transpose_b, op.fused_swiglu);
    let options = MatmulOptions { transpose_a, transpose_b, activation, swiglu, bias: None };
    Ok(one(move |args| ops::matmul(&args[a], &args[b], options, out)))
}

pub(super) fn linear<'m>(op: &'m LinearOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (a, b) = (lowering.read(&op.a), lowering.read(&op.b));
    let bias = lowering.read_if(&op.bias);
    let out = lowering.make(&op.out)?;
    let activation = activation(&op.activation, &op.matmul_program_config)?;
    let (transpose_a, transpose_b) = (op.transpose_a, op.transpose_b);
    Ok(one(move |args| {
        let bias = args.get(bias);
        let options = MatmulOptions { transpose_a, transpose_b, activation, bias, swiglu: false };
        ops::matmul(&args[a], &args[b], options, out)
    }))
}
