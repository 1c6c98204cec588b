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
//! Of other words it can say that loads of any core find nothing wrong, once and for all: of those
//! that firmware polls in the lowest bytes of L1 ([`KnownOf::Words`]), and of what programs only
//! read ([`KnownOf::Loads`]); or loads by one instruction, until the program ends
//! ([`KnownOf::By`]). Before somebody writes there, copies are made up for likewise. Of boundaries
//! that BRISC polls only loads are left out that find what the access before to any boundary found,
//! because they begin and end nothing. Of memory that is known as soon as it has been written
//! ([`KnownOf::Arriving`]) the tile itself sees when that is.
//!
//! For this no fence needs to be told ([`Unjudged::fences`]): a copy from which a core loads was
//! made behind its last fence, and either that load was told or it is made up for before anything
//! depends on it.
//!
//! So what an observer concludes does not depend on when a tile hears of what it knows, which is
//! some time later, and later for some numbers of threads than for others.

use super::copies::{LINE, LINES, Line, slot};
use super::local::Local;
use super::pages::{Boundaries, PAGE, SOME_WORD_PAGES, WORD, WORD_PAGES, add, has};
use super::recorder::Loaded;
use super::{Unjudged, What};
use crate::Cycle;
use crate::bits::members;
use std::ops::Range;
use tilework_abi::noc::NocXy;
use tilework_abi::tensix::{L1_SIZE, Processor};

/// Bytes of a granule, and granules of L1.
const GRANULE: u32 = 64;
const GRANULES: usize = (L1_SIZE / GRANULE) as usize;

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
    /// The same, from when something other than a core has written all of a granule at once.
    Arriving,
    /// Loads of any core, for good, in granules of 64 bytes. None of them is at a boundary.
    Loads,
    /// Loads of any core, for good, in granules of 4 bytes. At a boundary it is known that loads of
    /// the same value find nothing new.
    Words,
    /// Loads from L1 by the instruction at this address, in granules of 4 bytes.
    By(u32),
    /// Loads from and stores to the core's own local RAM, in granules of 4 bytes.
    Local,
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
/// With the mark of a core: its accesses are left out when all of the granule has been written.
const ARRIVING: u8 = 0x80;
/// Mark of a granule of which loads of any core are left out for good, and no stores.
const LOADS: u8 = 0x40;

/// An instruction, and the word that it loads without anything to be seen.
type Loader = (u32, u32);
const NO_LOADER: Loader = (u32::MAX, u32::MAX);

impl KnownOf {
    /// Instructions of each core of which it is kept what they load ([`KnownOf::By`]): those at
    /// the same place take each other's ([`KnownOf::loader`]).
    pub const LOADERS: usize = 8;

    /// The place of the instruction at `pc`.
    #[inline]
    pub const fn loader(pc: u32) -> usize {
        (pc / 4) as usize % Self::LOADERS
    }
}

/// The accesses of a tile that are left out. What most accesses look at comes first, next to each
/// other: tiles are many, and the caches of the host small.
#[derive(Clone, Debug)]
#[repr(C)]
pub(crate) struct Filter {
    /// For each granule of L1 the core whose accesses are left out, by its index plus one; zero,
    /// [`SHARED`] or [`LOADS`].
    l1: Box<[u8; GRANULES]>,
    lines: [[Line; LINES]; 5],
    /// Whether some granules may be [`ARRIVING`].
    awaits: bool,
    /// The cores that have some of [`Filter::loaders`], a bit each.
    have_loaders: u8,
    /// The last access to a boundary, if it was a load of what BRISC polls: address, bytes, value.
    polled: Option<(u32, u8, u32)>,
    boundaries: Boundaries,
    /// The words of which [`KnownOf::Words`], and the granules of which [`KnownOf::Loads`] by
    /// pages, as far as there are any.
    words: Vec<u64>,
    loads: Vec<u64>,
    /// What is known by [`KnownOf::By`].
    loaders: [[Loader; KnownOf::LOADERS]; 5],
    /// The boundaries that BRISC polls.
    polls: Range<u32>,
    /// What was known up to this cycle is not known any more.
    passed: Cycle,
    /// The granules of which something is known, or was.
    marked: Vec<u16>,
    /// The cores' local RAM.
    pub(crate) local: Local,
}

impl Filter {
    /// Leaves out nothing.
    pub(crate) fn new() -> Self {
        Self {
            l1: no_owners(),
            marked: Vec::new(),
            awaits: false,
            local: Local::new(),
            lines: [[Line::NONE; LINES]; 5],
            words: Vec::new(),
            loads: Vec::new(),
            loaders: [[NO_LOADER; KnownOf::LOADERS]; 5],
            have_loaders: 0,
            polled: None,
            polls: 0..0,
            boundaries: Boundaries::default(),
            passed: 0,
        }
    }

    /// A core's cache holds the lines with these numbers.
    pub(crate) fn set_cache(&mut self, core: Processor, lines: [u32; LINES]) {
        self.lines[core as usize] = lines.map(|number| Line::new(number, 0));
    }

    /// Whether a load from L1 is left out.
    ///
    /// Of a granule that is not known to its core no line is hidden: a copy that is tells all.
    #[inline(always)]
    pub(crate) fn skips_load(&mut self, core: Processor, addr: u32, cached: bool) -> bool {
        let line = &mut self.lines[core as usize][slot(addr)];
        if cached {
            return line.has(Line::HIDDEN | Line::WHOLE);
        }
        let owner = self.l1[(addr / GRANULE) as usize % GRANULES];
        let (known, whole) = (owner == mark(core), owner == LOADS);
        let whole_flags = if whole { Line::POLLED | Line::WHOLE } else { 0 };
        *line = Line::new(addr / LINE, if known { Line::HIDDEN } else { whole_flags });
        known | whole
    }

    /// Whether a store to L1 is left out.
    #[inline(always)]
    pub(crate) fn skips_store(&self, core: Processor, addr: u32) -> bool {
        self.l1[(addr / GRANULE) as usize % GRANULES] == mark(core)
    }

    /// Whether a load from L1 that [`Filter::skips_load`] does not leave out is one of a word that
    /// is polled, and finds nothing new.
    pub(crate) fn polls(&mut self, core: Processor, pc: u32, loaded: &Loaded) -> bool {
        let Loaded { addr, bytes, value, cached } = *loaded;
        if !self.is_right(core, pc, addr)
            || self.is_others(core, addr)
            || self.is_boundary(core, addr) && self.polled != Some((addr, bytes, value))
        {
            return false;
        }
        let line = &mut self.lines[core as usize][slot(addr)];
        if cached {
            return line.has(Line::POLLED | Line::FRESH) && line.number() == addr / LINE;
        }
        *line = Line::new(addr / LINE, Line::POLLED);
        true
    }

    /// Whether nothing is wrong with a load of the word at `addr` by this instruction.
    fn is_right(&self, core: Processor, pc: u32, addr: u32) -> bool {
        let (word, granule) = (addr / WORD, addr / GRANULE);
        has(&self.words, word)
            || has(&self.loads, granule)
            || self.loaders[core as usize][KnownOf::loader(pc)] == (pc, word)
    }

    /// A core empties its cache.
    pub(crate) fn fence(&mut self, core: Processor) {
        self.lines[core as usize] = [Line::NONE; LINES];
    }

    /// BRISC has accessed a boundary: what it has loaded there, if it polls it.
    pub(crate) fn passes(&mut self, what: &What) {
        self.polled = match what {
            What::Load { addr, bytes, value, .. } if self.polls.contains(addr) => Some((*addr, *bytes, *value)),
            _ => None,
        };
    }

    #[inline(always)]
    fn owner(&self, addr: u32) -> u8 {
        self.l1.get((addr / GRANULE) as usize).copied().unwrap_or(0)
    }

    /// Whether accesses of another core are left out there.
    fn is_others(&self, core: Processor, addr: u32) -> bool {
        ![0, SHARED, LOADS, mark(core), mark(core) | ARRIVING].contains(&self.owner(addr))
    }

    #[inline]
    fn is_boundary(&self, core: Processor, addr: u32) -> bool {
        core == Processor::Brisc && self.boundaries.has(addr)
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
            self.unhide(granule..granule + GRANULE, true, &mut told);
        }
        let line = &mut self.lines[core as usize][slot(addr)];
        if line.number() == addr / LINE {
            if line.is_untold() {
                told(What::Holds { cores: 1 << core.index(), addr: line.number() * LINE });
            }
            line.tell(fills || line.is_watched());
        }
        if stores {
            self.unhide(addr..addr + 1, false, &mut told);
        }
        is_boundary
    }

    /// Something other than a core is about to write to L1: `told` gets what comes before that.
    #[inline]
    pub(crate) fn written(&mut self, span: Range<u32>, told: impl FnMut(What)) {
        if self.awaits {
            let whole = span.start.div_ceil(GRANULE) as usize..(span.end / GRANULE) as usize;
            for owner in self.l1.get_mut(whole).into_iter().flatten().filter(|owner| **owner != SHARED) {
                *owner &= !ARRIVING;
            }
        }
        self.unhide(span, false, told);
    }

    /// Tells which cores hold lines of a span by loads that were left out. If they do not stay
    /// `fresh`, somebody is about to write there.
    #[inline]
    fn unhide(&mut self, span: Range<u32>, fresh: bool, mut told: impl FnMut(What)) {
        let (mut number, end) = (span.start / LINE, span.end.div_ceil(LINE));
        let (first, count) = (number, end.saturating_sub(number));
        // Mostly none. All of them, without a way out before the end: several are compared at once.
        if !self.lines.as_flattened().iter().fold(false, |any, line| any | line.is_watched_in(first, count)) {
            return;
        }
        // Each slot holds one line of those that are so far from each other.
        while number < end.min(span.start / LINE + LINES as u32) {
            let slot = number as usize % LINES;
            // Mostly all cores hold the same one.
            let (mut held, mut cores) = (number, 0);
            for (core, lines) in self.lines.iter_mut().enumerate() {
                let line = &mut lines[slot];
                if line.is_watched_in(number, end - number) {
                    if line.is_untold() {
                        if line.number() != held && cores != 0 {
                            told(What::Holds { cores: std::mem::take(&mut cores), addr: held * LINE });
                        }
                        held = line.number();
                        cores |= 1 << core;
                    }
                    line.tell(fresh && line.is_watched());
                }
            }
            if cores != 0 {
                told(What::Holds { cores, addr: held * LINE });
            }
            number += 1;
        }
    }

    /// Nothing is known any more of what ends at a boundary: `told` gets what was left out and is
    /// still of importance.
    fn forget(&mut self, mut told: impl FnMut(What)) {
        self.local.forget();
        members(std::mem::take(&mut self.have_loaders))
            .for_each(|core| self.loaders[core] = [NO_LOADER; KnownOf::LOADERS]);
        self.awaits = false;
        if !self.marked.is_empty() {
            for granule in self.marked.drain(..) {
                self.l1[usize::from(granule)] = if has(&self.loads, granule.into()) { LOADS } else { 0 };
            }
            for (core, lines) in Processor::ALL.into_iter().zip(&mut self.lines) {
                for line in lines.iter_mut().filter(|line| line.has(Line::HIDDEN)) {
                    line.tell(true);
                    told(What::Holds { cores: 1 << core.index(), addr: line.number() * LINE });
                }
            }
        }
    }

    /// Nothing is known any more: `told` gets what was left out and is still of importance, for
    /// each core.
    pub(crate) fn forget_all(&mut self, mut told: impl FnMut(What)) {
        self.forget(&mut told);
        self.unhide(0..L1_SIZE, true, &mut told);
        self.local.forget_all(told);
        self.forget_words();
    }

    /// Nothing is known any more of what is known for good.
    fn forget_words(&mut self) {
        self.polled = None;
        self.words.clear();
        for (page, granules) in self.loads.drain(..).enumerate() {
            for granule in members(granules) {
                let owner = &mut self.l1[page * PAGE as usize + granule];
                if *owner == LOADS {
                    *owner = 0;
                }
            }
        }
        self.lines.as_flattened_mut().iter_mut().for_each(|line| line.0 &= !Line::WHOLE);
    }

    /// Somebody wants to see all stores to some bytes from now on: nothing is left out there.
    /// `told` gets what was, and is still of importance.
    pub(crate) fn watch(&mut self, range: Range<u32>, mut told: impl FnMut(What)) {
        for granule in range.start / GRANULE..range.end.min(L1_SIZE).div_ceil(GRANULE) {
            let owner = &mut self.l1[granule as usize];
            if ![0, SHARED, LOADS].contains(owner) {
                *owner = SHARED;
                let start = granule * GRANULE;
                self.unhide(start..start + GRANULE, true, &mut told);
            }
        }
    }

    /// A program may be launched: the same value at a boundary may begin it.
    pub(crate) fn launches(&mut self) {
        self.polled = None;
    }

    /// From now on these are the boundaries; what was known up to cycle `at` is not.
    pub(crate) fn set_boundaries(&mut self, boundaries: Boundaries, at: Cycle) {
        self.boundaries = boundaries;
        self.passed = at;
        self.forget_words();
        // Now, and not while programs run.
        self.words.reserve(SOME_WORD_PAGES);
    }

    /// From now on this is not judged; on a tile that is `overlooked` no code is.
    pub(crate) fn set_unjudged(&mut self, unjudged: &Unjudged, overlooked: bool) {
        let code = if overlooked { 0..u32::MAX } else { unjudged.code.clone() };
        self.local.set_unjudged(code, unjudged.stacks);
        self.polls = unjudged.polled.clone();
    }

    /// Takes what an observer knows. Granules of which `is_watched` are not left out.
    pub(crate) fn know(&mut self, known: &Known, is_watched: impl Fn(u32) -> bool) {
        let (core, page) = (known.core.index(), known.page as usize);
        let is_for_good = matches!(known.of, KnownOf::Words | KnownOf::Loads);
        if !is_for_good && known.since <= self.passed {
            return;
        }
        match known.of {
            KnownOf::Words => add(&mut self.words, WORD_PAGES, known.page, known.granules),
            KnownOf::Loads => self.know_loads(known.page, known.granules),
            KnownOf::By(_) if known.granules == 0 => {}
            KnownOf::By(pc) => {
                self.have_loaders |= 1 << core;
                self.loaders[core][KnownOf::loader(pc)] = (pc, known.page * PAGE + known.granules.trailing_zeros());
            }
            KnownOf::Local => self.local.know(known.core, page, known.granules),
            KnownOf::L1 | KnownOf::Arriving => self.know_l1(known, is_watched),
        }
    }

    fn know_loads(&mut self, page: u32, granules: u64) {
        add(&mut self.loads, GRANULES / PAGE as usize, page, granules);
        for granule in members(granules) {
            // Where a core's own accesses are known, these are.
            if let Some(owner @ 0) = self.l1.get_mut((page * PAGE) as usize + granule) {
                *owner = LOADS;
            }
        }
    }

    fn know_l1(&mut self, known: &Known, is_watched: impl Fn(u32) -> bool) {
        let (core, arriving) = (known.core.index(), if known.of == KnownOf::Arriving { ARRIVING } else { 0 });
        self.awaits |= arriving != 0;
        let Self { l1, marked, lines, .. } = self;
        // Those of which another core holds a line.
        let others = lines.iter().enumerate().filter(|(other, _)| *other != core).flat_map(|(_, lines)| lines);
        let held = others.fold(0, |all, line| {
            let granule = line.number() / (GRANULE / LINE);
            all | u64::from(granule / PAGE == known.page) << (granule % PAGE)
        });
        for granule in members(known.granules & !held) {
            let granule = known.page * PAGE + granule as u32;
            match l1.get_mut(granule as usize) {
                Some(owner) if matches!(*owner, 0 | LOADS) && !is_watched(granule * GRANULE) => {
                    *owner = mark(known.core) | arriving;
                    // There are fewer granules than that.
                    marked.push(granule as u16);
                }
                Some(owner) if arriving == 0 && *owner == mark(known.core) | ARRIVING => *owner = mark(known.core),
                _ => {}
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

#[cfg(test)]
#[path = "filter_tests.rs"]
mod tests;
