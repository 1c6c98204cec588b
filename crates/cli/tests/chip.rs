//! Kernel programs on the chip behind a shared library: `tilework run --chip`.
//!
//! The library is our own, but for one test with another. Cargo builds our own beside these
//! tests because this package names it as a dependency of its tests.

use crate::common;
use common::{example, folder, library, run_example as run};
use serde_json::Value;
use std::path::Path;

fn report(name: &str, more: &[&str]) -> Value {
    let out = folder();
    let mut args = vec!["--report", "json"];
    args.extend(more);
    let ended = run(name, out.path(), &args).code(0);
    serde_json::from_str(&ended.stdout).expect("standard output is one JSON object")
}

/// SHA-256 of each output.
fn hashes(report: &Value) -> Vec<(String, Value)> {
    let outputs = report["outputs"].as_object().unwrap();
    outputs.iter().map(|(name, output)| (name.clone(), output["sha256"].clone())).collect()
}

#[test]
fn all_examples_give_the_same_outputs_on_a_librarys_chip_with_both_dispatches() {
    let Some(library) = library() else { return };
    let library = library.to_str().unwrap();
    for name in ["increment", "pipeline", "ring"] {
        for dispatch in ["fast", "slow"] {
            let own = report(name, &["--dispatch", dispatch, "--board", "p150"]);
            let other = report(name, &["--dispatch", dispatch, "--chip", library]);
            assert_eq!(hashes(&own), hashes(&other), "{name}, {dispatch}");
            assert!(!hashes(&own).is_empty());
            assert_eq!(own["chip"], "built-in");
            assert_eq!(other["chip"], format!("libttsim: {library}"));
            assert_eq!((&other["board"], &other["commands"]), (&own["board"], &own["commands"]));
            for unknown in ["cycles", "simulated_seconds", "instructions", "mips", "pcie_bytes", "noc_bytes"] {
                assert!(own[unknown].is_number() && other[unknown].is_null(), "{name}, {dispatch}: {unknown}");
            }
            assert!(other["session"]["cycles"].is_null() && other["session"]["host_seconds"].is_number());
            // The dispatcher's own time stamps are real; a host without a clock of the
            // chip has none.
            assert_eq!(other["program_cycles"].is_number(), dispatch == "fast", "{name}");
        }
    }
}

/// Another library with the interface, for example ttsim's, when `TILEWORK_LIBTTSIM` names one. Its
/// chip is taken for a p150's, because ttsim's telemetry names no board.
#[test]
fn all_examples_give_the_same_outputs_on_the_library_that_the_environment_names() {
    let Some(library) = std::env::var_os("TILEWORK_LIBTTSIM") else {
        println!("left out: TILEWORK_LIBTTSIM names no library with the libttsim interface");
        return;
    };
    let library = library.to_str().expect("TILEWORK_LIBTTSIM is UTF-8");
    for name in ["increment", "pipeline", "ring"] {
        for dispatch in ["fast", "slow"] {
            let board = ["--dispatch", dispatch, "--board", "p150"];
            let own = report(name, &board);
            let out = folder();
            let other = [&board[..], &["--report", "json", "--chip", library]].concat();
            let ended = run(name, out.path(), &other).code(0);
            // The library may print lines of its own after the report.
            let mut values = serde_json::Deserializer::from_str(&ended.stdout).into_iter();
            let other: Value = values.next().expect("a report").expect("the report is JSON");
            assert_eq!(hashes(&own), hashes(&other), "{name}, {dispatch}");
            assert!(!hashes(&own).is_empty());
            assert_eq!((&other["dispatch"], &other["commands"]), (&own["dispatch"], &own["commands"]), "{name}");
        }
    }
}

#[test]
fn a_run_on_a_librarys_chip_is_the_same_every_time() {
    let Some(library) = library() else { return };
    let runs = [0, 1].map(|_| report("ring", &["--core-timing", "--chip", library.to_str().unwrap()]));
    for key in ["program_cycles", "core_timing", "commands"] {
        assert_eq!(runs[0][key], runs[1][key], "{key}");
    }
    assert_eq!(runs[0]["core_timing"].as_array().unwrap().len(), 138);
}

#[test]
fn the_text_report_says_what_is_not_known() {
    let Some(library) = library() else { return };
    let out = folder();
    let text = run("ring", out.path(), &["--chip", library.to_str().unwrap()]).code(0).stdout;
    assert!(text.starts_with("ring on a p150 (libttsim: "), "{text}");
    assert!(text.contains("cycles of the program by the device's own time stamps"), "{text}");
    assert!(text.contains("not known: this chip cannot be looked into") && !text.contains(" 0 cycles"), "{text}");
}

#[test]
fn another_board_than_the_librarys_is_refused() {
    let Some(library) = library() else { return };
    let out = folder();
    let ended = run("ring", out.path(), &["--board", "p100", "--chip", library.to_str().unwrap()]);
    ended
        .code(2)
        .says("the library has a p150 that lacks Ethernet channels 5 8, but --board says a p100 that lacks Tensix");
}

#[test]
fn a_file_that_is_no_such_library_is_refused() {
    let out = folder();
    let program = example("ring");
    let ended = run("ring", out.path(), &["--chip", program.to_str().unwrap()]);
    ended.code(2).says(&format!("--chip {}: ", program.display())).says("cannot be loaded");
    run("ring", out.path(), &["--chip", "no/such/library.so"]).code(2).says("--chip no/such/library.so: ");
}

#[test]
fn a_library_without_the_entry_points_is_refused() {
    let maths = ["/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/libm.so.6", "/lib64/libm.so.6"];
    let Some(maths) = maths.into_iter().find(|file| Path::new(file).is_file()) else {
        println!("left out: no libm.so.6 in the usual places");
        return;
    };
    let out = folder();
    run("ring", out.path(), &["--chip", maths]).code(2).says("has no libttsim_init");
}
