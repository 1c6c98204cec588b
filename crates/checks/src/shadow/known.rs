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
//! Of memory that has not been written the first two are told, too: it is known when it arrives.
//!
//! Kernels of the command queue are no kernels of a program: of their tiles' L1 nothing is asked
//! but that what they read has been written. Below the space of buffers loads are right wherever it
//! has been written, except by kernels from the configuration of their launch. There they are right
//! where the same instruction has been right before, and so they are in buffers that have less than
//! the 64 bytes of which the chip is told otherwise.
//!
//! Copies in data caches are the chip's part ([`tilework_sim::What::Holds`]). In local RAM all of
//! the word must have been written, and it must be so far from the limit of the stack that no
//! stack pointer from which it is reached can be below that.
//!
//! A check that wants to see more accesses than that must leave its memory out here.

use super::cbs::Cb;
use super::observer::{CheckObserver, Span};
use super::tile::{CoreState, Tile};
use super::written::{PAGE, Shadow, WORD, WORDS, Written, ones};
use std::ops::Range;
use tilework_abi::l1::{LAUNCH_ENTRIES, MemoryMap};
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

/// Bytes of a page of words.
const WORD_PAGE: u32 = 256;

/// What was last told of a core's memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pages: Range<u64>,
    /// The granules of each of these pages that are known, with those of which nothing will ever be
    /// told, and those that will be known when they arrive.
    granules: [(u64, u64); AHEAD as usize],
    /// Accesses since.
    seen: u32,
}

/// What was told of granules of L1 for good, by pages.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToldPages {
    pages: Vec<u64>,
    /// Accesses since, to those of which was told.
    seen: u32,
}

impl ToldPages {
    /// Whether the granule at `addr`, which is accessed, has to be told of: all of it has been
    /// written, but was not told of, or too long ago.
    #[inline]
    fn is_due(&mut self, memory: &Written, addr: u64) -> bool {
        if !self.has(addr) {
            return memory.page(addr / PAGE).is_some_and(|words| words[(addr % PAGE / WORD) as usize] == u64::MAX);
        }
        self.seen += 1;
        self.seen >= AGAIN
    }

    fn has(&self, addr: u64) -> bool {
        self.pages.get((addr / PAGE) as usize).is_some_and(|granules| granules >> (addr % PAGE / WORD) & 1 != 0)
    }

    /// Whether some of these granules were not told of.
    fn lacks(&self, page: u64, granules: u64) -> bool {
        granules & !self.pages.get(page as usize).copied().unwrap_or(0) != 0
    }

    /// Of these granules was told, or never will be.
    fn tells(&mut self, page: u64, granules: u64) {
        // L1 is small.
        self.pages.resize(self.pages.len().max(page as usize + 1), 0);
        (self.pages[page as usize], self.seen) = (granules, 0);
    }
}

/// The words of the configuration, or of a small buffer, that instructions of a core have loaded.
#[derive(Clone, Debug)]
pub(crate) struct Loaders {
    /// Each with the loads since it was told.
    told: [(u32, u32, u32); KnownOf::LOADERS],
    has_told: bool,
}

impl Default for Loaders {
    fn default() -> Self {
        Self { told: [(u32::MAX, 0, 0); KnownOf::LOADERS], has_told: false }
    }
}

impl Loaders {
    /// Whether it has to be told that the instruction at `pc` loads this word: at once if it
    /// `repeats` that, otherwise when it has done so twice.
    fn is_due(&mut self, pc: u32, word: u32, repeats: bool) -> bool {
        let (of, loads, seen) = &mut self.told[KnownOf::loader(pc)];
        let is_same = (*of, *loads) == (pc, word);
        let is_due = if is_same { *seen + 1 >= AGAIN_L1 } else { repeats };
        let loaded = match (is_due, is_same) {
            (true, _) => 0,
            (false, true) => *seen + 1,
            // With the next one it is due.
            (false, false) => AGAIN_L1 - 1,
        };
        (*of, *loads, *seen, self.has_told) = (pc, word, loaded, true);
        is_due
    }

    /// Another program begins.
    pub(super) fn forget(&mut self) {
        if self.has_told {
            *self = Self::default();
        }
    }
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
            Some((known, arriving)) => (known | arriving) >> (offset % PAGE / WORD) & 1 == 0,
            None => self.pages.is_empty(),
        }
    }

    /// Another program begins.
    pub(super) fn forget(&mut self) {
        (self.pages, self.seen) = (0..0, 0);
    }

    fn tells(&mut self, pages: Range<u64>) {
        *self = Self { pages, granules: [(0, 0); AHEAD as usize], seen: 0 };
    }

    /// What was told of a page.
    fn at(&self, page: u64) -> Option<(u64, u64)> {
        let at = page.checked_sub(self.pages.start).filter(|_| self.pages.contains(&page))?;
        self.granules.get(at as usize).copied()
    }
}

/// Behind the words that firmware polls, in the first page of L1.
const POLLED_END: u32 = PAGE as u32;

/// What was told of words of L1 for good, by pages of words.
#[derive(Clone, Debug, Default)]
pub(crate) struct ToldWords {
    words: Vec<u64>,
    /// Loads since, from words of which was told.
    seen: u32,
}

impl ToldWords {
    /// With room for the words of so many bytes.
    pub(crate) fn of_bytes(bytes: u32) -> Self {
        Self { words: vec![0; bytes.div_ceil(WORD_PAGE) as usize], seen: 0 }
    }

    /// Whether the word at `addr`, which is loaded, has to be told of.
    #[inline]
    fn is_due(&mut self, memory: &Written, addr: u32) -> bool {
        let words = self.words.get((addr / WORD_PAGE) as usize).copied().unwrap_or(0);
        if words >> (addr / 4 % 64) & 1 == 0 {
            return is_whole_word(memory, addr);
        }
        self.seen += 1;
        self.seen >= AGAIN
    }

    /// Whether some of these words were not told of.
    fn lacks(&self, page: u32, words: u64) -> bool {
        words & !self.words.get(page as usize).copied().unwrap_or(0) != 0
    }

    /// Of these words was told, or never will be.
    fn tells(&mut self, page: u32, words: u64) {
        // L1 is small.
        self.words.resize(self.words.len().max(page as usize + 1), 0);
        (self.words[page as usize], self.seen) = (words, 0);
    }
}

impl CheckObserver {
    /// A kernel has accessed L1, with a load by the instruction at `loader`: tells what is known
    /// there, if it is time to.
    #[inline]
    pub(super) fn may_know_l1(&mut self, tile: &mut Tile, core: Processor, span: Span, loader: Option<u32>, at: Cycle) {
        let state = &mut tile.cores[core.index()];
        if !self.is_asked || !state.owns(span) {
            return;
        }
        if u64::from(state.owned.end - state.owned.start) < WORD {
            // Smaller than a granule.
            if let Some(pc) = loader {
                self.may_know_owned_word(tile, core, (pc, span.addr), at);
            }
        } else if state.told[0].is_due(span.addr.into(), AGAIN_L1) {
            self.know_l1(tile, core, at, span.addr);
        }
    }

    /// A kernel has loaded a word of a buffer that is smaller than a granule.
    fn may_know_owned_word(&mut self, tile: &mut Tile, core: Processor, (pc, addr): (u32, u32), at: Cycle) {
        let word = Span { addr: addr / 4 * 4, len: 4 };
        let is_circular = tile.cbs.iter().any(|cb| cb.has(word.addr) || cb.has(word.addr + 3));
        if !is_circular && tile.cores[core.index()].owns(word) {
            self.may_know_loader(tile, core, (pc, addr, true), at);
        }
    }

    /// A kernel has started a request by which something will arrive in L1, that it will mostly use
    /// then, or something has arrived.
    #[inline]
    pub(super) fn may_know_arriving(&mut self, tile: &mut Tile, core: Option<Processor>, span: Span, at: Cycle) {
        let owns = |state: &CoreState| state.owns(span) && state.told[0].lacks(span.addr.into());
        let is_asked = self.is_asked && u64::from(span.len) >= WORD;
        let core = core.as_ref().map_or(&Processor::ALL[..], std::slice::from_ref);
        if is_asked && let Some(&core) = core.iter().find(|core| owns(&tile.cores[core.index()])) {
            self.know_l1(tile, core, at, span.addr);
        }
    }

    /// A core has loaded from L1 what is in no buffer: tells of which words or granules loads are
    /// right there. What BRISC finds at boundaries, in the first bytes, is the chip's part.
    #[inline]
    pub(super) fn may_know_loads(&mut self, tile: &mut Tile, core: Processor, addr: u32, at: Cycle) {
        let Some(map) = self.firmware.as_ref().filter(|_| self.is_asked).map(|firmware| &firmware.map) else { return };
        if !tile.is_queue && addr >= map.data.get() {
            return;
        }
        if addr >= POLLED_END && tile.told_loads.is_due(&tile.l1, addr.into()) {
            self.know_loads(tile, core, at, addr);
        } else if !tile.told_loads.has(addr.into()) && tile.told_words.is_due(&tile.l1, addr) {
            // Of what was written otherwise single words.
            self.know_words(tile, core, at, addr);
        }
    }

    /// Something of the host or of a command queue has arrived in L1 below the space of buffers: a
    /// launch, kernels. Cores will load it, and that is told before they do.
    #[inline]
    pub(super) fn may_know_arrived(&mut self, tile: &mut Tile, span: Span, at: Cycle) {
        let is_below = |map: &MemoryMap| span.addr < map.data.get();
        if self.is_asked && !tile.is_queue && self.firmware.as_ref().is_some_and(|firmware| is_below(&firmware.map)) {
            self.know_arrived(tile, span, at);
        }
    }

    fn know_arrived(&mut self, tile: &mut Tile, span: Span, at: Cycle) {
        let range = span.addr..span.addr.saturating_add(span.len).min(L1_SIZE);
        for page in range.start / WORD_PAGE..range.end.min(POLLED_END).div_ceil(WORD_PAGE) {
            if tile.told_words.lacks(page, within_words(page, &range)) {
                self.know_words(tile, Processor::Brisc, at, page * WORD_PAGE);
            }
        }
        let wide = u64::from(range.start)..u64::from(range.end);
        for page in wide.start.max(PAGE) / PAGE..wide.end.div_ceil(PAGE) {
            if tile.told_loads.lacks(page, within(page, &wide)) {
                self.know_loads(tile, Processor::Brisc, at, (page * PAGE) as u32);
            }
        }
    }

    /// A core of the command queue has stored to L1.
    #[inline]
    pub(super) fn may_know_stores(&mut self, tile: &mut Tile, core: Processor, addr: u32, at: Cycle) {
        if self.is_asked && tile.is_queue {
            let Tile { cores, l1, .. } = tile;
            if cores[core.index()].told_stores.is_due(l1, addr.into()) {
                self.know_stores(tile, core, at, addr);
            }
        }
    }

    /// A kernel has loaded a word of its launch's configuration, or of a buffer, which is right.
    /// Most kernels load each argument once, and it is told only if the same instruction loads the
    /// word again, unless that is likely: it `repeats`.
    #[inline]
    pub(super) fn may_know_loader(&mut self, tile: &mut Tile, core: Processor, load: (u32, u32, bool), at: Cycle) {
        let (pc, addr, repeats) = load;
        let loaders = &mut tile.cores[core.index()].loaders;
        if self.is_asked && is_whole_word(&tile.l1, addr) && loaders.is_due(pc, addr / 4, repeats) {
            let (page, granules) = (addr / WORD_PAGE, 1 << (addr / 4 % 64));
            self.tell(Known { tile: tile.xy, core, since: at, of: KnownOf::By(pc), page, granules });
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
        let Tile { xy, l1, cores, cbs, .. } = tile;
        let state = &mut cores[core.index()];
        let owned = u64::from(state.owned.start)..u64::from(state.owned.end);
        let first = u64::from(addr) / PAGE;
        let pages = first..owned.end.div_ceil(PAGE).min(first + AHEAD);
        let before = state.told[0].clone();
        state.told[0].tells(pages.clone());
        for page in pages {
            let circular = cbs.iter().fold(0, |all, cb| all | touched(page, &bytes_of(cb)));
            let own = within(page, &owned) & !circular;
            let known = written(l1, page) & own;
            let told = (known | circular, own & !known);
            // There are at most `AHEAD` of them.
            state.told[0].granules[(page - first) as usize] = told;
            if page == first || before.at(page) != Some(told) {
                let of = |of, granules| Known { tile: *xy, core, since, of, page: page as u32, granules };
                self.tell(of(KnownOf::L1, known));
                self.tell(of(KnownOf::Arriving, own & !known));
            }
        }
    }

    /// What begins and ends programs is always seen: behind that of which nothing is known.
    fn behind_boundaries(&self) -> u32 {
        let behind =
            |map: &MemoryMap| map.go_index.get().max(map.launch.get() + LAUNCH_ENTRIES * LAUNCH_MSG_BYTES as u32);
        self.firmware.as_ref().map_or(L1_SIZE, |firmware| behind(&firmware.map))
    }

    /// Where loads are right wherever it has been written, but for a part of it.
    fn unowned(&self, tile: &Tile) -> Option<(Range<u32>, Range<u32>)> {
        let map = self.firmware.as_ref().map(|firmware| firmware.map)?;
        let (from, config) = (self.behind_boundaries().max(POLLED_END), map.kernel_config.get());
        Some(match tile.is_queue {
            true => (from..L1_SIZE, 0..0),
            false => (from..map.data.get(), config..config + map.kernel_config_size),
        })
    }

    #[cold]
    fn know_loads(&mut self, tile: &mut Tile, core: Processor, since: Cycle, addr: u32) {
        let Some((range, but)) = self.unowned(tile) else { return };
        let wide = |range: Range<u32>| u64::from(range.start)..u64::from(range.end);
        let page = u64::from(addr) / PAGE;
        let own = within(page, &wide(range)) & !touched(page, &wide(but));
        let granules = written(&tile.l1, page) & own;
        tile.told_loads.tells(page, granules | !own);
        self.tell(Known { tile: tile.xy, core, since, of: KnownOf::Loads, page: page as u32, granules });
    }

    #[cold]
    fn know_words(&mut self, tile: &mut Tile, core: Processor, since: Cycle, addr: u32) {
        let Some(firmware) = &self.firmware else { return };
        let MemoryMap { kernel_config, text_cache, data, bank_table, .. } = firmware.map;
        let (range, but) = match addr < POLLED_END {
            // Behind the first word: it is where pointers that are zero lead.
            true => (4..kernel_config.get().min(text_cache.get()).min(data.get()).min(bank_table.get()), 0..0),
            false => match self.unowned(tile) {
                Some(ranges) => ranges,
                None => return,
            },
        };
        let page = addr / WORD_PAGE;
        let own = within_words(page, &range) & !within_words(page, &but);
        let granules = words_of(&tile.l1, page) & own;
        tile.told_words.tells(page, granules | !own);
        self.tell(Known { tile: tile.xy, core, since, of: KnownOf::Words, page, granules });
    }

    #[cold]
    fn know_stores(&mut self, tile: &mut Tile, core: Processor, since: Cycle, addr: u32) {
        let page = u64::from(addr) / PAGE;
        let own = within(page, &(u64::from(self.behind_boundaries())..u64::from(L1_SIZE)));
        let granules = written(&tile.l1, page) & own;
        tile.cores[core.index()].told_stores.tells(page, granules | !own);
        self.tell(Known { tile: tile.xy, core, since, of: KnownOf::L1, page: page as u32, granules });
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
        for page in around * pages..(around + 1) * pages {
            let granules = words_of(&state.local, page as u32) & !ones(lowest.saturating_sub(page * 64));
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

/// Whether every byte of the word at `addr` has been written.
#[inline]
fn is_whole_word(memory: &Written, addr: u32) -> bool {
    let addr = u64::from(addr / 4 * 4);
    memory.page(addr / PAGE).is_some_and(|words| words[(addr % PAGE / WORD) as usize] >> (addr % WORD) & 0xF == 0xF)
}

/// The words of a page of words of which every byte has been written.
fn words_of(memory: &Written, page: u32) -> u64 {
    let page = u64::from(page * (WORD_PAGE / WORD as u32));
    let Some(words) = memory.page(page / WORDS as u64) else { return 0 };
    let bytes = &words[(page % WORDS as u64) as usize..][..(WORD_PAGE / WORD as u32) as usize];
    bytes.iter().rev().fold(0, |all, bytes| all << 16 | whole_words(*bytes))
}

/// The words of a page of words that lie in a range.
fn within_words(page: u32, range: &Range<u32>) -> u64 {
    let words = |at: u32| u64::from(at.saturating_sub(page * WORD_PAGE).min(WORD_PAGE));
    ones(words(range.end) / 4) & !ones(words(range.start).div_ceil(4))
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
