//! Reference implementations of attention.

use crate::DType;
use crate::examples::plain::Matrix;
use half::f16;

/// `softmax(q k^T / sqrt(d)) v` in single precision, with all scores of a row at once. `q` and `k`
/// have `d` columns, `k` and `v` as many rows.
pub fn attention(q: &Matrix, k: &Matrix, v: &Matrix) -> Matrix {
    let scores = q.times(&k.transposed()).map(|s| s * scale(q.cols()));
    let mut p = scores;
    for row in 0..p.rows() {
        let row = p.row_mut(row);
        let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut sum = 0.0;
        for value in row.iter_mut() {
            *value = libm::expf(*value - max);
            sum += *value;
        }
        for value in row {
            *value /= sum;
        }
    }
    p.times(v)
}

/// Attention row by row, in blocks of `block` columns of the scores with a running maximum; the
/// elements of P are rounded to `p` before they are multiplied with `v`. In exact arithmetic it
/// equals [`attention`]; it rounds where the pipeline rounds.
pub fn attention_by_blocks(q: &Matrix, k: &Matrix, v: &Matrix, block: usize, p: DType) -> Matrix {
    let round = |value: f32| if p == DType::F16 { f16::from_f32(value).to_f32() } else { value };
    let mut result = Matrix::from_fn(q.rows(), v.cols(), |_, _| 0.0);
    for row in 0..q.rows() {
        let (mut max, mut sum) = (f32::NEG_INFINITY, 0.0);
        let mut out = vec![0.0; v.cols()];
        let score = |col: usize| q.row(row).iter().zip(k.row(col)).map(|(a, b)| a * b).sum::<f32>() * scale(q.cols());
        let scores: Vec<f32> = (0..k.rows()).map(score).collect();
        for (first, scores) in (0..).step_by(block.max(1)).zip(scores.chunks(block.max(1))) {
            let new = scores.iter().copied().fold(max, f32::max);
            let factor = libm::expf(max - new);
            max = new;
            let weights: Vec<f32> = scores.iter().map(|s| libm::expf(s - max)).collect();
            sum = sum * factor + weights.iter().sum::<f32>();
            for (col, value) in out.iter_mut().enumerate() {
                let part: f32 = weights.iter().enumerate().map(|(i, &w)| round(w) * v.row(first + i)[col]).sum();
                *value = *value * factor + part;
            }
        }
        for (value, out) in result.row_mut(row).iter_mut().zip(out) {
            *value = out / sum;
        }
    }
    result
}

/// The factor of the scores: 1 / sqrt(d).
pub fn scale(d: usize) -> f32 {
    1.0 / (d as f32).sqrt()
}
