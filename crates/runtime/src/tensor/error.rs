//! Why a tensor cannot be.

use tilework_dtype::DType;
use tilework_tensor_layout::LayoutError;

/// Why a tensor cannot be created or filled.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TensorError {
    /// The chip has no tensors of these elements.
    #[error("tensors have no elements of type {}, expected {}", .0.name(), super::spec::type_names())]
    Type(DType),
    /// The shape or the data has no such layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// An array of another shape than the tensor's.
    #[error("found an array of shape {found:?}, expected {expected:?}")]
    Shape {
        /// The array's.
        found: Vec<usize>,
        /// The tensor's.
        expected: Vec<usize>,
    },
    /// An array whose bytes are not those of its elements.
    #[error("found {found} bytes for shape {shape:?} of {}, expected {}", .dtype.name(), bytes(.expected))]
    DataSize {
        /// Bytes given.
        found: usize,
        /// Bytes of the shape; none if they cannot be counted.
        expected: Option<usize>,
        /// The array's shape.
        shape: Vec<usize>,
        /// Its elements.
        dtype: DType,
    },
    /// The kernels that tilize cannot do this.
    #[error("the chip tilizes no tensor with {0}; let the host do it")]
    OnChip(&'static str),
    /// A page or a number of pages that a buffer cannot have.
    #[error("found {found} {what}, expected at most {}", u32::MAX)]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much.
        found: usize,
    },
}

fn bytes(expected: &Option<usize>) -> String {
    expected.map_or_else(|| "elements with bytes of their own".to_owned(), |bytes| bytes.to_string())
}
