//! Softmax and normalisation by one kernel for whole rows: against the reference semantics, and
//! that rows which it cannot have are composed of stages.

use crate::chip::common::build::{model, operation, program, tensor};
use crate::chip::{BF16, BLOCKS, array, same, same_of, same_on};
use proptest::prelude::*;
use tilework_abi::board::Board;
use tilework_abi::l1::WORKER;
use tilework_engine::{Comparison, Engine, Options, Session, Value};
use tilework_model::common::DataType;
use tilework_model::ttnn::ops::normalization::{LayerNormOp, RMSNormOp, SoftmaxOp};
use tilework_model::ttnn::{Op, TensorRef};
use tilework_onchip::OnChip;
use tilework_ops::{Shape, Tensor};
use tilework_runtime::{Device, DeviceConfig};
use tilework_sim::{Chip, ChipConfig};

fn softmax(input: &TensorRef, out: &TensorRef) -> Op {
    let (input, out) = (input.clone(), out.clone());
    Op::Softmax(SoftmaxOp { input, out, dimension: -1, numeric_stable: true, compute_config: None })
}

fn layer_norm(input: &TensorRef, [weight, bias]: [Option<&TensorRef>; 2], out: &TensorRef) -> Op {
    Op::LayerNorm(LayerNormOp {
        input: input.clone(),
        weight: weight.cloned(),
        bias: bias.cloned(),
        epsilon: 1e-5,
        memory_config: None,
        out: out.clone(),
    })
}

fn rms_norm(input: &TensorRef, [weight, bias]: [Option<&TensorRef>; 2], out: &TensorRef) -> Op {
    Op::RMSNorm(RMSNormOp {
        input: input.clone(),
        weight: weight.cloned(),
        bias: bias.cloned(),
        epsilon: 1e-5,
        memory_config: None,
        out: out.clone(),
        compute_config: None,
    })
}

/// The names of the programs of one operation, whose result is that of host arithmetic.
fn programs(op: Op, inputs: &[&TensorRef], out: &TensorRef) -> Vec<String> {
    let model = model(vec![program("main", inputs, &[out], vec![operation(op)])]);
    let device =
        Device::open(Chip::new(ChipConfig::new(Board::P100)).unwrap(), DeviceConfig::new(Board::P100)).unwrap();
    let mut session = Session::on(&model, Options::default(), OnChip::new(device, true)).unwrap();
    let values = || inputs.iter().zip(1..).map(|(of, seed)| Value::from(array(of, seed))).collect::<Vec<_>>();
    let found = session.run(0, values(), &mut ()).unwrap();
    let expected = Engine::native(Options::default()).session(&model).unwrap().run(0, values(), &mut ()).unwrap();
    let [found, expected] = [&found, &expected].map(|run| run.outputs[0].single().unwrap());
    let comparison = Comparison::of(found, expected, BF16).unwrap();
    assert!(comparison.passes(), "{comparison}");
    let records = session.machine().records().iter();
    records
        .flat_map(|record| record.stages.iter().filter(|stage| stage.cores > 0).map(|stage| stage.name.to_string()))
        .collect()
}

/// Shapes of one to three dimensions, of any width.
fn shapes() -> impl Strategy<Value = Vec<i32>> {
    (prop::collection::vec(1..4_i32, 0..2), 1..100_i32, 1..260_i32)
        .prop_map(|(outer, rows, columns)| outer.into_iter().chain([rows, columns]).collect())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn softmax_of_rows(dims in shapes()) {
        let (input, out) = (tensor(1, DataType::BFloat16, &dims), tensor(2, DataType::BFloat16, &dims));
        same(softmax(&input, &out), &[&input], &out, BF16);
    }

    #[test]
    fn norms_of_rows(dims in shapes(), given in any::<[bool; 2]>(), centred in any::<bool>()) {
        // A row of few elements may have no variance.
        prop_assume!(dims[dims.len() - 1] > 4);
        let (input, out) = (tensor(1, DataType::BFloat16, &dims), tensor(2, DataType::BFloat16, &dims));
        let vectors = [3, 4].map(|id| tensor(id, DataType::BFloat16, &dims[dims.len() - 1..]));
        let vectors = [0, 1].map(|i| given[i].then_some(&vectors[i]));
        let inputs: Vec<&TensorRef> = std::iter::once(&input).chain(vectors.into_iter().flatten()).collect();
        let op = if centred { layer_norm(&input, vectors, &out) } else { rms_norm(&input, vectors, &out) };
        same(op, &inputs, &out, BF16);
    }

    /// Types of blocks, whose rows end with their tiles.
    #[test]
    fn blocks(rows in 1..70_i32, columns in 1..6_i32, which in 0..3_usize) {
        let dims = [rows, 32 * columns];
        let of = |id, i: usize| tensor(id, if which == i { DataType::BFloat16 } else { DataType::BFP_BFloat8 }, &dims);
        let (input, out) = (of(1, 0), of(2, 1));
        same(softmax(&input, &out), &[&input], &out, BLOCKS);
        same(layer_norm(&input, [None, None], &out), &[&input], &out, BLOCKS);
    }

    /// Rows whose elements are far from zero, of either sign, and far apart.
    #[test]
    fn rows_far_from_zero(base in -300..300_i32, step in 16..40_i32, columns in 40..100_i32) {
        let dims = [33, columns];
        let (input, out) = (tensor(1, DataType::BFloat16, &dims), tensor(2, DataType::BFloat16, &dims));
        let values = || {
            let near = array(&input, 1);
            let numbers: Vec<f32> = near.to_f32().iter().map(|x| x * step as f32 + base as f32).collect();
            let shape = Shape::new(vec![33, columns as usize]).unwrap();
            vec![Value::from(Tensor::from_f32(near.dtype(), shape, &numbers).unwrap())]
        };
        same_of(vec![softmax(&input, &out)], &[&input], &values, &[&out], BF16);
        same_of(vec![layer_norm(&input, [None, None], &out)], &[&input], &values, &[&out], BF16);
    }
}

/// Elements that a mask leaves out: infinity or a large number with a sign, also in a whole row of
/// tiles.
#[test]
fn softmax_of_masked_rows() {
    for (least, columns) in [(f32::NEG_INFINITY, 70), (f32::NEG_INFINITY, 128), (-1e30, 100), (-3e38, 64)] {
        let dims = [40, columns];
        let (input, out) = (tensor(1, DataType::BFloat16, &dims), tensor(2, DataType::BFloat16, &dims));
        let values = || {
            let near = array(&input, 1);
            let mut numbers = near.to_f32();
            for (row, numbers) in numbers.chunks_mut(columns as usize).enumerate() {
                // A triangle; the first row keeps one element, and one row of finite numbers none.
                let kept = if row == 7 && least.is_finite() { 0 } else { row + 1 };
                numbers.iter_mut().skip(kept).for_each(|x| *x = least);
            }
            let shape = Shape::new(vec![40, columns as usize]).unwrap();
            vec![Value::from(Tensor::from_f32(near.dtype(), shape, &numbers).unwrap())]
        };
        same_of(vec![softmax(&input, &out)], &[&input], &values, &[&out], BF16);
    }
}

/// More rows of tiles than workers, so that some have several.
#[test]
fn many_rows_for_a_core() {
    let dims = [1, 150 * 32 + 3, 70];
    let (input, out) = (tensor(1, DataType::BFloat16, &dims), tensor(2, DataType::BFloat16, &dims));
    let weight = tensor(3, DataType::BFloat16, &[70]);
    let values = |inputs: &[&TensorRef]| {
        let arrays = inputs.iter().zip(1..).map(|(of, seed)| Value::from(array(of, seed)));
        arrays.collect::<Vec<_>>()
    };
    let op = softmax(&input, &out);
    same_on(Board::P150, vec![op], &[&input], &|| values(&[&input]), &[&out], BF16);
    let inputs = [&input, &weight];
    let op = layer_norm(&input, [Some(&weight), None], &out);
    same_on(Board::P150, vec![op], &inputs, &|| values(&inputs), &[&out], BF16);
}

#[test]
fn which_programs_rows_have() {
    let of = |id, data_type, width: i32| tensor(id, data_type, &[40, width]);
    let (bf16, f32) = (DataType::BFloat16, DataType::Float32);
    let (x, y) = (of(1, bf16, 70), of(2, bf16, 70));
    assert_eq!(programs(softmax(&x, &y), &[&x], &y), ["softmax-rows"]);
    assert_eq!(programs(layer_norm(&x, [None, None], &y), &[&x], &y), ["layer-norm-rows"]);
    assert_eq!(programs(rms_norm(&x, [None, None], &y), &[&x], &y), ["rms-norm-rows"]);
    // Float32 keeps its bits.
    let (x, y) = (of(1, f32, 70), of(2, f32, 70));
    assert_eq!(programs(rms_norm(&x, [None, None], &y), &[&x], &y), ["mean-square", "rms-norm"]);
    // A row of this width does not fit into L1.
    let (x, y) = (tensor(1, bf16, &[2, 9000]), tensor(2, bf16, &[2, 9000]));
    assert_eq!(programs(softmax(&x, &y), &[&x], &y), ["softmax-max", "softmax-sum", "softmax"]);
}

/// Tiles of the widest row that fits into a worker's L1, if each takes so many bytes beside
/// `fixed` ones.
fn widest(of_each: u32, fixed: u32) -> i32 {
    let room = WORKER.data_end.get() - WORKER.data.get();
    i32::try_from((room - fixed) / of_each).unwrap()
}

/// The widest rows that fit into L1 have the kernel for whole rows; one tile more, and many more,
/// are composed of stages. Neither is left to the host (`--strict`).
#[test]
fn rows_as_wide_as_l1_and_wider() {
    let of = |id, width: i32| tensor(id, DataType::BFloat16, &[3, width]);
    // Argument, result and terms; two pages of float32 and one of bfloat16.
    let softmax_tiles = widest(2 * 2048 + 4096, 2 * 4096 + 2048);
    let layer_norm_tiles = widest(2 * 2048 + 4096, 4 * 4096 + 2048);
    let rms_norm_tiles = widest(2 * 2048, 4 * 4096 + 2048);
    let weighted_tiles = widest(2 * 2048 + 2 * (2048 + 4096), 4 * 4096 + 2048);
    for (wider, whole) in [(0, true), (1, false), (700, false)] {
        let (x, y) = (of(1, 32 * (softmax_tiles + wider) - 3), of(2, 32 * (softmax_tiles + wider) - 3));
        assert_eq!(programs(softmax(&x, &y), &[&x], &y) == ["softmax-rows"], whole, "{wider} tiles wider");
    }
    for (wider, whole) in [(0, true), (1, false)] {
        let (x, y) = (of(1, 32 * (layer_norm_tiles + wider) - 3), of(2, 32 * (layer_norm_tiles + wider) - 3));
        let names = programs(layer_norm(&x, [None, None], &y), &[&x], &y);
        assert_eq!(names == ["layer-norm-rows"], whole, "{wider} tiles wider");
        let (x, y) = (of(1, 32 * (rms_norm_tiles + wider) - 3), of(2, 32 * (rms_norm_tiles + wider) - 3));
        let names = programs(rms_norm(&x, [None, None], &y), &[&x], &y);
        assert_eq!(names == ["rms-norm-rows"], whole, "{wider} tiles wider");
    }
    for (wider, whole) in [(0, true), (1, false), (700, false)] {
        let width = 32 * (weighted_tiles + wider) - 3;
        let (x, y) = (of(1, width), of(2, width));
        let [weight, bias] = [3, 4].map(|id| tensor(id, DataType::BFloat16, &[width]));
        let names = programs(rms_norm(&x, [Some(&weight), Some(&bias)], &y), &[&x, &weight, &bias], &y);
        assert_eq!(names == ["rms-norm-rows"], whole, "{wider} tiles wider");
    }
}
