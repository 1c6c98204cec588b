//! Data formats, with the names and codes of the netlist language (tt-budabackend,
//! `docs/public/dataformats.md`).

use std::fmt;

/// Format of the data in a queue, an operand or an accumulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DataFormat {
    /// IEEE binary32.
    Float32,
    /// IEEE binary16, exponent of 5 bits.
    Float16,
    /// Block format with a shared exponent of 5 bits, sign and 7 bits each.
    Bfp8,
    /// Block format with a shared exponent of 5 bits, sign and 3 bits each.
    Bfp4,
    /// 19-bit float in 32 bits.
    Tf32,
    /// bfloat16, exponent of 8 bits.
    Float16B,
    /// Block format with a shared exponent of 8 bits, sign and 7 bits each.
    Bfp8B,
    /// Block format with a shared exponent of 8 bits, sign and 3 bits each.
    Bfp4B,
    /// 32-bit integer, sign and magnitude.
    Int32,
    /// 16-bit unsigned integer.
    UInt16,
    /// 8-bit float with an exponent of 5 bits.
    Lf8,
    /// Block format with a shared exponent of 5 bits, sign and 1 bit each.
    Bfp2,
    /// 8-bit integer, sign and magnitude.
    Int8,
    /// Block format with a shared exponent of 8 bits, sign and 1 bit each.
    Bfp2B,
    /// 8-bit float with an exponent of 4 bits.
    Fp8E4m3,
    /// 8-bit unsigned integer.
    UInt8,
    /// Bytes without a meaning of their own.
    RawUInt8,
    /// 16-bit words without a meaning of their own.
    RawUInt16,
    /// 32-bit words without a meaning of their own.
    RawUInt32,
}

impl DataFormat {
    /// All formats: name in netlists and code in tile headers and descriptors (tt-budabackend,
    /// `common/model/base_types.hpp`).
    pub const ALL: [(DataFormat, &'static str, u8); 19] = [
        (DataFormat::Float32, "Float32", 0),
        (DataFormat::Float16, "Float16", 1),
        (DataFormat::Bfp8, "Bfp8", 2),
        (DataFormat::Bfp4, "Bfp4", 3),
        (DataFormat::Tf32, "Tf32", 4),
        (DataFormat::Float16B, "Float16_b", 5),
        (DataFormat::Bfp8B, "Bfp8_b", 6),
        (DataFormat::Bfp4B, "Bfp4_b", 7),
        (DataFormat::Int32, "Int32", 8),
        (DataFormat::UInt16, "UInt16", 9),
        (DataFormat::Lf8, "Lf8", 10),
        (DataFormat::Bfp2, "Bfp2", 11),
        (DataFormat::Int8, "Int8", 14),
        (DataFormat::Bfp2B, "Bfp2_b", 15),
        (DataFormat::Fp8E4m3, "Fp8_e4m3", 0x1a),
        (DataFormat::UInt8, "UInt8", 30),
        (DataFormat::RawUInt8, "RawUInt8", 0xf0),
        (DataFormat::RawUInt16, "RawUInt16", 0xf1),
        (DataFormat::RawUInt32, "RawUInt32", 0xf2),
    ];

    /// Floats with an exponent of 5 bits, by the language's rules.
    pub fn is_exponent_a(self) -> bool {
        matches!(self, Self::Float16 | Self::Bfp8 | Self::Bfp4 | Self::Bfp2)
    }

    /// Floats with an exponent of 8 bits, by the language's rules.
    pub fn is_exponent_b(self) -> bool {
        matches!(self, Self::Float16B | Self::Bfp8B | Self::Bfp4B | Self::Bfp2B)
    }

    /// Integers that the matrix unit computes with.
    pub fn is_integer(self) -> bool {
        matches!(self, Self::Int8 | Self::UInt8 | Self::Int32 | Self::UInt16)
    }

    /// The name in netlists.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(format, ..)| *format == self).expect("ALL lists every format").1
    }
}

impl fmt::Display for DataFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
