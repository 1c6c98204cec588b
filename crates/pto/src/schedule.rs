//! Schedules: straight lists of ring operations for each core, without arithmetic. A schedule runs
//! on a cluster, with tiles of known contents, and all its interleavings can be explored.
//!
//! ```
//! use tilework_pto::schedule::{Action, Schedule};
//! use tilework_pto::{Arch, Config, DType, Direction, RingSpec, Shape, explore};
//!
//! // Tiles go from the Cube to the Vectors and come back.
//! let tile = Shape::new(16, 32, DType::F32);
//! let there = RingSpec::new("there", Direction::C2V, tile).slots(2);
//! let back = RingSpec::new("back", Direction::V2C, tile).slots(2).flag(2);
//! let cube = [Action::Work(256), Action::Push(0), Action::Pop(1), Action::Free(1)].repeat(8);
//! let vector = [Action::Pop(0), Action::Work(64), Action::Push(1), Action::Free(0)].repeat(8);
//! let schedule = Schedule { rings: vec![there, back], actions: [cube, vector.clone(), vector] };
//!
//! let ran = schedule.run(Config::new(Arch::A5, 7), 0);
//! let done = ran.outcome?;
//! assert_eq!((done.wrong, done.report.leftovers.len()), (0, 0));
//! assert_eq!(done.uses[0].pushed, 8);
//!
//! // Every order in which the cores can take these steps ends well.
//! assert!(explore(&schedule.scenario(Arch::A5), 1_000_000)?.is_clean());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::arch::Arch;
use crate::core_id::{CoreId, Lane, Pipe};
use crate::events::{Event, EventKind};
use crate::explore::{Op, Scenario};
use crate::fault::Fault;
use crate::machine::Wiring;
use crate::protocol::{Flow, Way};
use crate::ring::{RingError, RingSpec};
use crate::sim::{Cluster, ClusterReport, Config, Core, Ring, RingEnd};
use crate::split::Split;
use crate::tile::{Shape, Tile};
use std::rc::Rc;

/// What a core does next. Rings are named by their positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// TPUSH of its next tile.
    Push(usize),
    /// TPOP of the next tile, whose elements are read.
    Pop(usize),
    /// TFREE of the oldest tile that it holds.
    Free(usize),
    /// Arithmetic of so many cycles, of the matrix pipe on the Cube and of the vector pipe on a
    /// Vector.
    Work(u64),
}

impl Action {
    /// The ring and what is done with it.
    fn on_ring(self) -> Option<(usize, &'static str)> {
        match self {
            Self::Push(ring) => Some((ring, "push on")),
            Self::Pop(ring) => Some((ring, "pop from")),
            Self::Free(ring) => Some((ring, "free a slot of")),
            Self::Work(_) => None,
        }
    }
}

/// Rings, and what each core does: Cube, Vector 0, Vector 1. Every core opens its ends of all rings
/// first and closes them at the end.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// The rings.
    pub rings: Vec<RingSpec>,
    /// The cores' actions.
    pub actions: [Vec<Action>; 3],
}

/// Why a schedule cannot run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ScheduleError {
    /// A ring that cannot be created.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// There is no ring of this number.
    #[error("{core} uses ring {ring}; there are {rings}")]
    NoRing {
        /// The core.
        core: CoreId,
        /// The ring's number.
        ring: usize,
        /// Rings of the schedule.
        rings: usize,
    },
    /// The core is not on that end of the ring.
    #[error("{core} cannot {what} `{ring}`, which goes {way}")]
    NoEnd {
        /// The core.
        core: CoreId,
        /// What it wants.
        what: &'static str,
        /// The ring.
        ring: String,
        /// Its direction in words.
        way: &'static str,
    },
}

/// How often a ring was used.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct RingUse {
    /// Tiles that the Cube pushed, and those that Vector 0 pushed.
    pub pushed: usize,
    /// Tiles that the Cube popped, and those that Vector 0 popped.
    pub popped: usize,
}

/// The result of a schedule that has ended.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ScheduleDone {
    /// What the cluster reports.
    pub report: ClusterReport,
    /// Popped tiles (or parts of them) that did not have the elements that were pushed.
    pub wrong: usize,
    /// The rings, in their order.
    pub uses: Vec<RingUse>,
}

/// A run of a schedule: its events, and how it ended.
#[derive(Clone, PartialEq, Debug)]
pub struct ScheduleRun {
    /// What happened, in the order in which it ended.
    pub events: Vec<Event>,
    /// How it ended.
    pub outcome: Result<ScheduleDone, Fault>,
}

impl Schedule {
    /// A schedule in which both Vectors do the same. Vector 1 leaves out operations on rings on
    /// which it has no end: those without split, on A5.
    pub fn with_vectors(rings: Vec<RingSpec>, cube: Vec<Action>, vectors: Vec<Action>, arch: Arch) -> Self {
        let has_end = |action: &&Action| match action.on_ring() {
            Some((ring, _)) => rings.get(ring).is_none_or(|ring| ring.split.signal_lanes(arch).has(Lane::L1)),
            None => true,
        };
        let second = vectors.iter().filter(has_end).copied().collect();
        Self { actions: [cube, vectors, second], rings }
    }

    /// Checks the rings, and that every core is on the ends that it uses.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn check(&self, arch: Arch) -> Result<(), ScheduleError> {
        let mut wiring = Wiring::new(arch);
        let ways = self.rings.iter().map(|ring| wiring.add(ring)).collect::<Result<Vec<_>, _>>()?;
        for core in CoreId::ALL {
            for action in &self.actions[core.index()] {
                let Some((ring, what)) = action.on_ring() else { continue };
                let Some(ways) = ways.get(ring) else {
                    return Err(ScheduleError::NoRing { core, ring, rings: self.rings.len() });
                };
                let pushes = matches!(action, Action::Push(_));
                let is_end = |way: &Way| if pushes { way.produces(core) } else { way.consumes(core) };
                if !ways.iter().any(is_end) {
                    let spec = &self.rings[ring];
                    let way = goes(spec, arch);
                    return Err(ScheduleError::NoEnd { core, what, ring: spec.name.clone(), way });
                }
            }
        }
        Ok(())
    }

    /// Runs it. A tile's elements follow from its ring, its number and their positions, and every
    /// popped tile is compared with them. `consumer_cycles` are spent on every popped tile besides.
    pub fn run(&self, config: Config, consumer_cycles: u64) -> ScheduleRun {
        let refused = |fault| ScheduleRun { events: Vec::new(), outcome: Err(fault) };
        if let Err(error) = self.check(config.arch) {
            return refused(match error {
                ScheduleError::Ring(error) => Fault::Ring(error),
                other => Fault::Usage(other.to_string()),
            });
        }
        let mut cluster = Cluster::new(config);
        let rings = match self.rings.iter().map(|ring| cluster.ring(ring.clone())).collect::<Result<Vec<Ring>, _>>() {
            Ok(rings) => Rc::new(rings),
            Err(error) => return refused(error.into()),
        };
        let outputs = CoreId::ALL.map(|id| {
            let (rings, actions) = (Rc::clone(&rings), self.actions[id.index()].clone());
            cluster.spawn(id, async move |core| follow(core, &rings, &actions, consumer_cycles).await)
        });
        let outcome = cluster.run();
        let events = cluster.take_events();
        let uses = self.rings.iter().map(|ring| ring_use(&events, ring)).collect();
        let wrong = outputs.iter().filter_map(crate::sim::Output::take).sum();
        ScheduleRun { events, outcome: outcome.map(|report| ScheduleDone { report, wrong, uses }) }
    }

    /// The same for an exploration, which has no time.
    pub fn scenario(&self, arch: Arch) -> Scenario {
        let op = |action: &Action| match *action {
            Action::Push(ring) => Some(Op::Push(ring)),
            Action::Pop(ring) => Some(Op::Pop(ring)),
            Action::Free(ring) => Some(Op::Free(ring)),
            Action::Work(_) => None,
        };
        let program = |actions: &Vec<Action>| {
            let ops = actions.iter().filter_map(op);
            [Op::Open].into_iter().chain(ops).chain([Op::Close]).collect()
        };
        Scenario { arch, rings: self.rings.clone(), programs: self.actions.each_ref().map(program) }
    }
}

/// The direction of a ring in words, with the Vectors that have an end.
fn goes(ring: &RingSpec, arch: Arch) -> &'static str {
    let both = ring.split.signal_lanes(arch).has(Lane::L1);
    match (ring.flows(), both) {
        ([Flow::C2V], true) => "from the Cube to the Vectors",
        ([Flow::C2V], false) => "from the Cube to Vector 0",
        ([Flow::V2C], true) => "from the Vectors to the Cube",
        ([Flow::V2C], false) => "from Vector 0 to the Cube",
        (_, true) => "both ways between the Cube and the Vectors",
        (_, false) => "both ways between the Cube and Vector 0",
    }
}

/// Counts the operations of one core of each side: a tile for both Vectors is one tile.
fn ring_use(events: &[Event], ring: &RingSpec) -> RingUse {
    let count = |kind| {
        let of_ring = |event: &&Event| {
            let rest = event.name.strip_prefix(ring.name.as_str());
            let own = rest.is_some_and(|way| way.is_empty() || (ring.direction.is_both() && way.starts_with(' ')));
            event.kind == kind && own && event.core != CoreId::Vector1
        };
        events.iter().filter(of_ring).count()
    };
    RingUse { pushed: count(EventKind::Push), popped: count(EventKind::Pop) }
}

/// Carries out a core's actions; the number of wrong tiles.
async fn follow(core: Core, rings: &[Ring], actions: &[Action], consumer_cycles: u64) -> Result<usize, Fault> {
    let mut ends = Vec::new();
    for ring in rings {
        ends.push(core.open(ring).await?);
    }
    let pipe = if core.id() == CoreId::Cube { Pipe::M } else { Pipe::V };
    let (mut pushed, mut wrong) = (vec![0; rings.len()], 0);
    for action in actions {
        match *action {
            Action::Work(cycles) => core.work(pipe, cycles, "work").await,
            Action::Push(ring) => {
                let tile = part(&core, rings[ring].spec(), ring, pushed[ring], core.id() == CoreId::Cube);
                pushed[ring] += 1;
                ends[ring].push(&tile).await?;
            }
            Action::Pop(ring) => {
                let right = pop(&mut ends[ring], rings[ring].spec(), ring).await?;
                wrong += usize::from(!right);
                if consumer_cycles > 0 {
                    core.work(pipe, consumer_cycles, "work").await;
                }
            }
            Action::Free(ring) => ends[ring].free().await?,
        }
    }
    for end in ends {
        end.close().await?;
    }
    Ok(wrong)
}

/// Pops a tile; whether it has the elements that were pushed.
async fn pop(end: &mut RingEnd, spec: &RingSpec, ring: usize) -> Result<bool, Fault> {
    let popped = end.pop().await?;
    let found = end.read(&popped).await?;
    let core = end.core().clone();
    let has_data = core.id().lane().is_none_or(|lane| spec.split.data_lanes().has(lane));
    Ok(!has_data || found == part(&core, spec, ring, popped.number(), core.id() != CoreId::Cube))
}

/// A core's part of tile number `tile` of a ring, on the way from the Cube or to it.
fn part(core: &Core, spec: &RingSpec, ring: usize, tile: u32, from_cube: bool) -> Tile {
    let whole = spec.whole(if from_cube { Flow::C2V } else { Flow::V2C });
    let Some(lane) = core.id().lane() else { return contents(whole, (0, 0), ring, tile) };
    let share = spec.split.share(whole, lane).unwrap_or(whole);
    contents(share, corner(spec.split, whole, lane), ring, tile)
}

/// Row and column of a Vector's share in a whole tile.
pub(crate) fn corner(split: Split, whole: Shape, lane: Lane) -> (usize, usize) {
    let first = split.share(whole, Lane::L0).unwrap_or(whole);
    match (split, lane) {
        (_, Lane::L0) | (Split::None, _) => (0, 0),
        (Split::UpDown | Split::UpDownOdd, Lane::L1) => (first.rows, 0),
        (Split::LeftRight | Split::LeftRightOdd, Lane::L1) => (0, first.cols),
    }
}

/// Whole numbers below 101, which every element type has exactly, and which differ between tiles
/// that may meet in a slot.
fn contents(shape: Shape, (top, left): (usize, usize), ring: usize, tile: u32) -> Tile {
    let tile = usize::try_from(tile).unwrap_or(usize::MAX);
    let base = (31 * ring).wrapping_add(tile.wrapping_mul(17));
    Tile::from_fn(shape, |row, col| (base.wrapping_add(7 * (top + row) + 3 * (left + col)) % 101) as f32)
}
