//! Training: optimiser steps and gradients.
//!
//! Source: `TTNN/operations/ttml.fbs` of the schema ([`crate::schema`]).

use crate::flat::declare::tables;
use crate::ttnn::types::TensorRef;

tables! {
    /// One step of the AdamW optimiser, in place.
    AdamWOp {
        param: TensorRef as inout, grad: TensorRef, exp_avg: TensorRef as inout, exp_avg_sq: TensorRef as inout,
        max_exp_avg_sq: Option<TensorRef> as inout, lr: f32, beta1: f32, beta2: f32, beta1_pow: f32,
        beta2_pow: f32, epsilon: f32, weight_decay: f32, stochastic_rounding: bool,
    }

    /// Attention for training: the result, and the values that its gradient needs.
    SDPAForwardOp {
        query: TensorRef, key: TensorRef, value: TensorRef, attention_mask: Option<TensorRef>, mask_type: u32,
        dropout_probability: f32, return_intermediates: bool, out: TensorRef as out,
        intermediates: Option<TensorRef> as out,
    }

    /// Gradient of [`SDPAForwardOp`].
    SDPABackwardOp {
        grad_output: TensorRef, attn_output: TensorRef, query: TensorRef, key: TensorRef, value: TensorRef,
        intermediates: TensorRef, attention_mask: Option<TensorRef>, mask_type: u32, dropout_probability: f32,
        grad_query: TensorRef as out, grad_key: TensorRef as out, grad_value: TensorRef as out,
    }
}
