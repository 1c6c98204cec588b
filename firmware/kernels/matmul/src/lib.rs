//! Multiplies a row of blocks of tiles with a column of blocks: a block of the product of two
//! matrices. It is computed in parts that fit into Dst, one after the other, each accumulated there
//! while the one before is packed. If there are several parts, the operands stay in L1.
//!
//! Arguments:
//! 0. number of blocks along the inner dimension;
//! 1. rows of a block of the first operand, 2. columns of one of the second, in tiles;
//! 3. tiles of a block along the inner dimension;
//! 4. phases of a product, 1 to 4; integers take all four;
//! 5. whether Dst has elements of 32 bits;
//! 6. to 8. formats of first operand, second operand, result (`Format`). Products of integers of
//!    eight bits are added up exactly, to 32 bits;
//! 9. to 11. numbers of their circular buffers. Those of operands have room for all blocks if there
//!     are several parts;
//! 12. rows and 13. columns of a part, by which those of the blocks can be divided: together at
//!     most the tiles of half of Dst, 8, or 4 with elements of 32 bits.
#![no_std]

use tilework_compute::{Compute, Fidelity, Format, Thread};

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let (blocks, inner) = (k.arg(0), k.arg(3));
    let (rows, columns, part) = (k.arg(1), k.arg(2), [k.arg(12), k.arg(13)]);
    let [first, second, result] = [6, 7, 8].map(|i| Format::of(k.arg(i)));
    let (mut a, mut b, mut out) = (k.cb(k.arg(9), first), k.cb(k.arg(10), second), k.cb(k.arg(11), result));
    let (a_block, b_block) = (rows * inner, inner * columns);
    let stay = part != [rows, columns];

    // The second operand goes through SrcA.
    k.hw_configure(second, first, result, k.arg(5) != 0);
    k.matmul_init(Fidelity::of_phases(k.arg(4)), false);
    if first.is_int8() {
        k.typecast_init();
    }
    for top in (0..rows).step_by(part[0] as usize) {
        for left in (0..columns).step_by(part[1] as usize) {
            k.tile_regs_acquire();
            for block in 0..blocks {
                let at = if stay { block } else { 0 };
                a.wait_front((at + 1) * a_block);
                b.wait_front((at + 1) * b_block);
                for i in 0..inner {
                    let (first, second) = (at * a_block + top * inner + i, at * b_block + i * columns + left);
                    k.matmul_block(&a, &b, (first, inner), second, part);
                }
                if !stay {
                    a.pop_front(a_block);
                    b.pop_front(b_block);
                }
            }
            let tiles = part[0] * part[1];
            if first.is_int8() && result != first {
                (0..tiles).for_each(|tile| k.typecast_tile(first, result, tile));
            }
            k.tile_regs_commit();

            out.reserve_back(tiles);
            k.tile_regs_wait();
            for tile in 0..tiles {
                k.pack_tile(tile, &out, tile);
            }
            k.tile_regs_release();
            out.push_back(tiles);
        }
    }
    if stay {
        a.pop_front(blocks * a_block);
        b.pop_front(blocks * b_block);
    }
}
