//! Tensors of a netlist: t matrices of float32 values, cut into tiles.
//!
//! Every value is float32, whatever the data format: formats are what queues store
//! ([`crate::format`]), and golden arithmetic is float32, as in tt-budabackend's `model/`. So
//! integers beyond 2^24 are the nearest float32; words without a meaning of their own (`RawUInt32`)
//! are kept beside the values. Values lie in row-major order, matrix by matrix; tiles are a way to
//! count rows and columns, not an order of values. Cloning is cheap, nothing is changed in place.

use std::sync::Arc;

use tilework_netlist::types::{Blocks, Shape, Size};
use tilework_ops as ops;

/// The most elements of one tensor: 1 GiB of float32. A netlist can ask for any shape in a few
/// bytes; larger ones are refused before memory is allocated.
pub const MAX_ELEMENTS: usize = 1 << 28;

/// Why a tensor cannot be created.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TensorError {
    /// The shape has more elements than [`MAX_ELEMENTS`].
    #[error("a tensor of {} is larger than {MAX_ELEMENTS} elements", describe(.0))]
    TooLarge(Shape),
    /// The values do not fill the shape.
    #[error("{values} values for a tensor of {}", describe(.shape))]
    Count {
        /// Values passed.
        values: usize,
        /// Shape that they should fill.
        shape: Shape,
    },
    /// Rows and columns are not whole tiles.
    #[error("a tensor of {} is not made of whole tiles of {}x{}", describe(.shape), .tile.r, .tile.c)]
    Tiles {
        /// The shape.
        shape: Shape,
        /// Rows and columns of a tile.
        tile: Size,
    },
}

/// A shape as text: `t x rows x columns`.
pub fn describe(shape: &Shape) -> String {
    format!("{}x{}x{}", shape.t, shape.rows, shape.columns)
}

/// A shape of these lengths.
pub(crate) fn shape(t: usize, rows: usize, columns: usize) -> Shape {
    Shape { t, rows, columns }
}

/// A tensor: shape, tiles and values.
#[derive(Debug, Clone)]
pub struct Tensor {
    values: ops::Tensor,
    /// The words, if it was made of words; then the values are the nearest float32.
    words: Option<Arc<Vec<u32>>>,
    shape: Shape,
    tile: Size,
}

/// Same shape, tiles and values; a NaN equals nothing.
impl PartialEq for Tensor {
    fn eq(&self, other: &Tensor) -> bool {
        self.shape == other.shape && self.tile == other.tile && self.values() == other.values()
    }
}

impl Tensor {
    /// A tensor of these values in row-major order.
    pub fn new(shape: Shape, tile: Size, values: Vec<f32>) -> Result<Tensor, TensorError> {
        let elements = check(shape, tile)?;
        if values.len() != elements {
            return Err(TensorError::Count { values: values.len(), shape });
        }
        Tensor::wrap(shape, tile, values)
    }

    /// A tensor of words, as `RawUInt32` has them. Its values are the nearest float32.
    pub fn from_words(shape: Shape, tile: Size, words: Vec<u32>) -> Result<Tensor, TensorError> {
        let tensor = Tensor::new(shape, tile, words.iter().map(|&w| w as f32).collect())?;
        Ok(Tensor { words: Some(Arc::new(words)), ..tensor })
    }

    /// A tensor of one value throughout.
    pub fn full(shape: Shape, tile: Size, value: f32) -> Result<Tensor, TensorError> {
        Tensor::new(shape, tile, vec![value; check(shape, tile)?])
    }

    /// A tensor whose values `f(t, row, column)` gives.
    pub fn from_fn(
        shape: Shape,
        tile: Size,
        mut f: impl FnMut(usize, usize, usize) -> f32,
    ) -> Result<Tensor, TensorError> {
        let mut values = Vec::with_capacity(check(shape, tile)?);
        for t in 0..shape.t {
            for row in 0..shape.rows {
                values.extend((0..shape.columns).map(|column| f(t, row, column)));
            }
        }
        Tensor::wrap(shape, tile, values)
    }

    /// A tensor of values whose number is known to match.
    fn wrap(shape: Shape, tile: Size, values: Vec<f32>) -> Result<Tensor, TensorError> {
        let dims = ops::Shape::new([shape.t, shape.rows, shape.columns]);
        let values = dims.ok().and_then(|dims| ops::Tensor::new(dims, values).ok());
        Ok(Tensor { values: values.ok_or(TensorError::TooLarge(shape))?, words: None, shape, tile })
    }

    /// A result of the operation library with these dimensions.
    pub(crate) fn of_library(values: ops::Tensor, shape: Shape, tile: Size) -> Tensor {
        debug_assert_eq!(values.shape().dims(), [shape.t, shape.rows, shape.columns]);
        Tensor { values, words: None, shape, tile }
    }

    /// The same shape and tiles with other values.
    pub(crate) fn with_values(&self, values: ops::Tensor) -> Tensor {
        Tensor::of_library(values, self.shape, self.tile)
    }

    /// The same values, in a shape of as many elements and whole tiles.
    pub fn reshaped(&self, shape: Shape, tile: Size) -> Result<Tensor, TensorError> {
        let elements = check(shape, tile)?;
        if elements != self.elements() {
            return Err(TensorError::Count { values: self.elements(), shape });
        }
        let dims = [shape.t as i64, shape.rows as i64, shape.columns as i64];
        let values = ops::reshape(&self.values, &dims).map_err(|_| TensorError::TooLarge(shape))?;
        Ok(Tensor { values, words: self.words.clone(), shape, tile })
    }

    /// Shape in elements.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// Rows and columns of a tile.
    pub fn tile(&self) -> Size {
        self.tile
    }

    /// Rows of tiles of a matrix.
    pub fn tile_rows(&self) -> usize {
        self.shape.rows / self.tile.r as usize
    }

    /// Columns of tiles of a matrix.
    pub fn tile_columns(&self) -> usize {
        self.shape.columns / self.tile.c as usize
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.values.elements()
    }

    /// The values in row-major order, matrix by matrix.
    pub fn values(&self) -> &[f32] {
        self.values.values().unwrap_or_default()
    }

    /// The words that the tensor was made of, in the order of the values. TMs and operations do
    /// not keep them.
    pub fn words(&self) -> Option<&[u32]> {
        self.words.as_ref().map(|words| words.as_slice())
    }

    /// The values as a tensor of the operation library, of three dimensions.
    pub(crate) fn library(&self) -> &ops::Tensor {
        &self.values
    }
}

/// The number of elements of a shape, if it is allowed and has whole tiles. With a dimension of
/// zero, the product of the others must still be within bounds.
pub fn check(shape: Shape, tile: Size) -> Result<usize, TensorError> {
    let lengths = [shape.t, shape.rows, shape.columns];
    let product = lengths.iter().filter(|&&n| n != 0).try_fold(1usize, |all, &n| all.checked_mul(n));
    if product.is_none_or(|n| n > MAX_ELEMENTS) {
        return Err(TensorError::TooLarge(shape));
    }
    let elements = lengths.iter().product();
    let whole = |length: usize, tile: u32| tile != 0 && length.is_multiple_of(tile as usize);
    if !whole(shape.rows, tile.r) || !whole(shape.columns, tile.c) {
        return Err(TensorError::Tiles { shape, tile });
    }
    Ok(elements)
}

/// The shape that blocks describe, if it is allowed; the numbers may be arbitrary.
pub fn shape_of(blocks: &Blocks) -> Result<Shape, TensorError> {
    let length = |parts: [u32; 4]| parts.iter().try_fold(1usize, |n, &p| n.checked_mul(p as usize));
    let rows = length([blocks.grid.r, blocks.mblock.r, blocks.ublock.r, blocks.tile.r]);
    let columns = length([blocks.grid.c, blocks.mblock.c, blocks.ublock.c, blocks.tile.c]);
    let shape =
        Shape { t: blocks.t as usize, rows: rows.unwrap_or(usize::MAX), columns: columns.unwrap_or(usize::MAX) };
    check(shape, blocks.tile).map(|_| shape)
}
