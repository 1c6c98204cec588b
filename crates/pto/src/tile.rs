//! Tiles: real data, row by row.
//!
//! A tile here is its valid part: `pto-isa` places a Vector's share of a slot by its *valid* rows
//! and columns, so the padding of a buffer never crosses a ring.

use half::f16;
use std::fmt;

/// The element types of the documents' kernels.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum DType {
    /// IEEE single.
    F32,
    /// IEEE half.
    F16,
    /// Signed, 32 bits.
    I32,
    /// Signed, 16 bits.
    I16,
    /// Signed, 8 bits.
    I8,
}

impl DType {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Self::F32 | Self::I32 => 4,
            Self::F16 | Self::I16 => 2,
            Self::I8 => 1,
        }
    }
}

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
    /// A shape.
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

    /// Bytes without gaps.
    pub fn bytes(&self) -> usize {
        self.len().saturating_mul(self.dtype.bytes())
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

    /// A tile of these bytes, unless their number is not the shape's.
    pub fn from_bytes(shape: Shape, bytes: Vec<u8>) -> Option<Self> {
        (bytes.len() == shape.bytes()).then_some(Self { shape, bytes })
    }

    /// A tile of a function of row and column; values are rounded as Rust's `as` does (to even
    /// for halves).
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
                }
            }
        }
        Self { shape, bytes }
    }

    /// A tile of these values, row by row, unless their number is not the shape's.
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
        self.bytes.chunks_exact(self.shape.dtype.bytes()).map(element).collect()
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
