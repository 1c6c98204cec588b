//! Reads as `walk` does, with the same arguments on all cores. Runs on NCRISC.
#![no_std]
#![no_main]

use tilework_abi::walk::{buffer, number, own};
use tilework_rt::{KernelContext, crta, kernel};

kernel!(main);

fn main(ctx: &KernelContext) {
    let words = buffer::FIRST + tilework_walk::count(ctx) * buffer::WORDS;
    let word = crta(ctx, words + number::row(ctx.my_xy >> 6));
    let column = ctx.my_xy & 63;
    if !number::is_among(word, column) {
        return;
    }
    let number = number::of(word, column);
    tilework_walk::read(ctx, |i| {
        tilework_walk::own(ctx, i, own::FIRST) + number * tilework_walk::own(ctx, i, own::PAGES)
    });
}
