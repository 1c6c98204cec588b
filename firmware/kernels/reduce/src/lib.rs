//! Reduces runs of tiles to a tile each: their largest or smallest elements, or their sums, along
//! rows, columns or both.
//!
//! Arguments:
//! 0. number of results (may be 0), 1. tiles that are reduced together;
//! 2. 0: sums, 1: largest, 2: smallest elements;
//! 3. 0: of rows, to column 0; 1: of columns, to row 0; 2: of all elements, to element 0;
//! 4. to 7. numbers of the circular buffers of tiles, scaler, negated tiles (for the smallest
//!    elements), and results. All of them but the last have room for the tiles of a result. The
//!    scaler is one page whose row 0 of each face elements are multiplied by, twice if all of a
//!    tile are reduced; it stays.
//!
//! All tiles are bfloat16.
#![no_std]

use tilework_compute::{Cb, Compute, Format, Pool, Reduce, Thread, Unary};

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let (results, tiles, smallest) = (k.arg(0), k.arg(1), k.arg(2) == 2);
    let pool = if k.arg(2) == 0 { Pool::Sum } else { Pool::Max };
    let dim = match k.arg(3) {
        0 => Reduce::Rows,
        1 => Reduce::Columns,
        _ => Reduce::All,
    };
    let [mut x, scaler, mut negated, mut y] = [4, 5, 6, 7].map(|i| k.cb(k.arg(i), Format::Bf16));
    k.hw_configure(Format::Bf16, Format::Bf16, Format::Bf16, true);
    k.unary_init(Unary::Negative);
    if results != 0 {
        scaler.wait_front(1);
    }
    k.reduce_init(dim);
    for _ in 0..results {
        if smallest {
            // The smallest is the largest of the negated ones, with the other sign.
            negate(k, &mut x, &mut negated, tiles);
            negated.wait_front(tiles);
            k.reduce_init(dim);
            k.tile_to(&mut y, |k| {
                (0..tiles).for_each(|i| k.reduce_tile((pool, dim), &negated, &scaler, [i, 0], 0));
                k.unary_tile(Unary::Negative, 0);
            });
            negated.pop_front(tiles);
        } else {
            x.wait_front(tiles);
            k.tile_to(&mut y, |k| {
                (0..tiles).for_each(|i| k.reduce_tile((pool, dim), &x, &scaler, [i, 0], 0));
            });
            x.pop_front(tiles);
        }
    }
}

/// Takes tiles of `x`, and fills `y` with their negatives.
fn negate<T: Thread>(k: &mut Compute<T>, x: &mut Cb<T>, y: &mut Cb<T>, tiles: u32) {
    k.copy_tile_init(Format::Bf16);
    for _ in 0..tiles {
        x.wait_front(1);
        k.tile_to(y, |k| {
            k.copy_tile(x, 0, 0);
            k.unary_tile(Unary::Negative, 0);
        });
        x.pop_front(1);
    }
}
