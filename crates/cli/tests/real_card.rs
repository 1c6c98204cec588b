//! Kernel programs on a card: `tilework run --chip /dev/tenstorrent/0`. The card is the virtual one
//! of `tilework card`: no real card has been at hand. Outputs are compared with those of the same
//! run on the simulator itself.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use crate::common;
use common::{Ended, example, example_input, folder, run_example, tilework};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The device file.
const CARD: &str = "/dev/tenstorrent/0";
/// What is said of a card that is left as it should be.
const LEFT: &str = "are held in reset; windows, pinned memory and the lock are free";

/// Runs `tilework` with the virtual card of a board in this machine.
fn with_card(board: &str, words: &[String]) -> Ended {
    let mut all = ["card", "--board", board, "--", env!("CARGO_BIN_EXE_tilework")].map(str::to_owned).to_vec();
    all.extend(words.iter().cloned());
    tilework(&all)
}

/// The board that the simulator is given to be the chip of such a card: firmware of today shows a
/// P150 without two of its columns.
fn shown(board: &str) -> String {
    match board {
        "p150" => common::repository().join("examples/boards/p150-120.toml").display().to_string(),
        known => known.to_owned(),
    }
}

/// The words that run a program on the card.
fn run(program: &Path, out: &Path, more: &[&str]) -> Vec<String> {
    let mut words = vec!["run".to_owned(), program.display().to_string(), "--chip".to_owned(), CARD.to_owned()];
    words.extend(["--out".to_owned(), out.display().to_string()]);
    words.extend(more.iter().map(|word| (*word).to_owned()));
    words
}

/// The words that run an example of the repository on the card.
fn run_of(name: &str, out: &Path, more: &[&str]) -> Vec<String> {
    let mut words = run(&example(name), out, more);
    if name != "ring" {
        words.extend(["--input".to_owned(), example_input(name)]);
    }
    words
}

/// SHA-256 of each output.
fn hashes(report: &Value) -> Vec<(String, Value)> {
    let outputs = report["outputs"].as_object().unwrap();
    outputs.iter().map(|(name, output)| (name.clone(), output["sha256"].clone())).collect()
}

#[test]
fn the_second_card_of_a_machine_runs_programs_too() {
    let out = folder();
    let own = run_example("ring", out.path(), &["--report", "json", "--board", "p100"]).code(0).json();
    let words = run_of("ring", out.path(), &["--report", "json"]);
    let words = words.into_iter().map(|word| word.replace(CARD, "/dev/tenstorrent/1"));
    let mut all = ["card", "--board", "p150", "--board", "p100", "--", env!("CARGO_BIN_EXE_tilework")]
        .map(str::to_owned)
        .to_vec();
    all.extend(words);
    let other = tilework(&all).code(0).says(LEFT).json();
    assert_eq!(hashes(&own), hashes(&other));
    assert_eq!(other["chip"], "tt-kmd: /dev/tenstorrent/1");
}

#[test]
fn examples_give_the_same_outputs_on_a_card_with_both_dispatches() {
    for (name, board) in [("increment", "p150"), ("pipeline", "p100"), ("ring", "p150"), ("ring", "p100")] {
        for dispatch in ["fast", "slow"] {
            let out = folder();
            let more = ["--dispatch", dispatch, "--report", "json"];
            let own = run_example(name, out.path(), &[&more[..], &["--board", &shown(board)]].concat()).code(0).json();
            let ended = with_card(board, &run_of(name, out.path(), &more)).code(0).says(LEFT);
            let other = ended.json();
            assert_eq!(hashes(&own), hashes(&other), "{name}, {dispatch}");
            assert!(!hashes(&own).is_empty());
            assert_eq!(other["chip"], format!("tt-kmd: {CARD}"));
            assert_eq!((&other["board"], &other["commands"]), (&json!(board), &own["commands"]));
            // What a counter of the card tells is there, and nothing else.
            for known in ["cycles", "program_cycles"] {
                assert!(other[known].as_u64().is_some_and(|cycles| cycles > 0), "{name}, {dispatch}: {known}");
            }
            for unknown in ["simulated_seconds", "instructions", "mips", "pcie_bytes", "noc_bytes"] {
                assert!(other[unknown].is_null(), "{name}, {dispatch}: {unknown}");
            }
        }
    }
}

#[test]
fn two_queues_with_traces_and_events_run_on_a_card() {
    let out = folder();
    for (name, inputs) in [("queue", &["x", "twice", "thrice"][..]), ("traced", &["x", "z"])] {
        let program = example(name);
        let file = |input: &str| program.with_file_name(format!("{input}.npy")).display().to_string();
        let inputs = inputs.iter().flat_map(|input| ["--input".to_owned(), format!("{input}={}", file(input))]);
        let inputs: Vec<String> = inputs.chain(["--report".to_owned(), "json".to_owned()]).collect();
        let words = run(&program, out.path(), &inputs.iter().map(String::as_str).collect::<Vec<_>>());
        let ended = with_card("p150", &words).code(0).says(LEFT);
        let simulated: Vec<String> = words.into_iter().filter(|word| word != "--chip" && word != CARD).collect();
        let own = tilework(&[&simulated[..], &["--board".to_owned(), shown("p150")]].concat()).code(0).json();
        assert_eq!(hashes(&own), hashes(&ended.json()), "{name}");
    }
}

/// Runs a compiled model with these inputs on the card and on the simulator, and compares the
/// outputs; also checks that the card has carried operations out.
fn same_model(file: &Path, inputs: &[PathBuf]) {
    let (out, own_out) = (folder(), folder());
    let mut words = vec!["run".to_owned(), file.display().to_string(), "--report".to_owned(), "json".to_owned()];
    for (i, input) in inputs.iter().enumerate() {
        words.extend(["--input".to_owned(), format!("{i}={}", input.display())]);
    }
    let with = |more: &[&str]| [&words[..], &more.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>()].concat();
    let ended = with_card("p100", &with(&["--out", out.path().to_str().unwrap(), "--chip", CARD])).code(0).says(LEFT);
    let more = ["--out", own_out.path().to_str().unwrap(), "--engine", "chip", "--board", "p100"];
    let (own, other) = (tilework(&with(&more)).code(0).json(), ended.json());
    assert!(!hashes(&own).is_empty());
    assert_eq!(hashes(&own), hashes(&other), "{}", file.display());
    assert_eq!((&other["engine"], &other["chip"]["chip_of"]), (&json!("chip"), &json!(format!("tt-kmd: {CARD}"))));
    assert!(own["chip"]["chip"].as_u64() > Some(0), "{own}");
    for counted in ["board", "chip", "moved", "stated", "host", "cache_misses"] {
        assert_eq!(own["chip"][counted], other["chip"][counted], "{counted}");
    }
}

#[test]
fn a_compiled_model_gives_the_same_outputs_on_a_card() {
    let mlp = common::repository().join("examples/mlp");
    let inputs: Vec<_> = (0..5).map(|i| mlp.join(format!("in{i}.npy"))).collect();
    same_model(&mlp.join("mlp.ttnn"), &inputs);
    // What is the built-in chip's, and a card that is not there.
    let out = folder();
    let words = |more: &[&str]| {
        let mut words = vec!["run".to_owned(), mlp.join("mlp.ttnn").display().to_string()];
        words.extend(["--out", out.path().to_str().unwrap(), "--chip", "/dev/tenstorrent/7"].map(str::to_owned));
        words.extend(more.iter().map(|word| (*word).to_owned()));
        words
    };
    tilework(&words(&["--threads", "2"])).code(2).says("--threads is for the built-in chip: leave out --chip");
    tilework(&words(&["--checks", "warn"])).code(2).says("--checks is for the built-in chip: leave out --chip");
    tilework(&words(&["--engine", "native"])).code(2).says("--chip is for --engine chip");
    tilework(&words(&[])).code(2).says("--chip /dev/tenstorrent/7: there is no such device");
}

/// Models that the repository does not have: those of the folder that `TILEWORK_TTNN` names, each a
/// folder with `program.ttnn` and its inputs.
#[test]
fn models_of_a_compiler_give_the_same_outputs_on_a_card() {
    let beside = common::repository().join("../shared/data/ttnn");
    let all = std::env::var_os("TILEWORK_TTNN").map_or(beside, PathBuf::from);
    if !all.is_dir() {
        return println!("left out: {} is no folder of models (TILEWORK_TTNN names another)", all.display());
    }
    for name in ["linear_bias", "layernorm", "conv3x3"] {
        let model = all.join(name);
        let inputs = (0..).map(|i| model.join(format!("in{i}.npy"))).take_while(|file| file.is_file());
        same_model(&model.join("program.ttnn"), &inputs.collect::<Vec<_>>());
    }
}

#[test]
fn the_text_report_says_what_the_cards_counter_told() {
    let out = folder();
    let ended = with_card("p150", &run_of("ring", out.path(), &["--core-timing"])).code(0);
    let text = &ended.stdout;
    assert!(text.starts_with(&format!("ring on a p150 (tt-kmd: {CARD}), fast dispatch")), "{text}");
    assert!(text.contains("cycles of the run by the device's own counter"), "{text}");
    assert!(text.contains("instructions and bytes are not known") && text.contains("BRISC of 118 tiles"), "{text}");
    assert!(text.contains("the card's: cycles are those of its own counters"), "{text}");
}

#[test]
fn options_without_effect_on_a_card_are_refused() {
    let out = folder();
    let place = out.path().join("file").display().to_string();
    for (option, value) in [
        ("--checks", Some("warn")),
        ("--trace", Some(place.as_str())),
        ("--html", Some(place.as_str())),
        ("--gdb", Some("0")),
        ("--bundle", Some(place.as_str())),
        ("--coverage", Some(place.as_str())),
        ("--schedule", Some("1")),
        ("--threads", Some("2")),
    ] {
        let more: Vec<&str> = std::iter::once(option).chain(value).collect();
        // They are refused before the card is touched.
        tilework(&run_of("ring", out.path(), &more)).code(2).says(option).says("built-in chip: leave out --chip");
    }
}

#[test]
fn a_card_that_is_not_there_or_is_another_is_refused() {
    let out = folder();
    let words = run_of("ring", out.path(), &[]);
    let missing: Vec<String> = words.iter().map(|word| word.replace(CARD, "/dev/tenstorrent/7")).collect();
    with_card("p150", &missing).code(2).says("--chip /dev/tenstorrent/7: there is no such device");
    // Another device file is no card.
    let null: Vec<String> = words.iter().map(|word| word.replace(CARD, "/dev/null")).collect();
    tilework(&null).code(2).says("--chip /dev/null: not a regular file with a chip's library, and no card");
    let board = run_of("ring", out.path(), &["--board", "p100"]);
    with_card("p150", &board).code(2).says("the card has a p150 that lacks").says("but --board says a p100");
    assert!(common::files(out.path()).is_empty());
    // The name of a kind of card stands for what its firmware shows, and a file for what it says.
    with_card("p150", &run_of("ring", out.path(), &["--board", "p150"])).code(0).says(LEFT);
    let whole = out.path().join("whole.toml");
    std::fs::write(&whole, "name = 'whole'\nbase = 'p150'").unwrap();
    let board = run_of("ring", &out.path().join("none"), &["--board", whole.to_str().unwrap()]);
    with_card("p150", &board).code(2).says("lacks Tensix columns 7 10, Ethernet channels 5 8, but --board says a p150");
}

/// A library that opens the device before the program begins, as another program would: Rust's
/// start calls `poll` before `main`.
const OTHER: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
int poll(struct pollfd *fds, nfds_t count, int timeout) {
    static int opened;
    if (getenv("OTHER") && !opened++ && open("/dev/tenstorrent/0", O_RDWR) < 0) perror("other");
    return ((int (*)(struct pollfd *, nfds_t, int))dlsym(RTLD_NEXT, "poll"))(fds, count, timeout);
}
"#;

#[test]
fn a_card_that_another_program_has_open_is_refused() {
    let place = folder();
    let (source, library) = (place.path().join("other.c"), place.path().join("other.so"));
    std::fs::write(&source, OTHER).unwrap();
    match Command::new("cc").args(["-shared", "-fPIC", "-ldl", "-o"]).arg(&library).arg(&source).output() {
        Ok(made) => assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr)),
        Err(error) => return println!("left out: cc does not start: {error}"),
    }
    let output = Command::new(env!("CARGO_BIN_EXE_tilework"))
        .args(["card", "--board", "p150", "--", "env", "OTHER=1"])
        .arg(env!("CARGO_BIN_EXE_tilework"))
        .args(run_of("ring", place.path(), &[]))
        .env("LD_PRELOAD", &library)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("another program has the card open"), "{said}");
}

/// A program whose one kernel, on two cores, waits for a word that nobody writes.
const HANG: &str = "name = \"t\"\n[buffers.word]\nuse = \"scratch\"\ndtype = \"u32\"\nshape = [4]\npage_size = 16\n\
                    location = \"l1\"\n[[roles]]\nname = \"r\"\ncores = [[1, 2], [1, 3]]\n[roles.brisc]\n\
                    elf = \"prebuilt:spin\"\nargs = [\"word.addr\"]\n";

/// A program file of the test's own.
fn written(place: &Path, text: &str) -> PathBuf {
    let file = place.join("program.toml");
    std::fs::write(&file, text).unwrap();
    file
}

#[test]
fn a_run_that_hangs_tells_what_mailboxes_and_queue_say_and_leaves_the_card() {
    for dispatch in ["fast", "slow"] {
        let place = folder();
        let program = written(place.path(), HANG);
        let more = ["--dispatch", dispatch, "--max-cycles", "3000000", "--report", "json"];
        let ended = with_card("p100", &run(&program, &place.path().join("out"), &more)).code(1).says(LEFT);
        let error = &ended.json()["error"];
        assert_eq!((&error["class"], &error["cycles"]), (&json!("budget"), &json!(3_000_000)), "{error}");
        let tiles = json!([{"x": 1, "y": 2}, {"x": 1, "y": 3}]);
        assert_eq!(error["mailboxes"], json!([{"tiles": tiles, "signal": "go", "running": ["brisc"]}]), "{error}");
        assert_eq!(error["queue"]["program"].as_str(), (dispatch == "fast").then_some("t"), "{error}");
        ended.says("not done: (1,2) (1,3), where no end is known of BRISC").says("still running after 3000000 cycles");
    }
}

#[test]
fn a_fault_of_the_virtual_card_ends_the_run_with_its_report() {
    let place = folder();
    // The kernel waits for a word at an address where no core has memory.
    let program = written(place.path(), &HANG.replace("word.addr", "0xFFB80004"));
    with_card("p100", &run(&program, &place.path().join("out"), &[])).code(101).says("0xffb80004");
}

#[test]
fn an_interrupted_run_leaves_the_card() {
    for (signal, dispatch) in [("INT", "fast"), ("TERM", "slow")] {
        let place = folder();
        let program = written(place.path(), HANG);
        let more = ["--dispatch", dispatch, "--max-cycles", "1000000000000", "-v"];
        // The shell tells its number, which the command keeps.
        let mut child = Command::new(env!("CARGO_BIN_EXE_tilework"))
            .args(["card", "--board", "p100", "--", "sh", "-c", "echo $$ >&2; exec \"$@\"", "sh"])
            .arg(env!("CARGO_BIN_EXE_tilework"))
            .args(run(&program, &place.path().join("out"), &more))
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let process = lines.next().unwrap();
        assert!(lines.any(|line| line.ends_with("] running")), "the run began");
        let sent = Command::new("kill").args([&format!("-{signal}"), process.trim()]).status().unwrap();
        assert!(sent.success());
        let said: Vec<String> = lines.collect();
        let said = said.join("\n");
        assert_eq!(child.wait().unwrap().code(), Some(1), "{said}");
        assert!(said.contains("interrupted after") && said.contains(LEFT), "{said}");
    }
}
