//! The packer with the words that stock set-up code pushes.

use super::*;
use crate::tensix::bench::Bench;
use crate::tensix::dst::RowMap;
use crate::tensix::number::{dst_of_bf16, dst_of_fp32};
use tilework_abi::tensix::cfg::{Field, Space};
use tilework_abi::tensix::insn::{self, Setadcxx, Setadcxy, Setadczw, Setc16};

/// The pack thread.
pub(super) const T2: usize = 2;
/// Where the packer writes.
pub(super) const OUT: u32 = 0x4_0000;
const FP32: u32 = 0;
pub(super) const BF16: u32 = 5;
pub(super) const BFP8: u32 = 6;

/// Sets a field as the pack thread sees it.
pub(super) fn set(b: &mut Bench, field: Field, value: u32) {
    let config = &mut b.t.coprocessor.config;
    let index = u32::from(field.word);
    match field.space {
        Space::Bank => {
            let word = field.put(config.get(T2, index).unwrap(), value);
            config.set(T2, index, word).unwrap();
        }
        Space::Thread => {
            let word = field.put(config.thread_word(T2, index), value) as u16;
            config.set_thread(T2, index, word).unwrap();
        }
    }
}

/// A bench as `configure_pack`, `_llk_pack_init_` and `_llk_pack_dest_init_` of the public LLK
/// leave the coprocessor (`cpack_common.h`, `llk_pack.h`, `llk_pack_common.h` for Blackhole).
pub(super) fn set_up(intermediate: u32, from: u32, to: u32, read_32: bool) -> Bench {
    let mut b = Bench::new();
    let x_stride = [4, 2, 1, 1][(from & 3) as usize];
    for (field, value) in [
        (cfg::THCON_SEC_REG1_EXP_SECTION_SIZE, 4),
        (cfg::THCON_SEC_REG1_L1_DEST_ADDR, 1 << 31 | (OUT / 16 - 1)),
        (cfg::THCON_SEC_REG1_DISABLE_ZERO_COMPRESS, 1),
        (cfg::THCON_SEC_REG1_OUT_DATA_FORMAT, to),
        (cfg::THCON_SEC_REG1_IN_DATA_FORMAT, from),
        (cfg::ALU_FORMAT_SPEC_REG2_DSTACC, intermediate),
        (cfg::PCK_DEST_RD_CTRL_READ_32B_DATA, read_32.into()),
        (cfg::PCK0_ADDR_CTRL_XY_REG_0_YSTRIDE, 16 * x_stride),
        (cfg::PCK0_ADDR_CTRL_ZW_REG_0_ZSTRIDE, 256 * x_stride),
        (cfg::PCK0_ADDR_CTRL_ZW_REG_0_WSTRIDE, 1024 * x_stride),
        (cfg::PCK_EDGE_OFFSET_SEC_MASK, 0xFFFF),
        (cfg::PACK_COUNTERS_SEC_PACK_READS_PER_XY_PLANE, 16),
    ] {
        set(&mut b, field, value);
    }
    // Rows += 4; everything clear; next face.
    let mods = [4 | 4 << 6, 1 << 5 | 1 << 11 | 1 << 13, 1 << 5 | 4 << 6 | 1 << 12];
    let mut words: Vec<u32> = (37..).zip(mods).map(|(i, m)| Setc16::build().cfg_index(i).new_value(m).word()).collect();
    words.push(Setadcxy::build().cnt_set_mask(4).bit_mask(0b1011).word());
    words.push(Setadczw::build().cnt_set_mask(4).bit_mask(0b1111).word());
    words.push(Setadcxx::build().cnt_set_mask(4).x1_val(15).word());
    b.execute(T2, &words);
    b
}

/// The `PACR`s of a tile of four faces, as the MOP of `_llk_pack_mop_config_` expands.
pub(super) fn tile() -> Vec<u32> {
    let pacr = |i: u32| match i {
        15 => Pacr::build().addr_mod(1).last(true),
        3 | 7 | 11 => Pacr::build().addr_mod(2),
        _ => Pacr::build(),
    };
    (0..16).map(|i| pacr(i).word()).collect()
}

pub(super) fn l1(b: &Bench, len: usize) -> &[u8] {
    &b.out.l1[OUT as usize..][..len]
}

pub(super) fn write_bf16(b: &mut Bench, row: usize, values: [u16; 16]) {
    let map = RowMap::of(&b.t.coprocessor.config);
    b.t.coprocessor.dst.write16(map, row, values.map(dst_of_bf16));
}

pub(super) fn write_fp32(b: &mut Bench, row: usize, values: [u32; 16]) {
    let map = RowMap::of(&b.t.coprocessor.config);
    b.t.coprocessor.dst.write32(map, row, values.map(dst_of_fp32));
}

/// What a fault says.
pub(super) fn refusal(b: &mut Bench, word: u32) -> String {
    let at = b.t.last_step() + 1;
    b.push(T2, at, &[word]);
    b.run(at + 1000).unwrap_err().to_string()
}

/// A value for each datum of a tile in Dst.
fn value(i: usize) -> u16 {
    0x3F80 + (i as u16 * 5) % 0x2000
}

#[test]
fn a_tile_of_bf16_goes_from_dst_to_l1() {
    let mut b = set_up(BF16, BF16, BF16, false);
    // The second tile of Dst.
    (0..64).for_each(|row| write_bf16(&mut b, 64 + row, std::array::from_fn(|c| value(16 * row + c))));
    b.execute(T2, &[insn::Setadc::build().cnt_set_mask(4).xyzw(3).new_value(1).word()]);
    let passed = b.execute(T2, &tile());
    let expected: Vec<u8> = (0..1024).flat_map(|i| value(i).to_le_bytes()).collect();
    assert_eq!(l1(&b, 2048), expected);
    assert_eq!(l1(&b, 2064)[2048..], [0; 16], "and not more");
    // Each row of 32 bytes takes its interface one cycle.
    assert_eq!(passed[15] - passed[0], 15);
    let counters = b.t.coprocessor.adcs.packer(T2);
    assert_eq!((counters.src, counters.dst[0]), ([0, 0, 0, 1], 15), "ready for the next tile");
    assert_eq!(b.t.coprocessor.packer.largest_exponent(), 127 + 0x27);
}

#[test]
fn a_wait_for_the_packer_ends_with_its_pipeline() {
    let mut b = set_up(BF16, BF16, BF16, false);
    let wait = insn::Stallwait::build().block_mask(1 << 1).condition_mask(1 << 3);
    let post = insn::Sempost::build().semaphore_mask(2);
    let passed = b.execute(T2, &[tile()[15], wait.word(), post.word()]);
    assert_eq!(passed[2] - passed[0], 1 + timing::TENSIX_PACK + 1);
}

#[test]
fn a_tile_of_bfp8_has_its_exponents_first() {
    let mut b = set_up(BF16, BF16, BFP8, false);
    for row in 0..64 {
        write_bf16(&mut b, row, std::array::from_fn(|c| if c == 0 { 0x3F80 + ((row as u16) << 7) } else { 0xBF80 }));
    }
    b.execute(T2, &tile());
    let out = l1(&b, 64 + 1024);
    assert!((0..64).all(|row| out[row] == 127 + row as u8));
    let row = |row: usize| &out[64 + 16 * row..][..3];
    assert_eq!(
        (row(0), row(1), row(6), row(63)),
        (&[0x40, 0xC0, 0xC0][..], &[0x40, 0xA0, 0xA0][..], &[0x40, 0x81, 0x81][..], &[0x40, 0, 0][..])
    );
}

#[test]
fn fp32_stays_or_becomes_bf16() {
    let values = [0x3F80_8000, 0x3F80_7FFF, 0x8000_0000, 0x0000_0001, 0x7F80_0001, 0xFF7F_FFFF];
    let row = std::array::from_fn(|i| values[i % values.len()]);
    let mut b = set_up(FP32, FP32, FP32, true);
    write_fp32(&mut b, 2, row);
    b.execute(T2, &tile());
    let expected: Vec<u8> = row.iter().flat_map(|x: &u32| x.to_le_bytes()).collect();
    assert_eq!(l1(&b, 192)[128..], expected);
    let mut b = set_up(BF16, BF16, BF16, true);
    write_fp32(&mut b, 2, row);
    b.execute(T2, &tile());
    let rounded = [0x3F81u16, 0x3F80, 0, 0, 0x7F80, 0xFF80];
    let expected: Vec<u8> = (0..16).flat_map(|i| rounded[i % 6].to_le_bytes()).collect();
    assert_eq!(l1(&b, 96)[64..], expected);
}

#[test]
fn read_interfaces_choose_rows_from_the_first_one_on() {
    let mut b = set_up(BF16, BF16, BF16, false);
    (0..64).for_each(|row| write_bf16(&mut b, row, [0x3F80 + row as u16; 16]));
    let rows = |b: &Bench, n: usize| -> Vec<u16> {
        l1(b, 32 * n).chunks(32).map(|row| u16::from_le_bytes([row[0], row[1]]) - 0x3F80).collect()
    };
    // Row by row, as `_llk_pack_rows_` does.
    b.execute(T2, &[Setc16::build().cfg_index(37).new_value(1).word()]);
    let one = Pacr::build().read_intf_sel(1);
    b.execute(T2, &[one.word(), one.word(), one.word(), one.word(), one.word(), one.last(true).addr_mod(1).word()]);
    assert_eq!(rows(&b, 6), [0, 1, 2, 3, 4, 5]);
    for (mask, expected) in [(0b101, vec![0, 2]), (0b1010, vec![1, 3]), (0b111, vec![0, 1, 2]), (0, vec![0, 1, 2, 3])] {
        b.execute(T2, &[Pacr::build().read_intf_sel(mask).last(true).addr_mod(1).word()]);
        assert_eq!(rows(&b, expected.len()), expected, "{mask:#b}");
    }
    b.execute(T2, &[one.word()]);
    assert!(refusal(&mut b, Pacr::build().word()).contains("outside a group"));
}

#[test]
fn the_strided_mode_reads_rows_sixteen_apart() {
    let mut b = set_up(BF16, BF16, BF16, false);
    assert!(refusal(&mut b, Pacr::build().dst_access_mode(true).word()).contains("swizzle_32b"));
    let mut b = set_up(BF16, BF16, BF16, false);
    set(&mut b, cfg::DEST_ACCESS_CFG_REMAP_ADDRS, 1);
    set(&mut b, cfg::DEST_ACCESS_CFG_SWIZZLE_32B, 1);
    (0..64).for_each(|row| write_bf16(&mut b, row, [0x3F80 + row as u16; 16]));
    b.execute(T2, &[Setc16::build().cfg_index(37).new_value(1).word()]);
    let two = Pacr::build().dst_access_mode(true).read_intf_sel(3);
    let all = Pacr::build().dst_access_mode(true).last(true);
    b.execute(T2, &[two.word(), two.word(), all.word()]);
    let rows = l1(&b, 32 * 8).chunks(32).map(|row| u16::from_le_bytes([row[0], row[1]]) - 0x3F80);
    assert_eq!(rows.collect::<Vec<_>>(), [0, 16, 1, 17, 2, 18, 34, 50]);
}

#[test]
fn edge_masks_follow_the_tile_position() {
    let mut b = set_up(BF16, BF16, BF16, false);
    (0..64).for_each(|row| write_bf16(&mut b, row, [0x3F80; 16]));
    // As for a reduction of columns: mask 1 for the first row of each face, mask 0 for others.
    set(&mut b, cfg::PCK_EDGE_OFFSET_SEC_MASK, 0);
    set(&mut b, cfg::PCK_EDGE_OFFSET_SEC_MASK.copy(1), 0x0003);
    set(&mut b, cfg::PCK_EDGE_TILE_ROW_SET_SELECT_SELECT, 1);
    set(&mut b, cfg::TILE_ROW_SET_MAPPING_1_ROW_SET_MAPPING_0, 1);
    b.execute(T2, &tile());
    for (row, bytes) in l1(&b, 2048).chunks(32).enumerate() {
        let kept = if row % 16 == 0 { [0x80, 0x3F, 0x80, 0x3F] } else { [0; 4] };
        assert_eq!((&bytes[..4], bytes[4..].iter().any(|x| *x != 0)), (&kept[..], false), "row {row}");
    }
    set(&mut b, cfg::PCK_EDGE_MODE_MODE, 1);
    b.execute(T2, &tile());
    assert_eq!(l1(&b, 36)[..6], [0x80, 0x3F, 0x80, 0x3F, 0x80, 0xFF]);
}

#[test]
fn output_counters_count_bytes_within_their_window() {
    let mut b = set_up(BF16, BF16, BF16, false);
    (0..16).for_each(|row| write_bf16(&mut b, row, [0x3F80 + row as u16; 16]));
    // Rows one by one, as `llk_pack_fast_untilize.h` writes them into a matrix of five tiles: 320
    // bytes further each time, of which the last four bits do not count.
    set(&mut b, cfg::PCK0_ADDR_CTRL_XY_REG_1_YSTRIDE, 320 + 9);
    set(&mut b, cfg::ADDR_MOD_PACK_SEC_YSRCINCR.copy(3), 1);
    set(&mut b, cfg::ADDR_MOD_PACK_SEC_YDSTINCR.copy(3), 1);
    let row = Pacr::build().read_intf_sel(1).last(true).addr_mod(3).word();
    b.execute(T2, &[row; 3]);
    for (row, at) in [0, 320, 656].into_iter().enumerate() {
        let bytes = &l1(&b, 1024)[at..at + 32];
        assert_eq!(bytes, [(0x3F80 + row as u16).to_le_bytes(); 16].as_flattened(), "row {row}");
    }
    // What reaches beyond the window begins again.
    set(&mut b, cfg::PCK0_ADDR_CTRL_XY_REG_1_YSTRIDE, 0x8000);
    set(&mut b, cfg::PCK0_ADDR_BASE_REG_1_BASE, 0x2_8000 + 64);
    b.execute(T2, &[row]);
    assert_eq!(l1(&b, 96)[64..], [0x3F83u16.to_le_bytes(); 16].as_flattened()[..]);
}

#[test]
fn planes_of_one_row_end_within_an_instruction() {
    let mut b = set_up(BF16, BF16, BF16, false);
    (0..64).for_each(|row| write_bf16(&mut b, row, [0x3F80; 16]));
    // Two groups of four rows, each row a plane of its own.
    set(&mut b, cfg::PACK_COUNTERS_SEC_PACK_READS_PER_XY_PLANE, 1);
    b.execute(T2, &[Pacr::build().word(), Pacr::build().last(true).addr_mod(1).word()]);
    // The next tile begins at the first row of a plane, and has a mask for it.
    set(&mut b, cfg::PACK_COUNTERS_SEC_PACK_READS_PER_XY_PLANE, 16);
    set(&mut b, cfg::PCK_EDGE_OFFSET_SEC_MASK, 0);
    set(&mut b, cfg::PCK_EDGE_OFFSET_SEC_MASK.copy(1), 0xFFFF);
    set(&mut b, cfg::PCK_EDGE_TILE_ROW_SET_SELECT_SELECT, 1);
    set(&mut b, cfg::TILE_ROW_SET_MAPPING_1_ROW_SET_MAPPING_0, 1);
    b.execute(T2, &tile());
    for (row, bytes) in l1(&b, 2048).chunks(32).enumerate() {
        assert_eq!(bytes.iter().any(|x| *x != 0), row % 16 == 0, "row {row}");
    }
}

#[test]
fn zero_writes_and_relu() {
    let mut b = set_up(BF16, BF16, BF16, false);
    let values =
        [0x0000, 0x8000, 0x3F80, 0xBF80, 0x4000, 0x4040, 0xC080, 0x7F80, 0xFF80, 0x7F81, 0xFF81, 0x4000, 0, 0, 0, 0];
    write_bf16(&mut b, 0, values);
    let one = Pacr::build().read_intf_sel(1).last(true).addr_mod(1);
    let run = |b: &mut Bench| {
        b.execute(T2, &[one.word()]);
        std::array::from_fn::<u16, 11, _>(|i| u16::from_le_bytes([l1(b, 32)[2 * i], l1(b, 32)[2 * i + 1]]))
    };
    assert_eq!(run(&mut b), [0, 0, 0x3F80, 0xBF80, 0x4000, 0x4040, 0xC080, 0x7F80, 0xFF80, 0x7F80, 0xFF80]);
    set(&mut b, cfg::STACC_RELU_RELUTHRESHOLD, 0x4000);
    for (mode, expected) in [
        (1, [0, 0, 0x3F80, 0, 0x4000, 0x4040, 0, 0x7F80, 0, 0x7F80, 0]),
        (2, [0, 0, 0, 0, 0, 0x4040, 0, 0x7F80, 0, 0x7F80, 0]),
        (3, [0, 0, 0x3F80, 0, 0x4000, 0x4000, 0, 0x4000, 0, 0x4000, 0]),
    ] {
        set(&mut b, cfg::STACC_RELU_APPLYRELU, mode);
        assert_eq!(run(&mut b), expected, "mode {mode}");
    }
    b.execute(T2, &[one.zero_write(true).word()]);
    assert_eq!(l1(&b, 32), [0; 32]);
    set(&mut b, cfg::STACC_RELU_RELUTHRESHOLD, 0x8000);
    assert!(refusal(&mut b, one.word()).contains("ReluThreshold"));
}

#[test]
fn l1_accumulates() {
    let mut b = set_up(BF16, BF16, BF16, false);
    write_bf16(&mut b, 0, [0x3F80; 16]);
    b.out.l1[OUT as usize..][..2].copy_from_slice(&0x4000u16.to_le_bytes());
    set(&mut b, cfg::THCON_SEC_REG1_PACK_L1_ACC, 1);
    let one = Pacr::build().read_intf_sel(1).last(true).addr_mod(1).word();
    let passed = b.execute(T2, &[one, one]);
    assert_eq!(l1(&b, 4), [0x80, 0x40, 0x00, 0x40], "2 + 1 + 1, 0 + 1 + 1");
    assert_eq!(passed[1] - passed[0], timing::PACK_ACCUMULATE);
    set(&mut b, cfg::THCON_SEC_REG1_OUT_DATA_FORMAT, BFP8);
    assert!(refusal(&mut b, one).contains("cannot add"));
}

#[test]
fn a_flush_writes_what_is_held_and_the_next_tile_starts_afresh() {
    let mut b = set_up(BF16, BF16, BF16, false);
    write_bf16(&mut b, 0, std::array::from_fn(|c| 0x4000 + c as u16));
    // Three data of a row.
    b.execute(T2, &[Setadcxx::build().cnt_set_mask(4).x1_val(2).word()]);
    let one = Pacr::build().read_intf_sel(1).addr_mod(1);
    b.execute(T2, &[one.word()]);
    assert_eq!(l1(&b, 16), [0; 16], "not a whole unit yet");
    b.execute(T2, &[one.flush(true).word()]);
    assert_eq!(l1(&b, 16), [0, 0x40, 1, 0x40, 2, 0x40, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    set(&mut b, cfg::THCON_SEC_REG1_L1_DEST_ADDR, OUT / 16 + 9);
    b.execute(T2, &[one.last(true).word()]);
    assert_eq!(b.word(OUT as usize + 160), 0x4001_4000);
}

#[test]
fn what_is_not_documented_is_refused_by_name() {
    let one = || Pacr::build().last(true);
    for (insn, what) in [
        (one().row_pad_zero(4), "RowPadZero of 4"),
        (one().cfg_context(1), "CfgContext"),
        (one().ctxt_ctrl(1), "CtxtCtrl"),
        (one().ctxt_ctrl(3), "CtxtCtrl"),
    ] {
        let mut b = set_up(BF16, BF16, BF16, false);
        assert!(refusal(&mut b, insn.word()).contains(what));
    }
    for (field, value, what) in [
        (cfg::THCON_SEC_REG1_SOURCE_INTERFACE_SELECTION, 1, "reads L1"),
        (cfg::THCON_SEC_REG1_ALL_PACK_DISABLE_ZERO_COMPRESS_OVRD, 1, "All_pack_disable_zero_compress"),
        (cfg::PACK_COUNTERS_SEC_PACK_XYS_PER_TILE, 1, "pack_xys_per_tile"),
        (cfg::THCON_SEC_REG1_OUT_DATA_FORMAT, 8, "late format conversion"),
        (cfg::THCON_SEC_REG1_IN_DATA_FORMAT, 7, "only L1 has"),
        (cfg::THCON_SEC_REG1_IN_DATA_FORMAT, 9, "not what the early"),
        (cfg::ALU_FORMAT_SPEC_REG2_DSTACC, 8, "early format conversion"),
        (cfg::THCON_SEC_REG1_L1_DEST_ADDR, 0x1_7FFF, "past the end of L1"),
    ] {
        let mut b = set_up(BF16, BF16, BF16, false);
        set(&mut b, field, value);
        let said = refusal(&mut b, one().word());
        assert!(said.contains(what), "{said}");
    }
}

#[test]
fn exponents_are_counted() {
    let mut b = set_up(BF16, BF16, BF16, false);
    write_bf16(&mut b, 0, std::array::from_fn(|c| if c < 3 { 0x4180 } else { 0x3F80 }));
    let read = insn::Setdmareg::build().set_signals_mode(true);
    let one = Pacr::build().read_intf_sel(1).last(true).addr_mod(1).word();
    let largest = read.input_source(9).result_size(1).word();
    b.execute(T2, &[one, largest]);
    assert_eq!(b.gpr(T2, 0), 0x83);
    let half = read.input_source(6).result_size(2).word();
    b.execute(T2, &[half]);
    assert_eq!([0, 1, 2, 3].map(|i| b.gpr(T2, i)), [0; 4], "bins only count when that is enabled");
    // Any thread's setting will do.
    let enable = cfg::ENABLE_ACC_STATS_ENABLE;
    b.t.coprocessor.config.set_thread(0, enable.word.into(), 1).unwrap();
    b.execute(T2, &[one, half]);
    assert_eq!([0, 1, 2, 3].map(|i| b.gpr(T2, i)), [3 << 24, 0, 0, 0], "exponent 0x83 is in bin 3");
    b.execute(T2, &[read.input_source(7).result_size(2).word()]);
    assert_eq!([0, 1, 2, 3].map(|i| b.gpr(T2, i)), [0, 0, 0, 13 << 24], "and 0x7F in bin 31");
    b.execute(T2, &[insn::Clrexphist::build().word(), half, largest]);
    assert_eq!(b.gpr(T2, 0), 0);
}

#[test]
fn reset_drops_what_is_held() {
    let mut b = set_up(BF16, BF16, BF16, false);
    write_bf16(&mut b, 0, [0x4000; 16]);
    let one = Pacr::build().read_intf_sel(1).addr_mod(1);
    b.execute(T2, &[Setadcxx::build().cnt_set_mask(4).x1_val(2).word(), one.word()]);
    let at = b.t.last_step() + 1;
    b.t.soft_reset(1 << 2, at);
    b.push(T2, at, &[one.flush(true).word()]);
    assert!(b.run(at + 100).unwrap().is_empty(), "it waits");
    b.t.soft_reset(0, at + 100);
    assert_eq!(b.run(at + 200).unwrap().len(), 1);
    assert_eq!(l1(&b, 16), [0; 16]);
}

#[test]
fn the_short_way_of_bf16_is_the_same_as_the_stages() {
    let run = |counts: u16| {
        let mut b = set_up(BF16, BF16, BF16, false);
        for row in 0..64 {
            write_bf16(&mut b, row, std::array::from_fn(|c| (row as u16 * 16 + c as u16).wrapping_mul(0x9E37)));
        }
        // A packer that counts exponents goes through all stages.
        b.t.coprocessor.config.set_thread(0, cfg::ENABLE_ACC_STATS_ENABLE.word.into(), counts).unwrap();
        b.execute(T2, &tile());
        (l1(&b, 2048).to_vec(), b.t.coprocessor.packer.largest_exponent())
    };
    assert_eq!(run(0), run(1));
}

#[test]
fn a_pack_waits_for_what_the_matrix_unit_writes() {
    let mut b = set_up(BF16, BF16, BF16, false);
    let pass = |b: &mut Bench, row: u32| {
        let mova2d = insn::Movdbga2d::build().dst_row(row).word();
        let y = Setadcxy::build().cnt_set_mask(4).ch0_y(4).bit_mask(0b10).word();
        let passed = b.execute(T2, &[mova2d, y, Pacr::build().last(true).addr_mod(1).word()]);
        passed[2] - passed[0]
    };
    assert_eq!(pass(&mut b, 0), timing::DST_READABLE);
    assert_eq!(pass(&mut b, 8), 2, "another block");
}

#[test]
fn packs_and_the_matrix_unit_wait_for_what_the_vector_unit_stores() {
    let mut b = set_up(BF16, BF16, BF16, false);
    let store = insn::Sfpstore::build().mod0(6).word();
    let one_row = Pacr::build().read_intf_sel(1).last(true).word();
    let passed = b.execute(T2, &[store, one_row]);
    assert_eq!(passed[1] - passed[0], timing::DST_READABLE);
    for (row, gap) in [(0, timing::DST_READABLE), (8, 1)] {
        let passed = b.execute(T2, &[store, insn::Movd2b::build().dst_row(row).word()]);
        assert_eq!(passed[1] - passed[0], gap, "row {row}");
    }
}

#[test]
fn tdma_registers_see_the_packer() {
    use crate::tensix::bench::CORES;
    use tilework_abi::tensix::{TDMA_BASE, tdma};
    let mut b = set_up(BF16, BF16, BF16, false);
    write_bf16(&mut b, 0, [0x4000; 16]);
    let load = |b: &mut Bench, reg, at| b.t.load(CORES[2], TDMA_BASE + reg, at).map(|load| load.value);
    assert_eq!(load(&mut b, tdma::PACKED_SIZE, 0), Ok(0));
    // An offset of two units, which the configuration adds.
    b.t.store(CORES[2], TDMA_BASE + tdma::ACC_PACKED_SIZE, 1 << 16 | 2, 0).unwrap();
    set(&mut b, cfg::THCON_SEC_REG1_ADD_L1_DEST_ADDR_OFFSET, 1);
    let passed = b.execute(T2, &[Pacr::build().read_intf_sel(1).last(true).word()])[0];
    assert_eq!((b.word(OUT as usize), b.word(OUT as usize + 32)), (0, 0x4000_4000));
    assert_eq!(load(&mut b, tdma::SCALERS, passed + 1), Ok(1 << 27));
    assert_eq!(load(&mut b, tdma::SCALERS, passed + 100), Ok(0));
    // A row of 32 bytes, for thread 2; the next one, of three rows, has a header.
    let sizes = |b: &mut Bench, at| {
        [0, 0x40, 0x80].map(|thread| [tdma::PACKED_SIZE, tdma::ACC_PACKED_SIZE].map(|reg| load(b, reg + thread, at)))
    };
    assert_eq!(sizes(&mut b, passed + 100), [[Ok(0), Ok(0)], [Ok(0), Ok(0)], [Ok(2), Ok(2)]]);
    set(&mut b, cfg::THCON_SEC_REG1_ADD_TILE_HEADER_SIZE, 1);
    let one = Pacr::build().read_intf_sel(1);
    b.execute(T2, &[one.word(), one.word(), one.last(true).addr_mod(1).word()]);
    assert_eq!(sizes(&mut b, 10_000)[2], [Ok(6), Ok(2 + 6 + 1)]);
    // The same by SETDMAREG: sizes, and a header's size with itself, format and flag.
    let special = insn::Setdmareg::build().set_signals_mode(true).result_size(2);
    b.execute(T2, &[special.word(), special.input_source(2).result_half_reg(8).word()]);
    let gprs = [0, 1, 2, 3, 4, 5, 6, 7].map(|i| b.gpr(T2, i));
    assert_eq!(gprs, [9 << 16 | 6, 0, 0, 0, 7, BF16 << 16 | 1 << 20, 0, 0]);
    b.t.store(CORES[2], TDMA_BASE + tdma::ACC_PACKED_SIZE, 1 << 16, 20_000).unwrap();
    assert_eq!(sizes(&mut b, 20_000)[2], [Ok(6), Ok(0)]);
    b.t.soft_reset(1 << 2, 30_000);
    assert_eq!(sizes(&mut b, 30_000)[2], [Ok(0), Ok(0)]);
}
