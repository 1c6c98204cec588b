//! Matrix products.

use proptest::prelude::*;
use tilework_ops::{DType, MatmulOptions, OpError, Tensor, Unary, matmul, transpose};

use crate::common::{Nd, broadcast, broadcastable, close, floats, seeds};

/// The product of stacks of matrices, element by element.
fn reference(a: &Nd, b: &Nd) -> Nd {
    let (na, nb) = (a.dims.len(), b.dims.len());
    let (m, k, n) = (a.dims[na - 2], a.dims[na - 1], b.dims[nb - 1]);
    let mut dims = broadcast(&a.dims[..na - 2], &b.dims[..nb - 2]);
    dims.extend([m, n]);
    Nd::by(&dims, |i| {
        let (batch, at) = i.split_at(i.len() - 2);
        (0..k).map(|p| a.at(&[batch, &[at[0], p]].concat()) * b.at(&[batch, &[p, at[1]]].concat())).sum()
    })
}

/// An array with its last two dimensions exchanged.
fn turned(x: &Nd) -> Nd {
    let n = x.dims.len();
    let mut dims = x.dims.clone();
    dims.swap(n - 2, n - 1);
    Nd::by(&dims, |i| {
        let mut i = i.to_vec();
        i.swap(n - 2, n - 1);
        x.at(&i)
    })
}

proptest! {
    #[test]
    fn broadcast_and_transpose(
        (batch_a, batch_b) in broadcastable(),
        sizes in prop::collection::vec(prop_oneof![1 => Just(0usize), 2 => Just(1), 10 => 2usize..9], 3),
        transpose_a in any::<bool>(),
        transpose_b in any::<bool>(),
        seed in seeds(),
    ) {
        let a = Nd::random(&[&batch_a[..], &[sizes[0], sizes[1]]].concat(), seed);
        let b = Nd::random(&[&batch_b[..], &[sizes[1], sizes[2]]].concat(), seed + 1);
        let wanted = reference(&a, &b);
        let options = MatmulOptions { transpose_a, transpose_b, ..MatmulOptions::default() };
        let side = |x: &Nd, t: bool| if t { turned(x).f32() } else { x.f32() };
        let found = matmul(&side(&a, transpose_a), &side(&b, transpose_b), options, DType::F32).unwrap();
        close(&found, &wanted, 1e-5);
    }

    #[test]
    fn bias_and_activation(m in 1usize..8, n in 1usize..8, row in any::<bool>(), seed in seeds()) {
        let (a, b) = (Nd::random(&[2, m, 5], seed), Nd::random(&[5, n], seed + 1));
        let bias = Nd::random(if row { vec![1, n] } else { vec![n] }.as_slice(), seed + 2);
        let product = reference(&a, &b);
        let wanted = Nd::by(&product.dims, |i| {
            f64::from(half::bf16::from_f64((product.at(i) + bias.at(&i[i.len() - 2..])).max(0.0)).to_f32())
        });
        let tensor = bias.tensor(DType::BF16);
        let options = MatmulOptions { bias: Some(&tensor), activation: Some(Unary::Relu), ..MatmulOptions::default() };
        let found = matmul(&a.tensor(DType::BF16), &b.tensor(DType::BF16), options, DType::BF16).unwrap();
        // Sums of these values are exact in float32, so only the last rounding counts.
        close(&found, &wanted, 0.0);
    }
}

#[test]
fn sizes_around_the_blocks() {
    for (m, k, n) in [(1, 300, 700), (4, 257, 513), (5, 64, 257), (40, 600, 300), (129, 70, 513), (200, 33, 40)] {
        let (a, b) = (Nd::random(&[m, k], 1), Nd::random(&[k, n], 2));
        let wanted = reference(&a, &b);
        let plain = matmul(&a.f32(), &b.tensor(DType::BF16), MatmulOptions::default(), DType::F32).unwrap();
        close(&plain, &wanted, 1e-5);
        let options = MatmulOptions { transpose_b: true, ..MatmulOptions::default() };
        let turned = transpose(&b.f32(), 0, 1).unwrap();
        close(&matmul(&a.f32(), &turned, options, DType::F32).unwrap(), &wanted, 1e-5);
        let turned = transpose(&b.tensor(DType::BF16), 0, 1).unwrap();
        close(&matmul(&a.tensor(DType::BF16), &turned, options, DType::F32).unwrap(), &wanted, 1e-5);
    }
}

#[test]
fn vectors_drop_their_dimension() {
    let (v, m) = (floats(&[2], &[1.0, 2.0]), floats(&[2, 2], &[1.0, 2.0, 3.0, 4.0]));
    fn product(a: &Tensor, b: &Tensor) -> Tensor {
        matmul(a, b, MatmulOptions::default(), DType::F32).unwrap()
    }
    assert_eq!((product(&v, &m).to_f32(), product(&v, &m).shape().rank()), (vec![7.0, 10.0], 1));
    assert_eq!(product(&m, &v).to_f32(), [5.0, 11.0]);
    assert_eq!((product(&v, &v).to_f32(), product(&v, &v).shape().rank()), (vec![5.0], 0));
}

#[test]
fn impossible_products_are_refused() {
    let x = floats(&[2, 3], &[0.0; 6]);
    fn product(a: &Tensor, b: &Tensor, options: MatmulOptions<'_>) -> Result<Tensor, OpError> {
        matmul(a, b, options, DType::F32)
    }
    assert!(product(&x, &x, MatmulOptions::default()).is_err());
    assert!(product(&floats(&[], &[1.0]), &x, MatmulOptions::default()).is_err());
    let turned = MatmulOptions { transpose_b: true, ..MatmulOptions::default() };
    assert!(product(&x, &x, turned).is_ok());
    let bias = floats(&[3], &[0.0; 3]);
    assert!(product(&x, &x, MatmulOptions { bias: Some(&bias), ..turned }).is_err());
    let stack = |n| floats(&[n, 2, 2], &vec![0.0; 4 * n]);
    assert!(product(&stack(2), &stack(3), MatmulOptions::default()).is_err());
}

#[test]
fn infinities_and_nans_spread() {
    let a = floats(&[1, 2], &[f32::INFINITY, 1.0]);
    let b = floats(&[2, 3], &[1.0, 0.0, -1.0, 1.0, 1.0, f32::NAN]);
    let found = matmul(&a, &b, MatmulOptions::default(), DType::F32).unwrap().to_f32();
    assert_eq!(found[0], f32::INFINITY);
    assert!(found[1].is_nan() && found[2].is_nan());
}

#[test]
fn values_times_gates() {
    let (a, b, bias) = (Nd::random(&[2, 3, 4], 1), Nd::random(&[4, 6], 2), Nd::random(&[6], 3));
    let mut sum = reference(&a, &b);
    sum = Nd::by(&sum.dims.clone(), |i| sum.at(i) + bias.at(i));
    let wanted = Nd::by(&[2, 3, 3], |i| {
        let gate = sum.at(&[i[0], i[1], i[2] + 3]);
        sum.at(i) * gate / (1.0 + (-gate).exp())
    });
    let bias = bias.f32();
    let options = MatmulOptions { bias: Some(&bias), swiglu: true, ..MatmulOptions::default() };
    close(&matmul(&a.f32(), &b.f32(), options, DType::F32).unwrap(), &wanted, 1e-5);
    assert!(
        matmul(&a.f32(), &floats(&[4, 3], &[0.0; 12]), MatmulOptions { bias: None, ..options }, DType::F32).is_err()
    );
}
