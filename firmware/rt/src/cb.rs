//! Circular buffers: pages in L1 that one core fills and another empties.
//!
//! Follows `tilework_abi::cb` (the original's `dispatch.py`). The counts of pages pushed and popped
//! are registers of the overlay stream with the buffer's number; each has one writer. A side keeps
//! its own count and its position in the buffer in local RAM and reads only the other side's count.
//! BRISC firmware sets the registers to zero between programs.

use tilework_abi::cb::{CONFIG_BYTES, COUNTER_MASK, acked_addr, received_addr};

use crate::KernelContext;
use crate::reg::{read, wait_reg, write};

/// The side that fills a buffer.
pub type Producer = Side<true>;

/// The side that empties a buffer.
pub type Consumer = Side<false>;

/// One core's side of a circular buffer: [`Producer`] or [`Consumer`].
pub struct Side<const FILLS: bool> {
    /// Address of this side's counter and of the other's.
    mine: u32,
    theirs: u32,
    /// This side's count, modulo 2^16.
    count: u32,
    /// Address of the next page, and the buffer's bounds.
    at: u32,
    start: u32,
    end: u32,
    page_size: u32,
    pages: u32,
}

impl<const FILLS: bool> Side<FILLS> {
    /// This side of buffer `id`, which must be configured.
    #[inline(always)]
    pub fn new(ctx: &KernelContext, id: u32) -> Self {
        let (received, acked) = (received_addr(ctx.cb_stream, id), acked_addr(ctx.cb_stream, id));
        let (mine, theirs) = if FILLS { (received, acked) } else { (acked, received) };
        let config = ctx.cb_config + id * CONFIG_BYTES as u32;
        let start = read(config);
        Self {
            mine,
            theirs,
            count: read(mine) & COUNTER_MASK,
            at: start,
            start,
            end: start + read(config + 4),
            pages: read(config + 8),
            page_size: read(config + 12),
        }
    }

    #[inline(always)]
    fn advance(&mut self, pages: u32) {
        self.count = (self.count + pages) & COUNTER_MASK;
        write(self.mine, self.count);
        self.at += pages * self.page_size;
        if self.at >= self.end {
            self.at -= self.end - self.start;
        }
    }

    /// Bytes of a page.
    #[inline(always)]
    pub fn page_size(&self) -> u32 {
        self.page_size
    }

    /// Pages of the buffer.
    #[inline(always)]
    pub fn capacity(&self) -> u32 {
        self.pages
    }
}

impl Producer {
    /// Waits until `pages` pages are free.
    #[inline(always)]
    pub fn reserve_back(&self, pages: u32) {
        let (count, capacity) = (self.count, self.pages);
        wait_reg(self.theirs, |acked| {
            let used = count.wrapping_sub(acked) & COUNTER_MASK;
            capacity - used >= pages
        });
    }

    /// Whether `pages` pages are free.
    #[inline(always)]
    pub fn has_room(&self, pages: u32) -> bool {
        self.pages - (self.count.wrapping_sub(read(self.theirs)) & COUNTER_MASK) >= pages
    }

    /// L1 address of the next page to fill. Pages that are reserved together are contiguous when
    /// the buffer's size is a multiple of theirs.
    #[inline(always)]
    pub fn write_ptr(&self) -> u32 {
        self.at
    }

    /// L1 address of the page that follows `pages` others, which with them are within the buffer.
    #[inline(always)]
    pub fn write_ptr_after(&self, pages: u32) -> u32 {
        let at = self.at + pages * self.page_size;
        if at >= self.end { at - (self.end - self.start) } else { at }
    }

    /// Hands `pages` pages over. What a core stored into them itself must be published first
    /// ([`crate::reg::publish`]).
    #[inline(always)]
    pub fn push_back(&mut self, pages: u32) {
        self.advance(pages);
    }
}

impl Consumer {
    /// Waits until `pages` pages are filled, and drops the L0 data cache so that loads see them.
    #[inline(always)]
    pub fn wait_front(&self, pages: u32) {
        let count = self.count;
        wait_reg(self.theirs, |received| received.wrapping_sub(count) & COUNTER_MASK >= pages);
        crate::reg::fence();
    }

    /// How many pages are filled that lie one behind the other, of those up to the buffer's end.
    #[inline(always)]
    pub fn filled(&self) -> u32 {
        let filled = read(self.theirs).wrapping_sub(self.count) & COUNTER_MASK;
        let mut before_end = 0;
        let mut at = self.at;
        while before_end < filled && at < self.end {
            before_end += 1;
            at += self.page_size;
        }
        before_end
    }

    /// L1 address of the first page.
    #[inline(always)]
    pub fn read_ptr(&self) -> u32 {
        self.at
    }

    /// Gives `pages` pages back. Reads of them by the network must have left L1.
    #[inline(always)]
    pub fn pop_front(&mut self, pages: u32) {
        self.advance(pages);
    }
}
