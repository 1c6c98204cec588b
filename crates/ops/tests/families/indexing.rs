//! Gather, scatter, embedding; sorting and choosing.

use proptest::prelude::*;
use tilework_ops::{DType, Reason, ScatterReduce, argmax, embedding, embedding_backward, gather, scatter, sort, topk};

use crate::common::{Nd, Two, close, dims, floats, indices, ints, same, seeds};

fn numbers() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(0usize..1000, 64)
}

proptest! {
    #[test]
    fn gathers(lengths in prop::collection::vec(1usize..5, 1..=4), choice in numbers(), seed in seeds()) {
        let x = Nd::random(&lengths, seed);
        let axis = choice[0] % lengths.len();
        let small: Vec<usize> = lengths.iter().enumerate()
            .map(|(i, &d)| if i == axis { choice[i + 1] % 5 } else { 1 + choice[i + 1] % d }).collect();
        let mut k = 5;
        let index = Nd::by(&small, |_| { k += 1; (choice[k % 64] % lengths[axis]) as f64 });
        let wanted = Nd::by(&small, |i| { let mut j = i.to_vec(); j[axis] = index.at(i) as usize; x.at(&j) });
        same(&gather(&x.tensor(DType::BF16), &index.tensor(DType::U32), axis as i64).unwrap(), &wanted);
    }

    #[test]
    fn scatters(lengths in prop::collection::vec(1usize..5, 1..=3), choice in numbers(), seed in seeds()) {
        let x = Nd::random(&lengths, seed);
        let axis = choice[0] % lengths.len();
        let small: Vec<usize> = lengths.iter().enumerate()
            .map(|(i, &d)| if i == axis { choice[i + 1] % 5 } else { 1 + choice[i + 1] % d }).collect();
        let mut k = 5;
        let index = Nd::by(&small, |_| { k += 1; (choice[k % 64] % lengths[axis]) as f64 });
        let source = Nd::random(&small.iter().map(|d| d + choice[4] % 2).collect::<Vec<_>>(), seed + 9);
        let kinds: [(ScatterReduce, Two); 5] = [
            (ScatterReduce::Replace, |_, b| b),
            (ScatterReduce::Sum, |a, b| a + b),
            (ScatterReduce::Prod, |a, b| a * b),
            (ScatterReduce::Max, f64::max),
            (ScatterReduce::Min, f64::min),
        ];
        for (kind, f) in kinds {
            let mut wanted = x.clone();
            for i in indices(&small) {
                let mut j = i.clone();
                j[axis] = index.at(&i) as usize;
                let at = j.iter().zip(&lengths).fold(0, |p, (j, d)| p * d + j);
                wanted.values[at] = f(wanted.values[at], source.at(&i));
            }
            let found = scatter(&x.f32(), &index.tensor(DType::I32), &source.f32(), axis as i64, kind).unwrap();
            close(&found, &wanted, 1e-5);
        }
    }

    #[test]
    fn embeds(rows in 1usize..6, columns in 0usize..5, shape in dims(0..=3), choice in numbers(), seed in seeds()) {
        let table = Nd::random(&[rows, columns], seed);
        let mut k = 0;
        let index = Nd::by(&shape, |_| { k += 1; (choice[k % 64] % rows) as f64 });
        let wide: Vec<usize> = [shape.clone(), vec![columns]].concat();
        let wanted = Nd::by(&wide, |i| table.at(&[index.at(&i[..shape.len()]) as usize, i[shape.len()]]));
        same(&embedding(&index.tensor(DType::U32), &table.tensor(DType::BF16)).unwrap(), &wanted);

        let grad = Nd::random(&wide, seed + 1);
        let wanted = Nd::by(&[rows, columns], |at| indices(&shape).iter()
            .filter(|i| index.at(i) as usize == at[0])
            .map(|i| grad.at(&[&i[..], &at[1..]].concat())).sum());
        let found = embedding_backward(&index.tensor(DType::U32), &table.f32(), &grad.f32(), DType::F32).unwrap();
        close(&found, &wanted, 1e-6);
    }

    #[test]
    fn sorts(shape in dims(1..=3), choice in numbers(), descending in any::<bool>(), seed in seeds()) {
        // Few distinct values, so that there are ties.
        let mut x = Nd::random(&shape, seed);
        x.values.iter_mut().for_each(|v| *v = v.round());
        let axis = choice[0] % shape.len();
        let k = choice[1] % (shape[axis] + 1);
        let mut order = Nd::by(&shape, |i| i[axis] as f64);
        for mut line in indices(&shape).into_iter().filter(|i| i[axis] == 0) {
            let mut at = |k: usize| { line[axis] = k; x.at(&line) };
            let values: Vec<f64> = (0..shape[axis]).map(&mut at).collect();
            // Selection: repeatedly the first best of what is left.
            let mut left: Vec<usize> = (0..values.len()).collect();
            for rank in 0..values.len() {
                let mut best = 0;
                for c in 1..left.len() {
                    let (v, b) = (values[left[c]], values[left[best]]);
                    if if descending { v > b } else { v < b } {
                        best = c;
                    }
                }
                let chosen = left.remove(best);
                line[axis] = rank;
                let at = line.iter().zip(&shape).fold(0, |p, (i, d)| p * d + i);
                order.values[at] = chosen as f64;
            }
        }
        let sorted = Nd::by(&shape, |i| { let mut j = i.to_vec(); j[axis] = order.at(i) as usize; x.at(&j) });
        let (values, index) = sort(&x.f32(), axis as i64, descending, DType::U16).unwrap();
        same(&values, &sorted);
        same(&index, &order);
        let mut cut = shape.clone();
        cut[axis] = k;
        let (values, index) = topk(&x.tensor(DType::I32), k, axis as i64 - shape.len() as i64, descending, DType::U32).unwrap();
        same(&values, &Nd::by(&cut, |i| sorted.at(i)));
        same(&index, &Nd::by(&cut, |i| order.at(i)));
    }

    #[test]
    fn the_first_largest_wins(shape in prop::collection::vec(1usize..6, 1..=4), choice in numbers(), keep in any::<bool>(), seed in seeds()) {
        let mut x = Nd::random(&shape, seed);
        x.values.iter_mut().for_each(|v| *v = v.round());
        let axis = choice[0] % shape.len();
        let mut reduced = shape.clone();
        reduced[axis] = 1;
        let wanted = Nd::by(&reduced, |i| {
            let at = |k: usize| { let mut i = i.to_vec(); i[axis] = k; x.at(&i) };
            (1..shape[axis]).fold(0, |best, k| if at(k) > at(best) { k } else { best }) as f64
        });
        let mut dims = reduced.clone();
        if !keep {
            dims.remove(axis);
        }
        let found = argmax(&x.tensor(DType::BF16), Some(axis as i64), keep, DType::U32).unwrap();
        same(&found, &Nd::new(&dims, wanted.values));
        let whole = x.values.iter().enumerate().fold(0, |b, (i, v)| if *v > x.values[b] { i } else { b });
        prop_assert_eq!(argmax(&x.f32(), None, false, DType::I32).unwrap().to_i64(), [whole as i64]);
    }
}

#[test]
fn nans_are_largest() {
    let x = floats(&[5], &[1.0, f32::NAN, f32::INFINITY, f32::NAN, -1.0]);
    assert_eq!(argmax(&x, Some(0), false, DType::U32).unwrap().to_i64(), [1]);
    assert_eq!(sort(&x, 0, false, DType::U32).unwrap().1.to_i64(), [4, 0, 2, 1, 3]);
    assert_eq!(topk(&x, 3, 0, true, DType::U32).unwrap().1.to_i64(), [1, 3, 2]);
}

#[test]
fn wrong_indices_are_refused() {
    let x = floats(&[2, 2], &[0.0; 4]);
    let bad = ints(DType::I32, &[1, 1], &[2]);
    let error = gather(&x, &bad, 0).unwrap_err();
    assert_eq!(error.reason, Reason::Index { index: 2, bound: 2 });
    assert!(gather(&x, &ints(DType::I32, &[1, 1], &[-1]), 0).is_err());
    assert!(gather(&x, &ints(DType::I32, &[1], &[0]), 0).is_err());
    assert!(gather(&x, &ints(DType::I32, &[1, 3], &[0; 3]), 0).is_err());
    assert!(scatter(&x, &bad, &x, 0, ScatterReduce::Sum).is_err());
    assert!(
        scatter(&x, &ints(DType::I32, &[2, 2], &[0; 4]), &floats(&[1, 2], &[0.0; 2]), 0, ScatterReduce::Replace)
            .is_err()
    );
    assert!(embedding(&bad, &x).is_err());
    assert!(embedding(&bad, &floats(&[3], &[0.0; 3])).is_err());
    assert!(topk(&x, 3, 0, true, DType::U32).is_err());
    assert!(argmax(&floats(&[0, 2], &[]), Some(0), false, DType::U32).is_err());
    assert_eq!(argmax(&floats(&[2, 0], &[]), Some(0), false, DType::U32).unwrap().elements(), 0);
}

#[test]
fn scalars_sort() {
    let (values, index) = sort(&floats(&[], &[3.0]), 0, true, DType::U32).unwrap();
    assert_eq!((values.to_f32(), index.to_i64(), values.shape().rank()), (vec![3.0], vec![0], 0));
}
