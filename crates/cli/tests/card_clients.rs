//! Unmodified programs for silicon under `tilework card`: what tt-umd, pyluwen and tt-smi find,
//! against stored snapshots.
//!
//! Each needs its package in the Python that `TILEWORK_PYTHON` names (`python3.11` unless set) and
//! is left out with the reason where it is missing. The snapshots are of tt-umd 0.9.14, pyluwen
//! 0.8.5 and tt-smi 4.1.0; `TILEWORK_BLESS=1` writes them anew.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

fn check(module: &str, script: &str, boards: &[&str]) {
    let python = std::env::var("TILEWORK_PYTHON").unwrap_or_else(|_| "python3.11".into());
    let has = Command::new(&python).args(["-c", &format!("import {module}")]).output();
    if !has.is_ok_and(|output| output.status.success()) {
        return println!("left out: {python} has no {module} (TILEWORK_PYTHON names another)");
    }
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/card_clients");
    let output = Command::new(env!("CARGO_BIN_EXE_tilework"))
        .arg("card")
        .args(boards.iter().flat_map(|board| ["--board", board]))
        .args(["--", &python])
        .arg(folder.join(format!("{script}.py")))
        .output()
        .unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{said}\n{errors}", output.status);
    let last = said.lines().last().unwrap_or_default();
    let found: Value = serde_json::from_str(last).unwrap_or_else(|error| panic!("{error}: {said}"));
    let file = folder.join(format!("{script}-{}.json", boards.join("-")));
    if std::env::var_os("TILEWORK_BLESS").is_some() {
        std::fs::write(&file, format!("{found:#}\n")).unwrap();
    }
    let stored = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let stored: Value = serde_json::from_str(&stored).unwrap();
    assert_eq!(found, stored, "{}", file.display());
}

#[test]
fn tt_umd_finds_a_p100() {
    check("tt_umd", "umd", &["p100"]);
}
#[test]
fn tt_umd_finds_a_p150() {
    check("tt_umd", "umd", &["p150"]);
}
#[test]
fn pyluwen_reads_the_telemetry_of_a_p100() {
    check("pyluwen", "luwen", &["p100"]);
}
#[test]
fn pyluwen_reads_the_telemetry_of_a_p150() {
    check("pyluwen", "luwen", &["p150"]);
}
#[test]
fn tt_smi_makes_a_snapshot_of_a_p100() {
    check("tt_smi", "smi", &["p100"]);
}
#[test]
fn tt_smi_makes_a_snapshot_of_a_p150() {
    check("tt_smi", "smi", &["p150"]);
}
#[test]
fn tt_umd_finds_two_cards() {
    check("tt_umd", "umd_two", &["p100", "p150"]);
}
#[test]
fn tt_smi_makes_a_snapshot_of_two_cards() {
    check("tt_smi", "smi", &["p100", "p150"]);
}
