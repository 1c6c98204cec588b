//! Reads rows of tiles from interleaved DRAM buffers into circular buffers
//! (`tilework_abi::rowwise`), all tiles of a row at once. Runs on NCRISC; feeds `row-softmax` and
//! `row-norm`.
#![no_std]
#![no_main]

use tilework_abi::rowwise::{cb, flag, reader};
use tilework_rt::cb::Producer;
use tilework_rt::dram::Interleaved;
use tilework_rt::reg::{publish, write};
use tilework_rt::{KernelContext, Noc, crta, kernel, rta};

kernel!(main);

/// Elements of the row of ones: those of a row of a face.
const ONES: u32 = 16;

fn main(ctx: &KernelContext) {
    let (first, rows) = (rta(ctx, reader::FIRST), rta(ctx, reader::ROWS));
    let (columns, flags) = (crta(ctx, reader::COLUMNS), crta(ctx, reader::FLAGS));
    let (turn, turned) = (rta(ctx, reader::TURN), crta(ctx, reader::TURNED));
    if rows == 0 {
        return;
    }
    let common = |buffer: u32, i: u32| crta(ctx, reader::BUFFERS + buffer * reader::WORDS + i);
    let mut noc = Noc::of(ctx);
    let row = |noc: &mut Noc, cb: &mut Producer, buffer: u32, first: u32| {
        cb.reserve_back(columns);
        let pages = Interleaved::new(ctx, common(buffer, reader::ADDRESS), common(buffer, reader::STRIDE));
        let start = pages.cursor(first);
        let (mut page, mut to) = (start.plus(pages.distance(turn)), cb.write_ptr());
        let back = turned - turn;
        noc.same_reads(0, common(buffer, reader::BYTES));
        for i in 0..columns {
            if i == back {
                page = start;
            }
            if i == turned {
                page = start.plus(pages.distance(turned));
            }
            noc.read_same(page.next_page(), to);
            to += cb.page_size();
        }
    };
    let mut x = Producer::new(ctx, cb::X);
    row(&mut noc, &mut x, 0, first);

    let mut ones = Producer::new(ctx, cb::ONES);
    ones.reserve_back(1);
    let at = ones.write_ptr();
    (0..ONES).for_each(|i| write(at + 4 * i, 1f32.to_bits()));
    publish(at + 4 * (ONES - 1));
    ones.push_back(1);

    noc.read_barrier();
    x.push_back(columns);
    for (buffer, bit, id) in [(1, flag::WEIGHTED, cb::WEIGHT), (2, flag::BIASED, cb::BIAS)] {
        if flags & bit != 0 {
            let mut cb = Producer::new(ctx, id);
            row(&mut noc, &mut cb, buffer, 0);
            noc.read_barrier();
            cb.push_back(columns);
        }
    }
    for i in 1..rows {
        row(&mut noc, &mut x, 0, first + i * columns);
        noc.read_barrier();
        x.push_back(columns);
    }
}
