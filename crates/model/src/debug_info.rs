//! Debug information of a program: stages of its compilation and expected tensors.
//!
//! Source: `Common/debug_info.fbs` of the schema ([`crate::schema`]).

use crate::bytes::Bytes;
use crate::common::{DataType, MLIR};
use crate::flat::declare::tables;

tables! {
    /// An expected tensor.
    GoldenTensor { name: String, shape: Vec<i64>, stride: Vec<i64>, dtype: DataType, data: Bytes }

    /// The expected tensor of one device.
    GoldenDeviceTensor { device: u32, value: GoldenTensor }

    /// The expected tensors of one place in the program.
    GoldenKV { key: String, value: Vec<GoldenDeviceTensor> }

    /// Expected tensors by place, if they were given to the compiler.
    GoldenInfo { golden_map: Vec<GoldenKV> }

    /// Debug information of a program.
    DebugInfo { cpp: String, mlir_stages: Vec<MLIR>, golden_info: Option<GoldenInfo> }
}
