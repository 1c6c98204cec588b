//! Types that all kinds of files share.
//!
//! Source: `Common/types.fbs` of the schema ([`crate::schema`]).

use tilework_dtype::DType;

use crate::bytes::Bytes;
use crate::flat::declare::{enums, structs, tables};

enums! {
    /// The type of a tensor's elements. The device has no bool; `Float64` and what follows it exist
    /// on the host only.
    DataType: u16 {
        Float32, Float16, BFloat16, BFP_Float8, BFP_BFloat8, BFP_Float4, BFP_BFloat4, BFP_Float2, BFP_BFloat2,
        UInt32, UInt16, UInt8, Int32, Float64, Int64, UInt64, Int16, Int8, Bool,
    }

    /// Value of the elements beyond a tensor's shape.
    OOBVal: u16 { Undef, Zero, One, Inf, NegInf }

    /// Row by row, or in tiles of 32 by 32.
    TensorLayout: u16 { RowMajor, Tile, Invalid }

    /// The memory that a buffer is in.
    BufferType: u16 { DRAM, L1, SystemMemory, L1Small, Trace }

    /// The number of passes over the mantissas in a multiplication.
    MathFidelity: u8 { LoFi = 0, HiFi2 = 2, HiFi3 = 3, HiFi4 = 4 }

    /// Whether unpacking goes to the destination registers in 32 bits.
    UnpackToDestMode: u8 { Fp32, Default }

    /// Whether a tensor is sharded or composed.
    MeshShardDirection: u32 { FullToShardShape, ShardToFullShape }

    /// How a tensor is sharded over a mesh.
    MeshShardType: u32 { Replicate, Maximal, Devices }

    /// How devices are connected for a collective operation.
    Topology: u16 { Ring, Linear, Mesh, Torus }

    /// The activation between an expert's products.
    MoEActivationFunction: u16 { Silu, SwiGLU }

    /// One of the two NoCs.
    NocIndex: u16 { Noc0, Noc1 }

    /// A data-movement core. On Wormhole and Blackhole 0 is BRISC and 1 NCRISC.
    DataMovementProcessor: u16 { RISCV_0, RISCV_1, RISCV_2, RISCV_3, RISCV_4, RISCV_5, RISCV_6, RISCV_7 }

    /// How packets travel over the fabric.
    RoutingMode: u16 { BidirLineMesh, UnidirRingTorus }
}

impl From<DataType> for DType {
    /// The format for a file's code. The compiler's `BFP_BFloat` types share an exponent of 8 bits,
    /// its `BFP_Float` types one of 5.
    fn from(data_type: DataType) -> DType {
        match data_type {
            DataType::Float32 => DType::F32,
            DataType::Float16 => DType::F16,
            DataType::BFloat16 => DType::BF16,
            DataType::BFP_Float8 => DType::Bfp8,
            DataType::BFP_BFloat8 => DType::Bfp8B,
            DataType::BFP_Float4 => DType::Bfp4,
            DataType::BFP_BFloat4 => DType::Bfp4B,
            DataType::BFP_Float2 => DType::Bfp2,
            DataType::BFP_BFloat2 => DType::Bfp2B,
            DataType::UInt32 => DType::U32,
            DataType::UInt16 => DType::U16,
            DataType::UInt8 => DType::U8,
            DataType::Int32 => DType::I32,
            DataType::Float64 => DType::F64,
            DataType::Int64 => DType::I64,
            DataType::UInt64 => DType::U64,
            DataType::Int16 => DType::I16,
            DataType::Int8 => DType::I8,
            DataType::Bool => DType::Bool,
        }
    }
}

structs! {
    /// Rows and columns.
    Dim2d { y: i32, x: i32 }

    /// A rectangle.
    Dim2dRange { loc: Dim2d, size: Dim2d }

    /// Version of the compiler that wrote the file.
    Version { major: u16, minor: u16, patch: u32 }
}

tables! {
    /// A reference to the devices that an operation runs on.
    DeviceRef { global_id: u32 }

    /// A reference to an event.
    EventRef { global_id: u32 }

    /// A native library (ELF). Its bytes are only held here.
    DynamicLib { dylib_id: u32, raw_file: Bytes }

    /// The program's source as text of the compiler's intermediate representation.
    MLIR { name: String, source: String }

    /// How a kernel uses the fabric between devices.
    FabricConnectionConfig {
        noc_index: NocIndex, topology: Topology, cluster_axis: u32, routing_mode: RoutingMode, num_links: u32,
    }
}
