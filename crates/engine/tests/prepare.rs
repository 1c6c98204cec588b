//! Weights and biases that a program prepares with padding: they have the stated shapes, and a
//! convolution gives the same with them as without.

use crate::common::build::{f32, model, operation, program, values};
use tilework_engine::{Engine, Options};
use tilework_model::common::{DataType, TensorLayout};
use tilework_model::ttnn::ops::conv::{
    Conv2dOp, ConvTranspose2dOp, PrepareConv2dBiasOp, PrepareConv2dWeightsOp, PrepareConvTranspose2dBiasOp,
    PrepareConvTranspose2dWeightsOp,
};
use tilework_model::ttnn::{Op, Operation, TensorRef};
use tilework_ops::Tensor;

/// Images of 4 by 4 with 2 channels become 3 channels, by kernels of 2 by 3.
const SIZE: u32 = 4;
const CHANNELS: [u32; 2] = [2, 3];
const KERNEL: [i32; 2] = [2, 3];

/// The fields that preparations of weights and biases share.
macro_rules! prepared {
    ($op:ident { $($own:ident: $value:expr),* $(,)? }) => {
        $op {
            $($own: $value,)*
            input_memory_config: None,
            input_tensor_layout: TensorLayout::RowMajor,
            in_channels: CHANNELS[0],
            out_channels: CHANNELS[1],
            batch_size: 1,
            input_height: SIZE,
            input_width: SIZE,
            kernel_size: KERNEL.to_vec(),
            stride: vec![1, 1],
            padding: vec![0, 0],
            dilation: vec![1, 1],
            groups: 1,
            device: None,
            input_dtype: DataType::Float32,
            output_dtype: None,
            conv2d_config: None,
            compute_config: None,
            conv2d_slice_config: None,
        }
    };
}

/// The same of the convolutions themselves.
macro_rules! convolution {
    ($kind:ident: $op:ident($input:expr, $weight:expr, $bias:expr, $out:expr) { $($own:ident: $value:expr),* $(,)? }) => {
        operation(Op::$kind($op {
            $($own: $value,)*
            input: $input.clone(),
            weight: $weight.clone(),
            bias: Some($bias.clone()),
            out: $out.clone(),
            device: None,
            in_channels: CHANNELS[0],
            out_channels: CHANNELS[1],
            batch_size: 1,
            input_height: SIZE,
            input_width: SIZE,
            kernel_size: KERNEL.to_vec(),
            stride: vec![1, 1],
            padding: vec![0, 0],
            dilation: vec![1, 1],
            groups: 1,
            output_dtype: None,
            conv2d_config: None,
            compute_config: None,
            conv2d_slice_config: None,
        }))
    };
}

fn run(operations: Vec<Operation>, inputs: &[&TensorRef], outputs: &[&TensorRef], given: &[Tensor]) -> Vec<Tensor> {
    let model = model(vec![program("main", inputs, outputs, operations)]);
    let mut session = Engine::native(Options::default()).session(&model).unwrap();
    let ran = session.run(0, given.iter().cloned().map(Into::into).collect(), &mut ());
    ran.unwrap_or_else(|error| panic!("{error}")).outputs.iter().map(|value| value.on(0).clone()).collect()
}

fn numbers(shape: &[usize], step: usize) -> Tensor {
    let count = shape.iter().product();
    values(shape, &(0..count).map(|n: usize| (n * step % 13) as f32 - 6.0).collect::<Vec<_>>())
}

/// Whether all elements beyond these rows and columns are zeros.
fn rest_is_zero(tensor: &Tensor, rows: usize, columns: usize) -> bool {
    let width = tensor.shape().last();
    let padding = |at: usize| at / width >= rows || at % width >= columns;
    tensor.to_f32().iter().enumerate().all(|(at, &value)| !padding(at) || value == 0.0)
}

#[test]
fn padded_weights_and_biases_of_images_have_the_stated_shape_and_are_used() {
    let (x, w, b) = (f32(0, &[1, 1, 16, 2]), f32(1, &[3, 2, 2, 3]), f32(2, &[1, 1, 1, 3]));
    let (prepared_w, prepared_b) = (f32(3, &[1, 1, 32, 32]), f32(4, &[1, 1, 32, 32]));
    let (plain, padded) = (f32(8, &[1, 1, 6, 3]), f32(9, &[1, 1, 6, 3]));
    let weights = prepared!(PrepareConv2dWeightsOp {
        weight_tensor: w.clone(),
        out: prepared_w.clone(),
        weights_format: "OIHW".into(),
        has_bias: true,
    });
    let bias = prepared!(PrepareConv2dBiasOp { bias_tensor: b.clone(), out: prepared_b.clone() });
    let operations = vec![
        operation(Op::PrepareConv2dWeights(weights)),
        operation(Op::PrepareConv2dBias(bias)),
        convolution!(Conv2d: Conv2dOp(x, w, b, plain) {}),
        convolution!(Conv2d: Conv2dOp(x, prepared_w, prepared_b, padded) {}),
    ];
    let given = [numbers(&[1, 1, 16, 2], 5), numbers(&[3, 2, 2, 3], 7), numbers(&[1, 1, 1, 3], 3)];
    let found = run(operations, &[&x, &w, &b], &[&prepared_w, &prepared_b, &plain, &padded], &given);
    // Twelve rows, one for each tap and channel.
    assert!(rest_is_zero(&found[0], 12, 3) && rest_is_zero(&found[1], 1, 3));
    let first: Vec<f32> = found[0].to_f32()[..3].to_vec();
    assert_eq!(first, [0, 12, 24].map(|at| given[1].to_f32()[at]));
    assert_eq!(found[2].to_f32(), found[3].to_f32());
}

#[test]
fn padded_weights_of_transposed_convolutions_are_used_mirrored_or_not() {
    let (x, w, b) = (f32(0, &[1, 1, 16, 2]), f32(1, &[2, 3, 2, 3]), f32(2, &[1, 1, 1, 3]));
    let mirrored = f32(5, &[2, 3, 2, 3]);
    let prepared_w = [f32(3, &[1, 1, 32, 32]), f32(6, &[1, 1, 32, 32])];
    let prepared_b = f32(4, &[1, 1, 1, 32]);
    let results = [7, 8, 9].map(|id| f32(id, &[1, 1, 30, 3]));
    let weights = |from: &TensorRef, out: &TensorRef, mirror_kernel| {
        let op = prepared!(PrepareConvTranspose2dWeightsOp {
            weight_tensor: from.clone(),
            out: out.clone(),
            weights_format: "IOHW".into(),
            has_bias: true,
            output_padding: vec![0, 0],
            mirror_kernel: mirror_kernel,
        });
        operation(Op::PrepareConvTranspose2dWeights(op))
    };
    let bias = prepared!(PrepareConvTranspose2dBiasOp { bias_tensor: b.clone(), out: prepared_b.clone() });
    let transposed = |weight: &TensorRef, bias: &TensorRef, out: &TensorRef| convolution!(ConvTranspose2d: ConvTranspose2dOp(x, weight, bias, out) { output_padding: vec![0, 0], memory_config: None });
    let operations = vec![
        weights(&w, &prepared_w[0], true),
        weights(&mirrored, &prepared_w[1], false),
        operation(Op::PrepareConvTranspose2dBias(bias)),
        transposed(&w, &b, &results[0]),
        transposed(&prepared_w[0], &prepared_b, &results[1]),
        transposed(&prepared_w[1], &prepared_b, &results[2]),
    ];
    let weight = numbers(&[2, 3, 2, 3], 7);
    let reversed: Vec<f32> = weight.to_f32().chunks(6).flat_map(|taps| taps.iter().rev().copied()).collect();
    let given = [numbers(&[1, 1, 16, 2], 5), weight, numbers(&[1, 1, 1, 3], 3), values(&[2, 3, 2, 3], &reversed)];
    let outputs = [&prepared_w[0], &prepared_w[1], &prepared_b, &results[0], &results[1], &results[2]];
    let found = run(operations, &[&x, &w, &b, &mirrored], &outputs, &given);
    assert!(rest_is_zero(&found[0], 12, 3) && rest_is_zero(&found[2], 1, 3));
    assert_eq!(found[0].to_f32(), found[1].to_f32());
    assert_eq!(found[3].to_f32(), found[4].to_f32());
    assert_eq!(found[3].to_f32(), found[5].to_f32());
}
