//! `tilework profile`: runs a kernel program and tells where its time goes.

use super::args::DispatchName;
use super::execute::Work;
use super::failure::{failure, stopped_at};
use super::findings;
use super::look::{listened, watch};
use super::lower::{place, programs};
use super::plan::Plan;
use super::run::{NO_RANDOM_INPUTS, laid_out, watch as watch_progress};
use super::schema::ProgramFile;
use super::source::Source;
use super::source_lines::{self, SourceProfile};
use crate::answer::{Answer, ReportArgs};
use crate::args::{Input, parse_input};
use crate::board_option::{BoardLayout, BoardOption, LayoutOption};
use crate::chip::{AnyChip, Device, Settings};
use crate::failure::{Failure, Outcome};
use crate::progress::Progress;
use crate::targets::Targets;
use crate::{files, inputs, interrupt};
use serde::Serialize;
use std::io::{Result, Write};
use std::path::PathBuf;
use tilework_abi::l1::WORKER;
use tilework_checks::Policy;
use tilework_profile::{Listeners, Profile, ProfileReport};
use tilework_runtime::Dispatch;

/// Arguments of `tilework profile`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Counts are exact, not samples. docs/profile.md says what each number means.

Examples:
  tilework profile examples/increment/program.toml --input x=examples/increment/x.npy
  tilework profile examples/ring/program.toml --annotate
  tilework profile examples/ring/program.toml --folded ring.folded --csv ring.csv --report json")]
pub struct ProfileArgs {
    /// The program file.
    pub program: PathBuf,
    /// The array for an input; once for each input.
    #[arg(long, value_name = "NAME=FILE", value_parser = parse_input)]
    pub input: Vec<Input>,
    #[command(flatten)]
    pub board: BoardOption,
    #[command(flatten)]
    pub layout: LayoutOption,
    /// How programs reach the cores.
    #[arg(long, value_enum, default_value_t = DispatchName::Fast)]
    pub dispatch: DispatchName,
    /// Also show the source of the kernels, with the cost of each line.
    #[arg(long)]
    pub annotate: bool,
    /// Also write the cycles of each stack in the folded form that flame graph tools read.
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,
    /// Also write a table of kernels and tiles as comma-separated values.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// What is told of a program. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
struct ProgramProfile {
    program: String,
    board: &'static str,
    #[serde(flatten)]
    profile: ProfileReport,
    source: SourceProfile,
}

/// Runs a program and tells where its time goes.
pub fn profile(args: &ProfileArgs) -> Outcome<Answer> {
    interrupt::flag();
    if args.dispatch == DispatchName::Slow && args.layout.given.is_some() {
        return Err(Failure::option("--dispatch-layout", " needs --dispatch fast"));
    }
    let given = inputs::by_name(&args.input, NO_RANDOM_INPUTS)?;
    let source = Source::read(&args.program, "a program file")?;
    let parsed = ProgramFile::parse(&source)?;
    let (mut chip, board) = AnyChip::power_on(None, args.board.given, Settings::default())?;
    let plan = Plan::new(source, parsed, BoardLayout::new(board, args.layout.layout()), &given)?;
    let read: Vec<PathBuf> = inputs::files(&args.input).chain([args.program.clone()]).collect();
    let targets = Targets::new().option("--folded", args.folded.as_deref()).option("--csv", args.csv.as_deref());
    targets.prepare(&read)?;
    let listeners = Listeners { profile: Some(Profile::default()), ..Listeners::default() };
    let tracker = watch(&mut chip, WORKER, listeners);
    let failed = |error| failure(&args.program, error);
    let mut config = plan.device();
    config.dispatch = if args.dispatch == DispatchName::Fast { Dispatch::Fast } else { Dispatch::Slow };
    let mut device = Device::open(chip, config).map_err(failed)?;
    let placed = place(device.memory().map_err(failed)?, &plan)?;
    let programs = programs(&plan, &placed)?;
    let work = Work { plan: &plan, placed: &placed, programs: &programs, inputs: &given };
    work.upload(&mut device).map_err(failed)?;
    laid_out(&device, &plan, &programs)?;
    watch_progress(&mut device, &Progress::new(), &findings::shared(Policy::off()));
    let ran = work.execute(&mut device).map_err(|stopped| stopped_at(&args.program, &plan, stopped));
    let mut profile = listened(&tracker, &mut device).profile.unwrap_or_default();
    let cycles = device.statistics().chip.map_or(0, |chip| chip.cycles);
    profile.finish(cycles);
    let lines = SourceProfile::of(&profile, &programs, args.annotate, &args.program);
    let report = profile.report(cycles);
    if let Some(path) = &args.folded {
        files::write_whole(path, &[source_lines::folded(&profile, &programs).as_bytes()])?;
    }
    if let Some(path) = &args.csv {
        files::write_whole(path, &[report.csv().as_bytes()])?;
    }
    let report =
        ProgramProfile { program: plan.name.clone(), board: plan.board.name(), profile: report, source: lines };
    // The profile of a run that has failed is shown with its failure.
    Ok(Answer::new(report, ProgramProfile::text).failing(ran.err()))
}

/// Busiest links that the text shows.
const LINKS: usize = 8;

impl ProgramProfile {
    fn text(&self, out: &mut dyn Write) -> Result<()> {
        let Self { program, board, profile, source } = self;
        writeln!(out, "{program} on a {board}: {} cycles from power-on", profile.cycles)?;
        for kernel in &profile.kernels {
            let part = |cycles: u64| percent(cycles, kernel.cycles);
            let (role, core, name) = (&kernel.role, &kernel.core, &kernel.kernel);
            writeln!(
                out,
                "  {}, {role}, {core}, {name}: {} runs on {} tiles, {} cycles, {} instructions",
                kernel.program,
                kernel.runs,
                kernel.tiles.len(),
                kernel.cycles,
                kernel.instructions
            )?;
            let waits: Vec<String> =
                kernel.waits.iter().map(|wait| format!("{} {}", wait.reason, part(wait.cycles))).collect();
            if !waits.is_empty() {
                writeln!(out, "    waiting {}: {}", part(kernel.waiting), waits.join(", "))?;
            }
            if kernel.requests > 0 {
                let (requests, read, written) = (kernel.requests, kernel.read_bytes, kernel.written_bytes);
                writeln!(out, "    {requests} requests, {read} bytes read, {written} bytes written")?;
            }
        }
        for bank in &profile.memory {
            let (requests, read, written) = (bank.requests, bank.read_bytes, bank.written_bytes);
            writeln!(out, "  {}: {requests} requests, {read} bytes read, {written} bytes written", bank.memory)?;
        }
        for link in profile.links.iter().take(LINKS) {
            let used = percent(link.busy, profile.cycles);
            writeln!(out, "  link of NoC {} from ({}, {}) {}: {used}", link.noc, link.x, link.y, link.direction)?;
        }
        source.text(out)
    }
}

/// A part of a whole in percent.
fn percent(part: u64, whole: u64) -> String {
    format!("{:.1} %", 100.0 * part as f64 / whole.max(1) as f64)
}
