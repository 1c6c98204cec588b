//! Adds a value to every 32-bit element of a run of pages of an interleaved DRAM buffer. Runs on
//! BRISC.
//!
//! Pages come into a ring of L1 slots, are changed in place by the core and leave again; while one
//! is worked on, the next are on their way. Elements are 32-bit integers and wrap. Padding at the
//! end of a page is counted up like the rest.
//!
//! Arguments:
//! 0. source buffer: address in each DRAM bank;
//! 1. destination buffer: address in each DRAM bank;
//! 2. first page;
//! 3. number of pages (may be 0);
//! 4. page size in bytes: a multiple of 64;
//! 5. value to add;
//! 6. L1 address of the slots, a multiple of 64;
//! 7. number of slots, 2 to 15 (3: two reads in flight while a page is worked on); together slots
//!    times page size bytes.
#![no_std]
#![no_main]

use tilework_rt::dram::Interleaved;
use tilework_rt::reg::{publish, read, write};
use tilework_rt::{KernelContext, Noc, kernel, rta};

kernel!(main);

fn main(ctx: &KernelContext) {
    let (first, count, page_size) = (rta(ctx, 2), rta(ctx, 3), rta(ctx, 4));
    let value = rta(ctx, 5);
    let ring = Ring { start: rta(ctx, 6), slots: rta(ctx, 7), page_size };
    if count == 0 {
        return;
    }
    let mut noc = Noc::of(ctx);
    let mut source = Interleaved::new(ctx, rta(ctx, 0), page_size).cursor(first);
    let mut destination = Interleaved::new(ctx, rta(ctx, 1), page_size).cursor(first);

    // Slot s is read under transaction id s + 1, so that each can be waited for on its own.
    let mut requested = 0;
    let mut next_slot = 0;
    let mut slot = 0;
    for done in 0..count {
        // All slots but the one whose page has just left are filled ahead; that one must have left
        // L1 first.
        noc.writes_flushed();
        while requested < count && requested < done + ring.slots - 1 {
            noc.read_tagged(next_slot + 1, source.next_page(), ring.slot(next_slot), page_size);
            next_slot = ring.after(next_slot);
            requested += 1;
        }
        let at = ring.slot(slot);
        noc.wait_tag(slot + 1);
        add(at, page_size, value);
        noc.write(at, destination.next_page(), page_size);
        slot = ring.after(slot);
    }
    noc.write_barrier();
}

/// The slots in L1.
struct Ring {
    start: u32,
    slots: u32,
    page_size: u32,
}

impl Ring {
    fn slot(&self, i: u32) -> u32 {
        self.start + i * self.page_size
    }
    fn after(&self, i: u32) -> u32 {
        if i + 1 == self.slots { 0 } else { i + 1 }
    }
}

/// Adds `value` to the words of the page at `at`. Four loads go out before the first is needed,
/// because each takes several cycles.
fn add(at: u32, bytes: u32, value: u32) {
    let end = at + bytes;
    let mut p = at;
    while p != end {
        let words = [read(p), read(p + 4), read(p + 8), read(p + 12)];
        write(p, words[0].wrapping_add(value));
        write(p + 4, words[1].wrapping_add(value));
        write(p + 8, words[2].wrapping_add(value));
        write(p + 12, words[3].wrapping_add(value));
        p += 16;
    }
    publish(end - 4);
}
