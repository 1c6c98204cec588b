//! Element-wise arithmetic: `ELWMUL`, `ELWADD`, `ELWSUB`.
//!
//! Follows the instructions' pages in WormholeB0/TensixTile/TensixCoprocessor; how numbers are
//! added up is in `sum.rs`.

use super::Operands;
use super::arithmetic::{BLOCK, Place, int_masks};
use super::format::{Acc, Ints, Reading, Style, WHOLE, decode_int, decode_row, part_a, part_b, phase_exponent};
use super::held::{Bf16, DstRows, Fp16, Fp32, Held, bits_of_row, put_row};
use super::narrow::SUMMABLE;
use super::setup::Modes;
use super::sum::{BIAS, Group, POINT, add_by_chance, combine};
use super::wide::sum_of;
use crate::tensix::config::Refusal;
use crate::tensix::dst::{COLUMNS, Row16, Row32};
use crate::tensix::number::SRC_SIGN;
use crate::tensix::random::Generators;
use crate::tensix::src::{A, B, Row};
use multiversion::multiversion;

/// What an element-wise instruction does with two numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Element {
    Multiply,
    Add,
    Subtract,
}

/// How an element-wise instruction takes SrcB, and whether it adds to Dst.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) broadcast_row: bool,
    pub(super) broadcast_column: bool,
    pub(super) add: bool,
}

/// What an element-wise instruction works on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements<'a> {
    pub(super) what: Element,
    pub(super) taken: Taken,
    pub(super) a: &'a [Row],
    /// One row if it is for all rows of SrcA.
    pub(super) b: &'a [Row],
    pub(super) style: Style,
    pub(super) phase: u32,
}

impl Element {
    fn of_ints(self, a: i32, b: i32) -> i32 {
        match self {
            Self::Multiply => a * b,
            Self::Add => a + b,
            Self::Subtract => a - b,
        }
    }
}

impl<'a> Elements<'a> {
    /// Row `i` of SrcB.
    #[inline(always)]
    fn row_of_b(&self, i: usize) -> Option<Row> {
        let row = self.b.get(if self.taken.broadcast_row { 0 } else { i })?;
        Some(if self.taken.broadcast_column { [row[0]; COLUMNS] } else { *row })
    }

    /// The results of row `i`, if there is one.
    #[inline(always)]
    fn row<const MULTIPLIES: bool>(&self, i: usize) -> Option<Group> {
        let less = phase_exponent(self.phase);
        let (part_a, part_b) = if MULTIPLIES { (part_a(self.phase), part_b(self.phase)) } else { (WHOLE, WHOLE) };
        let sign = if self.what == Element::Subtract { SRC_SIGN } else { 0 };
        let a = decode_row(self.a.get(i)?, Reading::of(self.style, part_a), 0);
        let b = decode_row(&self.row_of_b(i)?, Reading::of(self.style, part_b), sign);
        Some(if MULTIPLIES { Group::of_products(&a, &b, less) } else { Group::of_two(&a, &b, less) })
    }
}

/// Adds results to rows of Dst, of which each has a high half and, of 32 bits, a low half.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2"))]
pub(super) fn add_elements(of: Elements<'_>, acc: Acc, high: &mut [Row16], low: &mut [Row16]) {
    match (of.what, acc) {
        (Element::Multiply, Acc::Bf16) => add_to::<Bf16, true>(of, high, low),
        (Element::Multiply, Acc::Fp16) => add_to::<Fp16, true>(of, high, low),
        (Element::Multiply, _) => add_to::<Fp32, true>(of, high, low),
        (_, Acc::Bf16) => add_to::<Bf16, false>(of, high, low),
        (_, Acc::Fp16) => add_to::<Fp16, false>(of, high, low),
        _ => add_to::<Fp32, false>(of, high, low),
    }
}

#[inline(always)]
fn add_to<H: Held, const MULTIPLIES: bool>(of: Elements<'_>, high: &mut [Row16], low: &mut [Row16]) {
    for (i, high) in high.iter_mut().enumerate() {
        let Some(group) = of.row::<MULTIPLIES>(i) else { break };
        let low = low.get_mut(i);
        if !of.taken.add {
            *high = [0; COLUMNS];
        }
        // Exponents with their bias, and the largest ones of the sums.
        let (mut exps, mut largest, mut outside) = ([0; COLUMNS], [0; COLUMNS], false);
        for j in 0..COLUMNS {
            exps[j] = (group.exps[j] + BIAS).max(0);
            let exp = exps[j].max(i32::from(high[j] & 0xFF));
            outside |= (exp > SUMMABLE[1].into()) | (exp < SUMMABLE[0].into()) & (exp != 0);
            // Where there is nothing to add up, any will do.
            largest[j] = exp.max(SUMMABLE[0].into());
        }
        match low {
            None if H::BITS == Bf16::BITS && !outside => add_narrow(&group.ints, &exps, &largest, high),
            Some(low) if H::WIDE && !outside => {
                if !of.taken.add {
                    *low = [0; COLUMNS];
                }
                if !add_exactly(&group.ints, &exps, &largest, high, low) {
                    add_wide(&group.ints, &exps, &largest, high, low);
                }
            }
            low => {
                let old = if of.taken.add { bits_of_row::<H>(high, low.as_deref()) } else { [0; COLUMNS] };
                put_row::<H>(&combine::<H, 1>(&[group], &old), high, low);
            }
        }
    }
}

/// Adds a group's sums to a row of BF16, as `narrow.rs` does.
#[inline(always)]
fn add_narrow(ints: &Ints, exps: &Ints, largest: &Ints, high: &mut Row16) {
    for j in 0..COLUMNS {
        let power = |exp: i32| exp.max(0).cast_unsigned() << 23;
        let sum = (ints[j] as f32 + 0.25) * f32::from_bits(power(exps[j] - POINT));
        let magic = f32::from_bits(power(largest[j] + 23 - POINT) | 0x40_0000);
        let old = f32::from_bits(Bf16::bits(high[j], 0)) * (1.0 + 1.0 / 8192.0);
        let sum = magic + old + sum - magic;
        high[j] = Bf16::high(sum.to_bits().wrapping_add(0x8000));
    }
}

/// A group's sum in f32, in which it is exact.
#[inline(always)]
fn single(int: i32, exp: i32) -> f32 {
    int as f32 * f32::from_bits((exp - POINT).max(0).cast_unsigned() << 23)
}

/// Adds a group's sums to a row of FP32 of which nothing has to be rounded, as where fidelity
/// phases add up to a product: then f32 has the result, whichever way it rounds. `false`: it is
/// left as it is, because something may have to be.
#[inline(always)]
fn add_exactly(ints: &Ints, exps: &Ints, largest: &Ints, high: &mut Row16, low: &mut Row16) -> bool {
    let (mut sums, mut rounds) = ([0; COLUMNS], false);
    for j in 0..COLUMNS {
        let sum = single(ints[j], exps[j]);
        let old = f32::from_bits(Fp32::bits(high[j], low[j]));
        let both = sum + old;
        // What f32 rounds off the sum (Knuth's TwoSum).
        let from_sum = both - old;
        let off = (sum - from_sum) + (old - (both - from_sum));
        // What lies behind the last place of the largest exponent is rounded before.
        let sum_fits = (ints[j] == 0) | (exps[j] - POINT >= largest[j] - Fp32::PLACES);
        let old_fits = (old == 0.0) | (i32::from(high[j] & 0xFF) == largest[j]);
        rounds |= (off != 0.0) | !sum_fits | !old_fits;
        sums[j] = both.to_bits();
    }
    if !rounds {
        for j in 0..COLUMNS {
            (high[j], low[j]) = (Fp32::high(sums[j]), sums[j] as u16);
        }
    }
    !rounds
}

/// Adds a group's sums to a row of FP32, as `wide.rs` does.
#[inline(always)]
fn add_wide(ints: &Ints, exps: &Ints, largest: &Ints, high: &mut Row16, low: &mut Row16) {
    for j in 0..COLUMNS {
        let sum = f64::from(single(ints[j], exps[j]));
        let old = f32::from_bits(Fp32::bits(high[j], low[j]));
        let bits = sum_of(largest[j], old, [sum]);
        (high[j], low[j]) = (Fp32::high(bits), bits as u16);
    }
}

impl Operands<'_> {
    /// `ELWMUL`, `ELWADD`, `ELWSUB`.
    pub(super) fn element_wise(
        &mut self,
        at: Place,
        what: Element,
        (modes, taken): (Modes, Taken),
        generators: &mut Generators,
    ) -> Result<(), Refusal> {
        let count = if taken.broadcast_row { 1 } else { BLOCK };
        let [a, b] = [(A, at.a, BLOCK), (B, at.b, count)].map(|(which, row, count)| {
            let rows = self.src.0[which].rows();
            &rows[row.min(rows.len() - count)..][..count]
        });
        let of = Elements { what, taken, a, b, style: modes.style, phase: at.phase };
        let rows = DstRows { map: modes.map, first: at.dst, stride: 1, count: BLOCK };
        if modes.style == Style::Int8 {
            of.integers(modes.flushes, |i, ints| self.dst.accumulate_ints((modes.map, at.dst + i), taken.add, ints));
        } else if modes.by_chance {
            self.dst.on_bits(rows, modes.acc, |bits| of.add_by_chance(modes.acc, bits, generators));
        } else {
            self.dst.on_rows(rows, modes.acc, |high, low| add_elements(of, modes.acc, high, low));
        }
        Ok(())
    }
}

impl Elements<'_> {
    /// Calls `add` with the results of each row of integers "8".
    fn integers(&self, flushes: bool, mut add: impl FnMut(usize, &Ints)) {
        let masks = if self.what == Element::Multiply { int_masks(self.phase) } else { [u32::MAX; 2] };
        for (i, a) in self.a.iter().enumerate() {
            let Some(b) = self.row_of_b(i) else { break };
            let (a, b) = (decode_int(a, masks[0], true), decode_int(&b, masks[1], flushes));
            add(i, &std::array::from_fn(|j| self.what.of_ints(a[j], b[j])));
        }
    }

    /// Adds results to bits of f32, rounded by chance.
    fn add_by_chance(&self, acc: Acc, dst: &mut [Row32], generators: &mut Generators) {
        for (i, dst) in dst.iter_mut().enumerate() {
            let group = if self.what == Element::Multiply { self.row::<true>(i) } else { self.row::<false>(i) };
            if !self.taken.add {
                *dst = [0; COLUMNS];
            }
            if let Some(group) = group {
                add_by_chance(&[group], acc, dst, &generators.draw());
            }
        }
    }
}
