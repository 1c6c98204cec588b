//! What became of each operation of a run.

use tilework_abi::addr::Cycle;
use tilework_engine::OperationPlace;

/// Who carried an operation out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Carried {
    /// Programs of the chip.
    Chip,
    /// A transfer between host and chip, or another name of the same tensor: nothing is computed.
    Moved,
    /// The host, because the program has its tensors there.
    Stated,
    /// The host, because the chip has no program for it: why not.
    Host(String),
}

impl Carried {
    /// The name in reports.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Chip => "chip",
            Self::Moved => "moved",
            Self::Stated => "stated",
            Self::Host(_) => "host",
        }
    }
}

/// A program of the chip that was part of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// Cores that it ran on.
    pub cores: usize,
    /// Cycles from its first to its last command, where the dispatcher wrote them down.
    pub cycles: Option<Cycle>,
}

/// An operation that was carried out.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// Where it is.
    pub place: OperationPlace,
    /// By whom.
    pub carried: Carried,
    /// Its programs, in order.
    pub stages: Vec<Stage>,
    /// Cycles of the chip from its beginning to its end, with transfers.
    pub cycles: Cycle,
    /// Bytes that were written to the device for it.
    pub written: u64,
    /// Bytes that were read from the device for it.
    pub read: u64,
}

impl Record {
    /// Cycles of its programs.
    pub fn busy(&self) -> Cycle {
        self.stages.iter().filter_map(|stage| stage.cycles).sum()
    }
}
