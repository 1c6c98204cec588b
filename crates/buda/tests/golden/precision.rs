//! What `acc_df`, `intermed_df` and `math_fidelity` do to values, and that they do nothing to exact
//! arithmetic.

use tilework_buda::Tensor;
use tilework_buda::costed::costed;
use tilework_buda::golden::{self, Options};
use tilework_buda::op::Precision;
use tilework_dtype::DType;
use tilework_netlist::types::{
    BinaryKind, Fidelity, FusedSource, FusedTarget, Granularity, Matmul, Netlist, OpKind, Piece, ReduceDim, Size,
    TopKOutput, UnaryKind,
};

use crate::common::shape;
use crate::integers::{fused, one_index_tile, product, single, step};

use DType::{BF16, Bfp8B, F16, F32, I8, I32, U8};

const TILE: Size = Size { r: 32, c: 32 };
const ADD: OpKind = OpKind::Binary(BinaryKind::Add);
const MULTIPLY: OpKind = OpKind::Binary(BinaryKind::Multiply);
const COPY: OpKind = OpKind::Unary(UnaryKind::Copy);

/// Formats of an operation: of its operands, accumulator, intermediate buffer and result.
#[derive(Clone, Copy)]
struct Formats {
    input: DType,
    acc: DType,
    intermed: DType,
    fidelity: Fidelity,
}

const WIDE: Formats = Formats { input: F32, acc: F32, intermed: F32, fidelity: Fidelity::HiFi4 };

fn netlist(kind: OpKind, operands: usize, formats: Formats) -> Netlist {
    let mut netlist = single(kind, &vec![formats.input; operands], F32);
    let op = &mut netlist.graphs[0].ops[0];
    (op.acc_format, op.intermed_format, op.fidelity) = (formats.acc, formats.intermed, formats.fidelity);
    netlist
}

fn run_in(precision: Precision, netlist: &Netlist, inputs: &[&Tensor]) -> Tensor {
    let options = Options { precision, ..Options::default() };
    golden::execute_with(netlist, &netlist.graphs[0].ops[0], inputs, None, options).unwrap().0
}

fn run(netlist: &Netlist, inputs: &[&Tensor]) -> Tensor {
    run_in(Precision::Device, netlist, inputs)
}

fn full(value: f32) -> Tensor {
    Tensor::full(shape(1, 32, 32), TILE, value).unwrap()
}

/// The value that all elements have.
fn value(x: &Tensor) -> f32 {
    assert!(x.values().iter().all(|v| *v == x.values()[0] || v.is_nan()), "{:?}", &x.values()[..40]);
    x.values()[0]
}

/// The result of an operation on full tiles, in device and in exact precision.
fn both(kind: &OpKind, inputs: &[f32], formats: Formats) -> [f32; 2] {
    let netlist = netlist(kind.clone(), inputs.len(), formats);
    let inputs: Vec<Tensor> = inputs.iter().map(|v| full(*v)).collect();
    let inputs: Vec<&Tensor> = inputs.iter().collect();
    [Precision::Device, Precision::Exact].map(|precision| value(&run_in(precision, &netlist, &inputs)))
}

const FIDELITIES: [Fidelity; 6] =
    [Fidelity::LoFi, Fidelity::HiFi2, Fidelity::HiFi2A, Fidelity::HiFi2B, Fidelity::HiFi3, Fidelity::HiFi4];

/// 1.1111111 in binary: of SrcA the first five bits are 1.1111, of SrcB the first seven 1.111111.
#[test]
fn math_fidelity_says_which_bits_are_multiplied() {
    let x = 255.0 / 128.0;
    let (five, seven, eighth) = (31.0 / 16.0, 127.0 / 64.0, 1.0 / 128.0);
    let products = [five * seven, x * seven, x * seven, five * x, x * seven + five * eighth, x * x];
    for (fidelity, wanted) in FIDELITIES.into_iter().zip(products) {
        let formats = Formats { input: BF16, fidelity, ..WIDE };
        assert_eq!(both(&MULTIPLY, &[x, x], formats), [wanted, x * x], "{fidelity:?}");
        // Which of two different factors is SrcA: the first of a pair, the second of a
        // matrix product.
        let netlist = netlist(OpKind::Matmul(product()), 2, formats);
        let corner =
            |v: f32| Tensor::from_fn(shape(1, 32, 32), TILE, |_, r, c| if r + c == 0 { v } else { 0.0 }).unwrap();
        let of = |left: f32, right: f32| run(&netlist, &[&corner(left), &corner(right)]).values()[0];
        assert_eq!(of(x, x), wanted, "{fidelity:?}");
        let pair = |a: f32, b: f32| both(&MULTIPLY, &[a, b], formats)[0];
        assert_eq!([of(1.0, x), of(x, 1.0)], [pair(x, 1.0), pair(1.0, x)], "{fidelity:?}");
    }
    let lofi = Formats { input: BF16, fidelity: Fidelity::LoFi, ..WIDE };
    assert_eq!([both(&MULTIPLY, &[x, 1.0], lofi)[0], both(&MULTIPLY, &[1.0, x], lofi)[0]], [five, seven]);
    assert_eq!(both(&ADD, &[x, x], lofi), [2.0 * x; 2], "sums take all bits");
    // SrcA has ten bits at most: the eleventh of FP16 is in no phase.
    let full = Formats { input: F16, ..WIDE };
    let eleven = 1.0 + 1.0 / 1024.0;
    assert_eq!([both(&MULTIPLY, &[eleven, 1.0], full)[0], both(&MULTIPLY, &[1.0, eleven], full)[0]], [1.0, eleven]);
}

/// To nearest, ties away from zero.
#[test]
fn acc_df_is_what_a_result_is_rounded_to() {
    let add = |acc, a, b| both(&ADD, &[a, b], Formats { acc, ..WIDE });
    assert_eq!(add(BF16, 256.0, 1.0), [258.0, 257.0]);
    assert_eq!(add(BF16, -256.0, -1.0), [-258.0, -257.0]);
    assert_eq!(add(BF16, 256.0, 0.75), [256.0, 256.75]);
    assert_eq!(add(F32, 256.0, 0.75), [256.75; 2]);
    assert_eq!(add(F16, 256.0, 0.75), [256.75; 2]);
    assert_eq!(add(F16, 65504.0, 65504.0), [131_008.0; 2]);
    assert_eq!(add(F16, 131_008.0, 131_008.0), [131_008.0, 262_016.0]);
    assert_eq!(add(F16, 2f32.powi(-15), 0.0), [0.0, 2f32.powi(-15)]);
    assert_eq!(add(BF16, 1e-39, 0.0), [0.0, 1e-39], "denormals");
    // Block formats of either width of exponents say which registers.
    assert_eq!(add(Bfp8B, 256.0, 1.0), [258.0, 257.0]);
    for (kind, inputs, wanted) in [
        (OpKind::Unary(UnaryKind::Square), &[16.0625][..], [260.0, 16.0625 * 16.0625]),
        (COPY, &[257.0], [258.0, 257.0]),
        (OpKind::Binary(BinaryKind::Maximum), &[257.0, 3.0], [258.0, 257.0]),
        (OpKind::Reduce { dim: ReduceDim::Z, k: None, z: 1 }, &[257.0], [258.0, 257.0]),
        (OpKind::Tilizer, &[257.0], [258.0, 257.0]),
        (OpKind::EthernetDatacopy, &[257.0], [257.0, 257.0]),
    ] {
        assert_eq!(both(&kind, inputs, Formats { acc: BF16, ..WIDE }), wanted, "{kind:?}");
    }
    let piece = vec![Piece { index: 0, length: 1, stride: 1 }];
    let splice = OpKind::Splice { granularity: Granularity::T, pieces: piece };
    assert_eq!(both(&splice, &[257.0], Formats { acc: BF16, ..WIDE }), [258.0, 257.0]);
}

#[test]
fn operands_are_what_a_source_register_holds() {
    let fine = 1.0 + 2f32.powi(-10) + 2f32.powi(-11);
    let tf32 = 1.0 + 2f32.powi(-10);
    assert_eq!(both(&ADD, &[fine, 0.0], WIDE), [tf32, fine], "the low 13 bits are cut off");
    assert_eq!(both(&COPY, &[fine], WIDE), [fine; 2], "to 32-bit registers Float32 goes directly");
    let bf16 = Formats { input: BF16, ..WIDE };
    assert_eq!(both(&ADD, &[fine, 0.0], bf16), [1.0, fine]);
    // Integers and their scales stay as they are.
    let scaled = OpKind::Quant { kind: tilework_netlist::types::QuantKind::Quantize, zero_point: 0.0 };
    let int = Formats { acc: I32, ..WIDE };
    assert_eq!(both(&scaled, &[fine * 100.0, 1.0], int), [100.0 * fine; 2]);
}

/// Sixteen products at a time: of 300 groups with a sum of 1 each the last 44 count 2 in BF16,
/// which has no odd numbers there.
#[test]
fn acc_df_is_what_sums_are_rounded_to_on_the_way() {
    let k = 300 * 16 / 32;
    let matmul = OpKind::Matmul(Matmul { m_k: 1, u_kt: k, ..product() });
    let left = Tensor::full(shape(1, 32, k as usize * 32), TILE, 0.25).unwrap();
    let right = Tensor::full(shape(1, k as usize * 32, 32), TILE, 0.25).unwrap();
    for (acc, wanted) in [(BF16, 344.0), (F16, 300.0), (F32, 300.0)] {
        let netlist = netlist(matmul.clone(), 2, Formats { input: BF16, acc, ..WIDE });
        assert_eq!(value(&run(&netlist, &[&left, &right])), wanted, "{acc:?}");
        assert_eq!(value(&run_in(Precision::Exact, &netlist, &[&left, &right])), 300.0);
    }
}

/// A sum of 257 between two blocks, matrices or a product and its bias.
#[test]
fn intermed_df_is_what_partial_sums_are_rounded_to() {
    let tile_of =
        |first: f32| Tensor::from_fn(shape(1, 32, 64), TILE, |_, _, c| if c == 0 { first } else { 0.0 }).unwrap();
    let ones = Tensor::full(shape(1, 64, 32), TILE, 1.0).unwrap();
    let blocks = |m_k, u_kt| OpKind::Matmul(Matmul { m_k, u_kt, ..product() });
    for (intermed, of_two) in [(BF16, 256.0), (Bfp8B, 256.0), (F32, 257.0)] {
        let formats = Formats { intermed, ..WIDE };
        for (matmul, wanted) in [(blocks(2, 1), of_two), (blocks(1, 2), 257.0)] {
            let netlist = netlist(matmul, 2, formats);
            assert_eq!(value(&run(&netlist, &[&tile_of(257.0), &ones])), wanted, "{intermed:?}");
            assert_eq!(value(&run_in(Precision::Exact, &netlist, &[&tile_of(257.0), &ones])), 257.0);
        }
        let biased = netlist(OpKind::Matmul(Matmul { u_kt: 2, bias: true, ..product() }), 3, formats);
        assert_eq!(value(&run(&biased, &[&tile_of(257.0), &ones, &full(0.0)])), of_two, "{intermed:?}");
        let summed = netlist(OpKind::Matmul(Matmul { accumulate: Some(2), ..product() }), 2, formats);
        let left = Tensor::from_fn(shape(2, 32, 32), TILE, |z, _, c| if z + c == 0 { 257.0 } else { 0.0 }).unwrap();
        let right = Tensor::full(shape(2, 32, 32), TILE, 1.0).unwrap();
        assert_eq!(value(&run(&summed, &[&left, &right])), of_two, "{intermed:?}");
        let deep = netlist(OpKind::Depthwise(Matmul { m_k: 2, ..product() }), 2, formats);
        assert_eq!(value(&run(&deep, &[&tile_of(257.0), &ones])), of_two, "{intermed:?}");
    }
    // Integers are clamped there.
    let scaled = OpKind::Matmul(Matmul { u_kt: 2, dequant: true, ..product() });
    for (intermed, wanted) in [(I8, 127.0), (I32, 200.0)] {
        let mut netlist = netlist(scaled.clone(), 3, Formats { input: I8, acc: I32, intermed, ..WIDE });
        netlist.graphs[0].ops[0].inputs[2].format = F32;
        assert_eq!(value(&run(&netlist, &[&tile_of(200.0), &ones, &full(1.0)])), wanted, "{intermed:?}");
        assert_eq!(value(&run_in(Precision::Exact, &netlist, &[&tile_of(200.0), &ones, &full(1.0)])), 200.0);
    }
}

#[test]
fn buffers_between_fused_steps_have_their_formats() {
    let copy = |from, to| step(COPY, &[from], to);
    let through = |to, from| vec![copy(FusedSource::Input(0), to), copy(from, FusedTarget::Output)];
    let intermed = through(FusedTarget::Intermed(0), FusedSource::Intermed(0));
    let dest = through(FusedTarget::Dest, FusedSource::Dest);
    for (steps, acc, buffer, wanted) in [
        (&intermed, F32, BF16, 256.0),
        (&intermed, F32, F32, 257.0),
        (&dest, BF16, F32, 258.0),
        (&dest, F32, BF16, 257.0),
    ] {
        let mut netlist = fused(steps.clone(), &[F32], buffer, F32);
        netlist.graphs[0].ops[0].acc_format = acc;
        assert_eq!(value(&run(&netlist, &[&full(257.0)])), wanted, "{acc:?} {buffer:?}");
        assert_eq!(value(&run_in(Precision::Exact, &netlist, &[&full(257.0)])), 257.0);
    }
}

/// One tile in each of two strips; the sum waits in the intermediate buffer between them.
#[test]
fn identity_products_have_formats_too() {
    let how = one_index_tile();
    // Strip 0 with one ublock of one tile; then strip 1, the last of its row and of the index tile.
    let halves = [0, 0, 1, 1 << 4, 0, 1, 0xc000, 1, 1 << 4, 0u32];
    let mut words = vec![0; 1024];
    for (word, pair) in words.iter_mut().zip(halves.chunks(2)) {
        *word = pair[1] << 16 | pair[0];
    }
    let index = Tensor::from_words(shape(1, 32, 32), TILE, words).unwrap();
    let unit = Tensor::from_fn(shape(1, 32, 32), TILE, |_, r, c| if r == c { 1.0 } else { 0.0 }).unwrap();
    let right = Tensor::from_fn(shape(1, 64, 32), TILE, |_, r, _| if r < 32 { 257.0 } else { 0.0 }).unwrap();
    let sparse = OpKind::Matmul(Matmul { m_k: 2, identity: Some(how), ..product() });
    for (acc, intermed, wanted) in [(F32, F32, 257.0), (F32, BF16, 256.0), (BF16, F32, 258.0)] {
        let netlist = netlist(sparse.clone(), 3, Formats { acc, intermed, ..WIDE });
        assert_eq!(value(&run(&netlist, &[&unit, &right, &index])), wanted, "{acc:?} {intermed:?}");
        assert_eq!(value(&run_in(Precision::Exact, &netlist, &[&unit, &right, &index])), 257.0);
    }
    // Of the right operand, which is SrcA, LoFi takes five bits: 257 is 256 there.
    let netlist = netlist(sparse, 3, Formats { fidelity: Fidelity::LoFi, ..WIDE });
    assert_eq!(value(&run(&netlist, &[&unit, &right, &index])), 256.0);
}

#[test]
fn unsigned_bytes_are_clamped() {
    let mut netlist = netlist(OpKind::Binary(BinaryKind::Subtract), 2, Formats { input: U8, acc: I32, ..WIDE });
    netlist.graphs[0].ops[0].out_format = U8;
    assert_eq!(value(&run(&netlist, &[&full(3.0), &full(5.0)])), 0.0);
    assert_eq!(value(&run_in(Precision::Exact, &netlist, &[&full(3.0), &full(5.0)])), -2.0);
}

#[test]
fn settings_that_no_value_depends_on_are_listed() {
    let said = |kind: OpKind, precision, approximate, stochastic: Option<&str>| {
        let mut netlist = netlist(kind, 1, Formats { intermed: BF16, ..WIDE });
        let hints = &mut netlist.graphs[0].ops[0].hints;
        (hints.approximate, hints.stochastic_rounding) = (approximate, stochastic.map(str::to_owned));
        costed(&netlist, precision).into_iter().flat_map(|costed| costed.settings).collect::<Vec<_>>()
    };
    let topk = OpKind::TopK { k: 1, sort: TopKOutput::Max, kreduce: 0 };
    let exp = OpKind::Unary(UnaryKind::Exp);
    assert_eq!(said(topk.clone(), Precision::Device, false, None), ["acc_df", "intermed_df", "math_fidelity"]);
    assert_eq!(said(topk, Precision::Exact, false, None), [""; 0]);
    assert_eq!(said(exp.clone(), Precision::Device, true, None), ["approximate_mode"]);
    assert_eq!(said(exp.clone(), Precision::Exact, true, Some("all")), ["approximate_mode", "stoch_rnd_mode"]);
    assert_eq!(said(exp, Precision::Device, false, None), [""; 0]);
    assert_eq!(said(COPY, Precision::Device, true, None), [""; 0], "a copy approximates nothing");
    let reduce = |m_k| OpKind::Reduce { dim: ReduceDim::C, k: Some((m_k, 1)), z: 1 };
    assert_eq!(said(reduce(2), Precision::Device, false, None), ["intermed_df"]);
    assert_eq!(said(reduce(1), Precision::Device, false, None), [""; 0]);
    assert_eq!(said(OpKind::Drainer, Precision::Device, true, Some("all")), [""; 0]);
}
