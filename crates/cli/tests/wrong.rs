//! Programs with one mistake each (`firmware/kernels/wrong`), which run to their end: the mistake
//! is told with its id, its core and its line, and so is every kind that is certain.

use crate::common;
use common::{Ended, folder, read_npy, repository, run_text, tilework};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A program of the kernel: its number, its exit code, the finding, its core, and words of it.
struct Case(u32, i32, &'static str, &'static str, &'static str);

/// No finding.
const NONE: [Value; 0] = [];

/// The longest window of a chip some of whose tiles wait for DRAM (docs/architecture.md).
const WINDOW: u64 = 200;

/// The programs that are no examples.
const CASES: &[Case] = &[
    Case(2, 0, "dram-unwritten-read", "ncrisc", "that nobody has written"),
    Case(3, 0, "l1-past-buffer", "ncrisc", "writes 128 bytes past the last page that buffer \"slots\""),
    Case(6, 0, "l1-unowned", "ncrisc", "writes"),
    Case(7, 0, "dram-unowned", "ncrisc", "reads"),
    Case(9, 0, "cb-page-not-received", "brisc", "which has not been waited for"),
    Case(11, 0, "cb-page-not-reserved", "ncrisc", "has not asked whether any page is free"),
    Case(12, 0, "l1-null", "ncrisc", "through a pointer that is zero"),
    Case(13, 0, "l1-firmware", "ncrisc", "which are go messages"),
    Case(14, 0, "l1-text", "ncrisc", "the code of kernel \"prebuilt:wrong\" of NCRISC"),
    Case(15, 0, "local-unwritten-read", "ncrisc", "that nobody has written"),
    Case(20, 0, "noc-not-waited", "ncrisc", "is still under way when the kernel ends"),
    Case(21, 0, "noc-link-open", "ncrisc", "is linked to one that never comes"),
    Case(22, 0, "cb-popped-too-many", "brisc", "pops 2 pages from circular buffer 0 \"pages\", which holds 1"),
    Case(
        23,
        0,
        "cb-pushed-too-many",
        "ncrisc",
        "pushes 3 pages into circular buffer 0 \"pages\", which has room for 2",
    ),
    Case(24, 0, "sem-overflow", "ncrisc", "takes 1 from semaphore 0 of"),
    Case(25, 0, "missing-fence", "ncrisc", "which was written since"),
    Case(26, 1, "noc-misaligned", "ncrisc", "differ modulo 64"),
    Case(27, 0, "noc-trid-reused", "ncrisc", "uses transaction id 1 of NoC"),
    Case(28, 0, "noc-too-long", "ncrisc", "a write of 32768 bytes, which the NIU counts as 2 requests"),
    Case(29, 0, "missing-fence-i", "ncrisc", "since the core last emptied its instruction cache"),
];

/// The examples: a file each, the finding, its core, and words of it.
const EXAMPLES: &[(&str, &str, &str, &str)] = &[
    ("too-few-arguments", "args-past-end", "ncrisc", "reads argument 9 of NCRISC; the program gives 9"),
    ("past-a-buffer", "dram-past-buffer", "ncrisc", "writes 256 bytes past the last page that buffer \"y\""),
    ("overrun", "cb-page-not-reserved", "ncrisc", "of whose 2 pages 2 are the consumer's"),
    ("unwritten-l1", "l1-unwritten-read", "ncrisc", "reads 4 bytes at"),
    ("stack", "stack-overflow", "ncrisc", "bytes into data that end at"),
    ("one-page", "page-written-twice", "ncrisc", "has written"),
];

fn wrong(file: &str) -> PathBuf {
    repository().join("examples/wrong").join(file)
}

fn run(program: &Path, out: &Path, more: &[&str]) -> Ended {
    let input = format!("x={}", wrong("x.npy").display());
    let (program, out) = (program.display().to_string(), out.display().to_string());
    let mut args = vec!["run", &program, "--input", &input, "--out", &out, "--report", "json"];
    args.extend(more);
    tilework(&args)
}

/// Runs a program of the kernel: an example with another number, and with a buffer behind the
/// slots.
fn run_number(number: u32, more: &[&str]) -> Ended {
    let folder = folder();
    let text = std::fs::read_to_string(wrong("overrun.toml")).unwrap();
    assert_eq!(text.matches("args = [8, ").count(), 2);
    let spare =
        "[buffers.spare]\nuse = \"scratch\"\ndtype = \"u8\"\nshape = [256]\npage_size = 256\nlocation = \"l1\"\n";
    let text = text.replace("[buffers.slots]", &format!("{spare}\n[buffers.slots]"));
    let program = folder.path().join("program.toml");
    std::fs::write(&program, text.replace("args = [8, ", &format!("args = [{number}, "))).unwrap();
    run(&program, &folder.path().join("out"), more)
}

/// Runs programs of the coprocessor's kernel, one after the other on one tile.
fn run_math(numbers: &[u32]) -> Value {
    let folder = folder();
    let kernel = "[[roles]]\ncores = 1\n[roles.trisc1]\nelf = \"prebuilt:wrong-math\"\nargs = [\"launch.number\"]\n";
    let launch = |number| format!("[[launch]]\nvalues = {{ number = {number} }}\n");
    let text = numbers.iter().map(launch).fold(format!("name = \"math\"\n{kernel}"), |text, launch| text + &launch);
    run_text(folder.path(), &text, &["--report", "json", "--checks", "suspicious"]).code(0).json()
}

/// The findings of a run, which may have failed.
fn findings(report: &Value) -> Vec<Value> {
    let checks = [&report["checks"], &report["error"]["checks"]].into_iter().find(|checks| checks.is_object());
    checks.unwrap_or_else(|| panic!("{report:#}"))["findings"].as_array().unwrap().clone()
}

/// Asserts that something was found: its id, core and words, at a line that says so.
#[track_caller]
fn told(findings: &[Value], id: &str, core: &str, words: &str) {
    let found: Vec<&Value> = findings.iter().filter(|finding| finding["id"] == id).collect();
    assert!(!found.is_empty(), "{id} is not in {findings:#?}");
    let is_it = |finding: &&&Value| {
        finding["core"] == core
            && finding["what"].as_str().is_some_and(|what| what.contains(words))
            && is_at(finding, id)
    };
    assert!(found.iter().any(|finding| is_it(&finding)), "{id} of {core}, {words}: {found:#?}");
}

/// Whether a finding is at a line of the kernel behind which its id is written.
fn is_at(finding: &Value, id: &str) -> bool {
    let places = finding["source"].as_array().unwrap();
    places.iter().any(|place| {
        let Some((_, path)) = place["file"].as_str().and_then(|file| file.split_once("firmware/kernels/wrong/")) else {
            return false;
        };
        let text = std::fs::read_to_string(repository().join("firmware/kernels/wrong").join(path)).unwrap();
        let line = place["line"].as_u64().unwrap() as usize;
        // Of a function as a whole the comment is on its first line.
        text.lines().skip(line - 1).take(2).any(|line| line.ends_with(&format!("// wrong: {id}")))
    })
}

#[test]
fn each_example_is_told_right_and_runs_to_its_end() {
    for (name, id, core, words) in EXAMPLES {
        let out = folder();
        let report = run(&wrong(&format!("{name}.toml")), out.path(), &[]).code(0).json();
        told(&findings(&report), id, core, words);
    }
}

#[test]
fn each_kind_of_mistake_is_told_with_its_line() {
    for Case(number, code, id, core, words) in CASES {
        let report = run_number(*number, &["--checks", "suspicious"]).code(*code).json();
        told(&findings(&report), id, core, words);
    }
}

#[test]
fn the_coprocessor_is_watched_too() {
    assert_eq!(findings(&run_math(&[0, 1, 0])), NONE, "each sets what it uses");
    told(&findings(&run_math(&[0, 2])), "tensix-state-left", "trisc1", "SEMPOST uses semaphore 2 of the coprocessor");
    assert_eq!(findings(&run_math(&[2])), NONE, "what nobody has set has its value after reset");
    told(&findings(&run_math(&[3])), "sem-overflow", "trisc1", "posts semaphore 2 of the coprocessor, which is at 15");
}

#[test]
fn the_program_without_a_mistake_has_no_finding() {
    let out = folder();
    let text = std::fs::read_to_string(wrong("overrun.toml")).unwrap().replace("args = [8, ", "args = [31, ");
    let program = out.path().join("program.toml");
    std::fs::write(&program, text).unwrap();
    let report = run(&program, out.path(), &["--checks", "suspicious"]).code(0).json();
    assert_eq!(findings(&report), NONE, "{report:#}");
    assert_eq!(read_npy::<u32>(&out.path().join("y.npy")), read_npy::<u32>(&wrong("x.npy")));
}

#[test]
fn every_certain_kind_of_memory_and_protocol_has_a_program() {
    let told: Vec<&str> = CASES.iter().map(|case| case.2).chain(EXAMPLES.iter().map(|example| example.1)).collect();
    let report = tilework(&["explain", "--report", "json"]).code(0).json();
    let rows = report["topics"].as_array().unwrap();
    let missing = rows.iter().filter(|row| {
        let kind = row["about"].as_str().unwrap();
        row["certainty"] == "certain" && ["memory", "protocol"].contains(&kind)
    });
    let ids: Vec<&str> = missing.map(|row| row["id"].as_str().unwrap()).collect();
    assert!(ids.len() > 15, "{report:#}");
    for id in ids {
        assert!(told.contains(&id), "{id} has no program in firmware/kernels/wrong");
    }
}

#[test]
fn the_first_error_ends_the_run_at_once_and_at_the_same_cycle_on_any_number_of_threads() {
    let ended = |threads| {
        let folder = folder();
        let more = ["--checks", "error", "--threads", threads];
        let report = run(&wrong("overrun.toml"), folder.path(), &more).code(1).json();
        let first = findings(&report)[0]["cycle"].as_u64().unwrap();
        (first, report["error"]["checks"]["ended_at"].as_u64().unwrap())
    };
    let (first, end) = ended("1");
    assert!((first..first + WINDOW).contains(&end), "{first} {end}");
    assert_eq!(ended("2"), (first, end));
}
