//! `ZEROACC`: rows of Dst become undefined.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/ZEROACC.md. On Blackhole, a block of 16 rows is
//! one of the half of Dst that the thread writes, unless `zeroacc_absolute_tile_mode` is set; rows
//! are where `remap_addrs` and `swizzle_32b` put them, as for all other instructions; and kernels rely
//! on `Revert` (tt_llk_blackhole: `hal/cfg/global.h`, `llk_math_eltwise_binary.h`,
//! `llk_math_eltwise_unary_datacopy.h`).

use super::{Matrix, Operands};
use crate::FaultClass;
use crate::tensix::config::Refusal;
use crate::tensix::dst::{ROWS, RowMap};
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::Zeroacc;

/// Rows of a block.
const BLOCK: usize = 16;
/// Rows of a half of Dst.
const HALF: usize = ROWS / 2;

impl Matrix {
    /// `ZEROACC`.
    pub(super) fn zero_acc(&mut self, on: &mut Operands<'_>, insn: Zeroacc) -> Result<(), Refusal> {
        let at = insn.imm10() as usize;
        let set = |on: &mut Operands<'_>, row: usize| match insn.revert() {
            true => on.dst.revert_clear_of(row),
            false => on.dst.clear(row),
        };
        match insn.mode() {
            0 => {
                let map = RowMap::of(on.config);
                let wide = on.is_set(cfg::ALU_ACC_CTRL_FP32_ENABLED) || on.is_set(cfg::ALU_ACC_CTRL_INT8_MATH_ENABLED);
                let row = self.dst_row(on, at as u32);
                set(on, if wide { map.row32(row) } else { map.row16(row) });
            }
            1 => {
                if let Some(first) = self.block(on, at & 0xFF, insn.use_dst32b())? {
                    // As sixteen instructions for one row would (tt_llk_blackhole:
                    // `llk_math_eltwise_binary.h`, `zeroacc_face_by_row`).
                    let map = RowMap::of(on.config);
                    let row =
                        |i: usize| if insn.use_dst32b() { map.row32(first / 2 + i) } else { map.row16(first + i) };
                    (0..BLOCK).for_each(|i| set(on, row(i)));
                }
            }
            2 => on.dst.clear_part((at & 1) * HALF, HALF, insn.revert()),
            _ => on.dst.clear_part(0, ROWS, insn.revert()),
        }
        if insn.mode() < 2 {
            self.rwcs[on.thread].apply(on.config, on.thread, insn.addr_mod());
        }
        Ok(())
    }

    /// The first row of block `block`, counted in rows of 16 bits; `None`: there is no such block, and nothing
    /// happens.
    fn block(&self, on: &Operands<'_>, block: usize, wide: bool) -> Result<Option<usize>, Refusal> {
        let rows = if wide { 2 * BLOCK } else { BLOCK };
        if block * rows >= ROWS {
            return Ok(None);
        }
        let relative = on.config.global(cfg::DEST_ACCESS_CFG_ZEROACC_ABSOLUTE_TILE_MODE) == 0;
        let half = self.dst_row(on, block as u32) / HALF;
        if !relative || half == 0 {
            return Ok(Some(block * rows));
        }
        if block * rows >= HALF {
            return Err((FaultClass::MissingSpecification, "ZEROACC of a block that its half of Dst does not have"));
        }
        Ok(Some(HALF + block * rows))
    }
}
