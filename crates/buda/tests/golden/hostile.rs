//! Operations with senseless attributes, shapes and TMs: an answer each time, never a panic, and no
//! memory beyond bounds.

use proptest::prelude::*;
use tilework_buda::golden::{self, Options};
use tilework_buda::{Tensor, op::Precision};
use tilework_dtype::DType;
use tilework_netlist::types::{
    BinaryKind, Blocks, Dim, FusedId, FusedOp, FusedSource, FusedStep, FusedTarget, Granularity, Identity, Matmul,
    Netlist, OpKind, Operand, Order, Pad, Piece, Position, Post, QuantKind, ReduceDim, Relu, ReluMode, Shape, Size,
    Source, Tm, TopKOutput, UnaryKind, VectorMode,
};

use crate::common::netlist;

/// Formats of accumulators and intermediate buffers.
fn format() -> impl Strategy<Value = DType> {
    use DType::{BF16, Bfp2, Bfp8B, F16, F32, I8, I32};
    prop::sample::select(vec![F16, BF16, F32, I8, I32, Bfp8B, Bfp2])
}

/// Counts as a file may give them: mostly small, some absurd.
fn count() -> impl Strategy<Value = u32> {
    prop_oneof![6 => 0u32..4, 1 => Just(u32::MAX), 1 => Just(1 << 31), 1 => Just(1 << 10)]
}

fn size() -> impl Strategy<Value = Size> {
    (count(), count()).prop_map(|(r, c)| Size { r, c })
}

fn small_size() -> impl Strategy<Value = Size> {
    (1u32..3, 1u32..3).prop_map(|(r, c)| Size { r, c })
}

fn blocks() -> impl Strategy<Value = Blocks> {
    let sane = (small_size(), 1u32..4, small_size(), small_size(), any::<bool>(), small_size());
    let wild = (size(), count(), size(), size(), any::<bool>(), size());
    prop_oneof![4 => sane, 1 => wild].prop_map(|(grid, t, mblock, ublock, row, tile)| {
        let order = if row { Order::Row } else { Order::Column };
        Blocks { grid, t, mblock, ublock, order, tile }
    })
}

fn dim() -> impl Strategy<Value = Dim> {
    prop::sample::select(vec![Dim::R, Dim::C, Dim::Z])
}

fn pad() -> impl Strategy<Value = Pad> {
    (count(), count(), any::<f32>()).prop_map(|(rt, ct, value)| Pad { rt, ct, value })
}

fn tm() -> impl Strategy<Value = Tm> {
    prop_oneof![
        (dim(), count()).prop_map(|(d, n)| Tm::Broadcast(d, n)),
        count().prop_map(Tm::HSlice),
        count().prop_map(Tm::HStack),
        count().prop_map(Tm::VSlice),
        count().prop_map(Tm::VStack),
        Just(Tm::Transpose),
        dim().prop_map(Tm::TileBroadcast),
        pad().prop_map(Tm::Pad),
    ]
}

fn matmul() -> impl Strategy<Value = Matmul> {
    let identity = [count(), count(), count(), count()].prop_map(|[num, tile_bits, ublock_bits, act_t]| Identity {
        num_index_tiles: num,
        num_sparse_tiles: num,
        num_columns: num,
        sparse_tile_ptr_bits: tile_bits,
        sparse_ublock_idx_bits: ublock_bits,
        indices_len: num,
        fracture_factor: num,
        starting_row: num,
        act_t,
        num_nz_strips: vec![num],
    });
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    let rest = (prop::option::of(count()), any::<f32>(), prop::option::of(identity));
    (count(), count(), flags, rest).prop_map(|(m_k, u_kt, (bias, gelu, requant, dequant), rest)| Matmul {
        m_k,
        u_kt,
        bias,
        accumulate: rest.0,
        l1_acc: false,
        gelu,
        requant,
        dequant,
        zero_point: rest.1,
        identity: rest.2,
    })
}

fn kind() -> impl Strategy<Value = OpKind> {
    let unary = prop_oneof![
        Just(UnaryKind::Exp),
        Just(UnaryKind::Sqrt),
        Just(UnaryKind::GeluDerivative),
        any::<i32>().prop_map(UnaryKind::Power),
        any::<f32>().prop_map(UnaryKind::LeakyRelu),
        (any::<f32>(), any::<u32>()).prop_map(|(p, seed)| UnaryKind::Dropout { p, seed }),
    ];
    let piece = (count(), count(), count()).prop_map(|(index, length, stride)| Piece { index, length, stride });
    let dims = vec![ReduceDim::R, ReduceDim::C, ReduceDim::Rc, ReduceDim::Z];
    prop_oneof![
        unary.prop_map(OpKind::Unary),
        Just(OpKind::Binary(BinaryKind::Multiply)),
        any::<f32>().prop_map(|zero_point| OpKind::Quant { kind: QuantKind::Dequantize, zero_point }),
        matmul().prop_map(OpKind::Matmul),
        matmul().prop_map(OpKind::Depthwise),
        (prop::sample::select(dims), prop::option::of((count(), count())), count())
            .prop_map(|(dim, k, z)| OpKind::Reduce { dim, k, z }),
        (any::<bool>(), prop::collection::vec(piece, 0..4)).prop_map(|(t, pieces)| OpKind::Splice {
            granularity: if t { Granularity::T } else { Granularity::Ublock },
            pieces,
        }),
        count().prop_map(|num_indices| OpKind::Embedding { num_indices }),
        (count(), any::<bool>(), 0u32..2).prop_map(|(k, max, kreduce)| OpKind::TopK {
            k,
            sort: if max { TopKOutput::Max } else { TopKOutput::ArgMax },
            kreduce,
        }),
        Just(OpKind::Tilizer),
        (0usize..2).prop_map(|id| OpKind::Fused(FusedId(id))),
    ]
}

fn source() -> impl Strategy<Value = FusedSource> {
    prop_oneof![count().prop_map(FusedSource::Input), count().prop_map(FusedSource::Intermed), Just(FusedSource::Dest)]
}

fn post() -> impl Strategy<Value = Post> {
    let relu = any::<f32>().prop_map(|threshold| Relu { mode: ReluMode::Max, threshold });
    let vector = prop::sample::select(vec![VectorMode::R, VectorMode::C, VectorMode::Rc]);
    (prop::option::of(relu), prop::option::of(vector)).prop_map(|(relu, vector)| Post { relu, vector })
}

fn fused() -> impl Strategy<Value = FusedOp> {
    let target =
        prop_oneof![count().prop_map(FusedTarget::Intermed), Just(FusedTarget::Dest), Just(FusedTarget::Output),];
    let inputs = prop::collection::vec((source(), prop::collection::vec(tm(), 0..2)), 0..3);
    let pops = prop::collection::vec(source(), 0..3);
    let step = (kind(), post(), inputs, target, prop_oneof![3 => small_size(), 1 => size()], pops).prop_map(
        |(kind, post, inputs, output, mblock, pop)| FusedStep {
            name: "step".into(),
            at: Position::default(),
            kind,
            post,
            inputs,
            output,
            mblock,
            ublock: Size { r: 1, c: 1 },
            pop_last: pop.clone(),
            pop,
        },
    );
    (count(), count(), prop::collection::vec(step, 0..4)).prop_map(|(inputs, intermediates, steps)| FusedOp {
        id: 0,
        at: Position::default(),
        inputs,
        intermediates,
        schedules: vec![steps],
    })
}

/// A tensor of few values, some of them special; words beside them now and then.
fn tensor() -> impl Strategy<Value = Tensor> {
    let value = prop_oneof![4 => -2.0f32..9.0, 2 => (0u32..4).prop_map(|n| n as f32), 1 => any::<f32>()];
    (0usize..4, 0usize..4, 0usize..4, small_size(), prop::collection::vec(value, 1..9), any::<bool>()).prop_map(
        |(t, rows, columns, tile, values, words)| {
            let shape = Shape { t, rows: rows * tile.r as usize, columns: columns * tile.c as usize };
            let count = shape.t * shape.rows * shape.columns;
            let values = values.into_iter().cycle().take(count);
            if words {
                return Tensor::from_words(shape, tile, values.map(f32::to_bits).collect()).unwrap();
            }
            Tensor::new(shape, tile, values.collect()).unwrap()
        },
    )
}

/// The same tensors in the shape of the result, if that is small.
fn fitting(blocks: &Blocks, inputs: &[Tensor]) -> Option<Vec<Tensor>> {
    let shape = tilework_buda::tensor::shape_of(blocks).ok().filter(|s| s.t * s.rows * s.columns < 1 << 12)?;
    let fit = |x: &Tensor| {
        let mut values = x.values().iter().copied().chain([0.5]).cycle();
        Tensor::from_fn(shape, blocks.tile, |_, _, _| values.next().unwrap()).unwrap()
    };
    Some(inputs.iter().map(fit).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_operation_on_any_operands_is_answered(
        kind in kind(),
        fused in fused(),
        post in post(),
        blocks in blocks(),
        inputs in prop::collection::vec(tensor(), 0..5),
        tms in prop::collection::vec((prop::collection::vec(tm(), 0..3), any::<bool>(), pad()), 5),
        previous in prop::option::of(tensor()),
        formats in [format(), format()],
        tame: bool,
    ) {
        // One operation, to put others in its place.
        thread_local!(static TEMPLATE: Netlist = netlist(&[(1, 1, 1)], (1, 1, 1), "Float16", "type: nop"));
        let mut netlist = TEMPLATE.with(Netlist::clone);
        netlist.fused_ops = vec![fused];
        // Half of the time operands fit element by element, so that there is something to compute.
        let fitting = if tame { fitting(&blocks, &inputs) } else { None };
        let (tame, inputs) = (fitting.is_some(), fitting.unwrap_or(inputs));
        let op = &mut netlist.graphs[0].ops[0];
        let operand = op.inputs[0].clone();
        op.inputs = inputs
            .iter()
            .zip(tms)
            .map(|(_, (tms, padded, pad))| Operand {
                source: Source::Queue(tilework_netlist::types::QueueId(0)),
                tms: if tame { Vec::new() } else { tms },
                pad: (padded && !tame).then_some(pad),
                unpad: (padded && !tame).then_some(Pad { rt: pad.rt % 2, ct: pad.ct % 2, value: 0.0 }),
                ..operand.clone()
            })
            .collect();
        (op.kind, op.post, op.blocks, op.gradient_op) = (kind, post, blocks, !tame);
        (op.acc_format, op.intermed_format, op.out_format) = (formats[0], formats[1], DType::I8);
        let op = &netlist.graphs[0].ops[0];
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        for precision in [Precision::Exact, Precision::Device] {
            let options = Options { precision, ..Options::default() };
            match golden::execute_with(&netlist, op, &inputs, previous.as_ref(), options) {
                Ok((result, _)) => {
                    prop_assert_eq!(result.shape(), tilework_buda::tensor::shape_of(&blocks).unwrap());
                    prop_assert_eq!(result.values().len(), result.elements());
                    prop_assert!(result.values().iter().all(|v| v.abs() <= 127.0));
                }
                Err(error) => prop_assert!(error.to_string().starts_with("operation op0 (line ")),
            }
        }
    }
}
