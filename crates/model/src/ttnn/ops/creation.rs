//! Creation of tensors: computed, or read from the file.
//!
//! Source: `TTNN/operations/creation.fbs`, `rand.fbs`, `data_movement.fbs` of the schema
//! ([`crate::schema`]).

use crate::bytes::Bytes;
use crate::common::{DataType, DeviceRef, TensorLayout};
use crate::flat::declare::{enums, tables};
use crate::ttnn::types::{MemoryConfig, NumberType, TensorRef};

enums! {
    /// The values of [`NamedFullOp`].
    NamedFullOpType: u32 { Zeros, Ones }
}

tables! {
    /// `start, start + step, ...` below `end`.
    ArangeOp {
        device: Option<DeviceRef>, start: f32, end: f32, step: f32, dtype: Option<DataType>,
        layout: Option<TensorLayout>, memcfg: Option<MemoryConfig>, out: TensorRef as out,
    }

    /// A tensor whose elements are in the file.
    ConstantOp {
        device: Option<DeviceRef>, input: Bytes, input_dtype: DataType, dtype: Option<DataType>,
        layout: Option<TensorLayout>, memcfg: Option<MemoryConfig>, out: TensorRef as out,
    }

    /// A tensor of undefined elements.
    EmptyOp {
        device: Option<DeviceRef>, shape: Vec<i64>, dtype: DataType, layout: TensorLayout,
        memcfg: Option<MemoryConfig>, out: TensorRef as out,
    }

    /// A tensor filled with one value.
    FullOp {
        device: Option<DeviceRef>, shape: Vec<i64>, fill_value: NumberType, dtype: Option<DataType>,
        layout: Option<TensorLayout>, memcfg: Option<MemoryConfig>, out: TensorRef as out,
    }

    /// A tensor of zeros or ones.
    NamedFullOp {
        kind("type"): NamedFullOpType, device: Option<DeviceRef>, shape: Vec<i64>, dtype: Option<DataType>,
        layout: Option<TensorLayout>, memcfg: Option<MemoryConfig>, out: TensorRef as out,
    }

    /// Random elements between two bounds.
    RandOp {
        device: Option<DeviceRef>, size: Vec<i64>, low: f32, high: f32, seed: u32, dtype: DataType,
        layout: TensorLayout, memcfg: Option<MemoryConfig>, out: TensorRef as out,
    }

    /// Copies a tensor into another that exists, with its type and memory.
    AssignOp {
        input: TensorRef, output: TensorRef as out, output_memory_config: Option<MemoryConfig>,
        output_dtype: Option<DataType>,
    }

    /// Copies a tensor into another that exists.
    CopyOp { src: TensorRef, dst: TensorRef as out }
}
