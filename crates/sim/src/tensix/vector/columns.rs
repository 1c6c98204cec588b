//! Lanes in the columns of four rows of Dst: eight of each row, even or odd ones.

// Loops over lanes of several arrays vectorise only with a counter.
#![expect(clippy::needless_range_loop)]

use super::{LANES, LReg};
use crate::tensix::dst::Row16;
use crate::tensix::number::{bf16_of_dst, fp32_of_dst};
use multiversion::multiversion;

/// Rows that an instruction accesses.
pub(super) const ROWS: usize = 4;
/// Four rows of 16-bit data, or of the high or low halves of 32-bit data.
pub(super) type Rows = [Row16; ROWS];

/// The datum of a lane: lane after lane has two columns, an even and an odd one.
#[inline(always)]
fn pick(data: &[u16], odd: u32, lane: usize) -> u16 {
    let (of_even, of_odd) = (data[2 * lane], data[2 * lane + 1]);
    if odd >> lane & 1 != 0 { of_odd } else { of_even }
}

/// The lanes' data of 16 bits; of those of `odd`, from odd columns.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2"))]
pub(super) fn gather(rows: &Rows, odd: u32, to: &mut LReg) {
    for lane in 0..LANES {
        to[lane] = pick(rows.as_flattened(), odd, lane).into();
    }
}

/// The lanes' BF16, as FP32.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2"))]
pub(super) fn gather_bf16(rows: &Rows, odd: u32, to: &mut LReg) {
    for lane in 0..LANES {
        to[lane] = u32::from(bf16_of_dst(pick(rows.as_flattened(), odd, lane))) << 16;
    }
}

/// The lanes' data of 32 bits, as FP32.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2"))]
pub(super) fn gather_fp32(high: &Rows, low: &Rows, odd: u32, to: &mut LReg) {
    for lane in 0..LANES {
        let (high, low) = (pick(high.as_flattened(), odd, lane), pick(low.as_flattened(), odd, lane));
        to[lane] = fp32_of_dst(u32::from(high) << 16 | u32::from(low));
    }
}

/// Puts 16 bits of data from bit `from` on where the lanes of `mask` are.
#[inline(always)]
fn put(data: &LReg, from: u32, (odd, mask): (u32, u32), rows: &mut Rows) {
    let rows = rows.as_flattened_mut();
    for lane in 0..LANES {
        let datum = (data[lane] >> from) as u16;
        let (of_even, of_odd) = (rows[2 * lane], rows[2 * lane + 1]);
        rows[2 * lane] = if (mask & !odd) >> lane & 1 != 0 { datum } else { of_even };
        rows[2 * lane + 1] = if (mask & odd) >> lane & 1 != 0 { datum } else { of_odd };
    }
}

/// Stores the low 16 bits of the lanes of `mask`; those of `odd` to odd columns.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2"))]
pub(super) fn scatter(data: &LReg, odd: u32, mask: u32, rows: &mut Rows) {
    put(data, 0, (odd, mask), rows);
}

/// Stores data of 32 bits of the lanes of `mask`; those of `odd` to odd columns.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2"))]
pub(super) fn scatter_wide(data: &LReg, odd: u32, mask: u32, high: &mut Rows, low: &mut Rows) {
    put(data, 16, (odd, mask), high);
    put(data, 0, (odd, mask), low);
}

/// Applies `f` to each lane.
#[inline(always)]
pub(super) fn each(from: &LReg, f: impl Fn(u32) -> u32) -> LReg {
    let mut to = [0; LANES];
    for lane in 0..LANES {
        to[lane] = f(from[lane]);
    }
    to
}
