//! The simulated chip as the driver's [`HostLink`], and what only a simulator can report
//! ([`Inspect`]).

use crate::{Agent, Chip, ChipError, Event, Fault, Observer, Origin, Spot, Wants, What};
use std::ops::Range;
use tilework_abi::addr::{Cycle, PcieAddr};
use tilework_abi::noc::NocXy;
use tilework_abi::tlb::Bar;
use tilework_driver::{
    ChipCounts, ChipFault, HostLink, Inspect, LinkError, Note, RunningCore, SeenStore, StoreSink, WaitingCore,
    WaitingThread, WatchedWord,
};

impl From<ChipError> for LinkError {
    /// Leaves out which cores wait or run: [`Inspect`] reports that for a stopped chip.
    fn from(error: ChipError) -> Self {
        match error {
            ChipError::Fault(fault) => Self::from(ChipFault::from(&fault)),
            ChipError::Deadlock { cycle, .. } => Self::Deadlock { cycle },
            ChipError::Budget { cycles, .. } => Self::Budget { cycles },
            ChipError::Ended { cycle } => Self::Ended { cycle },
        }
    }
}

fn waiting_thread((what, origin): (String, Origin)) -> WaitingThread {
    WaitingThread { what, pushed: origin.to_string(), core: origin.core(), pc: origin.pc() }
}

impl From<&Fault> for ChipFault {
    fn from(fault: &Fault) -> Self {
        let site = &fault.site;
        Self {
            class: fault.class.to_string(),
            what: fault.what.clone(),
            tile: site.tile,
            core: site.core,
            pc: site.pc,
            address: site.addr,
            cycle: site.cycle,
            text: fault.to_string(),
        }
    }
}

impl HostLink for Chip {
    fn bar_write(&mut self, bar: Bar, offset: u64, data: &[u8]) -> Result<(), LinkError> {
        Ok(Self::bar_write(self, bar, offset, data)?)
    }
    fn bar_read(&mut self, bar: Bar, offset: u64, out: &mut [u8]) -> Result<(), LinkError> {
        Ok(Self::bar_read(self, bar, offset, out)?)
    }
    fn pin(&mut self, len: usize, wish: PcieAddr) -> Result<PcieAddr, LinkError> {
        Self::pin(self, wish.get(), len)?;
        Ok(wish)
    }
    fn pinned_read(&mut self, address: PcieAddr, out: &mut [u8]) -> Result<(), LinkError> {
        Ok(Self::pinned_read(self, address.get(), out)?)
    }
    fn pinned_write(&mut self, address: PcieAddr, data: &[u8]) -> Result<(), LinkError> {
        Ok(Self::pinned_write(self, address.get(), data)?)
    }
    fn wait_word(&mut self, address: PcieAddr, seen: u32, budget: Cycle) -> Result<u32, LinkError> {
        Ok(Self::wait_word(self, address.get(), seen, budget)?)
    }
    fn wait_words(&mut self, words: &[(PcieAddr, u32)], budget: Cycle) -> Result<(), LinkError> {
        let words: Vec<(u64, u32)> = words.iter().map(|&(address, seen)| (address.get(), seen)).collect();
        Ok(Self::wait_words(self, &words, budget).map(|_| ())?)
    }
    fn idle(&mut self, cycles: Cycle) -> Result<(), LinkError> {
        Ok(self.run(cycles)?)
    }
    fn cycles(&self) -> Cycle {
        self.now()
    }
    fn watch_stores(&mut self, range: Range<u32>, seen: StoreSink) -> bool {
        self.observe(Box::new(StoreWatch { range, seen }));
        true
    }
    fn settle(&mut self) {
        self.settle_observers();
    }
    #[inline]
    fn inspect(&self) -> Option<&dyn Inspect> {
        Some(self)
    }
    #[inline]
    fn listens(&self) -> bool {
        self.is_observed()
    }
    fn note(&mut self, note: &Note) {
        Self::note(self, note);
    }
    fn settle_observers(&mut self) {
        Self::settle_observers(self);
    }
}

/// Shows stores to a range of L1.
struct StoreWatch {
    range: Range<u32>,
    seen: StoreSink,
}

impl Observer for StoreWatch {
    fn wants(&self) -> Wants {
        Wants::NOTHING
    }
    fn lines(&self) -> Vec<Range<u32>> {
        vec![self.range.clone()]
    }
    fn events(&mut self, events: &[Event]) {
        for event in events {
            if let (Spot::Tensix(tile), Agent::Core(core), What::Store { addr, bytes, value }) =
                (event.spot, event.agent, &event.what)
                && self.range.contains(addr)
            {
                let (address, bytes, value) = (*addr, *bytes, *value);
                (self.seen)(&SeenStore { cycle: event.at, tile, core, address, bytes, value });
            }
        }
    }
}

impl Inspect for Chip {
    fn is_quiet(&self) -> bool {
        Self::is_quiet(self)
    }
    fn cycles(&self) -> Cycle {
        self.now()
    }
    fn counts(&self) -> ChipCounts {
        let stats = self.stats();
        ChipCounts {
            cycles: stats.cycles,
            instructions: stats.instructions,
            skipped: stats.skipped,
            noc_bytes: stats.noc_bytes,
            pcie_bytes: stats.pcie_to_device + stats.pcie_to_host,
        }
    }
    fn waiting(&self) -> Vec<WaitingCore> {
        let core = |waiting: crate::tile::Waiting| WaitingCore {
            tile: waiting.tile,
            core: waiting.core,
            pc: waiting.pc,
            watched: waiting.watched.iter().map(watched).collect(),
            blocked_on: waiting.blocked_on,
            coprocessor: waiting.coprocessor.into_iter().map(waiting_thread).collect(),
        };
        Self::waiting(self).into_iter().map(core).collect()
    }
    fn busy(&self) -> Vec<RunningCore> {
        let core = |(tile, core, pc)| RunningCore { tile, core, pc };
        Self::busy(self).into_iter().map(core).collect()
    }
    fn l1(&self, tile: NocXy) -> Option<&[u8]> {
        Some(self.tile(tile)?.l1())
    }
}

fn watched(word: &crate::tile::WaitWord) -> WatchedWord {
    WatchedWord { address: word.watch.addr, value: word.watch.value, stale: word.stale }
}
