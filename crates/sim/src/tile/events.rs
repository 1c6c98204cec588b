//! What happens in a tile at known cycles: packets that arrive and requests that leave.

use crate::NEVER;
use crate::noc::{Packet, Start};
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use tilework_riscv::Cycle;

/// Something that happens.
pub(super) enum Event {
    /// A packet's last flit arrives.
    Packet(Packet),
    /// A request of the tile's own leaves the NIU.
    Depart(u8, Box<Start>),
}

impl Event {
    fn rank(&self) -> u8 {
        match self {
            Event::Packet(_) => 0,
            Event::Depart(..) => 1,
        }
    }
}

struct Entry {
    at: Cycle,
    rank: u8,
    sequence: u64,
    event: Event,
}

impl Entry {
    fn key(&self) -> (Cycle, u8, u64) {
        (self.at, self.rank, self.sequence)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}
impl Eq for Entry {}
impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Entry {
    /// The heap's greatest is the one that happens first.
    fn cmp(&self, other: &Self) -> Ordering {
        other.key().cmp(&self.key())
    }
}

/// Events by (cycle, packets first, order of entering). The order does not depend on how the scheduler cuts time into windows.
#[derive(Default)]
pub(super) struct Queue {
    heap: BinaryHeap<Entry>,
    sequence: u64,
}

impl Queue {
    /// Enters an event.
    pub(super) fn push(&mut self, at: Cycle, event: Event) {
        self.sequence += 1;
        self.heap.push(Entry { at, rank: event.rank(), sequence: self.sequence, event });
    }
    /// The cycle of the first event, or [`NEVER`].
    pub(super) fn next(&self) -> Cycle {
        self.heap.peek().map_or(NEVER, |entry| entry.at)
    }
    /// The first event.
    pub(super) fn peek(&self) -> Option<&Event> {
        self.heap.peek().map(|entry| &entry.event)
    }
    /// Takes the first event.
    pub(super) fn pop(&mut self) -> Option<Event> {
        self.heap.pop().map(|entry| entry.event)
    }
}
