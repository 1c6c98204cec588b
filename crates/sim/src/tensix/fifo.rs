//! The FIFOs of a thread's front end.
//!
//! Their depths are small and known, so that the instructions lie in the front end itself, and
//! every instruction of a program goes through three of them. What stands in a place is the word
//! that was pushed: it is decoded where something is done with it.

use super::origin::Origin;
use crate::Cycle;

/// An instruction in a FIFO.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// When it came; the next stage sees it a cycle later.
    pub(super) at: Cycle,
    pub(super) word: u32,
    pub(super) origin: Origin,
}

impl Entry {
    /// What stands in a place that nothing has used yet.
    const NOTHING: Self = Self { at: 0, word: 0, origin: Origin::DEBUG_BUS };

    /// It occupies a place of the first FIFO.
    #[inline]
    pub(super) fn is_counted(&self) -> bool {
        self.origin.is_own()
    }
}

/// A FIFO of at most `N` instructions, a power of two. Who pushes looks first whether there is room
/// ([`Fifo::len`]).
#[derive(Clone, Debug)]
pub(super) struct Fifo<const N: usize> {
    places: [Entry; N],
    /// The place of the first instruction.
    first: u8,
    len: u8,
}

impl<const N: usize> Default for Fifo<N> {
    fn default() -> Self {
        const { assert!(N.is_power_of_two() && N <= 128) };
        Self { places: [Entry::NOTHING; N], first: 0, len: 0 }
    }
}

impl<const N: usize> Fifo<N> {
    /// How many instructions it holds.
    #[inline]
    pub(super) fn len(&self) -> usize {
        usize::from(self.len)
    }
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The place of instruction `i`.
    #[inline]
    fn place(&self, i: u8) -> usize {
        usize::from(self.first.wrapping_add(i)) % N
    }
    /// The first instruction.
    #[inline]
    pub(super) fn front(&self) -> Option<&Entry> {
        if self.len == 0 { None } else { Some(&self.places[self.place(0)]) }
    }
    /// Takes in an instruction, for which there is room.
    #[inline]
    pub(super) fn push_back(&mut self, entry: Entry) {
        debug_assert!(self.len() < N, "a FIFO of {N} instructions is full");
        let place = self.place(self.len);
        self.places[place] = entry;
        self.len += 1;
    }
    /// Drops the first instruction, if there is one.
    #[inline]
    pub(super) fn drop_front(&mut self) {
        if self.len > 0 {
            self.first = self.first.wrapping_add(1);
            self.len -= 1;
        }
    }
    pub(super) fn clear(&mut self) {
        self.len = 0;
    }
    pub(super) fn iter(&self) -> impl Iterator<Item = &Entry> {
        (0..self.len).map(|i| &self.places[self.place(i)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_leave_in_the_order_in_which_they_came() {
        let mut fifo = Fifo::<4>::default();
        let (mut came, mut left) = (0, 0);
        // 1,000 instructions, between none and four at a time: the place wraps around many times.
        for step in 0..1000u32 {
            while fifo.len() < 4 && (came ^ step) % 3 != 0 || fifo.is_empty() {
                fifo.push_back(Entry { word: came, ..Entry::NOTHING });
                came += 1;
            }
            assert!(fifo.iter().map(|entry| entry.word).eq(left..came));
            assert_eq!(fifo.front().map(|entry| entry.word), Some(left));
            fifo.drop_front();
            left += 1;
        }
        fifo.clear();
        fifo.drop_front();
        assert!(fifo.is_empty() && fifo.front().is_none());
    }
}
