//! The data caches of a tile's cores: which lines they hold, and what of them is stale.
//!
//! Whatever is written to L1 is compared with all of them, and mostly meets none: so the numbers of
//! the lines of all cores are next to each other, apart from what belongs to each.

use crate::finding::Place;
use tilework_abi::tensix::Processor;

/// Lines of a core's data cache and their bytes (BabyRISCV/README.md).
const LINES: usize = 4;
const LINE: u32 = 16;

/// The number of no line.
const NONE: u32 = u32::MAX;

/// The data caches of a tile.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Caches {
    numbers: [[u32; LINES]; 5],
    /// Of each copy the bytes that others have written since it was filled.
    stale: [[u16; LINES]; 5],
    /// Who did so last: looked at seldom.
    by: [[Option<Place>; LINES]; 5],
}

impl Default for Caches {
    fn default() -> Self {
        Self { numbers: [[NONE; LINES]; 5], stale: Default::default(), by: Default::default() }
    }
}

/// Where a cache keeps the line around `addr`.
#[inline]
const fn slot(addr: u32) -> usize {
    (addr / LINE) as usize % LINES
}

impl Caches {
    /// A core has loaded from L1 past its cache, and has a copy now.
    #[inline]
    pub(super) fn fill(&mut self, core: Processor, addr: u32) {
        self.numbers[core.index()][slot(addr)] = addr / LINE;
        self.stale[core.index()][slot(addr)] = 0;
    }

    /// As [`Caches::fill`], of all these cores, a bit each.
    pub(super) fn fill_all(&mut self, cores: u8, addr: u32) {
        Processor::ALL.into_iter().filter(|core| cores >> core.index() & 1 != 0).for_each(|core| self.fill(core, addr));
    }

    /// A core's cache is empty.
    #[inline]
    pub(super) fn flush(&mut self, core: Processor) {
        self.numbers[core.index()] = [NONE; LINES];
    }

    /// A core has stored: its copy is gone.
    #[inline]
    pub(super) fn drop_line(&mut self, core: Processor, addr: u32) {
        let number = &mut self.numbers[core.index()][slot(addr)];
        if *number == addr / LINE {
            *number = NONE;
        }
    }

    /// Who has written some of the bytes that a core takes from its copy.
    #[inline]
    pub(super) fn stale(&self, core: Processor, addr: u32, bytes: u32) -> Option<Place> {
        let (core, slot) = (core.index(), slot(addr));
        let wanted = ((1u32 << bytes) - 1) << (addr % LINE);
        let is_held = self.numbers[core][slot] == addr / LINE;
        if is_held && u32::from(self.stale[core][slot]) & wanted != 0 { self.by[core][slot] } else { None }
    }

    /// Somebody has written to L1, a core or something else.
    #[inline]
    pub(super) fn written(&mut self, addr: u32, len: u32, core: Option<Processor>, by: impl Fn() -> Place) {
        if len == 0 {
            return;
        }
        let (first, last) = (addr / LINE, addr.saturating_add(len - 1) / LINE);
        let is_met = |number: u32| number.wrapping_sub(first) <= last - first;
        // All of them, without a way out before the end: several are compared at once.
        if !self.numbers.as_flattened().iter().fold(false, |any, &number| any | is_met(number)) {
            return;
        }
        for other in Processor::ALL.into_iter().filter(|other| Some(*other) != core) {
            let lines = self.numbers[other.index()].iter().enumerate();
            for (slot, &number) in lines.filter(|(_, number)| is_met(**number)) {
                let start = number * LINE;
                let (from, to) = (addr.max(start) - start, (addr + len).min(start + LINE) - start);
                // Of 16 bytes.
                self.stale[other.index()][slot] |= (((1u32 << (to - from)) - 1) << from) as u16;
                self.by[other.index()][slot] = Some(by());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Agent;
    use tilework_abi::noc::NocXy;

    const BRISC: Processor = Processor::Brisc;
    const NCRISC: Processor = Processor::Ncrisc;

    fn place(cycle: u64) -> Place {
        Place { tile: NocXy::new(1, 2), agent: Agent::Host, code: None, cycle, target: None }
    }

    #[test]
    fn a_copy_is_stale_where_another_has_written_since() {
        let mut caches = Caches::default();
        let cycle = |caches: &Caches, core, addr, bytes| caches.stale(core, addr, bytes).map(|place| place.cycle);
        caches.fill(BRISC, 0x1000);
        caches.fill(NCRISC, 0x1010);
        caches.written(0x1004, 4, Some(BRISC), || place(1));
        assert_eq!(cycle(&caches, BRISC, 0x1004, 4), None, "its own store");
        caches.written(0x100c, 8, None, || place(2));
        assert_eq!((cycle(&caches, BRISC, 0x1008, 4), cycle(&caches, BRISC, 0x100c, 1)), (None, Some(2)));
        assert_eq!((cycle(&caches, NCRISC, 0x1010, 4), cycle(&caches, NCRISC, 0x1014, 4)), (Some(2), None));
        caches.written(0xf00, 0x1000, Some(NCRISC), || place(3));
        assert_eq!((cycle(&caches, BRISC, 0x1000, 1), cycle(&caches, NCRISC, 0x1010, 1)), (Some(3), Some(2)));
        caches.fill(BRISC, 0x1000);
        caches.drop_line(NCRISC, 0x1050);
        assert_eq!((cycle(&caches, BRISC, 0x1000, 4), cycle(&caches, NCRISC, 0x1010, 4)), (None, Some(2)));
        caches.drop_line(NCRISC, 0x101c);
        caches.written(0x1000, 4, None, || place(4));
        caches.flush(BRISC);
        assert_eq!((cycle(&caches, BRISC, 0x1000, 4), cycle(&caches, NCRISC, 0x1010, 4)), (None, None));
        caches.written(0, 0, None, || place(5));
    }
}
