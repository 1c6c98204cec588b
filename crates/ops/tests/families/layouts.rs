//! Tiles and block floats.

use proptest::prelude::*;
use tilework_dtype::block::BlockFormat;
use tilework_ops::layout::{tilize, untilize};
use tilework_ops::{DType, typecast};

use crate::common::{Nd, floats, seeds, shape};

proptest! {
    #[test]
    fn tiles_and_back(dims in prop::collection::vec(0usize..40, 0..=4), seed in seeds()) {
        let reference = Nd::random(&dims, seed);
        for dtype in [DType::F32, DType::BF16, DType::U8, DType::Bfp8B, DType::Bfp4B] {
            let tensor = reference.tensor(dtype);
            let bytes = tilize(&tensor).unwrap();
            prop_assert_eq!(bytes.len() % dtype.tile_bytes(), 0);
            let back = untilize(dtype, shape(&dims), &bytes).unwrap();
            prop_assert_eq!(back.to_f32(), tensor.to_f32());
        }
    }

    #[test]
    fn blocks_lose_at_most_half_a_step(values in prop::collection::vec(-1000f32..1000.0, 1..40)) {
        let tensor = floats(&[values.len()], &values);
        for (dtype, bits) in [(DType::Bfp8B, 6), (DType::Bfp4B, 2)] {
            let rounded = typecast(&tensor, dtype).to_f32();
            for (block, rounded) in values.chunks(16).zip(rounded.chunks(16)) {
                let largest = block.iter().fold(0f32, |m, v| m.max(v.abs()));
                let step = f64::from(largest.log2().floor()).exp2() / f64::from(1 << bits);
                for (&v, &r) in block.iter().zip(rounded) {
                    // Clamping at the top may lose a whole step.
                    prop_assert!(f64::from((v - r).abs()) <= step, "{v} became {r}, step {step}");
                }
            }
            let tensor = typecast(&tensor, dtype);
            prop_assert_eq!(typecast(&typecast(&tensor, DType::F32), dtype).to_f32(), tensor.to_f32());
        }
    }
}

#[test]
fn blocks_by_hand() {
    // Largest exponent 127 (1.x): steps of 1/64 for bfp8, 1/4 for bfp4.
    let [b8, b4] = [DType::Bfp8B, DType::Bfp4B].map(|dtype| BlockFormat::of(dtype).unwrap());
    let exponent = b8.exponent(&[1.5, 0.25, -0.3]);
    assert_eq!(exponent, 127);
    assert_eq!(b8.encode(1.5, exponent, false), 96);
    assert_eq!(b8.encode(-0.3, exponent, false), 0x80 | 19);
    assert_eq!(b8.decode(0x80 | 19, exponent), -19.0 / 64.0);
    assert_eq!(b4.encode(-0.3, exponent, false), 0x8 | 1);
    // 1/8 is half a step and goes away from zero; just below it vanishes and loses its sign.
    assert_eq!(b4.encode(0.125, exponent, false), 1);
    assert_eq!(b4.encode(-0.12, exponent, false), 0);
    // 1.99 would round to 2, which has no place.
    assert_eq!(b4.encode(1.99, exponent, false), 7);
}

#[test]
fn tiles_of_another_tensor_are_refused() {
    let message = |dtype, bytes| untilize(dtype, shape(&[2, 3]), bytes).unwrap_err().to_string();
    assert_eq!(message(DType::F32, &[0; 12]), "untilize(): found 12 bytes, expected 4096: shape [2, 3], f32");
    assert_eq!(message(DType::Bfp8, &[0; 1088]), "untilize(): element type bfp_f8 is not supported");
}
