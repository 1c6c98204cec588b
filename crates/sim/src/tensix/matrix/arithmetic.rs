//! Matrix products and element-wise arithmetic: `MVMUL`, `DOTPV`, `GAPOOL`, `ELWMUL`, `ELWADD`,
//! `ELWSUB`.
//!
//! Follows the instructions' pages in WormholeB0/TensixTile/TensixCoprocessor; how numbers are added
//! up is in `sum.rs`.

use super::format::{Acc, Ints, Numbers, Part, Style, WHOLE, decode, decode_int, part_a, part_b, phase_exponent};
use super::sum::{Factors, Group};
use super::{Matrix, Operands};
use crate::FaultClass;
use crate::tensix::config::Refusal;
use crate::tensix::dst::{COLUMNS, RowMap};
use crate::tensix::src::{A, B, ROWS, Row};
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

/// An element-wise instruction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Element {
    Multiply,
    Add,
    Subtract,
}

/// How an element-wise instruction takes SrcB, and whether it adds to Dst.
#[derive(Clone, Copy)]
pub(super) struct ElementModes {
    pub(super) broadcast_row: bool,
    pub(super) broadcast_column: bool,
    pub(super) add: bool,
}

/// Decoded faces of SrcA. Instructions that follow each other multiply by the same ones; what was
/// decoded is kept with what it was decoded from.
#[derive(Debug)]
pub(super) struct Faces([Face; ROWS / FACE]);

#[derive(Debug, Clone)]
struct Face {
    rows: [Row; FACE],
    style: Style,
    part: Part,
    factors: Factors,
}

impl Default for Faces {
    fn default() -> Self {
        let (rows, style, part) = ([[0; COLUMNS]; FACE], Style::Bf16, WHOLE);
        let factors = Factors::of(&decode(&rows, style, part));
        Self(std::array::from_fn(|_| Face { rows, style, part, factors: factors.clone() }))
    }
}

impl Faces {
    /// The decoded rows of SrcA from `row` on.
    #[inline]
    fn get(&mut self, row: usize, rows: &[Row; FACE], style: Style, part: Part) -> &Factors {
        let face = &mut self.0[row / FACE];
        if face.style != style || face.part != part || face.rows.as_flattened() != rows.as_flattened() {
            *face = Face { rows: *rows, style, part, factors: Factors::of(&decode(rows, style, part)) };
        }
        &face.factors
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

/// The groups of row `i` of a product, where f32 does not suffice.
#[cold]
fn exact_groups<const N: usize>(a: &[Row; FACE], b: &Numbers<N>, i: usize, (style, phase): (Style, u32)) -> [Group; 2] {
    let a = decode(a, style, part_a(phase));
    [0, FACE / 2].map(|first| Group::of_eight(&a, (&b.ints[i], &b.exps[i]), first, phase_exponent(phase)))
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
        if style != Style::Int8 && !on.flushes() {
            // The documents do not say what the chip does with them then (MVMUL.md).
            let rows: [Row; BLOCK] = take(on.src.0[B].rows(), at.b);
            if rows.iter().flatten().any(|x| x & 0xFF == 0 && x & 0x3_FF00 != 0) {
                return Err((FaultClass::MissingSpecification, "denormals of SrcB that are not flushed"));
            }
        }
        match shape {
            Product::Eight => self.product_of::<8>(on, (map, at), style, acc, 1),
            Product::Four => self.product_of::<4>(on, (map, at), style, acc, 1),
            Product::Broadcast => self.product_of::<1>(on, (map, at), style, acc, 4),
        }
        Ok(())
    }

    /// Each of `N` rows goes to `copies` rows of Dst; copies lie two rows apart.
    fn product_of<const N: usize>(
        &mut self,
        on: &mut Operands<'_>,
        (map, at): (RowMap, Place),
        style: Style,
        acc: Acc,
        copies: usize,
    ) {
        let a: [Row; FACE] = take(on.src.0[A].rows(), at.a);
        let b: [Row; N] = take(on.src.0[B].rows(), at.b);
        let row_of = |i: usize, copy: usize| (map, at.dst + i + 2 * copy);
        if style == Style::Int8 {
            let sums = multiply_ints(&b, &a, at.phase, on.flushes());
            for (i, sum) in sums.iter().enumerate() {
                (0..copies).for_each(|copy| on.accumulate_ints(row_of(i, copy), true, sum));
            }
            return;
        }
        let factors = self.faces.get(at.a, &a, style, part_a(at.phase));
        let b = decode(&b, style, part_b(at.phase));
        for i in 0..N {
            let groups = factors.groups((&b.ints[i], &b.exps[i]), phase_exponent(at.phase));
            let groups = groups.unwrap_or_else(|| exact_groups(&a, &b, i, (style, at.phase)));
            (0..copies).for_each(|copy| on.accumulate(row_of(i, copy), acc, true, &groups));
        }
    }
}

fn multiply_ints<const N: usize>(b: &[Row; N], a: &[Row; FACE], phase: u32, flush: bool) -> [Ints; N] {
    let [mask_a, mask_b] = int_masks(phase);
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
    pub(super) fn element_wise(&mut self, at: Place, what: Element, modes: ElementModes) -> Result<(), Refusal> {
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
        for i in 0..BLOCK {
            let (a, b) = ((&a.ints[i], &a.exps[i]), (&b.ints[i], &b.exps[i]));
            let group = match what {
                Element::Multiply => Group::of_products(a, b, less),
                Element::Add => Group::of_two(a, b, less),
                Element::Subtract => Group::of_two(a, (&b.0.map(|x| -x), b.1), less),
            };
            self.accumulate((map, at.dst + i), acc, modes.add, &[group]);
        }
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
