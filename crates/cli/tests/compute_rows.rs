//! Sorting, running sums, reductions, sums in L1 and random numbers of the library of compute
//! kernels, from arrays to arrays, against plain arithmetic.

use crate::common;
use crate::functions;
use common::{example, folder, read_npy, repository, run_text, write_npy};
use functions::{program, program_with, run};
use tilework_dtype::convert::{bf16_from_f32, f32_from_bf16};

fn bf16(x: f32) -> f32 {
    f32_from_bf16(bf16_from_f32(x))
}

/// Numbers of bfloat16 around zero, from a fixed generator.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 22) as f32 - 2.0
    };
    (0..count).map(|_| bf16(next())).collect()
}

/// Runs the example `topk` for rows of `columns` tiles: tiles of results, 1 for the smallest
/// elements first; its values and places.
fn topk(x: &[f32], columns: usize, tiles: usize, smallest: u32) -> (Vec<f32>, Vec<u16>) {
    let rows = x.len() / (32 * columns);
    let text = std::fs::read_to_string(example("topk")).unwrap();
    let text = text
        .replace("shape = [96, 256]", &format!("shape = [{rows}, {}]", 32 * columns))
        .replace("shape = [96, 32]", &format!("shape = [{rows}, {}]", 32 * tiles))
        .replace("\"values.tile_columns\", 0,\n", &format!("\"values.tile_columns\", {smallest},\n"));
    let folder = folder();
    let file = folder.path().join("x.npy");
    write_npy(&file, &[rows as u64, 32 * columns as u64], x);
    run_text(folder.path(), &text, &["--input", &format!("x={}", file.display())]).code(0);
    let read = |name: &str| folder.path().join("out").join(name);
    (read_npy(&read("values.npy")).1, read_npy(&read("places.npy")).1)
}

/// Compares the first elements of every row with a sort that keeps the order of equal elements.
#[track_caller]
fn check_topk(x: &[f32], columns: usize, tiles: usize, smallest: u32) {
    let (values, places) = topk(x, columns, tiles, smallest);
    let (width, k) = (32 * columns, 32 * tiles);
    assert_eq!((values.len(), places.len()), (x.len() / width * k, x.len() / width * k));
    for (row, (values, places)) in x.chunks(width).zip(values.chunks(k).zip(places.chunks(k))) {
        let mut order: Vec<usize> = (0..width).collect();
        order.sort_by(|&i, &j| if smallest == 1 { row[i].total_cmp(&row[j]) } else { row[j].total_cmp(&row[i]) });
        for (i, &place) in order[..k].iter().enumerate() {
            assert_eq!((values[i], usize::from(places[i])), (row[place], place), "{columns}, {tiles}, {smallest}: {i}");
        }
    }
}

#[test]
fn top_k_is_what_a_stable_sort_gives() {
    for smallest in [0, 1] {
        // One tile, several, an odd number of tiles for results of two.
        for (columns, tiles) in [(1, 1), (2, 1), (7, 1), (2, 2), (4, 2), (5, 2)] {
            check_topk(&numbers(64 * 32 * columns, 3), columns, tiles, smallest);
        }
    }
}

#[test]
fn of_equal_elements_the_left_one_comes_first() {
    for smallest in [0, 1] {
        for (columns, tiles) in [(1, 1), (6, 1), (2, 2), (5, 2)] {
            let few: Vec<f32> = numbers(32 * 32 * columns, 4).into_iter().map(f32::round).collect();
            // Zeros have no sign on the way to Dst.
            let few: Vec<f32> = few.into_iter().map(|x| if x == 0.0 { 0.0 } else { x }).collect();
            check_topk(&few, columns, tiles, smallest);
            check_topk(&vec![1.0; 32 * 32 * columns], columns, tiles, smallest);
        }
    }
}

#[test]
fn infinities_are_sorted_as_numbers() {
    let mut x = numbers(32 * 96, 5);
    for (i, x) in x.iter_mut().enumerate() {
        match i % 7 {
            0 => *x = f32::INFINITY,
            1 => *x = f32::NEG_INFINITY,
            2 => *x = bf16(*x * 1e38),
            _ => {}
        }
    }
    for smallest in [0, 1] {
        check_topk(&x, 3, 2, smallest);
    }
}

/// Runs the example `columns` on matrices of 96 x 32: operation, type, whether Dst has 32 bits,
/// tiles of results for each matrix.
fn columns<T: npyz::AutoSerialize + Copy, U: npyz::Deserialize>(
    op: u32,
    dtype: &str,
    wide: bool,
    tiles: u32,
    x: &[T],
) -> Vec<U> {
    let text = std::fs::read_to_string(example("columns")).unwrap();
    let shape = |rows: u32| format!("dtype = \"{dtype}\"\nlayout = \"tile\"\nshape = [3, {rows}, 32]");
    // Of x, then of y.
    let old = "dtype = \"f32\"\nlayout = \"tile\"\nshape = [3, 96, 32]";
    let text = text
        .replacen(old, "x", 1)
        .replacen(old, &shape(32 * tiles), 1)
        .replacen("\nx\n", &format!("\n{}\n", shape(96)), 1)
        .replace("0, \"x.format\", 1,", &format!("{op}, \"x.format\", {},", u32::from(wide)));
    let folder = folder();
    let file = folder.path().join("x.npy");
    write_npy(&file, &[3, 96, 32], x);
    run_text(folder.path(), &text, &["--input", &format!("x={}", file.display())]).code(0);
    read_npy(&folder.path().join("out/y.npy")).1
}

/// Columns of the three matrices.
fn of_columns<T: Copy>(x: &[T]) -> Vec<Vec<T>> {
    let column = |m: usize, j: usize| (0..96).map(move |i| (m * 96 + i) * 32 + j);
    (0..3).flat_map(|m| (0..32).map(move |j| (m, j))).map(|(m, j)| column(m, j).map(|i| x[i]).collect()).collect()
}

#[test]
fn running_sums_and_products_go_down_several_tiles() {
    let x: Vec<f32> = numbers(3 * 96 * 32, 6);
    let near_one: Vec<f32> = x.iter().map(|x| bf16(1.0 + x / 16.0)).collect();
    let plain: [fn(f32, f32) -> f32; 2] = [|a, b| a + b, |a, b| a * b];
    for ((op, x), plain) in [(0, &x), (1, &near_one)].into_iter().zip(plain) {
        let first = if op == 0 { 0.0 } else { 1.0 };
        for (dtype, wide) in [("f32", true), ("bf16", true), ("bf16", false)] {
            let found: Vec<f32> = columns(op, dtype, wide, 3, x);
            for (column, found) in of_columns(x).into_iter().zip(of_columns(&found)) {
                let mut exact = first;
                for (x, y) in column.into_iter().zip(found) {
                    exact = plain(exact, x);
                    // What goes on has all bits of f32; only what is stored is rounded.
                    let most = if dtype == "f32" { 0.0 } else { exact.abs() / 256.0 };
                    assert!((y - exact).abs() <= most, "{op}, {dtype}, {wide}: {y}, expected {exact}");
                }
            }
        }
    }
}

#[test]
fn columns_of_numbers_are_reduced_with_all_bits() {
    let x: Vec<f32> = numbers(3 * 96 * 32, 7).into_iter().map(|x| x + 1.0 / 65536.0).collect();
    let plain: [fn(f32, f32) -> f32; 3] = [|a, b| a + b, f32::max, f32::min];
    for (op, plain) in (2u32..).zip(plain) {
        let most = if op == 2 { 1e-4 } else { 0.0 };
        let found: Vec<f32> = columns(op, "f32", true, 1, &x);
        for (i, column) in of_columns(&x).into_iter().enumerate() {
            let expected = column.into_iter().reduce(plain).unwrap();
            let y = found[i / 32 * 1024 + i % 32];
            assert!((y - expected).abs() <= most, "{op}, {i}: {y}, expected {expected}");
        }
    }
}

/// Reduces columns of integers of a type, and compares.
fn reduced<T>(dtype: &str, wide: bool, x: &[T], add: fn(T, T) -> T)
where
    T: npyz::AutoSerialize + npyz::Deserialize + Copy + Ord + std::fmt::Debug,
{
    let plain: [fn(T, T) -> T; 3] = [add, T::max, T::min];
    for (op, plain) in (2u32..).zip(plain) {
        let found: Vec<T> = columns(op, dtype, wide, 1, x);
        for (i, column) in of_columns(x).into_iter().enumerate() {
            let expected = column.into_iter().reduce(plain).unwrap();
            assert_eq!(found[i / 32 * 1024 + i % 32], expected, "{dtype}, {op}, {i}");
        }
    }
}

#[test]
fn columns_of_integers_are_reduced_exactly() {
    let bits: Vec<u32> = numbers(3 * 96 * 32, 8).into_iter().map(|x| x.to_bits().wrapping_mul(2_654_435_761)).collect();
    reduced("u32", true, &bits, u32::wrapping_add);
    reduced("i32", true, &bits.iter().map(|x| x.cast_signed()).collect::<Vec<_>>(), i32::wrapping_add);
    let halves: Vec<u16> = bits.iter().map(|x| (x >> 16) as u16).collect();
    reduced("u16", true, &halves, u16::wrapping_add);
    reduced("u16", false, &halves, u16::wrapping_add);
}

#[test]
fn mean_and_variance_of_columns() {
    // Far from zero, where a difference of sums would lose the variance.
    let x: Vec<f32> = numbers(3 * 96 * 32, 9).into_iter().map(|x| x + 1000.0).collect();
    let found: Vec<f32> = columns(5, "f32", true, 2, &x);
    for (i, column) in of_columns(&x).into_iter().enumerate() {
        let exact: Vec<f64> = column.into_iter().map(f64::from).collect();
        let mean = exact.iter().sum::<f64>() / 96.0;
        let variance = exact.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 96.0;
        let (m, v) = (found[i / 32 * 2048 + i % 32], found[i / 32 * 2048 + 1024 + i % 32]);
        assert!((f64::from(m) - mean).abs() < 1e-3, "{i}: {m}, expected {mean}");
        assert!((f64::from(v) - variance).abs() < 1e-3 * variance, "{i}: {v}, expected {variance}");
    }
}

#[test]
fn the_packer_adds_up_in_l1_and_cuts_off() {
    let x = numbers(4 * 128 * 32, 10);
    let text = std::fs::read_to_string(example("accumulate")).unwrap();
    let cut: [fn(f32) -> f32; 4] = [|x| x, |x| x.max(0.0), |x| if x > 0.75 { x } else { 0.0 }, |x| x.clamp(0.0, 0.75)];
    for (mode, cut) in (0u32..).zip(cut) {
        let args = format!("\"x.pages / y.pages\", {mode}, {}, \"x.format\"", 0.75f32.to_bits());
        let text = text.replace("\"x.pages / y.pages\", 1, 0, \"x.format\"", &args);
        let folder = folder();
        let file = folder.path().join("x.npy");
        write_npy(&file, &[4, 128, 32], &x);
        run_text(folder.path(), &text, &["--input", &format!("x={}", file.display())]).code(0);
        let y = read_npy::<f32>(&folder.path().join("out/y.npy")).1;
        for (i, &y) in y.iter().enumerate() {
            let exact = (0..4).fold(0.0, |sum, tile| sum + cut(x[i / 1024 * 4096 + tile * 1024 + i % 1024]));
            assert_eq!(y, exact, "{mode}, {i}");
        }
    }
}

#[test]
fn neighbours_are_turned_by_their_angles() {
    let text = std::fs::read_to_string(repository().join("examples/rotary/pairs.toml")).unwrap();
    let names = ["x", "pairs-cos", "pairs-sin", "matrix"];
    let files = names.map(|name| repository().join(format!("examples/rotary/{name}.npy")));
    let [x, cos, sin] = [0, 1, 2].map(|i| read_npy::<f32>(&files[i]).1.into_iter().map(bf16).collect::<Vec<f32>>());
    let folder = folder();
    let inputs: Vec<String> =
        ["x", "cos", "sin", "matrix"].iter().zip(&files).map(|(n, file)| format!("{n}={}", file.display())).collect();
    let more: Vec<&str> = inputs.iter().flat_map(|input| ["--input", input]).collect();
    run_text(folder.path(), &text, &more).code(0);
    let y = read_npy::<f32>(&folder.path().join("out/y.npy")).1;
    for (i, &y) in y.iter().enumerate() {
        let other = if i % 2 == 0 { -x[i + 1] } else { x[i - 1] };
        let terms = [x[i] * cos[i], other * sin[i]];
        let most = (terms[0] + terms[1]).abs() / 256.0 + (terms[0].abs() + terms[1].abs()) / 65536.0;
        assert!((y - (terms[0] + terms[1])).abs() <= most, "{i}: {y}, expected {}", terms[0] + terms[1]);
    }
}

/// A function of three operands: its number, its number's value, the plain function, and by how
/// much results may be off.
type OfThree = (u32, f32, fn(f32, f32, f32) -> f32, f32);

#[test]
fn functions_of_three_operands() {
    let [a, b, c] = [11, 12, 13].map(|seed| numbers(1 << 14, seed));
    let c: Vec<f32> = c.into_iter().map(|x| if x.abs() < 0.01 { 1.0 } else { x }).collect();
    let cases: [OfThree; 4] = [
        (97, 0.0, |a, b, c| a.mul_add(b, c), 0.0),
        (98, 0.5, |a, b, c| (b * 0.5).mul_add(c, a), 0.0),
        (99, 0.5, |a, b, c| a + 0.5 * b / c, 1e-6),
        (100, 0.0, |a, b, c| (b - a).mul_add(c, a), 0.0),
    ];
    for (function, number, plain, most) in cases {
        let text = program(function, [number.to_bits(), 0], ["f32", "f32"], 3, 128);
        let found: Vec<f32> = run(&text, &[128, 128], &[&a, &b, &c]);
        for i in 0..a.len() {
            let expected = plain(a[i], b[i], c[i]);
            let error = (found[i] - expected).abs();
            assert!(error <= most * expected.abs().max(1.0), "{function}, {i}: {}, expected {expected}", found[i]);
        }
    }
}

/// The random words of a tile as the vector unit draws them: a generator for each of 32 lanes, in
/// the order of Dst's rows.
fn random_words(seed: u32) -> Vec<u32> {
    let next = |x: u32| {
        let x = x ^ x << 13;
        let x = x ^ x >> 17;
        x ^ x << 5
    };
    let mut lanes: Vec<u32> =
        (0..32u32).map(|l| (2 * l).wrapping_mul(0x9E37_79B9).wrapping_add(seed << 1 | 1)).collect();
    (0..8).for_each(|_| lanes.iter_mut().for_each(|x| *x = next(*x)));
    let mut words = vec![0; 1024];
    for round in 0..32 {
        lanes.iter_mut().for_each(|x| *x = next(*x));
        for (lane, &x) in lanes.iter().enumerate() {
            // Four rows at a time, first their even, then their odd columns.
            let (row, column) = (round / 2 * 4 + lane / 8, lane % 8 * 2 + round % 2);
            // Faces of 16 rows follow one another.
            let (face, row) = (row / 16, row % 16);
            words[(face / 2 * 16 + row) * 32 + face % 2 * 16 + column] = x;
        }
    }
    words
}

#[test]
fn random_numbers_are_those_of_their_generators() {
    let words = random_words(1);
    let x = vec![1.5f32; 1024];
    let text = program(42, [(-1.0f32).to_bits(), 3.0f32.to_bits()], ["f32", "f32"], 1, 32);
    let found: Vec<f32> = run(&text, &[32, 32], &[&x]);
    for (y, word) in found.iter().zip(&words) {
        let unit = f32::from_bits(word >> 9 | 127 << 23) - 1.0;
        assert_eq!(*y, unit.mul_add(3.0, -1.0));
    }
    let mean = found.iter().sum::<f32>() / 1024.0;
    assert!((0.4..0.6).contains(&mean), "{mean}");
    // A quarter is dropped, the others are larger.
    let text = program(43, [1 << 29, (4.0f32 / 3.0).to_bits()], ["f32", "f32"], 1, 32);
    let found: Vec<f32> = run(&text, &[32, 32], &[&x]);
    for (y, word) in found.iter().zip(&words) {
        assert_eq!(*y, if word >> 1 < 1 << 29 { 0.0 } else { 1.5 * (4.0 / 3.0) });
    }
    let dropped = found.iter().filter(|&&y| y == 0.0).count();
    assert!((200..312).contains(&dropped), "{dropped}");
}

#[test]
fn tests_of_what_is_no_number_and_hard_functions() {
    let all: Vec<f32> = (0..1u32 << 16).map(|bits| f32::from_bits(bits << 16)).collect();
    let plain: [fn(f32) -> bool; 3] = [f32::is_nan, f32::is_infinite, f32::is_finite];
    for (function, plain) in (36u32..).zip(plain) {
        let found: Vec<f32> = run(&program(function, [0; 2], ["f32", "f32"], 1, 256), &[256, 256], &[&all]);
        all.iter().zip(&found).for_each(|(x, y)| assert_eq!(*y, f32::from(u8::from(plain(*x))), "{function} of {x}"));
    }
    let numbers: Vec<f32> = all.into_iter().map(|x| if x.is_normal() { x } else { 0.0 }).collect();
    let hard = |x: f32| (f64::from(x) / 6.0 + 0.5).clamp(0.0, 1.0);
    for function in [39, 40] {
        let found: Vec<f32> = run(&program(function, [0; 2], ["f32", "f32"], 1, 256), &[256, 256], &[&numbers]);
        for (&x, &y) in numbers.iter().zip(&found) {
            let expected = if function == 39 { hard(x) } else { f64::from(x) * hard(x) };
            assert!((f64::from(y) - expected).abs() <= 1e-6 * expected.abs().max(1.0), "{function} of {x}: {y}");
        }
    }
    for (dtype, wide) in [("f32", true), ("bf16", false)] {
        let text = program_with(41, [(-2.5f32).to_bits(), 0], [dtype, dtype], 1, 256, wide);
        let found: Vec<f32> = run(&text, &[256, 256], &[&numbers]);
        assert!(found.iter().all(|&y| y == -2.5));
    }
}
