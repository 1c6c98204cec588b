//! The consumer's side of a page ring: a fence that reads must not pass, and deferred release of
//! blocks.
//!
//! The ring is divided into blocks. The fence never passes the end of the block being read, so that
//! reading one block at a time bounds what a release must wait for. A finished block is not given
//! back at once: its bytes may still be the source of NoC writes. It is given back when the *next*
//! block is finished, by when its writes have nearly always left (seed 001 figure 6).
//!
//! "Have left" is known per block, not guessed from a count: the writes of one block carry one of
//! two transaction ids, alternating, and the NIU counts the writes of each id that are still being
//! read out of L1 (`NIU_MST_WRITE_REQS_OUTGOING_ID`, NoC/Counters.md). The count of requests *sent*
//! is not enough; it advances before the data has been read (same page).

use tilework_abi::cq::count::WrapCount;

/// The read position in a ring of `PAGES` pages of `1 << LOG_PAGE` bytes at `BASE`, in `BLOCKS`
/// blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PageReader<const BASE: u32, const LOG_PAGE: u32, const PAGES: u32, const BLOCKS: u32> {
    /// Next byte to read.
    at: u32,
    /// First byte that may not be read.
    fence: u32,
    /// End of the block being read.
    block_end: u32,
    /// Pages in front of the fence since the start.
    taken: WrapCount,
    /// The producer's count when it was last looked at.
    filled: WrapCount,
    /// Which of the two ids the writes of this block carry.
    parity: bool,
    /// Whether the block before this one has yet to be given back.
    previous_held: bool,
}

impl<const BASE: u32, const LOG_PAGE: u32, const PAGES: u32, const BLOCKS: u32>
    PageReader<BASE, LOG_PAGE, PAGES, BLOCKS>
{
    const END: u32 = BASE + (PAGES << LOG_PAGE);
    const BLOCK: u32 = (PAGES / BLOCKS) << LOG_PAGE;
    const SHAPE: () = assert!(PAGES.is_multiple_of(BLOCKS) && BLOCKS >= 2);
    /// Pages of a block.
    pub const BLOCK_PAGES: u32 = PAGES / BLOCKS;
    /// The longest command that always gets through, in pages: the producer needs all of it free
    /// while the consumer may hold on to one whole block and all but one page of the next.
    pub const MAX_COMMAND_PAGES: u32 = PAGES - 2 * Self::BLOCK_PAGES + 1;

    /// At the ring's base, when the producer's count is `start` (zero, except in tests of the
    /// wrap).
    pub const fn new(start: WrapCount) -> Self {
        #[allow(clippy::let_unit_value)]
        let () = Self::SHAPE;
        Self {
            at: BASE,
            fence: BASE,
            block_end: BASE + Self::BLOCK,
            taken: start,
            filled: start,
            parity: false,
            previous_held: false,
        }
    }

    /// Address of the next byte to read. Meaningful when [`available`](Self::available) is not
    /// zero.
    #[inline(always)]
    pub const fn at(&self) -> u32 {
        self.at
    }

    /// Contiguous bytes that may be read at [`at`](Self::at).
    #[inline(always)]
    pub const fn available(&self) -> u32 {
        self.fence - self.at
    }

    /// Moves over `bytes`, at most [`available`](Self::available).
    #[inline(always)]
    pub fn advance(&mut self, bytes: u32) {
        self.at += bytes;
    }

    /// Moves to the start of the next page. Commands begin on pages, so the rest of a command's
    /// last page is padding; whole pages are taken, so this never passes the fence.
    #[inline(always)]
    pub fn next_page(&mut self) {
        let into = (self.at - BASE) & ((1 << LOG_PAGE) - 1);
        if into != 0 {
            self.at += (1 << LOG_PAGE) - into;
        }
    }

    /// Which of the two ids the writes of the block being read must carry.
    #[inline(always)]
    pub const fn parity(&self) -> bool {
        self.parity
    }

    /// Whether the block is used up: everything up to its end was taken and read.
    #[inline(always)]
    pub const fn block_done(&self) -> bool {
        self.at == self.block_end
    }

    /// Moves to the next block. True when the block before the finished one must be given back now
    /// ([`BLOCK_PAGES`](Self::BLOCK_PAGES) pages): its writes carried the id that
    /// [`parity`](Self::parity) names from here on, and must have left first.
    #[must_use]
    #[inline]
    pub fn next_block(&mut self) -> bool {
        if self.block_end == Self::END {
            self.at = BASE;
            self.fence = BASE;
            self.block_end = BASE;
        }
        self.block_end += Self::BLOCK;
        self.parity = !self.parity;
        core::mem::replace(&mut self.previous_held, true)
    }

    /// Whether more pages are known to be filled than were taken.
    #[inline(always)]
    pub fn knows_more(&self) -> bool {
        self.filled != self.taken
    }

    /// Whether the producer's count `filled` says that there are pages to take.
    #[inline(always)]
    pub fn would_take(&self, filled: WrapCount) -> bool {
        filled != self.taken
    }

    /// Stores the producer's count.
    #[inline(always)]
    pub fn note(&mut self, filled: WrapCount) {
        self.filled = filled;
    }

    /// Moves the fence over the pages that are known to be filled, up to the block's end.
    #[inline]
    pub fn take(&mut self) {
        let known = self.filled.since(self.taken);
        let limit = (self.block_end - self.fence) >> LOG_PAGE;
        let pages = if known < limit { known } else { limit };
        self.taken = self.taken.plus(pages);
        self.fence += pages << LOG_PAGE;
    }

    /// Pages to give back at the end: those of a held block, and those of the present one that were
    /// read.
    pub fn drain(&mut self) -> u32 {
        let block_start = self.block_end - Self::BLOCK;
        let read = (self.at - block_start) >> LOG_PAGE;
        read + if core::mem::take(&mut self.previous_held) { Self::BLOCK_PAGES } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::PageWriter;
    use proptest::prelude::*;
    use std::collections::VecDeque;
    use std::vec::Vec;

    const BASE: u32 = 0x1000;
    const LOG: u32 = 4;
    const PAGES: u32 = 16;
    type Reader = PageReader<BASE, LOG, PAGES, 4>;
    type Writer = PageWriter<BASE, LOG, PAGES>;

    /// Both ends of a ring with its memory, and what must be conserved.
    struct Ring {
        reader: Reader,
        writer: Writer,
        memory: Vec<u8>,
        credits: WrapCount,
        filled: WrapCount,
        start: u32,
        given_back: u32,
    }

    impl Ring {
        fn new(start: u32) -> Self {
            Self {
                reader: Reader::new(WrapCount(start)),
                writer: Writer::new(WrapCount(start)),
                memory: std::vec![0xEE; (PAGES << LOG) as usize],
                credits: WrapCount(start).plus(PAGES),
                filled: WrapCount(start),
                start,
                given_back: 0,
            }
        }
        /// What the prefetcher does with one command; false when credits are missing.
        fn put(&mut self, data: &[u8], flush: bool) -> bool {
            let need = self.writer.pages_needed(data.len() as u32);
            if !self.writer.can_acquire(self.credits, need) {
                return false;
            }
            self.writer.acquire(need);
            let mut done = 0;
            while done < data.len() {
                let (at, len) = self.writer.piece((data.len() - done) as u32);
                let at = (at - BASE) as usize;
                self.memory[at..at + len as usize].copy_from_slice(&data[done..done + len as usize]);
                done += len as usize;
            }
            if flush {
                self.filled = self.filled.plus(self.writer.release());
            }
            true
        }
        fn put_fits(&self, data: &[u8]) -> bool {
            self.writer.can_acquire(self.credits, self.writer.pages_needed(data.len() as u32))
        }
        /// What the dispatcher does to see more data; false when there is none.
        fn wait(&mut self) -> bool {
            if self.reader.available() == 0 {
                if self.reader.block_done() && self.reader.next_block() {
                    self.give(Reader::BLOCK_PAGES);
                }
                if !self.reader.knows_more() {
                    if !self.reader.would_take(self.filled) {
                        return false;
                    }
                    self.reader.note(self.filled);
                }
                self.reader.take();
            }
            true
        }
        fn give(&mut self, pages: u32) {
            // The bytes of given pages are the producer's again.
            for k in 0..pages {
                let page = ((self.given_back + k) % PAGES) << LOG;
                self.memory[page as usize..(page + (1 << LOG)) as usize].fill(0xEE);
            }
            self.given_back += pages;
            self.credits = self.credits.plus(pages);
        }
        fn get(&mut self, len: usize) -> Option<Vec<u8>> {
            let mut out = Vec::new();
            while out.len() < len {
                if !self.wait() {
                    return None;
                }
                let n = self.reader.available().min((len - out.len()) as u32);
                assert!(n > 0);
                let at = (self.reader.at() - BASE) as usize;
                out.extend_from_slice(&self.memory[at..at + n as usize]);
                self.reader.advance(n);
            }
            self.reader.next_page();
            Some(out)
        }
        fn check(&self) {
            // Credits are conserved: free pages, acquired pages and pages not given back make up
            // the ring.
            let filled = self.filled.since(WrapCount(self.start));
            let free = self.credits.0.wrapping_sub(self.start);
            assert_eq!(free, PAGES + self.given_back);
            assert!(filled + self.writer.held() >= self.given_back);
            assert!(filled + self.writer.held() - self.given_back <= PAGES);
        }
    }

    fn starts() -> impl Strategy<Value = u32> {
        prop_oneof![Just(0u32), Just(u32::MAX - 20), Just(u32::MAX), Just((1 << 31) - 9), any::<u32>()]
    }

    proptest! {
        /// tt-metal#9459, #9113, #37233: commands of every length at every offset, counters
        /// wrapping, credits conserved.
        #[test]
        fn commands_pass_unharmed_at_every_offset(
            start in starts(),
            sizes in prop::collection::vec((1usize..=(Reader::MAX_COMMAND_PAGES << LOG) as usize, any::<bool>()), 1..200),
            eager in any::<bool>(),
        ) {
            let mut ring = Ring::new(start);
            let mut sent = VecDeque::new();
            let mut next = 0u8;
            for (size, lag) in sizes {
                let data: Vec<u8> = (0..size).map(|_| { next = next.wrapping_mul(13).wrapping_add(7); next }).collect();
                while !ring.put(&data, true) {
                    match sent.pop_front() {
                        Some(expected) => {
                            let expected: Vec<u8> = expected;
                            prop_assert_eq!(ring.get(expected.len()).expect("the command was released"), expected);
                        }
                        // The consumer waits for more, which is when it gives blocks back; then it
                        // must be enough.
                        None => prop_assert!(!ring.wait() && ring.put_fits(&data)),
                    }
                    ring.check();
                }
                sent.push_back(data);
                if eager || lag {
                    let expected: Vec<u8> = sent.pop_front().expect("just pushed");
                    prop_assert_eq!(ring.get(expected.len()).expect("the command was released"), expected);
                }
                ring.check();
            }
            while let Some(expected) = sent.pop_front() {
                prop_assert_eq!(ring.get(expected.len()).expect("the command was released"), expected);
            }
            let rest = ring.reader.drain();
            ring.give(rest);
            prop_assert!(ring.writer.all_back(ring.credits));
        }

        /// RELAY_INLINE_NOFLUSH: pieces appended to an open page arrive as one command and cost its
        /// pages once.
        #[test]
        fn appended_pieces_are_one_command(
            start in starts(),
            commands in prop::collection::vec(prop::collection::vec(1usize..40, 1..4), 1..60),
        ) {
            let mut ring = Ring::new(start);
            for pieces in commands {
                let all: Vec<u8> = (0..pieces.iter().sum::<usize>()).map(|i| i as u8).collect();
                let mut at = 0;
                for (i, len) in pieces.iter().enumerate() {
                    prop_assert!(ring.put(&all[at..at + len], i + 1 == pieces.len()));
                    at += len;
                    ring.check();
                }
                prop_assert_eq!(ring.get(all.len()).expect("released"), all);
                ring.wait();
            }
            let rest = ring.reader.drain();
            ring.give(rest);
            prop_assert!(ring.writer.all_back(ring.credits));
        }
    }

    proptest! {
        /// Commands longer than the ring, appended in portions as pages come free: full pages are
        /// shown at once, the others at the end, and each page once.
        #[test]
        fn portions_of_long_commands_arrive_in_order(
            start in starts(),
            commands in prop::collection::vec(1usize..((5 * PAGES) << LOG) as usize, 1..12),
            portion in 1u32..((4 * PAGES) << LOG),
        ) {
            let mut ring = Ring::new(start);
            let mut pages = 0;
            for length in commands {
                let data: Vec<u8> = (0..length).map(|i| (i * 7 + length) as u8).collect();
                let (mut done, mut got) = (0, Vec::new());
                while got.len() < length {
                    let room = ring.writer.room(ring.credits).min(portion).min((length - done) as u32);
                    if room != 0 {
                        ring.writer.acquire(ring.writer.pages_needed(room));
                        let mut left = room;
                        while left != 0 {
                            let (at, len) = ring.writer.piece(left);
                            let (at, n) = ((at - BASE) as usize, len as usize);
                            ring.memory[at..at + n].copy_from_slice(&data[done..done + n]);
                            done += n;
                            left -= len;
                        }
                        let last = done == length;
                        let full = if last { ring.writer.release() } else { ring.writer.release_full() };
                        ring.filled = ring.filled.plus(full);
                        pages += full;
                        prop_assert!(ring.writer.held() <= 1);
                        continue;
                    }
                    prop_assert!(ring.wait(), "no room, and nothing to read");
                    let n = (ring.reader.available() as usize).min(length - got.len());
                    let at = (ring.reader.at() - BASE) as usize;
                    got.extend_from_slice(&ring.memory[at..at + n]);
                    ring.reader.advance(n as u32);
                    ring.check();
                }
                ring.reader.next_page();
                prop_assert!(got == data);
            }
            let rest = ring.reader.drain();
            ring.give(rest);
            prop_assert!(ring.writer.all_back(ring.credits));
            prop_assert_eq!(pages, ring.filled.since(WrapCount(start)));
        }
    }

    /// A block is given back one block late, and its id comes round again only then.
    #[test]
    fn blocks_are_given_back_one_late() {
        let mut ring = Ring::new(u32::MAX - 3);
        let mut parities = Vec::new();
        for block in 0..6 {
            parities.push(ring.reader.parity());
            for _ in 0..4 {
                assert!(ring.put(&[1; 16], true));
                ring.get(16).expect("released");
            }
            assert_eq!(ring.given_back, 4 * u32::max(block, 1) - 4);
            ring.wait();
            assert_eq!(ring.given_back, 4 * block);
        }
        assert_eq!(parities, [false, true, false, true, false, true]);
    }

    /// The longest command gets through wherever the consumer stands.
    #[test]
    fn the_longest_command_never_deadlocks() {
        for before in 0..PAGES {
            let mut ring = Ring::new(0);
            for _ in 0..before {
                assert!(ring.put(&[2; 16], true));
                ring.get(16).expect("released");
                ring.wait();
            }
            let long = std::vec![3; (Reader::MAX_COMMAND_PAGES << LOG) as usize];
            assert!(ring.put(&long, true), "after {before} pages");
            assert_eq!(ring.get(long.len()).expect("released"), long);
        }
    }
}
