//! The math thread: SrcA and SrcB to Dst.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/MatrixUnit.md and the pages of its instructions.

use crate::addr_mod::{AddrMod, Step};
use crate::format::Format;
use crate::mop::{self, Mop};
use crate::push::{Word, block, push, set, stall, until};
use crate::sfpu::{Statistic, Unary};
use crate::sync::{DST_FREE, DST_TAKEN, MATH_PACK, While};
use crate::transpose;
use crate::{Binary, Broadcast, Fidelity, Pool, Reduce, ttinsn};
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{
    Elwadd, Elwmul, Elwsub, Gapool, Gmpool, Mova2d, Movb2a, Movd2b, Mvmul, Replay, Setrwc, Trnspsrcb, Zeroacc, Zerosrc,
};

/// Halves of Dst, and rows of one.
const HALVES: u32 = 2;
pub(crate) const HALF: u32 = 512;
/// Rows of Dst that a tile takes, also with elements of 32 bits (Dst.md).
pub(crate) const TILE_ROWS: u32 = 64;
/// Rows that an instruction of the matrix unit works on.
const ROWS: u32 = 8;
/// Passes of eight rows over a face; faces of a tile.
const PASSES: u32 = 2;
const FACES: u32 = 4;
/// `clear_dvalid`: the banks that go back to the unpackers.
const FREE_A: u32 = 1;
const FREE_B: u32 = 2;
/// `ZEROACC`: a row, all of Dst.
const ONE_ROW: u32 = 0;
const ALL_OF_DST: u32 = 3;

const ZERO_DST: u32 = Zeroacc::build().mode(ALL_OF_DST).word();
/// All counters to zero.
const RESET: u32 = Setrwc::build().fidelity(true).dst(true).src_b(true).src_a(true).word();
const RESET_DST: u32 = Setrwc::build().dst(true).word();
/// Gives banks back and sets the counters of both sources, and their copies, to zero.
const fn free(banks: u32) -> u32 {
    Setrwc::build().clear_dvalid(banks).src_b_cr(true).src_a_cr(true).src_b(true).src_a(true).word()
}
/// Gives banks back and sets all counters to zero.
const fn free_and_reset(banks: u32) -> u32 {
    Setrwc::build().clear_dvalid(banks).fidelity(true).dst(true).src_b(true).src_a(true).word()
}
/// Only gives banks back.
const fn free_only(banks: u32) -> u32 {
    Setrwc::build().clear_dvalid(banks).word()
}

/// The word of an element-wise instruction.
const fn element_wise(op: Binary, broadcast: Broadcast, banks: u32, addr_mod: u32) -> u32 {
    let row = matches!(broadcast, Broadcast::Row | Broadcast::Scalar);
    let column = matches!(broadcast, Broadcast::Column | Broadcast::Scalar);
    macro_rules! word {
        ($insn:ident) => {
            $insn::build()
                .clear_dvalid(banks)
                .broadcast_src_b_row(row)
                .broadcast_src_b_col0(column)
                .addr_mod(addr_mod)
                .word()
        };
    }
    match op {
        Binary::Add => word!(Elwadd),
        Binary::Subtract => word!(Elwsub),
        Binary::Multiply => word!(Elwmul),
    }
}

/// The matrix unit's state.
#[derive(Default)]
pub(crate) struct MathUnit {
    half: u32,
    wide: bool,
    /// Type of what comes in SrcA.
    a: Format,
    /// How often the program runs for a tile.
    runs: u32,
    broadcast: Broadcast,
    /// Copies come from the unpacker.
    from_unpacker: bool,
}

impl MathUnit {
    /// Everything that does not depend on the operation. `wide`: Dst has elements of 32 bits.
    pub(crate) fn configure(&mut self, a: Format, b: Format, wide: bool) {
        Word::of(cfg::CFG_STATE_ID_STATEID, 0).write();
        ttinsn!(MATH_PACK.init(0, HALVES));
        ttinsn!(DST_FREE.init(0, 1));
        ttinsn!(stall(block::CFG, until::MATH | until::SFPU));
        set(cfg::DEST_ACCESS_CFG_ZEROACC_ABSOLUTE_TILE_MODE, 0);
        set(cfg::DEST_ACCESS_CFG_REMAP_ADDRS, 0);
        set(cfg::DEST_ACCESS_CFG_SWIZZLE_32B, 0);
        // What one instruction sets of a word of flags that others share.
        set(cfg::ALU_ACC_CTRL_FP32_ENABLED, wide.into());
        set(cfg::ALU_ACC_CTRL_SFPU_FP32_ENABLED, wide.into());
        set(cfg::ALU_FORMAT_SPEC_REG_SRCA_OVERRIDE, 0);
        set(cfg::ALU_FORMAT_SPEC_REG_SRCB_OVERRIDE, 0);
        set(cfg::ALU_FORMAT_SPEC_REG_DSTACC_OVERRIDE, 0);
        set(cfg::ALU_ROUNDING_MODE_FPU_SRND_EN, 0);
        set(cfg::ALU_ROUNDING_MODE_GASKET_SRND_EN, 0);
        set(cfg::ALU_ROUNDING_MODE_PACKER_SRND_EN, 0);
        set(cfg::ALU_ACC_CTRL_ZERO_FLAG_DISABLED_DST, 0);
        *self = Self { wide, runs: 1, ..Self::default() };
        self.formats(a, b);
        Word::of(cfg::CLR_DVALID_SRCA_DISABLE, 0).write();
        Word::of(cfg::DEST_TARGET_REG_CFG_MATH_OFFSET, 0).write();
        Word::of(cfg::FIDELITY_BASE_PHASE, 0).write();
        ttinsn!(stall(block::MATH, until::CFG));
        ttinsn!(RESET);
        ttinsn!(ZERO_DST);
    }

    /// What depends on the types of SrcA and SrcB: whether the matrix unit calculates with
    /// integers of eight bits, and whether a move keeps all of 16 opaque bits (SrcASrcB.md).
    fn formats(&mut self, a: Format, b: Format) {
        set(cfg::ALU_ACC_CTRL_INT8_MATH_ENABLED, (a.is_int8() || b.is_int8()).into());
        set(cfg::ALU_ACC_CTRL_ZERO_FLAG_DISABLED_SRC, (a == Format::UInt16).into());
        self.a = a;
    }

    /// Changes the types of SrcA and SrcB when the units are done.
    pub(crate) fn reconfigure(&mut self, a: Format, b: Format) {
        ttinsn!(stall(block::CFG, until::MATH | until::SFPU));
        self.formats(a, b);
        ttinsn!(stall(block::MATH | block::SFPU, until::CFG));
    }

    /// Waits for a free half of Dst.
    #[inline(always)]
    pub(crate) fn acquire(&self) {
        ttinsn!(MATH_PACK.wait(block::MATH | block::SFPU | block::SYNC, While::Full));
    }

    /// Hands the half of Dst over when it is computed, and goes to the other.
    #[inline(always)]
    pub(crate) fn commit(&mut self) {
        ttinsn!(stall(block::SYNC, until::MATH | until::SFPU));
        ttinsn!(MATH_PACK.post());
        self.half = HALF - self.half;
    }

    /// The tile of the half on which the next instructions work.
    #[inline(always)]
    pub(crate) fn at_tile(&self, tile: u32) {
        Word::of(cfg::DEST_TARGET_REG_CFG_MATH_OFFSET, self.half + tile * TILE_ROWS).write();
    }

    /// Prepares `A op B`.
    pub(crate) fn init_binary(&mut self, op: Binary, broadcast: Broadcast, fidelity: Fidelity) {
        let phases = if op == Binary::Multiply { fidelity.phases() } else { 1 };
        let b = match broadcast {
            Broadcast::None | Broadcast::Column => Step::by(ROWS),
            Broadcast::Row | Broadcast::Scalar => Step::by(0),
        };
        AddrMod { a: Step::by(ROWS), b, dst: Step::by(ROWS), ..AddrMod::default() }.set(0);
        let back = AddrMod { a: Step::clear(), b: Step::clear(), ..AddrMod::default() };
        AddrMod { dst: Step::copy(0), fidelity: Step::by(1), ..back }.set(2);
        AddrMod { dst: Step::by(ROWS), dst_to_copy: true, fidelity: Step::clear(), ..back }.set(3);
        // What stays for several faces is given back outside of the program.
        let kept = matches!(broadcast, Broadcast::Column | Broadcast::Scalar);
        let banks = if kept { FREE_A } else { FREE_A | FREE_B };
        let faces = if broadcast == Broadcast::Column { FACES / 2 } else { FACES };
        let insn = element_wise(op, broadcast, 0, 0);
        if phases == 1 {
            Mop::new(faces, PASSES, insn).end(free(banks)).program();
            self.runs = 1;
        } else {
            Mop::new(phases, PASSES, insn)
                .last_inner(element_wise(op, broadcast, 0, 2))
                .last_outer(element_wise(op, broadcast, banks, 3))
                .program();
            self.runs = faces;
        }
        self.broadcast = broadcast;
        ttinsn!(RESET);
    }

    /// Computes a tile.
    #[inline(always)]
    pub(crate) fn binary(&self, tile: u32) {
        self.at_tile(tile);
        let rows_of_faces = if self.broadcast == Broadcast::Column { 2 } else { 1 };
        for _ in 0..rows_of_faces {
            for _ in 0..self.runs {
                mop::run();
            }
            if matches!(self.broadcast, Broadcast::Column | Broadcast::Scalar) {
                ttinsn!(free_only(FREE_B));
            }
        }
        ttinsn!(RESET_DST);
    }

    /// Prepares copies of tiles of this format.
    pub(crate) fn init_copy_of(&mut self, format: Format) {
        self.from_unpacker = format.goes_to_dst(self.wide);
        if !self.from_unpacker {
            self.init_copy(false);
        }
    }

    /// Prepares copies of SrcA to Dst. `at_once`: the unpacker brings a tile in one go.
    pub(crate) fn init_copy(&mut self, at_once: bool) {
        AddrMod { a: Step::by(ROWS), b: Step::default(), dst: Step::by(ROWS), ..AddrMod::default() }.set(2);
        self.from_unpacker = false;
        // A move would cut what is wider than Dst's 16 bits; a sum with zero keeps it. Opaque bits
        // are moved only, to the upper halves of a wide Dst.
        let insn = if self.wide && self.a != Format::UInt16 {
            Elwadd::build().addr_mod(2).word()
        } else {
            Mova2d::build().addr_mod(2).move_8_rows(true).word()
        };
        // Faces come one by one, or all in one bank of SrcA.
        let (faces, passes) = if at_once { (1, FACES * PASSES) } else { (FACES, PASSES) };
        Mop::new(faces, passes, insn).end(free_both_sources()).program();
        ttinsn!(RESET);
    }

    /// Lets the packer read rows of Dst that are 16 apart, which changes where they lie: nothing
    /// may be in Dst.
    pub(crate) fn strided_dst(&self) {
        ttinsn!(stall(block::CFG, until::MATH | until::SFPU));
        set(cfg::DEST_ACCESS_CFG_REMAP_ADDRS, 1);
        set(cfg::DEST_ACCESS_CFG_SWIZZLE_32B, 1);
        ttinsn!(stall(block::MATH, until::CFG));
    }

    /// Copies a tile.
    #[inline(always)]
    pub(crate) fn copy(&self, tile: u32) {
        if self.from_unpacker {
            ttinsn!(stall(block::SYNC, until::MATH | until::SFPU));
            ttinsn!(DST_FREE.post());
            ttinsn!(DST_TAKEN.wait(block::MATH | block::SFPU | block::SYNC, While::Zero));
            ttinsn!(DST_TAKEN.get());
            return;
        }
        self.at_tile(tile);
        mop::run();
        ttinsn!(RESET_DST);
    }

    /// Prepares products of tiles: Dst += SrcB x SrcA.
    pub(crate) fn init_matmul(&mut self, fidelity: Fidelity, transpose: bool) {
        matmul_addr_mods(transpose, fidelity.phases() > 1);
        const fn mvmul(banks: u32, addr_mod: u32) -> u32 {
            Mvmul::build().clear_dvalid(banks).addr_mod(addr_mod).word()
        }
        // The sixteen instructions of a tile: faces of B by those of A, two passes for each.
        ttinsn!(Replay::build().index(REPLAY).count(REPLAY_WORDS).load(true).word());
        ttinsn!(mvmul(0, 0));
        ttinsn!(mvmul(0, 1));
        ttinsn!(mvmul(0, 0));
        ttinsn!(mvmul(0, 2));
        ttinsn!(mvmul(0, 0));
        ttinsn!(mvmul(0, 1));
        ttinsn!(mvmul(0, 0));
        ttinsn!(mvmul(0, 4));
        ttinsn!(mvmul(0, 0));
        ttinsn!(mvmul(0, 1));
        ttinsn!(mvmul(0, 0));
        ttinsn!(mvmul(0, 2));
        ttinsn!(mvmul(0, 0));
        ttinsn!(mvmul(0, 1));
        ttinsn!(mvmul(0, 0));
        ttinsn!(mvmul(0, 5));
        let replay = const { Replay::build().index(REPLAY).count(REPLAY_WORDS).word() };
        Mop::new(1, fidelity.phases(), replay).end(free_and_reset(FREE_A)).program();
        ttinsn!(RESET);
    }

    /// Adds the product of the tiles in SrcB and SrcA, and gives SrcA back.
    #[inline(always)]
    pub(crate) fn matmul(&self, tile: u32) {
        self.at_tile(tile);
        mop::run();
    }

    /// Gives SrcB back.
    #[inline(always)]
    pub(crate) fn free_b(&self) {
        ttinsn!(free_and_reset(FREE_B));
    }
}

/// Sets Dst's counter to zero.
#[inline(always)]
pub(crate) fn reset_dst() {
    ttinsn!(RESET_DST);
}

impl MathUnit {
    /// Computes a function of a tile, which [`Unary::init`] has prepared.
    #[inline(always)]
    pub(crate) fn unary(&self, function: Unary, tile: u32) {
        self.at_tile(tile);
        function.tile(self.wide, [0, 0]);
        ttinsn!(RESET_DST);
    }

    /// Transposes a tile.
    #[inline(always)]
    pub(crate) fn transpose(&self, tile: u32) {
        self.at_tile(tile);
        transpose::transpose(self.wide, self.a == Format::UInt16);
        ttinsn!(RESET_DST);
    }

    /// Runs a function of the vector unit on Dst from its first tile on; it gets whether Dst is
    /// wide.
    #[inline(always)]
    pub(crate) fn on_tiles(&self, function: impl FnOnce(bool)) {
        self.at_tile(0);
        function(self.wide);
        ttinsn!(RESET_DST);
    }

    /// The same from a tile on, for functions that need no width.
    #[inline(always)]
    pub(crate) fn on_tile(&self, tile: u32, function: impl FnOnce()) {
        self.at_tile(tile);
        function();
        ttinsn!(RESET_DST);
    }

    /// Prepares reductions.
    pub(crate) fn init_reduce(&self) {
        AddrMod { fidelity: Step::clear(), ..AddrMod::default() }.set(0);
        AddrMod { b: Step::by(ROWS), dst: Step::by(ROWS), ..AddrMod::default() }.set(2);
        AddrMod { fidelity: Step::by(1), ..AddrMod::default() }.set(3);
        ttinsn!(RESET);
    }

    /// Reduces a tile as [`Reduce`] says.
    #[inline(always)]
    pub(crate) fn reduce(&self, pool: Pool, dim: Reduce, tile: u32) {
        match dim {
            Reduce::Rows => self.reduce_rows(pool, tile),
            Reduce::Columns => self.reduce_columns(pool, tile),
            Reduce::All => self.reduce_all(pool, tile),
        }
    }

    /// Reduces every row of a tile; the faces in SrcA are transposed, so their columns are pooled.
    #[inline(always)]
    fn reduce_rows(&self, pool: Pool, tile: u32) {
        self.at_tile(tile);
        for lower in [false, true] {
            pool_face(pool, 0, true);
            pool_face(pool, 0, false);
            transpose_pooled();
            if lower {
                ttinsn!(Setrwc::build().clear_dvalid(FREE_A | FREE_B).dst(true).src_b(true).word());
            } else {
                // The lower faces begin 32 rows further.
                ttinsn!(STEP_DST);
                ttinsn!(STEP_DST);
                ttinsn!(STEP_DST);
                ttinsn!(
                    Setrwc::build()
                        .clear_dvalid(FREE_A | FREE_B)
                        .dst_cr(true)
                        .dst_val(ROWS)
                        .dst(true)
                        .src_b(true)
                        .word()
                );
            }
        }
        ttinsn!(RESET);
    }

    /// Reduces every column of a tile into its row 0.
    #[inline(always)]
    fn reduce_columns(&self, pool: Pool, tile: u32) {
        self.at_tile(tile);
        for _ in 0..FACES / PASSES {
            // The left face goes to row 0, the right one to row 16.
            pool_face(pool, 0, false);
            ttinsn!(STEP_DST);
            ttinsn!(free_and_step(FREE_A | FREE_B));
            pool_face(pool, 0, false);
            ttinsn!(free_and_reset(FREE_A | FREE_B));
        }
    }

    /// Reduces a tile into its element 0. Row 4 has what each column is reduced to, and becomes a
    /// column of SrcA, which is pooled once more.
    #[inline(always)]
    fn reduce_all(&self, pool: Pool, tile: u32) {
        self.at_tile(tile);
        for _ in 1..FACES {
            pool_face(pool, COLUMNS_ROW, true);
        }
        pool_face(pool, COLUMNS_ROW, false);
        row_to_a();
        pool_face(pool, 0, true);
        ttinsn!(RESET);
    }
}

impl MathUnit {
    /// Prepares pooling into tile 0 with ones, by which sums take two phases: one has no low bits.
    pub(crate) fn init_pool(&self, pool: Pool) {
        AddrMod { fidelity: Step::clear(), ..AddrMod::default() }.set(0);
        // The lower faces are pooled into the row where they begin.
        AddrMod { fidelity: Step::clear(), dst: Step::by(LOWER_FACES), ..AddrMod::default() }.set(1);
        AddrMod { b: Step::by(ROWS), dst: Step::by(ROWS), ..AddrMod::default() }.set(2);
        AddrMod { fidelity: Step::by(1), ..AddrMod::default() }.set(3);
        AddrMod { fidelity: Step::clear(), dst: Step::clear(), ..AddrMod::default() }.set(4);
        const fn sum(banks: u32, addr_mod: u32) -> u32 {
            Gapool::build().clear_dvalid(banks).instr_mod19(1).addr_mod(addr_mod).word()
        }
        const fn max(addr_mod: u32) -> u32 {
            Gmpool::build().clear_dvalid(FREE_A).instr_mod19(1).addr_mod(addr_mod).word()
        }
        let mop = match pool {
            Pool::Sum => {
                Mop::of_two(2, 2, sum(0, 3), sum(FREE_A, 0)).last_inner(sum(FREE_A, 1)).last_outer(sum(FREE_A, 4))
            }
            Pool::Max => Mop::new(2, 2, max(0)).last_inner(max(1)).last_outer(max(4)),
        };
        mop.program();
        self.at_tile(0);
        ttinsn!(RESET);
    }

    /// Pools a tile.
    #[inline(always)]
    pub(crate) fn pool_tile(&self) {
        mop::run();
    }

    /// Makes a statistic of the pooled rows, and a column of each.
    pub(crate) fn pooled_to_column(&self, of: Statistic) {
        const TO_B: u32 = Movd2b::build().src_row(TRANSPOSED).word();
        const COLUMN: u32 = Elwadd::build().addr_mod(2).word();
        of.compute();
        for lower in [false, true] {
            ttinsn!(TO_B);
            ttinsn!(Trnspsrcb::build().word());
            ttinsn!(STEP_B);
            ttinsn!(STEP_B);
            ttinsn!(COLUMN);
            ttinsn!(COLUMN);
            if !lower {
                ttinsn!(const { Setrwc::build().src_b(true).src_a(true).word() });
                (0..LOWER_FACES / ROWS).for_each(|_| ttinsn!(STEP_DST));
            }
        }
        ttinsn!(free_and_reset(FREE_A | FREE_B));
    }
}

/// Rows of Dst before the lower faces of a tile.
const LOWER_FACES: u32 = TILE_ROWS / 2;

/// Eight rows of Dst further, of the copy, too.
const STEP_DST: u32 = Setrwc::build().dst_cr(true).dst_val(ROWS).dst(true).word();
/// Eight rows of SrcB further, of the copy, too.
const STEP_B: u32 = Setrwc::build().src_b_cr(true).src_b_val(ROWS).src_b(true).word();
/// Rows of SrcB that `TRNSPSRCB` transposes.
const TRANSPOSED: u32 = 16;

/// Gives banks back, and goes on eight rows of Dst.
const fn free_and_step(banks: u32) -> u32 {
    Setrwc::build().clear_dvalid(banks).dst_cr(true).dst_val(ROWS).dst(true).word()
}

/// The row of Dst into which a reduction of a whole tile pools columns, while row 0 waits for the
/// result.
const COLUMNS_ROW: u32 = 4;

/// Pools the columns of SrcA's face into row `row` behind Dst's counter; `free`: both sources go
/// back. Sums take all four phases.
#[inline(always)]
fn pool_face(pool: Pool, row: u32, free: bool) {
    let banks = if free { FREE_A | FREE_B } else { 0 };
    let sum =
        |banks, addr_mod| Gapool::build().clear_dvalid(banks).instr_mod19(1).addr_mod(addr_mod).dst_row(row).word();
    if pool == Pool::Sum {
        for _ in 1..Fidelity::HiFi4.phases() {
            push(sum(0, 3));
        }
        push(sum(banks, 0));
    } else {
        push(Gmpool::build().clear_dvalid(banks).instr_mod19(1).dst_row(row).word());
    }
}

/// Row [`COLUMNS_ROW`] of Dst becomes column 0 of SrcA, by way of a transposition in SrcB, and then
/// is cleared.
#[inline(always)]
fn row_to_a() {
    ttinsn!(Movd2b::build().src_row(TRANSPOSED).dst_row(COLUMNS_ROW).word());
    ttinsn!(Trnspsrcb::build().word());
    for row in (0..TRANSPOSED).step_by(4) {
        push(Movb2a::build().src_a_row(row).move_4_rows(true).src_b_row(TRANSPOSED + row).word());
    }
    ttinsn!(Zeroacc::build().mode(ONE_ROW).imm10(COLUMNS_ROW).word());
}

/// Row 0 of Dst becomes column 0 of its 16 rows. Row 0 itself stays, so that more can be pooled
/// into it.
#[inline(always)]
fn transpose_pooled() {
    const TO_B: u32 = Movd2b::build().src_row(TRANSPOSED).word();
    const SUM: u32 = Elwadd::build().addr_mod(2).word();
    ttinsn!(Setrwc::build().dst_cr(true).src_b(true).src_a(true).word());
    ttinsn!(TO_B);
    ttinsn!(Trnspsrcb::build().word());
    ttinsn!(TO_B);
    ttinsn!(STEP_B);
    ttinsn!(STEP_B);
    ttinsn!(Zerosrc::build().single_bank_matrix_unit(true).src_mask(FREE_A).word());
    ttinsn!(SUM);
    ttinsn!(SUM);
}

/// First word and number of words of the matrix multiplication in the replay buffer.
const REPLAY: u32 = 16;
const REPLAY_WORDS: u32 = 16;

const fn free_both_sources() -> u32 {
    Setrwc::build().clear_dvalid(FREE_A | FREE_B).src_b(true).src_a(true).word()
}

/// The order in which a product goes over faces of 16 rows: B0 A0, B0 A1, B2 A0, B2 A1 and the same
/// with B1, B3 and A2, A3. With `transpose`, A1 and A2 are the other way round.
fn matmul_addr_mods(transpose: bool, phases: bool) {
    let (next, other) = if transpose { (32, 16) } else { (16, 32) };
    let rest = AddrMod::default();
    AddrMod { b: Step::by(ROWS), dst: Step::by(ROWS), ..rest }.set(0);
    AddrMod { a: Step::by(next), b: Step::copy(0), dst: Step::by(ROWS), ..rest }.set(1);
    AddrMod { a: Step::copy(0), b: Step::copy(32), dst: Step::by(ROWS), ..rest }.set(2);
    // B's copy is 32: 48 more are 16 modulo its 64 rows.
    AddrMod { a: Step::copy(other), b: Step::copy(48), dst: Step::copy(0), ..rest }.set(4);
    let back = Step { by: 0, clear: true, copy: true };
    AddrMod { a: back, b: back, dst: back, fidelity: Step::by(phases.into()), ..rest }.set(5);
}
