//! Writes rows of tiles from a circular buffer (`tilework_abi::rowwise`) to an interleaved DRAM
//! buffer, as many tiles at a time as there are. Runs on BRISC; its partner is `row-reader`.
#![no_std]
#![no_main]

use tilework_abi::rowwise::{cb, writer};
use tilework_rt::cb::Consumer;
use tilework_rt::dram::Interleaved;
use tilework_rt::{KernelContext, Noc, crta, kernel, rta};

kernel!(main);

fn main(ctx: &KernelContext) {
    let (first, rows, turn) = (rta(ctx, writer::FIRST), rta(ctx, writer::ROWS), rta(ctx, writer::TURN));
    let (columns, turned) = (crta(ctx, writer::COLUMNS), crta(ctx, writer::TURNED));
    let bytes = crta(ctx, writer::BYTES);
    let pages = Interleaved::new(ctx, crta(ctx, writer::ADDRESS), crta(ctx, writer::STRIDE));
    let (mut start, row) = (pages.cursor(first), pages.distance(columns));
    let (turn_distance, turned_distance) = (pages.distance(turn), pages.distance(turned));
    let back = turned - turn;
    let mut cb = Consumer::new(ctx, cb::Y);
    let mut noc = Noc::of(ctx);
    for _ in 0..rows {
        let mut to = start.plus(turn_distance);
        let mut done = 0;
        while done < columns {
            cb.wait_front(1);
            let end = done + cb.filled().min(columns - done);
            let (here, mut from) = (end - done, cb.read_ptr());
            for i in done..end {
                if i == back {
                    to = start;
                }
                if i == turned {
                    to = start.plus(turned_distance);
                }
                noc.write(from, to.next_page(), bytes);
                from += bytes;
            }
            // Pages may be overwritten once they have left L1.
            noc.writes_flushed();
            cb.pop_front(here);
            done = end;
        }
        start = start.plus(row);
    }
    noc.write_barrier();
}
