//! Reductions and scans.

use proptest::prelude::*;
use tilework_ops::{DType, Reduction, cumprod, cumsum, reduce};

use crate::common::{Nd, Two, close, dims, floats, indices, ints, same, seeds};

/// The reduction of an array over the dimensions of a mask, kept as 1.
fn reference(x: &Nd, mask: &[bool], start: f64, f: impl Fn(f64, f64) -> f64) -> Nd {
    let kept: Vec<usize> = x.dims.iter().zip(mask).map(|(&d, &m)| if m { 1 } else { d }).collect();
    let mut result = Nd::by(&kept, |_| start);
    for i in indices(&x.dims) {
        let at = i.iter().zip(&kept).fold(0, |p, (&i, &d)| p * d + if d == 1 { 0 } else { i });
        result.values[at] = f(result.values[at], x.at(&i));
    }
    result
}

proptest! {
    #[test]
    fn over_any_dimensions(shape in dims(1..=4), choice in 1u8..16, keep in any::<bool>(), seed in seeds()) {
        let x = Nd::random(&shape, seed);
        let mask: Vec<bool> = (0..shape.len()).map(|i| choice >> i & 1 != 0).collect();
        prop_assume!(mask.contains(&true));
        let axes: Vec<i64> = (0..shape.len()).filter(|&i| mask[i]).map(|i| i as i64 - if i % 2 == 0 { shape.len() as i64 } else { 0 }).collect();
        let count: usize = shape.iter().zip(&mask).filter(|(_, m)| **m).map(|(&d, _)| d).product();
        let kinds: [(Reduction, f64, Two); 5] = [
            (Reduction::Sum, 0.0, |a, b| a + b),
            (Reduction::Mean, 0.0, |a, b| a + b),
            (Reduction::Prod, 1.0, |a, b| a * b),
            (Reduction::Max, f64::NEG_INFINITY, f64::max),
            (Reduction::Min, f64::INFINITY, f64::min),
        ];
        // Products of values near one: others would leave float32.
        let near_one = Nd::by(&shape, |i| 1.0 + x.at(i) / 64.0);
        for (kind, start, f) in kinds {
            let x = if kind == Reduction::Prod { &near_one } else { &x };
            let mut wanted = reference(x, &mask, start, f);
            if kind == Reduction::Mean {
                wanted.values.iter_mut().for_each(|v| *v /= count as f64);
            }
            if !keep {
                wanted.dims = shape.iter().zip(&mask).filter(|(_, m)| !**m).map(|(&d, _)| d).collect();
            }
            let found = reduce(kind, &x.f32(), &axes, keep, DType::F32);
            if count == 0 && matches!(kind, Reduction::Max | Reduction::Min) && !wanted.values.is_empty() {
                prop_assert!(found.is_err());
            } else {
                    let tolerance = if kind == Reduction::Prod { 1e-4 } else { 1e-5 };
                close(&found.unwrap(), &wanted, tolerance);
            }
        }
        // Integers: the same sum, exact.
        let mut whole = x.clone();
        whole.values.iter_mut().for_each(|v| *v = v.round());
        let wanted = reference(&whole, &mask, 0.0, |a, b| a + b);
        same(&reduce(Reduction::Sum, &whole.tensor(DType::I32), &axes, true, DType::I32).unwrap(), &wanted);
    }

    #[test]
    fn running(shape in dims(1..=4), axis in 0usize..4, seed in seeds()) {
        let x = Nd::random(&shape, seed);
        let axis = axis % shape.len();
        let run = |f: fn(f64, f64) -> f64| Nd::by(&shape, |i| {
            let at = |k: usize| { let mut i = i.to_vec(); i[axis] = k; x.at(&i) };
            (1..=i[axis]).fold(at(0), |sum, k| f(sum, at(k)))
        });
        close(&cumsum(&x.f32(), axis as i64, DType::F32).unwrap(), &run(|a, b| a + b), 1e-5);
        close(&cumprod(&x.f32(), axis as i64 - shape.len() as i64, DType::F32).unwrap(), &run(|a, b| a * b), 1e-5);
    }
}

#[test]
fn long_rows_and_columns() {
    let x = Nd::random(&[3, 5000], 5);
    let wanted = |mask| reference(&x, mask, 0.0, |a, b| a + b);
    close(&reduce(Reduction::Sum, &x.f32(), &[1], true, DType::F32).unwrap(), &wanted(&[false, true]), 1e-4);
    close(&reduce(Reduction::Sum, &x.f32(), &[0], true, DType::F32).unwrap(), &wanted(&[true, false]), 1e-6);
    let tall = Nd::random(&[5000, 3], 6);
    let wanted = reference(&tall, &[true, false], 0.0, |a, b| a + b);
    close(&reduce(Reduction::Sum, &tall.f32(), &[0], true, DType::F32).unwrap(), &wanted, 1e-4);
}

#[test]
fn all_dimensions_by_default() {
    let x = floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
    let sum = reduce(Reduction::Sum, &x, &[], false, DType::F32).unwrap();
    assert_eq!((sum.shape().rank(), sum.to_f32()), (0, vec![10.0]));
    let mean = reduce(Reduction::Mean, &ints(DType::I32, &[2], &[1, 2]), &[], false, DType::F32).unwrap();
    assert_eq!(mean.to_f32(), [1.5]);
    assert_eq!(reduce(Reduction::Max, &floats(&[], &[2.0]), &[0], false, DType::F32).unwrap().to_f32(), [2.0]);
    assert!(reduce(Reduction::Sum, &x, &[2], false, DType::F32).is_err());
}

#[test]
fn nans_win_and_infinities_add() {
    let x = floats(&[2, 3], &[1.0, f32::NAN, 3.0, f32::INFINITY, 1.0, f32::NEG_INFINITY]);
    for kind in [Reduction::Max, Reduction::Min] {
        assert!(reduce(kind, &x, &[1], false, DType::F32).unwrap().to_f32()[0].is_nan());
        let columns = reduce(kind, &x, &[0], false, DType::F32).unwrap().to_f32();
        assert!(columns[1].is_nan() && columns[0].abs() >= 1.0);
    }
    assert!(reduce(Reduction::Sum, &x, &[1], false, DType::F32).unwrap().to_f32()[1].is_nan());
}

#[test]
fn bfloat16_sums_round_once() {
    // 256 ones and a half: adding in bfloat16 would stop at 256 and lose the rest.
    let mut values = vec![1f32; 300];
    values.push(0.5);
    let x = tilework_ops::typecast(&floats(&[301], &values), DType::BF16);
    assert_eq!(reduce(Reduction::Sum, &x, &[0], false, DType::BF16).unwrap().to_f32(), [300.0]);
    assert_eq!(reduce(Reduction::Sum, &x, &[0], false, DType::F32).unwrap().to_f32(), [300.5]);
}

#[test]
fn integer_sums_wrap() {
    let x = ints(DType::I32, &[2], &[i64::from(i32::MAX), 1]);
    assert_eq!(reduce(Reduction::Sum, &x, &[0], false, DType::I32).unwrap().to_i64(), [i64::from(i32::MIN)]);
    assert_eq!(cumsum(&x, 0, DType::I32).unwrap().to_i64(), [i64::from(i32::MAX), i64::from(i32::MIN)]);
}
