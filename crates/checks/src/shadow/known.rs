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
use tilework_abi::tensix::Processor;
use tilework_sim::{Cycle, Known};

/// Pages that are told of at once, from that of the access on: a core that goes through its memory
/// is to find the next ones known.
const AHEAD: u64 = 16;

/// The largest offset of a load or a store.
const LARGEST_OFFSET: u32 = 2047;

/// Accesses after which the same memory is told of again: what was told takes its time, and some of
/// the granules may have been written since.
const AGAIN: u32 = 64;

/// What was last told of a core's memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    pages: Range<u64>,
    /// Accesses since.
    seen: u32,
}

impl Told {
    /// Whether memory around `offset`, which is accessed, has to be told of.
    #[inline]
    pub(super) fn is_due(&mut self, offset: u64) -> bool {
        self.seen += 1;
        self.seen >= AGAIN || !self.pages.contains(&(offset / PAGE))
    }

    fn tells(&mut self, pages: Range<u64>) {
        *self = Self { pages, seen: 0 };
    }
}

impl CheckObserver {
    /// A core has accessed L1: tells what is known there, if it is time to.
    #[inline]
    pub(super) fn may_know_l1(&mut self, tile: &mut Tile, core: Processor, span: Span, at: Cycle) {
        let state = &mut tile.cores[core.index()];
        if self.is_asked && state.owns(span) && state.told[0].is_due(span.addr.into()) {
            self.know_l1(tile, core, at, span.addr);
        }
    }

    /// A core has accessed its local RAM, likewise.
    #[inline]
    pub(super) fn may_know_local(&mut self, tile: &mut Tile, core: Processor, offset: u64, at: Cycle) {
        if self.is_asked && tile.cores[core.index()].told[1].is_due(offset) {
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
        for page in pages.clone() {
            let circular = cbs.iter().fold(0, |all, cb| all | touched(page, &bytes_of(cb)));
            let granules = written(l1, page) & within(page, &owned) & !circular;
            self.tell(Known { tile: *xy, core, since, local: false, page: page as u32, granules });
        }
        state.told[0].tells(pages);
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
            self.tell(Known { tile: tile.xy, core, since, local: true, page: page as u32, granules });
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
    (0..16).fold(0, |all, word| all | u64::from(bytes >> (4 * word) & 0xF == 0xF) << word)
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
