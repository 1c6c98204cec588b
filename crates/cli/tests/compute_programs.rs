//! Programs of element-wise steps (`tilework_abi::eltwise`): fused chains, broadcasts, reductions
//! and places, from arrays to arrays, against plain arithmetic.

use crate::common;
use crate::functions;
use common::{folder, read_npy, run_text, write_npy};
use functions::{image_of, program_of, run};
use tilework_abi::eltwise::{Function, Step, When, flag, fold, integer, spread};

/// Where a spread element comes from: row and column, of a row and a column.
type From = fn(usize, usize) -> [usize; 2];

/// Words of a program, from steps and their numbers.
fn words(steps: &[(Step, &[u32])]) -> Vec<u32> {
    steps.iter().flat_map(|(step, numbers)| [step.encode()].into_iter().chain(numbers.iter().copied())).collect()
}

const fn step(function: Function) -> Step {
    Step::new(function)
}

/// Numbers of f32 between -4 and 4.
fn numbers(count: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 21) as f32 - 4.0
    };
    (0..count).map(|_| next()).collect()
}

/// Rows and columns of the arrays: four tiles side by side.
const ROWS: usize = 32;
const COLUMNS: usize = 128;

/// An operand or a result: type, and shape.
type Array = (&'static str, [usize; 2]);

/// A run of the kernel on one core: arrays of operands, for how many iterations their pages stay;
/// the result; runs and iterations.
struct Case<'a> {
    operands: &'a [(Array, u32)],
    result: Array,
    runs: u32,
    iterations: u32,
    flags: u32,
}

impl Case<'_> {
    fn text(&self, steps: &[u32]) -> String {
        let names = &["a", "b", "c"][..self.operands.len()];
        let buffer = |name: &str, usage: &str, (dtype, shape): Array| {
            let layout = "layout = \"tile\"";
            format!("[buffers.{name}]\nuse = \"{usage}\"\ndtype = \"{dtype}\"\n{layout}\nshape = {shape:?}\n")
        };
        let mut text = "name = \"programs\"\n".to_owned();
        names.iter().zip(self.operands).for_each(|(name, (array, _))| text += &buffer(name, "input", *array));
        text += &buffer("y", "output", self.result);
        for (index, name) in names.iter().enumerate().map(|(i, name)| (i, *name)).chain([(16, "y")]) {
            text +=
                &format!("[[cb]]\nname = \"{name}\"\nindex = {index}\npages = 2\npage_size = \"{name}.page_size\"\n");
        }
        let pages = self.runs * self.iterations;
        let feed: Vec<_> = names
            .iter()
            .zip(self.operands)
            .map(|(n, (_, stays))| format!("\"{n}.addr\", 0, {}, \"{n}.page_size\", \"cb.{n}\"", pages / stays))
            .collect();
        let operands: Vec<_> = names
            .iter()
            .zip(self.operands)
            .map(|(n, (_, stays))| format!("\"cb.{n}\", \"{n}.format\", {stays}, {stays}"))
            .collect();
        let steps_of: Vec<_> = steps.iter().map(u32::to_string).collect();
        text + &format!(
            "[[roles]]\ncores = 1\n[roles.ncrisc]\nelf = \"prebuilt:feed\"\nargs = [{pages}, {}, {}]\n\
             [roles.trisc0]\nelf = \"prebuilt:functions-unpack\"\n\
             args = [{}, {i}, {i}, {}, {}, 1, {}, 1, {}, \"cb.y\", \"y.format\", {}]\n\
             [roles.trisc1]\nelf = \"prebuilt:{}-math\"\n[roles.trisc2]\nelf = \"prebuilt:functions-pack\"\n\
             [roles.brisc]\nelf = \"prebuilt:writer\"\n\
             args = [\"y.addr\", 0, \"y.pages\", \"y.page_size\", \"cb.y\"]\n",
            names.len(),
            feed.join(", "),
            self.runs,
            self.flags,
            names.len(),
            steps.len(),
            operands.join(", "),
            steps_of.join(", "),
            image_of(steps),
            i = self.iterations,
        )
    }

    fn run<U: npyz::Deserialize>(&self, steps: &[(Step, &[u32])], inputs: &[&[f32]]) -> Vec<U> {
        let folder = folder();
        let mut more = Vec::new();
        for ((name, values), ((_, shape), _)) in ["a", "b", "c"].into_iter().zip(inputs).zip(self.operands) {
            let file = folder.path().join(format!("{name}.npy"));
            write_npy(&file, &shape.map(|n| n as u64), values);
            more.extend(["--input".to_owned(), format!("{name}={}", file.display())]);
        }
        let text = self.text(&words(steps));
        run_text(folder.path(), &text, &more.iter().map(String::as_str).collect::<Vec<_>>()).code(0);
        read_npy(&folder.path().join("out/y.npy")).1
    }
}

const F32: Array = ("f32", [ROWS, COLUMNS]);
const LOAD: Step = step(Function::Load);
const STORE: Step = step(Function::Store);

#[test]
fn a_chain_is_computed_in_one_pass() {
    let [a, b, c] = [1, 2, 3].map(|seed| numbers(64 * 64, seed));
    let steps = [
        (LOAD.of(0, 0, 0).to(0), &[][..]),
        (LOAD.of(1, 0, 0).to(1), &[]),
        (LOAD.of(2, 0, 0).to(2), &[]),
        (step(Function::MultiplyAdd).of(0, 1, 2).to(3), &[]),
        (step(Function::Sigmoid).of(3, 0, 0).to(3), &[]),
        (step(Function::Where).of(3, 0, 1).to(1), &[]),
        (step(Function::Multiply).of(3, 1, 0).to(0), &[]),
        (step(Function::Scale), &[0.5f32.to_bits()]),
        (STORE, &[]),
    ];
    let text = program_of(&words(&steps), ["f32", "f32"], 3, 64, true);
    let found: Vec<f32> = run(&text, &[64, 64], &[&a, &b, &c]);
    for i in 0..a.len() {
        let sum = a[i].mul_add(b[i], c[i]);
        let expected = 0.5 * a[i] / (1.0 + (-sum).exp());
        assert!((found[i] - expected).abs() <= 4e-6 * expected.abs(), "{i}: {}, expected {expected}", found[i]);
    }
}

#[test]
fn operands_are_spread_over_rows_columns_and_tiles() {
    let x = numbers(ROWS * COLUMNS, 4);
    let at = |row: usize, column: usize| x[row * COLUMNS + column];
    let cases: [(Function, From); 3] = [
        (Function::BroadcastRow, |_, column| [0, column]),
        (Function::BroadcastColumn, |row, column| [row, column / 32 * 32]),
        (Function::BroadcastScalar, |_, column| [0, column / 32 * 32]),
    ];
    for (function, from) in cases {
        let case = Case { operands: &[(F32, 1)], result: F32, runs: 4, iterations: 1, flags: flag::WIDE };
        let found: Vec<f32> = case.run(&[(LOAD, &[]), (step(function), &[]), (STORE, &[])], &[&x]);
        for (i, &y) in found.iter().enumerate() {
            let [row, column] = from(i / COLUMNS, i % COLUMNS);
            assert_eq!(y.to_bits(), at(row, column).to_bits(), "{}: {i}", function.name());
        }
    }
    // By the matrix unit, with a page that stays for four tiles; few bits, so that sums are exact.
    let few = |x: f32| (x * 16.0).round() / 16.0;
    let (a, b): (Vec<f32>, Vec<f32>) =
        (x.iter().map(|&x| few(x)).collect(), x[..1024].iter().map(|&x| few(x)).collect());
    let operands = [(("bf16", [ROWS, COLUMNS]), 1), (("bf16", [32, 32]), 4)];
    for flags in [0, flag::WIDE] {
        let case = Case { operands: &operands, result: ("bf16", [ROWS, COLUMNS]), runs: 4, iterations: 1, flags };
        let steps = [(step(Function::AddTiles).of(0, 1, 0), &[spread::COLUMN][..]), (STORE, &[])];
        let found: Vec<f32> = case.run(&steps, &[&a, &b]);
        for (i, &y) in found.iter().enumerate() {
            assert_eq!(y, a[i] + b[i / COLUMNS * 32], "{i}");
        }
    }
}

#[test]
fn formats_of_operands_differ() {
    let (a, b) = (numbers(ROWS * COLUMNS, 5), numbers(ROWS * COLUMNS, 6));
    let b: Vec<f32> = b.iter().map(|x| (x * 16.0).round() / 16.0).collect();
    let operands = [(F32, 1), (("bf16", [ROWS, COLUMNS]), 1)];
    let case = Case { operands: &operands, result: F32, runs: 4, iterations: 1, flags: flag::WIDE };
    let steps = [(LOAD, &[][..]), (LOAD.of(1, 0, 0).to(1), &[]), (step(Function::Add).of(0, 1, 0), &[]), (STORE, &[])];
    let found: Vec<f32> = case.run(&steps, &[&a, &b]);
    (0..a.len()).for_each(|i| assert_eq!(found[i], a[i] + b[i], "{i}"));
}

/// The program that folds the rows of a run of tiles, or their columns if `columns`, padding from
/// column 20 of the last tile on.
fn reduction(by: u32, columns: bool, neutral: f32) -> Vec<(Step, Vec<u32>)> {
    let combine = [Function::Add, Function::Max, Function::Min, Function::Multiply][by as usize];
    let folds = if columns { Function::FoldColumns } else { Function::FoldRows };
    vec![
        (LOAD.to(1), vec![]),
        (step(Function::MaskColumns).of(1, 0, 0).when(When::LastColumn), vec![20, neutral.to_bits()]),
        (step(Function::Copy).of(1, 0, 0).to(0).when(When::First), vec![]),
        (step(combine).of(0, 1, 0).when(When::NotFirst), vec![]),
        (step(folds).when(When::Last), vec![by]),
        (STORE.when(When::Last), vec![]),
    ]
}

#[test]
fn runs_of_tiles_are_reduced_with_all_bits_of_f32() {
    let x: Vec<f32> = numbers(ROWS * COLUMNS, 7).iter().map(|x| 1.0 + x / 512.0).collect();
    let case = Case { operands: &[(F32, 1)], result: ("f32", [32, 32]), runs: 1, iterations: 4, flags: flag::WIDE };
    for (by, neutral) in
        [(fold::SUM, 0.0), (fold::MAX, f32::NEG_INFINITY), (fold::MIN, f32::INFINITY), (fold::PRODUCT, 1.0)]
    {
        let steps = reduction(by, false, neutral);
        let steps: Vec<_> = steps.iter().map(|(step, numbers)| (*step, &numbers[..])).collect();
        let found: Vec<f32> = case.run(&steps, &[&x]);
        for row in 0..ROWS {
            let of_row = x[row * COLUMNS..][..COLUMNS - 12].iter().map(|&x| f64::from(x));
            let expected: f64 = match by {
                fold::SUM => of_row.sum(),
                fold::MAX => of_row.fold(f64::NEG_INFINITY, f64::max),
                fold::MIN => of_row.fold(f64::INFINITY, f64::min),
                _ => of_row.product(),
            };
            let most = if by == fold::SUM || by == fold::PRODUCT { 2e-6 * expected } else { 0.0 };
            for column in 0..32 {
                let y = f64::from(found[row * 32 + column]);
                assert!((y - expected).abs() <= most, "{by}, {row}, {column}: {y}, expected {expected}");
            }
        }
    }
    // Columns: those of the four tiles together.
    let steps = reduction(fold::SUM, true, 0.0);
    let steps: Vec<_> = steps.iter().map(|(step, numbers)| (*step, &numbers[..])).collect();
    let found: Vec<f32> = case.run(&steps, &[&x]);
    for column in 0..32 {
        let of_column = (0..ROWS * 4).map(|i| (i / 4, i % 4 * 32 + column)).filter(|(_, c)| *c < COLUMNS - 12);
        let expected: f64 = of_column.map(|(row, c)| f64::from(x[row * COLUMNS + c])).sum();
        for row in 0..32 {
            assert!((f64::from(found[row * 32 + column]) - expected).abs() <= 2e-6 * expected, "{row}, {column}");
        }
    }
}

#[test]
fn the_first_of_the_largest_elements_of_rows_is_found() {
    let mut x: Vec<f32> = numbers(ROWS * COLUMNS, 8).iter().map(|x| (x * 4.0).round()).collect();
    (x[5], x[9]) = (0.0, -0.0);
    let largest = [fold::MAX];
    let smallest = [fold::MIN];
    let last = |function| step(function).when(When::Last);
    let steps = [
        (LOAD.to(2), &[][..]),
        (step(Function::Copy).of(2, 0, 0).to(0).when(When::First), &[]),
        (step(Function::ColumnNumbers).of(1, 0, 0).when(When::First), &[0]),
        (step(Function::ArgLargest).of(0, 1, 2).when(When::NotFirst), &[0]),
        (last(Function::Copy).of(0, 0, 0).to(2), &[]),
        (last(Function::FoldRows).of(2, 0, 0), &largest),
        (last(Function::Equal).of(2, 0, 0).to(3), &[]),
        (last(Function::Fill).to(2), &[0x7FFF_FFFF]),
        (last(Function::Where).of(3, 1, 2).to(1), &[]),
        (last(Function::FoldRows).of(1, 0, 0).integers(integer::INT32), &smallest),
        (last(Function::Store).of(1, 0, 0), &[]),
    ];
    let case = Case { operands: &[(F32, 1)], result: ("i32", [32, 32]), runs: 1, iterations: 4, flags: flag::WIDE };
    let found: Vec<i32> = case.run(&steps, &[&x]);
    for (row, values) in x.chunks(COLUMNS).enumerate() {
        let expected = (0..COLUMNS).rev().max_by(|&i, &j| values[i].partial_cmp(&values[j]).unwrap()).unwrap();
        assert_eq!(found[row * 32], expected as i32, "{row}");
    }
}

#[test]
fn sums_run_down_the_columns_from_tile_to_tile() {
    let x = numbers(128 * 32, 9);
    let tall = ("f32", [128, 32]);
    let case = Case { operands: &[(tall, 1)], result: tall, runs: 1, iterations: 4, flags: flag::WIDE | flag::EACH };
    let found: Vec<f32> = case.run(&[(LOAD, &[]), (step(Function::Cumulative), &[0]), (STORE, &[])], &[&x]);
    let mut sums = [0f32; 32];
    for (i, &y) in found.iter().enumerate() {
        sums[i % 32] += x[i];
        assert_eq!(y, sums[i % 32], "{i}");
    }
}

#[test]
fn tiles_of_all_formats_are_transposed_without_loss() {
    let steps = words(&[(LOAD, &[]), (step(Function::Transpose), &[]), (STORE, &[])]);
    let place = |i: usize| {
        let (row, column) = (i / 64, i % 64);
        // Within its tile.
        (row / 32 * 32 + column % 32) * 64 + column / 32 * 32 + row % 32
    };
    let x: Vec<u32> = (0..64 * 64u32).map(|i| i.wrapping_mul(2_654_435_761) ^ i << 7).collect();
    let found: Vec<u32> = run(&program_of(&steps, ["u32", "u32"], 1, 64, true), &[64, 64], &[&x]);
    (0..x.len()).for_each(|i| assert_eq!(found[i], x[place(i)], "{i}"));
    let numbers: Vec<f32> = x.iter().map(|x| f32::from_bits(x & 0xBF7F_FFFF | 0x80_0000)).collect();
    let found: Vec<f32> = run(&program_of(&steps, ["f32", "f32"], 1, 64, true), &[64, 64], &[&numbers]);
    (0..x.len()).for_each(|i| assert_eq!(found[i].to_bits(), numbers[place(i)].to_bits(), "{i}"));
    let halves: Vec<u16> = x.iter().map(|x| (x >> 8) as u16).collect();
    for wide in [false, true] {
        let found: Vec<u16> = run(&program_of(&steps, ["u16", "u16"], 1, 64, wide), &[64, 64], &[&halves]);
        (0..x.len()).for_each(|i| assert_eq!(found[i], halves[place(i)], "{wide}, {i}"));
    }
}
