//! `tilework run` of a kernel program: a program file and arrays in, arrays and a report out.

use super::KernelProgram;
use super::args::{DispatchName, KernelRunArgs, TransfersName};
use super::execute::{Executed, Work};
use super::failure::{failure, not_started, stopped_at, with_state};
use super::findings;
use super::firmware::Folder;
use super::gdb::{self, Looking, Unasked};
use super::lower::{place, programs};
use super::plan::Plan;
use super::prints::{Prints, PrintsReport};
use super::report::{CARD_TIMING, CacheReport, CoreTime, KernelReport, LIBRARY_TIMING, SessionCounts, TIMING_MODEL};
use super::schedule::Schedule;
use super::schema::ProgramFile;
use super::source::Source;
use crate::answer::{self, Answer, ReportForm, Subject};
use crate::args::{EngineName, RunArgs};
use crate::array::Array;
use crate::board_option::BoardLayout;
use crate::bundle::{self, Keeper, Kept, Written};
use crate::chip::{AnyChip, Device, Settings, is_card};
use crate::failure::{Failure, Outcome};
use crate::kinds::{Kind, Verb};
use crate::output::OutputFile;
use crate::progress::Progress;
use crate::targets::Targets;
use crate::{files, inputs, interrupt};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Instant;
use tilework_abi::l1::WORKER;
use tilework_checks::Policy;
use tilework_debugger::{Debugger, Witness};
use tilework_runtime::lower::Lowering;
use tilework_runtime::prebuilt::{self, CqKernels};
use tilework_runtime::{DeviceConfig, Dispatch, FirmwareSet, Program, QueueId, RuntimeError, Transfers};

/// Where random inputs are known, for those who ask for them here.
pub(super) const NO_RANDOM_INPUTS: &str = "random numbers are for the inputs of compiled models";

/// Runs a program and reports.
pub fn run(args: &RunArgs, own: &KernelRunArgs) -> Outcome<Answer> {
    refuse_combinations(args, own)?;
    match own.gdb {
        None => once(args, own, None),
        Some(port) => gdb::run(port, |debugger| once(args, own, Some(debugger))),
    }
}

/// Runs a program from its beginning.
fn once(args: &RunArgs, own: &KernelRunArgs, debugger: Option<&Debugger>) -> Outcome<Answer> {
    // From here on an interrupt ends the run with its report.
    interrupt::flag();
    let (progress, started) = (Progress::new(), Instant::now());
    let (parts, prepared) = Job::read(args, own)?.prepare()?;
    let ended = prepared.carry_out(parts, &progress, started, debugger);
    // The bar would stand in the message.
    drop(progress);
    prepared.keep(ended).map(|report| Answer::new(report, |report, out| write!(out, "{}", report.text())))
}

/// Refuses options that exclude each other.
fn refuse_combinations(args: &RunArgs, own: &KernelRunArgs) -> Outcome<()> {
    if args.engine == Some(EngineName::Native) {
        let why = "a kernel program is code for the chip and has no other meaning";
        return Err(Failure::option("--engine", format_args!(" native: {why}")));
    }
    let needs_fast = [
        (own.capture.is_some(), "--capture"),
        (own.core_timing, "--core-timing"),
        (own.layout.given.is_some(), "--dispatch-layout"),
        (own.transfers.is_some(), "--transfers"),
        (own.cq_firmware.is_some(), "--cq-firmware"),
    ];
    let slow = own.dispatch == DispatchName::Slow;
    if let Some((_, option)) = needs_fast.into_iter().find(|(given, _)| slow && *given) {
        return Err(Failure::option(option, " needs --dispatch fast"));
    }
    if own.chip.place.library.is_some() && own.threads.is_some() {
        return Err(Failure::option("--threads", " is for the built-in chip: leave out --chip"));
    }
    if own.coverage.is_some() && own.chip.place.library.is_some() {
        return Err(Failure::option("--coverage", " needs the built-in chip: leave out --chip"));
    }
    // Before a card is touched.
    own.checks.refuse(own.chip.place.library.is_none())?;
    own.look.refuse(own.chip.place.library.is_none(), own.gdb.is_some())?;
    if own.chip.place.library.is_some() && own.bundle.file.is_some() {
        return Err(Failure::option("--bundle", " needs the built-in chip: leave out --chip"));
    }
    if own.schedule.is_some() && own.chip.place.library.is_some() {
        return Err(Failure::option("--schedule", " needs the built-in chip: leave out --chip"));
    }
    if own.gdb.is_some() && own.chip.place.library.is_some() {
        return Err(Failure::option("--gdb", " needs the built-in chip: leave out --chip"));
    }
    if own.gdb.is_some() && own.checks.checks.is_empty() && !own.checks.allow.is_empty() {
        return Err(Failure::option("--allow", " has no effect with --gdb without --checks"));
    }
    if own.firmware.is_some() && own.core_timing {
        return Err(Failure::option("--core-timing", " needs our own worker firmware: leave out --firmware"));
    }
    Ok(())
}

/// A run as it is asked for, with all that comes from files.
pub struct Job<'a> {
    /// The program file, for messages.
    pub program: &'a Path,
    /// The folder of outputs.
    pub out: &'a Path,
    /// The options.
    pub own: &'a KernelRunArgs,
    /// The program.
    pub source: Source,
    /// The arrays.
    pub inputs: BTreeMap<String, Array>,
    /// Other firmware, and other kernels of the command queue.
    pub folders: [Option<Folder>; 2],
    /// The schedule, other than the usual one.
    pub schedule: Option<Schedule>,
    /// The files that all this was read from.
    pub read: Vec<PathBuf>,
    /// Under a debugger: what is looked for without `--checks`.
    pub unasked: Unasked,
}

/// What a device is made of.
pub struct Parts {
    chip: AnyChip,
    firmware: Option<FirmwareSet>,
    queue: Option<CqKernels>,
}

/// A run that nothing refuses any more.
pub struct Prepared<'a> {
    program: &'a Path,
    out: &'a Path,
    own: &'a KernelRunArgs,
    inputs: BTreeMap<String, Array>,
    plan: Plan,
    folders: [Option<Folder>; 2],
    schedule: Option<Schedule>,
    policy: Policy,
    unasked: Unasked,
}

impl<'a> Job<'a> {
    fn read(args: &'a RunArgs, own: &'a KernelRunArgs) -> Outcome<Self> {
        Ok(Self {
            program: &args.program,
            out: &args.out,
            own,
            inputs: inputs::by_name(&args.input, NO_RANDOM_INPUTS)?,
            source: Source::read(&args.program, "a program file")?,
            folders: [
                own.firmware.as_deref().map(Folder::of_workers).transpose()?,
                own.cq_firmware.as_deref().map(Folder::of_queue).transpose()?,
            ],
            schedule: own.schedule.map(Schedule::of),
            read: inputs::files(&args.input).chain([args.program.clone()]).collect(),
            unasked: Unasked::Nothing,
        })
    }

    /// Checks everything, and prepares what will be written when nothing was refused.
    pub fn prepare(self) -> Outcome<(Parts, Prepared<'a>)> {
        let Self { program, out, own, source, inputs, folders, schedule, read, unasked } = self;
        let file = ProgramFile::parse(&source)?;
        let (library, coverage) = (own.chip.place.library.as_deref(), own.coverage.is_some());
        // A debugger runs one node after the other.
        let threads = if own.gdb.is_some() { Some(NonZeroUsize::MIN) } else { own.threads };
        let settings = Settings { threads, bugs: own.chip.bugs(), coverage, schedule };
        let (chip, board) = AnyChip::power_on(library, own.board.given, settings)?;
        own.look.refuse_tiles(board)?;
        let plan = Plan::new(source, file, BoardLayout::new(board, own.layout.layout()), &inputs)?;
        let firmware = folders[0].as_ref().map(Folder::workers).transpose()?;
        let queue = folders[1].as_ref().map(|folder| {
            let kernels = folder.queue()?.kernels(board, own.layout.layout());
            kernels.map_err(|e| Failure::usage(e.to_string()).with("option", "--cq-firmware"))
        });
        let queue = queue.transpose()?;
        refuse_for_plan(own, &plan)?;
        let policy = own.checks.policy(&plan, library.is_none())?;
        let is_left_out = own.gdb.is_some() && own.checks.checks.is_empty() && unasked == Unasked::Nothing;
        let policy = if is_left_out { Policy::off() } else { policy };
        let names = plan.outputs().into_iter().map(|(name, _)| format!("{name}.npy"));
        let second = own.capture.as_ref().filter(|_| plan.queues > 1).map(|path| capture_of(path, QueueId::SECOND));
        let targets = Targets::new()
            .outputs(out, names)
            .option("--coverage", own.coverage.as_deref())
            .option("--trace", own.look.trace.as_deref())
            .option("--html", own.look.html.as_deref())
            .option("--capture", own.capture.as_deref())
            .option("--capture", second.as_deref())
            .option("--bundle", own.bundle.file.as_deref());
        targets.prepare(&read)?;
        let prepared = Prepared { program, out, own, inputs, plan, folders, schedule, policy, unasked };
        Ok((Parts { chip, firmware, queue }, prepared))
    }

    /// Runs it, and writes the bundle that it names, whatever the end; `good` is what a good end is
    /// called.
    pub fn keep_as(self, good: &str) -> Outcome<PathBuf> {
        let (progress, started) = (Progress::new(), Instant::now());
        let (parts, prepared) = self.prepare()?;
        let ended = prepared.carry_out(parts, &progress, started, None);
        let end = Some(end_of(&ended)).filter(|end| !end.is_empty()).unwrap_or(good);
        match (prepared.keeper().keep(end, &prepared.kept(), &document(&ended))?, ended) {
            (Written::File(path), _) => Ok(path),
            (_, Err(failure)) => Err(failure),
            (_, Ok(_)) => Err(Failure::failed("output", "the run has no bundle")),
        }
    }
}

/// Refuses options that do not go with what the program does.
fn refuse_for_plan(own: &KernelRunArgs, plan: &Plan) -> Outcome<()> {
    if own.core_timing && !plan.steps.is_empty() {
        let why = " needs a program without [[queue]]: its launches are not timed one by one";
        return Err(Failure::option("--core-timing", why));
    }
    if own.cq_firmware.is_some() && plan.queues > 1 {
        let why = " runs one queue, on the tiles for which it is built: leave out the steps with queue = 1";
        return Err(Failure::option("--cq-firmware", why));
    }
    Ok(())
}

impl Prepared<'_> {
    /// Runs the program.
    pub fn carry_out(
        &self,
        mut parts: Parts,
        progress: &Progress,
        started: Instant,
        debugger: Option<&Debugger>,
    ) -> Outcome<KernelReport> {
        let Self { program, out, own, plan, inputs, .. } = self;
        progress.next();
        let checks = findings::shared(self.policy.clone());
        let config = config(own, plan);
        parts.chip.prepare(&config)?;
        let stops = !own.checks.checks.is_empty() || self.unasked == Unasked::Nothing;
        let looking = debugger.and_then(|_| Looking::new(&checks, config.board, stops));
        let races = match &looking {
            Some(looking) => looking.races(),
            None => parts.chip.check(&checks, config.board),
        };
        let map = parts.firmware.as_ref().map_or(WORKER, |firmware| *firmware.map());
        let look = own.look.begin(&mut parts.chip, map)?;
        let opened = open(parts, config, debugger.map(|debugger| (debugger, plan)), looking);
        let mut device = opened.map_err(|error| not_started(failure(program, error), own.firmware.as_deref()))?;
        progress.next();
        let failed = |error| failure(program, error);
        let placed = place(device.memory().map_err(failed)?, plan)?;
        let programs = programs(plan, &placed)?;
        let work = Work { plan, placed: &placed, programs: &programs, inputs };
        if let Err(error) = work.upload(&mut device) {
            let failure = failed(error);
            return Err(match look.finish(&mut device, &plan.name, Some(&failure)) {
                Ok(()) => failure,
                Err(unwritten) => failure.and(&unwritten),
            });
        }
        laid_out(&device, plan, &programs)?;
        progress.next();
        watch(&mut device, progress, &checks);
        let prints = Prints::show(&mut device, progress);
        if let Some(debugger) = debugger {
            debugger.begin();
        }
        let clock = Instant::now();
        let ran = work.execute(&mut device).map_err(|stopped| stopped_at(program, plan, stopped));
        let host_seconds = clock.elapsed().as_secs_f64();
        let found = findings::report(&mut device, &checks, races.as_ref());
        let ran = findings::judge(ran, found.as_ref()).map_err(|failure| with_state(failure, device.state()));
        let looked = look.finish(&mut device, &plan.name, ran.as_ref().err());
        let captured = both(write_capture(own, &mut device), write_coverage(own, &device));
        let captured = both(captured, looked);
        let finished = ran.and_then(|mut ran| {
            progress.next();
            let arrays = work.outputs(&mut device, ran.take_reads()).map_err(failed)?;
            Ok((ran, write_outputs(arrays, out)?))
        });
        let (ran, outputs) = match (finished, captured) {
            (Err(first), Err(capture)) => return Err(prints.with(&device, first.and(&capture))),
            (finished, captured) => {
                let finished = finished.map_err(|failure| prints.with(&device, failure))?;
                captured?;
                finished
            }
        };
        let session = session(&device, started.elapsed().as_secs_f64());
        let mut report = report(own, plan, ran, host_seconds, session, outputs);
        (report.checks, report.prints) = (found, prints.report(&device));
        Ok(report)
    }

    /// Keeps what the run was made of, if it ended in a way that asks for it; says so in the report
    /// or in the failure.
    fn keep(&self, ended: Outcome<KernelReport>) -> Outcome<KernelReport> {
        let written = self.keeper().keep(end_of(&ended), &self.kept(), &document(&ended));
        match (ended, written) {
            (ended, Ok(Written::Not)) => ended,
            (Ok(report), Ok(Written::File(path))) => {
                Ok(KernelReport { bundle: Some(path.display().to_string()), ..report })
            }
            (Err(failure), Ok(Written::File(path))) => {
                let said = bundle::told(&path);
                Err(failure.map(|message| format!("{message}\n{said}")).with("bundle", path.display().to_string()))
            }
            (ended, Ok(Written::TooLarge(bytes))) => {
                let said = format!("no bundle: it has {bytes} bytes; --bundle FILE writes it all the same");
                ended.map_err(|failure| failure.map(|message| format!("{message}\n{said}")))
            }
            (Ok(_), Err(unwritten)) => Err(unwritten),
            (Err(failure), Err(unwritten)) => Err(failure.and(&unwritten)),
        }
    }

    fn keeper(&self) -> Keeper<'_> {
        Keeper {
            file: self.own.bundle.file.as_deref(),
            hangs: !self.own.bundle.no_bundle && self.own.chip.place.library.is_none(),
            out: self.out,
        }
    }

    /// What the run was made of.
    fn kept(&self) -> Kept<'_> {
        let kernels = self.plan.roles.iter().flat_map(|role| &role.kernels);
        let kernels = kernels.filter_map(|kernel| Some((kernel.label.as_str(), &**kernel.image.as_ref()?.elf())));
        Kept {
            program: self.plan.source.text(),
            board: self.plan.board,
            kernels: kernels.collect(),
            inputs: &self.inputs,
            folders: [self.folders[0].as_ref(), self.folders[1].as_ref()],
            own: self.own,
            schedule: self.schedule,
        }
    }
}

/// How a run ended, as bundles call it; empty for a good end.
fn end_of(ended: &Outcome<KernelReport>) -> &str {
    match ended {
        Err(failure) => failure.class(),
        Ok(report) => report.checks.as_ref().filter(|found| !found.findings.is_empty()).map_or("", |_| "findings"),
    }
}

/// The JSON form of the end of a run.
pub fn document(ended: &Outcome<KernelReport>) -> serde_json::Value {
    let subject = Subject { kind: KernelProgram::ABOUT.name, command: Verb::Run.name(), form: ReportForm::Json };
    match ended {
        Ok(report) => answer::document(subject, report, None),
        Err(failure) => answer::document(subject, &answer::Nothing {}, Some(failure)),
    }
}

fn open(
    parts: Parts,
    config: DeviceConfig,
    debugger: Option<(&Debugger, &Plan)>,
    looking: Option<Looking>,
) -> Result<Device, RuntimeError> {
    let Parts { chip, firmware, queue } = parts;
    let firmware = firmware.map_or_else(FirmwareSet::prebuilt, Ok)?;
    let queue = queue.map_or_else(prebuilt::cq_kernels, Ok)?;
    let chip = match (chip, debugger) {
        (AnyChip::BuiltIn(chip), Some((debugger, plan))) => {
            let witness = looking.map(|looking| Box::new(looking) as Box<dyn Witness>);
            AnyChip::Debugged(debugger.link(chip, gdb::code(plan, &firmware, &queue), witness))
        }
        (chip, _) => chip,
    };
    Device::open_with(chip, config, firmware, queue)
}

fn config(own: &KernelRunArgs, plan: &Plan) -> DeviceConfig {
    let mut config = plan.device();
    if own.transfers == Some(TransfersName::Windows) {
        config.transfers = Transfers::Windows;
    }
    config.dispatch = match own.dispatch {
        DispatchName::Fast => Dispatch::Fast,
        DispatchName::Slow => Dispatch::Slow,
    };
    config.core_timing = own.core_timing;
    config.capture = own.capture.is_some();
    config.remember_programs = own.chip.place.library.is_none();
    config.max_cycles = own.max_cycles;
    if own.cq_firmware.is_some() {
        // What the seed's host sends, which every prefetcher and dispatcher of its kind knows.
        config.lowering = Lowering::Plain;
    }
    config
}

/// Shows how far the runs of a device have come, and ends them when the user interrupts or a
/// finding is an error.
pub(super) fn watch(device: &mut Device, progress: &Progress, checks: &findings::Shared) {
    let (mut bar, interrupted, checks) = (progress.clone(), interrupt::flag(), checks.clone());
    device.on_progress(move |now| {
        bar.cycles(now.cycles, now.until);
        match interrupted.load(Ordering::Relaxed) || findings::ends(&checks) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    });
}

/// Whether every launch has room: their arguments differ.
pub(super) fn laid_out(device: &Device, plan: &Plan, programs: &[Program]) -> Outcome<()> {
    programs.iter().try_for_each(|program| device.layout(program).map(drop)).map_err(|error| plan.misfit(&error))
}

/// Writes the capture of each queue, also of a run that has failed: then it is wanted most.
fn write_capture(own: &KernelRunArgs, device: &mut Device) -> Outcome<()> {
    let Some(path) = &own.capture else { return Ok(()) };
    for id in QueueId::ALL {
        // A queue that the device does not have, or that has not been started, has no records.
        let Ok(queue) = device.on_queue(id) else { continue };
        if let Some(records) = queue.captured() {
            files::write_whole(&capture_of(path, id), &[records])?;
        }
    }
    Ok(())
}

/// The file of a queue's records: what `--capture` names, and beside it that of queue 1.
fn capture_of(path: &Path, queue: QueueId) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    if queue != QueueId::FIRST {
        name.push(format!(".queue{queue}"));
    }
    name.into()
}

/// Writes what the coprocessors executed, also of a run that has failed.
fn write_coverage(own: &KernelRunArgs, device: &Device) -> Outcome<()> {
    let (Some(path), Some(coverage)) = (&own.coverage, device.chip().coverage()) else { return Ok(()) };
    let is_json = path.extension().is_some_and(|ending| ending == "json");
    let text = if is_json { coverage.json() } else { coverage.text() };
    files::write_whole(path, &[text.as_bytes()])
}

/// Both outcomes in one: of two failures the first one, with the second one behind it.
fn both(first: Outcome<()>, second: Outcome<()>) -> Outcome<()> {
    match (first, second) {
        (Err(first), Err(second)) => Err(first.and(&second)),
        (first, second) => first.and(second),
    }
}

fn write_outputs(arrays: Vec<(String, Array)>, out: &Path) -> Outcome<BTreeMap<String, OutputFile>> {
    let mut outputs = BTreeMap::new();
    for (name, array) in arrays {
        let output = OutputFile::write(array, &out.join(format!("{name}.npy")))?;
        outputs.insert(name, output);
    }
    Ok(outputs)
}

fn session(device: &Device, host_seconds: f64) -> SessionCounts {
    let all = device.statistics().chip;
    SessionCounts {
        cycles: all.map(|all| all.cycles),
        host_seconds,
        instructions: all.map(|all| all.instructions),
        pcie_bytes: all.map(|all| all.pcie_bytes),
        noc_bytes: all.map(|all| all.noc_bytes),
    }
}

fn report(
    own: &KernelRunArgs,
    plan: &Plan,
    executed: Executed,
    host_seconds: f64,
    session: SessionCounts,
    outputs: BTreeMap<String, OutputFile>,
) -> KernelReport {
    let Executed { report: ran, steps, .. } = executed;
    let counts = ran.statistics.chip;
    let role =
        |launch, core| plan.launched(launch).find(|role| role.cores.contains(&core)).map(|role| role.name.clone());
    let times = ran.programs.iter().enumerate().flat_map(|(launch, program)| {
        let role = &role;
        program.core_times.iter().map(move |t| {
            let role = role(launch, t.core).unwrap_or_default();
            CoreTime { launch, x: t.core.x, y: t.core.y, core: "brisc", start: t.start, end: t.end, role }
        })
    });
    let whole = ran.programs.first().and_then(|p| p.start).zip(ran.programs.last().and_then(|p| p.end));
    let several = ran.programs.iter().filter(|_| ran.programs.len() > 1);
    KernelReport {
        program: plan.name.clone(),
        board: plan.board.name(),
        chip: AnyChip::name(own.chip.place.library.as_deref()),
        dispatch: own.dispatch.name(),
        dispatch_layout: (own.dispatch == DispatchName::Fast).then(|| own.layout.layout().name()),
        firmware: own.firmware.as_ref().map_or_else(|| "prebuilt".to_owned(), |folder| folder.display().to_string()),
        cq_firmware: own.cq_firmware.as_ref().map(|folder| folder.display().to_string()),
        cycles: ran.cycles,
        // A card's clock is not always the one that is simulated.
        simulated_seconds: counts.and(ran.cycles).map(KernelReport::seconds),
        host_seconds,
        program_cycles: whole.map(|(start, end)| end.saturating_sub(start)),
        launch_cycles: several.map(tilework_runtime::ProgramReport::cycles).collect(),
        instructions: counts.map(|counts| counts.instructions),
        skipped_instructions: counts.map(|counts| counts.skipped),
        mips: counts.map(|counts| counts.instructions as f64 / host_seconds / 1e6),
        programs: ran.statistics.programs,
        commands: ran.statistics.commands,
        records: ran.statistics.records,
        record_bytes: ran.statistics.record_bytes,
        cache: CacheReport::of(&ran.statistics.cache),
        pcie_bytes: counts.map(|counts| counts.pcie_bytes),
        noc_bytes: counts.map(|counts| counts.noc_bytes),
        workers: plan.at().workers().len(),
        cores: plan.cores(),
        queue: steps,
        core_timing: own.core_timing.then(|| times.collect()),
        session,
        checks: None,
        bundle: None,
        prints: PrintsReport::default(),
        outputs,
        timing_model: match own.chip.place.library.as_deref() {
            None => TIMING_MODEL,
            Some(path) if is_card(path) => CARD_TIMING,
            Some(_) => LIBRARY_TIMING,
        },
    }
}
