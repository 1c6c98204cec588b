//! Element types of tiles, as the coprocessor knows them.

/// Type of the elements of a tile in L1: its number (`DataFormat` of the public tt-llk), which an
/// argument carries. The low four bits are the code of unpackers and packer (FormatConversion.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Format(u32);

/// Elements of a tile.
const TILE: u32 = 1024;
/// Bytes of the exponents of a tile.
const EXPONENTS: u32 = TILE / 16;
/// SrcA and SrcB have no more of FP32 than TF32.
const TF32: u32 = 4;
/// The two low bits of a code say how many bytes an element has: 4, 2 or 1.
const SIZE: u32 = 3;

#[expect(non_upper_case_globals, reason = "they are the values of the type, as of an enumeration")]
impl Format {
    /// 32-bit floating point.
    pub const Float32: Self = Self(0);
    /// bfloat16.
    pub const Bf16: Self = Self(5);
    /// Eight bits for an element, and an exponent for sixteen of them.
    pub const Bfp8: Self = Self(6);
    /// 32-bit integer, in two's complement for the vector unit's functions. Dst must be wide.
    pub const Int32: Self = Self(8);
    /// 16-bit integer without sign: opaque to all units but the vector unit. In a wide Dst it is
    /// the upper half of an element.
    pub const UInt16: Self = Self(9);
    /// Eight bits: sign and magnitude, so from -127 to 127. Dst must be wide: it has integers of 32
    /// bits with sign and magnitude, which the packer saturates.
    pub const Int8: Self = Self(14);
    /// 32-bit integer without sign. Dst must be wide.
    pub const UInt32: Self = Self(24);
    /// 8-bit integer without sign, otherwise as [`Format::Int8`].
    pub const UInt8: Self = Self(30);
}

impl Format {
    /// The format of a number, which must be that of one of the constants.
    #[inline(always)]
    pub const fn of(number: u32) -> Self {
        Self(number)
    }
    /// Its code.
    #[inline(always)]
    pub const fn code(self) -> u32 {
        self.0 & 0xF
    }
    /// The code of what unpackers make of it.
    #[inline(always)]
    pub const fn in_src(self) -> u32 {
        if matches!(self, Self::Float32) { TF32 } else { self.code() }
    }
    /// Whether it is an integer of eight bits, with which the matrix unit can calculate.
    #[inline(always)]
    pub const fn is_int8(self) -> bool {
        self.code() == Self::Int8.code()
    }
    /// Whether Dst must have elements of 32 bits for all of it.
    #[inline(always)]
    pub const fn is_wide(self) -> bool {
        self.is_int8() || self.has_32_bits()
    }
    const fn has_32_bits(self) -> bool {
        self.0 & SIZE == 0
    }
    /// Whether copies go to Dst past SrcA, which has fewer bits.
    #[inline(always)]
    pub(crate) const fn goes_to_dst(self, wide: bool) -> bool {
        wide && self.has_32_bits()
    }
    /// What passes between the two conversions of the packer: Dst's own type, unless it only
    /// becomes narrower. Integers of 32 bits become narrower in the first one, which saturates.
    #[inline(always)]
    pub(crate) const fn between(self, wide: bool) -> Self {
        let own = wide && self.has_32_bits() || self.is_int8() || matches!(self, Self::UInt16);
        if own { self } else { Self::Bf16 }
    }
    /// Bytes of an element; of a block format, without the exponents.
    #[inline(always)]
    pub(crate) const fn element_bytes(self) -> u32 {
        4 >> (self.0 & SIZE)
    }
    /// Bytes of 32 elements side by side that are not in a tile.
    #[inline(always)]
    pub const fn row_bytes(self) -> u32 {
        self.tile_bytes() / 32
    }
    /// Bytes of a tile in L1.
    #[inline(always)]
    pub const fn tile_bytes(self) -> u32 {
        let exponents = if matches!(self, Self::Bfp8) { EXPONENTS } else { 0 };
        exponents + TILE * self.element_bytes()
    }
}
