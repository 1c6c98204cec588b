//! Text in DRAM: the model's DRAM and ring buffer, and what the host has to send.

use super::*;
use std::collections::HashMap;
use tilework_abi::addr::DramAddr;
use tilework_abi::cq::layout::prefetch_core::SCRATCH_DB;
use tilework_cq::dispatch::PagedWrite;
use tilework_cq::prefetch::PagedToRing;
use tilework_cq::relay_inline;

/// Banks of the model.
const BANKS: u32 = 7;

/// DRAM by bank and address of a page, and the prefetcher's ring buffer.
#[derive(Default)]
pub(super) struct Dram {
    pages: HashMap<(u32, u32), Vec<u8>>,
    ring: Vec<u8>,
    /// The start of a command whose data a relay brings.
    head: Vec<u8>,
}

impl Dram {
    pub(super) fn write(&mut self, write: PagedWrite) {
        assert!(write.is_dram);
        for (i, data) in (u32::from(write.start_page)..).zip(write.data.chunks(write.page_size as usize)) {
            self.pages.insert((i % BANKS, write.base_addr + i / BANKS * write.page_size), data.to_vec());
        }
    }
    fn fill(&mut self, fill: &PagedToRing) {
        let size = 1 << fill.log2_page_size;
        assert!(fill.length <= SCRATCH_DB.size() && fill.length.is_multiple_of(64));
        let page = |i: u32| &self.pages[&(i % BANKS, fill.base_addr + i / BANKS * size)];
        let first = u32::from(fill.start_page);
        self.ring = (first..first + fill.length.div_ceil(size)).flat_map(|i| page(i).clone()).collect();
        self.ring.truncate(fill.length as usize);
    }
    /// Executes a prefetch command other than an inline relay; the dispatch command that it
    /// completes.
    pub(super) fn execute(&mut self, command: &PrefetchCommand) -> Option<DispatchCommand> {
        match command {
            PrefetchCommand::RelayInlineNoflush(inline) => self.head.clone_from(&inline.payload),
            PrefetchCommand::PagedToRingbuffer(fill) => self.fill(fill),
            PrefetchCommand::Stall => {}
            PrefetchCommand::RelayRingbuffer(pieces) => {
                let mut bytes = std::mem::take(&mut self.head);
                for piece in pieces {
                    bytes.extend(&self.ring[piece.start as usize..][..piece.length as usize]);
                }
                let record = relay_inline(&bytes).unwrap();
                let decoded = decode_stream(record.bytes()).next().unwrap().unwrap();
                let InnerCommand::Whole(command) = decoded.inner[0].command.clone() else { panic!("{decoded:?}") };
                return Some(command);
            }
            other => panic!("unexpected {other:?}"),
        }
        None
    }
}

/// A launcher with a region for text.
pub(super) fn keeping(layout: DispatchLayout, map: &MemoryMap) -> Launcher {
    let mut launcher = launcher_in(layout, map);
    launcher.keep_text(DramAddr::new(0x40_0000), BANKS as usize);
    launcher
}

/// Launches the programs in turn; for each round the bytes that went to the queue.
fn rounds(launcher: &mut Launcher, programs: &[Program], rounds: usize) -> Vec<usize> {
    let map = small();
    let (mut model, l1) = (Model::new(&map), l1());
    let round = |_| {
        let launch = |program: &Program| {
            let layout = program.layout(&workers(), &map, &l1).unwrap();
            let prepared = launcher.prepare(program, &l1).unwrap();
            let launched = launcher.launch(&prepared, &Launch::default()).unwrap();
            assert!(model.execute(&launched.records));
            model.check(program, &layout, &launched.layout);
            launched.records.iter().map(|(record, _)| record.bytes().len()).sum::<usize>()
        };
        programs.iter().map(launch).sum()
    };
    (0..rounds).map(round).collect()
}

/// Programs whose text does not fit together: without a region the host sends all of it in every
/// round, with one it sends each text twice and then commands only.
#[test]
fn text_that_comes_back_is_sent_by_the_host_once_more_and_then_no_more() {
    let program = |seed| {
        let role = Role::all().kernel(Processor::Brisc, kernel(5000, seed));
        Program::new("large", Cores::Count(20)).role(role)
    };
    for n in [2, 3, 5] {
        let programs: Vec<Program> = (0..n).map(program).collect();
        let text = n as usize * 20_000;
        let without = rounds(&mut launcher(&small()), &programs, 8);
        assert!(without.iter().all(|&bytes| bytes > text), "{without:?}");
        let mut launcher = keeping(DispatchLayout::Dispatcher, &small());
        let with = rounds(&mut launcher, &programs, 8);
        assert!(with[3..].iter().all(|&bytes| bytes < n as usize * 1500), "{with:?} of {text} bytes of text");
        assert!(with.iter().sum::<usize>() < 7 * text / 2, "{with:?} of {text} bytes of text");
        assert!(launcher.counts().text_from_dram > 0);
    }
}

/// A region that is full is begun anew: whatever was in it is stored again.
#[test]
fn more_text_than_the_region_holds_is_stored_again() {
    let mut launcher = keeping(DispatchLayout::Dispatcher, &small());
    let program = |seed| {
        let role = Role::all().kernel(Processor::Brisc, kernel(8000, seed));
        Program::new("large", Cores::Count(2)).role(role)
    };
    // Each of them has 32 pages of the region's 7 * 1024.
    let programs: Vec<Program> = (0..240).map(program).collect();
    let bytes = rounds(&mut launcher, &programs, 3);
    let text = 240 * 32_000;
    assert!(bytes[1] > text && bytes[2] > text / 2, "{bytes:?}");
}
