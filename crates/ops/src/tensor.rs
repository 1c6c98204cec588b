//! Tensors: logical values in row-major order behind a shared pointer.
//!
//! A tensor here has no tiles, padding or banks: those belong to the device ([`crate::layout`]
//! converts). Values are kept in their own element type, so that bfloat16 arithmetic rounds where
//! the device rounds. Block types keep float32 values that are all representable in their blocks
//! ([`tilework_dtype::block`]). Cloning is cheap; nothing is changed in place.

use std::sync::Arc;

use half::{bf16, f16};
use tilework_dtype::block::BlockFormat;
use tilework_dtype::convert::Element;

use crate::error::{OpError, Operands, Reason};
use crate::{DType, Shape};

/// The element types of tensors, those of device programs and truth values. A file may state
/// others: its reader, and every constructor that can fail, refuses them. Passing one as the result
/// type of an operation is a defect of the caller, and the operation panics.
pub const ELEMENT_TYPES: [DType; 10] = [
    DType::F32,
    DType::F16,
    DType::BF16,
    DType::Bfp8B,
    DType::Bfp4B,
    DType::I32,
    DType::U32,
    DType::U16,
    DType::U8,
    DType::Bool,
];

/// Refuses types that are not among the [`ELEMENT_TYPES`].
fn supported(dtype: DType) -> Result<(), OpError> {
    match ELEMENT_TYPES.contains(&dtype) {
        true => Ok(()),
        false => Err(OpError { op: "tensor", operands: Operands::default(), reason: Reason::Type(dtype) }),
    }
}

/// The values of a tensor, one vector per stored type.
#[derive(Debug, Clone)]
pub enum Storage {
    /// float32, and the values of block types.
    F32(Arc<Vec<f32>>),
    /// float16.
    F16(Arc<Vec<f16>>),
    /// bfloat16.
    BF16(Arc<Vec<bf16>>),
    /// Signed 32-bit integers.
    I32(Arc<Vec<i32>>),
    /// Unsigned 32-bit integers.
    U32(Arc<Vec<u32>>),
    /// Unsigned 16-bit integers.
    U16(Arc<Vec<u16>>),
    /// Unsigned bytes, and truth values.
    U8(Arc<Vec<u8>>),
}

/// Runs a generic expression on the vector of a [`Storage`], whatever its type.
macro_rules! with_storage {
    ($storage:expr, |$v:ident| $body:expr) => {
        match $storage {
            $crate::tensor::Storage::F32($v) => $body,
            $crate::tensor::Storage::F16($v) => $body,
            $crate::tensor::Storage::BF16($v) => $body,
            $crate::tensor::Storage::I32($v) => $body,
            $crate::tensor::Storage::U32($v) => $body,
            $crate::tensor::Storage::U16($v) => $body,
            $crate::tensor::Storage::U8($v) => $body,
        }
    };
}
pub(crate) use with_storage;

/// A stored type: what ties a Rust type to a [`Storage`].
pub trait Native: Element {
    /// The element type that a vector of this type has unless said otherwise.
    const DTYPE: DType;
    /// The values, if they are stored in this type.
    fn slice(storage: &Storage) -> Option<&[Self]>;
    /// A vector as storage.
    fn store(values: Vec<Self>) -> Storage;
}

macro_rules! native {
    ($t:ty, $variant:ident) => {
        impl Native for $t {
            const DTYPE: DType = DType::$variant;
            fn slice(storage: &Storage) -> Option<&[Self]> {
                if let Storage::$variant(v) = storage { Some(v) } else { None }
            }
            fn store(values: Vec<Self>) -> Storage {
                Storage::$variant(Arc::new(values))
            }
        }
    };
}

native!(f32, F32);
native!(f16, F16);
native!(bf16, BF16);
native!(i32, I32);
native!(u32, U32);
native!(u16, U16);
native!(u8, U8);

/// A tensor: element type, shape and values.
#[derive(Debug, Clone)]
pub struct Tensor {
    dtype: DType,
    shape: Shape,
    storage: Storage,
}

impl Tensor {
    /// A tensor of these values in row-major order.
    pub fn new<T: Native>(shape: Shape, values: Vec<T>) -> Result<Tensor, OpError> {
        if values.len() != shape.elements() {
            let reason = Reason::Count { values: values.len(), shape };
            return Err(OpError { op: "tensor", operands: Operands::default(), reason });
        }
        Ok(Tensor { dtype: T::DTYPE, shape, storage: T::store(values) })
    }

    /// A tensor of `dtype` from float32 values, rounded as [`tilework_dtype::convert`] says.
    pub fn from_f32(dtype: DType, shape: Shape, values: &[f32]) -> Result<Tensor, OpError> {
        supported(dtype)?;
        let tensor = Tensor::new(shape, values.to_vec())?;
        Ok(crate::typecast(&tensor, dtype))
    }

    /// A tensor of `dtype` from integers: the low bits of each, or the nearest float.
    pub fn from_i64(dtype: DType, shape: Shape, values: &[i64]) -> Result<Tensor, OpError> {
        supported(dtype)?;
        if values.len() != shape.elements() {
            let reason = Reason::Count { values: values.len(), shape };
            return Err(OpError { op: "tensor", operands: Operands::default(), reason });
        }
        Ok(crate::produce::integers(shape, dtype, 1, |start, out| {
            out.copy_from_slice(&values[start..start + out.len()]);
        }))
    }

    /// A tensor from its little-endian bytes in row-major order. Block types have no bytes per
    /// value: see [`crate::layout::untilize`].
    pub fn from_le_bytes(dtype: DType, shape: Shape, bytes: &[u8]) -> Result<Tensor, OpError> {
        let fail = |reason| OpError { op: "tensor", operands: Operands::default(), reason };
        let size = dtype.bytes().ok_or_else(|| fail(Reason::Type(dtype)))?;
        if bytes.len() != shape.elements() * size {
            return Err(fail(Reason::Count { values: bytes.len() / size, shape }));
        }
        fn read<const N: usize, T: Native>(bytes: &[u8], from: fn([u8; N]) -> T) -> Storage {
            T::store(bytes.as_chunks::<N>().0.iter().map(|&b| from(b)).collect())
        }
        let storage = match dtype {
            DType::F32 => read(bytes, f32::from_le_bytes),
            DType::F16 => read(bytes, f16::from_le_bytes),
            DType::BF16 => read(bytes, bf16::from_le_bytes),
            DType::I32 => read(bytes, i32::from_le_bytes),
            DType::U32 => read(bytes, u32::from_le_bytes),
            DType::U16 => read(bytes, u16::from_le_bytes),
            DType::U8 => u8::store(bytes.to_vec()),
            DType::Bool => u8::store(bytes.iter().map(|&b| u8::from(b != 0)).collect()),
            _ => return Err(fail(Reason::Type(dtype))),
        };
        Ok(Tensor { dtype, shape, storage })
    }

    /// The values as little-endian bytes in row-major order; block types as float32.
    pub fn to_le_bytes(&self) -> Vec<u8> {
        match &self.storage {
            Storage::F32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Storage::F16(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Storage::BF16(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Storage::I32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Storage::U32(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Storage::U16(v) => v.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Storage::U8(v) => v.to_vec(),
        }
    }

    /// A tensor of storage whose length is known to fit; block types are rounded to their blocks.
    pub(crate) fn wrap(dtype: DType, shape: Shape, mut storage: Storage) -> Tensor {
        assert!(ELEMENT_TYPES.contains(&dtype), "tensors have no elements of type {}", dtype.name());
        if let (Some(block), Storage::F32(values)) = (BlockFormat::of(dtype), &mut storage) {
            let rows = Arc::<Vec<f32>>::make_mut(values).chunks_mut(shape.last().max(1));
            rows.for_each(|row| block.round(row, false));
        }
        Tensor { dtype, shape, storage }
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Shape.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Number of elements.
    pub fn elements(&self) -> usize {
        self.shape.elements()
    }

    /// The stored values.
    pub fn storage(&self) -> &Storage {
        &self.storage
    }

    /// The values, if they are stored as `T`.
    pub fn values<T: Native>(&self) -> Option<&[T]> {
        T::slice(&self.storage)
    }

    /// All values as float32; integers round to nearest even.
    pub fn to_f32(&self) -> Vec<f32> {
        with_storage!(&self.storage, |v| v.iter().map(|x| x.to_f32()).collect())
    }

    /// All values as integers; floats are truncated and saturate at 32 bits.
    pub fn to_i64(&self) -> Vec<i64> {
        with_storage!(&self.storage, |v| v.iter().map(|x| x.to_i64()).collect())
    }

    /// Bytes of host memory that the values take.
    pub fn bytes(&self) -> usize {
        with_storage!(&self.storage, |v| std::mem::size_of_val(v.as_slice()))
    }

    /// The same values under another shape with the same number of elements, without a copy (block
    /// types may round again).
    pub(crate) fn reshaped(&self, shape: Shape) -> Tensor {
        debug_assert_eq!(shape.elements(), self.elements());
        Tensor::wrap(self.dtype, shape, self.storage.clone())
    }
}
