//! `--checks races` has nothing to say about our firmware, queue kernels and examples.

use crate::common;
use common::{example, example_input, folder, repository, run_text, tilework};

/// Whether a program file has this buffer as an input.
fn is_input(text: &str, buffer: &str) -> bool {
    let lines = text.lines().skip_while(|line| !line.starts_with(&format!("[buffers.{buffer}]")));
    lines.skip(1).take_while(|line| !line.starts_with('[')).any(|line| line.starts_with("use = \"input\""))
}

/// Runs an example with its inputs, and gives the ids of the races that were found.
fn races(name: &str, more: &[&str]) -> Vec<String> {
    let out = folder();
    let text = std::fs::read_to_string(example(name)).unwrap();
    let mut args = vec!["run".to_owned(), example(name).display().to_string()];
    for entry in std::fs::read_dir(repository().join("examples").join(name)).unwrap() {
        let path = entry.unwrap().path();
        let buffer = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.extension().is_some_and(|e| e == "npy") && is_input(&text, &buffer) {
            args.extend(["--input".to_owned(), format!("{buffer}={}", path.display())]);
        }
    }
    args.extend(["--out".to_owned(), out.path().display().to_string(), "--report".to_owned(), "json".to_owned()]);
    args.extend(["--checks", "races"].iter().chain(more).map(|s| (*s).to_owned()));
    let report = tilework(&args).code(0).json();
    assert_eq!(report["checks"]["races"], true, "{name}");
    let findings = report["checks"]["findings"].as_array().unwrap();
    let ids = findings.iter().map(|finding| finding["id"].as_str().unwrap_or_default().to_owned());
    ids.filter(|id| id.starts_with("race-")).collect()
}

#[test]
fn examples_have_no_races() {
    for name in ["pipeline", "ring", "increment", "queue", "traced"] {
        assert_eq!(races(name, &[]), [""; 0], "{name}");
    }
}

#[test]
fn compute_examples_have_no_races() {
    for name in [
        "accumulate",
        "attention",
        "columns",
        "eltwise",
        "functions",
        "layernorm",
        "matmul",
        "reduce",
        "rotary",
        "softmax",
        "tilize",
        "topk",
    ] {
        assert_eq!(races(name, &[]), [""; 0], "{name}");
    }
}

#[test]
fn no_way_of_dispatch_has_races() {
    for layout in ["subordinate", "subordinate-tile", "split"] {
        assert_eq!(races("pipeline", &["--dispatch-layout", layout]), [""; 0], "{layout}");
    }
    for name in ["pipeline", "matmul", "increment"] {
        assert_eq!(races(name, &["--dispatch", "slow"]), [""; 0], "{name}");
    }
    assert_eq!(races("pipeline", &["--transfers", "windows"]), [""; 0]);
}

#[test]
fn looking_for_races_changes_neither_cycles_nor_outputs() {
    let out = folder();
    let run = |checks: &str| {
        let (program, input) = (example("increment").display().to_string(), example_input("increment"));
        let out = out.path().display().to_string();
        let args = ["run", &program, "--input", &input, "--out", &out, "--report", "json", "--checks", checks];
        let report = tilework(&args).code(0).json();
        (report["cycles"].clone(), report["outputs"].clone())
    };
    assert_eq!(run("off"), run("races"));
}

/// The seeded program `pipe` without the wait for its reads, beside a core that is busy for long.
const RACES: &str = r#"
name = "races"

[buffers.x]
use = "input"
dtype = "i16"
shape = [37, 32, 32]
page_size = 2048

[buffers.y]
use = "output"
like = "x"
page_size = 2048

[[cb]]
name = "pages"
index = 0
pages = 2
page_size = 256

[[roles]]
name = "pipe"
cores = [[[1, 2], [1, 2]]]

[roles.ncrisc]
elf = "SEEDED"
args = [0, 2, 0, 0, 1, 129, 129, 0, "x.addr", "y.addr", 129, 129]

[roles.brisc]
elf = "SEEDED"
args = [0, 2, 0, 0, 1, 129, 129, 0, "x.addr", "y.addr", 129, 129]

[[roles]]
name = "busy"
cores = [[[2, 2], [2, 2]]]

[roles.brisc]
elf = "prebuilt:busy"
args = [1000000000, 262144]
"#;

#[test]
fn a_race_that_is_an_error_ends_a_run_that_goes_on() {
    let out = folder();
    let input = example_input("pipeline");
    let seeded = repository().join("firmware/prebuilt/seeded.elf").display().to_string();
    let args = ["--input", &input, "--checks", "races,error", "--max-cycles", "20000000"];
    let ended = run_text(out.path(), &RACES.replace("SEEDED", &seeded), &args).code(1);
    assert!(!ended.stderr.contains("still running"), "it has gone on: {}", ended.stderr);
    ended.says("race-noc-read");
}
