//! Copies, places and heads on the chip against their reference semantics: caches, rows and windows
//! by index, slices, repetitions, functions with few families.

use crate::chip::common::build::{binary, list, tensor};
use crate::chip::{BLOCKS, array, floats, lengths, numbers, rows, same, same_of, same_on, tolerance};
use proptest::prelude::*;
use tilework_abi::board::Board;
use tilework_engine::{Tolerance, Value};
use tilework_model::common::{DataType, TensorLayout};
use tilework_model::ttnn::ops::attention::{
    ConcatenateHeadsOp, NLPConcatHeadsDecodeOp, NLPCreateQKVHeadsDecodeOp, RotaryEmbeddingLlamaOp, RotaryEmbeddingOp,
    SplitQueryKeyValueAndSplitHeadsOp,
};
use tilework_model::ttnn::ops::creation::ArangeOp;
use tilework_model::ttnn::ops::data_movement::{
    ConcatOp, PermuteOp, RepeatInterleaveOp, RepeatOp, RowsGatherOp, RowsScatterOp, ScatterReduceType,
    SliceDynamicOpParams, SliceOp, SliceOpParams, SliceOpType,
};
use tilework_model::ttnn::ops::eltwise::{
    EltwiseBinaryAtan2Op, EltwiseBinaryAtan2OpType, EltwiseBinaryOpType, EltwiseUnaryOp, EltwiseUnaryOpType,
};
use tilework_model::ttnn::ops::embedding::EmbeddingBackwardOp;
use tilework_model::ttnn::ops::kv_cache::{FillCacheOp, PagedFillCacheOp, PagedUpdateCacheOp, UpdateCacheOp};
use tilework_model::ttnn::ops::layout::{BitcastConvertOp, ToLayoutOp, TypecastOp};
use tilework_model::ttnn::{Op, TensorRef};
use tilework_ops::{Shape, Tensor};

/// A tensor of these integers.
fn whole(of: &TensorRef, values: &[i64]) -> Value {
    let shape = Shape::new(of.desc.shape.iter().map(|&n| n as usize).collect::<Vec<_>>()).unwrap();
    Value::from(Tensor::from_i64(of.desc.dtype().into(), shape, values).unwrap())
}

fn given(of: &TensorRef, seed: u64) -> Value {
    Value::from(array(of, seed))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn caches_are_written(
        batch in 1..4_i32, heads in 1..4_i32, pages in 1..4_i32, size in 1..70_i32, first in 0..3_u32,
        at in any::<[prop::sample::Index; 4]>(), in_rows in any::<bool>(), seed in any::<u64>(),
        data_type in prop_oneof![Just(DataType::BFloat16), Just(DataType::Float32), Just(DataType::BFP_BFloat8)],
    ) {
        let form = |tensor| if in_rows && data_type != DataType::BFP_BFloat8 { rows(tensor) } else { tensor };
        let length = pages * 32;
        let all = batch + first as i32;
        let cache = form(tensor(1, data_type, &[all, heads, length, size]));
        let tolerance = Tolerance::EXACT;
        let input = tensor(2, DataType::BFloat16, &[batch, heads, length - 5, size]);
        let op = FillCacheOp { cache: cache.clone(), input: input.clone(), batch_offset: first };
        let values = || vec![given(&cache, 1), given(&input, 2)];
        same_of(vec![Op::FillCache(op)], &[&cache, &input], &values, &[&cache], tolerance);

        let input = tensor(2, DataType::BFloat16, &[1, heads, batch, size]);
        let index = rows(tensor(3, DataType::UInt32, &[1]));
        let op = UpdateCacheOp {
            cache: cache.clone(), input: input.clone(), update_index: index.clone(), batch_offset: first
        };
        let values = || vec![given(&cache, 1), given(&input, 2), whole(&index, &[at[0].index(length as usize) as i64])];
        same_of(vec![Op::UpdateCache(op)], &[&cache, &input, &index], &values, &[&cache], tolerance);

        // The users' sequences of their own, of which the last one stays, then in pages.
        let cache = form(tensor(1, data_type, &[batch, heads, length, size]));
        let input = tensor(2, DataType::BFloat16, &[1, batch, heads + 1, size]);
        let index = rows(tensor(3, DataType::Int32, &[batch]));
        let positions: Vec<i64> = (0..batch as usize)
            .map(|user| if user + 1 == batch as usize { -1 } else { at[user].index(length as usize) as i64 })
            .collect();
        let op = PagedUpdateCacheOp {
            cache: cache.clone(), input: input.clone(), update_index: index.clone(), share_cache: false, page_table: None
        };
        let values = || vec![given(&cache, 1), given(&input, 2), whole(&index, &positions)];
        same_of(vec![Op::PagedUpdateCache(op)], &[&cache, &input, &index], &values, &[&cache], tolerance);

        let cache = form(tensor(1, data_type, &[batch * pages + 1, heads, 32, size]));
        let table = rows(tensor(4, DataType::Int32, &[batch, pages]));
        // Pages in another order, each of one sequence.
        let order: Vec<i64> = (0..i64::from(batch * pages)).rev().collect();
        let op = PagedUpdateCacheOp {
            cache: cache.clone(), input: input.clone(), update_index: index.clone(), share_cache: false,
            page_table: Some(table.clone()),
        };
        let values = || vec![given(&cache, 1), given(&input, 2), whole(&index, &positions), whole(&table, &order)];
        let inputs = [&cache, &input, &index, &table];
        same_of(vec![Op::PagedUpdateCache(op)], &inputs, &values, &[&cache], tolerance);

        let input = tensor(2, DataType::BFloat16, &[batch, heads, length - 7, size]);
        let which = rows(tensor(5, DataType::Int32, &[batch]));
        let with = seed % 2 == 0;
        let op = PagedFillCacheOp {
            cache: cache.clone(), input: input.clone(), page_table: table.clone(),
            batch_idx_tensor: with.then(|| which.clone()),
        };
        let turned: Vec<i64> = (0..i64::from(batch)).rev().collect();
        let values = || {
            let mut all = vec![given(&cache, 1), given(&input, 2), whole(&table, &order)];
            all.extend(with.then(|| whole(&which, &turned)));
            all
        };
        let inputs: Vec<&TensorRef> = [&cache, &input, &table].into_iter().chain(with.then_some(&which)).collect();
        same_of(vec![Op::PagedFillCache(op)], &inputs, &values, &[&cache], tolerance);
    }

    #[test]
    fn windows_of_rows_by_index(
        batch in 1..3_i32, sizes in prop::array::uniform2(1..7_i32), window in any::<[prop::sample::Index; 2]>(),
        columns in 1..40_i32, places in 1..10_i32, shared in any::<bool>(), way in 0..5_usize, seed in any::<u64>(),
    ) {
        let windows: Vec<i32> = (0..2).map(|k| 1 + window[k].index(sizes[k] as usize) as i32).collect();
        let taps: i32 = windows.iter().product();
        let input = tensor(1, DataType::Float32, &[batch, sizes[0] * sizes[1], columns]);
        let index = rows(tensor(2, DataType::Int32, &[if shared { 1 } else { batch }, 2, places]));
        let out = tensor(4, DataType::Float32, &[batch, places * taps, columns]);
        let op = RowsGatherOp {
            input: input.clone(), index: index.clone(), out: out.clone(), sizes: sizes.to_vec(),
            windows: windows.clone(), column: false, fill_out_of_bounds: false,
        };
        // Some places are before the first row or behind the last one.
        let around = || {
            let numbers: Vec<i64> = numbers(&index, 12, seed).to_i64().iter().map(|n| n - 3).collect();
            whole(&index, &numbers)
        };
        let values = || vec![given(&input, 1), around()];
        same_of(vec![Op::RowsGather(op)], &[&input, &index], &values, &[&out], Tolerance::EXACT);

        let (source, out) = (tensor(3, DataType::Float32, &[batch, places * taps, columns]), tensor(5, DataType::Float32, &[batch, sizes[0] * sizes[1], columns]));
        use ScatterReduceType as T;
        let op = RowsScatterOp {
            input: input.clone(), index: index.clone(), source: source.clone(), out: out.clone(),
            sizes: sizes.to_vec(), windows, column: false, reduce: [T::Invalid, T::Sum, T::Prod, T::Max, T::Min][way],
        };
        let values = || vec![given(&input, 1), around(), given(&source, 3)];
        same_of(vec![Op::RowsScatter(op)], &[&input, &index, &source], &values, &[&out], Tolerance::EXACT);

        let (table, grad) = (tensor(1, DataType::Float32, &[sizes[0], columns]), tensor(3, DataType::Float32, &[1, 1, places, columns]));
        let (which, out) = (rows(tensor(2, DataType::UInt32, &[1, places])), tensor(4, DataType::Float32, &[sizes[0], columns]));
        let op = EmbeddingBackwardOp {
            input: which.clone(), weight: table.clone(), in_grad: grad.clone(), dtype: None, memcfg: None, out: out.clone(),
        };
        let values = || vec![Value::from(numbers(&which, sizes[0] as usize, seed)), given(&table, 2), given(&grad, 3)];
        same_of(vec![Op::EmbeddingBackward(op)], &[&which, &table, &grad], &values, &[&out], Tolerance::EXACT);
    }

    #[test]
    fn copies_and_slices(
        dims in lengths(), times in prop::array::uniform4(1..4_i64), at in any::<prop::sample::Index>(),
        begin in any::<[prop::sample::Index; 4]>(), in_rows in any::<bool>(), seed in any::<u64>(),
        data_type in prop_oneof![Just(DataType::BFloat16), Just(DataType::Float32), Just(DataType::Int32)],
    ) {
        let form = |tensor| if in_rows { rows(tensor) } else { tensor };
        let rank = dims.len();
        let input = form(tensor(1, data_type, &dims));
        let repeat_dims = times[..rank].to_vec();
        let out: Vec<i32> = dims.iter().zip(&repeat_dims).map(|(n, times)| n * *times as i32).collect();
        let out = form(tensor(2, data_type, &out));
        let op = RepeatOp { input: input.clone(), out: out.clone(), repeat_dims, memcfg: None };
        same(Op::Repeat(op), &[&input], &out, Tolerance::EXACT);

        let axis = at.index(rank);
        let longer = |n: i32| dims.iter().enumerate().map(|(k, &d)| if k == axis { d * n } else { d }).collect::<Vec<_>>();
        let out = form(tensor(2, data_type, &longer(3)));
        let op = RepeatInterleaveOp {
            input: input.clone(), out: out.clone(), repeats: 3, dim: axis as i32, memory_config: None
        };
        same(Op::RepeatInterleave(op), &[&input], &out, Tolerance::EXACT);

        // More parts than the kernel takes at once.
        let out = form(tensor(2, data_type, &longer(11)));
        let op = ConcatOp { inputs: list(&[&input; 11]), out: out.clone(), dim: axis as i32, memory_config: None };
        same(Op::Concat(op), &[&input], &out, Tolerance::EXACT);

        let (begins, ends) = (rows(tensor(3, DataType::Int32, &[rank as i32])), rows(tensor(4, DataType::Int32, &[rank as i32])));
        let from: Vec<i64> = dims.iter().zip(&begin).map(|(&n, at)| at.index(n as usize) as i64).collect();
        let to: Vec<i64> = from.iter().zip(&dims).map(|(from, &n)| i64::from(n).min(from + 1 + (seed % 40) as i64)).collect();
        let out: Vec<i32> = from.iter().zip(&to).map(|(from, to)| (to - from) as i32).collect();
        let out = form(tensor(5, data_type, &out));
        let params = SliceOpParams::SliceDynamicOpParams(SliceDynamicOpParams { begins: begins.clone(), ends: ends.clone() });
        let op = SliceOp {
            kind: SliceOpType::SliceDynamicOp, input: input.clone(), out: out.clone(), step: vec![1; rank], params
        };
        let values = || vec![given(&input, 1), whole(&begins, &from), whole(&ends, &to)];
        same_of(vec![Op::Slice(op)], &[&input, &begins, &ends], &values, &[&out], Tolerance::EXACT);
    }

    /// Block formats are moved as bfloat16; bits are other numbers; functions of several steps.
    #[test]
    fn other_types_and_functions(dims in lengths(), data_type in floats()) {
        let turned: Vec<i32> = dims.iter().rev().copied().collect();
        let order: Vec<i64> = (0..dims.len() as i64).rev().collect();
        let (input, out) = (tensor(1, DataType::BFP_BFloat8, &dims), tensor(2, DataType::BFP_BFloat8, &turned));
        let op = PermuteOp { input: input.clone(), permutation: order, memory_config: None, pad_value: 0.0, out: out.clone() };
        same(Op::Permute(op), &[&input], &out, BLOCKS);

        let (input, out) = (tensor(1, DataType::Float32, &dims), tensor(2, DataType::UInt32, &dims));
        let op = BitcastConvertOp { input: input.clone(), dtype: DataType::UInt32, memcfg: None, out: out.clone() };
        same(Op::BitcastConvert(op), &[&input], &out, Tolerance::EXACT);

        let (a, b, out) = (tensor(1, data_type, &dims), tensor(2, data_type, &dims), tensor(3, data_type, &dims));
        let op = EltwiseBinaryAtan2Op {
            kind: EltwiseBinaryAtan2OpType::Atan2, lhs: a.clone(), rhs: b.clone(), memory_config: None, out: out.clone()
        };
        same(Op::EltwiseBinaryAtan2(op), &[&a, &b], &out, tolerance(data_type));
        for kind in [EltwiseUnaryOpType::Mish, EltwiseUnaryOpType::Asinh] {
            let op = EltwiseUnaryOp { kind, input: a.clone(), memory_config: None, out: out.clone(), params: None };
            same(Op::EltwiseUnary(op), &[&a], &out, tolerance(data_type));
        }
        let of = |id| tensor(id, DataType::Int32, &dims);
        let (a, b, out) = (of(1), of(2), of(3));
        let less = |of: &TensorRef, seed, by: i64| {
            let numbers: Vec<i64> = numbers(of, 100, seed).to_i64().iter().map(|n| n % (2 * by) - by).collect();
            whole(of, &numbers)
        };
        let values = || vec![less(&a, 1, 50), less(&b, 2, 3)];
        for kind in [EltwiseBinaryOpType::Divide, EltwiseBinaryOpType::LogicalAnd, EltwiseBinaryOpType::LogicalXor] {
            same_of(vec![binary(kind, &a, &b, &out).op], &[&a, &b], &values, &[&out], Tolerance::EXACT);
        }
        for kind in [EltwiseUnaryOpType::Sign, EltwiseUnaryOpType::LogicalNot, EltwiseUnaryOpType::Relu] {
            let op = EltwiseUnaryOp { kind, input: a.clone(), memory_config: None, out: out.clone(), params: None };
            same_of(vec![Op::EltwiseUnary(op)], &[&a], &|| vec![less(&a, 1, 50)], &[&out], Tolerance::EXACT);
        }
    }

    #[test]
    fn numbers_in_steps(count in 1..9000_i32, start in -5..5_i32, step in 1..9_i32, data_type in floats()) {
        for (start, step) in [(start as f32, step as f32), (start as f32 / 2.0, step as f32 / 8.0)] {
            let out = tensor(1, data_type, &[count]);
            let end = start + step * count as f32;
            let op = ArangeOp {
                device: None, start, end, step, dtype: Some(data_type), layout: None, memcfg: None, out: out.clone()
            };
            same(Op::Arange(op), &[], &out, tolerance(data_type));
        }
    }

    #[test]
    fn seven_dimensions(dims in prop::array::uniform7(1..5_i32)) {
        let input = tensor(1, DataType::Float32, &dims);
        let permutation = vec![0_i64, 1, 2, 5, 6, 3, 4];
        let turned: Vec<i32> = permutation.iter().map(|&k| dims[k as usize]).collect();
        let out = tensor(2, DataType::Float32, &turned);
        let op = PermuteOp { input: input.clone(), permutation, memory_config: None, pad_value: 0.0, out: out.clone() };
        same(Op::Permute(op), &[&input], &out, Tolerance::EXACT);
    }

    #[test]
    fn heads_are_split_turned_and_joined(
        batch in 1..3_i32, heads in 1..4_i32, key_heads in 1..4_i32, positions in 1..40_i32, half in 1..40_i32,
        transpose_key in any::<bool>(), token in any::<bool>(), data_type in floats(),
    ) {
        let size = half * 2;
        let x = tensor(1, data_type, &[batch, heads, positions, size]);
        let out = tensor(2, data_type, &[batch, positions, heads * size]);
        let op = ConcatenateHeadsOp { input: x.clone(), out: out.clone(), memcfg: None };
        same(Op::ConcatenateHeads(op), &[&x], &out, Tolerance::EXACT);
        let (one, out) = (tensor(1, data_type, &[1, batch, 32, size]), tensor(2, data_type, &[1, 1, batch, heads * size]));
        let op = NLPConcatHeadsDecodeOp { input: one.clone(), out: out.clone(), num_heads: heads as u32, memcfg: None };
        same(Op::NLPConcatHeadsDecode(op), &[&one], &out, Tolerance::EXACT);

        let width = (heads + 2 * key_heads) * size;
        let of = |id, heads, positions| tensor(id, data_type, &[batch, heads, positions, size]);
        let (fused, q, v) = (tensor(1, data_type, &[batch, positions, width]), of(2, heads, positions), of(4, key_heads, positions));
        let k = if transpose_key { tensor(3, data_type, &[batch, key_heads, size, positions]) } else { of(3, key_heads, positions) };
        let op = SplitQueryKeyValueAndSplitHeadsOp {
            input: fused.clone(), kv_input: None, q_out: q.clone(), k_out: k.clone(), v_out: v.clone(),
            num_heads: heads as u32, num_kv_heads: Some(key_heads as u32), transpose_key, memcfg: None,
        };
        let values = || vec![given(&fused, 1)];
        same_of(vec![Op::SplitQueryKeyValueAndSplitHeads(op)], &[&fused], &values, &[&q, &k, &v], Tolerance::EXACT);
        let of = |id, heads| tensor(id, data_type, &[1, batch, heads, size]);
        let (fused, q, k, v) = (tensor(1, data_type, &[1, 1, batch, width]), of(2, heads), of(3, key_heads), of(4, key_heads));
        let op = NLPCreateQKVHeadsDecodeOp {
            input: fused.clone(), q_out: q.clone(), k_out: k.clone(), v_out: v.clone(), num_heads: heads as u32,
            num_kv_heads: Some(key_heads as u32), overlap_qk_coregrid: None, batch_offset: None, slice_size: None,
            memcfg: None,
        };
        same_of(vec![Op::NLPCreateQKVHeadsDecode(op)], &[&fused], &values_of(&fused), &[&q, &k, &v], Tolerance::EXACT);

        let cache = |id, size| tensor(id, data_type, &[1, 1, 48, size]);
        let (cos, sin, out) = (cache(2, size), cache(3, size), tensor(5, data_type, &[batch, heads, positions, size]));
        let op = RotaryEmbeddingOp {
            input: x.clone(), cos_cache: cos.clone(), sin_cache: sin.clone(), token_index: token.then_some(3),
            out: out.clone(), memcfg: None, compute_config: None,
        };
        same(Op::RotaryEmbedding(op), &[&x, &cos, &sin], &out, tolerance(data_type));
        let x = tensor(1, data_type, &[batch, heads, positions, 64]);
        let (cos, sin, out) = (cache(2, 64), cache(3, 64), tensor(5, data_type, &[batch, heads, positions, 64]));
        let matrix = tensor(4, data_type, &[1, 1, 32, 32]);
        let op = RotaryEmbeddingLlamaOp {
            input: x.clone(), cos_cache: cos.clone(), sin_cache: sin.clone(), trans_mat: matrix.clone(),
            is_decode_mode: false, out: out.clone(), memcfg: None, compute_config: None,
        };
        same(Op::RotaryEmbeddingLlama(op), &[&x, &cos, &sin, &matrix], &out, tolerance(data_type));
    }
}

fn values_of(of: &TensorRef) -> impl Fn() -> Vec<Value> {
    let of = of.clone();
    move || vec![given(&of, 1)]
}

/// A position written to a cache and the rows of a table, on both boards.
#[test]
fn places_on_both_boards() {
    let cache = tensor(1, DataType::BFloat16, &[1, 8, 128, 64]);
    let input = tensor(2, DataType::BFloat16, &[1, 8, 1, 64]);
    let index = rows(tensor(3, DataType::UInt32, &[1]));
    for board in [Board::P100, Board::P150] {
        let op =
            UpdateCacheOp { cache: cache.clone(), input: input.clone(), update_index: index.clone(), batch_offset: 0 };
        let values = || vec![given(&cache, 1), given(&input, 2), whole(&index, &[77])];
        same_on(board, vec![Op::UpdateCache(op)], &[&cache, &input, &index], &values, &[&cache], Tolerance::EXACT);
    }
}

/// Integers that the other type does not have keep their bits, as host arithmetic has it: words of
/// generators of random numbers are cast so.
#[test]
fn integers_keep_their_bits_with_another_sign() {
    let edges = [0, 1, 100, 0x7FFF_FFFF, 0x8000_0000, 0x8000_0001, 0xDEAD_BEEF, 0xFFFF_FFFF_u32];
    let words: Vec<i64> = (0..3 * 33 * 35).map(|i| i64::from(edges[i % 8] ^ (i / 8) as u32)).collect();
    let signed: Vec<i64> = words.iter().map(|&word| i64::from(word as u32 as i32)).collect();
    for (from, to, values) in
        [(DataType::UInt32, DataType::Int32, &words), (DataType::Int32, DataType::UInt32, &signed)]
    {
        for form in [|tensor| tensor, rows] {
            let (input, out) = (form(tensor(1, from, &[3, 33, 35])), form(tensor(2, to, &[3, 33, 35])));
            let op = TypecastOp { input: input.clone(), dtype: to, memcfg: None, out: out.clone() };
            same_of(vec![Op::Typecast(op)], &[&input], &|| vec![whole(&input, values)], &[&out], Tolerance::EXACT);
        }
    }
}

/// A layout change that states another type, as the compiler has it behind pools of float32.
#[test]
fn a_layout_change_converts_elements() {
    for (from, to) in [(DataType::BFloat16, DataType::Float32), (DataType::Float32, DataType::BFloat16)] {
        for shape in [&[1, 1, 33, 35][..], &[2, 64, 32], &[5, 7]] {
            let (input, out) = (rows(tensor(1, from, shape)), tensor(2, to, shape));
            let op = |input: &TensorRef, out: &TensorRef, layout| {
                let (input, out) = (input.clone(), out.clone());
                Op::ToLayout(ToLayoutOp { input, layout, dtype: Some(to), memcfg: None, out })
            };
            let values = || vec![given(&input, 1)];
            same_of(vec![op(&input, &out, TensorLayout::Tile)], &[&input], &values, &[&out], Tolerance::EXACT);
            let (input, out) = (tensor(1, from, shape), rows(tensor(2, to, shape)));
            let values = || vec![given(&input, 1)];
            same_of(vec![op(&input, &out, TensorLayout::RowMajor)], &[&input], &values, &[&out], Tolerance::EXACT);
        }
    }
}
