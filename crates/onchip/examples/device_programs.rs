//! Times single operations on the simulated chip: for each one a line of JSON with the cycles of
//! its programs, its bounds by unit and the seconds of this machine, of a run that is not the
//! first. `cargo xtask ttnn --programs` compares them with stock programs of ttnn, which
//! `tests/python/ttnn_programs.py` times for the same shapes.

#[path = "../../engine/tests/common/build.rs"]
#[expect(dead_code, reason = "shared with tests")]
mod build;

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use build::{add, model, on_host, operation, program, tensor};
use tilework_abi::board::Board;
use tilework_driver::HostLink;
use tilework_engine::{Options, Session, Value};
use tilework_model::Model;
use tilework_model::common::DataType::BFloat16;
use tilework_model::common::Dim2d;
use tilework_model::ttnn::ops::attention::ScaledDotProductAttentionOp;
use tilework_model::ttnn::ops::conv::Conv2dOp;
use tilework_model::ttnn::ops::matmul::MatmulOp;
use tilework_model::ttnn::ops::normalization::{LayerNormOp, RMSNormOp, SoftmaxOp};
use tilework_model::ttnn::{Op, TensorRef};
use tilework_onchip::{Carried, OnChip, Record, RecordedStage};
use tilework_ops::{DType, Shape, Tensor};
use tilework_runtime::{Device, DeviceConfig};
use tilework_sim::{Chip, ChipConfig};

/// Repetitions of an operation in two programs, whose difference is what it takes.
const COUNTS: [usize; 2] = [4, 20];
/// Runs of one operation after the first; the median of their seconds is reported.
const RUNS: usize = 5;
/// Rows and columns of 120 tiles.
const TILES_120: [i32; 4] = [1, 1, 320, 384];

/// An operation with its inputs, and the shape of its result.
struct Case {
    name: &'static str,
    inputs: Vec<TensorRef>,
    out: Vec<i32>,
    operation: Box<dyn Fn(TensorRef) -> Op>,
}

impl Case {
    /// A program that has the operation several times.
    fn model(&self, count: usize) -> Model {
        let results: Vec<TensorRef> = (100..).take(count).map(|id| tensor(id, BFloat16, &self.out)).collect();
        let operations = results.iter().map(|out| operation((self.operation)(out.clone()))).collect();
        model(vec![program("main", &self.inputs.iter().collect::<Vec<_>>(), &[&results[count - 1]], operations)])
    }
}

/// Runs a program a few times; returns the records and the cycles of the last run, and the median
/// of the seconds.
fn run(case: &Case, count: usize) -> Result<(Vec<Record>, u64, f64), Box<dyn Error>> {
    let (board, model) = (Board::P150, case.model(count));
    let device = Device::open(Chip::new(ChipConfig::new(board))?, DeviceConfig::new(board))?;
    let mut session = Session::on(&model, Options::default(), OnChip::new(device, false))?;
    let arrays = case.inputs.iter().zip(1..).map(|(of, seed)| array(of, seed).map(Value::from));
    let placed = session.place(0, arrays.collect::<Result<_, _>>()?)?;
    let (mut seconds, mut cycles) = (Vec::new(), 0);
    for _ in 0..=RUNS {
        session.machine_mut().forget_records();
        let (before, began) = (session.machine().device().chip().cycles(), Instant::now());
        session.run_placed(&placed, &mut ())?;
        seconds.push(began.elapsed().as_secs_f64());
        cycles = session.machine().device().chip().cycles() - before;
    }
    // The first run compiles the programs.
    seconds.remove(0);
    seconds.sort_by(f64::total_cmp);
    Ok((session.machine().records().to_vec(), cycles, seconds[RUNS / 2]))
}

fn main() -> Result<(), Box<dyn Error>> {
    let only: Vec<String> = std::env::args().skip(1).collect();
    for case in cases().into_iter().filter(|case| only.is_empty() || only.iter().any(|name| name == case.name)) {
        let (records, _, seconds) = run(&case, 1)?;
        let (mut bound, mut stages) = (0, Vec::new());
        for record in records {
            if let Carried::Host(why) = &record.carried {
                stages.push(format!("host: {why}"));
            }
            bound = bound.max(record.bounds.map_or(0, |bounds| bounds.greatest().1));
            let of =
                |stage: &RecordedStage| format!("{} on {}: {}", stage.name, stage.cores, stage.cycles().unwrap_or(0));
            stages.extend(record.stages.iter().filter(|stage| stage.cores > 0).map(of));
        }
        let [(_, few, _), (_, many, _)] = [run(&case, COUNTS[0])?, run(&case, COUNTS[1])?];
        let (name, cycles) = (case.name, many.saturating_sub(few) / (COUNTS[1] - COUNTS[0]) as u64);
        println!(
            "{{\"name\": \"{name}\", \"cycles\": {cycles}, \"bound\": {bound}, \"seconds\": {seconds:e}, \
             \"stages\": {stages:?}}}"
        );
    }
    Ok(())
}

/// Numbers between -1 and 1.
fn array(of: &TensorRef, seed: u64) -> Result<Tensor, Box<dyn Error>> {
    let shape = Shape::new(of.desc.shape.iter().map(|&n| n as usize).collect::<Vec<_>>())?;
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 23) as f32 - 1.0
    };
    let values: Vec<f32> = (0..shape.elements()).map(|_| next()).collect();
    Ok(Tensor::from_f32(DType::BF16, shape, &values)?)
}

fn cases() -> Vec<Case> {
    let of = |id, shape: &[i32]| tensor(id, BFloat16, shape);
    let case = |name, inputs: &[&TensorRef], operation: Box<dyn Fn(TensorRef) -> Op>| Case {
        name,
        inputs: build::list(inputs),
        out: inputs[0].desc.shape.clone(),
        operation,
    };
    let square = [1, 1, 512, 512];
    let (a, b, x, y) = (of(1, &square), of(2, &square), of(1, &TILES_120), of(2, &TILES_120));
    let [query, key, value] = [1, 2, 3].map(|id| of(id, &[1, 4, 128, 64]));
    let (image, mut weight) = (of(1, &[1, 1, 32 * 32, 32]), on_host(of(2, &[32, 32, 3, 3])));
    Arc::make_mut(&mut weight.desc).layout.memory_desc.tile_shape = Dim2d { y: 1, x: 1 };
    vec![
        case("matmul", &[&a.clone(), &b.clone()], Box::new(move |out| matmul(&a, &b, out))),
        case(
            "add",
            &[&x.clone(), &y.clone()],
            Box::new({
                let x = x.clone();
                move |out| add(&x, &y, &out).op
            }),
        ),
        case(
            "softmax",
            &[&x.clone()],
            Box::new({
                let x = x.clone();
                move |out| {
                    Op::Softmax(SoftmaxOp {
                        input: x.clone(),
                        out,
                        dimension: -1,
                        numeric_stable: true,
                        compute_config: None,
                    })
                }
            }),
        ),
        case(
            "layer_norm",
            &[&x.clone()],
            Box::new({
                let x = x.clone();
                move |out| {
                    Op::LayerNorm(LayerNormOp {
                        input: x.clone(),
                        weight: None,
                        bias: None,
                        epsilon: 1e-5,
                        memory_config: None,
                        out,
                    })
                }
            }),
        ),
        case(
            "rms_norm",
            &[&x.clone()],
            Box::new(move |out| {
                Op::RMSNorm(RMSNormOp {
                    input: x.clone(),
                    weight: None,
                    bias: None,
                    epsilon: 1e-5,
                    memory_config: None,
                    out,
                    compute_config: None,
                })
            }),
        ),
        case("conv3x3", &[&image.clone(), &weight.clone()], Box::new(move |out| convolution(&image, &weight, out))),
        case(
            "attention",
            &[&query.clone(), &key.clone(), &value.clone()],
            Box::new(move |out| {
                Op::ScaledDotProductAttention(ScaledDotProductAttentionOp {
                    query: query.clone(),
                    key: key.clone(),
                    value: value.clone(),
                    attention_mask: None,
                    is_causal: true,
                    scale: None,
                    sliding_window_size: None,
                    attention_sink: None,
                    out,
                    memcfg: None,
                })
            }),
        ),
    ]
}

fn matmul(a: &TensorRef, b: &TensorRef, out: TensorRef) -> Op {
    Op::Matmul(MatmulOp {
        a: a.clone(),
        b: b.clone(),
        out,
        transpose_a: false,
        transpose_b: false,
        matmul_program_config: None,
        activation: None,
        compute_config: None,
        fused_swiglu: false,
        fp32_exact: Default::default(),
    })
}

/// 3 x 3 over 32 x 32 with 32 channels to 32.
fn convolution(input: &TensorRef, weight: &TensorRef, out: TensorRef) -> Op {
    Op::Conv2d(Conv2dOp {
        input: input.clone(),
        weight: weight.clone(),
        bias: None,
        out,
        device: None,
        in_channels: 32,
        out_channels: 32,
        batch_size: 1,
        input_height: 32,
        input_width: 32,
        kernel_size: vec![3, 3],
        stride: vec![1, 1],
        padding: vec![1, 1],
        dilation: vec![1, 1],
        groups: 1,
        output_dtype: None,
        conv2d_config: None,
        compute_config: None,
        conv2d_slice_config: None,
    })
}
