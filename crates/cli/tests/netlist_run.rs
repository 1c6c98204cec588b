//! Buda netlists on the command line: run, and check against expected arrays.

use crate::common;
use common::{Ended, folder, read_npy, repository, tilework, write_npy};
use serde_json::{Value, json};
use std::path::Path;

fn netlist(name: &str) -> String {
    repository().join("crates/buda/tests/data").join(name).display().to_string()
}

/// Entries of one tile, each of one number.
fn write_entries(folder: &Path, queue: &str, entries: &[f32]) {
    let values: Vec<f32> = entries.iter().flat_map(|entry| [*entry; 1024]).collect();
    write_npy(&folder.join(format!("{queue}.npy")), &[entries.len() as u64, 1, 32, 32], &values);
}

fn read_entries(path: &Path) -> Vec<f32> {
    let (shape, values) = read_npy::<f32>(path);
    assert_eq!(shape[1..], [1, 32, 32]);
    assert!(values.chunks(1024).all(|entry| entry.iter().all(|v| *v == entry[0])));
    values.chunks(1024).map(|entry| entry[0]).collect()
}

fn run(folder: &Path, name: &str, more: &[&str]) -> Ended {
    let (file, out) = (netlist(name), folder.join("out").display().to_string());
    tilework(&[&["run", &file, "--out", &out, "--report", "json"], more].concat())
}

fn input(folder: &Path, queue: &str) -> String {
    format!("{queue}={}", folder.join(format!("{queue}.npy")).display())
}

#[test]
fn a_run_writes_queues_and_reports_pointers() {
    let dir = folder();
    write_entries(dir.path(), "in", &[1.0, 2.0, 3.0, 4.0]);
    let given = input(dir.path(), "in");
    let ended = run(dir.path(), "ring.yaml", &["--input", &given, "--program", "thrice", "--program", "once"]).code(0);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["executes"], 4);
    // once has static variables of its own: it reads the first entry, and sets the
    // pointer behind it.
    let queues = json!({"in": {"type": "queue", "rd": 1, "wr": 4}, "out": {"type": "queue", "rd": 0, "wr": 4}});
    assert_eq!(report["queues"], queues);
    assert_eq!(report["programs"][0]["rd"], json!({"in": 3, "out": 0}));
    assert_eq!(report["loader"]["hits"], 4);
    assert_eq!(report["outputs"]["out"]["shape"], json!([4, 1, 32, 32]));
    assert_eq!(read_entries(&dir.path().join("out/out.npy")), [1.0, 2.0, 3.0, 1.0]);
    // All programs, of which the last one is wrong.
    let all = run(dir.path(), "ring.yaml", &["--input", &given, "--pop-outputs"]);
    all.code(1).says("queue in: -1 is no pointer");
}

#[test]
fn the_index_stimulus_is_a_formula_of_element_entry_and_queue() {
    let dir = folder();
    run(dir.path(), "constants.yaml", &["--stimulus", "index", "--program", "prologue"]).code(0);
    let (shape, values) = read_npy::<f32>(&dir.path().join("out/out.npy"));
    assert_eq!(shape, [4, 1, 32, 32]);
    let formula = |i: usize, e: usize, k: usize| ((37 * i + 11 * e + 7 * k) % 64 + 1) as f32 / 64.0;
    // Entry 1 of the constant, which is the second queue.
    let wanted: Vec<f32> = (0..4096).map(|n| formula(n % 1024, n / 1024, 0) + formula(n % 1024, 1, 1)).collect();
    assert_eq!(values, wanted);
    let none = run(dir.path(), "constants.yaml", &["--program", "prologue"]);
    none.says("queue in: the netlist says nothing of its input; give --input or --stimulus index").code(2);
}

#[test]
fn three_threads_write_what_one_writes() {
    let dir = folder();
    write_entries(dir.path(), "in", &(0..20).map(|i| i as f32).collect::<Vec<_>>());
    write_entries(dir.path(), "weights", &[0.5]);
    write_entries(dir.path(), "constant", &[2.0]);
    let given = ["in", "weights", "constant"].map(|queue| input(dir.path(), queue));
    let inputs: Vec<&str> = given.iter().flat_map(|given| ["--input", given]).collect();
    let mut outputs = Vec::new();
    for mode in ["sequential", "concurrent"] {
        let more = [
            &inputs[..],
            &["--program", "run:n=3", "--program", "run", "--param", "$n=2", "--mode", mode, "--pop-outputs"],
        ]
        .concat();
        let report: Value = serde_json::from_str(&run(dir.path(), "stages.yaml", &more).code(0).stdout).unwrap();
        assert_eq!((&report["mode"], &report["executes"]), (&json!(mode), &json!(10)));
        outputs.push(read_entries(&dir.path().join("out/out.npy")));
    }
    let wanted: Vec<f32> = (0..10).map(|i| (i as f32 + 0.5 - 2.0).powi(3)).collect();
    assert_eq!(outputs, [wanted.clone(), wanted]);
}

#[test]
fn a_run_that_cannot_go_on_says_why() {
    let dir = folder();
    write_entries(dir.path(), "in", &[1.0; 3]);
    let given = input(dir.path(), "in");
    let few = |mode| {
        let more = ["--input", &given, "--default-param", "5", "--mode", mode, "--pop-outputs"];
        run(dir.path(), "full.yaml", &more).code(1)
    };
    few("sequential").says("epoch g, op copy, input 1 of 1, waits for entry 3 of queue in (rd 3, wr 3, 8 entries)");
    few("concurrent").says("the push thread has nothing left to do").says("[TimeoutError (2)]");
    let three = ["--input", &given, "--param", "n=3"];
    run(dir.path(), "full.yaml", &three).code(1).says("waits for space in queue out (rd 0, wr 2, 2 entries)");
    let popped = run(dir.path(), "full.yaml", &[&three[..], &["--pop-outputs"]].concat()).code(0);
    let report: Value = serde_json::from_str(&popped.stdout).unwrap();
    assert_eq!(report["queues"]["out"], json!({"type": "queue", "rd": 2, "wr": 3}));
    assert_eq!(report["outputs"]["out"]["shape"][0], 3);
    let golden = run(dir.path(), "full.yaml", &["--input", &given, "--param", "n=3", "--golden-compat"]).code(0);
    let report: Value = serde_json::from_str(&golden.stdout).unwrap();
    assert_eq!(report["queues"]["out"], json!({"type": "queue", "rd": 0, "wr": 3}));
    assert_eq!(report["outputs"]["out"]["shape"][0], 2, "the third has overwritten the first");
}

/// By instructions and operations of a call, or by the clock, with one thread or three.
#[test]
fn a_run_without_end_is_ended() {
    let dir = folder();
    write_entries(dir.path(), "in", &[1.0; 4]);
    let given = input(dir.path(), "in");
    let ended = |more: &[&str]| {
        let started = std::time::Instant::now();
        let run = run(dir.path(), "control.yaml", &[&["--input", &given], more].concat()).code(1);
        assert!(started.elapsed().as_secs() < 60, "{more:?}");
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        (report["error"].clone(), run)
    };
    for mode in ["sequential", "concurrent"] {
        let (error, run) = ended(&["--program", "for_ever", "--max-steps", "1000", "--mode", mode]);
        assert_eq!((&error["class"], &error["instructions"]), (&json!("budget"), &json!(1000)), "{mode}");
        run.says("--max-steps sets the limit");
        let (error, run) =
            ended(&["--program", "for_ever", "--max-steps", "1000000000000", "--timeout", "1", "--mode", mode]);
        assert_eq!((&error["class"], &error["code"], &error["seconds"]), (&json!("timeout"), &json!(2), &json!(1.0)));
        run.says("the run has not ended within 1 s");
    }
    // There is a default, too.
    let help = tilework(&["run", &netlist("control.yaml"), "--help"]).code(0).stdout;
    let option = help.split("--max-steps").nth(1).expect("the option is in the help");
    assert!(option.split("\n      --").next().unwrap().contains("[default: 10000000]"), "{option}");
    let (error, _) = ended(&["--program", "nested:n=3", "--max-steps", "11"]);
    assert_eq!(error["class"], "budget");
}

#[test]
fn formats_count_unless_arithmetic_is_exact() {
    let dir = folder();
    write_entries(dir.path(), "in", &[257.0, 1.0]);
    let text = std::fs::read_to_string(netlist("full.yaml")).unwrap().replace("acc_df: Float32", "acc_df: Float16_b");
    let file = dir.path().join("narrow.yaml");
    let run_with = |text: &str, more: &[&str]| {
        std::fs::write(&file, text).unwrap();
        let out = dir.path().join("out").display().to_string();
        let given = input(dir.path(), "in");
        let file = file.display().to_string();
        let arguments = ["run", &file, "--input", &given, "--param", "n=2", "--out", &out, "--report", "json"];
        let ended = tilework(&[&arguments[..], more].concat()).code(0);
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        (read_entries(&dir.path().join("out/out.npy")), report)
    };
    let (device, report) = run_with(&text, &[]);
    assert_eq!((device, &report["precision"]), (vec![258.0, 1.0], &json!("device")));
    assert_eq!(report["only_costed"], Value::Null);
    let (exact, report) = run_with(&text, &["--exact"]);
    assert_eq!((exact, &report["precision"]), (vec![257.0, 1.0], &json!("exact")));
    let function = text.replace("type: nop", "type: exp").replace(
        "mblock: [1, 1], ublock: [1, 1]}\n\nprograms",
        "mblock: [1, 1], ublock: [1, 1], attributes: {approximate_mode: true}}\n\nprograms",
    );
    let (_, report) = run_with(&function, &[]);
    assert_eq!(report["only_costed"], json!({"copy": ["approximate_mode"]}));
    // As check --expect does.
    write_entries(dir.path(), "out", &[257.0, 1.0]);
    let expect = dir.path().display().to_string();
    std::fs::write(&file, &text).unwrap();
    let check = |more: &[&str]| {
        let file = file.display().to_string();
        let arguments = ["check", &file, "--expect", &expect, "--param", "n=2", "--max-error", "0"];
        tilework(&[&arguments[..], more].concat())
    };
    check(&["--exact"]).code(0);
    check(&[]).code(1);
    tilework(&["check", &file.display().to_string(), "--exact"]).code(2).says("--exact needs --expect DIR");
}

#[test]
fn wrong_use_is_refused_before_anything_runs() {
    let dir = folder();
    write_entries(dir.path(), "in", &[1.0; 3]);
    write_npy(&dir.path().join("flat.npy"), &[3, 1024], &[0f32; 3072]);
    let given = input(dir.path(), "in");
    let flat = format!("in={}", dir.path().join("flat.npy").display());
    let nowhere = given.replace("in=", "nowhere=");
    for (more, says) in [
        (&["--input", &given][..], "program run needs $n: give --param NAME=V for each, or --default-param V for all"),
        (&["--input", &given, "--param", "m=1", "--default-param", "1"], "--param $m: no program that runs has such a"),
        (&["--input", &given, "--program", "walk"], "--program walk: the netlist has run"),
        (&["--input", &nowhere, "--default-param", "1"], "there is no queue nowhere; the host fills in"),
        (&["--input", &flat, "--default-param", "1"], "the array is (3, 1024); the queue takes (entries, 1, 32, 32)"),
        (&["--input", &given, "--default-param", "1", "--board", "p100"], "--board is for kernel programs (.toml)"),
        (&["--input", &given, "--default-param", "1", "--engine", "device"], "netlists run in host arithmetic"),
        (&["--input", &given, "--opt-level", "5"], "5 is not in 0..=4"),
        (
            &["--input", &given, "--default-param", "1", "--trace", "x.bin"],
            "the ending .bin names no form of a timeline",
        ),
    ] {
        run(dir.path(), "full.yaml", more).code(2).says(says);
    }
    let toml = repository().join("examples/ring/program.toml").display().to_string();
    tilework(&["run", &toml, "--out", "out", "--stimulus", "index"]).code(2).says("--stimulus is for Buda netlists");
    assert!(!dir.path().join("out").exists());
}

#[test]
fn expected_queues_are_compared() {
    let dir = folder();
    write_entries(dir.path(), "in", &[1.0, 2.0, 3.0, 4.0]);
    write_entries(dir.path(), "constant", &[7.0, 10.0]);
    let expect = dir.path().display().to_string();
    let check = || tilework(&["check", &netlist("constants.yaml"), "--expect", &expect, "--program", "stride"]);
    check().code(2).says("has none of out.npy: nothing to compare");
    let only = tilework(&["check", &netlist("constants.yaml"), "--program", "stride"]).code(2);
    only.says("--program needs --expect DIR");
    write_entries(dir.path(), "out", &[11.0, 12.0, 13.0, 14.0]);
    assert!(check().code(0).stdout.starts_with("ok   out Float32: PCC"));
    write_entries(dir.path(), "out", &[11.0, 12.0, 13.5, 14.0]);
    let wrong = check().code(1).says("the queues are not as expected");
    assert!(wrong.stdout.starts_with("FAIL out Float32"), "{}", wrong.stdout);
}

#[test]
fn a_timeline_shows_epochs_caches_and_queues() {
    let dir = folder();
    let trace = dir.path().join("run.txt");
    let more = ["--stimulus", "index", "--program", "once", "--trace", &trace.display().to_string()];
    run(dir.path(), "ring.yaml", &more).code(0);
    let first = std::fs::read_to_string(&trace).unwrap();
    for part in ["binary cache", "epochs", "one", "queues", "entries"] {
        assert!(first.contains(part), "{part}:\n{first}");
    }
    run(dir.path(), "ring.yaml", &more).code(0);
    assert_eq!(first, std::fs::read_to_string(&trace).unwrap());
}

/// The example against sums in double precision. Whole numbers, so in exact arithmetic nothing is
/// rounded; a device's registers of 16 bits would not hold the sums.
#[test]
fn the_perceptron_is_two_layers() {
    let dir = folder();
    let number = |k: usize, i: usize| ((i * 37 + k * 7) % 9) as f32 - 4.0;
    let (x, w1): (Vec<f32>, Vec<f32>) =
        ((0..8 * 64 * 128).map(|i| number(0, i)).collect(), (0..128 * 256).map(|i| number(1, i)).collect());
    let (b1, w2): (Vec<f32>, Vec<f32>) =
        ((0..32 * 256).map(|i| number(2, i)).collect(), (0..256 * 64).map(|i| number(3, i)).collect());
    write_npy(&dir.path().join("x.npy"), &[8, 1, 64, 128], &x);
    write_npy(&dir.path().join("w1.npy"), &[1, 1, 128, 256], &w1);
    write_npy(&dir.path().join("b1.npy"), &[1, 1, 32, 256], &b1);
    write_npy(&dir.path().join("w2.npy"), &[1, 1, 256, 64], &w2);
    let example = repository().join("examples/perceptron/netlist.yaml").display().to_string();
    let out = dir.path().join("out").display().to_string();
    let inputs: Vec<String> = ["x", "w1", "b1", "w2"].map(|queue| input(dir.path(), queue)).to_vec();
    let mut arguments = vec!["run", &example, "--out", &out, "--exact"];
    arguments.extend(inputs.iter().flat_map(|given| ["--input", given]));
    tilework(&arguments).code(0);
    let (shape, y) = read_npy::<f32>(&dir.path().join("out/y.npy"));
    assert_eq!(shape, [8, 1, 64, 64]);
    for (row, x) in x.chunks(128).enumerate() {
        let hidden = (0..256).map(|c| {
            let sum: f64 = (0..128).map(|k| f64::from(x[k]) * f64::from(w1[k * 256 + c])).sum();
            (sum + f64::from(b1[c])).max(0.0)
        });
        let hidden: Vec<f64> = hidden.collect();
        for column in 0..64 {
            let sum: f64 = (0..256).map(|k| hidden[k] * f64::from(w2[k * 64 + column])).sum();
            assert_eq!(f64::from(y[row * 64 + column]), sum, "row {row} of all entries, column {column}");
        }
    }
}
