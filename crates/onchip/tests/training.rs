//! Attention with its gradient, the router of experts and the scores of sparse attention on the
//! chip against their reference semantics.

use crate::chip::common::build::tensor;
use crate::chip::{array, floats, same_of, tolerance};
use proptest::prelude::*;
use tilework_engine::{Tolerance, Value};
use tilework_model::common::DataType;
use tilework_model::ttnn::ops::attention::IndexerScoreDsaOp;
use tilework_model::ttnn::ops::reduction::TopKRouterGptOp;
use tilework_model::ttnn::ops::training::{SDPABackwardOp, SDPAForwardOp};
use tilework_model::ttnn::{Op, TensorRef};
use tilework_ops::Tensor;

/// Whole numbers, of which products and sums are exact.
fn whole(of: &TensorRef, seed: u64) -> Value {
    let near = array(of, seed);
    let all: Vec<f32> = near.to_f32().iter().map(|x| x.round()).collect();
    Value::from(Tensor::from_f32(near.dtype(), near.shape().clone(), &all).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    /// The statistics and the result of the forward pass are those that the gradient reads.
    #[test]
    fn attention_and_its_gradient(
        batch in 1..3_i32, key_heads in 1..3_i32, shared in 1..3_i32, lengths in prop::array::uniform2(1..50_i32),
        depths in prop::array::uniform2(1..40_i32), mask_type in 0..3_u32, data_type in floats(), whole in any::<bool>(),
    ) {
        let ([queries, keys], [depth, width], heads) = (lengths, depths, key_heads * shared);
        let sums_type = if whole { DataType::Float32 } else { data_type };
        let query = tensor(1, data_type, &[batch, heads, queries, depth]);
        let key = tensor(2, data_type, &[batch, key_heads, keys, depth]);
        let value = tensor(3, data_type, &[batch, key_heads, keys, width]);
        let mask = tensor(4, data_type, &[batch, 1, queries, keys]);
        let out = tensor(5, data_type, &[batch, heads, queries, width]);
        let sums = tensor(6, sums_type, &[batch, heads, queries, 32]);
        let masked = mask_type == 2;
        let op = SDPAForwardOp {
            query: query.clone(), key: key.clone(), value: value.clone(), mask_type, dropout_probability: 0.0,
            attention_mask: masked.then(|| mask.clone()), return_intermediates: true, out: out.clone(),
            intermediates: Some(sums.clone()),
        };
        let given = |mut inputs: Vec<TensorRef>| {
            inputs.extend(masked.then(|| mask.clone()));
            inputs
        };
        let inputs = given(vec![query.clone(), key.clone(), value.clone()]);
        let inputs: Vec<&TensorRef> = inputs.iter().collect();
        let values = || inputs.iter().zip(1..).map(|(of, seed)| Value::from(array(of, seed))).collect::<Vec<_>>();
        same_of(vec![Op::SDPAForward(op)], &inputs, &values, &[&out, &sums], tolerance(data_type));

        let gradient = tensor(7, data_type, &[batch, heads, queries, width]);
        let results = [tensor(8, data_type, &query.desc.shape), tensor(9, data_type, &key.desc.shape),
            tensor(10, data_type, &value.desc.shape)];
        let op = SDPABackwardOp {
            grad_output: gradient.clone(), attn_output: out.clone(), query: query.clone(), key: key.clone(),
            value: value.clone(), intermediates: sums.clone(), attention_mask: masked.then(|| mask.clone()), mask_type,
            dropout_probability: 0.0, grad_query: results[0].clone(), grad_key: results[1].clone(),
            grad_value: results[2].clone(),
        };
        let inputs = given(vec![gradient, out, query, key, value, sums.clone()]);
        let inputs: Vec<&TensorRef> = inputs.iter().collect();
        // Sums that are larger than those of the scores keep the weights below one.
        let values = || {
            let of = |(of, seed): (&&TensorRef, u64)| match of.desc == sums.desc && seed == 6 {
                true => {
                    let shape = array(of, seed).shape().clone();
                    let rows = array(of, seed).to_f32();
                    let all: Vec<f32> = rows.iter().enumerate().map(|(i, _)| rows[i / 32 * 32].abs() + 4.0).collect();
                    Value::from(Tensor::from_f32(of.desc.dtype().into(), shape, &all).unwrap())
                }
                false => Value::from(array(of, seed)),
            };
            inputs.iter().zip(1..).map(of).collect::<Vec<_>>()
        };
        let outs: Vec<&TensorRef> = results.iter().collect();
        same_of(vec![Op::SDPABackward(op)], &inputs, &values, &outs, tolerance(data_type));
    }

    #[test]
    fn tokens_choose_experts(
        tokens in 1..50_i32, hidden in 1..40_i32, experts in 2..70_i32, k in any::<prop::sample::Index>(),
        data_type in floats(), narrow in any::<bool>(),
    ) {
        let k = 1 + k.index(experts.min(8) as usize) as i32;
        let x = tensor(1, data_type, &[1, 1, tokens, hidden]);
        let weight = tensor(2, data_type, &[hidden, experts]);
        let bias = tensor(3, data_type, &[1, experts]);
        let numbers = tensor(4, if narrow { DataType::UInt16 } else { DataType::Int32 }, &[1, 1, tokens, k]);
        let weights = tensor(5, data_type, &[1, 1, tokens, k]);
        let op = TopKRouterGptOp {
            input: x.clone(), weight: weight.clone(), bias: bias.clone(), k, num_experts: experts,
            expert_indices: numbers.clone(), expert_weights: weights.clone(),
        };
        let inputs = [&x, &weight, &bias];
        let values = || inputs.iter().zip(1..).map(|(of, seed)| whole(of, seed)).collect::<Vec<_>>();
        let op = Op::TopKRouterGpt(op);
        same_of(vec![op.clone()], &inputs, &values, &[&weights], tolerance(data_type));
        same_of(vec![op], &inputs, &values, &[&numbers], Tolerance::EXACT);
    }

    #[test]
    fn scores_that_select_keys(
        batch in 1..3_i32, heads in 1..5_i32, lengths in prop::array::uniform3(1..60_i32), first in 0..40_u32,
        data_type in floats(),
    ) {
        let [queries, keys, size] = lengths;
        let query = tensor(1, data_type, &[batch, heads, queries, size]);
        let key = tensor(2, data_type, &[batch, 1, keys, size]);
        let weights = tensor(3, data_type, &[batch, heads, queries, 1]);
        let out = tensor(4, data_type, &[batch, 1, queries, keys]);
        let op = IndexerScoreDsaOp {
            query: query.clone(), key: key.clone(), weights: weights.clone(), chunk_start_idx: first, out: out.clone(),
            cluster_axis: None,
        };
        let inputs = [&query, &key, &weights];
        let values = || inputs.iter().zip(1..).map(|(of, seed)| whole(of, seed)).collect::<Vec<_>>();
        let exact = Tolerance { rtol: 1e-2, atol: 1e-2, all_close: true, pcc: None, of_range: None };
        same_of(vec![Op::IndexerScoreDsa(op)], &inputs, &values, &[&out], exact);
    }
}
