//! Modes of `PACR` that stock kernels do not use, and `PACR_SETREG`, worked out from PACR.md, the
//! public list, Packers/Compression.md and PACR_SETREG.md.

use super::tests::*;
use super::*;
use crate::tensix::bench::{Bench, CORES};
use tilework_abi::tensix::insn::{self, PacrSetreg, Setadcxx, Setc16};
use tilework_abi::tensix::{TDMA_BASE, tdma};

fn one_row() -> insn::Build<Pacr> {
    Pacr::build().read_intf_sel(1)
}

/// Sixteen-bit data of L1 from where the packer writes.
fn halves(b: &Bench, count: usize) -> Vec<u16> {
    l1(b, 2 * count).chunks(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}

/// Columns 0 to `width - 1`.
fn narrow(b: &mut Bench, width: u32) {
    b.execute(T2, &[Setadcxx::build().cnt_set_mask(4).x1_val(width - 1).word()]);
}

fn rows_of_numbers(b: &mut Bench) {
    (0..64).for_each(|row| write_bf16(b, row, std::array::from_fn(|c| 0x4000 + (16 * row + c) as u16)));
}

#[test]
fn row_pad_zero_fills_rows_or_the_last_block() {
    // Two rows of five data, and one more row of five: what lies behind each.
    let run = |mode: u32, concat: bool| {
        let mut b = set_up(BF16, BF16, BF16, false);
        rows_of_numbers(&mut b);
        narrow(&mut b, 5);
        let pacr = Pacr::build().row_pad_zero(mode).concat(concat);
        b.execute(T2, &[pacr.read_intf_sel(3).word(), pacr.read_intf_sel(1).last(true).addr_mod(1).word()]);
        let found = halves(&b, 64);
        let at = |x: u16| found.iter().position(|&found| found == x).expect("it is there");
        // Rows 0, 1, 4, of which each ends behind its fifth datum.
        [0x4000, 0x4010, 0x4040].map(at)
    };
    for concat in [false, true] {
        assert_eq!(run(0, concat), [0, 5, 10]);
        assert_eq!(run(1, concat), [0, 16, 32], "every row");
        assert_eq!(run(5, concat), [0, 5, 16], "ten data, and six zeros");
    }
    assert_eq!((run(2, false), run(2, true)), ([0, 16, 32], [0, 5, 10]), "unless the next one goes on");
    assert_eq!((run(6, false), run(6, true)), ([0, 5, 16], [0, 5, 10]));
    assert_eq!((run(3, false), run(7, false)), ([0, 5, 10], [0, 5, 10]), "of the last instruction only");
}

#[test]
fn padding_writes_zeros() {
    let mut b = set_up(BF16, BF16, BF16, false);
    rows_of_numbers(&mut b);
    narrow(&mut b, 5);
    b.out.l1[OUT as usize..][..256].fill(0xEE);
    b.execute(T2, &[one_row().word(), one_row().row_pad_zero(7).last(true).word()]);
    let expected: Vec<u16> = (0x4000..0x4005).chain(0x4040..0x4045).chain([0; 6]).chain([0xEEEE; 4]).collect();
    assert_eq!(halves(&b, 20), expected);
}

#[test]
fn a_context_of_counters_can_be_another_threads() {
    let mut b = set_up(BF16, BF16, BF16, false);
    rows_of_numbers(&mut b);
    // Thread 0's counters: row 4, columns 0 to 15.
    let y = insn::Setadcxy::build().cnt_set_mask(4).ch0_y(4).bit_mask(0b10).word();
    b.execute(0, &[Setadcxx::build().cnt_set_mask(4).x1_val(15).word(), y]);
    b.execute(T2, &[Setc16::build().cfg_index(37).new_value(1).word()]);
    let other = one_row().ovrd_thread_id(true).last(true);
    b.execute(T2, &[other.word()]);
    assert_eq!(halves(&b, 1), [0x4040]);
    let counters = |thread| b.t.coprocessor.adcs.packer(thread).src[1];
    assert_eq!((counters(0), counters(T2)), (5, 0), "and they go on");
    b.execute(T2, &[other.addr_cnt_context(2).word()]);
    assert_eq!(halves(&b, 1), [0x4000]);
    b.execute(T2, &[other.addr_cnt_context(3).word()]);
    assert_eq!(halves(&b, 1), [0x4050], "a fourth one is the first");
    b.execute(T2, &[one_row().addr_cnt_context(1).last(true).word()]);
    assert_eq!(halves(&b, 1), [0x4010], "not without OvrdThreadId");
}

#[test]
fn resetting_the_tracked_context_does_nothing_else() {
    let mut b = set_up(BF16, BF16, BF16, false);
    rows_of_numbers(&mut b);
    b.execute(T2, &[Pacr::build().ctxt_ctrl(2).last(true).word()]);
    assert_eq!((halves(&b, 1), b.t.coprocessor.adcs.packer(T2).src[1]), (vec![0], 0));
}

#[test]
fn the_last_pacr_of_a_plane_takes_what_is_left() {
    for (rows, expected) in [(5, vec![0, 1, 2, 3, 4]), (6, vec![0, 1, 2, 3, 4, 5]), (7, (0..7).collect())] {
        let mut b = set_up(BF16, BF16, BF16, false);
        rows_of_numbers(&mut b);
        set(&mut b, cfg::THCON_SEC_REG1_AUTO_SET_LAST_PACR_INTF_SEL, 1);
        set(&mut b, cfg::PACK_COUNTERS_SEC_PACK_READS_PER_XY_PLANE, rows);
        b.execute(T2, &[Pacr::build().word(), Pacr::build().last(true).addr_mod(1).word()]);
        let firsts = |b: &Bench| -> Vec<u16> {
            halves(b, 128).chunks(16).map(|row| row[0]).take_while(|x| *x != 0).map(|x| (x - 0x4000) / 16).collect()
        };
        assert_eq!(firsts(&b), expected);
        // The next plane begins with a whole group again.
        b.execute(T2, &[Pacr::build().last(true).addr_mod(1).word()]);
        assert_eq!(firsts(&b)[..4], [0, 1, 2, 3]);
    }
}

#[test]
fn rows_of_bfp4_and_bfp2_can_end_within_a_byte() {
    for (format, bits) in [(7, 4), (15, 2)] {
        let mut b = set_up(BF16, BF16, format, false);
        (0..64).for_each(|row| write_bf16(&mut b, row, [0x3F80; 16]));
        narrow(&mut b, 3);
        b.execute(T2, &[Pacr::build().last(true).word()]);
        // Twelve ones, of which the magnitude's highest bit is set.
        let one = 1u64 << (bits - 2);
        let expected = (0..12).fold(0, |all, i| all | one << (bits * i));
        assert_eq!(u64::from_le_bytes(l1(&b, 72)[64..].try_into().unwrap()), expected, "{bits} bits");
        assert_eq!(l1(&b, 5), [127, 127, 127, 127, 0], "an exponent for each row");
    }
}

/// Reads compressed data of 16 bits back, as Packers/Compression.md describes them.
fn decompressed(l1: &[u8], rows: usize, section: usize) -> Vec<Vec<u16>> {
    let half = |at: usize| u16::from_le_bytes([l1[at], l1[at + 1]]);
    let start = |row: usize| usize::from(half(2 * row));
    let row = |row: usize| {
        let data = (start(row)..start(row + 1)).flat_map(|i| {
            let group = section + i / 32 * 80;
            let zeros = l1[group + 64 + i % 32 / 2] >> (4 * (i % 2)) & 0xF;
            std::iter::once(half(group + 2 * (i % 32))).chain(std::iter::repeat_n(0, zeros.into()))
        });
        data.collect()
    };
    (0..rows).map(row).collect()
}

#[test]
fn a_compressed_tile_is_what_the_format_says() {
    let mut b = set_up(BF16, BF16, BF16, false);
    // All kinds of runs of zeros, whole rows included.
    let value = |i: usize| if (i * i / 7).is_multiple_of(5) && i % 160 < 90 { 0x3F80 + i as u16 } else { 0 };
    (0..64).for_each(|row| write_bf16(&mut b, row, std::array::from_fn(|c| value(16 * row + c))));
    set(&mut b, cfg::THCON_SEC_REG1_DISABLE_ZERO_COMPRESS, 0);
    // 17 starts of rows.
    set(&mut b, cfg::THCON_SEC_REG1_ROW_START_SECTION_SIZE, 3);
    b.execute(T2, &tile());
    let rows = decompressed(l1(&b, 4096), 16, 48);
    for (i, row) in rows.iter().enumerate() {
        assert_eq!(*row, (64 * i..64 * i + 64).map(value).collect::<Vec<_>>(), "row {i}");
    }
    assert!(l1(&b, 4096)[48 + 1024..].iter().all(|x| *x == 0), "it is smaller");
}

#[test]
fn concat_joins_instructions_to_one_compressed_row() {
    let mut b = set_up(BF16, BF16, BF16, false);
    write_bf16(&mut b, 0, [0; 16]);
    write_bf16(&mut b, 1, std::array::from_fn(|c| if c == 3 { 0x4000 } else { 0 }));
    set(&mut b, cfg::THCON_SEC_REG1_DISABLE_ZERO_COMPRESS, 0);
    set(&mut b, cfg::THCON_SEC_REG1_ROW_START_SECTION_SIZE, 1);
    b.execute(T2, &[Setc16::build().cfg_index(37).new_value(1).word()]);
    b.execute(T2, &[one_row().concat(true).word(), one_row().last(true).addr_mod(1).word()]);
    assert_eq!(halves(&b, 3), [0, 4, 0], "one row of four data");
    // A zero and 15, a zero and two, the two and eleven zeros, and the last zero.
    assert_eq!(halves(&b, 13)[8..], [0, 0, 0x4000, 0, 0]);
    assert_eq!(l1(&b, 96)[16 + 64..][..3], [15 | 2 << 4, 11, 0]);
}

#[test]
fn compressed_blocks_have_the_exponents_of_what_is_left() {
    let mut b = set_up(BF16, BF16, BFP8, false);
    // Eight ones and eight zeros in each row.
    (0..64).for_each(|row| write_bf16(&mut b, row, std::array::from_fn(|c| if c % 2 == 0 { 0x3F80 } else { 0 })));
    write_bf16(&mut b, 2, std::array::from_fn(|c| if c % 2 == 0 { 0x4000 } else { 0 }));
    set(&mut b, cfg::THCON_SEC_REG1_DISABLE_ZERO_COMPRESS, 0);
    set(&mut b, cfg::THCON_SEC_REG1_ROW_START_SECTION_SIZE, 1);
    set(&mut b, cfg::THCON_SEC_REG1_EXP_SECTION_SIZE, 1);
    b.execute(T2, &[Pacr::build().last(true).word()]);
    // 32 ones, of which 31 have a zero behind them that is left out; the last zero stays.
    assert_eq!(halves(&b, 3), [0, 33, 0]);
    let out = l1(&b, 160);
    assert_eq!(out[16..20], [127, 128, 0, 0], "of data 0 to 15, 16 to 31, and the zero");
    assert_eq!((out[32], out[32 + 15], out[32 + 16], out[32 + 24]), (0x40, 0x40, 0x40, 0x20));
    assert_eq!((out[64], out[64 + 15]), (0x11, 0x01));
    assert_eq!(out[80..96], [0; 16]);
}

#[test]
fn compression_of_what_has_no_format_is_refused() {
    for (format, field, what) in [
        (15, cfg::THCON_SEC_REG1_DISABLE_ZERO_COMPRESS, "two bits"),
        (BF16, cfg::THCON_SEC_REG1_PACK_L1_ACC, "accumulation of compressed"),
        (BFP8, cfg::ALU_ROUNDING_MODE_PACKER_SRND_EN, "stochastic rounding of compressed"),
    ] {
        let mut b = set_up(BF16, BF16, format, false);
        set(&mut b, field, 1);
        set(&mut b, cfg::THCON_SEC_REG1_DISABLE_ZERO_COMPRESS, 0);
        let said = refusal(&mut b, Pacr::build().word());
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn fp8_of_4_bits_of_exponent_is_made_of_fp16_alone() {
    const FP8: u32 = 10;
    let mut b = set_up(BF16, BF16, FP8, false);
    set(&mut b, cfg::THCON_SEC_REG1_PAC_LF8_4B_EXP, 1);
    let said = refusal(&mut b, Pacr::build().word());
    assert!(said.contains("four bits of exponent that is not made of FP16"), "{said}");
}

/// Tiles that are packed to see how often data round up.
const TILES: usize = 8;

/// Whether about `parts` in eight of all data that `data` takes from each of some packed tiles are
/// one more than `cut`, and all others `cut`.
fn rounds_up<T: PartialEq + Copy>(b: &mut Bench, [cut, more]: [T; 2], parts: usize, data: fn(&Bench) -> Vec<T>) {
    let mut up = 0;
    for _ in 0..TILES {
        b.execute(T2, &tile());
        let data = data(b);
        assert!(data.len() == 1024 && data.iter().all(|x| [cut, more].contains(x)));
        up += data.iter().filter(|x| **x == more).count();
    }
    // Columns draw the same numbers one after the other, so that there are few different ones.
    let expected = parts * 1024 * TILES / 8;
    assert!(up.abs_diff(expected) < 1024 * TILES / 12, "{up} instead of {expected}");
}

#[test]
fn stochastic_rounding_goes_up_as_often_as_what_is_cut_off_says() {
    for parts in [1, 4, 7] {
        let mut b = set_up(BF16, BF16, BF16, true);
        set(&mut b, cfg::ALU_ROUNDING_MODE_GASKET_SRND_EN, 1);
        (0..64).for_each(|row| write_fp32(&mut b, row, [0x3F80_0000 | (parts as u32) << 13; 16]));
        rounds_up(&mut b, [0x3F80, 0x3F81], parts, |b| halves(b, 1024));
    }
}

#[test]
fn a_seed_repeats_stochastic_rounding() {
    let mut b = set_up(BF16, BF16, BF16, true);
    set(&mut b, cfg::ALU_ROUNDING_MODE_GASKET_SRND_EN, 1);
    (0..64).for_each(|row| write_fp32(&mut b, row, [0x3F80_8000; 16]));
    let mut run = |seed: Option<u32>| {
        seed.into_iter().for_each(|seed| set(&mut b, cfg::PRNG_SEED_SEED_VAL, seed));
        b.execute(T2, &tile());
        halves(&b, 1024)
    };
    let (first, next, again, other) = (run(Some(7)), run(None), run(Some(7)), run(Some(8)));
    assert_eq!(first, again);
    assert_ne!(first, next);
    assert_ne!(first, other);
}

#[test]
fn blocks_round_stochastically() {
    let mut b = set_up(BF16, BF16, BFP8, false);
    set(&mut b, cfg::ALU_ROUNDING_MODE_PACKER_SRND_EN, 1);
    // One, and as many halves of the last of seven bits behind it.
    (0..64).for_each(|row| write_bf16(&mut b, row, [0x3F81; 16]));
    rounds_up(&mut b, [0x40, 0x41], 4, |b| l1(b, 64 + 1024)[64..].to_vec());
}

#[test]
fn pacr_setreg_writes_what_it_was_given_behind_the_data() {
    let mut b = set_up(BF16, BF16, BF16, false);
    rows_of_numbers(&mut b);
    narrow(&mut b, 3);
    // The addresses 0xFFB4_0000 + 4 * 5 and 0xFFB0_0000 + 4 * 9, with the instruction's
    // bits between.
    b.t.store(CORES[2], TDMA_BASE + tdma::FIFO_PACKED_TILE_STATUS, 1 << 20 | 9 << 10 | 5, 0).unwrap();
    let half = |half: u32, value: u32| PacrSetreg::build().mode_sel(true).wrdata_half(half).wrdata(value).word();
    let write = PacrSetreg::build().push(true).flush(true);
    b.execute(T2, &[one_row().word(), half(0, 0x5678), half(1, 0x1234), write.stream_id(3).word()]);
    assert_eq!(b.out.registers.get(&0xFFB4_3014), Some(&0x1234_5678));
    assert_eq!(halves(&b, 4), [0x4000, 0x4001, 0x4002, 0], "what was held is written");
    b.execute(T2, &[half(0, 9), write.addr_sel(1).stream_id(0x20).word()]);
    assert_eq!(b.out.registers.get(&0xFFB2_0024), Some(&0x1234_0009));
    let before = b.out.registers.len();
    b.execute(
        T2,
        &[PacrSetreg::build().flush(true).stream_id(3).word(), PacrSetreg::build().push(true).stream_id(4).word()],
    );
    assert_eq!(b.out.registers.len(), before, "both bits must be set");
    assert!(refusal(&mut b, write.addr_sel(1).word()).contains("below those of TDMA-RISC"));
    let mut b = set_up(BF16, BF16, BF16, false);
    assert!(refusal(&mut b, write.addr_sel(2).word()).contains("an address that no register"));
}

#[test]
fn pacr_setreg_goes_on_behind_what_it_flushed() {
    let mut b = set_up(BF16, BF16, BF16, false);
    rows_of_numbers(&mut b);
    narrow(&mut b, 3);
    b.t.store(CORES[2], TDMA_BASE + tdma::FIFO_PACKED_TILE_STATUS, 2 << 20, 0).unwrap();
    b.execute(T2, &[one_row().word(), PacrSetreg::build().flush(true).word(), one_row().last(true).word()]);
    assert_eq!(halves(&b, 11), [0x4000, 0x4001, 0x4002, 0, 0, 0, 0, 0, 0x4040, 0x4041, 0x4042]);
}

#[test]
fn any_read_interfaces_contribute_their_rows_in_order() {
    for mask in 1..16u32 {
        let mut b = set_up(BF16, BF16, BF16, false);
        rows_of_numbers(&mut b);
        b.execute(T2, &[Pacr::build().read_intf_sel(mask).last(true).word()]);
        let expected: Vec<u16> = (0..4).filter(|i| mask >> i & 1 != 0).map(|i| 0x4000 + 16 * i).collect();
        let found: Vec<u16> = halves(&b, 64).chunks(16).map(|row| row[0]).take_while(|x| *x != 0).collect();
        assert_eq!(found, expected, "{mask:#b}");
    }
}

/// What of Dst holds `1.5`, `-2` and `0.375` by turns, as the format has them.
fn fill_with_numbers(b: &mut Bench, wide: bool, five_bits: bool) {
    let map = crate::tensix::dst::RowMap::of(&b.t.coprocessor.config);
    let dst = &mut b.t.coprocessor.dst;
    match (wide, five_bits) {
        (true, _) => {
            let row = [0x3FC0_0000, 0xC000_0000, 0x3EC0_0000u32];
            dst.write32(map, 0, std::array::from_fn(|i| crate::tensix::number::dst_of_fp32(row[i % 3])));
        }
        (false, false) => {
            let row = [0x3FC0, 0xC000, 0x3EC0];
            dst.write16(map, 0, std::array::from_fn(|i| crate::tensix::number::dst_of_bf16(row[i % 3])));
        }
        _ => {
            let row = [0x3E00, 0xC000, 0x3600];
            dst.write16(map, 0, std::array::from_fn(|i| crate::tensix::number::dst_of_fp16(row[i % 3])));
        }
    }
}

/// The first three data in L1 of a format, for formats without exponents of their own.
fn plain(format: u32) -> &'static [u8] {
    match format {
        // FP32 and TF32, FP16, BF16, FP8.
        0 | 4 => &[0, 0, 0xC0, 0x3F, 0, 0, 0, 0xC0, 0, 0, 0xC0, 0x3E],
        1 => &[0x00, 0x3E, 0x00, 0xC0, 0x00, 0x36],
        5 => &[0xC0, 0x3F, 0x00, 0xC0, 0xC0, 0x3E],
        _ => &[0x3E, 0xC0, 0x36],
    }
}

/// The exponent, and the first four data, of a format with one exponent: the largest is that of -2.
fn block(format: u32) -> (u8, &'static [u8]) {
    let exponent = if format & 4 == 0 { 16 } else { 128 };
    match format {
        // Of eight bits: 1.5 is 0x30, -2 is 0xC0, and 0.375 is 0x0C.
        2 | 6 => (exponent, &[0x30, 0xC0, 0x0C, 0x30]),
        // Of four: cut to 3, 0xC and nothing.
        3 | 7 => (exponent, &[0xC3, 0x30]),
        // Of two: nothing, 3, nothing, nothing.
        _ => (exponent, &[0b0000_1100]),
    }
}

#[test]
fn every_documented_conversion_keeps_numbers_that_fit() {
    // As what Dst holds: 32 bits, or 16 of BF16, or 16 of FP16; and what passes between the
    // conversions (FormatConversion.md, "Configuring the conversions").
    let passing = [(true, [0, 4, 5, 6].as_slice()), (false, &[5, 6, 4]), (false, &[1, 2])];
    for (case, (wide, between)) in passing.into_iter().enumerate() {
        for &from in between {
            for to in [0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 15] {
                if (from, to) == (0, 4) {
                    continue; // FP32 becomes TF32 by the early conversion only.
                }
                let mut b = set_up(from, from, to, wide);
                fill_with_numbers(&mut b, wide, case == 2);
                set(&mut b, cfg::THCON_SEC_REG1_EXP_SECTION_SIZE, 1);
                b.execute(T2, &[one_row().last(true).word()]);
                let out = l1(&b, 64);
                let is_block = [2, 3, 6, 7, 11, 15].contains(&to);
                if is_block {
                    let (exponent, data) = block(to);
                    assert_eq!((out[0], &out[16..16 + data.len()]), (exponent, data), "{from} to {to}, 32 bits {wide}");
                } else {
                    let (at, data) = (if to == 10 { 16 } else { 0 }, plain(to));
                    assert_eq!(&out[at..at + data.len()], data, "{from} to {to}, 32 bits {wide}");
                }
            }
        }
    }
}

#[test]
fn integers_are_packed_in_each_width() {
    let integer = |format: u32, wide: bool, values: [u32; 2]| {
        let mut b = set_up(format, format, format, wide);
        set(&mut b, cfg::THCON_SEC_REG1_EXP_SECTION_SIZE, 0);
        let map = crate::tensix::dst::RowMap::of(&b.t.coprocessor.config);
        let dst = &mut b.t.coprocessor.dst;
        match wide {
            true => dst.write32(map, 0, std::array::from_fn(|i| crate::tensix::number::dst_of_fp32(values[i % 2]))),
            false => dst.write16(map, 0, std::array::from_fn(|i| values[i % 2] as u16)),
        }
        b.execute(T2, &[one_row().last(true).word()]);
        l1(&b, 8).to_vec()
    };
    // Sign and magnitude: 300 and -5.
    let values = [300, 1 << 31 | 5];
    assert_eq!(integer(8, true, values), [44, 1, 0, 0, 5, 0, 0, 0x80]);
    assert_eq!(integer(14, true, values), [127, 0x85, 127, 0x85, 127, 0x85, 127, 0x85], "saturated");
    assert_eq!(integer(9, false, [0x1234, 0x8765]), [0x34, 0x12, 0x65, 0x87, 0x34, 0x12, 0x65, 0x87]);
}
