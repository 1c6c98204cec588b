//! What kernels print: in the order of time, from every core, with what was missed counted.

use crate::common::{kernel, open};
use std::cell::RefCell;
use std::rc::Rc;
use tilework_abi::addr::{Cycle, PcieAddr};
use tilework_abi::board::Board;
use tilework_abi::print::{FIXED_WORDS, RING_WORDS};
use tilework_abi::tensix::Processor;
use tilework_abi::tlb::Bar;
use tilework_driver::{HostLink, LinkError};
use tilework_dtype::DType;
use tilework_runtime::elf::ElfError;
use tilework_runtime::{
    ArgSet, Cores, Device, DeviceConfig, Dispatch, KernelImage, PrintLine, Program, Role, RunReport, RuntimeError,
    UniqueArgs,
};
use tilework_sim::{Chip, ChipConfig};

/// A chip that shows no stores and cannot be looked into, as a card.
struct Blind(Chip);

impl HostLink for Blind {
    fn bar_write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), LinkError> {
        HostLink::bar_write(&mut self.0, bar, offset, data)
    }
    fn bar_read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), LinkError> {
        HostLink::bar_read(&mut self.0, bar, offset, out)
    }
    fn pin(&mut self, len: usize, wish: PcieAddr) -> Result<PcieAddr, LinkError> {
        HostLink::pin(&mut self.0, len, wish)
    }
    fn pinned_read(&mut self, address: PcieAddr, out: &mut [u8]) -> Result<(), LinkError> {
        HostLink::pinned_read(&mut self.0, address, out)
    }
    fn pinned_write(&mut self, address: PcieAddr, data: &[u8]) -> Result<(), LinkError> {
        HostLink::pinned_write(&mut self.0, address, data)
    }
    fn wait_word(&mut self, address: PcieAddr, seen: u32, budget: Cycle) -> Result<u32, LinkError> {
        HostLink::wait_word(&mut self.0, address, seen, budget)
    }
    fn idle(&mut self, cycles: Cycle) -> Result<(), LinkError> {
        HostLink::idle(&mut self.0, cycles)
    }
    fn cycles(&self) -> Cycle {
        HostLink::cycles(&self.0)
    }
}

/// What was printed.
type Lines = Rc<RefCell<Vec<PrintLine>>>;

fn listen<C: HostLink>(device: &mut Device<C>) -> Lines {
    let lines = Lines::default();
    let kept = Rc::clone(&lines);
    device.on_print(move |line| kept.borrow_mut().push(line.clone()));
    lines
}

/// The program `prints` on the first `cores` workers; pages from `limit` on fail its assertion.
fn program<C: HostLink>(device: &mut Device<C>, cores: usize, rounds: u32, limit: u32) -> Program {
    let memory = device.memory().unwrap();
    let x = memory.alloc_dram("x", &[cores, 1024], DType::BF16, 2048).unwrap();
    let slot = memory.alloc_l1("slot", 2048).unwrap();
    let args = (0..cores as u32).map(|i| vec![x.address.word(), i, slot.address.get(), rounds, limit]).collect();
    Program::new("prints", Cores::Count(cores))
        .role(Role::all().kernel(Processor::Brisc, kernel("prints", Processor::Brisc)))
        .unique_args(ArgSet::Brisc, UniqueArgs::PerCore(args))
}

/// Runs it once on a chip that shows stores, and once on one that does not.
fn on_both(rounds: u32) -> [(Vec<PrintLine>, u64, RunReport); 2] {
    fn run<C: HostLink>(mut device: Device<C>, rounds: u32) -> (Vec<PrintLine>, u64, RunReport) {
        let lines = listen(&mut device);
        let program = program(&mut device, 3, rounds, 3);
        let report = device.run(&[program]).unwrap();
        let lines = lines.take();
        (lines, device.missed_prints(), report)
    }
    let config = DeviceConfig::new(Board::P100);
    let blind = Blind(Chip::new(ChipConfig::new(Board::P100)).unwrap());
    [run(open(config), rounds), run(Device::open(blind, config).unwrap(), rounds)]
}

#[test]
fn lines_of_all_cores_come_in_the_order_of_time() {
    let [(lines, missed, report), (read, missed_read, report_read)] = on_both(2);
    assert_eq!((missed, missed_read), (0, 0));
    assert_eq!(lines, read);
    assert!(lines.is_sorted_by_key(|line| (line.cycle, line.tile)), "{lines:?}");
    // Each core has its own lines, in its own order.
    let tiles: std::collections::BTreeSet<_> = lines.iter().map(|line| line.tile).collect();
    assert_eq!((lines.len(), tiles.len()), (3 * 6, 3));
    for (page, tile) in tiles.into_iter().enumerate() {
        let own: Vec<&PrintLine> = lines.iter().filter(|line| line.tile == tile).collect();
        assert_eq!(own[0].text, format!("tile ({}, {}) has page {page}", tile.x, tile.y));
        assert_eq!(own[1].text, "round 0 of 0x00000000: false");
        assert_eq!(own[2].text, "round 1 of 0x00000000: true");
        assert!(own[4].text.starts_with("top left corner: Bf16 at 0x"), "{}", own[4].text);
        assert!(own[5].text.contains("40 elements, 8 more left out"), "{}", own[5].text);
        assert!(own.iter().all(|line| line.core == Processor::Brisc && &*line.kernel == "prints"));
        let sources: Vec<u32> = own.iter().map(|line| line.source.1).collect();
        assert!(sources.is_sorted() && sources[1] == sources[2] && own[0].source.0.ends_with("prints/src/main.rs"));
    }
    // Being shown stores changes no cycle.
    let times = |report: &RunReport| report.programs.iter().map(|p| (p.start, p.end)).collect::<Vec<_>>();
    assert_eq!(times(&report), times(&report_read));
}

#[test]
fn what_is_overwritten_before_it_is_read_is_counted() {
    let [(lines, missed, _), (read, missed_read, _)] = on_both(100);
    assert_eq!((lines.len(), missed), (3 * 104, 0));
    assert_eq!(read.len() as u64 + missed_read, 3 * 104);
    assert!(missed_read > 0);
    // The newest of each core are there: as many as its ring has room for.
    let least = (RING_WORDS / (FIXED_WORDS + 35) - 1) as usize;
    for tile in read.iter().map(|line| line.tile) {
        let of = |lines: &[PrintLine]| lines.iter().filter(|line| line.tile == tile).cloned().collect::<Vec<_>>();
        let (all, last) = (of(&lines), of(&read));
        assert!(last.len() >= least && all.ends_with(&last), "{} of {tile}", last.len());
    }
}

#[test]
fn an_assertion_that_does_not_hold_ends_the_run() {
    for dispatch in [Dispatch::Fast, Dispatch::Slow] {
        let mut device = open(DeviceConfig { dispatch, ..DeviceConfig::new(Board::P100) });
        let lines = listen(&mut device);
        let program = program(&mut device, 2, 0, 1);
        let error = device.run(&[program]).unwrap_err();
        let text = error.to_string();
        let RuntimeError::Assertion { line, stopped } = error else { panic!("{text}") };
        assert!(matches!(*stopped, RuntimeError::Fault { .. }), "{stopped}");
        let tile = device.workers()[1];
        assert_eq!((line.tile, line.condition.as_deref()), (tile, Some("page < rta(ctx, 4)")));
        assert_eq!(line.text, "page 1 is not below 1");
        let shown: Vec<&str> = text.lines().collect();
        assert!(shown[0].starts_with("assertion failed at cycle "), "{text}");
        assert!(shown[0].ends_with(": page < rta(ctx, 4): page 1 is not below 1"), "{text}");
        assert_eq!(shown[1], format!("  BRISC of {tile}, kernel prints"));
        assert!(shown[2].starts_with("    at kernels/prints/src/main.rs:"), "{text}");
        assert!(lines.borrow().contains(&line));
        // The device is lost, and says why.
        assert!(device.run(&[]).unwrap_err().to_string().contains("assertion failed"));
    }
}

#[test]
fn every_launch_and_every_queue_prints() {
    let mut device = open(DeviceConfig::new(Board::P100));
    let lines = listen(&mut device);
    let program = program(&mut device, 2, 1, 2);
    let one = 2 * 5;
    device.run(&[program.clone(), program.clone()]).unwrap();
    assert_eq!(lines.borrow().len(), 2 * one);
    device.enqueue_program(&program, tilework_runtime::Blocking::No).unwrap();
    device.finish().unwrap();
    assert_eq!(lines.borrow().len(), 3 * one);
    assert!(lines.borrow().is_sorted_by_key(|line| line.cycle));
}

#[test]
fn a_kernel_that_does_not_print_has_nothing_of_it() {
    for (name, elf) in tilework_runtime::prebuilt::KERNELS.iter().filter(|(name, _)| *name != "prints") {
        for part in [&b"tw_print\0"[..], b"__tilework_prints\0"] {
            assert!(!elf.windows(part.len()).any(|bytes| bytes == part && part[0] == b'_'), "{name}");
        }
    }
    assert!(tilework_runtime::prebuilt::kernel_elf("prints").is_some());
}

#[test]
fn a_text_with_other_places_than_values_is_refused_with_its_line() {
    let elf = tilework_runtime::prebuilt::kernel_elf("prints").unwrap();
    let (from, to) = (&b"tile ({}, {}) has page {}\0"[..], &b"tile ({}, {}) has page 12\0"[..]);
    let at = elf.windows(from.len()).position(|bytes| bytes == from).unwrap();
    let mut changed = elf.to_vec();
    changed[at..at + to.len()].copy_from_slice(to);
    let ElfError { found, field, .. } = KernelImage::load("k", changed, Processor::Brisc).unwrap_err();
    assert_eq!(field, "section .tw_print");
    assert!(found.contains("kernels/prints/src/main.rs:") && found.contains("2 places for values, but 3"), "{found}");
}
