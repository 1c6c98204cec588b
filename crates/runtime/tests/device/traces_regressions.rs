//! Defects that were reported of the original's traces, and traces with sub-devices.
//! `queue_firmware/regressions.rs` has the list of all defects.

use crate::common::{Device, empty, increment, kernel};
use tilework_abi::addr::L1Addr;
use tilework_abi::board::Board;
use tilework_abi::cq::layout::{SEMAPHORE_OFFSET, SemaphoreId, dispatch_core, prefetch_core};
use tilework_abi::cq::tiles::DispatchLayout;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_runtime::lower::Lowering;
use tilework_runtime::memory::{BufferConfig, BufferType};
use tilework_runtime::{
    ArgSet, Blocking, Buffer, Cores, DType, DeviceConfig, Event, MemoryError, Program, QueueId, Role, RuntimeError,
    SubDevice, Trace, TraceError, UniqueArgs,
};
use tilework_sim::{Chip, ChipConfig, LatePackets};

const FIRST: QueueId = QueueId::FIRST;
const SECOND: QueueId = QueueId::SECOND;
const ELEMENTS: usize = 120 * 64;

fn config(queues: u8) -> DeviceConfig {
    DeviceConfig { queues, ..DeviceConfig::new(Board::P100) }
}

fn busy(name: &str, cores: &[NocXy], steps: u32, address: u32) -> Program {
    Program::new(name, Cores::List(cores.to_vec()))
        .role(Role::all().kernel(Processor::Brisc, kernel("busy", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![steps, address]))
}

/// What `busy` writes.
fn result(steps: u32) -> u32 {
    (0..steps).fold(1, |x: u32, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223))
}

fn word(device: &mut Device, core: NocXy, address: u32) -> u32 {
    let mut bytes = [0; 4];
    device.read_l1(core, L1Addr::new(address), &mut bytes).unwrap();
    u32::from_le_bytes(bytes)
}

/// A trace of queue `id` with these programs, each of which is run once before.
fn trace_of(device: &mut Device, id: QueueId, programs: &[Program]) -> Trace {
    let mut queue = device.on_queue(id).unwrap();
    programs.iter().for_each(|program| queue.enqueue_program(program, Blocking::Yes).unwrap());
    let capture = queue.begin_trace_capture().unwrap();
    programs.iter().for_each(|program| queue.enqueue_program(program, Blocking::No).unwrap());
    device.end_trace_capture(capture).unwrap()
}

fn array(device: &mut Device, name: &str) -> Buffer {
    device.alloc_dram(name, &[ELEMENTS], DType::U32, 256).unwrap()
}

/// All elements of an array, which are equal.
fn value(device: &mut Device, buffer: &Buffer) -> u32 {
    let bytes = device.download(buffer).unwrap();
    assert!(bytes.chunks_exact(4).all(|word| word == &bytes[..4]), "{}: the elements differ", buffer.name);
    u32::from_le_bytes(bytes[..4].try_into().unwrap())
}

fn fill(device: &mut Device, buffer: &Buffer, value: u32) {
    device.upload(buffer, &value.to_le_bytes().repeat(ELEMENTS)).unwrap();
}

/// Both ends of every ring of both queues have its size: traces longer than each ring are replayed
/// at the same time, and then the credits are back.
#[test]
fn tt_metal_13484_traces_of_two_queues_share_no_ring_and_lose_no_credit() {
    for layout in DispatchLayout::ALL {
        let mut device = crate::common::open(DeviceConfig { layout, lowering: Lowering::Plain, ..config(2) });
        let out = device.alloc_l1("out", 64).unwrap().address.get();
        let workers = device.workers().to_vec();
        let traces = QueueId::ALL.map(|id| {
            let cores = workers.chunks(workers.len() / 2).nth(id.index()).unwrap();
            let program = busy("busy", cores, 3 + u32::from(id.number()), out);
            // Plain lowering sends the kernel again each time.
            let trace = trace_of(&mut device, id, &vec![program; 300]);
            let rings = prefetch_core::CMDDAT_Q.region().size().max(dispatch_core::DISPATCH_CB.region().size());
            assert!(trace.bytes() > rings as usize, "{} bytes", trace.bytes());
            trace
        });
        for _ in 0..3 {
            for (id, trace) in QueueId::ALL.into_iter().zip(&traces) {
                device.on_queue(id).unwrap().replay_trace(trace, Blocking::No).unwrap();
            }
        }
        device.finish().unwrap();
        // The last credits arrive.
        device.idle(20_000).unwrap();
        let semaphores = device.memory_map().kernel_config.get() + SEMAPHORE_OFFSET;
        for id in QueueId::ALL {
            let tiles = layout.queue(id);
            let board = device.board();
            let mut semaphore = |tile, id: SemaphoreId| word(&mut device, tile, id.addr(semaphores));
            let (ring, prefetch) = (dispatch_core::DISPATCH_CB, tiles.prefetch_tile(board));
            let credits = semaphore(prefetch, prefetch_core::SEM_DISPATCH_PAGES);
            let came = semaphore(tiles.dispatch_tile(board), dispatch_core::SEM_CB_PAGES);
            assert!(came > ring.pages().get(), "{layout}, queue {id}: the ring went round");
            // All but the block that is being read and the one before it.
            let (given_back, block) = (credits.wrapping_sub(ring.pages().get()), ring.pages_per_block().get());
            let held = came.wrapping_sub(given_back);
            assert!(given_back.is_multiple_of(block) && held <= 2 * block, "{layout}, queue {id}: {came} {given_back}");
        }
    }
}

/// A trace whose programs start more workers than the 17 bits of a stream's counter hold.
#[test]
fn tt_metal_9113_a_trace_counts_beyond_the_width_of_a_stream() {
    let mut device = crate::common::open(config(1));
    let all = empty(Cores::All);
    let out = device.alloc_l1("out", 64).unwrap().address.get();
    let last = busy("last", device.workers(), 400, out);
    device.run(&[all.clone(), last.clone()]).unwrap();
    let count = (1 << 17) / device.workers().len() + 50;
    let capture = device.begin_trace_capture().unwrap();
    (0..count).for_each(|_| device.enqueue_program(&all, Blocking::No).unwrap());
    device.enqueue_program(&last, Blocking::No).unwrap();
    let trace = device.end_trace_capture(capture).unwrap();
    for _ in 0..2 {
        for core in device.workers().to_vec() {
            device.write_l1(core, L1Addr::new(out), &[0; 4]).unwrap();
        }
        device.replay_trace(&trace, Blocking::Yes).unwrap();
        for core in device.workers().to_vec() {
            assert_eq!(word(&mut device, core, out), result(400), "{core}: the end of the trace was waited for");
        }
    }
    assert_eq!(device.statistics().programs, 2 + 2 * (count as u64 + 1));
}

/// Everything that can be allocated beside a live trace is, and is written: the replay is right.
#[test]
fn tt_metal_54032_allocating_beside_a_live_trace_harms_no_replay() {
    let mut device = crate::common::open(config(1));
    let [x, y] = ["x", "y"].map(|name| array(&mut device, name));
    let slots = device.alloc_l1("slots", 3 * 256).unwrap();
    fill(&mut device, &x, 5);
    let program = increment(&device, &x, &y, &slots, 3);
    let trace = trace_of(&mut device, FIRST, &[program]);
    let range_of = |device: &mut Device, name: &str| {
        let dram = device.memory().unwrap().dram();
        dram.owners().find(|owned| owned.owner == name).unwrap().range.clone()
    };
    let commands = range_of(&mut device, "trace 0");
    let banks = device.dram_banks() as u64;
    // On the commands themselves, and right beside them.
    let bytes = commands.end - commands.start;
    let at = |name: &str, start| BufferConfig::interleaved(name, BufferType::Dram, bytes * banks, 4096).at(start);
    assert!(device.memory().unwrap().alloc(&at("on it", commands.start)).is_err());
    let below = device.memory().unwrap().alloc(&at("below", commands.start - bytes)).unwrap();
    let mut written = vec![below];
    for i in 0..40 {
        written.push(array(&mut device, &format!("more {i}")));
    }
    for buffer in &written {
        device.upload(buffer, &vec![0xFF; buffer.bytes()]).unwrap();
    }
    // All of L1 that is left.
    let free = (1..=1024u32).rev().find_map(|kib| device.alloc_l1("rest", kib * 1024).ok()).unwrap();
    for core in device.workers().to_vec() {
        device.write_l1(core, free.address, &[0xEE; 4096]).unwrap();
    }
    fill(&mut device, &x, 40);
    device.replay_trace(&trace, Blocking::Yes).unwrap();
    assert_eq!(value(&mut device, &y), 43);
}

/// What any of several live traces uses is guarded, whichever was captured or released last.
#[test]
fn tt_metal_48869_every_live_trace_guards_what_it_uses() {
    let mut device = crate::common::open(config(1));
    let slots = device.alloc_l1("slots", 3 * 256).unwrap();
    let arrays: Vec<[Buffer; 2]> =
        (0..3).map(|i| ["x", "y"].map(|name| array(&mut device, &format!("{name}{i}")))).collect();
    let mut traces = Vec::new();
    for (i, [x, y]) in (0..).zip(&arrays) {
        fill(&mut device, x, 10 * i);
        let program = increment(&device, x, y, &slots, i + 1);
        traces.push(trace_of(&mut device, FIRST, &[program]));
    }
    let pinned = |device: &mut Device, buffer: &Buffer| match device.free_dram(buffer) {
        Err(RuntimeError::Memory(MemoryError::Pinned { pin, .. })) => Some(pin.trace.number),
        Err(error) => panic!("{error}"),
        Ok(()) => None,
    };
    let second = traces.remove(1);
    device.release_trace(second).unwrap();
    for (i, [x, y]) in (0..).zip(&arrays) {
        let by = (i != 1).then_some(i);
        assert_eq!([x, y].map(|buffer| pinned(&mut device, buffer)), [by, by]);
    }
    for trace in &traces {
        device.replay_trace(trace, Blocking::Yes).unwrap();
    }
    assert_eq!([0, 2].map(|i| value(&mut device, &arrays[i][1])), [1, 23]);
}

/// The same program with other arrays, between capture and replay: each uses its own addresses.
#[test]
fn tt_metal_7343_45435_a_cached_program_and_its_trace_keep_their_own_addresses() {
    for lowering in [Lowering::Cached, Lowering::Plain] {
        let mut device = crate::common::open(DeviceConfig { lowering, ..config(1) });
        let [x, y, z, w] = ["x", "y", "z", "w"].map(|name| array(&mut device, name));
        let slots = device.alloc_l1("slots", 3 * 256).unwrap();
        let [captured, other] = [(&x, &y, 1), (&z, &w, 100)].map(|(a, b, n)| increment(&device, a, b, &slots, n));
        fill(&mut device, &x, 10);
        fill(&mut device, &z, 1000);
        let trace = trace_of(&mut device, FIRST, std::slice::from_ref(&captured));
        for round in 0..4u32 {
            fill(&mut device, &x, 10 * round);
            fill(&mut device, &w, 0);
            fill(&mut device, &y, 0);
            device.enqueue_program(&other, Blocking::No).unwrap();
            assert_eq!([&w, &y].map(|buffer| value(&mut device, buffer)), [1100, 0]);
            fill(&mut device, &w, 7);
            device.replay_trace(&trace, Blocking::No).unwrap();
            assert_eq!([&w, &y].map(|buffer| value(&mut device, buffer)), [7, 10 * round + 1]);
        }
    }
}

/// Traces on both queues, however late packets are: what a replay reads has landed.
#[test]
fn tt_metal_52233_replays_on_two_queues_do_not_depend_on_the_order_of_packets() {
    for (seed, lowering) in [(21, Lowering::Cached), (22, Lowering::Plain), (23, Lowering::Cached)] {
        let late = Some(LatePackets { seed, most: 1_500 });
        let chip = Chip::new(ChipConfig { late, ..ChipConfig::new(Board::P100) }).unwrap();
        let mut device = Device::open(chip, DeviceConfig { lowering, ..config(2) }).unwrap();
        let [x, y] = ["x", "y"].map(|name| array(&mut device, name));
        let slots = device.alloc_l1("slots", 3 * 256).unwrap();
        fill(&mut device, &x, 0);
        let [there, back] = [(FIRST, &x, &y, 3), (SECOND, &y, &x, 4)].map(|(id, from, to, add)| {
            let program = increment(&device, from, to, &slots, add);
            trace_of(&mut device, id, &[program])
        });
        fill(&mut device, &x, 0);
        let mut turn: Option<Event> = None;
        for _ in 0..6 {
            for (id, trace) in [(FIRST, &there), (SECOND, &back)] {
                let mut queue = device.on_queue(id).unwrap();
                if let Some(event) = &turn {
                    queue.wait_for_event(event).unwrap();
                }
                queue.replay_trace(trace, Blocking::No).unwrap();
                turn = Some(queue.record_event().unwrap());
            }
        }
        device.finish().unwrap();
        assert_eq!(value(&mut device, &x), 6 * 7, "seed {seed}");
    }
}

/// Two sets of ten workers.
fn split(device: &mut Device) -> [Vec<NocXy>; 2] {
    let sets = [0, 10].map(|from| device.workers()[from..from + 10].to_vec());
    device.load_sub_devices(&sets.clone().map(|cores| SubDevice { cores })).unwrap();
    sets
}

/// A trace on the second sub-device is replayed while a program runs on the first.
#[test]
fn a_trace_of_one_sub_device_runs_beside_a_program_of_another() {
    for layout in DispatchLayout::ALL {
        let mut cycles = Vec::new();
        for blocking in [Blocking::Yes, Blocking::No] {
            let mut device = crate::common::open(DeviceConfig { layout, ..config(1) });
            let [one, two] = split(&mut device);
            let out = device.alloc_l1("out", 64).unwrap().address.get();
            let programs: Vec<Program> = [5_000, 5_100, 5_200].map(|n| busy("traced", &two, n, out)).into();
            let trace = trace_of(&mut device, FIRST, &programs);
            let long = busy("long", &one, 15_000, out);
            device.enqueue_program(&long, Blocking::Yes).unwrap();
            for &core in one.iter().chain(&two) {
                device.write_l1(core, L1Addr::new(out), &[0; 4]).unwrap();
            }
            let start = device.chip().now();
            device.enqueue_program(&long, blocking).unwrap();
            device.replay_trace(&trace, Blocking::No).unwrap();
            device.finish().unwrap();
            cycles.push(device.chip().now() - start);
            for (cores, steps) in [(&one, 15_000), (&two, 5_200)] {
                for &core in cores {
                    assert_eq!(word(&mut device, core, out), result(steps), "{layout}, {core}");
                }
            }
        }
        println!("{layout}: one after the other {} cycles, at the same time {}", cycles[0], cycles[1]);
        assert!(10 * cycles[1] < 6 * cycles[0], "{layout}: {cycles:?}");
    }
}

/// What a trace cannot be with sub-devices and two queues: each error names the call, and the
/// device works on.
#[test]
fn traces_of_other_sub_devices_and_queues_are_refused_by_name() {
    for lowering in [Lowering::Cached, Lowering::Plain] {
        let mut device = crate::common::open(DeviceConfig { lowering, ..config(2) });
        let [one, two] = split(&mut device);
        let programs = [&one, &two].map(|cores| empty(Cores::List(cores.clone())));
        device.run(&programs).unwrap();
        // Two sub-devices in one trace.
        let capture = device.begin_trace_capture().unwrap();
        device.enqueue_program(&programs[1], Blocking::No).unwrap();
        let error = device.enqueue_program(&programs[0], Blocking::No).unwrap_err();
        let expected = "a trace is of one sub-device: program empty is on sub-device 0, those before it on 1";
        assert!(error.to_string().contains(expected), "{error}");
        assert!(device.end_trace_capture(capture).unwrap_err().to_string().contains(expected));
        // A program of the other queue in a capture.
        let capture = device.begin_trace_capture().unwrap();
        let error = device.on_queue(SECOND).unwrap().enqueue_program(&programs[0], Blocking::No).unwrap_err();
        assert!(error.to_string().contains("is of queue 0, and enqueue_program at "), "{error}");
        assert!(error.to_string().contains("is about queue 1"), "{error}");
        device.end_trace_capture(capture).unwrap_err();
        // A replay on the other queue.
        let trace = trace_of(&mut device, SECOND, &programs[1..]);
        let error = device.replay_trace(&trace, Blocking::No).unwrap_err();
        let RuntimeError::Trace(TraceError::Queue { trace: name, of, call, at, asked }) = &error else {
            panic!("{error}")
        };
        assert_eq!((*name, *of, *call, at.file(), *asked), (trace.name(), SECOND, "replay_trace", file!(), FIRST));
        device.on_queue(SECOND).unwrap().replay_trace(&trace, Blocking::Yes).unwrap();
        // A replay with other sub-devices, or none.
        for clear in [true, false] {
            if clear {
                device.clear_sub_devices().unwrap();
            } else {
                split(&mut device);
            }
            let error = device.on_queue(SECOND).unwrap().replay_trace(&trace, Blocking::No).unwrap_err();
            let RuntimeError::Trace(TraceError::OtherSubDevices { trace: name, call, at }) = &error else {
                panic!("{error}")
            };
            assert_eq!((*name, *call, at.file()), (trace.name(), "replay_trace", file!()));
        }
        device.release_trace(trace).unwrap();
        let again = trace_of(&mut device, SECOND, &programs[1..]);
        device.on_queue(SECOND).unwrap().replay_trace(&again, Blocking::Yes).unwrap();
        device.close().unwrap();
    }
}
