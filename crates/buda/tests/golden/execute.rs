//! Whole operations of a netlist: what is done around what they compute.

use tilework_buda::golden::{self, Options};
use tilework_buda::op::{OpError, Reason};
use tilework_buda::{Tensor, format};
use tilework_dtype::DType;
use tilework_netlist::types::{
    FusedId, FusedOp, FusedSource, FusedStep, FusedTarget, Netlist, Op, OpKind, Position, Post, Relu, ReluMode, Shape,
    Size, UnaryKind,
};

use crate::common::{netlist, shape};

const TILE: Size = Size { r: 32, c: 32 };

/// Runs the operation of such a netlist.
fn run(netlist: &Netlist, inputs: &[&Tensor], previous: Option<&Tensor>) -> Result<Tensor, OpError> {
    golden::execute(netlist, op(netlist), inputs, previous)
}

fn op(netlist: &Netlist) -> &Op {
    &netlist.graphs[0].ops[0]
}

/// Values that say which tile they are in.
fn tiles(s: Shape) -> Tensor {
    Tensor::from_fn(s, TILE, |z, r, c| (100 * z + 10 * (r / 32) + c / 32) as f32).unwrap()
}

/// The first value of each tile.
fn corners(x: &Tensor) -> Vec<f32> {
    let s = x.shape();
    let places = (0..s.t * s.rows / 32).flat_map(|band| (0..s.columns / 32).map(move |c| (band * 32, c * 32)));
    places.map(|(r, c)| x.values()[r * s.columns + c]).collect()
}

#[test]
fn unpad_comes_before_tms_and_pad_after_them() {
    let text = "type: nop, input_0_tms: [hslice: 2], input_0_unpad: {rt: 1, ct: 2}, \
                input_0_pad: {rt: 1, ct: 0, pad_value: -1.0}";
    let netlist = netlist(&[(1, 2, 4)], (2, 2, 1), "Float16_b", text);
    let got = run(&netlist, &[&tiles(shape(1, 64, 128))], None).unwrap();
    assert_eq!(corners(&got), [0.0, -1.0, 1.0, -1.0]);
}

#[test]
fn relu_and_gradients() {
    let min = "type: nop, attributes: {relu_en: true, relu_threshold: 2.0, relu_mode: min}";
    let max = "type: nop, attributes: {relu_en: true, relu_threshold: 2.0, relu_mode: max}";
    let some = [-1.0, 1.9, 2.0, 3.0, f32::NAN, f32::INFINITY];
    let x = Tensor::from_fn(shape(1, 32, 32), TILE, |_, r, c| if r == 0 { some[c % 6] } else { 0.0 }).unwrap();
    let run_one = |text| run(&netlist(&[(1, 1, 1)], (1, 1, 1), "Float32", text), &[&x], None).unwrap();
    assert_eq!(run_one(min).values()[..6], [0.0, 0.0, 2.0, 3.0, 0.0, f32::INFINITY]);
    assert_eq!(run_one(max).values()[..6], [0.0, 1.9, 2.0, 2.0, 0.0, 2.0]);

    let text = "type: nop, gradient_op: true";
    let netlist = netlist(&[(1, 1, 1)], (1, 1, 1), "Float32", text);
    let (one, four) =
        (Tensor::full(shape(1, 32, 32), TILE, 1.0).unwrap(), Tensor::full(shape(1, 32, 32), TILE, 4.0).unwrap());
    assert_eq!(run(&netlist, &[&one], Some(&four)).unwrap(), Tensor::full(shape(1, 32, 32), TILE, 5.0).unwrap());
    assert_eq!(run(&netlist, &[&one], None).unwrap(), one);
    let small = Tensor::full(shape(1, 0, 32), TILE, 4.0).unwrap();
    let error = run(&netlist, &[&one], Some(&small)).unwrap_err();
    assert_eq!(error.reason, Reason::Gradient { found: one.shape(), previous: small.shape() });
    // What the output held does not matter to others.
    let mut plain = netlist.clone();
    plain.graphs[0].ops[0].gradient_op = false;
    assert_eq!(run(&plain, &[&one], Some(&four)).unwrap(), one);
}

#[test]
fn fused_operations_have_no_relu_of_their_own() {
    let mut netlist = netlist(&[(1, 1, 1)], (1, 1, 1), "Float32", "type: nop");
    let relu = Relu { mode: ReluMode::Min, threshold: 0.0 };
    netlist.graphs[0].ops[0].post.relu = Some(relu);
    let x = Tensor::full(shape(1, 32, 32), TILE, -1.0).unwrap();
    assert!(run(&netlist, &[&x], None).unwrap().values().iter().all(|&v| v == 0.0));
    let step = FusedStep {
        name: "copy".into(),
        at: Position::default(),
        kind: OpKind::Unary(UnaryKind::Copy),
        post: Post::default(),
        inputs: vec![(FusedSource::Input(0), Vec::new())],
        output: FusedTarget::Output,
        mblock: Size { r: 1, c: 1 },
        ublock: Size { r: 1, c: 1 },
        pop: Vec::new(),
        pop_last: Vec::new(),
    };
    netlist.fused_ops =
        vec![FusedOp { id: 4, at: Position::default(), inputs: 1, intermediates: 0, schedules: vec![vec![step]] }];
    netlist.graphs[0].ops[0].kind = OpKind::Fused(FusedId(0));
    assert_eq!(run(&netlist, &[&x], None).unwrap(), x);
    netlist.fused_ops[0].schedules[0][0].post.relu = Some(relu);
    assert!(run(&netlist, &[&x], None).unwrap().values().iter().all(|&v| v == 0.0));
    netlist.graphs[0].ops[0].kind = OpKind::Fused(FusedId(1));
    assert_eq!(run(&netlist, &[&x], None).unwrap_err().reason, Reason::NoFused(1));
}

#[test]
fn integer_outputs_are_rounded_and_clamped_and_others_only_on_demand() {
    let text = "type: nop";
    let netlist = netlist(&[(1, 1, 1)], (1, 1, 1), "Float32", text);
    let some = [300.0, -300.0, 1.5, -1.5, 0.4, 2f32.powi(40), 1.0 + 2f32.powi(-20)];
    let x = Tensor::from_fn(shape(1, 32, 32), TILE, |_, _, c| some[c % 7]).unwrap();
    let with = |format, options| {
        let mut changed = netlist.clone();
        changed.graphs[0].ops[0].out_format = format;
        golden::execute_with(&changed, op(&changed), &[&x], None, options).unwrap().0.values()[..7].to_vec()
    };
    let plain = Options::default();
    assert_eq!(with(DType::I8, plain), [127.0, -127.0, 2.0, -2.0, 0.0, 127.0, 1.0]);
    // 2^31 - 1 is nearest to 2^31 in float32.
    assert_eq!(with(DType::I32, plain)[..6], [300.0, -300.0, 2.0, -2.0, 0.0, 2f32.powi(31)]);
    for format in [DType::Bfp4B, DType::Bfp2, DType::Bfp8, DType::F16, DType::F32] {
        assert_eq!(with(format, plain), some, "{format:?}");
    }
    let asked = Options { quantise: true, tf32: true, ..plain };
    let rounded = |format| format::quantise(format, &x, format::Options::default()).values()[..7].to_vec();
    assert_eq!(with(DType::Bfp4B, asked), rounded(DType::Bfp4B));
    assert_eq!(with(DType::F32, asked), rounded(DType::Tf32));
    assert_eq!(with(DType::F32, Options { tf32: false, ..asked }), some);
    assert_eq!(with(DType::Bfp8, asked), some);
}

#[test]
fn the_vector_attribute_is_for_functions_only() {
    let x = Tensor::full(shape(1, 32, 32), TILE, 1.0).unwrap();
    let count = |kind: &str| {
        let text = format!("type: {kind}, attributes: {{vector: r}}");
        let netlist = netlist(&[(1, 1, 1)], (1, 1, 1), "Float16_b", &text);
        run(&netlist, &[&x], None).unwrap().values().iter().filter(|&&v| v != 0.0).count()
    };
    assert_eq!(count("exp"), 4 * 32);
    assert_eq!(count("nop"), 32 * 32);
}

#[test]
fn errors_say_which_operation_and_what_to_check() {
    let netlist = netlist(&[(1, 2, 2)], (1, 2, 2), "Float16_b", "type: nop");
    let x = tiles(shape(1, 64, 32));
    let error = run(&netlist, &[&x], None).unwrap_err();
    assert_eq!(error.reason, Reason::Output { found: x.shape(), wanted: shape(1, 64, 64) });
    let line = op(&netlist).at.line;
    let expected = format!(
        "operation op0 (line {line}): its operands give 1x64x32 where its grid, blocks and t say 1x64x64; check them \
         and the TMs"
    );
    assert_eq!(error.to_string(), expected);
    assert!(matches!(run(&netlist, &[], None).unwrap_err().reason, Reason::Operands { found: 0, .. }));
    let mut huge = netlist.clone();
    huge.graphs[0].ops[0].blocks.mblock = Size { r: u32::MAX, c: u32::MAX };
    assert!(matches!(run(&huge, &[&x], None).unwrap_err().reason, Reason::Tensor(_) | Reason::Output { .. }));
}

#[test]
fn tiles_of_another_size_are_cut_or_filled_up() {
    // A result in tiles of 16 rows where the operation has 32: the lower half is zero; and back.
    let netlist = netlist(&[(1, 2, 1)], (1, 2, 1), "Float16_b", "type: nop");
    let low = Size { r: 16, c: 32 };
    let x = Tensor::from_fn(shape(1, 32, 32), low, |_, r, _| 1.0 + r as f32).unwrap();
    let got = run(&netlist, &[&x], None).unwrap();
    assert_eq!((got.shape(), got.tile()), (shape(1, 64, 32), TILE));
    let expected = |r: usize| if r % 32 < 16 { 1.0 + (r / 32 * 16 + r % 32) as f32 } else { 0.0 };
    assert_eq!(got, Tensor::from_fn(shape(1, 64, 32), TILE, |_, r, _| expected(r)).unwrap());
    let mut small = netlist.clone();
    small.graphs[0].ops[0].blocks.tile = low;
    assert_eq!(run(&small, &[&got], None).unwrap(), x);
    // As many rows in other tiles stay where they are.
    small.graphs[0].ops[0].blocks.mblock = Size { r: 4, c: 1 };
    let cut = run(&small, &[&got], None).unwrap();
    assert_eq!((cut.values(), cut.tile()), (got.values(), low));
}
