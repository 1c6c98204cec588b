//! Orders, places, running folds and other functions of lines on the chip against their reference
//! semantics.

use crate::chip::common::build::{list, tensor};
use crate::chip::{BF16, F32, array, lengths, numbers, rows, same_of, same_on};
use proptest::prelude::*;
use tilework_abi::board::Board;
use tilework_engine::{Tolerance, Value};
use tilework_model::common::DataType;
use tilework_model::ttnn::ops::data_movement::{ScatterOp, ScatterReduceType};
use tilework_model::ttnn::ops::reduction::{
    CumProdOp, CumSumOp, CumulativeOp, CumulativeReduceType, ReductionArgMaxOp, SortOp, TopKOp,
};
use tilework_model::ttnn::{Op, TensorRef};
use tilework_ops::{Shape, Tensor};

/// Few numbers, many of which are equal; some are infinite, zeros of either sign or NaNs.
fn coarse(of: &TensorRef, seed: u64) -> Tensor {
    let fine = array(of, seed);
    if !fine.dtype().is_float() {
        return fine;
    }
    let of = |x: &f32| match (x * 6.0) as i32 {
        9 => f32::NAN,
        10 => f32::INFINITY,
        -10 => f32::NEG_INFINITY,
        0 => 0.0_f32.copysign(*x),
        n => n as f32,
    };
    let values: Vec<f32> = fine.to_f32().iter().map(of).collect();
    Tensor::from_f32(fine.dtype(), fine.shape().clone(), &values).unwrap()
}

fn elements() -> impl Strategy<Value = DataType> {
    prop_oneof![
        Just(DataType::BFloat16),
        Just(DataType::Float32),
        Just(DataType::Int32),
        Just(DataType::UInt16),
        Just(DataType::UInt8)
    ]
}

fn with(dims: &[i32], axis: usize, length: i32) -> Vec<i32> {
    dims.iter().enumerate().map(|(k, &n)| if k == axis { length } else { n }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn elements_in_order(
        dims in lengths(), at in any::<prop::sample::Index>(), k in any::<prop::sample::Index>(),
        descending in any::<bool>(), in_rows in any::<bool>(), data_type in elements(), seed in any::<u64>(),
    ) {
        let form = |tensor| if in_rows { rows(tensor) } else { tensor };
        let axis = at.index(dims.len());
        let input = form(tensor(1, data_type, &dims));
        let values = || vec![Value::from(coarse(&input, seed))];
        let outs = [form(tensor(2, data_type, &dims)), form(tensor(3, DataType::UInt16, &dims))];
        let op = SortOp {
            input: input.clone(), dim: axis as i8, descending, stable: true, memcfg: None,
            outputs: list(&[&outs[0], &outs[1]]),
        };
        same_of(vec![Op::Sort(op)], &[&input], &values, &[&outs[0], &outs[1]], Tolerance::EXACT);

        let k = 1 + k.index(dims[axis] as usize) as i32;
        let chosen = with(&dims, axis, k);
        let outs = [form(tensor(2, data_type, &chosen)), form(tensor(3, DataType::Int32, &chosen))];
        let op = TopKOp {
            input_tensor: input.clone(), k, dim: axis as i32 - dims.len() as i32, largest: descending, sorted: true,
            memcfg: None, outputs: list(&[&outs[0], &outs[1]]),
        };
        same_of(vec![Op::TopK(op)], &[&input], &values, &[&outs[0], &outs[1]], Tolerance::EXACT);
    }

    #[test]
    fn numbers_of_the_largest(
        dims in lengths(), at in any::<prop::sample::Index>(), all in any::<bool>(), keep_dim in any::<bool>(),
        in_rows in any::<[bool; 2]>(), data_type in elements(), seed in any::<u64>(),
    ) {
        let form = |tensor, in_rows| if in_rows { rows(tensor) } else { tensor };
        let axis = at.index(dims.len());
        let input = form(tensor(1, data_type, &dims), in_rows[0]);
        let kept = (0..dims.len()).filter(|&k| keep_dim || (!all && k != axis));
        let kept: Vec<i32> = kept.map(|k| if all || k == axis { 1 } else { dims[k] }).collect();
        let out = form(tensor(2, DataType::UInt32, &kept), in_rows[1]);
        let dim = (!all).then_some(axis as i32);
        let op = ReductionArgMaxOp { input: input.clone(), out: out.clone(), dim, keep_dim, memcfg: None };
        let values = || vec![Value::from(coarse(&input, seed))];
        same_of(vec![Op::ReductionArgMax(op)], &[&input], &values, &[&out], Tolerance::EXACT);
    }

    #[test]
    fn running_folds(
        dims in lengths(), at in any::<prop::sample::Index>(), in_rows in any::<bool>(), reverse in any::<bool>(),
        data_type in elements(), seed in any::<u64>(),
    ) {
        let form = |tensor| if in_rows { rows(tensor) } else { tensor };
        let axis = at.index(dims.len()) as i32;
        let (input, out) = (form(tensor(1, data_type, &dims)), form(tensor(2, data_type, &dims)));
        let (i, o) = (&input, &out);
        let values = || vec![Value::from(array(i, seed))];
        let floats = match data_type {
            DataType::BFloat16 => BF16,
            DataType::Float32 => F32,
            _ => Tolerance::EXACT,
        };
        let sum = CumSumOp { input: i.clone(), out: o.clone(), dim: axis, dtype: None, memcfg: None };
        same_of(vec![Op::CumSum(sum)], &[i], &values, &[o], floats);
        let product = CumProdOp { input: i.clone(), out: o.clone(), dim: axis, dtype: None, memcfg: None };
        same_of(vec![Op::CumProd(product)], &[i], &values, &[o], floats);
        for reduction in [CumulativeReduceType::Max, CumulativeReduceType::Min] {
            let op = CumulativeOp {
                input: i.clone(), out: o.clone(), dim: axis, reduction, reverse, dtype: None, memcfg: None
            };
            let values = || vec![Value::from(coarse(i, seed))];
            same_of(vec![Op::Cumulative(op)], &[i], &values, &[o], Tolerance::EXACT);
        }
    }

    #[test]
    fn elements_written_to_places(
        dims in lengths(), at in any::<prop::sample::Index>(), places in 1..50_i32, more in 0..3_i32,
        in_rows in any::<bool>(), data_type in elements(), way in 0..5_usize, seed in any::<u64>(),
    ) {
        let form = |tensor| if in_rows { rows(tensor) } else { tensor };
        let axis = at.index(dims.len());
        let (input, out) = (form(tensor(1, data_type, &dims)), form(tensor(4, data_type, &dims)));
        let index = form(tensor(2, DataType::UInt32, &with(&dims, axis, places)));
        let source = form(tensor(3, data_type, &with(&dims, axis, places + more)));
        use ScatterReduceType as T;
        let scatter_reduce_type = [T::Invalid, T::Sum, T::Prod, T::Max, T::Min][way];
        let op = ScatterOp {
            input: input.clone(), out: out.clone(), index: index.clone(), source: source.clone(), dim: axis as i32,
            memory_config: None, scatter_reduce_type,
        };
        let values = || vec![
            Value::from(array(&input, 1)), Value::from(numbers(&index, dims[axis] as usize, seed)),
            Value::from(array(&source, 3)),
        ];
        same_of(vec![Op::Scatter(op)], &[&input, &index, &source], &values, &[&out], Tolerance::EXACT);
    }
}

/// A line that does not fit into L1 with its order, and the choice of a token on both boards.
#[test]
fn tokens_of_a_large_vocabulary() {
    let input = tensor(1, DataType::BFloat16, &[1, 2, 50_000]);
    let most = tensor(2, DataType::UInt32, &[1, 2]);
    let outs = [tensor(3, DataType::BFloat16, &[1, 2, 40]), tensor(4, DataType::UInt32, &[1, 2, 40])];
    let largest =
        ReductionArgMaxOp { input: input.clone(), out: most.clone(), dim: Some(-1), keep_dim: false, memcfg: None };
    let first = TopKOp {
        input_tensor: input.clone(),
        k: 40,
        dim: -1,
        largest: true,
        sorted: true,
        memcfg: None,
        outputs: list(&[&outs[0], &outs[1]]),
    };
    let shape = Shape::new([1, 2, 50_000]).unwrap();
    let numbers: Vec<f32> = (0..100_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 1e4).collect();
    let values = || vec![Value::from(Tensor::from_f32(tilework_ops::DType::BF16, shape.clone(), &numbers).unwrap())];
    for board in [Board::P100, Board::P150] {
        let ops = vec![Op::ReductionArgMax(largest.clone()), Op::TopK(first.clone())];
        same_on(board, ops, &[&input], &values, &[&most, &outs[0], &outs[1]], Tolerance::EXACT);
    }
}
