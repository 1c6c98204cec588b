//! Where the pages of a buffer lie, as runs that one command can carry.

use super::stream::{Pages, Stream};
use super::transfer::{Place, Run, is_paged};
use crate::memory::{Bank, Buffer, BufferType, TensorMemoryLayout};
use tilework_abi::board::DramMap;
use tilework_abi::convert::u32_of;

/// The runs of `buffer` on a device whose DRAM is `map`; none for an empty buffer, nor for one in
/// host memory. Interleaved pages are one run through all banks, unless they are too long for the
/// commands that count pages; others are the buffer's own runs.
pub(crate) fn runs(buffer: &Buffer, map: &DramMap) -> Vec<Run> {
    let stride = buffer.aligned_page_size();
    let stream = |pages| Stream::new(pages, stride, buffer.page_size, buffer.bytes());
    let pages = buffer.pages().get();
    let interleaved = buffer.memory_layout == TensorMemoryLayout::Interleaved;
    if interleaved && is_paged(stride) && pages > 0 {
        let place = Place::Banks {
            dram: matches!(buffer.buffer_type, BufferType::Dram | BufferType::Trace),
            start: buffer.first_page(),
            banks: u32_of(buffer.banks().len()),
            base: buffer.address.get(),
        };
        return vec![Run::new(stream(Pages { first: 0, step: 1, count: pages }), place)];
    }
    let at_bank = |run: crate::memory::Run| {
        let tiles = match run.place.bank {
            Bank::Dram(bank) => (map.port(bank as usize, 1), map.port(bank as usize, 0)),
            Bank::Core(tile) => (tile, tile),
            Bank::Host => return None,
        };
        let (write, read) = (tiles.0.encode(), tiles.1.encode());
        let pages = Pages { first: run.first_page, step: run.stride, count: run.pages };
        Some(Run::new(stream(pages), Place::Tile { write, read, address: run.place.address.get() }))
    };
    buffer.runs().filter_map(at_bank).collect()
}
