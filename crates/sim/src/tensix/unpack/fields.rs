//! Configuration fields that there is one of for each context or each unpacker, in their order, and
//! the tile descriptor.
//!
//! Names are those of the public `cfg_defines.h`; which context uses which is in
//! WormholeB0/TensixTile/TensixCoprocessor/UNPACR_Regular.md.

use tilework_abi::tensix::cfg::{self, Field};

/// By context: the address of the data, and what is added to it.
pub(super) const BASE: [Field; 8] = [
    cfg::THCON_SEC_REG3_BASE_ADDRESS,
    cfg::THCON_SEC_REG3_BASE_CNTX1_ADDRESS,
    cfg::THCON_SEC_REG3_BASE_CNTX2_ADDRESS,
    cfg::THCON_SEC_REG3_BASE_CNTX3_ADDRESS,
    cfg::THCON_SEC_REG4_BASE_CNTX4_ADDRESS,
    cfg::THCON_SEC_REG4_BASE_CNTX5_ADDRESS,
    cfg::THCON_SEC_REG4_BASE_CNTX6_ADDRESS,
    cfg::THCON_SEC_REG4_BASE_CNTX7_ADDRESS,
];
pub(super) const OFFSET: [Field; 4] = [
    cfg::THCON_SEC_REG7_OFFSET_ADDRESS,
    cfg::THCON_SEC_REG7_OFFSET_CNTX1_ADDRESS,
    cfg::THCON_SEC_REG7_OFFSET_CNTX2_ADDRESS,
    cfg::THCON_SEC_REG7_OFFSET_CNTX3_ADDRESS,
];
/// By context: the formats of input and output.
pub(super) const FORMATS: [[Field; 2]; 8] = [
    [cfg::THCON_SEC_REG7_UNPACK_DATA_FORMAT_CNTX0, cfg::THCON_SEC_REG7_UNPACK_OUT_DATA_FORMAT_CNTX0],
    [cfg::THCON_SEC_REG7_UNPACK_DATA_FORMAT_CNTX1, cfg::THCON_SEC_REG7_UNPACK_OUT_DATA_FORMAT_CNTX1],
    [cfg::THCON_SEC_REG7_UNPACK_DATA_FORMAT_CNTX2, cfg::THCON_SEC_REG7_UNPACK_OUT_DATA_FORMAT_CNTX2],
    [cfg::THCON_SEC_REG7_UNPACK_DATA_FORMAT_CNTX3, cfg::THCON_SEC_REG7_UNPACK_OUT_DATA_FORMAT_CNTX3],
    [cfg::THCON_SEC_REG7_UNPACK_DATA_FORMAT_CNTX4, cfg::THCON_SEC_REG7_UNPACK_OUT_DATA_FORMAT_CNTX4],
    [cfg::THCON_SEC_REG7_UNPACK_DATA_FORMAT_CNTX5, cfg::THCON_SEC_REG7_UNPACK_OUT_DATA_FORMAT_CNTX5],
    [cfg::THCON_SEC_REG7_UNPACK_DATA_FORMAT_CNTX6, cfg::THCON_SEC_REG7_UNPACK_OUT_DATA_FORMAT_CNTX6],
    [cfg::THCON_SEC_REG7_UNPACK_DATA_FORMAT_CNTX7, cfg::THCON_SEC_REG7_UNPACK_OUT_DATA_FORMAT_CNTX7],
];
/// By context: the data are not compressed.
pub(super) const UNCOMPRESSED: [Field; 8] = [
    cfg::THCON_SEC_REG2_DISABLE_ZERO_COMPRESS_CNTX0,
    cfg::THCON_SEC_REG2_DISABLE_ZERO_COMPRESS_CNTX1,
    cfg::THCON_SEC_REG2_DISABLE_ZERO_COMPRESS_CNTX2,
    cfg::THCON_SEC_REG2_DISABLE_ZERO_COMPRESS_CNTX3,
    cfg::THCON_SEC_REG2_DISABLE_ZERO_COMPRESS_CNTX4,
    cfg::THCON_SEC_REG2_DISABLE_ZERO_COMPRESS_CNTX5,
    cfg::THCON_SEC_REG2_DISABLE_ZERO_COMPRESS_CNTX6,
    cfg::THCON_SEC_REG2_DISABLE_ZERO_COMPRESS_CNTX7,
];
/// By context: the data go to Dst.
pub(super) const TO_DST: [Field; 8] = [
    cfg::THCON_SEC_REG2_UNPACK_IF_SEL_CNTX0,
    cfg::THCON_SEC_REG2_UNPACK_IF_SEL_CNTX1,
    cfg::THCON_SEC_REG2_UNPACK_IF_SEL_CNTX2,
    cfg::THCON_SEC_REG2_UNPACK_IF_SEL_CNTX3,
    cfg::THCON_SEC_REG2_UNPACK_IF_SEL_CNTX4,
    cfg::THCON_SEC_REG2_UNPACK_IF_SEL_CNTX5,
    cfg::THCON_SEC_REG2_UNPACK_IF_SEL_CNTX6,
    cfg::THCON_SEC_REG2_UNPACK_IF_SEL_CNTX7,
];
/// By context: the width of a row of unpacker 0's input, where its output begins, and by how many
/// columns it is shifted.
pub(super) const X_DIM: [Field; 4] = [
    cfg::THCON_SEC_REG5_TILE_X_DIM_CNTX0,
    cfg::THCON_SEC_REG5_TILE_X_DIM_CNTX1,
    cfg::THCON_SEC_REG5_TILE_X_DIM_CNTX2,
    cfg::THCON_SEC_REG5_TILE_X_DIM_CNTX3,
];
pub(super) const DEST: [Field; 4] = [
    cfg::THCON_SEC_REG5_DEST_CNTX0_ADDRESS,
    cfg::THCON_SEC_REG5_DEST_CNTX1_ADDRESS,
    cfg::THCON_SEC_REG5_DEST_CNTX2_ADDRESS,
    cfg::THCON_SEC_REG5_DEST_CNTX3_ADDRESS,
];
pub(super) const SHIFT: [Field; 4] = [
    cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX0,
    cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX1,
    cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX2,
    cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX3,
];
/// By unpacker.
pub(super) const OUT_BASE: [Field; 2] = [cfg::UNP0_ADDR_BASE_REG_1_BASE, cfg::UNP1_ADDR_BASE_REG_1_BASE];
pub(super) const OUT_STRIDES: [[Field; 3]; 2] = [
    [cfg::UNP0_ADDR_CTRL_XY_REG_1_YSTRIDE, cfg::UNP0_ADDR_CTRL_ZW_REG_1_ZSTRIDE, cfg::UNP0_ADDR_CTRL_ZW_REG_1_WSTRIDE],
    [cfg::UNP1_ADDR_CTRL_XY_REG_1_YSTRIDE, cfg::UNP1_ADDR_CTRL_ZW_REG_1_ZSTRIDE, cfg::UNP1_ADDR_CTRL_ZW_REG_1_WSTRIDE],
];
pub(super) const FORCED_EXPONENT: [Field; 2] =
    [cfg::UNP0_FORCED_SHARED_EXP_SHARED_EXP, cfg::UNP1_FORCED_SHARED_EXP_SHARED_EXP];
pub(super) const ADD_DEST: [Field; 2] =
    [cfg::UNP0_ADD_DEST_ADDR_CNTR_ADD_DEST_ADDR_CNTR, cfg::UNP1_ADD_DEST_ADDR_CNTR_ADD_DEST_ADDR_CNTR];
pub(super) const UNSIGNED: [Field; 2] =
    [cfg::ALU_FORMAT_SPEC_REG0_SRCAUNSIGNED, cfg::ALU_FORMAT_SPEC_REG0_SRCBUNSIGNED];
pub(super) const BLOBS_Y_START: [Field; 2] =
    [cfg::UNP0_BLOBS_Y_START_CNTX_01_BLOBS_Y_START, cfg::UNP0_BLOBS_Y_START_CNTX_23_BLOBS_Y_START];

/// `TileDescriptor`, whose fields are in UNPACR_Regular.md, "Configuration".
pub(super) struct Descriptor(pub(super) [u32; 4]);

impl Descriptor {
    pub(super) fn format(&self) -> u32 {
        self.0[0] & 0xF
    }
    pub(super) fn is_uncompressed(&self) -> bool {
        self.0[0] & 0x10 != 0
    }
    pub(super) fn has_no_small_exponents(&self) -> bool {
        self.0[0] & 0x20 != 0
    }
    pub(super) fn blobs(&self) -> u32 {
        self.0[0] >> 8 & 7
    }
    pub(super) fn x_dim(&self) -> u32 {
        self.0[0] >> 16
    }
    pub(super) fn y_dim(&self) -> u32 {
        self.0[1] & 0xFF
    }
    pub(super) fn z_dim(&self) -> u32 {
        (self.0[1] >> 16 & 0xFF).max(1)
    }
    pub(super) fn w_dim(&self) -> u32 {
        (self.0[2] & 0xFF).max(1)
    }
    pub(super) fn blobs_y_start(&self) -> u32 {
        self.0[2] >> 16 | self.0[3] << 16
    }
    pub(super) fn digest_size(&self) -> u32 {
        self.0[3] >> 24
    }
}
