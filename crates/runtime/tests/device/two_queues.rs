//! Two command queues of one device: the same calls on both, events between them, the rule by which
//! they share the workers, and what overlaps.

use crate::common::{Device, empty, increment, kernel};
use std::cell::RefCell;
use std::rc::Rc;
use tilework_abi::addr::Cycle;
use tilework_abi::board::Board;
use tilework_abi::convert::u32_of;
use tilework_abi::cq::layout::dispatch_core;
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_runtime::lower::Lowering;
use tilework_runtime::{
    ArgSet, Blocking, Cores, DType, DeviceConfig, Dispatch, Event, Program, QueueId, Role, RuntimeError, Transfers,
    UniqueArgs,
};

const FIRST: QueueId = QueueId::FIRST;
const SECOND: QueueId = QueueId::SECOND;

fn config() -> DeviceConfig {
    DeviceConfig { queues: 2, ..DeviceConfig::new(Board::P100) }
}

/// The ways in which a device with two queues works.
fn ways() -> Vec<(&'static str, DeviceConfig)> {
    vec![
        ("cached", config()),
        ("plain", DeviceConfig { lowering: Lowering::Plain, ..config() }),
        ("subordinate", DeviceConfig { layout: DispatchLayout::Subordinate, ..config() }),
        ("subordinate-tile", DeviceConfig { layout: DispatchLayout::SubordinateTile, ..config() }),
        ("split", DeviceConfig { layout: DispatchLayout::Split, ..config() }),
        ("windows", DeviceConfig { transfers: Transfers::Windows, ..config() }),
        ("slow dispatch", DeviceConfig { dispatch: Dispatch::Slow, ..config() }),
        ("p150", DeviceConfig { board: Board::P150, ..config() }),
    ]
}

fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes).map(|i| (i as u8).wrapping_mul(31) ^ (i >> 8) as u8 ^ seed).collect()
}

/// The kernel `busy` for `steps` steps on some workers, whose result goes to `address`.
fn busy(name: &str, cores: &[NocXy], steps: u32, address: u32) -> Program {
    Program::new(name, Cores::List(cores.to_vec()))
        .role(Role::all().kernel(Processor::Brisc, kernel("busy", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![steps, address]))
}

/// Both queues do everything, each with its own data; nothing of one is seen in the other.
#[test]
fn every_call_works_on_both_queues() {
    for (way, config) in ways() {
        let mut device = crate::common::open(config);
        let n = 4 * 100 * 64;
        let mut pairs = Vec::new();
        for id in QueueId::ALL {
            let name = |what: &str| format!("{what}{id}");
            let x = device.alloc_dram(&name("x"), &[n], DType::U32, 256).unwrap();
            let y = device.alloc_dram(&name("y"), &[n], DType::U32, 256).unwrap();
            let slots = device.alloc_l1(&name("slots"), 3 * 256).unwrap();
            let program = increment(&device, &x, &y, &slots, 5 + u32::from(id.number()));
            pairs.push((id, x, y, program));
        }
        let words = |add: u32| (0..n as u32).flat_map(|i| (i * 3 + add).to_le_bytes()).collect::<Vec<u8>>();
        let mut reads = Vec::new();
        for (id, x, y, program) in &pairs {
            let other = QueueId::ALL[1 - id.index()];
            // All workers: the queues take turns.
            let turn = device.on_queue(other).unwrap().record_event().unwrap();
            let mut queue = device.on_queue(*id).unwrap();
            queue.wait_for_event(&turn).unwrap();
            queue.enqueue_write_buffer(x, &words(u32::from(id.number())), Blocking::No).unwrap();
            queue.enqueue_program(program, Blocking::No).unwrap();
            reads.push(queue.enqueue_read_buffer(y, Blocking::No).unwrap());
        }
        device.finish().unwrap();
        for (i, read) in (0..).zip(reads) {
            assert!(read.is_done(), "{way}: queue {i}");
            assert!(read.into_data().unwrap().unwrap() == words(5 + 2 * i), "{way}: queue {i}");
        }
        assert_eq!(device.statistics().programs, 2, "{way}");
        // And a run behind all of it, which uses all workers.
        device.run(&[empty(Cores::All)]).unwrap();
        assert_eq!(device.statistics().programs, 3, "{way}");
        device.close().unwrap();
    }
}

/// What is written on one queue is read on the other behind an event, in both directions, whatever
/// is under way.
#[test]
fn a_queue_waits_for_an_event_of_the_other() {
    for (way, config) in ways() {
        let mut device = crate::common::open(config);
        let buffer = device.alloc_dram("x", &[150_000], DType::U8, 2048).unwrap();
        for round in 0..6u8 {
            let (writer, reader) = (QueueId::ALL[usize::from(round % 2)], QueueId::ALL[usize::from(1 - round % 2)]);
            let data = pattern(150_000, round);
            let mut queue = device.on_queue(writer).unwrap();
            queue.enqueue_write_buffer(&buffer, &data, Blocking::No).unwrap();
            let event = queue.record_event().unwrap();
            assert_eq!(event.queue(), if config.dispatch == Dispatch::Slow { FIRST } else { writer }, "{way}");
            let mut queue = device.on_queue(reader).unwrap();
            queue.wait_for_event(&event).unwrap();
            let read = queue.enqueue_read_buffer(&buffer, Blocking::No).unwrap();
            // The next write comes from the other queue and waits for the end of this read.
            device.on_queue(writer).unwrap().wait_for_event(read.event()).unwrap();
            assert!(device.wait_for_read(read).unwrap() == data, "{way}: round {round}");
        }
    }
}

/// The numbers of events lie on every dispatcher, at the queue's own word.
#[test]
fn tt_metal_55419_the_words_of_two_queues_are_their_own() {
    let mut device = crate::common::open(config());
    for (id, events) in [(FIRST, 3), (SECOND, 5)] {
        for _ in 0..events {
            device.on_queue(id).unwrap().record_event().unwrap();
        }
    }
    device.finish().unwrap();
    // The host's last writes arrive.
    device.idle(10_000).unwrap();
    let word = |tile: NocXy, at: u32| {
        let l1 = device.chip().l1(tile).unwrap();
        u32::from_le_bytes(l1[at as usize..][..4].try_into().unwrap())
    };
    let layout = device.config().layout;
    let mut pointers = Vec::new();
    for id in QueueId::ALL {
        let tile = layout.queue(id).dispatch_tile(device.board());
        assert_eq!(word(tile, dispatch_core::last_event(FIRST)), 3);
        assert_eq!(word(tile, dispatch_core::last_event(SECOND)), 5);
        // The FIFO's pointers name pages of the queue's own region.
        let base = (id.region_noc_base() + tilework_abi::cq::layout::host::COMPLETION.offset()) >> 4;
        let read = word(tile, dispatch_core::COMPLETION_Q_RD_PTR);
        assert_eq!(read, word(tile, dispatch_core::COMPLETION_Q_WR_PTR));
        pointers.push((read - base) / 256);
    }
    assert_eq!(pointers, [3, 5], "one page of 4096 bytes for each event");
}

/// More data than a FIFO holds, on the queue that nobody waits for: the host takes its pages while
/// it waits for the other.
#[test]
fn a_host_that_waits_for_one_queue_serves_both() {
    let mut device = crate::common::open(config());
    let bytes = (32 << 20) + 50_000;
    let buffer = device.alloc_dram("x", &[bytes], DType::U8, 16_384).unwrap();
    let data = pattern(bytes, 7);
    device.upload(&buffer, &data).unwrap();
    let read = device.on_queue(SECOND).unwrap().enqueue_read_buffer(&buffer, Blocking::No).unwrap();
    let event = device.on_queue(SECOND).unwrap().record_event().unwrap();
    let mut queue = device.on_queue(FIRST).unwrap();
    queue.wait_for_event(&event).unwrap();
    queue.finish().unwrap();
    assert!(read.is_done());
    assert!(device.wait_for_read(read).unwrap() == data);
}

fn split_workers(device: &Device) -> (Vec<NocXy>, Vec<NocXy>) {
    let workers = device.workers();
    let (left, right) = workers.split_at(workers.len() / 2);
    (left.to_vec(), right.to_vec())
}

/// Programs of two queues that may meet on a worker are refused by name, unless an event, what the
/// host has noticed, or a finish orders them.
#[test]
fn programs_that_would_meet_are_refused() {
    for (way, config) in [ways()[0], ways()[1]] {
        let mut device = crate::common::open(config);
        let (left, right) = split_workers(&device);
        let out = device.alloc_l1("out", 64).unwrap().address.get();
        let on = |name: &str, cores: &[NocXy]| busy(name, cores, 3_000, out);
        let launch = |device: &mut Device, id, program: &Program| {
            device.on_queue(id).unwrap().enqueue_program(program, Blocking::No)
        };
        launch(&mut device, FIRST, &on("one", &left)).unwrap();
        launch(&mut device, SECOND, &on("beside", &right)).unwrap();
        let both = [left[3], right[2]];
        let refused = launch(&mut device, SECOND, &on("two", &both)).unwrap_err();
        let RuntimeError::Unordered { first, first_queue, second, second_queue, core } = &refused else {
            panic!("{way}: {refused}")
        };
        assert_eq!((first.as_str(), *first_queue, second.as_str(), *second_queue), ("one", FIRST, "two", SECOND));
        assert_eq!(*core, left[3], "{way}");
        // It harms nothing; an event orders them.
        let event = device.record_event().unwrap();
        device.on_queue(SECOND).unwrap().wait_for_event(&event).unwrap();
        launch(&mut device, SECOND, &on("two", &both)).unwrap();
        assert!(launch(&mut device, FIRST, &on("three", &both)).is_err(), "{way}");
        device.on_queue(SECOND).unwrap().finish().unwrap();
        launch(&mut device, FIRST, &on("three", &both)).unwrap();
        // What the host has noticed.
        let event = device.record_event().unwrap();
        assert!(launch(&mut device, SECOND, &on("four", &both)).is_err(), "{way}");
        device.event_synchronize(&event).unwrap();
        launch(&mut device, SECOND, &on("four", &both)).unwrap();
        device.finish().unwrap();
        assert_eq!(device.statistics().programs, 5, "{way}");
    }
}

/// Programs on disjoint workers run at the same time on two queues: both together take little more
/// than one alone.
#[test]
fn programs_on_two_queues_run_at_the_same_time() {
    let mut cycles = Vec::new();
    for queues in [[FIRST, FIRST], [FIRST, SECOND]] {
        let mut device = crate::common::open(config());
        let (left, right) = split_workers(&device);
        let out = device.alloc_l1("out", 64).unwrap().address.get();
        let start = device.chip().now();
        for (id, cores) in queues.into_iter().zip([&left, &right]) {
            let program = busy("busy", cores, 20_000, out);
            device.on_queue(id).unwrap().enqueue_program(&program, Blocking::No).unwrap();
        }
        device.finish().unwrap();
        cycles.push(device.chip().now() - start);
    }
    println!("one queue {} cycles, two queues {}", cycles[0], cycles[1]);
    assert!(10 * cycles[1] < 6 * cycles[0], "{cycles:?}");
}

/// When each event was noticed, by name.
type Timeline = Rc<RefCell<Vec<(String, Cycle)>>>;

fn stamp(timeline: &Timeline, name: impl Into<String>, event: &Event) {
    let (timeline, name) = (Rc::clone(timeline), name.into());
    event.on_completion(move |outcome| timeline.borrow_mut().push((name, *outcome.as_ref().unwrap())));
}

/// A stream of steps, each an upload, a program and a download: with transfers on a queue of their
/// own they overlap with the programs.
#[test]
fn transfers_on_one_queue_overlap_with_compute_on_the_other() {
    const STEPS: usize = 4;
    let run = |io: QueueId| {
        let mut device = crate::common::open(config());
        let bytes = 1 << 20;
        let cores = device.workers().to_vec();
        let out = device.alloc_l1("out", 64).unwrap().address.get();
        let program = busy("step", &cores, 30_000, out);
        let buffers: Vec<_> =
            (0..2).map(|i| device.alloc_dram(&format!("x{i}"), &[bytes], DType::U8, 4096).unwrap()).collect();
        let timeline = Timeline::default();
        let mut reads = Vec::new();
        let start = device.chip().now();
        let mut ended: Vec<Event> = Vec::new();
        for step in 0..STEPS {
            // Double buffering: an upload waits for the program two steps before it.
            let buffer = &buffers[step % 2];
            let mut queue = device.on_queue(io).unwrap();
            if let Some(event) = step.checked_sub(2).map(|i| &ended[i]) {
                queue.wait_for_event(event).unwrap();
            }
            queue.enqueue_write_buffer(buffer, &pattern(bytes, step as u8), Blocking::No).unwrap();
            let written = queue.record_event().unwrap();
            stamp(&timeline, format!("write {step}"), &written);
            let mut queue = device.on_queue(FIRST).unwrap();
            queue.wait_for_event(&written).unwrap();
            queue.enqueue_program(&program, Blocking::No).unwrap();
            let done = queue.record_event().unwrap();
            stamp(&timeline, format!("program {step}"), &done);
            ended.push(done);
            reads.push(device.on_queue(io).unwrap().enqueue_read_buffer(buffer, Blocking::No).unwrap());
        }
        device.finish().unwrap();
        let cycles = device.chip().now() - start;
        for (step, read) in reads.into_iter().enumerate() {
            assert!(read.into_data().unwrap().unwrap() == pattern(bytes, step as u8));
        }
        let timeline = timeline.borrow().clone();
        (cycles, timeline)
    };
    let (one, serial) = run(FIRST);
    let (two, overlapped) = run(SECOND);
    println!("one queue {one} cycles: {serial:?}\ntwo queues {two} cycles: {overlapped:?}");
    assert!(10 * two < 9 * one, "{one} cycles on one queue, {two} on two");
    let at = |timeline: &[(String, Cycle)], name: &str| timeline.iter().find(|(n, _)| n == name).unwrap().1;
    // On one queue the second upload comes behind the first program, on two before its end.
    assert!(at(&serial, "write 1") > at(&serial, "program 0"));
    assert!(at(&overlapped, "write 1") < at(&overlapped, "program 0"));
    assert!(overlapped.is_sorted_by_key(|&(_, cycle)| cycle));
}

/// A trace on each queue, on workers of its own: replays of both are under way at the same time,
/// and one that would meet a program of the other queue is refused.
#[test]
fn traces_of_two_queues_are_replayed_side_by_side() {
    let mut device = crate::common::open(config());
    let (left, right) = split_workers(&device);
    let out = device.alloc_l1("out", 64).unwrap().address.get();
    let programs = [busy("left", &left, 4_000, out), busy("right", &right, 4_100, out)];
    let mut traces = Vec::new();
    for (id, program) in QueueId::ALL.into_iter().zip(&programs) {
        device.on_queue(id).unwrap().enqueue_program(program, Blocking::Yes).unwrap();
        let capture = device.on_queue(id).unwrap().begin_trace_capture().unwrap();
        for _ in 0..3 {
            device.on_queue(id).unwrap().enqueue_program(program, Blocking::No).unwrap();
        }
        traces.push(device.end_trace_capture(capture).unwrap());
    }
    let mut cycles = [0; 2];
    for (together, cycles) in [false, true].into_iter().zip(&mut cycles) {
        let start = device.chip().now();
        for (id, trace) in QueueId::ALL.into_iter().zip(&traces) {
            device.on_queue(id).unwrap().replay_trace(trace, Blocking::No).unwrap();
            if !together {
                device.finish().unwrap();
            }
        }
        device.finish().unwrap();
        *cycles = device.chip().now() - start;
    }
    println!("replays one after the other {} cycles, at the same time {}", cycles[0], cycles[1]);
    assert!(10 * cycles[1] < 6 * cycles[0], "{cycles:?}");
    assert_eq!(device.statistics().programs, 2 + 2 * 2 * 3);
    // A program of the first queue on a worker of the second one's trace.
    device.enqueue_program(&busy("over", &right[..1], 9, out), Blocking::No).unwrap();
    let refused = device.on_queue(SECOND).unwrap().replay_trace(&traces[1], Blocking::No).unwrap_err();
    assert!(
        matches!(&refused, RuntimeError::Unordered { first, second, .. } if (&**first, &**second) == ("over", "right")),
        "{refused}"
    );
    let event = device.record_event().unwrap();
    let mut second = device.on_queue(SECOND).unwrap();
    second.wait_for_event(&event).unwrap();
    second.replay_trace(&traces[1], Blocking::Yes).unwrap();
    let wrong = device.on_queue(SECOND).unwrap().replay_trace(&traces[0], Blocking::No).unwrap_err();
    assert!(matches!(wrong, RuntimeError::Trace(_)), "{wrong}");
}

#[test]
fn wrong_queues_are_named() {
    let mut one = crate::common::open(DeviceConfig::new(Board::P100));
    let refused = one.on_queue(SECOND).unwrap_err();
    assert_eq!(refused.to_string(), "there is no queue 1: the device was opened with 1");
    assert!(one.on_queue(FIRST).unwrap().record_event().is_ok());
    let two = crate::common::open(config());
    assert_eq!(u32_of(two.workers().len()), 116);
}
