//! Moves and rearrangements against what their pages say.

use super::super::tests::{Bench, run};
use super::*;
use crate::tensix::dst::RowMap;
use crate::tensix::number::{dst_of_bf16, src_of_int16};
use tilework_abi::tensix::insn::{
    Mova2d, Movb2a, Movb2d, Movd2a, Movd2b, Setrwc, Shiftxa, Shiftxb, Trnspsrcb, Zerosrc,
};

/// Numbers of formats in the configuration.
const FP32: u32 = 0;
const FP16: u32 = 1;
const BF16: u32 = 5;
const INT16: u32 = 9;
const FP32_ENABLED: u32 = 1 << 29;

/// Data that are all different.
fn rows(first: u32) -> [Row; 64] {
    std::array::from_fn(|i| std::array::from_fn(|j| ((first + i as u32 * 16 + j as u32) * 0x51) & 0x7_FFFF | 1))
}

/// Word 1 of the configuration, with the source format `format` and not the implied one.
fn configure(b: &mut Bench, format: u32, bits: u32) {
    b.config.set(0, cfg::ALU_FORMAT_SPEC_REG0_SRCA.word.into(), format << 17 | bits).unwrap();
    b.config.set_thread(0, cfg::DISABLE_IMPLIED_SRCA_FMT_BASE.word.into(), 1).unwrap();
}

fn keep_denormals(b: &mut Bench) {
    b.config.set(0, cfg::ALU_ACC_CTRL_ZERO_FLAG_DISABLED_SRC.word.into(), 1).unwrap();
}

#[test]
fn movb2d_moves_one_or_four_rows_or_broadcasts() {
    let b = rows(7);
    let moved = |insn: u32| {
        let mut bench = Bench::with(&rows(0), &b, BF16);
        bench.dst.revert_clear();
        run(&mut bench, &[insn]);
        (0..12).map(|row| bench.dst.read_at(row)).collect::<Vec<_>>()
    };
    let narrow = |row: usize| b[row].map(dst_of_src_8_bit_exponent);
    let zero = [0; 16];
    let one = Movb2d::build().src_row(5).dst_row(9);
    assert_eq!(moved(one.word())[8..], [zero, narrow(5), zero, zero]);
    assert_eq!(moved(one.move_4_rows(true).word())[7..], [zero, narrow(4), narrow(5), narrow(6), narrow(7)]);
    let eight = Movb2d::build().src_row(5).dst_row(3).broadcast_1_row_to_8(true);
    assert_eq!(moved(eight.word())[..9], [[narrow(5); 8].as_slice(), &[zero]].concat());
    assert_eq!(moved(eight.broadcast_col0(true).word())[2], [narrow(5)[0]; 16]);
}

#[test]
fn moves_flush_and_leave_blocked_columns_alone() {
    let denormal = [[0x7_0100; 16]; 1];
    for (kept, want) in [(false, 0), (true, dst_of_src_8_bit_exponent(0x7_0100))] {
        let mut bench = Bench::with(&denormal, &denormal, BF16);
        if kept {
            keep_denormals(&mut bench);
        }
        bench.blocked = 0x0006;
        bench.dst.write_at(0, [0x1234; 16]);
        run(&mut bench, &[Mova2d::build().word(), Movb2a::build().src_a_row(3).word()]);
        assert_eq!(bench.dst.read_at(0)[..4], [want, 0x1234, 0x1234, want]);
        assert_eq!(bench.src.0[A].rows()[3][..4], [u32::from(kept) * 0x7_0100, 0, 0, u32::from(kept) * 0x7_0100]);
    }
}

#[test]
fn sixteen_bits_come_back_as_they_were() {
    for format in [BF16, FP16] {
        let mut bench = Bench::with(&[], &[], format);
        keep_denormals(&mut bench);
        for first in (0..=u16::MAX).step_by(64) {
            let row = |i: usize| std::array::from_fn(|j| first + (i * 16 + j) as u16);
            (0..4).for_each(|i| bench.dst.write_at(i, row(i)));
            let back = Movb2d::build().src_row(12).move_4_rows(true).dst_row(8);
            run(&mut bench, &[Movd2b::build().src_row(12).move_4_rows(true).word(), back.word()]);
            assert!((0..4).all(|i| bench.dst.read_at(8 + i) == row(i)), "{first:#x}");
            run(
                &mut bench,
                &[Movd2a::build().src_row(3).dst_row(1).word(), Mova2d::build().src_row(3).dst_row(20).word()],
            );
            assert_eq!(bench.dst.read_at(20), row(1));
        }
    }
}

#[test]
fn thirty_two_bits_are_moved_in_two_halves() {
    // As kernels transpose: low halves to SrcA as BF16, high halves by way of SrcB as TF32.
    let mut bench = Bench::with(&[], &[], BF16);
    keep_denormals(&mut bench);
    let map = RowMap::of(&bench.config);
    let data: Row = std::array::from_fn(|i| 0x9E37_79B9u32.wrapping_mul(i as u32 + 1));
    bench.dst.write32(map, 0, data);
    configure(&mut bench, BF16, FP32_ENABLED);
    run(&mut bench, &[Movd2b::build().use_dst32b_lo(true).word(), Movb2a::build().word()]);
    configure(&mut bench, TF32, FP32_ENABLED);
    run(&mut bench, &[Movd2b::build().word(), Movb2d::build().dst_row(40).word()]);
    assert_eq!(bench.dst.read32(map, 40), data.map(|x| x & 0xFFFF_E000), "TF32");
    configure(&mut bench, FP32, 0);
    run(&mut bench, &[Mova2d::build().use_dst32b_lo(true).dst_row(40).word()]);
    assert_eq!(bench.dst.read32(map, 40), data);
}

#[test]
fn sixteen_bits_go_to_the_low_half_of_data_of_32_bits() {
    let data = [std::array::from_fn(|i| src_of_int16(0x1234 + i as u16))];
    let mut bench = Bench::with(&data, &[], BF16);
    keep_denormals(&mut bench);
    configure(&mut bench, INT16, FP32_ENABLED);
    let map = RowMap::of(&bench.config);
    bench.dst.write32(map, 0, [0xABCD_5555; 16]);
    run(&mut bench, &[Mova2d::build().use_dst32b_lo(true).word()]);
    assert_eq!(bench.dst.read32(map, 0), std::array::from_fn(|i| 0xABCD_1234 + i as u32));
}

#[test]
fn sixteen_bits_of_an_implied_format_go_to_both_halves_of_data_of_32_bits() {
    // MOVA2D.md and MOVB2D.md with SrcAFmt TF32, as which SrcA counts: both halves have the 16
    // bits, and the low one the three bits of the mantissa that TF32 has more.
    let implied = |format: u32, datum: u32, insn: u32| {
        let mut bench = Bench::with(&[[datum; 16]], &[[datum; 16]], format);
        keep_denormals(&mut bench);
        bench.config.set(0, cfg::ALU_FORMAT_SPEC_REG0_SRCA.word.into(), FP32_ENABLED).unwrap();
        let map = RowMap::of(&bench.config);
        bench.dst.write32(map, 0, [0xABCD_5555; 16]);
        run(&mut bench, &[insn]);
        bench.dst.read32(map, 0)[3]
    };
    let moves = [Mova2d::build().use_dst32b_lo(true).word(), Movb2d::build().use_dst32b_lo(true).word()];
    for insn in moves {
        let sixteen = 0x3F81;
        assert_eq!(implied(INT16, src_of_int16(sixteen), insn), 0x3F81_3F81, "an integer");
        // BF16 1.0078125: its number, with which tt-metal's division goes on, is the high half.
        let word = implied(BF16, src_of_tf32(f32::to_bits(1.007_812_5) >> 13), insn);
        assert_eq!(word >> 16, u32::from(dst_of_bf16(0x3F81)));
        assert_eq!(word & 0xFFFF, word >> 16);
        // A mantissa of ten bits: 1 + 2^-10.
        let word = implied(BF16, src_of_tf32(f32::to_bits(1.0 + 1.0 / 1024.0) >> 13), insn);
        let high = u32::from(dst_of_bf16(0x3F80));
        assert_eq!(word, high << 16 | high | 1 << 13);
    }
}

#[test]
fn moves_of_a_width_that_dst_does_not_have_are_undefined() {
    let fault = |format, bits, word| {
        let mut bench = Bench::with(&[], &[], BF16);
        configure(&mut bench, format, bits);
        bench.execute(word).map_err(|refusal| refusal.0)
    };
    let undefined = Err(FaultClass::UndefinedBehavior);
    assert_eq!(fault(TF32, 0, Mova2d::build().word()), undefined);
    assert_eq!(fault(TF32, FP32_ENABLED, Mova2d::build().use_dst32b_lo(true).word()), undefined);
    assert_eq!(fault(BF16, 1 << 31, Movb2d::build().word()), undefined);
    assert_eq!(fault(BF16, FP32_ENABLED, Mova2d::build().word()), Ok(false), "counts as TF32");
    assert_eq!(fault(TF32, 0, Movd2a::build().word()), undefined);
    assert_eq!(fault(BF16, 0, Movd2b::build().use_dst32b_lo(true).word()), undefined);
}

#[test]
fn rows_are_transposed_shifted_and_cleared() {
    let (a, b) = (rows(0), rows(9));
    let mut bench = Bench::with(&a, &b, BF16);
    run(&mut bench, &[Trnspsrcb::build().word()]);
    let now = bench.src.0[B].rows();
    assert!((0..16).all(|i| (0..16).all(|j| now[16 + i][j] == b[16 + j][i])));
    assert_eq!((&now[..16], &now[32..]), (&b[..16], &b[32..]));
    run(&mut bench, &[Shiftxb::build().src_row(2).word(), Shiftxb::build().src_row(3).shift_in_zero(true).word()]);
    let now = bench.src.0[B].rows();
    assert_eq!((now[2][14], now[2][15], now[3][14], now[3][15]), (b[2][15], b[2][0], b[3][15], 0));
    // The face that the last instruction with a row of SrcA named.
    let named = [Setrwc::build().src_a(true).src_a_val(15).word(), Mova2d::build().src_row(20).word()];
    run(&mut bench, &[named[0], named[1], Shiftxa::build().direction(2).word()]);
    let now = bench.src.0[A].rows();
    assert_eq!((now[1][0], now[1][1..].to_vec()), (0, a[33][..15].to_vec()));
    assert!(bench.execute(Shiftxa::build().direction(1).word()).is_err());
    run(&mut bench, &[Zerosrc::build().src_mask(3).single_bank_matrix_unit(true).negative_inf_src_a(true).word()]);
    assert!(bench.src.0[A].rows().iter().flatten().all(|&x| x == NEGATIVE_INFINITY));
    assert!(bench.src.0[B].rows().iter().flatten().all(|&x| x == 0));
    assert!(bench.src.0[A].unpacked_mut().iter().flatten().all(|&x| x == 0), "the other bank");
}

#[test]
fn four_rows_move_from_aligned_ones_to_aligned_ones() {
    let b = rows(3);
    let mut bench = Bench::with(&rows(0), &b, BF16);
    // Both rows lose their low two bits (MOVB2A.md, MOVD2A.md).
    run(&mut bench, &[Movb2a::build().src_a_row(18).src_b_row(7).move_4_rows(true).word()]);
    let now = bench.src.0[A].rows();
    assert_eq!((now[15], &now[16..20], now[20]), (rows(0)[15], &b[4..8], rows(0)[20]));
    let data = |i: usize| std::array::from_fn(|j| (i * 16 + j) as u16 | 0x4000);
    (0..16).for_each(|i| bench.dst.write_at(i, data(i)));
    run(&mut bench, &[Movd2a::build().src_row(33).dst_row(6).move_4_rows(true).word()]);
    let now = bench.src.0[A].rows();
    assert_eq!((now[31], now[36]), (rows(0)[31], rows(0)[36]));
    assert!((0..4).all(|i| now[32 + i] == data(4 + i).map(src_of_dst_bf16)));
}

#[test]
fn low_halves_come_from_and_go_to_data_of_32_bits() {
    let map = RowMap::of(&crate::tensix::config::Config::default());
    let data: Row = std::array::from_fn(|i| 0x8123_4567u32.wrapping_mul(2 * i as u32 + 1));
    for (format, expected) in [
        (BF16, data.map(|x| src_of_dst_bf16(x as u16))),
        (FP16, data.map(|x| src_of_dst_fp16(x as u16))),
        (TF32, data.map(|x| x & 0x1FFF)),
    ] {
        let mut bench = Bench::with(&[], &[], BF16);
        configure(&mut bench, format, FP32_ENABLED);
        bench.dst.write32(map, 0, data);
        run(&mut bench, &[Movd2a::build().use_dst32b_lo(true).word(), Movd2b::build().use_dst32b_lo(true).word()]);
        assert_eq!([A, B].map(|which| bench.src.0[which].rows()[0]), [expected; 2], "format {format}");
    }
    // And back, from SrcB: the high halves stay.
    let b = [[src_of_int16(0x5678); 16]];
    let mut bench = Bench::with(&[], &b, BF16);
    keep_denormals(&mut bench);
    configure(&mut bench, INT16, FP32_ENABLED);
    bench.dst.write32(map, 8, data);
    run(&mut bench, &[Movb2d::build().use_dst32b_lo(true).dst_row(8).word()]);
    assert_eq!(bench.dst.read32(map, 8), data.map(|x| x & 0xFFFF_0000 | 0x5678));
}

#[test]
fn srca_shifts_to_both_sides_and_both_banks_are_cleared() {
    let a = rows(5);
    let mut bench = Bench::with(&a, &rows(1), BF16);
    // Rows 16 to 31, which the last instruction with a row of SrcA named.
    run(&mut bench, &[Mova2d::build().src_row(30).word(), Shiftxa::build().direction(3).word()]);
    let now = bench.src.0[A].rows();
    assert!((0..16).all(|i| now[i][..15] == a[16 + i][1..] && now[i][15] == 0));
    assert_eq!(now[16..], a[16..]);
    bench.src.0[A].unpacked_mut().fill([7; 16]);
    run(&mut bench, &[Zerosrc::build().src_mask(1).both_banks(true).word()]);
    assert!(bench.src.0[A].all_mut().iter().flatten().all(|&x| x == 0));
    assert!(bench.src.0[B].rows().iter().flatten().any(|&x| x != 0), "SrcB stays");
}

#[test]
fn movdbgb2d_moves_as_movb2d_does() {
    use tilework_abi::tensix::insn::Movdbgb2d;
    for (bits, four, row, column) in (0..8)
        .map(|bits| (bits, bits & 4 != 0, bits & 2 != 0, bits & 1 != 0))
        .filter(|(_, four, row, _)| !(*four && *row))
    {
        let moved = |word: u32| {
            let mut bench = Bench::with(&[], &rows(11), BF16);
            run(&mut bench, &[word]);
            (0..16).map(|row| bench.dst.read_at(row)).collect::<Vec<_>>()
        };
        let usual = Movb2d::build().src_row(6).dst_row(9).move_4_rows(four).broadcast_1_row_to_8(row);
        let debug = Movdbgb2d::build().src(6).dst(9).movb2d_instr_mod(bits);
        assert_eq!(moved(usual.broadcast_col0(column).word()), moved(debug.word()), "{bits:#b}");
    }
}

#[test]
fn mova2d_moves_eight_rows_from_aligned_ones_to_aligned_ones() {
    let a = rows(2);
    let mut bench = Bench::with(&a, &[], BF16);
    run(&mut bench, &[Mova2d::build().src_row(19).dst_row(13).move_8_rows(true).word()]);
    assert_eq!((bench.dst.read_at(7), bench.dst.read_at(16)), ([0; 16], [0; 16]));
    assert!((0..8).all(|i| bench.dst.read_at(8 + i) == a[16 + i].map(dst_of_src_8_bit_exponent)));
}
