//! Attention and normalisations on the chip against their reference semantics.

use crate::chip::common::build::tensor;
use crate::chip::{BF16, F32, array, floats, numbers, rows, same, same_of, same_on, tolerance};
use proptest::prelude::*;
use tilework_abi::board::Board;
use tilework_engine::{Tolerance, Value};
use tilework_model::common::DataType;
use tilework_model::ttnn::ops::attention::{
    FlashMlaPrefillOp, PagedFlashMultiLatentAttentionDecodeOp, PagedScaledDotProductAttentionDecodeOp,
    ScaledDotProductAttentionDecodeOp, ScaledDotProductAttentionOp,
};
use tilework_model::ttnn::ops::matmul::MatmulOp;
use tilework_model::ttnn::ops::normalization::{BatchNormInferenceOp, BatchNormTrainingOp, GroupNormOp};
use tilework_model::ttnn::{Op, TensorRef};
use tilework_ops::Tensor;

/// The numbers of a tensor, all positive.
fn positive(of: &TensorRef, seed: u64) -> Value {
    let numbers = array(of, seed);
    let positive: Vec<f32> = numbers.to_f32().iter().map(|x| x.abs() + 0.5).collect();
    Value::from(Tensor::from_f32(numbers.dtype(), numbers.shape().clone(), &positive).unwrap())
}

/// What float32 keeps of sums of products.
const PRODUCTS: Tolerance = Tolerance { of_range: Some(2e-5), ..F32 };

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn products_of_float32_keep_its_bits(batch in 1..3_i32, sides in prop::array::uniform3(1..90_i32), spread in any::<bool>()) {
        let [rows, inner, columns] = sides;
        let a = tensor(1, DataType::Float32, &[if spread { 1 } else { batch }, rows, inner]);
        let b = tensor(2, DataType::Float32, &[batch, inner, columns]);
        let out = tensor(3, DataType::Float32, &[batch, rows, columns]);
        let op = MatmulOp {
            a: a.clone(), b: b.clone(), out: out.clone(), transpose_a: false, transpose_b: false,
            matmul_program_config: None, activation: None, compute_config: None, fused_swiglu: false, fp32_exact: Default::default(),
        };
        same(Op::Matmul(op), &[&a, &b], &out, PRODUCTS);
    }

    #[test]
    fn batches_and_groups_are_normalised(
        images in 1..3_i32, groups in 1..5_i32, width in 1..20_i32, sides in prop::array::uniform2(2..40_i32),
        affine in any::<[bool; 2]>(), data_type in floats(),
    ) {
        let channels = groups * width;
        let batch = [images, channels, sides[0], sides[1]];
        let (x, out) = (tensor(1, data_type, &batch), tensor(6, data_type, &batch));
        let vector = |id| tensor(id, data_type, &[1, channels, 1, 1]);
        let (mean, variance) = (vector(2), vector(3));
        let (weight, bias) = (affine[0].then(|| vector(4)), affine[1].then(|| vector(5)));
        let op = BatchNormInferenceOp {
            input: x.clone(), running_mean: Some(mean.clone()), running_var: Some(variance.clone()), epsilon: 1e-5,
            weight: weight.clone(), bias: bias.clone(), memory_config: None, out: out.clone(), compute_config: None,
        };
        let mut inputs = vec![&x, &mean, &variance];
        inputs.extend(weight.iter().chain(&bias));
        let values = || inputs.iter().zip(1..).map(|(of, seed)| positive(of, seed)).collect::<Vec<_>>();
        same_of(vec![Op::BatchNormInference(op)], &inputs, &values, &[&out], tolerance(data_type));
        let op = BatchNormTrainingOp {
            input: x.clone(), running_mean: Some(mean.clone()), running_var: Some(variance.clone()), epsilon: 1e-5,
            momentum: 0.1, weight: weight.clone(), bias: bias.clone(), memory_config: None, out: out.clone(),
            compute_config: None,
        };
        let outs = [&mean, &variance, &out];
        same_of(vec![Op::BatchNormTraining(op)], &inputs, &values, &outs, tolerance(data_type));

        let last = [images, 1, sides[0] * sides[1], channels];
        let (x, out) = (tensor(1, data_type, &last), tensor(6, data_type, &last));
        let vector = |id| rows(tensor(id, data_type, &[1, 1, 1, channels]));
        let (weight, bias) = (affine[0].then(|| vector(4)), affine[1].then(|| vector(5)));
        let op = GroupNormOp {
            input: x.clone(), input_mask: None, weight: weight.clone(), bias: bias.clone(), num_groups: groups.into(),
            epsilon: 1e-5, memory_config: None, out: out.clone(),
        };
        let inputs: Vec<&TensorRef> = [&x].into_iter().chain(&weight).chain(&bias).collect();
        same(Op::GroupNorm(op), &inputs, &out, tolerance(data_type));
    }

    #[test]
    fn attention_of_any_heads(
        batch in 1..3_i32, key_heads in 1..3_i32, shared in 1..4_i32, queries in 1..40_i32, more in 0..40_i32,
        depth in 1..70_i32, which in 0..4_usize, mask_of in any::<[bool; 3]>(), data_type in floats(), sunk in any::<bool>(),
    ) {
        let (heads, keys) = (key_heads * shared, queries + more);
        let q = tensor(1, data_type, &[batch, heads, queries, depth]);
        let of_keys = |id| tensor(id, data_type, &[batch, key_heads, keys, depth]);
        let (k, v, out) = (of_keys(2), of_keys(3), tensor(5, data_type, &[batch, heads, queries, depth]));
        let one = |whole: i32, is: bool| if is { 1 } else { whole };
        let mask = tensor(4, data_type, &[one(batch, mask_of[0]), one(heads, mask_of[1]), one(queries, mask_of[2]), keys]);
        let (masked, sink) = (which == 2, tensor(6, data_type, &[1, heads, 1, 1]));
        let op = ScaledDotProductAttentionOp {
            query: q.clone(), key: k.clone(), value: v.clone(), is_causal: which == 1 || (which == 3 && mask_of[0]),
            attention_mask: masked.then(|| mask.clone()), scale: (which == 2).then_some(0.3),
            sliding_window_size: (which == 3).then_some(5), attention_sink: sunk.then(|| sink.clone()), out: out.clone(), memcfg: None,
        };
        let inputs = [&q, &k, &v].into_iter().chain(masked.then_some(&mask)).chain(sunk.then_some(&sink));
        let inputs: Vec<&TensorRef> = inputs.collect();
        same(Op::ScaledDotProductAttention(op), &inputs, &out, tolerance(data_type));
    }

    /// Values that are the first columns of the keys, of prompts and of pages, with a sink.
    #[test]
    fn latent_attention(
        batch in 1..3_i32, heads in 1..5_i32, queries in 1..40_i32, pages in 1..3_i32, depth in 2..70_i32,
        given in any::<bool>(), causal in any::<bool>(), sunk in any::<bool>(), data_type in floats(), seed in any::<u64>(),
    ) {
        let columns = depth / 2;
        let (q, out) = (tensor(1, data_type, &[batch, heads, queries, depth]), tensor(4, data_type, &[batch, heads, queries, columns]));
        let (k, v) = (tensor(2, data_type, &[batch, 1, queries, depth]), tensor(3, data_type, &[batch, 1, queries, columns]));
        let op = FlashMlaPrefillOp {
            query: q.clone(), key: k.clone(), value: given.then(|| v.clone()), attention_mask: None,
            head_dim_v: columns as u32, is_causal: causal, scale: Some(0.2), out: out.clone(), memcfg: None,
        };
        let inputs: Vec<&TensorRef> = [&q, &k].into_iter().chain(given.then_some(&v)).collect();
        same(Op::FlashMlaPrefill(op), &inputs, &out, tolerance(data_type));

        let (q, out) = (tensor(1, data_type, &[1, batch, heads, depth]), tensor(7, data_type, &[1, batch, heads, columns]));
        let k = tensor(2, data_type, &[batch * pages + 1, 1, 32, depth]);
        let v = tensor(3, data_type, &[batch * pages + 1, 1, 32, columns]);
        let table = rows(tensor(4, DataType::Int32, &[batch, pages]));
        let at = rows(tensor(5, DataType::Int32, &[batch]));
        let sink = tensor(6, data_type, &[heads, 32]);
        let op = PagedFlashMultiLatentAttentionDecodeOp {
            query: q.clone(), key: k.clone(), value: given.then(|| v.clone()), head_dim_v: columns as u32,
            page_table: table.clone(), is_causal: true, attention_mask: None, cur_pos_tensor: Some(at.clone()),
            attention_sink: sunk.then(|| sink.clone()), scale: None, out: out.clone(), memcfg: None,
        };
        let inputs = [&q, &k].into_iter().chain(given.then_some(&v)).chain([&table, &at]).chain(sunk.then_some(&sink));
        let inputs: Vec<&TensorRef> = inputs.collect();
        let values = || {
            let of = |(of, seed_of): (&&TensorRef, u64)| Value::from(match of.desc.shape.len() {
                1 => numbers(of, (pages * 32) as usize, seed),
                2 if of.desc.dtype() == DataType::Int32 => numbers(of, (batch * pages + 1) as usize, seed),
                _ => array(of, seed_of),
            });
            inputs.iter().zip(1..).map(of).collect::<Vec<_>>()
        };
        same_of(vec![Op::PagedFlashMultiLatentAttentionDecode(op)], &inputs, &values, &[&out], tolerance(data_type));
    }

    #[test]
    fn attention_of_one_position(
        batch in 1..4_i32, key_heads in 1..3_i32, shared in 1..5_i32, pages in 1..4_i32, depth in 1..70_i32,
        data_type in floats(), seed in any::<u64>(),
    ) {
        let (heads, length) = (key_heads * shared, 32);
        let keys = pages * length;
        let (q, out) = (tensor(1, data_type, &[1, batch, heads, depth]), tensor(6, data_type, &[1, batch, heads, depth]));
        let at = rows(tensor(4, DataType::Int32, &[batch]));
        let (k, v) = {
            let of = |id| tensor(id, data_type, &[batch, key_heads, keys, depth]);
            (of(2), of(3))
        };
        let op = ScaledDotProductAttentionDecodeOp {
            query: q.clone(), key: k.clone(), value: v.clone(), is_causal: true, attention_mask: None,
            cur_pos_tensor: Some(at.clone()), attention_sink: None, scale: None, sliding_window_size: None,
            out: out.clone(), memcfg: None, program_config: None,
        };
        let positions = || Value::from(numbers(&at, keys as usize, seed));
        let values = || vec![Value::from(array(&q, 1)), Value::from(array(&k, 2)), Value::from(array(&v, 3)), positions()];
        same_of(vec![Op::ScaledDotProductAttentionDecode(op)], &[&q, &k, &v, &at], &values, &[&out], tolerance(data_type));

        let (k, v) = {
            let of = |id| tensor(id, data_type, &[batch * pages + 1, key_heads, length, depth]);
            (of(2), of(3))
        };
        let table = rows(tensor(5, DataType::Int32, &[batch, pages]));
        let op = PagedScaledDotProductAttentionDecodeOp {
            query: q.clone(), key: k.clone(), value: v.clone(), page_table: table.clone(), is_causal: true,
            attention_mask: None, cur_pos_tensor: Some(at.clone()), attention_sink: None, scale: None,
            sliding_window_size: None, out: out.clone(), memcfg: None, program_config: None,
        };
        let of_pages = || Value::from(numbers(&table, (batch * pages + 1) as usize, seed));
        let values = || {
            let [q, k, v] = [(&q, 1), (&k, 2), (&v, 3)].map(|(of, seed)| Value::from(array(of, seed)));
            vec![q, k, v, of_pages(), positions()]
        };
        let inputs = [&q, &k, &v, &table, &at];
        same_of(vec![Op::PagedScaledDotProductAttentionDecode(op)], &inputs, &values, &[&out], tolerance(data_type));
    }
}

/// Causal attention with shared key heads, on both boards.
#[test]
fn attention_on_both_boards() {
    let of = |id, heads| tensor(id, DataType::BFloat16, &[1, heads, 128, 64]);
    let (q, k, v, out) = (of(1, 8), of(2, 2), of(3, 2), of(4, 8));
    let op = ScaledDotProductAttentionOp {
        query: q.clone(),
        key: k.clone(),
        value: v.clone(),
        is_causal: true,
        attention_mask: None,
        scale: None,
        sliding_window_size: None,
        attention_sink: None,
        out: out.clone(),
        memcfg: None,
    };
    for board in [Board::P100, Board::P150] {
        let values = || [&q, &k, &v].iter().zip(1..).map(|(of, seed)| Value::from(array(of, seed))).collect::<Vec<_>>();
        same_on(board, vec![Op::ScaledDotProductAttention(op.clone())], &[&q, &k, &v], &values, &[&out], BF16);
    }
}
