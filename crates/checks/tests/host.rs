//! The host's own accesses, by windows, against those of a program that may still run.

use std::path::Path;
use std::sync::{Arc, Mutex};
use tilework_abi::addr::PageCount;
use tilework_abi::board::Board;
use tilework_abi::tensix::Processor;
use tilework_checks::{Checks, Policy, RaceObserver, Word};
use tilework_driver::{Card, HostLink, Target};
use tilework_runtime::{
    ArgSet, Blocking, CircularBuffer, Cores, DType, Device, DeviceConfig, Dispatch, FirmwareSet, KernelImage, Program,
    Role, UniqueArgs, prebuilt,
};
use tilework_sim::{Chip, ChipConfig};

/// Bytes of a page (`firmware/kernels/seeded`), and how many there are.
const PAGE: usize = 256;
const PAGES: usize = 8;
/// The seeded program that goes through its pages in L1, without a bug.
const INCREMENT: u32 = 1;
/// Cycles after which a program without delay is over.
const LONG: u64 = 400_000;

/// What the host does with L1 that the program uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Does {
    Writes,
    Reads,
}

/// The races of a run in which the host accesses the program's L1, after `waits` the program's end
/// or without, when the kernel has waited for so many turns.
fn races(does: Does, waits: bool, turns: u32) -> Vec<&'static str> {
    let config = DeviceConfig { dispatch: Dispatch::Fast, ..DeviceConfig::new(Board::P100) };
    let mut chip = Chip::new(ChipConfig::new(Board::P100)).unwrap();
    let observer = Arc::new(Mutex::new(RaceObserver::new(Board::P100)));
    chip.observe(Box::new(observer.clone()));
    let firmware = FirmwareSet::prebuilt().unwrap();
    let mut device = Device::open_with(chip, config, firmware, prebuilt::cq_kernels().unwrap()).unwrap();
    let x = device.alloc_dram("x", &[PAGES * PAGE], DType::U8, PAGE as u32).unwrap();
    let y = device.alloc_dram("y", &[PAGES * PAGE], DType::U8, PAGE as u32).unwrap();
    let slots = device.alloc_l1("slots", 4096).unwrap();
    device.upload(&x, &vec![1; PAGES * PAGE]).unwrap();
    let (tile, me) = (device.workers()[0], device.workers()[0].encode());
    let (slot, input, output) = (slots.address.get(), x.address.word(), y.address.word());
    let arguments = vec![INCREMENT, 0, turns, 0, 1, me, me, slot, input, output, me, me];
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../firmware/prebuilt/seeded.elf");
    let kernel = KernelImage::load("seeded", std::fs::read(path).unwrap(), Processor::Brisc).unwrap();
    let program = Program::new("seeded", Cores::Count(1))
        .circular_buffer(CircularBuffer { index: 0, page_size: PAGE as u32, pages: PageCount::new(2) })
        .semaphore(0)
        .semaphore(0)
        .role(Role::all().kernel(Processor::Brisc, Arc::new(kernel)))
        .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(vec![arguments]));
    device.enqueue_program(&program, Blocking::No).unwrap();
    if waits {
        device.finish().unwrap();
    }
    let mut card = Card::open(device.into_chip()).unwrap();
    card.link_mut().idle(LONG).unwrap();
    let mut bytes = [0; 64];
    match does {
        Does::Writes => card.write(&Target::tile(tile), slots.address, &bytes).unwrap(),
        Does::Reads => card.read(&Target::tile(tile), slots.address, &mut bytes).unwrap(),
    }
    card.link_mut().idle(LONG).unwrap();
    card.into_link().settle_observers();
    let mut checks = Checks::new(Policy::new(&[Word::Races], Vec::new()).unwrap());
    observer.lock().unwrap().hand_over(&mut checks);
    checks.findings().iter().map(|finding| finding.check.id).collect()
}

#[test]
fn a_host_that_does_not_wait_races_with_the_program() {
    for does in [Does::Writes, Does::Reads] {
        // The kernel has been at its slots long before, or comes to them long after.
        for turns in [0, 100_000] {
            let found = races(does, false, turns);
            assert!(!found.is_empty() && found.iter().all(|id| *id == "race-host"), "{does:?}, {turns}: {found:?}");
        }
    }
}

#[test]
fn a_host_that_waits_for_the_end_does_not() {
    for does in [Does::Writes, Does::Reads] {
        assert_eq!(races(does, true, 0), [""; 0], "{does:?}");
    }
}
