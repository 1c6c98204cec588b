//! Calls of the vector unit: functions, integers, typecasts, sorting.

use crate::sfpu;
use crate::{
    Compute, Cumulative, Format, Integer, IntegerBinary, IntegerUnary, Order, Reduction, Sequences, SfpuBinary,
    Ternary, Thread, Unary,
};

impl<T: Thread> Compute<T> {
    /// Prepares [`Compute::unary_tile`] with the same function.
    #[inline(always)]
    pub fn unary_init(&mut self, function: Unary) {
        if T::MATH {
            function.init();
        }
    }

    /// Computes the function of every element of tile `tile` of Dst.
    #[inline(always)]
    pub fn unary_tile(&mut self, function: Unary, tile: u32) {
        if T::MATH {
            self.math.unary(function, tile);
        }
    }

    /// Prepares [`Compute::sfpu_binary_tiles`] and [`Compute::where_tiles`].
    #[inline(always)]
    pub fn sfpu_binary_init(&mut self) {
        if T::MATH {
            sfpu::init();
        }
    }

    /// Tile `out` of Dst becomes the function of its tiles `a` and `b`.
    #[inline(always)]
    pub fn sfpu_binary_tiles(&mut self, op: SfpuBinary, a: u32, b: u32, out: u32) {
        if T::MATH {
            self.math.on_tiles(|wide| sfpu::binary_tiles(op, wide, [a, b, out]));
        }
    }

    /// Prepares [`Compute::integer_tiles`] and [`Compute::integer_tile`].
    #[inline(always)]
    pub fn integer_init(&mut self) {
        if T::MATH {
            sfpu::integer_init();
        }
    }

    /// Tile `out` of Dst becomes the function of its tiles `a` and `b`, which have integers.
    #[inline(always)]
    pub fn integer_tiles(&mut self, op: IntegerBinary, integer: Integer, a: u32, b: u32, out: u32) {
        if T::MATH {
            self.math.on_tiles(|wide| sfpu::integer_tiles(op, integer, wide, [a, b, out]));
        }
    }

    /// Computes the function of every integer of tile `tile` of Dst.
    #[inline(always)]
    pub fn integer_tile(&mut self, op: IntegerUnary, integer: Integer, tile: u32) {
        if T::MATH {
            self.math.on_tiles(|wide| sfpu::integer_tile(op, integer, wide, [tile, tile]));
        }
    }

    /// Prepares [`Compute::typecast_tile`].
    #[inline(always)]
    pub fn typecast_init(&mut self) {
        if T::MATH {
            sfpu::init();
        }
    }

    /// Makes of tile `tile` of Dst, copied or computed as `from`, one that can be packed as `to`.
    /// What does not fit becomes the nearest value that the type has; numbers lose their fraction
    /// towards zero on the way to integers, and are rounded to the nearest on the way back. NaN
    /// counts as infinity with its sign. Dst must be wide, unless only bfloat16, bfp8_b and
    /// `UInt16` are there.
    #[inline(always)]
    pub fn typecast_tile(&mut self, from: Format, to: Format, tile: u32) {
        if T::MATH {
            self.math.on_tiles(|wide| sfpu::typecast(from, to, wide, tile));
        }
    }

    /// Prepares [`Compute::ternary_tiles`] with the same function.
    #[inline(always)]
    pub fn ternary_init(&mut self, op: Ternary) {
        if T::MATH {
            op.init();
        }
    }

    /// Tile `out` of Dst becomes the function of its tiles `a`, `b` and `c`.
    #[inline(always)]
    pub fn ternary_tiles(&mut self, op: Ternary, [a, b, c]: [u32; 3], out: u32) {
        if T::MATH {
            self.math.on_tiles(|wide| sfpu::ternary_tiles(op, wide, [a, b, c, out]));
        }
    }

    /// Starts the sequence `seed` of random numbers, one of 2^31, for [`Unary::Uniform`] and
    /// [`Unary::Dropout`]. It ends with any other function of the vector unit.
    #[inline(always)]
    pub fn rand_tile_init(&mut self, seed: u32) {
        if T::MATH {
            sfpu::seed(seed);
        }
    }

    /// Tile `to` of Dst becomes its tile `from`. Prepared as functions of two tiles.
    #[inline(always)]
    pub fn copy_dest_values(&mut self, from: u32, to: u32) {
        if T::MATH {
            self.math.on_tiles(|wide| sfpu::copy_tile(wide, [from, to]));
        }
    }

    /// Prepares [`Compute::cumulative_tile`].
    #[inline(always)]
    pub fn cumulative_tile_init(&mut self) {
        if T::MATH {
            sfpu::init();
        }
    }

    /// Every row of tile `tile` of Dst becomes the sum or product of itself and the rows above it.
    /// Goes on where the last call ended unless it is the `first`; no other function of the vector
    /// unit may stand between. What goes on is not rounded to Dst's type.
    #[inline(always)]
    pub fn cumulative_tile(&mut self, op: Cumulative, tile: u32, first: bool) {
        if T::MATH {
            self.math.on_tiles(|wide| sfpu::cumulative(op, wide, tile, first));
        }
    }

    /// Prepares [`Compute::sfpu_reduce_tile`].
    #[inline(always)]
    pub fn sfpu_reduce_init(&mut self) {
        if T::MATH {
            sfpu::integer_init();
        }
    }

    /// Row 0 of tile `tile` of Dst becomes what each of its columns is reduced to, with all bits of
    /// Dst. `integer`: the elements are such integers, else numbers. Other rows lose their meaning.
    #[inline(always)]
    pub fn sfpu_reduce_tile(&mut self, op: Reduction, integer: Option<Integer>, tile: u32) {
        if T::MATH {
            self.math.on_tiles(|wide| sfpu::reduce_columns(op, integer, wide, tile));
        }
    }

    /// Starts mean and variance of columns.
    #[inline(always)]
    pub fn welford_init(&mut self) {
        if T::MATH {
            sfpu::init();
            sfpu::start_welford();
        }
    }

    /// Goes on with the rows of tile `tile` of Dst; `before` rows were there before (Welford's
    /// method). No other function of the vector unit may stand between.
    #[inline(always)]
    pub fn welford_tile(&mut self, tile: u32, before: u32) {
        if T::MATH {
            self.math.on_tiles(|wide| sfpu::welford(wide, tile, before));
        }
    }

    /// Row 0 of tile `mean` of Dst becomes the mean of the columns of `rows` rows, row 0 of tile
    /// `variance` the mean of their squared differences from it.
    #[inline(always)]
    pub fn welford_results(&mut self, [mean, variance]: [u32; 2], rows: u32) {
        if T::MATH {
            self.math.on_tiles(|wide| sfpu::welford_results(wide, [mean, variance], rows));
        }
    }

    /// Prepares the calls of top-k, which all work on sequences in Dst.
    #[inline(always)]
    pub fn topk_tile_init(&mut self) {
        if T::MATH {
            sfpu::init();
        }
    }

    /// Row r of tile `tile` of Dst becomes `first` + r: the indices of values that were transposed.
    #[inline(always)]
    pub fn topk_indices(&mut self, tile: u32, first: u32) {
        if T::MATH {
            self.math.on_tiles(|_| sfpu::indices(tile, first));
        }
    }

    /// Sorts each of the sequences; `reversed`: what comes first is last.
    #[inline(always)]
    pub fn topk_local_sort(&mut self, sequences: Sequences, order: Order, reversed: bool) {
        if T::MATH {
            self.math.on_tiles(|_| sfpu::local_sort(sequences, order, reversed));
        }
    }

    /// Leaves in `a`, which is sorted, what comes first of it and `b`, which is sorted and
    /// reversed; [`Compute::topk_rebuild`] sorts it again. `b` may have fewer tiles. What it has
    /// then has no meaning.
    #[inline(always)]
    pub fn topk_merge(&mut self, a: Sequences, b: Sequences, order: Order) {
        if T::MATH {
            self.math.on_tiles(|_| sfpu::merge(a, b, order));
        }
    }

    /// Sorts what [`Compute::topk_merge`] left.
    #[inline(always)]
    pub fn topk_rebuild(&mut self, sequences: Sequences, order: Order) {
        if T::MATH {
            self.math.on_tiles(|_| sfpu::rebuild(sequences, order));
        }
    }

    /// Tile `out` of Dst becomes its tile `a` where tile `condition` is not zero, elsewhere `b`.
    #[inline(always)]
    pub fn where_tiles(&mut self, condition: u32, [a, b]: [u32; 2], out: u32) {
        if T::MATH {
            self.math.on_tiles(|wide| sfpu::where_tiles(wide, [condition, a, b, out]));
        }
    }
}
