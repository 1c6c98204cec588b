//! Formats, random data, and the configuration that units need. A face is 16 rows of 16 data.
//!
//! The set-ups are what kernels use (`tt_llk_blackhole` of `tenstorrent/tt-llk`, `cunpack_common.h`
//! and `cpack_common.h`), so that a library that runs kernels runs them.

use std::collections::BTreeMap;

use tilework_abi::tensix::CFG_BASE;
use tilework_abi::tensix::cfg::{self, Field, Space};
use tilework_abi::tensix::insn::{Pacr, Setadc, Setadcxx, Setadcxy, Setadczw, Setc16, Setrwc, Unpacr};

use super::super::super::rng::Rng;
use super::step::Step;

/// Data in a face.
const FACE: usize = 256;

/// What the bits of a datum are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shape {
    /// Sign, bits of the exponent, bits of the mantissa.
    Float(u32, u32),
    /// Sign and mantissa, and an exponent of so many bits for each 16 data.
    Block(u32),
    /// Any bits.
    Bits,
}

/// A format of data in L1 (WormholeB0/TensixTile/TensixCoprocessor/README.md, "Data types"; the
/// numbers are those of configuration).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Format {
    /// The number in configuration.
    pub(super) code: u32,
    /// Bits of a datum in L1.
    bits: u32,
    shape: Shape,
}

const fn float(code: u32, exponent: u32, mantissa: u32) -> Format {
    Format { code, bits: 1 + exponent + mantissa, shape: Shape::Float(exponent, mantissa) }
}
const fn block(code: u32, bits: u32, exponent: u32) -> Format {
    Format { code, bits, shape: Shape::Block(exponent) }
}
const fn integer(code: u32, bits: u32) -> Format {
    Format { code, bits, shape: Shape::Bits }
}

pub(super) const FP32: Format = float(0, 8, 23);
pub(super) const FP16: Format = float(1, 5, 10);
pub(super) const BFP8A: Format = block(2, 8, 5);
/// In registers only.
pub(super) const TF32: Format = float(4, 8, 23);
pub(super) const BF16: Format = float(5, 8, 7);
pub(super) const BFP8: Format = block(6, 8, 8);
pub(super) const BFP4: Format = block(7, 4, 8);
pub(super) const INT32: Format = integer(8, 32);
pub(super) const INT16: Format = integer(9, 16);
pub(super) const FP8: Format = float(10, 5, 2);
/// FP8 with four bits of exponent.
pub(super) const FP8_OF_4: Format = float(10, 4, 3);
pub(super) const INT8: Format = integer(14, 8);
pub(super) const BFP2: Format = block(15, 2, 8);

impl Format {
    /// Bytes of a datum as strides count them (`set_packer_strides`).
    const fn stride(self) -> u32 {
        match self.code & 3 {
            0 => 4,
            1 => 2,
            _ => 1,
        }
    }

    /// Whether data have their exponents for themselves.
    pub(super) const fn is_plain(self) -> bool {
        !matches!(self.shape, Shape::Block(_))
    }

    /// Bytes of a face in L1, with its exponents.
    pub(super) const fn face_bytes(self) -> u32 {
        self.bits * FACE as u32 / 8 + if matches!(self.shape, Shape::Block(_)) { 16 } else { 0 }
    }

    /// A random face, as it lies in L1.
    pub(super) fn face(self, rng: &mut Rng, data: Data) -> Vec<u8> {
        match self.shape {
            Shape::Float(exponent, mantissa) => {
                let bytes = self.bits as usize / 8;
                // FP8 with all bits of the magnitude set differs (docs/differences.md).
                let differs = |number: u32| self.bits == 8 && number & 0x7F == 0x7F;
                let datum = |rng: &mut Rng| match number(rng, exponent, mantissa, data) {
                    number if differs(number) => number - 1,
                    number => number,
                };
                (0..FACE).flat_map(|_| datum(rng).to_le_bytes().into_iter().take(bytes)).collect()
            }
            Shape::Block(exponent) => {
                // Nothing smaller: a mantissa with leading zeros lowers the exponent by
                // up to seven.
                let low = if data == Data::Wild { 8 } else { (1 << (exponent - 1)) - 4 };
                let high = if data == Data::Wild { 1 << exponent } else { low + 8 };
                let mut out: Vec<u8> = (0..16).map(|_| rng.within(low..high) as u8).collect();
                out.extend(rng.bytes(FACE * self.bits as usize / 8));
                out
            }
            Shape::Bits => {
                (0..FACE).flat_map(|_| rng.edge().to_le_bytes().into_iter().take(self.bits as usize / 8)).collect()
            }
        }
    }
}

/// What numbers a case has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Data {
    /// Exponents near one, and zeros.
    Tame,
    /// Any exponents, denormals, infinities and NaNs.
    Wild,
}

impl Data {
    /// Tame three times in four.
    pub(super) fn any(rng: &mut Rng) -> Self {
        if rng.one_in(4) { Self::Wild } else { Self::Tame }
    }
}

/// A random number.
pub(super) fn number(rng: &mut Rng, exponent: u32, mantissa: u32, data: Data) -> u32 {
    let sign = rng.within(0..2) << (exponent + mantissa);
    if rng.one_in(12) {
        return sign;
    }
    let bias = (1 << (exponent - 1)) - 1;
    let top = (1 << exponent) - 1;
    let power = match data {
        Data::Tame => bias - 4 + rng.within(0..8),
        Data::Wild if rng.one_in(3) => rng.pick(&[0, 1, top - 1, top]),
        Data::Wild => rng.within(0..top),
    };
    let ones = (1 << mantissa) - 1;
    let fraction = match rng.within(0..8) {
        0 => 0,
        1 => ones,
        2 => 1 << rng.within(0..mantissa),
        _ => rng.word() & ones,
    };
    sign | power << mantissa | fraction
}

/// Values of configuration fields. A word of a bank is written as a whole: fields that are not set
/// become zero.
#[derive(Clone, Default, Debug)]
pub(super) struct Settings {
    bank: BTreeMap<u16, u32>,
    thread: BTreeMap<u16, u32>,
}

impl Settings {
    /// Sets a field.
    pub(super) fn set(&mut self, field: Field, value: u32) -> &mut Self {
        let words = match field.space {
            Space::Bank => &mut self.bank,
            Space::Thread => &mut self.thread,
        };
        let word = words.entry(field.word).or_default();
        *word = field.put(*word, value);
        self
    }

    /// Sets a word of a bank.
    pub(super) fn word(&mut self, word: u16, value: u32) -> &mut Self {
        self.bank.insert(word, value);
        self
    }

    /// The steps.
    pub(super) fn steps(&self) -> Vec<Step> {
        let setc16 = |(&word, &value)| Step::Push(Setc16::build().cfg_index(u32::from(word)).new_value(value).word());
        let mut out: Vec<Step> = self.thread.iter().map(setc16).collect();
        if !self.bank.is_empty() {
            out.push(Step::Sync);
            out.extend(self.bank.iter().map(|(&word, &value)| Step::Write(CFG_BASE + 4 * u32::from(word), value)));
            out.push(Step::Settle);
        }
        out
    }
}

/// What matrix and vector unit compute with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Alu {
    pub(super) a: Format,
    pub(super) b: Format,
    pub(super) dst32: bool,
    pub(super) int8: bool,
}

impl Alu {
    /// The steps.
    pub(super) fn steps(&self) -> Vec<Step> {
        let mut settings = Settings::default();
        settings
            .set(cfg::ALU_FORMAT_SPEC_REG0_SRCA, self.a.code)
            .set(cfg::ALU_FORMAT_SPEC_REG1_SRCB, self.b.code)
            .set(cfg::ALU_FORMAT_SPEC_REG2_DSTACC, self.a.code)
            .set(cfg::ALU_ACC_CTRL_FP32_ENABLED, u32::from(self.dst32))
            .set(cfg::ALU_ACC_CTRL_SFPU_FP32_ENABLED, u32::from(self.dst32))
            .set(cfg::ALU_ACC_CTRL_INT8_MATH_ENABLED, u32::from(self.int8));
        settings.steps()
    }
}

/// The set-up of both unpackers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unpack {
    /// Of unpacker 0 and 1: format in L1, format in the register, address.
    pub(super) a: (Format, Format, u32),
    pub(super) b: (Format, Format, u32),
    /// Unpacker 0 goes to Dst.
    pub(super) to_dst: bool,
    /// Unpacker 0 transposes.
    pub(super) transpose: bool,
    /// Bytes from one part of a row to the next for unpacker 0 (`Tileize_mode`), a multiple of 16.
    pub(super) stride: Option<u32>,
    /// Data of an instruction.
    pub(super) data: u32,
}

impl Unpack {
    /// Whole faces of both operands.
    pub(super) const fn new(a: (Format, Format, u32), b: (Format, Format, u32)) -> Self {
        Self { a, b, to_dst: false, transpose: false, stride: None, data: FACE as u32 }
    }

    /// The steps.
    pub(super) fn steps(&self) -> Vec<Step> {
        const BOTH: u32 = 3;
        /// Row 4 is where SrcA starts (UNPACR_Regular.md, "Write to SrcA").
        const FIRST: u32 = 4 * 16;
        const ALL_CONTEXTS: u32 = 0xF;
        const FULL_SPEED: u32 = 2;
        let mut settings = Settings::default();
        let flags = |on: bool| if on { ALL_CONTEXTS << 4 } else { 0 };
        for (unpacker, (from, to, at)) in [self.a, self.b].into_iter().enumerate() {
            let word = |field: Field, n: u16| field.copy(unpacker).word + n;
            let transpose = u32::from(unpacker == 0 && self.transpose);
            let x = if unpacker == 0 { 0 } else { FACE as u32 };
            settings
                .word(word(cfg::THCON_SEC_REG0_TILEDESCRIPTOR, 0), from.code | 1 << 4 | x << 16)
                .word(word(cfg::THCON_SEC_REG0_TILEDESCRIPTOR, 1), 1 | 1 << 16)
                .word(word(cfg::THCON_SEC_REG2_OUT_DATA_FORMAT, 0), to.code | FULL_SPEED << 4 | transpose << 8)
                .word(
                    word(cfg::THCON_SEC_REG2_OUT_DATA_FORMAT, 1),
                    ALL_CONTEXTS | flags(unpacker == 0 && self.to_dst) | ALL_CONTEXTS << 16,
                )
                .word(word(cfg::THCON_SEC_REG3_BASE_ADDRESS, 0), at / 16 - 1);
        }
        settings
            .set(cfg::UNP0_ADDR_CTRL_ZW_REG_1_ZSTRIDE, FACE as u32 * self.a.1.stride())
            .set(cfg::UNP1_ADDR_CTRL_ZW_REG_1_ZSTRIDE, FACE as u32 * self.b.1.stride())
            .set(cfg::UNP0_ADD_DEST_ADDR_CNTR_ADD_DEST_ADDR_CNTR, 1)
            .word(cfg::THCON_SEC_REG5_DEST_CNTX0_ADDRESS.word, FIRST | FIRST << 16)
            .word(cfg::THCON_SEC_REG5_TILE_X_DIM_CNTX0.word, FACE as u32 | (FACE as u32) << 16)
            .set(cfg::SRCA_SET_SETOVRDWITHADDR, u32::from(!self.to_dst))
            .set(cfg::UNPACK_MISC_CFG_CFGCONTEXTOFFSET_0, 0);
        if let Some(stride) = self.stride {
            settings
                .set(cfg::THCON_SEC_REG2_TILEIZE_MODE, 1)
                .set(cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX0, stride >> 4 & 0xF)
                .set(cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX1, stride >> 8 & 0xF)
                .set(cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX2, stride >> 12);
        }
        let mut out = settings.steps();
        out.extend(
            [
                Setadcxy::build().cnt_set_mask(BOTH).bit_mask(0b1011).word(),
                Setadczw::build().cnt_set_mask(BOTH).bit_mask(0b1111).word(),
                Setadcxx::build().cnt_set_mask(BOTH).x1_val(self.data - 1).word(),
            ]
            .map(Step::Push),
        );
        out
    }
}

/// Unpacks a face to SrcA (0) or SrcB (1) and hands it to the matrix unit.
pub(super) fn unpack(unpacker: u32) -> Step {
    let insn = Unpacr::build().which_unpacker(unpacker).ch0_z_inc(1).multi_context_mode(true);
    Step::Push(insn.flip_src(true).last(true).word())
}

/// Unpacks a face to Dst.
pub(super) fn unpack_to_dst() -> Step {
    let insn = Unpacr::build().ch0_z_inc(1).ch1_z_inc(1).multi_context_mode(true);
    Step::Push(insn.last(true).word())
}

/// Sets all row counters to zero; with `hand_back`, SrcA and SrcB go back to the unpackers.
pub(super) fn reset_counters(hand_back: bool) -> Step {
    let insn = Setrwc::build().src_a(true).src_b(true).dst(true).fidelity(true);
    Step::Push(insn.clear_dvalid(if hand_back { 3 } else { 0 }).word())
}

/// The set-up of the packer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pack {
    pub(super) from: Format,
    pub(super) to: Format,
    pub(super) at: u32,
    /// Bits of `PCK_DEST_RD_CTRL`: 32-bit rows, unsigned, 8-bit integers, rounding to 10 bits.
    pub(super) read: u32,
    /// Kind of ReLU and its threshold.
    pub(super) relu: (u32, u32),
    /// Columns that are packed; the others become zero.
    pub(super) mask: u32,
    /// Adds to what L1 holds.
    pub(super) accumulate: bool,
    /// Read interfaces.
    pub(super) interfaces: u32,
    /// Rows of four faces by turns, which takes both kinds of other addresses of Dst.
    pub(super) strided: bool,
    /// The stride of output and the counter that it is multiplied with, which move it.
    pub(super) moved: (u32, u32),
}

impl Pack {
    /// 16-bit floats as they are.
    pub(super) const fn new(at: u32) -> Self {
        Self {
            from: BF16,
            to: BF16,
            at,
            read: 0,
            relu: (0, 0),
            mask: 0xFFFF,
            accumulate: false,
            interfaces: 0,
            strided: false,
            moved: (0, 0),
        }
    }

    /// The steps.
    pub(super) fn steps(&self) -> Vec<Step> {
        const PACKER: u32 = 4;
        const ROWS: u32 = 16;
        let (from, to) = (self.from.code, self.to.code);
        let row = ROWS * self.from.stride();
        let exponents = if [FP8, FP8_OF_4, INT8].contains(&self.to) { 0 } else { 4 };
        let mut settings = Settings::default();
        settings
            .set(cfg::PCK0_ADDR_CTRL_XY_REG_0_YSTRIDE, row)
            .set(cfg::PCK0_ADDR_CTRL_ZW_REG_0_ZSTRIDE, ROWS * row)
            .set(cfg::PCK0_ADDR_CTRL_ZW_REG_0_WSTRIDE, 4 * ROWS * row)
            .set(cfg::PCK0_ADDR_CTRL_XY_REG_1_YSTRIDE, self.moved.0)
            .word(cfg::PCK_DEST_RD_CTRL_READ_32B_DATA.word, self.read)
            .set(cfg::PCK_EDGE_OFFSET_SEC_MASK, self.mask)
            .set(cfg::PACK_COUNTERS_SEC_PACK_READS_PER_XY_PLANE, ROWS)
            .set(cfg::THCON_SEC_REG1_EXP_SECTION_SIZE, exponents)
            .set(cfg::THCON_SEC_REG1_L1_DEST_ADDR, (self.at / 16 - 1) | 1 << 31)
            .set(cfg::THCON_SEC_REG1_DISABLE_ZERO_COMPRESS, 1)
            .set(cfg::THCON_SEC_REG1_DISABLE_PACK_ZERO_FLAGS, u32::from(self.accumulate))
            .set(cfg::THCON_SEC_REG1_OUT_DATA_FORMAT, to)
            .set(cfg::THCON_SEC_REG1_PAC_LF8_4B_EXP, u32::from(self.to == FP8_OF_4))
            .set(cfg::THCON_SEC_REG1_IN_DATA_FORMAT, from)
            .set(cfg::THCON_SEC_REG1_PACK_L1_ACC, u32::from(self.accumulate))
            .set(cfg::ALU_FORMAT_SPEC_REG2_DSTACC, from)
            .set(cfg::STACC_RELU_APPLYRELU, self.relu.0)
            .set(cfg::STACC_RELU_RELUTHRESHOLD, self.relu.1)
            // Modes of addressing: the next four rows; the first rows again; the next face.
            .set(cfg::ADDR_MOD_PACK_SEC_YSRCINCR, 4)
            .set(cfg::ADDR_MOD_PACK_SEC_YDSTINCR, 4)
            .set(cfg::ADDR_MOD_PACK_SEC_YSRCCLEAR.copy(1), 1)
            .set(cfg::ADDR_MOD_PACK_SEC_YDSTCLEAR.copy(1), 1)
            .set(cfg::ADDR_MOD_PACK_SEC_ZSRCCLEAR.copy(1), 1)
            .set(cfg::ADDR_MOD_PACK_SEC_YSRCCLEAR.copy(2), 1)
            .set(cfg::ADDR_MOD_PACK_SEC_YDSTCLEAR.copy(2), 1)
            .set(cfg::ADDR_MOD_PACK_SEC_ZSRCINCR.copy(2), 1)
            // The next row.
            .set(cfg::ADDR_MOD_PACK_SEC_YSRCINCR.copy(3), 1);
        let mut out = settings.steps();
        out.extend(
            [
                Setadcxy::build().cnt_set_mask(PACKER).ch1_y(self.moved.1).bit_mask(0b1011).word(),
                Setadczw::build().cnt_set_mask(PACKER).bit_mask(0b1111).word(),
                Setadcxx::build().cnt_set_mask(PACKER).x1_val(ROWS - 1).word(),
            ]
            .map(Step::Push),
        );
        out
    }

    /// Packs the first `n` faces of Dst, or, row by row, the first four.
    pub(super) fn faces(&self, n: u32) -> Vec<Step> {
        let mut out = Vec::new();
        if self.strided {
            let row = |last: bool| Pacr::build().dst_access_mode(true).addr_mod(if last { 1 } else { 3 }).last(last);
            return (0..16).map(|i| Step::Push(row(i == 15).word())).collect();
        }
        for face in 0..n {
            if face % 4 == 0 {
                let tile = Setadc::build().cnt_set_mask(4).xyzw(3).new_value(face / 4);
                out.push(Step::Push(tile.word()));
            }
            for part in 0..4 {
                let (face_end, end) = (part == 3, part == 3 && face + 1 == n);
                // After a tile, the counter of faces starts again.
                let addr_mod = if end || face_end && face % 4 == 3 { 1 } else { u32::from(face_end) * 2 };
                out.push(Step::Push(Pacr::build().addr_mod(addr_mod).read_intf_sel(self.interfaces).last(end).word()));
            }
        }
        out
    }
}
