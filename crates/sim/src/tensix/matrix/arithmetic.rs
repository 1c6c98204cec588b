//! Matrix products and element-wise arithmetic: `MVMUL`, `DOTPV`, `GAPOOL`, `ELWMUL`, `ELWADD`,
//! `ELWSUB`.
//!
//! Follows the instructions' pages in WormholeB0/TensixTile/TensixCoprocessor; how numbers are
//! added up is in `sum.rs`.

use super::factors::{Factors, Multipliers};
use super::format::{Acc, DstRows, Ints, Part, Style, WHOLE, decode, decode_int, part_a, part_b, phase_exponent};
use super::narrow::multiply_bf16;
pub(super) use super::sum::Element;
use super::sum::{Group, add_by_chance, add_up, by_element, by_element_and_chance, multiply};
use super::{Matrix, Operands};
use crate::FaultClass;
use crate::tensix::config::Refusal;
use crate::tensix::dst::{COLUMNS, Row32, RowMap};
use crate::tensix::random::Generators;
use crate::tensix::src::{A, B, ROWS, Row, Src};
use tilework_abi::tensix::cfg;

/// Rows of SrcA that a matrix product takes.
const FACE: usize = 16;
/// Rows of an element-wise instruction.
const BLOCK: usize = 8;

/// Where an instruction works.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) a: usize,
    pub(super) b: usize,
    pub(super) dst: usize,
    pub(super) phase: u32,
}

/// The rows of SrcB of a matrix product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Product {
    /// Eight rows.
    Eight,
    /// The first four of eight rows.
    Four,
    /// One row, for each second one of seven rows of Dst.
    Broadcast,
}

/// How an element-wise instruction takes SrcB, and whether it adds to Dst.
#[derive(Clone, Copy)]
pub(super) struct ElementModes {
    pub(super) broadcast_row: bool,
    pub(super) broadcast_column: bool,
    pub(super) add: bool,
}

/// Decoded faces of SrcA and blocks of SrcB. Instructions that follow each other multiply by the
/// same ones; what was decoded is kept with what it was decoded from.
#[derive(Clone, Debug, Default)]
pub(super) struct Faces {
    a: [Decoded<Factors>; ROWS / FACE],
    b: [Decoded<Multipliers>; ROWS / BLOCK],
}

#[derive(Clone, Debug, Default)]
struct Decoded<T> {
    from: Option<From>,
    to: T,
}

/// Rows of a bank from `row` on, as they were at `version` of Src.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct From {
    version: u64,
    row: usize,
    style: Style,
    part: Part,
}

impl<T> Decoded<T> {
    /// `N` rows of `src`, decoded.
    #[inline]
    fn of<const N: usize>(&mut self, src: &Src, from: From, set: fn(&mut T, &[Row; N], Style, Part)) -> &T {
        if self.from != Some(from) {
            match src.rows()[from.row..].first_chunk() {
                Some(rows) => set(&mut self.to, rows, from.style, from.part),
                None => set(&mut self.to, &take(src.rows(), from.row), from.style, from.part),
            }
            self.from = Some(from);
        }
        &self.to
    }
}

/// `N` rows of `rows` from `first` on; they begin again after the last one.
#[inline]
fn take<const N: usize>(rows: &[Row], first: usize) -> [Row; N] {
    match rows[first..].first_chunk() {
        Some(taken) => *taken,
        None => std::array::from_fn(|i| rows[(first + i) % ROWS]),
    }
}

/// Whether any of the eight rows from `first` on has a datum with a mantissa and no exponent.
fn have_denormals(rows: &[Row], first: usize) -> bool {
    let rows: [Row; BLOCK] = take(rows, first);
    rows.as_flattened().iter().fold(false, |any, x| any | (x & 0xFF == 0) & (x & 0x3_FF00 != 0))
}

/// What of integer "8" is multiplied in a fidelity phase (MVMUL.md).
fn int_masks(phase: u32) -> [u32; 2] {
    let a = if phase & 1 != 0 { 0x4_1FFF } else { 0x4_E0FF };
    let b = if phase & 2 != 0 { 0x4_0FFF } else { 0x7_F0FF };
    [a, b]
}

impl Matrix {
    /// `MVMUL`, `DOTPV`, `GAPOOL`.
    pub(super) fn product(&mut self, on: &mut Operands<'_>, at: Place, shape: Product) -> Result<(), Refusal> {
        let (style, acc) = on.arithmetic()?;
        let map = RowMap::of(on.config);
        let rows = match shape {
            Product::Eight => Rows { count: 8, step: 1, stride: 1 },
            Product::Four => Rows { count: 4, step: 1, stride: 1 },
            Product::Broadcast => Rows { count: 4, step: 0, stride: 2 },
        };
        self.product_of(on, (map, at), style, acc, rows)
    }

    fn product_of(
        &mut self,
        on: &mut Operands<'_>,
        (map, at): (RowMap, Place),
        style: Style,
        acc: Acc,
        rows: Rows,
    ) -> Result<(), Refusal> {
        if style == Style::Int8 {
            let sums = multiply_ints(on, at);
            for i in 0..rows.count {
                on.accumulate_ints((map, at.dst + i * rows.stride), true, &sums[i * rows.step]);
            }
            return Ok(());
        }
        let [a, b] = &on.src.0;
        if !on.flushes() && have_denormals(b.rows(), at.b) {
            // The documents do not say what the chip does with them then (MVMUL.md).
            return Err((FaultClass::MissingSpecification, "denormals of SrcB that are not flushed"));
        }
        let from = |src: &Src, row, part| From { version: src.version(), row, style, part };
        let faces = self.faces.get_or_insert_default();
        let factors = faces.a[at.a / FACE].of(a, from(a, at.a, part_a(at.phase)), Factors::set);
        let b = faces.b[at.b / BLOCK].of(b, from(b, at.b, part_b(at.phase)), Multipliers::set);
        let by_chance = on.rounds_by_chance(acc);
        let is_plain = acc == Acc::Bf16 && (rows.count, rows.stride) == (BLOCK, 1) && !by_chance;
        let block = if is_plain { on.dst.block16(map, at.dst) } else { None };
        let less = phase_exponent(at.phase);
        let is_done = block.map(|(dst, valid)| multiply_bf16(factors, b, less, valid, dst));
        if is_done == Some(true) {
            return Ok(());
        }
        let mut dst = [[0; COLUMNS]; BLOCK];
        let dst = &mut dst[..rows.count];
        let of_dst = DstRows { map, first: at.dst, stride: rows.stride };
        on.dst_bits(of_dst, acc, dst);
        if by_chance {
            let generators = &mut self.generators;
            multiply_exactly(on, at, style, rows.step, dst, |groups, dst| {
                add_by_chance(groups, acc, dst, &generators.draw());
            });
        } else if is_done == Some(false) || !multiply(factors, b, rows.step, less, acc, dst) {
            multiply_exactly(on, at, style, rows.step, dst, |groups, dst| {
                add_up(std::slice::from_ref(groups), acc, std::slice::from_mut(dst));
            });
        }
        on.store(of_dst, acc, dst);
        Ok(())
    }
}

/// Which rows a product has.
#[derive(Clone, Copy)]
struct Rows {
    /// Of the result.
    count: usize,
    /// How far apart rows of SrcB are.
    step: usize,
    /// How far apart rows of Dst are.
    stride: usize,
}

/// A product, where f32 does not suffice or sums are rounded by chance; `add`
/// adds a row's groups.
#[cold]
fn multiply_exactly(
    on: &Operands<'_>,
    at: Place,
    style: Style,
    step: usize,
    dst: &mut [Row32],
    mut add: impl FnMut(&[Group; 2], &mut Row32),
) {
    let a = decode::<FACE>(&take(on.src.0[A].rows(), at.a), style, part_a(at.phase));
    let b = decode::<BLOCK>(&take(on.src.0[B].rows(), at.b), style, part_b(at.phase));
    for (i, dst) in dst.iter_mut().enumerate() {
        let b = (&b.ints[i * step], &b.exps[i * step]);
        let groups = [0, FACE / 2].map(|first| Group::of_eight(&a, b, first, phase_exponent(at.phase)));
        add(&groups, dst);
    }
}

fn multiply_ints(on: &Operands<'_>, at: Place) -> [Ints; BLOCK] {
    let a: [Row; FACE] = take(on.src.0[A].rows(), at.a);
    let b: [Row; BLOCK] = take(on.src.0[B].rows(), at.b);
    let ([mask_a, mask_b], flush) = (int_masks(at.phase), on.flushes());
    let a = a.map(|row| decode_int(&row, mask_a, true));
    b.map(|row| {
        let mut sums = [0; COLUMNS];
        for (b, a) in decode_int(&row, mask_b, flush).into_iter().zip(&a) {
            sums.iter_mut().zip(a).for_each(|(sum, a)| *sum += b * a);
        }
        sums
    })
}

impl Operands<'_> {
    /// Whether a datum of SrcB without an exponent is zero.
    pub(super) fn flushes(&self) -> bool {
        !self.is_set(cfg::ALU_ACC_CTRL_ZERO_FLAG_DISABLED_SRC)
    }

    /// `ELWMUL`, `ELWADD`, `ELWSUB`.
    pub(super) fn element_wise(
        &mut self,
        at: Place,
        what: Element,
        modes: ElementModes,
        generators: &mut Generators,
    ) -> Result<(), Refusal> {
        let (style, acc) = self.arithmetic()?;
        let map = RowMap::of(self.config);
        let rows: [Row; BLOCK] = take(self.src.0[A].rows(), at.a);
        let others: [Row; BLOCK] = self.block_of_b(at.b, modes);
        if style == Style::Int8 {
            let masks = if what == Element::Multiply { int_masks(at.phase) } else { [u32::MAX; 2] };
            let flush = self.flushes();
            for (i, (a, b)) in rows.iter().zip(&others).enumerate() {
                let (a, b) = (decode_int(a, masks[0], true), decode_int(b, masks[1], flush));
                let result = std::array::from_fn(|j| what.of_ints(a[j], b[j]));
                self.accumulate_ints((map, at.dst + i), modes.add, &result);
            }
            return Ok(());
        }
        let parts = match what {
            Element::Multiply => (part_a(at.phase), part_b(at.phase)),
            _ => (WHOLE, WHOLE),
        };
        let (a, b) = (decode(&rows, style, parts.0), decode(&others, style, parts.1));
        let less = phase_exponent(at.phase);
        let of_dst = DstRows { map, first: at.dst, stride: 1 };
        let mut dst = [[0; COLUMNS]; BLOCK];
        if modes.add {
            self.dst_bits(of_dst, acc, &mut dst);
        }
        if self.rounds_by_chance(acc) {
            by_element_and_chance(what, (&a, &b), less, acc, &mut dst, generators);
        } else {
            by_element(what, (&a, &b), less, acc, &mut dst);
        }
        self.store(of_dst, acc, &dst);
        Ok(())
    }

    /// The block of SrcB of an element-wise instruction.
    fn block_of_b(&self, row: usize, modes: ElementModes) -> [Row; BLOCK] {
        let rows = self.src.0[B].rows();
        let mut block = if modes.broadcast_row { [rows[row]; BLOCK] } else { take(rows, row) };
        if modes.broadcast_column {
            block.iter_mut().for_each(|row| *row = [row[0]; COLUMNS]);
        }
        block
    }
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
