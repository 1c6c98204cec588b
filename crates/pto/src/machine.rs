//! The state of a cluster's semaphores and slots, and the effect of a [`Step`] on it. It has
//! neither time nor data: the simulation adds both, the exploration needs neither.

use crate::arch::Arch;
use crate::core_id::{CoreId, Lane, Lanes};
use crate::fault::{Access, Fault, Race, When};
use crate::ffts::{Counter, Semaphores};
use crate::protocol::{Act, Flow, Step, Way};
use crate::ring::{RingError, RingSpec};

/// The configuration, which does not change while kernels run.
#[derive(Clone, Debug)]
pub struct Wiring {
    /// The architecture.
    pub arch: Arch,
    /// The ways of all rings.
    pub ways: Vec<Way>,
}

impl Wiring {
    /// A configuration without rings.
    pub fn new(arch: Arch) -> Self {
        Self { arch, ways: Vec::new() }
    }

    /// Adds the ways of a ring, after checking that it is valid and that its semaphores are not
    /// used by another ring.
    pub fn add(&mut self, spec: &RingSpec) -> Result<Vec<Way>, RingError> {
        spec.check(self.arch)?;
        let buffer = self.ways.iter().map(|way| way.buffer + 1).max().unwrap_or(0);
        let ways = Way::of(spec, self.arch, self.ways.len(), buffer);
        for mine in &ways {
            let shared = |other: &Way| other.ids().find(|id| mine.ids().any(|my| my == *id));
            if let Some((other, id)) = self.ways.iter().find_map(|other| Some((other.name.clone(), shared(other)?))) {
                return Err(RingError::SharedId { ring: spec.name.clone(), other, id });
            }
        }
        self.ways.extend(ways.iter().cloned());
        Ok(ways)
    }
}

/// Counts on one lane of a way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Counts {
    /// Credits given at the start.
    pub granted: u32,
    /// Slots acquired by the producer.
    pub acquired: u32,
    /// Tiles published as ready.
    pub published: u32,
    /// Tiles popped.
    pub taken: u32,
    /// Tiles freed.
    pub released: u32,
    /// Credits taken back at the end.
    pub drained: u32,
}

/// Phase of a tile in a slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
enum Phase {
    Writing,
    Written,
    Reading,
    Read,
}

/// The tile in one lane's share of a slot.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
struct Cell {
    way: usize,
    tile: u32,
    core: CoreId,
    phase: Phase,
    from: When,
    to: When,
}

/// Semaphores, slots and counts.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct State {
    /// The semaphores.
    pub semaphores: Semaphores,
    /// Per way and lane.
    pub counts: Vec<[Counts; 2]>,
    /// Per buffer, slot and lane.
    cells: Vec<Vec<[Option<Cell>; 2]>>,
    /// Ways with a race: their counts no longer add up.
    raced: Vec<bool>,
}

/// Result of a step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// It is done.
    Done,
    /// It is done, but caused a race.
    Raced(Box<Race>),
    /// It must wait for these counters; nothing changed.
    Blocked(Vec<Counter>),
}

impl State {
    /// The initial state, all zero.
    pub fn new(wiring: &Wiring) -> Self {
        let mut state =
            Self { semaphores: Semaphores::default(), counts: Vec::new(), cells: Vec::new(), raced: Vec::new() };
        state.grow(wiring);
        state
    }

    /// The same semaphores with other ways: the initial state of the next block.
    #[must_use]
    pub fn for_next_block(&self, wiring: &Wiring) -> Self {
        Self { semaphores: self.semaphores.clone(), ..Self::new(wiring) }
    }

    /// Makes room for ways that have been added.
    pub fn grow(&mut self, wiring: &Wiring) {
        for way in &wiring.ways[self.counts.len()..] {
            self.counts.push([Counts::default(); 2]);
            self.raced.push(false);
            if self.cells.len() <= way.buffer {
                self.cells.resize(way.buffer + 1, Vec::new());
            }
            let slots = usize::try_from(way.slots).unwrap_or(usize::MAX);
            self.cells[way.buffer].resize(slots, [None; 2]);
        }
    }

    /// Performs a step, or returns what it waits for.
    pub fn step(&mut self, wiring: &Wiring, core: CoreId, step: &Step, cycle: When) -> Result<Progress, Fault> {
        if !self.signal(wiring.arch, core, step, cycle)? {
            return Ok(Progress::Blocked(self.missing(core, step)));
        }
        let way = &wiring.ways[step.way];
        let mut race = None;
        for lane in step.lanes.iter() {
            let counts = &mut self.counts[step.way][lane.index()];
            match step.act {
                Act::Grant => counts.granted += 1,
                Act::Acquire => counts.acquired += 1,
                Act::Publish => counts.published += 1,
                Act::Take => counts.taken += 1,
                Act::Drain => counts.drained += 1,
                Act::Notify => {}
                Act::Release => {
                    counts.released += 1;
                    self.free(way, step.tile, lane);
                }
                Act::BeginWrite => race = self.begin_write(wiring, core, step, lane, cycle).or(race),
                Act::EndWrite | Act::EndRead => self.end(way, step, lane, cycle),
                Act::BeginRead => {
                    if let Err(fault) = self.begin_read(wiring, core, step, lane, cycle)
                        && !self.raced[step.way]
                    {
                        return Err(fault);
                    }
                }
            }
        }
        self.check(way, step.lanes, cycle)?;
        Ok(race.map_or(Progress::Done, Progress::Raced))
    }

    /// Performs a step's set or wait; returns false if it must wait.
    fn signal(&mut self, arch: Arch, core: CoreId, step: &Step, cycle: When) -> Result<bool, Fault> {
        let Some(signal) = step.signal else { return Ok(true) };
        if step.waits() {
            return Ok(self.semaphores.take(core, signal.id, step.lanes));
        }
        let full = |overflow| Fault::overflow(arch, core, signal.pipe, overflow, cycle);
        self.semaphores.set(core, signal.id, step.lanes).map_err(full).map(|()| true)
    }

    /// The counters at zero that a step waits for.
    pub fn missing(&self, core: CoreId, step: &Step) -> Vec<Counter> {
        match step.signal {
            Some(signal) if step.waits() => self.semaphores.missing(core, signal.id, step.lanes),
            _ => Vec::new(),
        }
    }

    fn cell(&mut self, way: &Way, tile: u32, lane: Lane) -> &mut Option<Cell> {
        &mut self.cells[way.buffer][way.slot(tile) as usize][lane.index()]
    }

    fn free(&mut self, way: &Way, tile: u32, lane: Lane) {
        let index = way.index;
        let cell = self.cell(way, tile, lane);
        if cell.is_some_and(|cell| cell.way == index && cell.tile == tile) {
            *cell = None;
        }
    }

    fn begin_write(
        &mut self,
        wiring: &Wiring,
        core: CoreId,
        step: &Step,
        lane: Lane,
        cycle: When,
    ) -> Option<Box<Race>> {
        let way = &wiring.ways[step.way];
        let new = Cell { way: step.way, tile: step.tile, core, phase: Phase::Writing, from: cycle, to: cycle };
        let old = self.cell(way, step.tile, lane).replace(new)?;
        // A second store into the producer's own slot (a tile sent in parts) is no race.
        if (old.way, old.tile) == (step.way, step.tile) && matches!(old.phase, Phase::Writing | Phase::Written) {
            return None;
        }
        self.raced[step.way] = true;
        self.raced[old.way] = true;
        let counts = self.counts[step.way][lane.index()];
        let access = |cell: &Cell| Access {
            core: cell.core,
            ring: wiring.ways[cell.way].name.clone(),
            tile: cell.tile,
            write: matches!(cell.phase, Phase::Writing | Phase::Written),
            from: cell.from,
            to: matches!(cell.phase, Phase::Written | Phase::Read).then_some(cell.to),
        };
        Some(Box::new(Race {
            slot: way.slot(step.tile),
            lane,
            first: access(&old),
            read: old.phase == Phase::Read,
            second: access(&new),
            acquired: counts.acquired,
            freed: counts.released,
            slots: way.slots,
        }))
    }

    fn begin_read(&mut self, wiring: &Wiring, core: CoreId, step: &Step, lane: Lane, cycle: When) -> Result<(), Fault> {
        let way = &wiring.ways[step.way];
        match self.cell(way, step.tile, lane) {
            Some(cell) if (cell.way, cell.tile) == (step.way, step.tile) && cell.phase != Phase::Writing => {
                *cell = Cell { core, phase: Phase::Reading, from: cycle, to: cycle, ..*cell };
                Ok(())
            }
            found => {
                let found = found.map_or("no tile".to_owned(), |cell| {
                    let state = if cell.phase == Phase::Writing { ", half written" } else { "" };
                    format!("tile {} of `{}`{state}", cell.tile, wiring.ways[cell.way].name)
                });
                let slot = way.slot(step.tile);
                Err(Fault::WrongTile { core, ring: way.name.clone(), tile: step.tile, slot, found, cycle })
            }
        }
    }

    fn end(&mut self, way: &Way, step: &Step, lane: Lane, cycle: When) {
        if let Some(cell) = self.cell(way, step.tile, lane)
            && (cell.way, cell.tile) == (step.way, step.tile)
        {
            cell.to = cycle;
            cell.phase = if step.act == Act::EndWrite { Phase::Written } else { Phase::Read };
        }
    }

    /// Checks the invariants of a way: no more tiles in flight than slots, and no credit
    /// lost or gained.
    fn check(&self, way: &Way, lanes: Lanes, cycle: When) -> Result<(), Fault> {
        if self.raced[way.index] {
            return Ok(());
        }
        for lane in lanes.and(way.lanes).iter() {
            let counts = self.counts[way.index][lane.index()];
            let Counts { published, released, .. } = counts;
            if way.data.has(lane) && published.checked_sub(released).is_none_or(|out| out > way.slots) {
                let ring = way.name.clone();
                return Err(Fault::Invariant { ring, pushed: published, freed: released, slots: way.slots, cycle });
            }
            if !way.conserves_credits() {
                continue;
            }
            let (ready, free) = self.credits(way, lane);
            let held = counts.taken.saturating_sub(counts.released);
            let in_flight = counts.acquired.saturating_sub(counts.published);
            let granted = counts.granted.saturating_sub(counts.drained);
            if ready + free + held + in_flight != granted {
                let (ring, vector) = (way.name.clone(), CoreId::vector(lane));
                return Err(Fault::Credits { ring, vector, ready, free, held, in_flight, granted, cycle });
            }
        }
        Ok(())
    }

    /// The values of "ready" and "free" of a lane.
    pub fn credits(&self, way: &Way, lane: Lane) -> (u32, u32) {
        let to_vector = way.flow == Flow::C2V;
        let sum = |base: u8, at_vector| {
            let ids = (0..way.tags()).map(|tag| base.saturating_add(tag));
            ids.map(|id| u32::from(self.semaphores.value(Counter { id, lane, at_vector }))).sum()
        };
        (sum(way.ready, to_vector), sum(way.free, !to_vector))
    }
}
