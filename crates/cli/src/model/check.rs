//! `tilework check`: a program with given inputs against expected outputs.

use super::args::{ModelCheckArgs, RoundingName};
use super::engine::{Session, session};
use super::{bisect, choose, inputs, open, run, supported, tensors};
use crate::answer::Answer;
use crate::args::{ArraySource, Input};
use crate::array::Array;
use crate::comparison::OutputRow;
use crate::failure::{Failure, Outcome};
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use tilework_engine::{RunError, Tolerance, Value};
use tilework_model::Model;
use tilework_ops::Tensor;
use tilework_ops::mesh::Placements;

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
    let mut report = compare(file, own, &model, own.model.rounding.unwrap_or_default())?;
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
    let mesh = session.mesh(program).map_err(run::refusal)?;
    let expected: Vec<Expected> =
        (0..info.outputs.len()).map(|i| Expected::read(expect, i, mesh.devices())).collect::<Outcome<_>>()?;
    let joins = run::joins(&session, program, &own.model.join)?;
    let ran = session.run(program, inputs, &mut ()).map_err(run::failure)?;
    let mut outputs = Vec::new();
    for (i, (found, expected)) in ran.outputs.iter().zip(&expected).enumerate() {
        let tolerance = own.tolerance.or(Tolerance::of(&model.programs()[program], i));
        match expected {
            Expected::Whole(array) => {
                let whole = whole(&session, program, (i, joins.get(&i)), found, array)?;
                outputs.push(row(format!("out{i}"), &whole, array, tolerance)?);
            }
            Expected::Parts(arrays) => {
                for (device, array) in arrays.iter().enumerate() {
                    outputs.push(row(format!("out{i}_dev{device}"), found.on(device), array, tolerance)?);
                }
            }
        }
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
    let mut session = session(model, &own.model, rounding, own.engine, &own.on_chip, None, None)?;
    let program = choose(&session, own.model.entry.as_deref())?;
    supported(&mut session, program)?;
    let count = session.inputs(program).map_err(run::failure)?.len();
    let devices = session.mesh(program).map_err(run::failure)?.devices();
    let given: Vec<Input> = (0..count).flat_map(|i| given(expect, i, devices)).collect();
    let inputs = inputs::read(&session, program, &given, &own.model.shard)?;
    Ok((session, program, inputs))
}

/// The folder with expected arrays.
fn expected(own: &ModelCheckArgs) -> Outcome<&Path> {
    let missing = || Failure::usage("a compiled model is checked with --expect DIR").with("option", "--expect");
    own.expect.as_deref().ok_or_else(missing)
}

/// The files of an input: `in0.npy`, `in0_dev0.npy`... for each device, or `in0_all.npy` for all.
fn given(folder: &Path, index: usize, devices: usize) -> Vec<Input> {
    let input = |part: &str| {
        let path = folder.join(format!("in{index}{part}.npy"));
        Input { name: format!("{index}{part}"), source: ArraySource::File { path, key: None } }
    };
    let there = |part: &str| folder.join(format!("in{index}{part}.npy")).exists();
    match () {
        () if devices > 1 && there("_dev0") => (0..devices).map(|device| input(&format!("_dev{device}"))).collect(),
        () if devices > 1 && there("_all") => vec![input("_all")],
        () => vec![input("")],
    }
}

/// What is expected of an output.
enum Expected {
    /// One array.
    Whole(Array),
    /// One for each device.
    Parts(Vec<Array>),
}

impl Expected {
    /// Reads `out0.npy`, or `out0_dev0.npy`... for each device.
    fn read(folder: &Path, index: usize, devices: usize) -> Outcome<Self> {
        let open = |part: String| crate::inputs::open(&folder.join(format!("out{index}{part}.npy")), None);
        let first = folder.join(format!("out{index}_dev0.npy"));
        match devices > 1 && first.exists() {
            true => Ok(Self::Parts((0..devices).map(|device| open(format!("_dev{device}"))).collect::<Outcome<_>>()?)),
            false => open(String::new()).map(Self::Whole),
        }
    }
}

/// An output as one tensor: as `--join` says, or in the only way that gives the expected shape.
fn whole(
    session: &Session<'_>,
    program: usize,
    (index, join): (usize, Option<&Placements>),
    found: &Value,
    expected: &Array,
) -> Outcome<Tensor> {
    let wrong = |help: &str| {
        let help = help.to_owned();
        move |error: RunError| Failure::usage(format!("out{index}: {error}{help}"))
    };
    match (found.single(), join) {
        (Some(whole), _) => Ok(whole.clone()),
        (None, Some(&placements)) => session.join(program, found, placements).map_err(wrong("")),
        (None, None) => {
            let shape = tensors::shape(&expected.shape).map_err(Failure::usage)?;
            let help = format!("; --join {index}=AXES says how its parts are joined");
            session.join_to(program, found, &shape).map_err(wrong(&help))
        }
    }
}

fn row(name: String, found: &Tensor, expected: &Array, tolerance: Tolerance) -> Outcome<OutputRow> {
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
