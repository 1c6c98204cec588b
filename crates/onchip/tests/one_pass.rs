//! Attention and convolutions that one program carries out: the program is taken, and right where
//! keys come in blocks, workers have several rows, and windows go beyond the image.

use crate::chip::common::build::{model, on_host, operation, program, tensor};
use crate::chip::{BF16, array, rows};
use tilework_abi::board::Board;
use tilework_engine::{Comparison, Engine, Options, Session, Value};
use tilework_model::common::DataType::{BFloat16, Float32, Int32};
use tilework_model::ttnn::ops::attention::{ScaledDotProductAttentionDecodeOp, ScaledDotProductAttentionOp};
use tilework_model::ttnn::ops::conv::Conv2dOp;
use tilework_model::ttnn::{Op, TensorRef};
use tilework_onchip::{OnChip, Record};
use tilework_ops::{DType, Shape, Tensor};
use tilework_runtime::{Device, DeviceConfig};
use tilework_sim::{Chip, ChipConfig};

/// Names of programs and transfers of each of `runs` runs; results are compared with the native
/// engine's.
fn run(
    board: Board,
    op: &Op,
    inputs: &[&TensorRef],
    values: &[Tensor],
    out: &TensorRef,
    runs: usize,
) -> Vec<Vec<String>> {
    let model = model(vec![program("main", inputs, &[out], vec![operation(op.clone())])]);
    let values = || values.iter().cloned().map(Value::from).collect::<Vec<_>>();
    let expected = Engine::native(Options::default()).session(&model).unwrap().run(0, values(), &mut ()).unwrap();
    let device = Device::open(Chip::new(ChipConfig::new(board)).unwrap(), DeviceConfig::new(board)).unwrap();
    let mut session = Session::on(&model, Options::default(), OnChip::new(device, true)).unwrap();
    let placed = session.place(0, values()).unwrap();
    let one = |_| {
        session.machine_mut().forget_records();
        let found = session.run_placed(&placed, &mut ()).unwrap();
        let (found, expected) = (found.outputs[0].single().unwrap(), expected.outputs[0].single().unwrap());
        let comparison = Comparison::of(found, expected, BF16).unwrap();
        assert!(comparison.passes(), "{comparison}");
        let stages = |record: &Record| record.stages.iter().map(|stage| stage.name.clone()).collect::<Vec<_>>();
        session.machine().records().iter().flat_map(stages).collect()
    };
    (0..runs).map(one).collect()
}

fn attention(
    of: [&TensorRef; 3],
    mask: Option<&TensorRef>,
    is_causal: bool,
    window: Option<u32>,
    out: &TensorRef,
) -> Op {
    Op::ScaledDotProductAttention(ScaledDotProductAttentionOp {
        query: of[0].clone(),
        key: of[1].clone(),
        value: of[2].clone(),
        attention_mask: mask.cloned(),
        is_causal,
        scale: None,
        sliding_window_size: window,
        attention_sink: None,
        out: out.clone(),
        memcfg: None,
    })
}

/// One case: batch, heads, key heads, queries, keys, depth.
fn attends(board: Board, [batch, heads, key_heads, queries, keys, depth]: [i32; 6], causal: bool, window: Option<u32>) {
    let q = tensor(1, BFloat16, &[batch, heads, queries, depth]);
    let [k, v] = [2, 3].map(|id| tensor(id, BFloat16, &[batch, key_heads, keys, depth]));
    let out = tensor(4, BFloat16, &[batch, heads, queries, depth]);
    let values: Vec<Tensor> = [&q, &k, &v].into_iter().zip(1..).map(|(of, seed)| array(of, seed)).collect();
    let op = attention([&q, &k, &v], None, causal, window, &out);
    let [names] = run(board, &op, &[&q, &k, &v], &values, &out, 1).try_into().unwrap();
    let programs: Vec<&String> =
        names.iter().filter(|name| !["read", "write", "edges"].contains(&name.as_str())).collect();
    assert_eq!(programs, ["attention"], "{names:?}");
}

#[test]
fn attention_is_one_program() {
    attends(Board::P150, [1, 4, 4, 128, 128, 64], true, None);
    attends(Board::P100, [2, 6, 2, 70, 100, 96], false, None);
    attends(Board::P100, [1, 2, 1, 130, 130, 32], true, Some(40));
    attends(Board::P100, [1, 2, 1, 70, 130, 32], false, Some(40));
}

/// More heads than workers, and heads whose rows of tiles share the workers.
#[test]
fn workers_have_several_rows_of_queries() {
    attends(Board::P100, [2, 70, 35, 40, 64, 32], true, None);
    attends(Board::P100, [1, 50, 25, 160, 160, 32], true, None);
}

/// Keys and values that do not fit into L1: sums are rescaled from block to block.
#[test]
fn keys_come_in_blocks() {
    attends(Board::P100, [1, 1, 1, 40, 2500, 128], false, None);
    attends(Board::P100, [1, 1, 1, 2100, 2100, 128], true, Some(1500));
}

fn to_positions([q, k, v, at]: [&TensorRef; 4], out: &TensorRef) -> Op {
    Op::ScaledDotProductAttentionDecode(ScaledDotProductAttentionDecodeOp {
        query: q.clone(),
        key: k.clone(),
        value: v.clone(),
        is_causal: true,
        attention_mask: None,
        cur_pos_tensor: Some(at.clone()),
        attention_sink: None,
        scale: None,
        sliding_window_size: None,
        out: out.clone(),
        memcfg: None,
        program_config: None,
    })
}

/// One query for each sequence, to its own position in a cache.
#[test]
fn positions_come_from_a_tensor() {
    let (batch, heads, key_heads, keys, depth) = (3, 8, 2, 160, 64);
    let (q, out) = (tensor(1, BFloat16, &[1, batch, heads, depth]), tensor(5, BFloat16, &[1, batch, heads, depth]));
    let [k, v] = [2, 3].map(|id| tensor(id, BFloat16, &[batch, key_heads, keys, depth]));
    let at = rows(tensor(4, Int32, &[batch]));
    let op = to_positions([&q, &k, &v, &at], &out);
    let mut values: Vec<Tensor> = [&q, &k, &v].into_iter().zip(1..).map(|(of, seed)| array(of, seed)).collect();
    values.push(Tensor::from_i64(DType::I32, Shape::new([3]).unwrap(), &[159, 0, 70]).unwrap());
    let [names] = run(Board::P100, &op, &[&q, &k, &v, &at], &values, &out, 1).try_into().unwrap();
    // Queries of a key head become rows of a tile, and the results heads again.
    assert_eq!(names, ["rearrange", "attention", "rearrange"]);
}

/// A position that the cache does not have ends the run.
#[test]
fn positions_behind_the_cache_are_a_trap() {
    let (q, out) = (tensor(1, BFloat16, &[1, 2, 4, 32]), tensor(5, BFloat16, &[1, 2, 4, 32]));
    let [k, v] = [2, 3].map(|id| tensor(id, BFloat16, &[2, 4, 64, 32]));
    let at = rows(tensor(4, Int32, &[2]));
    let op = to_positions([&q, &k, &v, &at], &out);
    let model = model(vec![program("main", &[&q, &k, &v, &at], &[&out], vec![operation(op)])]);
    for positions in [[0, 64], [-1, 0]] {
        let mut values: Vec<Value> = [&q, &k, &v].into_iter().map(|of| Value::from(array(of, 1))).collect();
        values.push(Tensor::from_i64(DType::I32, Shape::new([2]).unwrap(), &positions).unwrap().into());
        let config = DeviceConfig::new(Board::P100);
        let device = Device::open(Chip::new(ChipConfig::new(Board::P100)).unwrap(), config).unwrap();
        let mut session = Session::on(&model, Options::default(), OnChip::new(device, true)).unwrap();
        let error = session.run(0, values, &mut ()).unwrap_err().to_string();
        assert!(error.contains("ebreak"), "{error}");
    }
}

/// A mask with infinities, also for all keys of a block.
#[test]
fn masks_may_be_infinite() {
    let of = |id, queries| tensor(id, BFloat16, &[1, 2, queries, 32]);
    let (q, k, v, out) = (of(1, 40), of(2, 70), of(3, 70), of(5, 40));
    for data_type in [BFloat16, Float32] {
        let mask = tensor(4, data_type, &[1, 1, 40, 70]);
        let numbers: Vec<f32> =
            (0..40 * 70).map(|i| if (i / 70 + i % 70) % 3 == 0 { 0.5 } else { f32::NEG_INFINITY }).collect();
        let dtype = if data_type == BFloat16 { DType::BF16 } else { DType::F32 };
        let mut values: Vec<Tensor> = [&q, &k, &v].into_iter().zip(1..).map(|(of, seed)| array(of, seed)).collect();
        values.push(Tensor::from_f32(dtype, Shape::new([1, 1, 40, 70]).unwrap(), &numbers).unwrap());
        let op = attention([&q, &k, &v], Some(&mask), false, None, &out);
        let [names] = run(Board::P100, &op, &[&q, &k, &v, &mask], &values, &out, 1).try_into().unwrap();
        assert!(names.contains(&"attention".to_owned()), "{names:?}");
    }
}

/// A convolution: images, rows, columns, channels, output channels.
struct Case {
    sides: [i32; 5],
    kernel: [i32; 2],
    stride: [i32; 2],
    padding: Vec<i32>,
    dilation: [i32; 2],
}

impl Case {
    fn of(sides: [i32; 5], kernel: [i32; 2], stride: [i32; 2], padding: &[i32], dilation: [i32; 2]) -> Self {
        Self { sides, kernel, stride, padding: padding.to_vec(), dilation }
    }

    /// The names of each of some runs; `in_rows`: how the image lies.
    fn run(&self, in_rows: bool, runs: usize) -> Vec<Vec<String>> {
        let Self { sides: [batch, height, width, channels, outputs], kernel, stride, dilation, .. } = *self;
        let around = match *self.padding {
            [rows, columns] => [2 * rows, 2 * columns],
            [top, bottom, left, right] => [top + bottom, left + right],
            _ => [0; 2],
        };
        let made = |k: usize, length: i32| (length + around[k] - (kernel[k] - 1) * dilation[k] - 1) / stride[k] + 1;
        let image = tensor(1, BFloat16, &[1, 1, batch * height * width, channels]);
        let image = if in_rows { rows(image) } else { image };
        let weight = on_host(rows(tensor(2, BFloat16, &[outputs, channels, kernel[0], kernel[1]])));
        let out = tensor(3, BFloat16, &[1, 1, batch * made(0, height) * made(1, width), outputs]);
        let op = Op::Conv2d(Conv2dOp {
            input: image.clone(),
            weight: weight.clone(),
            bias: None,
            out: out.clone(),
            device: None,
            in_channels: channels as u32,
            out_channels: outputs as u32,
            batch_size: batch as u32,
            input_height: height as u32,
            input_width: width as u32,
            kernel_size: kernel.to_vec(),
            stride: stride.to_vec(),
            padding: self.padding.clone(),
            dilation: dilation.to_vec(),
            groups: 1,
            output_dtype: None,
            conv2d_config: None,
            compute_config: None,
            conv2d_slice_config: None,
        });
        let values = [array(&image, 1), array(&weight, 2)];
        run(Board::P150, &op, &[&image, &weight], &values, &out, runs)
    }
}

#[test]
fn convolutions_are_one_program() {
    for case in [
        Case::of([1, 32, 32, 32, 32], [3, 3], [1, 1], &[1, 1], [1, 1]),
        Case::of([3, 13, 17, 40, 50], [3, 2], [2, 1], &[1, 2, 0, 1], [1, 1]),
        Case::of([2, 20, 9, 96, 300], [2, 3], [1, 3], &[0, 2], [3, 2]),
        Case::of([1, 30, 31, 3, 64], [7, 7], [2, 2], &[3, 3], [1, 1]),
        Case::of([1, 5, 6, 64, 32], [1, 1], [1, 1], &[0, 0], [1, 1]),
        Case::of([1, 3, 100, 32, 32], [3, 1], [1, 1], &[5, 0], [4, 1]),
    ] {
        for in_rows in [false, true] {
            let [names] = case.run(in_rows, 1).try_into().unwrap();
            let programs: Vec<&String> =
                names.iter().filter(|name| !["read", "write", "edges"].contains(&name.as_str())).collect();
            assert_eq!(programs, ["conv"], "{names:?}");
        }
    }
}

/// Weights in the host's memory that did not change are brought to the device once.
#[test]
fn weights_are_prepared_once() {
    let case = Case::of([1, 8, 8, 32, 32], [3, 3], [1, 1], &[1, 1], [1, 1]);
    let [first, second, third] = case.run(false, 3).try_into().unwrap();
    assert_eq!(first, ["write", "conv"]);
    assert_eq!([second, third], [["kept", "conv"]; 2]);
}
