//! Moves runs of pages of several interleaved DRAM buffers into a circular buffer each, one page of
//! each in turn. Runs on NCRISC; feeds compute kernels.
//!
//! Arguments:
//! 0. number of pages of each (may be 0, and differ from core to core);
//! 1. number of buffers, 1 to 4; then for each of them
//! 2. address in each DRAM bank;
//! 3. first page;
//! 4. pages of this buffer at most; 0: as many as of the others;
//! 5. page size in bytes: a multiple of 64, the circular buffer's page size;
//! 6. number of the circular buffer, whose address is a multiple of 64.
#![no_std]
#![no_main]

use tilework_rt::cb::Producer;
use tilework_rt::dram::Interleaved;
use tilework_rt::{KernelContext, Noc, kernel, rta};

kernel!(main);

/// Buffers at most.
const MOST: usize = 4;
/// Arguments before those of the buffers, and of a buffer.
const FIRST: u32 = 2;
const EACH: u32 = 5;

/// A buffer and its circular buffer.
struct Stream {
    source: Interleaved,
    page: u32,
    left: u32,
    page_size: u32,
    cb: Producer,
}

impl Stream {
    fn new(ctx: &KernelContext, i: u32) -> Self {
        let arg = |n| rta(ctx, FIRST + i * EACH + n);
        let page_size = arg(3);
        let source = Interleaved::new(ctx, arg(0), page_size);
        let left = if arg(2) == 0 { u32::MAX } else { arg(2) };
        Self { source, page: arg(1), left, page_size, cb: Producer::new(ctx, arg(4)) }
    }
}

fn main(ctx: &KernelContext) {
    let (pages, count) = (rta(ctx, 0), rta(ctx, 1) as usize);
    let mut streams: [Option<Stream>; MOST] = [None, None, None, None];
    for (i, stream) in streams.iter_mut().enumerate().take(count) {
        *stream = Some(Stream::new(ctx, i as u32));
    }
    let mut noc = Noc::of(ctx);
    for _ in 0..pages {
        for stream in streams.iter().flatten().filter(|s| s.left != 0) {
            stream.cb.reserve_back(1);
            noc.read(stream.source.page(stream.page), stream.cb.write_ptr(), stream.page_size);
        }
        noc.read_barrier();
        for stream in streams.iter_mut().flatten().filter(|s| s.left != 0) {
            stream.cb.push_back(1);
            stream.page += 1;
            stream.left -= 1;
        }
    }
}
