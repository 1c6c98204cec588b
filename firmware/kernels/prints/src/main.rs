//! Prints what a kernel can print: values, elements of a tile, elements of a page. Runs on BRISC.
//!
//! Arguments:
//! 0. source buffer of tiles of bfloat16: address in each DRAM bank;
//! 1. page of this core;
//! 2. L1 address for the page, a multiple of 64;
//! 3. number of rounds, each of which prints a line;
//! 4. limit: a page at or beyond it is an assertion that fails.
#![no_std]
#![no_main]

use tilework_rt::dram::Interleaved;
use tilework_rt::print::{Bf16, Element};
use tilework_rt::reg::{read, read16};
use tilework_rt::{KernelContext, Noc, assert, kernel, print, print_array, print_tile, rta};

kernel!(main);

/// Bytes of a tile of bfloat16.
const PAGE: u32 = 2048;

fn main(ctx: &KernelContext) {
    let (page, slot) = (rta(ctx, 1), rta(ctx, 2));
    let (x, y) = (ctx.my_xy as u8 & 0x3F, (ctx.my_xy >> 6) as u8 & 0x3F);
    print!("tile ({}, {}) has page {}", x, y, page);
    let mut noc = Noc::of(ctx);
    noc.read(Interleaved::new(ctx, rta(ctx, 0), PAGE).page(page), slot, PAGE);
    noc.read_barrier();
    for round in 0..rta(ctx, 3) {
        print!("round {} of {:#010x}: {:?}", round, read(slot), round % 2 == 1);
    }
    let first = f32::from_bits(u32::from(read16(slot)) << 16);
    print!("first {} = {:e}, second {:.2}, -1 is {:#x} or {}", Bf16(read16(slot)), first, first + 0.125, -1_i8, -1_i64);
    print_tile!("top left corner", slot, Element::Bf16, 0..2, 0..4);
    print_array!("page", slot, Element::Bf16, 40);
    assert!(page < rta(ctx, 4), "page {} is not below {}", page, rta(ctx, 4));
}
