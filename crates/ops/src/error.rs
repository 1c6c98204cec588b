//! Errors of operations: the operation, its operands' types and shapes, and the reason.
//!
//! Operations come from files, so a bad shape, axis or attribute is an error value, never a
//! panic. The text of a reason is complete without the operand list; the list shows at once
//! what was passed.

use std::fmt;

use tilework_tensor_layout::LayoutError;

use crate::{DType, Shape, Tensor};

/// Maximum number of elements of one tensor. A file can ask for any shape in a few bytes; a larger
/// one is refused before memory is allocated. This many elements of float32 take 16 GiB, half the
/// DRAM of the larger Blackhole board.
pub const MAX_ELEMENTS: usize = u32::MAX as usize;

/// An operation that cannot be computed as asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{op}({operands}): {reason}")]
pub struct OpError {
    /// Name of the operation, as `ttnn` writes it.
    pub op: &'static str,
    /// Types and shapes of its operands.
    pub operands: Operands,
    /// What is wrong.
    pub reason: Reason,
}

/// Why an operation cannot be computed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Reason {
    /// These shapes do not broadcast to one another.
    #[error("shapes {0} and {1} do not broadcast")]
    Broadcast(Shape, Shape),
    /// The shape does not fit the operation.
    #[error("shape {found} where {wanted} is expected")]
    Shape {
        /// The shape that was passed.
        found: Shape,
        /// The shapes that are accepted.
        wanted: String,
    },
    /// An axis that the tensor does not have.
    #[error("axis {axis} of a tensor of rank {rank}")]
    Axis {
        /// Axis as given, negative values counting from the end.
        axis: i64,
        /// Rank of the tensor.
        rank: usize,
    },
    /// An attribute has no meaning with these operands.
    #[error("attribute {name}: {why}")]
    Attribute {
        /// Name of the attribute.
        name: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The operation is not defined for this element type.
    #[error("element type {} is not supported", .0.mlir_name())]
    Type(DType),
    /// An index tensor points outside of what it indexes.
    #[error("index {index} outside of 0..{bound}")]
    Index {
        /// The index found.
        index: i64,
        /// First index that is too large.
        bound: usize,
    },
    /// The number of values does not match the shape.
    #[error("{values} values for {shape}, which has {wanted} elements", wanted = .shape.elements())]
    Count {
        /// Values passed.
        values: usize,
        /// Shape that they should fill.
        shape: Shape,
    },
    /// The result would have more elements than [`MAX_ELEMENTS`].
    #[error("a tensor of dimensions {0:?} is larger than {MAX_ELEMENTS} elements")]
    TooLarge(Vec<usize>),
    /// The tensor does not fit a layout of device memory.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

impl Reason {
    /// A [`Reason::Attribute`].
    pub(crate) fn attribute(name: &'static str, why: impl Into<String>) -> Reason {
        Reason::Attribute { name, why: why.into() }
    }

    /// A [`Reason::Shape`].
    pub(crate) fn shape(found: &Shape, wanted: impl Into<String>) -> Reason {
        Reason::Shape { found: found.clone(), wanted: wanted.into() }
    }

    /// This reason as the error of an operation on these operands.
    pub(crate) fn of(self, op: &'static str, operands: &[&Tensor]) -> OpError {
        let list = operands.iter().map(|t| (t.dtype(), t.shape().clone())).collect();
        OpError { op, operands: Operands(list), reason: self }
    }
}

/// Adds the operation's name and operands to a reason.
pub(crate) trait Within<T> {
    /// The same result, its error naming `op` and `operands`.
    fn within(self, op: &'static str, operands: &[&Tensor]) -> Result<T, OpError>;
}

impl<T> Within<T> for Result<T, Reason> {
    fn within(self, op: &'static str, operands: &[&Tensor]) -> Result<T, OpError> {
        self.map_err(|reason| reason.of(op, operands))
    }
}

/// Element types and shapes of an operation's operands, in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Operands(pub Vec<(DType, Shape)>);

impl fmt::Display for Operands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (dtype, shape)) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{} {shape}", dtype.mlir_name())?;
        }
        Ok(())
    }
}
