//! Compiled models on the command line, with real files of the compiler that the
//! reader's tests keep.

use crate::common;
use common::{folder, read_npy, repository, tilework, write_npy};
use serde_json::Value;
use std::path::Path;

fn model(name: &str) -> String {
    repository().join("crates/model/tests/data").join(name).display().to_string()
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).display().to_string()
}

/// The nearest bfloat16, ties to even.
fn bf16(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits((bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF_0000)
}

/// Two inputs of 32x32 and what atan2 makes of them.
fn atan2_case(folder: &Path) {
    let wave = |n: usize, step: f32| bf16((n as f32 * step).sin() * 3.0);
    let y: Vec<f32> = (0..1024).map(|n| wave(n, 0.37)).collect();
    let x: Vec<f32> = (0..1024).map(|n| wave(n, 0.61)).collect();
    let out: Vec<f32> = y.iter().zip(&x).map(|(y, x)| bf16(f64::from(*y).atan2(f64::from(*x)) as f32)).collect();
    for (name, values) in [("in0.npy", &y), ("in1.npy", &x), ("out0.npy", &out)] {
        write_npy(&folder.join(name), &[32, 32], values);
    }
}

#[test]
fn a_model_is_right_and_what_is_wrong_is_found() {
    let dir = folder();
    atan2_case(dir.path());
    let expect = dir.path().display().to_string();
    for version in ["0.1.0", "0.1.3"] {
        let program = model(&format!("{version}/atan2.ttnn"));
        let good = tilework(&["check", &program, "--expect", &expect]).code(0);
        assert!(good.stdout.starts_with("ok   out0 bf16: PCC"), "{}", good.stdout);
    }
    let (_, mut out) = read_npy::<f32>(&dir.path().join("out0.npy"));
    out[33] += 1.0;
    write_npy(&dir.path().join("out0.npy"), &[32, 32], &out);
    let bad = tilework(&["check", &model("0.1.0/atan2.ttnn"), "--expect", &expect, "--report", "json"]).code(1);
    let report: Value = serde_json::from_str(&bad.stdout).expect("one JSON object");
    assert_eq!(report["passed"], false);
    assert_eq!(report["outputs"][0]["first_difference"], serde_json::json!([1, 1]));
    assert!(bad.stderr.contains("not as expected"), "{}", bad.stderr);
}

#[test]
fn a_run_writes_outputs_reports_and_intermediate_tensors() {
    let (dir, program) = (folder(), model("0.1.0/swiglu.ttnn"));
    let shown: Value = serde_json::from_str(&tilework(&["show", &program, "--json"]).code(0).stdout).expect("JSON");
    let inputs = shown["contents"]["programs"][0]["inputs"].as_array().expect("inputs").len();
    let mut outcomes = Vec::new();
    for name in ["a", "b"] {
        let out = path(dir.path(), name);
        let mut args = vec!["run".to_owned(), program.clone(), "--out".into(), out];
        for i in 0..inputs {
            args.extend(["--input".into(), format!("{i}=random:{}", 7 + i)]);
        }
        args.extend(["--report", "json", "--profile", "--dump-op", "all"].map(str::to_owned));
        let report: Value = serde_json::from_str(&tilework(&args).code(0).stdout).expect("one JSON object");
        assert_eq!((&report["engine"], report.get("not_chip")), (&"chip".into(), None), "{report}");
        let operations = report["operations"].as_u64().expect("a count") as usize;
        assert_eq!(report["profile"]["operations"].as_array().expect("times").len(), operations);
        outcomes.push((report["outputs"]["out0"]["sha256"].clone(), report["peak_bytes"].clone()));
    }
    assert_eq!(outcomes[0], outcomes[1], "the same inputs give the same");
    let dumped = std::fs::read_dir(dir.path().join("a")).expect("the folder").count();
    assert!(dumped > 2, "outputs and intermediate tensors: {dumped}");
}

#[test]
fn the_first_operation_that_leaves_a_reference_is_named() {
    let (dir, program) = (folder(), model("0.1.0/atan2.ttnn"));
    atan2_case(dir.path());
    let (expect, good) = (dir.path().display().to_string(), path(dir.path(), "good"));
    let inputs = ["0", "1"].map(|i| format!("{i}={}", path(dir.path(), &format!("in{i}.npy"))));
    tilework(&["run", &program, "--input", &inputs[0], "--input", &inputs[1], "--out", &good, "--dump-op", "all"])
        .code(0);
    let bisect = || tilework(&["check", &program, "--expect", &expect, "--bisect", &good]);
    assert!(bisect().code(0).stdout.contains("no operation leaves the reference"));
    let third = std::fs::read_dir(&good)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").path())
        .find(|file| file.display().to_string().contains("EltwiseBinaryComposite"))
        .expect("the operation's result");
    write_npy(&third, &[32, 32], &[9.0_f32; 1024]);
    let found = bisect().code(1);
    assert!(found.stderr.contains("EltwiseBinaryComposite") && found.stderr.contains("leaves"), "{}", found.stderr);
}

/// Two products in bfloat16: their error is 2.1e-3 of the range with the rounding between them,
/// 9.9e-4 without.
#[test]
fn what_only_rounding_makes_different_passes_and_is_told() {
    let expect = repository().join("crates/engine/tests/data/0.1.0-count").display().to_string();
    let program = model("0.1.0/count.ttnn");
    let args = |more: &[&str]| {
        let all = ["check", &program, "--expect", &expect, "--max-error", "1.5e-3", "--report", "json"];
        all.iter().chain(more).map(|&part| part.to_owned()).collect::<Vec<_>>()
    };
    let told: Value = serde_json::from_str(&tilework(&args(&[])).code(0).stdout).expect("one JSON object");
    assert_eq!((&told["rounding"], &told["passed"]), (&"ends".into(), &true.into()));
    assert_eq!(told["rounded_after_operations"][0]["passed"], false);
    tilework(&args(&["--rounding", "operations"])).code(1);
    tilework(&args(&["--rounding", "ends"])).code(0);
    let chip: Value = serde_json::from_str(&tilework(&args(&["--engine", "chip"])).code(0).stdout).expect("JSON");
    assert_eq!((&chip["rounding"], &chip["passed"]), (&"ends".into(), &true.into()));
    assert_eq!(chip["rounded_after_operations"][0]["passed"], false);
}

#[test]
fn show_tells_programs_text_and_machine() {
    let shown = tilework(&["show", &model("0.1.0/while.ttnn"), "--ops"]).code(0).stdout;
    for part in ["jax-tt-plugin 0.1.0", "program 0", "WhileLoopOp", "system: 1 chips", "Blackhole"] {
        assert!(shown.contains(part), "{part} is not in\n{shown}");
    }
    let memory = tilework(&["show", &model("0.1.0/while.ttnn"), "--memory", "--board", "p150"]).code(0).stdout;
    assert!(memory.contains("on a p150") && memory.contains("peak of DRAM: "), "{memory}");
    let memory = tilework(&["show", &model("0.1.0/atan2.ttnn"), "--memory", "--report", "json"]).code(0).json();
    let [dram, l1] = [0, 1].map(|i| &memory["programs"][0]["peaks"][i]);
    assert!(dram["memory"] == "DRAM" && dram["peak"].as_u64() > Some(2048) && l1["peak"] == 0, "{memory}");
    assert!(tilework(&["show", &model("0.1.0/while.ttnn"), "--mlir"]).code(0).stdout.contains("module"));
    assert!(tilework(&["show", &model("0.1.0/system.ttsys")]).code(0).stdout.contains("system description"));
}

#[test]
fn wrong_use_is_told() {
    let (dir, program) = (folder(), model("0.1.0/atan2.ttnn"));
    let out = path(dir.path(), "out");
    let run = |more: &[&str]| {
        let mut args = vec!["run", &program, "--out", &out];
        args.extend(more);
        tilework(&args).code(2).stderr
    };
    let both = ["--input", "0=random:1", "--input", "1=random:2"];
    let with = |more: &[&str]| run(&[&both[..], more].concat());
    assert!(run(&[]).contains("not given: 0"));
    assert!(run(&["--input", "7=random:1"]).contains("no input 7"));
    assert!(run(&["--input", "nothing=random:1"]).contains("no input named \"nothing\""));
    assert!(with(&["--engine", "native", "--trace", "t.json"]).contains("--trace is for --engine chip"));
    assert!(with(&["--engine", "native", "--strict"]).contains("--strict is for --engine chip"));
    let strict = ["run", &model("0.1.3/conv_transposed.ttnn"), "--out", &out, "--engine", "chip", "--strict"];
    let strict = tilework(&[&strict[..], &both].concat()).code(2).stderr;
    assert!(strict.contains("the chip has no program for") && strict.contains("ReshapeOp"), "{strict}");
    assert!(with(&["--entry", "5"]).contains("the file has the programs 0"));
    assert!(with(&["--dump-op", "99"]).contains("operations"));
    assert!(with(&["--input", "0=random:3"]).contains("given twice"));
    let kernel = repository().join("examples/ring/program.toml").display().to_string();
    let native = |options: &[&str]| with(&[&["--engine", "native"], options].concat());
    assert!(native(&["--compare", "native"]).contains("--compare is for --engine chip"));
    assert!(native(&["--checks", "races"]).contains("--checks is for --engine chip"));
    assert!(native(&["--allow", "l1-null"]).contains("--allow is for --engine chip"));
    assert!(with(&["--engine", "chip", "--allow", "l1-null"]).contains("--allow has no effect without --checks"));
    let check = ["check", &program, "--expect", &out, "--board", "p150"];
    assert!(tilework(&check).code(2).stderr.contains("--board is for --engine chip"));
    let refused = tilework(&["run", &kernel, "--out", &out, "--profile"]).code(2).stderr;
    assert!(refused.contains("--profile is for compiled models"), "{refused}");

    let cut = dir.path().join("cut.ttnn");
    std::fs::write(&cut, &std::fs::read(&program).expect("the model")[..4000]).expect("a part of it");
    let refused = tilework(&["show", &cut.display().to_string()]).code(2).stderr;
    assert!(refused.contains("cut.ttnn"), "{refused}");
    let nowhere = tilework(&["check", &program, "--expect", &out]).code(2).stderr;
    assert!(nowhere.contains("in0.npy"), "{nowhere}");
}

/// Without `--engine` the chip runs what it has programs and memory for, and the report says what
/// else is native for; options for one engine choose it.
#[test]
fn the_engine_follows_from_the_program() {
    let out = common::folder();
    let folder = path(out.path(), "out");
    let run = |file: &str, inputs: usize, more: &[&str]| {
        let inputs: Vec<String> = (0..inputs).map(|i| format!("{i}=random:{}", 3 + i)).collect();
        let file = model(file);
        let mut args = vec!["run", &file, "--out", &folder];
        args.extend(inputs.iter().flat_map(|input| ["--input", input]).chain(more.iter().copied()));
        tilework(&args).code(0)
    };
    let json = ["--report", "json"];
    assert_eq!(run("0.1.0/atan2.ttnn", 2, &json).json()["engine"], "chip");
    assert!(run("0.1.0/atan2.ttnn", 2, &[]).stdout.contains(" on the chip\n"));
    assert!(run("0.1.0/atan2.ttnn", 2, &["--rounding", "ends"]).stdout.contains(" on the chip\n"));
    // Pages that its tensors have in L1 are not those that they have in DRAM.
    let file = "0.1.3/conv_transposed.ttnn";
    let (text, report) = (run(file, 2, &[]).stdout, run(file, 2, &json).json());
    assert!(text.contains("on the native engine\n  not on the chip  ") && text.contains("ReshapeOp"), "{text}");
    assert_eq!(report["engine"], "native");
    assert!(report["not_chip"][0].as_str().is_some_and(|why| why.contains("pages of 480 bytes")), "{report}");
    for option in [["--board", "p150"], ["--dispatch", "slow"], ["--threads", "1"], ["--compare", "native"]] {
        let report = run(file, 2, &[&json[..], &option].concat()).json();
        assert_eq!(report["engine"], "chip");
        assert!(report["chip"]["host"].as_u64() > Some(0), "{report}");
    }
}

/// The example's model on the chip: products, functions, a softmax and layout changes, all by
/// programs of the chip but what is named.
#[test]
fn a_model_runs_on_the_chip() {
    let folder = repository().join("examples/mlp");
    let (file, expect) = (folder.join("mlp.ttnn").display().to_string(), folder.display().to_string());
    let checked = tilework(&["check", &file, "--expect", &expect, "--engine", "chip"]).code(0).stdout;
    assert!(checked.starts_with("ok   out0"), "{checked}");
    let out = common::folder();
    let mut args = vec!["run".to_owned(), file, "--engine".to_owned(), "chip".to_owned(), "--profile".to_owned()];
    for i in 0..5 {
        args.extend(["--input".to_owned(), format!("{i}={}", folder.join(format!("in{i}.npy")).display())]);
    }
    args.extend(["--out".to_owned(), path(out.path(), "out"), "--report".to_owned(), "json".to_owned()]);
    let trace = path(out.path(), "timeline.txt");
    args.extend(["--trace".to_owned(), trace.clone()]);
    let run = |threads: &str, more: &[&str]| {
        let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
        args.extend(["--threads", threads]);
        args.extend(more);
        let report: Value = serde_json::from_str(&tilework(&args).code(0).stdout).expect("one JSON object");
        (report, read_npy::<f32>(&out.path().join("out/out0.npy")))
    };
    let ((one, first), (two, second)) = (run("1", &[]), run("2", &[]));
    assert_eq!(first, second);
    assert_eq!(one["engine"], "chip");
    assert_eq!(one["chip"], two["chip"]);
    let (checked, alike) = run("1", &["--checks", "warn,races"]);
    assert_eq!((&checked["chip"], &alike), (&one["chip"], &first), "whoever looks changes nothing");
    let checks = &checked["checks"];
    assert_eq!((&checks["level"], &checks["races"]), (&"warn".into(), &true.into()));
    assert!(checks["findings"].is_array() && checks.get("ended_at").is_none(), "{checks}");
    assert!(one.get("checks").is_none(), "{one}");
    let chip = &one["chip"];
    assert_eq!(chip["host"], 0, "{}", chip["by_host"]);
    assert!(
        chip["program_cycles"].as_u64().unwrap() > 1000 && chip["cycles"].as_u64() > chip["program_cycles"].as_u64()
    );
    let linear = chip["operations"].as_array().unwrap().iter().find(|op| op["operation"] == 7).unwrap();
    let part = linear["roofline"]["utilisation"].as_f64().unwrap();
    assert!(part > 0.0 && part < 1.0 && linear["roofline"]["bound"] == "dram", "{linear}");
    let timeline = std::fs::read_to_string(&trace).expect("the timeline");
    assert!(
        timeline.contains("operations: ttnn.linear operation=\"0.7\"") && timeline.contains("mlp.py"),
        "{timeline}"
    );
    let matmuls = chip["operations"].as_array().unwrap().iter().filter(|op| op["programs"][0]["name"] == "matmul");
    assert!(matmuls.count() > 0, "{}", chip["operations"]);
}

/// Runs after the first find its programs, replay the file's traces, and give the same.
#[test]
fn a_model_runs_again_and_again() {
    let out = common::folder();
    let run = |more: &[&str]| {
        let (file, folder) = (model("0.1.3/trace.ttnn"), path(out.path(), "out"));
        let mut args = vec!["run", &file, "--input", "0=random:3", "--out", &folder, "--report", "json"];
        args.extend(more);
        let report: Value = serde_json::from_str(&tilework(&args).code(0).stdout).expect("one JSON object");
        (report, read_npy::<f32>(&out.path().join("out/out0.npy")))
    };
    let (once, first) = run(&["--engine", "chip"]);
    let (often, last) = run(&["--engine", "chip", "--repeat", "4"]);
    assert_eq!(first, last);
    assert!(once.get("repeat").is_none() && once["chip"]["traces"]["captured"] == 1, "{once}");
    let (repeat, traces) = (&often["repeat"], &often["chip"]["traces"]);
    assert_eq!((&repeat["runs"], &traces["captured"], &traces["replays"]), (&4.into(), &1.into(), &3.into()));
    assert!(repeat["steady_cycles"].as_u64() < repeat["first_cycles"].as_u64(), "{repeat}");
    assert_eq!(often["chip"]["cache_misses"], once["chip"]["cache_misses"]);
    let (slow, alike) = run(&["--engine", "chip", "--repeat", "4", "--dispatch", "slow", "--profile"]);
    assert_eq!((&slow["chip"]["traces"], &alike), (traces, &first));
    assert!(slow["chip"]["operations"][0]["cycles"].as_u64() > Some(0), "{slow}");
    let (native, _) = run(&["--repeat", "2", "--engine", "native"]);
    assert!(native["repeat"]["steady_seconds"].is_f64() && native["repeat"].get("steady_cycles").is_none(), "{native}");
}

/// No operation of the chip departs by itself, errors that add up are told with what was read, and
/// a reference that is wrong is found on the chip as well.
#[test]
fn the_chip_is_compared_operation_by_operation() {
    let folder = repository().join("examples/mlp");
    let (file, expect) = (folder.join("mlp.ttnn").display().to_string(), folder.display().to_string());
    let out = common::folder();
    let inputs: Vec<String> = (0..5).flat_map(|i| ["--input".to_owned(), format!("{i}={expect}/in{i}.npy")]).collect();
    let good = path(out.path(), "good");
    let run = |more: &[&str]| {
        let mut args = vec!["run", &file, "--out", &good, "--report", "json", "--engine", "chip"];
        args.extend(inputs.iter().map(String::as_str).chain(more.iter().copied()));
        tilework(&args)
    };
    for (with, inputs) in [("native", "own"), ("native-inputs", "native")] {
        let ran = run(&["--compare", with]);
        let report = ran.json();
        let (compare, made) = (&report["compare"], report["chip"]["chip"].as_u64());
        assert_eq!(compare["inputs"], inputs, "{compare}");
        assert!(made.is_some() && compare["compared"].as_u64() == made, "{report}");
        let departed = compare["departed"].as_u64().unwrap();
        assert!(departed == 0 || inputs == "own", "{compare}");
        assert_eq!(ran.code, i32::from(departed > 0), "{}", ran.stderr);
        assert_eq!(Path::new(&good).join("departure_chip.npy").is_file(), departed > 0);
    }
    run(&["--dump-op", "all"]).code(0);
    let bisect = || tilework(&["check", &file, "--expect", &expect, "--bisect", &good, "--engine", "chip"]);
    assert!(bisect().code(0).stdout.contains("no operation leaves the reference"));
    let linear = path(Path::new(&good), "p0_op0007_LinearOp_0.npy");
    let (shape, values) = read_npy::<f32>(Path::new(&linear));
    write_npy(Path::new(&linear), &shape, &vec![9.0_f32; values.len()]);
    let found = bisect().code(1);
    assert!(found.stderr.contains("operation 7, LinearOp") && found.stderr.contains("leaves"), "{}", found.stderr);
}
