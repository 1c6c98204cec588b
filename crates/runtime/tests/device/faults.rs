//! A fault of a kernel names the kernel, its program and the line that did it.

use crate::common::{empty, kernel, open};
use tilework_abi::address_map::THREAD_STRIDE;
use tilework_abi::board::Board;
use tilework_abi::tensix::insn::{Insn, Unit};
use tilework_abi::tensix::tdma::COMMAND_ADDR;
use tilework_abi::tensix::{INSTRN_BUF_BASE, Processor, TDMA_BASE};
use tilework_runtime::{ArgSet, Cores, DeviceConfig, Dispatch, Program, Role, RuntimeError, UniqueArgs};

/// An address that no tile has.
const NOWHERE: u32 = 0x4000_0000;

#[test]
fn a_kernel_that_writes_to_an_address_that_does_not_exist_is_named() {
    for dispatch in [Dispatch::Fast, Dispatch::Slow] {
        let mut device = open(DeviceConfig { dispatch, ..DeviceConfig::new(Board::P100) });
        let core = device.workers()[7];
        let program = Program::new("lost", Cores::List(vec![core]))
            .role(Role::all().kernel(Processor::Brisc, kernel("busy", Processor::Brisc)))
            .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![1, NOWHERE]));
        let error = device.run(&[empty(Cores::All), program]).unwrap_err();
        let text = error.to_string();
        let RuntimeError::Fault { fault, place: Some(place) } = error else { panic!("{text}") };
        assert_eq!(fault.address, Some(NOWHERE.into()), "{text}");
        assert_eq!((place.tile, place.processor, Some(place.pc)), (core, Processor::Brisc, fault.pc), "{text}");
        assert_eq!(place.runs, "kernel busy of program lost", "{dispatch:?}: {text}");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], fault.to_string());
        assert_eq!(lines[1], format!("  BRISC of {core}, kernel busy of program lost"));
        assert!(lines[2].starts_with("    at ") && lines[2].contains("busy/src/main.rs:"), "{text}");
        assert_eq!(text.matches("pc 0x").count(), 1, "{text}");
        assert_eq!(lines.len(), 3, "{text}");
        // The device is lost, and says so.
        let again = device.run(&[]).unwrap_err().to_string();
        assert!(again.starts_with(&format!("the device stopped earlier ({fault}")), "{again}");
    }
}

/// Steps of the kernel `busy` after which its number is an instruction of the matrix unit that is
/// not built, and that instruction.
fn not_built() -> (u32, Insn) {
    let numbers = std::iter::successors(Some(1u32), |x| Some(x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)));
    let insns = numbers.map(Insn::decode).zip(0u32..).take(100_000);
    let mut found = insns.filter(|(insn, _)| matches!(insn, Insn::NotBuilt(_)) && insn.unit() == Some(Unit::Matrix));
    found.next().map(|(insn, steps)| (steps, insn)).unwrap()
}

#[test]
fn a_fault_of_the_coprocessor_names_thread_unit_and_the_line_that_pushed() {
    let (steps, insn) = not_built();
    let mut device = open(DeviceConfig::new(Board::P100));
    let core = device.workers()[3];
    let program = Program::new("pushes", Cores::List(vec![core]))
        .role(Role::all().kernel(Processor::Brisc, kernel("busy", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![steps, INSTRN_BUF_BASE + THREAD_STRIDE]));
    let error = device.run(&[program]).unwrap_err();
    let text = error.to_string();
    let RuntimeError::Fault { fault, place: Some(place) } = error else { panic!("{text}") };
    let what = format!("{insn} ({:#010x}) of Tensix thread T1, matrix unit (FPU): ", insn.word());
    assert!(fault.what.starts_with(&what), "{text}");
    assert!(fault.text.contains(&format!(", pushed by BRISC at pc {:#x}, ", place.pc)), "{text}");
    assert_eq!((place.tile, place.processor, Some(place.pc)), (core, Processor::Brisc, fault.pc), "{text}");
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1], format!("  BRISC of {core}, kernel busy of program pushes"));
    assert!(lines[2].contains("busy/src/main.rs:"), "{text}");
    assert_eq!(text.matches("pc 0x").count(), 1, "{text}");
}

#[test]
fn a_fault_of_the_mover_names_the_line_that_queued_its_command() {
    let mut device = open(DeviceConfig::new(Board::P100));
    let core = device.workers()[3];
    let program = Program::new("commands", Cores::List(vec![core]))
        .role(Role::all().kernel(Processor::Brisc, kernel("busy", Processor::Brisc)))
        // The kernel's number after one step is no command.
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![1, TDMA_BASE + COMMAND_ADDR]));
    let text = device.run(&[program]).unwrap_err().to_string();
    assert!(text.contains("the TDMA command 0x") && text.contains(", BRISC, pc 0x"), "{text}");
    assert!(text.contains(&format!("\n  BRISC of {core}, kernel busy of program commands\n    at ")), "{text}");
    assert!(text.contains("busy/src/main.rs:") && text.matches("pc 0x").count() == 1, "{text}");
}
