//! The data of one `WRITE_LINEAR_H_HOST`: which bytes of the completion pages are the command's
//! header, its data and padding.
//!
//! The dispatcher writes header and data as one stream, page after page, and announces the pages
//! piece by piece as they are there; only the last page may be partly used. A read may be larger
//! than the FIFO, whose pages the host gives back as it takes them.
//!
//! Source: seed 001 sections 4.4 and 7.

use super::{CompletionHeader, reader};
use crate::error::DecodeError;
use tilework_abi::addr::PageCount;
use tilework_abi::cq::CMD_SIZE;
use tilework_abi::cq::layout::PAGE_SIZE;

/// The position in the data of one `WRITE_LINEAR_H_HOST`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataPages {
    /// Bytes, header included.
    length: u64,
    /// Of those, in pages that the host has taken.
    taken: u64,
}

/// What a run of pages holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataRun {
    /// Pages of it, at most those that were offered.
    pub pages: PageCount,
    /// Bytes in front of the data: the header, in the first run.
    pub skip: u32,
    /// Place in the data of the run's first byte of data.
    pub at: u64,
    /// Bytes of data.
    pub bytes: u32,
}

impl DataPages {
    /// Before the first page of `bytes` bytes of data.
    pub const fn new(bytes: u64) -> Self {
        Self { length: bytes + CMD_SIZE as u64, taken: 0 }
    }

    /// Whether the next page begins with the header, which [`DataPages::check`] reads.
    pub const fn at_header(&self) -> bool {
        self.taken == 0
    }

    /// Whether all pages have been taken.
    pub const fn is_done(&self) -> bool {
        self.taken >= self.length
    }

    /// Checks the header at the start of the first page.
    ///
    /// # Errors
    /// A page of another command.
    pub fn check(&self, page: &[u8]) -> Result<(), DecodeError> {
        let header = CompletionHeader::parse(page)?;
        let r = reader(page);
        r.range(1, "is_event", u8::from(header.is_event), 0, 0)?;
        r.range(8, "length", header.length, self.length, self.length)?;
        Ok(())
    }

    /// Takes as many of `ready` neighbouring pages as belong to the data.
    pub fn take(&mut self, ready: PageCount) -> DataRun {
        let page = u64::from(PAGE_SIZE);
        let left = self.length.saturating_sub(self.taken);
        // At most the FIFO's pages, so that all of it fits 32 bits.
        let pages = left.div_ceil(page).min(u64::from(ready.get()));
        let used = left.min(pages * page);
        let skip = if self.taken == 0 { (CMD_SIZE as u64).min(used) } else { 0 };
        let at = self.taken.saturating_sub(CMD_SIZE as u64);
        self.taken += used;
        let narrow = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        DataRun { pages: PageCount::new(narrow(pages)), skip: narrow(skip), at, bytes: narrow(used - skip) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dispatch::{DispatchCommand, HostWrite};
    use proptest::prelude::*;

    #[test]
    fn the_header_must_be_that_of_the_data() {
        let write = |is_event, bytes| {
            let command = DispatchCommand::WriteLinearHHost(HostWrite { is_event, payload: vec![1; bytes] });
            let mut page = command.to_bytes().unwrap();
            page.resize(PAGE_SIZE as usize, 0);
            page
        };
        let data = DataPages::new(100);
        assert_eq!(data.check(&write(false, 100)), Ok(()));
        let other = data.check(&write(false, 99)).unwrap_err().to_string();
        assert!(other.contains("length 115, expected 116"), "{other}");
        let event = data.check(&write(true, 100)).unwrap_err().to_string();
        assert!(event.contains("is_event 1"), "{event}");
        assert!(data.check(&[0; 4096]).is_err() && data.check(&[]).is_err());
    }

    proptest! {
        /// However the pages come, every byte of data is found once, at its place.
        #[test]
        fn every_byte_is_found_once(
            bytes in prop_oneof![1u64..20_000, 4_070u64..4_090, 8_170u64..8_180],
            offers in prop::collection::vec(1u32..5, 1..20),
        ) {
            let stream: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
            let mut pages = vec![0xEE; CMD_SIZE];
            pages.extend(&stream);
            pages.resize(pages.len().next_multiple_of(PAGE_SIZE as usize), 0xEE);
            let mut data = DataPages::new(bytes);
            let (mut found, mut page) = (Vec::<u8>::new(), 0usize);
            for ready in offers.into_iter().cycle() {
                if data.is_done() {
                    break;
                }
                prop_assert_eq!(data.at_header(), page == 0);
                let run = data.take(PageCount::new(ready));
                prop_assert!(run.pages.get() >= 1 && run.pages.get() <= ready);
                prop_assert_eq!(run.at, found.len() as u64);
                let from = page * PAGE_SIZE as usize + run.skip as usize;
                found.extend(&pages[from..from + run.bytes as usize]);
                page += run.pages.get() as usize;
            }
            prop_assert_eq!(page * PAGE_SIZE as usize, pages.len());
            prop_assert_eq!(found, stream);
            prop_assert_eq!(data.take(PageCount::new(3)).pages.get(), 0);
        }
    }
}
