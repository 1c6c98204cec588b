//! Moves the pages of several circular buffers to runs of pages of an interleaved DRAM buffer each,
//! one page of each in turn. Runs on BRISC; takes what compute kernels make.
//!
//! Arguments:
//! 0. number of pages of each (may be 0);
//! 1. number of buffers, 1 to 4; then for each of them
//! 2. address in each DRAM bank;
//! 3. first page;
//! 4. page size in bytes: a multiple of 64, the circular buffer's page size;
//! 5. number of the circular buffer, whose address is a multiple of 64.
#![no_std]
#![no_main]

use tilework_rt::cb::Consumer;
use tilework_rt::dram::Interleaved;
use tilework_rt::{KernelContext, Noc, kernel, rta};

kernel!(main);

/// Buffers at most.
const MOST: usize = 4;
/// Arguments before those of the buffers, and of a buffer.
const FIRST: u32 = 2;
const EACH: u32 = 4;

/// A circular buffer and where its pages go.
struct Stream {
    destination: Interleaved,
    first: u32,
    page_size: u32,
    cb: Consumer,
}

impl Stream {
    fn new(ctx: &KernelContext, i: u32) -> Self {
        let arg = |n| rta(ctx, FIRST + i * EACH + n);
        let page_size = arg(2);
        let destination = Interleaved::new(ctx, arg(0), page_size);
        Self { destination, first: arg(1), page_size, cb: Consumer::new(ctx, arg(3)) }
    }
}

fn main(ctx: &KernelContext) {
    let (pages, count) = (rta(ctx, 0), rta(ctx, 1) as usize);
    let mut streams: [Option<Stream>; MOST] = [None, None, None, None];
    for (i, stream) in streams.iter_mut().enumerate().take(count) {
        *stream = Some(Stream::new(ctx, i as u32));
    }
    let mut noc = Noc::of(ctx);
    for page in 0..pages {
        for stream in streams.iter_mut().flatten() {
            stream.cb.wait_front(1);
            let to = stream.destination.page(stream.first + page);
            noc.write(stream.cb.read_ptr(), to, stream.page_size);
            // The page may be overwritten once it has left L1.
            noc.writes_flushed();
            stream.cb.pop_front(1);
        }
    }
    noc.write_barrier();
}
