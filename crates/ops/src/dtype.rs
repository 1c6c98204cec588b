//! Element types, with the names and sizes of the compiler's `DataType` (tt-mlir, `Target/Common/types.fbs`).

use std::fmt;

/// Element type of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DType {
    /// IEEE binary32.
    F32,
    /// IEEE binary16.
    F16,
    /// The upper half of binary32.
    BF16,
    /// Blocks of 16 values with one 8-bit exponent, each value a sign and 7 bits of magnitude.
    Bfp8,
    /// Blocks of 16 values with one 8-bit exponent, each value a sign and 3 bits of magnitude.
    Bfp4,
    /// Signed 32-bit integer.
    I32,
    /// Unsigned 32-bit integer.
    U32,
    /// Unsigned 16-bit integer.
    U16,
    /// Unsigned 8-bit integer.
    U8,
    /// A truth value, one byte of 0 or 1. The device has no such type; it appears on the host side of programs.
    Bool,
}

impl DType {
    /// All element types.
    pub const ALL: [DType; 10] = [
        DType::F32,
        DType::F16,
        DType::BF16,
        DType::Bfp8,
        DType::Bfp4,
        DType::I32,
        DType::U32,
        DType::U16,
        DType::U8,
        DType::Bool,
    ];

    /// Whether values are floating point, blocks included.
    pub fn is_float(self) -> bool {
        matches!(self, DType::F32 | DType::F16 | DType::BF16 | DType::Bfp8 | DType::Bfp4)
    }

    /// Whether values share an exponent in blocks of 16 and exist only in tiles.
    pub fn is_block(self) -> bool {
        matches!(self, DType::Bfp8 | DType::Bfp4)
    }

    /// Bytes of one element, `None` for block types, whose size is that of a tile.
    pub fn size(self) -> Option<usize> {
        match self {
            DType::F32 | DType::I32 | DType::U32 => Some(4),
            DType::F16 | DType::BF16 | DType::U16 => Some(2),
            DType::U8 | DType::Bool => Some(1),
            DType::Bfp8 | DType::Bfp4 => None,
        }
    }

    /// Bytes of a 32x32 tile. Block types hold 64 exponents before 1024 values.
    pub fn tile_bytes(self) -> usize {
        match self {
            DType::Bfp8 => 64 + 1024,
            DType::Bfp4 => 64 + 512,
            other => 1024 * other.size().unwrap_or(0),
        }
    }

    /// Name as printed in the compiler's text form (`bf16`, `si32`, ...).
    pub fn name(self) -> &'static str {
        match self {
            DType::F32 => "f32",
            DType::F16 => "f16",
            DType::BF16 => "bf16",
            DType::Bfp8 => "bfp_bf8",
            DType::Bfp4 => "bfp_bf4",
            DType::I32 => "si32",
            DType::U32 => "u32",
            DType::U16 => "u16",
            DType::U8 => "u8",
            DType::Bool => "bool",
        }
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
