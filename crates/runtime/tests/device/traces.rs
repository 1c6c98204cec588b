//! Traces on the chip: the results of the programs that were captured, as often as they are
//! replayed; and errors for what would make a replay wrong.

use crate::common::{Device, empty, increment, kernel, open};
use tilework_abi::board::Board;
use tilework_abi::cq::layout::QueueId;
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::tensix::Processor;
use tilework_runtime::lower::Lowering;
use tilework_runtime::memory::{BufferConfig, BufferType};
use tilework_runtime::{
    ArgSet, Blocking, Buffer, Cores, DType, DeviceConfig, Dispatch, L1Buffer, MemoryError, Program, Role, RuntimeError,
    TraceError, UniqueArgs,
};

fn cached() -> DeviceConfig {
    DeviceConfig::new(Board::P100)
}

/// Every way of dispatch that has traces.
fn ways() -> Vec<DeviceConfig> {
    let plain = DeviceConfig { lowering: Lowering::Plain, ..cached() };
    let mut all =
        vec![DeviceConfig { board: Board::P150, ..cached() }, DeviceConfig { dispatch: Dispatch::Slow, ..cached() }];
    for layout in DispatchLayout::ALL {
        all.extend([cached(), plain].map(|config| DeviceConfig { layout, ..config }));
    }
    all
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// Two arrays, room for the kernels, and programs of which each adds to what the one before it
/// left: `rounds` of them add `sum`.
struct Chain {
    x: Buffer,
    programs: Vec<Program>,
    sum: u32,
}

const ELEMENTS: usize = 120 * 64;

fn chain(device: &mut Device) -> Chain {
    let [x, y] = ["x", "y"].map(|name| device.alloc_dram(name, &[ELEMENTS], DType::U32, 256).unwrap());
    let slots: L1Buffer = device.alloc_l1("slots", 3 * 256).unwrap();
    let programs = vec![
        increment(device, &x, &y, &slots, 3),
        empty(Cores::Count(7)),
        increment(device, &y, &x, &slots, 5),
        increment(device, &x, &y, &slots, 7),
        empty(Cores::All),
        empty(Cores::Count(1)),
        increment(device, &y, &x, &slots, 11),
    ];
    device.upload(&x, &vec![0; 4 * ELEMENTS]).unwrap();
    Chain { x, programs, sum: 26 }
}

impl Chain {
    fn enqueue(&self, device: &mut Device) -> Result<(), RuntimeError> {
        self.programs.iter().try_for_each(|program| device.enqueue_program(program, Blocking::No))
    }
    fn value(&self, device: &mut Device) -> u32 {
        let found = words(&device.download(&self.x).unwrap());
        assert!(found.iter().all(|&word| word == found[0]), "the elements differ");
        found[0]
    }
}

#[test]
fn replays_do_what_was_captured() {
    for config in ways() {
        let mut device = open(config);
        let chain = chain(&mut device);
        chain.enqueue(&mut device).unwrap();
        assert_eq!(chain.value(&mut device), chain.sum, "{config:?}");
        let capture = device.begin_trace_capture().unwrap();
        chain.enqueue(&mut device).unwrap();
        let trace = device.end_trace_capture(capture).unwrap();
        assert_eq!(trace.programs(), chain.programs.len());
        assert_eq!(chain.value(&mut device), chain.sum, "nothing ran during the capture");
        let mut expected = chain.sum;
        for round in 0..5 {
            for _ in 0..=round {
                device.replay_trace(&trace, Blocking::No).unwrap();
                expected += chain.sum;
            }
            assert_eq!(chain.value(&mut device), expected, "{config:?}, round {round}");
            // Other launches between the replays change what the workers hold.
            chain.enqueue(&mut device).unwrap();
            device.run(&chain.programs).unwrap();
            expected += 2 * chain.sum;
        }
        device.replay_trace(&trace, Blocking::Yes).unwrap();
        assert_eq!(chain.value(&mut device), expected + chain.sum);
        let programs = device.statistics().programs;
        assert_eq!(programs, chain.programs.len() as u64 * (1 + 15 + 2 * 5 + 1), "{config:?}");
        device.release_trace(trace).unwrap();
        assert!(device.close().unwrap().0.iter().all(|(_, owned)| !owned.owner.starts_with("trace")));
    }
}

/// Two traces by turns, each of which leaves the launch messages, slots and go targets otherwise
/// than the other; and one whose text has made room for other programs' in the meantime.
#[test]
fn traces_live_side_by_side() {
    let mut device = open(cached());
    let chain = chain(&mut device);
    chain.enqueue(&mut device).unwrap();
    let capture_of = |device: &mut Device, programs: &[Program]| {
        let capture = device.begin_trace_capture().unwrap();
        programs.iter().for_each(|program| device.enqueue_program(program, Blocking::No).unwrap());
        device.end_trace_capture(capture).unwrap()
    };
    let whole = capture_of(&mut device, &chain.programs);
    let first = capture_of(&mut device, &chain.programs[..3]);
    let rest = capture_of(&mut device, &chain.programs[3..]);
    let mut expected = chain.value(&mut device);
    for round in 0..6 {
        device.replay_trace(&whole, Blocking::No).unwrap();
        device.replay_trace(&first, Blocking::No).unwrap();
        device.replay_trace(&rest, if round % 2 == 0 { Blocking::Yes } else { Blocking::No }).unwrap();
        expected += 2 * chain.sum;
        let core = device.workers()[round];
        let text = device.memory_map().text_cache;
        device.finish().unwrap();
        // The account forgets everything, and the text is gone.
        device.write_l1(core, text, &[0xFF; 512]).unwrap();
    }
    assert_eq!(chain.value(&mut device), expected);
    let before = device.memory().unwrap().dram().owners().count();
    for trace in [first, whole, rest] {
        device.release_trace(trace).unwrap();
    }
    assert_eq!(device.memory().unwrap().dram().owners().count(), before - 3);
}

/// Every start in the rings: issue region, prefetch queue, dispatch ring, completion FIFO.
#[test]
fn replays_work_from_every_start_of_the_rings() {
    let mut device = open(cached());
    let chain = chain(&mut device);
    chain.enqueue(&mut device).unwrap();
    let capture = device.begin_trace_capture().unwrap();
    chain.enqueue(&mut device).unwrap();
    let trace = device.end_trace_capture(capture).unwrap();
    let mut expected = chain.value(&mut device);
    // 1534 entries and 128 pages of the ring; events move the completion FIFO.
    for round in 0..160 {
        for _ in 0..round % 11 {
            device.record_event().unwrap();
        }
        device.replay_trace(&trace, Blocking::No).unwrap();
        expected += chain.sum;
        if round % 40 == 39 {
            assert_eq!(chain.value(&mut device), expected, "round {round}");
        }
    }
    assert_eq!(chain.value(&mut device), expected);
}

fn spin(address: u32, cores: usize) -> Program {
    Program::new("spin", Cores::Count(cores))
        .role(Role::all().kernel(Processor::Brisc, kernel("spin", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![address]))
}

#[test]
fn a_program_that_hangs_in_a_trace_is_named() {
    let mut device = open(cached());
    let word = device.alloc_l1("spin word", 64).unwrap();
    let (core, at) = (device.workers()[0], word.address);
    let programs = [empty(Cores::All), spin(at.get(), 1), empty(Cores::Count(3))];
    programs.iter().for_each(|program| device.enqueue_program(program, Blocking::No).unwrap());
    // It ends when its word changes.
    device.idle(20_000).unwrap();
    device.write_l1(core, at, &1u32.to_le_bytes()).unwrap();
    device.finish().unwrap();
    let capture = device.begin_trace_capture().unwrap();
    programs.iter().for_each(|program| device.enqueue_program(program, Blocking::No).unwrap());
    let trace = device.end_trace_capture(capture).unwrap();
    let error = device.replay_trace(&trace, Blocking::Yes).unwrap_err();
    let RuntimeError::Deadlock(report) = error else { panic!("expected a deadlock, found {error}") };
    let text = report.to_string();
    assert!(text.contains("kernel spin of program spin"), "{text}");
    assert!(text.contains("a word in L1 buffer spin word"), "{text}");
}

/// What a capture cannot have in it: the error names the call and the capture, which is given up;
/// the device goes on.
#[test]
fn what_a_replay_would_not_do_is_refused_in_a_capture() {
    type Call = fn(&mut Device, &Chain) -> Result<(), RuntimeError>;
    let calls: [(&str, Call); 11] = [
        ("enqueue_write_buffer", |d, c| d.enqueue_write_buffer(&c.x, &vec![0; 4 * ELEMENTS], Blocking::No)),
        ("enqueue_write_buffer", |d, c| d.upload(&c.x, &vec![0; 4 * ELEMENTS])),
        ("enqueue_read_buffer", |d, c| d.enqueue_read_buffer(&c.x, Blocking::No).map(drop)),
        ("enqueue_read_buffer", |d, c| d.download(&c.x).map(drop)),
        ("record_event", |d, _| d.record_event().map(drop)),
        ("finish", |d, _| d.finish()),
        ("a blocking call", |d, c| d.enqueue_program(&c.programs[0], Blocking::Yes)),
        ("run", |d, c| d.run(&c.programs).map(drop)),
        ("read_l1", |d, _| d.read_l1(d.workers()[0], d.memory_map().data, &mut [0; 4])),
        ("write_l1", |d, _| d.write_l1(d.workers()[0], d.memory_map().data, &[0; 4])),
        ("begin_trace_capture", |d, _| d.begin_trace_capture().map(drop)),
    ];
    for config in [cached(), DeviceConfig { dispatch: Dispatch::Slow, ..cached() }] {
        let mut device = open(config);
        let chain = chain(&mut device);
        chain.enqueue(&mut device).unwrap();
        for (name, call) in calls {
            let capture = device.begin_trace_capture().unwrap();
            let begun = line!() - 1;
            chain.enqueue(&mut device).unwrap();
            let error = call(&mut device, &chain).unwrap_err();
            let RuntimeError::Trace(TraceError::InCapture { call, trace, at }) = &error else {
                panic!("{name}: {error}")
            };
            assert_eq!((*call, trace.begun.line(), at.file(), trace.begun.file()), (name, begun, file!(), file!()));
            // Nothing of the capture is left.
            let error = device.end_trace_capture(capture).unwrap_err();
            assert!(matches!(error, RuntimeError::Trace(TraceError::GivenUp { .. })), "{error}");
            assert!(error.to_string().contains(name), "{error}");
            device.finish().unwrap();
        }
        let event = device.record_event().unwrap();
        let capture = device.begin_trace_capture().unwrap();
        assert!(device.wait_for_event(&event).unwrap_err().to_string().contains("wait_for_event"));
        drop(capture);
        assert_eq!(chain.value(&mut device), chain.sum, "nothing of any capture ran");
    }
}

#[test]
fn a_program_that_is_not_on_the_workers_is_refused_in_a_capture() {
    let mut device = open(cached());
    let (three, all) = (empty(Cores::Count(3)), empty(Cores::All));
    let refused = |device: &mut Device, program: &Program| {
        let capture = device.begin_trace_capture().unwrap();
        let error = device.enqueue_program(program, Blocking::No).unwrap_err();
        assert!(error.to_string().contains("run it once before the capture"), "{error}");
        assert!(matches!(&error, RuntimeError::Trace(TraceError::Program { .. })), "{error}");
        device.end_trace_capture(capture).unwrap_err();
    };
    refused(&mut device, &all);
    device.run(std::slice::from_ref(&three)).unwrap();
    // Compiled, but never sent.
    device.prepare(&all).unwrap();
    refused(&mut device, &all);
    device.run(std::slice::from_ref(&all)).unwrap();
    let (core, text) = (device.workers()[2], device.memory_map().text_cache);
    device.write_l1(core, text, &[0xFF; 64]).unwrap();
    refused(&mut device, &three);
    device.run(&[all, three]).unwrap();
}

#[test]
fn a_dropped_capture_is_given_up() {
    let mut device = open(cached());
    let chain = chain(&mut device);
    chain.enqueue(&mut device).unwrap();
    let capture = device.begin_trace_capture().unwrap();
    chain.enqueue(&mut device).unwrap();
    drop(capture);
    chain.enqueue(&mut device).unwrap();
    assert_eq!(chain.value(&mut device), 2 * chain.sum);
    device.free_dram(&chain.x).unwrap();
}

#[test]
fn memory_of_a_trace_is_neither_freed_nor_given_to_others() {
    let mut device = open(cached());
    let chain = chain(&mut device);
    let other = device.alloc_dram("other", &[64], DType::U32, 256).unwrap();
    let cb = Program::new("with a circular buffer", Cores::All)
        .role(Role::all().kernel(Processor::Brisc, kernel("empty", Processor::Brisc)))
        .circular_buffer(tilework_runtime::CircularBuffer {
            index: 0,
            page_size: 1024,
            pages: tilework_abi::addr::PageCount::new(2),
        });
    chain.enqueue(&mut device).unwrap();
    device.enqueue_program(&cb, Blocking::Yes).unwrap();
    let low = device.layout(&cb).unwrap().cbs[0].address;
    let capture = device.begin_trace_capture().unwrap();
    chain.enqueue(&mut device).unwrap();
    device.enqueue_program(&cb, Blocking::No).unwrap();
    // In the capture as well as behind it.
    for capturing in [true, false] {
        let error = device.free_dram(&chain.x).unwrap_err();
        let RuntimeError::Memory(MemoryError::Pinned { name, call, at, pin }) = &error else { panic!("{error}") };
        assert_eq!((name.as_str(), *call, at.file(), pin.at.file()), ("x", "freed", file!(), file!()));
        assert_eq!(pin.program, "increment", "{capturing}");
    }
    device.free_dram(&other).unwrap();
    let trace = device.end_trace_capture(capture).unwrap();
    assert!(device.free_dram(&chain.x).is_err());
    let over = BufferConfig::interleaved("over", BufferType::L1, 118 * 1024, 1024).at(low.get().into());
    let error = device.memory().unwrap().alloc(&over).unwrap_err();
    assert!(error.to_string().contains("over cannot be allocated"), "{error}");
    assert!(error.to_string().contains("a circular buffer of program with a circular buffer"), "{error}");
    device.replay_trace(&trace, Blocking::Yes).unwrap();
    assert_eq!(chain.value(&mut device), 2 * chain.sum);
    let again = trace.clone();
    device.release_trace(trace).unwrap();
    device.memory().unwrap().alloc(&over).unwrap();
    device.free_dram(&chain.x).unwrap();
    for error in [device.replay_trace(&again, Blocking::No), device.release_trace(again)] {
        assert!(matches!(error, Err(RuntimeError::Trace(TraceError::Released { .. }))));
    }
}

#[test]
fn a_trace_region_that_is_too_small_says_what_is_needed() {
    let programs = vec![empty(Cores::All); 600];
    let capture_in = |size: u64| {
        let mut device = open(DeviceConfig { trace_region_size: size, ..cached() });
        device.run(&programs[..1]).unwrap();
        let capture = device.begin_trace_capture().unwrap();
        programs.iter().for_each(|program| device.enqueue_program(program, Blocking::No).unwrap());
        let result = device.end_trace_capture(capture);
        // The device goes on.
        device.run(&programs[..1]).unwrap();
        result.map(|trace| {
            device.replay_trace(&trace, Blocking::Yes).unwrap();
            device.statistics().programs
        })
    };
    let error = capture_in(4096).unwrap_err();
    let RuntimeError::Trace(TraceError::Region { bytes, free, expected, .. }) = error else { panic!("{error}") };
    assert_eq!((free, bytes), (4096, expected));
    assert_eq!(capture_in(expected).unwrap(), 602);
    assert!(capture_in(expected - 64).is_err());
    assert_eq!(capture_in(0).unwrap(), 602);
}

/// A trace of the second queue beside transfers on the first; its memory is given to the first when
/// it is released while it is replayed.
#[test]
fn a_trace_of_the_second_queue_runs_beside_the_first() {
    let mut device = open(DeviceConfig { queues: 2, ..cached() });
    let chain = chain(&mut device);
    let other = device.alloc_dram("other", &[ELEMENTS], DType::U32, 256).unwrap();
    chain.enqueue(&mut device).unwrap();
    device.finish().unwrap();
    let mut second = device.on_queue(QueueId::SECOND).unwrap();
    let capture = second.begin_trace_capture().unwrap();
    for _ in 0..40 {
        chain.programs.iter().for_each(|program| second.enqueue_program(program, Blocking::No).unwrap());
    }
    let trace = device.end_trace_capture(capture).unwrap();
    let error = device.replay_trace(&trace, Blocking::No).unwrap_err();
    assert!(matches!(&error, RuntimeError::Trace(TraceError::Queue { .. })), "{error}");
    let data: Vec<u8> = (0..4 * ELEMENTS).map(|i| (i % 253) as u8).collect();
    device.on_queue(QueueId::SECOND).unwrap().replay_trace(&trace, Blocking::No).unwrap();
    device.enqueue_write_buffer(&other, &data, Blocking::No).unwrap();
    let range = {
        let dram = device.memory().unwrap().dram();
        dram.owners().find(|owned| owned.owner == "trace 0").unwrap().range.clone()
    };
    device.release_trace(trace).unwrap();
    let banks = device.dram_banks() as u64;
    let config = BufferConfig::interleaved("over", BufferType::Dram, (range.end - range.start) * banks, 4096);
    let over = device.memory().unwrap().alloc(&config.at(range.start)).unwrap();
    device.enqueue_write_buffer(&over, &vec![0xFF; over.bytes()], Blocking::No).unwrap();
    device.finish().unwrap();
    assert_eq!(chain.value(&mut device), 41 * chain.sum);
    assert_eq!(device.download(&other).unwrap(), data);
}

/// Tenstorrent's golden figure for a program in a trace is 0.92 us, 1,250 cycles.
#[test]
fn an_empty_program_in_a_trace_takes_at_most_1250_cycles() {
    for workers in [1, 118] {
        let mut device = open(cached());
        let program = empty(Cores::Count(workers));
        device.run(std::slice::from_ref(&program)).unwrap();
        let mut cycles = [100u64, 300].map(|programs| {
            let capture = device.begin_trace_capture().unwrap();
            (0..programs).for_each(|_| device.enqueue_program(&program, Blocking::No).unwrap());
            let trace = device.end_trace_capture(capture).unwrap();
            let start = device.chip().now();
            device.replay_trace(&trace, Blocking::Yes).unwrap();
            device.chip().now() - start
        });
        println!("{workers} workers: {cycles:?}");
        assert!(cycles[1] <= 300 * 1_250, "{cycles:?}");
        cycles[1] -= cycles[0];
        println!("{workers} workers: {} cycles for each program", cycles[1] / 200);
    }
}
