//! Pooling and upsampling.

use proptest::prelude::*;
use tilework_ops::{
    DType, Padding, Pool2d, UpsampleMode, Window, avg_pool2d, global_avg_pool2d, max_pool2d, max_pool2d_with_indices,
    upsample,
};

use crate::common::{Nd, close, floats, same, seeds};

fn pools() -> impl Strategy<Value = Pool2d> {
    (
        (1usize..3, 1usize..5),
        (2usize..9, 2usize..9),
        (1usize..4, 1usize..4),
        (1usize..4, 1usize..4),
        (0usize..2, 0usize..2),
        1usize..3,
        any::<bool>(),
    )
        .prop_map(|((batch, channels), input, kernel, stride, pads, dilation, ceil)| Pool2d {
            batch,
            input: [input.0, input.1],
            channels,
            window: Window {
                kernel: [kernel.0, kernel.1],
                stride: [stride.0, stride.1],
                padding: Padding {
                    top: pads.0.min(kernel.0 / 2),
                    bottom: pads.0.min(kernel.0 / 2),
                    left: pads.1.min(kernel.1 / 2),
                    right: pads.1.min(kernel.1 / 2),
                },
                dilation: [dilation; 2],
            },
            ceil,
        })
}

/// Length of the result by PyTorch's formula, in signed integers.
fn length(p: &Pool2d, i: usize) -> Option<usize> {
    let pad = [p.window.padding.top, p.window.padding.left][i] as i64;
    let (n, k, d, s) =
        (p.input[i] as i64, p.window.kernel[i] as i64, p.window.dilation[i] as i64, p.window.stride[i] as i64);
    let room = n + 2 * pad - d * (k - 1) - 1;
    if room < 0 {
        return None;
    }
    let mut count = if p.ceil { (room + s - 1) / s } else { room / s } + 1;
    if p.ceil && (count - 1) * s >= n + pad {
        count -= 1;
    }
    Some(count as usize)
}

/// For an output position: the taps that fall on the image, and how many fall on image or padding.
fn taps(p: &Pool2d, i: &[usize]) -> (Vec<(usize, usize)>, usize) {
    let pad = [p.window.padding.top, p.window.padding.left];
    let (mut on, mut counted) = (vec![], 0);
    for t in crate::common::indices(&p.window.kernel) {
        let at: Vec<isize> = (0..2)
            .map(|k| (i[k + 1] * p.window.stride[k] + t[k] * p.window.dilation[k]) as isize - pad[k] as isize)
            .collect();
        if (0..2).all(|k| at[k] < (p.input[k] + pad[k]) as isize) {
            counted += 1;
        }
        if (0..2).all(|k| (0..p.input[k] as isize).contains(&at[k])) {
            on.push((at[0] as usize, at[1] as usize));
        }
    }
    (on, counted)
}

proptest! {
    #[test]
    fn windows(p in pools(), seed in seeds()) {
        let x = Nd::random(&[p.batch, p.input[0], p.input[1], p.channels], seed);
        let input = Nd::new(&[1, 1, p.batch * p.input[0] * p.input[1], p.channels], x.values.clone()).f32();
        let (Some(h), Some(w)) = (length(&p, 0), length(&p, 1)) else {
            prop_assert!(max_pool2d(&input, &p, DType::F32).is_err());
            return Ok(());
        };
        let dims = [p.batch, h, w, p.channels];
        let flat = |x: Nd| Nd::new(&[1, 1, p.batch * h * w, p.channels], x.values);
        let values = |i: &[usize]| taps(&p, i).0.into_iter().map(|(r, c)| x.at(&[i[0], r, c, i[3]])).collect::<Vec<_>>();
        let largest = flat(Nd::by(&dims, |i| values(i).into_iter().fold(f64::NEG_INFINITY, f64::max)));
        same(&max_pool2d(&input, &p, DType::F32).unwrap(), &largest);
        let (again, index) = max_pool2d_with_indices(&input, &p, DType::F32, DType::U32).unwrap();
        same(&again, &largest);
        let first = flat(Nd::by(&dims, |i| {
            let values = values(i);
            let best = values.iter().enumerate().fold(0, |b, (k, v)| if *v > values[b] { k } else { b });
            let (r, c) = taps(&p, i).0.get(best).copied().unwrap_or((0, 0));
            (r * p.input[1] + c) as f64
        }));
        same(&index, &first);
        for count_padding in [false, true] {
            let mean = flat(Nd::by(&dims, |i| {
                let (on, counted) = taps(&p, i);
                values(i).iter().sum::<f64>() / if count_padding { counted } else { on.len() } as f64
            }));
            close(&avg_pool2d(&input, &p, count_padding, DType::F32).unwrap(), &mean, 1e-6);
        }
    }

    #[test]
    fn enlarging(n in 1usize..3, h in 1usize..5, w in 1usize..5, c in 1usize..4, scale in (1usize..4, 1usize..4), seed in seeds()) {
        let x = Nd::random(&[n, h, w, c], seed);
        let dims = [n, h * scale.0, w * scale.1, c];
        let wanted = Nd::by(&dims, |i| x.at(&[i[0], i[1] / scale.0, i[2] / scale.1, i[3]]));
        same(&upsample(&x.tensor(DType::BF16), [scale.0, scale.1], UpsampleMode::Nearest, DType::BF16).unwrap(), &wanted);
        // Bilinear: the weight of each input element is a tent around its centre, the
        // edges extended.
        let wanted = Nd::by(&dims, |i| {
            let at = |k: usize, s: usize, n: usize| ((i[k] as f64 + 0.5) / s as f64 - 0.5).clamp(0.0, n as f64 - 1.0);
            let (y, x_) = (at(1, scale.0, h), at(2, scale.1, w));
            let mut sum = 0.0;
            for r in 0..h {
                for q in 0..w {
                    let tent = |d: f64| (1.0 - d.abs()).max(0.0);
                    sum += tent(y - r as f64) * tent(x_ - q as f64) * x.at(&[i[0], r, q, i[3]]);
                }
            }
            sum
        });
        close(&upsample(&x.f32(), [scale.0, scale.1], UpsampleMode::Bilinear, DType::F32).unwrap(), &wanted, 1e-5);
    }
}

#[test]
fn whole_images() {
    let x = Nd::random(&[2, 3, 5, 4], 9);
    let wanted = Nd::by(&[2, 1, 1, 4], |i| (0..15).map(|k| x.at(&[i[0], k / 5, k % 5, i[3]])).sum::<f64>() / 15.0);
    close(&global_avg_pool2d(&x.f32(), DType::F32).unwrap(), &wanted, 1e-6);
    assert!(global_avg_pool2d(&floats(&[2], &[0.0; 2]), DType::F32).is_err());
}

#[test]
fn nans_win_windows() {
    let x = floats(&[1, 1, 4, 1], &[1.0, f32::NAN, f32::INFINITY, 0.0]);
    let window = Window { kernel: [2, 2], stride: [1, 1], padding: Padding::default(), dilation: [1, 1] };
    let pool = Pool2d { batch: 1, input: [2, 2], channels: 1, window, ceil: false };
    let (values, index) = max_pool2d_with_indices(&x, &pool, DType::F32, DType::I32).unwrap();
    assert!(values.to_f32()[0].is_nan());
    assert_eq!(index.to_i64(), [1]);
    assert!(max_pool2d(&x, &Pool2d { channels: 3, ..pool }, DType::F32).is_err());
    assert!(max_pool2d(&x, &Pool2d { batch: usize::MAX, ..pool }, DType::F32).is_err());
}
