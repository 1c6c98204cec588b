//! `tilework check`: a program with given inputs against expected outputs.

use super::args::{ModelCheckArgs, RoundingName};
use super::{bisect, choose, inputs, open, run, session, supported, tensors};
use crate::answer::Answer;
use crate::args::{ArraySource, Input};
use crate::array::Array;
use crate::comparison::OutputRow;
use crate::failure::{Failure, Outcome};
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use tilework_engine::{Session, Tolerance, Value};
use tilework_model::Model;

/// Runs a program and compares; a mismatch is a failed run.
///
/// Expected outputs are often computed in float32, without the roundings that the program asks for
/// after each operation. So when an output is beyond its tolerance, and nobody said where to round,
/// the program runs again with rounding at its ends only; if that passes, the difference is the
/// rounding, and the report says so.
pub fn check(file: &Path, own: &ModelCheckArgs) -> Outcome<Answer> {
    let model = open(file, own.model.schema)?;
    if let Some(folder) = &own.bisect {
        return bisect::bisect(own, &model, folder);
    }
    let mut report = compare(file, own, &model, own.model.rounding.unwrap_or(RoundingName::Operations))?;
    if !report.passed && own.model.rounding.is_none() {
        let ends = compare(file, own, &model, RoundingName::Ends)?;
        if ends.passed {
            report = ModelCheck { rounded_after_operations: Some(report.outputs), ..ends };
        }
    }
    let failure = (!report.passed).then(|| Failure::failed("mismatch", "the outputs are not as expected"));
    Ok(Answer::new(report, ModelCheck::text).failing(failure))
}

/// Runs a program and compares its outputs.
fn compare(file: &Path, own: &ModelCheckArgs, model: &Model, rounding: RoundingName) -> Outcome<ModelCheck> {
    let expect = expected(own)?;
    let (mut session, program, inputs) = ready(own, model, rounding)?;
    let info = session.programs().swap_remove(program);
    let expected: Vec<Array> = (0..info.outputs.len())
        .map(|i| crate::inputs::open(&expect.join(format!("out{i}.npy")), None))
        .collect::<Outcome<_>>()?;
    let ran = session.run(program, inputs, &mut ()).map_err(run::failure)?;
    let mut outputs = Vec::new();
    for (i, (found, expected)) in ran.outputs.iter().zip(&expected).enumerate() {
        let tolerance = own.tolerance.or(Tolerance::of(&model.programs()[program], i));
        outputs.push(row(i, found, expected, tolerance)?);
    }
    let passed = outputs.iter().all(|row| row.passed);
    let file = file.display().to_string();
    Ok(ModelCheck {
        program: info.name,
        file,
        rounding: rounding.name(),
        passed,
        outputs,
        rounded_after_operations: None,
    })
}

/// The program that is meant, checked, and its inputs.
pub(super) fn ready<'m>(
    own: &ModelCheckArgs,
    model: &'m Model,
    rounding: RoundingName,
) -> Outcome<(Session<'m>, usize, Vec<Value>)> {
    let expect = expected(own)?;
    let mut session = session(model, &own.model, rounding)?;
    let program = choose(&session, own.model.entry.as_deref())?;
    supported(&mut session, program)?;
    let count = session.inputs(program).map_err(run::failure)?.len();
    let given: Vec<Input> = (0..count)
        .map(|i| Input {
            name: i.to_string(),
            source: ArraySource::File { path: expect.join(format!("in{i}.npy")), key: None },
        })
        .collect();
    let inputs = inputs::read(&session, program, &given)?;
    Ok((session, program, inputs))
}

/// The folder with expected arrays.
fn expected(own: &ModelCheckArgs) -> Outcome<&Path> {
    let missing = || Failure::usage("a compiled model is checked with --expect DIR").with("option", "--expect");
    own.expect.as_deref().ok_or_else(missing)
}

fn row(index: usize, found: &Value, expected: &Array, tolerance: Tolerance) -> Outcome<OutputRow> {
    let name = format!("out{index}");
    let Some(found) = found.single() else {
        let why = "has a part for each device; only whole outputs can be compared";
        return Err(Failure::usage(format!("{name} {why}")));
    };
    OutputRow::compare(name, found.dtype().mlir_name(), &tensors::array(found), expected, tolerance)
}

#[derive(Serialize, Debug)]
struct ModelCheck {
    program: String,
    file: String,
    /// Where results were rounded: operations or ends.
    rounding: &'static str,
    passed: bool,
    outputs: Vec<OutputRow>,
    /// The outputs with rounding after each operation, when only rounding at the ends passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    rounded_after_operations: Option<Vec<OutputRow>>,
}

impl ModelCheck {
    fn text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        for row in &self.outputs {
            writeln!(out, "{row}")?;
        }
        for row in self.rounded_after_operations.iter().flatten().filter(|row| !row.passed) {
            writeln!(
                out,
                "     {}: this is with rounding at the program's ends only, as in float32; rounded after each",
                row.name
            )?;
            writeln!(out, "     operation, as on a device, it is beyond the tolerance: {}", row.verdict)?;
        }
        Ok(())
    }
}
