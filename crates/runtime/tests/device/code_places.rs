//! What an instruction of a program belongs to, asked after the program has ended, and what the
//! cores did when a run stopped.

use crate::common::{Device, kernel, open};
use tilework_abi::board::Board;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_runtime::explain::BusyCore;
use tilework_runtime::{ArgSet, CodePlace, Cores, DeviceConfig, Dispatch, Program, Role, RuntimeError, UniqueArgs};

const CORE: Processor = Processor::Brisc;

fn config(dispatch: Dispatch) -> DeviceConfig {
    DeviceConfig { dispatch, remember_programs: true, ..DeviceConfig::new(Board::P100) }
}

/// A program of one kernel on one core, the first worker.
fn one(name: &str, of: &str, args: &[u32]) -> Program {
    let program = Program::new(name, Cores::Count(1)).role(Role::all().kernel(CORE, kernel(of, CORE)));
    program.unique_args(ArgSet::Brisc, UniqueArgs::Uniform(args.to_vec()))
}

fn tile(device: &Device) -> NocXy {
    device.workers()[0]
}

/// Where the kernel of a program begins.
fn start(device: &Device, program: &Program) -> u32 {
    let layout = device.layout(program).unwrap();
    layout.base.offset(layout.roles[0].text[CORE.index()]).get()
}

#[test]
fn an_instruction_of_a_faulting_kernel_is_found_again() {
    for dispatch in [Dispatch::Fast, Dispatch::Slow] {
        let mut device = open(config(dispatch));
        // The kernel waits for a word at an address where no core has memory.
        let error = device.run(&[one("p", "spin", &[0xFFB8_0004])]).unwrap_err();
        let RuntimeError::Fault { fault, place: Some(place) } = error else { panic!("{error}") };
        let (tile, pc) = (fault.tile.unwrap(), fault.pc.unwrap());
        let found = device.code_at(tile, CORE, pc);
        assert_eq!((found.runs.as_str(), &found.location), ("kernel spin of program p", &place.location));
        assert_eq!(found.kernel.as_deref(), Some("spin"));
        let state = device.state().expect("the chip can be looked into");
        let faulted = |busy: &BusyCore| busy.tiles == [tile] && busy.location == place.location;
        assert!(state.busy.iter().any(faulted) && state.idle > 100, "{state:?}");
        // The dispatcher waits for the worker.
        let fast = dispatch == Dispatch::Fast;
        assert_eq!((state.queue.is_some(), state.waiters.is_empty()), (fast, !fast));
    }
}

#[test]
fn kernels_that_lay_in_one_place_are_all_named_and_none_is_guessed() {
    let mut device = open(config(Dispatch::Slow));
    // Kernels lie behind arguments: as many for both.
    let (first, second) = (one("a", "empty", &[0, 0]), one("b", "busy", &[1, 0x4_0000]));
    let pc = start(&device, &first);
    assert_eq!(pc, start(&device, &second));
    let unknown = CodePlace { runs: "unknown code".into(), kernel: None, location: None };
    assert_eq!(device.code_at(tile(&device), CORE, pc), unknown, "nothing was launched yet");
    device.run(&[first]).unwrap();
    let found = device.code_at(tile(&device), CORE, pc);
    assert_eq!(found.kernel.as_deref(), Some("empty"));
    assert!(found.location.is_some_and(|location| !location.frames.is_empty()));
    device.run(&[second]).unwrap();
    let found = device.code_at(tile(&device), CORE, pc);
    assert_eq!(found.runs, "kernel busy of program b or kernel empty of program a");
    assert_eq!((found.kernel, found.location), (None, None));
    let firmware = device.code_at(tile(&device), CORE, tilework_abi::l1::WORKER.firmware_text[CORE.index()].get());
    assert!(firmware.runs.starts_with("firmware brisc"), "{firmware:?}");
    assert!(device.state().is_none(), "nothing has stopped");
}
