//! Mixtures of experts on one device: the router, and products with the experts' weights
//! (`ttnn.topk_router_gpt`, `ttnn.sparse_matmul`; tt-mlir `reduction.fbs`, `matmul.fbs`).
//!
//! What moves tokens between devices is in [`crate::mesh`].

use crate::error::{OpError, Reason, Within};
use crate::gemm::{self, Matrix};
use crate::produce::{self, as_f32};
use crate::tensor::Tensor;
use crate::{Binary, DType, MatmulOptions, Shape, binary, matmul, softmax, topk};

/// Which operand of a [`sparse_matmul`] has a block for each flag of the sparsity. The other
/// repeats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SparseSide {
    /// The second: each block of the first, `[a, b, m, k]`, meets all experts. The flags are
    /// `[a, b, 1, experts]`, the result `[a, b, 1, experts, m, n]`.
    Weights,
    /// The first: `[a, experts, m, k]`, each block with its own expert. The flags are
    /// `[1, 1, a, experts]`, the result `[a, experts, m, n]`.
    Activations,
}

/// Products of those blocks whose flag is not zero, with the weights `[1, experts, k, n]`. The
/// device leaves the other blocks of the result as they are in memory; here they are zeros.
///
/// `nonzero` is the number of flags that are not zero, which the device takes from the program
/// instead of counting them: it must be right. A count of 0 means that all blocks are computed.
pub fn sparse_matmul(
    a: &Tensor,
    b: &Tensor,
    sparsity: &Tensor,
    side: SparseSide,
    nonzero: Option<usize>,
    out: DType,
) -> Result<Tensor, OpError> {
    const OP: &str = "sparse_matmul";
    let operands = [a, b, sparsity];
    let ([a0, a1, m, k], [1, experts, kb, n]) = (a.shape().dims(), b.shape().dims()) else {
        let wanted = "[a x b x m x k], and weights [1 x experts x k x n]";
        return Err(Reason::shape(a.shape(), wanted).of(OP, &operands));
    };
    let (a0, a1, m, k, experts, n) = (*a0, *a1, *m, *k, *experts, *n);
    let (blocks, dims) = match side {
        SparseSide::Weights => (a0 * a1 * experts, vec![a0, a1, 1, experts, m, n]),
        SparseSide::Activations => (a0 * a1, vec![a0, a1, m, n]),
    };
    if k != *kb || (side == SparseSide::Activations && a1 != experts) {
        let wanted = format!("[1 x {} x {k} x n]", if side == SparseSide::Activations { a1 } else { experts });
        return Err(Reason::shape(b.shape(), wanted).of(OP, &operands));
    }
    if sparsity.elements() != blocks {
        return Err(Reason::shape(sparsity.shape(), format!("{blocks} flags")).of(OP, &operands));
    }
    let mut flags: Vec<bool> = sparsity.to_f32().into_iter().map(|flag| flag != 0.0).collect();
    let found = flags.iter().filter(|&&flag| flag).count();
    match nonzero {
        Some(0) => flags.fill(true),
        Some(stated) if stated != found => {
            let why = format!("{stated} blocks, but {found} flags of the sparsity are not zero");
            return Err(Reason::attribute("nnz", why).of(OP, &operands));
        }
        _ => {}
    }
    let shape = Shape::new(dims).within(OP, &operands)?;
    let (left, right) = (as_f32(a), as_f32(b));
    let of_left = |block: usize| if side == SparseSide::Weights { block / experts } else { block };
    Ok(produce::heavy(shape, out, m * n, |start, values| {
        for (i, result) in values.chunks_mut((m * n).max(1)).enumerate() {
            let block = start / (m * n) + i;
            if flags[block] && k > 0 {
                let a = Matrix::row_major(&left[of_left(block) * m * k..], k);
                let b = Matrix::row_major(&right[block % experts * k * n..], n);
                gemm::multiply(m, k, n, a, b, result, n);
            }
        }
    }))
}

/// The `k` experts with the largest logits `input * weight + bias` of each token, the best first,
/// and the softmax of these logits: indices in type `index`, weights in type `out`. Logits are
/// rounded to the input's type before they are compared, as the device holds them.
pub fn topk_router(
    input: &Tensor,
    weight: &Tensor,
    bias: &Tensor,
    k: usize,
    index: DType,
    out: DType,
) -> Result<(Tensor, Tensor), OpError> {
    let product = matmul(input, weight, MatmulOptions::default(), DType::F32)?;
    let logits = binary(Binary::Add, &product, bias, input.dtype())?;
    let (best, experts) = topk(&logits, k, -1, true, index)?;
    Ok((experts, softmax(&best, -1, out)?))
}
