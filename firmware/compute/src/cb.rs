//! Circular buffers as the threads of a compute kernel see them.
//!
//! The protocol is that of [`tilework_rt::cb`]: the counts of pages pushed and popped are registers
//! of an overlay stream. The unpack thread empties buffers, the pack thread fills them; the math
//! thread has nothing to do with them. A thread's core runs ahead of its unit, so it does not store
//! its own count itself: the scalar unit stores it when unpackers or packer are done with the
//! pages.

use crate::format::Format;
use crate::push::{block, push, set_gpr, stall, until};
use crate::thread::Thread;
use crate::ttinsn;
use core::marker::PhantomData;
use tilework_abi::cb::{CONFIG_BYTES, COUNTER_MASK, acked_addr, received_addr};
use tilework_abi::tensix::insn::Storereg;
use tilework_rt::KernelContext;
use tilework_rt::reg::{read, wait_reg};

/// The GPR from which the scalar unit stores counts.
const COUNT_GPR: u32 = 4;

/// Words of registers that `STOREREG` reaches (STOREREG.md): its operand is the low bits of the
/// word's number.
const STOREREG_WORDS: u32 = 1 << 18;

/// A circular buffer of tiles. A page is a tile.
pub struct Cb<T> {
    format: Format,
    /// Address of this thread's counter and of the other side's.
    mine: u32,
    theirs: u32,
    count: u32,
    at: u32,
    start: u32,
    end: u32,
    page_size: u32,
    pages: u32,
    thread: PhantomData<T>,
}

impl<T: Thread> Cb<T> {
    /// Buffer `id`, which must be configured, and the type of its tiles.
    #[inline(always)]
    pub(crate) fn new(ctx: &KernelContext, id: u32, format: Format) -> Self {
        let (received, acked) = (received_addr(ctx.cb_stream, id), acked_addr(ctx.cb_stream, id));
        let (mine, theirs) = if T::PACK { (received, acked) } else { (acked, received) };
        let config = ctx.cb_config + id * CONFIG_BYTES as u32;
        let start = read(config);
        Self {
            format,
            mine,
            theirs,
            count: 0,
            at: start,
            start,
            end: start + read(config + 4),
            pages: read(config + 8),
            page_size: read(config + 12),
            thread: PhantomData,
        }
    }

    /// Type of its tiles.
    #[inline(always)]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Waits until `pages` pages are filled.
    #[inline(always)]
    pub fn wait_front(&self, pages: u32) {
        if T::UNPACK {
            let count = self.count;
            wait_reg(self.theirs, |received| received.wrapping_sub(count) & COUNTER_MASK >= pages);
        }
    }

    /// Gives `pages` pages back when the unpackers have read them.
    #[inline(always)]
    pub fn pop_front(&mut self, pages: u32) {
        if T::UNPACK {
            ttinsn!(stall(block::SCALAR, until::UNPACK));
            self.advance(pages);
        }
    }

    /// Waits until `pages` pages are free.
    #[inline(always)]
    pub fn reserve_back(&self, pages: u32) {
        if T::PACK {
            let (count, capacity) = (self.count, self.pages);
            wait_reg(self.theirs, |acked| capacity - (count.wrapping_sub(acked) & COUNTER_MASK) >= pages);
        }
    }

    /// Hands `pages` pages over when the packer has written them.
    #[inline(always)]
    pub fn push_back(&mut self, pages: u32) {
        if T::PACK {
            ttinsn!(stall(block::SCALAR, until::PACK));
            self.advance(pages);
        }
    }

    #[inline(always)]
    fn advance(&mut self, pages: u32) {
        self.count = (self.count + pages) & COUNTER_MASK;
        set_gpr(COUNT_GPR, self.count);
        push(Storereg::build().data_reg(COUNT_GPR).addr_lo(self.mine / 4 % STOREREG_WORDS).word());
        self.at += pages * self.page_size;
        if self.at >= self.end {
            self.at -= self.end - self.start;
        }
    }

    /// L1 address of page `page`, counted from the first page that is filled (unpack) or free
    /// (pack). Pages that are waited for together must not wrap.
    #[inline(always)]
    pub(crate) fn page(&self, page: u32) -> u32 {
        self.at + page * self.page_size
    }
}
