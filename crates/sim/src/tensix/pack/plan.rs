//! What the configuration tells the packer to do, decoded once for all `PACR`s until it changes.
//!
//! Follows WormholeB0/TensixTile/TensixCoprocessor/Packers/*.md for packer 0, whose configuration
//! Blackhole's one packer has. What those pages do not describe is refused.

use super::convert::{Early, Kind, LARGEST_16, Late};
use super::whole::Whole;
use crate::FaultClass::{UndefinedBehavior, UnimplementedFunctionality};
use crate::tensix::config::Refusal;
use crate::tensix::decoded::Reader;
use crate::tensix::dst::RowMap;
use tilework_abi::tensix::cfg::{self, Field};

/// Data formats by their codes (FormatConversion.md).
mod code {
    pub(super) const FP32: u32 = 0;
    pub(super) const FP16: u32 = 1;
    pub(super) const BFP8A: u32 = 2;
    pub(super) const BFP4A: u32 = 3;
    pub(super) const TF32: u32 = 4;
    pub(super) const BF16: u32 = 5;
    pub(super) const BFP8: u32 = 6;
    pub(super) const BFP4: u32 = 7;
    pub(super) const INT32: u32 = 8;
    pub(super) const INT16: u32 = 9;
    pub(super) const FP8: u32 = 10;
    pub(super) const BFP2A: u32 = 11;
    pub(super) const INT8: u32 = 14;
    pub(super) const BFP2: u32 = 15;
}

/// What happens to negative and large data (ReLU.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Relu {
    None,
    Zero,
    /// Magnitudes up to this one become zero.
    Above(u32),
    /// Larger magnitudes become this one.
    UpTo(u32),
}

/// Which data are replaced by their position (EdgeMasking.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Edge {
    /// By `TILE_ROW_SET_MAPPING`: which mask each row of a tile has, two bits each.
    rows: [u32; 4],
    /// By position in Z, two bits each: which of `rows`.
    sets: u32,
    z_offset: u32,
    masks: [u16; 4],
    /// What a datum becomes.
    pub(super) value: u32,
}

impl Edge {
    /// Which data of the row at position `y`, `z` stay.
    pub(super) fn mask(&self, y: u32, z: u32) -> u16 {
        let set = self.sets >> (2 * (z.wrapping_add(self.z_offset) & 0xF)) & 3;
        self.masks[(self.rows[set as usize] >> (2 * (y & 0xF)) & 3) as usize]
    }
}

/// How data of a row are packed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Layout {
    /// One by one, of as many bits.
    Plain { bits: u32 },
    /// With one exponent, of five bits if it is `small`.
    Block { bits: u32, small: bool },
}

impl Layout {
    pub(super) const fn bits(self) -> u32 {
        match self {
            Self::Plain { bits } | Self::Block { bits, .. } => bits,
        }
    }
    pub(super) const fn is_block(self) -> bool {
        matches!(self, Self::Block { .. })
    }
}

/// What is added up in L1 (WormholeB0/TensixTile/L1.md, near-memory accumulate).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Accumulate {
    Fp32,
    Bf16,
    Fp16,
    Int32,
}

/// Base and strides by which counters make an address: Y, Z, W.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Strides {
    base: u32,
    by: [u32; 3],
}

impl Strides {
    pub(super) fn address(&self, counters: [u32; 4]) -> u32 {
        let terms = self.by.iter().zip(&counters[1..]).map(|(by, at)| by.wrapping_mul(*at));
        terms.fold(self.base, u32::wrapping_add)
    }
}

/// What the configuration says, but for what changes from tile to tile: the first row of Dst and
/// the address in L1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) map: RowMap,
    /// `swizzle_32b`, without which the strided mode is not understood.
    pub(super) can_stride: bool,
    pub(super) early: Early,
    /// What passes between the conversions.
    pub(super) kind: Kind,
    pub(super) edge: Option<Edge>,
    pub(super) relu: Relu,
    /// Smaller exponents become zero.
    pub(super) threshold: u32,
    pub(super) downsample: u16,
    pub(super) late: Late,
    pub(super) layout: Layout,
    pub(super) accumulate: Option<Accumulate>,
    /// What becomes of whole rows, with nothing between the conversions.
    pub(super) whole: Option<Whole>,
    /// Counts exponents.
    pub(super) counts: bool,
    // Input addresses.
    pub(super) src: Strides,
    pub(super) x_stride: u32,
    pub(super) datum_bytes: u32,
    // Output addresses, in units of 16 bytes.
    pub(super) dst: Strides,
    /// What is added to the address in L1.
    pub(super) header: u32,
    /// The output is compressed; starts of rows come first, and are this long.
    pub(super) row_starts: Option<u32>,
    /// Exponents come before data and have an address of their own, and are this long.
    pub(super) exponent_section: Option<u32>,
    pub(super) adds_offset: bool,
    pub(super) limit: u32,
    pub(super) fifo: u32,
    // The tile position.
    pub(super) reads_per_plane: u32,
    /// The last instruction of a plane reads no more than what is left of it.
    pub(super) limits_last: bool,
    /// A tile's size counts its header.
    pub(super) counts_header: bool,
    /// Conversions round stochastically.
    pub(super) early_by_chance: bool,
    pub(super) late_by_chance: bool,
}

fn intermediate(r: &Reader<'_>) -> u32 {
    if r.has(cfg::ALU_FORMAT_SPEC_REG_DSTACC_OVERRIDE) {
        r.get(cfg::ALU_FORMAT_SPEC_REG_DSTACC_VAL)
    } else {
        r.get(cfg::ALU_FORMAT_SPEC_REG2_DSTACC)
    }
}

fn in_format(r: &Reader<'_>) -> u32 {
    r.get(cfg::THCON_SEC_REG1_IN_DATA_FORMAT)
}

fn out_format(r: &Reader<'_>) -> u32 {
    r.get(cfg::THCON_SEC_REG1_OUT_DATA_FORMAT)
}

/// Features of the packer that the documents do not describe.
const NOT_BUILT: [(Field, u32, &str); 10] = [
    (
        cfg::THCON_SEC_REG1_SOURCE_INTERFACE_SELECTION,
        0,
        "a packer that reads L1, which is not documented for four read interfaces",
    ),
    (cfg::THCON_SEC_REG1_DIS_SHARED_EXP_ASSEMBLER, 0, "Dis_shared_exp_assembler, which is not documented"),
    (cfg::THCON_SEC_REG1_PACK_START_INTF_POS, 0, "pack_start_intf_pos, which is not documented"),
    (
        cfg::THCON_SEC_REG1_ALL_PACK_DISABLE_ZERO_COMPRESS_OVRD,
        0,
        "All_pack_disable_zero_compress_ovrd, for whose values Blackhole has no field",
    ),
    (cfg::THCON_SEC_REG1_PACK_DIS_Y_POS_START_OFFSET, 0, "pack_dis_y_pos_start_offset, which is not documented"),
    (cfg::THCON_SEC_REG1_DOWNSAMPLE_RATE, 0, "Downsample_rate, which is not documented"),
    (cfg::PACK_COUNTERS_SEC_PACK_PER_XY_PLANE, 0, "pack_per_xy_plane, which is not documented"),
    (cfg::PACK_COUNTERS_SEC_PACK_XYS_PER_TILE, 0, "pack_xys_per_tile, which is not documented"),
    (cfg::PACK_COUNTERS_SEC_PACK_YZ_TRANSPOSED, 0, "pack_yz_transposed, which is not documented for one packer"),
    (cfg::PACK_COUNTERS_SEC_AUTO_CTXT_INC_XYS_CNT, 0, "auto_ctxt_inc_xys_cnt, which is not documented"),
];

impl Plan {
    /// Decodes the configuration.
    pub(super) fn of(r: &Reader<'_>) -> Result<Self, Refusal> {
        if let Some((_, _, what)) = NOT_BUILT.iter().find(|&&(field, value, _)| r.get(field) != value) {
            return Err((UnimplementedFunctionality, what));
        }
        let (early, kind, late, layout) = formats(r)?;
        let (edge, relu, threshold) = (edge(r, kind)?, relu(r, kind)?, threshold(r)?);
        let downsample = match r.get(cfg::THCON_SEC_REG1_DOWNSAMPLE_MASK) as u16 {
            0 => 0xFFFF,
            mask => mask,
        };
        let untouched = edge.is_none() && relu == Relu::None && threshold == 0 && downsample == 0xFFFF;
        let counts = (0..3).any(|thread| r.get_of(thread, cfg::ENABLE_ACC_STATS_ENABLE) != 0);
        let by_chance = r.has(cfg::ALU_ROUNDING_MODE_GASKET_SRND_EN);
        let whole = if untouched && !counts { Whole::of(early, late, layout, by_chance) } else { None };
        let header = u32::from(!r.has(cfg::THCON_SEC_REG1_SUB_L1_TILE_HEADER_SIZE));
        let strides = |base, xy: Field, zw: [Field; 2]| Strides {
            base: r.get(base),
            by: [r.get(xy), r.get(zw[0]), r.get(zw[1])],
        };
        let map = RowMap::read(|field| r.has(field));
        let accumulate = accumulate(r)?;
        let row_starts = row_starts(r, layout, accumulate)?;
        Ok(Self {
            map,
            can_stride: r.has(cfg::DEST_ACCESS_CFG_SWIZZLE_32B),
            early,
            kind,
            edge,
            relu,
            threshold,
            downsample,
            late,
            layout,
            accumulate,
            whole,
            counts,
            src: strides(
                cfg::PCK0_ADDR_BASE_REG_0_BASE,
                cfg::PCK0_ADDR_CTRL_XY_REG_0_YSTRIDE,
                [cfg::PCK0_ADDR_CTRL_ZW_REG_0_ZSTRIDE, cfg::PCK0_ADDR_CTRL_ZW_REG_0_WSTRIDE],
            ),
            x_stride: r.get(cfg::PCK0_ADDR_CTRL_XY_REG_0_XSTRIDE) & 0xF,
            datum_bytes: [4, 2, 1, 1][(in_format(r) & 3) as usize],
            dst: strides(
                cfg::PCK0_ADDR_BASE_REG_1_BASE,
                cfg::PCK0_ADDR_CTRL_XY_REG_1_YSTRIDE,
                [cfg::PCK0_ADDR_CTRL_ZW_REG_1_ZSTRIDE, cfg::PCK0_ADDR_CTRL_ZW_REG_1_WSTRIDE],
            ),
            header,
            row_starts,
            // FP8 and INT8, too, which have no exponents of their own.
            exponent_section: (out_format(r) & 2 != 0).then(|| r.get(cfg::THCON_SEC_REG1_EXP_SECTION_SIZE)),
            adds_offset: r.has(cfg::THCON_SEC_REG1_ADD_L1_DEST_ADDR_OFFSET),
            limit: r.get(cfg::THCON_SEC_REG9_PACK_0_2_LIMIT_ADDRESS) * 2 + 1,
            fifo: r.get(cfg::THCON_SEC_REG9_PACK_0_2_FIFO_SIZE) * 2,
            reads_per_plane: r.get(cfg::PACK_COUNTERS_SEC_PACK_READS_PER_XY_PLANE),
            limits_last: r.has(cfg::THCON_SEC_REG1_AUTO_SET_LAST_PACR_INTF_SEL),
            counts_header: r.has(cfg::THCON_SEC_REG1_ADD_TILE_HEADER_SIZE),
            early_by_chance: by_chance,
            late_by_chance: layout.is_block() && r.has(cfg::ALU_ROUNDING_MODE_PACKER_SRND_EN),
        })
    }
}

/// Both conversions.
fn formats(r: &Reader<'_>) -> Result<(Early, Kind, Late, Layout), Refusal> {
    let early = early(r)?;
    let (kind, mantissa) = input(r, early)?;
    let (late, layout) = late(r, kind, mantissa)?;
    Ok((early, kind, late, layout))
}

/// The early conversion ("Configuring the conversions").
fn early(r: &Reader<'_>) -> Result<Early, Refusal> {
    let raw = r.has(cfg::PCK_DEST_RD_CTRL_READ_INT8);
    let unsigned = r.has(cfg::PCK_DEST_RD_CTRL_READ_UNSIGNED);
    let round_10 = r.has(cfg::PCK_DEST_RD_CTRL_ROUND_10B_MANT);
    let keeps_10 = round_10 && out_format(r) == code::FP16;
    let wide = r.has(cfg::PCK_DEST_RD_CTRL_READ_32B_DATA);
    let what = match (wide, intermediate(r)) {
        (true, code::INT32) => Early::Bits32,
        (true, code::FP32) if raw || !round_10 => Early::Bits32,
        (true, code::TF32) if raw => Early::Bits32,
        (true, code::FP32 | code::TF32) => Early::Tf32Of32,
        (true, code::BF16) if !raw && keeps_10 => Early::Tf32Of32,
        (true, code::BF16) if !raw => Early::Bf16Of32,
        (true, code::BF16) if !keeps_10 => Early::Bf16Cut32,
        (true, code::BFP8) if raw => Early::Bf16Cut32,
        (true, code::BFP8) => Early::E8m6Of32,
        (true, code::FP16) if round_10 && !raw => Early::Fp16Of32,
        (true, code::INT8) if raw => Early::Int8Cut { unsigned },
        (true, code::INT8) => Early::Int8 { unsigned, shift: descale(r)? },
        (true, code::INT16) => Early::HighOf32,
        (false, code::TF32) if !raw => Early::Bf16Rounded,
        (false, code::FP32) if !raw && round_10 => Early::Bf16Rounded,
        (false, code::BF16 | code::BFP8) if raw => Early::Bf16,
        (false, code::BF16) => Early::Bf16Rounded,
        (false, code::BFP8) => Early::E8m6,
        (false, code::FP16) if raw => Early::Fp16,
        (false, code::FP16) => Early::Fp16Rounded,
        (false, code::BFP8A) if raw => Early::E5m7,
        (false, code::BFP8A) => Early::E5m6,
        (false, code::FP8) if raw => Early::E5m2,
        (false, code::INT8) if raw && !unsigned => Early::SignOf16,
        (false, code::INT16) => Early::Int16,
        _ => return Err((UnimplementedFunctionality, "an early format conversion that is not documented")),
    };
    Ok(what)
}

/// `ShiftAmount`.
fn descale(r: &Reader<'_>) -> Result<u32, Refusal> {
    match (r.has(cfg::INT_DESCALE_ENABLE), r.has(cfg::INT_DESCALE_MODE)) {
        (false, _) => Ok(0),
        (true, false) => Ok(r.get(cfg::INT_DESCALE_VALUES_SEC_VALUE) & 0x1F),
        (true, true) => Err((UnimplementedFunctionality, "INT_DESCALE_Mode, which is not documented")),
    }
}

/// What the late conversion takes the data for, and bits of mantissa.
fn input(r: &Reader<'_>, early: Early) -> Result<(Kind, u32), Refusal> {
    let (kind, mantissa) = match in_format(r) {
        code::FP32 => (Kind::Wide, 23),
        code::TF32 => (Kind::Wide, 10),
        // For the sake of FP16, BF16 may have three bits more.
        code::BF16 if early == Early::Tf32Of32 => (Kind::Wide, 10),
        code::BF16 | code::BFP8 => (Kind::Wide, 7),
        code::FP16 => (Kind::Narrow, 10),
        code::BFP8A => (Kind::Narrow, 7),
        code::FP8 => (Kind::Narrow, 2),
        code::INT32 if early == Early::Bits32 => return Ok((Kind::Int32, 0)),
        code::INT16 => (Kind::Int16, 0),
        code::INT8 if early.kind() == Kind::Uint8 => (Kind::Uint8, 0),
        code::INT8 => (Kind::Int8, 0),
        _ => return Err((UndefinedBehavior, "In_data_format is a format that only L1 has")),
    };
    let is_float = matches!(kind, Kind::Wide | Kind::Narrow);
    if kind != early.kind() || is_float && early.mantissa() > mantissa {
        return Err((UndefinedBehavior, "In_data_format is not what the early format conversion makes"));
    }
    Ok((kind, mantissa))
}

/// No document gives it, and it was not found elsewhere, either.
const FP8_OF_4: &str = "FP8 with four bits of exponent that is not made of FP16, which is not documented";

/// The late conversion.
fn late(r: &Reader<'_>, kind: Kind, mantissa: u32) -> Result<(Late, Layout), Refusal> {
    let to = out_format(r);
    let of_4 = r.has(cfg::THCON_SEC_REG1_PAC_LF8_4B_EXP);
    let plain = |bits| Layout::Plain { bits };
    // Where the mantissa becomes narrower, and the exponent does not, denormals become zero.
    let bf16 = match kind {
        Kind::Wide => Late::High { flush: mantissa > 7 },
        _ => Late::WidenHigh { flush: mantissa > 7 },
    };
    let cut = |dropped| match kind {
        Kind::Wide => Late::Narrow { dropped },
        _ => Late::Cut { dropped, flush: mantissa > 10 - dropped },
    };
    let block = |bits| Layout::Block { bits, small: to & 4 == 0 };
    let what = match (kind, to) {
        (Kind::Wide, code::FP32) => (Late::Keep, plain(32)),
        (Kind::Wide, code::TF32) if mantissa <= 10 => (Late::Keep, plain(32)),
        (Kind::Narrow, code::FP32 | code::TF32) => (Late::Widen, plain(32)),
        (Kind::Wide | Kind::Narrow, code::BF16) => (bf16, plain(16)),
        (Kind::Wide | Kind::Narrow, code::FP16) => (cut(0), plain(16)),
        (Kind::Narrow, code::FP8) if of_4 && mantissa == 10 => (Late::CutFp8Of4, plain(8)),
        (Kind::Wide | Kind::Narrow, code::FP8) if of_4 => return Err((UnimplementedFunctionality, FP8_OF_4)),
        (Kind::Wide, code::FP8) => (Late::NarrowFp8, plain(8)),
        (Kind::Narrow, code::FP8) => (Late::CutFp8 { flush: mantissa > 2 }, plain(8)),
        (Kind::Wide | Kind::Narrow, code::BFP8) => (bf16, block(8)),
        (Kind::Wide | Kind::Narrow, code::BFP4) => (bf16, block(4)),
        (Kind::Wide | Kind::Narrow, code::BFP2) => (bf16, block(2)),
        (Kind::Wide | Kind::Narrow, code::BFP8A) => (cut(3), block(8)),
        (Kind::Wide | Kind::Narrow, code::BFP4A) => (cut(3), block(4)),
        (Kind::Wide | Kind::Narrow, code::BFP2A) => (cut(3), block(2)),
        (Kind::Int32, code::INT32) => (Late::Keep, plain(32)),
        (Kind::Int16, code::INT16) => (Late::Keep, plain(16)),
        (Kind::Int8 | Kind::Uint8, code::INT8) => (Late::Keep, plain(8)),
        _ => return Err((UnimplementedFunctionality, "a late format conversion that is not documented")),
    };
    Ok(what)
}

fn relu(r: &Reader<'_>, kind: Kind) -> Result<Relu, Refusal> {
    let mode = r.get(cfg::STACC_RELU_APPLYRELU) & 3;
    let threshold = r.get(cfg::STACC_RELU_RELUTHRESHOLD);
    match (mode, kind) {
        (0, _) => return Ok(Relu::None),
        (1, _) => return Ok(Relu::Zero),
        (_, Kind::Wide | Kind::Narrow) if threshold >> 15 == 0 => {}
        (_, Kind::Wide | Kind::Narrow) => return Err((UndefinedBehavior, "a negative ReluThreshold")),
        _ => return Err((UndefinedBehavior, "a ReLU with a threshold for integers")),
    }
    let threshold = if kind == Kind::Wide { threshold << 16 } else { threshold };
    Ok(if mode == 2 { Relu::Above(threshold) } else { Relu::UpTo(threshold) })
}

fn threshold(r: &Reader<'_>) -> Result<u32, Refusal> {
    if !r.has(cfg::THCON_SEC_REG1_EXP_THRESHOLD_EN) {
        return Ok(0);
    }
    Ok(match in_format(r) {
        code::INT32 | code::INT16 | code::INT8 => 0,
        _ => r.get(cfg::THCON_SEC_REG1_EXP_THRESHOLD),
    })
}

/// `None`: all data stay.
fn edge(r: &Reader<'_>, kind: Kind) -> Result<Option<Edge>, Refusal> {
    let word = |field: Field| r.word(field.word.into());
    let masks = [0, 1, 2, 3].map(|i| r.get(cfg::PCK_EDGE_OFFSET_SEC_MASK.copy(i)) as u16);
    let rows = [
        word(cfg::TILE_ROW_SET_MAPPING_0_ROW_SET_MAPPING_0)?,
        word(cfg::TILE_ROW_SET_MAPPING_1_ROW_SET_MAPPING_0)?,
        word(cfg::TILE_ROW_SET_MAPPING_2_ROW_SET_MAPPING_0)?,
        word(cfg::TILE_ROW_SET_MAPPING_3_ROW_SET_MAPPING_0)?,
    ];
    // Packer 0 has the low two bits of each choice.
    let sets = if r.has(cfg::PCK_EDGE_TILE_FACE_SET_SELECT_ENABLE) {
        match r.get(cfg::PCK_EDGE_TILE_FACE_SET_SELECT_SELECT) & 3 {
            0 => word(cfg::TILE_FACE_SET_MAPPING_0_FACE_SET_MAPPING_0)?,
            1 => word(cfg::TILE_FACE_SET_MAPPING_1_FACE_SET_MAPPING_0)?,
            2 => word(cfg::TILE_FACE_SET_MAPPING_2_FACE_SET_MAPPING_0)?,
            _ => word(cfg::TILE_FACE_SET_MAPPING_3_FACE_SET_MAPPING_0)?,
        }
    } else {
        (r.get(cfg::PCK_EDGE_TILE_ROW_SET_SELECT_SELECT) & 3) * 0x5555_5555
    };
    let keeps_all = |z: u32| {
        let rows = rows[(sets >> (2 * z) & 3) as usize];
        (0..16).all(|y| masks[(rows >> (2 * y) & 3) as usize] == 0xFFFF)
    };
    let last = if sets % 0x5555_5555 == 0 { 1 } else { 16 };
    if (0..last).all(keeps_all) {
        return Ok(None);
    }
    let value = match (r.has(cfg::PCK_EDGE_MODE_MODE), kind) {
        (false, _) => 0,
        (true, Kind::Wide) => 0xFF80_0000,
        (true, Kind::Narrow) => kind.sign() | LARGEST_16,
        _ => return Err((UndefinedBehavior, "an edge mask that makes minus infinity of integers")),
    };
    let z_offset = r.get(cfg::DEST_TARGET_REG_CFG_PACK_SEC_ZOFFSET);
    Ok(Some(Edge { rows, sets, z_offset, masks, value }))
}

fn accumulate(r: &Reader<'_>) -> Result<Option<Accumulate>, Refusal> {
    if !r.has(cfg::THCON_SEC_REG1_PACK_L1_ACC) {
        return Ok(None);
    }
    match out_format(r) {
        code::FP32 => Ok(Some(Accumulate::Fp32)),
        code::BF16 => Ok(Some(Accumulate::Bf16)),
        code::INT32 => Ok(Some(Accumulate::Int32)),
        code::FP16 => Ok(Some(Accumulate::Fp16)),
        _ => Err((UndefinedBehavior, "accumulation in L1 of a format that L1 cannot add")),
    }
}

/// `Row_start_section_size`, if the output is compressed (OutputAddressGenerator.md).
fn row_starts(r: &Reader<'_>, layout: Layout, accumulate: Option<Accumulate>) -> Result<Option<u32>, Refusal> {
    if r.has(cfg::THCON_SEC_REG1_DISABLE_ZERO_COMPRESS) {
        return Ok(None);
    }
    let what = match () {
        () if accumulate.is_some() => "accumulation of compressed output, which is not documented",
        () if layout.bits() == 2 => "compression of data of two bits, which has no documented format",
        () if layout.is_block() && r.has(cfg::ALU_ROUNDING_MODE_PACKER_SRND_EN) => {
            "stochastic rounding of compressed blocks, which is not built"
        }
        () => return Ok(Some(r.get(cfg::THCON_SEC_REG1_ROW_START_SECTION_SIZE))),
    };
    Err((UnimplementedFunctionality, what))
}
