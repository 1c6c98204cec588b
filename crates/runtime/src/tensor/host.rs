//! Arrays of the host, in row-major order.

use super::TensorError;
use tilework_dtype::DType;

/// A type whose values a [`HostTensor`] can be made of.
pub trait HostElement: Copy + sealed::Sealed {
    /// The element type.
    const DTYPE: DType;
    /// Appends the little-endian bytes.
    fn put(self, bytes: &mut Vec<u8>);
    /// The value of its little-endian bytes; 0 for another number of bytes.
    fn of(bytes: &[u8]) -> Self;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! host_elements {
    ($($type:ty = $dtype:ident;)+) => {
        $(impl sealed::Sealed for $type {}
        impl HostElement for $type {
            const DTYPE: DType = DType::$dtype;
            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }
            fn of(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().unwrap_or_default())
            }
        })+
    };
}

host_elements! {
    f32 = F32;
    i32 = I32;
    u32 = U32;
    u16 = U16;
    u8 = U8;
}

/// An array in row-major order, its elements little-endian.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostTensor {
    shape: Vec<usize>,
    dtype: DType,
    data: Vec<u8>,
}

impl HostTensor {
    /// An array of these bytes.
    ///
    /// # Errors
    /// Another number of bytes than the shape has; a block format, whose elements have none.
    pub fn from_le_bytes(shape: &[usize], dtype: DType, data: Vec<u8>) -> Result<Self, TensorError> {
        let expected = dtype.bytes().and_then(|size| shape.iter().try_fold(size, |n, &d| n.checked_mul(d)));
        if expected != Some(data.len()) {
            return Err(TensorError::DataSize { found: data.len(), expected, shape: shape.to_vec(), dtype });
        }
        Ok(Self { shape: shape.to_vec(), dtype, data })
    }

    /// An array of these values.
    ///
    /// # Errors
    /// Another number of values than the shape has.
    pub fn from_values<T: HostElement>(shape: &[usize], values: &[T]) -> Result<Self, TensorError> {
        let mut data = Vec::with_capacity(size_of_val(values));
        values.iter().for_each(|value| value.put(&mut data));
        Self::from_le_bytes(shape, T::DTYPE, data)
    }

    /// Elements in each dimension, outermost first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }
    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }
    /// The elements' little-endian bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.data
    }
    /// The elements' little-endian bytes.
    pub fn into_bytes(self) -> Vec<u8> {
        self.data
    }
    /// The values, if they are of this type.
    pub fn values<T: HostElement>(&self) -> Option<Vec<T>> {
        (self.dtype == T::DTYPE).then(|| self.data.chunks_exact(size_of::<T>()).map(T::of).collect())
    }
}
