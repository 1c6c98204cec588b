//! Memory configuration of a tensor on a device, as compiled programs state it (tt-mlir,
//! `Target/TTNN/types.fbs`).
//!
//! Host arithmetic ignores all of this; the types are here because operations carry them and the
//! device needs them.

use crate::Shape;

/// Order of the elements of a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Layout {
    /// Rows of the last dimension, one page each.
    #[default]
    RowMajor,
    /// Tiles of 32x32, each four faces of 16x16.
    Tile,
}

/// Which memory a buffer is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum BufferType {
    /// The DRAM banks.
    #[default]
    Dram,
    /// The L1 of the worker tiles.
    L1,
    /// Host memory.
    SystemMemory,
    /// The small-buffer region of L1.
    L1Small,
    /// The trace region of DRAM.
    Trace,
}

/// How pages are distributed over banks or cores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TensorMemoryLayout {
    /// Page by page over all banks.
    #[default]
    Interleaved,
    /// Blocks of rows, one per core.
    HeightSharded,
    /// Blocks of columns, one per core.
    WidthSharded,
    /// Blocks of rows and columns on a grid of cores.
    BlockSharded,
    /// Blocks in all dimensions.
    NdSharded,
}

/// Order in which shards go to the cores of a grid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ShardOrientation {
    /// Along rows of cores first.
    #[default]
    RowMajor,
    /// Along columns of cores first.
    ColMajor,
}

/// A rectangle of logical worker cores, both corners included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CoreRange {
    /// First column and row.
    pub start: (u64, u64),
    /// Last column and row.
    pub end: (u64, u64),
}

/// The cores that hold shards and the shape of each shard, in elements.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ShardSpec {
    /// The cores.
    pub cores: Vec<CoreRange>,
    /// Dimensions of one shard.
    pub shape: Shape,
    /// Order of the shards.
    pub orientation: ShardOrientation,
}

/// Memory, layout and shards of a tensor. The default is the file format's: interleaved over DRAM.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct MemoryConfig {
    /// How pages are distributed.
    pub layout: TensorMemoryLayout,
    /// The memory.
    pub buffer: BufferType,
    /// The shards, if the layout is sharded.
    pub shard: Option<ShardSpec>,
}
