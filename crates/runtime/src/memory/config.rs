//! What a buffer is asked to be: its memory, its layout and its size.
//!
//! Names are tt-metal's in Rust form (`buffer_types.hpp`, `buffer.hpp`).

use super::{CoreRangeSet, ShardOrientation};
use std::fmt;

/// A kind of memory. Each has an allocator of its own.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum BufferType {
    /// The DRAM banks.
    Dram,
    /// The data space of the workers' L1.
    L1,
    /// The end of the workers' L1, set aside for small things that live long.
    L1Small,
    /// Host memory that the chip reaches through the PCIe tile.
    SystemMemory,
    /// The end of the DRAM banks, set aside for traces.
    Trace,
}

impl BufferType {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::Dram, Self::L1, Self::L1Small, Self::SystemMemory, Self::Trace];

    /// Whether it is in the workers' L1.
    pub const fn is_l1(self) -> bool {
        matches!(self, Self::L1 | Self::L1Small)
    }
    /// Whether it is in the DRAM banks.
    pub const fn is_dram(self) -> bool {
        matches!(self, Self::Dram | Self::Trace)
    }
    /// The name of the memory in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dram => "DRAM",
            Self::L1 => "L1",
            Self::L1Small => "L1-small",
            Self::SystemMemory => "system memory",
            Self::Trace => "trace region",
        }
    }
    /// How a device comes to have such memory.
    pub(super) const fn remedy(self) -> &'static str {
        match self {
            Self::Dram | Self::L1 => "its size is zero",
            Self::L1Small => "open it with a size of L1-small",
            Self::SystemMemory => "open it with fast dispatch, which pins memory of the host",
            Self::Trace => "open it with a size of the trace region",
        }
    }
}

impl fmt::Display for BufferType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How the pages of a buffer are distributed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum TensorMemoryLayout {
    /// Page by page over all banks.
    #[default]
    Interleaved,
    /// In shards of whole rows of pages, one for each core.
    HeightSharded,
    /// In shards of whole columns of pages.
    WidthSharded,
    /// In rectangular shards, on a rectangle of cores.
    BlockSharded,
}

impl TensorMemoryLayout {
    /// Whether it has shards.
    pub const fn is_sharded(self) -> bool {
        !matches!(self, Self::Interleaved)
    }
}

/// How a two-dimensional tensor is divided into shards, and on which cores they are.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ShardSpec {
    /// The cores. For DRAM, bank b is the core (b, 0).
    pub grid: CoreRangeSet,
    /// Rows and columns of a shard, in elements.
    pub shape: [u32; 2],
    /// In which order shards are assigned to the cores.
    pub orientation: ShardOrientation,
}

/// A [`ShardSpec`] with what it divides: pages.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct ShardSpecBuffer {
    /// The division.
    pub tensor_shard_spec: ShardSpec,
    /// Rows and columns of a page, in elements: [32, 32] for tiles, [1, width of a shard] for rows.
    pub page_shape: [u32; 2],
    /// Rows and columns of the tensor, in pages.
    pub tensor2d_shape_in_pages: [u32; 2],
}

/// Which banks a buffer's range is kept free in.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Allocation {
    /// In all of them, as tt-metal does: any kernel may use the address on any core.
    #[default]
    LockStep,
    /// Only on the cores that hold a shard. Others may use the addresses for something else.
    CoreRange,
}

/// What a buffer is asked to be.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct BufferConfig {
    /// Its name in messages.
    pub name: String,
    /// Bytes. The last page of an interleaved buffer may be partly used.
    pub size: u64,
    /// Bytes of a page. In memory, pages begin at multiples of the memory's alignment.
    pub page_size: u32,
    /// The memory.
    pub buffer_type: BufferType,
    /// How pages are distributed.
    pub memory_layout: TensorMemoryLayout,
    /// The shards, for a sharded layout.
    pub shard: Option<ShardSpecBuffer>,
    /// In which banks its range is kept free.
    pub allocation: Allocation,
    /// Its address in each bank; chosen by the allocator unless given.
    pub address: Option<u64>,
}

impl BufferConfig {
    /// A buffer of `size` bytes whose pages are interleaved over the banks of `buffer_type`.
    pub fn interleaved(name: impl Into<String>, buffer_type: BufferType, size: u64, page_size: u32) -> Self {
        Self {
            name: name.into(),
            size,
            page_size,
            buffer_type,
            memory_layout: TensorMemoryLayout::Interleaved,
            shard: None,
            allocation: Allocation::LockStep,
            address: None,
        }
    }
    /// A sharded buffer of all pages of `shard`.
    pub fn sharded(
        name: impl Into<String>,
        buffer_type: BufferType,
        memory_layout: TensorMemoryLayout,
        page_size: u32,
        shard: ShardSpecBuffer,
    ) -> Self {
        let [rows, columns] = shard.tensor2d_shape_in_pages;
        let pages = u64::from(rows) * u64::from(columns);
        let size = pages.saturating_mul(page_size.into());
        Self { memory_layout, shard: Some(shard), ..Self::interleaved(name, buffer_type, size, page_size) }
    }
    /// The same at an explicit address, which must be free.
    #[must_use]
    pub fn at(self, address: u64) -> Self {
        Self { address: Some(address), ..self }
    }
    /// The same, kept free only on the cores that hold a shard.
    #[must_use]
    pub fn on_its_cores(self) -> Self {
        Self { allocation: Allocation::CoreRange, ..self }
    }
}
