//! How often a core executed each instruction, and how long that took.
//!
//! Exact, without an event for each instruction: the interpreter's second copy counts into pages of
//! the addresses that the core executes. The cycles of an instruction are those until the next one
//! issues, so that a wait for an operand belongs to the instruction that needs it. Time in which
//! the core is parked or blocked belongs to none.

use crate::Cycle;

/// Instructions of a page of counts.
const PAGE: usize = 256;

/// Counts of the instruction at one address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PcCount {
    /// The address.
    pub pc: u32,
    /// How often it was executed.
    pub executed: u64,
    /// Cycles until the next instruction.
    pub cycles: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    executed: u64,
    cycles: u64,
}

/// The counts of a core.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counts {
    /// Number of the page, and its counts.
    pages: Vec<(u32, Box<[Count; PAGE]>)>,
    /// The page that was used last.
    page: usize,
    /// The last instruction, as its page and its place there, and when it issued.
    last: Option<(usize, usize, Cycle)>,
    /// The core's count of instructions before the last one that issued.
    executed: u64,
}

impl Counts {
    /// An instruction issues; the core has executed so many before it. One that is refused issues
    /// again with the same number.
    #[inline]
    pub(crate) fn issue(&mut self, at: Cycle, pc: u32, executed: u64) {
        self.pause(at);
        let (number, place) = (pc / 4 / PAGE as u32, pc as usize / 4 % PAGE);
        if self.pages.get(self.page).is_none_or(|(page, _)| *page != number) {
            self.page = self.find(number);
        }
        let count = &mut self.pages[self.page].1[place];
        // The first instruction of all has the number that a new count starts with.
        if executed != self.executed || count.executed == 0 {
            count.executed += 1;
            self.executed = executed;
        }
        self.last = Some((self.page, place, at));
    }

    /// Until now the last instruction took its time; what follows belongs to no instruction.
    #[inline]
    pub(crate) fn pause(&mut self, at: Cycle) {
        if let Some((page, place, since)) = self.last.take() {
            self.pages[page].1[place].cycles += at.saturating_sub(since);
        }
    }

    #[cold]
    fn find(&mut self, number: u32) -> usize {
        let found = self.pages.iter().position(|(page, _)| *page == number);
        found.unwrap_or_else(|| {
            self.pages.push((number, Box::new([Count::default(); PAGE])));
            self.pages.len() - 1
        })
    }

    /// Takes the counts, in the order of addresses. The last instruction's cycles so far are
    /// among them.
    pub(crate) fn take(&mut self, at: Cycle) -> Box<[PcCount]> {
        let last = self.last;
        self.pause(at);
        self.last = last.map(|(page, place, since)| (page, place, at.max(since)));
        let mut counts = Vec::new();
        for (page, entries) in &mut self.pages {
            for (place, count) in (0..).zip(entries.iter_mut()) {
                let Count { executed, cycles } = std::mem::take(count);
                if executed != 0 || cycles != 0 {
                    counts.push(PcCount { pc: (*page * PAGE as u32 + place) * 4, executed, cycles });
                }
            }
        }
        counts.sort_unstable_by_key(|count| count.pc);
        counts.into()
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, PcCount};

    #[test]
    fn cycles_are_those_until_the_next_instruction() {
        let mut counts = Counts::default();
        for (at, pc, executed) in [(10, 0x1000, 0), (11, 0x1004, 1), (14, 0x1000, 2), (15, 0x1004, 3)] {
            counts.issue(at, pc, executed);
        }
        counts.pause(20);
        // A wait of 80 cycles belongs to nobody.
        counts.issue(100, 0x9000, 4);
        let found = counts.take(103);
        let count = |pc, executed, cycles| PcCount { pc, executed, cycles };
        assert_eq!(*found, [count(0x1000, 2, 2), count(0x1004, 2, 8), count(0x9000, 1, 3)]);
        counts.issue(110, 0x9004, 5);
        counts.pause(111);
        // The rest of the instruction that was under way, and the next one.
        assert_eq!(*counts.take(200), [count(0x9000, 0, 7), count(0x9004, 1, 1)]);
    }

    #[test]
    fn an_instruction_that_is_refused_counts_once() {
        let mut counts = Counts::default();
        counts.issue(5, 0x40, 7);
        counts.pause(6);
        counts.issue(50, 0x40, 7);
        counts.issue(51, 0x44, 8);
        let found = counts.take(52);
        assert_eq!(found.iter().map(|count| (count.pc, count.executed)).collect::<Vec<_>>(), [(0x40, 1), (0x44, 1)]);
        assert_eq!(found[0].cycles, 2);
    }
}
