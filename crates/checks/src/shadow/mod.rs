//! The shadow of the memories: who owns each byte, and whether it was ever written.
//!
//! Built from the events of a chip and the host's notes; nothing is simulated twice. What belongs
//! to a program is known from the moment at which the tile's firmware has read the go message,
//! because launches are put into a queue long before they run.

pub(crate) mod buffers;
mod caches;
pub(crate) mod cbs;
mod dram;
mod known;
mod l1;
mod local;
pub(crate) mod observer;
mod packets;
pub(crate) mod report;
#[cfg(test)]
mod tests;
pub(crate) mod tile;
mod writers;
pub(crate) mod written;

pub use observer::CheckObserver;
