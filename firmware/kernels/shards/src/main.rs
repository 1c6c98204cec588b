//! Moves pages between this core's L1 and an interleaved DRAM buffer. Runs on BRISC; brings sharded
//! tensors, and those that are interleaved over L1, to DRAM and back.
//!
//! The pages lie in rows, in L1 as in the buffer.
//!
//! Arguments:
//! 0. 1 to bring pages to DRAM, 0 to bring them from there;
//! 1. the buffer: address in each DRAM bank, and 2. bytes from one page to the next in a bank;
//! 3. page size in bytes: a multiple of 64;
//! 4. the first page; 5. pages from one to the next in a row; 6. pages from one row to the next;
//! 7. pages of a row, and 8. rows (may be 0);
//! 9. the first page's address in L1, a multiple of 64; 10. bytes from one page to the next in a
//!    row; 11. bytes from one row to the next.
#![no_std]
#![no_main]

use tilework_rt::dram::Interleaved;
use tilework_rt::{KernelContext, Noc, kernel, rta};

kernel!(main);

fn main(ctx: &KernelContext) {
    let arg = |n| rta(ctx, n);
    let (out, bytes) = (arg(0) != 0, arg(3));
    let buffer = Interleaved::new(ctx, arg(1), arg(2));
    let (mut first, next, below) = (arg(4), arg(5), arg(6));
    let (columns, rows) = (arg(7), arg(8));
    let (mut row, step, down) = (arg(9), arg(10), arg(11));
    let mut noc = Noc::of(ctx);
    for _ in 0..rows {
        let (mut page, mut at) = (first, row);
        for _ in 0..columns {
            let there = buffer.page(page);
            if out {
                noc.write(at, there, bytes);
            } else {
                noc.read(there, at, bytes);
            }
            page += next;
            at += step;
        }
        first += below;
        row += down;
    }
    noc.read_barrier();
    noc.write_barrier();
}
