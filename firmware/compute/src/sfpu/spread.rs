//! What goes across the elements of a tile: broadcasts, folds of rows and columns, masks, places.
//!
//! A load brings four rows of the even or the odd columns of a face: a row of lanes has eight of
//! them. Along a row of lanes values go by rotations (SFPSHFT2.md), along columns by transposition
//! of four registers (SFPTRANSP.md).

use super::integer::{Integer, ordered};
use super::topk::COLUMNS;
use super::words::integer as integer_constant;
use super::words::*;
use super::{Element, HALF_OF_BF16, NEXT, ROUNDS, STAY, TILE_ROWS, number};
use crate::push::{block, push, stall, until};
use crate::ttinsn;
use tilework_abi::tensix::insn::{Replay, Sfpload, Sfpstore};

/// Registers of the four groups of columns; one besides.
const GROUPS: [u32; 4] = [0, 1, 2, 3];
const SPARE: u32 = 4;
const MASK: u32 = 5;
/// Rows of Dst of half a tile, of a face, and of a register.
const HALF_TILE: u32 = TILE_ROWS / 2;
const FACE_ROWS: u32 = 16;
const REGISTER_ROWS: u32 = 4;
/// Bits of twice the number of a lane below that of its row of lanes, and those that are twice the
/// column.
const TWICE_LANES_OF_ROW: i32 = 4;
const COLUMN_OF_LANE: u32 = 14;
/// Rounds of a face, by turns even and odd columns.
const ROUNDS_OF_FACE: u32 = ROUNDS / 4;

/// What elements are folded by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fold {
    /// Their sum, in pairs: of numbers each rounded, of integers wrapping around.
    Sum,
    /// The largest; of numbers -0 is less than 0.
    Max,
    /// The smallest.
    Min,
    /// Their product, of numbers only.
    Product,
}

impl Fold {
    /// Register `to` becomes the fold of itself and register `with`, which changes.
    #[inline(never)]
    fn fold(self, integer: bool, with: u32, to: u32) {
        match self {
            Self::Sum if integer => push(add_integer(with, to)),
            Self::Sum => push(add(with, to, to)),
            Self::Product => push(mul(with, to, to)),
            Self::Max => push(min_max(with, to)),
            Self::Min => push(min_max(to, with)),
        }
        // Swaps, sums of integers and rotations do not see that they wait for one another.
        ttinsn!(PAUSE);
    }
}

/// A tile whose elements are bits, numbers or integers.
#[derive(Clone, Copy)]
struct Tile {
    element: Element,
    tile: u32,
}

impl Tile {
    /// A tile of bits.
    #[inline(always)]
    fn bits(wide: bool, tile: u32) -> Self {
        Self { element: if wide { Element::INT32 } else { Element::uint16(false) }, tile }
    }
    #[inline(always)]
    fn load(self, vd: u32, row: u32) {
        let row = self.element.row(self.tile, row);
        push(Sfpload::build().vd(vd).mod0(self.element.load).addr_mod(STAY).imm10(row).word());
    }
    #[inline(always)]
    fn store(self, vd: u32, row: u32) {
        let row = self.tile * TILE_ROWS + row;
        push(Sfpstore::build().vd(vd).mod0(self.element.store).addr_mod(STAY).imm10(row).word());
    }
}

/// Every four rows of a tile.
fn fours() -> impl Iterator<Item = u32> {
    (0..2).flat_map(|half| (0..FACE_ROWS / REGISTER_ROWS).map(move |i| half * HALF_TILE + i * REGISTER_ROWS))
}

#[inline(always)]
fn start() {
    ttinsn!(stall(block::SFPU, until::MATH));
}
#[inline(always)]
fn end() {
    ttinsn!(stall(block::MATH | block::CFG, until::SFPU));
}

/// Register 0's row 0 of each group of columns becomes all rows of registers 0 to 3.
#[inline(always)]
fn first_row_for_all() {
    vector! {
        TRANSPOSE;
        mov(0, 1);
        mov(0, 2);
        mov(0, 3);
        TRANSPOSE;
    }
}

/// Register 0 gets the first lane of each row for all lanes of the row. [`MASK`] has ones in that
/// lane alone.
#[inline(always)]
fn first_lane_for_all() {
    vector! {
        and(MASK, 0);
        rotate(0, SPARE);
        PAUSE;
        or(SPARE, 0);
        rotate(0, SPARE);
        PAUSE;
        rotate(SPARE, SPARE);
        PAUSE;
        or(SPARE, 0);
        rotate(0, SPARE);
        PAUSE;
        rotate(SPARE, SPARE);
        PAUSE;
        rotate(SPARE, SPARE);
        PAUSE;
        rotate(SPARE, SPARE);
        PAUSE;
        or(SPARE, 0);
    }
}

/// Register [`MASK`] for [`first_lane_for_all`].
#[inline(always)]
fn mask_of_first_lanes() {
    vector! {
        integer(SPARE, COLUMN_OF_LANE);
        and(TWICE_LANE, SPARE);
        mov(ZERO, MASK);
        if_zero(SPARE);
        not(MASK, MASK);
        END_IF;
    }
}

/// Stores registers 0 to 3 to every four rows.
#[inline(always)]
fn store_to_all_rows(tile: Tile, registers: [u32; 4]) {
    for row in fours() {
        registers.into_iter().zip(COLUMNS).for_each(|(r, columns)| tile.store(r, row + columns));
    }
}

/// Row 0 of a tile for every row.
pub(crate) fn broadcast_row(wide: bool, tile: u32) {
    let tile = Tile::bits(wide, tile);
    start();
    GROUPS.into_iter().zip(COLUMNS).for_each(|(r, columns)| tile.load(r, columns));
    first_row_for_all();
    store_to_all_rows(tile, GROUPS);
    end();
}

/// Column 0 of a tile for every column.
pub(crate) fn broadcast_column(wide: bool, tile: u32) {
    let tile = Tile::bits(wide, tile);
    start();
    mask_of_first_lanes();
    for row in fours() {
        tile.load(0, row);
        first_lane_for_all();
        COLUMNS.into_iter().for_each(|columns| tile.store(0, row + columns));
    }
    end();
}

/// Element 0 of a tile for every element.
pub(crate) fn broadcast_scalar(wide: bool, tile: u32) {
    let tile = Tile::bits(wide, tile);
    start();
    mask_of_first_lanes();
    tile.load(0, 0);
    first_lane_for_all();
    // Each row of registers 0 to 3 becomes row 0 of register 0.
    vector! {
        mov(0, 1);
        mov(0, 2);
        mov(0, 3);
        TRANSPOSE;
    }
    store_to_all_rows(tile, [0; 4]);
    end();
}

/// How the elements of a tile that is folded lie in Dst.
#[inline(always)]
fn folded(integer: Option<Integer>, wide: bool, tile: u32) -> Tile {
    Tile { element: integer.map_or(Element::number(wide), |integer| integer.element(wide)), tile }
}

/// Integers in the order of numbers, or back.
#[inline(never)]
fn order_of(fold: Fold, integer: Option<Integer>, r: u32, back: bool) {
    if fold != Fold::Sum {
        integer.into_iter().for_each(|integer| ordered(integer, r, back));
    }
}

/// Rounds a register to what a store as bf16 keeps of it.
#[inline(always)]
fn round_register(wide: bool, integer: Option<Integer>, r: u32) {
    if !wide && integer.is_none() {
        push(integer_constant(SPARE, HALF_OF_BF16));
        push(add_integer(SPARE, r));
    }
}
/// Each row's fold for all columns, or each column's for all rows.
pub(crate) fn fold(rows: bool, fold: Fold, integer: Option<Integer>, wide: bool, tile: u32) {
    if rows { fold_rows(fold, integer, wide, tile) } else { fold_columns(fold, integer, wide, tile) }
}

/// Registers 0 to 3 become their fold over the lanes of each row, in register 0 and all lanes.
fn fold_lanes(fold: Fold, is_integer: bool) {
    [(1, 0), (3, 2), (2, 0)].into_iter().for_each(|(with, to)| fold.fold(is_integer, with, to));
    for by in [4, 2, 1] {
        for i in 0..by {
            push(rotate(if i == 0 { 0 } else { 1 }, 1));
            ttinsn!(PAUSE);
        }
        fold.fold(is_integer, 1, 0);
    }
}

/// Instructions of [`fold_lanes`]: six folds of two, seven rotations of two.
const FOLD_LANES: u32 = 6 * 2 + 7 * 2;
/// Keeps the next ones in the thread's replay buffer; executes them.
const KEEP: u32 = Replay::build().count(FOLD_LANES).load(true).word();
const KEPT: u32 = Replay::build().count(FOLD_LANES).word();

/// Each row's fold for all columns. The thread's replay buffer keeps the fold over lanes, which
/// the core so pushes once: the vector unit waited for it.
fn fold_rows(fold: Fold, integer: Option<Integer>, wide: bool, tile: u32) {
    let (tile, is_integer) = (folded(integer, wide, tile), integer.is_some());
    ttinsn!(KEEP);
    fold_lanes(fold, is_integer);
    start();
    for row in fours() {
        GROUPS.into_iter().zip(COLUMNS).for_each(|(r, columns)| tile.load(r, row + columns));
        GROUPS.into_iter().for_each(|r| order_of(fold, integer, r, false));
        ttinsn!(KEPT);
        order_of(fold, integer, 0, true);
        round_register(wide, integer, 0);
        COLUMNS.into_iter().for_each(|columns| tile.store(0, row + columns));
    }
    end();
}

/// Each column's fold for all rows.
fn fold_columns(fold: Fold, integer: Option<Integer>, wide: bool, tile: u32) {
    let (tile, is_integer) = (folded(integer, wide, tile), integer.is_some());
    start();
    for (r, columns) in GROUPS.into_iter().zip(COLUMNS) {
        tile.load(r, columns);
        order_of(fold, integer, r, false);
        for row in fours().skip(1) {
            tile.load(SPARE, row + columns);
            order_of(fold, integer, SPARE, false);
            fold.fold(is_integer, SPARE, r);
        }
    }
    ttinsn!(TRANSPOSE);
    [(1, 0), (3, 2), (2, 0)].into_iter().for_each(|(with, to)| fold.fold(is_integer, with, to));
    order_of(fold, integer, 0, true);
    round_register(wide, integer, 0);
    vector! {
        mov(0, 1);
        mov(0, 2);
        mov(0, 3);
        TRANSPOSE;
    }
    store_to_all_rows(tile, GROUPS);
    end();
}

/// Runs `body` for each round over a tile, with the row of the tile and the column that the first
/// lane has: a lane's column is twice as far from it.
#[inline(always)]
fn rounds_by_place(body: impl Fn(u32, u32)) {
    start();
    for face in 0..4 {
        for i in 0..ROUNDS_OF_FACE {
            body(face / 2 * FACE_ROWS + i / 2 * REGISTER_ROWS, face % 2 * FACE_ROWS + i % 2);
        }
    }
    end();
}

/// Register `vd` becomes each lane's column or row behind the first lane's.
#[inline(always)]
fn places(rows: bool, vd: u32) {
    if rows {
        push(mov(TWICE_LANE, vd));
        push(shift(vd, -TWICE_LANES_OF_ROW));
    } else {
        push(integer_constant(vd, COLUMN_OF_LANE));
        push(and(TWICE_LANE, vd));
    }
}

/// `bits` from column or row number `first` on.
pub(crate) fn mask(rows: bool, wide: bool, tile: u32, [first, bits]: [u32; 2]) {
    let tile = Tile::bits(wide, tile);
    places(rows, SPARE);
    constant(MASK, bits);
    let (load, store) = (tile.element.load(0, tile.tile, 0), tile.element.store(tile.tile));
    rounds_by_place(|row, column| {
        push(load);
        push(add_integer_number(SPARE, (if rows { row } else { column }) as i32 - first as i32, 1));
        vector! {
            if_not_negative(1);
            mov(MASK, 0);
            END_IF;
        }
        push(store);
    });
}

/// `first` plus the number of the column or row, an integer of 32 bits.
pub(crate) fn numbers(rows: bool, tile: u32, first: u32) {
    places(rows, SPARE);
    constant(MASK, first);
    ttinsn!(add_integer(MASK, SPARE));
    let store = Element::INT32.store(tile);
    rounds_by_place(|row, column| {
        push(add_integer_number(SPARE, (if rows { row } else { column }) as i32, 0));
        push(store);
    });
}

/// Where tile `candidate` is larger, or smaller, than tile `best`, it becomes that, and tile
/// `place` becomes `first` plus the number of the column or row.
pub(crate) fn update((larger, rows): (bool, bool), wide: bool, [best, place, candidate]: [u32; 3], first: u32) {
    let format = number(wide);
    places(rows, SPARE);
    constant(MASK, first);
    ttinsn!(add_integer(MASK, SPARE));
    let at = |vd, format, tile: u32| Sfpload::build().vd(vd).mod0(format).addr_mod(STAY).imm10(tile * TILE_ROWS).word();
    let loads = [at(0, format, best), at(1, format, candidate), Element::INT32.load(2, place, 0)];
    let keep = Sfpstore::build().mod0(format).addr_mod(STAY).imm10(best * TILE_ROWS).word();
    let place = Sfpstore::build().vd(2).mod0(Element::INT32.store).addr_mod(NEXT).imm10(place * TILE_ROWS).word();
    rounds_by_place(|row, column| {
        loads.into_iter().for_each(push);
        push(add_integer_number(SPARE, (if rows { row } else { column }) as i32, 3));
        // Zeros lose their signs.
        vector! {
            add(0, ZERO, 0);
            add(1, ZERO, 1);
        }
        if larger {
            vector! { if_greater(1, 0); }
        } else {
            vector! { if_greater(0, 1); }
        }
        vector! {
            mov(1, 0);
            mov(3, 2);
            END_IF;
        }
        push(keep);
        push(place);
    });
}

/// Exchanges the upper right and the lower left face of the tile that Dst's counter points at.
pub(crate) fn exchange_faces(wide: bool) {
    let tile = Tile::bits(wide, 0);
    start();
    for row in (FACE_ROWS..HALF_TILE).step_by(2) {
        tile.load(0, row);
        tile.load(1, row + FACE_ROWS);
        tile.store(1, row);
        tile.store(0, row + FACE_ROWS);
    }
    end();
}
