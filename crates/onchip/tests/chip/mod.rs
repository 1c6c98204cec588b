//! One operation on the chip and on the native engine, for tests of families.
#![allow(dead_code, reason = "each test file uses a part of it")]

#[path = "../../../engine/tests/common/mod.rs"]
pub(crate) mod common;

use common::build::{model, operation, program};
use proptest::prelude::*;
use std::sync::Arc;
use tilework_abi::board::Board;
use tilework_engine::{Comparison, Engine, Options, Session, Tolerance, Value};
use tilework_model::common::{DataType, Dim2d};
use tilework_model::ttnn::{Op, TensorRef};
use tilework_onchip::OnChip;
use tilework_ops::{Shape, Tensor};
use tilework_runtime::{Device, DeviceConfig};
use tilework_sim::{Chip, ChipConfig};

pub(crate) const BF16: Tolerance = Tolerance::BFLOAT16;
/// What approximations of the vector unit leave of float32.
pub(crate) const F32: Tolerance =
    Tolerance { rtol: 1e-4, atol: 1e-4, all_close: false, pcc: Some(0.9999), of_range: Some(1e-4) };
/// A block's steps are 1/128 to 1/64 of its largest element: the roundings of operands and of a
/// result may differ by two of them.
pub(crate) const BLOCKS: Tolerance = Tolerance { of_range: Some(4e-2), ..Tolerance::BFLOAT16 };

/// A tensor in rows.
pub(crate) fn rows(mut tensor: TensorRef) -> TensorRef {
    Arc::make_mut(&mut tensor.desc).layout.memory_desc.tile_shape = Dim2d { y: 1, x: 1 };
    tensor
}

/// Numbers between -2 and 2, or integers up to 100, that differ from seed to seed.
pub(crate) fn array(of: &TensorRef, seed: u64) -> Tensor {
    let shape = Shape::new(of.desc.shape.iter().map(|&n| n as usize).collect::<Vec<_>>()).unwrap();
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    let dtype = of.desc.dtype().into();
    if matches!(of.desc.dtype(), DataType::Float32 | DataType::BFloat16 | DataType::BFP_BFloat8) {
        let values: Vec<f32> = (0..shape.elements()).map(|_| next() * 4.0 - 2.0).collect();
        return Tensor::from_f32(dtype, shape, &values).unwrap();
    }
    let values: Vec<i64> = (0..shape.elements()).map(|_| (next() * 100.0) as i64).collect();
    Tensor::from_i64(dtype, shape, &values).unwrap()
}

/// Runs one operation by host arithmetic and on the chip, and compares.
pub(crate) fn same(op: Op, inputs: &[&TensorRef], out: &TensorRef, tolerance: Tolerance) {
    same_all(vec![op], inputs, &[out], tolerance);
}

/// The same of several operations and results.
pub(crate) fn same_all(ops: Vec<Op>, inputs: &[&TensorRef], outs: &[&TensorRef], tolerance: Tolerance) {
    let values = || inputs.iter().zip(1..).map(|(of, seed)| Value::from(array(of, seed))).collect::<Vec<_>>();
    same_of(ops, inputs, &values, outs, tolerance);
}

/// The board of a case: cases whose inputs have an odd sum of sides are on the larger one, so that
/// properties of each family hold on both.
fn board_of(inputs: &[&TensorRef]) -> Board {
    let sides: i32 = inputs.iter().flat_map(|of| &of.desc.shape).sum();
    if sides % 2 == 0 { Board::P100 } else { Board::P150 }
}

/// The same with these inputs.
pub(crate) fn same_of(
    ops: Vec<Op>,
    inputs: &[&TensorRef],
    values: &dyn Fn() -> Vec<Value>,
    outs: &[&TensorRef],
    tolerance: Tolerance,
) {
    same_on(board_of(inputs), ops, inputs, values, outs, tolerance);
}

/// The same on a board.
pub(crate) fn same_on(
    board: Board,
    ops: Vec<Op>,
    inputs: &[&TensorRef],
    values: &dyn Fn() -> Vec<Value>,
    outs: &[&TensorRef],
    tolerance: Tolerance,
) {
    let model = model(vec![program("main", inputs, outs, ops.into_iter().map(operation).collect())]);
    let expected = Engine::native(Options::default()).session(&model).unwrap().run(0, values(), &mut ()).unwrap();
    let device = Device::open(Chip::new(ChipConfig::new(board)).unwrap(), DeviceConfig::new(board)).unwrap();
    let mut session = Session::on(&model, Options::default(), OnChip::new(device, true)).unwrap();
    let found = session.run(0, values(), &mut ()).unwrap_or_else(|error| panic!("{error}"));
    let places = |changed: &[(usize, Value)]| changed.iter().map(|(at, _)| *at).collect::<Vec<_>>();
    assert_eq!(places(&found.changed), places(&expected.changed));
    let all = |outputs: &[Value], changed: &[(usize, Value)]| {
        outputs.iter().chain(changed.iter().map(|(_, value)| value)).cloned().collect::<Vec<_>>()
    };
    let expected = all(&expected.outputs, &expected.changed);
    for (found, expected) in all(&found.outputs, &found.changed).iter().zip(&expected) {
        let (found, expected) = (found.single().unwrap(), expected.single().unwrap());
        // One element has no correlation.
        let pcc = tolerance.pcc.filter(|_| expected.elements() > 1);
        let comparison = Comparison::of(found, expected, Tolerance { pcc, ..tolerance }).unwrap();
        assert!(comparison.passes(), "{comparison}");
    }
}

pub(crate) fn floats() -> impl Strategy<Value = DataType> {
    prop_oneof![Just(DataType::BFloat16), Just(DataType::Float32)]
}

pub(crate) fn tolerance(data_type: DataType) -> Tolerance {
    if data_type == DataType::BFloat16 { BF16 } else { F32 }
}

/// Lengths of one to four dimensions, of which the last two do not fill tiles.
pub(crate) fn lengths() -> impl Strategy<Value = Vec<i32>> {
    (prop::collection::vec(1..4_i32, 0..3), 1..70_i32, 1..70_i32)
        .prop_map(|(outer, rows, columns)| outer.into_iter().chain([rows, columns]).collect())
}

/// Numbers from 0 to below a bound, of a tensor of integers.
pub(crate) fn numbers(of: &TensorRef, bound: usize, seed: u64) -> Tensor {
    let shape = Shape::new(of.desc.shape.iter().map(|&n| n as usize).collect::<Vec<_>>()).unwrap();
    let mut state = seed | 1;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((state >> 33) % bound as u64) as i64
    };
    let values: Vec<i64> = (0..shape.elements()).map(|_| next()).collect();
    Tensor::from_i64(of.desc.dtype().into(), shape, &values).unwrap()
}
