//! Netlists on the command line: what is wrong with them, what is in them.

use crate::common;
use common::{folder, repository, tilework};
use serde_json::Value;

fn netlist(name: &str) -> String {
    repository().join("crates/netlist/tests/data").join(name).display().to_string()
}

/// A netlist with three mistakes.
fn broken(dir: &std::path::Path) -> String {
    let text = std::fs::read_to_string(netlist("base.yaml")).unwrap();
    let text = text
        .replace("type: exp", "type: expp")
        .replace("[[2, 0x10000000]]", "[[2, 0x10000010]]")
        .replace("rd_ptr_local: $l, rd_ptr_global: $g", "rd_ptr_local: $x, rd_ptr_global: $g");
    let path = dir.join("broken.yaml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_right_netlist_passes_and_says_for_which_architectures() {
    let good = tilework(&["check", &netlist("base.yaml")]).code(0);
    assert!(good.stdout.ends_with("base.yaml: right for wormhole_b0, grayskull\n"), "{}", good.stdout);
    let one = tilework(&["check", &netlist("base.yaml"), "--arch", "blackhole"]).code(2);
    assert!(one.stdout.contains("error[N0113]: the netlist is not written for blackhole"), "{}", one.stdout);
}

#[test]
fn every_mistake_is_reported_at_once_with_its_line() {
    let dir = folder();
    let file = broken(dir.path());
    let text = tilework(&["check", &file]).code(2);
    for part in [
        "error[N0015]: `type` cannot be `expp`",
        "did you mean `exp`?",
        "broken.yaml:24:20",
        "error[N0701]",
        "error[N0611]",
    ] {
        assert!(text.stdout.contains(part), "{part} is not in:\n{}", text.stdout);
    }
    assert!(text.stderr.contains("broken.yaml: 3 errors, 0 warnings"), "{}", text.stderr);
    let json = tilework(&["check", &file, "--json"]).code(2);
    let report: Value = serde_json::from_str(&json.stdout).expect("one JSON object");
    assert_eq!((report["accepted"].clone(), report["errors"].clone()), (false.into(), 3.into()));
    let codes: Vec<&str> = report["findings"].as_array().unwrap().iter().map(|f| f["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["N0701", "N0015", "N0611"], "in the order of the file");
    let first = &report["findings"][1];
    assert_eq!(
        (first["line"].clone(), first["column"].clone(), first["end"].clone()),
        (24.into(), 20.into(), serde_json::json!([24, 24]))
    );
    assert_eq!(first["help"], "did you mean `exp`?");
}

#[test]
fn what_is_in_a_netlist_is_shown() {
    let text = tilework(&["show", &netlist("base.yaml")]).code(0).stdout;
    assert!(
        text.contains("  queue acts from HOST: 4 x Float16_b [2x64x128], device 0 dram, 2 x 66592 bytes\n"),
        "{text}"
    );
    assert!(
        text.contains("  product = matmul (acts, weights, bias) Float16_b [2x64x128] at [0, 0], 1 x 1 cores\n"),
        "{text}"
    );
    let json: Value =
        serde_json::from_str(&tilework(&["show", &netlist("base.yaml"), "--json"]).code(0).stdout).unwrap();
    assert_eq!(json["programs"][0]["executes"], serde_json::json!(["forward", "backward", "other"]));
    let wrong = tilework(&["show", &broken(folder().path())]).code(2);
    assert!(wrong.stderr.contains("error[N0015]"), "{}", wrong.stderr);
}

#[test]
fn the_memory_report_has_buffers_gaps_and_cores() {
    let shown = tilework(&["show", &netlist("base.yaml"), "--memory", "--json", "--arch", "wormhole_b0"]).code(0);
    let memory: Value = serde_json::from_str(&shown.stdout).expect("one JSON object");
    let first = &memory["dram"][0]["buffers"][0];
    // Four entries of t 2, mblock [2, 1] and ublock [1, 2], which are 8 tiles of 2080 bytes, and
    // the header of 32.
    assert_eq!((first["queue"].clone(), first["bytes"].clone()), ("acts".into(), (4 * 8 * 2080 + 32).into()));
    assert_eq!(first["gap"], 0x0100_0000 - first["bytes"].as_i64().unwrap());
    let product = &memory["graphs"][0]["ops"][0];
    assert_eq!(product["output"], 2 * 8 * 2080, "two macro blocks of eight tiles");
    assert_eq!((product["dst"].clone(), product["dst_capacity"].clone()), (4.into(), 8.into()));
    let text = tilework(&["show", &netlist("base.yaml"), "--memory"]).code(0).stdout;
    assert!(text.contains("device 0 DRAM channel 0: ") && text.contains("dst 4 of 8 tiles"), "{text}");
}

#[test]
fn options_of_other_files_and_missing_files_are_refused() {
    tilework(&["show", &netlist("base.yaml"), "--mlir"]).code(2);
    tilework(&["check", "nowhere.yaml"]).code(2);
    let model = repository().join("crates/model/tests/data/0.1.0/atan2.ttnn").display().to_string();
    let no = tilework(&["check", &model]).code(2);
    assert!(no.stderr.contains("--expect DIR"), "{}", no.stderr);
}

/// A wrong netlist is a malformed file, whatever the command.
#[test]
fn a_wrong_netlist_has_one_exit_code() {
    let dir = folder();
    let (file, out) = (broken(dir.path()), dir.path().join("out").display().to_string());
    std::fs::write(dir.path().join("empty.yaml"), "").unwrap();
    std::fs::write(dir.path().join("syntax.yaml"), "a: [").unwrap();
    let other = |name: &str| dir.path().join(name).display().to_string();
    for file in [file, other("empty.yaml"), other("syntax.yaml")] {
        let expect = ["check", &file, "--expect", &out];
        for args in [&["check", &file][..], &["show", &file], &["run", &file, "--out", &out], &expect] {
            let report = tilework(&[args, &["--report", "json"]].concat()).code(2).json();
            assert_eq!(
                (&report["status"], &report["error"]["class"]),
                (&"refused".into(), &"refused".into()),
                "{args:?}"
            );
        }
    }
    assert!(!dir.path().join("out").exists());
}

#[test]
fn check_and_run_judge_an_architecture_alike() {
    let dir = folder();
    let out = dir.path().join("out").display().to_string();
    let ring = repository().join("crates/buda/tests/data/ring.yaml").display().to_string();
    let run = ["run", &ring, "--out", &out, "--stimulus", "index", "--program", "once"];
    for arch in ["grayskull", "wormhole", "wormhole_b0", "blackhole"] {
        let checked = tilework(&["check", &ring, "--arch", arch]);
        let ran = tilework(&[&run[..], &["--arch", arch]].concat());
        let shown = tilework(&["show", &ring, "--arch", arch]);
        let expected = if arch == "blackhole" { 0 } else { 2 };
        assert_eq!((checked.code, ran.code, shown.code), (expected, expected, expected), "{arch}: {}", ran.stderr);
        if arch != "blackhole" {
            ran.says(&format!("error[N0113]: the netlist is not written for {arch}"));
        }
    }
}

#[test]
fn options_that_others_make_idle_are_refused() {
    let (file, out) = (netlist("base.yaml"), folder());
    let out = out.path().display().to_string();
    let run = |more: &[&str]| tilework(&[&["run", &file, "--out", &out], more].concat()).code(2);
    run(&["--seed", "3", "--stimulus", "index"]).says("--seed is for random numbers; --stimulus index has none");
    for option in ["--atol", "--rtol", "--pcc", "--max-error"] {
        let needs = format!("{option} needs --expect DIR: without it a");
        tilework(&["check", &file, option, "0.1"]).code(2).says(&needs);
        let needs = format!("{option} needs --expect DIR or --explore N: without them a kernel program");
        let ring = common::example("ring").display().to_string();
        tilework(&["check", &ring, option, "0.1"]).code(2).says(&needs);
    }
    let model = |name: &str| repository().join("crates/model/tests/data").join(name).display().to_string();
    for file in [file.clone(), model("0.1.0/atan2.ttnn")] {
        tilework(&["show", &file, "--ops", "--report", "json"]).code(2).says("--ops is for people");
    }
    for file in [model("0.1.0/system.ttsys"), model("flatc/all_ttm.ttm")] {
        tilework(&["show", &file, "--ops"]).code(2).says("--ops is for TTNN programs (.ttnn)");
    }
}
