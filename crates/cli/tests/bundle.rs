//! Crash bundles: which runs leave one, what it has, and that `tilework replay` reaches the same
//! end from it alone.

use crate::common;
use common::{Ended, example, example_input, folder, repository, tilework};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{Cursor, Read, Write};
use std::path::{Path, PathBuf};
use zip::{ZipArchive, ZipWriter};

/// A word of L1 that nobody writes, and two cores that wait for it.
const WORD: &str = "\
[buffers.word]\nuse = \"scratch\"\ndtype = \"u32\"\nshape = [4]\npage_size = 16\nlocation = \"l1\"\n";

/// A program of one kernel on two cores.
fn program(buffers: &str, elf: &str, args: &str) -> String {
    format!(
        "name = \"t\"\n{buffers}[[roles]]\nname = \"r\"\ncores = [[1, 2], [1, 3]]\n[roles.brisc]\nelf = \"{elf}\"\nargs = {args}\n"
    )
}

fn hang() -> String {
    program(WORD, "prebuilt:spin", "[\"word.addr\"]")
}

fn fault() -> String {
    // The kernel waits for a word at an address where no core has memory.
    program("", "prebuilt:spin", "[\"0xFFB80004\"]")
}

/// Runs a program with its outputs in `out` of `folder`.
fn run(folder: &Path, text: &str, more: &[&str]) -> Ended {
    let (file, out) = (folder.join("program.toml"), folder.join("out"));
    std::fs::write(&file, text).unwrap();
    tilework(&[&["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()], more].concat())
}

/// The files of a folder whose names end with `.zip`.
fn bundles(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    entries.filter(|path| path.extension().is_some_and(|ending| ending == "zip")).collect()
}

fn replay(file: &Path, more: &[&str]) -> Ended {
    tilework(&[&["replay", file.to_str().unwrap()], more].concat())
}

/// The entries of an archive.
fn entries(file: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut archive = ZipArchive::new(Cursor::new(std::fs::read(file).unwrap())).unwrap();
    let count = archive.len();
    let read = |i| {
        let mut entry = archive.by_index(i).unwrap();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (entry.name().unwrap().into_owned(), bytes)
    };
    (0..count).map(read).collect()
}

/// Writes an archive of these entries.
fn write(file: &Path, entries: &BTreeMap<String, Vec<u8>>) {
    let mut archive = ZipWriter::new(std::fs::File::create(file).unwrap());
    for (name, bytes) in entries {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
}

#[test]
fn a_deadlock_leaves_a_bundle_beside_its_outputs_and_is_repeated_from_it() {
    let folder = folder();
    let ended = run(folder.path(), &hang(), &["--report", "json"]).code(1);
    let [bundle] = &bundles(folder.path())[..] else { panic!("{}", ended.stderr) };
    let report = ended.json();
    assert_eq!(report["error"]["bundle"], json!(bundle.to_str().unwrap()));
    let name = bundle.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("out-deadlock-"), "{name}");
    let said = format!("bundle: {0} (tilework replay {0} repeats this run)", bundle.display());
    assert!(ended.stderr.contains(&said), "{}", ended.stderr);
    // The same hang has the same bundle.
    let bytes = std::fs::read(bundle).unwrap();
    run(folder.path(), &hang(), &[]).code(1);
    assert_eq!((bundles(folder.path()).len(), std::fs::read(bundle).unwrap() == bytes), (1, true));

    let again = replay(bundle, &["--report", "json"]).code(0).json();
    assert_eq!(
        (&again["kind"], &again["command"], &again["status"]),
        (&json!("bundle"), &json!("replay"), &json!("ok"))
    );
    assert_eq!((&again["end"], &again["same"], &again["differences"]), (&json!("deadlock"), &json!(true), &json!([])));
    for key in ["cycle", "chain", "waiting", "queue"] {
        assert_eq!(again["report"]["error"][key], report["error"][key], "{key}");
    }
    assert!(report["error"]["cycle"].as_u64().unwrap() > 0);
    let text = replay(bundle, &[]).code(0).stdout;
    assert!(
        text.contains("deadlock at cycle") && text.ends_with("the same end as in the bundle: deadlock\n"),
        "{text}"
    );
    assert_eq!(bundles(folder.path()).len(), 1, "a replay leaves no bundle");
}

#[test]
fn a_hang_leaves_nothing_if_told_so_and_an_older_bundle_is_never_replaced() {
    let folder = folder();
    let ended = run(folder.path(), &hang(), &["--no-bundle"]).code(1);
    assert!(bundles(folder.path()).is_empty() && !ended.stderr.contains("bundle"), "{}", ended.stderr);
    let cycles = |cycles| program("", "prebuilt:busy", "[4000000000, 0x40000]") + &format!("# {cycles}\n");
    for n in ["100000", "200000"] {
        let ended = run(folder.path(), &cycles(n), &["--max-cycles", n]).code(1);
        assert!(ended.stderr.contains("out-budget-"), "{}", ended.stderr);
    }
    let found = bundles(folder.path());
    assert_eq!(found.len(), 2, "another hang has another file: {found:?}");
    for bundle in found {
        let again = replay(&bundle, &["--report", "json"]).code(0).json();
        assert_eq!((&again["end"], &again["same"]), (&json!("budget"), &json!(true)));
    }
}

#[test]
fn a_fault_has_a_bundle_if_asked_for_and_a_good_run_has_none() {
    let folder = folder();
    run(folder.path(), &fault(), &[]).code(1);
    assert!(bundles(folder.path()).is_empty());
    let file = folder.path().join("kept.zip");
    let asked = ["--bundle", file.to_str().unwrap()];
    let ended = run(folder.path(), &fault(), &asked).code(1).says("kept.zip repeats this run");
    let text = replay(&file, &[]).code(0).stdout;
    assert!(text.contains("the same end as in the bundle: fault"), "{text}");
    let first = ended.stderr.lines().next().unwrap().trim_start_matches("error: ");
    assert!(text.contains(first), "{first}\n{text}");
    // What an earlier run has left is not taken for that of a run that ends well.
    run(folder.path(), &program("", "prebuilt:empty", "[]"), &asked).code(0);
    assert!(!file.exists());
}

#[test]
fn a_run_with_findings_has_a_bundle_that_finds_them_again() {
    let folder = folder();
    // Both cores of the example write all pages.
    let text = std::fs::read_to_string(example("pipeline")).unwrap();
    assert!(text.contains("split.start(x.pages)"), "{text}");
    let text = text.replace("split.start(x.pages)", "0");
    let (input, file) = (example_input("pipeline"), folder.path().join("found.zip"));
    let asked = ["--input", &input, "--bundle", file.to_str().unwrap(), "--report", "json"];
    for (more, code) in [(&[][..], 0), (&["--checks", "error"], 1), (&["--checks", "races"], 0)] {
        let report = run(folder.path(), &text, &[&asked[..], more].concat()).code(code).json();
        let place = if code == 0 { "/bundle" } else { "/error/bundle" };
        assert_eq!(report.pointer(place), Some(&json!(file.to_str().unwrap())), "{report:#}");
        let again = replay(&file, &["--report", "json"]).code(0).json();
        assert_eq!((&again["end"], &again["same"]), (&json!("findings"), &json!(true)), "{again:#}");
        let found = |report: &Value| report["checks"]["findings"].clone();
        if code == 0 {
            assert!(found(&report).as_array().is_some_and(|found| !found.is_empty()), "{report:#}");
            assert_eq!(found(&again["report"]), found(&report));
        } else {
            assert_eq!(again["report"]["error"]["class"], "findings");
        }
        assert!(replay(&file, &[]).code(0).stdout.ends_with("the same end as in the bundle: findings\n"));
        std::fs::remove_file(&file).unwrap();
    }
    assert!(bundles(folder.path()).is_empty(), "findings leave none that nobody asked for");
}

#[test]
fn a_bundle_has_kernels_arrays_and_options_and_needs_no_other_file() {
    let (folder, elsewhere) = (folder(), folder());
    let bundle = elsewhere.path().join("all.zip");
    let elf = repository().join("firmware/prebuilt/spin.elf");
    std::fs::create_dir(folder.path().join("inner")).unwrap();
    std::fs::copy(elf, folder.path().join("kernel.elf")).unwrap();
    std::fs::copy(repository().join("examples/increment/x.npy"), folder.path().join("x.npy")).unwrap();
    let input = "[buffers.x]\nuse = \"input\"\ndtype = \"u32\"\npage_size = 512\n";
    let text = program(&format!("{input}{WORD}"), "../kernel.elf", "[\"word.addr\"]");
    let board = "name = 'lab-7'\nbase = 'p150'\n[harvested]\ntensix_columns = [10, 16]\n";
    std::fs::write(folder.path().join("board.toml"), board).unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let more = [
        ["--input", &format!("x={}", at("x.npy"))],
        ["--board", &at("board.toml")],
        ["--dispatch-layout", "split"],
        ["--transfers", "windows"],
        ["--bundle", bundle.to_str().unwrap()],
    ];
    run(&folder.path().join("inner"), &text, &more.concat()).code(1).says("deadlock");
    let kept = entries(&bundle);
    let names: Vec<&str> = kept.keys().map(String::as_str).collect();
    let expected = ["board.toml", "bundle.json", "inputs/0.npy", "kernels/0.elf", "program.toml", "report.json"];
    assert_eq!(names, expected);
    assert_eq!(kept["program.toml"], text.as_bytes());
    assert!(kept["kernels/0.elf"] == std::fs::read(at("kernel.elf")).unwrap());
    let manifest: Value = serde_json::from_slice(&kept["bundle.json"]).unwrap();
    assert_eq!(manifest["options"]["dispatch_layout"], "split");
    let report: Value = serde_json::from_slice(&kept["report.json"]).unwrap();
    assert_eq!((&report["schema"], &report["error"]["class"]), (&json!(1), &json!("deadlock")));
    assert!(report["error"]["waiting"].is_array() && report["error"]["queue"]["around"].is_array());
    drop(folder);
    let again = replay(&bundle, &["--report", "json"]).code(0).json();
    assert_eq!((&again["same"], &again["report"]["error"]["class"]), (&json!(true), &json!("deadlock")), "{again}");
}

#[test]
fn a_bundle_has_the_firmware_of_others() {
    let (folder, elsewhere) = (folder(), folder());
    let firmware = folder.path().join("fw");
    std::fs::create_dir(&firmware).unwrap();
    for name in ["brisc.elf", "ncrisc.elf", "trisc0.elf", "trisc1.elf", "trisc2.elf"] {
        std::fs::copy(repository().join("firmware/prebuilt").join(name), firmware.join(name)).unwrap();
    }
    let bundle = elsewhere.path().join("fw.zip");
    let more = ["--firmware", firmware.to_str().unwrap(), "--bundle", bundle.to_str().unwrap()];
    run(folder.path(), &hang(), &more).code(1).says("deadlock");
    assert!(entries(&bundle)["firmware/brisc.elf"] == std::fs::read(firmware.join("brisc.elf")).unwrap());
    drop(folder);
    assert_eq!(replay(&bundle, &["--report", "json"]).code(0).json()["same"], true);
}

#[test]
fn another_end_than_that_of_the_bundle_is_told() {
    let folder = folder();
    run(folder.path(), &hang(), &[]).code(1);
    let [bundle] = &bundles(folder.path())[..] else { panic!("one bundle") };
    let mut kept = entries(bundle);
    let mut report: Value = serde_json::from_slice(&kept["report.json"]).unwrap();
    let cycle = report["error"]["cycle"].clone();
    report["error"]["cycle"] = json!(1);
    kept.insert("report.json".into(), serde_json::to_vec(&report).unwrap());
    let changed = folder.path().join("changed.zip");
    write(&changed, &kept);
    let ended = replay(&changed, &[]).code(1).says("the run does not end as in the bundle");
    assert!(ended.stdout.contains(&format!("error.cycle: 1 in the bundle, {cycle} now")), "{}", ended.stdout);
    let report = replay(&changed, &["--report", "json"]).code(1).json();
    assert_eq!((&report["error"]["class"], &report["same"]), (&json!("replay"), &json!(false)));
    assert_eq!(report["differences"][0], json!({"at": "error.cycle", "then": 1, "now": cycle}));
}

#[test]
fn a_file_that_is_no_good_bundle_is_refused() {
    let folder = folder();
    run(folder.path(), &hang(), &[]).code(1);
    let [bundle] = &bundles(folder.path())[..] else { panic!("one bundle") };
    let (kept, bytes) = (entries(bundle), std::fs::read(bundle).unwrap());
    let file = folder.path().join("wrong.zip");
    let refused = |expected: &str| {
        let report = replay(&file, &["--report", "json"]).code(2).says(expected).json();
        assert_eq!(report["error"]["class"], "refused", "{expected}");
    };
    for (length, expected) in [(0, "not a bundle"), (bytes.len() / 2, "not a bundle")] {
        std::fs::write(&file, &bytes[..length]).unwrap();
        refused(expected);
    }
    // A byte of the data of the first entry, behind its header.
    let mut damaged = bytes.clone();
    damaged[60] ^= 0x55;
    std::fs::write(&file, damaged).unwrap();
    refused("bundle.json");
    let with = |name: &str, entry: &[u8]| {
        let mut kept = kept.clone();
        kept.insert(name.to_owned(), entry.to_vec());
        write(&file, &kept);
    };
    let manifest = |change: &dyn Fn(&mut Value)| {
        let mut manifest: Value = serde_json::from_slice(&kept["bundle.json"]).unwrap();
        change(&mut manifest);
        serde_json::to_vec(&manifest).unwrap()
    };
    with("../escaped", b"x");
    refused("an entry that bundles do not have");
    with("bundle.json", &manifest(&|m| m["bundle"] = json!(2)));
    refused("a bundle of form 2");
    with("bundle.json", &manifest(&|m| m["run"] = json!("rm")));
    refused("unknown field `run`");
    // A board by path, a kernel that is not in the bundle, an option that is none.
    with("bundle.json", &manifest(&|m| m["options"]["board"] = json!("/etc/passwd.toml")));
    refused("no board is named");
    with("bundle.json", &manifest(&|m| m["kernels"] = json!(["/etc/passwd"])));
    refused("came without the kernel \"prebuilt:spin\"");
    with("bundle.json", &manifest(&|m| m["options"]["dispatch"] = json!("--chip=x.so")));
    refused("--dispatch");
    with("kernels/0.elf", b"no ELF file");
    refused("program.toml");
    let mut many = kept.clone();
    many.extend((0..300).map(|i| (format!("firmware/{i}"), Vec::new())));
    write(&file, &many);
    refused("a bundle has at most 256");
    tilework(&["replay", "/does/not/exist.zip"]).code(2).says("/does/not/exist.zip");
}

#[test]
fn options_without_an_effect_are_refused() {
    let folder = folder();
    let refused = |more: &[&str], expected: &str| {
        run(folder.path(), &hang(), more).code(2).says(expected);
    };
    for option in [["--bundle", "b.zip"], ["--checks", "warn"], ["--allow", "l1-null"]] {
        let why = format!("{} needs the built-in chip: leave out --chip", option[0]);
        // Without such a library the run ends there; options of the bundle are refused before.
        if option[0] == "--bundle" {
            refused(&[&option[..], &["--chip", "none.so"]].concat(), &why);
        }
    }
    refused(&["--checks", "off,error"], "--checks: off and error exclude each other");
    refused(&["--checks", "off", "--checks", "races"], "--checks: off and races exclude each other");
    refused(&["--checks", "loud"], "expected off (check nothing), warn (report findings), error");
    refused(&["--checks", "off", "--allow", "l1-null"], "--allow has no effect with --checks off");
    refused(&["--allow", "l1-nul"], "no finding has the id \"l1-nul\"; there is l1-null");
    refused(&["--allow", "l1-null@"], "expected ID, ID@KERNEL");
    let text = format!("allow = [\"l1-null@spin\", \"l1-nul\"]\n{}", hang());
    run(folder.path(), &text, &[]).code(2).says("program.toml:1:26: allow: no finding has the id");
    let ring = example("ring").display().to_string();
    tilework(&["check", &ring, "--checks", "error"]).code(2).says("--checks needs --expect DIR");
    let netlist = repository().join("crates/buda/tests/data/ring.yaml").display().to_string();
    let out = folder.path().join("out").display().to_string();
    let ended = tilework(&["run", &netlist, "--out", &out, "--checks", "warn"]);
    ended.code(2).says("--checks is for kernel programs (.toml)");
    assert!(bundles(folder.path()).is_empty());
}

#[test]
fn a_run_reports_what_it_looked_for() {
    let folder = folder();
    let input = example_input("increment");
    let file = example("increment").display().to_string();
    let out = folder.path().join("out").display().to_string();
    let report = |more: &[&str]| {
        let args = ["run", &file, "--input", &input, "--out", &out, "--report", "json"];
        tilework(&[&args, more].concat()).code(0).json()
    };
    let usual = report(&[]);
    assert_eq!((&usual["checks"]["level"], &usual["checks"]["races"]), (&json!("warn"), &json!(false)));
    assert_eq!(usual["checks"]["findings"], json!([]));
    assert!(report(&["--checks", "off"]).get("checks").is_none());
    let allowed = report(&["--checks", "error", "--checks=races", "--allow", "l1-null@increment.rs:4"]);
    assert_eq!((&allowed["checks"]["level"], &allowed["checks"]["races"]), (&json!("error"), &json!(true)));
    assert_eq!(allowed["checks"]["unused_allow"], json!(["l1-null@increment.rs:4"]));
    assert_eq!(allowed["cycles"], usual["cycles"], "looking changes nothing");
}

#[test]
fn help_lists_what_looks_into_a_run_by_itself() {
    let text = |words: &str| tilework(&words.split(' ').collect::<Vec<_>>()).code(0).stdout;
    let usual = text("run --help");
    assert!(!usual.contains("--allow") && usual.contains("tilework help run inspect"), "{usual}");
    let inspect = text("help run inspect");
    for option in ["--checks", "--allow", "--bundle", "--no-bundle", "--out"] {
        assert!(inspect.contains(option), "{option}: {inspect}");
    }
    assert!(!inspect.contains("--dispatch <"), "{inspect}");
    assert_eq!(inspect, text("run --help inspect"));
    assert!(text("help check inspect").contains("--checks") && !text("help show").contains("inspect"));
    assert!(text("help run model").contains("tilework help run inspect"));
}
