//! Training steps: an optimiser, and attention with its gradient.

use tilework_model::ttnn::ops::training::{AdamWOp, SDPABackwardOp, SDPAForwardOp};
use tilework_ops::{self as ops, AdamW, AdamWState, Mask, SdpaGradient};

use super::*;

/// The state changes in place.
pub(super) fn adamw<'m>(op: &'m AdamWOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    if op.stochastic_rounding {
        return Err(Refusal::unsupported("stochastic rounding: the device's random numbers are not known"));
    }
    let [parameters, first, second] = [&op.param, &op.exp_avg, &op.exp_avg_sq].map(|tensor| lowering.change(tensor));
    let largest = op.max_exp_avg_sq.as_ref().map(|tensor| lowering.change(tensor));
    let gradient = lowering.read(&op.grad);
    let by = AdamW {
        rate: op.lr,
        beta: [op.beta1, op.beta2],
        beta_power: [op.beta1_pow, op.beta2_pow],
        epsilon: op.epsilon,
        weight_decay: op.weight_decay,
    };
    Ok(many(move |args| {
        let state = AdamWState {
            parameters: &args[parameters],
            first: &args[first],
            second: &args[second],
            largest: args.get(largest),
        };
        ops::adamw(state, &args[gradient], by)
    }))
}

/// The scores that count.
#[derive(Clone, Copy)]
enum MaskSlot {
    None,
    Causal,
    Added(Slot),
}

impl MaskSlot {
    /// The kind's number in the file: 0 none, 1 causal, 2 a tensor.
    fn of<'m>(
        kind: u32,
        tensor: &'m Option<TensorRef>,
        dropout: f32,
        lowering: &mut Lowering<'m>,
    ) -> Result<Self, Refusal> {
        if dropout != 0.0 {
            return Err(Refusal::unsupported("dropout in attention: the device's random numbers are not known"));
        }
        let tensor = lowering.read_if(tensor);
        match (kind, tensor) {
            (0, _) => Ok(Self::None),
            (1, _) => Ok(Self::Causal),
            (2, Some(slot)) => Ok(Self::Added(slot)),
            (2, None) => Err(Refusal::malformed("an attention mask of its own, but none is given")),
            (other, _) => Err(Refusal::malformed(format!("mask_type {other}"))),
        }
    }

    fn resolve<'a>(self, args: &Args<'a>) -> Mask<'a> {
        match self {
            Self::None => Mask::None,
            Self::Causal => Mask::Causal,
            Self::Added(slot) => args.get(Some(slot)).map_or(Mask::None, Mask::Added),
        }
    }
}

pub(super) fn sdpa_forward<'m>(op: &'m SDPAForwardOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let [query, key, value] = [&op.query, &op.key, &op.value].map(|operand| lowering.read(operand));
    let mask = MaskSlot::of(op.mask_type, &op.attention_mask, op.dropout_probability, lowering)?;
    let out = lowering.make(&op.out)?;
    let sums = op.intermediates.as_ref().map(|tensor| lowering.make(tensor)).transpose()?;
    if sums.is_none() == op.return_intermediates {
        return Err(Refusal::malformed("intermediates are returned, but have no tensor, or the other way round"));
    }
    let types = [out, sums.unwrap_or(DType::F32)];
    Ok(many(move |args| {
        let [result, statistics] =
            ops::sdpa_forward(&args[query], &args[key], &args[value], mask.resolve(args), types)?;
        Ok(if sums.is_some() { vec![result, statistics] } else { vec![result] })
    }))
}

pub(super) fn sdpa_backward<'m>(op: &'m SDPABackwardOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let [gradient, result, sums] =
        [&op.grad_output, &op.attn_output, &op.intermediates].map(|operand| lowering.read(operand));
    let operands = [&op.query, &op.key, &op.value].map(|operand| lowering.read(operand));
    let mask = MaskSlot::of(op.mask_type, &op.attention_mask, op.dropout_probability, lowering)?;
    let out = [lowering.make(&op.grad_query)?, lowering.make(&op.grad_key)?, lowering.make(&op.grad_value)?];
    Ok(many(move |args| {
        let of = SdpaGradient { gradient: &args[gradient], result: &args[result], sums: &args[sums] };
        Ok(ops::sdpa_backward(of, operands.map(|slot| &args[slot]), mask.resolve(args), out)?.into())
    }))
}
