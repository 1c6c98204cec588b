//! A fault of a kernel names the kernel, its program and the line that did it.

mod common;

use common::{empty, kernel, open};
use tilework_abi::board::Board;
use tilework_abi::tensix::Processor;
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
        assert!(lines[2].ends_with(&format!(", pc {:#x}", place.pc)), "{text}");
        assert_eq!(lines.len(), 3, "{text}");
        // The device is lost, and says so.
        let again = device.run(&[]).unwrap_err().to_string();
        assert!(again.starts_with(&format!("the device stopped earlier ({fault}")), "{again}");
    }
}
