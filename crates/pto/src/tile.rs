//! Tiles: real data, row by row.
//!
//! A tile here is its valid part: `pto-isa` places a Vector's share of a slot by its *valid* rows
//! and columns, so the padding of a buffer never crosses a ring.

use half::f16;
use std::fmt;

pub use tilework_dtype::DType;

/// The element types that the documents' kernels send. Rings refuse tiles of others.
pub const ELEMENT_TYPES: [DType; 5] = [DType::F32, DType::F16, DType::I32, DType::I16, DType::I8];

/// Rows, columns and element type of a tile.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Shape {
    /// Rows.
    pub rows: usize,
    /// Columns.
    pub cols: usize,
    /// Element type.
    pub dtype: DType,
}

impl Shape {
    /// A shape of these dimensions.
    pub fn new(rows: usize, cols: usize, dtype: DType) -> Self {
        Self { rows, cols, dtype }
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.rows.saturating_mul(self.cols)
    }

    /// Whether the shape is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of an element.
    pub fn element_bytes(&self) -> usize {
        (self.dtype.bits() as usize / 8).max(1)
    }

    /// Bytes without gaps.
    pub fn bytes(&self) -> usize {
        self.len().saturating_mul(self.element_bytes())
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} x {} {:?}", self.rows, self.cols, self.dtype)
    }
}

/// A tile: its shape and its elements, row by row, little endian.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tile {
    shape: Shape,
    bytes: Vec<u8>,
}

impl Tile {
    /// A tile of zeros.
    pub fn zeros(shape: Shape) -> Self {
        Self { shape, bytes: vec![0; shape.bytes()] }
    }

    /// A tile of these bytes; `None` if their number does not match the shape.
    pub fn from_bytes(shape: Shape, bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() == shape.bytes()).then_some(Self { shape, bytes })
    }

    /// A tile whose elements are computed from row and column; values are rounded as by Rust's `as`
    /// (F16: to nearest even).
    pub fn from_fn(shape: Shape, mut value: impl FnMut(usize, usize) -> f32) -> Self {
        let mut bytes = Vec::with_capacity(shape.bytes());
        for row in 0..shape.rows {
            for col in 0..shape.cols {
                let value = value(row, col);
                match shape.dtype {
                    DType::F32 => bytes.extend(value.to_le_bytes()),
                    DType::F16 => bytes.extend(f16::from_f32(value).to_le_bytes()),
                    DType::I32 => bytes.extend((value as i32).to_le_bytes()),
                    DType::I16 => bytes.extend((value as i16).to_le_bytes()),
                    DType::I8 => bytes.extend((value as i8).to_le_bytes()),
                    // No ring carries it.
                    _ => bytes.extend(std::iter::repeat_n(0, shape.element_bytes())),
                }
            }
        }
        Self { shape, bytes }
    }

    /// A tile of these values, row by row; `None` if their number does not match the shape.
    pub fn from_f32(shape: Shape, values: &[f32]) -> Option<Self> {
        (values.len() == shape.len()).then(|| Self::from_fn(shape, |row, col| values[row * shape.cols + col]))
    }

    /// The elements as single floats, row by row. An `I32` beyond 2^24 is rounded.
    pub fn to_f32(&self) -> Vec<f32> {
        let element = |b: &[u8]| match (self.shape.dtype, b) {
            (DType::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
            (DType::I32, &[a, b, c, d]) => i32::from_le_bytes([a, b, c, d]) as f32,
            (DType::F16, &[a, b]) => f16::from_le_bytes([a, b]).to_f32(),
            (DType::I16, &[a, b]) => f32::from(i16::from_le_bytes([a, b])),
            (DType::I8, &[a]) => f32::from(i8::from_le_bytes([a])),
            _ => f32::NAN,
        };
        self.bytes.chunks_exact(self.shape.element_bytes()).map(element).collect()
    }

    /// Rows, columns and element type.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The elements' bytes, row by row.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}
