//! Conversions against straightforward references, and their general laws: what a format holds
//! comes back, rounding keeps the order, and the nearest value is taken.

use half::bf16;
use proptest::prelude::*;
use tilework_dtype::DType;
use tilework_dtype::block::{BLOCK, BlockFormat};
use tilework_dtype::convert::{
    Element, bf16_from_f32, cast, f32_from_bf16, i32_from_f32, u8_from_f32, u16_from_f32, u32_from_f32,
};
use tilework_dtype::element::{decode, encode};

/// Formats that a word of 32 bits holds, one element each.
fn alone() -> impl Iterator<Item = DType> {
    DType::ALL.iter().copied().filter(|format| !format.is_block() && format.bits() <= 32)
}

fn blocks() -> impl Iterator<Item = (DType, BlockFormat)> {
    DType::ALL.iter().filter_map(|&format| Some((format, BlockFormat::of(format)?)))
}

/// A magnitude under a shared exponent, by its definition and in double precision.
fn block_value(magnitude: i32, bias: i32, magnitude_bits: u32, exponent: u8) -> f32 {
    (f64::from(magnitude) * 2f64.powi(i32::from(exponent) - bias - (magnitude_bits as i32 - 1))) as f32
}

/// Finite values of all sizes, zeros and ties among them.
fn finite() -> impl Strategy<Value = f32> {
    prop_oneof![
        any::<u32>().prop_map(f32::from_bits).prop_filter("finite", |v| v.is_finite()),
        (-600i32..600).prop_map(|n| n as f32 / 128.0),
        (-70000i32..70000).prop_map(|n| n as f32 / 2.0),
        Just(0.0),
        Just(-0.0),
    ]
}

#[test]
fn block_elements_decode_to_their_definition() {
    for (format, block) in blocks() {
        let bias = if block.small_exponent { 15 } else { 127 };
        let exponents = if block.small_exponent { 0..=31 } else { 0..=255 };
        for exponent in exponents {
            for magnitude in 1..1u8 << block.magnitude {
                let wanted = block_value(i32::from(magnitude), bias, block.magnitude, exponent);
                assert_eq!(block.decode(magnitude, exponent), wanted, "{format:?} {magnitude} {exponent}");
                let negative = 1u8 << block.magnitude | magnitude;
                assert_eq!(block.decode(negative, exponent), -wanted, "{format:?} -{magnitude} {exponent}");
            }
            assert_eq!(block.decode(0, exponent).to_bits(), 0);
            let lone_sign = if block.small_exponent { -65536.0 } else { f32::NEG_INFINITY };
            assert_eq!(block.decode(1 << block.magnitude, exponent), lone_sign);
        }
    }
}

#[test]
fn elements_of_16_bits_and_fewer_come_back() {
    for format in alone().filter(|format| format.bits() <= 16 && *format != DType::Bool) {
        for bits in 0..1u32 << format.bits() {
            let value = decode(format, bits);
            let back = encode(format, value);
            match format {
                // A sign without a magnitude is zero, which has none.
                DType::I8 | DType::I16 if value == 0.0 => assert_eq!(back, 0),
                _ if value.is_nan() => assert!(decode(format, back).is_nan(), "{format:?} {bits:#x}"),
                _ => assert_eq!(back, bits, "{format:?} {bits:#x}"),
            }
        }
    }
    assert_eq!([0.0, -0.0, 3.0, -0.1].map(|v| encode(DType::Bool, v)), [0, 0, 1, 1]);
    assert_eq!([0, 1].map(|bits| decode(DType::Bool, bits)), [0.0, 1.0]);
}

#[test]
fn formats_without_a_word_give_nothing() {
    for format in DType::ALL.iter().copied().filter(|format| format.is_block() || format.bits() > 32) {
        assert_eq!((encode(format, 1.5), decode(format, 0x3fc0_0000)), (0, 0.0), "{format:?}");
    }
}

#[test]
fn bfloat16_goes_both_ways_without_loss() {
    for bits in 0..=u16::MAX {
        let value = f32_from_bf16(bf16::from_bits(bits));
        assert_eq!(value.to_bits(), u32::from(bits) << 16);
        let back = bf16_from_f32(value);
        assert_eq!(back.is_nan(), value.is_nan());
        assert!(value.is_nan() || back.to_bits() == bits);
    }
}

proptest! {
    #[test]
    fn bfloat16_rounds_as_another_author_does(bits in any::<u32>()) {
        let value = f32::from_bits(bits);
        let found = bf16_from_f32(value);
        prop_assert_eq!(found.to_bits(), bf16::from_f32(value).to_bits());
    }

    #[test]
    fn rounding_twice_is_rounding_once(value in finite()) {
        for format in alone() {
            let once = decode(format, encode(format, value));
            prop_assert_eq!(decode(format, encode(format, once)).to_bits(), once.to_bits(), "{:?}", format);
        }
    }

    #[test]
    fn rounding_keeps_the_order(a in finite(), b in finite()) {
        let (low, high) = if a <= b { (a, b) } else { (b, a) };
        for format in alone().filter(|format| *format != DType::Bool) {
            let [low, high] = [low, high].map(|v| decode(format, encode(format, v)));
            prop_assert!(low <= high, "{:?}: {} {}", format, low, high);
        }
    }

    #[test]
    fn casts_to_integers_keep_the_order(a in finite(), b in finite()) {
        let (low, high) = if a <= b { (a, b) } else { (b, a) };
        prop_assert!(i32_from_f32(low) <= i32_from_f32(high));
        prop_assert!(u32_from_f32(low) <= u32_from_f32(high));
        prop_assert!(u16_from_f32(low) <= u16_from_f32(high));
        prop_assert!(bf16_from_f32(low) <= bf16_from_f32(high));
    }

    #[test]
    fn casts_to_integers_are_those_of_double_precision(value in finite()) {
        let exact = f64::from(value);
        prop_assert_eq!(f64::from(i32_from_f32(value)), exact.trunc().clamp(-2f64.powi(31), 2f64.powi(31) - 1.0));
        prop_assert_eq!(f64::from(u32_from_f32(value)), exact.trunc().clamp(0.0, 2f64.powi(32) - 1.0));
        prop_assert_eq!(f64::from(u16_from_f32(value)), exact.round().clamp(0.0, 65535.0));
        let low_byte = if exact.abs() < 2f64.powi(31) { (exact.trunc() as i64).rem_euclid(256) } else { 0 };
        prop_assert_eq!(i64::from(u8_from_f32(value)), low_byte);
    }

    #[test]
    fn integers_survive_the_types_that_hold_them(v in any::<i32>()) {
        prop_assert_eq!(<i32 as Element>::from_i64(v.into()), v);
        prop_assert_eq!(<u32 as Element>::from_i64(v.into()), v as u32);
        prop_assert_eq!(<u16 as Element>::from_i64(v.into()), v as u16);
        prop_assert_eq!(<u8 as Element>::from_i64(v.into()), v as u8);
        prop_assert_eq!(<f32 as Element>::from_i64(v.into()), v as f32);
        prop_assert_eq!(Element::to_i64(v), i64::from(v));
    }

    #[test]
    fn blocks_round_to_half_a_step(values in prop::collection::vec(finite(), 1..=BLOCK)) {
        for (format, block) in blocks().filter(|(_, block)| !block.small_exponent) {
            let mut rounded = values.clone();
            block.round(&mut rounded, false);
            let step = f64::from(block.decode(1, block.exponent(&values)));
            for (v, r) in values.iter().zip(&rounded) {
                // A denormal's exponent counts a hidden bit that it does not have.
                if v.is_subnormal() || r.is_infinite() {
                    continue;
                }
                let (error, sign) = (f64::from(*r) - f64::from(*v), v.is_sign_negative());
                let clamped = f64::from(v.abs()) > f64::from(r.abs()) && error.abs() <= step;
                prop_assert!(error.abs() <= step / 2.0 || clamped, "{:?}: {} to {}", format, v, r);
                prop_assert!(*r == 0.0 || r.is_sign_negative() == sign);
            }
        }
    }

    #[test]
    fn blocks_keep_what_they_hold(
        values in prop::collection::vec(finite(), 1..=BLOCK), truncate: bool,
    ) {
        for (format, block) in blocks() {
            let mut once = values.clone();
            block.round(&mut once, truncate);
            if once.iter().any(|v| v.is_infinite()) {
                continue;
            }
            let mut twice = once.clone();
            block.round(&mut twice, truncate);
            prop_assert_eq!(&twice, &once, "{:?}", format);
        }
    }
}

#[test]
fn casts_follow_the_rules_of_the_types() {
    assert_eq!(cast::<f32, i32>(-2.75), -2);
    assert_eq!(cast::<f32, u16>(2.5), 3);
    assert_eq!(cast::<i32, bf16>(257), bf16::from_f32(256.0));
    // Between integers the low bits stay, but for 16 bits, which saturate.
    assert_eq!((cast::<i32, u8>(300), cast::<i32, u16>(70_000), cast::<i32, u16>(-1)), (44, 65535, 0));
    assert_eq!((cast::<i32, u32>(-1), cast::<u32, i32>(u32::MAX)), (u32::MAX, -1));
}

proptest! {
    #[test]
    fn packed_runs_are_their_elements(values in prop::collection::vec(finite(), BLOCK)) {
        let values: [f32; BLOCK] = values.try_into().unwrap();
        for (format, block) in blocks() {
            let mut data = vec![0xff; BLOCK * block.bits() as usize / 8];
            let exponent = block.pack(&values, &mut data);
            prop_assert_eq!(exponent, block.exponent(&values));
            let back = block.unpack(exponent, &data);
            let per_byte = (8 / block.bits()) as usize;
            for (i, &value) in values.iter().enumerate() {
                let element = block.encode(value, exponent, false);
                let mask = (1u32 << block.bits()) - 1;
                let stored = u32::from(data[i / per_byte]) >> (i % per_byte * block.bits() as usize) & mask;
                prop_assert_eq!(stored, u32::from(element), "{:?}", format);
                prop_assert_eq!(back[i].to_bits(), block.decode(element, exponent).to_bits());
            }
        }
    }
}
