//! Parts that others built beside ours: `--cq-firmware`, `link-kernel`, and what is refused.
//!
//! `TILEWORK_CQ_FIRMWARE` names a folder with queue kernels that others built and were linked with
//! the worker firmware of `TILEWORK_BH_FIRMWARE`; without both the tests say what they left out.

use crate::common;
use common::{folder, repository, run_example, tilework};
use std::path::Path;

fn prebuilt() -> String {
    repository().join("firmware/prebuilt").to_str().unwrap().to_owned()
}

/// A copy of our queue kernels with this `queue.toml`.
fn queue(values: &str) -> tempfile::TempDir {
    let copy = folder();
    for name in ["prefetch.elf", "dispatch.elf", "dispatch-s.elf"] {
        std::fs::copy(Path::new(&prebuilt()).join(name), copy.path().join(name)).unwrap();
    }
    std::fs::write(copy.path().join("queue.toml"), values).unwrap();
    copy
}

fn bytes(folder: &Path, name: &str) -> Vec<u8> {
    std::fs::read(folder.join(name)).unwrap()
}

#[test]
fn an_example_under_queue_kernels_of_a_folder_has_the_same_outputs() {
    for board in ["p100", "p150"] {
        let (own, other) = (folder(), folder());
        run_example("pipeline", own.path(), &["--board", board]).code(0);
        let set = queue("first_stream = 48\ndispatch_cb_pages = 128\nprefetch_semaphores = [128, 128, 0, 0]\n");
        let set = set.path().to_str().unwrap();
        let more = ["--board", board, "--cq-firmware", set, "--report", "json"];
        let report = run_example("pipeline", other.path(), &more).code(0).json();
        assert_eq!(report["cq_firmware"], set);
        let names: Vec<_> = std::fs::read_dir(own.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert!(!names.is_empty());
        for name in names {
            let name = name.to_str().unwrap();
            assert_eq!(bytes(own.path(), name), bytes(other.path(), name), "{name}");
        }
    }
}

#[test]
fn queue_kernels_for_other_places_are_refused_by_name() {
    let out = folder();
    let refused = |values: &str, more: &[&str], says: &str| {
        let set = queue(values);
        let more = [&["--cq-firmware", set.path().to_str().unwrap()], more].concat();
        run_example("ring", out.path(), &more).code(2).says(says);
    };
    refused("issue = 0x100\n", &[], "queue.toml: issue: found 0x100, expected 0x40000100, where the host has it");
    refused("prefetch_q_entries = 512\n", &[], "prefetch_q_entries: found 0x200, expected 0x5fe");
    refused(
        "dispatch_semaphores = [1, 0, 0, 0]\n",
        &[],
        "dispatch_semaphores: found [1, 0, 0, 0], expected [0, 0, 0, 0]",
    );
    refused("prefetch_tile = [16, 2]\n", &[], "prefetch_tile: found [16, 2], expected [14, 2], that of a p100");
    refused("ring = 1\n", &[], "unknown field `ring`");
    refused("", &["--dispatch", "slow"], "--cq-firmware needs --dispatch fast");
    refused("", &["--dispatch-layout", "split"], "dispatch layout: found split, expected dispatcher");
    let empty = folder();
    let more = ["--cq-firmware", empty.path().to_str().unwrap()];
    run_example("ring", out.path(), &more).code(2).says("prefetch.elf");
}

#[test]
fn queue_kernels_of_others_run_our_examples() {
    let names = ["TILEWORK_CQ_FIRMWARE", "TILEWORK_BH_FIRMWARE"];
    let [Some(queue), Some(workers)] = names.map(|name| std::env::var(name).ok()) else {
        eprintln!("skipped: {} and {} name no folders", names[0], names[1]);
        return;
    };
    for name in ["increment", "pipeline", "ring"] {
        let (own, theirs) = (folder(), folder());
        run_example(name, own.path(), &[]).code(0);
        run_example(name, theirs.path(), &["--firmware", &workers, "--cq-firmware", &queue]).code(0);
        for entry in std::fs::read_dir(own.path()).unwrap() {
            let file = entry.unwrap().file_name();
            let file = file.to_str().unwrap();
            assert_eq!(bytes(own.path(), file), bytes(theirs.path(), file), "{name}: {file}");
        }
    }
    // Under our worker firmware they would read its variables elsewhere.
    let out = folder();
    run_example("ring", out.path(), &["--cq-firmware", &queue]).code(2).says("linked with other firmware");
}

#[test]
fn a_kernel_is_linked_for_its_place() {
    let out = folder();
    let at = |name: &str| out.path().join(name).to_str().unwrap().to_owned();
    let link = |address: &str, file: &str| {
        let file = at(file);
        let words = ["link-kernel", "prebuilt:attention-math", "--core", "TRISC1", "--at", address];
        tilework(&[&words[..], &["-o", &file, "--report", "json"]].concat()).code(0).json()
    };
    let report = link("0x9000", "a.bin");
    assert_eq!((&report["core"], &report["at"]), (&"TRISC1".into(), &0x9000.into()));
    let a = bytes(out.path(), "a.bin");
    assert_eq!(report["bytes"], a.len());
    link("36864", "b.bin");
    assert_eq!(a, bytes(out.path(), "b.bin"));
    link("0xA010", "c.bin");
    let c = bytes(out.path(), "c.bin");
    assert_eq!(a.len(), c.len());
    // Under firmware with another map the words for the kernel differ.
    let firmware = folder();
    for name in ["brisc.elf", "ncrisc.elf", "trisc0.elf", "trisc1.elf", "trisc2.elf"] {
        std::fs::copy(Path::new(&prebuilt()).join(name), firmware.path().join(name)).unwrap();
    }
    std::fs::write(firmware.path().join("memory-map.toml"), "bank_table = 0x14000\n").unwrap();
    let words = ["link-kernel", "prebuilt:attention-math", "--core", "trisc1", "--at", "0x9000", "-o"];
    tilework(&[&words[..], &[&at("d.bin"), "--firmware", firmware.path().to_str().unwrap()]].concat()).code(0);
    assert_ne!(a, bytes(out.path(), "d.bin"));
}

#[test]
fn a_kernel_that_cannot_be_linked_is_refused_by_name() {
    let out = folder();
    let file = out.path().join("k.bin").to_str().unwrap().to_owned();
    let link = |words: &[&str]| tilework(&[&["link-kernel", "-o", &file], words].concat()).code(2);
    link(&["prebuilt:writer", "--at", "0x9004"]).says("expected a multiple of 16 below 0x180000");
    link(&["prebuilt:writer", "--at", "0x9000", "--core", "erisc"]).says("expected brisc, ncrisc");
    link(&["prebuilt:writer", "--at", "0x17fff0"]).says("to the end of L1");
    link(&["prebuilt:nobody", "--at", "0x9000"]).says("no prebuilt kernel");
    link(&["missing.elf", "--at", "0x9000"]).says("missing.elf");
    link(&["prebuilt:writer", "--at", "0x9000", "--firmware", "nowhere"]).says("nowhere");
    assert!(!Path::new(&file).exists());
}
