//! The compute kernel: y = x * x, tile by tile, by unpacker, matrix unit, vector unit and packer.
//!
//! Arguments: number of tiles, circular buffers of x and y.
#![no_std]

use tilework_compute::{Compute, Format, Thread, Unary};

/// The kernel; each of the three TRISCs runs its part of it.
pub fn square<T: Thread>(k: &mut Compute<T>) {
    let (mut x, mut y) = (k.cb(k.arg(1), Format::Bf16), k.cb(k.arg(2), Format::Bf16));
    k.hw_configure(Format::Bf16, Format::Bf16, Format::Bf16, false);
    k.copy_tile_init(Format::Bf16);
    k.unary_init(Unary::Square);
    for _ in 0..k.arg(0) {
        x.wait_front(1);
        k.tile_to(&mut y, |k| {
            k.copy_tile(&x, 0, 0);
            k.unary_tile(Unary::Square, 0);
        });
        x.pop_front(1);
    }
}
