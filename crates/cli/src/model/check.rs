//! `tilework check`: a program with given inputs against expected outputs.

use super::watch::dump_name;
use super::{choose, inputs, open, run, session, supported, tensors};
use crate::args::{CheckArgs, Input, ReportForm, RoundingName, Source};
use crate::array::Array;
use crate::failure::{Failure, Outcome};
use crate::print;
use serde::Serialize;
use std::path::{Path, PathBuf};
use tilework_engine::{Comparison, Event, Flow, Observer, Output, Session, Tolerance, Value};
use tilework_model::Model;

/// Runs a program and compares; a mismatch is a failed run.
///
/// Expected outputs are often computed in float32, without the roundings that the program asks for after each operation. So when an output is beyond
/// its tolerance, and nobody said where to round, the program runs again with rounding at its ends only; if that passes, the difference is
/// the rounding, and the report says so.
pub fn check(args: &CheckArgs) -> Outcome<()> {
    let model = open(&args.program, args.model.any_schema)?;
    if let Some(folder) = &args.bisect {
        return bisect(args, &model, folder.clone());
    }
    let mut report = compare(args, &model, args.model.rounding.unwrap_or(RoundingName::Operations))?;
    if !report.passed && args.model.rounding.is_none() {
        let ends = compare(args, &model, RoundingName::Ends)?;
        if ends.passed {
            report = Report { rounded_after_operations: Some(report.outputs), ..ends };
        }
    }
    report.print(args.report)?;
    match report.passed {
        true => Ok(()),
        false => Err(Failure::failed("the outputs are not as expected")),
    }
}

/// Runs a program and compares its outputs.
fn compare(args: &CheckArgs, model: &Model, rounding: RoundingName) -> Outcome<Report> {
    let (mut session, program, inputs) = ready(args, model, rounding)?;
    let info = session.programs().swap_remove(program);
    let expected: Vec<Array> = (0..info.outputs.len())
        .map(|i| Array::open(&args.expect.join(format!("out{i}.npy")), None))
        .collect::<Outcome<_>>()?;
    let ran = session.run(program, inputs, &mut ()).map_err(run::failure)?;
    let mut outputs = Vec::new();
    for (i, (found, expected)) in ran.outputs.iter().zip(&expected).enumerate() {
        let tolerance = args.tolerance(Tolerance::of(&model.programs()[program], i));
        outputs.push(row(i, found, expected, tolerance)?);
    }
    let passed = outputs.iter().all(|row| row.passed);
    let file = args.program.display().to_string();
    Ok(Report { program: info.name, file, rounding: rounding.name(), passed, outputs, rounded_after_operations: None })
}

/// The program that is meant, checked, and its inputs.
fn ready<'m>(args: &CheckArgs, model: &'m Model, rounding: RoundingName) -> Outcome<(Session<'m>, usize, Vec<Value>)> {
    let mut session = session(model, &args.model, rounding)?;
    let program = choose(&session, args.model.entry.as_deref())?;
    supported(&mut session, program)?;
    let count = session.inputs(program).map_err(run::failure)?.len();
    let given: Vec<Input> = (0..count)
        .map(|i| Input {
            name: i.to_string(),
            source: Source::File { path: args.expect.join(format!("in{i}.npy")), key: None },
        })
        .collect();
    let inputs = inputs::read(&session, program, &given)?;
    Ok((session, program, inputs))
}

fn bisect(args: &CheckArgs, model: &Model, folder: PathBuf) -> Outcome<()> {
    let rounding = args.model.rounding.unwrap_or(RoundingName::Operations);
    let (mut session, program, inputs) = ready(args, model, rounding)?;
    let mut bisect = Bisect::new(model, folder, args);
    let ran = session.run(program, inputs, &mut bisect);
    bisect.report(ran.err().map(run::failure))
}

fn row(index: usize, found: &Value, expected: &Array, tolerance: Tolerance) -> Outcome<Row> {
    let name = format!("out{index}");
    let Some(found) = found.single() else {
        return Err(Failure::usage(format!("{name} has a part for each device; only whole outputs can be compared")));
    };
    let expected = tensors::tensor(expected).map_err(|e| Failure::usage(format!("{name}.npy: {e}")))?;
    let dtype = found.dtype().name();
    let found = tensors::tensor(&tensors::array(found)).map_err(Failure::failed)?;
    Ok(match Comparison::of(&found, &expected, tolerance) {
        Ok(comparison) => Row::of(name, dtype, &comparison),
        Err(mismatch) => Row { name, dtype, passed: false, verdict: mismatch.to_string(), ..Row::default() },
    })
}

/// One output beside what was expected.
#[derive(Serialize, Default, Debug)]
struct Row {
    name: String,
    dtype: &'static str,
    passed: bool,
    elements: usize,
    pcc: f64,
    max_abs: f64,
    max_abs_of_range: f64,
    max_rel: f64,
    mismatches: usize,
    first_difference: Option<Vec<usize>>,
    verdict: String,
}

impl Row {
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

#[derive(Serialize, Debug)]
struct Report {
    program: String,
    file: String,
    /// Where results were rounded: operations or ends.
    rounding: &'static str,
    passed: bool,
    outputs: Vec<Row>,
    /// The outputs with rounding after each operation, when only rounding at the ends passes.
    #[serde(skip_serializing_if = "Option::is_none")]
    rounded_after_operations: Option<Vec<Row>>,
}

impl Report {
    fn print(&self, form: ReportForm) -> Outcome<()> {
        print::to_stdout(|out| match form {
            ReportForm::Json => {
                serde_json::to_writer_pretty(&mut *out, self)?;
                writeln!(out)
            }
            ReportForm::Text => {
                for row in &self.outputs {
                    let verdict = if row.passed { "ok  " } else { "FAIL" };
                    writeln!(out, "{verdict} {} {}: {}", row.name, row.dtype, row.verdict)?;
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
        })
    }
}

/// Looks for the first operation whose result leaves a given reference.
struct Bisect<'a> {
    model: &'a Model,
    folder: PathBuf,
    args: &'a CheckArgs,
    compared: usize,
    missing: usize,
    found: Option<String>,
    failure: Option<Failure>,
}

impl<'a> Bisect<'a> {
    fn new(model: &'a Model, folder: PathBuf, args: &'a CheckArgs) -> Self {
        Self { model, folder, args, compared: 0, missing: 0, found: None, failure: None }
    }

    fn tolerance(&self, event: &Event<'_>, value: &tilework_ops::Tensor) -> Tolerance {
        let usual = match value.dtype().is_float() {
            true => self.model.programs().get(event.program).map_or(Tolerance::FLOAT32, |program| {
                let narrow = (0..program.outputs.len()).any(|i| Tolerance::of(program, i) == Tolerance::BFLOAT16);
                if narrow { Tolerance::BFLOAT16 } else { Tolerance::FLOAT32 }
            }),
            false => Tolerance::EXACT,
        };
        self.args.tolerance(usual)
    }

    fn compare(&mut self, event: &Event<'_>, path: &Path, found: &tilework_ops::Tensor) -> Outcome<bool> {
        if !path.is_file() {
            self.missing += 1;
            return Ok(true);
        }
        let wrong = |e: String| Failure::usage(format!("{}: {e}", path.display()));
        let expected = tensors::tensor(&Array::open(path, None)?).map_err(wrong)?;
        let tolerance = self.tolerance(event, found);
        let found = tensors::tensor(&tensors::array(found)).map_err(wrong)?;
        self.compared += 1;
        let verdict = match Comparison::of(&found, &expected, tolerance) {
            Ok(comparison) if comparison.passes() => return Ok(true),
            Ok(comparison) => comparison.to_string(),
            Err(mismatch) => mismatch.to_string(),
        };
        self.found = Some(format!("{}: leaves {}: {verdict}", event.place(), path.display()));
        Ok(false)
    }

    fn report(self, ended: Option<Failure>) -> Outcome<()> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        let (compared, missing) = (self.compared, self.missing);
        match (self.found, ended) {
            (Some(found), _) => {
                Err(Failure::failed(format!("{found}\n{compared} tensors compared, {missing} not in the folder")))
            }
            (None, Some(failure)) => Err(failure),
            (None, None) if compared == 0 => Err(Failure::usage(format!(
                "{} has no tensor of this program; `tilework run --dump-op all` writes such files",
                self.folder.display()
            ))),
            (None, None) => print::to_stdout(|out| {
                writeln!(
                    out,
                    "no operation leaves the reference: {compared} tensors compared, {missing} not in the folder"
                )
            }),
        }
    }
}

impl Observer for Bisect<'_> {
    fn after(&mut self, event: &Event<'_>, outputs: &[Output<'_>]) -> Flow {
        for (k, output) in outputs.iter().enumerate() {
            for (device, tensor) in output.value.tensors().enumerate() {
                let device = output.value.single().is_none().then_some(device);
                let path = self.folder.join(dump_name(event, k, device));
                match self.compare(event, &path, tensor) {
                    Ok(true) => {}
                    Ok(false) => return Flow::Stop,
                    Err(failure) => {
                        self.failure = Some(failure);
                        return Flow::Stop;
                    }
                }
            }
        }
        Flow::Continue
    }
}
