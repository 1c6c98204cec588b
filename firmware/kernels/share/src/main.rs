//! Brings blocks of tiles of a matrix in DRAM to the cores of a row or column: one of them reads a
//! block and multicasts it to the others. Afterwards it can write a block of results to DRAM. Runs
//! on both data-movement cores; feeds `matmul`.
//!
//! A tile has at most 16 KiB. All cores have the circular buffers at the same addresses. Blocks
//! go in turns: as many as half of a circular buffer has room for, or all of them if the whole
//! of it has. A receiver adds one to the sender's semaphore when it has room for a turn. It
//! does not do so for the turn after next before the first block of the next one is there: so
//! when the sender finds as many as there are receivers for a turn, each of them has room. The
//! sender multicasts the number of blocks that it has sent. Neither number is ever set back.
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
//! 10. and 11. the first and the last core's coordinates: the sender is one of them or
//!     lies between;
//! 12. the number of receivers (may be 0);
//! 13. ids of the semaphores for room, 14. and for blocks;
//! 15. rows of a block of results: 0 for none; otherwise
//! 16. its columns, 17. address, 18. first tile, 19. tiles from one row to the next, 20.
//!     number of the circular buffer, 21. number of blocks, and 22. blocks side by side;
//!     further ones lie below.
#![no_std]
#![no_main]

use tilework_rt::cb::{Consumer, Producer};
use tilework_rt::dram::{Cursor, Distance, Interleaved};
use tilework_rt::reg::{publish, write};
use tilework_rt::sem::Semaphore;
use tilework_rt::{KernelContext, Noc, NocAddr, kernel, rta};

kernel!(main);

/// Blocks whose tiles are on their way at once: each has a transaction id.
const IN_FLIGHT: u32 = 8;

/// A matrix of tiles, and its blocks from one on.
struct Blocks {
    corner: Cursor,
    next: Distance,
    row: Distance,
    page_size: u32,
    rows: u32,
    columns: u32,
}

impl Blocks {
    /// Calls `f` for every tile of the block with the tile's address in DRAM and that in L1, where
    /// the block begins at `at`, and goes to the next block.
    #[inline(always)]
    fn tiles(&mut self, at: u32, mut f: impl FnMut(NocAddr, u32)) {
        let (mut at, mut row) = (at, self.corner);
        for _ in 0..self.rows {
            let mut tile = row;
            for _ in 0..self.columns {
                f(tile.next_page(), at);
                at += self.page_size;
            }
            row = row.plus(self.row);
        }
        self.corner = self.corner.plus(self.next);
    }
}

/// How one core takes part.
struct Part {
    cb: Producer,
    /// Tiles of a block, blocks in all, and of a turn.
    tiles: u32,
    blocks: u32,
    turn: u32,
    room: Semaphore,
    sent: Semaphore,
    sender: u32,
    receivers: u32,
}

fn main(ctx: &KernelContext) {
    let mut noc = Noc::of(ctx);
    let arg = |i| rta(ctx, i);
    let (cb, tiles, blocks) = (Producer::new(ctx, arg(7)), arg(5) * arg(6), arg(0));
    let capacity = cb.capacity() / tiles;
    let part = Part {
        cb,
        tiles,
        blocks,
        turn: if capacity >= blocks { blocks } else { capacity / 2 },
        room: Semaphore::of(ctx, arg(13)),
        sent: Semaphore::of(ctx, arg(14)),
        sender: arg(9),
        receivers: arg(12),
    };
    if arg(8) == arg(9) {
        send(ctx, &mut noc, part);
    } else {
        receive(&mut noc, part);
    }
    if arg(15) != 0 {
        write_results(ctx, &mut noc);
    }
    noc.full_barrier();
}

/// Reads blocks into this core's circular buffer, and multicasts them.
fn send(ctx: &KernelContext, noc: &mut Noc, part: Part) {
    let Part { mut cb, tiles, blocks, turn, room, sent, receivers, .. } = part;
    let arg = |i| rta(ctx, i);
    let page_size = cb.page_size();
    let pages = Interleaved::new(ctx, arg(1), page_size);
    let mut matrix = Blocks {
        corner: pages.cursor(arg(2)),
        next: pages.distance(arg(3)),
        row: pages.distance(arg(4)),
        page_size,
        rows: arg(5),
        columns: arg(6),
    };
    let rect = noc.rectangle(arg(10), arg(11));
    let (mut begun, mut left_of_turn, mut room_needed) = (0, 0, 0);
    for block in 0..blocks {
        // Further blocks come while this one leaves.
        while begun < blocks && begun - block < IN_FLIGHT {
            let ahead = (begun - block) * tiles;
            if begun == block {
                cb.reserve_back(tiles);
            } else if !cb.has_room(ahead + tiles) {
                break;
            }
            noc.same_reads(begun % IN_FLIGHT, page_size);
            matrix.tiles(cb.write_ptr_after(ahead), |tile, to| noc.read_same(tile, to));
            begun += 1;
        }
        noc.wait_tag(block % IN_FLIGHT);
        if receivers != 0 {
            if left_of_turn == 0 {
                left_of_turn = turn;
                room_needed += receivers;
                room.wait_min(room_needed);
            }
            left_of_turn -= 1;
            // The last block's number has left before it is replaced.
            noc.writes_flushed();
            write(sent.addr(), block + 1);
            publish(sent.addr());
            let at = cb.write_ptr();
            noc.multicast(at, rect, at, tiles * page_size, sent.addr(), receivers);
        }
        cb.push_back(tiles);
    }
}

/// Hands over blocks as they come.
fn receive(noc: &mut Noc, part: Part) {
    let Part { mut cb, tiles, blocks, turn, room, sent, sender, .. } = part;
    let room = NocAddr::new(sender, room.addr());
    if blocks != 0 {
        cb.reserve_back(turn * tiles);
        noc.semaphore_inc(room, 1);
    }
    let mut left_of_turn = turn;
    for block in 0..blocks {
        sent.wait_min(block + 1);
        cb.push_back(tiles);
        // With the first block of a turn, room for the next one.
        if left_of_turn == turn && blocks - block > turn {
            cb.reserve_back((2 * turn - 1) * tiles);
            noc.semaphore_inc(room, 1);
        }
        left_of_turn -= 1;
        if left_of_turn == 0 {
            left_of_turn = turn;
        }
    }
}

/// Empties the circular buffer of the results.
fn write_results(ctx: &KernelContext, noc: &mut Noc) {
    let arg = |i| rta(ctx, i);
    let mut cb = Consumer::new(ctx, arg(20));
    let (page_size, side_by_side) = (cb.page_size(), arg(22));
    let (rows, columns) = (arg(15), arg(16));
    let pages = Interleaved::new(ctx, arg(17), page_size);
    let stride = pages.distance(arg(19));
    for block in 0..arg(21) {
        let corner = block / side_by_side * rows * arg(19) + block % side_by_side * columns;
        let mut row = pages.cursor(arg(18) + corner);
        for _ in 0..rows {
            let mut tile = row;
            for _ in 0..columns {
                cb.wait_front(1);
                noc.write(cb.read_ptr(), tile.next_page(), page_size);
                noc.writes_flushed();
                cb.pop_front(1);
            }
            row = row.plus(stride);
        }
    }
}
