//! Makes pages of random numbers from 0 to below 1 (`tilework_abi::random`): each follows from the
//! seed and its place, whichever core makes it. Runs on either data-movement core, with the same
//! arguments on all tiles.
#![no_std]
#![no_main]

use tilework_abi::random::{ELEMENTS, GAMMA, PAGE_BYTES, arg, bits, fraction, state};
use tilework_rt::cb::Producer;
use tilework_rt::dram::Interleaved;
use tilework_rt::reg::{publish, write};
use tilework_rt::{KernelContext, Noc, crta, kernel};

kernel!(main);

fn main(ctx: &KernelContext) {
    let Some(own) = tilework_rt::number(ctx, 0) else { return };
    let which = crta(ctx, arg::WHICH);
    let (seed, pages, step) = (crta(ctx, arg::SEED), crta(ctx, arg::PAGES), crta(ctx, arg::STEP));
    let buffer = Interleaved::new(ctx, crta(ctx, arg::ADDRESS), PAGE_BYTES);
    let staged = Producer::new(ctx, which).write_ptr();
    let mut noc = Noc::of(ctx);

    let mut page = 2 * own + which;
    while page < pages {
        let mut state = state(seed, u64::from(page) * u64::from(ELEMENTS));
        for at in (staged..staged + PAGE_BYTES).step_by(4) {
            write(at, fraction(bits(state)));
            state = state.wrapping_add(GAMMA);
        }
        publish(staged + PAGE_BYTES - 4);
        noc.write(staged, buffer.page(page), PAGE_BYTES);
        noc.writes_flushed();
        page += step;
    }
    noc.write_barrier();
}
