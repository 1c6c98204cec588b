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
/// Bytes of the unit of addresses. A unit is skipped for a tile header, which our tiles do not
/// have.
const UNIT: u32 = 16;
const HEADER: u32 = 1;
/// `SETADC...`: the packer's counters; W.
const PACKER: u32 = 1 << 2;
const Y: u32 = 1;
const Z: u32 = 2;
const W: u32 = 3;
/// `ZEROACC`: a half of Dst.
const HALF_OF_DST: u32 = 2;
/// GPR for the address of the output.
const ADDRESS_GPR: u32 = 8;
/// The packer takes the address even if it is that of the tile before (Packers, L1 address).
const NEW_ADDRESS: u32 = 1 << 31;
/// All data of a row stay.
const WHOLE_ROW: u32 = 0xFFFF;

const RESET_ROWS: u32 = Setadcxy::build().cnt_set_mask(PACKER).bit_mask(0b1010).word();
const RESET_FACES: u32 = Setadczw::build().cnt_set_mask(PACKER).bit_mask(0b0101).word();

const fn pack(addr_mod: u32, last: bool) -> u32 {
    Pacr::build().addr_mod(addr_mod).last(last).word()
}
/// Packs only what some of the four interfaces read.
const fn pack_of(interfaces: u32, addr_mod: u32, last: bool) -> u32 {
    Pacr::build().read_intf_sel(interfaces).addr_mod(addr_mod).last(last).word()
}
/// Packs a row of two faces: rows of Dst that are 16 apart.
const fn pack_row(last: bool) -> u32 {
    Pacr::build().read_intf_sel(FIRST_TWO).dst_access_mode(true).addr_mod(STAY).last(last).word()
}
/// Interfaces: the two with even rows, the two with odd rows, the first two.
const EVEN: u32 = 0b0101;
const ODD: u32 = 0b1010;
const FIRST_TWO: u32 = 0b0011;
/// Address modifiers: four rows further; everything from the start; the next face; the row from the
/// start. Rows of Dst stay where software counts them itself.
const DOWN: u32 = 0;
const START: u32 = 1;
const NEXT_FACE: u32 = 2;
const FIRST_ROW: u32 = 3;
const STAY: u32 = 3;

/// What the packer makes of numbers (Packers/ReLU.md). Thresholds are the bits of an f32, of which
/// the upper half counts; they are not negative.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PackRelu {
    /// Themselves.
    None,
    /// Zero of what is negative.
    Zero,
    /// Zero of what is not above the threshold.
    Above(u32),
    /// Zero of what is negative, and the threshold of what is above it.
    UpTo(u32),
}

/// The packer's state.
#[derive(Default)]
pub(crate) struct Packer {
    half: u32,
    wide: bool,
    /// Tiles lie in Dst as half rows, left and right by turns.
    tilizes: bool,
}

impl Packer {
    /// The format of the output, and everything that does not depend on the operation. `wide`: Dst
    /// has elements of 32 bits.
    pub(crate) fn configure(&mut self, out: Format, wide: bool) {
        Word::of(cfg::CFG_STATE_ID_STATEID, 0).write();
        *self = Self { half: 0, wide, tilizes: false };
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
        self.init_tile(false);
        ttinsn!(stall(block::PACK, until::CFG));
    }

    /// Sets what the packer reads and writes; it must be idle.
    fn formats(&self, out: Format) {
        let between = out.between(self.wide);
        let row = COLUMNS * between.element_bytes();
        let face = FACE_ROWS * row;
        Word::of(cfg::PCK0_ADDR_CTRL_XY_REG_0_YSTRIDE, row).write();
        Word::of(cfg::PCK0_ADDR_CTRL_ZW_REG_0_ZSTRIDE, face)
            .with(cfg::PCK0_ADDR_CTRL_ZW_REG_0_WSTRIDE, FACES * face)
            .write();
        set(cfg::ALU_FORMAT_SPEC_REG2_DSTACC, between.code());
        // Exponents take one byte for sixteen elements: a unit for each face. Integers of eight
        // bits would get such a section, too.
        let exponents = if out.is_int8() { 0 } else { FACES };
        Word::of(cfg::THCON_SEC_REG1_EXP_SECTION_SIZE, exponents).write();
        Word::of(cfg::THCON_SEC_REG1_DISABLE_ZERO_COMPRESS, 1)
            .with(cfg::THCON_SEC_REG1_OUT_DATA_FORMAT, out.code())
            .with(cfg::THCON_SEC_REG1_IN_DATA_FORMAT, between.code())
            .write();
        Word::of(cfg::PCK_DEST_RD_CTRL_READ_32B_DATA, self.wide.into())
            .with(cfg::PCK_DEST_RD_CTRL_READ_UNSIGNED, (out == Format::UInt8).into())
            .write();
    }

    /// Changes the format of the output when the packer is done.
    pub(crate) fn reconfigure(&mut self, out: Format) {
        sync();
        self.formats(out);
        ttinsn!(stall(block::PACK, until::CFG));
    }

    /// What becomes of numbers on their way to L1.
    pub(crate) fn relu(&self, relu: PackRelu) {
        let (mode, threshold) = match relu {
            PackRelu::None => (0, 0),
            PackRelu::Zero => (1, 0),
            PackRelu::Above(threshold) => (2, threshold >> 16),
            PackRelu::UpTo(threshold) => (3, threshold >> 16),
        };
        ttinsn!(stall(block::CFG, until::PACK));
        set(cfg::STACC_RELU_APPLYRELU, mode);
        set(cfg::STACC_RELU_RELUTHRESHOLD, threshold);
        ttinsn!(stall(block::PACK, until::CFG));
    }

    /// Whether L1 adds what it has to what is packed.
    pub(crate) fn accumulate(&self, on: bool) {
        ttinsn!(stall(block::CFG, until::PACK));
        set(cfg::THCON_SEC_REG1_DISABLE_PACK_ZERO_FLAGS, on.into());
        set(cfg::THCON_SEC_REG1_PACK_L1_ACC, on.into());
        ttinsn!(stall(block::PACK, until::CFG));
    }

    /// Prepares the packing of tiles; `tilizes`: of tiles that lie in Dst as half rows.
    pub(crate) fn init_tile(&mut self, tilizes: bool) {
        self.tilizes = tilizes;
        let clear = Step::clear();
        PackMod { src_y: Step::by(ROWS), dst_y: Step::by(ROWS), src_z: Step::by(0) }.set(DOWN as usize);
        PackMod { src_y: clear, dst_y: clear, src_z: clear }.set(START as usize);
        PackMod { src_y: clear, dst_y: Step::by(ROWS), src_z: Step::by(1) }.set(NEXT_FACE as usize);
        PackMod { src_y: clear, dst_y: Step::by(ROWS), src_z: Step::by(0) }.set(FIRST_ROW as usize);
        let down = pack(DOWN, false);
        let program = Mop::new(FACES, FACE_ROWS / ROWS, down);
        program.last_inner(pack(NEXT_FACE, false)).last_outer(pack(START, true)).program();
    }

    /// Sets the distance of Z of Dst's addresses: a face, or the two faces of half a tile.
    pub(crate) fn set_faces(&self, out: Format, faces: u32) {
        ttinsn!(stall(block::CFG, until::PACK));
        let face = FACE_ROWS * COLUMNS * out.between(self.wide).element_bytes();
        set(cfg::PCK0_ADDR_CTRL_ZW_REG_0_ZSTRIDE, faces * face);
        ttinsn!(stall(block::PACK, until::CFG));
    }

    /// Prepares [`Packer::untilize`].
    pub(crate) fn init_untilize(&self) {
        PackMod::default().set(STAY as usize);
    }

    /// Packs the first `columns` tiles of the half as 32 rows that are `row_bytes` apart.
    pub(crate) fn untilize(&self, columns: u32, addr: u32, row_bytes: u32) {
        let mut addr = addr;
        for half in 0..2 {
            push(Setadc::build().cnt_set_mask(PACKER).xyzw(Z).new_value(half).word());
            for row in 0..FACE_ROWS {
                push(Setadc::build().cnt_set_mask(PACKER).xyzw(Y).new_value(row).word());
                self.address(addr);
                for column in 0..columns {
                    push(Setadc::build().cnt_set_mask(PACKER).xyzw(W).new_value(column).word());
                    push(pack_row(column + 1 == columns));
                }
                addr += row_bytes;
            }
        }
        ttinsn!(RESET_ROWS);
        ttinsn!(RESET_FACES);
    }

    /// The packer's next output goes to this address.
    #[inline(always)]
    fn address(&self, addr: u32) {
        set_gpr(ADDRESS_GPR, NEW_ADDRESS | (addr / UNIT - HEADER));
        gpr_to_word(ADDRESS_GPR, cfg::THCON_SEC_REG1_L1_DEST_ADDR);
        ttinsn!(stall(block::PACK, until::CFG));
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
        self.address(addr);
        if self.tilizes {
            pack_half_rows();
        } else {
            mop::run();
        }
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

/// Packs a tile whose half rows lie in Dst left and right by turns: the even rows of its upper half
/// are a face, then the odd ones; Z steps by two faces.
#[inline(always)]
fn pack_half_rows() {
    const PAIRS: u32 = FACE_ROWS / 2;
    for half in 0..2 {
        for (interfaces, end) in [(EVEN, FIRST_ROW), (ODD, NEXT_FACE)] {
            for _ in 1..PAIRS {
                push(pack_of(interfaces, DOWN, false));
            }
            let last = half == 1 && interfaces == ODD;
            push(pack_of(interfaces, if last { START } else { end }, last));
        }
    }
}
