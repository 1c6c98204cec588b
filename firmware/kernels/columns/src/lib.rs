//! Goes down the columns of runs of tiles, which lie below one another: running sums and products,
//! reductions, mean and variance.
//!
//! Arguments:
//! 0. number of runs (may be 0), 1. tiles of a run, at most 3 if columns are reduced;
//! 2. 0: running sums, 1: running products: as many tiles as there are; 2: sums, 3: largest,
//!    4: smallest elements: a tile for a run, of which row 0 has the result; 5: mean and variance:
//!    a tile each;
//! 3. format of tiles and results (`Format`); 4. whether Dst has elements of 32 bits;
//! 5. and 6. numbers of the circular buffers of tiles and results. Integers can be reduced only.
#![no_std]

use tilework_compute::{Cb, Compute, Cumulative, Format, Integer, IntegerBinary, Reduction, SfpuBinary, Thread};

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let [runs, tiles, op] = [0, 1, 2].map(|i| k.arg(i));
    let format = Format::of(k.arg(3));
    let [mut x, mut y] = [5, 6].map(|i| k.cb(k.arg(i), format));
    k.hw_configure(format, format, format, k.arg(4) != 0);
    k.copy_tile_init(format);
    for _ in 0..runs {
        match op {
            0 => cumulative(k, Cumulative::Sum, &mut x, &mut y, tiles),
            1 => cumulative(k, Cumulative::Product, &mut x, &mut y, tiles),
            2 => reduce(k, Reduction::Sum, &mut x, &mut y, tiles),
            3 => reduce(k, Reduction::Max, &mut x, &mut y, tiles),
            4 => reduce(k, Reduction::Min, &mut x, &mut y, tiles),
            _ => moments(k, &mut x, &mut y, tiles),
        }
    }
}

/// Copies the next tile.
fn next<T: Thread>(k: &mut Compute<T>, x: &mut Cb<T>, tile: u32) {
    x.wait_front(1);
    k.copy_tile(x, 0, tile);
    x.pop_front(1);
}

fn cumulative<T: Thread>(k: &mut Compute<T>, op: Cumulative, x: &mut Cb<T>, y: &mut Cb<T>, tiles: u32) {
    k.cumulative_tile_init();
    for tile in 0..tiles {
        k.tile_to(y, |k| {
            next(k, x, 0);
            k.cumulative_tile(op, 0, tile == 0);
        });
    }
}

/// The tiles are first combined element by element.
fn reduce<T: Thread>(k: &mut Compute<T>, op: Reduction, x: &mut Cb<T>, y: &mut Cb<T>, tiles: u32) {
    let format = x.format();
    let integer = matches!(format, Format::Int32 | Format::UInt32 | Format::UInt16).then(|| Integer::of(format));
    k.sfpu_reduce_init();
    k.tile_to(y, |k| {
        for tile in 0..tiles {
            next(k, x, tile);
            match integer {
                _ if tile == 0 => {}
                Some(integer) => k.integer_tiles(of_integers(op), integer, 0, tile, 0),
                None => k.sfpu_binary_tiles(of_numbers(op), 0, tile, 0),
            }
        }
        k.sfpu_reduce_tile(op, integer, 0);
    });
}

fn of_numbers(op: Reduction) -> SfpuBinary {
    match op {
        Reduction::Sum => SfpuBinary::Add,
        Reduction::Max => SfpuBinary::Max,
        Reduction::Min => SfpuBinary::Min,
    }
}

fn of_integers(op: Reduction) -> IntegerBinary {
    match op {
        Reduction::Sum => IntegerBinary::Add,
        Reduction::Max => IntegerBinary::Max,
        Reduction::Min => IntegerBinary::Min,
    }
}

fn moments<T: Thread>(k: &mut Compute<T>, x: &mut Cb<T>, y: &mut Cb<T>, tiles: u32) {
    k.welford_init();
    k.tile_regs_acquire();
    for tile in 0..tiles {
        next(k, x, 0);
        k.welford_tile(0, 32 * tile);
    }
    k.welford_results([0, 1], 32 * tiles);
    k.tile_regs_commit();
    y.reserve_back(2);
    k.tile_regs_wait();
    (0..2).for_each(|i| k.pack_tile(i, y, i));
    k.tile_regs_release();
    y.push_back(2);
}
