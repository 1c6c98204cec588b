//! Which bytes of a memory have ever been written: a bit for each, in pages that are made when the
//! first byte of one is written.

use crate::numbers::ByNumber;

/// Bytes that one word of bits stands for.
pub(super) const WORD: u64 = 64;
/// Words of a page: 4 KiB of memory.
pub(super) const WORDS: usize = 64;
pub(super) const PAGE: u64 = WORD * WORDS as u64;

type Page = Box<[u64; WORDS]>;

/// Nothing of it is written.
fn new_page() -> Page {
    Box::new([0; WORDS])
}

/// The written bytes of a small memory, by offset.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    /// The first pages, of which most is written. They lie next to each other: what is looked at
    /// is mostly outside the host's caches, and a table of pages would be, too.
    first: Box<[[u64; WORDS]]>,
    /// The others.
    pages: Vec<Option<Page>>,
}

impl Written {
    /// Of a memory of so many bytes. The pages of the first `used` of them are made at once, while
    /// nothing runs, and so is the last one, where the first buffers are.
    pub(crate) fn of_bytes(bytes: u32, used: u32) -> Self {
        let [all, used] = [bytes, used].map(|bytes| u64::from(bytes).div_ceil(PAGE) as usize);
        let mut pages = vec![None; all.saturating_sub(used)];
        if let Some(last) = pages.last_mut() {
            *last = Some(new_page());
        }
        Self { first: vec![[0; WORDS]; used].into(), pages }
    }
}

/// The written bytes of a large memory of which little is used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sparse {
    /// Asked by number only, never walked.
    pages: ByNumber<u64, Page>,
}

/// What both have in common.
pub(crate) trait Shadow {
    /// The page with this number, if any of it was written.
    fn page(&self, number: u64) -> Option<&[u64; WORDS]>;
    /// The page with this number, to be changed.
    fn made_page(&mut self, number: u64) -> Option<&mut [u64; WORDS]>;
    /// The page with this number, which is made if it is not there.
    fn page_mut(&mut self, number: u64) -> &mut [u64; WORDS];

    /// Marks `len` bytes at `addr` as written, or as not.
    fn mark(&mut self, addr: u64, len: u64, written: bool) {
        let (mut at, end) = (addr, addr.saturating_add(len));
        while at < end {
            let page_end = end.min((at / PAGE + 1) * PAGE);
            let page = match self.made_page(at / PAGE) {
                Some(page) => page,
                None if written => self.page_mut(at / PAGE),
                // Nothing of it is.
                None => {
                    at = page_end;
                    continue;
                }
            };
            while at < page_end {
                let number = (at % PAGE / WORD) as usize;
                let whole = ((page_end - at) / WORD) as usize;
                if at % WORD == 0 && whole > 0 {
                    page[number..number + whole].fill(if written { u64::MAX } else { 0 });
                    at += whole as u64 * WORD;
                    continue;
                }
                let stop = page_end.min((at / WORD + 1) * WORD);
                let bits = ones(stop - at) << (at % WORD);
                let word = &mut page[number];
                if written {
                    *word |= bits
                } else {
                    *word &= !bits
                }
                at = stop;
            }
        }
    }

    /// Marks words of four bytes as written: of the 64 words number `page`, a bit each.
    fn mark_words(&mut self, page: u64, words: u64) {
        const GROUPS: u64 = 4 * 64 / WORD;
        let group = page * GROUPS;
        let bytes = &mut self.page_mut(group / WORDS as u64)[(group % WORDS as u64) as usize..];
        for (at, bytes) in (0..GROUPS).zip(bytes) {
            *bytes |= bytes_of_words(words >> (16 * at) & 0xFFFF);
        }
    }

    /// Whether any of the `len` bytes at `addr`, which do not cross 64 bytes, was written.
    #[inline]
    fn any(&self, addr: u64, len: u64) -> bool {
        let Some(page) = self.page(addr / PAGE) else { return false };
        page[(addr % PAGE / WORD) as usize] & ones(len) << (addr % WORD) != 0
    }

    /// Whether all of the bytes from `at` to `end` were written.
    fn all(&self, mut at: u64, end: u64) -> bool {
        while at < end {
            let Some(page) = self.page(at / PAGE) else { return false };
            let stop = end.min((at / PAGE + 1) * PAGE);
            let words = (at % PAGE / WORD) as usize..((stop - 1) % PAGE / WORD) as usize + 1;
            let Some(words) = page.get(words) else { return false };
            // Of the first and the last word some bytes may lie outside.
            let (before, behind) = (ones(at % WORD), !ones((stop - 1) % WORD + 1));
            let is_whole = match words {
                [] => true,
                [word] => word | before | behind == u64::MAX,
                [first, within @ .., last] => {
                    let within = within.iter().fold(u64::MAX, |all, word| all & word);
                    (first | before) & within & (last | behind) == u64::MAX
                }
            };
            if !is_whole {
                return false;
            }
            at = stop;
        }
        true
    }

    /// The first run of at least `least` bytes, which are some, within the `len` at `addr` of which
    /// none was written: its first byte and its length.
    fn gap(&self, addr: u64, len: u64, least: u64) -> Option<(u64, u64)> {
        let (mut at, end) = (addr, addr.saturating_add(len));
        // Mostly all was.
        if self.all(at, end) {
            return None;
        }
        let mut gap = (at, 0);
        let mut page = (u64::MAX, None);
        while at < end {
            let stop = end.min((at / WORD + 1) * WORD);
            if page.0 != at / PAGE {
                page = (at / PAGE, self.page(at / PAGE));
            }
            let word = page.1.map_or(0, |page| page[(at % PAGE / WORD) as usize]);
            let span = ones(stop - at);
            match word >> (at % WORD) & span {
                0 => gap.1 += stop - at,
                bits if bits == span => {
                    if gap.1 >= least {
                        return Some(gap);
                    }
                    gap = (stop, 0);
                }
                bits => {
                    for byte in 0..stop - at {
                        if bits >> byte & 1 == 0 {
                            gap.1 += 1;
                            continue;
                        }
                        if gap.1 >= least {
                            return Some(gap);
                        }
                        gap = (at + byte + 1, 0);
                    }
                }
            }
            at = stop;
        }
        (gap.1 >= least && gap.1 > 0).then_some(gap)
    }
}

/// A bit for each of the four bytes of each of 16 words.
const fn bytes_of_words(words: u64) -> u64 {
    let words = (words | words << 24) & 0x0000_00FF_0000_00FF;
    let words = (words | words << 12) & 0x000F_000F_000F_000F;
    let words = (words | words << 6) & 0x0303_0303_0303_0303;
    let words = (words | words << 3) & 0x1111_1111_1111_1111;
    words * 0xF
}

/// So many ones, at most 64.
pub(super) const fn ones(count: u64) -> u64 {
    if count >= WORD { u64::MAX } else { (1 << count) - 1 }
}

impl Shadow for Written {
    #[inline]
    fn page(&self, number: u64) -> Option<&[u64; WORDS]> {
        let number = usize::try_from(number).ok()?;
        match self.first.get(number) {
            Some(page) => Some(page),
            None => self.pages.get(number - self.first.len())?.as_deref(),
        }
    }
    #[inline]
    fn made_page(&mut self, number: u64) -> Option<&mut [u64; WORDS]> {
        let (number, first) = (usize::try_from(number).ok()?, self.first.len());
        match self.first.get_mut(number) {
            Some(page) => Some(page),
            None => self.pages.get_mut(number - first)?.as_deref_mut(),
        }
    }
    #[inline]
    fn page_mut(&mut self, number: u64) -> &mut [u64; WORDS] {
        // A memory of this kind is small: the callers check addresses.
        let (number, first) = (number as usize, self.first.len());
        if number < first {
            return &mut self.first[number];
        }
        if number - first >= self.pages.len() {
            self.pages.resize(number - first + 1, None);
        }
        self.pages[number - first].get_or_insert_with(new_page)
    }
}

impl Shadow for Sparse {
    #[inline]
    fn page(&self, number: u64) -> Option<&[u64; WORDS]> {
        self.pages.get(&number).map(|page| &**page)
    }
    #[inline]
    fn made_page(&mut self, number: u64) -> Option<&mut [u64; WORDS]> {
        self.pages.get_mut(&number).map(|page| &mut **page)
    }
    #[inline]
    fn page_mut(&mut self, number: u64) -> &mut [u64; WORDS] {
        self.pages.entry(number).or_insert_with(new_page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilework_rng::SplitMix64;

    fn check(mut shadow: impl Shadow) {
        assert_eq!(shadow.gap(100, 200, 64), Some((100, 200)));
        shadow.mark(100, 100, true);
        assert!(shadow.any(96, 8) && !shadow.any(96, 4) && shadow.any(199, 1) && !shadow.any(200, 4));
        assert_eq!(shadow.gap(100, 100, 1), None);
        assert_eq!(shadow.gap(100, 163, 64), None, "63 bytes behind");
        assert_eq!(shadow.gap(100, 164, 64), Some((200, 64)));
        assert_eq!(shadow.gap(0, 4096, 64), Some((0, 100)));
        shadow.mark(4000, 200, true);
        assert_eq!(shadow.gap(4000, 200, 1), None, "across pages");
        shadow.mark(4090, 10, false);
        assert_eq!(shadow.gap(4000, 200, 1), Some((4090, 10)));
    }

    #[test]
    fn words_are_marked_as_one_by_one() {
        let mut random = SplitMix64::new(11);
        let (mut at_once, mut one_by_one) = (Written::default(), Written::default());
        for round in 0..500 {
            let (page, words) = (random.bits() % 32, random.bits() & random.bits());
            // Some of them without a word.
            let words = if round % 10 == 0 { 0 } else { words };
            at_once.mark_words(page, words);
            for word in (0..64).filter(|word| words >> word & 1 != 0) {
                one_by_one.mark(256 * page + 4 * word, 4, true);
            }
            for number in 0..2 {
                let bits = |memory: &Written| memory.page(number).copied().unwrap_or([0; WORDS]);
                assert_eq!(bits(&at_once), bits(&one_by_one), "round {round}");
            }
        }
    }

    /// As a table by bytes has it, for spans of all lengths that begin anywhere, or with a word.
    #[test]
    fn spans_are_those_of_a_table_by_bytes() {
        const BYTES: u64 = 3 * PAGE;
        let mut random = SplitMix64::new(13);
        let (mut memory, mut table) = (Written::of_bytes(BYTES as u32, PAGE as u32), [false; BYTES as usize]);
        let (mut whole, mut with_gap) = (0, 0);
        for _ in 0..5000 {
            let mut below = |end: u64| random.bits() % end;
            let at = if below(2) == 0 { below(BYTES) } else { below(BYTES / WORD) * WORD };
            let most = [8, 200, PAGE, 2 * PAGE][below(4) as usize];
            let len = (1 + below(most)).min(BYTES - at);
            let span = at as usize..(at + len) as usize;
            if below(3) == 0 {
                let is_written = below(8) != 0;
                memory.mark(at, len, is_written);
                table[span.clone()].fill(is_written);
            }
            let least = 1 + below(len.min(64));
            let mut run = (at, 0);
            let found = span.clone().find_map(|byte| {
                let gap = run;
                run = if table[byte] { (byte as u64 + 1, 0) } else { (gap.0, gap.1 + 1) };
                (table[byte] && gap.1 >= least).then_some(gap)
            });
            let expected = found.or(Some(run).filter(|(_, gap)| *gap >= least));
            assert_eq!(memory.gap(at, len, least), expected, "{len} bytes at {at}");
            assert_eq!(memory.all(at, at + len), table[span].iter().all(|is_written| *is_written));
            whole += u32::from(memory.all(at, at + len));
            with_gap += u32::from(expected.is_some());
        }
        assert!(whole > 500 && with_gap > 500, "{whole} spans are whole, {with_gap} have gaps");
    }

    #[test]
    fn bytes_are_marked_and_gaps_are_found() {
        check(Written::default());
        check(Sparse::default());
    }
}
