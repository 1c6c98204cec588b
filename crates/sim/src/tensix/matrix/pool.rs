//! `GMPOOL`: the largest datum of each column of a face of SrcA.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/GMPOOL.md.

use super::Operands;
use super::arithmetic::{Place, take};
use super::format::{Acc, Style};
use crate::FaultClass;
use crate::tensix::config::Refusal;
use crate::tensix::dst::{COLUMNS, Row32, RowMap};
use crate::tensix::src::{A, B, Row};
use multiversion::multiversion;

/// Rows of SrcA.
const FACE: usize = 16;
/// Rows of Dst that are written; all but the first one get zeros.
const WRITTEN: usize = 4;
/// What a cleared row of Dst holds here: minus infinity.
const CLEARED: u32 = u32::MAX;
/// What the index of each of the first eight rows becomes.
const INDICES: [u32; 8] = [0, 3, 6, 1, 4, 7, 2, 5];

/// `DstStyle`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bf16,
    Fp16,
    Tf32,
    Int32,
}

/// `Datum`: ten bits of mantissa or magnitude, nine of exponent, and the sign.
type Datum = u32;

const MAN: u32 = 0x3FF;
const EXP: u32 = 0x1FF;
const SIGN: u32 = 1 << 19;

#[inline(always)]
fn datum(sign: u32, exp: u32, man: u32) -> Datum {
    (sign & 1) << 19 | (exp & EXP) << 10 | man & MAN
}

/// `AsComparable`.
#[inline(always)]
fn comparable(x: Datum) -> i32 {
    let magnitude = (x & (SIGN - 1)).cast_signed();
    if x & SIGN != 0 { -magnitude } else { magnitude }
}

impl Kind {
    /// `ReadDst`, of a datum whose 16 bits are the high ones if Dst holds no more.
    fn read(self, x: u32) -> Datum {
        let sign = x >> 31;
        match self {
            Self::Int32 => datum(sign, (x >> 10 & 0x3F) | (x >> 24 & 7) << 6, x),
            Self::Fp16 => datum(sign, (x >> 16 & 0x1F) + 15, x >> 21),
            Self::Bf16 => datum(sign, (x >> 16 & 0xFF) + 127, (x >> 24 & 0x7F) << 3),
            Self::Tf32 => datum(sign, (x >> 16 & 0xFF) + 127, (x >> 24 & 0x7F) << 3 | x >> 13 & 7),
        }
    }

    /// `WriteDst`.
    fn write(self, x: Datum) -> u32 {
        let (sign, exp, man) = (x >> 19 << 31, x >> 10 & EXP, x & MAN);
        match self {
            Self::Int32 => sign | (exp & 7) << 10 | man,
            Self::Fp16 if exp & 0x3F == 0 => 0,
            Self::Fp16 => sign | man << 21 | (exp.wrapping_sub(15) & 0x1F) << 16,
            _ if exp == 0 => 0,
            _ => {
                let low = if self == Self::Tf32 { (man & 7) << 13 } else { 0 };
                sign | (man & 0x3F8) << 21 | (exp.wrapping_sub(127) & 0xFF) << 16 | low
            }
        }
    }
}

/// `ReadAndScaleSrc`: what of a datum's exponent and mantissa counts.
#[derive(Clone, Copy)]
struct Scaling {
    exp: u32,
    man: u32,
}

impl Scaling {
    fn of(style: Style) -> Self {
        match style {
            Style::Int8 => Self { exp: 0, man: MAN },
            Style::Fp16 => Self { exp: 0x1F, man: MAN },
            Style::Tf32 => Self { exp: 0xFF, man: MAN },
            Style::Bf16 => Self { exp: 0xFF, man: 0x3F8 },
        }
    }

    /// A datum scaled by the exponent `scale`.
    #[inline(always)]
    fn scaled(self, x: u32, scale: u32) -> Datum {
        let scaled = datum(x >> 18, (x & self.exp) + (scale & self.exp), x >> 8 & self.man);
        let scaled = if x & 0xFF == 0 { 0 } else { scaled };
        if scale == 0 { datum(1, EXP, MAN) } else { scaled }
    }
}

/// Which data are the largest of their columns, and the transformed indices of their rows.
#[derive(Clone, Copy)]
struct Largest {
    max: [Datum; COLUMNS],
    index: Row32,
}

/// Takes the rows of a face, of which `scales` has the exponents.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2"))]
fn take_rows(face: &[Row], scales: &Row, scaling: Scaling, phase: &Row32, to: &mut Largest) {
    for i in 0..face.len() {
        // The order matters for equal data only.
        let i = if i < INDICES.len() { i ^ 4 } else { i };
        let Some((row, &scale)) = face.get(i).zip(scales.get(i)) else { break };
        let (known, of_row) = INDICES.get(i).map_or((false, 0), |&index| (true, index));
        for j in 0..COLUMNS {
            let x = scaling.scaled(row[j], scale & 0xFF);
            let larger = comparable(x) >= comparable(to.max[j]);
            to.max[j] = if larger { x } else { to.max[j] };
            let index = ((phase[j] >> 4) + of_row) & 0xFF;
            to.index[j] = if larger & known { index } else { to.index[j] };
        }
    }
}

impl Operands<'_> {
    /// `GMPOOL`.
    pub(super) fn max_pool(&mut self, at: Place, arg_max: bool, mode: u32) -> Result<(), Refusal> {
        if mode == 0 {
            return Err((FaultClass::MissingSpecification, "GMPOOL of one row, which no document describes"));
        }
        let (style, acc) = self.arithmetic()?;
        let wide = matches!(acc, Acc::Fp32 | Acc::Int32);
        let kind = match (style, arg_max, wide) {
            (Style::Int8, ..) | (Style::Tf32, true, _) => Kind::Int32,
            (Style::Bf16, true, true) => Kind::Bf16,
            (Style::Fp16, true, true) => Kind::Fp16,
            (_, _, true) => Kind::Tf32,
            (Style::Fp16, _, false) => Kind::Fp16,
            (_, _, false) => Kind::Bf16,
        };
        let map = RowMap::of(self.config);
        let old = self.pooled(map, at.dst, wide);
        let phase = old.map(|x| x.wrapping_add(0x100) & 0xF00);
        let (max, index) = self.largest((old, phase), at, style, kind);
        let first = std::array::from_fn(|j| match (arg_max, kind) {
            (false, _) => kind.write(max[j]),
            (true, Kind::Int32) => phase[j] | index[j],
            (true, _) => kind.write(max[j]) | phase[j] | index[j],
        });
        for i in 0..WRITTEN {
            let row = match i {
                0 => first,
                _ if arg_max && wide => self.pooled(map, at.dst + i, wide).map(|x| x.wrapping_add(0x100) & 0xF00),
                _ => [0; COLUMNS],
            };
            if wide {
                self.dst.write32(map, at.dst + i, row);
            } else {
                self.dst.write16(map, at.dst + i, row.map(|x| (x >> 16) as u16));
            }
        }
        Ok(())
    }

    /// The largest data, and the transformed indices of their rows.
    fn largest(
        &self,
        (old, phase): (Row32, Row32),
        at: Place,
        style: Style,
        kind: Kind,
    ) -> ([Datum; COLUMNS], [u32; COLUMNS]) {
        let mut largest = Largest { max: old.map(|x| kind.read(x)), index: old.map(|x| x & 0xFF) };
        let face: [Row; FACE] = take(self.src.0[A].rows(), at.a);
        take_rows(&face, &self.src.0[B].rows()[at.b], Scaling::of(style), &phase, &mut largest);
        (largest.max, largest.index)
    }

    /// A row of Dst as `GMPOOL` reads it.
    fn pooled(&self, map: RowMap, row: usize, wide: bool) -> Row32 {
        let at = if wide { map.row32(row) } else { map.row16(row) };
        match (self.dst.is_valid(at), wide) {
            (false, true) => [CLEARED; COLUMNS],
            (false, false) => [CLEARED << 16; COLUMNS],
            (true, true) => self.dst.read32(map, row),
            (true, false) => self.dst.read16(map, row).map(|x| u32::from(x) << 16),
        }
    }
}
