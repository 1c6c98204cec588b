//! Dispatch layouts: the same programs give the same results, whoever sends go signals and
//! whichever tiles run the command queue.

use crate::common::{Device, empty, increment, open};
use tilework_abi::board::Board;
use tilework_abi::cq::tiles::{DispatchLayout, GoSender};
use tilework_abi::msg::RUN_DONE;
use tilework_runtime::{Cores, DType, DeviceConfig};

fn device(board: Board, layout: DispatchLayout) -> Device {
    open(DeviceConfig { layout, ..DeviceConfig::new(board) })
}

/// Runs three programs that depend on each other, twice; returns what they leave in DRAM.
fn results(device: &mut Device) -> Vec<u8> {
    let bytes: Vec<u8> = (0..40_000u32).flat_map(|i| i.wrapping_mul(0x9E37_79B9).to_le_bytes()).collect();
    let x = device.alloc_dram("x", &[40_000], DType::U32, 2048).unwrap();
    let y = device.alloc_dram("y", &[40_000], DType::U32, 2048).unwrap();
    let slots = device.alloc_l1("slots", 2 * 2048).unwrap();
    device.upload(&x, &bytes).unwrap();
    for _ in 0..2 {
        let there = increment(device, &x, &y, &slots, 5);
        let back = increment(device, &y, &x, &slots, 7);
        let report = device.run(&[there, empty(Cores::All), back]).unwrap();
        assert!(report.programs.iter().all(|p| p.cycles().is_some_and(|n| n > 0)), "{report:?}");
    }
    device.download(&x).unwrap()
}

#[test]
fn every_layout_gives_the_same_results() {
    for board in [Board::P100, Board::P150] {
        let expected: Vec<u8> =
            (0..40_000u32).flat_map(|i| i.wrapping_mul(0x9E37_79B9).wrapping_add(24).to_le_bytes()).collect();
        for layout in DispatchLayout::ALL {
            let mut device = device(board, layout);
            assert_eq!(device.workers().len(), board.tensix_count() - layout.tile_count());
            assert!(results(&mut device) == expected, "{layout} on a {}", board.name());
        }
    }
}

#[test]
fn every_layout_takes_the_same_cycles_each_time() {
    for layout in DispatchLayout::ALL {
        let cycles = || {
            let mut device = device(Board::P100, layout);
            results(&mut device);
            device.statistics()
        };
        assert_eq!(cycles(), cycles(), "{layout}");
    }
}

/// The subordinate's go signals and counts do not run out: more launches than its ring has pages,
/// and more reports of workers than half of what a stream counts.
#[test]
fn six_hundred_programs_in_a_row_run_with_every_sender() {
    for layout in [DispatchLayout::Subordinate, DispatchLayout::SubordinateTile] {
        assert_eq!(layout.go(), GoSender::Subordinate);
        let mut device = device(Board::P100, layout);
        let programs = vec![empty(Cores::All); 600];
        let report = device.run(&programs).unwrap();
        assert_eq!(report.programs.len(), 600);
        let reports = 600 * device.workers().len();
        assert!(reports > 1 << 16, "{reports} reports are not enough to pass half of a stream's count");
        for worker in device.workers().to_vec() {
            let go = device.memory_map().go;
            let mut word = [0; 4];
            device.read_l1(worker, go, &mut word).unwrap();
            assert_eq!(word[3], RUN_DONE);
        }
    }
}
