//! Makes the masks of attention and writes its results (`tilework_abi::flash`). Runs on BRISC; its
//! partner is `flash`.
//!
//! A given mask is read tile by tile. What a band hides of a tile is written over it, or over
//! zeros.
#![no_std]
#![no_main]

use tilework_abi::flash::{Band, HAS_POSITIONS, TILE, UNSEEN, arg, cb, own};
use tilework_rt::cb::{Consumer, Producer};
use tilework_rt::dram::Interleaved;
use tilework_rt::reg::{publish, read, write, write16};
use tilework_rt::sem::Semaphore;
use tilework_rt::{KernelContext, Noc, crta, kernel, rta};

kernel!(main);

/// Bytes of a tile of results.
const PAGE: u32 = 2048;
/// Rows and columns of a face; rows of a tile.
const FACE: u32 = 16;
const ROWS: u32 = TILE as u32;

/// Where masks come from and go to.
struct Masks {
    cb: Producer,
    pages: Interleaved,
    /// Bytes of an element, and whether a mask is given.
    size: u32,
    given: bool,
    band: Band,
}

impl Masks {
    /// The mask of a tile of scores, if it has one; `page`: that of a given mask.
    fn make(&mut self, noc: &mut Noc, row: u32, tile: u32, page: u32) {
        let whole = self.band.sees_all(row, tile);
        if whole && !self.given {
            return;
        }
        self.cb.reserve_back(1);
        let at = self.cb.write_ptr();
        if self.given {
            noc.read(self.pages.page(page), at, self.cb.page_size());
            noc.read_barrier();
        } else {
            for word in (at..at + self.cb.page_size()).step_by(32) {
                (0..8).for_each(|i| write(word + i * 4, 0));
            }
        }
        if !whole {
            for i in 0..ROWS {
                let (from, to) = self.band.columns(row * ROWS + i, tile);
                self.hide(at, i, [0, from]);
                self.hide(at, i, [to, ROWS]);
            }
        }
        publish(at + self.cb.page_size() - 4);
        self.cb.push_back(1);
    }

    /// Hides a row's columns from the first to before the second.
    #[inline(always)]
    fn hide(&self, at: u32, row: u32, [from, to]: [u32; 2]) {
        let row = at + ((row & FACE) * 2 * FACE + row % FACE * FACE) * self.size;
        let place = |column: u32| row + ((column & FACE) * FACE + column % FACE) * self.size;
        let mut column = from;
        if self.size == 4 {
            while column < to {
                write(place(column), UNSEEN);
                column += 1;
            }
            return;
        }
        if column < to && column % 2 != 0 {
            write16(place(column), (UNSEEN >> 16) as u16);
            column += 1;
        }
        while column + 1 < to {
            write(place(column), UNSEEN | UNSEEN >> 16);
            column += 2;
        }
        if column < to {
            write16(place(column), (UNSEEN >> 16) as u16);
        }
    }
}

fn main(ctx: &KernelContext) {
    let common = |i| crta(ctx, i);
    let (mut noc, mut results) = (Noc::of(ctx), Consumer::new(ctx, cb::RESULT));
    let band =
        Band { low: common(arg::LOW) as i32, high: common(arg::HIGH) as i32, length: common(arg::LENGTH) as i32 };
    let (rows, keys, width, split) = (common(arg::ROWS), common(arg::KEYS), common(arg::WIDTH), common(arg::SPLIT));
    let given = common(arg::MASK);
    let size = if given == 4 { 4 } else { 2 };
    let pages = Interleaved::new(ctx, common(arg::MASK_ADDRESS), ROWS * ROWS * size);
    let mut masks = Masks { cb: Producer::new(ctx, cb::MASK), pages, size, given: given != 0, band };
    let to = Interleaved::new(ctx, common(arg::RESULT), PAGE);
    let (first, units) = (rta(ctx, own::FIRST), rta(ctx, own::UNITS));
    let has_positions = common(arg::POSITION_COUNT) != 0;
    if has_positions && units != 0 {
        Semaphore::of(ctx, HAS_POSITIONS).wait_min(1);
    }
    let positions = Producer::new(ctx, cb::POSITIONS).write_ptr();
    for unit in first..first + units {
        let head = unit / split;
        let (batch, of_batch) = (head / common(arg::HEADS), head % common(arg::HEADS));
        if has_positions {
            masks.band = masks.band.up_to(read(positions + 4 * batch));
        }
        let mask = batch * common(arg::MASK_BATCH) + of_batch * common(arg::MASK_HEAD);
        for row in (unit % split..rows).step_by(split as usize) {
            let (begin, end) = masks.band.tiles(row);
            for tile in begin..end {
                masks.make(&mut noc, row, tile, mask + row * keys + tile);
            }
            let mut page = to.cursor((head * rows + row) * width);
            for _ in 0..width {
                results.wait_front(1);
                noc.write(results.read_ptr(), page.next_page(), PAGE);
                noc.writes_flushed();
                results.pop_front(1);
            }
        }
    }
    noc.full_barrier();
}
