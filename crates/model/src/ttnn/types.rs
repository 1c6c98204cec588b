//! Tensors, memory and mesh coordinates in TTNN programs.
//!
//! Source: `TTNN/types.fbs` of the schema ([`crate::schema`]).

use std::sync::Arc;

use serde::Serialize;

use crate::common::{BufferType, DataType, Dim2d, OOBVal};
use crate::error::Result;
use crate::flat::declare::{enums, structs, tables, unions};
use crate::flat::field::{Tabular, read_field, table_at};
use crate::flat::{Element, FlatReader, Table};
use crate::operand::{Direction, Role, Visitor};

enums! {
    /// How a tensor is distributed over banks or cores.
    TensorMemoryLayout: u16 { Interleaved, HeightSharded, WidthSharded, BlockSharded, NDSharded }

    /// Where a tensor is.
    StorageType: u16 { Host, Device }

    /// The order in which shards are assigned to cores.
    ShardOrientation: u32 { RowMajor, ColMajor }

    /// How shards are assigned to cores when there are more shards than cores.
    ShardDistributionStrategy: u32 { RoundRobin1D, Grid2D }

    /// Whether a tensor is one device's shard of a larger one.
    ShardStatus: u32 { Presharded, Unsharded }

    /// Whether a tensor is replicated or sharded along an axis of the mesh.
    PlacementType: u16 { Replicate, Shard }
}

structs! {
    /// A core, by column and row.
    CoreCoord { x: u64, y: u64 }

    /// A rectangle of cores, from one corner to the other, both included.
    CoreRange { start_coord: CoreCoord, end_coord: CoreCoord }

    /// Placement along one axis of the mesh.
    Placement { kind("type"): PlacementType, dim: i32 }
}

unions! {
    /// A number of either kind.
    NumberType { FP(FloatingPointType), I32(IntegralType) }
}

tables! {
    /// A set of cores.
    CoreRangeSet { core_ranges: Vec<CoreRange> }

    /// The cores that have shards, and the shape of these.
    ShardSpec { core_range_set: Option<CoreRangeSet>, shape: Vec<i32>, orientation: ShardOrientation }

    /// As [`ShardSpec`], for shards of any number of dimensions.
    NDShardSpec {
        core_range_set: Option<CoreRangeSet>, shape: Vec<i32>, orientation: ShardOrientation,
        distribution_strategy: ShardDistributionStrategy,
    }

    /// The memory that a tensor is in, and its layout there.
    MemoryConfig {
        tensor_memory_layout: TensorMemoryLayout, buffer_type: BufferType, shard_spec: Option<ShardSpec>,
        nd_shard_spec: Option<NDShardSpec>,
    }

    /// Storage, tile, type and memory of a tensor.
    MemoryDesc {
        storage_type: StorageType, tile_shape: Dim2d, data_type: DataType, memory_config: Option<MemoryConfig>,
    }

    /// Layout of a tensor.
    LayoutDesc { oob_val: OOBVal, memory_desc: MemoryDesc }

    /// A tensor's shape and layout.
    TensorDesc {
        shape: Vec<i32>, mesh_shape: Vec<i32>, layout: LayoutDesc, shard_status: ShardStatus,
        local_shape: Vec<i32>,
    }

    /// A reference to a global semaphore.
    GlobalSemaphoreRef { global_id: u32 }

    /// A floating-point number.
    FloatingPointType { value: f32 }

    /// An integer.
    IntegralType { value: i32 }

    /// How a tensor is distributed over the devices of a mesh.
    MeshMapperConfig { placements: Vec<Placement>, mesh_shape_override: Vec<u32> }

    /// How the tensors of the devices are composed into one.
    MeshComposerConfig { dims: Vec<i32>, mesh_shape_override: Vec<u32> }

    /// Coordinates in a mesh.
    MeshCoord { coords: Vec<u32> }

    /// A range of a mesh, both ends included.
    MeshCoordRange { start: MeshCoord, end: MeshCoord }
}

impl TensorDesc {
    /// Type of the elements.
    pub fn dtype(&self) -> DataType {
        self.layout.memory_desc.data_type
    }

    /// Rows and columns of a tile; 1 by 1 means row-major.
    pub fn tile_shape(&self) -> Dim2d {
        self.layout.memory_desc.tile_shape
    }

    /// Host or device.
    pub fn storage(&self) -> StorageType {
        self.layout.memory_desc.storage_type
    }

    /// Its place in the device's memory; `None` on the host.
    pub fn memory_config(&self) -> Option<&MemoryConfig> {
        self.layout.memory_desc.memory_config.as_ref()
    }

    /// Number of elements; `None` if a size is negative or the product does not fit.
    pub fn volume(&self) -> Option<u64> {
        self.shape.iter().try_fold(1_u64, |volume, size| volume.checked_mul(u64::try_from(*size).ok()?))
    }
}

impl NumberType {
    /// The number, whichever kind it is; exact for both.
    pub fn as_f64(&self) -> f64 {
        match self {
            Self::FP(number) => f64::from(number.value),
            Self::I32(number) => f64::from(number.value),
        }
    }
}

/// A reference to a tensor of a program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TensorRef {
    /// The same in all operations of a program that use the tensor.
    pub global_id: u32,
    /// Its description, which operations share as in the file.
    pub desc: Arc<TensorDesc>,
}

impl Tabular for TensorRef {
    fn read(reader: &mut FlatReader, table: &Table) -> Result<Self> {
        let global_id = read_field(reader, table, 0, "global_id", None)?;
        let desc = read_field::<SharedDesc>(reader, table, 1, "desc", None)?.0;
        reader.no_more_fields(table, 2)?;
        Ok(Self { global_id, desc })
    }

    fn visit_fields<'a>(&'a self, _: Option<&Role<'_>>, _: Direction, _: &mut Visitor<'_, 'a>) {}
}

impl Element for TensorRef {
    fn present(reader: &mut FlatReader, table: &Table, slot: u16) -> Result<Option<Self>> {
        reader.reference(table, slot)?.map(|at| table_at(reader, at)).transpose()
    }

    fn vector(reader: &mut FlatReader, table: &Table, slot: u16) -> Result<Option<Vec<Self>>> {
        crate::flat::field::tables_in(reader, table, slot)
    }

    fn absent() -> Option<Self> {
        None
    }

    fn visit<'a>(&'a self, role: &Role<'_>, direction: Direction, visitor: &mut Visitor<'_, 'a>) {
        visitor(role, direction, self);
    }
}

/// A description that is read once, however many references to it there are.
struct SharedDesc(Arc<TensorDesc>);

impl Element for SharedDesc {
    fn present(reader: &mut FlatReader, table: &Table, slot: u16) -> Result<Option<Self>> {
        let Some(at) = reader.reference(table, slot)? else { return Ok(None) };
        if let Some(known) = reader.descriptions.get(&at) {
            return Ok(Some(Self(Arc::clone(known))));
        }
        reader.charge(at, 1, size_of::<TensorDesc>())?;
        let desc = Arc::new(table_at(reader, at)?);
        reader.descriptions.insert(at, Arc::clone(&desc));
        Ok(Some(Self(desc)))
    }

    fn vector(_: &mut FlatReader, _: &Table, _: u16) -> Result<Option<Vec<Self>>> {
        Ok(None)
    }

    fn absent() -> Option<Self> {
        None
    }
}
