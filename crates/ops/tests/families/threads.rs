//! The same bits for any number of threads.

use tilework_ops::{
    Affine, Attention, Binary, Conv2d, DType, MatmulOptions, Padding, Reduction, Tensor, Unary, Window, attention,
    binary, conv2d, layer_norm, matmul, rand, reduce, softmax, sort, unary,
};

use crate::common::shape;

fn work() -> Vec<Tensor> {
    let random = |dims: &[usize], seed| rand(shape(dims), DType::BF16, -1.0, 1.0, seed);
    let (a, b) = (random(&[3, 301, 130], 1), random(&[3, 130, 701], 2));
    let heads = random(&[2, 3, 200, 40], 3);
    let image = random(&[1, 1, 2 * 40 * 41, 16], 4);
    let window = Window {
        kernel: [3, 3],
        stride: [1, 1],
        padding: Padding { top: 1, bottom: 1, left: 1, right: 1 },
        dilation: [1, 1],
    };
    let conv =
        Conv2d { batch: 2, input: [40, 41], in_channels: 16, out_channels: 24, window, groups: 1, activation: None };
    let product = matmul(&a, &b, MatmulOptions::default(), DType::F32).unwrap();
    vec![
        unary(Unary::Gelu, &product, DType::BF16).unwrap(),
        binary(Binary::Add, &product, &random(&[301, 1], 5), DType::BF16).unwrap(),
        reduce(Reduction::Sum, &product, &[0, 2], false, DType::F32).unwrap(),
        reduce(Reduction::Sum, &product, &[0, 1], false, DType::F32).unwrap(),
        softmax(&product, 1, DType::F32).unwrap(),
        layer_norm(&product, Affine::default(), 1e-5, DType::F32).unwrap(),
        sort(&product, -1, true, DType::U32).unwrap().1,
        attention(&heads, &heads, &heads, Attention { causal: true, ..Attention::default() }, DType::F32).unwrap(),
        conv2d(&image, &random(&[24, 16, 3, 3], 6), None, &conv, DType::F32).unwrap(),
        // A right operand that is read once.
        matmul(&random(&[2, 900], 7), &random(&[900, 3000], 8), MatmulOptions::default(), DType::F32).unwrap(),
        product,
    ]
}

#[test]
fn bits_do_not_depend_on_threads() {
    let results: Vec<Vec<Vec<u8>>> = [1, 2, 5]
        .iter()
        .map(|&n| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(n).build().unwrap();
            pool.install(|| work().iter().map(Tensor::to_le_bytes).collect())
        })
        .collect();
    for other in &results[1..] {
        for (i, (a, b)) in results[0].iter().zip(other).enumerate() {
            assert!(a == b, "result {i} differs");
        }
    }
}
