//! Operations of the compiler in `jax-tt-plugin`, against plain loops that follow the definitions
//! of StableHLO's gather, scatter and running reductions.

use crate::common::build::{f32, model, operation, program, tensor, values};
use tilework_engine::{Engine, Options};
use tilework_model::common::DataType;
use tilework_model::ttnn::ops::conv::Conv3dOp;
use tilework_model::ttnn::ops::data_movement::{RowsGatherOp, RowsScatterOp, ScatterReduceType};
use tilework_model::ttnn::ops::reduction::{CumulativeOp, CumulativeReduceType};
use tilework_model::ttnn::{Op, TensorRef};
use tilework_ops::{DType, Shape, Tensor};

fn run(op: Op, inputs: &[&TensorRef], out: &TensorRef, given: Vec<Tensor>) -> Vec<f32> {
    let model = model(vec![program("main", inputs, &[out], vec![operation(op)])]);
    let mut session = Engine::native(Options::default()).session(&model).unwrap();
    let result = session.run(0, given.into_iter().map(Into::into).collect(), &mut ());
    result.unwrap_or_else(|error| panic!("{error}")).outputs[0].on(0).to_f32()
}

/// Two batches of rows in 3 by 4, each of 2 columns, and 3 places (some outside) of
/// windows of 1 by 2.
const SIZES: [i64; 2] = [3, 4];
const PLACES: [[i64; 3]; 2] = [[0, 2, -1], [1, 3, 9]];

fn input(batch: i64, row: i64, column: i64, c: i64) -> f32 {
    (1000 * batch + 100 * row + 10 * column + c) as f32
}

fn inputs() -> (Tensor, Tensor) {
    let mut numbers = Vec::new();
    for n in 0..2 * 3 * 4 * 2 {
        numbers.push(input(n / 24, n / 8 % 3, n / 2 % 4, n % 2));
    }
    let index = Tensor::from_i64(DType::I32, Shape::new([1, 2, 3]).unwrap(), &PLACES.concat()).unwrap();
    (values(&[2, 12, 2], &numbers), index)
}

#[test]
fn windows_of_rows_are_gathered_and_moved_to_where_they_fit() {
    let (rows, index) = (f32(0, &[2, 12, 2]), tensor(1, DataType::Int32, &[1, 2, 3]));
    let out = f32(9, &[2, 6, 2]);
    let op = RowsGatherOp {
        input: rows.clone(),
        index: index.clone(),
        out: out.clone(),
        sizes: vec![3, 4],
        windows: vec![1, 2],
        column: false,
        fill_out_of_bounds: false,
    };
    let (given_rows, given_index) = inputs();
    let found = run(Op::RowsGather(op), &[&rows, &index], &out, vec![given_rows, given_index]);
    let mut expected = Vec::new();
    for batch in 0..2 {
        for (&row, &column) in PLACES[0].iter().zip(&PLACES[1]) {
            let (row, column) = (row.clamp(0, SIZES[0] - 1), column.clamp(0, SIZES[1] - 2));
            for tap in 0..2 {
                expected.extend((0..2).map(|c| input(batch, row, column + tap, c)));
            }
        }
    }
    assert_eq!(found, expected);
}

#[test]
fn windows_of_rows_are_scattered_where_they_fit() {
    let (rows, index) = (f32(0, &[2, 12, 2]), tensor(1, DataType::Int32, &[1, 2, 3]));
    let (source, out) = (f32(2, &[2, 6, 2]), f32(9, &[2, 12, 2]));
    let op = RowsScatterOp {
        input: rows.clone(),
        index: index.clone(),
        source: source.clone(),
        out: out.clone(),
        sizes: vec![3, 4],
        windows: vec![1, 2],
        column: false,
        reduce: ScatterReduceType::Sum,
    };
    let (given_rows, given_index) = inputs();
    let added: Vec<f32> = (0..24).map(|n| 0.5 + n as f32).collect();
    let mut expected = given_rows.to_f32();
    for batch in 0..2 {
        for (place, (&row, &column)) in PLACES[0].iter().zip(&PLACES[1]).enumerate() {
            if !(0..SIZES[0]).contains(&row) || !(0..SIZES[1] - 1).contains(&column) {
                continue;
            }
            for tap in 0..2 {
                for c in 0..2 {
                    let to = ((batch * 3 + row as usize) * 4 + column as usize + tap) * 2 + c;
                    expected[to] += added[(batch * 6 + place * 2 + tap) * 2 + c];
                }
            }
        }
    }
    let given = vec![given_rows, given_index, values(&[2, 6, 2], &added)];
    let found = run(Op::RowsScatter(op), &[&rows, &index, &source], &out, given);
    assert_eq!(found, expected);
    // Only the first place fits: the second one's window ends beyond the last column.
    assert_eq!(expected.iter().zip(inputs().0.to_f32()).filter(|(a, b)| **a != *b).count(), 2 * 2 * 2);
}

fn running(reduction: CumulativeReduceType, reverse: bool, numbers: &[f32]) -> Vec<f32> {
    let shape = [2, numbers.len() as i32 / 2];
    let (input, out) = (f32(0, &shape), f32(9, &shape));
    let op =
        CumulativeOp { input: input.clone(), out: out.clone(), dim: -1, reduction, reverse, dtype: None, memcfg: None };
    run(Op::Cumulative(op), &[&input], &out, vec![values(&[2, numbers.len() / 2], numbers)])
}

/// Running reduction of each of two rows.
fn plain(f: impl Fn(f64, f64) -> f64, reverse: bool, numbers: &[f32]) -> Vec<f64> {
    let mut all = Vec::new();
    for row in numbers.chunks(numbers.len() / 2) {
        let mut row: Vec<f64> = row.iter().map(|&n| n.into()).collect();
        if reverse {
            row.reverse();
        }
        for i in 1..row.len() {
            row[i] = f(row[i - 1], row[i]);
        }
        if reverse {
            row.reverse();
        }
        all.extend(row);
    }
    all
}

#[test]
fn running_reductions_go_either_way() {
    let numbers: Vec<f32> = (0..22).map(|n| ((n * 7919) % 23) as f32 - 11.5).collect();
    for reverse in [false, true] {
        let wide = |found: Vec<f32>| found.into_iter().map(f64::from).collect::<Vec<_>>();
        let max = wide(running(CumulativeReduceType::Max, reverse, &numbers));
        assert_eq!(max, plain(f64::max, reverse, &numbers));
        let min = wide(running(CumulativeReduceType::Min, reverse, &numbers));
        assert_eq!(min, plain(f64::min, reverse, &numbers));
        let sums = wide(running(CumulativeReduceType::LogSumExp, reverse, &numbers));
        let expected = plain(|a, b| (a.exp() + b.exp()).ln(), reverse, &numbers);
        assert!(sums.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-5), "{sums:?} {expected:?}");
    }
}

#[test]
fn sums_of_exponentials_neither_overflow_nor_lose_infinities() {
    let (low, high) = (f32::NEG_INFINITY, f32::INFINITY);
    let found = running(CumulativeReduceType::LogSumExp, false, &[low, low, 500.0, 500.0, 1.0, high, high, 2.0]);
    let expected = [low, low, 500.0, 500.0 + std::f32::consts::LN_2, 1.0, high, high, high];
    assert_eq!(found, expected);
}

#[test]
fn taps_of_a_volume_lie_apart() {
    // 6 deep, 4 wide, 2 channels; taps 2 by 1 by 2 that lie 3 and 2 apart.
    let (input, weight) = (f32(0, &[1, 6, 1, 4, 2]), f32(1, &[1, 2, 2, 1, 2]));
    let out = f32(9, &[1, 3, 1, 2, 1]);
    let op = Conv3dOp {
        input: input.clone(),
        weight: weight.clone(),
        bias: None,
        out: out.clone(),
        device: None,
        in_channels: 2,
        out_channels: 1,
        batch_size: 1,
        input_depth: 6,
        input_height: 1,
        input_width: 4,
        kernel_size: vec![2, 1, 2],
        stride: vec![1, 1, 1],
        padding: vec![0, 0, 0],
        padding_mode: "zeros".into(),
        groups: 1,
        output_dtype: None,
        conv3d_config: None,
        compute_config: None,
        memory_config: None,
        dilation: vec![3, 1, 2],
    };
    let x: Vec<f32> = (0..48).map(|n| ((n * 37) % 19) as f32).collect();
    let w: Vec<f32> = (0..8).map(|n| n as f32 - 3.0).collect();
    let mut expected = Vec::new();
    for d in 0..3 {
        for column in 0..2 {
            let mut sum = 0.0;
            for (c, i, j) in (0..8).map(|n| (n / 4, n / 2 % 2, n % 2)) {
                sum += x[((d + 3 * i) * 4 + column + 2 * j) * 2 + c] * w[(c * 2 + i) * 2 + j];
            }
            expected.push(sum);
        }
    }
    let given = vec![values(&[1, 6, 1, 4, 2], &x), values(&[1, 2, 2, 1, 2], &w)];
    assert_eq!(run(Op::Conv3d(op), &[&input, &weight], &out, given), expected);
}
