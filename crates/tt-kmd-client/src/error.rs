//! Why a card cannot be used.

use crate::card::OLDEST_DRIVER;
use std::io;
use tilework_abi::kmd::{DRIVER_VERSION, Request};
use tilework_abi::pci;

fn version([major, minor, patch]: [u8; 3]) -> String {
    format!("{major}.{minor}.{patch}")
}

/// Why a card cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// There is none.
    #[error("there is no such device; is there a card, and is its kernel driver (tt-kmd) loaded?")]
    Missing,
    /// The device file cannot be opened.
    #[error("the device cannot be opened: {0}")]
    Open(#[source] io::Error),
    /// Another program uses the card.
    #[error("another program has the card open; it must end first (`fuser` names it)")]
    InUse,
    /// Another program has the lock without which nobody runs programs by this library.
    #[error("another program has lock {lock} of the card: it runs programs there, and must end first")]
    Locked {
        /// The number of the lock.
        lock: u8,
    },
    /// The device file belongs to something else.
    #[error("not a regular file with a chip's library, and no card: its driver does not know the requests of tt-kmd")]
    NotACard,
    /// The driver is not one of those that are known.
    #[error(
        "the kernel driver is tt-kmd {} with interface {interface}, expected {} or a later 2.x with interface \
         {DRIVER_VERSION}", version(*.found), version(OLDEST_DRIVER)
    )]
    Driver {
        /// Its version.
        found: [u8; 3],
        /// The version of its interface.
        interface: u32,
    },
    /// The card is another.
    #[error("the card is {vendor:04x}:{device:04x}, expected a Blackhole, {:04x}:{:04x}", pci::VENDOR, pci::DEVICE)]
    NotBlackhole {
        /// Its PCI vendor.
        vendor: u16,
        /// Its PCI device.
        device: u16,
    },
    /// The driver refused something.
    #[error("the kernel driver refused {}: {error}", .request.name())]
    Refused {
        /// What.
        request: Request,
        /// What it said.
        error: io::Error,
    },
    /// A window cannot be mapped.
    #[error("a window of the card cannot be mapped: {0}")]
    Map(io::Error),
}
