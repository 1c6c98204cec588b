//! The runtime on the chip behind the shared library: what it can tell, and what it cannot.

mod common;

use common::{alone_and_well, library, text};
use std::sync::Arc;
use tilework_abi::board::Board;
use tilework_abi::tensix::Processor;
use tilework_libttsim_client::LibraryChip;
use tilework_runtime::{
    ArgSet, Cores, Device, DeviceConfig, Dispatch, KernelImage, Program, Role, RuntimeError, UniqueArgs, prebuilt,
};

const BOTH: [Dispatch; 2] = [Dispatch::Fast, Dispatch::Slow];

fn open(dispatch: Dispatch, max_cycles: u64) -> Device<LibraryChip> {
    let chip = LibraryChip::open(library().as_os_str()).unwrap();
    Device::open(chip, DeviceConfig { dispatch, max_cycles: Some(max_cycles), ..DeviceConfig::new(Board::P150) })
        .unwrap()
}

fn program(kernel: &str, args: Vec<u32>) -> Program {
    let image = KernelImage::load(kernel, prebuilt::kernel_elf(kernel).unwrap(), Processor::Brisc).unwrap();
    Program::new(kernel, Cores::Count(1))
        .role(Role::all().kernel(Processor::Brisc, Arc::new(image)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(args))
}

#[test]
fn a_run_has_no_counts_that_nobody_measured() {
    alone_and_well("a_run_has_no_counts_that_nobody_measured", || {
        for dispatch in BOTH {
            let mut device = open(dispatch, 10_000_000);
            let second = LibraryChip::open(library().as_os_str()).map(|_| ()).unwrap_err();
            assert!(second.to_string().contains("this process has a library"), "{second}");
            let report = device.run(&[program("empty", vec![]), program("empty", vec![])]).unwrap();
            assert_eq!((report.cycles, report.statistics.chip), (None, None));
            assert_eq!(report.statistics.programs, 2);
            let known = has_dispatcher(dispatch);
            assert!(report.programs.iter().all(|program| program.cycles().is_some() == known), "{report:?}");
        }
    });
}

/// A kernel that waits for ever looks like a long run from outside, and the report says so.
#[test]
fn a_deadlock_ends_with_the_budget() {
    alone_and_well("a_deadlock_ends_with_the_budget", || {
        for dispatch in BOTH {
            let mut device = open(dispatch, 100_000);
            let word = device.alloc_l1("word", 64).unwrap();
            device.write_l1(device.workers()[0], word.address, &[0; 4]).unwrap();
            let error = device.run(&[program("spin", vec![word.address.get()])]).unwrap_err();
            let RuntimeError::Budget(report) = error else { panic!("{error}") };
            assert_eq!(
                (report.cycles, report.busy.as_ref(), report.queue.is_some()),
                (100_000, None, has_dispatcher(dispatch))
            );
            assert!(report.to_string().contains("cannot be looked into"), "{report}");
            assert!(matches!(device.run(&[]), Err(RuntimeError::Lost(_))));
        }
    });
}

/// Whether a dispatcher takes part.
fn has_dispatcher(dispatch: Dispatch) -> bool {
    dispatch == Dispatch::Fast
}

/// An address that no tile has.
const NOWHERE: u32 = 0x4000_0000;

#[test]
fn a_fault_is_told_by_the_library_and_ends_the_run() {
    let name = "a_fault_is_told_by_the_library_and_ends_the_run";
    let output = alone_and_well(name, || {
        for dispatch in BOTH {
            let mut device = open(dispatch, 20_000_000);
            let error = device.run(&[program("busy", vec![1, NOWHERE])]).unwrap_err();
            assert!(matches!(error, RuntimeError::Driver(_)), "{error}");
            assert!(error.to_string().contains("has stopped: reads answer with ones"), "{error}");
        }
    });
    let said = text(&output.stderr);
    assert_eq!(said.matches("fault: ").count(), 2, "{said}");
    assert!(said.contains("0x40000000"), "{said}");
}
