//! Small programs from which one wait, flush, barrier, fence or credit has been left out or moved
//! (`firmware/kernels/seeded`): each such bug is found, and the programs without a bug have no
//! finding. The table, with the schedules in which each is found, is in docs/races.md.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tilework_abi::addr::PageCount;
use tilework_abi::board::Board;
use tilework_abi::tensix::Processor;
use tilework_checks::{CheckObserver, Checks, Policy, RaceObserver, Word};
use tilework_runtime::{
    ArgSet, CircularBuffer, Cores, DType, Device, DeviceConfig, Dispatch, FirmwareSet, KernelImage, Program, Role,
    RuntimeError, UniqueArgs, prebuilt,
};
use tilework_sim::{Chip, ChipConfig, Observer};

/// Pages of each tile, and their bytes (`firmware/kernels/seeded`).
const PAGES: usize = 8;
const PAGE: usize = 256;
/// Tiles that run a program.
const TILES: usize = 3;
/// Turns that BRISC and NCRISC of each tile wait before they begin: a schedule.
const SCHEDULES: [fn(usize) -> (u32, u32); 3] =
    [|_| (0, 0), |tile| (3000 * tile as u32, 0), |tile| (0, 2000 * (TILES - tile) as u32)];

/// What docs/races.md calls them.
const NAMES: [&str; 3] = ["all at once", "BRISC late", "NCRISC late"];

/// A program and its bugs: the number, what is wrong, and the findings that may tell it.
struct Case {
    number: u32,
    name: &'static str,
    bugs: &'static [(u32, &'static str, &'static [&'static str])],
}

/// The head of the table in docs/races.md.
const HEAD: &str = "| program | what is wrong | findings | in three schedules |\n|---|---|---|---|\n";

const FAULT: &str = "undefined-behaviour";
const READ: &str = "race-noc-read";
const SOURCE: &str = "race-noc-source";
const WRITE: &str = "race-noc-write";
const STORE: &str = "race-store";
const CORES: &str = "race-cores";
const TILED: &str = "race-tiles";
const UNITS: &str = "race-coprocessor";
const REGISTERS: &str = "race-registers";
/// Programs with a compute side.
const COMPUTE: std::ops::Range<u32> = 9..12;
/// Bytes of a tile of BF16.
const TILE: u32 = 2048;

const CASES: &[Case] = &[
    Case {
        number: 0,
        name: "pipe",
        bugs: &[
            (1, "no reserve_back before a page is read into the buffer", &[READ]),
            (2, "no read_barrier before push_back", &[READ]),
            (3, "push_back before the read", &[READ]),
            (4, "no wait_front before the page is written", &[READ]),
            (5, "no writes_flushed before pop_front", &[READ, SOURCE]),
            (6, "pop_front before writes_flushed", &[READ, SOURCE]),
            (7, "pop_front before the write", &[READ, SOURCE]),
            (8, "no write_barrier at the end", &[WRITE, TILED]),
        ],
    },
    Case {
        number: 1,
        name: "increment",
        bugs: &[
            (11, "no writes_flushed before a slot is read into again", &[READ, SOURCE]),
            (12, "no wait_tag before a page is changed", &[READ]),
            (13, "no publish before the page is written", &[STORE]),
            (14, "wait_tag of the slot before", &[READ]),
            (15, "no write_barrier at the end", &[WRITE, TILED]),
            (16, "writes_flushed after the reads that need it, with all slots ahead", &[READ, SOURCE]),
            (17, "writes_flushed where reads are meant", &[READ]),
        ],
    },
    Case {
        number: 2,
        name: "posted",
        bugs: &[
            (81, "no wait_left before a source is changed", &[SOURCE]),
            (82, "wait_left of an id that no write has", &[SOURCE]),
            (83, "wait_answered of writes that are not answered", &[SOURCE]),
            (84, "writes with one id, waits for the other", &[SOURCE]),
            (85, "no publish before the write", &[STORE]),
        ],
    },
    Case {
        number: 3,
        name: "exchange",
        bugs: &[
            (71, "no write_barrier before the semaphore", &[WRITE]),
            (72, "no wait for the semaphore", &[TILED]),
            (73, "every tile writes the same page", &[TILED, WRITE]),
            (74, "writes_flushed where write_barrier is meant", &[WRITE]),
            (75, "the read before the wait", &[TILED]),
            (76, "no publish before the write", &[STORE]),
            (77, "no read_barrier before the bytes are handed on", &[READ]),
        ],
    },
    Case {
        number: 4,
        name: "token",
        bugs: &[
            (21, "no write_barrier before a semaphore on the other NoC", &[WRITE]),
            (22, "no wait for the semaphore", &[TILED]),
            (23, "waits for one less", &[TILED]),
            (24, "the semaphore before the write", &[TILED, WRITE]),
            (25, "no writes_flushed before the scratch word is stored again", &[SOURCE]),
            (26, "no publish of the scratch word", &[STORE]),
            (27, "the load before the wait", &[TILED]),
            (28, "writes_flushed where write_barrier is meant", &[WRITE]),
        ],
    },
    Case {
        number: 5,
        name: "share",
        bugs: &[
            (31, "no read_barrier before the multicast", &[READ]),
            (32, "no credits before the receivers' pages are overwritten", &[TILED, SOURCE]),
            (33, "no writes_flushed before the number is stored again", &[SOURCE]),
            (34, "no publish of the number", &[STORE]),
            (35, "the number before the page", &[WRITE, TILED, SOURCE]),
            (36, "no writes_flushed before the page is read into again", &[READ, SOURCE]),
            (37, "a receiver does not wait", &[TILED, SOURCE]),
            (38, "no writes_flushed before the credit", &[TILED, SOURCE]),
            (39, "the credit before the page is taken", &[TILED, SOURCE]),
        ],
    },
    Case {
        number: 6,
        name: "local",
        bugs: &[
            (41, "no publish before push_back", &[STORE]),
            (42, "no wait_front before the loads", &[CORES]),
            (43, "no reserve_back before the stores", &[CORES]),
            (44, "push_back before the stores", &[CORES]),
            (45, "pop_front before the loads", &[CORES]),
        ],
    },
    Case {
        number: 7,
        name: "gather",
        bugs: &[
            (51, "no wait for the parts", &[TILED, WRITE]),
            (52, "waits for one part less", &[TILED, WRITE]),
            (53, "no write_barrier before a semaphore on the other NoC", &[WRITE]),
            (54, "every tile writes the same part", &[TILED, WRITE]),
            (55, "the semaphore before the part", &[TILED, WRITE]),
            (56, "no publish of the part", &[STORE]),
            (57, "writes_flushed where write_barrier is meant", &[WRITE]),
        ],
    },
    Case {
        number: 8,
        name: "pull",
        bugs: &[
            (61, "no wait before the fetch", &[TILED, STORE]),
            (62, "no read_barrier before the loads", &[READ]),
            (63, "the credit before the bytes are there", &[TILED, READ]),
            (64, "no credit before the bytes are changed", &[TILED, STORE]),
            (65, "no publish before the semaphore", &[STORE]),
            (66, "the semaphore before the stores", &[TILED, STORE]),
        ],
    },
    Case {
        number: 9,
        name: "compute",
        bugs: &[
            (101, "no stall for the packer before the pages are pushed", &[UNITS]),
            (102, "no stall for the unpackers before the pages are popped", &[UNITS]),
            (103, "no wait_front before a page is unpacked", &[UNITS]),
            (104, "pop_front before a page is unpacked", &[UNITS]),
            (105, "the core itself pushes the pages", &[UNITS]),
            (106, "the core itself pops the pages", &[UNITS]),
            (107, "no tile_regs_wait: no SEMWAIT before the packer reads Dst", &[UNITS]),
            (108, "no stall for the matrix unit before Dst is handed over", &[UNITS]),
            (109, "no tile_regs_acquire: no SEMWAIT before Dst is written", &[UNITS]),
            (110, "no stall for the packer before Dst is given back", &[UNITS]),
            (111, "SEMPOST before Dst is written", &[UNITS]),
            (112, "no reserve_back before a page is packed", &[UNITS]),
        ],
    },
    Case {
        number: 10,
        name: "tell",
        bugs: &[
            (121, "no publish before the mailbox", &[STORE]),
            (122, "the mailbox before the stores", &[CORES]),
            (123, "the loads before the mailbox is read", &[CORES]),
            (124, "no publish before the Tensix semaphore", &[STORE]),
            (125, "the Tensix semaphore before the stores", &[CORES]),
            (126, "no wait for the Tensix semaphore", &[CORES]),
            (127, "no wait for the coprocessor before what was packed is loaded", &[UNITS]),
        ],
    },
    Case {
        number: 11,
        name: "configure",
        bugs: &[
            (131, "reconfigures the packer without a stall", &[REGISTERS]),
            (133, "reconfigures the matrix unit without a stall", &[REGISTERS]),
            (134, "no mutex for a word that two threads set", &[REGISTERS]),
        ],
    },
    Case {
        number: 12,
        name: "turns",
        bugs: &[(141, "no wait for the other core's requests on the NoC", &[REGISTERS, FAULT])],
    },
];

fn kernel(processor: Processor) -> Arc<KernelImage> {
    let name = match processor {
        Processor::Trisc0 => "seeded-compute-unpack",
        Processor::Trisc1 => "seeded-compute-math",
        Processor::Trisc2 => "seeded-compute-pack",
        Processor::Brisc | Processor::Ncrisc => "seeded",
    };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../firmware/prebuilt").join(format!("{name}.elf"));
    Arc::new(KernelImage::load(name, std::fs::read(path).unwrap(), processor).unwrap())
}

/// Arguments of BRISC and NCRISC of each tile.
fn arguments(device: &Device<Chip>, case: u32, bug: u32, schedule: usize, memory: [u32; 3]) -> [Vec<Vec<u32>>; 2] {
    let tiles: Vec<u32> = device.workers().iter().take(TILES).map(|xy| xy.encode()).collect();
    let [slot, input, output] = memory;
    let arguments = |core: usize| {
        let each = |index: usize| {
            let delays: [u32; 2] = SCHEDULES[schedule](index).into();
            // Whoever waits long for a compute program finds all of it done.
            let delays = delays.map(|turns| if COMPUTE.contains(&case) { turns / 16 } else { turns });
            let (next, last) = (tiles[(index + 1) % TILES], tiles[TILES - 1]);
            let (i, n) = (index as u32, TILES as u32);
            vec![case, bug, delays[core], i, n, next, tiles[0], slot, input, output, tiles[1], last]
        };
        (0..TILES).map(each).collect()
    };
    [arguments(0), arguments(1)]
}

/// The ids of the races that are found in a run of one program with one bug.
fn findings(case: u32, bug: u32, schedule: usize) -> Vec<(&'static str, String)> {
    let observer = Arc::new(Mutex::new(RaceObserver::new(Board::P100)));
    let mut all: Vec<_> = run(case, bug, schedule, observer.clone()).into_iter().map(|fault| (FAULT, fault)).collect();
    let mut checks = Checks::new(Policy::new(&[Word::Races], Vec::new()).unwrap());
    observer.lock().unwrap().hand_over(&mut checks);
    let told = |finding: &tilework_checks::Finding| {
        (finding.check.id, format!("{}, {}, after {}", finding.what, finding.place, finding.other.unwrap()))
    };
    all.extend(checks.findings().iter().map(told));
    all
}

/// Runs one program with one bug under an observer; the fault that it ended with, which a bug may
/// lead to.
fn run(case: u32, bug: u32, schedule: usize, observer: Arc<Mutex<impl Observer + 'static>>) -> Option<String> {
    let config = DeviceConfig { dispatch: Dispatch::Fast, ..DeviceConfig::new(Board::P100) };
    let mut chip = Chip::new(ChipConfig::new(Board::P100)).unwrap();
    chip.observe(Box::new(observer));
    let firmware = FirmwareSet::prebuilt().unwrap();
    let mut device = Device::open_with(chip, config, firmware, prebuilt::cq_kernels().unwrap()).unwrap();
    let elements = TILES * PAGES * PAGE;
    let x = device.alloc_dram("x", &[elements], DType::U8, PAGE as u32).unwrap();
    let y = device.alloc_dram("y", &[elements], DType::U8, PAGE as u32).unwrap();
    let slot = device.alloc_l1("slots", 4096).unwrap();
    device.upload(&x, &vec![1; elements]).unwrap();
    let memory = [slot.address.get(), x.address.word(), y.address.word()];
    let [brisc, ncrisc] = arguments(&device, case, bug, schedule, memory);
    let cores: &[Processor] = if COMPUTE.contains(&case) { &Processor::ALL } else { &Processor::ALL[..2] };
    let buffer = |index, page_size| CircularBuffer { index, page_size, pages: PageCount::new(2) };
    let program = Program::new("seeded", Cores::Count(TILES))
        .circular_buffer(buffer(0, PAGE as u32))
        .circular_buffer(buffer(1, TILE))
        .circular_buffer(buffer(2, TILE))
        .semaphore(0)
        .semaphore(0)
        .role(cores.iter().fold(Role::all(), |role, &core| role.kernel(core, kernel(core))))
        .unique_args(ArgSet::Compute, UniqueArgs::PerCore(vec![vec![case, bug, slot.address.get()]; TILES]))
        .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(brisc))
        .unique_args(ArgSet::Ncrisc, UniqueArgs::PerCore(ncrisc));
    let mut ended = None;
    match device.run(&[program]) {
        Ok(_) => drop(device.download(&y).unwrap()),
        // The chip itself may know no meaning of it, before it becomes a race.
        Err(RuntimeError::Fault { fault, .. }) if bug != 0 && fault.class == "undefined behaviour" => {
            ended = Some(fault.to_string());
        }
        // What a bug races with may also never come.
        Err(error) => assert!(bug != 0, "{error}"),
    }
    device.into_chip().settle_observers();
    ended
}

/// Schedules in which a bug is no race, by program, bug and schedule, and the other check that
/// tells it there. docs/races.md says why each is none.
const NO_RACE: [(u32, u32, usize, Option<&str>); 4] = [
    (0, 4, 2, Some("cb-page-not-received")),
    (5, 37, 2, Some("l1-unwritten-read")),
    (6, 43, 2, Some("cb-page-not-reserved")),
    (8, 64, 1, None),
];

#[test]
fn what_is_no_race_in_a_schedule_is_mostly_told_by_another_check() {
    for (case, bug, schedule, expected) in NO_RACE {
        assert_eq!(findings(case, bug, schedule), [], "case {case}, bug {bug}");
        let checks = Arc::new(Mutex::new(Checks::new(Policy::default())));
        let observer = Arc::new(Mutex::new(CheckObserver::new(Arc::clone(&checks))));
        assert_eq!(run(case, bug, schedule, observer), None);
        let ids: Vec<&str> = checks.lock().unwrap().findings().iter().map(|finding| finding.check.id).collect();
        match expected {
            Some(id) => assert!(ids.contains(&id), "case {case}, bug {bug}: {ids:?}"),
            None => assert!(ids.is_empty(), "case {case}, bug {bug}: {ids:?}"),
        }
    }
}

#[test]
fn every_seeded_bug_is_found_and_nothing_else() {
    let (mut table, mut missed, mut alarms) = (String::new(), Vec::new(), Vec::new());
    let (mut bugs, mut found) = (0, 0);
    for case in CASES {
        for schedule in 0..SCHEDULES.len() {
            for (id, what) in findings(case.number, 0, schedule) {
                alarms.push(format!("{} without a bug, schedule {schedule}: {id}: {what}", case.name));
            }
        }
        for &(bug, what, expected) in case.bugs {
            let mut ids = Vec::new();
            let mut without = Vec::new();
            for (schedule, name) in NAMES.iter().enumerate() {
                let all = findings(case.number, bug, schedule);
                if !all.iter().any(|(id, _)| expected.contains(id)) {
                    without.push(*name);
                }
                ids.extend(all.iter().map(|(id, _)| *id));
            }
            ids.sort_unstable();
            ids.dedup();
            let mark = match without.len() {
                0 => "found".to_owned(),
                missed if missed == SCHEDULES.len() => "missed".to_owned(),
                _ => format!("not with {}", without.join(", ")),
            };
            if without.len() == SCHEDULES.len() {
                missed.push(format!("{} {bug} ({what})", case.name));
            }
            writeln!(table, "| {} | {what} | {} | {mark} |", case.name, ids.join(", ")).unwrap();
            bugs += 1;
            found += usize::from(without.is_empty());
        }
    }
    let sum = format!(
        "{bugs} bugs: {found} found in each schedule, {} in some, {} missed. False alarms: {}.\n",
        bugs - found - missed.len(),
        missed.len(),
        alarms.len()
    );
    println!("{table}\n{sum}");
    assert!(missed.is_empty() && alarms.is_empty(), "missed:\n{}\nalarms:\n{}", missed.join("\n"), alarms.join("\n"));
    assert!(bugs >= 40);
    compare_page(&format!("{HEAD}{table}\n{sum}"));
}

/// The table in docs/races.md, which `TILEWORK_BLESS=1` writes anew.
fn compare_page(table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/races.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let text = page.split(HEAD).next().unwrap();
    let wanted = format!("{text}{table}");
    if std::env::var_os("TILEWORK_BLESS").is_some() {
        std::fs::write(&path, &wanted).unwrap();
    }
    let same = page == wanted || std::env::var_os("TILEWORK_BLESS").is_some();
    assert!(same, "docs/races.md has another table: TILEWORK_BLESS=1 cargo test -p tilework-checks --test seeded_bugs");
}
