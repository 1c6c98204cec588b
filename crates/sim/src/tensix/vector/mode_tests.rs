//! All modes of instructions whose modes are independent bits: SFPMAD.md, SFPADD.md, SFPMUL.md,
//! SFPMUL24.md, SFPGT.md, SFPLE.md, SFPENCC.md, and what SFPLOADMACRO.md loads.

use super::tests::{Bench, lane_values};
use super::*;
use tilework_abi::tensix::insn::{
    Sfpadd, Sfpencc, Sfpexexp, Sfpgt, Sfple, Sfpload, Sfploadmacro, Sfplz, Sfpmad, Sfpmul, Sfpmul24, Sfppopc, Sfppushc,
    Sfpsetcc,
};

/// Bits of `mod1`.
const INDIRECT_VA: u32 = 4;
const INDIRECT_VD: u32 = 8;

/// Registers 0 to 6 hold small numbers, which differ from lane to lane, and register 7 one of their
/// indices.
fn filled(number: fn(usize, usize) -> u32) -> Bench {
    let mut b = Bench::default();
    (0..7).for_each(|reg| b.set(reg, std::array::from_fn(|lane| number(reg, lane))));
    b.set(7, std::array::from_fn(|lane| ((lane as u32 * 5) % 7) | 0x30));
    b
}

fn float(reg: usize, lane: usize) -> u32 {
    ((reg * 3 + lane) as f32 - 11.0).to_bits()
}

#[test]
fn mad_negates_and_takes_registers_from_register_7() {
    let value = |reg: usize, lane: usize| f32::from_bits(float(reg, lane));
    let index = |lane: usize| (lane * 5) % 7;
    for mode in 0..16 {
        let words = [
            Sfpmad::build().va(1).vb(2).vc(3).vd(4).mod1(mode).word(),
            Sfpadd::build().va(1).vb(2).vc(3).vd(4).mod1(mode).word(),
            Sfpmul::build().va(1).vb(2).vc(3).vd(4).mod1(mode).word(),
        ];
        for word in words {
            let mut b = filled(float);
            b.run(&[word]);
            for lane in 0..LANES {
                let a = value(if mode & INDIRECT_VA != 0 { index(lane) } else { 1 }, lane);
                let sign = |bit: u32| if mode & bit != 0 { -1.0 } else { 1.0 };
                // A product of zero may have either sign: it is added to a number, or to zero.
                let expected = sign(1) * a * value(2, lane) + sign(2) * value(3, lane);
                let to = if mode & INDIRECT_VD != 0 { index(lane) } else { 4 };
                assert_eq!(f32::from_bits(b.lreg(to)[lane]), expected, "{word:#x}, lane {lane}");
                for other in (0..7).filter(|reg| *reg != to) {
                    assert_eq!(b.lreg(other)[lane], float(other, lane), "{word:#x}, lane {lane}, register {other}");
                }
            }
        }
    }
}

#[test]
fn products_of_integers_take_registers_from_register_7() {
    // Both halves of a product of 23 bits by 23 bits.
    let number = |reg: usize, lane: usize| (reg as u32 * 0x1F_3A57 + lane as u32 * 0x0A_1B2D) & 0x7F_FFFF;
    for mode in [0, 1, 4, 5, 8, 9, 12, 13] {
        let mut b = filled(number);
        b.run(&[Sfpmul24::build().va(1).vb(2).vc(9).vd(4).mod1(mode).word()]);
        for lane in 0..LANES {
            let index = (lane * 5) % 7;
            let a = number(if mode & INDIRECT_VA != 0 { index } else { 1 }, lane);
            let product = u64::from(a) * u64::from(number(2, lane));
            let half = if mode & 1 == 0 { product & 0x7F_FFFF } else { product >> 23 };
            let to = if mode & INDIRECT_VD != 0 { index } else { 4 };
            assert_eq!(u64::from(b.lreg(to)[lane]), half, "mode {mode}, lane {lane}");
        }
    }
}

#[test]
fn comparisons_write_what_their_bits_say() {
    let (c, d) = ([5, 5, 5, SIGN | 5, 0, SIGN], [7, 5, 3, SIGN | 7, SIGN, 0]);
    // VD > VC, as sign and magnitude; minus zero is less than zero.
    let greater = 0b100001;
    let top = 0b010110;
    for (mode, is_greater) in (0..16).flat_map(|mode| [(mode, true), (mode, false)]) {
        let mut b = Bench::default();
        b.set(0, lane_values(&c));
        b.set(1, lane_values(&d));
        b.set(2, std::array::from_fn(|lane| u32::from(top >> lane & 1 == 0)));
        let on = Sfpencc::build().imm2(3).mod1(10).word();
        let zero = Sfpsetcc::build().vc(2).mod1(6).word();
        let word = match is_greater {
            true => Sfpgt::build().vc(0).vd(1).mod1(mode).word(),
            false => Sfple::build().vc(0).vd(1).mod1(mode).word(),
        };
        b.run(&[on, zero, Sfppushc::build().word(), on, word]);
        let holds = if is_greater { greater } else { !greater & 0x3F };
        assert_eq!(b.flags() & 0x3F, if mode & 1 != 0 { holds } else { 0x3F }, "flags of {mode} {is_greater}");
        for (lane, before) in d.into_iter().enumerate() {
            let value = if mode & 8 != 0 { 0u32.wrapping_sub(holds >> lane & 1) } else { before };
            assert_eq!(b.lreg(1)[lane], value, "VD of {mode} {is_greater}");
        }
        b.run(&[Sfppopc::build().word()]);
        let stack = match mode & 6 {
            2 => top & holds,
            6 => top | holds,
            _ => top,
        };
        assert_eq!(b.flags() & 0x3F, stack, "top of {mode} {is_greater}");
    }
}

#[test]
fn predication_goes_on_off_or_over() {
    for (mode, imm) in [0, 1, 2, 8, 9, 10].into_iter().flat_map(|mode| (0..4).map(move |imm| (mode, imm))) {
        for before in [0, u32::MAX] {
            let mut b = Bench::default();
            if before != 0 {
                b.run(&[Sfpencc::build().imm2(1).mod1(2).word()]);
            }
            b.run(&[Sfpencc::build().imm2(imm).mod1(mode).word()]);
            let expected = match mode & 3 {
                0 => before,
                1 => !before,
                _ => 0u32.wrapping_sub(imm & 1),
            };
            let flags = if mode & 8 != 0 { 0u32.wrapping_sub(imm >> 1) } else { u32::MAX };
            assert_eq!((b.use_flags(), b.flags()), (expected, flags), "mode {mode}, imm2 {imm}");
        }
    }
}

#[test]
fn loads_of_macros_are_loads() {
    let data = |row: usize| std::array::from_fn(|column| (row as u32 * 16 + column as u32).wrapping_mul(0x0123_4567));
    for mode in 0..16 {
        let loaded = |word: u32| {
            let mut b = Bench::default();
            let map = crate::tensix::dst::RowMap::of(&b.config);
            (0..16).for_each(|row| b.dst.write32(map, row, data(row)));
            b.try_run(word).map(|()| b.lreg(2))
        };
        let load = loaded(Sfpload::build().vd(2).mod0(mode).addr_mod(7).imm10(4).word());
        let by_macro = loaded(Sfploadmacro::build().vd_lo(2).mod0(mode).addr_mod(7).imm9(2).word());
        assert_eq!(load, by_macro, "format {mode}");
    }
}

#[test]
fn leading_zeros_and_exponents_change_flags_as_their_bits_say() {
    let values = [0, SIGN, 1, SIGN | 1, 0x00FF_0000, 0x7F80_0000, 0x3F00_0000, 0xC000_0000];
    // All lanes are enabled, and all flags set.
    let run = |word: u32| {
        let mut b = Bench::default();
        b.set(0, lane_values(&values));
        b.run(&[Sfpencc::build().imm2(3).mod1(10).word(), word]);
        b
    };
    for mode in [0, 2, 4, 6, 8, 10, 12, 14] {
        let b = run(Sfplz::build().vc(0).vd(1).mod1(mode).word());
        for (lane, x) in values.into_iter().enumerate() {
            let x = if mode & 4 != 0 { x & !SIGN } else { x };
            assert_eq!(b.lreg(1)[lane], x.leading_zeros(), "mode {mode}, lane {lane}");
            let flag = if mode & 2 != 0 { x != 0 } else { true };
            assert_eq!(b.flags() >> lane & 1 != 0, flag != (mode & 8 != 0), "flag of mode {mode}, lane {lane}");
        }
    }
    for mode in [0, 1, 2, 3, 8, 9, 10, 11] {
        let b = run(Sfpexexp::build().vc(0).vd(1).mod1(mode).word());
        for (lane, x) in values.into_iter().enumerate() {
            let exponent = (x >> 23 & 0xFF).cast_signed() - if mode & 1 != 0 { 0 } else { 127 };
            assert_eq!(b.lreg(1)[lane].cast_signed(), exponent, "mode {mode}, lane {lane}");
            let flag = if mode & 2 != 0 { exponent < 0 } else { true };
            assert_eq!(b.flags() >> lane & 1 != 0, flag != (mode & 8 != 0), "flag of mode {mode}, lane {lane}");
        }
    }
}
