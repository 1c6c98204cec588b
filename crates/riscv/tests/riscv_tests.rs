//! The public riscv-tests (`riscv-software-src/riscv-tests`), compiled from the directory in
//! `TILEWORK_RISCV_TESTS` with `riscv64-unknown-elf-gcc` and the environment in `env/`. Skipped,
//! with the reason printed, without either.

mod common;

use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Toy, run};
use object::{Object, ObjectSegment, ObjectSymbol};
use tilework_riscv::{Core, CoreFault, Exit, HartKind};

const SUITES: [(&str, usize); 5] = [("rv32ui", 41), ("rv32um", 8), ("rv32ua", 9), ("rv32uzba", 3), ("rv32uzbb", 18)];

/// What the core lacks by design: lr.w and sc.w (Zaamo only), and misaligned accesses (a
/// fault here).
const WITHOUT: [&str; 2] = ["lrsc", "ma_data"];

#[test]
fn all_pass() {
    let Some(dir) = std::env::var_os("TILEWORK_RISCV_TESTS") else {
        return println!("skipped: TILEWORK_RISCV_TESTS does not name a clone of riscv-tests");
    };
    if Command::new("riscv64-unknown-elf-gcc").arg("--version").output().is_err() {
        return println!("skipped: no riscv64-unknown-elf-gcc");
    }
    let isa = Path::new(&dir).join("isa");
    let scratch = tempfile::tempdir().expect("a temporary directory");
    let mut failures = Vec::new();
    for (suite, at_least) in SUITES {
        let sources = sources(&isa.join(suite));
        let mut passed = 0;
        for source in &sources {
            match check(&isa, source, &scratch.path().join("test.elf")) {
                Ok(()) => passed += 1,
                Err(reason) => failures.push(format!("{}: {reason}", source.display())),
            }
        }
        println!("{suite}: {passed} of {} pass", sources.len());
        assert!(sources.len() >= at_least, "{suite}: sources are missing");
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

fn sources(suite: &Path) -> Vec<PathBuf> {
    let mut sources: Vec<PathBuf> = std::fs::read_dir(suite)
        .unwrap_or_else(|error| panic!("{}: {error}", suite.display()))
        .map(|entry| entry.expect("readable").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "S"))
        .filter(|path| WITHOUT.iter().all(|name| path.file_stem().is_some_and(|stem| stem != *name)))
        .collect();
    sources.sort();
    sources
}

fn check(isa: &Path, source: &Path, elf: &Path) -> Result<(), String> {
    let env = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/env");
    let output = Command::new("riscv64-unknown-elf-gcc")
        .args(["-march=rv32ima_zicsr_zifencei_zba_zbb", "-mabi=ilp32"])
        .args(["-static", "-mcmodel=medany", "-nostdlib", "-nostartfiles", "-fvisibility=hidden"])
        .arg("-I")
        .arg(&env)
        .arg("-I")
        .arg(isa.join("macros/scalar"))
        .arg("-T")
        .arg(env.join("link.ld"))
        .arg("-o")
        .arg(elf)
        .arg(source)
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let bytes = std::fs::read(elf).map_err(|error| error.to_string())?;
    let file = object::File::parse(&*bytes).map_err(|error| error.to_string())?;
    let mut bus = Toy::new();
    for segment in file.segments() {
        let data = segment.data().map_err(|error| error.to_string())?;
        let at = segment.address() as usize;
        bus.l1[at..at + data.len()].copy_from_slice(data);
    }
    let tohost = file.symbols().find(|symbol| symbol.name() == Ok("tohost"));
    let tohost = tohost.ok_or("no tohost")?.address() as u32;
    let mut core = Core::new(HartKind::B);
    core.reset(file.entry() as u32, 0);
    match run(&mut core, &mut bus, 10_000_000) {
        Exit::Fault(CoreFault::Ebreak { .. }) => {}
        exit => return Err(format!("{exit:x?} at pc {:#x}", core.pc)),
    }
    match bus.peek(tohost) {
        1 => Ok(()),
        other => Err(format!("case {} fails", other >> 1)),
    }
}
