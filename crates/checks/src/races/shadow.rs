//! The last accesses to each word of a memory.
//!
//! A line of 64 bytes that is only accessed as a whole, as data that the NoC moves is, has one cell
//! for all its words; so has one through which a core has gone word by word, which keeps what
//! differs from word to word beside it. Pages exist where something was accessed.

use super::clock::{Part, Stamp};
use crate::numbers::ByNumber;
use tilework_sim::LineAccess;

/// Bytes of a line, of a word, of a page.
pub(super) const LINE: u64 = 64;
const WORD: u64 = 4;
const PAGE: u64 = 4096;
/// Words of a line, lines of a page.
const WORDS: usize = (LINE / WORD) as usize;
const LINES: usize = (PAGE / LINE) as usize;
/// All bytes of a word.
pub(super) const ALL: u8 = 0xF;

/// An access as it is kept, and as reports name it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Access {
    pub stamp: Stamp,
    /// The instruction that did it or started it.
    pub pc: u32,
    /// The core that did it or started it: an index into `Processor::ALL`, or [`Access::HOST`].
    pub by: u8,
    /// Which bytes of the word, of accesses to less than a word.
    pub mask: u8,
    /// So few bytes that it may be a flag.
    pub small: bool,
    /// The count of that core's own part then: who knows of it knows that this was started.
    pub started: u32,
    pub at: u64,
}

impl Access {
    /// `by` of what no core does.
    pub(super) const HOST: u8 = 5;

    pub(super) fn exists(&self) -> bool {
        self.stamp.count != 0
    }

    fn meets(&self, other: &Self) -> bool {
        self.exists() && self.mask & other.mask != 0
    }
}

/// Two accesses that nothing orders; the later one is the one that was being checked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Conflict {
    pub earlier: Access,
    /// What each does.
    pub earlier_writes: bool,
    pub later_writes: bool,
    /// The first word or line of the conflict.
    pub addr: u64,
}

/// What was last done to a word, or to several at once.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    write: Access,
    read: Access,
    /// Further reads of others since the write.
    reads: Vec<Access>,
}

impl Cell {
    /// The first access that a write conflicts with.
    fn before_write(&self, access: &Access, ordered: &impl Fn(Stamp) -> bool) -> Option<(Access, bool)> {
        let hit = |other: &Access| other.meets(access) && !ordered(other.stamp);
        if hit(&self.write) {
            return Some((self.write, true));
        }
        std::iter::once(&self.read).chain(&self.reads).find(|read| hit(read)).map(|read| (*read, false))
    }

    /// A write: the first access that it conflicts with, and whether that writes.
    pub(super) fn write(&mut self, access: Access, ordered: &impl Fn(Stamp) -> bool) -> Option<(Access, bool)> {
        let conflict = self.before_write(&access, ordered);
        self.reads.clear();
        self.write = access;
        self.read = Access::default();
        conflict
    }

    /// A read, likewise.
    pub(super) fn read(&mut self, access: Access, ordered: &impl Fn(Stamp) -> bool) -> Option<(Access, bool)> {
        let conflict = (self.write.meets(&access) && !ordered(self.write.stamp)).then_some((self.write, true));
        let replaces = |old: &Access| {
            !old.exists()
                || (old.mask & !access.mask == 0 && (old.stamp.part == access.stamp.part || ordered(old.stamp)))
        };
        if replaces(&self.read) {
            self.read = access;
        } else {
            self.reads.retain(|read| !replaces(read));
            self.reads.push(access);
        }
        conflict
    }
}

/// What was last done to the words of a line.
#[derive(Clone, Debug, Default)]
pub(super) struct Line {
    /// What all words have that are not divided.
    whole: Cell,
    /// A bit for each word that has been accessed by itself since the line was last written as a
    /// whole: [`Line::words`] counts for it.
    divided: u16,
    /// A core has stored, and has loaded since, all words one after the other: `whole` has its
    /// accesses to the first one.
    stored: Option<LineAccess>,
    loaded: Option<LineAccess>,
    /// Each word for itself. They stay when they do not count any more: most lines are divided
    /// again and again.
    words: Option<Box<[Cell; WORDS]>>,
}

impl Line {
    /// All words have `cell`.
    pub(super) fn set_whole(&mut self, cell: &Cell) {
        self.whole.clone_from(cell);
        (self.divided, self.stored, self.loaded) = (0, None, None);
    }

    /// A write of bytes `from..to`: the first access that it conflicts with, and whether that
    /// writes.
    #[inline]
    pub(super) fn write(
        &mut self,
        (from, to): (u64, u64),
        access: Access,
        ordered: &impl Fn(Stamp) -> bool,
    ) -> Option<(Access, bool)> {
        if to - from < LINE {
            return each_word(self, from, to, |cell, mask| cell.write(Access { mask, ..access }, ordered));
        }
        let whole = Access { mask: ALL, ..access };
        self.make_even(ordered);
        let found = self.each(|cell| cell.before_write(&whole, ordered));
        self.whole = Cell { write: whole, ..Cell::default() };
        (self.divided, self.stored, self.loaded) = (0, None, None);
        found
    }

    /// A read, likewise.
    #[inline]
    pub(super) fn read(
        &mut self,
        (from, to): (u64, u64),
        access: Access,
        ordered: &impl Fn(Stamp) -> bool,
    ) -> Option<(Access, bool)> {
        if to - from < LINE {
            return each_word(self, from, to, |cell, mask| cell.read(Access { mask, ..access }, ordered));
        }
        self.make_even(ordered);
        // All that it had comes before this one.
        self.loaded = None;
        self.each(|cell| cell.read(Access { mask: ALL, ..access }, ordered))
    }

    /// A word by itself.
    #[inline]
    fn word(&mut self, word: usize) -> &mut Cell {
        let Self { whole, divided, stored, loaded, words } = self;
        let cell = &mut words.get_or_insert_with(Box::default)[word];
        if *divided >> word & 1 == 0 {
            *divided |= 1 << word;
            cell.clone_from(whole);
            of_word(&mut cell.write, stored.as_ref(), word);
            of_word(&mut cell.read, loaded.as_ref(), word);
        }
        cell
    }

    /// The last write of a word.
    fn last_write(&self, word: usize) -> Access {
        if let Some(words) = self.words.as_ref().filter(|_| self.divided >> word & 1 != 0) {
            return words[word].write;
        }
        let mut write = self.whole.write;
        of_word(&mut write, self.stored.as_ref(), word);
        write
    }

    /// Before all words are accessed at once: what differs between words is kept by word, unless
    /// all that the line has comes before the access, so that nothing of it is asked for.
    fn make_even(&mut self, ordered: &impl Fn(Stamp) -> bool) {
        if self.stored.is_none() && self.loaded.is_none() {
            return;
        }
        let last = |mut access: Access, line: &Option<LineAccess>| {
            of_word(&mut access, line.as_ref(), WORDS - 1);
            access.stamp
        };
        if !ordered(last(self.whole.write, &self.stored)) || !ordered(last(self.whole.read, &self.loaded)) {
            for word in 0..WORDS {
                self.word(word);
            }
            (self.stored, self.loaded) = (None, None);
        }
    }

    /// Whether all words can be written, or read, one after the other, from the first one on with
    /// `access`, and nothing else needs to be known than that all that was before comes before.
    fn permits(&mut self, access: Access, line: &LineAccess, ordered: &impl Fn(Stamp) -> bool) -> bool {
        let access = Access { mask: ALL, ..access };
        self.make_even(ordered);
        if line.stores {
            return self.each(|cell| cell.before_write(&access, ordered)).is_none();
        }
        let comes_before = |other: &Access| !other.exists() || ordered(other.stamp);
        let Self { whole, divided, .. } = self;
        *divided == 0 && comes_before(&whole.write) && comes_before(&whole.read) && whole.reads.is_empty()
    }

    /// They have been.
    fn goes_through(&mut self, access: Access, line: LineAccess) {
        let access = Access { mask: ALL, ..access };
        if line.stores {
            (self.divided, self.stored, self.loaded) = (0, Some(line), None);
            self.whole = Cell { write: access, ..Cell::default() };
        } else {
            self.whole.read = access;
            self.loaded = Some(line);
        }
    }

    /// Does something with each cell that counts, and gives the first result by the order of words.
    fn each<T>(&mut self, mut f: impl FnMut(&mut Cell) -> Option<T>) -> Option<T> {
        let Self { whole, divided, words, .. } = self;
        let undivided = divided.trailing_ones() as usize;
        let mut first = None;
        let words = words.iter_mut().flat_map(|words| words.iter_mut()).enumerate();
        for (number, word) in words.take(if *divided == 0 { 0 } else { WORDS }) {
            if number == undivided {
                first = first.or(f(whole));
            } else if *divided >> number & 1 != 0 {
                first = first.or(f(word));
            }
        }
        if *divided == 0 { f(whole) } else { first }
    }
}

/// What was last done to each word of one memory.
#[derive(Clone, Debug, Default)]
pub(super) struct Shadow {
    /// Pages of the first addresses, as all of L1 are, by number.
    near: Vec<Option<Page>>,
    far: ByNumber<u64, Page>,
}

type Page = Box<[Line; LINES]>;

/// Pages that are found by their number.
const NEAR: usize = 512;

impl Shadow {
    /// Records a write of `len` bytes at `addr`. Gives the first earlier access that `ordered` does
    /// not say comes before.
    pub(super) fn write(
        &mut self,
        addr: u64,
        len: u64,
        access: Access,
        ordered: &impl Fn(Stamp) -> bool,
    ) -> Option<Conflict> {
        if let Some(mask) = in_word(addr, len) {
            let found = self.word(addr).write(Access { mask, ..access }, ordered);
            return found.map(|(earlier, earlier_writes)| Conflict {
                earlier,
                earlier_writes,
                later_writes: true,
                addr,
            });
        }
        let mut first = None;
        self.lines(addr, len, |line, at, from, to| {
            let found = line.write((from, to), access, ordered);
            keep_first(&mut first, found, true, at);
        });
        first
    }

    /// Records a read, likewise.
    pub(super) fn read(
        &mut self,
        addr: u64,
        len: u64,
        access: Access,
        ordered: &impl Fn(Stamp) -> bool,
    ) -> Option<Conflict> {
        if let Some(mask) = in_word(addr, len) {
            let found = self.word(addr).read(Access { mask, ..access }, ordered);
            return found.map(|(earlier, earlier_writes)| Conflict {
                earlier,
                earlier_writes,
                later_writes: false,
                addr,
            });
        }
        let mut first = None;
        self.lines(addr, len, |line, at, from, to| {
            let found = line.read((from, to), access, ordered);
            keep_first(&mut first, found, false, at);
        });
        first
    }

    /// Whether it can be recorded at once that a core goes through a line, from its first word on
    /// with `access`: all earlier accesses come before, and of each word only the last is kept.
    pub(super) fn may_go_through(
        &mut self,
        access: Access,
        line: &LineAccess,
        ordered: &impl Fn(Stamp) -> bool,
    ) -> bool {
        self.line(line.addr.into()).permits(access, line, ordered)
    }

    /// Records that a core has gone through a line, as it may. Each store has the stamp that
    /// follows that of the word before.
    pub(super) fn goes_through(&mut self, access: Access, line: LineAccess) {
        self.line(line.addr.into()).goes_through(access, line);
    }

    /// The last write of the word at `addr`.
    pub(super) fn last_write(&mut self, addr: u64) -> Access {
        self.line(addr).last_write((addr % LINE / WORD) as usize)
    }

    /// The last count of `part` among the last writes of `len` bytes at `addr`.
    pub(super) fn last_of(&mut self, addr: u64, len: u64, part: Part) -> u32 {
        let words = (addr / WORD * WORD..addr.saturating_add(len)).step_by(WORD as usize);
        let writes = words.map(|word| self.last_write(word).stamp);
        writes.filter(|stamp| stamp.part == part).map(|stamp| stamp.count).max().unwrap_or(0)
    }

    /// Whether words of the line at `addr` may last have been written by `part`.
    pub(super) fn may_be_of(&mut self, addr: u64, part: Part) -> bool {
        let line = self.line(addr);
        line.divided != 0 || line.whole.write.stamp.part == part
    }

    /// The word at `addr` by itself.
    #[inline]
    fn word(&mut self, addr: u64) -> &mut Cell {
        self.line(addr).word((addr % LINE / WORD) as usize)
    }

    #[inline]
    fn line(&mut self, addr: u64) -> &mut Line {
        &mut self.page(addr / PAGE)[(addr % PAGE / LINE) as usize]
    }

    #[inline]
    fn page(&mut self, number: u64) -> &mut Page {
        match usize::try_from(number) {
            Ok(near) if near < NEAR => {
                if self.near.len() <= near {
                    self.near.resize_with(near + 1, || None);
                }
                self.near[near].get_or_insert_with(new_page)
            }
            _ => self.far.entry(number).or_insert_with(new_page),
        }
    }

    /// Calls `f` for each line with its address and the bytes of it that are meant.
    fn lines(&mut self, addr: u64, len: u64, mut f: impl FnMut(&mut Line, u64, u64, u64)) {
        let (mut at, end) = (addr, addr.saturating_add(len));
        while at < end {
            let page = self.page(at / PAGE);
            let page_end = (at / PAGE + 1) * PAGE;
            while at < end.min(page_end) {
                let base = at / LINE * LINE;
                let to = end.min(base + LINE);
                f(&mut page[(at % PAGE / LINE) as usize], at, at - base, to - base);
                at = to;
            }
        }
    }
}

/// Which bytes of a word these are, if they are in one.
#[inline]
fn in_word(addr: u64, len: u64) -> Option<u8> {
    let low = addr % WORD;
    (len != 0 && low + len <= WORD).then(|| (ALL << low) & (ALL >> (WORD - low - len)))
}

/// Of accesses to all words of a line, of which `access` is the first one, that to `word`.
fn of_word(access: &mut Access, line: Option<&LineAccess>, word: usize) {
    let Some(line) = line else { return };
    // Each store has a count.
    let stores = if line.stores { word as u32 } else { line.steps.stored[word] };
    access.stamp.count += stores;
    access.started += stores;
    access.at += u64::from(line.steps.after[word]);
    access.pc = line.steps.pcs[word];
}

fn new_page() -> Page {
    Box::new(std::array::from_fn(|_| Line::default()))
}

/// Calls `f` for each word of bytes `from..to` of a line, with the bytes of it that are meant.
fn each_word(
    line: &mut Line,
    from: u64,
    to: u64,
    mut f: impl FnMut(&mut Cell, u8) -> Option<(Access, bool)>,
) -> Option<(Access, bool)> {
    let mut first = None;
    for word in from / WORD..to.div_ceil(WORD) {
        let (low, high) = (from.saturating_sub(word * WORD), (to - word * WORD).min(WORD));
        let mask = (ALL << low) & (ALL >> (WORD - high));
        first = first.or(f(line.word(word as usize), mask));
    }
    first
}

fn keep_first(first: &mut Option<Conflict>, found: Option<(Access, bool)>, later_writes: bool, addr: u64) {
    if let (None, Some((earlier, earlier_writes))) = (&first, found) {
        *first = Some(Conflict { earlier, earlier_writes, later_writes, addr });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(part: u32, count: u32) -> Access {
        Access { stamp: Stamp { part, count }, mask: ALL, ..Access::default() }
    }

    fn never(_: Stamp) -> bool {
        false
    }

    #[test]
    fn two_writes_without_order_conflict_where_they_meet() {
        let mut shadow = Shadow::default();
        assert_eq!(shadow.write(0x1000, 256, access(1, 1), &never), None);
        assert_eq!(shadow.write(0x1100, 64, access(2, 1), &never), None);
        let conflict = shadow.write(0x10f0, 4, access(2, 2), &never).unwrap();
        assert_eq!((conflict.earlier.stamp.part, conflict.addr, conflict.earlier_writes), (1, 0x10f0, true));
        assert_eq!(shadow.write(0x1000, 4, access(2, 3), &|_| true), None);
    }

    #[test]
    fn a_write_meets_every_read_since_the_last_write() {
        let mut shadow = Shadow::default();
        for part in 1..4 {
            assert_eq!(shadow.read(0x40, 64, access(part, 1), &never), None);
        }
        let conflict = shadow.write(0x40, 64, access(9, 1), &|stamp| stamp.part != 3).unwrap();
        assert_eq!((conflict.earlier.stamp.part, conflict.earlier_writes), (3, false));
        assert_eq!(shadow.write(0x40, 64, access(9, 2), &|stamp| stamp.part == 9), None, "reads are forgotten");
    }

    #[test]
    fn bytes_of_one_word_are_distinguished() {
        let mut shadow = Shadow::default();
        assert_eq!(shadow.write(0x101, 1, access(1, 1), &never), None);
        assert_eq!(shadow.read(0x102, 2, access(2, 1), &never), None);
        assert!(shadow.read(0x100, 2, access(2, 1), &never).is_some());
        assert_eq!(shadow.last_write(0x100).mask, 0b0010);
    }

    #[test]
    fn a_read_of_a_line_meets_the_words_that_were_written_and_the_others() {
        let mut shadow = Shadow::default();
        shadow.write(0, 64, access(1, 1), &never);
        shadow.write(0x8, 4, access(2, 1), &never);
        assert_eq!(shadow.page(0)[0].divided, 1 << 2);
        let unordered = |part| move |stamp: Stamp| stamp.part != part;
        assert_eq!(shadow.read(0, 64, access(3, 1), &unordered(1)).unwrap().earlier.stamp.part, 1);
        assert_eq!(shadow.read(0, 64, access(3, 2), &unordered(2)).unwrap().earlier.stamp.part, 2);
        for addr in [0x4, 0x8] {
            assert!(shadow.write(addr, 4, access(4, 1), &unordered(3)).is_some(), "the line was read at {addr:#x}");
        }
    }

    #[test]
    fn a_line_that_was_divided_is_checked_word_by_word() {
        let mut shadow = Shadow::default();
        shadow.write(0x3c, 4, access(1, 1), &never);
        shadow.write(0x20, 4, access(2, 1), &never);
        let conflict = shadow.write(0, 64, access(3, 1), &|stamp| stamp.part == 2).unwrap();
        assert_eq!(conflict.earlier.stamp.part, 1);
        assert_eq!(shadow.page(0)[0].divided, 0, "it is whole again");
    }
}
