//! `tilework run` of a compiled model.

use super::watch::{Dump, Watch};
use super::{choose, inputs, open, session, supported, tensors};
use crate::args::{DumpOp, EngineName, RoundingName, RunArgs};
use crate::failure::{Failure, Outcome};
use crate::files;
use crate::print;
use crate::report::Output;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::time::Instant;
use tilework_engine::{Profile, Reason, RunError, Value};

/// Runs a program of a model and prints its report.
pub fn run(args: &RunArgs) -> Outcome<()> {
    refuse_chip_options(args)?;
    let started = Instant::now();
    let model = open(&args.program, args.model.any_schema)?;
    let mut session = session(&model, &args.model, args.model.rounding.unwrap_or(RoundingName::Operations))?;
    let program = choose(&session, args.model.entry.as_deref())?;
    supported(&mut session, program)?;
    let inputs = inputs::read(&session, program, &args.input)?;
    files::make_folder(&args.out)?;
    let info = session.programs().swap_remove(program);
    if let Some(DumpOp::One(index)) = args.dump_op
        && index >= info.operations
    {
        return Err(Failure::usage(format!("--dump-op {index}: the program has {} operations", info.operations)));
    }
    let dump = args.dump_op.map(|which| Dump { which, folder: args.out.clone() });
    let mut watch = Profile::new(Watch::new(program, info.operations, dump));
    let run_started = Instant::now();
    let ran = session.run(program, inputs, &mut watch);
    let run_seconds = run_started.elapsed().as_secs_f64();
    if let Some(failure) = watch.inner.failure.take() {
        return Err(failure);
    }
    let ran = ran.map_err(failure)?;
    let mut outputs = BTreeMap::new();
    for (i, value) in ran.outputs.iter().enumerate() {
        write(&format!("out{i}"), value, &args.out, &mut outputs)?;
    }
    for (i, value) in &ran.changed {
        write(&format!("changed_in{i}"), value, &args.out, &mut outputs)?;
    }
    let report = Report {
        program: info.name,
        file: args.program.display().to_string(),
        engine: "native",
        operations: ran.operations,
        peak_bytes: ran.peak_bytes,
        run_seconds,
        host_seconds: started.elapsed().as_secs_f64(),
        outputs,
        profile: args.profile.then(|| times(&watch)),
    };
    drop(watch);
    print::report(&report, args.report, |out| report.text(out))
}

/// What the engine refuses is a wrong use; what goes wrong on the way is a failed run.
pub(super) fn failure(error: RunError) -> Failure {
    match error.reason() {
        Reason::Input(_) | Reason::NotTtnn | Reason::NoProgram { .. } => Failure::usage(error.to_string()),
        _ => Failure::failed(error.to_string()),
    }
}

fn refuse_chip_options(args: &RunArgs) -> Outcome<()> {
    if args.engine == Some(EngineName::Device) {
        return Err(Failure::usage("--engine device: compiled models run on the native engine only, so far"));
    }
    match args.chip_option() {
        Some(option) => {
            Err(Failure::usage(format!("{option} is for kernel programs; a compiled model runs without a chip")))
        }
        None => Ok(()),
    }
}

/// Writes a value, one file for each device that has its own part.
fn write(name: &str, value: &Value, folder: &Path, outputs: &mut BTreeMap<String, Output>) -> Outcome<()> {
    for (device, tensor) in value.tensors().enumerate() {
        let name = match value.single() {
            Some(_) => name.to_owned(),
            None => format!("{name}_dev{device}"),
        };
        let output = Output::write(tensors::array(tensor), &folder.join(format!("{name}.npy")))?;
        outputs.insert(name, output);
    }
    Ok(())
}

/// The report of a model's run. The fields of the JSON form, in their order.
#[derive(Serialize, Debug)]
struct Report {
    program: String,
    file: String,
    engine: &'static str,
    /// Operations and loop iterations that ran.
    operations: u64,
    /// The most bytes of tensors alive at once.
    peak_bytes: usize,
    /// Seconds of this machine for the program alone.
    run_seconds: f64,
    /// The same with reading and writing of files.
    host_seconds: f64,
    outputs: BTreeMap<String, Output>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<Times>,
}

/// Where the time went.
#[derive(Serialize, Debug)]
struct Times {
    /// The kinds, the longest time first.
    kinds: Vec<KindTime>,
    /// The operations in the order in which they ended.
    operations: Vec<OpTime>,
}

#[derive(Serialize, Debug)]
struct KindTime {
    kind: &'static str,
    count: usize,
    seconds: f64,
}

#[derive(Serialize, Debug)]
struct OpTime {
    /// Its program's index in the file.
    program: usize,
    /// Its index in the program.
    operation: usize,
    kind: &'static str,
    /// Where it comes from in the user's source.
    loc: String,
    /// Host seconds, without those of programs that it called.
    seconds: f64,
}

fn times<O>(profile: &Profile<O>) -> Times
where
    O: tilework_engine::Observer,
{
    let kinds = profile.by_kind().into_iter();
    let kinds = kinds.map(|(kind, count, time)| KindTime { kind: kind.name(), count, seconds: time.as_secs_f64() });
    let operations = profile.timings.iter().map(|timing| OpTime {
        program: timing.place.program,
        operation: timing.place.operation,
        kind: timing.place.kind.name(),
        loc: timing.place.loc.clone(),
        seconds: timing.own.as_secs_f64(),
    });
    Times { kinds: kinds.collect(), operations: operations.collect() }
}

impl Report {
    fn text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        writeln!(out, "{} on the native engine", self.program)?;
        writeln!(out, "  operations       {}", self.operations)?;
        writeln!(out, "  peak memory      {:.1} MiB of tensors", self.peak_bytes as f64 / f64::from(1 << 20))?;
        writeln!(out, "  host time        {:.3} s, {:.3} s with files", self.run_seconds, self.host_seconds)?;
        for (name, output) in &self.outputs {
            let shape = crate::array::shape_text(&output.shape);
            writeln!(out, "  {name:<16} {} {shape} {}", output.dtype, output.file)?;
        }
        match &self.profile {
            Some(times) => profile(times, out),
            None => Ok(()),
        }
    }
}

/// The kinds by their time, then each operation.
fn profile(times: &Times, out: &mut dyn Write) -> std::io::Result<()> {
    writeln!(out, "\n  {:<34} {:>6} {:>12}", "kind", "count", "ms")?;
    for KindTime { kind, count, seconds } in &times.kinds {
        writeln!(out, "  {kind:<34} {count:>6} {:>12.3}", seconds * 1e3)?;
    }
    writeln!(out, "\n  {:<12} {:<34} {:>12}", "operation", "kind", "ms")?;
    for time in &times.operations {
        let place = format!("{}.{}", time.program, time.operation);
        writeln!(out, "  {place:<12} {:<34} {:>12.3}", time.kind, time.seconds * 1e3)?;
    }
    Ok(())
}
