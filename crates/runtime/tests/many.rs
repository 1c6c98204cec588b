//! Ten thousand programs in one process: every ring and counter goes round.

mod common;

use common::{empty, open};
use tilework_abi::board::Board;
use tilework_abi::cq::layout::{host, prefetch_core};
use tilework_runtime::{ArgSet, Cores, DeviceConfig, UniqueArgs};

/// The program from which on memory must stay flat: the completion FIFO has gone round (a page an
/// event), so host memory that is used for the first time is no excuse.
const WARM: u32 = host::COMPLETION_PAGES + 8;
/// Programs from one with arguments for each core to the next.
const LONG: u32 = 14;
/// Programs after which the account of what the workers hold, four slots, is at the same place.
const PERIOD: usize = 4 * LONG as usize;
/// What the process may grow by over the last 1,800 programs, in KiB: less than 150 bytes a
/// program, which is less than its record.
const GROWTH: u64 = 256;

/// Resident memory of this process in KiB; `None` where the system does not tell. It is that of all
/// tests of the binary, so there is one.
fn resident() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Completion FIFO (8192 pages), prefetch queue (1534 entries) and issue region (64 MiB) all wrap.
/// Every fourteenth program carries arguments for each core, so that the issue region wraps too.
#[test]
#[cfg_attr(debug_assertions, ignore = "minutes without optimisation; run with --release")]
fn ten_thousand_empty_programs_on_all_workers() {
    let mut device = open(DeviceConfig::new(Board::P100));
    let plain = [empty(Cores::All)];
    let args = (0..118).map(|core| (0..250).map(|i| core << 16 | i).collect()).collect();
    let long = [plain[0].clone().unique_args(ArgSet::Brisc, UniqueArgs::PerCore(args))];
    device.run(&plain).unwrap();
    let mut cycles = [(u64::MAX, 0); PERIOD];
    let mut memory = None;
    for i in 1..10_000 {
        if i == WARM {
            let sent = device.queue().unwrap().record_bytes();
            assert!(sent > host::ISSUE.size().into(), "the issue region has not gone round: {sent} bytes");
            memory = resident();
        }
        if i % LONG == 0 {
            device.run(&long).unwrap();
            continue;
        }
        let taken = device.run(&plain).unwrap().cycles.unwrap();
        // The first times everything is sent.
        if i as usize > PERIOD {
            let (least, most) = &mut cycles[i as usize % PERIOD];
            (*least, *most) = ((*least).min(taken), (*most).max(taken));
        }
    }
    let grown = resident().zip(memory).map(|(now, then)| now.saturating_sub(then));
    let (queue, all) = (device.queue().unwrap(), device.statistics());
    assert_eq!((all.programs, queue.event()), (10_000, 10_000));
    assert!(all.programs > host::COMPLETION_PAGES.into());
    assert!(all.commands > 30 * u64::from(prefetch_core::PREFETCH_Q_ENTRIES));
    // Every program at a place of the period is the same work: nothing gets slower on the way.
    assert!(cycles.iter().all(|(least, most)| *least == u64::MAX || *most < least + least / 10), "{cycles:?}");
    match grown {
        Some(grown) => assert!(grown <= GROWTH, "{grown} KiB more at the end than after {WARM} programs"),
        None => eprintln!("memory is not checked: no VmRSS in /proc/self/status"),
    }
    // What the last program with arguments wrote is there, on every worker its own.
    let base = device.memory_map().kernel_config;
    let workers = device.workers().to_vec();
    assert_eq!(workers.len(), 118);
    for (core, &worker) in (0..).zip(&workers) {
        let mut word = [0; 4];
        device.read_l1(worker, base.offset(4 * 249), &mut word).unwrap();
        assert_eq!(u32::from_le_bytes(word), core << 16 | 249, "worker {worker}");
    }
}
