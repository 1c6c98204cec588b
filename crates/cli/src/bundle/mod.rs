//! Crash bundles: one file with everything that a run of a kernel program was made of, and how it
//! ended. `tilework replay` repeats it.
//!
//! A bundle is a zip archive, so that people can look into it. Its bytes depend on the run alone:
//! entries have one order, no times and no owners. docs/checks.md describes it.
//!
//! | entry | what it is |
//! |---|---|
//! | `bundle.json` | the [`Manifest`] |
//! | `report.json` | the report of the run, as `--report json` has it |
//! | `program.toml` | the program file |
//! | `board.toml` | the board, of one that is no known kind |
//! | `kernels/N.elf` | the kernels, in the order of the manifest |
//! | `inputs/N.npy` | the arrays, in the order of the manifest |
//! | `firmware/NAME`, `cq-firmware/NAME` | the files of `--firmware` and `--cq-firmware` |

mod card;
mod card_replay;
mod read;
mod replay;
mod write;

pub use card::CardKeeper;
pub use replay::{ReplayArgs, replay};
pub use write::{Keeper, Kept, Written, told};

use crate::failure::{Failure, Outcome};
use crate::program::Schedule;
use crate::program::args::{DispatchName, KernelCheckArgs, KernelRunArgs};
use clap::{Args, FromArgMatches};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tilework_abi::board::BoardSpec;
use tilework_checks::{Level, Word};

/// The form of bundles. It changes when older ones cannot be read any more.
const FORM: u32 = 1;

/// The end of a run that ended well, but not as under the usual schedule.
pub const SCHEDULE: &str = "schedule";

/// Names of entries.
const MANIFEST: &str = "bundle.json";
const REPORT: &str = "report.json";
const PROGRAM: &str = "program.toml";
const BOARD: &str = "board.toml";
/// Folders of entries.
const FIRMWARE: &str = "firmware";
const CQ_FIRMWARE: &str = "cq-firmware";

fn kernel_entry(i: usize) -> String {
    format!("kernels/{i}.elf")
}

fn input_entry(i: usize) -> String {
    format!("inputs/{i}.npy")
}

/// What a bundle says about itself.
#[derive(Serialize, Deserialize, Debug)]
#[serde(deny_unknown_fields)]
struct Manifest {
    /// [`FORM`].
    bundle: u32,
    /// The version of the command that wrote it.
    tilework: String,
    /// How the run ended: the class of its failure, `findings`, or [`SCHEDULE`].
    end: String,
    /// How the program was run.
    options: Options,
    /// The schedule that it had, other than the usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schedule: Option<Schedule>,
    /// What the program file calls the kernels.
    kernels: Vec<String>,
    /// The names of the inputs.
    inputs: Vec<String>,
    /// The folder of other firmware, for messages; its files are in the bundle.
    firmware: Option<String>,
    /// The same of kernels of the command queue.
    cq_firmware: Option<String>,
}

/// The options of a run that decide what it does, in their spelling on the command line. What is
/// absent was not given.
#[derive(Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// A known board; absent with the entry `board.toml`.
    board: Option<String>,
    dispatch: String,
    dispatch_layout: Option<String>,
    transfers: Option<String>,
    core_timing: bool,
    max_cycles: Option<u64>,
    without_bugs: Vec<String>,
    checks: Vec<String>,
    allow: Vec<String>,
}

impl Options {
    /// Those of a run that `check` makes; its board is not among them.
    pub fn checked(own: &KernelCheckArgs) -> Self {
        Self {
            dispatch: DispatchName::Fast.name().to_owned(),
            dispatch_layout: own.plan.layout.given.map(|layout| layout.name().to_owned()),
            checks: words(&own.checks.checks),
            allow: own.checks.allow.iter().map(ToString::to_string).collect(),
            ..Self::default()
        }
    }

    /// Whether the first error among the findings ends the run.
    fn ends_at_findings(&self) -> bool {
        self.checks.iter().any(|word| Word::parse(word) == Ok(Word::Level(Level::Error)))
    }

    /// Those of a run, on a board of this name.
    fn of(board: Option<String>, own: &KernelRunArgs) -> Self {
        Self {
            board,
            dispatch: own.dispatch.name().to_owned(),
            dispatch_layout: own.layout.given.map(|layout| layout.name().to_owned()),
            transfers: own.transfers.map(|transfers| transfers.name().to_owned()),
            core_timing: own.core_timing,
            max_cycles: own.max_cycles,
            without_bugs: own.chip.without_bugs.iter().map(ToString::to_string).collect(),
            checks: words(&own.checks.checks),
            allow: own.checks.allow.iter().map(ToString::to_string).collect(),
        }
    }

    /// The options as the command line reads them. A value that is no such option's is refused like
    /// there; none names a file.
    pub fn read(&self) -> Outcome<KernelRunArgs> {
        let mut words = vec!["replay".to_owned(), format!("--dispatch={}", self.dispatch)];
        let known = self.board.as_deref().filter(|name| BoardSpec::named(name).is_none());
        if let Some(unknown) = known {
            return Err(Failure::usage(format!("no board is named {unknown:?}")));
        }
        let mut add = |option: &str, value: Option<&str>| words.extend(value.map(|value| format!("{option}={value}")));
        add("--board", self.board.as_deref());
        add("--dispatch-layout", self.dispatch_layout.as_deref());
        add("--transfers", self.transfers.as_deref());
        add("--max-cycles", self.max_cycles.map(|cycles| cycles.to_string()).as_deref());
        self.without_bugs.iter().for_each(|bug| add("--without-bug", Some(bug)));
        self.checks.iter().for_each(|word| add("--checks", Some(word)));
        self.allow.iter().for_each(|allow| add("--allow", Some(allow)));
        if self.core_timing {
            words.push("--core-timing".to_owned());
        }
        let refused = |error: clap::Error| Failure::usage(error.to_string().trim_end());
        let command = KernelRunArgs::augment_args(clap::Command::new("replay"));
        let matches = command.try_get_matches_from(words).map_err(refused)?;
        KernelRunArgs::from_arg_matches(&matches).map_err(refused)
    }
}

/// The names of words of `--checks`.
fn words(given: &[Word]) -> Vec<String> {
    Word::ALL.iter().filter(|(_, word, _)| given.contains(word)).map(|(name, ..)| (*name).to_owned()).collect()
}

/// What two reports of one run have in common: all but the time and the files of this machine.
fn essence(report: &Value) -> Value {
    const OF_MACHINE: [&str; 2] = ["host_seconds", "mips"];
    match report {
        Value::Object(fields) => {
            // An output has the file that it was written to, and the hash of its elements.
            let is_output = fields.contains_key("sha256");
            let of_machine = |key: &str| OF_MACHINE.contains(&key) || is_output && key == "file";
            let kept = fields.iter().filter(|(key, _)| !of_machine(key));
            kept.map(|(key, value)| (key.clone(), essence(value))).collect()
        }
        Value::Array(items) => items.iter().map(essence).collect(),
        other => other.clone(),
    }
}
