//! Softmax and normalisation.

use tilework_model::ttnn::ops::normalization::{
    BatchNormInferenceOp, BatchNormTrainingOp, DitRMSNormUnaryFusedOp, GroupNormOp, LayerNormOp,
    LayerNormPostAllGatherOp, LayerNormPreAllGatherOp, RMSNormOp, RMSNormPreAllGatherOp, SoftmaxOp,
};
use tilework_ops::{self as ops, Affine, RmsFused};

use super::*;

pub(super) fn softmax<'m>(op: &'m SoftmaxOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| ops::softmax(&args[input], op.dimension.into(), out)))
}

/// Scale and shift after a normalisation.
#[derive(Clone, Copy)]
struct Scaling {
    weight: Option<Slot>,
    bias: Option<Slot>,
}

impl Scaling {
    fn of<'m>(weight: &'m Option<TensorRef>, bias: &'m Option<TensorRef>, lowering: &mut Lowering<'m>) -> Self {
        Self { weight: lowering.read_if(weight), bias: lowering.read_if(bias) }
    }

    fn resolve<'a>(self, args: &Args<'a>) -> Affine<'a> {
        Affine { weight: args.get(self.weight), bias: args.get(self.bias) }
    }
}

pub(super) fn layer_norm<'m>(op: &'m LayerNormOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let scaling = Scaling::of(&op.weight, &op.bias, lowering);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| ops::layer_norm(&args[input], scaling.resolve(args), op.epsilon, out)))
}

pub(super) fn rms_norm<'m>(op: &'m RMSNormOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let scaling = Scaling::of(&op.weight, &op.bias, lowering);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| ops::rms_norm(&args[input], scaling.resolve(args), op.epsilon, RmsFused::default(), out)))
}

pub(super) fn dit_rms_norm<'m>(op: &'m DitRMSNormUnaryFusedOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let scaling = Scaling::of(&op.weight, &op.bias, lowering);
    let residual = lowering.read_if(&op.residual_input);
    let out = lowering.make(&op.out)?;
    let activation = op.activation.as_deref().filter(|name| !name.is_empty()).map(fused::named).transpose()?;
    Ok(one(move |args| {
        let fused = RmsFused { residual: args.get(residual), activation };
        ops::rms_norm(&args[input], scaling.resolve(args), op.epsilon, fused, out)
    }))
}

pub(super) fn group_norm<'m>(op: &'m GroupNormOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    // The mask only tells the device which channels of a tile belong to a group.
    lowering.read_if(&op.input_mask);
    let scaling = Scaling::of(&op.weight, &op.bias, lowering);
    let out = lowering.make(&op.out)?;
    let groups = count("num_groups", op.num_groups)?;
    Ok(one(move |args| ops::group_norm(&args[input], groups, scaling.resolve(args), op.epsilon, out)))
}

pub(super) fn batch_norm_inference<'m>(op: &'m BatchNormInferenceOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (Some(mean), Some(variance)) = (&op.running_mean, &op.running_var) else {
        return Err(Refusal::malformed("no mean or no variance"));
    };
    let input = lowering.read(&op.input);
    let (mean, variance) = (lowering.read(mean), lowering.read(variance));
    let scaling = Scaling::of(&op.weight, &op.bias, lowering);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| {
        ops::batch_norm(&args[input], &args[mean], &args[variance], scaling.resolve(args), op.epsilon, out)
    }))
}

/// The running statistics change in place.
pub(super) fn batch_norm_training<'m>(op: &'m BatchNormTrainingOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (Some(mean), Some(variance)) = (&op.running_mean, &op.running_var) else {
        return Err(Refusal::unsupported("batches without running mean and variance"));
    };
    let input = lowering.read(&op.input);
    let (mean, variance) = (lowering.change(mean), lowering.change(variance));
    let scaling = Scaling::of(&op.weight, &op.bias, lowering);
    let out = lowering.make(&op.out)?;
    Ok(many(move |args| {
        let running = [&args[mean], &args[variance]];
        let scaling = scaling.resolve(args);
        let batch = ops::batch_norm_training(&args[input], running, scaling, op.epsilon, op.momentum, out)?;
        Ok(vec![batch.running_mean, batch.running_var, batch.output])
    }))
}

/// The reciprocal table serves the device's blocks; the statistics are the same without it.
pub(super) fn layer_norm_before<'m>(op: &'m LayerNormPreAllGatherOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (input, residual) = (lowering.read(&op.input), lowering.read_if(&op.residual_input));
    lowering.read_if(&op.recip);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| ops::layer_norm_pre_all_gather(&args[input], args.get(residual), out)))
}

pub(super) fn layer_norm_after<'m>(op: &'m LayerNormPostAllGatherOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (input, stats) = (lowering.read(&op.input), lowering.read(&op.stats));
    let scaling = Scaling::of(&op.weight, &op.bias, lowering);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| {
        ops::layer_norm_post_all_gather(&args[input], &args[stats], scaling.resolve(args), op.epsilon, out)
    }))
}

pub(super) fn rms_norm_before<'m>(op: &'m RMSNormPreAllGatherOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let (input, residual) = (lowering.read(&op.input), lowering.read_if(&op.residual));
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| ops::rms_norm_pre_all_gather(&args[input], args.get(residual), out)))
}
