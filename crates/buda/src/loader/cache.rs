//! Binary cache of a device: which graph's binaries are in which slot (tt-budabackend,
//! `loader/epoch_utils.hpp`, `loader/epoch_loader.cpp`).
//!
//! All cores of a device have the same graph in the same slot, so one table stands for all of them.
//! A binary is in flight until every core has passed the commands that name its slot; it is pinned
//! while a device loop may use it again.

use super::stats::ModelCycle;
use tilework_netlist::types::GraphId;

/// Eviction policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// No cache: slots are used in turn, binaries are written every time.
    Off,
    /// The least recently used.
    Lru,
    /// For programs that cycle through more graphs than there are slots, where the least recently
    /// used binary is needed next. The search goes from the middle of the order of use towards the
    /// most recently used, then from the least recently used up to the middle, and finds the first
    /// binary that is not in flight. If that was only after the wrap, it continues upward from
    /// there and evicts the last one before the next binary in flight, so that the rest of the
    /// older half stays.
    MruBacktrace,
}

/// A binary in the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binary {
    /// Its graph.
    pub graph: GraphId,
    /// Its slot.
    pub slot: usize,
    /// The cycle from which on no command needs it.
    pub busy_until: ModelCycle,
    /// Whether a device loop needs it.
    pub pinned: bool,
}

/// Binaries of a device, the least recently used first.
#[derive(Debug)]
pub struct BinaryCache {
    policy: Policy,
    capacity: usize,
    order: Vec<Binary>,
    /// With [`Policy::Off`], the next slot.
    turn: usize,
}

/// Every binary is pinned: the device loop is larger than the cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("all {capacity} slots of the binary cache are pinned by a loop on the device")]
pub struct AllPinned {
    /// Slots.
    pub capacity: usize,
}

impl BinaryCache {
    /// An empty cache; at least one slot.
    pub fn new(policy: Policy, capacity: usize) -> Self {
        Self { policy, capacity: capacity.max(1), order: Vec::new(), turn: 0 }
    }

    /// Number of slots.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Looks for a graph and, when it is there, makes it the most recently used.
    pub fn hit(&mut self, graph: GraphId) -> Option<usize> {
        if self.policy == Policy::Off {
            return None;
        }
        let at = self.order.iter().position(|binary| binary.graph == graph)?;
        let binary = self.order.remove(at);
        self.order.push(binary);
        Some(binary.slot)
    }

    /// Chooses the slot for a new binary and the one to evict. Changes nothing.
    pub fn victim(&self, now: ModelCycle) -> Result<(usize, Option<Binary>), AllPinned> {
        if self.policy == Policy::Off {
            return Ok((self.turn, self.order.iter().find(|binary| binary.slot == self.turn).copied()));
        }
        if self.order.len() < self.capacity {
            return Ok((self.order.len(), None));
        }
        let victim = match self.policy {
            Policy::MruBacktrace => self.backtrace(now).or_else(|| self.least_recent()),
            Policy::Off | Policy::Lru => self.least_recent(),
        };
        let victim = victim.ok_or(AllPinned { capacity: self.capacity })?;
        Ok((self.order[victim].slot, Some(self.order[victim])))
    }

    fn least_recent(&self) -> Option<usize> {
        self.order.iter().position(|binary| !binary.pinned)
    }

    fn backtrace(&self, now: ModelCycle) -> Option<usize> {
        let idle = |at: &usize| !self.order[*at].pinned && self.order[*at].busy_until <= now;
        let middle = self.capacity / 2;
        if let Some(found) = (middle..self.order.len()).find(idle) {
            return Some(found);
        }
        let first = (0..middle).find(idle)?;
        (first..middle).take_while(idle).last()
    }

    /// Puts a graph's binaries into a slot chosen by [`BinaryCache::victim`].
    pub fn insert(&mut self, graph: GraphId, slot: usize, pinned: bool) {
        self.order.retain(|binary| binary.slot != slot);
        self.order.push(Binary { graph, slot, busy_until: 0, pinned });
        if self.policy == Policy::Off {
            self.turn = (self.turn + 1) % self.capacity;
        }
    }

    /// Marks the slot as used by a command until `until`.
    pub fn use_until(&mut self, slot: usize, until: ModelCycle) {
        if let Some(binary) = self.order.iter_mut().find(|binary| binary.slot == slot) {
            binary.busy_until = binary.busy_until.max(until);
        }
    }

    /// Pins the cached binaries of these graphs.
    pub fn pin(&mut self, graphs: &[GraphId]) {
        self.order.iter_mut().filter(|binary| graphs.contains(&binary.graph)).for_each(|binary| binary.pinned = true);
    }

    /// Ends all pins.
    pub fn unpin(&mut self) {
        self.order.iter_mut().for_each(|binary| binary.pinned = false);
    }

    /// All binaries, the least recently used first.
    pub fn binaries(&self) -> &[Binary] {
        &self.order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A full cache of four; graphs 0 to 3 in this order of use, each busy until the given cycle.
    fn full(policy: Policy, busy: [ModelCycle; 4]) -> BinaryCache {
        let mut cache = BinaryCache::new(policy, 4);
        for (graph, until) in busy.into_iter().enumerate() {
            let (slot, evicted) = cache.victim(0).unwrap();
            assert_eq!((slot, evicted), (graph, None));
            cache.insert(GraphId(graph), slot, false);
            cache.use_until(slot, until);
        }
        cache
    }

    fn next(cache: &BinaryCache, now: ModelCycle) -> usize {
        cache.victim(now).unwrap().1.unwrap().graph.0
    }

    #[test]
    fn lru_takes_the_least_recently_used_even_in_flight() {
        let mut cache = full(Policy::Lru, [90, 0, 0, 0]);
        assert_eq!(next(&cache, 10), 0);
        assert_eq!(cache.hit(GraphId(0)), Some(0));
        assert_eq!(next(&cache, 10), 1);
        cache.pin(&[GraphId(1)]);
        assert_eq!(next(&cache, 10), 2);
    }

    #[test]
    fn backtrace_starts_in_the_middle_and_leaves_what_is_in_flight() {
        assert_eq!(next(&full(Policy::MruBacktrace, [0, 0, 0, 0]), 10), 2);
        assert_eq!(next(&full(Policy::MruBacktrace, [0, 0, 90, 0]), 10), 3);
        assert_eq!(next(&full(Policy::MruBacktrace, [0, 0, 90, 90]), 10), 1, "walks up to what is in flight");
        assert_eq!(next(&full(Policy::MruBacktrace, [0, 90, 90, 90]), 10), 0);
        assert_eq!(
            next(&full(Policy::MruBacktrace, [90, 95, 96, 97]), 10),
            0,
            "all in flight: the oldest will be first"
        );
    }

    /// Going round one graph more than there are slots: LRU never hits, the other policy
    /// mostly does.
    #[test]
    fn backtrace_hits_where_lru_never_does() {
        let hits = |policy| {
            let mut cache = BinaryCache::new(policy, 4);
            (0..50)
                .filter(|turn| {
                    let graph = GraphId(turn % 5);
                    let hit = cache.hit(graph).is_some();
                    if !hit {
                        let slot = cache.victim(0).unwrap().0;
                        cache.insert(graph, slot, false);
                    }
                    hit
                })
                .count()
        };
        assert_eq!(hits(Policy::Lru), 0);
        assert!(hits(Policy::MruBacktrace) > 20, "{}", hits(Policy::MruBacktrace));
    }

    #[test]
    fn a_cache_of_pinned_binaries_has_no_victim() {
        let mut cache = full(Policy::Lru, [0; 4]);
        cache.pin(&[GraphId(0), GraphId(1), GraphId(2), GraphId(3)]);
        assert_eq!(cache.victim(10), Err(AllPinned { capacity: 4 }));
        cache.unpin();
        assert_eq!(next(&cache, 10), 0);
    }

    #[test]
    fn without_a_cache_slots_go_round() {
        let mut cache = BinaryCache::new(Policy::Off, 2);
        for (turn, slot) in [0, 1, 0, 1].into_iter().enumerate() {
            assert_eq!(cache.hit(GraphId(7)), None);
            let (free, evicted) = cache.victim(0).unwrap();
            assert_eq!((free, evicted.is_some()), (slot, turn >= 2));
            cache.insert(GraphId(7), free, false);
        }
    }
}
