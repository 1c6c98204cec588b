//! What the tests of the shared library share: where it is, and processes of their own, because a
//! process has one card.

use std::path::PathBuf;
use std::process::{Command, Output};

/// Set in the process that runs the body of a test.
const ALONE: &str = "TILEWORK_TEST_ALONE";

/// The shared library, which cargo puts beside or above the tests.
#[allow(dead_code, reason = "not every test file opens it")]
pub(crate) fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folders = test.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join("libtilework.so")).find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("no libtilework.so at or above {}", test.display()))
}

/// Runs `body` in a process of its own, in which the test `name` of this file is the only one, with
/// `environment`; gives what the process said and how it ended. In that process, this runs the body
/// and does not return.
pub(crate) fn alone(name: &str, environment: &[(&str, &str)], body: impl FnOnce()) -> Output {
    if std::env::var_os(ALONE).is_some_and(|alone| alone == name) {
        body();
        std::process::exit(0);
    }
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env_remove("TILEWORK_ON_FAULT")
        .env_remove("TILEWORK_BOARD")
        .env_remove("TILEWORK_WITHOUT_BUGS")
        .env_remove("TILEWORK_THREADS")
        .env_remove("TILEWORK_COVERAGE")
        .env_remove("TILEWORK_CHECKS")
        .env_remove("TILEWORK_TRACE")
        .env_remove("TILEWORK_HTML")
        .env(ALONE, name)
        .envs(environment.iter().copied())
        .output()
        .unwrap()
}

/// As [`alone`], for a body that must come to its end.
#[allow(dead_code, reason = "not every test file has such a test")]
pub(crate) fn alone_and_well(name: &str, body: impl FnOnce()) -> Output {
    let output = alone(name, &[], body);
    assert!(output.status.success(), "{name}: {}\n{}", output.status, text(&output.stderr));
    output
}

/// Text of a process.
pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
