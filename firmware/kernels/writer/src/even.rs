//! Writes as `writer` does, with the same arguments on all cores (`tilework_abi::walk::result`):
//! each has as many pages, and leaves out those that the buffer does not have. Runs on BRISC; its
//! partner is `even-walk`.
#![no_std]
#![no_main]

use tilework_abi::walk::result;
use tilework_rt::cb::Consumer;
use tilework_rt::dram::Interleaved;
use tilework_rt::{KernelContext, Noc, crta, kernel};

kernel!(main);

fn main(ctx: &KernelContext) {
    let Some(own) = tilework_rt::number(ctx, 0) else { return };
    let (pages, page_size) = (crta(ctx, result::PAGES), crta(ctx, result::BYTES));
    let first = own * pages;
    let mut destination = Interleaved::new(ctx, crta(ctx, result::ADDRESS), page_size).cursor(first);
    let mut cb = Consumer::new(ctx, crta(ctx, result::CB));
    let mut noc = Noc::of(ctx);

    for page in first..first + pages {
        cb.wait_front(1);
        if page < crta(ctx, result::ALL) {
            noc.write(cb.read_ptr(), destination.next_page(), page_size);
            // The page may be overwritten once it has left L1.
            noc.writes_flushed();
        }
        cb.pop_front(1);
    }
    noc.write_barrier();
}
