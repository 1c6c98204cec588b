//! TMs and padding against index formulas.

use proptest::prelude::*;
use tilework_buda::op::Reason;
use tilework_buda::{Tensor, tensor, tm};
use tilework_netlist::types::{Dim, Pad, Shape, Size, Tm};

use crate::common::at;

/// A tensor whose values say where they are, in small tiles.
fn numbered(t: usize, tile_rows: usize, tile_columns: usize) -> Tensor {
    let tile = Size { r: 2, c: 3 };
    let shape = Shape { t, rows: 2 * tile_rows, columns: 3 * tile_columns };
    let mut n = 0.0;
    Tensor::from_fn(shape, tile, |_, _, _| {
        n += 1.0;
        n
    })
    .unwrap()
}

/// Applies one TM and compares with a formula of the result's indices.
fn check(x: &Tensor, tm: Tm, shape: Shape, tile: Size, formula: impl Fn(usize, usize, usize) -> f32) {
    let got = tm::apply(0, &[tm], x).unwrap_or_else(|error| panic!("{error}"));
    let expected = Tensor::from_fn(shape, tile, formula).unwrap();
    assert!(got == expected, "{tm:?} of {}: {}", tensor::describe(&x.shape()), tensor::describe(&got.shape()));
}

proptest! {
    #[test]
    fn tms_are_their_index_formulas(t in 1usize..4, rows in 1usize..4, columns in 1usize..4, n in 1u32..4) {
        let x = &numbered(t, rows, columns);
        let (s, tile, m) = (x.shape(), x.tile(), n as usize);
        check(x, Tm::Broadcast(Dim::R, n), Shape { rows: s.rows * m, ..s }, tile, |z, r, c| at(x, z, r % s.rows, c));
        check(x, Tm::Broadcast(Dim::C, n), Shape { columns: s.columns * m, ..s }, tile, |z, r, c| {
            at(x, z, r, c % s.columns)
        });
        check(x, Tm::Broadcast(Dim::Z, n), Shape { t: s.t * m, ..s }, tile, |z, r, c| at(x, z % s.t, r, c));
        let turned = Shape { t, rows: s.columns, columns: s.rows };
        check(x, Tm::Transpose, turned, Size { r: 3, c: 2 }, |z, r, c| at(x, z, c, r));
        check(x, Tm::TileBroadcast(Dim::R), s, tile, |z, r, c| at(x, z, r / 2 * 2, c));
        check(x, Tm::TileBroadcast(Dim::C), s, tile, |z, r, c| at(x, z, r, c / 3 * 3));
        let pad = Pad { rt: n, ct: n - 1, value: -7.0 };
        let padded = Shape { t, rows: s.rows + 2 * m, columns: s.columns + 3 * (m - 1) };
        check(x, Tm::Pad(pad), padded, tile, |z, r, c| {
            if r < s.rows && c < s.columns { at(x, z, r, c) } else { -7.0 }
        });
        prop_assert!(tm::unpad(0, &pad, &tm::pad(0, &pad, x).unwrap()).unwrap() == *x);
    }

    #[test]
    fn slices_and_stacks_are_their_index_formulas(
        t in 1usize..4, rows in 1usize..4, columns in 1usize..4, n in 1usize..4,
    ) {
        // z' = z * n + k, and back.
        let x = &numbered(t, rows * n, columns * n);
        let (s, tile, count) = (x.shape(), x.tile(), n as u32);
        let width = s.columns / n;
        check(x, Tm::HSlice(count), Shape { t: t * n, columns: width, ..s }, tile, |z, r, c| {
            at(x, z / n, r, z % n * width + c)
        });
        let height = s.rows / n;
        check(x, Tm::VSlice(count), Shape { t: t * n, rows: height, ..s }, tile, |z, r, c| {
            at(x, z / n, z % n * height + r, c)
        });
        let y = &numbered(t * n, rows, columns);
        let s = y.shape();
        check(y, Tm::HStack(count), Shape { t, columns: s.columns * n, ..s }, tile, |z, r, c| {
            at(y, z * n + c / s.columns, r, c % s.columns)
        });
        check(y, Tm::VStack(count), Shape { t, rows: s.rows * n, ..s }, tile, |z, r, c| {
            at(y, z * n + r / s.rows, r % s.rows, c)
        });
        check(y, Tm::HStack(0), Shape { t: 1, columns: s.columns * s.t, ..s }, tile, |_, r, c| {
            at(y, c / s.columns, r, c % s.columns)
        });
        check(y, Tm::VStack(0), Shape { t: 1, rows: s.rows * s.t, ..s }, tile, |_, r, c| {
            at(y, r / s.rows, r % s.rows, c)
        });
        for (cut, join) in [(Tm::HSlice(count), Tm::HStack(count)), (Tm::VSlice(count), Tm::VStack(count))] {
            prop_assert!(tm::apply(0, &[cut, join], x).unwrap() == *x);
        }
    }
}

#[test]
fn tms_apply_in_order() {
    // Slicing before transposing is not transposing before slicing.
    let x = numbered(1, 2, 2);
    let sliced = tm::apply(0, &[Tm::HSlice(2), Tm::Transpose], &x).unwrap();
    assert_eq!(sliced.shape(), Shape { t: 2, rows: 3, columns: 4 });
    let transposed = tm::apply(0, &[Tm::Transpose, Tm::HSlice(2)], &x).unwrap();
    assert_eq!(transposed.shape(), Shape { t: 2, rows: 6, columns: 2 });
    assert_eq!(at(&sliced, 1, 0, 3), at(&x, 0, 3, 3));
    assert_eq!(at(&transposed, 1, 5, 1), at(&x, 0, 3, 5));
}

#[test]
fn what_does_not_fit_is_named() {
    let x = numbered(2, 3, 4);
    for tm in [
        Tm::HSlice(3),
        Tm::VSlice(2),
        Tm::HStack(3),
        Tm::VStack(5),
        Tm::HSlice(0),
        Tm::VSlice(0),
        Tm::Broadcast(Dim::R, 0),
        Tm::TileBroadcast(Dim::Z),
        Tm::Broadcast(Dim::Z, u32::MAX),
        Tm::Broadcast(Dim::C, u32::MAX),
        Tm::HSlice(u32::MAX),
        Tm::Pad(Pad { rt: u32::MAX, ct: u32::MAX, value: 0.0 }),
    ] {
        match tm::apply(3, &[tm], &x) {
            Err(Reason::Tm { operand: 3, found, .. }) => assert_eq!(found, x.shape()),
            other => panic!("{tm:?}: {other:?}"),
        }
    }
    let message = tm::apply(1, &[Tm::HSlice(3)], &x).unwrap_err().to_string();
    assert_eq!(message, "operand 1: hslice: 3 of 2x6x12: 4 columns of tiles are no 3 equal parts");
    let gone = tm::unpad(0, &Pad { rt: 4, ct: 0, value: 0.0 }, &x);
    assert!(matches!(gone, Err(Reason::Tm { .. })));
    // All of it may go.
    let empty = tm::unpad(0, &Pad { rt: 3, ct: 4, value: 0.0 }, &x).unwrap();
    assert_eq!((empty.elements(), empty.shape()), (0, Shape { t: 2, rows: 0, columns: 0 }));
    for tm in [Tm::Transpose, Tm::HStack(0), Tm::TileBroadcast(Dim::R), Tm::Broadcast(Dim::Z, 3), Tm::HSlice(2)] {
        assert_eq!(tm::apply(0, &[tm], &empty).unwrap().elements(), 0, "{tm:?}");
    }
}
