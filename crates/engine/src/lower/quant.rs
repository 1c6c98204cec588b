//! Quantisation.

use tilework_model::ttnn::ops::quantization::{
    EltwiseQuantizationOp, EltwiseQuantizationOpParams, EltwiseQuantizationOpType, QuantizationScale,
    QuantizationZeroPoint,
};
use tilework_ops::{self as ops, PerAxis, Quantization};

use super::*;

/// A number for all elements, or a tensor with one for each index of the axis.
#[derive(Clone, Copy)]
enum Per<T> {
    Tensor(T),
    Axis(Slot),
}

impl<T: Copy> Per<T> {
    fn resolve<'a>(self, args: &'a Args<'_>) -> PerAxis<'a, T> {
        match self {
            Self::Tensor(number) => PerAxis::Tensor(number),
            Self::Axis(slot) => PerAxis::Axis(&args[slot]),
        }
    }
}

/// Scale and zero point.
#[derive(Clone, Copy)]
struct Steps {
    scale: Per<f32>,
    zero_point: Per<i32>,
}

impl Steps {
    fn of<'m>(
        scale: &'m QuantizationScale,
        zero_point: &'m QuantizationZeroPoint,
        lowering: &mut Lowering<'m>,
    ) -> Self {
        let scale = match scale {
            QuantizationScale::PerTensorScale(per) => Per::Tensor(per.scale),
            QuantizationScale::PerAxisScale(per) => Per::Axis(lowering.read(&per.scale)),
        };
        let zero_point = match zero_point {
            QuantizationZeroPoint::PerTensorZeroPoint(per) => Per::Tensor(per.zero_point),
            QuantizationZeroPoint::PerAxisZeroPoint(per) => Per::Axis(lowering.read(&per.zero_point)),
        };
        Self { scale, zero_point }
    }

    fn resolve<'a>(self, args: &'a Args<'_>) -> Quantization<'a> {
        Quantization { scale: self.scale.resolve(args), zero_point: self.zero_point.resolve(args) }
    }
}

pub(super) fn quantization<'m>(op: &'m EltwiseQuantizationOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    use EltwiseQuantizationOpParams::{QuantizeDequantizeOpParams, RequantizeOpParams};
    use EltwiseQuantizationOpType::{Dequantize, Quantize, Requantize};
    let input = lowering.read(&op.input);
    let out = lowering.make(&op.out)?;
    let axis = op.axis.map(i64::from);
    Ok(match (op.kind, &op.params) {
        (Quantize, QuantizeDequantizeOpParams(by)) => {
            let by = Steps::of(&by.scale, &by.zero_point, lowering);
            one(move |args| ops::quantize(&args[input], axis, by.resolve(args), out))
        }
        (Dequantize, QuantizeDequantizeOpParams(by)) => {
            let by = Steps::of(&by.scale, &by.zero_point, lowering);
            one(move |args| ops::dequantize(&args[input], axis, by.resolve(args), out))
        }
        (Requantize, RequantizeOpParams(by)) => {
            let from = Steps::of(&by.in_scale, &by.in_zero_point, lowering);
            let to = Steps::of(&by.out_scale, &by.out_zero_point, lowering);
            one(move |args| ops::requantize(&args[input], axis, from.resolve(args), to.resolve(args), out))
        }
        _ => return Err(Refusal::malformed(format!("a {} has the parameters of another function", op.kind))),
    })
}
