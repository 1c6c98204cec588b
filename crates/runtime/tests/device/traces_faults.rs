//! Traces on a device that stops: whatever stops a replay reaches everybody who waits, the report
//! names trace, program and queue, and the device opens again. And captures that fail.

use crate::common::{Device, empty, kernel};
use std::cell::Cell;
use std::rc::Rc;
use tilework_abi::addr::{Cycle, L1Addr, PcieAddr};
use tilework_abi::board::Board;
use tilework_abi::cq::layout::host;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_abi::tlb::Bar;
use tilework_driver::{HostLink, Inspect, LinkError};
use tilework_runtime::lower::Lowering;
use tilework_runtime::{
    ArgSet, Blocking, Cores, DeviceConfig, Event, Program, QueueId, Role, RuntimeError, Trace, TraceError, UniqueArgs,
};
use tilework_sim::{Chip, ChipConfig};

const SECOND: QueueId = QueueId::SECOND;
/// An address that no tile has.
const NOWHERE: u32 = 0x4000_0000;

fn config() -> DeviceConfig {
    DeviceConfig { queues: 2, ..DeviceConfig::new(Board::P100) }
}

/// Both lowerings.
fn ways() -> [DeviceConfig; 2] {
    [config(), DeviceConfig { lowering: Lowering::Plain, ..config() }]
}

fn program(kernel_name: &str, cores: &[NocXy], args: Vec<u32>) -> Program {
    Program::new(kernel_name, Cores::List(cores.to_vec()))
        .role(Role::all().kernel(Processor::Brisc, kernel(kernel_name, Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(args))
}

/// A trace of queue `id` with a program before and behind `middle`; returns it and the line of its
/// capture. The kernels are on the workers.
fn trace_of<C: HostLink>(device: &mut tilework_runtime::Device<C>, id: QueueId, middle: &Program) -> (Trace, u32) {
    let around = [empty(Cores::All), empty(Cores::Count(3))];
    let mut queue = device.on_queue(id).unwrap();
    around.iter().for_each(|program| queue.enqueue_program(program, Blocking::No).unwrap());
    queue.finish().unwrap();
    let capture = queue.begin_trace_capture().unwrap();
    let line = line!() - 1;
    for program in [&around[0], middle, &around[1]] {
        queue.enqueue_program(program, Blocking::No).unwrap();
    }
    (device.end_trace_capture(capture).unwrap(), line)
}

/// Replays a trace that stops the device, behind and before other things; returns what stopped it,
/// which everybody got.
fn stops(device: &mut Device, id: QueueId, trace: &Trace) -> RuntimeError {
    let other = QueueId::ALL[1 - id.index()];
    let before = device.on_queue(id).unwrap().record_event().unwrap();
    let mut queue = device.on_queue(id).unwrap();
    queue.replay_trace(trace, Blocking::No).unwrap();
    let behind: Vec<Event> = (0..2).map(|_| queue.record_event().unwrap()).collect();
    let mut beside = device.on_queue(other).unwrap();
    beside.wait_for_event(&behind[0]).unwrap();
    let waits = beside.record_event().unwrap();
    let error = beside.finish().unwrap_err();
    let text = error.to_string();
    assert!(before.poll().unwrap().is_ok());
    for event in [&behind[0], &behind[1], &waits] {
        assert_eq!(event.poll().unwrap().unwrap_err().to_string(), text);
    }
    let first = text.lines().next().unwrap();
    let late = device.on_queue(id).unwrap().replay_trace(trace, Blocking::Yes).unwrap_err();
    assert_eq!(late.to_string(), format!("the device stopped earlier ({first}); open it again"));
    error
}

/// The same chip starts again, and a trace of either queue works; one of before is not taken.
fn opens_again(chip: Chip, old: &Trace) {
    let mut device = Device::open(chip, config()).unwrap();
    let cores = device.workers()[..3].to_vec();
    let out = device.alloc_l1("out", 64).unwrap().address;
    for (id, steps) in [(SECOND, 5), (QueueId::FIRST, 9)] {
        let busy = program("busy", &cores, vec![steps, out.get()]);
        device.on_queue(id).unwrap().enqueue_program(&busy, Blocking::Yes).unwrap();
        let (trace, _) = trace_of(&mut device, id, &busy);
        for &core in &cores {
            device.write_l1(core, out, &[0; 4]).unwrap();
        }
        device.on_queue(id).unwrap().replay_trace(&trace, Blocking::Yes).unwrap();
        for &core in &cores {
            assert_eq!(word(&mut device, core, out), result(steps), "queue {id}, {core}");
        }
        let error = device.on_queue(id).unwrap().replay_trace(old, Blocking::No).unwrap_err();
        assert!(matches!(&error, RuntimeError::Trace(TraceError::Foreign { .. })), "{error}");
    }
    device.close().unwrap();
}

fn word(device: &mut Device, core: NocXy, address: L1Addr) -> u32 {
    let mut bytes = [0; 4];
    device.read_l1(core, address, &mut bytes).unwrap();
    u32::from_le_bytes(bytes)
}

/// What `busy` writes.
fn result(steps: u32) -> u32 {
    (0..steps).fold(1, |x: u32, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223))
}

#[test]
fn a_fault_of_a_worker_in_a_replay_is_named() {
    for config in ways() {
        for id in QueueId::ALL {
            let mut device = crate::common::open(config);
            let cores = device.workers()[..2].to_vec();
            let out = device.alloc_l1("out", 64).unwrap().address.get();
            let good = program("busy", &cores, vec![1, out]);
            device.on_queue(id).unwrap().enqueue_program(&good, Blocking::Yes).unwrap();
            let (trace, _) = trace_of(&mut device, id, &program("busy", &cores, vec![1, NOWHERE]));
            let error = stops(&mut device, id, &trace);
            assert!(
                matches!(&error, RuntimeError::Fault { fault, place: Some(place) }
                if fault.address == Some(NOWHERE.into()) && place.runs == "kernel busy of program busy"),
                "{error}"
            );
            // A chip that faulted has stopped for good and says so; another one works.
            let again = Device::open(device.into_chip(), config).map(drop).unwrap_err();
            assert!(matches!(&again, RuntimeError::Fault { fault, .. } if fault.address == Some(NOWHERE.into())));
            opens_again(Chip::new(ChipConfig::new(Board::P100)).unwrap(), &trace);
        }
    }
}

/// The report about a hang in a replay names the trace with the place of its capture, the program
/// and the queue.
#[test]
fn tt_metal_22790_a_deadlock_in_a_replay_names_trace_program_and_queue() {
    for config in ways() {
        for id in QueueId::ALL {
            let mut device = crate::common::open(config);
            let cores = device.workers()[..2].to_vec();
            let at = device.alloc_l1("spin word", 64).unwrap().address;
            let spin = program("spin", &cores, vec![at.get()]);
            device.on_queue(id).unwrap().enqueue_program(&spin, Blocking::No).unwrap();
            // It ends when its word changes.
            device.idle(20_000).unwrap();
            for &core in &cores {
                device.write_l1(core, at, &1u32.to_le_bytes()).unwrap();
            }
            device.finish().unwrap();
            let (trace, line) = trace_of(&mut device, id, &spin);
            let error = stops(&mut device, id, &trace);
            let RuntimeError::Deadlock(report) = &error else { panic!("{error}") };
            assert_eq!(report.programs, ["spin"], "{error}");
            let queue = report.queue.as_ref().unwrap();
            assert_eq!((queue.queue, queue.trace), (Some(id), Some(trace.name())), "{error}");
            assert_eq!(queue.program.as_deref(), Some("spin"), "{error}");
            let text = error.to_string();
            assert!(text.contains(&format!("command queue {id}: ")), "{text}");
            let place = format!("in program spin of trace 0 (captured from {}:{line} on)", file!());
            assert!(text.contains(&place), "{text}");
            opens_again(device.into_chip(), &trace);
        }
    }
}

#[test]
fn a_replay_that_never_ends_stops_at_the_budget_and_is_named() {
    for id in QueueId::ALL {
        let mut device = crate::common::open(DeviceConfig { max_cycles: Some(300_000), ..config() });
        let cores = device.workers()[..2].to_vec();
        let out = device.alloc_l1("out", 64).unwrap().address.get();
        device.on_queue(id).unwrap().enqueue_program(&program("busy", &cores, vec![1, out]), Blocking::Yes).unwrap();
        let (trace, line) = trace_of(&mut device, id, &program("busy", &cores, vec![u32::MAX, out]));
        device.on_queue(id).unwrap().replay_trace(&trace, Blocking::No).unwrap();
        let event = device.on_queue(id).unwrap().record_event().unwrap();
        let error = device.on_queue(id).unwrap().finish().unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, RuntimeError::Budget(_)), "{text}");
        let place = format!("in program busy of trace 0 (captured from {}:{line} on)", file!());
        assert!(text.contains(&place) && text.contains(&format!("command queue {id}: ")), "{text}");
        assert_eq!(event.poll().unwrap().unwrap_err().to_string(), text);
        opens_again(device.into_chip(), &trace);
    }
}

/// A chip whose link changes a byte of what is put into the issue region of the first queue.
struct Garbling {
    chip: Chip,
    /// The byte of the next record, and what it is combined with.
    garble: Rc<Cell<Option<(usize, u8)>>>,
}

impl HostLink for Garbling {
    fn bar_write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), LinkError> {
        HostLink::bar_write(&mut self.chip, bar, offset, data)
    }
    fn bar_read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), LinkError> {
        HostLink::bar_read(&mut self.chip, bar, offset, out)
    }
    fn pin(&mut self, len: usize, wish: PcieAddr) -> Result<PcieAddr, LinkError> {
        HostLink::pin(&mut self.chip, len, wish)
    }
    fn pinned_read(&mut self, address: PcieAddr, out: &mut [u8]) -> Result<(), LinkError> {
        HostLink::pinned_read(&mut self.chip, address, out)
    }
    fn pinned_write(&mut self, address: PcieAddr, data: &[u8]) -> Result<(), LinkError> {
        let at = |offset: u32| u64::from(QueueId::FIRST.region_noc_base() + offset);
        let mut data = data.to_vec();
        if (at(host::ISSUE.offset())..at(host::ISSUE.end())).contains(&address.get())
            && let Some((byte, change)) = self.garble.take()
        {
            data[byte] ^= change;
        }
        HostLink::pinned_write(&mut self.chip, address, &data)
    }
    fn wait_word(&mut self, address: PcieAddr, seen: u32, budget: Cycle) -> Result<u32, LinkError> {
        HostLink::wait_word(&mut self.chip, address, seen, budget)
    }
    fn idle(&mut self, cycles: Cycle) -> Result<(), LinkError> {
        HostLink::idle(&mut self.chip, cycles)
    }
    fn cycles(&self) -> Cycle {
        HostLink::cycles(&self.chip)
    }
    fn inspect(&self) -> Option<&dyn Inspect> {
        Some(&self.chip)
    }
}

/// A byte of the commands in DRAM is another: every byte of the first commands of a trace of empty
/// programs. The replay does what was captured, or it ends in a named error; a program that lies
/// ready in L1 is never touched, and the chip starts again.
#[test]
fn a_corrupted_byte_of_a_trace_is_harmless_or_named() {
    // Behind the record's own commands: the relay and the write to DRAM.
    const DATA: usize = 32;
    let config = DeviceConfig { max_cycles: Some(300_000), queues: 1, ..config() };
    let [mut right, mut named] = [0; 2];
    for byte in 0..96 {
        let garble = Rc::new(Cell::new(None));
        let chip = Chip::new(ChipConfig::new(Board::P100)).unwrap();
        let chip = Garbling { chip, garble: Rc::clone(&garble) };
        let mut device = tilework_runtime::Device::open(chip, config).unwrap();
        let out = device.alloc_l1("out", 64).unwrap().address;
        let core = device.workers()[7];
        device.write_l1(core, out, &0x1234_5678u32.to_le_bytes()).unwrap();
        let program = empty(Cores::All);
        device.run(std::slice::from_ref(&program)).unwrap();
        let capture = device.begin_trace_capture().unwrap();
        (0..6).for_each(|_| device.enqueue_program(&program, Blocking::No).unwrap());
        garble.set(Some((DATA + byte, 0x81)));
        // Whether the end notices it, or the replay.
        let trace = device.end_trace_capture(capture);
        assert!(garble.get().is_none(), "a record was changed");
        let replayed = trace.and_then(|trace| device.replay_trace(&trace, Blocking::Yes));
        match replayed {
            Ok(()) => {
                right += 1;
                assert_eq!(device.statistics().programs, 7, "byte {byte}");
                device.run(std::slice::from_ref(&program)).unwrap();
                let mut found = [0; 4];
                device.read_l1(core, out, &mut found).unwrap();
                assert_eq!(u32::from_le_bytes(found), 0x1234_5678, "byte {byte}");
            }
            Err(error) => {
                named += 1;
                let known = matches!(
                    error,
                    RuntimeError::Deadlock(_)
                        | RuntimeError::Fault { .. }
                        | RuntimeError::Budget(_)
                        | RuntimeError::Protocol(_)
                );
                assert!(known, "byte {byte}: {error}");
                if let RuntimeError::Deadlock(report) = &error {
                    assert!(!report.chain.is_empty() && report.programs == ["empty"], "byte {byte}: {error}");
                }
            }
        }
        let mut again = Device::open(device.into_chip().chip, config).unwrap();
        again.run(std::slice::from_ref(&program)).unwrap();
    }
    println!("{right} bytes do not matter, {named} are named");
    assert!(right >= 10 && named >= 10, "{right} {named}");
}

/// A device closes while a trace is captured, and behind a capture that failed; what was captured
/// is refused, and blocking replays come back.
#[test]
fn tt_metal_8383_12481_a_device_closes_in_and_behind_captures() {
    for config in ways() {
        let mut device = crate::common::open(config);
        let good = empty(Cores::All);
        for id in QueueId::ALL {
            let mut queue = device.on_queue(id).unwrap();
            queue.enqueue_program(&good, Blocking::Yes).unwrap();
            let capture = queue.begin_trace_capture().unwrap();
            queue.enqueue_program(&good, Blocking::No).unwrap();
            // An error in the capture.
            let outside = NocXy::new(0, 0);
            assert!(queue.enqueue_program(&empty(Cores::List(vec![outside])), Blocking::No).is_err());
            let error = device.end_trace_capture(capture).unwrap_err();
            assert!(matches!(&error, RuntimeError::Trace(TraceError::GivenUp { .. })), "{error}");
            let capture = device.on_queue(id).unwrap().begin_trace_capture().unwrap();
            device.on_queue(id).unwrap().enqueue_program(&good, Blocking::No).unwrap();
            let trace = device.end_trace_capture(capture).unwrap();
            for _ in 0..3 {
                device.on_queue(id).unwrap().replay_trace(&trace, Blocking::Yes).unwrap();
            }
        }
        let capture = device.on_queue(SECOND).unwrap().begin_trace_capture().unwrap();
        device.on_queue(SECOND).unwrap().enqueue_program(&good, Blocking::No).unwrap();
        let error = device.close().map(drop).unwrap_err();
        let RuntimeError::Trace(TraceError::InCapture { call, at, trace }) = &error else { panic!("{error}") };
        assert_eq!((*call, at.file(), trace.number), ("close", file!(), 4));
        drop(capture);
        device.close().unwrap();
    }
}
