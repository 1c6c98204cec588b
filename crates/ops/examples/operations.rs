//! Times operations on float32 tensors: for each a line of JSON with the median seconds.
//! `cargo xtask bench models` starts it, and compares with JAX
//! (`tests/python/jax_operations.py` has the same operations and sizes).

use std::time::Instant;

use tilework_ops::{
    Affine, Attention, Conv2d, Conv3d, DType, OpError, Padding, Pool2d, RmsFused, Shape, Tensor, Window, attention,
    avg_pool2d, conv_transpose2d, conv2d, conv3d, layer_norm, max_pool2d, rms_norm, softmax,
};

/// What the `tilework` command has.
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Number of measurements; the median is reported.
const RUNS: usize = 21;

type Made = Result<Tensor, OpError>;
/// An operation with its operands.
type Work = Box<dyn FnMut() -> Made>;

fn main() {
    let rows: [(&str, &dyn Fn() -> Work); 15] = [
        ("conv 1x1", &|| image(56, [256, 64], 1, 1, 1)),
        ("conv 3x3", &|| image(56, [128, 128], 3, 1, 1)),
        ("conv 3x3, 112 x 112", &|| image(112, [64, 64], 3, 1, 1)),
        ("conv 3x3, stride 2", &|| image(56, [128, 256], 3, 2, 1)),
        ("conv 7x7, stride 2", &|| image(224, [3, 64], 7, 2, 1)),
        ("conv 3x3, depthwise", &|| image(56, [256, 256], 3, 1, 256)),
        ("conv 3x3, 32 groups", &|| image(56, [128, 128], 3, 1, 32)),
        ("conv 2x2, transposed", &transposed),
        ("conv 3x3x3", &volume),
        ("max_pool 3x3", &|| pool(true)),
        ("avg_pool 3x3", &|| pool(false)),
        ("layer_norm", &|| of_rows(|x| layer_norm(x, Affine::default(), 1e-5, DType::F32))),
        ("rms_norm", &|| of_rows(|x| rms_norm(x, Affine::default(), 1e-5, RmsFused::default(), DType::F32))),
        ("softmax", &|| of_rows(|x| softmax(x, -1, DType::F32))),
        ("attention", &attended),
    ];
    for (name, prepare) in rows {
        match median(prepare()) {
            Ok(seconds) => println!("{{\"name\": \"{name}\", \"seconds\": {seconds:e}}}"),
            Err(error) => {
                eprintln!("{name}: {error}");
                std::process::exit(1);
            }
        }
    }
}

fn median(mut work: impl FnMut() -> Made) -> Result<f64, OpError> {
    work()?;
    let mut seconds = Vec::new();
    for _ in 0..RUNS {
        let start = Instant::now();
        work()?;
        seconds.push(start.elapsed().as_secs_f64());
    }
    seconds.sort_by(f64::total_cmp);
    Ok(seconds[RUNS / 2])
}

/// Numbers between -0.5 and 0.5.
fn tensor(dims: &[usize]) -> Tensor {
    let mut state = dims.len() as u32;
    let count = dims.iter().product();
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    let values: Vec<f32> = (0..count).map(|_| next()).collect();
    let shape = Shape::new(dims.to_vec()).expect("a shape of the table above");
    Tensor::new(shape, values).expect("as many values as the shape has")
}

fn window(kernel: usize, stride: usize, pad: usize) -> Window {
    Window {
        kernel: [kernel; 2],
        stride: [stride; 2],
        padding: Padding { top: pad, bottom: pad, left: pad, right: pad },
        dilation: [1; 2],
    }
}

fn image(side: usize, [i, o]: [usize; 2], kernel: usize, stride: usize, groups: usize) -> Work {
    let (x, w) = (tensor(&[1, 1, side * side, i]), tensor(&[o, i / groups, kernel, kernel]));
    let conv = Conv2d {
        batch: 1,
        input: [side; 2],
        in_channels: i,
        out_channels: o,
        window: window(kernel, stride, kernel / 2),
        groups,
        activation: None,
    };
    Box::new(move || conv2d(&x, &w, None, &conv, DType::F32))
}

fn transposed() -> Work {
    let (x, w) = (tensor(&[1, 1, 28 * 28, 256]), tensor(&[256, 128, 2, 2]));
    let conv = Conv2d {
        batch: 1,
        input: [28; 2],
        in_channels: 256,
        out_channels: 128,
        window: window(2, 2, 0),
        groups: 1,
        activation: None,
    };
    Box::new(move || conv_transpose2d(&x, &w, None, &conv, [0; 2], DType::F32))
}

fn volume() -> Work {
    let (x, w) = (tensor(&[1, 16, 28, 28, 32]), tensor(&[64, 32, 3, 3, 3]));
    let conv = Conv3d {
        batch: 1,
        input: [16, 28, 28],
        in_channels: 32,
        out_channels: 64,
        kernel: [3; 3],
        stride: [1; 3],
        padding: [1; 3],
        dilation: [1; 3],
        groups: 1,
        replicate: false,
        block: 0,
    };
    Box::new(move || conv3d(&x, &w, None, &conv, DType::F32))
}

fn pool(largest: bool) -> Work {
    let x = tensor(&[1, 1, 112 * 112, 64]);
    let pool = Pool2d { batch: 1, input: [112; 2], channels: 64, window: window(3, 2, 1), ceil: false };
    Box::new(move || match largest {
        true => max_pool2d(&x, &pool, DType::F32),
        false => avg_pool2d(&x, &pool, true, DType::F32),
    })
}

fn of_rows(f: impl Fn(&Tensor) -> Made + 'static) -> Work {
    let x = tensor(&[1024, 1024]);
    Box::new(move || f(&x))
}

fn attended() -> Work {
    let [q, k, v] = [tensor(&[1, 8, 512, 64]), tensor(&[1, 8, 512, 64]), tensor(&[1, 8, 512, 64])];
    Box::new(move || attention(&q, &k, &v, Attention { causal: true, ..Attention::default() }, DType::F32))
}
