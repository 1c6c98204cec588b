//! Elementary functions in float32.
//!
//! `exp`, `tanh` and `sigmoid` are written without branches, so that loops over them vectorise:
//! polynomials of the Cephes library (Moshier, single precision), within 2 units in the last place.
//! The others come from the `libm` crate, which is compiled with the program: the same bits on
//! every machine, whatever its C library.

use multiversion::multiversion;

/// 2^k for k in -126..=127.
#[inline(always)]
fn power_of_two(k: i32) -> f32 {
    f32::from_bits(((k + 127) as u32) << 23)
}

/// e^x. Overflows to infinity, underflows through the subnormal numbers to zero.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    // Beyond these the result is infinity or zero; a NaN passes both comparisons.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    // Adding and subtracting 1.5 * 2^23 rounds to the nearest integer.
    const ROUND: f32 = 12_582_912.0;
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let k = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    // ln 2 in two parts, the first exact in few bits.
    let r = x - n * 0.693_359_4 - n * -2.121_944_4e-4;
    let mut p = 1.987_569_1e-4;
    p = p * r + 1.398_199_9e-3;
    p = p * r + 8.333_452e-3;
    p = p * r + 4.166_579_6e-2;
    p = p * r + 1.666_666_5e-1;
    p = p * r + 5e-1;
    let y = p * r * r + r + 1.0;
    // In two steps, so that neither power overflows or becomes subnormal. For a NaN, `k` is
    // arbitrary: keep it in range.
    let k = k.clamp(-160, 140);
    let half = k >> 1;
    y * power_of_two(half) * power_of_two(k - half)
}

/// Hyperbolic tangent.
#[inline]
pub(crate) fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let large = 1.0 - 2.0 / (exp(2.0 * a) + 1.0);
    let z = x * x;
    let mut p = -5.704_988_7e-3;
    p = p * z + 2.063_909e-2;
    p = p * z - 5.373_971_6e-2;
    p = p * z + 1.333_144_2e-1;
    p = p * z - 3.333_328e-1;
    let small = p * z * x + x;
    if a < 0.625 { small } else { large.copysign(x) }
}

/// 1 / (1 + e^-x).
#[inline]
pub(crate) fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + exp(-x))
}

/// ln(1 + e^x).
#[inline]
pub(crate) fn softplus(x: f32) -> f32 {
    if x > 20.0 { x } else { libm::log1pf(exp(x)) }
}

/// The normal distribution function, by a Chebyshev fit of the complementary error function
/// without branches (Press et al., Numerical Recipes, `erfcc`; relative error below 1.2e-7 before
/// float32 rounds).
#[inline]
pub(crate) fn normal(x: f32) -> f32 {
    let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
    let t = 1.0 / (1.0 + 0.5 * z);
    let mut p = 0.170_872_77;
    p = p * t - 0.822_152_23;
    p = p * t + 1.488_515_9;
    p = p * t - 1.135_204;
    p = p * t + 0.278_868_07;
    p = p * t - 0.186_288_06;
    p = p * t + 0.096_784_18;
    p = p * t + 0.374_091_96;
    p = p * t + 1.000_023_7;
    p = p * t - 1.265_512_2;
    let tail = 0.5 * t * exp(p - z * z);
    if x > 0.0 { 1.0 - tail } else { tail }
}

/// x times the normal distribution function of x.
#[inline]
pub(crate) fn gelu(x: f32) -> f32 {
    // Beyond this the tail is zero, and minus infinity times it would be a NaN.
    let phi = normal(x);
    if x < -14.0 { 0.0 } else { x * phi }
}

/// The usual approximation of [`gelu`] by a hyperbolic tangent.
#[inline]
pub(crate) fn gelu_tanh(x: f32) -> f32 {
    // sqrt(2 / pi)
    const K: f32 = 0.797_884_6;
    0.5 * x * (1.0 + tanh(K * (x + 0.044_715 * x * x * x)))
}

/// Derivative of [`gelu`].
#[inline]
pub(crate) fn gelu_derivative(x: f32) -> f32 {
    // 1 / sqrt(2 pi)
    const K: f32 = 0.398_942_3;
    normal(x) + x * K * exp(-0.5 * x * x)
}

/// Derivative of [`gelu_tanh`].
#[inline]
pub(crate) fn gelu_tanh_derivative(x: f32) -> f32 {
    const K: f32 = 0.797_884_6;
    let t = tanh(K * (x + 0.044_715 * x * x * x));
    0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * K * (1.0 + 3.0 * 0.044_715 * x * x)
}

/// The larger of two values; NaN if either is NaN.
#[inline(always)]
pub(crate) fn maximum(a: f32, b: f32) -> f32 {
    if a > b || a.is_nan() { a } else { b }
}

/// The smaller of two values; NaN if either is NaN.
#[inline(always)]
pub(crate) fn minimum(a: f32, b: f32) -> f32 {
    if a < b || a.is_nan() { a } else { b }
}

/// Sum of a slice in 16 lanes, combined at the end: a fixed order that vectorises and loses less
/// than adding one by one.
#[inline(always)]
pub(crate) fn sum(values: &[f32]) -> f32 {
    let mut lanes = [0f32; 16];
    let (whole, rest) = values.as_chunks::<16>();
    for chunk in whole {
        for (l, &v) in lanes.iter_mut().zip(chunk) {
            *l += v;
        }
    }
    for (l, &v) in lanes.iter_mut().zip(rest) {
        *l += v;
    }
    let mut width = 8;
    while width > 0 {
        for i in 0..width {
            lanes[i] += lanes[i + width];
        }
        width /= 2;
    }
    lanes[0]
}

/// Sum of products of two slices, in the order of [`sum`].
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0f32; 16];
    let ((wa, ra), (wb, rb)) = (a.as_chunks::<16>(), b.as_chunks::<16>());
    for (x, y) in wa.iter().zip(wb) {
        for i in 0..16 {
            lanes[i] += x[i] * y[i];
        }
    }
    for ((l, x), y) in lanes.iter_mut().zip(ra).zip(rb) {
        *l += x * y;
    }
    sum(&lanes)
}

/// The largest of a slice; NaN if one is NaN.
#[inline(always)]
pub(crate) fn largest(values: &[f32]) -> f32 {
    extreme(values, f32::NEG_INFINITY, maximum)
}

/// The smallest of a slice; NaN if one is NaN.
#[inline(always)]
pub(crate) fn smallest(values: &[f32]) -> f32 {
    extreme(values, f32::INFINITY, minimum)
}

/// In lanes, because one by one each comparison would wait for the one before it.
#[inline(always)]
fn extreme(values: &[f32], start: f32, choose: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = [start; 32];
    let (whole, rest) = values.as_chunks::<32>();
    for chunk in whole {
        for (l, &v) in lanes.iter_mut().zip(chunk) {
            *l = choose(*l, v);
        }
    }
    rest.iter().chain(&lanes).copied().fold(start, choose)
}

/// Makes each value of `row` the largest of its column in `others`, or of itself; NaN if one is.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn raise(row: &mut [f32], others: &[&[f32]]) {
    const LANES: usize = 32;
    let count = others.iter().map(|other| other.len()).fold(row.len(), usize::min);
    let whole = count / LANES * LANES;
    // A piece of the row stays in registers while the others go by.
    for (i, piece) in row[..whole].as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let mut largest = *piece;
        for other in others {
            let from = &other[i * LANES..][..LANES];
            largest.iter_mut().zip(from).for_each(|(l, &v)| *l = maximum(*l, v));
        }
        *piece = largest;
    }
    for other in others {
        row[whole..count].iter_mut().zip(&other[whole..]).for_each(|(l, &v)| *l = maximum(*l, v));
    }
}

/// Softmax of a row in place: e to the distance from the largest, over their sum. A sink is one
/// more value, whose result is not wanted.
///
/// Without fused multiply-add, so that the bits are the same on every machine.
#[multiversion(targets("x86_64+avx2"))]
pub(crate) fn softmax(row: &mut [f32], sink: Option<f32>) {
    let largest = sink.into_iter().fold(largest(row), maximum);
    row.iter_mut().for_each(|v| *v = exp(*v - largest));
    let total = sum(row) + sink.map_or(0.0, |sink| exp(sink - largest));
    row.iter_mut().for_each(|v| *v /= total);
}
