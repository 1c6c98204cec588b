//! Matrix products and element-wise arithmetic: `MVMUL`, `DOTPV`, `GAPOOL`, `ELWMUL`, `ELWADD`,
//! `ELWSUB`.
//!
//! Follows the instructions' pages in WormholeB0/TensixTile/TensixCoprocessor, which call their
//! models of floating-point arithmetic rough guides.

use super::format::{Acc, Floats, Ints, Part, Style, Wides, decode, decode_int, decode_wide, part_a, part_b};
use super::{Matrix, Operands};
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
    values: [Floats; FACE],
}

impl Default for Faces {
    fn default() -> Self {
        let (rows, values) = ([[0; COLUMNS]; FACE], [[0.0; COLUMNS]; FACE]);
        Self(std::array::from_fn(|_| Face { rows, style: Style::Bf16, part: Part::All, values }))
    }
}

impl Faces {
    /// The decoded rows of SrcA from `row` on.
    #[inline]
    fn get(&mut self, row: usize, rows: &[Row; FACE], style: Style, part: Part) -> &[Floats; FACE] {
        let face = &mut self.0[row / FACE];
        if face.style != style || face.part != part || face.rows.as_flattened() != rows.as_flattened() {
            *face = Face { rows: *rows, style, part, values: decode(rows, style, part) };
        }
        &face.values
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

/// The product of `b` and `a`. Products are exact, and added up from first to last.
#[inline]
fn multiply<const N: usize>(b: &[Floats; N], a: &[Floats; FACE]) -> [Floats; N] {
    let mut out = [[0.0; COLUMNS]; N];
    // Two rows at a time fit into the registers of the machine.
    for (out, b) in out.chunks_mut(2).zip(b.chunks(2)) {
        let (first, last) = (0, b.len() - 1);
        let mut sums = [[0.0; COLUMNS]; 2];
        for (k, a) in a.iter().enumerate() {
            let (x, y) = (b[first][k], b[last][k]);
            for (j, a) in a.iter().enumerate() {
                sums[0][j] += x * a;
                sums[1][j] += y * a;
            }
        }
        for (out, sums) in out.iter_mut().zip(sums) {
            *out = sums;
        }
    }
    out
}

/// One row of a product, where f32 does not suffice.
#[cold]
fn multiply_wide(b: &Row, a: &[Row; FACE], style: Style, phase: u32) -> Wides {
    let b = decode_wide(b, style, part_b(phase));
    let mut sums = [0.0; COLUMNS];
    for (b, a) in b.into_iter().zip(a) {
        let a = decode_wide(a, style, part_a(phase));
        sums.iter_mut().zip(a).for_each(|(sum, a)| *sum += b * a);
    }
    sums
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
        let a_values = self.faces.get(at.a, &a, style, part_a(at.phase));
        let sums = multiply(&decode(&b, style, part_b(at.phase)), a_values);
        for (i, sum) in sums.iter().enumerate() {
            for copy in 0..copies {
                let exact = || multiply_wide(&b[i], &a, style, at.phase);
                on.accumulate(row_of(i, copy), acc, true, sum, exact);
            }
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
            _ => (Part::All, Part::All),
        };
        let (a, b) = (decode(&rows, style, parts.0), decode(&others, style, parts.1));
        for i in 0..BLOCK {
            let result = what.of_rows(&a[i], &b[i], at.phase);
            let exact = || {
                let (a, b) = (decode_wide(&rows[i], style, parts.0), decode_wide(&others[i], style, parts.1));
                std::array::from_fn(|j| what.of_wides(a[j], b[j]) * f64::from(what.scale(at.phase)))
            };
            self.accumulate((map, at.dst + i), acc, modes.add, &result, exact);
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
    /// What sums and differences are multiplied by in a fidelity phase (ELWADD.md).
    fn scale(self, phase: u32) -> f32 {
        match (self, phase) {
            (Self::Multiply, _) | (_, 0) => 1.0,
            (_, 1) => 1.0 / 32.0,
            (_, 2) => 1.0 / 128.0,
            _ => 1.0 / 4096.0,
        }
    }

    #[inline]
    fn of_rows(self, a: &Floats, b: &Floats, phase: u32) -> Floats {
        match self {
            Self::Multiply => std::array::from_fn(|j| a[j] * b[j]),
            Self::Add => std::array::from_fn(|j| (a[j] + b[j]) * self.scale(phase)),
            Self::Subtract => std::array::from_fn(|j| (a[j] - b[j]) * self.scale(phase)),
        }
    }

    fn of_wides(self, a: f64, b: f64) -> f64 {
        match self {
            Self::Multiply => a * b,
            Self::Add => a + b,
            Self::Subtract => a - b,
        }
    }

    fn of_ints(self, a: i32, b: i32) -> i32 {
        match self {
            Self::Multiply => a * b,
            Self::Add => a + b,
            Self::Subtract => a - b,
        }
    }
}
