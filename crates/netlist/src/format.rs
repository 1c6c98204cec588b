//! Data formats, with the names and codes of the netlist language (tt-budabackend,
//! `docs/public/dataformats.md`).

use tilework_dtype::DType;

/// The formats that a netlist can name, in the order of their codes. `Tf32` has a name and a code,
/// but is one of the hardware's formats, not of the language's.
pub const FORMATS: [DType; 18] = [
    DType::F32,
    DType::F16,
    DType::Bfp8,
    DType::Bfp4,
    DType::BF16,
    DType::Bfp8B,
    DType::Bfp4B,
    DType::I32,
    DType::U16,
    DType::Lf8,
    DType::Bfp2,
    DType::I8,
    DType::Bfp2B,
    DType::Fp8E4m3,
    DType::U8,
    DType::RawU8,
    DType::RawU16,
    DType::RawU32,
];

/// Floats with an exponent of 5 bits, by the language's rules.
pub(crate) fn is_exponent_a(format: DType) -> bool {
    matches!(format, DType::F16 | DType::Bfp8 | DType::Bfp4 | DType::Bfp2)
}

/// Floats with an exponent of 8 bits, by the language's rules.
pub(crate) fn is_exponent_b(format: DType) -> bool {
    matches!(format, DType::BF16 | DType::Bfp8B | DType::Bfp4B | DType::Bfp2B)
}

/// Integers that the matrix unit computes with.
pub(crate) fn is_integer(format: DType) -> bool {
    matches!(format, DType::I8 | DType::U8 | DType::I32 | DType::U16)
}
