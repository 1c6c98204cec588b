//! The hub: collects events, puts them in order and hands them to the observers.

use super::{Agent, Boundaries, Event, Known, Observer, Spot, Unjudged, Wants, What};
use crate::Cycle;
use std::ops::Range;
use tilework_abi::noc::NocXy;
use tilework_driver::Note;

/// Events are put in order when there are so many, or when somebody asks. So few stay in the
/// caches of the host, and what observers know comes to the tiles soon: most of all where nobody
/// else sees what is known. Where tiles gather lines each batch costs more.
const BATCH: usize = 1 << 7;
const BATCH_OF_LINES: usize = 1 << 12;

/// Where an event's rank is in a key, which its place in [`Hub::pending`] is below of, and its
/// cycle among those that are counted together above.
const RANK: u32 = u32::BITS;
const CYCLE: u32 = RANK + Event::RANK_BITS;

/// How many cycles are counted together at most, as a power of two.
const MOST_TOGETHER: u32 = u64::BITS - CYCLE;

/// What stands where an event was.
const TAKEN: Event =
    Event { at: 0, spot: Spot::Inert, agent: Agent::Niu(0), pc: 0, known: false, early: false, what: What::Fence };

/// The observers of a chip, and what they have not yet seen.
#[derive(Default)]
pub(crate) struct Hub {
    observers: Vec<Box<dyn Observer>>,
    wants: Wants,
    /// While they are handed over, otherwise empty: each agent's in its own order. The order of
    /// nodes depends on threads until it is sorted.
    pending: Vec<Event>,
    /// When there are more, they are handed over.
    limit: usize,
    /// All events before this cycle have been handed over.
    reached: Cycle,
    /// The place of each event in the order of the cycles that are counted together.
    keys: Vec<u64>,
    /// Where the keys of cycles that are counted together begin.
    cycles: Vec<u32>,
    /// The events that are pending in their order, by their places.
    order: Vec<u32>,
    /// The first observer that wants accesses: what it knows is asked for.
    knows: Option<usize>,
    /// What it knows, for the tiles.
    known: Vec<Known>,
    /// The nodes of the Tensix tiles, by their places in the order of tiles.
    nodes: Vec<Option<usize>>,
    /// Whether an observer may end the run.
    judged: bool,
    /// Whether tiles gather accesses to lines.
    gathers: bool,
}

impl Hub {
    /// Of a chip with these tiles and their nodes.
    pub(crate) fn new(tiles: impl Iterator<Item = (NocXy, usize)>) -> Self {
        let mut nodes = Vec::new();
        for (xy, node) in tiles {
            let place = Spot::Tensix(xy).rank() as usize;
            nodes.resize(nodes.len().max(place + 1), None);
            nodes[place] = Some(node);
        }
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
        self.gathers = self.takes_lines();
        self.limit = self.batch();
    }

    fn batch(&self) -> usize {
        if self.gathers { BATCH_OF_LINES } else { BATCH }
    }

    /// For observers that want the same.
    pub(crate) fn twin(&self, observers: Vec<Box<dyn Observer>>) -> Self {
        let judged = observers.iter().any(|observer| observer.judges());
        let knows = observers.iter().position(|observer| observer.wants().has(Wants::ACCESSES));
        let (limit, nodes, gathers) = (self.limit, self.nodes.clone(), self.gathers);
        Self {
            observers,
            wants: self.wants,
            judged,
            gathers,
            limit,
            reached: self.reached,
            knows,
            nodes,
            ..Self::default()
        }
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

    /// Whether tiles gather accesses to lines, and have some that they have not told.
    pub(crate) fn gathers(&self) -> bool {
        self.gathers
    }

    /// Whether all others that want accesses take lines.
    fn takes_lines(&self) -> bool {
        let others = self.observers.iter().enumerate().filter(|(number, _)| Some(*number) != self.knows);
        let mut others = others.filter(|(_, observer)| observer.wants().has(Wants::ACCESSES)).peekable();
        others.peek().is_some() && others.all(|(_, observer)| observer.takes_lines())
    }

    /// Whether that one needs to see only some loads of counters.
    pub(crate) fn sees_counters_once(&self) -> bool {
        self.knows.is_some_and(|knows| self.observers[knows].sees_counters_once())
    }

    /// Lines of L1 that any of them observes.
    pub(crate) fn lines(&self) -> Vec<Range<u32>> {
        self.observers.iter().flat_map(|observer| observer.lines()).collect()
    }

    /// The boundaries of what is known of a tile.
    pub(crate) fn boundaries(&self) -> Boundaries {
        let ranges = self.knows.map(|knows| self.observers[knows].boundaries()).unwrap_or_default();
        ranges[..].into()
    }

    /// What the same observer needs to see little of.
    pub(crate) fn unjudged(&self) -> Unjudged {
        self.knows.map(|knows| self.observers[knows].unjudged()).unwrap_or_default()
    }

    /// Takes out what is known, with the nodes of the tiles.
    pub(crate) fn known(&mut self) -> impl Iterator<Item = (usize, Known)> + use<'_> {
        let nodes = &self.nodes;
        self.known.drain(..).filter_map(|known| Some((node_of(nodes, known.tile)?, known)))
    }

    /// The node of a Tensix tile.
    pub(crate) fn node(&self, tile: NocXy) -> Option<usize> {
        node_of(&self.nodes, tile)
    }

    /// Bytes of L1 of single tiles of which any of them wants to see the loads.
    pub(crate) fn loads(&self) -> Vec<(NocXy, Range<u32>)> {
        self.observers.iter().flat_map(|observer| observer.loads()).collect()
    }

    /// Whether events are to be handed over at the end of this window, when there are so many:
    /// they are many, or an observer may end the run.
    #[inline]
    pub(crate) fn is_due(&self, count: usize) -> bool {
        self.judged || count > self.limit
    }

    /// Whether something is known that the tiles have not been told.
    #[inline]
    pub(crate) fn has_known(&self) -> bool {
        !self.known.is_empty()
    }

    /// Whether an observer may end the run.
    pub(crate) fn is_judged(&self) -> bool {
        self.judged
    }

    /// Whether an observer ends the run, at the end of a window. Whether it does so depends on what
    /// happened before that alone, and windows do not depend on threads.
    pub(crate) fn ends(&self) -> bool {
        self.judged && self.observers.iter().any(|observer| observer.ends())
    }

    /// Hands over a note.
    pub(crate) fn note(&mut self, at: Cycle, note: &Note) {
        self.observers.iter_mut().for_each(|observer| observer.note(at, note));
    }

    /// Before which cycle all events have been handed over.
    pub(crate) fn reached(&self) -> Cycle {
        self.reached
    }

    /// Hands over all of these events that are before cycle `until`, and leaves the others. Tiles
    /// have told all that they have recorded; before cycle `reached` nothing more will happen.
    pub(crate) fn hand_over(&mut self, events: &mut Vec<Event>, until: Cycle, reached: Cycle) {
        std::mem::swap(&mut self.pending, events);
        self.sort();
        let Self { pending, order, observers, .. } = self;
        let ready = order.partition_point(|&place| pending[place as usize].at < until);
        self.reached = self.reached.max(reached);
        for observer in observers {
            observer.in_order(pending, &order[..ready]);
            observer.reached(self.reached);
        }
        if let Some(knows) = self.knows {
            self.known.append(&mut self.observers[knows].known());
        }
        // What lies ahead of the clock stays, as it came: there is little of it.
        let ahead = &mut self.order[ready..];
        ahead.sort_unstable();
        events.extend(ahead.iter().map(|&place| std::mem::replace(&mut self.pending[place as usize], TAKEN)));
        self.pending.clear();
        // It is not sorted again and again.
        self.limit = self.batch() + 2 * events.len();
    }

    /// Finds the order of the events that are pending. They stay where they are: they are large.
    fn sort(&mut self) {
        let Self { pending, keys, cycles, order, .. } = self;
        order.clear();
        let (first, last) =
            pending.iter().fold((Cycle::MAX, 0), |(first, last), event| (first.min(event.at), last.max(event.at)));
        let span = last.saturating_sub(first);
        // More than 2^32 events fit into no memory.
        let places = 0..u32::try_from(pending.len()).unwrap_or(u32::MAX);
        // About half as many counts as events.
        let together = (span / (pending.len() as Cycle).max(1)).checked_ilog2().map_or(0, |bits| bits + 1);
        if together > MOST_TOGETHER {
            order.extend(places);
            // Stable, as what follows: the events of an agent keep their order.
            return order.sort_by_cached_key(|&place| {
                let event = &pending[place as usize];
                (event.at, event.rank())
            });
        }
        // By cycles, and among those that are counted together by small keys, all different.
        let count = (span >> together) as usize + 1;
        cycles.clear();
        cycles.resize(count + 1, 0);
        pending.iter().for_each(|event| cycles[((event.at - first) >> together) as usize + 1] += 1);
        for at in 1..cycles.len() {
            cycles[at] += cycles[at - 1];
        }
        keys.clear();
        keys.resize(pending.len(), 0);
        for (place, event) in places.zip(pending.iter()) {
            let (at, rank) = (event.at - first, u64::from(event.rank()));
            let next = &mut cycles[(at >> together) as usize];
            keys[*next as usize] = (at & ((1 << together) - 1)) << CYCLE | rank << RANK | u64::from(place);
            *next += 1;
        }
        // Where those of some cycles began, those of the next ones begin now.
        let mut begin = 0;
        for &end in cycles.iter().take(count) {
            if end - begin > 1 {
                keys[begin as usize..end as usize].sort_unstable();
            }
            begin = end;
        }
        // The lower half of a key.
        order.extend(keys.iter().map(|key| *key as u32));
    }
}

fn node_of(nodes: &[Option<usize>], tile: NocXy) -> Option<usize> {
    *nodes.get(Spot::Tensix(tile).rank() as usize)?
}

impl std::fmt::Debug for Hub {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Hub").field("observers", &self.observers.len()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::Unit;
    use tilework_abi::tensix::Processor;
    use tilework_rng::SplitMix64;

    /// However many events there are, and however far apart, they come in the order of cycles,
    /// tiles and agents, those of an agent as they came.
    #[test]
    fn events_are_in_order_however_many_there_are() {
        let mut random = SplitMix64::new(5);
        let agents = [Agent::Niu(1), Agent::Core(Processor::Trisc1), Agent::Coprocessor(Unit::Packer)];
        for (count, span) in [(1, 9), (2, 1), (100, 40), (5000, 90), (300, 1 << MOST_TOGETHER), (300, 1 << 60)] {
            let mut below = |end: u64| random.bits() % end;
            let event = |pc| {
                let (spot, agent) = (Spot::Dram(below(4) as u8), agents[below(3) as usize]);
                Event { at: 77 + below(span), spot, agent, pc, known: false, early: false, what: What::Fence }
            };
            let mut hub = Hub { pending: (0..count as u32).map(event).collect(), ..Hub::default() };
            hub.sort();
            let mut places: Vec<u32> = (0..count as u32).collect();
            places.sort_by_key(|&place| {
                let event = &hub.pending[place as usize];
                (event.at, event.rank())
            });
            assert_eq!(hub.order, places, "{count} events within {span} cycles");
        }
    }
}
