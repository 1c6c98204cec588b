//! What a `PACR` reads: rows of Dst, by read interface.
//!
//! Follows BlackholeA0/TensixTile/TensixCoprocessor/PACR.md, "Dst read interfaces", and
//! WormholeB0/TensixTile/TensixCoprocessor/Packers/InputAddressGenerator.md.

use super::plan::Plan;
use crate::Cycle;
use crate::FaultClass::{UndefinedBehavior, UnimplementedFunctionality};
use crate::tensix::config::Refusal;
use crate::tensix::counters::PackerCounters;
use crate::tensix::dst::{COLUMNS, Dst};
use tilework_abi::tensix::insn::Pacr;

/// Read interfaces of Dst.
pub(super) const INTERFACES: usize = 4;
/// All of them.
const ALL: u32 = (1 << INTERFACES) - 1;
/// From a row to the one that the next interface reads in the strided mode.
const STRIDE: usize = 16;

/// What a `PACR` reads.
pub(super) struct Input {
    /// Rows of Dst, by read interface; `None`: zeros.
    pub(super) rows: [Option<usize>; INTERFACES],
    /// How many of these.
    pub(super) count: usize,
    /// The first column, and how many.
    pub(super) column: usize,
    pub(super) width: usize,
    /// The rows need not lie in one block of Dst.
    pub(super) is_strided: bool,
}

/// Which read interfaces are enabled, at row `y` of an xy plane.
fn interfaces(plan: &Plan, insn: Pacr, y: u8) -> u32 {
    let mask = if insn.read_intf_sel() == 0 { ALL } else { insn.read_intf_sel() };
    // For the last instruction of a plane hardware takes what is left of it (PACR.md, the tip).
    match plan.reads_per_plane.checked_sub(y.into()) {
        Some(left) if plan.limits_last && left != 0 && left <= mask.count_ones() => (1 << left) - 1,
        _ => mask,
    }
}

impl Input {
    /// What `insn` reads with these counters at row `y` of an xy plane, if `offset` is what the
    /// configuration adds to its address.
    pub(super) fn of(plan: &Plan, insn: Pacr, counters: PackerCounters, y: u8, offset: u32) -> Result<Self, Refusal> {
        let is_strided = insn.dst_access_mode();
        let mut input = Self { rows: [None; INTERFACES], count: 0, column: 0, width: 0, is_strided };
        if insn.flush() {
            return Ok(input);
        }
        let x = counters.src[0];
        let bytes = plan.src.address(counters.src).wrapping_add(x.wrapping_mul(plan.x_stride));
        let fine = [0xF, 0xF, 0x7, 0, 0x3][plan.datum_bytes as usize];
        let at = ((bytes / plan.datum_bytes) & !fine).wrapping_add(x & fine).wrapping_add(offset);
        let (first, column) = (at as usize >> 4 & 0x3FF, at as usize & 0xF);
        let width =
            (counters.dst[0] + 1).checked_sub(x).filter(|&width| width != 0 && column + width as usize <= COLUMNS);
        let Some(width) = width else {
            return Err((UndefinedBehavior, "X counters that do not name columns of one row"));
        };
        (input.column, input.width) = (column, width as usize);
        let mask = interfaces(plan, insn, y);
        let step = if is_strided { STRIDE } else { 1 };
        if is_strided && !plan.can_stride {
            return Err((UnimplementedFunctionality, "the strided mode without swizzle_32b, which is not documented"));
        }
        if !is_strided && mask << (first & 3) > ALL {
            return Err((UndefinedBehavior, "read interfaces outside a group of four rows of Dst"));
        }
        // The page writes rows of the group, and that the mask is relative to the first row;
        // kernels that pack one row after the other with one interface need the latter.
        let row = |i: usize| (!insn.zero_write()).then_some(first + i * step);
        if mask == ALL {
            (input.rows, input.count) = ([0, 1, 2, 3].map(row), INTERFACES);
        } else {
            for i in (0..INTERFACES).filter(|i| mask >> i & 1 != 0) {
                input.rows[input.count] = row(i);
                input.count += 1;
            }
        }
        Ok(input)
    }

    /// The first cycle in which all rows can be read.
    #[inline]
    pub(super) fn readable(&self, dst: &Dst) -> Cycle {
        match self.rows[0] {
            Some(row) if !self.is_strided => dst.readable(row),
            _ => self.rows.iter().flatten().map(|row| dst.readable(*row)).max().unwrap_or(0),
        }
    }

    /// How many data of each row are packed.
    pub(super) fn packed(&self, plan: &Plan) -> Result<usize, Refusal> {
        let mask = ((1u32 << self.width) - 1) & u32::from(plan.downsample);
        if plan.downsample != 0xFFFF && self.width != COLUMNS && self.count > 1 {
            return Err((UnimplementedFunctionality, "downsampling of parts of rows, which is not documented"));
        }
        Ok(mask.count_ones() as usize)
    }
}
