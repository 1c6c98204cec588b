//! Operations against NumPy's values, naive loops and other descriptions of the same thing.

use proptest::prelude::*;
use tilework_buda::Tensor;
use tilework_buda::op::data::{TopK, embedding, topk};
use tilework_buda::op::{Context, Reason, binary, reduce, splice, unary};
use tilework_netlist::types::{
    BinaryKind, Blocks, Granularity, Order, Piece, QuantKind, ReduceDim, Size, TopKOutput, UnaryKind, VectorMode,
};

use crate::common::{SMALL, at, blocks, shape, whole};

/// A row of values in one tile of 1 x n.
fn row(values: &[f32]) -> Tensor {
    let columns = values.len();
    Tensor::new(shape(1, 1, columns), Size { r: 1, c: columns as u32 }, values.to_vec()).unwrap()
}

const X: [f32; 12] = [-3.5, -1.25, -0.5, -0.001, 0.0, 0.001, 0.3, 0.75, 1.0, 2.5, 6.0, 20.0];

/// Numbers of a line of a table.
fn numbers(line: &str) -> impl Iterator<Item = f64> {
    line.split(' ').map(|n| n.parse().unwrap())
}

#[test]
fn functions_are_numpys() {
    // NumPy 2.4 in float64 at the float32 values of X.
    let tables = [
        (
            UnaryKind::Exp,
            "0.0301973834 0.286504797 0.60653066 0.9990005 1.0 1.0010005 1.34985882 2.11700002 2.71828183 12.182494 \
              403.428793 485165195.0",
        ),
        (
            UnaryKind::Gelu,
            "-0.000616197655 -0.132285797 -0.15428599 -0.000499601081 0.0 0.000500398966 0.185370932 0.579960555 \
              0.841191991 2.48491573 6.0 20.0",
        ),
        (
            UnaryKind::GeluDerivative,
            "-0.00242264376 -0.122492632 0.132630096 0.499202116 0.5 0.500797884 0.73229546 0.998938256 1.08296408 \
              1.03795158 1.0 1.0",
        ),
        (
            UnaryKind::Sigmoid,
            "0.0293122308 0.222700139 0.377540669 0.49975 0.5 0.50025 0.57444252 0.679178699 0.731058579 0.92414182 \
              0.997527377 0.999999998",
        ),
        (
            UnaryKind::Tanh,
            "-0.998177898 -0.84828364 -0.462117157 -0.000999999714 0.0 0.000999999714 0.291312623 0.635148952 \
              0.761594156 0.986614298 0.999987712 1.0",
        ),
        (
            UnaryKind::Square,
            "12.25 1.5625 0.25 1.00000009e-06 0.0 1.00000009e-06 0.0900000072 0.5625 1.0 6.25 36.0 400.0",
        ),
        (
            UnaryKind::Power(3),
            "-42.875 -1.953125 -0.125 -1.00000014e-09 0.0 1.00000014e-09 0.0270000032 0.421875 1.0 15.625 216.0 8000.0",
        ),
        (
            UnaryKind::Sine,
            "0.350783228 -0.948984619 -0.479425539 -0.000999999881 0.0 0.000999999881 0.295520218 0.68163876 \
              0.841470985 0.598472144 -0.279415498 0.912945251",
        ),
        (
            UnaryKind::Cosine,
            "-0.936456687 0.315322362 0.877582562 0.9999995 1.0 0.9999995 0.955336486 0.731688869 0.540302306 \
              -0.801143616 0.960170287 0.408082062",
        ),
        (
            UnaryKind::LeakyRelu(0.01),
            "-0.0349999992 -0.0124999997 -0.00499999989 -1.00000003e-05 0.0 0.00100000005 0.300000012 0.75 1.0 2.5 \
              6.0 20.0",
        ),
        (UnaryKind::Abs, "3.5 1.25 0.5 0.00100000005 0.0 0.00100000005 0.300000012 0.75 1.0 2.5 6.0 20.0"),
    ];
    for (kind, expected) in tables {
        let got = unary::unary(kind, &row(&X)).unwrap();
        for ((x, &got), want) in X.iter().zip(got.values()).zip(numbers(expected)) {
            // Near -3.5 gelu is a difference of nearly equal numbers: its error is absolute.
            let error = (f64::from(got) - want).abs();
            assert!(error <= 1e-6 * want.abs() + 2e-7, "{kind:?}({x}) is {got}, not {want}");
        }
    }
}

#[test]
fn functions_of_positive_values_are_numpys() {
    let positive = &X[5..];
    let tables = [
        (UnaryKind::Log, "-6.90775523 -1.20397276 -0.287682072 0.0 0.916290732 1.79175947 2.99573227"),
        (UnaryKind::Sqrt, "0.0316227774 0.547722568 0.866025404 1.0 1.58113883 2.44948974 4.47213595"),
        (UnaryKind::Reciprocal, "999.999953 3.3333332 1.33333333 1.0 0.4 0.166666667 0.05"),
        (UnaryKind::Power(-2), "999999.905 11.1111102 1.77777778 1.0 0.16 0.0277777778 0.0025"),
    ];
    for (kind, expected) in tables {
        let got = unary::unary(kind, &row(positive)).unwrap();
        for ((x, &got), want) in positive.iter().zip(got.values()).zip(numbers(expected)) {
            assert!((f64::from(got) - want).abs() <= 3e-7 * want.abs(), "{kind:?}({x}) is {got}, not {want}");
        }
    }
}

#[test]
fn edges_of_functions() {
    let one = |kind, x: f32| unary::unary(kind, &row(&[x])).map(|y| y.values()[0]);
    assert_eq!(one(UnaryKind::Exp, 1e3), Ok(f32::MAX));
    assert_eq!(one(UnaryKind::Exp, f32::INFINITY), Ok(f32::MAX));
    assert_eq!(one(UnaryKind::Exp, f32::NEG_INFINITY), Ok(0.0));
    // ln and reciprocal of the epsilon of float32.
    assert!((one(UnaryKind::Log, 0.0).unwrap() + 15.942385).abs() < 1e-5);
    assert!((one(UnaryKind::Log, -0.0).unwrap() + 15.942385).abs() < 1e-5);
    assert_eq!(one(UnaryKind::Reciprocal, 0.0), Ok(8_388_608.0));
    assert_eq!(one(UnaryKind::Reciprocal, f32::INFINITY), Ok(0.0));
    assert!(one(UnaryKind::Log, -1.0).unwrap().is_nan());
    assert_eq!(one(UnaryKind::Sqrt, -0.0), Ok(-0.0));
    for kind in
        [UnaryKind::Exp, UnaryKind::Sqrt, UnaryKind::Gelu, UnaryKind::Tanh, UnaryKind::Sigmoid, UnaryKind::Square]
    {
        assert!(one(kind, f32::NAN).unwrap().is_nan(), "{kind:?}");
    }
    let refused = unary::unary(UnaryKind::Sqrt, &row(&[1.0, -0.5])).unwrap_err();
    assert_eq!(refused, Reason::Domain { function: "square root", value: -0.5, index: 1 });
    assert_eq!(refused.to_string(), "square root of -0.5, at index 1 of operand 0");
}

#[test]
fn dropout_keeps_a_share_and_scales_it() {
    let x = Tensor::full(shape(2, 128, 128), Size { r: 32, c: 32 }, 3.0).unwrap();
    let drop = |p, seed| unary::unary(UnaryKind::Dropout { p, seed }, &x);
    let y = drop(0.25, 7).unwrap();
    let kept = y.values().iter().filter(|&&v| v != 0.0).count() as f64 / y.elements() as f64;
    assert!((kept - 0.75).abs() < 0.02, "{kept}");
    assert!(y.values().iter().all(|&v| v == 0.0 || v == 4.0));
    assert!(y == drop(0.25, 7).unwrap() && y != drop(0.25, 8).unwrap());
    assert_eq!(drop(0.0, 1).unwrap(), x);
    assert!(drop(1.0, 1).unwrap().values().iter().all(|&v| v == 0.0));
    assert!(matches!(drop(1.5, 1), Err(Reason::Attribute { name: "p", .. })));
    assert!(matches!(drop(f32::NAN, 1), Err(Reason::Attribute { .. })));
}

#[test]
fn the_vector_unit_writes_four_rows_or_sixteen_columns_of_each_tile() {
    let tile = Size { r: 32, c: 32 };
    let x = Tensor::full(shape(2, 64, 96), tile, 1.0).unwrap();
    for (mode, inside) in [
        (VectorMode::R, (|r, _| r % 32 < 4) as fn(usize, usize) -> bool),
        (VectorMode::C, |_, c| c % 32 < 16),
        (VectorMode::Rc, |_, _| true),
    ] {
        let expected = Tensor::from_fn(x.shape(), tile, |_, r, c| f32::from(u8::from(inside(r, c)))).unwrap();
        assert!(unary::vector(mode, &x) == expected, "{mode:?}");
    }
    let low = Tensor::full(shape(1, 4, 32), Size { r: 2, c: 32 }, 1.0).unwrap();
    assert_eq!(unary::vector(VectorMode::R, &low), low);
}

#[test]
fn pairs() {
    let a = row(&[1.0, -2.0, 0.0, f32::INFINITY, -0.0, f32::NAN]);
    let b = row(&[3.0, 5.0, f32::NAN, 0.0, f32::INFINITY, 1.0]);
    let run = |kind| binary::binary(kind, &a, &b, &Context::default()).unwrap().values().to_vec();
    assert_eq!(run(BinaryKind::Add)[..2], [4.0, 3.0]);
    assert_eq!(run(BinaryKind::Subtract)[..2], [-2.0, -7.0]);
    // Zero times anything is zero.
    assert_eq!(run(BinaryKind::Multiply)[..5], [3.0, -10.0, 0.0, 0.0, 0.0]);
    assert!(run(BinaryKind::Multiply)[5].is_nan());
    assert_eq!(run(BinaryKind::Maximum)[..2], [3.0, 5.0]);
    assert!(run(BinaryKind::Maximum)[2].is_nan() && run(BinaryKind::Maximum)[5].is_nan());
    let c = row(&[1.0; 3]);
    let error = binary::binary(BinaryKind::Add, &a, &c, &Context::default()).unwrap_err();
    let wanted = Reason::Shape { operand: 1, found: c.shape(), wanted: a.shape(), why: "both operands have one shape" };
    assert_eq!(error, wanted);
    let (x, s) = (row(&[10.0, -4.0]), row(&[0.5, 0.25]));
    let quant = |kind| binary::quantise(kind, 3.0, &x, &s).unwrap().values().to_vec();
    assert_eq!(quant(QuantKind::Quantize), [8.0, 2.0]);
    assert_eq!(quant(QuantKind::Requantize), [8.0, 2.0]);
    assert_eq!(quant(QuantKind::Dequantize), [3.5, -1.75]);
}

proptest! {
    #[test]
    fn reductions_are_maxima_in_their_places(
        t in 1usize..4, rows in 1usize..4, columns in 1usize..4, z in 1usize..4, seed: u32,
    ) {
        let x = whole(shape(t * z, 4 * rows, 4 * columns), seed);
        let s = x.shape();
        let max = |places: &mut dyn Iterator<Item = (usize, usize, usize)>| {
            places.map(|(z, r, c)| at(&x, z, r, c)).fold(f32::NEG_INFINITY, f32::max)
        };
        for (dim, result) in [
            (ReduceDim::C, shape(s.t, s.rows, 4)),
            (ReduceDim::R, shape(s.t, 4, s.columns)),
            (ReduceDim::Rc, shape(s.t, 4, 4)),
            (ReduceDim::Z, shape(t, s.rows, s.columns)),
        ] {
            let got = reduce::reduce(dim, None, z as u32, &x).unwrap();
            let expected = Tensor::from_fn(result, SMALL, |i, r, c| match dim {
                ReduceDim::C if c == 0 => max(&mut (0..s.columns).map(|j| (i, r, j))),
                ReduceDim::R if r == 0 => max(&mut (0..s.rows).map(|j| (i, j, c))),
                ReduceDim::Rc if (r, c) == (0, 0) => {
                    max(&mut (0..s.rows * s.columns).map(|j| (i, j / s.columns, j % s.columns)))
                }
                ReduceDim::Z => max(&mut (0..z).map(|j| (i * z + j, r, c))),
                _ => 0.0,
            });
            prop_assert!(got == expected.unwrap(), "{:?}", dim);
        }
    }

    #[test]
    fn topk_is_the_head_of_a_sorted_row(
        cores in 1usize..3, tiles in 1usize..4, k in 1usize..9, rows in 1usize..3, seed: u32,
    ) {
        let keys = whole(shape(2, 4 * rows, cores * 4 * tiles), seed);
        let labels = Tensor::from_fn(keys.shape(), SMALL, |_, _, c| c as f32).unwrap();
        let out = blocks((1, cores as u32), 2, (1, 1), (rows as u32, 2));
        for output in [TopKOutput::Max, TopKOutput::ArgMax] {
            let got = topk(TopK { k, output, reduce: false }, &keys, &labels, &out);
            if k > 4 * tiles {
                let refused = matches!(got, Err(Reason::Attribute { name: "k", .. }));
                prop_assert!(refused);
                continue;
            }
            let expected = Tensor::from_fn(shape(2, 4 * rows, cores * 8), SMALL, |z, r, c| {
                let own = c / 8 * 4 * tiles..(c / 8 + 1) * 4 * tiles;
                let mut sorted: Vec<(f32, usize)> = own.map(|j| (at(&keys, z, r, j), j)).collect();
                // A stable sort keeps the further left of equals first.
                sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
                match c % 8 {
                    place if place >= k => 0.0,
                    place if output == TopKOutput::Max => sorted[place].0,
                    place => sorted[place].1 as f32,
                }
            });
            prop_assert!(got.unwrap() == expected.unwrap());
        }
    }
}

/// Whether a splice was refused for what it leaves or wants.
fn is_splice(got: &Result<Tensor, Reason>) -> bool {
    matches!(got, Err(Reason::Splice { .. }))
}

/// Splice by taking ublocks from queues, as the words of the rule have it.
fn spliced(inputs: &[Vec<u32>], pieces: &[Piece], count: usize) -> Option<Vec<u32>> {
    let mut rest: Vec<std::collections::VecDeque<u32>> = inputs.iter().map(|v| v.iter().copied().collect()).collect();
    let mut out = Vec::new();
    while out.len() < count {
        for (queue, piece) in rest.iter_mut().zip(pieces) {
            if out.len() == count {
                break;
            }
            for _ in 0..piece.index {
                queue.pop_front()?;
            }
            for i in 0..piece.length {
                out.push(*queue.get(i as usize)?);
            }
            for _ in 0..piece.stride {
                queue.pop_front()?;
            }
        }
    }
    (out.len() == count && rest.iter().all(|queue| queue.is_empty())).then_some(out)
}

proptest! {
    #[test]
    fn splices_take_turns(
        pieces in prop::collection::vec((0u32..3, 1u32..4, 1u32..5), 1..4),
        turns in 1u32..4,
        spoiled in prop::option::weighted(0.3, 0usize..3),
        more in prop::option::weighted(0.2, 1u32..3),
    ) {
        let pieces: Vec<Piece> =
            pieces.iter().map(|&(index, length, stride)| Piece { index, length, stride }).collect();
        // What so many turns use up, unless it is spoiled.
        let mut sizes: Vec<u32> = pieces.iter().map(|p| turns * (p.index + p.stride)).collect();
        if let Some(size) = spoiled.and_then(|i| sizes.get_mut(i)) {
            *size += 1;
        }
        let count = (turns * pieces.iter().map(|p| p.length).sum::<u32>() + more.unwrap_or(0)) as usize;
        let numbers: Vec<Vec<u32>> =
            sizes.iter().enumerate().map(|(i, &n)| (0..n).map(|j| 100 * i as u32 + j).collect()).collect();
        let expected = spliced(&numbers, &pieces, count);
        // As matrices.
        let input = |numbers: &Vec<u32>| {
            Tensor::from_fn(shape(numbers.len(), 4, 4), SMALL, |z, _, _| numbers[z] as f32).unwrap()
        };
        let inputs: Vec<Tensor> = numbers.iter().map(input).collect();
        let out = blocks((1, 1), count as u32, (1, 1), (1, 1));
        let got = splice::splice(Granularity::T, &pieces, &inputs.iter().collect::<Vec<_>>(), &out);
        match &expected {
            Some(expected) => prop_assert!(got.unwrap() == input(expected)),
            None => prop_assert!(is_splice(&got)),
        }
        // As ublocks of 2x1 tiles on two rows of cores: the second row has the first one's numbers
        // plus a thousand.
        let input = |numbers: &Vec<u32>| {
            let n = numbers.len();
            Tensor::from_fn(shape(2, 16, 4 * n), SMALL, |z, r, c| {
                numbers[c / 4] as f32 + (r / 8 * 1000 + z * 10_000) as f32
            })
            .unwrap()
        };
        let inputs: Vec<Tensor> = numbers.iter().map(input).collect();
        for order in [Order::Row, Order::Column] {
            let out = Blocks { order, ..blocks((2, 1), 2, (1, count as u32), (2, 1)) };
            let got = splice::splice(Granularity::Ublock, &pieces, &inputs.iter().collect::<Vec<_>>(), &out);
            match &expected {
                Some(expected) => prop_assert!(got.unwrap() == input(expected)),
                None => prop_assert!(is_splice(&got)),
            }
        }
    }
}

#[test]
fn ublock_order_counts_ublocks_of_operands_and_result() {
    let x = Tensor::from_fn(shape(1, 8, 12), SMALL, |_, r, c| (10 * (r / 4) + c / 4) as f32).unwrap();
    let pieces = [Piece { index: 0, length: 1, stride: 1 }];
    let corner = |order, mblock| {
        let out = Blocks { order, ..blocks((1, 1), 1, mblock, (1, 1)) };
        let y = splice::splice(Granularity::Ublock, &pieces, &[&x], &out).unwrap();
        (0..y.tile_rows())
            .map(|r| (0..y.tile_columns()).map(|c| at(&y, 0, 4 * r, 4 * c)).collect())
            .collect::<Vec<Vec<_>>>()
    };
    assert_eq!(corner(Order::Row, (3, 2)), [[0.0, 1.0], [2.0, 10.0], [11.0, 12.0]]);
    assert_eq!(corner(Order::Column, (3, 2)), [[0.0, 11.0], [10.0, 2.0], [1.0, 12.0]]);
}

#[test]
fn embeddings_are_rows_of_the_table() {
    let table = whole(shape(1, 8, 8), 4);
    let indices = Tensor::from_fn(shape(2, 4, 4), SMALL, |z, r, c| ((4 * r + c) * 3 % 8 + z) as f32 % 8.0).unwrap();
    // Two rows of cores with four rows each, three of them filled.
    let out = blocks((2, 1), 2, (1, 2), (1, 1));
    let got = embedding(3, &table, &indices, &out).unwrap();
    let expected = Tensor::from_fn(shape(2, 8, 8), SMALL, |z, r, c| {
        let (core, j) = (r / 4, r % 4);
        if j == 3 { 0.0 } else { at(&table, 0, ((core * 3 + j) * 3 % 8 + z) % 8, c) }
    });
    assert!(got == expected.unwrap());
    for bad in [8.0, -1.0, 0.5, f32::NAN, f32::INFINITY] {
        let indices = Tensor::full(shape(2, 4, 4), SMALL, bad).unwrap();
        let refused = embedding(3, &table, &indices, &out);
        assert!(matches!(refused, Err(Reason::Index { bound: 8, .. })), "{bad}");
    }
    for count in [5, u32::MAX] {
        let refused = embedding(count, &table, &indices, &out);
        assert!(matches!(refused, Err(Reason::Attribute { name: "num_indices", .. })), "{count}");
    }
}

#[test]
fn topk_of_topks_takes_the_first_k_of_each() {
    // Groups of eight columns, two of which are results; NaNs come last.
    let keys = Tensor::from_fn(shape(1, 4, 16), SMALL, |_, r, c| match (r, c) {
        (1, 8) => f32::NAN,
        (_, 0) => 5.0,
        (_, 1) => 3.0,
        (_, 8) => 9.0,
        (_, 9) => 4.0,
        _ => 100.0,
    })
    .unwrap();
    let labels = Tensor::from_fn(keys.shape(), SMALL, |_, _, c| c as f32).unwrap();
    let out = blocks((1, 1), 1, (1, 1), (1, 2));
    let got = topk(TopK { k: 2, output: TopKOutput::ArgMax, reduce: true }, &keys, &labels, &out).unwrap();
    assert_eq!(got.values()[..3], [8.0, 0.0, 0.0]);
    assert_eq!(got.values()[8..11], [0.0, 9.0, 0.0]);
}
