//! Element types of tiles, as the coprocessor knows them.

/// Type of the elements of a tile in L1 (FormatConversion.md: the codes of unpackers and packer).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub enum Format {
    /// 32-bit floating point.
    Float32 = 0,
    /// bfloat16.
    Bf16 = 5,
    /// 32-bit integer, in two's complement for the vector unit's functions.
    Int32 = 8,
    /// Eight bits for an element, and an exponent for sixteen of them.
    Bfp8 = 6,
}

/// Elements of a tile.
const TILE: u32 = 1024;
/// SrcA and SrcB have no more of FP32 than TF32.
const TF32: u32 = 4;

impl Format {
    /// The format of a code, which an argument carries; what has none is bfloat16.
    #[inline(always)]
    pub const fn of(code: u32) -> Self {
        match code {
            0 => Self::Float32,
            6 => Self::Bfp8,
            8 => Self::Int32,
            _ => Self::Bf16,
        }
    }
    /// Its code.
    #[inline(always)]
    pub const fn code(self) -> u32 {
        self as u32
    }
    /// The code of what unpackers make of it.
    #[inline(always)]
    pub const fn in_src(self) -> u32 {
        match self {
            Self::Float32 => TF32,
            _ => self.code(),
        }
    }
    /// Whether copies go to Dst past SrcA, which has fewer bits.
    #[inline(always)]
    pub(crate) const fn goes_to_dst(self, wide: bool) -> bool {
        wide && matches!(self, Self::Float32 | Self::Int32)
    }
    /// Bytes of 32 elements side by side that are not in a tile.
    #[inline(always)]
    pub const fn row_bytes(self) -> u32 {
        self.tile_bytes() / 32
    }
    /// Bytes of a tile in L1.
    #[inline(always)]
    pub const fn tile_bytes(self) -> u32 {
        match self {
            Self::Float32 | Self::Int32 => 4 * TILE,
            Self::Bf16 => 2 * TILE,
            Self::Bfp8 => TILE + TILE / 16,
        }
    }
}
