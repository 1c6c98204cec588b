//! Wrong programs that run to their end: the mistake is told with its id, its core and its line.
//!
//! Each is the example `pipeline` with one thing wrong: NCRISC reads pages of x into a circular
//! buffer, BRISC writes them to y.

use crate::common;
use common::{Ended, example, example_input, folder, repository, run_example, run_text, tilework};
use serde_json::Value;

/// Runs the example `pipeline` with replacements in its text.
fn pipeline(changes: &[(&str, &str)], more: &[&str]) -> Ended {
    let mut text = std::fs::read_to_string(example("pipeline")).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let input = example_input("pipeline");
    let mut args = vec!["--input", &input];
    args.extend(more);
    run_text(folder().path(), &text, &args)
}

/// The end of the reader's arguments, and those of the writer.
const READER: &str = "\"x.page_size\", \"cb.tiles\"]\n\n[roles.brisc]";

/// The findings of a run that has ended well.
#[track_caller]
fn findings(changes: &[(&str, &str)]) -> Vec<Value> {
    pipeline(changes, &["--report", "json"]).code(0).json()["checks"]["findings"].as_array().unwrap().clone()
}

/// Asserts that something was found: its id, core and words, and a line of the kernel.
#[track_caller]
fn told(findings: &[Value], id: &str, core: &str, words: &str) {
    let found = findings.iter().find(|f| f["id"] == id).unwrap_or_else(|| panic!("{id} is not in {findings:#?}"));
    assert_eq!(found["core"], core, "{found:#}");
    let is_kernels = |place: &&Value| place["file"].as_str().is_some_and(|name| name.contains("firmware/kernels/"));
    let line = found["source"].as_array().unwrap().iter().find(is_kernels).and_then(|place| place["line"].as_u64());
    assert!(line.is_some_and(|line| line > 0), "{found:#}");
    assert!(found["what"].as_str().is_some_and(|what| what.contains(words)), "{found:#}");
}

#[test]
fn too_few_arguments() {
    // The circular buffer's number is missing, and happens to be what lies there.
    let found = findings(&[(READER, "\"x.page_size\"]\n\n[roles.brisc]")]);
    told(&found, "args-past-end", "ncrisc", "argument 4 of NCRISC; the program gives 4");
}

#[test]
fn a_read_and_a_write_past_the_last_page() {
    let found = findings(&[("[[[1, 2], [4, 3]]] #", "1 #"), ("split.count(x.pages)", "x.pages + 1")]);
    told(&found, "dram-past-buffer", "ncrisc", "reads 2048 bytes past the last page that buffer \"x\"");
    let write = found.iter().find(|f| f["id"] == "dram-past-buffer" && f["core"] == "brisc");
    let what = write.and_then(|found| found["what"].as_str());
    assert!(what.is_some_and(|what| what.contains("buffer \"y\" (37 pages of 2048 bytes)")), "{found:#?}");
}

#[test]
fn bytes_that_nobody_has_written() {
    // Half of each page of the circular buffer is filled, and all of it written to y.
    let found = findings(&[(READER, "\"x.page_size / 2\", \"cb.tiles\"]\n\n[roles.brisc]")]);
    told(&found, "l1-unwritten-read", "brisc", "reads 1024 bytes at");
}

#[test]
fn two_cores_on_one_page() {
    let found = findings(&[("split.start(x.pages)", "0")]);
    told(&found, "page-written-twice", "brisc", "has written");
    assert!(found[0]["other"]["cycle"].is_u64(), "{found:#?}");
}

#[test]
fn pages_larger_than_those_of_the_circular_buffer() {
    let found = findings(&[("page_size = \"x.page_size\"", "page_size = 1024")]);
    told(&found, "l1-past-buffer", "ncrisc", "past the end of circular buffer 0 \"tiles\"");
}

#[test]
fn an_error_ends_the_run_and_what_is_allowed_is_not_told() {
    let changes = [("split.start(x.pages)", "0")];
    pipeline(&changes, &["--checks", "error"]).code(1).says("page-written-twice");
    let allowed =
        pipeline(&changes, &["--checks", "error", "--allow", "page-written-twice", "--report", "json"]).code(0).json();
    assert_eq!(allowed["checks"]["findings"], Value::Array(Vec::new()), "{allowed:#}");
}

/// The ids of what is found in a run of an example with its inputs.
fn found_in(name: &str, more: &[&str]) -> Vec<String> {
    found_in_text(name, &std::fs::read_to_string(example(name)).unwrap(), more)
}

/// The same for another text with the example's inputs.
fn found_in_text(name: &str, text: &str, more: &[&str]) -> Vec<String> {
    let out = folder();
    let program = out.path().join("program.toml");
    std::fs::write(&program, text).unwrap();
    let mut args = vec!["run".to_owned(), program.display().to_string()];
    for entry in std::fs::read_dir(repository().join("examples").join(name)).unwrap() {
        let path = entry.unwrap().path();
        let buffer = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.extension().is_some_and(|e| e == "npy") && text.contains(&format!("[buffers.{buffer}]")) {
            args.extend(["--input".to_owned(), format!("{buffer}={}", path.display())]);
        }
    }
    let outputs = out.path().join("out").display().to_string();
    args.extend(["--out", &outputs, "--report", "json"].map(str::to_owned));
    args.extend(more.iter().map(|s| (*s).to_owned()));
    let report = tilework(&args).code(0).json();
    let findings = report["checks"]["findings"].as_array().unwrap_or_else(|| panic!("{name}: {report:#}"));
    findings.iter().map(|finding| finding["id"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn every_example_is_clean_also_for_who_wants_what_may_be_right() {
    let examples = std::fs::read_dir(repository().join("examples")).unwrap();
    let names = examples.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| example(name).is_file()).collect();
    names.sort();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        // A step, and the list of operands, are copied whole, with what only others have.
        let allow: &[&str] = match name.as_str() {
            "topk" => &["--allow", "local-unwritten-read@topk.rs"],
            "functions" => &["--allow", "local-unwritten-read@prebuilt:functions-math"],
            _ => &[],
        };
        assert_eq!(found_in(&name, &[&["--checks", "suspicious"], allow].concat()), [""; 0], "{name}");
    }
}

#[test]
fn compute_kernels_set_the_state_that_they_use() {
    for name in ["matmul", "softmax", "eltwise", "tilize", "reduce", "rotary"] {
        let twice = std::fs::read_to_string(example(name)).unwrap() + "\n[[launch]]\nrepeat = 2\n";
        assert_eq!(found_in_text(name, &twice, &["--checks", "suspicious"]), [""; 0], "{name}");
    }
}

#[test]
fn no_way_of_dispatch_has_findings() {
    for layout in ["subordinate", "subordinate-tile", "split"] {
        assert_eq!(found_in("pipeline", &["--dispatch-layout", layout]), [""; 0], "{layout}");
    }
    assert_eq!(found_in("matmul", &["--dispatch", "slow"]), [""; 0]);
    assert_eq!(found_in("pipeline", &["--transfers", "windows"]), [""; 0]);
}

#[test]
fn examples_have_no_findings_and_the_same_cycles_and_bytes() {
    for name in ["pipeline", "increment", "ring", "functions", "tilize", "topk", "columns", "accumulate"] {
        let (on, off) = (folder(), folder());
        let run = |out: &tempfile::TempDir, checks| {
            run_example(name, out.path(), &["--checks", checks, "--report", "json"]).code(0).json()
        };
        let (on, off) = (run(&on, "warn"), run(&off, "off"));
        assert_eq!(on["checks"]["findings"], Value::Array(Vec::new()), "{name}: {on:#}");
        for key in ["cycles", "noc_bytes"] {
            assert!(off[key].is_u64(), "{key}: {off:#}");
            assert_eq!(on[key], off[key], "{name}: {key}");
        }
        let sums = |report: &Value| -> Vec<Value> {
            report["outputs"].as_object().unwrap().values().map(|output| output["sha256"].clone()).collect()
        };
        assert!(sums(&on).iter().all(Value::is_string), "{on:#}");
        assert_eq!(sums(&on), sums(&off), "{name}");
    }
}
