//! The event queue of a node.
//!
//! Within one cycle arrivals come before the node's own events, and both in the order in which
//! they were added. The order of events therefore does not depend on how the scheduler divides
//! time into windows.

use std::collections::VecDeque;
use tilework_riscv::Cycle;

use crate::{NEVER, in_order};

/// Events in the order of (cycle, arrivals first, order of insertion).
///
/// Arrivals and own events have a sorted queue each, because a new event is usually the last
/// of its kind.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue<T> {
    arrivals: Line<T>,
    own: Line<T>,
}

impl<T> EventQueue<T> {
    pub(crate) fn new() -> Self {
        Self { arrivals: Line::new(), own: Line::new() }
    }
    /// Adds an event that comes from outside.
    pub(crate) fn arrive(&mut self, at: Cycle, event: T) {
        self.arrivals.add(at, event);
    }
    /// Adds an event of the node itself.
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
    /// The cycles of the first arrival and of the first event of the node itself, or [`NEVER`].
    #[inline]
    pub(crate) fn firsts(&self) -> (Cycle, Cycle) {
        (self.arrivals.next, self.own.next)
    }
    /// The first event, if it comes before `until`.
    #[inline]
    pub(crate) fn pop_before(&mut self, until: Cycle) -> Option<(Cycle, T)> {
        let first = if self.arrivals.next <= self.own.next { &mut self.arrivals } else { &mut self.own };
        if first.next < until { first.pop() } else { None }
    }
}

/// Events in the order of (cycle, order of insertion).
#[derive(Clone, Debug)]
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
        in_order::insert(&mut self.events, (at, event), |&(at, _)| at);
        self.next = self.next.min(at);
    }
    #[inline]
    fn pop(&mut self) -> Option<(Cycle, T)> {
        let first = self.events.pop_front();
        self.next = self.events.front().map_or(NEVER, |&(at, _)| at);
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_of_one_cycle_come_out_in_the_order_in_which_they_went_in() {
        let mut queue = EventQueue::new();
        for (at, event) in [(5, 'a'), (3, 'b'), (5, 'c'), (3, 'd')] {
            queue.push(at, event);
        }
        assert_eq!(queue.next(), 3);
        let mut order = Vec::new();
        while let Some((_, e)) = queue.pop_before(5) {
            order.push(e);
        }
        assert_eq!(order, ['b', 'd']);
        while let Some((_, e)) = queue.pop_before(NEVER) {
            order.push(e);
        }
        assert_eq!(order, ['b', 'd', 'a', 'c']);
        assert_eq!(queue.next(), NEVER);
    }

    #[test]
    fn arrivals_come_before_own_events_of_the_same_cycle() {
        let mut queue = EventQueue::new();
        queue.push(7, "own");
        queue.arrive(7, "packet");
        assert_eq!(queue.peek(), Some(&"packet"));
        assert_eq!(queue.pop_before(8), Some((7, "packet")));
        assert_eq!(queue.pop_before(8), Some((7, "own")));
    }
}
