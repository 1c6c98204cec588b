//! Conversion of the descriptions in a file to shapes and element types.

use std::fmt;

use tilework_model::common::DataType;
use tilework_model::ttnn::TensorDesc;
use tilework_ops::{DType, ELEMENT_TYPES, Shape, Tensor};

use crate::lower::Refusal;
use crate::session::Rounding;

/// Element type and shape that a program states for a tensor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stated {
    pub(crate) dtype: DType,
    pub(crate) shape: Shape,
}

impl Stated {
    pub(crate) fn of(desc: &TensorDesc) -> Result<Self, Refusal> {
        let data_type = desc.layout.memory_desc.data_type;
        let dtype = dtype(data_type).ok_or(Refusal::Type(data_type))?;
        Ok(Self { dtype, shape: shape(desc.shape.iter().map(|&n| i64::from(n)))? })
    }

    /// The type and shape of such a tensor while the program runs.
    pub(crate) fn under(self, rounding: Rounding) -> Self {
        Self { dtype: rounding.kept(self.dtype), ..self }
    }

    /// Bytes of host memory that such a tensor takes. Block types are held as float32.
    pub(crate) fn bytes(&self) -> usize {
        self.shape.elements().saturating_mul(self.dtype.bytes().unwrap_or(4))
    }

    /// Whether a tensor's shape is this one. A scalar and a vector of one element count as the
    /// same: files state either for the same value.
    pub(crate) fn fits(&self, shape: &Shape) -> bool {
        let dims = |shape: &Shape| if shape.rank() == 0 { vec![1] } else { shape.dims().to_vec() };
        dims(&self.shape) == dims(shape)
    }
}

impl fmt::Display for Stated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.dtype.mlir_name(), self.shape)
    }
}

impl From<&Tensor> for Stated {
    fn from(tensor: &Tensor) -> Self {
        Self { dtype: tensor.dtype(), shape: tensor.shape().clone() }
    }
}

/// The element type, if host arithmetic has it. Types of 64 bits and those of blocks with a 5-bit
/// exponent are missing: no device program uses the former, no compiler writes the latter.
pub(crate) fn dtype(data_type: DataType) -> Option<DType> {
    Some(DType::from(data_type)).filter(|dtype| ELEMENT_TYPES.contains(dtype))
}

/// A shape of numbers from a file.
pub(crate) fn shape(dims: impl Iterator<Item = i64>) -> Result<Shape, Refusal> {
    let dims: Vec<i64> = dims.collect();
    let lengths: Option<Vec<usize>> = dims.iter().map(|&n| usize::try_from(n).ok()).collect();
    match lengths.map(Shape::new) {
        Some(Ok(shape)) => Ok(shape),
        Some(Err(reason)) => Err(Refusal::Shape(reason.to_string())),
        None => Err(Refusal::Shape(format!("{dims:?} has a negative length"))),
    }
}
