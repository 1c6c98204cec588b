//! `tilework check --bisect`: the first operation whose result differs from a reference.

use super::args::ModelCheckArgs;
use super::watch::dump_name;
use super::{check, run, tensors};
use crate::answer::Answer;
use crate::failure::{Failure, Outcome};
use crate::inputs;
use serde::Serialize;
use std::path::Path;
use tilework_engine::{Bisect, Candidate, Departure, Event, Tolerance};
use tilework_model::Model;

/// What was compared. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
struct ModelBisection {
    /// The folder of the reference.
    reference: String,
    /// Tensors that were compared.
    compared: usize,
    /// Tensors that the reference does not have.
    missing: usize,
}

impl ModelBisection {
    fn counts(&self) -> String {
        format!("{} tensors compared, {} not in {}", self.compared, self.missing, self.reference)
    }
}

/// Looks for the first operation whose result leaves a given reference.
pub fn bisect(own: &ModelCheckArgs, model: &Model, folder: &Path) -> Outcome<Answer> {
    let rounding = own.model.rounding.unwrap_or_default();
    let (mut session, program, inputs) = check::ready(own, model, rounding)?;
    let (mut missing, mut failed) = (0_usize, None);
    let mut bisect = Bisect::new(|event: &Event<'_>, found: Candidate<'_>| {
        let path = folder.join(dump_name(event, found.output, found.device));
        if failed.is_some() || !path.is_file() {
            missing += 1;
            return None;
        }
        let wrong = |e: String| Failure::file(&path, e);
        match inputs::open(&path, None).and_then(|array| tensors::tensor(&array).map_err(wrong)) {
            Ok(expected) => Some((expected, own.tolerance.or(usual(model, event.program, found.tensor)))),
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
    let report = ModelBisection { reference: folder.display().to_string(), compared, missing };
    if let Some(departure) = found {
        return Err(left(departure, &report));
    }
    ran.map_err(run::failure)?;
    if compared == 0 {
        let help = "`tilework run --dump-op all` writes such files";
        return Err(Failure::option("--bisect", format_args!(": {}; {help}", report.counts())));
    }
    Ok(Answer::new(report, |report, out| writeln!(out, "no operation leaves the reference: {}", report.counts())))
}

/// A result that differs, as a failed check.
fn left(departure: Departure, report: &ModelBisection) -> Failure {
    let Departure { place, output, what } = departure;
    let what = what.map_or_else(|mismatch| mismatch, |comparison| comparison.to_string());
    let message = format!("{place}: result {output} leaves the reference: {what}\n{}", report.counts());
    Failure::failed("mismatch", message)
        .with("program", &place.program_name)
        .with("operation", place.operation)
        .with("operation_kind", place.kind)
        .with("operation_name", &place.name)
        .with("loc", &place.loc)
        .with("result", output)
        .with_all(report)
}

/// The customary tolerance for a result in a program.
fn usual(model: &Model, program: usize, found: &tilework_ops::Tensor) -> Tolerance {
    let floats = model.programs().get(program).map_or(Tolerance::FLOAT32, Tolerance::of_floats);
    // Each side goes on with its own results.
    floats.for_result(found, true)
}
