//! Programs give the right arrays, whatever the board and the way of dispatch, and the same cycles
//! every time.

use crate::common::{Device, empty, increment, kernel, shares};
use tilework_abi::addr::PageCount;
use tilework_abi::board::Board;
use tilework_abi::tensix::Processor;
use tilework_runtime::{
    ArgSet, CircularBuffer, Cores, DType, DeviceConfig, Dispatch, FirmwareSet, Program, Role, RunReport, UniqueArgs,
};

fn open(board: Board, dispatch: Dispatch) -> Device {
    crate::common::open(DeviceConfig { dispatch, ..DeviceConfig::new(board) })
}

/// Runs `increment` and returns the output with the report.
fn run_increment(board: Board, dispatch: Dispatch) -> (Vec<u8>, RunReport) {
    let mut device = open(board, dispatch);
    let elements = 100 * 1000 + 3;
    let x = device.alloc_dram("x", &[elements], DType::U32, 1024).unwrap();
    let y = device.alloc_dram("y", &[elements], DType::U32, 1024).unwrap();
    let slots = device.alloc_l1("slots", 3 * 1024).unwrap();
    let data: Vec<u8> = (0..elements as u32).flat_map(|i| (i * 3).to_le_bytes()).collect();
    device.upload(&x, &data).unwrap();
    let program = increment(&device, &x, &y, &slots, 1);
    let report = device.run(&[program]).unwrap();
    (device.download(&y).unwrap(), report)
}

#[test]
fn increment_adds_one_on_both_boards_by_both_ways_of_dispatch() {
    for board in [Board::P100, Board::P150] {
        for dispatch in [Dispatch::Fast, Dispatch::Slow] {
            let (out, report) = run_increment(board, dispatch);
            let words = out.chunks_exact(4).map(|w| u32::from_le_bytes(w.try_into().unwrap()));
            assert!(words.zip(0u32..).all(|(w, i)| w == i * 3 + 1), "{board:?} {dispatch:?}");
            assert_eq!(out.len(), 4 * (100 * 1000 + 3));
            let program = &report.programs[0];
            assert!(program.cycles().is_some_and(|c| c > 1000 && Some(c) <= report.cycles), "{program:?}");
            assert!(report.statistics.chip.unwrap().instructions > 100_000);
        }
    }
}

#[test]
fn two_runs_give_the_same_bytes_and_cycles() {
    let (first, second) = (run_increment(Board::P100, Dispatch::Fast), run_increment(Board::P100, Dispatch::Fast));
    assert_eq!(first, second);
}

#[test]
fn sleeping_cores_change_neither_bytes_nor_cycles() {
    let run = |parking| {
        let mut device =
            crate::common::open_with(DeviceConfig::new(Board::P100), parking, FirmwareSet::prebuilt().unwrap());
        let elements = 40 * 256;
        let x = device.alloc_dram("x", &[elements], DType::U32, 1024).unwrap();
        let y = device.alloc_dram("y", &[elements], DType::U32, 1024).unwrap();
        let slots = device.alloc_l1("slots", 3 * 1024).unwrap();
        device.upload(&x, &vec![7; 4 * elements]).unwrap();
        let program = increment(&device, &x, &y, &slots, 1);
        let report = device.run(&[empty(Cores::Count(3)), program, empty(Cores::All)]).unwrap();
        let statistics = device.statistics().chip.unwrap();
        let y = device.download(&y).unwrap();
        assert!(y.chunks_exact(4).all(|word| word == [8, 7, 7, 7]));
        (report.programs, report.cycles, statistics.noc_bytes, statistics.pcie_bytes)
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn pages_go_through_a_circular_buffer_with_uneven_counts() {
    let mut device = open(Board::P100, Dispatch::Fast);
    let (pages, page) = (501, 256);
    let x = device.alloc_dram("x", &[pages * page], DType::U8, page as u32).unwrap();
    let y = device.alloc_dram("y", &[pages * page], DType::U8, page as u32).unwrap();
    let data: Vec<u8> = (0..pages * page).map(|i| (i % 251) as u8).collect();
    device.upload(&x, &data).unwrap();
    let shares = shares(pages as u32, device.workers().len() as u32);
    let args =
        |b: u32| UniqueArgs::PerCore(shares.iter().map(|&(first, n)| vec![b, first, n, page as u32, 3]).collect());
    let program = Program::new("pipeline", Cores::All)
        .role(
            Role::all()
                .kernel(Processor::Ncrisc, kernel("reader", Processor::Ncrisc))
                .kernel(Processor::Brisc, kernel("writer", Processor::Brisc)),
        )
        .circular_buffer(CircularBuffer { index: 3, page_size: page as u32, pages: PageCount::new(4) })
        .unique_args(ArgSet::Ncrisc, args(x.address.word()))
        .unique_args(ArgSet::Brisc, args(y.address.word()));
    device.run(&[program.clone(), program]).unwrap();
    assert_eq!(device.download(&y).unwrap(), data);
}

#[test]
fn a_ring_of_all_workers_passes_a_token() {
    for dispatch in [Dispatch::Fast, Dispatch::Slow] {
        let mut device = open(Board::P150, dispatch);
        let workers = device.workers().to_vec();
        let n = workers.len();
        let y = device.alloc_dram("y", &[n], DType::U32, 64).unwrap();
        let token = device.alloc_l1("token", 64).unwrap();
        let laps = 3;
        let args = (0..n).map(|i| {
            let next = workers[(i + 1) % n].encode();
            vec![i as u32, next, laps, i as u32 + 1, token.address.get(), y.address.word(), 64]
        });
        let program = Program::new("ring", Cores::All)
            .role(Role::all().kernel(Processor::Brisc, kernel("ring", Processor::Brisc)))
            .semaphore(0)
            .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(args.collect()));
        device.run(&[program]).unwrap();
        let out = device.download(&y).unwrap();
        let whole: u32 = (1..=n as u32).sum();
        for (i, word) in out.chunks_exact(4).enumerate() {
            let i = i as u32 + 1;
            let expected = (laps - 1) * whole + i * (i + 1) / 2;
            assert_eq!(u32::from_le_bytes(word.try_into().unwrap()), expected, "worker {i}, {dispatch:?}");
        }
    }
}

#[test]
fn core_times_lie_between_the_programs_timestamps() {
    let config = DeviceConfig { core_timing: true, ..DeviceConfig::new(Board::P100) };
    let mut device = crate::common::open(config);
    let report = device.run(&[empty(Cores::All), empty(Cores::Count(5))]).unwrap();
    assert_eq!(report.programs[0].core_times.len(), 118);
    assert_eq!(report.programs[1].core_times.len(), 5);
    for program in &report.programs {
        let (start, end) = (program.start.unwrap(), program.end.unwrap());
        for core in &program.core_times {
            assert!(start < core.start && core.start < core.end && core.end < end, "{program:?}");
        }
    }
}

#[test]
fn captured_records_decode_to_the_commands_that_were_sent() {
    let config = DeviceConfig { capture: true, ..DeviceConfig::new(Board::P100) };
    let mut device = crate::common::open(config);
    let report = device.run(&[empty(Cores::Count(2))]).unwrap();
    let bytes = device.captured().unwrap().to_vec();
    let records: Vec<_> = tilework_cq::decode_stream(&bytes).collect::<Result<_, _>>().unwrap();
    assert_eq!(records.len() as u64, report.statistics.commands);
}
