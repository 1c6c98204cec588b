//! `tilework check --explore`: the same program under other schedules.

use crate::common;
use common::{example, example_input, folder, tilework};
use serde_json::json;

/// Two roles write the same pages, one adding 1 and the other 2: who comes last wins.
const TWO_WRITERS: &str = r#"
name = "two-writers"

[buffers.x]
use = "input"
dtype = "u32"
page_size = 512

[buffers.y]
use = "output"
like = "x"
page_size = 512

[buffers.slots]
use = "scratch"
dtype = "u8"
shape = [3, "x.page_size"]
page_size = 512
location = "l1"

[[roles]]
name = "one"
cores = [[1, 2]]
[roles.brisc]
elf = "prebuilt:increment"
args = ["x.addr", "y.addr", 0, 16, "x.page_size", 1, "slots.addr", 3]

[[roles]]
name = "two"
cores = [[12, 7]]
[roles.brisc]
elf = "prebuilt:increment"
args = ["x.addr", "y.addr", 0, 16, "x.page_size", 2, "slots.addr", 3]
"#;

#[test]
fn a_program_that_waits_for_all_it_needs_gives_the_same_under_every_schedule() {
    let program = example("ring").display().to_string();
    let ended = tilework(&["check", &program, "--explore", "3"]).code(0);
    assert_eq!(ended.stdout, "3 schedules from seed 1: the same outputs\n");
    let report = tilework(&["check", &program, "--explore", "1", "--explore-from", "9", "--report", "json"]);
    let explored = &report.code(0).json()["explored"];
    let none = json!({"schedules": 1, "asked": 1, "first_seed": 9, "deviating": 0, "deviations": []});
    assert_eq!(*explored, none);
}

#[test]
fn who_writes_last_depends_on_the_schedule_and_its_seed_repeats_it() {
    let folder = folder();
    let file = folder.path().join("program.toml");
    std::fs::write(&file, TWO_WRITERS).unwrap();
    let (file, x) = (file.display().to_string(), example_input("increment"));
    let check = |more: &[&str]| tilework(&[&["check", &file, "--input", &x, "--report", "json"], more].concat());
    let report = check(&["--explore", "4"]).code(1).json();
    assert_eq!(report["error"]["class"], "schedule");
    assert_eq!((&report["passed"], &report["explored"]["schedules"]), (&json!(false), &json!(4)));
    let first = &report["explored"]["deviations"][0];
    assert!(first["outputs"][0]["mismatches"].as_u64().unwrap() > 0, "{first}");
    let seed = first["seed"].to_string();
    let again = check(&["--explore", "1", "--explore-from", &seed]).code(1).json();
    assert_eq!(again["explored"]["deviations"][0], *first);
    // Its bundle repeats that schedule, and so does a run.
    let bundle = folder.path().join("schedule.zip");
    let kept = bundle.to_str().unwrap();
    let ended = check(&["--explore", "4", "--bundle", kept]).code(1);
    assert!(ended.stderr.contains(&format!("bundle: {kept} (tilework replay {kept} repeats")), "{}", ended.stderr);
    let (of_bundle, told) = (ended.json()["explored"]["deviations"][0].clone(), &ended.json()["bundle"]);
    assert_eq!((&of_bundle["seed"], &of_bundle["outputs"]), (&first["seed"], &first["outputs"]));
    assert_eq!(*told, json!(kept));
    let replayed = tilework(&["replay", kept, "--report", "json"]).code(0).json();
    assert_eq!((&replayed["end"], &replayed["same"]), (&json!("findings"), &json!(true)), "{replayed:#}");
    let out = folder.path().join("out").display().to_string();
    let run = |more: &[&str]| {
        tilework(&[&["run", &file, "--input", &x, "--out", &out, "--report", "json"], more].concat()).code(0).json()
    };
    let (late, usual) = (run(&["--schedule", &seed]), run(&[]));
    let of_replay = &replayed["report"]["outputs"]["y"]["sha256"];
    assert_eq!(late["outputs"]["y"]["sha256"], *of_replay);
    assert_eq!(late["cycles"], replayed["report"]["cycles"]);
    assert_ne!(usual["outputs"]["y"]["sha256"], *of_replay);
}

#[test]
fn a_seed_is_the_same_schedule_whatever_is_looked_for() {
    let folder = folder();
    let trace = folder.path().join("trace.txt").display().to_string();
    let ways: [&[&str]; 5] = [
        &["--checks", "off"],
        &["--checks", "warn"],
        &["--checks", "error,races,suspicious"],
        &["--checks", "off", "--trace", &trace],
        &["--checks", "off", "--threads", "2"],
    ];
    for (name, input) in [("increment", true), ("ring", false), ("pipeline", true)] {
        let (program, x) = (example(name).display().to_string(), example_input(name));
        let out = folder.path().join(name).display().to_string();
        for seed in ["1", "2", "77"] {
            let of = |way: &[&str]| {
                let input: &[&str] = if input { &["--input", &x] } else { &[] };
                let args = ["run", &program, "--out", &out, "--report", "json", "--schedule", seed];
                let report = tilework(&[&args[..], input, way].concat()).code(0).json();
                let keys = ["cycles", "program_cycles", "pcie_bytes", "noc_bytes", "records"];
                let mut same: Vec<_> = keys.iter().map(|key| report[*key].clone()).collect();
                same.extend([report["session"]["cycles"].clone(), report["outputs"].clone()]);
                same
            };
            let first = of(ways[0]);
            for way in &ways[1..] {
                assert_eq!(of(way), first, "{name}, seed {seed}, {way:?}");
            }
        }
    }
}

#[test]
fn wrong_uses_of_explore_are_refused() {
    let program = example("pipeline").display().to_string();
    for (options, said) in [
        (&["--explore", "0"][..], "0 is not in 1..=100000"),
        (&["--explore-from", "3"], "--explore <N>"),
        (&["--explore", "1", "--explore-from", "x"], "invalid digit"),
        (&["--bundle", "b.zip"], "--explore <N>"),
        (&["--atol", "1"], "--atol needs --expect DIR or --explore N"),
    ] {
        let ended = tilework(&[&["check", &program], options].concat()).code(2);
        assert!(ended.stderr.contains(said), "{options:?}: {}", ended.stderr);
    }
}
