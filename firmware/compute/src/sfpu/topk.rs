//! Sorting of columns of Dst, with indices.
//!
//! A register has eight columns of four rows, so four registers have sixteen rows. Rows that are
//! four or eight apart are compared register by register; for rows next to one another the
//! registers are transposed (SFPTRANSP.md). The network is Batcher's bitonic sort: runs of twice
//! the length, up and down by turns.
//!
//! `SFPSWAP` exchanges the indices in registers 4 to 7 with the values in registers 0 to 3
//! (SFPCONFIG.md, `ENABLE_DEST_INDEX`). Where values are equal, a second one orders the indices.

use super::words::*;
use super::{AS_BF16, AS_UINT16, STAY, TILE_ROWS};
use crate::push::{block, push, stall, until};
use crate::ttinsn;
use tilework_abi::tensix::insn::{Sfpload, Sfpstore};

/// Which values come first. Of equal values the one with the smaller index does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The largest.
    Largest,
    /// The smallest.
    Smallest,
}

/// 32 sequences in the columns of tiles of Dst, each with 32 values for a tile, and their indices
/// in the columns of as many other tiles. Dst must have 16 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sequences {
    /// First tile of values, bfloat16.
    pub values: u32,
    /// First tile of indices, [`crate::Format::UInt16`].
    pub indices: u32,
    /// Tiles of each: 1 or 2.
    pub tiles: u32,
}

/// Rows of a register, and of four registers; registers of values.
const REGISTER_ROWS: u32 = 4;
const BLOCK_ROWS: u32 = 16;
const REGISTERS: u32 = BLOCK_ROWS / REGISTER_ROWS;
/// From one half of a tile to the other in rows of Dst, which has faces one after the other.
const HALF_TILE: u32 = TILE_ROWS / 2;
const BLOCKS_OF_TILE: u32 = 2;
/// Groups of columns: even and odd ones of the left and the right half.
pub(super) const COLUMNS: [u32; 4] = [0, 2, BLOCK_ROWS, BLOCK_ROWS + 2];

/// Rows of lanes where what comes first goes to the first register: a bit each.
const ALL: u32 = 0b1111;
const ROWS_0_1: u32 = 0b0011;
const ROWS_2_3: u32 = 0b1100;
const ROWS_0_2: u32 = 0b0101;
const ROWS_1_3: u32 = 0b1010;

/// Compares registers `A` and `B`; in the rows of lanes of `FORWARD` what comes first goes to `A`,
/// in the others to `B`.
#[inline(always)]
fn compare<const A: u32, const B: u32, const FORWARD: u32, const LARGEST: bool>() {
    vector! {
        order(A, B, if LARGEST { FORWARD ^ ALL } else { FORWARD });
        // Equal values.
        if_at_most(A, B);
        if_at_most(B, A);
        order(A + REGISTERS, B + REGISTERS, FORWARD);
        END_IF;
    }
}

/// Sorts what is in one group of columns.
#[derive(Clone, Copy)]
struct Sorter<const LARGEST: bool> {
    sequences: Sequences,
    columns: u32,
}

impl<const LARGEST: bool> Sorter<LARGEST> {
    /// Loads or stores register `r` and its index: four rows of block `block`.
    #[inline(always)]
    fn transfer(self, store: bool, r: u32, block: u32, quarter: u32) {
        let (tile, half) = (block / BLOCKS_OF_TILE, block % BLOCKS_OF_TILE);
        let row = tile * TILE_ROWS + half * HALF_TILE + quarter * REGISTER_ROWS + self.columns;
        for (r, first, format) in
            [(r, self.sequences.values, AS_BF16), (r + REGISTERS, self.sequences.indices, AS_UINT16)]
        {
            let row = first * TILE_ROWS + row;
            push(if store {
                Sfpstore::build().vd(r).mod0(format).addr_mod(STAY).imm10(row).word()
            } else {
                Sfpload::build().vd(r).mod0(format).addr_mod(STAY).imm10(row).word()
            });
        }
    }

    /// Compares rows that are eight, then rows that are four apart.
    #[inline(always)]
    fn registers<const FORWARD: u32>() {
        compare::<0, 2, FORWARD, LARGEST>();
        compare::<1, 3, FORWARD, LARGEST>();
        compare::<0, 1, FORWARD, LARGEST>();
        compare::<2, 3, FORWARD, LARGEST>();
    }

    /// The same for rows that are two apart and next to one another.
    #[inline(always)]
    fn neighbours<const FORWARD: u32>() {
        ttinsn!(TRANSPOSE);
        Self::registers::<FORWARD>();
        ttinsn!(TRANSPOSE);
    }

    /// Sorts the sixteen rows of a block: all of them forward, or backward.
    fn sort_block(self, block: u32, forward: bool) {
        (0..REGISTERS).for_each(|i| self.transfer(false, i, block, i));
        if forward {
            Self::sort_registers::<ALL, 0, ROWS_0_2, ROWS_0_1>();
        } else {
            Self::sort_registers::<0, ALL, ROWS_1_3, ROWS_2_3>();
        }
        (0..REGISTERS).for_each(|i| self.transfer(true, i, block, i));
    }

    /// Sorts sixteen rows; the other way round, and by turns of four and of eight rows.
    #[inline(always)]
    fn sort_registers<const FORWARD: u32, const BACKWARD: u32, const FOURS: u32, const EIGHTS: u32>() {
        ttinsn!(TRANSPOSE);
        compare::<0, 1, FORWARD, LARGEST>();
        compare::<2, 3, BACKWARD, LARGEST>();
        Self::registers::<FOURS>();
        ttinsn!(TRANSPOSE);
        compare::<0, 1, FORWARD, LARGEST>();
        compare::<2, 3, BACKWARD, LARGEST>();
        Self::neighbours::<EIGHTS>();
        Self::registers::<FORWARD>();
        Self::neighbours::<FORWARD>();
    }

    /// Sorts a block whose rows first rise, then fall, or the other way round.
    fn merge_block(self, block: u32, forward: bool) {
        (0..REGISTERS).for_each(|i| self.transfer(false, i, block, i));
        if forward {
            Self::registers::<ALL>();
            Self::neighbours::<ALL>();
        } else {
            Self::registers::<0>();
            Self::neighbours::<0>();
        }
        (0..REGISTERS).for_each(|i| self.transfer(true, i, block, i));
    }

    /// Compares the rows of block `a` with those of block `b` of `other`; what comes first stays
    /// in `a` if `forward`.
    #[inline(always)]
    fn cross(self, other: Self, a: u32, b: u32, forward: bool) {
        for quarter in (0..REGISTERS).step_by(2) {
            for i in 0..2 {
                self.transfer(false, i, a, quarter + i);
                other.transfer(false, 2 + i, b, quarter + i);
            }
            if forward {
                compare::<0, 2, ALL, LARGEST>();
                compare::<1, 3, ALL, LARGEST>();
            } else {
                compare::<0, 2, 0, LARGEST>();
                compare::<1, 3, 0, LARGEST>();
            }
            for i in 0..2 {
                self.transfer(true, i, a, quarter + i);
                other.transfer(true, 2 + i, b, quarter + i);
            }
        }
    }

    /// Sorts `blocks` blocks, a power of two, whose rows first rise, then fall, or the other way
    /// round.
    fn merge_blocks(self, first: u32, blocks: u32, forward: bool) {
        let mut run = blocks;
        while run > 1 {
            for start in (first..first + blocks).step_by(run as usize) {
                (start..start + run / 2).for_each(|block| self.cross(self, block, block + run / 2, forward));
            }
            run /= 2;
        }
        (first..first + blocks).for_each(|block| self.merge_block(block, forward));
    }

    /// Sorts all rows.
    fn sort(self, forward: bool) {
        let blocks = self.sequences.tiles * BLOCKS_OF_TILE;
        // Runs of `run` blocks go the way of the whole and the other way by turns.
        let turned = |block: u32, run: u32| if block & run == 0 { forward } else { !forward };
        (0..blocks).for_each(|block| self.sort_block(block, turned(block, 1)));
        let mut run = 2;
        while run <= blocks {
            for first in (0..blocks).step_by(run as usize) {
                self.merge_blocks(first, run, turned(first, run));
            }
            run *= 2;
        }
    }
}

/// What is done with each group of columns.
#[derive(Clone, Copy)]
enum Step {
    /// Sorts, or sorts reversed.
    Sort { reversed: bool },
    /// Keeps what comes first of these and of others.
    Merge(Sequences),
    /// Sorts what [`Step::Merge`] left.
    Rebuild,
}

impl<const LARGEST: bool> Sorter<LARGEST> {
    /// Runs a step for all groups of columns, with indices tracked.
    fn run(sequences: Sequences, step: Step) {
        ttinsn!(stall(block::SFPU, until::MATH));
        ttinsn!(lane_config(ENABLE_DEST_INDEX));
        let blocks = sequences.tiles * BLOCKS_OF_TILE;
        for columns in COLUMNS {
            let sorter = Self { sequences, columns };
            match step {
                Step::Sort { reversed } => sorter.sort(!reversed),
                Step::Merge(others) => {
                    let (other, of_others) = (Self { sequences: others, columns }, others.tiles * BLOCKS_OF_TILE);
                    (0..of_others).for_each(|block| sorter.cross(other, blocks - of_others + block, block, true));
                }
                Step::Rebuild => sorter.merge_blocks(0, blocks, true),
            }
        }
        ttinsn!(lane_config(0));
        ttinsn!(stall(block::MATH | block::CFG, until::SFPU));
    }
}

fn run(sequences: Sequences, order: Order, step: Step) {
    match order {
        Order::Largest => Sorter::<true>::run(sequences, step),
        Order::Smallest => Sorter::<false>::run(sequences, step),
    }
}

/// Sorts each sequence; `reversed`: what comes first is last.
pub(crate) fn local_sort(sequences: Sequences, order: Order, reversed: bool) {
    run(sequences, order, Step::Sort { reversed });
}

/// Leaves in `a` what comes first of `a`, sorted, and `b`, sorted and reversed, but not sorted. If
/// `b` has fewer tiles, it is as if what comes last stood in front of it.
pub(crate) fn merge(a: Sequences, b: Sequences, order: Order) {
    run(a, order, Step::Merge(b));
}

/// Sorts what [`merge`] left.
pub(crate) fn rebuild(sequences: Sequences, order: Order) {
    run(sequences, order, Step::Rebuild);
}

/// Every row of tile `tile` becomes its number plus `first`.
pub(crate) fn indices(tile: u32, first: u32) {
    ttinsn!(stall(block::SFPU, until::MATH));
    push(integer(1, first));
    vector! {
        mov(TWICE_LANE, 0);
        shift(0, -TWICE_LANES_OF_ROW);
        add_integer(1, 0);
    }
    for half in 0..BLOCKS_OF_TILE {
        for quarter in 0..REGISTERS {
            for columns in COLUMNS {
                let row = tile * TILE_ROWS + half * HALF_TILE + quarter * REGISTER_ROWS + columns;
                push(Sfpstore::build().mod0(AS_UINT16).addr_mod(STAY).imm10(row).word());
            }
            vector! { add_integer_number(0, REGISTER_ROWS as i32, 0); }
        }
    }
    ttinsn!(stall(block::MATH | block::CFG, until::SFPU));
}

/// Bits of twice the number of a lane that say which of the eight lanes of a row it is.
const TWICE_LANES_OF_ROW: i32 = 4;
