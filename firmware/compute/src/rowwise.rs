//! What kernels of whole rows are made of: statistics of rows of tiles that are pooled tile after
//! tile and turned into a column once, and exponentials of what is not above zero.
//!
//! `Compute::reduce_tile` leaves a column behind every tile, so that it may be the last one. Here
//! the pooled rows stay as they are until the vector unit has made the statistic of them: it works
//! on two rows of 32 elements then, not on a tile.

use crate::sfpu::{self, Statistic};
use crate::unpack::Unpacker;
use crate::{Cb, Compute, Format, Pool, Thread};

impl<T: Thread> Compute<T> {
    /// Prepares [`Compute::pool_tile`], which pools into tile 0 of Dst, together with what was
    /// pooled there since the half was acquired. Page 0 of `ones` has ones in row 0. Ends with
    /// [`Compute::pooled_to_column`].
    #[inline(always)]
    pub fn pool_init(&mut self, pool: Pool, ones: &Cb<T>) {
        if T::UNPACK {
            self.unpacker.init_pool(ones.page(0));
        }
        if T::MATH {
            self.math.init_pool(pool);
        }
    }

    /// Pools the rows of page `i` of `a`.
    #[inline(always)]
    pub fn pool_tile(&mut self, a: &Cb<T>, i: u32) {
        if T::UNPACK {
            self.unpacker.run_one(a.page(i));
        }
        if T::MATH {
            self.math.pool_tile();
        }
    }

    /// Makes `of` of what was pooled, rounded to what SrcB holds, and column 0 of tile 0 of that.
    #[inline(always)]
    pub fn pooled_to_column(&mut self, of: Statistic) {
        if T::UNPACK {
            self.unpacker.give_zeros();
        }
        if T::MATH {
            self.math.pooled_to_column(of);
        }
    }

    /// Changes the format of SrcA's tiles, from numbers to numbers.
    #[inline(always)]
    pub fn reformat_a(&mut self, format: Format) {
        if T::UNPACK {
            Unpacker::reformat::<0>(format);
        }
    }

    /// Changes the format of SrcB's tiles, from numbers to numbers.
    #[inline(always)]
    pub fn reformat_b(&mut self, format: Format) {
        if T::UNPACK {
            Unpacker::reformat::<1>(format);
        }
    }

    /// Prepares [`Compute::small_exp_tile`].
    #[inline(always)]
    pub fn small_exp_init(&mut self) {
        if T::MATH {
            sfpu::init_small_exp();
        }
    }

    /// e to the power of tile `tile` of a wide Dst, whose elements are not above zero: to 2^-13 of
    /// the value, and exactly one of zero. Below -87.3 it is negative, of which the packer makes
    /// zero (`PackRelu::Zero`).
    #[inline(always)]
    pub fn small_exp_tile(&mut self, tile: u32) {
        if T::MATH {
            self.math.on_tiles(|_| sfpu::small_exp(tile));
        }
    }

    /// Prepares [`Compute::mask_columns`].
    #[inline(always)]
    pub fn mask_init(&mut self) {
        if T::MATH {
            sfpu::init();
        }
    }

    /// The columns of tile `tile` from number `first` on become `bits`, as they lie in a wide Dst.
    #[inline(always)]
    pub fn mask_columns(&mut self, tile: u32, first: u32, bits: u32) {
        if T::MATH {
            self.math.on_tiles(|wide| sfpu::mask(false, wide, tile, [first, bits]));
        }
    }
}
