//! Brings blocks of tiles of a matrix in DRAM to the cores of a row or column: one of them reads a
//! block and multicasts it to the others. Afterwards it can write a block of results to DRAM. Runs
//! on both data-movement cores; feeds `matmul`.
//!
//! All cores have the circular buffers at the same addresses. A receiver adds one to the sender's
//! semaphore when it has room for a block, and the sender multicasts the number of blocks that it
//! has sent. Neither is ever set back.
//!
//! Arguments:
//! 0. number of blocks;
//! 1. the matrix: address in each DRAM bank;
//! 2. tile of the first block's upper left corner;
//! 3. tiles from one block to the next;
//! 4. tiles from one row of tiles to the next;
//! 5. rows and 6. columns of a block, in tiles; a block is written row by row to
//! 7. the number of the circular buffer, which has room for a whole number of blocks, at least two;
//! 8. this core's and 9. the sender's coordinates (`y << 6 | x`);
//! 10. the last receiver's coordinates, and 11. the number of receivers (may be 0);
//! 12. ids of the semaphores for room, 13. and for blocks;
//! 14. rows of the block of results: 0 for none; otherwise
//! 15. its columns, 16. address, 17. first tile, 18. tiles from one row to the next, and 19. number
//!     of the circular buffer.
#![no_std]
#![no_main]

use tilework_rt::cb::{Consumer, Producer};
use tilework_rt::dram::Interleaved;
use tilework_rt::reg::{publish, write};
use tilework_rt::sem::Semaphore;
use tilework_rt::{KernelContext, Noc, NocAddr, kernel, rta};

kernel!(main);

/// A matrix of tiles, and a block of it.
struct Matrix {
    pages: Interleaved,
    page_size: u32,
    stride: u32,
    rows: u32,
    columns: u32,
}

impl Matrix {
    fn new(ctx: &KernelContext, addr: u32, page_size: u32, stride: u32, [rows, columns]: [u32; 2]) -> Self {
        Self { pages: Interleaved::new(ctx, addr, page_size), page_size, stride, rows, columns }
    }

    /// Calls `f` for every tile of the block whose upper left tile is `first`, with the tile's
    /// address in DRAM and that in L1, where the block begins at `at`.
    fn tiles(&self, first: u32, at: u32, mut f: impl FnMut(NocAddr, u32)) {
        let mut at = at;
        for row in 0..self.rows {
            for column in 0..self.columns {
                f(self.pages.page(first + row * self.stride + column), at);
                at += self.page_size;
            }
        }
    }
}

fn main(ctx: &KernelContext) {
    let mut noc = Noc::of(ctx);
    bring(ctx, &mut noc);
    if rta(ctx, 14) != 0 {
        write_results(ctx, &mut noc);
    }
    noc.full_barrier();
}

/// Fills the circular buffer of the operand.
fn bring(ctx: &KernelContext, noc: &mut Noc) {
    let arg = |i| rta(ctx, i);
    let (me, sender, receivers) = (arg(8), arg(9), arg(11));
    let (room, sent) = (Semaphore::of(ctx, arg(12)), Semaphore::of(ctx, arg(13)));
    let mut cb = Producer::new(ctx, arg(7));
    let matrix = Matrix::new(ctx, arg(1), cb.page_size(), arg(4), [arg(5), arg(6)]);
    let tiles = matrix.rows * matrix.columns;
    let rect = noc.rectangle(sender, arg(10));
    let (blocks, mut first) = (arg(0), arg(2));
    let is_sender = me == sender;
    let mut read = |noc: &mut Noc, at| {
        matrix.tiles(first, at, |tile, to| noc.read(tile, to, matrix.page_size));
        first += arg(3);
    };
    if blocks != 0 {
        cb.reserve_back(tiles);
        if is_sender {
            read(noc, cb.write_ptr());
        } else {
            noc.semaphore_inc(NocAddr::new(sender, room.addr()), 1);
        }
    }
    for block in 1..=blocks {
        let at = cb.write_ptr();
        if is_sender {
            noc.read_barrier();
            // The next block comes while this one leaves.
            if block != blocks {
                cb.reserve_back(2 * tiles);
                read(noc, cb.write_ptr_after(tiles));
            }
            if receivers != 0 {
                room.wait_min(block * receivers);
                // The last block's number has left before it is replaced.
                noc.writes_flushed();
                write(sent.addr(), block);
                publish(sent.addr());
                noc.multicast(at, rect, at, tiles * cb.page_size(), sent.addr(), receivers);
            }
        } else {
            // There is room for the next block before this one has come.
            if block != blocks {
                cb.reserve_back(2 * tiles);
                noc.semaphore_inc(NocAddr::new(sender, room.addr()), 1);
            }
            sent.wait_min(block);
        }
        cb.push_back(tiles);
    }
}

/// Empties the circular buffer of the results.
fn write_results(ctx: &KernelContext, noc: &mut Noc) {
    let arg = |i| rta(ctx, i);
    let mut cb = Consumer::new(ctx, arg(19));
    let row = Matrix::new(ctx, arg(16), cb.page_size(), 0, [1, 1]);
    for i in 0..arg(14) {
        for column in 0..arg(15) {
            cb.wait_front(1);
            let tile = arg(17) + i * arg(18) + column;
            row.tiles(tile, cb.read_ptr(), |tile, from| noc.write(from, tile, row.page_size));
            noc.writes_flushed();
            cb.pop_front(1);
        }
    }
}
