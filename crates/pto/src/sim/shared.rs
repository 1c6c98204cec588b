//! The shared state of a running cluster: clock, semaphores, slots, memories, events.

use super::{Config, RacePolicy};
use crate::core_id::{CoreId, Lanes};
use crate::deadlock::Waiting;
use crate::events::Event;
use crate::fault::{Fault, Race, When};
use crate::launch::Binding;
use crate::machine::{Progress, State, Wiring};
use crate::memory::{Memories, Regions};
use crate::protocol::{Step, Way};
use crate::random::Random;
use crate::ring::RingSpec;
use crate::timing;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A ring as its cores see it.
#[derive(Debug)]
pub(super) struct RingInfo {
    pub(super) spec: RingSpec,
    /// The block for which it was made.
    pub(super) block: Rc<()>,
    pub(super) ways: Vec<Way>,
    /// Per way: where the slots start and where the consumer's copies start.
    pub(super) places: Vec<[usize; 2]>,
}

/// What a core waits for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Wait {
    Step(Step),
    Semaphore { id: u8, lanes: Lanes },
}

/// Status of a core.
#[derive(Clone, Copy, Debug)]
pub(super) enum Status {
    Running,
    Until(u64),
    Blocked(Wait),
    Ended,
}

/// A line of global memory in the cache of a core's scalar unit.
pub(super) struct Line {
    pub(super) bytes: Vec<u8>,
    /// Written, and not yet in memory.
    pub(super) dirty: bool,
}

/// The lines that a core's scalar unit holds, by address.
pub(super) type Cache = BTreeMap<usize, Line>;

pub(super) struct Shared {
    pub(super) config: Config,
    pub(super) binding: Binding,
    /// A token of this block on this cluster, shared with its rings.
    pub(super) block: Rc<()>,
    pub(super) wiring: Wiring,
    pub(super) state: State,
    pub(super) regions: Regions,
    pub(super) memories: Memories,
    pub(super) caches: [Cache; 3],
    pub(super) now: u64,
    pub(super) status: [Status; 3],
    pub(super) fault: Option<Fault>,
    pub(super) races: Vec<Race>,
    pub(super) events: Vec<Event>,
    delays: [Random; 3],
    order: Random,
}

impl Shared {
    pub(super) fn new(config: Config, binding: Binding) -> Self {
        let wiring = Wiring::new(config.arch);
        let stream = |index| Random::new(config.seed, index);
        Self {
            config,
            binding,
            block: Rc::default(),
            state: State::new(&wiring),
            wiring,
            regions: Regions::default(),
            memories: Memories::default(),
            caches: Default::default(),
            now: 0,
            status: [Status::Ended; 3],
            fault: None,
            races: Vec::new(),
            events: Vec::new(),
            delays: [stream(1), stream(2), stream(3)],
            order: stream(0),
        }
    }

    pub(super) fn start(&mut self, index: usize, runs: bool) {
        let skew = if self.config.jitter_percent == 0 { 0 } else { self.delays[index].up_to(timing::START_SKEW) };
        self.status[index] = if runs { Status::Until(self.now + skew) } else { Status::Ended };
    }

    /// A cost with the seed's jitter.
    pub(super) fn delay(&mut self, core: CoreId, cycles: u64) -> u64 {
        cycles + self.delays[core.index()].up_to(cycles.saturating_mul(self.config.jitter_percent) / 100)
    }

    /// Chooses the core that runs next and advances the clock to its cycle.
    pub(super) fn next(&mut self) -> Option<usize> {
        let ready = |core: CoreId| match self.status[core.index()] {
            Status::Until(cycle) => Some(cycle),
            Status::Blocked(wait) => self.missing(core, wait).is_empty().then_some(self.now),
            Status::Running | Status::Ended => None,
        };
        let cycles = CoreId::ALL.map(ready);
        let least = cycles.iter().flatten().min().copied()?;
        let first: Vec<_> = (0..3).filter(|&index| cycles[index] == Some(least)).collect();
        self.now = self.now.max(least);
        let chosen = self.order.up_to(u64::try_from(first.len() - 1).unwrap_or(0));
        let next = first.get(usize::try_from(chosen).unwrap_or(0)).copied()?;
        self.status[next] = Status::Running;
        Some(next)
    }

    fn missing(&self, core: CoreId, wait: Wait) -> Vec<crate::ffts::Counter> {
        match wait {
            Wait::Step(step) => self.state.missing(core, &step),
            Wait::Semaphore { id, lanes } => self.state.semaphores.missing(core, id, lanes),
        }
    }

    /// All cores that wait, and for what.
    pub(super) fn waits(&self) -> Vec<Waiting> {
        let waiting = |core: CoreId| match self.status[core.index()] {
            Status::Blocked(wait @ Wait::Step(step)) => {
                Some(Waiting::on_ring(core, &step, &self.wiring.ways[step.way], &self.missing(core, wait)))
            }
            Status::Blocked(wait @ Wait::Semaphore { id, .. }) => {
                Some(Waiting::on_semaphore(core, id, &self.missing(core, wait)))
            }
            _ => None,
        };
        CoreId::ALL.into_iter().filter_map(waiting).collect()
    }

    /// Performs a step; returns false if it must wait. A fault is recorded, so that a kernel
    /// cannot ignore it.
    pub(super) fn step(&mut self, core: CoreId, step: &Step) -> Result<bool, Fault> {
        if let Some(signal) = step.signal {
            self.check_address(core, signal.id, signal.pipe)?;
        }
        match self.state.step(&self.wiring, core, step, When(Some(self.now))) {
            Ok(Progress::Done) => Ok(true),
            Ok(Progress::Blocked(_)) => Ok(false),
            Ok(Progress::Raced(race)) if self.config.races == RacePolicy::Record => {
                self.races.push(*race);
                Ok(true)
            }
            Ok(Progress::Raced(race)) => Err(Fault::Race(race)),
            Err(fault) => Err(fault),
        }
    }

    /// Checks that the cluster can reach its semaphores.
    pub(super) fn check_address(&self, core: CoreId, id: u8, pipe: crate::core_id::Pipe) -> Result<(), Fault> {
        if self.binding.ffts_ready() {
            return Ok(());
        }
        Err(Fault::NoFftsAddress { core, pipe, id, cycle: When(Some(self.now)) })
    }
}
