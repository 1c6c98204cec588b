//! Findings of a run with their source lines, as text and as data. docs/report.md lists the keys.

use crate::chip::Device;
use crate::failure::{Failure, Outcome};
use crate::sdk::is_library;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::{Arc, Mutex, PoisonError};
use tilework_abi::noc::NocXy;
pub use tilework_checks::data::FindingData;
use tilework_checks::{Allow, Checks, Code, Finding, Frame, Level, Place, Policy, RaceObserver, Source, TellAll, Told};
use tilework_runtime::CodePlace;

/// The findings of a run while it goes on: the chip's observers report into it, the command reads.
pub type Shared = Arc<Mutex<Checks>>;

/// Who looks for races, which are known at the end of a run.
pub type Races = Arc<Mutex<RaceObserver>>;

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
    /// The chip's cycle at which the first error has ended the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<u64>,
    #[serde(skip)]
    text: String,
    /// How many of the findings are errors.
    #[serde(skip)]
    errors: usize,
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

/// An instruction with its functions. The kernel's own place is the innermost function that is not
/// of the library for kernels: there a user changes something.
fn source(CodePlace { runs, kernel, location }: CodePlace) -> Source {
    let frames = location.iter().flat_map(|location| location.telling()).map(|frame| Frame {
        function: frame.function.clone(),
        line: frame.line.clone(),
        column: frame.column,
    });
    let frames: Vec<Frame> = frames.collect();
    let of_library = |frame: &Frame| frame.line.as_ref().is_some_and(|(file, _)| is_library(file));
    let own = frames.iter().position(|frame| !of_library(frame)).unwrap_or(0);
    Source { runs, kernel, frames, own }
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
        // The same of an operation of a model.
        (Err(failure), Some(found)) if found.ended_at.is_some() && failure.class() == "operation" => {
            Err(found.failure())
        }
        (Err(failure), Some(found)) => {
            let text = found.text.trim_end();
            Err(failure.map(|message| format!("{message}\n{text}")).with("checks", found))
        }
    }
}

/// What was found in a run on this device; nothing where nothing is checked.
pub fn report(device: &mut Device, checks: &Shared, races: Option<&Races>) -> Option<ChecksReport> {
    device.settle_observers();
    let mut checks = checks.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(races) = races {
        races.lock().unwrap_or_else(PoisonError::into_inner).hand_over(&mut checks);
    }
    let policy = checks.policy();
    if policy.level() == Level::Off {
        return None;
    }
    let mut sources = Sources::default();
    // Checks of different kinds tell what they find at different times.
    let mut found: Vec<&Finding> = checks.findings().iter().collect();
    found.sort_by_key(|finding| (finding.place.cycle, finding.place.tile, finding.check.id));
    let told = found.into_iter().map(|finding| {
        let source = sources.of(device, &finding.place);
        let other = finding.other.as_ref().and_then(|other| sources.of(device, other));
        Told::new(finding.clone(), source, other)
    });
    let told: Vec<Told> = told.collect();
    let ended = checks.ends().then(|| device.statistics().chip.map(|counts| counts.cycles)).flatten();
    Some(ChecksReport::of(policy, told, checks.left_out(), ended))
}

/// Whether the run is to be ended. The built-in chip stops by itself, this is for its debugger.
pub fn ends(checks: &Shared) -> bool {
    checks.lock().unwrap_or_else(PoisonError::into_inner).ends()
}

impl ChecksReport {
    fn of(policy: &Policy, told: Vec<Told>, left_out: u64, ended_at: Option<u64>) -> Self {
        let all = TellAll::of(policy, told, left_out);
        let errors = all.findings.iter().filter(|told| policy.level_of(told) == Level::Error).count();
        let level = if policy.level() == Level::Error { "error" } else { "warn" };
        let mut report = Self {
            level,
            races: policy.races(),
            allowed: all.allowed,
            unused_allow: all.unused.iter().map(Allow::to_string).collect(),
            left_out: all.left_out,
            ended_at,
            text: text(&all, ended_at),
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

fn text(all: &TellAll, ended_at: Option<u64>) -> String {
    let mut out = all.to_string();
    // Writing into a string cannot fail.
    if let Some(cycle) = ended_at {
        let _ = writeln!(out, "the run was ended at cycle {cycle}");
    }
    for allow in &all.unused {
        let _ = writeln!(out, "--allow {allow} was not needed");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use tilework_abi::tensix::Processor;
    use tilework_checks::catalogue::{memory, protocol, races};
    use tilework_checks::{Agent, Row, Space, Target, Word};
    use tilework_runtime::SourceLocation;
    use tilework_runtime::elf::SourceFrame;

    fn place(x: u8, agent: Agent, core: Processor, cycle: u64) -> Place {
        let tile = NocXy::new(x, 2);
        let target = Some(Target { space: Space::L1, tile, addr: 0x4_0000, bytes: 64 });
        Place { tile, agent, code: Some(Code { core, pc: 0x6000 }), cycle, target }
    }

    fn at_line(line: u32) -> Option<Source> {
        let frame = |function: &str, file: &str, line| SourceFrame {
            function: function.into(),
            line: Some((file.into(), line)),
            column: Some(9),
        };
        let frames = vec![frame("read", "./firmware/rt/src/reg.rs", 19), frame("main", "src/reader.rs", line)];
        let (runs, kernel) = ("kernel reader of program p".into(), Some("reader".into()));
        Some(source(CodePlace { runs, kernel, location: Some(SourceLocation { frames }) }))
    }

    fn read(check: &'static Row, x: u8, line: u32) -> Told {
        let place = place(x, Agent::Core(Processor::Ncrisc), Processor::Ncrisc, 100);
        Told::new(Finding::new(check, place, "reads 64 bytes of buffer a"), at_line(line), None)
    }

    fn race() -> Told {
        let write = place(1, Agent::NocWrite(0), Processor::Brisc, 90);
        let later = place(1, Agent::Core(Processor::Ncrisc), Processor::Ncrisc, 100);
        let finding = Finding::new(&races::RACE_NOC_SOURCE, later, "writes what may still be sent").against(write);
        Told::new(finding.missing("noc.writes_flushed() before line 41"), at_line(41), at_line(30))
    }

    fn policy(words: &[Word], allow: &[&str]) -> Policy {
        Policy::new(words, allow.iter().map(|text| Allow::parse(text).unwrap()).collect()).unwrap()
    }

    const ERROR: Word = Word::Level(Level::Error);

    #[test]
    fn a_finding_is_told_with_its_line_as_text_and_as_data() {
        let all = [read(&memory::L1_UNWRITTEN_READ, 1, 12), race(), read(&memory::L1_UNWRITTEN_READ, 2, 12)];
        let report = ChecksReport::of(&policy(&[Word::Races], &[]), all.into(), 0, None);
        let expected = "\
findings: 2
l1-unwritten-read: reads 64 bytes of buffer a
  NCRISC of (1,2), cycle 100, pc 0x6000
    in kernel reader of program p, main (src/reader.rs:12:9)
    through read (./firmware/rt/src/reg.rs:19:9)
  seen 2 times, on (1,2) (2,2)
  tilework explain l1-unwritten-read says more
race-noc-source: writes what may still be sent
  NCRISC of (1,2), cycle 100, pc 0x6000
    in kernel reader of program p, main (src/reader.rs:41:9)
    through read (./firmware/rt/src/reg.rs:19:9)
  a write of NoC 0 by BRISC of (1,2), cycle 90, pc 0x6000
    in kernel reader of program p, main (src/reader.rs:30:9)
    through read (./firmware/rt/src/reg.rs:19:9)
  missing: noc.writes_flushed() before line 41
  tilework explain race-noc-source says more
";
        assert_eq!(report.text(), expected);
        let data: Value = serde_json::to_value(&report).unwrap();
        assert_eq!((&data["level"], &data["races"], &data["left_out"]), (&json!("warn"), &json!(true), &json!(0)));
        let source = json!([
            {"function": "read", "file": "./firmware/rt/src/reg.rs", "line": 19, "column": 9},
            {"function": "main", "file": "src/reader.rs", "line": 12, "column": 9},
        ]);
        let tile = json!({"x": 1, "y": 2});
        let expected = json!({
            "id": "l1-unwritten-read", "about": "memory", "certainty": "certain", "what": "reads 64 bytes of buffer a",
            "tile": tile, "agent": "ncrisc", "core": "ncrisc", "pc": 0x6000, "cycle": 100, "memory": "l1",
            "memory_tile": tile, "address": 0x4_0000, "bytes": 64, "runs": "kernel reader of program p",
            "source": source, "count": 2, "tiles": [tile, {"x": 2, "y": 2}],
        });
        assert_eq!(data["findings"][0], expected);
        let other = &data["findings"][1]["other"];
        assert_eq!(
            (&other["agent"], &other["core"], &other["source"][1]["line"]),
            (&json!("noc_0_write"), &json!("brisc"), &json!(30))
        );
        assert!(data.get("text").is_none() && data.get("errors").is_none());
    }

    #[test]
    fn errors_fail_a_run_and_warnings_stand_behind_its_own_failure() {
        let of = |policy: &Policy, told: Vec<Told>| ChecksReport::of(policy, told, 0, None);
        let null = || vec![read(&memory::L1_NULL, 1, 12)];
        let warned = of(&policy(&[], &[]), null());
        assert!(judge(Ok(()), Some(&warned)).is_ok());
        let fault = judge::<()>(Err(Failure::failed("fault", "a fault")), Some(&warned)).unwrap_err();
        assert_eq!(fault.class(), "fault");
        assert!(fault.to_string().starts_with("a fault\nfindings: 1\nl1-null: "), "{fault}");
        assert_eq!(serde_json::to_value(&fault).unwrap()["checks"]["findings"][0]["id"], "l1-null");

        let errors = of(&policy(&[ERROR], &[]), null());
        // A run that the first finding has ended, and one whose end came sooner.
        for ran in [Ok(()), Err(Failure::failed("interrupted", "interrupted"))] {
            let failed = judge(ran, Some(&errors)).unwrap_err();
            assert_eq!((failed.class(), failed.exit_code()), ("findings", 1));
            assert!(failed.to_string().starts_with("findings: 1\nl1-null: "), "{failed}");
        }
        // An operation of a model that the first finding has ended, and one that failed by itself.
        let ended = ChecksReport::of(&policy(&[ERROR], &[]), null(), 0, Some(7));
        for (checks, class) in [(&ended, "findings"), (&errors, "operation")] {
            let failed = judge::<()>(Err(Failure::failed("operation", "op 3")), Some(checks)).unwrap_err();
            assert_eq!(failed.class(), class);
        }
        let suspicious = of(&policy(&[ERROR, Word::Suspicious], &[]), vec![read(&protocol::NOC_TOO_LONG, 1, 12)]);
        assert!(judge(Ok(()), Some(&suspicious)).is_ok(), "what is only suspicious fails nothing");
        let allowed = of(&policy(&[ERROR], &["l1-null@reader.rs:12"]), null());
        assert!(judge(Ok(()), Some(&allowed)).is_ok());
        assert_eq!(allowed.text(), "no findings but for 1 that are allowed\n");
        let interrupted = Err::<(), _>(Failure::failed("interrupted", "by the user"));
        assert_eq!(judge(interrupted, Some(&allowed)).unwrap_err().to_string(), "by the user");
    }

    #[test]
    fn the_first_finding_ends_a_run_unless_its_place_has_to_be_known() {
        let place = place(1, Agent::Core(Processor::Brisc), Processor::Brisc, 1);
        let found = |policy: Policy| {
            let checks = shared(policy);
            checks.lock().unwrap().report(Finding::new(&memory::L1_NULL, place, "reads"));
            ends(&checks)
        };
        assert!(found(policy(&[ERROR], &[])) && found(policy(&[ERROR], &["l1-text@reader"])));
        assert!(!found(policy(&[], &[])) && !found(policy(&[ERROR], &["l1-null@reader"])));
        assert!(!found(policy(&[ERROR], &["l1-null"])));
    }
}
