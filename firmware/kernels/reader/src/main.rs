//! Moves a run of pages of an interleaved DRAM buffer into a circular buffer. Runs on NCRISC; its
//! partner is `writer`.
//!
//! Half of the circular buffer is requested at a time, while the partner empties the other half.
//!
//! Arguments:
//! 0. source buffer: address in each DRAM bank;
//! 1. first page;
//! 2. number of pages (may be 0, and differ from core to core);
//! 3. page size in bytes: a multiple of 64, at most the circular buffer's page size;
//! 4. number of the circular buffer, whose address and page size are multiples of 64.
#![no_std]
#![no_main]

use tilework_rt::cb::Producer;
use tilework_rt::dram::Interleaved;
use tilework_rt::{KernelContext, Noc, kernel, rta};

kernel!(main);

fn main(ctx: &KernelContext) {
    let page_size = rta(ctx, 3);
    let mut source = Interleaved::new(ctx, rta(ctx, 0), page_size).cursor(rta(ctx, 1));
    let mut left = rta(ctx, 2);
    let mut cb = Producer::new(ctx, rta(ctx, 4));
    let mut noc = Noc::of(ctx);

    // Pages that are reserved together must not wrap: their number divides the capacity.
    let batch = if cb.capacity() % 2 == 0 { cb.capacity() / 2 } else { 1 };
    while left != 0 {
        let pages = left.min(batch);
        cb.reserve_back(pages);
        let mut at = cb.write_ptr();
        for _ in 0..pages {
            noc.read(source.next_page(), at, page_size);
            at += cb.page_size();
        }
        noc.read_barrier();
        cb.push_back(pages);
        left -= pages;
    }
}
