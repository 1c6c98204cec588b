//! What a node still has to do, in the order of time.
//!
//! Of one cycle, what arrives comes before what the node has set itself, and each of the two in the order in which it was put in: the order
//! depends neither on the heap nor on how the scheduler cuts time into windows.

use std::collections::VecDeque;
use tilework_riscv::Cycle;

use crate::NEVER;
use crate::timing::Rate;

/// Events keyed by (cycle, arrivals first, order of entering).
///
/// What is put in mostly comes after all that is there, if arrivals and own events are kept apart: so each has a sorted queue.
#[derive(Debug)]
pub(crate) struct Agenda<T> {
    arrivals: Line<T>,
    own: Line<T>,
}

impl<T> Agenda<T> {
    pub(crate) fn new() -> Self {
        Self { arrivals: Line::new(), own: Line::new() }
    }
    /// Adds something that comes from outside.
    pub(crate) fn arrive(&mut self, at: Cycle, event: T) {
        self.arrivals.add(at, event);
    }
    /// Adds something that the node does itself.
    pub(crate) fn push(&mut self, at: Cycle, event: T) {
        self.own.add(at, event);
    }
    /// The first event.
    pub(crate) fn peek(&self) -> Option<&T> {
        let first = if self.arrivals.next <= self.own.next { &self.arrivals } else { &self.own };
        first.events.front().map(|(_, event)| event)
    }
    /// The cycle of the first event, or [`NEVER`].
    #[inline]
    pub(crate) fn next(&self) -> Cycle {
        self.arrivals.next.min(self.own.next)
    }
    /// The first event, if it comes before `until`.
    #[inline]
    pub(crate) fn pop_before(&mut self, until: Cycle) -> Option<(Cycle, T)> {
        let first = if self.arrivals.next <= self.own.next { &mut self.arrivals } else { &mut self.own };
        if first.next < until { first.pop() } else { None }
    }
}

/// Events in the order of (cycle, order of entering).
#[derive(Debug)]
struct Line<T> {
    events: VecDeque<(Cycle, T)>,
    /// The cycle of the first, or [`NEVER`].
    next: Cycle,
}

impl<T> Line<T> {
    const fn new() -> Self {
        Self { events: VecDeque::new(), next: NEVER }
    }
    #[inline]
    fn add(&mut self, at: Cycle, event: T) {
        if self.events.back().is_none_or(|&(last, _)| last <= at) {
            self.events.push_back((at, event));
        } else {
            let behind = self.events.partition_point(|&(other, _)| other <= at);
            self.events.insert(behind, (at, event));
        }
        self.next = self.next.min(at);
    }
    #[inline]
    fn pop(&mut self) -> Option<(Cycle, T)> {
        let first = self.events.pop_front();
        self.next = self.events.front().map_or(NEVER, |&(at, _)| at);
        first
    }
}

/// Something that serves one request after the other at a fixed rate. Counts in fractions of a cycle, so that small requests
/// are not rounded up one by one.
#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    rate: Rate,
    /// When it is free: a whole cycle, and how many units of `1 / rate.bytes` cycles, less than a cycle, after it.
    free: Cycle,
    units: u64,
}

impl Pipe {
    pub(crate) const fn new(rate: Rate) -> Self {
        Self { rate, free: 0, units: 0 }
    }
    /// Serves `bytes` bytes that come at cycle `at`, and returns the cycle at which the last has passed.
    pub(crate) fn serve(&mut self, at: Cycle, bytes: u64) -> Cycle {
        let (start, before) = if self.free < at { (at, 0) } else { (self.free, self.units) };
        let work = bytes.checked_mul(self.rate.cycles).and_then(|work| work.checked_add(before));
        (self.free, self.units) = match work {
            Some(work) => (start.saturating_add(work / self.rate.bytes), work % self.rate.bytes),
            None => (NEVER, 0),
        };
        self.whole()
    }
    /// The first whole cycle at which a request that comes at `at` is taken.
    pub(crate) fn start(&self, at: Cycle) -> Cycle {
        self.whole().max(at)
    }
    /// The first whole cycle at which it is free.
    fn whole(&self) -> Cycle {
        self.free.saturating_add(u64::from(self.units > 0))
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
