//! From the descriptions in a file to tensors of the runtime.

use tilework_model::common::BufferType as FileBuffer;
use tilework_model::ttnn::TensorDesc as FileDesc;
use tilework_model::ttnn::types::{self as file, StorageType};
use tilework_ops::DType;
use tilework_runtime::memory::{
    BufferType, CoreCoord, CoreRange, CoreRangeSet, ShardOrientation, ShardSpec, TensorMemoryLayout,
};
use tilework_runtime::tensor::{Layout, MemoryConfig, TENSOR_TYPES, TensorDesc, TileShape};

/// Where a program wants a tensor.
pub(crate) enum Wanted {
    /// In the host's memory.
    Host,
    /// In the device's.
    Device(TensorDesc),
}

/// The type in which the device holds such elements: truth values are bytes.
pub(crate) fn held(dtype: DType) -> DType {
    if dtype == DType::Bool { DType::U8 } else { dtype }
}

/// The tensor that a file describes, with elements of the type that it has while the program runs.
///
/// # Errors
/// Why the runtime has no such tensor.
pub(crate) fn wanted(desc: &FileDesc, dtype: DType) -> Result<Wanted, String> {
    if desc.storage() == StorageType::Host {
        return Ok(Wanted::Host);
    }
    let dtype = held(dtype);
    if !TENSOR_TYPES.contains(&dtype) {
        return Err(format!("elements of type {} on the chip", dtype.name()));
    }
    let shape = desc.shape.iter().map(|&n| usize::try_from(n).map_err(|_| format!("a length of {n}")));
    let tile = desc.tile_shape();
    let side = |n: i32| usize::try_from(n).map_err(|_| format!("a tile side of {n}"));
    let layout = match (side(tile.y)?, side(tile.x)?) {
        (1, 1) => Layout::RowMajor,
        (height, width) => Layout::Tile(TileShape::new(height, width).map_err(|e| e.to_string())?),
    };
    let memory = desc.memory_config().map_or(Ok(MemoryConfig::DRAM), memory)?;
    Ok(Wanted::Device(
        TensorDesc::new(shape.collect::<Result<Vec<_>, _>>()?).dtype(dtype).layout(layout).memory(memory),
    ))
}

fn memory(config: &file::MemoryConfig) -> Result<MemoryConfig, String> {
    use file::TensorMemoryLayout as Layout;
    let buffer_type = match config.buffer_type {
        FileBuffer::DRAM => BufferType::Dram,
        FileBuffer::L1 => BufferType::L1,
        FileBuffer::L1Small => BufferType::L1Small,
        other => return Err(format!("tensors in {other:?}")),
    };
    let memory_layout = match config.tensor_memory_layout {
        Layout::Interleaved => return Ok(MemoryConfig::interleaved(buffer_type)),
        Layout::HeightSharded => TensorMemoryLayout::HeightSharded,
        Layout::WidthSharded => TensorMemoryLayout::WidthSharded,
        Layout::BlockSharded => TensorMemoryLayout::BlockSharded,
        Layout::NDSharded => return Err("shards of more than two dimensions".into()),
    };
    let spec = config.shard_spec.as_ref().ok_or("a sharded tensor without its shards")?;
    Ok(MemoryConfig::sharded(memory_layout, buffer_type, shards(spec)?))
}

fn shards(spec: &file::ShardSpec) -> Result<ShardSpec, String> {
    let set = spec.core_range_set.as_ref().ok_or("shards without cores")?;
    let number = |n: u64| u32::try_from(n).map_err(|_| format!("a core at {n}"));
    let core = |at: &file::CoreCoord| Ok::<_, String>(CoreCoord { x: number(at.x)?, y: number(at.y)? });
    let ranges = set
        .core_ranges
        .iter()
        .map(|range| Ok::<_, String>(CoreRange::new(core(&range.start_coord)?, core(&range.end_coord)?)));
    let grid = CoreRangeSet::new(ranges.collect::<Result<Vec<_>, _>>()?).map_err(|e| e.to_string())?;
    let sides = spec.shape.iter().map(|&n| u32::try_from(n).map_err(|_| format!("a shard side of {n}")));
    let shape: [u32; 2] = sides.collect::<Result<Vec<_>, _>>()?.try_into().map_err(|_| "shards of two sides")?;
    let orientation = match spec.orientation {
        file::ShardOrientation::RowMajor => ShardOrientation::RowMajor,
        file::ShardOrientation::ColMajor => ShardOrientation::ColMajor,
    };
    Ok(ShardSpec { grid, shape, orientation })
}
