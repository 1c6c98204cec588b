//! The reference's own arrays: doubles with explicit indices, nothing shared with the
//! crate under test.

use proptest::prelude::*;
use tilework_ops::{DType, Shape, Tensor};

/// An array of doubles in row-major order.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Nd {
    pub(crate) dims: Vec<usize>,
    pub(crate) values: Vec<f64>,
}

impl Nd {
    pub(crate) fn new(dims: &[usize], values: Vec<f64>) -> Nd {
        assert_eq!(dims.iter().product::<usize>(), values.len());
        Nd { dims: dims.to_vec(), values }
    }

    /// Computes each element from its index.
    pub(crate) fn by(dims: &[usize], f: impl FnMut(&[usize]) -> f64) -> Nd {
        let index: Vec<Vec<usize>> = indices(dims);
        let mut f = f;
        Nd { dims: dims.to_vec(), values: index.iter().map(|i| f(i)).collect() }
    }

    /// Values in -4..4 in steps of 1/64, which all types but small integers hold exactly.
    pub(crate) fn random(dims: &[usize], seed: u64) -> Nd {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1;
        Nd::by(dims, |_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) % 512) as f64 / 64.0 - 4.0
        })
    }

    /// Element at an index of the same or higher rank: the trailing numbers count, and dimensions
    /// of 1 repeat.
    pub(crate) fn at(&self, index: &[usize]) -> f64 {
        let index = &index[index.len() - self.dims.len()..];
        let mut position = 0;
        for (&d, &i) in self.dims.iter().zip(index) {
            position = position * d + if d == 1 { 0 } else { i };
        }
        self.values[position]
    }

    pub(crate) fn tensor(&self, dtype: DType) -> Tensor {
        let values: Vec<f32> = self.values.iter().map(|&v| v as f32).collect();
        Tensor::from_f32(dtype, shape(&self.dims), &values).unwrap()
    }

    pub(crate) fn f32(&self) -> Tensor {
        self.tensor(DType::F32)
    }
}

/// All indices of an array, the last dimension fastest.
pub(crate) fn indices(dims: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for &d in dims {
        all = all.into_iter().flat_map(|i| (0..d).map(move |k| [i.clone(), vec![k]].concat())).collect();
    }
    all
}

pub(crate) fn shape(dims: &[usize]) -> Shape {
    Shape::new(dims).unwrap()
}

pub(crate) fn ints(dtype: DType, dims: &[usize], values: &[i64]) -> Tensor {
    Tensor::from_i64(dtype, shape(dims), values).unwrap()
}

pub(crate) fn floats(dims: &[usize], values: &[f32]) -> Tensor {
    Tensor::new(shape(dims), values.to_vec()).unwrap()
}

/// Fails unless shape and values agree; `tolerance` is of the larger of 1 and the value.
#[track_caller]
pub(crate) fn close(found: &Tensor, wanted: &Nd, tolerance: f64) {
    assert_eq!(found.shape().dims(), wanted.dims, "shape");
    for (i, (f, &w)) in found.to_f32().into_iter().zip(&wanted.values).enumerate() {
        let f = f64::from(f);
        let same = f == w || (f.is_nan() && w.is_nan()) || (f - w).abs() <= tolerance * w.abs().max(1.0);
        assert!(same, "element {i} of {:?}: {f} where {w} is wanted", wanted.dims);
    }
}

/// Fails unless shape and values agree exactly.
#[track_caller]
pub(crate) fn same(found: &Tensor, wanted: &Nd) {
    close(found, wanted, 0.0);
}

/// Shapes of up to `rank` dimensions, zeros and ones among them.
pub(crate) fn dims(rank: std::ops::RangeInclusive<usize>) -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(prop_oneof![1 => Just(0usize), 3 => Just(1), 12 => 2usize..7], rank)
}

/// Two shapes that broadcast: some dimensions of each become 1 or are left out in front.
pub(crate) fn broadcastable() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
    (dims(0..=4), any::<u8>(), any::<u8>(), 0usize..5, 0usize..5).prop_map(|(dims, a, b, cut_a, cut_b)| {
        let side = |ones: u8, cut: usize| -> Vec<usize> {
            let ones = |i: usize| ones >> i & 1 != 0;
            let all: Vec<usize> = dims.iter().enumerate().map(|(i, &d)| if ones(i) { 1 } else { d }).collect();
            all[cut.saturating_sub(2).min(all.len())..].to_vec()
        };
        (side(a, cut_a), side(b, cut_b))
    })
}

/// The broadcast of two shapes by numpy's rule, written out.
pub(crate) fn broadcast(a: &[usize], b: &[usize]) -> Vec<usize> {
    let rank = a.len().max(b.len());
    let get = |s: &[usize], i: usize| if i + s.len() < rank { 1 } else { s[i + s.len() - rank] };
    (0..rank).map(|i| if get(a, i) == 1 { get(b, i) } else { get(a, i) }).collect()
}

/// Seeds for [`Nd::random`].
pub(crate) fn seeds() -> impl Strategy<Value = u64> {
    0u64..1_000_000
}

/// A function of two doubles.
pub(crate) type Two = fn(f64, f64) -> f64;
