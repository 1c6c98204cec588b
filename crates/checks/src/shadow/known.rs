//! What the chip need not tell any more: accesses by which nothing is found and nothing changes.
//!
//! An access of a core to L1 is such a one until the program ends on its tile if
//!
//! - the kernel owns the bytes, which does not change while its program runs: later programs and
//!   buffers are others' (`Tile::switch` is only called at an access to one of
//!   `CheckObserver::boundaries`);
//! - no circuit of reserving and pushing goes over them: they are in no circular buffer;
//! - all of them have been written, which is only forgotten when nothing runs.
//!
//! Kernels of the command queue are no kernels of a program: of their tiles' L1 nothing is asked
//! but that what they read has been written. Loads of a kernel from the bank table are right
//! wherever it has been written.
//!
//! Copies in data caches are the chip's part ([`tilework_sim::What::Holds`]). In local RAM all of
//! the word must have been written, and it must be so far from the limit of the stack that no
//! stack pointer from which it is reached can be below that.
//!
//! A check that wants to see more accesses than that must leave its memory out here.

use super::cbs::Cb;
use super::observer::{CheckObserver, Span};
use super::tile::{CoreState, Tile};
use super::written::{PAGE, Shadow, WORD, WORDS, Written};
use std::ops::Range;
use tilework_abi::l1::{LAUNCH_ENTRIES, MemoryMap, bank_table};
use tilework_abi::msg::LAUNCH_MSG_BYTES;
use tilework_abi::tensix::{L1_SIZE, Processor};
use tilework_sim::{Cycle, Known, KnownOf};

/// Pages that are told of at once, from that of the access on: a core that goes through its memory
/// is to find the next ones known.
const AHEAD: u64 = 16;

/// The largest offset of a load or a store.
pub(super) const LARGEST_OFFSET: u32 = 2047;

/// Accesses after which the same memory is told of again: what was told takes its time, and some of
/// the granules may have been written since. In L1 that is mostly so soon.
const AGAIN: u32 = 64;
const AGAIN_L1: u32 = 16;

/// What was last told of a core's memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pages: Range<u64>,
    /// The granules of each of these pages, with those of which nothing will ever be told.
    granules: [u64; AHEAD as usize],
    /// Accesses since.
    seen: u32,
}

impl Told {
    /// Whether memory around `offset`, which is accessed, has to be told of.
    #[inline]
    pub(super) fn is_due(&mut self, offset: u64, again: u32) -> bool {
        self.seen += 1;
        self.seen >= again || !self.pages.contains(&(offset / PAGE))
    }

    /// Whether there may be something to tell of the granule at `offset` before it is accessed:
    /// nothing was told yet, or this granule was not among what was.
    #[inline]
    fn lacks(&self, offset: u64) -> bool {
        let page = (offset / PAGE).checked_sub(self.pages.start).and_then(|page| self.granules.get(page as usize));
        match page {
            Some(granules) => granules >> (offset % PAGE / WORD) & 1 == 0,
            None => self.pages.is_empty(),
        }
    }

    fn tells(&mut self, pages: Range<u64>) {
        *self = Self { pages, granules: [0; AHEAD as usize], seen: 0 };
    }
}

/// Behind the words that firmware polls, in the first page of L1 ([`KnownOf::Words`]).
const WORDS_END: u64 = PAGE;

/// What was told of the words that firmware polls.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToldWords {
    words: [u64; (WORDS_END / 256) as usize],
    /// Loads since, from words of which was told.
    seen: u32,
}

impl CheckObserver {
    /// A core has loaded from the first bytes of L1: tells of which words loads are right there.
    /// The rest of a launch, of buffers and of arguments lies behind them; what BRISC finds at
    /// boundaries is the chip's part.
    #[inline]
    pub(super) fn may_know_words(&mut self, tile: &mut Tile, core: Processor, addr: u32, at: Cycle) {
        if u64::from(addr) < WORDS_END && self.is_asked {
            let told = &mut tile.told_words;
            let is_told = told.words[addr as usize / 256] >> (addr / 4 % 64) & 1 != 0;
            told.seen += u32::from(is_told);
            if !is_told || told.seen >= AGAIN {
                self.know_words(tile, core, at);
            }
        }
    }

    #[cold]
    fn know_words(&mut self, tile: &mut Tile, core: Processor, since: Cycle) {
        let Some(map) = self.firmware.as_ref().map(|firmware| firmware.map) else { return };
        let Some(written) = tile.l1.page(0) else { return };
        // Behind the first word: it is where pointers that are zero lead.
        let end = map.kernel_config.get().min(map.text_cache.get()).min(map.data.get()).min(map.bank_table.get());
        let mut words = [0; (WORDS_END / 256) as usize];
        for (word, bytes) in words.iter_mut().zip(written.chunks(4)) {
            *word = bytes.iter().rev().fold(0, |all, word| all << 16 | whole_words(*word));
        }
        words[0] &= !1;
        for (page, word) in (0..).zip(&mut words) {
            *word &= ones((u64::from(end) / 4).saturating_sub(64 * page));
        }
        tile.told_words = ToldWords { words, seen: 0 };
        for (page, granules) in (0..).zip(words) {
            self.tell(Known { tile: tile.xy, core, since, of: KnownOf::Words, page, granules });
        }
    }

    /// A core has accessed L1: tells what is known there, if it is time to.
    #[inline]
    pub(super) fn may_know_l1(&mut self, tile: &mut Tile, core: Processor, span: Span, at: Cycle) {
        let state = &mut tile.cores[core.index()];
        if self.is_asked && (tile.is_queue || state.owns(span)) && state.told[0].is_due(span.addr.into(), AGAIN_L1) {
            self.know_l1(tile, core, at, span.addr);
        }
    }

    /// Something has arrived in L1: tells the core that owns the bytes, which will mostly use them
    /// soon.
    #[inline]
    pub(super) fn may_know_arrived(&mut self, tile: &mut Tile, span: Span, at: Cycle) {
        let owns = |state: &CoreState| state.owns(span) && state.told[0].lacks(span.addr.into());
        if self.is_asked
            && u64::from(span.len) >= WORD
            && let Some(core) = Processor::ALL.into_iter().find(|core| owns(&tile.cores[core.index()]))
        {
            self.know_l1(tile, core, at, span.addr);
        }
    }

    /// A core has loaded from L1 what is not its own, likewise.
    #[inline]
    pub(super) fn may_know_table(&mut self, tile: &mut Tile, core: Processor, span: Span, at: Cycle) {
        let Some(firmware) = self.firmware.as_ref().filter(|_| self.is_asked) else { return };
        let start = firmware.map.bank_table.get();
        let is_there = span.addr.wrapping_sub(start) < bank_table::BYTES && tile.launch.is_some();
        if is_there && tile.cores[core.index()].told[2].is_due(span.addr.into(), AGAIN) {
            self.know_table(tile, core, at, u64::from(start)..u64::from(start + bank_table::BYTES));
        }
    }

    /// A core has accessed its local RAM, likewise.
    #[inline]
    pub(super) fn may_know_local(&mut self, tile: &mut Tile, core: Processor, offset: u64, at: Cycle) {
        if self.is_asked && tile.cores[core.index()].told[1].is_due(offset, AGAIN) {
            self.know_local(tile, core, at, offset);
        }
    }

    #[cold]
    fn know_l1(&mut self, tile: &mut Tile, core: Processor, since: Cycle, addr: u32) {
        // What begins and ends programs is always seen.
        let behind =
            |map: &MemoryMap| map.go_index.get().max(map.launch.get() + LAUNCH_ENTRIES * LAUNCH_MSG_BYTES as u32);
        let behind_boundaries = self.firmware.as_ref().map_or(L1_SIZE, |firmware| behind(&firmware.map));
        let Tile { xy, l1, cores, cbs, is_queue, .. } = tile;
        let state = &mut cores[core.index()];
        let owned = match is_queue {
            true => u64::from(behind_boundaries)..u64::from(L1_SIZE),
            false => u64::from(state.owned.start)..u64::from(state.owned.end),
        };
        let first = u64::from(addr) / PAGE;
        let pages = first..owned.end.div_ceil(PAGE).min(first + AHEAD);
        state.told[0].tells(pages.clone());
        for page in pages {
            let circular = cbs.iter().fold(0, |all, cb| all | touched(page, &bytes_of(cb)));
            let granules = written(l1, page) & within(page, &owned) & !circular;
            // There are at most `AHEAD` of them.
            state.told[0].granules[(page - first) as usize] = granules | circular;
            self.tell(Known { tile: *xy, core, since, of: KnownOf::L1, page: page as u32, granules });
        }
    }

    #[cold]
    fn know_table(&mut self, tile: &mut Tile, core: Processor, since: Cycle, table: Range<u64>) {
        let pages = table.start / PAGE..table.end.div_ceil(PAGE);
        for page in pages.clone() {
            let granules = written(&tile.l1, page) & within(page, &table);
            self.tell(Known { tile: tile.xy, core, since, of: KnownOf::L1Loads, page: page as u32, granules });
        }
        tile.cores[core.index()].told[2].tells(pages);
    }

    #[cold]
    fn know_local(&mut self, tile: &mut Tile, core: Processor, since: Cycle, offset: u64) {
        let Some(firmware) = &self.firmware else { return };
        let lowest = tile.stack_limit(core, firmware).saturating_add(LARGEST_OFFSET + 1);
        let state = &mut tile.cores[core.index()];
        let lowest = CoreState::local_offset(lowest).div_ceil(4);
        let around = offset / PAGE;
        state.told[1].tells(around..around + 1);
        let pages = WORDS as u64 / 4;
        let words = state.local.page(around).map_or([0; WORDS], |words| *words);
        for (page, words) in (around * pages..).zip(words.chunks(4)) {
            let granules = words.iter().rev().fold(0, |all, word| all << 16 | whole_words(*word));
            let granules = granules & !ones(lowest.saturating_sub(page * 64));
            self.tell(Known { tile: tile.xy, core, since, of: KnownOf::Local, page: page as u32, granules });
        }
    }

    fn tell(&mut self, known: Known) {
        if known.granules != 0 {
            self.known.push(known);
        }
    }
}

fn bytes_of(cb: &Cb) -> Range<u64> {
    let (start, size) = (u64::from(cb.note.address), u64::from(cb.note.page_size));
    start..start + size * u64::from(cb.note.pages)
}

/// The granules of a page of which every byte has been written.
fn written(memory: &Written, page: u64) -> u64 {
    let words = memory.page(page).map_or(&[0; 64][..], |words| &words[..]);
    words.iter().enumerate().fold(0, |all, (at, word)| all | u64::from(*word == u64::MAX) << at)
}

/// Of 64 bytes the words of which every byte has been written.
fn whole_words(bytes: u64) -> u64 {
    let pairs = bytes & bytes >> 1;
    // The lowest bit of each four, then these bits next to each other.
    let words = pairs & pairs >> 2 & 0x1111_1111_1111_1111;
    let words = (words | words >> 3) & 0x0303_0303_0303_0303;
    let words = (words | words >> 6) & 0x000F_000F_000F_000F;
    let words = (words | words >> 12) & 0x0000_00FF_0000_00FF;
    (words | words >> 24) & 0xFFFF
}

/// The granules of a page that lie in a range.
fn within(page: u64, range: &Range<u64>) -> u64 {
    let granules = |at: u64| at.saturating_sub(page * PAGE).min(PAGE);
    let (from, to) = (granules(range.start).div_ceil(WORD), granules(range.end) / WORD);
    ones(to) & !ones(from)
}

/// The granules of a page that a range touches.
fn touched(page: u64, range: &Range<u64>) -> u64 {
    let granules = |at: u64| at.saturating_sub(page * PAGE).min(PAGE);
    let (from, to) = (granules(range.start) / WORD, granules(range.end).div_ceil(WORD));
    ones(to) & !ones(from)
}

/// So many ones, at most 64.
const fn ones(count: u64) -> u64 {
    if count >= 64 { u64::MAX } else { (1 << count) - 1 }
}

#[cfg(test)]
mod tests {
    use super::whole_words;
    use tilework_rng::SplitMix64;

    #[test]
    fn words_are_whole_if_each_byte_is_written() {
        let mut random = SplitMix64::new(3);
        for _ in 0..1000 {
            let bytes = random.bits() | random.bits() | random.bits();
            let words = (0..16).fold(0, |all, word| all | u64::from(bytes >> (4 * word) & 0xF == 0xF) << word);
            assert_eq!(whole_words(bytes), words, "{bytes:#x}");
        }
        assert_eq!((whole_words(u64::MAX), whole_words(0)), (0xFFFF, 0));
    }
}
