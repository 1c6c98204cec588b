//! `tilework card`: how it starts programs and how it ends.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn card(words: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilework")).arg("card").args(words).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_program_finds_the_files_of_the_card() {
    let script = "ls /dev/tenstorrent; test -c /dev/tenstorrent/0 && echo device; \
                  cat '/sys/class/tenstorrent/tenstorrent!0/tt_card_type' /sys/bus/pci/devices/0000:01:00.0/vendor \
                  /sys/module/tenstorrent/version";
    let output = card(&["--board", "p100", "--", "bash", "-c", script]);
    assert_eq!(text(&output.stdout), "0\ndevice\np100a\n0x1e52\n2.10.1\n", "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    // It asks for extended attributes, too.
    let output = card(&["--board", "p100", "--", "ls", "-l", "/dev/tenstorrent"]);
    let listed = text(&output.stdout);
    assert!(listed.contains("crw-rw-rw-") && listed.contains("240, 0"), "{listed}");
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn a_board_for_each_card_of_the_machine() {
    let script = "ls /dev/tenstorrent /sys/class/tenstorrent; cat /sys/class/tenstorrent/*/tt_card_type; \
                  cat /sys/class/tenstorrent/*/tt_serial; exec 3<>/dev/tenstorrent/1";
    let output = card(&["--board", "p100", "--board", "p150", "--", "bash", "-c", script]);
    let expected = "/dev/tenstorrent:\n0\n1\n\n/sys/class/tenstorrent:\ntenstorrent!0\ntenstorrent!1\n\
                    p100a\np150b\n0000043000000001\n0000041000000002\n";
    assert_eq!(text(&output.stdout), expected, "{}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0));
    let many = ["--board", "p100"].repeat(9);
    let output = card(&[&many[..], &["--", "true"]].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("8 cards at most"), "{}", text(&output.stderr));
}

#[test]
fn the_exit_code_is_the_programs() {
    assert_eq!(card(&["--", "sh", "-c", "exit 7"]).status.code(), Some(7));
    assert_eq!(card(&["--", "sh", "-c", "kill -TERM $$"]).status.code(), Some(128 + 15));
}

#[test]
fn programs_that_cannot_be_served_are_refused() {
    let output = card(&["--", "/no/such/program"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("cannot be started"), "{}", text(&output.stderr));
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("main.c"), folder.path().join("main"));
    std::fs::write(&source, "int main(void) { return 0; }").unwrap();
    match Command::new("cc").arg("-static").arg("-o").arg(&program).arg(&source).output() {
        Ok(made) if made.status.success() => {
            let output = card(&["--", program.to_str().unwrap()]);
            assert_eq!(output.status.code(), Some(103));
            assert!(text(&output.stderr).contains("statically linked"), "{}", text(&output.stderr));
            // So is a script of it; one that a served program starts runs on, and this is told.
            let script = folder.path().join("script");
            std::fs::write(&script, format!("#!{}\n", program.display())).unwrap();
            let output = card(&["--", script.to_str().unwrap()]);
            assert_eq!(output.status.code(), Some(103));
            let why = format!("{}: is statically linked", program.display());
            assert!(text(&output.stderr).contains(&why), "{}", text(&output.stderr));
            let twice = format!("{0} && {0}", program.display());
            let output = card(&["--", "sh", "-c", &twice]);
            assert_eq!(output.status.code(), Some(0));
            let said = text(&output.stderr);
            assert_eq!(said.matches("statically linked").count(), 1, "{said}");
            assert!(said.contains("it finds no card"), "{said}");
        }
        _ => println!("a static program is left out: cc -static does not make one"),
    }
}

#[test]
fn options_that_cannot_work_are_refused_with_the_reason() {
    for (words, why) in [
        (&["--gdb", "1234", "--board", "p100", "--board", "p100"][..], "with one card"),
        (&["--bundle", "b.zip", "--gdb", "1234"], "does not work with --gdb"),
        (&["--bundle", "/no/such/folder/b.zip"], "--bundle"),
        (&["--trace-cycles", "1..2"], "needs --trace FILE"),
        (&["--findings", "f.json"], "needs --checks WORDS"),
        (&["--checks", "wran"], "--checks: "),
        (&["--trace", "t.png"], "--trace: "),
        (&["--counts", "/no/such/folder/c.json"], "no file can be written there"),
    ] {
        let mut all = words.to_vec();
        all.extend(["--", "true"]);
        let output = card(&all);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(text(&output.stderr).contains(why), "{words:?}: {}", text(&output.stderr));
    }
}

#[test]
fn what_was_moved_and_a_timeline_are_written_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let (counts, trace) = (folder.path().join("c.json"), folder.path().join("t.txt"));
    // A shell opens the device; the card is made then.
    let script = "cd / && exec 3<>/dev/tenstorrent/0";
    let output =
        card(&["--counts", counts.to_str().unwrap(), "--trace", trace.to_str().unwrap(), "--", "bash", "-c", script]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let counts: serde_json::Value = serde_json::from_slice(&std::fs::read(counts).unwrap()).unwrap();
    assert!(counts["bar_reads"].as_u64() > Some(0), "{counts}");
    assert_eq!(counts["host_memory_bytes_read_by_card"], 0);
    assert!(trace.is_file());
}

/// Builds the program in Go, with C code or without. `None` if that is not possible, which is told.
fn build_go(folder: &Path, with_c: bool) -> Option<PathBuf> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/card_go");
    let program = folder.join(if with_c { "with-c" } else { "without-c" });
    let files = if with_c { &["card.go", "cgo.go"][..] } else { &["card.go"] };
    let made = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .args(files.iter().map(|file| sources.join(file)))
        .env("CGO_ENABLED", if with_c { "1" } else { "0" })
        .env("GO111MODULE", "off")
        .env("GOFLAGS", "")
        .env("GOCACHE", folder.join("cache"))
        .current_dir(folder)
        .output();
    match made {
        Ok(output) if output.status.success() => Some(program),
        Ok(output) => {
            println!("left out: go build: {}", text(&output.stderr));
            None
        }
        Err(error) => {
            println!("left out: go does not start: {error}");
            None
        }
    }
}

#[test]
fn programs_in_go_are_served_or_told() {
    let folder = tempfile::tempdir().unwrap();
    let Some(without) = build_go(folder.path(), false) else { return };
    let without = without.to_str().unwrap();
    let no_library = "is statically linked, and the card's library cannot be loaded into it";
    // Alone, it is not started.
    let output = card(&["--board", "p100", "--", without]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(103), String::new()));
    assert!(text(&output.stderr).contains(no_library), "{}", text(&output.stderr));
    let Some(with) = build_go(folder.path(), true) else { return };
    let with = with.to_str().unwrap();
    // The runtime's own handler of the signal of a trap is there behind each.
    let broken = "runtime error: invalid memory address or nil pointer dereference\n";
    let output = card(&["--board", "p100", "--", with]);
    let said = format!("all words are back\n{broken}");
    assert_eq!((output.status.code(), text(&output.stdout), text(&output.stderr)), (Some(0), said, String::new()));
    // Started by the other, it finds no card, as does what gets no variables, and both are told.
    let output = card(&["--board", "p100", "--", with, "start", without]);
    let said = format!("call 257 ends with no such file or directory\nchild: exit status 3\n{broken}");
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), said.clone()));
    assert_eq!(text(&output.stderr), format!("tilework: {without} {no_library}: it finds no card\n"));
    let output = card(&["--board", "p100", "--", with, "start", with, "alone"]);
    assert_eq!((output.status.code(), text(&output.stdout)), (Some(0), said));
    let why = "is started without the card's library in the variable LD_PRELOAD: it finds no card\n";
    assert_eq!(text(&output.stderr), format!("tilework: {with} {why}"));
    let output = card(&["--board", "p100", "--", with, "start", with]);
    let said = format!("all words are back\n{broken}child: <nil>\n{broken}");
    assert_eq!((output.status.code(), text(&output.stdout), text(&output.stderr)), (Some(0), said, String::new()));
}
