//! Accesses that are left out because an observer knows that they are right
//! (`tilework_sim::Known`): findings, bytes and cycles are those of runs in which every access is
//! seen, on any number of threads.

use std::path::Path;
use std::sync::{Arc, Mutex};
use tilework_abi::addr::PageCount;
use tilework_abi::board::Board;
use tilework_abi::tensix::Processor;
use tilework_checks::{CheckObserver, Checks, Finding, Policy};
use tilework_driver::Note;
use tilework_runtime::{
    ArgSet, CircularBuffer, Cores, DType, Device, DeviceConfig, Dispatch, FirmwareSet, KernelImage, Program, Role,
    UniqueArgs, prebuilt,
};
use tilework_sim::{Chip, ChipConfig, Cycle, Event, Known, Observer, Wants, What};

/// Pages of each tile, their bytes, and tiles that run a program (`firmware/kernels/seeded`).
const PAGES: usize = 8;
const PAGE: usize = 256;
const TILES: usize = 3;

/// The checks, and how many accesses came to them.
struct Counted {
    checks: CheckObserver,
    /// Whether the chip hears of what they know.
    tells: bool,
    accesses: Arc<Mutex<u64>>,
}

impl Observer for Counted {
    fn wants(&self) -> Wants {
        self.checks.wants()
    }
    fn boundaries(&self) -> Vec<std::ops::Range<u32>> {
        self.checks.boundaries()
    }
    fn sees_counters_once(&self) -> bool {
        self.tells && self.checks.sees_counters_once()
    }
    fn known(&mut self) -> Vec<Known> {
        let known = self.checks.known();
        if self.tells { known } else { Vec::new() }
    }
    fn events(&mut self, events: &[Event]) {
        let is_access = |event: &&Event| matches!(event.what, What::Load { .. } | What::Store { .. }) && !event.known;
        *self.accesses.lock().unwrap() += events.iter().filter(is_access).count() as u64;
        self.checks.events(events);
    }
    fn note(&mut self, at: Cycle, note: &Note) {
        self.checks.note(at, note);
    }
}

/// Sees everything.
struct All;

impl Observer for All {
    fn wants(&self) -> Wants {
        Wants::ACCESSES | Wants::LOCAL | Wants::FIELDS
    }
    fn events(&mut self, _: &[Event]) {}
}

/// How a run is looked at.
#[derive(Clone, Copy)]
struct How {
    threads: usize,
    checks: bool,
    tells: bool,
    with_another: bool,
}

const UNSEEN: How = How { threads: 1, checks: false, tells: false, with_another: false };
const FULL: How = How { checks: true, ..UNSEEN };
const LEFT_OUT: How = How { tells: true, ..FULL };

/// What came of a run.
struct Outcome {
    findings: Vec<Finding>,
    output: Vec<u8>,
    cycles: Cycle,
    accesses: u64,
}

/// Runs a program that `make` makes for a device with memory of these addresses: slots in L1,
/// input and output.
fn run(how: How, elements: usize, make: impl FnOnce(&Device<Chip>, [u32; 3]) -> Program) -> Outcome {
    let config = DeviceConfig { dispatch: Dispatch::Fast, ..DeviceConfig::new(Board::P100) };
    let mut chip =
        Chip::new(ChipConfig { threads: std::num::NonZero::new(how.threads), ..ChipConfig::new(Board::P100) }).unwrap();
    let checks = Arc::new(Mutex::new(Checks::new(Policy::default())));
    let accesses = Arc::new(Mutex::new(0));
    if how.checks {
        let observer = CheckObserver::new(checks.clone());
        chip.observe(Box::new(Counted { checks: observer, tells: how.tells, accesses: accesses.clone() }));
    }
    if how.with_another {
        chip.observe(Box::new(All));
    }
    let firmware = FirmwareSet::prebuilt().unwrap();
    let mut device = Device::open_with(chip, config, firmware, prebuilt::cq_kernels().unwrap()).unwrap();
    let x = device.alloc_dram("x", &[elements], DType::U8, PAGE as u32).unwrap();
    let y = device.alloc_dram("y", &[elements], DType::U8, PAGE as u32).unwrap();
    let slots = device.alloc_l1("slots", 4096).unwrap();
    device.upload(&x, &vec![1; elements]).unwrap();
    let memory = [slots.address.get(), x.address.word(), y.address.word()];
    let program = make(&device, memory);
    // The second time finds memory as the first one has left it.
    device.run(std::slice::from_ref(&program)).unwrap();
    device.run(&[program]).unwrap();
    let output = device.download(&y).unwrap();
    let mut chip = device.into_chip();
    chip.settle_observers();
    let findings = checks.lock().unwrap().findings().to_vec();
    let accesses = *accesses.lock().unwrap();
    Outcome { findings, output, cycles: chip.now(), accesses }
}

/// Runs a program in all ways; returns how many accesses were seen of how many.
fn compare(name: &str, elements: usize, make: impl Fn(&Device<Chip>, [u32; 3]) -> Program) -> (u64, u64, usize) {
    let full = run(FULL, elements, &make);
    let unseen = run(UNSEEN, elements, &make);
    assert_eq!((&unseen.output, unseen.cycles), (&full.output, full.cycles), "{name}");
    let ways = [LEFT_OUT, How { threads: 2, ..LEFT_OUT }, How { with_another: true, ..LEFT_OUT }];
    let mut seen = 0;
    for how in ways {
        let other = run(how, elements, &make);
        assert_eq!(other.findings, full.findings, "{name}");
        assert_eq!((&other.output, other.cycles), (&full.output, full.cycles), "{name}");
        seen = seen.max(other.accesses);
    }
    (seen, full.accesses, full.findings.len())
}

#[test]
fn a_core_that_goes_through_its_pages_is_mostly_left_out() {
    let tiles = 4;
    let elements = 64 * PAGE * tiles;
    let (seen, of, found) = compare("increment", elements, |_, [slots, x, y]| {
        let elf = prebuilt::kernel_elf("increment").unwrap().to_vec();
        let kernel = Arc::new(KernelImage::load("increment", elf, Processor::Brisc).unwrap());
        let arguments =
            (0..tiles as u32).map(|tile| vec![x, y, 64 * tile, 64, PAGE as u32, 1, slots, 3]).collect::<Vec<_>>();
        Program::new("increment", Cores::Count(tiles))
            .role(Role::all().kernel(Processor::Brisc, kernel))
            .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(arguments))
    });
    assert_eq!(found, 0);
    // Each word is loaded and stored in each of two runs; firmware and queues access memory, too.
    let words = 2 * 2 * elements as u64 / 4;
    assert!(of - seen > words * 3 / 4, "of {of} accesses, {words} of them to words of pages, {seen} are seen");
}

/// Programs of the corpus of races, with and without their bugs.
#[test]
fn what_is_wrong_is_found_all_the_same() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../firmware/prebuilt/seeded.elf");
    let elf = std::fs::read(path).unwrap();
    let image = |core| Arc::new(KernelImage::load("seeded", elf.clone(), core).unwrap());
    let (brisc, ncrisc) = (image(Processor::Brisc), image(Processor::Ncrisc));
    // A program for each of its kinds, and bugs of it.
    let cases: [(u32, &[u32]); 6] =
        [(0, &[0, 4]), (1, &[12, 13]), (4, &[26]), (5, &[0, 37]), (6, &[0, 41, 43]), (8, &[62])];
    let mut all = 0;
    for (case, bugs) in cases {
        for &bug in bugs {
            let name = format!("program {case} with bug {bug}");
            let (_, _, found) = compare(&name, TILES * PAGES * PAGE, |device, [slots, x, y]| {
                let tiles: Vec<u32> = device.workers().iter().take(TILES).map(|xy| xy.encode()).collect();
                let each = |i: usize| {
                    let (next, last) = (tiles[(i + 1) % TILES], tiles[TILES - 1]);
                    vec![case, bug, 0, i as u32, TILES as u32, next, tiles[0], slots, x, y, tiles[1], last]
                };
                let arguments: Vec<Vec<u32>> = (0..TILES).map(each).collect();
                Program::new("seeded", Cores::Count(TILES))
                    .circular_buffer(CircularBuffer { index: 0, page_size: PAGE as u32, pages: PageCount::new(2) })
                    .semaphore(0)
                    .semaphore(0)
                    .role(Role::all().kernel(Processor::Brisc, brisc.clone()).kernel(Processor::Ncrisc, ncrisc.clone()))
                    .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(arguments.clone()))
                    .unique_args(ArgSet::Ncrisc, UniqueArgs::PerCore(arguments))
            });
            all += found;
        }
    }
    assert!(all > 0, "nothing was found at all");
}
