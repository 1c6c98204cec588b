//! Bits of granules or words of L1, by pages of 64 of them, as far as there are any; and where
//! programs begin and end.

use std::ops::Range;
use std::sync::Arc;
use tilework_abi::tensix::L1_SIZE;

/// Granules or words of a page.
pub(super) const PAGE: u32 = 64;
/// Bytes of a word, and pages of words in L1.
pub(super) const WORD: u32 = 4;
pub(super) const WORD_PAGES: usize = (L1_SIZE / WORD / PAGE) as usize;
/// As many as mostly have some: the lowest 128 KiB, below the space of buffers.
pub(super) const SOME_WORD_PAGES: usize = 512;

/// Whether the bit of a granule is set, of those of all pages as far as there are any.
#[inline(always)]
pub(super) fn has(all: &[u64], granule: u32) -> bool {
    all.get((granule / PAGE) as usize).is_some_and(|bits| bits >> (granule % PAGE) & 1 != 0)
}

/// Sets bits of a page among those of all pages, of which there may be so many.
pub(super) fn add(all: &mut Vec<u64>, pages: usize, page: u32, bits: u64) {
    let page = page as usize;
    if page < pages {
        all.resize(all.len().max(page + 1), 0);
        all[page] |= bits;
    }
}

/// Where programs begin and end, the same on all tiles of a chip.
#[derive(Clone, Debug, Default)]
pub(crate) struct Boundaries(Arc<(Vec<Range<u32>>, Vec<u64>)>);

impl From<&[Range<u32>]> for Boundaries {
    fn from(ranges: &[Range<u32>]) -> Self {
        // The words in which there are any, by pages.
        let mut words = Vec::new();
        for word in ranges.iter().flat_map(|range| range.start / WORD..range.end.min(L1_SIZE).div_ceil(WORD)) {
            add(&mut words, WORD_PAGES, word / PAGE, 1 << (word % PAGE));
        }
        Self(Arc::new((ranges.to_vec(), words)))
    }
}

impl Boundaries {
    #[inline]
    pub(super) fn has(&self, addr: u32) -> bool {
        let (ranges, words) = &*self.0;
        has(words, addr / WORD) && ranges.iter().any(|range| range.contains(&addr))
    }
}
