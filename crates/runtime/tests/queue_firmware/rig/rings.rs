//! What must hold of every ring while everything moves, and what must be left of them at the end.
//!
//! The tiles are looked at as they are now. One may be a little ahead of another, but a count that
//! has arrived was sent, so no count is ever ahead of what it counts.

use super::Rig;
use tilework_abi::cq::completion::{CompletionPtr, CompletionRange};
use tilework_abi::cq::layout::prefetch_core::{PREFETCH_Q_ENTRIES, SEM_DISPATCH_PAGES, SEM_DISPATCH_S_PAGES, SEM_SYNC};
use tilework_abi::cq::layout::{PageRing, SemaphoreId, dispatch_core, host};
use tilework_abi::cq::status::Kernel;
use tilework_cq::PrefetchPort;

/// The entries as they are in L1, looked at without a packet.
struct Entries<'a>(&'a [u8]);

impl PrefetchPort for Entries<'_> {
    type Error = &'static str;

    fn read_slot(&mut self, index: u32) -> Result<u16, Self::Error> {
        let at = super::entry_address(index) as usize;
        Ok(u16::from_le_bytes([self.0[at], self.0[at + 1]]))
    }
    fn write_slot(&mut self, _: u32, _: u16) -> Result<(), Self::Error> {
        Err("entries are only looked at")
    }
}

impl Rig {
    /// Checks every ring in motion.
    pub(crate) fn check_rings(&self) {
        let [sent, sent_s] = [self.dispatch.pages, self.subordinate.pages];
        self.check_pages(dispatch_core::DISPATCH_CB, dispatch_core::SEM_CB_PAGES, SEM_DISPATCH_PAGES, sent);
        self.check_pages(dispatch_core::DISPATCH_S_CB, dispatch_core::SEM_S_CB_PAGES, SEM_DISPATCH_S_PAGES, sent_s);
        self.check_entries();
        self.check_completions();
        let notified = self.credits(SEM_SYNC);
        assert!(notified <= self.notices, "{notified} of {} notifications", self.notices);
    }

    /// No more pages are filled than were sent, none is given back twice, and no more are out than
    /// the ring has.
    fn check_pages(&self, ring: PageRing, filled: SemaphoreId, free: SemaphoreId, sent: u32) {
        let name = if ring == dispatch_core::DISPATCH_CB { "dispatcher" } else { "subordinate" };
        let given_back = self.credits(free).wrapping_sub(ring.pages().get());
        let consumer = if name == "dispatcher" { Kernel::Dispatch } else { Kernel::DispatchS };
        let filled = self.semaphore(self.core_of(consumer), filled);
        assert!(filled <= sent, "{filled} of {sent} pages are filled in the {name}'s ring");
        assert!(given_back <= filled, "{given_back} of {filled} pages are given back by the {name}");
        assert!(filled - given_back <= ring.pages().get(), "{filled} pages filled, {given_back} given back: {name}");
    }

    /// The entries that are not free lie one behind the other: behind them those that the
    /// prefetcher has freed, in front of them those whose writes are on their way.
    fn check_entries(&self) {
        let ring = self.issue.ring();
        let l1 = self.card.link().l1(self.prefetch_core()).unwrap();
        let taken = |&back: &u32| {
            let index = (ring.next_index() + PREFETCH_Q_ENTRIES - 1 - back) % PREFETCH_Q_ENTRIES;
            let at = super::entry_address(index) as usize;
            l1[at..at + 2] != [0, 0]
        };
        let mut found = (0..PREFETCH_Q_ENTRIES).filter(taken);
        let Some(newest) = found.next() else { return };
        let count = 1 + found.clone().count() as u32;
        let oldest = found.next_back().unwrap_or(newest);
        assert_eq!(oldest - newest + 1, count, "entries that are taken do not lie together");
        assert!(oldest < ring.in_flight(), "an entry is taken that {} in flight do not reach", ring.in_flight());
    }

    /// Both pointers name pages, and the writer is at most one round ahead.
    fn check_completions(&self) {
        let core = self.dispatch_core();
        let [written, read] = [dispatch_core::COMPLETION_Q_WR_PTR, dispatch_core::COMPLETION_Q_RD_PTR]
            .map(|at| CompletionPtr::from_word(self.l1(core, at)));
        let fifo = CompletionRange::new(self.tiles.queue.region_noc_base(), host::COMPLETION);
        assert!(fifo.page_of(written).is_some() && fifo.page_of(read).is_some(), "{written:x?} and {read:x?}");
        let filled = fifo.filled_pages(written, read);
        assert!(filled <= fifo.pages(), "{filled} pages of the completion FIFO are filled");
    }

    /// Everything has come and was read: every ring is empty, on both sides.
    pub(crate) fn check_empty(&mut self) {
        self.check_rings();
        let core = self.dispatch_core();
        let read = self.fifo.read_word();
        for at in [dispatch_core::COMPLETION_Q_WR_PTR, dispatch_core::COMPLETION_Q_RD_PTR] {
            assert_eq!(self.l1(core, at), read, "the completion pointer at {at:#x}");
        }
        for at in [host::CQ_WR, host::CQ_RD] {
            let word = self.region.read32(self.card.link_mut(), at.offset().into()).unwrap();
            assert_eq!(word, read, "the host's copy of a completion pointer at {:#x}", at.offset());
        }
        let mut entries = Entries(self.card.link().l1(self.prefetch_core()).unwrap());
        self.issue.poll(&mut entries).unwrap();
        assert_eq!(self.issue.ring().in_flight(), 0, "entries of the prefetch queue");
        self.issue.settle(0);
        assert_eq!(self.issue.region().outstanding(), 0, "records in the issue region");
        assert_eq!(self.credits(SEM_SYNC), self.notices, "notifications");
    }
}
