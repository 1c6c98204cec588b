//! Split norms, fused norms, quantisation, gradients and the optimiser on the chip against their
//! reference semantics: operations that are composed of programs of others.

use crate::chip::common::build::{list, tensor};
use crate::chip::{array, floats, lengths, numbers, same, same_of, tolerance};
use proptest::prelude::*;
use tilework_engine::{Tolerance, Value};
use tilework_model::common::{DataType, TensorLayout};
use tilework_model::ttnn::ops::creation::RandOp;
use tilework_model::ttnn::ops::eltwise::{
    DropoutOp, ExperimentalEltwiseBinaryBackwardOp, ExperimentalEltwiseBinaryBackwardOpType,
};
use tilework_model::ttnn::ops::matmul::SparseMatmulOp;
use tilework_model::ttnn::ops::normalization::{
    DitRMSNormUnaryFusedOp, LayerNormPostAllGatherOp, LayerNormPreAllGatherOp, RMSNormPreAllGatherOp,
};
use tilework_model::ttnn::ops::quantization::{
    EltwiseQuantizationOp, EltwiseQuantizationOpParams, EltwiseQuantizationOpType, PerAxisScale, PerAxisZeroPoint,
    PerTensorScale, PerTensorZeroPoint, QuantizationScale, QuantizationZeroPoint, QuantizeDequantizeOpParams,
    RequantizeOpParams,
};
use tilework_model::ttnn::ops::training::AdamWOp;
use tilework_model::ttnn::{Op, TensorRef};
use tilework_ops::Tensor;

/// These dimensions with another last one.
fn with_last(dims: &[i32], last: i32) -> Vec<i32> {
    dims[..dims.len() - 1].iter().copied().chain([last]).collect()
}

fn rand(out: &TensorRef, low: f32, high: f32, seed: u32) -> Op {
    let size = out.desc.shape.iter().map(|&n| i64::from(n)).collect();
    Op::Rand(RandOp {
        device: None,
        size,
        low,
        high,
        seed,
        dtype: out.desc.dtype(),
        layout: TensorLayout::Tile,
        memcfg: None,
        out: out.clone(),
    })
}

/// More pages of random numbers than cores of the board.
#[test]
fn many_random_numbers() {
    let (input, out) = (tensor(1, DataType::Float32, &[1]), tensor(2, DataType::Float32, &[500, 600]));
    same(rand(&out, 0.0, 1.0, 7), &[&input], &out, Tolerance::EXACT);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    #[test]
    fn statistics_of_parts_of_rows(dims in lengths(), data_type in floats(), with_residual in any::<bool>()) {
        let (input, residual) = (tensor(1, data_type, &dims), tensor(2, data_type, &dims));
        let given = || with_residual.then(|| residual.clone());
        let inputs = if with_residual { vec![&input, &residual] } else { vec![&input] };
        let out = tensor(3, data_type, &with_last(&dims, 64));
        let op = LayerNormPreAllGatherOp {
            input: input.clone(), residual_input: given(), recip: None, dtype: data_type, memory_config: None,
            compute_config: None, program_config: None, out: out.clone(),
        };
        same(Op::LayerNormPreAllGather(op), &inputs, &out, tolerance(data_type));
        let out = tensor(3, data_type, &with_last(&dims, 32));
        let op = RMSNormPreAllGatherOp {
            input: input.clone(), dtype: data_type, residual: given(), memory_config: None, compute_config: None,
            program_config: None, use_2d_core_grid: false, out: out.clone(),
        };
        same(Op::RMSNormPreAllGather(op), &inputs, &out, tolerance(data_type));
    }

    #[test]
    fn norms_by_gathered_statistics(
        dims in lengths(), data_type in floats(), devices in 1..4_i32, given in any::<[bool; 2]>()
    ) {
        let (input, stats) = (tensor(1, data_type, &dims), tensor(2, DataType::Float32, &with_last(&dims, 64 * devices)));
        let width = dims[dims.len() - 1];
        let [weight, bias] = [3, 4].map(|id| tensor(id, data_type, &[width]));
        let out = tensor(5, data_type, &dims);
        let mut inputs = vec![&input, &stats];
        inputs.extend(given[0].then_some(&weight));
        inputs.extend(given[1].then_some(&bias));
        let op = LayerNormPostAllGatherOp {
            input: input.clone(), stats: stats.clone(), weight: given[0].then(|| weight.clone()),
            bias: given[1].then(|| bias.clone()), epsilon: 1e-3, dtype: None, memory_config: None, compute_config: None,
            program_config: None, out: out.clone(),
        };
        // Squares of all devices' parts are more than the square of the mean.
        let values = || {
            let mut values: Vec<Value> = inputs.iter().zip(1..).map(|(of, seed)| Value::from(array(of, seed))).collect();
            let near = array(&stats, 2);
            let statistic = |(i, x): (usize, &f32)| match i % 64 {
                0 => width as f32 * (2.0 + x.abs()),
                32 => width as f32 * x / 2.0,
                _ => 0.0,
            };
            let all: Vec<f32> = near.to_f32().iter().enumerate().map(statistic).collect();
            values[1] = Value::from(Tensor::from_f32(near.dtype(), near.shape().clone(), &all).unwrap());
            values
        };
        same_of(vec![Op::LayerNormPostAllGather(op)], &inputs, &values, &[&out], tolerance(data_type));
    }

    #[test]
    fn fused_norms(dims in lengths(), data_type in floats(), given in any::<[bool; 3]>(), which in 0..3_usize) {
        prop_assume!(dims[dims.len() - 1] > 2);
        let width = dims[dims.len() - 1];
        let input = tensor(1, data_type, &dims);
        let [weight, bias] = [2, 3].map(|id| tensor(id, data_type, &[width]));
        let residual = tensor(4, data_type, &dims);
        let out = tensor(5, data_type, &dims);
        let mut inputs = vec![&input];
        inputs.extend(given.iter().zip([&weight, &bias, &residual]).filter(|(given, _)| **given).map(|(_, of)| of));
        let op = DitRMSNormUnaryFusedOp {
            input: input.clone(), weight: given[0].then(|| weight.clone()), bias: given[1].then(|| bias.clone()),
            residual_input: given[2].then(|| residual.clone()), epsilon: 1e-3,
            activation: [None, Some("silu"), Some("relu")][which].map(str::to_owned), memory_config: None,
            compute_config: None, out: out.clone(),
        };
        same(Op::DitRMSNormUnaryFused(op), &inputs, &out, tolerance(data_type));
    }

    #[test]
    fn gradients_of_gelu(dims in lengths(), data_type in floats(), tanh in any::<bool>()) {
        let [grad, input, out] = [1, 2, 3].map(|id| tensor(id, data_type, &dims));
        let op = ExperimentalEltwiseBinaryBackwardOp {
            kind: ExperimentalEltwiseBinaryBackwardOpType::GeluBW, grad: grad.clone(), input: input.clone(),
            approximate: if tanh { "tanh" } else { "none" }.to_owned(), output_dtype: None, memory_config: None,
            out: out.clone(),
        };
        same(Op::ExperimentalEltwiseBinaryBackward(op), &[&grad, &input], &out, tolerance(data_type));
    }

    /// The nearest integers, also half way between two, and those of scales and zero points of each
    /// index of an axis.
    #[test]
    fn integers_of_numbers_and_back(
        dims in lengths(), per_axis in any::<[bool; 2]>(), axis in 0..2_usize, bytes in any::<bool>(), zero in -20..20_i32
    ) {
        let axis = dims.len() - 1 - axis;
        let integers = if bytes { DataType::UInt8 } else { DataType::Int32 };
        let [numbers_in, numbers_out] = [1, 2].map(|id| tensor(id, DataType::Float32, &dims));
        let whole = tensor(3, integers, &dims);
        let again = tensor(4, integers, &dims);
        let (scales, zeros) = (tensor(5, DataType::Float32, &[dims[axis]]), tensor(6, DataType::Int32, &[dims[axis]]));
        let scale = |by: f32| match per_axis[0] {
            true => QuantizationScale::PerAxisScale(PerAxisScale { scale: scales.clone() }),
            false => QuantizationScale::PerTensorScale(PerTensorScale { scale: by }),
        };
        let zero_point = |by: i32| match per_axis[1] {
            true => QuantizationZeroPoint::PerAxisZeroPoint(PerAxisZeroPoint { zero_point: zeros.clone() }),
            false => QuantizationZeroPoint::PerTensorZeroPoint(PerTensorZeroPoint { zero_point: by }),
        };
        let two = || EltwiseQuantizationOpParams::QuantizeDequantizeOpParams(
            QuantizeDequantizeOpParams { scale: scale(0.03125), zero_point: zero_point(zero) });
        let four = EltwiseQuantizationOpParams::RequantizeOpParams(RequantizeOpParams {
            in_scale: scale(0.03125), in_zero_point: zero_point(zero),
            out_scale: QuantizationScale::PerTensorScale(PerTensorScale { scale: 0.0625 }),
            out_zero_point: QuantizationZeroPoint::PerTensorZeroPoint(PerTensorZeroPoint { zero_point: 3 }),
        });
        let op = |kind, input: &TensorRef, out: &TensorRef, params| Op::EltwiseQuantization(EltwiseQuantizationOp {
            kind, input: input.clone(), axis: per_axis.contains(&true).then_some(axis as i32), output_dtype: None,
            memory_config: None, out: out.clone(), params,
        });
        let ops = vec![
            op(EltwiseQuantizationOpType::Quantize, &numbers_in, &whole, two()),
            op(EltwiseQuantizationOpType::Dequantize, &whole, &numbers_out, two()),
            op(EltwiseQuantizationOpType::Requantize, &whole, &again, four),
        ];
        let mut inputs = vec![&numbers_in];
        inputs.extend(per_axis[0].then_some(&scales));
        inputs.extend(per_axis[1].then_some(&zeros));
        let values = || {
            // Multiples of half a step.
            let near = array(&numbers_in, 1);
            let all: Vec<f32> = near.to_f32().iter().map(|x| (x * 64.0).round() / 64.0).collect();
            let mut values = vec![Value::from(Tensor::from_f32(near.dtype(), near.shape().clone(), &all).unwrap())];
            if per_axis[0] {
                let steps = numbers(&zeros, 4, 5);
                let all: Vec<f32> = steps.to_f32().iter().map(|n| 0.125 / (1 << *n as i32) as f32).collect();
                values.push(Value::from(Tensor::from_f32(near.dtype(), steps.shape().clone(), &all).unwrap()));
            }
            if per_axis[1] {
                values.push(Value::from(numbers(&zeros, 30, 7)));
            }
            values
        };
        same_of(ops, &inputs, &values, &[&whole, &numbers_out, &again], Tolerance::EXACT);
    }

    /// The same numbers as host arithmetic's, whichever cores make them.
    #[test]
    fn random_numbers(dims in lengths(), data_type in floats(), seed in any::<u32>(), low in -3..3_i32) {
        let (input, out) = (tensor(1, data_type, &dims), tensor(2, data_type, &dims));
        let drop = DropoutOp {
            input: input.clone(), prob: 0.3, scale: 1.0 / 0.7, seed, use_per_device_seed: true, output_dtype: None,
            memory_config: None, out: out.clone(),
        };
        same(Op::Dropout(drop), &[&input], &out, Tolerance::EXACT);
        same(rand(&out, low as f32, low as f32 + 2.7, seed), &[&input], &out, Tolerance::EXACT);
    }

    /// Blocks that flags choose, of weights or of activations; or all of them.
    #[test]
    fn sparse_products(
        outer in prop::array::uniform2(1..3_i32), experts in 1..4_i32, sides in prop::array::uniform3(1..50_i32),
        of_weights in any::<bool>(), data_type in floats(), whole in any::<bool>(), all in any::<bool>(), seed in any::<u64>(),
    ) {
        let ([m, k, n], [a0, a1]) = (sides, [outer[0], if of_weights { outer[1] } else { experts }]);
        let (a, b) = (tensor(1, data_type, &[a0, a1, m, k]), tensor(2, data_type, &[1, experts, k, n]));
        let flags = match of_weights {
            true => tensor(3, if whole { DataType::UInt32 } else { DataType::BFloat16 }, &[1, 1, a0 * a1, experts]),
            false => tensor(3, if whole { DataType::UInt32 } else { DataType::BFloat16 }, &[1, 1, a0, a1]),
        };
        let out = match of_weights {
            true => tensor(4, data_type, &[a0, a1, 1, experts, m, n]),
            false => tensor(4, data_type, &[a0, a1, m, n]),
        };
        let op = SparseMatmulOp {
            a: a.clone(), b: b.clone(), sparsity: flags.clone(), out: out.clone(), is_input_a_sparse: !of_weights,
            is_input_b_sparse: of_weights, nnz: all.then_some(0), program_config: None, memory_config: None,
            dtype: data_type, compute_config: None,
        };
        let values = || {
            let chosen = numbers(&tensor(3, DataType::UInt32, &flags.desc.shape), 2, seed);
            let all: Vec<f32> = chosen.to_f32();
            let of_type = match whole {
                true => chosen,
                false => Tensor::from_f32(flags.desc.dtype().into(), chosen.shape().clone(), &all).unwrap(),
            };
            vec![Value::from(array(&a, 1)), Value::from(array(&b, 2)), Value::from(of_type)]
        };
        same_of(vec![Op::SparseMatmul(op)], &[&a, &b, &flags], &values, &[&out], tolerance(data_type));
    }

    #[test]
    fn steps_of_an_optimiser(dims in lengths(), data_type in floats(), keeps in any::<bool>()) {
        let [param, exp_avg, exp_avg_sq, most, grad] = [1, 2, 3, 4, 5].map(|id| tensor(id, data_type, &dims));
        let op = AdamWOp {
            param: param.clone(), grad: grad.clone(), exp_avg: exp_avg.clone(), exp_avg_sq: exp_avg_sq.clone(),
            max_exp_avg_sq: keeps.then(|| most.clone()), lr: 0.01, beta1: 0.9, beta2: 0.99, beta1_pow: 0.81,
            beta2_pow: 0.98, epsilon: 1e-3, weight_decay: 0.1, stochastic_rounding: false,
        };
        let mut states = list(&[&param, &exp_avg, &exp_avg_sq]);
        states.extend(keeps.then(|| most.clone()));
        let states: Vec<&TensorRef> = states.iter().collect();
        let inputs: Vec<&TensorRef> = states.iter().copied().chain([&grad]).collect();
        let values = || {
            let positive = |of: &TensorRef, seed| {
                let near = array(of, seed);
                let all: Vec<f32> = near.to_f32().iter().map(|x| x.abs()).collect();
                Tensor::from_f32(near.dtype(), near.shape().clone(), &all).unwrap()
            };
            let of = |(i, of): (usize, &&TensorRef)| match i {
                2 | 3 => Value::from(positive(of, i as u64 + 1)),
                _ => Value::from(array(of, i as u64 + 1)),
            };
            inputs.iter().enumerate().map(of).collect::<Vec<_>>()
        };
        same_of(vec![Op::AdamW(op)], &inputs, &values, &[&param], tolerance(data_type));
    }
}
