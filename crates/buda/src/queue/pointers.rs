//! Read and write pointer of a queue.
//!
//! Both run over 0..2N-1 for N entries: the double range tells a full queue (a distance of N) from
//! an empty one (0), so that all N entries can be used (tt-budabackend, `common/tt_queue_ptr.hpp`;
//! hence `mod 2N` everywhere). Local read pointers use the same range and are never written back.

use thiserror::Error;

/// A value that is not a valid pointer of the queue header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "{value} is no pointer: pointers of a queue of {entries} entries run from 0; wrap it with incwrap at {}",
    2 * u64::from(*entries)
)]
pub struct PointerError {
    /// The value.
    pub value: i64,
    /// Entries of the queue.
    pub entries: u32,
}

/// When a queue counts as full.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fullness {
    /// At N entries.
    #[default]
    Strict,
    /// As in the original's golden model (`common/tt_queue.cpp`): only at `wr == rd - 1`, or at
    /// `rd == 0` and `wr == 2N`, which no pointer reaches. Up to 2N - 1 entries are accepted and
    /// older ones silently overwritten.
    GoldenCompat,
}

/// Pointers of a queue of `entries` entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pointers {
    entries: u32,
    rd: u32,
    wr: u32,
}

impl Pointers {
    /// Pointers of an empty queue. A queue of no entries counts as one of one entry; the checker
    /// refuses both.
    pub fn new(entries: u32) -> Self {
        // At most half of `u32::MAX`, so that 2N fits.
        Self { entries: entries.clamp(1, u32::MAX / 2), rd: 0, wr: 0 }
    }

    /// Entries of the queue (N).
    pub fn entries(&self) -> u32 {
        self.entries
    }

    /// Pointers run over 0..span: 2N.
    pub fn span(&self) -> u32 {
        2 * self.entries
    }

    /// The global read pointer.
    pub fn rd(&self) -> u32 {
        self.rd
    }

    /// The global write pointer.
    pub fn wr(&self) -> u32 {
        self.wr
    }

    /// Entries from the read pointer to the write pointer. More than N only when the read pointer
    /// was set past the write pointer, or with [`Fullness::GoldenCompat`].
    pub fn occupancy(&self) -> u32 {
        self.distance(self.rd, self.wr)
    }

    /// Whether there is no entry to read.
    pub fn is_empty(&self) -> bool {
        self.rd == self.wr
    }

    /// Whether nothing more can be written.
    pub fn is_full(&self, fullness: Fullness) -> bool {
        match fullness {
            Fullness::Strict => self.occupancy() >= self.entries,
            Fullness::GoldenCompat => self.advance(self.wr, 1) == self.rd && self.rd != 0,
        }
    }

    /// Distance from one pointer up to another.
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        if to >= from { to - from } else { self.span() - (from - to) }
    }

    /// A pointer moved by `by`.
    pub fn advance(&self, pointer: u32, by: i64) -> u32 {
        let moved = (i64::from(pointer) + by.rem_euclid(i64::from(self.span()))) % i64::from(self.span());
        u32::try_from(moved).expect("a remainder of a u32")
    }

    /// The slot that a pointer names.
    pub fn slot(&self, pointer: u32) -> usize {
        (pointer % self.entries) as usize
    }

    /// Whether the entry at a pointer has been written and not popped.
    pub fn holds(&self, pointer: u32) -> bool {
        self.distance(self.rd, pointer) < self.occupancy()
    }

    /// Converts a program's number to a pointer; numbers from 2N on are reduced modulo 2N, and then
    /// the second value is true.
    pub fn pointer(&self, value: i64) -> Result<(u32, bool), PointerError> {
        match u32::try_from(value) {
            Ok(value) => Ok((value % self.span(), value >= self.span())),
            Err(_) if value > 0 => Ok((self.advance(0, value), true)),
            Err(_) => Err(PointerError { value, entries: self.entries }),
        }
    }

    /// Advances the write pointer by one entry and returns its slot; the caller has checked
    /// [`Pointers::is_full`].
    pub fn push(&mut self) -> usize {
        let slot = self.slot(self.wr);
        self.wr = self.advance(self.wr, 1);
        slot
    }

    /// Pops `count` entries.
    pub fn pop(&mut self, count: u32) {
        self.rd = self.advance(self.rd, i64::from(count));
    }

    /// Sets the global read pointer.
    pub fn set_rd(&mut self, pointer: u32) {
        self.rd = pointer % self.span();
    }

    /// Sets the global write pointer.
    pub fn set_wr(&mut self, pointer: u32) {
        self.wr = pointer % self.span();
    }

    /// Resets both pointers, as `allocate_queue` does.
    pub fn clear(&mut self) {
        (self.rd, self.wr) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[derive(Debug, Clone)]
    enum Act {
        Push,
        Pop(u8),
        Peek(u8),
    }

    fn acts() -> impl Strategy<Value = Vec<Act>> {
        let act =
            prop_oneof![3 => Just(Act::Push), 2 => (1u8..4).prop_map(Act::Pop), 2 => (0u8..9).prop_map(Act::Peek)];
        proptest::collection::vec(act, 0..200)
    }

    proptest! {
        /// Compares with a deque: contents, fullness and peeks.
        #[test]
        fn pointers_do_what_a_deque_does(entries in 1u32..9, acts in acts()) {
            let mut pointers = Pointers::new(entries);
            let mut slots = vec![None; entries as usize];
            let mut model = VecDeque::new();
            let mut next = 0u32;
            for act in acts {
                match act {
                    Act::Push => {
                        prop_assert_eq!(pointers.is_full(Fullness::Strict), model.len() == entries as usize);
                        if model.len() < entries as usize {
                            slots[pointers.push()] = Some(next);
                            model.push_back(next);
                            next += 1;
                        }
                    }
                    Act::Pop(count) if usize::from(count) <= model.len() => {
                        pointers.pop(count.into());
                        model.drain(..usize::from(count));
                    }
                    Act::Pop(_) => {}
                    Act::Peek(offset) if u32::from(offset) < pointers.span() => {
                        let at = pointers.advance(pointers.rd(), offset.into());
                        let seen = pointers.holds(at).then(|| slots[pointers.slot(at)].unwrap());
                        prop_assert_eq!(seen, model.get(usize::from(offset)).copied());
                    }
                    Act::Peek(_) => {}
                }
                prop_assert_eq!(pointers.occupancy() as usize, model.len());
                prop_assert_eq!(pointers.is_empty(), model.is_empty());
                prop_assert!(pointers.rd() < 2 * entries && pointers.wr() < 2 * entries);
            }
        }

        #[test]
        fn a_number_is_its_remainder_or_refused(entries in 1u32..100, value in any::<i64>()) {
            let pointers = Pointers::new(entries);
            match pointers.pointer(value) {
                Ok((pointer, wrapped)) => {
                    prop_assert_eq!(i128::from(pointer), i128::from(value) % i128::from(2 * entries));
                    prop_assert_eq!(wrapped, value >= i64::from(2 * entries));
                }
                Err(error) => prop_assert!(value < 0 && error.value == value),
            }
        }
    }

    #[test]
    fn the_largest_queues_have_pointers_too() {
        let mut pointers = Pointers::new(u32::MAX);
        let last = pointers.span() - 1;
        pointers.set_rd(last);
        pointers.set_wr(last);
        assert!(pointers.is_empty());
        pointers.push();
        assert_eq!((pointers.wr(), pointers.occupancy(), pointers.holds(last)), (0, 1, true));
        assert_eq!(pointers.distance(last, last - 1), last);
    }

    /// The rule of tt-budabackend's `common/tt_queue.cpp`: full only one short of 2N, and never
    /// while the read pointer is at 0.
    #[test]
    fn golden_takes_up_to_twice_the_entries() {
        let mut pointers = Pointers::new(3);
        pointers.set_rd(1);
        pointers.set_wr(1);
        let mut taken = 0;
        while !pointers.is_full(Fullness::GoldenCompat) {
            pointers.push();
            taken += 1;
        }
        assert_eq!((taken, pointers.wr()), (5, 0));

        let mut at_zero = Pointers::new(3);
        for _ in 0..6 {
            assert!(!at_zero.is_full(Fullness::GoldenCompat));
            at_zero.push();
        }
        assert!(at_zero.is_empty(), "six entries in a queue of three look like none");
    }
}
