//! One command line for all kinds of files: help by kind, options by kind, one form of reports.

use crate::common;
use common::{Ended, example, example_input, folder, repository, run_example, tilework};
use serde_json::{Value, json};
use std::path::Path;

fn data(path: &str) -> String {
    repository().join("crates").join(path).display().to_string()
}

fn model() -> String {
    data("model/tests/data/0.1.0/atan2.ttnn")
}

fn netlist() -> String {
    data("netlist/tests/data/base.yaml")
}

fn help(words: &str) -> String {
    let words: Vec<&str> = words.split_whitespace().collect();
    tilework(&words).code(0).stdout
}

/// The long options that a help text lists.
fn options(help: &str) -> Vec<&str> {
    let words = help.lines().filter(|line| line.trim_start().starts_with('-'));
    words.filter_map(|line| line.split_whitespace().find(|word| word.starts_with("--"))).collect()
}

#[test]
fn help_of_run_shows_one_kind_and_how_to_see_the_others() {
    let program = help("run --help");
    let listed = options(&program);
    assert!(listed.contains(&"--board") && listed.contains(&"--max-cycles") && listed.contains(&"--out"), "{program}");
    // Ten, those of the command queue: layout, transfers, kernels; and those of the simulated chip:
    // threads, coverage, bugs, times of cores, cycles.
    assert!(listed.len() <= 18, "a user of kernel programs sees few options: {listed:?}");
    for part in ["tilework help run model", "tilework help run netlist", "tilework run FILE --help"] {
        assert!(program.contains(part), "{part}:\n{program}");
    }
    let of_model = help("help run model");
    let of_netlist = help("help run netlist");
    for (text, has, lacks) in [
        (&program, "--dispatch", "--profile"),
        (&of_model, "--profile", "--dispatch-layout"),
        (&of_netlist, "--stimulus", "--dispatch"),
    ] {
        assert!(options(text).contains(&has) && !options(text).contains(&lacks), "{has}, {lacks}:\n{text}");
        assert!(options(text).contains(&"--input") && text.contains("Examples:"), "{text}");
    }
    assert_eq!(of_model, help("run --help model"));
    assert_eq!(of_model, help("run any.ttnn --help"));
    assert_eq!(of_netlist, help("run --help netlist"));
    assert_eq!(of_netlist, help("run any.yaml --help"));
    assert_eq!(program, help("run any.toml --help"));
    assert_eq!(program, help("help run"));
    assert!(help("run -h").lines().count() < program.lines().count(), "-h is short");
}

#[test]
fn help_of_check_and_show_is_by_kind_too() {
    for (words, has, lacks) in [
        ("check --help", "--board", "--bisect"),
        ("check --help model", "--bisect", "--arch"),
        ("check x.yaml --help", "--arch", "--bisect"),
        ("show --help", "--board", "--mlir"),
        ("show --help", "--memory", "--any-schema"),
        ("help show model", "--mlir", "--dispatch-layout"),
        ("show x.yaml --help", "--memory", "--mlir"),
    ] {
        let text = help(words);
        let listed = options(&text);
        assert!(listed.contains(&has) && !listed.contains(&lacks) && listed.contains(&"--report"), "{words}:\n{text}");
    }
}

#[test]
fn an_option_of_another_kind_is_refused_with_the_kind_that_it_is_for() {
    let (out, ring) = (folder(), example("ring").display().to_string());
    let out = out.path().display().to_string();
    let run = |file: &str, more: &[&str]| tilework(&[&["run", file, "--out", &out], more].concat()).code(2);
    let (programs, models, netlists) =
        ("kernel programs (.toml)", "compiled models (.ttnn, .ttm, .ttsys)", "Buda netlists (.yaml, .yml)");
    for (file, is, more, option, owners) in [
        (&ring, "a kernel program", &["--profile"][..], "--profile", models.to_owned()),
        (&ring, "a kernel program", &["--seed", "0"], "--seed", netlists.to_owned()),
        (&ring, "a kernel program", &["--rounding", "ends"], "--rounding", format!("{models} and {netlists}")),
        (&model(), "a compiled model", &["--core-timing"], "--core-timing", programs.to_owned()),
        (&model(), "a compiled model", &["--seed", "0"], "--seed", netlists.to_owned()),
        (&netlist(), "a Buda netlist", &["--core-timing"], "--core-timing", programs.to_owned()),
        (&netlist(), "a Buda netlist", &["--dump-op", "all"], "--dump-op", models.to_owned()),
    ] {
        run(file, more).says(&format!("error: {option} is for {owners}; {file} is {is}\n"));
        let report = run(file, &[more, &["--report", "json"]].concat()).json();
        assert_eq!((&report["status"], &report["error"]["option"]), (&json!("refused"), &json!(option)), "{report}");
    }
    tilework(&["show", &ring, "--mlir"]).code(2).says("--mlir is for compiled models");
    tilework(&["show", &netlist(), "--board", "p150"])
        .code(2)
        .says(&format!("--board is for {programs} and {models}; {} is a Buda netlist", netlist()));
    tilework(&["show", &netlist(), "--any-schema"]).code(2).says("--any-schema is for compiled models");
    // All kinds compare with expected arrays; here they are missing.
    tilework(&["check", &ring, "--expect", &out]).code(2).says("total.npy");
}

/// A report, after the checks that hold for all of them.
#[track_caller]
fn report(ended: &Ended, kind: &str, command: &str, status: &str) -> Value {
    let report = ended.json();
    let head = json!({"schema": 1, "kind": kind, "command": command, "status": status});
    for (key, value) in head.as_object().unwrap() {
        assert_eq!(&report[key], value, "{command}: {key}");
    }
    let code = ["ok", "failed", "refused"].iter().position(|known| *known == status).unwrap();
    assert_eq!(ended.code, i32::try_from(code).unwrap(), "{}", ended.stderr);
    assert_eq!(report.get("error").is_some(), status != "ok", "{command}");
    no_rust_names(&report, command);
    report
}

/// Keys whose values are texts, or names that users and formats have chosen.
const FREE: [&str; 18] = [
    "message",
    "name",
    "file",
    "program",
    "source",
    "debug_info",
    "loc_info",
    "loc",
    "df",
    "format",
    "what",
    "text",
    "input",
    "inputs",
    "value",
    "verdict",
    "netlist",
    "reason",
];

/// Keys are in snake case, and no value looks like a name of a Rust variant.
fn no_rust_names(value: &Value, at: &str) {
    let camel = |text: &str| {
        let letters: Vec<char> = text.chars().collect();
        let word = letters.iter().all(|c| c.is_ascii_alphanumeric() || *c == '_');
        let upper = letters.first().is_some_and(char::is_ascii_uppercase);
        word && upper && letters.iter().any(char::is_ascii_lowercase)
    };
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                let named_by_users = ["outputs", "queues", "rd", "unpushed"].iter().any(|users| at.ends_with(users));
                assert!(named_by_users || !key.chars().any(|c| c.is_ascii_uppercase() || c == '-'), "{at}.{key}");
                let free = FREE.contains(&key.as_str()) && !value.is_array() && !value.is_object();
                if !free {
                    no_rust_names(value, &format!("{at}.{key}"));
                }
            }
        }
        Value::Array(elements) => elements.iter().for_each(|value| no_rust_names(value, at)),
        Value::String(text) => assert!(!camel(text), "{at}: {text}"),
        _ => {}
    }
}

#[test]
fn kernel_programs_are_run_checked_and_shown_in_one_form() {
    let (out, program) = (folder(), example("ring").display().to_string());
    let kind = "kernel-program";
    let ran = report(&run_example("ring", out.path(), &["--report", "json"]), kind, "run", "ok");
    assert!(ran["cycles"].as_u64().unwrap() > 0 && ran["outputs"]["total"]["sha256"].is_string());
    let checked = report(&tilework(&["check", &program, "--board", "p150", "--report", "json"]), kind, "check", "ok");
    assert_eq!((&checked["board"], &checked["cores"]), (&json!("p150"), &json!(138)));
    let shown = report(&tilework(&["show", &program, "--json"]), kind, "show", "ok");
    let [kernel] = shown["roles"][0]["kernels"].as_array().unwrap().as_slice() else { panic!("{shown}") };
    assert_eq!((&kernel["core"], &kernel["elf"]), (&json!("brisc"), &json!("prebuilt:ring")));
    assert_eq!(kernel["arguments"].as_array().map(Vec::len), Some(118), "a list for each core");
    let text = tilework(&["check", &program]).code(0).stdout;
    assert_eq!(text, format!("ok   {program}: fits a p100: 1 role on 118 cores, 2 buffers\n"));
    let text = tilework(&["show", &program]).code(0).stdout;
    assert!(text.contains("output total u32 (118,): 8 x 64 bytes in DRAM\n"), "{text}");
    // The shape of this program's input is in its array.
    let increment = example("increment").display().to_string();
    tilework(&["check", &increment]).code(2).says("no array for input \"x\"");
    tilework(&["check", &increment, "--input", &example_input("increment")]).code(0);
}

#[test]
fn compiled_models_are_run_checked_and_shown_in_one_form() {
    let (dir, kind) = (folder(), "compiled-model");
    let out = dir.path().display().to_string();
    let inputs = ["--input", "0=random:1", "--input", "1=random:2"];
    let file = model();
    let run = |more: &[&str]| tilework(&[&["run", &file, "--out", &out, "--report", "json"], more].concat());
    let ran = report(&run(&[&inputs[..], &["--profile"]].concat()), kind, "run", "ok");
    assert_eq!(
        ran["profile"]["operations"][0]["kind"].as_str().map(str::to_lowercase),
        ran["profile"]["operations"][0]["kind"].as_str().map(str::to_owned)
    );
    report(&run(&[]), kind, "run", "refused");
    report(&tilework(&["check", &file, "--report", "json"]), kind, "check", "refused");
    for name in
        ["0.1.0/system.ttsys", "0.1.1/count.ttnn", "0.1.2/conv3d.ttnn", "flatc/all_ttm.ttm", "flatc/all_ttnn.ttnn"]
    {
        let file = data(&format!("model/tests/data/{name}"));
        report(&tilework(&["show", &file, "--report", "json"]), kind, "show", "ok");
    }
    let shown = report(&tilework(&["show", &file, "--json"]), kind, "show", "ok");
    assert_eq!(shown["contents"]["kind"], "ttnn");
    let input = &shown["contents"]["programs"][0]["inputs"][0]["desc"]["layout"]["memory_desc"]["data_type"];
    assert_eq!(input, "bf16");
    tilework(&["show", &file, "--mlir", "--report", "json"]).code(2).says("--mlir prints the compiler's text");
}

#[test]
fn netlists_are_run_checked_and_shown_in_one_form() {
    let (dir, kind) = (folder(), "netlist");
    let out = dir.path().display().to_string();
    let ring = data("buda/tests/data/ring.yaml");
    let run = |file: &str, more: &[&str]| tilework(&[&["run", file, "--out", &out, "--report", "json"], more].concat());
    report(&run(&ring, &["--stimulus", "index", "--program", "once"]), kind, "run", "ok");
    let stuck = run(
        &data("buda/tests/data/full.yaml"),
        &["--stimulus", "index", "--entries", "3", "--param", "n=5", "--pop-outputs"],
    );
    let error = report(&stuck, kind, "run", "failed")["error"].clone();
    assert_eq!((&error["class"], &error["code"]), (&json!("deadlock"), &json!(1)), "{error}");
    assert_eq!((&error["waiting"][0]["queue"], &error["waiting"][0]["rd"]), (&json!("in"), &json!(3)), "{error}");
    report(&tilework(&["check", &netlist(), "--json"]), kind, "check", "ok");
    report(&tilework(&["show", &netlist(), "--report", "json"]), kind, "show", "ok");
    report(&tilework(&["show", &netlist(), "--memory", "--json"]), kind, "show", "ok");
    let broken = dir.path().join("broken.yaml");
    let text = std::fs::read_to_string(netlist()).unwrap().replace("type: exp", "type: expp");
    std::fs::write(&broken, text).unwrap();
    let broken = broken.display().to_string();
    let found = report(&tilework(&["check", &broken, "--report", "json"]), kind, "check", "refused");
    assert_eq!((&found["error"]["class"], &found["findings"][0]["code"]), (&json!("refused"), &json!("N0015")));
    for refused in [tilework(&["show", &broken, "--report", "json"]), run(&broken, &[])] {
        let report = report(&refused, kind, refused.json()["command"].as_str().unwrap(), "refused");
        let finding = &report["error"]["findings"][0];
        assert_eq!((&finding["line"], &finding["column"]), (&json!(24), &json!(20)), "{report}");
    }
}

#[test]
fn commands_without_a_file_of_a_kind_report_in_the_same_form() {
    let board = report(&tilework(&["board", "p150", "--report", "json"]), "board", "board", "ok");
    assert_eq!((&board["board"], board["workers"].as_array().unwrap().len()), (&json!("p150"), 138));
    let ring = "ring-program";
    report(&tilework(&["pto", "ids", "--report", "json"]), ring, "pto ids", "ok");
    report(&tilework(&["pto", "ids", "--core", "999", "--json"]), ring, "pto ids", "refused");
    report(&tilework(&["pto", "run", "bias", "--report", "json"]), ring, "pto run", "ok");
    let race = "pto run bias --slots 4 --profile headers --slow-consumer 500 --report json";
    let race = report(&tilework(&race.split(' ').collect::<Vec<_>>()), ring, "pto run", "failed");
    assert_eq!((&race["error"]["class"], &race["error"]["slot"]), (&json!("race"), &json!(0)), "{race}");
    let explored = tilework(&["pto", "explore", "push-push", "--tiles", "3", "--report", "json"]);
    report(&explored, ring, "pto explore", "failed");
}

#[test]
fn explanations_bundles_and_findings_report_in_the_same_form() {
    let explained =
        report(&tilework(&["explain", "race-noc-source", "--report", "json"]), "explanation", "explain", "ok");
    assert_eq!(explained["about"], "race");
    report(&tilework(&["explain", "--report", "json"]), "explanation", "explain", "ok");
    report(&tilework(&["explain", "nothing-of-this-name", "--report", "json"]), "explanation", "explain", "refused");
    let dir = folder();
    let (file, out, kept) = (dir.path().join("fault.toml"), dir.path().join("out"), dir.path().join("kept.zip"));
    let kernel = "[[roles]]\nname = \"r\"\ncores = 1\n[roles.brisc]\nelf = \"prebuilt:spin\"\nargs = [0xFFB80004]\n";
    std::fs::write(&file, format!("name = \"t\"\n{kernel}")).unwrap();
    let [file, out, kept] = [&file, &out, &kept].map(|path| path.to_str().unwrap());
    let ended = tilework(&["run", file, "--out", out, "--bundle", kept, "--report", "json"]);
    let error = report(&ended, "kernel-program", "run", "failed")["error"].clone();
    for key in ["busy", "waiting", "idle_cores", "queue", "bundle"] {
        assert!(!error[key].is_null(), "{key}: {error}");
    }
    assert!(error["idle_cores"].as_u64() > Some(100) && error["queue"]["around"].is_array(), "{error}");
    let replayed = report(&tilework(&["replay", kept, "--report", "json"]), "bundle", "replay", "ok");
    assert_eq!((&replayed["end"], &replayed["report"]["error"]["fault"]), (&json!("fault"), &error["fault"]));
    report(&tilework(&["replay", file, "--report", "json"]), "bundle", "replay", "refused");
    let ran = report(&run_example("increment", dir.path(), &["--report", "json"]), "kernel-program", "run", "ok");
    assert_eq!((&ran["checks"]["level"], &ran["checks"]["left_out"]), (&json!("warn"), &json!(0)));
}

#[test]
fn a_command_line_that_cannot_be_read_is_refused_as_data_too() {
    for words in [
        &["run", "x.toml", "--out", "o", "--no-such-option", "--report", "json"][..],
        &["run", "--report=json"],
        &["check", "--json"],
        &["show", "x.ttnn", "--report", "json", "--ops", "--mlir"],
    ] {
        let ended = tilework(words).code(2);
        let report: Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!((&report["schema"], &report["kind"]), (&json!(1), &json!("command-line")), "{words:?}");
        assert_eq!((&report["command"], &report["status"]), (&json!(words[0]), &json!("refused")), "{words:?}");
        let message = report["error"]["message"].as_str().unwrap();
        assert!(ended.stderr.contains(message.lines().next().unwrap()), "{message}");
    }
    let ended = tilework(&["rnu", "--report", "json"]).code(2);
    let report: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["command"], "tilework");
    // Help is no refusal.
    assert!(tilework(&["run", "--help", "--report", "json"]).code(0).stdout.contains("--out"));
}

#[test]
fn a_capture_is_decoded_as_data() {
    let out = folder();
    let capture = out.path().join("run.cq");
    run_example("ring", out.path(), &["--capture", capture.to_str().unwrap()]).code(0);
    let decode = |file: &Path| tilework(&["cq", "decode", file.to_str().unwrap(), "--report", "json"]);
    let whole = report(&decode(&capture), "command-queue", "cq decode", "ok");
    let records = whole["records"].as_array().unwrap();
    assert_eq!(whole["count"], records.len());
    assert_eq!((&records[0]["offset"], &whole["good_bytes"]), (&json!(0), &whole["bytes"]));
    let bytes = std::fs::read(&capture).unwrap();
    std::fs::write(&capture, &bytes[..bytes.len() - 40]).unwrap();
    let cut = report(&decode(&capture), "command-queue", "cq decode", "failed");
    assert_eq!(cut["error"]["class"], "capture");
    assert_eq!(cut["records"].as_array().unwrap().len(), records.len() - 1);
    assert!(cut["error"]["offset"].as_u64() >= cut["good_bytes"].as_u64(), "{}", cut["error"]);
    report(&decode(Path::new("/does/not/exist")), "command-queue", "cq decode", "refused");
}
