//! Small programs, each in the manner of a kernel of ours, from which one wait, flush, barrier,
//! fence or credit can be left out or moved: for tests of what finds such bugs. Runs on both
//! data-movement cores.
//!
//! Arguments:
//! 0. which program ([`main`]);
//! 1. which bug: 0 for none, otherwise a number in the programs;
//! 2. turns of a loop before this core begins;
//! 3. this tile's index and 4. the number of tiles, which are side by side;
//! 5. the next tile and 6. the first one (`y << 6 | x`);
//! 7. L1 address of 4 KiB, the same on all tiles;
//! 8. input and 9. output: addresses in each DRAM bank, pages of [`PAGE`] bytes, eight for each
//!    tile;
//! 10. the second and 11. the last tile.
//!
//! Circular buffer 0 has two pages, 1 and 2 are those of `seeded-compute`. Semaphores 0 and 1 are
//! 0.
#![no_std]
#![no_main]

mod moves;
mod tells;

use tilework_abi::tensix::Processor;
use tilework_rt::dram::Interleaved;
use tilework_rt::reg::{publish, write};
use tilework_rt::sem::Semaphore;
use tilework_rt::{KernelContext, Noc, NocAddr, kernel, rta};

kernel!(main);

/// Bytes of a page.
const PAGE: u32 = 256;
/// Pages of a tile.
const PAGES: u32 = 8;

/// What all programs need.
struct Program<'a> {
    ctx: &'a KernelContext,
    noc: Noc,
    /// The other NoC, of a tile whose other core does nothing.
    other: u32,
    bug: u32,
    index: u32,
    count: u32,
    next: u32,
    first: u32,
    slot: u32,
    input: Interleaved,
    output: Interleaved,
    /// This is BRISC.
    brisc: bool,
}

impl Program<'_> {
    /// Whether this is not the bug of the run: `n` is left out when it is.
    fn keeps(&self, n: u32) -> bool {
        self.bug != n
    }
    fn has(&self, n: u32) -> bool {
        self.bug == n
    }
    fn in_page(&self, page: u32) -> NocAddr {
        self.input.page(self.index * PAGES + page)
    }
    fn out_page(&self, page: u32) -> NocAddr {
        self.output.page(self.index * PAGES + page)
    }
    fn semaphore(&self, id: u32) -> Semaphore {
        Semaphore::of(self.ctx, id)
    }
    fn other_noc(&self) -> Noc {
        Noc::new(self.other, self.ctx.processor)
    }
    /// Fills 64 bytes of L1; the caller makes them known.
    fn fill(&self, at: u32, value: u32) {
        for word in 0..16 {
            write(at + 4 * word, value + word);
        }
    }
    /// The same, seen by everybody.
    fn fill_and_publish(&self, at: u32, value: u32, bug: u32) {
        self.fill(at, value);
        if self.keeps(bug) {
            publish(at + 60);
        }
    }
}

fn main(ctx: &KernelContext) {
    for turn in 0..rta(ctx, 2) {
        // The compiler leaves loops out in which nothing happens.
        core::hint::black_box(turn);
    }
    let mut program = Program {
        ctx,
        noc: Noc::of(ctx),
        other: ctx.noc ^ 1,
        bug: rta(ctx, 1),
        index: rta(ctx, 3),
        count: rta(ctx, 4),
        next: rta(ctx, 5),
        first: rta(ctx, 6),
        slot: rta(ctx, 7),
        input: Interleaved::new(ctx, rta(ctx, 8), PAGE),
        output: Interleaved::new(ctx, rta(ctx, 9), PAGE),
        brisc: ctx.processor == Processor::Brisc as u32,
    };
    match rta(ctx, 0) {
        0 => moves::pipe(&mut program),
        1 => moves::increment(&mut program),
        2 => moves::posted(&mut program),
        3 => moves::exchange(&mut program),
        4 => tells::token(&mut program),
        5 => tells::share(&mut program),
        6 => tells::local(&mut program),
        7 => tells::gather(&mut program),
        8 => tells::pull(&mut program),
        9 | 11 => moves::tiles(&mut program),
        12 => moves::turns(&mut program),
        _ => {}
    }
}
