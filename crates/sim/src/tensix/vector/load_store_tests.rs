//! Tests of loads and stores.

use super::super::tests::{Bench, lane_values};
use super::*;
use crate::Cycle;
use crate::tensix::number::bf16_of_dst;
use tilework_abi::tensix::insn::{Sfpconfig, Sfpencc};

fn load(vd: u32, mod0: u32, imm10: u32) -> u32 {
    Sfpload::build().vd(vd).mod0(mod0).imm10(imm10).word()
}
fn store(vd: u32, mod0: u32, imm10: u32) -> u32 {
    Sfpstore::build().vd(vd).mod0(mod0).imm10(imm10).word()
}
fn lane_config(bits: u32) -> u32 {
    Sfpconfig::build().imm16(bits).vd(15).mod1(1).word()
}
/// What a store of `x` leaves in a 16-bit row.
fn stored16(x: u32, mod0: u32) -> u16 {
    let mut b = Bench::default();
    b.set(0, [x; LANES]);
    b.run(&[store(0, mod0, 0)]);
    b.dst.read_at(0)[0]
}
/// What a load of `x` in a 16-bit row leaves in a register that held 0x1234_5678.
fn loaded16(x: u16, mod0: u32) -> u32 {
    let mut b = Bench::default();
    b.dst.write_at(0, [x; crate::tensix::dst::COLUMNS]);
    b.set(1, [0x1234_5678; LANES]);
    b.run(&[load(1, mod0, 0)]);
    b.lreg(1)[0]
}

#[test]
fn lanes_are_the_even_or_the_odd_columns_of_four_rows() {
    let mut b = Bench::default();
    for row in 0..8 {
        b.dst.write_at(row, std::array::from_fn(|column| (row * 16 + column) as u16));
    }
    b.run(&[load(0, 6, 0), load(1, 6, 3), load(2, 6, 5)]);
    assert_eq!((b.lreg(0)[..9].to_vec(), b.lreg(0)[31]), (vec![0, 2, 4, 6, 8, 10, 12, 14, 16], 62));
    assert_eq!((b.lreg(1)[0], b.lreg(1)[31], b.lreg(2)[0], b.lreg(2)[31]), (1, 63, 64, 126));
    // The odd columns whatever the address says, in column 2 only.
    b.run(&[Sfpconfig::build().imm16(0x40).vd(15).mod1(1).word(), load(3, 6, 0)]);
    assert_eq!(b.lreg(3)[..2], [1, 3]);
    b.run(&[lane_config(0x80), store(9, 6, 4), lane_config(0), load(4, 6, 4), load(5, 6, 6)]);
    assert_eq!((b.lreg(4)[0], b.lreg(5)[0]), (64, 0));
}

#[test]
fn stores_reach_enabled_lanes_only() {
    let mut b = Bench::default();
    b.set(0, [7; LANES]);
    b.v.flags = 0x0000_0102;
    b.v.use_flags = u32::MAX;
    b.run(&[store(0, 6, 0)]);
    let found: Vec<_> = (0..64).filter(|i| b.dst.read_at(i / 16)[i % 16] == 7).collect();
    assert_eq!(found, [2, 16]);
    b.run(&[load(1, 6, 0)]);
    assert_eq!(b.lreg(1)[..3], [0, 7, 0]);
    // Neither loads nor stores when LaneConfig blocks them.
    b.run(&[Sfpencc::build().imm2(3).mod1(10).word(), lane_config(0x30), load(2, 6, 0), store(0, 6, 4)]);
    assert_eq!((b.lreg(2), b.dst.read_at(4)), ([0; LANES], [0; 16]));
}

#[test]
fn every_16_bit_datum_survives_a_load_and_a_store() {
    for x in (0..=u16::MAX).step_by(7) {
        // BF16, denormals aside; and what is opaque.
        let value = loaded16(x, 2);
        assert_eq!(value >> 16, u32::from(bf16_of_dst(x)));
        let denormal = value & 0x7F80_0000 == 0 && value & 0x7F_0000 != 0;
        assert!(stored16(value, 2) == x || denormal && stored16(value, 2) == x & 0x8000, "{x:#x}");
        assert_eq!(stored16(loaded16(x, 6), 6), x);
        assert_eq!(stored16(loaded16(x, 8), 8), x);
        assert_eq!((loaded16(x, 14), loaded16(x, 15)), (0x1234_0000 | u32::from(x), u32::from(x) << 16 | 0x5678));
        assert_eq!((loaded16(x, 9), loaded16(x, 7), loaded16(x, 11)), (u32::from(x), u32::from(x) << 16, 0));
        assert_eq!((stored16(loaded16(x, 15), 15), stored16(loaded16(x, 14), 14)), (x, x));
    }
}

#[test]
fn fp16_is_converted_in_both_directions() {
    for x in 0..=u16::MAX {
        let value = fp32_of_fp16(dst_of_fp16(x), false);
        let (sign, exponent, mantissa) = (x >> 15, x >> 10 & 31, u32::from(x & 0x3FF));
        if exponent == 0 {
            assert_eq!(value, u32::from(sign) << 31 | mantissa << 13, "a denormal of another kind");
            assert_eq!(fp16_of_fp32(value), sign << 15);
        } else {
            let exact = (1.0 + mantissa as f32 / 1024.0) * 2f32.powi(i32::from(exponent) - 15);
            assert_eq!(f32::from_bits(value), if sign != 0 { -exact } else { exact });
            assert_eq!(fp16_of_fp32(value), x);
            assert_eq!(fp16_of_fp32(value | 0x1FFF), x, "cut off");
        }
    }
    assert_eq!(
        [0x4780_0000, 0x4800_0000, 0x7F80_0000, 0xFFC0_0000, 0x3880_0000, 0x387F_FFFF].map(fp16_of_fp32),
        [0x7C00, 0x7FFF, 0x7FFF, 0xFFFF, 0x0400, 0]
    );
    assert_eq!(
        (loaded16(0x7FFF, 1), fp32_of_fp16(0xFFFF, true), fp32_of_fp16(0x7FDF, true)),
        (0x47FF_E000, 0xFF80_0000, 0x47FF_C000)
    );
    let mut b = Bench::default();
    b.dst.write_at(0, [0x7FFF; 16]);
    b.run(&[lane_config(1), load(1, 1, 0)]);
    assert_eq!(b.lreg(1)[0], 0x7F80_0000);
}

#[test]
fn integers_of_8_bits_are_fp16_with_a_fixed_exponent() {
    assert_eq!((stored16(SIGN | 0x3FF, 5), stored16(5, 13), stored16(0, 5)), (0xFFF0, 5 << 5 | 16, 16));
    assert_eq!((loaded16(0xFFF0, 5), loaded16(0xFFF0, 13), loaded16(16, 5)), (SIGN | 0xFF, SIGN | 0x3FF, 0));
}

#[test]
fn wide_data_take_two_rows() {
    let after = |x: u32, mod0: u32| {
        let mut b = Bench::default();
        b.set(0, [x; LANES]);
        b.run(&[store(0, mod0, 0), load(1, 4, 0), load(2, 3, 0), load(3, 12, 0)]);
        assert_eq!((b.lreg(1), b.lreg(2)), (b.lreg(3), b.lreg(3)));
        (b.dst.read_at(0)[0], b.dst.read_at(8)[0], b.lreg(1)[5])
    };
    assert_eq!(after(0x3F80_1234, 3), (0x007F, 0x1234, 0x3F80_1234));
    assert_eq!(after(0x8000_1234, 3), (0x8000, 0, SIGN), "denormals become zero");
    assert_eq!(after(0x8000_1234, 4), (0x8000, 0x1234, 0x8000_1234));
    assert_eq!(after(0x1234_5678, 9).0, 0x5678, "the halves exchanged");
    assert_eq!(after(0x1234_5678, 9).1, 0x1234);
    assert_eq!((after(0x1234_5678, 7).0, after(0x1234_5678, 7).1), (0x1234, 0x5678));
}

#[test]
fn the_format_of_src_b_decides_what_mode_0_is() {
    let format = |fields: &[(cfg::Field, u32)]| {
        let mut b = Bench::default();
        for &(field, value) in fields {
            let word = field.put(b.config.get(0, field.word.into()).unwrap(), value);
            match field.space {
                cfg::Space::Thread => b.config.set_thread(0, field.word.into(), value as u16).unwrap(),
                cfg::Space::Bank => b.config.set(0, field.word.into(), word).unwrap(),
            }
        }
        Format::of(0, &b.config, 0)
    };
    let (src_b, value) = (cfg::ALU_FORMAT_SPEC_REG1_SRCB, cfg::ALU_FORMAT_SPEC_REG_SRCB_VAL);
    for bf16 in [0, 4, 5, 6, 7, 8, 9, 15] {
        assert_eq!(format(&[(src_b, bf16)]), Format::Bf16, "{bf16}");
    }
    for fp16 in [1, 2, 3, 10, 11, 14] {
        assert_eq!(format(&[(src_b, fp16)]), Format::Fp16, "{fp16}");
    }
    assert_eq!(format(&[(value, 1), (cfg::ALU_FORMAT_SPEC_REG_SRCB_OVERRIDE, 1)]), Format::Fp16);
    assert_eq!(format(&[(cfg::ALU_ACC_CTRL_SFPU_FP32_ENABLED, 1)]), Format::Fp32);
    // SFPU_DEST_FMT: enabled, FP16.
    assert_eq!(format(&[(cfg::SFPU_DEST_FMT_ENABLE, 1 | 1 << 1)]), Format::Fp16);
}

#[test]
fn addresses_count_from_configuration_counters_and_stack() {
    let mut b = Bench::default();
    (0..64).for_each(|row| b.dst.write_at(row, [row as u16; 16]));
    b.config.set_thread(0, cfg::DEST_TARGET_REG_CFG_MATH_OFFSET.word.into(), 16).unwrap();
    b.config.set(0, cfg::DEST_REGW_BASE_BASE.word.into(), 8).unwrap();
    // Set 0 of the increments: Dst += 4.
    b.config.set_thread(0, cfg::ADDR_MOD_DST_SEC_DESTINCR.word.into(), 4).unwrap();
    b.run(&[load(0, 6, 4), load(1, 6, 4)]);
    assert_eq!((b.lreg(0)[0], b.lreg(1)[31]), (28, 35));
    // The stack: a store pushes, a load pops, whatever lanes are enabled.
    b.config.set(0, cfg::DEST_SP_BASE_BASE.word.into(), 128).unwrap();
    b.config.set_thread(0, cfg::SFPU_STACK_INCR.word.into(), 4).unwrap();
    b.config.set_thread(0, cfg::ADDR_MOD_DST_SEC_DESTINCR.word.into(), 0).unwrap();
    b.set(0, lane_values(&[11]));
    b.set(1, lane_values(&[12]));
    b.v.use_flags = u32::MAX;
    b.run(&[store(0, 10, 0), store(1, 10, 0), load(2, 10, 0), load(3, 10, 0)]);
    assert_eq!((b.lreg(2)[0], b.lreg(3)[0]), (12, 11));
}

#[test]
fn cleared_rows_load_as_zeros() {
    let mut b = Bench::default();
    b.dst.write_at(0, [0x55; 16]);
    b.dst.clear(0);
    b.run(&[load(0, 6, 0), load(1, 3, 0)]);
    assert_eq!((b.lreg(0)[0], b.lreg(1)[0]), (0, 0));
    b.run(&[store(9, 6, 0), load(0, 6, 2)]);
    assert_eq!(b.lreg(0)[0], 0x55, "the columns beside those that are stored");
}

#[test]
fn loads_capture_where_they_load_from() {
    let mut b = Bench::default();
    b.run(&[lane_config(0xC), load(1, 6, 18)]);
    assert_eq!((b.lreg(5)[0], b.lreg(5)[9], b.lreg(5)[31]), (16 << 4 | 1, 17 << 4 | 3, 19 << 4 | 15));
    b.run(&[load(4, 6, 0)]);
    assert_eq!(b.lreg(4), [0; LANES]);
}

#[test]
fn a_load_right_behind_the_matrix_unit_is_a_fault() {
    let after = |gap: Cycle, word: u32| {
        let mut b = Bench::default();
        b.dst.note_write(8, Writer::Matrix, 1);
        b.now = gap;
        b.try_run(word).is_ok()
    };
    // The matrix unit's instruction is in cycle 1; three others stand between it and cycle 5.
    assert_eq!([1, 2, 3, 4].map(|gap| after(gap, load(0, 6, 12))), [false, false, false, true]);
    // Another block, and what reads nothing.
    assert!(
        after(1, load(0, 6, 16)) && after(1, load(0, 11, 8)) && after(1, store(0, 6, 8)) && after(1, load(9, 6, 8))
    );
}

#[test]
fn what_is_stored_can_be_loaded_at_once_and_read_by_others_after_four_cycles() {
    let mut b = Bench::default();
    b.set(0, [7; LANES]);
    b.run(&[store(0, 6, 0), load(1, 6, 0)]);
    assert_eq!((b.lreg(1)[0], b.dst.readable(7), b.dst.readable(8)), (7, 6, 0));
}
