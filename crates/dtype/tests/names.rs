//! The table of names: unique in every language, and read back.

use std::collections::HashSet;
use tilework_dtype::{DType, Kind};

/// A format and its names; the last column is the netlists' code.
type Names = (DType, &'static str, &'static str, &'static str, &'static str, Option<u8>);

/// What every format is called: here, by NumPy, by the compiler and in netlists with the code
/// there. A format that a language lacks has nothing in its column.
const TABLE: &[Names] = &[
    (DType::F64, "f64", "<f8", "f64", "", None),
    (DType::F32, "f32", "<f4", "f32", "Float32", Some(0)),
    (DType::Tf32, "tf32", "", "", "Tf32", Some(4)),
    (DType::F16, "f16", "<f2", "f16", "Float16", Some(1)),
    (DType::BF16, "bf16", "", "bf16", "Float16_b", Some(5)),
    (DType::Lf8, "lf8", "", "", "Lf8", Some(10)),
    (DType::Fp8E4m3, "fp8_e4m3", "", "", "Fp8_e4m3", Some(26)),
    (DType::Bfp8, "bfp8", "", "bfp_f8", "Bfp8", Some(2)),
    (DType::Bfp4, "bfp4", "", "bfp_f4", "Bfp4", Some(3)),
    (DType::Bfp2, "bfp2", "", "bfp_f2", "Bfp2", Some(11)),
    (DType::Bfp8B, "bfp8_b", "", "bfp_bf8", "Bfp8_b", Some(6)),
    (DType::Bfp4B, "bfp4_b", "", "bfp_bf4", "Bfp4_b", Some(7)),
    (DType::Bfp2B, "bfp2_b", "", "bfp_bf2", "Bfp2_b", Some(15)),
    (DType::I64, "i64", "<i8", "si64", "", None),
    (DType::I32, "i32", "<i4", "si32", "Int32", Some(8)),
    (DType::I16, "i16", "<i2", "si16", "", None),
    (DType::I8, "i8", "|i1", "si8", "Int8", Some(14)),
    (DType::U64, "u64", "<u8", "u64", "", None),
    (DType::U32, "u32", "<u4", "u32", "", None),
    (DType::U16, "u16", "<u2", "u16", "UInt16", Some(9)),
    (DType::U8, "u8", "|u1", "u8", "UInt8", Some(30)),
    (DType::RawU32, "raw_u32", "", "", "RawUInt32", Some(242)),
    (DType::RawU16, "raw_u16", "", "", "RawUInt16", Some(241)),
    (DType::RawU8, "raw_u8", "", "", "RawUInt8", Some(240)),
    (DType::Bool, "bool", "|b1", "bool", "", None),
];

#[test]
fn every_language_has_its_names() {
    assert_eq!(TABLE.iter().map(|row| row.0).collect::<Vec<_>>(), DType::ALL);
    for &(format, name, descr, mlir, buda, code) in TABLE {
        let or_own = |other: &'static str| if other.is_empty() { name } else { other };
        assert_eq!(format.name(), name);
        assert_eq!(format.npy_descr().unwrap_or_default(), descr, "{name}");
        assert_eq!(format.mlir_name(), or_own(mlir), "{name}");
        assert_eq!(format.buda_name(), or_own(buda), "{name}");
        assert_eq!(format.buda_code(), code, "{name}");
    }
}

#[test]
fn no_two_formats_share_a_name() {
    let names: [fn(DType) -> &'static str; 3] = [DType::name, DType::mlir_name, DType::buda_name];
    for name in names {
        let all: HashSet<_> = DType::ALL.iter().map(|&format| name(format)).collect();
        assert_eq!(all.len(), DType::ALL.len());
    }
    let codes: HashSet<_> = DType::ALL.iter().filter_map(|format| format.buda_code()).collect();
    assert_eq!(codes.len(), 19);
}

#[test]
fn names_are_read_back() {
    for &format in DType::ALL {
        assert_eq!(DType::of_name(format.name()), Some(format));
        if let Some(descr) = format.npy_descr() {
            assert_eq!(DType::of_npy_descr(descr), Some(format));
        }
    }
    assert_eq!(DType::of_name("f63"), None);
}

#[test]
fn byte_order_matters_where_there_are_bytes_to_order() {
    for descr in ["|u1", "<u1", ">u1", "=u1"] {
        assert_eq!(DType::of_npy_descr(descr), Some(DType::U8), "{descr}");
    }
    for descr in [">f4", "=f4", "|f4", "f4", "", "<", "u1", "<u16", "é1"] {
        assert_eq!(DType::of_npy_descr(descr), None, "{descr}");
    }
}

#[test]
fn sizes_follow_from_bits() {
    for &format in DType::ALL {
        let (bits, whole) = (format.bits() as usize, format.bytes());
        assert_eq!(whole, (!format.is_block()).then_some(bits / 8), "{format:?}");
        let exponents = if format.is_block() { 64 } else { 0 };
        assert_eq!(format.tile_bytes(), exponents + 1024 * bits / 8, "{format:?}");
        assert_eq!(format.is_block(), format.kind() == Kind::Block);
    }
    assert_eq!([DType::F32, DType::BF16, DType::Bfp8B, DType::Bfp4B].map(DType::tile_bytes), [4096, 2048, 1088, 576]);
}
