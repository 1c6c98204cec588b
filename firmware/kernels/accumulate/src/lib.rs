//! Adds runs of tiles up in L1, by the packer, which may cut off what is negative or large before.
//!
//! Arguments:
//! 0. number of results (may be 0), 1. tiles that are added up for each;
//! 2. 0: tiles as they are, 1: zero of what is negative, 2: zero of what is not above a threshold,
//!    3: zero of what is negative, and the threshold of what is above it;
//! 3. the threshold, as the bits of an f32;
//! 4. and 5. formats of tiles and results (`Format`; of results `Float32` or `Bf16`);
//! 6. and 7. numbers of their circular buffers.
//!
//! Dst has elements of 32 bits when a format has.
#![no_std]

use tilework_compute::{Compute, Format, PackRelu, Thread};

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let (results, tiles) = (k.arg(0), k.arg(1));
    let relu = match k.arg(2) {
        0 => PackRelu::None,
        1 => PackRelu::Zero,
        2 => PackRelu::Above(k.arg(3)),
        _ => PackRelu::UpTo(k.arg(3)),
    };
    let formats = [4, 5].map(|i| Format::of(k.arg(i)));
    let (mut x, mut y) = (k.cb(k.arg(6), formats[0]), k.cb(k.arg(7), formats[1]));
    k.hw_configure(formats[0], formats[0], formats[1], formats.contains(&Format::Float32));
    k.copy_tile_init(formats[0]);
    k.pack_relu_config(relu);
    for _ in 0..results {
        y.reserve_back(1);
        for tile in 0..tiles {
            x.wait_front(1);
            k.tile_regs_acquire();
            k.copy_tile(&x, 0, 0);
            k.tile_regs_commit();
            x.pop_front(1);
            k.tile_regs_wait();
            // The first one replaces what is there.
            k.pack_reconfig_l1_acc(tile != 0);
            k.pack_tile(0, &y, 0);
            k.tile_regs_release();
        }
        y.push_back(1);
    }
}
