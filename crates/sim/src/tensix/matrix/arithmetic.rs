//! Matrix products: `MVMUL`, `DOTPV`, `GAPOOL`.
//!
//! Follows the instructions' pages in WormholeB0/TensixTile/TensixCoprocessor; how numbers are
//! added up is in `sum.rs`.

use super::factors::{Factors, Multipliers};
use super::format::{Acc, Ints, Style, decode, decode_int, part_a, part_b, phase_exponent};
use super::held::DstRows;
use super::narrow::multiply_bf16;
use super::setup::Modes;
use super::sum::{Group, add_by_chance, add_up, multiply};
use super::wide::multiply_fp32;
use super::{Matrix, Operands};
use crate::FaultClass;
use crate::tensix::config::Refusal;
use crate::tensix::dst::{COLUMNS, Row32};
use crate::tensix::src::{A, B, ROWS, Row, Src};
use tilework_abi::tensix::cfg;

/// Rows of SrcA that a matrix product takes.
const FACE: usize = 16;
/// Rows of SrcB that instructions take.
pub(super) const BLOCK: usize = 8;

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

/// Rows of a bank from `row` on, as they were at `version` of Src, and how they are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct From {
    version: u64,
    row: u16,
    style: Style,
    /// The second part of the mantissa.
    low: bool,
}

impl<T> Decoded<T> {
    /// `N` rows of `src`, decoded by `set`.
    #[inline]
    fn of<const N: usize>(&mut self, src: &Src, from: From, set: impl FnOnce(&mut T, &[Row; N])) -> &T {
        if self.from != Some(from) {
            let row = usize::from(from.row);
            match src.rows()[row..].first_chunk() {
                Some(rows) => set(&mut self.to, rows),
                None => set(&mut self.to, &take(src.rows(), row)),
            }
            self.from = Some(from);
        }
        &self.to
    }
}

/// `N` rows of `rows` from `first` on; they begin again after the last one.
#[inline]
pub(super) fn take<const N: usize>(rows: &[Row], first: usize) -> [Row; N] {
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
pub(super) fn int_masks(phase: u32) -> [u32; 2] {
    let a = if phase & 1 != 0 { 0x4_1FFF } else { 0x4_E0FF };
    let b = if phase & 2 != 0 { 0x4_0FFF } else { 0x7_F0FF };
    [a, b]
}

impl Matrix {
    /// `MVMUL`, `DOTPV`, `GAPOOL`.
    pub(super) fn product(&mut self, on: &mut Operands<'_>, at: Place, shape: Product) -> Result<(), Refusal> {
        let modes = self.setup.modes(on)?;
        let (count, step, stride) = match shape {
            Product::Eight => (8, 1, 1),
            Product::Four => (4, 1, 1),
            Product::Broadcast => (4, 0, 2),
        };
        let rows = DstRows { map: modes.map, first: at.dst, stride, count };
        if modes.style == Style::Int8 {
            let sums = multiply_ints(on, at, modes.flushes);
            for i in 0..count {
                on.dst.accumulate_ints((rows.map, at.dst + i * stride), true, &sums[i * step]);
            }
            return Ok(());
        }
        if !modes.flushes && have_denormals(on.src.0[B].rows(), at.b) {
            // The documents do not say what the chip does with them then (MVMUL.md).
            return Err((FaultClass::MissingSpecification, "denormals of SrcB that are not flushed"));
        }
        if modes.by_chance {
            let (acc, generators) = (modes.acc, &mut self.generators);
            multiply_exactly(on, at, modes, (rows, step), |groups, dst| {
                add_by_chance(groups, acc, dst, &generators.draw());
            });
        } else if !self.multiply(on, at, modes, (rows, step)) {
            multiply_exactly(on, at, modes, (rows, step), |groups, dst| add_up(groups, modes.acc, dst));
        }
        Ok(())
    }

    /// A product in numbers of f32, unless these do not suffice.
    fn multiply(&mut self, on: &mut Operands<'_>, at: Place, modes: Modes, (rows, step): (DstRows, usize)) -> bool {
        let [a, b] = &on.src.0;
        let (style, phase) = (modes.style, at.phase);
        let from = |src: &Src, row: usize, low| From { version: src.version(), row: row as u16, style, low };
        let faces = match &mut self.faces {
            Some(faces) => faces,
            none => none.insert(no_faces()),
        };
        let from_a = from(a, at.a, phase & 1 != 0);
        let a = faces.a[at.a / FACE].of(a, from_a, |to, rows| to.set(rows, style, part_a(phase)));
        let from_b = from(b, at.b, phase & 2 != 0);
        let b = faces.b[at.b / BLOCK].of(b, from_b, |to, rows| to.set(rows, style, part_b(phase)));
        let less = phase_exponent(phase);
        on.dst.on_rows(rows, modes.acc, |high, low| match modes.acc {
            Acc::Bf16 if step != 0 => multiply_bf16(a, b, less, high),
            Acc::Fp32 if step != 0 => multiply_fp32(a, b, less, high, low),
            acc => multiply((a, b), (step, less), acc, high, low),
        })
    }
}

/// Apart, because it takes much of the stack.
#[cold]
#[inline(never)]
fn no_faces() -> Box<Faces> {
    Box::default()
}

/// A product, where f32 does not suffice or sums are rounded by chance; `add` adds a row's groups.
#[cold]
fn multiply_exactly(
    on: &mut Operands<'_>,
    at: Place,
    Modes { style, acc, .. }: Modes,
    (rows, step): (DstRows, usize),
    mut add: impl FnMut(&[Group; 2], &mut Row32),
) {
    let a = decode::<FACE>(&take(on.src.0[A].rows(), at.a), style, part_a(at.phase));
    let b = decode::<BLOCK>(&take(on.src.0[B].rows(), at.b), style, part_b(at.phase));
    on.dst.on_bits(rows, acc, |dst| {
        for (i, dst) in dst.iter_mut().enumerate() {
            let b = (&b.ints[i * step], &b.exps[i * step]);
            let groups = [0, FACE / 2].map(|first| Group::of_eight(&a, b, first, phase_exponent(at.phase)));
            add(&groups, dst);
        }
    });
}

fn multiply_ints(on: &Operands<'_>, at: Place, flush: bool) -> [Ints; BLOCK] {
    let a: [Row; FACE] = take(on.src.0[A].rows(), at.a);
    let b: [Row; BLOCK] = take(on.src.0[B].rows(), at.b);
    let [mask_a, mask_b] = int_masks(at.phase);
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
}
