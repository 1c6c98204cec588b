//! For any shapes and attributes in a file, the result is a tensor or an error: nothing panics.

use proptest::prelude::*;
use tilework_ops::*;

use crate::common::{Nd, dims};

/// Numbers that a bad file may hold: small ones, zeros, negatives, the ends of the range. None
/// leads to a tensor that is merely large, which would be allocated.
fn number() -> impl Strategy<Value = i64> {
    prop_oneof![
        8 => -5i64..6,
        1 => Just(i64::MIN),
        1 => Just(i64::MAX),
        1 => Just(1 << 33),
        1 => Just(1 << 40),
    ]
}

fn numbers() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(number(), 0..6)
}

fn dtype() -> impl Strategy<Value = DType> {
    prop::sample::select(&ELEMENT_TYPES[..])
}

/// A tensor of any shape and type, indices in and out of bounds among its values.
fn tensor() -> impl Strategy<Value = Tensor> {
    (dims(0..=5), dtype(), 0u64..100).prop_map(|(dims, dtype, seed)| Nd::random(&dims, seed).tensor(dtype))
}

fn window() -> impl Strategy<Value = Window> {
    let n = || prop_oneof![6 => 0usize..4, 1 => Just(usize::MAX), 1 => Just(1usize << 33)];
    prop::collection::vec(n(), 10).prop_map(|n| Window {
        kernel: [n[0], n[1]],
        stride: [n[2], n[3]],
        padding: Padding { top: n[4], bottom: n[5], left: n[6], right: n[7] },
        dilation: [n[8], n[9]],
    })
}

fn size(v: i64) -> usize {
    usize::try_from(v).unwrap_or(usize::MAX)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn moving_and_indexing(t in prop::collection::vec(tensor(), 3), a in numbers(), b in numbers(), c in numbers(), n in number(), m in number(), out in dtype()) {
        let [x, y, z] = &t[..] else { unreachable!() };
        let sizes: Vec<usize> = a.iter().map(|&v| size(v)).collect();
        let _ = (reshape(x, &a), permute(x, &a), transpose(x, n, m), slice(x, &a, &b, &c), slice_dynamic(x, y, z, &c));
        let _ = (pad(x, &sizes, 1.0), concat(&[x, y, z], n), repeat(x, &sizes), repeat_interleave(x, size(m), n));
        let _ = (gather(x, y, n), embedding(x, y), embedding_backward(x, y, z, out));
        let _ = (scatter(x, y, z, n, ScatterReduce::Replace), scatter(x, y, z, n, ScatterReduce::Sum));
        let _ = (sort(x, n, true, out), topk(x, size(m), n, true, out), argmax(x, Some(n), true, out), argmax(x, None, false, out));
        let _ = (bitcast_convert(x, out), layout::tilize(x), layout::untilize(out, x.shape().clone(), &y.to_le_bytes()));
        let _ = arange(n as f64, m as f64, f64::from(i8::from(n < m)) * 1e-3, out);
        let _ = Shape::new(sizes);
    }

    #[test]
    fn arithmetic(t in prop::collection::vec(tensor(), 4), a in numbers(), n in number(), m in number(), out in dtype()) {
        let [x, y, z, w] = &t[..] else { unreachable!() };
        for kind in [Binary::Add, Binary::Divide, Binary::Remainder, Binary::Pow, Binary::BitwiseAnd, Binary::LogicalLeftShift, Binary::Maximum] {
            let _ = binary(kind, x, y, out);
        }
        for kind in [Unary::Abs, Unary::BitwiseNot, Unary::Exp, Unary::Clamp { min: f64::NAN, max: -f64::INFINITY }] {
            let _ = unary(kind, x, out);
        }
        for kind in [Reduction::Sum, Reduction::Mean, Reduction::Max, Reduction::Prod] {
            let _ = reduce(kind, x, &a, n % 2 == 0, out);
        }
        let _ = (where_(x, y, z, out), clamp_tensor(x, y, z, out), cumsum(x, n, out), cumprod(x, m, out));
        let by = Quantization { scale: PerAxis::Axis(y), zero_point: PerAxis::Axis(z) };
        let _ = (quantize(x, Some(n), by, out), dequantize(x, None, by, out), requantize(x, Some(n), by, by, out));
        let options = MatmulOptions { transpose_a: n % 2 == 0, transpose_b: m % 2 == 0, bias: Some(z), ..MatmulOptions::default() };
        let gated = MatmulOptions { swiglu: true, ..MatmulOptions::default() };
        let _ = (matmul(x, y, options, out), matmul(x, y, MatmulOptions::default(), out), matmul(x, y, gated, out));
        let affine = Affine { weight: Some(y), bias: Some(z) };
        let fused = RmsFused { residual: Some(w), activation: Some(Unary::Silu) };
        let _ = (softmax(x, n, out), layer_norm(x, affine, 0.0, out), rms_norm(x, Affine::default(), 0.0, fused, out));
        let _ = (group_norm(x, size(n), Affine::default(), 0.0, out), batch_norm(x, y, z, Affine::default(), 0.0, out));
        let _ = (layer_norm_pre_all_gather(x, Some(y), out), rms_norm_pre_all_gather(x, None, out));
        let _ = layer_norm_post_all_gather(x, y, affine, 0.0, out);
        let _ = batch_norm_training(x, [y, z], affine, 0.0, 0.1, out);
        let _ = (gelu_backward(x, y, false, out), typecast(x, out), dropout(x, 0.5, 2.0, 1, out));
    }

    #[test]
    fn windows(t in prop::collection::vec(tensor(), 3), n in prop::collection::vec(number(), 6), window in window(), out in dtype()) {
        let [x, y, z] = &t[..] else { unreachable!() };
        let n: Vec<usize> = n.into_iter().map(|v| size(v.saturating_abs())).collect();
        let conv = Conv2d { batch: n[0], input: [n[1], n[2]], in_channels: n[3], out_channels: n[4], window, groups: n[5], activation: None };
        let _ = (conv2d(x, y, Some(z), &conv, out), conv_transpose2d(x, y, None, &conv, [n[0], n[1]], out), conv1d(x, y, None, &conv, out));
        // Sizes that fit the operand, so that the window itself is reached.
        let c = x.shape().last();
        let fitting = Conv2d { batch: 1, input: [x.elements().checked_div(c).unwrap_or(0), 1], in_channels: c, out_channels: 2, groups: 1, ..conv };
        let kernel = window.kernel;
        let weight = Shape::new([2, c, kernel[0], kernel[1]]).ok().filter(|s| s.elements() < 1000).map(|s| zeros(s, DType::F32));
        if let Some(weight) = weight {
            let small = conv.window.padding.top.max(conv.window.padding.bottom).max(conv.window.padding.left).max(conv.window.padding.right) < 1000;
            if small {
                let _ = conv2d(x, &weight, None, &fitting, out);
            }
        }
        let volume = Conv3d { batch: n[0], input: [n[1], n[2], n[3]], in_channels: n[4], out_channels: n[5], kernel: [n[0], n[1], n[2]], stride: [n[3], n[4], n[5]], padding: [n[0], n[1], n[2]], dilation: [n[4], n[5], 1], groups: n[3], replicate: true, block: n[1] };
        let _ = (conv3d(x, y, None, &volume, out), prepare_weights(x, n[0], false), prepare_weights(x, n[1], true));
        let pool = Pool2d { batch: n[0], input: [n[1], n[2]], channels: n[3], window, ceil: n[4].is_multiple_of(2) };
        let _ = (max_pool2d_with_indices(x, &pool, out, DType::U16), avg_pool2d(x, &pool, true, out));
        let small = n[0] < 10 && n[1] < 10;
        if small {
            let _ = (upsample(x, [n[0], n[1]], UpsampleMode::Bilinear, out), global_avg_pool2d(x, out));
        }
    }

    #[test]
    fn attention_and_caches(t in prop::collection::vec(tensor(), 5), n in number(), m in number(), causal in any::<bool>(), out in dtype()) {
        let [q, k, v, x, y] = &t[..] else { unreachable!() };
        let by = Attention { causal, mask: Some(x), scale: None, window: Some(size(n)), sink: Some(y) };
        let plain = Attention { causal, ..Attention::default() };
        let _ = (attention(q, k, v, by, out), attention(q, q, q, plain, out), attention(q, q, q, Attention { sink: Some(y), ..plain }, out));
        let _ = (attention_decode(q, k, v, Some(x), by, out), attention_decode(q, q, q, None, plain, out));
        let _ = (paged_attention_decode(q, k, v, x, Some(y), by, out), chunked_attention(q, k, v, x, size(m), None, out));
        let _ = (chunked_attention(q, k, k, x, size(n), None, out), rotary_embedding(q, k, v, Some(size(n)), out), rotary_embedding(q, q, q, None, out));
        let _ = (rotary_embedding_llama(q, k, v, x, causal, out), rotary_embedding_llama(q, q, q, x, causal, out));
        let _ = (fill_cache(q, k, size(n)), update_cache(q, k, x, size(m)), paged_update_cache(q, k, x, Some(y)), paged_update_cache(q, k, x, None));
        let _ = (paged_fill_cache(q, k, x, Some(y)), paged_fill_cache(q, q, x, None), fill_cache(q, q, 0));
        let _ = (concatenate_heads(q), nlp_concat_heads(q), nlp_concat_heads_decode(q, size(n)), nlp_create_qkv_heads_decode(q, size(n), size(m)));
        let _ = (split_qkv_heads(q, Some(k), size(n), Some(size(m)), causal), split_qkv_heads(q, None, size(n), None, causal));
    }
}
