//! Ring specifications: direction, slots, tiles, split, protocol and semaphore ids (`TPipe` of
//! `pto-isa`), and their checks.

use crate::arch::{Arch, CV_COMM_CTRL, SEMAPHORE_IDS, SEMAPHORE_MAX};
use crate::core_id::Lane;
use crate::memory::Space;
use crate::protocol::{Flow, Medium, Profile};
use crate::split::Split;
use crate::tile::Shape;

/// Direction of a ring (`DirType` of the headers, with their numbers).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Direction {
    /// Cube to Vectors.
    C2V = 1,
    /// Vectors to Cube.
    V2C = 2,
    /// Both.
    Both = 3,
    /// Control words from Vector 0 to the Cube.
    V2cCtrl = 4,
    /// Cube to Vectors through global memory, on A5.
    C2vGm = 5,
    /// Vectors to Cube through global memory, on A5.
    V2cGm = 6,
    /// Both through global memory, on A5.
    BothGm = 7,
}

impl Direction {
    /// Whether it is bidirectional.
    pub fn is_both(self) -> bool {
        matches!(self, Self::Both | Self::BothGm)
    }

    /// Whether the architecture has it. A2A3 always goes through global memory and has no separate
    /// names for that.
    pub fn exists_on(self, arch: Arch) -> bool {
        arch == Arch::A5 || !matches!(self, Self::C2vGm | Self::V2cGm | Self::BothGm)
    }

    /// Where the slots of one way are.
    pub fn medium(self, arch: Arch, flow: Flow) -> Medium {
        match (self, arch, flow) {
            (Self::V2cCtrl, ..) => Medium::Control,
            (_, Arch::A2A3, _) | (Self::C2vGm | Self::V2cGm | Self::BothGm, ..) => Medium::Gm,
            (_, Arch::A5, Flow::C2V) => Medium::Ub,
            (_, Arch::A5, Flow::V2C) => Medium::L1,
        }
    }
}

/// Where a ring's slots start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Base {
    /// The allocator chooses.
    #[default]
    Auto,
    /// This address.
    At(usize),
}

/// Specification of a ring.
#[derive(Clone, Debug)]
pub struct RingSpec {
    /// Its name in reports.
    pub name: String,
    /// Its direction.
    pub direction: Direction,
    /// Slots of each direction (default 8).
    pub slots: u32,
    /// Local slots of the consumer, for pops that copy (default 2, as `LocalSlotNum`).
    pub local_slots: u32,
    /// How the Vectors share a tile (default: upper and lower half).
    pub split: Split,
    /// The protocol (default: the seed's).
    pub profile: Profile,
    /// The first semaphore id. Default: the seed's, 0 for C2V and bidirectional rings, 2 for V2C.
    pub flag: u8,
    /// The whole tile from the Cube to the Vectors, or of the only direction.
    pub tile: Shape,
    /// The whole tile from the Vectors to the Cube of a bidirectional ring.
    pub v2c_tile: Shape,
    /// Bytes of a slot, if more than the larger tile.
    pub slot_bytes: usize,
    /// Where the slots of the first direction start.
    pub base: Base,
    /// Where the slots from the Vectors to the Cube of a bidirectional ring start.
    pub v2c_base: Base,
}

impl RingSpec {
    /// A ring for whole tiles of this shape, with the defaults above.
    pub fn new(name: impl Into<String>, direction: Direction, tile: Shape) -> Self {
        let flag = if matches!(direction, Direction::V2C | Direction::V2cGm | Direction::V2cCtrl) { 2 } else { 0 };
        let split = if direction == Direction::V2cCtrl { Split::None } else { Split::UpDown };
        Self {
            name: name.into(),
            direction,
            slots: 8,
            local_slots: 2,
            split,
            profile: Profile::default(),
            flag,
            tile,
            v2c_tile: tile,
            slot_bytes: tile.bytes(),
            base: Base::Auto,
            v2c_base: Base::Auto,
        }
    }

    /// Slots of each direction.
    #[must_use]
    pub fn slots(self, slots: u32) -> Self {
        Self { slots, ..self }
    }

    /// Local slots of the consumer.
    #[must_use]
    pub fn local_slots(self, local_slots: u32) -> Self {
        Self { local_slots, ..self }
    }

    /// How the Vectors share a tile.
    #[must_use]
    pub fn split(self, split: Split) -> Self {
        Self { split, ..self }
    }

    /// The protocol.
    #[must_use]
    pub fn profile(self, profile: Profile) -> Self {
        Self { profile, ..self }
    }

    /// The first semaphore id.
    #[must_use]
    pub fn flag(self, flag: u8) -> Self {
        Self { flag, ..self }
    }

    /// Sets the whole tile from the Vectors to the Cube of a bidirectional ring.
    #[must_use]
    pub fn v2c_tile(self, v2c_tile: Shape) -> Self {
        let slot_bytes = self.slot_bytes.max(v2c_tile.bytes());
        Self { v2c_tile, slot_bytes, ..self }
    }

    /// Bytes of a slot.
    #[must_use]
    pub fn slot_bytes(self, slot_bytes: usize) -> Self {
        Self { slot_bytes, ..self }
    }

    /// Where the slots start (the first direction's).
    #[must_use]
    pub fn base(self, base: Base) -> Self {
        Self { base, ..self }
    }

    /// Where the slots from the Vectors to the Cube of a bidirectional ring start.
    #[must_use]
    pub fn v2c_base(self, v2c_base: Base) -> Self {
        Self { v2c_base, ..self }
    }

    /// The whole tile of one way.
    pub fn whole(&self, flow: Flow) -> Shape {
        if flow == Flow::V2C && self.direction.is_both() { self.v2c_tile } else { self.tile }
    }

    /// The ways, first C2V.
    pub fn flows(&self) -> &'static [Flow] {
        match self.direction {
            Direction::C2V | Direction::C2vGm => &[Flow::C2V],
            Direction::V2C | Direction::V2cGm | Direction::V2cCtrl => &[Flow::V2C],
            Direction::Both | Direction::BothGm => &[Flow::C2V, Flow::V2C],
        }
    }

    /// Whether TPOP of a tile releases the slot, as under the headers' profile from global memory.
    pub fn pop_frees(&self, arch: Arch) -> bool {
        let global = |&flow: &Flow| self.direction.medium(arch, flow) == Medium::Gm;
        self.profile == Profile::SparseCredits && self.flows().iter().any(global)
    }

    /// The most slots that the profile has ids or counts for. The headers check nothing; 64 is this
    /// model's bound.
    pub fn most_slots(&self) -> u32 {
        match self.profile {
            Profile::PerTagFlags if self.direction.is_both() => 4,
            Profile::PerTagFlags => 8,
            Profile::Counting => u32::from(SEMAPHORE_MAX),
            Profile::SparseCredits => 64,
        }
    }

    /// One past the last semaphore id of the ring, whose ids are `flag..end`.
    pub fn flag_end(&self) -> u32 {
        let ids = match (self.profile, self.direction.is_both()) {
            (Profile::PerTagFlags, false) => self.slots,
            (Profile::PerTagFlags, true) => 8,
            (_, false) => 2,
            (_, true) => 4,
        };
        u32::from(self.flag) + ids
    }

    /// Checks the ring for an architecture and its profile.
    pub fn check(&self, arch: Arch) -> Result<(), RingError> {
        let ring = || self.name.clone();
        if !self.direction.exists_on(arch) {
            return Err(RingError::NoDirection { ring: ring(), direction: self.direction, arch });
        }
        if self.slots == 0 || self.local_slots == 0 || self.slots > self.most_slots() {
            let (slots, most, profile) = (self.slots, self.most_slots(), self.profile);
            return Err(RingError::Slots { ring: ring(), slots, local: self.local_slots, most, profile });
        }
        // The headers check only against 16, so their rings may use reserved ids.
        let end = if self.profile == Profile::SparseCredits { SEMAPHORE_IDS } else { CV_COMM_CTRL };
        if self.flag_end() > u32::from(end) {
            return Err(RingError::Ids { ring: ring(), first: self.flag, end: self.flag_end(), limit: end });
        }
        for &flow in self.flows() {
            self.check_tile(arch, flow, self.whole(flow))?;
        }
        Ok(())
    }

    /// Checks that tiles of this whole shape can go in this direction.
    pub(crate) fn check_tile(&self, arch: Arch, flow: Flow, whole: Shape) -> Result<(), RingError> {
        let medium = self.direction.medium(arch, flow);
        let refuse = |why| Err(RingError::Tile { ring: self.name.clone(), tile: whole, split: self.split, why });
        if whole.is_empty() {
            return refuse("it has no element");
        }
        if whole.bytes() > self.slot_bytes.min(Space::Gm.bytes()) {
            return refuse("it is larger than a slot, or than all memory");
        }
        if medium == Medium::Control && (whole.len() != 1 || whole.dtype.bytes() != 4 || self.split != Split::None) {
            return refuse("a control ring carries one word of 32 bits from Vector 0");
        }
        let (Some(share), Some(_)) = (self.split.share(whole, Lane::L0), self.split.share(whole, Lane::L1)) else {
            return refuse("rows (or columns) must be even, or odd for the odd splits");
        };
        if self.split.is_odd() && (flow == Flow::V2C || medium != Medium::Gm) {
            return refuse("odd splits exist only where a Vector pops from global memory");
        }
        match (self.split, medium) {
            (Split::None, _) | (_, Medium::Gm | Medium::Control) => Ok(()),
            (_, Medium::Ub) if whole.dtype.bytes() != 4 => {
                refuse("from L0C to both UBs only elements of 32 bits can be split")
            }
            (Split::LeftRight, Medium::Ub) if !whole.cols.is_multiple_of(32) => {
                refuse("from L0C to both UBs the columns must be a multiple of 32")
            }
            (Split::LeftRight, Medium::L1) if !(share.cols * share.dtype.bytes()).is_multiple_of(32) => {
                refuse("from UB to L1 a row of a share must be a multiple of 32 bytes")
            }
            _ => Ok(()),
        }
    }
}

/// Why a ring cannot be created.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RingError {
    /// The direction is not on this architecture.
    #[error(
        "ring `{ring}`: {arch} has no direction {direction:?}; all its rings go through global memory already, \
         use C2V, V2C or Both"
    )]
    NoDirection {
        /// The ring.
        ring: String,
        /// The direction.
        direction: Direction,
        /// The architecture.
        arch: Arch,
    },
    /// No slot, or too many.
    #[error(
        "ring `{ring}`: {slots} slots and {local} local ones; {profile:?} has 1 to {most} slots and at least \
         one local slot"
    )]
    Slots {
        /// The ring.
        ring: String,
        /// Slots asked for.
        slots: u32,
        /// Local slots asked for.
        local: u32,
        /// Most slots.
        most: u32,
        /// The protocol.
        profile: Profile,
    },
    /// Semaphore ids past the usable ones.
    #[error(
        "ring `{ring}` takes semaphore ids {first} to {}; ids from {limit} on are not for rings, start lower", end - 1
    )]
    Ids {
        /// The ring.
        ring: String,
        /// First id.
        first: u8,
        /// One past the last.
        end: u32,
        /// The first id that is not usable.
        limit: u8,
    },
    /// Two rings with the same semaphore.
    #[error("rings `{ring}` and `{other}` both use semaphore id {id}")]
    SharedId {
        /// The ring.
        ring: String,
        /// The ring that has it.
        other: String,
        /// The id.
        id: u8,
    },
    /// A tile that the ring cannot carry.
    #[error("ring `{ring}` cannot carry tiles of {tile}, split {split:?}: {why}")]
    Tile {
        /// The ring.
        ring: String,
        /// The whole tile.
        tile: Shape,
        /// The split.
        split: Split,
        /// The reason.
        why: &'static str,
    },
    /// No memory for the slots.
    #[error("ring `{ring}`: {source}")]
    Memory {
        /// The ring.
        ring: String,
        /// The reason.
        source: crate::memory::MemoryError,
    },
}
