//! The accesses of a tile's cores to their own local RAM that are left out, because they are known
//! or because code that is not judged makes them ([`Unjudged`](super::Unjudged)).

use super::What;
use std::ops::Range;
use tilework_abi::tensix::{LOCAL_BASE, LOCAL_SIZE_DM, Processor};

/// Bytes of a granule, of which little is used, 64 of which are a page, and pages of the largest
/// local RAM.
const WORD: u32 = 4;
const PAGE: u32 = 64;
const PAGES: usize = (LOCAL_SIZE_DM / WORD / PAGE) as usize;

/// Words of each core's local RAM, a bit each.
type Words = [[u64; PAGES]; 5];

#[derive(Clone, Debug)]
pub(crate) struct Local {
    known: Words,
    has_known: bool,
    /// The words that each core has stored by code that is not judged, and those of them that the
    /// observer has not been told of.
    stored: Words,
    untold: Words,
    /// Whether there are any of those.
    is_untold: [bool; 5],
    /// The code that is not judged, and from where on accesses are right for each core.
    unjudged: Range<u32>,
    stacks: [u32; 5],
}

/// The page and the bit of an address.
#[inline(always)]
const fn word_at(addr: u32) -> (usize, u64) {
    let word = addr.wrapping_sub(LOCAL_BASE) / WORD;
    ((word / PAGE) as usize, 1 << (word % PAGE))
}

impl Local {
    /// Leaves out nothing.
    pub(super) fn new() -> Self {
        Self {
            known: [[0; PAGES]; 5],
            has_known: false,
            stored: [[0; PAGES]; 5],
            untold: [[0; PAGES]; 5],
            is_untold: [false; 5],
            unjudged: 0..0,
            stacks: [u32::MAX; 5],
        }
    }

    /// From now on this code is not judged, and these accesses are right.
    pub(super) fn set_unjudged(&mut self, code: Range<u32>, stacks: [u32; 5]) {
        (self.unjudged, self.stacks) = (code, stacks);
    }

    /// Whether an access is left out.
    #[inline(always)]
    pub(crate) fn skips(&self, core: Processor, addr: u32) -> bool {
        let (page, bit) = word_at(addr);
        self.known[core as usize].get(page).is_some_and(|words| words & bit != 0)
    }

    /// Whether a load is left out at once: most are known, or not judged.
    #[inline(always)]
    pub(crate) fn skips_load(&self, core: Processor, pc: u32, addr: u32) -> bool {
        self.skips(core, addr) || self.unjudged.contains(&pc)
    }

    /// Whether a load is not judged, or is right in any case.
    pub(crate) fn overlooks(&mut self, core: Processor, pc: u32, addr: u32) -> bool {
        let (page, bit) = word_at(addr);
        let is_stored = self.stored[core as usize].get(page).is_some_and(|stored| stored & bit != 0);
        if is_stored && addr >= self.stacks[core as usize] {
            self.know(core, page, bit);
            return true;
        }
        self.unjudged.contains(&pc)
    }

    /// Keeps a store by code that is not judged, or where it is right in any case; false if it has
    /// to be told by itself.
    pub(crate) fn keeps(&mut self, core: Processor, pc: u32, addr: u32, bytes: u8) -> bool {
        let is_right = addr >= self.stacks[core as usize];
        if !is_right && !self.unjudged.contains(&pc) {
            return false;
        }
        let (page, bit) = word_at(addr);
        let Some(stored) = self.stored[core as usize].get_mut(page) else { return false };
        if *stored & bit == 0 {
            if u32::from(bytes) < WORD {
                return false;
            }
            *stored |= bit;
            self.untold[core as usize][page] |= bit;
            self.is_untold[core as usize] = true;
        }
        if is_right {
            self.know(core, page, bit);
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

    /// These words of a page are known.
    pub(super) fn know(&mut self, core: Processor, page: usize, words: u64) {
        if let Some(known) = self.known[core as usize].get_mut(page) {
            *known |= words;
            self.has_known = true;
        }
    }

    /// Nothing is known any more of what ends at a boundary.
    pub(super) fn forget(&mut self) {
        if std::mem::take(&mut self.has_known) {
            self.known = [[0; PAGES]; 5];
        }
    }

    /// Nothing is known any more: `told` gets what was kept, for each core.
    pub(super) fn forget_all(&mut self, mut told: impl FnMut(What)) {
        self.forget();
        Processor::ALL.into_iter().for_each(|core| self.tell_kept(core, &mut told));
        self.stored = [[0; PAGES]; 5];
    }
}
