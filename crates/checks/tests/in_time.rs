//! Events come in the order of cycles, and none for a cycle that its observer was told is over,
//! however many are handed over at once: a timeline is written as far as that, and not changed.

use std::path::Path;
use std::sync::{Arc, Mutex};
use tilework_abi::addr::PageCount;
use tilework_abi::board::Board;
use tilework_abi::l1::GO_ENTRIES;
use tilework_abi::tensix::Processor;
use tilework_checks::{CheckObserver, Checks, Policy};
use tilework_driver::Note;
use tilework_runtime::{
    ArgSet, CircularBuffer, Cores, DType, Device, DeviceConfig, Dispatch, FirmwareSet, KernelImage, Program, Role,
    UniqueArgs, prebuilt,
};
use tilework_sim::{Chip, ChipConfig, Cycle, Event, Observer, Wants, What};

/// Pages of each tile, their bytes, and tiles that run a program (`firmware/kernels/seeded`).
const PAGES: usize = 8;
const PAGE: usize = 256;
const TILES: usize = 3;

/// What an observer has seen.
#[derive(Default)]
struct Seen {
    /// The first cycle that is not over, and the cycle of the last event.
    reached: Cycle,
    last: Cycle,
    events: usize,
    resumed: usize,
    early: usize,
    lines: usize,
    wrong: Vec<String>,
}

/// How much comes at once.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Batches {
    /// What happens within a window.
    Windows,
    /// Few events.
    Few,
    /// Many, among them lines.
    Lines,
}

/// Looks at the cycles of events.
struct InTime {
    wants: Wants,
    batches: Batches,
    seen: Arc<Mutex<Seen>>,
}

impl Observer for InTime {
    fn wants(&self) -> Wants {
        self.wants
    }
    fn lines(&self) -> Vec<std::ops::Range<u32>> {
        let go = FirmwareSet::prebuilt().unwrap().map().go.get();
        std::iter::once(go..go + 4 * GO_ENTRIES).collect()
    }
    fn takes_lines(&self) -> bool {
        self.batches == Batches::Lines
    }
    fn judges(&self) -> bool {
        self.batches == Batches::Windows
    }
    fn events(&mut self, events: &[Event]) {
        let seen = &mut *self.seen.lock().unwrap();
        for event in events {
            if event.at < seen.reached || event.at < seen.last {
                seen.wrong.push(format!("{} is reached, {} the last event's: {event:?}", seen.reached, seen.last));
            }
            seen.last = event.at;
            seen.events += 1;
            seen.resumed += usize::from(event.what == What::Resumed);
            seen.early += usize::from(event.early);
            seen.lines += usize::from(matches!(event.what, What::Line(_)));
        }
    }
    fn note(&mut self, at: Cycle, note: &Note) {
        let seen = &mut *self.seen.lock().unwrap();
        if at < seen.reached {
            seen.wrong.push(format!("{} is reached: at {at} {note:?}", seen.reached));
        }
    }
    fn reached(&mut self, at: Cycle) {
        let seen = &mut *self.seen.lock().unwrap();
        assert!(at >= seen.reached, "time does not go back");
        seen.reached = at;
    }
}

/// Runs program `case` of the corpus.
fn run(case: u32, threads: usize, wants: Wants, batches: Batches) -> Seen {
    let config = DeviceConfig { dispatch: Dispatch::Fast, ..DeviceConfig::new(Board::P100) };
    let threads = std::num::NonZero::new(threads);
    let mut chip = Chip::new(ChipConfig { threads, ..ChipConfig::new(Board::P100) }).unwrap();
    if batches == Batches::Lines {
        chip.observe(Box::new(CheckObserver::new(Arc::new(Mutex::new(Checks::new(Policy::default()))))));
    }
    let seen = Arc::new(Mutex::new(Seen::default()));
    chip.observe(Box::new(InTime { wants, batches, seen: seen.clone() }));
    let firmware = FirmwareSet::prebuilt().unwrap();
    let mut device = Device::open_with(chip, config, firmware, prebuilt::cq_kernels().unwrap()).unwrap();
    let elements = TILES * PAGES * PAGE;
    let x = device.alloc_dram("x", &[elements], DType::U8, PAGE as u32).unwrap();
    let y = device.alloc_dram("y", &[elements], DType::U8, PAGE as u32).unwrap();
    let slots = device.alloc_l1("slots", 4096).unwrap();
    device.upload(&x, &vec![1; elements]).unwrap();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../firmware/prebuilt/seeded.elf");
    let elf = std::fs::read(path).unwrap();
    let image = |core| Arc::new(KernelImage::load("seeded", elf.clone(), core).unwrap());
    let tiles: Vec<u32> = device.workers().iter().take(TILES).map(|xy| xy.encode()).collect();
    let each = |i: usize| {
        let (next, last) = (tiles[(i + 1) % TILES], tiles[TILES - 1]);
        let memory = [slots.address.get(), x.address.word(), y.address.word()];
        let place = [case, 0, 0, i as u32, TILES as u32, next, tiles[0]];
        place.into_iter().chain(memory).chain([tiles[1], last]).collect()
    };
    let arguments: Vec<Vec<u32>> = (0..TILES).map(each).collect();
    let role = Role::all();
    let role =
        [Processor::Brisc, Processor::Ncrisc].into_iter().fold(role, |role, core| role.kernel(core, image(core)));
    let program = Program::new("seeded", Cores::Count(TILES))
        .circular_buffer(CircularBuffer { index: 0, page_size: PAGE as u32, pages: PageCount::new(2) })
        .semaphore(0)
        .semaphore(0)
        .role(role)
        .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(arguments.clone()))
        .unique_args(ArgSet::Ncrisc, UniqueArgs::PerCore(arguments));
    device.run(&[program]).unwrap();
    device.download(&y).unwrap();
    device.into_chip().settle_observers();
    std::mem::take(&mut *seen.lock().unwrap())
}

#[test]
fn no_event_comes_for_a_cycle_that_is_over() {
    let looked = Wants::CORES | Wants::NOC | Wants::REGISTERS | Wants::UNITS | Wants::COUNTS;
    let all = looked | Wants::ACCESSES | Wants::LOCAL | Wants::FIELDS | Wants::COPROCESSOR;
    let (mut resumed, mut early, mut lines) = (0, 0, 0);
    for case in [0, 1, 4, 6, 8] {
        for (wants, batches, threads) in [
            (looked, Batches::Windows, 1),
            (looked, Batches::Few, 2),
            (all, Batches::Windows, 1),
            (all, Batches::Few, 1),
            (all, Batches::Lines, 2),
        ] {
            let seen = run(case, threads, wants, batches);
            let (count, first) = (seen.wrong.len(), seen.wrong.first());
            assert_eq!(first, None, "{count} of {} in program {case}, {batches:?}", seen.events);
            (resumed, early, lines) = (resumed + seen.resumed, early + seen.early, lines + seen.lines);
        }
    }
    assert!(resumed > 0 && early > 0 && lines > 0, "{resumed} waits ended, {early} events were early, {lines} lines");
}
