//! What goes down the rows of tiles: running sums, reductions, mean and variance of columns.
//!
//! Four loads bring four rows of all 32 columns, each load eight columns. Transposed
//! (SFPTRANSP.md), register r has row r of all columns, so that a row is one operation. Registers 4
//! to 7 are transposed along, and are themselves again at every second time: they carry what goes
//! on.

use super::integer::{Integer, ordered};
use super::topk::COLUMNS;
use super::words::*;
use super::{AS_BF16, Element, HALF_OF_BF16, STAY, TILE_ROWS};
use crate::push::{block, push, stall, until};
use crate::ttinsn;
use tilework_abi::tensix::insn::{Sfpload, Sfpstore};

/// Rows of Dst of half a tile, of a face, and of a register.
const HALF_TILE: u32 = TILE_ROWS / 2;
const FACE_ROWS: u32 = 16;
const REGISTER_ROWS: u32 = 4;
/// Registers of rows, and of what goes on.
const ROWS: [u32; 4] = [0, 1, 2, 3];
const CARRY: u32 = 7;
const SPARE: u32 = 6;
const MEAN: u32 = 4;
const SQUARES: u32 = 5;

/// What becomes of a row and those above it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cumulative {
    /// Their sum.
    Sum,
    /// Their product.
    Product,
}

/// What a column is reduced to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reduction {
    /// The sum, from the first row on; of numbers each one rounded, of integers modulo 2^32 or
    /// 2^16.
    Sum,
    /// The largest element; -0 is less than 0.
    Max,
    /// The smallest element.
    Min,
}

/// Loads or stores four rows; they begin at `row` of tile `tile`.
#[inline(always)]
fn transfer(store: bool, element: Element, tile: u32, row: u32) {
    for (r, columns) in ROWS.into_iter().zip(COLUMNS) {
        let at = row + columns;
        if store {
            push(Sfpstore::build().vd(r).mod0(element.store).addr_mod(STAY).imm10(tile * TILE_ROWS + at).word());
        } else {
            push(Sfpload::build().vd(r).mod0(element.load).addr_mod(STAY).imm10(element.row(tile, at)).word());
        }
    }
}

/// Runs `body` with each four rows of a tile in registers 0 to 3, and stores them again if `store`.
#[inline(always)]
fn each_four_rows(element: Element, tile: u32, store: bool, body: impl Fn(u32)) {
    ttinsn!(stall(block::SFPU, until::MATH));
    for half in 0..2 {
        for quarter in 0..FACE_ROWS / REGISTER_ROWS {
            let row = half * HALF_TILE + quarter * REGISTER_ROWS;
            transfer(false, element, tile, row);
            ttinsn!(TRANSPOSE);
            body(half * FACE_ROWS + quarter * REGISTER_ROWS);
            ttinsn!(TRANSPOSE);
            if store {
                transfer(true, element, tile, row);
            }
        }
    }
    ttinsn!(stall(block::MATH | block::CFG, until::SFPU));
}

/// Every lane of registers 4 to 7 gets this value.
#[inline(always)]
fn carry(bits: u32) {
    (MEAN..=CARRY).for_each(|r| constant(r, bits));
}

/// Rounds a register to what a store as bf16 keeps of it.
#[inline(always)]
fn round_row(element: Element, r: u32) {
    if element.store == AS_BF16 {
        push(integer(SPARE, HALF_OF_BF16));
        push(add_integer(SPARE, r));
    }
}

/// Every row of tile `tile` becomes the sum or product of itself and those above it, together with
/// those of the tile before unless it is the `first`.
pub(crate) fn cumulative(op: Cumulative, wide: bool, tile: u32, first: bool) {
    if first {
        carry(if op == Cumulative::Sum { 0 } else { 1f32.to_bits() });
    }
    let element = Element::number(wide);
    each_four_rows(element, tile, true, |_| {
        for r in ROWS {
            let before = if r == 0 { CARRY } else { r - 1 };
            push(match op {
                Cumulative::Sum => add(before, r, r),
                Cumulative::Product => mul(before, r, r),
            });
        }
        ttinsn!(mov(ROWS[3], CARRY));
        ROWS.into_iter().for_each(|r| round_row(element, r));
    });
}

/// Row 0 of tile `tile` becomes what each column is reduced to: of numbers, or of integers.
pub(crate) fn reduce_columns(op: Reduction, integer: Option<Integer>, wide: bool, tile: u32) {
    let element = integer.map_or(Element::number(wide), |integer| integer.element(wide));
    // Less, or more, than all others.
    carry(match op {
        Reduction::Sum => 0,
        Reduction::Max if integer == Some(Integer::UInt16) => 0,
        Reduction::Max => 0xFFFF_FFFF,
        Reduction::Min => 0x7FFF_FFFF,
    });
    each_four_rows(element, tile, false, |_| {
        for r in ROWS {
            match (op, integer) {
                (Reduction::Sum, None) => push(add(CARRY, r, CARRY)),
                (Reduction::Sum, Some(_)) => push(add_integer(r, CARRY)),
                _ => {
                    integer.into_iter().for_each(|integer| ordered(integer, r, false));
                    push(if op == Reduction::Max { min_max(r, CARRY) } else { min_max(CARRY, r) });
                }
            }
        }
    });
    if op != Reduction::Sum {
        // What was mapped may lie in any of the registers that are transposed along.
        for r in MEAN..=CARRY {
            integer.into_iter().for_each(|integer| ordered(integer, r, true));
        }
    }
    first_row(element, tile, CARRY);
}

/// Stores register `r` of those that are transposed along as row 0 of tile `tile`; the three rows
/// behind it lose their meaning.
#[inline(always)]
fn first_row(element: Element, tile: u32, r: u32) {
    ttinsn!(TRANSPOSE);
    push(mov(r, 0));
    round_row(element, 0);
    ttinsn!(TRANSPOSE);
    transfer(true, element, tile, 0);
    ttinsn!(stall(block::MATH | block::CFG, until::SFPU));
}

/// Prepares [`welford`].
pub(crate) fn start_welford() {
    carry(0);
}

/// Goes on with mean and sum of squared differences of each column: tile `tile` has the rows from
/// number `before` on.
pub(crate) fn welford(wide: bool, tile: u32, before: u32) {
    each_four_rows(Element::number(wide), tile, false, |row| {
        for r in ROWS {
            constant(SPARE, reciprocal(before + row + r + 1));
            push(sub(r, MEAN, CARRY));
            push(mad(CARRY, SPARE, MEAN, MEAN));
            push(sub(r, MEAN, r));
            push(mad(CARRY, r, SQUARES, SQUARES));
        }
    });
}

/// Row 0 of tile `mean` becomes the mean of `rows` rows, row 0 of tile `variance` their variance,
/// the mean of the squared differences from it.
pub(crate) fn welford_results(wide: bool, [mean, variance]: [u32; 2], rows: u32) {
    let element = Element::number(wide);
    ttinsn!(TRANSPOSE);
    constant(SPARE, reciprocal(rows));
    push(mul(SQUARES, SPARE, CARRY));
    ttinsn!(TRANSPOSE);
    first_row(element, mean, MEAN);
    first_row(element, variance, CARRY);
}

/// The bits of 1 / n, rounded down, as an f32; n is at most 2^24.
fn reciprocal(n: u32) -> u32 {
    // 2^place / n has 24 bits.
    let log = 31 - n.leading_zeros();
    let exact = n.is_power_of_two();
    let place = 23 + log + u32::from(!exact);
    let mantissa = ((1u64 << place) / u64::from(n)) as u32;
    let exponent = 127 + 23 - place;
    exponent << 23 | mantissa & 0x7F_FFFF
}
