//! How exactly outputs are compared with expected ones, as `check` is told, and what came of it.

use crate::array::Array;
use crate::failure::{Failure, Outcome};
use crate::model::tensors::tensor;
use serde::Serialize;
use std::fmt;
use tilework_engine::{Comparison, Tolerance};

/// One output beside what was expected.
#[derive(Serialize, Default, Debug)]
pub struct OutputRow {
    pub name: String,
    pub dtype: &'static str,
    pub passed: bool,
    elements: usize,
    pcc: f64,
    max_abs: f64,
    max_abs_of_range: f64,
    max_rel: f64,
    mismatches: usize,
    first_difference: Option<Vec<usize>>,
    pub verdict: String,
}

impl OutputRow {
    /// Compares output `name` of type `dtype` with what was expected.
    ///
    /// # Errors
    /// Arrays of types that cannot be compared.
    pub fn compare(
        name: String,
        dtype: &'static str,
        found: &Array,
        expected: &Array,
        tolerance: Tolerance,
    ) -> Outcome<Self> {
        let expected = tensor(expected).map_err(|e| Failure::usage(format!("{name}.npy: {e}")))?;
        let found = tensor(found).map_err(|e| Failure::failed("output", e))?;
        Ok(match Comparison::of(&found, &expected, tolerance) {
            Ok(comparison) => Self::of(name, dtype, &comparison),
            Err(mismatch) => Self { name, dtype, passed: false, verdict: mismatch.to_string(), ..Self::default() },
        })
    }

    fn of(name: String, dtype: &'static str, comparison: &Comparison) -> Self {
        Self {
            name,
            dtype,
            passed: comparison.passes(),
            elements: comparison.elements,
            pcc: comparison.pcc,
            max_abs: comparison.max_abs,
            max_abs_of_range: comparison.of_range(),
            max_rel: comparison.max_rel,
            mismatches: comparison.mismatches,
            first_difference: comparison.first.as_ref().map(|first| first.index.clone()),
            verdict: comparison.to_string(),
        }
    }
}

impl fmt::Display for OutputRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.passed { "ok  " } else { "FAIL" };
        write!(f, "{verdict} {} {}: {}", self.name, self.dtype, self.verdict)
    }
}

/// The options of a tolerance.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct ToleranceArgs {
    /// The smallest correlation (Pearson) of each output.
    #[arg(long, value_name = "R", value_parser = parse_number)]
    pcc: Option<f64>,
    /// The largest absolute error, as a part of the range of the expected output.
    #[arg(long, value_name = "PART", value_parser = parse_number)]
    max_error: Option<f64>,
    /// Every element within ATOL + RTOL * |expected|; without --rtol, within ATOL.
    #[arg(long, value_name = "ATOL", value_parser = parse_number)]
    atol: Option<f64>,
    /// Every element within ATOL + RTOL * |expected|; without --atol, within RTOL * |expected|.
    #[arg(long, value_name = "RTOL", value_parser = parse_number)]
    rtol: Option<f64>,
}

impl ToleranceArgs {
    /// The tolerance: `usual`, or what was asked for instead.
    pub fn or(self, usual: Tolerance) -> Tolerance {
        let Self { pcc, max_error, atol, rtol } = self;
        let all_close = atol.is_some() || rtol.is_some();
        if pcc.is_none() && max_error.is_none() && !all_close {
            return usual;
        }
        let (atol, rtol) = match all_close {
            true => (atol.unwrap_or(0.0), rtol.unwrap_or(0.0)),
            false => (usual.atol, usual.rtol),
        };
        Tolerance { atol, rtol, all_close, pcc, of_range: max_error }
    }
}

/// A tolerance is a number: with NaN nothing would ever pass, and the reason would not be told.
fn parse_number(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if !number.is_nan() => Ok(number),
        _ => Err("expected a number".to_owned()),
    }
}
