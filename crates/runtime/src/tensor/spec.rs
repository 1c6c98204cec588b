//! What a tensor is, and what follows from it: padding, pages, the buffer.

use super::{HostTensor, TensorError};
use crate::memory::{BufferConfig, BufferType, ShardSpec, ShardSpecBuffer, TensorMemoryLayout};
use tilework_dtype::DType;
use tilework_tensor_layout::{Extent, Layout, LayoutError, PageLayout};

/// The element types of tensors: tt-metal's data types (`tensor_types.hpp`), and float16, which the
/// chip computes with as well.
pub const TENSOR_TYPES: [DType; 9] =
    [DType::BF16, DType::F32, DType::F16, DType::Bfp8B, DType::Bfp4B, DType::U32, DType::I32, DType::U16, DType::U8];

/// Their names, for messages.
pub(super) fn type_names() -> String {
    TENSOR_TYPES.map(DType::name).join(", ")
}

/// In which memory a tensor is, and how it is distributed there.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct MemoryConfig {
    /// How pages are distributed.
    pub memory_layout: TensorMemoryLayout,
    /// The memory.
    pub buffer_type: BufferType,
    /// The shards, for a sharded layout.
    pub shard_spec: Option<ShardSpec>,
}

impl MemoryConfig {
    /// Interleaved over the DRAM banks.
    pub const DRAM: Self = Self::interleaved(BufferType::Dram);
    /// Interleaved over the L1 of the workers.
    pub const L1: Self = Self::interleaved(BufferType::L1);

    /// Interleaved over the banks of a memory.
    pub const fn interleaved(buffer_type: BufferType) -> Self {
        Self { memory_layout: TensorMemoryLayout::Interleaved, buffer_type, shard_spec: None }
    }
    /// In shards. Shards of tiles are whole tiles; row-major tensors are padded to whole shards in
    /// width, and a page is a row of a shard.
    pub const fn sharded(memory_layout: TensorMemoryLayout, buffer_type: BufferType, shard_spec: ShardSpec) -> Self {
        Self { memory_layout, buffer_type, shard_spec: Some(shard_spec) }
    }
}

/// What a tensor is asked to be. The defaults are those of tt-mlir's runtime and of ttnn: bfloat16
/// in tiles of 32 by 32, interleaved over DRAM (seed 004, section 4.1).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct TensorDesc {
    /// Elements in each dimension, outermost first.
    pub shape: Vec<usize>,
    /// Type of the elements, one of [`TENSOR_TYPES`].
    pub dtype: DType,
    /// Rows or tiles.
    pub layout: Layout,
    /// The memory.
    pub memory: MemoryConfig,
}

impl TensorDesc {
    /// A tensor of this shape.
    pub fn new(shape: impl Into<Vec<usize>>) -> Self {
        Self { shape: shape.into(), dtype: DType::BF16, layout: Layout::TILE, memory: MemoryConfig::DRAM }
    }
    /// With elements of another type.
    #[must_use]
    pub fn dtype(self, dtype: DType) -> Self {
        Self { dtype, ..self }
    }
    /// In another layout.
    #[must_use]
    pub fn layout(self, layout: Layout) -> Self {
        Self { layout, ..self }
    }
    /// In another memory.
    #[must_use]
    pub fn memory(self, memory: MemoryConfig) -> Self {
        Self { memory, ..self }
    }
}

/// A tensor whose shape, type and layout go together. Whether its shards fit the device is checked
/// when its buffer is allocated.
///
/// ```
/// use tilework_runtime::tensor::{TensorDesc, TensorSpec};
/// use tilework_runtime::DType;
///
/// let spec = TensorSpec::new(&TensorDesc::new([2, 40, 50]).dtype(DType::Bfp8B))?;
/// assert_eq!(spec.padded_shape(), [2, 64, 64]);
/// // Eight tiles of 1024 elements and 64 exponents.
/// assert_eq!((spec.page_size(), spec.pages()), (1088, 8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TensorSpec {
    memory: MemoryConfig,
    pages: PageLayout,
    page_size: u32,
    /// Rows and columns of a page in elements, and of the tensor in pages.
    page_shape: [u32; 2],
    shape_in_pages: [u32; 2],
}

/// A number that buffers count in 32 bits.
fn number(what: &'static str, found: usize) -> Result<u32, TensorError> {
    u32::try_from(found).map_err(|_| TensorError::TooLarge { what, found })
}

/// Rows and columns, counted in 32 bits.
fn sides(what: &'static str, Extent { height, width }: Extent) -> Result<[u32; 2], TensorError> {
    Ok([number(what, height)?, number(what, width)?])
}

impl TensorSpec {
    /// The specification of a tensor.
    ///
    /// # Errors
    /// A type that is not among [`TENSOR_TYPES`]; a block format outside of tiles; too large.
    pub fn new(desc: &TensorDesc) -> Result<Self, TensorError> {
        if !TENSOR_TYPES.contains(&desc.dtype) {
            return Err(TensorError::Type(desc.dtype));
        }
        let shard_width = match &desc.memory.shard_spec {
            Some(spec) if desc.memory.memory_layout.is_sharded() => Some(spec.shape[1] as usize),
            _ => None,
        };
        let pages = PageLayout::new(&desc.shape, desc.dtype, desc.layout, shard_width)?;
        number("pages", pages.pages())?;
        Ok(Self {
            page_size: number("bytes of a page", pages.page_bytes())?,
            page_shape: sides("elements of a page", pages.page())?,
            shape_in_pages: sides("pages", pages.pages_by_side())?,
            memory: desc.memory.clone(),
            pages,
        })
    }

    /// Elements in each dimension, without padding.
    pub fn logical_shape(&self) -> &[usize] {
        self.pages.dims()
    }
    /// Elements in each dimension with padding. Rows have one dimension at least, tiles two.
    pub fn padded_shape(&self) -> Vec<usize> {
        self.pages.padded_dims()
    }
    /// Rows and columns of the matrix of all elements, with padding.
    pub fn physical_shape(&self) -> Extent {
        self.pages.physical()
    }
    /// Type of the elements.
    pub fn dtype(&self) -> DType {
        self.pages.dtype()
    }
    /// Rows or tiles.
    pub fn layout(&self) -> Layout {
        self.pages.layout()
    }
    /// The memory.
    pub fn memory(&self) -> &MemoryConfig {
        &self.memory
    }
    /// Bytes of a page: a tile, or a row of elements. Memory may align pages to more.
    pub fn page_size(&self) -> u32 {
        self.page_size
    }
    /// Number of pages.
    pub fn pages(&self) -> usize {
        self.pages.pages()
    }
    /// Rows and columns of pages.
    pub fn shape_in_pages(&self) -> [u32; 2] {
        self.shape_in_pages
    }
    /// Bytes of all pages.
    pub fn bytes(&self) -> usize {
        self.pages.bytes()
    }
    /// The type that an array read from the tensor has: its own, float32 for block formats.
    pub fn host_dtype(&self) -> DType {
        if self.dtype().is_block() { DType::F32 } else { self.dtype() }
    }

    /// The buffer that holds the tensor.
    pub fn buffer_config(&self, name: impl Into<String>) -> BufferConfig {
        let MemoryConfig { memory_layout, buffer_type, shard_spec } = &self.memory;
        let shard = shard_spec.as_ref().map(|spec| ShardSpecBuffer {
            tensor_shard_spec: spec.clone(),
            page_shape: self.page_shape,
            tensor2d_shape_in_pages: self.shape_in_pages,
        });
        let buffer = BufferConfig::interleaved(name, *buffer_type, self.bytes() as u64, self.page_size);
        BufferConfig { memory_layout: *memory_layout, shard, ..buffer }
    }

    /// The bytes of all pages in the order of the buffer's pages, of an array of the same shape:
    /// converted, padded with `pad` and tilized.
    ///
    /// # Errors
    /// Another shape; elements without a conversion; a padding that the type does not have.
    pub fn encode(&self, array: &HostTensor, pad: f64) -> Result<Vec<u8>, TensorError> {
        self.check_shape(array)?;
        Ok(self.pages.encode(array.dtype(), array.bytes(), pad)?)
    }

    /// The same in rows: converted and padded, not tilized.
    pub(crate) fn encode_rows(&self, array: &HostTensor, pad: f64) -> Result<Vec<u8>, TensorError> {
        self.check_shape(array)?;
        Ok(self.pages.in_rows()?.encode(array.dtype(), array.bytes(), pad)?)
    }

    fn check_shape(&self, array: &HostTensor) -> Result<(), TensorError> {
        if array.shape() == self.logical_shape() {
            return Ok(());
        }
        let (found, expected) = (array.shape().to_vec(), self.logical_shape().to_vec());
        Err(TensorError::Shape { found, expected })
    }

    /// The array in the bytes of all pages, its elements converted to `dtype`.
    ///
    /// # Errors
    /// Another number of bytes; no such conversion.
    pub fn decode(&self, pages: &[u8], dtype: DType) -> Result<HostTensor, TensorError> {
        if dtype.is_block() {
            return Err(LayoutError::Conversion { from: self.dtype(), to: dtype }.into());
        }
        HostTensor::from_le_bytes(self.logical_shape(), dtype, self.pages.decode(pages, dtype)?)
    }

    /// The array in padded rows.
    pub(crate) fn decode_rows(&self, rows: &[u8], dtype: DType) -> Result<HostTensor, TensorError> {
        HostTensor::from_le_bytes(self.logical_shape(), dtype, self.pages.in_rows()?.decode(rows, dtype)?)
    }
}
