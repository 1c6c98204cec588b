//! Turns rows of bfloat16 into tiles, tiles into rows, or rows into tiles and back.
//!
//! Arguments:
//! 0. number of rows of tiles (may be 0);
//! 1. tiles of a row: at most 8;
//! 2. whether rows are turned into tiles, 3. whether tiles are turned into rows;
//! 4. to 6. numbers of the circular buffers of rows, tiles, and rows. A page has as many bytes as a
//!    tile; the buffers of rows have room for a whole number of rows of tiles, that of tiles for
//!    one.
#![no_std]

use tilework_compute::{Cb, Compute, Format, Thread};

const FORMAT: Format = Format::Bf16;

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let (rows, columns) = (k.arg(0), k.arg(1));
    let [mut x, mut tiles, mut y] = [4, 5, 6].map(|i| k.cb(k.arg(i), FORMAT));
    k.hw_configure(FORMAT, FORMAT, FORMAT, false);
    if k.arg(3) != 0 {
        k.untilize_configure();
    }
    for _ in 0..rows {
        if k.arg(2) != 0 {
            to_tiles(k, &mut x, &mut tiles, columns);
        }
        if k.arg(3) != 0 {
            to_rows(k, &mut tiles, &mut y, columns);
        }
    }
}

fn to_tiles<T: Thread>(k: &mut Compute<T>, x: &mut Cb<T>, tiles: &mut Cb<T>, columns: u32) {
    x.wait_front(columns);
    k.tilize_init(columns * FORMAT.row_bytes(), FORMAT);
    for c in 0..columns {
        k.tile_to(tiles, |k| k.tilize_tile(x, c, 0));
    }
    x.pop_front(columns);
    k.tilize_uninit(FORMAT);
}

fn to_rows<T: Thread>(k: &mut Compute<T>, tiles: &mut Cb<T>, y: &mut Cb<T>, columns: u32) {
    tiles.wait_front(columns);
    k.copy_tile_init(FORMAT);
    k.pack_untilize_init(FORMAT);
    k.tile_regs_acquire();
    for c in 0..columns {
        k.copy_tile(tiles, c, c);
    }
    k.tile_regs_commit();
    tiles.pop_front(columns);

    y.reserve_back(columns);
    k.tile_regs_wait();
    k.pack_untilize_block(columns, y, 0, columns * FORMAT.row_bytes());
    k.tile_regs_release();
    y.push_back(columns);
    k.pack_untilize_uninit(FORMAT);
}
