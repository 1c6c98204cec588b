//! Pools, convolutions and other functions of images on the chip against their reference semantics.

use crate::chip::common::build::{on_host, tensor};
use crate::chip::{BF16, array, floats, rows, same, same_of, same_on, tolerance};
use proptest::prelude::*;
use tilework_abi::board::Board;
use tilework_engine::{Tolerance, Value};
use tilework_model::common::DataType;
use tilework_model::ttnn::ops::conv::{Conv1dOp, Conv2dOp, Conv3dOp, ConvTranspose2dOp};
use tilework_model::ttnn::ops::pool::{
    AvgPool2dExtraParams, GlobalAvgPool2dOp, MaxPool2dExtraParams, MaxPool2dWithIndicesOp, NonUniformScale2D,
    Pool2dExtraParams, Pool2dOp, Pool2dOpType, Scale2D, UpsampleOp,
};
use tilework_model::ttnn::{Op, TensorRef};
use tilework_ops::Tensor;

/// A pool, whose result has so many rows and columns.
struct Pool {
    batch: i32,
    channels: i32,
    sides: [i32; 2],
    kernel: [i32; 2],
    stride: [i32; 2],
    dilation: [i32; 2],
    /// Top, left, bottom, right.
    around: [i32; 4],
    ceil: bool,
}

impl Pool {
    /// Rows and columns of the result, if a window fits (PyTorch's rule).
    fn output(&self) -> Option<[i32; 2]> {
        let length = |k: usize| {
            let (before, after) = (self.around[k], self.around[k + 2]);
            let room = self.sides[k] + before + after - self.dilation[k] * (self.kernel[k] - 1) - 1;
            let whole = room / self.stride[k] + 1;
            let more = self.ceil && room % self.stride[k] != 0 && whole * self.stride[k] < self.sides[k] + before;
            (room >= 0).then_some(whole + i32::from(more))
        };
        Some([length(0)?, length(1)?])
    }

    /// Its input and result.
    fn tensors(&self, data_type: DataType, in_rows: bool) -> Option<[TensorRef; 2]> {
        let form = |tensor| if in_rows { rows(tensor) } else { tensor };
        let [height, width] = self.output()?;
        let input = form(tensor(1, data_type, &[1, 1, self.batch * self.sides[0] * self.sides[1], self.channels]));
        Some([input, form(tensor(2, data_type, &[1, 1, self.batch * height * width, self.channels]))])
    }

    fn of(&self, [input, out]: &[TensorRef; 2], kind: Pool2dOpType, extra: Pool2dExtraParams) -> Op {
        Op::Pool2d(Pool2dOp {
            kind,
            input: input.clone(),
            out: out.clone(),
            batch_size: self.batch as u32,
            input_height: self.sides[0] as u32,
            input_width: self.sides[1] as u32,
            channels: self.channels as u32,
            kernel_size: self.kernel.to_vec(),
            stride: self.stride.to_vec(),
            padding: self.around.to_vec(),
            dilation: self.dilation.to_vec(),
            extra_params: Some(extra),
            memory_config: None,
            applied_shard_scheme: None,
            ceil_mode: self.ceil,
            reallocate_halo_output: true,
            config_tensors_in_dram: false,
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn pools_of_any_windows(
        batch in 1..3_i32, channels in 1..70_i32, sides in prop::array::uniform2(3..14_i32),
        kernel in prop::array::uniform2(1..4_i32), stride in prop::array::uniform2(1..4_i32),
        dilation in prop::array::uniform2(1..3_i32), padding in prop::array::uniform4(0..2_i32), ceil in any::<bool>(),
        counted in any::<bool>(), data_type in floats(), in_rows in any::<bool>(),
    ) {
        // Padding is at most half of the window.
        let around = [0, 1, 2, 3].map(|k| padding[k].min(kernel[k % 2] / 2));
        let pool = Pool { batch, channels, sides, kernel, stride, dilation, around, ceil };
        let Some(tensors) = pool.tensors(data_type, in_rows) else { return Ok(()) };
        let [input, out] = &tensors;
        let extra = Pool2dExtraParams::MaxPool2dExtraParams(MaxPool2dExtraParams {});
        same(pool.of(&tensors, Pool2dOpType::MaxPool2d, extra), &[input], out, Tolerance::EXACT);
        let extra = AvgPool2dExtraParams { count_include_pad: counted, divisor_override: None };
        let extra = Pool2dExtraParams::AvgPool2dExtraParams(extra);
        same(pool.of(&tensors, Pool2dOpType::AvgPool2d, extra), &[input], out, tolerance(data_type));
    }

    /// The places of the largest elements, the first of several.
    #[test]
    fn places_of_the_largest_in_windows(
        batch in 1..3_i32, channels in 1..40_i32, sides in prop::array::uniform2(3..14_i32),
        kernel in prop::array::uniform2(1..4_i32), stride in prop::array::uniform2(1..4_i32),
        dilation in prop::array::uniform2(1..3_i32), padding in prop::array::uniform4(0..2_i32), ceil in any::<bool>(),
        data_type in floats(), index in prop_oneof![Just(DataType::Int32), Just(DataType::UInt16)],
    ) {
        let around = [0, 1, 2, 3].map(|k| padding[k].min(kernel[k % 2] / 2));
        let pool = Pool { batch, channels, sides, kernel, stride, dilation, around, ceil };
        let Some([input, out]) = pool.tensors(data_type, false) else { return Ok(()) };
        let places = tensor(3, index, &out.desc.shape);
        let op = MaxPool2dWithIndicesOp {
            input: input.clone(), result: out.clone(), result_indices: places.clone(), batch_size: batch as u32,
            input_height: sides[0] as u32, input_width: sides[1] as u32, channels: channels as u32,
            kernel_size: kernel.to_vec(), stride: stride.to_vec(), padding: around.to_vec(), dilation: dilation.to_vec(),
            memory_config: None, applied_shard_scheme: None, ceil_mode: ceil, reallocate_halo_output: true,
            config_tensors_in_dram: false,
        };
        let values = || {
            let near = array(&input, 1);
            // Of bfloat16 the chip's units take a NaN for an infinity.
            let odd = if data_type == DataType::Float32 { f32::NAN } else { f32::INFINITY };
            let number = |(i, x): (usize, &f32)| match i % 41 {
                7 => odd,
                19 => -odd,
                _ => x.round(),
            };
            let all: Vec<f32> = near.to_f32().iter().enumerate().map(number).collect();
            vec![Value::from(Tensor::from_f32(near.dtype(), near.shape().clone(), &all).unwrap())]
        };
        same_of(vec![Op::MaxPool2dWithIndices(op)], &[&input], &values, &[&out, &places], Tolerance::EXACT);
    }

    #[test]
    fn images_become_larger_or_one_element(
        batch in 1..3_i32, channels in 1..40_i32, sides in prop::array::uniform2(1..9_i32),
        scale in prop::array::uniform2(1..4_i32), data_type in floats(), in_rows in any::<bool>(),
    ) {
        let form = |tensor| if in_rows { rows(tensor) } else { tensor };
        let input = form(tensor(1, data_type, &[batch, sides[0], sides[1], channels]));
        let out = form(tensor(2, data_type, &[batch, sides[0] * scale[0], sides[1] * scale[1], channels]));
        for (mode, tolerance) in [("nearest", Tolerance::EXACT), ("bilinear", tolerance(data_type))] {
            let scale_factor = Scale2D::NonUniformScale2D(NonUniformScale2D { scale: scale.to_vec() });
            let op = UpsampleOp {
                input: input.clone(), scale_factor, mode: mode.into(), memory_config: None, out: out.clone()
            };
            same(Op::Upsample(op), &[&input], &out, tolerance);
        }
        let out = form(tensor(2, data_type, &[batch, 1, 1, channels]));
        let op = GlobalAvgPool2dOp { input: input.clone(), out: out.clone(), memory_config: None, dtype: None };
        same(Op::GlobalAvgPool2d(op), &[&input], &out, tolerance(data_type));
    }
}

/// Sides of a convolution that fits, and the tensors that are not weights.
fn sides() -> impl Strategy<Value = ([i32; 2], [i32; 2], [i32; 2], [i32; 2], i32)> {
    let two = |range: std::ops::Range<i32>| prop::array::uniform2(range);
    (two(6..12), two(1..4), two(1..3), two(1..3), 0..2_i32)
}

/// Groups, and channels of the input and the result of each.
fn channels() -> impl Strategy<Value = [i32; 3]> {
    prop_oneof![
        (1..40_i32, 1..40_i32).prop_map(|(from, to)| [1, from, to]),
        (2..5_i32, 1..12_i32, 1..12_i32).prop_map(|(groups, from, to)| [groups, from, to]),
        (2..70_i32).prop_map(|groups| [groups, 1, 1]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10, ..ProptestConfig::default() })]

    #[test]
    fn convolutions_of_groups_and_with_gaps(
        batch in 1..3_i32, (sides, kernel, stride, dilation, around) in sides(), [groups, from, to] in channels(),
        bias in any::<bool>(), in_rows in any::<bool>(), data_type in floats(),
    ) {
        let form = |tensor| if in_rows { rows(tensor) } else { tensor };
        let out_side = |k: usize| (sides[k] + 2 * around - dilation[k] * (kernel[k] - 1) - 1) / stride[k] + 1;
        let [height, width] = sides;
        let input = form(tensor(1, data_type, &[1, 1, batch * height * width, groups * from]));
        let weight = on_host(rows(tensor(2, data_type, &[groups * to, from, kernel[0], kernel[1]])));
        let bias = bias.then(|| on_host(rows(tensor(3, data_type, &[1, 1, 1, groups * to]))));
        let out = form(tensor(4, data_type, &[1, 1, batch * out_side(0) * out_side(1), groups * to]));
        let op = Conv2dOp {
            input: input.clone(), weight: weight.clone(), bias: bias.clone(), out: out.clone(), device: None,
            in_channels: (groups * from) as u32, out_channels: (groups * to) as u32, batch_size: batch as u32,
            input_height: height as u32, input_width: width as u32, kernel_size: kernel.to_vec(),
            stride: stride.to_vec(), padding: vec![around, around], dilation: dilation.to_vec(),
            groups: groups as u32, output_dtype: None, conv2d_config: None, compute_config: None,
            conv2d_slice_config: None,
        };
        let inputs: Vec<&TensorRef> = [&input, &weight].into_iter().chain(&bias).collect();
        same(Op::Conv2d(op), &inputs, &out, tolerance(data_type));
    }

    #[test]
    fn transposed_convolutions(
        (sides, kernel, stride, dilation, around) in sides(), [groups, from, to] in channels(),
    ) {
        let extra = [0, 1].map(|k| (stride[k] - 1).min(1));
        let around = [0, 1].map(|k| around.min(dilation[k] * (kernel[k] - 1)));
        let out_side = |k: usize| {
            (sides[k] - 1) * stride[k] - 2 * around[k] + dilation[k] * (kernel[k] - 1) + extra[k] + 1
        };
        let data_type = DataType::BFloat16;
        let input = tensor(1, data_type, &[1, 1, sides[0] * sides[1], groups * from]);
        let weight = on_host(rows(tensor(2, data_type, &[groups * from, to, kernel[0], kernel[1]])));
        let out = tensor(3, data_type, &[1, 1, out_side(0) * out_side(1), groups * to]);
        let op = ConvTranspose2dOp {
            input: input.clone(), weight: weight.clone(), bias: None, out: out.clone(), device: None,
            in_channels: (groups * from) as u32, out_channels: (groups * to) as u32, batch_size: 1,
            input_height: sides[0] as u32, input_width: sides[1] as u32, kernel_size: kernel.to_vec(),
            stride: stride.to_vec(), padding: around.to_vec(), output_padding: extra.to_vec(),
            dilation: dilation.to_vec(), groups: groups as u32, output_dtype: None, conv2d_config: None,
            compute_config: None, memory_config: None, conv2d_slice_config: None,
        };
        same(Op::ConvTranspose2d(op), &[&input, &weight], &out, BF16);
    }

    #[test]
    fn convolutions_of_lines_and_volumes(
        (sides, kernel, stride, dilation, around) in sides(), [groups, from, to] in channels(), deep in 1..4_i32,
    ) {
        let data_type = DataType::BFloat16;
        let out_side = |k: usize| (sides[k] + 2 * around - dilation[k] * (kernel[k] - 1) - 1) / stride[k] + 1;
        let input = tensor(1, data_type, &[1, 1, sides[0], groups * from]);
        let weight = on_host(rows(tensor(2, data_type, &[groups * to, from, kernel[0]])));
        let out = tensor(3, data_type, &[1, 1, out_side(0), groups * to]);
        let op = Conv1dOp {
            input: input.clone(), weight: weight.clone(), bias: None, out: out.clone(), device: None,
            in_channels: (groups * from) as u32, out_channels: (groups * to) as u32, batch_size: 1,
            input_length: sides[0] as u32, kernel_size: kernel[0] as u32, stride: stride[0] as u32,
            padding: vec![around, around], dilation: dilation[0] as u32, groups: groups as u32, output_dtype: None,
            conv2d_config: None, compute_config: None, conv2d_slice_config: None,
        };
        same(Op::Conv1d(op), &[&input, &weight], &out, BF16);

        let depth = deep + 2;
        let deep_out = depth + 2 * around - deep + 1;
        let input = tensor(1, data_type, &[1, depth, sides[0], sides[1], groups * from]);
        let sides_of = [groups * to, from, deep, kernel[0], kernel[1]];
        let weight = on_host(rows(tensor(2, data_type, &sides_of)));
        let out = tensor(3, data_type, &[1, deep_out, out_side(0), out_side(1), groups * to]);
        let three = |first: i32, list: [i32; 2]| vec![first, list[0], list[1]];
        let op = Conv3dOp {
            input: input.clone(), weight: weight.clone(), bias: None, out: out.clone(), device: None,
            in_channels: (groups * from) as u32, out_channels: (groups * to) as u32, batch_size: 1,
            input_depth: depth as u32, input_height: sides[0] as u32, input_width: sides[1] as u32,
            kernel_size: three(deep, kernel), stride: three(1, stride), padding: vec![around; 3],
            padding_mode: "zeros".into(), groups: groups as u32, output_dtype: None, conv3d_config: None,
            compute_config: None, memory_config: None, dilation: three(1, dilation),
        };
        same(Op::Conv3d(op), &[&input, &weight], &out, BF16);
    }
}

/// The pool of a real network, on both boards.
#[test]
fn pools_on_both_boards() {
    let pool = Pool {
        batch: 1,
        channels: 64,
        sides: [28, 28],
        kernel: [3, 3],
        stride: [2, 2],
        dilation: [1, 1],
        around: [1; 4],
        ceil: false,
    };
    let tensors = pool.tensors(DataType::BFloat16, false).unwrap();
    let [input, out] = &tensors;
    for board in [Board::P100, Board::P150] {
        let values = || vec![Value::from(array(input, 1))];
        let extra = Pool2dExtraParams::MaxPool2dExtraParams(MaxPool2dExtraParams {});
        let largest = pool.of(&tensors, Pool2dOpType::MaxPool2d, extra);
        same_on(board, vec![largest], &[input], &values, &[out], Tolerance::EXACT);
        let extra = AvgPool2dExtraParams { count_include_pad: false, divisor_override: None };
        let mean = pool.of(&tensors, Pool2dOpType::AvgPool2d, Pool2dExtraParams::AvgPool2dExtraParams(extra));
        same_on(board, vec![mean], &[input], &values, &[out], BF16);
    }
}
