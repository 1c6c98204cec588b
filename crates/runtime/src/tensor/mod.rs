//! Tensors: arrays of the host that lie in a buffer as kernels want them.
//!
//! A [`TensorDesc`] says what a tensor is: shape, element type, layout, memory (seed 004, chapter
//! 4). [`TensorSpec`] is that checked, with everything that follows: padded shape, pages, and the
//! buffer to allocate. A [`HostTensor`] is an array in row-major order; [`TensorSpec::encode`]
//! converts, pads and tilizes it into the bytes of all pages in the order of the buffer's pages,
//! and [`TensorSpec::decode`] does the reverse. Where a page lies, and so sharding, is the buffer's
//! own affair ([`Buffer::place`]): whatever moves pages moves tensors.
//!
//! [`Device::create_tensor`](crate::Device::create_tensor),
//! [`write_tensor`](crate::Device::write_tensor) and [`read_tensor`](crate::Device::read_tensor)
//! put the parts together. Names are tt-metal's in Rust form (`tensor_spec.hpp`,
//! `memory_config.hpp`).

mod error;
mod host;
mod spec;

pub use error::TensorError;
pub use host::{HostElement, HostTensor};
pub use spec::{MemoryConfig, TENSOR_TYPES, TensorDesc, TensorSpec};
pub use tilework_tensor_layout::{Extent, Layout, LayoutError, PageLayout, TileShape};

use crate::memory::Buffer;

/// Who turns rows into tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tilize {
    /// The host, for every type, layout and memory.
    #[default]
    OnHost,
    /// The chip, for what its kernels can do.
    OnChip,
}

/// A tensor on a device: its specification and its memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tensor {
    /// What it is.
    pub spec: TensorSpec,
    /// Where it is.
    pub buffer: Buffer,
}
