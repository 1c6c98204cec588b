//! The vector unit's functions, reductions and the large matrix product of the library of compute
//! kernels, from arrays to arrays, against plain arithmetic.

use crate::common;
use crate::functions;
use crate::product;
use common::{example, folder, read_npy, repository, run_text, tilework, write_npy};
use functions::{program, run};
use std::f32::consts::{FRAC_PI_2, FRAC_PI_4};
use std::path::Path;

/// A value of bfloat16 by its bits.
fn bf16(bits: u32) -> f32 {
    f32::from_bits(bits << 16)
}

/// A function: its number and its numbers, the value, the range of arguments, and by how much
/// results may be off: in units, and relative to the value.
type Function = (u32, [f32; 2], fn(f64) -> f64, [f32; 2], [f64; 2]);

/// The error function: its series, or beyond 2.5 by what it lacks to one.
fn erf(x: f64) -> f64 {
    if x.abs() >= 2.5 {
        return 1.0 - erfc(x);
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..60 {
        let n = f64::from(n);
        term *= -x * x / n;
        sum += term / (2.0 * n + 1.0);
    }
    2.0 / std::f64::consts::PI.sqrt() * sum
}

/// What the error function lacks to one; beyond 2.5 its continued fraction.
fn erfc(x: f64) -> f64 {
    if x < 0.0 {
        return 2.0 - erfc(-x);
    }
    if x < 2.5 {
        return 1.0 - erf(x);
    }
    let fraction = (1..100).rev().fold(0.0, |f, n| f64::from(n) / 2.0 / (x + f));
    (-x * x).exp() / std::f64::consts::PI.sqrt() / (x + fraction)
}

fn sigmoid(x: f64) -> f64 {
    if x < 0.0 { x.exp() / (1.0 + x.exp()) } else { 1.0 / (1.0 + (-x).exp()) }
}

fn gelu_tanh(x: f64) -> f64 {
    x * sigmoid(2.0 * (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x * x * x))
}

fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn if_holds(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

const ALL: [f32; 2] = [-3e38, 3e38];
/// Two to the power of -`n`.
const fn bits(n: u32) -> f64 {
    1.0 / (1u64 << n) as f64
}

/// What the doc comments of `Unary` say.
const FUNCTIONS: [Function; 52] = [
    (0, [0.0; 2], f64::exp, [-87.0, 88.5], [0.0, bits(19)]),
    (1, [0.0; 2], f64::exp2, [-125.9, 127.9], [0.0, bits(22)]),
    (2, [0.0; 2], f64::exp_m1, [-87.0, 88.5], [3e-38, bits(19)]),
    (3, [0.0; 2], sigmoid, [-72.0, 3e38], [0.0, bits(19)]),
    (3, [0.0; 2], sigmoid, [-87.0, 3e38], [0.0, bits(7)]),
    (4, [0.0; 2], |x| x * sigmoid(x), [-72.0, 3e38], [0.0, bits(19)]),
    (5, [0.0; 2], |x| x * erfc(-x / 2f64.sqrt()) / 2.0, [-3e38, 3e38], [6.1e-6, bits(22)]),
    (5, [0.0; 2], |x| x * erfc(-x / 2f64.sqrt()) / 2.0, [-4.0, 3e38], [0.0, 5.6e-4]),
    (6, [0.0; 2], gelu_tanh, [-6.0, 1e12], [0.0, bits(18)]),
    (6, [0.0; 2], gelu_tanh, [-1e12, 1e12], [4.6e-7, bits(22)]),
    (7, [0.0; 2], f64::tanh, ALL, [3e-38, bits(20)]),
    (8, [0.5, 0.0], |x| if x < 0.0 { 0.5 * x.exp_m1() } else { x }, ALL, [3e-38, bits(20)]),
    (9, [0.0; 2], |x| 1.0 / x, [-2e31, 2e31], [0.0, bits(22)]),
    (9, [0.0; 2], |x| 1.0 / x, [-8e37, 8e37], [0.0, bits(7)]),
    (10, [0.5, 0.0], |x| 1.0 / (x + 0.5).sqrt(), [0.0, 3e38], [0.0, bits(22)]),
    (11, [0.0; 2], f64::sqrt, [0.0, 3e38], [0.0, bits(22)]),
    (12, [0.0; 2], f64::ln, [0.0, 3e38], [0.0, bits(20)]),
    // The power is an integer, whose bits are those of a tiny number.
    (13, [f32::from_bits(5), 0.0], |x| x.powi(5), [-5e7, 5e7], [3e-38, bits(22)]),
    (14, [0.0; 2], f64::sin, [-1e4, 1e4], [0.0, bits(23)]),
    (15, [0.0; 2], f64::cos, [-1e4, 1e4], [0.0, bits(22)]),
    (16, [0.0; 2], |x| x * x, [-1e19, 1e19], [2e-38, 0.0]),
    (17, [0.0; 2], |x| x.max(0.0), ALL, [0.0, 0.0]),
    (18, [0.125, 0.0], |x| if x < 0.0 { x / 8.0 } else { x }, ALL, [2e-38, 0.0]),
    (19, [-1.5, 2.75], |x| x.clamp(-1.5, 2.75), ALL, [0.0, 0.0]),
    (20, [-1.5, 0.0], |x| x * -1.5, [-2e38, 2e38], [0.0, 0.0]),
    (21, [0.75, 0.0], |x| x + 0.75, ALL, [0.0, bits(24)]),
    (22, [0.0; 2], f64::abs, ALL, [0.0, 0.0]),
    (23, [0.0; 2], |x| -x, ALL, [0.0, 0.0]),
    (24, [0.0; 2], f64::signum, ALL, [0.0, 0.0]),
    (25, [0.0; 2], f64::round_ties_even, ALL, [0.0, 0.0]),
    (26, [0.0; 2], f64::floor, ALL, [0.0, 0.0]),
    (27, [0.0; 2], f64::ceil, ALL, [0.0, 0.0]),
    (28, [0.0; 2], f64::trunc, ALL, [0.0, 0.0]),
    (30, [0.0; 2], |_| 1.0, ALL, [0.0, 0.0]),
    (31, [0.0; 2], |x| if_holds(x < 0.0), ALL, [0.0, 0.0]),
    (32, [0.0; 2], |x| if_holds(x > 0.0), ALL, [0.0, 0.0]),
    (33, [0.0; 2], |x| if_holds(x < 0.0), ALL, [0.0, 0.0]),
    (34, [0.0; 2], |x| if_holds(x > 0.0), ALL, [0.0, 0.0]),
    (44, [0.0; 2], f64::ln_1p, [-0.9999, 3e38], [0.0, bits(20)]),
    (45, [0.0; 2], f64::log2, [0.0, 3e38], [0.0, bits(20)]),
    (46, [0.0; 2], f64::log10, [0.0, 3e38], [0.0, bits(20)]),
    (47, [0.0; 2], softplus, ALL, [2e-38, bits(18)]),
    (52, [0.0; 2], erf, ALL, [0.0, bits(22)]),
    (53, [0.0; 2], erfc, ALL, [2e-38, bits(17)]),
    (54, [0.0; 2], f64::tan, [-1e4, 1e4], [0.0, bits(21)]),
    (55, [0.0; 2], f64::atan, ALL, [0.0, bits(22)]),
    (56, [0.0; 2], f64::asin, [-1.0, 1.0], [0.0, bits(21)]),
    (57, [0.0; 2], f64::acos, [-1.0, 1.0], [1e-9, bits(21)]),
    (58, [0.0; 2], f64::sinh, [-88.7, 88.7], [0.0, bits(19)]),
    (59, [0.0; 2], f64::cosh, [-88.7, 88.7], [0.0, bits(19)]),
    (60, [0.0; 2], f64::cbrt, ALL, [0.0, bits(21)]),
    (61, [0.0; 2], |x| x, ALL, [0.0, 0.0]),
];
/// The first of them that are held to the same for all of f32.
const FIRST_OF_F32: usize = 38;

/// All bfloat16 numbers, by their bits.
fn all_numbers() -> Vec<f32> {
    (0..1 << 16).map(bf16).collect()
}

#[test]
fn functions_are_as_exact_as_they_say_for_all_bfloat16() {
    let x = all_numbers();
    for (function, numbers, plain, [low, high], [absolute, relative]) in FUNCTIONS {
        let text = program(function, numbers.map(f32::to_bits), ["bf16", "f32"], 1, 256);
        let found: Vec<f32> = run(&text, &[256, 256], &[&x]);
        for (&x, y) in x.iter().zip(found).filter(|(x, _)| x.is_normal() && (low..=high).contains(x)) {
            let (expected, y) = (plain(x.into()), f64::from(y));
            // Results that are not normal are zero.
            let tiny = expected.abs() < f32::MIN_POSITIVE.into() && y == 0.0;
            let error = (y - expected).abs();
            assert!(
                tiny || error <= absolute + relative * expected.abs(),
                "function {function} of {x:e}: found {y:e}, expected {expected:e}"
            );
        }
    }
}

#[test]
fn functions_are_as_exact_for_numbers_of_f32() {
    for (function, numbers, plain, [low, high], [absolute, relative]) in &FUNCTIONS[FIRST_OF_F32..] {
        // Of all sizes, and spread over what the range has between -100 and 100.
        let [sizes, _] = operands();
        let (from, to) = (low.max(-100.0), high.min(100.0));
        let spread = (0..sizes.len()).map(|i| from + (to - from) * (i as f32 + 0.37) / sizes.len() as f32);
        let x: Vec<f32> = sizes.iter().copied().chain(spread).chain(sizes.iter().map(|x| x * 1e-6)).collect();
        let x: Vec<f32> = x.into_iter().cycle().take(1 << 16).collect();
        let text = program(*function, numbers.map(f32::to_bits), ["f32", "f32"], 1, 256);
        let found: Vec<f32> = run(&text, &[256, 256], &[&x]);
        for (&x, y) in x.iter().zip(found).filter(|(x, _)| x.is_normal() && (low..=high).contains(x)) {
            let (expected, y) = (plain(x.into()), f64::from(y));
            let tiny = expected.abs() < f32::MIN_POSITIVE.into() && y == 0.0;
            let error = (y - expected).abs();
            assert!(
                tiny || error <= absolute + relative * expected.abs(),
                "function {function} of {x:e}: found {y:e}, expected {expected:e}"
            );
        }
    }
}

#[test]
fn functions_of_zero_infinity_and_what_is_outside() {
    const INF: f32 = f32::INFINITY;
    const NAN: f32 = f32::NAN;
    let x = all_numbers();
    // Of 0, infinity, minus infinity, -1, and 100.
    let cases: [(u32, [f32; 5]); 19] = [
        (0, [1.0, INF, 0.0, 0.367_879_48, INF]),
        (2, [0.0, INF, -1.0, -0.632_120_55, INF]),
        (3, [0.5, 1.0, 0.0, 0.268_941_4, 1.0]),
        (4, [0.0, INF, NAN, -0.268_941_4, 100.0]),
        (7, [0.0, 1.0, -1.0, -0.761_594_24, 1.0]),
        (9, [INF, 0.0, 0.0, -1.0, 0.01]),
        (11, [0.0, INF, NAN, NAN, 10.0]),
        (12, [-INF, INF, NAN, NAN, 4.605_170_4]),
        (24, [0.0, 1.0, -1.0, -1.0, 1.0]),
        (26, [0.0, INF, -INF, -1.0, 100.0]),
        (29, [1.0, 0.0, 0.0, 0.0, 0.0]),
        (34, [1.0, 1.0, 0.0, 0.0, 1.0]),
        (44, [0.0, INF, NAN, -INF, 4.615_120_5]),
        (47, [std::f32::consts::LN_2, INF, 0.0, 0.313_261_7, 100.0]),
        (52, [0.0, 1.0, -1.0, -0.842_700_8, 1.0]),
        (53, [1.0, 0.0, 2.0, 1.842_700_8, 0.0]),
        (55, [0.0, FRAC_PI_2, -FRAC_PI_2, -FRAC_PI_4, 1.560_796_7]),
        (56, [0.0, NAN, NAN, -FRAC_PI_2, NAN]),
        (60, [0.0, INF, -INF, -1.0, 4.641_589]),
    ];
    for (function, expected) in cases {
        let text = program(function, [0; 2], ["bf16", "f32"], 1, 256);
        let found: Vec<f32> = run(&text, &[256, 256], &[&x]);
        for (x, expected) in [0x0000, 0x7F80, 0xFF80, 0xBF80, 0x42C8].into_iter().zip(expected) {
            let y = found[x];
            let same = y == expected || y.is_nan() && expected.is_nan();
            assert!(same || (y - expected).abs() < 1e-6, "function {function} of {x:x}: {y}, expected {expected}");
        }
    }
}

/// A function of two operands.
type OfTwo<T> = fn(T, T) -> T;

/// Numbers of f32 of many sizes, some equal, some zero.
fn operands() -> [Vec<f32>; 2] {
    let mut state = 1u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state
    };
    let mut number = || f32::from_bits(next() & 0x807F_FFFF | (107 + next() % 40) << 23);
    let a: Vec<f32> = (0..1 << 14).map(|_| number()).collect();
    let mut b: Vec<f32> = (0..1 << 14).map(|_| number()).collect();
    for i in (0..b.len()).step_by(7) {
        b[i] = a[i];
    }
    let zeros = [(0.0, -0.0), (-0.0, 0.0), (-0.0, 1.0), (0.0, -1.0), (1.0, -0.0), (2.0, 0.0)];
    let mut a = a;
    for (i, (x, y)) in zeros.into_iter().enumerate() {
        (a[i], b[i]) = (x, y);
    }
    [a, b]
}

#[test]
fn functions_of_two_operands_take_all_bits_of_f32() {
    let [a, b] = operands();
    let exact: [(u32, OfTwo<f32>); 11] = [
        (64, |a, b| a + b),
        (65, |a, b| a - b),
        (66, |a, b| a * b),
        (68, f32::min),
        (69, f32::max),
        (70, |a, b| if_holds(a == b) as f32),
        (71, |a, b| if_holds(a != b) as f32),
        (72, |a, b| if_holds(a < b) as f32),
        (73, |a, b| if_holds(a <= b) as f32),
        (74, |a, b| if_holds(a > b) as f32),
        (75, |a, b| if_holds(a >= b) as f32),
    ];
    for (function, plain) in exact {
        let found: Vec<f32> = run(&program(function, [0; 2], ["f32", "f32"], 2, 128), &[128, 128], &[&a, &b]);
        for i in 0..a.len() {
            assert_eq!(found[i], plain(a[i], b[i]), "{function}: {} and {}", a[i], b[i]);
        }
    }
    let found: Vec<f32> = run(&program(67, [0; 2], ["f32", "f32"], 2, 128), &[128, 128], &[&a, &b]);
    for i in (0..a.len()).filter(|&i| b[i] != 0.0) {
        let expected = f64::from(a[i]) / f64::from(b[i]);
        assert!((f64::from(found[i]) - expected).abs() <= bits(22) * expected.abs(), "{} / {}", a[i], b[i]);
    }
    assert_eq!(found[5], f32::INFINITY, "2 / 0");
    let c: Vec<f32> = a.iter().map(|a| a.max(0.0)).collect();
    let found: Vec<f32> = run(&program(96, [0; 2], ["f32", "f32"], 3, 128), &[128, 128], &[&c, &a, &b]);
    for i in 0..a.len() {
        assert_eq!(found[i].to_bits(), if c[i] == 0.0 { b[i] } else { a[i] }.to_bits(), "{i}");
    }
}

#[test]
fn powers_remainders_and_logic_of_two_operands() {
    let (first, second) = operands().into();
    // Powers of 1/16 to 16, and integer powers of negative numbers.
    let base = |(i, x): (usize, &f32)| if i % 3 == 0 { -(x.abs() % 16.0) } else { x.abs() % 16.0 + 0.0625 };
    let a: Vec<f32> = first.iter().enumerate().map(base).collect();
    let exponent = |(i, x): (usize, &f32)| if i % 3 == 0 { (x % 9.0).round() } else { x % 16.0 };
    let b: Vec<f32> = second.iter().enumerate().map(exponent).collect();
    let found: Vec<f32> = run(&program(101, [0; 2], ["f32", "f32"], 2, 128), &[128, 128], &[&a, &b]);
    for i in 0..a.len() {
        let (expected, y) = (f64::from(a[i]).powf(b[i].into()), f64::from(found[i]));
        let (large, tiny) = (expected.abs() > f32::MAX.into(), expected.abs() < f32::MIN_POSITIVE.into());
        let right = (y - expected).abs() <= bits(18) * expected.abs();
        assert!(right || large && y.is_infinite() || tiny && y == 0.0, "{} ^ {}: {y}, not {expected}", a[i], b[i]);
    }

    let divisor = |x: &f32| if *x == 0.0 { 0.75 } else { *x };
    let b: Vec<f32> = second.iter().map(divisor).collect();
    let remainders: [(u32, OfTwo<f64>); 2] = [(102, |a, b| a % b), (103, |a, b| a - (a / b).floor() * b)];
    for (function, plain) in remainders {
        let found: Vec<f32> = run(&program(function, [0; 2], ["f32", "f32"], 2, 128), &[128, 128], &[&first, &b]);
        for i in (0..b.len()).filter(|&i| (first[i] / b[i]).abs() < 4096.0) {
            let expected = plain(first[i].into(), b[i].into());
            let error = (f64::from(found[i]) - expected).abs();
            // The quotient is rounded to 53 bits, the sum with the divisor to 24.
            let most = if function == 102 { 0.0 } else { bits(23) * f64::from(b[i]).abs() };
            assert!(error <= most, "{function}: {} and {}: {}, not {expected}", first[i], b[i], found[i]);
        }
    }

    let logic: [(u32, OfTwo<bool>); 3] = [(104, |a, b| a && b), (105, |a, b| a || b), (106, |a, b| a != b)];
    let some = |x: &[f32], by: usize| -> Vec<f32> {
        x.iter().enumerate().map(|(i, x)| if i % by == 0 { -0.0 } else { *x }).collect()
    };
    let [a, b] = [some(&first, 2), some(&second, 3)];
    for (function, plain) in logic {
        let found: Vec<f32> = run(&program(function, [0; 2], ["f32", "f32"], 2, 128), &[128, 128], &[&a, &b]);
        for i in 0..a.len() {
            let expected = if_holds(plain(a[i] != 0.0, b[i] != 0.0)) as f32;
            assert_eq!(found[i], expected, "{function}: {} and {}", a[i], b[i]);
        }
    }
}

#[test]
fn integers_of_32_bits_are_added_multiplied_and_converted() {
    let [a, b] = operands().map(|x| x.iter().map(|x| x.to_bits().cast_signed()).collect::<Vec<i32>>());
    let mut a = a;
    a[..6].copy_from_slice(&[0, -1, 1, i32::MIN, i32::MAX, 16_777_217]);
    let plain: [(u32, OfTwo<i32>); 3] = [(76, i32::wrapping_add), (77, i32::wrapping_sub), (78, i32::wrapping_mul)];
    for (function, plain) in plain {
        let found: Vec<i32> = run(&program(function, [0; 2], ["i32", "i32"], 2, 128), &[128, 128], &[&a, &b]);
        for i in 0..a.len() {
            assert_eq!(found[i], plain(a[i], b[i]), "{function}: {} and {}", a[i], b[i]);
        }
    }
    let found: Vec<f32> = run(&program(35, [0; 2], ["i32", "f32"], 1, 128), &[128, 128], &[&a]);
    (0..a.len()).for_each(|i| assert_eq!(found[i], a[i] as f32, "{}", a[i]));

    let [x, _] = operands();
    let mut x: Vec<f32> = x.iter().map(|x| x * 4096.0).collect();
    x[..8].copy_from_slice(&[0.99, -0.99, 3e38, -3e38, 2_147_483_648.0, -2_147_483_648.0, -0.0, 8_388_607.5]);
    let found: Vec<i32> = run(&program(35, [0; 2], ["f32", "i32"], 1, 128), &[128, 128], &[&x]);
    (0..x.len()).for_each(|i| assert_eq!(found[i], x[i] as i32, "{}", x[i]));
}

/// Runs the kernel of the example `reduce`: operation, and along what.
fn reduce(operation: u32, along: u32, x: &[f32]) -> Vec<f32> {
    let text = std::fs::read_to_string(example("reduce")).unwrap();
    let text = text.replace("args = [1, 4, 2, 1,", &format!("args = [1, 4, {operation}, {along},"));
    let folder = folder();
    let file = folder.path().join("x.npy");
    write_npy(&file, &[3, 128, 32], x);
    let input = |name: &str, file: &Path| format!("{name}={}", file.display());
    let more =
        ["--input", &input("x", &file), "--input", &input("ones", &repository().join("examples/reduce/ones.npy"))];
    run_text(folder.path(), &text, &more).code(0);
    read_npy(&folder.path().join("out/y.npy")).1
}

#[test]
fn tiles_are_reduced_along_rows_columns_and_both() {
    // Few bits, so that sums of columns are exact to the bfloat16 of the result.
    let x: Vec<f32> = (0..3 * 128 * 32u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as f32 / 16.0 - 8.0).collect();
    for operation in 0..3 {
        for along in 0..3 {
            let y = reduce(operation, along, &x);
            let pool = |values: &mut dyn Iterator<Item = f32>| match operation {
                0 => values.sum::<f32>(),
                1 => values.fold(f32::NEG_INFINITY, f32::max),
                _ => values.fold(f32::INFINITY, f32::min),
            };
            let check = |at: usize, expected: f32, size: f32| {
                // What is moved to SrcB or SrcA on the way is cut to bfloat16.
                let most = if operation == 0 { size / 128.0 } else { 0.0 };
                let error = (y[at] - expected).abs();
                assert!(error <= most, "{operation}, {along}, {at}: {}, expected {expected}", y[at]);
            };
            for (matrix, x) in x.chunks(128 * 32).enumerate() {
                let y = matrix * 32 * 32;
                match along {
                    0 => (0..32).for_each(|row| {
                        // The rows of the four tiles.
                        let of_row = || (0..128).filter(|i| i % 32 == row).flat_map(|i| x[i * 32..][..32].to_vec());
                        check(y + row * 32, pool(&mut of_row()), of_row().map(f32::abs).sum());
                    }),
                    1 => (0..32).for_each(|column| {
                        let mut of_column = (0..128).map(|i| x[i * 32 + column]);
                        let expected = pool(&mut of_column);
                        check(y + column, expected, expected.abs());
                    }),
                    _ => check(y, pool(&mut x.iter().copied()), x.iter().map(|x| x.abs()).sum::<f32>() / 16.0),
                }
            }
        }
    }
}

#[test]
fn rows_are_turned_by_their_angles() {
    let angle = |i: usize| (i / 128) as f32 * 10_000f32.powf(-((i % 64) as f32) / 64.0);
    let x: Vec<f32> = (0..96 * 128u32).map(|i| product::bf16_of((i * 37 % 997) as f32 / 400.0 - 1.2)).collect();
    let cos: Vec<f32> = (0..x.len()).map(|i| product::bf16_of(angle(i).cos())).collect();
    let sign = |i: usize| if i % 128 < 64 { -1.0 } else { 1.0 };
    let sin: Vec<f32> = (0..x.len()).map(|i| product::bf16_of(angle(i).sin() * sign(i))).collect();
    let folder = folder();
    let mut more = Vec::new();
    for (name, values) in [("x", &x), ("cos", &cos), ("sin", &sin)] {
        let file = folder.path().join(format!("{name}.npy"));
        write_npy(&file, &[96, 128], values);
        more.extend(["--input".to_owned(), format!("{name}={}", file.display())]);
    }
    let text = std::fs::read_to_string(example("rotary")).unwrap();
    run_text(folder.path(), &text, &more.iter().map(String::as_str).collect::<Vec<_>>()).code(0);
    let y = read_npy::<f32>(&folder.path().join("out/y.npy")).1;
    for (i, &y) in y.iter().enumerate() {
        // The other half's element of the same row.
        let terms = [x[i] * cos[i], x[i ^ 64] * sin[i]];
        let error = (y - (terms[0] + terms[1])).abs();
        let most = (terms[0] + terms[1]).abs() / 256.0 + (terms[0].abs() + terms[1].abs()) / 65536.0;
        assert!(error <= most, "{i}: {y}, expected {}", terms[0] + terms[1]);
    }
}

/// Rows and columns of the large product.
const SIDE: usize = 512;
/// Cycles in which the kernels of `matmul/512.toml` are done: see its README.
const BOUND: u64 = 6960;

#[test]
fn the_large_product_has_the_bits_of_the_documented_order() {
    let mut state = 7u32;
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        product::bf16_of((state >> 8) as f32 / 8_388_608.0 - 1.0)
    };
    let [a, b] = [(); 2].map(|()| (0..SIDE * SIDE).map(|_| number()).collect::<Vec<f32>>());
    let folder = folder();
    let mut args = vec!["run".to_owned(), repository().join("examples/matmul/512.toml").display().to_string()];
    for (name, values) in [("a", &a), ("b", &b)] {
        let file = folder.path().join(format!("{name}.npy"));
        write_npy(&file, &[SIDE as u64, SIDE as u64], values);
        args.extend(["--input".to_owned(), format!("{name}={}", file.display())]);
    }
    let out = folder.path().join("out").display().to_string();
    args.extend(["--out", &out, "--board", "p150", "--core-timing", "--report", "json"].map(str::to_owned));
    let report = tilework(&args).code(0).json();

    let y = read_npy::<f32>(&folder.path().join("out/y.npy")).1;
    // All rows of tiles, and all places within a tile.
    for i in (0..SIDE).step_by(5) {
        for j in 0..SIDE {
            let row: Vec<f32> = a[i * SIDE..][..SIDE].to_vec();
            let column: Vec<f32> = (0..SIDE).map(|k| b[k * SIDE + j]).collect();
            let expected = product::bf16_of(product::sum(&row, &column));
            assert_eq!(y[i * SIDE + j], expected, "{i}, {j}");
        }
    }

    let times = |key: &str| -> Vec<u64> {
        report["core_timing"].as_array().unwrap().iter().map(|core| core[key].as_u64().unwrap()).collect()
    };
    let cycles = times("end").into_iter().max().unwrap() - times("start").into_iter().max().unwrap();
    assert!(cycles <= BOUND + BOUND / 4, "{cycles} cycles are more than a quarter above {BOUND}");
}
