//! Creation of tensors.

use tilework_ops::{DType, Fill, arange, full, ones, rand, zeros};

use crate::common::shape;

#[test]
fn ranges_stop_before_their_end() {
    assert_eq!(arange(0.0, 5.0, 1.0, DType::I32).unwrap().to_i64(), [0, 1, 2, 3, 4]);
    assert_eq!(arange(1.0, 2.0, 0.25, DType::F32).unwrap().to_f32(), [1.0, 1.25, 1.5, 1.75]);
    assert_eq!(arange(3.0, -3.0, -2.0, DType::I32).unwrap().to_i64(), [3, 1, -1]);
    assert_eq!(arange(3.0, 3.0, 1.0, DType::F32).unwrap().elements(), 0);
    assert_eq!(arange(5.0, 3.0, 1.0, DType::F32).unwrap().elements(), 0);
    let large = arange(0.0, 16_777_220.0, 16_777_219.0, DType::I32).unwrap();
    assert_eq!(large.to_i64(), [0, 16_777_219]);
}

#[test]
fn ranges_without_end_are_refused() {
    for (start, end, step) in [(0.0, 1.0, 0.0), (0.0, 1e300, 1.0), (0.0, f64::NAN, 1.0), (0.0, 1.0, f64::INFINITY)] {
        assert!(arange(start, end, step, DType::F32).is_err(), "{start} {end} {step}");
    }
}

#[test]
fn filled_tensors_hold_their_value() {
    assert_eq!(full(shape(&[2, 2]), DType::BF16, Fill::Float(0.1)).to_f32(), [0.100_097_656; 4]);
    assert_eq!(full(shape(&[1]), DType::I32, Fill::Int(i32::MAX)).to_i64(), [i64::from(i32::MAX)]);
    assert_eq!(full(shape(&[1]), DType::F32, Fill::Float(f32::NEG_INFINITY)).to_f32(), [f32::NEG_INFINITY]);
    assert_eq!(zeros(shape(&[3, 0]), DType::F32).elements(), 0);
    assert_eq!(ones(shape(&[]), DType::U8).to_i64(), [1]);
}

#[test]
fn random_values_are_uniform_and_repeat() {
    let draw = |seed| rand(shape(&[100, 100]), DType::F32, -2.0, 6.0, seed).to_f32();
    let values = draw(7);
    assert_eq!(values, draw(7));
    assert_ne!(values, draw(8));
    assert!(values.iter().all(|v| (-2.0..6.0).contains(v)));
    let mean = values.iter().map(|&v| f64::from(v)).sum::<f64>() / 1e4;
    let variance = values.iter().map(|&v| (f64::from(v) - mean).powi(2)).sum::<f64>() / 1e4;
    // Mean 2 and variance 64 / 12, within five standard errors.
    assert!((mean - 2.0).abs() < 0.12 && (variance - 64.0 / 12.0).abs() < 0.25, "mean {mean}, variance {variance}");
    // The first elements of a larger tensor are those of a smaller one.
    assert_eq!(rand(shape(&[3]), DType::F32, -2.0, 6.0, 7).to_f32(), values[..3]);
}
