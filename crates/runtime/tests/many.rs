//! Ten thousand programs in one process: every ring and counter goes round.

mod common;

use common::empty;
use tilework_abi::board::Board;
use tilework_abi::cq::layout::{host, prefetch_core};
use tilework_runtime::{ArgSet, Cores, Device, DeviceConfig, UniqueArgs};

/// Resident memory of this process in KiB, where the system tells.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"));
    line.and_then(|l| l.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// Completion FIFO (8192 pages), prefetch queue (1534 entries) and issue region (64 MiB) all wrap. Every sixteenth program carries arguments
/// for each core, so that the issue region wraps too.
#[test]
#[cfg_attr(debug_assertions, ignore = "minutes without optimisation; run with --release")]
fn ten_thousand_empty_programs_on_all_workers() {
    let mut device = Device::open(DeviceConfig::new(Board::P100)).unwrap();
    let plain = [empty(Cores::All)];
    let args = (0..118).map(|core| (0..250).map(|i| core << 16 | i).collect()).collect();
    let long = [plain[0].clone().unique_args(ArgSet::Brisc, UniqueArgs::PerCore(args))];
    device.run(&plain).unwrap();
    let mut cycles = (u64::MAX, 0);
    let mut memory = 0;
    for i in 1..10_000 {
        if i == 8_000 {
            memory = resident();
        }
        if i % 16 == 0 {
            device.run(&long).unwrap();
            continue;
        }
        let taken = device.run(&plain).unwrap().cycles;
        cycles = (cycles.0.min(taken), cycles.1.max(taken));
    }
    let grown = resident().saturating_sub(memory);
    let (queue, all) = (device.queue().unwrap(), device.statistics());
    assert_eq!((all.programs, queue.event()), (10_000, 10_000));
    assert!(all.programs > host::COMPLETION_PAGES.into());
    assert!(all.commands > 50 * u64::from(prefetch_core::PREFETCH_Q_ENTRIES));
    assert!(queue.record_bytes() > host::ISSUE.size().into(), "{}", queue.record_bytes());
    // Every program is the same work: nothing gets slower or larger on the way.
    assert!(cycles.1 < cycles.0 + cycles.0 / 10, "{cycles:?}");
    assert!(grown < 4 << 10, "{grown} KiB more at the end than after 8000 programs");
    // What the last program with arguments wrote is there, on the last worker too.
    let mut word = [0; 4];
    let last = *device.workers().last().unwrap();
    let base = device.memory_map().kernel_config;
    device.read_l1(last, base + 4 * 249, &mut word).unwrap();
    assert_eq!(u32::from_le_bytes(word), 117 << 16 | 249);
}
