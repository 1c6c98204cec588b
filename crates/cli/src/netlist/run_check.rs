//! `tilework check` of a netlist, with expected arrays or without: QUEUE.npy of a queue that the host fills is an
//! input, QUEUE.npy of any other is what is expected.

use super::run::{self, Done, file_name};
use super::run_inputs;
use crate::args::{CheckArgs, Input, ReportForm, Source};
use crate::array::Array;
use crate::failure::{Failure, Outcome};
use crate::model::tensors;
use crate::print;
use serde::Serialize;
use std::io::Write;
use tilework_buda::backend::stimulus::host_queues;
use tilework_dtype::DType;
use tilework_engine::{Comparison, Tolerance};
use tilework_netlist::types::{Netlist, QueueId};

/// Runs a netlist and compares its queues; a mismatch is a failed run.
pub fn check(args: &CheckArgs) -> Outcome<()> {
    let Some(expect) = &args.expect else { return only_checked(args) };
    if args.bisect.is_some() {
        return Err(Failure::usage("--bisect is for compiled models (.ttnn)"));
    }
    let netlist = run_inputs::read(&args.program)?;
    let mut given = Vec::new();
    for queue in host_queues(&netlist) {
        let name = netlist.queue(queue).name.clone();
        let path = expect.join(file_name(&name)?);
        if path.is_file() {
            given.push(Input { name, source: Source::File { path, key: None } });
        }
    }
    let arch = args.netlist.arch.map(Into::into);
    let done = run::session(netlist, &args.netlist_run, arch, run::rounding(&args.model), &given)?;
    let mut queues = Vec::new();
    for queue in done.outputs() {
        let path = expect.join(file_name(&done.netlist().queue(queue).name)?);
        if path.is_file() {
            queues.push(row(args, &done, queue, &Array::open(&path, None)?)?);
        }
    }
    if queues.is_empty() {
        let names: Vec<String> =
            done.outputs().map(|queue| format!("{}.npy", done.netlist().queue(queue).name)).collect();
        let (folder, names) = (expect.display(), names.join(", "));
        return Err(Failure::usage(format!("{folder} has none of {names}: nothing to compare")));
    }
    let passed = queues.iter().all(|row| row.passed);
    let report = Report { netlist: args.program.display().to_string(), passed, queues };
    let form = if args.netlist.json { ReportForm::Json } else { args.report };
    print::report(&report, form, |out| report.text(out))?;
    match passed {
        true => Ok(()),
        false => Err(Failure::failed("the queues are not as expected")),
    }
}

/// Without expected arrays nothing runs.
fn only_checked(args: &CheckArgs) -> Outcome<()> {
    match args.netlist_run.given() {
        Some(option) => Err(Failure::usage(format!("{option} needs --expect DIR: without it a netlist is not run"))),
        None => super::check::check(args),
    }
}

fn row(args: &CheckArgs, done: &Done, queue: QueueId, expected: &Array) -> Outcome<Row> {
    let name = done.netlist().queue(queue).name.clone();
    let found = tensors::tensor(&done.array(queue)?).map_err(Failure::failed)?;
    let expected = tensors::tensor(expected).map_err(|error| Failure::usage(format!("{name}.npy: {error}")))?;
    let tolerance = args.tolerance(usual(done.netlist(), queue));
    let format = done.netlist().queue(queue).format.buda_name();
    Ok(match Comparison::of(&found, &expected, tolerance) {
        Ok(comparison) => Row { name, format, passed: comparison.passes(), verdict: comparison.to_string() },
        Err(mismatch) => Row { name, format, passed: false, verdict: mismatch.to_string() },
    })
}

/// The customary tolerance for a format: integers exactly, float32 as for models, all that is shorter as bfloat16.
fn usual(netlist: &Netlist, queue: QueueId) -> Tolerance {
    use DType::{F32, I8, I32, RawU8, RawU16, RawU32, U8, U16};
    match netlist.queue(queue).format {
        I8 | I32 | U8 | U16 | RawU8 | RawU16 | RawU32 => Tolerance::EXACT,
        F32 => Tolerance::FLOAT32,
        _ => Tolerance::BFLOAT16,
    }
}

/// One queue beside what was expected.
#[derive(Serialize, Debug)]
struct Row {
    name: String,
    format: &'static str,
    passed: bool,
    verdict: String,
}

#[derive(Serialize, Debug)]
struct Report {
    netlist: String,
    passed: bool,
    queues: Vec<Row>,
}

impl Report {
    fn text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        for Row { name, format, passed, verdict } in &self.queues {
            writeln!(out, "{} {name} {format}: {verdict}", if *passed { "ok  " } else { "FAIL" })?;
        }
        Ok(())
    }
}
