//! Small programs, each with one mistake that the chip does not complain about, for examples and
//! tests of what finds them. A line with a mistake says so with the id of the finding, behind
//! "wrong:". Runs on both data-movement cores.
//!
//! Arguments:
//! 0. which program ([`main`]);
//! 1. input and 2. output: addresses in each DRAM bank, pages of [`PAGE`] bytes;
//! 3. first page of this tile, and 4. the number of its pages;
//! 5. L1 address of 64 KiB, the same on all tiles;
//! 6. the first and 7. the last tile (`y << 6 | x`);
//! 8. zero.
//!
//! Program 31 moves its pages from input to output, without a mistake.
//!
//! Circular buffer 0 has two pages. Semaphore 0 is 0.
#![no_std]
#![no_main]

mod bounds;
mod protocol;

use tilework_abi::tensix::Processor;
use tilework_rt::dram::Interleaved;
use tilework_rt::reg::{publish, wall_clock, write};
use tilework_rt::{KernelContext, Noc, kernel, rta};

kernel!(main);

/// Bytes of a page.
const PAGE: u32 = 256;

/// What all programs need.
struct Program<'a> {
    ctx: &'a KernelContext,
    noc: Noc,
    input: Interleaved,
    output: Interleaved,
    /// The first page of this tile.
    start: u32,
    /// The number of its pages.
    pages: u32,
    slots: u32,
    first: u32,
    last: u32,
    zero: u32,
    /// This is BRISC.
    brisc: bool,
}

impl Program<'_> {
    /// Fills a page in L1, seen by everybody.
    fn fill(&self, at: u32) {
        for word in 0..PAGE / 4 {
            write(at + 4 * word, word);
        }
        publish(at + PAGE - 4);
    }
}

/// Does nothing for some thousand cycles.
fn pause() {
    for _ in 0..100 {
        wall_clock();
    }
}

fn main(ctx: &KernelContext) {
    let mut program = Program {
        ctx,
        noc: Noc::of(ctx),
        input: Interleaved::new(ctx, rta(ctx, 1), PAGE),
        output: Interleaved::new(ctx, rta(ctx, 2), PAGE),
        start: rta(ctx, 3),
        pages: rta(ctx, 4),
        slots: rta(ctx, 5),
        first: rta(ctx, 6),
        last: rta(ctx, 7),
        zero: rta(ctx, 8),
        brisc: ctx.processor == Processor::Brisc as u32,
    };
    let p = &mut program;
    match (rta(ctx, 0), p.brisc) {
        (8, true) => bounds::slow_consumer(p),
        (9, true) => bounds::hasty_consumer(p),
        (8, false) => bounds::overrun(p),
        (9 | 22 | 31, false) => bounds::producer(p),
        (11, false) => bounds::first_round(p),
        (11 | 31, true) => bounds::consumer(p),
        (22, true) => protocol::pops_too_many(p),
        (25, true) => protocol::tells_late(p),
        (_, true) => {}
        (0, _) => bounds::argument(p),
        (1, _) => bounds::unwritten_l1(p),
        (2, _) => bounds::unwritten_dram(p),
        (3, _) => bounds::past_l1(p),
        (4, _) => bounds::past_dram(p),
        (5, _) => bounds::one_page(p),
        (6, _) => bounds::unowned_l1(p),
        (7, _) => bounds::unowned_dram(p),
        (10, _) => bounds::stack(p),
        (12, _) => bounds::null(p),
        (13, _) => bounds::firmware(p),
        (14, _) => bounds::text(p),
        (15, _) => bounds::unwritten_local(),
        (20, _) => protocol::not_waited(p),
        (21, _) => protocol::link_open(p),
        (23, _) => protocol::pushes_too_many(p),
        (24, _) => protocol::below_zero(p),
        (25, _) => protocol::stale_copy(p),
        (26, _) => protocol::misaligned(p),
        (27, _) => protocol::id_again(p),
        (28, _) => protocol::too_long(p),
        (29, _) => protocol::new_code(p),
        _ => {}
    }
}
