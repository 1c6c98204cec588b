//! What the environment has the card show: findings, a timeline, a page of pictures. The program is
//! one of the seeded bugs (docs/races.md), run by our runtime, which tells the library nothing.

mod common;

use common::{alone, library, text};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tilework_abi::addr::PageCount;
use tilework_abi::board::Board;
use tilework_abi::tensix::Processor;
use tilework_libttsim_client::LibraryChip;
use tilework_runtime::{
    ArgSet, CircularBuffer, Cores, Device, DeviceConfig, Dispatch, KernelImage, Program, Role, UniqueArgs, prebuilt,
};

/// The program `local` of the seeded ones, in which BRISC hands pages to NCRISC: its number, and
/// the bug that the bytes are loaded before they are waited for.
const LOCAL: u32 = 6;
const NO_WAIT: u32 = 42;
const PAGE: u32 = 256;

/// Runs it on one tile.
fn run(bug: u32) {
    let chip = LibraryChip::open(library().as_os_str()).unwrap();
    let config = DeviceConfig { dispatch: Dispatch::Slow, ..DeviceConfig::new(Board::P150) };
    let mut device = Device::open(chip, config).unwrap();
    let slot = device.alloc_l1("slots", 4096).unwrap().address.get();
    let x = device.alloc_dram("x", &[2048], tilework_runtime::DType::U8, PAGE).unwrap();
    let y = device.alloc_dram("y", &[2048], tilework_runtime::DType::U8, PAGE).unwrap();
    device.upload(&x, &[1; 2048]).unwrap();
    let tile = device.workers()[0].encode();
    let arguments = vec![LOCAL, bug, 0, 0, 1, tile, tile, slot, x.address.word(), y.address.word(), tile, tile];
    let elf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../firmware/prebuilt/seeded.elf");
    let kernel = |core| Arc::new(KernelImage::load("seeded", std::fs::read(&elf).unwrap(), core).unwrap());
    let program = Program::new("seeded", Cores::Count(1))
        .circular_buffer(CircularBuffer { index: 0, page_size: PAGE, pages: PageCount::new(2) })
        .semaphore(0)
        .semaphore(0)
        .role(
            Role::all()
                .kernel(Processor::Brisc, kernel(Processor::Brisc))
                .kernel(Processor::Ncrisc, kernel(Processor::Ncrisc)),
        )
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(arguments.clone()))
        .unique_args(ArgSet::Ncrisc, UniqueArgs::Uniform(arguments));
    device.run(&[program]).unwrap();
    device.download(&y).unwrap();
}

/// The findings of the last card in a file, and how many accesses were looked at.
fn findings(file: &Path) -> (Vec<Value>, u64) {
    let found: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    let card = found["cards"].as_array().unwrap().last().unwrap();
    (card["findings"].as_array().unwrap().clone(), card["accesses"].as_u64().unwrap())
}

/// A folder, and paths in it as texts.
fn files<const N: usize>(names: [&str; N]) -> (tempfile::TempDir, [PathBuf; N]) {
    let folder = tempfile::tempdir().unwrap();
    let paths = names.map(|name| folder.path().join(name));
    (folder, paths)
}

#[test]
fn a_race_is_found_though_the_host_tells_nothing() {
    let name = "a_race_is_found_though_the_host_tells_nothing";
    let (_folder, [file]) = files(["found.json"]);
    let environment = [("TILEWORK_CHECKS", "races"), ("TILEWORK_FINDINGS", file.to_str().unwrap())];
    let output = alone(name, &environment, || run(NO_WAIT));
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    let (found, accesses) = findings(&file);
    assert!(accesses > 1000, "{accesses}");
    let race = found.iter().find(|finding| finding["id"] == "race-cores").unwrap_or_else(|| panic!("{found:#?}"));
    let mut cores = [race["core"].as_str(), race["other"]["core"].as_str()];
    cores.sort_unstable();
    assert_eq!(cores, [Some("brisc"), Some("ncrisc")]);
    assert!(said.contains(" accesses of cores and ") && said.contains("tilework: race-cores: "), "{said}");
}

#[test]
fn a_program_without_a_bug_has_no_findings() {
    let name = "a_program_without_a_bug_has_no_findings";
    let (_folder, [file]) = files(["found.json"]);
    let environment = [("TILEWORK_CHECKS", "races,suspicious"), ("TILEWORK_FINDINGS", file.to_str().unwrap())];
    let output = alone(name, &environment, || run(0));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (found, accesses) = findings(&file);
    assert!(found.is_empty() && accesses > 1000, "{found:#?}");
}

#[test]
fn what_is_allowed_is_not_told() {
    let name = "what_is_allowed_is_not_told";
    let (_folder, [file]) = files(["found.json"]);
    let environment = [
        ("TILEWORK_CHECKS", "races"),
        ("TILEWORK_ALLOW", "race-cores,race-store"),
        ("TILEWORK_FINDINGS", file.to_str().unwrap()),
    ];
    let output = alone(name, &environment, || run(NO_WAIT));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let (found, _) = findings(&file);
    let about = |about: &str| found.iter().filter(|finding| finding["about"] == about).count();
    assert_eq!((about("race"), about("memory") > 0), (0, true), "{found:#?}");
}

#[test]
fn a_timeline_and_a_page_are_written_when_the_card_is_powered_off() {
    let name = "a_timeline_and_a_page_are_written_when_the_card_is_powered_off";
    let (_folder, [trace, page]) = files(["trace.txt", "page.html"]);
    let environment = [("TILEWORK_TRACE", trace.to_str().unwrap()), ("TILEWORK_HTML", page.to_str().unwrap())];
    let output = alone(name, &environment, || run(0));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let trace = std::fs::read_to_string(trace).unwrap();
    assert!(trace.contains("# track tile (1,2)/NoC 0 requests 0"), "{}", &trace[..trace.len().min(2000)]);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("the card") && page.trim_end().ends_with("</html>"));
}

#[test]
fn looking_changes_no_cycle_and_no_answer() {
    let name = "looking_changes_no_cycle_and_no_answer";
    let (_folder, [trace, page]) = files(["trace.txt", "page.html"]);
    let everything = [
        ("TILEWORK_CHECKS", "races,suspicious"),
        ("TILEWORK_TRACE", trace.to_str().unwrap()),
        ("TILEWORK_HTML", page.to_str().unwrap()),
    ];
    let said = [&[][..], &everything].map(|environment| {
        let output = alone(name, environment, || {
            let chip = LibraryChip::open(library().as_os_str()).unwrap();
            let config = DeviceConfig { dispatch: Dispatch::Fast, ..DeviceConfig::new(Board::P150) };
            let mut device = Device::open(chip, config).unwrap();
            let empty = KernelImage::load("empty", prebuilt::kernel_elf("empty").unwrap(), Processor::Brisc).unwrap();
            let program =
                Program::new("empty", Cores::Count(2)).role(Role::all().kernel(Processor::Brisc, Arc::new(empty)));
            let report = device.run(&[program]).unwrap();
            println!("cycles of the program: {:?}", report.programs[0].cycles());
        });
        assert!(output.status.success(), "{}", text(&output.stderr));
        let said = text(&output.stdout);
        said.lines().find(|line| line.starts_with("cycles of the program: Some(")).map(str::to_owned)
    });
    assert!(said[0].is_some() && said[0] == said[1], "{said:?}");
}

#[test]
fn a_finding_ends_the_process_if_that_is_wanted() {
    let name = "a_finding_ends_the_process_if_that_is_wanted";
    let (_folder, [file]) = files(["found.json"]);
    let environment = [("TILEWORK_CHECKS", "error"), ("TILEWORK_FINDINGS", file.to_str().unwrap())];
    let output = alone(name, &environment, || {
        // A kernel that loads from an address that nobody has written.
        let chip = LibraryChip::open(library().as_os_str()).unwrap();
        let config = DeviceConfig { dispatch: Dispatch::Slow, ..DeviceConfig::new(Board::P150) };
        let mut device = Device::open(chip, DeviceConfig { max_cycles: Some(10_000_000), ..config }).unwrap();
        let spin = KernelImage::load("spin", prebuilt::kernel_elf("spin").unwrap(), Processor::Brisc).unwrap();
        let program = Program::new("spin", Cores::Count(1))
            .role(Role::all().kernel(Processor::Brisc, Arc::new(spin)))
            .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![0x10_0000]));
        let _ = device.run(&[program]);
        println!("it went on to its end");
    });
    let said = text(&output.stderr);
    assert!(!output.status.success() && !text(&output.stdout).contains("to its end"), "{said}");
    assert!(said.contains("TILEWORK_CHECKS=error: the process ends"), "{said}");
    let (found, _) = findings(&file);
    assert!(found.iter().any(|finding| finding["id"] == "l1-unwritten-read" && finding["address"] == 0x10_0000));
}

#[test]
fn a_wrong_variable_is_told_and_has_no_effect() {
    let name = "a_wrong_variable_is_told_and_has_no_effect";
    let environment = [("TILEWORK_CHECKS", "wran"), ("TILEWORK_HTML", "/nowhere/at/all/page.html")];
    let output = alone(name, &environment, || drop(LibraryChip::open(library().as_os_str()).unwrap()));
    let said = text(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains("TILEWORK_CHECKS or TILEWORK_ALLOW: expected off (check nothing), warn ("), "{said}");
    assert!(said.contains("TILEWORK_HTML: /nowhere/at/all/page.html: its folder does not exist"), "{said}");
}
