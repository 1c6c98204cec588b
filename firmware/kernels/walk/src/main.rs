//! Reads pages of several interleaved DRAM buffers in nested loops, each into a circular buffer
//! (`tilework_abi::walk`). Runs on NCRISC; feeds `functions`.
//!
//! Each buffer has loops of its own, so that operands that are spread over others come as often as
//! they are needed. Pages are read as circular buffers have room, whichever that is.
#![no_std]
#![no_main]

use tilework_abi::walk::{BUFFERS, LOOPS, buffer, own};
use tilework_rt::cb::Producer;
use tilework_rt::dram::Interleaved;
use tilework_rt::{KernelContext, Noc, crta, kernel, rta};

kernel!(main);

/// Pages of one buffer that are on their way at once.
const AT_ONCE: u32 = 4;

/// A buffer, its loops and its circular buffer.
struct Stream {
    pages: Interleaved,
    bytes: u32,
    cb: Producer,
    counts: [u32; LOOPS],
    steps: [u32; LOOPS],
    at: [u32; LOOPS],
    page: u32,
    left: u32,
    coming: u32,
}

impl Stream {
    #[inline(always)]
    fn new(ctx: &KernelContext, i: u32) -> Self {
        let common = |n| crta(ctx, buffer::FIRST + i * buffer::WORDS + n);
        let unique = |n| rta(ctx, i * own::WORDS + n);
        let counts: [u32; LOOPS] = core::array::from_fn(|k| common(buffer::COUNTS + k as u32));
        let steps: [u32; LOOPS] = core::array::from_fn(|k| common(buffer::STEPS + k as u32));
        let (mut at, mut page, mut rest) = ([0; LOOPS], 0, unique(own::FIRST));
        for k in (0..LOOPS).rev() {
            at[k] = rest % counts[k];
            rest /= counts[k];
            page += at[k] * steps[k];
        }
        Self {
            pages: Interleaved::new(ctx, common(buffer::ADDRESS), common(buffer::STRIDE)),
            bytes: common(buffer::BYTES),
            cb: Producer::new(ctx, common(buffer::CB)),
            counts,
            steps,
            at,
            page,
            left: unique(own::PAGES),
            coming: 0,
        }
    }

    /// The number of this page; goes to the next one.
    #[inline(always)]
    fn next(&mut self) -> u32 {
        let page = self.page;
        for k in (0..LOOPS).rev() {
            self.at[k] += 1;
            self.page += self.steps[k];
            if self.at[k] < self.counts[k] {
                break;
            }
            self.page -= self.steps[k] * self.counts[k];
            self.at[k] = 0;
        }
        page
    }

    /// Starts to read what there is room for.
    #[inline(always)]
    fn read(&mut self, noc: &mut Noc) {
        while self.left != 0 && self.coming < AT_ONCE && self.cb.has_room(self.coming + 1) {
            let page = self.next();
            noc.read(self.pages.page(page), self.cb.write_ptr_after(self.coming), self.bytes);
            self.coming += 1;
            self.left -= 1;
        }
    }
}

fn main(ctx: &KernelContext) {
    let count = crta(ctx, buffer::COUNT).min(BUFFERS as u32);
    let mut streams: [Stream; BUFFERS] = core::array::from_fn(|i| Stream::new(ctx, (i as u32).min(count - 1)));
    let streams = &mut streams[..count as usize];
    let mut noc = Noc::of(ctx);
    while streams.iter().any(|stream| stream.left != 0) {
        streams.iter_mut().for_each(|stream| stream.read(&mut noc));
        if streams.iter().all(|stream| stream.coming == 0) {
            continue;
        }
        noc.read_barrier();
        for stream in streams.iter_mut() {
            if stream.coming != 0 {
                stream.cb.push_back(stream.coming);
                stream.coming = 0;
            }
        }
    }
    noc.full_barrier();
}
