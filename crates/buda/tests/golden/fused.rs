//! Fused operations: schedules against the same operations one after another.

use proptest::prelude::*;
use tilework_buda::Tensor;
use tilework_buda::op::{Context, Reason, binary, matmul, reduce, unary};
use tilework_buda::tm;
use tilework_netlist::types::{
    BinaryKind, Blocks, Dim, FusedOp, FusedSource, FusedStep, FusedTarget, Matmul, OpKind, Position, Post, ReduceDim,
    Relu, ReluMode, Size, Tm, UnaryKind, VectorMode,
};

use crate::common::{SMALL, at, blocks, shape};
use crate::integers::product;

use FusedSource::{Dest, Input, Intermed};

fn fused(op: &FusedOp, inputs: &[&Tensor], blocks: &Blocks) -> Result<Tensor, Reason> {
    tilework_buda::fused::fused(op, inputs, blocks, &mut Context::default())
}

/// A step of these sources and TMs; blocks are an mblock of this size.
fn step(
    name: &str,
    kind: OpKind,
    inputs: &[(FusedSource, &[Tm])],
    output: FusedTarget,
    (r, c): (u32, u32),
) -> FusedStep {
    FusedStep {
        name: name.into(),
        at: Position::default(),
        kind,
        post: Post::default(),
        inputs: inputs.iter().map(|(source, tms)| (*source, tms.to_vec())).collect(),
        output,
        mblock: Size { r, c },
        ublock: Size { r: 1, c: 1 },
        pop: Vec::new(),
        pop_last: Vec::new(),
    }
}

fn popping(step: FusedStep, sources: &[FusedSource]) -> FusedStep {
    FusedStep { pop: sources.to_vec(), ..step }
}

fn op(inputs: u32, intermediates: u32, steps: Vec<FusedStep>) -> FusedOp {
    FusedOp { id: 0, at: Position::default(), inputs, intermediates, schedules: vec![steps] }
}

fn random(t: usize, rows: usize, columns: usize, seed: u32) -> Tensor {
    let mut state = seed;
    Tensor::from_fn(shape(t, 4 * rows, 4 * columns), SMALL, |_, _, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as f32 / 32768.0 - 1.0
    })
    .unwrap()
}

const MULTIPLY: OpKind = OpKind::Binary(BinaryKind::Multiply);
const SUBTRACT: OpKind = OpKind::Binary(BinaryKind::Subtract);
const ADD: OpKind = OpKind::Binary(BinaryKind::Add);
const EXP: OpKind = OpKind::Unary(UnaryKind::Exp);
const COPY: OpKind = OpKind::Unary(UnaryKind::Copy);
const MAX_C: OpKind = OpKind::Reduce { dim: ReduceDim::C, k: None, z: 1 };

proptest! {
    #[test]
    fn a_schedule_is_its_steps_one_after_another(t in 1usize..3, rows in 1u32..4, columns in 1u32..4, seed: u32) {
        // x - max(x) of each row, its e^x, times a second input whose first row counts for all.
        let [x, y] = [seed, !seed].map(|seed| random(t, rows as usize, columns as usize, seed));
        let whole = (rows, columns);
        let spread = [Tm::Broadcast(Dim::C, columns), Tm::TileBroadcast(Dim::C)];
        let rows_of_y = [Tm::TileBroadcast(Dim::R)];
        let schedule = vec![
            step("max", MAX_C, &[(Input(0), &[])], FusedTarget::Intermed(0), (rows, 1)),
            popping(
                step("sub", SUBTRACT, &[(Input(0), &[]), (Intermed(0), &spread)], FusedTarget::Dest, whole),
                &[Intermed(0)],
            ),
            step("exp", EXP, &[(Dest, &[])], FusedTarget::Intermed(0), whole),
            popping(
                step("mul", MULTIPLY, &[(Intermed(0), &[]), (Input(1), &rows_of_y)], FusedTarget::Output, whole),
                &[Intermed(0)],
            ),
        ];
        let got = fused(&op(2, 1, schedule), &[&x, &y], &blocks((1, 1), t as u32, whole, (1, 1))).unwrap();

        let max = reduce::reduce(ReduceDim::C, None, 1, &x).unwrap();
        let max = tm::apply(0, &spread, &max).unwrap();
        let less = binary::binary(BinaryKind::Subtract, &x, &max, &Context::default()).unwrap();
        let exp = unary::unary(UnaryKind::Exp, &less).unwrap();
        let expected = Tensor::from_fn(x.shape(), SMALL, |z, r, c| at(&exp, z, r, c) * at(&y, z, r / 4 * 4, c));
        prop_assert!(got == expected.unwrap());
    }

    #[test]
    fn each_core_sees_its_own_part(gr in 1u32..3, gc in 1u32..3, rows in 1u32..3, columns in 1u32..3, seed: u32) {
        let (rows_all, columns_all) = ((gr * rows) as usize, (gc * columns) as usize);
        let x = random(1, rows_all, columns_all, seed);
        let whole = (rows, columns);
        let out = blocks((gr, gc), 1, whole, (1, 1));
        // The maximum of a row of the core's own columns, taken from all of them.
        let spread = [Tm::Broadcast(Dim::C, columns), Tm::TileBroadcast(Dim::C)];
        let schedule = vec![
            step("max", MAX_C, &[(Input(0), &[])], FusedTarget::Intermed(0), (rows, 1)),
            step("sub", SUBTRACT, &[(Input(0), &[]), (Intermed(0), &spread)], FusedTarget::Output, whole),
        ];
        let got = fused(&op(1, 1, schedule), &[&x], &out).unwrap();
        let width = columns as usize * 4;
        let expected = Tensor::from_fn(x.shape(), SMALL, |z, r, c| {
            let own = (c / width * width..(c / width + 1) * width).map(|j| at(&x, z, r, j));
            at(&x, z, r, c) - own.fold(f32::NEG_INFINITY, f32::max)
        });
        prop_assert!(got == expected.unwrap());
        // A row of tiles for each row of cores, and one that all share.
        for own in [gr as usize, 1] {
            let y = random(1, own, columns_all, !seed);
            let down = [Tm::Broadcast(Dim::R, rows)];
            let schedule = vec![step("add", ADD, &[(Input(0), &[]), (Input(1), &down)], FusedTarget::Output, whole)];
            let got = fused(&op(2, 0, schedule), &[&x, &y], &out).unwrap();
            let height = rows as usize * 4;
            let expected = Tensor::from_fn(x.shape(), SMALL, |z, r, c| {
                let core = if own == 1 { 0 } else { r / height };
                at(&x, z, r, c) + at(&y, z, core * 4 + r % 4, c)
            });
            prop_assert!(got == expected.unwrap());
        }
    }
}

#[test]
fn steps_have_their_own_relu_and_vector() {
    let tile = Size { r: 8, c: 4 };
    let x = Tensor::from_fn(shape(1, 8, 4), tile, |_, r, c| ((r * 4 + c) % 7) as f32 - 3.0).unwrap();
    let mut first = step("exp", EXP, &[(Input(0), &[])], FusedTarget::Dest, (1, 1));
    first.post = Post { relu: Some(Relu { mode: ReluMode::Min, threshold: 1.0 }), vector: Some(VectorMode::R) };
    let last = step("copy", COPY, &[(Dest, &[])], FusedTarget::Output, (1, 1));
    let out = Blocks { tile, ..blocks((1, 1), 1, (1, 1), (1, 1)) };
    let got = fused(&op(1, 0, vec![first, last]), &[&x], &out).unwrap();
    let exp = unary::unary(UnaryKind::Exp, &x).unwrap();
    let expected = Tensor::from_fn(x.shape(), tile, |z, r, c| match at(&exp, z, r, c) {
        v if v >= 1.0 && r < 4 => v,
        _ => 0.0,
    });
    assert_eq!(got, expected.unwrap());
}

#[test]
fn products_within_a_schedule() {
    let (a, b) = (random(2, 2, 3, 1), random(2, 3, 2, 2));
    let attributes = Matmul { m_k: 3, ..product() };
    let schedule = vec![
        step("exp", EXP, &[(Input(0), &[])], FusedTarget::Intermed(0), (2, 3)),
        popping(
            step(
                "mm",
                OpKind::Matmul(attributes.clone()),
                &[(Intermed(0), &[]), (Input(1), &[])],
                FusedTarget::Output,
                (2, 2),
            ),
            &[Intermed(0)],
        ),
    ];
    let got = fused(&op(2, 1, schedule), &[&a, &b], &blocks((1, 1), 2, (2, 2), (1, 1))).unwrap();
    let expected =
        matmul::matmul(&attributes, &[&unary::unary(UnaryKind::Exp, &a).unwrap(), &b], &mut Context::default())
            .unwrap();
    assert_eq!(got, expected);
}

#[test]
fn buffers_that_hold_the_wrong_thing_are_named() {
    let x = random(1, 1, 1, 5);
    let one = (1, 1);
    let run = |intermediates, steps: Vec<FusedStep>| {
        fused(&op(1, intermediates, steps), &[&x], &blocks((1, 1), 1, (1, 1), (1, 1))).unwrap_err().to_string()
    };
    let first = |target| step("first", EXP, &[(Input(0), &[])], target, one);
    let again = run(2, vec![first(FusedTarget::Intermed(1)), first(FusedTarget::Intermed(1))]);
    assert_eq!(again, "step first: intermed1 is written again before it was popped");
    let never = run(1, vec![first(FusedTarget::Intermed(0))]);
    assert_eq!(never, "output is written by no step");
    let read = |source| step("second", COPY, &[(source, &[])], FusedTarget::Output, one);
    let empty = run(2, vec![read(Intermed(1))]);
    assert_eq!(empty, "step second: intermed1 holds nothing: it was not written, or popped before");
    let between = step("between", COPY, &[(Input(0), &[])], FusedTarget::Intermed(0), one);
    let lost = run(1, vec![first(FusedTarget::Dest), between, read(Dest)]);
    assert_eq!(lost, "step second: dest holds nothing: only the step before can have written it");
    assert_eq!(run(0, vec![read(Input(1))]), "step second: input1 is no input of the fused operation");
    let undeclared = run(1, vec![first(FusedTarget::Intermed(u32::MAX))]);
    assert!(undeclared.contains("not among the intermediates"), "{undeclared}");
    let large = run(0, vec![step("large", COPY, &[(Input(0), &[])], FusedTarget::Output, (2, 1))]);
    assert!(large.starts_with("step large: its operands give 1x4x4 where its grid, blocks and t say 1x8x4"), "{large}");
    let huge = run(0, vec![step("huge", COPY, &[(Input(0), &[])], FusedTarget::Output, (u32::MAX, u32::MAX))]);
    assert!(huge.starts_with("step huge: "), "{huge}");
    let wrong = fused(&op(2, 0, Vec::new()), &[&x], &blocks((1, 1), 1, (1, 1), (1, 1)));
    assert!(matches!(wrong, Err(Reason::Operands { found: 1, .. })));
}
