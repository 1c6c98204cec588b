//! Moves between SrcA, SrcB and Dst, and rearrangements within SrcA and SrcB.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/{MOVA2D,MOVDBGA2D,MOVB2D,MOVD2A,MOVD2B,MOVB2A,
//! SHIFTXA,SHIFTXB,TRNSPSRCB,ZEROSRC}.md. `MOVDBGB2D` is to `MOVB2D` what `MOVDBGA2D` is to
//! `MOVA2D` (tt_llk_blackhole, `assembly.yaml`).

// Loops over columns of several arrays vectorise only with a counter.
#![expect(clippy::needless_range_loop)]

use super::Operands;
use super::format::{Style, TF32, src_of_dst_bf16, src_of_dst_fp16, style_of};
use crate::FaultClass;
use crate::tensix::config::Refusal;
use crate::tensix::dst::{COLUMNS, Row16, RowMap};
use crate::tensix::number::{dst_of_src_5_bit_exponent, dst_of_src_8_bit_exponent, src_of_tf32};
use crate::tensix::src::{A, B, ROWS, Row};
use multiversion::multiversion;
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::Zerosrc;

/// Rows of a face.
const FACE: usize = 16;
/// Minus infinity in SrcA: all bits set.
const NEGATIVE_INFINITY: u32 = 0x7_FFFF;

/// A move to Dst.
pub(super) struct ToDst {
    /// SrcA or SrcB.
    pub(super) from: usize,
    pub(super) src: usize,
    pub(super) dst: usize,
    pub(super) rows: usize,
    /// All rows of Dst get the same row.
    pub(super) broadcast_row: bool,
    /// All columns get the first one.
    pub(super) broadcast_column: bool,
    /// `UseDst32bLo`.
    pub(super) low: bool,
}

/// A move from Dst.
pub(super) struct FromDst {
    /// SrcA or SrcB.
    pub(super) to: usize,
    pub(super) src: usize,
    pub(super) dst: usize,
    pub(super) rows: usize,
    /// `UseDst32bLo`.
    pub(super) low: bool,
}

/// What a move writes to Dst.
#[derive(Clone, Copy)]
enum Written {
    /// Data of 16 bits.
    Narrow,
    /// Data of 32 bits that hold TF32.
    Tf32,
    /// The low halves of data of 32 bits.
    Low,
    /// Data of 32 bits that hold TF32, whose low halves have the high ones, too.
    Both,
}

/// How rows are moved to Dst.
#[derive(Clone, Copy)]
struct Moved {
    written: Written,
    wide_exponent: bool,
    /// Data without an exponent become zero.
    flush: bool,
    broadcast_column: bool,
}

/// Moves rows, or one to all, to high and low halves of rows of Dst.
#[multiversion(targets("x86_64+avx512f+fma", "x86_64+avx2"))]
fn move_rows(rows: &[Row], how: Moved, high: &mut [Row16], low: &mut [Row16]) {
    for (i, high) in high.iter_mut().enumerate() {
        let Some(row) = rows.get(if rows.len() == 1 { 0 } else { i }) else { break };
        let mut row = if how.broadcast_column { [row[0]; COLUMNS] } else { *row };
        let mut narrow = [0; COLUMNS];
        for j in 0..COLUMNS {
            row[j] = if how.flush & (row[j] & 0xFF == 0) { 0 } else { row[j] };
        }
        for j in 0..COLUMNS {
            let (wide_exponent, other) = (dst_of_src_8_bit_exponent(row[j]), dst_of_src_5_bit_exponent(row[j]));
            narrow[j] = if how.wide_exponent { wide_exponent } else { other };
        }
        if !matches!(how.written, Written::Low) {
            *high = narrow;
        }
        let Some(low) = low.get_mut(i) else { continue };
        // The three bits of a mantissa that a high half does not have.
        let (all, three) = match how.written {
            Written::Narrow => (0, 0),
            Written::Tf32 => (0, 7),
            Written::Low => (u16::MAX, 0),
            Written::Both => (u16::MAX, 7),
        };
        for j in 0..COLUMNS {
            low[j] = narrow[j] & all | ((row[j] >> 8 & three) << 13) as u16;
        }
    }
}

const UNDEFINED: FaultClass = FaultClass::UndefinedBehavior;

impl Operands<'_> {
    /// Copies columns of `new` that `BLOCK_DEST_MOV` does not block.
    fn unblocked<T: Copy>(&self, old: [T; COLUMNS], new: [T; COLUMNS]) -> [T; COLUMNS] {
        if self.blocked == 0 {
            return new;
        }
        std::array::from_fn(|i| if self.blocked >> i & 1 != 0 { old[i] } else { new[i] })
    }

    /// What a move to Dst writes, and whether with an exponent of eight bits.
    fn written(&self, from: usize, low: bool) -> Result<(Written, bool), Refusal> {
        self.no_forced_fp16()?;
        let fp32 = self.is_set(cfg::ALU_ACC_CTRL_FP32_ENABLED);
        let wide = fp32 || self.is_set(cfg::ALU_ACC_CTRL_INT8_MATH_ENABLED);
        // On Blackhole, SrcA counts as TF32 whenever Dst holds FP32. A move to the low halves then
        // writes both (MOVA2D.md has the formula; tt-llk's issue 449 saw it on hardware), unless
        // the kernel says by itself which format it is. tt-metal's kernels that widen UINT16 mask
        // the high half; those that divide BF16 take it for the number.
        let own = self.source_format(from);
        let implied = !self.is_set(cfg::DISABLE_IMPLIED_SRCA_FMT_BASE);
        if fp32 && low && implied && own != TF32 {
            return Ok((Written::Both, true));
        }
        let format = if fp32 && !low { TF32 } else { own };
        let wide_exponent = wide || style_of(format)? != Style::Fp16;
        match (format == TF32, low) {
            (true, true) => Err((UNDEFINED, "a move of TF32 to the low half of Dst")),
            (true, false) if wide => Ok((Written::Tf32, wide_exponent)),
            // Kernels that transpose data of 32 bits write low halves with `Fp32_enabled` off. The
            // page's objection is to which row counts as valid then, and theirs are valid before.
            (false, true) => Ok((Written::Low, wide_exponent)),
            (false, false) if !wide => Ok((Written::Narrow, wide_exponent)),
            _ => Err((UNDEFINED, "a move to Dst of another width than the configuration's")),
        }
    }

    /// `MOVA2D`, `MOVDBGA2D`, `MOVB2D`, `MOVDBGB2D`.
    pub(super) fn move_to_dst(&mut self, what: &ToDst) -> Result<(), Refusal> {
        let (written, wide_exponent) = self.written(what.from, what.low)?;
        let map = RowMap::of(self.config);
        let flush = self.flushes();
        let rows = self.src.0[what.from].rows();
        if self.blocked == 0
            && let Some(rows) = rows.get(what.src..what.src + if what.broadcast_row { 1 } else { what.rows })
        {
            let to = match written {
                Written::Narrow => self.dst.narrow_rows(map, what.dst, what.rows).map(|high| (high, &mut [][..])),
                _ => self.dst.wide_rows(map, what.dst, what.rows),
            };
            if let Some((high, low)) = to {
                let moved = Moved { written, wide_exponent, flush, broadcast_column: what.broadcast_column };
                move_rows(rows, moved, high, low);
                return Ok(());
            }
        }
        for i in 0..what.rows {
            let step = if what.broadcast_row { 0 } else { i };
            let mut row = self.src.0[what.from].rows()[(what.src + step) % ROWS];
            if what.broadcast_column {
                row = [row[0]; COLUMNS];
            }
            if flush {
                row = row.map(|x| if x & 0xFF == 0 { 0 } else { x });
            }
            let narrow = match wide_exponent {
                true => row.map(dst_of_src_8_bit_exponent),
                false => row.map(dst_of_src_5_bit_exponent),
            };
            self.write_moved((map, what.dst + i), written, &row, narrow);
        }
        Ok(())
    }

    fn write_moved(&mut self, (map, at): (RowMap, usize), written: Written, row: &Row, narrow: [u16; COLUMNS]) {
        match written {
            Written::Narrow => {
                let new = self.unblocked(self.dst.read16(map, at), narrow);
                self.dst.write16(map, at, new);
            }
            Written::Tf32 => {
                let new = std::array::from_fn(|i| u32::from(narrow[i]) << 16 | (row[i] >> 8 & 7) << 13);
                let new = self.unblocked(self.dst.read32(map, at), new);
                self.dst.write32(map, at, new);
            }
            Written::Both => {
                let both = |i: usize| u32::from(narrow[i]) << 16 | u32::from(narrow[i]);
                let new = std::array::from_fn(|i| both(i) | (row[i] >> 8 & 7) << 13);
                let new = self.unblocked(self.dst.read32(map, at), new);
                self.dst.write32(map, at, new);
            }
            Written::Low => {
                let old = self.dst.read32(map, at);
                let new = std::array::from_fn(|i| old[i] & 0xFFFF_0000 | u32::from(narrow[i]));
                let new = self.unblocked(old, new);
                self.dst.write32(map, at, new);
            }
        }
    }

    /// `MOVD2A`, `MOVD2B`.
    pub(super) fn move_from_dst(&mut self, what: &FromDst) -> Result<(), Refusal> {
        let forced = self.is_set(cfg::FP16A_FORCE_ENABLE);
        let wide = self.is_set(cfg::ALU_ACC_CTRL_FP32_ENABLED) || self.is_set(cfg::ALU_ACC_CTRL_INT8_MATH_ENABLED);
        let wide = wide && !forced;
        let style = if forced { Style::Fp16 } else { style_of(self.source_format(what.to))? };
        if !wide && what.low {
            return Err((UNDEFINED, "a move of the low half of data of 16 bits"));
        }
        if !wide && style == Style::Tf32 {
            return Err((UNDEFINED, "a move of TF32 from data of 16 bits"));
        }
        let map = RowMap::of(self.config);
        for i in 0..what.rows {
            let new = self.read_moved((map, what.dst + i), wide, style, what.low);
            let at = (what.src + i) % ROWS;
            let old = self.src.0[what.to].rows()[at];
            let new = self.unblocked(old, new);
            self.src.0[what.to].rows_mut()[at] = new;
        }
        Ok(())
    }

    fn read_moved(&self, (map, at): (RowMap, usize), wide: bool, style: Style, low: bool) -> Row {
        if wide && style == Style::Tf32 {
            // The datum's layout is that of a number with sign, exponent and mantissa.
            return self.dst.read32(map, at).map(|x| match low {
                true => x & 0x1FFF,
                false => src_of_tf32(crate::tensix::number::fp32_of_dst(x) >> 13),
            });
        }
        let narrow = match (wide, low) {
            (false, _) => self.dst.read16(map, at),
            (true, true) => self.dst.read32(map, at).map(|x| x as u16),
            (true, false) => self.dst.read32(map, at).map(|x| (x >> 16) as u16),
        };
        match style {
            Style::Fp16 => narrow.map(src_of_dst_fp16),
            _ => narrow.map(src_of_dst_bf16),
        }
    }

    /// `MOVB2A`: `rows` rows of SrcB from `from` on.
    pub(super) fn move_b_to_a(&mut self, from: usize, to: usize, rows: usize) {
        let flush = self.flushes();
        for i in 0..rows {
            let new = self.src.0[B].rows()[(from + i) % ROWS];
            let new = new.map(|x| if flush && x & 0xFF == 0 { 0 } else { x });
            let at = (to + i) % ROWS;
            let new = self.unblocked(self.src.0[A].rows()[at], new);
            self.src.0[A].rows_mut()[at] = new;
        }
    }

    /// `TRNSPSRCB`: rows 16 to 31.
    pub(super) fn transpose_b(&mut self) {
        let face = &mut self.src.0[B].rows_mut()[FACE..2 * FACE];
        let old: [Row; FACE] = std::array::from_fn(|i| face[i]);
        for (j, row) in face.iter_mut().enumerate() {
            *row = old.map(|row| row[j]);
        }
    }

    /// `SHIFTXA`: the 16 rows from `from` on, to the first ones.
    pub(super) fn shift_a(&mut self, from: usize, direction: u32) -> Result<(), Refusal> {
        let rows = self.src.0[A].rows_mut();
        for i in 0..FACE {
            let row = rows[from + i];
            rows[i] = match direction {
                2 => std::array::from_fn(|j| if j == 0 { 0 } else { row[j - 1] }),
                3 => std::array::from_fn(|j| row.get(j + 1).copied().unwrap_or(0)),
                _ => return Err((FaultClass::MissingSpecification, "SHIFTXA in a reserved direction")),
            };
        }
        Ok(())
    }

    /// `SHIFTXB`. The page's loop stops one column short of its diagram and of its summary, which
    /// hold here.
    pub(super) fn shift_b(&mut self, at: usize, shift_in_zero: bool) {
        let row = &mut self.src.0[B].rows_mut()[at];
        row.rotate_left(1);
        if shift_in_zero {
            row[COLUMNS - 1] = 0;
        }
    }

    /// `ZEROSRC`.
    pub(super) fn zero_src(&mut self, insn: Zerosrc) {
        for which in (0..2).filter(|i| insn.src_mask() >> i & 1 != 0) {
            let value = if which == A && insn.negative_inf_src_a() { NEGATIVE_INFINITY } else { 0 };
            let src = &mut self.src.0[which];
            let rows = match (insn.both_banks(), insn.single_bank_matrix_unit()) {
                (true, _) => src.all_mut(),
                (false, true) => src.rows_mut(),
                (false, false) => src.unpacked_mut(),
            };
            rows.fill([value; COLUMNS]);
        }
    }
}

#[cfg(test)]
#[path = "move_tests.rs"]
mod tests;
