//! Bundles of cards: `tilework replay` repeats what a program did to a virtual card without the
//! program, cycle by cycle. The programs are our own runtime on the card, and shells.
#![cfg(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"))]

use crate::common;
use common::{Ended, example, folder, tilework};
use serde_json::{Value, json};
use std::io::{Cursor, Read, Write};
use std::path::Path;
use zip::{ZipArchive, ZipWriter};

/// Runs `tilework` on the virtual card, and keeps what it does to it in `bundle`.
fn kept(card: &[&str], bundle: &Path, words: &[&str]) -> Ended {
    let own = env!("CARGO_BIN_EXE_tilework");
    tilework(&[&["card"], card, &["--bundle", bundle.to_str().unwrap(), "--", own], words].concat())
}

fn replayed(bundle: &Path, code: i32) -> Value {
    tilework(&["replay", bundle.to_str().unwrap(), "--report", "json"]).code(code).json()
}

fn ring(out: &Path) -> Vec<String> {
    let words = ["run", example("ring").to_str().unwrap(), "--out", out.to_str().unwrap(), "--chip"].map(str::to_owned);
    [&words[..], &["/dev/tenstorrent/0".to_owned()]].concat()
}

/// The entries of an archive.
fn entries(file: &Path) -> Vec<(String, Vec<u8>)> {
    let mut archive = ZipArchive::new(Cursor::new(std::fs::read(file).unwrap())).unwrap();
    (0..archive.len())
        .map(|i| {
            let mut entry = archive.by_index(i).unwrap();
            let mut bytes = Vec::new();
            entry.read_to_end(&mut bytes).unwrap();
            (entry.name().unwrap().into_owned(), bytes)
        })
        .collect()
}

fn write(file: &Path, entries: &[(String, Vec<u8>)]) {
    let mut archive = ZipWriter::new(std::fs::File::create(file).unwrap());
    for (name, bytes) in entries {
        archive.start_file(name, zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(bytes).unwrap();
    }
    archive.finish().unwrap();
}

#[test]
fn a_run_on_a_card_is_repeated_without_its_program() {
    let place = folder();
    let out = place.path().join("out");
    let (bundle, counts) = (place.path().join("card.zip"), place.path().join("counts.json"));
    let words = ring(&out);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    for (clock, board) in [("lazy", "p150"), ("free", "p100")] {
        let card = ["--board", board, "--clock", clock, "--counts", counts.to_str().unwrap()];
        kept(&card, &bundle, &words).code(0).says("repeats this run");
        let again = replayed(&bundle, 0);
        assert_eq!((&again["same"], &again["differences"]), (&json!(true), &json!([])), "{clock}");
        let counts: Value = serde_json::from_slice(&std::fs::read(&counts).unwrap()).unwrap();
        let report = &again["report"];
        for (name, counted) in [
            ("cycles", "cycles"),
            ("instructions", "instructions"),
            ("reads", "bar_reads"),
            ("writes", "bar_writes"),
            ("bytes_written", "bar_bytes_written"),
            ("host_memory_writes", "host_memory_writes_by_card"),
        ] {
            assert_eq!(report[name], counts[counted], "{clock}: {name}");
        }
        assert!(report["host_memory_reads"].as_u64() > Some(0) && report["whole"] == true, "{report}");
        assert!(report["fault"].is_null() && report["command"][1] == "run", "{report}");
    }
    // Nothing is left beside it.
    let files = std::fs::read_dir(place.path()).unwrap().count();
    assert_eq!(files, 3, "the outputs, the counts and the bundle");
    let text = tilework(&["replay", bundle.to_str().unwrap()]).code(0).stdout;
    assert!(text.contains("the same end as in the bundle: exit code 0 of the program"), "{text}");
    tilework(&["replay", bundle.to_str().unwrap(), "--out", "x"]).code(2).says("--out is for a kernel program");
}

#[test]
fn a_replay_that_parts_from_its_record_says_where() {
    let place = folder();
    let bundle = place.path().join("card.zip");
    let words = ring(&place.path().join("out"));
    kept(&["--board", "p100"], &bundle, &words.iter().map(String::as_str).collect::<Vec<_>>()).code(0);
    let whole = entries(&bundle);
    assert_eq!(whole.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["bundle.json", "card.record"]);
    // Another board has other tiles: the telemetry already differs.
    let mut other = whole.clone();
    other[0].1 = String::from_utf8(other[0].1.clone()).unwrap().replace("p100    000a 80", "p100    0006 80").into();
    assert_ne!(other[0].1, whole[0].1);
    write(&bundle, &other);
    let again = replayed(&bundle, 1);
    assert_eq!(again["same"], false);
    let at = again["differences"][0]["at"].as_str().unwrap();
    assert!(at.contains("a read of"), "{again}");
    // A record that ends early ends well; one that is none does not.
    let mut cut = whole.clone();
    cut[1].1.truncate(5000);
    write(&bundle, &cut);
    let again = replayed(&bundle, 0);
    assert_eq!((&again["same"], &again["report"]["whole"]), (&json!(true), &json!(false)));
    for bytes in [&b"tilework card 2\n"[..], b"", b"tilework card 1\n\xff"] {
        cut[1].1 = bytes.to_vec();
        write(&bundle, &cut);
        tilework(&["replay", bundle.to_str().unwrap()]).code(2).says("card.record: ");
    }
}

#[test]
fn a_fault_and_a_killed_program_leave_their_record() {
    let place = folder();
    let bundle = place.path().join("card.zip");
    // The kernel waits for a word at an address where no core has memory.
    let program = place.path().join("program.toml");
    let text = "name = \"t\"\n[[roles]]\nname = \"r\"\ncores = [[1, 2]]\n[roles.brisc]\nelf = \"prebuilt:spin\"\n\
                args = [\"0xFFB80004\"]\n";
    std::fs::write(&program, text).unwrap();
    let out = place.path().join("out");
    let words = ["run", program.to_str().unwrap(), "--out", out.to_str().unwrap(), "--chip", "/dev/tenstorrent/0"];
    kept(&["--board", "p100"], &bundle, &words).code(101);
    let again = replayed(&bundle, 0);
    assert_eq!((&again["same"], &again["end"]), (&json!(true), &json!("fault")));
    assert!(again["report"]["fault"].as_str().unwrap().contains("0xffb80004"), "{again}");

    let script = "exec 3<>/dev/tenstorrent/0; kill -KILL $$";
    let own = ["card", "--board", "p100", "--bundle", bundle.to_str().unwrap(), "--", "bash", "-c", script];
    tilework(&own).code(128 + 9);
    let again = replayed(&bundle, 0);
    assert_eq!((&again["same"], &again["report"]["whole"]), (&json!(true), &json!(false)));
    assert!(again["report"]["reads"].as_u64() > Some(0), "{again}");
}

#[test]
fn each_process_and_each_card_has_its_bundle() {
    let place = folder();
    let run = |bundle: &str, script: &str| {
        let file = place.path().join(bundle);
        let words = ["card", "--board", "p100", "--board", "p150", "--bundle", file.to_str().unwrap(), "--"];
        tilework(&[&words[..], &["bash", "-c", script]].concat()).code(0)
    };
    let names = || {
        let mut names: Vec<_> = std::fs::read_dir(place.path()).unwrap().flatten().map(|entry| entry.path()).collect();
        names.sort();
        names
    };
    run("b.zip", "exec 3<>/dev/tenstorrent/0 4<>/dev/tenstorrent/1; (exec 5<>/dev/tenstorrent/1); true")
        .says("with %p in its name each has a file");
    assert_eq!(names(), ["b.1.zip", "b.zip"].map(|name| place.path().join(name)));
    names().iter().for_each(|bundle| assert_eq!(replayed(bundle, 0)["same"], true));
    // What is not written does not stay.
    run("b.zip", "true").says("has opened no card");
    assert_eq!(names(), [place.path().join("b.1.zip")]);
    run("p%p.zip", "exec 3<>/dev/tenstorrent/0; bash -c 'exec 3<>/dev/tenstorrent/0'; true");
    assert_eq!(names().len(), 3);
    names().iter().for_each(|bundle| assert_eq!(replayed(bundle, 0)["same"], true));
}
