//! Layout, type and location of a tensor, and the device itself.
//!
//! Source: `TTNN/operations/layout.fbs`, `deallocate.fbs`, `get_device.fbs`, `data_movement.fbs` of
//! the schema ([`crate::schema`]).

use crate::common::{DataType, DeviceRef, Dim2d, TensorLayout};
use crate::flat::declare::tables;
use crate::ttnn::types::{MemoryConfig, TensorRef};

tables! {
    /// The same bits as another type.
    BitcastConvertOp {
        input("in"): TensorRef, dtype: DataType, memcfg: Option<MemoryConfig>, out: TensorRef as out,
    }

    /// Copies a tensor to the host.
    FromDeviceOp { input("in"): TensorRef, out: TensorRef as out }

    /// Copies a tensor to the device.
    ToDeviceOp {
        input("in"): TensorRef, device: Option<DeviceRef>, memcfg: Option<MemoryConfig>, out: TensorRef as out,
    }

    /// Changes layout (row-major, tile), and with it perhaps type and memory.
    ToLayoutOp {
        input("in"): TensorRef, layout: TensorLayout, dtype: Option<DataType>, memcfg: Option<MemoryConfig>,
        out: TensorRef as out,
    }

    /// Moves a tensor to other memory of the device.
    ToMemoryConfigOp { in0: TensorRef, memcfg: Option<MemoryConfig>, out: TensorRef as out }

    /// Converts elements to another type.
    TypecastOp {
        input("in"): TensorRef, dtype: DataType, memcfg: Option<MemoryConfig>, out: TensorRef as out,
    }

    /// Frees a tensor's memory.
    DeallocateOp { input("in"): TensorRef, force: bool }

    /// Copies a host tensor into one on the device.
    WriteTensorOp { host_tensor: TensorRef, device_tensor: TensorRef as out, blocking: bool, cq_id: u32 }

    /// The devices that the program runs on.
    GetDeviceOp { mesh: Dim2d, offset: Option<Dim2d>, chip_ids: Vec<u32>, out: Option<DeviceRef> }
}
