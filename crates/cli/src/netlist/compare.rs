//! `tilework check --expect` of a netlist. QUEUE.npy of a queue that the host fills is an input,
//! QUEUE.npy of any other is what is expected.

use super::args::NetlistCheckArgs;
use super::run::{self, Done, file_name};
use super::run_inputs;
use crate::answer::Answer;
use crate::args::{ArraySource, Input};
use crate::array::Array;
use crate::failure::{Failure, Outcome};
use crate::inputs;
use crate::model::tensors;
use serde::Serialize;
use std::io::Write;
use std::path::Path;
use tilework_buda::backend::stimulus::host_queues;
use tilework_dtype::DType;
use tilework_engine::{Comparison, Tolerance};
use tilework_netlist::types::{Netlist, QueueId};

/// Runs a netlist and compares its queues; a mismatch is a failed run.
pub fn check(file: &Path, own: &NetlistCheckArgs, expect: &Path) -> Outcome<Answer> {
    own.drive.refuse_idle()?;
    let netlist = run_inputs::read(file, own.arch)?;
    let mut given = Vec::new();
    for queue in host_queues(&netlist) {
        let name = netlist.queue(queue).name.clone();
        let path = expect.join(file_name(&name)?);
        if path.is_file() {
            given.push(Input { name, source: ArraySource::File { path, key: None } });
        }
    }
    let arch = own.arch.map(Into::into);
    let done = run::session(netlist, &own.drive, arch, own.rounding.golden(), &given, || Ok(()))?;
    let mut queues = Vec::new();
    for queue in done.outputs() {
        let path = expect.join(file_name(&done.netlist().queue(queue).name)?);
        if path.is_file() {
            queues.push(row(own, &done, queue, &inputs::open(&path, None)?)?);
        }
    }
    if queues.is_empty() {
        let names: Vec<String> =
            done.outputs().map(|queue| format!("{}.npy", done.netlist().queue(queue).name)).collect();
        let (folder, names) = (expect.display(), names.join(", "));
        return Err(Failure::usage(format!("{folder} has none of {names}: nothing to compare")).of_file(expect));
    }
    let passed = queues.iter().all(|row| row.passed);
    let failure = (!passed).then(|| Failure::failed("mismatch", "the queues are not as expected"));
    let report = NetlistComparison { netlist: file.display().to_string(), passed, queues };
    Ok(Answer::new(report, NetlistComparison::text).failing(failure))
}

fn row(own: &NetlistCheckArgs, done: &Done, queue: QueueId, expected: &Array) -> Outcome<QueueRow> {
    let name = done.netlist().queue(queue).name.clone();
    let found = tensors::tensor(&done.array(queue)?).map_err(|error| Failure::failed("output", error))?;
    let expected = tensors::tensor(expected).map_err(|error| Failure::usage(format!("{name}.npy: {error}")))?;
    let tolerance = own.tolerance.or(usual(done.netlist(), queue));
    let format = done.netlist().queue(queue).format.buda_name();
    Ok(match Comparison::of(&found, &expected, tolerance) {
        Ok(comparison) => QueueRow { name, format, passed: comparison.passes(), verdict: comparison.to_string() },
        Err(mismatch) => QueueRow { name, format, passed: false, verdict: mismatch.to_string() },
    })
}

/// The customary tolerance for a format: integers exactly, float32 as for models, all that is
/// shorter as bfloat16.
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
struct QueueRow {
    name: String,
    format: &'static str,
    passed: bool,
    verdict: String,
}

#[derive(Serialize, Debug)]
struct NetlistComparison {
    netlist: String,
    passed: bool,
    queues: Vec<QueueRow>,
}

impl NetlistComparison {
    fn text(&self, out: &mut dyn Write) -> std::io::Result<()> {
        for QueueRow { name, format, passed, verdict } in &self.queues {
            writeln!(out, "{} {name} {format}: {verdict}", if *passed { "ok  " } else { "FAIL" })?;
        }
        Ok(())
    }
}
