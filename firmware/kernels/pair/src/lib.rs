//! Computes a function of two tiles, tile by tile, as `functions` does for a program of that one
//! step: it reads fewer arguments, so that it begins sooner.
//!
//! Arguments:
//! 0. number of tiles (may be 0);
//! 1. the step (`tilework_abi::eltwise::Step`): a function of slots 0 and 1;
//! 2. flags (`tilework_abi::eltwise::flag`): 1: Dst has elements of 32 bits; 4: cores without a
//!    number have no tiles;
//! 3. format of both operands and 4. of the result (`Format`);
//! 5. to 7. numbers of their circular buffers.
#![no_std]

use tilework_abi::eltwise::{Word, flag};
use tilework_compute::program::of_two;
use tilework_compute::{Compute, Format, Thread};

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let (tiles, flags) = (k.arg(0), k.arg(2));
    if flags & flag::NUMBERED != 0 && !k.has_number() {
        return;
    }
    let [format, result] = [3, 4].map(|i| Format::of(k.arg(i)));
    let (mut a, mut b, mut out) = (k.cb(k.arg(5), format), k.cb(k.arg(6), format), k.cb(k.arg(7), result));
    let op = of_two(Word(k.arg(1)));
    k.hw_configure(format, format, result, flags & flag::WIDE != 0);
    k.copy_tile_init(format);
    k.sfpu_binary_init();
    for _ in 0..tiles {
        k.tile_to(&mut out, |k| {
            a.wait_front(1);
            k.copy_tile(&a, 0, 0);
            b.wait_front(1);
            k.copy_tile(&b, 0, 1);
            k.sfpu_binary_tiles(op, 0, 1, 0);
        });
        a.pop_front(1);
        b.pop_front(1);
    }
}
