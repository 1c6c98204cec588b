//! Keeps the core busy: a multiply-and-add generator for a number of steps. For tests and
//! measurements. Runs on BRISC.
//!
//! Arguments: 0: steps; 1: L1 address for the last value of `x = x * 1664525 + 1013904223`, which
//! starts at 1.
#![no_std]
#![no_main]

use tilework_rt::reg::write;
use tilework_rt::{KernelContext, kernel, rta};

kernel!(main);

fn main(ctx: &KernelContext) {
    let steps = rta(ctx, 0);
    let mut x: u32 = 1;
    for _ in 0..steps {
        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    }
    write(rta(ctx, 1), x);
}
