//! Quantised and integer operations against the original's golden sources (`ops/mm_bare.cpp`,
//! `ops/eltwise_binary_bare.cpp`, `ops/fused_op.cpp`, `golden/golden_digraph.cpp`).

use tilework_buda::golden::{self, Options};
use tilework_buda::op::Notes;
use tilework_buda::{Tensor, op::OpError};
use tilework_dtype::DType;
use tilework_netlist::types::{
    BinaryKind, FusedId, FusedOp, FusedSource, FusedStep, FusedTarget, Identity, Matmul, Netlist, OpKind, Operand,
    Position, Post, QuantKind, Relu, ReluMode, Size, UnaryKind,
};

use crate::common::{netlist, shape};

const TILE: Size = Size { r: 32, c: 32 };

/// A netlist of one operation on single tiles: formats of its inputs and of its result. It takes
/// the place of a copy.
pub(crate) fn single(kind: OpKind, inputs: &[DType], out: DType) -> Netlist {
    let mut netlist = netlist(&[(1, 1, 1)], (1, 1, 1), "Float32", "type: nop");
    let op = &mut netlist.graphs[0].ops[0];
    (op.kind, op.acc_format, op.intermed_format, op.out_format) = (kind, DType::I32, DType::I32, out);
    let operand = op.inputs[0].clone();
    op.inputs = inputs.iter().map(|format| Operand { format: *format, ..operand.clone() }).collect();
    netlist
}

fn run(netlist: &Netlist, inputs: &[&Tensor]) -> Tensor {
    with_notes(netlist, inputs).unwrap().0
}

fn with_notes(netlist: &Netlist, inputs: &[&Tensor]) -> Result<(Tensor, Notes), OpError> {
    golden::execute_with(netlist, &netlist.graphs[0].ops[0], inputs, None, Options::default())
}

/// A tile whose rows begin with these values; the rest is zero.
fn tile(rows: &[&[f32]]) -> Tensor {
    let value = |r: usize, c: usize| rows.get(r).and_then(|row| row.get(c)).copied().unwrap_or(0.0);
    Tensor::from_fn(shape(1, 32, 32), TILE, |_, r, c| value(r, c)).unwrap()
}

fn full(value: f32) -> Tensor {
    Tensor::full(shape(1, 32, 32), TILE, value).unwrap()
}

fn row(x: &Tensor, r: usize, count: usize) -> Vec<f32> {
    x.values()[r * 32..][..count].to_vec()
}

pub(crate) const fn product() -> Matmul {
    Matmul {
        m_k: 1,
        u_kt: 1,
        bias: false,
        accumulate: None,
        l1_acc: false,
        gelu: false,
        requant: false,
        dequant: false,
        zero_point: 0.0,
        identity: None,
    }
}

/// An identity product of one index tile and one sparse tile.
pub(crate) const fn one_index_tile() -> Identity {
    Identity {
        num_index_tiles: 1,
        num_sparse_tiles: 1,
        num_columns: 1,
        sparse_tile_ptr_bits: 5,
        sparse_ublock_idx_bits: 4,
        indices_len: 0,
        fracture_factor: 1,
        starting_row: 0,
        act_t: 1,
        num_nz_strips: Vec::new(),
    }
}

/// The unit matrix, so that a product is its other operand.
fn unit() -> Tensor {
    Tensor::from_fn(shape(1, 32, 32), TILE, |_, r, c| if r == c { 1.0 } else { 0.0 }).unwrap()
}

/// A fused operation of these steps, with its inputs' formats.
pub(crate) fn fused(steps: Vec<FusedStep>, inputs: &[DType], intermed: DType, out: DType) -> Netlist {
    let mut netlist = single(OpKind::Fused(FusedId(0)), inputs, out);
    netlist.graphs[0].ops[0].intermed_format = intermed;
    let count = u32::try_from(inputs.len()).unwrap();
    netlist.fused_ops =
        vec![FusedOp { id: 0, at: Position::default(), inputs: count, intermediates: 1, schedules: vec![steps] }];
    netlist
}

pub(crate) fn step(kind: OpKind, inputs: &[FusedSource], output: FusedTarget) -> FusedStep {
    let one = Size { r: 1, c: 1 };
    let intermed = |source: &&FusedSource| matches!(source, FusedSource::Intermed(_));
    FusedStep {
        name: "step".into(),
        at: Position::default(),
        kind,
        post: Post::default(),
        inputs: inputs.iter().map(|source| (*source, Vec::new())).collect(),
        output,
        mblock: one,
        ublock: one,
        pop: inputs.iter().filter(intermed).copied().collect(),
        pop_last: Vec::new(),
    }
}

const fn quant(kind: QuantKind, zero_point: f32) -> OpKind {
    OpKind::Quant { kind, zero_point }
}

use DType::{F32, I8, I32, RawU32};
use FusedSource::{Dest, Input, Intermed};
use FusedTarget::Output;
use QuantKind::{Dequantize, Quantize, Requantize};

#[test]
fn a_dequantisation_subtracts_the_zero_point() {
    let (x, scales) = (tile(&[&[10.0, 3.0, -5.0]]), full(0.5));
    let wanted = [3.5, 0.0, -4.0];
    let alone = run(&single(quant(Dequantize, 3.0), &[I32, F32], F32), &[&x, &scales]);
    assert_eq!(row(&alone, 0, 3), wanted);
    let matmul = OpKind::Matmul(Matmul { dequant: true, zero_point: 3.0, ..product() });
    let of_product = run(&single(matmul, &[I8, I8, F32], F32), &[&x, &unit(), &scales]);
    assert_eq!(row(&of_product, 0, 3), wanted);
    let steps = vec![step(quant(Dequantize, 3.0), &[Input(0), Input(1)], Output)];
    let in_fused = run(&fused(steps, &[I32, F32], I32, F32), &[&x, &scales]);
    assert_eq!(row(&in_fused, 0, 3), wanted);
}

/// Its first input is the scales then.
#[test]
fn a_fused_dequantisation_of_dest_takes_dest_as_the_value() {
    let (x, scales) = (tile(&[&[10.0, 3.0, -5.0]]), full(0.5));
    let copy = step(OpKind::Unary(UnaryKind::Copy), &[Input(0)], FusedTarget::Dest);
    let steps = vec![copy.clone(), step(quant(Dequantize, 3.0), &[Input(1), Dest], Output)];
    let got = run(&fused(steps, &[I32, F32], I32, F32), &[&x, &scales]);
    assert_eq!(row(&got, 0, 3), [3.5, 0.0, -4.0]);
    // A requantisation is the same either way.
    let steps = vec![copy, step(quant(Requantize, 1.0), &[Input(1), Dest], Output)];
    let got = run(&fused(steps, &[I32, F32], I32, I8), &[&x, &scales]);
    assert_eq!(row(&got, 0, 3), [6.0, 3.0, -2.0]);
}

#[test]
fn a_product_of_integers_adds_its_bias_element_by_element() {
    let (x, bias) = (tile(&[&[1.0], &[2.0]]), tile(&[&[10.0], &[20.0], &[30.0]]));
    let column = |x: &Tensor| [0, 1, 2].map(|r| x.values()[r * 32]);
    let biased = Matmul { bias: true, ..product() };
    let dense = |formats: &[DType], out| {
        column(&run(&single(OpKind::Matmul(biased.clone()), formats, out), &[&x, &unit(), &bias]))
    };
    assert_eq!(dense(&[I8, I8, I32], I32), [11.0, 22.0, 30.0]);
    assert_eq!(dense(&[F32, F32, F32], F32), [11.0, 12.0, 10.0], "row 0 of each tile counts for floats");
    // A depthwise product adds row 0 whatever the formats.
    let deep = single(OpKind::Depthwise(biased.clone()), &[I8, I8, I32], I32);
    assert_eq!(column(&run(&deep, &[&x, &unit(), &bias])), [11.0, 12.0, 10.0]);
    // An identity product: one strip with one tile, at row and column 0 of its ublock.
    let how = one_index_tile();
    let mut words = vec![0; 1024];
    words[..2].copy_from_slice(&[0xc000 << 16, 1 << 4 << 16 | 1]);
    let index = Tensor::from_words(shape(1, 32, 32), TILE, words).unwrap();
    let sparse = OpKind::Matmul(Matmul { identity: Some(how), ..biased });
    let sparse =
        |formats: &[DType], out| column(&run(&single(sparse.clone(), formats, out), &[&unit(), &x, &index, &bias]));
    assert_eq!(sparse(&[I8, I8, RawU32, I32], I32), [11.0, 22.0, 30.0]);
    assert_eq!(sparse(&[F32, F32, RawU32, F32], F32), [11.0, 12.0, 10.0]);
}

/// So the next step reads whole numbers from -127 to 127, whatever the buffer's format.
#[test]
fn what_a_fused_step_quantises_is_rounded_and_clamped() {
    let (x, ones) = (tile(&[&[1000.0, -1000.0, 3.0, -3.0, 2.0]]), full(0.5));
    for intermed in [I8, I32] {
        let steps = vec![
            step(quant(Requantize, 0.0), &[Input(0), Input(1)], FusedTarget::Intermed(0)),
            step(OpKind::Binary(BinaryKind::Add), &[Intermed(0), Input(2)], Output),
        ];
        let netlist = fused(steps, &[I32, F32, I32], intermed, I32);
        let got = run(&netlist, &[&x, &ones, &full(100.0)]);
        assert_eq!(row(&got, 0, 5), [227.0, -27.0, 102.0, 98.0, 101.0], "{intermed:?}");
    }
    // Sums in a buffer of Int8 are clamped; and a quantised result is Int8 in a buffer of Int32.
    let steps = vec![
        step(OpKind::Binary(BinaryKind::Add), &[Input(0), Input(0)], FusedTarget::Intermed(0)),
        step(OpKind::Unary(UnaryKind::Copy), &[Intermed(0)], Output),
    ];
    let small = tile(&[&[100.0, -100.0, 3.0]]);
    assert_eq!(row(&run(&fused(steps, &[I8], I8, I32), &[&small]), 0, 3), [127.0, -127.0, 6.0]);
    let steps = vec![step(quant(Quantize, 0.0), &[Input(0), Input(1)], Output)];
    assert_eq!(row(&run(&fused(steps, &[F32, F32], I32, I32), &[&x, &ones]), 0, 3), [127.0, -127.0, 2.0]);
}

#[test]
fn a_requantised_product_is_int8_in_a_buffer_of_int32_too() {
    let x = tile(&[&[1000.0, -1000.0, 5.0]]);
    let matmul = OpKind::Matmul(Matmul { requant: true, zero_point: 1.0, ..product() });
    for out in [I8, I32] {
        let got = run(&single(matmul.clone(), &[I8, I8, F32], out), &[&x, &unit(), &full(0.5)]);
        assert_eq!(row(&got, 0, 3), [127.0, -127.0, 4.0], "{out:?}");
    }
    let alone = run(&single(quant(Requantize, 1.0), &[I32, F32], I32), &[&x, &full(0.5)]);
    assert_eq!(row(&alone, 0, 3), [127.0, -127.0, 4.0]);
}

#[test]
fn gelu_follows_the_scales_of_a_product() {
    let matmul = |gelu| OpKind::Matmul(Matmul { gelu, dequant: true, zero_point: 4.0, ..product() });
    let x = tile(&[&[5.0, 3.0]]);
    let inputs = [&x, &unit(), &full(2.0)];
    let gelu = |x: f32| {
        let inner = (2.0 / std::f64::consts::PI).sqrt() * (f64::from(x) + 0.044715 * f64::from(x).powi(3));
        0.5 * f64::from(x) * (1.0 + inner.tanh())
    };
    let got = row(&run(&single(matmul(true), &[I8, I8, F32], F32), &inputs), 0, 2);
    for (got, x) in got.iter().zip([2.0, -2.0]) {
        assert!((f64::from(*got) - gelu(x)).abs() < 1e-6, "{got}, not {}", gelu(x));
    }
}

#[test]
fn zero_times_any_scale_is_zero() {
    let scales = full(f32::INFINITY);
    for (kind, out, wanted) in [(Quantize, I8, 2.0), (Requantize, I8, 2.0), (Dequantize, F32, 0.0)] {
        let x = full(if kind == Dequantize { 2.0 } else { 0.0 });
        let got = run(&single(quant(kind, 2.0), &[I32, F32], out), &[&x, &scales]);
        assert_eq!(row(&got, 0, 32), [wanted; 32], "{kind:?}");
    }
}

#[test]
fn relu_of_a_quantisation_comes_before_rounding() {
    let mut netlist = single(quant(Quantize, 0.0), &[F32, F32], I8);
    netlist.graphs[0].ops[0].post.relu = Some(Relu { mode: ReluMode::Min, threshold: 2.0 });
    let got = run(&netlist, &[&tile(&[&[1.9, 2.4, 2.5, -8.0, 300.0]]), &full(1.0)]);
    assert_eq!(row(&got, 0, 5), [0.0, 2.0, 3.0, 0.0, 127.0]);
}

/// Sums of two inputs as well as products: float32 skips integers there.
#[test]
fn results_in_int32_beyond_2_to_24_are_noted() {
    let add = single(OpKind::Binary(BinaryKind::Add), &[I32, I32], I32);
    let noted = |value: f32| with_notes(&add, &[&full(value), &full(1.0)]).unwrap().1.inexact;
    assert!(!noted(16_777_215.0) && noted(16_777_216.0 * 2.0) && noted(-16_777_220.0));
}
