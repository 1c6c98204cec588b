//! Quantisation: integers with a scale and a zero point.
//!
//! Source: `TTNN/operations/eltwise.fbs` of the schema ([`crate::schema`]).

use crate::common::DataType;
use crate::flat::declare::{enums, tables, unions};
use crate::ttnn::types::{MemoryConfig, TensorRef};

enums! {
    /// The functions of [`EltwiseQuantizationOp`].
    EltwiseQuantizationOpType: u32 { Quantize, Dequantize, Requantize }
}

unions! {
    /// The scale of a quantised tensor.
    QuantizationScale { PerTensorScale(PerTensorScale), PerAxisScale(PerAxisScale) }

    /// The zero point of a quantised tensor.
    QuantizationZeroPoint { PerTensorZeroPoint(PerTensorZeroPoint), PerAxisZeroPoint(PerAxisZeroPoint) }

    /// Scales and zero points, by function.
    EltwiseQuantizationOpParams {
        QuantizeDequantizeOpParams(QuantizeDequantizeOpParams), RequantizeOpParams(RequantizeOpParams),
    }
}

tables! {
    /// One scale for all elements.
    PerTensorScale { scale: f32 }

    /// A scale for each index of an axis.
    PerAxisScale { scale: TensorRef }

    /// One zero point for all elements.
    PerTensorZeroPoint { zero_point: i32 }

    /// A zero point for each index of an axis.
    PerAxisZeroPoint { zero_point: TensorRef }

    /// Scale and zero point of the quantised side.
    QuantizeDequantizeOpParams { scale: QuantizationScale, zero_point: QuantizationZeroPoint }

    /// Scales and zero points of both sides.
    RequantizeOpParams {
        in_scale: QuantizationScale, in_zero_point: QuantizationZeroPoint, out_scale: QuantizationScale,
        out_zero_point: QuantizationZeroPoint,
    }

    /// Quantises, dequantises, or requantises.
    EltwiseQuantizationOp {
        kind("type"): EltwiseQuantizationOpType, input("in"): TensorRef, axis: Option<i32>,
        output_dtype: Option<DataType>, memory_config: Option<MemoryConfig>, out: TensorRef as out,
        params: EltwiseQuantizationOpParams,
    }
}
