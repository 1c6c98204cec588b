//! Layer normalisation along the rows of a matrix, a row of tiles at a time:
//! y = (x - mean) / sqrt(variance + epsilon) x gamma + beta.
//!
//! Arguments:
//! 0. number of rows of tiles (may be 0);
//! 1. tiles of a row;
//! 2. epsilon, as the bits of an f32;
//! 3. to 6. numbers of the circular buffers of argument, scaler, gamma and beta. The scaler is one
//!    page with 1 / (elements of a row) in row 0 of each face; of gamma and beta, row 0 counts.
//!    These three stay;
//! 7. to 12. numbers of the circular buffers of means, differences, squares, factors, products, and
//!    result.
//!
//! All tiles are bfloat16. Argument, gamma, beta, differences and squares have room for a row of
//! tiles.
#![no_std]

use tilework_compute::{Binary, Broadcast, Compute, Fidelity, Format, Pool, Reduce, Thread, Unary};

const SUM_OF_ROWS: (Pool, Reduce) = (Pool::Sum, Reduce::Rows);

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    const BUFFERS: [u32; 10] = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    let (rows, columns, epsilon) = (k.arg(0), k.arg(1), k.arg(2));
    let [mut x, scaler, gamma, beta, mut mean, mut difference, mut square, mut factor, mut product, mut y] =
        BUFFERS.map(|i| k.cb(k.arg(i), Format::Bf16));
    k.hw_configure(Format::Bf16, Format::Bf16, Format::Bf16, true);
    if rows != 0 {
        scaler.wait_front(1);
        gamma.wait_front(columns);
        beta.wait_front(columns);
    }
    for _ in 0..rows {
        x.wait_front(columns);
        k.reduce_init(Reduce::Rows);
        k.tile_to(&mut mean, |k| (0..columns).for_each(|c| k.reduce_tile(SUM_OF_ROWS, &x, &scaler, [c, 0], 0)));

        mean.wait_front(1);
        k.binary_init(Binary::Subtract, Broadcast::Column, Fidelity::LoFi);
        for c in 0..columns {
            k.tile_to(&mut difference, |k| k.binary_tiles(&x, &mean, c, 0, 0));
        }
        mean.pop_front(1);
        x.pop_front(columns);

        difference.wait_front(columns);
        k.binary_init(Binary::Multiply, Broadcast::None, Fidelity::HiFi4);
        for c in 0..columns {
            k.tile_to(&mut square, |k| k.binary_tiles(&difference, &difference, c, c, 0));
        }

        square.wait_front(columns);
        k.reduce_init(Reduce::Rows);
        k.unary_init(Unary::Rsqrt(epsilon));
        k.tile_to(&mut factor, |k| {
            (0..columns).for_each(|c| k.reduce_tile(SUM_OF_ROWS, &square, &scaler, [c, 0], 0));
            k.unary_tile(Unary::Rsqrt(epsilon), 0);
        });
        square.pop_front(columns);

        factor.wait_front(1);
        for c in 0..columns {
            k.binary_init(Binary::Multiply, Broadcast::Column, Fidelity::HiFi4);
            k.tile_to(&mut product, |k| k.binary_tiles(&difference, &factor, c, 0, 0));
            product.wait_front(1);
            k.binary_init(Binary::Multiply, Broadcast::Row, Fidelity::HiFi4);
            k.tile_to(&mut mean, |k| k.binary_tiles(&product, &gamma, 0, c, 0));
            product.pop_front(1);
            mean.wait_front(1);
            k.binary_init(Binary::Add, Broadcast::Row, Fidelity::LoFi);
            k.tile_to(&mut y, |k| k.binary_tiles(&mean, &beta, 0, c, 0));
            mean.pop_front(1);
        }
        factor.pop_front(1);
        difference.pop_front(columns);
    }
}
