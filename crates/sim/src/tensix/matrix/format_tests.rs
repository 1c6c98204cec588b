//! Arithmetic in all source formats, with both widths of Dst, in all phases of fidelity, on
//! integers and with all ways to give banks back: numbers that are small enough to be exact, worked
//! out with integers (MVMUL.md, DOTPV.md, GAPOOL.md, GMPOOL.md, ELWMUL.md, ELWADD.md, ELWSUB.md,
//! SrcASrcB.md).

use super::format::TF32;
use super::tests::{Bench, run, zero_acc};
use super::*;
use crate::tensix::dst::RowMap;
use crate::tensix::number::{bf16_of_dst, fp16_of_dst, fp32_of_dst};
use tilework_abi::tensix::insn::{Dotpv, Elwadd, Elwmul, Elwsub, Gapool, Gmpool, Mvmul};

type Face = [[i32; 16]; 16];

/// Formats that mean numbers with exponents of eight bits, and with exponents of five bits, besides
/// TF32 (the table of MVMUL.md, `SrcAStyle`).
const EIGHT_BITS: [u32; 7] = [0, 5, 6, 7, 8, 9, 15];
const FIVE_BITS: [u32; 5] = [1, 2, 3, 10, 11];
const BF16: u32 = 5;

/// A number of SrcA or SrcB: sign, ten bits of mantissa, exponent.
fn datum(x: i32, bias: u32) -> u32 {
    if x == 0 {
        return 0;
    }
    let (magnitude, sign) = (x.unsigned_abs(), u32::from(x < 0));
    let exponent = magnitude.ilog2();
    sign << 18 | (magnitude << (10 - exponent) & 0x3FF) << 8 | (exponent + bias)
}

/// What a source format's numbers have as their bias.
fn bias(format: u32) -> u32 {
    if FIVE_BITS.contains(&format) { 15 } else { 127 }
}

fn bench(a: &Face, b: &Face, format: u32, wide: bool) -> Bench {
    let rows = |face: &Face| face.map(|row| row.map(|x| datum(x, bias(format))));
    let mut bench = Bench::with(&rows(a), &rows(b), format);
    bench.config.set(0, cfg::ALU_ACC_CTRL_FP32_ENABLED.word.into(), u32::from(wide) << 29).unwrap();
    bench
}

/// The integer at a place of Dst, which holds data of `format`, or of 32 bits.
fn integer(bench: &Bench, format: u32, wide: bool, at: (usize, usize)) -> i32 {
    number(bench, format, wide, at) as i32
}

fn number(bench: &Bench, format: u32, wide: bool, (row, column): (usize, usize)) -> f32 {
    let map = RowMap::of(&bench.config);
    let narrow = || bench.dst.read16(map, row)[column];
    let bits = match (wide, bias(format)) {
        (true, _) => fp32_of_dst(bench.dst.read32(map, row)[column]),
        (false, 127) => u32::from(bf16_of_dst(narrow())) << 16,
        _ => {
            let x = u32::from(fp16_of_dst(narrow()));
            if x & 0x7FFF == 0 { 0 } else { (x & 0x8000) << 16 | ((x & 0x7FFF) + (112 << 10)) << 13 }
        }
    };
    f32::from_bits(bits)
}

/// Factors of which each sum of products has two terms.
fn factors() -> (Face, Face) {
    let a = std::array::from_fn(|k| {
        std::array::from_fn(|j| if k == j || k == (j + 5) % 16 { (k as i32 * 3 + j as i32) % 15 - 7 } else { 0 })
    });
    (a, std::array::from_fn(|i| std::array::from_fn(|k| (i as i32 * 5 + k as i32 * 7) % 31 - 15)))
}

fn product(a: &Face, b: &Face, i: usize, j: usize) -> i32 {
    (0..16).map(|k| b[i][k] * a[k][j]).sum()
}

#[test]
fn every_source_format_computes_in_its_style() {
    let (a, b) = factors();
    for format in EIGHT_BITS.into_iter().chain(FIVE_BITS).chain([TF32]) {
        for wide in [false, true] {
            let result = |words: &[u32], rows: usize| -> Vec<[i32; 16]> {
                let mut bench = bench(&a, &b, format, wide);
                run(&mut bench, words);
                (0..rows).map(|i| std::array::from_fn(|j| integer(&bench, format, wide, (i, j)))).collect()
            };
            let table = |rows: usize, f: &dyn Fn(usize, usize) -> i32| -> Vec<[i32; 16]> {
                (0..rows).map(|i| std::array::from_fn(|j| f(i, j))).collect()
            };
            let at = |what: &str| format!("{what} of format {format}, 32 bits {wide}");
            let products = table(8, &|i, j| product(&a, &b, i, j));
            assert_eq!(result(&[Mvmul::build().word()], 8), products, "{}", at("MVMUL"));
            assert_eq!(result(&[Dotpv::build().word()], 8), products, "{}", at("DOTPV"));
            let four = table(8, &|i, j| if i < 4 { product(&a, &b, i, j) } else { 0 });
            assert_eq!(result(&[Gapool::build().word()], 8), four, "{}", at("GAPOOL"));
            let elwmul = Elwmul::build().word();
            assert_eq!(result(&[elwmul], 8), table(8, &|i, j| a[i][j] * b[i][j]), "{}", at("ELWMUL"));
            assert_eq!(result(&[elwmul, elwmul], 8), table(8, &|i, j| 2 * a[i][j] * b[i][j]), "{}", at("ELWMUL"));
            let (add, sub) = (Elwadd::build(), Elwsub::build());
            let sum = |i: usize, j: usize| a[i][j] + b[i][j];
            let difference = |i: usize, j: usize| a[i][j] - b[i][j];
            assert_eq!(result(&[sub.word(), add.word()], 8), table(8, &sum), "{}", at("ELWADD"));
            assert_eq!(result(&[add.word(), sub.word()], 8), table(8, &difference), "{}", at("ELWSUB"));
            let twice = result(&[add.word(), add.add_dst(true).word()], 8);
            assert_eq!(twice, table(8, &|i, j| 2 * sum(i, j)), "{}", at("ELWADD onto Dst"));
            let row_and_column = sub.broadcast_src_b_row(true).broadcast_src_b_col0(true).word();
            assert_eq!(result(&[row_and_column], 8), table(8, &|i, j| a[i][j] - b[0][0]), "{}", at("ELWSUB"));
        }
    }
}

#[test]
fn four_phases_make_the_whole_product() {
    // An operand counts in full if SrcA has another format: a bank of SrcB can hold TF32 beside one
    // of SrcA that holds BF16.
    for format in [TF32, BF16] {
        four_phases_of(format);
    }
}

fn four_phases_of(format: u32) {
    // Ten bits of SrcA and eleven of SrcB count (SrcASrcB.md, "Fidelity phases"); the lowest bit of
    // SrcA does not.
    let a: Face = std::array::from_fn(|i| std::array::from_fn(|j| if i == j { 1025 + 62 * i as i32 } else { 0 }));
    let b: Face = std::array::from_fn(|i| std::array::from_fn(|j| (2047 - 97 * i as i32 - j as i32) * [1, -1][j % 2]));
    let elements: Face = std::array::from_fn(|i| std::array::from_fn(|j| -(1024 + 31 * i as i32 + 2 * j as i32)));
    let phases = |a: &Face, word: u32, count: u16| {
        let mut bench = bench(a, &b, format, true);
        for phase in 0..count {
            bench.config.set_thread(0, cfg::FIDELITY_BASE_PHASE.word.into(), phase).unwrap();
            run(&mut bench, &[word]);
        }
        bench
    };
    let even = |x: i32| x & !1;
    for (word, rows) in [(Mvmul::build().word(), 8), (Dotpv::build().word(), 8), (Gapool::build().word(), 4)] {
        let bench = phases(&a, word, 4);
        for (i, j) in (0..rows).flat_map(|i| (0..16).map(move |j| (i, j))) {
            assert_eq!(integer(&bench, format, true, (i, j)), even(a[j][j]) * b[i][j], "{word:#x} {i} {j}");
        }
    }
    let bench = phases(&elements, Elwmul::build().word(), 4);
    for (i, j) in (0..8).flat_map(|i| (0..16).map(move |j| (i, j))) {
        assert_eq!(integer(&bench, format, true, (i, j)), -even(-elements[i][j]) * b[i][j], "{i} {j}");
    }
    // The first phase takes the five high bits of SrcA and the seven high bits of SrcB.
    let bench = phases(&a, Mvmul::build().word(), 1);
    assert_eq!(integer(&bench, format, true, (3, 2)), (a[2][2] & !0x3F) * (b[3][2] & !0xF));
}

/// Integer "8": magnitude in the mantissa, with an exponent that only says that it is not zero.
fn integer8(x: i32) -> u32 {
    u32::from(x < 0) << 18 | x.unsigned_abs() << 8 | if x == 0 { 0 } else { 16 }
}

fn integer_bench(a: &Face, b: &Face) -> Bench {
    let mut bench = Bench::with(&a.map(|row| row.map(integer8)), &b.map(|row| row.map(integer8)), 14);
    bench.config.set(0, cfg::ALU_ACC_CTRL_INT8_MATH_ENABLED.word.into(), 1 << 31).unwrap();
    bench
}

/// A 32-bit integer of Dst, in sign and magnitude.
fn integer32(bench: &Bench, row: usize, column: usize) -> i32 {
    let x = fp32_of_dst(bench.dst.read32(RowMap::of(&bench.config), row)[column]);
    let magnitude = (x & 0x7FFF_FFFF).cast_signed();
    if x >> 31 != 0 { -magnitude } else { magnitude }
}

#[test]
fn integers_add_up_multiply_and_pool() {
    let a: Face = std::array::from_fn(|i| std::array::from_fn(|j| (i as i32 * 37 + j as i32 * 11) % 511 - 255));
    let b: Face = std::array::from_fn(|i| std::array::from_fn(|j| (i as i32 * 29 - j as i32 * 23) % 256));
    for (word, rows) in [(Dotpv::build().word(), 8), (Gapool::build().word(), 4)] {
        let mut bench = integer_bench(&a, &b);
        for phase in 0..4 {
            bench.config.set_thread(0, cfg::FIDELITY_BASE_PHASE.word.into(), phase).unwrap();
            run(&mut bench, &[word]);
        }
        for (i, j) in (0..rows).flat_map(|i| (0..16).map(move |j| (i, j))) {
            assert_eq!(integer32(&bench, i, j), product(&a, &b, i, j), "{word:#x} {i} {j}");
        }
    }
    let mut bench = integer_bench(&a, &b);
    run(&mut bench, &[Elwadd::build().word(), Elwsub::build().dst_row(8).word()]);
    run(&mut bench, &[Elwsub::build().add_dst(true).dst_row(8).word(), Elwadd::build().add_dst(true).word()]);
    for (i, j) in (0..8).flat_map(|i| (0..16).map(move |j| (i, j))) {
        assert_eq!(integer32(&bench, i, j), 2 * (a[i][j] + b[i][j]));
        assert_eq!(integer32(&bench, 8 + i, j), 2 * (a[i][j] - b[i][j]));
    }
    // The exponents of SrcB's row choose rows of SrcA: those of zeros count as the least number.
    let ones: Face = [std::array::from_fn(|i| i32::from(i != 15)); 16];
    let mut bench = integer_bench(&a, &ones);
    run(&mut bench, &[zero_acc(3, false, 0), Gmpool::build().instr_mod19(1).word()]);
    for j in 0..16 {
        let largest = a[..15].iter().map(|row| row[j]).max();
        assert_eq!(Some(integer32(&bench, 0, j)), largest, "column {j}");
        assert_eq!([1, 2, 3].map(|i| integer32(&bench, i, j)), [0; 3]);
    }
}

#[test]
fn gmpool_scales_by_powers_of_two_in_every_format() {
    let a: Face = std::array::from_fn(|i| std::array::from_fn(|j| (i as i32 * 7 + j as i32 * 5) % 23 - 11));
    // 1, 2 and 4 by turns; bits of the mantissa do not count.
    let scales = [1, 3, 4, 2, 5, 1];
    let b: Face = [std::array::from_fn(|k| scales[k % 6]); 16];
    for format in EIGHT_BITS.into_iter().chain(FIVE_BITS).chain([TF32]) {
        for wide in [false, true] {
            let mut bench = bench(&a, &b, format, wide);
            run(&mut bench, &[zero_acc(3, false, 0), Gmpool::build().instr_mod19(1).word()]);
            for j in 0..16 {
                let scaled = a.iter().zip(&b[0]).map(|(row, scale)| row[j] << scale.ilog2());
                let largest = scaled.max().unwrap_or(0) as f32;
                // The page's model gives TF32 the exponents of FP16, with the bias of neither.
                let shift = if wide && bias(format) == 15 { 32 } else { 0 };
                let found = number(&bench, format, wide, (0, j));
                assert_eq!(found, largest * 2f32.powi(shift), "format {format}, 32 bits {wide}, {j}");
            }
            // Once more, with what Dst holds, which is larger than anything that is left.
            bench.src.0[A].rows_mut()[..16].fill([datum(-20, bias(format)); 16]);
            let before: [f32; 16] = std::array::from_fn(|j| number(&bench, format, wide, (0, j)));
            run(&mut bench, &[Gmpool::build().instr_mod19(1).word()]);
            assert_eq!(before, std::array::from_fn(|j| number(&bench, format, wide, (0, j))));
        }
    }
}

#[test]
fn every_instruction_that_computes_gives_banks_back() {
    let face = [[1; 16]; 16];
    for flips in 0..4 {
        for word in [
            Mvmul::build().clear_dvalid(flips).word(),
            Dotpv::build().clear_dvalid(flips).word(),
            Gapool::build().clear_dvalid(flips).word(),
            Gmpool::build().instr_mod19(1).clear_dvalid(flips).word(),
            Elwmul::build().clear_dvalid(flips).word(),
            Elwadd::build().clear_dvalid(flips).word(),
            Elwsub::build().clear_dvalid(flips).word(),
        ] {
            let mut bench = bench(&face, &face, 5, false);
            assert_eq!(bench.execute(word), Ok(flips != 0), "{word:#x}");
            let kept = bench.src.0.each_ref().map(src::Src::matrix_may_read);
            assert_eq!(kept, [flips & 1 == 0, flips & 2 == 0], "{word:#x}");
        }
    }
}
