//! Reads pages of several interleaved DRAM buffers in nested loops, each into a circular buffer
//! (`tilework_abi::walk`). Runs on NCRISC; feeds `functions`.
//!
//! Each buffer has loops of its own, so that operands that are spread over others come as often as
//! they are needed. Pages are read as circular buffers have room, whichever that is.
#![no_std]
#![no_main]

use tilework_abi::walk::own;
use tilework_rt::{KernelContext, kernel};

kernel!(main);

fn main(ctx: &KernelContext) {
    tilework_walk::read(ctx, |i| tilework_walk::own(ctx, i, own::FIRST));
}
