//! `tilework run` of a compiled model.

use super::args::{Axes, DumpOp, ModelRunArgs};
use super::compare::{self, CompareReport};
use super::engine::{self, Looks, Session};
use super::on_chip::{self, ChipReport};
use super::repeat::{Repeat, repeat};
use super::watch::{Dump, Watch, is_dump};
use super::{choose, inputs, open, supported, tensors};
use crate::answer::Answer;
use crate::args::{EngineName, RunArgs};
use crate::failure::{Failure, Outcome};
use crate::output::OutputFile;
use crate::program::findings::{self, ChecksReport};
use crate::targets::Targets;
use crate::trace::TraceFile;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tilework_engine::sharding::placements;
use tilework_engine::{Profile, Reason, RunError, RunResult, Value};
use tilework_model::ttnn::OpKind;
use tilework_ops::mesh::Placements;
use tilework_text::plain;

/// Runs a program of a model and reports.
pub fn run(args: &RunArgs, own: &ModelRunArgs) -> Outcome<Answer> {
    let started = Instant::now();
    let timeline = own.trace.as_deref().map(TraceFile::at).transpose()?;
    if timeline.is_some() && args.engine == Some(EngineName::Native) {
        return Err(Failure::option("--trace", " is for --engine chip"));
    }
    let model = open(&args.program, own.model.schema)?;
    let rounding = own.model.rounding.unwrap_or_default();
    let engine::Chosen { engine, not_chip } = engine::choose(&model, own, args.engine)?;
    let looks = own.checks.policy(engine)?.map(Looks::new);
    let (on_chip, compare) = (&own.on_chip, own.compare);
    let mut session = engine::session(&model, &own.model, rounding, Some(engine), on_chip, compare, looks.as_ref())?;
    let program = choose(&session, own.model.entry.as_deref())?;
    supported(&mut session, program)?;
    let inputs = inputs::read(&session, program, &args.input, &own.model.shard)?;
    let joins = joins(&session, program, &own.model.join)?;
    let info = session.programs().swap_remove(program);
    if let Some(DumpOp::One(index)) = own.dump_op
        && index >= info.operations
    {
        let has = format_args!(" {index}: the program has {} operations", info.operations);
        return Err(Failure::option("--dump-op", has));
    }
    let names = (0..info.outputs.len()).map(|i| format!("out{i}.npy"));
    let old = if own.dump_op.is_some() { is_result_or_dump } else { is_result };
    let targets = Targets::new().outputs(&args.out, names).and_old(old).option("--trace", own.trace.as_deref());
    let read: Vec<PathBuf> = crate::inputs::files(&args.input).chain([args.program.clone()]).collect();
    targets.prepare(&read)?;
    let dump = own.dump_op.map(|which| Dump { which, folder: args.out.clone() });
    let placed = session.place(program, inputs).map_err(failure)?;
    let ran = repeat(&mut session, &placed, own.repeat.get(), || {
        Profile::new(Watch::new(program, info.operations, dump.clone()))
    });
    let checks = looks.and_then(|looks| looks.report(session.machine_mut()));
    let (mut ran, watch, runs) = findings::judge(ran, checks.as_ref())?;
    join(&session, program, &mut ran, &joins)?;
    let outputs = write_all(&ran, &args.out)?;
    timeline.map_or(Ok(()), |file| file.write(&on_chip::timeline(session.machine())))?;
    let compare = own.compare.and_then(|with| CompareReport::of(with, session.machine()));
    let saved = session.machine().findings().and_then(|findings| findings.evidence.as_ref());
    saved.map_or(Ok(()), |evidence| compare::save(evidence, &args.out))?;
    let departed = compare.as_ref().and_then(CompareReport::failure);
    let report = ModelReport {
        compare,
        checks,
        program: info.name,
        file: args.program.display().to_string(),
        engine: session.machine().name(),
        not_chip,
        operations: ran.operations,
        peak_bytes: ran.peak_bytes,
        run_seconds: runs.seconds.iter().sum(),
        repeat: runs.report(),
        host_seconds: started.elapsed().as_secs_f64(),
        outputs,
        chip: ChipReport::of(session.machine(), own.on_chip.place.library.as_deref(), own.profile),
        profile: own.profile.then(|| times(&watch)),
    };
    Ok(Answer::new(report, ModelReport::text).failing(departed))
}

/// How outputs of a program are joined, by position, as `--join` says.
pub(super) fn joins(session: &Session<'_>, program: usize, given: &[Axes]) -> Outcome<BTreeMap<usize, Placements>> {
    let mesh = session.mesh(program).map_err(refusal)?;
    let outputs = session.programs().swap_remove(program).outputs.len();
    let one = |axes: &Axes| {
        let wrong = |why: String| Failure::option("--join", format_args!(" {}: {why}", axes.name));
        match axes.name.parse::<usize>() {
            _ if mesh.devices() == 1 => Err(wrong("the program is for one device".to_owned())),
            Ok(output) if output < outputs => Ok((output, placements(&axes.axes, mesh).map_err(wrong)?)),
            _ => Err(wrong(format!("the program has outputs 0 to {}", outputs.saturating_sub(1)))),
        }
    };
    given.iter().map(one).collect()
}

/// Joins the devices' parts of outputs.
fn join(
    session: &Session<'_>,
    program: usize,
    ran: &mut RunResult,
    joins: &BTreeMap<usize, Placements>,
) -> Outcome<()> {
    for (&output, &placements) in joins {
        let joined = session.join(program, &ran.outputs[output], placements);
        let failed = |error: RunError| Failure::failed("output", format!("--join {output}: {error}"));
        ran.outputs[output] = Value::same(joined.map_err(failed)?);
    }
    Ok(())
}

/// A failure of the engine. What it refuses is a wrong use; what goes wrong on the way is a failed
/// run.
pub(super) fn failure(error: RunError) -> Failure {
    match error.reason() {
        Reason::Input(_) | Reason::NotTtnn | Reason::NoProgram { .. } => refusal(error),
        _ => Failure::failed("operation", error.to_string()).with_all(place(&error)),
    }
}

/// A refusal of the engine.
pub(super) fn refusal(error: RunError) -> Failure {
    let failure = Failure::usage(error.to_string()).with_all(place(&error));
    match error.file() {
        Some(file) => failure.of_file(file),
        None => failure,
    }
}

/// Where in a model something is wrong, as data.
#[derive(Serialize)]
pub(super) struct ModelPlace {
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    program: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_kind: Option<OpKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    loc: Option<String>,
}

/// Where the error is.
pub(super) fn place(error: &RunError) -> ModelPlace {
    let place = error.place();
    ModelPlace {
        reason: error.reason().to_string(),
        program: place.map(|place| place.program_name.clone()),
        operation: place.map(|place| place.operation),
        operation_kind: place.map(|place| place.kind),
        operation_name: place.and_then(|place| place.name.clone()),
        loc: place.map(|place| place.loc.clone()).filter(|loc| !loc.is_empty()),
    }
}

/// Whether a run of a model writes results into files of this name: `out0.npy`, `out0_dev1.npy`,
/// `changed_in0.npy`, `departure_in0.npy`.
fn is_result(name: &str) -> bool {
    if name.starts_with("departure_") {
        return compare::is_saved(name);
    }
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(rest) = name.strip_suffix(".npy") else { return false };
    let rest = rest.strip_prefix("out").or_else(|| rest.strip_prefix("changed_in"));
    rest.is_some_and(|rest| match rest.split_once("_dev") {
        Some((index, device)) => number(index) && number(device),
        None => number(rest),
    })
}

fn is_result_or_dump(name: &str) -> bool {
    is_result(name) || is_dump(name)
}

/// Writes outputs, and inputs that the program has changed.
fn write_all(ran: &RunResult, folder: &Path) -> Outcome<BTreeMap<String, OutputFile>> {
    let mut outputs = BTreeMap::new();
    for (i, value) in ran.outputs.iter().enumerate() {
        write(&format!("out{i}"), value, folder, &mut outputs)?;
    }
    for (i, value) in &ran.changed {
        write(&format!("changed_in{i}"), value, folder, &mut outputs)?;
    }
    Ok(outputs)
}

/// Writes a value, one file for each device that has its own part.
fn write(name: &str, value: &Value, folder: &Path, outputs: &mut BTreeMap<String, OutputFile>) -> Outcome<()> {
    for (device, tensor) in value.tensors().enumerate() {
        let name = match value.single() {
            Some(_) => name.to_owned(),
            None => format!("{name}_dev{device}"),
        };
        let output = OutputFile::write(tensors::array(tensor), &folder.join(format!("{name}.npy")))?;
        outputs.insert(name, output);
    }
    Ok(())
}

/// The report of a model's run. The fields are those of the JSON form, in their order.
#[derive(Serialize, Debug)]
struct ModelReport {
    program: String,
    file: String,
    engine: &'static str,
    /// Why the native engine was taken, if nobody asked for it: the operations that the chip has no
    /// program for, or what does not fit its memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_chip: Vec<String>,
    /// Operations and loop iterations that ran.
    operations: u64,
    /// The most bytes of tensors alive at once.
    peak_bytes: usize,
    /// Seconds of this machine for the program alone, all runs.
    run_seconds: f64,
    /// The first run and the others, if it ran more than once.
    #[serde(skip_serializing_if = "Option::is_none")]
    repeat: Option<Repeat>,
    /// The same with reading and writing of files.
    host_seconds: f64,
    outputs: BTreeMap<String, OutputFile>,
    /// What the comparison with host arithmetic has found.
    #[serde(skip_serializing_if = "Option::is_none")]
    compare: Option<CompareReport>,
    /// What was found in the chip's kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<ChecksReport>,
    /// What the chip did.
    #[serde(skip_serializing_if = "Option::is_none")]
    chip: Option<ChipReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    profile: Option<Times>,
}

/// How many reasons for the native engine the text form has.
const NAMED: usize = 3;

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
    kind: OpKind,
    count: usize,
    seconds: f64,
}

#[derive(Serialize, Debug)]
struct OpTime {
    /// Its program's index in the file.
    program: usize,
    /// Its index in the program.
    operation: usize,
    kind: OpKind,
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
    let kinds = kinds.map(|(kind, count, time)| KindTime { kind, count, seconds: time.as_secs_f64() });
    let operations = profile.timings.iter().map(|timing| OpTime {
        program: timing.place.program,
        operation: timing.place.operation,
        kind: timing.place.kind,
        loc: timing.place.loc.clone(),
        seconds: timing.own.as_secs_f64(),
    });
    Times { kinds: kinds.collect(), operations: operations.collect() }
}

impl ModelReport {
    fn text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        let on = if self.engine == "chip" { "chip" } else { "native engine" };
        writeln!(out, "{} on the {on}", plain(&self.program))?;
        let (named, others) = self.not_chip.split_at(self.not_chip.len().min(NAMED));
        named.iter().try_for_each(|why| writeln!(out, "  not on the chip  {}", plain(why)))?;
        if !others.is_empty() {
            writeln!(out, "  not on the chip  and {} more", others.len())?;
        }
        writeln!(out, "  operations       {}", self.operations)?;
        writeln!(out, "  peak memory      {:.1} MiB of tensors", self.peak_bytes as f64 / f64::from(1 << 20))?;
        writeln!(out, "  host time        {:.3} s, {:.3} s with files", self.run_seconds, self.host_seconds)?;
        self.repeat.as_ref().map_or(Ok(()), |repeat| repeat.text(out))?;
        for (name, output) in &self.outputs {
            let shape = crate::array::shape_text(&output.shape);
            writeln!(out, "  {name:<16} {} {shape} {}", output.dtype, output.file)?;
        }
        if let Some(compare) = &self.compare {
            compare.text(out)?;
        }
        if let Some(chip) = &self.chip {
            chip.text(out)?;
        }
        if let Some(checks) = &self.checks {
            out.write_all(checks.text().as_bytes())?;
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
        writeln!(out, "  {:<34} {count:>6} {:>12.3}", kind.name(), seconds * 1e3)?;
    }
    writeln!(out, "\n  {:<12} {:<34} {:>12}", "operation", "kind", "ms")?;
    for time in &times.operations {
        let place = format!("{}.{}", time.program, time.operation);
        writeln!(out, "  {place:<12} {:<34} {:>12.3}", time.kind.name(), time.seconds * 1e3)?;
    }
    Ok(())
}
