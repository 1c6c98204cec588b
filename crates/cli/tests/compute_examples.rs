//! The examples of the coprocessor, as a user runs them, against plain arithmetic.

mod common;

use common::{example, folder, read_npy, repository, tilework};
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
            close(&y, &expected, 0.0, HALF_ULP);
        }
    }
}

#[test]
fn matmul_multiplies_on_a_grid_of_cores() {
    let ((_, a), (_, b)) = (input("matmul", "a"), input("matmul", "b"));
    let n = 128;
    let product = |i: usize, j: usize| (0..n).map(|k| f64::from(a[i * n + k]) * f64::from(b[k * n + j]));
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
