//! Interleaved buffers: pages are distributed round robin over the banks of DRAM or of L1.
//!
//! Page p is in logical bank p % banks, at base + p / banks * page size of that bank (seed,
//! interleaved DRAM buffers). Which port of a DRAM bank a NoC uses, and which tile an L1 bank is,
//! comes from the bank table, through the kernel's context.

use crate::KernelContext;
use crate::noc::NocAddr;
use crate::reg::read16;

/// An interleaved buffer as one NoC sees it.
#[derive(Clone, Copy)]
pub struct Interleaved {
    base: u32,
    page_size: u32,
    banks: u32,
    xy: u32,
}

impl Interleaved {
    /// The buffer at `base` of every DRAM bank. `page_size` is the distance between pages in a
    /// bank: a multiple of 64.
    #[inline(always)]
    pub fn new(ctx: &KernelContext, base: u32, page_size: u32) -> Self {
        Self { base, page_size, banks: ctx.dram_banks, xy: ctx.dram_xy }
    }
    /// The buffer at `base` of every L1 bank. `page_size` is the distance between pages in a bank:
    /// a multiple of 16.
    #[inline(always)]
    pub fn l1(ctx: &KernelContext, base: u32, page_size: u32) -> Self {
        Self { base, page_size, banks: ctx.l1_banks, xy: ctx.l1_xy }
    }
    /// Address of page `page`.
    #[inline(always)]
    pub fn page(&self, page: u32) -> NocAddr {
        self.cursor(page).here()
    }
    /// The distance of `pages` pages. It takes a division, steps by it take none.
    #[inline(always)]
    pub fn distance(&self, pages: u32) -> Distance {
        let rows = pages / self.banks;
        Distance { banks: pages - rows * self.banks, bytes: rows * self.page_size }
    }
    /// A walk over the pages from `page` on, without a division for each.
    #[inline(always)]
    pub fn cursor(&self, page: u32) -> Cursor {
        let row = page / self.banks;
        Cursor { buffer: *self, bank: page - row * self.banks, lo: self.base + row * self.page_size }
    }
}

/// A distance between pages of an [`Interleaved`] buffer, for [`Cursor::plus`].
#[derive(Clone, Copy)]
pub struct Distance {
    banks: u32,
    bytes: u32,
}

/// A walk over the pages of an [`Interleaved`] buffer.
#[derive(Clone, Copy)]
pub struct Cursor {
    buffer: Interleaved,
    bank: u32,
    lo: u32,
}

impl Cursor {
    /// Address of the current page.
    #[inline(always)]
    pub fn here(&self) -> NocAddr {
        NocAddr::new(u32::from(read16(self.buffer.xy + self.bank * 2)), self.lo)
    }
    /// Moves to the next page and returns the address of the one before.
    #[inline(always)]
    pub fn next_page(&mut self) -> NocAddr {
        let here = self.here();
        self.bank += 1;
        if self.bank == self.buffer.banks {
            self.bank = 0;
            self.lo += self.buffer.page_size;
        }
        here
    }
    /// The walk from `distance` further on.
    #[inline(always)]
    #[must_use]
    pub fn plus(self, distance: Distance) -> Self {
        let (bank, lo) = (self.bank + distance.banks, self.lo + distance.bytes);
        if bank < self.buffer.banks {
            Self { bank, lo, ..self }
        } else {
            Self { bank: bank - self.buffer.banks, lo: lo + self.buffer.page_size, ..self }
        }
    }
}
