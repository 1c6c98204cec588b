//! Kinds of operations that no other file has a property for, and what small types and numbers that
//! are none do, against their reference semantics.

use crate::chip::common::build::{binary, full, tensor};
use crate::chip::{BF16, F32, array, floats, lengths, numbers, rows, same, same_of, tolerance};
use proptest::prelude::*;
use tilework_engine::{Tolerance, Value};
use tilework_model::common::{BufferType, DataType, TensorLayout};
use tilework_model::ttnn::ops::attention::{ChunkedScaledDotProductAttentionOp, NLPConcatHeadsOp};
use tilework_model::ttnn::ops::conv::{
    PrepareConv2dBiasOp, PrepareConv2dWeightsOp, PrepareConv3dWeightsOp, PrepareConvTranspose2dBiasOp,
    PrepareConvTranspose2dWeightsOp,
};
use tilework_model::ttnn::ops::creation::{AssignOp, EmptyOp, NamedFullOp, NamedFullOpType};
use tilework_model::ttnn::ops::data_movement::TransposeOp;
use tilework_model::ttnn::ops::eltwise::{
    ClampScalarOpParams, EltwiseBinaryCompositeOp, EltwiseBinaryCompositeOpType, EltwiseBinaryCompositeScalarOp,
    EltwiseBinaryCompositeScalarOpType, EltwiseBinaryOpType, EltwiseTernaryWhereOp, EltwiseUnaryCompositeOp,
    EltwiseUnaryCompositeOpParams, EltwiseUnaryCompositeOpType,
};
use tilework_model::ttnn::ops::layout::{ToLayoutOp, ToMemoryConfigOp, TypecastOp};
use tilework_model::ttnn::ops::matmul::LinearOp;
use tilework_model::ttnn::ops::reduction::{CumulativeOp, CumulativeReduceType, ReductionProdOp};
use tilework_model::ttnn::types::{FloatingPointType, MemoryConfig, NumberType, TensorMemoryLayout};
use tilework_model::ttnn::{Op, TensorRef};
use tilework_ops::{Shape, Tensor};

fn shape_of(of: &TensorRef) -> Shape {
    Shape::new(of.desc.shape.iter().map(|&n| n as usize).collect::<Vec<_>>()).unwrap()
}

fn integers(of: &TensorRef, values: &[i64]) -> Value {
    Value::from(Tensor::from_i64(of.desc.dtype().into(), shape_of(of), values).unwrap())
}

fn floats_of(of: &TensorRef, values: &[f32]) -> Value {
    Value::from(Tensor::from_f32(of.desc.dtype().into(), shape_of(of), values).unwrap())
}

/// Numbers from a list, over and over.
fn of_list(of: &TensorRef, list: &[f32], step: usize) -> Value {
    let count = shape_of(of).elements();
    floats_of(of, &(0..count).map(|i| list[i * step % list.len()]).collect::<Vec<_>>())
}

fn composite(kind: EltwiseBinaryCompositeOpType, [a, b]: [&TensorRef; 2], out: &TensorRef) -> Op {
    Op::EltwiseBinaryComposite(EltwiseBinaryCompositeOp {
        kind,
        lhs: a.clone(),
        rhs: b.clone(),
        memory_config: None,
        activations: Vec::new(),
        input_tensor_a_activations: Vec::new(),
        input_tensor_b_activations: Vec::new(),
        out: out.clone(),
    })
}

fn typecast(input: &TensorRef, out: &TensorRef) -> Op {
    Op::Typecast(TypecastOp { input: input.clone(), dtype: out.desc.dtype(), memcfg: None, out: out.clone() })
}

fn in_l1(mut tensor: TensorRef) -> TensorRef {
    let config = MemoryConfig {
        tensor_memory_layout: TensorMemoryLayout::Interleaved,
        buffer_type: BufferType::L1,
        shard_spec: None,
        nd_shard_spec: None,
    };
    std::sync::Arc::make_mut(&mut tensor.desc).layout.memory_desc.memory_config = Some(config);
    tensor
}

/// The fields that preparations of weights and biases share.
macro_rules! prepared {
    ($op:ident $sides:expr, { $($own:ident: $value:expr),* $(,)? }) => {{
        let [inputs, outputs, groups, height, width] = $sides;
        $op {
            $($own: $value,)*
            input_memory_config: None,
            input_tensor_layout: TensorLayout::RowMajor,
            in_channels: inputs as u32,
            out_channels: outputs as u32,
            batch_size: 1,
            input_height: 8,
            input_width: 8,
            kernel_size: vec![height, width],
            stride: vec![1, 1],
            padding: vec![0, 0],
            dilation: vec![1, 1],
            groups: groups as u32,
            device: None,
            input_dtype: DataType::BFloat16,
            output_dtype: None,
            conv2d_config: None,
            compute_config: None,
            conv2d_slice_config: None,
        }
    }};
}

/// A number that is none, infinities, zeros of both signs and others.
const SPECIAL: [f32; 9] = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 0.0, -0.0, 1.5, -2.0, 1e30, -1e-30];

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn functions_of_two_tensors(dims in lengths(), data_type in floats(), spread in any::<u8>()) {
        let other: Vec<i32> =
            dims.iter().enumerate().map(|(k, &n)| if spread >> k & 1 == 1 { 1 } else { n }).collect();
        let (a, b, out) = (tensor(1, data_type, &dims), tensor(2, data_type, &other), tensor(3, data_type, &dims));
        use EltwiseBinaryCompositeOpType as T;
        for kind in [T::Maximum, T::Minimum] {
            same(composite(kind, [&a, &b], &out), &[&a, &b], &out, Tolerance::EXACT);
        }
        let scalar = EltwiseBinaryCompositeScalarOp {
            kind: EltwiseBinaryCompositeScalarOpType::PowScalar, lhs: a.clone(),
            rhs: NumberType::FP(FloatingPointType { value: 3.0 }), memory_config: None, out: out.clone(),
        };
        same(Op::EltwiseBinaryCompositeScalar(scalar), &[&a], &out, tolerance(data_type));
        let op = EltwiseTernaryWhereOp {
            first: b.clone(), second: a.clone(), third: b.clone(), memory_config: None, out: out.clone(),
        };
        same(Op::EltwiseTernaryWhere(op), &[&b, &a], &out, Tolerance::EXACT);
    }

    #[test]
    fn functions_of_one_tensor(dims in lengths(), data_type in floats()) {
        let (x, out) = (tensor(1, data_type, &dims), tensor(2, data_type, &dims));
        use EltwiseUnaryCompositeOpType as T;
        let number = |value| NumberType::FP(FloatingPointType { value });
        let bounds = ClampScalarOpParams { min: number(-0.75), max: number(1.25) };
        let bounds = EltwiseUnaryCompositeOpParams::ClampScalarOpParams(bounds);
        for (kind, params) in [(T::Cbrt, None), (T::ClampScalar, Some(bounds)), (T::Log1p, None)] {
            let op = EltwiseUnaryCompositeOp { kind, input: x.clone(), memory_config: None, out: out.clone(), params };
            let values = || {
                let near = array(&x, 3);
                let above: Vec<f32> = near.to_f32().iter().map(|x| if kind == T::Log1p { x.abs() } else { *x }).collect();
                vec![floats_of(&x, &above)]
            };
            same_of(vec![Op::EltwiseUnaryComposite(op)], &[&x], &values, &[&out], tolerance(data_type));
        }
    }

    /// A shift by all bits or more leaves nothing but the sign where that is copied.
    #[test]
    fn bits_of_integers(dims in lengths(), has_sign in any::<bool>(), seed in any::<u64>()) {
        let data_type = if has_sign { DataType::Int32 } else { DataType::UInt32 };
        let [a, b, out] = [1, 2, 3].map(|id| tensor(id, data_type, &dims));
        let values = || {
            let many = numbers(&a, 1 << 31, seed).to_i64();
            let signed = |n: i64| if has_sign { n - (1 << 30) } else { n };
            let by: Vec<i64> = numbers(&b, 70, seed ^ 7).to_i64().iter().map(|n| if has_sign { n - 4 } else { *n }).collect();
            vec![integers(&a, &many.into_iter().map(signed).collect::<Vec<_>>()), integers(&b, &by)]
        };
        use EltwiseBinaryCompositeOpType as T;
        let mut kinds = vec![T::BitwiseAnd, T::BitwiseOr, T::BitwiseXor, T::LogicalLeftShift];
        if has_sign {
            kinds.push(T::BitwiseRightShift);
        }
        for kind in kinds {
            same_of(vec![composite(kind, [&a, &b], &out)], &[&a, &b], &values, &[&out], Tolerance::EXACT);
        }
        let right = binary(EltwiseBinaryOpType::LogicalRightShift, &a, &b, &out).op;
        same_of(vec![right], &[&a, &b], &values, &[&out], Tolerance::EXACT);
    }

    /// Of eight bits the low ones are kept.
    #[test]
    fn casts_between_types(dims in lengths(), low in -600..600_i64) {
        let whole = |of: &TensorRef| {
            let below = if of.desc.dtype() == DataType::UInt8 { 256 } else { 900 };
            let low = if of.desc.dtype() == DataType::Int32 { low } else { 0 };
            integers(of, &numbers(of, below, 5).to_i64().iter().map(|n| n + low).collect::<Vec<_>>())
        };
        use DataType as T;
        for (from, to) in [
            (T::Int32, T::UInt8), (T::UInt32, T::UInt8), (T::UInt8, T::Int32), (T::UInt8, T::Float32),
            (T::UInt8, T::BFloat16), (T::Int32, T::Float32), (T::UInt16, T::UInt8), (T::UInt32, T::UInt16),
        ] {
            let (x, out) = (tensor(1, from, &dims), tensor(2, to, &dims));
            same_of(vec![typecast(&x, &out)], &[&x], &|| vec![whole(&x)], &[&out], Tolerance::EXACT);
        }
        for to in [T::UInt8, T::Int32] {
            let (x, out) = (tensor(1, T::Float32, &dims), tensor(2, to, &dims));
            let list = [-3.7, 300.2, 255.9, -256.5, 0.4, 1e6, -1e6];
            same_of(vec![typecast(&x, &out)], &[&x], &|| vec![of_list(&x, &list, 3)], &[&out], Tolerance::EXACT);
        }
    }

    /// No number is equal to one that is none, nor more or less than it.
    #[test]
    fn comparisons_with_what_is_no_number(dims in lengths(), data_type in floats()) {
        let (a, b, out) = (tensor(1, data_type, &dims), tensor(2, data_type, &dims), tensor(3, data_type, &dims));
        let values = || vec![of_list(&a, &SPECIAL, 1), of_list(&b, &SPECIAL, 4)];
        use EltwiseBinaryOpType as T;
        for kind in [T::Equal, T::NotEqual, T::LessThan, T::LessEqual, T::GreaterThan, T::GreaterEqual] {
            same_of(vec![binary(kind, &a, &b, &out).op], &[&a, &b], &values, &[&out], Tolerance::EXACT);
        }
        let itself = binary(T::NotEqual, &a, &a, &out).op;
        same_of(vec![itself], &[&a], &|| vec![of_list(&a, &SPECIAL, 1)], &[&out], Tolerance::EXACT);
    }

    #[test]
    fn equal_numbers(dims in lengths(), data_type in floats(), in_rows in any::<bool>()) {
        let form = |tensor| if in_rows { rows(tensor) } else { tensor };
        let out = form(tensor(1, data_type, &dims));
        let sides: Vec<i64> = dims.iter().map(|&n| n.into()).collect();
        same(full(-2.5, &out).op, &[], &out, Tolerance::EXACT);
        for kind in [NamedFullOpType::Zeros, NamedFullOpType::Ones] {
            let (shape, dtype) = (sides.clone(), Some(data_type));
            let op = NamedFullOp { kind, device: None, shape, dtype, layout: None, memcfg: None, out: out.clone() };
            same(Op::NamedFull(op), &[], &out, Tolerance::EXACT);
        }
        // What it holds is not defined on a device; both engines have zeros.
        let op = EmptyOp {
            device: None, shape: sides, dtype: data_type, layout: TensorLayout::Tile, memcfg: None, out: out.clone(),
        };
        same(Op::Empty(op), &[], &out, Tolerance::EXACT);
    }

    #[test]
    fn the_same_elements_elsewhere(dims in lengths(), data_type in floats(), which in any::<prop::sample::Index>()) {
        let (x, in_rows) = (tensor(1, data_type, &dims), rows(tensor(2, data_type, &dims)));
        let layout = |from: &TensorRef, to: &TensorRef, layout| {
            Op::ToLayout(ToLayoutOp { input: from.clone(), layout, dtype: None, memcfg: None, out: to.clone() })
        };
        same(layout(&x, &in_rows, TensorLayout::RowMajor), &[&x], &in_rows, Tolerance::EXACT);
        let tiles = tensor(3, data_type, &dims);
        same(layout(&in_rows, &tiles, TensorLayout::Tile), &[&in_rows], &tiles, Tolerance::EXACT);
        let there = in_l1(tensor(4, data_type, &dims));
        let op = ToMemoryConfigOp { in0: x.clone(), memcfg: None, out: there.clone() };
        same(Op::ToMemoryConfig(op), &[&x], &there, Tolerance::EXACT);
        let other = tensor(5, data_type, &dims);
        let op = AssignOp { input: x.clone(), output: other.clone(), output_memory_config: None, output_dtype: None };
        same(Op::Assign(op), &[&x], &other, Tolerance::EXACT);
        let (first, last) = (which.index(dims.len()), dims.len() - 1);
        let mut turned = dims.clone();
        turned.swap(first, last);
        let out = tensor(6, data_type, &turned);
        let op = TransposeOp { input: x.clone(), out: out.clone(), dim0: first as i32, dim1: -1 };
        same(Op::Transpose(op), &[&x], &out, Tolerance::EXACT);
    }

    #[test]
    fn products_with_a_bias(
        batch in 1..3_i32, sides in prop::array::uniform3(1..90_i32), turned in any::<bool>(), which in 0..3_usize,
        data_type in floats(),
    ) {
        let [height, inner, width] = sides;
        let a = tensor(1, data_type, &[batch, height, inner]);
        let b = tensor(2, data_type, &if turned { [width, inner] } else { [inner, width] });
        let (bias, out) = (tensor(3, data_type, &[width]), tensor(4, data_type, &[batch, height, width]));
        let op = LinearOp {
            a: a.clone(), b: b.clone(), bias: Some(bias.clone()), out: out.clone(), transpose_a: false,
            transpose_b: turned, matmul_program_config: None, compute_config: None,
            activation: [None, Some("relu"), Some("silu")][which].map(str::to_owned),
        };
        let wide = if data_type == DataType::BFloat16 { BF16 } else { F32 };
        same(Op::Linear(op), &[&a, &b, &bias], &out, wide);
    }

    #[test]
    fn products_of_elements(dims in lengths(), which in any::<prop::sample::Index>(), keep_dim in any::<bool>()) {
        let along = which.index(dims.len());
        let mut kept = dims.clone();
        if keep_dim || dims.len() == 1 { kept[along] = 1 } else { _ = kept.remove(along) }
        let (x, out) = (tensor(1, DataType::Float32, &dims), tensor(2, DataType::Float32, &kept));
        let op = ReductionProdOp {
            input: x.clone(), out: out.clone(), dim_arg: Some(along as i64), keep_dim, memcfg: None,
        };
        // Near one, so that many of them have a product.
        let values = || vec![floats_of(&x, &array(&x, 1).to_f32().iter().map(|x| 1.0 + x / 40.0).collect::<Vec<_>>())];
        same_of(vec![Op::ReductionProd(op)], &[&x], &values, &[&out], F32);
    }

    #[test]
    fn logarithms_of_running_sums(
        dims in lengths(), which in any::<prop::sample::Index>(), reverse in any::<bool>(), data_type in floats(),
        wide in any::<bool>(),
    ) {
        let (x, out) = (tensor(1, data_type, &dims), tensor(2, data_type, &dims));
        let (dim, reduction) = (which.index(dims.len()) as i32, CumulativeReduceType::LogSumExp);
        let op = CumulativeOp {
            input: x.clone(), out: out.clone(), dim, reduction, reverse, dtype: None, memcfg: None,
        };
        let values = || match wide {
            // Whose exponentials have no numbers.
            true => vec![of_list(&x, &[-300.0, 5.0, 250.0, f32::NEG_INFINITY, 249.5, 0.25], 5)],
            false => vec![Value::from(array(&x, 1))],
        };
        same_of(vec![Op::Cumulative(op)], &[&x], &values, &[&out], tolerance(data_type));
    }

    #[test]
    fn heads_side_by_side(sides in prop::array::uniform4(1..5_i32), more in 0..40_i32, data_type in floats()) {
        let [batch, heads, positions, size] = sides;
        let (positions, size) = (positions + more, size * 8);
        let x = tensor(1, data_type, &[batch, heads, positions, size]);
        let out = tensor(2, data_type, &[batch, 1, positions, heads * size]);
        let op = NLPConcatHeadsOp { input: x.clone(), out: out.clone(), memcfg: None };
        same(Op::NLPConcatHeads(op), &[&x], &out, Tolerance::EXACT);
    }

    #[test]
    fn parts_of_prompts_with_pages(
        heads in 1..4_i32, shared in 1..3_i32, queries in 1..40_i32, pages in 1..4_i32, start in 0..60_i32,
        data_type in floats(),
    ) {
        const PAGE: i32 = 32;
        let pages = pages.max((start + queries + PAGE - 1) / PAGE);
        let start = start.min(pages * PAGE - queries);
        let query = tensor(1, data_type, &[1, heads * shared, queries, 32]);
        let [key, value] = [2, 3].map(|id| tensor(id, data_type, &[pages, heads, PAGE, 32]));
        let (table, first) = (rows(tensor(4, DataType::Int32, &[1, pages])), rows(tensor(5, DataType::Int32, &[1])));
        let out = tensor(6, data_type, &[1, heads * shared, queries, 32]);
        let op = ChunkedScaledDotProductAttentionOp {
            query: query.clone(), key: key.clone(), value: value.clone(), page_table: table.clone(),
            chunk_start_idx: first.clone(), scale: None, out: out.clone(), memcfg: None, program_config: None,
        };
        let inputs = [&query, &key, &value, &table, &first];
        let values = || {
            let backwards: Vec<i64> = (0..i64::from(pages)).rev().collect();
            let mut all: Vec<Value> = (1..).zip(&inputs[..3]).map(|(seed, of)| Value::from(array(of, seed))).collect();
            all.extend([integers(&table, &backwards), integers(&first, &[start.into()])]);
            all
        };
        let op = Op::ChunkedScaledDotProductAttention(op);
        same_of(vec![op], &inputs, &values, &[&out], tolerance(data_type));
    }

    #[test]
    fn prepared_weights(
        each in 1..20_i32, outputs in 1..20_i32, groups in 1..3_i32, window in prop::array::uniform2(1..4_i32),
    ) {
        let [height, width] = window;
        let (outputs, inputs) = (outputs * groups, each * groups);
        let sides = [inputs, outputs, groups, height, width];
        let of = |id, dims: &[i32]| tensor(id, DataType::BFloat16, dims);
        let tiles = |n: i32| (n + 31) / 32 * 32;
        let (w, b) = (rows(of(1, &[outputs, each, height, width])), rows(of(2, &[1, 1, 1, outputs])));
        let matrix = [1, 1, tiles(height * width * each), tiles(outputs)];
        let (made, made_bias) = (of(3, &matrix), of(4, &[1, 1, 32, tiles(outputs)]));
        let op = prepared!(PrepareConv2dWeightsOp sides, {
            weight_tensor: w.clone(), out: made.clone(), weights_format: "OIHW".into(), has_bias: true,
        });
        same(Op::PrepareConv2dWeights(op), &[&w], &made, Tolerance::EXACT);
        let op = prepared!(PrepareConv2dBiasOp sides, { bias_tensor: b.clone(), out: made_bias.clone() });
        same(Op::PrepareConv2dBias(op), &[&b], &made_bias, Tolerance::EXACT);
        let w = rows(of(1, &[inputs, outputs / groups, height, width]));
        for mirror_kernel in [true, false] {
            let op = prepared!(PrepareConvTranspose2dWeightsOp sides, {
                weight_tensor: w.clone(), out: made.clone(), weights_format: "IOHW".into(), has_bias: true,
                output_padding: vec![0, 0], mirror_kernel: mirror_kernel,
            });
            same(Op::PrepareConvTranspose2dWeights(op), &[&w], &made, Tolerance::EXACT);
        }
        let op = prepared!(PrepareConvTranspose2dBiasOp sides, { bias_tensor: b.clone(), out: made_bias.clone() });
        same(Op::PrepareConvTranspose2dBias(op), &[&b], &made_bias, Tolerance::EXACT);
        let (depth, channels) = (2, tiles(each));
        let w = rows(of(1, &[outputs, each, depth, height, width]));
        let made = of(3, &[depth * height * width * channels, outputs]);
        let op = PrepareConv3dWeightsOp {
            weight_tensor: w.clone(), out: made.clone(), groups: 1, c_in_block: 32, alignment: 32, device: None,
        };
        same(Op::PrepareConv3dWeights(op), &[&w], &made, Tolerance::EXACT);
    }
}
