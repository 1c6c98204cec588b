//! The completion FIFO: every wrap, and host and dispatcher side by side.

use super::*;
use crate::dispatch::DispatchCommand;
use proptest::collection::vec;
use proptest::prelude::*;
use tilework_abi::convert::addr32_of;

/// The dispatcher as the seed describes it (001 section 4.4): a pointer in 16-byte units and a
/// toggle, kept apart, against the host's word in its L1.
struct Dispatcher {
    base: u32,
    pages: u32,
    at: u32,
    toggle: u32,
}

impl Dispatcher {
    fn word(&self) -> u32 {
        self.at | self.toggle << 31
    }

    fn space(&self, rd_word: u32) -> u32 {
        let (rd, rd_toggle) = (rd_word & 0x7fff_ffff, rd_word >> 31);
        let units = if rd_toggle == self.toggle { self.pages * 256 - (self.at - rd) } else { rd - self.at };
        units / 256
    }

    fn push(&mut self, pages: u32) {
        self.at += pages * 256;
        if self.at >= self.base + self.pages * 256 {
            self.at -= self.pages * 256;
            self.toggle ^= 1;
        }
    }
}

proptest! {
    #[test]
    fn host_and_dispatcher_agree_across_wraps(
        pages in 1..9u32,
        base in prop_oneof![Just(0x4400_0100u32), Just(0), Just(0xffff_0000), Just(0xffff_0010)],
        steps in vec((any::<bool>(), 1..9u32), 1..200),
    ) {
        let range = CompletionRange::with_pages(base, pages.min((u32::MAX - base) / PAGE_SIZE));
        let mut device =
            Dispatcher { base: base >> 4, pages: range.pages(), at: base >> 4, toggle: 0 };
        let mut fifo = CompletionFifo::new(range);
        let (mut rd_word, mut written, mut read) = (fifo.initial_word(), 0u64, 0u64);
        for (write, n) in steps {
            if write {
                prop_assert_eq!(
                    device.space(rd_word),
                    range.free_pages(
                        CompletionPtr::from_word(device.word()),
                        CompletionPtr::from_word(rd_word)
                    )
                );
                if n <= device.space(rd_word) {
                    device.push(n);
                    written += u64::from(n);
                }
            } else {
                let ready = fifo.observe(device.word()).unwrap().get();
                prop_assert_eq!(u64::from(ready), written - read);
                for i in 0..ready {
                    let page = (read + u64::from(i)) % u64::from(range.pages());
                    prop_assert_eq!(fifo.page_offset(i), Some(addr32_of(page) * PAGE_SIZE));
                }
                prop_assert_eq!(fifo.page_offset(ready), None);
                let n = n.min(ready);
                rd_word = fifo.release(PageCount::new(n)).unwrap();
                read += u64::from(n);
                prop_assert_eq!(fifo.ready(), PageCount::new(ready - n));
            }
        }
    }

    #[test]
    fn no_word_is_trusted(words in vec(any::<u32>(), 1..50)) {
        let mut fifo = CompletionFifo::default();
        for word in words {
            if let Ok(ready) = fifo.observe(word) {
                prop_assert!(ready.get() <= 8192);
                prop_assert!(fifo.release(PageCount::new(ready.get() + 1)).is_err());
                fifo.release(ready).unwrap();
            }
        }
    }
}

/// Three rounds of the real FIFO, one event at a time, as the seed's loop does it (001 section 7).
#[test]
fn events_wrap_at_8192_pages_with_the_toggle() {
    let mut fifo = CompletionFifo::default();
    assert_eq!(fifo.initial_word(), 0x0440_0010);
    let mut device = Dispatcher { base: 0x0440_0010, pages: 8192, at: 0x0440_0010, toggle: 0 };
    for i in 0..3 * 8192u32 {
        assert_eq!(fifo.observe(device.word()), Ok(PageCount::new(0)));
        device.push(1);
        assert_eq!(fifo.observe(device.word()), Ok(PageCount::new(1)));
        assert_eq!(fifo.host_offset(0), Some(0x0400_0100 + i % 8192 * 4096));
        assert_eq!(fifo.release(PageCount::new(1)), Ok(device.word()));
    }
    assert_eq!(fifo.read_word(), 0x8440_0010);
}

#[test]
fn a_pointer_that_went_back_or_elsewhere_is_an_error() {
    let mut fifo = CompletionFifo::default();
    assert_eq!(fifo.observe(0x0440_0210), Ok(PageCount::new(2)));
    let error = fifo.observe(0x0440_0110).unwrap_err().to_string();
    assert_eq!(
        error,
        "completion write pointer 0x04400110 is 1 pages ahead of the read pointer 0x04400010, \
         expected 2 to 8192"
    );
    let error = fifo.observe(0x0460_0010).unwrap_err().to_string();
    let expected = "completion write pointer 0x04600010 names no page between 0x44000100 and 0x46000100";
    assert_eq!(error, expected);
}

#[test]
fn the_event_is_read_behind_the_echoed_header() {
    let mut page = DispatchCommand::host_event(0xdead_beef).to_bytes().unwrap();
    page.resize(4096, 0);
    assert_eq!(read_event(&page), Ok(0xdead_beef));
    let header = CompletionHeader::parse(&page).unwrap();
    assert_eq!(header, CompletionHeader { is_event: true, length: 32 });
    assert_eq!(header.pages(), 1);
    page[1] = 0;
    let error = read_event(&page).unwrap_err().to_string();
    assert_eq!(error, "offset 0x1: WRITE_LINEAR_H_HOST: found is_event 0, expected 1");
    assert!(read_event(&[]).is_err());
    assert!(read_event(&[0; 4096]).is_err());
}
