//! Choices among candidates, and a device's own experts, on the chip against host arithmetic:
//! exactly the same.

use crate::chip::common::build::{model, operation, program, tensor};
use crate::chip::{array, numbers, same_of, tolerance};
use proptest::prelude::*;
use tilework_abi::board::Board;
use tilework_engine::{Comparison, Engine, Options, Session, Tolerance, Value};
use tilework_model::common::{DataType, Dim2d};
use tilework_model::ttnn::ops::eltwise::DropoutOp;
use tilework_model::ttnn::ops::moe::MoeExpertTokenRemapOp;
use tilework_model::ttnn::ops::normalization::DistributedRMSNormOp;
use tilework_model::ttnn::ops::reduction::SamplingOp;
use tilework_model::ttnn::{Op, TensorRef};
use tilework_onchip::{Carried, Chips, OnChip, Record};
use tilework_ops::{Shape, Tensor};
use tilework_runtime::{Device, DeviceConfig};
use tilework_sim::{Chip, ChipConfig};

/// Devices of a mesh of one row.
const DEVICES: usize = 2;

fn chip() -> OnChip<Chip> {
    let board = Board::P100;
    let chip = Chip::new(ChipConfig::new(board)).unwrap();
    OnChip::new(Device::open(chip, DeviceConfig::new(board)).unwrap(), true)
}

/// Runs an operation on two chips, by programs of theirs alone, and by host arithmetic.
fn same_on_each(op: Op, inputs: &[&TensorRef], values: &dyn Fn() -> Vec<Value>, outs: &[&TensorRef]) {
    let records = on_each(op, inputs, values, outs, Tolerance::EXACT);
    let is_chip = |record: &Record| record.carried == Carried::Chip && !record.stages.is_empty();
    assert!(records.iter().flatten().all(is_chip), "{records:?}");
}

/// The same within a tolerance; gives what became of the operation on each chip.
fn on_each(
    op: Op,
    inputs: &[&TensorRef],
    values: &dyn Fn() -> Vec<Value>,
    outs: &[&TensorRef],
    tolerance: Tolerance,
) -> Vec<Vec<Record>> {
    let mut of = program("main", inputs, outs, vec![operation(op)]);
    of.mesh_shape = Some(Dim2d { y: 1, x: DEVICES as i32 });
    let model = model(vec![of]);
    let native = Engine::native(Options::default()).session(&model).unwrap().run(0, values(), &mut ()).unwrap();
    let chips = Chips::new(chip(), vec![chip()]);
    let mut session = Session::on(&model, Options::default(), chips).unwrap();
    let found = session.run(0, values(), &mut ()).unwrap_or_else(|error| panic!("{error}"));
    for (found, native) in found.outputs.iter().zip(&native.outputs) {
        for device in 0..DEVICES {
            let (found, native) = (found.on(device), native.on(device));
            let pcc = tolerance.pcc.filter(|_| native.elements() > 1);
            let comparison = Comparison::of(found, native, Tolerance { pcc, ..tolerance }).unwrap();
            assert!(comparison.passes(), "device {device}: {comparison}");
        }
    }
    session.machine().all().map(|chip| chip.records().to_vec()).collect()
}

fn floats_of(of: &TensorRef, values: &[f32]) -> Value {
    let shape = Shape::new(of.desc.shape.iter().map(|&n| n as usize).collect::<Vec<_>>()).unwrap();
    Value::from(Tensor::from_f32(of.desc.dtype().into(), shape, values).unwrap())
}

fn integers_of(of: &TensorRef, values: &[i64]) -> Tensor {
    let shape = Shape::new(of.desc.shape.iter().map(|&n| n as usize).collect::<Vec<_>>()).unwrap();
    Tensor::from_i64(of.desc.dtype().into(), shape, values).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn candidates_are_drawn(
        rows in 1..70_i32, candidates in 1..90_i32, wide in any::<bool>(), seed in prop::option::of(any::<u32>()),
        bound in 0.0..1.1_f32, temperature in 0.1..6.0_f32, whole in any::<bool>(),
    ) {
        let floats = if wide { DataType::Float32 } else { DataType::BFloat16 };
        let sides = [1, 1, rows, candidates];
        let (values, indices) = (tensor(1, floats, &sides), tensor(2, DataType::Int32, &sides));
        let k = tensor(3, DataType::UInt32, &[rows]);
        let (p, temp) = (tensor(4, DataType::BFloat16, &[rows]), tensor(5, DataType::BFloat16, &[rows]));
        let out = tensor(6, if whole { DataType::Int32 } else { DataType::UInt32 }, &[1, 1, 1, rows]);
        let op = SamplingOp {
            input_values: values.clone(), input_indices: indices.clone(), k: k.clone(), p: p.clone(), temp: temp.clone(),
            seed, out: out.clone(),
        };
        let inputs = [&values, &indices, &k, &p, &temp];
        let given = || {
            let counts: Vec<i64> = (0..i64::from(rows)).map(|row| 1 + row * 7 % (i64::from(candidates) + 3)).collect();
            let spread = |of: &TensorRef, middle: f32| {
                let list: Vec<f32> = (0..rows).map(|row| middle * (0.5 + row as f32 / rows as f32)).collect();
                floats_of(of, &list)
            };
            vec![
                Value::from(array(&values, 1)),
                Value::from(numbers(&indices, 50_000, 2)),
                Value::from(integers_of(&k, &counts)),
                spread(&p, bound),
                spread(&temp, temperature),
            ]
        };
        same_of(vec![Op::Sampling(op)], &inputs, &given, &[&out], Tolerance::EXACT);
    }

    #[test]
    fn a_device_has_the_scores_of_its_experts(
        batch in 1..4_i32, length in 1..30_i32, each in 1..20_i32, chosen in 1..5_i32, chunk in 1..9_u32,
        wide in any::<bool>(), seed in any::<u64>(),
    ) {
        let floats = if wide { DataType::Float32 } else { DataType::BFloat16 };
        let (experts, tokens) = (each * DEVICES as i32, batch * length);
        let scores = tensor(1, floats, &[1, batch, length, experts]);
        let mapping = tensor(2, DataType::UInt16, &[1, 1, experts, DEVICES as i32]);
        let metadata = tensor(3, DataType::UInt16, &[1, batch, length, chosen]);
        let own = tensor(4, floats, &[1, batch, length, each]);
        let any = tensor(5, DataType::UInt16, &[1, 1, tokens.div_euclid(chunk as i32) + i32::from(tokens % chunk as i32 != 0), each]);
        let op = MoeExpertTokenRemapOp {
            topk_tensor: scores.clone(), expert_mapping: mapping.clone(), expert_metadata: metadata.clone(),
            mapping: own.clone(), reduced: any.clone(), reduction_size: chunk, memory_config: None,
        };
        let given = || {
            // As many experts for each device, in an order of their own.
            let first = |expert: i64| (expert * 5 + (seed % 7) as i64) % 2;
            let (mut owners, mut left) = (Vec::new(), [each; DEVICES]);
            for expert in 0..i64::from(experts) {
                let wanted = first(expert) as usize;
                let device = if left[wanted] > 0 { wanted } else { 1 - wanted };
                left[device] -= 1;
                owners.extend((0..DEVICES).map(|at| i64::from(at == device)));
            }
            let on_each = |of: &dyn Fn(u64) -> Tensor| Value::shards((0..DEVICES as u64).map(of).collect()).unwrap();
            vec![
                on_each(&|device| array(&scores, seed.wrapping_add(device))),
                on_each(&|_| integers_of(&mapping, &owners)),
                on_each(&|device| numbers(&metadata, experts as usize, seed.wrapping_add(2 + device))),
            ]
        };
        same_on_each(Op::MoeExpertTokenRemap(op), &[&scores, &mapping, &metadata], &given, &[&own, &any]);
    }

    #[test]
    fn devices_drop_other_elements(rows in 1..50_i32, columns in 1..50_i32, seed in any::<u32>(), differs in any::<bool>()) {
        let [input, out] = [1, 2].map(|id| tensor(id, DataType::Float32, &[rows, columns]));
        let op = DropoutOp {
            input: input.clone(), prob: 0.3, scale: 1.25, seed, use_per_device_seed: differs, output_dtype: None, memory_config: None,
            out: out.clone(),
        };
        let given = || vec![Value::shards(vec![array(&input, 1); DEVICES]).unwrap()];
        same_on_each(Op::Dropout(op), &[&input], &given, &[&out]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, ..ProptestConfig::default() })]

    /// Chips have a part of each row, and exchange the means of their squares only.
    #[test]
    fn rows_on_several_devices_are_normalised(
        rows in 1..70_i32, columns in 1..80_i32, given in any::<[bool; 2]>(), wide in any::<bool>(), axis in 0..2_u32,
    ) {
        let floats = if wide { DataType::Float32 } else { DataType::BFloat16 };
        let of = |id| tensor(id, floats, &[1, rows, columns]);
        let (x, residual, weight, out) = (of(1), of(2), tensor(3, floats, &[columns]), of(4));
        let op = DistributedRMSNormOp {
            input: x.clone(), weight: given[1].then(|| weight.clone()), residual: given[0].then(|| residual.clone()),
            cluster_axis: axis, epsilon: 1e-3, sub_device_id: None, memory_config: None, num_links: None, topology: None,
            compute_config: None, stats: None, program_config: None, out: out.clone(), semaphore: None,
        };
        let mut inputs = vec![&x];
        inputs.extend(given[1].then_some(&weight));
        inputs.extend(given[0].then_some(&residual));
        let values = || {
            let each = |of: &TensorRef| Value::shards((0..DEVICES as u64).map(|at| array(of, at + 1)).collect()).unwrap();
            inputs.iter().map(|of| each(of)).collect()
        };
        let chips = on_each(Op::DistributedRMSNorm(op), &inputs, &values, &[&out], tolerance(floats));
        let by_programs = |record: &Record| record.read > 0 && record.busy() > 0;
        assert!(chips.iter().flatten().all(by_programs), "{chips:?}");
    }
}

/// Counts of no candidates, and more experts than the result has, end the run.
#[test]
fn what_makes_no_sense_is_a_trap() {
    let sides = [1, 1, 2, 8];
    let (values, indices) = (tensor(1, DataType::BFloat16, &sides), tensor(2, DataType::Int32, &sides));
    let k = tensor(3, DataType::UInt32, &[2]);
    let (p, temp) = (tensor(4, DataType::BFloat16, &[2]), tensor(5, DataType::BFloat16, &[2]));
    let out = tensor(6, DataType::Int32, &[1, 1, 1, 2]);
    let op = SamplingOp {
        input_values: values.clone(),
        input_indices: indices.clone(),
        k: k.clone(),
        p: p.clone(),
        temp: temp.clone(),
        seed: None,
        out: out.clone(),
    };
    let model =
        model(vec![program("main", &[&values, &indices, &k, &p, &temp], &[&out], vec![operation(Op::Sampling(op))])]);
    let given = vec![
        Value::from(array(&values, 1)),
        Value::from(numbers(&indices, 9, 2)),
        Value::from(integers_of(&k, &[3, 0])),
        floats_of(&p, &[0.9, 0.9]),
        floats_of(&temp, &[1.0, 1.0]),
    ];
    let mut session = Session::on(&model, Options::default(), chip()).unwrap();
    let error = session.run(0, given, &mut ()).unwrap_err().to_string();
    assert!(error.contains("ebreak"), "{error}");
}
