//! Limits of the machine end a command with an error that names what was missing: never by a
//! signal, never by a panic.
#![cfg(target_os = "linux")]

use crate::common;
use common::{example, files, folder, limited, repository, tilework};
use std::fmt::Write;
use std::process::Command;

fn model(name: &str) -> String {
    repository().join("crates/model/tests/data/0.1.0").join(name).display().to_string()
}

#[test]
fn an_output_of_four_gigabytes_under_less_memory() {
    let folder = folder();
    let (file, out) = (folder.path().join("p.toml"), folder.path().join("out"));
    let text = "name = \"t\"\n[buffers.y]\nuse = \"output\"\ndtype = \"u32\"\nshape = [1073741824]\npage_size = 65536\n\
                [[roles]]\ncores = 1\nbrisc = { elf = \"prebuilt:empty\" }\n";
    std::fs::write(&file, text).unwrap();
    let args = ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap(), "--report", "json"];
    let ended = limited("ulimit -v 3000000", &[], &args).code(1);
    assert_eq!(ended.json()["error"]["class"], "memory");
    ended.says("buffer y: not enough memory of the host for its 4294967296 bytes");
    assert_eq!(files(&out), [""; 0]);
}

#[test]
fn an_array_of_four_gigabytes_under_less_memory() {
    let folder = folder();
    let file = folder.path().join("x.npy");
    let mut bytes =
        b"\x93NUMPY\x01\x00\x76\x00{'descr': '<u4', 'fortran_order': False, 'shape': (1073741792,), }".to_vec();
    bytes.resize(127, b' ');
    bytes.push(b'\n');
    std::fs::write(&file, bytes).unwrap();
    std::fs::File::options().write(true).open(&file).unwrap().set_len(4 << 30).unwrap();
    let (increment, out) = (example("increment"), folder.path().join("out"));
    let given = format!("x={}", file.display());
    let args = ["run", increment.to_str().unwrap(), "--input", &given, "--out", out.to_str().unwrap()];
    limited("ulimit -v 3000000", &[], &args).code(1).says("not enough memory for the 4294901760 bytes of");
}

#[test]
fn memory_that_runs_out_anywhere() {
    let folder = folder();
    let (file, out) = (folder.path().join("p.toml"), folder.path().join("out"));
    let text = "name = \"t\"\n[buffers.y]\nuse = \"output\"\ndtype = \"f32\"\nlayout = \"tile\"\n\
                shape = [8192, 8192]\npage_size = 4096\n\
                [[roles]]\ncores = 1\nbrisc = { elf = \"prebuilt:empty\" }\n";
    std::fs::write(&file, text).unwrap();
    let args = ["run", file.to_str().unwrap(), "--out", out.to_str().unwrap()];
    // Room for more and more of what comes of the elements, but not for all of it. Checks need more
    // for themselves.
    let unchecked = [&args[..], &["--checks", "off"]].concat();
    let limits = [600_000, 750_000, 800_000, 850_000, 950_000].map(|limit| (limit, &unchecked[..]));
    for (limit, args) in limits.into_iter().chain([(900_000, &args[..]), (950_000, &args)]) {
        let ended = limited(&format!("ulimit -v {limit}"), &[], args).code(1);
        assert_eq!(files(&out), [""; 0]);
        ended.says("not enough memory of the host for");
    }
}

#[test]
fn threads_that_cannot_be_had() {
    let out = folder();
    let out = out.path().to_str().unwrap();
    let inputs = ["--input", "0=random:1", "--input", "1=random:2"];
    let many = [("RAYON_NUM_THREADS", "60000")];
    let atan2 = model("atan2.ttnn");
    let args = [&["run", &atan2, "--out", out, "--report", "json"], &inputs[..]].concat();
    let ended = limited("ulimit -v 4000000", &many, &args).code(1);
    assert_eq!(ended.json()["error"]["class"], "threads");
    ended.says("cannot start the threads of the arithmetic").says("RAYON_NUM_THREADS");
    let netlist = repository().join("crates/buda/tests/data/constants.yaml").display().to_string();
    let run = ["run", &netlist, "--stimulus", "index", "--program", "prologue", "--out", out];
    limited("ulimit -v 4000000", &many, &run).code(1).says("cannot start the threads of the arithmetic");
    // The chip does with fewer.
    let ring = example("ring").display().to_string();
    limited("ulimit -v 4000000", &[], &["run", &ring, "--out", out, "--threads", "4000000000"]).code(0);
}

/// The less memory, the earlier a command ends; below what the system's loader needs it does not
/// even begin, and a signal ends it.
#[test]
fn a_command_that_gets_no_thread_of_its_own() {
    let begun = (16_000..80_000).step_by(2000).find_map(|limit| {
        let limited = format!("ulimit -v {limit}; exec \"$0\" board");
        let output = Command::new("sh").args(["-c", &limited, env!("CARGO_BIN_EXE_tilework")]).output().unwrap();
        // 127 is the loader's.
        let code = output.status.code().filter(|code| *code != 127)?;
        Some((code, String::from_utf8(output.stderr).unwrap()))
    });
    let (code, said) = begun.expect("it begins with 80 MB");
    assert_eq!(code, 1, "{said}");
    assert!(said.starts_with("error: cannot start a thread with 8388608 bytes of stack: "), "{said}");
}

#[test]
fn small_stacks_change_nothing() {
    let out = folder();
    let out = out.path().to_str().unwrap();
    let small = [("RUST_MIN_STACK", "16384")];
    let ring = example("ring").display().to_string();
    limited("ulimit -s 128", &small, &["run", &ring, "--out", out, "--threads", "2"]).code(0);
    let inputs = ["--input", "0=random:1", "--input", "1=random:2"];
    let atan2 = model("atan2.ttnn");
    let args = [&["run", &atan2, "--out", out], &inputs[..]].concat();
    limited("ulimit -s 128", &small, &args).code(0);
    let netlist = repository().join("crates/buda/tests/data/constants.yaml").display().to_string();
    for mode in ["sequential", "concurrent"] {
        let run = ["run", &netlist, "--stimulus", "index", "--program", "prologue", "--out", out, "--mode", mode];
        limited("ulimit -s 128", &small, &run).code(0);
    }
}

#[test]
fn two_hundred_thousand_findings_are_summed_up() {
    let folder = folder();
    let original = std::fs::read_to_string(repository().join("crates/buda/tests/data/ring.yaml")).unwrap();
    let mut text = original.replace("queues:\n", "queues:\n  many: {type: queue, input: HOST");
    let at = text.find("input: HOST").unwrap() + "input: HOST".len();
    let mut fields = String::new();
    for i in 0..200_000 {
        write!(fields, ", wrong_{i}: 1").unwrap();
    }
    text.insert_str(at, &(fields + "}\n"));
    let file = folder.path().join("n.yaml");
    std::fs::write(&file, text).unwrap();
    let ended = tilework(&["check", file.to_str().unwrap()]).code(2);
    assert!(ended.stdout.len() < 1 << 20, "{} bytes", ended.stdout.len());
    let end: Vec<&str> = ended.stdout.lines().rev().take(3).collect();
    assert!(end.iter().any(|line| line.contains("x N0010 unknown-field")), "{end:?}");
    ended.says("200");
}
