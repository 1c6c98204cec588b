//! Library of compute kernels: what runs on the three TRISCs of a tile.
//!
//! A compute kernel is one function that is built three times, for the [`Unpack`], the [`Math`] and
//! the [`Pack`] thread. Each image contains only its thread's part of every call: `binary_tiles`
//! unpacks on TRISC0, adds on TRISC1 and is nothing on TRISC2. The names are those of the field's
//! compute interface; `docs/kernels.md` explains them with an example each.
//!
//! Every word for the coprocessor is built by the builders of `tilework_abi::tensix::insn`, every
//! field of its configuration is a row of `tilework_abi::tensix::cfg`. Tiles are 32 x 32, four
//! faces of 16 x 16.
#![no_std]

pub mod addr_mod;
pub mod cb;
mod flash;
pub mod format;
mod functions;
mod math;
pub mod mop;
mod pack;
pub mod program;
pub mod push;
pub mod rotary;
mod rowwise;
pub mod sfpu;
pub mod softmax;
pub mod sync;
pub mod thread;
pub mod topk;
mod transpose;
mod unpack;

pub use cb::Cb;
pub use format::Format;
pub use pack::PackRelu;
pub use sfpu::{
    Cumulative, Fold, Integer, IntegerBinary, IntegerUnary, Order, Reduction, Sequences, SfpuBinary, Statistic,
    Ternary, Test, Unary,
};
pub use softmax::Softmax;
pub use thread::{Math, Pack, Thread, Unpack};
pub use tilework_rt as rt;
pub use topk::TopK;

use core::marker::PhantomData;
use math::MathUnit;
use pack::Packer;
use tilework_rt::KernelContext;
use unpack::Unpacker;

/// Defines an image of a compute kernel: `compute_kernel!(Unpack, my_kernel::main)`.
#[macro_export]
macro_rules! compute_kernel {
    ($thread:ident, $main:path) => {
        $crate::rt::kernel!(start);

        fn start(ctx: &$crate::rt::KernelContext) {
            let mut kernel = $crate::Compute::<$crate::$thread>::new(ctx);
            $main(&mut kernel);
            // The kernel has ended when its instructions have.
            $crate::push::sync();
        }
    };
}

/// What an element-wise instruction computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Binary {
    /// A + B.
    Add,
    /// A - B.
    Subtract,
    /// A x B.
    Multiply,
}

/// How B is spread over the tile of A.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Broadcast {
    /// Not at all.
    #[default]
    None,
    /// Column 0 of B for every column.
    Column,
    /// Row 0 of B for every row.
    Row,
    /// Element 0 of B for every element.
    Scalar,
}

/// How much of the mantissas a product uses: the matrix unit multiplies parts of them in as many
/// phases (MatrixUnit.md, fidelity).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fidelity {
    /// One phase.
    LoFi,
    /// Two phases.
    HiFi2,
    /// Three phases.
    HiFi3,
    /// Four phases: all bits.
    HiFi4,
}

impl Fidelity {
    /// Its phases.
    #[inline(always)]
    pub const fn phases(self) -> u32 {
        match self {
            Self::LoFi => 1,
            Self::HiFi2 => 2,
            Self::HiFi3 => 3,
            Self::HiFi4 => 4,
        }
    }
    /// The fidelity with so many phases; 4 if there is none.
    #[inline(always)]
    pub const fn of_phases(phases: u32) -> Self {
        match phases {
            1 => Self::LoFi,
            2 => Self::HiFi2,
            3 => Self::HiFi3,
            _ => Self::HiFi4,
        }
    }
}

/// What becomes of the elements that are reduced.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pool {
    /// The largest. Scaled by the exponent alone of the scaler.
    Max,
    /// The sum of the products with the scaler.
    Sum,
}

/// What is reduced, and where the result goes. Other elements of the tile have no meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduce {
    /// Each row, to column 0.
    Rows,
    /// Each column, to row 0.
    Columns,
    /// The whole tile, to element 0: its columns, then what they were reduced to, cut to SrcA's
    /// type. Both take the scaler.
    All,
}

/// A compute kernel on one of its threads.
pub struct Compute<T> {
    ctx: KernelContext,
    unpacker: Unpacker,
    math: MathUnit,
    packer: Packer,
    thread: PhantomData<T>,
}

impl<T: Thread> Compute<T> {
    /// The kernel that `ctx` describes.
    #[inline(always)]
    pub fn new(ctx: &KernelContext) -> Self {
        let (unpacker, math, packer) = Default::default();
        Self { ctx: *ctx, unpacker, math, packer, thread: PhantomData }
    }

    /// Run-time argument `i`, the same on the three threads.
    #[inline(always)]
    pub fn arg(&self, i: u32) -> u32 {
        tilework_rt::rta(&self.ctx, i)
    }

    /// Whether this core is among those that the common arguments number
    /// (`tilework_abi::walk::number`).
    #[inline(always)]
    pub fn has_number(&self) -> bool {
        tilework_rt::number(&self.ctx, 0).is_some()
    }

    /// Circular buffer `id` with tiles of `format`.
    #[inline(always)]
    pub fn cb(&self, id: u32, format: Format) -> Cb<T> {
        Cb::new(&self.ctx, id, format)
    }

    /// Configures unpackers, matrix unit and packer: every kernel's first call. `a` and `b` are the
    /// formats of SrcA's and SrcB's tiles, `out` is the packer's. `wide`: Dst has elements of 32
    /// bits, and half as many tiles.
    #[inline(always)]
    pub fn hw_configure(&mut self, a: Format, b: Format, out: Format, wide: bool) {
        if T::UNPACK {
            self.unpacker.configure(a, b, wide);
        }
        if T::MATH {
            self.math.configure(a, b, wide);
        }
        if T::PACK {
            self.packer.configure(out, wide);
        }
    }

    /// Changes the formats of the inputs.
    #[inline(always)]
    pub fn reconfig_data_format(&mut self, a: Format, b: Format) {
        if T::UNPACK {
            self.unpacker.reconfigure(a, b);
        }
        if T::MATH {
            self.math.reconfigure(a, b);
        }
    }

    /// Changes the format of the output.
    #[inline(always)]
    pub fn pack_reconfig_data_format(&mut self, out: Format) {
        if T::PACK {
            self.packer.reconfigure(out);
        }
    }

    /// Math waits for a free half of Dst, whose tiles are zero.
    #[inline(always)]
    pub fn tile_regs_acquire(&mut self) {
        if T::MATH {
            self.math.acquire();
        }
    }

    /// Math hands its half of Dst over, and goes to the other.
    #[inline(always)]
    pub fn tile_regs_commit(&mut self) {
        if T::UNPACK {
            self.unpacker.commit();
        }
        if T::MATH {
            self.math.commit();
        }
    }

    /// Pack waits for a half of Dst.
    #[inline(always)]
    pub fn tile_regs_wait(&mut self) {
        if T::PACK {
            self.packer.wait();
        }
    }

    /// Pack gives its half of Dst back.
    #[inline(always)]
    pub fn tile_regs_release(&mut self) {
        if T::PACK {
            self.packer.release();
        }
    }

    /// Packs tile `tile` of Dst to the buffer's free page `page`.
    #[inline(always)]
    pub fn pack_tile(&mut self, tile: u32, out: &Cb<T>, page: u32) {
        if T::PACK {
            self.packer.tile(tile, out.page(page));
        }
    }

    /// What the packer makes of numbers from now on.
    #[inline(always)]
    pub fn pack_relu_config(&mut self, relu: PackRelu) {
        if T::PACK {
            self.packer.relu(relu);
        }
    }

    /// Whether what is packed is added to what is there: to `Float32` and `Bf16`, each sum rounded.
    /// Pages keep what they had until they are pushed, so a kernel packs the first summand without,
    /// the others with it to the same page, and then pushes.
    #[inline(always)]
    pub fn pack_reconfig_l1_acc(&mut self, on: bool) {
        if T::PACK {
            self.packer.accumulate(on);
        }
    }

    /// Makes one page of `out` of tile 0 of Dst, which `compute` computes: acquires and hands over
    /// half of Dst, packs, and pushes.
    #[inline(always)]
    pub fn tile_to(&mut self, out: &mut Cb<T>, compute: impl FnOnce(&mut Self)) {
        self.tile_regs_acquire();
        compute(self);
        self.tile_regs_commit();
        out.reserve_back(1);
        self.tile_regs_wait();
        self.pack_tile(0, out, 0);
        self.tile_regs_release();
        out.push_back(1);
    }

    /// Prepares [`Compute::binary_tiles`].
    #[inline(always)]
    pub fn binary_init(&mut self, op: Binary, broadcast: Broadcast, fidelity: Fidelity) {
        if T::UNPACK {
            self.unpacker.init_two(broadcast);
        }
        if T::MATH {
            self.math.init_binary(op, broadcast, fidelity);
        }
    }

    /// Tile `tile` of Dst is page `i` of `a` op page `j` of `b`. A product is added to it.
    #[inline(always)]
    pub fn binary_tiles(&mut self, a: &Cb<T>, b: &Cb<T>, i: u32, j: u32, tile: u32) {
        if T::UNPACK {
            self.unpacker.run(a.page(i), b.page(j));
        }
        if T::MATH {
            self.math.binary(tile);
        }
    }

    /// Prepares [`Compute::copy_tile`] of tiles of `format`. A wide Dst gets all 32 bits of formats
    /// that have so many.
    #[inline(always)]
    pub fn copy_tile_init(&mut self, format: Format) {
        if T::UNPACK {
            self.unpacker.init_copy(format);
        }
        if T::MATH {
            self.math.init_copy_of(format);
        }
    }

    /// Prepares [`Compute::copy_tile`] so that it transposes the tile.
    #[inline(always)]
    pub fn transpose_tile_init(&mut self) {
        if T::UNPACK {
            self.unpacker.init_one(true);
        }
        if T::MATH {
            self.math.init_copy(false);
        }
    }

    /// Transposes tile `tile` of Dst with all bits of its elements; prepared as functions of two
    /// tiles.
    #[inline(always)]
    pub fn transpose_dest(&mut self, tile: u32) {
        if T::UNPACK {
            self.unpacker.give_banks();
        }
        if T::MATH {
            self.math.transpose(tile);
        }
    }

    /// Tile `tile` of Dst is page `i` of `a`.
    #[inline(always)]
    pub fn copy_tile(&mut self, a: &Cb<T>, i: u32, tile: u32) {
        if T::UNPACK {
            self.unpacker.copy(a.page(i), tile);
        }
        if T::MATH {
            self.math.copy(tile);
        }
    }

    /// Prepares copies of rows as tiles: [`Compute::tilize_tile`], then [`Compute::pack_tile`].
    /// Rows are `row_bytes` apart. The format of the tiles is `out`.
    #[inline(always)]
    pub fn tilize_init(&mut self, row_bytes: u32, out: Format) {
        if T::UNPACK {
            self.unpacker.init_tilize(row_bytes);
        }
        if T::MATH {
            self.math.init_copy(true);
        }
        if T::PACK {
            self.packer.init_tile(true);
            self.packer.set_faces(out, 2);
        }
    }

    /// Goes back to tiles.
    #[inline(always)]
    pub fn tilize_uninit(&mut self, out: Format) {
        if T::UNPACK {
            self.unpacker.end_tilize();
        }
        if T::PACK {
            self.packer.init_tile(false);
            self.packer.set_faces(out, 1);
        }
    }

    /// Tile `tile` of Dst is the 32 columns from `32 i` on of the 32 rows that begin at the first
    /// page of `a`, whose elements have 16 bits.
    #[inline(always)]
    pub fn tilize_tile(&mut self, a: &Cb<T>, i: u32, tile: u32) {
        if T::UNPACK {
            self.unpacker.run_one(a.page(0) + i * Format::Bf16.row_bytes());
        }
        if T::MATH {
            self.math.copy(tile);
        }
    }

    /// Lets the packer untilize in this kernel; the first call behind [`Compute::hw_configure`].
    #[inline(always)]
    pub fn untilize_configure(&mut self) {
        if T::MATH {
            self.math.strided_dst();
        }
    }

    /// Prepares [`Compute::pack_untilize_block`] with elements of format `out`.
    #[inline(always)]
    pub fn pack_untilize_init(&mut self, out: Format) {
        if T::PACK {
            self.packer.set_faces(out, 2);
            self.packer.init_untilize();
        }
    }

    /// Goes back to tiles.
    #[inline(always)]
    pub fn pack_untilize_uninit(&mut self, out: Format) {
        if T::PACK {
            self.packer.init_tile(false);
            self.packer.set_faces(out, 1);
        }
    }

    /// Packs the first `columns` tiles of Dst side by side, as 32 rows that are `row_bytes` apart
    /// and begin at free page `page`.
    #[inline(always)]
    pub fn pack_untilize_block(&mut self, columns: u32, out: &Cb<T>, page: u32, row_bytes: u32) {
        if T::PACK {
            self.packer.untilize(columns, out.page(page), row_bytes);
        }
    }

    /// Prepares [`Compute::matmul_block`]. `transpose`: the second operand is transposed.
    #[inline(always)]
    pub fn matmul_init(&mut self, fidelity: Fidelity, transpose: bool) {
        if T::UNPACK {
            self.unpacker.init_matmul(transpose);
        }
        if T::MATH {
            self.math.init_matmul(fidelity, transpose);
        }
    }

    /// Adds the product of a column of `rows` tiles of `a` and a row of `columns` tiles of `b` to
    /// the tiles of Dst, row by row. The column begins at page `i`, with `stride` pages from one
    /// tile to the next; the row begins at page `j`.
    #[inline(always)]
    pub fn matmul_block(&mut self, a: &Cb<T>, b: &Cb<T>, (i, stride): (u32, u32), j: u32, [rows, columns]: [u32; 2]) {
        for row in 0..rows {
            if T::UNPACK {
                self.unpacker.products(b, j, columns, a.page(i + row * stride));
            }
            if T::MATH {
                (0..columns).for_each(|column| self.math.matmul(row * columns + column));
                self.math.free_b();
            }
        }
    }

    /// Prepares [`Compute::reduce_tile`].
    #[inline(always)]
    pub fn reduce_init(&mut self, dim: Reduce) {
        if T::UNPACK {
            self.unpacker.init_reduce(dim);
        }
        if T::MATH {
            self.math.init_reduce();
        }
    }

    /// Reduces page `i` of `a` into tile `tile` of Dst, together with what was reduced there since
    /// the half was acquired. Row 0 of each face of page `j` of `scaler` has what elements are
    /// multiplied by.
    #[inline(always)]
    pub fn reduce_tile(&mut self, how: (Pool, Reduce), a: &Cb<T>, scaler: &Cb<T>, [i, j]: [u32; 2], tile: u32) {
        if T::UNPACK {
            self.unpacker.run(a.page(i), scaler.page(j));
        }
        if T::MATH {
            self.math.reduce(how.0, how.1, tile);
        }
    }
}
