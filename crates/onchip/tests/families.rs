//! Families of operations on the chip against their reference semantics, over shapes that do not
//! fill their tiles, types and layouts. `--strict`: nothing is left to the host.

use crate::chip::common::build::{binary, list, on_host, tensor};
use crate::chip::{BF16, BLOCKS, F32, array, floats, lengths, rows, same, same_all, same_of, tolerance};
use proptest::prelude::*;
use tilework_engine::{Tolerance, Value};
use tilework_model::common::DataType;
use tilework_model::ttnn::ops::conv::Conv2dOp;
use tilework_model::ttnn::ops::data_movement::{
    ConcatOp, GatherOp, PadOp, PermuteOp, ReshapeOp, SliceOp, SliceOpParams,
};
use tilework_model::ttnn::ops::data_movement::{SliceOpType, SliceStaticOpParams};
use tilework_model::ttnn::ops::eltwise::{EltwiseBinaryOpType, EltwiseUnaryOp, EltwiseUnaryOpType};
use tilework_model::ttnn::ops::embedding::EmbeddingOp;
use tilework_model::ttnn::ops::matmul::MatmulOp;
use tilework_model::ttnn::ops::normalization::{LayerNormOp, SoftmaxOp};
use tilework_model::ttnn::ops::reduction::{ReductionOp, ReductionOpType};
use tilework_model::ttnn::{Op, TensorRef};
use tilework_ops::{Shape, Tensor};

fn unary(kind: EltwiseUnaryOpType, input: &TensorRef, out: &TensorRef) -> Op {
    Op::EltwiseUnary(EltwiseUnaryOp { kind, input: input.clone(), memory_config: None, out: out.clone(), params: None })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn element_wise_functions_with_broadcasts(
        dims in lengths(), spread in any::<u8>(), data_type in floats(), which in 0..5_usize
    ) {
        let other: Vec<i32> =
            dims.iter().enumerate().map(|(k, &n)| if spread >> k & 1 == 1 { 1 } else { n }).collect();
        let (a, b) = (tensor(1, data_type, &dims), tensor(2, data_type, &other));
        let out = tensor(3, data_type, &dims);
        use EltwiseBinaryOpType as T;
        let kind = [T::Add, T::Subtract, T::Multiply, T::GreaterThan, T::LogicalOr][which];
        let wide = if matches!(kind, T::GreaterThan | T::LogicalOr) { Tolerance::EXACT } else { tolerance(data_type) };
        same(binary(kind, &a, &b, &out).op, &[&a, &b], &out, wide);
    }

    #[test]
    fn reductions_over_any_dimensions(dims in lengths(), which in 1..16_u8, keep_dim in any::<bool>(), kind in 0..4_u8) {
        let chosen: Vec<i32> = (0..dims.len() as i32).filter(|k| which >> k & 1 == 1).collect();
        prop_assume!(!chosen.is_empty());
        let is = |k: usize| chosen.contains(&(k as i32));
        let kept = (0..dims.len()).filter(|&k| keep_dim || !is(k)).map(|k| if is(k) { 1 } else { dims[k] });
        let (input, out) = (tensor(1, DataType::Float32, &dims), tensor(2, DataType::Float32, &kept.collect::<Vec<_>>()));
        let kind = [ReductionOpType::Sum, ReductionOpType::Mean, ReductionOpType::Max, ReductionOpType::Min][kind as usize];
        let op = ReductionOp {
            kind, input: input.clone(), out: out.clone(), dim_arg: chosen, keep_dim, compute_config: None
        };
        same(Op::Reduction(op), &[&input], &out, F32);
    }

    #[test]
    fn elements_keep_their_values_where_they_move(
        dims in lengths(), turn in 0..24_usize, in_rows in any::<[bool; 2]>(), data_type in prop_oneof![
            Just(DataType::BFloat16), Just(DataType::Float32), Just(DataType::Int32), Just(DataType::UInt16), Just(DataType::UInt8)
        ]
    ) {
        let mut order: Vec<i64> = (0..dims.len() as i64).collect();
        for k in 1..order.len() {
            order.swap(k, turn % (k + 1));
        }
        let turned: Vec<i32> = order.iter().map(|&k| dims[k as usize]).collect();
        let form = |tensor, is_rows| if is_rows { rows(tensor) } else { tensor };
        let input = form(tensor(1, data_type, &dims), in_rows[0]);
        let out = form(tensor(2, data_type, &turned), in_rows[1]);
        let op = PermuteOp { input: input.clone(), permutation: order, memory_config: None, pad_value: 0.0, out: out.clone() };
        same(Op::Permute(op), &[&input], &out, Tolerance::EXACT);
        let flat = [dims.iter().product::<i32>()];
        let out = form(tensor(2, data_type, &flat), in_rows[1]);
        let op = ReshapeOp { input: input.clone(), out: out.clone(), shape: flat.to_vec(), memory_config: None };
        same(Op::Reshape(op), &[&input], &out, Tolerance::EXACT);
    }

    #[test]
    fn products_of_any_sides(
        batch in 1..4_i32, sides in prop::array::uniform3(1..100_i32), turned in any::<[bool; 2]>()
    ) {
        let [rows, inner, columns] = sides;
        let matrix = |id, rows, columns, turned| {
            let sides = if turned { [columns, rows] } else { [rows, columns] };
            tensor(id, DataType::BFloat16, &[batch, sides[0], sides[1]])
        };
        let (a, b) = (matrix(1, rows, inner, turned[0]), matrix(2, inner, columns, turned[1]));
        let out = matrix(3, rows, columns, false);
        let op = MatmulOp {
            a: a.clone(), b: b.clone(), out: out.clone(), transpose_a: turned[0], transpose_b: turned[1],
            matmul_program_config: None, activation: None, compute_config: None, fused_swiglu: false, fp32_exact: Default::default(),
        };
        same(Op::Matmul(op), &[&a, &b], &out, BF16);
    }

    /// What a function makes of the padding of tiles is not multiplied: `exp` makes ones of zeros.
    #[test]
    fn products_do_not_go_through_padding(
        batch in 1..3_i32, sides in prop::array::uniform3(1..70_i32), data_type in prop_oneof![
            Just(DataType::BFloat16), Just(DataType::Float32), Just(DataType::BFP_BFloat8)
        ]
    ) {
        let [rows, inner, columns] = sides;
        let of = |id, rows, columns| tensor(id, data_type, &[batch, rows, columns]);
        let (a, b) = (of(1, rows, inner), of(2, inner, columns));
        let (exp_a, exp_b, out) = (of(3, rows, inner), of(4, inner, columns), of(5, rows, columns));
        let product = MatmulOp {
            a: exp_a.clone(), b: exp_b.clone(), out: out.clone(), transpose_a: false, transpose_b: false,
            matmul_program_config: None, activation: None, compute_config: None, fused_swiglu: false, fp32_exact: Default::default(),
        };
        let ops = vec![unary(EltwiseUnaryOpType::Exp, &a, &exp_a), unary(EltwiseUnaryOpType::Exp, &b, &exp_b), Op::Matmul(product)];
        // The matrix unit takes ten bits of the mantissa of float32.
        let tolerance = if data_type == DataType::BFP_BFloat8 { BLOCKS } else { BF16 };
        same_all(ops, &[&a, &b], &[&out], tolerance);
    }

    /// Small numbers keep their bits beside a padding of ones, with which they would share an
    /// exponent.
    #[test]
    fn blocks_do_not_go_into_padding(dims in lengths()) {
        let (x, out) = (tensor(1, DataType::Float32, &dims), tensor(2, DataType::BFP_BFloat8, &dims));
        // The exponential function makes numbers near 1e-7 of them, and ones of the padding.
        let values = || {
            let near = array(&x, 1);
            let numbers: Vec<f32> = near.to_f32().iter().map(|x| x - 16.0).collect();
            vec![Value::from(Tensor::from_f32(near.dtype(), near.shape().clone(), &numbers).unwrap())]
        };
        same_of(vec![unary(EltwiseUnaryOpType::Exp, &x, &out)], &[&x], &values, &[&out], BLOCKS);
    }

    #[test]
    fn softmax_and_layer_norm_of_any_rows(dims in lengths(), data_type in floats()) {
        let (input, out) = (tensor(1, data_type, &dims), tensor(2, data_type, &dims));
        let op = SoftmaxOp {
            input: input.clone(), out: out.clone(), dimension: -1, numeric_stable: true, compute_config: None
        };
        same(Op::Softmax(op), &[&input], &out, tolerance(data_type));
        // A row of one element has no variance.
        prop_assume!(dims[dims.len() - 1] > 4);
        let weight = tensor(3, data_type, &dims[dims.len() - 1..]);
        let op = LayerNormOp {
            input: input.clone(), weight: Some(weight.clone()), bias: None, epsilon: 1e-5, memory_config: None, out: out.clone()
        };
        same(Op::LayerNorm(op), &[&input, &weight], &out, tolerance(data_type));
    }

    #[test]
    fn convolutions_of_any_windows(
        channels in 1..40_i32, outputs in 1..40_i32, sides in prop::array::uniform2(5..12_i32),
        kernel in prop::array::uniform2(1..4_i32), stride in prop::array::uniform2(1..3_i32), around in 0..2_i32
    ) {
        let [height, width] = sides;
        let to = |k: usize| (sides[k] + 2 * around - kernel[k]) / stride[k] + 1;
        let data_type = DataType::BFloat16;
        let input = tensor(1, data_type, &[1, 1, height * width, channels]);
        let weight = on_host(rows(tensor(2, data_type, &[outputs, channels, kernel[0], kernel[1]])));
        let out = tensor(3, data_type, &[1, 1, to(0) * to(1), outputs]);
        let op = Conv2dOp {
            input: input.clone(), weight: weight.clone(), bias: None, out: out.clone(), device: None,
            in_channels: channels as u32, out_channels: outputs as u32, batch_size: 1, input_height: height as u32,
            input_width: width as u32, kernel_size: kernel.to_vec(), stride: stride.to_vec(),
            padding: vec![around, around], dilation: vec![1, 1], groups: 1, output_dtype: None, conv2d_config: None,
            compute_config: None, conv2d_slice_config: None,
        };
        same(Op::Conv2d(op), &[&input, &weight], &out, BF16);
    }

    #[test]
    fn parts_of_tensors(dims in lengths(), more in 1..40_i32, begin in 0..30_i64, in_rows in any::<bool>()) {
        let form = |tensor| if in_rows { rows(tensor) } else { tensor };
        let (rank, columns) = (dims.len(), dims[dims.len() - 1]);
        let with = |n: i32| dims[..rank - 1].iter().copied().chain([n]).collect::<Vec<i32>>();
        let (a, b) = (form(tensor(1, DataType::Float32, &dims)), form(tensor(2, DataType::Float32, &with(more))));
        let out = form(tensor(3, DataType::Float32, &with(columns + more)));
        let op = ConcatOp { inputs: list(&[&a, &b]), out: out.clone(), dim: -1, memory_config: None };
        same(Op::Concat(op), &[&a, &b], &out, Tolerance::EXACT);

        let begin = begin.min(i64::from(columns) - 1);
        let out = form(tensor(3, DataType::Float32, &with(columns - begin as i32)));
        let mut begins = vec![0; rank];
        begins[rank - 1] = begin;
        let ends = dims.iter().map(|&n| i64::from(n)).collect();
        let params = SliceOpParams::SliceStaticOpParams(SliceStaticOpParams { begins, ends });
        let op = SliceOp {
            kind: SliceOpType::SliceStaticOp, input: a.clone(), out: out.clone(), step: vec![1; rank], params
        };
        same(Op::Slice(op), &[&a], &out, Tolerance::EXACT);

        let mut padding = vec![0; rank * 2];
        (padding[rank * 2 - 2], padding[rank * 2 - 1]) = (more as u32, 3);
        let out = form(tensor(3, DataType::Float32, &with(columns + more + 3)));
        let op = PadOp { input: a.clone(), out: out.clone(), padding, value: 1.5, use_multicore: true, memcfg: None };
        same(Op::Pad(op), &[&a], &out, Tolerance::EXACT);
    }
    #[test]
    fn rows_and_elements_that_an_index_chooses(
        table in prop::array::uniform2(1..70_usize), numbers in prop::array::uniform2(1..40_i32),
        in_rows in any::<bool>(), seed in any::<u64>(),
    ) {
        let form = |tensor| if in_rows { rows(tensor) } else { tensor };
        let [height, width] = table;
        let random = |n: usize, bound: usize| {
            let mut rng = seed;
            (0..n).map(move |_| {
                rng = rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ((rng >> 33) % bound as u64) as i64
            }).collect::<Vec<_>>()
        };
        let whole = |of: &TensorRef, bound: usize| {
            let shape = Shape::new(of.desc.shape.iter().map(|&n| n as usize).collect::<Vec<_>>()).unwrap();
            let all = random(shape.elements(), bound);
            Value::from(Tensor::from_i64(of.desc.dtype().into(), shape, &all).unwrap())
        };
        let weight = form(tensor(1, DataType::BFloat16, &[height as i32, width as i32]));
        let which = rows(tensor(2, DataType::UInt32, &numbers));
        let out = form(tensor(3, DataType::BFloat16, &[numbers[0], numbers[1], width as i32]));
        let op = EmbeddingOp { input: which.clone(), weight: weight.clone(), out: out.clone() };
        let values = || vec![whole(&which, height), Value::from(array(&weight, 1))];
        same_of(vec![Op::Embedding(op)], &[&which, &weight], &values, &[&out], Tolerance::EXACT);

        // Along the first and the last dimension.
        for (dim, bound) in [(0, height), (-1, width)] {
            let sides = if dim == 0 { [numbers[0], width as i32] } else { [height as i32, numbers[1]] };
            let input = form(tensor(1, DataType::Float32, &[height as i32, width as i32]));
            let index = form(tensor(2, DataType::UInt32, &sides));
            let out = form(tensor(3, DataType::Float32, &sides));
            let op = GatherOp { input: input.clone(), dim, index: index.clone(), out: out.clone(), memory_config: None };
            let values = || vec![Value::from(array(&input, 1)), whole(&index, bound)];
            same_of(vec![Op::Gather(op)], &[&input, &index], &values, &[&out], Tolerance::EXACT);
        }
    }
}

/// As many tiles as workers, fewer, and more: cores that have no part of the last round read, and
/// do not write.
#[test]
fn element_wise_functions_on_many_cores() {
    for (tiles, data_type) in [
        (1, DataType::BFloat16),
        (8, DataType::Float32),
        (117, DataType::BFloat16),
        (118, DataType::Float32),
        (119, DataType::BFP_BFloat8),
        (250, DataType::BFloat16),
    ] {
        let dims = [31, 32 * tiles - 5];
        let (a, b, column) = (tensor(1, data_type, &dims), tensor(2, data_type, &dims), tensor(3, data_type, &[31, 1]));
        let [sum, product, root] = [4, 5, 6].map(|id| tensor(id, data_type, &dims));
        let ops = vec![
            binary(EltwiseBinaryOpType::Add, &a, &b, &sum).op,
            binary(EltwiseBinaryOpType::Multiply, &sum, &column, &product).op,
            unary(EltwiseUnaryOpType::Abs, &product, &root),
        ];
        let tolerance = if data_type == DataType::BFP_BFloat8 { BLOCKS } else { tolerance(data_type) };
        same_all(ops, &[&a, &b, &column], &[&sum, &root], tolerance);
    }
}
