//! What the tests of golden arithmetic share.

use tilework_buda::Tensor;
use tilework_netlist::types::{Blocks, Order, Shape, Size};

/// A tile for tests.
pub const SMALL: Size = Size { r: 4, c: 4 };

/// A shape.
pub fn shape(t: usize, rows: usize, columns: usize) -> Shape {
    Shape { t, rows, columns }
}

/// Whole numbers, so that sums are exact in any order.
pub fn whole(s: Shape, seed: u32) -> Tensor {
    let mut state = seed;
    Tensor::from_fn(s, SMALL, |_, _, _| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as f32 % 9.0 - 4.0
    })
    .unwrap()
}

/// The value at a place.
pub fn at(x: &Tensor, z: usize, r: usize, c: usize) -> f32 {
    x.values()[(z * x.shape().rows + r) * x.shape().columns + c]
}

/// Blocks of small tiles: all tiles in ublocks of one.
pub fn blocks(grid: (u32, u32), t: u32, mblock: (u32, u32), ublock: (u32, u32)) -> Blocks {
    let size = |(r, c)| Size { r, c };
    Blocks { grid: size(grid), t, mblock: size(mblock), ublock: size(ublock), order: Order::Row, tile: SMALL }
}
