//! Hostile surroundings: files that are none, targets that cannot be written, runs that were
//! killed, names that a terminal would obey.
#![cfg(unix)]

use crate::common;
use common::{Ended, example, files, folder, limited, repository, run_text, tilework, write_npy};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A kernel that computes for a very long time.
const ENDLESS: &str = "name = \"t\"\n[buffers.y]\nuse = \"output\"\ndtype = \"u32\"\nshape = [16]\npage_size = 64\n\
                       [[roles]]\ncores = 1\nbrisc = { elf = \"prebuilt:busy\", args = [4000000000, 0x40000] }\n";

fn model(name: &str) -> String {
    repository().join("crates/model/tests/data/0.1.0").join(name).display().to_string()
}

fn netlist(name: &str) -> String {
    repository().join("crates/buda/tests/data").join(name).display().to_string()
}

/// Runs `tilework`, which must end within seconds.
#[track_caller]
fn soon(args: &[&str]) -> Ended {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tilework"))
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
            panic!("{args:?} does not end");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    Ended {
        code: output.status.code().unwrap(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Asserts that a command says nothing that a terminal would obey.
#[track_caller]
fn harmless(ended: &Ended) {
    for text in [&ended.stdout, &ended.stderr] {
        assert!(!text.contains(|c: char| c.is_control() && c != '\n' && c != '\t'), "{text:?}");
    }
}

#[test]
fn every_command_refuses_pipes_and_endless_devices_at_once() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (ring, out) = (example("ring").to_str().unwrap().to_owned(), at("out"));
    for kind in ["pipe", "zero"] {
        let make = |name: &str| {
            let path = at(&format!("{kind}-{name}"));
            match kind {
                "pipe" => pipe(path.as_ref()),
                _ => std::os::unix::fs::symlink("/dev/zero", &path).unwrap(),
            }
            path
        };
        let [toml, ttnn, ttm, ttsys, yaml] = ["x.toml", "x.ttnn", "x.ttm", "x.ttsys", "x.yaml"].map(make);
        let [npy, npz, safetensors, so, any] = ["x.npy", "x.npz", "x.safetensors", "lib.so", "any"].map(make);
        std::fs::create_dir(at(&format!("{kind}-firmware"))).unwrap();
        make("firmware/brisc.elf");
        let firmware = at(&format!("{kind}-firmware"));
        let input = |file: &str| format!("in={file}");
        let mut commands: Vec<Vec<&str>> = Vec::new();
        for file in [&toml, &ttnn, &ttm, &ttsys, &yaml, &any] {
            commands.extend([vec!["check", file], vec!["show", file], vec!["run", file, "--out", &out]]);
            commands.push(vec!["check", file, "--expect", &out]);
        }
        let inputs = [input(&npy), input(&npz), input(&safetensors)];
        let (ttnn_file, yaml_file) = (model("atan2.ttnn"), netlist("ring.yaml"));
        for given in &inputs {
            commands.push(vec!["run", &ring, "--out", &out, "--input", given]);
            commands.push(vec!["run", &yaml_file, "--out", &out, "--input", given]);
            commands.push(vec!["check", &ring, "--input", given]);
        }
        let numbered = format!("0={npy}");
        commands.push(vec!["run", &ttnn_file, "--out", &out, "--input", &numbered]);
        commands.push(vec!["run", &ring, "--out", &out, "--firmware", &firmware]);
        commands.push(vec!["run", &ring, "--out", &out, "--chip", &so]);
        commands.push(vec!["run", &ring, "--out", &out, "--board", &toml]);
        commands.push(vec!["simdir", &out, "--library", &so]);
        commands.push(vec!["board", &toml]);
        commands.push(vec!["disasm", &any]);
        commands.push(vec!["cq", "decode", &any]);
        for command in commands {
            let ended = soon(&command);
            assert_eq!(ended.code, 2, "{command:?}\n{}", ended.stderr);
            // What has no name of a known kind is refused for that, and not opened.
            let is_of_no_kind = command[1] == any && command[0] != "disasm";
            let why = if is_of_no_kind { "not a compiled model, a netlist or a program" } else { "not a regular file" };
            assert!(ended.stderr.contains(why), "{command:?}\n{}", ended.stderr);
        }
    }
}

#[test]
fn targets_are_checked_before_anything_runs() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(at("p.toml"), ENDLESS).unwrap();
    pipe(at("pipe.cq").as_ref());
    let run = |more: &[&str]| soon(&[&["run", &at("p.toml"), "--out", &at("out")], more].concat()).code(1);
    for option in ["--capture", "--coverage"] {
        run(&[option, &at("missing/c")]).says("cannot write").says("missing/c");
        run(&[option, &at("pipe.cq")]).says("a folder, link or device is there");
    }
    assert!(!Path::new(&at("out")).exists(), "nothing was begun");
    // The place of an output.
    std::fs::create_dir_all(at("out/y.npy")).unwrap();
    run(&[]).says("cannot write").says("y.npy: a folder");
    std::fs::write(at("file"), "").unwrap();
    soon(&["run", &at("p.toml"), "--out", &at("file/out")]).code(1).says("cannot make the folder");
    let capture = ["--capture", &at("c"), "--coverage", &at("c")];
    soon(&[&["run", &at("p.toml"), "--out", &at("out2")], &capture[..]].concat()).code(2).says("would replace");

    let trace = at("missing/t.json");
    let yaml = netlist("ring.yaml");
    let netlist = ["run", &yaml, "--stimulus", "index", "--out", &at("n"), "--trace", &trace];
    soon(&netlist).code(1).says("cannot write").says("t.json");
    soon(&["pto", "run", "flash", "--trace", &trace]).code(1).says("cannot write").says("t.json");
    assert!(!Path::new(&at("n")).exists());
    std::fs::create_dir_all(at("m/out0.npy")).unwrap();
    let inputs = ["--input", "0=random:1", "--input", "1=random:2"];
    let ended = soon(&[&["run", &model("atan2.ttnn"), "--out", &at("m")], &inputs[..]].concat()).code(1);
    ended.says("out0.npy: a folder");
}

#[test]
fn a_failed_run_leaves_nothing_that_looks_like_its_result() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let old = |out: &str, names: &[&str]| {
        std::fs::create_dir_all(at(out)).unwrap();
        names.iter().for_each(|name| std::fs::write(at(&format!("{out}/{name}")), "old").unwrap());
    };
    // A kernel program that runs out of cycles. What was captured of it is new.
    old("out", &["y.npy", "mine.npy", "c.cq"]);
    let capture = at("out/c.cq");
    run_text(folder.path(), ENDLESS, &["--max-cycles", "1000000", "--capture", &capture]).code(1);
    assert_eq!(files(&folder.path().join("out")), ["c.cq", "mine.npy"]);
    assert_ne!(std::fs::read(&capture).unwrap(), b"old");
    // A model whose outputs do not fit.
    old("m", &["out0.npy", "out1_dev0.npy", "changed_in2.npy", "p0_op0001_EltwiseBinaryOp_0.npy", "outer.npy"]);
    let inputs = ["--input", "0=random:1", "--input", "1=random:2"];
    let (atan2, into) = (model("atan2.ttnn"), at("m"));
    let args = [&["run", &atan2, "--out", &into], &inputs[..]].concat();
    limited("ulimit -f 1", &[], &args).code(1).says("out0.npy");
    assert_eq!(files(&folder.path().join("m")), ["outer.npy", "p0_op0001_EltwiseBinaryOp_0.npy"]);
    limited("ulimit -f 1", &[], &[&args[..], &["--dump-op", "all"]].concat()).code(1);
    assert_eq!(files(&folder.path().join("m")), ["outer.npy"]);
    // A netlist that runs out of steps.
    old("n", &["out.npy", "other.npy"]);
    let yaml = netlist("control.yaml");
    let for_ever = ["--stimulus", "index", "--program", "for_ever", "--max-steps", "1000"];
    soon(&[&["run", &yaml, "--out", &at("n")], &for_ever[..]].concat()).code(1).says("--max-steps");
    assert_eq!(files(&folder.path().join("n")), ["other.npy"]);
    // What is refused leaves everything as it was: nothing has run.
    old("r", &["out0.npy"]);
    tilework(&["run", &model("atan2.ttnn"), "--out", &at("r")]).code(2);
    assert_eq!(std::fs::read(at("r/out0.npy")).unwrap(), b"old");
}

#[test]
fn a_run_does_not_lose_an_input_that_it_replaces() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    write_npy(&folder.path().join("out0.npy"), &[32, 32], &[0.5_f32; 1024]);
    let before = std::fs::read(at("out0.npy")).unwrap();
    let given = format!("0={}", at("out0.npy"));
    let inputs = ["--input", &given, "--input", "1=random:2"];
    let (atan2, into) = (model("atan2.ttnn"), at(""));
    let args = [&["run", &atan2, "--out", &into], &inputs[..]].concat();
    limited("ulimit -f 1", &[], &args).code(1).says("out0.npy");
    assert_eq!(std::fs::read(at("out0.npy")).unwrap(), before);
    tilework(&args).code(0);
    assert_ne!(std::fs::read(at("out0.npy")).unwrap(), before);
}

#[test]
fn temporary_files_are_not_left_not_named_and_cleared_after_a_kill() {
    let folder = folder();
    let out = folder.path().join("out");
    let text = "name = \"t\"\n[buffers.y]\nuse = \"output\"\ndtype = \"u32\"\nshape = [8388608]\npage_size = 65536\n\
                [[roles]]\ncores = 1\nbrisc = { elf = \"prebuilt:empty\" }\n";
    let file = folder.path().join("program.toml");
    std::fs::write(&file, text).unwrap();
    let args = ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
    // A file longer than the limit.
    let failed = limited("ulimit -f 1000", &[], &args).code(1).says("cannot write").says("y.npy: File too large");
    assert!(!failed.stderr.contains(".tilework-"), "{}", failed.stderr);
    assert_eq!(files(&out), [""; 0]);
    // Killed while it writes.
    let is_temporary = |name: &String| name.starts_with(".tilework-");
    let has_bytes = |name: &String| std::fs::metadata(out.join(name)).is_ok_and(|file| file.len() > 0);
    let mut child = Command::new(env!("CARGO_BIN_EXE_tilework")).args(args).stdout(Stdio::null()).spawn().unwrap();
    while !files(&out).iter().any(|name| is_temporary(name) && has_bytes(name)) {
        assert!(child.try_wait().unwrap().is_none(), "it has ended before it could be killed");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(files(&out).iter().any(is_temporary), "{:?}", files(&out));
    // The next run clears them, also where the capture goes.
    let captures = folder.path().join("captures");
    std::fs::create_dir(&captures).unwrap();
    std::fs::write(captures.join(".tilework-1-0"), "left").unwrap();
    let capture = captures.join("c.cq");
    tilework(&[&args[..], &["--capture", capture.to_str().unwrap()]].concat()).code(0);
    assert_eq!(files(&out), ["y.npy"]);
    assert_eq!(files(&captures), ["c.cq"]);
}

#[test]
fn names_of_files_are_shown_without_what_a_terminal_obeys() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let changed = |from: &Path, to: &str, changes: &[(&[u8], &[u8])]| {
        let mut bytes = std::fs::read(from).unwrap();
        for (old, new) in changes {
            assert_eq!(old.len(), new.len());
            let found: Vec<usize> = (0..bytes.len() - old.len()).filter(|&i| bytes[i..].starts_with(old)).collect();
            assert!(!found.is_empty(), "nothing to replace");
            found.into_iter().for_each(|at| bytes[at..at + new.len()].copy_from_slice(new));
        }
        std::fs::write(at(to), bytes).unwrap();
        at(to)
    };
    // A model: the name of its program, of an input, and where operations come from.
    let original = model("atan2.ttnn");
    let evil: [(&[u8], &[u8]); 3] = [
        (b"\x04\0\0\0main", b"\x04\0\0\0\x1b[2J"),
        (b"loc(\"x1\")", b"loc(\"\x1bc\")"),
        (b"jit(arct", b"jit(\n\x9b2J"),
    ];
    // 9b alone is not UTF-8; c2 9b is the control character of that number.
    let evil = [evil[0], evil[1], (evil[2].0, b"jit(\n\xc2\x9bJ" as &[u8])];
    let file = changed(original.as_ref(), "evil.ttnn", &evil);
    let shown = tilework(&["show", &file, "--ops"]).code(0);
    harmless(&shown);
    assert!(shown.stdout.contains("program 0 \\u{1b}[2J, mesh"), "{}", shown.stdout);
    harmless(&tilework(&["show", &file, "--mlir"]).code(0));
    let both = ["--input", "0=random:1", "--input", "1=random:2", "--out", &at("out")];
    let run = tilework(&[&["run", &file], &both[..]].concat()).code(0);
    harmless(&run);
    assert!(run.stdout.starts_with("\\u{1b}[2J on the chip"), "{}", run.stdout);
    harmless(&tilework(&[&["run", &file, "--entry", "x"], &both[..]].concat()).code(2).says("\\u{1b}[2J"));
    // A netlist and a kernel program are refused with the place of the name.
    let yaml = std::fs::read_to_string(netlist("ring.yaml")).unwrap();
    std::fs::write(at("n.yaml"), yaml.replace("  out:", "  \"out\\e[2J\\n\":")).unwrap();
    for command in ["check", "show"] {
        let ended = tilework(&[command, &at("n.yaml")]);
        harmless(&ended);
        assert!(ended.code != 0 && (ended.stdout + &ended.stderr).contains("`out\\u{1b}[2J\\n`"));
    }
    for text in [
        "name = \"t\\u001b[2J\"\n[[roles]]\ncores = 1\nbrisc = { elf = \"prebuilt:empty\" }\n",
        "name = \"t\"\n[[roles]]\nname = \"a\\nb\"\ncores = 1\nbrisc = { elf = \"prebuilt:empty\" }\n",
        "name = \"t\"\n[[roles]]\ncores = 1\nbrisc = { elf = \"a\\u009b2J.elf\" }\n",
        "name = \"t\"\n\"x\\u001b[2J\" = 1\nroles = []\n",
    ] {
        let ended = run_text(folder.path(), text, &[]).code(2);
        harmless(&ended);
        assert!(ended.stderr.contains("program.toml:"), "{}", ended.stderr);
    }
    // Functions of a kernel.
    let kernel = repository().join("firmware/prebuilt/eltwise-math.elf");
    let file = changed(&kernel, "evil.elf", &[(b"\0_start\0", b"\0\x1b[2J\nx\0")]);
    let listed = tilework(&["disasm", &file]).code(0);
    harmless(&listed);
    assert!(listed.stdout.contains("\\u{1b}[2J\\nx ("), "{}", &listed.stdout[..400]);
    // Paths.
    for name in ["\u{1b}[2J.toml", "a\nb.ttnn", "\u{9b}2J.yaml", "\u{202e}x.npy"] {
        for command in ["check", "show"] {
            let ended = tilework(&[command, &at(name)]).code(2);
            harmless(&ended);
            assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        }
    }
}
