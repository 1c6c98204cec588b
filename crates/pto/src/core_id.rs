//! The three cores of a cluster, the lanes between them, and the pipes inside them.

use std::fmt;

/// A core of a cluster (seed 002, "Core Architecture": one Cube, two Vectors, 1:2).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CoreId {
    /// The matrix core, AIC.
    Cube,
    /// The Vector core of subblock 0, AIV0.
    Vector0,
    /// The Vector core of subblock 1, AIV1.
    Vector1,
}

impl CoreId {
    /// All three cores, Cube first.
    pub const ALL: [Self; 3] = [Self::Cube, Self::Vector0, Self::Vector1];

    /// The Vector core of a lane.
    pub fn vector(lane: Lane) -> Self {
        match lane {
            Lane::L0 => Self::Vector0,
            Lane::L1 => Self::Vector1,
        }
    }

    /// The lane that this core serves; none for the Cube, which serves both.
    pub fn lane(self) -> Option<Lane> {
        match self {
            Self::Cube => None,
            Self::Vector0 => Some(Lane::L0),
            Self::Vector1 => Some(Lane::L1),
        }
    }

    /// 0 for the Cube, 1 and 2 for the Vectors: an index for tables of the three.
    pub fn index(self) -> usize {
        match self {
            Self::Cube => 0,
            Self::Vector0 => 1,
            Self::Vector1 => 2,
        }
    }

    /// Whether it is a Vector core.
    pub fn is_vector(self) -> bool {
        self != Self::Cube
    }
}

impl fmt::Display for CoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cube => "Cube",
            Self::Vector0 => "Vector 0",
            Self::Vector1 => "Vector 1",
        })
    }
}

/// One of the two connections between Cube and Vectors: lane s belongs to the Vector of subblock s.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Lane {
    /// Subblock 0.
    L0,
    /// Subblock 1.
    L1,
}

impl Lane {
    /// Both.
    pub const ALL: [Self; 2] = [Self::L0, Self::L1];

    /// The subblock id, 0 or 1.
    pub fn index(self) -> usize {
        match self {
            Self::L0 => 0,
            Self::L1 => 1,
        }
    }
}

/// A set of lanes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Lanes(u8);

impl Lanes {
    /// No lane.
    pub const NONE: Self = Self(0);
    /// Lane 0.
    pub const FIRST: Self = Self(1);
    /// Both lanes.
    pub const BOTH: Self = Self(3);

    /// Only this lane.
    pub fn one(lane: Lane) -> Self {
        Self(1 << lane.index())
    }

    /// Whether the lane is in the set.
    pub fn has(self, lane: Lane) -> bool {
        self.0 & Self::one(lane).0 != 0
    }

    /// The intersection of two sets.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The lanes in order.
    pub fn iter(self) -> impl Iterator<Item = Lane> {
        Lane::ALL.into_iter().filter(move |&lane| self.has(lane))
    }
}

/// A pipe: an in-order unit of a core (`pto-isa`, `pipe_t`). A signal names the pipe that sends it,
/// so that it follows the pipe's earlier work.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Pipe {
    /// Scalar.
    S,
    /// Vector arithmetic.
    V,
    /// Matrix arithmetic.
    M,
    /// L1 to L0 (Cube).
    Mte1,
    /// Global memory into the core.
    Mte2,
    /// Out of a Vector core's UB.
    Mte3,
    /// Out of the Cube's L0C.
    Fix,
}

impl fmt::Display for Pipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::S => "S",
            Self::V => "V",
            Self::M => "M",
            Self::Mte1 => "MTE1",
            Self::Mte2 => "MTE2",
            Self::Mte3 => "MTE3",
            Self::Fix => "FIX",
        })
    }
}
