//! Runs with reports on either queue of a device, and what overlaps by the dispatchers' own clocks.

use crate::common::{Device, empty, kernel};
use tilework_abi::addr::Cycle;
use tilework_abi::board::Board;
use tilework_abi::cq::layout::host;
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_runtime::lower::{Lowering, timestamp};
use tilework_runtime::{
    ArgSet, Blocking, Cores, DType, DeviceConfig, Dispatch, Program, ProgramReport, QueueId, Role, RuntimeError,
    UniqueArgs,
};

const FIRST: QueueId = QueueId::FIRST;
const SECOND: QueueId = QueueId::SECOND;

fn config() -> DeviceConfig {
    DeviceConfig { queues: 2, ..DeviceConfig::new(Board::P100) }
}

/// The kernel `busy` for `steps` steps on some workers, whose result goes to `address`.
fn busy(name: &str, cores: &[NocXy], steps: u32, address: u32) -> Program {
    Program::new(name, Cores::List(cores.to_vec()))
        .role(Role::all().kernel(Processor::Brisc, kernel("busy", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![steps, address]))
}

fn halves(device: &Device) -> [Vec<NocXy>; 2] {
    let (left, right) = device.workers().split_at(device.workers().len() / 2);
    [left.to_vec(), right.to_vec()]
}

/// The bytes that hold the times of a queue in its host region.
fn slots(device: &Device, queue: QueueId) -> Vec<u8> {
    let at = |offset: u32| u64::from(queue.region_noc_base() + offset);
    let mut bytes = vec![0; (host::CORE_TIMING.end() - host::TIMESTAMPS.offset()) as usize];
    device.chip().pinned_read(at(host::TIMESTAMPS.offset()), &mut bytes).unwrap();
    bytes
}

/// A run on each queue: times of programs and cores come from the queue's own slots, in order, and
/// the other queue's stay as they are.
#[test]
fn a_run_on_either_queue_reports_the_times_of_that_queue() {
    let layouts = DispatchLayout::ALL.map(|layout| DeviceConfig { layout, ..config() });
    let plain = DeviceConfig { lowering: Lowering::Plain, ..config() };
    for config in layouts.into_iter().chain([plain]) {
        let mut device = crate::common::open(DeviceConfig { core_timing: true, ..config });
        let out = device.alloc_l1("out", 64).unwrap().address.get();
        let cores = device.workers()[..5].to_vec();
        let programs = [busy("one", &cores, 500, out), empty(Cores::All), busy("three", &cores[1..3], 900, out)];
        for id in [SECOND, FIRST, SECOND] {
            let other = QueueId::ALL[1 - id.index()];
            let before = slots(&device, other);
            let start = device.chip().now();
            let report = device.on_queue(id).unwrap().run(&programs).unwrap();
            let end = device.chip().now();
            assert!(slots(&device, other) == before, "{config:?}: times of queue {id} went to queue {other}");
            assert_eq!(report.cycles, Some(end - start));
            assert_eq!(report.statistics.programs, 3);
            let names: Vec<&str> = report.programs.iter().map(|program| program.name.as_str()).collect();
            assert_eq!(names, ["one", "empty", "three"]);
            let mut last = start;
            for program in &report.programs {
                let (from, to) = (program.start.unwrap(), program.end.unwrap());
                assert!(last <= from && from < to && to <= end, "{config:?}, queue {id}: {program:?}");
                assert_eq!(program.core_times.len(), program.cores);
                let inside = program.core_times.iter().all(|t| from <= t.start && t.start <= t.end && t.end <= to);
                assert!(inside, "{config:?}, queue {id}: {program:?}");
                last = from;
            }
        }
        device.close().unwrap();
    }
}

/// More programs than a queue has slots for.
#[test]
fn a_run_of_several_batches_works_on_the_second_queue() {
    let mut device = crate::common::open(config());
    let count = tilework_runtime::BATCH_PROGRAMS + 10;
    let report = device.on_queue(SECOND).unwrap().run(&vec![empty(Cores::Count(2)); count]).unwrap();
    assert_eq!(report.programs.len(), count);
    assert!(report.programs.iter().all(|program| program.cycles().is_some_and(|cycles| cycles > 0)));
    assert!(report.programs.is_sorted_by_key(|program| program.start));
    assert_eq!(device.statistics().programs, count as u64);
}

/// A run waits for its own queue alone, refuses workers on which the other queue may have a
/// program, and works without queues, too.
#[test]
fn a_run_on_one_queue_leaves_the_other_alone() {
    let mut device = crate::common::open(config());
    let [left, right] = halves(&device);
    let out = device.alloc_l1("out", 64).unwrap().address.get();
    device.enqueue_program(&busy("long", &left, 60_000, out), Blocking::No).unwrap();
    let event = device.record_event().unwrap();
    device.on_queue(SECOND).unwrap().enqueue_program(&busy("before", &right, 300, out), Blocking::No).unwrap();
    let report = device.on_queue(SECOND).unwrap().run(&[busy("short", &right, 100, out)]).unwrap();
    assert_eq!(report.programs.len(), 1);
    assert!(event.poll().is_none(), "the first queue's program still runs");
    let refused = device.on_queue(SECOND).unwrap().run(&[empty(Cores::All)]).unwrap_err();
    let RuntimeError::Unordered { first, second, .. } = &refused else { panic!("{refused}") };
    assert_eq!((first.as_str(), second.as_str()), ("long", "empty"));
    device.finish().unwrap();
    device.on_queue(SECOND).unwrap().run(&[empty(Cores::All)]).unwrap();
    assert_eq!(device.statistics().programs, 4);
    // A program that hangs on the second queue beside one on the first.
    let spin = Program::new("spin", Cores::List(right[..2].to_vec()))
        .role(Role::all().kernel(Processor::Brisc, kernel("spin", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![out]));
    device.enqueue_program(&busy("beside", &left, 900, out), Blocking::No).unwrap();
    let error = device.on_queue(SECOND).unwrap().run(&[spin]).unwrap_err();
    let RuntimeError::Deadlock(deadlock) = &error else { panic!("{error}") };
    assert_eq!(deadlock.programs, ["spin"], "{error}");
    assert!(error.to_string().contains("command queue 1: "), "{error}");
    let mut slow = crate::common::open(DeviceConfig { dispatch: Dispatch::Slow, ..config() });
    let report = slow.on_queue(SECOND).unwrap().run(&[empty(Cores::All)]).unwrap();
    assert!(report.programs[0].cycles().is_some());
}

/// Prepared programs run on either queue with the arguments that they have then, and are refused as
/// others are.
#[test]
fn prepared_programs_run_on_either_queue() {
    for layout in DispatchLayout::ALL {
        let mut device = crate::common::open(DeviceConfig { layout, ..config() });
        let [left, right] = halves(&device);
        let out = device.alloc_l1("out", 64).unwrap().address.get();
        let mut prepared = device.prepare(&busy("prepared", &right, 100, out)).unwrap();
        for (id, steps) in [(SECOND, 400), (FIRST, 900), (SECOND, 1_600)] {
            prepared.set_args_everywhere(ArgSet::Brisc, &[steps, out]).unwrap();
            let report = device.on_queue(id).unwrap().run_prepared(&[&prepared, &prepared]).unwrap();
            assert_eq!(report.programs.len(), 2, "{layout}");
            let expected = device.on_queue(id).unwrap().run(&[busy("plain", &right, steps, out)]).unwrap();
            let cycles = expected.programs[0].cycles().unwrap();
            let second = report.programs[1].cycles().unwrap();
            // The second finds everything on its workers.
            let least = 4 * Cycle::from(steps);
            assert!(least < second && second < cycles && cycles < least + 10_000, "{layout}: {second}, {cycles}");
        }
        device.enqueue_program(&busy("long", &left, 60_000, out), Blocking::No).unwrap();
        let event = device.record_event().unwrap();
        device.on_queue(SECOND).unwrap().run_prepared(&[&prepared]).unwrap();
        assert!(event.poll().is_none(), "{layout}: the first queue's program still runs");
        let all = device.prepare(&empty(Cores::All)).unwrap();
        let refused = device.on_queue(SECOND).unwrap().run_prepared(&[&all]).unwrap_err();
        let RuntimeError::Unordered { first, second, .. } = &refused else { panic!("{refused}") };
        assert_eq!((first.as_str(), second.as_str()), ("long", "empty"));
        let capture = device.on_queue(SECOND).unwrap().begin_trace_capture().unwrap();
        let refused = device.on_queue(SECOND).unwrap().run_prepared(&[&prepared]).unwrap_err().to_string();
        assert!(refused.contains("run_prepared"), "{refused}");
        drop(capture);
        device.run_prepared(&[&all]).unwrap();
        assert_eq!(device.statistics().programs, 3 * 3 + 3, "{layout}");
        device.close().unwrap();
    }
}

/// The times that `enqueue_commands` had written, by the dispatcher's clock.
fn stamped(device: &Device, queue: QueueId, slot: u32) -> Cycle {
    let at = (slot * host::SLOT_SIZE) as usize;
    u64::from_le_bytes(slots(device, queue)[at..at + 8].try_into().unwrap())
}

/// A transfer on one queue with a time before and behind it, and a program on the other: the
/// program begins and ends within the transfer. On one queue it cannot.
#[test]
fn a_program_runs_within_a_transfer_of_the_other_queue_by_device_clocks() {
    for io in QueueId::ALL {
        let compute = QueueId::ALL[1 - io.index()];
        let mut device = crate::common::open(config());
        let bytes = 8 << 20;
        let data: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
        let buffer = device.alloc_dram("x", &[bytes], DType::U8, 16_384).unwrap();
        device.upload(&buffer, &data).unwrap();
        let out = device.alloc_l1("out", 64).unwrap().address.get();
        let cores = device.workers().to_vec();
        let program = busy("compute", &cores, 10_000, out);
        device.on_queue(compute).unwrap().run(std::slice::from_ref(&program)).unwrap();
        let mut queue = device.on_queue(io).unwrap();
        let stamp = |slot: u32| timestamp(io.region_noc_base(), 2000 + slot);
        queue.enqueue_commands(&[stamp(0)]).unwrap();
        let read = queue.enqueue_read_buffer(&buffer, Blocking::No).unwrap();
        queue.enqueue_commands(&[stamp(1)]).unwrap();
        let event = queue.record_event().unwrap();
        let report = device.on_queue(compute).unwrap().run(std::slice::from_ref(&program)).unwrap();
        assert!(event.poll().is_none(), "the transfer is under way when the program has ended");
        assert!(device.wait_for_read(read).unwrap() == data);
        device.finish().unwrap();
        let transfer = [0, 1].map(|slot| stamped(&device, io, 2000 + slot));
        let ProgramReport { start: Some(start), end: Some(end), .. } = report.programs[0] else { panic!("{report:?}") };
        println!("queue {io}: transfer {transfer:?}, program on queue {compute}: {start} to {end}");
        assert!(transfer[0] < start && start + 10_000 < end && end < transfer[1], "{transfer:?} {start} {end}");
    }
}
