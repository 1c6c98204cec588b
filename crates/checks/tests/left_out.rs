//! Accesses that are left out because an observer knows that they are right
//! (`tilework_sim::Known`): findings, bytes and cycles are those of runs in which every access is
//! seen, on any number of threads.

use std::path::Path;
use std::sync::{Arc, Mutex};
use tilework_abi::addr::PageCount;
use tilework_abi::board::Board;
use tilework_abi::tensix::Processor;
use tilework_checks::{CheckObserver, Checks, Finding, Policy, RaceObserver, Word};
use tilework_driver::Note;
use tilework_runtime::{
    ArgSet, CircularBuffer, Cores, DType, Device, DeviceConfig, Dispatch, FirmwareSet, KernelImage, Program, Role,
    UniqueArgs, prebuilt,
};
use tilework_sim::{Chip, ChipConfig, Cycle, Event, Known, Observer, Unjudged, Wants, What};

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
    fn unjudged(&self) -> Unjudged {
        if self.tells { self.checks.unjudged() } else { Unjudged::default() }
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

/// Looks for races, by lines of accesses or by single ones.
struct Races {
    observer: Arc<Mutex<RaceObserver>>,
    lines: bool,
    /// How many lines came.
    told: Arc<Mutex<u64>>,
}

impl Observer for Races {
    fn wants(&self) -> Wants {
        self.observer.wants()
    }
    fn takes_lines(&self) -> bool {
        self.lines && self.observer.takes_lines()
    }
    fn events(&mut self, events: &[Event]) {
        let lines = events.iter().filter(|event| matches!(event.what, What::Line(_)));
        *self.told.lock().unwrap() += lines.count() as u64;
        self.observer.events(events);
    }
    fn reached(&mut self, at: Cycle) {
        self.observer.reached(at);
    }
    fn note(&mut self, at: Cycle, note: &Note) {
        self.observer.note(at, note);
    }
}

/// How a run is looked at.
#[derive(Clone, Copy)]
struct How {
    threads: usize,
    checks: bool,
    tells: bool,
    with_another: bool,
    /// Races are looked for, by lines or by single accesses.
    races: Option<bool>,
}

const UNSEEN: How = How { threads: 1, checks: false, tells: false, with_another: false, races: None };
const FULL: How = How { checks: true, ..UNSEEN };
const LEFT_OUT: How = How { tells: true, ..FULL };

/// What came of a run.
struct Outcome {
    findings: Vec<Finding>,
    output: Vec<u8>,
    cycles: Cycle,
    accesses: u64,
    races: Vec<Finding>,
    lines: u64,
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
    let races = Arc::new(Mutex::new(RaceObserver::new(Board::P100)));
    let told = Arc::new(Mutex::new(0));
    if let Some(lines) = how.races {
        chip.observe(Box::new(Races { observer: races.clone(), lines, told: told.clone() }));
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
    let mut found = Checks::new(Policy::new(&[Word::Races], Vec::new()).unwrap());
    races.lock().unwrap().hand_over(&mut found);
    let lines = *told.lock().unwrap();
    Outcome { findings, output, cycles: chip.now(), accesses, races: found.findings().to_vec(), lines }
}

/// Looks for races in a program, by lines and by single accesses; returns how many lines came, and
/// how many races were found.
fn compare_races(name: &str, elements: usize, make: impl Fn(&Device<Chip>, [u32; 3]) -> Program) -> (u64, usize) {
    let single = run(How { races: Some(false), ..LEFT_OUT }, elements, &make);
    assert_eq!(single.lines, 0, "{name}");
    let mut lines = u64::MAX;
    for threads in [1, 2] {
        let other = run(How { threads, races: Some(true), ..LEFT_OUT }, elements, &make);
        assert_eq!((&other.races, &other.findings), (&single.races, &single.findings), "{name}, {threads} threads");
        assert_eq!((&other.output, other.cycles), (&single.output, single.cycles), "{name}");
        lines = lines.min(other.lines);
    }
    (lines, single.races.len())
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
    let program = |_: &Device<Chip>, [slots, x, y]: [u32; 3]| {
        let elf = prebuilt::kernel_elf("increment").unwrap().to_vec();
        let kernel = Arc::new(KernelImage::load("increment", elf, Processor::Brisc).unwrap());
        let arguments =
            (0..tiles as u32).map(|tile| vec![x, y, 64 * tile, 64, PAGE as u32, 1, slots, 3]).collect::<Vec<_>>();
        Program::new("increment", Cores::Count(tiles))
            .role(Role::all().kernel(Processor::Brisc, kernel))
            .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(arguments))
    };
    let (seen, of, found) = compare("increment", elements, program);
    assert_eq!(found, 0);
    // Each word is loaded and stored in each of two runs; firmware and queues access memory, too.
    let words = 2 * 2 * elements as u64 / 4;
    assert!(of - seen > words * 3 / 4, "of {of} accesses, {words} of them to words of pages, {seen} are seen");
    let (lines, races) = compare_races("increment", elements, program);
    assert_eq!(races, 0);
    assert!(lines > words / 16 / 2, "{lines} lines of {words} words");
}

/// Programs of the corpus of races, with and without their bugs.
#[test]
fn what_is_wrong_is_found_all_the_same() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../firmware/prebuilt/seeded.elf");
    let elf = std::fs::read(path).unwrap();
    let image = |core| Arc::new(KernelImage::load("seeded", elf.clone(), core).unwrap());
    let (brisc, ncrisc) = (image(Processor::Brisc), image(Processor::Ncrisc));
    // A program for each of its kinds, and bugs of it.
    let cases: [(u32, &[u32]); 7] =
        [(0, &[0, 4]), (1, &[12, 13]), (4, &[26]), (5, &[0, 37]), (6, &[0, 41, 43]), (8, &[62]), (12, &[0])];
    let (mut all, mut races) = (0, 0);
    for (case, bugs) in cases {
        for &bug in bugs {
            let name = format!("program {case} with bug {bug}");
            let program = |device: &Device<Chip>, [slots, x, y]: [u32; 3]| {
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
            };
            all += compare(&name, TILES * PAGES * PAGE, program).2;
            races += compare_races(&name, TILES * PAGES * PAGE, program).1;
        }
    }
    assert!(all > 0 && races > 0, "{all} findings, {races} races");
}
