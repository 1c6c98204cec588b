//! Unary, binary and ternary functions, quantisation.

use proptest::prelude::*;
use tilework_ops::{
    Binary, DType, Fused, PerAxis, Quantization, Unary, binary, binary_fused, clamp_tensor, dequantize, dropout,
    gelu_backward, quantize, requantize, unary, where_,
};

use crate::common::{Nd, Two, broadcast, broadcastable, close, floats, ints, same, seeds};

const FLOATS: [(Binary, Two); 17] = [
    (Binary::Add, |x, y| x + y),
    (Binary::Subtract, |x, y| x - y),
    (Binary::Multiply, |x, y| x * y),
    (Binary::Divide, |x, y| x / y),
    (Binary::Equal, |x, y| f64::from(u8::from(x == y))),
    (Binary::NotEqual, |x, y| f64::from(u8::from(x != y))),
    (Binary::GreaterEqual, |x, y| f64::from(u8::from(x >= y))),
    (Binary::GreaterThan, |x, y| f64::from(u8::from(x > y))),
    (Binary::LessEqual, |x, y| f64::from(u8::from(x <= y))),
    (Binary::LessThan, |x, y| f64::from(u8::from(x < y))),
    (Binary::LogicalAnd, |x, y| f64::from(u8::from(x != 0.0 && y != 0.0))),
    (Binary::LogicalOr, |x, y| f64::from(u8::from(x != 0.0 || y != 0.0))),
    (Binary::LogicalXor, |x, y| f64::from(u8::from((x != 0.0) ^ (y != 0.0)))),
    (Binary::Maximum, |x, y| if x.is_nan() || y.is_nan() { f64::NAN } else { x.max(y) }),
    (Binary::Minimum, |x, y| if x.is_nan() || y.is_nan() { f64::NAN } else { x.min(y) }),
    (Binary::Remainder, |x, y| x - y * (x / y).floor()),
    (Binary::Atan2, f64::atan2),
];

proptest! {
    #[test]
    fn floats_broadcast((a, b) in broadcastable(), seed in seeds()) {
        let (x, y) = (Nd::random(&a, seed), Nd::random(&b, seed + 1));
        for (kind, f) in FLOATS {
            let wanted = Nd::by(&broadcast(&a, &b), |i| f(x.at(i), y.at(i)));
            let found = binary(kind, &x.f32(), &y.f32(), DType::F32).unwrap();
            if kind == Binary::Remainder {
                // The reference's quotient may round to the next integer where the remainder is
                // exact: leave zeros out.
                for ((f, w), i) in found.to_f32().iter().zip(&wanted.values).zip(crate::common::indices(&wanted.dims)) {
                    let d = y.at(&i);
                    let off = (f64::from(*f) - w).abs();
                    prop_assert!(d == 0.0 || off < 1e-5 || (off - d.abs()).abs() < 1e-5, "{} % {d} = {f}", x.at(&i));
                    prop_assert!(d == 0.0 || *f == 0.0 || (f64::from(*f) < 0.0) == (d < 0.0));
                }
            } else {
                close(&found, &wanted, 1e-6);
            }
        }
    }

    #[test]
    fn bfloat16_is_rounded_once((a, b) in broadcastable(), seed in seeds()) {
        let (x, y) = (Nd::random(&a, seed), Nd::random(&b, seed + 1));
        for (kind, f) in [FLOATS[0], FLOATS[2]] {
            // Both are exact in float32 for these values, so the only rounding is the last.
            let wanted =
                Nd::by(&broadcast(&a, &b), |i| f64::from(half::bf16::from_f64(f(x.at(i), y.at(i))).to_f32()));
            same(&binary(kind, &x.tensor(DType::BF16), &y.tensor(DType::BF16), DType::BF16).unwrap(), &wanted);
        }
    }

    #[test]
    fn integers_wrap(pairs in prop::collection::vec((any::<i32>(), any::<i32>()), 1..30)) {
        let n = pairs.len();
        let side = |f: fn(&(i32, i32)) -> i32| pairs.iter().map(|p| i64::from(f(p))).collect::<Vec<_>>();
        let (a, b) = (ints(DType::I32, &[n], &side(|p| p.0)), ints(DType::I32, &[n], &side(|p| p.1)));
        type Whole = fn(i32, i32) -> i32;
        let table: [(Binary, Whole); 11] = [
            (Binary::Add, i32::wrapping_add),
            (Binary::Subtract, i32::wrapping_sub),
            (Binary::Multiply, i32::wrapping_mul),
            (Binary::BitwiseAnd, |x, y| x & y),
            (Binary::BitwiseOr, |x, y| x | y),
            (Binary::BitwiseXor, |x, y| x ^ y),
            (Binary::Maximum, i32::max),
            (Binary::Minimum, i32::min),
            (Binary::GreaterThan, |x, y| i32::from(x > y)),
            (Binary::Remainder, |x, y| if y == 0 { 0 } else { i64::from(x).wrapping_rem(i64::from(y)) as i32 }),
            (Binary::Divide, |x, y| match y {
                0 => x.signum().wrapping_mul(i32::MAX),
                y => x.wrapping_div(y),
            }),
        ];
        for (kind, f) in table {
            let found = binary(kind, &a, &b, DType::I32).unwrap().to_i64();
            for (&(x, y), &r) in pairs.iter().zip(&found) {
                let mut wanted = f(x, y);
                if kind == Binary::Remainder && wanted != 0 && (wanted < 0) != (y < 0) {
                    wanted += y;
                }
                prop_assert_eq!(r, i64::from(wanted), "{:?} of {} and {}", kind, x, y);
            }
        }
    }

    #[test]
    fn shifts_move_zeros_in(x in any::<u32>(), by in -3i64..40) {
        let (a, b) = (ints(DType::U32, &[1], &[i64::from(x)]), ints(DType::I32, &[1], &[by]));
        let distance = u32::try_from(by).ok();
        let right = distance.and_then(|d| x.checked_shr(d)).unwrap_or(0);
        let left = distance.and_then(|d| x.checked_shl(d)).unwrap_or(0);
        prop_assert_eq!(binary(Binary::LogicalRightShift, &a, &b, DType::U32).unwrap().to_i64(), [i64::from(right)]);
        prop_assert_eq!(binary(Binary::LogicalLeftShift, &a, &b, DType::U32).unwrap().to_i64(), [i64::from(left)]);
        // A negative number's bits are shifted, not its value.
        let negative = ints(DType::I32, &[1], &[i64::from(x as i32)]);
        let found = binary(Binary::LogicalRightShift, &negative, &b, DType::I32).unwrap();
        prop_assert_eq!(found.to_i64(), [i64::from(right as i32)]);
    }

    #[test]
    fn choice_broadcasts((a, b) in broadcastable(), seed in seeds()) {
        let dims = broadcast(&a, &b);
        let condition = Nd::by(&dims, |i| (i.iter().sum::<usize>() % 3) as f64);
        let (x, y) = (Nd::random(&a, seed), Nd::random(&b, seed + 1));
        let wanted = Nd::by(&dims, |i| if condition.at(i) != 0.0 { x.at(i) } else { y.at(i) });
        same(&where_(&condition.f32(), &x.f32(), &y.tensor(DType::BF16), DType::F32).unwrap(), &wanted);
    }
}

#[test]
fn functions_of_one_element_are_accurate() {
    let erf = |x: f64| libm::erf(x);
    let table: [(Unary, &dyn Fn(f64) -> f64); 35] = [
        (Unary::Abs, &f64::abs),
        (Unary::Ceil, &f64::ceil),
        (Unary::Cos, &f64::cos),
        (Unary::Floor, &f64::floor),
        (Unary::Gelu, &|x| 0.5 * x * (1.0 + erf(x / 2f64.sqrt()))),
        (Unary::Neg, &|x| -x),
        (Unary::Relu, &|x| x.max(0.0)),
        (Unary::Sqrt, &f64::sqrt),
        (Unary::Rsqrt, &|x| 1.0 / x.sqrt()),
        (Unary::Sigmoid, &|x| 1.0 / (1.0 + (-x).exp())),
        (Unary::Sin, &f64::sin),
        (Unary::Reciprocal, &f64::recip),
        (Unary::Tan, &f64::tan),
        (Unary::Tanh, &f64::tanh),
        (Unary::Atan, &f64::atan),
        (Unary::Exp, &f64::exp),
        (Unary::Erf, &erf),
        (Unary::Erfc, &libm::erfc),
        (Unary::Log, &f64::ln),
        (Unary::Expm1, &f64::exp_m1),
        (Unary::LeakyRelu(0.1), &|x| if x < 0.0 { x * f64::from(0.1f32) } else { x }),
        (Unary::Relu6, &|x| x.clamp(0.0, 6.0)),
        (Unary::Silu, &|x| x / (1.0 + (-x).exp())),
        (Unary::Hardsigmoid, &|x| (x / 6.0 + 0.5).clamp(0.0, 1.0)),
        (Unary::Mish, &|x| x * x.exp().ln_1p().tanh()),
        (Unary::Acos, &f64::acos),
        (Unary::Asin, &f64::asin),
        (Unary::Asinh, &f64::asinh),
        (Unary::Cbrt, &f64::cbrt),
        (Unary::Log1p, &f64::ln_1p),
        (Unary::Softplus, &|x| if x > 30.0 { x } else { x.exp().ln_1p() }),
        (Unary::Exp2, &f64::exp2),
        (Unary::Clamp { min: -1.5, max: 2.0 }, &|x| x.clamp(-1.5, 2.0)),
        (Unary::Round, &f64::round_ties_even),
        (Unary::Power(2.5), &|x| x.powf(2.5)),
    ];
    let mut points: Vec<f32> = (-4000..=4000).map(|i| i as f32 / 100.0 + 0.001).collect();
    points.extend([0.0, 1e-30, -1e-30, 1e-4, -1e-4, 0.5, -0.5, 1.0, -1.0, 6.0, 1e5]);
    let input = floats(&[points.len()], &points);
    for (kind, f) in table {
        let found = unary(kind, &input, DType::F32).unwrap().to_f32();
        for (&x, &y) in points.iter().zip(&found) {
            let wanted = f(f64::from(x));
            // A few units in the last place of the result, or of the intermediate 1 where
            // results cancel.
            let cancels = matches!(kind, Unary::Gelu | Unary::Mish | Unary::Silu | Unary::Erfc);
            let bound = 6.0 * f64::from(f32::EPSILON) * if cancels { wanted.abs().max(1e-1) } else { wanted.abs() };
            let near = (f64::from(y) - wanted).abs() <= bound.max(1e-37) || f64::from(y) == f64::from(wanted as f32);
            assert!(near || (y.is_nan() && wanted.is_nan()), "{kind:?}({x}) = {y}, not {wanted}");
        }
    }
}

#[test]
fn special_values_pass_through() {
    let inf = f32::INFINITY;
    let input = floats(&[4], &[f32::NAN, inf, -inf, -0.0]);
    let of = |kind| unary(kind, &input, DType::F32).unwrap().to_f32();
    let nan_first = |v: Vec<f32>| {
        assert!(v[0].is_nan(), "{v:?}");
        v[1..].to_vec()
    };
    assert_eq!(nan_first(of(Unary::Exp)), [inf, 0.0, 1.0]);
    assert_eq!(nan_first(of(Unary::Tanh)), [1.0, -1.0, 0.0]);
    assert_eq!(nan_first(of(Unary::Sigmoid)), [1.0, 0.0, 0.5]);
    assert_eq!(nan_first(of(Unary::Relu)), [inf, 0.0, 0.0]);
    assert_eq!(nan_first(of(Unary::Sign)), [1.0, -1.0, 0.0]);
    assert_eq!(nan_first(of(Unary::Clamp { min: -1.0, max: 1.0 })), [1.0, -1.0, 0.0]);
    assert_eq!(nan_first(of(Unary::Reciprocal)), [0.0, 0.0, -inf]);
    assert_eq!(of(Unary::IsFinite), [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(of(Unary::LogicalNot), [0.0, 0.0, 0.0, 1.0]);
    let exp = |x: f32| unary(Unary::Exp, &floats(&[1], &[x]), DType::F32).unwrap().to_f32()[0];
    assert_eq!((exp(88.73), exp(-104.0)), (inf, 0.0));
    assert!(exp(88.72) < inf && exp(-100.0) > 0.0);
}

#[test]
fn integers_keep_to_themselves() {
    let input = ints(DType::I32, &[4], &[-5, 0, 7, i64::from(i32::MIN)]);
    let of = |kind| unary(kind, &input, DType::I32).unwrap().to_i64();
    let min = i64::from(i32::MIN);
    assert_eq!(of(Unary::Abs), [5, 0, 7, min]);
    assert_eq!(of(Unary::Neg), [5, 0, -7, min]);
    assert_eq!(of(Unary::Sign), [-1, 0, 1, -1]);
    assert_eq!(of(Unary::BitwiseNot), [4, -1, -8, i64::from(i32::MAX)]);
    assert_eq!(of(Unary::LogicalNot), [0, 1, 0, 0]);
    assert_eq!(of(Unary::Clamp { min: -2.5, max: 6.9 }), [-2, 0, 6, -2]);
    // Beyond 24 bits a float would lose the last.
    let odd = ints(DType::I32, &[1], &[16_777_217]);
    assert_eq!(unary(Unary::Relu, &odd, DType::I32).unwrap().to_i64(), [16_777_217]);
    let odd_bound = Unary::Clamp { min: 0.0, max: 16_777_217.0 };
    assert_eq!(unary(odd_bound, &ints(DType::I32, &[1], &[20_000_000]), DType::I32).unwrap().to_i64(), [16_777_217]);
    assert!(unary(Unary::BitwiseNot, &floats(&[1], &[1.0]), DType::F32).is_err());
    assert!(binary(Binary::BitwiseAnd, &odd, &floats(&[1], &[1.0]), DType::I32).is_err());
}

#[test]
fn nan_and_division_by_zero() {
    let (a, b) = (floats(&[4], &[f32::NAN, 1.0, -1.0, 0.0]), floats(&[4], &[1.0, 0.0, 0.0, 0.0]));
    let of = |kind| binary(kind, &a, &b, DType::F32).unwrap().to_f32();
    assert_eq!(of(Binary::Divide)[1..3], [f32::INFINITY, f32::NEG_INFINITY]);
    assert!(of(Binary::Divide)[0].is_nan() && of(Binary::Divide)[3].is_nan());
    assert!(of(Binary::Maximum)[0].is_nan() && of(Binary::Minimum)[0].is_nan());
    assert_eq!(of(Binary::NotEqual), [1.0, 1.0, 1.0, 0.0]);
    assert_eq!(of(Binary::Pow)[1..], [1.0, 1.0, 1.0]);
    let (a, b) = (ints(DType::I32, &[3], &[7, -7, 0]), ints(DType::I32, &[3], &[0, 0, 0]));
    let max = i64::from(i32::MAX);
    assert_eq!(binary(Binary::Divide, &a, &b, DType::I32).unwrap().to_i64(), [max, -max, 0]);
    assert_eq!(binary(Binary::Divide, &a, &b, DType::F32).unwrap().to_f32()[..2], [f32::INFINITY, f32::NEG_INFINITY]);
    let (a, b) = (ints(DType::I32, &[4], &[17, -17, 17, -17]), ints(DType::I32, &[4], &[3, 3, -3, -3]));
    // The compiler's documentation of ttnn.remainder has exactly these numbers.
    assert_eq!(binary(Binary::Remainder, &a, &b, DType::I32).unwrap().to_i64(), [2, 1, -1, -2]);
    let (a, b) = (ints(DType::I32, &[5], &[3, 2, -1, 5, 0]), ints(DType::I32, &[5], &[4, -1, -3, 0, 0]));
    assert_eq!(binary(Binary::Pow, &a, &b, DType::I32).unwrap().to_i64(), [81, 0, -1, 1, 1]);
}

#[test]
fn comparisons_of_integers_are_exact() {
    let (a, b) = (ints(DType::U32, &[2], &[u32::MAX.into(), 16_777_217]), ints(DType::U32, &[2], &[0, 16_777_216]));
    assert_eq!(binary(Binary::GreaterThan, &a, &b, DType::BF16).unwrap().to_f32(), [1.0, 1.0]);
}

#[test]
fn activations_are_fused_without_rounding() {
    let (a, b) = (floats(&[2], &[-1.0, 2.0]), floats(&[1], &[0.5]));
    let fused = Fused { lhs: &[Unary::Relu], rhs: &[Unary::Neg], post: &[Unary::Square, Unary::Exp] };
    let found = binary_fused(Binary::Add, &a, &b, DType::BF16, fused).unwrap();
    let wanted = [0.25f64.exp(), 2.25f64.exp()].map(|v| f64::from(half::bf16::from_f64(v).to_f32()));
    same(&found, &Nd::new(&[2], wanted.to_vec()));
    assert_eq!(Unary::activation("silu"), Some(Unary::Silu));
    assert_eq!(Unary::activation("gelu_approx"), Some(Unary::Gelu));
    assert_eq!(Unary::activation("nonsense"), None);
}

#[test]
fn tensors_clamp_tensors() {
    let input = floats(&[2, 2], &[-3.0, 0.5, f32::NAN, 9.0]);
    let (low, high) = (floats(&[2], &[-1.0, 1.0]), floats(&[2, 1], &[0.75, 5.0]));
    let found = clamp_tensor(&input, &low, &high, DType::F32).unwrap();
    close(&found, &Nd::new(&[2, 2], vec![-1.0, 0.75, f64::NAN, 5.0]), 0.0);
    assert!(clamp_tensor(&low, &input, &high, DType::F32).is_err());
}

#[test]
fn gelu_backward_is_the_slope() {
    let points: Vec<f64> = (-40..40).map(|i| f64::from(i) / 8.0).collect();
    let x = Nd::new(&[80], points.clone());
    let grad = Nd::new(&[1], vec![2.0]);
    let exact = |x: f64| 0.5 * x * (1.0 + libm::erf(x / 2f64.sqrt()));
    let approximate =
        |x: f64| 0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh());
    for (tanh, f) in [(false, &exact as &dyn Fn(f64) -> f64), (true, &approximate)] {
        let wanted = Nd::by(&[80], |i| 2.0 * (f(points[i[0]] + 1e-5) - f(points[i[0]] - 1e-5)) / 2e-5);
        close(&gelu_backward(&grad.f32(), &x.f32(), tanh, DType::F32).unwrap(), &wanted, 2e-6);
    }
}

#[test]
fn dropout_drops_its_share() {
    let input = floats(&[10_000], &[1.0; 10_000]);
    let found = dropout(&input, 0.25, 4.0 / 3.0, 3, DType::F32).to_f32();
    let dropped = found.iter().filter(|&&v| v == 0.0).count();
    assert!((2280..2720).contains(&dropped), "{dropped}");
    assert!(found.iter().all(|&v| v == 0.0 || v == 4.0 / 3.0));
}

#[test]
fn quantisation_by_hand() {
    let by = Quantization { scale: PerAxis::Tensor(0.5), zero_point: PerAxis::Tensor(3) };
    let input = floats(&[6], &[0.0, 0.25, -0.25, 10.2, 1000.0, -1000.0]);
    let q = quantize(&input, None, by, DType::I32).unwrap();
    // 0.5 + 3 rounds away from zero to 4; -0.5 + 3 = 2.5 to 3.
    assert_eq!(q.to_i64(), [3, 4, 3, 23, 127, -127]);
    assert_eq!(dequantize(&q, None, by, DType::F32).unwrap().to_f32(), [0.0, 0.5, 0.0, 10.0, 62.0, -65.0]);
    let to = Quantization { scale: PerAxis::Tensor(1.0), zero_point: PerAxis::Tensor(0) };
    assert_eq!(requantize(&q, None, by, to, DType::I32).unwrap().to_i64(), [0, 1, 0, 10, 62, -65]);
    assert_eq!(quantize(&input, None, by, DType::U8).unwrap().to_i64(), [3, 4, 3, 23, 255, 0]);
    let (scale, zero) = (floats(&[2], &[1.0, 0.25]), ints(DType::I32, &[2], &[0, 10]));
    let by = Quantization { scale: PerAxis::Axis(&scale), zero_point: PerAxis::Axis(&zero) };
    let input = floats(&[2, 2, 1], &[1.0, 1.0, 2.0, -2.0]);
    assert_eq!(quantize(&input, Some(1), by, DType::I32).unwrap().to_i64(), [1, 14, 2, 2]);
    assert_eq!(quantize(&input, Some(0), by, DType::I32).unwrap().to_i64(), [1, 1, 18, 2]);
    assert!(quantize(&input, Some(2), by, DType::I32).is_err());
}
