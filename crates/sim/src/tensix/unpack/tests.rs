//! Whole instructions: what real kernels' words do, waiting and time, and rows against data.

use super::super::bench::{Bench, CORES};
use super::super::number::{src_of_bf16, tf32_of_src};
use super::super::src::{A, B};
use super::*;
use crate::Fault;
use tilework_abi::tensix::cfg::Field;
use tilework_abi::tensix::{self as map, insn};

/// Encodings of formats.
const FP32: u32 = 0;
const BF16: u32 = 5;
const BFP8: u32 = 6;

const NOP: u32 = insn::Nop::build().word();
/// `UNPACR_NOP` that clears the bank and gives it away, as tt-llk's `UNP_ZEROSRC` with
/// `SET_DVALID`.
fn clear_and_give(unit: u32) -> u32 {
    UnpacrNop::build().which_unpacker(unit).set_dvalid(true).unpack_pop(CLEAR).word()
}

fn setc16(field: Field, value: u32) -> u32 {
    insn::Setc16::build().cfg_index(field.word.into()).new_value(value).word()
}

fn stallwait(block: u32, condition: u32) -> u32 {
    insn::Stallwait::build().block_mask(block).condition_mask(condition).word()
}

fn cleardvalid(which: u32) -> u32 {
    insn::Cleardvalid::build().clear_dvalid(which).word()
}

impl Bench {
    /// Sets a field of bank 0.
    fn configure(&mut self, field: Field, value: u32) {
        let addr = map::CFG_BASE + 4 * u32::from(field.word);
        let word = self.t.peek(CORES[0], addr).expect("configuration");
        self.t.store(CORES[0], addr, field.put(word, value), 0).expect("configuration");
    }

    /// What tt-llk's `configure_unpack_AB` and `_llk_unpack_A_init_` set for tiles of four faces:
    /// formats, dimensions of a face, strides and the end of X.
    fn like_llk(&mut self, from: u32, to: u32) {
        let datum = 4 >> (to & 3).min(2);
        for unit in 0..2 {
            let first = u32::from(cfg::THCON_SEC_REG0_TILEDESCRIPTOR.copy(unit).word);
            for (i, word) in [256 << 16 | 1 << 4 | from, 4 << 16 | 1, 0, 0].into_iter().enumerate() {
                let addr = map::CFG_BASE + 4 * (first + i as u32);
                self.t.store(CORES[0], addr, word, 0).expect("configuration");
            }
            self.configure(cfg::THCON_SEC_REG2_OUT_DATA_FORMAT.copy(unit), to);
            self.configure(cfg::THCON_SEC_REG2_THROTTLE_MODE.copy(unit), 2);
            self.configure(cfg::THCON_SEC_REG2_DISABLE_ZERO_COMPRESS_CNTX0.copy(unit), 1);
            self.configure(cfg::THCON_SEC_REG2_DISABLE_ZERO_COMPRESS_CNTX1.copy(unit), 1);
        }
        for field in [cfg::THCON_SEC_REG5_TILE_X_DIM_CNTX0, cfg::THCON_SEC_REG5_TILE_X_DIM_CNTX1] {
            self.configure(field, 256);
        }
        for field in [cfg::THCON_SEC_REG5_DEST_CNTX0_ADDRESS, cfg::THCON_SEC_REG5_DEST_CNTX1_ADDRESS] {
            self.configure(field, 4 * 16);
        }
        self.configure(cfg::UNP0_ADD_DEST_ADDR_CNTR_ADD_DEST_ADDR_CNTR, 1);
        for field in [cfg::UNP0_ADDR_CTRL_ZW_REG_1_ZSTRIDE, cfg::UNP1_ADDR_CTRL_ZW_REG_1_ZSTRIDE] {
            self.configure(field, 256 * datum);
        }
        let words = [
            setc16(cfg::SRCA_SET_BASE, 4),
            insn::Setadcxx::build().cnt_set_mask(3).x1_val(255).word(),
            insn::Setadczw::build().cnt_set_mask(3).bit_mask(15).word(),
        ];
        self.execute(0, &words);
    }

    /// Fills L1 from `at` with 16-bit data.
    fn put_halves(&mut self, at: usize, data: impl IntoIterator<Item = u16>) {
        for (i, datum) in data.into_iter().enumerate() {
            self.out.l1[at + 2 * i..][..2].copy_from_slice(&datum.to_le_bytes());
        }
    }

    /// A bank of SrcA or SrcB, by its number, through the matrix unit's eyes.
    fn rows(&self, which: usize) -> &[[u32; 16]] {
        self.t.coprocessor.src.0[which].rows()
    }

    fn unpackers(&self) -> &Unpackers {
        &self.t.coprocessor.unpackers
    }
}

/// Words of tt-llk's `_llk_unpack_A_`: `UNPACR` of a face with `OvrdThreadId` and `SetDatValid`,
/// Z += 1, and what gives SrcB to the matrix unit.
const UNPACK_FACE: u32 = Unpacr::build().ch0_z_inc(1).multi_context_mode(true).flip_src(true).last(true).word();
const UNPACK_FACE_B: u32 = UNPACK_FACE | 1 << 23;

#[test]
fn a_tile_of_bf16_goes_to_src_a_face_by_face() {
    let mut b = Bench::new();
    b.like_llk(BF16, BF16);
    // 0x4000, less the 16 bytes that are always skipped, in units of 16 bytes.
    b.configure(cfg::THCON_SEC_REG3_BASE_ADDRESS, 0x3FF);
    b.put_halves(0x4000, (0..1024).map(|i| 0x3F80 + i));
    assert_eq!(UNPACK_FACE, 0x42 << 24 | 1 << 15 | 1 << 7 | 1 << 6 | 1, "the public macro's word");
    assert_eq!(clear_and_give(1), 0x43 << 24 | 1 << 23 | 1 << 8 | 1);
    for face in 0..4u16 {
        b.execute(0, &[UNPACK_FACE, clear_and_give(1)]);
        for (i, row) in b.rows(A)[..16].iter().enumerate() {
            let expected = |j: usize| src_of_bf16(0x3F80 + face * 256 + (16 * i + j) as u16);
            assert_eq!(*row, std::array::from_fn(expected), "face {face}, row {i}");
        }
        assert_eq!(b.rows(B)[63], [0; 16]);
        assert_eq!(b.t.coprocessor.src.0[A].implied_format(), BF16);
        b.execute(1, &[cleardvalid(3)]);
    }
    let counters = b.t.coprocessor.adcs.get(0, 0, 0);
    assert_eq!((counters.z, counters.x), (4, 0));
}

#[test]
fn the_second_context_has_its_own_address() {
    let mut b = Bench::new();
    b.like_llk(FP32, 4);
    b.configure(cfg::THCON_SEC_REG3_BASE_CNTX1_ADDRESS, 0x7FF);
    b.out.l1[0x8000..0x8004].copy_from_slice(&0xBFC0_3FFFu32.to_le_bytes());
    b.execute(0, &[setc16(cfg::UNPACK_MISC_CFG_CFGCONTEXTOFFSET_0, 0x0101), UNPACK_FACE, UNPACK_FACE_B]);
    assert_eq!(tf32_of_src(b.rows(A)[0][0]), 0xBFC0_3FFF >> 13, "TF32: the low bits are cut off");
    assert_eq!(b.t.coprocessor.src.0[A].implied_format(), 4);
    b.configure(cfg::THCON_SEC_REG3_BASE_CNTX1_ADDRESS.copy(1), 0x7FF);
    b.execute(1, &[cleardvalid(3)]);
    b.execute(0, &[insn::Setadczw::build().cnt_set_mask(2).bit_mask(15).word(), UNPACK_FACE_B]);
    assert_eq!(tf32_of_src(b.rows(B)[0][0]), 0xBFC0_3FFF >> 13);
}

#[test]
fn a_face_can_be_transposed_or_come_in_strided_rows() {
    let mut b = Bench::new();
    b.like_llk(BF16, BF16);
    b.configure(cfg::THCON_SEC_REG3_BASE_ADDRESS, 0x3FF);
    b.put_halves(0x4000, (0..1024).map(|i| 0x3F80 + i));
    b.configure(cfg::THCON_SEC_REG2_HALOIZE_MODE, 1);
    b.execute(0, &[UNPACK_FACE]);
    for (i, row) in b.rows(A)[..16].iter().enumerate() {
        assert_eq!(*row, std::array::from_fn(|j| src_of_bf16(0x3F80 + (16 * j + i) as u16)));
    }
    b.execute(1, &[cleardvalid(1)]);
    // Tilize: half rows of a matrix 64 columns wide (128 bytes), 32 data side by side.
    b.configure(cfg::THCON_SEC_REG2_HALOIZE_MODE, 0);
    b.configure(cfg::THCON_SEC_REG2_TILEIZE_MODE, 1);
    b.configure(cfg::THCON_SEC_REG2_SHIFT_AMOUNT_CNTX0, 8);
    let clear = insn::Setadczw::build().cnt_set_mask(1).bit_mask(15).word();
    b.execute(0, &[clear, UNPACK_FACE]);
    for (i, row) in b.rows(A)[..16].iter().enumerate() {
        let first = 0x3F80 + (i / 2 * 64 + i % 2 * 16) as u16;
        assert_eq!(*row, std::array::from_fn(|j| src_of_bf16(first + j as u16)), "{i}");
    }
}

#[test]
fn fp32_can_go_to_dst() {
    let mut b = Bench::new();
    b.like_llk(FP32, FP32);
    b.configure(cfg::THCON_SEC_REG3_BASE_ADDRESS, 0x3FF);
    for i in 0..1024u32 {
        b.out.l1[0x4000 + 4 * i as usize..][..4].copy_from_slice(&(0x3F80_0000 + i).to_le_bytes());
    }
    let face = Unpacr::build().ch0_z_inc(1).ch1_z_inc(1).multi_context_mode(true).last(true).word();
    b.push(0, b.t.last_step() + 1, &[face]);
    assert!(b.run(10_000).unwrap_err().to_string().contains("do not go together"), "not to SrcA");
    let mut b2 = Bench::new();
    std::mem::swap(&mut b2.out, &mut b.out);
    b2.like_llk(FP32, FP32);
    b2.configure(cfg::THCON_SEC_REG3_BASE_ADDRESS, 0x3FF);
    // tt-llk's `set_dst_write_addr`: tile 1, behind the four rows that lie before Dst.
    b2.configure(cfg::THCON_SEC_REG2_UNPACK_IF_SEL_CNTX0, 1);
    b2.configure(cfg::THCON_SEC_REG5_DEST_CNTX0_ADDRESS, 16 * (4 + 64));
    b2.execute(0, &[setc16(cfg::SRCA_SET_BASE, 0), face, face, face, face]);
    let dst = &b2.t.coprocessor.dst;
    let map = super::super::dst::RowMap::of(&b2.t.coprocessor.config);
    for row in 0..64u32 {
        let expected = |i: usize| super::super::number::dst_of_fp32(0x3F80_0000 + 16 * row + i as u32);
        assert_eq!(dst.read32(map, 64 + row as usize), std::array::from_fn(expected));
    }
}

#[test]
fn blocks_take_their_exponents_from_before_the_data() {
    let mut b = Bench::new();
    b.like_llk(BFP8, BFP8);
    b.configure(cfg::THCON_SEC_REG3_BASE_ADDRESS, 0x3FF);
    // 64 exponents, then 1024 data: 1.0 with the exponents of rows.
    for row in 0..64 {
        b.out.l1[0x4000 + row] = 100 + row as u8;
    }
    b.out.l1[0x4040..0x4440].fill(0x40);
    b.execute(0, &[UNPACK_FACE, UNPACK_FACE]);
    b.execute(1, &[cleardvalid(1)]);
    for (i, row) in b.rows(A)[..16].iter().enumerate() {
        assert_eq!(*row, [116 + i as u32; 16], "the second face's exponents, mantissa zero");
    }
}

#[test]
fn an_unpacker_waits_for_its_bank_without_blocking_its_thread() {
    let mut b = Bench::new();
    b.like_llk(BF16, BF16);
    let at = b.t.last_step() + 10;
    // Two faces fill both banks; the third waits with the unpacker, the fourth behind it.
    b.push(0, at, &[UNPACK_FACE, UNPACK_FACE, UNPACK_FACE, UNPACK_FACE, NOP, UNPACK_FACE]);
    // 512 bytes at 128 a cycle are 4 cycles: faces start at 5 and 9, and threads see a cycle later
    // that one is done.
    assert_eq!(b.run(at + 100).unwrap(), [3, 5, 10, 14, 16].map(|i| at + i));
    assert!(b.unpackers().holds(0, 0) && !b.unpackers().holds(0, 1) && !b.unpackers().holds(1, 0));
    let why = b.t.explain(CORES[0])[0].0.clone();
    assert!(why.contains("UNPACR") && why.contains("a bank of SrcA back to unpacker 0"), "{why}");
    b.push(1, at + 200, &[cleardvalid(1)]);
    // The bank comes back at 203, the third face is done at 207, and the fifth passes.
    assert_eq!(b.run(at + 400).unwrap(), [203, 208].map(|i| at + i));
}

#[test]
fn stallwait_waits_for_what_is_in_an_unpacker() {
    let mut b = Bench::new();
    b.like_llk(BF16, BF16);
    let at = b.t.last_step() + 10;
    b.push(0, at, &[UNPACK_FACE, stallwait(0x1FF, 1 << 1), NOP]);
    // Passed at 3, latched at 5, done at 9; the threads see it at 10, and the block goes at 11.
    assert_eq!(b.run(at + 100).unwrap(), [3, 5, 11].map(|i| at + i));
    // The matrix unit waits for the flip by C7; unpacker 1 is idle for C2, and so is thread 1.
    b.execute(1, &[cleardvalid(1)]);
    let at = b.t.last_step() + 100;
    b.push(0, at, &[UNPACK_FACE, stallwait(0x1FF, 1 << 2), NOP]);
    b.push(1, at, &[stallwait(0x1FF, 1 << 7), NOP]);
    assert_eq!(b.run(at + 100).unwrap(), [3, 3, 5, 7, 11].map(|i| at + i));
}

#[test]
fn two_unpackers_share_l1() {
    let durations = |throttle: u32| {
        let mut b = Bench::new();
        b.like_llk(BF16, BF16);
        for unit in 0..2 {
            b.configure(cfg::THCON_SEC_REG2_THROTTLE_MODE.copy(unit), throttle);
        }
        let at = b.t.last_step() + 10;
        b.push(0, at, &[UNPACK_FACE, UNPACK_FACE_B, stallwait(0x1FF, 1 << 2), NOP]);
        let passed = b.run(at + 1000).unwrap();
        passed[3] - passed[0] - 6
    };
    // 512 bytes: at 32 a cycle, and at 64 or 32 beside the other unpacker's as many.
    assert_eq!([0, 1, 2].map(durations), [16, 16, 8]);
    assert_eq!(
        [[1, 1], [4, 1], [2, 2], [4, 2], [2, 4], [4, 4]].map(speeds),
        [[1, 1], [4, 1], [1, 1], [2, 1], [1, 2], [2, 2]]
    );
}

fn nop_fault(word: u32) -> Fault {
    let mut b = Bench::new();
    b.push(0, 0, &[word]);
    b.run(100).unwrap_err()
}

#[test]
fn unpacr_nop_fills_and_gives_banks() {
    let nop = || UnpacrNop::build().unpack_pop(CLEAR);
    for (word, datum) in [
        (nop().word(), 0),
        (nop().src_clr_val_ctrl(1).word(), 0x7_FFFF),
        (nop().src_clr_val_ctrl(2).word(), src_of_fp16(0x3C00)),
        (nop().src_clr_val_ctrl(2).clr_to1_fmt_ctrl(1).word(), src_of_bf16(0x3F80)),
        (nop().src_clr_val_ctrl(2).clr_to1_fmt_ctrl(2).word(), 1 << 8 | 16),
    ] {
        let mut b = Bench::new();
        b.t.coprocessor.src.0[B].all_mut().fill([9; 16]);
        b.execute(0, &[word | 1 << 23]);
        assert_eq!(b.rows(B), [[datum; 16]; 64]);
        assert!(b.t.coprocessor.src.0[B].all_mut()[64..].iter().all(|row| *row == [9; 16]), "the other bank stays");
        assert!(!b.t.coprocessor.src.0[B].matrix_may_read());
    }
    let mut b = Bench::new();
    b.configure(cfg::THCON_SEC_REG2_OUT_DATA_FORMAT, 3);
    b.execute(0, &[UnpacrNop::build().unpack_pop(3).enhanced(true).word()]);
    assert!(b.t.coprocessor.src.0[A].matrix_may_read(), "word 7 only gives the bank away");
    assert_eq!(b.t.coprocessor.src.0[A].implied_format(), 3);
    // Like UNPACR the clear would go to the second bank at once; it waits for the matrix unit's.
    let at = b.t.last_step() + 1;
    b.push(0, at, &[nop().word(), stallwait(0x1FF, 2), NOP]);
    assert_eq!(b.run(at + 100).unwrap().len(), 2);
    b.push(1, at + 200, &[cleardvalid(1)]);
    assert_eq!(b.run(at + 400).unwrap(), [203, 206].map(|i| at + i));
    b.execute(0, &[nop().stall_clr_cntrl(true).set_dvalid(true).word()]);
    assert!(b.t.coprocessor.src.0[A].matrix_may_read());
    // What is not supported names itself.
    let faults = [
        (nop().bank_clr_ctrl(true).word(), FaultClass::UnsupportedFunctionality, "both banks"),
        (nop().src_clr_val_ctrl(3).word(), FaultClass::MissingSpecification, "UNP_NOP_REG_CLR_VAL"),
        (UnpacrNop::build().word(), FaultClass::UnsupportedFunctionality, "overlay"),
        (UnpacrNop::build().unpack_pop(3).stream_id(5).word(), FaultClass::UnsupportedFunctionality, "stream"),
        (
            UnpacrNop::build().unpack_pop(3).enhanced(true).msg_clr_cnt11(5).word(),
            FaultClass::UnsupportedFunctionality,
            "register",
        ),
    ];
    for (word, class, what) in faults {
        let fault = nop_fault(word);
        assert_eq!(fault.class, class, "{fault}");
        assert!(fault.to_string().contains(what) && fault.to_string().contains("UNPACR_NOP"), "{fault}");
    }
}

#[test]
fn context_counters_count_up_to_the_number_of_contexts() {
    let mut b = Bench::new();
    b.like_llk(BF16, BF16);
    b.configure(cfg::THCON_SEC_REG2_CONTEXT_COUNT, 1);
    b.configure(cfg::THCON_SEC_REG3_BASE_CNTX1_ADDRESS, 0x7FF);
    b.put_halves(0x8000, [0x4000]);
    let counted = UNPACK_FACE | Unpacr::build().use_context_counter(true).word();
    let increment = Unpacr::build().cfg_context_cnt_inc(1).word();
    b.execute(0, &[increment, insn::Setadczw::build().cnt_set_mask(1).bit_mask(15).word(), counted]);
    assert_eq!(b.rows(A)[0][0], src_of_bf16(0x4000), "context 1");
    assert_eq!(b.unpackers().units[0].counters, [0; 3], "back at 0");
    b.execute(0, &[increment]);
    assert_eq!(b.unpackers().units[0].counters, [1, 0, 0]);
    b.execute(
        0,
        &[Unpacr::build().search_cache_flush(true).word(), setc16(cfg::UNPACK_MISC_CFG_CFGCONTEXTOFFSET_0, 0)],
    );
    assert_eq!(b.unpackers().units[0].counters, [0; 3], "SETC16 resets them");
}

#[test]
fn soft_reset_aborts_what_is_in_flight() {
    let mut b = Bench::new();
    b.like_llk(BF16, BF16);
    b.execute(0, &[UNPACK_FACE, UNPACK_FACE, UNPACK_FACE]);
    assert!(b.unpackers().holds(0, 0));
    assert!(b.t.explain(CORES[0])[0].0.contains("back to unpacker 0"), "nothing is at the gate");
    let at = b.t.last_step() + 10;
    b.t.soft_reset(0x83, at);
    assert!(!b.unpackers().holds(0, 0));
    b.push(0, at, &[UNPACK_FACE_B]);
    assert_eq!(b.run(at + 100).unwrap(), []);
    b.t.soft_reset(0, at + 200);
    assert_eq!(b.run(at + 400).unwrap(), [at + 200]);
}

#[test]
fn what_lies_behind_l1_or_is_not_built_faults_by_name() {
    let fault = |change: fn(&mut Bench), word: u32| {
        let mut b = Bench::new();
        b.like_llk(BF16, BF16);
        change(&mut b);
        b.push(0, 1000, &[word]);
        let fault = b.run(10_000).unwrap_err();
        (fault.class, fault.to_string())
    };
    type Change = fn(&mut Bench);
    let cases: [(Change, u32, FaultClass, &str); 7] = [
        (
            |b| b.configure(cfg::THCON_SEC_REG3_BASE_ADDRESS, 0x1_7FF0),
            UNPACK_FACE,
            FaultClass::UndefinedBehavior,
            "end of L1",
        ),
        (|_| (), UNPACK_FACE | 1 << 5, FaultClass::UnimplementedFunctionality, "rows of SrcA"),
        (|_| (), UNPACK_FACE_B | 1 << 5, FaultClass::UnimplementedFunctionality, "other than one row"),
        (
            |b| b.configure(cfg::THCON_SEC_REG2_METADATA_X_END, 1),
            UNPACK_FACE,
            FaultClass::UnimplementedFunctionality,
            "metadata",
        ),
        (|_| (), UNPACK_FACE | 3 << 8, FaultClass::UndefinedBehavior, "fourth thread"),
        (|_| (), UNPACK_FACE_B | 2 << 10, FaultClass::UndefinedBehavior, "context"),
        (
            |b| b.configure(cfg::THCON_SEC_REG2_OUT_DATA_FORMAT, 1),
            UNPACK_FACE,
            FaultClass::UndefinedBehavior,
            "do not go together",
        ),
    ];
    for (change, word, class, what) in cases {
        let (found, text) = fault(change, word);
        assert_eq!(found, class, "{text}");
        assert!(text.contains(what) && text.contains("UNPACR"), "{text}");
    }
}
