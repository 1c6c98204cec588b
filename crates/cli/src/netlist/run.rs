//! `tilework run` of a netlist: arrays in, programs, arrays and a report out.

use super::args::{DriveArgs, ModeName, NetlistRunArgs};
use super::failure::failure;
use super::run_inputs;
use super::run_report::{CallReport, LoaderReport, NetlistReport, QueueReport, TIMING_MODEL};
use crate::answer::Answer;
use crate::args::{EngineName, Input, RunArgs};
use crate::array::Array;
use crate::failure::{Failure, Outcome};
use crate::output::OutputFile;
use crate::targets::Targets;
use crate::trace::TraceFile;
use crate::{inputs, limits};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tilework_buda::Tensor;
use tilework_buda::backend::drive::{self, Outcome as Driven, Popping};
use tilework_buda::backend::{Backend, BackendOptions};
use tilework_buda::costed::costed;
use tilework_buda::epoch::{Deadline, EngineOptions, Golden, Uninitialised};
use tilework_buda::loader::LoaderConfig;
use tilework_buda::loader::trace::CLOCK;
use tilework_buda::op::Precision;
use tilework_buda::program::Limits;
use tilework_buda::queue::Fullness;
use tilework_netlist::types::{Arch, Netlist, Producer, QueueId};
use tilework_timeline::Timeline;

/// Runs programs of a netlist and reports.
pub fn run(args: &RunArgs, own: &NetlistRunArgs) -> Outcome<Answer> {
    if args.engine == Some(EngineName::Chip) {
        return Err(Failure::option("--engine", " device: netlists run in host arithmetic (native) only"));
    }
    own.drive.refuse_idle()?;
    let trace_file = own.trace.as_deref().map(TraceFile::at).transpose()?;
    let started = Instant::now();
    let netlist = run_inputs::read(&args.program, own.arch)?;
    let arch = own.arch.map(Into::into);
    let names = outputs_of(&netlist).map(|queue| file_name(&netlist.queue(queue).name)).collect::<Outcome<Vec<_>>>()?;
    let targets = Targets::new().outputs(&args.out, names).option("--trace", own.trace.as_deref());
    let read: Vec<PathBuf> = inputs::files(&args.input).chain([args.program.clone()]).collect();
    let done = session(netlist, &own.drive, arch, own.rounding.golden(), &args.input, || targets.prepare(&read))?;
    let outputs = write_outputs(&done, &args.out)?;
    if let Some(file) = trace_file {
        file.write(&trace(&done.backend))?;
    }
    let report = report(args, own, &done, outputs, started.elapsed().as_secs_f64());
    Ok(Answer::new(report, NetlistReport::text))
}

/// A netlist that has run.
pub struct Done {
    /// The backend, with all queues as they are.
    pub backend: Backend,
    /// What went in and out.
    pub driven: Driven<Tensor>,
}

impl Done {
    /// The netlist.
    pub fn netlist(&self) -> &Netlist {
        self.backend.netlist()
    }

    /// Queues that operations fill.
    pub fn outputs(&self) -> impl Iterator<Item = QueueId> {
        outputs_of(self.netlist())
    }

    /// All that a queue was given.
    pub fn array(&self, queue: QueueId) -> Outcome<Array> {
        let entries = drive::collected(&self.backend, &self.driven, queue).map_err(failure)?;
        Ok(run_inputs::array(self.netlist(), queue, &entries))
    }
}

/// Queues that operations fill.
fn outputs_of(netlist: &Netlist) -> impl Iterator<Item = QueueId> {
    let queues = netlist.queues.iter().enumerate();
    queues.filter(|(_, queue)| matches!(queue.producer, Producer::Op(_))).map(|(i, _)| QueueId(i))
}

/// Runs the programs that were asked for; `begin` is called when nothing was refused.
pub fn session(
    netlist: Netlist,
    args: &DriveArgs,
    arch: Option<Arch>,
    golden: Golden,
    given: &[Input],
    begin: impl FnOnce() -> Outcome<()>,
) -> Outcome<Done> {
    limits::start_threads()?;
    let calls = run_inputs::calls(&netlist, args)?;
    let deadline = args.timeout.and_then(|seconds| Deadline::after(Duration::from_secs(seconds.into())));
    let inputs = run_inputs::inputs(&netlist, args, given)?;
    let options = BackendOptions {
        fullness: if args.golden_compat { Fullness::GoldenCompat } else { Fullness::Strict },
        limits: Limits { instructions: args.max_steps, ..Limits::default() },
        engine: EngineOptions {
            deadline,
            operations: args.max_steps,
            uninitialised: if args.deny_uninitialised { Uninitialised::Fault } else { Uninitialised::Zeros },
            ..EngineOptions::default()
        },
        loader: LoaderConfig { opt_level: args.opt_level, arch, ..LoaderConfig::default() },
        levels: args.mode == ModeName::Sequential,
        ..BackendOptions::default()
    };
    begin()?;
    let backend = Backend::new(netlist, golden, options);
    backend.initialize().map_err(failure)?;
    let popping = if args.pop_outputs { Popping::WhenFull } else { Popping::Never };
    let driven = match args.mode {
        ModeName::Sequential => drive::sequential(&backend, inputs, &calls, popping),
        ModeName::Concurrent => drive::concurrent(&backend, inputs, &calls, None),
    };
    let driven = driven.map_err(failure)?;
    backend.wait_for_idle().and_then(|()| backend.finish()).map_err(failure)?;
    Ok(Done { backend, driven })
}

fn write_outputs(done: &Done, folder: &Path) -> Outcome<BTreeMap<String, OutputFile>> {
    let mut outputs = BTreeMap::new();
    for queue in done.outputs() {
        let name = &done.netlist().queue(queue).name;
        let array = done.array(queue)?;
        outputs.insert(name.clone(), OutputFile::write(array, &folder.join(file_name(name)?))?);
    }
    Ok(outputs)
}

/// The file of a queue's array.
pub fn file_name(queue: &str) -> Outcome<String> {
    match queue.contains(['/', '\\', '\0']) || queue.is_empty() {
        true => Err(Failure::usage(format!("queue {queue:?} cannot be the name of a file"))),
        false => Ok(format!("{queue}.npy")),
    }
}

fn trace(backend: &Backend) -> Timeline {
    let mut timeline = Timeline::new(CLOCK);
    backend.loader(|loader| loader.trace(&mut timeline));
    timeline
}

/// A precision's name in reports.
fn precision_name(precision: Precision) -> &'static str {
    match precision {
        Precision::Exact => "exact",
        Precision::Device => "device",
    }
}

fn report(
    args: &RunArgs,
    own: &NetlistRunArgs,
    done: &Done,
    outputs: BTreeMap<String, OutputFile>,
    host_seconds: f64,
) -> NetlistReport {
    let netlist = done.netlist();
    let queues = netlist.queues.iter().enumerate().map(|(i, queue)| {
        let pointers = done.backend.pointers(QueueId(i));
        (queue.name.clone(), QueueReport::new(queue, pointers.rd(), pointers.wr()))
    });
    let unpushed = &done.driven.unpushed;
    NetlistReport {
        netlist: args.program.display().to_string(),
        arch: done.backend.loader(|loader| loader.arch()).name(),
        mode: own.drive.mode.name(),
        executes: done.backend.executes(),
        programs: done.driven.records.iter().map(|record| CallReport::new(netlist, record)).collect(),
        queues: queues.collect(),
        precision: precision_name(own.rounding.golden().precision),
        only_costed: costed(netlist, own.rounding.golden().precision)
            .into_iter()
            .map(|costed| (costed.op, costed.settings))
            .collect(),
        loader: LoaderReport::new(own.drive.opt_level, done.backend.loader(|loader| loader.stats())),
        warnings: done.backend.warnings().iter().map(ToString::to_string).collect(),
        unpushed: unpushed.iter().map(|(queue, count)| (netlist.queue(*queue).name.clone(), *count)).collect(),
        host_seconds,
        outputs,
        timing_model: TIMING_MODEL,
    }
}
