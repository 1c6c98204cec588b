//! The hub: collects events, puts them in order and hands them to the observers.

use super::{Agent, Event, Known, Observer, Spot, Wants, What};
use crate::Cycle;
use std::collections::HashMap;
use std::ops::Range;
use tilework_abi::noc::NocXy;
use tilework_driver::Note;

/// Events are put in order when there are so many, or when somebody asks. So few stay in the
/// caches of the host, and what observers know comes to the tiles soon.
const BATCH: usize = 1 << 12;

/// What stands where an event was.
const TAKEN: Event = Event { at: 0, spot: Spot::Inert, agent: Agent::Niu(0), pc: 0, known: false, what: What::Fence };

/// The observers of a chip, and what they have not yet seen.
#[derive(Default)]
pub(crate) struct Hub {
    observers: Vec<Box<dyn Observer>>,
    wants: Wants,
    /// Each agent's in its own order. The order of nodes depends on threads until it is sorted.
    pending: Vec<Event>,
    /// When there are more, they are handed over.
    limit: usize,
    /// The place of each event in the order, above its place in [`Hub::pending`].
    keys: Vec<u64>,
    /// In order.
    sorted: Vec<Event>,
    /// The first observer that wants accesses: what it knows is asked for.
    knows: Option<usize>,
    /// What it knows, for the tiles.
    known: Vec<Known>,
    /// The nodes of the Tensix tiles. Asked by coordinates, never walked.
    nodes: HashMap<NocXy, usize>,
    /// Whether an observer may end the run.
    judged: bool,
}

impl Hub {
    /// Of a chip with these tiles and their nodes.
    pub(crate) fn new(nodes: HashMap<NocXy, usize>) -> Self {
        Self { nodes, ..Self::default() }
    }

    /// Adds an observer.
    pub(crate) fn add(&mut self, observer: Box<dyn Observer>) {
        let wants = observer.wants();
        if wants.has(Wants::ACCESSES) && self.knows.is_none() {
            self.knows = Some(self.observers.len());
        }
        self.wants = self.wants | wants;
        self.judged |= observer.judges();
        self.observers.push(observer);
        self.limit = BATCH;
    }

    /// What is not yet handed over, for observers that want the same.
    pub(crate) fn twin(&self, observers: Vec<Box<dyn Observer>>) -> Self {
        let judged = observers.iter().any(|observer| observer.judges());
        let (pending, limit) = (self.pending.clone(), self.limit);
        Self { observers, wants: self.wants, judged, pending, limit, ..Self::default() }
    }

    /// What any of the observers wants.
    pub(crate) fn wants(&self) -> Wants {
        self.wants
    }

    /// What the observers want beside the one that is asked for what it knows.
    pub(crate) fn others_want(&self) -> Wants {
        let others = self.observers.iter().enumerate().filter(|(number, _)| Some(*number) != self.knows);
        others.fold(Wants::NOTHING, |all, (_, observer)| all | observer.wants())
    }

    /// Lines of L1 that any of them observes.
    pub(crate) fn lines(&self) -> Vec<Range<u32>> {
        self.observers.iter().flat_map(|observer| observer.lines()).collect()
    }

    /// The boundaries of what is known of a tile.
    pub(crate) fn boundaries(&self) -> Vec<Range<u32>> {
        self.knows.map(|knows| self.observers[knows].boundaries()).unwrap_or_default()
    }

    /// Takes out what is known, with the nodes of the tiles.
    pub(crate) fn known(&mut self) -> impl Iterator<Item = (usize, Known)> + use<'_> {
        let nodes = &self.nodes;
        self.known.drain(..).filter_map(|known| Some((*nodes.get(&known.tile)?, known)))
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
        self.sort();
        let ready = self.sorted.partition_point(|event| event.at < now);
        for observer in &mut self.observers {
            observer.events(&self.sorted[..ready]);
            observer.reached(now);
        }
        if let Some(knows) = self.knows {
            self.known.append(&mut self.observers[knows].known());
        }
        self.pending.extend(self.sorted.drain(ready..));
        self.sorted.clear();
    }

    /// Moves the events that are pending to where they stand in order.
    fn sort(&mut self) {
        let Self { pending, keys, sorted, .. } = self;
        let first = pending.iter().map(|event| event.at).min().unwrap_or_default();
        let last = pending.iter().map(|event| event.at).max().unwrap_or_default();
        let index_bits = usize::BITS - pending.len().leading_zeros();
        let shift = Event::RANK_BITS + index_bits;
        if shift >= u64::BITS || (last - first) >> (u64::BITS - shift) != 0 {
            // Stable, as what follows: the events of an agent keep their order.
            pending.sort_by_cached_key(|event| (event.at, event.rank()));
            sorted.append(pending);
            return;
        }
        // Small keys are sorted, all different, and each event is moved once: events are large.
        keys.clear();
        keys.extend(
            (0u64..)
                .zip(pending.iter())
                .map(|(index, event)| (event.at - first) << shift | u64::from(event.rank()) << index_bits | index),
        );
        keys.sort_unstable();
        let mask = (1 << index_bits) - 1;
        // No index is larger than a length.
        sorted.extend(keys.iter().map(|key| std::mem::replace(&mut pending[(key & mask) as usize], TAKEN)));
        pending.clear();
    }
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("observers", &self.observers.len()).field("pending", &self.pending.len()).finish()
    }
}
