//! Instructions of the matrix unit against what their pages say.

use super::*;
use crate::FaultClass;
use crate::tensix::coverage::Executed;
use tilework_abi::tensix::insn::{self, Dotpv, Elwadd, Elwmul, Elwsub, Gapool, Gmpool, Mova2d, Mvmul, Setrwc, Zeroacc};

/// A matrix unit with what it works on, on thread 0.
#[derive(Default)]
pub(super) struct Bench {
    matrix: Matrix,
    pub(super) config: Config,
    pub(super) src: Sources,
    pub(super) dst: Dst,
    pub(super) blocked: u16,
    /// For `cargo xtask coverage`.
    executed: Executed,
}

impl Bench {
    pub(super) fn execute(&mut self, word: u32) -> Result<bool, Refusal> {
        let Self { matrix, config, src, dst, blocked, executed } = self;
        let insn = MatrixOp::decode(word).expect("a built instruction");
        let mut on = Operands { config, thread: 0, src, dst, blocked: *blocked };
        executed.settings = Some(matrix.settings(&on));
        let result = matrix.execute(&mut on, insn);
        if result.is_ok() {
            executed.count(insn::Insn::decode(word));
        }
        result
    }
    fn cleared(&self) -> Vec<usize> {
        (0..ROWS).filter(|&row| !self.dst.is_valid(row)).collect()
    }
}

fn cleared(words: &[u32]) -> Vec<usize> {
    let mut b = Bench::default();
    for &word in words {
        assert_eq!(b.execute(word), Ok(false));
    }
    b.cleared()
}

pub(super) fn zero_acc(mode: u32, use_32: bool, at: u32) -> u32 {
    Zeroacc::build().mode(mode).use_dst32b(use_32).imm10(at).word()
}

#[test]
fn zeroacc_clears_rows_blocks_halves_or_everything() {
    assert_eq!(cleared(&[zero_acc(0, false, 1023)]), [1023]);
    assert_eq!(cleared(&[zero_acc(1, false, 3)]), (48..64).collect::<Vec<_>>());
    // Block 1 of 32-bit rows: physical rows 32..40 and 48..56.
    assert_eq!(cleared(&[zero_acc(1, true, 1)]), (32..40).chain(48..56).collect::<Vec<_>>());
    assert_eq!(cleared(&[zero_acc(1, false, 64), zero_acc(1, true, 32)]), [0; 0]);
    assert_eq!(cleared(&[zero_acc(2, false, 1)]), (512..1024).collect::<Vec<_>>());
    assert_eq!(cleared(&[zero_acc(3, false, 0)]).len(), 1024, "the word that BRISC's start-up pushes");
    let reverts = Zeroacc::build().mode(1).revert(true).imm10(2).word();
    assert_eq!(cleared(&[zero_acc(2, false, 0), reverts]), (0..32).chain(48..512).collect::<Vec<_>>());
}

#[test]
fn a_block_is_one_of_the_half_that_the_thread_writes() {
    let block = |offset: u16, absolute: u32, word: u32| {
        let mut b = Bench::default();
        b.config.set_thread(0, cfg::DEST_TARGET_REG_CFG_MATH_OFFSET.word.into(), offset).unwrap();
        b.config.set(0, cfg::DEST_ACCESS_CFG_ZEROACC_ABSOLUTE_TILE_MODE.word.into(), absolute << 3).unwrap();
        b.execute(word).map(|_| b.cleared().first().copied())
    };
    assert_eq!(block(512, 0, zero_acc(1, false, 3)), Ok(Some(512 + 48)));
    assert_eq!(block(512, 1, zero_acc(1, false, 3)), Ok(Some(48)));
    assert_eq!(block(512, 0, zero_acc(1, true, 1)), Ok(Some(512 + 32)));
    // The sum decides, as was measured (llk_math_eltwise_binary.h).
    assert_eq!(block(480, 0, zero_acc(1, false, 31)), Ok(Some(496)));
    assert_eq!(block(488, 0, zero_acc(1, false, 31)), Ok(Some(512 + 496)));
    assert_eq!(block(512, 0, zero_acc(1, false, 32)).unwrap_err().0, FaultClass::MissingSpecification);
    assert_eq!(block(512, 0, zero_acc(1, false, 0xFF)), Ok(None), "only the counters move");
}

#[test]
fn a_block_is_its_rows_wherever_they_lie() {
    for map in 0..4 {
        for (wide, format) in [(false, 0), (true, 1)] {
            let cleared = |words: &[u32]| {
                let mut b = Bench::default();
                b.config.set(0, cfg::DEST_ACCESS_CFG_REMAP_ADDRS.word.into(), map).unwrap();
                b.config.set(0, cfg::ALU_ACC_CTRL_FP32_ENABLED.word.into(), format << 29).unwrap();
                words.iter().for_each(|&word| assert_eq!(b.execute(word), Ok(false)));
                b.cleared()
            };
            let rows: Vec<u32> = (5 * 16..6 * 16).map(|row| zero_acc(0, wide, row)).collect();
            assert_eq!(cleared(&[zero_acc(1, wide, 5)]), cleared(&rows), "mapping {map}, 32 bits: {wide}");
        }
    }
}

#[test]
fn one_row_is_relative_to_the_counters() {
    let mut b = Bench::default();
    b.config.set_thread(0, cfg::DEST_TARGET_REG_CFG_MATH_OFFSET.word.into(), 100).unwrap();
    b.config.set(0, cfg::DEST_REGW_BASE_BASE.word.into(), 1000).unwrap();
    b.matrix.rwcs[0].set(Setrwc::decode(Setrwc::build().dst(true).dst_val(7).word()).unwrap());
    b.execute(zero_acc(0, false, 5)).unwrap();
    assert_eq!(b.cleared(), [(5 + 100 + 7 + 1000) % 1024]);
}

impl Bench {
    /// The matrix unit's banks hold `a` and `b`, of `format`.
    pub(super) fn with(a: &[src::Row], b: &[src::Row], format: u32) -> Self {
        let mut bench = Self::default();
        for (which, rows) in [(A, a), (B, b)] {
            let src = &mut bench.src.0[which];
            src.unpacked_mut()[..rows.len()].copy_from_slice(rows);
            src.imply_format(format);
            src.give_to_matrix();
        }
        bench
    }
}

/// The number of BF16 in the configuration.
const BF16: u32 = 5;

fn src(x: f32) -> u32 {
    super::super::number::src_of_bf16((x.to_bits() >> 16) as u16)
}

/// A face of small numbers, all different from those around them.
fn face(first: i32) -> [src::Row; 16] {
    std::array::from_fn(|i| std::array::from_fn(|j| src((first + i as i32 * 3 - j as i32) as f32)))
}

fn number(first: i32, i: usize, j: usize) -> i32 {
    first + i as i32 * 3 - j as i32
}

/// The first rows of Dst as numbers of BF16.
fn numbers(b: &Bench, rows: usize) -> Vec<Vec<i32>> {
    (0..rows)
        .map(|row| {
            let bits = |x: u16| u32::from(super::super::number::bf16_of_dst(x)) << 16;
            b.dst.read_at(row).iter().map(|&x| f32::from_bits(bits(x)) as i32).collect()
        })
        .collect()
}

fn table(rows: usize, f: impl Fn(usize, usize) -> i32) -> Vec<Vec<i32>> {
    (0..rows).map(|i| (0..16).map(|j| f(i, j)).collect()).collect()
}

pub(super) fn run(b: &mut Bench, words: &[u32]) {
    for &word in words {
        b.execute(word).expect("no fault");
    }
}

#[test]
fn element_wise_instructions_take_rows_columns_or_all_of_srcb() {
    let (a, b) = (|i, j| number(9, i, j), |i, j| number(-20, i, j));
    let result = |words: &[u32]| {
        let mut bench = Bench::with(&face(9), &face(-20), BF16);
        run(&mut bench, words);
        numbers(&bench, 8)
    };
    let add = Elwadd::build();
    assert_eq!(result(&[add.word()]), table(8, |i, j| a(i, j) + b(i, j)));
    let third = Setrwc::build().src_b(true).src_b_val(3).word();
    assert_eq!(result(&[third, add.broadcast_src_b_row(true).word()]), table(8, |i, j| a(i, j) + b(3, j)));
    assert_eq!(result(&[add.broadcast_src_b_col0(true).word()]), table(8, |i, j| a(i, j) + b(i, 0)));
    let twice = Elwsub::build().add_dst(true).word();
    assert_eq!(result(&[add.word(), twice]), table(8, |i, j| 2 * a(i, j)));
    // Products have at most eight bits here.
    let second = Setrwc::build().src_a(true).src_a_val(8).word();
    let product = result(&[second, Elwmul::build().broadcast_src_b_row(true).broadcast_src_b_col0(true).word()]);
    assert_eq!(product[0][9], a(8, 9) * -20);
    let words = [Setrwc::build().dst(true).dst_val(8).word(), Elwmul::build().word()];
    assert_eq!(result(&words), table(8, |_, _| 0), "in the next block");
}

#[test]
fn matrix_products_have_eight_four_or_every_other_row() {
    let unit: [src::Row; 16] = std::array::from_fn(|i| std::array::from_fn(|j| src(f32::from(u8::from(i == j)))));
    let result = |word: u32| {
        let mut bench = Bench::with(&face(5), &unit, BF16);
        run(&mut bench, &[word]);
        numbers(&bench, 9)
    };
    let a = |i, j| number(5, i, j);
    let zero_after = |n: usize| move |i: usize, j: usize| if i < n { a(i, j) } else { 0 };
    assert_eq!(result(Mvmul::build().word()), table(9, zero_after(8)));
    assert_eq!(result(Dotpv::build().word()), table(9, zero_after(8)));
    assert_eq!(result(Gapool::build().word()), table(9, zero_after(4)));
    let broadcast = Mvmul::build().broadcast_src_b_row(true).word();
    assert_eq!(result(broadcast), table(9, |i, j| if i < 8 && i % 2 == 0 { a(0, j) } else { 0 }));
}

#[test]
fn denormals_that_are_not_flushed_are_refused_where_they_matter() {
    let mut b = face(1);
    b[7][15] = 1 << 10;
    let mut bench = Bench::with(&b, &b, BF16);
    assert_eq!(bench.execute(Mvmul::build().word()), Ok(false));
    bench.config.set(0, cfg::ALU_ACC_CTRL_ZERO_FLAG_DISABLED_SRC.word.into(), 1).unwrap();
    assert_eq!(bench.execute(Mvmul::build().word()).unwrap_err().0, FaultClass::MissingSpecification);
    // Element-wise instructions flush them in any case, as was found on ttsim.
    let row = bench.dst.read_at(7);
    assert_eq!(bench.execute(Elwmul::build().word()), Ok(false));
    assert_eq!(bench.dst.read_at(7)[15], row[15]);
    bench.src.0[B].rows_mut()[7][15] = 1 << 18;
    assert_eq!(bench.execute(Mvmul::build().word()), Ok(false));
}

#[test]
fn integers_are_multiplied_in_parts_and_saturate() {
    let int = |x: i32| (u32::from(x < 0) << 18 | x.unsigned_abs() << 8 | if x == 0 { 0 } else { 16 }) & 0x7_FFFF;
    let row = |x| [[int(x); 16]; 16];
    let mut bench = Bench::with(&row(-203), &row(777), 14);
    bench.config.set(0, cfg::ALU_ACC_CTRL_INT8_MATH_ENABLED.word.into(), 1 << 31).unwrap();
    let map = super::super::dst::RowMap::of(&bench.config);
    for phase in 0..4u16 {
        bench.config.set_thread(0, cfg::FIDELITY_BASE_PHASE.word.into(), phase).unwrap();
        run(&mut bench, &[Mvmul::build().word(), Elwmul::build().dst_row(8).word()]);
    }
    let read = |bench: &Bench, row| super::super::number::fp32_of_dst(bench.dst.read32(map, row)[7]);
    assert_eq!(read(&bench, 3), 1 << 31 | (16 * 203 * 777));
    assert_eq!(read(&bench, 8), 1 << 31 | (203 * 777));
    bench.dst.write32(map, 0, [super::super::number::dst_of_fp32(0x8000_0000 | (i32::MAX - 5).cast_unsigned()); 16]);
    run(&mut bench, &[Mvmul::build().word()]);
    assert_eq!(read(&bench, 0), u32::MAX, "clamped on both sides alike");
}

#[test]
fn gmpool_takes_the_largest_of_a_face_and_of_dst() {
    let mut a = face(-60);
    a[11][4] = src(3.5);
    let ones = [[src(1.0); 16]];
    let pool = Gmpool::build().instr_mod19(1);
    let mut bench = Bench::with(&a, &ones, BF16);
    run(&mut bench, &[zero_acc(3, false, 0), pool.word()]);
    let largest = |j| if j == 4 { 3 } else { number(-60, 15, j) };
    assert_eq!(numbers(&bench, 4), table(4, |i, j| if i == 0 { largest(j) } else { 0 }));
    assert!((0..4).all(|row| bench.dst.is_valid(row)));
    let mut bench = Bench::with(&a, &ones, BF16);
    run(&mut bench, &[pool.word()]);
    assert_eq!(numbers(&bench, 1)[0][..6], [0, 0, 0, 0, 3, 0], "Dst held zeros");
    // The index of the largest among the first eight rows, transformed, and a phase above it.
    bench.config.set(0, cfg::ALU_ACC_CTRL_FP32_ENABLED.word.into(), 1 << 29).unwrap();
    a[6][2] = src(40.0);
    bench.src.0[A].rows_mut()[..16].copy_from_slice(&a);
    run(&mut bench, &[zero_acc(3, false, 0), pool.arg_max(true).word()]);
    let map = super::super::dst::RowMap::of(&bench.config);
    let row = bench.dst.read32(map, 0);
    assert_eq!((row[2] >> 16, row[2] & 0xFFFF), (0x2084, 2), "40 in BF16; row 6 is 2, in phase 0");
    assert_eq!(bench.execute(Gmpool::build().word()).unwrap_err().0, FaultClass::MissingSpecification);
}

#[test]
fn banks_are_given_back_and_imply_formats() {
    let mut bench = Bench::with(&face(1), &face(1), BF16);
    assert_eq!(bench.execute(Mvmul::build().clear_dvalid(2).word()), Ok(true));
    assert_eq!(bench.src.0.each_ref().map(src::Src::matrix_may_read), [true, false]);
    bench.config.set_thread(0, cfg::CLR_DVALID_SRCA_DISABLE.word.into(), 1).unwrap();
    assert_eq!(bench.execute(Elwadd::build().clear_dvalid(1).word()), Ok(true));
    // The bank was kept, and the unit turned to the other one.
    assert!(!bench.src.0[A].matrix_may_read() && bench.src.0[A].unpacker_may_write());
    // A format that no data have, of the bank and then of the configuration.
    let mut bench = Bench::with(&face(1), &face(1), 12);
    assert_eq!(bench.execute(Mvmul::build().word()).unwrap_err().0, FaultClass::MissingSpecification);
    bench.config.set_thread(0, cfg::DISABLE_IMPLIED_SRCA_FMT_BASE.word.into(), 1).unwrap();
    assert_eq!(bench.execute(Mvmul::build().word()), Ok(false));
    bench.config.set_thread(0, cfg::FP16A_FORCE_ENABLE.word.into(), 1).unwrap();
    assert_eq!(bench.execute(Mvmul::build().word()).unwrap_err().0, FaultClass::UnsupportedFunctionality);
}

#[test]
#[ignore = "measures; meaningful in release builds"]
fn how_long_an_instruction_takes() {
    let mut seed = 1u32;
    let mut random = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        super::super::number::src_of_bf16((seed >> 16 & 0x83FF | 0x3E00) as u16)
    };
    let mut rows = || -> [src::Row; 64] { std::array::from_fn(|_| std::array::from_fn(|_| random())) };
    let (a, b) = (rows(), rows());
    for (name, word) in [
        ("MVMUL", Mvmul::build().word()),
        ("ELWADD", Elwadd::build().word()),
        ("ELWMUL", Elwmul::build().word()),
        ("MOVA2D", Mova2d::build().move_8_rows(true).word()),
        ("GMPOOL", Gmpool::build().instr_mod19(1).word()),
    ] {
        for wide in [0, 1] {
            let mut bench = Bench::with(&a, &b, 5);
            bench.config.set(0, 1, wide << 29).unwrap();
            // As in a matrix product of tiles: 16 instructions, four for each face of SrcA.
            let advance = |i: u32| Setrwc::build().src_a(true).src_a_val(i / 4 % 4).src_b(true).src_b_val(i % 4);
            let count = 40_000;
            let start = std::time::Instant::now();
            for i in 0..count {
                let at = Setrwc::decode(advance(i).word()).unwrap();
                bench.matrix.rwcs[0].set(at);
                bench.execute(word | (i % 16 * 8)).unwrap();
            }
            println!("{name}, 32 bits {wide}: {:?}", start.elapsed() / count);
        }
    }
}

/// How many of 128 results of an instruction are one place above `cut`, of 16 bits.
fn rounded_up(b: &mut Bench, word: u32, cut: u16) -> usize {
    b.execute(word).unwrap();
    let data: Vec<u16> = (0..8).flat_map(|row| b.dst.read_at(row).map(super::super::number::bf16_of_dst)).collect();
    assert!(data.iter().all(|x| [cut, cut + 1].contains(x)), "{data:x?}");
    data.iter().filter(|x| **x == cut + 1).count()
}

#[test]
fn sums_of_16_bits_can_round_stochastically() {
    // One and a quarter of the last place of BF16, by a sum and by a product.
    let bench = |row: [f32; 16], srnd: u32| {
        let mut b = Bench::with(&[row.map(src); 16], &[[src(1.0); 16]; 16], BF16);
        b.config.set(0, cfg::ALU_ROUNDING_MODE_FPU_SRND_EN.word.into(), srnd).unwrap();
        b
    };
    let quarter = 1.0 / 512.0;
    let elwadd = Elwadd::build().word();
    let mut b = bench([quarter; 16], 1);
    let up = (0..8).map(|_| rounded_up(&mut b, elwadd, 0x3F80)).sum::<usize>();
    assert!((180..330).contains(&up), "{up} of 1024");
    assert_eq!(rounded_up(&mut bench([quarter; 16], 0), elwadd, 0x3F80), 0, "else to the nearest");
    let mut rows = [[src(0.0); 16]; 16];
    (rows[0], rows[9]) = ([src(1.0); 16], [src(quarter); 16]);
    let mut up = 0;
    for seed in 0..8 {
        let mut b = bench([1.0; 16], 1);
        b.src.0[A].rows_mut()[..16].copy_from_slice(&rows);
        b.matrix.seed(seed);
        up += rounded_up(&mut b, Mvmul::build().word(), 0x3F80);
    }
    assert!((180..330).contains(&up), "{up} of 1024");
}

#[test]
fn what_fits_does_not_round_stochastically() {
    let mut b = Bench::with(&face(-60), &face(30), BF16);
    b.config.set(0, cfg::ALU_ROUNDING_MODE_FPU_SRND_EN.word.into(), 1).unwrap();
    b.execute(Elwadd::build().word()).unwrap();
    let expected: Vec<Vec<i32>> =
        (0..8).map(|i| (0..16).map(|j| number(-60, i, j) + number(30, i, j)).collect()).collect();
    assert_eq!(numbers(&b, 8), expected);
}
