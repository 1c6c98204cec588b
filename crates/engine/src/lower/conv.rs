//! Convolutions.
//!
//! Weights and biases that are prepared for the device have the shapes that the program states,
//! with the padding of the device's blocks; the operation library defines their order.

use tilework_model::common::DataType;
use tilework_model::ttnn::ops::conv::{
    Conv1dOp, Conv2dConfig, Conv2dOp, Conv3dOp, ConvTranspose2dOp, PrepareConv2dBiasOp, PrepareConv2dWeightsOp,
    PrepareConv3dWeightsOp, PrepareConvTranspose2dBiasOp, PrepareConvTranspose2dWeightsOp,
};
use tilework_ops::{self as ops, Conv2d, Conv3d, Padding, Unary, Window};

use super::*;
use crate::describe;

/// Weight and bias, and the type that they are rounded to before they are used.
#[derive(Clone, Copy)]
struct Weights {
    weight: Slot,
    bias: Option<Slot>,
    dtype: Option<DType>,
}

impl Weights {
    fn of<'m>(
        weight: &'m TensorRef,
        bias: &'m Option<TensorRef>,
        dtype: Option<DataType>,
        lowering: &mut Lowering<'m>,
    ) -> Result<Self, Refusal> {
        let dtype = dtype.map(|data_type| describe::dtype(data_type).ok_or(Refusal::Type(data_type))).transpose()?;
        let dtype = dtype.filter(|_| lowering.rounding == Rounding::Operations);
        Ok(Self { weight: lowering.read(weight), bias: lowering.read_if(bias), dtype })
    }

    fn resolve(self, args: &Args<'_>) -> (Tensor, Option<Tensor>) {
        let rounded = |tensor: &Tensor| ops::typecast(tensor, self.dtype.unwrap_or(tensor.dtype()));
        (rounded(&args[self.weight]), args.get(self.bias).map(rounded))
    }
}

fn weights_dtype(config: &Option<Conv2dConfig>) -> Option<DataType> {
    config.as_ref().and_then(|config| config.weights_dtype)
}

fn activation(config: &Option<Conv2dConfig>) -> Result<Option<Unary>, Refusal> {
    config.as_ref().and_then(|config| config.activation.as_ref()).map(fused::function).transpose()
}

fn window(kernel: &[i32], stride: &[i32], padding: Padding, dilation: &[i32]) -> Result<Window, Refusal> {
    Ok(Window {
        kernel: counts("kernel_size", kernel)?,
        stride: counts("stride", stride)?,
        padding,
        dilation: counts("dilation", dilation)?,
    })
}

/// Two numbers are rows and columns, four are top, bottom, left and right.
fn padding(list: &[i32]) -> Result<Padding, Refusal> {
    Padding::from_list(list).map_err(|reason| Refusal::malformed(reason.to_string()))
}

/// Two numbers are rows and columns, four are top, left, bottom and right: the order of pools and
/// of transposed convolutions, in the compiler's own operations before these. The public runtime
/// takes only two here; the compiler in `jax-tt-plugin` 0.1.0 writes four, and the results' shapes
/// show their order.
pub(super) fn around(list: &[i32]) -> Result<Padding, Refusal> {
    let [top, left, bottom, right] = match *list {
        [rows, columns] => counts("padding", &[rows, columns, rows, columns])?,
        _ => counts("padding", list)?,
    };
    Ok(Padding { top, bottom, left, right })
}

/// The attributes that a convolution over two dimensions and a transposed one have in common.
macro_rules! attributes {
    ($op:expr, $padding:expr) => {
        Conv2d {
            batch: count("batch_size", $op.batch_size)?,
            input: [count("input_height", $op.input_height)?, count("input_width", $op.input_width)?],
            in_channels: count("in_channels", $op.in_channels)?,
            out_channels: count("out_channels", $op.out_channels)?,
            window: window(&$op.kernel_size, &$op.stride, $padding, &$op.dilation)?,
            groups: count("groups", $op.groups)?,
            activation: activation(&$op.conv2d_config)?,
        }
    };
}

pub(super) fn conv2d<'m>(op: &'m Conv2dOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let weights = Weights::of(&op.weight, &op.bias, weights_dtype(&op.conv2d_config), lowering)?;
    let out = lowering.make(&op.out)?;
    let conv = attributes!(op, padding(&op.padding)?);
    Ok(one(move |args| {
        let (weight, bias) = weights.resolve(args);
        ops::conv2d(&args[input], &weight, bias.as_ref(), &conv, out)
    }))
}

pub(super) fn conv_transpose2d<'m>(op: &'m ConvTranspose2dOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let weights = Weights::of(&op.weight, &op.bias, weights_dtype(&op.conv2d_config), lowering)?;
    let out = lowering.make(&op.out)?;
    let conv = attributes!(op, around(&op.padding)?);
    let extra = counts("output_padding", &op.output_padding)?;
    Ok(one(move |args| {
        let (weight, bias) = weights.resolve(args);
        ops::conv_transpose2d(&args[input], &weight, bias.as_ref(), &conv, extra, out)
    }))
}

/// The padding is left and right.
pub(super) fn conv1d<'m>(op: &'m Conv1dOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let weights = Weights::of(&op.weight, &op.bias, weights_dtype(&op.conv2d_config), lowering)?;
    let out = lowering.make(&op.out)?;
    let [top, bottom] = match *op.padding {
        [both] => [count("padding", both)?; 2],
        _ => counts("padding", &op.padding)?,
    };
    let conv = Conv2d {
        batch: count("batch_size", op.batch_size)?,
        input: [count("input_length", op.input_length)?, 1],
        in_channels: count("in_channels", op.in_channels)?,
        out_channels: count("out_channels", op.out_channels)?,
        window: Window {
            kernel: [count("kernel_size", op.kernel_size)?, 1],
            stride: [count("stride", op.stride)?, 1],
            padding: Padding { top, bottom, ..Padding::default() },
            dilation: [count("dilation", op.dilation)?, 1],
        },
        groups: count("groups", op.groups)?,
        activation: activation(&op.conv2d_config)?,
    };
    Ok(one(move |args| {
        let (weight, bias) = weights.resolve(args);
        ops::conv1d(&args[input], &weight, bias.as_ref(), &conv, out)
    }))
}

pub(super) fn conv3d<'m>(op: &'m Conv3dOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let input = lowering.read(&op.input);
    let dtype = op.conv3d_config.as_ref().and_then(|config| config.weights_dtype);
    let weights = Weights::of(&op.weight, &op.bias, dtype, lowering)?;
    let out = lowering.make(&op.out)?;
    let dilation: [usize; 3] = if op.dilation.is_empty() { [1; 3] } else { counts("dilation", &op.dilation)? };
    let kernel: [usize; 3] = counts("kernel_size", &op.kernel_size)?;
    let block = op.conv3d_config.as_ref().and_then(|config| config.c_in_block).unwrap_or(0);
    let conv = Conv3d {
        batch: count("batch_size", op.batch_size)?,
        input: [
            count("input_depth", op.input_depth)?,
            count("input_height", op.input_height)?,
            count("input_width", op.input_width)?,
        ],
        in_channels: count("in_channels", op.in_channels)?,
        out_channels: count("out_channels", op.out_channels)?,
        kernel,
        stride: counts("stride", &op.stride)?,
        padding: counts("padding", &op.padding)?,
        dilation,
        groups: count("groups", op.groups)?,
        replicate: match op.padding_mode.as_str() {
            "zeros" | "" => false,
            "replicate" => true,
            other => return Err(Refusal::unsupported(format!("padding_mode {other:?}"))),
        },
        block: count("c_in_block", block)?,
    };
    Ok(one(move |args| {
        let (weight, bias) = weights.resolve(args);
        ops::conv3d(&args[input], &weight, bias.as_ref(), &conv, out)
    }))
}

/// Adds an operand and its prepared form.
fn prepared<'m>(
    from: &'m TensorRef,
    out: &'m TensorRef,
    lowering: &mut Lowering<'m>,
    prepare: impl Fn(&Tensor, &Shape) -> Result<Tensor, OpError> + 'm,
) -> Lowered<'m> {
    let from = lowering.read(from);
    let stated = lowering.make_whole(out)?;
    Ok(one(move |args| match args[from].shape() == &stated.shape {
        // What has the stated shape already is not padded.
        true => Ok(args[from].clone()),
        false => prepare(&args[from], &stated.shape),
    }))
}

pub(super) fn prepare_weights<'m>(op: &'m PrepareConv2dWeightsOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let groups = count("groups", op.groups)?;
    prepared(&op.weight_tensor, &op.out, lowering, move |weight, shape| {
        ops::pad_prepared(&ops::prepare_weights(weight, groups, false)?, shape)
    })
}

pub(super) fn prepare_bias<'m>(op: &'m PrepareConv2dBiasOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    prepared(&op.bias_tensor, &op.out, lowering, ops::prepare_bias)
}

pub(super) fn prepare_weights3d<'m>(op: &'m PrepareConv3dWeightsOp, lowering: &mut Lowering<'m>) -> Lowered<'m> {
    let groups = count("groups", op.groups)?;
    let (block, alignment) = (count("c_in_block", op.c_in_block)?, count("alignment", op.alignment)?);
    prepared(&op.weight_tensor, &op.out, lowering, move |weight, _| {
        ops::prepare_weights3d(weight, groups, block, alignment)
    })
}

/// The device computes a transposed convolution as a plain one with the taps in reverse order.
/// Weights that are in that order already are not reversed again.
pub(super) fn prepare_weights_transposed<'m>(
    op: &'m PrepareConvTranspose2dWeightsOp,
    lowering: &mut Lowering<'m>,
) -> Lowered<'m> {
    let (groups, mirror) = (count("groups", op.groups)?, op.mirror_kernel);
    let from = lowering.read(&op.weight_tensor);
    let stated = lowering.make_whole(&op.out)?;
    Ok(one(move |args| {
        let weight = if mirror { args[from].clone() } else { ops::mirrored(&args[from])? };
        ops::pad_prepared(&ops::prepare_weights(&weight, groups, true)?, &stated.shape)
    }))
}

pub(super) fn prepare_bias_transposed<'m>(
    op: &'m PrepareConvTranspose2dBiasOp,
    lowering: &mut Lowering<'m>,
) -> Lowered<'m> {
    prepared(&op.bias_tensor, &op.out, lowering, ops::prepare_bias)
}
