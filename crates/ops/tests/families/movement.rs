//! Data movement.

use proptest::prelude::*;
use tilework_ops::{DType, concat, pad, permute, repeat, repeat_interleave, reshape, slice, slice_dynamic, transpose};

use crate::common::{Nd, dims, floats, ints, same, seeds};

/// Random numbers, of which the tests take as many as they need.
fn numbers() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0usize..100, 12)
}

proptest! {
    #[test]
    fn permutations_and_transpositions(dims in dims(1..=4), choice in numbers(), seed in seeds()) {
        let x = Nd::random(&dims, seed);
        let n = dims.len();
        let mut order: Vec<usize> = (0..n).collect();
        (0..n).for_each(|i| order.swap(i, choice[i] % n));
        let place = |i: &[usize]| {
            let mut from = vec![0; n];
            order.iter().zip(i).for_each(|(&o, &i)| from[o] = i);
            from
        };
        let wanted = Nd::by(&order.iter().map(|&o| dims[o]).collect::<Vec<_>>(), |i| x.at(&place(i)));
        let negative: Vec<i64> = order.iter().enumerate().map(|(k, &o)| o as i64 - if k % 2 == 0 { n as i64 } else { 0 }).collect();
        same(&permute(&x.tensor(DType::BF16), &negative).unwrap(), &wanted);

        let (a, b) = (choice[5] % n, choice[6] % n);
        let mut swapped = dims.clone();
        swapped.swap(a, b);
        let wanted = Nd::by(&swapped, |i| { let mut i = i.to_vec(); i.swap(a, b); x.at(&i) });
        same(&transpose(&x.f32(), a as i64, b as i64 - n as i64).unwrap(), &wanted);
    }

    #[test]
    fn slices(dims in dims(1..=4), choice in numbers(), seed in seeds()) {
        let x = Nd::random(&dims, seed);
        let pick = |k: usize, n: usize| choice[k % 12] % (n + 1);
        let begins: Vec<usize> = dims.iter().enumerate().map(|(i, &d)| pick(i, d)).collect();
        let ends: Vec<usize> = dims.iter().enumerate().map(|(i, &d)| pick(i + 4, d)).collect();
        let steps: Vec<usize> = (0..dims.len()).map(|i| 1 + choice[8 + i] % 3).collect();
        let picked: Vec<Vec<usize>> = (0..dims.len()).map(|i| (begins[i]..ends[i]).step_by(steps[i]).collect()).collect();
        let lengths: Vec<usize> = picked.iter().map(Vec::len).collect();
        let wanted = Nd::by(&lengths, |i| x.at(&i.iter().zip(&picked).map(|(&i, p)| p[i]).collect::<Vec<_>>()));
        let list = |v: &[usize]| v.iter().map(|&v| v as i64).collect::<Vec<_>>();
        // Bounds counted from the end mean the same, but for the end itself.
        let from_end: Vec<i64> = begins.iter().zip(&dims).map(|(&b, &d)| if b < d { b as i64 - d as i64 } else { b as i64 }).collect();
        same(&slice(&x.f32(), &from_end, &list(&ends), &list(&steps)).unwrap(), &wanted);
        let n = dims.len();
        let (b, e) = (ints(DType::I32, &[n], &list(&begins)), ints(DType::U32, &[n], &list(&ends)));
        same(&slice_dynamic(&x.f32(), &b, &e, &list(&steps)).unwrap(), &wanted);
    }

    #[test]
    fn padding(dims in dims(0..=4), choice in numbers(), seed in seeds()) {
        let x = Nd::random(&dims, seed);
        let low: Vec<usize> = (0..dims.len()).map(|i| choice[i] % 4).collect();
        let high: Vec<usize> = (0..dims.len()).map(|i| choice[i + 4] % 4).collect();
        let padded: Vec<usize> = (0..dims.len()).map(|i| dims[i] + low[i] + high[i]).collect();
        let wanted = Nd::by(&padded, |i| {
            let inside = (0..i.len()).all(|k| (low[k]..low[k] + dims[k]).contains(&i[k]));
            if inside { x.at(&i.iter().zip(&low).map(|(i, l)| i - l).collect::<Vec<_>>()) } else { -1.5 }
        });
        let list: Vec<usize> = low.iter().zip(&high).flat_map(|(&l, &h)| [l, h]).collect();
        same(&pad(&x.f32(), &list, -1.5).unwrap(), &wanted);
    }

    #[test]
    fn concatenation(dims in dims(1..=4), choice in numbers(), seed in seeds()) {
        let axis = choice[0] % dims.len();
        let parts: Vec<Nd> = (0..1 + choice[1] % 4).map(|k| {
            let mut dims = dims.clone();
            dims[axis] = choice[2 + k] % 4;
            Nd::random(&dims, seed + k as u64)
        }).collect();
        let mut whole = dims.clone();
        whole[axis] = parts.iter().map(|p| p.dims[axis]).sum();
        let wanted = Nd::by(&whole, |i| {
            let mut i = i.to_vec();
            let part = parts.iter().find(|p| { let inside = i[axis] < p.dims[axis]; if !inside { i[axis] -= p.dims[axis] }; inside });
            part.unwrap().at(&i)
        });
        let tensors: Vec<_> = parts.iter().map(|p| p.tensor(DType::BF16)).collect();
        same(&concat(&tensors.iter().collect::<Vec<_>>(), axis as i64 - dims.len() as i64).unwrap(), &wanted);
    }

    #[test]
    fn repetition(dims in dims(0..=3), choice in numbers(), seed in seeds()) {
        let x = Nd::random(&dims, seed);
        let rank = dims.len() + choice[0] % 2;
        let times: Vec<usize> = (0..rank).map(|i| choice[i + 1] % 4).collect();
        let lead = rank - dims.len();
        let full: Vec<usize> = [vec![1; lead], dims.clone()].concat();
        let lengths: Vec<usize> = full.iter().zip(&times).map(|(d, t)| d * t).collect();
        let wanted = Nd::by(&lengths, |i| x.at(&i.iter().zip(&full).map(|(i, d)| i % d).collect::<Vec<_>>()));
        same(&repeat(&x.f32(), &times).unwrap(), &wanted);
        if !dims.is_empty() {
            let (axis, times) = (choice[6] % dims.len(), choice[7] % 4);
            let mut lengths = dims.clone();
            lengths[axis] *= times;
            let wanted = Nd::by(&lengths, |i| { let mut i = i.to_vec(); i[axis] /= times; x.at(&i) });
            same(&repeat_interleave(&x.f32(), times, axis as i64).unwrap(), &wanted);
        }
    }
}

#[test]
fn reshape_infers_one_length() {
    let x = floats(&[2, 6], &(0..12).map(|v| v as f32).collect::<Vec<_>>());
    assert_eq!(reshape(&x, &[3, -1]).unwrap().shape().dims(), [3, 4]);
    assert_eq!(reshape(&x, &[12]).unwrap().to_f32(), x.to_f32());
    assert_eq!(reshape(&floats(&[], &[4.0]), &[1, 1, 1]).unwrap().shape().dims(), [1, 1, 1]);
    assert_eq!(reshape(&floats(&[0, 3], &[]), &[3, -1]).unwrap().shape().dims(), [3, 0]);
    for bad in [&[5][..], &[-1, -1], &[-2, 6], &[i64::MAX, i64::MAX], &[0, -1]] {
        assert!(reshape(&x, bad).is_err(), "{bad:?}");
    }
}

#[test]
fn impossible_moves_are_refused() {
    let x = floats(&[2, 3], &[0.0; 6]);
    assert!(permute(&x, &[0, 0]).is_err());
    assert!(permute(&x, &[0]).is_err());
    assert!(permute(&x, &[0, 1, -1]).is_err());
    assert!(transpose(&x, 0, 2).is_err());
    assert!(slice(&x, &[0, 0], &[2, 3], &[0, 1]).is_err());
    assert!(slice(&x, &[0], &[2], &[1]).is_err());
    assert!(pad(&x, &[1, 1], 0.0).is_err());
    assert!(pad(&x, &[usize::MAX, 1, 1, 1], 0.0).is_err());
    assert!(concat(&[], 0).is_err());
    assert!(concat(&[&x, &floats(&[2, 2], &[0.0; 4])], 0).is_err());
    assert!(concat(&[&x, &ints(DType::I32, &[2, 3], &[0; 6])], 0).is_err());
    assert!(repeat(&x, &[usize::MAX, 2]).is_err());
    assert!(repeat_interleave(&x, usize::MAX, 0).is_err());
    // Bounds beyond the tensor are clamped to it, as in Python.
    assert_eq!(slice(&x, &[-9, 1], &[i64::MAX, i64::MIN], &[1, 1]).unwrap().shape().dims(), [2, 0]);
}
