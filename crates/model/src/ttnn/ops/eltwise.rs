//! Element-wise functions.
//!
//! Source: `TTNN/operations/eltwise.fbs` of the schema ([`crate::schema`]).

use crate::common::DataType;
use crate::error::{ReadError, Result};
use crate::flat::declare::{enums, named, tables, unions};
use crate::flat::{Element, FlatReader, Table};
use crate::ttnn::ops::fused::UnaryWithParam;
use crate::ttnn::types::{MemoryConfig, NumberType, TensorRef};

named! {
    /// The functions of [`EltwiseBinaryCompositeOp`]. `BitwiseRightShift` is only in the compiler
    /// of `jax-tt-plugin`.
    EltwiseBinaryCompositeOpType: u32 {
        Maximum, Minimum, Remainder, Pow, Atan2, BitwiseAnd, BitwiseOr, BitwiseXor, LogicalLeftShift, BitwiseRightShift,
    }
}

/// Where [`EltwiseBinaryAtan2Op`] is a separate operation, `Atan2` is not one of these functions,
/// and the ordinals after it are lower by one.
impl Element for EltwiseBinaryCompositeOpType {
    fn present(reader: &mut FlatReader, table: &Table, slot: u16) -> Result<Option<Self>> {
        let Some(at) = reader.field(table, slot)? else { return Ok(None) };
        let ordinal = reader.inline::<u32>(at)?;
        let moved = reader.schema.edition.atan2_apart() && ordinal >= Self::Atan2 as u32;
        match ordinal.checked_add(u32::from(moved)).and_then(Self::from_ordinal) {
            Some(function) => Ok(Some(function)),
            None => Err(ReadError::format(at, "an EltwiseBinaryCompositeOpType", format!("ordinal {ordinal}"))),
        }
    }

    fn vector(_: &mut FlatReader, _: &Table, _: u16) -> Result<Option<Vec<Self>>> {
        Ok(None)
    }

    fn absent() -> Option<Self> {
        Some(Self::Maximum)
    }
}

enums! {
    /// The functions of [`EltwiseBinaryAtan2Op`].
    EltwiseBinaryAtan2OpType: u32 { Atan2 }

    /// The functions of [`EltwiseBinaryOp`].
    EltwiseBinaryOpType: u32 {
        Add, Multiply, LogicalRightShift, Subtract, Equal, NotEqual, GreaterEqual, GreaterThan, LessEqual, LessThan,
        Divide, LogicalAnd, LogicalOr, LogicalXor,
    }

    /// The functions of [`EltwiseBinaryCompositeScalarOp`].
    EltwiseBinaryCompositeScalarOpType: u32 { PowScalar }

    /// The functions of [`EltwiseUnaryOp`].
    EltwiseUnaryOpType: u32 {
        Abs, Ceil, Cos, Floor, Gelu, IsFinite, LogicalNot, Neg, Relu, Sqrt, Rsqrt, Sigmoid, Sin, Reciprocal, Sign,
        Tan, Tanh, Atan, Exp, Erf, Erfc, Log, Expm1, LeakyRelu, BitwiseNot, Relu6, Silu, Hardsigmoid, Mish, Acos,
        Asin, Asinh, Round,
    }

    /// The functions of [`EltwiseUnaryCompositeOp`].
    EltwiseUnaryCompositeOpType: u32 { Cbrt, ClampScalar, ClampTensor, Log1p }

    /// The functions of [`ExperimentalEltwiseBinaryBackwardOp`].
    ExperimentalEltwiseBinaryBackwardOpType: u32 { GeluBW }
}

unions! {
    /// Parameters of a function besides the tensor.
    EltwiseUnaryOpParams { EltwiseOpWithFloatParams(EltwiseOpWithFloatParams) }

    /// The bounds of a clamp.
    EltwiseUnaryCompositeOpParams { ClampScalarOpParams(ClampScalarOpParams), ClampTensorOpParams(ClampTensorOpParams) }
}

tables! {
    /// The one parameter of an operation like leaky ReLU.
    EltwiseOpWithFloatParams { parameter: f32 }

    /// A function of two tensors, element by element, with broadcasting.
    EltwiseBinaryOp {
        kind("type"): EltwiseBinaryOpType, lhs: TensorRef, rhs: TensorRef, output_dtype: Option<DataType>,
        memory_config: Option<MemoryConfig>, activations: Vec<UnaryWithParam> [if activations],
        input_tensor_a_activations: Vec<UnaryWithParam> [if activations],
        input_tensor_b_activations: Vec<UnaryWithParam> [if activations], out: TensorRef as out,
    }

    /// A function of two tensors, element by element, that the library composes of others.
    EltwiseBinaryCompositeOp {
        kind("type"): EltwiseBinaryCompositeOpType, lhs: TensorRef, rhs: TensorRef,
        memory_config: Option<MemoryConfig>, activations: Vec<UnaryWithParam> [if activations],
        input_tensor_a_activations: Vec<UnaryWithParam> [if activations],
        input_tensor_b_activations: Vec<UnaryWithParam> [if activations], out: TensorRef as out,
    }

    /// The angle of a point (`atan2`): a separate kind since `jax-tt-plugin` 0.1.2. The schema's
    /// name for it is not known.
    EltwiseBinaryAtan2Op {
        kind("type"): EltwiseBinaryAtan2OpType, lhs: TensorRef, rhs: TensorRef, memory_config: Option<MemoryConfig>,
        out: TensorRef as out,
    }

    /// A function of a tensor and a number, element by element.
    EltwiseBinaryCompositeScalarOp {
        kind("type"): EltwiseBinaryCompositeScalarOpType, lhs: TensorRef, rhs: NumberType,
        memory_config: Option<MemoryConfig>, out: TensorRef as out,
    }

    /// `second` where `first` is not 0, `third` elsewhere.
    EltwiseTernaryWhereOp {
        first: TensorRef, second: TensorRef, third: TensorRef, memory_config: Option<MemoryConfig>,
        out: TensorRef as out,
    }

    /// A function of one tensor, element by element.
    EltwiseUnaryOp {
        kind("type"): EltwiseUnaryOpType, input("in"): TensorRef, memory_config: Option<MemoryConfig>,
        out: TensorRef as out, params: Option<EltwiseUnaryOpParams>,
    }

    /// Bounds that are numbers.
    ClampScalarOpParams { min: NumberType, max: NumberType }

    /// Bounds that are tensors.
    ClampTensorOpParams { min: TensorRef, max: TensorRef }

    /// A function of one tensor, element by element, that the library composes of others.
    EltwiseUnaryCompositeOp {
        kind("type"): EltwiseUnaryCompositeOpType, input("in"): TensorRef, memory_config: Option<MemoryConfig>,
        out: TensorRef as out, params: Option<EltwiseUnaryCompositeOpParams>,
    }

    /// Gradient of an element-wise function.
    ExperimentalEltwiseBinaryBackwardOp {
        kind("type"): ExperimentalEltwiseBinaryBackwardOpType, grad: TensorRef, input: TensorRef,
        approximate: String, output_dtype: Option<DataType>, memory_config: Option<MemoryConfig>,
        out: TensorRef as out,
    }

    /// Sets random elements to 0 and scales the others.
    DropoutOp {
        input("in"): TensorRef, prob: f32, scale: f32, seed: u32, use_per_device_seed: bool = true,
        output_dtype: Option<DataType>, memory_config: Option<MemoryConfig>, out: TensorRef as out,
    }
}
