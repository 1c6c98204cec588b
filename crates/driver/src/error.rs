//! What can go wrong between host and card.

use tilework_abi::noc::NocXy;
use tilework_abi::tensix::Processor;

/// The link to a chip could not do what was asked.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// A program did what the chip does not promise to survive. The chip is stopped for good.
    #[error(transparent)]
    Fault(Box<ChipFault>),
    /// The host waits, no core can run and nothing is in flight. Who waits for what is told by
    /// [`Inspect::waiting`](crate::Inspect::waiting).
    #[error("deadlock at cycle {cycle}: the host waits, no core can run and nothing is in flight")]
    Deadlock {
        /// When the last thing happened.
        cycle: u64,
    },
    /// The cycles that the host allowed are used up.
    #[error("still running after {cycles} cycles")]
    Budget {
        /// How many were allowed.
        cycles: u64,
    },
    /// Who observes a simulated chip has ended the run.
    #[error("the run was ended at cycle {cycle}")]
    Ended {
        /// The chip's time.
        cycle: u64,
    },
    /// The chip does not answer any more, or the link refused the call.
    #[error("{0}")]
    Failed(String),
}

/// A fault as the chip tells it: what a program did wrong, and where.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{text}")]
pub struct ChipFault {
    /// Its kind, in the chip's words, for instance "undefined behaviour".
    pub class: String,
    /// What happened, in one sentence without a full stop.
    pub what: String,
    /// The tile.
    pub tile: Option<NocXy>,
    /// The core.
    pub core: Option<Processor>,
    /// The instruction.
    pub pc: Option<u32>,
    /// The accessed address.
    pub address: Option<u64>,
    /// The cycle.
    pub cycle: Option<u64>,
    /// The whole message: all of the above and the page to read.
    pub text: String,
}

/// A driver operation failed.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DriverError {
    /// The link failed.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// All windows of a size are taken; free one first.
    #[error("no free TLB window of {bytes:#x} bytes; all {count} are in use")]
    NoWindow {
        /// Bytes of a window.
        bytes: u64,
        /// Windows of that size.
        count: u32,
    },
    /// An access that leaves the target's address space.
    #[error("{len} bytes at {address:#x} of {tile} leave its address space")]
    Address {
        /// The tile, or the start of the rectangle.
        tile: NocXy,
        /// First byte.
        address: u64,
        /// Bytes.
        len: usize,
    },
    /// A read through a multicast target.
    #[error("a rectangle of tiles from {tile} cannot be read; read one tile")]
    MulticastRead {
        /// The start of the rectangle.
        tile: NocXy,
    },
    /// An access that leaves a pinned region.
    #[error("{len} bytes at offset {offset:#x} leave the pinned region of {size:#x} bytes")]
    Pinned {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: usize,
        /// Bytes of the region.
        size: usize,
    },
    /// The card is not one that programs may be run on.
    #[error("the card is refused: {what}")]
    Refused {
        /// What was found and what was expected.
        what: String,
    },
    /// The ARC's telemetry is not what a card of this kind shows.
    #[error("ARC telemetry: {what}; is the card's firmware running?")]
    Telemetry {
        /// What was found and what was expected.
        what: String,
    },
}
