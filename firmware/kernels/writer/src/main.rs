//! Moves the pages of a circular buffer to a run of pages of an interleaved DRAM buffer. Runs on
//! BRISC; its partner is `reader`.
//!
//! Arguments:
//! 0. destination buffer: address in each DRAM bank;
//! 1. first page;
//! 2. number of pages (may be 0; the partner's number);
//! 3. page size in bytes: a multiple of 64, at most the circular buffer's page size;
//! 4. number of the circular buffer, whose address and page size are multiples of 64.
#![no_std]
#![no_main]

use tilework_rt::cb::Consumer;
use tilework_rt::dram::Interleaved;
use tilework_rt::{KernelContext, Noc, kernel, rta};

kernel!(main);

fn main(ctx: &KernelContext) {
    let page_size = rta(ctx, 3);
    let mut destination = Interleaved::new(ctx, rta(ctx, 0), page_size).cursor(rta(ctx, 1));
    let pages = rta(ctx, 2);
    let mut cb = Consumer::new(ctx, rta(ctx, 4));
    let mut noc = Noc::of(ctx);

    for _ in 0..pages {
        cb.wait_front(1);
        noc.write(cb.read_ptr(), destination.next_page(), page_size);
        // The page may be overwritten once it has left L1.
        noc.writes_flushed();
        cb.pop_front(1);
    }
    noc.write_barrier();
}
