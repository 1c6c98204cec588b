//! The examples of the coprocessor, as a user runs them, against plain arithmetic.

use crate::common;
use common::{example, folder, read_npy, repository, run_text, tilework, write_npy};
use std::path::Path;
use tilework_dtype::convert::{bf16_from_f32, f32_from_bf16};

/// The value of a float32 in bfloat16.
fn bf16(x: f32) -> f32 {
    f32_from_bf16(bf16_from_f32(x))
}

/// The array `name` of an example as the chip gets it, in bfloat16.
fn input(example: &str, name: &str) -> (Vec<u64>, Vec<f32>) {
    let (shape, values) = read_npy::<f32>(&repository().join(format!("examples/{example}/{name}.npy")));
    (shape, values.into_iter().map(bf16).collect())
}

/// Runs an example with its arrays, and gives its output.
fn run(name: &str, inputs: &[&str], out: &Path, more: &[&str]) -> (Vec<u64>, Vec<f32>) {
    let mut args = vec!["run".to_owned(), example(name).display().to_string()];
    for input in inputs {
        let file = repository().join(format!("examples/{name}/{input}.npy"));
        args.extend(["--input".to_owned(), format!("{input}={}", file.display())]);
    }
    args.extend(["--out".to_owned(), out.display().to_string()]);
    args.extend(more.iter().map(|s| (*s).to_owned()));
    tilework(&args).code(0);
    read_npy::<f32>(&out.join("y.npy"))
}

/// Every element is within `absolute + relative x |expected|`.
#[track_caller]
fn close(found: &[f32], expected: &[f64], absolute: f64, relative: f64) {
    assert_eq!(found.len(), expected.len());
    for (i, (&y, &e)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(y) - e).abs();
        assert!(error <= absolute + relative * e.abs(), "element {i}: found {y}, expected {e}");
    }
}

/// Half a unit in the last place of a bfloat16, relative to it.
const HALF_ULP: f64 = 1.0 / 256.0;
/// The same for a sum, which the matrix unit first rounds to eleven bits.
const SUM_ULP: f64 = HALF_ULP + 1.0 / 2048.0;

#[test]
fn eltwise_adds_its_tiles_on_all_boards_with_both_dispatches() {
    let ((shape, a), (_, b)) = (input("eltwise", "a"), input("eltwise", "b"));
    let expected: Vec<f64> = a.iter().zip(&b).map(|(a, b)| f64::from(a + b)).collect();
    for board in ["p100", "p150", "p300"] {
        for dispatch in ["fast", "slow"] {
            let out = folder();
            let more = ["--board", board, "--dispatch", dispatch];
            let (found_shape, y) = run("eltwise", &["a", "b"], out.path(), &more);
            assert_eq!(found_shape, shape);
            close(&y, &expected, 0.0, SUM_ULP);
        }
    }
}

#[test]
fn matmul_multiplies_on_a_grid_of_cores() {
    let ((_, a), (_, b)) = (input("matmul", "a"), input("matmul", "b"));
    let (n, a, b) = (128, &a, &b);
    let product = |i: usize, j: usize| (0..n).map(move |k| f64::from(a[i * n + k]) * f64::from(b[k * n + j]));
    let out = folder();
    let (shape, y) = run("matmul", &["a", "b"], out.path(), &[]);
    assert_eq!(shape, [n as u64, n as u64]);
    for i in 0..n {
        for j in 0..n {
            // Sums of 16 products are cut to the width of the largest one.
            let (exact, size): (f64, f64) = product(i, j).fold((0.0, 0.0), |(s, t), p| (s + p, t + p.abs()));
            let error = (f64::from(y[i * n + j]) - exact).abs();
            assert!(
                error <= HALF_ULP * exact.abs() + size / 4096.0,
                "{i}, {j}: found {}, expected {exact}",
                y[i * n + j]
            );
        }
    }
}

#[test]
fn softmax_of_every_row() {
    let (shape, x) = input("softmax", "x");
    let out = folder();
    let (found_shape, y) = run("softmax", &["x", "ones"], out.path(), &[]);
    assert_eq!(found_shape, shape);
    let expected: Vec<f64> = x.chunks(96).flat_map(softmax).collect();
    // Exponentials, their sum, its reciprocal and the quotient are rounded, the sum is also cut.
    close(&y, &expected, 0.0, 6.0 * HALF_ULP);
}

/// The softmax of a row.
fn softmax(row: &[f32]) -> Vec<f64> {
    let max = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let exp: Vec<f64> = row.iter().map(|x| f64::from(x - max).exp()).collect();
    let sum: f64 = exp.iter().sum();
    exp.into_iter().map(|e| e / sum).collect()
}

#[test]
fn layernorm_of_every_row() {
    let ((_, x), (_, gamma), (_, beta)) =
        (input("layernorm", "x"), input("layernorm", "gamma"), input("layernorm", "beta"));
    let out = folder();
    let (shape, y) = run("layernorm", &["x", "scaler", "gamma", "beta"], out.path(), &[]);
    assert_eq!(shape, [96, 128]);
    let expected: Vec<f64> = x
        .chunks(128)
        .flat_map(|row| {
            let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / 128.0;
            let variance = row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / 128.0;
            let factor = 1.0 / (variance + 1e-5).sqrt();
            let affine = gamma.iter().zip(&beta);
            let row = row
                .iter()
                .zip(affine)
                .map(|(&x, (&g, &b))| (f64::from(x) - mean) * factor * f64::from(g) + f64::from(b));
            row.collect::<Vec<_>>()
        })
        .collect();
    // Mean, differences, factor and both products are rounded; all are below 8.
    close(&y, &expected, 8.0 * HALF_ULP, 2.0 * HALF_ULP);
}

#[test]
fn attention_of_every_head() {
    let [q, k, v] = ["q", "k", "v"].map(|name| input("attention", name).1);
    let out = folder();
    let (shape, y) = run("attention", &["q", "k", "v", "ones"], out.path(), &[]);
    assert_eq!(shape, [3, 64, 64]);
    let mut expected = Vec::new();
    for head in 0..3 {
        let part = |x: &[f32], row: usize| x[(head * 64 + row) * 64..][..64].to_vec();
        for i in 0..64 {
            let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
            let scores: Vec<f32> = (0..64).map(|j| dot(&part(&q, i), &part(&k, j)) / 8.0).collect();
            let weights = softmax(&scores);
            expected.extend((0..64).map(|d| (0..64).map(|j| weights[j] * f64::from(part(&v, j)[d])).sum::<f64>()));
        }
    }
    // Scores are rounded to steps of up to 1/32 before their exponentials are taken.
    close(&y, &expected, 4.0 * HALF_ULP, 4.0 * HALF_ULP);
}

#[test]
fn tilize_brings_rows_to_tiles_and_back() {
    let (shape, x) = input("tilize", "x");
    let out = folder();
    assert_eq!(run("tilize", &["x"], out.path(), &[]), (shape, x));
}

/// The tiles by themselves are what the command makes of the array.
#[test]
fn tilize_makes_the_tiles_that_the_host_makes() {
    let (shape, x) = input("tilize", "x");
    let text = std::fs::read_to_string(example("tilize")).unwrap();
    let text = text
        .replace("like = \"x\"", "dtype = \"bf16\"\nlayout = \"tile\"\nshape = [96, 128]")
        .replace("4, 1, 1, \"cb.x\", \"cb.tiles\"", "4, 1, 0, \"cb.x\", \"cb.tiles\"")
        .replace("\"y.page_size\", \"cb.y\"]", "\"y.page_size\", \"cb.tiles\"]");
    let folder = folder();
    let file = repository().join("examples/tilize/x.npy");
    run_text(folder.path(), &text, &["--input", &format!("x={}", file.display())]).code(0);
    assert_eq!(read_npy::<f32>(&folder.path().join("out/y.npy")), (shape, x));
}

/// Runs the kernel of the example `eltwise` on arrays of 64 x 64 with other arguments: operation,
/// broadcast, phases, function, its number; and with other types.
fn eltwise(args: [u32; 5], types: [&str; 3], a: &[f32], b: &[f32]) -> Vec<f32> {
    let [op, broadcast, phases, function, number] = args;
    let text = std::fs::read_to_string(example("eltwise")).unwrap();
    let geometry = |dtype: &str| format!("dtype = \"{dtype}\"\nlayout = \"tile\"\nshape = [64, 64]");
    let text = text
        .replacen("dtype = \"bf16\"\nlayout = \"tile\"\nshape = [128, 160] # 20 tiles", &geometry(types[0]), 1)
        .replacen("like = \"a\"", &geometry(types[1]), 1)
        .replacen("like = \"a\"", &geometry(types[2]), 1)
        .replace(
            "0, 0, 4, 0, 0, \"a.format\"",
            &format!("{op}, {broadcast}, {phases}, {function}, {number}, \"a.format\""),
        );
    // A copy has one operand only.
    let text = if op < 3 { text } else { text.replace("\"split.count(a.pages)\", 2,", "\"split.count(a.pages)\", 1,") };
    let folder = folder();
    let mut more = Vec::new();
    for (name, values) in [("a", a), ("b", b)] {
        let file = folder.path().join(format!("{name}.npy"));
        write_npy(&file, &[64, 64], values);
        more.extend(["--input".to_owned(), format!("{name}={}", file.display())]);
    }
    run_text(folder.path(), &text, &more.iter().map(String::as_str).collect::<Vec<_>>()).code(0);
    read_npy::<f32>(&folder.path().join("out/y.npy")).1
}

/// Values from `low` to `high` that bfloat16 has.
fn ramp(low: f32, high: f32) -> Vec<f32> {
    (0..64 * 64).map(|i| bf16(low + (high - low) * ((i * 37) % 4096) as f32 / 4095.0)).collect()
}

const BF16: [&str; 3] = ["bf16"; 3];

#[test]
fn functions_of_the_vector_unit() {
    type Function = fn(f64) -> f64;
    let cases: [(u32, f32, [f32; 2], Function); 5] = [
        (1, 0.0, [-20.0, 20.0], f64::exp),
        (2, 0.0, [0.01, 30.0], f64::recip),
        (3, 0.5, [0.01, 30.0], |x| 1.0 / (x + 0.5).sqrt()),
        (4, 0.0, [-3.0, 3.0], |x| x.max(0.0)),
        (5, -1.5, [-3.0, 3.0], |x| x * -1.5),
    ];
    for (function, number, [low, high], plain) in cases {
        let x = ramp(low, high);
        let expected: Vec<f64> = x.iter().map(|&x| plain(x.into())).collect();
        let y = eltwise([3, 0, 4, function, number.to_bits()], BF16, &x, &x);
        close(&y, &expected, 0.0, 1.01 * 2.0 * HALF_ULP);
        // With 32 bits only the function itself is rounded, and SrcA has a mantissa of ten bits.
        let y = eltwise([3, 0, 4, function, number.to_bits()], ["f32"; 3], &x, &x);
        close(&y, &expected, 1e-30, 1e-5);
    }
}

#[test]
fn an_exponential_ends_in_zero_and_in_infinity() {
    let x = ramp(-300.0, 300.0);
    let y = eltwise([3, 0, 4, 1, 0], ["f32"; 3], &x, &x);
    for (x, y) in x.into_iter().zip(y) {
        if x > 89.0 {
            assert_eq!(y, f32::INFINITY, "e^{x}");
        } else if x < -88.0 {
            assert!((0.0..1.3e-38).contains(&y), "e^{x} = {y}");
        }
    }
}

#[test]
fn operations_and_broadcasts() {
    let (a, b) = (ramp(-2.0, 2.0), ramp(1.0, 3.0));
    let plain: [fn(f64, f64) -> f64; 3] = [|a, b| a + b, |a, b| a - b, |a, b| a * b];
    for (op, plain) in (0u32..).zip(plain) {
        for broadcast in 0..4 {
            // Each tile by itself.
            let of_b = |i: usize| {
                let (row, column) = (i / 64, i % 64);
                let row = if broadcast >= 2 { row / 32 * 32 } else { row };
                let column = if broadcast % 2 == 1 { column / 32 * 32 } else { column };
                f64::from(b[row * 64 + column])
            };
            let expected: Vec<f64> = a.iter().enumerate().map(|(i, &a)| plain(a.into(), of_b(i))).collect();
            let y = eltwise([op, broadcast, 4, 0, 0], BF16, &a, &b);
            // Products are rounded in each of the four phases.
            close(&y, &expected, 1e-6, if op == 2 { 4.0 * HALF_ULP } else { SUM_ULP });
        }
    }
}

#[test]
fn tiles_are_transposed_each_by_itself() {
    let a = ramp(-2.0, 2.0);
    let y = eltwise([4, 0, 4, 0, 0], BF16, &a, &a);
    for (i, &y) in y.iter().enumerate() {
        let (row, column) = (i / 64, i % 64);
        assert_eq!(y, a[(row / 32 * 32 + column % 32) * 64 + column / 32 * 32 + row % 32], "{row}, {column}");
    }
}

#[test]
fn formats_of_operands_and_result_are_chosen_one_by_one() {
    // Five bits are enough for these, sums included, in every type.
    let a: Vec<f32> = (0..4096).map(|i| ((i * 7) % 16) as f32).collect();
    let b: Vec<f32> = (0..4096).map(|i| ((i * 5) % 16) as f32).collect();
    let sum: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    for first in ["bf16", "f32", "bfp8_b"] {
        for second in ["bf16", "f32", "bfp8_b"] {
            for result in ["bf16", "f32", "bfp8_b"] {
                let y = eltwise([0, 0, 4, 0, 0], [first, second, result], &a, &b);
                assert_eq!(y, sum, "{first} + {second} as {result}");
            }
        }
    }
}

#[test]
fn layouts_that_cannot_be_are_refused() {
    let folder = folder();
    let text = std::fs::read_to_string(example("eltwise")).unwrap();
    let check = |text: &str| {
        let file = folder.path().join("program.toml");
        std::fs::write(&file, text).unwrap();
        tilework(&["check", &file.display().to_string()]).code(2)
    };
    for (from, to, says) in [
        ("[128, 160]", "[128, 161]", "tiles are 32 x 32; the last two dimensions of (128, 161) are not multiples"),
        (
            "dtype = \"bf16\"",
            "dtype = \"i16\"",
            "there are no tiles of type i16; expected f32, bf16, bfp8_b, bfp4_b, i32, u32, u16, i8 or u8",
        ),
        ("layout = \"tile\"", "", "buffer \"a\" has no page_size; only tiles and shards have a usual one"),
        ("layout = \"tile\"", "layout = \"tile\"\npage_size = 1024", "a page of tiles is a tile, 2048"),
        ("layout = \"tile\"", "layout = \"column\"", "unknown variant `column`, expected `row` or `tile`"),
    ] {
        check(&text.replacen(from, to, 1)).says(says);
    }
    let block = text.replacen("dtype = \"bf16\"\nlayout = \"tile\"", "dtype = \"bfp8_b\"\npage_size = 64", 1);
    check(&block).says("elements of type bfp8_b share exponents; give layout = \"tile\"");
}

#[test]
fn check_compares_outputs_with_arrays() {
    let folder = folder();
    let ((shape, a), (_, b)) = (input("eltwise", "a"), input("eltwise", "b"));
    let mut sum: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a + b).collect();
    let check = |sum: &[f32], more: &[&str]| {
        write_npy(&folder.path().join("y.npy"), &shape, sum);
        let mut args = vec!["check".to_owned(), example("eltwise").display().to_string()];
        for name in ["a", "b"] {
            let file = repository().join(format!("examples/eltwise/{name}.npy"));
            args.extend(["--input".to_owned(), format!("{name}={}", file.display())]);
        }
        args.extend(["--expect".to_owned(), folder.path().display().to_string()]);
        args.extend(more.iter().map(|s| (*s).to_owned()));
        tilework(&args)
    };
    let ended = check(&sum, &[]).code(0);
    assert!(ended.stdout.starts_with("ok   y bf16: PCC 0.99999"), "{}", ended.stdout);
    check(&sum, &["--rtol", "0.0045"]).code(0);
    let ended = check(&sum, &["--atol", "0.0001"]).code(1);
    assert!(ended.stdout.starts_with("FAIL y bf16"), "{}", ended.stdout);
    sum[7] += 1.0;
    let ended = check(&sum, &["--rtol", "0.0045"]).code(1);
    assert!(ended.stdout.contains("1 of 20480 elements beyond tolerance, first at [0, 7]"), "{}", ended.stdout);
    let found = check(&sum, &["--rtol", "0.0045", "--report", "json"]).code(1).json();
    assert_eq!((&found["passed"], &found["outputs"][0]["mismatches"]), (&false.into(), &1.into()));
}

#[test]
fn two_runs_on_the_coprocessor_give_the_same_cycles_and_bytes() {
    for name in ["eltwise", "matmul"] {
        let report = |out: &Path| {
            let file = |input: &str| {
                format!("{input}={}", repository().join(format!("examples/{name}/{input}.npy")).display())
            };
            let args = ["run", &example(name).display().to_string(), "--input", &file("a"), "--input", &file("b")];
            let more = ["--out", &out.display().to_string(), "--report", "json"];
            tilework(&[&args[..], &more[..]].concat()).code(0).json()
        };
        let (first, second) = (folder(), folder());
        let (first, second) = (report(first.path()), report(second.path()));
        for key in ["cycles", "instructions", "noc_bytes"] {
            assert!(first[key].as_u64().is_some_and(|n| n > 0), "{key}");
            assert_eq!(first[key], second[key], "{name}: {key}");
        }
        assert_eq!(first["outputs"]["y"]["sha256"], second["outputs"]["y"]["sha256"], "{name}");
    }
}
