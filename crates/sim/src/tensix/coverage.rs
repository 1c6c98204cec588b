//! Counts the modes of the instructions that a coprocessor executes.
//!
//! Off unless someone asks: then it is one test of an option for each instruction. With the
//! environment variable [`TESTS`], every coprocessor of the process also writes which modes it
//! executed to that file, for `cargo xtask coverage`, which runs the tests in this way.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};
use tilework_abi::tensix::insn::{Insn, Mode};

/// Names the file to which tests append the modes that they execute.
const TESTS: &str = "TILEWORK_TEST_COVERAGE";

/// Where tests write, and what this process has written there.
static WRITTEN: LazyLock<Option<(PathBuf, Mutex<BTreeSet<Mode>>)>> =
    LazyLock::new(|| Some((PathBuf::from(std::env::var_os(TESTS)?), Mutex::default())));

/// What a coprocessor has executed.
#[derive(Clone, Debug, Default)]
pub(super) struct Executed {
    counts: BTreeMap<Mode, u64>,
    /// Of the instruction that is about to pass the wait gate: what its unit adds to the mode.
    pub(super) settings: Option<u32>,
}

impl Executed {
    /// Whether every coprocessor counts, because tests are to write what they execute.
    pub(super) fn is_of_tests() -> bool {
        WRITTEN.is_some()
    }

    /// An instruction has executed.
    pub(super) fn count(&mut self, insn: Insn) {
        let settings = self.settings.take();
        if let Some(mode) = Mode::of(insn, settings) {
            *self.counts.entry(mode).or_default() += 1;
        }
    }

    /// How often in which mode.
    pub(super) fn counts(&self) -> &BTreeMap<Mode, u64> {
        &self.counts
    }
}

impl Drop for Executed {
    fn drop(&mut self) {
        let Some((path, written)) = WRITTEN.as_ref() else { return };
        let mut written = written.lock().unwrap_or_else(PoisonError::into_inner);
        let new = self.counts.keys().filter(|mode| written.insert(**mode));
        let lines: String =
            new.map(|mode| mode.numbers()).map(|[word, set]| format!("{word:08x} {set:08x}\n")).collect();
        if lines.is_empty() {
            return;
        }
        // One write, so that processes which append at the same time do not mix their lines.
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        if let Err(error) = file.and_then(|mut file| file.write_all(lines.as_bytes())) {
            eprintln!("{TESTS}: cannot write {}: {error}", path.display());
        }
    }
}
