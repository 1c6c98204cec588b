//! Conversions, shapes and tensors.

use half::{bf16, f16};
use proptest::prelude::*;
use tilework_dtype::convert::{Element, bf16_from_f32};
use tilework_ops::{
    Binary, DType, ELEMENT_TYPES, MAX_ELEMENTS, Reason, Shape, Tensor, binary, bitcast_convert, typecast,
};

use crate::common::{broadcast, broadcastable, floats, ints, shape};

proptest! {
    #[test]
    fn bfloat16_rounds_to_the_nearest(bits in any::<u32>()) {
        let value = f32::from_bits(bits);
        let rounded = bf16_from_f32(value);
        if value.is_nan() {
            prop_assert!(rounded.is_nan());
        } else {
            // The conversion of the `half` crate is an independent reference.
            prop_assert_eq!(rounded.to_bits(), bf16::from_f32(value).to_bits());
        }
    }

    #[test]
    fn wide_types_survive_narrow_ones_that_hold_them(v in -128i64..256) {
        for dtype in [DType::F32, DType::BF16, DType::F16, DType::I32] {
            let there = typecast(&ints(DType::I32, &[1], &[v]), dtype);
            prop_assert_eq!(typecast(&there, DType::I32).to_i64(), vec![v]);
        }
    }

    #[test]
    fn bytes_and_back(values in prop::collection::vec(any::<u32>(), 0..20)) {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        for dtype in [DType::F32, DType::I32, DType::U32, DType::BF16, DType::F16, DType::U16, DType::U8] {
            let n = bytes.len() / dtype.bytes().unwrap();
            let tensor = Tensor::from_le_bytes(dtype, shape(&[n]), &bytes).unwrap();
            prop_assert_eq!(tensor.to_le_bytes(), bytes.clone());
        }
    }

    #[test]
    fn shapes_broadcast_as_numpy_says((a, b) in broadcastable()) {
        let wanted = broadcast(&a, &b);
        prop_assert_eq!(shape(&a).broadcast(&shape(&b)).unwrap(), shape(&wanted));
    }
}

#[test]
fn bfloat16_ties_go_to_even() {
    for (bits, wanted) in [
        (0x3f80_8000, 0x3f80),
        (0x3f81_8000, 0x3f82),
        (0x3f80_8001, 0x3f81),
        (0x7f7f_ffff, 0x7f80),
        (0x8000_0000, 0x8000),
        (0x0000_8001, 0x0001),
    ] {
        assert_eq!(bf16_from_f32(f32::from_bits(bits)).to_bits(), wanted, "{bits:#x}");
    }
}

#[test]
fn floats_become_integers_as_the_kernels_do() {
    let inf = f32::INFINITY;
    let cases = [
        (0.9, 0, 0, 1, 0),
        (-0.9, 0, 0, 0, 0),
        (2.5, 2, 2, 3, 2),
        (3.5, 3, 3, 4, 3),
        (-7.9, -7, 0, 0, 249),
        (300.2, 300, 300, 300, 44),
        (70000.0, 70000, 70000, 65535, 112),
        (3e9, i64::from(i32::MAX), 3_000_000_000, 65535, 0),
        (inf, i64::from(i32::MAX), i64::from(u32::MAX), 65535, 0),
        (-inf, i64::from(i32::MIN), 0, 0, 0),
        (f32::NAN, i64::from(i32::MAX), i64::from(u32::MAX), 65535, 0),
    ];
    for (value, i32_, u32_, u16_, u8_) in cases {
        let cast = |dtype| typecast(&floats(&[1], &[value]), dtype).to_i64()[0];
        let found = (cast(DType::I32), cast(DType::U32), cast(DType::U16), cast(DType::U8));
        assert_eq!(found, (i32_, u32_, u16_, u8_), "{value}");
    }
}

#[test]
fn integers_become_others_as_the_kernels_do() {
    let input = ints(DType::I32, &[4], &[-1, 70000, 255, i64::from(i32::MIN)]);
    assert_eq!(typecast(&input, DType::U32).to_i64(), [0xffff_ffff, 70000, 255, 0x8000_0000]);
    assert_eq!(typecast(&input, DType::U16).to_i64(), [0, 65535, 255, 0]);
    assert_eq!(typecast(&input, DType::U8).to_i64(), [255, 112, 255, 0]);
    assert_eq!(typecast(&input, DType::Bool).to_i64(), [1, 1, 1, 1]);
    // 2^24 + 1 lies between two float32 values; the tie goes to the even one.
    assert_eq!(typecast(&ints(DType::I32, &[1], &[(1 << 24) + 1]), DType::F32).to_f32(), [16_777_216.0]);
    assert_eq!(typecast(&floats(&[3], &[0.0, -0.5, f32::NAN]), DType::Bool).to_i64(), [0, 1, 1]);
}

#[test]
fn halves_overflow_to_infinity() {
    assert_eq!(f16::from_f32(65520.0), f16::INFINITY);
    assert_eq!(<f16 as Element>::from_f32(65519.0).to_f32(), 65504.0);
}

#[test]
fn bits_are_reinterpreted() {
    let tensor = bitcast_convert(&floats(&[2], &[1.0, -0.0]), DType::U32).unwrap();
    assert_eq!(tensor.to_i64(), [0x3f80_0000, 0x8000_0000]);
    assert!(bitcast_convert(&floats(&[1], &[1.0]), DType::BF16).is_err());
}

#[test]
fn shapes_beyond_memory_are_refused() {
    assert!(matches!(Shape::new([MAX_ELEMENTS, 2]), Err(Reason::TooLarge(_))));
    assert!(Shape::new([usize::MAX, usize::MAX]).is_err());
    assert!(Shape::new([0, usize::MAX, usize::MAX]).is_err());
    assert_eq!(Shape::new([0, 3]).unwrap().elements(), 0);
    assert_eq!(Shape::scalar().elements(), 1);
}

#[test]
fn errors_name_operation_and_operands() {
    let error = binary(Binary::Add, &floats(&[2], &[0.0; 2]), &floats(&[3], &[0.0; 3]), DType::F32).unwrap_err();
    assert_eq!(error.to_string(), "add(f32 [2], f32 [3]): shapes [2] and [3] do not broadcast");
    let error = Tensor::new(shape(&[2, 2]), vec![0f32; 3]).unwrap_err();
    assert_eq!(error.to_string(), "tensor(): 3 values for [2x2], which has 4 elements");
}

#[test]
fn tensors_have_the_types_of_device_programs_only() {
    for &dtype in DType::ALL {
        let (one, has) = (shape(&[1]), ELEMENT_TYPES.contains(&dtype));
        assert_eq!(Tensor::from_f32(dtype, one.clone(), &[1.0]).is_ok(), has, "{dtype:?}");
        assert_eq!(Tensor::from_i64(dtype, one.clone(), &[1]).is_ok(), has, "{dtype:?}");
        if let (false, Some(size)) = (has, dtype.bytes()) {
            let refused = Tensor::from_le_bytes(dtype, one, &vec![0; size]).unwrap_err();
            assert_eq!(refused.reason, Reason::Type(dtype));
        }
    }
}
