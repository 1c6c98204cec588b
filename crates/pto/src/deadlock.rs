//! Deadlocks: the cores that wait, and what for.

use crate::core_id::CoreId;
use crate::fault::When;
use crate::ffts::Counter;
use crate::protocol::{Act, Step, Way};
use std::fmt;

/// What a core waits for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum WaitFor {
    /// A free slot.
    Free,
    /// A tile that is ready.
    Ready,
    /// The outstanding credits when a ring is closed.
    Drain,
    /// A semaphore that is not part of a ring.
    Semaphore,
}

/// A core that waits.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Waiting {
    /// The core.
    pub core: CoreId,
    /// What it waits for.
    pub what: WaitFor,
    /// The ring (and direction) and the tile's number, for a wait of a ring.
    pub tile: Option<(String, u32)>,
    /// The semaphore id.
    pub id: u8,
    /// Cores whose set is missing.
    pub from: Vec<CoreId>,
}

impl Waiting {
    pub(crate) fn on_ring(core: CoreId, step: &Step, way: &Way, missing: &[Counter]) -> Self {
        let what = match step.act {
            Act::Acquire => WaitFor::Free,
            Act::Drain => WaitFor::Drain,
            _ => WaitFor::Ready,
        };
        let id = step.signal.map_or(0, |signal| signal.id);
        Self { core, what, tile: Some((way.name.clone(), step.tile)), id, from: setters(missing) }
    }

    pub(crate) fn on_semaphore(core: CoreId, id: u8, missing: &[Counter]) -> Self {
        Self { core, what: WaitFor::Semaphore, tile: None, id, from: setters(missing) }
    }
}

fn setters(missing: &[Counter]) -> Vec<CoreId> {
    missing.iter().map(Counter::setter).collect()
}

/// A state in which no core can continue.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Deadlock {
    /// When.
    pub cycle: When,
    /// All cores that wait.
    pub waits: Vec<Waiting>,
    /// Cores whose kernels have ended, or that have none.
    pub ended: Vec<CoreId>,
    /// The cycle of waits: each core waits for the next, the last for the first. Empty if there is
    /// none, because some core waits for one that has ended.
    pub circle: Vec<CoreId>,
}

impl Deadlock {
    pub(crate) fn new(cycle: When, waits: Vec<Waiting>) -> Self {
        let ended = CoreId::ALL.into_iter().filter(|core| waits.iter().all(|wait| wait.core != *core)).collect();
        let circle = waits.iter().find_map(|wait| circle(&waits, &mut vec![wait.core])).unwrap_or_default();
        Self { cycle, waits, ended, circle }
    }

    /// The waits of the cycle in order, or all of them if there is no cycle.
    pub fn chain(&self) -> Vec<&Waiting> {
        let of = |core: &CoreId| self.waits.iter().find(|wait| wait.core == *core);
        if self.circle.is_empty() { self.waits.iter().collect() } else { self.circle.iter().filter_map(of).collect() }
    }
}

/// Finds the first cycle of waits along this path.
fn circle(waits: &[Waiting], path: &mut Vec<CoreId>) -> Option<Vec<CoreId>> {
    let wait = waits.iter().find(|wait| path.last() == Some(&wait.core))?;
    for &next in &wait.from {
        if let Some(start) = path.iter().position(|&core| core == next) {
            return Some(path[start..].to_vec());
        }
        path.push(next);
        if let Some(found) = circle(waits, path) {
            return Some(found);
        }
        path.pop();
    }
    None
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} waits for ", self.core)?;
        match (&self.what, &self.tile) {
            (WaitFor::Free, Some((ring, tile))) => write!(f, "a free slot of `{ring}` for tile {tile}")?,
            (WaitFor::Ready, Some((ring, tile))) => write!(f, "tile {tile} of `{ring}`")?,
            (WaitFor::Drain, Some((ring, _))) => write!(f, "the last slots of `{ring}` to be freed")?,
            _ => f.write_str("a set")?,
        }
        let from: Vec<_> = self.from.iter().map(CoreId::to_string).collect();
        write!(f, " (semaphore {}, to be set by {})", self.id, from.join(" and "))
    }
}

impl fmt::Display for Deadlock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waits: Vec<_> = self.chain().into_iter().map(Waiting::to_string).collect();
        write!(f, "{}deadlock: {}", self.cycle, waits.join("; "))?;
        if self.circle.is_empty() {
            let ended: Vec<_> = self.ended.iter().map(CoreId::to_string).collect();
            write!(f, "; {} will not set anything any more, having ended", ended.join(" and "))?;
        }
        Ok(())
    }
}
