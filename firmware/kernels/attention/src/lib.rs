//! Scaled dot-product attention of one head: softmax(Q K^T x scale) V.
//!
//! Arguments:
//! 0. rows of tiles of Q; 0: nothing to do;
//! 1. rows of tiles of K and V;
//! 2. tiles of a row of each;
//! 3. the scale, as the bits of an f32;
//! 4. to 7. numbers of the circular buffers of Q, K, V and ones (one page, which stays);
//! 8. to 13. numbers of the circular buffers of scores, largest elements, exponentials, sums,
//!    probabilities, and result.
//!
//! All tiles are bfloat16. Q, K and V are there as a whole; scores, exponentials and probabilities
//! have room for a row of tiles of the scores.
#![no_std]

use tilework_compute::{Compute, Fidelity, Format, Softmax, Thread, Unary};

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    const BUFFERS: [u32; 10] = [4, 5, 6, 7, 8, 9, 10, 11, 12, 13];
    let (queries, keys, depth, scale) = (k.arg(0), k.arg(1), k.arg(2), k.arg(3));
    let [mut q, mut key, mut value, ones, mut scores, max, exp, sum, mut weights, mut y] =
        BUFFERS.map(|i| k.cb(k.arg(i), Format::Bf16));
    let mut softmax = Softmax { ones, max, exp, sum };
    k.hw_configure(Format::Bf16, Format::Bf16, Format::Bf16, true);
    if queries == 0 {
        return;
    }
    q.wait_front(queries * depth);
    key.wait_front(keys * depth);
    value.wait_front(keys * depth);
    for row in 0..queries {
        k.matmul_init(Fidelity::HiFi4, true);
        k.unary_init(Unary::Scale(scale));
        for column in 0..keys {
            k.tile_to(&mut scores, |k| {
                for d in 0..depth {
                    k.matmul_block(&q, &key, (row * depth + d, 0), column * depth + d, [1, 1]);
                }
                k.unary_tile(Unary::Scale(scale), 0);
            });
        }
        softmax.rows(k, &mut scores, &mut weights, keys);

        weights.wait_front(keys);
        k.matmul_init(Fidelity::HiFi4, false);
        for column in 0..depth {
            k.tile_to(&mut y, |k| {
                for i in 0..keys {
                    k.matmul_block(&weights, &value, (i, 0), i * depth + column, [1, 1]);
                }
            });
        }
        weights.pop_front(keys);
    }
    q.pop_front(queries * depth);
    key.pop_front(keys * depth);
    value.pop_front(keys * depth);
}
