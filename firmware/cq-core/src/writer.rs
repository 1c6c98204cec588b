//! The producer's side of a page ring in another core's L1: credits and the write position.
//!
//! Credits are a free-running semaphore in the producer's L1 that starts at the ring's page count
//! and that the consumer adds to; what the producer spent is counted beside it, and only their
//! difference is ever compared, so that both may wrap (seed 001 section 3.2; tt-metal#9113, field
//! 1.B 17). Pages are acquired and released in equal numbers whatever was appended in between:
//! `held` pages are acquired and not yet released (tt-metal#37233, field 1.B 19: one page too few
//! for some sizes).

use tilework_abi::cq::count::WrapCount;

/// The write position in a ring of `PAGES` pages of `1 << LOG_PAGE` bytes at `BASE`.
#[derive(Clone, Copy, Debug)]
pub struct PageWriter<const BASE: u32, const LOG_PAGE: u32, const PAGES: u32> {
    /// Pages acquired since the start.
    spent: WrapCount,
    /// Next byte to write; the ring's end stands for its base.
    at: u32,
    /// Pages acquired and not released; the position lies in the last of them, or behind it.
    held: u32,
}

/// A piece of an append: where it goes and how long it is.
pub type Piece = (u32, u32);

impl<const BASE: u32, const LOG_PAGE: u32, const PAGES: u32> PageWriter<BASE, LOG_PAGE, PAGES> {
    const PAGE: u32 = 1 << LOG_PAGE;
    const END: u32 = BASE + (PAGES << LOG_PAGE);

    /// At the ring's base, with `spent` pages spent (zero, except in tests of the wrap).
    pub const fn new(spent: WrapCount) -> Self {
        Self { spent, at: BASE, held: 0 }
    }

    /// Pages that must be acquired before `bytes` more can be appended.
    #[inline]
    pub const fn pages_needed(&self, bytes: u32) -> u32 {
        (self.room_needed(bytes) + (Self::PAGE - 1)) >> LOG_PAGE
    }

    /// Bytes of an append that do not fit in the held pages.
    const fn room_needed(&self, bytes: u32) -> u32 {
        bytes.saturating_sub(self.open_room())
    }

    /// Bytes left in the page that is held open.
    const fn open_room(&self) -> u32 {
        if self.held == 0 { 0 } else { BASE.wrapping_sub(self.at) & (Self::PAGE - 1) }
    }

    /// Bytes that can be appended while the semaphore holds `credits`.
    #[inline]
    pub const fn room(&self, credits: WrapCount) -> u32 {
        self.open_room() + (credits.since(self.spent) << LOG_PAGE)
    }

    /// Pages that are acquired and not yet released.
    #[inline]
    pub const fn held(&self) -> u32 {
        self.held
    }

    /// Whether `pages` may be acquired while the semaphore holds `credits`.
    #[inline(always)]
    pub const fn can_acquire(&self, credits: WrapCount, pages: u32) -> bool {
        credits.wrap_ge(self.spent.plus(pages))
    }

    /// Whether the consumer has given all pages back.
    #[inline]
    pub const fn all_back(&self, credits: WrapCount) -> bool {
        credits.since(self.spent) == PAGES
    }

    /// Counts `pages` as acquired.
    #[inline]
    pub fn acquire(&mut self, pages: u32) {
        self.spent = self.spent.plus(pages);
        self.held += pages;
    }

    /// The next contiguous piece of an append of `left` bytes (not zero); moves the position behind
    /// it.
    #[inline]
    pub fn piece(&mut self, left: u32) -> Piece {
        if self.at == Self::END {
            self.at = BASE;
        }
        let at = self.at;
        let room = Self::END - at;
        let len = if left < room { left } else { room };
        self.at = at + len;
        (at, len)
    }

    /// The number of pages to release of those that are full: all that are held, but for a page
    /// that has room left, which stays open for what follows.
    #[inline]
    pub fn release_full(&mut self) -> u32 {
        let open = ((self.at - BASE) & (Self::PAGE - 1) != 0) as u32;
        core::mem::replace(&mut self.held, open) - open
    }

    /// Closes the last page and returns the number of pages to release.
    #[inline]
    pub fn release(&mut self) -> u32 {
        let into = (self.at - BASE) & (Self::PAGE - 1);
        if into != 0 {
            self.at += Self::PAGE - into;
        }
        core::mem::take(&mut self.held)
    }
}
