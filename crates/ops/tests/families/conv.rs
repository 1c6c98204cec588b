//! Convolutions.

use proptest::prelude::*;
use tilework_ops::{
    Conv2d, Conv3d, DType, Padding, Unary, Window, conv_transpose2d, conv1d, conv2d, conv3d, mirrored, pad_prepared,
    prepare_bias, prepare_weights, prepare_weights3d,
};

use crate::common::{Nd, close, floats, same, seeds, shape};

/// Sizes of a test: small numbers of everything.
fn sizes() -> impl Strategy<Value = (Conv2d, [usize; 2])> {
    let small = || (1usize..4, 1usize..4);
    let pads = (0usize..3, 0usize..3, 0usize..3, 0usize..3);
    (
        (1usize..3, 1usize..4, prop_oneof![1usize..4, 5usize..37], 1usize..3),
        (3usize..8, 3usize..8),
        small(),
        small(),
        pads,
        (1usize..3, 1usize..3),
    )
        .prop_map(|((batch, ci, co, groups), input, kernel, stride, (top, bottom, left, right), dilation)| {
            let window = Window {
                kernel: [kernel.0, kernel.1],
                stride: [stride.0, stride.1],
                padding: Padding { top, bottom, left, right },
                dilation: [dilation.0, dilation.1],
            };
            let conv = Conv2d {
                batch,
                input: [input.0, input.1],
                in_channels: ci * groups,
                out_channels: co * groups,
                window,
                groups,
                activation: None,
            };
            (conv, [ci, co])
        })
}

fn flat(n: &Nd) -> Nd {
    let c = *n.dims.last().unwrap();
    Nd::new(&[1, 1, n.values.len() / c, c], n.values.clone())
}

/// Convolution straight from its definition: for each output, over group channels and taps.
fn reference(x: &Nd, w: &Nd, bias: &Nd, c: &Conv2d) -> Option<Nd> {
    let p = c.window.padding;
    let [kh, kw] = c.window.kernel;
    let [dh, dw] = c.window.dilation;
    let length =
        |n: usize, pads: usize, k: usize, d: usize, s: usize| Some((n + pads).checked_sub(d * (k - 1) + 1)? / s + 1);
    let oh = length(c.input[0], p.top + p.bottom, kh, dh, c.window.stride[0])?;
    let ow = length(c.input[1], p.left + p.right, kw, dw, c.window.stride[1])?;
    let (ci, co) = (c.in_channels / c.groups, c.out_channels / c.groups);
    Some(Nd::by(&[c.batch, oh, ow, c.out_channels], |i| {
        let mut sum = bias.at(&i[3..]);
        for (k, (y, x_)) in (0..ci).flat_map(|k| (0..kh).flat_map(move |y| (0..kw).map(move |x| (k, (y, x))))) {
            let row = (i[1] * c.window.stride[0] + y * dh) as isize - p.top as isize;
            let column = (i[2] * c.window.stride[1] + x_ * dw) as isize - p.left as isize;
            if (0..c.input[0] as isize).contains(&row) && (0..c.input[1] as isize).contains(&column) {
                let channel = i[3] / co * ci + k;
                sum += x.at(&[i[0], row as usize, column as usize, channel]) * w.at(&[i[3], k, y, x_]);
            }
        }
        sum
    }))
}

/// More positions than are computed together; edges so large that they are not stored.
#[test]
fn images_of_many_positions_and_large_edges() {
    let padded = |top, left| Padding { top, bottom: 1, left, right: 2 };
    for (input, channels, groups, stride, padding) in [
        ([29, 31], [6, 40], 1, [1, 1], padded(1, 0)),
        ([40, 33], [24, 24], 24, [1, 1], padded(0, 2)),
        ([40, 33], [34, 51], 17, [2, 1], padded(1, 1)),
        ([5, 4], [3, 18], 1, [700, 600], padded(4000, 3000)),
    ] {
        let window = Window { kernel: [3, 2], stride, padding, dilation: [1, 2] };
        let [in_channels, out_channels] = channels;
        let conv = Conv2d { batch: 2, input, in_channels, out_channels, window, groups, activation: None };
        let x = Nd::random(&[2, input[0], input[1], in_channels], 3);
        let w = Nd::random(&[out_channels, in_channels / groups, 3, 2], 4);
        let bias = Nd::random(&[out_channels], 5);
        let found = conv2d(&flat(&x).f32(), &w.f32(), Some(&bias.f32()), &conv, DType::F32).unwrap();
        close(&found, &flat(&reference(&x, &w, &bias, &conv).unwrap()), 1e-5);
    }
}

proptest! {
    #[test]
    fn by_definition((conv, [ci, _]) in sizes(), seed in seeds()) {
        let x = Nd::random(&[conv.batch, conv.input[0], conv.input[1], conv.in_channels], seed);
        let w = Nd::random(&[conv.out_channels, ci, conv.window.kernel[0], conv.window.kernel[1]], seed + 1);
        let bias = Nd::random(&[conv.out_channels], seed + 2);
        let found = conv2d(&flat(&x).f32(), &w.f32(), Some(&bias.f32()), &conv, DType::F32);
        match reference(&x, &w, &bias, &conv) {
            None => prop_assert!(found.is_err()),
            Some(wanted) => {
                close(&found.unwrap(), &flat(&wanted), 1e-5);
                let prepared = prepare_weights(&w.f32(), conv.groups, false).unwrap();
                let again = conv2d(&x.f32(), &prepared, Some(&bias.f32()), &conv, DType::F32).unwrap();
                close(&again, &flat(&wanted), 1e-5);
                // Padded as for the device, weights and bias.
                let [rows, columns] = [2, 3].map(|i| prepared.shape().dims()[i]);
                let padded = pad_prepared(&prepared, &shape(&[1, 1, rows.next_multiple_of(32) + 32, columns + 5])).unwrap();
                let row = prepare_bias(&bias.f32(), &shape(&[1, 1, 32, columns + 5])).unwrap();
                let again = conv2d(&x.f32(), &padded, Some(&row), &conv, DType::F32).unwrap();
                close(&again, &flat(&wanted), 1e-5);
            }
        }
    }

    /// Each input element contributes to the outputs for which a convolution would have read it.
    #[test]
    fn transposed((conv, [_, co]) in sizes(), extra in (0usize..2, 0usize..2), seed in seeds()) {
        let w = conv.window;
        let x = Nd::random(&[conv.batch, conv.input[0], conv.input[1], conv.in_channels], seed);
        let weight = Nd::random(&[conv.in_channels, co, w.kernel[0], w.kernel[1]], seed + 1);
        let length = |i: usize, pads: usize, extra: usize| {
            ((conv.input[i] - 1) * w.stride[i] + w.dilation[i] * (w.kernel[i] - 1) + 1 + extra).checked_sub(pads)
        };
        let out = [length(0, w.padding.top + w.padding.bottom, extra.0), length(1, w.padding.left + w.padding.right, extra.1)];
        let found = conv_transpose2d(&flat(&x).f32(), &weight.f32(), None, &conv, [extra.0, extra.1], DType::F32);
        let [Some(oh), Some(ow)] = out else {
            prop_assert!(found.is_err());
            return Ok(());
        };
        let mut wanted = Nd::by(&[conv.batch, oh, ow, conv.out_channels], |_| 0.0);
        for i in crate::common::indices(&x.dims) {
            let group = i[3] / (conv.in_channels / conv.groups);
            for t in crate::common::indices(&[co, w.kernel[0], w.kernel[1]]) {
                let row = (i[1] * w.stride[0] + t[1] * w.dilation[0]).wrapping_sub(w.padding.top);
                let column = (i[2] * w.stride[1] + t[2] * w.dilation[1]).wrapping_sub(w.padding.left);
                if row < oh && column < ow {
                    let at = ((i[0] * oh + row) * ow + column) * conv.out_channels + group * co + t[0];
                    wanted.values[at] += x.at(&i) * weight.at(&[i[3], t[0], t[1], t[2]]);
                }
            }
        }
        close(&found.unwrap(), &flat(&wanted), 1e-5);
    }

    #[test]
    fn one_axis_is_a_column(length in 3usize..12, kernel in 1usize..4, stride in 1usize..3, pads in (0usize..3, 0usize..3), dilation in 1usize..3, seed in seeds()) {
        let x = Nd::random(&[2, length, 3], seed);
        let w = Nd::random(&[4, 3, kernel], seed + 1);
        let Some(room) = (length + pads.0 + pads.1).checked_sub(dilation * (kernel - 1) + 1) else { return Ok(()) };
        let count = room / stride + 1;
        let wanted = Nd::by(&[2, count, 4], |i| {
            let mut sum = 0.0;
            for t in 0..kernel {
                let at = (i[1] * stride + t * dilation).wrapping_sub(pads.0);
                if at < length {
                    sum += (0..3).map(|c| x.at(&[i[0], at, c]) * w.at(&[i[2], c, t])).sum::<f64>();
                }
            }
            sum
        });
        let window = Window {
            kernel: [kernel, 1],
            stride: [stride, 1],
            padding: Padding { top: pads.0, bottom: pads.1, left: 0, right: 0 },
            dilation: [dilation, 1],
        };
        let conv = Conv2d { batch: 2, input: [length, 1], in_channels: 3, out_channels: 4, window, groups: 1, activation: None };
        let found = conv1d(&x.f32(), &w.f32(), None, &conv, DType::F32).unwrap();
        close(&found, &flat(&wanted), 1e-5);
    }

    #[test]
    fn volumes(input in (2usize..5, 2usize..5, 2usize..5), kernel in (1usize..3, 1usize..3, 1usize..3), pad in 0usize..2, replicate in any::<bool>(), seed in seeds()) {
        let (input, kernel) = ([input.0, input.1, input.2], [kernel.0, kernel.1, kernel.2]);
        let conv = Conv3d { batch: 1, input, in_channels: 2, out_channels: 3, kernel, stride: [1, 2, 1], padding: [pad; 3], dilation: [1; 3], groups: 1, replicate, block: 0 };
        let x = Nd::random(&[1, input[0], input[1], input[2], 2], seed);
        let w = Nd::random(&[3, 2, kernel[0], kernel[1], kernel[2]], seed + 1);
        let out: Vec<usize> = (0..3).map(|i| (input[i] + 2 * pad - kernel[i]) / conv.stride[i] + 1).collect();
        let wanted = Nd::by(&[1, out[0], out[1], out[2], 3], |i| {
            let mut sum = 0.0;
            for t in crate::common::indices(&[2, kernel[0], kernel[1], kernel[2]]) {
                let at: Vec<isize> = (0..3).map(|k| (i[k + 1] * conv.stride[k] + t[k + 1]) as isize - pad as isize).collect();
                let inside = (0..3).all(|k| (0..input[k] as isize).contains(&at[k]));
                if inside || replicate {
                    let at: Vec<usize> = (0..3).map(|k| at[k].clamp(0, input[k] as isize - 1) as usize).collect();
                    sum += x.at(&[0, at[0], at[1], at[2], t[0]]) * w.at(&[i[4], t[0], t[1], t[2], t[3]]);
                }
            }
            sum
        });
        close(&conv3d(&x.f32(), &w.f32(), None, &conv, DType::F32).unwrap(), &wanted, 1e-5);
    }
}

fn plain(input: [usize; 2], channels: [usize; 2], kernel: usize) -> Conv2d {
    let window = Window { kernel: [kernel; 2], stride: [1; 2], padding: Padding::default(), dilation: [1; 2] };
    Conv2d { batch: 1, input, in_channels: channels[0], out_channels: channels[1], window, groups: 1, activation: None }
}

#[test]
fn many_blocks_depthwise_and_activation() {
    // More positions than one block, and one channel per group.
    let conv = Conv2d { groups: 5, activation: Some(Unary::Relu), ..plain([20, 21], [5, 5], 3) };
    let (x, w) = (Nd::random(&[1, 20, 21, 5], 1), Nd::random(&[5, 1, 3, 3], 2));
    let mut wanted = reference(&x, &w, &Nd::new(&[5], vec![0.0; 5]), &conv).unwrap();
    wanted.values.iter_mut().for_each(|v| *v = v.max(0.0));
    close(&conv2d(&flat(&x).f32(), &w.f32(), None, &conv, DType::F32).unwrap(), &flat(&wanted), 1e-5);
    let conv = plain([30, 40], [7, 9], 1);
    let (x, w) = (Nd::random(&[1, 30, 40, 7], 3), Nd::random(&[9, 7, 1, 1], 4));
    let wanted = reference(&x, &w, &Nd::new(&[9], vec![0.0; 9]), &conv).unwrap();
    close(&conv2d(&flat(&x).f32(), &w.f32(), None, &conv, DType::F32).unwrap(), &flat(&wanted), 1e-5);
}

#[test]
fn padding_lists() {
    let of = |list: &[i32]| Padding::from_list(list);
    assert_eq!(of(&[1, 2]).unwrap(), Padding { top: 1, bottom: 1, left: 2, right: 2 });
    assert_eq!(of(&[1, 2, 3, 4]).unwrap(), Padding { top: 1, bottom: 2, left: 3, right: 4 });
    assert!(of(&[1]).is_err() && of(&[1, -1]).is_err());
}

#[test]
fn impossible_convolutions_are_refused() {
    let (x, w) = (floats(&[1, 1, 9, 2], &[0.0; 18]), floats(&[4, 2, 2, 2], &[0.0; 32]));
    let good = plain([3, 3], [2, 4], 2);
    assert!(conv2d(&x, &w, None, &good, DType::F32).is_ok());
    let run = |conv: Conv2d| conv2d(&x, &w, None, &conv, DType::F32).unwrap_err().to_string();
    let window = good.window;
    run(Conv2d { groups: 0, ..good });
    run(Conv2d { groups: 3, ..good });
    run(Conv2d { batch: 2, ..good });
    run(Conv2d { batch: usize::MAX, ..good });
    run(Conv2d { window: Window { stride: [0, 1], ..window }, ..good });
    run(Conv2d { window: Window { kernel: [0, 1], ..window }, ..good });
    run(Conv2d { window: Window { dilation: [1 << 40, 1], ..window }, ..good });
    assert!(run(Conv2d { window: Window { kernel: [2, 1], ..window }, ..good }).contains("[4, 2, 2, 1]"));
    assert!(run(Conv2d { window: Window { kernel: [4, 4], ..window }, ..good }).contains("a window covers 4"));
    assert!(conv2d(&x, &w, Some(&floats(&[3], &[0.0; 3])), &good, DType::F32).is_err());
}

#[test]
fn weights_and_biases_of_the_wrong_size_are_not_taken_for_padded_ones() {
    let window = Window { kernel: [1, 1], stride: [1, 1], padding: Padding::default(), dilation: [1, 1] };
    let conv = Conv2d { batch: 1, input: [2, 2], in_channels: 2, out_channels: 2, window, groups: 1, activation: None };
    let x = Nd::random(&[1, 2, 2, 2], 1).f32();
    let weight = floats(&[2, 2, 1, 1], &[1.0, 2.0, 3.0, 4.0]);
    let bias = floats(&[1, 1, 1, 4], &[1.0, 2.0, 0.0, 5.0]);
    assert!(conv2d(&x, &weight, Some(&bias), &conv, DType::F32).is_err());
    let wide = floats(&[1, 1, 2, 3], &[1.0, 2.0, 0.0, 3.0, 4.0, 5.0]);
    assert!(conv2d(&x, &wide, None, &conv, DType::F32).is_err());
}

#[test]
fn taps_are_mirrored() {
    let weight = Nd::random(&[2, 3, 2, 4], 5);
    let wanted = Nd::by(&weight.dims, |i| weight.at(&[i[0], i[1], 1 - i[2], 3 - i[3]]));
    same(&mirrored(&weight.f32()).unwrap(), &wanted);
}

/// Rows are blocks of channels, taps, channels of a block; each output has rows of its group only.
#[test]
fn weights_of_volumes_are_prepared_in_blocks_and_by_groups() {
    for (groups, block, alignment) in [(1, 8, 8), (1, 0, 32), (2, 4, 16), (2, 8, 8), (3, 0, 1)] {
        let (each, taps) = (2, [2, 1, 3]);
        let weight = Nd::random(&[6, each, 2, 1, 3], groups as u64);
        let aligned = (each * groups).next_multiple_of(alignment);
        let channels = if block == 0 { aligned } else { block };
        let wanted = Nd::by(&[6 * aligned, 6], |i| {
            let (blocks, within) = (i[0] / (6 * channels), i[0] % (6 * channels));
            let (tap, channel) = (within / channels, blocks * channels + within % channels);
            let (group, c) = (channel / each, channel % each);
            if group != i[1] / (6 / groups) || group >= groups {
                return 0.0;
            }
            weight.at(&[i[1], c, tap / 3, 0, tap % 3])
        });
        let prepared = prepare_weights3d(&weight.f32(), groups, block, alignment).unwrap();
        same(&prepared, &wanted);
        let conv = Conv3d {
            batch: 1,
            input: [3, 2, 5],
            in_channels: each * groups,
            out_channels: 6,
            kernel: taps,
            stride: [1; 3],
            padding: [1, 0, 1],
            dilation: [1, 1, 2],
            groups,
            replicate: false,
            block,
        };
        let x = Nd::random(&[1, 3, 2, 5, each * groups], 9);
        let plain = conv3d(&x.f32(), &weight.f32(), None, &conv, DType::F32).unwrap();
        let found = conv3d(&x.f32(), &prepared, None, &conv, DType::F32).unwrap();
        assert_eq!((found.shape(), found.to_f32()), (plain.shape(), plain.to_f32()));
    }
}
