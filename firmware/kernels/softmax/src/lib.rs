//! Softmax along the rows of a matrix, a row of tiles at a time.
//!
//! Arguments:
//! 0. number of rows of tiles (may be 0);
//! 1. tiles of a row;
//! 2. to 7. numbers of the circular buffers: argument, ones (one page, which stays), largest
//!    elements, exponentials, sums, result. Argument and exponentials have room for a row of tiles.
//!
//! All tiles are bfloat16.
#![no_std]

use tilework_compute::{Compute, Format, Softmax, Thread};

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let (rows, columns) = (k.arg(0), k.arg(1));
    let [mut x, ones, max, exp, sum, mut y] = [2, 3, 4, 5, 6, 7].map(|i| k.cb(k.arg(i), Format::Bf16));
    let mut softmax = Softmax { ones, max, exp, sum };
    k.hw_configure(Format::Bf16, Format::Bf16, Format::Bf16, true);
    for _ in 0..rows {
        softmax.rows(k, &mut x, &mut y, columns);
    }
}
