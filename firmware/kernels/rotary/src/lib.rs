//! Rotary position embedding of the rows of a matrix: element i of the first half of a row and
//! element i of the second half are turned by an angle of their own.
//!
//! Arguments:
//! 0. number of rows of tiles (may be 0);
//! 1. tiles of a row, an even number;
//! 2. to 5. numbers of the circular buffers of argument, cosines, sines, and result. The
//!    sines of the first half of a row have the other sign. Buffers of operands have room for
//!    a row of tiles.
//!
//! All tiles are bfloat16.
#![no_std]

use tilework_compute::{Compute, Format, Thread, rotary};

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let (rows, columns) = (k.arg(0), k.arg(1));
    let [mut x, mut cos, mut sin, mut y] = [2, 3, 4, 5].map(|i| k.cb(k.arg(i), Format::Bf16));
    k.hw_configure(Format::Bf16, Format::Bf16, Format::Bf16, true);
    rotary::init(k);
    for _ in 0..rows {
        x.wait_front(columns);
        cos.wait_front(columns);
        sin.wait_front(columns);
        rotary::row(k, [&x, &cos, &sin], &mut y, columns);
        x.pop_front(columns);
        cos.pop_front(columns);
        sin.pop_front(columns);
    }
}
