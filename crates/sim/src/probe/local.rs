//! The accesses of a tile's cores to their own local RAM that are left out, because they are known
//! or because code that is not judged makes them ([`Unjudged`](super::Unjudged)).

use super::What;
use crate::bits::members;
use std::ops::Range;
use tilework_abi::tensix::{LOCAL_BASE, LOCAL_SIZE_DM, Processor};

/// Bytes of a granule, of which little is used, 64 of which are a page, and pages of the largest
/// local RAM.
const WORD: u32 = 4;
const PAGE: u32 = 64;
const PAGES: usize = (LOCAL_SIZE_DM / WORD / PAGE) as usize;

/// Words of each core's local RAM, a bit each.
type Words = [[u64; PAGES]; 5];

/// Pages of each core's local RAM, a bit each.
type Pages = [u32; 5];
const _: () = assert!(PAGES <= u32::BITS as usize);

#[derive(Clone, Debug)]
pub(crate) struct Local {
    known: Words,
    /// The pages that have some, a bit each.
    known_pages: Pages,
    /// The words that each core has stored by code that is not judged, and those of them that the
    /// observer has not been told of.
    stored: Words,
    untold: Words,
    /// The pages that have some of those.
    untold_pages: Pages,
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
            known_pages: [0; 5],
            stored: [[0; PAGES]; 5],
            untold: [[0; PAGES]; 5],
            untold_pages: [0; 5],
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
            self.untold_pages[core as usize] |= 1 << page;
        }
        if is_right {
            self.know(core, page, bit);
        }
        true
    }

    /// Something of a core's local RAM is about to be recorded: `told` gets what was kept.
    #[inline]
    pub(crate) fn tell_kept(&mut self, core: Processor, mut told: impl FnMut(What)) {
        for page in members(std::mem::take(&mut self.untold_pages[core as usize])) {
            let words = std::mem::take(&mut self.untold[core as usize][page]);
            // There are few pages.
            told(What::Prepared { core, page: page as u8, words });
        }
    }

    /// These words of a page are known.
    pub(super) fn know(&mut self, core: Processor, page: usize, words: u64) {
        if let Some(known) = self.known[core as usize].get_mut(page) {
            *known |= words;
            self.known_pages[core as usize] |= 1 << page;
        }
    }

    /// Nothing is known any more of what ends at a boundary.
    pub(super) fn forget(&mut self) {
        for (pages, known) in self.known_pages.iter_mut().zip(&mut self.known) {
            members(std::mem::take(pages)).for_each(|page| known[page] = 0);
        }
    }

    /// Nothing is known any more: `told` gets what was kept, for each core.
    pub(super) fn forget_all(&mut self, mut told: impl FnMut(What)) {
        self.forget();
        Processor::ALL.into_iter().for_each(|core| self.tell_kept(core, &mut told));
        self.stored = [[0; PAGES]; 5];
    }
}
