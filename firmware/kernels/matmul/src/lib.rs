//! Multiplies a row of blocks of tiles with a column of blocks: one block of the product of two
//! matrices, accumulated in Dst.
//!
//! Arguments:
//! 0. number of blocks along the inner dimension;
//! 1. rows of a block of the first operand, 2. columns of one of the second, in tiles: together at
//!    most the tiles of half of Dst, 8, or 4 with elements of 32 bits;
//! 3. tiles of a block along the inner dimension;
//! 4. phases of a product, 1 to 4;
//! 5. whether Dst has elements of 32 bits;
//! 6. to 8. formats of first operand, second operand, result (`Format`);
//! 9. to 11. numbers of their circular buffers.
#![no_std]

use tilework_compute::{Compute, Fidelity, Format, Thread};

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let (blocks, rows, columns, inner) = (k.arg(0), k.arg(1), k.arg(2), k.arg(3));
    let [first, second, result] = [6, 7, 8].map(|i| Format::of(k.arg(i)));
    let (mut a, mut b, mut out) = (k.cb(k.arg(9), first), k.cb(k.arg(10), second), k.cb(k.arg(11), result));

    // The second operand goes through SrcA.
    k.hw_configure(second, first, result, k.arg(5) != 0);
    k.matmul_init(Fidelity::of_phases(k.arg(4)), false);
    k.tile_regs_acquire();
    for _ in 0..blocks {
        a.wait_front(rows * inner);
        b.wait_front(inner * columns);
        for i in 0..inner {
            k.matmul_block(&a, &b, (i, inner), i * columns, [rows, columns]);
        }
        a.pop_front(rows * inner);
        b.pop_front(inner * columns);
    }
    k.tile_regs_commit();

    out.reserve_back(rows * columns);
    k.tile_regs_wait();
    for tile in 0..rows * columns {
        k.pack_tile(tile, &out, tile);
    }
    k.tile_regs_release();
    out.push_back(rows * columns);
}
