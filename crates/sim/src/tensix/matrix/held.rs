//! What Dst holds, as bits of f32, and the rows of it that arithmetic works on.

use super::format::{Acc, Ints};
use crate::tensix::dst::{BLOCK, COLUMNS, Dst, Row16, Row32, RowMap};
use crate::tensix::number::{bf16_of_dst, dst_of_bf16, dst_of_fp16, fp16_of_dst};

/// A format of Dst's data.
pub(super) trait Held {
    /// Data have 32 bits.
    const WIDE: bool;
    /// Bits behind the point of a sum's largest exponent.
    const PLACES: i32;
    /// Bits of a mantissa.
    const BITS: u32;
    /// The least exponent.
    const LEAST: i32;
    /// Bits of f32 of a datum's high and low half.
    fn bits(high: u16, low: u16) -> u32;
    /// The high half of bits of f32 that fit.
    fn high(bits: u32) -> u16;
}

/// BF16.
pub(super) struct Bf16;
/// FP16, of which an exponent of 31 is no exception.
pub(super) struct Fp16;
/// FP32, and integers.
pub(super) struct Fp32;

impl Held for Bf16 {
    const WIDE: bool = false;
    const PLACES: i32 = 10;
    const BITS: u32 = 8;
    const LEAST: i32 = -126;
    #[inline(always)]
    fn bits(high: u16, _low: u16) -> u32 {
        u32::from(bf16_of_dst(high)) << 16
    }
    #[inline(always)]
    fn high(bits: u32) -> u16 {
        dst_of_bf16((bits >> 16) as u16)
    }
}

impl Held for Fp16 {
    const WIDE: bool = false;
    const PLACES: i32 = 10;
    const BITS: u32 = 11;
    const LEAST: i32 = -14;
    #[inline(always)]
    fn bits(high: u16, _low: u16) -> u32 {
        let x = u32::from(fp16_of_dst(high));
        // The exponent's bias goes from 15 to 127.
        if x & 0x7C00 == 0 { 0 } else { (x & 0x8000) << 16 | ((x & 0x7FFF) + (112 << 10)) << 13 }
    }
    /// Of a result that has no more than eleven bits. What is too large has all bits set but the
    /// sign, and what is too small is zero (FloatBitPatterns.md).
    #[inline(always)]
    fn high(bits: u32) -> u16 {
        let (sign, magnitude) = (bits >> 16 & 0x8000, bits >> 13 & 0x3_FFFF);
        let normal = if magnitude >= 0x2_4000 { 0x7FFF } else { magnitude.wrapping_sub(112 << 10) };
        dst_of_fp16(if magnitude < 0x1_C400 { 0 } else { sign | normal } as u16)
    }
}

impl Held for Fp32 {
    const WIDE: bool = true;
    const PLACES: i32 = 23;
    const BITS: u32 = 24;
    const LEAST: i32 = -126;
    #[inline(always)]
    fn bits(high: u16, low: u16) -> u32 {
        Bf16::bits(high, low) | u32::from(low)
    }
    #[inline(always)]
    fn high(bits: u32) -> u16 {
        Bf16::high(bits)
    }
}

/// Bits of f32 of a row; of 16 bits, there are no low halves.
#[inline(always)]
pub(super) fn bits_of_row<H: Held>(high: &Row16, low: Option<&Row16>) -> Row32 {
    let mut bits = [0; COLUMNS];
    match low {
        Some(low) if H::WIDE => {
            for j in 0..COLUMNS {
                bits[j] = H::bits(high[j], low[j]);
            }
        }
        _ => {
            for j in 0..COLUMNS {
                bits[j] = H::bits(high[j], 0);
            }
        }
    }
    bits
}

/// A row of bits of f32.
#[inline(always)]
pub(super) fn put_row<H: Held>(bits: &Row32, high: &mut Row16, low: Option<&mut Row16>) {
    for j in 0..COLUMNS {
        high[j] = H::high(bits[j]);
    }
    if let Some(low) = low.filter(|_| H::WIDE) {
        for j in 0..COLUMNS {
            low[j] = bits[j] as u16;
        }
    }
}

/// Rows of Dst: the first, how far apart they are, and how many, at most a block.
#[derive(Clone, Copy, Debug)]
pub(super) struct DstRows {
    pub(super) map: RowMap,
    pub(super) first: usize,
    pub(super) stride: usize,
    pub(super) count: usize,
}

impl DstRows {
    fn each(self) -> impl Iterator<Item = usize> {
        (0..self.count).map(move |i| self.first + i * self.stride)
    }
}

impl Acc {
    pub(super) fn is_wide(self) -> bool {
        matches!(self, Self::Fp32 | Self::Int32)
    }
}

impl Dst {
    /// Lets `work` change the high and, of data of 32 bits, the low halves of rows of Dst where
    /// they lie, if they lie side by side.
    #[inline]
    pub(super) fn on_rows<R>(
        &mut self,
        rows: DstRows,
        acc: Acc,
        work: impl FnOnce(&mut [Row16], &mut [Row16]) -> R,
    ) -> R {
        if rows.stride == 1 {
            let side_by_side = match acc.is_wide() {
                true => self.wide_rows(rows.map, rows.first, rows.count),
                false => self.narrow_rows(rows.map, rows.first, rows.count).map(|high| (high, &mut [][..])),
            };
            if let Some((high, low)) = side_by_side {
                return work(high, low);
            }
        }
        self.on_copies(rows, acc, work)
    }

    /// The same on copies.
    fn on_copies<R>(&mut self, rows: DstRows, acc: Acc, work: impl FnOnce(&mut [Row16], &mut [Row16]) -> R) -> R {
        let mut halves = [[[0; COLUMNS]; BLOCK]; 2];
        let [high, low] = &mut halves;
        for (i, row) in rows.each().enumerate() {
            match acc.is_wide() {
                true => [high[i], low[i]] = self.read_halves(rows.map, row),
                false => high[i] = self.read16(rows.map, row),
            }
        }
        let low = if acc.is_wide() { &mut low[..rows.count] } else { &mut [] };
        let done = work(&mut high[..rows.count], low);
        for (i, row) in rows.each().enumerate() {
            match acc.is_wide() {
                true => self.write_halves(rows.map, row, [high[i], low[i]]),
                false => self.write16(rows.map, row, high[i]),
            }
        }
        done
    }

    /// Lets `work` change rows of Dst as bits of f32: what is rare.
    pub(super) fn on_bits<R>(&mut self, rows: DstRows, acc: Acc, work: impl FnOnce(&mut [Row32]) -> R) -> R {
        match acc {
            Acc::Bf16 => self.on_bits_of::<Bf16, R>(rows, acc, work),
            Acc::Fp16 => self.on_bits_of::<Fp16, R>(rows, acc, work),
            Acc::Fp32 | Acc::Int32 => self.on_bits_of::<Fp32, R>(rows, acc, work),
        }
    }

    fn on_bits_of<H: Held, R>(&mut self, rows: DstRows, acc: Acc, work: impl FnOnce(&mut [Row32]) -> R) -> R {
        self.on_copies(rows, acc, |high, low| {
            let mut bits = [[0; COLUMNS]; BLOCK];
            let bits = &mut bits[..high.len()];
            for (i, bits) in bits.iter_mut().enumerate() {
                *bits = bits_of_row::<H>(&high[i], low.get(i));
            }
            let done = work(bits);
            for (i, bits) in bits.iter().enumerate() {
                put_row::<H>(bits, &mut high[i], low.get_mut(i));
            }
            done
        })
    }

    /// Adds integers to row `row` of Dst if `add`, and otherwise replaces it (`SaturateAddInt32`).
    pub(super) fn accumulate_ints(&mut self, (map, row): (RowMap, usize), add: bool, sum: &Ints) {
        let rows = DstRows { map, first: row, stride: 1, count: 1 };
        self.on_bits(rows, Acc::Int32, |bits| {
            for (bits, &sum) in bits.as_flattened_mut().iter_mut().zip(sum) {
                let magnitude = if add { (*bits & 0x7FFF_FFFF).cast_signed() } else { 0 };
                let old = if *bits >> 31 != 0 { -magnitude } else { magnitude };
                let total = old.saturating_add(sum).max(-i32::MAX);
                *bits = total.unsigned_abs() | total.cast_unsigned() & 0x8000_0000;
            }
        });
    }
}
