//! `tilework replay`: repeats the run of a bundle, and compares how it ends.

use super::card::CardManifest;
use super::card_replay::{self, Replay};
use super::read::Bundle;
use super::{Manifest, essence};
use crate::answer::{Answer, ReportArgs};
use crate::board_file;
use crate::failure::{Failure, Outcome};
use crate::files::{self, shown};
use crate::interrupt;
use crate::program::firmware::Folder;
use crate::program::gdb::{self, Unasked};
use crate::program::run::{Job, document};
use crate::program::source::Source;
use crate::progress::Progress;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Result, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tilework_checks::{Level, Word};
use tilework_debugger::Debugger;

/// How a run with findings ends.
const FINDINGS: &str = "findings";

/// Arguments of `tilework replay`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
The exit code is 0 when the run ends as in the bundle, also with a fault or a deadlock: the same report, cycle by cycle.
It is 1 when it ends in another way, and 2 for a file that is no bundle. A bundle of `tilework card` has what a program
did to the card: the chip does it again without the program, cycle by cycle.

Examples:
  tilework replay out-deadlock-1a2b3c4d.zip
  tilework replay crash.zip --out out --report json
  tilework replay crash.zip --gdb 1234

docs/checks.md says what is in a bundle.")]
pub struct ReplayArgs {
    /// The bundle.
    pub file: PathBuf,
    /// The folder for the output arrays, if the run gets as far; they are dropped unless given.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Wait for gdb on this port of this machine, and repeat the run under it; 0 takes a free port.
    /// docs/debugger.md describes it.
    #[arg(long, value_name = "PORT")]
    pub gdb: Option<u16>,
    #[command(flatten)]
    pub report: ReportArgs,
}

/// Differences that are told one by one.
const TOLD: usize = 10;

/// What came of a replay. The fields are those of the JSON form, in their order.
#[derive(Serialize)]
struct Replayed {
    file: String,
    /// The version of the command that wrote the bundle.
    tilework: String,
    /// How the run ended: the class of its failure, or `findings`.
    end: String,
    /// Whether it ended in the same way now.
    same: bool,
    /// Where the two reports differ: the path of the key, and both values.
    differences: Vec<Difference>,
    /// The report of the run now.
    report: Value,
}

/// A value that is another one now.
#[derive(Serialize)]
struct Difference {
    at: String,
    then: Value,
    now: Value,
}

/// Repeats a run, under gdb if asked for.
pub fn replay(args: &ReplayArgs) -> Outcome<Answer> {
    interrupt::flag();
    if let Some(manifest) = card_replay::manifest(&args.file)? {
        return card(args, &manifest);
    }
    let bundle = Bundle::open(&args.file)?;
    let dropped = args.out.is_none().then(tempfile::tempdir).transpose();
    let dropped = dropped.map_err(|e| files::cannot_write(Path::new("."), format_args!("no temporary folder: {e}")))?;
    let out = match (&args.out, &dropped) {
        (Some(out), _) => out.as_path(),
        (None, Some(folder)) => folder.path(),
        (None, None) => Path::new("."),
    };
    match args.gdb {
        None => once(args, &bundle, out, None),
        Some(port) => gdb::run(port, |debugger| once(args, &bundle, out, Some(debugger))),
    }
}

/// Repeats the run of a card, and compares.
fn card(args: &ReplayArgs, manifest: &CardManifest) -> Outcome<Answer> {
    if args.out.is_some() {
        return Err(Failure::option("--out", " is for a kernel program; this is the run of a card"));
    }
    let once = |debugger: Option<&Debugger>| {
        let Replay { manifest, report, parted } = card_replay::replay(&args.file, manifest.clone(), debugger)?;
        let differences: Vec<_> = parted.into_iter().map(|(at, then, now)| Difference { at, then, now }).collect();
        let same = differences.is_empty();
        let failure = (!same).then(|| other_end(&manifest.tilework, "the chip does not what the bundle has"));
        let end = match (&report.fault, manifest.card.exit_code) {
            (Some(_), _) => "fault".to_owned(),
            (None, Some(code)) => format!("exit code {code} of the program"),
            (None, None) => "the program's".to_owned(),
        };
        let report = json(&report)?;
        let replayed = Replayed {
            file: args.file.display().to_string(),
            tilework: manifest.tilework,
            end,
            same,
            differences,
            report,
        };
        Ok(Answer::new(replayed, Replayed::text).failing(failure))
    };
    match args.gdb {
        None => once(None),
        Some(port) => gdb::run_from(port, gdb::POWER_ON, |debugger| once(Some(debugger))),
    }
}

fn json(report: &impl Serialize) -> Outcome<Value> {
    serde_json::to_value(report).map_err(|error| Failure::failed("output", error.to_string()))
}

/// A run that does not end as its bundle says.
fn other_end(tilework: &str, what: &str) -> Failure {
    let version = env!("CARGO_PKG_VERSION");
    let why = match tilework == version {
        true => String::new(),
        false => format!("; the bundle was written by tilework {tilework}, this is {version}"),
    };
    Failure::failed("replay", format!("{what}{why}"))
}

/// Repeats a run from its beginning, and compares.
fn once(args: &ReplayArgs, bundle: &Bundle, out: &Path, debugger: Option<&Debugger>) -> Outcome<Answer> {
    let Manifest { tilework, end, .. } = &bundle.manifest;
    let report = run(args, bundle, out, debugger)?;
    if report["error"]["class"] == "interrupted" {
        return Err(Failure::failed("interrupted", "interrupted before the run came to its end"));
    }
    let mut differences = Vec::new();
    let (mut then, mut now) = (essence(&bundle.report), essence(&as_read(&report)));
    let ends_early = bundle.manifest.options.ends_at_findings() || then["error"]["class"] == "fault";
    if debugger.is_some() && ends_early {
        // Windows are short there: other tiles have not come as far. And a user may have gone on
        // behind a finding that ended the run.
        [&mut then, &mut now].into_iter().for_each(without_findings);
    }
    compare("", &then, &now, &mut differences);
    let same = differences.is_empty();
    differences.truncate(TOLD);
    let failure = (!same).then(|| other_end(tilework, "the run does not end as in the bundle"));
    let (tilework, end) = (tilework.clone(), end.clone());
    let replayed = Replayed { file: args.file.display().to_string(), tilework, end, same, differences, report };
    Ok(Answer::new(replayed, Replayed::text).failing(failure))
}

/// A report as it is read from a bundle: its fractions may be other ones in the last digit.
fn as_read(report: &Value) -> Value {
    serde_json::from_str(&report.to_string()).unwrap_or_else(|_| report.clone())
}

/// Runs what a bundle has; the report of it.
fn run(args: &ReplayArgs, bundle: &Bundle, out: &Path, debugger: Option<&Debugger>) -> Outcome<Value> {
    let Bundle { manifest, program, board, kernels, inputs, folders, .. } = bundle;
    let file = &args.file;
    let in_bundle = |failure: Failure| failure.map(|message| format!("{}: {message}", shown(file))).of_file(file);
    let text = |name: &str, text: &str| Source::of_bytes(Path::new(name), text.as_bytes().to_vec());
    let mut own = manifest.options.read().map_err(in_bundle)?;
    own.gdb = args.gdb;
    if args.gdb.is_some() && own.checks.checks.is_empty() && manifest.end == FINDINGS {
        // What was looked for without an option, and is why there is a bundle.
        own.checks.checks = vec![Word::Level(Level::Warn)];
    }
    if let Some(board) = board {
        let board = text(super::BOARD, board).and_then(|file| board_file::read(&file));
        own.board.given = Some(board.map_err(in_bundle)?);
    }
    own.firmware = manifest.firmware.as_ref().map(PathBuf::from);
    own.cq_firmware = manifest.cq_firmware.as_ref().map(PathBuf::from);
    let known = |path: &Option<PathBuf>, i: usize| path.as_ref().map(|path| Folder::known(path, folders[i].clone()));
    let job = Job {
        program: Path::new(super::PROGRAM),
        out,
        own: &own,
        source: text(super::PROGRAM, program).map_err(in_bundle)?.with_kernels(kernels.clone()),
        inputs: inputs.clone(),
        folders: [known(&own.firmware, 0), known(&own.cq_firmware, 1)],
        schedule: manifest.schedule,
        read: vec![file.clone()],
        // Its run has looked without being asked, and has not stopped there.
        unasked: Unasked::Listed,
    };
    let (progress, started) = (Progress::new(), Instant::now());
    let (parts, prepared) = job.prepare().map_err(in_bundle)?;
    Ok(document(&prepared.carry_out(parts, &progress, started, debugger)))
}

/// Leaves what was found out of a report, and where a finding has ended the run: under the debugger
/// that is sooner, because its windows are short.
fn without_findings(report: &mut Value) {
    if report["error"]["class"] == FINDINGS {
        *report = serde_json::json!({ "error": { "class": FINDINGS } });
    }
    let Value::Object(fields) = report else { return };
    fields.remove("checks");
    if let Some(Value::Object(error)) = fields.get_mut("error") {
        error.remove("checks");
        if let Some(Value::String(message)) = error.get_mut("message")
            && let Some(behind) = message.find("\nfindings: ")
        {
            message.truncate(behind);
        }
    }
}

/// Where two values differ, the first places first.
fn compare(at: &str, then: &Value, now: &Value, found: &mut Vec<Difference>) {
    let below = |key: &dyn std::fmt::Display| if at.is_empty() { key.to_string() } else { format!("{at}.{key}") };
    match (then, now) {
        _ if found.len() > TOLD => {}
        (Value::Object(then), Value::Object(now)) => {
            let keys: BTreeMap<&String, ()> = then.keys().chain(now.keys()).map(|key| (key, ())).collect();
            let of = |fields: &serde_json::Map<String, Value>, key: &str| fields.get(key).cloned().unwrap_or_default();
            keys.into_keys().for_each(|key| compare(&below(key), &of(then, key), &of(now, key), found));
        }
        (Value::Array(then), Value::Array(now)) if then.len() == now.len() => {
            then.iter().zip(now).enumerate().for_each(|(i, (then, now))| compare(&below(&i), then, now, found));
        }
        (then, now) if then == now => {}
        (then, now) => found.push(Difference { at: at.to_owned(), then: then.clone(), now: now.clone() }),
    }
}

impl Replayed {
    fn text(&self, out: &mut dyn Write) -> Result<()> {
        let of_card = self.report["fault"].as_str();
        if let Some(message) = self.report["error"]["message"].as_str().or(of_card) {
            writeln!(out, "{message}")?;
        }
        if let (Some(cycles), Some(reads)) = (self.report.get("cycles"), self.report.get("reads")) {
            let count = |key: &str| self.report[key].as_u64().unwrap_or(0);
            let (instructions, writes) = (count("instructions"), count("writes"));
            writeln!(
                out,
                "cycle {cycles}: {instructions} instructions, {reads} reads and {writes} writes of the program"
            )?;
            let (read, written) = (count("host_memory_reads"), count("host_memory_writes"));
            writeln!(out, "{read} reads and {written} writes of host memory by the card")?;
            if self.report["whole"] == false {
                writeln!(out, "the program was ended before it was done with the card")?;
            }
        }
        for Difference { at, then, now } in &self.differences {
            writeln!(out, "{at}: {then} in the bundle, {now} now")?;
        }
        let how = if self.same { "the same end as in the bundle" } else { "not the end that the bundle has" };
        writeln!(out, "{how}: {}", self.end)
    }
}
