//! Comparison of a result with what was expected, within a tolerance.

use std::fmt;

use tilework_model::common::DataType;
use tilework_model::ttnn::Program;
use tilework_ops::{DType, Tensor};

/// Tolerance of a comparison. All conditions that are set must hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// An element may differ by `atol + rtol * |expected|` without being a mismatch
    /// ([`Comparison::mismatches`]).
    pub rtol: f64,
    /// See `rtol`.
    pub atol: f64,
    /// Mismatches are an error.
    pub all_close: bool,
    /// The smallest correlation that is allowed.
    pub pcc: Option<f64>,
    /// The largest absolute error that is allowed, as a fraction of the range of the
    /// expected values.
    pub of_range: Option<f64>,
}

impl Tolerance {
    /// Integers, choices and data movement: nothing may differ.
    pub const EXACT: Self = Self { rtol: 0.0, atol: 0.0, all_close: true, pcc: None, of_range: None };
    /// Programs in float32: an error of 1e-4 of the range, correlation 0.9999
    /// (`data/ttnn/README.md`).
    pub const FLOAT32: Self =
        Self { rtol: 1e-4, atol: 1e-4, all_close: false, pcc: Some(0.9999), of_range: Some(1e-4) };
    /// Programs in float32 with products of matrices, on a chip: its matrix unit takes ten bits of
    /// the mantissa of each operand, so that a product errs by up to 2^-9 of itself.
    pub const SHORT_OPERANDS: Self =
        Self { rtol: 2e-3, atol: 2e-3, all_close: false, pcc: Some(0.9999), of_range: Some(2e-3) };
    /// Programs in bfloat16: an error of 2 % of the range, correlation 0.999
    /// (`data/ttnn/README.md`).
    pub const BFLOAT16: Self =
        Self { rtol: 5e-2, atol: 1e-3, all_close: false, pcc: Some(0.999), of_range: Some(0.02) };

    /// The customary tolerance for an output of a program: exact for integers, that of bfloat16 if
    /// any of the program's tensors is of a type as narrow, otherwise that of float32.
    pub fn of(program: &Program, output: usize) -> Self {
        use DataType as T;
        let narrow =
            |data_type| matches!(data_type, T::BFloat16 | T::Float16 | T::BFP_BFloat8 | T::BFP_BFloat4 | T::BFP_Float8);
        let own = program.outputs.get(output).map(|output| output.desc.layout.memory_desc.data_type);
        if own.is_some_and(|own| own != T::Float32 && !narrow(own)) {
            return Self::EXACT;
        }
        let mut operands = program.operations.iter().flat_map(|operation| operation.operands());
        let any = operands.any(|operand| narrow(operand.tensor.desc.layout.memory_desc.data_type));
        if any || own.is_some_and(narrow) { Self::BFLOAT16 } else { Self::FLOAT32 }
    }
}

impl Tolerance {
    /// The customary tolerance for the floats that operations of a program make: that of bfloat16
    /// if an output of the program has it, otherwise that of float32.
    pub fn of_floats(program: &Program) -> Self {
        let narrow = (0..program.outputs.len()).any(|output| Self::of(program, output) == Self::BFLOAT16);
        if narrow { Self::BFLOAT16 } else { Self::FLOAT32 }
    }

    /// This for floats; exact for all else.
    ///
    /// A result whose elements lie close together is not asked for more than its numbers can hold.
    /// Two numbers that differ by next to nothing may be rounded to neighbours, so an error of one
    /// unit of bfloat16 at the largest element is allowed, or, in float32, of 2^-18 of it, which is
    /// what the approximated functions of a chip leave (docs/kernels.md); and of as much again
    /// where the operands have been `rounded` as well, so that each may differ by a unit, which
    /// functions like a sum of what has one sign pass on as it is. Errors spread evenly over such a
    /// unit u have a mean square of u^2 / 12; where they alone reduce the correlation of elements
    /// of that variance below the bound, it says nothing and is not asked for.
    #[must_use]
    pub fn for_result(self, result: &Tensor, rounded: bool) -> Self {
        if !result.dtype().is_float() {
            return Self::EXACT;
        }
        let values = values(result);
        let finite = || values.iter().copied().filter(|value| value.is_finite());
        let largest = finite().fold(0.0, |most: f64, value| most.max(value.abs()));
        let one = if self == Self::BFLOAT16 { bfloat16_unit(largest) } else { largest * 2_f64.powi(-18) };
        let unit = if rounded { 2.0 * one } else { one };
        let count = finite().count().max(1) as f64;
        let mean = finite().sum::<f64>() / count;
        let variance = finite().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        let range = range(&values);
        let of_range = self.of_range.map(|bound| if range > 0.0 { bound.max(unit / range) } else { bound });
        let pcc = self.pcc.filter(|pcc| unit * unit / 12.0 <= 2.0 * (1.0 - pcc) * variance || self.of_range.is_none());
        Self { of_range, pcc, ..self }
    }
}

/// The distance of bfloat16 numbers of that magnitude.
fn bfloat16_unit(magnitude: f64) -> f64 {
    if magnitude > 0.0 { magnitude.log2().floor().exp2() / 128.0 } else { 0.0 }
}

/// An element that differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Its index in each dimension.
    pub index: Vec<usize>,
    /// What was expected.
    pub expected: f64,
    /// What was found.
    pub found: f64,
}

/// A result compared with what was expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Number of elements.
    pub elements: usize,
    /// Pearson's correlation; 1 if all elements are the same, 0 if only one side is constant.
    pub pcc: f64,
    /// Whether the expected elements differ from one another. If they do not, there is no
    /// correlation: the error as a fraction of their magnitude is judged alone.
    pub varies: bool,
    /// Largest absolute error; infinite if one side is NaN or infinite where the other is
    /// not the same.
    pub max_abs: f64,
    /// Largest error relative to the expected element, over elements that are not 0.
    pub max_rel: f64,
    /// Largest minus smallest finite expected element; if all are the same, that
    /// element's magnitude.
    pub range: f64,
    /// Elements beyond `atol + rtol * |expected|`.
    pub mismatches: usize,
    /// The first mismatch.
    pub first: Option<Difference>,
    /// The tolerance that was applied.
    pub tolerance: Tolerance,
}

/// Two tensors of different shapes cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("its shape is {found}, expected {expected}")]
pub struct ShapeMismatch {
    /// The shape that was expected.
    pub expected: String,
    /// The shape that was found.
    pub found: String,
}

impl Comparison {
    /// Compares element by element. A scalar may be compared with a vector of one element. NaN
    /// is equal to itself, an infinity to one of the same sign. Where truth values are
    /// expected, any value but 0 is true: devices have no such type, and programs return counts
    /// and sums for them.
    pub fn of(found: &Tensor, expected: &Tensor, tolerance: Tolerance) -> Result<Self, ShapeMismatch> {
        let one = found.elements() == 1 && expected.elements() == 1;
        if found.shape() != expected.shape() && !one {
            let (expected, found) = (expected.shape().to_string(), found.shape().to_string());
            return Err(ShapeMismatch { expected, found });
        }
        let truth = expected.dtype() == DType::Bool;
        let found = if truth { &tilework_ops::typecast(found, DType::Bool) } else { found };
        let (shape, found, expected) = (expected.shape().dims(), values(found), values(expected));
        let mut comparison = Self {
            elements: expected.len(),
            pcc: correlation(&found, &expected),
            varies: expected.windows(2).any(|pair| pair[0] != pair[1]),
            max_abs: 0.0,
            max_rel: 0.0,
            range: range(&expected),
            mismatches: 0,
            first: None,
            tolerance,
        };
        for (at, (&found, &expected)) in found.iter().zip(&expected).enumerate() {
            let error = error(found, expected);
            comparison.max_abs = comparison.max_abs.max(error);
            if expected != 0.0 && error > 0.0 {
                comparison.max_rel =
                    comparison.max_rel.max(if error.is_finite() { error / expected.abs() } else { error });
            }
            if error > tolerance.atol + tolerance.rtol * if expected.is_finite() { expected.abs() } else { 0.0 } {
                comparison.mismatches += 1;
                comparison.first.get_or_insert_with(|| Difference { index: index(at, shape), expected, found });
            }
        }
        Ok(comparison)
    }

    /// The largest absolute error as a fraction of the range; 0 without an error, infinite if
    /// everything expected is 0.
    pub fn of_range(&self) -> f64 {
        if self.max_abs == 0.0 { 0.0 } else { self.max_abs / self.range }
    }

    /// Whether the result is within the tolerance.
    pub fn passes(&self) -> bool {
        let by = &self.tolerance;
        (!by.all_close || self.mismatches == 0)
            && by.pcc.is_none_or(|pcc| self.pcc >= pcc || (!self.varies && by.of_range.is_some()))
            && by.of_range.is_none_or(|of_range| self.of_range() <= of_range)
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pcc, of_range) = (self.pcc, self.of_range());
        write!(
            f,
            "PCC {pcc:.6}, max abs {:.3e} ({of_range:.2e} of range), max rel {:.3e}",
            self.max_abs, self.max_rel
        )?;
        let Some(Difference { index, expected, found }) = &self.first else { return Ok(()) };
        let (count, all) = (self.mismatches, self.elements);
        write!(f, "; {count} of {all} elements beyond tolerance, first at {index:?}: {found} instead of {expected}")
    }
}

/// All elements; integers of 32 bits and floats are exact.
fn values(tensor: &Tensor) -> Vec<f64> {
    if tensor.dtype().is_float() {
        tensor.to_f32().into_iter().map(f64::from).collect()
    } else {
        tensor.to_i64().into_iter().map(|value| value as f64).collect()
    }
}

fn error(found: f64, expected: f64) -> f64 {
    if found == expected || (found.is_nan() && expected.is_nan()) {
        0.0
    } else if found.is_finite() && expected.is_finite() {
        (found - expected).abs()
    } else {
        f64::INFINITY
    }
}

fn range(values: &[f64]) -> f64 {
    let finite = || values.iter().copied().filter(|value| value.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    if high > low {
        high - low
    } else if high == low {
        high.abs()
    } else {
        0.0
    }
}

/// Correlation of the elements that are finite on both sides.
fn correlation(found: &[f64], expected: &[f64]) -> f64 {
    if found.iter().zip(expected).all(|(&found, &expected)| error(found, expected) == 0.0) {
        return 1.0;
    }
    let pairs = || found.iter().zip(expected).filter(|(a, b)| a.is_finite() && b.is_finite());
    let count = pairs().count() as f64;
    let (sum_a, sum_b) = pairs().fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
    let (mean_a, mean_b) = (sum_a / count, sum_b / count);
    let (mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0);
    for (a, b) in pairs() {
        let (a, b) = (a - mean_a, b - mean_b);
        (aa, bb, ab) = (aa + a * a, bb + b * b, ab + a * b);
    }
    let scale = (aa * bb).sqrt();
    if scale > 0.0 { ab / scale } else { 0.0 }
}

/// The index in each dimension of the element at a position.
fn index(mut at: usize, shape: &[usize]) -> Vec<usize> {
    let mut index = vec![0; shape.len()];
    for (axis, &length) in shape.iter().enumerate().rev() {
        index[axis] = at % length;
        at /= length;
    }
    index
}
