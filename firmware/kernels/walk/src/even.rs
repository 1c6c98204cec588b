//! Reads as `walk` does, with the same arguments on all cores. Runs on NCRISC.
#![no_std]
#![no_main]

use tilework_abi::walk::{buffer, own};
use tilework_rt::{KernelContext, kernel};

kernel!(main);

fn main(ctx: &KernelContext) {
    let words = buffer::FIRST + tilework_walk::count(ctx) * buffer::WORDS;
    let Some(number) = tilework_rt::number(ctx, words) else { return };
    tilework_walk::read(ctx, |i| {
        tilework_walk::own(ctx, i, own::FIRST) + number * tilework_walk::own(ctx, i, own::PAGES)
    });
}
