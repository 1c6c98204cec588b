//! Rotary position embeddings, put together from the calls of the library.

use crate::{Binary, Broadcast, Cb, Compute, Fidelity, Thread};

/// Prepares [`row`].
pub fn init<T: Thread>(k: &mut Compute<T>) {
    k.binary_init(Binary::Multiply, Broadcast::None, Fidelity::HiFi4);
}

/// Turns a row of `columns` tiles, an even number: the pages of `y` become x cos + x' sin, where x'
/// is x with its halves exchanged. The sines of the first half have the other sign. Dst should be
/// wide, because both products are added up there.
pub fn row<T: Thread>(k: &mut Compute<T>, [x, cos, sin]: [&Cb<T>; 3], y: &mut Cb<T>, columns: u32) {
    let half = columns / 2;
    for c in 0..columns {
        let other = if c < half { c + half } else { c - half };
        k.tile_to(y, |k| {
            k.binary_tiles(x, cos, c, c, 0);
            k.binary_tiles(x, sin, other, c, 0);
        });
    }
}

/// Turns a row of `columns` tiles by pairs of neighbours, as Llama has it: the pages of `y` become
/// x cos + x' sin, where x' is x times the tile of `matrix`. With the tile whose element (i, j) is
/// 1 for i = j - 1 and odd j, -1 for i = j + 1 and even j, else 0, x' is (-x1, x0, -x3, x2, ...).
/// `turned` is a circular buffer for x', with as many pages as the row. Dst should be wide.
///
/// Leaves the units prepared for [`row`].
pub fn pairs_row<T: Thread>(
    k: &mut Compute<T>,
    [x, cos, sin, matrix]: [&Cb<T>; 4],
    [turned, y]: [&mut Cb<T>; 2],
    columns: u32,
) {
    k.matmul_init(Fidelity::HiFi4, false);
    for c in 0..columns {
        k.tile_to(turned, |k| k.matmul_block(x, matrix, (c, 1), 0, [1, 1]));
    }
    init(k);
    turned.wait_front(columns);
    for c in 0..columns {
        k.tile_to(y, |k| {
            k.binary_tiles(x, cos, c, c, 0);
            k.binary_tiles(turned, sin, c, c, 0);
        });
    }
    turned.pop_front(columns);
}
