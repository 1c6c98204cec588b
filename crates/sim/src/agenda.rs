//! What a node still has to do, in the order of time.
//!
//! Of one cycle, what arrives comes before what the node has set itself, and each of the two in the order in which it was put in: the order
//! depends neither on the heap nor on how the scheduler cuts time into windows.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use tilework_riscv::Cycle;

use crate::NEVER;
use crate::timing::Rate;

/// Events keyed by (cycle, arrivals first, order of entering).
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    heap: BinaryHeap<Entry<T>>,
    seq: u64,
}

#[derive(Debug)]
struct Entry<T> {
    at: Cycle,
    own: bool,
    seq: u64,
    event: T,
}

impl<T> Entry<T> {
    fn key(&self) -> (Cycle, bool, u64) {
        (self.at, self.own, self.seq)
    }
}

impl<T> PartialEq for Entry<T> {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl<T> Eq for Entry<T> {}
impl<T> PartialOrd for Entry<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Entry<T> {
    /// The earliest entry is the greatest, because the heap gives the greatest first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self { heap: BinaryHeap::new(), seq: 0 }
    }
    /// Adds something that comes from outside.
    pub(crate) fn arrive(&mut self, at: Cycle, event: T) {
        self.add(at, false, event);
    }
    /// Adds something that the node does itself.
    pub(crate) fn push(&mut self, at: Cycle, event: T) {
        self.add(at, true, event);
    }
    fn add(&mut self, at: Cycle, own: bool, event: T) {
        self.heap.push(Entry { at, own, seq: self.seq, event });
        self.seq += 1;
    }
    /// The first event.
    pub(crate) fn peek(&self) -> Option<&T> {
        self.heap.peek().map(|e| &e.event)
    }
    /// The cycle of the first event, or [`NEVER`].
    pub(crate) fn next(&self) -> Cycle {
        self.heap.peek().map_or(NEVER, |e| e.at)
    }
    /// The first event, if it comes before `until`.
    pub(crate) fn pop_before(&mut self, until: Cycle) -> Option<(Cycle, T)> {
        if self.next() < until { self.heap.pop().map(|e| (e.at, e.event)) } else { None }
    }
}

/// Something that serves one request after the other at a fixed rate. Counts in fractions of a cycle, so that small requests
/// are not rounded up one by one.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    rate: Rate,
    /// When it is free, in units of `1 / rate.bytes` cycles.
    free: u128,
}

impl Pipe {
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { rate, free: 0 }
    }
    /// Serves `bytes` bytes that come at cycle `at`, and returns the cycle at which the last has passed.
    pub(crate) fn serve(&mut self, at: Cycle, bytes: u64) -> Cycle {
        let unit = u128::from(self.rate.bytes);
        let start = self.free.max(u128::from(at) * unit);
        self.free = start + u128::from(bytes) * u128::from(self.rate.cycles);
        u64::try_from(self.free.div_ceil(unit)).unwrap_or(NEVER)
    }
    /// The first whole cycle at which a request that comes at `at` is taken.
    pub(crate) fn start(&self, at: Cycle) -> Cycle {
        let unit = u128::from(self.rate.bytes);
        u64::try_from(self.free.div_ceil(unit)).unwrap_or(NEVER).max(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_cycle_come_out_in_the_order_in_which_they_went_in() {
        let mut a = Agenda::new();
        for (at, event) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd')] {
            a.push(at, event);
        }
        assert_eq!(a.next(), 3);
        let mut order = Vec::new();
        while let Some((_, e)) = a.pop_before(5) {
            order.push(e);
        }
        assert_eq!(order, ['b', 'd']);
        while let Some((_, e)) = a.pop_before(NEVER) {
            order.push(e);
        }
        assert_eq!(order, ['b', 'd', 'a', 'c']);
        assert_eq!(a.next(), NEVER);
    }

    #[test]
    fn arrivals_come_before_own_events_of_the_same_cycle() {
        let mut a = Agenda::new();
        a.push(7, "own");
        a.arrive(7, "packet");
        assert_eq!(a.peek(), Some(&"packet"));
        assert_eq!(a.pop_before(8), Some((7, "packet")));
        assert_eq!(a.pop_before(8), Some((7, "own")));
    }

    #[test]
    fn a_pipe_does_not_round_up_each_request() {
        // 27 cycles for 1280 bytes: ten requests of 128 bytes take 27 cycles, not ten times three.
        let mut p = Pipe::new(Rate { cycles: 27, bytes: 1280 });
        let last = (0..10).map(|_| p.serve(100, 128)).last();
        assert_eq!(last, Some(127));
        // Idle time is not saved up.
        assert_eq!(p.serve(1000, 1280), 1027);
        assert_eq!(p.start(1010), 1027);
    }

    #[test]
    fn a_pipe_at_the_end_of_time_saturates() {
        let mut p = Pipe::new(Rate { cycles: 27, bytes: 430 });
        assert_eq!(p.serve(NEVER, u64::MAX), NEVER);
    }
}
