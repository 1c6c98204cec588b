//! Accesses of a tile that are left out, because they would change nothing for their observer.
//!
//! An observer of all accesses mostly looks at each of them only to find that it is right. It can
//! say so of memory beforehand ([`Known`]): accesses of one core to these granules are no events
//! until a program begins or ends on the tile. What such accesses do beside that stays visible:
//!
//! - A core's data cache may get a copy of a line by a load that is left out. Before anybody else
//!   writes to the line, and before anything else is recorded of it, the load is made up for
//!   ([`What::Holds`]).
//! - A store that is left out makes no copy stale: a granule is known for one core only, while no
//!   other core has a line of it. The first access of another core ends that.
//!
//! Firmware polls words in the lowest bytes of L1. Of those it can say once and for all that loads
//! find nothing wrong ([`KnownOf::Words`]); of boundaries that BRISC polls only loads are left out
//! that find what the access before to any boundary found, because they begin and end nothing.
//! Before somebody writes there, copies are made up for likewise. A fence is left out if no copy
//! was told since the last one. Of what code that is not judged ([`Unjudged`]) stores in local RAM
//! the words are kept until somebody may ask for them.
//!
//! So what an observer concludes does not depend on when a tile hears of what it knows, which is
//! some time later, and later for some numbers of threads than for others.

use super::{Unjudged, What};
use crate::Cycle;
use std::ops::Range;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::{L1_SIZE, LOCAL_BASE, LOCAL_SIZE_DM, Processor};

/// Bytes of a granule, and granules of a page.
const GRANULE: u32 = 64;
const PAGE: u32 = 64;
/// Granules of L1.
const GRANULES: usize = (L1_SIZE / GRANULE) as usize;
/// Bytes of a granule of local RAM, of which little is used, and pages of the largest one.
const WORD: u32 = 4;
const LOCAL_PAGES: usize = (LOCAL_SIZE_DM / WORD / PAGE) as usize;
/// Behind the words of L1 that firmware polls, and 64 of them a page.
const WORDS_END: u32 = 1 << 12;
const WORD_PAGES: usize = (WORDS_END / WORD / PAGE) as usize;
/// Lines of a core's data cache, and their bytes (BabyRISCV/README.md).
const LINES: usize = 4;
const LINE: u32 = 16;

/// Memory of a tile whose accesses by a core an observer needs no longer see: loads find nothing
/// wrong, and stores change nothing, until the next access of BRISC to one of the observer's
/// [`boundaries`](super::Observer::boundaries).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Known {
    /// The tile.
    pub tile: NocXy,
    /// Whose accesses.
    pub core: Processor,
    /// The cycle of the event by which the observer came to know it.
    pub since: Cycle,
    /// Which accesses, and in what granules.
    pub of: KnownOf,
    /// Which 64 granules, from 0.
    pub page: u32,
    /// Which of them, a bit each.
    pub granules: u64,
}

/// Accesses of which something is known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KnownOf {
    /// Loads from and stores to L1, in granules of 64 bytes.
    L1,
    /// Loads alone: stores there are to be seen.
    L1Loads,
    /// Loads of any core, for good, in granules of 4 bytes in the first 4 KiB of L1. At a boundary
    /// it is known that loads of the same value find nothing new.
    Words,
    /// Loads from and stores to the core's own local RAM, in granules of 4 bytes.
    Local,
}

/// What a slot of a data cache was last filled with.
#[derive(Clone, Copy, Debug)]
struct Line {
    number: u32,
    /// By a load that was left out and has not been made up for.
    hidden: bool,
    /// Likewise, by one of a word that is polled: other words of the line may not be known.
    polled: bool,
}

impl Line {
    const NONE: Self = Self { number: u32::MAX, hidden: false, polled: false };

    /// Whether the observer has not been told of it.
    #[inline]
    fn is_untold(self) -> bool {
        self.hidden | self.polled
    }
}

/// An access to L1 that is recorded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Access {
    pub(crate) addr: u32,
    pub(crate) stores: bool,
    /// The core's cache holds its line from now on.
    pub(crate) fills: bool,
}

/// Mark of a granule that several cores access: nothing of it is left out.
const SHARED: u8 = u8::MAX;
/// With the mark of a core: only its loads are left out.
const LOADS: u8 = 0x80;

/// The accesses of a tile that are left out.
#[derive(Clone, Debug)]
pub(crate) struct Filter {
    /// For each granule of L1 the core whose accesses are left out, by its index plus one; zero, or
    /// [`SHARED`].
    l1: Box<[u8; GRANULES]>,
    /// The granules that are not zero, or were.
    marked: Vec<u16>,
    /// For each core, of the granules of its local RAM.
    local: [[u64; LOCAL_PAGES]; 5],
    lines: [[Line; LINES]; 5],
    /// Whether a line may be hidden, or one of words that are polled.
    hides: bool,
    /// Whether the observer may have been told of a line that the core's cache holds.
    told: [bool; 5],
    /// The words of which [`KnownOf::Words`].
    words: [u64; WORD_PAGES],
    /// The last access to a boundary, if it was a load of what BRISC polls: address, bytes, value.
    polled: Option<(u32, u8, u32)>,
    /// The words of its local RAM that each core has stored by code that is not judged, and those
    /// of them that the observer has not been told of.
    stored: [[u64; LOCAL_PAGES]; 5],
    untold: [[u64; LOCAL_PAGES]; 5],
    /// Whether there are any of those.
    is_untold: [bool; 5],
    /// The code that is not judged, from where on accesses to local RAM are right for each core,
    /// and the boundaries that BRISC polls.
    unjudged: Range<u32>,
    stacks: [u32; 5],
    polls: Range<u32>,
    boundaries: Vec<Range<u32>>,
    /// What was known up to this cycle is not known any more.
    passed: Cycle,
}

impl Filter {
    /// Leaves out nothing.
    pub(crate) fn new() -> Self {
        Self {
            l1: no_owners(),
            marked: Vec::new(),
            local: [[0; LOCAL_PAGES]; 5],
            lines: [[Line::NONE; LINES]; 5],
            hides: false,
            told: [true; 5],
            words: [0; WORD_PAGES],
            polled: None,
            stored: [[0; LOCAL_PAGES]; 5],
            untold: [[0; LOCAL_PAGES]; 5],
            is_untold: [false; 5],
            unjudged: 0..0,
            stacks: [u32::MAX; 5],
            polls: 0..0,
            boundaries: Vec::new(),
            passed: 0,
        }
    }

    /// A core's cache holds the lines with these numbers.
    pub(crate) fn set_cache(&mut self, core: Processor, lines: [u32; LINES]) {
        self.lines[core as usize] = lines.map(|number| Line { number, ..Line::NONE });
        self.told[core as usize] = true;
    }

    /// Whether a load from L1 is left out.
    ///
    /// Of a granule that is not known to its core no line is hidden: a copy that is tells all.
    #[inline(always)]
    pub(crate) fn skips_load(&mut self, core: Processor, addr: u32, cached: bool) -> bool {
        let line = &mut self.lines[core as usize][slot(addr)];
        if cached {
            return line.hidden;
        }
        let known = self.l1[(addr / GRANULE) as usize % GRANULES] & !LOADS == mark(core);
        *line = Line { number: addr / LINE, hidden: known, polled: false };
        self.hides |= known;
        known
    }

    /// Whether a store to L1 is left out.
    #[inline(always)]
    pub(crate) fn skips_store(&self, core: Processor, addr: u32) -> bool {
        self.l1[(addr / GRANULE) as usize % GRANULES] == mark(core)
    }

    /// Whether an access to the core's own local RAM is left out.
    #[inline(always)]
    pub(crate) fn skips_local(&self, core: Processor, addr: u32) -> bool {
        let granule = addr.wrapping_sub(LOCAL_BASE) / WORD;
        let page = self.local[core as usize].get((granule / PAGE) as usize);
        page.is_some_and(|page| page >> (granule % PAGE) & 1 != 0)
    }

    /// Whether a load from L1 that [`Filter::skips_load`] does not leave out is one of a word that
    /// is polled, and finds nothing new.
    pub(crate) fn polls(&mut self, core: Processor, addr: u32, (bytes, value): (u8, u32), cached: bool) -> bool {
        let word = addr / WORD;
        let is_known = addr < WORDS_END && self.words[(word / PAGE) as usize] >> (word % PAGE) & 1 != 0;
        if !is_known
            || self.is_others(core, addr)
            || self.is_boundary(core, addr) && self.polled != Some((addr, bytes, value))
        {
            return false;
        }
        let line = &mut self.lines[core as usize][slot(addr)];
        if cached {
            return line.polled && line.number == addr / LINE;
        }
        *line = Line { number: addr / LINE, hidden: false, polled: true };
        self.hides = true;
        true
    }

    /// A core empties its cache. Says whether its observer may have been told of what was there.
    pub(crate) fn fence(&mut self, core: Processor) -> bool {
        self.lines[core as usize] = [Line::NONE; LINES];
        std::mem::take(&mut self.told[core as usize])
    }

    /// BRISC has accessed a boundary: what it has loaded there, if it polls it.
    pub(crate) fn passes(&mut self, what: &What) {
        self.polled = match what {
            What::Load { addr, bytes, value, .. } if self.polls.contains(addr) => Some((*addr, *bytes, *value)),
            _ => None,
        };
    }

    /// Whether a load from local RAM is not judged, or is right in any case.
    pub(crate) fn overlooks_local(&mut self, core: Processor, pc: u32, addr: u32) -> bool {
        let word = addr.wrapping_sub(LOCAL_BASE) / WORD;
        let (page, bit) = ((word / PAGE) as usize, 1 << (word % PAGE));
        let is_stored = self.stored[core as usize].get(page).is_some_and(|stored| stored & bit != 0);
        if is_stored && addr >= self.stacks[core as usize] {
            self.local[core as usize][page] |= bit;
            return true;
        }
        self.unjudged.contains(&pc)
    }

    /// Keeps a store to local RAM by code that is not judged, or where it is right in any case;
    /// false if it has to be told by itself.
    pub(crate) fn keeps_local(&mut self, core: Processor, pc: u32, addr: u32, bytes: u8) -> bool {
        let is_right = addr >= self.stacks[core as usize];
        if !is_right && !self.unjudged.contains(&pc) {
            return false;
        }
        let word = addr.wrapping_sub(LOCAL_BASE) / WORD;
        let (core, page, bit) = (core as usize, (word / PAGE) as usize, 1 << (word % PAGE));
        let Some(stored) = self.stored[core].get_mut(page) else { return false };
        if *stored & bit == 0 {
            if u32::from(bytes) < WORD {
                return false;
            }
            *stored |= bit;
            self.untold[core][page] |= bit;
            self.is_untold[core] = true;
        }
        if is_right {
            self.local[core][page] |= bit;
        }
        true
    }

    /// Something of a core's local RAM is about to be recorded: `told` gets what was kept.
    #[inline]
    pub(crate) fn tell_kept(&mut self, core: Processor, mut told: impl FnMut(What)) {
        if std::mem::take(&mut self.is_untold[core as usize]) {
            for (page, words) in (0..).zip(&mut self.untold[core as usize]).filter(|(_, words)| **words != 0) {
                told(What::Prepared { core, page, words: std::mem::take(words) });
            }
        }
    }

    #[inline(always)]
    fn owner(&self, addr: u32) -> u8 {
        self.l1.get((addr / GRANULE) as usize).copied().unwrap_or(0)
    }

    /// Whether accesses of another core are left out there.
    fn is_others(&self, core: Processor, addr: u32) -> bool {
        ![0, SHARED, mark(core), mark(core) | LOADS].contains(&self.owner(addr))
    }

    fn is_boundary(&self, core: Processor, addr: u32) -> bool {
        core == Processor::Brisc && self.boundaries.iter().any(|range| range.contains(&addr))
    }

    /// An access of `core` to L1 is about to be recorded: `told` gets what comes before it. Says
    /// whether it is one to a boundary.
    #[inline]
    pub(crate) fn records(&mut self, core: Processor, at: Cycle, access: &Access, mut told: impl FnMut(What)) -> bool {
        let Access { addr, stores, fills } = *access;
        let is_boundary = self.is_boundary(core, addr);
        if is_boundary {
            self.passed = at;
            self.forget(&mut told);
        } else if self.is_others(core, addr) {
            self.l1[(addr / GRANULE) as usize] = SHARED;
            let granule = addr / GRANULE * GRANULE;
            self.unhide(granule..granule + GRANULE, |line| line.is_untold(), &mut told);
        }
        if self.hides {
            let line = &mut self.lines[core as usize][slot(addr)];
            if line.is_untold() && line.number == addr / LINE {
                (line.hidden, line.polled) = (false, false);
                self.told[core as usize] = true;
                told(What::Holds { core, addr: line.number * LINE });
            }
            if stores && addr < WORDS_END {
                self.unhide(addr..addr + 1, |line| line.polled, &mut told);
            }
        }
        self.told[core as usize] |= fills;
        is_boundary
    }

    /// Something other than a core is about to write to L1: `told` gets what comes before that.
    #[inline]
    pub(crate) fn written(&mut self, span: Range<u32>, told: impl FnMut(What)) {
        if self.hides {
            self.unhide(span, Line::is_untold, told);
        }
    }

    /// Tells which cores hold lines of a span by such loads that were left out.
    #[cold]
    fn unhide(&mut self, span: Range<u32>, which: impl Fn(Line) -> bool, mut told: impl FnMut(What)) {
        for (core, lines) in Processor::ALL.into_iter().zip(&mut self.lines) {
            for line in lines.iter_mut().filter(|line| which(**line)) {
                let start = line.number * LINE;
                if start < span.end && span.start < start + LINE {
                    (line.hidden, line.polled) = (false, false);
                    self.told[core as usize] = true;
                    told(What::Holds { core, addr: start });
                }
            }
        }
        self.hides = self.lines.iter().flatten().any(|line| line.is_untold());
    }

    /// Nothing is known any more of what ends at a boundary: `told` gets what was left out and is
    /// still of importance.
    fn forget(&mut self, told: impl FnMut(What)) {
        self.local = [[0; LOCAL_PAGES]; 5];
        if !self.marked.is_empty() {
            self.marked.drain(..).for_each(|granule| self.l1[usize::from(granule)] = 0);
            self.unhide(0..L1_SIZE, |line| line.hidden, told);
        }
    }

    /// Nothing is known any more: `told` gets what was left out and is still of importance, for
    /// each core.
    pub(crate) fn forget_all(&mut self, mut told: impl FnMut(What)) {
        self.forget(&mut told);
        self.unhide(0..L1_SIZE, Line::is_untold, &mut told);
        Processor::ALL.into_iter().for_each(|core| self.tell_kept(core, &mut told));
        self.stored = [[0; LOCAL_PAGES]; 5];
        self.words = [0; WORD_PAGES];
        (self.polled, self.told) = (None, [true; 5]);
    }

    /// A program may be launched: the same value at a boundary may begin it.
    pub(crate) fn launches(&mut self) {
        self.polled = None;
    }

    /// From now on these are the boundaries; what was known up to cycle `at` is not.
    pub(crate) fn set_boundaries(&mut self, boundaries: &[Range<u32>], at: Cycle) {
        self.boundaries = boundaries.to_vec();
        self.passed = at;
        (self.words, self.polled) = ([0; WORD_PAGES], None);
    }

    /// From now on this is not judged; on a tile that is `overlooked` no code is.
    pub(crate) fn set_unjudged(&mut self, unjudged: &Unjudged, overlooked: bool) {
        self.unjudged = if overlooked { 0..u32::MAX } else { unjudged.code.clone() };
        (self.polls, self.stacks) = (unjudged.polled.clone(), unjudged.stacks);
    }

    /// Takes what an observer knows. Granules of which `is_watched` are not left out.
    pub(crate) fn know(&mut self, known: &Known, is_watched: impl Fn(u32) -> bool) {
        let (core, page) = (known.core.index(), known.page as usize);
        if known.of == KnownOf::Words {
            if let Some(words) = self.words.get_mut(page) {
                *words |= known.granules;
            }
            return;
        }
        if known.since <= self.passed {
            return;
        }
        if known.of == KnownOf::Local {
            if let Some(granules) = self.local[core].get_mut(page) {
                *granules |= known.granules;
            }
            return;
        }
        let Self { l1, marked, lines, .. } = self;
        // Those of which another core holds a line.
        let others = lines.iter().enumerate().filter(|(other, _)| *other != core).flat_map(|(_, lines)| lines);
        let held = others.fold(0, |all, line| {
            let granule = line.number / (GRANULE / LINE);
            all | u64::from(granule / PAGE == known.page) << (granule % PAGE)
        });
        let mut granules = known.granules & !held;
        while granules != 0 {
            let granule = known.page * PAGE + granules.trailing_zeros();
            granules &= granules - 1;
            if let Some(owner @ 0) = l1.get_mut(granule as usize)
                && !is_watched(granule * GRANULE)
            {
                *owner = mark(known.core) | if known.of == KnownOf::L1Loads { LOADS } else { 0 };
                // There are fewer granules than that.
                marked.push(granule as u16);
            }
        }
    }
}

/// Nothing is known of L1.
fn no_owners() -> Box<[u8; GRANULES]> {
    // On the heap from the beginning, where zeros cost nothing.
    let owners = vec![0; GRANULES].into_boxed_slice();
    owners.try_into().unwrap_or_else(|_| Box::new([0; GRANULES]))
}

/// How a granule is marked as known for a core.
#[inline(always)]
const fn mark(core: Processor) -> u8 {
    core as u8 + 1
}

/// Where a data cache keeps the line around `addr`.
#[inline(always)]
const fn slot(addr: u32) -> usize {
    (addr / LINE) as usize % LINES
}

#[cfg(test)]
mod tests {
    use super::*;

    const TILE: NocXy = NocXy::new(1, 2);
    const BRISC: Processor = Processor::Brisc;
    const NCRISC: Processor = Processor::Ncrisc;

    fn known(core: Processor, since: Cycle, page: u32, granules: u64) -> Known {
        Known { tile: TILE, core, since, of: KnownOf::L1, page, granules }
    }

    /// What is told before an access that is recorded.
    fn told(filter: &mut Filter, core: Processor, at: Cycle, addr: u32) -> Vec<What> {
        let mut told = Vec::new();
        let access = Access { addr, stores: false, fills: true };
        filter.records(core, at, &access, |what| told.push(what));
        told
    }

    #[test]
    fn what_is_known_is_left_out_until_a_boundary() {
        let mut filter = Filter::new();
        filter.set_boundaries(std::slice::from_ref(&(0x100..0x110)), 5);
        assert!(!filter.skips_store(BRISC, 0x2000));
        filter.know(&known(BRISC, 5, 2, 0b11), |_| false);
        assert!(!filter.skips_store(BRISC, 0x2000), "from before the boundary");
        filter.know(&known(BRISC, 6, 2, 0b11), |addr| addr == 0x2040);
        assert!(filter.skips_store(BRISC, 0x203c) && filter.skips_load(BRISC, 0x2000, false));
        assert!(!filter.skips_store(BRISC, 0x2040), "somebody wants to see stores there");
        assert!(!filter.skips_store(BRISC, 0x2080) && !filter.skips_store(NCRISC, 0x2000));
        filter.know(&Known { of: KnownOf::L1Loads, ..known(BRISC, 6, 3, 1) }, |_| false);
        assert!(filter.skips_load(BRISC, 0x3000, false) && !filter.skips_store(BRISC, 0x3000));
        assert!(!filter.skips_load(NCRISC, 0x3000, false), "another core");
        filter.know(&Known { of: KnownOf::Local, ..known(NCRISC, 6, 16, 1) }, |_| false);
        assert!(filter.skips_local(NCRISC, LOCAL_BASE + 0x1000) && !filter.skips_local(BRISC, LOCAL_BASE + 0x1000));
        assert!(!filter.skips_local(NCRISC, LOCAL_BASE + 0x1004));
        assert!(told(&mut filter, NCRISC, 9, 0x104).is_empty());
        assert!(filter.skips_store(BRISC, 0x2000), "only BRISC begins and ends programs");
        // The line of 0x2000 had its slot before.
        let holds = What::Holds { core: BRISC, addr: 0x3000 };
        assert_eq!(told(&mut filter, BRISC, 9, 0x104), [holds]);
        assert!(!filter.skips_store(BRISC, 0x2000) && !filter.skips_local(NCRISC, LOCAL_BASE + 0x1000));
        filter.know(&known(BRISC, 9, 2, 0b11), |_| false);
        assert!(!filter.skips_store(BRISC, 0x2000));
    }

    #[test]
    fn another_core_ends_what_is_known() {
        let mut filter = Filter::new();
        assert!(!filter.skips_load(NCRISC, 0x2080, false));
        filter.know(&known(BRISC, 1, 2, 0b111), |_| false);
        assert!(!filter.skips_store(BRISC, 0x2080), "NCRISC may have a copy");
        assert!(filter.skips_load(BRISC, 0x2004, false) && filter.skips_load(BRISC, 0x2008, true));
        assert!(filter.skips_store(BRISC, 0x2040));
        assert!(!filter.skips_store(NCRISC, 0x2000));
        assert_eq!(told(&mut filter, NCRISC, 7, 0x2000), [What::Holds { core: BRISC, addr: 0x2000 }]);
        assert!(!filter.skips_load(BRISC, 0x2008, true), "the copy is stale now");
        filter.know(&known(BRISC, 8, 2, 1), |_| false);
        assert!(!filter.skips_store(BRISC, 0x2000), "not again");
    }

    /// The lines of all cores' caches with the bytes that others have written since: as they are,
    /// or as an observer concludes from what is recorded.
    #[derive(Clone, PartialEq, Debug)]
    struct Caches([[Option<(u32, u16)>; LINES]; 5]);

    impl Caches {
        fn new() -> Self {
            Self([[None; LINES]; 5])
        }
        fn fill(&mut self, core: usize, addr: u32) {
            self.0[core][slot(addr)] = Some((addr / LINE, 0));
        }
        fn drop_line(&mut self, core: usize, addr: u32) {
            let line = &mut self.0[core][slot(addr)];
            *line = line.filter(|(number, _)| *number != addr / LINE);
        }
        fn holds(&self, core: usize, addr: u32) -> bool {
            self.0[core][slot(addr)].is_some_and(|(number, _)| number == addr / LINE)
        }
        fn is_stale(&self, core: usize, addr: u32) -> bool {
            let line = self.0[core][slot(addr)].filter(|(number, _)| *number == addr / LINE);
            line.is_some_and(|(_, stale)| stale >> (addr % LINE) & 0xF != 0)
        }
        fn written(&mut self, by: Option<usize>, addr: u32) {
            for (_, lines) in self.0.iter_mut().enumerate().filter(|(core, _)| Some(*core) != by) {
                if let Some((number, stale)) = &mut lines[slot(addr)]
                    && *number == addr / LINE
                {
                    *stale |= 0xF << (addr % LINE);
                }
            }
        }
    }

    #[test]
    fn copies_are_found_stale_whatever_is_left_out() {
        let mut random = 0x9E37_79B9_7F4A_7C15u64;
        let mut next = |below: u32| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as u32 % below
        };
        let (mut left_out, mut stale) = (0, 0);
        for _ in 0..40 {
            let (mut filter, mut real, mut seen) = (Filter::new(), Caches::new(), Caches::new());
            filter.set_boundaries(std::slice::from_ref(&(0..16)), 0);
            for at in 1..4000u64 {
                let core = Processor::ALL[next(8).min(4) as usize % 3];
                let c = core.index();
                // The granule of the boundary, and one for each core, which others seldom access.
                let granule = if next(100) == 0 { next(3) } else { c as u32 };
                let addr = if next(200) == 0 { 0 } else { 64 * (1 + granule) + 4 * next(16) };
                let access = |stores, fills| Access { addr, stores, fills };
                let mut holds = Vec::new();
                match next(10) {
                    0 => {
                        filter.written(addr..addr + 4, |what| holds.push(what));
                        conclude(&mut seen, &holds);
                        real.written(None, addr);
                        seen.written(None, addr);
                    }
                    1 => filter.know(&known(core, at.saturating_sub(next(100).into()), 0, 0b1110), |_| false),
                    2..5 => {
                        if filter.skips_store(core, addr) {
                            left_out += 1;
                        } else {
                            filter.records(core, at, &access(true, false), |what| holds.push(what));
                            conclude(&mut seen, &holds);
                            seen.drop_line(c, addr);
                            seen.written(Some(c), addr);
                        }
                        real.drop_line(c, addr);
                        real.written(Some(c), addr);
                    }
                    _ => {
                        let cached = real.holds(c, addr);
                        let is_stale = cached && real.is_stale(c, addr);
                        stale += u32::from(is_stale);
                        if filter.skips_load(core, addr, cached) {
                            left_out += 1;
                            assert!(!is_stale, "{at}: a stale copy is left out");
                        } else {
                            filter.records(core, at, &access(false, !cached), |what| holds.push(what));
                            conclude(&mut seen, &holds);
                            assert_eq!(cached && seen.is_stale(c, addr), is_stale, "{at}");
                            if !cached {
                                seen.fill(c, addr);
                            }
                        }
                        if !cached {
                            real.fill(c, addr);
                        }
                    }
                }
            }
        }
        assert!(left_out > 1000 && stale > 300, "{left_out} left out, {stale} stale");
    }

    fn conclude(seen: &mut Caches, holds: &[What]) {
        for what in holds {
            if let What::Holds { core, addr } = what {
                seen.fill(core.index(), *addr);
            }
        }
    }
}
