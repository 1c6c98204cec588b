//! The same bits for any number of threads.

use crate::common;
use std::collections::HashMap;

use crate::common::build::{f32, model, operation, program, tensor};
use tilework_engine::{Engine, Event, Flow, Observer, Options, Output};
use tilework_model::Model;
use tilework_model::common::DataType;
use tilework_model::ttnn::Op;
use tilework_model::ttnn::ops::matmul::MatmulOp;
use tilework_model::ttnn::ops::normalization::SoftmaxOp;
use tilework_model::ttnn::ops::reduction::{ReductionOp, ReductionOpType};
use tilework_ops::{DType, Shape, Tensor, rand};

/// The bytes of every result of a run.
#[derive(Default)]
struct Results(HashMap<u64, Vec<Vec<u8>>>);

impl Observer for Results {
    fn after(&mut self, event: &Event<'_>, outputs: &[Output<'_>]) -> Flow {
        self.0.insert(event.sequence, outputs.iter().map(|output| output.value.on(0).to_le_bytes()).collect());
        Flow::Continue
    }
}

/// A product that is large enough to be shared, softmax of its rows, and the sum of all.
fn large() -> Model {
    let (a, b) = (tensor(0, DataType::BFloat16, &[3, 200, 333]), tensor(1, DataType::BFloat16, &[3, 333, 170]));
    let (product, softmax, sum) = (f32(2, &[3, 200, 170]), f32(3, &[3, 200, 170]), f32(9, &[1, 1, 1]));
    let operations = vec![
        operation(Op::Matmul(MatmulOp {
            a: a.clone(),
            b: b.clone(),
            out: product.clone(),
            transpose_a: false,
            transpose_b: false,
            matmul_program_config: None,
            activation: None,
            compute_config: None,
            fused_swiglu: false,
            fp32_exact: Default::default(),
        })),
        operation(Op::Softmax(SoftmaxOp {
            input: product.clone(),
            out: softmax.clone(),
            dimension: 1,
            numeric_stable: true,
            compute_config: None,
        })),
        operation(Op::Reduction(ReductionOp {
            kind: ReductionOpType::Sum,
            input: product,
            out: sum.clone(),
            dim_arg: Vec::new(),
            keep_dim: true,
            compute_config: None,
        })),
    ];
    model(vec![program("main", &[&a, &b], &[&softmax, &sum], operations)])
}

fn results(model: &Model, inputs: &[Tensor], threads: usize) -> HashMap<u64, Vec<Vec<u8>>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        let mut results = Results::default();
        let mut session = Engine::native(Options::default()).session(model).unwrap();
        let inputs = inputs.iter().map(|tensor| tensor.clone().into()).collect();
        session.run(0, inputs, &mut results).unwrap_or_else(|error| panic!("{error}"));
        results.0
    })
}

fn same_for_all(model: &Model, inputs: &[Tensor]) {
    let one = results(model, inputs, 1);
    assert!(!one.is_empty());
    for threads in [2, 3, 7] {
        assert!(results(model, inputs, threads) == one, "{threads} threads");
    }
}

#[test]
fn large_operations_give_the_same_bits() {
    let random = |shape: [usize; 3], seed| rand(Shape::new(shape).unwrap(), DType::BF16, -1.0, 1.0, seed);
    same_for_all(&large(), &[random([3, 200, 333], 1), random([3, 333, 170], 2)]);
}

#[test]
fn real_programs_give_the_same_bits() {
    for folder in common::shared::real_programs() {
        let model = Model::open(folder.join("program.ttnn")).unwrap_or_else(|error| panic!("{error}"));
        same_for_all(&model, &common::arrays(&folder, "in"));
    }
}
