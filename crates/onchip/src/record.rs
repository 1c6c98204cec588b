//! What became of each operation of a run.

use tilework_abi::addr::Cycle;
use tilework_engine::OperationPlace;

use crate::roofline::Bounds;
use crate::shards;

/// Who carried an operation out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Carried {
    /// Programs of the chip.
    Chip,
    /// A transfer between host and chip, or another name of the same tensor: nothing is computed.
    Moved,
    /// All devices of a mesh together, by copies through the host's memory.
    Exchanged,
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
            Self::Exchanged => "exchanged",
            Self::Stated => "stated",
            Self::Host(_) => "host",
        }
    }
}

/// A part of an operation: a program of the chip, or a transfer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stage {
    /// The program's name; `write` or `read` of a transfer.
    pub name: String,
    /// Cores that it ran on; none of a transfer.
    pub cores: usize,
    /// The dispatcher's clock before it and after its end, where it wrote them down. A program's
    /// time begins when the one before it has ended.
    pub times: Option<[Cycle; 2]>,
}

impl Stage {
    /// A transfer.
    pub(crate) fn transfer(name: &str) -> Self {
        Self { name: name.into(), cores: 0, times: None }
    }

    /// Cycles that it took.
    pub fn cycles(&self) -> Option<Cycle> {
        self.times.map(|[start, end]| end.saturating_sub(start))
    }
}

/// An operation that was carried out.
#[derive(Clone, PartialEq, Debug)]
pub struct Record {
    /// Where it is.
    pub place: OperationPlace,
    /// By whom.
    pub carried: Carried,
    /// Its transfers and programs, in order.
    pub stages: Vec<Stage>,
    /// What it needs at least, of an operation that programs of the chip carried out.
    pub bounds: Option<Bounds>,
    /// Bytes that were written to the device for it.
    pub written: u64,
    /// Bytes that were read from the device for it.
    pub read: u64,
}

impl Record {
    /// An operation that begins.
    pub(crate) fn at(place: OperationPlace) -> Self {
        Self { place, carried: Carried::Moved, stages: Vec::new(), bounds: None, written: 0, read: 0 }
    }

    /// The dispatcher's clock before its first stage and after its last.
    pub fn times(&self) -> Option<[Cycle; 2]> {
        let mut times = self.stages.iter().filter_map(|stage| stage.times);
        let [start, end] = times.next()?;
        Some([start, times.next_back().map_or(end, |[_, end]| end)])
    }

    /// Cycles from its beginning to its end, with transfers.
    pub fn cycles(&self) -> Cycle {
        self.times().map_or(0, |[start, end]| end.saturating_sub(start))
    }

    /// How many of its programs only move tensors between L1 and DRAM.
    pub fn moves(&self) -> usize {
        self.stages.iter().filter(|stage| stage.cores > 0 && stage.name == shards::NAME).count()
    }

    /// The most cores that one of its programs ran on.
    pub fn cores(&self) -> usize {
        self.stages.iter().map(|stage| stage.cores).max().unwrap_or(0)
    }

    /// Cycles of its programs.
    pub fn busy(&self) -> Cycle {
        self.stages.iter().filter(|stage| stage.cores > 0).filter_map(Stage::cycles).sum()
    }
}
