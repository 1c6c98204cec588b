//! Sparse memory: host memory is allocated only for pages that were written.
//!
//! A board has 28 or 32 GiB of DRAM and a program touches little of it. Untouched memory reads as
//! zero (the chip's content after power-on is undefined; zero makes runs repeatable).

use crate::noc::{Data, PAGE, Page};
use std::sync::{Arc, LazyLock};

/// A page that a packet held on to when it was written: so many reads of it are copied before
/// packets may hold on to it again. So a program that reads and writes a page in turn pays for a
/// copy of the page only rarely.
const COPIED_READS: u8 = 64;

/// Pages of a row of a memory's table: 4 MiB. Opening a board need not write a table for all its
/// DRAM then.
const ROW: usize = 64;

/// The content of a page that has not been written.
static UNTOUCHED: LazyLock<Page> = LazyLock::new(new_page);

/// An access beyond the end of a memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{len} bytes at {addr:#x} exceed the memory of {size:#x} bytes")]
pub(crate) struct OutOfRange {
    /// First byte of the access.
    pub addr: u64,
    /// Bytes of the access.
    pub len: usize,
    /// Bytes of the memory.
    pub size: u64,
}

/// A memory of fixed size, allocated page by page on the first write.
#[derive(Clone)]
pub(crate) struct SparseMemory {
    rows: Vec<Option<Box<Row>>>,
    size: u64,
}

/// Neighbouring pages.
type Row = [Option<Held>; ROW];

/// A page that has been written.
#[derive(Clone)]
struct Held {
    page: Page,
    /// How many of the next reads are copied.
    copied: u8,
}

impl Held {
    fn new() -> Self {
        Self { page: new_page(), copied: 0 }
    }

    /// The bytes, to be changed. What packets hold on to stays as it is.
    #[inline]
    fn bytes_mut(&mut self) -> &mut [u8; PAGE] {
        if Arc::get_mut(&mut self.page).is_none() {
            self.copied = COPIED_READS;
        }
        Arc::make_mut(&mut self.page).as_mut()
    }
}

impl std::fmt::Debug for SparseMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparseMemory").field("size", &self.size).field("resident", &self.resident()).finish()
    }
}

impl SparseMemory {
    /// A memory of `size` bytes, all zero.
    pub(crate) fn new(size: u64) -> Self {
        let count = usize::try_from(size.div_ceil((PAGE * ROW) as u64)).unwrap_or(0);
        Self { rows: vec![None; count], size }
    }

    /// Bytes of the memory.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Bytes of host memory that hold content.
    pub(crate) fn resident(&self) -> u64 {
        self.rows.iter().flatten().flat_map(|row| row.iter().flatten()).count() as u64 * PAGE as u64
    }

    /// Reads `out.len()` bytes at `addr`.
    ///
    /// # Errors
    /// Some of the bytes lie past the end.
    pub(crate) fn read(&self, addr: u64, out: &mut [u8]) -> Result<(), OutOfRange> {
        self.check(addr, out.len())?;
        let mut rest = out;
        let mut addr = addr;
        while !rest.is_empty() {
            let (page, at) = split(addr);
            let n = rest.len().min(PAGE - at);
            let (now, later) = rest.split_at_mut(n);
            match self.held(page) {
                Some(held) => now.copy_from_slice(&held.page[at..at + n]),
                None => now.fill(0),
            }
            rest = later;
            addr += n as u64;
        }
        Ok(())
    }

    /// The `len` bytes at `addr`, when they lie in one page.
    pub(crate) fn span(&self, addr: u64, len: usize) -> Option<&[u8]> {
        let (page, at) = split(addr);
        let end = at.checked_add(len)?;
        // The last page may reach beyond the memory.
        self.check(addr, len).ok()?;
        self.page(page).get(at..end)
    }

    /// The `len` bytes at `addr` as they are now, without a copy; `None` when they do not lie in
    /// one page, or when a copy costs less.
    #[inline]
    pub(crate) fn share(&mut self, addr: u64, len: usize) -> Option<Data> {
        let (number, at) = split(addr);
        self.check(addr, len).ok()?;
        if let Some(Some(row)) = self.rows.get_mut(number / ROW)
            && let Some(held) = &mut row[number % ROW]
            && held.copied > 0
        {
            held.copied -= 1;
            return None;
        }
        Data::of_page(self.page(number), at, len)
    }

    /// The page with this number, if it has been written.
    #[inline]
    fn held(&self, number: usize) -> Option<&Held> {
        self.rows.get(number / ROW)?.as_ref()?[number % ROW].as_ref()
    }

    /// The content of the page with this number.
    fn page(&self, number: usize) -> &Page {
        self.held(number).map_or(&*UNTOUCHED, |held| &held.page)
    }

    /// Writes `data` at `addr`. Zeros written to untouched pages allocate nothing.
    ///
    /// # Errors
    /// Some of the bytes lie past the end; nothing is written.
    pub(crate) fn write(&mut self, addr: u64, data: &[u8]) -> Result<(), OutOfRange> {
        self.check(addr, data.len())?;
        let mut rest = data;
        let mut addr = addr;
        while !rest.is_empty() {
            let (page, at) = split(addr);
            let n = rest.len().min(PAGE - at);
            let (now, later) = rest.split_at(n);
            if self.held(page).is_some() || now.iter().any(|&b| b != 0) {
                let row = self.rows[page / ROW].get_or_insert_with(|| Box::new([const { None }; ROW]));
                row[page % ROW].get_or_insert_with(Held::new).bytes_mut()[at..at + n].copy_from_slice(now);
            }
            rest = later;
            addr += n as u64;
        }
        Ok(())
    }

    fn check(&self, addr: u64, len: usize) -> Result<(), OutOfRange> {
        match addr.checked_add(len as u64) {
            Some(end) if end <= self.size => Ok(()),
            _ => Err(OutOfRange { addr, len, size: self.size }),
        }
    }
}

/// Page number and offset in it.
fn split(addr: u64) -> (usize, usize) {
    ((addr / PAGE as u64) as usize, (addr % PAGE as u64) as usize)
}

fn new_page() -> Page {
    Arc::new(vec![0u8; PAGE].into_boxed_slice().try_into().expect("the slice has the length of a page"))
}
