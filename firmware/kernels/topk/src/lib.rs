//! Finds the first 32 or 64 elements of the rows of a matrix, sorted, and their places.
//!
//! Arguments:
//! 0. number of rows of tiles (may be 0);
//! 1. tiles of a row;
//! 2. tiles of results, 1 or 2: 32 or 64 elements, at most as many as a row has;
//! 3. 0: the largest elements come first, 1: the smallest;
//! 4. to 8. numbers of the circular buffers of the matrix, of values and indices while they are in
//!    columns (as many pages as tiles of results), of values, and of indices.
//!
//! Values are bfloat16, indices `UInt16`. `tilework_compute::TopK` says what comes first of equal
//! elements.
#![no_std]

use tilework_compute::{Compute, Format, Order, Thread, TopK};

/// The kernel.
pub fn main<T: Thread>(k: &mut Compute<T>) {
    let (rows, size) = (k.arg(0), [k.arg(1), k.arg(2)]);
    let order = if k.arg(3) == 0 { Order::Largest } else { Order::Smallest };
    let [mut x, values, mut y] = [4, 5, 7].map(|i| k.cb(k.arg(i), Format::Bf16));
    let [indices, mut places] = [6, 8].map(|i| k.cb(k.arg(i), Format::UInt16));
    let mut topk = TopK { values, indices };
    k.hw_configure(Format::Bf16, Format::Bf16, Format::Bf16, false);
    for _ in 0..rows {
        topk.row(k, order, &mut x, [&mut y, &mut places], size);
    }
}
