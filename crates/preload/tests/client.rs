//! Programs for silicon with the library before them: a C client, compiled here. Without `cc`, or
//! elsewhere than on Linux on x86-64, the tests say that they are left out.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use std::path::{Path, PathBuf};
use std::process::Command;
use tilework_abi::board::Board;
use tilework_abi::simlib::text_of;
use tilework_abi::tlb::Bar;
use tilework_kmd::{BETWEEN_BOARDS, Card, telemetry, tree_of, write_tree};
use tilework_sim::{Chip, ChipConfig};

struct SimCard(Chip);

impl Card for SimCard {
    fn read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) {
        self.0.bar_read(bar, offset, out).unwrap();
    }
    fn write(&mut self, bar: Bar, offset: u64, data: &[u8]) {
        self.0.bar_write(bar, offset, data).unwrap();
    }
    fn reset(&mut self) {}
}

/// The shared library, which cargo puts beside or above the tests.
fn library() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let folders = test.ancestors().skip(1).take(2);
    let found = folders.map(|folder| folder.join("libtilework_preload.so")).find(|file| file.is_file());
    found.unwrap_or_else(|| panic!("no libtilework_preload.so at or above {}", test.display()))
}

/// Runs the client with the word `what`.
fn client(what: &str) {
    run(&[what], 1);
}

fn board() -> String {
    String::from_utf8(text_of(Board::P100).to_vec()).unwrap()
}

/// The client on two cards, whose files are in `root`.
fn start(program: &Path, root: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("LD_PRELOAD", library())
        .env("TILEWORK_CARD_ROOT", root)
        .env("TILEWORK_CARD_BOARD", [board(), board()].join(&BETWEEN_BOARDS.to_string()));
    command
}

/// Makes the client and the files of two cards in `folder`. `None` without a compiler, which is
/// told.
fn make(folder: &Path) -> Option<(PathBuf, PathBuf)> {
    let sources =
        ["client.c", "looks.c", "borrows.c"].map(|name| Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name));
    let program = folder.join("client");
    let compiled =
        Command::new("cc").args(["-O1", "-pthread", "-mmovbe", "-mavx2", "-o"]).arg(&program).args(sources).output();
    match compiled {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => {
            println!("left out: cc does not start: {error}");
            return None;
        }
    }
    let root = folder.join("tree");
    for number in 0..2 {
        let mut card = SimCard(Chip::new(ChipConfig::of_card(number, Board::P100)).unwrap());
        write_tree(&tree_of(number, Board::P100, &telemetry(&mut card)), &root).unwrap();
    }
    Some((program, root))
}

/// Runs the client `times` times, and gives what the library has counted in each run.
fn run(words: &[&str], times: usize) -> Vec<String> {
    let what = words.join(" ");
    let folder = tempfile::tempdir().unwrap();
    let Some((program, root)) = make(folder.path()) else { return Vec::new() };
    let counts = folder.path().join("counts.json");
    let one = |_| {
        let output = start(&program, &root).args(words).env("TILEWORK_CARD_COUNTS", &counts).output().unwrap();
        let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        println!("{said}");
        assert!(output.status.success() && said.ends_with("well\n"), "{what}: {}\n{said}\n{errors}", output.status);
        assert!(!errors.contains("defect"), "{errors}");
        std::fs::read_to_string(&counts).unwrap()
    };
    (0..times).map(one).collect()
}

#[test]
fn loads_and_stores_of_all_forms_are_as_on_memory() {
    client("forms");
}
#[test]
fn loads_and_stores_of_vectors_are_as_on_memory() {
    client("vectors");
}
#[test]
fn unaligned_and_crossing_accesses_are_as_on_memory() {
    client("edges");
}
#[test]
fn string_instructions_and_copies_are_as_on_memory() {
    client("strings");
}
#[test]
fn what_is_done_between_accesses_is_as_on_memory() {
    client("between");
}
#[test]
fn copies_whose_accesses_are_timed_are_as_on_memory() {
    client("driver");
}
#[test]
fn accesses_behind_looks_at_the_clock_are_as_on_memory() {
    client("looks");
}
#[test]
fn accesses_behind_looks_at_the_clock_take_the_same_cycles_in_each_run() {
    let counts = run(&["looks", "values"], 3);
    assert!(counts.iter().all(|other| *other == counts[0]), "{counts:?}");
}
#[test]
fn a_program_that_polls_a_deadlocked_chip_is_told_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let Some((program, root)) = make(folder.path()) else { return };
    let case = |seconds: &str, words: [&'static str; 2], policy: &'static str| {
        let mut command = start(&program, &root);
        command.arg("standstill").args(words).env("POLL_SECONDS", seconds).env("TILEWORK_CARD_DEADLOCK", policy);
        command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped());
        (words, policy, command.spawn().unwrap())
    };
    // All at the same time: each takes seconds, on a busy machine more than the five after which a
    // program is told.
    let cases = [
        (case("60", ["stuck", "l1"], "certain"), Some(102), "deadlock: "),
        (case("60", ["stuck", "memory"], "certain"), Some(102), "deadlock: "),
        (case("60", ["done", "l1"], "end"), Some(102), "deadlock: "),
        (case("20", ["stuck", "l1"], "warn"), Some(0), "deadlock: "),
        (case("60", ["pages", "l1"], "certain"), Some(102), "STREAM_REMOTE_DEST_BUF_SIZE of stream 8"),
        (case("60", ["answers", "memory"], "certain"), Some(102), "NIU_MST_RD_RESP_RECEIVED of NIU 0"),
        (case("20", ["done", "memory"], "certain"), Some(0), "warning: "),
        // Who pauses between looks is let alone.
        (case("7", ["stuck", "sleeps"], "certain"), Some(0), ""),
        (case("7", ["stuck", "l1"], "off"), Some(0), ""),
    ];
    for ((words, policy, child), code, said) in cases {
        let output = child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), code, "{words:?} {policy}: {errors}");
        let told = errors.lines().filter(|line| line.contains("nothing can happen on the chip")).count();
        assert_eq!(told, usize::from(!said.is_empty()), "{words:?} {policy}: {errors}");
        assert!(errors.contains(said), "{words:?} {policy}: {errors}");
        if words[0] == "stuck" && !said.is_empty() {
            assert!(errors.contains("NOP (0x02000000) waits for semaphore 3"), "{errors}");
        }
    }
}
#[test]
fn pages_are_pinned_and_buffers_are_memory() {
    client("pins");
}
#[test]
fn polls_of_pinned_memory_move_the_time_the_same_in_ten_runs() {
    for how in ["plain", "calls", "vectors"] {
        let counts = run(&["mailbox", how], 10);
        let Some(first) = counts.first() else { return };
        assert!(first.contains("\"host_memory_writes_by_card\": 20,"), "{first}");
        assert!(first.contains("\"host_memory_bytes_written_by_card\": 80"), "{first}");
        assert!(counts.iter().all(|other| other == first), "{how}: {counts:?}");
    }
}
#[test]
fn two_cards_are_two_devices() {
    client("two");
}
#[test]
fn two_threads_use_two_tiles() {
    client("threads");
}
#[test]
fn a_program_keeps_its_own_handler() {
    client("handler");
}
#[test]
fn a_program_is_told_of_an_overflow_of_its_stack() {
    client("overflow");
}
#[test]
fn a_forked_child_has_no_card() {
    client("fork");
}
#[test]
fn descriptors_are_duplicated_and_mappings_outlive_them() {
    client("descriptors");
}
#[test]
fn copies_of_megabytes_do_not_trap() {
    client("speed");
}
#[test]
fn system_calls_by_their_numbers_are_served() {
    client("numbers");
}
#[test]
fn system_calls_by_instructions_of_the_program_are_served() {
    client("raw");
}
#[test]
fn threads_and_programs_without_the_c_library_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let Some((program, root)) = make(folder.path()) else { return };
    for (how, why) in [("thread", "makes a thread by a system call"), ("pointer", "its own thread pointer")] {
        let output = start(&program, &root).args(["alone", how]).output().unwrap();
        let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success() && said.ends_with("well\n"), "{how}: {}\n{said}\n{errors}", output.status);
        assert_eq!(errors.matches(why).count(), 1, "{how}: {errors}");
    }
}
#[test]
fn a_program_that_finds_no_card_is_told_however_it_is_started() {
    let folder = tempfile::tempdir().unwrap();
    let Some((program, root)) = make(folder.path()) else { return };
    let (source, library) = (folder.path().join("other.c"), folder.path().join("static"));
    std::fs::write(&source, "#include <stdlib.h>\nint main(int n, char **v) { return atoi(v[n - 1]); }").unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, format!("#! {} x\n", library.display())).unwrap();
    for (options, what) in [(&["-static"][..], "static"), (&["-static-pie"], "static"), (&["-O1"], "dynamic")] {
        let made = Command::new("cc").args(options).arg("-o").arg(&library).arg(&source).output().unwrap();
        if !made.status.success() {
            println!("left out: cc {options:?}: {}", String::from_utf8_lossy(&made.stderr));
            continue;
        }
        let mut permissions = std::fs::metadata(&script).unwrap().permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut permissions, 0o755);
        std::fs::set_permissions(&script, permissions).unwrap();
        for start_this in [&library, &script] {
            let started = start(&program, &root).arg("starts").arg(start_this).output().unwrap();
            let errors = String::from_utf8_lossy(&started.stderr);
            assert!(started.status.success(), "{}\n{errors}", String::from_utf8_lossy(&started.stdout));
            let said = "is statically linked, and the card's library cannot be loaded into it: it finds no card\n";
            // Once, however often and in which way it is started.
            let expected = format!("tilework: {} {said}", library.display());
            assert_eq!(errors, if what == "static" { expected } else { String::new() }, "{options:?}");
            for mark in std::fs::read_dir(&root).unwrap().flatten() {
                if mark.file_name().to_string_lossy().starts_with("told-") {
                    std::fs::remove_file(mark.path()).unwrap();
                }
            }
        }
    }
}

#[test]
fn a_child_that_borrows_its_parents_memory_is_told_of_what_it_executes() {
    let folder = tempfile::tempdir().unwrap();
    let Some((program, root)) = make(folder.path()) else { return };
    let (source, other) = (folder.path().join("other.c"), folder.path().join("other"));
    std::fs::write(&source, "int main(void) { return 7; }").unwrap();
    let made = Command::new("cc").arg("-static").arg("-o").arg(&other).arg(&source).output().unwrap();
    if !made.status.success() {
        println!("left out: cc -static: {}", String::from_utf8_lossy(&made.stderr));
        return;
    }
    let output = start(&program, &root).arg("borrows").arg(&other).output().unwrap();
    let (said, errors) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.ends_with("well\n"), "{}\n{said}\n{errors}", output.status);
    let why = "is statically linked, and the card's library cannot be loaded into it: it finds no card\n";
    assert_eq!(errors, format!("tilework: {} {why}", other.display()));
}

#[test]
fn a_program_that_is_started_without_the_library_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let Some((_, root)) = make(folder.path()) else { return };
    let said = |words: &[&str]| {
        let output = start(Path::new("/usr/bin/env"), &root).args(words).output().unwrap();
        assert!(output.status.success(), "{words:?}: {}", output.status);
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let why = "is started without the card's library in the variable LD_PRELOAD: it finds no card\n";
    assert_eq!(said(&["true"]), "");
    assert_eq!(said(&["-i", "/bin/true"]), format!("tilework: /bin/true {why}"));
    assert_eq!(
        said(&["LD_PRELOAD=/nowhere/libother.so", "/bin/sh", "-c", "exit 0"]).lines().next().unwrap(),
        format!("tilework: /bin/sh {}", why.trim_end())
    );
}
