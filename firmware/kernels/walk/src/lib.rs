//! Pages of buffers in nested loops (`tilework_abi::walk`).
#![no_std]

use tilework_abi::walk::{BUFFERS, LOOPS, buffer, own};
use tilework_rt::cb::Producer;
use tilework_rt::dram::Interleaved;
use tilework_rt::{KernelContext, Noc, crta, rta};

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
    fn new(ctx: &KernelContext, i: u32, first: impl Fn(u32) -> u32) -> Self {
        let common = |n| crta(ctx, buffer::FIRST + i * buffer::WORDS + n);
        let counts: [u32; LOOPS] = core::array::from_fn(|k| common(buffer::COUNTS + k as u32));
        let steps: [u32; LOOPS] = core::array::from_fn(|k| common(buffer::STEPS + k as u32));
        let (mut at, mut page, mut rest) = ([0; LOOPS], 0, first(i));
        for k in (0..LOOPS).rev() {
            // Divisions take long.
            if counts[k] != 1 {
                at[k] = rest % counts[k];
                rest /= counts[k];
                page += at[k] * steps[k];
            }
        }
        Self {
            pages: Interleaved::new(ctx, common(buffer::ADDRESS), common(buffer::STRIDE)),
            bytes: common(buffer::BYTES),
            cb: Producer::new(ctx, common(buffer::CB)),
            counts,
            steps,
            at,
            page,
            left: own(ctx, i, own::PAGES),
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

/// How many buffers there are.
#[inline(always)]
pub fn count(ctx: &KernelContext) -> u32 {
    crta(ctx, buffer::COUNT).min(BUFFERS as u32)
}

/// The unique argument `n` of buffer `i`.
#[inline(always)]
pub fn own(ctx: &KernelContext, i: u32, n: u32) -> u32 {
    rta(ctx, i * own::WORDS + n)
}

/// Reads all pages of the core, of which the one with this number is the first of a buffer.
#[inline(always)]
pub fn read(ctx: &KernelContext, first: impl Fn(u32) -> u32 + Copy) {
    let count = count(ctx);
    let mut streams: [Option<Stream>; BUFFERS] = [const { None }; BUFFERS];
    for (i, stream) in (0..count).zip(&mut streams) {
        *stream = Some(Stream::new(ctx, i, first));
    }
    let mut noc = Noc::of(ctx);
    loop {
        let (mut left, mut coming) = (0, 0);
        for stream in streams.iter_mut().flatten() {
            stream.read(&mut noc);
            left |= stream.left;
            coming |= stream.coming;
        }
        if coming != 0 {
            noc.read_barrier();
            for stream in streams.iter_mut().flatten() {
                if stream.coming != 0 {
                    stream.cb.push_back(stream.coming);
                    stream.coming = 0;
                }
            }
        } else if left == 0 {
            break;
        }
    }
    noc.full_barrier();
}
