//! Softmax of rows of tiles, put together from the calls of the library.

use crate::{Binary, Broadcast, Cb, Compute, Fidelity, Pool, Reduce, Thread, Unary};

/// The circular buffers that a softmax needs for itself.
pub struct Softmax<T> {
    /// One page with ones in row 0 of each face; stays.
    pub ones: Cb<T>,
    /// The largest elements of the rows: one page.
    pub max: Cb<T>,
    /// The exponentials: as many pages as a row of tiles has.
    pub exp: Cb<T>,
    /// The reciprocals of the sums: one page.
    pub sum: Cb<T>,
}

impl<T: Thread> Softmax<T> {
    /// Replaces the rows of `columns` tiles in `x` by their softmax in `y`, page by page. Takes the
    /// pages of `x`.
    pub fn rows(&mut self, k: &mut Compute<T>, x: &mut Cb<T>, y: &mut Cb<T>, columns: u32) {
        let Self { ones, max, exp, sum } = self;
        ones.wait_front(1);
        x.wait_front(columns);
        k.reduce_init(Reduce::Rows);
        k.tile_to(max, |k| (0..columns).for_each(|c| k.reduce_tile((Pool::Max, Reduce::Rows), x, ones, [c, 0], 0)));

        max.wait_front(1);
        k.binary_init(Binary::Subtract, Broadcast::Column, Fidelity::LoFi);
        k.unary_init(Unary::Exp);
        for c in 0..columns {
            k.tile_to(exp, |k| {
                k.binary_tiles(x, max, c, 0, 0);
                k.unary_tile(Unary::Exp, 0);
            });
        }
        max.pop_front(1);
        x.pop_front(columns);

        exp.wait_front(columns);
        k.reduce_init(Reduce::Rows);
        k.unary_init(Unary::Reciprocal);
        k.tile_to(sum, |k| {
            (0..columns).for_each(|c| k.reduce_tile((Pool::Sum, Reduce::Rows), exp, ones, [c, 0], 0));
            k.unary_tile(Unary::Reciprocal, 0);
        });

        sum.wait_front(1);
        k.binary_init(Binary::Multiply, Broadcast::Column, Fidelity::HiFi4);
        for c in 0..columns {
            k.tile_to(y, |k| k.binary_tiles(exp, sum, c, 0, 0));
        }
        sum.pop_front(1);
        exp.pop_front(columns);
    }
}
