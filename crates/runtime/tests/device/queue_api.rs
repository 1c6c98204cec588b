//! The asynchronous calls of a device: buffers through the queue, events, call-backs. Each test
//! runs under fast dispatch, with buffers through the queue and by windows, and under slow
//! dispatch, and the results are the same.

use crate::common::{Device, empty, increment};
use std::cell::RefCell;
use std::rc::Rc;
use tilework_abi::board::Board;
use tilework_runtime::queue::timing::ENQUEUE_TT_METAL;
use tilework_runtime::{Blocking, Cores, DType, DeviceConfig, Dispatch, HostCost, RuntimeError, TimeSlot, Transfers};

/// The ways in which a device moves data.
fn ways() -> [(&'static str, DeviceConfig); 3] {
    let config = DeviceConfig::new(Board::P100);
    [
        ("queue", config),
        ("windows", DeviceConfig { transfers: Transfers::Windows, ..config }),
        ("slow dispatch", DeviceConfig { dispatch: Dispatch::Slow, ..config }),
    ]
}

fn each_way(test: impl Fn(&str, Device)) {
    for (name, config) in ways() {
        test(name, crate::common::open(config));
    }
}

/// Bytes that tell where they are.
fn pattern(bytes: usize, seed: u8) -> Vec<u8> {
    (0..bytes).map(|i| (i as u8).wrapping_mul(31) ^ (i >> 8) as u8 ^ (i >> 16) as u8 ^ seed).collect()
}

/// Empty, one byte, a page and one byte less or more, all banks and one page less or more, pages
/// that share a record and pages that are longer than one.
#[test]
fn arrays_of_every_size_come_back() {
    each_way(|way, mut device| {
        let banks = device.dram_banks();
        for page in [64usize, 4096, 65_472, 65_536, 131_072] {
            for bytes in [0, 1, page - 1, page, page + 1, (banks - 1) * page, banks * page + 5] {
                let buffer = device.alloc_dram("x", &[bytes], DType::U8, page as u32).unwrap();
                let data = pattern(bytes, page as u8);
                device.enqueue_write_buffer(&buffer, &data, Blocking::No).unwrap();
                let read = device.enqueue_read_buffer(&buffer, Blocking::No).unwrap();
                let found = device.wait_for_read(read).unwrap();
                assert!(found == data, "{way}: {bytes} bytes in pages of {page}");
                device.free_dram(&buffer).unwrap();
            }
        }
    });
}

/// What is read was written before the call, whatever is written later; what is written between two
/// reads is in the second only.
#[test]
fn reads_and_writes_keep_their_order() {
    each_way(|way, mut device| {
        let bytes = 100_000;
        let buffer = device.alloc_dram("x", &[bytes], DType::U8, 2048).unwrap();
        let reads: Vec<_> = (0..6)
            .map(|seed| {
                device.enqueue_write_buffer(&buffer, &pattern(bytes, seed), Blocking::No).unwrap();
                device.enqueue_read_buffer(&buffer, Blocking::No).unwrap()
            })
            .collect();
        device.finish().unwrap();
        for (seed, read) in (0..).zip(reads) {
            assert!(read.is_done(), "{way}: read {seed}");
            let found = read.into_data().unwrap().unwrap();
            assert!(found == pattern(bytes, seed), "{way}: read {seed}");
        }
    });
}

#[test]
fn programs_and_transfers_keep_their_order() {
    each_way(|way, mut device| {
        let n = 4 * 118 * 64;
        let x = device.alloc_dram("x", &[n], DType::U32, 256).unwrap();
        let y = device.alloc_dram("y", &[n], DType::U32, 256).unwrap();
        let slots = device.alloc_l1("slots", 3 * 256).unwrap();
        let (there, back) = (increment(&device, &x, &y, &slots, 7), increment(&device, &y, &x, &slots, 100));
        let words = |f: &dyn Fn(u32) -> u32| (0..n as u32).flat_map(|i| f(i).to_le_bytes()).collect::<Vec<u8>>();
        device.enqueue_write_buffer(&x, &words(&|i| i), Blocking::No).unwrap();
        let mut reads = Vec::new();
        for _ in 0..2 {
            device.enqueue_program(&there, Blocking::No).unwrap();
            reads.push(device.enqueue_read_buffer(&y, Blocking::No).unwrap());
            device.enqueue_program(&back, Blocking::No).unwrap();
            reads.push(device.enqueue_read_buffer(&x, Blocking::No).unwrap());
        }
        for (added, read) in [7, 107, 114, 214].into_iter().zip(reads) {
            let found = device.wait_for_read(read).unwrap();
            assert!(found == words(&|i| i + added), "{way}: + {added}");
        }
        // Four programs, however they were run.
        assert_eq!(device.statistics().programs, 4, "{way}");
        device.run(&[empty(Cores::All)]).unwrap();
        assert_eq!(device.statistics().programs, 5, "{way}");
    });
}

/// Call-backs run in the order of the queue, and those of one event in the order in which they were
/// asked for; the cycles that they are told never go back.
#[test]
fn calls_are_made_in_the_order_of_the_queue() {
    each_way(|way, mut device| {
        let calls = Rc::new(RefCell::new(Vec::new()));
        let buffer = device.alloc_dram("x", &[300_000], DType::U8, 1024).unwrap();
        let mut events = Vec::new();
        for i in 0..4 {
            device.enqueue_program(&empty(Cores::Count(1 + i)), Blocking::No).unwrap();
            let read = device.enqueue_read_buffer(&buffer, Blocking::No).unwrap();
            for (what, event) in [("read", read.event().clone()), ("event", device.record_event().unwrap())] {
                for which in ["first", "second"] {
                    let calls = Rc::clone(&calls);
                    event.on_completion(move |outcome| {
                        calls.borrow_mut().push((i, what, which, *outcome.as_ref().unwrap()));
                    });
                }
                events.push(event);
            }
        }
        device.event_synchronize(&events[3]).unwrap();
        assert!(events[..4].iter().all(|event| event.is_done()), "{way}");
        device.finish().unwrap();
        let calls = calls.borrow();
        let expected = (0..4).flat_map(|i| ["read", "event"].map(|what| [(i, what, "first"), (i, what, "second")]));
        let found: Vec<_> = calls.iter().map(|&(i, what, which, _)| (i, what, which)).collect();
        assert_eq!(found, expected.flatten().collect::<Vec<_>>(), "{way}");
        assert!(calls.is_sorted_by_key(|call| call.3), "{way}: {calls:?}");
        let last = calls.last().unwrap().3;
        assert_eq!(events.last().unwrap().poll().unwrap().unwrap(), last, "{way}");
    });
}

/// An event is noticed while time passes, at the cycle at which it came, and not only when somebody
/// asks.
#[test]
fn events_are_noticed_while_time_passes() {
    let mut device = crate::common::open(DeviceConfig::new(Board::P100));
    device.enqueue_program(&empty(Cores::All), Blocking::No).unwrap();
    let event = device.record_event().unwrap();
    assert!(!device.event_query(&event).unwrap());
    let start = device.chip().now();
    device.idle(1_000_000).unwrap();
    assert_eq!(device.chip().now(), start + 1_000_000);
    let noticed = event.poll().unwrap().unwrap();
    assert!(start < noticed && noticed < start + 50_000, "{noticed}, enqueued at {start}");
    // Looking costs nothing.
    assert!(device.event_query(&event).unwrap());
    assert_eq!(device.event_synchronize(&event).unwrap(), noticed);
    device.wait_for_event(&event).unwrap();
    assert_eq!(device.chip().now(), start + 1_000_000);
}

/// The same calls take the same cycles; a profile of the host's cost adds its cycles to each call.
#[test]
fn time_depends_on_the_calls_alone() {
    let run = |host_cost| {
        let mut device = crate::common::open(DeviceConfig { host_cost, ..DeviceConfig::new(Board::P100) });
        let buffer = device.alloc_dram("x", &[50_000], DType::U8, 1024).unwrap();
        let start = device.chip().now();
        device.enqueue_write_buffer(&buffer, &pattern(50_000, 1), Blocking::No).unwrap();
        let read = device.enqueue_read_buffer(&buffer, Blocking::No).unwrap();
        let enqueued = device.chip().now() - start;
        device.finish().unwrap();
        let read = read.event().poll().unwrap().unwrap() - start;
        (enqueued, read, device.chip().now() - start)
    };
    let free = run(HostCost::None);
    assert_eq!(free, run(HostCost::None));
    let (dear, dear_again) = (run(HostCost::TtMetal), run(HostCost::TtMetal));
    assert_eq!(dear, dear_again);
    assert!(free.0 < 2_000, "{free:?}");
    assert!(dear.0 >= 2 * ENQUEUE_TT_METAL && dear.0 < free.0 + 2 * ENQUEUE_TT_METAL + 2_000, "{dear:?}, {free:?}");
}

/// More than the FIFO holds, in one read and in many: the host takes pages while it waits, for room
/// in the queue as well.
#[test]
fn reads_larger_than_the_completion_fifo() {
    let mut device = crate::common::open(DeviceConfig::new(Board::P100));
    let bytes = (32 << 20) + 12_345;
    let buffer = device.alloc_dram("x", &[bytes], DType::U8, 16_384).unwrap();
    let data = pattern(bytes, 9);
    device.upload(&buffer, &data).unwrap();
    assert!(device.download(&buffer).unwrap() == data);
    // The FIFO has wrapped; again, so that it wraps at another place.
    let reads = [0; 2].map(|_| device.enqueue_read_buffer(&buffer, Blocking::No).unwrap());
    for read in reads {
        assert!(device.wait_for_read(read).unwrap() == data);
    }
}

/// Small reads all through the FIFO: each takes a page, and the pointer wraps more than once.
#[test]
fn events_and_small_reads_wrap_the_completion_fifo() {
    let mut device = crate::common::open(DeviceConfig::new(Board::P100));
    let buffer = device.alloc_dram("x", &[6_000], DType::U8, 64).unwrap();
    let data = pattern(6_000, 3);
    device.upload(&buffer, &data).unwrap();
    let mut pages = 0;
    while pages < 2 * 8192 + 100 {
        let reads: Vec<_> = (0..50)
            .map(|_| {
                let read = device.enqueue_read_buffer(&buffer, Blocking::No).unwrap();
                device.record_event().unwrap();
                read
            })
            .collect();
        device.finish().unwrap();
        for read in reads {
            assert!(read.into_data().unwrap().unwrap() == data);
        }
        pages += 50 * 3;
    }
}

#[test]
fn a_stream_of_programs_keeps_a_short_account() {
    let mut device = crate::common::open(DeviceConfig::new(Board::P100));
    let program = empty(Cores::Count(2));
    for _ in 0..2_000 {
        device.enqueue_program(&program, Blocking::No).unwrap();
    }
    let sent = device.queue().unwrap().sent().len();
    assert!(sent < 20_000, "{sent} commands are remembered");
    device.finish().unwrap();
    assert_eq!(device.queue().unwrap().sent().len(), 0);
    assert_eq!(device.statistics().programs, 2_000);
}

#[test]
fn wrong_calls_are_named() {
    each_way(|way, mut device| {
        let mut other = crate::common::open(*device.config());
        let event = other.record_event().unwrap();
        for found in [
            device.wait_for_event(&event).unwrap_err(),
            device.event_query(&event).unwrap_err(),
            device.event_synchronize(&event).unwrap_err(),
        ] {
            assert!(matches!(found, RuntimeError::ForeignEvent), "{way}: {found}");
        }
        let buffer = device.alloc_dram("x", &[10], DType::U8, 64).unwrap();
        let size = device.enqueue_write_buffer(&buffer, &[0; 9], Blocking::No).unwrap_err();
        assert!(matches!(size, RuntimeError::Memory(_)), "{way}: {size}");
        // Neither harms the device.
        device.upload(&buffer, &[1; 10]).unwrap();
        assert_eq!(device.download(&buffer).unwrap(), [1; 10], "{way}");
    });
}

/// Programs that are only enqueued take as long as those of a run, by the dispatcher's clock, and a
/// stretch of the queue has times of its own behind them.
#[test]
fn enqueued_programs_take_what_those_of_a_run_take() {
    let mut device = crate::common::open(DeviceConfig::new(Board::P100));
    let (x, y) = (device.alloc_dram("x", &[4096], DType::U8, 1024), device.alloc_dram("y", &[4096], DType::U8, 1024));
    let (x, y) = (x.unwrap(), y.unwrap());
    let slots = device.alloc_l1("slots", 3 * 1024).unwrap();
    device.upload(&x, &pattern(4096, 7)).unwrap();
    let programs = [increment(&device, &x, &y, &slots, 3), empty(Cores::Count(4))];
    // The first run brings the kernels to the workers.
    device.run(&programs).unwrap();
    let report = device.run(&programs).unwrap();
    let expected: Vec<_> = report.programs.iter().map(|program| program.cycles().unwrap()).collect();
    let slot = |index| TimeSlot::new(index).unwrap();
    for (index, program) in programs.iter().enumerate() {
        let (cores, timed) = device.enqueue_program_timed(program, slot(index)).unwrap();
        assert_eq!((cores, timed), ([device.workers().len(), 4][index], true));
    }
    let data = pattern(4096, 9);
    let write = device.enqueue_timed(slot(2), |device| device.enqueue_write_buffer(&x, &data, Blocking::No));
    assert!(write.unwrap().1);
    device.finish().unwrap();
    let times: Vec<[u64; 2]> = (0..3).map(|index| device.times(slot(index)).unwrap()).collect();
    let found: Vec<u64> = times.iter().map(|[start, end]| end - start).collect();
    // When the records of a command arrive is the host's affair, which is a part of the difference.
    let close = |(found, expected): (&u64, &u64)| found.abs_diff(*expected) * 10 <= *expected;
    assert!(found.iter().zip(&expected).all(close), "{found:?} instead of {expected:?}");
    assert!(times.windows(2).all(|pair| pair[0][1] <= pair[1][0]) && found[2] > 0, "{times:?}");
    assert!(TimeSlot::new(TimeSlot::COUNT).is_none());
}
