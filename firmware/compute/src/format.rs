//! Element types of tiles, as the coprocessor knows them.

/// Type of the elements of a tile in L1 (`DataFormat` of the public tt-llk). The low four bits of
/// its number are the code of unpackers and packer (FormatConversion.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(u32)]
pub enum Format {
    /// 32-bit floating point.
    Float32 = 0,
    /// bfloat16.
    #[default]
    Bf16 = 5,
    /// Eight bits for an element, and an exponent for sixteen of them.
    Bfp8 = 6,
    /// 32-bit integer, in two's complement for the vector unit's functions. Dst must be wide.
    Int32 = 8,
    /// 16-bit integer without sign: opaque to all units but the vector unit. In a wide Dst it is
    /// the upper half of an element.
    UInt16 = 9,
    /// Eight bits: sign and magnitude, so from -127 to 127. Dst must be wide: it has integers of 32
    /// bits with sign and magnitude, which the packer saturates.
    Int8 = 14,
    /// 32-bit integer without sign. Dst must be wide.
    UInt32 = 24,
    /// 8-bit integer without sign, otherwise as [`Format::Int8`].
    UInt8 = 30,
}

/// Elements of a tile.
const TILE: u32 = 1024;
/// SrcA and SrcB have no more of FP32 than TF32.
const TF32: u32 = 4;

impl Format {
    /// The format of a number, which an argument carries; what has none is bfloat16.
    #[inline(always)]
    pub const fn of(code: u32) -> Self {
        match code {
            0 => Self::Float32,
            6 => Self::Bfp8,
            8 => Self::Int32,
            9 => Self::UInt16,
            14 => Self::Int8,
            24 => Self::UInt32,
            30 => Self::UInt8,
            _ => Self::Bf16,
        }
    }
    /// Its code.
    #[inline(always)]
    pub const fn code(self) -> u32 {
        self as u32 & 0xF
    }
    /// The code of what unpackers make of it.
    #[inline(always)]
    pub const fn in_src(self) -> u32 {
        match self {
            Self::Float32 => TF32,
            _ => self.code(),
        }
    }
    /// Whether it is an integer of eight bits, with which the matrix unit can calculate.
    #[inline(always)]
    pub const fn is_int8(self) -> bool {
        matches!(self, Self::Int8 | Self::UInt8)
    }
    /// Whether Dst must have elements of 32 bits for all of it.
    #[inline(always)]
    pub const fn is_wide(self) -> bool {
        self.is_int8() || self.element_bytes() == 4
    }
    /// Whether copies go to Dst past SrcA, which has fewer bits.
    #[inline(always)]
    pub(crate) const fn goes_to_dst(self, wide: bool) -> bool {
        wide && self.element_bytes() == 4
    }
    /// Bytes of an element; of a block format, without the exponents.
    #[inline(always)]
    pub(crate) const fn element_bytes(self) -> u32 {
        match self {
            Self::Float32 | Self::Int32 | Self::UInt32 => 4,
            Self::Bf16 | Self::UInt16 => 2,
            Self::Bfp8 | Self::Int8 | Self::UInt8 => 1,
        }
    }
    /// Bytes of 32 elements side by side that are not in a tile.
    #[inline(always)]
    pub const fn row_bytes(self) -> u32 {
        self.tile_bytes() / 32
    }
    /// Bytes of a tile in L1.
    #[inline(always)]
    pub const fn tile_bytes(self) -> u32 {
        let exponents = if matches!(self, Self::Bfp8) { TILE / 16 } else { 0 };
        exponents + TILE * self.element_bytes()
    }
}
