//! Both ends of the record ring of a split prefetcher.
//!
//! A record is executed where it lies, so it is contiguous: where it does not fit before the end of
//! the ring, the rest of the ring is passed over. Every record, and what is passed over, begins on
//! a page with a header ([`RECORD_HEADER`]) and is announced and given back as a whole.

use tilework_abi::cq::count::WrapCount;
use tilework_abi::cq::layout::prefetch_d_core::{RECORD_HEADER, RECORDS};

const PAGES: u32 = RECORDS.pages().get();

/// Address of page `page` of the ring.
const fn address(page: u32) -> u32 {
    RECORDS.base().get() + (page << RECORDS.log_page_size())
}

/// The writing end.
#[derive(Clone, Copy, Debug)]
pub struct RecordWriter {
    /// Pages spent since the start.
    spent: WrapCount,
    /// Next page.
    next: u32,
}

impl RecordWriter {
    /// At the ring's base, with `spent` pages spent (zero, except in tests of the wrap).
    pub const fn new(spent: WrapCount) -> Self {
        Self { spent, next: 0 }
    }

    /// Pages that a record of `bytes` bytes takes.
    pub const fn pages(bytes: u32) -> u32 {
        RECORDS.pages_for(bytes + RECORD_HEADER).get()
    }

    /// Pages to pass over before `pages` contiguous ones, at most the whole ring.
    pub const fn passed_over(&self, pages: u32) -> u32 {
        if self.next + pages <= PAGES { 0 } else { PAGES - self.next }
    }

    /// Whether `pages` may be taken while the semaphore of free pages holds `credits`.
    pub const fn can_take(&self, credits: WrapCount, pages: u32) -> bool {
        credits.wrap_ge(self.spent.plus(pages))
    }

    /// Takes `pages`, which do not pass the end of the ring; returns the address of the first.
    pub const fn take(&mut self, pages: u32) -> u32 {
        let at = address(self.next);
        self.spent = self.spent.plus(pages);
        self.next += pages;
        if self.next == PAGES {
            self.next = 0;
        }
        at
    }

    /// Whether the reader has given all pages back.
    pub const fn all_back(&self, credits: WrapCount) -> bool {
        credits.since(self.spent) == PAGES
    }
}

/// The reading end.
#[derive(Clone, Copy, Debug)]
pub struct RecordReader {
    /// Pages taken since the start.
    taken: WrapCount,
    /// Next page.
    next: u32,
    /// Pages of the present record.
    held: u32,
}

impl RecordReader {
    /// At the ring's base, when the writer's count is `start` (zero, except in tests of the wrap).
    pub const fn new(start: WrapCount) -> Self {
        Self { taken: start, next: 0, held: 0 }
    }

    /// Whether there is a record when the semaphore of filled pages holds `filled`.
    pub fn has_record(&self, filled: WrapCount) -> bool {
        filled != self.taken
    }

    /// Address of the next header.
    pub const fn header(&self) -> u32 {
        address(self.next)
    }

    /// Takes what the next header, of which `bytes` is the first word, stands before: a record, as
    /// its first byte and the one behind it, or nothing when the rest of the ring is passed over.
    pub fn take(&mut self, bytes: u32) -> Option<(u32, u32)> {
        let start = self.header() + RECORD_HEADER;
        let pages = if bytes == 0 { PAGES - self.next } else { RecordWriter::pages(bytes) };
        self.taken = self.taken.plus(pages);
        self.held += pages;
        self.next += pages;
        if self.next >= PAGES {
            self.next = 0;
        }
        (bytes != 0).then_some((start, start + bytes))
    }

    /// The pages to give back when the record is used up.
    pub fn give_back(&mut self) -> u32 {
        core::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::vec::Vec;
    use tilework_abi::cq::layout::prefetch_core::MAX_RECORD_BYTES;
    use tilework_abi::cq::layout::prefetch_d_core::MAX_RECORD_PAGES;

    /// The ring's memory as far as it matters: which record a page belongs to, and the headers.
    struct Ring {
        writer: RecordWriter,
        reader: RecordReader,
        headers: Vec<u32>,
        owner: Vec<Option<usize>>,
        free: WrapCount,
        filled: WrapCount,
    }

    impl Ring {
        fn page(at: u32) -> usize {
            ((at - address(0)) >> RECORDS.log_page_size()) as usize
        }
        fn write(&mut self, pages: u32, header: u32, number: usize) -> bool {
            if !self.writer.can_take(self.free, pages) {
                return false;
            }
            let first = Self::page(self.writer.take(pages));
            for page in first..first + pages as usize {
                assert_eq!(self.owner[page], None, "page {page} is in use");
                self.owner[page] = Some(number);
            }
            self.headers[first] = header;
            self.filled = self.filled.plus(pages);
            true
        }
        fn read(&mut self) -> Option<(u32, u32)> {
            while self.reader.has_record(self.filled) {
                let first = Self::page(self.reader.header());
                if let Some(record) = self.reader.take(self.headers[first]) {
                    return Some(record);
                }
                self.finish(first, PAGES as usize - first);
            }
            None
        }
        fn finish(&mut self, first: usize, pages: usize) {
            self.owner[first..first + pages].fill(None);
            self.free = self.free.plus(self.reader.give_back());
        }
    }

    proptest! {
        /// Records of every size follow each other in one piece, none is lost or overwritten, and
        /// all pages come back, wherever the counts wrap.
        #[test]
        fn records_pass_in_one_piece(
            start in prop_oneof![Just(0u32), Just(u32::MAX - 100), Just(1u32 << 31), any::<u32>()],
            sizes in prop::collection::vec(1..=MAX_RECORD_BYTES / 64, 1..80),
        ) {
            let mut ring = Ring {
                writer: RecordWriter::new(WrapCount(start)),
                reader: RecordReader::new(WrapCount(start)),
                headers: std::vec![0; PAGES as usize],
                owner: std::vec![None; PAGES as usize],
                free: WrapCount(start).plus(PAGES),
                filled: WrapCount(start),
            };
            let mut sent = VecDeque::new();
            for (number, size) in sizes.iter().map(|n| 64 * n).enumerate() {
                let pages = RecordWriter::pages(size);
                prop_assert!(pages <= MAX_RECORD_PAGES);
                let over = ring.writer.passed_over(pages);
                let mut steps = VecDeque::from([(over, 0), (pages, size)]);
                while let Some(&(pages, header)) = steps.front() {
                    if pages == 0 || ring.write(pages, header, number) {
                        steps.pop_front();
                        continue;
                    }
                    let free = ring.free;
                    if let Some((from, to)) = ring.read() {
                        prop_assert_eq!(Some(to - from), sent.pop_front());
                        ring.finish(Ring::page(from), RecordWriter::pages(to - from) as usize);
                    }
                    // The rest that was passed over may be all that was there to give back.
                    prop_assert!(ring.free != free, "the ring is full and nothing comes back");
                }
                sent.push_back(size);
            }
            while let Some(size) = sent.pop_front() {
                let (from, to) = ring.read().expect("it was sent");
                prop_assert_eq!(to - from, size);
                prop_assert!(to <= RECORDS.end().get());
                ring.finish(Ring::page(from), RecordWriter::pages(size) as usize);
            }
            prop_assert_eq!(ring.read(), None);
            prop_assert!(ring.writer.all_back(ring.free));
        }
    }
}
