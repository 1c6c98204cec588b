//! Training steps, experts and distributed normalisation as operations of programs. Their numbers
//! are those of the operation library, which its own tests compare with numpy; here it is operands,
//! attributes, what changes in place, and devices.

use crate::common::build::{f32, list, model, operation, program, tensor, values};
use tilework_engine::{Engine, Options, RunResult, Value};
use tilework_model::common::{DataType, Dim2d};
use tilework_model::ttnn::ops::attention::IndexerScoreDsaOp;
use tilework_model::ttnn::ops::normalization::DistributedRMSNormOp;
use tilework_model::ttnn::ops::reduction::TopKRouterGptOp;
use tilework_model::ttnn::ops::training::{AdamWOp, SDPABackwardOp, SDPAForwardOp};
use tilework_model::ttnn::{Op, TensorRef};
use tilework_ops::Tensor;

fn run(op: Op, inputs: &[&TensorRef], outputs: &[&TensorRef], given: Vec<Value>, mesh: (i32, i32)) -> RunResult {
    let mut of = program("main", inputs, outputs, vec![operation(op)]);
    of.mesh_shape = Some(Dim2d { y: mesh.0, x: mesh.1 });
    let model = model(vec![of]);
    let mut session = Engine::native(Options::default()).session(&model).unwrap();
    session.run(0, given, &mut ()).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(op: Op, inputs: &[&TensorRef], outputs: &[&TensorRef]) -> String {
    let model = model(vec![program("main", inputs, outputs, vec![operation(op)])]);
    let mut session = Engine::native(Options::default()).session(&model).unwrap();
    session.check(0).unwrap_err()[0].to_string()
}

fn adamw(tensors: &[TensorRef; 5], amsgrad: bool, stochastic_rounding: bool) -> AdamWOp {
    let [param, grad, exp_avg, exp_avg_sq, most] = tensors.clone();
    AdamWOp {
        param,
        grad,
        exp_avg,
        exp_avg_sq,
        max_exp_avg_sq: amsgrad.then_some(most),
        lr: 0.5,
        beta1: 0.5,
        beta2: 0.75,
        beta1_pow: 0.5,
        beta2_pow: 0.75,
        epsilon: 0.25,
        weight_decay: 0.125,
        stochastic_rounding,
    }
}

#[test]
fn a_step_of_adamw_changes_parameters_and_moments_in_place() {
    let tensors = [0, 1, 2, 3, 4].map(|id| f32(id, &[2]));
    let inputs: Vec<&TensorRef> = tensors.iter().collect();
    let numbers = [[4.0, -2.0], [2.0, -4.0], [1.0, 0.0], [8.0, 0.0], [100.0, 0.0]];
    let given = |count: usize| numbers[..count].iter().map(|n| values(&[2], n).into()).collect::<Vec<Value>>();
    for (amsgrad, root) in [(false, 28.0_f32.sqrt()), (true, 400.0_f32.sqrt())] {
        let count = if amsgrad { 5 } else { 4 };
        let op = Op::AdamW(adamw(&tensors, amsgrad, false));
        let ran = run(op, &inputs[..count], &[&tensors[0]], given(count), (1, 1));
        let changed: Vec<(usize, Vec<f32>)> =
            ran.changed.iter().map(|(at, value)| (*at, value.on(0).to_f32())).collect();
        // Moments 0.5 * 1 + 0.5 * 2 and 0.75 * 8 + 0.25 * 4; for the second element -2 and 4.
        let first = 4.0 - 0.5 * (1.5 / 0.5) / (root + 0.25) - 0.5 * 0.125 * 4.0;
        let second = -2.0 - 0.5 * (-2.0 / 0.5) / (4.0 + 0.25) + 0.5 * 0.125 * 2.0;
        assert_eq!(changed[1..3], [(2, vec![1.5, -2.0]), (3, vec![7.0, 4.0])]);
        assert_eq!(changed.get(3), amsgrad.then(|| (4, vec![100.0, 4.0])).as_ref());
        let (at, found) = &changed[0];
        assert!(*at == 0 && (found[0] - first).abs() < 1e-6 && (found[1] - second).abs() < 1e-6, "{found:?}");
        assert_eq!(&ran.outputs[0].on(0).to_f32(), found);
    }
    let error = refused(Op::AdamW(adamw(&tensors, false, true)), &inputs, &[&tensors[0]]);
    assert!(error.contains("stochastic rounding"), "{error}");
}

/// Attention of one head, two positions and size 1, and of its gradient.
fn attention(mask_type: u32, dropout_probability: f32) -> (SDPAForwardOp, SDPABackwardOp, Vec<TensorRef>) {
    let four = |id: u32| f32(id, &[1, 1, 2, 1]);
    let (query, key, value, gradient, out) = (four(0), four(1), four(2), four(3), four(4));
    let sums = f32(5, &[1, 1, 2, 32]);
    let forward = SDPAForwardOp {
        query: query.clone(),
        key: key.clone(),
        value: value.clone(),
        attention_mask: None,
        mask_type,
        dropout_probability,
        return_intermediates: true,
        out: out.clone(),
        intermediates: Some(sums.clone()),
    };
    let backward = SDPABackwardOp {
        grad_output: gradient.clone(),
        attn_output: out.clone(),
        query: query.clone(),
        key: key.clone(),
        value: value.clone(),
        intermediates: sums.clone(),
        attention_mask: None,
        mask_type,
        dropout_probability,
        grad_query: four(6),
        grad_key: four(7),
        grad_value: four(8),
    };
    (forward, backward, vec![query, key, value, gradient, four(6), four(7), four(8), out])
}

/// The result, and gradients by differences of the forward operation alone.
#[test]
fn attention_and_its_gradient_run_one_after_the_other() {
    let (forward, backward, tensors) = attention(1, 0.0);
    let [query, key, value, gradient, gq, gk, gv, out] = &tensors[..] else { panic!("eight tensors") };
    let operations = vec![operation(Op::SDPAForward(forward)), operation(Op::SDPABackward(backward))];
    let model = model(vec![program("main", &[query, key, value, gradient], &[out, gq, gk, gv], operations)]);
    let mut session = Engine::native(Options::default()).session(&model).unwrap();
    let start = [[0.5, -1.0], [1.5, 0.25], [2.0, -3.0], [1.0, 0.5]];
    let mut outputs = |numbers: &[[f32; 2]; 4]| -> Vec<Vec<f32>> {
        let given = numbers.iter().map(|n| values(&[1, 1, 2, 1], n).into()).collect();
        let ran = session.run(0, given, &mut ()).unwrap_or_else(|error| panic!("{error}"));
        ran.outputs.iter().map(|value| value.on(0).to_f32()).collect()
    };
    let found = outputs(&start);
    let loss = |out: &[f32]| f64::from(out[0]) * 1.0 + f64::from(out[1]) * 0.5;
    for operand in 0..3 {
        for at in 0..2 {
            let mut moved = |step: f32| {
                let mut numbers = start;
                numbers[operand][at] += step;
                loss(&outputs(&numbers)[0])
            };
            let slope = (moved(0.01) - moved(-0.01)) / 0.02;
            let gradient = f64::from(found[1 + operand][at]);
            assert!((slope - gradient).abs() < 1e-3, "operand {operand}, {at}: {slope}, not {gradient}");
        }
    }
    // The first query sees the first key only.
    assert_eq!(found[0][0], 2.0);
}

#[test]
fn attention_for_training_with_dropout_or_a_missing_mask_is_refused() {
    for (mask_type, dropout, expected) in
        [(1, 0.5, "dropout in attention"), (2, 0.0, "none is given"), (7, 0.0, "mask_type 7")]
    {
        let (forward, backward, tensors) = attention(mask_type, dropout);
        let [query, key, value, gradient, .., out] = &tensors[..] else { panic!("eight tensors") };
        let error = refused(Op::SDPAForward(forward), &[query, key, value], &[out]);
        assert!(error.contains(expected), "{error}");
        let inputs = [query, key, value, gradient, out, &f32(5, &[1, 1, 2, 32])];
        let error = refused(Op::SDPABackward(backward), &inputs, &[&tensors[4]]);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_norm_over_devices_uses_the_squares_of_all() {
    let (input, weight, out) = (f32(0, &[1, 2]), f32(1, &[1, 2]), f32(9, &[1, 2]));
    let op = DistributedRMSNormOp {
        input: input.clone(),
        weight: Some(weight.clone()),
        residual: None,
        cluster_axis: 1,
        epsilon: 0.0,
        sub_device_id: None,
        memory_config: None,
        num_links: None,
        topology: None,
        compute_config: None,
        stats: None,
        program_config: None,
        out: out.clone(),
        semaphore: None,
    };
    let each = |numbers: [[f32; 2]; 2]| Value::shards(numbers.map(|n| values(&[1, 2], &n)).into()).unwrap();
    let given = vec![each([[1.0, 1.0], [1.0, 5.0]]), each([[1.0, 2.0], [3.0, 4.0]])];
    let ran = run(Op::DistributedRMSNorm(op), &[&input, &weight], &[&out], given, (1, 2));
    // The mean of the squares 1, 1, 1 and 25 is 7.
    let scale = 1.0 / 7.0_f32.sqrt();
    let found: Vec<Vec<f32>> = ran.outputs[0].tensors().map(Tensor::to_f32).collect();
    for (found, wanted) in found.iter().zip([[1.0, 2.0], [3.0, 20.0]]) {
        assert!(found.iter().zip(wanted).all(|(f, w)| (f - w * scale).abs() < 1e-6), "{found:?}");
    }
}

#[test]
fn a_router_gives_the_best_experts_and_their_weights() {
    let (input, weight, bias) = (f32(0, &[1, 2]), f32(1, &[2, 4]), f32(2, &[1, 4]));
    let (experts, weights) = (tensor(8, DataType::UInt16, &[1, 2]), f32(9, &[1, 2]));
    let op = |num_experts| {
        Op::TopKRouterGpt(TopKRouterGptOp {
            input: input.clone(),
            weight: weight.clone(),
            bias: bias.clone(),
            k: 2,
            num_experts,
            expert_indices: experts.clone(),
            expert_weights: weights.clone(),
        })
    };
    let given = [
        (&[1, 2][..], &[1.0, 2.0][..]),
        (&[2, 4], &[1.0, 0.0, 2.0, 0.0, 0.0, 3.0, 0.0, 1.0]),
        (&[1, 4], &[0.0, 0.0, 5.0, 0.0]),
    ];
    let given: Vec<Value> = given.iter().map(|(shape, numbers)| values(shape, numbers).into()).collect();
    let ran = run(op(4), &[&input, &weight, &bias], &[&experts, &weights], given, (1, 1));
    // Logits are 1, 6, 7 and 2.
    assert_eq!(ran.outputs[0].on(0).to_i64(), [2, 1]);
    let found = ran.outputs[1].on(0).to_f32();
    let wanted = 1.0 / (1.0 + (-1.0_f32).exp());
    assert!((found[0] - wanted).abs() < 1e-6 && (found[0] + found[1] - 1.0).abs() < 1e-6, "{found:?}");
    let error = refused(op(128), &list(&[&input, &weight, &bias]).iter().collect::<Vec<_>>(), &[&experts, &weights]);
    assert!(error.contains("num_experts is 128"), "{error}");
}

/// Each device has a run of the queries, and sees the keys before its run, too.
#[test]
fn scores_for_sparse_attention_follow_the_run_of_queries_of_each_device() {
    let (query, key, weights) = (f32(0, &[1, 1, 1, 1]), f32(1, &[1, 1, 4, 1]), f32(2, &[1, 1, 1, 1]));
    let out = f32(9, &[1, 1, 1, 4]);
    let op = Op::IndexerScoreDsa(IndexerScoreDsaOp {
        query: query.clone(),
        key: key.clone(),
        weights: weights.clone(),
        chunk_start_idx: 1,
        out: out.clone(),
        cluster_axis: Some(1),
    });
    let same = |shape: &[usize], numbers: &[f32]| Value::shards(vec![values(shape, numbers); 2]).unwrap();
    let given =
        vec![same(&[1, 1, 1, 1], &[2.0]), same(&[1, 1, 4, 1], &[1.0, -1.0, 3.0, 4.0]), same(&[1, 1, 1, 1], &[0.5])];
    let ran = run(op, &[&query, &key, &weights], &[&out], given, (1, 2));
    let found: Vec<Vec<f32>> = ran.outputs[0].tensors().map(Tensor::to_f32).collect();
    let none = f32::NEG_INFINITY;
    assert_eq!(found, [[1.0, 0.0, none, none], [1.0, 0.0, 3.0, none]]);
}
