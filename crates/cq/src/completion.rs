//! The completion FIFO, host side: which pages are ready, where they lie, and the read pointer for
//! the device.
//!
//! The dispatcher writes whole pages of 4 KiB and announces its write pointer in host memory; the
//! host reads a page and announces its read pointer in the dispatcher's L1 and, as a copy, beside
//! the write pointer. This type owns the read pointer and the arithmetic; words go in and out.
//!
//! Source: seed 001 section 7 and figure 10; pointer word: [`tilework_abi::cq::completion`].

use crate::codec::{CommandReader, Framing};
use crate::error::DecodeError;
use tilework_abi::addr::PageCount;
use tilework_abi::cq::CMD_SIZE;
use tilework_abi::cq::completion::{CompletionPtr, CompletionRange};
use tilework_abi::cq::dispatch::{DispatchCmdId, WriteHost};
use tilework_abi::cq::layout::{PAGE_SIZE, host};

mod data;

pub use data::{DataPages, DataRun};

/// A write pointer that cannot be the dispatcher's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompletionError {
    /// It names no page of the FIFO.
    #[error("completion write pointer {found:#010x} names no page between {base:#x} and {end:#x}")]
    NoPage {
        /// The word.
        found: u32,
        /// Low 32 bits of the FIFO's first address.
        base: u32,
        /// Low 32 bits of the address behind it.
        end: u32,
    },
    /// It has passed the read pointer, or went back.
    #[error(
        "completion write pointer {found:#010x} is {ahead} pages ahead of the read pointer {read:#010x}, expected {ready} to {pages}"
    )]
    Overrun {
        /// The word.
        found: u32,
        /// The host's read pointer.
        read: u32,
        /// The distance, modulo 2^32.
        ahead: u32,
        /// Pages that were ready before.
        ready: u32,
        /// Pages of the FIFO.
        pages: u32,
    },
    /// More pages were to be released than are filled.
    #[error("release of {asked} completion pages, {filled} are filled")]
    Release {
        /// Pages asked for.
        asked: u32,
        /// Pages filled.
        filled: u32,
    },
}

/// The host's side of the completion FIFO.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CompletionFifo {
    range: CompletionRange,
    read: CompletionPtr,
    filled: PageCount,
}

impl Default for CompletionFifo {
    /// The FIFO of [`CompletionRange::STANDARD`].
    fn default() -> Self {
        Self::new(CompletionRange::STANDARD)
    }
}

impl CompletionFifo {
    /// An empty FIFO over `range`.
    pub fn new(range: CompletionRange) -> Self {
        Self { range, read: range.start(), filled: PageCount::default() }
    }

    /// The word that both pointers start with, on the device and in host memory.
    pub fn initial_word(&self) -> u32 {
        self.range.start().word()
    }

    /// The read pointer's word, as the device should see it.
    pub fn read_word(&self) -> u32 {
        self.read.word()
    }

    /// Stores the write pointer's word and returns the number of pages that are ready.
    ///
    /// # Errors
    /// A word that no correct dispatcher writes.
    pub fn observe(&mut self, wr_word: u32) -> Result<PageCount, CompletionError> {
        let wr = CompletionPtr::from_word(wr_word);
        if self.range.page_of(wr).is_none() {
            let (base, end) = (self.range.base_addr(), self.range.end_addr());
            return Err(CompletionError::NoPage { found: wr_word, base, end });
        }
        let ahead = self.range.filled_pages(wr, self.read);
        if ahead > self.range.pages() || ahead < self.filled.get() {
            let (read, ready, pages) = (self.read.word(), self.filled.get(), self.range.pages());
            return Err(CompletionError::Overrun { found: wr_word, read, ahead, ready, pages });
        }
        self.filled = PageCount::new(ahead);
        Ok(self.filled)
    }

    /// Pages known to be ready.
    pub fn ready(&self) -> PageCount {
        self.filled
    }

    /// Offset of ready page `n` (0 is the next) from the start of the FIFO's memory, or `None` when
    /// it is not ready.
    pub fn page_offset(&self, n: u32) -> Option<u32> {
        if n >= self.filled.get() {
            return None;
        }
        let page = self.range.page_of(self.range.advance(self.read, n))?;
        Some(page * PAGE_SIZE)
    }

    /// As [`CompletionFifo::page_offset`], from the start of the host region (standard layout).
    pub fn host_offset(&self, n: u32) -> Option<u32> {
        Some(host::COMPLETION.offset() + self.page_offset(n)?)
    }

    /// The ready pages that lie one behind the other: the offset of the first from the start of the
    /// host region (standard layout) and their number; none when no page is ready.
    pub fn run(&self) -> Option<(u32, PageCount)> {
        let first = self.page_offset(0)?;
        let to_end = self.range.pages() - first / PAGE_SIZE;
        Some((host::COMPLETION.offset() + first, PageCount::new(to_end.min(self.filled.get()))))
    }

    /// Releases the oldest `pages` ready pages and returns the read pointer's new word, to be
    /// written to the dispatcher's L1 and to host memory.
    ///
    /// # Errors
    /// [`CompletionError::Release`] when fewer are ready.
    pub fn release(&mut self, pages: PageCount) -> Result<u32, CompletionError> {
        let (asked, filled) = (pages.get(), self.filled.get());
        if asked > filled {
            return Err(CompletionError::Release { asked, filled });
        }
        self.read = self.range.advance(self.read, asked);
        self.filled = PageCount::new(filled - asked);
        Ok(self.read.word())
    }
}

/// The echoed header at the start of what one `WRITE_LINEAR_H_HOST` wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompletionHeader {
    /// An event rather than buffer data.
    pub is_event: bool,
    /// Bytes, header included.
    pub length: u64,
}

impl CompletionHeader {
    /// Reads the header at the start of a page.
    ///
    /// # Errors
    /// Bytes that are no such header.
    pub fn parse(page: &[u8]) -> Result<Self, DecodeError> {
        let mut r = reader(page);
        let id = u64::from(DispatchCmdId::WriteLinearHHost as u8);
        if page.len() >= CMD_SIZE {
            r.range(0, "command id", page[0], id, id)?;
        }
        let header: WriteHost = r.header()?;
        Ok(Self { is_event: header.is_event != 0, length: header.length.get() })
    }

    /// Pages that it fills.
    pub fn pages(self) -> u64 {
        self.length.div_ceil(u64::from(PAGE_SIZE))
    }
}

/// Reads the event id from a completion page.
///
/// # Errors
/// A page that holds no event.
pub fn read_event(page: &[u8]) -> Result<u32, DecodeError> {
    let header = CompletionHeader::parse(page)?;
    let mut r = reader(page);
    r.range(1, "is_event", u8::from(header.is_event), 1, 1)?;
    r.range(8, "length", header.length, CMD_SIZE as u64 + 4, u64::from(PAGE_SIZE))?;
    r.take(CMD_SIZE as u64, "header")?;
    let id = r.words(1, "event id")?;
    Ok(id.first().copied().unwrap_or_default())
}

fn reader(page: &[u8]) -> CommandReader<'_> {
    let mut r = CommandReader::new(page, Framing::DISPATCH);
    r.set_context(DispatchCmdId::WriteLinearHHost.name());
    r
}

#[cfg(test)]
mod tests;
