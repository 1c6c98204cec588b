//! Tests of macros: the sequences that the public kernel library sets up, and the page's rules.

use super::super::LANES;
use super::super::tests::Bench;
use super::*;
use crate::tensix::dst;
use tilework_abi::tensix::cfg;
use tilework_abi::tensix::insn::{Sfpabs, Sfpconfig, Sfpencc, Sfpload, Sfploadi, Sfpmad, Sfpmul24, Sfpnop};
use tilework_abi::tensix::insn::{Sfparecip, Sfpiadd, Sfpsetcc, Sfpshft, Sfpshft2, Sfpstore, Sfpswap};

/// Sequence bits: what, after how long.
const fn bits(what: u32, delay: u32) -> u32 {
    delay << 3 | what
}
const fn template(i: u32) -> u32 {
    4 + i
}

/// Sets sequence `index`: bits for simple, MAD, round and store sub-unit.
fn sequence(index: u32, units: [u32; 4]) -> Vec<u32> {
    let word = u32::from_le_bytes(units.map(|bits| bits as u8));
    vec![
        Sfploadi::build().mod0(10).imm16(word & 0xFFFF).word(),
        Sfploadi::build().mod0(8).imm16(word >> 16).word(),
        Sfpconfig::build().vd(4 + index).word(),
    ]
}
fn misc(value: u32) -> u32 {
    Sfpconfig::build().imm16(value).vd(8).mod1(1).word()
}
fn load_macro(index: u32, vd: u32, mod0: u32, imm10: u32) -> u32 {
    let insn = Sfploadmacro::build().macro_index(index).vd_lo(vd & 3).vd_hi(vd >> 2).mod0(mod0);
    insn.imm9(imm10 >> 1).addr_mod(7).word()
}
fn load(vd: u32, mod0: u32, imm10: u32, addr_mod: u32) -> u32 {
    Sfpload::build().vd(vd).mod0(mod0).imm10(imm10).addr_mod(addr_mod).word()
}
fn nops(n: usize) -> Vec<u32> {
    vec![Sfpnop::build().word(); n]
}
/// A bench whose Dst has `f(row)` in each 16-bit row; address modifier 6 adds two to Dst's counter.
fn bench(f: impl Fn(usize) -> u16) -> Bench {
    let mut b = Bench::default();
    (0..dst::ROWS).for_each(|row| b.dst.write_at(row, [f(row); 16]));
    b.config.set_thread(0, u32::from(cfg::ADDR_MOD_DST_SEC_DESTINCR.word) + 6, 2).unwrap();
    b
}

#[test]
fn where_in_three_cycles_for_each_half_of_four_rows() {
    // The set-up of the public library's `where`: macro 0 tests the condition and stores two
    // instructions later; macro 2 ends the predication. Delays count instructions.
    let mut b = bench(|row| match row {
        0..64 => u16::from(row % 8 >= 4),
        64..128 => 1000 + row as u16,
        _ => 2000 + row as u16,
    });
    b.run(&[Sfpencc::build().imm2(3).mod1(10).word()]);
    b.run(&[Sfpsetcc::build().vd(12).mod1(6).word(), Sfpencc::build().vd(13).word()]);
    b.run(&sequence(0, [bits(template(0), 0), 0, 0, bits(3, 2)]));
    b.run(&[Sfpconfig::build().imm16(bits(template(1), 0)).vd(4 + 2).mod1(1).word(), misc(0x770)]);
    let start = b.now;
    for _ in 0..16 {
        b.run(&[load_macro(0, 0, 6, 0), load_macro(2, 0, 6, 64), load(0, 6, 128, 6)]);
    }
    assert_eq!(b.now - start, 48, "three cycles each");
    b.run(&nops(3));
    for row in 0..32 {
        let expected = if row % 8 >= 4 { 1064 + row } else { 2128 + row };
        assert_eq!(b.dst.read_at(row), [expected as u16; 16], "row {row}");
    }
}

#[test]
fn products_of_integers_in_one_cycle_each() {
    // The set-up of the public library's 16-bit multiplication in place.
    let mut b = bench(|row| row as u16);
    b.run(&[Sfpmul24::build().va(0).vc(9).vd(12).word()]);
    b.run(&sequence(0, [0, REPLACE_VB | MACRO_VD | bits(template(0), 0), 0, MACRO_VD | bits(3, 2)]));
    b.run(&[misc(0x330)]);
    let start = b.now;
    for _ in 0..8 {
        let insn = Sfploadmacro::build().mod0(6).addr_mod(6).word();
        b.run(&[insn]);
    }
    assert_eq!(b.now - start, 8);
    b.run(&nops(3));
    for row in 0..16 {
        assert_eq!(b.dst.read_at(row), [(row * row) as u16; 16], "row {row}");
    }
    assert_eq!(b.dst.read_at(16), [16; 16]);
}

#[test]
fn delays_count_cycles_unless_told_to_count_instructions() {
    // SFPABS of L1 into L1, three cycles after the next.
    let prepared = |kinds: u32| {
        let mut b = bench(|_| 0xFFFF);
        b.run(&[Sfpabs::build().vd(12).word()]);
        b.run(&sequence(1, [bits(template(0), 3), 0, 0, 0]));
        b.run(&[misc(kinds)]);
        b.set(1, [0; LANES]);
        b.run(&[load_macro(1, 1, 15, 0)]);
        assert_eq!(b.lreg(1), [0xFFFF_0000; LANES]);
        b
    };
    for (kinds, waits, expected) in [(0, 4, 0x1_0000), (0, 3, 0xFFFF_0000), (0x100, 4, 0xFFFF_0000)] {
        let mut b = prepared(kinds);
        // The thread does nothing for some cycles.
        b.idle(waits);
        b.run(&[Sfpnop::build().word()]);
        assert_eq!(b.lreg(1), [expected; LANES], "{kinds:#x}, {waits}");
        b.run(&nops(4));
        assert_eq!(b.lreg(1), [0x1_0000; LANES]);
    }
}

#[test]
fn a_scheduled_instruction_wins_against_one_that_is_issued() {
    let mut b = bench(|_| 3);
    b.run(&[Sfpshft::build().imm12(4).vd(12).mod1(5).word()]);
    b.run(&sequence(0, [bits(template(0), 0), 0, 0, 0]));
    b.run(&[load_macro(0, 1, 6, 0), Sfpabs::build().vc(1).vd(2).word(), Sfpnop::build().word()]);
    assert_eq!((b.lreg(1)[0], b.lreg(2)[0]), (0x30, 0), "SFPABS is discarded");
    // A load of the same cycle is not, and what was scheduled has read before it wrote.
    b.run(&[load_macro(0, 1, 6, 0), load(1, 7, 0, 7), Sfpnop::build().word()]);
    assert_eq!(b.lreg(1)[0], 0x3_0000, "the load issued later");
}

#[test]
fn results_of_the_mad_sub_unit_arrive_after_two_cycles() {
    let one = 1.0f32.to_bits();
    let stored = |store_delay: u32| {
        let mut b = bench(|_| 0x007F);
        // L1 = L10 * L1 + L10 in the cycle behind the load; a store of L1 later.
        b.run(&[Sfpmad::build().va(10).vc(10).vd(12).word()]);
        b.run(&sequence(0, [0, REPLACE_VB | bits(template(0), 0), 0, bits(3, store_delay)]));
        b.run(&[misc(2), load_macro(0, 1, 2, 0)]);
        b.run(&nops(6));
        assert_eq!(b.lreg(1), [2.0f32.to_bits(); LANES]);
        u32::from(b.dst.read_at(0)[0])
    };
    assert_eq!((stored(0), stored(1), stored(2)), (0x7F, 0x7F, 0x80));
    assert_eq!(one >> 23, 0x7F);
}

#[test]
fn results_arrive_in_their_cycle_however_late_the_next_instruction_comes() {
    for gap in [0, 1, 5] {
        let mut b = bench(|_| 0x0080);
        // L1 = L10 * L10 + L1, and a load of L1 in the cycle in which that starts.
        b.run(&[Sfpmad::build().va(10).vb(10).vd(12).word()]);
        b.run(&sequence(0, [0, bits(template(0), 0), 0, 0]));
        b.set(1, [0; LANES]);
        b.run(&[load_macro(0, 1, 2, 0), load(1, 11, 0, 7)]);
        b.idle(gap);
        b.run(&nops(2));
        assert_eq!(b.lreg(1), [3.0f32.to_bits(); LANES], "{gap}");
    }
}

#[test]
fn swaps_take_two_cycles_and_what_is_undefined_is_a_fault() {
    let mut b = bench(|_| 5);
    b.set(2, [9; LANES]);
    b.run(&[Sfpswap::build().vc(2).vd(12).mod1(1).word()]);
    b.run(&sequence(0, [REPLACE_VB | bits(template(0), 0), bits(2, 0), 0, 0]));
    b.set(2, [1; LANES]);
    b.run(&[load_macro(0, 1, 6, 0), Sfpnop::build().word()]);
    assert_eq!((b.lreg(1)[0], b.lreg(2)[0]), (5, 1));
    b.run(&nops(2));
    assert_eq!((b.lreg(1)[0], b.lreg(2)[0]), (1, 5));
    for units in [[1, 0, 0, 0], [0, 0, 0, 2], [0, 0, 0, template(0)]] {
        let mut b = bench(|_| 0);
        b.run(&sequence(0, units));
        assert!(b.try_run(load_macro(0, 1, 6, 0)).is_err(), "{units:?}");
    }
}

#[test]
fn a_swap_bounds_the_loaded_register_by_a_constant() {
    // As `ckernel_sfpu_exp.h` of the public kernel library bounds operands: the template is set as
    // a word, since its VD is a constant.
    for (loaded, expected) in [(-1e9f32, -88.5f32), (-88.5, -88.5), (-3.0, -3.0), (0.25, 0.25), (7.0, 7.0)] {
        let mut b = bench(|_| 0);
        b.set(0, [(-88.5f32).to_bits(); LANES]);
        b.run(&[Sfpconfig::build().vd(14).word()]);
        let swap = Sfpswap::build().vd(14).mod1(1).word();
        b.run(&[
            Sfploadi::build().mod0(10).imm16(swap & 0xFFFF).word(),
            Sfploadi::build().mod0(8).imm16(swap >> 16).word(),
            Sfpconfig::build().word(),
        ]);
        b.run(&sequence(1, [bits(template(0), 0), 0, 0, bits(3, 2)]));
        put_dst(&mut b, 0, 3, [loaded.to_bits(); LANES]);
        b.run(&[load_macro(1, 1, 3, 0)]);
        b.run(&nops(4));
        assert_eq!(f32::from_bits(b.lreg(1)[5]), expected);
        assert_eq!(f32::from_bits(b.lreg(14)[5]), -88.5, "the constant stays");
    }
}

#[test]
fn a_later_macro_replaces_what_would_execute_with_its_own() {
    let mut b = bench(|row| row as u16);
    b.run(&[Sfpshft::build().imm12(4).vd(12).mod1(5).word(), Sfpshft::build().imm12(8).vd(13).mod1(5).word()]);
    b.run(&sequence(0, [bits(template(0), 1), 0, 0, 0]));
    b.run(&sequence(1, [bits(template(1), 0), 0, 0, 0]));
    b.run(&[load_macro(0, 1, 6, 4), load_macro(1, 2, 6, 8)]);
    b.run(&nops(4));
    assert_eq!((b.lreg(1)[0], b.lreg(2)[0]), (4, 0x800), "the first shift is forgotten");
    // Bits that name nothing forget what has their delay; no bits forget nothing.
    for (delay, later, expected) in [(2, bits(0, 1), 4), (2, bits(0, 2), 0x40), (1, 0, 0x40)] {
        let mut b = bench(|row| row as u16);
        b.run(&[Sfpshft::build().imm12(4).vd(12).mod1(5).word()]);
        b.run(&sequence(0, [bits(template(0), delay), 0, 0, 0]));
        b.run(&sequence(1, [later, 0, 0, 0]));
        b.run(&[load_macro(0, 1, 6, 4), load_macro(1, 2, 6, 8)]);
        b.run(&nops(5));
        assert_eq!(b.lreg(1)[0], expected, "{delay}, {later:#x}");
    }
}

/// Stores a register at an address of Dst, and reads it.
fn put_dst(b: &mut Bench, imm10: u32, mod0: u32, values: LReg) {
    b.set(0, values);
    b.run(&[Sfpstore::build().vd(0).mod0(mod0).imm10(imm10).addr_mod(7).word()]);
}
fn get_dst(b: &mut Bench, imm10: u32, mod0: u32) -> LReg {
    b.run(&[load(0, mod0, imm10, 7)]);
    b.lreg(0)
}
/// Runs words with `gap` cycles before each.
fn run_slowly(b: &mut Bench, words: &[u32], gap: impl Fn(usize) -> u32) {
    for (i, &word) in words.iter().enumerate() {
        b.idle(gap(i));
        b.run(&[word]);
    }
}
/// Numbers of all sizes.
fn samples(seed: u32) -> LReg {
    let mut x = seed;
    std::array::from_fn(|lane| {
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        x >> (lane as u32 * 7 % 24)
    })
}

/// Gaps between the instructions: none, one cycle, many, and irregular ones.
const GAPS: [fn(usize) -> u32; 4] = [|_| 0, |_| 1, |_| 6, |i| (i * i) as u32 % 3];

#[test]
fn products_of_32_bits_in_eight_cycles() {
    // The set-up and the loop of the public kernel library's `mul_int32`.
    for (case, gap) in GAPS.into_iter().enumerate() {
        let mut b = bench(|_| 0);
        b.run(&[
            Sfpshft2::build().imm12(-23).vc(0).vd(12).mod1(6).word(),
            Sfpmul24::build().vc(9).vd(13).word(),
            Sfpshft::build().imm12(23).vc(2).vd(14).mod1(5).word(),
            Sfpiadd::build().vc(4).vd(15).mod1(4).word(),
        ]);
        let shift = REPLACE_VB | bits(template(0), 0);
        let low = REPLACE_VB | bits(template(1), 1);
        let add = REPLACE_VB | bits(template(3), 4);
        b.run(&sequence(0, [0, low, shift, 0]));
        b.run(&sequence(1, [add, low, shift, 0]));
        b.run(&sequence(2, [add | MACRO_VD, low, 0, 0]));
        b.run(&sequence(3, [REPLACE_VB | bits(template(2), 0), 0, 0, MACRO_VD | bits(3, 2)]));
        b.run(&[misc(0xFF0)]);
        let int = 4;
        for i in 0..8 {
            put_dst(&mut b, 2 * i, int, samples(i + 1));
            put_dst(&mut b, 64 + 2 * i, int, samples(i + 100));
        }
        let mut words = Vec::new();
        for _ in 0..8 {
            let last = Sfploadmacro::build().macro_index(3).vd_hi(1).mod0(int).addr_mod(6).word();
            words.extend([
                load(0, int, 64, 7),
                load_macro(0, 1, int, 0),
                load_macro(1, 2, int, 64),
                load(0, int, 0, 7),
                load_macro(2, 3, int, 64),
                Sfpmul24::build().va(0).vb(3).vc(9).vd(4).mod1(1).word(),
                Sfpiadd::build().vc(1).vd(2).mod1(4).word(),
                last,
            ]);
        }
        words.extend(nops(3));
        run_slowly(&mut b, &words, gap);
        b.rwc = Default::default();
        for i in 0..8 {
            let (x, y) = (samples(i + 1), samples(i + 100));
            let expected: LReg = std::array::from_fn(|lane| x[lane].wrapping_mul(y[lane]));
            assert_eq!(get_dst(&mut b, 2 * i, int), expected, "gaps {case}, rows {i}");
        }
    }
}

#[test]
fn reciprocals_in_five_cycles() {
    // The set-up and the loop of the public kernel library's reciprocal of FP32.
    for (case, gap) in GAPS.into_iter().enumerate() {
        let mut b = bench(|_| 0);
        b.run(&[
            Sfparecip::build().vd(12).word(),
            Sfpmad::build().vd(13).word(),
            Sfpmad::build().va(1).vc(2).vd(14).word(),
            Sfpswap::build().vc(10).vd(15).mod1(1).word(),
        ]);
        b.run(&sequence(0, [bits(template(0), 0), 0, 0, MACRO_VD | bits(3, 6)]));
        b.run(&sequence(1, [MACRO_VD | bits(template(0), 0), bits(template(1), 2), 0, bits(3, 2)]));
        b.run(&sequence(2, [REPLACE_VB | bits(template(3), 2), bits(template(2), 0), 0, 0]));
        b.run(&sequence(3, [0, REPLACE_VB | bits(template(2), 1), 0, bits(3, 3)]));
        b.run(&[misc(0xFF0)]);
        let float = 3;
        let x = |i: u32| -> LReg {
            std::array::from_fn(|lane| {
                (1.0 + 0.37 * f32::from_bits(samples(i + 1)[lane] & 0xFF).to_bits() as f32).to_bits()
            })
        };
        for i in 0..8 {
            put_dst(&mut b, 2 * i, float, x(i));
        }
        let z = |addr_mod: u32| {
            Sfploadmacro::build().macro_index(3).vd_lo(2).mod0(float).addr_mod(addr_mod).imm9(0x1FF).word()
        };
        let before = 0x3FE;
        let replay = [
            load_macro(0, 3, float, 0),
            load_macro(2, 1, float, before),
            load_macro(1, 0, float, 0),
            Sfpmad::build().vb(3).vc(10).vd(0).mod1(1).word(),
            z(6),
            z(7),
        ];
        let nop = Sfpnop::build().word();
        let mut words = replay[..4].to_vec();
        words.push(load(7, float, 0, 6));
        for _ in 0..7 {
            words.extend(&replay[..5]);
        }
        words.extend([nop, replay[1], nop, replay[3], replay[4]]);
        words.extend(nops(4));
        run_slowly(&mut b, &words, gap);
        b.rwc = Default::default();
        for i in 0..8 {
            let (x, y) = (x(i), get_dst(&mut b, 2 * i, float));
            for lane in 0..LANES {
                let product = f32::from_bits(x[lane]) * f32::from_bits(y[lane]);
                assert!((product - 1.0).abs() < 1e-6, "gaps {case}, rows {i}, lane {lane}: {product}");
            }
        }
    }
}
