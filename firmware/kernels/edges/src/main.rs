//! Writes zeros behind the last rows or columns of matrices in tiles (`tilework_abi::edges`), in
//! place. Runs on either data-movement core.
//!
//! Only the tiles at the edge are read and written; what they hold beyond the matrix belongs to
//! nobody, so that the tensor stays the same.
#![no_std]
#![no_main]

use tilework_abi::edges::{arg, own};
use tilework_rt::cb::Producer;
use tilework_rt::dram::Interleaved;
use tilework_rt::reg::{publish, write8, write16};
use tilework_rt::{KernelContext, Noc, crta, kernel, reg, rta};

kernel!(main);

/// Rows and columns of a tile, and of a face.
const TILE: u32 = 32;
const FACE: u32 = 16;

fn main(ctx: &KernelContext) {
    let arg = |i| crta(ctx, i);
    let pages = Interleaved::new(ctx, arg(arg::ADDRESS), arg(arg::STRIDE));
    let (bytes, size, elements) = (arg(arg::BYTES), arg(arg::SIZE), arg(arg::ELEMENTS));
    let (across, down, rows, length) = (arg(arg::ACROSS), arg(arg::DOWN), arg(arg::ROWS) != 0, arg(arg::LENGTH));
    let memory = Producer::new(ctx, arg(arg::CB));
    memory.reserve_back(2);
    let (first, second) = (memory.write_ptr(), memory.write_ptr() + memory.page_size());
    let mut noc = Noc::of(ctx);
    let begin = rta(ctx, own::FIRST);
    let mut at = first;
    for i in begin..begin + rta(ctx, own::TILES) {
        let page = if rows { (i / across * down + down - 1) * across + i % across } else { i * across + across - 1 };
        // The tile before may still be leaving; the one before that has left.
        if i >= begin + 2 {
            noc.writes_flushed();
        }
        noc.read(pages.page(page), at, bytes);
        noc.read_barrier();
        for row in 0..TILE {
            let from = if rows { if row < length { TILE } else { 0 } } else { length };
            for column in from..TILE {
                let face = (row & FACE) * 2 + (column & FACE);
                clear(at + elements + ((face * FACE + (row % FACE) * FACE + column % FACE) << size), size);
            }
        }
        publish(at + elements);
        noc.write(at, pages.page(page), bytes);
        at = if at == first { second } else { first };
    }
    noc.full_barrier();
}

/// Writes a zero.
#[inline(always)]
fn clear(at: u32, size: u32) {
    match size {
        0 => write8(at, 0),
        1 => write16(at, 0),
        _ => reg::write(at, 0),
    }
}
