//! Pooling and resizing.

use tilework_model::ttnn::ops::pool::{
    AvgPool2dExtraParams, GlobalAvgPool2dOp, MaxPool2dWithIndicesOp, Pool2dExtraParams, Pool2dOp, Pool2dOpType,
    Scale2D, UpsampleOp,
};
use tilework_ops::{self as ops, Binary, Pool2d, UpsampleMode, Window};

use super::*;

fn window(kernel: &[i32], stride: &[i32], padding: &[i32], dilation: &[i32]) -> Result<Window, Refusal> {
    let dilation = if dilation.is_empty() { [1, 1] } else { counts("dilation", dilation)? };
    let (kernel, stride) = (counts("kernel_size", kernel)?, counts("stride", stride)?);
    Ok(Window { kernel, stride, padding: conv::around(padding)?, dilation })
}

/// The attributes that pools with and without indices have in common.
macro_rules! attributes {
    ($op:expr) => {
        Pool2d {
            batch: count("batch_size", $op.batch_size)?,
            input: [count("input_height", $op.input_height)?, count("input_width", $op.input_width)?],
            channels: count("channels", $op.channels)?,
            window: window(&$op.kernel_size, &$op.stride, &$op.padding, &$op.dilation)?,
            ceil: $op.ceil_mode,
        }
    };
}

pub(super) fn pool2d<'m>(op: &'m Pool2dOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let out = lowering.make(&op.out)?;
    let pool = attributes!(op);
    Ok(match (op.kind, &op.extra_params) {
        (Pool2dOpType::MaxPool2d, _) => one(move |args| ops::max_pool2d(&args[input], &pool, out)),
        (Pool2dOpType::AvgPool2d, Some(Pool2dExtraParams::AvgPool2dExtraParams(extra))) => {
            average(input, pool, extra, out)?
        }
        (Pool2dOpType::AvgPool2d, _) => return Err(Refusal::malformed("an average without its parameters")),
    })
}

fn average<'m>(input: Slot, pool: Pool2d, extra: &AvgPool2dExtraParams, out: DType) -> Lowered<'m> {
    let counted = extra.count_include_pad;
    let Some(divisor) = extra.divisor_override else {
        return Ok(one(move |args| ops::avg_pool2d(&args[input], &pool, counted, out)));
    };
    if divisor == 0 || pool.ceil {
        return Err(Refusal::unsupported(format!("a divisor of {divisor} with ceil_mode {}", pool.ceil)));
    }
    // With the padding counted all windows are of one size, and the average is the sum over it.
    let factor = pool.window.kernel.iter().product::<usize>() as f32 / divisor as f32;
    Ok(one(move |args| {
        let mean = ops::avg_pool2d(&args[input], &pool, true, DType::F32)?;
        let factor = Tensor::new(Shape::scalar(), vec![factor])?;
        ops::binary(Binary::Multiply, &mean, &factor, out)
    }))
}

pub(super) fn max_with_indices<'m>(op: &'m MaxPool2dWithIndicesOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let out = lowering.make(&op.result)?;
    let index = lowering.make(&op.result_indices)?;
    let pool = attributes!(op);
    Ok(many(move |args| {
        let (values, indices) = ops::max_pool2d_with_indices(&args[input], &pool, out, index)?;
        Ok(vec![values, indices])
    }))
}

pub(super) fn global_average<'m>(op: &'m GlobalAvgPool2dOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let out = lowering.make(&op.out)?;
    Ok(one(move |args| ops::global_avg_pool2d(&args[input], out)))
}

pub(super) fn upsample<'m>(op: &'m UpsampleOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let out = lowering.make(&op.out)?;
    let scale = match &op.scale_factor {
        Scale2D::UniformScale2D(by) => [count("scale_factor", by.scale)?; 2],
        Scale2D::NonUniformScale2D(by) => counts("scale_factor", &by.scale)?,
    };
    let mode = match op.mode.as_str() {
        "nearest" => UpsampleMode::Nearest,
        "bilinear" => UpsampleMode::Bilinear,
        other => return Err(Refusal::unsupported(format!("upsampling {other:?}"))),
    };
    Ok(one(move |args| ops::upsample(&args[input], scale, mode, out)))
}
