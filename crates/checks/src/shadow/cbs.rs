//! Circular buffers: which pages are the producer's, and which the consumer's.
//!
//! By what the cores of the tile have seen of the counters, not by the counters' values: a page
//! that is free by luck is not the producer's before one of them has looked. The counters are
//! registers of overlay streams (`tilework_abi::cb`).

use super::report::Actor;
use tilework_abi::cb::COUNTER_MASK;
use tilework_abi::stream;
use tilework_abi::tensix::Processor;
use tilework_driver::CbNote;

/// Which counter of which buffer a register is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counter {
    /// Pages pushed.
    Received(u32),
    /// Pages popped.
    Acked(u32),
}

impl Counter {
    /// The counter at a register address, where buffer 0 has stream `first`.
    #[inline]
    pub(crate) fn at(addr: u32, first: u32) -> Option<Self> {
        let offset = addr.checked_sub(stream::BASE)?;
        let index = (offset / stream::STRIDE).checked_sub(first).filter(|&index| index < tilework_abi::cb::COUNT)?;
        match offset % stream::STRIDE / 4 {
            stream::REMOTE_DEST_BUF_SIZE => Some(Self::Received(index)),
            stream::REMOTE_DEST_BUF_START => Some(Self::Acked(index)),
            _ => None,
        }
    }
    pub(crate) fn index(self) -> u32 {
        match self {
            Self::Received(index) | Self::Acked(index) => index,
        }
    }
}

/// A circular buffer of the program that runs.
#[derive(Clone, Debug)]
pub(crate) struct Cb {
    pub note: CbNote,
    /// Pages pushed and popped since the program began, and how many of them a core has seen.
    received: u64,
    acked: u64,
    seen_received: u64,
    seen_acked: u64,
    /// Cores that push and that pop, a bit each.
    pushers: u8,
    poppers: u8,
    /// The first read of each core before it has popped anything, of a page that had not come.
    early: [Option<(Actor, u32)>; 5],
    /// Cores that have looked at how many pages are popped, a bit each.
    askers: u8,
    /// The first write of each core before it has looked, and before it has pushed anything.
    unasked: [Option<(Actor, u32)>; 5],
}

/// What is wrong with an access or a count.
#[derive(Clone, Debug)]
pub(crate) enum Wrong {
    /// The page is not reserved: so many pages are the consumer's.
    NotReserved { page: u32, held: u64 },
    /// Nobody has asked yet whether the page is free.
    NotAsked { page: u32 },
    /// The page has not been received.
    NotReceived { page: u32 },
    /// More pages are pushed than there is room for.
    Pushed { pages: u64, room: u64 },
    /// More pages are popped than are there.
    Popped { pages: u64, there: u64 },
}

impl Cb {
    pub(crate) fn new(note: &CbNote) -> Self {
        Self {
            note: note.clone(),
            received: 0,
            acked: 0,
            seen_received: 0,
            seen_acked: 0,
            pushers: 0,
            poppers: 0,
            early: [None; 5],
            askers: 0,
            unasked: [None; 5],
        }
    }

    fn pages(&self) -> u64 {
        u64::from(self.note.pages)
    }
    fn end(&self) -> u32 {
        self.note.address.saturating_add(self.note.page_size.saturating_mul(self.note.pages))
    }
    /// Whether it has the byte at `addr`.
    pub(crate) fn has(&self, addr: u32) -> bool {
        (self.note.address..self.end()).contains(&addr)
    }

    /// A core has seen a counter.
    pub(crate) fn saw(&mut self, counter: Counter, core: Processor, value: u32) {
        let seen =
            |count: u64, value: u32| count - u64::from((count as u32).wrapping_sub(value) & COUNTER_MASK).min(count);
        match counter {
            Counter::Received(_) => self.seen_received = self.seen_received.max(seen(self.received, value)),
            Counter::Acked(_) => {
                self.seen_acked = self.seen_acked.max(seen(self.acked, value));
                self.askers |= 1 << core.index();
            }
        }
    }

    /// A core stores a counter. What it then has read or written too early is handed back.
    pub(crate) fn counted(
        &mut self,
        counter: Counter,
        core: Processor,
        value: u32,
    ) -> (Option<Wrong>, Option<(Actor, Wrong)>) {
        let bit = 1 << core.index();
        let added = |count: u64| u64::from(value.wrapping_sub(count as u32) & COUNTER_MASK);
        match counter {
            Counter::Received(_) => {
                let pages = added(self.received);
                let room = self.pages().saturating_sub(self.received.saturating_sub(self.acked));
                self.received += pages;
                self.pushers |= bit;
                let unasked = self.unasked[core.index()].take().filter(|_| !self.note.over);
                let early = unasked.map(|(actor, page)| (actor, Wrong::NotAsked { page }));
                ((pages > room).then_some(Wrong::Pushed { pages, room }), early)
            }
            Counter::Acked(_) => {
                let pages = added(self.acked);
                let there = self.received.saturating_sub(self.acked);
                self.acked += pages;
                self.poppers |= bit;
                let early = self.early[core.index()].take();
                let early = early.map(|(actor, page)| (actor, Wrong::NotReceived { page }));
                ((pages > there).then_some(Wrong::Popped { pages, there }), early)
            }
        }
    }

    /// Whether the last pages that were popped, so many of them, have a byte of `len` at `addr`.
    pub(crate) fn has_popped(&self, pages: u64, addr: u32, len: u32) -> bool {
        let all = self.pages().max(1);
        let first = self.acked.saturating_sub(pages.min(all));
        let is_popped = |page: u32| (first..self.acked).any(|popped| popped % all == u64::from(page));
        self.has(addr) && self.touched(addr, len).any(is_popped)
    }

    /// How many pages are popped when a core stores this count.
    pub(crate) fn pops(&self, value: u32) -> u64 {
        u64::from(value.wrapping_sub(self.acked as u32) & COUNTER_MASK)
    }

    /// The pages that `len` bytes at `addr` touch.
    fn touched(&self, addr: u32, len: u32) -> impl Iterator<Item = u32> + use<> {
        let (address, size) = (self.note.address, self.note.page_size.max(1));
        let end = addr.saturating_add(len.max(1)).min(self.end());
        (addr - address) / size..(end - address).div_ceil(size)
    }

    /// The next count at which a counter comes to a page.
    fn next(&self, count: u64, page: u32) -> u64 {
        let pages = self.pages().max(1);
        count + (u64::from(page) + pages - count % pages) % pages
    }

    /// A write by `core`; none for one from another tile.
    pub(crate) fn write(&mut self, core: Option<Processor>, actor: Actor, addr: u32, len: u32) -> Option<Wrong> {
        if let Some(core) = core
            && (self.pushers | self.poppers | self.askers) & 1 << core.index() == 0
        {
            // Whether it is the producer is known when it pushes.
            let page = self.touched(addr, len).next()?;
            self.unasked[core.index()].get_or_insert((actor, page));
            return None;
        }
        let fills = match core {
            Some(core) => self.pushers & 1 << core.index() != 0 && self.poppers & 1 << core.index() == 0,
            None => self.pushers != 0,
        };
        if !fills || self.note.over {
            return None;
        }
        let free = self.seen_acked + self.pages();
        let page = self.touched(addr, len).find(|&page| self.next(self.received, page) >= free)?;
        Some(Wrong::NotReserved { page, held: self.received - self.seen_acked })
    }

    /// A read by a core.
    pub(crate) fn read(&mut self, actor: Actor, addr: u32, len: u32) -> Option<Wrong> {
        let core = actor.code?.core;
        if self.note.over || self.pushers & 1 << core.index() != 0 {
            return None;
        }
        let page = self.touched(addr, len).find(|&page| self.next(self.acked, page) >= self.seen_received)?;
        if self.poppers & 1 << core.index() != 0 {
            return Some(Wrong::NotReceived { page });
        }
        self.early[core.index()].get_or_insert((actor, page));
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_abi::noc::NocXy;

    const IN: Processor = Processor::Ncrisc;
    const OUT: Processor = Processor::Brisc;

    /// Three pages of 64 bytes at 0x1000.
    fn cb() -> Cb {
        let name = "0".into();
        Cb::new(&CbNote { index: 0, name, address: 0x1000, page_size: 64, pages: 3, over: false })
    }
    fn actor(core: Processor) -> Actor {
        Actor::core(NocXy::new(1, 2), core, 0x100, 5)
    }
    const R: Counter = Counter::Received(0);
    const A: Counter = Counter::Acked(0);

    #[test]
    fn a_producer_owns_what_it_has_seen_to_be_free() {
        let mut cb = cb();
        cb.saw(A, IN, 0);
        for i in 0..3 {
            assert!(cb.write(Some(IN), actor(IN), 0x1000 + 64 * i, 64).is_none(), "the first round is free");
            assert!(cb.counted(R, IN, i + 1).0.is_none());
        }
        assert!(matches!(cb.write(Some(IN), actor(IN), 0x1000, 64), Some(Wrong::NotReserved { page: 0, held: 3 })));
        cb.saw(R, OUT, 3);
        cb.counted(A, OUT, 1);
        assert!(cb.write(Some(IN), actor(IN), 0x1000, 64).is_some(), "nobody has looked at the count");
        cb.saw(A, IN, 1);
        assert!(cb.write(Some(IN), actor(IN), 0x1000, 64).is_none());
        assert!(matches!(cb.write(Some(IN), actor(IN), 0x1000, 65), Some(Wrong::NotReserved { page: 1, .. })));
        assert!(cb.write(Some(OUT), actor(OUT), 0x1040, 64).is_none(), "the consumer works in place");
        assert!(cb.write(None, actor(OUT), 0x1040, 4).is_some(), "from another tile");
    }

    #[test]
    fn a_producer_asks_before_its_first_page() {
        let mut cb = cb();
        assert!(cb.write(Some(IN), actor(IN), 0x1040, 64).is_none(), "it may be no producer");
        cb.saw(A, IN, 0);
        let (wrong, early) = cb.counted(R, IN, 1);
        assert!(wrong.is_none() && matches!(early, Some((_, Wrong::NotAsked { page: 1 }))), "{early:?}");
        assert!(cb.counted(R, IN, 2).1.is_none(), "told once");
    }

    #[test]
    fn a_consumer_owns_what_it_has_seen_to_be_there() {
        let mut cb = cb();
        assert!(cb.read(actor(OUT), 0x1000, 64).is_none(), "it may be no consumer");
        cb.counted(R, IN, 1);
        cb.saw(R, OUT, 1);
        let (wrong, early) = cb.counted(A, OUT, 1);
        assert!(wrong.is_none());
        let page = |(_, wrong)| if let Wrong::NotReceived { page } = wrong { page } else { u32::MAX };
        assert_eq!(early.map(page), Some(0), "it is one, and has read before it looked");
        cb.counted(R, IN, 2);
        assert!(matches!(cb.read(actor(OUT), 0x1040, 64), Some(Wrong::NotReceived { page: 1 })));
        cb.saw(R, OUT, 2);
        assert!(cb.read(actor(OUT), 0x1040, 64).is_none());
        assert!(cb.read(actor(OUT), 0x1000, 64).is_some(), "popped");
        assert!(cb.read(actor(IN), 0x1000, 64).is_none(), "the producer may read");
    }

    #[test]
    fn counts_that_pass_each_other_are_wrong() {
        let mut one = cb();
        assert!(matches!(one.counted(A, OUT, 1).0, Some(Wrong::Popped { pages: 1, there: 0 })));
        let mut one = cb();
        assert!(matches!(one.counted(R, IN, 4).0, Some(Wrong::Pushed { pages: 4, room: 3 })));
        let mut one = cb();
        for i in 1..=0x1_0010u32 {
            assert!(one.counted(R, IN, i & COUNTER_MASK).0.is_none());
            assert!(one.counted(A, OUT, i & COUNTER_MASK).0.is_none(), "counts wrap");
        }
        assert_eq!(Counter::at(tilework_abi::cb::acked_addr(8, 5), 8), Some(Counter::Acked(5)));
        assert_eq!(Counter::at(tilework_abi::cb::received_addr(8, 31), 8), Some(Counter::Received(31)));
        assert_eq!(Counter::at(tilework_abi::cb::received_addr(8, 32), 8), None);
    }
}
