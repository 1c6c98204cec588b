//! The first k of rows of tiles, put together from the calls of the library.

use crate::{Cb, Compute, Format, Order, Sequences, Thread};

/// The circular buffers that top-k needs for itself: what it finds, still in columns. Each has as
/// many pages as a row of results has tiles.
pub struct TopK<T> {
    /// Values, bfloat16.
    pub values: Cb<T>,
    /// Indices, `UInt16`.
    pub indices: Cb<T>,
}

impl<T: Thread> TopK<T> {
    /// Takes a row of `columns` tiles of `x`, bfloat16, and pushes `tiles` tiles of what comes
    /// first of each of its rows, sorted, to `y`, and their places in the row, `UInt16`, to
    /// `places`. `tiles` is 1 or 2, at most `columns`: the first 32 or 64 elements of up to 65536.
    /// Dst must have 16 bits.
    ///
    /// Of equal elements the one further left comes first. Zeros have no sign, numbers that are not
    /// normal are zero. NaN counts as more than infinity with its sign, and comes out infinite.
    pub fn row(
        &mut self,
        k: &mut Compute<T>,
        order: Order,
        x: &mut Cb<T>,
        [y, places]: [&mut Cb<T>; 2],
        size: [u32; 2],
    ) {
        let [columns, tiles] = size;
        let best = Sequences { values: 0, indices: 2, tiles };
        k.reconfig_data_format(Format::Bf16, Format::Bf16);
        k.transpose_tile_init();
        k.topk_tile_init();
        k.tile_regs_acquire();
        load(k, x, best, 0);
        k.topk_local_sort(best, order, false);
        let mut column = tiles;
        while column < columns {
            let next = Sequences { values: 4, indices: 6, tiles: tiles.min(columns - column) };
            load(k, x, next, column);
            k.topk_local_sort(next, order, true);
            k.topk_merge(best, next, order);
            k.topk_rebuild(best, order);
            column += next.tiles;
        }
        k.tile_regs_commit();
        k.tile_regs_wait();
        for (first, out) in [(best.values, &mut self.values), (best.indices, &mut self.indices)] {
            k.pack_reconfig_data_format(out.format());
            out.reserve_back(tiles);
            (0..tiles).for_each(|tile| k.pack_tile(first + tile, out, tile));
            out.push_back(tiles);
        }
        k.tile_regs_release();

        // Columns become rows again.
        for (from, to) in [(&mut self.values, y), (&mut self.indices, places)] {
            k.reconfig_data_format(from.format(), from.format());
            k.pack_reconfig_data_format(from.format());
            k.transpose_tile_init();
            from.wait_front(tiles);
            (0..tiles).for_each(|tile| k.tile_to(to, |k| k.copy_tile(from, tile, 0)));
            from.pop_front(tiles);
        }
    }
}

/// Takes tiles of `x` from tile `column` of the row on, with their indices.
fn load<T: Thread>(k: &mut Compute<T>, x: &mut Cb<T>, to: Sequences, column: u32) {
    for tile in 0..to.tiles {
        x.wait_front(1);
        k.copy_tile(x, 0, to.values + tile);
        x.pop_front(1);
        k.topk_indices(to.indices + tile, (column + tile) * 32);
    }
}
