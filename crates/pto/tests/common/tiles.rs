//! Tiles that the tests send, and what each Vector should get of them by plain indexing.

use tilework_pto::{CoreId, Shape, Tile};

/// The whole tile of this number: every element says which it is (`iteration * 1000 + index + 1`,
/// as the documents' tests have it).
pub(crate) fn whole(shape: Shape, number: usize) -> Tile {
    Tile::from_fn(shape, |row, col| (number * 1000 + row * shape.cols + col + 1) as f32)
}

/// What a Vector has of a whole tile, by plain indexing: rows `r0..r1`, columns `c0..c1`.
pub(crate) fn cut(tile: &Tile, rows: (usize, usize), cols: (usize, usize)) -> Tile {
    let (values, width) = (tile.to_f32(), tile.shape().cols);
    let shape = Shape::new(rows.1 - rows.0, cols.1 - cols.0, tile.shape().dtype);
    Tile::from_fn(shape, |row, col| values[(rows.0 + row) * width + cols.0 + col])
}

/// The upper or lower half.
pub(crate) fn half(tile: &Tile, core: CoreId) -> Tile {
    let (rows, cols) = (tile.shape().rows, tile.shape().cols);
    let middle = rows / 2;
    cut(tile, if core == CoreId::Vector0 { (0, middle) } else { (middle, rows) }, (0, cols))
}
