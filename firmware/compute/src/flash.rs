//! Calls for attention in one pass (`tilework_abi::flash`).

use crate::{Cb, Compute, Thread, sfpu};
use tilework_rt::crta;
use tilework_rt::reg::{fence, read};
use tilework_rt::sem::Semaphore;

impl<T: Thread> Compute<T> {
    /// Common run-time argument `i`, the same on all cores.
    #[inline(always)]
    pub fn common_arg(&self, i: u32) -> u32 {
        crta(&self.ctx, i)
    }

    /// Waits until semaphore `id` of the program is at least `value`.
    #[inline(always)]
    pub fn semaphore_wait_min(&self, id: u32, value: u32) {
        Semaphore::of(&self.ctx, id).wait_min(value);
        fence();
    }

    /// Word `i` of the first page of `cb`, which no thread fills or empties.
    #[inline(always)]
    pub fn word(&self, cb: &Cb<T>, i: u32) -> u32 {
        read(cb.page(0) + 4 * i)
    }

    /// Adds the products of page `i` of `a` and `columns` pages of `b` from page `j` on to as many
    /// tiles of Dst from tile `tile` on; prepared as [`Compute::matmul_block`].
    #[inline(always)]
    pub fn matmul_onto(&mut self, a: &Cb<T>, b: &Cb<T>, [i, j]: [u32; 2], columns: u32, tile: u32) {
        if T::UNPACK {
            self.unpacker.products(b, j, columns, a.page(i));
        }
        if T::MATH {
            (0..columns).for_each(|column| self.math.matmul(tile + column));
            self.math.free_b();
        }
    }

    /// Prepares [`Compute::weights_tile`]; `scale`: the bits of an f32.
    #[inline(always)]
    pub fn weights_init(&mut self, scale: u32) {
        if T::MATH {
            sfpu::init_weights(scale);
        }
    }

    /// Every number of tile `tile` of Dst, none of them positive, becomes 2 to the power of it and
    /// the scale multiplied, to 1.02e-4 of the value; zero below 2^-126. Dst must be wide.
    #[inline(always)]
    pub fn weights_tile(&mut self, tile: u32) {
        if T::MATH {
            self.math.on_tile(tile, sfpu::weights);
        }
    }

    /// Tile 0 of Dst becomes itself times `factor`, the bits of an f32, and tile 1, not less than
    /// [`tilework_abi::flash::UNSEEN`]. Dst must be wide.
    #[inline(always)]
    pub fn masked_tile(&mut self, factor: u32) {
        if T::MATH {
            self.math.on_tile(0, || sfpu::masked(factor));
        }
    }

    /// Divides the tiles before tile `sums` of Dst by it. Its elements are at least 1. Dst must be
    /// wide.
    #[inline(always)]
    pub fn divided_tiles(&mut self, sums: u32) {
        if T::MATH {
            self.math.on_tile(0, || sfpu::divided(sums));
        }
    }
}
