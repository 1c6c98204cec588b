//! Cached programs on the chip: the results of the plain lowering in fewer cycles, arguments that
//! change between launches, and reports that name what stopped.

use crate::common::{Device, empty, increment, kernel, open};
use tilework_abi::addr::PageCount;
use tilework_abi::board::Board;
use tilework_abi::cq::tiles::{DispatchLayout, GoSender};
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;
use tilework_runtime::lower::Lowering;
use tilework_runtime::memory::{BufferConfig, BufferType};
use tilework_runtime::{
    ArgSet, Blocking, Buffer, CircularBuffer, Cores, DType, DeviceConfig, Dispatch, MapValues, Program, Role,
    RuntimeError, UniqueArgs,
};

fn plain(layout: DispatchLayout) -> DeviceConfig {
    DeviceConfig { lowering: Lowering::Plain, ..cached(layout) }
}
fn cached(layout: DispatchLayout) -> DeviceConfig {
    DeviceConfig { layout, ..DeviceConfig::new(Board::P100) }
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// A copy through circular buffer `index` by all cores.
fn pipeline(from: &Buffer, to: &Buffer, workers: usize, index: u32) -> Program {
    let shares = crate::common::shares(from.pages().get(), workers as u32);
    let args = |buffer: &Buffer| {
        let list = |&(first, n): &(u32, u32)| vec![buffer.address.word(), first, n, buffer.page_size, index];
        UniqueArgs::PerCore(shares.iter().map(list).collect())
    };
    Program::new("pipeline", Cores::All)
        .role(
            Role::all()
                .kernel(Processor::Ncrisc, kernel("reader", Processor::Ncrisc))
                .kernel(Processor::Brisc, kernel("writer", Processor::Brisc)),
        )
        .circular_buffer(CircularBuffer { index, page_size: from.page_size, pages: PageCount::new(3) })
        .unique_args(ArgSet::Ncrisc, args(from))
        .unique_args(ArgSet::Brisc, args(to))
}

/// A chain of programs of which each reads what the one before it wrote: any overlap of their runs
/// would show in the result.
fn chain(device: &mut Device) -> (Vec<u32>, u64) {
    let elements = 200 * 256;
    let [x, y, z] = ["x", "y", "z"].map(|name| device.alloc_dram(name, &[elements], DType::U32, 1024).unwrap());
    let slots = device.alloc_l1("slots", 3 * 1024).unwrap();
    let data: Vec<u8> = (0..elements as u32).flat_map(|i| (i * 5).to_le_bytes()).collect();
    device.upload(&x, &data).unwrap();
    let n = device.workers().len();
    let mut programs = Vec::new();
    for round in 0..4 {
        programs.push(increment(device, &x, &y, &slots, 3 + round));
        programs.push(pipeline(&y, &z, n, 0));
        programs.push(empty(Cores::Count(7)));
        programs.push(increment(device, &z, &y, &slots, 4));
        programs.push(pipeline(&y, &x, n, 5 * round));
    }
    let report = device.run(&programs).unwrap();
    (words(&device.download(&x).unwrap()), report.cycles.unwrap())
}

#[test]
fn programs_that_depend_on_one_another_give_the_plain_results_in_fewer_cycles() {
    for layout in DispatchLayout::ALL {
        let (expected, before) = chain(&mut open(plain(layout)));
        assert!(expected.iter().zip(0u32..).all(|(&word, i)| word == i * 5 + 4 * 4 + 3 + 4 + 5 + 6));
        let (found, after) = chain(&mut open(cached(layout)));
        assert!(found == expected, "{layout}");
        println!("{layout}: {after} cycles, {before} by the plain lowering");
        assert!(after < before, "{layout}: {after} cycles, {before} by the plain lowering");
    }
}

#[test]
fn an_empty_program_on_all_workers_takes_at_most_2500_cycles_in_a_stream() {
    const PROGRAMS: u64 = 50;
    let programs = vec![empty(Cores::All); PROGRAMS as usize];
    let per = |config| {
        let mut device = open(config);
        device.run(&programs).unwrap();
        let report = device.run(&programs).unwrap();
        (report.cycles.unwrap() / PROGRAMS, report.statistics.cache)
    };
    for layout in DispatchLayout::ALL {
        let (cycles, counts) = per(cached(layout));
        assert!(cycles <= 2_500, "{layout}: {cycles} cycles");
        assert_eq!((counts.hits, counts.misses), (PROGRAMS, 0));
        assert_eq!((counts.text_sent, counts.text_resident), (0, PROGRAMS));
        let (before, _) = per(plain(layout));
        println!("{layout}: {cycles} cycles, {before} by the plain lowering");
        assert!(before > 4 * cycles, "{layout}: {before} cycles by the plain lowering");
    }
}

#[test]
fn the_next_program_is_sent_while_the_workers_run() {
    DispatchLayout::ALL.into_iter().for_each(the_next_program_is_sent);
}

fn the_next_program_is_sent(layout: DispatchLayout) {
    let mut device = open(DeviceConfig { capture: true, ..cached(layout) });
    device.run(&vec![empty(Cores::All); 3]).unwrap();
    let records: Vec<String> = tilework_cq::decode_stream(device.captured().unwrap())
        .flat_map(|record| record.unwrap().inner)
        .map(|inner| format!("{:?}", inner.command))
        .collect();
    let at = |what: &str, from: usize| from + records[from..].iter().position(|c| c.contains(what)).unwrap();
    let first = at("SendGoSignal", 0);
    let message = at("WritePackedLarge", first);
    let wait = at("Wait(", first);
    assert!(first < message && message < wait && wait < at("SendGoSignal", wait), "{layout}: {records:?}");
    let notified = records.iter().filter(|c| c.contains("NotifySubordinate")).count();
    assert_eq!(notified, if layout.go() == GoSender::Subordinate { 3 } else { 0 }, "{layout}");
}

#[test]
fn arguments_change_between_launches_without_lowering() {
    DispatchLayout::ALL.into_iter().for_each(arguments_change_between_launches);
}

fn arguments_change_between_launches(layout: DispatchLayout) {
    let mut device = open(cached(layout));
    let elements = device.workers().len() * 256;
    let [x, y] = ["x", "y"].map(|name| device.alloc_dram(name, &[elements], DType::U32, 1024).unwrap());
    let slots = device.alloc_l1("slots", 3 * 1024).unwrap();
    device.upload(&x, &vec![0; 4 * elements]).unwrap();
    let program = increment(&device, &x, &y, &slots, 1);
    let mut prepared = device.prepare(&program).unwrap();
    let UniqueArgs::PerCore(lists) = &program.args[0] else { panic!("lists for each core") };
    for round in 0..10u32 {
        for (core, list) in lists.iter().enumerate() {
            let mut list = list.clone();
            list[5] = round * 1000 + core as u32;
            prepared.set_args(ArgSet::Brisc, core, &list).unwrap();
        }
        device.enqueue_prepared(&mut prepared, Blocking::No).unwrap();
        let read = device.enqueue_read_buffer(&y, Blocking::No).unwrap();
        let found = words(&device.wait_for_read(read).unwrap());
        // One page for each core.
        assert!(found.iter().enumerate().all(|(i, &word)| word == round * 1000 + (i / 256) as u32), "round {round}");
    }
    let counts = device.statistics().cache;
    assert_eq!((counts.misses, counts.text_sent, counts.text_resident), (1, 1, 9));
}

#[test]
fn circular_buffers_move_when_memory_is_allocated_between_launches() {
    DispatchLayout::ALL.into_iter().for_each(circular_buffers_move);
}

fn circular_buffers_move(layout: DispatchLayout) {
    let mut device = open(cached(layout));
    let workers = device.workers().len();
    let bytes = workers * 1024;
    let [x, y] = ["x", "y"].map(|name| device.alloc_dram(name, &[bytes], DType::U8, 1024).unwrap());
    let data: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
    device.upload(&x, &data).unwrap();
    let program = pipeline(&x, &y, workers, 3);
    let mut prepared = device.prepare(&program).unwrap();
    let at = |device: &Device| device.layout(&program).unwrap().cbs[0].address;
    let first = at(&device);
    device.enqueue_prepared(&mut prepared, Blocking::Yes).unwrap();
    let low = BufferConfig::interleaved("low", BufferType::L1, workers as u64 * 4096, 4096).at(first.get().into());
    let low = device.memory().unwrap().alloc(&low).unwrap();
    device.upload(&low, &vec![0x5A; low.bytes()]).unwrap();
    let moved = at(&device);
    assert!(moved.get() >= first.get() + 4096, "{first} and {moved}");
    device.upload(&y, &vec![0; bytes]).unwrap();
    device.enqueue_prepared(&mut prepared, Blocking::Yes).unwrap();
    assert_eq!(device.download(&y).unwrap(), data);
    assert!(device.download(&low).unwrap() == vec![0x5A; low.bytes()], "the circular buffer lies over another");
    assert_eq!(device.statistics().cache.misses, 1);
}

#[test]
fn a_host_that_writes_into_the_configuration_space_costs_a_new_transfer_only() {
    DispatchLayout::ALL.into_iter().for_each(a_host_that_writes_costs_a_new_transfer);
}

fn a_host_that_writes_costs_a_new_transfer(layout: DispatchLayout) {
    let mut device = open(cached(layout));
    let out = device.alloc_l1("out", 64).unwrap().address;
    let program = Program::new("busy", Cores::Count(3))
        .role(Role::all().kernel(Processor::Brisc, kernel("busy", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![5, out.get()]));
    let expected = (0..5).fold(1u32, |x, _| x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    for round in 0..3 {
        device.run(std::slice::from_ref(&program)).unwrap();
        for core in device.layout(&program).unwrap().cores {
            let mut word = [0; 4];
            device.read_l1(core, out, &mut word).unwrap();
            assert_eq!(u32::from_le_bytes(word), expected, "round {round}");
            device.write_l1(core, out, &[0; 4]).unwrap();
            let text = device.memory_map().text_cache;
            device.write_l1(core, text, &[0xFF; 64]).unwrap();
        }
    }
    assert_eq!(device.statistics().cache.text_sent, 3);
}

#[test]
fn a_fault_of_the_program_in_flight_is_not_put_on_the_next() {
    DispatchLayout::ALL.into_iter().for_each(a_fault_is_put_on_its_program);
}

fn a_fault_is_put_on_its_program(layout: DispatchLayout) {
    let mut device = open(cached(layout));
    let word = device.alloc_l1("spin word", 64).unwrap();
    let core: NocXy = device.workers()[0];
    let spin = Program::new("spin", Cores::List(vec![core]))
        .role(Role::all().kernel(Processor::Brisc, kernel("spin", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::Uniform(vec![word.address.get()]));
    let error = device.run(&[empty(Cores::All), spin, empty(Cores::All), empty(Cores::Count(2))]).unwrap_err();
    let RuntimeError::Deadlock(report) = error else { panic!("expected a deadlock, found {error}") };
    assert_eq!(report.programs, ["spin"]);
    let text = report.to_string();
    assert!(text.contains("kernel spin of program spin"), "{text}");
    assert!(text.contains("a word in L1 buffer spin word"), "{text}");
    assert!(text.contains("stream 48: 0 of 1 workers done"), "{text}");
}

#[test]
fn without_a_text_cache_programs_are_lowered_plainly() {
    let values = MapValues::default();
    assert_eq!(values.text_cache_size, None);
    let slow = DeviceConfig { dispatch: Dispatch::Slow, ..cached(DispatchLayout::Dispatcher) };
    for config in DispatchLayout::ALL.map(plain).into_iter().chain([slow]) {
        let mut device = open(config);
        let report = device.run(&[empty(Cores::Count(3)), empty(Cores::Count(3))]).unwrap();
        assert_eq!((report.statistics.cache.hits, report.statistics.cache.misses), (0, 0));
        assert!(matches!(device.prepare(&empty(Cores::Count(3))), Err(RuntimeError::NoCache)));
    }
}
