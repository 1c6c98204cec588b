//! The pack thread: Dst to L1.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/Packers/README.md and its pages, and
//! BlackholeA0/TensixTile/TensixCoprocessor/PACR.md.

use crate::addr_mod::{PackMod, Step};
use crate::format::Format;
use crate::math::HALF;
use crate::mop::{self, Mop};
use crate::push::{Word, block, gpr_to_word, push, set, set_gpr, stall, sync, until, write_word};
use crate::sync::{MATH_PACK, While};
use crate::ttinsn;
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{Pacr, Setadc, Setadcxx, Setadcxy, Setadczw, Zeroacc};

/// Faces of a tile, rows of a face, and rows that the four interfaces read at once.
const FACES: u32 = 4;
const FACE_ROWS: u32 = 16;
const ROWS: u32 = 4;
/// Columns of a face.
const COLUMNS: u32 = 16;
/// Bytes of the unit of addresses. A unit is skipped for a tile header, which our tiles do not have.
const UNIT: u32 = 16;
const HEADER: u32 = 1;
/// `SETADC...`: the packer's counters; W.
const PACKER: u32 = 1 << 2;
const W: u32 = 3;
/// `ZEROACC`: a half of Dst.
const HALF_OF_DST: u32 = 2;
/// GPR for the address of the output.
const ADDRESS_GPR: u32 = 8;
/// The packer takes the address even if it is that of the tile before (Packers, L1 address).
const NEW_ADDRESS: u32 = 1 << 31;
/// All data of a row stay.
const WHOLE_ROW: u32 = 0xFFFF;

const RESET_FACES: u32 = Setadczw::build().cnt_set_mask(PACKER).bit_mask(0b0101).word();

const fn pack(addr_mod: u32, last: bool) -> u32 {
    Pacr::build().addr_mod(addr_mod).last(last).word()
}

/// The packer's state.
#[derive(Default)]
pub(crate) struct Packer {
    half: u32,
    wide: bool,
}

impl Packer {
    /// The format of the output, and everything that does not depend on the operation. `wide`: Dst
    /// has elements of 32 bits.
    pub(crate) fn configure(&mut self, out: Format, wide: bool) {
        Word::of(cfg::CFG_STATE_ID_STATEID, 0).write();
        *self = Self { half: 0, wide };
        self.formats(out);
        Word::of(cfg::DEST_TARGET_REG_CFG_PACK_SEC_OFFSET, 0).write();
        write_word(cfg::PCK0_ADDR_BASE_REG_0_BASE, 0);
        write_word(cfg::PCK0_ADDR_BASE_REG_1_BASE, 0);
        Word::of(cfg::PACK_COUNTERS_SEC_PACK_READS_PER_XY_PLANE, FACE_ROWS).write();
        Word::of(cfg::PCK_EDGE_OFFSET_SEC_MASK, WHOLE_ROW).write();
        write_word(cfg::TILE_ROW_SET_MAPPING_0_ROW_SET_MAPPING_0, 0);
        write_word(cfg::PCK_EDGE_TILE_FACE_SET_SELECT_SELECT, 0);
        set(cfg::STACC_RELU_APPLYRELU, 0);
        set(cfg::THCON_SEC_REG1_PACK_L1_ACC, 0);
        set(cfg::THCON_SEC_REG1_EXP_THRESHOLD_EN, 0);
        set(cfg::THCON_SEC_REG1_PAC_LF8_4B_EXP, 0);
        set(cfg::THCON_SEC_REG1_DOWNSAMPLE_MASK, 0);
        set(cfg::THCON_SEC_REG1_DOWNSAMPLE_RATE, 0);
        ttinsn!(Setadcxy::build().cnt_set_mask(PACKER).bit_mask(0b1111).word());
        ttinsn!(Setadczw::build().cnt_set_mask(PACKER).bit_mask(0b1111).word());
        ttinsn!(Setadcxx::build().cnt_set_mask(PACKER).x1_val(COLUMNS - 1).word());
        self.init_tile();
        ttinsn!(stall(block::PACK, until::CFG));
    }

    /// Sets what the packer reads and writes; it must be idle.
    fn formats(&self, out: Format) {
        // What passes between the two conversions: Dst's own type, unless it only becomes narrower.
        let between = match (self.wide, out) {
            (true, Format::Float32) => Format::Float32,
            _ => Format::Bf16,
        };
        let bytes = if between == Format::Float32 { 4 } else { 2 };
        let (row, face) = (COLUMNS * bytes, FACE_ROWS * COLUMNS * bytes);
        Word::of(cfg::PCK0_ADDR_CTRL_XY_REG_0_YSTRIDE, row).write();
        Word::of(cfg::PCK0_ADDR_CTRL_ZW_REG_0_ZSTRIDE, face)
            .with(cfg::PCK0_ADDR_CTRL_ZW_REG_0_WSTRIDE, FACES * face)
            .write();
        set(cfg::ALU_FORMAT_SPEC_REG2_DSTACC, between.code());
        // Exponents take one byte for sixteen elements: a unit for each face.
        Word::of(cfg::THCON_SEC_REG1_EXP_SECTION_SIZE, FACES).write();
        Word::of(cfg::THCON_SEC_REG1_DISABLE_ZERO_COMPRESS, 1)
            .with(cfg::THCON_SEC_REG1_OUT_DATA_FORMAT, out.code())
            .with(cfg::THCON_SEC_REG1_IN_DATA_FORMAT, between.code())
            .write();
        Word::of(cfg::PCK_DEST_RD_CTRL_READ_32B_DATA, self.wide.into()).write();
    }

    /// Changes the format of the output when the packer is done.
    pub(crate) fn reconfigure(&mut self, out: Format) {
        sync();
        self.formats(out);
        ttinsn!(stall(block::PACK, until::CFG));
    }

    /// Prepares the packing of tiles.
    fn init_tile(&self) {
        PackMod { src_y: Step::by(ROWS), dst_y: Step::by(ROWS), src_z: Step::by(0) }.set(0);
        PackMod { src_y: Step::clear(), dst_y: Step::clear(), src_z: Step::clear() }.set(1);
        PackMod { src_y: Step::clear(), dst_y: Step::by(ROWS), src_z: Step::by(1) }.set(2);
        Mop::new(FACES, FACE_ROWS / ROWS, pack(0, false))
            .last_inner(pack(2, false))
            .last_outer(pack(1, true))
            .program();
    }

    /// Waits for a half of Dst that math has handed over.
    #[inline(always)]
    pub(crate) fn wait(&self) {
        ttinsn!(MATH_PACK.wait(block::TDMA, While::Zero));
    }

    /// Packs a tile of the half to this address.
    #[inline(always)]
    pub(crate) fn tile(&self, tile: u32, addr: u32) {
        push(Setadc::build().cnt_set_mask(PACKER).xyzw(W).new_value(tile).word());
        set_gpr(ADDRESS_GPR, NEW_ADDRESS | (addr / UNIT - HEADER));
        gpr_to_word(ADDRESS_GPR, cfg::THCON_SEC_REG1_L1_DEST_ADDR);
        ttinsn!(stall(block::PACK, until::CFG));
        mop::run();
        ttinsn!(RESET_FACES);
    }

    /// Clears the half when it is packed, gives it back and goes to the other.
    #[inline(always)]
    pub(crate) fn release(&mut self) {
        ttinsn!(stall(block::MATH | block::CFG, until::PACK));
        push(Zeroacc::build().mode(HALF_OF_DST).use_dst32b(self.wide).imm10(self.half / HALF).word());
        ttinsn!(stall(block::SYNC, until::MATH));
        ttinsn!(MATH_PACK.get());
        self.half = HALF - self.half;
        set(cfg::DEST_TARGET_REG_CFG_PACK_SEC_OFFSET, self.half);
        ttinsn!(stall(block::PACK, until::CFG));
    }
}
