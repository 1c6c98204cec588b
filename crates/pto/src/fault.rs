//! Faults of kernels. A fault is a value that names the position; it ends the run.

use crate::arch::Arch;
use crate::core_id::{CoreId, Lane, Pipe};
use crate::deadlock::Deadlock;
use crate::ffts::{Counter, Overflow};
use crate::memory::MemoryError;
use crate::ring::RingError;
use crate::tile::Shape;
use std::fmt;

/// A cycle of the virtual clock; none in an exploration, which has no time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct When(pub Option<u64>);

impl fmt::Display for When {
    /// Formats it as the beginning of a message; empty without time.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |cycle| write!(f, "cycle {cycle}: "))
    }
}

/// One access to a slot.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Access {
    /// The core.
    pub core: CoreId,
    /// The ring (and direction, if it has two).
    pub ring: String,
    /// The tile's number in that direction, from 0.
    pub tile: u32,
    /// Whether it was a write.
    pub write: bool,
    /// First cycle.
    pub from: When,
    /// Last cycle, if it is over.
    pub to: Option<When>,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.write { "write" } else { "read" };
        write!(f, "{}'s {what} of tile {} of `{}`", self.core, self.tile, self.ring)?;
        match (self.from.0, self.to.and_then(|to| to.0)) {
            (Some(from), Some(to)) => write!(f, ", cycle {from} to {to}"),
            (Some(from), None) => write!(f, ", cycle {from} on"),
            (None, _) => Ok(()),
        }
    }
}

/// A race: two unordered accesses to a slot, which is overwritten before its tile was
/// read and freed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Race {
    /// The slot.
    pub slot: u32,
    /// The lane's share of it.
    pub lane: Lane,
    /// The earlier access, whose tile is lost.
    pub first: Access,
    /// Whether the first tile was already read (and only not freed).
    pub read: bool,
    /// The access that came too early.
    pub second: Access,
    /// Slots that the second access's producer has acquired.
    pub acquired: u32,
    /// Slots of the same direction that the lane's consumer has freed.
    pub freed: u32,
    /// Slots of the ring.
    pub slots: u32,
}

impl fmt::Display for Race {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { slot, first, second, acquired, freed, slots, .. } = self;
        let state = if self.read { "not given back" } else { "not yet read" };
        write!(
            f,
            "race on slot {slot}: {second}, while {first} is {state}; {acquired} tiles pushed, {freed} freed, \
             {slots} slots"
        )
    }
}

/// The faults.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// A semaphore past 15.
    #[error(
        "{cycle}{core} sets semaphore {id} of {} past 15 (pipe {pipe}): 15 sets were not waited for; at \
         most 15 slots can be outstanding",
        counter.owner()
    )]
    Overflow {
        /// Who sets.
        core: CoreId,
        /// The pipe.
        pipe: Pipe,
        /// The id.
        id: u8,
        /// The counter that is full.
        counter: Counter,
        /// When.
        cycle: When,
    },
    /// A semaphore used before `ffts_addr` was set.
    #[error(
        "{cycle}{core} uses semaphore {id} (pipe {pipe}), but ffts_addr of this cluster is not \
         initialised; do step 3 of the AICPU handshake first"
    )]
    NoFftsAddress {
        /// Who.
        core: CoreId,
        /// The pipe.
        pipe: Pipe,
        /// The id.
        id: u8,
        /// When.
        cycle: When,
    },
    /// A semaphore or flag that the core does not have.
    #[error("{core} has no semaphore {id}; {hint}")]
    NoSemaphore {
        /// Who.
        core: CoreId,
        /// The id or flag.
        id: u8,
        /// What there is.
        hint: &'static str,
    },
    /// A slot overwritten too early.
    #[error("{0}")]
    Race(Box<Race>),
    /// The consumer finds another tile in the slot.
    #[error("{cycle}{core} pops tile {tile} of `{ring}`, but slot {slot} holds {found}")]
    WrongTile {
        /// Who.
        core: CoreId,
        /// The ring.
        ring: String,
        /// The tile expected.
        tile: u32,
        /// The slot.
        slot: u32,
        /// What is in it.
        found: String,
        /// When.
        cycle: When,
    },
    /// Credits appeared or vanished.
    #[error(
        "{cycle}credits of `{ring}` to {vector} do not add up: {ready} ready + {free} free + {held} held + \
         {in_flight} in flight, but {granted} were given; something else uses the ring's semaphores, or an earlier \
         block left counts in them"
    )]
    Credits {
        /// The ring.
        ring: String,
        /// The Vector of the lane.
        vector: CoreId,
        /// In "ready".
        ready: u32,
        /// In "free".
        free: u32,
        /// Popped and not freed.
        held: u32,
        /// Acquired and not published.
        in_flight: u32,
        /// Granted at the start and not taken back.
        granted: u32,
        /// When.
        cycle: When,
    },
    /// More tiles pushed and not freed than slots, or more freed than pushed.
    #[error("{cycle}`{ring}` has {pushed} tiles pushed and {freed} freed with {slots} slots")]
    Invariant {
        /// The ring.
        ring: String,
        /// Pushed.
        pushed: u32,
        /// Freed.
        freed: u32,
        /// Slots.
        slots: u32,
        /// When.
        cycle: When,
    },
    /// TFREE with no popped tile.
    #[error("{core} frees a slot of `{ring}`, but holds none: {popped} tiles were popped and as many freed")]
    NothingToFree {
        /// Who.
        core: CoreId,
        /// The ring.
        ring: String,
        /// Tiles popped.
        popped: u32,
    },
    /// TPUSH of a slot without TALLOC, or out of the order of TALLOCs.
    #[error("{core} publishes a slot of `{ring}`, but has allocated none")]
    NothingToPublish {
        /// Who.
        core: CoreId,
        /// The ring.
        ring: String,
    },
    /// A popped tile used after its slot or its local copy was reused.
    #[error("{core} reads tile {tile} of `{ring}` after {why}")]
    Stale {
        /// Who.
        core: CoreId,
        /// The ring.
        ring: String,
        /// The tile.
        tile: u32,
        /// What happened to it.
        why: &'static str,
    },
    /// The core is not on this end of the ring.
    #[error("{core} cannot {what} on `{ring}`; {hint}")]
    WrongCore {
        /// Who.
        core: CoreId,
        /// The operation.
        what: &'static str,
        /// The ring.
        ring: String,
        /// Who can.
        hint: &'static str,
    },
    /// A tile of another shape than the slot takes.
    #[error("{core}: a tile of {got} on `{ring}`, which expects {expected}")]
    WrongShape {
        /// Who.
        core: CoreId,
        /// The ring.
        ring: String,
        /// The shape given.
        got: Shape,
        /// What the slot takes.
        expected: String,
    },
    /// A deadlock.
    #[error("{0}")]
    Deadlock(Box<Deadlock>),
    /// A memory access.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A ring that cannot be made.
    #[error(transparent)]
    Ring(#[from] RingError),
    /// A core's or block's id.
    #[error(transparent)]
    Id(#[from] crate::ids::IdError),
    /// An operation that the headers do not implement, under their profile.
    #[error("`{ring}`: {what}")]
    HeaderGap {
        /// The ring.
        ring: String,
        /// What is missing.
        what: &'static str,
    },
    /// An invalid use of the cluster.
    #[error("{0}")]
    Usage(String),
    /// An error that the kernel itself reported.
    #[error("{0}")]
    Kernel(String),
}

impl Fault {
    /// The fault of a set past 15, with the setter's flag: on A5 the Cube's flag for Vector
    /// 1 is id + 16.
    pub(crate) fn overflow(arch: Arch, core: CoreId, pipe: Pipe, overflow: Overflow, cycle: When) -> Self {
        let Overflow(counter) = overflow;
        let id = if core == CoreId::Cube { arch.cube_flag(counter.id, counter.lane) } else { counter.id };
        Self::Overflow { core, pipe, id, counter, cycle }
    }
}
