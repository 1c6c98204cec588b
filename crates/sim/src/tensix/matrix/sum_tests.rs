//! Sums against the module's description in wide integers, and against what was found.

use super::super::element::{Element, Elements, Taken, add_elements};
use super::super::format::{Style, decode, part_a, part_b, phase_exponent};
use super::super::narrow::{self, multiply_bf16};
use super::super::wide::{self, multiply_fp32};
use super::*;
use crate::tensix::number::{bf16_of_dst, dst_of_bf16, src_of_bf16};
use proptest::prelude::*;

/// `mantissa * 2^exp`, or zero.
#[derive(Clone, Copy, Debug)]
struct Exact(i128, i32);

/// `x / 2^places`, to the nearest; `ties` are decided by the sign of the result.
fn divide(x: i128, places: i32, ties: impl Fn(i128) -> bool) -> i128 {
    if places <= 0 {
        return x << -places;
    }
    if places > 100 {
        return 0;
    }
    let unit = 1i128 << places;
    let (floor, rest) = (x.div_euclid(unit), x.rem_euclid(unit));
    floor + i128::from(2 * rest > unit || (2 * rest == unit && ties(x)))
}

fn away(x: i128, places: i32) -> i128 {
    divide(x, places, |x| x > 0)
}

fn up(x: i128, places: i32) -> i128 {
    divide(x, places, |_| true)
}

/// A datum of BF16: its sign and mantissa of eleven bits, and its exponent, if it is not zero.
fn number(x: u16) -> Option<(i128, i32)> {
    let exp = i32::from(x >> 7 & 0xFF);
    let mantissa = i128::from((x & 0x7F) << 3 | 0x400);
    (exp != 0).then_some((if x >> 15 != 0 { -mantissa } else { mantissa }, exp))
}

fn part(x: i128, high: bool, bits: u32, all: u32) -> i128 {
    let magnitude = x.abs();
    let taken = if high { magnitude >> (11 - all) } else { magnitude >> (11 - all - bits) & ((1 << bits) - 1) };
    taken * x.signum()
}

/// The sum of a group of terms `(mantissa, exponent)` with ten bits behind the point.
fn group(terms: &[(i128, i32)]) -> Option<Exact> {
    let largest = terms.iter().map(|t| t.1).max()?;
    Some(Exact(terms.iter().map(|t| away(t.0, largest - t.1)).sum(), largest))
}

/// Bits of f32 for `groups` and `old`; all formats here have exponents from -126 on.
fn total(groups: &[Option<Exact>], old: u32, places: i32, bits: u32) -> u32 {
    let groups: Vec<_> = groups.iter().map(|group| group.filter(|g| g.1 >= -126)).collect();
    let exp = (old >> 23 & 0xFF).cast_signed();
    let magnitude = i128::from(old & 0x7F_FFFF | 0x80_0000);
    let dst = (exp != 0).then_some(Exact(if old >> 31 != 0 { -magnitude } else { magnitude }, exp - 127));
    let Some(largest) = groups.iter().flatten().map(|g| g.1).chain(dst.map(|d| d.1)).max() else { return 0 };
    let sum: i128 = groups.iter().flatten().map(|g| up(g.0, largest - g.1 + 10 - places)).sum::<i128>()
        + dst.map_or(0, |d| away(d.0, largest - d.1 + 23 - places));
    let width = (128 - sum.unsigned_abs().leading_zeros()).cast_signed();
    let drop = (width - bits.cast_signed()).max(0);
    let rounded = away(sum, drop);
    if rounded == 0 {
        return 0;
    }
    // The value is rounded * 2^(drop + largest - places).
    let top = 127 - rounded.unsigned_abs().leading_zeros().cast_signed();
    let exp = top + drop + largest - places + 127;
    let sign = u32::from(rounded < 0) << 31;
    match exp {
        ..1 => 0,
        1..255 => {
            let mantissa = (rounded.unsigned_abs() << 40 >> top) << 23 >> 40;
            sign | exp.cast_unsigned() << 23 | (mantissa as u32) & 0x7F_FFFF
        }
        _ => sign | 0x7F80_0000,
    }
}

/// What a product of a row of SrcB and a column of SrcA gives.
fn product(a: &[u16; 16], b: &[u16; 16], phase: u32, old: u32, (places, bits): (i32, u32)) -> u32 {
    let groups: Vec<_> = [0..8, 8..16]
        .map(|columns| {
            let terms: Vec<_> = columns
                .filter_map(|k| {
                    let ((a, a_exp), (b, b_exp)) = (number(a[k])?, number(b[k])?);
                    let a = part(a, phase & 1 == 0, 5, 5);
                    let b = if phase & 2 == 0 { part(b, true, 7, 7) } else { part(b, false, 4, 7) << 3 };
                    let less = [0, 5, 7, 12][phase as usize];
                    Some((a * b, a_exp + b_exp - 254 - less))
                })
                .collect();
            group(&terms)
        })
        .into();
    total(&groups, old, places, bits)
}

fn rows(columns: &[u16; 16]) -> [[u32; COLUMNS]; 16] {
    columns.map(|x| [src_of_bf16(x); COLUMNS])
}

/// The same by the ways of the implementation: exactly, as chosen for this machine, and with and
/// without fused multiplication; rows of 16 bits in their own way, too.
fn computed(a: &[u16; 16], b: &[u16; 16], phase: u32, old: u32, wide: bool) -> Vec<u32> {
    // The other rows of SrcB mean nothing here.
    let (a, b) = (rows(a), [b.map(src_of_bf16); ROWS]);
    let (mut factors, mut multipliers) = (Factors::default(), Multipliers::default());
    factors.set(&a, Style::Bf16, part_a(phase));
    multipliers.set(&b, Style::Bf16, part_b(phase));
    let a = decode(&a, Style::Bf16, part_a(phase));
    let b = decode::<1>(&[b[0]], Style::Bf16, part_b(phase));
    let less = phase_exponent(phase);
    let slow = [0, TERMS].map(|first| Group::of_eight(&a, (&b.ints[0], &b.exps[0]), first, less));
    let acc = if wide { Acc::Fp32 } else { Acc::Bf16 };
    let mut exact = [old; COLUMNS];
    add_up(&slow, acc, &mut exact);
    let dst = if wide { halves::<Fp32>(old) } else { halves::<Bf16>(old) };
    let before = [dst; 3].map(|(high, low)| ([high], [low]));
    let mut rows = before;
    let [(chosen, low), (fused, fused_low), (plain, plain_low)] = &mut rows;
    let done = [
        multiply((&factors, &multipliers), (1, less), acc, chosen, low),
        multiply_into::<true>((&factors, &multipliers), (1, less), acc, fused, fused_low),
        multiply_into::<false>((&factors, &multipliers), (1, less), acc, plain, plain_low),
    ];
    assert_eq!(done, [done[0]; 3]);
    let mut results = vec![exact[if wide { 3 } else { 12 }]];
    if done[0] {
        let bits = rows.map(|([high], [low])| if wide { bits::<Fp32>(&high, &low) } else { bits::<Bf16>(&high, &low) });
        results.extend(bits.map(|bits| bits[if wide { 3 } else { 12 }]));
    } else {
        assert_eq!(rows, before, "left as they are");
    }
    results.extend(if wide {
        wide_ones(&factors, &multipliers, less, old)
    } else {
        narrow_ones(&factors, &multipliers, less, old)
    });
    results
}

/// A row of a number.
fn halves<H: Held>(bits: u32) -> (Row16, Row16) {
    let (mut high, mut low) = ([0; COLUMNS], [0; COLUMNS]);
    put_row::<H>(&[bits; COLUMNS], &mut high, Some(&mut low));
    (high, low)
}

fn bits<H: Held>(high: &Row16, low: &Row16) -> Row32 {
    bits_of_row::<H>(high, Some(low))
}

/// The same in rows of 16 bits, by their ways, if numbers of f32 suffice.
fn narrow_ones(a: &Factors, b: &Multipliers, less: i32, old: u32) -> Vec<u32> {
    let before = [[dst_of_bf16((old >> 16) as u16); COLUMNS]; ROWS];
    let mut narrow = [before; 3];
    let [chosen, fused, plain] = &mut narrow;
    let done = [
        multiply_bf16(a, b, less, chosen),
        narrow::multiply::<true, false>(a, b, less, fused),
        narrow::multiply::<false, true>(a, b, less, plain),
    ];
    assert_eq!(done, [done[0]; 3]);
    assert_eq!(narrow, [narrow[0]; 3]);
    if !done[0] {
        assert_eq!(narrow[0], before, "left as they are");
        return Vec::new();
    }
    let mut four = [before[0]; 4];
    assert!(multiply_bf16(a, b, less, &mut four));
    assert_eq!(four, narrow[0][..4]);
    vec![u32::from(bf16_of_dst(narrow[0][5][11])) << 16]
}

/// The same in rows of 32 bits, by their ways, if numbers of f64 suffice.
fn wide_ones(a: &Factors, b: &Multipliers, less: i32, old: u32) -> Vec<u32> {
    let (high, low) = halves::<Fp32>(old);
    let before = ([high; ROWS], [low; ROWS]);
    let mut wide = [before; 3];
    let [chosen, fused, plain] = &mut wide;
    let done = [
        multiply_fp32(a, b, less, &mut chosen.0, &mut chosen.1),
        wide::multiply::<true, false>((a, b), less, &mut fused.0, &mut fused.1),
        wide::multiply::<false, true>((a, b), less, &mut plain.0, &mut plain.1),
    ];
    assert_eq!(done, [done[0]; 3]);
    assert_eq!(wide, [wide[0]; 3]);
    if !done[0] {
        assert_eq!(wide[0], before, "left as they are");
        return Vec::new();
    }
    vec![bits::<Fp32>(&wide[0].0[6], &wide[0].1[6])[9]]
}

/// Numbers near 1.0, or smaller: near powers of two of which a product is hardly a number.
fn any_number(middle: u16, spread: u16) -> impl Strategy<Value = u16> {
    let range = middle.saturating_sub(64 * spread)..(middle + 64 * spread).min(0x7FFF);
    prop_oneof![
        8 => (any::<bool>(), range).prop_map(|(s, x)| u16::from(s) << 15 | x),
        1 => any::<u16>(),
        1 => Just(0u16),
    ]
}

/// A row; of some, certain fidelity phases take no bits that are set.
fn any_row() -> impl Strategy<Value = [u16; 16]> {
    let middle = prop_oneof![4 => Just(0x3F80u16), 1 => 0x1000u16..0x3F80];
    let spread = prop_oneof![1u16..4, 4u16..40, Just(200)];
    let set = prop_oneof![4 => Just(0xFFFF), 1 => Just(0xFFFE), 1 => Just(0xFFF8), 1 => Just(0xFF80)];
    let row = |(middle, spread)| prop::array::uniform16(any_number(middle, spread));
    ((middle, spread).prop_flat_map(row), set).prop_map(|(row, set): (_, u16)| row.map(|x: u16| x & set))
}

fn any_operand() -> impl Strategy<Value = u16> {
    prop_oneof![any_number(0x3F80, 40), any_number(0x1800, 80)]
}

fn any_old() -> impl Strategy<Value = u16> {
    prop_oneof![any_number(0x3F80, 20), any_number(0x800, 40)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]
    #[test]
    fn products_are_what_the_description_says(
        a in any_row(),
        b in any_row(),
        phase in 0u32..4,
        old in any::<u32>(),
        near in any_old(),
        wide in any::<bool>(),
    ) {
        let low = if wide { old >> 16 } else { 0 };
        let old = if old & 3 != 0 { u32::from(near) << 16 | low } else { old & 0xFFFF_0000 };
        let want = product(&a, &b, phase, old, if wide { (23, 24) } else { (10, 8) });
        let results = computed(&a, &b, phase, old, wide);
        prop_assert_eq!(&results, &vec![want; results.len()]);
    }

    #[test]
    fn sums_are_what_the_description_says(
        a in any_operand(),
        b in any_operand(),
        old in any_old(),
        further in prop_oneof![Just(0), Just(1), any::<u16>(), any::<u16>().prop_map(|x| x << 12)],
        phase in 0u32..4,
    ) {
        let (old, further) = (u32::from(old) << 16, further.into());
        for (result, want) in sums((a, b), (old, further), phase) {
            prop_assert_eq!(result, want);
        }
    }
}

/// A group whose last bits lie behind the last place of what Dst holds is rounded there, also where
/// the sum is a little below a power of two, so that FP32 has a place more for it.
#[test]
fn groups_are_rounded_before_they_are_added() {
    const ONE: u16 = 0x3F80;
    for (exponent, mantissa) in (8..32).flat_map(|exponent| [0, 1, 0x2A, 0x55, 0x7F].map(|m| (exponent, m))) {
        let tiny = ONE - (exponent << 7) + mantissa;
        for a in [ONE, ONE | 0x58].map(|a| a | 0x8000) {
            for (old, further) in [(ONE, 0), (ONE, 1), (2 * ONE, 0), (ONE - 1, 0xFFFF)] {
                for phase in 0..4 {
                    for (result, want) in sums((a, tiny), (u32::from(old) << 16, further), phase) {
                        assert_eq!(result, want, "{a:#x}, {tiny:#x} and {old:#x} {further:#x}, phase {phase}");
                    }
                }
            }
        }
    }
}

/// In fidelity phases in which no bits of 1.0 and the like are set, products are zero. What Dst
/// holds is rounded to their exponents nevertheless, and what is no number there becomes one.
#[test]
fn products_of_zeros_count_with_their_exponents() {
    const ONE: u16 = 0x3F80;
    let olds = [0u32, 1 << 31, 1, 0x8040_0000, 0x7F80_0000, 0xFF80_0000, 0x7FC0_0001, 0x7F80_0001, 0x0080_0000];
    let near = (0x38..0x48).flat_map(|exp| [0, 1, 0x7F_FFFF, 0x40_0000].map(|mantissa| exp << 24 | mantissa));
    for old in olds.into_iter().chain(near) {
        for (a, b) in
            [(ONE, ONE), (ONE, ONE + 1), (ONE + 1, ONE), (ONE + (20 << 7), ONE), (ONE + (90 << 7), ONE), (0, ONE)]
        {
            // Some operands are zero.
            let [a, b] = [a, b].map(|x| std::array::from_fn(|i| if i % 3 == 0 { x } else { 0 }));
            for (phase, wide) in (0..4).flat_map(|phase| [(phase, false), (phase, true)]) {
                let old = if wide { old } else { old & 0xFFFF_0000 };
                let want = product(&a, &b, phase, old, if wide { (23, 24) } else { (10, 8) });
                let results = computed(&a, &b, phase, old, wide);
                assert_eq!(results, vec![want; results.len()], "{a:x?}, {b:x?} and {old:#x}, phase {phase}");
            }
        }
    }
}

/// What element-wise instructions make of two numbers and what Dst holds, which has `further` bits
/// in FP32, and what the description says.
fn sums((a, b): (u16, u16), (old, further): (u32, u32), phase: u32) -> Vec<(u32, u32)> {
    let less = phase_exponent(phase);
    let terms: Vec<_> = [number(a), number(b)].into_iter().flatten().map(|(m, e)| (m, e - 127 - less)).collect();
    let sum = group(&terms);
    let product = number(a).zip(number(b)).map(|((a, a_exp), (b, b_exp))| {
        let b = if phase & 2 == 0 { part(b, true, 7, 7) } else { part(b, false, 4, 7) << 3 };
        Exact(part(a, phase & 1 == 0, 5, 5) * b, a_exp + b_exp - 254 - less)
    });
    let of = |(acc, old, places, bits)| {
        let result = |what, b: u16, old: Option<u32>| elements(what, (a, b), phase, acc, old);
        [
            (result(Element::Add, b, Some(old)), total(&[sum], old, places, bits)),
            (result(Element::Subtract, b ^ 0x8000, Some(old)), total(&[sum], old, places, bits)),
            (result(Element::Add, b, None), total(&[sum], 0, places, bits)),
            (result(Element::Multiply, b, Some(old)), total(&[product], old, places, bits)),
        ]
    };
    [(Acc::Bf16, old, 10, 8), (Acc::Fp32, old | further, 23, 24)].into_iter().flat_map(of).collect()
}

/// What an element-wise instruction makes of two numbers and what Dst holds, or else of them alone.
fn elements(what: Element, (a, b): (u16, u16), phase: u32, acc: Acc, old: Option<u32>) -> u32 {
    let taken = Taken { broadcast_row: true, broadcast_column: false, add: old.is_some() };
    let (a, b) = ([[src_of_bf16(a); COLUMNS]; 8], [[src_of_bf16(b); COLUMNS]]);
    let of = Elements { what, taken, a: &a, b: &b, style: Style::Bf16, phase };
    // Without it, what is there does not matter.
    let (high, low) =
        if acc == Acc::Fp32 { halves::<Fp32>(old.unwrap_or(7)) } else { halves::<Bf16>(old.unwrap_or(7)) };
    let (mut high, mut low) = ([high; 8], [low; 8]);
    add_elements(of, acc, &mut high, if acc == Acc::Fp32 { &mut low } else { &mut [] });
    let rows = high.iter().zip(&low);
    let bits = rows.map(|(high, low)| if acc == Acc::Fp32 { bits::<Fp32>(high, low) } else { bits::<Bf16>(high, low) });
    let bits: Vec<_> = bits.flatten().collect();
    assert_eq!(bits, vec![bits[0]; bits.len()]);
    bits[0]
}

/// Products of a column of SrcA and a row of SrcB, added twice to zero in Dst, as ttsim has them:
/// fidelity phase, whether Dst holds 32 bits, column, row (BF16), result (f32). In the last 16, a
/// group of some has no exponent.
const FOUND: &str = include_str!("found.txt");

#[test]
fn products_are_what_was_found() {
    let sixteen = |hex: &str| -> [u16; 16] {
        std::array::from_fn(|i| u16::from_str_radix(&hex[4 * i..4 * i + 4], 16).expect("a number"))
    };
    for line in FOUND.lines() {
        let [phase, wide, a, b, result] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (phase, wide) = (phase.parse().expect("a phase"), wide == "1");
        let (a, b) = (sixteen(a), sixteen(b));
        let once = computed(&a, &b, phase, 0, wide);
        let twice = computed(&a, &b, phase, once[0], wide);
        let result = u32::from_str_radix(result, 16).expect("a number");
        assert_eq!((&once, &twice), (&vec![once[0]; once.len()], &vec![result; twice.len()]), "{line}");
    }
    assert_eq!(FOUND.lines().count(), 48);
}

/// The same with FP16 in Dst, whose exponents start at -14: 1.0 times that exponent stays.
#[test]
fn groups_below_the_exponents_of_dst_are_zero() {
    let group = |int: i32, exp: i32| Group { ints: [int; COLUMNS], exps: [exp; COLUMNS] };
    let bits = |x: f32| [x.to_bits(); COLUMNS];
    let least = 2f32.powi(-14);
    for (group, old, sum) in [
        (group(1 << POINT, -14), 0.0, least),
        (group(3 << POINT, -15), 0.0, 0.0),
        (group(3 << POINT, -15), least, least),
        (group(3 << POINT, -14), -least, 2.0 * least),
    ] {
        assert_eq!(combine::<Fp16, 1>(&[group], &bits(old)), bits(sum), "{group:?} and {old}");
    }
    // BF16 and FP32 still have it.
    assert_eq!(combine::<Bf16, 1>(&[group(3 << POINT, -15)], &bits(0.0)), bits(1.5 * least));
    assert_eq!(combine::<Fp32, 1>(&[group(3 << POINT, -15)], &bits(0.0)), bits(1.5 * least));
}
