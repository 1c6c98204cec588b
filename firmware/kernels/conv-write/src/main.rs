//! Reads the weights of a convolution and writes its results (`tilework_abi::conv`). Runs on BRISC;
//! its partner is `conv`.
#![no_std]
#![no_main]

use tilework_abi::conv::{PAGE, arg, cb, own};
use tilework_rt::cb::{Consumer, Producer};
use tilework_rt::dram::Interleaved;
use tilework_rt::{KernelContext, Noc, crta, kernel, rta};

kernel!(main);

/// Rows of weights that are on their way at once, each with a transaction id.
const IN_FLIGHT: u32 = 8;

fn main(ctx: &KernelContext) {
    let common = |i| crta(ctx, i);
    let (inner, columns, all) = (common(arg::INNER), common(arg::COLUMNS), common(arg::ALL_COLUMNS));
    let (first, rows, column) = (rta(ctx, own::FIRST), rta(ctx, own::ROWS), rta(ctx, own::COLUMN));
    let mut noc = Noc::of(ctx);
    if rows != 0 {
        read_weights(ctx, &mut noc, [inner, columns, all, column]);
    }

    let mut results = Consumer::new(ctx, cb::RESULT);
    let page = common(arg::RESULT_PAGE);
    let to = Interleaved::new(ctx, common(arg::RESULT), page);
    for row in first..first + rows {
        let mut tile = to.cursor(row * all + column);
        for _ in 0..columns {
            results.wait_front(1);
            noc.write(results.read_ptr(), tile.next_page(), page);
            noc.writes_flushed();
            results.pop_front(1);
        }
    }
    noc.full_barrier();
}

/// Reads this core's columns of all rows, and hands them over row by row.
fn read_weights(ctx: &KernelContext, noc: &mut Noc, [inner, columns, all, column]: [u32; 4]) {
    let mut cb = Producer::new(ctx, cb::WEIGHTS);
    let pages = Interleaved::new(ctx, crta(ctx, arg::WEIGHTS), PAGE);
    let (next, mut corner) = (pages.distance(all), pages.cursor(column));
    let mut asked = 0;
    for row in 0..inner {
        while asked < inner && asked - row < IN_FLIGHT {
            cb.reserve_back((asked - row + 1) * columns);
            let (mut tile, to) = (corner, cb.write_ptr_after((asked - row) * columns));
            noc.same_reads(asked % IN_FLIGHT, PAGE);
            for i in 0..columns {
                noc.read_same(tile.next_page(), to + i * PAGE);
            }
            corner = corner.plus(next);
            asked += 1;
        }
        noc.wait_tag(row % IN_FLIGHT);
        cb.push_back(columns);
    }
}
