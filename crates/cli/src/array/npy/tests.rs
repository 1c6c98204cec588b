//! The reader of `.npy` files against NumPy's format and against hostile bytes.

use super::*;
use npyz::WriterBuilder;

fn parse(bytes: &[u8]) -> Result<(DType, Vec<u64>), String> {
    Header::parse(bytes, bytes.len() as u64).map(|h| (h.dtype, h.shape))
}

fn file(header: &str, elements: usize) -> Vec<u8> {
    let mut out = b"\x93NUMPY\x01\x00".to_vec();
    out.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
    out.extend(header.as_bytes());
    out.resize(out.len() + elements, 0);
    out
}

#[test]
fn what_another_library_writes_is_read() {
    let mut bytes = Vec::new();
    let mut writer = npyz::WriteOptions::new().default_dtype().shape(&[2, 3]).writer(&mut bytes).begin_nd().unwrap();
    writer.extend([1u32, 2, 3, 4, 5, 6]).unwrap();
    writer.finish().unwrap();
    assert_eq!(parse(&bytes), Ok((DType::U32, vec![2, 3])));
}

#[test]
fn what_is_written_another_library_reads() {
    for shape in [vec![], vec![4], vec![2, 2], vec![1, 2, 2]] {
        let mut bytes = Array::header(DType::I16, &shape);
        assert_eq!(bytes.len() % 64, 0);
        for value in [-1i16, 2, -3, 4].iter().take(shape.iter().product::<u64>() as usize) {
            bytes.extend(value.to_le_bytes());
        }
        let npy = npyz::NpyFile::new(&bytes[..]).unwrap();
        assert_eq!(npy.shape(), &shape[..]);
        let values: Vec<i16> = npy.into_vec().unwrap();
        assert_eq!(values, &[-1i16, 2, -3, 4][..values.len()]);
        assert_eq!(parse(&bytes), Ok((DType::I16, shape)));
    }
}

#[test]
fn every_dtype_keeps_its_name() {
    for dtype in super::super::DTYPES {
        let descr = dtype.npy_descr().unwrap();
        assert_eq!(DType::of_npy_descr(descr), Some(dtype));
        let bytes =
            file(&format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (), }}"), dtype.bytes().unwrap());
        assert_eq!(parse(&bytes), Ok((dtype, vec![])));
    }
    assert_eq!(DType::of_npy_descr("<u1"), Some(DType::U8));
    assert_eq!(DType::of_npy_descr("<u1x"), None);
}

#[test]
fn broken_files_are_refused_with_a_reason() {
    let refused = |bytes: &[u8], reason: &str| {
        let message = parse(bytes).unwrap_err();
        assert!(message.contains(reason), "{message}\nexpected: {reason}");
    };
    refused(b"", "not a .npy file");
    refused(b"PK\x03\x04 a zip archive", "not a .npy file");
    refused(b"\x93NUMPY\x09\x00\x00\x00", "version 9.0; expected 1, 2 or 3");
    refused(b"\x93NUMPY\x01\x00\xff\xff", "should have 65535 bytes from offset 10");
    refused(&file(&" ".repeat(0xFFFF), 12)[..0x1_0000], "a header ends within 65536 bytes");
    refused(b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "should have 4294967295 bytes from offset 12");
    let ok = "{'descr': '<u4', 'fortran_order': False, 'shape': (3,), }\n";
    assert!(parse(&file(ok, 12)).is_ok());
    refused(&file(ok, 11), "need 12 bytes of elements from offset 68, found 11: the file is truncated");
    refused(&file(ok, 13), "need 12 bytes of elements from offset 68, found 13");
    refused(&file(&ok.replace("<u4", ">u4"), 12), "'>u4' is big-endian");
    refused(&file(&ok.replace("<u4", "|O"), 12), "dtype '|O' is not supported; expected one of u8, i8");
    refused(&file(&ok.replace("'<u4'", "[('a', '<u4')]"), 12), "records and nested types are not supported");
    refused(&file(&ok.replace("False", "maybe"), 12), "found 'm' in the header, expected True or False");
    refused(&file(&ok.replace("(3,)", "(-3,)"), 12), "expected a dimension");
    refused(&file(&ok.replace("'shape'", "'shapes'"), 12), "unknown key 'shapes'");
    refused(&file("{'descr': '<u4'}", 12), "the header has no 'fortran_order'");
    refused(&file("{'descr': '<u4", 12), "expected a string that ends");
    refused(&file(&ok.replace("(3,)", "(4294967296, 4294967296)"), 12), "more elements than fit");
    refused(&file(&ok.replace("(3,)", &format!("({})", "1,".repeat(33))), 12), "more than 32 dimensions");
    refused(&file(&ok.replace("(3,)", &"(".repeat(9000)), 12), "expected a dimension");
}

#[test]
fn an_array_longer_than_the_part_that_is_read_for_its_header() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let budget = usize::try_from(MAX_HEADER_BYTES).unwrap();
    let header = Array::header(DType::U8, &[1]).len();
    for elements in [budget - header - 1, budget - header, budget - header + 1, 3 * budget] {
        let data: Vec<u8> = (0..elements).map(|i| (i % 251) as u8).collect();
        let array = Array { dtype: DType::U8, shape: vec![elements as u64], data };
        array.write(&path).unwrap();
        assert!(Array::read(&path).unwrap() == array, "{elements} elements");
    }
}

#[test]
fn fortran_order_matters_only_beyond_one_dimension() {
    let header = "{'descr': '<u4', 'fortran_order': True, 'shape': (3,), }";
    assert!(parse(&file(header, 12)).is_ok());
    assert!(parse(&file(&header.replace("(3,)", "(3, 1)"), 12)).unwrap_err().contains("Fortran order"));
}

#[test]
fn an_empty_dimension_makes_an_empty_array() {
    let header = "{'descr': '<u4', 'fortran_order': False, 'shape': (18446744073709551615, 2, 0), }";
    assert!(parse(&file(header, 0)).is_ok());
}

proptest::proptest! {
    #[test]
    fn any_header_is_read_or_refused(header in "[-{}'a-z:(), 0-9<>|\"TFL]{0,120}", elements in 0usize..40) {
        if let Ok((dtype, shape)) = parse(&file(&header, elements)) {
            proptest::prop_assert_eq!(array_bytes(dtype, &shape), Some(elements as u64));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(
        version in 0u8..5,
        rest in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..200),
    ) {
        let mut bytes = b"\x93NUMPY".to_vec();
        bytes.push(version);
        bytes.extend(rest);
        let _ = parse(&bytes);
    }

    #[test]
    fn a_written_header_is_read_back(which in 0..super::super::DTYPES.len(), shape in proptest::collection::vec(0u64..5, 0..5)) {
        let dtype = super::super::DTYPES[which];
        let mut bytes = Array::header(dtype, &shape);
        bytes.resize(bytes.len() + array_bytes(dtype, &shape).unwrap() as usize, 0);
        proptest::prop_assert_eq!(parse(&bytes), Ok((dtype, shape)));
    }
}
