//! A device as the loader sees it: cores with command queues, and the binary cache they share.

use super::cache::{BinaryCache, Policy};
use super::command_queue::CommandQueue;
use super::cost::Core;
use super::stats::ModelCycle;
use std::collections::{BTreeMap, BTreeSet};
use tilework_netlist::types::Size;

/// A device.
#[derive(Debug)]
pub(super) struct Device {
    /// Command queues by core: all cores of the grid, and any others that graphs name.
    pub queues: BTreeMap<Core, CommandQueue>,
    /// Binaries.
    pub cache: BinaryCache,
}

impl Device {
    pub(crate) fn new(grid: Size, more: &BTreeSet<Core>, slots: usize, policy: Policy, binaries: usize) -> Self {
        let cores = (0..grid.r).flat_map(|r| (0..grid.c).map(move |c| (r, c))).chain(more.iter().copied());
        Self {
            queues: cores.map(|core| (core, CommandQueue::new(slots))).collect(),
            cache: BinaryCache::new(policy, binaries),
        }
    }

    /// When all cores have executed their commands.
    pub(crate) fn free_at(&self) -> ModelCycle {
        self.queues.values().map(CommandQueue::free_at).max().unwrap_or(0)
    }

    /// Number of cores with fewer free slots than `slots`, as far as the host knows.
    pub(crate) fn short_of(&self, slots: usize) -> usize {
        self.queues.values().filter(|queue| queue.known_free() < slots).count()
    }

    /// The host reads the read pointers of those cores.
    pub(crate) fn refresh(&mut self, slots: usize, now: ModelCycle) {
        self.queues.values_mut().filter(|queue| queue.known_free() < slots).for_each(|queue| queue.refresh(now));
    }

    /// When all queues will have this many free slots, and whether a loop holds the last of them.
    pub(crate) fn free_by(&self, slots: usize) -> (ModelCycle, bool) {
        let by = |queue: &CommandQueue| {
            let at = queue.free_by(slots).unwrap_or_else(|| queue.free_at());
            (at, queue.held_by_loop(slots))
        };
        self.queues.values().map(by).max().unwrap_or_default()
    }

    /// The most commands in a queue, as far as the host knows.
    pub(crate) fn deepest(&self) -> usize {
        self.queues.values().map(CommandQueue::known_used).max().unwrap_or(0)
    }
}
