//! Exhaustive exploration of the interleavings of small programs, breadth first.
//!
//! A program is a list of ring operations per core. They are compiled to the same [`Step`]s that
//! the simulation runs ([`crate::protocol`]), on the same [`State`], without time and data. Each
//! step is atomic, any core may take the next one, and a transfer is two steps, so that steps of
//! other cores during it are covered.
//!
//! The search exploits that programs are straight lines: while nothing has gone wrong, sets and
//! waits have only added up and each slot has been written and freed in turn, so the three
//! positions determine the state and only they need to be stored (a test compares whole states). A
//! finding ends its path. Breadth-first order makes the first trace to a finding a shortest one.

use crate::arch::Arch;
use crate::core_id::{CoreId, Lane};
use crate::deadlock::{Deadlock, Waiting};
use crate::fault::{Fault, Race, When};
use crate::ffts::Counter;
use crate::machine::{Progress, State, Wiring};
use crate::protocol::{Act, Cursor, Step, Way};
use crate::ring::{RingError, RingSpec};
use std::collections::HashSet;
use std::fmt;

/// An operation of a program.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Opens this core's end of every ring.
    Open,
    /// TPUSH on the ring of this index.
    Push(usize),
    /// TPOP, and use of the tile.
    Pop(usize),
    /// TFREE.
    Free(usize),
    /// Closes this core's end of every ring.
    Close,
}

/// Rings and a program per core: Cube, Vector 0, Vector 1.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// The architecture.
    pub arch: Arch,
    /// The rings.
    pub rings: Vec<RingSpec>,
    /// The programs.
    pub programs: [Vec<Op>; 3],
}

impl Scenario {
    /// Sends `tiles` tiles over a unidirectional ring, each freed after its use (unless its
    /// pop does that).
    pub fn one_way(arch: Arch, ring: RingSpec, tiles: usize) -> Self {
        let send = [Op::Push(0)].repeat(tiles);
        let use_one: &[Op] = if ring.pop_frees(arch) { &[Op::Pop(0)] } else { &[Op::Pop(0), Op::Free(0)] };
        let receive = use_one.repeat(tiles);
        Self::exchange(arch, ring, &send, &receive)
    }

    /// As [`Self::one_way`], without TFREE and without closing the ring.
    pub fn never_freed(arch: Arch, ring: RingSpec, tiles: usize) -> Self {
        let mut scenario = Self::exchange(arch, ring, &[Op::Push(0)].repeat(tiles), &[Op::Pop(0)].repeat(tiles));
        for program in &mut scenario.programs {
            program.retain(|op| *op != Op::Close);
        }
        scenario
    }

    /// Both cores push `outstanding` tiles before they pop as many, over a bidirectional ring,
    /// `rounds` times.
    pub fn push_push_pop_pop(arch: Arch, ring: RingSpec, outstanding: usize, rounds: usize) -> Self {
        let mut both = [Op::Push(0)].repeat(outstanding);
        both.extend([Op::Pop(0), Op::Free(0)].repeat(outstanding));
        let both = both.repeat(rounds);
        Self { arch, rings: vec![ring], programs: CoreId::ALL.map(|_| opened(&both)) }
    }

    fn exchange(arch: Arch, ring: RingSpec, send: &[Op], receive: &[Op]) -> Self {
        let cube_sends = ring.flows() == [crate::protocol::Flow::C2V];
        let (cube, vector) = if cube_sends { (send, receive) } else { (receive, send) };
        let vector_1 = if ring.split.signal_lanes(arch).has(Lane::L1) { opened(vector) } else { Vec::new() };
        Self { arch, rings: vec![ring], programs: [opened(cube), opened(vector), vector_1] }
    }

    /// The steps of each core.
    fn compile(&self) -> Result<(Wiring, [Vec<Step>; 3]), ExploreError> {
        let mut wiring = Wiring::new(self.arch);
        let mut rings = Vec::new();
        for spec in &self.rings {
            rings.push(wiring.add(spec)?);
        }
        let mut steps = [const { Vec::new() }; 3];
        for core in CoreId::ALL {
            steps[core.index()] = compile(core, &rings, &self.programs[core.index()])?;
        }
        Ok((wiring, steps))
    }
}

fn opened(ops: &[Op]) -> Vec<Op> {
    [&[Op::Open], ops, &[Op::Close]].concat()
}

fn compile(core: CoreId, rings: &[Vec<Way>], program: &[Op]) -> Result<Vec<Step>, ExploreError> {
    let mut cursors: Vec<[Cursor; 2]> = vec![Default::default(); rings.len()];
    let mut steps = Vec::new();
    for &op in program {
        let find = |ring: usize, end: fn(&Way, CoreId) -> bool| {
            let ways = rings.get(ring).map_or(&[][..], Vec::as_slice);
            ways.iter().position(|way| end(way, core)).ok_or(ExploreError::NoSuchEnd { core, op })
        };
        match op {
            Op::Open => steps.extend(rings.iter().flatten().flat_map(|way| way.open(core))),
            Op::Push(ring) => {
                let way = find(ring, Way::produces)?;
                steps.extend(rings[ring][way].push(core, &mut cursors[ring][0]));
            }
            Op::Pop(ring) => {
                let way = &rings[ring][find(ring, Way::consumes)?];
                let cursor = &mut cursors[ring][1];
                let tile = cursor.popped;
                steps.extend(way.pop(core, cursor));
                if way.medium.zero_copy() {
                    steps.extend(way.load(core, tile));
                }
            }
            Op::Free(ring) => {
                let way = find(ring, Way::consumes)?;
                let freed = rings[ring][way].free(core, &mut cursors[ring][1]);
                steps.extend(freed.ok_or(ExploreError::NothingToFree { core, ring })?);
            }
            Op::Close => {
                for (ways, cursors) in rings.iter().zip(&cursors) {
                    steps.extend(ways.iter().flat_map(|way| way.close(core, &cursors[0])));
                }
            }
        }
    }
    Ok(steps)
}

/// Why a scenario cannot be explored.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ExploreError {
    /// A ring that cannot be created.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// The core is not on that end of the ring.
    #[error("{core} cannot do {op:?}: it is not on that end, or there is no such ring")]
    NoSuchEnd {
        /// The core.
        core: CoreId,
        /// The operation.
        op: Op,
    },
    /// TFREE with no popped tile.
    #[error("{core} frees a slot of ring {ring} without having one")]
    NothingToFree {
        /// The core.
        core: CoreId,
        /// The ring.
        ring: usize,
    },
}

/// What an exploration can find in an interleaving.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// A deadlock.
    Deadlock(Box<Deadlock>),
    /// A slot is overwritten too early.
    Race(Box<Race>),
    /// A semaphore overflow, lost credits, a wrong tile.
    Fault(Box<Fault>),
    /// All cores end, but semaphores are not zero for the next block.
    Leftover(Vec<(Counter, u8)>),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Deadlock(deadlock) => write!(f, "{deadlock}"),
            Self::Race(race) => write!(f, "{race}"),
            Self::Fault(fault) => write!(f, "{fault}"),
            Self::Leftover(left) => {
                f.write_str("ended with counts left:")?;
                for (counter, value) in left {
                    write!(f, " {value} in semaphore {} of {}", counter.id, counter.owner())?;
                }
                Ok(())
            }
        }
    }
}

/// One step of a trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Traced {
    /// The core.
    pub core: CoreId,
    /// The ring (and direction).
    pub ring: String,
    /// What it did.
    pub step: Step,
}

impl fmt::Display for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.step.act {
            Act::Grant => "gives the credit of slot",
            Act::Acquire => "takes a slot for tile",
            Act::BeginWrite => "starts to write tile",
            Act::EndWrite => "has written tile",
            Act::Publish => "says ready: tile",
            Act::Take => "pops tile",
            Act::BeginRead => "starts to read tile",
            Act::EndRead => "has read tile",
            Act::Release => "frees tile",
            Act::Notify => "signals once more for tile",
            Act::Drain => "takes back the credit of tile",
        };
        write!(f, "{} {what} {} of `{}`", self.core, self.step.tile, self.ring)?;
        match self.step.signal {
            Some(signal) if self.step.waits() => write!(f, " (waited for semaphore {}, {})", signal.id, signal.pipe),
            Some(signal) => write!(f, " (sets semaphore {}, {})", signal.id, signal.pipe),
            None => Ok(()),
        }
    }
}

/// Findings of one kind: how many, and a shortest trace to one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// States in which it happens.
    pub count: usize,
    /// The first, in breadth-first order.
    pub first: Finding,
    /// A shortest sequence of steps to it; the last one causes it.
    pub trace: Vec<Traced>,
}

/// Result of an exploration.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Explored {
    /// States reached.
    pub states: usize,
    /// Steps between them.
    pub transitions: usize,
    /// Whether it reached all states; false if it stopped at the bound.
    pub complete: bool,
    /// States in which all programs have ended.
    pub ends: usize,
    /// Deadlocks.
    pub deadlock: Option<Found>,
    /// Races.
    pub race: Option<Found>,
    /// Other faults.
    pub fault: Option<Found>,
    /// Counts left at the end.
    pub leftover: Option<Found>,
}

impl Explored {
    /// Whether every interleaving ended without findings.
    pub fn is_clean(&self) -> bool {
        self.complete && self.ends > 0 && self.found().next().is_none()
    }

    /// Everything that was found.
    pub fn found(&self) -> impl Iterator<Item = &Found> {
        [&self.deadlock, &self.race, &self.fault, &self.leftover].into_iter().flatten()
    }
}

type Positions = [u32; 3];

/// A reached state: its predecessor and the core that took the step.
struct Node {
    positions: Positions,
    from: Option<(u32, CoreId)>,
}

struct Search {
    wiring: Wiring,
    steps: [Vec<Step>; 3],
    nodes: Vec<Node>,
    seen: HashSet<Positions>,
    result: Explored,
}

/// Explores a scenario; stops after the level at which it has reached `most_states` states (then
/// [`Explored::complete`] is false).
pub fn explore(scenario: &Scenario, most_states: usize) -> Result<Explored, ExploreError> {
    let (wiring, steps) = scenario.compile()?;
    let start = State::new(&wiring);
    let mut search = Search { wiring, steps, nodes: Vec::new(), seen: HashSet::new(), result: Explored::default() };
    let mut level = Vec::new();
    level.extend(search.reach([0; 3], start, None));
    // Whole states are kept for one level only; for the others just the positions.
    while !level.is_empty() && search.nodes.len() < most_states {
        let mut next = Vec::new();
        for (node, state) in level {
            search.expand(node, &state, &mut next);
        }
        level = next;
    }
    search.result.complete = level.is_empty();
    search.result.states = search.nodes.len();
    Ok(search.result)
}

impl Search {
    fn reach(&mut self, positions: Positions, state: State, from: Option<(u32, CoreId)>) -> Option<(u32, State)> {
        if !self.seen.insert(positions) {
            return None;
        }
        let node = u32::try_from(self.nodes.len()).ok()?;
        self.nodes.push(Node { positions, from });
        Some((node, state))
    }

    fn expand(&mut self, node: u32, state: &State, next: &mut Vec<(u32, State)>) {
        let positions = self.nodes[node as usize].positions;
        let (mut waits, mut moved) = (Vec::new(), false);
        for core in CoreId::ALL {
            let index = core.index();
            let Some(&step) = self.steps[index].get(positions[index] as usize) else { continue };
            let missing = state.missing(core, &step);
            if !missing.is_empty() {
                waits.push(Waiting::on_ring(core, &step, &self.wiring.ways[step.way], &missing));
                continue;
            }
            let mut after = state.clone();
            let progress = after.step(&self.wiring, core, &step, When(None));
            moved = true;
            self.result.transitions += 1;
            match progress {
                Ok(Progress::Raced(race)) => self.find(node, Some(core), Finding::Race(race)),
                Err(fault) => self.find(node, Some(core), Finding::Fault(Box::new(fault))),
                Ok(_) => {
                    let mut positions = positions;
                    positions[index] += 1;
                    next.extend(self.reach(positions, after, Some((node, core))));
                }
            }
        }
        if moved {
            return;
        }
        if !waits.is_empty() {
            self.find(node, None, Finding::Deadlock(Box::new(Deadlock::new(When(None), waits))));
            return;
        }
        self.result.ends += 1;
        let left = state.semaphores.left();
        if !left.is_empty() {
            self.find(node, None, Finding::Leftover(left));
        }
    }

    fn find(&mut self, node: u32, last: Option<CoreId>, finding: Finding) {
        let place = match &finding {
            Finding::Deadlock(_) => &mut self.result.deadlock,
            Finding::Race(_) => &mut self.result.race,
            Finding::Fault(_) => &mut self.result.fault,
            Finding::Leftover(_) => &mut self.result.leftover,
        };
        if let Some(found) = place {
            found.count += 1;
            return;
        }
        let mut path: Vec<_> = last.map(|core| (node, core)).into_iter().collect();
        let mut at = node;
        while let Some((from, core)) = self.nodes[at as usize].from {
            path.push((from, core));
            at = from;
        }
        let traced = |&(node, core): &(u32, CoreId)| {
            let position = self.nodes[node as usize].positions[core.index()];
            let step = self.steps[core.index()][position as usize];
            Traced { core, ring: self.wiring.ways[step.way].name.clone(), step }
        };
        let trace = path.iter().rev().map(traced).collect();
        *place = Some(Found { count: 1, first: finding, trace });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Profile;
    use crate::ring::Direction;
    use crate::tile::{DType, Shape};
    use std::collections::BTreeMap;

    /// All whole states by their positions, without the search's assumption.
    fn whole_states(scenario: &Scenario) -> BTreeMap<Positions, State> {
        let (wiring, steps) = scenario.compile().unwrap();
        let mut found = BTreeMap::new();
        let mut open = vec![([0; 3], State::new(&wiring))];
        while let Some((positions, state)) = open.pop() {
            if let Some(known) = found.get(&positions) {
                assert_eq!(known, &state, "{positions:?}");
                continue;
            }
            for core in CoreId::ALL {
                let index = core.index();
                let Some(step) = steps[index].get(positions[index] as usize) else { continue };
                let mut after = state.clone();
                if after.step(&wiring, core, step, When(None)) == Ok(Progress::Done) {
                    let mut positions: Positions = positions;
                    positions[index] += 1;
                    open.push((positions, after));
                }
            }
            found.insert(positions, state);
        }
        found
    }

    #[test]
    fn positions_determine_the_state() {
        for arch in Arch::ALL {
            for profile in [Profile::Counting, Profile::PerTagFlags, Profile::SparseCredits] {
                let tile = Shape::new(2, 8, DType::F32);
                let ring = |direction, slots| RingSpec::new("r", direction, tile).slots(slots).profile(profile);
                let both = if arch == Arch::A5 { Direction::BothGm } else { Direction::Both };
                for scenario in [
                    Scenario::one_way(arch, ring(Direction::C2V, 2), 5),
                    Scenario::one_way(arch, ring(Direction::V2C, 5), 7),
                    Scenario::push_push_pop_pop(arch, ring(Direction::Both, 1), 2, 1),
                    Scenario::push_push_pop_pop(arch, ring(both, 2), 1, 2),
                ] {
                    let explored = explore(&scenario, usize::MAX).unwrap();
                    assert_eq!(explored.states, whole_states(&scenario).len());
                }
            }
        }
    }
}
