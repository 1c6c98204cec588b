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
