//! Scores by which sparse attention selects keys (`ttnn.experimental.indexer_score_dsa`; tt-mlir
//! `transformer.fbs`).

use crate::error::{OpError, Reason, Within};
use crate::gemm::{self, Matrix};
use crate::produce::{self, as_f32};
use crate::tensor::Tensor;
use crate::{DType, Shape};

/// For each query and key the sum over heads of `relu(query * key) * weight`; minus infinity for
/// keys after the query, whose position is `first` plus its index. Queries are
/// `[batch, heads, queries, size]`, keys `[batch, 1, keys, size]`, weights
/// `[batch, heads, queries, 1]`, the result `[batch, 1, queries, keys]`.
pub fn indexer_scores(
    query: &Tensor,
    key: &Tensor,
    weights: &Tensor,
    first: usize,
    out: DType,
) -> Result<Tensor, OpError> {
    const OP: &str = "indexer_score_dsa";
    let operands = [query, key, weights];
    let ([batch, heads, queries, size], [kb, 1, keys, ks]) = (query.shape().dims(), key.shape().dims()) else {
        let wanted = "[batch x heads x queries x size], and keys [batch x 1 x keys x size]";
        return Err(Reason::shape(query.shape(), wanted).of(OP, &operands));
    };
    let (batch, heads, queries, size, keys) = (*batch, *heads, *queries, *size, *keys);
    if (*kb, *ks) != (batch, size) {
        return Err(Reason::shape(key.shape(), format!("[{batch} x 1 x keys x {size}]")).of(OP, &operands));
    }
    if *weights.shape().dims() != [batch, heads, queries, 1] {
        return Err(Reason::shape(weights.shape(), format!("[{batch}x{heads}x{queries}x1]")).of(OP, &operands));
    }
    let shape = Shape::new([batch, 1, queries, keys]).within(OP, &operands)?;
    let (q, k, w) = (as_f32(query), as_f32(key), as_f32(weights));
    Ok(produce::heavy(shape, out, queries * keys, |start, values| {
        let mut products = vec![0f32; queries * keys];
        for (i, scores) in values.chunks_mut((queries * keys).max(1)).enumerate() {
            let entry = start / (queries * keys) + i;
            for head in entry * heads..(entry + 1) * heads {
                let a = Matrix::row_major(&q[head * queries * size..], size);
                let b = Matrix { values: &k[entry * keys * size..], rows: 1, columns: size };
                gemm::multiply(queries, size, keys, a, b, &mut products, keys);
                for (at, (score, product)) in scores.iter_mut().zip(&products).enumerate() {
                    *score += product.max(0.0) * w[head * queries + at / keys];
                }
            }
            for (at, score) in scores.iter_mut().enumerate() {
                if at % keys > first.saturating_add(at / keys) {
                    *score = f32::NEG_INFINITY;
                }
            }
        }
    }))
}
