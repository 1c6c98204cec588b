//! Softmax and normalisation of whole rows of tiles, which lie in L1 (`tilework_abi::rowwise`):
//! statistics by the matrix unit, tile after tile, and a pass over the row for each use of one.
#![no_std]

use tilework_abi::rowwise::{arg, cb};
use tilework_compute::{Cb, Compute, Format, Pool, Statistic, Thread};

pub mod norm;
pub mod softmax;

/// Tiles that half of a wide Dst has.
const DST_TILES: u32 = 4;

/// What all kernels of rows have.
struct Rows<T> {
    rows: u32,
    columns: u32,
    /// Columns of the last tile that are no padding, if there is any, else 0.
    width: u32,
    x: Cb<T>,
    ones: Cb<T>,
    last: Cb<T>,
    statistic: Cb<T>,
    terms: Cb<T>,
    y: Cb<T>,
}

impl<T: Thread> Rows<T> {
    /// Reads the arguments and configures the units, for the argument and column statistics.
    #[inline(always)]
    fn new(k: &mut Compute<T>) -> Self {
        let (x, y) = (Format::of(k.arg(arg::X)), Format::of(k.arg(arg::Y)));
        k.hw_configure(x, Format::Float32, Format::Float32, true);
        Self {
            rows: k.arg(arg::ROWS),
            columns: k.arg(arg::COLUMNS),
            width: k.arg(arg::WIDTH),
            x: k.cb(cb::X, x),
            ones: k.cb(cb::ONES, Format::Float32),
            last: k.cb(cb::LAST, x),
            statistic: k.cb(cb::STATISTIC, Format::Float32),
            terms: k.cb(cb::TERMS, Format::Float32),
            y: k.cb(cb::Y, y),
        }
    }

    /// Makes the last tile of the argument without padding, which becomes `bits`, if there is any.
    #[inline(always)]
    fn without_padding(&mut self, k: &mut Compute<T>, bits: u32) {
        let Self { columns, width, x, last, .. } = self;
        if *width == 0 {
            return;
        }
        k.pack_reconfig_data_format(x.format());
        k.copy_tile_init(x.format());
        k.mask_init();
        k.tile_to(last, |k| {
            k.copy_tile(x, *columns - 1, 0);
            k.mask_columns(0, *width, bits);
        });
        k.pack_reconfig_data_format(Format::Float32);
        last.wait_front(1);
    }

    /// Pools a row of the argument to a statistic.
    #[inline(always)]
    fn pool_argument(&mut self, k: &mut Compute<T>, pool: Pool, of: Statistic) {
        let Self { columns, width, x, ones, last, statistic, .. } = self;
        let whole = if *width == 0 { *columns } else { *columns - 1 };
        k.pool_init(pool, ones);
        k.tile_to(statistic, |k| {
            (0..whole).for_each(|i| k.pool_tile(x, i));
            if *width != 0 {
                k.pool_tile(last, 0);
            }
            k.pooled_to_column(of);
        });
        if *width != 0 {
            last.pop_front(1);
        }
        statistic.wait_front(1);
    }
}

/// Makes `count` pages of `out`, as many at once as Dst has room for: `compute` gets the number of
/// a page and its tile of Dst, `after` then does the same.
#[inline(always)]
fn tiles_to<T: Thread>(
    k: &mut Compute<T>,
    out: &mut Cb<T>,
    count: u32,
    compute: impl Fn(&mut Compute<T>, u32, u32),
    after: impl Fn(&mut Compute<T>, u32, u32),
) {
    let mut first = 0;
    while first < count {
        let tiles = if count - first < DST_TILES { count - first } else { DST_TILES };
        k.tile_regs_acquire();
        (0..tiles).for_each(|tile| compute(k, first + tile, tile));
        (0..tiles).for_each(|tile| after(k, first + tile, tile));
        k.tile_regs_commit();
        out.reserve_back(tiles);
        k.tile_regs_wait();
        (0..tiles).for_each(|tile| k.pack_tile(tile, out, tile));
        k.tile_regs_release();
        out.push_back(tiles);
        first += tiles;
    }
}
