//! Conversions against the values that they stand for, worked out in `f64`, which holds all of them
//! exactly.

use super::convert::*;
use crate::tensix::config::Config;
use crate::tensix::dst::{Dst, RowMap};
use crate::tensix::number::{dst_of_bf16, dst_of_fp16, dst_of_fp32};
use proptest::prelude::*;

/// Runs an early conversion over all `inputs`, 32 bits each.
fn early_32(early: Early, inputs: &[u32]) -> Vec<u32> {
    let (map, mut dst) = (RowMap::of(&Config::default()), Dst::default());
    let rows = inputs.chunks_exact(16).flat_map(|row| {
        dst.write32(map, 5, std::array::from_fn(|i| dst_of_fp32(row[i])));
        early.read(&dst, map, 5)
    });
    rows.collect()
}

/// Runs an early conversion over all 16-bit patterns, of which `layout` makes data of Dst.
fn early_16(early: Early, layout: fn(u16) -> u16) -> Vec<u32> {
    let (map, mut dst) = (RowMap::of(&Config::default()), Dst::default());
    let rows = (0..0x1000u16).flat_map(|n| {
        dst.write16(map, 700, std::array::from_fn(|i| layout(16 * n + i as u16)));
        early.read(&dst, map, 700)
    });
    rows.collect()
}

/// 32-bit patterns with every sign, exponent and edge of the mantissa.
fn patterns() -> Vec<u32> {
    let low = [0, 1, 0x0FFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001, 0xFFFF, 0xEFFF, 0xF000];
    let all = (0..0x1_0000u32).flat_map(|high| low.map(|low| high << 16 | low));
    all.collect()
}

fn value(x: u32) -> f64 {
    f32::from_bits(x).into()
}

/// The value of an FP16, whose largest exponent is one as any other; not of a denormal.
fn value_16(x: u32) -> f64 {
    let magnitude = f64::from(0x400 | x & 0x3FF) * ((x >> 10 & 0x1F) as f64 - 25.0).exp2();
    match (x & 0x7FFF, x >> 15) {
        (0, _) => 0.0,
        (_, 0) => magnitude,
        _ => -magnitude,
    }
}

/// The unit of the last of `bits` bits of mantissa, where exponents end at that of FP32.
fn unit(v: f64, bits: i32) -> f64 {
    let exponent = (v.abs().to_bits() >> 52) as i32 - 1023;
    f64::from(exponent.max(-126) - bits).exp2()
}

/// What rounding to `bits` bits of mantissa should make.
fn rounded(x: u32, bits: i32) -> u32 {
    if x & 0x7F80_0000 == 0x7F80_0000 {
        return x & 0xFF80_0000;
    }
    let v = value(x);
    if v == 0.0 {
        return 0;
    }
    let unit = unit(v, bits);
    // `round` takes ties away from zero.
    let rounded = ((v / unit).round() * unit) as f32;
    if rounded.is_normal() || rounded.is_infinite() { rounded.to_bits() } else { 0 }
}

#[test]
fn early_rounding_takes_the_nearest_and_ties_away_from_zero() {
    let inputs = patterns();
    for (early, bits) in [(Early::Tf32Of32, 10), (Early::Bf16Of32, 7), (Early::E8m6Of32, 6)] {
        for (x, y) in inputs.iter().zip(early_32(early, &inputs)) {
            assert_eq!(y, rounded(*x, bits), "{early:?} of {x:#010x}");
        }
    }
    let sixteen = |early| early_16(early, dst_of_bf16).into_iter().enumerate().map(|(x, y)| ((x as u32) << 16, y));
    for (x, y) in sixteen(Early::Bf16Rounded) {
        assert_eq!(y, rounded(x, 7), "{x:#010x}");
    }
    for (x, y) in sixteen(Early::E8m6) {
        // Here denormals are gone before.
        let x = if x & 0x7F80_0000 == 0 { 0 } else { x };
        assert_eq!(y, rounded(x, 6), "{x:#010x}");
    }
}

#[test]
fn early_identities_and_cuts_keep_bits() {
    let inputs = patterns();
    let all = |early| inputs.iter().copied().zip(early_32(early, &inputs)).collect::<Vec<_>>();
    assert!(all(Early::Bits32).iter().all(|(x, y)| x == y));
    assert!(all(Early::Bf16Cut32).iter().all(|(x, y)| x & 0xFFFF_0000 == *y));
    assert!(all(Early::HighOf32).iter().all(|(x, y)| u32::from(dst_of_bf16((x >> 16) as u16)) == *y));
    assert!(early_16(Early::Bf16, dst_of_bf16).into_iter().zip(0..).all(|(y, x)| y == x << 16));
    assert!(early_16(Early::Fp16, dst_of_fp16).into_iter().zip(0..).all(|(y, x)| y == x));
    assert!(early_16(Early::Int16, |x| x).into_iter().zip(0..).all(|(y, x)| y == x));
    assert!(early_16(Early::SignOf16, |x| x).into_iter().zip(0..).all(|(y, x)| y == x >> 15 << 7));
    assert!(early_16(Early::E5m7, dst_of_fp16).into_iter().zip(0..).all(|(y, x)| y == x >> 3 << 3));
    assert!(early_16(Early::E5m2, dst_of_fp16).into_iter().zip(0..).all(|(y, x)| y == x >> 8 << 8));
}

#[test]
fn early_fp16_loses_denormals_and_rounds_to_e5m6() {
    for (x, y) in (0..).zip(early_16(Early::Fp16Rounded, dst_of_fp16)) {
        assert_eq!(y, if x & 0x7C00 == 0 { 0 } else { x }, "{x:#06x}");
    }
    for (x, y) in (0..).zip(early_16(Early::E5m6, dst_of_fp16)).filter(|(x, _)| x & 0x7C00 != 0) {
        let v = value_16(x);
        let unit = unit(v, 6);
        // The largest is what there is room for.
        let expected = ((v / unit).round() * unit).clamp(-value_16(0x7FF0), value_16(0x7FF0));
        assert_eq!(value_16(y), expected, "{x:#06x}");
    }
    assert!((0..).zip(early_16(Early::E5m6, dst_of_fp16)).all(|(x, y): (u32, u32)| x & 0x7FF8 >= 0x3F8 || y == 0));
}

#[test]
fn early_integers_shift_round_and_saturate() {
    let inputs = patterns();
    for shift in [0, 1, 4, 23, 31] {
        for unsigned in [false, true] {
            for (x, y) in inputs.iter().zip(early_32(Early::Int8 { unsigned, shift }, &inputs)) {
                let v = f64::from(x & 0x7FFF_FFFF) / f64::from(shift).exp2();
                let magnitude = v.round().min(if unsigned { 255.0 } else { 127.0 }) as u32;
                let expected = match (unsigned, x >> 31) {
                    (true, 1) => 0,
                    (true, _) => magnitude,
                    (false, sign) => sign << 7 | magnitude,
                };
                assert_eq!(y, expected, "{x:#010x} >> {shift}, unsigned: {unsigned}");
            }
        }
    }
    for (x, y) in inputs.iter().zip(early_32(Early::Int8Cut { unsigned: false }, &inputs)) {
        assert_eq!(y, x >> 31 << 7 | x & 0x7F);
    }
    for (x, y) in inputs.iter().zip(early_32(Early::Int8Cut { unsigned: true }, &inputs)) {
        assert_eq!(y, x & 0xFF);
    }
}

fn late(late: Late, inputs: &[u32]) -> Vec<u32> {
    inputs.chunks_exact(16).flat_map(|row| late.convert(std::array::from_fn(|i| row[i]))).collect()
}

#[test]
fn late_conversions_to_fp16_saturate_and_cut() {
    let inputs = patterns();
    // 3 of 1024 parts of mantissa remain with E5M2, 1 of 8 with E5M7.
    for (how, dropped, up) in
        [(Late::Narrow { dropped: 0 }, 0, 0), (Late::Narrow { dropped: 3 }, 3, 0), (Late::NarrowFp8, 8, 8)]
    {
        for (&x, y) in inputs.iter().zip(late(how, &inputs)) {
            let (v, y) = (value(x).abs(), y << up);
            assert_eq!(y >> 15, x >> 31, "the sign stays: {x:#010x}");
            let y = y & 0x7FFF;
            if v.is_nan() || v >= 17f64.exp2() {
                assert_eq!(y, 0x7FFF >> dropped << dropped, "{how:?} of {x:#010x}");
            } else if v <= (-15f64).exp2() {
                assert_eq!(y, 0, "{how:?} of {x:#010x}");
            } else if v >= (-14f64).exp2() {
                let unit = unit(v, 10 - dropped);
                assert_eq!(value_16(y), (v / unit).trunc() * unit, "{how:?} of {x:#010x}");
            } else {
                assert!(y < 0x400, "a denormal: {x:#010x}");
            }
        }
    }
}

#[test]
fn late_conversions_from_fp16_keep_values() {
    let inputs: Vec<u32> = (0..0x1_0000).collect();
    for (x, y) in inputs.iter().zip(late(Late::Widen, &inputs)).filter(|(x, _)| **x & 0x7C00 != 0 || **x & 0x3FF == 0) {
        assert_eq!((value(y), y >> 31), (value_16(*x), x >> 15), "{x:#06x}");
    }
    for (x, y) in inputs.iter().zip(late(Late::WidenHigh { flush: true }, &inputs)) {
        let normal = late(Late::Widen, &[*x; 16])[0] >> 16;
        assert_eq!(y, if x & 0x7C00 == 0 { x & 0x8000 } else { normal }, "{x:#06x}");
    }
    for (x, y) in inputs.iter().zip(late(Late::CutFp8 { flush: true }, &inputs)) {
        assert_eq!(y, if x & 0x7C00 == 0 { x >> 15 << 7 } else { x >> 8 }, "{x:#06x}");
    }
    for (x, y) in inputs.iter().zip(late(Late::Cut { dropped: 3, flush: false }, &inputs)) {
        assert_eq!(y, x >> 3 << 3, "{x:#06x}");
    }
}

#[test]
fn fp8_of_4_bits_of_exponent_is_cut_and_saturates() {
    let inputs: Vec<u32> = (0..0x1_0000).collect();
    for (x, y) in inputs.iter().zip(late(Late::CutFp8Of4, &inputs)) {
        assert_eq!(y >> 7, x >> 15, "{x:#06x}");
        let (v, y) = (value_16(*x).abs(), y & 0x7F);
        if v < (-6f64).exp2() {
            assert_eq!(y, 0, "{x:#06x}");
        } else if v < 480.0 {
            let exponent = v.log2().floor();
            assert_eq!(f64::from(y >> 3) - 7.0, exponent, "{x:#06x}");
            assert_eq!(f64::from(8 + (y & 7)), (8.0 * v / exponent.exp2()).trunc(), "{x:#06x}");
        } else {
            assert_eq!(y, 0x7F, "{x:#06x}");
        }
    }
}

#[test]
fn late_conversions_to_bf16_cut() {
    let inputs = patterns();
    for (x, y) in inputs.iter().zip(late(Late::High { flush: true }, &inputs)) {
        assert_eq!(y, if x & 0x7F80_0000 == 0 { x >> 31 << 15 } else { x >> 16 }, "{x:#010x}");
    }
    assert!(late(Late::High { flush: false }, &inputs).iter().zip(&inputs).all(|(y, x)| *y == x >> 16));
    assert_eq!(late(Late::Keep, &inputs), inputs);
}

/// A row of two BF16 in turn, its exponent, and the first and second datum as BFP8, BFP4 and BFP2.
type Packed = (u32, u32, u8, [u32; 3], [u32; 3]);

/// Rows as another simulator packs them.
const FOUND: [Packed; 14] = [
    (0x3F80, 0x3F81, 0x7F, [0x40, 0x4, 1], [0x41, 0x4, 1]),
    (0x3FFF, 0x3F80, 0x7F, [0x7F, 0x7, 1], [0x40, 0x4, 1]),
    (0x3FFF, 0xBFFF, 0x7F, [0x7F, 0x7, 1], [0xFF, 0xF, 3]),
    (0x3F80, 0x3EFF, 0x7F, [0x40, 0x4, 1], [0x20, 0x2, 0]),
    (0x3F80, 0x3CFF, 0x7F, [0x40, 0x4, 1], [0x02, 0x0, 0]),
    (0x3F80, 0xBC00, 0x7F, [0x40, 0x4, 1], [0x81, 0x0, 0]),
    (0x3F80, 0xBB80, 0x7F, [0x40, 0x4, 1], [0, 0, 0]),
    (0x3F80, 0xBBFF, 0x7F, [0x40, 0x4, 1], [0, 0, 0]),
    (0x7F80, 0xFF80, 0xFF, [0x40, 0x4, 1], [0xC0, 0xC, 3]),
    (0x7F7F, 0xFF7F, 0xFE, [0x7F, 0x7, 1], [0xFF, 0xF, 3]),
    (0, 0, 0, [0; 3], [0; 3]),
    (0, 0x80, 1, [0; 3], [0x40, 0x4, 1]),
    (0x3F80, 0xBB00, 0x7F, [0x40, 0x4, 1], [0, 0, 0]),
    (0x3F80, 0x3C40, 0x7F, [0x40, 0x4, 1], [0x01, 0x0, 0]),
];

#[test]
fn blocks_are_as_found() {
    for (a, b, exponent, first, second) in FOUND {
        let row = std::array::from_fn(|i| if i % 2 == 0 { a } else { b });
        for (k, bits) in [8, 4, 2].into_iter().enumerate() {
            let expected = std::array::from_fn(|i| if i % 2 == 0 { first[k] } else { second[k] });
            assert_eq!(block(row, false, bits), (exponent, expected), "{a:#x}, {b:#x} with {bits} bits");
        }
    }
}

proptest! {
    #[test]
    fn blocks_hold_the_nearest_values(row in any::<[u16; 16]>(), small in any::<bool>()) {
        // Normal numbers and zeros, as BF16 or E5M7.
        let row = row.map(|x| match (small, u32::from(x)) {
            (true, x) => if x & 0x7C00 == 0 { 0 } else { x & 0xFFF8 },
            (false, x) => if x & 0x7F80 == 0 { 0 } else { x },
        });
        let values = row.map(|x| if small { value_16(x) } else { value_bf16(x) });
        let (exponent, data) = block(row, small, 8);
        let largest = values.iter().fold(0.0, |all: f64, v| all.max(v.abs()));
        let unit = (f64::from(exponent) - if small { 15.0 } else { 127.0 } - 6.0).exp2();
        prop_assert!(largest == 0.0 || (64.0..128.0).contains(&(largest / unit)), "the largest has its own exponent");
        for (v, x) in values.iter().zip(data) {
            let magnitude = (v.abs() / unit).round().min(127.0) as u32;
            prop_assert_eq!(x, if magnitude == 0 { 0 } else { u32::from(*v < 0.0) << 7 | magnitude });
        }
        for bits in [4, 2] {
            let cut = data.map(|x| {
                let magnitude = (x & 0x7F) >> (8 - bits);
                if magnitude == 0 { 0 } else { x >> 7 << (bits - 1) | magnitude }
            });
            prop_assert_eq!(block(row, small, bits), (exponent, cut));
        }
    }
}

/// The value of a BF16, whose largest exponent is one as any other.
fn value_bf16(x: u32) -> f64 {
    let magnitude = f64::from(0x80 | x & 0x7F) * (f64::from(x >> 7 & 0xFF) - 134.0).exp2();
    match (x & 0x7FFF, x >> 15) {
        (0, _) => 0.0,
        (_, 0) => magnitude,
        _ => -magnitude,
    }
}

#[test]
fn data_are_packed_from_the_low_bits_on() {
    let row: Row = std::array::from_fn(|i| 0x8765_4320 | i as u32);
    let mut out = [0; 64];
    assert_eq!(store(&row, 16, 32, &mut out), 64);
    assert_eq!(out[4..8], [0x21, 0x43, 0x65, 0x87]);
    assert_eq!((store(&row, 3, 16, &mut out), out[4], out[6]), (6, 0x22, 0x65), "not beyond the third");
    assert_eq!((store(&row, 16, 8, &mut out), out[15], out[16]), (16, 0x2F, 0x24));
    let row = row.map(|x| x & 0xF);
    assert_eq!((store(&row, 16, 4, &mut out), &out[..2], out[7]), (8, &[0x10, 0x32][..], 0xFE));
    let row = row.map(|x| x & 3);
    assert_eq!((store(&row, 16, 2, &mut out), out[0], out[3]), (4, 0b1110_0100, 0b1110_0100));
}
