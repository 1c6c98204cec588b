//! Softmax and normalisations.

use proptest::prelude::*;
use tilework_ops::{
    Affine, DType, RmsFused, Unary, batch_norm, batch_norm_training, concat, group_norm, layer_norm,
    layer_norm_post_all_gather, layer_norm_pre_all_gather, rms_norm, rms_norm_pre_all_gather, softmax,
};

use crate::common::{Nd, close, dims, floats, seeds};

/// Mean and biased variance.
fn moments(values: &[f64]) -> (f64, f64) {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    (mean, values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / values.len() as f64)
}

fn row(x: &Nd, i: &[usize]) -> Vec<f64> {
    let n = i.len() - 1;
    (0..x.dims[n]).map(|k| x.at(&[&i[..n], &[k]].concat())).collect()
}

proptest! {
    #[test]
    fn softmax_of_any_dimension(shape in dims(1..=4), axis in 0usize..4, large in any::<bool>(), seed in seeds()) {
        let mut x = Nd::random(&shape, seed);
        if large {
            x.values.iter_mut().for_each(|v| *v *= 300.0);
        }
        let axis = axis % shape.len();
        let wanted = Nd::by(&shape, |i| {
            let at = |k: usize| { let mut i = i.to_vec(); i[axis] = k; x.at(&i) };
            let top = (0..shape[axis]).map(at).fold(f64::NEG_INFINITY, f64::max);
            (x.at(i) - top).exp() / (0..shape[axis]).map(|k| (at(k) - top).exp()).sum::<f64>()
        });
        close(&softmax(&x.f32(), axis as i64 - shape.len() as i64, DType::F32).unwrap(), &wanted, 2e-6);
    }

    #[test]
    fn rows(shape in dims(1..=4), seed in seeds()) {
        let x = Nd::random(&shape, seed);
        let n = *shape.last().unwrap();
        let (w, b) = (Nd::random(&[n], seed + 1), Nd::random(&[1, n], seed + 2));
        let (wt, bt) = (w.tensor(DType::BF16), b.f32());
        let affine = Affine { weight: Some(&wt), bias: Some(&bt) };
        let wanted = Nd::by(&shape, |i| {
            let (mean, variance) = moments(&row(&x, i));
            (x.at(i) - mean) / (variance + 1e-5).sqrt() * w.at(&i[i.len() - 1..]) + b.values[i[i.len() - 1]]
        });
        // A row whose values are all equal has no variance; the mean's rounding is multiplied by 1
        // / sqrt(1e-5).
        close(&layer_norm(&x.f32(), affine, 1e-5, DType::F32).unwrap(), &wanted, 1e-3);
        let residual = Nd::random(&shape, seed + 3);
        let sum = Nd::by(&shape, |i| x.at(i) + residual.at(i));
        let wanted = Nd::by(&shape, |i| {
            let square = row(&sum, i).iter().map(|v| v * v).sum::<f64>() / n as f64;
            let y = sum.at(i) / (square + 1e-5).sqrt() * w.at(&i[i.len() - 1..]);
            y / (1.0 + (-y).exp())
        });
        let rt = residual.f32();
        let fused = RmsFused { residual: Some(&rt), activation: Some(Unary::Silu) };
        let affine = Affine { weight: Some(&wt), bias: None };
        close(&rms_norm(&x.f32(), affine, 1e-5, fused, DType::F32).unwrap(), &wanted, 1e-5);
    }

    #[test]
    fn groups(n in 1usize..3, positions in 1usize..9, groups in 1usize..4, width in 1usize..4, seed in seeds()) {
        let c = groups * width;
        let x = Nd::random(&[n, 1, positions, c], seed);
        let (w, b) = (Nd::random(&[c], seed + 1), Nd::random(&[c], seed + 2));
        let wanted = Nd::by(&x.dims, |i| {
            let first = i[3] / width * width;
            let members: Vec<f64> = (0..positions).flat_map(|p| (first..first + width).map(move |k| (p, k)))
                .map(|(p, k)| x.at(&[i[0], 0, p, k])).collect();
            let (mean, variance) = moments(&members);
            (x.at(i) - mean) / (variance + 1e-3).sqrt() * w.values[i[3]] + b.values[i[3]]
        });
        let (w, b) = (w.f32(), b.f32());
        let affine = Affine { weight: Some(&w), bias: Some(&b) };
        close(&group_norm(&x.f32(), groups, affine, 1e-3, DType::F32).unwrap(), &wanted, 1e-4);
    }

    #[test]
    fn batches(n in 1usize..4, c in 1usize..5, rest in prop::collection::vec(1usize..5, 0..3), seed in seeds()) {
        let shape = [&[n, c][..], &rest].concat();
        let x = Nd::random(&shape, seed);
        let [mut mean, mut variance, w, b] = [0, 1, 2, 3].map(|k| Nd::random(&[1, c, 1, 1], seed + 1 + k));
        variance.values.iter_mut().for_each(|v| *v = v.abs());
        let normal = |i: &[usize], mean: &Nd, variance: &Nd| {
            let k = i[1];
            (x.at(i) - mean.values[k]) / (variance.values[k] + 1e-3).sqrt() * w.values[k] + b.values[k]
        };
        let (wt, bt) = (w.f32(), b.f32());
        let affine = Affine { weight: Some(&wt), bias: Some(&bt) };
        let found = batch_norm(&x.f32(), &mean.f32(), &variance.f32(), affine, 1e-3, DType::F32).unwrap();
        close(&found, &Nd::by(&shape, |i| normal(i, &mean, &variance)), 1e-4);

        let running = [mean.f32(), variance.f32()];
        let found = batch_norm_training(&x.f32(), [&running[0], &running[1]], affine, 1e-3, 0.25, DType::F32).unwrap();
        let mut moved = [mean.clone(), variance.clone()];
        for k in 0..c {
            let members: Vec<f64> = crate::common::indices(&shape).iter().filter(|i| i[1] == k).map(|i| x.at(i)).collect();
            let (m, v) = moments(&members);
            moved[0].values[k] = 0.25 * m + 0.75 * mean.values[k];
            moved[1].values[k] = 0.25 * v + 0.75 * variance.values[k];
            (mean.values[k], variance.values[k]) = (m, v);
        }
        close(&found.output, &Nd::by(&shape, |i| normal(i, &mean, &variance)), 1e-3);
        close(&found.running_mean, &moved[0], 1e-5);
        close(&found.running_var, &moved[1], 1e-5);
    }
}

#[test]
fn softmax_of_infinities() {
    let inf = f32::INFINITY;
    let x = floats(&[3, 2], &[-inf, 0.0, -inf, -inf, f32::NAN, 0.0]);
    let found = softmax(&x, 1, DType::F32).unwrap().to_f32();
    assert_eq!(found[..2], [0.0, 1.0]);
    assert!(found[2..].iter().all(|v| v.is_nan()), "{found:?}");
    assert_eq!(softmax(&floats(&[], &[5.0]), 0, DType::F32).unwrap().to_f32(), [1.0]);
}

#[test]
fn large_means_do_not_swallow_the_variance() {
    let x = floats(&[1, 4], &[10_000.0, 10_001.0, 10_002.0, 10_003.0]);
    let found = layer_norm(&x, Affine::default(), 0.0, DType::F32).unwrap();
    let s = 1.25f64.sqrt();
    close(&found, &Nd::new(&[1, 4], vec![-1.5 / s, -0.5 / s, 0.5 / s, 1.5 / s]), 1e-6);
}

#[test]
fn wrong_lengths_are_refused() {
    let (x, w) = (floats(&[2, 4], &[0.0; 8]), floats(&[3], &[0.0; 3]));
    let affine = Affine { weight: Some(&w), bias: None };
    assert!(layer_norm(&x, affine, 0.0, DType::F32).is_err());
    assert!(rms_norm(&x, affine, 0.0, RmsFused::default(), DType::F32).is_err());
    assert!(group_norm(&x, 3, Affine::default(), 0.0, DType::F32).is_err());
    assert!(group_norm(&x, 0, Affine::default(), 0.0, DType::F32).is_err());
    assert!(batch_norm(&w, &w, &w, Affine::default(), 0.0, DType::F32).is_err());
    assert!(softmax(&x, 2, DType::F32).is_err());
}

#[test]
fn rows_on_several_devices() {
    let (x, residual) = (Nd::random(&[2, 3, 40], 1), Nd::random(&[2, 3, 40], 2));
    let part = |x: &Nd, d: usize| Nd::by(&[2, 3, 20], |i| x.at(&[i[0], i[1], d * 20 + i[2]])).f32();
    let stats = [0, 1].map(|d| layer_norm_pre_all_gather(&part(&x, d), None, DType::F32).unwrap());
    let gathered = concat(&[&stats[0], &stats[1]], -1).unwrap();
    for d in 0..2 {
        let found = layer_norm_post_all_gather(&part(&x, d), &gathered, Affine::default(), 1e-5, DType::F32).unwrap();
        let wanted = Nd::by(&[2, 3, 20], |i| {
            let (mean, variance) = moments(&row(&x, &[i[0], i[1], 0]));
            (x.at(&[i[0], i[1], d * 20 + i[2]]) - mean) / (variance + 1e-5).sqrt()
        });
        close(&found, &wanted, 1e-5);
        let residual = part(&residual, d);
        let squares = rms_norm_pre_all_gather(&part(&x, d), Some(&residual), DType::F32).unwrap();
        let wanted = Nd::by(&[2, 3, 32], |i| match i[2] {
            0 => (0..20).map(|k| residual_sum(&x, &residual.to_f32(), i, d * 20 + k, k).powi(2)).sum::<f64>() / 20.0,
            _ => 0.0,
        });
        close(&squares, &wanted, 1e-5);
    }
    assert!(layer_norm_post_all_gather(&part(&x, 0), &part(&x, 0), Affine::default(), 0.0, DType::F32).is_err());
    assert!(layer_norm_pre_all_gather(&part(&x, 0), Some(&gathered), DType::F32).is_err());
}

/// Element `k` of a row of the part's residual, added to element `at` of the whole row.
fn residual_sum(x: &Nd, residual: &[f32], i: &[usize], at: usize, k: usize) -> f64 {
    x.at(&[i[0], i[1], at]) + f64::from(residual[(i[0] * 3 + i[1]) * 20 + k])
}
