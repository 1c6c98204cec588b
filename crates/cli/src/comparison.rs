//! How exactly outputs are compared with expected ones, as `check` is told.

use tilework_engine::Tolerance;

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
