//! Tiles of integers in the library of compute kernels, from arrays to arrays, against exact
//! integers.

use crate::common;
use crate::functions;
use common::{example, folder, read_npy, run_text, write_npy};
use functions::{program, program_with, run};
use std::ops::Range;

/// Elements of the arrays: 128 x 128.
const ELEMENTS: usize = 1 << 14;
const SHAPE: [u64; 2] = [128, 128];

/// Numbers of 32 bits of many sizes, from a fixed generator.
fn words(seed: u32) -> Vec<u32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state
    };
    (0..ELEMENTS)
        .map(|_| {
            let bits = next() >> 8 & 31;
            next() >> bits
        })
        .collect()
}

/// Two operands: each corner with each, then of many sizes, some equal.
fn operands(corners: &[u32]) -> [Vec<u32>; 2] {
    let [mut a, mut b] = [1, 2].map(words);
    let pairs = corners.iter().flat_map(|&x| corners.iter().map(move |&y| (x, y)));
    pairs.enumerate().for_each(|(i, (x, y))| (a[i], b[i]) = (x, y));
    (ELEMENTS / 2..ELEMENTS).step_by(7).for_each(|i| b[i] = a[i]);
    [a, b]
}

const CORNERS: [u32; 14] =
    [0, 1, 2, 31, 32, 127, 128, 255, 0x7FFF, 0xFFFF, 0x1_0000, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF];

/// A function of two integers, of which 64 bits hold all of both types: its number, and the exact
/// value.
type Binary = (u32, fn(i64, i64) -> i64);

/// A function of one.
type Unary = (u32, fn(i32) -> i32);

/// By how many places a shift leaves something.
const PLACES: Range<i64> = 0..32;

const BINARY: [Binary; 19] = [
    (76, |a, b| a + b),
    (77, |a, b| a - b),
    (78, i64::wrapping_mul),
    (79, i64::min),
    (80, i64::max),
    (81, |a, b| i64::from(a == b)),
    (82, |a, b| i64::from(a != b)),
    (83, |a, b| i64::from(a < b)),
    (84, |a, b| i64::from(a <= b)),
    (85, |a, b| i64::from(a > b)),
    (86, |a, b| i64::from(a >= b)),
    (87, |a, b| a & b),
    (88, |a, b| a | b),
    (89, |a, b| a ^ b),
    (90, |a, b| if PLACES.contains(&b) { a << b } else { 0 }),
    (92, |a, b| if PLACES.contains(&b) { a >> b } else { a >> 63 }),
    (93, |a, b| if b == 0 { -1 } else { a / b }),
    (94, |a, b| if b == 0 { a } else { a % b }),
    (95, |a, b| if b == 0 { a } else { (a % b + b) % b }),
];

#[test]
fn integers_with_a_sign() {
    let [a, b] = operands(&CORNERS).map(|x| x.into_iter().map(u32::cast_signed).collect::<Vec<i32>>());
    for (function, plain) in BINARY {
        let found: Vec<i32> = run(&program(function, [0; 2], ["i32", "i32"], 2, 128), &SHAPE, &[&a, &b]);
        for i in 0..ELEMENTS {
            let expected = plain(a[i].into(), b[i].into()) as i32;
            assert_eq!(found[i], expected, "{function}: {} and {}", a[i], b[i]);
        }
    }
    let found: Vec<i32> = run(&program(91, [0; 2], ["i32", "i32"], 2, 128), &SHAPE, &[&a, &b]);
    for i in 0..ELEMENTS {
        let expected = u32::try_from(b[i]).ok().and_then(|b| (a[i] as u32).checked_shr(b)).unwrap_or(0);
        assert_eq!(found[i], expected as i32, "{} >> {}", a[i], b[i]);
    }
    let unary: [Unary; 3] = [(48, i32::wrapping_neg), (49, i32::wrapping_abs), (50, |x| !x)];
    for (function, plain) in unary {
        let found: Vec<i32> = run(&program(function, [0; 2], ["i32", "i32"], 1, 128), &SHAPE, &[&a]);
        (0..ELEMENTS).for_each(|i| assert_eq!(found[i], plain(a[i]), "{function} of {}", a[i]));
    }
    let found: Vec<i32> = run(&program(51, [77, 0], ["i32", "i32"], 1, 128), &SHAPE, &[&a]);
    assert!(found.iter().all(|&y| y == 77));
}

#[test]
fn integers_without_a_sign() {
    let [a, b] = operands(&CORNERS);
    for (function, plain) in BINARY {
        let found: Vec<u32> = run(&program(function, [0; 2], ["u32", "u32"], 2, 128), &SHAPE, &[&a, &b]);
        for i in 0..ELEMENTS {
            let expected = plain(a[i].into(), b[i].into()) as u32;
            assert_eq!(found[i], expected, "{function}: {} and {}", a[i], b[i]);
        }
    }
    // Of 16 bits, in both forms of Dst.
    let [a, b] = [a, b].map(|x| x.into_iter().map(|x| x as u16).collect::<Vec<u16>>());
    for wide in [false, true] {
        for (function, plain) in BINARY {
            let text = program_with(function, [0; 2], ["u16", "u16"], 2, 128, wide);
            let found: Vec<u16> = run(&text, &SHAPE, &[&a, &b]);
            for i in 0..ELEMENTS {
                let expected = plain(a[i].into(), b[i].into()) as u16;
                assert_eq!(found[i], expected, "{function}, {wide}: {} and {}", a[i], b[i]);
            }
        }
    }
}

/// The nearest value of a type, or for `u8` the low bits; what has a fraction loses it.
trait Nearest {
    fn nearest(x: f64) -> Self;
}
macro_rules! nearest {
    ($($t:ty)*) => { $( impl Nearest for $t { fn nearest(x: f64) -> Self { x as Self } } )* };
}
nearest!(i32 u32 u16 f32);
impl Nearest for i8 {
    /// There is no -128 in sign and magnitude.
    fn nearest(x: f64) -> Self {
        (x as Self).max(-127)
    }
}
impl Nearest for u8 {
    /// Of a float32 beyond 2^31 the low eight bits are zero.
    fn nearest(x: f64) -> Self {
        x.trunc().rem_euclid(256.0) as Self
    }
}

/// Casts `x` from one type to another, and compares each value.
fn casts<T, U>(x: &[T], types: [&str; 2], wide: bool)
where
    T: npyz::AutoSerialize + Copy + Into<f64> + std::fmt::Debug,
    U: npyz::Deserialize + Nearest + PartialEq + std::fmt::Debug,
{
    let side = if x.len() == ELEMENTS { 128 } else { 256 };
    let found: Vec<U> = run(&program_with(35, [0; 2], types, 1, side, wide), &[side, side], &[x]);
    for (&x, y) in x.iter().zip(&found) {
        assert_eq!(*y, U::nearest(x.into()), "{types:?}, {wide}: {x:?}");
    }
}

/// Casts to every type, of which results are not rounded, and to float32, where they are.
fn casts_to_all<T: npyz::AutoSerialize + Copy + Into<f64> + std::fmt::Debug>(x: &[T], from: &str) {
    casts::<T, i32>(x, [from, "i32"], true);
    casts::<T, u32>(x, [from, "u32"], true);
    casts::<T, u16>(x, [from, "u16"], true);
    casts::<T, i8>(x, [from, "i8"], true);
    casts::<T, u8>(x, [from, "u8"], true);
    casts::<T, f32>(x, [from, "f32"], true);
}

#[test]
fn typecasts_take_the_nearest_value_of_each_type_and_of_bytes_the_low_bits() {
    let [a, b] = operands(&CORNERS);
    let halves: Vec<u16> = (0..=u16::MAX).collect();
    let mut bytes: Vec<u8> = (0..ELEMENTS).map(|i| i as u8).collect();
    bytes.rotate_left(3);
    casts_to_all(&a.iter().map(|&x| x.cast_signed()).collect::<Vec<i32>>(), "i32");
    casts_to_all(&b, "u32");
    casts_to_all(&halves, "u16");
    casts_to_all(&bytes, "u8");
    casts_to_all(&bytes.iter().map(|&x| (x as i8).max(-127)).collect::<Vec<i8>>(), "i8");
    let mut numbers: Vec<f32> = a.iter().zip(&b).map(|(&a, &b)| (a as f32 - b as f32) / 64.0).collect();
    let ends = [0.0, 0.99, 127.5, 128.0, 255.9, 256.0, 65535.9, 65536.0, 2_147_483_520.0, 2_147_483_648.0];
    let ends = ends.into_iter().chain([4_294_967_040.0, 4_294_967_296.0, 3e38, f32::INFINITY]);
    ends.flat_map(|x| [x, -x]).enumerate().for_each(|(i, x)| numbers[i] = x);
    casts_to_all(&numbers, "f32");
}

#[test]
fn integers_of_16_bits_become_bfloat16_in_a_narrow_dst_and_back() {
    let halves: Vec<u16> = (0..=u16::MAX).collect();
    casts::<u16, u16>(&halves, ["u16", "u16"], false);
    let text = program_with(35, [0; 2], ["u16", "bf16"], 1, 256, false);
    let found: Vec<f32> = run(&text, &[256, 256], &[&halves]);
    for (x, y) in halves.iter().zip(&found) {
        // To nearest, ties away from zero: half a unit is added, then what bfloat16 lacks is cut.
        let rounded = f32::from_bits((f32::from(*x).to_bits() + 0x8000) & 0xFFFF_0000);
        assert_eq!(*y, rounded, "{x}");
    }
    let numbers: Vec<f32> =
        (0..1 << 16).map(|x: u32| f32::from_bits(x << 16)).map(|x| if x.is_nan() { 1.0 } else { x }).collect();
    casts::<f32, u16>(&numbers, ["bf16", "u16"], false);
}

/// Runs the kernel of the example `eltwise` on two arrays of 256 x 256 integers of eight bits.
fn of_bytes<T: npyz::AutoSerialize + Copy, U: npyz::Deserialize>(
    op: u32,
    types: [&str; 2],
    a: &[T],
    b: &[T],
) -> Vec<U> {
    let text = std::fs::read_to_string(example("eltwise")).unwrap();
    let [from, to] = types.map(|dtype| format!("dtype = \"{dtype}\"\nlayout = \"tile\"\nshape = [256, 256]"));
    let text = text
        .replacen("dtype = \"bf16\"\nlayout = \"tile\"\nshape = [128, 160] # 20 tiles", &from, 1)
        .replacen("like = \"a\"", &from, 1)
        .replacen("like = \"a\"", &to, 1)
        .replace("0, 0, 4, 0, 0, \"a.format\"", &format!("{op}, 0, 4, 0, 0, \"a.format\""));
    run(&text, &[256, 256], &[a, b])
}

#[test]
fn the_matrix_unit_adds_and_multiplies_integers_of_eight_bits() {
    let bytes = || (0..1u32 << 16).map(|i| (i as u8, (i >> 8) as u8));
    let (a, b): (Vec<u8>, Vec<u8>) = bytes().unzip();
    let (c, d): (Vec<i8>, Vec<i8>) = bytes().map(|(a, b)| ((a as i8).max(-127), (b as i8).max(-127))).unzip();
    let plain: [fn(i32, i32) -> i32; 3] = [|a, b| a + b, |a, b| a - b, |a, b| a * b];
    for (op, plain) in (0u32..).zip(plain) {
        let (wide, saturated): (Vec<i32>, Vec<u8>) =
            (of_bytes(op, ["u8", "i32"], &a, &b), of_bytes(op, ["u8", "u8"], &a, &b));
        for i in 0..a.len() {
            let exact = plain(a[i].into(), b[i].into());
            assert_eq!(wide[i], exact, "{op}: {} and {}", a[i], b[i]);
            assert_eq!(i32::from(saturated[i]), exact.clamp(0, 255), "{op}: {} and {}", a[i], b[i]);
        }
        let (wide, saturated): (Vec<i32>, Vec<i8>) =
            (of_bytes(op, ["i8", "i32"], &c, &d), of_bytes(op, ["i8", "i8"], &c, &d));
        for i in 0..c.len() {
            let exact = plain(c[i].into(), d[i].into());
            assert_eq!(wide[i], exact, "{op}: {} and {}", c[i], d[i]);
            assert_eq!(i32::from(saturated[i]), exact.clamp(-127, 127), "{op}: {} and {}", c[i], d[i]);
        }
    }
}

#[test]
fn the_vector_unit_takes_integers_of_eight_bits_as_ones_of_32() {
    let bytes: Vec<i8> = (0..ELEMENTS).map(|i| ((i % 256) as u8 as i8).max(-127)).collect();
    let other: Vec<i8> = bytes.iter().map(|x| x.wrapping_mul(77).max(-127)).collect();
    for (function, plain) in BINARY.into_iter().take(14) {
        let text = program(function, [0; 2], ["i8", "i8"], 2, 128);
        let found: Vec<i8> = run(&text, &SHAPE, &[&bytes, &other]);
        for i in 0..ELEMENTS {
            let exact = plain(bytes[i].into(), other[i].into());
            assert_eq!(i64::from(found[i]), exact.clamp(-127, 127), "{function}: {} and {}", bytes[i], other[i]);
        }
    }
}

/// The example `matmul` with arrays of integers.
fn product<T: npyz::AutoSerialize + Copy>(dtype: &str, a: &[T], b: &[T]) -> Vec<i32> {
    let text = std::fs::read_to_string(example("matmul")).unwrap();
    let text = text.replacen("\"bf16\"", &format!("\"{dtype}\""), 2).replacen("\"bf16\"", "\"i32\"", 1);
    let folder = folder();
    let mut more = Vec::new();
    for (name, values) in [("a", a), ("b", b)] {
        let file = folder.path().join(format!("{name}.npy"));
        write_npy(&file, &SHAPE, values);
        more.extend(["--input".to_owned(), format!("{name}={}", file.display())]);
    }
    run_text(folder.path(), &text, &more.iter().map(String::as_str).collect::<Vec<_>>()).code(0);
    read_npy(&folder.path().join("out/y.npy")).1
}

#[test]
fn products_of_matrices_of_eight_bits_are_exact() {
    let bytes = |seed| words(seed).into_iter().map(|x| x as u8);
    // The first row and column have the largest sums.
    let mut a: Vec<u8> = bytes(5).collect();
    let mut b: Vec<u8> = bytes(6).collect();
    (0..128).for_each(|i| (a[i], b[128 * i]) = (255, 255));
    let (c, d): (Vec<i8>, Vec<i8>) =
        a.iter().zip(&b).map(|(&a, &b)| ((a as i8).max(-127), (b as i8).max(-127))).unzip();
    let exact = |a: &dyn Fn(usize) -> i32, b: &dyn Fn(usize) -> i32, i: usize, j: usize| {
        (0..128).map(|k| a(i * 128 + k) * b(k * 128 + j)).sum::<i32>()
    };
    let (unsigned, signed) = (product("u8", &a, &b), product("i8", &c, &d));
    for i in 0..128 {
        for j in 0..128 {
            assert_eq!(unsigned[i * 128 + j], exact(&|i| a[i].into(), &|i| b[i].into(), i, j), "{i}, {j}");
            assert_eq!(signed[i * 128 + j], exact(&|i| c[i].into(), &|i| d[i].into(), i, j), "{i}, {j}");
        }
    }
}
