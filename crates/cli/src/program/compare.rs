//! `tilework check --expect` of a kernel program: runs it and compares its outputs with arrays.

use super::args::KernelCheckArgs;
use super::execute::Work;
use super::failure::{failure, stopped_at};
use super::lower::{place, programs};
use super::plan::Plan;
use super::prints::Prints;
use super::run::{NO_RANDOM_INPUTS, laid_out, watch};
use super::schema::ProgramFile;
use super::source::Source;
use crate::answer::Answer;
use crate::array::Array;
use crate::board_option::BoardLayout;
use crate::chip::{AnyChip, Device, Settings};
use crate::comparison::OutputRow;
use crate::failure::{Failure, Outcome};
use crate::inputs;
use crate::progress::Progress;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{Result, Write};
use std::path::Path;
use tilework_dtype::DType;
use tilework_engine::Tolerance;

/// What came of a program. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
struct ProgramCheck {
    file: String,
    program: String,
    board: &'static str,
    passed: bool,
    outputs: Vec<OutputRow>,
}

/// Runs a program and compares; a mismatch is a failed run. `folder` has the expected outputs.
pub fn check(file: &Path, own: &KernelCheckArgs, folder: &Path) -> Outcome<Answer> {
    let inputs = inputs::by_name(&own.plan.input, NO_RANDOM_INPUTS)?;
    let source = Source::read(file, "a program file")?;
    let parsed = ProgramFile::parse(&source)?;
    let (chip, board) = AnyChip::power_on(None, own.plan.board.given, Settings::default())?;
    let plan = Plan::new(source, parsed, BoardLayout::new(board, own.plan.layout.layout()), &inputs)?;
    let expected: Vec<Array> = plan
        .outputs()
        .iter()
        .map(|(name, _)| inputs::open(&folder.join(format!("{name}.npy")), None))
        .collect::<Outcome<_>>()?;
    let found = run(file, chip, &plan, &inputs)?;
    let mut outputs = Vec::new();
    for (((_, buffer), (name, found)), expected) in plan.outputs().into_iter().zip(found).zip(&expected) {
        let dtype = plan.buffers[buffer].dtype;
        let tolerance = own.tolerance.or(usual(dtype));
        outputs.push(OutputRow::compare(name, dtype.name(), &found, expected, tolerance)?);
    }
    let passed = outputs.iter().all(|row| row.passed);
    let (file, program) = (file.display().to_string(), plan.name.clone());
    let report = ProgramCheck { file, program, board: plan.board.name(), passed, outputs };
    let failure = (!passed).then(|| Failure::failed("mismatch", "the outputs are not as expected"));
    Ok(Answer::new(report, ProgramCheck::text).failing(failure))
}

/// Runs a program on a chip; its outputs.
fn run(file: &Path, chip: AnyChip, plan: &Plan, inputs: &BTreeMap<String, Array>) -> Outcome<Vec<(String, Array)>> {
    let failed = |error| failure(file, error);
    let mut device = Device::open(chip, plan.device()).map_err(failed)?;
    let placed = place(device.memory().map_err(failed)?, plan)?;
    let programs = programs(plan, &placed)?;
    let work = Work { plan, placed: &placed, programs: &programs, inputs };
    work.upload(&mut device).map_err(failed)?;
    laid_out(&device, plan, &programs)?;
    let progress = Progress::new();
    watch(&mut device, &progress);
    Prints::show(&mut device, &progress);
    let mut ran = work.execute(&mut device).map_err(|stopped| stopped_at(file, plan, stopped))?;
    work.outputs(&mut device, ran.take_reads()).map_err(failed)
}

/// The customary tolerance for an output: exact for integers, as wide as the type for floats.
fn usual(dtype: DType) -> Tolerance {
    match dtype {
        DType::F32 | DType::F64 => Tolerance::FLOAT32,
        dtype if dtype.is_float() => Tolerance::BFLOAT16,
        _ => Tolerance::EXACT,
    }
}

impl ProgramCheck {
    fn text(&self, out: &mut dyn Write) -> Result<()> {
        self.outputs.iter().try_for_each(|row| writeln!(out, "{row}"))
    }
}
