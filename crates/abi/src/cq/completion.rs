//! The completion FIFO's pointer word: where the dispatcher writes next, or the host reads next.
//!
//! Both sides hold a position in 16-byte units of the device's address (31 bits) and a toggle that
//! flips at each wrap (bit 31). Equal words mean empty; equal positions with different toggles mean
//! full. The word is a type so that nothing else can be compared with it or added to it
//! (tt-metal#55419: a completion pointer reduced modulo a window size landed in another queue's
//! L1).
//!
//! Source: seed 001 section 7 and figure 10.

use super::layout::{HOST_REGION_NOC_BASE, HostRange, PAGE_SIZE, host};

/// A position in the completion FIFO: bits 0..30 the address in 16-byte units, bit 31 the toggle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct CompletionPtr(u32);

/// The part of the device's view of host memory that a completion FIFO occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CompletionRange {
    base_16b: u32,
    pages: u32,
}

/// Size of a page in the pointer's units.
const PAGE_16B: u32 = PAGE_SIZE >> 4;

impl CompletionPtr {
    /// The toggle's bit.
    pub const TOGGLE: u32 = 1 << 31;

    /// The pointer held in `word`.
    #[inline]
    pub const fn from_word(word: u32) -> Self {
        Self(word)
    }

    /// The word to store.
    #[inline]
    pub const fn word(self) -> u32 {
        self.0
    }

    /// The address in 16-byte units.
    #[inline]
    pub const fn units(self) -> u32 {
        self.0 & !Self::TOGGLE
    }

    /// The toggle.
    #[inline]
    pub const fn toggle(self) -> bool {
        self.0 & Self::TOGGLE != 0
    }

    /// Low 32 bits of the address the pointer names.
    #[inline]
    pub const fn noc_addr(self) -> u32 {
        self.0 << 4
    }
}

impl CompletionRange {
    /// The FIFO of [`host::COMPLETION`] as seen at [`HOST_REGION_NOC_BASE`].
    pub const STANDARD: Self = Self::new(HOST_REGION_NOC_BASE, host::COMPLETION);

    /// The FIFO in `range` of a host region that the device sees at `region_base` (low 32 bits).
    pub const fn new(region_base: u32, range: HostRange) -> Self {
        assert!(region_base <= u32::MAX - range.end());
        let base = region_base + range.offset();
        assert!(base.is_multiple_of(16) && range.size().is_multiple_of(PAGE_SIZE));
        Self { base_16b: base >> 4, pages: range.size() / PAGE_SIZE }
    }

    /// A FIFO of `pages` pages at `base` (low 32 bits, a multiple of 16). Evaluation fails when it
    /// is empty or passes 4 GiB. For other maps and for tests of the wrap.
    pub const fn with_pages(base: u32, pages: u32) -> Self {
        assert!(base.is_multiple_of(16) && pages > 0);
        assert!(pages <= (u32::MAX - base) / PAGE_SIZE);
        Self { base_16b: base >> 4, pages }
    }

    /// Pages of the FIFO.
    #[inline]
    pub const fn pages(self) -> u32 {
        self.pages
    }

    /// Where both pointers start.
    #[inline]
    pub const fn start(self) -> CompletionPtr {
        CompletionPtr(self.base_16b)
    }

    /// Low 32 bits of the address of the FIFO's first byte.
    #[inline]
    pub const fn base_addr(self) -> u32 {
        self.base_16b << 4
    }

    /// Low 32 bits of the address behind the FIFO.
    #[inline]
    pub const fn end_addr(self) -> u32 {
        (self.base_16b + self.pages * PAGE_16B) << 4
    }

    /// Page number that `ptr` names, or `None` when it names no page of this FIFO.
    #[inline]
    pub const fn page_of(self, ptr: CompletionPtr) -> Option<u32> {
        let Some(units) = ptr.units().checked_sub(self.base_16b) else {
            return None;
        };
        if units.is_multiple_of(PAGE_16B) && units / PAGE_16B < self.pages { Some(units / PAGE_16B) } else { None }
    }

    /// `ptr` moved on by `n` pages, at most all of them; the toggle flips at the end.
    #[inline]
    pub const fn advance(self, ptr: CompletionPtr, n: u32) -> CompletionPtr {
        let end = self.base_16b + self.pages * PAGE_16B;
        let units = ptr.units().wrapping_add(n.wrapping_mul(PAGE_16B));
        let toggle = ptr.0 & CompletionPtr::TOGGLE;
        if units >= end {
            CompletionPtr((units - self.pages * PAGE_16B) | (toggle ^ CompletionPtr::TOGGLE))
        } else {
            CompletionPtr(units | toggle)
        }
    }

    /// Pages that the dispatcher may write while the host reads at `rd` and itself writes at `wr`;
    /// none when the two cannot belong together.
    #[inline]
    pub const fn free_pages(self, wr: CompletionPtr, rd: CompletionPtr) -> u32 {
        self.pages.saturating_sub(self.filled_pages(wr, rd))
    }

    /// Pages written and not yet read.
    #[inline]
    pub const fn filled_pages(self, wr: CompletionPtr, rd: CompletionPtr) -> u32 {
        let distance = wr.units().wrapping_sub(rd.units());
        if wr.toggle() == rd.toggle() {
            distance / PAGE_16B
        } else {
            (self.pages * PAGE_16B).wrapping_add(distance) / PAGE_16B
        }
    }
}

const _: () = assert!(CompletionRange::STANDARD.start().word() == 0x0440_0010);
const _: () = assert!(CompletionRange::STANDARD.end_addr() == 0x4600_0100);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advance_flips_the_toggle_at_the_end_and_back() {
        let fifo = CompletionRange::STANDARD;
        let last = fifo.advance(fifo.start(), 8191);
        assert_eq!(last.word(), 0x045f_ff10);
        let wrapped = fifo.advance(last, 1);
        assert_eq!(wrapped.word(), 0x8440_0010);
        assert_eq!(fifo.advance(wrapped, 8192), fifo.start());
    }

    #[test]
    fn full_and_empty_differ_only_in_the_toggle() {
        let fifo = CompletionRange::with_pages(0x100, 3);
        let rd = fifo.advance(fifo.start(), 2);
        assert_eq!(fifo.filled_pages(rd, rd), 0);
        let wr = fifo.advance(rd, 3);
        assert_eq!(wr.units(), rd.units());
        assert_ne!(wr, rd);
        assert_eq!(fifo.filled_pages(wr, rd), 3);
        assert_eq!(fifo.free_pages(wr, rd), 0);
    }

    /// tt-metal#55419: a word that does not name a page of this FIFO is recognised, not reduced.
    #[test]
    fn issue_55419_foreign_pointers_name_no_page() {
        let fifo = CompletionRange::STANDARD;
        for word in [0, 0x0440_0011, 0x0440_0000, 0x0460_0010, 0x7fff_ffff, 0x196e] {
            assert_eq!(fifo.page_of(CompletionPtr::from_word(word)), None, "{word:#x}");
        }
        assert_eq!(fifo.page_of(CompletionPtr::from_word(0x8440_0110)), Some(1));
    }
}
