//! `--firmware`: the examples under worker firmware that others built, and what is wrong
//! with a folder.
//!
//! Outside firmware is not part of the repository. `TILEWORK_BH_FIRMWARE` names its folder for the
//! tests that need it (for example a copy of `riscv-firmware/p100a` of the public repository
//! boopdotpng/blackhole-py); without it they say that they were skipped.

use crate::common;
use common::{Ended, folder, repository, run_example as run};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tilework_abi::l1::WORKER;

const EXAMPLES: [&str; 3] = ["increment", "pipeline", "ring"];

/// The JSON report of an example, without what differs from run to run.
fn report(name: &str, dispatch: &str, firmware: Option<&Path>) -> Value {
    let out = folder();
    let mut more = vec!["--report", "json", "--dispatch", dispatch];
    let firmware = firmware.map(|f| f.to_str().unwrap());
    more.extend(firmware.iter().flat_map(|f| ["--firmware", f]));
    let mut report: Value = serde_json::from_str(&run(name, out.path(), &more).code(0).stdout).unwrap();
    assert_eq!(report["firmware"], firmware.unwrap_or("prebuilt"));
    for key in ["firmware", "host_seconds", "mips"] {
        report[key] = Value::Null;
    }
    report["session"]["host_seconds"] = Value::Null;
    for output in report["outputs"].as_object_mut().unwrap().values_mut() {
        output["file"] = Value::Null;
    }
    report
}

fn prebuilt() -> PathBuf {
    repository().join("firmware/prebuilt")
}

/// The folder of outside firmware, or the reason why there is none.
fn outside() -> Option<PathBuf> {
    let folder = std::env::var_os("TILEWORK_BH_FIRMWARE").map(PathBuf::from);
    if folder.is_none() {
        eprintln!("skipped: TILEWORK_BH_FIRMWARE names no folder with outside firmware");
    }
    folder
}

/// A copy of our own firmware, to be spoilt.
fn copy() -> tempfile::TempDir {
    let copy = folder();
    for name in ["brisc.elf", "ncrisc.elf", "trisc0.elf", "trisc1.elf", "trisc2.elf"] {
        std::fs::copy(prebuilt().join(name), copy.path().join(name)).unwrap();
    }
    copy
}

/// Runs an example with a folder of firmware that cannot be used.
#[track_caller]
fn refused(firmware: &Path, more: &[&str]) -> Ended {
    let out = folder();
    let mut args = vec!["--firmware", firmware.to_str().unwrap()];
    args.extend(more);
    let ended = run("ring", &out.path().join("out"), &args).code(2);
    assert_eq!(ended.stdout, "");
    assert!(!out.path().join("out").exists(), "nothing is written before the firmware is checked");
    ended
}

#[test]
fn our_own_firmware_from_its_folder_changes_nothing() {
    // What ours can do beyond others: keep text and launch messages.
    let copy = copy();
    let map = format!("text_cache_size = {}\nkeeps_launch = true\n", WORKER.text_cache_size);
    std::fs::write(copy.path().join("memory-map.toml"), map).unwrap();
    for name in EXAMPLES {
        for dispatch in ["fast", "slow"] {
            assert_eq!(report(name, dispatch, Some(copy.path())), report(name, dispatch, None), "{name}, {dispatch}");
        }
        let plain = report(name, "fast", Some(&prebuilt()));
        assert_eq!(plain["outputs"], report(name, "fast", None)["outputs"], "{name}");
    }
}

#[test]
fn the_examples_give_the_same_arrays_under_outside_firmware() {
    let Some(outside) = outside() else { return };
    for name in EXAMPLES {
        for dispatch in ["fast", "slow"] {
            let (ours, theirs) = (report(name, dispatch, None), report(name, dispatch, Some(&outside)));
            assert!(ours["outputs"].as_object().unwrap().len() == 1);
            assert_eq!(theirs["outputs"], ours["outputs"], "{name}, {dispatch}");
            assert_eq!(theirs["commands"], ours["commands"], "{name}, {dispatch}");
            assert_ne!(theirs["session"]["instructions"], ours["session"]["instructions"], "other firmware ran");
            assert_eq!(theirs, report(name, dispatch, Some(&outside)), "{name}, {dispatch}: two runs");
        }
    }
}

#[test]
fn a_folder_that_is_none_or_not_whole_is_named() {
    refused(Path::new("/does/not/exist"), &[]).says("cannot read /does/not/exist");
    let file = prebuilt().join("brisc.elf");
    refused(&file, &[]).says("brisc.elf is not a folder; expected a folder with brisc.elf, ncrisc.elf, trisc0.elf");
    let copy = copy();
    std::fs::remove_file(copy.path().join("trisc1.elf")).unwrap();
    refused(copy.path(), &[]).says("cannot read ").says("trisc1.elf");
    std::fs::create_dir(copy.path().join("trisc1.elf")).unwrap();
    refused(copy.path(), &[]).says("trisc1.elf is a folder; expected an ELF file");
}

#[test]
fn a_file_that_is_no_firmware_is_named_with_the_field() {
    let spoilt = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let copy = copy();
        let path = copy.path().join(name);
        let mut bytes = std::fs::read(&path).unwrap();
        change(&mut bytes);
        std::fs::write(path, bytes).unwrap();
        refused(copy.path(), &[])
    };
    // ELF32: e_machine is at 18; the first program header at 52, its p_vaddr at +8 and p_paddr at
    // +12; e_entry at 24.
    spoilt("ncrisc.elf", &|elf| elf[18] = 62).says("ncrisc.elf: machine: found 62, expected 243 (RISC-V)");
    spoilt("brisc.elf", &|elf| elf.clear()).says("brisc.elf: ELF header: found 0 bytes, expected at least 52 bytes");
    let outside = spoilt("trisc0.elf", &|elf| elf[52 + 15] = 0x20);
    outside.says("trisc0.elf: segment 0: found load address 0x20005a40..").says("expected L1 (0x0..0x180000)");
    let onto = |elf: &mut Vec<u8>| {
        for at in [24, 52 + 8, 52 + 12] {
            elf[at..at + 4].copy_from_slice(&0x3840u32.to_le_bytes());
        }
    };
    spoilt("trisc2.elf", &onto)
        .says("trisc2.elf: segment 0: found 0x3840..")
        .says("expected no overlap with segment 0 of ");
}

#[test]
fn a_memory_map_is_read_and_its_mistakes_are_named() {
    let copy = copy();
    let map = |text: &str| std::fs::write(copy.path().join("memory-map.toml"), text).unwrap();
    map("mailbx = 0x60\n");
    refused(copy.path(), &[]).says("memory-map.toml:1:1: unknown field `mailbx`");
    map("kernel_config = \"0x82b0\"\n");
    refused(copy.path(), &[]).says("memory-map.toml:1:17: ").says("expected u32");
    map("data = 0x37000\n[local_init]\nbrisc = -1\n");
    refused(copy.path(), &[]).says("memory-map.toml:3:9: ");
    map("kernel_config = 0x6600\n");
    refused(copy.path(), &[])
        .says("memory-map.toml: kernel_config: found 0x6600..0xf600, expected no overlap with segment 0 of ")
        .says("trisc2.elf at 0x6640..0x6");
    std::fs::write(copy.path().join("memory-map.toml"), [0xFF]).unwrap();
    refused(copy.path(), &[]).says("memory-map.toml: not UTF-8 text");
    // Values of the usual map, and one that our firmware does not mind: data may begin later.
    map("mailbox = 0x60\nkernel_config = 0x82B0\ndata = 0x40000\n[local_init]\ntrisc2 = 0xE2B0\n");
    let out = folder();
    run("ring", out.path(), &["--firmware", copy.path().to_str().unwrap()]).code(0);
}

#[test]
fn firmware_with_the_wrong_map_is_a_deadlock_at_once_that_names_the_map() {
    let copy = copy();
    // Our firmware has its go messages elsewhere.
    std::fs::write(copy.path().join("memory-map.toml"), "go = 0x400\ngo_index = 0x500\n").unwrap();
    let out = folder();
    let ended = run("ring", out.path(), &["--firmware", copy.path().to_str().unwrap()]).code(1);
    ended.says("deadlock").says("brisc.elf").says("did not start; does its memory map differ");
}

#[test]
fn options_that_need_our_own_firmware_say_so() {
    refused(&prebuilt(), &["--core-timing"]).says("--core-timing needs our own worker firmware: leave out --firmware");
}
