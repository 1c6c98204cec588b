//! Rotary position embedding of the rows of a matrix: pairs of elements are turned by an angle of
//! their own. A pair is element i of the first and element i of the second half of a row, or two
//! neighbours.
//!
//! Arguments:
//! 0. number of rows of tiles (may be 0);
//! 1. tiles of a row, an even number if halves are turned;
//! 2. to 5. numbers of the circular buffers of argument, cosines, sines, and result. If halves are
//!    turned, the sines of the first half of a row have the other sign. Buffers of operands have
//!    room for a row of tiles;
//! 6. 0: halves, 1: neighbours. For neighbours:
//! 7. number of the circular buffer of the matrix that exchanges neighbours, one page, which stays
//!    (`rotary::pairs_row` says what is in it);
//! 8. number of a circular buffer for a row of tiles.
//!
//! All tiles are bfloat16.
#![no_std]

use tilework_compute::{Compute, Format, Thread, rotary};

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let (rows, columns, pairs) = (k.arg(0), k.arg(1), k.arg(6) != 0);
    let [mut x, mut cos, mut sin, mut y] = [2, 3, 4, 5].map(|i| k.cb(k.arg(i), Format::Bf16));
    let mut buffers = pairs.then(|| [7, 8].map(|i| k.cb(k.arg(i), Format::Bf16)));
    k.hw_configure(Format::Bf16, Format::Bf16, Format::Bf16, true);
    rotary::init(k);
    for _ in 0..rows {
        x.wait_front(columns);
        cos.wait_front(columns);
        sin.wait_front(columns);
        if let Some([matrix, turned]) = &mut buffers {
            matrix.wait_front(1);
            rotary::pairs_row(k, [&x, &cos, &sin, matrix], [turned, &mut y], columns);
        } else {
            rotary::row(k, [&x, &cos, &sin], &mut y, columns);
        }
        x.pop_front(columns);
        cos.pop_front(columns);
        sin.pop_front(columns);
    }
}
