//! The hub: collects events, puts them in order and hands them to the observers.

use super::{Event, Observer, Wants};
use crate::Cycle;
use std::ops::Range;
use tilework_abi::noc::NocXy;
use tilework_driver::Note;

/// Events are put in order when there are so many, or when somebody asks.
const BATCH: usize = 1 << 14;

/// The observers of a chip, and what they have not yet seen.
#[derive(Default)]
pub(crate) struct Hub {
    observers: Vec<Box<dyn Observer>>,
    wants: Wants,
    /// Each agent's in its own order. The order of nodes depends on threads until it is sorted.
    pending: Vec<Event>,
    /// When there are more, they are handed over.
    limit: usize,
    /// Whether an observer may end the run.
    judged: bool,
}

impl Hub {
    /// Adds an observer.
    pub(crate) fn add(&mut self, observer: Box<dyn Observer>) {
        self.wants = self.wants | observer.wants();
        self.judged |= observer.judges();
        self.observers.push(observer);
        self.limit = BATCH;
    }

    /// What is not yet handed over, for observers that want the same.
    pub(crate) fn twin(&self, observers: Vec<Box<dyn Observer>>) -> Self {
        let judged = observers.iter().any(|observer| observer.judges());
        Self { observers, wants: self.wants, judged, pending: self.pending.clone(), limit: self.limit }
    }

    /// What any of the observers wants.
    pub(crate) fn wants(&self) -> Wants {
        self.wants
    }

    /// Lines of L1 that any of them observes.
    pub(crate) fn lines(&self) -> Vec<Range<u32>> {
        self.observers.iter().flat_map(|observer| observer.lines()).collect()
    }

    /// Bytes of L1 of single tiles of which any of them wants to see the loads.
    pub(crate) fn loads(&self) -> Vec<(NocXy, Range<u32>)> {
        self.observers.iter().flat_map(|observer| observer.loads()).collect()
    }

    /// Takes events of nodes.
    pub(crate) fn take(&mut self, events: &mut Vec<Event>, now: Cycle) {
        self.pending.append(events);
        if self.pending.len() > self.limit {
            self.hand_over(now);
            // What lies ahead of the clock is not sorted again and again.
            self.limit = BATCH + 2 * self.pending.len();
        }
    }

    /// Whether an observer ends the run, at the end of a window. Whether it does so depends on what
    /// happened before `now` alone, and windows do not depend on threads.
    pub(crate) fn ends(&mut self, now: Cycle) -> bool {
        if self.judged {
            self.hand_over(now);
        }
        self.judged && self.observers.iter().any(|observer| observer.ends())
    }

    /// Hands over a note.
    pub(crate) fn note(&mut self, at: Cycle, note: &Note) {
        self.observers.iter_mut().for_each(|observer| observer.note(at, note));
    }

    /// Hands over all events before cycle `now`.
    pub(crate) fn hand_over(&mut self, now: Cycle) {
        // Stable: the events of an agent keep their order. Small keys are sorted, and each event is
        // moved once: events are large, and this is what observing costs most.
        let first = self.pending.iter().map(|event| event.at).min().unwrap_or_default();
        self.pending.sort_by_cached_key(|event| (event.at - first) << Event::RANK_BITS | u64::from(event.rank()));
        let ready = self.pending.partition_point(|event| event.at < now);
        for observer in &mut self.observers {
            observer.events(&self.pending[..ready]);
            observer.reached(now);
        }
        self.pending.drain(..ready);
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("observers", &self.observers.len()).field("pending", &self.pending.len()).finish()
    }
}
