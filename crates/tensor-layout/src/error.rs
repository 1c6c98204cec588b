//! What a layout refuses.

use tilework_dtype::DType;

/// Why a tensor has no such layout, or why data does not fit it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayoutError {
    /// No tile has this shape.
    #[error("a tile of {height}x{width}: tiles have 1, 2, 4, 8, 16 or 32 rows and 16 or 32 columns")]
    TileShape {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// Elements that share exponents do not exist outside of tiles.
    #[error("elements of type {} in rows: they share exponents and exist in tiles only", .0.name())]
    BlockRows(DType),
    /// Rows cannot be divided into pages without columns.
    #[error("pages of 0 columns: a page has one column at least")]
    PageWidth,
    /// More bytes than can be addressed.
    #[error("a tensor of shape {0:?} has too many elements")]
    TooLarge(Vec<usize>),
    /// No conversion is defined.
    #[error("no conversion from {} to {}", .from.name(), .to.name())]
    Conversion {
        /// The type of the data.
        from: DType,
        /// The type asked for.
        to: DType,
    },
    /// The padding is no element of the type.
    #[error("padding {pad} is no element of type {}", .dtype.name())]
    Padding {
        /// The value as text.
        pad: String,
        /// The type.
        dtype: DType,
    },
    /// Data of another size than the layout's.
    #[error("found {found} bytes, expected {expected}: shape {shape:?}, {}", .dtype.name())]
    DataSize {
        /// Bytes given.
        found: usize,
        /// Bytes of the tensor.
        expected: usize,
        /// Its shape.
        shape: Vec<usize>,
        /// The type of the data.
        dtype: DType,
    },
    /// The host has not so much memory.
    #[error("not enough memory of the host for {0} bytes")]
    HostMemory(usize),
}
