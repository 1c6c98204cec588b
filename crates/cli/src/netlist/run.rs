//! `tilework run` of a netlist: arrays in, programs, arrays and a report out.

use super::run_args::{ModeName, NetlistRunArgs};
use super::run_inputs;
use super::run_report::{LoaderReport, ProgramReport, QueueReport, Report};
use crate::args::{EngineName, Input, ModelArgs, RoundingName, RunArgs};
use crate::array::Array;
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::print;
use crate::report::Output;
use crate::trace::TraceFile;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use tilework_buda::Tensor;
use tilework_buda::backend::drive::{self, Outcome as Session, Popping};
use tilework_buda::backend::{Backend, BackendError, BackendOptions, Status};
use tilework_buda::epoch::{EngineOptions, Golden, Rounding, Uninitialised};
use tilework_buda::loader::LoaderConfig;
use tilework_buda::loader::trace::CLOCK;
use tilework_buda::queue::Fullness;
use tilework_netlist::types::{Arch, Netlist, Producer, QueueId};
use tilework_timeline::Timeline;

/// Runs programs of a netlist and prints the report.
pub fn run(args: &RunArgs) -> Outcome<()> {
    refuse_others(args)?;
    let trace_file = args.netlist.trace.as_deref().map(TraceFile::at).transpose()?;
    let started = Instant::now();
    let netlist = run_inputs::read(&args.program)?;
    let arch = args.arch.map(Into::into);
    let done = session(netlist, &args.netlist, arch, rounding(&args.model), &args.input)?;
    files::make_folder(&args.out)?;
    let outputs = write_outputs(&done, &args.out)?;
    if let Some(file) = trace_file {
        file.write(&trace(&done.backend))?;
    }
    let report = report(args, &done, outputs, started.elapsed().as_secs_f64());
    print::report(&report, args.report, |out| report.text(out))
}

fn refuse_others(args: &RunArgs) -> Outcome<()> {
    if args.engine == Some(EngineName::Device) {
        return Err(Failure::usage("--engine device: netlists run in host arithmetic (native) only"));
    }
    match args.chip_option().or(args.model_option()) {
        Some(option) => Err(Failure::usage(format!("{option} is not for netlists"))),
        None => Ok(()),
    }
}

/// A netlist that has run.
pub struct Done {
    /// The backend, with all queues as they are.
    pub backend: Backend,
    /// What went in and out.
    pub session: Session<Tensor>,
}

impl Done {
    /// The netlist.
    pub fn netlist(&self) -> &Netlist {
        self.backend.netlist()
    }

    /// Queues that operations fill.
    pub fn outputs(&self) -> impl Iterator<Item = QueueId> {
        let queues = self.netlist().queues.iter().enumerate();
        queues.filter(|(_, queue)| matches!(queue.producer, Producer::Op(_))).map(|(i, _)| QueueId(i))
    }

    /// All that a queue was given.
    pub fn array(&self, queue: QueueId) -> Outcome<Array> {
        let entries = drive::collected(&self.backend, &self.session, queue).map_err(failure)?;
        Ok(run_inputs::array(self.netlist(), queue, &entries))
    }
}

/// Where values are rounded.
pub fn rounding(args: &ModelArgs) -> Rounding {
    match args.rounding {
        None | Some(RoundingName::Ends) => Rounding::Host,
        Some(RoundingName::Operations) => Rounding::Queues,
    }
}

/// Runs the programs that were asked for.
pub fn session(
    netlist: Netlist,
    args: &NetlistRunArgs,
    arch: Option<Arch>,
    rounding: Rounding,
    given: &[Input],
) -> Outcome<Done> {
    let calls = run_inputs::calls(&netlist, args)?;
    let inputs = run_inputs::inputs(&netlist, args, given)?;
    let timeout = args.timeout.map(|seconds| Duration::from_secs(seconds.into()));
    let options = BackendOptions {
        fullness: if args.golden_compat { Fullness::GoldenCompat } else { Fullness::Strict },
        engine: EngineOptions {
            timeout: timeout.filter(|_| args.mode == ModeName::Concurrent),
            uninitialised: if args.deny_uninitialised { Uninitialised::Fault } else { Uninitialised::Zeros },
            ..EngineOptions::default()
        },
        loader: LoaderConfig { opt_level: args.opt_level, arch, ..LoaderConfig::default() },
        levels: args.mode == ModeName::Sequential,
        ..BackendOptions::default()
    };
    let backend = Backend::new(netlist, Golden { rounding }, options);
    backend.initialize().map_err(failure)?;
    let popping = if args.pop_outputs { Popping::WhenFull } else { Popping::Never };
    let session = match args.mode {
        ModeName::Sequential => drive::sequential(&backend, inputs, &calls, popping),
        ModeName::Concurrent => drive::concurrent(&backend, inputs, &calls, timeout),
    };
    let session = session.map_err(failure)?;
    backend.wait_for_idle().and_then(|()| backend.finish()).map_err(failure)?;
    Ok(Done { backend, session })
}

/// A failed call, with the code that the original would return.
fn failure(error: BackendError) -> Failure {
    let code = match error.status() {
        Status::TimeoutError => "TimeoutError (2)",
        Status::RuntimeError | Status::Success => "RuntimeError (1)",
    };
    Failure::failed(format!("{error} [{code}]"))
}

fn write_outputs(done: &Done, folder: &Path) -> Outcome<BTreeMap<String, Output>> {
    let mut outputs = BTreeMap::new();
    for queue in done.outputs() {
        let name = &done.netlist().queue(queue).name;
        let array = done.array(queue)?;
        outputs.insert(name.clone(), Output::write(array, &folder.join(file_name(name)?))?);
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

fn report(args: &RunArgs, done: &Done, outputs: BTreeMap<String, Output>, host_seconds: f64) -> Report {
    let netlist = done.netlist();
    let queues = netlist.queues.iter().enumerate().map(|(i, queue)| {
        let pointers = done.backend.pointers(QueueId(i));
        (queue.name.clone(), QueueReport::new(queue, pointers.rd(), pointers.wr()))
    });
    let unpushed = &done.session.unpushed;
    Report {
        netlist: args.program.display().to_string(),
        arch: done.backend.loader(|loader| loader.arch()).name(),
        mode: args.netlist.mode.name(),
        executes: done.backend.executes(),
        programs: done.session.records.iter().map(|record| ProgramReport::new(netlist, record)).collect(),
        queues: queues.collect(),
        loader: LoaderReport::new(args.netlist.opt_level, done.backend.loader(|loader| loader.stats())),
        warnings: done.backend.warnings().iter().map(ToString::to_string).collect(),
        unpushed: unpushed.iter().map(|(queue, count)| (netlist.queue(*queue).name.clone(), *count)).collect(),
        host_seconds,
        outputs,
        timing_model: super::run_report::TIMING_MODEL,
    }
}
