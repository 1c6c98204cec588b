//! The bytes of a buffer as a command carries them: whole pages in the order of a walk through
//! device memory, beside the same bytes in the host's array.
//!
//! In the array pages follow one another without gaps, and the last may be partly used; on the
//! device every page is whole. What a page holds behind the array's end is zero when it is written
//! and dropped when it is read.

use std::ops::Range;
use tilework_abi::convert::usize_of;

/// Which pages, in the order of their bytes: `count` pages from `first` on, each `step` behind the
/// one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Pages {
    pub(super) first: u32,
    pub(super) step: u32,
    pub(super) count: u32,
}

impl Pages {
    fn get(self, index: u64) -> u64 {
        u64::from(self.first) + u64::from(self.step) * index
    }
}

/// Pages of a buffer as a run of bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Stream {
    pages: Pages,
    /// Bytes of a page on the device.
    stride: u32,
    /// Bytes of a page in the host's array, at most `stride`.
    page: u32,
    /// Bytes of the array.
    array: usize,
}

impl Stream {
    /// Pages of `stride` bytes on the device and `page` in an array of `array` bytes.
    pub(super) fn new(pages: Pages, stride: u32, page: u32, array: usize) -> Self {
        Self { pages, stride, page, array }
    }

    /// Bytes of a page on the device.
    pub(super) fn stride(&self) -> u32 {
        self.stride
    }

    /// Number of pages.
    pub(super) fn pages(&self) -> u32 {
        self.pages.count
    }

    /// Bytes on the device.
    pub(super) fn bytes(&self) -> u64 {
        u64::from(self.pages.count) * u64::from(self.stride)
    }

    /// The first byte of the array that is meant.
    pub(super) fn first(&self) -> u64 {
        self.pages.get(0) * u64::from(self.page)
    }

    /// The pieces of bytes `range` that lie in one piece in the array as well: offset in the range,
    /// and place in the array.
    fn pieces(&self, range: Range<u64>) -> impl Iterator<Item = (usize, Range<usize>)> {
        let whole = (self.pages.step == 1 && self.page == self.stride).then(|| {
            let start = usize_of(self.first() + range.start);
            let end = start.saturating_add(usize_of(range.end - range.start));
            (0, start.min(self.array)..end.min(self.array))
        });
        let stride = u64::from(self.stride);
        let pages = match whole {
            Some(_) => 0..0,
            None => range.start / stride..range.end.div_ceil(stride),
        };
        let of_page = move |index: u64| {
            let begin = index * stride;
            let from = range.start.max(begin);
            let (from_page, to_page) = (from - begin, (range.end - begin).min(self.page.into()));
            let page = self.pages.get(index) * u64::from(self.page);
            let end = usize_of((page + to_page).max(page + from_page)).min(self.array);
            (usize_of(from - range.start), usize_of(page + from_page).min(end)..end)
        };
        whole.into_iter().chain(pages.map(of_page)).filter(|(_, array)| !array.is_empty())
    }

    /// Appends bytes `range` to `out`.
    pub(super) fn gather(&self, range: Range<u64>, array: &[u8], out: &mut Vec<u8>) {
        let base = out.len();
        out.resize(base + usize_of(range.end - range.start), 0);
        for (at, from) in self.pieces(range) {
            out[base + at..][..from.len()].copy_from_slice(&array[from]);
        }
    }

    /// Has `fetch` fill in what the array has of the `bytes` bytes at `at`; it gets the offset from
    /// there.
    pub(super) fn scatter<E>(
        &self,
        at: u64,
        bytes: u64,
        array: &mut [u8],
        mut fetch: impl FnMut(u64, &mut [u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for (from, to) in self.pieces(at..at + bytes) {
            fetch(from as u64, &mut array[to])?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::convert::Infallible;

    fn streams() -> impl Strategy<Value = Stream> {
        let pages = (0u32..5, 1u32..4, 1u32..12).prop_map(|(first, step, count)| Pages { first, step, count });
        (pages, 1u32..9, 0u32..3, 0usize..200)
            .prop_map(|(pages, page, pad, array)| Stream::new(pages, page + pad, page, array))
    }

    proptest! {
        /// Byte by byte: the stream has the array's bytes and zeros, in whatever pieces it is read.
        #[test]
        fn a_stream_is_its_pages(stream in streams(), cuts in prop::collection::vec(1u64..20, 1..10)) {
            let array: Vec<u8> = (0..stream.array).map(|i| (i % 250) as u8 + 1).collect();
            let expected: Vec<u8> = (0..stream.bytes()).map(|i| {
                let (page, at) = (stream.pages.get(i / u64::from(stream.stride)), i % u64::from(stream.stride));
                let host = page * u64::from(stream.page) + at;
                if at < u64::from(stream.page) { array.get(host as usize).copied().unwrap_or(0) } else { 0 }
            }).collect();
            let (mut found, mut back, mut at) = (Vec::new(), vec![0; array.len()], 0);
            for cut in cuts.into_iter().cycle() {
                let n = cut.min(stream.bytes() - at);
                if n == 0 {
                    break;
                }
                stream.gather(at..at + n, &array, &mut found);
                let fetch = |from: u64, out: &mut [u8]| {
                    out.copy_from_slice(&expected[(at + from) as usize..][..out.len()]);
                    Ok::<_, Infallible>(())
                };
                let Ok(()) = stream.scatter(at, n, &mut back, fetch);
                at += n;
            }
            prop_assert_eq!(&found, &expected);
            for (i, (&was, &is)) in array.iter().zip(&back).enumerate() {
                let in_stream = (0..stream.pages()).any(|p| {
                    let start = stream.pages.get(p.into()) as usize * stream.page as usize;
                    (start..start + stream.page as usize).contains(&i)
                });
                prop_assert_eq!(is, if in_stream { was } else { 0 }, "byte {}", i);
            }
        }
    }
}
