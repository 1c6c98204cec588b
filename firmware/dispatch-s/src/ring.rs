//! The subordinate's ring: small pages that are given back after each command.

use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::layout::dispatch_core::DISPATCH_S_CB;

use crate::counts::Counts;

/// The read position.
pub struct Ring {
    /// Semaphore of filled pages.
    filled: u32,
    /// Pages taken since the start.
    taken: WrapCount,
    /// Next page.
    next: u32,
    /// Pages of the present command.
    pages: u32,
}

impl Ring {
    /// At the ring's base; `filled` is the address of the semaphore, which begins at `taken`.
    pub const fn new(filled: u32, taken: WrapCount) -> Self {
        Self { filled, taken, next: DISPATCH_S_CB.base().get(), pages: 0 }
    }

    /// Waits for the next page of the present command and returns its address.
    pub fn wait_for_page(&mut self, counts: &mut Counts) -> u32 {
        let taken = self.taken;
        counts.wait(self.filled, |count| WrapCount(count).wrap_gt(taken));
        self.taken = taken.plus(1);
        self.pages += 1;
        if self.next == DISPATCH_S_CB.end().get() {
            self.next = DISPATCH_S_CB.base().get();
        }
        let page = self.next;
        self.next += DISPATCH_S_CB.page_size();
        page
    }

    /// End of the page that was returned last.
    pub const fn page_end(&self) -> u32 {
        self.next
    }

    /// Ends the present command; returns its pages.
    pub fn finish_command(&mut self) -> u32 {
        core::mem::take(&mut self.pages)
    }

    /// Waits until the producer's count is what was taken.
    pub fn wait_nothing_more(&self, counts: &mut Counts) {
        counts.wait(self.filled, |count| WrapCount(count) == self.taken);
    }
}
