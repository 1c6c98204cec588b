//! Where the pages of a buffer lie, as runs that one command can carry or that one walk covers.

use super::stream::{Pages, Stream};
use super::transfer::{Place, Run, is_paged};
use crate::memory::Buffer;
use tilework_abi::board::DramMap;

/// The runs of `buffer`, which lies in the DRAM of `map`; none for an empty one.
pub(crate) fn runs(buffer: &Buffer, map: &DramMap) -> Vec<Run> {
    let (pages, banks, stride) = (buffer.pages().get(), buffer.banks, buffer.page_size);
    let base = buffer.address.get();
    let stream = |pages| Stream::new(pages, stride, stride, buffer.bytes());
    if pages == 0 {
        return Vec::new();
    }
    if is_paged(stride) {
        let all = stream(Pages::Every { first: 0, step: 1, count: pages });
        return vec![Run::new(all, Place::Banks { dram: true, start: 0, banks, base })];
    }
    let bank = |bank: u32| {
        let count = (pages - bank).div_ceil(banks);
        let (write, read) = (map.port(bank as usize, 1).encode(), map.port(bank as usize, 0).encode());
        Run::new(stream(Pages::Every { first: bank, step: banks, count }), Place::Tile { write, read, address: base })
    };
    (0..banks.min(pages)).map(bank).collect()
}
