//! What can go wrong between host and card.

use tilework_abi::noc::NocXy;
use tilework_sim::ChipError;

/// The link could not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The simulated chip stopped: a fault, a deadlock, or its budget of cycles is used up.
    #[error(transparent)]
    Chip(Box<ChipError>),
}

impl From<ChipError> for LinkError {
    fn from(error: ChipError) -> Self {
        Self::Chip(Box::new(error))
    }
}

/// A driver operation failed.
#[derive(Debug, thiserror::Error)]
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
    /// The ARC's telemetry is not what a card of this kind shows.
    #[error("ARC telemetry: {what}; is the card's firmware running?")]
    Telemetry {
        /// What was found and what was expected.
        what: String,
    },
}
