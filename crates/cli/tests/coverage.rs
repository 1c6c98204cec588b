//! `tilework run --coverage`: which instructions of the Tensix coprocessor a run executed, in which
//! modes.

use crate::common;
use common::{Ended, files, folder, run_example, run_text};
use std::path::Path;
use tilework_abi::address_map::THREAD_STRIDE;
use tilework_abi::tensix::INSTRN_BUF_BASE;
use tilework_abi::tensix::insn::{Insn, Unit};

/// Cores of the program.
const CORES: u64 = 3;

/// Steps of the kernel `busy` after which its number is an instruction for which `f` holds, and
/// that instruction.
fn steps(f: impl Fn(Insn) -> bool) -> (u32, Insn) {
    let numbers = std::iter::successors(Some(1u32), |x| Some(x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)));
    let mut insns = (0u32..100_000).zip(numbers.map(Insn::decode));
    insns.find(|(_, insn)| f(*insn)).unwrap()
}

/// Runs a program whose cores push one instruction each to thread 1.
fn push(folder: &Path, steps: u32, file: &Path) -> Ended {
    let buffer = INSTRN_BUF_BASE + THREAD_STRIDE;
    let program = format!(
        "name = \"t\"\n[[roles]]\ncores = {CORES}\nbrisc = {{ elf = \"prebuilt:busy\", args = [{steps}, {buffer}] }}\n"
    );
    run_text(folder, &program, &["--coverage", file.to_str().unwrap()])
}

#[test]
fn the_file_lists_each_mode_with_its_count() {
    let folder = folder();
    let (steps, insn) = steps(|insn| insn.row().is_some_and(|row| row.mnemonic == "SETRWC"));
    let at = |name: &str| folder.path().join(name);
    push(folder.path(), steps, &at("c.txt")).code(0);
    let text = std::fs::read_to_string(at("c.txt")).unwrap();
    let [head, line] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
    assert_eq!(head, "matrix unit (FPU):");
    let (count, mode) = line.trim().split_once("  SETRWC clear_dvalid=0x").unwrap_or_else(|| panic!("{text}"));
    assert_eq!(count, CORES.to_string());
    // Flags are named as the disassembler names them; counters' values are no part of a mode.
    let whole = insn.to_string();
    assert!(mode.split(", ").skip(1).all(|flag| whole.contains(flag)) && !mode.contains("_val"), "{text}{whole}");

    push(folder.path(), steps, &at("c.json")).code(0);
    let json: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(at("c.json")).unwrap()).unwrap();
    let [listed] = &json["instructions"].as_array().unwrap()[..] else { panic!("{json}") };
    assert_eq!((&listed["unit"], &listed["instruction"]), (&"matrix unit (FPU)".into(), &"SETRWC".into()));
    assert_eq!(listed["count"], CORES);
    for field in insn.row().unwrap().mode_operands(insn.word()) {
        let value = field.get(insn.word());
        let flag = field.name != "clear_dvalid";
        assert_eq!(
            listed["mode"][field.name],
            if flag { (value != 0).into() } else { serde_json::json!(value) },
            "{json}"
        );
    }
    assert!(listed["mode"].get("dst_val").is_none(), "{json}");
}

#[test]
fn a_run_that_faults_names_thread_unit_and_the_line_that_pushed_and_writes_the_file() {
    let folder = folder();
    let (steps, insn) = steps(|insn| matches!(insn, Insn::NotBuilt(_)) && insn.unit() == Some(Unit::Matrix));
    let file = folder.path().join("c.txt");
    let ended = push(folder.path(), steps, &file).code(1);
    let mnemonic = insn.row().unwrap().mnemonic;
    let ended =
        ended.says(mnemonic).says("of Tensix thread T1, matrix unit (FPU): ").says(", pushed by BRISC at pc 0x");
    assert!(ended.says("kernel prebuilt:busy of program t").stderr.contains("busy/src/main.rs:"));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "", "the instruction has not executed");
}

#[test]
fn coverage_is_refused_where_it_cannot_be() {
    let folder = folder();
    let out = folder.path().join("out");
    let file = folder.path().join("file");
    let both = file.to_str().unwrap();
    run_example("increment", &out, &["--coverage", both, "--capture", both]).code(2).says("--coverage would replace");
    run_example("increment", &out, &["--coverage", both, "--chip", "none.so"])
        .code(2)
        .says("--coverage needs the built-in chip");
    assert!(!file.exists());
    assert_eq!(files(&out), [""; 0], "nothing has run");
}
