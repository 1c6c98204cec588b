//! `tilework check --expect` and `--explore` of a kernel program: runs it and compares its outputs
//! with arrays, and with its outputs under other schedules.

use super::args::KernelCheckArgs;
use super::execute::Work;
use super::explore::{Explored, explore};
use super::failure::{failure, stopped_at};
use super::findings::{self, ChecksReport};
use super::lower::{place, programs};
use super::plan::Plan;
use super::prints::Prints;
use super::run::{NO_RANDOM_INPUTS, laid_out, watch};
use super::schedule;
use super::schema::ProgramFile;
use super::source::Source;
use crate::answer::Answer;
use crate::array::Array;
use crate::board_option::BoardLayout;
use crate::chip::{AnyChip, Device, Settings};
use crate::comparison::OutputRow;
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::targets::Targets;
use crate::{bundle, inputs, interrupt};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{Result, Write};
use std::path::{Path, PathBuf};
use tilework_abi::board::Board;
use tilework_checks::Policy;
use tilework_dtype::DType;
use tilework_engine::Tolerance;
use tilework_runtime::DeviceConfig;

/// What came of a program. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
struct ProgramCheck {
    file: String,
    program: String,
    board: &'static str,
    passed: bool,
    outputs: Vec<OutputRow>,
    #[serde(skip_serializing_if = "Option::is_none")]
    explored: Option<Explored>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<ChecksReport>,
    /// The bundle of the first schedule that deviates.
    #[serde(skip_serializing_if = "Option::is_none")]
    bundle: Option<String>,
}

/// A program that can be run again and again.
pub struct Repeatable<'a> {
    file: &'a Path,
    board: Option<Board>,
    plan: Plan,
    inputs: BTreeMap<String, Array>,
    policy: Policy,
}

/// What a run gives.
pub struct Ran {
    /// Its outputs by name.
    pub outputs: Vec<(String, Array)>,
    /// What was found.
    pub checks: Option<ChecksReport>,
}

/// What of a run is shown while it goes on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shown {
    /// What kernels print.
    Prints,
    /// Nothing.
    Nothing,
}

/// Runs a program and compares; a mismatch is a failed run.
pub fn check(file: &Path, own: &KernelCheckArgs) -> Outcome<Answer> {
    interrupt::flag();
    let inputs = inputs::by_name(&own.plan.input, NO_RANDOM_INPUTS)?;
    let source = Source::read(file, "a program file")?;
    let parsed = ProgramFile::parse(&source)?;
    let (chip, board) = AnyChip::power_on(None, own.plan.board.given, Settings::default())?;
    let plan = Plan::new(source, parsed, BoardLayout::new(board, own.plan.layout.layout()), &inputs)?;
    let expected: Option<Vec<Array>> = own.expect.as_deref().map(|folder| read(&plan, folder)).transpose()?;
    let policy = own.checks.policy(&plan, true)?;
    let read: Vec<PathBuf> = inputs::files(&own.plan.input).chain([file.to_owned()]).collect();
    Targets::new().option("--bundle", own.explore.bundle.as_deref()).prepare(&read)?;
    let program = Repeatable { file, board: own.plan.board.given, plan, inputs, policy };
    let ran = program.run_on(chip, Shown::Prints)?;
    let mut outputs = Vec::new();
    if let Some(expected) = expected {
        for (((name, dtype), (_, found)), expected) in program.outputs().zip(&ran.outputs).zip(&expected) {
            let tolerance = own.tolerance.or(usual(dtype));
            outputs.push(OutputRow::compare(name, dtype.name(), found, expected, tolerance)?);
        }
    }
    let explored = own.explore.explore.map(|schedules| {
        let tolerance = own.tolerance.or(Tolerance::EXACT);
        explore(&program, &ran, own.explore.explore_from, schedules, tolerance)
    });
    let explored = explored.transpose()?;
    let deviating = explored.as_ref().and_then(Explored::first_deviating).zip(own.explore.bundle.as_deref());
    let kept = deviating.map(|(seed, bundle)| schedule::keep(file, own, &program.inputs, seed, bundle)).transpose()?;
    let as_expected = outputs.iter().all(|row| row.passed);
    let failure = match &explored {
        _ if !as_expected => Some(Failure::failed("mismatch", "the outputs are not as expected")),
        Some(explored) => explored.failure(),
        None => None,
    };
    let failure = match &kept {
        Some(path) => failure.map(|failure| failure.map(|message| format!("{message}\n{}", bundle::told(path)))),
        None => failure,
    };
    let (file, name) = (file.display().to_string(), program.plan.name.clone());
    let (board, passed) = (program.plan.board.name(), failure.is_none());
    let bundle = kept.map(|path| path.display().to_string());
    let report = ProgramCheck { file, program: name, board, passed, outputs, explored, checks: ran.checks, bundle };
    Ok(Answer::new(report, ProgramCheck::text).failing(failure))
}

/// The expected outputs, from the files of a folder.
fn read(plan: &Plan, folder: &Path) -> Outcome<Vec<Array>> {
    let outputs = plan.outputs();
    outputs.iter().map(|(name, _)| inputs::open(&folder.join(format!("{name}.npy")), None)).collect()
}

impl Repeatable<'_> {
    /// The names and types of its outputs.
    pub fn outputs(&self) -> impl Iterator<Item = (String, DType)> {
        let outputs = self.plan.outputs().into_iter();
        outputs.map(|(name, buffer)| (name.to_owned(), self.plan.buffers[buffer].dtype))
    }

    /// Runs it on a fresh chip with `settings`.
    ///
    /// # Errors
    /// The run failed.
    pub fn run(&self, settings: Settings) -> Outcome<Ran> {
        // Other schedules print the same, or what they do wrong is a finding.
        self.run_on(AnyChip::power_on(None, self.board, settings)?.0, Shown::Nothing)
    }

    fn run_on(&self, mut chip: AnyChip, shown: Shown) -> Outcome<Ran> {
        let Self { file, plan, inputs, policy, .. } = self;
        let failed = |error| failure(file, error);
        let checks = findings::shared(policy.clone());
        let config = DeviceConfig { remember_programs: true, ..plan.device() };
        let races = chip.check(&checks, config.board);
        let mut device = Device::open(chip, config).map_err(failed)?;
        let placed = place(device.memory().map_err(failed)?, plan)?;
        let programs = programs(plan, &placed)?;
        let work = Work { plan, placed: &placed, programs: &programs, inputs };
        work.upload(&mut device).map_err(failed)?;
        laid_out(&device, plan, &programs)?;
        let progress = Progress::new();
        watch(&mut device, &progress, &checks);
        if shown == Shown::Prints {
            Prints::show(&mut device, &progress);
        }
        let ran = work.execute(&mut device).map_err(|stopped| stopped_at(file, plan, stopped));
        let found = findings::report(&mut device, &checks, races.as_ref());
        let mut ran = findings::judge(ran, found.as_ref())?;
        let outputs = work.outputs(&mut device, ran.take_reads()).map_err(failed)?;
        Ok(Ran { outputs, checks: found })
    }
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
        self.outputs.iter().try_for_each(|row| writeln!(out, "{row}"))?;
        if let Some(explored) = &self.explored {
            explored.text(out)?;
        }
        out.write_all(self.checks.as_ref().map_or("", ChecksReport::text).as_bytes())
    }
}
