//! Passes a token around the workers. Runs on BRISC.
//!
//! The token is a running total. A worker that has it adds its contribution, writes the total into
//! the next worker's L1, waits until it is there and adds one to the next worker's semaphore 0 over
//! the network. After the last lap each worker stores the total as it was after its own addition:
//! element `index` of the output. Worker 0 starts with a total of 0 and ends when the token has
//! come back to it.
//!
//! Element i of worker i is the sum of all contributions of laps 1 to L - 1 plus those of workers 0
//! to i.
//!
//! Arguments:
//! 0. this worker's index in the ring, from 0;
//! 1. next worker: encoded coordinates, y << 6 | x (its own if it is the only one);
//! 2. laps, at least 1;
//! 3. contribution of this worker;
//! 4. L1 address of the word that the token arrives in, a multiple of 16, the same on all workers;
//! 5. output buffer: address in each DRAM bank, interleaved, one 32-bit element per worker, densely
//!    packed;
//! 6. page size of the output buffer in bytes: a multiple of 64.
//!
//! Semaphore 0 must be 0 on all workers.
#![no_std]
#![no_main]

use tilework_rt::dram::Interleaved;
use tilework_rt::reg::read;
use tilework_rt::sem::Semaphore;
use tilework_rt::{KernelContext, Noc, NocAddr, kernel, rta};

kernel!(main);

fn main(ctx: &KernelContext) {
    let (index, next, laps, contribution) = (rta(ctx, 0), rta(ctx, 1), rta(ctx, 2), rta(ctx, 3));
    let token = rta(ctx, 4);
    let arrived = Semaphore::of(ctx, 0);
    let mut noc = Noc::of(ctx);

    let mut total = 0;
    for lap in 0..laps {
        // Worker 0 has the token at the start; everybody else gets it once before.
        let arrivals = if index == 0 { lap } else { lap + 1 };
        let before = if arrivals == 0 {
            0
        } else {
            arrived.wait_min(arrivals);
            read(token)
        };
        total = before.wrapping_add(contribution);
        noc.write_word(NocAddr::new(next, token), total);
        noc.write_barrier();
        noc.semaphore_inc(NocAddr::new(next, arrived.addr()), 1);
    }

    let page_size = rta(ctx, 6);
    let byte = index * 4;
    let page = byte / page_size;
    let output = Interleaved::new(ctx, rta(ctx, 5), page_size).page(page);
    noc.write_word(output.plus(byte - page * page_size), total);
    if index == 0 {
        arrived.wait_min(laps);
    }
    noc.full_barrier();
}
