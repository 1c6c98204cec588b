//! `tilework check`: a program with given inputs against expected outputs.

use super::watch::dump_name;
use super::{choose, inputs, open, run, session, supported, tensors};
use crate::args::{CheckArgs, Input, RoundingName, Source};
use crate::array::Array;
use crate::failure::{Failure, Outcome};
use crate::print;
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use tilework_engine::{Bisect, Candidate, Comparison, Departure, Event, Session, Tolerance, Value};
use tilework_model::Model;
use tilework_model::ttnn::Program;

/// Runs a program and compares; a mismatch is a failed run.
///
/// Expected outputs are often computed in float32, without the roundings that the program asks for after each operation. So when an output is beyond
/// its tolerance, and nobody said where to round, the program runs again with rounding at its ends only; if that passes, the difference is
/// the rounding, and the report says so.
pub fn check(args: &CheckArgs) -> Outcome<()> {
    let model = open(&args.program, args.model.any_schema)?;
    if let Some(folder) = &args.bisect {
        return bisect(args, &model, folder);
    }
    let mut report = compare(args, &model, args.model.rounding.unwrap_or(RoundingName::Operations))?;
    if !report.passed && args.model.rounding.is_none() {
        let ends = compare(args, &model, RoundingName::Ends)?;
        if ends.passed {
            report = Report { rounded_after_operations: Some(report.outputs), ..ends };
        }
    }
    print::report(&report, args.report, |out| report.text(out))?;
    match report.passed {
        true => Ok(()),
        false => Err(Failure::failed("the outputs are not as expected")),
    }
}

/// Runs a program and compares its outputs.
fn compare(args: &CheckArgs, model: &Model, rounding: RoundingName) -> Outcome<Report> {
    let expect = args.expected()?;
    let (mut session, program, inputs) = ready(args, model, rounding)?;
    let info = session.programs().swap_remove(program);
    let expected: Vec<Array> = (0..info.outputs.len())
        .map(|i| Array::open(&expect.join(format!("out{i}.npy")), None))
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
    let expect = args.expected()?;
    let mut session = session(model, &args.model, rounding)?;
    let program = choose(&session, args.model.entry.as_deref())?;
    supported(&mut session, program)?;
    let count = session.inputs(program).map_err(run::failure)?.len();
    let given: Vec<Input> = (0..count)
        .map(|i| Input {
            name: i.to_string(),
            source: Source::File { path: expect.join(format!("in{i}.npy")), key: None },
        })
        .collect();
    let inputs = inputs::read(&session, program, &given)?;
    Ok((session, program, inputs))
}

/// Looks for the first operation whose result leaves a given reference.
fn bisect(args: &CheckArgs, model: &Model, folder: &Path) -> Outcome<()> {
    let rounding = args.model.rounding.unwrap_or(RoundingName::Operations);
    let (mut session, program, inputs) = ready(args, model, rounding)?;
    let (mut missing, mut failed) = (0_usize, None);
    let mut bisect = Bisect::new(|event: &Event<'_>, found: Candidate<'_>| {
        let path = folder.join(dump_name(event, found.output, found.device));
        if failed.is_some() || !path.is_file() {
            missing += 1;
            return None;
        }
        let wrong = |e: String| Failure::usage(format!("{}: {e}", path.display()));
        match Array::open(&path, None).and_then(|array| tensors::tensor(&array).map_err(wrong)) {
            Ok(expected) => Some((expected, args.tolerance(usual(model, event.program, found.tensor)))),
            Err(failure) => {
                failed = Some(failure);
                None
            }
        }
    });
    let ran = session.run(program, inputs, &mut bisect);
    let (compared, found) = (bisect.compared, bisect.found.take());
    if let Some(failure) = failed {
        return Err(failure);
    }
    let counts = format!("{compared} tensors compared, {missing} not in {}", folder.display());
    if let Some(Departure { place, output, what }) = found {
        let what = what.map_or_else(|mismatch| mismatch, |comparison| comparison.to_string());
        return Err(Failure::failed(format!("{place}: result {output} leaves the reference: {what}\n{counts}")));
    }
    ran.map_err(run::failure)?;
    if compared == 0 {
        return Err(Failure::usage(format!("{counts}; `tilework run --dump-op all` writes such files")));
    }
    print::to_stdout(|out| writeln!(out, "no operation leaves the reference: {counts}"))
}

/// The customary tolerance for a result in a program.
fn usual(model: &Model, program: usize, found: &tilework_ops::Tensor) -> Tolerance {
    if !found.dtype().is_float() {
        return Tolerance::EXACT;
    }
    let narrow = |program: &Program| {
        (0..program.outputs.len()).any(|output| Tolerance::of(program, output) == Tolerance::BFLOAT16)
    };
    match model.programs().get(program).is_some_and(narrow) {
        true => Tolerance::BFLOAT16,
        false => Tolerance::FLOAT32,
    }
}

fn row(index: usize, found: &Value, expected: &Array, tolerance: Tolerance) -> Outcome<Row> {
    let name = format!("out{index}");
    let Some(found) = found.single() else {
        return Err(Failure::usage(format!("{name} has a part for each device; only whole outputs can be compared")));
    };
    let expected = tensors::tensor(expected).map_err(|e| Failure::usage(format!("{name}.npy: {e}")))?;
    let dtype = found.dtype().mlir_name();
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
    fn text(&self, out: &mut dyn Write) -> std::io::Result<()> {
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
}
