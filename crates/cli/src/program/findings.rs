//! Findings of a run with their source lines, as text and as data. docs/report.md lists the keys.

use super::failure::{TileData, core_name};
use crate::chip::Device;
use crate::failure::{Failure, Outcome};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use tilework_abi::noc::NocXy;
use tilework_checks::{Agent, Allow, Checks, Code, Finding, Level, Place, Policy, Source, Space, TellAll, Told};
use tilework_runtime::CodePlace;

/// The findings of a run while it goes on: the chip's observers report into it, the command reads.
pub type Shared = Arc<Mutex<Checks>>;

/// What was found in a run. The fields are those of the JSON form, in their order.
#[derive(Serialize, Debug, Default)]
pub struct ChecksReport {
    /// `warn` or `error`.
    pub level: &'static str,
    /// Whether accesses without order were looked for.
    pub races: bool,
    /// The findings, those of one source line on several tiles as one.
    pub findings: Vec<FindingData>,
    /// How often something was found that is allowed where it is.
    pub allowed: u64,
    /// `--allow`s with a place that nothing was found at.
    pub unused_allow: Vec<String>,
    /// How often something was found when there were too many findings to keep.
    pub left_out: u64,
    #[serde(skip)]
    text: String,
    /// How many of the findings are errors.
    #[serde(skip)]
    errors: usize,
}

/// A finding. The fields are those of the JSON form, in their order.
#[derive(Serialize, Debug)]
pub struct FindingData {
    id: &'static str,
    about: &'static str,
    certainty: &'static str,
    what: String,
    #[serde(flatten)]
    place: PlaceData,
    /// The other side, of a race or of who wrote the bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    other: Option<PlaceData>,
    /// Of a race: what would have ordered the two.
    #[serde(skip_serializing_if = "Option::is_none")]
    missing: Option<String>,
    count: u64,
    tiles: Vec<TileData>,
}

/// Who did something, where and when.
#[derive(Serialize, Debug)]
struct PlaceData {
    tile: TileData,
    agent: String,
    core: Option<String>,
    pc: Option<u32>,
    cycle: u64,
    #[serde(flatten)]
    access: Option<AccessData>,
    runs: Option<String>,
    source: Option<SourceData>,
}

/// The bytes of an access.
#[derive(Serialize, Debug)]
struct AccessData {
    memory: &'static str,
    memory_tile: TileData,
    address: u64,
    bytes: u32,
}

/// A place in the source.
#[derive(Serialize, Debug)]
struct SourceData {
    function: Option<String>,
    file: Option<String>,
    line: Option<u32>,
    column: Option<u32>,
}

/// Looks instructions up, those that many findings share once.
#[derive(Default)]
struct Sources(BTreeMap<(NocXy, Code), Source>);

impl Sources {
    fn of(&mut self, device: &Device, place: &Place) -> Option<Source> {
        let code = place.code?;
        let find = || source(device.code_at(place.tile, code.core, code.pc));
        Some(self.0.entry((place.tile, code)).or_insert_with(find).clone())
    }
}

/// The innermost function of the kernel's own code, and its line.
fn source(CodePlace { runs, kernel, location }: CodePlace) -> Source {
    let frame = location.as_ref().and_then(|location| location.telling().next());
    let line = frame.and_then(|frame| frame.line.as_ref());
    Source {
        runs,
        kernel,
        function: frame.map(|frame| frame.function.clone()),
        file: line.map(|(file, _)| file.clone()),
        line: line.map(|(_, line)| *line),
        column: frame.and_then(|frame| frame.column),
    }
}

/// Nothing found yet, under a policy.
pub fn shared(policy: Policy) -> Shared {
    Arc::new(Mutex::new(Checks::new(policy)))
}

/// The outcome of a run in the light of what was found: errors fail it, and a run that failed by
/// itself has the findings behind its message, because they may be the cause.
pub fn judge<T>(ran: Outcome<T>, found: Option<&ChecksReport>) -> Outcome<T> {
    match (ran, found.filter(|found| !found.findings.is_empty())) {
        (ran, None) => ran,
        (Ok(_), Some(found)) if found.errors > 0 => Err(found.failure()),
        (Ok(ran), Some(_)) => Ok(ran),
        // The findings are what ended it.
        (Err(failure), Some(found)) if found.errors > 0 && failure.class() == "interrupted" => Err(found.failure()),
        (Err(failure), Some(found)) => {
            let text = found.text.trim_end();
            Err(failure.map(|message| format!("{message}\n{text}")).with("checks", found))
        }
    }
}

/// What was found in a run on this device; nothing where nothing is checked.
pub fn report(device: &Device, checks: &Shared) -> Option<ChecksReport> {
    let checks = checks.lock().unwrap_or_else(PoisonError::into_inner);
    let policy = checks.policy();
    if policy.level() == Level::Off {
        return None;
    }
    let mut sources = Sources::default();
    let told = checks.findings().iter().map(|finding| {
        let source = sources.of(device, &finding.place);
        let other = finding.other.as_ref().and_then(|other| sources.of(device, other));
        Told::new(finding.clone(), source, other)
    });
    let told: Vec<Told> = told.collect();
    Some(ChecksReport::of(policy, told, checks.left_out()))
}

/// Whether the run is to be ended: something was found that is an error wherever it is. What may be
/// allowed at its place is judged at the end of the run, when places are known.
pub fn ends(checks: &Shared) -> bool {
    let checks = checks.lock().unwrap_or_else(PoisonError::into_inner);
    let policy = checks.policy();
    let by_place = |finding: &Finding| policy.allow().iter().any(|allow| allow.check == finding.check);
    let is_error = |finding: &Finding| policy.level_of(&Told::new(finding.clone(), None, None)) == Level::Error;
    checks.findings().iter().any(|finding| is_error(finding) && !by_place(finding))
}

impl ChecksReport {
    fn of(policy: &Policy, told: Vec<Told>, left_out: u64) -> Self {
        let all = TellAll::of(policy, told, left_out);
        let errors = all.findings.iter().filter(|told| policy.level_of(told) == Level::Error).count();
        let level = if policy.level() == Level::Error { "error" } else { "warn" };
        let mut report = Self {
            level,
            races: policy.races(),
            allowed: all.allowed,
            unused_allow: all.unused.iter().map(Allow::to_string).collect(),
            left_out: all.left_out,
            text: text(&all),
            errors,
            findings: Vec::new(),
        };
        report.findings = all.findings.into_iter().map(FindingData::of).collect();
        report
    }

    /// The lines for people; empty when there is nothing to say.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The failure that the findings are.
    fn failure(&self) -> Failure {
        Failure::failed("findings", self.text.trim_end()).with("checks", self)
    }
}

fn text(all: &TellAll) -> String {
    let TellAll { findings, allowed, unused, left_out } = all;
    let mut out = String::new();
    // Writing into a string cannot fail.
    let _ = match (findings.len(), allowed) {
        (0, 0) => Ok(()),
        (0, n) => writeln!(out, "no findings but for {n} that are allowed"),
        (n, 0) => writeln!(out, "findings: {n}"),
        (n, allowed) => writeln!(out, "findings: {n}, and {allowed} that are allowed"),
    };
    for told in findings {
        let _ = writeln!(out, "{told}\n  tilework explain {} says more", told.finding.check.id);
    }
    if *left_out > 0 {
        let _ = writeln!(out, "and {left_out} more, which are only counted");
    }
    for allow in unused {
        let _ = writeln!(out, "--allow {allow} was not needed");
    }
    out
}

impl FindingData {
    /// What makes it the same finding in another run.
    pub fn key(&self) -> (&'static str, Option<&str>, Option<u32>) {
        (self.id, self.place.core.as_deref(), self.place.pc)
    }

    fn of(told: Told) -> Self {
        let Told { finding, source, other_source, tiles } = told;
        let Finding { check, place, what, other, missing, count } = finding;
        Self {
            id: check.id,
            about: check.kind.name(),
            certainty: check.certainty.name(),
            what,
            place: PlaceData::of(&place, source),
            other: other.map(|other| PlaceData::of(&other, other_source)),
            missing,
            count,
            tiles: TileData::all(&tiles),
        }
    }
}

impl fmt::Display for FindingData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.id, self.what)
    }
}

impl PlaceData {
    fn of(place: &Place, source: Option<Source>) -> Self {
        let access = place.target.map(|target| AccessData {
            memory: memory(target.space),
            memory_tile: TileData::of(target.tile),
            address: target.addr,
            bytes: target.bytes,
        });
        let runs = source.as_ref().map(|source| source.runs.clone());
        let source =
            source.map(|Source { function, file, line, column, .. }| SourceData { function, file, line, column });
        Self {
            tile: TileData::of(place.tile),
            agent: agent(place.agent),
            core: place.code.map(|code| core_name(code.core)),
            pc: place.code.map(|code| code.pc),
            cycle: place.cycle,
            access,
            runs,
            source,
        }
    }
}

/// An agent as one word: `brisc`, `noc_0_read`, `unpacker_1`.
fn agent(agent: Agent) -> String {
    match agent {
        Agent::Core(core) => core_name(core),
        Agent::NocRead(noc) => format!("noc_{noc}_read"),
        Agent::NocWrite(noc) => format!("noc_{noc}_write"),
        Agent::NocAtomic(noc) => format!("noc_{noc}_atomic"),
        Agent::Unpacker(unit) => format!("unpacker_{unit}"),
        Agent::Packer(unit) => format!("packer_{unit}"),
        Agent::Thread(thread) => format!("thread_{thread}"),
        Agent::Host => "host".to_owned(),
    }
}

/// A kind of memory as one word.
fn memory(space: Space) -> &'static str {
    match space {
        Space::L1 => "l1",
        Space::Local(_) => "local",
        Space::Dram => "dram",
        Space::Registers => "registers",
    }
}
